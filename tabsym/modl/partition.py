"""Partitions of ordered values or of categories: options of a search, its results, where parts may end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

COARSE_GRID = 11
"""A first look at very many blocks is on the grid of 2**11 quantiles: time for how near it comes."""
TIE = 1e-11
"""Of all rows: boundaries of fractional weights that are as near to a quantile but for so much are equally near."""


@dataclass(frozen=True)
class Given:
    """The user's options for the parts of a column.

    Attributes
    ----------
    splits : tuple or None
        The parts: ascending bounds of a numeric column (-inf parts missing values from the rest), groups of categories
        of another. None: they are searched for.
    specials : tuple of tuples
        Special codes, -inf or None for missing values. The codes of a tuple are a part of their own, behind the others.
    """

    splits: tuple[Any, ...] | None = None
    specials: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class Settings:
    """Options of the search for the partition of a column.

    Attributes
    ----------
    criterion : {"khiops", "page"}
    n_candidates : int
        Columns among which this one is a candidate; enters "khiops" only.
    max_parts : int or None
        Maximal number of parts.
    min_part_count : float
        Minimal number of rows of a part.
    monotonic : bool
        Whether the proportion of the second of two classes, or the mean target, must be monotonic from interval to
        interval.
    direction : {0, 1, -1}
        Of monotonic parts: 1 rising, -1 falling, 0 either.
    given : Given or None
        Constraints hold for the parts that are searched for, not for those given.
    time_limit : float or None
        Seconds. None: the optimum is certified up to 4,096 distinct values, and approached beyond. A number: the
        search goes on, towards a certificate for any number of values and from further starts for groups, and returns
        the best by then.
    random_state : int
        Of the order of moves and of the starts.
    prove : bool
        False: without a bound, and without the searches that only a proof needs, in a fraction of the time; but for
        intervals under `max_parts` (`is_thorough`).
    """

    criterion: str = "khiops"
    n_candidates: int = 1
    max_parts: int | None = None
    min_part_count: float = 1
    monotonic: bool = False
    time_limit: float | None = None
    random_state: int = 0
    prove: bool = True
    direction: int = 0
    given: Given | None = None

    @property
    def is_thorough(self) -> bool:
        """Whether all that a proof needs is searched: searches by price seldom lead to `max_parts` intervals."""
        return self.prove or self.max_parts is not None


@dataclass(frozen=True)
class Partition:
    """Parts of a column's blocks or modalities.

    Attributes
    ----------
    criterion : str
    labels : (B,) int
        The part of each block or modality.
    counts : (I, J)
        Rows of each class in each part.
    cost, null_cost : float
        In nats; of this model, and of one part.
    lower_bound : float
        No model costs less; -inf where nothing is known.
    granularity : int
        Khiops' granularity, 0 under "page".
    garbage : int or None
        The part that is Khiops' garbage group: the modalities that are not worth a name of their own in the model.
    bound_without_garbage : float
        No model without a garbage group costs less; -inf where nothing is known.
    """

    criterion: str
    labels: Indices
    counts: Floats
    cost: float
    null_cost: float
    lower_bound: float
    granularity: int = 0
    garbage: int | None = None
    bound_without_garbage: float = -np.inf

    @property
    def n_parts(self) -> int:
        return len(self.counts)

    @property
    def level(self) -> float:
        """Khiops' Level, the normalized gain 1 - cost / null_cost: 0 for one part."""
        return 1.0 - self.cost / self.null_cost if self.null_cost > 0 else 0.0

    @property
    def gap(self) -> float:
        """How much the cost can be above the optimum, relative; 0 is certified optimal."""
        if not np.isfinite(self.lower_bound):
            return float("inf")
        return max(0.0, self.cost - self.lower_bound) / max(abs(self.cost), 1e-300)

    @property
    def is_optimal(self) -> bool:
        return self.gap < 1e-9

    @property
    def is_best_without_garbage(self) -> bool:
        """Whether no model without a garbage group costs less; this one may have such a group."""
        return self.is_optimal or self.cost <= self.bound_without_garbage + 1e-9 * abs(self.cost)


