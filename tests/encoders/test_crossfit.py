"""CrossFit: it does not leak, whatever the encoder, the frame and the folds."""

import copy
import pickle
import warnings

import category_encoders
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from category_encoders.utils import SupervisedTransformerMixin
from category_encoders.wrapper import PolynomialWrapper
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, TargetEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabsym import CrossFit, MODLEncoder, TIWSEncoder, WideEncoder, load, save
from tabsym import OneHotEncoder as TabsymOneHotEncoder
from tabsym.encoders import NativeCategories
from tabsym.encoders.crossfit import StoredEncoder

pytestmark = pytest.mark.filterwarnings("ignore:'future.no_silent_downcasting' is deprecated")  # category_encoders'

RNG = np.random.default_rng(0)
N = 600
X = pd.DataFrame(
    {"a": RNG.choice(list("uvwxyz"), N), "n": RNG.normal(size=N), "b": pd.Categorical(RNG.choice(["p", "q"], N))},
    index=RNG.permutation(N) + 7,
)
SCORE = X["a"].map(dict(zip("uvwxyz", [2.0, -2.0, 0.0, 1.0, -1.0, 0.5]))) + RNG.logistic(size=N)
Y = (SCORE > 0).to_numpy().astype(int)
CE = category_encoders
SUPERVISED = [
    encoder
    for encoder in vars(CE).values()
    if isinstance(encoder, type) and (issubclass(encoder, SupervisedTransformerMixin) or encoder is CE.SummaryEncoder)
]


def by_hand(encoder, frame, y, folds):
    """The definition: each held-out part by a clone that was fitted on the other rows."""
    parts = []
    for train, test in folds:
        out = clone(encoder).fit(frame.iloc[train], y[train]).transform(frame.iloc[test])
        parts.append(pd.DataFrame(out, index=frame.index[test]))
    return pd.concat(parts).loc[frame.index]


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoder", [CE.TargetEncoder(), TargetEncoder(), WideEncoder(random_state=0)], ids=lambda e: type(e).__module__[:10]
)
def test_random_keys_do_not_predict(encoder):
    """Pure noise: a model trained on the encoding must find nothing in it, though the plain encoding fits it."""
    rng = np.random.default_rng(1)
    keys = pd.DataFrame({"key": rng.integers(0, 1000, 2000).astype(str)})
    y = rng.integers(0, 2, 2000)

    def auc(cv):
        encoded = CrossFit(encoder, cv=cv, random_state=0).fit_transform(keys, y)
        return roc_auc_score(y, LogisticRegression().fit(encoded, y).predict_proba(encoded)[:, 1])

    assert auc(5) < 0.55
    assert auc(None) > 0.8


@pytest.mark.parametrize("target", ["binary", "multiclass", "continuous"])
def test_as_scikit_learns_own_target_encoder(target):
    y = {"binary": Y, "multiclass": np.digitize(SCORE, [-1, 1]), "continuous": SCORE.to_numpy()}[target]
    categories = X[["a", "b"]]
    with warnings.catch_warnings():  # how it takes its folds differs between versions
        warnings.simplefilter("ignore", FutureWarning)
        theirs = TargetEncoder(cv=4, shuffle=True, random_state=3).fit_transform(categories, y)
    folds = (KFold if target == "continuous" else StratifiedKFold)(4, shuffle=True, random_state=3)
    for cv, seed in ((4, 3), (folds, None), (list(folds.split(categories, y)), None)):
        ours = CrossFit(TargetEncoder(), cv=cv, random_state=seed).fit_transform(categories, y)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("smooth", ["auto", 3.0])
