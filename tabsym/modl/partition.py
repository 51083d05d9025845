"""The result of a search: parts, costs, and how far from the optimum it can be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
        The part that is Khiops' garbage group.
    bound_without_garbage : float
        No model without a garbage group costs less; -inf where nothing is known.
    """

    criterion: str
    labels: NDArray[np.int64]
    counts: NDArray[np.float64]
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
        """1 - cost / null_cost: the share of the target's code length that the column saves, 0 for one part."""
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
