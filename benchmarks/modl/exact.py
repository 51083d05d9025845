"""Are certificates of groups true, and groups near the optimum? Random tables against exact programs.

Tables of 3 to 20 symbols (more than two classes: to 15, beyond which the exact program takes minutes) and 2 to 5
classes, from noise to clear, with rare symbols or without, under both criteria, against `tests/oracles/modl_groups.py`.
A certificate is wrong where the bound lies above the optimum; a miss is a cost more than 1e-4 above it.

    python benchmarks/modl/exact.py [--tables 2000] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tabsym.modl import Settings, group
from tests.modl.test_groups import random_counts
from tests.oracles import modl_groups as naive_groups

CLOSE, ROUNDING = 1e-4, 1e-6
MAX_SYMBOLS, MAX_OF_MANY_CLASSES = 20, 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    totals = dict.fromkeys(["tables", "certified", "wrong certificates", "above 1e-4", "above 1e-4, no bound"], 0)
    worst, seconds = 0.0, 0.0
    for number in range(args.tables):
        n_classes = int(rng.integers(2, 6))
        most = MAX_SYMBOLS if n_classes == 2 else MAX_OF_MANY_CLASSES
        counts = random_counts(rng, int(rng.integers(3, most + 1)), n_classes).astype(float)
        criterion = ("khiops", "page")[number % 2]
        best = naive_groups.best_groups(counts, criterion)[0]
        start = time.perf_counter()
        found = group(counts, Settings(criterion=criterion))
        seconds += time.perf_counter() - start
        excess = found.cost / best - 1
        totals["tables"] += 1
        totals["certified"] += found.is_optimal
        if found.lower_bound > best + ROUNDING or (found.is_optimal and excess > 1e-9):
            totals["wrong certificates"] += 1
            print(f"\nwrong certificate: {criterion}, {counts.astype(int).tolist()}", flush=True)
        if excess > CLOSE:
            totals["above 1e-4"] += 1
            totals["above 1e-4, no bound"] += not found.gap >= excess * (1 - 1e-6)
            print(f"\n{excess:.1e} above the optimum: {criterion}, {counts.astype(int).tolist()}", flush=True)
        worst = max(worst, excess)
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {args.tables}", end="", file=sys.stderr, flush=True)
    print(", ".join(f"{value} {name}" for name, value in totals.items()), end="")
    print(f"; worst {worst:.1e}, {1e3 * seconds / args.tables:.1f} ms a table")


if __name__ == "__main__":
    main()
