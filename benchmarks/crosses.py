"""Crosses chosen by evidence (interactions="auto") beside none and all pairs, trained online at defaults, in one run.

5 folds, seed 0, stratified for classes. Each fold fits every contender in
turn, after a small warm-up fit, so that ratios of times are of the same minute
on the same machine; with `--repeats` the folds are run again for the times'
spread. kick and usedcars are prepared as `tabsym compare` does (dates as days,
month and weekday).

Units: AUC and log-loss for classes, RMSE and MAE (in dollars) for usedcars.
`fit` is from the DataFrame to the fitted model. `selection` is what choosing
adds to it: the models of the folds and the search, without coding the columns,
which is done once for the choice and the final training. Both also in fits
without crosses, fold by fold, of which the median is shown. kick and usedcars
need `TABSYM_DATA`.

    python benchmarks/crosses.py [--tables amazon adult kick usedcars] [--repeats 1] [--seed 0]
        [--contenders none auto ...]

With `--none`: how many crosses are found in generated tables that have none.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold

from tabsym import MODLEncoder, WideSGDClassifier, WideSGDRegressor
from tabsym.compare.table.prepare import prepare
from tabsym.datasets import PUBLIC, load
from tabsym.design.model_spec import ModelSpec
from tabsym.interactions import AutoInteractions
from tabsym.interactions.search import Chosen
from tabsym.models import fitting

BY_LEVEL = "MODL level of the pair"
MAX_BY_LEVEL = 40
CONTENDERS: dict[str, Any] = {
    "none": None,
    "all pairs": "pairwise",
    BY_LEVEL: "auto",  # with the choice replaced, see `chosen_by_level`
    "auto, pairs": AutoInteractions(max_order=2),
    "auto": "auto",
}


def read(name: str) -> tuple[pd.DataFrame, np.ndarray, bool]:
    """Features, target, and whether that is a number."""
    public = PUBLIC[name]
    if name in ("kick", "usedcars"):
        table = Path(os.environ["TABSYM_DATA"]) / f"{name}.parquet"
        ready = prepare(table, public.target, drop=[column for column in public.drop if column != "PurchDate"])
        return ready.X, ready.y, ready.task == "regression"
    X, y = load(name)
    return X.astype("str") if name == "amazon" else X, (np.asarray(y) == np.unique(y)[1]).astype(int), False


def pairs_by_level(X: pd.DataFrame, y: np.ndarray) -> list[Chosen]:
    """Pairs whose Level, grouped as one column, exceeds the sum of the two columns' Levels; by the excess."""
    names = [name for name in X if not pd.api.types.is_numeric_dtype(X[name]) and X[name].nunique() > 1]
    text = X[names].astype(str)
    crossed = {(a, b): text[a] + "|" + text[b] for a, b in combinations(names, 2)}
    kind = "continuous" if y.dtype.kind == "f" else "classes"
    encoder = MODLEncoder(n_candidates=1, target_type=kind)
    levels = encoder.fit(text, y).levels_
    excess = {}
    for (a, b), column in crossed.items():
        level = encoder.fit(column.to_frame("pair"), y).levels_["pair"]
        excess[a, b] = level - levels[a] - levels[b]
    best = sorted((pair for pair in excess if excess[pair] > 0), key=lambda pair: -excess[pair])[:MAX_BY_LEVEL]
    return [Chosen(pair, excess[pair], 0.0, 1, crossed[pair].nunique()) for pair in best]


@contextmanager
def chosen_by_level(X: pd.DataFrame, y: np.ndarray, active: bool) -> Iterator[None]:
    """Fits within take the pairs of `pairs_by_level`."""
    choose = fitting.search_interactions
    if active:
        fitting.search_interactions = lambda *args: pairs_by_level(X, y)
    try:
        yield
    finally:
        fitting.search_interactions = choose


@contextmanager
def timed_selection() -> Iterator[list[float]]:
    """The seconds that choosing crosses takes without coding, one for each fit within."""
    seconds: list[float] = []
    choose, grow = fitting.search_interactions, ModelSpec.grow

    def timed_choice(*args: Any) -> Any:
        start = time.perf_counter()
        coding.clear()
        ModelSpec.grow = timed_coding  # type: ignore[method-assign]
        try:
            return choose(*args)
        finally:
            ModelSpec.grow = grow  # type: ignore[method-assign]
            seconds.append(time.perf_counter() - start - sum(coding))

    coding: list[float] = []

    def timed_coding(*args: Any) -> Any:
        start = time.perf_counter()
        try:
            return grow(*args)
        finally:
            coding.append(time.perf_counter() - start)

    fitting.search_interactions = timed_choice  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        fitting.search_interactions = choose  # type: ignore[method-assign]


