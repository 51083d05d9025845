"""Steps of tabsym in pipelines that skl2onnx converts, run by onnxruntime."""

import sys

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skl2onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tabsym import (
    MODLEncoder,
    OneHotEncoder,
    TIWSEncoder,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.export import register_onnx_converters
from tests.oracles.onnx_runs import run

ROUNDING = 1e-5
"""What skl2onnx's own steps compute in single precision, of the spread of predictions."""


@pytest.fixture(autouse=True)
def registered():
    register_onnx_converters()


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "colour": rng.choice(np.array(["red", "green", "blue", None], dtype=object), n),
            "size": rng.choice(np.array(["S", "M", "L"], dtype=object), n),
            "rooms": rng.integers(0, 5, n).astype(float),
            "price": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    y = X["price"].fillna(0.5) + (X["colour"] == "red") + X["rooms"] / 3 + rng.normal(size=n) / 5
    return X, y


def rows():
    new = table(90, 1)[0]
    new.loc[:9, "colour"], new.loc[5:15, "rooms"] = "never seen", 77.0
    return new


def types(X):
    return [
        (name, (DoubleTensorType if pd.api.types.is_numeric_dtype(X[name]) else StringTensorType)([None, 1]))
        for name in X
    ]


def converted(model, X, **options):
    return skl2onnx.to_onnx(model, initial_types=types(X), options=options or None)


@pytest.mark.parametrize("online", [False, True])
def test_models_alone_and_as_a_last_step(online):
    X, y = table()
    classes, numbers = (WideSGDClassifier, WideSGDRegressor) if online else (WideClassifier, WideRegressor)
    own = {"random_state": 0} if online else {}
    for labels in (np.where(y > 1, "dear", "cheap"), np.digitize(y, [0.5, 1.5])):
        model = make_pipeline(classes(**own)).fit(X, labels)
        found = run(converted(model, X, zipmap=False), rows())
        assert found["label"].tolist() == model.predict(rows()).tolist()
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows()), rtol=0, atol=1e-13)
    (zipped,) = [one for name, one in run(converted(model, X), rows()).items() if name == "output_probability"]
    np.testing.assert_allclose(pd.DataFrame(zipped), model.predict_proba(rows()), atol=1e-6)  # floats
    model = numbers(**own).fit(X, y)
    np.testing.assert_allclose(run(converted(model, X), rows())["variable"][:, 0], model.predict(rows()), rtol=1e-13)


TEXT, NUMBERS = ["colour", "size"], ["rooms", "price"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoder",
    [
        MODLEncoder(output="mean"),
        OneHotEncoder(),
        WideEncoder(),
        TIWSEncoder(handle_missing="return_nan", handle_unknown="return_nan", cols=["size"]),
        make_column_transformer((OneHotEncoder(), TEXT), (StandardScaler(), NUMBERS)),
        make_column_transformer((MODLEncoder(output="mean"), TEXT), (MODLEncoder(output="mean"), NUMBERS)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_encoders_before_a_model_of_scikit_learn(encoder):
    X, y = table()
    X, new = X.fillna({"price": 0.5, "colour": ""}), rows().fillna({"price": 0.5, "colour": ""})
    if isinstance(encoder, TIWSEncoder):
        X, new = X[["size", *NUMBERS]], new[["size", *NUMBERS]]
    model = make_pipeline(encoder, Ridge()).fit(X.replace("", None), y)
    expected = model.predict(new.replace("", None))
    found = run(converted(model, X), new)["variable"][:, 0]
    assert np.abs(found - expected).max() <= ROUNDING * np.std(expected)


def test_classes_behind_an_encoder_and_a_model_behind_a_step():
    X, y = table()
    model = make_pipeline(MODLEncoder(output="logodds"), LogisticRegression()).fit(X, y > 1)
    found = run(converted(model, X, zipmap=False), rows())
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows()), atol=ROUNDING)
    model = make_pipeline(MODLEncoder(), WideClassifier()).fit(X, np.where(y > 1, "dear", "cheap"))
    found = run(converted(model, X, zipmap=False), rows())
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows()), atol=1e-7)


def test_one_input_of_many_columns_and_other_types_of_numbers():
    X, y = table()
    model = WideRegressor(numeric="quantile").fit(X[NUMBERS].to_numpy(), y)
    for kind, dtype in ((DoubleTensorType, np.float64), (FloatTensorType, np.float32)):
        proto = skl2onnx.to_onnx(model, initial_types=[("x", kind([None, 2]))])
        new = rows()[NUMBERS].to_numpy(dtype)
        (found,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": new})
        np.testing.assert_allclose(found[:, 0], model.predict(new.astype(np.float64)), rtol=1e-6)
    scaled = make_pipeline(StandardScaler(), WideRegressor()).fit(X[NUMBERS].to_numpy(), y)
    proto = skl2onnx.to_onnx(scaled, initial_types=[("x", DoubleTensorType([None, 2]))])
    (found,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": rows()[NUMBERS].to_numpy()})
    np.testing.assert_allclose(found[:, 0], scaled.predict(rows()[NUMBERS].to_numpy()), rtol=1e-12)
    whole = WideRegressor(interactions=None).fit(X[["rooms"]].astype(int), y)
    proto = skl2onnx.to_onnx(whole, initial_types=[("rooms", Int64TensorType([None, 1]))])
    new = rows()[["rooms"]].fillna(0).astype(int)
    np.testing.assert_allclose(run(proto, new)["variable"][:, 0], whole.predict(new), rtol=1e-6)


def test_what_does_not_fit_is_said(monkeypatch):
    X, y = table()
    model = WideRegressor().fit(X, y)
    wrong = [(name, DoubleTensorType([None, 1])) for name in X]
    with pytest.raises(ValueError, match="Column 'colour' was text in fit, and its input is numbers; give it its type"):
        skl2onnx.to_onnx(model, initial_types=wrong)
    with pytest.raises(ValueError, match=r"fitted on 4 columns, and its inputs have \[1, 1, 1\]"):
        skl2onnx.to_onnx(model, initial_types=types(X)[1:])
    empty = WideRegressor().fit(X.fillna({"colour": ""}), y)
    with pytest.raises(ValueError, match="'' is a category of column 'colour'"):
        skl2onnx.to_onnx(empty, initial_types=types(X))
    proto = skl2onnx.to_onnx(empty, initial_types=types(X), options={id(empty): {"missing_text": "?"}})
    np.testing.assert_allclose(run(proto, rows(), "?")["variable"][:, 0], empty.predict(rows()), rtol=1e-13)
    halves = WideClassifier(interactions=None).fit(X, np.where(y > 1, 0.5, 1.0).astype(object))
    with pytest.raises(ValueError, match=r"The class 0\.5 is no label of skl2onnx"):
        skl2onnx.to_onnx(halves, initial_types=types(X), options={"zipmap": False})
    with pytest.raises(ValueError, match="tabsym's nodes need target_opset="):
        skl2onnx.to_onnx(model, initial_types=types(X), target_opset=12)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r'needs skl2onnx: pip install "tabsym\[export\]"'):
        register_onnx_converters()
