"""Quality and fit time of online models on real tables, so that two versions can be compared fold by fold.

WideSGDClassifier and WideSGDRegressor at their defaults and with `interactions="auto"`; 5 folds (kdd99: 2), seed 0,
stratified for classes; tables prepared as `tabsym compare` does. AUC and log-loss for two classes, log-loss for
more, RMSE and MAE for numbers; `seconds` is from the DataFrame to the fitted model, after a small warm-up fit.
Rows go to `--out` as they arrive. `--against` prints paired differences to another such file with the standard
error over folds, and the ratio of the fit times (median over folds of each fold's fastest repeat): run both on
the same quiet machine, with `--repeats` for the times. A version in which these models had other names cannot run
this script: its own copy of it writes such a file. Needs `TABSYM_DATA`.

    TABSYM_DATA=FOLDER python benchmarks/tables.py --out after.csv [--against before.csv] [--repeats 3]
    python benchmarks/tables.py --out after.csv --against before.csv --report
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from intervals import TABLES as WITHOUT_KDD99
from sklearn.base import is_regressor
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold

import tabsym
from tabsym import WideSGDClassifier, WideSGDRegressor
from tabsym.compare.table.prepare import Prepared, prepare
from tabsym.datasets import make_retail

TABLES = WITHOUT_KDD99 | {"kdd99": ("label", [])}
VARIANTS = {"default": {}, "auto": {"interactions": "auto"}}
MEASURES = ("auc", "log-loss", "rmse", "mae")
KEY = ["table", "variant", "fold"]


def read(name: str, max_rows: int | None) -> Prepared:
    target, drop = TABLES[name]
    table = make_retail() if name == "retail" else pd.read_parquet(Path(os.environ["TABSYM_DATA"]) / f"{name}.parquet")
    if max_rows is not None and len(table) > max_rows:
        table = table.sample(max_rows, random_state=0).reset_index(drop=True)
    return prepare(table, target, drop=[column for column in drop if column in table])


def chances(model: Any, X: pd.DataFrame, n_classes: int) -> np.ndarray:
    """Probabilities of all classes (n_rows, n_classes), also of those that the training fold lacks."""
    out = np.zeros((len(X), n_classes))
    out[:, model.classes_] = model.predict_proba(X)
    return out


def measure(model: Any, X: pd.DataFrame, y: np.ndarray, n_classes: int) -> dict[str, float]:
    if is_regressor(model):
        predicted = model.predict(X)
        return {"rmse": root_mean_squared_error(y, predicted), "mae": mean_absolute_error(y, predicted)}
    p = chances(model, X, n_classes)
    loss = {"log-loss": log_loss(y, p, labels=range(n_classes))}
    return loss if n_classes > 2 else {"auc": roc_auc_score(y, p[:, 1])} | loss


def run(name: str, repeats: int, max_rows: int | None, out: Path, stamp: dict[str, str]) -> None:
    ready = read(name, max_rows)
    is_number = ready.task == "regression"
    kind = WideSGDRegressor if is_number else WideSGDClassifier
    n_folds = 2 if name == "kdd99" else 5
    folds = (KFold if is_number else StratifiedKFold)(n_folds, shuffle=True, random_state=0)
    for (fold, (train, test)), repeat in product(enumerate(folds.split(ready.X, ready.y)), range(repeats)):
        X, y = ready.X.iloc[train], ready.y[train]
        for variant, options in VARIANTS.items():
            make = partial(kind, random_state=0, **options)
            some = np.random.RandomState(0).permutation(len(y))[:2000]
            make().fit(X.iloc[some], y[some])
            start = time.perf_counter()
            model = make().fit(X, y)
            row = {"table": name, "variant": variant, "fold": fold, "repeat": repeat, "rows": len(ready.y)}
            row["seconds"] = time.perf_counter() - start
            row |= dict.fromkeys(MEASURES, np.nan) | {"epochs": model.n_iter_}
            row |= measure(model, ready.X.iloc[test], ready.y[test], len(ready.classes)) | stamp
            pd.DataFrame([row]).to_csv(out, mode="a", header=not out.exists(), index=False)


def summarise(table: pd.DataFrame) -> None:
    by = table.groupby(["table", "variant"], sort=False)
    shown = by.agg(dict.fromkeys(MEASURES, "mean") | {"seconds": "median", "epochs": "median", "rows": "first"})
    print(shown.to_string(float_format=lambda value: f"{value:.5g}", na_rep="", sparsify=False))


def by_fold(table: pd.DataFrame) -> pd.DataFrame:
    """One row per table, variant and fold: scores, and the fastest repeat's seconds."""
    return table.groupby(KEY, sort=False).agg(dict.fromkeys(MEASURES, "mean") | {"seconds": "min", "rows": "first"})


def against(table: pd.DataFrame, other: pd.DataFrame) -> None:
    """Differences of this run to the other, paired by fold."""
    both = by_fold(table).join(by_fold(other), rsuffix=" before", how="inner")
    other_rows = both["rows"] != both["rows before"]
    for name in dict.fromkeys(both.index[other_rows].get_level_values("table")):
        print(f"{name}: the two files hold different rows, so it is left out; run both with the same --max-rows.")
    both = both[~other_rows]
    print("| table | variant | measure | before | after | difference ± standard error | time, after / before |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (name, variant), part in both.groupby(["table", "variant"], sort=False):
        ratio = part["seconds"] / part["seconds before"]
        times = f"{ratio.median():.2f} ({ratio.min():.2f} to {ratio.max():.2f})"
        for what in MEASURES:
            if part[what].isna().all():
                continue
            difference = part[what] - part[f"{what} before"]
            error = difference.std(ddof=1) / np.sqrt(len(part))
            means = f"{part[f'{what} before'].mean():.5g} | {part[what].mean():.5g}"
            print(f"| {name} | {variant} | {what} | {means} | {difference.mean():+.3g} ± {error:.2g} | {times} |")


def commit() -> str:
    """The last commit that changed the package in use, with a + where its files differ from it.

    Results and texts are committed while a benchmark runs; what they are results of stays the same.
    """
    here, package = Path(tabsym.__file__).parent, [":/tabsym", ":/integrations"]
    try:
        git = partial(subprocess.run, cwd=here, check=True, capture_output=True, text=True)
        last = git(["git", "log", "-1", "--format=%h", "--", *package]).stdout.strip()
        return last + ("+" if git(["git", "status", "--porcelain", "--", *package]).stdout else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--out", type=Path, required=True, help="rows are added; a table that is in it is run again")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--report", action="store_true", help="run nothing, read --out")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--max-rows", type=int, help="a random sample of larger tables")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if not args.report:
        if args.out.exists():
            old = pd.read_csv(args.out)
            old[~old["table"].isin(args.tables)].to_csv(args.out, index=False)
        for name in args.tables:
            start = time.perf_counter()
            run(name, args.repeats, args.max_rows, args.out, {"commit": commit()})
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    table = pd.read_csv(args.out)
    summarise(table)
    if args.against:
        against(table, pd.read_csv(args.against))


if __name__ == "__main__":
    main()
