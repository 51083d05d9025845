"""Of sample weights only what they are beside each other matters, wherever a model counts rows by them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.utils.class_weight import compute_class_weight

from tabsym import (
    JitterTreeClassifier,
    JitterTreeRegressor,
    MODLEncoder,
    SelectiveNaiveBayesClassifier,
    TIWSEncoder,
    WideBoostClassifier,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.compare.fitting import Data, train
from tabsym.frame.target import (
    design_effect,
    relative_weights,
    warn_of_light_total,
    weights_of_classes,
    weights_within_classes,
)
from tests.options import ADDITIVE

UNITS = 1e-3, 1_700.0


def weighted_table(n=300, seed=0):
    """Two normal numbers, of which one tells, two columns of symbols, classes, amounts and weights (n,)."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(2)})
    X["a"], X["b"] = rng.choice(list("abcdefgh"), n), rng.choice([f"s{i}" for i in range(60)], n)
    score = 2.0 * np.sin(2.0 * X["x0"]) + (X["a"] < "d")
    amounts = np.exp(score.to_numpy() + rng.normal(0.0, 0.3, n))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(int), amounts, rng.gamma(2.0, size=n) + 0.1


SOLVED = WideClassifier(**ADDITIVE), WideRegressor(loss="squared_error", **ADDITIVE)
ONLINE = WideSGDClassifier(random_state=0), WideSGDRegressor(random_state=0)


@pytest.mark.parametrize("numeric", ["linear", "quantile", "modl", "smooth"])
@pytest.mark.parametrize(
    ("models", "options"),
    [
        (ONLINE, {}),
        (ONLINE, {"early_stopping": True, "handle_unknown": "similar"}),
        (SOLVED, {"interactions": "auto", "alpha": 0.01}),
        (SOLVED, {"interactions": "pairwise", "count_effect": True}),
    ],
    ids=["plain", "stopped", "crossed", "evidence"],
)
def test_weights_in_other_units_make_the_same_models(numeric, models, options):
    if numeric == "smooth" and models is ONLINE:
        return  # solved models alone take it
    X, classes, amounts, weight = weighted_table(100 if numeric == "modl" else 300)  # joint grids take long
    new = X.assign(a=np.where(np.arange(len(X)) % 3, X["a"], "new"))
    for given, y, asked in zip(models, (classes, amounts), ("predict_proba", "predict"), strict=True):
        model = clone(given).set_params(numeric=numeric, **options)
        small, large = (getattr(model.fit(X, y, unit * weight), asked)(new) for unit in UNITS)
        np.testing.assert_allclose(small, large, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("numeric", ["modl", "smooth"])
def test_equal_weights_are_none(numeric):
    X, classes, _, _ = weighted_table()
    model = WideClassifier(**ADDITIVE | {"numeric": numeric})
    expected = model.fit(X, classes).predict_proba(X)
    for unit in UNITS:
        found = model.fit(X, classes, np.full(len(X), unit)).predict_proba(X)
        np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.slow
def test_weights_in_other_units_make_the_same_features_and_stacks():
    X, classes, amounts, weight = weighted_table()
    encoder = WideEncoder(model=WideRegressor(loss="squared_error", **ADDITIVE | {"numeric": "smooth"}))
    small, large = (encoder.fit_transform(X, amounts, sample_weight=unit * weight) for unit in UNITS)
    np.testing.assert_allclose(small[["a", "b"]], large[["a", "b"]], rtol=1e-8, atol=1e-8)
    stacks = [
        (
            WideBoostClassifier(booster=HistGradientBoostingClassifier(), mode="feature", random_state=0),
            classes,
            "predict_proba",
        ),
        (
            WideBoostRegressor(booster=HistGradientBoostingRegressor(), mode="feature", random_state=0),
            amounts,
            "predict",
        ),
    ]
    for stack, y, asked in stacks:
        small, large = (getattr(stack.fit(X, y, unit * weight), asked)(X) for unit in UNITS)
        np.testing.assert_allclose(small, large, rtol=1e-8)


def test_a_comparison_hands_on_weights_beside_each_other():
    X, classes, _, weight = weighted_table()
    model = WideSGDClassifier(numeric="modl", random_state=0)
    data = [Data(X, classes, "binary", weight=unit * weight) for unit in (1.0, *UNITS)]
    expected, *others = [train(model, one).model.predict_proba(X) for one in data]
    for found in others:
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_relative_weights():
    assert relative_weights(None) is None
    np.testing.assert_array_equal(relative_weights(np.array([0.0, 1e-3, 1e-3])), [0.0, 1.0, 1.0])
    np.testing.assert_allclose(relative_weights(np.array([1e-300, 3e-300])), [0.5, 1.5], rtol=1e-12)
    np.testing.assert_allclose(relative_weights(np.array([1e307, 0.0, 3e307])), [0.5, 0.0, 1.5], rtol=1e-12)
    np.testing.assert_allclose(relative_weights(np.array([1e-20, 1.0])), [2e-20, 2.0], rtol=1e-12)


SAME_NUMBERS = {
    "solved": WideRegressor(),
    "solved-huber": WideRegressor(loss="huber"),
    "solved-dot": WideRegressor("dot(u[a], v[b], rank=2) + c[1]", loss="poisson"),
    "solved-classes": WideClassifier(),
    "online-hinge": WideSGDClassifier(loss="hinge", optimizer="sgd", max_iter=5, random_state=0),
    "online-adam": WideSGDRegressor(optimizer="adam", batch_size=32, max_iter=5, random_state=0),
    "online-similar": WideSGDRegressor(handle_unknown="similar", max_iter=5, random_state=0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "unit"),
    [(name, unit) for place, name in enumerate(SAME_NUMBERS) for unit in ((7.0, 1e-6), (0.3, 3e9))[place % 2]],
)
def test_weights_in_another_unit_are_the_same_numbers(name, unit):
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.choice(list("abcde"), 150), "b": rng.choice(list("uvwxyz"), 150)})
    X["z"] = rng.normal(size=150)
    y = rng.poisson(np.exp(0.3 * X["z"] + (X["a"] == "b")))
    weight, model = rng.choice([0, 1, 2, 5], 150), SAME_NUMBERS[name]
    y = np.minimum(y, 1 if "hinge" in name else 2) if "lassifier" in type(model).__name__ else y
    ask = "decision_function" if "hinge" in name else "predict_proba" if hasattr(model, "predict_proba") else "predict"

    def answers(weights):
        fitted = clone(model).fit(X, y, weights)
        return getattr(fitted, ask)(X.replace({"a": {"a": "new"}}) if "formula" not in str(model) else X)

    np.testing.assert_array_equal(answers(unit * weight), answers(weight))
    np.testing.assert_array_equal(answers(np.full(150, unit)), answers(None))


