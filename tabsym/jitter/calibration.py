"""The rate at which donors' weights fall with distance, chosen by a model's own loss; and whether donors help it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from tabsym.categories import UNSEEN
from tabsym.encoders import TIWSEncoder
from tabsym.frame import (
    Table,
    check_classes,
    check_regression_target,
    check_same_rows,
    check_weights,
    match_features,
    read_table,
    take_rows,
)
from tabsym.jitter.averaging import (
    CALLER,
    ROWS_FOR_LINK,
    Ask,
    Road,
    Treatment,
    link_of,
    name_of,
    placeholder,
    road_of,
    score_of,
)
from tabsym.jitter.replacing import CHUNK, longer, replaced, source_of, without_strange_levels
from tabsym.tiws.column import FittedColumn
from tabsym.tiws.counts import codes_of
from tabsym.tiws.similarity import Geometry, median_distance
from tabsym.tiws.unknown import MIN_TO_TUNE, DonorRule
from tabsym.validation import Number, check_option

Floats = NDArray[np.float64]

_MIN_VALUE = 1e-15


@dataclass(frozen=True)
class Losses:
    """A loss by its name, and the target (n,) of all rows: indices of classes, or numbers."""

    name: str
    target: NDArray[Any]

    @classmethod
    def check(cls, loss: str | None, y: Any, n_rows: int, classes: NDArray[Any] | None) -> Losses:
        """The loss of a task (`classes`: those of a classifier), or a `ValueError` that says what there is."""
        possible = ("log_loss",) if classes is not None else ("squared_error", "poisson")
        name = possible[0] if loss is None else loss
        if name not in possible:
            kind = "classifiers" if classes is not None else "regressors"
            raise ValueError(f"loss={loss!r} is not known for {kind}; use {' or '.join(map(repr, possible))}.")
        if classes is not None:
            remedy = "leave its rows out, or fit the model on all classes"
            return cls(name, check_classes(y, n_rows, classes=classes, caller=CALLER, remedy=remedy).codes)
        target = check_regression_target(y, n_rows, caller=CALLER)
        if name == "poisson" and (target < 0).any():
            raise ValueError("loss='poisson' needs a target without negative values; use 'squared_error'.")
        return cls(name, target)

    def of(self, answers: Floats, rows: NDArray[np.integer]) -> Floats:
        """Loss (n,) of the answers (n, ...) given for these rows."""
        truth = self.target[rows]
        if self.name == "log_loss":
            total = answers.sum(axis=1)
            return -np.log(np.clip(answers[np.arange(len(rows)), truth] / total, _MIN_VALUE, 1.0))
        if self.name == "squared_error":
            return np.asarray((answers - truth) ** 2)
        means = np.maximum(answers, _MIN_VALUE)
        logs = truth * np.log(np.where(truth > 0, truth, 1.0) / means)
        return np.asarray(2 * (logs - truth + means))


Indices = NDArray[np.integer]

MAX_DONORS = 64
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

    @property
    def treatment(self) -> Treatment:
        """What becomes of the column's unknown values."""
        return Treatment(self.road) if self.used == "default" else Treatment("jitter", self.rule)


@dataclass(frozen=True)
class CalibrationSample:
    """Labelled rows of a table without unknown values; `codes` (n,) of the column's categories."""

    source: Any
    table: Table
    rows: Indices
    codes: Indices
    weight: Floats


@dataclass(frozen=True)
class Asking:
    """A model as calibration sees it: scores that are averaged, what makes answers of them, and their losses."""

    ask: Ask
    finish: Callable[[Floats], Floats]
    losses: Losses
    road: Road


