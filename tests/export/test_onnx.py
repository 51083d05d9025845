"""`to_onnx`: what onnxruntime computes is what the model predicts."""

import datetime as dt
import sys

import numpy as np
import onnx
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from tabsym import (
    DateParts,
    MODLEncoder,
    OneHotEncoder,
    TIWSEncoder,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.export import to_onnx
from tests.export.test_spec import ENCODERS, encoder_rows, encoder_table
from tests.exported import MODELS, close, fitted, new_rows, scores, table, target
from tests.formulas import random_formula, random_table
from tests.oracles.onnx_runs import run

MISSING = "(missing)"  # the empty text is a category of the tables


def check(model, new, missing_text=""):
    """Predictions, labels and probabilities by onnxruntime are the model's."""
    found = run(to_onnx(model, missing_text=missing_text), new, missing_text)
    if not hasattr(model, "classes_"):
        assert found["variable"].shape == (len(new), 1) and found["variable"].dtype == np.float64
        assert close(found["variable"][:, 0], model.predict(new), model, new)
        return
    assert found["label"].tolist() == model.predict(new).tolist()
    if hasattr(model, "predict_proba"):
        rounding = 1e-13 + 1e-15 * np.abs(scores(model, new)).max()  # of linear predictors, in the hundreds with dates
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), rtol=0, atol=rounding)
    else:
        assert close(found["scores"].reshape(scores(model, new).shape), scores(model, new), model, new)


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_predicts_as_the_model_does(name):
    check(fitted(name), new_rows(), MISSING)


@pytest.mark.parametrize("style", ["moments", "%d.%m.%Y %H:%M:%S"])
def test_parts_of_dates(style):
    """All days around turns of centuries and 12 years, at the bounds of hours and minutes too."""
    spans = (("1899-12-20", "1901-01-10"), ("1995-12-20", "2008-03-10"), ("2099-12-20", "2101-01-10"))
    days = pd.DatetimeIndex(np.concatenate([pd.date_range(*span) for span in spans]))
    at = pd.Series(days) + pd.to_timedelta(np.arange(len(days)) * 3_599 % 86_400, unit="s")
    y = at.dt.month + at.dt.isocalendar().week.astype(float) / 3 + at.dt.day_of_week**2 + at.dt.hour / 5 + at.dt.minute
    at[7:9] = pd.NaT
    X = pd.DataFrame({"at": at if style == "moments" else at.dt.strftime(style)})
    model = make_pipeline(DateParts(), WideRegressor(loss="squared_error", interactions=None, alpha=1e-3))
    model.fit(X, y)
    found = run(to_onnx(model), pd.DataFrame({"at": at}))["variable"][:, 0]
    np.testing.assert_allclose(found, model.predict(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("before", [(), (DateParts(),)], ids=["moments", "parts"])
def test_moments_at_the_bounds_of_bins(before):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"t": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**13, 500), unit="us")})
    model = make_pipeline(*before, WideRegressor(loss="squared_error", numeric="quantile", alpha=0.0))
    model.fit(X, rng.normal(size=500))
    own = to_onnx(model if before else model[-1])
    np.testing.assert_allclose(run(own, X)["variable"][:, 0], model.predict(X), rtol=1e-12, atol=1e-12)


def test_durations_and_dates_with_a_zone_are_days():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"took": pd.to_timedelta(rng.integers(0, 10**6, 120), unit="s"), "at": pd.Timestamp("2024-01-01")})
    X["at"] = (X["at"] + X["took"]).dt.tz_localize("Europe/Berlin")
    y = X["took"].dt.total_seconds() / 86_400
    for numeric in ("linear", "quantile"):
        model = WideRegressor(loss="squared_error", numeric=numeric, interactions=None).fit(X, y)
        new = X.assign(at=X["at"].dt.tz_convert("UTC").dt.tz_localize(None))
        np.testing.assert_allclose(run(to_onnx(model), new)["variable"][:, 0], model.predict(X), rtol=1e-9)


