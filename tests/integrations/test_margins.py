"""Adapters on top of margins, against the libraries' own calls; and what the three share."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from catboost import CatBoostClassifier, CatBoostRegressor, Pool
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.special import expit, softmax
from sklearn.base import clone, is_classifier
from xgboost import XGBClassifier, XGBRegressor, XGBRFRegressor

from tabsym.encoders import NativeCategories
from tabsym.integrations import load_adapter
from tabsym.losses.loss import LOSSES

LIBRARIES = ["lightgbm", "xgboost", "catboost"]
TASKS = ["binary", "multinomial", "squared_error", "poisson", "gamma", "tweedie"]
RNG = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame(
    {
        "colour": RNG.choice(["red", "blue", "green", None], N),
        "shop": RNG.integers(0, 30, N).astype(str),
        "price": RNG.normal(size=N),
    }
)
SIGNAL = FRAME["price"].to_numpy() + (FRAME["colour"] == "red").to_numpy()
QUIET = {"verbose": False, "allow_writing_files": False, "thread_count": 1}


def booster(library, is_class, **options):
    if library == "lightgbm":
        return (LGBMClassifier if is_class else LGBMRegressor)(n_estimators=12, verbosity=-1, n_jobs=1, **options)
    if library == "xgboost":
        return (XGBClassifier if is_class else XGBRegressor)(
            n_estimators=12, enable_categorical=True, n_jobs=1, **options
        )
    return (CatBoostClassifier if is_class else CatBoostRegressor)(iterations=12, depth=4, **QUIET, **options)


def case(library, task):
    """A booster with the objective of a task, a frame it reads, a target and margins."""
    adapter = load_adapter(library)
    is_class = task in ("binary", "multinomial")
    frame = NativeCategories(output="text" if library == "catboost" else "category").fit_transform(FRAME)
    rng = np.random.default_rng(1)
    y = {
        "binary": (SIGNAL > 0).astype(int),
        "multinomial": np.digitize(SIGNAL, [-0.5, 0.8]),
        "squared_error": SIGNAL + rng.normal(size=N),
        "poisson": rng.poisson(np.exp(0.5 * SIGNAL)).astype(float),
        "gamma": rng.gamma(2, np.exp(0.5 * SIGNAL)),
        "tweedie": rng.poisson(1.0, N) * rng.gamma(2, np.exp(0.5 * SIGNAL)),
    }[task]
    margin = rng.normal(size=(N, 3) if task == "multinomial" else N)
    loss = LOSSES["logistic" if task == "binary" else task]
    return adapter, adapter.matched(booster(library, is_class), loss), frame, y, margin


def own_scores(library, model, frame, y, margin, new_margin):
    """Trained and asked by the library's own words, margins included."""
    model = clone(model)
    if library == "lightgbm":
        raw = model.fit(frame, y, init_score=margin).predict(frame, raw_score=True)
        return raw + new_margin
    if library == "xgboost":
        model.fit(frame, y, base_margin=margin)
        return model.predict(frame, base_margin=new_margin, output_margin=True)
    names = [name for name in frame if frame[name].dtype == object or isinstance(frame[name].dtype, pd.StringDtype)]
    model.fit(Pool(frame, y, cat_features=names, baseline=margin))
    asked = Pool(frame, cat_features=names, baseline=new_margin)
    return model.predict(asked, prediction_type="RawFormulaVal")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("task", TASKS)
