"""Random models in each export: SQL (DuckDB), the JSON spec and ONNX beside `predict`.

    PYTHONPATH=. python benchmarks/exports.py [--seeds 200] [--from 0]

Each seed draws a formula or options, over columns of all kinds with missing values, fits, and predicts new rows with
unknown categories and missing values by every export. SQL and JSON must be within 1e-12 of the spread of the
predictions plus the largest term, ONNX within 1e-5 of the spread, classes equal. What an export refuses must be a
sentence that names a column, an option or a term. Text and numbers of a seed are those of the tests of exports; one
seed is one case: ``--from 17 --seeds 1`` repeats it.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.export import from_spec, to_onnx, to_spec, to_sql
from tests.exported import in_duckdb, new_rows, scores, table, target
from tests.formulas import random_formula, random_table
from tests.oracles.onnx_runs import run

LIMITS = {"sql": 1e-12, "json": 1e-12, "onnx": 1e-5}
COLUMNS = ["text", "whole", "fraction", "flag", "date", "day", "thirds", "normal", "moment", "exposure"]
CATEGORIES = ["text", "whole", "fraction", "flag", "date", "day", "moment"]
MISSING = "(missing)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--from", type=int, default=0, dest="first")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    held, refused, failures, worst = Counter[str](), Counter[str](), 0, dict.fromkeys(LIMITS, 0.0)
    for seed in range(asked.first, asked.first + asked.seeds):
        model, new = case_of(seed)
        if isinstance(model, str):
            refused[f"fit: {model.split(';')[0][:110]}"] += 1
            continue
        for way, found in answers(model, new):
            if isinstance(found, str):
                refused[f"{way}: {found.split(';')[0][:110]}"] += 1
                failures += say(seed, model, way, f"no sentence: {found}") if len(found) < 40 else 0
                continue
            held[way] += 1
            gap, same = difference(found, model, new, spread_only=way == "onnx")
            worst[way] = max(worst[way], gap)
            if gap > LIMITS[way] or not same:
                failures += say(seed, model, way, f"{gap:.1e} of the spread, classes {'equal' if same else 'differ'}")
    print(f"{asked.seeds} seeds, {failures} failures; exports: {dict(held)}; largest difference: {worst}")
    for words, times in refused.most_common():
        print(f"  refused {times} times, {words}")


def say(seed: int, model: Any, way: str, words: str) -> int:
    print(f"seed {seed}, {way}: {words}\n    {model!r}", flush=True)
    return 1


def case_of(seed: int) -> tuple[Any, pd.DataFrame]:
    """A fitted model, or what refused its options together, and new rows."""
    rng = np.random.default_rng(seed)
    return of_formula(rng, seed) if seed % 2 else of_options(rng, seed)


def of_formula(rng: np.random.Generator, seed: int) -> tuple[Any, pd.DataFrame]:
    tree, X, new = random_formula(rng), random_table(rng, 100), random_table(rng, 60)
    y = X["x"] + (X["a"] == "k") + rng.normal(size=len(X)) / 3
    new.loc[:5, "a"], new.loc[3:9, "c"], new.loc[20:25, "b"] = "zz", "zz", None
    if seed % 4 == 1:
        return WideSGDRegressor(str(tree), max_iter=2, random_state=0).fit(X, y), new
    return WideRegressor(str(tree), loss="squared_error", max_iter=5).fit(X, y), new


def of_options(rng: np.random.Generator, seed: int) -> tuple[Any, pd.DataFrame]:
    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    X, new = table(200, seed), new_rows()
    y = target(X, seed)
    beside = pick("", "", "exposure_column", "offset_column")
    kept = list(rng.choice(COLUMNS[:-1], rng.integers(2, 7), replace=False)) + (["exposure"] if beside else [])
    X, new = X[kept], new[kept]
    is_class, online = bool(rng.integers(2)), rng.random() < 0.3
    options: dict[str, Any] = {
        "numeric": pick("linear", "quantile") if online else pick("linear", "quantile", "smooth", "modl"),
        "interactions": pick(None, None, "pairwise", "auto", "within"),
        "categorical_features": [one for one in kept if one == "text" or (one in CATEGORIES and rng.random() < 0.6)],
        "handle_unknown": pick(*["neutral"] * 8, "error", "similar"),
    }
    if options["interactions"] == "within":
        one, *others = [*options["categorical_features"], *kept]
        others = list(dict.fromkeys(name for name in others if name != one))[:2]
        category = X[one].iloc[0] if one in options["categorical_features"] else None
        options["interactions"] = [({one: None if pd.isna(category) else category}, *others)]
    options |= {"random_state": 0, "max_iter": 3} if online else {"count_effect": pick(True, False)}
    if is_class:
        options |= {"loss": pick("log_loss", "hinge")} if online else {}
        kind: Any = WideSGDClassifier if online else WideClassifier
        labels: Any = np.digitize(y, [1] if options.get("loss") == "hinge" else pick([1], [1, 3]))
        y = pick(labels, labels > 0, np.array(["a", "b'", "c"])[labels])
        options |= {beside: "exposure"} if beside == "offset_column" and len(set(y)) == 2 else {}
    else:
        kind = WideSGDRegressor if online else WideRegressor
        options["loss"] = pick("squared_error", "poisson") if online else pick("squared_error", "poisson", "huber")
        y = np.maximum(y, 0).round() if options["loss"] == "poisson" else y
        options |= (
            {beside: "exposure"} if beside and (beside == "offset_column" or options["loss"] == "poisson") else {}
        )
    try:
        return kind(**options).fit(X, y), new
    except (ValueError, TypeError) as error:
        if len(str(error)) < 40:
            raise
        return " ".join(str(error).split()), new


def answers(model: Any, new: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """By way of export, the scores (n, outputs) and classes of the rows, or what refused it."""
    refuses = model.get_params()["handle_unknown"] == "error"
    for way, ask in (("json", in_json), ("sql", in_sql), ("onnx", in_onnx)):
        try:
            yield way, ask(model, new)
        except (ValueError, TypeError) as error:
            if refuses and way == "json" and "not seen in training" in str(error):
                continue
            yield way, " ".join(str(error).split())


def in_json(model: Any, new: pd.DataFrame) -> dict[str, Any]:
    scorer = from_spec(json.loads(json.dumps(to_spec(model), allow_nan=False)))
    if not hasattr(model, "classes_"):
        return {"scores": scorer.predict(new), "classes": None}
    return {"scores": scorer.decision_function(new), "classes": scorer.predict(new)}


def in_sql(model: Any, new: pd.DataFrame) -> dict[str, Any]:
    view = in_duckdb(to_sql(model, dialect="duckdb"), new)
    if not hasattr(model, "classes_"):
        return {"scores": view["prediction"], "classes": None}
    names = ["score"] if "score" in view else [f"score_{one}" for one in model.classes_]
    return {"scores": view[names].to_numpy(), "classes": view["prediction"].to_numpy()}


def in_onnx(model: Any, new: pd.DataFrame) -> dict[str, Any]:
    found = run(to_onnx(model, missing_text=MISSING), new, MISSING)
    if not hasattr(model, "classes_"):
        return {"scores": found["variable"], "classes": None}
    if "scores" in found:
        return {"scores": found["scores"], "classes": found["label"]}
    logs = np.log(found["probabilities"])  # of several classes known up to a constant
    return {"scores": logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs, "classes": found["label"]}


def difference(found: dict[str, Any], model: Any, new: pd.DataFrame, *, spread_only: bool) -> tuple[float, bool]:
    """The largest difference of scores, relative to what they are made of, and whether the classes are equal."""
    expected = scores(model, new)
    own = np.asarray(found["scores"], dtype=np.float64).reshape(expected.shape)
    if spread_only and expected.ndim > 1:
        own, expected = (one - one.mean(axis=1, keepdims=True) for one in (own, expected))
    size = np.std(expected) + (0.0 if spread_only else np.abs(model.explain(new).to_numpy()).max())
    labels = found["classes"] is None or (np.asarray(found["classes"]) == model.predict(new)).all()
    return float(np.abs(own - expected).max() / max(size, 1e-300)), bool(labels)


if __name__ == "__main__":
    main()
