"""What is scored, evaluated or folded: rows by their labels, one measure in one family, folds of enough rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from tabsym import (
    AugmentedModel,
    CrossFit,
    JitterPredictor,
    JitterTreeRegressor,
    MODLEncoder,
    TIWSEncoder,
    WideBoostClassifier,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDRegressor,
)
from tabsym.models import model as wide_model


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("pqrs"), 300), "h": rng.choice(list("xyz"), 300), "z": rng.normal(size=300)})
    return X, pd.Series(rng.poisson(np.exp(0.7 * (X["g"] == "p") + 0.5 * X["z"])) + 0.5)


PLAIN = {"loss": "squared_error", "interactions": None}
MODELS = [
    WideRegressor(**PLAIN),
    WideSGDRegressor(random_state=0),
    JitterTreeRegressor(random_state=0),
    WideBoostRegressor(WideRegressor(**PLAIN), random_state=0),
    JitterPredictor(WideRegressor(**PLAIN), TIWSEncoder()),
    AugmentedModel(WideRegressor(**PLAIN)),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_rows_in_another_order_are_refused_wherever_there_is_a_target(model, rows):
    X, y = rows
    shuffled = y.sample(frac=1, random_state=0)
    model.fit(X, y)
    assert np.isfinite(model.score(X, y))
    for refused in (lambda: model.score(X, shuffled), lambda: model.fit(X, shuffled)):
        with pytest.raises(ValueError, match="different indexes"):
            refused()


@pytest.mark.filterwarnings("ignore:The formula of WideRegressor adds 'z' without a coefficient")
@pytest.mark.parametrize("formula", [None, "u[g, h] + v[g]*z + 0.5*z + c[1]"], ids=["columns", "formula"])
def test_rows_of_large_tables_are_scored_part_by_part_to_the_same(formula, rows, monkeypatch):
    """A row's prediction is that of the row by itself: categories, combinations, bins, and missing numbers."""
    X, y = rows
    X = X.assign(w=np.where(np.arange(len(X)) % 7 == 0, np.nan, X["z"] ** 2)) if formula is None else X
    named = {"interactions": [("g", "h")]} if formula is None else {}
    model = WideRegressor(formula, loss="squared_error", n_posterior_samples=20, random_state=0, **named).fit(X, y)
    new = X.iloc[:40].assign(g=["never seen", *X["g"].iloc[1:40]])
    alone = [model.predict(new.iloc[[row]], return_std=True) for row in range(40)]
    monkeypatch.setattr(wide_model, "CHUNK_CODES", 50)
    np.testing.assert_allclose(model.predict(new), [value.item() for value, _ in alone], rtol=1e-12)
    np.testing.assert_allclose(model.predict(new, return_std=True)[1], [sd.item() for _, sd in alone], rtol=1e-12)


def test_rows_in_another_order_are_refused_in_reports_and_evaluation_sets(rows, tmp_path):
    X, y = rows
    shuffled = y.sample(frac=1, random_state=0)
    model = WideRegressor(**PLAIN).fit(X, y)
    classes = WideBoostClassifier(WideClassifier(interactions=None), random_state=0)
    for refused in (
        lambda: model.report(tmp_path / "r.html", X, shuffled),
        lambda: WideBoostRegressor(WideRegressor(**PLAIN), random_state=0).fit(X, y, eval_set=(X, shuffled)),
        lambda: classes.fit(X, y > 1, eval_set=(X, shuffled > 1)),
    ):
        with pytest.raises(ValueError, match="different indexes"):
            refused()


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "power"), [("poisson", 1), ("gamma", 2), ("tweedie", 1.5), ("squared_error", None)])
def test_a_stack_and_its_wide_model_have_one_measure(loss, power, rows):
    X, y = rows
    wide = WideRegressor(loss=loss, interactions=None)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    for model in (wide, WideBoostRegressor(wide, random_state=0), JitterPredictor(wide, TIWSEncoder())):
        fitted = model.fit(X, y)
        options = {"sample_weight": weight}
        measure, more = (r2_score, {}) if power is None else (d2_tweedie_score, {"power": power})
        assert fitted.score(X, y, **options) == pytest.approx(measure(y, fitted.predict(X), **options, **more))
        if loss in ("poisson", "tweedie"):  # no constant above 0 is best, and scikit-learn divides by 0
            assert fitted.score(X, 0.0 * y) == fitted.score(X, y * (y > 2), (y < 2).astype(float)) == 0.0
    piped = JitterPredictor(make_pipeline("passthrough", "passthrough", clone(wide)), TIWSEncoder()).fit(X, y)
    assert piped.score(X, y) == pytest.approx(wide.fit(X, y).score(X, y))
    auto = WideBoostRegressor(random_state=0).fit(X, y)
    assert auto.score(X, y) == pytest.approx(r2_score(y, auto.predict(X)))


ENCODERS = [TIWSEncoder(), MODLEncoder(output="mean"), CrossFit(TargetEncoder(cv=3))]


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: type(encoder).__name__)
def test_folds_of_few_rows_are_told_to_show_the_target(encoder, rows):
    X, y = rows
    X, y = X.assign(key=[f"k{row}" for row in range(len(X))])[["g", "key"]].head(60), y.head(60)
    with pytest.warns(UserWarning, match="cv holds out 1 row at a time"):
        encoder.set_params(cv=LeaveOneOut()).fit_transform(X, y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        encoder.set_params(cv=5).fit_transform(X, y)
    assert not [one for one in told if "at a time" in str(one.message)]


@pytest.mark.slow
def test_names_of_columns_are_taken_or_refused_in_words_of_their_own(rows):
    X, y = rows
    table = X.assign(y=y, w=1.0)
    wanted = CrossFit(TargetEncoder()).fit_transform(X, y, sample_weight=None)
    found = CrossFit(TIWSEncoder()).fit(table, "y", sample_weight="w").transform(X)
    np.testing.assert_allclose(found["g"], CrossFit(TIWSEncoder()).fit(X, y).transform(X)["g"])
    assert wanted.shape[0] == len(X)
    for encoder in (TIWSEncoder(), MODLEncoder(output="mean")):
        named = encoder.partial_fit(table.drop(columns="w"), "y").transform(X)
        pd.testing.assert_frame_equal(named, type(encoder)(**encoder.get_params()).partial_fit(X, y).transform(X))
    boost = WideBoostRegressor(WideRegressor(**PLAIN), random_state=0)
    by_name = boost.fit(X, y, eval_set=(table.drop(columns="w"), "y")).predict(X)
    np.testing.assert_array_equal(by_name, boost.fit(X, y, eval_set=(X, y)).predict(X))
    with pytest.raises(TypeError, match=r"sample_weight='w' is text; pass the numbers, such as X\['w'\]"):
        WideRegressor(**PLAIN).fit(X, y, sample_weight="w")
    for model in (TIWSEncoder(cv=KFold(3)), boost):
        fit = getattr(model, "fit_transform", None) or model.fit
        with pytest.raises(TypeError, match="groups='g' is text"):
            fit(X, y, groups="g")


def test_an_iterator_of_folds_is_taken_by_the_encoder_of_wide_models(rows):
    X, y = rows
    options = {"model": WideRegressor(**PLAIN)}
    found = WideEncoder(cv=KFold(3).split(X), **options).fit_transform(X, y)
    pd.testing.assert_frame_equal(found, WideEncoder(cv=list(KFold(3).split(X)), **options).fit_transform(X, y))
