"""Several classes: held-out log-loss with another value of a constant beside the package's, on many targets.

Columns of public tables as targets, tables of scikit-learn, and generated ones, where half of the columns have no
effect:

    TABSYM_DATA=FOLDER python benchmarks/evidence/classes.py --set solvers.newton.variances.SEPARATED=0
    ... --rows 8000 --set solvers.newton.variances.MAX_SWEEPS_OF_HALF=30

Prints, for each target, means over the first two of five folds, the package's over the other's, and processor times of
a fit; in the end the geometric means of the ratios, also of the targets that are hard to predict: in losses near 0 a
ratio says little.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
from choices import Constant, constant
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold
from tables import read

from tabsym import WideClassifier

TARGETS = {
    "adult": ["workclass", "occupation", "race", "marital-status", "education"],
    "kick": ["Auction", "Color", "Size", "Nationality", "TopThreeAmericanName"],
    "compas": ["race", "v_score_text", "decile_score.1"],
    "chicago_taxi": ["payment_type"],
    "usedcars": ["color", "body_type", "engine_fuel", "location_region"],
    "titanic": ["Pclass", "Embarked"],
    "rossmann": ["StoreType"],
    "kdd99": [None],  # their own
    "covtype_small": [None],
}
SAME = ["relationship", "education-num", "v_decile_score", "score_text", "decile_score", "engine_type"]
"""Columns that say what a target is, and are left out."""

FEWEST, HARD = 10, 0.05
"""Rows of a class, for it to be kept; the log-loss from which a target counts as hard to predict."""


def public(n_rows: int) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    for table, columns in TARGETS.items():
        ready = read(table, None)
        for column in columns:
            X = ready.X.drop(columns=[name for name in [column, *SAME] if name in ready.X])
            y = pd.Series(ready.y if column is None else ready.X[column].to_numpy())
            known = np.flatnonzero(y.notna())
            rows = known[np.random.default_rng(0).permutation(len(known))[:n_rows]]
            X, y = X.iloc[rows].reset_index(drop=True), y.iloc[rows].astype(str).reset_index(drop=True)
            kept = y.map(y.value_counts()) >= FEWEST
            yield f"{table}, {column or 'its own'}", X[kept].reset_index(drop=True), y[kept].to_numpy()
    for name, load in {"digits": load_digits, "wine": load_wine, "iris": load_iris}.items():
        X, y = load(as_frame=True, return_X_y=True)
        yield name, X, y.to_numpy()


def generated() -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Six columns of categories and four numbers; half of them have no effect."""
    kinds = [
        *product((1000, 4000), (3, 8), (5, 30), (0.0, 0.5, 2.0), [0.0]),
        *product([4000], (3, 8), (5, 30), [1], [1]),
    ]
    for n, k, q, sd, interaction in kinds:
        rng = np.random.default_rng(0)
        codes, numbers = rng.integers(0, q, (n, 6)), rng.normal(size=(n, 4))
        scores = sum(sd * rng.normal(size=(q, k))[codes[:, column]] for column in range(3))
        scores = scores + sum(np.outer(np.sin(2 * numbers[:, at]) * sd, rng.normal(size=k)) for at in range(2))
        scores += interaction * rng.normal(size=(q, q, k))[codes[:, 0], codes[:, 1]]
        X = pd.DataFrame(codes.astype(str)).add_prefix("c").join(pd.DataFrame(numbers).add_prefix("x"))
        name = f"{n} rows, {k} classes, {q} categories, sd {sd:g}" + (", an interaction" if interaction else "")
        yield name, X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1).astype(str)


def log_loss_and_time(X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    found = []
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))[:2]
    for train, test in folds:
        start = time.process_time()
        model = WideClassifier(random_state=0).fit(X.iloc[train], y[train])
        seconds = time.process_time() - start
        places = np.searchsorted(model.classes_, y[test])
        chances = model.predict_proba(X.iloc[test])[np.arange(len(test)), places]
        found.append([-np.log(np.maximum(chances, 1e-9)).mean(), seconds])
    return np.mean(found, axis=0)


def compare(targets: Iterator[tuple[str, pd.DataFrame, np.ndarray]], constants: list[Constant]) -> None:
    print("| target | classes | package | other | ratio | s | s |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    ratios, are_hard = [], []
    for name, X, y in targets:
        package = log_loss_and_time(X, y)
        before = [getattr(module, key) for module, key, _ in constants]
        for module, key, value in constants:
            setattr(module, key, value)
        other = log_loss_and_time(X, y)
        for (module, key, _), value in zip(constants, before, strict=True):
            setattr(module, key, value)
        ratios.append(package[0] / other[0])
        are_hard.append(other[0] >= HARD)
        losses = f"{package[0]:.4f} | {other[0]:.4f} | {ratios[-1]:.3f}"
        print(f"| {name} | {len(set(y))} | {losses} | {package[1]:.2f} | {other[1]:.2f} |", flush=True)
    of_hard = np.exp(np.log(ratios)[are_hard].mean())
    print(f"geometric mean of the ratios: {np.exp(np.log(ratios).mean()):.4f}; of hard targets: {of_hard:.4f}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", dest="constants", type=constant, action="append", required=True)
    parser.add_argument("--rows", type=int, default=3000, help="of a random sample of each public table")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    compare(public(args.rows), args.constants)
    compare(generated(), args.constants)


if __name__ == "__main__":
    main()
