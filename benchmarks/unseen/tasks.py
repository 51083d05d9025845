"""Columns whose symbols are held out whole, on public tables; what is left out beside them is named with its reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

MAX_ROWS = 20_000
"""Of a table, drawn at random."""
MAX_SCORED = 300
"""Rows of a held-out symbol that are scored."""


@dataclass(frozen=True)
class Task:
    """A column of a table, the target, and columns that are left out: ids, what is known after the target, copies."""

    table: str
    target: str
    column: str
    drop: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return f"{self.table} {self.column}"


_ADULT = ("fnlwgt", "split")
_TAXI = ("trip_id", "trip_total", "trip_end_timestamp", "extract")
TASKS = [
    Task("adult", "income", "education", (*_ADULT, "education-num")),  # the same in numbers
    Task("adult", "income", "occupation", _ADULT),
    Task("adult", "income", "workclass", _ADULT),
    Task("adult", "income", "marital-status", _ADULT),
    Task("adult", "income", "native-country", _ADULT),
    Task("amazon", "ACTION", "MGR_ID"),
    Task("amazon", "ACTION", "ROLE_DEPTNAME"),
    Task("amazon", "ACTION", "ROLE_TITLE", ("ROLE_CODE",)),  # the same under other names
    Task("amazon", "ACTION", "ROLE_FAMILY"),
    Task("kick", "IsBadBuy", "Make", ("RefId", "PurchDate")),
    Task("kick", "IsBadBuy", "Model", ("RefId", "PurchDate")),
    Task("kick", "IsBadBuy", "BYRNO", ("RefId", "PurchDate")),
    Task("usedcars", "price_usd", "manufacturer_name"),
    Task("usedcars", "price_usd", "model_name"),
    Task("usedcars", "price_usd", "body_type"),
    Task("chicago_taxi", "tips", "company", _TAXI),
    Task("chicago_taxi", "tips", "pickup_community_area", (*_TAXI, "pickup_census_tract")),
    Task("chicago_taxi", "tips", "payment_type", _TAXI),
    Task("titanic", "Survived", "Embarked", ("PassengerId", "Name")),
    Task("titanic", "Survived", "Ticket", ("PassengerId", "Name")),
]


@dataclass(frozen=True)
class HeldOut:
    """Training rows without the symbols held out; `new`: the rows of these, of symbols `codes`, from `rows` (n,)."""

    X: pd.DataFrame
    y: np.ndarray
    new: pd.DataFrame
    y_new: np.ndarray
    codes: np.ndarray
    categories: list[str]
    scored: np.ndarray
    rows: np.ndarray


def load(task: Task, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Features and target (0 and 1 for classes); missing symbols are a symbol."""
    frame = pd.read_parquet(Path(os.environ["TABSYM_DATA"]) / f"{task.table}.parquet").dropna(subset=[task.target])
    if len(frame) > MAX_ROWS:
        frame = frame.sample(MAX_ROWS, random_state=seed).reset_index(drop=True)
    target = frame[task.target]
    y = target.to_numpy(float) if target.dtype.kind in "if" else (target == target.max()).to_numpy(float)
    X = frame.drop(columns=[task.target, *task.drop])
    for name in X:
        if X[name].dtype.kind == "M":
            X[name] = X[name].dt.hour.astype(float)
    X[task.column] = X[task.column].astype(object).where(X[task.column].notna(), "missing").astype("str")
    return X, y


def folds(task: Task, X: pd.DataFrame, y: np.ndarray, seed: int, n_folds: int = 5) -> Iterator[HeldOut]:
    """Every symbol is held out once, with a fifth of the others; at most as many folds as symbols."""
    rng = np.random.default_rng(seed)
    codes, categories = pd.factorize(X[task.column], sort=True)
    group = rng.permutation(len(categories)) % min(n_folds, len(categories))
    for fold in range(group.max() + 1):
        out = group[codes] == fold
        new, which = np.flatnonzero(out), codes[out]
        order = rng.permutation(len(new))
        rank = pd.Series(which[order]).groupby(which[order]).cumcount().to_numpy()
        scored = np.zeros(len(new), dtype=bool)
        scored[order] = rank < MAX_SCORED
        yield HeldOut(X[~out].reset_index(drop=True), y[~out], X.iloc[new].reset_index(drop=True), y[new], which,
                      list(categories), scored, new)  # fmt: skip


def is_classes(y: np.ndarray) -> bool:
    return bool(np.isin(y, (0.0, 1.0)).all())


def loss(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Of each row: log-loss for classes, squared error for numbers."""
    if not is_classes(y):
        return (y - p) ** 2
    p = np.clip(p, 1e-4, 1 - 1e-4)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))
