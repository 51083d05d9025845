"""What a constant of the evidence models is worth: folds with another value beside the same folds with the package's.

A constant is named by its module below `tabsym` and its name, and takes a number; of several, all at once:

    TABSYM_DATA=FOLDER python benchmarks/evidence/choices.py --tables amazon kick \\
        --set solvers.newton.variances.AS_GOOD_OF_CLASSES=1
    ... --set solvers.newton.variances.STILL=300 --set solvers.newton.variances.STANDING=30 --tables usedcars adult
    ... --set models.loss_selection.MAX_ROWS=50000 --variant link --tables rossmann

Prints, for each table and seed of the folds, means over folds and random states, and the difference with its standard
error over folds. How the constants in the README were chosen; an optimum among many values tried is flattered a little.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from types import ModuleType

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from study import MAX_ROWS, variants
from tables import TABLES, measure, read

Constant = tuple[ModuleType, str, float]


def constant(text: str) -> Constant:
    """The module, name and new value of "module.NAME=value"."""
    path, _, value = text.partition("=")
    module, _, name = path.rpartition(".")
    found = importlib.import_module(f"tabsym.{module}")
    before = getattr(found, name)
    return found, name, type(before)(float(value))


def fold_scores(ready, train, test, make, states) -> tuple[list[str], np.ndarray]:
    """Names and mean over random states of the measures of one fold, and the median processor time of a fit."""
    rows, seconds, names = [], [], []
    for state in states:
        start = time.thread_time()
        model = make(random_state=state).fit(ready.X.iloc[train], ready.y[train])
        seconds.append(time.thread_time() - start)
        found = measure(model, ready.X.iloc[test], ready.y[test], len(ready.classes))
        names = [*found, "seconds"]
        rows.append(list(found.values()))
    return names, np.append(np.mean(rows, axis=0), np.median(seconds))


def compare(
    name: str, seed: int, variant: str, constants: list[Constant], states: list[int], n_rows: int | None
) -> None:
    ready = read(name, MAX_ROWS.get(name))
    rows = np.arange(len(ready.y)) if n_rows is None else np.random.default_rng(seed).permutation(len(ready.y))[:n_rows]
    make = variants(len(ready.classes))[variant]
    splitter = (KFold if ready.task == "regression" else StratifiedKFold)(5, shuffle=True, random_state=seed)
    folds = [(rows[train], rows[test]) for train, test in splitter.split(ready.X.iloc[rows], ready.y[rows])]
    names, scores = [], []
    for changed in (False, True):
        before = [getattr(module, key) for module, key, _ in constants]
        for module, key, value in constants if changed else []:
            setattr(module, key, value)
        names, _ = fold_scores(ready, *folds[0], make, states[:1])  # compiles
        scores.append([fold_scores(ready, *fold, make, states)[1] for fold in folds])
        for (module, key, _), value in zip(constants, before, strict=True):
            setattr(module, key, value)
    package, other = np.array(scores)
    for place, what in enumerate(names):
        one, two = package[:, place], other[:, place]
        error = (two - one).std(ddof=1) / np.sqrt(len(one))
        print(f"{name:20s} seed {seed}  {what:9s} {one.mean():.5g} -> {two.mean():.5g}", end="  ")
        print(f"({(two - one).mean():+.2g} ± {error:.1g})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", dest="constants", type=constant, action="append", required=True)
    parser.add_argument("--tables", nargs="+", required=True, choices=list(TABLES))
    parser.add_argument("--rows", type=int, help="of a random sample, another one for each seed")
    parser.add_argument("--variant", default="rare", help="of study.py")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1], help="of the folds")
    parser.add_argument("--states", nargs="+", type=int, default=[0, 1], help="of the models")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in args.tables:
        for seed in args.seeds:
            compare(name, seed, args.variant, args.constants, args.states, args.rows)


if __name__ == "__main__":
    main()
