"""What a booster should see under a wide model, table by table: the study behind the defaults of `WideBoost*`.

Parts: the wide model at its best, LightGBM at its defaults over native categories, and a gentle LightGBM likewise.
Stacks: the gentle one on top of margins ("margin") or beside them ("feature"), over symbols as ranks by frequency, as
native categories or as MODL's groups. For each fold of 5 (seed 0): the wide model is fitted, and cross-fitted for
margins; every stack is evaluated on the rows out of fold after 40 numbers of rounds, and on the test rows after
the best of them ("rounds"; the wide model alone is not among them here). HeldOutGains is "nested" where the booster
of a split is trained on margins that know nothing of the rows it is evaluated on, "simple" where they are those out of
fold. Policies (which of these may be chosen, the
wide model alone among them) are computed from the rows afterwards: `--report`. Tables of more rows than `MAX_ROWS`
are sampled. Rows go to results/study.csv as they arrive; what stands there is not run again.

    TABSYM_DATA=FOLDER python benchmarks/stacking/study.py [--tables amazon adult] [--folds 0 1] [--report]
    TABSYM_DATA=FOLDER python benchmarks/stacking/study.py --defaults
    python benchmarks/stacking/study.py --out results/after.csv --against results/before.csv
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from scipy.stats import wilcoxon  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.metrics import log_loss, roc_auc_score  # noqa: E402
from sklearn.model_selection import KFold, StratifiedKFold  # noqa: E402
from tables import commit, read  # noqa: E402

from tabsym import WideBoostClassifier, WideBoostRegressor  # noqa: E402
from tabsym.encoders.folds import split_by_target  # noqa: E402
from tabsym.integrations import load_adapter  # noqa: E402
from tabsym.stacking.layer import (  # noqa: E402
    Layer,
    Plan,
    StackRows,
    default_booster,
    default_wide,
    margins_of,
    rounds_of,
)
from tabsym.stacking.selection import (  # noqa: E402
    Learner,
    NestedCV,
    OutOfFoldMargins,
    ValidationSplit,
    select,
    splits_of_folds,
    taken,
)

TABLES = ["titanic", "compas", "adult", "amazon", "kick", "retail", "usedcars", "chicago_taxi", "rossmann",
          "covtype_small", "talkingdata_clicks", "kdd99"]  # fmt: skip
MAX_ROWS = {"amazon": 33_000, "covtype_small": 3_000, "talkingdata_clicks": 100_000}
MOST = 15_000
RAREST = 10  # rows of a class
STACKS = ["margin-ordinal", "feature-ordinal", "alone-native", "margin-native", "margin-ordinal-small",
          "margin-group-small", "margin-native-small"]  # fmt: skip
"""Mode, codes, and whether the booster's trees are small (`SMALL`)."""
SMALL = {"num_leaves": 7, "min_child_samples": 50}
BOTH_WAYS = ("margin-ordinal", "feature-ordinal")
"""Stacks for which the simple evidence is computed, too; for the others it is what nested evidence says."""
POLICIES = {
    "margin, forced": ["margin-ordinal"],
    "margin": ["wide", "margin-ordinal"],
    "margin, small": ["wide", "margin-ordinal-small"],
    "margin, native, small": ["wide", "margin-native-small"],
    "margin, group, small": ["wide", "margin-group-small"],
    "feature": ["wide", "feature-ordinal"],
    "margin or alone": ["wide", "margin-ordinal", "alone-native"],
    "margin, small, or alone": ["wide", "margin-ordinal-small", "alone-native"],
    "auto": ["wide", "margin-ordinal", "feature-ordinal", "alone-native"],
    "auto, small": ["wide", "margin-ordinal-small", "feature-ordinal", "alone-native"],
}


def table_of(name: str) -> Any:
    """A table, sampled, without the classes too rare for every fold to train on and to test (kdd99's)."""
    ready = read(name, MAX_ROWS.get(name, MOST))
    if ready.task == "regression" or np.bincount(ready.y).min() >= RAREST:
        return ready
    common = np.bincount(ready.y)[ready.y] >= RAREST
    left, y = np.unique(ready.y[common], return_inverse=True)
    X, classes = ready.X[common].reset_index(drop=True), [ready.classes[place] for place in left]
    return SimpleNamespace(X=X, y=y, task=ready.task, classes=classes)


def measures(scores: Any, y: Any, loss: Any, is_number: bool, n_classes: int) -> dict[str, float]:
    found = loss.predict(scores)
    if is_number:
        error = found[:, 0] - y
        return {"rmse": float(np.sqrt((error**2).mean())), "mae": float(np.abs(error).mean())}
    made = {"log-loss": log_loss(y, found, labels=range(n_classes))}
    return made | ({"auc": roc_auc_score(y, found[:, 1])} if n_classes == 2 else {})


