"""The options of MODLEncoder: checked, and as counting, searches and encoding take them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from tabsym.encoders.modl.counts import Counting
from tabsym.encoders.modl.out_of_fold import OutOfFold
from tabsym.encoders.modl.output import Output
from tabsym.encoders.modl.parts import Handling
from tabsym.modl import CRITERIA, Settings
from tabsym.table import TARGET_TYPES


def check_modl_options(encoder: Any) -> None:
    """A `ValueError` that names the argument and what it can be."""
    for option, allowed in (
        ("output", ("group", "onehot", "probability", "logodds", "mean")),
        ("numeric", ("discretize", "passthrough")),
        ("criterion", CRITERIA),
        ("target_type", TARGET_TYPES),
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
    if not (isinstance(encoder.prove, (bool, np.bool_)) or encoder.prove == "auto"):
        raise ValueError(f"prove={encoder.prove!r} is not possible; use 'auto', True or False.")
    if encoder.sparse_output and encoder.output != "onehot":
        raise ValueError(f"sparse_output goes with output='onehot', not with {encoder.output!r}; set it to False.")


def counting_of(encoder: Any) -> Counting:
    """How tables are counted."""
    return Counting(
        type(encoder).__name__,
        encoder.cols,
        encoder.numeric,
        encoder.target_type,
        encoder.handle_missing,
        encoder.n_jobs,
    )


def output_of(encoder: Any) -> Output:
    """How rows are encoded; frames have categories where fit saw names."""
    labelled = bool(encoder.return_df) and hasattr(encoder, "feature_names_in_")
    return Output(encoder.output, _handling_of(encoder), labelled)


def out_of_fold_of(encoder: Any) -> OutOfFold:
    """How rows are encoded out of fold, by an encoder fitted on all rows."""
    return OutOfFold(
        counting_of(encoder),
        settings_of(encoder, len(encoder.columns_), classes=encoder._classes),
        encoder.output,
        _handling_of(encoder),
        encoder.classes_ if encoder._classes else None,
    )


def _handling_of(encoder: Any) -> Handling:
    return Handling(encoder.handle_missing, encoder.handle_unknown)


def settings_of(encoder: Any, n_columns: int, *, classes: bool) -> Settings:
    """What the search for each of so many columns is asked for."""
    return Settings(
        encoder.criterion,
        n_columns if encoder.n_candidates is None else encoder.n_candidates,
        encoder.max_parts,
        encoder.min_part_count,
        bool(encoder.monotonic),
        encoder.time_limit,
        int(encoder.random_state) if isinstance(encoder.random_state, (int, np.integer)) else 0,
        classes if encoder.prove == "auto" else bool(encoder.prove),
    )
