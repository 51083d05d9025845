"""Do predictions behind a log link add up? Predicted over observed totals of gamma, tweedie and poisson losses.

A log link is canonical for poisson alone: its intercept makes residuals add up to 0. Gamma's makes residuals *over the
prediction* add up to 0, tweedie's something between; their totals are a model's, and no identity. Amounts of two
columns of 10 and 60 symbols (Zipf) and two numbers, score of sd .6, rows of gamma's law (shape 1.5) or lognormal (sd
1).
Ratios of totals: on the training rows to the targets, and on 20,000 other rows to their true means; the mean and
the range of the seeds. "GLM" is statsmodels' without a penalty, on one-hot columns, of the first seeds; the wide models
have penalties that are estimated, and next to none.

    OMP_NUM_THREADS=1 python benchmarks/totals_log_link.py [--rows 300 2000 8000] [--seeds 5] [--peer-seeds 1]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import statsmodels.api as sm

from tabsym import WideRegressor
from tabsym.losses import Tweedie

SIZES, TEST_ROWS, POWER = (10, 60), 20_000, 1.5
FAMILIES = {"gamma": sm.families.Gamma, "tweedie": sm.families.Tweedie}
Predict = Callable[[pd.DataFrame], np.ndarray]


def tables(law: str, n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Training rows and amounts; other rows of the symbols that training has, and their true means."""
    rng = np.random.default_rng(seed)
    n, columns, score = n_rows + TEST_ROWS, {}, np.zeros(n_rows + TEST_ROWS)
    for j, size in enumerate(SIZES):
        share = 1.0 / np.arange(1, size + 1)
        codes = rng.choice(size, n, p=share / share.sum())
        columns[f"s{j}"] = pd.Series(codes).map("symbol {}".format)
        score += rng.normal(size=size)[codes]
    for j in range(2):
        columns[f"x{j}"] = rng.normal(size=n)
        score += 0.5 * columns[f"x{j}"]
    mean = np.exp(0.6 * (score - score.mean()) / score.std())
    noise = rng.gamma(1.5, 1 / 1.5, n) if law == "gamma" else np.exp(rng.normal(-0.5, 1.0, n))
    X = pd.DataFrame(columns)
    train, known = X.iloc[:n_rows], np.ones(n, dtype=bool)
    for name in ("s0", "s1"):
        known &= X[name].isin(train[name].unique()).to_numpy()
    known[:n_rows] = False
    return train, (mean * noise)[:n_rows], X[known], mean[known]


def models(X: pd.DataFrame, y: np.ndarray, *, peers: bool) -> Iterator[tuple[str, Predict]]:
    for loss in ("gamma", "tweedie", "poisson"):
        for name, alpha in (("estimated", "auto"), ("hardly penalised", 1e-6)):
            named = Tweedie(POWER) if loss == "tweedie" else loss
            model = WideRegressor(loss=named, numeric="linear", interactions=None, count_effect=False, alpha=alpha)
            yield f"{loss}, {name}", model.fit(X, y).predict
        if peers and loss in FAMILIES:
            yield f"{loss}, GLM", glm(loss, X, y)


def glm(loss: str, X: pd.DataFrame, y: np.ndarray) -> Predict:
    def design(table: pd.DataFrame) -> np.ndarray:
        names = [name for name in X if name.startswith("s")]
        hot = pd.get_dummies(table[names]).reindex(columns=pd.get_dummies(X[names]).columns, fill_value=False)
        return np.column_stack([np.ones(len(table)), table[["x0", "x1"]], hot.to_numpy(float)])

    link = sm.families.links.Log()
    family = FAMILIES[loss](link=link) if loss == "gamma" else FAMILIES[loss](link=link, var_power=POWER)
    fitted = sm.GLM(y, design(X), family=family).fit(maxiter=200)
    return lambda table: np.asarray(fitted.predict(design(table)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 2000, 8000])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer-seeds", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| law | rows | loss, penalty | training rows / targets | other rows / their means |")
    print("| --- | --- | --- | --- | --- |")
    for law in ("gamma", "lognormal"):
        for n_rows in args.rows:
            found: dict[str, list[tuple[float, float]]] = {}
            for seed in range(args.seeds):
                X, y, other, means = tables(law, n_rows, seed)
                for name, predict in models(X, y, peers=seed < args.peer_seeds):
                    ratios = predict(X).sum() / y.sum(), predict(other).sum() / means.sum()
                    found.setdefault(name, []).append(ratios)
            for name, pairs in found.items():
                shown = [f"{np.mean(one):.3f} ({min(one):.3f} to {max(one):.3f})" for one in zip(*pairs, strict=True)]
                print(f"| {law} | {n_rows:,} | {name} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
