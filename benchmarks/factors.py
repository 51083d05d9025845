"""Solved products of two factors, `a[g]*b[h]`, on tables whose linear predictor is known, beside the sum.

60 tables: 300, 800 or 2,000 rows, 3 to 39 categories a column, four losses, and factors that are both lognormal, of
either sign ("zero"), one of each ("half"), one constant ("one"), or both ("none"). Shown is the mean of the logarithm
of the mean squared error of the linear predictor, on 2,000 further rows, over that of the sum's; and seconds.

    python benchmarks/factors.py    # a minute
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

from tabsym import WideClassifier, WideRegressor

N_TEST = 2_000
SUM = "a[g] + b[h] + c[1]"
FORMULAS = ("a[g]*b[h]", "a[g]*b[h] + c[1]", "u[g] + v[h] + a[g]*b[h] + c[1]")
KINDS = ("lognormal", "zero", "half", "one", "none")
LOSSES = ("poisson", "squared_error", "gamma", "log_loss")


def factors(kind: str, sizes: Any, rng: np.random.Generator) -> list[np.ndarray]:
    size, other = sizes
    sd = rng.choice([0.3, 0.6])
    if kind == "lognormal":
        return [rng.lognormal(0.0, sd, size), rng.lognormal(0.0, sd, other)]
    if kind == "zero":
        return [rng.normal(size=size), rng.normal(size=other)]
    if kind == "half":
        return [1.0 + sd * rng.normal(size=size), rng.normal(size=other)]
    return [np.exp(sd * rng.normal(size=size)) if kind == "one" else np.ones(size), np.ones(other)]


def targets(loss: str, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if loss == "poisson":
        return rng.poisson(np.exp(truth)).astype(float)
    if loss == "gamma":
        return np.exp(truth) * rng.gamma(2.0, 0.5, len(truth))
    if loss == "log_loss":
        return (rng.random(len(truth)) < 1.0 / (1.0 + np.exp(-truth))).astype(int)
    return truth + rng.normal(size=len(truth))


def predictor(model: Any, frame: pd.DataFrame, loss: str) -> np.ndarray:
    if loss == "log_loss":
        return np.asarray(model.decision_function(frame))
    expected = np.asarray(model.predict(frame))
    return expected if loss == "squared_error" else np.log(expected)


def trial(seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    n_rows, sizes = int(rng.choice([300, 800, 2_000])), rng.integers(3, 40, 2)
    kind, loss = KINDS[seed % len(KINDS)], rng.choice(LOSSES)
    codes = [rng.integers(size, size=n_rows + N_TEST) for size in sizes]
    a, b = factors(kind, sizes, rng)
    truth = np.clip(0.3 + 0.7 * a[codes[0]] * b[codes[1]], -5.0, 4.0)
    y = targets(loss, truth, rng)
    frame = pd.DataFrame({name: [f"{name}{code}" for code in one] for name, one in zip("gh", codes, strict=True)})
    found = []
    for formula in (SUM, *FORMULAS):
        model = WideClassifier(formula) if loss == "log_loss" else WideRegressor(formula, loss=loss)
        start = time.process_time()
        model.fit(frame[:n_rows], y[:n_rows])
        seconds = time.process_time() - start
        error = float(np.square(predictor(model, frame[n_rows:], loss) - truth[n_rows:]).mean())
        found.append({"seed": seed, "kind": kind, "formula": formula, "error": error, "seconds": seconds})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = pd.DataFrame([row for seed in range(parser.parse_args().tables) for row in trial(seed)])
    of_sum = results[results["formula"] == SUM].set_index("seed")["error"]
    results["log_ratio"] = np.log(results["error"] / results["seed"].map(of_sum))
    groups = results[results["formula"] != SUM].groupby(["formula", "kind"], sort=False)
    shown = groups.agg(log_ratio=("log_ratio", "mean"), se=("log_ratio", "sem"), seconds=("seconds", "mean"))
    print(shown.round(2).to_string())


if __name__ == "__main__":
    main()