def calibrate_column(fitted: FittedColumn, sample: CalibrationSample, model: Asking) -> Calibration:
    """Choose a column's rule: each row is answered with donors, its own category and its document left out."""
    categories, which = np.unique(sample.codes, return_inverse=True)
    positions, geometry = fitted.positions(fitted.donors, categories), fitted.between(fitted.as_unseen(categories))
    rules = _rules(fitted, geometry)
    chosen = _chosen(geometry, positions, rules)
    answers = _with_donors(fitted, sample, model.ask, chosen[which])

    def loss(weights: Floats) -> Floats:
        some = np.take_along_axis(weights, chosen, axis=1)
        some = some / np.maximum(some.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return model.losses.of(model.finish(np.einsum("ik,ik...->i...", some[which], answers)), sample.rows)

    plain = loss(_plain(fitted, categories, geometry, positions))
    by_rule = [loss(rule.weights(geometry, positions)) for rule in rules]
    totals = [float(sample.weight @ losses) for losses in by_rule]
    best = int(np.argmin(totals)) if totals else -1
    keep_plain = best < 0 or sample.weight @ plain <= totals[best]
    calibrated = plain if keep_plain else by_rule[best]
    default = _default(fitted, sample, model)
    mean = partial(np.average, weights=sample.weight)
    error = float("nan") if default is None else _error(calibrated - default, which, sample.weight)
    return Calibration(
        used="jitter" if default is None or float(mean(default - calibrated)) > error else "default",
        rule=None if keep_plain else rules[best],
        default=float("nan") if default is None else float(mean(default)),
        uncalibrated=float(mean(plain)),
        calibrated=float(mean(calibrated)),
        error=error,
        rows=len(sample.rows),
        categories=len(categories),
        road=model.road,
    )


def _rules(fitted: FittedColumn, geometry: Geometry) -> list[DonorRule]:
    """The rules to choose from; of few categories none, since all donors of one are alike then."""
    if len(fitted.donors) < MIN_TO_TUNE:
        return []
    rule = fitted.rule
    if fitted.method.method == "poster":  # which has no rule of its own
        rule = replace(rule, unit=median_distance(fitted.geometry.distances) or 1.0)
    return rule.others(geometry)


def _plain(fitted: FittedColumn, codes: Indices, geometry: Geometry, positions: Indices) -> Floats:
    """Weights by the encoder's own rule."""
    if fitted.method.method == "poster":
        return fitted.weights(fitted.as_unseen(codes), codes)
    return fitted.rule.weights(geometry, positions)


def _chosen(geometry: Geometry, positions: Indices, rules: list[DonorRule]) -> Indices:
    """Indices (m, k) of the donors of each category that are asked about."""
    m, donors = geometry.distances.shape
    if donors <= MAX_DONORS:
        return np.tile(np.arange(donors), (m, 1))
    rank = np.full((m, donors), donors)
    for rule in rules:
        order = np.argsort(-rule.weights(geometry, positions), axis=1, kind="stable")
        np.minimum(rank, np.argsort(order, axis=1, kind="stable"), out=rank)
    return np.argsort(rank, axis=1, kind="stable")[:, :MAX_DONORS]


def _with_donors(fitted: FittedColumn, sample: CalibrationSample, ask: Ask, chosen: Indices) -> Floats:
    """What the model says of each row with each donor: (n, k, ...)."""
    name = sample.table.names[fitted.number]
    symbols = fitted.donor_symbols
    column = longer(sample.source, fitted.number, sample.table[name], symbols, set(fitted.symbols))
    rows, donors = np.repeat(sample.rows, chosen.shape[1]), chosen.ravel()
    parts = [slice(first, first + CHUNK) for first in range(0, len(rows), CHUNK)]
    answers = [np.asarray(ask(replaced(sample.source, rows[part], [column], [donors[part]]))) for part in parts]
    flat = np.concatenate(answers).astype(np.float64)
    return flat.reshape(*chosen.shape, *flat.shape[1:])


def _default(fitted: FittedColumn, sample: CalibrationSample, model: Asking) -> Floats | None:
    """Losses of the model's own treatment of an unknown category; None where it refuses one."""
    name = sample.table.names[fitted.number]
    symbol = placeholder(fitted.symbols, model.road)
    known = set(fitted.symbols) | {symbol}
    column = longer(sample.source, fitted.number, sample.table[name], [symbol], known)
    frame = replaced(sample.source, sample.rows, [column], [np.zeros(len(sample.rows), dtype=np.int64)])
    try:
        scores = np.asarray(model.ask(frame), dtype=np.float64)
    except (ValueError, TypeError, KeyError):
        return None
    return model.losses.of(model.finish(scores), sample.rows)


def _error(difference: Floats, group: Indices, weight: Floats) -> float:
    """Standard error of a weighted mean (n,) of which rows of a group go together; endless for a single group."""
    groups = int(group.max()) + 1
    if groups < 2:
        return float("inf")
    mean = np.average(difference, weights=weight)
    sums = np.bincount(group, weight * (difference - mean), minlength=groups)
    return float(np.sqrt(groups / (groups - 1) * (sums**2).sum()) / weight.sum())


def calibrated(
    model: Any, encoder: TIWSEncoder, names: list[str], average: str,
    data: tuple[Any, Any, Any], loss: str | None, n_rows: int, random_state: Any,
) -> dict[str, Calibration]:  # fmt: skip
    """The calibration of each column; `data`: table, target and weights."""
    X, y, sample_weight = data
    check_option("n_rows", n_rows, [Number(at_least=1, whole=True)])
    check_same_rows(X, y=y, sample_weight=sample_weight)
    table = match_features(encoder, read_table(X, caller=CALLER))
    weight = check_weights(sample_weight, len(table))
    weight = np.ones(len(table)) if weight is None else weight
    classes = np.asarray(model.classes_) if is_classifier(model) else None
    losses = Losses.check(loss, y, len(table), classes)
    codes = dict(zip(table.names, codes_of(table, encoder.counts_.words), strict=True))
    usable = weight > 0
    for name in encoder.columns_:
        usable &= codes[name] != UNSEEN
    rows = np.flatnonzero(usable)
    if not len(rows):
        raise ValueError(
            "Every row has an unknown category or weight 0; calibrate on rows with categories of the training data."
        )
    known = {
        encoder.columns_[name].fitted.number: set(encoder.columns_[name].fitted.symbols) for name in encoder.columns_
    }
    source = without_strange_levels(source_of(X, table), known)
    asking = _asking(model, average, losses, take_rows(source, rows[:ROWS_FOR_LINK]))
    random = check_random_state(random_state)
    by_column = {}
    for name in names:
        some = _stratified(rows, losses, codes[name], n_rows, random)
        sample = CalibrationSample(source, table, some, codes[name][some], weight[some])
        by_column[name] = calibrate_column(encoder.columns_[name].fitted, sample, asking)
    return by_column


def _asking(model: Any, average: str, losses: Losses, some: Any) -> Asking:
    """The model as calibration asks it; `some` rows show its link."""
    if losses.name == "log_loss" and not hasattr(model, "predict_proba"):
        raise ValueError(f"calibrate needs predict_proba, which {name_of(model)} lacks; leave calibrate out.")
    answer = model.predict_proba if losses.name == "log_loss" else model.predict
    if average == "probability":
        return Asking(answer, lambda answers: answers, losses, road_of(model))
    score = score_of(model)
    return Asking(score, link_of(score(some), answer(some)), losses, road_of(model))


def _stratified(rows: Indices, losses: Losses, codes: Indices, n_rows: int, random: Any) -> Indices:
    """Some of the rows, evenly from all classes and categories (of numbers: from all categories, small and large)."""
    if len(rows) <= n_rows:
        return rows
    target, symbol, tie = losses.target[rows], codes[rows], random.permutation(len(rows))
    by_class = losses.name == "log_loss"
    order = np.lexsort((tie, symbol, target) if by_class else (tie, target, symbol))
    at = ((np.arange(n_rows) + random.random_sample()) * len(rows) / n_rows).astype(np.int64)
    return np.sort(rows[order[at]])
