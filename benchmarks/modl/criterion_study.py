"""Which criterion should be the default: held-out log-loss of models of one variable, "page" against "khiops".

For every column of the tables (adult also with marital-status as its target): partition it on
n training rows under both criteria (n_candidates=1), take each part's class frequencies,
Laplace-smoothed, as the prediction, and score the rows that are left (at most 20,000). The
training rows are the same for both, so differences are paired; the unit of the tests is the
variable (its mean over the repeats), negative differences are in favour of "khiops".

    TABSYM_DATA=FOLDER python benchmarks/modl/criterion_study.py [--tables ...] [--sizes 500 2000 8000 all] [--print]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binomtest, wilcoxon
from tables import QUALITY, is_numeric, load, subset

TABLES = [*QUALITY, "adult:marital-status"]
CRITERIA = ["page", "khiops"]
SIZES = ["500", "2000", "8000", "all"]
REPEATS = {"500": 10, "2000": 5, "8000": 3, "all": 3}
MAX_HELD_OUT = 20_000
HELD_OUT_OF_ALL = 0.25
TIE = 1e-9  # below this the two partitions are the same, or predict the same


def split(y: np.ndarray, size: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out rows; "all" trains on three quarters."""
    n = round(len(y) * (1 - HELD_OUT_OF_ALL)) if size == "all" else int(size)
    train = subset(y, n, seed)
    rest = np.setdiff1d(np.arange(len(y)), train)
    return train, np.random.default_rng(seed).permutation(rest)[:MAX_HELD_OUT]


def losses(criterion: str, X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray, n_classes: int) -> dict:
    """Held-out log-loss and number of parts of each column."""
    from tabsym import MODLEncoder

    encoder = MODLEncoder(
        criterion=criterion, output="group", numeric="discretize", n_candidates=1, cols=list(X.columns)
    )
    encoder.fit(X.iloc[train], y[train])
    seen, new = encoder.transform(X.iloc[train]), encoder.transform(X.iloc[test])
    out = {}
    for name in X.columns:
        size = len(seen[name].cat.categories)
        counts = np.zeros((size, n_classes))
        np.add.at(counts, (seen[name].cat.codes.to_numpy(), y[train]), 1)
        shares = (counts + 1) / (counts.sum(axis=1, keepdims=True) + n_classes)
        parts = new[name].cat.codes.to_numpy()
        out[name] = (float(-np.log(shares[parts, y[test]]).mean()), size)
    return out


def study(table: str, sizes: list[str], out: Path) -> None:
    """Append a row for each column, size and repeat; what is in the file already is skipped."""
    X, y, classes = load(table)
    kinds = {name: "numeric" if is_numeric(X[name]) else "symbolic" for name in X.columns}
    for size in sizes:
        if size != "all" and int(size) >= len(y) * (1 - HELD_OUT_OF_ALL):
            continue
        for repeat in range(REPEATS[size]):
            if _done(out, table, size, repeat):
                continue
            start = time.perf_counter()
            train, test = split(y, size, repeat)
            both = {criterion: losses(criterion, X, y, train, test, len(classes)) for criterion in CRITERIA}
            rows = [
                {"table": table, "variable": name, "kind": kind, "n": size, "rows": len(train), "repeat": repeat}
                | {
                    f"{word}_{c}": both[c][name][place]
                    for place, word in enumerate(["loss", "parts"])
                    for c in CRITERIA
                }
                for name, kind in kinds.items()
            ]
            pd.DataFrame(rows).to_csv(out, mode="a", header=not out.exists(), index=False)
            print(f"{table} n={size} repeat {repeat}: {time.perf_counter() - start:.1f} s", flush=True)


def _done(out: Path, table: str, size: str, repeat: int) -> bool:
    if not out.exists():
        return False
    past = pd.read_csv(out, dtype={"n": str})
    return bool(((past["table"] == table) & (past["n"] == size) & (past["repeat"] == repeat)).any())


def show(out: Path) -> str:
    """The comparison as Markdown: by n, by n and kind, by n and table."""
    results = pd.read_csv(out, dtype={"n": str})
    results["difference"] = results["loss_khiops"] - results["loss_page"]
    lines = []
    for title, keys in (("By n", ["n"]), ("By n and kind", ["n", "kind"]), ("By n and table", ["n", "table"])):
        lines += [f"### {title}", ""]
        words = "variables | loss page | loss khiops | difference | khiops wins | ties | page wins | sign | Wilcoxon"
        lines.append(f"| {' | '.join(keys)} | {words} | parts page | parts khiops |")
        lines.append("| --- " * (len(keys) + 11) + "|")
        groups = [(key if isinstance(key, tuple) else (key,), part) for key, part in results.groupby(keys, sort=False)]
        groups.sort(key=lambda group: (SIZES.index(group[0][0]), group[0][1:]))
        lines += [_line(key, part) for key, part in groups]
        lines.append("")
    return "\n".join(lines)


def _line(key: tuple, part: pd.DataFrame) -> str:
    means = part.groupby(["table", "variable"])[
        ["loss_page", "loss_khiops", "difference", "parts_page", "parts_khiops"]
    ].mean()
    apart = means["difference"][means["difference"].abs() > TIE]
    wins, losses_ = int((apart < 0).sum()), int((apart > 0).sum())
    sign = binomtest(wins, len(apart)).pvalue if len(apart) else 1.0
    ranks = wilcoxon(apart).pvalue if len(apart) else 1.0
    cells = [
        *key,
        str(len(means)),
        f"{means['loss_page'].mean():.5f}",
        f"{means['loss_khiops'].mean():.5f}",
        f"{means['difference'].mean():+.6f}",
        str(wins),
        str(len(means) - len(apart)),
        str(losses_),
        f"{sign:.2g}",
        f"{ranks:.2g}",
        f"{means['parts_page'].mean():.2f}",
        f"{means['parts_khiops'].mean():.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--sizes", nargs="+", default=SIZES, choices=SIZES)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "criterion.csv")
    parser.add_argument("--print", action="store_true", help="only print what there is")
    args = parser.parse_args()
    args.out.parent.mkdir(exist_ok=True, parents=True)
    for table in [] if args.print else args.tables:
        study(table, args.sizes, args.out)
    print(show(args.out))


if __name__ == "__main__":
    main()
