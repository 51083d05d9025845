"""What MODLEncoder makes of each category or number of a column, as a lookup."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import UNSEEN
from tabsym.encoders.lookups import MISSING, ColumnLookup, refuse_checks, stacked, with_missing
from tabsym.encoders.modl.column import MODLColumn, Output
from tabsym.frame.storage import object_array
from tabsym.models.records import Coding
from tabsym.modl import Intervals

_KINDS = {"numbers": "number", "dates": "date", "dates with a time zone": "date in UTC", "durations": "duration"}


def lookup_of(name: str, state: MODLColumn, kept: list[str], how: Output) -> ColumnLookup:
    """The lookup of a fitted column; `kept`: its output columns that are wanted."""
    if isinstance(state.fitted, Intervals):
        return _of_intervals(name, state, state.fitted, kept, how)
    handling = how.handling
    if handling.handle_unknown == "similar":
        raise ValueError(
            f"handle_unknown='similar' finds the group of an unknown category of column {name!r} from its whole row, "
            "which is no lookup; set_params(handle_unknown='value') to export the encoder, or to encode lazy frames."
        )
    assert state.alphabet is not None and state.part_of is not None
    categories = state.alphabet.symbols.tolist()
    codes, coding = with_missing(categories, handling.handle_missing)
    default = state.fitted.default
    if handling.handle_unknown == "missing" and state.alphabet.has_missing:
        default = int(state.part_of[state.alphabet.missing_code])
    parts = np.append(state.part_of[codes[codes >= 0]], np.full((codes < 0).sum(), default))
    if handling.handle_missing == "return_nan":
        parts[[category is None for category in coding.categories]] = MISSING  # type: ignore[union-attr]
    parts = np.append(parts, UNSEEN if handling.handle_unknown == "return_nan" else default)
    values = _values_of_parts(state, parts, kept, how)
    return ColumnLookup(name, "category", kept, coding, values, handling.handle_unknown == "error")


def _of_intervals(name: str, state: MODLColumn, fitted: Intervals, kept: list[str], how: Output) -> ColumnLookup:
    if fitted.bound_rests is not None:
        raise ValueError(
            f"The intervals of column {name!r} have bounds that 64-bit floats round, which an export and the encoding "
            "of a lazy frame do not hold; make its values text, or subtract the smallest one, before fit."
        )
    if how.handling.handle_missing == "error":
        refuse_checks(name)
    bounds = fitted.bounds[np.isfinite(fitted.bounds)]
    codes = np.array([code for codes in fitted.specials for code in codes if not np.isnan(code)])
    finite = np.unique(np.concatenate([bounds, codes, np.nextafter(codes, -np.inf)]))  # a bin holds one code alone
    missing = MISSING if how.handling.handle_missing == "return_nan" else int(fitted.parts(np.array([np.nan]))[0])
    last = finite[-1:] + np.maximum(np.abs(finite[-1:]), 1.0) if len(finite) else np.zeros(1)
    parts = np.concatenate([[missing], fitted.parts(np.append(finite, last)), [missing]])
    values = _values_of_parts(state, parts, kept, how)
    coding = Coding(bounds=finite, missing=True)
    return ColumnLookup(name, _KINDS[str(fitted.measure)], kept, coding, values, False)


def _values_of_parts(state: MODLColumn, parts: NDArray[Any], kept: list[str], how: Output) -> NDArray[Any]:
    if state.values is None and how.labelled:
        labels = object_array([None if part < 0 else state.fitted.labels[part] for part in parts.tolist()])
        return labels[:, None] if kept else np.empty((len(parts), 0))
    columns = dict(zip(state.names, how.columns(state, parts), strict=True))
    return stacked([columns[new] for new in kept], len(parts)).astype(np.float64)
