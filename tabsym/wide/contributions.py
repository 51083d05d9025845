"""What a score is made of: a number for each row and term, in the user's units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.table import Table
from tabsym.wide.layout import Factor, Layout, Term
from tabsym.wide.model import WideModel

Floats = NDArray[np.float64]


def contributions(model: WideModel, table: Table, n_jobs: int | None = None) -> dict[str, Floats]:
    """The contribution (n, K) of every term, by name: together, and with an offset, they are the linear predictor.

    A slope's is times the number less its mean, where the rest is in the intercept, or in a term by the same category.
    Terms that are switched off, and contribute nothing, are left out.
    """
    layout = model.layout
    off = set() if model.certainty is None else set(np.flatnonzero(model.certainty.variances == 0.0).tolist())
    places = {id(term): place for place, term in enumerate(layout.learned)}
    numbers = layout.numbers(table)
    codes = layout.code(model.coder(table, n_jobs))
    found: dict[str, Floats] = {}

    def add(term: Term, value: Floats) -> None:
        name = term_name(layout, term)
        found[name] = found[name] + value if name in found else value

    for term in layout.terms:
        if any(factor.block in off for factor in term.factors):
            continue
        value: Floats = np.full((len(table), model.n_outputs), term.constant)
        for factor in term.factors:
            value = value * _selected(model, factor, codes.get(factor.read), len(table))
        if term.numeric is None:
            add(term, value)
            continue
        mean = model.numerics[term.numeric].mean
        own = np.broadcast_to(layout.numerics[term.numeric].values(numbers), (len(table),))
        own = np.where(np.isnan(own), mean, own)[:, None]
        home = layout.homes.get(places.get(id(term), -1))
        if home is None:
            add(term, value * own)
        else:
            add(term, value * (own - mean))
            add(home, value * mean)
    return found


def variances_of_columns(model: WideModel) -> dict[str, float] | None:
    """The variance over training rows that the terms of each column add; of an interaction each has an equal part.

    None for formulas that multiply or share coefficients.
    """
    layout = model.layout
    found: dict[str, float] = {}
    for term in layout.learned:
        block = layout.blocks[term.factors[0].block]
        if len(term.factors) > 1 or not layout.stands_alone(term) or block.rank > 1:
            return None
        own = layout.entries(term.factors[0].block)
        theta = term.constant * model.theta[own]
        if term.numeric is None:
            columns: tuple[str, ...] = block.columns
            total = float(model.weights[own].sum())
            if block.source is None or total == 0.0:
                continue
            shares = model.weights[own] / total
            size = float(np.mean(shares @ np.square(theta - shares @ theta)))
        elif block.source is None:
            moments = model.numerics[term.numeric]
            columns = layout.numerics[term.numeric].columns
            size = float(np.mean(np.square(theta))) * moments.squares / max(moments.weight, 1.0)
        else:  # slopes by category
            moments, shares = (
                model.numerics[term.numeric],
                model.weights[own] / max(float(model.weights[own].sum()), 1.0),
            )
            columns = (*block.columns, *layout.numerics[term.numeric].columns)
            size = float(np.mean(shares @ np.square(theta))) * moments.squares / max(moments.weight, 1.0)
        for name in columns:
            found[name] = found.get(name, 0.0) + size / len(columns)
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
