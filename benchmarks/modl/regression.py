"""Is our grid of every column against a numeric target as cheap as Khiops' own, by Khiops' criterion?

    TABSYM_DATA=FOLDER python benchmarks/modl/regression.py [--tables adult ...] [--rows N]

For each column: the cost of our grid of column and target, and that of Khiops', both by the definition written out in
`tests/oracles/modl.py` (n = all columns), Levels (Khiops' as it reports it, too), parts of column x target, seconds
(ours of the column alone; Khiops' of the table, shared among its columns). Without Khiops its columns stay empty.
Writes results/regression.csv and results/regression.md. Khiops takes minutes where target and column have many values.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from khiops_peer import OnePart, Prepared, prepare
from measure import timed
from tables import is_numeric

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.oracles import modl as naive_modl

RESULTS = Path(__file__).parent / "results"
SAME = 1e-6  # of the cost
TARGETS = {"adult": "hours-per-week", "usedcars": "price_usd", "rossmann": "Sales", "chicago_taxi": "tips"}
LEFT_OUT = {"adult": ["split"], "chicago_taxi": ["trip_id"]}
MAX_ROWS = {"usedcars": 5000, "rossmann": 5000, "chicago_taxi": 5000}
GENERATED = ["steps", "waves", "mixtures", "determined"]


def load(name: str, rows: int | None) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and target; dates as numbers, booleans as symbols."""
    if name in GENERATED:
        return generated(name, rows or 2000)
    from tabsym import datasets

    X, y = datasets.load(name)
    frame = X.assign(**{"": y}) if y.name is None else X.assign(**{str(y.name): y})
    frame = frame.dropna(subset=[TARGETS[name]])
    most = rows or MAX_ROWS.get(name)
    if most and most < len(frame):
        frame = frame.sample(most, random_state=0).sort_index()
    y = frame.pop(TARGETS[name]).to_numpy(dtype=float)
    frame = frame.drop(columns=LEFT_OUT.get(name, []), errors="ignore").reset_index(drop=True)
    return frame.apply(_plain), y


def _plain(column: pd.Series) -> pd.Series:
    if pd.api.types.is_bool_dtype(column):
        return column.astype(object).map({True: "yes", False: "no"})
    if len(column.dropna()) and hasattr(column.dropna().iloc[0], "isoformat"):
        times = pd.to_datetime(column)
        return (times - pd.Timestamp(2000, 1, 1)) / pd.Timedelta(days=1)
    return column


