"""Interactions of two numbers at several resolutions: what a smooth surface could gain.

`WideClassifier()` / `WideRegressor()` cut both numbers of an interaction once, and give every cell a coefficient of its
own. Here each interaction of two numbers that they choose is added again with both numbers in 4, 8, 16 and 32 bins of
equal frequency, each with a variance of its own (REML): a surface that is coarse where rows are few. "all pairs": the
same for all pairs of numbers. 5 folds, seed 0, tables prepared as `tabsym compare` does; seconds of the fit, without
the search of the interactions for the second and third. Needs `TABSYM_DATA`.

    TABSYM_DATA=FOLDER python benchmarks/interactions/resolutions.py [--tables covtype_small kick] [--folds 5]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent))

from sklearn.model_selection import KFold, StratifiedKFold
from tables import measure, read

from tabsym import WideClassifier, WideRegressor

BINS = 4, 8, 16, 32
MAX_PAIRS = 100
"""Tables with more pairs of numbers have no "all pairs"."""


def with_bins(train: pd.DataFrame, X: pd.DataFrame, numbers: list[str]) -> pd.DataFrame:
    """X with each number again as a column of categories for each of `BINS`, cut by quantiles of `train`."""
    more: dict[str, Any] = {}
    for name, bins in ((name, bins) for name in numbers for bins in BINS):
        cuts = np.unique(np.nanquantile(train[name], np.arange(1, bins) / bins))
        codes = pd.Series(np.searchsorted(cuts, X[name]), index=X.index).astype(str)
        more[f"{name}@{bins}"] = codes.where(X[name].notna(), "missing")
    return pd.concat([X, pd.DataFrame(more, index=X.index)], axis=1)


def run(name: str, n_folds: int) -> pd.DataFrame:
    """Scores and seconds by fold and variant."""
    ready = read(name, None)
    is_number = ready.task == "regression"
    kind = WideRegressor if is_number else WideClassifier
    n_classes = 0 if is_number else int(ready.y.max()) + 1
    folds = (KFold if is_number else StratifiedKFold)(5, shuffle=True, random_state=0)
    found = []
    for fold, (train, test) in enumerate(list(folds.split(ready.X, ready.y))[:n_folds]):
        X, y = ready.X.iloc[train], ready.y[train]
        held, y_held = ready.X.iloc[test], ready.y[test]

        def fit(variant: str, model: Any, X: pd.DataFrame, held: pd.DataFrame) -> Any:
            start = time.process_time()
            model.fit(X, y)  # noqa: B023
            seconds = time.process_time() - start
            scores = measure(model, held, y_held, n_classes)  # noqa: B023
            found.append({"fold": fold, "variant": variant, "seconds": seconds, **scores})  # noqa: B023
            return model

        model = fit("today", kind(), X, held)
        numbers = [c for c in X.columns if pd.api.types.is_float_dtype(X[c]) or pd.api.types.is_integer_dtype(X[c])]
        numbers = [c for c in numbers if X[c].nunique() > max(BINS)]
        chosen = [tuple(one.split(":")) for one in model.interactions_["interaction"]]
        pairs = {
            "resolutions": [one for one in chosen if len(one) == 2 and set(one) <= set(numbers)],
            "all pairs": list(combinations(numbers, 2)),
        }
        binned, held_binned = with_bins(X, X, numbers), with_bins(X, held, numbers)
        for variant, own in pairs.items():
            if 0 < len(own) <= MAX_PAIRS:
                more = [(f"{a}@{bins}", f"{b}@{bins}") for a, b in own for bins in BINS]
                used = [c for c in binned if "@" not in c or c in {name for pair in more for name in pair}]
                fit(variant, kind(interactions=[*chosen, *more]), binned[used], held_binned[used])
    return pd.DataFrame(found).assign(table=name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["covtype_small", "kick", "usedcars", "adult"])
    parser.add_argument("--folds", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in args.tables:
        rows = run(name, args.folds)
        by_fold = rows.drop(columns="table").pivot(index="fold", columns="variant")
        for variant in by_fold["seconds"].columns:
            texts = [f"{name:<14} {variant:<12} {by_fold['seconds'][variant].median():6.2f} s"]
            for score in (one for one in ("auc", "log-loss", "rmse") if one in by_fold):
                both = by_fold[score].dropna()
                less = both[variant] - both["today"] if variant in both else both["today"] * np.nan
                error = less.std() / np.sqrt(len(less))
                texts.append(f"{score} {by_fold[score][variant].mean():.5g} ({less.mean():+.2g} +- {error:.1g})")
            print("  ".join(texts), flush=True)


if __name__ == "__main__":
    main()
