"""Weighted classification: test loss and AUC of `WideClassifier()` with weights of classes, random weights and none.

Generated tables of two categorical columns and two numbers, 5 or 20 % of the rows of class 1, whose log odds go by the
categories ("cat"), by one number too ("num") or by nothing ("noise"); 4,000 test rows. "balanced" is also judged by its
weights: nothing known is log(2) = .693. Run on two states of the package, the tables are the same.

    python benchmarks/weights.py [--tables 3]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from tabsym import WideClassifier

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


def main() -> None:
    """Print the table of results/weights.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=3)
    warnings.simplefilter("ignore")
    rows = []
    for seed in range(parser.parse_args().tables):
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
