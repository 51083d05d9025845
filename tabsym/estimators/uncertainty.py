"""Standard deviations of coefficients as they are shown: in the user's units, about the mean of their term."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.certainty import Certainty, TermCovariance
from tabsym.wide.identified import means_of, move_means
from tabsym.wide.layout import Layout
from tabsym.wide.model import WideModel
from tabsym.wide.newton.joint import Parts, Whole, covariance_of, whole_covariance
from tabsym.wide.newton.pieces import Piece, Prior
from tabsym.wide.newton.turns import Turns
from tabsym.wide.units import Units

Floats = NDArray[np.float64]
Shares = dict[int, Floats]

MOST_NUMBERS = 4_000_000
"""Of the matrix from coefficients of training to those shown."""


def is_mean_by_category(layout: Layout, pieces: Sequence[Piece], turns: Turns) -> NDArray[np.bool_]:
    """Whether the mean of each block (blocks,) is over its categories: where a ridge holds them back."""
    found = np.zeros(len(layout.blocks), dtype=np.bool_)
    for place, piece in enumerate(pieces):
        found[piece.block] = piece.prior is Prior.RIDGE and turns.precision[place] > 0.0
    return found


def is_held_by_category(model: WideModel, variances: Floats) -> NDArray[np.bool_]:
    """The same of a formula's model, by the variances (blocks,) of its blocks, infinite where nothing holds them."""
    return np.isfinite(variances) & np.array([block.source is not None for block in model.layout.blocks])


def jointly(model: WideModel, certainty: Certainty, turns: Turns, dispersion: float, shares: Shares) -> Certainty:
    """The certainty of a model, with covariances of all coefficients together as far as they can be had.

    Parameters
    ----------
    model : WideModel
    certainty : Certainty
        In the user's units, each block by itself.
    turns : Turns
        At the optimum.
    dispersion : float
        In units of training.
    shares : dict of block -> (q,)
        The weights of the means that are in the intercept.
    """
    layout, pieces = model.layout, turns.pieces
    loud = [place for place in range(len(pieces)) if not turns.silent[place]]
    by_category = is_mean_by_category(layout, pieces, turns)
    random = np.flatnonzero(by_category).tolist()
    held = {
        place: shares[pieces[place].block]
        for place in loud
        if pieces[place].block in shares and not by_category[pieces[place].block]
    }
    found: dict[int, TermCovariance] = {}
    n_numbers = layout.n_entries * sum(pieces[place].size for place in loud)
    whole = whole_covariance(turns, loud, held) if loud and n_numbers <= MOST_NUMBERS else None
    sd = certainty.sd.copy()
    if whole is not None:
        found = _of_whole(model, [pieces[place].block for place in loud], whole, shares, random)
    elif loud and model.n_outputs == 1:
        parts = Parts(turns, loud, held)
        if certainty.draws is not None and not parts.is_exact:
            found = _of_draws(layout, certainty.draws, shares, random)
            dispersion = 1.0  # they have it
        else:
            found = _of_parts(model, parts, pieces, shares, sd, dispersion, random)
    scaled = {block: one.times(np.sqrt(dispersion)) for block, one in found.items()}
    for block, one in scaled.items():
        sd[layout.entries(block)] = np.sqrt(np.maximum(one.variances(), 0.0))
    for place in np.flatnonzero(turns.silent):
        sd[layout.entries(pieces[place].block)] = np.nan
        scaled.pop(pieces[place].block, None)
    return replace(certainty, sd=sd, covariances=tuple(scaled.get(block) for block in range(len(layout.blocks))))


def of_formula(model: WideModel, certainty: Certainty, whole: Whole, dispersion: float, shares: Shares) -> Certainty:
    """The certainty of a formula's model, with covariances of all its coefficients together."""
    layout, sd = model.layout, certainty.sd.copy()
    random = np.flatnonzero(is_held_by_category(model, certainty.variances)).tolist()
    found = _of_whole(model, range(len(layout.blocks)), whole, shares, random)
    scaled = [found[block].times(np.sqrt(dispersion)) for block in range(len(layout.blocks))]
    for block, one in enumerate(scaled):
        sd[layout.entries(block)] = np.sqrt(np.maximum(one.variances(), 0.0))
    return replace(certainty, sd=sd, covariances=tuple(scaled))


