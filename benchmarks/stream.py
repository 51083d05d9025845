"""A folder of Parquet files, trained piece by piece: rows a second and peak memory by number of rows.

Each size runs in a process of its own; memory is the peak of the process over
what it held after a warm-up fit. The model: four string columns (Zipf,
10 to 100,000 symbols), a number, an intercept; logistic loss, one epoch.

    python benchmarks/stream.py [--rows 1000000 10000000 50000000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from million import Watch

ALPHABETS = {"colour": 10, "city": 300, "store": 10_000, "customer": 100_000}
FILE_ROWS = 1_000_000


def write_folder(folder: Path, n_rows: int) -> None:
    """Files of a million rows, dictionary-encoded as writers of Parquet do by default."""
    rng = np.random.default_rng(0)
    effects = {name: rng.normal(0, 0.5, size) for name, size in ALPHABETS.items()}
    names = {name: pa.array([f"{name}-{j}" for j in range(size)]) for name, size in ALPHABETS.items()}
    shares = {name: np.cumsum(1 / np.arange(1, size + 1)) for name, size in ALPHABETS.items()}
    for file in range(-(-n_rows // FILE_ROWS)):
        n = min(FILE_ROWS, n_rows - file * FILE_ROWS)
        x = rng.normal(size=n)
        score, columns = 0.5 * x, {"x": pa.array(x)}
        for name in ALPHABETS:
            codes = np.searchsorted(shares[name] / shares[name][-1], rng.random(n)).astype(np.int32)
            score = score + effects[name][codes]
            columns[name] = pa.DictionaryArray.from_arrays(pa.array(codes), names[name]).cast(pa.string())
        columns["bought"] = pa.array((rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int8))
        pq.write_table(pa.table(columns), folder / f"part{file:04}.parquet")


def run_one(folder: str) -> dict:
    from tabsym import WideSGDClassifier

    dataset = ds.dataset(folder)
    warm = dataset.head(5000)
    model = WideSGDClassifier(max_iter=1, random_state=0)
    model.fit(warm.drop_columns(["bought"]), warm["bought"])
    with Watch() as watch:
        start = time.perf_counter()
        model.fit(dataset, "bought")
        seconds = time.perf_counter() - start
    entries = model.model_.spec.n_coefs
    return {"seconds": seconds, "megabytes": watch.megabytes, "entries": entries, "loss": model.loss_curve_[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000, 50_000_000])
    parser.add_argument("--folder", help="where to write the files; default: a temporary folder")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(args.one)))
        return
    print(f"{'rows':>12}{'on disk MB':>12}{'fit s':>9}{'rows/s':>12}{'peak MB':>9}{'entries':>10}{'loss':>9}")
    for n_rows in args.rows:
        with tempfile.TemporaryDirectory(dir=args.folder) as name:
            write_folder(Path(name), n_rows)
            size = sum(path.stat().st_size for path in Path(name).iterdir()) / 1e6
            command = [sys.executable, __file__, "--one", name]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(
                f"{n_rows:12,}{size:12,.0f}{row['seconds']:9.1f}{n_rows / row['seconds']:12,.0f}"
                f"{row['megabytes']:9.0f}{row['entries']:10,}{row['loss']:9.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
