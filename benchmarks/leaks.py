"""Which columns the comparison asks about: a generated claims table, with and without leaks, and development tables.

    python benchmarks/leaks.py [--tables adult kick ...] [--rows 163000]

Contenders constant, wide and lightgbm at their defaults, 3 folds; of larger tables 60,000 rows drawn at random. Prints
the questions, the largest fractions of the best contender's gain (in brackets, for classes, of the baseline's log
loss), and the seconds that they take. Tables with columns that are known after the target only are compared a second
time without these. Development tables need `TABSYM_DATA`.
"""

import argparse
import os
import re
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from tabsym import compare
from tabsym.compare import column_gains as columns

TARGETS = {
    "adult": "income", "amazon": "ACTION", "kick": "IsBadBuy", "usedcars": "price_usd", "titanic": "Survived",
    "covtype_small": "Cover_Type", "chicago_taxi": "tips", "compas": "two_year_recid", "rossmann": "Sales",
    "talkingdata_clicks": "is_attributed", "kdd99": "label",
}  # fmt: skip
MAX_ROWS = 60_000
AFTERWARDS = {
    "talkingdata_clicks": r"attributed_time",
    "compas": r"v?r_.*|is_recid|is_violent_recid|violent_recid|start|end|event",
    "rossmann": r"Customers",
    "chicago_taxi": r"trip_total",
}
"""Columns that are known after the target only, by table."""


def claims(n: int, seed: int = 0) -> pd.DataFrame:
    """A motor table: about 11 % of rows have a claim; `amount` and `has_claim` are known afterwards only."""
    rng = np.random.default_rng(seed)
    age, power, zone = rng.integers(18, 90, n), rng.integers(30, 200, n), rng.integers(0, 60, n)
    fuel, exposure = rng.choice(["petrol", "diesel"], n), rng.uniform(0.1, 1.0, n)
    log_rate = -1.75 - 0.015 * (age - 45) + 0.003 * (power - 80) + 0.25 * (fuel == "diesel")
    log_rate += rng.normal(0, 0.25, 60)[zone]
    number = rng.poisson(exposure * np.exp(log_rate))
    return pd.DataFrame({
        "age": age, "power": power, "zone": [f"z{one}" for one in zone], "fuel": fuel, "exposure": exposure,
        "number": number, "amount": np.where(number > 0, rng.lognormal(7, 1.5, n) * number, 0.0),
        "has_claim": np.where(number > 0, "yes", "no"),
    })  # fmt: skip


def study(name: str, table: pd.DataFrame, target: str, **options: object) -> None:
    """Compare on one table and print what is asked and measured."""
    taken = []
    measure = columns.column_gains

    def timed(*arguments: object) -> list[dict[str, object]]:
        begin = time.perf_counter()
        try:
            return measure(*arguments)  # type: ignore[arg-type]
        finally:
            taken.append(time.perf_counter() - begin)

    from tabsym.compare import run

    run.column_gains = timed  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        result = compare(table, target, contenders=["constant", "wide", "lightgbm"], folds=3, quiet=True,
                         out=Path(folder) / "out", **options)  # type: ignore[arg-type] # fmt: skip
        gains = result._run_config and _gains_of(result)
    run.column_gains = measure
    questions = sum("is it known before" in one for one in result.summary)
    best = ", ".join(f"{one['column']} {one['fraction']:.2f}{_known(one)}" for one in gains[: max(4, questions + 1)])
    print(f"| {name} | {len(table):,} x {table.shape[1] - 1} | {questions} | {best} | {sum(taken):.1f} |", flush=True)


def _known(one: dict[str, object]) -> str:
    return "" if one["known"] is None else f" ({one['known']:.2f})"


def _gains_of(result: object) -> list[dict[str, object]]:
    import json

    body = json.loads((result.folder / "results.json").read_text())  # type: ignore[attr-defined]
    return list(body["settings"]["column_gains"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TARGETS))
    parser.add_argument("--rows", type=int, default=163_000)
    asked = parser.parse_args()
    print("| table | rows x columns | questions | largest fractions | s |\n|---|---|---|---|---|")
    if asked.rows:
        table = claims(asked.rows)
        plain = table.drop(columns=["amount", "has_claim"])
        study("claims, no leak", plain, "number", task="count", exposure="exposure")
        study("claims, leaks", table, "number", task="count", exposure="exposure")
    for name in asked.tables:
        table = pd.read_parquet(Path(os.environ["TABSYM_DATA"]) / f"{name}.parquet")
        if len(table) > MAX_ROWS:
            table = table.sample(MAX_ROWS, random_state=0).sort_index()
        table = table.reset_index(drop=True)
        study(name, table, TARGETS[name])
        late = [one for one in table if re.fullmatch(AFTERWARDS.get(name, ""), one)]
        if late:
            study(f"{name}, without {len(late)} known afterwards", table.drop(columns=late), TARGETS[name])


if __name__ == "__main__":
    main()
