"""Table 4 of the paper again: two symbolic models, trained with GSE and with the mean estimator, Adam.

    tips ~ gamma[taxi_id] * mu[payment_type] * trip_miles + b[1]                  (chicago_taxi)
    price ~ gamma[manufacturer_name] * mu[location_region] * year + b[1]          (usedcars)

A quarter of the rows (validation) only chooses the learning rate, for every
table, estimator and batch size alike, as the lowest mean RMSE over two
training sets. The other rows are split anew for each seed, three quarters for
training, one quarter for testing, and every fit at the chosen rate is scored there.

    TABSYM_DATA=FOLDER python benchmarks/paper_symbolic/table4.py [--paper] [--quick] [--summary]

Writes results/table4.csv, one row per fit (with --quick table4_quick.csv);
fits found there are not repeated. Prints the summary tables, in Markdown.
With --paper the paper's own setting instead: Adam at .001 for both, batches of
one row, 30 epochs, nothing tuned; results/table4_paper.csv.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from fits import RESULTS, FitLog, plain

from tabsym import WideSGDRegressor, datasets
from tabsym.compare.ranking import against_best
from tabsym.optimizers import Adam

TABLES = {  # target, symbols, symbols, number
    "chicago_taxi": ("tips", "taxi_id", "payment_type", "trip_miles"),
    "usedcars": ("price", "manufacturer_name", "location_region", "year"),
}
ESTIMATORS = ["gse", "mean"]
BATCHES = [1, 32, 256, 1024]
RATES = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0]
EPOCHS = 10
PAPER_RATE, PAPER_EPOCHS = 1e-3, 30
TUNING_SEEDS = 2
SEEDS = 20
TEST_SHARE = 0.25
FIRST_YEAR = 1940

Parts = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]


def table(name: str, most_rows: int | None) -> pd.DataFrame:
    """The three columns and the target, rows with a missing value left out, in a fixed random order."""
    X, y = datasets.load(name)
    target, *used = TABLES[name]
    if name == "usedcars":
        X = X.assign(year=X["year_produced"] - FIRST_YEAR)
    rows = X[used].assign(**{target: y}).dropna()
    return rows.sample(frac=1, random_state=0).head(most_rows or len(rows)).reset_index(drop=True)


def split(rows: pd.DataFrame, seed: int) -> Parts:
    """Training and test rows of a seed, and the validation rows, which are always the same."""
    n_validation = len(rows) // 4
    order = n_validation + np.random.RandomState(seed).permutation(len(rows) - n_validation)
    n_test = int(len(order) * TEST_SHARE)
    return rows.iloc[order[n_test:]], rows.iloc[order[:n_test]], rows.iloc[:n_validation]


def product(name: str, estimator: str, batch: int, rate: float, epochs: int, seed: int) -> WideSGDRegressor:
    target, a, b, x = TABLES[name]
    formula = f"{target} ~ gamma[{a}] * mu[{b}] * {x} + b[1]"
    return WideSGDRegressor(
        formula,
        optimizer=Adam(),
        gradient=estimator,
        batch_size=batch,
        learning_rate=rate,
        max_iter=epochs,
        random_state=seed,
    )


def additive(name: str, seed: int) -> WideSGDRegressor:
    target, a, b, x = TABLES[name]
    return WideSGDRegressor(f"{target} ~ w[{a}] + v[{b}] + beta[1] * {x} + b[1]", random_state=seed)


def score(model: WideSGDRegressor, train: pd.DataFrame, held_out: pd.DataFrame, target: str) -> dict[str, float]:
    """Errors on held-out rows and the time of the fit; a fit that diverges has infinite errors."""
    start = time.perf_counter()
    try:
        model.fit(train)
        seconds = time.perf_counter() - start
        error = np.asarray(model.predict(held_out), dtype=float) - held_out[target].to_numpy()
    except ValueError as problem:
        if "diverged" not in str(problem):
            raise
        return {"rmse": np.inf, "mae": np.inf, "seconds": time.perf_counter() - start}
    return errors(error) | {"seconds": seconds}


def errors(error: np.ndarray) -> dict[str, float]:
    return {"rmse": float(np.sqrt(np.mean(error**2))), "mae": float(np.mean(np.abs(error)))}


def tune(log: FitLog, name: str, rows: pd.DataFrame, epochs: int) -> None:
    """Every rate on the validation rows."""
    for batch, estimator in itertools.product(BATCHES, ESTIMATORS):
        warm_up(name, rows, estimator, batch)
        for seed, rate in itertools.product(range(TUNING_SEEDS), RATES):
            key = fit_key(name, estimator, batch, rate, seed, "validation")
            if key not in log:
                train, _, validation = split(rows, seed)
                model = product(name, estimator, batch, rate, epochs, seed)
                log.add(key | score(model, train, validation, TABLES[name][0]))


def test(log: FitLog, name: str, rows: pd.DataFrame, epochs: int, seeds: int) -> None:
    """The chosen rates, the additive model and the constant on the test rows of every seed."""
    rates = chosen_rates(log.read())
    target = TABLES[name][0]
    for seed in range(seeds):
        train, held_out, _ = split(rows, seed)
        for batch, estimator in itertools.product(BATCHES, ESTIMATORS):
            rate = float(rates[name, estimator, batch])
            key = fit_key(name, estimator, batch, rate, seed, "test")
            if key not in log:
                log.add(key | score(product(name, estimator, batch, rate, epochs, seed), train, held_out, target))
        key = fit_key(name, "additive", 0, 0.0, seed, "test")
        if key not in log:
            log.add(key | score(additive(name, seed), train, held_out, target))
        key = fit_key(name, "constant", 0, 0.0, seed, "test")
        if key not in log:
            error = train[target].mean() - held_out[target].to_numpy()
            log.add(key | errors(error) | {"seconds": 0.0})


def fit_key(name: str, estimator: str, batch: int, rate: float, seed: int, part: str) -> dict:
    return {"table": name, "estimator": estimator, "batch": batch, "rate": rate, "seed": seed, "split": part}


def warm_up(name: str, rows: pd.DataFrame, estimator: str, batch: int) -> None:
    """Compile the kernels, so that no time holds it."""
    product(name, estimator, batch, 1e-3, 1, 0).fit(rows.head(200))


def chosen_rates(fits: pd.DataFrame) -> pd.Series:
    """The rate of lowest mean validation RMSE, for every table, estimator and batch size."""
    tuning = fits[fits["split"] == "validation"]
    mean = tuning.groupby(["table", "estimator", "batch", "rate"])["rmse"].mean().reset_index()
    best = mean.loc[mean.groupby(["table", "estimator", "batch"])["rmse"].idxmin()]
    return best.set_index(["table", "estimator", "batch"])["rate"]


def summarise(fits: pd.DataFrame) -> str:
    """Two Markdown tables: the estimators in pairs, and the models they are to be seen against."""
    rates = chosen_rates(fits)
    tests = fits[fits["split"] == "test"]
    lines = [
        "| table | batch | rate gse / mean | RMSE gse | RMSE mean | gse - mean (sd) | p | MAE gse / mean | fit s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, batch in itertools.product(TABLES, BATCHES):
        lines.append(_pair(name, batch, tests, rates))
    lines += ["", "| table | constant RMSE (sd), MAE | additive RMSE (sd), MAE |", "| --- | --- | --- |"]
    for name in TABLES:
        cells = [_scale(tests, name, estimator) for estimator in ("constant", "additive")]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def paper_setting(log: FitLog, name: str, rows: pd.DataFrame, epochs: int, seeds: int) -> None:
    """Both estimators at the paper's rate, in batches of one row, on the test rows of every seed."""
    for estimator in ESTIMATORS:
        warm_up(name, rows, estimator, 1)
    for seed, estimator in itertools.product(range(seeds), ESTIMATORS):
        key = fit_key(name, estimator, 1, PAPER_RATE, seed, "test")
        if key not in log:
            train, held_out, _ = split(rows, seed)
            model = product(name, estimator, 1, PAPER_RATE, epochs, seed)
            log.add(key | score(model, train, held_out, TABLES[name][0]))


