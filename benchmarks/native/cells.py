"""Encoders, wide models and stacks against the boosters' own categories, target encoders, EBM and GPBoost.

The comparison of `tabsym compare`, cell by cell: one contender on one fold of one table, in a process of its own, first
the first fold of every table, then the second. Each cell is a row of `results/cells.csv` as soon as it is done, with
seeds and versions; what stands there is not run again, and what went over the limit of time only under a longer one.
Dates are taken apart first, so that contenders of `peers.py` see what ours see. Needs `TABSYM_DATA` (but for retail).
kdd99 (494,021 rows, 23 classes) is measured at a sample, and takes part only where it is named.

    TABSYM_DATA=FOLDER python benchmarks/native/cells.py            # hours: see --tables, --contenders, --only-folds
    TABSYM_DATA=FOLDER python benchmarks/native/cells.py --quick    # minutes: samples, 2 folds, few contenders
    TABSYM_DATA=FOLDER python benchmarks/native/cells.py --tune 10  # everybody tuned, 10 settings in each fold
    TABSYM_DATA=FOLDER python benchmarks/native/cells.py --tables kdd99 --max-rows 50000
    python benchmarks/native/figures.py                              # the README's tables, and the figures
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tables import TABLES, commit, read  # noqa: E402

from tabsym.compare.contenders import Contender, choose  # noqa: E402
from tabsym.compare.fitting import read_budget  # noqa: E402
from tabsym.compare.job import RunConfig  # noqa: E402
from tabsym.compare.live import Live  # noqa: E402
from tabsym.compare.metrics import METRICS, choose_metric  # noqa: E402
from tabsym.compare.results import Results  # noqa: E402
from tabsym.compare.settings import settings_of  # noqa: E402
from tabsym.compare.splits import make_plan  # noqa: E402
from tabsym.compare.table.prepare import (  # noqa: E402
    CLASSES,
    Prepared,
    RoleColumns,
    prepare,
)
from tabsym.compare.workers import Runner  # noqa: E402

CELLS = HERE / "results" / "cells.csv"
QUICK_TABLES = ["titanic", "amazon", "usedcars"]
QUICK_CONTENDERS = ["constant", "wide", "wide-crosses", "lightgbm", "xgboost", "catboost", "sklearn-target-lightgbm"]
OURS = [
    "constant", "wide", "wide-crosses", "wide-lightgbm", "lightgbm", "xgboost", "catboost", "hist-gradient-boosting",
    "target-lightgbm", "modl-lightgbm", "tiws-lightgbm", "onehot-linear",
]  # fmt: skip
"""Of the package; those of `PEERS` are made in peers.py."""
PEERS = {
    "sklearn-target-lightgbm": "peers:sklearn_target",
    "wide-encoder-lightgbm": "peers:wide_encoder",
    "ebm": "peers:ebm",
    "ebm-additive": "peers:ebm_additive",
    "gpboost": "peers:gpboost",
}
NEEDS = {"ebm": "interpret", "ebm-additive": "interpret", "gpboost": "gpboost"}
"""Modules that requirements.txt installs."""
KEY = ["table", "contender", "fold", "rows", "folds", "seed", "tune"]
MEASURED = [
    "fit_seconds", "fit_cpu_seconds", "predict_row_seconds", "one_row_seconds", "peak_bytes", "model_bytes",
    "tune_seconds", "tried",
]  # fmt: skip
SCORES = list(dict.fromkeys(name for known in METRICS.values() for name in known))
OVER = "stopped at the time limit"
LIBRARIES = [
    "tabsym", "numpy", "pandas", "scikit-learn", "numba", "lightgbm", "xgboost", "catboost", "category-encoders",
    "interpret-core", "gpboost",
]  # fmt: skip
COLUMNS = [*KEY, "metric", *SCORES, *MEASURED, "error", "limit", "commit", "machine", "versions"]


@cache
def prepared(name: str, max_rows: int | None) -> Prepared:
    """A table with dates in parts, as all contenders get it."""
    once = read(name, max_rows)
    target = once.target.name
    y = once.target.classes[once.y] if once.task in CLASSES else once.y
    return prepare(once.X.assign(**{target: y}), target, task=once.task, roles=RoleColumns())


def course_of(name: str, args: argparse.Namespace) -> RunConfig:
    ready = prepared(name, args.max_rows)
    plan = make_plan(ready.frame, folds=args.folds, repeats=args.repeats, seed=args.seed)
    splits = plan.splits(ready.y, ready.task)
    metric = choose_metric(ready.task, None)
    return RunConfig(ready, plan, splits, metric, args.limit, args.tune, args.seed, 1)


def cell(config: RunConfig, name: str, contender: Contender, fold: int) -> dict[str, Any]:
    """One contender on one fold: what it scored and cost, or why there is none of that."""
    settings = settings_of(config, name)
    results = Results(settings)
    with tempfile.TemporaryDirectory() as folder, Live(settings, quiet=True) as live:
        Runner(config, results, Path(folder), live, only=[fold]).run([contender])
    entry = results.entry(contender.name, contender.label)
    done = entry["folds"].get(str(fold), {})
    measured = {what: done.get(what) for what in MEASURED}
    row = {"metric": config.metric.name, "error": entry["error"] or "", **done.get("scores", {}), **measured}
    return row | {"limit": config.time_limit, "machine": settings["machine"], "versions": versions()}


def versions() -> str:
    found = []
    for library in LIBRARIES:
        try:
            found.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            continue
    return "; ".join(found)


def able(contender: Contender) -> bool:
    """Whether its library is installed; said where it is not."""
    module = NEEDS.get(contender.name)
    missing = contender.missing()
    if module is not None and find_spec(module) is None:
        missing = f"{contender.name} is left out: pip install -r benchmarks/native/requirements.txt"
    if missing:
        print(missing, flush=True)
    return not missing


def key_of(name: str, contender: str, fold: int, rows: int, args: argparse.Namespace) -> dict[str, Any]:
    budget = read_budget(args.tune)
    tune = "" if budget is None else str(budget)
    keyed = {"table": name, "contender": contender, "fold": fold, "rows": rows}
    return keyed | {"folds": args.folds, "seed": args.seed, "tune": tune}


def load(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    return pd.read_csv(path, dtype={"tune": "str", "error": "str"}).fillna({"tune": "", "error": ""})


def is_done(cells: pd.DataFrame, key: dict[str, Any], limit: float) -> bool:
    """Whether a cell has a score, or an error that a longer limit would not mend."""
    return any(not (one.error.startswith(OVER) and one.limit < limit) for one in cells[same(cells, key)].itertuples())


def same(cells: pd.DataFrame, key: dict[str, Any]) -> Any:
    """Which rows are those of a cell (n,)."""
    return np.logical_and.reduce([(cells[name] == key[name]).to_numpy(dtype=bool) for name in KEY])


def keep(path: Path, row: dict[str, Any]) -> None:
    """Add a row; one of the same key, which went over a shorter limit, goes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = load(path)
    cells = cells[~same(cells, row)]
    new = pd.DataFrame([row], columns=COLUMNS)
    (new if cells.empty else pd.concat([cells, new])).to_csv(path, index=False, float_format="%.7g")