# -- weights of classes --------------------------------------------------------------------------------------


def test_weights_of_classes_choose_no_other_bins_and_interactions_and_fit_no_noise():
    """They change the intercept only; taken for repeated rows, each of a rare class had a bin of its own."""
    draw = np.random.default_rng(0)
    X = pd.DataFrame({"g": draw.zipf(1.3, 3000).clip(max=80).astype(str), "h": draw.choice(list("abcdef"), 3000)})
    X["x"], X["z"] = draw.normal(size=3000), draw.gamma(2.0, size=3000)
    y = (draw.random(3000) < 0.05).astype(int)  # whatever the columns say
    rows, new = slice(0, 1500), slice(1500, 3000)
    plain = WideClassifier().fit(X[rows], y[rows])
    balanced = WideClassifier(class_weight="balanced").fit(X[rows], y[rows])
    pd.testing.assert_frame_equal(balanced.interactions_, plain.interactions_)
    for name in ("x", "z"):
        found, wanted = (model.coefs_.get(name) for model in (balanced, plain))
        assert (found is None) == (wanted is None)
        assert found is None or len(found) == len(wanted)
    weight = np.where(y[rows] == 1, 0.5 / y[rows].mean(), 0.5 / (1.0 - y[rows].mean()))
    same = WideClassifier().fit(X[rows], y[rows], sample_weight=weight)
    np.testing.assert_allclose(same.predict_proba(X[new]), balanced.predict_proba(X[new]), atol=1e-9)
    p = balanced.predict_proba(X[new])[:, 1]
    assert log_loss(y[new], p, sample_weight=np.where(y[new] == 1, 0.5 / 0.05, 0.5 / 0.95)) < 0.72  # log(2) is .693
    assert np.average(balanced.predict_proba(X[rows])[:, 1], weights=weight) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("n_absent", [60, 100])
