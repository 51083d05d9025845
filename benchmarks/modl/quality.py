"""How good the partitions are: criterion cost, and held-out log-loss of two models on the encoded columns.

For each table and method: the cost under the "khiops" criterion (n_candidates=1) of
the partition of all rows, summed over columns; then three stratified folds, the encoder
fitted on the training rows only: log-loss of a categorical naive Bayes and of LightGBM on
the parts (whole numbers; those of symbolic columns as categories). Rows are appended to
the CSV as they arrive; a second run goes on where the first one stopped.

    TABSYM_DATA=FOLDER python benchmarks/modl/quality.py [--tables ...] [--methods ...] [--rows N] [--print]
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import methods
import numpy as np
import pandas as pd
from costs import partition_cost
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB
from tables import MAX_ROWS, QUALITY, is_numeric, load, subset

FOLDS = 3
FLOOR = 1e-6  # of a probability: a class that is not in the training rows would cost infinity
NO_COST = "no cost"
FIELDS = "table method rows fold fit_s cpu_s write_s parts cost null_cost no_cost nb lgbm error".split()


def whole(name: str, X: pd.DataFrame, y: np.ndarray, n_classes: int) -> dict:
    """Fit on all rows: seconds, parts and costs."""
    fitted = methods.fit(name, X, y)
    parts = fitted.encode(X)
    row = {"fit_s": fitted.fit_s, "cpu_s": fitted.cpu_s, "write_s": fitted.write_s, "parts": sum(fitted.sizes.values())}
    try:
        costs = [partition_cost(X[c], parts[c].to_numpy(), y, n_classes, "khiops") for c in X.columns]
        nulls = [partition_cost(X[c], np.zeros(len(X), int), y, n_classes, "khiops") for c in X.columns]
    except ImportError:
        return row | {"error": f"{NO_COST}: this tabsym has no tabsym.modl"}
    return row | {"cost": np.nansum(costs), "null_cost": np.sum(nulls), "no_cost": int(np.isnan(costs).sum())}


def held_out(name: str, X: pd.DataFrame, y: np.ndarray, n_classes: int, split: tuple[np.ndarray, np.ndarray]) -> dict:
    """Fit on a fold's training rows: log-loss of both models on the others."""
    train, test = split
    fitted = methods.fit(name, X.iloc[train], y[train])
    sizes = np.array([fitted.sizes[c] for c in X.columns])
    seen, new = (_codes(fitted, X.iloc[rows], sizes) for rows in (train, test))
    row = {"fit_s": fitted.fit_s, "cpu_s": fitted.cpu_s, "write_s": fitted.write_s, "parts": int(sizes.sum())}
    bayes = CategoricalNB(min_categories=sizes + 1).fit(seen, y[train])
    row["nb"] = _loss(y[test], bayes.predict_proba(new), bayes.classes_, n_classes)
    categorical = [place for place, c in enumerate(X.columns) if not is_numeric(X[c])]
    return row | {"lgbm": _lightgbm(seen, y[train], new, y[test], categorical, n_classes)}


def _codes(fitted: methods.Fitted, X: pd.DataFrame, sizes: np.ndarray) -> np.ndarray:
    """Parts of each row; what is in no part gets one of its own, the last."""
    codes = fitted.encode(X)[list(X.columns)].to_numpy(dtype=np.int64)
    return np.where((codes < 0) | (codes > sizes), sizes, codes)


def _lightgbm(
    seen: np.ndarray, y: np.ndarray, new: np.ndarray, target: np.ndarray, categorical: list[int], n_classes: int
) -> float:
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        return float("nan")
    # at its defaults LightGBM diverges with classes of a few rows; this keeps their leaves from doing so
    model = LGBMClassifier(n_estimators=100, learning_rate=0.05, min_child_weight=1.0, n_jobs=1, verbose=-1)
    frames = [pd.DataFrame(codes, columns=[f"v{j}" for j in range(codes.shape[1])]) for codes in (seen, new)]
    model.fit(frames[0], y, categorical_feature=[f"v{j}" for j in categorical])
    return _loss(target, model.predict_proba(frames[1]), model.classes_, n_classes)


