"""The methods, with one face: fit on a table, then the part of each value as a whole number.

A method that cannot treat a kind of column gets it in another form, the same
for all: symbols as their rank by frequency in the training rows (unseen ones
last), missing numbers as a value below all others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from measure import timed
from tables import is_numeric


@dataclass
class Fitted:
    """A fitted method: `encode` gives parts (-1: in no part that fit has seen), `sizes` how many there are."""

    encode: Callable[[pd.DataFrame], pd.DataFrame]
    sizes: dict[str, int]
    fit_s: float
    cpu_s: float
    write_s: float = 0.0
    transform: Callable[[pd.DataFrame], Any] | None = None  # where encode does more than the method's own transform


def fit(name: str, X: pd.DataFrame, y: np.ndarray) -> Fitted:
    """Fit the method called `name` (see METHODS)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[name].fit(X, y)


def warm(name: str) -> None:
    """Fit on a few rows, so that imports and compiling are in no figure."""
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):
        y = np.arange(60) % n_classes
        fit(name, pd.DataFrame({"x": y + rng.normal(size=60), "s": rng.choice(list("abc"), 60)}), y)


def missing_reason(name: str) -> str | None:
    """Why the method cannot run here, or None."""
    need = METHODS[name].needs
    if need == "tabsym.MODLEncoder":
        import tabsym

        return None if hasattr(tabsym, "MODLEncoder") else "this tabsym has no MODLEncoder"
    return None if find_spec(need) else f"{need} is not installed"


# -- tabsym ---------------------------------------------------------------------------


def _fit_tabsym(criterion: str, X: pd.DataFrame, y: np.ndarray) -> Fitted:
    from tabsym import MODLEncoder

    encoder = MODLEncoder(criterion=criterion, output="group", numeric="discretize", cols=list(X.columns))
    _, wall, cpu = timed(lambda: encoder.fit(X, y))
    head = encoder.transform(X.head(2))
    sizes = {name: len(head[name].cat.categories) for name in X.columns}

    def encode(new: pd.DataFrame) -> pd.DataFrame:
        out = encoder.transform(new)
        return pd.DataFrame({name: out[name].cat.codes.to_numpy(dtype=np.int64) for name in X.columns})

    return Fitted(encode, sizes, wall, cpu, transform=encoder.transform)


# -- Khiops ---------------------------------------------------------------------------


def _fit_khiops(X: pd.DataFrame, y: np.ndarray) -> Fitted:
    from khiops_peer import prepare

    done = prepare(X, y)

    def encode(new: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({name: part.encode(new[name]) for name, part in done.parts.items()})

    sizes = {name: part.size for name, part in done.parts.items()}
    return Fitted(encode, sizes, done.wall_s, done.cpu_s, done.write_s)


# -- column by column -------------------------------------------------------------------


def _fit_columns(make: Callable[[pd.Series, np.ndarray], Any], X: pd.DataFrame, y: np.ndarray) -> Fitted:
    binners, wall, cpu = timed(lambda: {name: make(X[name], y) for name in X.columns})

    def encode(new: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({name: binner(new[name]) for name, binner in binners.items()})

    return Fitted(encode, {name: int(codes.max()) + 1 for name, codes in encode(X).items()}, wall, cpu)


def _as_numbers(column: pd.Series) -> Callable[[pd.Series], np.ndarray]:
    """What turns such a column into numbers without missing ones, learned from the training rows."""
    if not is_numeric(column):
        ranks = {category: rank for rank, category in enumerate(_symbols(column).value_counts().index)}
        return lambda new: _symbols(new).map(ranks).fillna(len(ranks)).to_numpy(dtype=float)
    below = float(column.min()) - 1.0 if column.notna().any() else 0.0
    return lambda new: _filled(new, below)


def _filled(column: pd.Series, value: float) -> np.ndarray:
    values = column.to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isnan(values), value, values)


def _symbols(column: pd.Series) -> pd.Series:
    return column.astype(object).where(column.notna(), "(missing)").astype(str)


def _constant(column: pd.Series) -> np.ndarray:
    return np.zeros(len(column), dtype=np.int64)


def _optbinning(column: pd.Series, y: np.ndarray) -> Callable[[pd.Series], np.ndarray]:
    from optbinning import MulticlassOptimalBinning, OptimalBinning

    if y.max() > 1:  # numbers only
        numbers = _as_numbers(column)
        if len(np.unique(numbers(column))) == 1:
            return _constant
        binner = MulticlassOptimalBinning().fit(numbers(column), y)
        return lambda new: np.searchsorted(binner.splits, numbers(new), side="right")
    if is_numeric(column):
        binner = OptimalBinning(dtype="numerical").fit(column.to_numpy(dtype=float, na_value=np.nan), y)

        def cut(new: pd.Series) -> np.ndarray:  # its own part for missing values, as optbinning has it
            values = new.to_numpy(dtype=float, na_value=np.nan)
            return np.where(np.isnan(values), 0, 1 + np.searchsorted(binner.splits, values, side="right"))

        return cut
    binner = OptimalBinning(dtype="categorical").fit(_symbols(column).to_numpy(dtype=object), y)
    groups = {str(category): group for group, categories in enumerate(binner.splits) for category in categories}
    return lambda new: _symbols(new).map(groups).fillna(-1).to_numpy(dtype=np.int64)


def _tree(column: pd.Series, y: np.ndarray) -> Callable[[pd.Series], np.ndarray]:
    from feature_engine.discretisation import DecisionTreeDiscretiser

    numbers = _as_numbers(column)
    discretiser = DecisionTreeDiscretiser(
        bin_output="bin_number",
        regression=False,
        scoring="roc_auc" if y.max() == 1 else "accuracy",
        cv=3,
        random_state=0,
    ).fit(pd.DataFrame({"x": numbers(column)}), pd.Series(y))
    return lambda new: discretiser.transform(pd.DataFrame({"x": numbers(new)}))["x"].to_numpy(dtype=np.int64)


def _quantiles(column: pd.Series, y: np.ndarray) -> Callable[[pd.Series], np.ndarray]:
    from sklearn.preprocessing import KBinsDiscretizer

    numbers = _as_numbers(column)
    if len(np.unique(numbers(column))) == 1:
        return _constant
    bins = KBinsDiscretizer(10, encode="ordinal", strategy="quantile", subsample=None).fit(numbers(column)[:, None])
    return lambda new: bins.transform(numbers(new)[:, None])[:, 0].astype(np.int64)


@dataclass(frozen=True)
class Method:
    """How to fit it, what it needs, and what it does with symbols."""

    fit: Callable[[pd.DataFrame, np.ndarray], Fitted]
    needs: str
    categories: str


METHODS = {
    "tabsym-khiops": Method(lambda X, y: _fit_tabsym("khiops", X, y), "tabsym.MODLEncoder", "grouped"),
    "tabsym-page": Method(lambda X, y: _fit_tabsym("page", X, y), "tabsym.MODLEncoder", "grouped"),
    "khiops": Method(_fit_khiops, "khiops", "grouped"),
    "optbinning": Method(
        lambda X, y: _fit_columns(_optbinning, X, y), "optbinning", "grouped; ranked by frequency with > 2 classes"
    ),
    "tree": Method(lambda X, y: _fit_columns(_tree, X, y), "feature_engine", "ranked by frequency"),
    "quantile10": Method(lambda X, y: _fit_columns(_quantiles, X, y), "sklearn", "ranked by frequency"),
}
