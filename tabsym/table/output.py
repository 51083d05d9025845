"""Put a frame together in the user's own kind: pandas in, pandas out; polars in, polars out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table.columns import Table


@dataclass(frozen=True)
class Labels:
    """A categorical column: codes (n,) into labels, negative for missing."""

    codes: NDArray[Any]
    labels: Sequence[str]
    ordered: bool = False

    def texts(self) -> list[str | None]:
        named = [*self.labels, None]
        return [named[code] if code >= 0 else None for code in self.codes.tolist()]


Columns = Mapping[str, "NDArray[Any] | Labels"] | None


def assemble_frame(table: Table, replaced: Mapping[str, Columns]) -> Any:
    """A frame of `table`'s kind in which some columns were replaced, in place.

    Parameters
    ----------
    table : Table
        Where untouched columns (and pandas' index) come from.
    replaced : mapping of column name -> mapping of new column name -> values, or None
        Columns not named here, or None, pass through untouched.

    Returns
    -------
    frame
        pandas for pandas, arrays and lists; otherwise the library of the input.
    """
    _refuse_clashes(table.names, replaced)
    if isinstance(table.native, pd.DataFrame):
        return _assemble_pandas(table.native, table.names, replaced)
    frame = nw.from_native(table.native, eager_only=True)
    series: list[nw.Series[Any]] = []
    backend = frame.implementation
    for name in table.names:
        instead = replaced.get(name)
        if instead is None:
            series.append(frame[name])
            continue
        series.extend(_series(new, values, backend) for new, values in instead.items())
    return nw.to_native(frame.select(*series)) if series else nw.to_native(frame.select())


def _refuse_clashes(names: list[str], replaced: Mapping[str, Columns]) -> None:
    taken = {name for name in names if replaced.get(name) is None}
    for source, instead in replaced.items():
        for new in instead or ():
            if new in taken:
                raise ValueError(
                    f"Encoding column {source!r} makes a column {new!r}, which is there already; "
                    "rename one of the two source columns."
                )
            taken.add(new)


def _assemble_pandas(native: pd.DataFrame, names: list[str], replaced: Mapping[str, Columns]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for position, name in enumerate(names):
        instead = replaced.get(name)
        if instead is None:
            columns[name] = native.iloc[:, position]
        else:
            for new, values in instead.items():
                columns[new] = pd.Series(_pandas_values(values), index=native.index)
    return pd.DataFrame(columns, index=native.index, copy=False)


def _pandas_values(values: NDArray[Any] | Labels) -> Any:
    if not isinstance(values, Labels):
        return np.asarray(values)
    codes = np.maximum(values.codes, -1)
    return pd.Categorical.from_codes(codes, dtype=_dtype(tuple(values.labels), values.ordered))


@lru_cache(maxsize=512)
def _dtype(labels: tuple[str, ...], ordered: bool) -> pd.CategoricalDtype:
    """Made once for the labels of a column: it takes longer than a row's transform otherwise."""
    return pd.CategoricalDtype(pd.Index(list(labels)), ordered=ordered)


def _series(name: str, values: NDArray[Any] | Labels, backend: Any) -> nw.Series[Any]:
    if not isinstance(values, Labels):
        return nw.new_series(name, values, backend=backend)
    texts = nw.new_series(name, values.texts(), dtype=nw.String(), backend=backend)
    return texts.cast(nw.Enum(list(values.labels)) if backend.is_polars() else nw.Categorical())


def as_array(frame: Any) -> NDArray[Any]:
    """A frame of any kind as one array (n, p): of objects where columns of time stand beside others.

    Between these and numbers numpy has no common type, or takes microseconds for numbers.
    """
    wrapped = nw.from_native(frame, eager_only=True)
    types = set(wrapped.schema.values())
    if len(types) == 1 or not any(dtype.is_temporal() for dtype in types):
        return wrapped.to_numpy()
    out = np.empty(wrapped.shape, dtype=object)
    for place, column in enumerate(wrapped.iter_columns()):
        if column.dtype.is_temporal():
            native = column.to_native()
            out[:, place] = native.astype(object) if isinstance(native, pd.Series) else column.to_list()
        else:
            out[:, place] = column.to_numpy()
    return out
