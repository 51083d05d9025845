"""Which blocks, numeric factors and terms a model has: planned from columns or from a formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import Alphabet, Cross
from tabsym.table import Column, Kind, Table
from tabsym.wide.layout import Block, Factor, LaidTerm, Layout, Numeric
from tabsym.wide.polynomial import Term
from tabsym.wide.sources import Bins, Crossing, Flag, Source, Symbols
from tabsym.wide.syntax import Binary, BlockRef, Call, ColumnRef, Dot, Formula, FormulaError, Node, Number

Floats = NDArray[np.float64]

INTERCEPT = "(intercept)"
VECTOR_SPREAD = 0.1
"""Latent vectors start at normal numbers of this standard deviation: equal starts would stay equal."""


def plan_additive(
    symbolic: Sequence[Column],
    numeric: Sequence[Column],
    *,
    interactions: int | Sequence[tuple[str, ...]],
    standardize: bool,
    weights: Floats | None,
    bins: Sequence[Bins] = (),
) -> Layout:
    """An intercept, an entry per symbol, crosses of symbolic columns, a slope or intervals per numeric column.

    Parameters
    ----------
    symbolic, numeric : columns of the training table
    interactions : int or sequence of tuples of column names
        The highest order of crosses: 1 for none, 2 for all pairs, 3 for all triples too; or the crosses themselves.
    standardize : bool
        Whether numeric columns are centred and scaled.
    weights : (n,) or None
        Row weights of the training table.
    bins : sequence of Bins
        Numeric columns that are cut into intervals, which are symbols from then on; the others get a slope.
    """
    plan = _Plan()
    for column in symbolic:
        plan.add_block(column.name, (column.name,))
    for one in bins:
        plan.add_bins(one)
    cut_names = [one.column for one in bins]
    numeric = [column for column in numeric if column.name not in cut_names]
    for column in numeric:
        if np.isnan(column.values).any():
            plan.add_flag(column.name)
    for members in _crosses([*(column.name for column in symbolic), *cut_names], interactions):
        plan.add_block(":".join(members), members)
    for column in numeric:
        factor = Numeric(column.name, (ColumnRef(column.name),), missing_ok=True)
        plan.add_slope(column.name, _scaled(factor, column.values, weights) if standardize else factor)
    plan.add_scalar(INTERCEPT)
    return plan.layout()


def _crosses(names: list[str], interactions: int | Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    if not isinstance(interactions, int):
        return interactions
    orders = range(2, min(interactions, len(names)) + 1)
    return [members for order in orders for members in combinations(names, order)]


def plan_formula(
    formula: Formula,
    terms: Sequence[Term],
    table: Table,
    *,
    standardize: bool,
    weights: Floats | None,
    init: float | Mapping[str, float] | None,
) -> Layout:
    """The layout of a formula's terms over a training table.

    Raises
    ------
    ValueError
        `init` names a block that the formula has not.
    """
    plan = _Plan()
    groups = _groups(terms)
    has_constant = any(not t.numerics and len(t.blocks) == 1 and not t.blocks[0].columns for t in terms)
    for term in terms:
        number = None
        if term.numerics:
            factor = Numeric(" * ".join(show(node) for node in term.numerics), term.numerics)
            is_slope = len(term.blocks) == 1 and not term.blocks[0].columns
            if standardize and term.blocks:
                factor = _scaled(factor, factor.raw(table), weights, centre=is_slope and has_constant)
            number = plan.add_numeric(factor)
        factors = tuple(plan.factor(ref, groups) for ref in term.blocks)
        plan.terms.append(LaidTerm(term.constant, number, factors))
    return _with_starts(plan.layout(), init)


def _with_starts(layout: Layout, init: float | Mapping[str, float] | None) -> Layout:
    """Factors of products start at 1, all else at 0, or where `init` says; unseen symbols likewise."""
    inside: set[int] = set()
    averaged: set[int] = set()
    for term in layout.terms:
        for factor in term.factors:
            if len(term.factors) > 1:
                inside.add(factor.block)
            if len(term.factors) > 1 or term.numeric is not None:
                averaged.add(factor.block)
    names = {block.name for block in layout.blocks}
    given = init if isinstance(init, Mapping) else {}
    for name in given:
        if name not in names:
            raise ValueError(f"init names block {name!r}, which the formula has not; it has {sorted(names)}.")
    blocks = []
    for place, block in enumerate(layout.blocks):
        start = 1.0 if place in inside else 0.0
        if init is not None and not isinstance(init, Mapping):
            start = float(init)
        start = float(given.get(block.name, start))
        blocks.append(replace(block, start=start, neutral_mean=place in averaged))
    return replace(layout, blocks=tuple(blocks))


@dataclass
class _Plan:
    """A layout in the making."""

    sources: list[Source] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    numerics: list[Numeric] = field(default_factory=list)
    terms: list[LaidTerm] = field(default_factory=list)
    _places: dict[object, int] = field(default_factory=dict)

    def layout(self) -> Layout:
        return Layout(tuple(self.sources), tuple(self.blocks), tuple(self.numerics), tuple(self.terms))

    def add_block(self, name: str, columns: tuple[str, ...]) -> None:
        source = self.source(tuple((column,) for column in columns))
        self.blocks.append(Block(name, source, columns))
        self.terms.append(LaidTerm(1.0, None, (Factor(len(self.blocks) - 1, columns),)))

    def add_bins(self, bins: Bins) -> None:
        self.sources.append(bins)
        self._places[((bins.column,),)] = len(self.sources) - 1
        self.add_block(bins.column, (bins.column,))

    def add_flag(self, column: str) -> None:
        self.sources.append(Flag(column))
        self.blocks.append(Block(f"{column} is missing", len(self.sources) - 1, (column,)))
        self.terms.append(LaidTerm(1.0, None, (Factor(len(self.blocks) - 1, (column,)),)))

    def add_slope(self, name: str, factor: Numeric) -> None:
        self.blocks.append(Block(name, None, ()))
        self.terms.append(LaidTerm(1.0, self.add_numeric(factor), (Factor(len(self.blocks) - 1, ()),)))

    def add_scalar(self, name: str) -> None:
        self.blocks.append(Block(name, None, ()))
        self.terms.append(LaidTerm(1.0, None, (Factor(len(self.blocks) - 1, ()),)))

    def add_numeric(self, factor: Numeric) -> int:
        self.numerics.append(factor)
        return len(self.numerics) - 1

    def factor(self, ref: BlockRef, groups: Mapping[str, tuple[tuple[str, ...], ...]]) -> Factor:
        key = ("block", ref.block)
        if key not in self._places:
            source = self.source(groups[ref.block]) if ref.columns else None
            self.blocks.append(Block(ref.block, source, ref.columns, ref.rank))
            self._places[key] = len(self.blocks) - 1
        return Factor(self._places[key], ref.columns, ref.part)

    def source(self, groups: tuple[tuple[str, ...], ...]) -> int:
        """The place of the source over these positions, each a group of columns with one alphabet."""
        if groups not in self._places:
            if len(groups) == 1:
                made: Source = Symbols(groups[0], Alphabet(groups[0][0], np.empty(0, dtype=object)))
            else:
                left, right = self.source(groups[:-1]), self.source(groups[-1:])
                made = Crossing(left, right, Cross(np.empty(0, dtype=np.int64)))
            self.sources.append(made)
            self._places[groups] = len(self.sources) - 1
        return self._places[groups]


def _groups(terms: Sequence[Term]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """For each block and position in its brackets, the columns read there."""
    reads: dict[str, list[tuple[str, ...]]] = {}
    for term in terms:
        for ref in term.blocks:
            reads.setdefault(ref.block, []).append(ref.columns)
    return {name: tuple(tuple(dict.fromkeys(place)) for place in zip(*columns)) for name, columns in reads.items()}


def used_columns(formula: Formula, table: Table) -> list[str]:
    """Columns that a formula reads, in order of first appearance.

    Raises
    ------
    FormulaError
        A column that is not in the table, or text used as a number.
    """
    found: list[str] = []
    for ref in _refs(formula.root):
        columns = ref.columns if isinstance(ref, BlockRef) else (ref.name,)
        for name in columns:
            if name not in table.names:
                shown = ", ".join(repr(n) for n in table.names[:10]) + (", ..." if len(table.names) > 10 else "")
                raise FormulaError(f"There is no column {name!r} in the table; it has {shown}.", formula.text, ref.at)
            if isinstance(ref, ColumnRef) and table[name].kind is Kind.SYMBOLIC:
                raise FormulaError(
                    f"Column {name!r} holds symbols; write w[{name}] to learn a number for each.", formula.text, ref.at
                )
            found.append(name)
    return list(dict.fromkeys(found))


def _refs(node: Node) -> list[BlockRef | ColumnRef]:
    match node:
        case BlockRef() | ColumnRef():
            return [node]
        case Number():
            return []
        case Call():
            return _refs(node.argument)
        case Dot() | Binary():
            return _refs(node.left) + _refs(node.right)


def show(node: Node) -> str:
    """A numeric factor as text."""
    match node:
        case Number():
            return f"{node.value:g}"
        case ColumnRef():
            return node.name
        case Call():
            return f"{node.function}({show(node.argument)})"
        case Binary():
            return f"({show(node.left)} {node.operator} {show(node.right)})"
    raise AssertionError(f"{node} is not numeric")


def _scaled(factor: Numeric, values: Floats, weights: Floats | None, *, centre: bool = True) -> Numeric:
    """The factor with mean 0 and spread 1 over the training rows; only root mean square 1 without `centre`."""
    present = ~np.isnan(values)
    if not present.any():
        return factor
    values = values[present]
    share = None if weights is None else weights[present]
    if share is not None and not share.any():
        share = None
    mean = float(np.average(values, weights=share)) if centre else 0.0
    spread = float(np.sqrt(np.average((values - mean) ** 2, weights=share)))
    scale = spread if spread > 1e-12 * max(1.0, abs(mean)) else 1.0
    return replace(factor, mean=mean, scale=scale)
