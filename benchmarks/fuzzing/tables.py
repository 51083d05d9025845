"""Small random tables of every kind of column, targets of every task, weights, and rows that fit has not seen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from fuzzing.case import Case

CLASSES = ("binary", "several")
TASKS = (*CLASSES, "amounts", "counts", "positive")


def draw_table(rng: Any, *, dates: bool = True) -> tuple[pd.DataFrame, Any]:
    """A table, and a signal (n_rows,) in it."""
    n = int(rng.choice([60, 120, 250, 800], p=[0.3, 0.3, 0.3, 0.1]))
    few = rng.choice(list("abcdef"), n)
    X = pd.DataFrame({"a": few, "b": rng.choice([f"v{i}" for i in range(int(rng.choice([3, 40])))], n)})
    X["x"], X["z"] = rng.normal(size=n) * 10.0 ** rng.uniform(-6, 6), rng.normal(size=n)
    signal = pd.Series(few).map(dict(zip("abcdef", rng.normal(size=6) * 1.5))).to_numpy(float) + 0.7 * X["z"].to_numpy()
    for name in "abxz":
        if rng.random() < 0.2:
            X.loc[rng.random(n) < 0.15, name] = None if name in "ab" else np.nan
    more: dict[str, Callable[[], Any]] = {
        "id": lambda: [f"i{i}" for i in range(n)],
        "constant": lambda: rng.choice(["k", ""]),
        "flag": lambda: rng.random(n) < 0.5,
        "unsure": lambda: pd.array(rng.choice([True, False, None], n), dtype="boolean"),
        "category": lambda: pd.Categorical(rng.choice(list("rst"), n), categories=list("tsrq")),
        "ordered": lambda: pd.Categorical(rng.choice([1, 5, 30], n), ordered=True),
        "whole": lambda: pd.array(rng.choice([1, 2, 3, None], n, p=[0.5, 0.3, 0.1, 0.1]), dtype="Int64"),
        "number": lambda: np.full(n, 10.0 ** rng.integers(-9, 9)),
        "again": lambda: np.where(rng.random(n) < 0.02, "other", few),
        "twice": lambda: 2.0 * X["z"] + 1,
        "huge": lambda: 10**15 + rng.integers(0, 1000, n),
        "heavy": lambda: rng.standard_cauchy(n),
        "empty": lambda: np.full(n, np.nan),
    }
    if dates:
        more["day"] = lambda: pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D")
        more["moment"] = lambda: pd.Series(pd.date_range("1969-12-01", periods=n, freq="7h")).mask(rng.random(n) < 0.1)
    for name, make in more.items():
        if rng.random() < 0.12:
            X[name] = make()
    X = X[list(rng.permutation(X.columns))]
    return X.set_axis(rng.permutation(n) + 5) if rng.random() < 0.1 else X, signal


def draw_target(rng: Any, task: str, signal: Any) -> Any:
    """A target (n_rows,) of a task, of some type."""
    n, rate = len(signal), np.exp(np.clip(0.5 * signal, -5, 5))
    if task == "binary":
        labels = [("no", "yes"), (0, 1), (False, True), (-1, 1)][rng.integers(4)]
        y: Any = np.array(labels)[(rng.random(n) < 1 / (1 + np.exp(-2 * signal))).astype(int)]
    elif task == "several":
        k = int(rng.choice([3, 5]))
        y = np.array(list("pqrst"))[np.argmax(np.outer(signal, np.linspace(-2, 2, k)) + rng.gumbel(size=(n, k)), 1)]
    elif task == "amounts":
        y = (signal + 0.5 * rng.normal(size=n) + rng.choice([0, 100])) * 10.0 ** rng.uniform(-4, 6)
    elif task == "counts":
        y = rng.poisson(rate).astype(rng.choice(["int64", "float64"]))
    else:
        y = (rng.gamma(3, rate) + 1e-3) * 10.0 ** rng.uniform(-2, 4)
    return y


def draw_weight(rng: Any, n: int, *, whole: bool = False) -> Any:
    """None, or weights with zeros, in any unit."""
    if rng.random() < 0.6:
        return None
    weight = rng.choice([0, 1, 2, 5], n, p=[0.15, 0.5, 0.25, 0.1])
    return weight if whole else weight * rng.choice([1.0, 0.37, 1e-6, 1e6])


def pick(rng: Any, **choices: list[Any]) -> dict[str, Any]:
    """Some of the options (each with a chance of a third), at one of their values."""
    chosen = {name: values[rng.integers(len(values))] for name, values in choices.items()}
    return {name: value for name, value in chosen.items() if rng.random() < 1 / 3}


def new_rows(case: Case, rng: Any) -> pd.DataFrame:
    """Some rows with new symbols, missing values and far numbers."""
    X = case.X.iloc[:14].copy()
    for name in X.columns:
        column = X[name]
        if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.categories.dtype == object:
            X[name] = column.astype(object)
        spare = name in (
            getattr(case.estimator, "offset_column", None),
            getattr(case.estimator, "exposure_column", None),
        )
        if spare or name == "empty":
            continue
        if X[name].dtype == object:
            X.loc[X.index[:4], name] = "NEW"
            X.loc[X.index[4:6], name] = None
        elif X[name].dtype == float:
            X.loc[X.index[6:8], name] = np.nan
            X.loc[X.index[8:9], name] *= 50
    return X
