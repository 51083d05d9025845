"""Is our partition of every column as cheap as Khiops' own, by Khiops' criterion?

    python benchmarks/modl/against_khiops.py [--tables kick adult ...] [--rows 100000]

For each column of the tables: the cost of our partition and of Khiops', both computed by the same function
(`tabsym.modl.interval_cost`, `grouping_cost`, n = all columns), the difference, and whether ours is certified.
Prints a line per table, and the columns where ours costs more.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from costs import partition_cost
from khiops_peer import prepare
from measure import timed
from tables import MAX_ROWS, QUALITY, load, subset

RESULTS = Path(__file__).parent / "results" / "against_khiops.csv"


def compare_table(name: str, rows: int | None) -> list[dict[str, Any]]:
    """A record per column."""
    from tabsym import MODLEncoder

    X, y, classes = load(name)
    kept = subset(y, rows or MAX_ROWS.get(name))
    X, y = X.iloc[kept].reset_index(drop=True), y[kept]
    MODLEncoder(cols=list(X.columns)).fit(X.head(500), y[:500])
    encoder, ours_s, _ = timed(lambda: MODLEncoder(cols=list(X.columns)).fit(X, y))
    codes = encoder.transform(X)
    theirs = prepare(X, y)
    print(f"{name}: {len(y):,} rows, {X.shape[1]} columns; ours {ours_s:.2f} s, Khiops {theirs.wall_s:.2f} s wall")
    records = []
    for column in X.columns:
        args = (X[column], y, len(classes), "khiops", X.shape[1])
        ours = partition_cost(args[0], codes[column].cat.codes.to_numpy(), *args[1:])
        khiops = partition_cost(args[0], theirs.parts[column].encode(X[column]), *args[1:])
        one = encoder.partitions_[column].partition
        records.append(
            {
                "table": name,
                "column": column,
                "kind": type(encoder.partitions_[column]).__name__,
                "parts": one.n_parts,
                "khiops_parts": theirs.parts[column].size,
                "cost": ours,
                "khiops_cost": khiops,
                "relative": (ours - khiops) / khiops,
                "optimal": one.is_optimal,
            }
        )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=QUALITY)
    parser.add_argument("--rows", type=int)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    everything = []
    for name in args.tables:
        records = compare_table(name, args.rows)
        everything += records
        relative = np.array([record["relative"] for record in records])
        print(
            f"  lower cost in {(relative < -1e-9).sum()}, equal in {(abs(relative) <= 1e-9).sum()}, higher in "
            f"{(relative > 1e-9).sum()}; largest gain {-relative.min():.1e}; "
            f"certified {sum(record['optimal'] for record in records)}"
        )
        for record in records:
            if record["relative"] > 1e-9 or not np.isfinite(record["relative"]):
                print("  higher:", record, flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, everything[0])
        writer.writeheader()
        writer.writerows(everything)


if __name__ == "__main__":
    main()
