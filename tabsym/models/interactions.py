"""interactions="auto" in the estimators: out-of-fold models, the selection, and the table of selected interactions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.design.model_spec import ModelSpec, Read
from tabsym.design.program import Rows
from tabsym.design.rows import TargetUnits
from tabsym.design.sources import Bins, Symbols
from tabsym.interactions.gains import CodeColumn, HeldOutGains, Sorted
from tabsym.interactions.search import AutoInteractions, Chosen, choose_crosses
from tabsym.losses.constants import best_constant
from tabsym.losses.loss import LOSSES, Loss
from tabsym.losses.weights import weights_within_classes
from tabsym.solvers.sgd.kernels import first_rows
from tabsym.solvers.sgd.state import take_rows

Floats = NDArray[np.float64]


def find_crosses(
    loss: Loss,
    n_outputs: int,
    spec: ModelSpec,
    codes: Mapping[Read, NDArray[Any]],
    rows: Rows,
    options: AutoInteractions,
    rng: np.random.RandomState,
    n_jobs: int | None,
    apart: Collection[str] = (),
    cuts: Mapping[str, CodeColumn] | None = None,
) -> list[Chosen]:
    """Select interactions of the categorical columns and bins of an additive model, on its training rows.

    `codes` and `rows` are the coded table, in the same order; the codes of `rows` are not used. Categories are numbered
    in order of appearance in the sample, so that the order of categories in a data frame has no effect; nor has that of
    its columns, of which those of equal size are taken in an order of their content. `apart`: columns that are in none.
    `cuts`: numbers in the bins by which their interactions are evaluated; these have main effects too, so that none is
    credited to an interaction.
    """
    n_rows, blocks, sizes = len(rows.y), spec.blocks, spec.sizes
    columns = {read.block: CodeColumn(blocks[read.block].name, own, sizes[read.block]) for read, own in codes.items()}
    crossable = [
        block
        for block in columns
        if isinstance(_source(spec, block), (Bins, Symbols)) and not set(blocks[block].columns) & set(apart)
    ]
    if len(crossable) < 2 or n_rows < 2 * options.folds:
        return []
    order = rng.permutation(n_rows)[: options.max_rows]
    rank = {blocks[block].name: number for number, block in enumerate(crossable)}
    crossed = [(cuts or {}).get(blocks[block].name, columns[block]) for block in crossable]
    more = [column for column, block in zip(crossed, crossable, strict=True) if column is not columns[block]]
    mains, crossed = (_in_order(own, order) for own in ([*columns.values(), *more], crossed))
    by_category = _by_symbol(crossed[-1].codes, crossed[-1].size)
    order = order[by_category]
    mains, crossed = (
        [replace(column, codes=column.codes.take(by_category)) for column in own] for own in (mains, crossed)
    )
    rows = take_rows(rows, order, n_outputs)
    rows = TargetUnits.of(rows, loss).rows(rows)
    x, y, weight, offset = rows.x, rows.y, rows.weight, rows.offset.reshape(-1, n_outputs)
    if loss.for_classes and len(weight):
        weight = weights_within_classes(y, weight)
    loss = _loss_of_evidence(loss)
    fold = _folds(y if loss.for_classes else None, len(y), options.folds, rng)
    scores = _constant_scores(loss, y, weight, offset, n_outputs)
    held_out = HeldOutGains(np.repeat(scores[:, :, None], options.folds, 2), fold, y, weight, loss, options.penalty)
    held_out.fit_main_effects(mains, sorted(np.ascontiguousarray(x.T), key=_checksum))
    chosen = choose_crosses(crossed, held_out, options, n_jobs)
    return [replace(one, columns=tuple(sorted(one.columns, key=rank.__getitem__))) for one in chosen]


def _in_order(columns: Iterable[CodeColumn], order: NDArray[np.signedinteger[Any]]) -> list[CodeColumn]:
    """Columns on the rows in `order`, their categories numbered by appearance; the smallest first."""
    found = [_by_appearance(column, order) for column in columns]
    return sorted(found, key=lambda column: (column.size, _checksum(column.codes)))


def _checksum(values: NDArray[Any]) -> int:
    return crc32(values.tobytes())


def _constant_scores(loss: Loss, y: Floats, weight: Floats, offset: Floats, n_outputs: int) -> Floats:
    """Linear predictors (K, n) of the intercept-only model."""
    constant = best_constant(loss, y, weight if len(weight) else None, n_outputs, offset if len(offset) else None)
    return np.asarray(constant[:, None] + (offset.T if len(offset) else np.zeros(len(y))))


def _by_appearance(column: CodeColumn, order: NDArray[np.signedinteger[Any]]) -> CodeColumn:
    """The column's rows in `order`, with codes numbered by first appearance."""
    codes = column.codes.take(order)
    first = np.full(column.size, -1, dtype=np.int64)
    first_rows(codes, first)
    rank = np.empty(column.size, dtype=np.int32)
    rank[np.argsort(np.where(first < 0, len(codes), first), kind="stable")] = np.arange(column.size, dtype=np.int32)
    return replace(column, codes=np.where(codes >= 0, rank[codes], np.int32(-1)))


def _by_symbol(codes: NDArray[np.int32], size: int) -> NDArray[np.signedinteger[Any]]:
    """The rows (n,) sorted by the categories of a column, for memory locality of sums by category."""
    return np.concatenate([np.flatnonzero(codes < 0), Sorted(CodeColumn("", codes, size)).rows[1]])


def _loss_of_evidence(loss: Loss) -> Loss:
    """The loss for interaction selection: logistic instead of hinge, which has no second derivative."""
    return LOSSES["logistic"] if loss.name == "hinge" else loss


def table_of_crosses(chosen: Sequence[Chosen]) -> pd.DataFrame:
    """The selected interactions, in order: name, order, mean held-out gain per row, standard error, round, size."""
    return pd.DataFrame(
        {
            "interaction": pd.Series([":".join(c.columns) for c in chosen], dtype=object),
            "order": pd.Series([len(c.columns) for c in chosen], dtype=np.int64),
            "gain": pd.Series([c.gain for c in chosen], dtype=np.float64),
            "error": pd.Series([c.error for c in chosen], dtype=np.float64),
            "round": pd.Series([c.round for c in chosen], dtype=np.int64),
            "coefficients": pd.Series([c.coefs for c in chosen], dtype=np.int64),
        }
    )


def _source(spec: ModelSpec, block: int) -> Any:
    index = spec.blocks[block].source
    return None if index is None else spec.sources[index]


def _folds(classes: Floats | None, n_rows: int, n_folds: int, rng: np.random.RandomState) -> NDArray[np.int8]:
    """A random fold for each row (n,), stratified by class and by runs of consecutive rows.

    Runs are the rows of a category of the column with most categories: of two rows, one is for training, one for
    testing.
    """
    order = np.arange(n_rows)
    if classes is not None:
        order = np.argsort(classes.astype(np.int16), kind="stable")  # radix sort, for 16-bit integers
    starts = rng.randint(n_folds, size=n_rows // n_folds + 1)
    fold = np.empty(n_rows, dtype=np.int8)
    fold[order] = (np.repeat(starts, n_folds)[:n_rows] + np.arange(n_rows)) % n_folds
    return fold
