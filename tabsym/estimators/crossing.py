"""interactions="auto" in the estimators: models that have not seen a fold, the choice, and the table that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.estimators.wide_options import auto_rate
from tabsym.wide.crosses import AutoCrosses, Chosen, CodeColumn, Evidence, choose_crosses
from tabsym.wide.kernels import predict_margins
from tabsym.wide.model import WideModel
from tabsym.wide.optimizers import Adagrad
from tabsym.wide.program import Rows
from tabsym.wide.sources import Bins, Symbols
from tabsym.wide.training import Options, train

Floats = NDArray[np.float64]

EPOCHS = 2
"""Of the models that crosses are weighed by: more fit the rows they have seen too well to leave pairs their due."""


def find_crosses(
    model: WideModel,
    codes: Mapping[tuple[int, tuple[str, ...]], NDArray[Any]],
    rows: Rows,
    options: AutoCrosses,
    rng: np.random.RandomState,
    n_jobs: int | None,
) -> list[Chosen]:
    """Crosses of the symbolic columns of an additive model, chosen on its training rows.

    `codes` and `rows` are the table as the layout codes it, in the same order.
    """
    crossable = [
        (model.layout.blocks[block].name, column, model.layout.sizes[block])
        for (block, _), column in codes.items()
        if isinstance(_source(model, block), (Bins, Symbols))
    ]
    n_rows = len(rows.y)
    if len(crossable) < 2 or n_rows < 2 * options.folds:
        return []
    kept = None
    if n_rows > options.max_rows:
        kept = np.sort(rng.permutation(n_rows)[: options.max_rows])
        rows = _part_of(rows, kept)
    columns = [
        CodeColumn(name, np.asarray(column if kept is None else column[kept], dtype=np.int32), size)
        for name, column, size in crossable
    ]
    fold = _folds(rows.y if model.loss.for_classes else None, len(rows.y), options.folds, rng)
    scores = _scores_without_folds(model, rows, fold, options.folds, rng)
    evidence = Evidence(scores, fold, rows.y, rows.weight, model.loss, options.penalty)
    return choose_crosses(columns, evidence, options, n_jobs)


def table_of_crosses(chosen: Sequence[Chosen]) -> pd.DataFrame:
    """What was chosen, in order: name, order, mean held-out gain per row and its standard error, round, entries."""
    return pd.DataFrame(
        {
            "cross": pd.Series([":".join(c.columns) for c in chosen], dtype=object),
            "order": pd.Series([len(c.columns) for c in chosen], dtype=np.int64),
            "gain": pd.Series([c.gain for c in chosen], dtype=np.float64),
            "error": pd.Series([c.error for c in chosen], dtype=np.float64),
            "round": pd.Series([c.round for c in chosen], dtype=np.int64),
            "entries": pd.Series([c.entries for c in chosen], dtype=np.int64),
        }
    )


def _source(model: WideModel, block: int) -> Any:
    place = model.layout.blocks[block].source
    return None if place is None else model.layout.sources[place]


def _folds(classes: Floats | None, n_rows: int, n_folds: int, rng: np.random.RandomState) -> NDArray[np.int8]:
    """A fold for each row (n,), at random, every class spread evenly."""
    order = rng.permutation(n_rows)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    fold = np.empty(n_rows, dtype=np.int8)
    fold[order] = np.arange(n_rows) % n_folds
    return fold


def _scores_without_folds(
    model: WideModel, rows: Rows, fold: NDArray[np.int8], n_folds: int, rng: np.random.RandomState
) -> Floats:
    """Scores (n, F K) of all rows under models each of which has not seen one fold."""
    how = Options(Adagrad(), auto_rate(model.layout), epochs=EPOCHS)
    start = how.columns.blank(model.state[:, 0])
    scores = []
    for held_out in range(n_folds):
        seen = _part_of(rows, np.flatnonzero(fold != held_out))
        state = train(seen, start, model.task, how, rng).state
        margins = np.empty((len(rows.y), model.n_outputs))
        predict_margins(rows, model.task.program, model.task.neutral, np.ascontiguousarray(state[:, :1]), margins)
        scores.append(margins)
    return np.ascontiguousarray(np.hstack(scores))


def _part_of(rows: Rows, kept: NDArray[np.signedinteger[Any]]) -> Rows:
    """Some of the rows; weights keep mean 1 but for chance."""
    return Rows(
        rows.codes[kept],
        rows.x[kept],
        rows.y[kept],
        *(column[kept] if len(column) else column for column in (rows.weight, rows.offset)),
    )
