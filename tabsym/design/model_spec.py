"""The model specification: blocks of coefficients, numeric factors and terms, all on the original scale.

A `ModelSpec` is built from the columns of a training table and a sum of products (`plan`), then extended by each table:
the coefficients of new categories are appended to their block, and the order within a block never changes. The
standardization for training is in `units`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import RawCodes
from tabsym.design.formula import ColumnRef, Node
from tabsym.design.polynomial import columns_read, evaluate
from tabsym.design.program import Compiled, CompiledTerm, Slot, compile_program
from tabsym.design.sources import Bins, Coder, Crossing, Flag, Source, Symbols
from tabsym.frame import Table

Floats = NDArray[np.float64]
Codes = NDArray[np.signedinteger[Any]]
Numbers = Mapping[str, Floats]

MAX_COEFS = np.iinfo(np.int32).max

MAX_PROGRAMS = 4
"""Compiled programs that a spec caches: those on the training and on the original scale, and the two before."""


@dataclass(frozen=True)
class Block:
    """A block of coefficients: `rank` for each code of the source with index `source`; a scalar where that is None.

    Attributes
    ----------
    start : float
        Initial value on the training scale: 1 for factors of products, else 0.
    neutral_mean : bool
        Whether an unknown category gets the mean of the block (inside a product) instead of 0.
    ordered : bool
        Whether a first-order random walk relates neighbouring coefficients, except a first one for missing values.
    monotone : int
        1 or -1 where what the block adds must not fall, or not rise, with its column; else 0.
    fixed : bool
        Whether its coefficients are given by the user.
    """

    name: str
    source: int | None
    columns: tuple[str, ...]
    rank: int = 1
    start: float = 0.0
    neutral_mean: bool = False
    ordered: bool = False
    monotone: int = 0
    fixed: bool = False


@dataclass(frozen=True)
class Numeric:
    """A numeric factor: the product of `nodes`.

    `missing_ok`: whether a missing value is replaced by the mean (a flag block marks it) instead of raising an error.
    """

    label: str
    nodes: tuple[Node, ...]
    missing_ok: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the factor uses."""
        return tuple(dict.fromkeys(ref.name for node in self.nodes for ref in columns_read(node)))

    def values(self, numbers: Numbers) -> Floats:
        """Values (n,) of the factor, missing as NaN; `numbers`: the numeric columns (n,) that it uses."""
        if self.missing_ok and isinstance(self.nodes[0], ColumnRef):  # the column of a slope is its only node
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
    """Key of a code column: a block, and the columns whose categories index its coefficients in this position."""

    block: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Factor:
    """A coefficient factor of a term: a component of a block, and the columns whose categories index it here."""

    block: int
    columns: tuple[str, ...]
    component: int = 0

    @property
    def read(self) -> Read:
        return Read(self.block, self.columns)