@pytest.mark.parametrize("target", ["binary", "multiclass", "continuous"])
def test_target_encoders_of_the_other_folds(target, smooth):
    """As the definition where groups, a few missing values and categories of one row are held out."""
    y = {"binary": Y, "multiclass": np.digitize(SCORE, [-1, 1]), "continuous": SCORE.to_numpy()}[target]
    groups = np.random.default_rng(2).integers(0, 9, N)
    frame = X[["a", "b"]].assign(key=np.where(groups < 2, groups, np.arange(N)).astype(str))
    frame.loc[frame.index[::7], "a"] = None
    found = CrossFit(TargetEncoder(smooth=smooth), cv=GroupKFold(4)).set_output(transform="pandas")
    with pytest.warns(UserWarning, match="categories"):
        out = found.fit_transform(frame, y, groups=groups)
    folds = list(GroupKFold(4).split(frame, y, groups))
    np.testing.assert_allclose(out, by_hand(TargetEncoder(smooth=smooth), frame, y, folds), rtol=1e-12)
    assert list(out.index) == list(frame.index)
    plain = TargetEncoder(smooth=smooth).fit(frame, y)
    np.testing.assert_allclose(found.transform(frame), plain.transform(frame), rtol=1e-12)
    np.testing.assert_array_equal(out.columns, plain.get_feature_names_out())


@pytest.mark.parametrize(
    ("encoder", "options"),
    [
        (encoder, options)
        for turn, encoder in enumerate(SUPERVISED)
        for options in ({}, ({"cols": ["a"]}, {"return_df": False})[turn % 2])
    ],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_every_supervised_encoder_of_category_encoders(encoder, options):
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))
    ours = CrossFit(encoder(**options), cv=folds)
    out = ours.fit_transform(X, Y)
    expected = by_hand(encoder(**options), X, Y, folds)
    np.testing.assert_array_equal(np.asarray(out), expected.to_numpy())
    np.testing.assert_array_equal(ours.transform(X), encoder(**options).fit(X, Y).transform(X))
    if options.get("return_df", True):
        pd.testing.assert_frame_equal(out, expected)
        assert list(out.columns) == list(ours.get_feature_names_out())
    assert len(SUPERVISED) >= 9


WRITTEN = [(encoder(), Y) for encoder in SUPERVISED]
WRITTEN += [(CE.TargetEncoder(hierarchy={"a": {"early": ("u", "v"), "late": tuple("wxyz")}}, cols=["a"]), Y)]


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "y"), WRITTEN, ids=lambda value: type(value).__name__)
def test_encoders_of_category_encoders_are_saved(encoder, y, tmp_path):
    rows = X.assign(a=X["a"].where(X["n"] < 1.5), c=pd.Series(X["a"].map(ord), dtype=object))
    crossed = CrossFit(encoder, cv=3)
    crossed.fit_transform(rows, y)
    path = save(crossed, tmp_path / "encoder.skops")
    new = rows.assign(a=["never", None, *rows["a"].iloc[2:]])
    for again in (load(path), copy.deepcopy(crossed)):
        pd.testing.assert_frame_equal(again.transform(new), crossed.transform(new), check_exact=True)
        assert type(again.encoder_) is type(again.encoder) is type(encoder)
        assert clone(again).get_params()["encoder"].get_params().keys() == encoder.get_params().keys()
    assert save(load(path), tmp_path / "again.skops").read_bytes() == path.read_bytes()


def test_encoders_that_cannot_be_saved_are_named(tmp_path):
    crossed = CrossFit(make_pipeline(CE.TargetEncoder())).fit(X, Y)
    with pytest.raises(ValueError, match=r"CrossFit cannot .* category_encoders' TargetEncoder by itself.*CrossFit\("):
        save(crossed, tmp_path / "encoder.skops")
    with pytest.raises(TypeError, match=r"fit of PolynomialWrapper returns nothing .* use sklearn"):
        CrossFit(PolynomialWrapper(CE.TargetEncoder())).fit(X, Y)


def test_files_hold_listed_encoders_only():
    crossed = CrossFit(CE.TargetEncoder()).fit(X, Y)
    state = crossed.__getstate__()
    assert isinstance(state["encoder_"], StoredEncoder)
    for wrong in (StoredEncoder("HashingEncoder", {}), StoredEncoder("TargetEncoder", {"__class__": ["value", 1]})):
        with pytest.raises(ValueError, match=r"no encoder that files may hold|names of attributes"):
            crossed.__setstate__({**state, "encoder_": wrong})


