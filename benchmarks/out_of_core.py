"""Memory and time of a wide model that is fitted out of core, beside the same fit in memory.

    python benchmarks/out_of_core.py [--rows 10000000] [--folder FOLDER]
    python benchmarks/out_of_core.py --same    # the largest differences between the two fits, by term

A table of ten columns (eight of text with 10 to 300,000 categories, two of numbers) and a target of two classes is
generated to Parquet. Each fit runs in a process of its own; its time includes the reading. Anonymous memory (RssAnon)
is read 20 times a second: pages of memory maps are files' and are given back when others need the memory. The last two
fits keep the coded rows (`cache_dir`), and take those that were kept.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = (10, 30, 100, 300, 1_000, 10_000, 30_000, 300_000)
FITS = {
    "in memory": "X = pyarrow.parquet.read_table(path)\nmodel.fit(X, 'y')",
    "out of core": "model.fit(path, 'y')",
    "out of core, rows kept": "model.fit(path, 'y', cache_dir=path + '.rows')",
    "out of core, kept rows": "model.fit(path, 'y', cache_dir=path + '.rows')",
}
FIT = """
import sys, threading, time
import duckdb, pandas, numpy, pyarrow, pyarrow.dataset, pyarrow.parquet
from tabsym import WideClassifier

path = {path!r}
rng = numpy.random.default_rng(0)
small = pandas.DataFrame({{"a": rng.choice(["u", "v", "w"], 2000), "x": rng.normal(size=2000)}})
WideClassifier().fit(small, rng.choice(["no", "yes"], 2000))

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024

most, done = [0.0], threading.Event()

def watch():
    while not done.wait(.05):
        most[0] = max(most[0], anonymous())

before = anonymous()
threading.Thread(target=watch, daemon=True).start()
model = WideClassifier({options})
start = time.perf_counter()
{fit}
seconds = time.perf_counter() - start
done.set()
print(seconds, most[0] - before, model.model_.spec.n_coefs, model.n_iter_, model.deviance_)
"""

GIVEN = {
    "alpha": 1e-4,
    "interactions": [("c0", "c2"), ("c1", "c3")],
    "numeric": {"x": "linear", "z": "linear"},
    "tol": 1e-10,
    "max_iter": 500,
}


def compare_coefficients(path):
    """Fits with the same interactions and penalties: coefficients and standard deviations in memory and out of core."""
    import numpy as np
    import pyarrow.parquet as pq

    from tabsym import WideClassifier

    out, inside = (WideClassifier(**GIVEN).fit(rows, "y") for rows in (str(path), pq.read_table(path)))
    print(f"deviance: out of core {out.deviance_!r}, in memory {inside.deviance_!r}")
    for name, frame in inside.coefs_.items():
        other = out.coefs_[name].reindex(frame.index) if len(frame) > 1 else out.coefs_[name]
        apart = [np.abs(other[one].to_numpy(float) - frame[one].to_numpy(float)).max() for one in ("value", "sd")]
        print(f"{name}: {len(frame):,} coefficients, value {apart[0]:.1e}, sd {apart[1]:.1e}")


def generate(path, n_rows):
    """The table: few rows a category in the tail, and a target that depends on four columns."""
    import duckdb

    columns = [f"'c{j}_' || floor({size} * pow(random(), 2))::INT AS c{j}" for j, size in enumerate(SIZES)]
    columns += ["random() * 10 AS x", "pow(random(), 3) * 100 AS z"]
    score = "hash(c1) % 5 * .3 + hash(c5) % 7 * .2 + hash(c7) % 3 * .3 + sin(x) - 1.8"
    target = f"CASE WHEN random() < 1 / (1 + exp(-({score}))) THEN 'yes' ELSE 'no' END AS y"
    table = f"SELECT {', '.join(columns)} FROM range({n_rows})"
    duckdb.sql("SET memory_limit = '2GB'; SELECT setseed(.5)")
    duckdb.sql(f"COPY (SELECT *, {target} FROM ({table})) TO '{path}' (FORMAT parquet)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", choices=FITS)
    parser.add_argument("--options", default="")
    parser.add_argument("--same", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = (arguments.folder or Path(temporary)) / f"out_of_core_{arguments.rows}.parquet"
        shutil.rmtree(f"{path}.rows", ignore_errors=True)  # of an earlier run
        if not path.exists():
            generate(path, arguments.rows)
        if arguments.same:
            return compare_coefficients(path)
        print(f"{arguments.rows:,} rows, Parquet of {path.stat().st_size / 1e6:.0f} MB\n")
        print("| fit | s | microseconds a row | anonymous MB | coefficients | sweeps | deviance |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name, fit in FITS.items():
            if arguments.only in (None, name):
                program = FIT.format(path=str(path), fit=fit, options=arguments.options)
                command, threads = [sys.executable, "-W", "ignore", "-c", program], {"OMP_NUM_THREADS": "1"}
                output = subprocess.run(
                    command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **threads}
                )
                seconds, megabytes, *rest = output.stdout.split()
                coefficients, sweeps, deviance = int(rest[0]), int(rest[1]), float(rest[2])
                print(
                    f"| {name} | {float(seconds):.1f} | {1e6 * float(seconds) / arguments.rows:.2f} | "
                    f"{float(megabytes):,.0f} | {coefficients:,} | {sweeps} | {deviance:.4f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
