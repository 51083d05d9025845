"""Whole symbols held out: what the value that an encoder gives an unseen symbol is worth, taken alone.

Of each column a fifth of the symbols is held out at a time; each of them gets one value, which predicts its rows (300
at most). The oracle has seen the symbol: its mean drawn to the mean of symbols, each row by the other folds' rows. The
share of the gap between the mean of all training rows and the oracle that a method closes is 1 for the oracle, 0 for
the mean and below 0 for what is worse than the mean. ("own mean" is the symbol's mean in hindsight, of the very rows
that are scored: of symbols of few rows most of it is noise.) Standard errors are those of a jackknife over symbols.
Log-loss for classes, squared error for numbers.

    TABSYM_DATA=FOLDER python benchmarks/unseen/encoders.py [--seeds 3] [--tasks "adult education"] --out unseen.csv
    python benchmarks/unseen/encoders.py --out unseen.csv --report
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tasks import TASKS, HeldOut, Task, folds, is_classes, load, loss

from tabsym import TIWSEncoder
from tabsym.encoders import NativeCategories

NEIGHBOURS, MAX_ASKED = 40, 40
LEVELS = (0.8, 0.9)


def tiws(held: HeldOut, task: Task, **options) -> np.ndarray:
    """A value for each row of `new`."""
    encoder = TIWSEncoder(cols=[task.column], target_type="continuous", cv=None, **options).fit(held.X, held.y)
    return encoder.transform(held.new)[task.column].to_numpy()


def symbol_means(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Values (n,) averaged within each symbol's rows."""
    return (np.bincount(codes, values) / np.maximum(np.bincount(codes), 1))[codes]


def knn(held: HeldOut, task: Task) -> np.ndarray:
    """The mean target of the 40 nearest training rows in the other columns, averaged over a symbol's first 40 rows."""
    X, new = held.X.drop(columns=task.column), held.new.drop(columns=task.column)
    texts = [name for name in X if X[name].dtype.kind not in "bif"]
    numbers = [name for name in X if X[name].dtype.kind in "bif"]
    hot = OneHotEncoder(handle_unknown="ignore").fit(X[texts].astype(str)) if texts else None
    scale = StandardScaler().fit(X[numbers].astype(float)) if numbers else None

    def points(frame: pd.DataFrame) -> np.ndarray:
        parts = []
        if hot is not None:
            parts.append(hot.transform(frame[texts].astype(str)).toarray() / np.sqrt(2))
        if scale is not None:
            parts.append(np.nan_to_num(scale.transform(frame[numbers].astype(float))))
        return np.hstack(parts).astype(np.float32)

    few = pd.Series(held.codes).groupby(held.codes).cumcount().to_numpy() < MAX_ASKED
    train = np.random.default_rng(0).permutation(len(X))[:5000]
    search = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(points(X.iloc[train]))
    near = search.kneighbors(points(new[few]), return_distance=False)
    means = held.y[train][near].mean(axis=1)
    size = held.codes.max() + 1
    total, count = np.bincount(held.codes[few], means, minlength=size), np.bincount(held.codes[few], minlength=size)
    return (total / np.maximum(count, 1))[held.codes]


def by_name(held: HeldOut, task: Task) -> np.ndarray:
    """Seen symbols' means, weighed by the cosine of names' pieces (2 to 4 characters)."""
    seen = held.X.groupby(task.column)[task.column].size()
    means = pd.Series(held.y).groupby(held.X[task.column].to_numpy()).mean()[seen.index]
    reader = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)).fit(seen.index)
    unseen, which = np.unique(held.new[task.column].to_numpy(dtype=object), return_inverse=True)
    alike = np.clip((reader.transform(unseen) @ reader.transform(seen.index).T).toarray(), 0, 1) + 1e-9
    return (alike @ means.to_numpy() / alike.sum(axis=1))[which]


def blind(held: HeldOut, task: Task) -> np.ndarray:
    """The mean prediction of LightGBM trained without the column."""
    native = NativeCategories().fit(held.X.drop(columns=task.column))
    X, new = (native.transform(one.drop(columns=task.column)) for one in (held.X, held.new))
    classes = is_classes(held.y)
    model = (LGBMClassifier if classes else LGBMRegressor)(verbosity=-1, random_state=0, n_jobs=1).fit(X, held.y)
    found = model.predict_proba(new)[:, 1] if classes else model.predict(new)
    return symbol_means(found, held.codes)


METHODS = {
    "mean": lambda held, task: np.full(len(held.new), held.y.mean()),
    "own mean": lambda held, task: symbol_means(held.y_new, held.codes),
    "mean of symbols": partial(tiws, context="observed"),
    "kNN, 40 rows": knn,
    "names": by_name,
    "TIWS as printed": partial(tiws, method="poster"),
    "documents": tiws,
    "documents, deciles": partial(tiws, numeric="quantile"),
    "documents, row": lambda held, task: symbol_means(tiws(held, task, context="row"), held.codes),
    "documents and names": partial(tiws, names=True),
    "blind LightGBM": blind,
}