@pytest.mark.parametrize(
    "model",
    [
        WideClassifier(**ADDITIVE, alpha=1e-3),
        WideSGDClassifier(random_state=0),
        WideBoostClassifier(WideClassifier(**ADDITIVE), HistGradientBoostingClassifier(max_iter=20)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_of_weight_zero_are_no_rows_of_their_class(model, n_absent):
    """Of 100 rows of a third class some are absent, or all."""
    X, y, _, weight = weighted_table()
    y[:100], weight[:n_absent] = 2, 0.0
    there = weight > 0
    model = clone(model).set_params(class_weight="balanced").fit(X, y, sample_weight=weight)
    classes, of_class = np.unique(y[there]), np.zeros(3)
    of_class[classes] = compute_class_weight("balanced", classes=classes, y=y[there], sample_weight=weight[there])
    by_hand = clone(model).set_params(class_weight=None).fit(X, y, sample_weight=weight * of_class[y])
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("by_class", [False, True], ids=["sample_weight", "class_weight"])
@pytest.mark.parametrize(
    "model",
    [
        WideClassifier(),
        WideSGDClassifier(random_state=0),
        WideBoostClassifier(booster=HistGradientBoostingClassifier(max_iter=20), random_state=0),
        WideBoostClassifier(mode="margin", early_stopping=False, random_state=0),
    ],
    ids=["wide", "online", "stack", "stack of margins"],
)
def test_a_class_of_weight_zero_is_absent(model, by_class):
    """Two classes are left of three: the model is the one of these two, and has them only."""
    X, y, _, _ = weighted_table()
    y[:100] = np.where(y[:100] == 1, 2, y[:100])
    y = np.array(["aa", "zz", "mm"])[y]
    there = y != "mm"
    weight = {} if by_class else {"sample_weight": there.astype(float)}
    options = {"class_weight": {"mm": 0.0}} if by_class else {}
    found = clone(model).set_params(**options).fit(X, y, **weight)
    wanted = clone(model).fit(X[there], y[there])
    assert found.classes_.tolist() == ["aa", "zz"]
    np.testing.assert_allclose(found.predict_proba(X), wanted.predict_proba(X), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(found.predict(X), wanted.predict(X))


@pytest.mark.parametrize("n_left", [2, 3])
def test_the_offset_of_a_class_of_weight_zero_is_left_out(n_left):
    X, y, _, _ = weighted_table()
    y = y + 2 * (np.arange(len(y)) % 4 == 0)
    there, offset = y < n_left, np.random.default_rng(3).normal(size=(len(y), y.max() + 1))
    found = WideClassifier(**ADDITIVE, alpha=1e-3).fit(X, y, sample_weight=1.0 * there, offset=offset)
    own = offset[:, :n_left] if n_left > 2 else offset[:, 1] - offset[:, 0]
    wanted = WideClassifier(**ADDITIVE, alpha=1e-3).fit(X[there], y[there], offset=own[there])
    np.testing.assert_allclose(
        found.predict_proba(X, offset=own), wanted.predict_proba(X, offset=own), rtol=1e-6, atol=1e-9
    )


def test_what_weights_are_worth_by_hand():
    y, weight = np.array([0, 0, 1, 1]), np.array([1.0, 3.0, 10.0, 30.0])
    np.testing.assert_allclose(weights_within_classes(y, weight), [0.5, 1.5, 0.5, 1.5])
    assert design_effect(np.array([1.0, 1.0, 4.0])) == pytest.approx(3 * 18 / 36)
    assert design_effect(np.full(7, 3.0)) == design_effect(np.empty(0)) == 1.0


def test_balanced_weights_are_scikit_learns_of_the_classes_that_are_there():
    classes, totals = np.array(["a", "b", "c"]), np.array([3.0, 0.0, 1.0])
    found = weights_of_classes("balanced", classes, totals)
    wanted = compute_class_weight("balanced", classes=np.array(["a", "c"]), y=["a", "a", "a", "c"])
    assert found[[0, 2]] == pytest.approx(wanted) and np.isfinite(found).all()


@pytest.mark.parametrize(("total", "is_told"), [(99.9, True), (100.0, False), (1000.0, False)])
def test_weights_that_add_up_to_less_than_a_tenth_of_the_rows_are_told(total, is_told, recwarn):
    warn_of_light_total(1000, total, "MODL", "there are no intervals")
    told = [str(one.message).partition(";")[0] for one in recwarn]
    assert told == is_told * [
        "The weights of 1,000 rows add up to 99.9, which MODL takes for the number of rows, so that there are no "
        "intervals"
    ]


OF_ANY_SIZE = {
    "TIWSEncoder": (TIWSEncoder(cv=None, target_type="classes"), "classes", True),
    "TIWSEncoder of numbers": (TIWSEncoder(cv=None, target_type="continuous"), "amounts", True),
    "MODLEncoder": (MODLEncoder(output="probability", cv=None), "classes", True),
    "MODLEncoder of numbers": (MODLEncoder(output="mean", cv=None, target_type="continuous"), "amounts", True),
    "WideEncoder": (WideEncoder(cv=None), "classes", False),
    "WideClassifier": (WideClassifier(**ADDITIVE), "classes", False),
    "WideRegressor": (WideRegressor(loss="squared_error", **ADDITIVE), "amounts", False),
    "WideSGDRegressor": (WideSGDRegressor(random_state=0, max_iter=3), "amounts", False),
    "WideBoostClassifier": (WideBoostClassifier(booster=HistGradientBoostingClassifier(max_iter=3)), "classes", False),
    "SelectiveNaiveBayesClassifier": (SelectiveNaiveBayesClassifier(), "classes", False),
    "JitterTreeClassifier": (JitterTreeClassifier(random_state=0, max_depth=3), "classes", False),
    "JitterTreeRegressor": (JitterTreeRegressor(random_state=0, max_depth=3), "amounts", False),
}
"""Estimators, their target, and whether weights are numbers of rows to them, so that their unit matters."""


def shown_by(estimator, X):
    for method in ("predict_proba", "predict"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X)
    return estimator.transform(X).select_dtypes("number").to_numpy()


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:The weights of .* add up to:UserWarning")
@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_weights_as_large_and_as_small_as_numbers_are(name):
    """Squares of 1e300 and quotients of 1e-300 are no numbers: encodings were NaN, and warnings numpy's."""
    estimator, target, counts = OF_ANY_SIZE[name]
    X, classes, amounts, weight = weighted_table(80)
    y = {"classes": classes, "amounts": amounts}[target]

    def fitted(unit):
        return shown_by(clone(estimator).fit(X, y, sample_weight=unit * weight), X)

    same = fitted(1e100 if counts else 1.0)
    np.testing.assert_allclose(fitted(1e300), same, rtol=1e-6, atol=1e-9)
    small = fitted(1e-300)
    assert np.isfinite(small).all()
    if not counts:
        np.testing.assert_allclose(small, same, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match=r"sample_weight is at most .*e-310, too small to divide by; multiply it by a"):
        clone(estimator).fit(X, y, sample_weight=1e-310 * weight)
    with pytest.raises(ValueError, match=r"sample_weight is up to .*e\+30[78], too large to be added up; divide it by"):
        clone(estimator).fit(X, y, sample_weight=1e307 * weight)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", ["TIWSEncoder of numbers", "MODLEncoder of numbers"])
def test_weights_of_squares_that_are_beyond_numbers(name):
    """Encodings were NaN."""
    X, _, amounts, weight = weighted_table(80)
    encoder = OF_ANY_SIZE[name][0]
    with pytest.raises(
        ValueError, match=r"adds up squares of the target times sample_weight, which are up to .*e\+300"
    ):
        clone(encoder).fit(X, 1e10 * amounts, sample_weight=1e300 * weight)
    with pytest.warns(UserWarning, match="add up to"):
        assert np.isfinite(shown_by(clone(encoder).fit(X, 1e10 * amounts, sample_weight=1e-300 * weight), X)).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_whole_weights_of_eight_bits_do_not_overflow(name):
    estimator, target, _ = OF_ANY_SIZE[name]
    X, classes, amounts, _ = weighted_table(80)
    y, weight = {"classes": classes, "amounts": amounts}[target], np.random.default_rng(0).integers(0, 256, len(X))
    expected = shown_by(clone(estimator).fit(X, y, sample_weight=weight.astype(float)), X)
    found = shown_by(clone(estimator).fit(X, y, sample_weight=weight.astype(np.uint8)), X)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_that_weigh_next_to_nothing_beside_others():
    """Their share of the residuals was 0 / 0."""
    X, _, amounts, weight = weighted_table()
    model = WideRegressor(loss="squared_error", **ADDITIVE)
    some = np.arange(len(X)) % 2 == 0
    found = clone(model).fit(X, amounts, sample_weight=np.where(some, weight, 1e-310)).predict(X[some])
    expected = clone(model).fit(X[some], amounts[some], sample_weight=weight[some]).predict(X[some])
    assert np.corrcoef(found, expected)[0, 1] > 0.99
