"""How many fine bins numbers need beside amounts, ``numeric="smooth"``: 1.5 times the root of the rows, and others.

`WideRegressor()` at its defaults, 5 folds, seed 0, tables prepared as `tabsym compare` does (of classes, with
`--tables adult`, the first column is the 64 bins that they have); RMSE or log-loss, paired over folds, and the
processor time of all fits. "steps" is generated: steps at 1, 1.5 and 2 of a gamma-distributed number, noise of standard
deviation 400, 40,000 rows. Results: bins.md.

    TABSYM_DATA=FOLDER python benchmarks/bins.py [--tables retail usedcars ...] [--rows 4000] [--bins 64 256]
"""

from __future__ import annotations

import argparse
import time
import warnings
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold
from tables import TABLES, measure, read

from tabsym import WideClassifier, WideRegressor
from tabsym.models import bins as bins_of_numbers

MAX_ROWS = {"rossmann": 200_000}


def steps() -> tuple[pd.DataFrame, np.ndarray]:
    """A number with three steps beside an uninformative category."""
    draw = np.random.default_rng(0)
    x = draw.gamma(2.0, 1.0, 50_000)
    y = 1000.0 * ((x > 1) + 2 * (x > 1.5) - 1.5 * (x > 2)) + draw.normal(0.0, 400.0, len(x))
    return pd.DataFrame({"x": x, "g": draw.choice(list("abc"), len(x))}), y


def run(name: str, rows: int | None, bins: list[int], n_folds: int) -> None:
    """Print a line of the table: the loss by the root, and by each fixed number of bins."""
    if name == "steps":
        X, y, is_number = *steps(), True
    else:
        ready = read(name, rows or MAX_ROWS.get(name))
        X, y, is_number = ready.X, ready.y, ready.task == "regression"
    n_classes = 0 if is_number else len(np.unique(y))
    kind = WideRegressor if is_number else WideClassifier
    losses: dict[int, list[float]] = {n: [] for n in (0, *bins)}
    seconds = dict.fromkeys(losses, 0.0)
    kind().fit(X.head(500), y[:500])
    splitter = (KFold if is_number else StratifiedKFold)(n_folds, shuffle=True, random_state=0)
    for train, test in splitter.split(X, y):
        for n, found in losses.items():
            limits = {"MIN_FINE": n, "MAX_FINE": n} if n else {"MAX_FINE": bins_of_numbers.MAX_FINE}
            with mock.patch.multiple(bins_of_numbers, **limits):
                start = time.process_time()
                model = kind().fit(X.iloc[train], y[train])
                seconds[n] += time.process_time() - start
            found.append(measure(model, X.iloc[test], y[test], n_classes)["rmse" if is_number else "log-loss"])
    base = np.array(losses[0])
    cells = [f"{base.mean():.5g}, {seconds[0]:.1f} s"]
    for n in bins:
        change = 100 * (np.array(losses[n]) / base - 1)
        error = change.std(ddof=1) / np.sqrt(len(change))
        cells.append(f"{change.mean():+.2f} % ± {error:.2f}, {seconds[n] / seconds[0]:.2f} times")
    print(f"| {name} | {len(y):,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=["steps", *(name for name in TABLES if name != "kdd99")])
    parser.add_argument("--rows", type=int, help="random samples of as many rows")
    parser.add_argument("--bins", type=int, nargs="*", default=[64, 256])
    parser.add_argument("--folds", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | rows | root | " + " | ".join(f"{n} bins" for n in given.bins) + " |")
    print("| --- | ---: | --- |" + " --- |" * len(given.bins))
    for table in given.tables:
        run(table, given.rows, given.bins, given.folds)
