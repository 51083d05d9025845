"""Exports of a fitted model beside its own `predict`: sizes of files, and the time of one row and of many.

Retail sales of `tabsym.datasets` and, with `--data`, development tables; `WideRegressor` or `WideClassifier` at their
defaults. A row starts as a dict and ends as a prediction: `predict` of a frame made of it, `from_spec`, onnxruntime in
one thread, DuckDB and SQLite by an INSERT and a SELECT from the view. Processor time, medians of `--calls` calls, of
fewer where these take 4 s. All rows are where each way has them: in a frame, in arrays, in a table of the database.
`error` is the largest difference from `predict` (of classes: of the last one's probability) over the standard
deviation of the predictions.

    python benchmarks/serving.py [--rows 10000] [--calls 200] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import onnxruntime
import pandas as pd

from tabsym import WideClassifier, WideRegressor, save
from tabsym.datasets import make_retail
from tabsym.export import from_spec, to_onnx, to_spec, to_sql

SECONDS = 4.0
TABLES = {"adult": "income", "amazon": "ACTION", "usedcars": "price_usd"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | way | file, KB | one row, ms | all rows, s | error |\n| --- | --- | --- | --- | --- | --- |")
    compare("retail", make_retail(args.rows), "sales", args.calls)
    for name, target in TABLES.items() if args.data else ():
        table = pd.read_parquet(args.data / f"{name}.parquet")
        compare(
            name, table.sample(min(args.rows, len(table)), random_state=0).reset_index(drop=True), target, args.calls
        )


def compare(name: str, table: pd.DataFrame, target: str, n_calls: int) -> None:
    X, y = table.drop(columns=target), table[target]
    model: Any = (WideClassifier() if y.nunique() < 20 else WideRegressor()).fit(X, y)
    expected = said(model, X)
    rows = X.head(50).to_dict("records")
    for way, (size, one, all_rows) in ways(model, X).items():
        start = time.process_time()
        found = all_rows()
        seconds = time.process_time() - start
        error = np.abs(found - expected).max() / expected.std()
        line = f"{size / 1024:,.0f} | {median(one, rows, n_calls):.2f} | {seconds:.3f} | {error:.0e}"
        print(f"| {name} | {way} | {line} |", flush=True)


def said(model: Any, X: Any) -> np.ndarray:
    """What is compared: predictions, or the probability of the last class."""
    return model.predict_proba(X)[:, -1] if hasattr(model, "classes_") else model.predict(X)


def median(call: Callable[[dict[str, Any]], Any], rows: list[dict[str, Any]], n_calls: int) -> float:
    """Milliseconds, after a call that warms up."""
    call(rows[0])
    taken = []
    for place in range(n_calls):
        start = time.process_time()
        call(rows[place % len(rows)])
        taken.append(time.process_time() - start)
        if sum(taken) > SECONDS:
            break
    return 1000 * float(np.median(taken))


def ways(model: Any, X: pd.DataFrame) -> dict[str, tuple[int, Callable[[dict[str, Any]], Any], Callable[[], Any]]]:
    """Size, one row and all rows of each way."""
    with tempfile.TemporaryDirectory() as folder:
        size = save(model, Path(folder) / "model.skops").stat().st_size
    found: dict[str, Any] = {"`predict`": (size, lambda row: said(model, pd.DataFrame([row])), lambda: said(model, X))}
    text = json.dumps(to_spec(model))
    scorer: Any = from_spec(json.loads(text))
    if hasattr(model, "classes_"):
        found["`from_spec`"] = (
            len(text),
            lambda row: scorer.predict_proba([row]),
            lambda: scorer.predict_proba(X)[:, -1],
        )
    else:
        found["`from_spec`"] = len(text), lambda row: scorer.predict([row]), lambda: scorer.predict(X)
    return found | {"ONNX": in_onnx(model, X)} | {name: in_database(name, model, X) for name in ("DuckDB", "SQLite")}


def in_onnx(model: Any, X: pd.DataFrame) -> Any:
    data = to_onnx(model).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    text = {one.name: one.type == "tensor(string)" for one in session.get_inputs()}
    output = session.get_outputs()[-1].name
    columns = {
        name: X[name].astype(object).where(X[name].notna(), "").to_numpy(dtype=object)[:, None]
        if is_text
        else X[[name]].to_numpy(np.float64)
        for name, is_text in text.items()
    }

    def one(row: dict[str, Any]) -> Any:
        feed = {
            name: np.array([[row[name] if row[name] == row[name] else ""]], dtype=object)
            if is_text
            else np.array([[row[name]]], dtype=np.float64)
            for name, is_text in text.items()
        }
        return session.run([output], feed)

    return len(data), one, lambda: session.run([output], columns)[0][:, -1]


def in_database(engine: str, model: Any, X: pd.DataFrame) -> Any:
    text = to_sql(model)
    shown = f'"probability_{model.classes_[-1]}"' if hasattr(model, "classes_") else "prediction"
    many, single = (_base(engine, rows.assign(row_number=range(len(rows))), text) for rows in (X, X.head(0)))
    insert = f"INSERT INTO rows VALUES ({', '.join('?' * X.shape[1])}, 0)"

    def one(row: dict[str, Any]) -> Any:
        single.execute("DELETE FROM rows")
        single.execute(insert, [None if value != value else value for value in row.values()])  # noqa: PLR0124 (NaN)
        return single.execute(f"SELECT {shown} FROM rows_prediction").fetchall()

    query = f"SELECT {shown} FROM rows_prediction ORDER BY row_number"
    return len(text), one, lambda: np.array(many.execute(query).fetchall(), dtype=float)[:, 0]


def _base(engine: str, rows: pd.DataFrame, text: str) -> Any:
    if engine == "SQLite":
        base = sqlite3.connect(":memory:")
        rows.to_sql("rows", base, index=False)
        base.executescript(text)
        return base
    duck = duckdb.connect(config={"threads": 1})
    duck.register("given", rows)
    duck.execute("CREATE TABLE rows AS SELECT * FROM given")
    duck.execute(text)
    return duck


if __name__ == "__main__":
    main()
