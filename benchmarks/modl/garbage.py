"""How near the optimum are groupings of two classes under "khiops", garbage groups included?

    python benchmarks/modl/garbage.py [--tables amazon adult kick] [--time-limit 60]

For each symbolic column of more than 12 symbols: the model found with defaults and with a time limit, how many symbols
are in its garbage group, and how far its cost is above the bound (relative, and in nats), with the seconds it took.
Markdown; `n_candidates` 1.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from measure import timed
from tables import is_numeric, load

from tabsym.modl import Partition, Settings, group


def counts_of(column: pd.Series, y: np.ndarray) -> np.ndarray:
    """Rows of each class with each symbol (M, 2)."""
    codes = pd.factorize(column, use_na_sentinel=False)[0]
    return np.stack([np.bincount(codes, y == label, minlength=codes.max() + 1) for label in (0, 1)], axis=1)


def gap(found: Partition) -> str:
    if found.is_optimal:
        return "optimal"
    if not np.isfinite(found.lower_bound):
        return "no bound"
    return f"{found.gap:.1e} ({found.cost - found.lower_bound:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["amazon", "adult", "kick"])
    parser.add_argument("--time-limit", type=float, default=60.0)
    args = parser.parse_args()
    group(np.random.default_rng(0).integers(1, 50, (20, 2)).astype(float))  # compiles
    print("| column | symbols | cost | gap | s | cost with time | in garbage | gap (nats) | s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for table in args.tables:
        X, y, _ = load(table)
        for name in X.columns:
            counts = np.empty((0, 2)) if is_numeric(X[name]) else counts_of(X[name], y)
            if len(counts) <= 12:
                continue
            quick, quick_s, _ = timed(lambda counts=counts: group(counts))
            slow, slow_s, _ = timed(lambda counts=counts: group(counts, Settings(time_limit=args.time_limit)))
            inside = int((slow.labels == slow.garbage).sum()) if slow.garbage is not None else ""
            print(
                f"| {table} {name} | {len(counts):,} | {quick.cost:,.2f} | {gap(quick)} | {quick_s:.2f} "
                f"| {slow.cost:,.2f} | {inside} | {gap(slow)} | {slow_s:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