def errors(model: Any, X: pd.DataFrame, y: np.ndarray) -> dict[str, float]:
    if isinstance(model, WideSGDRegressor):
        predicted = model.predict(X)
        return {"rmse": root_mean_squared_error(y, predicted), "mae": mean_absolute_error(y, predicted)}
    chance = model.predict_proba(X)[:, 1]
    return {"auc": roc_auc_score(y, chance), "log-loss": log_loss(y, chance)}


def compare(name: str, repeats: int, contenders: list[str], seed: int) -> None:
    X, y, is_number = read(name)
    kind = WideSGDRegressor if is_number else WideSGDClassifier
    folds = (KFold if is_number else StratifiedKFold)(5, shuffle=True, random_state=0)
    rows = []
    for (fold, (train, test)), repeat in product(enumerate(folds.split(X, y)), range(repeats)):
        X_train, X_test, y_train = X.iloc[train], X.iloc[test], y[train]
        for contender in contenders:
            interactions = CONTENDERS[contender]
            make = partial(kind, interactions=interactions, random_state=seed)
            make().fit(X_train.iloc[:2000], y_train[:2000])
            with chosen_by_level(X_train, y_train, contender == BY_LEVEL), timed_selection() as seconds:
                start = time.perf_counter()
                model = make().fit(X_train, y_train)
                fit = time.perf_counter() - start
            row = {"contender": contender, "fold": fold, "repeat": repeat, "fit": fit, "selection": sum(seconds)}
            row["crosses"] = sum(":" in block for block in model.coefs_)
            row["entries"] = model.model_.spec.n_coefs
            rows.append(row | errors(model, X_test, y[test]))
    table = pd.DataFrame(rows)
    none = table[table["contender"] == "none"].set_index(["fold", "repeat"])["fit"]
    base = table.set_index(["fold", "repeat"]).index.map(none)
    table["fit, in fits of none"] = table["fit"] / base
    table["selection, in fits of none"] = table["selection"] / base
    measures = [*errors(model, X_test, y[test])]
    shown = table.groupby("contender", sort=False).agg(
        dict.fromkeys([*measures, "crosses", "entries"], "mean")
        | dict.fromkeys(["fit", "fit, in fits of none", "selection, in fits of none"], "median")
    )
    spread = table[table["contender"] == "auto"]["selection, in fits of none"].quantile([0.1, 0.9])
    print(f"\n{name}\n{shown.round(4).to_string()}")
    print(f"auto's selection in fits of none, eight tenths of the fits: {spread.iloc[0]:.1f} to {spread.iloc[1]:.1f}")


def without_crosses(seeds: range) -> None:
    """Crosses found where the target is noise or a sum of main effects, and what they do to the loss of fresh rows."""
    shapes = {300: [2, 3, 8, 40], 2000: [3, 5, 10, 30, 100], 4000: [3, 5, 10, 30, 100, 400], 20_000: [5, 50, 500, 2000]}
    rows = []
    for (n_rows, sizes), seed, has_main in product(shapes.items(), seeds, (False, True)):
        rng = np.random.RandomState(seed)
        X = pd.DataFrame({f"c{i}": rng.randint(0, size, 2 * n_rows).astype(str) for i, size in enumerate(sizes)})
        main = sum(rng.normal(size=size)[X[name].astype(int)] for name, size in zip(X, sizes)) * has_main
        chance = 1 / (1 + np.exp(-np.asarray(main) + (not has_main)))
        targets = {
            "two classes": rng.rand(2 * n_rows) < chance,
            "four classes": (rng.rand(2 * n_rows) < chance) + 2 * (rng.rand(2 * n_rows) < 0.4),
            "numbers": main + rng.normal(size=2 * n_rows),
        }
        for kind, y in targets.items():
            make = partial(WideSGDRegressor if kind == "numbers" else WideSGDClassifier, random_state=seed)
            auto, none = (make(interactions=how).fit(X[:n_rows], y[:n_rows]) for how in ("auto", None))
            losses = [_loss(model, X[n_rows:], y[n_rows:]) for model in (auto, none)]
            kept = {"rows": n_rows, "target": kind, "main effects": has_main, "tables": 1}
            rows.append(kept | {"crosses": len(auto.interactions_), "loss, auto to none": losses[0] / losses[1]})
    table = pd.DataFrame(rows)
    how = {"tables": "sum", "crosses": "sum", "loss, auto to none": "mean"}
    print(table.groupby(["rows", "target", "main effects"]).agg(how).round(4).to_string())
    print(f"{table['crosses'].sum()} crosses in {len(table)} fits")


def _loss(model: Any, X: pd.DataFrame, y: np.ndarray) -> float:
    if isinstance(model, WideSGDRegressor):
        return root_mean_squared_error(y, model.predict(X))
    return log_loss(y, model.predict_proba(X))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["amazon", "adult", "kick", "usedcars"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--seed", type=int, default=0, help="of the models; that of the folds is 0")
    parser.add_argument("--none", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.none:
        without_crosses(range(100, 107))
        return
    for name in args.tables:
        compare(name, args.repeats, args.contenders, args.seed)


if __name__ == "__main__":
    main()
