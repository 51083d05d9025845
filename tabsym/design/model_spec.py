"""The model specification: blocks of coefficients, numeric factors and terms, all on the original scale.

A `ModelSpec` is built from the columns of a training table and a sum of products (`plan`), then extended by each table:
the coefficients of new categories are appended to their block, and the order within a block never changes. The
standardization for training is in `units`.

`ModelSpec.compile` makes the program that the kernels run: indices of coefficients, and the products of them. Terms
that are a category's coefficient ("plain"), a numeric column times a scalar ("slopes") or a scalar alone have loops of
their own, because additive models consist mostly of these. Every other term is a product of slots.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import RawCodes, encode_columns
from tabsym.design.formula import ColumnRef, Node, columns_read, evaluate, show
from tabsym.design.sources import Bins, CategoricalSource, Coder, Crossing, Flag, Source
from tabsym.frame import Column, Table

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
        first, *factors = (evaluate(node, numbers) for node in self.nodes)
        values = np.asarray(first, dtype=np.float64)
        for factor in factors:
            values = values * factor
        wrong = ~np.isfinite(values)
        if not self.missing_ok and wrong.any():
            row = int(np.argmax(wrong))
            read = ", ".join(f"{name} = {numbers[name][row]:g}" for name in self.columns)
            raise ValueError(
                f"{self.label} in the formula has no finite value in row {row} ({read}); fill in or drop such rows."
            )
        return values


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
class Mean:
    """A block whose mean is not identified, and the scalar term that it is moved to.

    Attributes
    ----------
    block : int
    moved_to : int or None
        The scalar block that the mean is moved to; None where terms of the block cancel it, as ``b[x] - b[z]``.
    times : float
        The change of that block for a mean of 1.
    """

    block: int
    moved_to: int | None
    times: float


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
        return index if isinstance(source, Flag) or (isinstance(source, CategoricalSource) and source.closed) else None

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
        counts: dict[int, dict[int, int]] = {}
        for term in self.terms:
            for factor in term.factors:
                block_counts = counts.setdefault(factor.block, {})
                block_counts[factor.component] = block_counts.get(factor.component, 0) + 1
        return counts

    def stands_alone(self, term: Term) -> bool:
        """Whether a term is a single coefficient factor that no other term uses."""
        return len(term.factors) == 1 and self.uses[term.factors[0].block][term.factors[0].component] == 1

    @cached_property
    def intercept(self) -> Term | None:
        """The intercept: a scalar term that no other term uses."""
        for term in self.fitted_terms:
            if term.numeric is None and self.is_scalar(term) and self.stands_alone(term):
                return term
        return None

    @cached_property
    def centering_terms(self) -> dict[int, Term]:
        """For each term whose numeric factor can be centred, by index, the term that compensates for the centring.

        For a slope the intercept; for slopes by category the main effect of the same category.
        """
        by_source: dict[tuple[int | None, tuple[str, ...]], Term] = {}
        for term in self.fitted_terms:
            block = self.blocks[term.factors[0].block]
            if term.numeric is None and self.stands_alone(term) and block.rank == 1:
                by_source[block.source, term.factors[0].columns] = term
        main_effects: dict[int, Term] = {}
        for index, term in enumerate(self.fitted_terms):
            if term.numeric is None or any(self.blocks[factor.block].rank > 1 for factor in term.factors):
                continue
            categories = [factor for factor in term.factors if self.blocks[factor.block].source is not None]
            if not categories:
                main_effect = self.intercept
            elif len(categories) == 1:
                main_effect = by_source.get((self.blocks[categories[0].block].source, categories[0].columns))
            else:
                main_effect = None
            if main_effect is not None:
                main_effects[index] = main_effect
        return main_effects

    @property
    def centering_blocks(self) -> set[int]:
        """The blocks of terms that compensate for centring."""
        return {term.factors[0].block for term in self.centering_terms.values()}

    @cached_property
    def means(self) -> list[Mean]:
        """The blocks whose mean is not identified."""
        terms_of_block: dict[int, list[Term]] = {}
        scalar_of: dict[tuple[str, ...], Term] = {}
        for term in self.fitted_terms:
            for factor in term.factors:
                terms_of_block.setdefault(factor.block, []).append(term)
            if self.is_scalar(term) and self.stands_alone(term):
                scalar_of[self._multiplied_by(term)] = term
        means = []
        for index, block in enumerate(self.blocks):
            terms = terms_of_block.get(index, [])
            if self.within(index) is not None:  # its mean is that of the one category's rows
                continue
            if block.source is None or block.rank > 1 or not terms or any(len(term.factors) > 1 for term in terms):
                continue
            numerics = {self._multiplied_by(term) for term in terms}
            if len(numerics) > 1:
                continue
            total, scalar = sum(term.constant for term in terms), scalar_of.get(numerics.pop())
            if scalar is not None:
                means.append(Mean(index, scalar.factors[0].block, total / scalar.constant))
            elif total == 0.0:
                means.append(Mean(index, None, 0.0))
        return means

    def _multiplied_by(self, term: Term) -> tuple[str, ...]:
        """The numeric factors of a term, apart from its constant, as a comparable key."""
        return () if term.numeric is None else tuple(sorted(map(show, self.numerics[term.numeric].nodes)))

    @cached_property
    def number_columns(self) -> tuple[str, ...]:
        """Names of the columns whose numeric values are used: in factors, for bins, and for missing-value flags."""
        names: list[str] = []
        for numeric in self.numerics:
            names += numeric.columns
        names += [source.column for source in self.sources if isinstance(source, (Bins, Flag))]
        return tuple(dict.fromkeys(names))

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
        reads: dict[Read, None] = {}
        for term in self.terms:
            for factor in term.factors:
                if self.blocks[factor.block].source is not None:
                    reads[factor.read] = None
        return list(reads)

    def without(self, blocks: Collection[int]) -> ModelSpec:
        """The spec without some blocks that only their own terms use, and without these terms."""
        if not blocks:
            return self
        retained: list[Block] = []
        indices: dict[int, int] = {}
        for index, block in enumerate(self.blocks):
            if index not in blocks:
                indices[index] = len(retained)
                retained.append(block)
        terms = []
        for term in self.terms:
            if all(factor.block in indices for factor in term.factors):
                factors = [replace(factor, block=indices[factor.block]) for factor in term.factors]
                terms.append(replace(term, factors=tuple(factors)))
        return replace(self, blocks=tuple(retained), terms=tuple(terms))

    @cached_property
    def _compiled(self) -> dict[tuple[bytes, frozenset[int]], Compiled]:
        """Cache of compiled programs by their constants."""
        return {}

    def compile(self, constants: Sequence[float] | Floats, averaged: frozenset[int] = frozenset()) -> Compiled:
        """The compiled program for the kernels, with these constants of the terms that have coefficients.

        `averaged`: blocks of main effects with a value for unknown categories.
        """
        key = np.asarray(constants, dtype=np.float64).tobytes(), averaged
        known = self._compiled.get(key)
        if known is not None:
            return known
        if len(self._compiled) >= MAX_PROGRAMS:
            self._compiled.clear()
        compiled = self._compiled[key] = compile_program(self, constants, averaged)
        return compiled

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
        column_codes = {} if column_codes is None else column_codes
        new: dict[str, Column] = {}
        for source in self.sources:
            if isinstance(source, CategoricalSource):
                new |= {name: table[name] for name in source.columns if name not in column_codes}
        column_codes.update(zip(new, encode_columns(list(new.values()), n_jobs), strict=True))
        return Coder(self.sources, column_codes, self.numbers(table), copies)

    def grow(self, coder: Coder) -> ModelSpec:
        """The spec with the new categories and combinations of a table appended.

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
        return grown

    def _source(self, read: Read) -> int:
        source = self.blocks[read.block].source
        assert source is not None, "a scalar has no codes"
        return source


Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """A coded table: codes (n, reads), x (n, numerics), y (n,); weight (n,) and offset (n * K,), or empty."""

    codes: NDArray[np.int32]
    x: Floats
    y: Floats
    weight: Floats
    offset: Floats

    @property
    def shares(self) -> Floats | None:
        """The weights for numpy functions: None where they are all equal or all zero."""
        return self.weight if len(self.weight) and self.weight.any() else None

    def take(self, indices: NDArray[np.integer], n_outputs: int) -> Rows:
        """Some of the rows."""
        offset = self.offset.reshape(-1, n_outputs)[indices].ravel() if len(self.offset) else self.offset
        weight = self.weight[indices] if len(self.weight) else self.weight
        return Rows(self.codes[indices], self.x[indices], self.y[indices], weight, offset)