class _Model(Protocol):
    @property
    def cost(self) -> float: ...


Model = TypeVar("Model", bound=_Model)


def cheapest(*models: Model) -> Model:
    """The one that costs least, of equal ones the first."""
    return min(models, key=lambda model: model.cost)


def labels_of(ends: Indices, n: int) -> Indices:
    """The part of each of n blocks (n,), of parts that end there."""
    return np.searchsorted(ends, np.arange(n), side="right")


def labels_along(order: Indices, ends: Indices) -> Indices:
    """The part of each unit, where the units in this order are cut at these ends."""
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = labels_of(ends, len(order))
    return labels


def ends_of(labels: Indices) -> Indices:
    """Where parts end (I,): the block after the last of each, from the part of each block, ascending."""
    return np.append(np.flatnonzero(np.diff(labels)) + 1, len(labels)).astype(np.int64)


def without_gaps(labels: Indices) -> Indices:
    """The labels (n,) numbered anew, in order, without those that nothing has."""
    present = np.bincount(labels) > 0
    return labels if present.all() else (np.cumsum(present) - 1)[labels]


def sum_by(labels: Indices, counts: Floats, n: int) -> Floats:
    """Sums of the rows of `counts` with each label (n, J)."""
    out = np.empty((n, counts.shape[1]))
    for j in range(counts.shape[1]):
        out[:, j] = np.bincount(labels, counts[:, j], minlength=n)
    return out


def quantile_boundaries(sizes: Floats, granularity: int, among: Indices | None = None) -> Indices:
    """Boundaries nearest to the 2**granularity quantiles; the last boundary is always one.

    `sizes` (B + 1,): rows before each boundary; `among`: the boundaries to choose from, all if None.
    """
    boundaries = np.arange(1, len(sizes)) if among is None else among
    before, total = sizes[boundaries], float(sizes[-1])
    cells = 2**granularity
    if cells >= total or len(boundaries) == 1:
        return boundaries
    which: NDArray[np.number]
    if cells <= 8 * len(before):
        which = np.arange(1, cells)
    else:  # of very many quantiles those next to a boundary: no boundary is nearest to others only
        lower = np.floor(before * (cells / total))
        which = np.unique(np.clip(lower[:, None] + np.arange(-1, 3)[None, :], 1, cells - 1))
    targets = total * (which / cells)  # the same, as cells are a power of 2, but for weights of 1e300
    above = np.minimum(np.searchsorted(before, targets), len(before) - 1)
    below = np.maximum(above - 1, 0)
    up, down = before[above] - targets, targets - before[below]
    hair = 0.0 if (before == np.floor(before)).all() else TIE * total  # fractions do not add up to the last digit
    tied = np.abs(down - up) <= hair
    nearest = np.where(np.where(tied, targets <= total / 2 + hair, down < up), below, above)
    nearest = np.where(above == 0, 0, nearest)
    nearest = np.append(nearest, len(boundaries) - 1)  # ascending
    return np.asarray(boundaries[nearest[np.append(nearest[1:] != nearest[:-1], True)]])


class Quantiles:
    """The quantile grids of blocks, each made when it is first asked for: searches by other classes ask again.

    `sizes` (B + 1,): rows before each boundary.
    """

    def __init__(self, sizes: Floats) -> None:
        self.sizes = sizes
        self._boundaries: dict[int, Indices] = {}

    def boundaries(self, granularity: int) -> Indices:
        """Those nearest to the 2**granularity quantiles; the last is always one."""
        if granularity not in self._boundaries:
            self._boundaries[granularity] = quantile_boundaries(self.sizes, granularity)
        return self._boundaries[granularity]


def ends_of_equal_parts(sizes: NDArray[np.number], n: int) -> Indices:
    """The boundaries at or above n - 1 equally spaced quantiles, and the last, of blocks of these sizes (B,)."""
    before = np.cumsum(sizes)
    wanted = before[-1] * np.arange(1, n) / n
    return np.unique(np.append(np.searchsorted(before, wanted) + 1, len(sizes)))
