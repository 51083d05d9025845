"""Numbers as slopes, MODL intervals or quantiles, with and without chosen crosses: what `wide-crosses` rests on.

Online models, 5 folds (seed 0, stratified for classes), tables prepared as `tabsym compare` does, everything else at
its defaults; the mean score (AUC, log-loss or RMSE), and its paired difference to slopes without crosses with the
standard error over folds. Needs `TABSYM_DATA`; rossmann is a random sample of 150,000 rows.

    TABSYM_DATA=FOLDER python benchmarks/intervals.py [--tables titanic compas ...]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold

from tabsym import WideSGDClassifier, WideSGDRegressor
from tabsym.compare.table.prepare import Prepared, prepare
from tabsym.datasets import make_retail

# What is known only after the target, or is an id, is dropped.
COMPAS = (
    "id is_recid r_case_number decile_score score_text r_charge_degree r_charge_desc r_days_from_arrest r_offense_date "
    "r_jail_in r_jail_out is_violent_recid vr_case_number vr_charge_degree vr_offense_date vr_charge_desc event end "
    "start violent_recid out_custody in_custody case_number c_case_number"
)
TABLES = {
    "titanic": ("Survived", ["PassengerId"]),
    "compas": ("two_year_recid", COMPAS.split()),
    "adult": ("income", ["split", "fnlwgt"]),
    "amazon": ("ACTION", []),
    "kick": ("IsBadBuy", ["RefId"]),
    "talkingdata_clicks": ("is_attributed", ["attributed_time"]),
    "covtype_small": ("Cover_Type", ["Id"]),
    "retail": ("sales", []),
    "usedcars": ("price_usd", []),
    "chicago_taxi": ("tips", ["trip_id", "trip_total"]),
    "rossmann": ("Sales", ["Customers"]),
}
VARIANTS = {
    "slopes": {},
    "slopes, auto": {"interactions": "auto"},
    "modl": {"numeric": "modl"},
    "modl, auto": {"numeric": "modl", "interactions": "auto"},
    "quantile": {"numeric": "quantile"},
    "quantile, auto": {"numeric": "quantile", "interactions": "auto"},
}
MAX_ROWS = 150_000


def read(name: str) -> Prepared:
    target, drop = TABLES[name]
    folder = Path(os.environ["TABSYM_DATA"])
    table = make_retail() if name == "retail" else pd.read_parquet(folder / f"{name}.parquet")
    if len(table) > MAX_ROWS:
        table = table.sample(MAX_ROWS, random_state=0).reset_index(drop=True)
    return prepare(table, target, drop=[column for column in drop if column in table])


def score(model: Any, X: pd.DataFrame, y: np.ndarray, task: str, n_classes: int) -> float:
    if task == "regression":
        return float(root_mean_squared_error(y, model.predict(X)))
    chances = model.predict_proba(X)
    return float(roc_auc_score(y, chances[:, 1]) if task == "binary" else log_loss(y, chances, labels=range(n_classes)))


def compare(name: str) -> None:
    ready = read(name)
    is_number = ready.task == "regression"
    kind = WideSGDRegressor if is_number else WideSGDClassifier
    folds = (KFold if is_number else StratifiedKFold)(5, shuffle=True, random_state=0)
    base = None
    for variant, options in VARIANTS.items():
        scores, start = [], time.perf_counter()
        for train, test in folds.split(ready.X, ready.y):
            model = kind(random_state=0, **options).fit(ready.X.iloc[train], ready.y[train])
            scores.append(score(model, ready.X.iloc[test], ready.y[test], ready.task, len(ready.classes)))
        values = np.array(scores)
        base = values if base is None else base
        difference, seconds = values - base, (time.perf_counter() - start) / 5
        error = difference.std(ddof=1) / np.sqrt(5)
        print(
            f"| {name} | {variant} | {values.mean():.5g} | {difference.mean():+.4g} ± {error:.2g} | {seconds:.2f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | numbers, crosses | score | to slopes alone | seconds a fold |\n| --- | --- | --- | --- | --- |")
    for name in args.tables:
        compare(name)


if __name__ == "__main__":
    main()