def run(task: Task, seed: int) -> pd.DataFrame:
    """For each symbol and method: rows scored, sum of losses, seconds; coverage of the intervals."""
    X, y = load(task, seed)
    seen = TIWSEncoder(cols=[task.column], target_type="continuous", random_state=seed).fit_transform(X, y)
    known = seen[task.column].to_numpy()
    records = []
    for fold, held in enumerate(folds(task, X, y, seed)):
        oracle = {"oracle": lambda held, task: known[held.rows]}
        for name, method in (oracle | METHODS).items():
            start = time.perf_counter()
            values = method(held, task)
            seconds = time.perf_counter() - start
            losses = loss(held.y_new, values) * held.scored
            by_category = np.bincount(held.codes, losses)
            rows = np.bincount(held.codes, held.scored)
            for code in np.flatnonzero(rows):
                records.append(
                    [task.name, seed, fold, held.categories[code], name, rows[code], by_category[code], seconds]
                )
        encoder = TIWSEncoder(cols=[task.column], target_type="continuous", cv=None).fit(held.X, held.y)
        for level in LEVELS:
            bounds = encoder.transform(held.new, return_interval=level)[1].to_numpy()
            own = symbol_means(held.y_new, held.codes)
            inside = (bounds[:, 0] <= own) & (own <= bounds[:, 1])
            for code in np.unique(held.codes):
                first = np.argmax(held.codes == code)
                width = bounds[first, 1] - bounds[first, 0]
                records.append(
                    [
                        task.name,
                        seed,
                        fold,
                        held.categories[code],
                        f"inside {level:.0%}",
                        1,
                        float(inside[first]),
                        width,
                    ]
                )
    columns = ["task", "seed", "fold", "symbol", "method", "rows", "loss", "seconds"]
    return pd.DataFrame(records, columns=columns)


def shares(found: pd.DataFrame) -> pd.DataFrame:
    """By task and method: the share of the gap that is closed, its standard error, and t of the gain on the mean."""
    out = []
    scored = found[~found["method"].str.startswith("inside")]
    for task, one in scored.groupby("task", sort=False):
        table = one.pivot_table(index=["seed", "symbol"], columns="method", values="loss")
        category = table.index.get_level_values("symbol")
        gap = table["mean"] - table["oracle"]
        for name in table.columns:
            gain = table["mean"] - table[name]
            share = gain.sum() / gap.sum()
            by = gain.groupby(category).sum(), gap.groupby(category).sum()
            n = len(by[0])
            left_out = (by[0].sum() - by[0]) / (by[1].sum() - by[1])
            error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
            out.append([task, name, share, error, share / error if error > 0 else 0.0, n])
    return pd.DataFrame(out, columns=["task", "method", "share", "se", "t", "symbols"])


def report(found: pd.DataFrame) -> str:
    """Tables in Markdown."""
    table = shares(found)
    names = [name for name in METHODS if name != "mean"]
    lines = ["| column | symbols | " + " | ".join(names) + " |", "| --- | --- |" + " --- |" * len(names)]
    for task, one in table.groupby("task", sort=False):
        cells = one.set_index("method")
        values = [f"{cells.loc[n, 'share']:.2f} ({cells.loc[n, 'se']:.2f})" for n in names]
        lines.append(f"| {task} | {cells['symbols'].iloc[0]} | " + " | ".join(values) + " |")
    wide = table.pivot_table(index="task", columns="method", values="share")
    t = table.pivot_table(index="task", columns="method", values="t")
    lines.append("| **mean** | | " + " | ".join(f"**{wide[n].mean():.2f}**" for n in names) + " |")
    lines.append("| worst | | " + " | ".join(f"{wide[n].min():.2f}" for n in names) + " |")
    lines.append("| beats the mean | | " + " | ".join(f"{(wide[n] > 0).sum()}/{len(wide)}" for n in names) + " |")
    lines.append("| beyond noise worse | | " + " | ".join(f"{(t[n] < -2).sum()}" for n in names) + " |")
    lines.append("")
    for name, one in found[found["method"].str.startswith("inside")].groupby("method"):
        by_task = one.groupby("task", sort=False)["loss"].mean()
        few = ", ".join(f"{task} {value:.2f}" for task, value in by_task.items())
        lines.append(f"{name}: {one['loss'].mean():.3f} of {len(one)} held-out symbols; by column: {few}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
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
                    found = run(task, seed)
                found.to_csv(options.out, mode="a", header=not options.out.exists(), index=False)
                one = shares(found).set_index("method")["share"].round(2).to_dict()
                print(f"seed {seed}, {task.name}: {one}", flush=True)
    print(report(pd.read_csv(options.out, low_memory=False)))


if __name__ == "__main__":
    main()