def test_groups_are_honoured():
    seen = []

    class Spy(TransformerMixin, BaseEstimator):
        def fit(self, X, y):
            self.groups_ = set(X["g"])
            return self

        def transform(self, X):
            seen.append(self.groups_ & set(X["g"]))
            return X

    frame = X.assign(g=RNG.integers(0, 20, N))
    CrossFit(Spy(), cv=GroupKFold(4)).fit_transform(frame, Y, groups=frame["g"])
    assert seen[1:] == [set()] * 4  # the first one is encoder_'s, asked for its columns
    expected = by_hand(CE.TargetEncoder(cols=["a"]), frame, Y, GroupKFold(4).split(frame, Y, frame["g"]))
    out = CrossFit(CE.TargetEncoder(cols=["a"]), cv=GroupKFold(4)).fit_transform(frame, Y, groups=frame["g"])
    pd.testing.assert_frame_equal(out, expected)
    with pytest.raises(ValueError, match="would not keep groups together; pass a splitter"):
        CrossFit(TargetEncoder()).fit_transform(X[["a"]], Y, groups=frame["g"])


@pytest.mark.parametrize("encoder", [CE.CatBoostEncoder(), TargetEncoder(), WideEncoder(random_state=0)], ids=str)
def test_frames_of_every_kind_and_arrays_agree(encoder):
    cross = CrossFit(encoder, random_state=0)
    frame = X[["a", "b"]]
    expected = cross.fit_transform(frame, Y)
    again = cross.transform(frame.head(5))
    assert isinstance(expected, pd.DataFrame)
    assert expected.index.equals(frame.index)
    others = {
        "polars": pl.DataFrame({"a": frame["a"].tolist(), "b": frame["b"].tolist()}),
        "pyarrow": pl.DataFrame({"a": frame["a"].tolist(), "b": frame["b"].tolist()}).to_arrow(),
        "array": frame.to_numpy(),
    }
    for name, data in others.items():
        out = cross.fit_transform(data, Y)
        np.testing.assert_allclose(np.asarray(out).astype(float), expected.to_numpy(float), err_msg=name)
        np.testing.assert_allclose(np.asarray(cross.transform(data[:5])).astype(float), again.to_numpy(float))
        if name != "array":
            assert type(out) is type(data)
            assert list(getattr(out, "column_names", out.columns)) == ["a", "b"]


def test_untouched_columns_keep_their_types_and_categories_are_united():
    class Grouping(TransformerMixin, BaseEstimator):
        """As an encoder that names groups: other labels in every fold."""

        def fit(self, X, y):
            self.label_ = f"mean {np.mean(y):.6f}"
            return self

        def transform(self, X):
            return X.assign(group=pd.Categorical([self.label_] * len(X)))

    frame = X.assign(when=pd.Timestamp("2020-01-01"), flag=True, small=np.int8(3), text=X["a"].astype(object))
    cut = [np.arange(0, 100), np.arange(100, N)]
    out = CrossFit(Grouping(), cv=[(cut[1], cut[0]), (cut[0], cut[1])]).fit_transform(frame, Y)
    pd.testing.assert_frame_equal(out.drop(columns="group"), frame)
    assert isinstance(out["group"].dtype, pd.CategoricalDtype)
    assert out["group"].tolist() == [f"mean {Y[100:].mean():.6f}"] * 100 + [f"mean {Y[:100].mean():.6f}"] * (N - 100)
    cross = CrossFit(WideEncoder(cols=["a"], random_state=0), cv=np.int64(3), random_state=0)
    pd.testing.assert_frame_equal(cross.fit_transform(X, Y), cross.set_params(cv=3).fit_transform(X, Y))
    lists = pl.DataFrame({"a": X["a"].tolist()}).with_columns(e=pl.col("a").cast(pl.Enum(list("uvwxyz"))))
    out = CrossFit(WideEncoder(cols=["a"], random_state=0), cv=3).fit_transform(lists, Y)
    assert out.schema["e"] == lists.schema["e"]


