"""Calibration of every column of a predictor, on some labelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from tabsym.codes import UNSEEN
from tabsym.encoders import TIWSEncoder
from tabsym.jitter.asking import found_link, name_of, score_of
from tabsym.jitter.calibrating import Asking, Calibration, Sample, calibrate_column
from tabsym.jitter.losses import Losses
from tabsym.jitter.replacing import source_of, take, without_strange_levels
from tabsym.jitter.strangers import road_of
from tabsym.table import check_same_rows, check_weights, match_features, read_table
from tabsym.tiws.counting import codes_of

Floats = NDArray[np.float64]
Places = NDArray[np.integer]
_LOOKED_AT = 64  # rows by which a link is found


def calibrated(
    who: str, model: Any, encoder: TIWSEncoder, names: list[str], average: str,
    data: tuple[Any, Any, Any], loss: str | None, n_rows: int, random_state: Any,
) -> dict[str, Calibration]:  # fmt: skip
    """What is found for each column; `data`: table, target and weights."""
    X, y, sample_weight = data
    if not isinstance(n_rows, (int, np.integer)) or isinstance(n_rows, bool) or n_rows < 1:
        raise ValueError(f"n_rows={n_rows!r} is not possible; use a count of 1 or more.")
    check_same_rows(X, y=y, sample_weight=sample_weight)
    table = match_features(encoder, read_table(X, who=who))
    weight = check_weights(sample_weight, len(table))
    weight = np.ones(len(table)) if weight is None else weight
    classes = np.asarray(model.classes_) if is_classifier(model) else None
    losses = Losses.check(loss, y, len(table), classes, who)
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
    asking = _asking(model, average, losses, take(source, rows[:_LOOKED_AT]))
    random = check_random_state(random_state)
    found = {}
    for name in names:
        some = _stratified(rows, losses, codes[name], n_rows, random)
        sample = Sample(source, table, some, codes[name][some], weight[some])
        found[name] = calibrate_column(encoder.columns_[name].fitted, sample, asking)
    return found


def _asking(model: Any, average: str, losses: Losses, some: Any) -> Asking:
    """The model as calibration asks it; `some` rows show its link."""
    if losses.name == "log_loss" and not hasattr(model, "predict_proba"):
        raise ValueError(f"calibrate needs predict_proba, which {name_of(model)} lacks; leave calibrate out.")
    answer = model.predict_proba if losses.name == "log_loss" else model.predict
    if average == "probability":
        return Asking(answer, lambda answers: answers, losses, road_of(model))
    score = score_of(model)
    return Asking(score, found_link(score(some), answer(some)), losses, road_of(model))


def _stratified(rows: Places, losses: Losses, codes: Places, n_rows: int, random: Any) -> Places:
    """Some of the rows, evenly from all classes and categories (of numbers: from all categories, small and large)."""
    if len(rows) <= n_rows:
        return rows
    target, symbol, tie = losses.target[rows], codes[rows], random.permutation(len(rows))
    by_class = losses.name == "log_loss"
    order = np.lexsort((tie, symbol, target) if by_class else (tie, target, symbol))
    at = ((np.arange(n_rows) + random.random_sample()) * len(rows) / n_rows).astype(np.int64)
    return np.sort(rows[order[at]])
