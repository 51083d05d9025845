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
from tabsym.stacking.defaults import default_wide  # noqa: E402

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


def three() -> list[Any]:
    return [wide(), wide(interactions=2), wide(interactions=3)]


def most(rng: np.random.RandomState, n: int) -> Any:
    """Nine tenths of the rows, each once: a bootstrap makes rare symbols common."""
    return np.sort(rng.permutation(n)[: 9 * n // 10])


MAKERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "wide": ("Wide model at its best", wide),
    "wide-pairs": ("Wide model, all pairs", lambda: wide(interactions=2)),
    "wide-triples": ("Wide model, all triples", lambda: wide(interactions=3)),
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
    table = pd.read_csv(out)
    found = table.groupby("contender", sort=False).agg(
        folds=("fold", "nunique"), seconds=("seconds", "median"), auc=("auc", "mean"), spread=("auc", "sem"),
        loss=("log-loss", "mean"), spread_of_loss=("log-loss", "sem"),
    )  # fmt: skip
    slow = found["seconds"].get("catboost", np.nan)
    print("| contender | folds | fit, s | of CatBoost's | AUC | log-loss |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, row in found.sort_values("seconds").iterrows():
        times = f"{row['folds']:.0f} | {row['seconds']:.1f} | {row['seconds'] / slow:.3f}"
        quality = f"{row['auc']:.4f} ± {row['spread']:.4f} | {row['loss']:.4f} ± {row['spread_of_loss']:.4f}"
        print(f"| {MAKERS[str(name)][0]} | {times} | {quality} |")
    reached = found[(found["auc"] >= TARGET_AUC) & (found["seconds"] <= TARGET_SHARE * slow)]
    print(f"\nAUC {TARGET_AUC} at {TARGET_SHARE:g} of CatBoost's time: {list(reached.index) or 'not reached'}")
    plot(found, slow, out.with_suffix(".png"))


def plot(found: pd.DataFrame, slow: float, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 5.2), layout="constrained")
    for axis, value, spread, sign in ((axes[0], "auc", "spread", 1), (axes[1], "loss", "spread_of_loss", -1)):
        edge = found.sort_values("seconds")
        best = (sign * edge[value]).cummax() == sign * edge[value]
        axis.plot(edge["seconds"][best], edge[value][best], color="0.8", zorder=0)
        for place, (name, row) in enumerate(edge.iterrows()):
            colour = "tab:green" if "stack" in str(name) else "tab:blue" if str(name).startswith("wide") else "tab:red"
            axis.errorbar(row["seconds"], row[value], yerr=row[spread], fmt="o", color=colour, capsize=2, lw=0.8)
            axis.annotate(MAKERS[str(name)][0], (row["seconds"], row[value]), fontsize=7.5,
                          xytext=(5, 5 if place % 2 else -11), textcoords="offset points")  # fmt: skip
        axis.set_xscale("log")
        axis.set_xlim(right=4 * edge["seconds"].max())
        axis.axvline(TARGET_SHARE * slow, color="0.6", ls=":", lw=1)
        axis.set_xlabel("seconds to fit (processor, one thread); dotted: a tenth of CatBoost's")
    axes[0].axhline(TARGET_AUC, color="0.6", ls=":", lw=1)
    axes[0].set_ylabel("AUC")
    axes[1].set_ylabel("log-loss")
    figure.suptitle("amazon, 5 folds: mean and its standard error over folds")
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
