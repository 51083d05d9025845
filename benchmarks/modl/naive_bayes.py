"""`SelectiveNaiveBayesClassifier` beside Khiops' own, fold by fold.

"khiops" is Khiops 11 over the same columns (no trees), "khiops-trees" its default, whose ten trees are further columns,
"CategoricalNB" scikit-learn's naive Bayes over our intervals and groups, all weights 1. Five stratified folds, seed 0;
AUC (of several classes one against the rest, by their frequency), log loss, columns used, and wall and processor
seconds of the training. Khiops' exclude writing its file, and include the start of its program (some seconds, of which
.3 of the processor); ours exclude the first use of kernels.

    TABSYM_DATA=FOLDER KHIOPS_ENV=ENVIRONMENT python benchmarks/modl/naive_bayes.py [--tables ...] [--folds N]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn.datasets
from khiops_peer import classify
from measure import timed
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB
from tables import load

from tabsym import SelectiveNaiveBayesClassifier

TABLES = ["adult", "kick", "compas", "titanic", "breast_cancer", "wine", "iris", "digits"]
RESULTS = Path(__file__).parent / "results" / "naive_bayes"
METHODS = ["tabsym", "khiops", "khiops-trees", "CategoricalNB"]


def table_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features and coded target, of ours or of scikit-learn's tables."""
    if hasattr(sklearn.datasets, f"load_{name}"):
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True, as_frame=True)
        return X, y.to_numpy()
    X, y, _ = load(name)
    return X, y


def scores(y: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """AUC and log loss."""
    if probabilities.shape[1] == 2:
        auc = roc_auc_score(y, probabilities[:, 1])
    else:
        rest = probabilities / probabilities.sum(axis=1, keepdims=True)  # read with few digits
        auc = roc_auc_score(y, rest, multi_class="ovr", average="weighted")
    return {"auc": float(auc), "log_loss": float(log_loss(y, probabilities))}


def fold(X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> list[dict[str, object]]:
    """A row for each method."""
    seen, new = X.iloc[train].reset_index(drop=True), X.iloc[test].reset_index(drop=True)
    model, wall_s, cpu_s = timed(lambda: SelectiveNaiveBayesClassifier().fit(seen, y[train]))
    used = sum(weight > 0 for weight in model.weights_.values())
    times = {"wall_s": wall_s, "cpu_s": cpu_s}
    found: list[dict[str, object]] = [
        {"method": "tabsym", **scores(y[test], model.predict_proba(new)), "columns": used, **times}
    ]
    for method, max_trees in (("khiops", 0), ("khiops-trees", 10)):
        other = classify(seen, y[train], new, max_trees=max_trees)
        of_it = {"columns": len(other.weights), "wall_s": other.wall_s, "cpu_s": other.cpu_s}
        found.append({"method": method, **scores(y[test], other.probabilities), **of_it})
    encoder = model.encoder_.set_params(return_df=False)
    sizes = [one.partition.n_parts for one in encoder.partitions_.values()]
    bayes = CategoricalNB(min_categories=sizes).fit(encoder.transform(seen), y[train])
    plain = scores(y[test], bayes.predict_proba(encoder.transform(new)))
    return [*found, {"method": "CategoricalNB", **plain, "columns": sum(size > 1 for size in sizes)}]


def report(rows: pd.DataFrame) -> str:
    """Means over folds, as Markdown; the difference to Khiops with its standard error over folds."""
    lines = [
        "| table | rows | AUC: tabsym | khiops | difference (se) | khiops, 10 trees | CategoricalNB "
        "| log loss: tabsym | khiops | columns: tabsym | khiops | s wall (processor): tabsym | khiops |",
        "| --- |" + " ---: |" * 12,
    ]
    for name in rows["table"].unique():
        of_table = rows[rows["table"] == name]
        mean = of_table.groupby("method").mean(numeric_only=True)
        by_fold = of_table.pivot(index="fold", columns="method", values="auc")
        gain = by_fold["tabsym"] - by_fold["khiops"]
        error = f"{gain.std() / len(gain) ** 0.5:.4f}" if len(gain) > 1 else "-"
        cells = [name, f"{int(of_table['rows'].iloc[0]):,}"]
        cells += [f"{mean.at['tabsym', 'auc']:.4f}", f"{mean.at['khiops', 'auc']:.4f}", f"{gain.mean():+.4f} ({error})"]
        cells += [f"{mean.at[method, 'auc']:.4f}" for method in METHODS[2:]]
        cells += [f"{mean.at[method, 'log_loss']:.4f}" for method in METHODS[:2]]
        cells += [f"{mean.at[method, 'columns']:.1f}" for method in METHODS[:2]]
        cells += [f"{mean.at[method, 'wall_s']:.2f} ({mean.at[method, 'cpu_s']:.2f})" for method in METHODS[:2]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run, and write the folds as CSV and the means as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--folds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    SelectiveNaiveBayesClassifier().fit(pd.DataFrame({"a": list("uv") * 50, "b": range(100)}), [0, 0, 1, 1] * 25)
    rows: list[dict[str, object]] = []
    for name in arguments.tables:
        X, y = table_of(name)
        splits = StratifiedKFold(arguments.folds, shuffle=True, random_state=0).split(X, y)
        for place, (train, test) in enumerate(splits):
            found = fold(X, y, train, test)
            rows += [{"table": name, "rows": len(X), "fold": place, **one} for one in found]
        table = pd.DataFrame(rows)
        print(report(table[table["table"] == name]), flush=True)
        table.to_csv(RESULTS.with_suffix(".csv"), index=False, float_format="%.5g")
        RESULTS.with_suffix(".md").write_text(report(table))


if __name__ == "__main__":
    main()
