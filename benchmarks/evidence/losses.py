"""loss="auto" on fifteen targets of public tables and on generated ones: how far its choice is from the best loss.

For every fold each of the four losses is fitted and scored; "chosen" is the loss that `loss="auto"` takes, "with
crosses" the one where every loss looks for its own crosses before it is compared, "squared" no choice at all; the other
ways have a constant of `tabsym.models.loss_selection` changed (`WAYS`). Shown is the error above that of the best loss
of each fold, in per cent (mean over folds), what was chosen (first letters, fold by fold), and the processor time of
choosing; below, means and medians over targets and measures.

    TABSYM_DATA=FOLDER python benchmarks/evidence/losses.py [--targets retail fares] [--seeds 0 1]  # about 10 minutes
    TABSYM_DATA=FOLDER python benchmarks/evidence/losses.py --report
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from sklearn.metrics import mean_absolute_error, root_mean_squared_error  # noqa: E402
from sklearn.model_selection import KFold  # noqa: E402
from tables import commit  # noqa: E402

from tabsym import WideRegressor  # noqa: E402
from tabsym.compare.table.prepare import Prepared, prepare  # noqa: E402
from tabsym.datasets import make_retail  # noqa: E402
from tabsym.models import loss_selection as linking  # noqa: E402
from tabsym.models import wide  # noqa: E402
from tabsym.models.fitting import fit_model  # noqa: E402

LOSSES = ("squared_error", "poisson", "gamma", "tweedie")
SCORERS = {"rmse": "neg_root_mean_squared_error", "mae": "neg_mean_absolute_error"}

# table, target, what is dropped (known only after the target, or an id), most rows
TARGETS: dict[str, tuple[str, str, list[str], int | None]] = {
    "retail": ("retail", "sales", [], None),
    "prices": ("usedcars", "price_usd", [], None),
    "tips": ("chicago_taxi", "tips", ["trip_id", "trip_total"], None),
    "sales": ("rossmann", "Sales", ["Customers"], 60_000),
    "customers": ("rossmann", "Customers", ["Sales"], 60_000),
    "fares": ("chicago_taxi", "fare", ["trip_id", "trip_total", "tips"], None),
    "seconds": (
        "chicago_taxi",
        "trip_seconds",
        ["trip_id", "trip_total", "tips", "fare", "extras", "trip_end_timestamp"],
        None,
    ),
    "odometers": ("usedcars", "odometer_value", ["price_usd"], None),
    "photos": ("usedcars", "number_of_photos", [], None),
    "ups": ("usedcars", "up_counter", [], None),
    "warranties": ("kick", "WarrantyCost", ["RefId"], 40_000),
    "costs": ("kick", "VehBCost", ["RefId"], 40_000),
    "hours": ("adult", "hours-per-week", ["split", "fnlwgt"], None),
    "tickets": ("titanic", "Fare", ["PassengerId", "Ticket"], None),
    "priors": ("compas", "priors_count", ["id", "priors_count.1", "c_case_number", "r_case_number"], None),
}
GENERATED = [f"{kind} {n}" for n in (300, 1500, 6000) for kind in ("sum", "sum x", "product", "product x", "count")]
"""Sums and products of what symbols do, with ("x") and without what pairs do; counts."""


WAYS: dict[str, dict[str, float]] = {
    "chosen": {},
    "all rows": {"MAX_ROWS": 10**9},
    "12,500 rows": {"MAX_ROWS": 12_500},
    "6,000 rows": {"MAX_ROWS": 6_000},
    "one split": {"SPLITS": 1},
    "a tenth of the tolerance": {"ROUGH": 1e-4, "ROUGH_OF_SMALL": 1e-5},
    "one tolerance": {"ROUGH_OF_SMALL": 1e-3},
    "both others": {"TELLING": 10**9},
    "one other": {"TELLING": 0},
}
SHOWN = [*WAYS, "with crosses", "squared"]


class _Chosen(Exception):
    """The loss was chosen: there is no need to fit."""


def read(name: str) -> tuple[Prepared, np.ndarray]:
    if name in GENERATED:
        ready = prepare(generate(name), "y", task="regression")
    else:
        table, target, drop, most = TARGETS[name]
        file = Path(os.environ["TABSYM_DATA"]) / f"{table}.parquet"
        found = make_retail() if table == "retail" else pd.read_parquet(file)
        if most is not None and len(found) > most:
            found = found.sample(most, random_state=0)
        found = found[found[target].notna()].reset_index(drop=True).astype({target: float})
        ready = prepare(found, target, drop=[column for column in drop if column in found], task="regression")
    return ready, np.asarray(ready.y, dtype=float)


def generate(name: str) -> pd.DataFrame:
    kind, _, size = name.rpartition(" ")
    n, rng = int(size), np.random.RandomState(len(name))
    sizes = (5, 12, 30, 8)
    codes, z = [rng.randint(size, size=n) for size in sizes], rng.normal(size=n)
    effect = 0.3 * z + sum(0.4 * rng.normal(size=size)[own] for size, own in zip(sizes, codes, strict=True))
    if kind.endswith(" x"):
        effect = effect + 0.4 * rng.normal(size=60)[codes[0] * 12 + codes[1]]
    if kind.startswith("sum"):
        y = np.maximum(10 + 3 * effect + 2 * rng.normal(size=n), 0.01)
    elif kind.startswith("product"):
        y = 10 * np.exp(0.7 * effect + 0.5 * rng.normal(size=n))
    else:
        y = rng.poisson(np.exp(1 + 0.7 * effect)).astype(float)
    return pd.DataFrame({f"c{place}": own.astype(str) for place, own in enumerate(codes)} | {"z": z, "y": y})


def choose(X: pd.DataFrame, y: np.ndarray, scoring: str) -> tuple[str, float]:
    """The loss that `loss="auto"` takes, and the processor time that it took."""
    found: list[tuple[str, float]] = []

    def seen(*arguments):
        start = time.process_time()
        chosen = linking.choose_loss(*arguments)
        found.append((chosen[0].name, time.process_time() - start))
        raise _Chosen

    wide.choose_loss = seen
    try:
        WideRegressor(random_state=0, loss="auto", scoring=SCORERS[scoring]).fit(X, y)
    except _Chosen:
        pass
    finally:
        wide.choose_loss = linking.choose_loss
    return found[0]


def chosen_ways(X: pd.DataFrame, y: np.ndarray, scoring: str) -> dict[str, tuple[str, float]]:
    found = {}
    for way, constants in WAYS.items():
        with mock.patch.dict(vars(linking), constants):
            found[way] = choose(X, y, scoring)
    rough = linking._rough

    def with_crosses(config, n_rows):
        return replace(rough(config, n_rows), interactions=config.interactions)

    def whole(config, training, order, known, *others):
        return [_Whole(config, training, split, *others) for split in linking._splits(order)]

    with mock.patch.object(linking, "_rough", with_crosses), mock.patch.object(linking, "_trials", whole):
        found["with crosses"] = choose(X, y, scoring)
    return found


class _Whole(linking._LossTrial):
    """A model of its own for every loss, its crosses included."""

    def __init__(self, config, training, split, scoring, rng):
        self.config, self.scoring, self.rng, self.predicted = config, scoring, rng, {}
        self.seen, self.held_out = (training.take(rows) for rows in split)

    def _margins(self, loss, rng):
        model = fit_model(self.config, self.seen, loss, 1, rng).model
        return model.margins(self.held_out.table, self.config.n_jobs)


def run(name: str, seed: int, out: Path) -> None:
    ready, y = read(name)
    for fold, (train, test) in enumerate(KFold(5, shuffle=True, random_state=seed).split(ready.X)):
        X, later = ready.X.iloc[train], ready.X.iloc[test]
        errors: dict[str, dict[str, float]] = {scoring: {} for scoring in SCORERS}
        for loss in LOSSES:
            try:
                predicted = WideRegressor(random_state=0, loss=loss).fit(X, y[train]).predict(later)
            except ValueError:  # zeros, which gamma does not take
                continue
            errors["rmse"][loss] = root_mean_squared_error(y[test], predicted)
            errors["mae"][loss] = mean_absolute_error(y[test], predicted)
        rows = []
        for scoring, own in errors.items():
            ways = chosen_ways(X, y[train], scoring) | {"squared": ("squared_error", np.nan)}
            for way, (loss, seconds) in ways.items():
                row = {"target": name, "seed": seed, "fold": fold, "rows": len(train), "measure": scoring}
                row |= {"way": way, "loss": loss, "error": own[loss], "best": min(own.values()), "cpu": seconds}
                rows.append(row | {"commit": commit()})
        pd.DataFrame(rows).to_csv(out, mode="a", header=not out.exists(), index=False)
    print(name, seed, flush=True)


def report(out: Path) -> None:
    table = pd.read_csv(out)
    table["above"] = 100 * (table["error"] / table["best"] - 1)
    shown = [way for way in SHOWN if way in set(table["way"])]
    timed = shown[:-1]
    print("| target | measure | " + " | ".join(shown) + " | cpu of choosing, ms: " + " / ".join(timed) + " |")
    print("| --- | --- |" + " --- |" * (len(shown) + 1))
    for (name, measure), part in table.groupby(["target", "measure"], sort=False):
        cells = []
        for way in shown:
            own = part[part["way"] == way]
            letters = "" if way == "squared" else " " + own["loss"].str[0].str.cat()
            cells.append(f"{own['above'].mean():.2f}{letters}")
        times = (f"{1000 * part.loc[part['way'] == way, 'cpu'].mean():.0f}" for way in timed)
        print(f"| {name} | {measure} | " + " | ".join(cells) + " | " + " / ".join(times) + " |")
    kinds = table["target"].where(~table["target"].isin(TARGETS), "public").str.split().str[-1]
    parts = {kind if kind == "public" else f"generated, {kind} rows": table[kinds == kind] for kind in kinds.unique()}
    parts |= {"public without fares": table[(kinds == "public") & (table["target"] != "fares")]}
    print("\n| | " + " | ".join(shown) + " |\n| --- |" + " --- |" * len(shown))
    for what, part in parts.items():
        if part.empty:
            continue
        by = part.pivot_table(index=["target", "measure"], columns="way", values="above")
        print(
            f"| {what}: mean, median | " + " | ".join(f"{by[w].mean():.2f}, {by[w].median():.2f}" for w in shown) + " |"
        )
    cpu = table.groupby("way")["cpu"].mean() * 1000
    print("| all: ms | " + " | ".join(f"{cpu[w]:.0f}" for w in timed) + " | |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*TARGETS, *GENERATED]
    parser.add_argument("--targets", nargs="+", default=known, choices=known)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1], help="of the folds")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "losses.csv")
    parser.add_argument("--report", action="store_true", help="run nothing, read --out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if not args.report:
        done = pd.read_csv(args.out)[["target", "seed"]].drop_duplicates() if args.out.exists() else None
        for seed in args.seeds:
            for name in args.targets:
                if done is None or not ((done["target"] == name) & (done["seed"] == seed)).any():
                    run(name, seed, args.out)
    report(args.out)


if __name__ == "__main__":
    main()
