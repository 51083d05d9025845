"""amazon (9 columns, 7,518 resources): online wide models and boosters at their defaults, in one run.

Stratified 5 folds, seed 0. Each fold fits every contender in turn, after a
small warm-up fit, so that ratios of times are of the same minute on the same
machine. `fit` is from the DataFrame to the fitted model; boosters get pandas
category columns, made before the clock starts, which favours them.

    python benchmarks/amazon.py [--repeats 1]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from tabsym import WideSGDClassifier
from tabsym.datasets import load


def contenders() -> dict:
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    return {
        "wide": lambda: WideSGDClassifier(random_state=0),
        "wide-pairs": lambda: WideSGDClassifier(interactions="pairwise", random_state=0),
        "lightgbm": lambda: LGBMClassifier(verbose=-1, random_state=0),
        "xgboost": lambda: XGBClassifier(enable_categorical=True, tree_method="hist", random_state=0),
        "onehot+logistic": lambda: make_pipeline(
            OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000)
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1, help="times the folds are run again, for the times' spread")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = load("amazon")
    codes = (np.asarray(y) == np.unique(y)[1]).astype(int)
    text, category = X.astype("str"), X.astype("str").astype("category")
    rows = []
    for repeat in range(args.repeats):
        for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, codes)):
            for name, make in contenders().items():
                frame = category if name in ("lightgbm", "xgboost") else text
                make().fit(frame.iloc[:2000], codes[:2000])
                X_train, X_test = frame.iloc[train], frame.iloc[test]
                start = time.perf_counter()
                model = make().fit(X_train, codes[train])
                fit = time.perf_counter() - start
                auc = roc_auc_score(codes[test], model.predict_proba(X_test)[:, 1])
                rows.append({"contender": name, "repeat": repeat, "fold": fold, "fit": fit, "auc": auc})
    table = pd.DataFrame(rows)
    summary = table.groupby("contender", sort=False).agg(auc=("auc", "mean"), sd=("auc", "std"), fit=("fit", "median"))
    summary["fit, in fits of wide-pairs"] = summary["fit"] / summary.loc["wide-pairs", "fit"]
    print(summary.round(4).to_string())
    per_fold = table.pivot_table(index=["repeat", "fold"], columns="contender", values="fit")
    ratio = per_fold["lightgbm"] / per_fold["wide-pairs"]
    print(f"\nLightGBM's fit / wide-pairs' fit, fold by fold: {ratio.min():.1f} to {ratio.max():.1f}")


if __name__ == "__main__":
    main()
