"""Whole symbols held out: boosters with their own treatment of what they have not seen, and what can be done instead.

For each booster: its own treatment ("default"), the same model answering by donors (jitter: calibrated on a fifth of
the training rows and then fitted on all; "plain": not calibrated), the same booster without the column ("blind"). For
LightGBM also the column as encoded values: the mean of symbols, TIWS by documents, and half of the training rows as
if unseen ("augmented"). 100 trees each, other settings at their defaults. Differences are per row, with standard
errors over held-out symbols (a jackknife); those of means over columns are of the columns' differences. Log-loss for
classes; squared error for numbers, in units of the target's variance.

    TABSYM_DATA=FOLDER python benchmarks/unseen/models.py --out models.csv [--seeds 3] [--rows 6000] [--tasks ...]
    python benchmarks/unseen/models.py --out models.csv --report

What the file holds already (seed, column and booster) is not run again, so that a run that was cut short goes on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from tasks import TASKS, HeldOut, Task, folds, is_classes, load, loss

from tabsym import AugmentedModel, JitterPredictor, TIWSEncoder
from tabsym.compare.contenders import hist_booster
from tabsym.compare.estimators import Jittered
from tabsym.encoders import NativeCategories, NativePipeline
from tabsym.integrations import load_adapter

TREES = 100
BOOSTERS = ("lightgbm", "xgboost", "catboost", "hist")


def booster(name: str, task: str, seed: int, jobs: int):
    """With its own treatment of categories."""
    if name == "hist":
        model = hist_booster(task, seed).set_params(max_iter=TREES)
        return NativePipeline([("categories", NativeCategories(max_levels=254)), ("booster", model)])
    model = load_adapter(name).native(task, random_state=seed, n_jobs=jobs)
    if hasattr(model, "steps"):
        return model.set_params(booster__n_estimators=TREES)
    return model.set_params(booster=model.booster.set_params(iterations=TREES))


def asked(model, X: pd.DataFrame, task: str) -> np.ndarray:
    return model.predict_proba(X)[:, 1] if task == "binary" else model.predict(X)


class Asking:
    """What models say of the rows of held-out symbols, each fitted on the other rows."""

    def __init__(self, held: HeldOut, column: str, seed: int, jobs: int) -> None:
        self.held, self.column, self.seed, self.jobs = held, column, seed, jobs
        self.task = "binary" if is_classes(held.y) else "regression"
        self.y = held.y.astype(int) if self.task == "binary" else held.y
        kind = "classes" if self.task == "binary" else "continuous"
        self.encoder = TIWSEncoder(cols=[column], target_type=kind, random_state=seed, n_jobs=jobs)

    def booster(self, name: str):
        return booster(name, self.task, self.seed, self.jobs)

    def of(self, model) -> np.ndarray:
        return asked(model, self.held.new, self.task)

    def natively(self, name: str) -> dict[str, np.ndarray]:
        """A booster's own treatment, its answers by donors, and the blind one."""
        X, without = self.held.X, self.held.X.drop(columns=self.column)
        model = self.booster(name).fit(X, self.y)
        plain = JitterPredictor(model, clone(self.encoder).fit(X, self.y))
        jittered = Jittered(self.booster(name), self.encoder, self.seed).fit(X, self.y)
        blind = self.booster(name).fit(without, self.y)
        return {
            f"{name} default": self.of(model),
            f"{name} plain": self.of(plain),
            f"{name} jitter": self.of(jittered),
            f"{name} blind": asked(blind, self.held.new.drop(columns=self.column), self.task),
        }

    def encoded(self) -> dict[str, np.ndarray]:
        """The column as values under LightGBM; and the mean of the target, for no model at all."""
        out = {"constant": np.full(len(self.held.new), self.y.mean())}
        for label, options in (("mean", {"context": "observed"}), ("documents", {})):
            one = clone(self.encoder).set_params(**options)
            model = self.booster("lightgbm").fit(one.fit_transform(self.held.X, self.y), self.y)
            out[f"lightgbm {label}"] = asked(model, one.transform(self.held.new), self.task)
        twice = AugmentedModel(self.booster("lightgbm"), encoder=clone(self.encoder).set_params(indicator=True))
        out["lightgbm augmented"] = self.of(twice.fit(self.held.X, self.y))
        return out


def run(task: Task, seed: int, name: str, rows: int, n_folds: int, jobs: int) -> pd.DataFrame:
    """For each symbol and model of a booster: rows scored and the sum of losses."""
    X, y = load(task, seed)
    few = np.random.default_rng(seed).permutation(len(X))[:rows]
    X, y = X.iloc[few].reset_index(drop=True), y[few]
    unit = 1.0 if is_classes(y) else y.var()
    records = []
    for fold, held in enumerate(folds(task, X, y, seed, n_folds)):
        asking = Asking(held, task.column, seed, jobs)
        answers = asking.natively(name) | (asking.encoded() if name == "lightgbm" else {})
        count = np.bincount(held.codes, held.scored)
        for model, values in answers.items():
            losses = np.bincount(held.codes, loss(held.y_new, values) * held.scored) / unit
            for code in np.flatnonzero(count):
                records.append([task.name, seed, fold, held.categories[code], model, count[code], losses[code]])
    found = pd.DataFrame(records, columns=["task", "seed", "fold", "symbol", "model", "rows", "loss"])
    return found.assign(asked=f"{rows} rows, {n_folds} folds")


