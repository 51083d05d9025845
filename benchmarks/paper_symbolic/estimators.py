"""GSE against the mean estimator: additive wide models over batch size, optimizer and learning rate.

Up to 20,000 rows of each table, drawn anew for each seed, three quarters for
training; five epochs, constant rate, no penalty. The loss is that of the test
rows: log-loss, or the squared error over the variance of the test rows'
target (usedcars). A fit that diverges has an infinite loss.

    TABSYM_DATA=FOLDER python benchmarks/paper_symbolic/estimators.py [--quick] [--summary]

Writes results/estimators.csv, one row per fit, and one figure per optimizer,
results/estimators_OPTIMIZER.png (with --quick: names that hold "quick"); fits
found in the CSV are not repeated. Prints the summary tables, in Markdown. With
--times nothing of this: Adam's processor seconds with both estimators on each
table, the least of five fits taken in turn.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from fits import RESULTS, FitLog, plain
from sklearn.metrics import log_loss

from tabsym import WideSGDClassifier, WideSGDRegressor, datasets
from tabsym.optimizers import SGD, Adagrad, Adam

TABLES = ["adult", "amazon", "kick", "usedcars"]
ESTIMATORS = ["gse", "mean"]
BATCHES = [1, 32, 256, 1024]
OPTIMIZERS = {"sgd": SGD(), "momentum": SGD(momentum=0.9), "adagrad": Adagrad(), "adam": Adam()}
RATES = {
    "sgd": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
    "momentum": [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3],
    "adagrad": [0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    "adam": [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3],
}
TITLES = {"sgd": "SGD", "momentum": "SGD with momentum .9", "adagrad": "Adagrad", "adam": "Adam"}
COLOURS = {1: "#fdae61", 32: "#d7301f", 256: "#7a3e9d", 1024: "#1b3a6b"}
MAX_ROWS = 20_000
SEEDS = 3
EPOCHS = 5
TEST_SHARE = 0.25
LEAP_FROM = 32
"""The rate that is best at this batch size is tried at the largest one."""


def fit_and_score(name: str, model: WideSGDClassifier | WideSGDRegressor, X: pd.DataFrame, y: np.ndarray) -> dict:
    """Test loss of one fit, the loss of the constant, and the time of the fit; the last rows are the test rows."""
    n_train = len(X) - int(len(X) * TEST_SHARE)
    train, held_out = slice(n_train), slice(n_train, None)
    constant = constant_loss(name, y[train], y[held_out])
    start = time.perf_counter()
    try:
        model.fit(X.iloc[train], y[train])
        seconds = time.perf_counter() - start
        loss = test_loss(model, X.iloc[held_out], y[held_out])
    except ValueError as problem:
        if "diverged" not in str(problem):
            raise
        seconds, loss = time.perf_counter() - start, np.inf
    return {"loss": loss, "constant": constant, "seconds": seconds}


def test_loss(model: WideSGDClassifier | WideSGDRegressor, X: pd.DataFrame, y: np.ndarray) -> float:
    if isinstance(model, WideSGDRegressor):
        value = float(np.mean((model.predict(X) - y) ** 2) / np.var(y))
    else:
        probabilities = model.predict_proba(X)
        value = float(log_loss(y, probabilities)) if np.isfinite(probabilities).all() else np.inf
    return value if np.isfinite(value) else np.inf


def constant_loss(name: str, y_train: np.ndarray, y_test: np.ndarray) -> float:
    if is_regression(name):
        return float(np.mean((y_train.mean() - y_test) ** 2) / np.var(y_test))
    return float(log_loss(y_test, np.full(len(y_test), y_train.mean())))


def is_regression(name: str) -> bool:
    return datasets.PUBLIC[name].task == "regression"


def blank_model(name: str, optimizer: str, estimator: str, batch: int, rate: float, seed: int):
    model_class = WideSGDRegressor if is_regression(name) else WideSGDClassifier
    is_same = batch == 1 and optimizer in ("sgd", "adagrad")  # then "mean" is refused, as it is what "gse" is
    return model_class(
        optimizer=OPTIMIZERS[optimizer],
        gradient="gse" if is_same else estimator,
        batch_size=batch,
        learning_rate=rate,
        max_iter=EPOCHS,
        random_state=seed,
    )


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The features, and the target as numbers."""
    X, y = datasets.load(name)
    return X, np.asarray(y, dtype=float) if is_regression(name) else (y == y.unique().max()).to_numpy(dtype=int)


