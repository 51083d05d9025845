"""Design building: the blocks, numeric factors and terms of a model, from columns or from a formula."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from tabsym.categories import Categories, Cross
from tabsym.design.formula import (
    BlockRef,
    ColumnRef,
    Formula,
    FormulaError,
    Monomial,
    columns_read,
    expand,
    show,
    walk,
)
from tabsym.design.model_spec import Block, Factor, ModelSpec, Numeric, Term
from tabsym.design.sources import Bins, CategoricalSource, CountEffect, Crossing, Flag, Source
from tabsym.frame import Column, Kind, Table
from tabsym.frame.storage import object_array

INTERCEPT = "(intercept)"
RARITY = "count of "
LEVELS = 4, 16
"""An interaction of smooth numbers has a coefficient for each combination of these numbers of bins too, with a variance
of its own: a coarse surface where rows are few (benchmarks/interactions/README.md)."""


@dataclass(frozen=True)
class Within:
    """One category of a column, None for missing; as the first member of an interaction: that of its rows only.

    Of a numeric column it is missing.
    """

    column: str
    category: Any

    def __str__(self) -> str:
        return f"{self.column} is missing" if self.category is None else f"{self.column}={self.category}"


Members = tuple[Any, ...]
"""Columns of an interaction; the first may be a `Within`."""

Levels = Mapping[str, Mapping[int, Bins]]
"""Bins of a numeric column by their number, for `LEVELS`."""


def plan_additive(
    categorical: Sequence[Column],
    numeric: Sequence[Column],
    *,
    interactions: int | Sequence[Members],
    bins: Sequence[Bins] = (),
    fine: Sequence[Bins] = (),
    levels: Levels | None = None,
    count_effect: bool = False,
    main_only: Collection[str] = (),
) -> ModelSpec:
    """The spec of an additive model: intercept, main effects, interactions, and a slope or bins per numeric column.

    Parameters
    ----------
    categorical, numeric : columns of the training table
    interactions : int or sequence of tuples of column names
        The highest order of interactions: 1 for none, 2 for all pairs, 3 for all triples too; or the interactions
        themselves, of which the first member may be a `Within`.
    bins : sequence of Bins
        Bins of numeric columns, which are treated as categories; the other numeric columns get a slope.
    fine : sequence of Bins
        Finer bins of numeric columns, for their smooth main effects; interactions use `bins`.
    levels : mapping of column -> number of bins -> Bins
        Coarser bins of numeric columns: an interaction has a block for each number of bins too.
    count_effect : bool
        Whether categorical terms and interactions get a smooth effect of the number of training rows (count effect).
    main_only : collection of str
        Columns that are in no interaction.

    Raises
    ------
    ValueError
        If two blocks would have the same name.
    """
    plan = _SpecBuilder(levels=levels or {}, numbers=frozenset(column.name for column in numeric))
    for column in categorical:
        plan.add_block(column.name, (column.name,))
    smooth = [binned.column for binned in fine]
    for binned in bins:
        plan.add_bins(binned, by_itself=binned.column not in smooth)
    for binned in fine:
        plan.sources.append(binned)
        plan.add(binned.column, len(plan.sources) - 1, (binned.column,), ordered=True)
    cut_names = [binned.column for binned in bins]
    numeric = [column for column in numeric if column.name not in {*cut_names, *smooth}]
    for column in numeric:
        if np.isnan(column.values).any():
            plan.sources.append(Flag(column.name))
            plan.add(f"{column.name} is missing", len(plan.sources) - 1, (column.name,))
    crossable = [name for name in (*(column.name for column in categorical), *cut_names) if name not in main_only]
    if isinstance(interactions, int):
        orders = range(2, min(interactions, len(crossable)) + 1)
        interactions = [members for order in orders for members in combinations(crossable, order)]
    for members in interactions:
        name = ":".join(map(str, members))
        plan.add_block(name, members)
        plan.add_levels(name, members)
    if count_effect:
        plan.add_rarities()
    for column in numeric:
        slope = Numeric(column.name, (ColumnRef(column.name),), missing_ok=True)
        plan.add(column.name, None, (), numeric=plan.add_numeric(slope))
    plan.add(INTERCEPT, None, ())
    _refuse_clashes(plan.blocks)
    return plan.spec()


def _refuse_clashes(blocks: Sequence[Block]) -> None:
    """Check that block names, by which coefficients are reported, are unique."""
    known: set[str] = set()
    for block in blocks:
        if block.name in known:
            raise ValueError(
                f"Two terms would be called {block.name!r}: that of a column, and one that the model adds (an "
                "intercept, an interaction or an indicator of missing numbers); rename the column."
            )
        known.add(block.name)


def plan_formula(
    terms: Sequence[Monomial],
    bins: Sequence[Bins] = (),
    fine: Sequence[Bins] = (),
    *,
    levels: Levels | None = None,
    count_effect: bool = False,
    intercept: bool = False,
) -> ModelSpec:
    """The spec of a formula's terms.

    `bins`, `fine`: bins of numeric columns in brackets; the fine ones, with a random-walk prior, are used where the
    formula is a sum. `levels`: coarser bins, by their number, for surfaces and curves by category. `count_effect`:
    whether terms of such a sum get a count effect, a smooth effect of their number of training rows. `intercept`:
    whether fine bins and count effects get an intercept where the formula has none. Their level is not penalized: they
    contain one, which would be lost with a term that is dropped, and not be unique together with other terms.
    """
    plan = _SpecBuilder(levels=levels or {})
    groups = _groups(terms)
    adds = is_sum(terms)
    for term in terms:
        for ref in term.blocks:
            if ref.smooth and (term.numerics or not adds):
                raise ValueError(
                    f"{ref.block} is smooth by itself in a formula that is a sum of terms, not where terms are "
                    f"multiplied; write f[{', '.join(ref.columns)}] there, which has a coefficient for each bin."
                )
            if len(ref.smooth) == 1 < len(ref.columns) and any(binned.column == ref.columns[0] for binned in bins):
                group, x = ref.columns
                raise ValueError(
                    f"{ref.block} is a curve for each category, and column {group!r} holds numbers, which would be "
                    f"binned; write v[{x}]*{group} for a curve of {x} times {group}, or te({x}, {group}) for a surface."
                )
    fine_of = {binned.column: binned for binned in fine} if adds else {}
    plan.bins = {binned.column: binned for binned in bins}
    plan.fine = {ref.block: fine_of[ref.columns[0]] for ref in _alone(terms, groups) if ref.columns[0] in fine_of}
    for term in terms:
        number = None
        if term.numerics:
            number = plan.add_numeric(Numeric(" * ".join(show(node) for node in term.numerics), term.numerics))
        factors = tuple(plan.factor(ref, groups) for ref in term.blocks)
        plan.terms.append(Term(term.constant, number, factors))
        for ref in term.blocks:
            if ref.smooth and len(ref.columns) > 1:
                plan.add_levels(ref.block, ref.columns)
    n_blocks = len(plan.blocks)
    if count_effect and adds:  # the number of rows per combination of bins is not informative about categories
        plan.add_rarities({ref.block for term in terms for ref in term.blocks if ref.smooth})
    spec = plan.spec()
    if intercept and (plan.fine or len(plan.blocks) > n_blocks) and spec.intercept is None:
        plan.add(INTERCEPT, None, ())
        spec = plan.spec()
    return _with_starts(spec)


def is_sum(terms: Sequence[Monomial]) -> bool:
    """Whether each term has at most one coefficient factor, of rank 1, and no two terms share a block."""
    reads = [ref for term in terms for ref in term.blocks]
    names = [ref.block for ref in reads]
    return (
        all(len(term.blocks) <= 1 for term in terms)
        and len(set(names)) == len(names)
        and all(ref.rank == 1 for ref in reads)
    )


def _alone(terms: Sequence[Monomial], groups: Mapping[str, tuple[tuple[str, ...], ...]]) -> list[BlockRef]:
    """Coefficient factors over one column that are main effects."""
    return [
        term.blocks[0]
        for term in terms
        if len(term.blocks) == 1
        and not term.numerics
        and groups[term.blocks[0].block] == (term.blocks[0].columns,)
        and len(term.blocks[0].columns) == 1
    ]


def _with_starts(spec: ModelSpec) -> ModelSpec:
    """Set initial values (1 for factors of products, else 0), and the mean for unknown categories in products."""
    inside: set[int] = set()
    averaged: set[int] = set()
    for term in spec.terms:
        for factor in term.factors:
            if len(term.factors) > 1:
                inside.add(factor.block)
            if len(term.factors) > 1 or term.numeric is not None:
                averaged.add(factor.block)
    blocks = [
        replace(block, start=float(index in inside), neutral_mean=index in averaged)
        for index, block in enumerate(spec.blocks)
    ]
    return replace(spec, blocks=tuple(blocks))


def at_level(name: str, n_bins: int) -> str:
    """The name of an interaction's block for a number of bins."""
    return f"{name} ({n_bins} bins)"


