"""What the target is by category: sums that add up, components of variance, estimates drawn to the mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_VARIANCE = 1e-8
"""Of categories' means, in units of the target's variance: a column that says nothing has no estimate below."""


@dataclass(frozen=True)
class Sums:
    """By category (l,) or category and component of the target (l, q): rows, sums, sums of squares.

    Targets are counted from `origin` (q,), lest squares of large numbers lose what they differ by.
    """

    rows: Floats
    sums: Floats
    squares: Floats
    origin: Floats

    @classmethod
    def count(cls, codes: NDArray[np.integer], y: Floats, weight: Floats | None, size: int, origin: Floats) -> Sums:
        """Of rows with these codes (n,), below 0 for none, and targets (n, q)."""
        known = codes >= 0
        codes, centred = codes[known], y[known] - origin
        each = np.ones(len(codes)) if weight is None else weight[known]
        sums, squares = np.empty((size, y.shape[1])), np.empty((size, y.shape[1]))
        for place, column in enumerate(centred.T):
            sums[:, place] = np.bincount(codes, each * column, minlength=size)
            squares[:, place] = np.bincount(codes, each * column**2, minlength=size)
        return cls(np.bincount(codes, each, minlength=size).astype(np.float64), sums, squares, origin)

    def __add__(self, other: Sums) -> Sums:
        assert np.array_equal(self.origin, other.origin)
        return Sums(self.rows + other.rows, self.sums + other.sums, self.squares + other.squares, self.origin)

    def __sub__(self, other: Sums) -> Sums:
        """What is left without some rows; rounding leaves nothing where no rows are."""
        rows = self.rows - other.rows
        held = (rows > 1e-9 * self.rows)[:, None]
        parts = (self.sums - other.sums, self.squares - other.squares)
        sums, squares = (np.where(held, part, 0.0) for part in parts)
        return Sums(np.where(held[:, 0], rows, 0.0), sums, squares, self.origin)

    def counted_from(self, origin: Floats) -> Sums:
        """The same sums with another origin."""
        shift = self.origin - origin
        n = self.rows[:, None]
        squares = self.squares + 2 * shift * self.sums + n * shift**2
        return Sums(self.rows, self.sums + n * shift, squares, origin)

    def placed(self, places: NDArray[np.int64], size: int) -> Sums:
        """The same sums by other codes."""
        rows, sums, squares = np.zeros(size), np.zeros((size, self.sums.shape[1])), np.zeros((size, self.sums.shape[1]))
        rows[places], sums[places], squares[places] = self.rows, self.sums, self.squares
        return Sums(rows, sums, squares, self.origin)

    def of(self, symbols: NDArray[np.integer]) -> Sums:
        """Those of some categories."""
        return Sums(self.rows[symbols], self.sums[symbols], self.squares[symbols], self.origin)

    @property
    def means(self) -> Floats:
        """Mean target of each category (l, q); 0 from the origin where there are no rows."""
        return self.sums / np.where(self.rows > 0, self.rows, 1.0)[:, None]

    @property
    def grand_mean(self) -> Floats:
        """Mean target of all rows (q,), from the origin."""
        return np.asarray(self.sums.sum(axis=0) / self.rows.sum())


@dataclass(frozen=True)
class Components:
    """How a target varies: `within` categories (s2) and `between` them (tau2), on average over its components.

    `centre` (q,): the mean of categories' means, each with the weight of how surely it is known; from the sums' origin.
    """

    within: float
    between: float
    centre: Floats

    @property
    def ratio(self) -> float:
        """Rows that the centre counts for (s2 / tau2)."""
        return self.within / self.between


def components_of(sums: Sums) -> Components:
    """Components of variance by moments (ANOVA of categories of unequal size).

    A target of several components (classes) has one of each, their mean: they share the weights of categories.
    """
    seen = sums.rows > 0
    n, means = sums.rows[seen], sums.means[seen]
    total, l = n.sum(), len(n)  # noqa: E741 (the formulas' letter)
    inner = np.maximum(sums.squares[seen] - n[:, None] * means**2, 0.0).sum(axis=0)
    outer = (n[:, None] * (means - sums.grand_mean) ** 2).sum(axis=0)
    scale = float((inner + outer).mean() / total)
    if total - l > 1e-9 * total:
        within = float(inner.mean() / (total - l))
    else:  # no two rows share a category: nothing tells the categories' own part from the rows'
        within = float((inner + outer).mean() / max(total - 1, 1e-9 * total))
    balance = total - (n**2).sum() / total
    between = float((outer.mean() - (l - 1) * within) / balance) if balance > 0 else 0.0
    if not scale > 0:  # one value everywhere: nothing depends on these
        within = between = scale = 1.0
    between = max(between, LEAST_VARIANCE * scale)
    sure = 1 / (between + within / n)
    return Components(within, between, np.asarray((sure[:, None] * means).sum(axis=0) / sure.sum()))


def drawn(sums: Sums, centre: Floats, rows: float) -> Floats:
    """Estimates (l, q): means of categories' rows and so many rows at the centre."""
    total = sums.rows + rows
    estimates = (sums.sums + rows * centre) / np.where(total > 0, total, 1.0)[:, None]
    return np.where((total > 0)[:, None], estimates, centre)
