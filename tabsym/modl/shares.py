"""What modalities of two classes cost in a garbage group of a given class share, and what groups beside it gain.

exp(-cost) of a group is the integral of the likelihood over its class share. With the
garbage's share held fixed, a modality in the garbage has a cost of its own, and
each other group gains what it takes from there. Those groups follow one another in the order of class
shares (their costs are concave in the class counts), each with some modalities of its run: at each
share of the group those that are cheaper in it, with the price of a modality that is not in the garbage.
The best runs come from dynamic programming over the modalities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from tabsym.modl import kernels_garbage as kernels
from tabsym.modl.units import by_share

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

BOUND_CELLS = 48, 96
"""Cells of the shares of groups, of all and of where nearly all rows are: time for nats of the gap."""


class _Runs(NamedTuple):
    """The work of a dynamic program over the units `who` (n,), cut only at `ends` (m + 1,)."""

    who: Places
    ends: Places
    reward: Floats
    at_left: Floats
    at_right: Floats
    gains: Floats
    best: Floats


class ByShare:
    """Modalities of two classes in the order of the share of the second; equal ones are one that counts as often.

    Parameters
    ----------
    counts : (U, 2)
    most_ends : int or None
        Runs end at so many places at most; None: anywhere, which bounds need.
    cells : (int, int)
        Cells of the shares of groups: of all, and of where nearly all rows are.
    """

    def __init__(self, counts: Floats, most_ends: int | None = None, cells: tuple[int, int] = BOUND_CELLS) -> None:
        distinct, same, times = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
        order = by_share(distinct, 1)
        self.counts, self.times = np.ascontiguousarray(distinct[order]), times[order].astype(np.float64)
        self.place = np.argsort(order)[same.ravel()]  # of each unit
        rows, second = self.counts.sum(axis=1), self.counts[:, 1]
        share = second / rows
        self.own = -xlogy(second, share) - xlog1py(self.counts[:, 0], -share)  # the least cost of each
        self.most_ends = most_ends
        self.edges = _edges_of_cells(share, rows * self.times, *cells)
        self.work = 0.0

    def costs(self, share: float) -> Floats:
        """What each costs in a group of this share."""
        return _costs(self.counts, share)

    def gained(self, cost: Floats, price: float, most: int) -> Floats:
        """The most that 2 .. `most` groups or fewer gain over a garbage with these costs, then any number of groups."""
        runs = self._runs(cost, price, most, fewer=True)
        return np.zeros(most) if runs is None else np.append(runs.best[2:, -1], runs.best[0, -1])

    def groups(self, cost: Floats, price: float, most: int) -> list[Places]:
        """For 2 .. `most` groups, as far as there are: the best group of each unit (U,), 0 for the garbage."""
        runs = self._runs(cost, price, most, fewer=False)
        if runs is None:
            return []
        return [self._labels(runs, k)[self.place] for k in range(2, min(most, len(runs.ends) - 1) + 1)]

    def _runs(self, cost: Floats, price: float, most: int, *, fewer: bool) -> _Runs | None:
        reward = cost - price
        who = np.flatnonzero(reward > self.own)  # nothing is gained with the others, whatever their group's share
        if len(who) == 0:
            return None
        shape = len(self.edges) - 1, len(who) + 1
        at_left, at_right = np.empty(shape), np.empty(shape)
        kernels.gains_in_cells(reward[who], self.counts[who], self.times[who], self.edges, at_left, at_right)
        ends = np.arange(len(who) + 1)
        if self.most_ends is not None and len(ends) > self.most_ends:
            ends = np.unique(np.linspace(0, len(who), self.most_ends).astype(np.int64))
            at_left, at_right = np.ascontiguousarray(at_left[:, ends]), np.ascontiguousarray(at_right[:, ends])
        n = len(ends)
        gains, best = np.zeros((n, n)), np.zeros((most + 1, n))
        kernels.gains_of_groups(at_left, at_right, self.edges, fewer, np.empty(n), np.empty(n), gains, best)
        self.work += len(at_left) * n * (n - 1) / 2
        return _Runs(who, ends, reward[who], at_left, at_right, gains, best)

    def _labels(self, runs: _Runs, k: int) -> Places:
        """The group of each distinct unit, 0 for the garbage, in the best k runs."""
        labels = np.empty(len(self.counts), dtype=np.int64)
        kernels.label_runs(
            k, runs.who, runs.ends, runs.reward, self.counts, self.edges, runs.at_left, runs.best, runs.gains, labels
        )  # fmt: skip
        return labels


def _costs(counts: Floats, share: float) -> Floats:
    return np.asarray(-counts @ np.log([1.0 - share, share]))


def shares_along(angles: Floats) -> Floats:
    """Shares that estimates from as many rows tell apart equally well, along angles from 0 to pi / 2."""
    return np.asarray(np.sin(angles) ** 2)


def _edges_of_cells(share: Floats, rows: Floats, n_coarse: int, n_fine: int) -> Floats:
    """Where cells of the shares of groups end, finer where nearly all rows are."""
    angles, place = np.arcsin(np.sqrt(share)), np.cumsum(rows) / rows.sum()
    low, high = angles[np.minimum(np.searchsorted(place, [0.02, 0.98]), len(angles) - 1)]
    spread = 2.0 / np.sqrt(rows.sum())  # four standard errors of the share of all
    fine = np.linspace(max(0.0, low - spread), min(np.pi / 2, high + spread), n_fine + 1)
    edges = np.unique(shares_along(np.concatenate([np.linspace(0.0, np.pi / 2, n_coarse + 1), fine])))
    inside = edges[(edges > 1e-12) & (edges < 1.0 - 1e-12)]  # none so near 0 or 1 that its cell's middle is there
    return np.concatenate([[0.0], inside, [1.0]])
