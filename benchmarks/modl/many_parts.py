"""Times of `MODLEncoder` for amounts whose grids have many parts: with weights, or of a column that determines them.

    python benchmarks/modl/many_parts.py [--rows 800 10000 50000]

Seconds of processor time and the grid's parts, of generated columns. Weights of 1 to 254 count as repeated rows: the
more rows there are, the more parts the optimum has.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

from tabsym import MODLEncoder


def cases(n: int, rng: np.random.Generator) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Columns, targets and weights, by name."""
    x = rng.normal(size=n)
    cases = {
        "3 x": (x, 3 * x, None),
        "sin(7 x)": (x, np.sin(7 * x), None),
        "x + noise .01": (x, x + 0.01 * rng.normal(size=n), None),
    }
    if n <= 1000:
        noisy = x + rng.normal(size=n)
        cases["x + noise 1, weights 1 to 4"] = x, noisy, rng.integers(1, 5, n)
        cases["x + noise 1, weights 1 to 254"] = x, noisy, rng.integers(1, 255, n)
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[800, 10_000, 50_000])
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    MODLEncoder(output="mean").fit(pd.DataFrame({"x": x}), x)  # compiles
    print("| rows | target | parts | s |\n| --- | --- | --- | --- |")
    for n in parser.parse_args().rows:
        for name, (x, y, weight) in cases(n, rng).items():
            start = time.process_time()
            encoder = MODLEncoder(output="mean").fit(pd.DataFrame({"x": x}), y, sample_weight=weight)
            seconds = time.process_time() - start
            parts = " x ".join(map(str, encoder.partitions_["x"].target.counts.shape))
            print(f"| {n:,} | {name} | {parts} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