def _of_whole(
    model: WideModel, blocks: Sequence[int], whole: Whole, shares: Shares, random: Collection[int]
) -> dict[int, TermCovariance]:
    """From the covariance of all coefficients of some blocks in units of training: a linear map."""
    layout = model.layout
    own = [np.arange(layout.entries(block).start, layout.entries(block).stop) for block in blocks]
    entries = np.concatenate(own)
    unit = np.zeros((layout.n_entries, len(entries)))
    unit[entries, np.arange(len(entries))] = 1.0
    nothing = model.units.to_user(layout, np.zeros((layout.n_entries, 1)))
    by = move_means(layout, model.units.to_user(layout, unit) - nothing, shares, random)[entries]
    shown = by @ whole.matrix @ by.T
    found, start = {}, 0
    for block in blocks:
        at = slice(start, start + layout.sizes[block])
        found[block] = covariance_of(np.ascontiguousarray(shown[:, at, at]), whole.untold[at])
        start += layout.sizes[block]
    return found


def _of_draws(layout: Layout, draws: Floats, shares: Shares, random: Collection[int]) -> dict[int, TermCovariance]:
    """From draws (entries, M) of all coefficients about the optimum, in the user's units."""
    shown = move_means(layout, draws, shares, random) / np.sqrt(draws.shape[1])
    found = {}
    for block in range(len(layout.blocks)):
        own = shown[layout.entries(block)]
        found[block] = TermCovariance(np.zeros((len(own), 1)), own[None])
    return found


def _of_parts(
    model: WideModel,
    parts: Parts,
    pieces: Sequence[Piece],
    shares: Shares,
    sd: Floats,
    dispersion: float,
    random: Collection[int],
) -> dict[int, TermCovariance]:
    """Block by block; `sd` (entries, 1) of blocks of one coefficient that take up what others move are set."""
    layout, units = model.layout, model.units
    covariances, variance = parts()
    moved = {term.factors[0].block for term in layout.homes.values()}
    moved |= {mean.home for mean in means_of(layout) if mean.home is not None and mean.block in shares}
    place_of = {piece.block: place for place, piece in enumerate(pieces)}
    found = {}
    for place, covariance in covariances.items():
        block = pieces[place].block
        if block not in moved:
            sized = covariance.times(float(units.sizes[block]))
            found[block] = sized.about_mean(shares[block]) if block in shares else sized
        elif pieces[place].size == 1:
            own = {one: share for one, share in shares.items() if one not in random}
            by = _row_of_home(layout, units, own, block)
            total = variance({place_of[one]: by[one] for one in by if one in place_of})
            sd[layout.entries(block)] = np.sqrt(max(dispersion * total, 0.0))
    return found


def _row_of_home(layout: Layout, units: Units, shares: Shares, home: int) -> dict[int, Floats]:
    """By block, what a coefficient that takes up means and the centring of numbers is made of, in units of training."""
    found: dict[int, Floats] = {home: np.ones(1) * units.sizes[home]}

    def add(block: int, by: Floats) -> None:
        found[block] = found.get(block, 0.0) + by * units.sizes[block]

    def add_centring(of: int, by: Floats) -> None:
        for place, term in layout.homes.items():
            if term.factors[0].block == of:
                slope = layout.learned[place]
                add(slope.factors[0].block, -by * slope.constant * units.means[slope.numeric] / term.constant)

    add_centring(home, np.ones(1))
    for mean in means_of(layout):
        if mean.home == home and mean.block in shares:
            add(mean.block, mean.times * shares[mean.block])
            add_centring(mean.block, mean.times * shares[mean.block])
    return found
