"""What an unknown category stands for: the mean of the term over categories, or over training rows.

A fifth of the categories of a column are held out with their rows; the model is fitted on the others (REML, count
effects, slopes). Root mean squared error over the target's deviation, or log-loss, of the held-out rows; four repeats.

    TABSYM_DATA=FOLDER python benchmarks/unknown_mean.py

| table, column | over categories | over rows |
| --- | --- | --- |
| usedcars model_name | .6415 | .6368 |
| usedcars manufacturer_name | **.7157** | .7765 |
| amazon RESOURCE, MGR_ID, ROLE_DEPTNAME, ROLE_TITLE | .1763 .2107 .2271 .2383 | .1762 .2108 .2271 .2382 |
| amazon ROLE_FAMILY | .2606 | .2621 |
| kick Model, SubModel, VNZIP1, Make | .3176 .3257 .2951 .3205 | .3177 .3259 .2951 .3221 |
| adult native-country, occupation, education | .3254 .2982 .3116 | .3271 .2965 .3115 |
| rossmann Store (20,000 rows) | .8626 | .8626 |

So terms with a ridge penalty keep the mean over categories, which its penalty sets to 0.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from tabsym import WideClassifier, WideRegressor

TABLES = {
    "usedcars": ("price_usd", ["model_name", "manufacturer_name"]),
    "amazon": ("ACTION", ["RESOURCE", "MGR_ID", "ROLE_DEPTNAME", "ROLE_TITLE", "ROLE_FAMILY"]),
    "kick": ("IsBadBuy", ["Model", "SubModel", "VNZIP1", "Make"]),
    "adult": ("income", ["native-country", "occupation", "education"]),
    "rossmann": ("Sales", ["Store"]),
}
OPTIONS = {"numeric": "linear", "interactions": None, "random_state": 0}


def losses(X, y, column, seed):
    """Of held-out categories: by the mean over categories, and by that over rows."""
    values = X[column].astype(object).fillna("?")
    categories = values.unique()
    some = np.random.default_rng(seed).permutation(categories)[: max(1, len(categories) // 5)]
    held = values.isin(set(some)).to_numpy()
    is_class = set(np.unique(y)) <= {0, 1}
    model = WideClassifier(**OPTIONS) if is_class else WideRegressor(loss="squared_error", **OPTIONS)
    model.fit(X[~held], y[~held])
    frame = model.coefs_[column]
    mean = np.average(frame["value"], weights=frame["rows"])
    if is_class:
        score = model.decision_function(X[held])
        return [np.mean(np.logaddexp(0, s) - y[held] * s) for s in (score, score + mean)]
    predicted = model.predict(X[held])
    return [np.sqrt(np.mean((y[held] - p) ** 2)) / y.std() for p in (predicted, predicted + mean)]


def main():
    warnings.simplefilter("ignore")
    for name, (target, columns) in TABLES.items():
        table = pd.read_parquet(Path(os.environ["TABSYM_DATA"]) / f"{name}.parquet").dropna(subset=[target])
        table = table.sample(min(len(table), 20_000), random_state=0).drop(columns=["Customers"], errors="ignore")
        y = table.pop(target)
        y = y.to_numpy(dtype=float) if name in ("usedcars", "rossmann") else (y == y.iloc[0]).to_numpy(dtype=float)
        X = table.loc[:, [c for c in table if table[c].dtype.kind != "M" and table[c].nunique() < 9000]]
        for column in columns:
            zero, rows = np.mean([losses(X, y, column, seed) for seed in range(4)], axis=0)
            print(f"{name:10} {column:20} over categories {zero:.4f}  over rows {rows:.4f}", flush=True)


if __name__ == "__main__":
    main()
