"""What a score is made of: a number for each row and term, in the user's units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.table import Table
from tabsym.wide.layout import Factor, Layout, Term
from tabsym.wide.model import WideModel

Floats = NDArray[np.float64]


def contributions(model: WideModel, table: Table, n_jobs: int | None = None) -> dict[str, Floats]:
    """The contribution (n, K) of every term, by name: together, and with an offset, they are the score."""
    layout = model.layout
    numbers = layout.numbers(table)
    codes = layout.code(model.coder(table, n_jobs))
    found: dict[str, Floats] = {}
    for term in layout.terms:
        value: Floats = np.full((len(table), model.n_outputs), term.constant)
        if term.numeric is not None:
            own = np.broadcast_to(layout.numerics[term.numeric].values(numbers), (len(table),))
            value = value * np.where(np.isnan(own), model.numerics[term.numeric].mean, own)[:, None]
        for factor in term.factors:
            value = value * _selected(model, factor, codes.get(factor.read), len(table))
        name = term_name(layout, term)
        found[name] = found[name] + value if name in found else value
    return found


def term_name(layout: Layout, term: Term) -> str:
    """A term as people read it: the name of its block, where that is read once, else its factors."""
    if len(term.factors) == 1 and layout.stands_alone(term) and layout.blocks[term.factors[0].block].rank == 1:
        return layout.blocks[term.factors[0].block].name
    words = [] if term.constant == 1.0 and (term.factors or term.numeric is not None) else [f"{term.constant:g}"]
    for factor in term.factors:
        block = layout.blocks[factor.block]
        component = f" {factor.component + 1}" if block.rank > 1 else ""
        words.append(f"{block.name}{component}[{', '.join(factor.columns) or '1'}]")
    if term.numeric is not None:
        words.append(layout.numerics[term.numeric].label)
    return " * ".join(words)


def _selected(model: WideModel, factor: Factor, codes: NDArray[np.signedinteger] | None, n_rows: int) -> Floats:
    """What a factor is in each row (n, K)."""
    block, own = model.layout.blocks[factor.block], model.layout.entries(factor.block)
    values = model.theta[own].reshape(-1, block.rank, model.n_outputs)[:, factor.component]
    if codes is None:
        return np.broadcast_to(values, (n_rows, model.n_outputs))
    neutral = model.neutral(factor.block)[factor.component]
    if not len(values):
        return np.broadcast_to(neutral, (n_rows, model.n_outputs))
    return np.where((codes >= 0)[:, None], values[codes], neutral)