class Program(NamedTuple):
    """Compiled design for the kernels: code columns 0..n_plain-1 are terms, slot s is a factor of a product."""

    n_plain: int
    slopes: Ints  # indices of the coefficients that multiply x[:, j], j < len(slopes)
    scalars: Ints  # indices of coefficients that are terms
    starts: Ints  # (terms + 1,): first slot of each product
    constants: Floats  # (terms,)
    numeric: Ints  # (terms,): column of x in the product, -1 for none
    columns: Ints  # (slots,): code column that indexes the coefficient, -1 where the index is fixed
    coefs: Ints  # (slots,): the fixed index, or the increment of the code
    fixed: Ints  # indices of coefficients that every row uses
    is_fixed: NDArray[np.bool_]  # (coefficients,)
    twins: Ints  # (pairs, 2): slots that can index the same coefficient, the later one first


class Work(NamedTuple):
    """Workspace arrays of the training kernels."""

    slope: Floats  # (K,): derivative of a row's loss by its linear predictor
    coef_of: Ints  # (slots,)
    gradient_of: Floats  # (slots,)
    row_of: Ints  # the updates of a row: the row of the state,
    move_gradient_of: Floats  # its gradient,
    penalized: Floats  # and 1 where penalties apply, else 0
    gradient: Floats  # (E * K,), zeros between batches; this and the next three are empty for batches of one row
    hits: Ints  # (E,), zeros between batches
    last_row: Ints  # (E,), -1 between batches
    touched: Ints  # (E,)

    @classmethod
    def make(cls, program: Program, n_outputs: int, *, batches: bool) -> Work:
        """Allocate the arrays for one training run."""
        n_slots, n_coefs = len(program.columns), len(program.is_fixed) if batches else 0
        max_moves = (program.n_plain + len(program.slopes) + len(program.scalars) + n_slots) * n_outputs
        return cls(
            slope=np.empty(n_outputs),
            coef_of=np.empty(n_slots, np.int64),
            gradient_of=np.empty(n_slots),
            row_of=np.empty(max_moves, np.int64),
            move_gradient_of=np.empty(max_moves),
            penalized=np.empty(max_moves),
            gradient=np.zeros(n_coefs * n_outputs),
            hits=np.zeros(n_coefs, np.int64),
            last_row=np.full(n_coefs, -1, np.int64),
            touched=np.empty(n_coefs, np.int64),
        )


