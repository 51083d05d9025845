"""Numbers that users give by class: of frames, Series and mappings, by name and in any order."""

import copy
import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabsym import WideClassifier, WideSGDClassifier
from tabsym.models.checks import by_class, numbers_by_class

MOMENTS = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[us]")
CLASSES = [
    (["a", "b", "c"], ["a", "b", "c"]),
    ([1, 2, 3], ["1", "2", "3"]),
    (["1", "2", "3"], [1, 2, 3]),
    ([1.0, 2.0, 3.0], [1, 2, 3]),
    (np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3])),
    (MOMENTS, [str(one) for one in MOMENTS]),
    (MOMENTS, [pd.Timestamp(one) for one in MOMENTS]),
    ([datetime.date(2024, 1, day) for day in (1, 2, 3)], ["2024-01-01", "2024-01-02", "2024-01-03"]),
]


@pytest.mark.parametrize(("classes", "names"), CLASSES)
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_columns_are_those_of_the_classes(classes, names, order):
    values = pd.DataFrame(np.arange(6.0).reshape(2, 3), columns=pd.Index(names, dtype=object))
    np.testing.assert_array_equal(by_class(values.iloc[:, order], classes, "x").to_numpy(), values.to_numpy())
    if all(isinstance(name, str) for name in names):
        frame = pl.DataFrame(values.iloc[:, order].to_dict("list"))
        np.testing.assert_array_equal(by_class(frame, classes, "x").to_numpy(), values.to_numpy())
    row = values.iloc[1, order]
    assert list(numbers_by_class(row, classes, "x")) == list(numbers_by_class(dict(row), classes, "x")) == [3, 4, 5]


def test_columns_of_an_array_are_in_the_order_of_the_classes():
    classes = [str(number) for number in (0, 1, 10, 2)]  # sorted as text
    frame = pd.DataFrame(np.arange(8.0).reshape(2, 4))
    assert by_class(frame, classes, "x") is frame
    assert by_class(frame, None, "x") is frame
    assert by_class(frame, ["a", "b"], "x") is frame  # of two classes there is one linear predictor


def problem(labels=("a", "b", "c"), n=400):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("pqr"), n), "h": rng.choice(list("xyz"), n)})
    y = np.array(labels, dtype=object)[np.minimum(rng.integers(0, 4, n), 2)]
    given = pd.DataFrame({"a": [-2.0, 1.0, 0.0], "b": [0.0, 1.0, 0.5], "c": [2.0, -2.0, 0.0]}, index=list("pqr"))
    return X, y, given


def test_given_coefficients_are_the_same_however_they_are_given():
    X, y, given = problem()
    wanted = WideClassifier(interactions=None, fixed={"g": given}).fit(X, y).predict_proba(X)
    turned = given[["c", "a", "b"]]
    others = [
        turned,
        dict(turned.iterrows()),
        {key: dict(row) for key, row in turned.iterrows()},
        {key: row.tolist() for key, row in given.iterrows()},
        given.set_axis([0, 1, 2], axis=1),
    ]
    for other in others:
        model = WideClassifier(interactions=None, fixed={"g": other})
        for unfitted in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301
            np.testing.assert_array_equal(unfitted.fit(X, y).predict_proba(X), wanted)


def test_given_coefficients_of_moments_are_the_same_after_a_pickle(tmp_path):
    """Also beside a column of text, and with a slope by class."""
    X, _, given = problem()
    X["z"] = np.random.default_rng(3).normal(size=len(X))
    y = MOMENTS[np.random.default_rng(1).integers(0, 3, len(X))]
    frame = given.set_axis([pd.Timestamp(one) for one in MOMENTS], axis=1)[::-1].assign(note="text")
    slope = pd.Series([0.1, 0.2, -0.3], index=[str(one) for one in MOMENTS[[2, 0, 1]]])
    for fixed in ({"g": frame.drop(columns="note")}, {"g": frame}, {"z": slope}, {"z": dict(slope)}):
        model = WideClassifier(interactions=None, numeric="linear", fixed=fixed)
        wanted = model.fit(X, y).predict_proba(X)
        again = pickle.loads(pickle.dumps(model))  # noqa: S301
        np.testing.assert_array_equal(again.predict_proba(X), wanted)
        np.testing.assert_array_equal(again.fit(X, y).predict_proba(X), wanted)


@pytest.mark.parametrize(
    "labels",
    [
        [datetime.date(2024, 1, day) for day in (1, 2, 3)],
        [pd.Timestamp(f"2024-01-0{day}", tz="Europe/Paris") for day in (1, 2, 3)],
        [0.0, 1.0, 2.0],
    ],
)
def test_what_is_given_by_class_survives_a_pickle_whatever_the_classes_are(labels):
    X, _, given = problem()
    y = pd.Series([labels[code] for code in np.random.default_rng(1).integers(0, 3, len(X))])
    for columns in (labels, [str(label) for label in labels]):
        frame = given.set_axis(pd.Index(columns, dtype=object), axis=1).astype(object)[::-1]
        model = WideClassifier(interactions=None, fixed={"g": frame})
        wanted = model.fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).fit(X, y).predict_proba(X), wanted)  # noqa: S301


