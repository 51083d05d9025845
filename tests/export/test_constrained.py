"""Models with given terms and with monotone ones, in every export: what it computes is what they predict."""

import numpy as np
import pandas as pd
import pytest

from tabsym import WideClassifier, WideRegressor
from tabsym.export import from_spec, to_onnx, to_spec, to_sql
from tests.export.test_excel import check as check_excel
from tests.exported import in_duckdb
from tests.oracles.onnx_runs import run

SIZES = ["L", "M", "S"]
CONSTRAINTS = {
    "fixed": {"fixed": {"region": {"north": 0.5, "south": -0.25}, "price": 0.1}},
    "monotone": {"monotonic_cst": {"price": -1, "size": 1}},
    "both": {"fixed": {"region": {"north": 0.5, "south": -0.25}}, "monotonic_cst": {"price": 1}},
}


def table(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "east"], n),
            "price": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2.0, 1.0, n).round(1)),
            "size": pd.Categorical(rng.choice(SIZES, n), categories=SIZES, ordered=True),
            "shop": rng.choice([f"s{index}" for index in range(6)], n),
        }
    )


def fitted(constraints, task):
    rng, X = np.random.default_rng(2), table(300, 0)
    eta = np.sin(3 * X["price"].fillna(1.0)) - 0.3 * (X["size"] == "M") + 0.4 * (X["shop"] == "s1")
    if task == "classes":
        return WideClassifier(**constraints).fit(X, np.where(eta + rng.logistic(size=300) > 0, "yes", "no"))
    if task == "counts":
        return WideRegressor(loss="poisson", **constraints).fit(X, rng.poisson(np.exp(eta)))
    return WideRegressor(loss="squared_error", **constraints).fit(X, eta + rng.normal(size=300) / 4)


@pytest.mark.parametrize("task", ["amounts", "counts", "classes"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_exports_predict_as_the_model_does(name, task, tmp_path):
    model = fitted(CONSTRAINTS[name], task)
    new = table(80, 1).astype({"size": "str"})
    new.loc[:9, "region"], new.loc[5:12, "shop"] = "west", "never seen"
    scorer, view, found = from_spec(to_spec(model)), in_duckdb(to_sql(model), new), run(to_onnx(model), new)
    if task == "classes":
        expected = model.predict_proba(new)
        shares = [scorer.predict_proba(new), view[["probability_no", "probability_yes"]], found["probabilities"]]
        for one in (scorer.predict(new), view["prediction"], found["label"]):
            assert list(one) == model.predict(new).tolist()
    else:
        expected = model.predict(new)
        shares = [scorer.predict(new), view["prediction"], found["variable"][:, 0]]
    for one in shares:
        np.testing.assert_allclose(one, expected, rtol=1e-11)
    check_excel(model, new, tmp_path / "rates.xlsx", [0, 7, 11, 40])
