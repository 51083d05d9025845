"""Amazon, the whole table: AUC and log-loss against the processor time of a fit.

5 stratified folds, seed 0; one thread. Seconds are of the processor, from the DataFrame to the fitted model. Rows go
to results/frontier.csv as they arrive, the cheap contenders of all folds first (CatBoost takes minutes); what stands
there is not run again. `--report` prints the table and draws results/frontier.png.

    TABSYM_DATA=FOLDER taskset -c 0 python benchmarks/stacking/frontier.py [--only wide catboost] [--report]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from sklearn.metrics import log_loss, roc_auc_score  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402
from tables import commit, read  # noqa: E402

from tabsym import WideBoostClassifier  # noqa: E402
from tabsym.compare.contenders import all_contenders  # noqa: E402
from tabsym.stacking.layer import default_wide  # noqa: E402

SEED, FOLDS = 0, 5
TARGET_AUC, TARGET_SHARE = 0.897, 0.1
"""The goal: such an AUC at this share of CatBoost's fit time."""
LIBRARIES = ["lightgbm", "xgboost", "catboost", "scikit-learn", "numba", "numpy", "pandas"]


class Average:
    """Mean scores of fitted models."""

    def __init__(self, make: Callable[[int], Any], n: int, draw: Callable[[np.random.RandomState, int], Any]) -> None:
        self.make, self.n, self.draw = make, n, draw

    def fit(self, X: Any, y: Any) -> Average:
        rng = np.random.RandomState(SEED)
        self.models = []
        for place in range(self.n):
            rows = self.draw(rng, len(y))
            self.models.append(self.make(place).fit(X.iloc[rows], y[rows]))
        return self

    def predict_proba(self, X: Any) -> Any:
        scores = np.mean([model.decision_function(X) for model in self.models], axis=0)
        chances = 1.0 / (1.0 + np.exp(-scores))
        return np.column_stack([1.0 - chances, chances])


class Blend:
    """Mean scores of one model of each kind."""

    def __init__(self, models: list[Any]) -> None:
        self.models = models

    def fit(self, X: Any, y: Any) -> Blend:
        self.models = [model.fit(X, y) for model in self.models]
        return self

    def predict_proba(self, X: Any) -> Any:
        chances = [np.clip(model.predict_proba(X)[:, 1], 1e-6, 1 - 1e-6) for model in self.models]
        found = 1.0 / (1.0 + np.exp(-np.mean([np.log(one / (1.0 - one)) for one in chances], axis=0)))
        return np.column_stack([1.0 - found, found])


def wide(seed: int = SEED, **options: Any) -> Any:
    return default_wide(True, seed, 1).set_params(**options)


def library(name: str) -> Any:
    return all_contenders()[name].estimator("binary", SEED, 1, None)


def stack(**options: Any) -> Any:
    return WideBoostClassifier(random_state=SEED, n_jobs=1, **options)


def bootstrap(rng: np.random.RandomState, n: int) -> Any:
    return rng.randint(n, size=n)


def every(rng: np.random.RandomState, n: int) -> Any:
    return np.arange(n)


def triples() -> list[tuple[str, ...]]:
    """All pairs and all triples of the columns."""
    names = list(read("amazon", None).X)
    return [members for order in (2, 3) for members in combinations(names, order)]


def three() -> list[Any]:
    return [wide(), wide(interactions="pairwise"), wide(interactions=triples())]


