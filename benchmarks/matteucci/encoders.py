"""Encoders of the protocol: the benchmark's own families, and ours.

The target encodings are written here from the paper's descriptions (Matteucci, Arzamasov and Böhm 2023, section 3);
what category_encoders, scikit-learn or skrub has is taken from there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import category_encoders as ce
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from tabsym import MODLEncoder, TIWSEncoder, WideEncoder, WideSGDClassifier
from tabsym import OneHotEncoder as OurOneHotEncoder

UNSEEN = -1.0
"""What the benchmark's target encodings give a symbol they have not seen."""

MAX_SYMBOLS_OF_SUM = 300
"""Sum contrasts make a dense column of every symbol."""


class Drop(TransformerMixin, BaseEstimator):
    """No symbols at all."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Drop:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return np.empty((len(X), 0))


class MeanTarget(TransformerMixin, BaseEstimator):
    """The mean target of a symbol; binned, where asked for, or of symbols of little share together.

    Parameters
    ----------
    n_bins : int, optional
        Round means down to so many equal steps between the least and the greatest.
    least_share : float, optional
        Symbols of a smaller share of the rows are one.
    """

    def __init__(self, n_bins: int | None = None, least_share: float | None = None) -> None:
        self.n_bins = n_bins
        self.least_share = least_share

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> MeanTarget:
        target = pd.Series(np.asarray(y, dtype=float), index=X.index)
        self.rare_ = {name: self._rare(X[name]) for name in X}
        self.means_ = {}
        for name in X:
            means = target.groupby(self._merged(X, name)).mean()
            low, high = means.min(), means.max()
            if self.n_bins is not None and high > low:
                means = low + (high - low) * np.floor(self.n_bins * (means - low) / (high - low)) / self.n_bins
            self.means_[name] = means
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return np.column_stack([self._merged(X, name).map(self.means_[name]).fillna(UNSEEN) for name in X])

    def _rare(self, column: pd.Series) -> set[Any]:
        if self.least_share is None:
            return set()
        shares = column.value_counts(normalize=True)
        return set(shares.index[shares < self.least_share])

    def _merged(self, X: pd.DataFrame, name: str) -> pd.Series:
        return X[name].where(~X[name].isin(self.rare_[name]), "_rare")


class CrossMeanTarget(TransformerMixin, BaseEstimator):
    """Mean targets of the other folds in training; later of all rows ("cv"), or a column of each fold's ("blow-up").

    Parameters
    ----------
    n_splits : int
    blow_up : bool
    """

    def __init__(self, n_splits: int = 5, blow_up: bool = False) -> None:
        self.n_splits = n_splits
        self.blow_up = blow_up

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> CrossMeanTarget:
        self.splits_ = list(StratifiedKFold(self.n_splits, shuffle=True, random_state=1444).split(X, y))
        self.folds_ = [MeanTarget().fit(X.iloc[rest], y[rest]) for rest, _ in self.splits_]
        self.whole_ = MeanTarget().fit(X, y)
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        if self.blow_up:
            return np.hstack([one.transform(X) for one in self.folds_])
        return self.whole_.transform(X)

    def fit_transform(self, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:  # type: ignore[override]
        self.fit(X, y)
        if self.blow_up:
            return self.transform(X)
        out = np.empty(X.shape)
        for one, (_, held) in zip(self.folds_, self.splits_, strict=True):
            out[held] = one.transform(X.iloc[held])
        return out


def of_the_benchmark() -> dict[str, Callable[[], Any]]:
    """By the paper's short names. GLMM encoders are missing: the benchmark's need R."""
    made: dict[str, Callable[[], Any]] = {
        "Drop": Drop,
        "Ord": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        "Count": lambda: ce.CountEncoder(handle_unknown=0),
        "Bin": ce.BinaryEncoder,
        "OH": lambda: OneHotEncoder(handle_unknown="ignore"),
        "Sum": ce.SumEncoder,
        "CB": ce.CatBoostEncoder,
        "WoE": ce.WOEEncoder,
        "MT": MeanTarget,
    }
    made |= {f"ME {m}": lambda m=m: ce.MEstimateEncoder(m=m) for m in (0.1, 1, 10)}
    for n in (2, 5, 10):
        made[f"CV{n} MT"] = lambda n=n: CrossMeanTarget(n)
        made[f"BU{n} MT"] = lambda n=n: CrossMeanTarget(n, blow_up=True)
        made[f"D{n} MT"] = lambda n=n: MeanTarget(n_bins=n)
    made |= {f"PB{share} MT": lambda share=share: MeanTarget(least_share=share) for share in (0.001, 0.01, 0.1)}
    try:
        from skrub import MinHashEncoder
    except ImportError:
        warnings.warn("no MinHashEncoder: skrub is not installed", stacklevel=2)
    else:
        made["MH"] = lambda: ByColumn(MinHashEncoder())
    return made


def ours() -> dict[str, Callable[[], Any]]:
    return {
        "tabsym one-hot": lambda: OurOneHotEncoder(sparse_output=True),
        "tabsym MODL groups": lambda: MODLEncoder(output="onehot", sparse_output=True),
        "tabsym MODL log-odds": lambda: MODLEncoder(output="logodds", return_df=False),
        "tabsym TIWS": lambda: TIWSEncoder(return_df=False),
        "tabsym wide": lambda: WideEncoder(model=WideSGDClassifier(random_state=0)),
    }


class ByColumn(TransformerMixin, BaseEstimator):
    """An encoder of one column, for each of them."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder

    def fit(self, X: pd.DataFrame, y: Any = None) -> ByColumn:
        from sklearn.base import clone

        self.columns_ = {name: clone(self.encoder).fit(X[name]) for name in X}
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return np.hstack([np.asarray(one.transform(X[name])) for name, one in self.columns_.items()])