def test_margins_make_the_round_trip(library, task):
    adapter, model, frame, y, margin = case(library, task)
    other = np.random.default_rng(2).normal(size=margin.shape)
    fitted = adapter.fit_margin(model, frame, y, margin)
    got = adapter.raw_scores(fitted, frame, other)
    own = own_scores(library, model, frame, y, margin, other)
    np.testing.assert_allclose(got, own, rtol=1e-6 * (library == "xgboost"), atol=1e-6)  # its sums are float32
    trees = adapter.raw_scores(fitted, frame, np.zeros_like(other))
    np.testing.assert_allclose(got, trees + other, rtol=0, atol=1e-6)
    assert np.ptp(trees) > 0.05, "learned nothing, so equality would say nothing"
    if library == "xgboost" and is_classifier(model):
        shares = fitted.predict_proba(frame, base_margin=other)
        link = softmax(got, axis=1) if got.ndim == 2 else np.column_stack([expit(-got), expit(got)])
        np.testing.assert_allclose(shares, link, rtol=0, atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("task", ["binary", "multinomial", "poisson"])
@pytest.mark.parametrize("on_margin", [True, False])
def test_paths_are_boosters_of_fewer_rounds(library, task, on_margin):
    adapter, model, frame, y, margin = case(library, task)
    margin = margin if on_margin else None
    fitted = adapter.fit_margin(model, frame, y, margin)
    path = dict(adapter.path(fitted, frame, 5, on_margin=on_margin))
    assert list(path) == [5, 10, 12]
    zero = None if margin is None else np.zeros_like(margin)
    for rounds, scores in path.items():
        fewer = adapter.fit_rounds(model, rounds, frame, y, margin)
        wanted = adapter.raw_scores(fewer, frame, zero)
        np.testing.assert_allclose(scores, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("labels", [["no", "yes"], [-1, 1], ["a", "b", "c"], [True, False]])
def test_classes_of_any_kind(library, labels):
    y = np.array(sorted(labels))[np.digitize(SIGNAL, [0.0, 0.9][: len(labels) - 1])]
    task = "binary" if len(labels) == 2 else "multiclass"
    model = load_adapter(library).native(task, random_state=0, n_jobs=1).set_params(booster__n_estimators=20)
    model = clone(model).fit(FRAME, y)
    np.testing.assert_array_equal(np.asarray(model.classes_).astype(str), np.array(sorted(labels)).astype(str))
    assert (np.asarray(model.predict(FRAME)).astype(str) == y.astype(str)).mean() > 0.9
    adapter, _, frame, _, _ = case(library, "binary")
    coded = np.unique(y, return_inverse=True)[1]
    raw = [
        adapter.raw_scores(adapter.fit_margin(booster(library, True), frame, one, np.zeros(len(y)) if
                           len(labels) == 2 else np.zeros((len(y), 3))), frame)
        for one in (y, coded)
    ]  # fmt: skip
    np.testing.assert_array_equal(*raw)


@pytest.mark.parametrize("library", LIBRARIES)
def test_early_stopping_and_evaluation_sets_are_the_library_s_own(library):
    adapter, _, frame, y, margin = case(library, "binary")
    noisy = np.where(np.random.default_rng(3).random(N) < 0.3, 1 - y, y)
    option = {"iterations": 300} if library == "catboost" else {"n_estimators": 300}
    model = booster(library, True)
    model = type(model)(
        **{k: v for k, v in model.get_params().items() if k not in ("iterations", "n_estimators")} | option
    )
    seen, held = slice(0, 250), slice(250, N)
    fitted = adapter.fit_margin(
        model, frame[seen], noisy[seen], margin[seen], eval_set=(frame[held], noisy[held], margin[held]),
        early_stopping_rounds=5,
    )  # fmt: skip
    own = clone(model)
    if library == "lightgbm":
        own.fit(frame[seen], noisy[seen], init_score=margin[seen], eval_set=[(frame[held], noisy[held])],
                eval_init_score=[margin[held]], callbacks=[lightgbm.early_stopping(5, verbose=False)])  # fmt: skip
        best = [one.best_iteration_ for one in (fitted, own)]
    elif library == "xgboost":
        own.set_params(early_stopping_rounds=5)
        own.fit(frame[seen], noisy[seen], base_margin=margin[seen], eval_set=[(frame[held], noisy[held])],
                base_margin_eval_set=[margin[held]], verbose=False)  # fmt: skip
        best = [one.best_iteration for one in (fitted, own)]
    else:
        names = ["f0", "f1"]
        own.fit(Pool(frame[seen], noisy[seen], cat_features=names, baseline=margin[seen]), early_stopping_rounds=5,
                eval_set=Pool(frame[held], noisy[held], cat_features=names, baseline=margin[held]))  # fmt: skip
        best = [one.best_iteration_ for one in (fitted, own)]
    assert best[0] == best[1] < 250


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("on_margin", [True, False])
def test_after_early_stopping_contributions_and_paths_are_of_the_best_rounds(library, on_margin):
    adapter = load_adapter(library)
    frame, seen, held = FRAME[["price"]], slice(0, 250), slice(250, N)
    y = np.where(np.arange(N) < 250, SIGNAL, np.random.default_rng(1).permutation(SIGNAL))
    start = 0.3 * SIGNAL if on_margin else np.full(N, None)
    margins = [None, None] if not on_margin else [start[seen], start[held]]
    held_out = (frame[held], y[held], margins[1])
    model = booster(library, False)
    model = type(model)(**model.get_params() | {"iterations" if library == "catboost" else "n_estimators": 40})
    fitted = adapter.fit_margin(model, frame[seen], y[seen], margins[0], eval_set=held_out, early_stopping_rounds=4)
    scores = adapter.raw_scores(fitted, frame, np.zeros(N) if on_margin else None)
    assert not np.allclose(scores, y, atol=0.2), "not stopped, so equality would say nothing"
    of_columns = adapter.contributions(fitted, frame, on_margin=on_margin)
    np.testing.assert_allclose(of_columns.sum(axis=2)[:, 0], scores, rtol=0, atol=1e-5)
    *_, (_, last) = adapter.path(fitted, frame, 1, on_margin=on_margin)
    np.testing.assert_allclose(last, scores, rtol=0, atol=1e-5)


@pytest.mark.parametrize("library", ["lightgbm", "catboost"])
@pytest.mark.parametrize("labels", [[1, 2], ["one", "two"]])
def test_weights_by_class_are_of_labels(library, labels):
    adapter, _, frame, y, margin = case(library, "binary")
    option = "class_weight" if library == "lightgbm" else "class_weights"
    model = booster(library, True)
    weights = {labels[0]: 20.0, labels[1]: 1.0}
    weighted = type(model)(**model.get_params() | {option: weights})
    by_class = adapter.fit_margin(weighted, frame, np.array(labels)[y], margin)
    by_row = adapter.fit_margin(model, frame, np.array(labels)[y], margin, sample_weight=np.where(y == 0, 20.0, 1.0))
    scores = [adapter.raw_scores(fitted, frame, margin) for fitted in (by_class, by_row)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-6)
    assert weighted.get_params()[option] == weights
    unknown = type(model)(**model.get_params() | {option: {labels[0]: 2.0, "three": 1.0}})
    with pytest.raises(ValueError, match="names the class 'three', and the target has"):
        adapter.fit_margin(unknown, frame, np.array(labels)[y], margin)


@pytest.mark.parametrize("library", LIBRARIES)
def test_options_without_effect_are_refused(library):
    adapter, model, frame, y, margin = case(library, "squared_error")
    held_out = {"eval_set": (frame, y, margin)}
    own = {"lightgbm": "eval_init_score", "xgboost": "base_margin_eval_set", "catboost": "baseline"}[library]
    for options, message in [
        ({"early_stopping_rounds": 3}, "early_stopping_rounds has no effect without eval_set"),
        ({"eval_metric": "mae"}, "eval_metric has no effect without eval_set"),
        (held_out | {own: [margin]}, f"{own} is what fit_margin gives {library} itself"),
        ({"sample_weight": np.where(y == y[0], -1.0, 1.0)}, "sample_weight contains a negative value"),
    ]:
        with pytest.raises(ValueError, match=message):
            adapter.fit_margin(model, frame, y, margin, **options)


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        (XGBRegressor, "base_score", 5.0),
        (LGBMRegressor, "boost_from_average", True),
        (LGBMRegressor, "pred_early_stop", True),
        (CatBoostClassifier, "class_names", [1, 0]),
    ],
)
def test_options_of_boosters_that_margins_replace_are_refused(kind, option, value):
    y = (SIGNAL > 0).astype(int)
    adapter = load_adapter(kind.__module__.partition(".")[0])
    with pytest.raises(ValueError, match=f"leave {option} out"):
        adapter.fit_margin(kind(**{option: value}), FRAME[["price"]], y, np.zeros(N))