def most(rng: np.random.RandomState, n: int) -> Any:
    """Nine tenths of the rows, each once: a bootstrap makes rare symbols common."""
    return np.sort(rng.permutation(n)[: 9 * n // 10])


MAKERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "wide": ("Wide model", wide),
    "wide-pairs": ("Wide model, all pairs", lambda: wide(interactions="pairwise")),
    "wide-triples": ("Wide model, all triples", lambda: wide(interactions=triples())),
    "wide-5-bootstraps": ("Mean of 5 wide models, bootstraps", lambda: Average(wide, 5, bootstrap)),
    "wide-5-subsets": ("Mean of 5 wide models, 90 % of the rows", lambda: Average(wide, 5, most)),
    "wide-3-seeds": ("Mean of 3 wide models, seeds", lambda: Average(wide, 3, every)),
    "wide-two": ("Mean of all pairs and all triples", lambda: Blend(three()[1:])),
    "wide-three": ("Mean of wide, all pairs, all triples", lambda: Blend(three())),
    "lightgbm": ("LightGBM native", lambda: library("lightgbm")),
    "xgboost": ("XGBoost native", lambda: library("xgboost")),
    "stack": ("Wide + LightGBM, default", stack),
    "stack-margin": ("mode='margin', early_stopping=0.1", lambda: stack(mode="margin", early_stopping=0.1)),
    "stack-feature": ("mode='feature'", lambda: stack(mode="feature")),
    "wide-with-xgboost": ("Mean of wide and XGBoost native", lambda: Blend([wide(), library("xgboost")])),
    "wide-three-with-xgboost": ("Mean of those three and XGBoost", lambda: Blend([*three(), library("xgboost")])),
    "catboost": ("CatBoost native", lambda: library("catboost")),
    "wide-with-catboost": ("Mean of wide and CatBoost native", lambda: Blend([wide(), library("catboost")])),
}


def run(name: str, fold: int, out: Path) -> None:
    if out.exists() and (pd.read_csv(out)[["contender", "fold"]] == [name, fold]).all(axis=1).any():
        return
    ready = read("amazon", None)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    train, test = list(folds.split(ready.X, ready.y))[fold]
    X, y = ready.X.iloc[train], ready.y[train]
    wide().fit(X.head(2000), y[:2000])  # compiled, before the clock starts
    start = time.process_time()
    model = MAKERS[name][1]().fit(X, y)
    taken = time.process_time() - start
    start = time.process_time()
    chances = np.asarray(model.predict_proba(ready.X.iloc[test]))[:, 1]
    row = {"contender": name, "fold": fold, "seconds": taken, "seconds to predict": time.process_time() - start}
    row |= {"auc": roc_auc_score(ready.y[test], chances), "log-loss": log_loss(ready.y[test], chances)}
    row |= {"rows": len(ready.y), "seed": SEED, "commit": commit()} | {name: version(name) for name in LIBRARIES}
    pd.DataFrame([row]).to_csv(out, mode="a", header=not out.exists(), index=False)
    print(name, fold, f"{taken:.1f} s, AUC {row['auc']:.4f}, log-loss {row['log-loss']:.4f}", flush=True)


def report(out: Path) -> None:
    """Means over folds; differences to CatBoost fold by fold, with their standard error."""
    table = pd.read_csv(out)
    found = table.groupby("contender", sort=False).agg(
        folds=("fold", "nunique"), seconds=("seconds", "median"), auc=("auc", "mean"), loss=("log-loss", "mean")
    )
    for measure, name in (("auc", "auc"), ("log-loss", "loss")):
        by_fold = table.pivot(index="fold", columns="contender", values=measure)
        apart = by_fold.sub(by_fold["catboost"], axis=0)
        found[f"{name} apart"], found[f"{name} error"] = apart.mean(), apart.sem()
    found = found.sort_values("seconds")
    slow = found["seconds"]["catboost"]
    print("|  | contender | folds | fit, s | of CatBoost's | AUC | to CatBoost's | log-loss | to CatBoost's |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for number, (name, row) in enumerate(found.iterrows(), 1):
        times = f"{row['folds']:.0f} | {row['seconds']:.1f} | {row['seconds'] / slow:.3f}"
        auc = f"{row['auc']:.4f} | {row['auc apart']:+.4f} ± {row['auc error']:.4f}"
        loss = f"{row['loss']:.4f} | {row['loss apart']:+.4f} ± {row['loss error']:.4f}"
        print(f"| {number} | {MAKERS[str(name)][0]} | {times} | {auc} | {loss} |")
    reached = found[(found["auc"] >= TARGET_AUC) & (found["seconds"] <= TARGET_SHARE * slow)]
    print(f"\nAUC {TARGET_AUC} at {TARGET_SHARE:g} of CatBoost's time: {', '.join(reached.index) or 'not reached'}")
    plot(found, slow, out.with_suffix(".png"))


def plot(found: pd.DataFrame, slow: float, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 5.2), layout="constrained")
    for axis, value, label in ((axes[0], "auc", "AUC"), (axes[1], "loss", "log-loss")):
        for number, (name, row) in enumerate(found.iterrows(), 1):
            colour = "tab:green" if "stack" in str(name) else "tab:blue" if str(name).startswith("wide") else "tab:red"
            y, error = row[f"{value} apart"], row[f"{value} error"]
            label_of = f"{number}  {MAKERS[str(name)][0]}" if value == "auc" else None
            axis.errorbar(row["seconds"], y, yerr=error, fmt="o", color=colour, capsize=2, lw=0.8, label=label_of)
            axis.annotate(str(number), (row["seconds"], y), fontsize=9, xytext=(4, 5), textcoords="offset points")
        axis.set_xscale("log")
        axis.axhline(0.0, color="0.85", lw=1, zorder=0)
        axis.axvline(TARGET_SHARE * slow, color="0.6", ls=":", lw=1)
        axis.set_xlabel("seconds to fit; dotted: a tenth of CatBoost's")
        axis.set_ylabel(f"{label}, less CatBoost's in the same fold")
    axes[0].axhline(TARGET_AUC - found["auc"]["catboost"], color="0.6", ls=":", lw=1)
    figure.legend(loc="outside right center", fontsize=8.5, handlelength=0.8)
    figure.suptitle("amazon, 5 folds: mean difference to CatBoost and its standard error")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(MAKERS), choices=list(MAKERS))
    parser.add_argument("--folds", type=int, default=FOLDS, help="run the first so many")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "frontier.csv")
    parser.add_argument("--report", action="store_true", help="run nothing, read --out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for name in [] if args.report else args.only:
        for fold in range(args.folds):
            run(name, fold, args.out)
    report(args.out)


if __name__ == "__main__":
    main()
