"""Held-out rows: how predictions order and scale the target, and where they err, on arrays.

Calibration, deciles, lift, Lorenz curve and Gini; residuals of each category, or bin of numbers, with standard errors.
Each residual is tested against 0 beyond three standard errors, adjusted for the number of cells (Bonferroni). The
variance of a residual is the larger of what was observed and, for two classes and counts, of what the model itself
implies: a category of few rows without any event has residuals that are small, and not sure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DECILES = 10


@dataclass(frozen=True)
class HeldOutRows:
    """Held-out rows of a fold: their indices, predicted and observed (probabilities, rates, values), and weights."""

    rows: Ints
    predicted: Floats
    observed: Floats
    weight: Floats


def pooled(folds: list[HeldOutRows]) -> HeldOutRows:
    """The rows of all folds, one after another."""
    return HeldOutRows(
        np.concatenate([one.rows for one in folds]),
        np.concatenate([one.predicted for one in folds]),
        np.concatenate([one.observed for one in folds]),
        np.concatenate([one.weight for one in folds]),
    )


def deciles(held: HeldOutRows) -> list[dict[str, float]]:
    """Tenths of the weight in the order of prediction, lowest first; equal predictions stay together.

    Each with its rows, share of weight, mean predicted and observed, their ratio, and lift: observed over the mean.
    """
    tenth = _tenths(held.predicted, held.weight)
    weight = np.bincount(tenth, held.weight, minlength=DECILES)
    rows = np.bincount(tenth, minlength=DECILES)
    mean = float(np.average(held.observed, weights=held.weight))
    means = in_parts(held.predicted, held.observed, held.weight).tolist()
    out = []
    for decile, (predicted, observed) in zip(np.flatnonzero(weight > 0), means, strict=True):
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


def gini(held: HeldOutRows) -> float:
    """The normalized Gini coefficient: that of the predictions over that of the perfect ordering.

    For two classes it is 2 AUC - 1. NaN where all observed values are equal.
    """
    centred = held.observed - np.average(held.observed, weights=held.weight)
    by_prediction, perfect = (_concentration(order, centred, held.weight) for order in (held.predicted, held.observed))
    return by_prediction / perfect if perfect else float("nan")


def mean_gini(folds: list[HeldOutRows]) -> float | None:
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
    """Means (parts, 2) of tenths of the weight in the order of the prediction, without those that are empty."""
    part = _tenths(predicted, weight)
    total = np.bincount(part, weight, minlength=DECILES)
    kept = total > 0
    sums = [np.bincount(part, weight * values, minlength=DECILES)[kept] / total[kept] for values in (predicted, came)]
    return np.stack(sums, axis=1)


def _tenths(order: Floats, weight: Floats) -> Ints:
    """The tenth of the weight (n,), from 0 on, in which each row is; rows of equal `order` stay together."""
    distinct, index = np.unique(order, return_inverse=True)
    mass = np.bincount(index, weight, minlength=len(distinct))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return np.minimum((middle * DECILES).astype(np.int64), DECILES - 1)[index]


STANDARD_ERRORS = 3.0
_BINS = 10
_MIN_ROWS = 30  # of a cell that is flagged
_MAX_CELLS = 15  # shown of a column
_MAX_CATEGORIES = 200  # of a column; rarer ones are one cell


def error_tables(
    held: HeldOutRows, X: pd.DataFrame, row_weight: Floats | None, task: str, order: list[str],
    clusters: Ints | None = None, most: int = 5,
) -> dict[str, Any]:  # fmt: skip
    """By column: rows, observed, predicted, difference with its standard error, largest contribution first.

    Parameters
    ----------
    held : Held
        Of one model, all folds; rows tested in several repeats count once, with their mean prediction.
    X : pandas.DataFrame
        The table of all rows, which `held.rows` are indices of.
    row_weight : array of shape (n_rows,), optional
        Sample weights without exposure.
    task : {"binary", "count", "regression"}
    order : list of str
        Features, those that matter most first: the first `most` are shown, and others that have a flagged cell.
    clusters : array of shape (n_rows,), optional
        Groups or categories held out whole: then residuals vary by these.

    Returns
    -------
    dict
        `columns`: name and cells; `cells`: how many were tested; `limit`: of |z| for a flag; `flagged`: how many.
    """
    rows, predicted, observed, weight = _by_row(held)
    row_weight = np.ones(len(rows)) if row_weight is None else row_weight[rows]
    cluster = rows if clusters is None else clusters[rows]
    tables = []
    for name in [one for one in order if one in X.columns]:
        codes, labels = cells_of(X[name], rows)
        tables.append((name, _cells(codes, labels, predicted, observed, weight, row_weight, cluster, task)))
    number = sum(len(cells) for _, cells in tables)
    limit = max(STANDARD_ERRORS, float(stats.norm.isf(stats.norm.sf(STANDARD_ERRORS) / max(number, 1))))
    columns = []
    for position, (name, cells) in enumerate(tables):
        for cell in cells:
            cell["flagged"] = bool(abs(cell["z"]) > limit and cell["rows"] >= _MIN_ROWS)
        flagged = sum(cell["flagged"] for cell in cells)
        if position < most or flagged:
            cells.sort(key=lambda cell: (not cell["flagged"], -abs(cell["contribution"])))
            columns.append({"column": name, "cells": cells[:_MAX_CELLS], "of": len(cells), "flagged": flagged})
    flags = sum(cell["flagged"] for _, cells in tables for cell in cells)
    return {"columns": columns, "cells": number, "limit": limit, "flagged": flags}


def cells_of(column: pd.Series, rows: Ints) -> tuple[Ints, list[str]]:
    """Codes of some rows of a column, and the labels of the codes: categories, or bins of about equal size."""
    values = column.iloc[rows]
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        numbers = values.to_numpy(dtype=np.float64)
        distinct = np.unique(numbers[~np.isnan(numbers)])
        if len(distinct) > _BINS:
            edges = np.unique(np.nanquantile(numbers, np.arange(1, _BINS) / _BINS, method="lower"))
            codes = np.searchsorted(edges, numbers, side="left")
            ends = [f"{edge:.6g}" for edge in edges]
            labels = [
                f"up to {ends[0]}",
                *(f"({a}, {b}]" for a, b in pairwise(ends)),
                f"over {ends[-1]}",
            ]
        else:
            codes, labels = np.searchsorted(distinct, numbers), [f"{one:.6g}" for one in distinct]
        missing = np.isnan(numbers)
        return np.where(missing, len(labels), codes).astype(np.int64), [*labels, "(missing)"]
    codes, categories = pd.factorize(values, use_na_sentinel=True)
    labels = [str(one) for one in categories] + ["(missing)"]
    codes = np.where(codes < 0, len(categories), codes).astype(np.int64)
    if len(labels) > _MAX_CATEGORIES:
        count = np.bincount(codes, minlength=len(labels))
        common = np.argsort(-count, kind="stable")[: _MAX_CATEGORIES - 1]
        new = np.full(len(labels), len(common))
        new[common] = np.arange(len(common))
        rest = len(labels) - len(common)
        return new[codes], [labels[one] for one in common] + [f"({rest:,} less frequent ones)"]
    return codes, labels


def _by_row(held: HeldOutRows) -> tuple[Ints, Floats, Floats, Floats]:
    """Each row once, with its mean prediction over repeats."""
    rows, first, index, times = np.unique(held.rows, return_index=True, return_inverse=True, return_counts=True)
    return rows, np.bincount(index, held.predicted) / times, held.observed[first], held.weight[first]


def _cells(
    codes: Ints, labels: list[str], predicted: Floats, observed: Floats, weight: Floats, row_weight: Floats,
    cluster: Ints, task: str,
) -> list[dict[str, Any]]:  # fmt: skip
    """Each cell's means, its sum of residuals, and the standard error of that."""
    n = len(labels)
    residual = observed - predicted
    mass, total = np.bincount(codes, weight, n), np.bincount(codes, weight * residual, n)
    sums = [np.bincount(codes, weight * values, n) for values in (observed, predicted)]
    variance = _clustered(codes, weight * residual, cluster, n)
    if task == "binary":
        variance = np.maximum(
            variance, np.bincount(codes, weight**2 * np.clip(predicted * (1 - predicted), 0, None), n)
        )
    elif task == "count":  # `weight` has the exposure in it, so that this is the expected count
        variance = np.maximum(variance, np.bincount(codes, row_weight * weight * np.maximum(predicted, 0.0), n))
    rows = np.bincount(codes, minlength=n)
    out = []
    for code in np.flatnonzero(mass > 0):
        error = float(np.sqrt(variance[code]))
        out.append({
            "category": labels[code], "rows": int(rows[code]), "observed": float(sums[0][code] / mass[code]),
            "predicted": float(sums[1][code] / mass[code]), "difference": float(total[code] / mass[code]),
            "error": error / float(mass[code]), "z": float(total[code]) / error if error > 0 else 0.0,
            "contribution": float(total[code]),
        })  # fmt: skip
    return out


def _clustered(codes: Ints, share: Floats, cluster: Ints, n: int) -> Floats:
    """The variance of each cell's sum: squares of the sums of its clusters."""
    _, unit = np.unique(cluster, return_inverse=True)
    width = int(unit.max()) + 1
    pair, index = np.unique(codes * width + unit, return_inverse=True)
    return np.asarray(np.bincount(pair // width, np.bincount(index, share) ** 2, minlength=n))
