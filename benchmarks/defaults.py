"""The study behind the defaults of the wide models: learning rate, penalty and epochs.

For every development table: 3 folds, one epoch at a time, held-out loss
(log-loss, or squared error over the variance of the target) and AUC after
each epoch, for each rate and penalty. A default must be good on every table, so
the summary ranks settings by their mean and worst regret against each table's best.

    TABSYM_DATA=FOLDER python benchmarks/defaults.py [--out benchmarks/results/defaults.csv]
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, mean_squared_error, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from tabsym import WideSGDClassifier, WideSGDRegressor, datasets
from tabsym.optimizers import Adagrad

TABLES = [
    "titanic",
    "compas",
    "covtype_small",
    "amazon",
    "adult",
    "usedcars",
    "kick",
    "chicago_taxi",
    "talkingdata_clicks",
    "rossmann",
    "kdd99",
]
MAX_ROWS = 60_000
RATES = [0.25, 0.5, 1.0]  # over sqrt(terms)
PENALTIES = [0.0, 0.003, 0.01, 0.03]
STARTS = [0.1, 1.0]
EPOCHS = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20]


def study(name: str, interactions: int) -> list[dict]:
    """Rows by the columns of results/defaults.csv: `l2` is `alpha`, `interactions` 1 for none and 2 for all pairs."""
    X, y = datasets.load(name)
    if len(X) > MAX_ROWS:
        rows = np.random.RandomState(0).permutation(len(X))[:MAX_ROWS]
        X, y = X.iloc[rows], y.iloc[rows]
    task = datasets.PUBLIC[name].task
    if task != "regression":
        y = y.where(y.map(y.value_counts()) >= 10).dropna()
        X = X.loc[y.index]
    elif y.isna().any():
        X, y = X[y.notna()], y[y.notna()]
    y = y.to_numpy()
    folds = KFold(3, shuffle=True, random_state=0) if task == "regression" else StratifiedKFold(
        3, shuffle=True, random_state=0
    )  # fmt: skip
    splits = list(folds.split(X, y))
    terms = X.shape[1]
    if interactions == 2:
        categorical = X.select_dtypes(exclude="number").shape[1]
        terms += categorical * (categorical - 1) // 2
    out = []
    for rate, alpha, start in itertools.product(RATES, PENALTIES, STARTS):
        for fold, (train, test) in enumerate(splits):
            model_class = WideSGDRegressor if task == "regression" else WideSGDClassifier
            model = model_class(
                interactions="pairwise" if interactions == 2 else None,
                learning_rate=rate / np.sqrt(terms),
                alpha=alpha,
                optimizer=Adagrad(initial_accumulator_value=start),
                random_state=0,
            )
            for epoch in range(1, max(EPOCHS) + 1):
                model.partial_fit(X.iloc[train], y[train])
                if epoch in EPOCHS:
                    row = {"table": name, "interactions": interactions, "rate": rate, "l2": alpha, "start": start}
                    out.append(row | {"epoch": epoch, "fold": fold} | score(model, X.iloc[test], y[test], task))
    return out


def score(model, X: pd.DataFrame, y: np.ndarray, task: str) -> dict:
    if task == "regression":
        return {"loss": mean_squared_error(y, model.predict(X)) / np.var(y)}
    probabilities = model.predict_proba(X)
    row = {"loss": log_loss(y, probabilities, labels=model.classes_)}
    if task == "binary":
        row["auc"] = roc_auc_score(y, probabilities[:, 1])
    return row


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and worst relative regret of each setting over the tables."""
    keys = ["table", "interactions", "rate", "l2", "start", "epoch"]
    mean = results.groupby(keys)["loss"].mean().reset_index()
    best = mean.groupby(["table", "interactions"])["loss"].transform("min")
    mean["regret"] = mean["loss"] / best - 1
    setting = mean.groupby(["interactions", "rate", "l2", "start", "epoch"])["regret"]
    return setting.agg(["mean", "max"]).reset_index().sort_values("mean")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "defaults.csv")
    parser.add_argument("--tables", nargs="*", default=TABLES)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.parent.mkdir(exist_ok=True, parents=True)
    rows: list[dict] = []
    for name, interactions in itertools.product(args.tables, [1, 2]):
        if interactions == 2 and name in ("kick", "covtype_small"):
            continue  # kick: 800,000 pairs; covtype_small: no symbolic columns
        start = time.perf_counter()
        rows += study(name, interactions)
        pd.DataFrame(rows).round(5).to_csv(args.out, index=False)
        print(f"{name}, interactions={interactions}: {time.perf_counter() - start:.0f} s", flush=True)
    summary = summarise(pd.DataFrame(rows))
    for interactions, part in summary.groupby("interactions"):
        print(f"interactions={interactions}")
        print(part.head(15).to_string(index=False))


if __name__ == "__main__":
    main()
