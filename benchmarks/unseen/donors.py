"""Whole symbols held out: how many donors a JitterPredictor needs, and what they cost.

Columns of many symbols. The same fitted model answers with so many donors of a symbol at most, and with all: the
difference of the loss per row, with standard errors over held-out symbols, and the time of predict over that with all
donors. "plain": weights by the encoder's rule; "jitter": by the rule that calibration chose (rows that calibration
left to the model's own treatment take no donors, and count as equal). One seed.

    TABSYM_DATA=FOLDER python benchmarks/unseen/donors.py [--rows 4000] [--boosters lightgbm hist] [--tasks ...]
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product

import numpy as np
import pandas as pd
from models import BOOSTERS, Asking, difference
from sklearn.base import clone
from tasks import TASKS, Task, folds, is_classes, load, loss

from tabsym import JitterPredictor
from tabsym.compare.estimators import Jittered

MOST = (4, 16, 32, 64, 128, 256, None)
COLUMNS = ["amazon MGR_ID", "amazon ROLE_TITLE", "kick Model", "usedcars model_name", "titanic Ticket"]


def predictors(asking: Asking, name: str) -> dict[str, JitterPredictor]:
    """Not calibrated, and calibrated."""
    encoder = clone(asking.encoder).fit(asking.held.X, asking.y)
    model = asking.booster(name).fit(asking.held.X, asking.y)
    jittered = Jittered(asking.booster(name), asking.encoder, asking.seed).fit(asking.held.X, asking.y)
    return {"plain": JitterPredictor(model, encoder), "jitter": jittered.predictor_}


def run(task: Task, name: str, rows: int) -> pd.DataFrame:
    """For each symbol and count of donors: rows scored, the sum of losses and the seconds of all rows."""
    X, y = load(task)
    X, y = X[:rows], y[:rows]
    unit = 1.0 if is_classes(y) else y.var()
    records = []
    for held in folds(task, X, y, 0, 3):
        asking = Asking(held, task.column, 0, 1)
        count = np.bincount(held.codes, held.scored)
        for (kind, predictor), most in product(predictors(asking, name).items(), MOST):
            predictor.set_params(max_donors=most)
            start = time.perf_counter()
            values = asking.of(predictor)
            seconds = time.perf_counter() - start
            losses = np.bincount(held.codes, loss(held.y_new, values) * held.scored) / unit
            for code in np.flatnonzero(count):
                records.append([0, held.categories[code], f"{kind} {most}", count[code], losses[code], seconds])
    found = pd.DataFrame(records, columns=["seed", "symbol", "model", "rows", "loss", "seconds"])
    found["seconds"] /= found.groupby("model")["seconds"].transform("size")
    return found


def line(task: str, name: str, kind: str, found: pd.DataFrame) -> str:
    """Differences from all donors, and times."""
    by_model = dict(list(found.groupby("model")))
    everything = by_model[f"{kind} None"]
    cells = []
    for most in MOST[:-1]:
        one = by_model[f"{kind} {most}"]
        mean, error = difference(one, everything)
        times = one["seconds"].sum() / everything["seconds"].sum()
        cells.append(f"{mean:+.4f} ({error:.4f}), {times:.2f}")
    return f"| {task} | {name} {kind} | " + " | ".join(cells) + f" | {everything['seconds'].sum():.1f} s |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--boosters", nargs="*", default=list(BOOSTERS), choices=BOOSTERS)
    parser.add_argument("--tasks", nargs="*", default=COLUMNS)
    options = parser.parse_args()
    print("| column | | " + " | ".join(f"{most}" for most in MOST[:-1]) + " | all |")
    print("| --- | --- |" + " --- |" * len(MOST))
    for task, name in product([task for task in TASKS if task.name in options.tasks], options.boosters):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run(task, name, options.rows)
        for kind in ("plain", "jitter"):
            print(line(task.name, name, kind, found), flush=True)


if __name__ == "__main__":
    main()
