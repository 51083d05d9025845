"""Khiops 11 as a peer: data preparation by its own program, over files; its partitions read from the report."""

from __future__ import annotations

import csv
import json
import os
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure import timed
from tables import is_numeric

# the package runs the command khiops_env, which pip puts beside the interpreter; KHIOPS_ENV: of another environment
_ENV = Path(os.environ.get("KHIOPS_ENV", Path(sys.executable).parent.parent))
os.environ["PATH"] = f"{_ENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
sys.path += [str(folder) for folder in _ENV.glob("lib/python*/site-packages") if str(folder) not in sys.path]


_OPTIONS: dict[str, Any] = {
    "field_separator": "\t",
    "sample_percentage": 100,
    "max_trees": 0,
    "max_pairs": 0,
    "max_constructed_variables": 0,
    "max_text_features": 0,
}


@dataclass
class Prepared:
    """The partitions by column, and what making them took."""

    parts: dict[str, Any]
    write_s: float
    wall_s: float
    cpu_s: float
    target_bounds: dict[str, np.ndarray] = field(default_factory=dict)
    """Of a numeric target: where Khiops cuts it beside each column."""
    costs: dict[str, float] = field(default_factory=dict)
    """As reported: six digits each of construction, preparation and data."""
    levels: dict[str, float] = field(default_factory=dict)


@dataclass
class Intervals:
    """Right-closed intervals; missing values are the lowest part, or in it."""

    bounds: np.ndarray
    own_missing: bool

    @property
    def size(self) -> int:
        return len(self.bounds) + 1 + self.own_missing

    def encode(self, column: pd.Series) -> np.ndarray:
        values = column.to_numpy(dtype=float, na_value=np.nan)
        codes = np.searchsorted(self.bounds, values, side="left") + self.own_missing
        return np.where(np.isnan(values), 0, codes)


@dataclass
class Groups:
    """Groups of symbols; symbols that are in none are in the default one."""

    members: list[list[str]]
    default: int

    @property
    def size(self) -> int:
        return len(self.members)

    def encode(self, column: pd.Series) -> np.ndarray:
        place = {category: group for group, categories in enumerate(self.members) for category in categories}
        return _text(column).map(place).fillna(self.default).to_numpy(dtype=np.int64)


@dataclass
class OnePart:
    """A column that tells nothing of the target."""

    size: int = 1

    def encode(self, column: pd.Series) -> np.ndarray:
        return np.zeros(len(column), dtype=np.int64)


def prepare(X: pd.DataFrame, y: np.ndarray, *, numeric_target: bool = False) -> Prepared:
    """Write the table, run Khiops' data preparation on it, read the partitions."""
    with tempfile.TemporaryDirectory() as folder:
        table, report = Path(folder) / "table.txt", Path(folder) / "report.khj"
        _, write_s, _ = timed(lambda: write(X, y, table, numeric_target=numeric_target))
        _, wall_s, cpu_s = timed(lambda: run(X, table, report, numeric_target=numeric_target))
        read = json.loads(report.read_text())
    found = Prepared(read_parts(X, read), write_s, wall_s, cpu_s)
    _add_statistics(found, X, read["preparationReport"])
    return found


def _add_statistics(found: Prepared, X: pd.DataFrame, report: dict[str, Any]) -> None:
    details = report.get("variablesDetailedStatistics", {})
    for entry in report["variablesStatistics"]:
        name = X.columns[int(entry["name"][1:])]
        found.levels[name] = entry["level"]
        found.costs[name] = entry["constructionCost"] + entry["preparationCost"] + entry["dataCost"]
        dimensions = details[entry["rank"]]["dataGrid"]["dimensions"] if entry["rank"] in details else []
        bounds = [upper for _, upper in dimensions[1]["partition"][:-1]] if _cuts_target(dimensions) else []
        found.target_bounds[name] = np.array(bounds, dtype=float)


def _cuts_target(dimensions: list[dict[str, Any]]) -> bool:
    return len(dimensions) > 1 and dimensions[1]["partitionType"] == "Intervals"


def deploy_seconds(X: pd.DataFrame, y: np.ndarray, rows: pd.DataFrame) -> float:
    """Wall seconds in which Khiops recodes `rows` by what it learned of X (all files but the output are there)."""
    core = _core()
    with tempfile.TemporaryDirectory() as folder:
        table, new, report, out = (
            str(Path(folder) / name) for name in ("table.txt", "new.txt", "report.khj", "out.txt")
        )
        write(X, y, Path(table))
        write(rows, np.zeros(len(rows), dtype=int), Path(new))
        _, recoding = core.train_recoder(_domain(X), "table", table, "target", report, **_OPTIONS)
        domain = core.read_dictionary_file(recoding)
        name = domain.dictionaries[0].name
        return timed(lambda: core.deploy_model(domain, name, new, out, field_separator="\t"))[1]


