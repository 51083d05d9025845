"""Wide models over a local Dask cluster: equal to one machine, bytes that a sweep moves, and a worker that is killed.

    python benchmarks/dask_sweeps.py [--workers 2 4] [--rows 500000 1000000] [--categories 10000 100000 1000000]

Workers are processes of one thread each. Bytes are those of the arrays in the solver's questions to the workers that
the client asks itself, and in their answers, for the updates of a sweep. The killed worker is ended by a signal in the
middle of a fit.
"""

import argparse
import os
import signal
import threading
import time

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.sizeof import sizeof
from distributed import Client, LocalCluster
from tabsym_dask import DaskWideClassifier, DaskWideRegressor, engine

GIVEN = {"alpha": 1e-2, "tol": 1e-7, "max_iter": 500}


def table_of(n_rows, n_categories):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, n_categories, n_rows), rng.integers(0, 50, n_rows)
    table = pd.DataFrame({"a": a, "b": b, "x": rng.normal(size=n_rows)})
    score = a % 7 * 0.3 + b % 5 * 0.2 + np.sin(2 * table["x"]) - 1.3
    table["a"], table["b"] = "a" + table["a"].astype(str), "b" + table["b"].astype(str)
    table["two"] = np.where(rng.uniform(size=n_rows) < 1 / (1 + np.exp(-score)), "yes", "no")
    table["three"] = np.argmax(np.stack([score, 0 * score, -score], 1) + rng.gumbel(size=(n_rows, 3)), 1)
    table["amount"], table["count"] = score + rng.normal(size=n_rows), rng.poisson(np.exp(0.3 * score))
    return table


def equality(client, n_rows):
    print("| target | predictions differ by | s on the cluster | s on one machine |\n| --- | --- | --- | --- |")
    table, features = table_of(n_rows, 1_000), ["a", "b", "x"]
    frame = dd.from_pandas(table, npartitions=6)
    for target, kind, own in (
        ("two", DaskWideClassifier, {}),
        ("three", DaskWideClassifier, {}),
        ("amount", DaskWideRegressor, {"loss": "squared_error"}),
        ("count", DaskWideRegressor, {"loss": "poisson"}),
    ):
        options = {"interactions": [("a", "b"), ("b", "x")], **GIVEN, **own}
        start = time.perf_counter()
        model = kind(client, **options).fit(frame[[*features, target]], target)
        middle = time.perf_counter()
        local = kind._local(**options).fit(table[[*features, target]], target)
        end = time.perf_counter()
        ask = "predict_proba" if kind is DaskWideClassifier else "predict"
        apart = np.abs(getattr(model, ask)(table[features]) - getattr(local, ask)(table[features])).max()
        print(f"| {target} | {apart:.1e} | {middle - start:.1f} | {end - middle:.1f} |", flush=True)


def traffic(client, rows, categories):
    print("\n| rows | categories | coefficients | MB a sweep | bytes a coefficient and worker asked | s |")
    print("| --- | --- | --- | --- | --- | --- |")
    ask, moved, asked = engine.OnWorkers.ask, [0], [0]

    def counted(self, method, *arguments):
        found = ask(self, method, *arguments)
        if "update" in arguments:
            asked[0] = len(self.asked)
            moved[0] += asked[0] * (sizeof(arguments) + sizeof(found))
        return found

    engine.OnWorkers.ask = counted
    for n_categories in categories:
        for n_rows in rows:
            frame, moved[0] = dd.from_pandas(table_of(n_rows, n_categories)[["a", "b", "x", "two"]], npartitions=6), 0
            start = time.perf_counter()
            model = DaskWideClassifier(client, interactions=None, alpha=1e-2).fit(frame, "two")
            seconds = time.perf_counter() - start
            size, sweep = model.model_.spec.n_coefs, moved[0] / model.n_iter_
            print(
                f"| {n_rows:,} | {n_categories:,} | {size:,} | {sweep / 1e6:.2f} | {sweep / size / asked[0]:.1f} | "
                f"{seconds:.1f} |",
                flush=True,
            )
    engine.OnWorkers.ask = ask


def lost(n_workers):
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        frame = dd.from_pandas(table_of(200_000, 10_000)[["a", "b", "x", "two"]], npartitions=6)
        pids = list(client.run(os.getpid).values())
        update = engine.OnWorkers.ask

        def killing(self, method, *arguments):
            if "update" in arguments and pids:
                threading.Timer(0.05, os.kill, (pids.pop(), signal.SIGKILL)).start()
                pids.clear()
            return update(self, method, *arguments)

        engine.OnWorkers.ask = killing
        try:
            DaskWideClassifier(client, interactions=None, tol=1e-9).fit(frame, "two")
            print("\nA killed worker: the fit ended before.")
        except RuntimeError as error:
            print(f"\nA killed worker: RuntimeError: {error}")
        engine.OnWorkers.ask = update


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 1_000_000])
    parser.add_argument("--categories", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    arguments = parser.parse_args()
    for n_workers in arguments.workers:
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            print(f"\n{n_workers} workers, {arguments.rows[0] // 10:,} rows\n")
            equality(client, arguments.rows[0] // 10)
            traffic(client, arguments.rows, arguments.categories)
    lost(arguments.workers[0])


if __name__ == "__main__":
    main()
