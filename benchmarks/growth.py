"""How a fit at the defaults grows with columns and classes, beside LightGBM: generated tables of noise.

20,000 rows, half of the columns text of ten categories, half numbers; two classes that no column says anything of. Then
20 columns and more classes. Processor seconds of one thread, the second fit of each. Results: growth.md.

    OMP_NUM_THREADS=1 python benchmarks/growth.py [--columns 25 50 100 200 400 1000] [--classes 2 3 10 50]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from tabsym import WideClassifier

N_ROWS = 20_000


def table(n_columns: int, draw: np.random.Generator) -> pd.DataFrame:
    """Half text, half numbers."""
    half = n_columns // 2
    text = {f"c{j}": pd.Categorical(draw.choice(list("abcdefghij"), N_ROWS)) for j in range(half)}
    return pd.DataFrame(text | {f"x{j}": draw.normal(size=N_ROWS) for j in range(n_columns - half)})


def seconds(model: Any, X: pd.DataFrame, y: np.ndarray) -> float:
    """Processor time of a fit, once the kernels are compiled."""
    model.fit(X.iloc[:, -4:].head(2_000), y[:2_000])
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def line(what: str, X: pd.DataFrame, y: np.ndarray) -> None:
    """Print a row of the table."""
    wide, boosted = seconds(WideClassifier(), X, y), seconds(LGBMClassifier(n_jobs=1, verbose=-1), X, y)
    print(f"| {what} | {wide:.2f} | {boosted:.2f} | {wide / boosted:.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, nargs="*", default=[25, 50, 100, 200, 400, 1000])
    parser.add_argument("--classes", type=int, nargs="*", default=[2, 3, 10, 50])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    print("| table | wide s | LightGBM s | times |")
    print("| --- | ---: | ---: | ---: |")
    for count in given.columns:
        line(f"{count} columns, 2 classes", table(count, rng), rng.integers(0, 2, N_ROWS))
    for count in given.classes:
        line(f"20 columns, {count} classes", table(20, rng), rng.integers(0, count, N_ROWS))