@dataclass
class _SpecBuilder:
    """Builder of a `ModelSpec`."""

    sources: list[Source] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    numerics: list[Numeric] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    bins: Mapping[str, Bins] = field(default_factory=dict)
    """Bins of a formula's numeric columns in brackets, by column."""
    fine: Mapping[str, Bins] = field(default_factory=dict)
    """Fine bins of those that are main effects, by block name."""
    levels: Levels = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()
    """The numeric columns of a model without a formula."""
    _indices: dict[object, int] = field(default_factory=dict)

    def spec(self) -> ModelSpec:
        return ModelSpec(tuple(self.sources), tuple(self.blocks), tuple(self.numerics), tuple(self.terms))

    def add(
        self,
        name: str,
        source: int | None,
        columns: tuple[str, ...],
        *,
        numeric: int | None = None,
        ordered: bool = False,
    ) -> None:
        """Add a block, and the term that is one of its coefficients, times a numeric factor if that is given."""
        self.blocks.append(Block(name, source, columns, ordered=ordered))
        self.terms.append(Term(1.0, numeric, (Factor(len(self.blocks) - 1, columns),)))

    def add_block(self, name: str, members: Members, n_bins: int = 0) -> None:
        """Add the term of a column, or of the combinations of several."""
        groups, columns = [], []
        for member in members:
            is_within = isinstance(member, Within)
            groups.append(member if is_within else (member,))
            columns.append(member.column if is_within else member)
        self.add(name, self.source(tuple(groups), n_bins), tuple(columns))

    def add_levels(self, name: str, members: Members) -> None:
        """Add a block of the combinations for each number of bins that one of the columns has."""
        for n_bins in LEVELS:
            if any(n_bins in self.levels.get(member, ()) for member in members if not isinstance(member, Within)):
                self.add_block(at_level(name, n_bins), members, n_bins)

    def add_bins(self, bins: Bins, *, by_itself: bool) -> None:
        """Add bins for interactions, and with `by_itself` also their main effect."""
        self.sources.append(bins)
        self._indices[((bins.column,),)] = len(self.sources) - 1
        if by_itself:
            self.add_block(bins.column, (bins.column,))

    def add_rarities(self, smooth: Collection[str] = ()) -> None:
        """Add a count effect for every categorical main effect and interaction, but for those within one category.

        Blocks named in `smooth` get none.
        """
        spec = self.spec()
        of_slopes = {factor.block for term in self.terms if term.numeric is not None for factor in term.factors}
        # the sources for `LEVELS`, whose combinations have many rows
        of_levels = {
            index for key, index in self._indices.items() if isinstance(key, tuple) and isinstance(key[-1], int)
        }
        for index, block in enumerate(spec.blocks):
            if block.source is None or not isinstance(self.sources[block.source], (CategoricalSource, Crossing)):
                continue
            if (
                index in of_slopes
                or block.source in of_levels
                or block.name in smooth
                or spec.within(index) is not None
            ):
                continue
            nothing = np.empty(0, dtype=np.int64)
            self.sources.append(CountEffect(block.source, block.columns, nothing, nothing))
            self.add(f"{RARITY}{block.name}", len(self.sources) - 1, block.columns, ordered=True)

    def add_numeric(self, factor: Numeric) -> int:
        self.numerics.append(factor)
        return len(self.numerics) - 1

    def factor(self, ref: BlockRef, groups: Mapping[str, tuple[tuple[str, ...], ...]]) -> Factor:
        """The factor of a term; its block is added at the first use."""
        key = ("block", ref.block)
        if key not in self._indices:
            is_smooth = ref.block in self.fine
            if is_smooth:
                self.sources.append(self.fine[ref.block])
                source: int | None = len(self.sources) - 1
            else:
                source = self.source(groups[ref.block]) if ref.columns else None
            self.blocks.append(Block(ref.block, source, ref.columns, ref.rank, ordered=is_smooth))
            self._indices[key] = len(self.blocks) - 1
        return Factor(self._indices[key], ref.columns, ref.component)

    def source(self, groups: tuple[tuple[str, ...] | Within, ...], n_bins: int = 0) -> int:
        """Index of the source over these positions, each a group of columns that share their categories.

        `n_bins`: one of `LEVELS`, for the columns that have such bins; else 0.
        """
        if n_bins:
            names = [name for group in groups if not isinstance(group, Within) for name in group]
            n_bins = n_bins if any(n_bins in self.levels.get(name, ()) for name in names) else 0
        key = (groups, n_bins) if n_bins else groups
        if key not in self._indices:
            if len(groups) > 1:
                left, right = self.source(groups[:-1], n_bins), self.source(groups[-1:], n_bins)
                made: Source = Crossing(left, right, Cross(np.empty(0, dtype=np.int64)))
            elif isinstance(groups[0], Within):
                column, category = groups[0].column, object_array([groups[0].category])
                only = CategoricalSource((column,), Categories(column, category), closed=True)
                made = Flag(column) if column in self.numbers else only
            elif n_bins:
                made = self.levels[groups[0][0]][n_bins]
            elif len(groups[0]) == 1 and groups[0][0] in self.bins:
                made = self.bins[groups[0][0]]
            else:
                made = CategoricalSource(groups[0], Categories(groups[0][0], np.empty(0, dtype=object)))
            self.sources.append(made)
            self._indices[key] = len(self.sources) - 1
        return self._indices[key]