def of_formula(seed):
    rng = np.random.default_rng(seed)
    tree, X, new = random_formula(rng), random_table(rng, 100), random_table(rng, 60)
    y = X["x"] + (X["a"] == "k") + rng.normal(size=len(X)) / 3
    online = WideSGDRegressor(str(tree), max_iter=2, random_state=0)
    new.loc[:5, "a"], new.loc[3:9, "c"], new.loc[20:25, "b"] = "zz", "zz", None
    return (online if seed % 2 else WideRegressor(str(tree), loss="squared_error", max_iter=5)).fit(X, y), new


def of_options(seed):
    """A model with random options, over columns of all kinds."""
    rng = np.random.default_rng(seed)
    X, new = table(200, seed), new_rows()
    y = target(table(200, seed), seed)

    def pick(*values):
        return values[rng.integers(len(values))]

    is_class, online = bool(rng.integers(2)), bool(rng.integers(2))
    options = {
        "numeric": pick("linear", "quantile") if online else pick("linear", "quantile", "smooth"),
        "interactions": pick(None, "pairwise", [("text", "whole")]),
        "categorical_features": ["text", "whole", *rng.choice(["fraction", "flag"], rng.integers(3), False)],
    } | ({"random_state": 0, "max_iter": 3} if online else {"count_effect": pick(True, False)})
    if is_class:
        kind = WideSGDClassifier if online else WideClassifier
        return kind(**options).fit(X, np.digitize(y, pick([1], [1, 3]))), new
    options["loss"] = pick("squared_error", "poisson")
    beside = "exposure_column" if options["loss"] == "poisson" else "offset_column"
    options |= pick({}, {beside: "exposure"})
    y = np.maximum(y, 0).round() if options["loss"] == "poisson" else y
    return (WideSGDRegressor if online else WideRegressor)(**options).fit(X, y), new


IGNORED = ["ignore:The formula of", "ignore:.* ended short of the optimum", "ignore:Training stopped"]


@pytest.mark.filterwarnings(*IGNORED)
@pytest.mark.parametrize("seed", range(500, 515))
def test_random_formulas(seed):
    check(*of_formula(seed))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(12))
def test_random_options(seed):
    check(*of_options(seed), MISSING)


