"""Time and memory of the solved models at their defaults, by rows, columns and categories, beside LightGBM's.

From 100,000 rows of 8 text columns with 1,000 categories each (Zipf), one of the three varies at a time. The target
is a sum of category effects and an interaction of the first two columns. Each fit is in a process of its own, one
thread, after a fit of at most 100,000 of its rows that compiles; LightGBM takes the columns as categories.

    OMP_NUM_THREADS=1 python benchmarks/sweep.py [--task classes]    # or regression; results/sweep-TASK.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from million import Watch

BASE = {"rows": 100_000, "columns": 8, "categories": 1_000}
VALUES = {
    "rows": [1_000, 10_000, 100_000, 1_000_000],
    "columns": [2, 8, 32],
    "categories": [10, 1_000, 30_000],
}
LIMIT = 600.0


def make_table(rows: int, columns: int, categories: int, task: str) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    weights = np.cumsum(1 / np.arange(1, categories + 1))
    codes = np.searchsorted(weights / weights[-1], rng.random((columns, rows)))
    score = sum(rng.normal(0, 1 / np.sqrt(columns), categories)[one] for one in codes)
    score = score + rng.normal(0, 0.5, 400)[20 * (codes[0] % 20) + codes[1] % 20]
    names = np.array([f"category {code}" for code in range(categories)], dtype=object)
    table = pd.DataFrame({f"x{number}": names[one] for number, one in enumerate(codes)})
    if task == "classes":
        return table, (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(int)
    return table, score + rng.normal(size=rows)


def run_one(model: str, task: str, rows: int, columns: int, categories: int) -> dict[str, float]:
    X, y = make_table(rows, columns, categories, task)
    if model == "lightgbm":
        import lightgbm

        kind = lightgbm.LGBMClassifier if task == "classes" else lightgbm.LGBMRegressor
        X = X.astype("category")

        def make() -> object:
            return kind(n_jobs=1, verbose=-1)
    else:
        from tabsym import WideClassifier, WideRegressor

        def make() -> object:
            return (WideClassifier if task == "classes" else WideRegressor)(n_jobs=1)

    make().fit(X[:100_000], y[:100_000])  # compiles all kernels that the fit needs
    begin, cpu = time.perf_counter(), time.process_time()
    with Watch() as watch:
        make().fit(X, y)
    return {
        "seconds": time.perf_counter() - begin,
        "cpu": time.process_time() - cpu,
        "megabytes": watch.megabytes,
        "table": float(X.memory_usage(index=False).sum()) / 1e6,
    }


def measured(model: str, task: str, setting: dict[str, int]) -> dict[str, float] | None:
    command = [sys.executable, __file__, "--task", task, "--one", model, *map(str, setting.values())]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["classes", "regression"], default="classes")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(args.one[0], args.task, *map(int, args.one[1:]))))
        return
    lines = [
        "| rows | columns | categories | Wide model: processor s | MB beside the table | LightGBM: processor s | MB | "
        "time, wide / LightGBM |",
        "| --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    settings = [BASE | {name: value} for name, values in VALUES.items() for value in values]
    for setting in {tuple(one.values()): one for one in settings}.values():
        found = [measured(model, args.task, setting) for model in ("wide", "lightgbm")]
        cells = [f"{value:,}" for value in setting.values()]
        for one in found:
            cells += ["over 600", ""] if one is None else [f"{one['cpu']:.2f}", f"{one['megabytes']:.0f}"]
        wide, peer = found
        cells.append("" if wide is None or peer is None else f"{wide['cpu'] / peer['cpu']:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    out = Path(__file__).parent / "results" / f"sweep-{args.task}.md"
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