@dataclass(frozen=True)
class Term:
    """``constant * numeric * product of factors``, with indices into the spec."""

    constant: float
    numeric: int | None
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class ModelSpec:
    """The model specification, as formulaic's `ModelSpec`: code sources, blocks of coefficients, numerics, terms."""

    sources: tuple[Source, ...]
    blocks: tuple[Block, ...]
    numerics: tuple[Numeric, ...]
    terms: tuple[Term, ...]

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}  # cached properties are recomputed

    @cached_property
    def sizes(self) -> list[int]:
        """Number of coefficients of each block."""
        return [1 if b.source is None else len(self.sources[b.source]) * b.rank for b in self.blocks]

    @cached_property
    def starts(self) -> list[int]:
        """Where each block begins in the coefficient vector, and the total number of coefficients."""
        return [0, *np.cumsum(self.sizes).tolist()]

    @property
    def n_coefs(self) -> int:
        return int(self.starts[-1])

    def coefs(self, block: int) -> slice:
        """The slice of a block in the coefficient vector."""
        return slice(self.starts[block], self.starts[block + 1])

    @cached_property
    def fitted_terms(self) -> list[Term]:
        """The terms that have coefficients."""
        return [term for term in self.terms if term.factors]

    @property
    def offset_terms(self) -> list[Term]:
        """The terms without coefficients, which act as an offset."""
        return [term for term in self.terms if not term.factors]

    def within(self, block: int) -> int | None:
        """The source of the one category that an interaction is within: rows of others have no coefficient of it."""
        index = self.blocks[block].source
        if index is None or not isinstance(source := self.sources[index], Crossing):
            return None
        while isinstance(source, Crossing):
            index = source.left
            source = self.sources[index]
        return index if isinstance(source, Flag) or (isinstance(source, Symbols) and source.closed) else None

    @property
    def n_terms(self) -> int:
        """Number of terms with coefficients, not counting intercepts."""
        return sum(1 for term in self.fitted_terms if term.numeric is not None or not self.is_scalar(term))

    def is_scalar(self, term: Term) -> bool:
        """Whether all coefficient factors of a term are scalars."""
        return all(self.blocks[f.block].source is None for f in term.factors)

    @cached_property
    def uses(self) -> dict[int, dict[int, int]]:
        """Number of factors that use each component of a block, by block and component."""
        found: dict[int, dict[int, int]] = {}
        for factor in (factor for term in self.terms for factor in term.factors):
            own = found.setdefault(factor.block, {})
            own[factor.component] = own.get(factor.component, 0) + 1
        return found

    def stands_alone(self, term: Term) -> bool:
        """Whether a term is a single coefficient factor that no other term uses."""
        return len(term.factors) == 1 and self.uses[term.factors[0].block][term.factors[0].component] == 1

    @cached_property
    def intercept(self) -> Term | None:
        """The intercept: a scalar term that no other term uses."""
        found = (t for t in self.fitted_terms if t.numeric is None and self.is_scalar(t) and self.stands_alone(t))
        return next(found, None)

    @cached_property
    def centering_terms(self) -> dict[int, Term]:
        """For each term whose numeric factor can be centred, by index, the term that compensates for the centring.

        For a slope the intercept; for slopes by category the main effect of the same category.
        """
        plain = {
            term.factors[0].read: term
            for term in self.fitted_terms
            if term.numeric is None and self.stands_alone(term) and self.blocks[term.factors[0].block].rank == 1
        }
        by_source = {(self.blocks[read.block].source, read.columns): term for read, term in plain.items()}
        found: dict[int, Term] = {}
        for index, term in enumerate(self.fitted_terms):
            if term.numeric is None or any(self.blocks[factor.block].rank > 1 for factor in term.factors):
                continue
            categories = [factor for factor in term.factors if self.blocks[factor.block].source is not None]
            if not categories:
                home = self.intercept
            elif len(categories) == 1:
                home = by_source.get((self.blocks[categories[0].block].source, categories[0].columns))
            else:
                home = None
            if home is not None:
                found[index] = home
        return found

    @cached_property
    def number_columns(self) -> tuple[str, ...]:
        """Names of the columns whose numeric values are used: in factors, for bins, and for missing-value flags."""
        found = [name for numeric in self.numerics for name in numeric.columns]
        found += [source.column for source in self.sources if isinstance(source, (Bins, Flag))]
        return tuple(dict.fromkeys(found))

    def numbers(self, table: Table) -> dict[str, Floats]:
        """The columns (n,) of a table whose numeric values are used."""
        return {name: table[name].values for name in self.number_columns}

    @property
    def is_additive(self) -> bool:
        """Whether every term has at most one coefficient factor: the predictor is then linear in the coefficients."""
        return all(len(term.factors) <= 1 for term in self.terms)

    @property
    def is_plain(self) -> bool:
        """Whether every term is a main effect, interaction, slope or scalar, whose coefficients no other term uses."""
        return all(
            self.stands_alone(term) and (term.numeric is None or self.is_scalar(term)) for term in self.fitted_terms
        )

    @cached_property
    def reads(self) -> list[Read]:
        """The distinct keys of code columns over all terms."""
        found = [f.read for term in self.terms for f in term.factors if self.blocks[f.block].source is not None]
        return list(dict.fromkeys(found))

    def without(self, blocks: Collection[int]) -> ModelSpec:
        """The spec without some blocks that only their own terms use, and without these terms."""
        kept = [index for index in range(len(self.blocks)) if index not in blocks]
        indices = {index: number for number, index in enumerate(kept)}
        terms = [
            replace(term, factors=tuple(replace(factor, block=indices[factor.block]) for factor in term.factors))
            for term in self.terms
            if all(factor.block in indices for factor in term.factors)
        ]
        return replace(self, blocks=tuple(self.blocks[index] for index in kept), terms=tuple(terms))

    @cached_property
    def _compiled(self) -> dict[tuple[bytes, frozenset[int]], Compiled]:
        """Cache of compiled programs by their constants."""
        return {}

    def compile(self, constants: Sequence[float] | Floats, averaged: frozenset[int] = frozenset()) -> Compiled:
        """The compiled program for the kernels, with these constants of the terms that have coefficients.

        `averaged`: blocks of main effects with a value for unknown categories.
        """
        key = np.asarray(constants, dtype=np.float64).tobytes(), averaged
        compiled = self._compiled.get(key)
        if compiled is None:
            if len(self._compiled) >= MAX_PROGRAMS:
                self._compiled.clear()
            compiled = self._compiled[key] = self._compile(constants, averaged)
        return compiled

    def _compile(self, constants: Sequence[float] | Floats, averaged: frozenset[int]) -> Compiled:
        indices = {read: index for index, read in enumerate(self.reads)}

        def slot(factor: Factor) -> Slot:
            return Slot(factor.block, self.starts[factor.block], indices.get(factor.read), factor.component)

        products = [
            CompiledTerm(float(constant), term.numeric, tuple(slot(factor) for factor in term.factors))
            for constant, term in zip(constants, self.fitted_terms, strict=True)
        ]
        return compile_program(products, self.n_coefs, averaged)

    def code(self, coder: Coder) -> dict[Read, Codes]:
        """Code columns by key; UNSEEN for categories without a coefficient."""
        return {read: coder.read(self._source(read), read.columns) for read in self.reads}

    def coder(
        self,
        table: Table,
        n_jobs: int | None = None,
        column_codes: dict[str, RawCodes] | None = None,
        copies: NDArray[np.int64] | None = None,
    ) -> Coder:
        """The `Coder` of a table; `column_codes`: cache of factorized columns, to which new ones are added."""
        return Coder.of_table(self.sources, table, self.numbers(table), n_jobs, column_codes, copies)

    def grow(self, coder: Coder) -> tuple[ModelSpec, dict[Read, Codes]]:
        """The spec with the new categories and combinations of a table appended, and the coded table.

        Raises
        ------
        ValueError
            If there are more coefficients than 32-bit codes can index.
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
