"""Speed of MODL preprocessing on one column, in units of a sort of the same column in the same run.

Four columns of a million rows: numeric with 2 and 7 classes (unit: np.argsort), symbolic with
1,000 symbols and 2 classes and 50,000 symbols and 7 classes (unit: np.unique of the
strings), fitted by every method that treats such a column; then 100 rows of one numeric column: fit, and
transform of one row. Medians over the repeats, imports and compiling done before. Khiops
is its own program over files: data preparation only, and writing its file apart.

    python benchmarks/modl/speed.py [--rows 1000000] [--repeats 3] [--methods ...]
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable
from typing import Any

import methods
import numpy as np
import pandas as pd
from measure import timed

Measured = tuple[float, float, float]  # wall, CPU, writing a file


def numeric_column(n_rows: int, n_classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A million distinct values; the classes take turns along ten waves."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n_rows)
    shares = np.exp(np.sin(x[:, None] * 5 + np.arange(n_classes)))
    return pd.DataFrame({"x": x}), _draw(shares, rng)


def symbolic_column(n_rows: int, n_categories: int, n_classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Zipf-distributed symbols of twenty kinds."""
    rng = np.random.default_rng(0)
    edges = np.cumsum(1 / np.arange(1, n_categories + 1))
    codes = np.searchsorted(edges / edges[-1], rng.random(n_rows))
    kinds = rng.gamma(1.0, size=(20, n_classes))[rng.integers(0, 20, n_categories)]
    names = np.array([f"symbol{j}" for j in range(n_categories)], dtype=object)
    return pd.DataFrame({"x": pd.Series(names[codes]).astype("str")}), _draw(kinds[codes], rng)


def _draw(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    edges = np.cumsum(shares, axis=1)
    return (rng.random(len(shares))[:, None] * edges[:, -1:] > edges).sum(axis=1)


def argsort_of(X: pd.DataFrame) -> Callable[[], Any]:
    values = X["x"].to_numpy()
    return lambda: np.argsort(values)


def unique_of(X: pd.DataFrame) -> Callable[[], Any]:
    values = X["x"].to_numpy(dtype=object).astype(str)  # fixed width: numpy's own, and its fastest
    return lambda: np.unique(values)


def fits(name: str, X: pd.DataFrame, y: np.ndarray) -> Measured:
    done = methods.fit(name, X, y)
    return done.fit_s, done.cpu_s, done.write_s


def of_repeats(call: Callable[[], Measured], repeats: int) -> Measured:
    runs = [call() for _ in range(repeats)]
    return tuple(statistics.median(column) for column in zip(*runs))  # type: ignore[return-value]


def treats(name: str, *, categorical: bool, n_classes: int) -> bool:
    """Whether the method treats such a column itself."""
    if not categorical or methods.METHODS[name].categories == "grouped":
        return True
    return name == "optbinning" and n_classes == 2


def large(title: str, X: pd.DataFrame, y: np.ndarray, names: list[str], repeats: int) -> None:
    categorical, n_classes = not methods.is_numeric(X["x"]), int(y.max()) + 1
    unit_name, unit_call = ("np.unique", unique_of(X)) if categorical else ("np.argsort", argsort_of(X))
    unit = of_repeats(lambda: (*timed(unit_call)[1:], 0.0), repeats)
    print(f"### {title}\n")
    print(f"| | wall s | in {unit_name} | CPU s | CPU in {unit_name} | writing its file s |")
    print("| --- | --- | --- | --- | --- | --- |")
    print(f"| {unit_name} | {unit[0]:.3f} | 1 | {unit[1]:.3f} | 1 | |", flush=True)
    for name in names:
        if not treats(name, categorical=categorical, n_classes=n_classes):
            print(f"| {name} | does not treat it | | | | |")
            continue
        try:
            wall, cpu, write = of_repeats(lambda: fits(name, X, y), repeats)  # noqa: B023
        except Exception as error:  # one peer's failure is its own
            print(f"| {name} | {type(error).__name__}: {str(error)[:80]} | | | | |")
            continue
        written = f"{write:.2f}" if write else ""
        print(
            f"| {name} | {wall:.3f} | {wall / unit[0]:.1f} | {cpu:.3f} | {cpu / unit[1]:.1f} | {written} |", flush=True
        )
    print()


def small(names: list[str], repeats: int) -> None:
    """A hundred rows, one column: what a call costs at the least."""
    X, y = numeric_column(100, 2)
    one = X.head(1)
    print("### 100 rows, one numeric column, 2 classes\n")
    print("| | fit ms | transform of one row ms |")
    print("| --- | --- | --- |")
    for name in names:
        times = max(repeats, 3) if name == "khiops" else 30
        fit_s = of_repeats(lambda: fits(name, X, y), times)[0]  # noqa: B023
        fitted = methods.fit(name, X, y)
        transform = fitted.transform or fitted.encode
        encode_s = of_repeats(lambda: (*timed(lambda: transform(one))[1:], 0.0), times)[0]  # noqa: B023
        shown = f"{1000 * encode_s:.2f}"
        if name == "khiops":
            from khiops_peer import deploy_seconds

            shown = f"{1000 * deploy_seconds(X, y, one):.0f}"
        print(f"| {name} | {1000 * fit_s:.2f} | {shown} |", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=list(methods.METHODS), choices=list(methods.METHODS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    names = []
    for name in args.methods:
        reason = methods.missing_reason(name)
        if reason:
            print(f"left out: {name} ({reason})\n")
        else:
            methods.warm(name)
            names.append(name)
    rows = f"{args.rows:,} rows"
    for n_classes in (2, 7):
        large(f"{rows}, numeric, {n_classes} classes", *numeric_column(args.rows, n_classes), names, args.repeats)
    for n_categories, n_classes in ((1_000, 2), (50_000, 7)):
        table = symbolic_column(args.rows, n_categories, n_classes)
        large(f"{rows}, symbolic, {n_categories:,} symbols, {n_classes} classes", *table, names, args.repeats)
    small(names, args.repeats)


if __name__ == "__main__":
    main()
