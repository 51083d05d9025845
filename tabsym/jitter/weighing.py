"""Weights of donors, by the encoder's rule or by one that was chosen for a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.tiws.column import FittedColumn, Unseen
from tabsym.tiws.donors import DonorRule

Floats = NDArray[np.float64]


def donor_weights(fitted: FittedColumn, unseen: Unseen, rule: DonorRule | None = None) -> Floats:
    """Of a column's donors (m, donors) for each unknown category; `rule`: another one than the encoder's."""
    if rule is not None:
        rule = rule.of(fitted.sums.rows[fitted.donors], fitted.components)  # chosen with fewer rows, perhaps
        tiles = [rule.weights(fitted.between(tile)) for tile in unseen.tiles()]
        return np.concatenate([np.zeros((0, len(fitted.donors))), *tiles])
    return fitted.weights(unseen)


def places_among_donors(fitted: FittedColumn, codes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where categories are among the donors; -1: nowhere."""
    place = np.full(len(fitted.symbols), -1, dtype=np.int64)
    place[fitted.donors] = np.arange(len(fitted.donors))
    return place[codes]


def donor_symbols(fitted: FittedColumn) -> list[Any]:
    """The donors as they are called."""
    return [fitted.symbols[code] for code in fitted.donors]
