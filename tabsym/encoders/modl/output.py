"""What rows are encoded as, from their parts: labels, numbers, or one of what each part says of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.codes import csr
from tabsym.encoders.base import numeric_matrix
from tabsym.encoders.modl.column import MODLColumn
from tabsym.encoders.modl.parts import Handling
from tabsym.modl import Intervals
from tabsym.table import Labels, Table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Output:
    """How rows are encoded: the encoder's option `output`, what becomes of unknown categories and missing values.

    `labelled`: groups are categories; in arrays, which have none, they are the numbers of the parts.
    """

    output: str
    handling: Handling
    labelled: bool

    def columns(self, state: MODLColumn, parts: NDArray[Any]) -> list[Any]:
        """The output columns (n,) of a column, from the part of each row; NaN for those below 0."""
        if state.values is None:
            return [self._as_categories(state, parts)]
        values = look_up(state.values, parts)
        return list((values.astype(np.int8) if self.output == "onehot" and not self._can_be_nan else values).T)

    def sparse_table(
        self,
        table: Table,
        states: dict[str, MODLColumn],
        parts_of: dict[str, NDArray[Any]],
        dropped: set[str],
        who: str,
    ) -> Any:
        """The table with 0/1 columns of the parts, but for those dropped, in place of the encoded; who: for errors."""
        untouched = [name for name in table.names if name not in states]
        blocks = numeric_matrix(table, untouched, who)
        for name, parts in parts_of.items():
            blocks[name] = _sparse_onehot(states[name], parts, dropped)
        return sparse.hstack([blocks[name] for name in table.names], format="csr")

    def _as_categories(self, state: MODLColumn, parts: NDArray[Any]) -> Any:
        if self.labelled:
            return Labels(parts, state.fitted.labels, isinstance(state.fitted, Intervals))
        return np.where(parts < 0, np.nan, parts) if self._can_be_nan else parts

    @property
    def _can_be_nan(self) -> bool:
        """Whether some row can be encoded as NaN; types of output go by this, so that no batch changes them."""
        return "return_nan" in (self.handling.handle_missing, self.handling.handle_unknown)


def look_up(values: Floats, parts: NDArray[Any]) -> Floats:
    """The values (n, outputs) of parts (n,), NaN for those below 0."""
    out = values[np.maximum(parts, 0)]
    out[parts < 0] = np.nan
    return out


def _sparse_onehot(state: MODLColumn, parts: NDArray[Any], dropped: set[str]) -> sparse.csr_array:
    """The 0/1 columns (n, outputs), but for those that are dropped, as a sparse matrix, which holds no NaN."""
    if (parts < 0).any():
        raise ValueError(
            f"Column {state.name!r} holds a missing or unknown value (row {int(np.argmax(parts < 0))}), "
            "and sparse_output holds no NaN; use handle_missing='value' and handle_unknown='value'."
        )
    ones = csr(np.ones(len(parts)), parts, np.arange(len(parts) + 1), (len(parts), len(state.names)))
    return ones[:, [place for place, name in enumerate(state.names) if name not in dropped]]
