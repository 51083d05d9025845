"""From a table to what the kernels read: blocks of codes, and standardised numbers.

A layout is learned from the training table and then fixed: which columns are
blocks, which are numbers, which blocks are crossed, and every alphabet. It
can grow (new symbols get new entries) but never renumbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import UNSEEN, Alphabet, CodeMatrix, Cross, encode_columns
from tabsym.table import Column, Table

Codes = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class Numeric:
    """A numeric column: (value - mean) / scale; missing is 0, that is the mean."""

    name: str
    mean: float
    scale: float

    def standardise(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.nan_to_num((values - self.mean) / self.scale, nan=0.0)


@dataclass(frozen=True)
class CrossBlock:
    """A cross of the block at `left` (single or itself a cross) with the single block at `right`."""

    names: tuple[str, ...]
    left: int
    right: int
    cross: Cross


@dataclass(frozen=True)
class Layout:
    """Blocks in order: single columns, missing-value flags of numeric columns, crosses."""

    alphabets: tuple[Alphabet, ...]
    flags: tuple[str, ...]
    crosses: tuple[CrossBlock, ...]
    numerics: tuple[Numeric, ...]

    @property
    def sizes(self) -> list[int]:
        """Entries of each block."""
        singles = [len(alphabet) for alphabet in self.alphabets]
        return [*singles, *(1 for _ in self.flags), *(len(block.cross) for block in self.crosses)]

    @property
    def n_terms(self) -> int:
        """Terms of a row's score besides the intercept."""
        return len(self.alphabets) + len(self.flags) + len(self.crosses) + len(self.numerics)

    def _as_wide(self, codes: list[Codes]) -> list[Codes]:
        """Code columns as int32 where crosses read them, else as they are (codes of categories are smaller)."""
        return [code.astype(np.int32, copy=False) for code in codes] if self.crosses else codes

    def transform(self, table: Table, n_jobs: int | None = None) -> tuple[list[Codes], list[NDArray[np.float64]]]:
        """Code columns of every block, and the standardised numeric columns."""
        raws = encode_columns([table[alphabet.name] for alphabet in self.alphabets], n_jobs)
        codes = self._as_wide([alphabet.transform(raw) for alphabet, raw in zip(self.alphabets, raws, strict=True)])
        numbers = {numeric.name: table[numeric.name].values for numeric in self.numerics}
        codes += [_flag(numbers[name]) for name in self.flags]
        for block in self.crosses:
            codes.append(block.cross.transform(codes[block.left], codes[block.right]))
        return codes, [numeric.standardise(numbers[numeric.name]) for numeric in self.numerics]

    def grow(self, table: Table, n_jobs: int | None = None) -> tuple[Layout, list[Codes], list[NDArray[np.float64]]]:
        """The layout with new symbols and pairs appended, and the coded table."""
        raws = encode_columns([table[alphabet.name] for alphabet in self.alphabets], n_jobs)
        grown = [alphabet.grow(raw) for alphabet, raw in zip(self.alphabets, raws, strict=True)]
        codes = self._as_wide([code for _, code in grown])
        numbers = {numeric.name: table[numeric.name].values for numeric in self.numerics}
        codes += [_flag(numbers[name]) for name in self.flags]
        crosses = []
        for block in self.crosses:
            cross, code = block.cross.grow(codes[block.left], codes[block.right])
            crosses.append(replace(block, cross=cross))
            codes.append(code)
        layout = replace(self, alphabets=tuple(alphabet for alphabet, _ in grown), crosses=tuple(crosses))
        return layout, codes, [numeric.standardise(numbers[numeric.name]) for numeric in self.numerics]


def plan_layout(
    symbolic: Sequence[Column],
    numeric: Sequence[Column],
    *,
    interactions: int,
    standardize: bool,
    weights: NDArray[np.float64] | None,
) -> Layout:
    """An empty layout over these columns, ready to `grow` over the training table.

    Parameters
    ----------
    symbolic, numeric : columns of the training table
    interactions : int
        The highest order of crosses: 1 for none, 2 for all pairs, 3 for all triples too.
    standardize : bool
        Whether numeric columns are centred and scaled.
    weights : (n,) or None
        Row weights of the training table.
    """
    empty = np.empty(0, dtype=object)
    alphabets = tuple(Alphabet(column.name, empty) for column in symbolic)
    numerics = tuple(_describe(column, standardize, weights) for column in numeric)
    flags = tuple(column.name for column in numeric if np.isnan(column.values).any())
    place: dict[tuple[int, ...], int] = {(j,): j for j in range(len(alphabets))}
    crosses = []
    for order in range(2, min(interactions, len(alphabets)) + 1):
        for members in combinations(range(len(alphabets)), order):
            names = tuple(alphabets[j].name for j in members)
            crosses.append(CrossBlock(names, place[members[:-1]], members[-1], Cross(np.empty(0, dtype=np.int64))))
            place[members] = len(alphabets) + len(flags) + len(crosses) - 1
    return Layout(alphabets, flags, tuple(crosses), numerics)


def stack(
    layout: Layout,
    codes: list[Codes],
    numbers: list[NDArray[np.float64]],
    n_rows: int,
    order: NDArray[np.int64] | None,
    n_jobs: int | None = None,
) -> tuple[CodeMatrix, NDArray[np.float64]]:
    """The code matrix (n, blocks) and the numeric matrix (n, d) that the kernels read, rows in `order`."""
    matrix = CodeMatrix.assemble(codes, layout.sizes, n_rows, order, n_jobs)
    x = np.empty((len(matrix.codes), len(numbers)))
    for j, column in enumerate(numbers):
        x[:, j] = column if order is None else column[order]
    return matrix, x


def _flag(values: NDArray[np.float64]) -> Codes:
    """A block of one entry that is there where the number is missing."""
    return np.where(np.isnan(values), 0, UNSEEN).astype(np.int32)


def _describe(column: Column, standardize: bool, weights: NDArray[np.float64] | None) -> Numeric:
    if not standardize:
        return Numeric(column.name, 0.0, 1.0)
    present = ~np.isnan(column.values)
    if not present.any():
        return Numeric(column.name, 0.0, 1.0)
    values = column.values[present]
    share = None if weights is None else weights[present]
    if share is not None and not share.any():
        share = None
    mean = float(np.average(values, weights=share))
    spread = float(np.sqrt(np.average((values - mean) ** 2, weights=share)))
    scale = spread if spread > 1e-12 * max(1.0, abs(mean)) else 1.0
    return Numeric(column.name, mean, scale)
