"""What a symbol that fit has not seen adds to a score: what symbols add that occur in rows like its own.

A row's working response is what its symbol adds plus what is left of the row's target, in units of the score. By symbol
these are what document regression takes for targets, so that a parameter counts for as much as its rows have shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from tabsym.codes import UNSEEN, encode_column
from tabsym.estimators.training_data import Training
from tabsym.table import Table
from tabsym.tiws.column import FittedColumn, Method, Observed, unseen_rows
from tabsym.tiws.counts import Counting, Symbols, Words, codes_of
from tabsym.tiws.regression import Sums
from tabsym.wide.model import WideModel
from tabsym.wide.sources import Symbols as SymbolSource
from tabsym.wide.tables import coefficient_frame

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Similar:
    """The seen symbols of each column: words of all columns, and what each symbol adds."""

    words: tuple[Words, ...]
    offsets: NDArray[np.int64]
    columns: dict[str, FittedColumn]

    @classmethod
    def fit(cls, model: WideModel, training: Training, n_jobs: int | None) -> Similar:
        """From an additive model and the rows that it was trained on."""
        table, blocks, weight = training.table, _plain_blocks(model), training.weight
        left = _left_over(model, training, n_jobs)
        counting = Counting("quantile", n_jobs)
        counts = counting.first_piece(table, list(blocks), (left, False), weight, whole=True)
        places = {column.name: place for place, column in enumerate(table.columns)}
        fitted = {}
        for name, block in blocks.items():
            number = places[name]
            words = counts.words[number]
            assert isinstance(words, Symbols)
            symbols = words.alphabet.symbols
            found = coefficient_frame(model, block, [str(k) for k in range(model.n_outputs)]).iloc[:, : model.n_outputs]
            own = found.to_numpy()[found.index.get_indexer(pd.Index(symbols, dtype=object))]
            codes = words.codes(table[name])
            sums = Sums.count(codes, own[codes] + left, weight, len(symbols), np.zeros(model.n_outputs))
            fitted[name] = FittedColumn.fit(number, Method(simplex=False), symbols.tolist(), counts.pairs, sums)
        return cls(counts.words, counts.offsets, fitted)

    def add(self, table: Table, n_outputs: int) -> Floats:
        """What unseen symbols add to the scores (n, K) of a table."""
        out = np.zeros((len(table), n_outputs))
        words: list[NDArray[np.int32]] | None = None
        for name, fitted in self.columns.items():
            own = self.words[fitted.number]
            assert isinstance(own, Symbols)
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
    """The blocks that hold one column's symbols, by that column."""
    layout = model.layout
    return {
        block.columns[0]: place
        for place, block in enumerate(layout.blocks)
        if block.source is not None
        and len(block.columns) == 1
        and block.name == block.columns[0]
        and isinstance(layout.sources[block.source], SymbolSource)
    }


def _left_over(model: WideModel, training: Training, n_jobs: int | None) -> Floats:
    """What the score of each row (n, K) would have to change by: minus its slope over the mean curvature."""
    margins = model.margins(training.table, n_jobs)
    if training.offset is not None:
        margins = margins + training.offset
    if model.n_outputs == 1:
        _, slope, bend = model.loss.rows(margins, training.y)
        slopes, bends = slope[:, None], bend[:, None]
    else:
        shares = softmax(margins, axis=1)
        slopes = shares - np.eye(model.n_outputs)[training.y.astype(np.int64)]
        bends = shares * (1 - shares)
    mean = np.average(bends, axis=0, weights=training.weight)
    return np.asarray(-slopes / np.maximum(mean, np.finfo(float).tiny))
