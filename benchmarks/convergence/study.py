"""Do the automatic rates and epochs reach the optimum, whatever the optimizer, schedule, gradient and batch size?

Every combination of four optimizers, two gradients and batches of 1, 32, 256 and all rows, at the constant schedule
unless others are asked for ("optimal" with alpha=1e-6), on the problems of `problems.py`. The excess is how far the
mean training loss of the model's own predictions lies above the optimum's (`optimum.py`), as a share of what the
optimum gains over the best constant. A combination that is refused before training is counted apart: of the default
ones sgd and adagrad with gradient="mean" in batches of one row (fits in results/convergence.csv, which is older than
the refusal). Every other one should end at most 5 % above the optimum or say so: "silent" counts those that do not, by
neither a `ConvergenceWarning` nor an error. Rows are added to the CSV as they arrive; `--resume` keeps those of an
earlier run with the same problems.

    python benchmarks/convergence/study.py [--kinds logistic ...] [--schedules constant ...] [--rows 10000]
        [--problems 6] [--share 1] [--jobs 2] [--resume] [--out benchmarks/results/convergence.csv]
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from optimum import Optimum, loss_of_predictions, optimum
from problems import KINDS, N_PROBLEMS, Problem, make
from sklearn.exceptions import ConvergenceWarning
from summary import report
from threadpoolctl import threadpool_limits

OPTIMIZERS = ("sgd", "adagrad", "rmsprop", "adam")
SCHEDULES = ("constant", "optimal", "invscaling", "adaptive")
GRADIENTS = ("gse", "mean")
BATCHES = ("1", "32", "256", "full")
KEY = ("kind", "problem", "rows", "optimizer", "schedule", "gradient", "batch")
COLUMNS = (*KEY, "excess", "seconds", "n_iter", "ended")


@lru_cache(maxsize=2)
def problem_of(kind: str, place: int, n_rows: int) -> tuple[Problem, Optimum]:
    problem = make(kind, place, n_rows)
    return problem, optimum(problem)


def find_optimum(where: tuple[str, int, int]) -> float:
    return problem_of(*where)[1].seconds


def model_of(problem: Problem, optimizer: str, schedule: str, gradient: str, batch: str) -> Any:
    from tabsym import WideSGDClassifier, WideSGDRegressor

    options: dict[str, Any] = {"optimizer": optimizer, "schedule": schedule, "gradient": gradient, "random_state": 0}
    options["batch_size"] = batch if batch == "full" else int(batch)
    if schedule == "optimal":
        options["alpha"] = 1e-6
    if problem.formula is not None:
        options["formula"] = problem.formula
    if problem.loss in ("logistic", "multinomial"):
        return WideSGDClassifier(**options)
    return WideSGDRegressor(loss=problem.loss, **options)


def predictions(model: Any, problem: Problem) -> np.ndarray:
    extra = {} if problem.offset is None else {"offset": problem.offset}
    if problem.loss in ("logistic", "multinomial"):
        return model.predict_proba(problem.X, **extra)
    return model.predict(problem.X, **extra)


def may_be_refused(optimizer: str, schedule: str, gradient: str, batch: str) -> str | None:
    """The option that has no meaning: a rate from the penalty is sgd's, and the mean over one row is that row's."""
    if schedule == "optimal" and optimizer != "sgd":
        return "schedule="
    alone = batch == "1" and schedule == "constant" and optimizer in ("sgd", "adagrad")
    return "gradient=" if alone and gradient == "mean" else None


def fit_one(task: tuple[str, int, int, str, str, str, str]) -> dict[str, Any]:
    kind, place, n_rows, optimizer, schedule, gradient, batch = task
    problem, best = problem_of(kind, place, n_rows)
    row: dict[str, Any] = dict(zip(KEY, task)) | {"excess": "", "n_iter": "", "ended": "fit"}
    extra = {} if problem.offset is None else {"offset": problem.offset}
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = model_of(problem, optimizer, schedule, gradient, batch).fit(problem.X, problem.y, **extra)
            row["seconds"] = time.perf_counter() - start
            excess = best.excess(loss_of_predictions(problem, predictions(model, problem)))
            row |= {"n_iter": model.n_iter_, "excess": excess if np.isfinite(excess) else np.inf}
        except (ValueError, ArithmeticError) as error:
            row["seconds"] = time.perf_counter() - start
            option = may_be_refused(optimizer, schedule, gradient, batch)
            refused = option is not None and option in str(error)
            row["ended"] = "refused: " * refused + f"error: {error}"
        except Exception as error:  # whatever else ends a fit is a row too
            row["seconds"] = time.perf_counter() - start
            row["ended"] = f"crash: {type(error).__name__}: {error}"
    told = [str(item.message) for item in caught if issubclass(item.category, ConvergenceWarning)]
    if told and row["ended"] == "fit":
        row["ended"] = f"warning: {' | '.join(told)}"
    return row


def tasks(
    kinds: Iterable[str], schedules: Iterable[str], rows: Iterable[int], n_problems: int, share: float, seed: int
) -> Iterator[tuple]:
    """All combinations, or the same random share of them for any choice of kinds, schedules and rows."""
    for where in product(kinds, range(n_problems), rows):
        for how in product(OPTIMIZERS, schedules, GRADIENTS, BATCHES):
            place = zlib.crc32(repr((seed, *where, *how)).encode()) / 2**32
            if place < share:
                yield (*where, *how)


def run(todo: list[tuple], jobs: int, out: Path) -> None:
    """Fit all of them in processes of one thread each, writing each row as it arrives."""
    where = list(dict.fromkeys(task[:3] for task in todo))
    write_header = not out.exists()
    with ProcessPoolExecutor(jobs, initializer=threadpool_limits, initargs=(1,)) as pool, out.open("a") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if write_header:
            writer.writeheader()
        try:
            for done, _ in enumerate(pool.map(find_optimum, where), 1):
                tell(f"optima: {done} of {len(where)}")
            begin, told, slowest = time.perf_counter(), 0.0, 0.0
            for done, future in enumerate(as_completed([pool.submit(fit_one, task) for task in todo]), 1):
                row = future.result()
                writer.writerow(row | {"seconds": f"{row['seconds']:.3f}"})
                file.flush()
                slowest = max(slowest, row["seconds"])
                now = time.perf_counter() - begin
                if now > told + 2 or done == len(todo):
                    told, left = now, now / done * (len(todo) - done) / 60
                    tell(f"{done:,} of {len(todo):,} fits, slowest {slowest:.0f} s, {left:.0f} min left")
        except BaseException:  # Ctrl-C too: what is queued is not waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            print(file=sys.stderr)


def tell(line: str) -> None:
    print(f"\r{line:60}", end="", file=sys.stderr, flush=True)


def read(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path, dtype={"batch": str, "problem": int, "rows": int}).drop_duplicates(list(KEY), keep="last")
    return table.astype({"excess": float, "n_iter": "Int64"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--schedules", nargs="+", default=["constant"], choices=SCHEDULES)
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000])
    parser.add_argument("--problems", type=int, default=N_PROBLEMS, help="the first so many of each kind")
    parser.add_argument("--share", type=float, default=1.0, help="a random share of all combinations")
    parser.add_argument("--seed", type=int, default=0, help="of that share")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--resume", action="store_true", help="keep the rows of --out and run what is missing")
    parser.add_argument("--report", action="store_true", help="run nothing, summarise --out")
    default = Path(__file__).parent.parent / "results" / "convergence.csv"
    parser.add_argument("--out", type=Path, default=default)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    if not args.report:
        todo = list(tasks(args.kinds, args.schedules, args.rows, args.problems, args.share, args.seed))
        if args.resume and args.out.exists():
            done = set(read(args.out)[list(KEY)].itertuples(index=False, name=None))
            todo = [task for task in todo if task not in done]
        else:
            args.out.unlink(missing_ok=True)
        run(todo, args.jobs, args.out)
    text = report(read(args.out))
    args.out.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