def run(args: argparse.Namespace) -> None:
    names = {name: PEERS.get(name) for name in args.contenders}
    for fold in args.only_folds or range(args.folds * args.repeats):
        for table in args.tables:
            config = course_of(table, args)
            for contender in choose(names, config.prepared.task):
                key = key_of(table, contender.name, fold, len(config.prepared.y), args)
                if contender.name not in names or not able(contender) or is_done(load(args.out), key, args.limit):
                    continue
                row = key | cell(config, table, contender, fold) | {"commit": commit()}
                keep(args.out, row)
                said = row["error"] or f"{row[row['metric']]:.5g}, fit {row['fit_cpu_seconds']:.1f} s of processor time"
                print(f"fold {fold}, {table}, {contender.name}: {said}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), help="default: all")
    parser.add_argument("--contenders", nargs="+", help="of the comparison, or of peers.py; default: all of both")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only-folds", type=int, nargs="+", help="counted from 0, repeat after repeat")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tune", help="one budget for all: settings, or seconds as in 60s; default: no tuning")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds for a cell, its warm-up included")
    parser.add_argument("--max-rows", type=int, help="a random sample of larger tables")
    parser.add_argument("--quick", action="store_true", help="samples, 2 folds, few contenders, to a file of its own")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.quick:
        args.folds, args.max_rows = 2, args.max_rows or 2000
    args.tables = args.tables or (QUICK_TABLES if args.quick else [name for name in TABLES if name != "kdd99"])
    args.contenders = args.contenders or (QUICK_CONTENDERS if args.quick else [*OURS, *PEERS])
    args.out = (args.out or (HERE / "results" / "quick.csv" if args.quick else CELLS)).resolve()
    os.chdir(HERE)  # where the addresses of peers are looked up
    run(args)


if __name__ == "__main__":
    main()
