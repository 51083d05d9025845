"""The options of TIWSEncoder, checked."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from tabsym.table import TARGET_TYPES
from tabsym.tiws.unseen import CONTEXTS


def check_options(encoder: Any) -> None:
    """A `ValueError` that names the argument and what it can be."""
    for option, allowed in (
        ("method", ("documents", "poster")),
        ("context", CONTEXTS),
        ("idf_rows", ("all", "known+self")),
        ("target_type", TARGET_TYPES),
    ):
        value = getattr(encoder, option)
        if not (isinstance(value, str) and value in allowed):
            raise ValueError(f"{option}={value!r} is not known; use one of {', '.join(map(repr, allowed))}.")
    for option in ("names", "indicator"):
        value = getattr(encoder, option)
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{option}={value!r} is not possible; use True or False.")
    if encoder.names and encoder.method == "poster":
        raise ValueError("names=True needs method='documents'; set names=False with method='poster'.")
    smooth = encoder.smooth
    number = isinstance(smooth, Real) and not isinstance(smooth, bool)
    if smooth != "auto" and not (number and 0 <= float(smooth) < np.inf):
        raise ValueError(f"smooth={smooth!r} is not possible; use 'auto' or a number of rows of at least 0.")
    _check_numeric(encoder.numeric)


def _check_numeric(numeric: Any) -> None:
    words = ("modl", "quantile", "passthrough")
    if isinstance(numeric, str) and numeric in words:
        return
    if not isinstance(numeric, Mapping):
        raise ValueError(
            f"numeric={numeric!r} is not known; use one of {', '.join(map(repr, words))}, or a dict of column names "
            "and edges."
        )
    for name, edges in numeric.items():
        try:
            values = np.asarray(edges, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.ndim != 1 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
            raise ValueError(f"The edges of column {name!r} in numeric must be ascending finite numbers.")
