"""Interactions within one category: what they gain on tables, and whether they are found where true and only there.

On tables: ``interactions="auto"`` without them, and with them at several least gains (in standard errors;
`tabsym.interactions.search.ERRORS_WITHIN` is the default). 5 folds, seed 0, tables prepared as `tabsym compare` does;
seconds of processor time of a fit. Needs `TABSYM_DATA`.

Generated: six columns of 4 to 10 categories with additive effects, and one category of a column, of a given share of
the rows, in which two others have an effect of their own for each combination ("within"), one other has effects of its
own ("pair of one category"), or none does ("additive").

    TABSYM_DATA=FOLDER python benchmarks/interactions/within.py [--tables kick rossmann] [--rows 60000]
    python benchmarks/interactions/within.py --generated 40
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent))

from scipy.special import expit
from sklearn.model_selection import KFold, StratifiedKFold
from tables import measure, read

from tabsym import WideClassifier, WideRegressor
from tabsym.interactions import search
from tabsym.models import config

RULES = ("FOR_REGRESSION", "FOR_CLASSES", "FOR_BINARY", "FOR_MANY_ROWS")
LEAST = (4.0, 5.0, 6.0)
SIZES = (4, 8, 10, 5, 6, 7)


def fitted(kind: type, X: pd.DataFrame, y: Any, least: float | None) -> Any:
    """A model without interactions within categories (None), or with those of this least gain."""
    rules = {name: replace(getattr(config, name), within_categories=least is not None) for name in RULES}
    with mock.patch.multiple(config, **rules), mock.patch.object(search, "ERRORS_WITHIN", least or 0.0):
        return kind(random_state=0).fit(X, y)


def of_table(name: str, n_rows: int | None) -> list[str]:
    """Rows of the table, one for each score: that without, and differences with their standard errors."""
    ready = read(name, n_rows)
    is_number = ready.task == "regression"
    kind = WideRegressor if is_number else WideClassifier
    n_classes = 0 if is_number else int(ready.y.max()) + 1
    folds = list((KFold if is_number else StratifiedKFold)(5, shuffle=True, random_state=0).split(ready.X, ready.y))
    found: dict[float | None, list[dict[str, float]]] = {}
    for train, test in folds:
        for least in (None, *LEAST):
            start = time.process_time()
            model = fitted(kind, ready.X.iloc[train], ready.y[train], least)
            seconds = time.process_time() - start
            n_within = sum(one.within is not None for one in model._chosen)
            scores = measure(model, ready.X.iloc[test], ready.y[test], n_classes)
            found.setdefault(least, []).append({**scores, "seconds": seconds, "n": n_within})
    frames = {least: pd.DataFrame(rows) for least, rows in found.items()}
    ratio = (frames[search.ERRORS_WITHIN]["seconds"] / frames[None]["seconds"]).median()
    lines = []
    for score in (one for one in ("auc", "log-loss", "rmse") if one in frames[None]):
        cells = [f"{frames[None][score].mean():.5g}"]
        for least in LEAST:
            change = frames[least][score] - frames[None][score]
            cells.append(f"{change.mean():+.2g} ± {change.sem():.1g} ({frames[least]['n'].mean():.1f})")
        lines.append(f"| {name}, {score} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    return lines


def drawn(seed: int, truth: str, share: float, n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A generated table and its linear predictor."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, n) for size in SIZES]
    codes[0] = rng.choice(SIZES[0], n, p=[share, *[(1 - share) / (SIZES[0] - 1)] * (SIZES[0] - 1)])
    score = sum(0.4 * rng.normal(size=size)[own] for size, own in zip(SIZES, codes, strict=True))
    if truth == "within":
        score = score + 1.5 * rng.normal(size=SIZES[1:3])[codes[1], codes[2]] * (codes[0] == 0)
    if truth != "additive":
        score = score + 1.5 * rng.normal(size=SIZES[1])[codes[1]] * (codes[0] == 0)
    return pd.DataFrame({f"c{i}": [f"v{code}" for code in own] for i, own in enumerate(codes)}), score


def generated(task: str, truth: str, share: float, n: int, n_tables: int) -> str:
    """A row: how often the true one is found, and how many others are, by least gain."""
    cells = []
    for least in LEAST:
        hits, others = [], []
        for seed in range(n_tables):
            X, score = drawn(seed, truth, share, n)
            rng = np.random.default_rng(1000 + seed)
            is_number = task == "regression"
            y = score + rng.normal(size=n) if is_number else (rng.random(n) < expit(score)).astype(int)
            model = fitted(WideRegressor if is_number else WideClassifier, X, y, least)
            names = {one.columns for one in model._chosen if one.within is not None and one.within.category == "v0"}
            n_within = sum(one.within is not None for one in model._chosen)
            hits.append(truth == "within" and ("c1", "c2") in names)
            others.append(n_within - hits[-1])
        found = f"{np.mean(hits):.2f} ({np.mean(others):.2f})" if truth == "within" else f"{np.mean(others):.2f}"
        cells.append(found)
    return f"| {task} | {truth} | {share:.0%} | {n:,} | " + " | ".join(cells) + " |"


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["kick", "rossmann", "chicago_taxi", "usedcars", "amazon"])
    parser.add_argument("--rows", type=int, help="of a sample of each table")
    parser.add_argument("--generated", type=int, help="number of generated tables of each kind, instead")
    args = parser.parse_args()
    heads = " | ".join(f"{least:g} errors" for least in LEAST)
    if args.generated:
        print(f"| target | truth | category's rows | rows | {heads} |\n" + "| --- " * 7 + "|")
        for task in ("regression", "two classes"):
            for truth in ("additive", "pair of one category", "within"):
                for share, n in ((0.05, 3000), (0.05, 12_000), (0.2, 3000), (0.2, 12_000)):
                    print(generated(task, truth, share, n, args.generated), flush=True)
        return
    print(f"| table, score | without | {heads} | time |\n" + "| --- " * 6 + "|")
    for name in args.tables:
        print(*of_table(name, args.rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
