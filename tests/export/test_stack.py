"""Files of stacks: the script of the guide predicts from them as the stack does, where tabsym is not to be found."""

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from xgboost import XGBClassifier, XGBRegressor

from tabsym import DateParts, WideBoostClassifier, WideBoostRegressor, WideClassifier, WideRegressor
from tabsym.cli import main
from tabsym.compare.comparison import train_best
from tabsym.compare.contenders import all_contenders
from tabsym.compare.metrics import choose_metric
from tabsym.compare.splits import SplitPlan
from tabsym.compare.table.prepare import prepare
from tabsym.export import from_spec, spec_schema, to_spec, to_stack
from tests.export.test_spec import SCORER, violations
from tests.options import ADDITIVE

ROOT = Path(__file__).parents[2]
QUICK = {"n_estimators": 8, "random_state": 0}
BOOSTERS = {
    "lightgbm": (LGBMRegressor, LGBMClassifier, QUICK | {"min_child_samples": 5, "verbosity": -1}),
    "xgboost": (XGBRegressor, XGBClassifier, QUICK | {"max_depth": 3}),
    "catboost": (CatBoostRegressor, CatBoostClassifier, QUICK | {"verbose": 0, "allow_writing_files": False}),
}
CASES = [  # library, task, mode, codes
    ("lightgbm", "numbers", "margin", "ordinal"),
    ("lightgbm", "three", "margin", "native"),
    ("lightgbm", "two", "feature", "group"),
    ("xgboost", "two", "margin", "native"),
    ("xgboost", "three", "feature", "ordinal"),
    ("xgboost", "counts", "margin", "group"),
    ("catboost", "three", "margin", "native"),
    ("catboost", "numbers", "feature", "native"),
    ("catboost", "two", "margin", "ordinal"),
]


def table(n=160, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "shop": rng.choice(np.array(["a", "b", "c", "(missing)", None], dtype=object), n),
            "code": pd.Categorical(rng.integers(1, 5, n)),
            "price": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "flag": rng.random(n) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
        }
    )


def rows(n=60):
    """With unknown and missing values in every column that can have them."""
    found = table(n, 1).astype({"code": object})
    found.loc[:9, "shop"] = "never seen"
    found.loc[5:15, "code"] = 77
    found.loc[12:18, "day"] = pd.NaT
    return found


def target(X, task):
    base = (X["shop"] == "a") * 2.0 + np.sign(X["price"].fillna(0)) * X["flag"] + X["day"].dt.day / 10
    values = base + 0.2 * np.random.default_rng(2).normal(size=len(X))
    if task in ("two", "three"):
        return np.array(["low", "mid", "top"])[np.digitize(values, [2.0] if task == "two" else [1.0, 3.0])]
    return values if task == "numbers" else np.random.default_rng(3).poisson(np.exp(values / 3)).astype(float)


def stack(library, task, mode, codes):
    regressor, classifier, options = BOOSTERS[library]
    kind = {"mode": mode, "codes": codes, "early_stopping": False, "cv": 3}
    X = table()
    if task in ("two", "three"):
        return WideBoostClassifier(WideClassifier(**ADDITIVE), classifier(**options), **kind).fit(X, target(X, task))
    wide = WideRegressor(**ADDITIVE | {"loss": "poisson" if task == "counts" else "squared_error"})
    return WideBoostRegressor(wide, regressor(**options), **kind).fit(X, target(X, task))


def blended():
    """Weighted parts, as mode='auto' makes them."""
    model = stack("lightgbm", "numbers", "margin", "ordinal")
    other = stack("lightgbm", "numbers", "feature", "native")
    model._layers = [(0.25, None), (0.5, model._layers[0][1]), (0.25, other._layers[0][1])]
    return model


@pytest.fixture(scope="module")
def predicted(tmp_path_factory):
    """What the models say of the rows, and what the script says in one process without tabsym; by name."""
    folder, models = tmp_path_factory.mktemp("stacks"), {"-".join(case): stack(*case) for case in CASES}
    X = table()
    models["blended"] = blended()
    models["dates"] = make_pipeline(
        DateParts(),
        WideBoostRegressor(
            WideRegressor(**ADDITIVE | {"loss": "squared_error"}),
            LGBMRegressor(**BOOSTERS["lightgbm"][2]),
            mode="margin",
            early_stopping=False,
            cv=3,
        ),
    ).fit(X, target(X, "numbers"))
    for name, model in models.items():
        to_stack(model, folder / name)
    new = rows()
    text = {
        name: [None if pd.isna(one) else str(one) if name == "day" else one for one in new[name].tolist()]
        for name in new
    }
    (folder / "rows.json").write_text(json.dumps(text))
    script = re.search(r"## Stacks.*?```py\n(.*?)```", (ROOT / "docs" / "serving.md").read_text(), re.DOTALL)[1]
    (folder / "script.py").write_text(script)
    shutil.copy(SCORER, folder / "from_spec.py")
    program = (
        "import json, sys; from script import predict; rows = json.load(open('rows.json'))\n"
        f"print(json.dumps({{name: predict(name, rows).tolist() for name in {list(models)}}}))\n"
        "assert 'tabsym' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False, env={}
    )
    assert done.returncode == 0, done.stderr
    return {name: (model.predict(new), np.array(json.loads(done.stdout)[name])) for name, model in models.items()}


