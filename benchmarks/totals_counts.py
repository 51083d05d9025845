"""Predicted over observed totals with count effects, on the training rows and on others, less 1, in %.

In training a row counts the other rows of its category; for `predict` every row is a new one, so that the only row of a
category has the count 1 there and had 0 in training. Totals over training rows differ by that, and not without count
effects. Five folds, seed 0, defaults, at most 60,000 rows of each table; of two classes the second. Needs
`TABSYM_DATA`.

    TABSYM_DATA=FOLDER python benchmarks/totals_counts.py [--rows 60000]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.model_selection import KFold
from tables import read

from tabsym import WideClassifier, WideRegressor

TABLES = "usedcars", "chicago_taxi", "amazon", "kick", "titanic", "talkingdata_clicks"


def ratios(name: str, max_rows: int, *, count_effect: bool) -> list[str]:
    """Of all folds together: over the training rows, and over the others."""
    data = read(name, max_rows)
    is_number, y = data.task == "regression", data.y.astype(float)  # codes of classes are 0 and 1
    kind = WideRegressor if is_number else WideClassifier
    predicted, observed = np.zeros(2), np.zeros(2)
    for rows in KFold(5, shuffle=True, random_state=0).split(data.X):
        model = kind(count_effect=count_effect, random_state=0).fit(data.X.iloc[rows[0]], data.y[rows[0]])
        for at, own in enumerate(rows):
            X = data.X.iloc[own]
            predicted[at] += (model.predict(X) if is_number else model.predict_proba(X)[:, 1]).sum()
            observed[at] += y[own].sum()
    return [f"{100 * (one - 1):+.2f}" for one in predicted / observed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | training rows | others | training rows, no count effects | others |")
    print("| --- | --- | --- | --- | --- |")
    for name in TABLES:
        cells = [cell for effect in (True, False) for cell in ratios(name, args.rows, count_effect=effect)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
