"""A pipeline of one's own beside ours, split as a business splits: rossmann by time, kick by groups of buyers.

scikit-learn's TargetEncoder under HistGradientBoosting, at its settings and tuned (`--tune 5`), from Python and, by
address, from the shell. What is printed is the summary of each of the eight comparisons. Needs `TABSYM_DATA`.

    TABSYM_DATA=FOLDER python benchmarks/own_pipeline.py [--rows 6000]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from scipy.stats import loguniform
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

CASES = {
    "rossmann": ("Sales", {"time": "Date"}, ["Customers", "Open"]),
    "kick": ("IsBadBuy", {"groups": "BYRNO"}, ["RefId", "PurchDate"]),
}
BESIDE = ("wide", "lightgbm")


def mine(task):
    """The pipeline, for a task."""
    booster = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    kind = "continuous" if task == "regression" else "binary"  # whole numbers would be taken for classes
    encoder = TargetEncoder(target_type=kind, random_state=0)
    encode = make_column_transformer((encoder, make_column_selector(dtype_exclude="number")), remainder="passthrough")
    return make_pipeline(encode, booster(random_state=0))


def space(task):
    """Where it is tuned."""
    name = f"histgradientboosting{'regressor' if task == 'regression' else 'classifier'}"
    return {f"{name}__learning_rate": loguniform(0.02, 0.3), f"{name}__max_leaf_nodes": [8, 16, 31, 64]}


mine.space = space


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=6000, help="of each table, drawn at random")
    parser.add_argument("--tables", nargs="*", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    rows = options.rows
    from tabsym import compare

    for name in options.tables:
        target, split, drop = CASES[name]
        table = pd.read_parquet(Path(os.environ["TABSYM_DATA"]) / f"{name}.parquet").sample(rows, random_state=0)
        task = "regression" if name == "rossmann" else "binary"
        for tune in (None, "5"):
            with tempfile.TemporaryDirectory() as folder:
                contenders = {"mine": (mine(task), space(task)), **dict.fromkeys(BESIDE)}
                found = compare(table, target, contenders=contenders, drop=drop, tune=tune, folds=3, quiet=True,
                                out=f"{folder}/out", **split)  # fmt: skip
                _show(f"{name}, tune {tune}, from Python", found.summary, found.failures)
                path = f"{folder}/{name}.parquet"
                table.to_parquet(path)
                how = [word for key, value in split.items() for word in (f"--{key}", value)]
                options = [*how, "--drop", ",".join(drop), "--folds", "3", "--out", f"{folder}/shell"]
                options += ["--tune", tune] if tune else []
                options += ["--contender", "mine=own_pipeline:mine", "--contenders", ",".join(BESIDE)]
                command = [sys.executable, "-m", "tabsym", "compare", path, "--target", target, *options]
                here = Path(__file__).parent
                done = subprocess.run(command, capture_output=True, text=True, cwd=here, check=False)
                lines = done.stdout.split("\n\n")
                _show(f"{name}, tune {tune}, from the shell (exit {done.returncode})", lines[2:3] or [done.stderr], {})


def _show(title, summary, failures):
    print(f"\n## {title}\n" + "\n".join(summary), failures or "", flush=True)


if __name__ == "__main__":
    main()
