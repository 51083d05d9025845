"""The model specification: blocks of coefficients, numeric factors and terms, all on the original scale.

A `ModelSpec` is built from the columns of a training table and a sum of products (`plan`), then extended by each table:
the coefficients of new categories are appended to their block, and the order within a block never changes. The
standardization for training is in `units`.

`ModelSpec.compile` makes the program that the kernels run: indices of coefficients, and the products of them. Terms
that are a category's coefficient ("plain"), a numeric column times a scalar ("slopes") or a scalar alone have loops of
their own, because additive models consist mostly of these. Every other term is a product of slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import RawCodes
from tabsym.design.formula import ColumnRef, Node, columns_read, evaluate
from tabsym.design.sources import Bins, CategoricalSource, Coder, Crossing, Flag, Source
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
        for factor in (factor for term in self.terms for factor in term.factors):
            block_counts = counts.setdefault(factor.block, {})
            block_counts[factor.component] = block_counts.get(factor.component, 0) + 1
        return counts

    def stands_alone(self, term: Term) -> bool:
        """Whether a term is a single coefficient factor that no other term uses."""
        return len(term.factors) == 1 and self.uses[term.factors[0].block][term.factors[0].component] == 1

    @cached_property
    def intercept(self) -> Term | None:
        """The intercept: a scalar term that no other term uses."""
        candidates = (t for t in self.fitted_terms if t.numeric is None and self.is_scalar(t) and self.stands_alone(t))
        return next(candidates, None)

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
    def number_columns(self) -> tuple[str, ...]:
        """Names of the columns whose numeric values are used: in factors, for bins, and for missing-value flags."""
        names = [name for numeric in self.numerics for name in numeric.columns]
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
        keys = [f.read for term in self.terms for f in term.factors if self.blocks[f.block].source is not None]
        return list(dict.fromkeys(keys))

    def without(self, blocks: Collection[int]) -> ModelSpec:
        """The spec without some blocks that only their own terms use, and without these terms."""
        retained = [index for index in range(len(self.blocks)) if index not in blocks]
        indices = {index: number for number, index in enumerate(retained)}
        terms = [
            replace(term, factors=tuple(replace(factor, block=indices[factor.block]) for factor in term.factors))
            for term in self.terms
            if all(factor.block in indices for factor in term.factors)
        ]
        return replace(self, blocks=tuple(self.blocks[index] for index in retained), terms=tuple(terms))

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
        indices = {read: index for index, read in enumerate(self.reads)}

        def slot(factor: Factor) -> Slot:
            return Slot(factor.block, self.starts[factor.block], indices.get(factor.read), factor.component)

        products = [
            CompiledTerm(float(constant), term.numeric, tuple(slot(factor) for factor in term.factors))
            for constant, term in zip(constants, self.fitted_terms, strict=True)
        ]
        compiled = self._compiled[key] = compile_program(products, self.n_coefs, averaged)
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
class Slot:
    """A coefficient factor of a term: coefficient `start` of a scalar, or the one that code column `read` indexes.

    `read` is the index of a code column of the spec, None for a scalar; `block` is the index of the block;
    `component` is the index within a latent vector.
    """

    block: int
    start: int
    read: int | None
    component: int = 0


@dataclass(frozen=True)
class CompiledTerm:
    """A term: constant, index of a numeric column (or None), slots."""

    constant: float
    numeric: int | None
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Compiled:
    """A program, with the order in which it uses the code columns and the numeric columns."""

    program: Program
    reads: list[int]
    numerics: list[int]


def compile_program(products: Sequence[CompiledTerm], n_coefs: int, averaged: Collection[int] = ()) -> Compiled:
    """Compile terms for the kernels; `averaged`: blocks with a value for unknown categories, which plain terms lack."""
    uses = Counter((slot.block, slot.component) for product in products for slot in product.slots)
    plain: list[int] = []
    slopes: list[tuple[int, int]] = []
    scalars: list[int] = []
    general: list[CompiledTerm] = []
    for product in products:
        slot = product.slots[0]
        alone = len(product.slots) == 1 and product.constant == 1.0 and uses[slot.block, slot.component] == 1
        if alone and slot.read is not None and product.numeric is None and slot.block not in averaged:
            plain.append(slot.read)
        elif alone and slot.read is None and product.numeric is not None and product.numeric not in dict(slopes):
            slopes.append((product.numeric, slot.start))
        elif alone and slot.read is None:
            scalars.append(slot.start)
        else:
            general.append(product)
    reads = _indices([*plain, *(slot.read for product in general for slot in product.slots)])
    numerics = _indices([*(numeric for numeric, _ in slopes), *(product.numeric for product in general)])
    fixed = sorted({slot.start for product in products for slot in product.slots if slot.read is None})
    is_fixed = np.zeros(n_coefs, dtype=bool)
    is_fixed[fixed] = True
    slots = [slot for product in general for slot in product.slots]
    program = Program(
        n_plain=len(plain),
        slopes=_ints([coef for _, coef in slopes]),
        scalars=_ints(scalars),
        starts=_ints(np.cumsum([0, *(len(product.slots) for product in general)])),
        constants=np.array([product.constant for product in general], dtype=np.float64),
        numeric=_ints([-1 if p.numeric is None else numerics[p.numeric] for p in general]),
        columns=_ints([-1 if slot.read is None else reads[slot.read] for slot in slots]),
        coefs=_ints([slot.start if slot.read is None else slot.component for slot in slots]),
        fixed=_ints(fixed),
        is_fixed=is_fixed,
        twins=_twins(slots),
    )
    return Compiled(program, list(reads), list(numerics))


def _indices(values: Sequence[int | None]) -> dict[int, int]:
    """Index of each distinct value but None, in order of appearance."""
    return {n: index for index, n in enumerate(dict.fromkeys(n for n in values if n is not None))}


def _twins(slots: Sequence[Slot]) -> Ints:
    """The pairs of slots that use the same component of a block."""
    known: dict[tuple[int, int], list[int]] = {}
    pairs = []
    for index, slot in enumerate(slots):
        before = known.setdefault((slot.block, slot.component), [])
        pairs += [(index, earlier) for earlier in before]
        before.append(index)
    return _ints(pairs).reshape(-1, 2)


def _ints(values: Sequence[Any] | Ints) -> Ints:
    return np.asarray(values, dtype=np.int64)