@pytest.mark.parametrize("kind", ["polars-enum", "polars-categorical", "pyarrow-dictionary"])
def test_group_labels_of_other_frames_are_united(kind):
    class Grouping(TransformerMixin, BaseEstimator):
        def fit(self, X, y):
            self.label_ = f"mean {np.mean(y):.6f}"
            return self

        def transform(self, X):
            labels = pl.Series("group", [self.label_] * len(X))
            dtype = pl.Enum([self.label_]) if kind == "polars-enum" else pl.Categorical
            out = pl.DataFrame({"group": labels.cast(dtype), "n": np.full(len(X), len(self.label_))})
            return out.to_arrow() if kind == "pyarrow-dictionary" else out

    frame = pl.DataFrame({"a": X["a"].tolist()})
    frame = frame.to_arrow() if kind == "pyarrow-dictionary" else frame
    cut = [np.arange(0, 100), np.arange(100, N)]
    out = CrossFit(Grouping(), cv=[(cut[1], cut[0]), (cut[0], cut[1])]).fit_transform(frame, Y)
    groups = out["group"].to_pylist() if kind == "pyarrow-dictionary" else out["group"].to_list()
    assert groups == [f"mean {Y[100:].mean():.6f}"] * 100 + [f"mean {Y[:100].mean():.6f}"] * (N - 100)
    if kind == "polars-enum":
        assert isinstance(out.schema["group"], pl.Enum)
        assert len(out.schema["group"].categories) == 2


@pytest.mark.parametrize(
    "encoder",
    [
        TabsymOneHotEncoder(),
        CE.OneHotEncoder(),
        CE.OrdinalEncoder(),
        CE.BinaryEncoder(),
        CE.CountEncoder(),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        NativeCategories(),
        make_pipeline(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), "passthrough"),
        make_column_transformer((OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["a"])),
    ],
    ids=lambda one: f"{type(one).__module__.split('.')[0]} {type(one).__name__}",
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("rows", ["uvuvvuvu", "tuvuvuvu"])
def test_categories_of_encoders_without_a_target_mean_the_same_in_training_and_later(rows, make, encoder):
    """Each half begins with another category, or one of them lacks the first: folds number others differently."""
    rows = make({"a": list(rows)})
    cross = CrossFit(encoder, cv=KFold(2))
    trained = cross.fit_transform(rows, np.arange(8) % 2)
    np.testing.assert_array_equal(np.asarray(trained), np.asarray(cross.transform(rows)))


@pytest.mark.parametrize("output", ["group", "onehot"])
def test_parts_mean_the_same_in_training_and_later(output):
    """A fold's first interval or group is another one; MODLEncoder itself encodes the rows of fit by all of them."""
    y = (X["n"] + 0.3 * RNG.normal(size=N) > 0.2).astype(int)
    cross = CrossFit(MODLEncoder(output=output), cv=3)
    trained = cross.fit_transform(X, y)
    pd.testing.assert_frame_equal(trained, cross.transform(X))
    pd.testing.assert_frame_equal(trained, MODLEncoder(output=output).fit_transform(X, y))


def test_numbers_of_categories_beside_a_target_encoder_are_refused():
    rows, target = X[["a", "b"]], TargetEncoder(target_type="binary")
    beside = [OrdinalEncoder(), NativeCategories(), MODLEncoder(), CE.BinaryEncoder()]
    for one in [*beside, make_pipeline(OrdinalEncoder(), FunctionTransformer())]:
        name = type(one[0] if isinstance(one, Pipeline) else one).__name__
        with pytest.raises(ValueError, match=f"{name} inside the encoder numbers the categories.*outside CrossFit"):
            CrossFit(make_column_transformer((one, ["b"]), (target, ["a"]))).fit_transform(rows, Y)
    folds = list(KFold(3).split(rows))
    for one in (make_pipeline(OrdinalEncoder(), target), make_column_transformer((target, ["a"]), ("passthrough", [1])),
                make_column_transformer((make_pipeline(TabsymOneHotEncoder()), ["b"]), (target, ["a"]))):  # fmt: skip
        out = CrossFit(one, cv=folds).fit_transform(rows, Y)
        np.testing.assert_array_equal(np.asarray(out), by_hand(one, rows, Y, folds).to_numpy())


