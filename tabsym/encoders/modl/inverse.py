"""From labels or numbers of parts back to a table: a value for each part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.encoders.modl.column import MODLColumn
from tabsym.modl import Intervals
from tabsym.table import (
    Column,
    Kind,
    StoredType,
    Table,
    exact_number,
    frame_of,
    library_of_frame,
    restored,
    restored_column,
)


def restored_frame(encoded: Table, types: Mapping[str, StoredType], states: Mapping[str, MODLColumn]) -> Any:
    """A frame of the columns of fit, of the types they had, from what they were encoded as."""
    native = encoded.native if encoded.named else None
    library = next(iter(types.values())).library if native is None else library_of_frame(native)
    columns = {}
    for (name, kind), column in zip(types.items(), encoded.columns, strict=True):
        state = states.get(name)
        columns[name] = (
            restored_column(column, kind, library, named=encoded.named)
            if state is None
            else restored(_values_of_parts(state, column), kind, library)
        )
    return frame_of(columns, library, native.index if isinstance(native, pd.DataFrame) else None)


def _values_of_parts(state: MODLColumn, column: Column) -> NDArray[Any]:
    """A value for each label or number of a part (n,): an interval's middle row's, a group's most frequent category."""
    fitted = state.fitted
    named = column.kind is Kind.SYMBOLIC
    place: dict[Any, int] = {label if named else part: part for part, label in enumerate(fitted.labels)}
    labels = column.series.to_list()
    for row, label in enumerate(labels):
        if not pd.isna(label) and label not in place:
            raise ValueError(
                f"Column {column.name!r} holds {label!r} (row {row}), which is none of its intervals or groups; "
                "pass what transform returned."
            )
    if isinstance(fitted, Intervals):
        if fitted.middle_rests is None or fitted.measure.name != "numbers":
            return np.array([fitted.middles[place[one]] if one in place else np.nan for one in labels])
        pairs = zip(fitted.middles.tolist(), fitted.middle_rests.tolist(), strict=True)
        middles = [None if np.isnan(one) else exact_number(one, rest) for one, rest in pairs]
        found = [middles[place[one]] if one in place else None for one in labels]
    else:
        found = [fitted.groups[place[one]][0] if one in place else None for one in labels]
    out = np.empty(len(labels), dtype=object)
    out[:] = found
    return out
