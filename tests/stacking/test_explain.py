"""What stacks say of themselves: contributions against the libraries' own, importances, weights of classes."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier, CatBoostRegressor, Pool
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from xgboost import DMatrix, XGBClassifier, XGBRegressor

from tabsym import WideBoostClassifier, WideBoostRegressor, WideClassifier, WideRegressor, load, save
from tabsym.stacking import base, layer
from tests.options import ADDITIVE
from tests.stacking.test_stacking import FOLDS, SMALL, THREE, TWO, VALUES, X, crossed, ranked

RIDGE = ADDITIVE | {"alpha": 1e-3}
QUIET = {"iterations": 15, "depth": 3, "thread_count": 1, "verbose": False, "allow_writing_files": False}
ROUNDS = {"n_estimators": 15, "max_depth": 3, "n_jobs": 1}
ALL_ROUNDS = {"cv": FOLDS, "early_stopping": False}
NEW = X.head(40).assign(shop=["never", *X["shop"][1:40]])


def lightgbm_says(booster, frame):
    return np.asarray(booster.predict(frame, pred_contrib=True)).reshape(len(frame), -1, frame.shape[1] + 1)


def xgboost_says(booster, frame):
    zero = np.zeros((len(frame), 3) if getattr(booster, "n_classes_", 2) == 3 else len(frame))
    data = DMatrix(frame, base_margin=zero, enable_categorical=True)
    return booster.get_booster().predict(data, pred_contribs=True).reshape(len(frame), -1, frame.shape[1] + 1)


def catboost_says(booster, frame):
    texts = [name for name in frame if frame[name].dtype.kind not in "fi"]
    found = booster.get_feature_importance(Pool(frame, cat_features=texts), type="ShapValues")
    return found.reshape(len(frame), -1, frame.shape[1] + 1)


CASES = [
    (LGBMClassifier(**SMALL), lightgbm_says, TWO, "ordinal"),
    (LGBMClassifier(**SMALL), lightgbm_says, THREE, "native"),
    (XGBClassifier(**ROUNDS), xgboost_says, THREE, "native"),
    (XGBRegressor(**ROUNDS), xgboost_says, VALUES, "ordinal"),
    (CatBoostClassifier(**QUIET), catboost_says, THREE, "ordinal"),
    (CatBoostRegressor(**QUIET), catboost_says, VALUES, "native"),
]


@pytest.mark.parametrize(("booster", "says", "y", "codes"), CASES, ids=lambda value: type(value).__name__)
def test_contributions_are_the_terms_and_what_the_library_says(booster, says, y, codes):
    of_values = y is VALUES
    wide = WideRegressor(**RIDGE, loss="squared_error") if of_values else WideClassifier(**RIDGE)
    stack = WideBoostRegressor if of_values else WideBoostClassifier
    model = stack(wide, booster, mode="margin", codes=codes, **ALL_ROUNDS).fit(X, y)
    made = model.explain(NEW)
    assert made.index.equals(NEW.index)
    outputs = 3 if y is THREE else 1
    np.testing.assert_array_equal(made["wide"].to_numpy(), model.wide_.explain(NEW).to_numpy())
    frame = model.booster_frame(NEW)
    wanted = says(model.boosters_["margin"], frame)
    got = made["booster"].to_numpy().reshape(len(NEW), -1, outputs).transpose(0, 2, 1)
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    names = made["booster"].columns.get_level_values(0).unique().tolist()
    assert names == [*X.columns, "(intercept)"]
    score = model.predict(NEW) if of_values else model.decision_function(NEW)
    total = made.sum(axis=1) if outputs == 1 else made.T.groupby(level="class").sum().T
    np.testing.assert_allclose(total, score, atol=1e-5 if "XGB" in type(booster).__name__ else 1e-9)
    if outputs == 3:
        assert made.columns.get_level_values("class").unique().tolist() == ["low", "mid", "top"]


def test_the_frame_is_that_of_training():
    booster = LGBMRegressor(**SMALL)
    wide = WideRegressor(**RIDGE, loss="squared_error")
    model = WideBoostRegressor(wide, booster, mode="margin", **ALL_ROUNDS).fit(X, VALUES)
    frame = model.booster_frame(X)
    pd.testing.assert_frame_equal(frame, ranked(X), check_dtype=False)
    start = crossed(wide, VALUES, lambda fitted, rows: fitted.predict(rows))
    again = clone(booster).fit(frame, VALUES, init_score=start)
    np.testing.assert_allclose(again.predict(frame), model.boosters_["margin"].predict(frame), atol=1e-9)
    with pytest.raises(ValueError, match=r"mode='alone' is not known; use 'margin'"):
        model.booster_frame(X, "alone")


@pytest.fixture(scope="module", autouse=True)
def importances_of_all_rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer, "MAX_ROWS", len(X))
        yield


@pytest.fixture(scope="module")
def beside(importances_of_all_rows):
    wide = WideClassifier(interactions=[("shop", "kind")], alpha=1e-3)
    return WideBoostClassifier(wide, LGBMClassifier(**SMALL), mode="feature", **ALL_ROUNDS).fit(X, TWO)


def test_scores_of_the_wide_model_beside_the_columns(beside):
    made = beside.explain(X)
    assert list(made.columns) == [("booster", name) for name in [*X.columns, "(wide)", "(intercept)"]]
    np.testing.assert_allclose(made.sum(axis=1), beside.decision_function(X), atol=1e-9)
    assert beside.explain(X.head(0)).columns.equals(made.columns)
    frame = beside.booster_frame(X)
    np.testing.assert_array_equal(frame["wide"], beside.wide_.decision_function(X))


def by_column(made, terms):
    """Contributions by column: terms of several divided equally among them."""
    return {name: sum(made[term] / len(columns) for term, columns in terms.items() if name in columns) for name in X}


TERMS = {name: (name,) for name in X} | {"shop:kind": ("shop", "kind")}


def test_importances_are_mean_absolute_contributions(beside):
    wide = WideClassifier(interactions=[("shop", "kind")], alpha=1e-3)
    model = WideBoostClassifier(wide, LGBMClassifier(**SMALL), mode="margin", **ALL_ROUNDS)
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    model.fit(X, TWO, sample_weight=weight)
    made = model.explain(X)
    wide_own = by_column(made["wide"], TERMS)
    sizes = np.array([np.average(np.abs(wide_own[name] + made["booster"][name]), weights=weight) for name in X])
    np.testing.assert_allclose(model.feature_importances_, sizes / sizes.sum(), rtol=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer, "MAX_ROWS", 300)
        sampled = clone(model).fit(X, TWO, sample_weight=weight).feature_importances_
    assert 0.0 < np.abs(sampled - sizes / sizes.sum()).max() < 0.05

    made, wide_own = beside.explain(X)["booster"], by_column(beside.wide_.explain(X), TERMS)
    alone = np.array([np.abs(wide_own[name]).mean() for name in X])
    sizes = made[list(X)].abs().mean().to_numpy() + made["(wide)"].abs().mean() * alone / alone.sum()
    np.testing.assert_allclose(beside.feature_importances_, sizes / sizes.sum(), rtol=1e-9)


def test_shares_of_components_weigh_their_contributions(beside):
    on_top = clone(beside).set_params(mode="margin").fit(X, TWO)
    blend = copy.copy(on_top)
    blend._layers = [(0.7, on_top._layers[0][1]), (0.2, beside._layers[0][1]), (0.1, None)]
    made = blend.explain(X)
    np.testing.assert_allclose(made.sum(axis=1), blend.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(made["wide"], 0.8 * blend.wide_.explain(X), atol=1e-12)
    with pytest.raises(ValueError, match=r"There are boosters 'margin', 'feature'; name one by mode"):
        blend.booster_frame(X)


def test_a_wide_model_alone_explains_itself():
    rng = np.random.default_rng(0)
    stack = WideBoostClassifier(WideClassifier(**RIDGE), LGBMClassifier(**SMALL), mode="margin", cv=3)
    model = stack.fit(X.assign(price=0.0, age=0.0), rng.random(len(X)) < 0.5)
    assert not model.boosters_ and list(model.explain(X)["wide"]) == list(model.wide_.explain(X))
    with pytest.raises(ValueError, match="No booster helped on held-out rows"):
        model.booster_frame(X)


@pytest.mark.slow
def test_importances_find_the_columns_and_are_saved(tmp_path):
    model = WideBoostClassifier(WideClassifier(**RIDGE), LGBMClassifier(**SMALL), cv=3).fit(X.to_numpy(), TWO)
    assert set(np.argsort(model.feature_importances_)[1:]) == {0, 2, 3}  # kind has no effect
    made = model.explain(X.to_numpy())
    np.testing.assert_allclose(made.sum(axis=1), model.decision_function(X.to_numpy()), atol=1e-9)
    again = load(save(model, tmp_path / "stack.skops"))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(again.explain(X.to_numpy()), made)


@pytest.mark.parametrize("as_table", [X.copy, X.to_numpy], ids=["dataframe", "array"])
@pytest.mark.parametrize("kept", ["asked", "pickled", "copied", "saved"])
def test_importances_are_found_after_fit_of_its_rows_which_no_file_holds(as_table, kept, tmp_path, monkeypatch):
    options = ALL_ROUNDS | {"cv": 3}
    stack = WideBoostClassifier(WideClassifier(**RIDGE), LGBMClassifier(**SMALL), mode="margin", **options)
    expected, table = clone(stack).fit(as_table(), TWO).feature_importances_, as_table()
    with monkeypatch.context() as patch:
        patch.setattr(base, "importances_of", None)  # not called in fit
        model = stack.fit(table, TWO)
    if isinstance(table, np.ndarray):
        table[:] = table[::-1].copy()
    else:
        table[:] = table[::-1].to_numpy()
    if kept == "pickled":
        model = pickle.loads(pickle.dumps(model))  # noqa: S301
    elif kept == "copied":
        model = copy.deepcopy(model)
    elif kept == "saved":
        model = load(save(model, tmp_path / "stack.skops"))
    assert (kept == "asked") == isinstance(model._importances, layer.TrainingSample)
    np.testing.assert_array_equal(model.feature_importances_, expected)


@pytest.mark.parametrize(
    ("booster", "reason"),
    [
        (HistGradientBoostingClassifier(max_iter=5), "HistGradientBoostingClassifier has no contributions of columns"),
        (LGBMClassifier(linear_tree=True, **SMALL), "LGBMClassifier gives no contributions of its columns"),
    ],
    ids=["hist", "linear trees"],
)
def test_boosters_without_contributions_are_named(booster, reason):
    model = WideBoostClassifier(WideClassifier(**RIDGE), booster, mode="feature", **ALL_ROUNDS).fit(X, TWO)
    with pytest.raises(ValueError, match=reason):
        model.explain(X)
    with pytest.raises(AttributeError, match=f"feature_importances_ is not there: {reason}"):
        _ = model.feature_importances_
    assert model.booster_frame(X).shape == (len(X), 5)


# -- weights of classes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["balanced", {"yes": 5.0}], ids=str)
def test_classes_weigh_alike_in_the_wide_model_and_the_booster(given):
    rare = TWO.copy()
    rare[np.flatnonzero(TWO == "yes")[::2]] = "no"
    weight = np.random.default_rng(2).integers(1, 4, len(X)).astype(float)
    total, of_yes = weight.sum(), weight[rare == "yes"].sum()
    balanced = {"yes": total / 2 / of_yes, "no": total / 2 / (total - of_yes)}
    of_class = balanced if given == "balanced" else {"yes": 5.0, "no": 1.0}
    rows = weight * pd.Series(rare).map(of_class).to_numpy()
    wide, booster = WideClassifier(**RIDGE), LGBMClassifier(**SMALL)
    stack = WideBoostClassifier(wide, booster, mode="margin", class_weight=given, cv=FOLDS, random_state=0)
    model = stack.fit(X, rare, sample_weight=weight)
    by_hand = clone(stack).set_params(class_weight=None).fit(X, rare, sample_weight=rows)
    np.testing.assert_allclose(model.decision_function(X), by_hand.decision_function(X), rtol=1e-9)
    pd.testing.assert_frame_equal(model.evidence_, by_hand.evidence_)
    alone = clone(wide).set_params(class_weight=given).fit(X, rare, sample_weight=weight)
    np.testing.assert_allclose(model.wide_.decision_function(X), alone.decision_function(X), atol=1e-4)
    assert (model.predict(X) == "yes").sum() > (clone(by_hand).fit(X, rare).predict(X) == "yes").sum()


@pytest.mark.parametrize("labels", [[1, 2], ["a", "b"]])
@pytest.mark.parametrize("kind", ["library", "plain", "pipeline"])
def test_weights_by_class_of_a_booster_are_of_the_labels(kind, labels):
    """Boosters see the classes as 0 and 1."""
    y = np.where(TWO == "yes", labels[1], labels[0])

    def shares(given):
        weights = {"class_weight": given, "max_depth": 3}
        booster = {"library": LGBMClassifier(**SMALL | weights), "plain": HistGradientBoostingClassifier(**weights),
                   "pipeline": make_pipeline(HistGradientBoostingClassifier(**weights))}[kind]  # fmt: skip
        mode = "margin" if kind == "library" else "feature"
        model = WideBoostClassifier(WideClassifier(**RIDGE), booster, mode=mode, early_stopping=False, cv=FOLDS)
        return model.fit(X, y).predict_proba(X)[:, 0].mean()

    plain = shares(None)
    assert shares({labels[0]: 9.0, labels[1]: 1.0}) > plain + 0.05
    assert shares({labels[0]: 1.0, labels[1]: 9.0}) < plain - 0.05
    with pytest.raises(ValueError, match="class_weight names the class 'c', and the target has"):
        shares({labels[0]: 1.0, "c": 9.0})


def test_rows_held_out_weigh_by_their_classes_too():
    stack = WideBoostClassifier(WideClassifier(**RIDGE), LGBMClassifier(**SMALL), mode="margin", cv=FOLDS)
    stack.set_params(class_weight={"yes": 9.0}).fit(X, TWO, eval_set=(X.head(200), TWO[:200]))
    chance = stack.wide_.predict_proba(X.head(200))
    lost = -np.log(np.where(TWO[:200] == "yes", chance[:, 1], chance[:, 0]))
    wanted = np.average(lost, weights=np.where(TWO[:200] == "yes", 9.0, 1.0))
    assert stack.evidence_["loss"][0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_weight": "even"}, "class_weight='even' is not known; use 'balanced', a mapping from class to number"),
        ({"class_weight": {"maybe": 2}}, "class_weight names 'maybe', which is no class of the target; leave it out"),
        ({"class_weight": {"yes": -1}}, "class_weight['yes']"),
        ({"class_weight": "balanced", "wide": WideClassifier(class_weight="balanced")}, "wide has class_weight="),
        ({"class_weight": "balanced", "booster": XGBClassifier(scale_pos_weight=3)}, "booster has scale_pos_weight=3"),
    ],
    ids=["word", "class", "number", "wide", "booster"],
)
def test_weights_of_classes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        WideBoostClassifier(**options).fit(X, TWO)


@pytest.mark.parametrize("codes", ["ordinal", "native"])
@pytest.mark.parametrize("names", [("a[1]", "a_1_"), ("x:y", "x_y"), ("p{", "q")])
def test_columns_whose_names_libraries_cannot_have_keep_them(codes, names):
    """The booster's names are others, which may even be those of other columns."""
    rng = np.random.default_rng(0)
    plain = pd.DataFrame({"u": rng.normal(size=900), "v": rng.normal(size=900), "c": rng.choice(list("xyz"), 900)})
    y = 2 * np.sin(3 * plain["u"]) + (plain["c"] == "x") + 0.1 * rng.normal(size=900)
    found = []
    for table in (plain, plain.rename(columns=dict(zip("uv", names, strict=True)))):
        wide = WideRegressor(loss="squared_error", numeric="linear", interactions=None)
        model = WideBoostRegressor(wide, LGBMRegressor(**SMALL), mode="margin", codes=codes, cv=3, early_stopping=False)
        model.fit(table, y)
        assert set(table.columns) <= set(model.explain(table)["booster"].columns)
        found.append(model.feature_importances_)
    assert found[0][0] == found[0].max()
    np.testing.assert_allclose(found[1], found[0], atol=0.03)
