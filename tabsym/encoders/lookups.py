"""`lookup_tables`: what a fitted encoder makes of each value of a column, where nothing else of the row matters.

As expressions of a lazy frame they keep `transform` of one lazy: a category's outputs are looked up by an expression
where that keeps the order of rows and is fast, as in polars, or where categories are few; otherwise by a join with a
small table in the frame's own engine. Numbers are compared with the bounds of their intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tabsym.categories.coding import FEW
from tabsym.categories.lazy import by_bin, is_missing
from tabsym.frame.storage import object_array
from tabsym.models.export_terms import Coding

MISSING = -2
"""In the codes that an encoder's `_encode_column` gets: a missing value that is not in the vocabulary."""


@dataclass(frozen=True, eq=False)
class ColumnLookup:
    """The output columns of one column, by code.

    Attributes
    ----------
    column : str
    kind : str
        "category", "number", "date", "date in UTC" or "duration", as in `tabsym.models.export_terms.ModelTerms`.
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

    def extended(self, categories: list[Any], values: NDArray[Any]) -> ColumnLookup:
        """With values (m, outputs) of more categories; of missing in place of those it has."""
        assert self.coding.categories is not None
        known, rows = self.coding.categories.tolist(), self.values.copy()
        if None in categories:
            position = categories.index(None)
            rows[known.index(None)] = values[position]
            categories = [*categories[:position], *categories[position + 1 :]]
            values = np.delete(values, position, axis=0)
        coding = Coding(object_array([*known, *categories]))
        return replace(self, coding=coding, values=np.concatenate([rows[:-1], values, rows[-1:]]))


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
        The encoding of a column is no lookup, with a message that names it and the remedy.
    """
    if not hasattr(encoder, "_lookup"):
        raise TypeError(f"{type(encoder).__name__} is no encoder whose columns are lookup tables.")
    check_is_fitted(encoder, "columns_")
    numeric = [state for state in encoder.columns_.values() if getattr(state, "vocabulary", state) is None]
    if getattr(encoder, "handle_infinite", "error") == "extreme" and numeric:
        raise ValueError(
            "handle_infinite='extreme' takes infinite numbers, which exports do not; "
            "set_params(handle_infinite='error') to export the encoder."
        )
    for name in encoder.columns_:
        if encoder.handle_missing == "error" and encoder.handle_unknown != "error":
            refuse_checks(name)
    return [encoder._lookup(name, state) for name, state in encoder.columns_.items()]


def refuse_checks(name: str) -> NoReturn:
    """A `ValueError`: missing values are no error to a lookup."""
    raise ValueError(
        f"handle_missing='error' raises an error for missing values of column {name!r}, which a lookup cannot; "
        "set_params(handle_missing='return_nan') to export the encoder."
    )


def with_missing(categories: list[Any], handle_missing: str) -> tuple[NDArray[np.int64], Coding]:
    """The codes of the categories, and of missing, if that is none and no error; the coding of all."""
    codes = np.arange(len(categories))
    if None in categories or handle_missing == "error":
        return codes, Coding(object_array(categories))
    return np.append(codes, MISSING), Coding(object_array([*categories, None]))


def stacked(columns: list[NDArray[Any]], n_codes: int) -> NDArray[Any]:
    """Output columns (n_codes,) side by side, (n_codes, 0) where there are none."""
    return np.column_stack([*columns, np.empty((n_codes, 0))])


_TEXT = (nw.String, nw.Categorical, nw.Enum)
_KEY, _POSITION = "tabsym_key", "tabsym_position"


def encode_lazily(
    frame: nw.LazyFrame[Any], lookups: Mapping[str, ColumnLookup], names: list[str], outputs: Mapping[str, Any]
) -> nw.LazyFrame[Any]:
    """The columns called `names`, those of lookups encoded; `outputs`: the type of each column that comes out."""
    out: list[nw.Expr] = []
    for name in names:
        lookup = lookups.get(name)
        if lookup is None:
            out.append(nw.col(name))
            continue
        frame, columns = _encoded(frame, lookup)
        for new, column in zip(lookup.names, columns, strict=True):
            is_text = isinstance(outputs[new], nw.Categorical)  # which not every engine has: it stays text
            out.append((column if is_text else column.cast(outputs[new])).alias(new))
    if not out:  # which no engine selects
        raise ValueError(
            "No column is left of the lazy frame: each is encoded by none, as drop_invariant and drop leave out "
            "constant ones; encode the collected frame, or columns that differ."
        )
    return frame.select(*out)


def unknown_in(frame: nw.LazyFrame[Any], lookup: ColumnLookup) -> nw.LazyFrame[Any]:
    """The rows that hold a category without a code, missing left out; with all columns of the frame."""
    _check_type(frame, lookup)
    names = list(frame.columns)
    frame, (keys, codes) = frame.filter(~is_missing(frame, lookup.column)), _keys(lookup)
    if _by_expression(frame, keys):
        dtype = nw.Float64() if frame.implementation.is_dask() else nw.Int64()  # pandas' integers have no null
        position = _replaced(_key(frame, lookup), keys, codes, None, dtype)
    else:
        frame, position = _joined(frame, lookup, {})
    return frame.filter(position.is_null()).select(names)


def _check_type(frame: nw.LazyFrame[Any], lookup: ColumnLookup) -> None:
    """A `TypeError` where a column cannot be compared with what fit saw: text with numbers, dates with either."""
    dtype = frame.collect_schema()[lookup.column]
    if isinstance(dtype, nw.Unknown):
        raise TypeError(
            f"Column {lookup.column!r} has a type of the engine that lazy frames are not encoded by; cast it to text, "
            "as by CAST(... AS VARCHAR), in fit too, or give the rows as an eager frame."
        )
    if lookup.kind == "category":
        known, _ = _keys(lookup)
        fits = not known or isinstance(known[0], str) is isinstance(dtype, _TEXT)
    elif lookup.kind == "number":
        fits = dtype.is_numeric()
    else:
        fits = isinstance(dtype, nw.Duration if lookup.kind == "duration" else (nw.Date, nw.Datetime))
    if not fits:
        raise TypeError(
            f"Column {lookup.column!r} is of type {dtype} now, and held values of another kind in fit; convert it to "
            "the type it had."
        )


