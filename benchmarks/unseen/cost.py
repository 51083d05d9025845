"""TIWSEncoder on one million rows of 20 columns with 100,000 symbols in all, beside scikit-learn's TargetEncoder.

Each is fitted in a process of its own, so that its peak of memory is its own; the table's memory is in both.

    python benchmarks/unseen/cost.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np
import pandas as pd
from sklearn.preprocessing import TargetEncoder

from tabsym import TIWSEncoder

ROWS = 1_000_000
CATEGORIES = [10, 20, 50, 100, 200, 500, 1000, 1000, 2000, 2000, 3000, 4000, *[5000] * 6, 6120, 50000]


def table():
    """Columns whose symbols are of very different frequency, and a target that one of them tells something of."""
    rng = np.random.default_rng(0)
    columns = {}
    for place, size in enumerate(CATEGORIES):
        names = np.array([f"s{code}" for code in range(size)], dtype=object)
        codes = np.minimum((rng.random(ROWS) ** 2 * size).astype(int), size - 1)
        columns[f"c{place}"] = pd.Series(names[codes], dtype="str")
    X = pd.DataFrame(columns)
    return X, rng.normal(size=ROWS) + X["c5"].str[1:].astype(int) / 500


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main():
    if len(sys.argv) < 2:
        for which in ("TargetEncoder", "TIWSEncoder", "TIWSEncoder, 2 threads"):
            subprocess.run([sys.executable, __file__, which], check=True)
        return
    X, y = table()
    before = peak()
    if sys.argv[1] == "TargetEncoder":
        encoder = TargetEncoder(target_type="continuous")
    else:
        TIWSEncoder().fit(X[:2000], y[:2000])  # compiles
        encoder = TIWSEncoder(n_jobs=2 if "2" in sys.argv[1] else 1)
    start = time.perf_counter()
    encoder.fit(X, y)
    seconds = time.perf_counter() - start
    print(f"{sys.argv[1]}: fit {seconds:.1f} s, peak {peak():.2f} GB of which {before:.2f} before the fit", end="")
    if hasattr(encoder, "counts_"):
        new = X[:1000].assign(c19="new")
        start = time.perf_counter()
        encoder.transform(new)
        first = time.perf_counter() - start
        start = time.perf_counter()
        encoder.transform(new)
        again = time.perf_counter() - start
        pairs = encoder.counts_.pairs.n_pairs / 1e6
        print(f"; {pairs:.1f} million pairs; 1,000 rows of an unseen symbol {first:.1f} s, then {again:.2f} s", end="")
    print(flush=True)


if __name__ == "__main__":
    main()