def native(ready: Any, train: Any, test: Any, is_number: bool) -> dict[str, float]:
    """LightGBM at its defaults, as an adapter has it."""
    start = time.process_time()
    model = load_adapter("lightgbm").native(ready.task, random_state=0, n_jobs=1)
    model.fit(ready.X.iloc[train], ready.y[train])
    taken = time.process_time() - start
    X, y = ready.X.iloc[test], ready.y[test]
    identity = SimpleNamespace(predict=lambda values: values)
    found = model.predict(X)[:, None] if is_number else model.predict_proba(X)
    return {"seconds": taken} | measures(found, y, identity, is_number, len(ready.classes))


def simple_splits(rows: StackRows, splits: list[Any]) -> list[ValidationSplit]:
    """A split for each fold, trained on margins that are out of fold and no more."""
    seen = [taken(rows, train) for train, _ in splits]
    return [
        ValidationSplit(taken(rows, test), own, own.y, partial(replace, own)) for own, (_, test) in zip(seen, splits)
    ]


def run(name: str, fold: int, out: Path) -> None:  # noqa: PLR0915 - one table and fold, from the top
    done = set()
    if out.exists():
        before = pd.read_csv(out)
        done = set(before[(before["table"] == name) & (before["fold"] == fold)]["variant"])
    if {"wide", "native", *STACKS} <= done:
        return
    ready = table_of(name)
    is_number = ready.task == "regression"
    n_classes = 0 if is_number else len(ready.classes)
    labels = None if is_number else np.arange(n_classes)
    y = ready.y.astype(np.float64 if is_number else np.int64)
    folds = (KFold if is_number else StratifiedKFold)(5, shuffle=True, random_state=0)
    train, test = list(folds.split(ready.X, y))[fold]

    def keep(variant: str, **row: Any) -> None:
        full = {"table": name, "fold": fold, "variant": variant, "rows": len(y), "task": ready.task, "rounds": 0}
        full |= {"evidence": "", "oof": np.nan, "seconds": np.nan} | dict.fromkeys(
            ["log-loss", "auc", "rmse", "mae"], np.nan
        )
        pd.DataFrame([full | row | {"commit": commit()}]).to_csv(out, mode="a", header=not out.exists(), index=False)

    if "native" not in done:
        keep("native", rounds=100, **native(ready, train, test, is_number))
    stack = (WideBoostRegressor if is_number else WideBoostClassifier)(random_state=0, n_jobs=1)
    wide, booster = default_wide(not is_number, 0, 1), default_booster(not is_number, 0, 1, small=False)
    X, target = ready.X.iloc[train], y[train]
    start = time.perf_counter()
    fitted = clone(wide).fit(X, target)
    loss = stack._loss_of(fitted)
    criterion = stack._criterion(wide, loss)
    alone = time.perf_counter() - start
    splits = split_by_target(5, X, target, "continuous" if is_number else None, random_state=0)
    crossing = OutOfFoldMargins(Learner(stack._settled(wide, fitted), X, target, None, labels), splits)
    margins = crossing.margins()
    test_margins = margins_of(fitted, ready.X.iloc[test], labels)
    rows = StackRows(X, target, margins, None)
    if "wide" not in done:
        scored = measures(test_margins, y[test], loss, is_number, n_classes)
        out_of_fold = float(criterion(margins, target).mean())
        keep("wide", evidence="nested", oof=out_of_fold, seconds=alone, **scored)
        keep("wide", evidence="simple", oof=out_of_fold, seconds=alone, **scored)
    crossed = time.perf_counter() - start
    every = max(1, rounds_of(booster) // 40)
    for variant in STACKS:
        if variant in done:
            continue
        mode, codes, *small = variant.split("-")
        one = clone(booster).set_params(**SMALL) if small else booster
        plan = Plan(one, mode, codes, ready.task, None, 0)
        staged = dict(Layer(plan, loss, rows).path(ready.X.iloc[test], test_margins, every))
        for evidence in ["nested", "simple"] if variant in BOTH_WAYS else ["nested"]:
            start = time.perf_counter()
            validation = (
                splits_of_folds(rows, NestedCV(crossing), range(5))
                if evidence == "nested"
                else simple_splits(rows, splits)
            )
            table = select([plan], validation, loss, criterion, n_classes).table
            best = table[table["rounds"] > 0].sort_values(["loss", "rounds"]).iloc[0]
            seconds = time.perf_counter() - start + crossed
            at = max((count for count in staged if count <= best["rounds"]), default=min(staged))
            scored = measures(staged[at], y[test], loss, is_number, n_classes)
            found = {"rounds": int(best["rounds"]), "oof": float(best["loss"]), "seconds": seconds}
            keep(variant, evidence=evidence, **found, **scored)
    print(name, fold, f"{time.perf_counter() - start:.0f} s for the last", flush=True)


def run_defaults(name: str, fold: int, out: Path) -> None:
    """The stack as a user makes it, beside its parts: results/defaults.csv."""
    if out.exists() and (pd.read_csv(out)[["table", "fold"]] == [name, fold]).all(axis=1).any():
        return
    ready = table_of(name)
    is_number = ready.task == "regression"
    y = ready.y.astype(np.float64 if is_number else np.int64)
    folds = (KFold if is_number else StratifiedKFold)(5, shuffle=True, random_state=0)
    train, test = list(folds.split(ready.X, y))[fold]
    n_classes = 0 if is_number else len(ready.classes)
    wide = default_wide(not is_number, 0, 1)
    stack = (WideBoostRegressor if is_number else WideBoostClassifier)(random_state=0, n_jobs=1)
    rows = []
    for variant, model in {"wide": wide, "stack": stack}.items():
        start = time.process_time()
        model.fit(ready.X.iloc[train], y[train])
        row = {"table": name, "fold": fold, "variant": variant, "rows": len(y), "task": ready.task}
        row |= {"seconds": time.process_time() - start} | dict.fromkeys(["log-loss", "auc", "rmse", "mae"], np.nan)
        scores = model._scores(ready.X.iloc[test]) if variant == "stack" else None
        if scores is None:
            scores = margins_of(model, ready.X.iloc[test], None if is_number else np.arange(n_classes))
        loss = stack._loss_of(stack.wide_ if variant == "stack" else model)
        shares = getattr(model, "shares_", {"wide": 1.0})
        row |= measures(scores, y[test], loss, is_number, n_classes)
        rows.append(row | {"shares": "; ".join(f"{mode} {share:.1f}" for mode, share in shares.items())})
    row = {"table": name, "fold": fold, "variant": "native", "rows": len(y), "task": ready.task, "shares": ""}
    rows.append(row | native(ready, train, test, is_number))
    pd.DataFrame([one | {"commit": commit()} for one in rows]).to_csv(
        out, mode="a", header=not out.exists(), index=False
    )
    print(name, fold, rows[1]["shares"], flush=True)


def report_defaults(out: Path) -> None:
    """On the folds that the defaults were not chosen by, then on all, and on those that they were."""
    table = pd.read_csv(out)
    for what, folds in {"Folds 2, 3, 4": [2, 3, 4], "Folds 0 and 1 (chosen by)": [0, 1], "All": range(5)}.items():
        part = table[table["fold"].isin(folds)]
        if len(part):
            print(f"\n{what}\n")
            report_some(part)


def report_some(table: pd.DataFrame) -> None:
    """Means over folds, what the stack loses to the better part in percent, and paired tests over tables.

    The better part is that of the mean over these folds; "±" the standard error over folds of the difference to it.
    """
    print("| table | folds | rows | measure | wide | LightGBM | stack | to the better, % | seconds | shares |")
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    gained = []
    for name, part in table.groupby("table", sort=False):
        measure = main_measure(part)
        by_fold = part.pivot(index="fold", columns="variant", values=measure)
        means, seconds = by_fold.mean(), part.groupby("variant")["seconds"].median()
        lost = {one: 100 * (means["stack"] / means[one] - 1) for one in ("wide", "native")}
        better = max(lost, key=lambda one: lost[one])
        error = 100 * (by_fold["stack"] - by_fold[better]).sem() / means[better]
        gained.append([lost[better], *lost.values()])
        shares = part[part["variant"] == "stack"]["shares"].iloc[0]
        numbers = " | ".join(f"{means[one]:.5g}" for one in ("wide", "native", "stack"))
        times = " / ".join(f"{seconds[one]:.1f}" for one in ("wide", "native", "stack"))
        print(f"| {name} | {len(by_fold)} | {part['rows'].iloc[0]} | {measure} | {numbers} | {lost[better]:+.2f} ± "
              f"{error:.2f} | {times} | {shares} |")  # fmt: skip
    for place, what in enumerate(["the better part", "the wide model", "LightGBM"]):
        values = [row[place] for row in gained]
        chance = wilcoxon(values).pvalue if len(values) > 5 else np.nan
        spread = f"mean {np.mean(values):+.2f} %, median {np.median(values):+.2f} %, worst {np.max(values):+.2f} %"
        print(f"\nTo {what}: {spread}, Wilcoxon p {chance:.3g}")


def report_against(out: Path, before: Path) -> None:
    """The stack after and before a change, paired by fold, and its time as a multiple of its parts' together.

    Both files are of `--defaults`; seconds of a fold are divided by those of the wide model and of LightGBM in the same
    file, which were taken at the same time. "±" is the standard error over folds.
    """
    print("| table | folds | measure | better part | before | after | difference, % | ratio before | ratio after |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    new, old = pd.read_csv(out), pd.read_csv(before)
    for name, part in new.groupby("table", sort=False):
        measure = main_measure(part)
        both = [one[one["table"] == name].pivot(index="fold", columns="variant") for one in (old, part)]
        folds = both[0].index.intersection(both[1].index)
        if not len(folds):
            continue
        both = [one.loc[folds] for one in both]
        earlier, later = (one[measure] for one in both)
        moved = 100 * (later["stack"] / earlier["stack"] - 1)
        times = [one["seconds"] for one in both]
        ratios = [(time["stack"] / (time["wide"] + time["native"])).median() for time in times]
        better = min(later["wide"].mean(), later["native"].mean())
        print(f"| {name} | {len(folds)} | {measure} | {better:.5g} | {earlier['stack'].mean():.5g} | "
              f"{later['stack'].mean():.5g} | {moved.mean():+.2f} ± {moved.sem():.2f} | {ratios[0]:.1f} | "
              f"{ratios[1]:.1f} |")  # fmt: skip


def chosen(part: pd.DataFrame, allowed: list[str]) -> pd.Series:
    """The row of least loss out of fold among those allowed."""
    some = part[part["variant"].isin(allowed)]
    return some.loc[some["oof"].idxmin()]


def main_measure(part: pd.DataFrame) -> str:
    return "rmse" if part["task"].iloc[0] == "regression" else "log-loss"


def report(out: Path) -> None:
    """Each variant and policy: losses, and what they lose to the better part, in percent of it."""
    whole = pd.read_csv(out)
    simple = whole["evidence"] == "simple"
    replaced = whole["variant"].isin(["wide", *BOTH_WAYS])
    print("HeldOutGains: nested\n")
    report_of(whole[~simple])
    print("\nEvidence: simple\n")
    report_of(whole[simple | ~replaced])


def report_of(table: pd.DataFrame) -> None:
    variants = ["wide", "native", *STACKS]
    lost: dict[str, list[float]] = {}
    print("| table | folds | " + " | ".join(variants) + " | " + " | ".join(POLICIES) + " | chosen by auto |")
    print("| --- |" + " ---: |" * (1 + len(variants) + len(POLICIES)) + " --- |")
    for name, every in table.groupby("table", sort=False):
        measure = main_measure(every)
        full = [fold for fold, rows in every.groupby("fold") if set(variants) <= set(rows["variant"])]
        part = every[every["fold"].isin(full)]
        if not full:
            continue
        means = part.groupby("variant")[measure].mean()
        better = min(means["wide"], means["native"], means["alone-native"])
        cells = [f"{means[variant]:.5g}" for variant in variants]
        picks = []
        for policy, allowed in POLICIES.items():
            picked = [chosen(rows, allowed) for _, rows in part.groupby("fold")]
            value = float(np.mean([row[measure] for row in picked]))
            lost.setdefault(policy, []).append(100 * (value / better - 1))
            cells.append(f"{value:.5g}")
            if policy == "auto":
                picks = [row["variant"] for row in picked]
        print(f"| {name} | {len(full)} | " + " | ".join(cells) + f" | {', '.join(picks)} |")
    print("\n| policy | mean loss over the better part, % | worst table, % |\n| --- | ---: | ---: |")
    for policy, values in lost.items():
        print(f"| {policy} | {np.mean(values):+.2f} | {np.max(values):+.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--folds", type=int, nargs="+", default=list(range(5)), help="which of the 5")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--defaults", action="store_true", help="the stack at its defaults beside its parts")
    parser.add_argument("--report", action="store_true", help="run nothing, read --out")
    parser.add_argument("--against", type=Path, help="run nothing, compare --out with such a file of another state")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    out = args.out or HERE / "results" / ("defaults.csv" if args.defaults else "study.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    if args.against:
        report_against(out, args.against)
        return
    for fold, name in [] if args.report else product(args.folds, args.tables):
        (run_defaults if args.defaults else run)(name, fold, out)
    (report_defaults if args.defaults else report)(out)


if __name__ == "__main__":
    main()