def test_sparse_output_and_columns_that_differ_between_folds():
    rare = pd.DataFrame({"a": ["rare", *["u", "v"] * 30]})
    y = np.arange(61) % 2
    with pytest.raises(ValueError, match=r"other columns .2. than that of all rows .3., such as 'a_rare'.*fewer folds"):
        CrossFit(OneHotEncoder(handle_unknown="ignore", sparse_output=False), random_state=0).fit_transform(rare, y)
    out = CrossFit(OneHotEncoder(), random_state=0).fit_transform(rare[1:], y[1:])
    np.testing.assert_array_equal(out.toarray(), OneHotEncoder().fit_transform(rare[1:]).toarray())
    # drop_invariant: decided on all rows, so a fold in which a column is constant is no trouble
    constant = pd.DataFrame({"n": np.zeros(61), "a": rare["a"], "m": np.r_[1.0, np.zeros(60)]})
    for encoder in (CE.TargetEncoder(drop_invariant=True), WideEncoder(drop_invariant=True, random_state=0)):
        cross = CrossFit(encoder, random_state=0)
        out = cross.fit_transform(constant, y)
        assert list(out.columns) == list(cross.transform(constant).columns)
        assert "a" in out


def test_text_targets_of_category_encoders_keep_their_numbers_in_every_fold():
    """category_encoders number the classes that they see; a fold of one class would call it 0."""
    words = np.where(Y == 1, "yes", "no")
    out = CrossFit(CE.TargetEncoder(), random_state=0).fit_transform(X, words)
    pd.testing.assert_frame_equal(out, CrossFit(CE.TargetEncoder(), random_state=0).fit_transform(X, Y))


def test_without_folds_it_is_fit_and_transform():
    plain = CE.TargetEncoder().fit(X, Y).transform(X)
    cross = CrossFit(CE.TargetEncoder(), cv=None)
    pd.testing.assert_frame_equal(cross.fit_transform(X, Y), plain)
    pd.testing.assert_frame_equal(cross.fit(X, Y).transform(X), plain)


