"""`lookup_tables`: what a fitted encoder makes of each value of a column, where nothing else of the row matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import UNSEEN
from tabsym.encoders.base import MISSING
from tabsym.encoders.modl import MODLEncoder
from tabsym.encoders.modl.column import MODLColumn
from tabsym.encoders.modl.encoder import _output_of
from tabsym.encoders.onehot import OneHotEncoder
from tabsym.encoders.tiws import TIWSEncoder
from tabsym.encoders.tiws.rows import alphabet_of
from tabsym.encoders.wide import WideEncoder
from tabsym.frame.storage import object_array
from tabsym.models.records import Coding
from tabsym.modl import Intervals

KINDS = {"numbers": "number", "dates": "date", "dates with a time zone": "date in UTC", "durations": "duration"}


@dataclass(frozen=True, eq=False)
class ColumnLookup:
    """The output columns of one column, by code.

    Attributes
    ----------
    column : str
    kind : str
        "category", "number", "date", "date in UTC" or "duration", as in `tabsym.models.records.ModelTerms`.
    names : list of str
        Of the output columns.
    coding : Coding
        A missing value always has a code, unless it is an error.
    values : (codes + 1, outputs) or (codes + 1,)
        The last row is for values without a code. Numbers, NaN among them, or text and None; or of a one-hot encoding
        the output column in which the one is: -1 for none, -2 for a row of NaN.
    checked : bool
        Whether a value without a code is an error.
    """

    column: str
    kind: str
    names: list[str]
    coding: Coding
    values: NDArray[Any]
    checked: bool


def lookup_tables(encoder: Any) -> list[ColumnLookup]:
    """The lookup tables of a fitted encoder's columns.

    Parameters
    ----------
    encoder : MODLEncoder, OneHotEncoder, TIWSEncoder or WideEncoder

    Raises
    ------
    TypeError
        It is another estimator.
    ValueError
        The encoding of a column is no lookup, in a sentence that names it and the remedy.
    """
    if not isinstance(encoder, (MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder)):
        raise TypeError(f"{type(encoder).__name__} is no encoder whose columns are lookup tables.")
    check_is_fitted(encoder, "columns_")
    return [_lookup(encoder, name, state) for name, state in encoder.columns_.items()]


def _lookup(encoder: Any, name: str, state: Any) -> ColumnLookup:
    if encoder.handle_missing == "error" and encoder.handle_unknown != "error":
        raise ValueError(
            f"handle_missing='error' raises an error for missing values of column {name!r}, which a lookup cannot; "
            "set_params(handle_missing='return_nan') to export the encoder."
        )
    if isinstance(encoder, MODLEncoder):
        return _of_modl(encoder, name, state)
    if isinstance(encoder, TIWSEncoder):
        return _of_tiws(encoder, name, state)
    categories = state.alphabet.symbols.tolist()
    codes, coding = _with_missing(categories, encoder)
    codes = np.append(codes, UNSEEN)
    if isinstance(encoder, OneHotEncoder):
        kept = [state.names.index(one) for one in encoder._kept_names(state)]
        new = np.full(len(state.names) + 2, -1)  # ZEROS and NANS, -1 and -2, read the last two
        new[kept], new[-2] = np.arange(len(kept)), -2
        values = new[state.indices(codes)]
    else:
        columns = encoder._kept_columns(state, encoder._encode_column(state, codes.astype(np.int32)))
        values = np.column_stack([*columns.values(), np.empty((len(codes), 0))])
    return _made(encoder, name, state, coding, values)


def _made(encoder: Any, name: str, state: Any, coding: Coding, values: NDArray[Any]) -> ColumnLookup:
    names = encoder._kept_names(state)
    return ColumnLookup(name, "category", names, coding, values, encoder.handle_unknown == "error")


def _with_missing(categories: list[Any], encoder: Any) -> tuple[NDArray[np.int64], Coding]:
    """The codes of the categories, and of missing, if that is none and no error; the coding of all."""
    codes = np.arange(len(categories))
    if None in categories or encoder.handle_missing == "error":
        return codes, Coding(object_array(categories))
    return np.append(codes, MISSING), Coding(object_array([*categories, None]))


def _of_tiws(encoder: TIWSEncoder, name: str, state: Any) -> ColumnLookup:
    categories = alphabet_of(encoder.counts_, state.fitted.number).symbols.tolist()
    by_row = [
        f"handle_{what}='return_nan'"
        for what, one in (("unknown", encoder.handle_unknown), ("missing", encoder.handle_missing))
        if one not in ("return_nan", "error") and not (what == "missing" and None in categories)
    ]
    if by_row:
        raise ValueError(
            f"TIWSEncoder estimates unknown categories of column {name!r} from their whole rows, which is no lookup; "
            f"set_params({', '.join(by_row)}) to export the encoder without that."
        )
    codes, coding = _with_missing(categories, encoder)
    estimates = state.fitted.estimates
    values = np.full((len(codes) + 1, estimates.shape[1]), np.nan)
    values[: len(categories)] = estimates
    if None in categories and encoder.handle_missing == "return_nan":
        values[categories.index(None)] = np.nan
    unseen = np.append(codes < 0, True)
    columns = encoder._kept_columns(state, state.outputs(values, unseen))
    return _made(encoder, name, state, coding, np.column_stack([*columns.values(), np.empty((len(values), 0))]))


def _of_modl(encoder: MODLEncoder, name: str, state: MODLColumn) -> ColumnLookup:
    if isinstance(state.fitted, Intervals):
        return _of_intervals(encoder, name, state, state.fitted)
    if encoder.handle_unknown == "similar":
        raise ValueError(
            f"handle_unknown='similar' finds the group of an unknown category of column {name!r} from its whole row, "
            "which is no lookup; set_params(handle_unknown='value') to export the encoder without that."
        )
    assert state.alphabet is not None and state.part_of is not None
    categories = state.alphabet.symbols.tolist()
    codes, coding = _with_missing(categories, encoder)
    default = state.fitted.default
    if encoder.handle_unknown == "missing" and state.alphabet.has_missing:
        default = int(state.part_of[state.alphabet.missing_code])
    parts = np.append(state.part_of[codes[codes >= 0]], np.full((codes < 0).sum(), default))
    if encoder.handle_missing == "return_nan":
        parts[[category is None for category in coding.categories]] = MISSING  # type: ignore[union-attr]
    parts = np.append(parts, UNSEEN if encoder.handle_unknown == "return_nan" else default)
    return _made(encoder, name, state, coding, _values_of_parts(encoder, state, parts))


def _of_intervals(encoder: MODLEncoder, name: str, state: MODLColumn, fitted: Intervals) -> ColumnLookup:
    if fitted.bound_rests is not None:
        raise ValueError(
            f"The intervals of column {name!r} have bounds that 64-bit floats round, which an export does not hold; "
            "make its values text, or subtract the smallest one, before fit."
        )
    if encoder.handle_missing == "error":
        raise ValueError(
            f"handle_missing='error' raises an error for missing values of column {name!r}, which a lookup cannot; "
            "set_params(handle_missing='return_nan') to export the encoder."
        )
    bounds = fitted.bounds[np.isfinite(fitted.bounds)]
    codes = np.array([code for codes in fitted.specials for code in codes if not np.isnan(code)])
    finite = np.unique(np.concatenate([bounds, codes, np.nextafter(codes, -np.inf)]))  # a bin holds one code alone
    missing = MISSING if encoder.handle_missing == "return_nan" else int(fitted.parts(np.array([np.nan]))[0])
    last = finite[-1:] + np.maximum(np.abs(finite[-1:]), 1.0) if len(finite) else np.zeros(1)
    parts = np.concatenate([[missing], fitted.parts(np.append(finite, last)), [missing]])
    values = _values_of_parts(encoder, state, parts)
    coding = Coding(bounds=finite, missing=True)
    return ColumnLookup(name, KINDS[str(fitted.measure)], encoder._kept_names(state), coding, values, False)


def _values_of_parts(encoder: MODLEncoder, state: MODLColumn, parts: NDArray[Any]) -> NDArray[Any]:
    how = _output_of(encoder)
    if state.values is None and how.labelled:
        labels = object_array([None if part < 0 else state.fitted.labels[part] for part in parts.tolist()])
        return labels[:, None] if encoder._kept_names(state) else np.empty((len(parts), 0))
    columns = encoder._kept_columns(state, how.columns(state, parts))
    return np.column_stack([*columns.values(), np.empty((len(parts), 0))]).astype(np.float64)
