"""What each part of the wide models at their best is worth, table by table.

"before": crosses chosen by evidence, trained online (the contender `wide-crosses` of the comparison);
"shrunk": the same blocks solved for, one variance each by evidence; "smooth": numbers as smooth intervals too; "rare":
count effects too; "strict" (two classes): as "rare", but with crosses chosen as without evidence; "pairs" (two
classes): as "rare", but without triples; "triples" (two classes): as "rare", but with all that say something; "link":
for amounts, the loss chosen by rows held out too, by RMSE ("link") and by MAE ("link-mae"). "rare" (for amounts "link")
is the estimator at its defaults. 5 folds (kdd99: 2), seed 0, everything else at its defaults; `seconds` from the
DataFrame to the fitted model, after a warm-up. Rows go to results/study.csv as they arrive; what stands there is not
run again.

    TABSYM_DATA=FOLDER python benchmarks/evidence/study.py [--tables amazon adult] [--report]
    TABSYM_DATA=FOLDER python benchmarks/evidence/study.py --tables amazon --variants rare --seed 1  # other folds
    TABSYM_DATA=FOLDER python benchmarks/evidence/study.py --tables amazon --variants before rare --state 1  # of models

The times of another version: --against a file that its own copy of this script wrote. (Versions before `WideSGD*` have
other options, and do not run this copy; "before" of one of them is in results/study-today.csv.)
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from sklearn.model_selection import KFold, StratifiedKFold  # noqa: E402
from tables import TABLES, commit, measure, read  # noqa: E402

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor  # noqa: E402
from tabsym.interactions import AutoInteractions  # noqa: E402
from tabsym.interactions.search import FOR_BINARY  # noqa: E402

MAX_ROWS = {"rossmann": 60_000}
"""A random sample of these."""

MEASURES = {"auc": False, "log-loss": True, "rmse": True, "mae": True}
"""Whether less is better."""


COLUMNS = ("shrunk", "smooth", "strict", "pairs", "rare", "triples", "link", "link-mae")


def variants(n_classes: int) -> dict[str, Callable[..., Any]]:
    """What makes a model, given `random_state`, by the variant's name; `n_classes` is 0 for amounts."""
    is_number = n_classes == 0
    coarse = "quantile" if is_number else "modl"
    online = partial(WideSGDRegressor if is_number else WideSGDClassifier, interactions="auto", numeric=coarse)
    rare = partial(WideRegressor, loss="squared_error") if is_number else WideClassifier
    shrunk = partial(rare, numeric=coarse, count_effect=False)
    smooth = partial(rare, count_effect=False)
    made: dict[str, Callable[..., Any]] = {"before": online, "shrunk": shrunk, "smooth": smooth, "rare": rare}
    if n_classes == 2:
        made["strict"] = partial(rare, interactions=AutoInteractions())
        made["pairs"] = partial(rare, interactions=replace(FOR_BINARY, max_order=2))
        made["triples"] = partial(rare, interactions=replace(FOR_BINARY, triple_share=0.0))
    if is_number:
        made |= {"link": WideRegressor, "link-mae": partial(WideRegressor, scoring="neg_mean_absolute_error")}
    return made


def run(name: str, wanted: list[str] | None, seed: int, state: int, out: Path) -> None:
    ready = read(name, MAX_ROWS.get(name))
    is_number = ready.task == "regression"
    n_folds = 2 if name == "kdd99" else 5
    folds = (KFold if is_number else StratifiedKFold)(n_folds, shuffle=True, random_state=seed)
    done = set()
    if out.exists():
        before = pd.read_csv(out)
        done = set(zip(before["table"], before["variant"], before["fold"], strict=True))
    for variant, make in variants(len(ready.classes)).items():
        todo = [fold for fold in range(n_folds) if (name, variant, fold) not in done]
        if not todo or (wanted and variant not in wanted):
            continue
        some = np.random.RandomState(0).permutation(len(ready.y))[:2000]
        make(random_state=state).fit(ready.X.iloc[some], ready.y[some])
        for fold, (train, test) in enumerate(folds.split(ready.X, ready.y)):
            if fold not in todo:
                continue
            start, cpu = time.perf_counter(), time.thread_time()
            model = make(random_state=state).fit(ready.X.iloc[train], ready.y[train])
            times = {"seconds": time.perf_counter() - start, "cpu": time.thread_time() - cpu}
            row = {"table": name, "variant": variant, "fold": fold, "rows": len(ready.y), "commit": commit()} | times
            row |= {"loss": model.model_.loss.name, "sweeps": model.n_iter_} | dict.fromkeys(MEASURES, np.nan)
            row |= measure(model, ready.X.iloc[test], ready.y[test], len(ready.classes))
            pd.DataFrame([row]).to_csv(out, mode="a", header=not out.exists(), index=False)
        print(name, variant, flush=True)


def report(out: Path, against: Path) -> None:
    """Means over folds, differences to "before" with their standard error over folds, and ratios of times.

    The times are those of "before" in the file `against`.
    """
    table, other = pd.read_csv(out), pd.read_csv(against)
    if not (table["variant"] == "before").any():
        print(f'{out} has no rows of "before", with which the others would be compared.')
        return
    print("| table | measure | before | " + " | ".join(COLUMNS) + " |")
    print("| --- | --- | ---: |" + " ---: |" * len(COLUMNS))
    for name, part in table.groupby("table", sort=False):
        for what, less_is_better in MEASURES.items():
            by = part.pivot(index="fold", columns="variant", values=what)
            if by.isna().all(axis=None):
                continue
            cells = [f"{by['before'].mean():.5g}"]
            for variant in COLUMNS:
                if variant not in by or by[variant].isna().all():
                    cells.append("")
                    continue
                both = (by[variant] - by["before"]).dropna()
                error = both.std(ddof=1) / np.sqrt(len(both))
                loss = both.mean() if less_is_better else -both.mean()
                mark = "**" if loss < -2 * error else "_" if loss > 2 * error else ""
                cells.append(f"{mark}{by[variant].mean():.5g}{mark} ({both.mean():+.2g} ± {error:.1g})")
            print(f"| {name} | {what} | " + " | ".join(cells) + " |")
        times = part.pivot(index="fold", columns="variant", values="cpu")
        base = other[(other["table"] == name) & (other["variant"] == "before")].set_index("fold")["cpu"]
        cells = [f"{base.median():.2f} s"]
        for variant in COLUMNS:
            known = variant in times
            cells.append(f"{(times[variant] / base).median():.1f} times" if known else "")
        print(f"| {name} | time | " + " | ".join(cells) + " |")


def _of_run(seed: int, state: int) -> str:
    return (f"-seed{seed}" if seed else "") + (f"-state{state}" if state else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--variants", nargs="+", help="the table at the end needs before")
    parser.add_argument("--seed", type=int, default=0, help="of the folds; others than 0 go to a file of their own")
    parser.add_argument("--state", type=int, default=0, help="of the models; others than 0 go to a file of their own")
    parser.add_argument("--out", type=Path, help="default: results/study.csv, study-seedN.csv or study-stateN.csv")
    parser.add_argument("--report", action="store_true", help="run nothing, read --out")
    parser.add_argument("--against", type=Path, help='times are multiples of those of "before" here; default: --out')
    args = parser.parse_args()
    args.out = args.out or HERE / "results" / f"study{_of_run(args.seed, args.state)}.csv"
    warnings.simplefilter("ignore")
    if not args.report:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        for name in args.tables:
            run(name, args.variants, args.seed, args.state, args.out)
    report(args.out, args.against or args.out)


if __name__ == "__main__":
    main()
