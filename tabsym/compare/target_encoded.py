"""category_encoders' target encoding, whose fitted state is written as arrays: its own is pandas series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from category_encoders import OrdinalEncoder, TargetEncoder
from category_encoders.wrapper import PolynomialWrapper

from tabsym.frame.dtypes import read_type, written_type


class PlainTargetEncoder(TargetEncoder):
    """`TargetEncoder`; files without code can hold it."""

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
    return state if types is None else {**state, _TYPES: [written_type(one, "pandas") for one in types]}


def _types_read(state: dict[str, Any]) -> dict[str, Any]:
    types = state.get(_TYPES)
    return dict(state) if types is None else {**state, _TYPES: [read_type(one) for one in types]}


_TYPES = "feature_dtypes_in_"


def _arrays(series: pd.Series) -> list[Any]:
    """Values, and the index as objects with the name of its type."""
    return [series.to_numpy(), series.index.to_numpy(dtype=object), str(series.index.dtype)]


def _series(written: list[Any]) -> pd.Series:
    values, index, dtype = written
    return pd.Series(np.asarray(values), index=pd.Index(index, dtype=dtype))
