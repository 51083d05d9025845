"""Time and memory of encoders that a DuckDB relation, a polars LazyFrame or a pandas table is fitted on.

    python benchmarks/pushdown.py [--rows 2000000] [--folder FOLDER]

A table of six text columns of 10 to 100,000 categories and a target of two classes is generated to Parquet. Each fit
runs in a process of its own, on two threads; its time includes the reading, and its memory is the peak of the process
over what it had after the imports.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = (10, 100, 1_000, 10_000, 30_000, 100_000)
READ = {
    "DuckDB relation": "import duckdb; duckdb.sql('SET threads = 2'); X = duckdb.read_parquet({path!r})",
    "polars LazyFrame": "import polars; X = polars.scan_parquet({path!r})",
    "pandas": "import pandas; X = pandas.read_parquet({path!r})",
}
ENCODERS = {
    "OneHotEncoder": "OneHotEncoder().fit(X, 'y')",
    "MODLEncoder": "MODLEncoder(n_jobs=2).fit(X, 'y')",
}
FIT = """
import resource, time
import duckdb, polars, pandas, pyarrow.parquet
from tabsym import MODLEncoder, OneHotEncoder

MODLEncoder().fit(pandas.DataFrame({{"a": ["x", "y"] * 50}}), ["u", "v"] * 50)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, start = peak(), time.perf_counter()
{read}
{fit}
print(time.perf_counter() - start, peak() - before)
"""


def generate(path, n_rows):
    """The table; a Zipf-like number of rows a category, and a target that depends on two columns."""
    import duckdb

    columns = [f"'c{j}_' || floor({size} * pow(random(), 2))::INT AS c{j}" for j, size in enumerate(SIZES)]
    target = "CASE WHEN random() < .2 + .5 * (hash(c1) % 2) THEN 'yes' ELSE 'no' END AS y"
    table = f"SELECT {', '.join(columns)} FROM range({n_rows})"
    duckdb.sql("SELECT setseed(.5)")
    duckdb.sql(f"COPY (SELECT *, {target} FROM ({table})) TO '{path}' (FORMAT parquet)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = (arguments.folder or Path(temporary)) / f"pushdown_{arguments.rows}.parquet"
        if not path.exists():
            generate(path, arguments.rows)
        print(f"{arguments.rows:,} rows, Parquet of {path.stat().st_size / 1e6:.0f} MB\n")
        print("| encoder | rows from | s | peak MB |\n| --- | --- | --- | --- |")
        for encoder, fit in ENCODERS.items():
            for source, read in READ.items():
                program = FIT.format(read=read.format(path=str(path)), fit=fit)
                command = [sys.executable, "-W", "ignore", "-c", program]
                output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
                seconds, megabytes = map(float, output.split())
                print(f"| {encoder} | {source} | {seconds:.1f} | {megabytes:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
