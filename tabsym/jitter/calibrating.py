"""The rate at which donors' weights fall with distance, chosen by a model's own loss; and whether donors help it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.jitter.losses import Losses
from tabsym.jitter.mixture import TILE
from tabsym.jitter.replacing import longer, replaced
from tabsym.jitter.strangers import Road, stranger
from tabsym.jitter.weighing import donor_symbols, places_among_donors
from tabsym.table import Table
from tabsym.tiws.column import FittedColumn
from tabsym.tiws.donors import FEWEST_TO_TUNE, DonorRule
from tabsym.tiws.likeness import Geometry, median_distance

Floats = NDArray[np.float64]
Places = NDArray[np.integer]
Ask = Callable[[Any], Any]

MOST_DONORS = 64
"""Of a category, those that any of the rules to choose from ranks highest, in calibration."""


@dataclass(frozen=True)
class Calibration:
    """Result of calibration for a column.

    Attributes
    ----------
    used : {"jitter", "default"}
    rule : DonorRule or None
        None: the encoder's.
    default, uncalibrated, calibrated : float
        Mean losses of the model's own treatment (NaN where it has none), of the encoder's rule and of the chosen one.
    error : float
        Standard error, over categories, of the difference of calibrated and default.
    rows, categories : int
        Numbers used.
    road : {"model", "missing"}
        How unknown values go to the model under "default".
    """

    used: str
    rule: DonorRule | None
    default: float
    uncalibrated: float
    calibrated: float
    error: float
    rows: int
    categories: int
    road: Road


@dataclass(frozen=True)
class Sample:
    """Labelled rows of a table without unknown values; `codes` (n,) of the column's categories."""

    source: Any
    table: Table
    rows: Places
    codes: Places
    weight: Floats


@dataclass(frozen=True)
class Asking:
    """A model as calibration sees it: scores that are averaged, what makes answers of them, and their losses."""

    ask: Ask
    finish: Callable[[Floats], Floats]
    losses: Losses
    road: Road


def calibrate_column(fitted: FittedColumn, sample: Sample, model: Asking) -> Calibration:
    """Choose a column's rule: each row is answered with donors, its own category and its document left out."""
    found, which = np.unique(sample.codes, return_inverse=True)
    places, geometry = places_among_donors(fitted, found), fitted.between(fitted.as_unseen(found))
    rules = _rules(fitted, geometry)
    chosen = _chosen(geometry, places, rules)
    answers = _with_donors(fitted, sample, model.ask, chosen[which])

    def loss(weights: Floats) -> Floats:
        some = np.take_along_axis(weights, chosen, axis=1)
        some = some / np.maximum(some.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return model.losses.of(model.finish(np.einsum("ik,ik...->i...", some[which], answers)), sample.rows)

    plain = loss(_plain(fitted, found, geometry, places))
    by_rule = [loss(rule.weights(geometry, places)) for rule in rules]
    totals = [float(sample.weight @ one) for one in by_rule]
    best = int(np.argmin(totals)) if totals else -1
    keep_plain = best < 0 or sample.weight @ plain <= totals[best]
    calibrated = plain if keep_plain else by_rule[best]
    default = _default(fitted, sample, model)
    mean = np.average
    error = float("nan") if default is None else _error(calibrated - default, which, sample.weight)
    gain = float("nan") if default is None else float(mean(default - calibrated, weights=sample.weight))
    return Calibration(
        used="jitter" if default is None or gain > error else "default",
        rule=None if keep_plain else rules[best],
        default=float("nan") if default is None else float(mean(default, weights=sample.weight)),
        uncalibrated=float(mean(plain, weights=sample.weight)),
        calibrated=float(mean(calibrated, weights=sample.weight)),
        error=error,
        rows=len(sample.rows),
        categories=len(found),
        road=model.road,
    )


def _rules(fitted: FittedColumn, geometry: Geometry) -> list[DonorRule]:
    """The rules to choose from; of few categories none, since all donors of one are alike then."""
    if len(fitted.donors) < FEWEST_TO_TUNE:
        return []
    rule = fitted.rule
    if fitted.method.method == "poster":  # which has no rule of its own
        rule = replace(rule, unit=median_distance(fitted.geometry.distances) or 1.0)
    return rule.others(geometry)


def _plain(fitted: FittedColumn, codes: Places, geometry: Geometry, places: Places) -> Floats:
    """Weights by the encoder's own rule."""
    if fitted.method.method == "poster":
        return fitted.weights(fitted.as_unseen(codes), codes)
    return fitted.rule.weights(geometry, places)


def _chosen(geometry: Geometry, places: Places, rules: list[DonorRule]) -> Places:
    """Places (m, k) of the donors of each category that are asked about."""
    m, donors = geometry.distances.shape
    if donors <= MOST_DONORS:
        return np.tile(np.arange(donors), (m, 1))
    rank = np.full((m, donors), donors)
    for rule in rules:
        order = np.argsort(-rule.weights(geometry, places), axis=1, kind="stable")
        np.minimum(rank, np.argsort(order, axis=1, kind="stable"), out=rank)
    return np.argsort(rank, axis=1, kind="stable")[:, :MOST_DONORS]


def _with_donors(fitted: FittedColumn, sample: Sample, ask: Ask, chosen: Places) -> Floats:
    """What the model says of each row with each donor: (n, k, ...)."""
    name = sample.table.names[fitted.number]
    symbols = donor_symbols(fitted)
    column = longer(sample.source, fitted.number, sample.table[name], symbols, set(fitted.symbols))
    rows, donors = np.repeat(sample.rows, chosen.shape[1]), chosen.ravel()
    parts = [slice(first, first + TILE) for first in range(0, len(rows), TILE)]
    answers = [np.asarray(ask(replaced(sample.source, rows[part], [column], [donors[part]]))) for part in parts]
    flat = np.concatenate(answers).astype(np.float64)
    return flat.reshape(*chosen.shape, *flat.shape[1:])


def _default(fitted: FittedColumn, sample: Sample, model: Asking) -> Floats | None:
    """Losses of the model's own treatment of an unknown category; None where it refuses one."""
    name = sample.table.names[fitted.number]
    symbol = stranger(fitted.symbols, model.road)
    known = set(fitted.symbols) | {symbol}
    column = longer(sample.source, fitted.number, sample.table[name], [symbol], known)
    frame = replaced(sample.source, sample.rows, [column], [np.zeros(len(sample.rows), dtype=np.int64)])
    try:
        scores = np.asarray(model.ask(frame), dtype=np.float64)
    except (ValueError, TypeError, KeyError):
        return None
    return model.losses.of(model.finish(scores), sample.rows)


def _error(difference: Floats, group: Places, weight: Floats) -> float:
    """Standard error of a weighted mean (n,) of which rows of a group go together; endless for a single group."""
    groups = int(group.max()) + 1
    if groups < 2:
        return float("inf")
    mean = np.average(difference, weights=weight)
    sums = np.bincount(group, weight * (difference - mean), minlength=groups)
    return float(np.sqrt(groups / (groups - 1) * (sums**2).sum()) / weight.sum())
