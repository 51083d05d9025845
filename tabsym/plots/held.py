"""How predictions order and scale the target: calibration, deciles, lift, Lorenz curve and Gini, on arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DECILES = 10
PARTS = 10


@dataclass(frozen=True)
class Held:
    """Held-out rows of a fold: their indices, predicted and observed (probabilities, rates, values), and weights."""

    rows: Ints
    predicted: Floats
    observed: Floats
    weight: Floats


def pooled(folds: list[Held]) -> Held:
    """The rows of all folds, one after another."""
    return Held(
        np.concatenate([one.rows for one in folds]),
        np.concatenate([one.predicted for one in folds]),
        np.concatenate([one.observed for one in folds]),
        np.concatenate([one.weight for one in folds]),
    )


def deciles(held: Held) -> list[dict[str, float]]:
    """Tenths of the weight in the order of prediction, lowest first; equal predictions stay together.

    Each with its rows, share of weight, mean predicted and observed, their ratio, and lift: observed over the mean.
    """
    distinct, index = np.unique(held.predicted, return_inverse=True)
    mass = np.bincount(index, held.weight, minlength=len(distinct))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    tenth = np.minimum((middle * DECILES).astype(np.int64), DECILES - 1)[index]
    weight = np.bincount(tenth, held.weight, minlength=DECILES)
    rows = np.bincount(tenth, minlength=DECILES)
    mean = float(np.average(held.observed, weights=held.weight))
    out = []
    for decile in np.flatnonzero(weight > 0):
        predicted, observed = (
            float((held.weight * values)[tenth == decile].sum() / weight[decile])
            for values in (held.predicted, held.observed)
        )
        out.append({
            "decile": int(decile) + 1, "rows": int(rows[decile]), "share": float(weight[decile] / weight.sum()),
            "predicted": predicted, "observed": observed,
            "ratio": predicted / observed if observed > 0 else float("nan"),
            "lift": observed / mean if mean > 0 and held.observed.min() >= 0 else float("nan"),
        })  # fmt: skip
    return out


def lorenz(order: Floats, observed: Floats, weight: Floats) -> Floats:
    """Points (n, 2) of the ordered Lorenz curve: shares of weight and of what was observed, lowest `order` first.

    Rows of equal `order` are one straight piece, whatever their order in the table.
    """
    distinct, index = np.unique(order, return_inverse=True)
    mass = np.bincount(index, weight, minlength=len(distinct))
    total = np.bincount(index, weight * observed, minlength=len(distinct))
    points = np.stack([np.cumsum(mass), np.cumsum(total)], axis=1)
    return np.asarray(np.concatenate([[[0.0, 0.0]], points]) / points[-1])


def gini(held: Held) -> float:
    """The normalized Gini coefficient: that of the predictions over that of the perfect ordering.

    For two classes it is 2 AUC - 1. NaN where all observed values are equal.
    """
    centred = held.observed - np.average(held.observed, weights=held.weight)
    by_prediction, perfect = (_concentration(order, centred, held.weight) for order in (held.predicted, held.observed))
    return by_prediction / perfect if perfect else float("nan")


def mean_gini(folds: list[Held]) -> float | None:
    """The mean over folds, as other scores; None where a fold has none."""
    values = [gini(one) for one in folds]
    return None if np.isnan(values).any() else float(np.mean(values))


def _concentration(order: Floats, centred: Floats, weight: Floats) -> float:
    """The area between the diagonal and the cumulative sums of centred values, which may be negative ones."""
    distinct, index = np.unique(order, return_inverse=True)
    mass = np.bincount(index, weight, minlength=len(distinct))
    total = np.cumsum(np.bincount(index, weight * centred, minlength=len(distinct)))
    before = np.concatenate([[0.0], total[:-1]])
    return -float((mass * (before + total) / 2).sum())


def in_parts(predicted: Floats, came: Floats, weight: Floats) -> Floats:
    """Parts of about equal weight in the order of the prediction; equal predictions stay together."""
    distinct, place = np.unique(predicted, return_inverse=True)
    mass = np.bincount(place, weight, minlength=len(distinct))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    part = np.minimum((middle * PARTS).astype(np.int64), PARTS - 1)[place]
    total = np.bincount(part, weight, minlength=PARTS)
    kept = total > 0
    sums = [np.bincount(part, weight * values, minlength=PARTS)[kept] / total[kept] for values in (predicted, came)]
    return np.stack(sums, axis=1)
