"""From a table to what the kernels read: blocks of codes, and numeric factors, all in the user's units.

A layout is planned from the training table's columns and a sum of products
(`plan`), then grown over tables: new categories get new coefficients at the end of
their block, and nothing is renumbered within a block. How its numbers are
scaled for training is the business of `units`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import RawCodes
from tabsym.design.formula import ColumnRef, Node
from tabsym.design.polynomial import columns_read, evaluate
from tabsym.design.program import Compiled, Product, Slot, compile_program
from tabsym.design.sources import Bins, Coder, Flag, Source
from tabsym.table import Table

Floats = NDArray[np.float64]
Codes = NDArray[np.signedinteger[Any]]
Numbers = Mapping[str, Floats]

MAX_COEFS = np.iinfo(np.int32).max

MOST_PROGRAMS = 4
"""Kept by a layout, which models of other units share: those of training and of the user, and what came before."""


@dataclass(frozen=True)
class Block:
    """Parameters: `rank` for each code of the source at `source`; a scalar where that is None.

    Attributes
    ----------
    start : float
        Where a parameter starts, in units of training: factors of products at 1, all else at 0.
    neutral_mean : bool
        Whether an unseen category stands for the mean of the block (inside a product), else for 0.
    ordered : bool
        Whether neighbouring coefficients are alike, but for a first one for missing values.
    """

    name: str
    source: int | None
    columns: tuple[str, ...]
    rank: int = 1
    start: float = 0.0
    neutral_mean: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class Numeric:
    """A numeric factor: the product of `nodes`.

    `missing_ok`: whether a missing value stands for the mean (a flag block tells it apart), or is an error.
    """

    label: str
    nodes: tuple[Node, ...]
    missing_ok: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the factor reads."""
        return tuple(dict.fromkeys(ref.name for node in self.nodes for ref in columns_read(node)))

    def values(self, numbers: Numbers) -> Floats:
        """Values (n,) of the factor, missing as NaN; `numbers`: the columns (n,) that it reads."""
        if self.missing_ok and isinstance(self.nodes[0], ColumnRef):  # a slope's column, the one factor it has
            return numbers[self.nodes[0].name]
        first, *others = (evaluate(node, numbers) for node in self.nodes)
        values = np.asarray(first, dtype=np.float64)
        for other in others:
            values = values * other
        if not self.missing_ok:
            self._refuse_missing(values, {name: numbers[name] for name in self.columns})
        return values

    def _refuse_missing(self, values: Floats, columns: Numbers) -> None:
        wrong = ~np.isfinite(values)
        if not wrong.any():
            return
        row = int(np.argmax(wrong))
        read = ", ".join(f"{name} = {column[row]:g}" for name, column in columns.items())
        raise ValueError(
            f"{self.label} in the formula has no finite value in row {row} ({read}); fill in or drop such rows."
        )


@dataclass(frozen=True)
class Read:
    """What a code column is of: a block, and the columns whose categories select its coefficients in this place."""

    block: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Factor:
    """A learned factor of a term: a component of a block, and the columns that select its coefficient in this place."""

    block: int
    columns: tuple[str, ...]
    component: int = 0

    @property
    def read(self) -> Read:
        return Read(self.block, self.columns)