@pytest.mark.parametrize(
    ("kind", "loss", "option"),
    [
        (LGBMRegressor, "quantile", "alpha"),
        (XGBRegressor, "quantile", "quantile_alpha"),
        (LGBMRegressor, "tweedie", "tweedie_variance_power"),
        (XGBRegressor, "tweedie", "tweedie_variance_power"),
    ],
)
def test_the_number_of_a_loss_is_not_replaced(kind, loss, option):
    adapter = load_adapter(kind.__module__.partition(".")[0])
    number = LOSSES[loss].parameter
    with pytest.raises(ValueError, match=f"{option}=1.13.* is not the number of the wide model's loss"):
        adapter.matched(kind(**{option: 1.13}), LOSSES[loss])
    assert adapter.matched(kind(**{option: number}), LOSSES[loss]).get_params()[option] == number


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide", "Depthwise"])
def test_contributions_add_up_to_scores_or_are_refused(policy):
    """CatBoost's of other than symmetric trees do not, in 1.2.10."""
    adapter = load_adapter("catboost")
    numbers = np.random.default_rng(0).integers(0, 5, (N, 2)).astype(float)
    y = numbers[:, 0] + np.random.default_rng(1).normal(size=N)
    model = CatBoostRegressor(iterations=15, grow_policy=policy, **QUIET)
    fitted = adapter.fit_margin(model, numbers, y, np.ones(N))
    try:
        found = adapter.contributions(fitted, numbers, on_margin=True)
    except ValueError as error:
        assert policy != "SymmetricTree"
        assert "differ from its scores by up to" in str(error)
        return
    np.testing.assert_allclose(found.sum(axis=2)[:, 0], adapter.raw_scores(fitted, numbers), atol=1e-6)