def difference(one: pd.DataFrame, other: pd.DataFrame) -> tuple[float, float]:
    """The mean difference per row, and its standard error over symbols."""
    both = one.merge(other, on=["seed", "symbol"], suffixes=("", "_other"))
    by = both.assign(gain=both["loss"] - both["loss_other"]).groupby("symbol")[["gain", "rows"]].sum()
    left_out = (by["gain"].sum() - by["gain"]) / (by["rows"].sum() - by["rows"])
    n = len(by)
    return by["gain"].sum() / by["rows"].sum(), float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()))


def across_boosters(model: str, other: str) -> list[tuple[str, str]]:
    return [(f"{name} {model}", f"{name} {other}") for name in BOOSTERS]


TABLES = [
    [*across_boosters("jitter", "default"), *across_boosters("jitter", "blind")],
    [*across_boosters("plain", "default"), *across_boosters("blind", "default")],
    [
        ("lightgbm documents", "lightgbm blind"),
        ("lightgbm augmented", "lightgbm mean"),
        ("lightgbm augmented", "lightgbm default"),
        ("lightgbm augmented", "lightgbm blind"),
    ],
]


def differences(found: pd.DataFrame, pairs: list[tuple[str, str]]) -> pd.DataFrame:
    """Of each column and pair: the difference, its standard error over symbols, and how many symbols there are."""
    records = []
    for task, of in found.groupby("task", sort=False):
        by_model = dict(list(of.groupby("model")))
        for model, other in pairs:
            if {model, other} <= set(by_model):
                mean, error = difference(by_model[model], by_model[other])
                name, what = model.split()
                records.append([task, f"{name}: {what} - {other.split()[1]}", mean, error, of["symbol"].nunique()])
    return pd.DataFrame(records, columns=["task", "pair", "mean", "error", "symbols"])


def report(found: pd.DataFrame) -> str:
    """Tables in Markdown of differences: negative is better than the second of each pair."""
    order = [task.name for task in TASKS]
    found = found.sort_values("task", key=lambda names: names.map(order.index), kind="stable")
    return "\n\n".join(markdown(differences(found, pairs)) for pairs in TABLES)


def markdown(table: pd.DataFrame) -> str:
    """Columns by pairs, and of each pair the mean over columns and how many are beyond two standard errors."""
    pairs = list(dict.fromkeys(table["pair"]))
    lines = ["| column | symbols | " + " | ".join(pairs) + " |", "| --- |" + " --- |" * (len(pairs) + 1)]
    for task, one in table.groupby("task", sort=False):
        cells = {row.pair: f"{row.mean:+.3f} ({row.error:.3f})" for row in one.itertuples()}
        lines.append(f"| {task} | {one['symbols'].iloc[0]} | " + " | ".join(cells.get(p, "") for p in pairs) + " |")
    of = [table[table["pair"] == pair] for pair in pairs]
    means = [f"**{one['mean'].mean():+.3f}** ({one['mean'].std() / np.sqrt(len(one)):.3f})" for one in of]
    better = [f"{(one['mean'] < -2 * one['error']).sum()}" for one in of]
    worse = [f"{(one['mean'] > 2 * one['error']).sum()}" for one in of]
    for head, cells in (("**mean**", means), ("better beyond 2 s.e.", better), ("worse beyond 2 s.e.", worse)):
        lines.append(f"| {head} | | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def read(path: Path) -> pd.DataFrame:
    """Symbols are text, whatever they look like: "NA", 17."""
    return pd.read_csv(path, dtype={"symbol": "str"}, keep_default_na=False)


def already(path: Path, setting: str) -> set[tuple[int, str, str]]:
    """Seeds, columns and boosters of a file, which must be of the same rows and folds."""
    if not path.exists():
        return set()
    found = read(path)
    if set(found["asked"]) != {setting}:
        raise SystemExit(f"{path} holds results of {found['asked'].iloc[0]}, not of {setting}; choose another --out.")
    done = found[found["model"].str.endswith(" default")]
    return set(zip(done["seed"], done["task"], done["model"].str.split().str[0]))


def run_all(options: argparse.Namespace) -> None:
    """Everything that the file does not hold yet, a seed after the other."""
    done = already(options.out, f"{options.rows} rows, {options.folds} folds")
    tasks = [task for task in TASKS if not options.tasks or task.name in options.tasks]
    for seed, task, name in product(range(options.seeds), tasks, options.boosters):
        if (seed, task.name, name) in done:
            continue
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run(task, seed, name, options.rows, options.folds, options.jobs)
        found.to_csv(options.out, mode="a", header=not options.out.exists(), index=False)
        total = found.groupby("model")[["loss", "rows"]].sum()
        means = (total["loss"] / total["rows"]).round(4).to_dict()
        print(f"seed {seed}, {task.name}, {time.perf_counter() - start:.0f} s: {means}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="threads (HistGradientBoosting goes by OMP_NUM_THREADS)")
    parser.add_argument("--boosters", nargs="*", default=list(BOOSTERS), choices=BOOSTERS)
    parser.add_argument("--tasks", nargs="*", help='such as "adult education"; default: all')
    parser.add_argument("--report", action="store_true", help="only print what the file holds")
    options = parser.parse_args()
    if not options.report:
        run_all(options)
    print(report(read(options.out)))


if __name__ == "__main__":
    main()
