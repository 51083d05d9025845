"""Whole symbols held out: boosters with their own treatment of what they have not seen, and what can be done instead.

For each booster: its own treatment ("default"), the same model answering by donors (jitter: calibrated on a fifth of
the training rows and then fitted on all; "plain": not calibrated), the same booster without the column ("blind"). For
LightGBM also the column as encoded values: the mean of symbols, TIWS by documents, and half of the training rows as
if unseen ("augmented"). 100 trees each, other settings at their defaults. Differences are per row, with standard
errors over held-out symbols (a jackknife). Log-loss for classes; squared error for numbers, in units of the target's
variance.

    TABSYM_DATA=FOLDER python benchmarks/unseen/models.py --out models.csv [--seeds 2] [--rows 8000] [--tasks ...]
    python benchmarks/unseen/models.py --out models.csv --report
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from tasks import TASKS, HeldOut, Task, folds, is_classes, load, loss

from tabsym import AugmentedModel, JitterPredictor, TIWSEncoder
from tabsym.compare.jittered import MOST_DONORS, Jittered
from tabsym.integrations import load_adapter

TREES = 100
BOOSTERS = ("lightgbm", "xgboost", "catboost")


def booster(name: str, task: str, seed: int):
    """With its own treatment of categories."""
    model = load_adapter(name).native(task, random_state=seed, n_jobs=2)
    if hasattr(model, "steps"):
        return model.set_params(booster__n_estimators=TREES)
    return model.set_params(booster=model.booster.set_params(iterations=TREES))


def asked(model, X: pd.DataFrame, task: str) -> np.ndarray:
    return model.predict_proba(X)[:, 1] if task == "binary" else model.predict(X)


def answers(held: HeldOut, column: str, seed: int, boosters: list[str]) -> dict[str, np.ndarray]:
    """What each says of the rows of held-out symbols."""
    task = "binary" if is_classes(held.y) else "regression"
    y = held.y.astype(int) if task == "binary" else held.y
    kind = "classes" if task == "binary" else "continuous"
    encoder = TIWSEncoder(cols=[column], target_type=kind, random_state=seed)
    out = {"constant": np.full(len(held.new), y.mean())}
    without, new_without = held.X.drop(columns=column), held.new.drop(columns=column)
    fitted = clone(encoder).fit(held.X, y)
    for name in boosters:
        model = booster(name, task, seed).fit(held.X, y)
        out[f"{name} default"] = asked(model, held.new, task)
        out[f"{name} plain"] = asked(JitterPredictor(model, fitted, max_donors=MOST_DONORS), held.new, task)
        out[f"{name} jitter"] = asked(Jittered(booster(name, task, seed), encoder, seed).fit(held.X, y), held.new, task)
        out[f"{name} blind"] = asked(booster(name, task, seed).fit(without, y), new_without, task)
    for label, options in (("mean", {"context": "observed"}), ("documents", {})):
        one = clone(encoder).set_params(**options)
        model = booster("lightgbm", task, seed).fit(one.fit_transform(held.X, y), y)
        out[f"lightgbm {label}"] = asked(model, one.transform(held.new), task)
    twice = AugmentedModel(booster("lightgbm", task, seed), encoder=clone(encoder).set_params(indicator=True))
    out["lightgbm augmented"] = asked(twice.fit(held.X, y), held.new, task)
    return out


def run(task: Task, seed: int, rows: int, n_folds: int, boosters: list[str]) -> pd.DataFrame:
    """For each symbol and model: rows scored and the sum of losses."""
    X, y = load(task, seed)
    few = np.random.default_rng(seed).permutation(len(X))[:rows]
    X, y = X.iloc[few].reset_index(drop=True), y[few]
    unit = 1.0 if is_classes(y) else y.var()
    records = []
    for fold, held in enumerate(folds(task, X, y, seed, n_folds)):
        for name, values in answers(held, task.column, seed, boosters).items():
            losses = np.bincount(held.codes, loss(held.y_new, values) * held.scored) / unit
            count = np.bincount(held.codes, held.scored)
            for code in np.flatnonzero(count):
                records.append([task.name, seed, fold, held.symbols[code], name, count[code], losses[code]])
    return pd.DataFrame(records, columns=["task", "seed", "fold", "symbol", "model", "rows", "loss"])


def difference(one: pd.DataFrame, other: pd.DataFrame) -> tuple[float, float]:
    """The mean difference per row, and its standard error over symbols."""
    both = one.merge(other, on=["seed", "symbol"], suffixes=("", "_other"))
    by = both.assign(gain=both["loss"] - both["loss_other"]).groupby("symbol")[["gain", "rows"]].sum()
    left_out = (by["gain"].sum() - by["gain"]) / (by["rows"].sum() - by["rows"])
    n = len(by)
    return by["gain"].sum() / by["rows"].sum(), float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()))


PAIRS = [
    *((f"{name} jitter", f"{name} default") for name in BOOSTERS),
    *((f"{name} plain", f"{name} default") for name in BOOSTERS),
    *((f"{name} blind", f"{name} default") for name in BOOSTERS),
    ("lightgbm augmented", "lightgbm mean"),
    ("lightgbm augmented", "lightgbm default"),
    ("lightgbm augmented", "lightgbm blind"),
    ("lightgbm documents", "lightgbm blind"),
    ("lightgbm jitter", "lightgbm blind"),
]


def report(found: pd.DataFrame) -> str:
    """Differences in Markdown: negative is better than the second of each pair."""
    tasks = list(dict.fromkeys(found["task"]))
    lines = [
        "| | " + " | ".join(tasks) + " | mean | better, worse beyond 2 s.e. |",
        "| --- |" + " --- |" * (len(tasks) + 2),
    ]
    known = set(found["model"])
    for model, other in (pair for pair in PAIRS if known.issuperset(pair)):
        cells, values, t = [], [], []
        for task in tasks:
            of = found[found["task"] == task]
            mean, error = difference(of[of["model"] == model], of[of["model"] == other])
            values.append(mean)
            t.append(mean / error if error else 0.0)
            cells.append(f"{mean:+.3f} ({error:.3f})")
        beyond = f"{sum(one < -2 for one in t)}, {sum(one > 2 for one in t)}"
        lines.append(f"| {model} - {other} | " + " | ".join(cells) + f" | **{np.mean(values):+.3f}** | {beyond} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--boosters", nargs="*", default=list(BOOSTERS), choices=BOOSTERS)
    parser.add_argument("--tasks", nargs="*", help='such as "adult education"; default: all')
    parser.add_argument("--report", action="store_true", help="only print what the file holds")
    options = parser.parse_args()
    if not options.report:
        options.out.unlink(missing_ok=True)
        for seed in range(options.seeds):
            for task in TASKS:
                if options.tasks and task.name not in options.tasks:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = run(task, seed, options.rows, options.folds, options.boosters)
                found.to_csv(options.out, mode="a", header=not options.out.exists(), index=False)
                total = found.groupby("model")[["loss", "rows"]].sum()
                print(f"seed {seed}, {task.name}: {(total['loss'] / total['rows']).round(4).to_dict()}", flush=True)
    print(report(pd.read_csv(options.out)))


if __name__ == "__main__":
    main()
