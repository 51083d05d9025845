"""GSE beside the ordinary estimator in the paper's networks, both trained.

    python benchmarks/paper_deep/run.py --data FOLDER [--quick]

Every table, network, optimizer, estimator and batch size, in two settings:
"paper" (learning rate .001) and "tuned" (each side at the rate that is best
on validation rows, chosen from one grid for both). Writes, in results/:
fits.csv (a row per trained network), tuning.csv (a row per network trained to
choose a rate), baselines.csv (untrained networks, constants) and run.json
(versions, seeds, commit). What stands there is not trained again, so a run
that was stopped goes on with the same command. `report.py` makes tables and figures.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import problems
import torch
from networks import NETWORKS
from problems import TABLES, Problem
from training import ESTIMATORS, OPTIMIZERS, Cell, Copy, TrainingResult, initial, scores, train

HERE = Path(__file__).parent
EPOCHS = 10
PAPER_RATE = 0.001
BATCH_SIZES = [32, 64, 128, 256, 512, 1024]
RATES = {
    "sgd": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    "adagrad": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3],
    "adam": [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3],
}
"""One grid for both estimators; what suits the three optimizers differs by more than ten."""
TUNING_SEEDS = [1000, 1001, 1002]
ROWS, REPETITIONS = 12_000, 10
KEY = ["dataset", "rows", "model", "optimizer", "estimator", "batch_size", "setting"]
FIT = [*KEY, "rate", "repetition", "train_loss", "validation_loss", "test_loss", "test_score", "seconds"]
TUNING = [*KEY, "rate", "repetition", "validation_loss", "seconds"]
BASELINE = "dataset rows model train_rows columns symbols outputs constant_loss constant_score untrained_loss".split()


class Log:
    """A CSV that grows; `key` tells what is done."""

    def __init__(self, path: Path, fields: list[str], key: list[str]) -> None:
        self.path, self.fields, self.key = path, fields, key
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            self._append([dict(zip(fields, fields, strict=True))])
        with path.open(newline="", encoding="utf-8") as file:
            self.rows = list(csv.DictReader(file))
        self.done = {self._key_of(row) for row in self.rows}

    def __contains__(self, row: dict) -> bool:
        return self._key_of(row) in self.done

    def add(self, rows: list[dict]) -> None:
        """Append all rows of a cell at once."""
        self._append(rows)
        self.rows += [{name: str(value) for name, value in row.items()} for row in rows]
        self.done |= {self._key_of(row) for row in rows}

    def of(self, cell: dict) -> list[dict]:
        """The rows of a cell."""
        return [row for row in self.rows if self._key_of(row) == self._key_of(cell)]

    def _key_of(self, row: dict) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.key)

    def _append(self, rows: list[dict]) -> None:
        shown = [[_shown(row[name]) for name in self.fields] for row in rows]
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(shown)


def _shown(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


class Study:
    """Trains what the logs do not hold."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.fits = Log(args.out / "fits.csv", FIT, KEY)
        self.tuning = Log(args.out / "tuning.csv", TUNING, KEY)
        self.baselines = Log(args.out / "baselines.csv", BASELINE, BASELINE[:3])
        self.loaded: dict[str, Problem] = {}

    def run(self) -> None:
        """The paper's setting first, for all tables; then the tuned one."""
        plan = list(self._plan())
        start, n_trained = time.perf_counter(), 0
        for i, (model, setting, name, optimizer, batch_size, estimator) in enumerate(plan):
            cell = Cell(model, optimizer, estimator, batch_size)
            problem = self._problem(name)
            key = {"dataset": name, "rows": problem.rows, **asdict(cell), "setting": setting}
            if key in self.fits:
                continue
            self._baseline(problem, model)
            rate = PAPER_RATE if setting == "paper" else self._best_rate(problem, cell, key)
            rows = self._fit(problem, cell, key, rate)
            self.fits.add(rows)
            n_trained += 1
            left = (time.perf_counter() - start) / n_trained * (len(plan) - i - 1) / 60
            loss = fmean(row["test_loss"] for row in rows)
            done = f"[{i + 1}/{len(plan)}] {' '.join(map(str, key.values()))}"
            print(f"{done} rate {rate:g}: test loss {loss:.4f} (about {left:.0f} min left)", flush=True)

    def _plan(self) -> Iterator[tuple]:
        args = self.args
        inner = (args.datasets, args.optimizers, args.batch_sizes, ESTIMATORS)
        return itertools.product(args.models, args.settings, *inner)

    def _problem(self, name: str) -> Problem:
        if name not in self.loaded:
            self.loaded[name] = problems.load(name, self.args.rows, self.args.data)
        return self.loaded[name]

    def _fit(self, problem: Problem, cell: Cell, key: dict, rate: float) -> list[dict]:
        copies = [Copy(seed, rate) for seed in range(self.args.repetitions)]
        return list(_rows(key, copies, train(problem, cell, copies, EPOCHS)))

    def _best_rate(self, problem: Problem, cell: Cell, key: dict) -> float:
        """The rate of lowest mean loss on the validation rows; a loss that is no number counts as infinite."""
        if key not in self.tuning:
            copies = [Copy(seed, rate) for rate in self.args.rates[cell.optimizer] for seed in self.args.tuning_seeds]
            self.tuning.add(list(_rows(key, copies, train(problem, cell, copies, EPOCHS))))
        by_rate: dict[float, list[float]] = {}
        for row in self.tuning.of(key):
            by_rate.setdefault(float(row["rate"]), []).append(float(row["validation_loss"]))
        means = {rate: fmean(losses) for rate, losses in by_rate.items()}
        return min(means, key=lambda rate: means[rate] if math.isfinite(means[rate]) else math.inf)

    def _baseline(self, problem: Problem, model: str) -> None:
        """Losses of the constant and of the untrained networks of all repetitions."""
        network = initial(problem, model, list(range(self.args.repetitions)))
        loss, score = problems.constant_scores(problem)
        row = {
            **{"dataset": problem.name, "rows": problem.rows, "model": model, "train_rows": len(problem.train)},
            **{"columns": len(problem.sizes), "symbols": sum(problem.sizes), "outputs": problem.n_out},
            **{"constant_loss": loss, "constant_score": score},
            "untrained_loss": fmean(scores(network, problem, problem.test)[0]),
        }
        if row not in self.baselines:
            self.baselines.add([row])