@dataclass
class Classified:
    """What a selective naive Bayes of Khiops predicts, its weights by column, and the seconds of its training."""

    probabilities: np.ndarray
    weights: dict[str, float]
    wall_s: float
    cpu_s: float


def classify(X: pd.DataFrame, y: np.ndarray, rows: pd.DataFrame, *, max_trees: int = 0) -> Classified:
    """Train a selective naive Bayes on X, its target coded 0, 1, ..., and apply it to `rows`."""
    core, n_classes = _core(), int(y.max()) + 1
    with tempfile.TemporaryDirectory() as folder:
        table, new, report, out = (
            str(Path(folder) / name) for name in ("table.txt", "new.txt", "report.khj", "out.txt")
        )
        write(X, y, Path(table))
        write(rows, np.zeros(len(rows), dtype=int), Path(new))
        options = _OPTIONS | {"max_trees": max_trees}
        (_, model), wall_s, cpu_s = timed(
            lambda: core.train_predictor(_domain(X), "table", table, "target", report, **options)
        )
        domain = core.read_dictionary_file(model)
        name = next(one.name for one in domain.dictionaries if one.name.startswith("SNB_"))
        core.deploy_model(domain, name, new, out, field_separator="\t")
        found = pd.read_csv(out, sep="\t")
        trained = json.loads(Path(report).read_text())["modelingReport"]["trainedPredictorsDetails"]
    selected = next(iter(trained.values()))["selectedVariables"]
    names = {f"v{place}": name for place, name in enumerate(X.columns)}
    return Classified(
        found[[f"Probtargetc{code}" for code in range(n_classes)]].to_numpy(dtype=float),
        {names.get(one["name"], one["name"]): one["weight"] for one in selected},
        wall_s,
        cpu_s,
    )


def write(X: pd.DataFrame, y: np.ndarray, path: Path, *, numeric_target: bool = False) -> None:
    """As tab-separated text, columns called v0, v1, ...; missing values are empty."""
    out = {f"v{place}": X[name] if is_numeric(X[name]) else _text(X[name]) for place, name in enumerate(X.columns)}
    out["target"] = y if numeric_target else [f"c{label}" for label in y.tolist()]
    pd.DataFrame(out).to_csv(path, sep="\t", index=False, quoting=csv.QUOTE_MINIMAL)


def run(X: pd.DataFrame, table: Path, report: Path, *, numeric_target: bool = False) -> None:
    """Univariate data preparation only: no trees, pairs, text features or model."""
    _core().train_predictor(
        _domain(X, numeric_target=numeric_target),
        "table",
        str(table),
        "target",
        str(report),
        do_data_preparation_only=True,
        **_OPTIONS,
    )


def _domain(X: pd.DataFrame, *, numeric_target: bool = False) -> Any:
    """Khiops' dictionary of the file: the names and kinds of its columns."""
    core = _core()
    dictionary = core.Dictionary()
    dictionary.name = "table"
    kinds = ["Numerical" if is_numeric(X[name]) else "Categorical" for name in X.columns]
    kind_of_target = "Numerical" if numeric_target else "Categorical"
    for name, kind in [*((f"v{place}", kind) for place, kind in enumerate(kinds)), ("target", kind_of_target)]:
        variable = core.Variable()
        variable.name, variable.type = name, kind
        dictionary.add_variable(variable)
    domain = core.DictionaryDomain()
    domain.add_dictionary(dictionary)
    return domain


def read_parts(X: pd.DataFrame, report: dict[str, Any]) -> dict[str, Any]:
    """Each column's partition; columns of level 0 have none in the report."""
    preparation = report["preparationReport"]
    parts: dict[str, Any] = {name: OnePart() for name in X.columns}
    details = preparation.get("variablesDetailedStatistics", {})
    for entry in preparation["variablesStatistics"]:
        if entry["rank"] not in details:
            continue
        grid = details[entry["rank"]]["dataGrid"]["dimensions"][0]
        parts[X.columns[int(entry["name"][1:])]] = _partition(grid)
    return parts


def _partition(grid: dict[str, Any]) -> Any:
    if grid["partitionType"] == "Intervals":
        own_missing = not grid["partition"][0]
        intervals = grid["partition"][own_missing:]
        return Intervals(np.array([upper for _, upper in intervals[:-1]], dtype=float), own_missing)
    if grid["partitionType"] == "Values":
        return Groups([[category] for category in grid["partition"]], grid.get("defaultGroupIndex", 0))
    return Groups(grid["partition"], grid["defaultGroupIndex"])


def _text(column: pd.Series) -> pd.Series:
    return column.astype(object).where(column.notna(), "").astype(str)


def _core() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sample tables that are not downloaded
        from khiops import core

        core.get_runner()
    return core
