"""``handle_unknown="similar"`` of the wide models: what an unknown category contributes to the linear predictor.

It is estimated from known categories with similar context. (The option of `MODLEncoder` is `encoders.modl_column`'s,
that of jitter trees `jitter.tree`'s; context and similarity are of `tabsym.tiws` for all of them.)

A row's working response is its category's coefficient plus the row's working residual, on the scale of the linear
predictor. By category these are the targets of a regression on co-occurrence profiles, in which a coefficient has the
precision of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from tabsym.categories import UNSEEN, encode_column
from tabsym.design.sources import Symbols as SymbolSource
from tabsym.frame import Table
from tabsym.models.data import Training
from tabsym.models.model import WideModel, coefficient_frame
from tabsym.tiws.column import FittedColumn, Method, Observed, unseen_rows
from tabsym.tiws.counts import CategoryWords, ContextCounting, Words, codes_of
from tabsym.tiws.regression import Sums

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Similar:
    """The known categories of each column: the tokens of all columns, and the coefficients by category."""

    words: tuple[Words, ...]
    offsets: NDArray[np.int64]
    columns: dict[str, FittedColumn]

    @classmethod
    def fit(cls, model: WideModel, training: Training, n_jobs: int | None) -> Similar:
        """Fit to an additive model and its training rows."""
        table, blocks, weight = training.table, _plain_blocks(model), training.weight
        left = _left_over(model, training, n_jobs)
        counting = ContextCounting("quantile", n_jobs)
        counts = counting.first_piece(table, list(blocks), (left, False), weight, whole=True)
        indices = {column.name: index for index, column in enumerate(table.columns)}
        fitted = {}
        for name, block in blocks.items():
            number = indices[name]
            words = counts.words[number]
            assert isinstance(words, CategoryWords)
            categories = words.alphabet.symbols
            found = coefficient_frame(model, block, [str(k) for k in range(model.n_outputs)]).iloc[:, : model.n_outputs]
            own = found.to_numpy()[found.index.get_indexer(pd.Index(categories, dtype=object))]
            codes = words.codes(table[name])
            sums = Sums.count(codes, own[codes] + left, weight, len(categories), np.zeros(model.n_outputs))
            fitted[name] = FittedColumn.fit(number, Method(simplex=False), categories.tolist(), counts.pairs, sums)
        return cls(counts.words, counts.offsets, fitted)

    def add(self, table: Table, n_outputs: int) -> Floats:
        """The contribution of unknown categories to the linear predictors (n, K) of a table."""
        out = np.zeros((len(table), n_outputs))
        words: list[NDArray[np.int32]] | None = None
        for name, fitted in self.columns.items():
            own = self.words[fitted.number]
            assert isinstance(own, CategoryWords)
            raw = encode_column(table[name])
            codes = own.alphabet.transform(raw)
            if not (codes == UNSEEN).any():
                continue
            words = codes_of(table, self.words) if words is None else words
            nothing = Observed.none(int(self.offsets[-1]))
            found = unseen_rows(codes, raw, words, self.offsets, "batch", nothing)
            out[found.rows] += fitted.unseen_estimates(found.unseen)[found.which]
        return out


def _plain_blocks(model: WideModel) -> dict[str, int]:
    """The blocks of categorical main effects, by column."""
    spec = model.spec
    return {
        block.columns[0]: index
        for index, block in enumerate(spec.blocks)
        if block.source is not None
        and not block.fixed
        and len(block.columns) == 1
        and block.name == block.columns[0]
        and isinstance(spec.sources[block.source], SymbolSource)
    }


def _left_over(model: WideModel, training: Training, n_jobs: int | None) -> Floats:
    """Working residuals of the linear predictor (n, K): minus the gradient over the mean Hessian."""
    margins = model.margins(training.table, n_jobs)
    if training.offset is not None:
        margins = margins + training.offset
    if model.n_outputs == 1:
        _, slope, hess = model.loss.rows(margins, training.y)
        slopes, hessians = slope[:, None], hess[:, None]
    else:
        shares = softmax(margins, axis=1)
        slopes = shares - np.eye(model.n_outputs)[training.y.astype(np.int64)]
        hessians = shares * (1 - shares)
    mean = np.average(hessians, axis=0, weights=training.weight)
    return np.asarray(-slopes / np.maximum(mean, np.finfo(float).tiny))
