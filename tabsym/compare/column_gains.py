"""How informative each column is alone: its fraction of the best contender's gain, leaks, and for classes MODL's Level.

A model of one column (a table of shrunk means by category; for numbers also a small tree over their ranks, and in
regression a straight line with such a tree over its residuals, as trees alone do not reach long tails) is fitted on the
training rows of a fold and scored on its test rows, by the metric that ranks, with weights, exposure and offset as the
contenders get them. Its gain over the baseline on the same rows is given as a fraction of the best contender's. MODL's
Level is the fraction of the target's code length that a column saves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from tabsym.compare.metrics import METRICS, Metric
from tabsym.compare.ranking import ALPHA, CONSTANT, baseline_in
from tabsym.compare.results import load_prediction
from tabsym.compare.splits import Split
from tabsym.compare.table.features import is_number
from tabsym.compare.table.prepare import CLASSES, Prepared

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAK = 0.9
"""Of the best's gain: a column that alone reaches so much may hold the target."""
KNOWN = 0.5
"""Of the baseline's log loss: a column that reduces it by less leaves most of the uncertainty about the classes."""
MAX_ROWS = 200_000
MAX_FOLDS = 2
SECONDS = 60.0
"""No further column is begun after so long."""
_SHRINKAGES = (0.5, 5.0, 50.0)  # rows that the mean of all counts for; chosen by leave-one-out squared error
_MAX_LEAVES, _MIN_LEAF_ROWS = 128, 5
_MAX_CATEGORIES = 1 / 3  # of the rows: numbers with more distinct values are not taken as categories as well


def column_gains(
    prepared: Prepared, splits: list[Split], metric: Metric, ranking: list[dict[str, Any]], folder: Path, seed: int
) -> list[dict[str, Any]]:
    """By column, largest first: the fraction of the best contender's gain that it reaches alone.

    `known`: for classification, the fraction of the baseline's log loss that it saves. `time`: whether it is a date
    in every row.
    Empty where nothing is significantly better than the baseline, so that there is no gain to compare with. Parts of
    a date count as the column they come from.
    """
    if not has_gain(ranking):
        return []
    folds = [_GainFold(prepared, *splits[fold], fold, seed) for fold in range(min(MAX_FOLDS, len(splits)))]
    first = _ruler(metric, ranking[0]["name"], folds, folder)
    if first is None:
        return []
    rulers = [first]
    if prepared.task in CLASSES:
        log_loss = _ruler(METRICS[prepared.task]["log_loss"], None, folds, folder)
        rulers += [] if log_loss is None else [log_loss]
    fractions: dict[str, list[float]] = {}
    begin = time.monotonic()
    for name in prepared.X.columns:
        if time.monotonic() - begin > SECONDS:
            break
        models = _codings(prepared.X[name], amounts=prepared.task == "regression")
        reached = np.max([_reached(model, folds, rulers) for model in models], axis=0)
        source = source_column(str(name), list(prepared.features.kinds))
        fractions[source] = np.maximum(fractions.get(source, np.zeros(len(rulers))), reached).tolist()
    times = {name for name in prepared.features.parts if prepared.X[name].notna().all()}
    return [
        {
            "column": name,
            "fraction": fractions[name][0],
            "known": fractions[name][1] if len(rulers) > 1 else None,
            "time": name in times,
        }
        for name in sorted(fractions, key=lambda name: -fractions[name][0])
    ]


@dataclass(frozen=True)
class _Ruler:
    """A metric with the baseline's scores by fold, and the gain that is 1, which is above 0."""

    metric: Metric
    baselines: list[float]
    gain: float


def _ruler(metric: Metric, name: str | None, folds: list[_GainFold], folder: Path) -> _Ruler | None:
    """With the mean gain of a contender, or all of a loss; None where that is none, or predictions are gone."""
    sign = 1.0 if metric.larger_is_better else -1.0
    baselines = [_score_of_contender(CONSTANT, fold, metric, folder) for fold in folds]
    bests = [0.0 if name is None else _score_of_contender(name, fold, metric, folder) for fold in folds]
    gains = [sign * (b - a) for a, b in zip(baselines, bests, strict=True) if a is not None and b is not None]
    if len(gains) < len(folds) or np.mean(gains) <= 0:
        return None
    return _Ruler(metric, [baseline for baseline in baselines if baseline is not None], float(np.mean(gains)))


