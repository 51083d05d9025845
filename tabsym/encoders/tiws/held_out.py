"""Training rows by targets that are not their own: other folds' for seen symbols, other symbols' as if unseen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders.folds import Split
from tabsym.tiws.column import FittedColumn
from tabsym.tiws.sums import Sums

Floats = NDArray[np.float64]

MOST_ALONE = 20
"""Of more symbols, several are left out together: left out one by one, the mean of the others tells a symbol's own."""
SYMBOL_FOLDS = 10
FEWEST_SYMBOLS = 3
"""Columns of fewer have nothing to say of a symbol that is left out."""


def out_of_fold(
    fitted: FittedColumn, codes: NDArray[np.integer], y: Floats, weight: Floats | None, folds: list[Split]
) -> Floats:
    """Encoded rows (n, q): each by the sums of the other folds, those of a symbol that they lack as unseen.

    Parameters
    ----------
    fitted : FittedColumn
        On all rows; what its documents say has no target in it, and its covariance is kept.
    codes : (n,)
        Symbols of the rows.
    y : (n, q)
    weight : (n,) or None
    folds : list of (training, held-out) rows
    """
    out = np.zeros_like(y)
    for _, held_out in folds:
        each = None if weight is None else weight[held_out]
        own = Sums.count(codes[held_out], y[held_out], each, len(fitted.symbols), fitted.sums.origin)
        others = fitted.sums - own
        if not (others.rows > 0).any():
            raise ValueError("A fold's training rows all have weight 0; use fewer folds or other weights.")
        one = fitted.with_sums(others)
        values = one.estimates
        absent = np.flatnonzero((others.rows <= 0) & (own.rows > 0))
        if len(absent):
            values[absent] = one.unseen_estimates(one.as_unseen(absent))
        out[held_out] = np.append(values, np.zeros((1, values.shape[1])), axis=0)[codes[held_out]]
    return out


def folds_of_symbols(rows: Floats, random_state: Any) -> NDArray[np.int64]:
    """The group (l,) that each symbol is left out with: alone where there are few."""
    if len(rows) <= MOST_ALONE:
        return np.arange(len(rows))
    rng = np.random.RandomState(random_state) if not isinstance(random_state, np.random.RandomState) else random_state
    return rng.permutation(len(rows)) % SYMBOL_FOLDS