@dataclass(frozen=True)
class Compiled:
    """A program, with the code columns and the numeric columns in the order in which it uses them."""

    program: Program
    reads: list[Read]
    numerics: list[int]


def compile_program(spec: ModelSpec, constants: Sequence[float] | Floats, averaged: Collection[int] = ()) -> Compiled:
    """Compile the terms that have coefficients, with other constants.

    `averaged`: blocks with a value for unknown categories, which plain terms lack.
    """
    is_fixed = np.zeros(spec.n_coefs, dtype=bool)
    reads: dict[Read, int] = {}  # the code columns and the numeric columns, with their position in the program
    numerics: dict[int, int] = {}
    slopes, scalars = [], []
    products: list[tuple[float, Term]] = []
    for constant, term in zip(constants, spec.fitted_terms, strict=True):
        for factor in term.factors:
            if spec.blocks[factor.block].source is None:
                is_fixed[spec.starts[factor.block]] = True
        block, is_alone = term.factors[0].block, spec.stands_alone(term) and constant == 1.0
        is_scalar = spec.blocks[block].source is None
        if is_alone and not is_scalar and term.numeric is None and block not in averaged:
            reads[term.factors[0].read] = len(reads)
        elif is_alone and is_scalar and term.numeric is not None and term.numeric not in numerics:
            numerics[term.numeric] = len(numerics)
            slopes.append(spec.starts[block])
        elif is_alone and is_scalar:
            scalars.append(spec.starts[block])
        else:
            products.append((float(constant), term))
    n_plain = len(reads)
    starts, numeric = [0], []
    columns: list[int] = []
    coefs, twins = [], []
    slots_of: dict[tuple[int, int], list[int]] = {}  # of each component of a block
    for _, term in products:
        numeric.append(-1 if term.numeric is None else numerics.setdefault(term.numeric, len(numerics)))
        for factor in term.factors:
            before = slots_of.setdefault((factor.block, factor.component), [])
            for earlier in before:
                twins.append((len(columns), earlier))
            before.append(len(columns))
            is_scalar = spec.blocks[factor.block].source is None
            columns.append(-1 if is_scalar else reads.setdefault(factor.read, len(reads)))
            coefs.append(spec.starts[factor.block] if is_scalar else factor.component)
        starts.append(len(columns))
    program = Program(
        n_plain=n_plain,
        slopes=np.array(slopes, dtype=np.int64),
        scalars=np.array(scalars, dtype=np.int64),
        starts=np.array(starts, dtype=np.int64),
        constants=np.array([constant for constant, _ in products], dtype=np.float64),
        numeric=np.array(numeric, dtype=np.int64),
        columns=np.array(columns, dtype=np.int64),
        coefs=np.array(coefs, dtype=np.int64),
        fixed=np.flatnonzero(is_fixed).astype(np.int64),
        is_fixed=is_fixed,
        twins=np.array(twins, dtype=np.int64).reshape(-1, 2),
    )
    return Compiled(program, list(reads), list(numerics))
