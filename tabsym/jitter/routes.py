"""Unseen values sent through a model's trees, in other ways than by replacing them; for comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from tabsym.encoders import NativePipeline
from tabsym.integrations import available, load_adapter
from tabsym.jitter import hist_trees
from tabsym.jitter.batch import Batch
from tabsym.jitter.mixture import Donors
from tabsym.jitter.scores import is_native, library
from tabsym.jitter.trees import Trees, Unseen

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Router:
    """A model's trees, and what makes the matrix they take from a user's table."""

    trees: Trees
    matrix: Callable[[Any], Floats]

    @classmethod
    def of(cls, model: Any) -> Router:
        """Of a booster behind `NativeCategories`, or a `ValueError`."""
        if isinstance(model, NativePipeline) and is_native(model) and len(model.steps) == 2:
            ready, booster = model[:-1].transform, model.steps[-1][1]
            if isinstance(booster, (HistGradientBoostingClassifier, HistGradientBoostingRegressor)):
                return cls(hist_trees.read_trees(booster), lambda X: hist_trees.matrix_of(booster, ready(X)))
            name = library(booster)
            read = getattr(load_adapter(name), "read_trees", None) if name in available() else None
            if read is not None:
                kind = np.float32 if name == "xgboost" else np.float64
                return cls(read(booster), lambda X: matrix_of(ready(X)).astype(kind).astype(np.float64))
        raise ValueError(
            "Routes other than 'mixture' read trees, of LightGBM, XGBoost or HistGradientBoosting behind "
            "NativeCategories (such as an adapter's native model); for this model use route='mixture'."
        )

    def scores(self, batch: Batch, route: str, max_donors: int | None = None) -> NDArray[Any]:
        """Raw scores (r, ...) of a batch's rows with unseen values."""
        rows = np.arange(len(batch.rows))
        first = [np.where(one.document < 0, -1, 0) for one in batch.donors]
        matrix = self.matrix(batch.frame(rows, first))
        codes = [self._codes(batch, place) for place in range(len(batch.columns))]
        tables = [_by_code(one.weights, code, max_donors) for one, code in zip(batch.donors, codes, strict=True)]
        unseen = _stacked([one.place for one in batch.columns], batch.donors, tables)
        return self.trees.scores(matrix, unseen, route)

    def _codes(self, batch: Batch, place: int) -> NDArray[np.int64]:
        """The code of each of a column's donors (-1 for missing)."""
        n = batch.donors[place].weights.shape[1]
        row = int(np.argmax(batch.donors[place].document >= 0))
        symbols = [np.full(n, -1 if one.document[row] < 0 else 0) for one in batch.donors]
        symbols[place] = np.arange(n)
        matrix = self.matrix(batch.frame(np.full(n, row), symbols))
        values = matrix[:, batch.columns[place].place]
        return np.where(np.isnan(values), -1, np.nan_to_num(values)).astype(np.int64)


def matrix_of(frame: pd.DataFrame) -> Floats:
    """A frame of `NativeCategories` as numbers and codes, missing as NaN."""
    out = np.empty(frame.shape)
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = column.cat.codes.to_numpy()
            out[:, place] = np.where(codes < 0, np.nan, codes)
        else:
            out[:, place] = column.to_numpy()
    return out


def _by_code(weights: Floats, codes: NDArray[np.int64], max_donors: int | None) -> Floats:
    """Weights (documents, codes + 1) of a model's codes, of which several donors may have one; missing last."""
    if max_donors is not None and max_donors < weights.shape[1]:
        order = np.argsort(-weights, axis=1, kind="stable")[:, max_donors:]
        weights = weights.copy()
        np.put_along_axis(weights, order, 0.0, axis=1)
        weights /= weights.sum(axis=1, keepdims=True)
    width = int(codes.max(initial=-1)) + 2
    out = np.zeros((width, len(weights)))
    np.add.at(out, np.where(codes < 0, width - 1, codes), weights.T)
    return np.ascontiguousarray(out.T)


def _stacked(places: list[int], donors: list[Donors], tables: list[Floats]) -> Unseen:
    """The columns' documents numbered through."""
    widths = [table.shape[1] for table in tables]
    weights = np.zeros((sum(map(len, tables)), max(widths)))
    document = np.full((len(donors[0].document), len(donors)), -1, dtype=np.int64)
    first = 0
    for place, (one, table) in enumerate(zip(donors, tables, strict=True)):
        weights[first : first + len(table), : table.shape[1]] = table
        document[:, place] = np.where(one.document < 0, -1, one.document + first)
        first += len(table)
    return Unseen(places, document, widths, weights)