def test_whole_numbers_that_are_a_quantity_are_not_stratified():
    counts = np.arange(N)  # no class has as many rows as there are folds
    out = CrossFit(TargetEncoder(target_type="continuous"), random_state=0).fit_transform(X[["a"]], counts)
    assert out.shape == (N, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        CrossFit(CE.TargetEncoder(cols=["n"]), random_state=0).fit_transform(X[["n"]], counts)


def test_sample_weight():
    weight = RNG.integers(1, 3, N).astype(float)
    encoder = WideEncoder(random_state=0)
    folds = list(KFold(3).split(X))
    out = CrossFit(encoder, cv=folds).fit_transform(X, Y, sample_weight=weight)
    for train, test in folds:
        apart = clone(encoder).fit(X.iloc[train], Y[train], sample_weight=weight[train]).transform(X.iloc[test])
        pd.testing.assert_frame_equal(out.iloc[test], apart)
    for theirs in (CE.TargetEncoder(), TargetEncoder(), make_pipeline(WideEncoder())):
        with pytest.raises(ValueError, match="takes no sample_weight in fit; leave it out"):
            CrossFit(theirs).fit(X[["a"]], Y, sample_weight=weight)


def test_set_output_and_names():
    cross = CrossFit(TargetEncoder(), random_state=0)
    categories = X[["a", "b"]]
    out = cross.set_output(transform="polars").fit_transform(categories, Y)
    assert isinstance(out, pl.DataFrame)
    assert out.columns == ["a", "b"] == cross.get_feature_names_out().tolist()
    assert isinstance(cross.set_output(transform="pandas").fit_transform(categories.to_numpy(), Y), pd.DataFrame)
    wide = CrossFit(CE.TargetEncoder(), random_state=0).set_output(transform="pandas")
    assert wide.fit_transform(pl.DataFrame({"a": X["a"].tolist()}), Y).columns.tolist() == ["a"]
    multi = CrossFit(WideEncoder(random_state=0)).fit(X, np.digitize(SCORE, [-1, 1]))
    assert multi.get_feature_names_out().tolist() == multi.transform(X).columns.tolist()
    assert multi.feature_names_in_.tolist() == ["a", "n", "b"]
    assert multi.n_features_in_ == 3
    with pytest.raises(ValueError, match="must be in the same order"):
        multi.transform(X[["n", "a", "b"]])


def test_columns_named_by_numbers_and_arrays_after_frames():
    numbered = X[["a", "b"]].set_axis([0, 1], axis=1)
    cross = CrossFit(CE.TargetEncoder(), random_state=0)
    out = cross.fit_transform(numbered, Y)
    assert out.columns.tolist() == [0, 1]
    cross.fit(X[["a", "b"]], Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        after = cross.transform(X[["a", "b"]].to_numpy())
    np.testing.assert_array_equal(after, cross.transform(X[["a", "b"]]))


@pytest.mark.slow
def test_in_pipelines_searches_pickles():
    pipeline = make_pipeline(
        make_column_transformer((CrossFit(TargetEncoder(), random_state=0), ["a", "b"]), remainder="passthrough"),
        LogisticRegression(),
    )
    assert cross_val_score(pipeline, X, Y, scoring="roc_auc").mean() > 0.75
    pipeline = make_pipeline(CrossFit(CE.MEstimateEncoder(), random_state=0), LogisticRegression())
    search = GridSearchCV(pipeline, {"crossfit__encoder__m": [0.1, 10], "crossfit__cv": [3, None]}, cv=3).fit(X, Y)
    assert search.best_params_["crossfit__encoder__m"] in (0.1, 10)
    pipeline.fit(X, Y, crossfit__groups=None)
    cross = pickle.loads(pickle.dumps(pipeline[0]))  # noqa: S301
    pd.testing.assert_frame_equal(cross.transform(X), pipeline[0].transform(X))
    again = clone(cross)
    assert not hasattr(again, "encoder_")
    pd.testing.assert_frame_equal(again.fit_transform(X, Y), cross.fit_transform(X, Y))
    inside = CrossFit(make_pipeline(CE.TargetEncoder(), TabsymOneHotEncoder()), random_state=0)
    assert isinstance(inside.fit_transform(pl.DataFrame({"a": X["a"].tolist()}), Y), pl.DataFrame)


def test_folds_that_would_leak_or_share_rows():
    half = np.arange(N) < N // 2
    categories = X[["a"]]

    def fit_with(cv, y=Y):
        return CrossFit(TargetEncoder(), cv=cv).fit_transform(categories, y)

    assert fit_with([(half, ~half), (~half, half)]).shape == (N, 1)  # masks are fine
    with pytest.raises(ValueError, match=r"row 0 out 2 times \(600 such rows\).*such as KFold"):
        fit_with(RepeatedKFold(n_splits=3, n_repeats=2))
    with pytest.raises(ValueError, match=r"cv holds no row out; .*such as KFold"):
        fit_with([(np.arange(N), [])])
    with pytest.raises(ValueError, match="Fold 0 of cv both trains on row 0 and encodes it, which leaks"):
        fit_with([(np.arange(N), np.arange(N))])
    with pytest.raises(ValueError, match="outside 0 to 599; make the splits"):
        fit_with([(np.arange(N), [N])])
    with pytest.raises(ValueError, match=r"fold 0 of cv hold one class only \(0\).*stratified splitter"):
        fit_with([(half, ~half), (~half, half)], y=np.r_[np.zeros(N // 2), np.arange(N // 2) % 2].astype(int))
    with pytest.raises(ValueError, match=r"needs the group of each row; pass groups=\.\.\. to fit"):
        fit_with(GroupKFold(3))


def test_other_errors():
    with pytest.raises(TypeError, match="must be an object with fit and transform"):
        CrossFit(TargetEncoder).fit(X, Y)
    with pytest.raises(TypeError, match="must be an object with fit and transform"):
        CrossFit(LogisticRegression()).fit(X, Y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        CrossFit(TargetEncoder()).fit(X)
    with pytest.raises(ValueError, match="not fitted yet"):
        CrossFit(TargetEncoder()).transform(X)


WEIGHT_CHECKS = dict.fromkeys(
    (
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_list",
        "check_all_zero_sample_weights_error",
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
    ),
    "the encoder inside takes no sample_weight, which is an error",
)
OF_CATEGORY_ENCODERS = {
    "check_estimators_nan_inf": "category_encoders' tags say that missing values are refused, and they are not",
    "check_transformer_preserve_dtypes": "category_encoders' tags promise float64 arrays, but frames come out",
}


def expected_failures(cross):
    if isinstance(cross.encoder, WideEncoder):
        return {}
    return WEIGHT_CHECKS | (OF_CATEGORY_ENCODERS if isinstance(cross.encoder, CE.TargetEncoder) else {})


@parametrize_with_checks(
    [CrossFit(WideEncoder()), CrossFit(TargetEncoder()), CrossFit(CE.TargetEncoder())],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:No categorical columns found")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_categories_that_training_parts_lack_are_counted_in_one_warning():
    X = pd.DataFrame({"shop": np.repeat(list("abcde"), 20), "kind": list("uv") * 50})
    y = np.arange(100) % 2
    groups = X["shop"]
    with pytest.warns(UserWarning, match="holds out 100 of 100 rows with categories .* of column 'shop'") as caught:
        CrossFit(TargetEncoder(), cv=GroupKFold(5)).fit_transform(X, y, groups=groups)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CrossFit(TargetEncoder(), cv=GroupKFold(5)).fit_transform(X[["kind"]], y, groups=groups)
        CrossFit(TIWSEncoder(cols="kind"), cv=GroupKFold(5)).fit_transform(X, y, groups=groups)
        CrossFit(TargetEncoder()).fit_transform(X.assign(key=np.arange(100).astype(str)), y)  # folds as they come


# What all rows decide, folds do not decide anew.


def booleans_with_one_gap(n=200):
    rng = np.random.default_rng(0)
    text, flag = rng.choice(list("abcdef"), n), [bool(one) for one in rng.random(n) < 0.5]
    y = np.array([ord(one) % 3 for one in text]) + 1.5 * np.array(flag) + 0.3 * rng.normal(size=n)
    flag[3] = None
    return pd.DataFrame({"s": text, "b": pd.Series(flag, dtype=object)}), y


OWN = {
    "wide": WideEncoder(cv=None, target_type="continuous"),
    "tiws": TIWSEncoder(cv=None, target_type="continuous"),
    "modl": MODLEncoder(cv=None, output="mean", numeric="passthrough", target_type="continuous"),
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_booleans_with_one_missing_value_are_encoded_in_every_fold(name, frame):
    X, y = booleans_with_one_gap()
    if frame == "polars":
        X = pl.from_pandas(X)
    found = CrossFit(clone(OWN[name]), cv=5, random_state=0).fit_transform(X, y)
    own = clone(OWN[name]).set_params(cv=5, random_state=0).fit_transform(X, y)
    np.testing.assert_array_equal(nw.from_native(found).to_numpy(), nw.from_native(own).to_numpy())
    assert nw.from_native(found).schema["b"] == nw.Float64


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_compositions_encode_the_same_columns_in_every_fold(name):
    X, y = booleans_with_one_gap()
    cv = KFold(5, shuffle=True, random_state=0)
    parts = {
        "columns": make_column_transformer((clone(OWN[name]), ["s", "b"])),
        "union": make_union(clone(OWN[name])),
        "pipeline": make_pipeline("passthrough", clone(OWN[name])),
    }
    own = clone(OWN[name]).set_params(cv=cv).fit_transform(X, y)
    for part in parts.values():
        found = CrossFit(part, cv=cv).set_output(transform="pandas").fit_transform(X, y)
        np.testing.assert_allclose(np.asarray(found, dtype=float), own.to_numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", OWN)
def test_numbers_that_begin_late_stay_as_they_are(name):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"s": rng.choice(list("abc"), 300), "x": rng.normal(size=300)})
    X.loc[:120, "x"] = np.nan
    with pytest.warns(UserWarning, match="held out in no fold|in no fold"):
        found = CrossFit(clone(OWN[name]), cv=TimeSeriesSplit(4)).fit_transform(X, rng.normal(size=300))
    pd.testing.assert_series_equal(found["x"], X["x"])


@pytest.mark.slow
def test_intervals_of_the_target_are_those_of_all_rows():
    """Folds with as many intervals of the target had the probabilities of others under the same names."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"s": rng.choice(list("abcdef"), 300)})
        y = 2.0 * np.array([ord(one) % 3 for one in X["s"]]) + rng.normal(size=300)
        cv = KFold(4, shuffle=True, random_state=0)
        encoder = MODLEncoder(output="probability", target_type="continuous", cv=None)
        own = clone(encoder).set_params(cv=cv).fit_transform(X, y)
        pd.testing.assert_frame_equal(CrossFit(encoder, cv=cv).fit_transform(X, y), own)


def test_the_remainder_of_a_column_transformer_is_encoded_out_of_fold():
    """It was taken for none, and the composition for one that shows no target."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": rng.integers(0, 1000, 2000).astype(str), "x": rng.normal(size=2000)})
    y = rng.normal(size=2000)
    encoder = TIWSEncoder(cv=None, target_type="continuous")
    part = make_column_transformer(("passthrough", ["x"]), remainder=encoder).set_output(transform="pandas")
    found = CrossFit(part, cv=5).fit_transform(X, y).filter(like="id").to_numpy().ravel()
    assert abs(np.corrcoef(found, y)[0, 1]) < 0.1


def test_parts_that_select_no_column_are_left_as_they_are():
    X, y = booleans_with_one_gap()
    text = make_column_selector("s")
    parts = [(clone(OWN["wide"]), []), (clone(OWN["tiws"]), text)]
    found = CrossFit(make_column_transformer(*parts), cv=KFold(5)).fit_transform(X[["s"]], y)
    assert np.asarray(found).shape == (200, 1)


@pytest.mark.parametrize("values", [[np.nan] * 3, [pd.NaT] * 3, pd.array([pd.NA] * 3, "Float64")], ids=str)
def test_text_that_is_missing_in_every_row(values):
    """scikit-learn's encoder said that numpy's isnan is not supported for the input types."""
    X, y = pd.DataFrame({"a": [*"uvuvuv"], "b": [*"pppqqq"]}), [1.0, 2.0, 1.5, 2.5, 1.0, 3.0]
    encoder = CrossFit(TargetEncoder(target_type="continuous"), cv=2).fit(X, y)
    new = X[:3].assign(a=values)
    want = encoder.transform(X[:3].assign(a=pd.Series(None, range(3), object)))
    np.testing.assert_array_equal(encoder.transform(new), want)
    assert (want.to_numpy()[:, 0] == np.mean(y)).all()


@pytest.mark.parametrize("value", [1, 1.5, pd.Timestamp("2024-02-29"), True], ids=str)
def test_text_that_is_something_else_in_new_rows(value):
    X, y = pd.DataFrame({"a": [*"uvuvuv"], "b": [*"pppqqq"]}), [1.0, 2.0, 1.5, 2.5, 1.0, 3.0]
    encoder = CrossFit(TargetEncoder(target_type="continuous"), cv=2).fit(X, y)
    with pytest.raises(TypeError, match=r"Column 'a' held text in fit and holds other values now .*, which TargetEnc"):
        encoder.transform(X.assign(a=value))
