"""Interactions of smooth numbers at several numbers of bins, and the bins by which they are chosen.

By default an interaction has a coefficient for each combination of all bins, and for each of 4 and of 16 bins of equal
frequency (`tabsym.design.plan.LEVELS`), each set with a variance of its own, and interactions are chosen by 8 bins of
each number (`tabsym.models.bins.SEARCHED_BINS`). Beside it: all bins only ("cells"), other numbers of bins, and a
choice by finer bins. 5 folds, seed 0, tables prepared as `tabsym compare` does; seconds of processor time of the fit.
Needs `TABSYM_DATA`.

    TABSYM_DATA=FOLDER python benchmarks/interactions/resolutions.py [--tables covtype_small kick] [--folds 5]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent))

from sklearn.model_selection import KFold, StratifiedKFold
from tables import measure, read

from tabsym import WideClassifier, WideRegressor
from tabsym.design import plan
from tabsym.models import bins

VARIANTS: dict[str, tuple[tuple[int, ...], int]] = {
    "4, 16": (plan.LEVELS, bins.SEARCHED_BINS),
    "cells": ((), bins.SEARCHED_BINS),
    "8": ((8,), bins.SEARCHED_BINS),
    "4, 8, 16": ((4, 8, 16), bins.SEARCHED_BINS),
    "by 16 bins": (plan.LEVELS, 16),
    "by 32 bins": (plan.LEVELS, 32),
}
"""Numbers of bins of an interaction, and of those by which it is chosen."""


@contextmanager
def variant(levels: tuple[int, ...], searched: int) -> Iterator[None]:
    """Fits with these numbers of bins."""
    cut = bins.Ordered.cut_levels if levels else (lambda *_: {})
    with (
        mock.patch.object(plan, "LEVELS", levels),
        mock.patch.object(bins, "LEVELS", levels or plan.LEVELS or (16,)),
        mock.patch.object(bins, "SEARCHED_BINS", searched),
        mock.patch.object(bins.Ordered, "cut_levels", cut),
    ):
        yield


def run(name: str, n_folds: int) -> pd.DataFrame:
    """Scores and seconds by fold and variant."""
    ready = read(name, None)
    is_number = ready.task == "regression"
    kind = WideRegressor if is_number else WideClassifier
    n_classes = 0 if is_number else int(ready.y.max()) + 1
    folds = (KFold if is_number else StratifiedKFold)(5, shuffle=True, random_state=0)
    found = []
    for fold, (train, test) in enumerate(list(folds.split(ready.X, ready.y))[:n_folds]):
        for label, (levels, searched) in VARIANTS.items():
            with variant(levels, searched):
                start = time.process_time()
                model = kind().fit(ready.X.iloc[train], ready.y[train])
                seconds = time.process_time() - start
            scores = measure(model, ready.X.iloc[test], ready.y[test], n_classes)
            found.append({"fold": fold, "variant": label, "seconds": seconds, **scores})
    return pd.DataFrame(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["covtype_small", "kick", "usedcars", "rossmann", "adult"])
    parser.add_argument("--folds", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table, score | " + " | ".join(VARIANTS) + " |\n" + "| --- " * (1 + len(VARIANTS)) + "|")
    first = next(iter(VARIANTS))
    for name in args.tables:
        by_fold = run(name, args.folds).pivot(index="fold", columns="variant")
        for score in (one for one in ("auc", "log-loss", "rmse") if one in by_fold):
            own = by_fold[score]
            less = own.sub(own[first], axis=0)
            errors = less.std() / np.sqrt(len(less))
            cells = [
                f"{own[label].mean():.5g}"
                + ("" if label == first else f" ({less[label].mean():+.2g} +- {errors[label]:.1g})")
                for label in VARIANTS
            ]
            print(f"| {name}, {score} | " + " | ".join(cells) + " |", flush=True)
        seconds = [f"{by_fold['seconds'][label].median():.1f}" for label in VARIANTS]
        print(f"| {name}, seconds | " + " | ".join(seconds) + " |", flush=True)


if __name__ == "__main__":
    main()
