"""The six tables: symbolic columns only, coded by the symbols of the training rows, split once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

SPLIT_SEED = 0
TEST_SHARE = VALIDATION_SHARE = 0.2
_COVER = {"Wilderness_Area": "Wilderness_Area", "Soil_Type": "Soil_Type"}


@dataclass(frozen=True)
class Table:
    """A table of the paper: its file, target and symbolic columns; what is left out, and why."""

    title: str
    file: str
    target: str
    columns: tuple[str, ...]
    left_out: str = ""
    regression: bool = False


TABLES = {
    "adult": Table(
        "ACI (adult)",
        "adult",
        "income",
        ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"),
    ),
    "compas": Table(
        "COMPAS",
        "compas",
        "two_year_recid",
        ("sex", "age_cat", "race", "c_charge_degree", "c_charge_desc"),
        "the COMPAS scores, ids and dates, and everything known after the two years (r_, vr_, is_recid, ...)",
    ),
    "kick": Table(
        "DGK (kick)",
        "kick",
        "IsBadBuy",
        (
            *("Auction", "Make", "Model", "Trim", "SubModel", "Color", "Transmission", "WheelTypeID", "Nationality"),
            *("Size", "TopThreeAmericanName", "PRIMEUNIT", "AUCGUART", "BYRNO", "VNZIP1", "VNST"),
        ),
        "WheelType (WheelTypeID under other names), ids and dates",
    ),
    "covtype": Table("Forest Cover", "covtype_small", "Cover_Type", tuple(_COVER)),
    "kdd99": Table(
        "KDD99",
        "kdd99",
        "label",
        ("protocol_type", "service", "flag", "land", "logged_in", "is_guest_login"),
        "is_host_login (one symbol only)",
    ),
    "usedcars": Table(
        "Used cars",
        "usedcars",
        "price_usd",
        (
            *("manufacturer_name", "model_name", "transmission", "color", "engine_fuel", "engine_type", "body_type"),
            *("state", "drivetrain", "location_region"),
        ),
        "True/False columns",
        regression=True,
    ),
}


@dataclass(frozen=True)
class Part:
    """Rows: a code for each symbolic column (-1: not among the training rows), and the target."""

    codes: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Problem:
    """A table ready for training; `n_out`: classes, or 1; `scale`: the target's unit of a standardised target."""

    name: str
    train: Part
    validation: Part
    test: Part
    sizes: list[int]
    n_out: int
    scale: float

    @property
    def regression(self) -> bool:
        return TABLES[self.name].regression

    @property
    def rows(self) -> int:
        """Rows of all three parts."""
        return len(self.train) + len(self.validation) + len(self.test)


def load(name: str, most_rows: int, folder: Path | None = None) -> Problem:
    """Sample, split and code a table; always the same rows for the same `most_rows`."""
    table = TABLES[name]
    frame = _read(table, folder or Path(os.environ["TABSYM_DATA"]))
    labels = sorted(frame[table.target].unique())  # of the whole table: KDD99 has 23, a sample may have fewer
    frame = frame.iloc[np.random.default_rng(SPLIT_SEED).permutation(len(frame))[:most_rows]]
    n_test, n_validation = int(len(frame) * TEST_SHARE), int(len(frame) * VALIDATION_SHARE)
    y, scale = _target(frame[table.target], labels, table.regression, n_test + n_validation)
    codes, sizes = _code(frame[list(table.columns)], n_test + n_validation)
    parts = [slice(n_test + n_validation, None), slice(n_test, n_test + n_validation), slice(n_test)]
    train, validation, test = (Part(codes[part], y[part]) for part in parts)
    return Problem(name, train, validation, test, sizes, 1 if table.regression else len(labels), scale)


def _read(table: Table, folder: Path) -> pd.DataFrame:
    frame = pd.read_parquet(folder / f"{table.file}.parquet")
    for column, prefix in _COVER.items():
        if column in table.columns:  # one-hot codes of one column
            frame[column] = frame.filter(regex=rf"^{prefix}\d+$").idxmax(axis=1)
    return frame[[*table.columns, table.target]].dropna(subset=[table.target])


def _target(target: pd.Series, labels: list, regression: bool, train_from: int) -> tuple[Tensor, float]:
    """Class numbers, or the target standardised by the training rows."""
    if not regression:
        return torch.as_tensor(np.searchsorted(np.array(labels), target.to_numpy())), 1.0
    values = target.to_numpy(float)
    mean, scale = values[train_from:].mean(), values[train_from:].std()
    return torch.as_tensor((values - mean) / scale, dtype=torch.float32), float(scale)


def _code(frame: pd.DataFrame, train_from: int) -> tuple[Tensor, list[int]]:
    """Codes by the symbols of the training rows, missing being a symbol like others."""
    codes, sizes = [], []
    for column in frame:
        categories = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
        vocabulary = pd.Index(sorted(categories.iloc[train_from:].unique()))
        codes.append(vocabulary.get_indexer(categories))
        sizes.append(len(vocabulary))
    return torch.as_tensor(np.stack(codes, axis=1), dtype=torch.long), sizes


def constant_scores(problem: Problem) -> tuple[float, float]:
    """Test loss of the best constant of the training rows, and its accuracy (a regression: RMSE)."""
    if problem.regression:
        loss = float(((problem.test.y - problem.train.y.mean()) ** 2).mean())
        return loss, problem.scale * loss**0.5
    counts = torch.bincount(problem.train.y, minlength=problem.n_out) + 1.0  # a class may be in no training row
    share = counts / counts.sum()
    loss = float(-share.log()[problem.test.y].mean())
    return loss, float((problem.test.y == share.argmax()).double().mean())