@pytest.mark.parametrize("name", [*map("-".join, CASES), "blended", "dates"])
@pytest.mark.slow
def test_the_script_of_the_guide_predicts_as_the_stack_does(name, predicted):
    expected, found = predicted[name]
    if expected.dtype.kind in "OUT":
        assert found.tolist() == expected.tolist() and len(set(found.tolist())) > 1
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.std(expected))


def test_the_specs_are_as_the_schema_has_them_and_columns_as_the_booster_got_them(tmp_path):
    model = stack("lightgbm", "numbers", "margin", "ordinal")
    written = json.loads((to_stack(model, tmp_path) / "stack.json").read_text())
    (part,) = written["parts"]
    for spec in (written["wide"], part["inputs"]):
        assert not list(violations(spec, spec_schema(), spec_schema()))
    shops = table()["shop"].value_counts()
    found = from_spec(part["inputs"]).transform({name: rows()[name].tolist() for name in rows()})
    expected = rows()["shop"].map({name: float(rank) for rank, name in enumerate(shops.index)})
    np.testing.assert_array_equal(found["shop"][:40], expected[:40])
    assert part["names"] == list(found) == list(table())


@pytest.mark.slow
def test_a_winner_by_the_command(tmp_path, capsys):
    frame = table().drop(columns="code").assign(y=target(table(), "three"))
    frame["day"] = frame["day"].dt.strftime("%d.%m.%Y")
    booster = LGBMClassifier(**BOOSTERS["lightgbm"][2])
    contender = all_contenders()["wide-lightgbm"]
    quick = dataclasses.replace(contender, make=lambda *given: contender.make(*given).set_params(booster=booster))
    best = train_best(
        quick, prepare(frame, "y", task="multiclass"), SplitPlan("random", None, 3, 1, 0),
        choose_metric("multiclass", None), None, 0, 1,
    )  # fmt: skip
    path = best.save(tmp_path / "best.skops")
    assert main(["export", str(path), "--to", "stack"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'best-stack'}\n"
    written = json.loads((tmp_path / "best-stack" / "stack.json").read_text())
    new = frame.drop(columns="y").head(20)
    margins = best.estimator.wide_.decision_function(best.features.apply(new))
    np.testing.assert_allclose(from_spec(written["wide"]).decision_function(new), margins, atol=1e-10)
    assert written["wide"]["classes"] == ["low", "mid", "top"]
    for part, (_, layer) in zip(written["parts"], best.estimator._layers, strict=True):
        if layer is not None:
            got = from_spec(part["inputs"]).transform(new)
            frame_of_booster = layer.coder.transform(best.features.apply(new))
            for name, values in got.items():
                column = frame_of_booster[name]
                codes = column.cat.codes.replace(-1, np.nan) if column.dtype == "category" else column
                np.testing.assert_array_equal(np.asarray(values, float), np.asarray(codes, float))


def test_what_has_no_files_is_refused(tmp_path):
    X, y = table().drop(columns="day"), target(table(), "numbers")
    wide = WideRegressor(**ADDITIVE | {"loss": "squared_error"})
    booster = HistGradientBoostingRegressor(max_iter=3)
    hist = WideBoostRegressor(wide, booster, mode="feature", early_stopping=False, cv=3)
    with pytest.raises(TypeError, match=r"HistGradientBoostingRegressor has no file of its own.* LightGBM, XGBoost"):
        to_stack(hist.fit(X, y), tmp_path / "hist")
    own = hist.set_params(booster=LGBMRegressor(n_estimators=3, verbosity=-1), codes=OrdinalEncoder())
    with pytest.raises(TypeError, match=r"coded by OrdinalEncoder, which no export holds; use codes='ordinal'"):
        to_stack(own.fit(X[["shop", "flag"]].fillna("none"), y), tmp_path / "own")
    wide.fit(X, y)
    with pytest.raises(TypeError, match="WideRegressor is no stack; to_spec"):
        to_stack(wide, tmp_path / "wide")
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError, match=r"adds boosters to a wide model.*tabsym.export.to_stack"):
        to_spec(own)


def test_a_stack_that_took_no_booster_is_its_wide_model():
    X, y = table(), target(table(), "numbers")
    model = WideBoostRegressor(early_stopping=0.3).fit(X[["shop"]], np.where(X["shop"] == "a", 1.0, 0.0) + 0 * y)
    assert model.shares_ == {"wide": 1.0}
    np.testing.assert_allclose(from_spec(to_spec(model)).predict(X[["shop"]]), model.predict(X[["shop"]]), atol=1e-12)