def _reached(coding: _CodedColumn, folds: list[_GainFold], rulers: list[_Ruler]) -> list[float]:
    """The fraction of each ruler's gain that a model of these codes has."""
    scores = np.array([fold.scores(coding, [ruler.metric for ruler in rulers]) for fold in folds])
    signs = [1.0 if ruler.metric.larger_is_better else -1.0 for ruler in rulers]
    triples = zip(signs, scores.T, rulers, strict=True)
    gains = [sign * np.mean(column - ruler.baselines) for sign, column, ruler in triples]
    return [float(gain) / ruler.gain for gain, ruler in zip(gains, rulers, strict=True)]


def has_gain(ranking: list[dict[str, Any]]) -> bool:
    """Whether the best contender is significantly better than the baseline."""
    baseline = baseline_in(ranking)
    if baseline is None or baseline["verdict"] == "best" or baseline.get("p_adjusted") is None:
        return False
    return bool(baseline["p_adjusted"] < ALPHA)


def leak_sentences(gains: list[dict[str, Any]], ranking: list[dict[str, Any]]) -> list[str]:
    """A question for each column that alone reaches nearly all of the best's gain; none of a table's only column.

    In classification it must also save more than half of the baseline's log loss: by the AUC, a good predictor of rare
    events is near to the best without containing the target. Nor of a date that every row has: a trend or an hour may
    be all there is, while dates of what follows the target are missing in some rows.
    """
    if len(gains) < 2:
        return []
    return [
        f"Column {row['column']!r} alone reaches {100 * row['fraction']:.0f} % of {ranking[0]['label']}'s gain over "
        "the baseline: is it known before the target is?"
        for row in gains
        if row["fraction"] >= LEAK and not row.get("time") and (row.get("known") is None or row["known"] > KNOWN)
    ]


def source_column(name: str, columns: list[str]) -> str:
    """The column of the table that a feature comes from: parts of a date are named after it."""
    if name in columns:
        return name
    sources = [column for column in columns if name.startswith(f"{column} ")]
    return max(sources, key=len, default=name)


@dataclass(frozen=True)
class _CodedColumn:
    """A column as codes (n,) from 0 on; `ordered`: ranks of numbers, missing ones lowest; `line` (n,): the numbers."""

    codes: Ints
    ordered: bool
    line: Floats | None = None


def _codings(column: pd.Series, *, amounts: bool) -> list[_CodedColumn]:
    codes, values = pd.factorize(column, use_na_sentinel=True, sort=pd.api.types.is_numeric_dtype(column))
    as_codes = _CodedColumn(np.asarray(codes, dtype=np.int64) + 1, ordered=False)
    if not is_number(column):
        return [as_codes]
    models = [_CodedColumn(as_codes.codes, ordered=True)]
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if amounts and np.isfinite(numbers).any():
        numbers = np.where(np.isfinite(numbers), numbers, np.nanmedian(numbers[np.isfinite(numbers)]))
        models.append(_CodedColumn(as_codes.codes, ordered=True, line=numbers / (np.abs(numbers).max() or 1.0)))
    return [*models, as_codes] if len(values) <= _MAX_CATEGORIES * len(column) else models


def _score_of_contender(name: str, fold: _GainFold, metric: Metric, folder: Path) -> float | None:
    prediction = load_prediction(folder, name, fold.number)
    if prediction is None or len(prediction) != fold.n_test:
        return None
    return metric.of(fold.y_test, prediction[fold.kept], fold.weight_test)


