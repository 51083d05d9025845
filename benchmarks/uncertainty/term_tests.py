"""How often tests of terms without an effect have a p below a level: ``python benchmarks/uncertainty/term_tests.py``.

A column `null` of 20 categories of unequal size and a number `z` have no effect, a column of 8 categories and a number
have one. Dropped terms count as a large p.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd

from tabsym import WideClassifier, WideRegressor

LEVELS = (0.01, 0.05, 0.1, 0.2)
LOSSES = {"squared_error": 500, "poisson": 500, "overdispersed": 500, "gamma": 500, "logistic": 1000}


def rows(loss: str, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table, and its target."""
    rng, n = np.random.default_rng(seed), LOSSES[loss]
    group = rng.integers(0, 8, n)
    X = pd.DataFrame({"null": np.char.add("k", rng.choice(20, n, p=rng.dirichlet(np.ones(20))).astype(str))})
    X["real"] = np.char.add("r", group.astype(str))
    X["x"], X["z"] = rng.normal(size=(2, n))
    score = rng.normal(0, 0.5, 8)[group] + np.sin(2 * X["x"].to_numpy())
    mean = np.exp(0.7 * score)
    if loss == "squared_error":
        return X, score + rng.normal(size=n)
    if loss == "logistic":
        return X, rng.random(n) < 1 / (1 + np.exp(-score))
    noise = rng.gamma(2.0, 0.5, n)
    return X, mean * noise if loss == "gamma" else rng.poisson(mean * (noise if loss == "overdispersed" else 1.0))


def main(tables: int) -> None:
    """Print a row for each loss, penalty and term."""
    warnings.simplefilter("ignore")
    for loss in LOSSES:
        for alpha, numeric in (("auto", "smooth"), (0.0, "linear")):
            options = {"interactions": None, "count_effect": False, "alpha": alpha, "numeric": numeric}
            found = []
            for seed in range(tables):
                X, y = rows(loss, seed)
                named = {"overdispersed": "poisson"}.get(loss, loss)
                model = WideClassifier(**options) if loss == "logistic" else WideRegressor(loss=named, **options)
                found.append(model.fit(X, y).term_table()["p"])
            p = pd.DataFrame(found)
            for name in ("null", "z"):
                below = "  ".join(f"{100 * p[name].lt(level).mean():5.1f}" for level in LEVELS)
                print(f"{loss:14} alpha={alpha!s:5} {name:5} {below}   dropped {100 * p[name].isna().mean():.0f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
