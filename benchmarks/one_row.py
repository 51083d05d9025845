"""Latency of predict for one row, and memory of predict for many: what a web service sees.

A table of eight symbolic columns (10 to `top` symbols, for each `top` of `--tops`: that the two agree shows that the
alphabets do not matter) and four numbers. Models: `additive` (WideSGDClassifier()), `pairs` (all 28 pairs of the
symbolic columns), `product` (WideSGDRegressor with a formula). One row as a pandas frame of text or category columns,
as `pd.DataFrame([row])` of a dict, and as a polars frame; making the frame is not counted. Blocks of calls
alternate with those of scikit-learn's ColumnTransformer(OneHotEncoder) + LogisticRegression, fitted on the same
table, given the same rows; `ratio` is the wide model's median over its. Milliseconds: median and 95th percentile.

Then predict of 200,000 rows of 30 symbolic columns with all 435 pairs, in a process of its own: seconds, and the peak
of resident memory over what the process held before.

    python benchmarks/one_row.py [--tops 100 100000] [--rows 200000] [--calls 300] [--skip-many]
    python benchmarks/one_row.py --many [--many-rows 200000]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from million import Watch

from tabsym import WideSGDClassifier, WideSGDRegressor

N_SYMBOLIC, N_NUMBERS, N_SHOWN = 8, 4, 50
BLOCKS, PEER_SECONDS = 10, 3.0
FORMULA = "g[s7]*m[s4]*x0 + w[s5] + c[1]"


def make_table(n_rows: int, top: int, n_symbolic: int = N_SYMBOLIC) -> tuple[pd.DataFrame, np.ndarray]:
    """Text columns of 10 to `top` symbols, each at least once; a normal score of all columns."""
    rng = np.random.default_rng(0)
    columns, score = {}, np.zeros(n_rows)
    for j, size in enumerate(np.geomspace(10, top, n_symbolic).round().astype(int)):
        codes = rng.permutation(np.append(np.arange(size), rng.integers(0, size, max(0, n_rows - size)))[:n_rows])
        score += rng.normal(0, 0.5, size)[codes]
        names = np.array([f"symbol {place}" for place in range(size)], dtype=object)
        columns[f"s{j}"] = pd.Series(names[codes]).astype("str")
    for j in range(N_NUMBERS):
        columns[f"x{j}"] = rng.normal(1.0, 0.5, n_rows)
        score += 0.2 * columns[f"x{j}"]
    return pd.DataFrame(columns), score + rng.logistic(size=n_rows)


def models(X: pd.DataFrame, y: np.ndarray) -> dict[str, Callable[[Any], Any]]:
    """Fitted predict methods by name."""
    label = (y > np.median(y)).astype(int)
    additive = WideSGDClassifier(random_state=0).fit(X, label)
    pairs = WideSGDClassifier(interactions="pairwise", random_state=0).fit(X, label)
    product = WideSGDRegressor(FORMULA, random_state=0).fit(X, y)
    return {"additive": additive.predict_proba, "pairs": pairs.predict_proba, "product": product.predict}


def with_sklearn(X: pd.DataFrame, y: np.ndarray) -> Callable[[Any], Any]:
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    categories = [name for name in X if name.startswith("s")]
    numbers = [name for name in X if name.startswith("x")]
    parts = [("symbols", OneHotEncoder(handle_unknown="ignore"), categories), ("numbers", "passthrough", numbers)]
    model = make_pipeline(ColumnTransformer(parts), LogisticRegression(max_iter=5))
    return model.fit(X, (y > np.median(y)).astype(int)).predict_proba


def single_rows(X: pd.DataFrame) -> dict[str, list[Any]]:
    """The same rows, one at a time, in every form."""
    places = np.random.default_rng(1).choice(len(X), N_SHOWN, replace=False)
    as_category = X.astype(dict.fromkeys([name for name in X if name.startswith("s")], "category"))
    forms = {
        "pandas, text": [X.iloc[[i]] for i in places],
        "pandas, category": [as_category.iloc[[i]] for i in places],
        "pandas, of a dict": [pd.DataFrame([X.iloc[i].to_dict()]) for i in places],
    }
    try:
        import polars as pl
    except ImportError:
        return forms
    return forms | {"polars": [pl.DataFrame([X.iloc[i].to_dict()]) for i in places]}


def latency(call: Callable[[Any], Any], peer: Callable[[Any], Any], rows: list[Any], n_calls: int) -> list[np.ndarray]:
    """Milliseconds of each call of the two, in ten blocks in turn; the peer is called less often where it is slow."""
    times: list[list[float]] = [[], []]
    for place in range(BLOCKS + 1):  # the first is for warming up
        for contender, taken, seconds in zip((call, peer), times, (np.inf, PEER_SECONDS / BLOCKS)):
            begin = time.perf_counter()
            for turn in range(n_calls // BLOCKS):
                row = rows[(place * n_calls // BLOCKS + turn) % len(rows)]
                start = time.perf_counter()
                contender(row)
                end = time.perf_counter()
                if place:
                    taken.append(1000 * (end - start))
                if end - begin > seconds:
                    break
    return [np.array(taken) for taken in times]


def one_row(n_rows: int, top: int, n_calls: int) -> None:
    X, y = make_table(n_rows, top)
    wide, peer, forms = models(X, y), with_sklearn(X, y), single_rows(X)
    for name, call in wide.items():
        for form, rows in forms.items():
            ours, theirs = latency(call, peer, rows, n_calls)
            ratio = np.median(ours) / np.median(theirs)
            shown = [f"{np.median(taken):.3f} ({np.quantile(taken, 0.95):.3f})" for taken in (ours, theirs)]
            print(f"| {top:,} | {name} | {form} | {shown[0]} | {shown[1]} | {ratio:.2f} |", flush=True)


def many_rows(n_rows: int) -> None:
    X, y = make_table(max(n_rows, 20_000), 300, n_symbolic=30)
    label = (y > np.median(y)).astype(int)
    model = WideSGDClassifier(interactions="pairwise", random_state=0).fit(X[:20_000], label[:20_000])
    rows = X[:n_rows]
    model.predict_proba(rows[:1000])
    with Watch() as watch:
        start = time.perf_counter()
        model.predict_proba(rows)
        seconds = time.perf_counter() - start
    print(f"{n_rows:,} rows, 30 columns, 435 pairs: {seconds:.2f} s, adds {watch.megabytes:.0f} MB at its peak")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tops", type=int, nargs="+", default=[100, 100_000], help="symbols of the largest column")
    parser.add_argument("--rows", type=int, default=200_000, help="training rows")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--many", action="store_true", help="the second part only, in this process")
    parser.add_argument("--many-rows", type=int, default=200_000)
    parser.add_argument("--skip-many", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.many:
        many_rows(args.many_rows)
        return
    print("| symbols, up to | model | one row as | tabsym ms (95 %) | scikit-learn ms (95 %) | ratio |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for top in args.tops:
        one_row(args.rows, top, args.calls)
    if not args.skip_many:
        subprocess.run([sys.executable, __file__, "--many", "--many-rows", str(args.many_rows)], check=True)


if __name__ == "__main__":
    main()
