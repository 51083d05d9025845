"""The README's table, from the folders of the comparisons that benchmarks/README.md names.

    python benchmarks/readme_table.py NAME=FOLDER ... > table.md

Each cell: the mean score over the folds, and the median processor seconds of a fold's fit; the best of a column in
bold, with those that the rounding of the table does not distinguish from it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

LABELS = {
    "wide": "Wide model",
    "wide-lightgbm": "Wide model + LightGBM",
    "wide-crosses": "Wide model online, interactions chosen",
    "wide-additive": "Wide model online, additive",
    "wide-pairs": "Wide model online, all pairs",
    "onehot-linear": "One-hot + linear model",
    "lightgbm": "LightGBM native",
    "xgboost": "XGBoost native",
    "catboost": "CatBoost native",
    "hist-gradient-boosting": "HistGradientBoosting native",
    "target-lightgbm": "Target encoding + LightGBM",
    "modl-lightgbm": "MODL groups + LightGBM",
    "modl-xgboost": "MODL groups + XGBoost",
    "modl-catboost": "MODL groups + CatBoost",
    "modl-hist-gradient-boosting": "MODL groups + HistGradientBoosting",
}
NAMES = {"auc": "AUC", "rmse": "RMSE", "log_loss": "log-loss"}
DIGITS = {"auc": 3, "rmse": 0, "log_loss": 4}


def shown(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".removeprefix("0")


def seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}".removeprefix("0")


def column(folder: Path) -> tuple[str, dict[str, str]]:
    """The heading's metric and, by contender, its cell."""
    frame = pd.read_csv(folder / "results.csv")
    metric = json.loads((folder / "results.json").read_text())["settings"]["metric"]
    folds = frame[frame["metric"] == metric].groupby("contender")
    own = pd.concat([folds["score"].mean(), folds["fit_cpu_seconds"].median()], axis=1)
    digits = DIGITS[metric] + (metric == "rmse" and own["score"].min() < 100)
    text = own["score"].map(lambda value: shown(value, digits))
    best = text[own["score"].idxmax() if metric == "auc" else own["score"].idxmin()]
    return NAMES[metric], {
        name: f"{f'**{text[name]}**' if text[name] == best else text[name]} ({seconds(own['fit_cpu_seconds'][name])})"
        for name in own.index
    }


def main() -> None:
    columns = {}
    for argument in sys.argv[1:]:
        name, _, folder = argument.partition("=")
        metric, cells = column(Path(folder))
        columns[f"{name} ({metric})"] = cells
    print(f"| | {' | '.join(columns)} |")
    print("| --- " * (len(columns) + 1) + "|")
    for contender, label in LABELS.items():
        print(f"| {label} | {' | '.join(cells.get(contender, '') for cells in columns.values())} |")


if __name__ == "__main__":
    main()
