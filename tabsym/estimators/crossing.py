"""interactions="auto" in the estimators: models that have not seen a fold, the choice, and the table that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.wide.crosses import AutoCrosses, Chosen, choose_crosses
from tabsym.wide.evidence import CodeColumn, Evidence, Sorted
from tabsym.wide.layout import Layout
from tabsym.wide.losses import LOSSES, Loss
from tabsym.wide.program import Rows
from tabsym.wide.sources import Bins, Symbols

Floats = NDArray[np.float64]


def find_crosses(
    loss: Loss,
    n_outputs: int,
    layout: Layout,
    codes: Mapping[tuple[int, tuple[str, ...]], NDArray[Any]],
    rows: Rows,
    options: AutoCrosses,
    rng: np.random.RandomState,
    n_jobs: int | None,
) -> list[Chosen]:
    """Crosses of the symbolic columns of an additive model, chosen on its training rows.

    `codes` and `rows` are the table as the layout codes it, in the same order; of `rows` the codes are not read.
    """
    n_rows, blocks, sizes = len(rows.y), layout.blocks, layout.sizes
    columns = {block: CodeColumn(blocks[block].name, column, sizes[block]) for (block, _), column in codes.items()}
    crossable = [block for block in columns if isinstance(_source(layout, block), (Bins, Symbols))]
    if len(crossable) < 2 or n_rows < 2 * options.folds:
        return []
    order = rng.permutation(n_rows)[: options.max_rows]
    largest = max((columns[block] for block in crossable), key=lambda column: column.size)
    order = order[_by_symbol(largest.codes[order], largest.size)]
    columns = {block: replace(column, codes=column.codes.take(order)) for block, column in columns.items()}
    x, y, weight, offset = (part[order] if len(part) else part for part in (rows.x, rows.y, rows.weight, rows.offset))
    loss = _loss_of_evidence(loss)
    fold = _folds(y if loss.for_classes else None, len(y), options.folds, rng)
    scores = _constant_scores(loss, y, weight, offset, n_outputs)
    evidence = Evidence(np.repeat(scores[:, :, None], options.folds, 2), fold, y, weight, loss, options.penalty)
    evidence.settle(list(columns.values()), list(np.ascontiguousarray(x.T)))
    return choose_crosses([columns[block] for block in crossable], evidence, options, n_jobs)


def _constant_scores(loss: Loss, y: Floats, weight: Floats, offset: Floats, n_outputs: int) -> Floats:
    """Scores (K, n) before anything is learned."""
    constant = loss.best_constant(y, weight if len(weight) else None, n_outputs)
    return np.asarray(constant[:, None] + (offset if len(offset) else np.zeros(len(y))))


def _by_symbol(codes: NDArray[np.int32], size: int) -> NDArray[np.signedinteger[Any]]:
    """The rows (n,) in the order of a column's symbols: what is summed together is then near in memory."""
    return np.concatenate([np.flatnonzero(codes < 0), Sorted(CodeColumn("", codes, size)).rows[1]])


def _loss_of_evidence(loss: Loss) -> Loss:
    """The loss that crosses are weighed by: of the hinge, which has no curvature to make steps of, the logistic."""
    return LOSSES["logistic"] if loss.name == "hinge" else loss


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


def _source(layout: Layout, block: int) -> Any:
    place = layout.blocks[block].source
    return None if place is None else layout.sources[place]


def _folds(classes: Floats | None, n_rows: int, n_folds: int, rng: np.random.RandomState) -> NDArray[np.int8]:
    """A fold for each row (n,), at random, with every class, and in it every run of rows, spread evenly.

    Runs are the rows of a symbol of the largest alphabet: of two rows one teaches and one tests.
    """
    order = np.arange(n_rows)
    if classes is not None:
        order = np.argsort(classes.astype(np.int16), kind="stable")  # by radix, where 16 bits do
    starts = rng.randint(n_folds, size=n_rows // n_folds + 1)
    fold = np.empty(n_rows, dtype=np.int8)
    fold[order] = (np.repeat(starts, n_folds)[:n_rows] + np.arange(n_rows)) % n_folds
    return fold
