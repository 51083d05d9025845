"""Fit times of the contender `wide` by `tabsym compare`, of this version and of an earlier one, in turns.

For every table both versions run `tabsym compare --contenders wide` so many times, one after the other: 5 folds (kdd99:
2), defaults, all threads. A run's time is the median of its folds' `fit_seconds`. Shown are the medians over runs, and
the ratio of each pair of runs. Rows go to results/compared.csv as they arrive; what stands there is not run again.

    git worktree add ../then d12d5fc
    TABSYM_DATA=FOLDER python benchmarks/evidence/compared.py --then ../then [--tables retail] [--runs 3]  # 15 minutes
    python benchmarks/evidence/compared.py --report
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
NOW = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

from tables import TABLES, commit  # noqa: E402

MAX_ROWS = {"rossmann": 60_000}
"""A random sample of these, as in study.py."""

RUN = "import sys; from tabsym.cli import main; sys.exit(main(sys.argv[1:]))"


def arguments(name: str, folder: Path) -> list[str]:
    """What `tabsym compare` is asked for one table, which is the embedded one for retail."""
    asked = ["compare", "--contenders", "wide", "--folds", "2" if name == "kdd99" else "5", "--quiet"]
    if name == "retail":
        return asked
    target, drop = TABLES[name]
    table = pd.read_parquet(Path(os.environ["TABSYM_DATA"]) / f"{name}.parquet")
    if name in MAX_ROWS:
        table = table.sample(MAX_ROWS[name], random_state=0).reset_index(drop=True)
    file = folder / f"{name}.parquet"
    table.to_parquet(file)
    drop = [column for column in drop if column in table]
    return [*asked, str(file), "--target", target, *(["--drop", ",".join(drop)] if drop else [])]


def fit_seconds(asked: list[str], checkout: Path, out: Path) -> float:
    """The median over folds, by the version in a checkout."""
    subprocess.run([sys.executable, "-c", RUN, *asked, "--out", str(out)], cwd=checkout, check=True)
    folds = json.loads((out / "results.json").read_text())["contenders"]["wide"]["folds"]
    return float(np.median([fold["fit_seconds"] for fold in folds.values()]))


def run(name: str, n_runs: int, then: Path, out: Path) -> None:
    done = pd.read_csv(out) if out.exists() else pd.DataFrame({"table": [], "run": []})
    for number in range(n_runs):
        if ((done["table"] == name) & (done["run"] == number)).any():
            continue
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            asked = arguments(name, folder)
            row = {"table": name, "run": number, "then": fit_seconds(asked, then, folder / "then")}
            row |= {"now": fit_seconds(asked, NOW, folder / "now"), "commit": commit()}
        pd.DataFrame([row]).to_csv(out, mode="a", header=not out.exists(), index=False)
    print(name, flush=True)


def report(out: Path) -> None:
    print("| table | then | now | ratio | of each pair of runs |\n| --- | ---: | ---: | ---: | --- |")
    for name, part in pd.read_csv(out).groupby("table", sort=False):
        then, now = part["then"].median(), part["now"].median()
        pairs = ", ".join(f"{ratio:.2f}" for ratio in part["now"] / part["then"])
        print(f"| {name} | {then:.4f} s | {now:.4f} s | {now / then:.2f} | {pairs} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--then", type=Path, help="a checkout of the earlier version")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "compared.csv")
    parser.add_argument("--report", action="store_true", help="run nothing, read --out")
    args = parser.parse_args()
    if not args.report:
        if args.then is None:
            parser.error("--then names a checkout of the earlier version")
        for name in args.tables:
            run(name, args.runs, args.then.resolve(), args.out)
    report(args.out)


if __name__ == "__main__":
    main()
