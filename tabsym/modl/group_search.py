"""What every search over groups of a column starts from: its modalities at each granularity, and their priors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.criterion import GARBAGE_FROM, group_prior, null_prior, parts_cost
from tabsym.modl.ground import Ground, Grouping
from tabsym.modl.units import Units, join_proportional, units_by_granularity

Floats = NDArray[np.float64]

MOST_GROUPS = 512
"""Numbers of groups that have a prior: time, for models of more groups."""


@dataclass(frozen=True)
class GroupSearch:
    """What is grouped, under which criterion and constraints.

    `least`: rows in a group; `insist`: a time limit gives the time for proofs; `prove`: whether bounds are wanted at
    all; `table`: ln k! for whole counts.
    """

    counts: Floats
    criterion: str
    n_candidates: int
    max_parts: int | None
    least: float
    least_parts: int
    deadline: float
    insist: bool
    prove: bool
    random_state: int
    table: Floats
    priors: dict[tuple[int, int, int], Floats] = field(default_factory=dict)

    @cached_property
    def rng(self) -> np.random.RandomState:
        """Of the order of moves and of starts; made where it is asked for, as that takes as long as a small column."""
        return np.random.RandomState(self.random_state)

    @property
    def null(self) -> float:
        """The cost of one group."""
        prior = null_prior(self.criterion, n_rows=float(self.counts.sum()), n_modalities=len(self.counts))
        return prior + parts_cost(self.counts.sum(axis=0)[None, :])

    @property
    def one_group(self) -> Grouping:
        """Where a search starts."""
        cost = self.null if self.least_parts < 2 else np.inf
        return Grouping(cost, np.zeros(len(self.counts), dtype=np.int64))

    @property
    def has_garbage(self) -> bool:
        """Whether models with a garbage group are to be looked for."""
        return self.criterion == "khiops" and len(self.counts) >= GARBAGE_FROM

    def families(self) -> list[Units]:
        """What the modalities can be at each granularity (under "page": themselves)."""
        n = len(self.counts)
        if self.criterion == "page":
            return [Units(self.counts, np.ones(n), np.arange(n), n)]
        return units_by_granularity(self.counts)

    def prior(self, units: Units, most: int | None = None) -> Floats:
        """The priors of 1 .. most groups of these units; kept, as searches ask again."""
        most = min(len(units), MOST_GROUPS if most is None else most)
        if self.max_parts is not None:
            most = min(most, self.max_parts)
        key = units.granularity, units.n_modalities, most
        if key not in self.priors:
            prior = group_prior(
                self.criterion,
                most,
                n_rows=float(self.counts.sum()),
                n_modalities=units.n_modalities,
                n_candidates=self.n_candidates,
                granularity=units.granularity,
            )
            prior[: self.least_parts - 1] = np.inf
            self.priors[key] = prior
        return self.priors[key]

    def ground(self, units: Units, most: int | None = None) -> Ground:
        """What a search over these units stands on."""
        with_garbage = self.criterion == "khiops" and units.n_modalities >= GARBAGE_FROM
        return Ground(
            units,
            self.prior(units, most),
            self.table,
            self.least,
            self.n_candidates,
            with_garbage,
            self.deadline,
            self.max_parts,
        )

    def joined(self, units: Units) -> Units:
        """Proportional modalities as one, which no optimum parts, unless groups have a least size."""
        return join_proportional(units) if self.least <= 1 else units