def _encoded(frame: nw.LazyFrame[Any], lookup: ColumnLookup) -> tuple[nw.LazyFrame[Any], list[nw.Expr]]:
    """The frame, with columns that the output columns need, and these."""
    _check_type(frame, lookup)
    values = lookup.values
    if values.ndim == 1:  # of a one-hot encoding
        values = (lookup.values[:, None] == np.arange(len(lookup.names))).astype(np.float64)
        values[lookup.values == -2] = np.nan
    outputs, missing = [column.tolist() for column in values.T], is_missing(frame, lookup.column)
    if lookup.coding.bounds is not None:
        columns = by_bin(frame, lookup.column, lookup.coding.bounds, [out[1:-1] for out in outputs])
        missing_code = 0
    else:
        keys, codes = _keys(lookup)
        known = [[out[code] for code in codes] for out in outputs]
        if _by_expression(frame, keys):
            key = _key(frame, lookup)
            columns = [_replaced(key, keys, one, all_[-1]) for one, all_ in zip(known, outputs, strict=True)]
        else:
            frame, position = _joined(frame, lookup, {str(j): out for j, out in enumerate(known)})
            columns = [
                nw.when(position.is_null()).then(nw.lit(out[-1])).otherwise(nw.col(f"{lookup.column}_{_POSITION}_{j}"))
                for j, out in enumerate(outputs)
            ]
        categories = lookup.coding.categories.tolist()  # type: ignore[union-attr]
        missing_code = categories.index(None) if None in categories else -1
    pairs = zip(columns, outputs, strict=True)
    return frame, [nw.when(missing).then(nw.lit(out[missing_code])).otherwise(column) for column, out in pairs]


def _by_expression(frame: nw.LazyFrame[Any], keys: list[Any]) -> bool:
    return frame.implementation.is_polars() or (len(keys) <= FEW and not _have_nanoseconds(keys))


def _have_nanoseconds(keys: list[Any]) -> bool:
    """Whether some are moments or durations of pandas with digits that literals of the engines lose."""
    return any(getattr(key, "nanosecond", 0) or getattr(key, "nanoseconds", 0) for key in keys)


def _replaced(key: nw.Expr, keys: list[Any], values: list[Any], default: Any, dtype: Any = None) -> nw.Expr:
    if dtype is None:
        first = next((value for value in values if value is not None), default)
        dtype = nw.String() if isinstance(first, str) or first is None else nw.Float64()
    if not keys:
        return nw.lit(default, dtype)
    if _have_nanoseconds(keys):
        is_duration = isinstance(keys[0], timedelta)
        key = key.dt.total_nanoseconds() if is_duration else key.dt.timestamp("ns")
        keys = [(pd.Timedelta if is_duration else pd.Timestamp)(moment).value for moment in keys]
    return key.replace_strict(keys, values, default=nw.lit(default, dtype), return_dtype=dtype)


def _joined(
    frame: nw.LazyFrame[Any], lookup: ColumnLookup, values: Mapping[str, list[Any]]
) -> tuple[nw.LazyFrame[Any], nw.Expr]:
    """The frame with these values of its categories as columns, and the position of each category among the known."""
    keys, codes = _keys(lookup)
    name, position = f"{lookup.column}_{_KEY}", f"{lookup.column}_{_POSITION}"
    dtype = frame.collect_schema()[lookup.column]
    dtype = nw.String() if isinstance(dtype, _TEXT) else dtype
    columns: dict[str, Any] = {name: keys, position: codes} | {f"{position}_{j}": cells for j, cells in values.items()}
    schema = {name: dtype, position: nw.Int64()}
    for j, cells in values.items():
        is_text = any(isinstance(value, str) for value in cells)
        schema[f"{position}_{j}"] = nw.String() if is_text else nw.Float64()
    table = _in_engine_of(frame, nw.from_dict(columns, schema, backend="pyarrow"))
    frame = frame.with_columns(_key(frame, lookup).alias(name))
    return frame.join(table, on=name, how="left"), nw.col(position)


def _in_engine_of(frame: nw.LazyFrame[Any], table: nw.DataFrame[Any]) -> nw.LazyFrame[Any]:
    """A small table as a lazy frame of the same engine, and of the same connection to it."""
    native, engine = frame.to_native(), frame.implementation
    if engine.is_duckdb():
        tabsym_lookup = table.to_native()  # noqa: F841 (the query finds it by its name)
        return nw.from_native(native.query("tabsym_rows", "SELECT * FROM tabsym_lookup"))
    session = getattr(native, "sparkSession", None)
    return table.lazy(backend=engine, session=session) if session is not None else table.lazy(backend=engine)


def _key(frame: nw.LazyFrame[Any], lookup: ColumnLookup) -> nw.Expr:
    column, dtype = nw.col(lookup.column), frame.collect_schema()[lookup.column]
    return column.cast(nw.String) if isinstance(dtype, _TEXT) else column


def _keys(lookup: ColumnLookup) -> tuple[list[Any], list[int]]:
    """The categories but for missing, and their codes."""
    categories = lookup.coding.categories.tolist()  # type: ignore[union-attr]
    codes = [code for code, category in enumerate(categories) if category is not None]
    return [categories[code] for code in codes], codes