def test_margins_of_predictions_have_a_row_for_each_row():
    adapter, model, frame, y, margin = case("lightgbm", "multinomial")
    fitted = adapter.fit_margin(model, frame, y, margin)
    with pytest.raises(ValueError, match=r"margin has shape \(3, 400\); pass \(400, 3\)"):
        adapter.raw_scores(fitted, frame, margin.T)


def test_a_forest_of_xgboost_keeps_its_trees():
    adapter = load_adapter("xgboost")
    forest = XGBRFRegressor(n_estimators=9)
    fitted = adapter.fit_rounds(forest, adapter.n_rounds(forest), FRAME[["price"]], SIGNAL, np.zeros(N))
    assert len(fitted.get_booster().get_dump()) == 9
    with pytest.raises(ValueError, match="has one round, and 2 are asked for"):
        adapter.fit_rounds(forest, 2, FRAME[["price"]], SIGNAL)


def test_a_class_that_only_the_evaluation_set_has():
    adapter, model, frame, y, margin = case("lightgbm", "binary")
    with pytest.raises(ValueError, match="eval_set has class 7"):
        adapter.fit_margin(model, frame, y, margin, eval_set=(frame, np.where(y == 1, 7, y), margin))


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_a_library_reads_wrongly_does_not_reach_it(library):
    adapter, model, frame, y, margin = case(library, "squared_error")
    text = FRAME[["colour"]].fillna("none")
    wrong = [
        pl.DataFrame({"c": text["colour"].to_list()}, schema={"c": pl.Categorical}),
        pa.table({"c": pa.array(text["colour"].to_list()).dictionary_encode()}),
        FRAME.astype({"colour": object})[["colour"]] if library != "catboost" else text.astype("category"),
    ]
    for one in wrong:
        with pytest.raises(TypeError, match="NativeCategories"):
            adapter.fit_margin(model, one, y, margin)
    fitted = adapter.fit_margin(model, frame, y, margin)
    with pytest.raises(TypeError, match="NativeCategories"):
        adapter.raw_scores(fitted, wrong[0])


