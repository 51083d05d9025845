"""A case of the fuzzer: an estimator, its rows, and what it promises of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.base import clone, is_classifier


@dataclass
class Case:
    """An estimator, what it is fitted on, and what it promises; tolerances are relative, None: no such promise."""

    estimator: Any
    X: pd.DataFrame
    y: Any
    task: str
    weight: Any = None
    offset: Any = None
    columns: float | None = None  # the order of columns does not matter
    settled: bool = True  # also for rows unlike those of training; else their answers rest on a weak penalty alone
    size: float = 0.0  # of a usual answer: columns of smaller ones are compared as shares of this
    rows: float | None = None  # nor that of rows
    relative: float | None = None  # nor the unit of weights
    repeats: bool = False  # whole weights are repeated rows
    alone: bool = True  # a row's answer does not depend on the others
    gaps: bool = False  # answers may be NaN
    beats: bool = False  # a constant, on the training rows
    refuses: bool = False  # new symbols
    digits: float = 1e-9  # the same arithmetic in another container
    warned: bool = False  # of what may explain a bad fit

    def __post_init__(self) -> None:
        if "huge" in self.X:  # whose spread float64 has few digits left for
            self.digits, self.relative = 1e-2, None if self.relative is None else 1e-2

        if {"twice", "again"} & set(self.X):  # of two columns of one effect the first has it
            self.columns = None

    def fit(self, X: Any = None, rows: Any = None, weight: Any = None, method: str = "fit", **options: Any) -> Any:
        """A fitted clone (or its `fit_transform`), on other tables, rows or weights where given."""
        rows = np.arange(len(self.X)) if rows is None else rows
        X, weight = self.X.iloc[rows] if X is None else X, self.weight if weight is None else weight
        given = {} if weight is None else {"sample_weight": weight[rows]}
        given |= {} if self.offset is None else {"offset": self.offset[rows]}
        return getattr(clone(self.estimator).set_params(**options), method)(X, self.y[rows], **given)

    def ask(self, model: Any, X: Any, rows: Any = None) -> dict[str, Any]:
        """What a fitted model says, by column."""
        given = {} if self.offset is None else {"offset": self.offset[np.arange(len(X)) if rows is None else rows]}
        if hasattr(model, "transform"):
            return columns_of(model.transform(X), model)
        if not is_classifier(self.estimator):
            return columns_of(model.predict(X, **given))
        method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
        return columns_of(getattr(model, method)(X, **given))


def columns_of(out: Any, model: Any = None) -> dict[str, Any]:
    """The output of any container by column: numbers as float64, dates as nanoseconds, all else as text."""
    if sparse.issparse(out):
        out = out.toarray()
    if isinstance(out, np.ndarray):
        out = pd.DataFrame(out.reshape(len(out), -1)).infer_objects()
        if model is not None:
            out.columns = list(model.get_feature_names_out())
    frame = out.to_pandas() if isinstance(out, pl.DataFrame) else out
    found = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_datetime64_any_dtype(column):
            found[str(name)] = column.astype("datetime64[ns]").astype("int64").to_numpy(float)
        elif pd.api.types.is_numeric_dtype(column):
            found[str(name)] = column.to_numpy(float, na_value=np.nan)
        else:
            found[str(name)] = column.astype(object).where(column.notna(), "(missing)").map(str).to_numpy(object)
    return found


def gap(one: dict[str, Any], two: dict[str, Any], least: float = 0.0) -> float:
    """The greatest difference between answers, as a share of a column's greatest number; text differs by inf.

    `least`: of what the difference is a share where all numbers of the column are smaller.
    """
    if set(one) != set(two):
        return np.inf
    greatest = 0.0
    for name, a in one.items():
        b = two[name]
        if a.dtype == object or b.dtype == object:
            greatest = max(greatest, 0.0 if list(map(_plain, a)) == list(map(_plain, b)) else np.inf)
        elif len(a) != len(b) or (np.isnan(a) != np.isnan(b)).any():
            return np.inf
        elif not np.isnan(a).all():
            size = max(np.nanmax(np.abs(a)), np.nanmax(np.abs(b)), least, 1e-300)
            greatest = max(greatest, float(np.nanmax(np.abs(a - b))) / size)
    return greatest


def _plain(text: Any) -> str:
    return {"True": "1.0", "False": "0.0", "1": "1.0", "0": "0.0", "nan": "(missing)"}.get(str(text), str(text))