@dataclass(frozen=True)
class Term:
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
    terms: tuple[Term, ...]

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}  # caches are made again

    @cached_property
    def sizes(self) -> list[int]:
        """Coefficients of each block."""
        return [1 if b.source is None else len(self.sources[b.source]) * b.rank for b in self.blocks]

    @cached_property
    def offsets(self) -> list[int]:
        """The first coefficient of each block, and the number of coefficients."""
        return [0, *np.cumsum(self.sizes).tolist()]

    @property
    def n_coefs(self) -> int:
        return int(self.offsets[-1])

    def coefs(self, block: int) -> slice:
        """Where the coefficients of a block lie."""
        return slice(self.offsets[block], self.offsets[block + 1])

    @cached_property
    def learned(self) -> list[Term]:
        """The terms that learn something."""
        return [term for term in self.terms if term.factors]

    @property
    def fixed(self) -> list[Term]:
        """The terms that are taken as they stand."""
        return [term for term in self.terms if not term.factors]

    @property
    def n_terms(self) -> int:
        """Learned terms of a row's score besides scalars alone."""
        return sum(1 for term in self.learned if term.numeric is not None or not self.is_scalar(term))

    def is_scalar(self, term: Term) -> bool:
        """Whether all learned factors of a term are scalars."""
        return all(self.blocks[f.block].source is None for f in term.factors)

    @cached_property
    def uses(self) -> dict[int, dict[int, int]]:
        """How often each component of a block is read, by block and component."""
        found: dict[int, dict[int, int]] = {}
        for factor in (factor for term in self.terms for factor in term.factors):
            own = found.setdefault(factor.block, {})
            own[factor.component] = own.get(factor.component, 0) + 1
        return found

    def stands_alone(self, term: Term) -> bool:
        """Whether a term is one parameter that no other term reads."""
        return len(term.factors) == 1 and self.uses[term.factors[0].block][term.factors[0].component] == 1

    @cached_property
    def constant(self) -> Term | None:
        """The term of the scalar that stands alone, an intercept."""
        found = (t for t in self.learned if t.numeric is None and self.is_scalar(t) and self.stands_alone(t))
        return next(found, None)

    @cached_property
    def homes(self) -> dict[int, Term]:
        """For the places of learned terms whose numeric factor can be centred, the term that takes up what that moves.

        For slopes the intercept, for a slope by category a number by the same category.
        """
        plain = {
            term.factors[0].read: term
            for term in self.learned
            if term.numeric is None and self.stands_alone(term) and self.blocks[term.factors[0].block].rank == 1
        }
        by_source = {(self.blocks[read.block].source, read.columns): term for read, term in plain.items()}
        found: dict[int, Term] = {}
        for index, term in enumerate(self.learned):
            if term.numeric is None or any(self.blocks[factor.block].rank > 1 for factor in term.factors):
                continue
            categories = [factor for factor in term.factors if self.blocks[factor.block].source is not None]
            if not categories:
                home = self.constant
            elif len(categories) == 1:
                home = by_source.get((self.blocks[categories[0].block].source, categories[0].columns))
            else:
                home = None
            if home is not None:
                found[index] = home
        return found

    @cached_property
    def number_columns(self) -> tuple[str, ...]:
        """The columns that are read as numbers: in factors, as intervals, and for being missing."""
        found = [name for numeric in self.numerics for name in numeric.columns]
        found += [source.column for source in self.sources if isinstance(source, (Bins, Flag))]
        return tuple(dict.fromkeys(found))

    def numbers(self, table: Table) -> dict[str, Floats]:
        """The columns (n,) of a table that are read as numbers."""
        return {name: table[name].values for name in self.number_columns}

    @property
    def is_additive(self) -> bool:
        """Whether every term has at most one learned factor, so that the score is linear in the parameters."""
        return all(len(term.factors) <= 1 for term in self.terms)

    @property
    def is_plain(self) -> bool:
        """Whether every learned term is a number by category, a slope or a scalar that no other term reads."""
        return all(self.stands_alone(term) and (term.numeric is None or self.is_scalar(term)) for term in self.learned)

    @cached_property
    def reads(self) -> list[Read]:
        """The distinct reads of terms: code columns."""
        found = [f.read for term in self.terms for f in term.factors if self.blocks[f.block].source is not None]
        return list(dict.fromkeys(found))

    def without(self, blocks: Collection[int]) -> Layout:
        """The layout without some blocks that stand alone, and their terms."""
        kept = [index for index in range(len(self.blocks)) if index not in blocks]
        indices = {index: number for number, index in enumerate(kept)}
        terms = [
            replace(term, factors=tuple(replace(factor, block=indices[factor.block]) for factor in term.factors))
            for term in self.terms
            if all(factor.block in indices for factor in term.factors)
        ]
        return replace(self, blocks=tuple(self.blocks[index] for index in kept), terms=tuple(terms))

    @cached_property
    def _compiled(self) -> dict[bytes, Compiled]:
        """The last programs, by their constants: models of one layout have few."""
        return {}

    def compile(self, constants: Sequence[float] | Floats) -> Compiled:
        """The program of the kernels, with these constants of the learned terms."""
        key = np.asarray(constants, dtype=np.float64).tobytes()
        compiled = self._compiled.get(key)
        if compiled is None:
            if len(self._compiled) >= MOST_PROGRAMS:
                self._compiled.clear()
            compiled = self._compiled[key] = self._compile(constants)
        return compiled

    def _compile(self, constants: Sequence[float] | Floats) -> Compiled:
        indices = {read: index for index, read in enumerate(self.reads)}

        def slot(factor: Factor) -> Slot:
            return Slot(factor.block, self.offsets[factor.block], indices.get(factor.read), factor.component)

        products = [
            Product(float(constant), term.numeric, tuple(slot(factor) for factor in term.factors))
            for constant, term in zip(constants, self.learned, strict=True)
        ]
        return compile_program(products, self.n_coefs)

    def code(self, coder: Coder) -> dict[Read, Codes]:
        """Code columns by read; UNSEEN for categories without a coefficient."""
        return {read: coder.read(self._source(read), read.columns) for read in self.reads}

    def coder(self, table: Table, n_jobs: int | None = None, raws: dict[str, RawCodes] | None = None) -> Coder:
        """What codes a table; `raws`: columns of the table coded before, to which those coded now are added."""
        return Coder.of_table(self.sources, table, self.numbers(table), n_jobs, raws)

    def grow(self, coder: Coder) -> tuple[Layout, dict[Read, Codes]]:
        """The layout with the new categories and combinations of a table appended, and the coded table.

        Raises
        ------
        ValueError
            More coefficients than codes of four bytes can number.
        """
        coder.grow((self._source(read), read.columns) for read in self.reads)
        grown = replace(self, sources=tuple(coder.sources))
        if grown.n_coefs > MAX_COEFS:
            raise ValueError(
                f"The terms have {grown.n_coefs:,} coefficients together, more than {MAX_COEFS:,}; use fewer "
                "columns or interactions, or a smaller rank."
            )
        return grown, grown.code(coder)

    def _source(self, read: Read) -> int:
        source = self.blocks[read.block].source
        assert source is not None, "a scalar has no codes"
        return source