def run(log: FitLog, seeds: int, most_rows: int) -> None:
    """Every fit that the log has not."""
    tables = {name: table(name) for name in TABLES}
    for seed in range(seeds):
        for optimizer, name in itertools.product(OPTIMIZERS, TABLES):
            X, y = tables[name]
            rows = np.random.RandomState(seed).permutation(len(X))[:most_rows]
            part, target = X.iloc[rows], y[rows]
            for batch, estimator, rate in itertools.product(BATCHES[::-1], ESTIMATORS, RATES[optimizer]):
                key = fit_key(name, optimizer, estimator, batch, rate, seed)
                if key not in log:
                    model = blank_model(name, optimizer, estimator, batch, rate, seed)
                    log.add(key | fit_and_score(name, model, part, target))


def fit_key(name: str, optimizer: str, estimator: str, batch: int, rate: float, seed: int) -> dict:
    return {
        "table": name,
        "optimizer": optimizer,
        "estimator": estimator,
        "batch": batch,
        "rate": rate,
        "seed": seed,
    }


# -- tables ---------------------------------------------------------------


def best_fits(fits: pd.DataFrame) -> pd.DataFrame:
    """The rate of lowest mean test loss, and that loss, for every table, optimizer, estimator and batch size."""
    cell = ["table", "optimizer", "estimator", "batch"]
    mean = fits.groupby([*cell, "rate"])["loss"].mean().reset_index()
    return mean.loc[mean.groupby(cell)["loss"].idxmin()].set_index(cell)