@pytest.mark.parametrize("library", LIBRARIES)
def test_margins_that_cannot_be(library):
    adapter, model, frame, y, margin = case(library, "multinomial")
    with pytest.raises(ValueError, match=r"margin has shape \(400,\); pass \(400, 3\)"):
        adapter.fit_margin(model, frame, y, margin[:, 0])
    with pytest.raises(ValueError, match="margin is nan"):
        adapter.fit_margin(model, frame, y, np.where(margin > 1, np.nan, margin))


@pytest.mark.parametrize("library", LIBRARIES)
def test_objectives_follow_the_loss_or_are_refused(library):
    adapter = load_adapter(library)
    named = {"lightgbm": {"objective": "regression_l1"}, "xgboost": {"objective": "reg:absoluteerror"},
             "catboost": {"loss_function": "MAE"}}[library]  # fmt: skip
    with pytest.raises(ValueError, match="link 'log'"):
        adapter.matched(booster(library, False, **named), LOSSES["poisson"])
    kept = adapter.matched(booster(library, False, **named), LOSSES["squared_error"])
    assert adapter.objective_of(kept) == next(iter(named.values()))
    with pytest.raises(ValueError, match="hinge"):
        adapter.matched(booster(library, True), LOSSES["hinge"])


def test_both_ways_of_xgboost_to_split_categories():
    y = np.random.default_rng(0).normal(size=30)[FRAME["shop"].astype(int)]
    sizes = {}
    for way in ("partition", "onehot"):
        model = load_adapter("xgboost").native("regression", random_state=0, n_jobs=1, splits=way)
        model.set_params(booster__n_estimators=5).fit(FRAME[["shop"]], y)
        saved = json.loads(bytes(model[-1].get_booster().save_raw("json")))
        trees = saved["learner"]["gradient_booster"]["model"]["trees"]
        sizes[way] = [size for tree in trees for size in tree["categories_sizes"]]
    assert set(sizes["onehot"]) == {1}
    assert max(sizes["partition"]) > 1


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("codes", ["group", "ordinal"])
def test_groups_and_ranks_instead_of_categories(library, codes):
    y = SIGNAL + np.isin(FRAME["shop"], ["1", "2", "3"]) * 5
    model = load_adapter(library).native("regression", random_state=0, n_jobs=1, codes=codes)
    model = clone(model.set_params(booster__n_estimators=60)).fit(FRAME, y)
    assert np.corrcoef(model.predict(FRAME), y)[0, 1] > 0.9
    new = FRAME.assign(shop="never seen")
    assert np.isfinite(model.predict(new)).all()


def test_ranks_by_frequency():
    X = pd.DataFrame({"c": ["b", "a", "a", "c", "a", "b", None]})
    coded = NativeCategories(output="ordinal", names="kept").fit(X)
    new = pd.DataFrame({"c": ["a", "b", "c", None, "new"]})
    np.testing.assert_array_equal(coded.transform(new)["c"], [0.0, 1.0, 2.0, np.nan, np.nan])


def test_names_are_kept_where_boosters_take_them():
    X = pd.DataFrame({"a [x]": ["u", "v"] * 50, "a__x_": range(100), "größe": range(100), "b<c": [0.5, 1.5] * 50})
    native = NativeCategories(names="kept").fit(X)
    assert list(native.names_.values()) == list(X)
    assert list(native.names_)[1:] == ["a__x_", "größe", "b_c"]
    assert len(set(native.names_)) == 4
    for library in LIBRARIES:
        model = load_adapter(library).native("regression").set_params(booster__n_estimators=3).fit(X, np.arange(100.0))
        inner = model[-1] if library != "catboost" else model.booster_
        assert list(inner.feature_names_in_ if library != "catboost" else inner.feature_names_) == list(native.names_)


def test_catboost_s_own_cat_features_as_a_tuple():
    adapter, _, frame, y, margin = case("catboost", "squared_error")
    model = CatBoostRegressor(iterations=5, cat_features=("f0", "f1"), **QUIET)
    fitted = adapter.fit_margin(model, frame, y, margin)
    without = adapter.fit_margin(CatBoostRegressor(iterations=5, **QUIET), frame, y, margin)
    np.testing.assert_array_equal(adapter.raw_scores(fitted, frame), adapter.raw_scores(without, frame))
    numbers = NativeCategories(output="ordinal").fit_transform(FRAME)  # the names are numbers here
    assert np.isfinite(adapter.raw_scores(adapter.fit_margin(model, numbers, y, margin), numbers)).all()


