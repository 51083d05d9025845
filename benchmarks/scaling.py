"""Time per row and memory of a fit in memory, from 100,000 to 10 million rows.

Five category columns (10 to 100,000 symbols, Zipf), two epochs, one thread;
each size in a process of its own. `coded MB` is the code matrix and the target,
4 bytes a code and 8 a target; `peak` is what the process grew by during the fit.

    python benchmarks/scaling.py [--rows 100000 1000000 10000000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
from million import Watch

ALPHABETS = [10, 300, 3_000, 30_000, 100_000]


def make_table(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    columns, score = {}, np.zeros(n_rows)
    for size in ALPHABETS:
        shares = np.cumsum(1 / np.arange(1, size + 1))
        codes = np.searchsorted(shares / shares[-1], rng.random(n_rows))
        score += rng.normal(0, 0.5, size)[codes]
        names = pd.Index([f"symbol{j}" for j in range(size)])
        columns[f"x{size}"] = pd.Categorical.from_codes(codes, names)
    return pd.DataFrame(columns), (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(np.int8)


def run_one(n_rows: int) -> dict:
    from tabsym import WideSGDClassifier

    X, y = make_table(n_rows)
    WideSGDClassifier(random_state=0).fit(X[:2000], y[:2000])
    with Watch() as watch:
        begin = time.perf_counter()
        WideSGDClassifier(max_iter=2, random_state=0).fit(X, y)
        seconds = time.perf_counter() - begin
    return {"seconds": seconds, "megabytes": watch.megabytes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(args.one)))
        return
    print(f"{'rows':>12}{'fit s':>8}{'ns per row':>12}{'coded MB':>10}{'peak MB':>9}{'peak/coded':>12}")
    for n_rows in args.rows:
        command = [sys.executable, __file__, "--one", str(n_rows)]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        coded = n_rows * (4 * len(ALPHABETS) + 8) / 1e6
        print(
            f"{n_rows:12,}{row['seconds']:8.2f}{1e9 * row['seconds'] / n_rows:12.0f}{coded:10.0f}"
            f"{row['megabytes']:9.0f}{row['megabytes'] / coded:12.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
