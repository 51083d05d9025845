"""category_encoders' target encoding with weights of rows, and a fitted state of arrays: its own is pandas series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from category_encoders import OrdinalEncoder, TargetEncoder
from category_encoders.utils import finalize_encoding_mapping
from category_encoders.wrapper import PolynomialWrapper

from tabsym.frame.dtypes import read_type, written_type


class PlainTargetEncoder(TargetEncoder):
    """`TargetEncoder`, without hierarchies; files without code can hold it.

    With weights a category counts as many rows as it has weight, as if rows were repeated.
    """

    _weight: Any = None  # of the training rows, while it is fitted

    def fit(self, X: pd.DataFrame, y: Any = None, sample_weight: Any = None, **options: Any) -> PlainTargetEncoder:
        """As its own, with weights of rows (n_rows,)."""
        self._weight = self._weight if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        try:
            super().fit(X, y, **options)
        finally:
            self.__dict__.pop("_weight", None)
        return self

    def fit_target_encoding(self, X: pd.DataFrame, y: pd.Series) -> dict[str, Any]:
        """The encoding of each category, by column: its mean, shrunk to that of all rows."""
        if self._weight is None:
            return dict(super().fit_target_encoding(X, y))
        weight, mapping = pd.Series(self._weight, index=y.index), {}
        self._mean = float(np.average(y, weights=self._weight))
        for switch in self.ordinal_encoder.category_mapping:
            column = X[switch["col"]]
            count, total = weight.groupby(column).sum(), (weight * y).groupby(column).sum()
            share = self._weighting(count)
            shrunk = self._mean * (1 - share) + (total / count).fillna(self._mean) * share
            mapping[switch["col"]] = finalize_encoding_mapping(
                shrunk, switch["mapping"], self.handle_unknown, self.handle_missing, self._mean
            )
        return mapping

    def transform(self, X: pd.DataFrame, *args: Any, **options: Any) -> Any:
        """The encoded columns (n_rows, n_columns); flags with missing ones as floats, which LightGBM takes."""
        return super().transform(_with_plain_flags(X), *args, **options)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if state["ordinal_encoder"] is not None:
            numbers = dict(vars(state["ordinal_encoder"]))
            numbers["mapping"] = [
                [switch["col"], _arrays(switch["mapping"]), str(switch["data_type"])] for switch in numbers["mapping"]
            ]
            state["ordinal_encoder"] = _types_written(numbers)
        if state["mapping"] is not None:
            state["mapping"] = {name: _arrays(series) for name, series in state["mapping"].items()}
        return _types_written(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = _types_read(state)
        if state["ordinal_encoder"] is not None:
            numbers = OrdinalEncoder()
            numbers.__dict__.update(_types_read(state["ordinal_encoder"]))
            numbers.mapping = [
                {"col": name, "mapping": _series(series), "data_type": pd.api.types.pandas_dtype(dtype)}
                for name, series, dtype in numbers.mapping
            ]
            state["ordinal_encoder"] = numbers
        if state["mapping"] is not None:
            state["mapping"] = {name: _series(series) for name, series in state["mapping"].items()}
        super().__setstate__(state)


class PlainPolynomialWrapper(PolynomialWrapper):
    """`PolynomialWrapper`; its encoder of the labels, which new rows do not need, is not written."""

    def fit(self, X: pd.DataFrame, y: Any, sample_weight: Any = None, **options: Any) -> PlainPolynomialWrapper:
        """As its own, with weights of rows (n_rows,), which its `PlainTargetEncoder`s get as copies of this one."""
        if sample_weight is not None:
            self.feature_encoder._weight = np.asarray(sample_weight, dtype=np.float64)
        try:
            super().fit(X, y, **options)
        finally:
            self.feature_encoder.__dict__.pop("_weight", None)
        return self

    def transform(self, X: pd.DataFrame, *args: Any, **options: Any) -> Any:
        """The encoded columns (n_rows, n_columns); flags with missing ones as floats, which LightGBM takes."""
        return super().transform(_with_plain_flags(X), *args, **options)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "label_encoder": None}


def _with_plain_flags(X: pd.DataFrame) -> pd.DataFrame:
    flags = [name for name in X.columns if X[name].dtype == pd.BooleanDtype()]
    return X.astype(dict.fromkeys(flags, np.float64)) if flags else X


def _types_written(state: dict[str, Any]) -> dict[str, Any]:
    types = state.get(_TYPES)
    return state if types is None else {**state, _TYPES: [written_type(dtype, "pandas") for dtype in types]}


def _types_read(state: dict[str, Any]) -> dict[str, Any]:
    types = state.get(_TYPES)
    return dict(state) if types is None else {**state, _TYPES: [read_type(dtype) for dtype in types]}


_TYPES = "feature_dtypes_in_"


def _arrays(series: pd.Series) -> list[Any]:
    """Values, and the index as objects with the name of its type."""
    return [series.to_numpy(), series.index.to_numpy(dtype=object), str(series.index.dtype)]


def _series(written: list[Any]) -> pd.Series:
    values, index, dtype = written
    return pd.Series(np.asarray(values), index=pd.Index(index, dtype=dtype))