def summarise_paper(fits: pd.DataFrame) -> str:
    """A Markdown table of mean squared errors, and in how many splits each is lower."""
    lines = [
        "| table | MSE gse (sd) | MSE mean (sd) | gse lower | p | fit s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in TABLES:
        part = fits[fits["table"] == name].assign(mse=lambda rows: rows["rmse"] ** 2)
        mse, seconds = (
            part.pivot_table(index="seed", columns="estimator", values=value).dropna() for value in ("mse", "seconds")
        )
        if len(mse) < 2:
            continue
        difference = (mse["gse"] - mse["mean"]).to_numpy()
        p = against_best(difference[None], [None], TEST_SHARE / (1 - TEST_SHARE), np.ones(1)).p[0]
        shown = [f"{mse[side].mean():,.4g} ({mse[side].std():,.2g})" for side in ESTIMATORS]
        lines.append(
            f"| {name} | {shown[0]} | {shown[1]} | {int((difference < 0).sum())} of {len(difference)} | {p:.2g} "
            f"| {seconds['gse'].median():.2f} / {seconds['mean'].median():.2f} |"
        )
    return "\n".join(lines)


def _pair(name: str, batch: int, tests: pd.DataFrame, rates: pd.Series) -> str:
    part = tests[(tests["table"] == name) & (tests["batch"] == batch)]
    rmse, mae, seconds = (
        part.pivot_table(index="seed", columns="estimator", values=value).dropna()
        for value in ("rmse", "mae", "seconds")
    )
    difference = (rmse["gse"] - rmse["mean"]).to_numpy()
    p = against_best(difference[None], [None], TEST_SHARE / (1 - TEST_SHARE), np.ones(1)).p[0]
    show = _digits(name)
    return (
        f"| {name} | {batch} | {plain(rates[name, 'gse', batch])} / {plain(rates[name, 'mean', batch])} "
        f"| {show(rmse['gse'].mean())} | {show(rmse['mean'].mean())} "
        f"| {show(difference.mean())} ({show(difference.std(ddof=1))}) | {p:.2g} "
        f"| {show(mae['gse'].mean())} / {show(mae['mean'].mean())} "
        f"| {seconds['gse'].median():.2f} / {seconds['mean'].median():.2f} |"
    )


def _scale(tests: pd.DataFrame, name: str, estimator: str) -> str:
    part = tests[(tests["table"] == name) & (tests["estimator"] == estimator)]
    show = _digits(name)
    return f"{show(part['rmse'].mean())} ({show(part['rmse'].std(ddof=1))}), {show(part['mae'].mean())}"


def _digits(name: str) -> Callable[[float], str]:
    digits = 3 if name == "chicago_taxi" else 0
    return lambda value: f"{value:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3,000 rows of each table, 2 epochs, 3 seeds")
    parser.add_argument("--paper", action="store_true", help="the paper's own setting instead of tuned rates")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV")
    parser.add_argument("--summary", action="store_true", help="fit nothing, print the tables of what is there")
    args = parser.parse_args()
    np.seterr(all="ignore")
    path = args.out / f"table4{'_paper' * args.paper}{'_quick' * args.quick}.csv"
    log = FitLog(path, list(fit_key("", "", 0, 0.0, 0, "")), ["rmse", "mae", "seconds"])
    full = PAPER_EPOCHS if args.paper else EPOCHS
    epochs, seeds, most_rows = (2, 3, 3_000) if args.quick else (full, args.seeds, None)
    for name in [] if args.summary else TABLES:
        rows = table(name, most_rows)
        if args.paper:
            paper_setting(log, name, rows, epochs, seeds)
        else:
            tune(log, name, rows, epochs)
            test(log, name, rows, epochs, seeds)
    print(summarise_paper(log.read()) if args.paper else summarise(log.read()))


if __name__ == "__main__":
    main()
