"""A product of two blocks online at its defaults, `"y ~ g[a]*m[b]*x + c[1]"`, against L-BFGS on the same model.

Zipf symbols of `a` (3,000), uniform ones of `b` (50), lognormal factors (sd .6), x gamma-distributed (mean 1, sd .5),
a constant of 1 and normal noise of sd .1. `above truth` is the test RMSE over that of the noise-free formula, in %,
on rows whose symbols training has seen. L-BFGS (scipy, own gradient, coded rows) is what the model can reach
without a penalty: what is left is the price of rare symbols. Seconds are from the DataFrame to the fitted model,
after a small warm-up fit.

    python benchmarks/products.py [--rows 120000] [--seeds 3] [--symbols 3000 50]
    python benchmarks/products.py --rows 12000 120000 1200000
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from convergence.optimum import product_fit

from tabsym import WideSGDRegressor

FORMULA = "y ~ g[a]*m[b]*x + c[1]"
NOISE = 0.1


def table(n_rows: int, categories: tuple[int, int], seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows with codes, and the formula's value without noise."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, categories[0] + 1)
    a = rng.choice(categories[0], n_rows, p=share / share.sum())
    b = rng.integers(0, categories[1], n_rows)
    g, m = (rng.lognormal(0.0, 0.6, size) for size in categories)
    x = rng.gamma(4.0, 0.25, n_rows)
    truth = g[a] * m[b] * x + 1.0
    frame = pd.DataFrame({"a": a, "b": b, "x": x, "y": truth + rng.normal(0, NOISE, n_rows)})
    return frame, truth


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    named = {name: frame[name].map(f"{name}{{}}".format).astype("str") for name in ("a", "b")}
    return frame.assign(**named)


def with_tabsym(train: pd.DataFrame, test: pd.DataFrame, options: dict[str, Any]) -> tuple[np.ndarray, float, str]:
    train, test = as_text(train), as_text(test)
    WideSGDRegressor(FORMULA, random_state=0, **options).fit(train[:2000])
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = WideSGDRegressor(FORMULA, random_state=0, **options).fit(train)
    seconds = time.perf_counter() - start
    told = "; ".join(sorted({item.category.__name__ for item in caught}))
    return model.predict(test.drop(columns="y")), seconds, f"{model.n_iter_} epochs {told}"


def with_lbfgs(train: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, float, str]:
    start = time.perf_counter()
    codes, blocks = [], []
    for name in ("a", "b"):
        code, values = pd.factorize(train[name])
        codes.append(code)
        blocks.append(values)
    centre, unit = train["y"].mean(), train["y"].std()
    size = [len(values) for values in blocks]
    scale = 1.0 / np.sqrt(np.mean(train["x"] ** 2))
    first = np.append(np.ones(sum(size)), 0.0)
    y = ((train["y"] - centre) / unit).to_numpy()
    g, m, c, _ = product_fit((codes[0], codes[1]), train["x"].to_numpy() * scale, y, first)
    seconds = time.perf_counter() - start
    factors = [f[values.get_indexer(test[name])] for name, values, f in zip("ab", blocks, (g, m))]
    return (factors[0] * factors[1] * test["x"].to_numpy() * scale + c) * unit + centre, seconds, ""


def compare(n_rows: int, categories: tuple[int, int], seed: int, options: dict[str, Any]) -> dict[str, float]:
    n_test = max(20_000, n_rows // 4)
    frame, truth = table(n_rows + n_test, categories, seed)
    train, test = frame[:n_rows], frame[n_rows:]
    seen = (test["a"].isin(train["a"]) & test["b"].isin(train["b"])).to_numpy()
    test, truth = test[seen], truth[n_rows:][seen]
    least = np.sqrt(np.mean((test["y"] - truth) ** 2))
    row: dict[str, float] = {}
    for name, fit in (
        ("tabsym", lambda: with_tabsym(train, test, options)),
        ("L-BFGS", lambda: with_lbfgs(train, test)),
    ):
        predicted, seconds, note = fit()
        row[name] = 100 * (np.sqrt(np.mean((test["y"] - predicted) ** 2)) / least - 1)
        row[f"{name} s"] = seconds
        print(f"{n_rows:>10,}{seed:>6}  {name:8}{row[name]:14.2f}{seconds:9.2f}  {note}", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[120_000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--symbols", type=int, nargs=2, default=(3_000, 50), metavar=("A", "B"))
    parser.add_argument("--max-iter", type=int, help="epochs, instead of the default")
    args = parser.parse_args()
    options = {} if args.max_iter is None else {"max_iter": args.max_iter}
    print(f"{'rows':>10}{'seed':>6}  {'':8}{'above truth %':>14}{'seconds':>9}")
    for n_rows in args.rows:
        rows = pd.DataFrame([compare(n_rows, tuple(args.categories), seed, options) for seed in range(args.seeds)])
        print(f"{n_rows:,} rows, median (worst):", end=" ")
        print(", ".join(f"{name} {rows[name].median():.3g} ({rows[name].max():.3g})" for name in rows), flush=True)


if __name__ == "__main__":
    main()
