"""Our encoders inside the protocol of Matteucci, Arzamasov and Böhm (2023), on the tables that we share with it.

"A benchmark of categorical encoders for binary classification", NeurIPS 2023, their regime without tuning: five
stratified folds in the order of the rows, the most frequent symbol for missing ones, the median for missing numbers,
numbers scaled by median and quartiles; then a tree of depth 5, a support vector machine, five nearest neighbours and a
logistic regression of at most 100 steps. Accuracy, F1, balanced accuracy and AUC; theirs is of predicted classes, and
"auc-scores" here is of scores. Each table, model and measure ranks the encoders; the ranks are aggregated as there.

    TABSYM_DATA=FOLDER python benchmarks/matteucci/study.py [--tables titanic] [--rows 10000] [--quick] [--report]

Rows go to results/scores.csv as they arrive; what stands there is not run again. `--quick`: titanic, trees and
logistic regressions, about two minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from encoders import MAX_SYMBOLS_OF_SUM, of_the_benchmark, ours
from ranks import aggregate, markdown
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import RobustScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

HERE = Path(__file__).parent
TABLES: dict[str, tuple[str, list[str]]] = {
    "titanic": ("Survived", ["PassengerId"]),
    "adult": ("income", ["split"]),
    "amazon": ("ACTION", []),
    "kick": ("IsBadBuy", ["RefId", "PurchDate"]),
}
MODELS: dict[str, Any] = {
    "tree": DecisionTreeClassifier(random_state=3, max_depth=5),
    "logistic": LogisticRegression(max_iter=100, random_state=7),
    "neighbours": KNeighborsClassifier(n_neighbors=5),
    "svm": SVC(random_state=5),
}
MEASURES: dict[str, Callable[[Any, Any], float]] = {
    "accuracy": accuracy_score,
    "auc": roc_auc_score,
    "f1": f1_score,
    "balanced accuracy": balanced_accuracy_score,
}


def read(name: str, most_rows: int) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Symbols, numbers and target (0, 1), of a random sample in the order of the table."""
    target, drop = TABLES[name]
    table = pd.read_parquet(Path(os.environ["TABSYM_DATA"]) / f"{name}.parquet")
    if most_rows and len(table) > most_rows:
        table = table.sample(most_rows, random_state=0).sort_index()
    table = table.dropna(axis=1, how="all").reset_index(drop=True)
    y = np.unique(table[target], return_inverse=True)[1]
    X = table.drop(columns=[target, *[column for column in drop if column in table]])
    is_text = [not pd.api.types.is_numeric_dtype(X[column]) for column in X]
    return X.loc[:, is_text], X.loc[:, ~np.array(is_text)].astype(float), y


def filled(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Symbols without missing ones: the most frequent of the training rows."""
    common = train.mode().iloc[0]
    return train.fillna(common).reset_index(drop=True), test.fillna(common).reset_index(drop=True)


def scaled(train: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    imputer, scaler = SimpleImputer(strategy="median"), RobustScaler()
    known = scaler.fit_transform(imputer.fit_transform(train))
    return known, scaler.transform(imputer.transform(test))


def joined(codes: Any, numbers: np.ndarray) -> Any:
    if sparse.issparse(codes):
        return sparse.hstack([codes, numbers], format="csr")
    return np.hstack([np.asarray(codes, dtype=float), numbers])


def run(name: str, most_rows: int, encoders: dict[str, Any], models: dict[str, Any], out: Path) -> None:
    categories, numbers, y = read(name, most_rows)
    done = set()
    if out.exists():
        known = pd.read_csv(out)
        done = set(zip(known["table"], known["encoder"], known["model"], known["fold"], strict=True))
    folds = list(StratifiedKFold(5).split(categories, y))
    for encoder, make in encoders.items():
        if encoder == "Sum" and categories.nunique().sum() > MAX_SYMBOLS_OF_SUM:
            continue
        for fold, (train, test) in enumerate(folds):
            todo = [model for model in models if (name, encoder, model, fold) not in done]
            if not todo:
                continue
            known, new = filled(categories.iloc[train], categories.iloc[test])
            of_known, of_new = scaled(numbers.iloc[train], numbers.iloc[test]) if numbers.shape[1] else (
                np.empty((len(train), 0)), np.empty((len(test), 0))
            )  # fmt: skip
            start, one = time.thread_time(), make()
            codes = joined(one.fit_transform(known, y[train]), of_known)
            seconds = time.thread_time() - start
            of_test = joined(one.transform(new), of_new)
            if not codes.shape[1]:  # nothing but symbols, and they are dropped
                codes, of_test = np.zeros((len(train), 1)), np.zeros((len(test), 1))
            rows = [
                {"table": name, "encoder": encoder, "model": model, "fold": fold, "rows": len(y),
                 "encoding_seconds": seconds} | score(clone(models[model]), codes, y[train], of_test, y[test])
                for model in todo
            ]  # fmt: skip
            pd.DataFrame(rows).to_csv(out, mode="a", header=not out.exists(), index=False)
        print(name, encoder, flush=True)


def score(model: Any, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> dict[str, float]:
    model.fit(X, y)
    predicted = model.predict(X_test)
    how = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
    scores = getattr(model, how)(X_test)
    scores = scores[:, 1] if scores.ndim == 2 else scores
    measured = {name: measure(y_test, predicted) for name, measure in MEASURES.items()}
    return measured | {"auc-scores": roc_auc_score(y_test, scores)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--rows", type=int, default=10_000, help="a random sample of larger tables; 0: all")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scores.csv")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--report", action="store_true", help="run nothing, read --out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    models = MODELS
    if args.quick:
        args.tables, models = ["titanic"], {name: MODELS[name] for name in ("tree", "logistic")}
        args.out = args.out.with_name("quick.csv")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    if not args.report:
        for name in args.tables:
            run(name, args.rows, of_the_benchmark() | ours(), models, args.out)
        print(", ".join(f"{name} {version(name)}" for name in ("tabsym", "category_encoders", "scikit-learn")))
    print(markdown(aggregate(pd.read_csv(args.out))))


if __name__ == "__main__":
    sys.exit(main())