def _loss(y: np.ndarray, probabilities: np.ndarray, classes: np.ndarray, n_classes: int) -> float:
    full = np.full((len(y), n_classes), FLOOR)
    full[:, classes] = np.maximum(probabilities, FLOOR)
    return float(log_loss(y, full / full.sum(axis=1, keepdims=True), labels=np.arange(n_classes)))


def study(table: str, names: list[str], rows: int | None, out: Path) -> None:
    X, y, classes = load(table)
    kept = subset(y, rows or MAX_ROWS.get(table))
    X, y = X.iloc[kept].reset_index(drop=True), y[kept]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes of fewer rows than folds
        splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    for name in names:
        for fold in ["all", *range(FOLDS)]:
            key = {"table": table, "method": name, "rows": len(X), "fold": str(fold)}
            if _done(out, key):
                continue
            start = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if fold == "all":
                        row = whole(name, X, y, len(classes))
                    else:
                        row = held_out(name, X, y, len(classes), splits[fold])
            except Exception as error:  # a peer that cannot treat a table must not stop the others
                row = {"error": f"{type(error).__name__}: {error}".replace("\n", " ")[:200]}
            pd.DataFrame([key | row], columns=FIELDS).to_csv(out, mode="a", header=not out.exists(), index=False)
            print(f"{table} {name} {fold}: {time.perf_counter() - start:.1f} s {row.get('error', '')}", flush=True)


def _done(out: Path, key: dict) -> bool:
    if not out.exists():
        return False
    past = results(out)
    past = past[~past["error"].fillna("").str.startswith(NO_COST)]  # worth another try
    return bool((past[list(key)] == pd.Series(key)).all(axis=1).any())


def results(out: Path) -> pd.DataFrame:
    """What there is, the last row of each fit."""
    past = pd.read_csv(out, dtype={"fold": str, "error": str})
    return past.drop_duplicates(["table", "method", "rows", "fold"], keep="last")


def show(out: Path) -> str:
    """The results as Markdown, a table for each data set; means (and spread) over folds."""
    lines = []
    for (table, rows), part in results(out).groupby(["table", "rows"], sort=False):
        lines += [f"### {table}, {rows:,} rows", ""]
        lines.append("| method | cost | of null | parts | naive Bayes | LightGBM | fit s | CPU s | symbols |")
        lines.append("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for name, own in part.groupby("method", sort=False):
            lines.append(_line(str(name), own))
        lines.append("")
    return "\n".join(lines)


def _line(name: str, own: pd.DataFrame) -> str:
    full, folds = own[own["fold"] == "all"], own[own["fold"] != "all"]
    errors = own["error"].dropna()
    first = full.iloc[0] if len(full) else pd.Series(dtype=float)
    cost, null = first.get("cost", np.nan), first.get("null_cost", np.nan)
    note = f" ({int(first['no_cost'])} columns without)" if first.get("no_cost", 0) > 0 else ""
    cells = [
        name,
        f"{cost:,.0f}{note}" if np.isfinite(cost) else "-",
        f"{cost / null:.4f}" if np.isfinite(cost) else "-",
        f"{first.get('parts', np.nan):.0f}",
        _mean(folds["nb"]),
        _mean(folds["lgbm"]),
        f"{first.get('fit_s', np.nan):.2f}",
        f"{first.get('cpu_s', np.nan):.2f}",
        methods.METHODS[name].categories + (f"; {errors.iloc[0]}" if len(errors) else ""),
    ]
    return "| " + " | ".join(cells) + " |"


def _mean(values: pd.Series) -> str:
    return f"{values.mean():.5f} ({values.std():.5f})" if values.notna().any() else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=QUALITY)
    parser.add_argument("--methods", nargs="+", default=list(methods.METHODS), choices=list(methods.METHODS))
    parser.add_argument("--rows", type=int, help="most rows of a table (default: all; kdd99 100,000)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "quality.csv")
    parser.add_argument("--print", action="store_true", help="only print what there is")
    args = parser.parse_args()
    args.out.parent.mkdir(exist_ok=True, parents=True)
    names = []
    for name in args.methods:
        reason = methods.missing_reason(name)
        if reason:
            print(f"left out: {name} ({reason})")
        else:
            names.append(name)
            methods.warm(name)
    for table in [] if args.print else args.tables:
        study(table, names, args.rows, args.out)
    print(show(args.out))


if __name__ == "__main__":
    main()