def _groups(terms: Sequence[Monomial]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """For each block and each position in its brackets, the columns used there."""
    reads: dict[str, list[tuple[str, ...]]] = {}
    for term in terms:
        for ref in term.blocks:
            reads.setdefault(ref.block, []).append(ref.columns)
    return {name: tuple(tuple(dict.fromkeys(index)) for index in zip(*columns)) for name, columns in reads.items()}


def used_columns(formula: Formula, table: Table) -> list[str]:
    """Columns that a formula uses, in order of first appearance.

    Raises
    ------
    FormulaError
        If a column is not in the table, or a text column is used as a number.
    """
    used: list[str] = []
    for ref in walk(formula.root):
        if not isinstance(ref, (BlockRef, ColumnRef)):
            continue
        columns = ref.columns if isinstance(ref, BlockRef) else (ref.name,)
        for name in columns:
            if name not in table.names:
                listed = ", ".join(repr(n) for n in table.names[:10]) + (", ..." if len(table.names) > 10 else "")
                raise FormulaError(f"There is no column {name!r} in the table; it has {listed}.", formula.text, ref.at)
            if isinstance(ref, BlockRef) and name in ref.smooth and table[name].kind is not Kind.NUMERIC:
                raise FormulaError(
                    f"{ref.block} is for numbers, and column {name!r} is none; write w[{name}] for a coefficient "
                    f"of each category, and s(x, by={name}) for a curve of each.",
                    formula.text,
                    ref.at,
                )
            if isinstance(ref, ColumnRef) and table[name].kind is Kind.CATEGORICAL:
                raise FormulaError(_of_categories(formula, ref), formula.text, ref.at)
            used.append(name)
    return list(dict.fromkeys(used))


def _of_categories(formula: Formula, ref: ColumnRef) -> str:
    """The message about a column of categories that stands where a number is needed."""
    name, problem = ref.name, f"Column {ref.name!r} is categorical"
    terms = [
        term for term in expand(formula) if ref in [column for node in term.numerics for column in columns_read(node)]
    ]
    multiplied = [block for term in terms for block in term.blocks if block.columns]
    blocks_of_column = [node for node in walk(formula.root) if isinstance(node, BlockRef) and node.columns == (name,)]
    if multiplied and any(name not in block.columns for block in multiplied):  # w[a] * name, (name | a)
        block = next(block for block in multiplied if name not in block.columns)
        columns = (*block.columns, name)
        is_effect = block.block == f"{name} | {':'.join(block.columns)}"
        combined = f"(1 | {':'.join(columns)})" if is_effect else f"w[{', '.join(columns)}]"
        return (
            f"{problem}; write w[{name}] for a coefficient of each category, {combined} for one of each combination "
            f"with {', '.join(map(repr, block.columns))}."
        )
    if blocks_of_column and not all(term.blocks for term in terms):  # g + (1 | g)
        written = (
            f"({blocks_of_column[0].block})"
            if " | " in blocks_of_column[0].block
            else f"{blocks_of_column[0].block}[{name}]"
        )
        return f"{problem}, and {written} has a coefficient of each category; leave {name!r} out as a number."
    return f"{problem}; write w[{name}] for a coefficient of each category."
