"""Files of fitted models that later versions must load: ``python -m tests.kept_files`` adds those of this version.

A folder for each version, `tests/kept/0.1.0`, with the files, the rows that they answer and what they answered. None
is written anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import tabsym
from tabsym import (
    CrossFit,
    JitterTreeRegressor,
    MODLEncoder,
    OneHotEncoder,
    TIWSEncoder,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.export import save

FOLDER = Path(__file__).parent / "kept"
ROWS = 80


def table() -> pd.DataFrame:
    """Categories, numbers, dates and flags, with missing values."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Ulm", "Bonn", "Köln", "Hof"], ROWS)
    return pd.DataFrame(
        {
            "city": np.where(rng.random(ROWS) < 0.1, None, city),
            "colour": pd.Categorical(rng.choice(["red", "blue", "green"], ROWS)),
            "size": np.where(rng.random(ROWS) < 0.1, np.nan, rng.normal(size=ROWS).round(2)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, ROWS), unit="D"),
            "flag": rng.random(ROWS) < 0.5,
        }
    )


def queries() -> pd.DataFrame:
    """Some rows, and a category that no model has seen."""
    frame = table().head(12)
    return frame.assign(city=["new", *frame["city"][1:]])


def fitted() -> dict[str, object]:
    """What is kept, by the name of its file."""
    whole, rng = table(), np.random.default_rng(1)
    X = whole.drop(columns="day")
    amounts = np.exp(rng.normal(size=ROWS) / 3 + (X["city"] == "Ulm") + 0.5 * X["flag"]).round(3).to_numpy()
    two = np.where(amounts > np.median(amounts), "high", "low")
    three = np.array(["a", "b", "c"])[np.digitize(amounts, np.quantile(amounts, [0.3, 0.6]))]
    names = ["city", "colour"]
    return {
        "wide_classifier": WideClassifier().fit(X, two),
        "wide_classifier_of_three": WideClassifier(interactions=[("city", "colour")]).fit(X[names], three),
        "wide_regressor": WideRegressor().fit(whole[["city", "day"]], amounts),
        "wide_gamma": WideRegressor(loss="gamma", numeric="modl", handle_unknown="similar").fit(X, amounts),
        "wide_sgd_classifier": WideSGDClassifier().fit(X, two),
        "wide_sgd_formula": WideSGDRegressor("w[city] * v[colour] + b[1]", max_iter=5).fit(X, amounts),
        "onehot": OneHotEncoder().fit(X),
        "modl": MODLEncoder().fit(X, two),
        "modl_mean": MODLEncoder(output="mean", cv=None).fit(X, amounts),
        "tiws": TIWSEncoder(cv=None).fit(X, amounts),
        "wide_encoder": WideEncoder(cv=None).fit(X, two),
        "crossfit": CrossFit(MODLEncoder(output="probability", cv=None)).fit(X, two),
        "jitter_tree": JitterTreeRegressor(max_depth=3, random_state=0).fit(X[names], amounts),
        "pipeline": make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X[names], two),
    }


def answers(model: object, rows: pd.DataFrame) -> list[list[object]]:
    """What a model says of rows: probabilities, predictions or encoded columns."""
    rows = rows[list(model.feature_names_in_)]
    for method in ("predict_proba", "predict", "transform"):
        if hasattr(model, method):
            out = getattr(model, method)(rows)
            cells = np.asarray(out, dtype=object).reshape(len(rows), -1).tolist()
            return [[cell if isinstance(cell, str) else float(cell) for cell in row] for row in cells]
    raise TypeError(f"{model!r} says nothing of rows")


def main() -> None:
    """Write the files of this version that are missing."""
    folder = FOLDER / tabsym.__version__
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in fitted().items():
        path = folder / f"{name}.skops"
        if not path.exists():
            save(model, path)
            (folder / f"{name}.json").write_text(json.dumps(answers(model, queries())) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