def _rows(key: dict, copies: list[Copy], outcome: TrainingResult) -> Iterator[dict]:
    """A row per network; its seconds are its share of the stack's."""
    for i, copy in enumerate(copies):
        values = {name: value[i] for name, value in asdict(outcome).items() if name != "seconds"}
        named = {"rate": copy.rate, "repetition": copy.seed, "seconds": outcome.seconds / len(copies)}
        yield {**key, **named, **values}


def write_facts(args: argparse.Namespace) -> None:
    """What the figures depend on, beside them."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False, cwd=HERE
    ).stdout.strip()
    facts = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "commit": commit,
        "epochs": EPOCHS,
        "paper_rate": PAPER_RATE,
        "rates": args.rates,
        "rows": args.rows,
        "batch_sizes": args.batch_sizes,
        "repetition_seeds": list(range(args.repetitions)),
        "tuning_seeds": args.tuning_seeds,
        "split_seed": problems.SPLIT_SEED,
        "models": args.models,
        "datasets": args.datasets,
        "settings": args.settings,
    }
    path = args.out / "run.json"
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    if facts not in runs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([*runs, facts], indent=1) + "\n", encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("TABSYM_DATA"), help="folder of NAME.parquet files")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--quick", action="store_true", help="a small run, in results/quick")
    parser.add_argument("--rows", type=int, default=ROWS, help="most rows of a table, all three parts")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=BATCH_SIZES)
    parser.add_argument("--datasets", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--models", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--optimizers", nargs="+", choices=OPTIMIZERS, default=list(OPTIMIZERS))
    parser.add_argument("--settings", nargs="+", choices=["paper", "tuned"], default=["paper", "tuned"])
    args = parser.parse_args()
    args.rates, args.tuning_seeds = RATES, TUNING_SEEDS
    if args.quick:
        args.out, args.rows, args.repetitions, args.batch_sizes = args.out / "quick", 600, 3, [32, 256]
        args.rates, args.tuning_seeds = {name: rates[1::3] for name, rates in RATES.items()}, TUNING_SEEDS[:1]
    return args


def main() -> None:
    torch.set_num_threads(1)
    args = parse()
    if args.data is None:
        raise SystemExit("Name the folder of the tables: --data FOLDER, or the environment variable TABSYM_DATA.")
    write_facts(args)
    try:
        Study(args).run()
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.")


if __name__ == "__main__":
    main()
