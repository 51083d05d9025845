"""Three folds of a stack beside four: test loss and processor time of fits, paired by fold.

5 folds of each table, tables of more rows than `MAX_ROWS` sampled (amazon whole, covtype_small 3,000 rows); a fit of
three folds has one wide model fewer.

    TABSYM_DATA=FOLDER taskset -c 0 python benchmarks/stacking/folds.py [--tables adult amazon] [--seeds 0 1]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold
from tables import read

from tabsym import WideBoostClassifier, WideBoostRegressor

TABLES = [
    "titanic", "compas", "adult", "amazon", "kick", "retail", "usedcars", "chicago_taxi", "rossmann", "covtype_small",
]  # fmt: skip
MAX_ROWS, OTHERS = 15_000, {"amazon": None, "covtype_small": 3_000}
COUNTS = (4, 3)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | measure | four folds | three | difference, % | time |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for name in args.tables:
        ready = read(name, OTHERS.get(name, MAX_ROWS))
        is_number = ready.task == "regression"
        kind = WideBoostRegressor if is_number else WideBoostClassifier
        losses, seconds = np.empty((2, len(args.seeds), 5)), np.empty((2, len(args.seeds), 5))
        for repeat, seed in enumerate(args.seeds):
            folds = (KFold if is_number else StratifiedKFold)(5, shuffle=True, random_state=seed)
            for fold, (train, test) in enumerate(folds.split(ready.X, ready.y)):
                for number, cv in enumerate(COUNTS):
                    start = time.process_time()
                    model = kind(cv=cv, random_state=seed, n_jobs=1).fit(ready.X.iloc[train], ready.y[train])
                    seconds[number, repeat, fold] = time.process_time() - start
                    X, y = ready.X.iloc[test], ready.y[test]
                    losses[number, repeat, fold] = (
                        root_mean_squared_error(y, model.predict(X))
                        if is_number
                        else log_loss(y, model.predict_proba(X), labels=model.classes_)
                    )
        ratio = 100 * (losses[1] / losses[0] - 1).ravel()
        error, (four, three) = ratio.std(ddof=1) / np.sqrt(ratio.size), losses.mean(axis=(1, 2))
        saved = np.median(seconds[1] / seconds[0])
        measure = "rmse" if is_number else "log-loss"
        print(
            f"| {name} | {measure} | {four:.5g} | {three:.5g} | {ratio.mean():+.2f} ± {error:.2f} | {saved:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