def generated(name: str, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A target made from a hidden number, and columns that show it more or less: numbers, ties, symbols."""
    rng = np.random.default_rng(0)
    if name == "determined":
        return nearly_determined(rows, rng)
    hidden = rng.random(rows)
    if name == "steps":
        y = np.floor(6 * hidden) ** 1.5 + rng.normal(size=rows)
    elif name == "waves":
        y = np.sin(6 * np.pi * hidden) + 0.3 * rng.normal(size=rows)
    else:
        y = np.where(rng.random(rows) < hidden, 4.0, 0.0) + rng.normal(size=rows) * np.where(hidden < 0.5, 0.5, 1.5)
    X = {}
    for noise in (0, 0.05, 0.2, 1):
        seen = hidden + noise * rng.normal(size=rows)
        X[f"exact, noise {noise}"] = seen
        X[f"50 values, noise {noise}"] = np.floor(50 * seen)
        X[f"symbols, noise {noise}"] = [f"s{hash_ % 89}" for hash_ in (np.floor(40 * seen).astype(int) * 37)]
    return pd.DataFrame(X), np.round(y, 3)


def nearly_determined(rows: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns of which each determines the target, or nearly: the optimum has as many intervals as the rows allow."""
    hidden = rng.normal(size=rows)
    y = np.sin(7 * hidden)
    X = {
        "waves": hidden,
        "line": 3 * y,
        "rounded": np.round(1.19 * np.exp(3 * y), 2),
        "two branches": np.sqrt(1.01 + y) * rng.choice([-1, 1], rows),
        "noise .003": y + 0.003 * rng.normal(size=rows),
        "noise .01": y + 0.01 * rng.normal(size=rows),
    }
    return pd.DataFrame(X), y


def ours(column: pd.Series, y: np.ndarray, n_candidates: int) -> tuple[Any, np.ndarray, float]:
    """The fitted encoder of one column, the part of each row, and seconds of fit."""
    from tabsym import MODLEncoder

    X = column.to_frame("x")
    options = {"target_type": "continuous", "n_candidates": n_candidates, "cols": ["x"]}
    encoder, seconds, _ = timed(lambda: MODLEncoder(**options).fit(X, y))
    return encoder, encoder.transform(X)["x"].cat.codes.to_numpy(), seconds


def cost_of(column: pd.Series, parts: np.ndarray, y: np.ndarray, bounds: np.ndarray, n_candidates: int) -> float:
    """What a grid costs by its definition: `parts` of each row, right-closed `bounds` of the target."""
    values, _ = pd.factorize(column, sort=is_numeric(column))
    values = values + int((values < 0).any())  # missing below all
    sizes = np.bincount(values)
    label = np.zeros(len(sizes), dtype=np.int64)
    label[values] = parts
    if (label[values] != parts).any():
        return float("nan")
    label = np.unique(label, return_inverse=True)[1]
    grid = np.zeros((label.max() + 1, len(bounds) + 1), dtype=np.int64)
    np.add.at(grid, (label[values], np.searchsorted(bounds, y, side="left")), 1)
    chosen = label.tolist()
    if is_numeric(column):
        chosen = [*(np.flatnonzero(np.diff(label)) + 1).tolist(), len(sizes)]
        if len(chosen) != label.max() + 1:
            return float("nan")
    return naive_modl.grid_cost_of_counts(sizes, grid, chosen, not is_numeric(column), n_candidates)


def compare(name: str, rows: int | None) -> list[dict[str, Any]]:
    """A record per column."""
    X, y = load(name, rows)
    n = X.shape[1]
    null = float(np.log(2) + naive_modl.ln_fact(len(y)))
    theirs = _khiops(X, y)
    records = []
    for column in X.columns:
        encoder, codes, seconds = ours(X[column], y, n)
        part = encoder.partitions_["x"]
        bounds = np.asarray(part.target.bounds, dtype=float)
        cost = encoder.costs_["x"]
        by_definition = cost_of(X[column], codes, y, bounds, n)
        record = {
            "table": name,
            "rows": len(y),
            "column": column,
            "kind": "numeric" if is_numeric(X[column]) else "symbols",
            "values": X[column].nunique(dropna=False),
            "cost": round(cost, 4),
            "off": round(cost - by_definition, 4),
            "level": round(1 - cost / null, 6),
            "parts": f"{part.target.counts.shape[0]} x {len(bounds) + 1}",
            "seconds": round(seconds, 3),
        }
        if theirs is not None:
            record |= _their_side(theirs, X[column], column, y, n, cost)
        records.append(record)
    total = sum(record["seconds"] for record in records)
    print(f"{name}: {len(y):,} rows, {n} columns; ours {total:.2f} s", end="")
    print("" if theirs is None else f", Khiops {theirs.wall_s:.2f} s wall, {theirs.cpu_s:.2f} s CPU", flush=True)
    return records


def _khiops(X: pd.DataFrame, y: np.ndarray) -> Prepared | None:
    try:
        return prepare(X, y, numeric_target=True)
    except ImportError:
        print("Khiops is not installed (pip install khiops): its columns stay empty")
        return None


def _their_side(
    theirs: Prepared, column: pd.Series, name: str, y: np.ndarray, n_candidates: int, cost: float
) -> dict[str, Any]:
    part, bounds = theirs.parts[name], theirs.target_bounds[name]
    null = float(np.log(2) + naive_modl.ln_fact(len(y)))
    khiops = null
    if not isinstance(part, OnePart):
        khiops = cost_of(column, part.encode(column), y, bounds, n_candidates)
    return {
        "khiops_cost": round(khiops, 4),
        "khiops_reported": round(theirs.costs[name], 4),
        "relative": (cost - khiops) / khiops,
        "khiops_level": round(1 - khiops / null, 6),
        "khiops_reported_level": theirs.levels[name],
        "khiops_parts": f"{part.size} x {len(bounds) + 1}",
        "khiops_seconds": round(theirs.wall_s / len(theirs.levels), 3),
    }


def show(records: list[dict[str, Any]]) -> str:
    """As Markdown: a line of counts for each table, then every column."""
    frame = pd.DataFrame(records)
    lines = []
    if "relative" in frame:
        lines += ["| table | rows | columns | cheaper | same | dearer | worst | nats above | ours s | Khiops s |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
        for name, own in [*frame.groupby("table", sort=False), ("all", frame)]:
            gap = own["relative"]
            counts = [(gap < -SAME).sum(), (gap.abs() <= SAME).sum(), (gap > SAME).sum()]
            nats = (own["cost"] - own["khiops_cost"]).clip(lower=0).sum()
            rows = f"{own['rows'].iloc[0]:,}" if name != "all" else ""
            cells = [name, rows, len(own), *counts, f"{gap.max():.1e}", f"{nats:,.1f}"]
            cells += [f"{own['seconds'].sum():.1f}", f"{own['khiops_seconds'].sum():.1f}"]
            lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
        lines.append("")
    wanted = "table column cost khiops_cost relative level khiops_level parts khiops_parts seconds khiops_seconds"
    fields = [one for one in wanted.split() if one in frame]
    lines += ["| " + " | ".join(fields) + " |", "|" + " --- |" * len(fields)]
    for record in frame[fields].to_dict("records"):
        cells = [
            f"{v:.1e}" if k == "relative" else f"{v:,.6g}" if isinstance(v, float) else v for k, v in record.items()
        ]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=[*TARGETS, *GENERATED])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--out", type=Path, default=RESULTS / "regression.csv")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ours(pd.Series(np.arange(300.0)), np.arange(300.0), 1)  # compiles
    ours(pd.Series([f"s{i % 9}" for i in range(300)]), np.arange(300.0) % 9, 1)
    records: list[dict[str, Any]] = []
    for name in args.tables:
        records += compare(name, args.rows)
        args.out.parent.mkdir(exist_ok=True)
        with args.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
        args.out.with_suffix(".md").write_text(show(records))
    print(show(records))


if __name__ == "__main__":
    main()
