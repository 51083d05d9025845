"""Put a frame together in the user's own kind: pandas in, pandas out; polars in, polars out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table.columns import Table

Part = Mapping[str, NDArray[Any]] | None


def assemble_frame(table: Table, parts: Mapping[str, Part]) -> Any:
    """A frame of `table`'s kind in which some columns were replaced, in place.

    Parameters
    ----------
    table : Table
        Where untouched columns (and pandas' index) come from.
    parts : mapping of column name -> mapping of new column name -> values, or None
        Columns not named here, or None, pass through untouched.

    Returns
    -------
    frame
        pandas for pandas, arrays and lists; otherwise the library of the input.
    """
    _refuse_clashes(table.names, parts)
    if isinstance(table.native, pd.DataFrame):
        return _assemble_pandas(table.native, table.names, parts)
    frame = nw.from_native(table.native, eager_only=True)
    series: list[nw.Series[Any]] = []
    backend = frame.implementation
    for name in table.names:
        part = parts.get(name)
        if part is None:
            series.append(frame[name])
            continue
        series.extend(nw.new_series(new, values, backend=backend) for new, values in part.items())
    return nw.to_native(frame.select(*series)) if series else nw.to_native(frame.select())


def _refuse_clashes(names: list[str], parts: Mapping[str, Part]) -> None:
    taken = {name for name in names if parts.get(name) is None}
    for source, part in parts.items():
        for new in part or ():
            if new in taken:
                raise ValueError(
                    f"Encoding column {source!r} makes a column {new!r}, which is there already; "
                    "rename one of the two source columns."
                )
            taken.add(new)


def _assemble_pandas(native: pd.DataFrame, names: list[str], parts: Mapping[str, Part]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for position, name in enumerate(names):
        part = parts.get(name)
        if part is None:
            columns[name] = native.iloc[:, position]
        else:
            for new, values in part.items():
                columns[new] = pd.Series(np.asarray(values), index=native.index)
    return pd.DataFrame(columns, index=native.index, copy=False)