def test_the_scale_of_a_product_is_read_by_class():
    X, y, _ = problem()
    model = WideSGDClassifier("u[g]*v[h] + b[1]", random_state=0).fit(X, y)
    name = "scale of u*v"
    scale = model.coefs_[name].iloc[0]
    for given in (scale[["c", "a", "b"]], dict(scale[["b", "c", "a"]])):
        doubled = model.with_coefs({name: {key: 2 * value for key, value in dict(given).items()}})
        np.testing.assert_allclose(doubled.coefs_[name].iloc[0], 2 * scale)
    start = {**model.coefs_, name: scale[["c", "a", "b"]]}
    started = WideSGDClassifier("u[g]*v[h] + b[1]", coef_init=start, max_iter=1, learning_rate=1e-12).fit(X, y)
    np.testing.assert_allclose(started.predict_proba(X), model.predict_proba(X), atol=1e-6)
    with pytest.raises(ValueError, match=r"needs \['a', 'b', 'c'\]"):
        WideSGDClassifier("u[g]*v[h] + b[1]", coef_init={**start, name: scale.set_axis(["a", "b", "C"])}).fit(X, y)


def test_one_number_is_that_of_every_class_and_two_are_of_none():
    X, y, _ = problem()
    model = WideClassifier(interactions=None).fit(X, y)
    same = model.with_coefs({"g": {"p": 0.5, "q": [0.5]}}).coefs_["g"][["a", "b", "c"]]
    assert (same.loc[["p", "q"]] == 0.5).all(axis=None)
    np.testing.assert_allclose(same.loc["r"], model.coefs_["g"].loc["r", ["a", "b", "c"]])
    for numbers in ([0.1, 0.2], [0.1] * 4, []):
        words = rf"coefs\['g'\] holds {len(numbers)} numbers for 'p'; give 3, or one for all"
        with pytest.raises(ValueError, match=words):
            model.with_coefs({"g": {"p": numbers}})


def test_a_factor_may_be_0_in_one_class():
    """There is no scale of the product then, as no factor can be divided by 0."""
    X, y, _ = problem()
    model = WideSGDClassifier("u[g]*s[1] + b[1]", random_state=0).fit(X, y)
    scale = model.coefs_["scale of s*u"].iloc[0]
    by_class = {"a": 0.0, "b": 1.0, "c": 2.0}
    for given in ({"s": {"s": by_class}}, {"u": dict.fromkeys("pqr", by_class)}):
        changed = model.with_coefs(given).coefs_
        product = changed["u"][list(by_class)] * changed["s"][list(by_class)].iloc[0]
        factor = model.coefs_["u"][list(by_class)] if "s" in given else 1.0
        np.testing.assert_allclose(product, factor * (scale * pd.Series(by_class)).to_numpy() * np.ones((3, 3)))


def test_names_of_no_class_are_refused_in_the_same_words_everywhere():
    X, y, given = problem()
    wrong = given.rename(columns={"a": "A"})
    rows = pd.DataFrame(np.zeros((len(X), 3)), columns=["A", "b", "c"])
    fitted = WideClassifier(interactions=None).fit(X, y)
    for refused in (
        lambda: WideClassifier(interactions=None, fixed={"g": wrong}).fit(X, y),
        lambda: WideSGDClassifier(coef_init={"g": wrong}).fit(X, y),
        lambda: fitted.with_coefs({"g": wrong}),
        lambda: fitted.with_coefs({"g": {"p": wrong.loc["p"]}}),
        lambda: fitted.predict(X, offset=rows),
        lambda: WideClassifier(interactions=None).fit(X, y, offset=rows),
    ):
        with pytest.raises(ValueError, match=r"has the columns \['A', 'b', 'c'\], and needs \['a', 'b', 'c'\]"):
            refused()


def test_text_among_given_coefficients_is_told_by_the_name_of_its_term():
    X, y, given = problem()
    with pytest.raises(ValueError, match=r"fixed\['g'\] holds what is no number in the columns 'a', 'b', 'c'"):
        WideClassifier(interactions=None, fixed={"g": given.astype(object).assign(a="text")}).fit(X, y)


def test_offsets_of_moments_are_read_alike_in_fit_and_predict():
    X, _, _ = problem()
    y = MOMENTS[np.random.default_rng(1).integers(0, 3, len(X))]
    offset = pd.DataFrame(np.random.default_rng(2).normal(size=(len(X), 3)), columns=[str(one) for one in MOMENTS])
    turned = offset[offset.columns[::-1]]
    model = WideClassifier(interactions=None).fit(X, y, offset=offset)
    other = WideClassifier(interactions=None).fit(X, y, offset=turned)
    np.testing.assert_array_equal(model.predict_proba(X, offset=offset), other.predict_proba(X, offset=turned))
