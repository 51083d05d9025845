"""Weighted classification: test loss and AUC of `WideClassifier()` with weights of classes, random weights and none.

Generated tables of two categorical columns and two numbers, 5 or 20 % of the rows of class 1, whose log odds go by the
categories ("cat"), by one number too ("num") or by nothing ("noise"); 4,000 test rows. "balanced" is also judged by its
weights: nothing known is log(2) = .693. Run on two states of the package, the tables are the same.

With ``--regression``: D² of `WideRegressor(loss=...)` for the means of 2,000 new rows of three columns with as many
categories each; weights are unrelated to the noise, or the precisions of the rows.

    python benchmarks/weights.py [--tables 3] [--regression]
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.metrics import d2_tweedie_score, log_loss, roc_auc_score

from tabsym import WideClassifier, WideRegressor

N_TEST = 4_000


def make(seed: int, n: int, rate: float, kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A table and its classes."""
    draw, size = np.random.default_rng(seed), n + N_TEST
    city, colour = draw.zipf(1.3, size).clip(max=80), draw.integers(0, 6, size)
    X = pd.DataFrame({"city": city.astype(str), "colour": colour.astype(str)})
    X["x"], X["z"] = draw.normal(size=size), draw.gamma(2.0, 1.0, size)
    score = 0.8 * X["x"].to_numpy() * (kind == "num")
    if kind != "noise":
        score = score + draw.normal(size=81)[city] + draw.normal(0.0, 0.5, 6)[colour]
    intercept = brentq(lambda level: expit(score + level).mean() - rate, -30, 30)
    return X, (draw.random(size) < expit(score + intercept)).astype(int)


def weights_of(name: str, draw: np.random.Generator, n: int) -> np.ndarray:
    """Weights of mean 1, the least even last."""
    weight = {
        "none": np.ones(n),
        "uniform": draw.uniform(0.5, 2.0, n),
        "exponential": draw.exponential(size=n) + 0.01,
        "lognormal": np.exp(1.5 * draw.normal(size=n)),
        "few heavy": draw.gamma(0.2, 5.0, n) + 1e-3,
    }[name]
    return np.asarray(weight / weight.mean())


def regression(n_tables: int) -> pd.DataFrame:
    """D² by loss, rows, categories, weights, and whether these are precisions."""
    rows = []
    for seed in range(n_tables):
        for (n, n_categories), loss, is_precise, name in product(
            ((600, 60), (2_000, 60), (2_000, 10)), ("squared_error", "gamma"), (False, True),
            ("none", "uniform", "exponential", "lognormal", "few heavy"),
        ):  # fmt: skip
            draw = np.random.default_rng(seed)
            X = pd.DataFrame(draw.integers(0, n_categories, (n + 2_000, 3)).astype(str), columns=["a", "b", "c"])
            score = sum(draw.normal(0.0, 0.3, n_categories)[X[column].astype(int)] for column in X)
            weight = weights_of(name, draw, n)
            noise = weight if is_precise else np.ones(n)
            if loss == "gamma":
                y, wanted = np.maximum(np.exp(score[:n]) * draw.gamma(noise) / noise, 1e-9), np.exp(score[n:])
            else:
                y, wanted = score[:n] + draw.normal(size=n) / np.sqrt(noise), score[n:]
            model = WideRegressor(loss=loss).fit(X[:n], y, sample_weight=None if name == "none" else weight)
            power = 2.0 if loss == "gamma" else 0.0
            d2 = d2_tweedie_score(wanted, model.predict(X[n:]), power=power)
            rows.append((loss, n, n_categories, "precisions" if is_precise else "unrelated", name, d2))
    found = pd.DataFrame(rows, columns=["loss", "rows", "categories", "kind", "weights", "D2"])
    return found.groupby(list(found.columns[:-1]), sort=False)["D2"].mean().unstack("weights", sort=False).round(3)


def main() -> None:
    """Print the tables of weights.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--regression", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.regression:
        print(regression(given.tables).to_string())
        return
    rows = []
    for seed in range(given.tables):
        for n, rate in ((900, 0.05), (3_000, 0.05), (3_000, 0.2)):
            for kind in ("cat", "num", "noise"):
                X, y = make(seed, n, rate, kind)
                of_classes = np.where(y == 1, 0.5 / y[:n].mean(), 0.5 / (1.0 - y[:n].mean()))
                random = np.random.default_rng(seed).exponential(size=n)
                for name, weight in (("none", None), ("balanced", of_classes[:n]), ("random", random)):
                    model = WideClassifier().fit(X[:n], y[:n], sample_weight=weight)
                    p = model.predict_proba(X[n:])[:, 1]
                    judged = of_classes[n:] if name == "balanced" else None
                    loss = log_loss(y[n:], p, sample_weight=judged)
                    rows.append((name, n, rate, kind, loss, roc_auc_score(y[n:], p)))
    found = pd.DataFrame(rows, columns=["weights", "rows", "rate", "kind", "log-loss", "AUC"])
    print(found.groupby(["weights", "rows", "rate", "kind"], sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main()
