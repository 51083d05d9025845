"""How much must a booster gain on rows held out to be taken? And what do variances and crosses know of such rows?

Folds 0 and 1 of 5 (seed 0), tables as in study.py. For the wide model alone, a small LightGBM on top of its margins, a
LightGBM alone over native categories or over ranks, and all shares of two: the loss on rows held out (of up to 10,000
rows), the gain with its standard error, and the loss on test rows: results/rules.csv. `--report` prints what rules
make of them: how many standard errors must be gained, and whether the first fold may end the matter.

`--leak` fits the wide model to four fifths of the training rows, five times: "clones" find everything, "held" take the
variances of all training rows, and choose crosses again. Were these innocent, the fifth fifth and the test rows would
say the same of them: results/leak.csv.

    TABSYM_DATA=FOLDER python benchmarks/stacking/rules.py [--tables amazon] [--leak] [--report]
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold
from study import HERE, MAX_ROWS, MOST, TABLES, measures, native
from tables import read

from tabsym import WideBoostClassifier, WideBoostRegressor
from tabsym.encoders.folds import split_by_target
from tabsym.models.refitting import held_precisions
from tabsym.stacking import evidence, out_of_fold
from tabsym.stacking.layer import Layer, Plan, Rows, default_booster, default_wide
from tabsym.stacking.out_of_fold import Crossed, Learner, fitted_wide, margins_of

FOLDS = (0, 1)
OTHERS = ("native", "ordinal")
ROWS_JUDGED = 10_000


class Setting:
    """A table and fold, and its wide model."""

    def __init__(self, name: str, fold: int) -> None:
        ready = read(name, MAX_ROWS.get(name, MOST))
        self.ready, self.is_number = ready, ready.task == "regression"
        self.n_classes = 0 if self.is_number else len(ready.classes)
        self.labels = None if self.is_number else np.arange(self.n_classes)
        self.y = ready.y.astype(np.float64 if self.is_number else np.int64)
        folds = (KFold if self.is_number else StratifiedKFold)(5, shuffle=True, random_state=0)
        self.train, self.test = list(folds.split(ready.X, self.y))[fold]
        self.X, self.target = ready.X.iloc[self.train], self.y[self.train]
        stack = (WideBoostRegressor if self.is_number else WideBoostClassifier)(random_state=0, n_jobs=1)
        wide = default_wide(not self.is_number, 0, 1)
        self.fitted = fitted_wide(wide, self.X, self.target, None)
        self.settled, self.loss = stack._settled(wide, self.fitted), stack._loss_of(self.fitted)
        self.criterion = stack._criterion(wide, self.loss)
        kind = "continuous" if self.is_number else None
        self.splits = split_by_target(5, self.X, self.target, kind, random_state=0)

    def lost(self, scores: Any) -> float:
        found = measures(scores, self.y[self.test], self.loss, self.is_number, self.n_classes)
        return found["rmse" if self.is_number else "log-loss"]


def run_rules(name: str, fold: int) -> list[dict[str, Any]]:
    out_of_fold.ENOUGH = ROWS_JUDGED
    own = Setting(name, fold)
    crossed = Crossed(Learner(own.settled, own.X, own.target, None, own.labels), own.splits)
    rows = Rows(own.X, own.target, crossed.margins(), None)
    court = evidence._Court(out_of_fold.trials_of_folds(rows, crossed), own.loss, own.criterion)
    X = own.ready.X.iloc[own.test]
    start = margins_of(own.fitted, X, own.labels)
    boosters = {small: default_booster(not own.is_number, 0, 1, small=small) for small in (True, False)}
    plans = {"margin": Plan(boosters[True], "margin", "ordinal", own.ready.task, None, 0)}
    plans |= {codes: Plan(boosters[False], "alone", codes, own.ready.task, None, 0) for codes in OTHERS}
    stands, tests, promises = {"wide": court.alone}, {"wide": start}, {}
    for key, plan in plans.items():

        def look(scout: Any, key: str = key) -> bool:
            best = scout.best()
            promises[key] = scout.at(best).gain > 0
            for base in ("wide", "margin") if key != "margin" else ():
                promises[base, key] = court.share(stands[base], [scout.scores(best)]) > 0
            return True

        found = court.hear(plan, look)
        assert found is not None
        stands[key] = found
        tests[key] = Layer(plan, own.loss, rows, found.member.n_rounds).scores(X, start)
    lgbm = native(own.ready, own.train, own.test, own.is_number)["rmse" if own.is_number else "log-loss"]
    plain = {"table": name, "fold": fold, "lightgbm": lgbm}
    margin = stands["margin"].gains
    row = {"base": "margin", "other": "none", "share": 0.0, "promise": promises.get("margin", True)}
    row |= {"oof": margin.loss, "gain": margin.gain, "error": margin.error, "test": own.lost(tests["margin"])}
    out = [plain | row]
    for base, other in product(("wide", "margin"), OTHERS):
        for share, tally in court._shares(stands[base], stands[other].scores).items():
            mixed = own.lost((1 - share) * tests[base] + share * tests[other])
            row = {"base": base, "other": other, "share": share, "promise": promises.get((base, other), True)}
            row |= {"oof": tally.loss, "gain": tally.gain, "error": tally.error, "test": mixed}
            out.append(plain | row)
    return out


def run_leak(name: str, fold: int) -> list[dict[str, Any]]:
    own = Setting(name, fold)
    learner = Learner(own.settled, own.ready.X, own.y, None, own.labels)
    out = []
    for what, held in (("clones", None), ("held", held_precisions(own.fitted))):
        begin = time.process_time()
        out_of_fold, new = np.zeros(len(own.target)), 0.0
        for train, test in own.splits:
            model = learner.fit(own.train[train], held)
            for rows in (own.train[test], own.test):
                lost = own.criterion(learner.margins(model, rows), own.y[rows])
                if rows is own.test:
                    new += float(lost.mean()) / len(own.splits)
                else:
                    out_of_fold[test] = lost
        row = {"table": name, "fold": fold, "what": what, "oof": out_of_fold.mean(), "test": new}
        out.append(row | {"seconds": time.process_time() - begin})
    return out


def report_leak(table: pd.DataFrame) -> None:
    wide = table.pivot(index=["table", "fold"], columns="what", values=["oof", "test", "seconds"])
    print("| table | fold | out of fold, % | test rows, % | seconds |\n| --- | ---: | ---: | ---: | ---: |")
    for (name, fold), row in wide.iterrows():  # type: ignore[misc]
        moved = [100 * (row[what, "held"] / row[what, "clones"] - 1) for what in ("oof", "test")]
        print(f"| {name} | {fold} | {moved[0]:+.2f} | {moved[1]:+.2f} | "
              f"{row['seconds', 'clones']:.1f} -> {row['seconds', 'held']:.1f} |")  # fmt: skip


def picked(part: pd.DataFrame, other: str, errors: float, scouts: bool) -> float:
    """The test loss of what a rule takes of the rows of a table and fold."""
    margin = part[part["other"] == "none"].iloc[0]
    is_taken = (margin["promise"] or not scouts) and margin["gain"] > max(errors * margin["error"], 0.0)
    pair = part[(part["base"] == ("margin" if is_taken else "wide")) & (part["other"] == other)]
    best = pair.loc[pair["oof"].idxmin()]
    is_shared = (best["promise"] or not scouts) and best["gain"] > errors * best["error"]
    return float((best if is_shared else pair[pair["share"] == 0.0].iloc[0])["test"])


def report_rules(table: pd.DataFrame) -> None:
    names = list(dict.fromkeys(table["table"]))
    print("| alone over | errors | scout | mean, % | worst, % | " + " | ".join(names) + " |")
    print("| --- | ---: | --- | ---: | ---: |" + " ---: |" * len(names))
    for other, errors, scouts in product(OTHERS, (0.0, 0.5, 1.0, 1.5, 2.0), (True, False)):
        lost = []
        for name in names:
            parts = [part for _, part in table[table["table"] == name].groupby("fold")]
            taken = np.mean([picked(part, other, errors, scouts) for part in parts])
            alone = [part[(part["base"] == "wide") & (part["share"] == 0.0)]["test"].iloc[0] for part in parts]
            lost.append(100 * (taken / min(np.mean(alone), np.mean([p["lightgbm"].iloc[0] for p in parts])) - 1))
        print(f"| {other} | {errors} | {'yes' if scouts else 'no'} | {np.mean(lost):+.2f} | {np.max(lost):+.2f} | "
              + " | ".join(f"{one:+.2f}" for one in lost) + " |")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--leak", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--report", action="store_true", help="run nothing, read --out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    out = args.out or HERE / "results" / ("leak.csv" if args.leak else "rules.csv")
    for fold, name in [] if args.report else product(FOLDS, args.tables):
        if not out.exists() or not (pd.read_csv(out)[["table", "fold"]] == [name, fold]).all(axis=1).any():
            rows = (run_leak if args.leak else run_rules)(name, fold)
            pd.DataFrame(rows).to_csv(out, mode="a", header=not out.exists(), index=False)
            print(name, fold, flush=True)
    (report_leak if args.leak else report_rules)(pd.read_csv(out))


if __name__ == "__main__":
    main()