THIRD_PARTY = Path(__file__).parents[1] / "third_party"


@pytest.mark.slow
def test_an_adapter_by_somebody_else_needs_an_entry_point_only(tmp_path):
    project = tomllib.loads((THIRD_PARTY / "pyproject.toml").read_text())["project"]
    info = tmp_path / "tabsym_stumps-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = project["entry-points"]["tabsym.adapters"]
    lines = "".join(f"{name} = {target}\n" for name, target in points.items())
    (info / "entry_points.txt").write_text(f"[tabsym.adapters]\n{lines}")
    code = """
import numpy as np, pandas as pd
from tabsym import WideBoostRegressor, WideSGDRegressor
from tabsym.compare.contenders import all_contenders
from tabsym.integrations import available, load_adapter
from tabsym_stumps import Stumps
rng = np.random.default_rng(0)
X = pd.DataFrame({"shop": rng.choice(list("abcdefgh"), 500), "n": rng.normal(size=500)})
y = X["shop"].map({name: 3.0 * place for place, name in enumerate("abcdefgh")}).to_numpy() + (X["n"] > 0)
wide = WideSGDRegressor(categorical_features=["shop"])
model = WideBoostRegressor(wide, Stumps(), mode="margin", random_state=0, booster_cols="n")
model.fit(X, y)
hand = model.wide_.predict(X) + model.boosters_["margin"].predict(X[["n"]])
print(available(), load_adapter("stumps").label, "stumps" in all_contenders(), *model.n_rounds_.popitem(),
      bool(np.allclose(model.predict(X), hand)), model.score(X, y) > model.wide_.score(X, y), sep="; ")
"""
    path = os.pathsep.join([str(tmp_path), str(THIRD_PARTY)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip().split("; ")
    assert said[0] == "['catboost', 'lightgbm', 'stumps', 'xgboost']"
    assert said[1:4] == ["Stumps", "True", "margin"]
    assert int(said[4]) > 0
    assert said[5:] == ["True", "True"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_tasks_that_there_are_not_and_missing_labels_are_refused(library):
    adapter = load_adapter(library)
    with pytest.raises(ValueError, match="task='Regression' is not known; use 'binary'"):
        adapter.native("Regression")
    booster = {"lightgbm": LGBMClassifier, "xgboost": XGBClassifier, "catboost": CatBoostClassifier}[library]
    with pytest.raises(ValueError, match="The target is missing in row 1"):
        adapter.fit_margin(booster(n_estimators=2), FRAME[["price"]], np.where(np.arange(N) == 1, np.nan, 0.0))


@pytest.mark.parametrize("wrong", [np.zeros(3), np.full(N, np.nan)])
def test_margins_of_prediction_are_checked(wrong):
    adapter = load_adapter("lightgbm")
    booster = LGBMRegressor(n_estimators=2, verbose=-1)
    fitted = adapter.fit_margin(booster, FRAME[["price"]], SIGNAL, np.zeros(N))
    with pytest.raises(ValueError, match=r"margin (has shape|is nan)"):
        adapter.raw_scores(fitted, FRAME[["price"]], wrong)


def test_lengths_triples_and_steps_are_checked():
    adapter = load_adapter("lightgbm")
    booster = LGBMRegressor(n_estimators=2, verbose=-1)
    frame = FRAME[["price"]]
    with pytest.raises(ValueError, match="X has 400 rows and y 3 values"):
        adapter.fit_margin(booster, frame, SIGNAL[:3])
    with pytest.raises(ValueError, match="X has 400 rows and sample_weight 3 values"):
        adapter.fit_margin(booster, frame, SIGNAL, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="eval_set must be one triple"):
        adapter.fit_margin(booster, frame, SIGNAL, eval_set=(frame, SIGNAL))
    with pytest.raises(ValueError, match="every=0 is not possible"):
        list(adapter.path(adapter.fit_margin(booster, frame, SIGNAL), frame, 0))
