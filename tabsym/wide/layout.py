"""From a table to what the kernels read: blocks of codes, and numeric columns.

A layout is planned from the training table's columns and a sum of products
(`plan`), then grown over tables: new symbols get new entries at the end of
their block, and nothing is renumbered within a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import RawCodes, gather
from tabsym.table import Table
from tabsym.wide.coding import Coder, Codes
from tabsym.wide.polynomial import columns_read, evaluate
from tabsym.wide.program import Compiled, Product, Rows, Slot, compile_program
from tabsym.wide.sources import Source
from tabsym.wide.syntax import Node

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """Parameters: `rank` for each code of the source at `source`; a scalar where that is None.

    Attributes
    ----------
    start : float
        Where a parameter starts.
    neutral_mean : bool
        Whether an unseen symbol stands for the mean of the block (inside a product), else for 0.
    """

    name: str
    source: int | None
    columns: tuple[str, ...]
    rank: int = 1
    start: float = 0.0
    neutral_mean: bool = False


@dataclass(frozen=True)
class Numeric:
    """A numeric factor: the product of `nodes`, then (value - mean) / scale.

    `missing_ok`: whether a missing value stands for the mean (a flag block tells it apart), or is an error.
    """

    label: str
    nodes: tuple[Node, ...]
    mean: float = 0.0
    scale: float = 1.0
    missing_ok: bool = False

    def raw(self, table: Table) -> Floats:
        """Values (n,) of the factor in the table's units, missing as NaN."""
        columns = {ref.name: table[ref.name].values for node in self.nodes for ref in columns_read(node)}
        values = np.ones(len(table))
        for node in self.nodes:
            values = values * evaluate(node, columns)
        if not self.missing_ok:
            self._refuse_missing(values, columns)
        return values

    def standardise(self, values: Floats) -> Floats:
        return np.nan_to_num((values - self.mean) / self.scale, nan=0.0)

    def _refuse_missing(self, values: Floats, columns: Mapping[str, Floats]) -> None:
        wrong = ~np.isfinite(values)
        if not wrong.any():
            return
        row = int(np.argmax(wrong))
        read = ", ".join(f"{name} = {column[row]:g}" for name, column in columns.items())
        raise ValueError(
            f"{self.label} in the formula has no finite value in row {row} ({read}); fill in or drop such rows."
        )


@dataclass(frozen=True)
class Factor:
    """A factor of a term: a block, and the columns that select its entry in this place."""

    block: int
    columns: tuple[str, ...]
    part: int = 0


@dataclass(frozen=True)
class LaidTerm:
    """``constant * numeric * product of factors``; numbers are places in the layout."""

    constant: float
    numeric: int | None
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class Layout:
    """Sources of codes, blocks of parameters, numeric factors, and the terms that multiply them."""

    sources: tuple[Source, ...]
    blocks: tuple[Block, ...]
    numerics: tuple[Numeric, ...]
    terms: tuple[LaidTerm, ...]

    @cached_property
    def sizes(self) -> list[int]:
        """Entries of each block."""
        return [1 if b.source is None else len(self.sources[b.source]) * b.rank for b in self.blocks]

    @cached_property
    def offsets(self) -> list[int]:
        """The first entry of each block, and the number of entries."""
        return [0, *np.cumsum(self.sizes).tolist()]

    @property
    def n_entries(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_terms(self) -> int:
        """Learned terms of a row's score besides scalars alone."""
        return sum(1 for term in self.terms if term.factors and not self._is_scalar(term))

    def _is_scalar(self, term: LaidTerm) -> bool:
        return term.numeric is None and all(self.blocks[f.block].source is None for f in term.factors)

    @property
    def constant_block(self) -> int | None:
        """The block that stands alone as a scalar, an intercept."""
        found = [t.factors[0].block for t in self.terms if len(t.factors) == 1 and self._is_scalar(t)]
        uses = [f.block for t in self.terms for f in t.factors]
        return next((block for block in found if uses.count(block) == 1), None)

    @property
    def is_additive(self) -> bool:
        """Whether every term has one learned factor, so that parameters have units of the target."""
        return all(len(term.factors) <= 1 for term in self.terms)

    @cached_property
    def reads(self) -> list[tuple[int, tuple[str, ...]]]:
        """The distinct (block, columns) that terms read: code columns."""
        found = [(f.block, f.columns) for t in self.terms for f in t.factors if self.blocks[f.block].source is not None]
        return list(dict.fromkeys(found))

    @cached_property
    def compiled(self) -> Compiled:
        """The program of the kernels."""
        places = {read: place for place, read in enumerate(self.reads)}
        products = [
            Product(
                term.constant,
                term.numeric,
                tuple(
                    Slot(f.block, self.offsets[f.block], places.get((f.block, f.columns)), f.part) for f in term.factors
                ),
            )
            for term in self.terms
            if term.factors
        ]
        return compile_program(products, self.n_entries)

    def code(self, table: Table, n_jobs: int | None = None) -> dict[tuple[int, tuple[str, ...]], Codes]:
        """Code columns by (block, columns); UNSEEN for symbols without an entry."""
        coder = Coder(self.sources, table, n_jobs)
        return {(b, columns): coder.read(self.blocks[b].source, columns) for b, columns in self.reads}

    def grow(
        self, table: Table, n_jobs: int | None = None, raws: dict[str, RawCodes] | None = None
    ) -> tuple[Layout, dict[tuple[int, tuple[str, ...]], Codes]]:
        """The layout with a table's new symbols and combinations appended, and the coded table.

        `raws`: columns of the table coded before, to which those coded now are added.
        """
        coder = Coder(self.sources, table, n_jobs, raws)
        coder.grow((self.blocks[b].source, columns) for b, columns in self.reads)
        grown = replace(self, sources=tuple(coder.sources))
        return grown, {(b, columns): coder.read(self.blocks[b].source, columns) for b, columns in self.reads}

    def stack(
        self,
        codes: Mapping[tuple[int, tuple[str, ...]], Codes] | None,
        table: Table,
        order: NDArray[np.signedinteger[Any]] | None,
        target_scale: float,
        n_jobs: int | None = None,
    ) -> Rows:
        """What the kernels read, rows in `order`; y and weight are left empty, and codes where they are None."""
        compiled = self.compiled
        reads = [] if codes is None else [self.reads[place] for place in compiled.reads]
        matrix = gather(
            [] if codes is None else [codes[read] for read in reads],
            starts=[self.offsets[block] for block, _ in reads],
            strides=[self.blocks[block].rank for block, _ in reads],
            n_rows=len(table),
            order=order,
            n_jobs=n_jobs,
        )
        x = np.empty((len(matrix), len(compiled.numerics)))
        for j, place in enumerate(compiled.numerics):
            numeric = self.numerics[place]
            column = numeric.standardise(numeric.raw(table))
            x[:, j] = column if order is None else column[order]
        offset = self._fixed_part(table) / target_scale
        empty = np.empty(0)
        return Rows(matrix, x, empty, empty, offset if order is None or not len(offset) else offset[order])

    def _fixed_part(self, table: Table) -> Floats:
        """The terms that learn nothing (n,), in units of the target; empty where there are none."""
        total = np.empty(0)
        for term in self.terms:
            if term.factors:
                continue
            value = np.full(len(table), term.constant)
            if term.numeric is not None:
                value = value * self.numerics[term.numeric].raw(table)
            total = value if not len(total) else total + value
        return total
