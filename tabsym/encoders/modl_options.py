"""The options of MODLEncoder, checked."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from tabsym.modl import CRITERIA
from tabsym.table import check_target

MOST_CLASSES = 100
"""Numeric targets with more distinct values are continuous, for target_type="auto"."""


def check_modl_options(encoder: Any) -> None:
    """A `ValueError` that names the argument and what it can be."""
    for option, allowed in (
        ("output", ("group", "onehot", "probability", "logodds", "mean")),
        ("numeric", ("discretize", "passthrough")),
        ("criterion", CRITERIA),
        ("unseen", ("default_group", "missing", "error")),
        ("target_type", ("auto", "classes", "continuous")),
    ):
        value = getattr(encoder, option)
        if not (isinstance(value, str) and value in allowed):
            raise ValueError(f"{option}={value!r} is not known; use one of {', '.join(map(repr, allowed))}.")
    for option in ("n_candidates", "max_parts"):
        value = getattr(encoder, option)
        if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value < 1):
            raise ValueError(f"{option}={value!r} is not possible; use a whole number of at least 1, or None.")
    for option, none in (("min_part_count", False), ("time_limit", True)):
        value = getattr(encoder, option)
        if none and value is None:
            continue
        if not isinstance(value, Real) or isinstance(value, bool) or not float(value) > 0:
            raise ValueError(f"{option}={value!r} is not possible; use a number above 0{', or None' if none else ''}.")
    for option in ("monotonic", "sparse_output"):
        value = getattr(encoder, option)
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{option}={value!r} is not possible; use True or False.")
    if encoder.sparse_output and encoder.output != "onehot":
        raise ValueError(f"sparse_output goes with output='onehot', not with {encoder.output!r}; set it to False.")


def is_classification(encoder: Any, y: Any, n_rows: int) -> bool:
    """Whether the target holds classes, by `target_type`."""
    values = check_target(y, n_rows, type(encoder).__name__)
    classes = encoder.target_type == "classes"
    if encoder.target_type == "auto":
        classes = _looks_like_classes(values)
    return classes


def check_piece(column: str, before: Any, now: Any) -> None:
    """A `TypeError` where a column's counts cannot be added: numbers to symbols, or text to other symbols."""
    kinds = ["numbers" if one.is_numeric else _kind_of_symbols(one.values) for one in (before, now)]
    if before.is_numeric != now.is_numeric or (None not in kinds and kinds[0] != kinds[1]):
        kinds = [kind or "missing values only" for kind in kinds]
        raise TypeError(
            f"Column {column!r} held {kinds[0]} before and holds {kinds[1]} now; convert it to one type in every piece."
        )


def check_target_piece(before: Any, now: Any) -> None:
    """The same for the classes of two pieces."""
    kinds = ["numbers" if np.asarray(one).dtype.kind in "biuf" else "text" for one in (before, now)]
    if len(before) and kinds[0] != kinds[1]:
        raise TypeError(
            f"The target held {kinds[0]} before and holds {kinds[1]} now (such as {np.asarray(now).tolist()[0]!r}); "
            "convert it to one type in every piece."
        )


def _kind_of_symbols(symbols: Any) -> str | None:
    """What the symbols are; None where there is but the missing one."""
    first = next((symbol for symbol in symbols if symbol is not None), None)
    if first is None:
        return None
    number = isinstance(first, Real) and not isinstance(first, (bool, np.bool_))
    return f"symbols of type {'number' if number else type(first).__name__}"


def _looks_like_classes(values: Any) -> bool:
    if values.dtype == object and pd.api.types.infer_dtype(values) in ("floating", "mixed-integer-float", "decimal"):
        values = values.astype(np.float64)
    if values.dtype.kind in "OUSb":
        return True
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        return False
    return len(pd.unique(values)) <= MOST_CLASSES