def summarise(fits: pd.DataFrame) -> str:
    """Two Markdown tables: the best losses with their rates, and the loss when the rate is kept as the batch grows."""
    best = best_fits(fits)
    head = ["| optimizer | batch | " + " | ".join(TABLES) + " |", "| --- | --- " + "| --- " * len(TABLES) + "|"]
    lines = list(head)
    for optimizer, batch in itertools.product(OPTIMIZERS, BATCHES):
        cells = [_pair(fits, best, name, optimizer, batch) for name in TABLES]
        lines.append(f"| {optimizer} | {batch} | " + " | ".join(cells) + " |")
    lines += ["", "| optimizer | estimator | " + " | ".join(TABLES) + " |", head[1]]
    for optimizer, estimator in itertools.product(OPTIMIZERS, ESTIMATORS):
        cells = [_leap(fits, best, name, optimizer, estimator) for name in TABLES]
        lines.append(f"| {optimizer} | {estimator} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _pair(fits: pd.DataFrame, best: pd.DataFrame, name: str, optimizer: str, batch: int) -> str:
    """`loss @rate / loss @rate`, the lower loss in bold where it is lower on every seed."""
    shown, losses = [], []
    for estimator in ESTIMATORS:
        row = best.loc[name, optimizer, estimator, batch]
        shown.append(f"{plain(round(row['loss'], 4))} @{plain(row['rate'])}")
        losses.append(_by_seed(fits, name, optimizer, estimator, batch, row["rate"]))
    difference = (losses[0] - losses[1]).dropna()
    ahead = 0 if (difference < 0).all() else 1 if (difference > 0).all() else None
    if ahead is not None and abs(difference.mean()) >= 5e-4:
        shown[ahead] = f"**{shown[ahead]}**"
    return " / ".join(shown)


def _by_seed(fits: pd.DataFrame, name: str, optimizer: str, estimator: str, batch: int, rate: float) -> pd.Series:
    chosen = (
        (fits["table"] == name)
        & (fits["optimizer"] == optimizer)
        & (fits["estimator"] == estimator)
        & (fits["batch"] == batch)
        & np.isclose(fits["rate"], rate)
    )
    return fits[chosen].set_index("seed")["loss"]


def _leap(fits: pd.DataFrame, best: pd.DataFrame, name: str, optimizer: str, estimator: str) -> str:
    """Loss at the largest batch with the rate that was best at a small one, and with the best one."""
    kept = best.loc[name, optimizer, estimator, LEAP_FROM]["rate"]
    loss = _by_seed(fits, name, optimizer, estimator, BATCHES[-1], kept).mean()
    return f"{plain(round(loss, 4))} ({plain(round(best.loc[name, optimizer, estimator, BATCHES[-1]]['loss'], 4))})"


# -- figures --------------------------------------------------------------


def draw(fits: pd.DataFrame, optimizer: str, path: Path) -> None:
    """Test loss by learning rate, a panel per table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    part = fits[fits["optimizer"] == optimizer]
    figure, axes = plt.subplots(2, 2, figsize=(10, 7.6), layout="constrained")
    for ax, name in zip(axes.flat, TABLES, strict=True):
        _panel(ax, part[part["table"] == name], name)
    figure.suptitle(f"{TITLES[optimizer]}: test loss by learning rate ({EPOCHS} epochs, mean of seeds)")
    figure.legend(handles=_legend(), loc="outside lower center", ncols=7, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(ax, part: pd.DataFrame, name: str) -> None:
    mean = part.groupby(["batch", "estimator", "rate"])["loss"].mean()
    constant = part["constant"].mean()
    room = constant - mean.min()
    for batch, estimator in itertools.product(BATCHES, ESTIMATORS):
        line = mean[batch, estimator].clip(upper=constant + 3 * room)  # far above the panel, also where it diverged
        style = "-" if estimator == "gse" else "--"
        ax.plot(line.index, line.to_numpy(), style, color=COLOURS[batch], marker="o", markersize=3, linewidth=1.5)
    ax.axhline(constant, color="grey", linestyle=":", linewidth=1.2)
    ax.set_ylim(mean.min() - 0.06 * room, constant + 0.25 * room)
    ax.set_xscale("log")
    ax.set_title(name)
    ax.set_xlabel("learning rate")
    ax.set_ylabel("squared error / variance" if is_regression(name) else "log-loss")
    ax.grid(color="#e6e6e6", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def _legend() -> list:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, label=f"batch {batch}") for batch, colour in COLOURS.items()]
    handles.append(Line2D([], [], color="black", label="gse"))
    handles.append(Line2D([], [], color="black", linestyle="--", label="mean"))
    handles.append(Line2D([], [], color="grey", linestyle=":", label="constant"))
    return handles


def times(repeats: int = 5) -> str:
    """Processor seconds of Adam's fits, gse / mean, and how many times longer mean takes; a Markdown table."""
    lines = [
        "| table | " + " | ".join(f"batch {batch}" for batch in BATCHES) + " |",
        "| --- |" + " --- |" * len(BATCHES),
    ]
    for name in TABLES:
        X, y = table(name)
        part, target, shown = X.iloc[:MAX_ROWS], y[:MAX_ROWS], []
        for batch in BATCHES:
            least = dict.fromkeys(ESTIMATORS, np.inf)
            for _, estimator in itertools.product(range(repeats), ESTIMATORS):
                model = blank_model(name, "adam", estimator, batch, 0.001, 0)
                start = time.process_time()
                model.fit(part, target)
                least[estimator] = min(least[estimator], time.process_time() - start)
            shown.append(f"{least['gse']:.3f} / {least['mean']:.3f}: {least['mean'] / least['gse']:.1f}")
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 rows of each table, one seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV and the figures")
    parser.add_argument("--summary", action="store_true", help="fit nothing, print and draw what is there")
    parser.add_argument("--times", action="store_true", help="only Adam's times with both estimators")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if args.times:
        print(times())
        return
    stem = "estimators_quick" if args.quick else "estimators"
    log = FitLog(args.out / f"{stem}.csv", list(fit_key("", "", "", 0, 0.0, 0)), ["loss", "constant", "seconds"])
    if not args.summary:
        run(log, 1 if args.quick else args.seeds, 1_000 if args.quick else MAX_ROWS)
    fits = log.read()
    for optimizer in OPTIMIZERS:
        draw(fits, optimizer, args.out / f"{stem}_{optimizer}.png")
    print(summarise(fits))


if __name__ == "__main__":
    main()
