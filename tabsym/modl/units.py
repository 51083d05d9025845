"""Categories as the searches see them: rare ones caught together, proportional ones joined, in an order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.criterion import most_granularity

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Units:
    """What is grouped: modalities, or sets of them that no optimum tells apart.

    Attributes
    ----------
    counts : (U, J)
    weights : (U,)
        Modalities in each unit, as the prior counts them (those below the granularity are one).
    labels : (M,)
        The unit of each modality.
    n_modalities : int
        As the prior counts them.
    granularity : int
    """

    counts: Floats
    weights: Floats
    labels: Places
    n_modalities: int
    granularity: int = 0

    def __len__(self) -> int:
        return len(self.counts)

    def joined(self, labels: Places) -> Units:
        """Units joined by `labels` (U,)."""
        n = int(labels.max()) + 1
        return Units(
            sum_by(labels, self.counts, n),
            np.bincount(labels, self.weights, minlength=n).astype(np.float64),
            labels[self.labels],
            self.n_modalities,
            self.granularity,
        )


def units_by_granularity(counts: Floats) -> list[Units]:
    """Khiops' granularities, coarse to fine: modalities rarer than ceil(N / 2**G) are one; without repetitions."""
    sizes = counts.sum(axis=1)
    total = float(sizes.sum())
    found: list[Units] = []
    for granularity in range(1, most_granularity(total) + 1):
        rare = sizes < math.ceil(total / 2**granularity - 1e-9)
        n = len(sizes) if not rare.any() else int((~rare).sum()) + 1
        if n < 2 or (found and found[-1].n_modalities == n):
            continue
        labels = np.where(rare, n - 1, np.cumsum(~rare) - 1)
        found.append(Units(sum_by(labels, counts, n), np.ones(n), labels, n, granularity))
    return found


def join_proportional(units: Units) -> Units:
    """Join units with equal class shares.

    The cost of a part is concave along every direction, so moving shares of one direction between
    two groups is best at an end: all in one.
    """
    counts = units.counts
    if not (counts == np.floor(counts)).all() or len(counts) < 2:
        return units
    divisor = np.gcd.reduce(counts.astype(np.int64), axis=1)
    reduced = np.ascontiguousarray(counts.astype(np.int64) // divisor[:, None])
    if reduced.shape[1] == 2 and reduced.max() < 2**31:  # two numbers as one sort much faster than two
        keys = reduced[:, 0] * (reduced.max() + 1) + reduced[:, 1]
    else:
        keys = reduced.view([("", np.int64)] * reduced.shape[1]).ravel()
    _, labels = np.unique(keys, return_inverse=True)
    return units.joined(labels.ravel())


def without_gaps(labels: Places) -> Places:
    """The labels (n,) numbered anew, in order, without those that nothing has."""
    present = np.bincount(labels) > 0
    return labels if present.all() else (np.cumsum(present) - 1)[labels]


def sum_by(labels: Places, counts: Floats, n: int) -> Floats:
    """Sums of the rows of `counts` with each label (n, J)."""
    out = np.empty((n, counts.shape[1]))
    for j in range(counts.shape[1]):
        out[:, j] = np.bincount(labels, counts[:, j], minlength=n)
    return out


def by_share(counts: Floats, of: int) -> Places:
    """Units in the order of their share of one class."""
    return np.argsort(counts[:, of] / counts.sum(axis=1), kind="stable")


def by_main_axis(counts: Floats) -> Places:
    """Units along the main axis of their class shares (the first of correspondence analysis)."""
    sizes, classes = counts.sum(axis=1), counts.sum(axis=0)
    present = classes > 0
    shares = counts[:, present] / sizes[:, None]
    deviation = (shares - classes[present] / sizes.sum()) / np.sqrt(classes[present] / sizes.sum())
    spread = (deviation * sizes[:, None]).T @ deviation
    return np.argsort(deviation @ np.linalg.eigh(spread)[1][:, -1], kind="stable")
