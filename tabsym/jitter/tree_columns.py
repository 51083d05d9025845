"""A table as the numbers that trees read: categories as codes, in the order of their text, numbers as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import encode_column
from tabsym.table import Column, Measure, Table, symbolic_columns
from tabsym.tiws.words import Symbols

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TreeColumns:
    """What fit saw in each column: its categories (missing is one), or what its numbers measure."""

    names: list[str]
    kinds: list[Symbols | Measure]

    @classmethod
    def fit(cls, table: Table, cols: Any, rows: NDArray[np.int64] | None) -> TreeColumns:
        """`cols`: categorical columns, as in encoders; `rows`: those that count, all if None."""
        symbolic = {column.name for column in symbolic_columns(table, cols, booleans=False)}

        def kind(column: Column) -> Symbols | Measure:
            if column.name in symbolic or column.is_empty:
                return Symbols.of(column.name, encode_column(column), rows)
            return column.measure

        return cls(table.names, [kind(column) for column in table.columns])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Categories of each column (p,), 0 for numbers."""
        return np.array([len(kind) if isinstance(kind, Symbols) else 0 for kind in self.kinds], dtype=np.int64)

    def cells(self, table: Table) -> Floats:
        """Codes and numbers (p, n); -1 for categories that are not in the training data."""
        out = np.empty((len(self.kinds), len(table)))
        for place, (kind, column) in enumerate(zip(self.kinds, table.columns, strict=True)):
            if isinstance(kind, Symbols):
                out[place] = kind.codes(column)
            else:
                out[place] = column.values
                column.check_measure(kind)
        return out

    def symbols(self, place: int) -> list[Any]:
        """By code; None is missing."""
        kind = self.kinds[place]
        return list(kind.alphabet.symbols) if isinstance(kind, Symbols) else []