class _GainFold:
    """A fold's rows, at most `MAX_ROWS` of each part, with targets per unit of exposure and less the offset."""

    def __init__(self, prepared: Prepared, train: Ints, test: Ints, number: int, seed: int) -> None:
        random = np.random.RandomState(seed)
        self.number, self.n_test = number, len(test)
        self.classes = len(prepared.classes) if prepared.task in CLASSES else 0
        self.kept = _some(len(test), random)
        self.train, self.test = train[_some(len(train), random)], test[self.kept]
        y, weight = prepared.y, prepared.weight
        row_weight = prepared.weights(self.train)
        self.y_test, self.weight_test = y[self.test], None if weight is None else weight[self.test]
        self.exposure, self.offset = None, None
        if self.classes:
            target = np.zeros((len(self.train), self.classes))
            target[np.arange(len(self.train)), y[self.train]] = 1.0
        else:
            target = y[self.train].astype(np.float64)[:, None]
        if prepared.exposure is not None:
            exposure = prepared.exposure[self.train]
            target, row_weight = target / exposure[:, None], row_weight * exposure
            self.exposure = prepared.exposure[self.test]
        if prepared.offset is not None:
            target = target - prepared.offset[self.train][:, None]
            self.offset = prepared.offset[self.test]
        self.target, self.weight = target, row_weight

    def scores(self, coding: _CodedColumn, metrics: list[Metric]) -> list[float]:
        """The scores on the test rows of a model of these codes."""
        train, test = coding.codes[self.train], coding.codes[self.test]
        fitted, start = np.zeros((len(train), 1)), np.zeros((len(test), 1))
        if coding.line is not None:
            fitted, start = self._line(coding.line[self.train], coding.line[self.test])
        target = self.target - fitted
        if coding.ordered:
            train, test = self._leaves(train, test, target)
        means = self._shrunk_means(train, int(max(train.max(), test.max())) + 1, target)
        prediction = start + means[test]
        if not self.classes:
            prediction = prediction[:, 0]
            prediction = prediction if self.exposure is None else prediction * self.exposure
            prediction = prediction if self.offset is None else prediction + self.offset
        return [metric.of(self.y_test, prediction, self.weight_test) for metric in metrics]

    def _line(self, train: Floats, test: Floats) -> tuple[Floats, Floats]:
        """A least-squares line through the training rows, without its constant: at these, and at the test rows."""
        centre = np.average(train, weights=self.weight)
        apart = train - centre
        spread = float(self.weight @ apart**2)
        slope = float((self.weight * apart) @ self.target[:, 0]) / spread if spread > 0 else 0.0
        return (slope * apart)[:, None], (slope * (test - centre))[:, None]

    def _leaves(self, train: Ints, test: Ints, target: Floats) -> tuple[Ints, Ints]:
        """Leaves of a tree over the ranks; best splits first, so that long tails get leaves of their own."""
        tree = DecisionTreeRegressor(
            max_leaf_nodes=_MAX_LEAVES, min_samples_leaf=min(_MIN_LEAF_ROWS, max(1, len(train) // 20)), random_state=0
        )
        scale = np.abs(target).max() or 1.0
        tree.fit(train[:, None].astype(np.float32), target / scale, sample_weight=self.weight)
        return (
            np.asarray(tree.apply(train[:, None].astype(np.float32)), dtype=np.int64),
            np.asarray(tree.apply(test[:, None].astype(np.float32)), dtype=np.int64),
        )

    def _shrunk_means(self, codes: Ints, n_codes: int, target: Floats) -> Floats:
        """Means by code, shrunk towards the mean as far as leave-one-out errors favour."""
        mean, average = np.average(target, axis=0, weights=self.weight), self.weight.mean() or 1.0
        count = np.bincount(codes, self.weight, n_codes)
        sums = np.stack([np.bincount(codes, self.weight * column, n_codes) for column in target.T], axis=1)
        errors = []
        for rows in _SHRINKAGES:
            others = np.maximum(count[codes] - self.weight, 0.0) + rows * average
            left_out = (sums[codes] - self.weight[:, None] * target + rows * average * mean) / others[:, None]
            errors.append(float(self.weight @ ((target - left_out) ** 2).sum(axis=1)))
        prior = _SHRINKAGES[int(np.argmin(errors))] * average
        return np.asarray((sums + prior * mean) / (count + prior)[:, None])


def _some(n: int, random: np.random.RandomState) -> Ints:
    """Indices of at most `MAX_ROWS` of n rows, in order."""
    return np.arange(n) if n <= MAX_ROWS else np.sort(random.permutation(n)[:MAX_ROWS])


MAX_LEVEL_ROWS = 100_000
LEVEL_SECONDS = 30.0
"""No further column is begun after so long."""


def column_levels(prepared: Prepared, seed: int) -> list[dict[str, Any]]:
    """By column, best first: Level, number of parts, and the parts as text; of some rows, as far as time allows."""
    from tabsym.encoders import MODLEncoder

    if prepared.task not in CLASSES:  # partitions of two numbers take far longer: few rows, in which little is visible
        return []
    y = prepared.y
    days = {  # as the dates they are, so that intervals are of dates
        name: np.datetime64(0, "s") + (prepared.X[name].to_numpy() * 86400).round().astype("timedelta64[s]")
        for name in prepared.features.parts
    }
    X = prepared.X.assign(**days) if days else prepared.X
    if len(y) > MAX_LEVEL_ROWS:
        rows = np.sort(np.random.RandomState(seed).permutation(len(y))[:MAX_LEVEL_ROWS])
        X, y = X.iloc[rows], y[rows]
    if len(np.unique(y)) < 2:
        return []
    out, begin = [], time.monotonic()
    for name in X.columns:
        if time.monotonic() - begin > LEVEL_SECONDS:
            break
        encoder = MODLEncoder(n_candidates=1, target_type="classes", cols="all", random_state=seed).fit(X[[name]], y)
        fitted = encoder.partitions_[name]
        level, parts = encoder.levels_[name], fitted.partition.n_parts
        out.append({"column": name, "level": level, "parts": parts, "labels": fitted.labels})
    return sorted(out, key=lambda row: -row["level"])
