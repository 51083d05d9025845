"""Native boosters predict alike whatever type carries a table, to the last bit, in fit and in predict."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from tests.native_tables import QUERIES, TARGETS, TRAIN, N, carriers_of, native, plain

LIBRARIES = ["lightgbm", "xgboost", "catboost", "hist"]
CASES = [
    (library, f"{task}: {carrier}")
    for library in LIBRARIES
    for task in TARGETS
    for carrier in carriers_of(task, library)
]


@pytest.fixture(autouse=True)
def one_thread():
    """HistGradientBoosting knows no n_jobs, and tables are tiny."""
    with threadpool_limits(1):
        yield


@cache
def findings():
    """What `tests.native_tables` found of each library, in a process that may end early."""
    command = [sys.executable, "-m", "tests.native_tables", *LIBRARIES]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    found = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line) if line.startswith("{") else {}
    missing = [library for library in LIBRARIES if library not in found]
    assert done.returncode == 0, f"{missing[:1]} ended the process ({done.returncode}): {done.stderr[-2000:]}"
    return found


@pytest.mark.parametrize(("library", "case"), CASES)
@pytest.mark.slow
def test_predictions_are_those_of_plain_columns(library, case):
    assert findings()[library][case] == "equal"


# -- no rows ----------------------------------------------------------------------------------------------

NOTHING, ONE = plain(QUERIES["no rows"]), plain(QUERIES["one row"])
MARGINS = {
    "lightgbm": lambda model, X: model.predict(X, raw_score=True),
    "xgboost": lambda model, X: model.predict(X, output_margin=True),
    "catboost": lambda model, X: model.booster_.predict(
        model.categories_.transform(X), prediction_type="RawFormulaVal"
    ),
    "hist": lambda model, X: getattr(model, "decision_function", model.predict)(X),
}


@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_no_rows_in_no_rows_out(library, task, capfd):
    model = native(library, task).fit(plain(TRAIN), TARGETS[task])
    methods = [type(model).predict, MARGINS[library]]
    if task != "regression":
        methods.append(type(model).predict_proba)
    assert hasattr(model, "predict_proba") == (task != "regression")
    for method in methods:
        none, one = method(model, NOTHING), method(model, ONE)
        assert (none.shape, none.dtype) == ((0, *one.shape[1:]), one.dtype)
    if library != "catboost":  # whose margins are asked for past the adapter
        assert capfd.readouterr().err == ""


def test_no_rows_of_an_offset():
    """XGBoost takes offsets row by row in predict: of no rows there are none."""
    model = native("xgboost", "multiclass").fit(plain(TRAIN), TARGETS["multiclass"])
    options = {"output_margin": True, "base_margin": np.empty((0, 3)), "iteration_range": (0, 2)}
    assert model.predict(NOTHING, **options).shape == (0, 3)


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_rows_keep_the_checks(library):
    model = native(library, "regression").fit(plain(TRAIN), TARGETS["regression"])
    with pytest.raises(ValueError, match="now missing:\n- b"):
        model.predict(NOTHING.drop(columns="b"))


# -- columns that tell nothing ----------------------------------------------------------------------------

MISSING = {
    "None": [None] * N,
    "NaN": [np.nan] * N,
    "NaT": pd.Series([pd.NaT] * N),
    "NaT, objects": pd.Series([pd.NaT] * N, dtype=object),
    "NA": pd.Series([pd.NA] * N, dtype="Int64"),
    "category": pd.Categorical([None] * N, categories=["u", "v"]),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_column_without_any_value_tells_nothing(library):
    """XGBoost failed on categories without levels, HistGradientBoosting on numbers that are all missing."""
    X, y = plain(TRAIN), TARGETS["regression"]
    expected = None
    for values in MISSING.values():
        model = native(library, "regression").fit(X.assign(z=values), y)
        expected = model.predict(X.assign(z=np.nan)) if expected is None else expected
        for now in (values, "text", 1.5, True, pd.Timestamp("2024-01-01")):
            np.testing.assert_array_equal(model.predict(X.assign(z=now)), expected)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_table_without_any_value_gets_the_mean(library):
    X, y = pd.DataFrame({"z": MISSING["None"], "x": MISSING["NaN"]}), TARGETS["regression"]
    np.testing.assert_allclose(native(library, "regression").fit(X, y).predict(X), y.mean(), rtol=1e-5)
