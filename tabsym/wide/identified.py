"""Identified coefficients: means of terms are in the intercept, those of slopes by category in their common slope.

Rows tell of a term and the intercept only their sum. Without a penalty any share of it is an optimum, and a gradient
method ends at one that its path decides. Moved means change no prediction of a category that training had, and an
unknown one, which adds 0, then stands for the mean.

The mean is over training rows. Where a ridge holds the entries back (Newton's method, a number or estimated) it is
over categories, as it is the one that the penalty sets to 0 at the optimum: the prior mean of an unknown category.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.layout import Layout, Term
from tabsym.wide.model import WideModel
from tabsym.wide.plan import show
from tabsym.wide.slopes import MULTINOMIAL
from tabsym.wide.sources import Flag
from tabsym.wide.start import with_state

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mean:
    """A block whose mean is told by no row, and the term that takes it up.

    Attributes
    ----------
    block : int
    home : int or None
        The block of one number that takes up the mean; None where terms of the block cancel it, as ``b[x] - b[z]``.
    times : float
        What the home moves by for a mean of 1.
    """

    block: int
    home: int | None
    times: float


def means_of(layout: Layout) -> list[Mean]:
    """The blocks whose mean can be moved."""
    readers: dict[int, list[Term]] = {}
    for term in layout.learned:
        for factor in term.factors:
            readers.setdefault(factor.block, []).append(term)
    scalars = [term for term in layout.learned if layout.is_scalar(term) and layout.stands_alone(term)]
    homes = {_multiplied_by(layout, term): term for term in scalars}
    found = []
    for place, block in enumerate(layout.blocks):
        terms = readers.get(place, [])
        if block.source is None or block.rank > 1 or not terms or any(len(term.factors) > 1 for term in terms):
            continue
        numerics = {_multiplied_by(layout, term) for term in terms}
        if len(numerics) > 1:
            continue
        total, home = sum(term.constant for term in terms), homes.get(numerics.pop())
        if home is not None:
            found.append(Mean(place, home.factors[0].block, total / home.constant))
        elif total == 0.0:
            found.append(Mean(place, None, 0.0))
    return found


def _multiplied_by(layout: Layout, term: Term) -> tuple[str, ...]:
    """What a term's coefficient is multiplied by in a row, beside a constant."""
    return () if term.numeric is None else tuple(sorted(map(show, layout.numerics[term.numeric].nodes)))


def shares_of_means(model: WideModel, *, by_category: NDArray[np.bool_]) -> dict[int, Floats]:
    """The weights (entries of the block,), of sum 1, of the mean of each block of `means_of`.

    `by_category` (blocks,): whether all entries of a block count alike. A block of no rows has no mean.
    """
    found = {}
    for mean in means_of(model.layout):
        if _is_missing_now_and_then(model, mean.block):
            continue
        own = model.layout.entries(mean.block)
        shares = np.ones(own.stop - own.start) if by_category[mean.block] else model.weights[own]
        total = shares.sum()
        if total > 0.0:
            found[mean.block] = shares / total
    return found


def _is_missing_now_and_then(model: WideModel, block: int) -> bool:
    """Whether a block is the flag of a number that some training rows have: those rows select no entry of it."""
    layout = model.layout
    source = layout.sources[layout.blocks[block].source or 0]
    if not isinstance(source, Flag):
        return False
    return any(
        moments.weight > 0.0
        for numeric, moments in zip(layout.numerics, model.numerics, strict=True)
        if source.column in numeric.columns
    )


def move_means(layout: Layout, theta: Floats, shares: dict[int, Floats], kept: Collection[int] = ()) -> Floats:
    """Parameters (entries, K) with the means of blocks moved to their homes; linear in `theta`.

    `kept`: blocks about their mean whose homes do not take it up. For deviations: of random effects the mean is 0 by
    their prior, and the intercept is the population's, as certain as mixed models say.
    """
    moved = theta.copy()
    for mean in means_of(layout):
        if mean.block not in shares:
            continue
        own = layout.entries(mean.block)
        level = shares[mean.block] @ theta[own]
        moved[own] -= level
        if mean.home is not None and mean.block not in kept:
            moved[layout.entries(mean.home)] += mean.times * level
    return moved


def identify(model: WideModel, shares: dict[int, Floats]) -> WideModel:
    """The model with the means of its terms in the intercept, in training's units as in the user's.

    With several classes coefficients also sum to 0 over the classes, as the softmax is the same for any common shift.
    """
    k, units, layout = model.n_outputs, model.units, model.layout
    state = model.state.copy()
    for column in {0, model.columns.shown}:
        theta = units.to_user(layout, state[:, column].reshape(-1, k))
        theta = move_means(layout, theta, shares)
        if model.loss.code == MULTINOMIAL:
            additive = _additive_entries(layout)
            theta[additive] -= theta[additive].mean(axis=1, keepdims=True)
        state[:, column] = units.to_training(layout, theta).ravel()
    return with_state(model, state, model.n_steps)


def _additive_entries(layout: Layout) -> NDArray[np.bool_]:
    """The entries (entries,) of blocks that no term multiplies by another block."""
    additive = np.ones(layout.n_entries, dtype=np.bool_)
    for term in layout.learned:
        if len(term.factors) > 1:
            for factor in term.factors:
                additive[layout.entries(factor.block)] = False
    return additive
