"""Donors: the known categories that replace an unknown one, and how much each combination of them weighs.

A row with several unknown values takes every combination of their donors, by the product of weights. Combinations are
counted through, never listed: a tile of them is worked out from their numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.integer]

MAX_COMBINATIONS = 2500
"""Of donors of one row; where all would be more, each unknown value keeps its heaviest."""
TILE = 1 << 16
"""Combinations at a time."""
MIN_WEIGHT = 1e-16
"""A donor weighs more than this, as a share of the heaviest, or is left out."""

Tile = tuple[Places, list[Places], Floats]
"""Rows (n,), the donor (n,) of each column, below 0 for the row's own category, and weights (n,)."""


@dataclass(frozen=True)
class Donors:
    """Of one column's unknown values: `document` (r,) of each row, below 0 where it was seen; weights (m, donors)."""

    document: Places
    weights: Floats


@dataclass(frozen=True)
class Ranked:
    """Donors of each document by weight, the heaviest first: those of document i from ``starts[i]`` on."""

    starts: Places
    donor: Places
    weight: Floats

    @classmethod
    def of(cls, weights: Floats) -> Ranked:
        kept = weights > MIN_WEIGHT * weights.max(axis=1, keepdims=True, initial=0.0)
        document, donor = np.nonzero(kept)
        weight = weights[kept]
        order = np.lexsort((-weight, document))
        return cls(np.append(0, kept.sum(axis=1).cumsum()), donor[order], weight[order])

    @property
    def sizes(self) -> Places:
        return np.diff(self.starts)


def kept_donors(weights: Floats, most: int | None) -> list[tuple[Places, Floats]]:
    """The donors of each document (m, donors) that are asked about, the heaviest first, and their shares."""
    ranked = Ranked.of(weights)
    out = []
    for start, end in pairwise(ranked.starts):
        one = slice(start, end if most is None else min(end, start + most))
        out.append((ranked.donor[one], ranked.weight[one] / ranked.weight[one].sum()))
    return out


@dataclass(frozen=True)
class Mixture:
    """Combinations of donors for rows with unknown values.

    Attributes
    ----------
    columns : list of (Ranked, document (r,), kept (r,), total (r,))
        Of each row: the document its value goes by, how many of its donors are kept, and what those weigh.
    sizes : (r,)
        Combinations of each row.
    cut : (r,)
        Whether a row has more donors than can be combined, so that some are not kept.
    """

    columns: list[tuple[Ranked, Places, Places, Floats]]
    sizes: Places
    cut: NDArray[np.bool_]

    @classmethod
    def of(cls, donors: list[Donors], max_donors: int | None, *, combined: bool = True) -> Mixture:
        """Combinations of the heaviest donors, all if None; `combined`: at most `MAX_COMBINATIONS` of a row."""
        ranked = [Ranked.of(one.weights) for one in donors]
        sizes = np.stack(
            [
                np.where(one.document < 0, 1, np.append(rank.sizes, 1)[one.document])
                for one, rank in zip(donors, ranked, strict=True)
            ],
            axis=1,
        )
        allowed = sizes if max_donors is None else np.minimum(sizes, max_donors)
        kept = _bounded(allowed) if combined else allowed
        columns = [
            (rank, one.document, kept[:, j], _heaviest(rank, one.document, kept[:, j]))
            for j, (one, rank) in enumerate(zip(donors, ranked, strict=True))
        ]
        return cls(columns, kept.prod(axis=1), np.asarray((kept < allowed).any(axis=1)))

    def tiles(self) -> Iterator[Tile]:
        """Every combination once, rows in order."""
        ends = self.sizes.cumsum()
        for first in range(0, int(ends[-1]) if len(ends) else 0, TILE):
            numbers = np.arange(first, min(first + TILE, int(ends[-1])))
            rows = np.searchsorted(ends, numbers, side="right")
            rest = numbers - (ends - self.sizes)[rows]
            symbols, weights = [], np.ones(len(numbers))
            for ranked, document, kept, total in self.columns:
                rest, digit = np.divmod(rest, kept[rows])
                donor, weight = _picked(ranked, document[rows], digit, total[rows])
                symbols.append(donor)
                weights *= weight
            yield rows, symbols, weights

    def draws(self, n_draws: int, random: np.random.Generator) -> Iterator[Tile]:
        """One donor for each row, column and draw: every combination drawn once, with its share of the draws."""
        step = max(1, TILE // n_draws)
        for first in range(0, len(self.sizes), step):
            rows = np.repeat(np.arange(first, min(first + step, len(self.sizes))), n_draws)
            found: list[Places] = [rows]
            for ranked, document, kept, total in self.columns:
                sums = np.append(0.0, ranked.weight.cumsum())
                start = ranked.starts[document[rows]]
                aim = sums[start] + random.random(len(rows)) * total[rows]
                digit = np.searchsorted(sums, aim, side="right") - 1 - start
                digit = np.clip(digit, 0, kept[rows] - 1)
                found.append(_picked(ranked, document[rows], digit, total[rows])[0])
            drawn, times = np.unique(np.stack(found), axis=1, return_counts=True)
            yield drawn[0], list(drawn[1:]), times / n_draws


def _picked(ranked: Ranked, document: Places, digit: Places, total: Floats) -> tuple[Places, Floats]:
    """Donors by rank, and their weights among those kept; where the value was seen its own, of weight 1."""
    own = document < 0
    at = np.where(own, 0, ranked.starts[document] + digit)
    return np.where(own, -1, ranked.donor[at]), np.where(own, 1.0, ranked.weight[at] / total)


def _heaviest(ranked: Ranked, document: Places, kept: Places) -> Floats:
    """What the kept donors of each row weigh together."""
    sums = np.append(0.0, ranked.weight.cumsum())
    start = ranked.starts[document]
    exact = np.append(np.add.reduceat(ranked.weight, ranked.starts[:-1]), 1.0)[document]
    some = sums[np.minimum(start + kept, len(ranked.weight))] - sums[start]
    return np.where(document < 0, 1.0, np.where(kept == np.append(ranked.sizes, 1)[document], exact, some))


def _bounded(sizes: Places) -> Places:
    """How many donors each value of each row (r, columns) keeps."""
    kept = sizes.copy()
    many = np.flatnonzero(np.prod(sizes.astype(np.float64), axis=1) > MAX_COMBINATIONS)
    several = many[(sizes[many] > 1).sum(axis=1) > 1]
    found, which = np.unique(sizes[several], axis=0, return_inverse=True)
    caps = np.array([_caps(row) for row in found], dtype=sizes.dtype).reshape(found.shape)
    kept[several] = caps[which.ravel()]
    return kept


def _caps(sizes: Places) -> Places:
    """Counts whose product is within bounds: small ones whole, the others alike."""
    out, left = sizes.copy(), float(MAX_COMBINATIONS)
    order = np.argsort(sizes, kind="stable")
    for done, place in enumerate(order):
        out[place] = min(sizes[place], max(1, int(left ** (1 / (len(sizes) - done)) + 1e-9)))
        left /= out[place]
    return out