def test_the_bounds_of_bins_and_the_numbers_next_to_them():
    """Doubles are not rounded: a number belongs to the bin that it belongs to in the model."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.gamma(2.0, 1.0, 400), "y": rng.integers(0, 30, 400) / 10})
    y = np.sin(3 * X["x"]) + np.floor(X["y"]) + rng.normal(size=400) / 9
    model = WideRegressor(loss="squared_error", numeric="quantile").fit(X, y)
    near = np.concatenate([X, np.nextafter(X, 99.0), np.nextafter(X, -99.0), X.astype(np.float32)])
    check(model, pd.DataFrame(near, columns=["x", "y"]))


def test_categories_of_numbers_and_strange_text():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "whole": rng.choice([7, -3, 2**53 - 1, 2**53 - 2], 300).astype(np.int64),
            "large": rng.choice([1e300, -1e300, 2.0**63, 4.0], 300),
            "fraction": rng.choice([0.1, 1 / 3, -7.5, 1e300, np.nan, 3.0], 300),
            "text": rng.choice(np.array(["a\0b", "é\u200b", "'", '"', " ", "nan", "None", None], dtype=object), 300),
        }
    )
    y = (
        X["whole"].rank()
        + X["large"].rank()
        + X["fraction"].rank().fillna(0)
        + X["text"].map(str).rank()
        + rng.normal(size=300)
    )
    pairs = [("whole", "fraction"), ("fraction", "text")]
    model = WideRegressor(loss="squared_error", categorical_features="all", interactions=pairs, alpha=0.1).fit(X, y)
    odd = {"whole": 0.0, "large": 5.0, "fraction": np.nextafter(0.1, 1), "text": "a"}
    new = pd.concat([X, X[:9].assign(**odd), X[:9].assign(whole=7.5, fraction=1e-300, text=None)], ignore_index=True)
    check(model, new)
    assert len(set(model.predict(new).round(9))) > 50


def test_three_columns_are_looked_up_together():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(list("klmnop"), 200) for name in "abc"})
    model = WideRegressor("w[a, b, c] + t[b, c] + s[1]", loss="squared_error").fit(X, rng.normal(size=200))
    check(model, pd.DataFrame({name: rng.choice(list("klmnopq"), 500) for name in "abc"}))


def test_names_of_columns_that_are_names_of_tensors():
    X = table()[["whole", "normal", "thirds"]].set_axis(["tabsym_0", "tabsym_constant_0", "label"], axis=1)
    check(WideRegressor(loss="squared_error").fit(X, target(table())), X)
    with pytest.raises(ValueError, match="The table has a column 'label', as an output would be called; rename it bef"):
        to_onnx(WideClassifier().fit(X, target(table()) > 2))


def test_functions_of_numbers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(list("ab"), 99), "x": rng.uniform(0.1, 2, 99), "z": rng.uniform(1, 2, 99)})
    text = " + ".join(f"w{place}[1] * {name}(x)" for place, name in enumerate(["log", "log1p", "log2", "log10", "exp"]))
    model = WideRegressor(f"{text} + v[c] * sqrt(abs(x - z)) / z**2 + b[1]", loss="squared_error", alpha=0.1)
    check(model.fit(X, rng.normal(size=99)), X)


def test_extreme_scores_neither_overflow_nor_vanish():
    model = WideClassifier("a[c] + b[1]", alpha=0.0).fit(pd.DataFrame({"c": list("uvuv")}), [0, 1, 1, 0])
    check(model.with_coefs({"a": {"u": 5000.0, "v": -5000.0}}), pd.DataFrame({"c": ["u", "v", None]}))


def test_a_missing_number_without_a_fill_is_nan():
    X = pd.DataFrame({"c": ["a", "b"] * 50, "x": np.arange(100.0)})
    model = WideRegressor("w[c] * x + b[1]", loss="squared_error").fit(X, X["x"])
    new = X.assign(x=X["x"].where(X["x"] > 5))
    assert np.isnan(run(to_onnx(model), new)["variable"][:, 0]).tolist() == new["x"].isna().tolist()


def test_what_the_file_says(tmp_path):
    model = fitted("offset")
    proto = to_onnx(model, tmp_path / "model.onnx", missing_text=MISSING)
    assert onnx.load(tmp_path / "model.onnx") == proto
    assert {one.domain: one.version for one in proto.opset_import} == {"": 18, "ai.onnx.ml": 3}
    assert [(one.key, one.value) for one in proto.metadata_props] == [("missing_text", MISSING)]
    types = {one.name: one.type.tensor_type.elem_type for one in proto.graph.input}
    texts = [name for name, kind in types.items() if kind == onnx.TensorProto.STRING]
    assert texts == ["text"] and "exposure" in types  # the offset
    assert {types[name] for name in types if name != "text"} == {onnx.TensorProto.DOUBLE}


def test_what_onnx_cannot_hold_is_refused(monkeypatch):
    X, y = table(), target(table())
    fit = WideRegressor(loss="squared_error", interactions=None).fit
    moments = WideRegressor(loss="squared_error", categorical_features="all", alpha=0.0).fit(X[["moment"]], y)
    with pytest.raises(ValueError, match=r"Column 'moment' holds .* make them dates, numbers or text before"):
        to_onnx(moments)
    with pytest.raises(ValueError, match=r"'' is a category of column 'text' and would stand for missing text, too"):
        to_onnx(fit(X[["text"]], y))
    strict = WideRegressor(loss="squared_error", handle_unknown="error", interactions=None)
    with pytest.raises(ValueError, match="handle_unknown='error' raises an error for unknown categories of column 'te"):
        to_onnx(strict.fit(X[["text"]], y), missing_text=MISSING)
    coded = {"alpha": 0.0, "categorical_features": "all", "loss": "squared_error"}
    for values, words in (
        ([2**53 + 1, 5] * 50, rf"Column 'c' holds {2**53 + 1}, which is neither text nor a double"),
        ([dt.time(8), dt.time(9)] * 50, r"Column 'c' holds datetime\.time\(8, 0\), which is neither"),
    ):
        frame = pd.DataFrame({"c": pd.Series(values, dtype=object)})
        with pytest.raises(ValueError, match=words):
            to_onnx(WideRegressor(**coded).fit(frame, np.arange(100.0) % 2))
    with pytest.raises(ValueError, match="uses no column: its prediction is the same for all rows"):
        to_onnx(WideRegressor("b[1]", loss="squared_error").fit(X[["whole"]], y))
    classes = np.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], dtype=object)[(y > 2).astype(int)]
    with pytest.raises(ValueError, match="are not all text, whole numbers, numbers or booleans"):
        to_onnx(WideClassifier(interactions=None).fit(X[["whole"]], classes))
    with pytest.raises(TypeError, match="Ridge is no wide model"):
        to_onnx(Ridge().fit(X[["whole"]], y))
    boosted = WideBoostRegressor(mode="margin", early_stopping=False, cv=3).fit(X[["whole", "normal"]], y)
    with pytest.raises(TypeError, match=r"adds boosters to a wide model, .*; tabsym\.export\.to_stack writes"):
        to_onnx(boosted)
    check(boosted.wide_, X[["whole", "normal"]])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r'to_onnx needs onnx: pip install "tabsym\[export\]"'):
        to_onnx(boosted.wide_)


# -- encoders -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda one: "".join(str(one).split()))
def test_encoders(encoder):
    X, y = encoder_table()
    expected, new = encoder.fit(X, y.astype(str)).transform(encoder_rows()), encoder_rows()
    found = run(to_onnx(encoder), new)["variable"]
    if getattr(encoder, "output", None) == "group":
        assert found.tolist() == expected.astype(object).where(expected.notna(), "").to_numpy().tolist()
    else:
        np.testing.assert_array_equal(found, expected.to_numpy(dtype=np.float64))


TEXTS = {
    "text": list("xyz") * 4,
    "category": pd.Categorical(list("xyz") * 4),
    "object": np.array(["x", None, "z"] * 4, dtype=object),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_that_an_encoder_passes_on(kind):
    X = pd.DataFrame({"s": list("aabb") * 3, "t": TEXTS[kind], "x": np.arange(12.0)})
    y = list("nnpp") * 3
    encoders = [
        OneHotEncoder(cols=["s"]),
        MODLEncoder(cols=["s"], output="mean"),
        TIWSEncoder(cols=["s"], handle_missing="return_nan", handle_unknown="return_nan"),
        WideEncoder(cols=["s"]),
    ]
    for encoder in encoders:
        says = "passes on the text of column 't' along with numbers, such as those of column 's.*'.*encode 't', too"
        with pytest.raises(ValueError, match=says):
            to_onnx(encoder.fit(X[["s", "t"]], y))
    with pytest.raises(ValueError, match="makes text of some columns and numbers of column 'x'"):
        to_onnx(MODLEncoder(cols=["s"], output="group").fit(X, y))
    alone = MODLEncoder(cols=["s"], output="group").fit(X[["s", "t"]], y)
    proto, expected = to_onnx(alone), alone.transform(X[["s", "t"]]).astype(object)
    assert proto.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.STRING
    found = run(proto, X[["s", "t"]])["variable"]
    assert found.tolist() == expected.where(expected.notna(), "").to_numpy().tolist()


def test_categories_of_numbers_are_passed_on_as_numbers():
    X = pd.DataFrame({"s": list("aabb") * 3, "t": pd.Categorical([1, 2, 3] * 4)})
    encoder = OneHotEncoder(cols=["s"]).fit(X)
    found = run(to_onnx(encoder), X.astype({"t": float}))["variable"]
    np.testing.assert_array_equal(found, encoder.transform(X).astype(float).to_numpy())


def test_encoders_that_are_refused():
    X, y = encoder_table()
    with pytest.raises(ValueError, match="makes text of some columns and numbers of column 'x', and an ONNX"):
        to_onnx(MODLEncoder(cols=["s"]).fit(X[["s", "x"]], y.astype(str)))
    with pytest.raises(ValueError, match="handle_unknown='error' raises an error for unknown categories of column 's'"):
        to_onnx(OneHotEncoder(handle_unknown="error", cols=["s"]).fit(X))
    with pytest.raises(ValueError, match="makes no column, as all are constant or dropped, and an ONNX output has"):
        to_onnx(OneHotEncoder(drop_invariant=True).fit(pd.DataFrame({"a": list("kkkk")})))
    with pytest.raises(ValueError, match="'' is a category of column 's'"):
        to_onnx(WideEncoder(cols=["s"]).fit(X.fillna({"s": ""}), y.astype(str)))
