"""The tables of the MODL benchmarks: features, coded target, and subsets that keep every class."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tabsym import datasets

QUALITY = ["kick", "adult", "amazon", "kdd99", "covtype_small"]
MAX_ROWS = {"kdd99": 100_000}
MIN_OF_A_CLASS = 3  # so that each of three folds can hold a row of it


def load(name: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features, target codes (n,) and classes; ``adult:COLUMN`` makes that column the target."""
    table, _, other = name.partition(":")
    X, y = datasets.load(table)
    if other:
        X, y = X.drop(columns=other), X[other]
    keep = y.notna().to_numpy()
    classes, codes = np.unique(y[keep].astype(str), return_inverse=True)
    return X[keep].reset_index(drop=True), codes, classes


def subset(y: np.ndarray, rows: int | None, seed: int = 0) -> np.ndarray:
    """`rows` row numbers, stratified, with at least three of each class where it has them."""
    if rows is None or rows >= len(y):
        return np.arange(len(y))
    rng = np.random.default_rng(seed)
    chosen = []
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        size = max(round(rows * len(members) / len(y)), MIN_OF_A_CLASS)
        chosen.append(members[:size])
    return np.sort(np.concatenate(chosen))


def is_numeric(column: pd.Series) -> bool:
    """Numbers are cut into intervals; everything else, booleans too, is grouped."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
