"""Additive logistic regression: WideSGDClassifier against Vowpal Wabbit, in one run.

The rows of `million.py` (ten string columns, 10 to 100,000 symbols). VW
trains from its own cache file, made before its clock starts. Both are tuned on
small grids by the loss on a validation set: VW's passes, rate and decay of the
rate between passes; tabsym's epochs and rate. tabsym starts from the DataFrame:
coding the columns is in its time. The ratio is of the times at each one's best.

    pip install vowpalwabbit
    python benchmarks/vowpal.py [--rows 500000]
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from million import make_table
from sklearn.metrics import log_loss


def write_vw(path: Path, X: pd.DataFrame, y: np.ndarray) -> None:
    """VW's text: a label and one namespace per column."""
    with path.open("w") as file:
        columns = [X[name].tolist() for name in X]
        for label, *categories in zip(np.where(y > 0, "1", "-1"), *columns):
            file.write(
                label + "".join(f" |{name} {category}" for name, category in zip("abcdefghij", categories)) + "\n"
            )


def run_vw(
    folder: Path, X_test: pd.DataFrame, y_test: np.ndarray, passes: int, rate: float, decay: float
) -> tuple[float, float]:
    """Seconds to train from the cache, and test log-loss."""
    from vowpalwabbit import Workspace

    cache, model = folder / "train.cache", folder / "model"
    options = f"--loss_function logistic -b 22 --passes {passes} -l {rate} --decay_learning_rate {decay}"
    options += " --holdout_off --quiet"
    begin = time.perf_counter()
    vw = Workspace(f"{options} --cache_file {cache} -f {model}")
    vw.finish()
    seconds = time.perf_counter() - begin
    reader = Workspace(f"-i {model} -t --quiet --link logistic")
    columns = [X_test[name].tolist() for name in X_test]
    names = "abcdefghij"
    p = [
        reader.predict("".join(f" |{name} {category}" for name, category in zip(names, categories)))
        for categories in zip(*columns)
    ]
    reader.finish()
    return seconds, log_loss(y_test, p)


def run_tabsym(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, y_test: np.ndarray, **options: float):
    """Seconds to train from the DataFrame, and test log-loss."""
    from tabsym import WideSGDClassifier

    begin = time.perf_counter()
    model = WideSGDClassifier(random_state=0, n_jobs=-1, **options).fit(X, y)
    seconds = time.perf_counter() - begin
    return seconds, log_loss(y_test, model.predict_proba(X_test))


def main() -> None:
    from vowpalwabbit import Workspace

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    args = parser.parse_args()
    n = args.rows
    X, y = make_table(n + 2 * (n // 10))
    train, valid, test = slice(0, n), slice(n, n + n // 10), slice(n + n // 10, None)
    run_tabsym(X[:2000], y[:2000], X[:2000], y[:2000])  # compiles
    ours: dict[tuple, tuple[float, float]] = {(): run_tabsym(X[train], y[train], X[valid], y[valid])}
    show("tabsym, defaults", ours[()])
    for epochs, rate in itertools.product((1, 2), (0.1, 0.15, 0.2, 0.3)):
        ours[epochs, rate] = run_tabsym(X[train], y[train], X[valid], y[valid], max_iter=epochs, learning_rate=rate)
        show(f"tabsym, {epochs} epochs, rate {rate}", ours[epochs, rate])
    theirs: dict[tuple, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_vw(folder / "train.txt", X[train], y[train])
        cache = f"-d {folder / 'train.txt'} --cache_file {folder / 'train.cache'} -k -b 22"
        Workspace(f"{cache} --loss_function logistic --quiet").finish()
        for passes, rate, decay in itertools.product((1, 2, 3), (0.25, 0.5, 1.0), (1.0, 0.5)):
            if passes > 1 or decay == 1.0:
                theirs[passes, rate, decay] = run_vw(folder, X[valid], y[valid], passes, rate, decay)
                show(f"vw, {passes} passes, rate {rate}, decay {decay}", theirs[passes, rate, decay])
        best_vw = min(theirs, key=lambda key: theirs[key][1])
        vw = run_vw(folder, X[test], y[test], *best_vw)
    epochs, rate = min((key for key in ours if key), key=lambda key: ours[key][1])
    best = run_tabsym(X[train], y[train], X[test], y[test], max_iter=epochs, learning_rate=rate)
    default = run_tabsym(X[train], y[train], X[test], y[test])
    print("\non the test set, each at its best:")
    show(f"vw, {best_vw[0]} passes, rate {best_vw[1]}, decay {best_vw[2]}", vw)
    show(f"tabsym, {epochs} epochs, rate {rate}", best, vw[0])
    show("tabsym, defaults", default, vw[0])


def show(what: str, result: tuple[float, float], other: float | None = None) -> None:
    ratio = "" if other is None else f"  vw's time is {other / result[0]:.1f} times this"
    print(f"{what:36}{result[0]:7.2f} s  log-loss {result[1]:.4f}{ratio}", flush=True)


if __name__ == "__main__":
    main()
