"""MODLEncoder: its outputs, frames, cross-fitting, options, streams, and what it refuses."""

import pickle

import matplotlib as mpl
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline

from tabsym import CrossFit, MODLEncoder, WideClassifier
from tabsym.modl import interval_cost
from tabsym.stats import contingency
from tabsym.table.output import Labels
from tests.conftest import as_frame

mpl.use("Agg")

RNG = np.random.default_rng(0)
N = 420
NUMBER = RNG.normal(size=N).round(2)
X = pd.DataFrame({"x": NUMBER, "g": RNG.choice(list("abcdefgh"), N)})
SCORE = X["x"] + X["g"].map(dict(zip("abcdefgh", [2, 2, 2, 0, 0, -2, -2, -2], strict=True)))
Y = (SCORE + RNG.logistic(size=N) / 2 > 0).astype(int).to_numpy()
THREE = np.array(["high", "low", "mid"])[np.digitize(SCORE, [-1, 1])]
AMOUNT = (SCORE + RNG.normal(size=N) / 2).to_numpy()
TARGETS = {"binary": Y, "classes": THREE, "amounts": AMOUNT}

SMALL = pd.DataFrame({"g": ["a"] * 20 + ["b"] * 20, "x": [1.0] * 20 + [2.0] * 20})
SMALL_Y = np.array([0] * 20 + [0] * 5 + [1] * 15)


def same_parts(a, b):
    """Two encoders found the same parts, at the same cost."""
    assert list(a.partitions_) == list(b.partitions_)
    for name, one in a.partitions_.items():
        other = b.partitions_[name]
        assert one.labels == other.labels
        np.testing.assert_allclose(one.target.counts, other.target.counts)
        np.testing.assert_allclose(one.partition.cost, other.partition.cost, rtol=1e-12)


# -- frames ------------------------------------------------------------------------------------------


def test_every_frame_gives_the_same_parts(make_frame):
    rows = {
        "g": [None if s == "h" else s for s in X["g"]],
        "n": [None if i % 7 == 0 else float(v) for i, v in enumerate(NUMBER)],
        "flag": (NUMBER > 0).tolist(),
    }
    plain = MODLEncoder().fit(as_frame(rows, "pandas-object"), Y)
    frame = make_frame(rows)
    encoder = MODLEncoder().fit(frame, Y)
    same_parts(encoder, plain)
    assert [one.default for name, one in encoder.partitions_.items() if name != "n"] == [
        one.default for name, one in plain.partitions_.items() if name != "n"
    ]
    out = encoder.transform(frame)
    expected = plain.transform(as_frame(rows, "pandas-object"))
    wrapped = nw.from_native(out)
    assert wrapped.columns == ["g", "n", "flag"] == encoder.get_feature_names_out().tolist()
    for name in wrapped.columns:
        assert wrapped[name].cast(nw.String()).to_list() == expected[name].astype(str).tolist()
    again = nw.from_native(encoder.inverse_transform(out))
    assert again.columns == ["g", "n", "flag"]
    assert set(again["flag"].to_list()) <= {True, False}


def test_the_type_of_the_frame_stays():
    index = pd.Index(RNG.integers(0, 9, N), name="key")  # labels that repeat
    out = MODLEncoder().fit_transform(X.set_index(index), Y)
    pd.testing.assert_index_equal(out.index, index)
    assert out["x"].cat.ordered
    assert not out["g"].cat.ordered
    encoded = MODLEncoder(output="mean").fit_transform(X.set_index(index), Y)
    pd.testing.assert_index_equal(encoded.index, index)
    polars = MODLEncoder().fit(pl.from_pandas(X), Y).transform(pl.from_pandas(X))
    assert all(isinstance(dtype, pl.Enum) for dtype in polars.schema.values())
    arrow = MODLEncoder().fit(pa.Table.from_pandas(X), Y).transform(pa.Table.from_pandas(X))
    assert isinstance(arrow, pa.Table)
    assert arrow["g"].to_pylist() == polars["g"].to_list() == out["g"].tolist()


def test_arrays_get_the_numbers_of_parts_and_positions():
    array = X[["x"]].assign(z=NUMBER[::-1]).to_numpy()
    encoder = MODLEncoder(return_df=False).fit(array, Y)
    out = encoder.transform(array)
    assert isinstance(out, np.ndarray)
    assert set(out[:, 0]) == set(range(encoder.partitions_["x0"].partition.n_parts))
    assert isinstance(MODLEncoder().fit(array, Y).transform(array), pd.DataFrame)
    for output in ("group", "mean"):
        second = MODLEncoder(output=output, cols=[1], return_df=False).fit_transform(array, Y)
        np.testing.assert_array_equal(second[:, 0], array[:, 0])
        assert not np.array_equal(second[:, 1], array[:, 1])
    texts = np.array([[v, s] for v, s in zip([None, *NUMBER[1:]], X["g"], strict=True)], dtype=object)
    mean = MODLEncoder(output="mean", return_df=False).fit_transform(texts, Y)  # numbers stay numbers in every fold
    assert len(np.unique(mean.astype(float))) < 100
    np.testing.assert_array_equal(encoder.inverse_transform(out).shape, array.shape)


def test_columns_stay_in_place_and_untouched():
    frame = pd.DataFrame({"n": np.int8(3), "g": X["g"], "when": pd.Timestamp("2020-01-01"), "flag": Y > 0, "x": NUMBER})
    out = MODLEncoder(numeric="passthrough").fit_transform(frame, Y)
    assert list(out) == list(frame)
    pd.testing.assert_frame_equal(out.drop(columns="g"), frame.drop(columns="g"))
    out = MODLEncoder(cols=["x"], output="onehot").fit_transform(frame, Y)
    assert list(out)[:4] == ["n", "g", "when", "flag"]
    assert all(name.startswith("x_") for name in list(out)[4:])
    pd.testing.assert_frame_equal(out[["n", "g", "when", "flag"]], frame[["n", "g", "when", "flag"]])
    few = pd.DataFrame({"k": np.repeat([1, 2, 3, 4], 50)})
    grouped = MODLEncoder(numeric="passthrough", cols=["k"]).fit(few, np.tile(np.repeat([0, 1], 50), 2))
    assert sorted(grouped.partitions_["k"].groups) == [[1, 3], [2, 4]]  # as symbols: not next to each other
    none = MODLEncoder(cols=[]).fit(X, Y)
    pd.testing.assert_frame_equal(none.transform(X), X)
    assert none.levels_ == {}
    assert none.describe() == ""
    assert none.partial_fit(X, Y).partial_fit(X, np.zeros(N)).levels_ == {}


# -- outputs -----------------------------------------------------------------------------------------


def encoded(column, **options):
    return MODLEncoder(cv=None, **options).fit_transform(SMALL[[column]], SMALL_Y)


@pytest.mark.parametrize("column", ["g", "x"])
def test_outputs_worked_by_hand(column):
    """Parts of 20 rows: none and 15 of class 1."""
    parts = ["{a}", "{b}"] if column == "g" else ["]-inf; 1.5]", "]1.5; +inf["]
    out = encoded(column)
    assert out[column].tolist() == [parts[0]] * 20 + [parts[1]] * 20
    assert sorted(out[column].cat.categories) == parts
    out = encoded(column, output="onehot")
    assert list(out) == [f"{column}_1", f"{column}_2"]
    assert out[sorted(out)].to_numpy().tolist() == [[1, 0]] * 20 + [[0, 1]] * 20
    assert set(out.dtypes) == {np.dtype(np.int8)}
    out = encoded(column, output="probability")
    assert list(out) == [f"{column}_0", f"{column}_1"]
    np.testing.assert_allclose(out.iloc[[0, 20]], [[21 / 22, 1 / 22], [6 / 22, 16 / 22]])
    out = encoded(column, output="logodds")
    assert list(out) == [column]
    np.testing.assert_allclose(
        out.iloc[[0, 20], 0], [np.log(1 / 17) - np.log(21 / 27), np.log(16 / 17) - np.log(6 / 27)]
    )
    np.testing.assert_allclose(encoded(column, output="mean").iloc[[0, 20], 0], [0, 0.75])


def test_outputs_of_three_classes_and_of_amounts():
    three = np.where(np.arange(40) < 20, "u", np.where(np.arange(40) < 30, "v", "w"))
    out = MODLEncoder(output="probability", cv=None).fit_transform(SMALL[["g"]], three)
    assert list(out) == ["g_u", "g_v", "g_w"]
    np.testing.assert_allclose(out.iloc[[0, 20]], np.array([[21, 1, 1], [1, 11, 11]]) / 23)
    odds = MODLEncoder(output="logodds", cv=None).fit_transform(SMALL[["g"]], three)
    np.testing.assert_allclose(odds["g_v"][[0, 20]], [np.log(1 / 12 / (21 / 32)), np.log(11 / 12 / (11 / 32))])
    amounts = np.r_[np.linspace(0, 1, 20), np.linspace(5, 7, 20)]
    encoder = MODLEncoder(output="mean", cv=None)
    np.testing.assert_allclose(encoder.fit_transform(SMALL[["g"]], amounts)["g"][[0, 20]], [0.5, 6.0])
    table = encoder.parts("g").set_index("part").loc[["{a}", "{b}"]]
    np.testing.assert_allclose(table["sd"], [np.linspace(0, 1, 20).std(), np.linspace(5, 7, 20).std()])
    out = MODLEncoder(output="probability", cv=None).fit_transform(SMALL[["g"]], amounts)
    assert list(out) == ["g_1", "g_2"]
    np.testing.assert_allclose(out.iloc[[0, 20]], [[21 / 22, 1 / 22], [1 / 22, 21 / 22]])


@pytest.mark.parametrize("word", ["handle_missing", "handle_unknown"])
@pytest.mark.parametrize("output", ["onehot", "group"])
def test_types_of_output_go_by_the_options_and_not_by_the_batch(make_frame, output, word):
    y = [0, 1] * 20
    known = make_frame({"g": ["u", "v"] * 20})
    odd = make_frame({"g": ["u", "new", None, "v"]})
    for options, kind in (({}, "i"), ({word: "return_nan"}, "f")):
        encoder = MODLEncoder(output=output, return_df=False, **options).fit(known, y)
        types = {encoder.transform(frame).dtype for frame in (known, odd)}
        assert len(types) == 1
        assert types.pop().kind == kind


def test_sparse_onehot_is_the_dense_one():
    encoder = MODLEncoder(output="onehot")
    dense = encoder.fit_transform(X.assign(n=1.5), Y)
    thin = MODLEncoder(output="onehot", sparse_output=True).fit(X.assign(n=1.5), Y).transform(X.assign(n=1.5))
    assert sparse.issparse(thin)
    assert thin.format == "csr"
    np.testing.assert_array_equal(thin.toarray(), dense.to_numpy())
    half = MODLEncoder(output="onehot", sparse_output=True, cols=["g"], drop_invariant=True).fit(X, Y)
    np.testing.assert_array_equal(half.transform(X).toarray()[:, 0], NUMBER)
    assert half.transform(X).shape[1] == len(half.get_feature_names_out())
    with pytest.raises(ValueError, match=r"Column 'g' holds symbols and is not encoded.*sparse_output=False"):
        MODLEncoder(output="onehot", sparse_output=True, cols=["x"]).fit_transform(X, Y)
    lost = MODLEncoder(output="onehot", sparse_output=True, handle_unknown="return_nan").fit(X, Y)
    with pytest.raises(ValueError, match=r"Column 'g' holds a value that would be NaN \(row 0\).*handle_unknown='val"):
        lost.transform(X.assign(g="never"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("output", ["group", "onehot", "probability", "logodds", "mean"])
def test_names_are_those_of_transform(output, target):
    encoder = MODLEncoder(output=output, cv=3)
    if (output, target) in (("mean", "classes"), ("logodds", "amounts")):
        with pytest.raises(ValueError, match=f"output='{output}' needs .*; use "):
            encoder.fit(X, TARGETS[target])
        return
    frame = X.assign(noise=1)
    for drop in (False, True):
        encoder.set_params(drop_invariant=drop)
        crossed = encoder.fit_transform(frame, TARGETS[target])
        out = encoder.transform(frame)
        assert encoder.get_feature_names_out().tolist() == list(out) == list(crossed)
        assert any(name.startswith("noise") for name in out) != drop
        assert len(encoder.transform(frame[:0])) == 0
        assert list(encoder.transform(frame[:0])) == list(out)
        if output == "probability":
            for one in (out, crossed):
                np.testing.assert_allclose(one.filter(like="x_").sum(axis=1), 1)


def test_set_output():
    for target in ("pandas", "polars"):
        kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[target]
        for frame in (X, pl.from_pandas(X), X[["x"]].to_numpy()):
            for output in ("group", "mean"):
                out = MODLEncoder(output=output).set_output(transform=target).fit_transform(frame, Y)
                assert isinstance(out, kind), (target, type(frame), output)


# -- cross-fitting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["probability", "logodds", "mean"])
def test_random_keys_do_not_predict(output):
    y = RNG.integers(0, 2, 2000)
    for n_keys, more in ((2000, {"x": RNG.normal(size=2000)}), (100, {})):
        keys = pd.DataFrame({"key": RNG.integers(0, n_keys, 2000).astype(str), **more})
        for cv in (3, None):  # the criterion does not fit noise, so that even cv=None says nothing here
            out = MODLEncoder(output=output, cv=cv).fit_transform(keys, y)
            for name in out:
                assert abs(roc_auc_score(y, out[name]) - 0.5) < 0.06, (name, n_keys, cv)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("output", ["probability", "logodds", "mean"])
def test_each_row_is_encoded_by_the_other_folds(output, target):
    if (output, target) in (("mean", "classes"), ("logodds", "amounts")):
        return
    y, folds = TARGETS[target], list(KFold(3).split(X))
    weight = RNG.integers(0, 3, N).astype(float)
    encoder = MODLEncoder(output=output, cv=folds)
    out = encoder.fit_transform(X, y, sample_weight=weight)
    for train, test in folds:
        apart = MODLEncoder(output=output, cv=None).fit(X.iloc[train], y[train], sample_weight=weight[train])
        if (output, target) != ("probability", "amounts"):
            pd.testing.assert_frame_equal(out.iloc[test], apart.transform(X.iloc[test]))
            continue
        for name, state in encoder.partitions_.items():  # the target's intervals are those of all rows
            parts = apart.set_params(output="group").fit(X.iloc[train], y[train], sample_weight=weight[train])
            of_train, of_test = (parts.transform(X.iloc[rows])[name].cat.codes.to_numpy() for rows in (train, test))
            cell = np.searchsorted(state.target.bounds, y[train], side="left")
            counts = np.zeros((of_train.max() + 1, len(state.target.names)))
            np.add.at(counts, (of_train, cell), weight[train])
            shares = (counts + 1) / (counts.sum(axis=1, keepdims=True) + counts.shape[1])
            np.testing.assert_allclose(out.iloc[test].filter(regex=f"^{name}_"), shares[of_test])
    again = clone(encoder).set_params(cv=None)
    pd.testing.assert_frame_equal(again.fit_transform(X, y), again.transform(X))


def test_crossfit_outside_is_cross_fitting_inside():
    folds = list(KFold(4).split(X))
    inside = MODLEncoder(output="probability", cv=folds).fit_transform(X, Y)
    outside = CrossFit(MODLEncoder(output="probability", cv=None), cv=folds).fit_transform(X, Y)
    pd.testing.assert_frame_equal(inside, outside)
    groups = CrossFit(MODLEncoder(), cv=folds).fit_transform(X, Y)
    assert isinstance(groups["x"].dtype, pd.CategoricalDtype)


def test_a_class_that_a_fold_has_not_is_rare_there():
    y = np.where(np.arange(N) == 7, 2, Y)
    for output in ("probability", "logodds"):
        with pytest.warns(UserWarning, match="least populated class"):
            out = MODLEncoder(output=output).fit_transform(X, y)
        assert list(out) == ["x_0", "x_1", "x_2", "g_0", "g_1", "g_2"]
        assert out.notna().all(axis=None)
        if output == "probability":
            np.testing.assert_allclose(out[["x_0", "x_1", "x_2"]].sum(axis=1), 1)
            assert out["x_2"].between(1e-4, 0.05).all()


def test_folds_that_leave_rows_out_or_hold_one_class():
    with pytest.raises(ValueError, match="cv holds row 0 out never"):
        MODLEncoder(output="mean", cv=TimeSeriesSplit(3)).fit_transform(X, Y)
    first = np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)
    out = MODLEncoder(output="mean", cv=[first, first[::-1]]).fit_transform(X, Y)
    np.testing.assert_array_equal(out["x"], 1 - Y)  # all that a fold of one class knows
    with pytest.raises(ValueError, match=r"number of splits n_splits=5 greater than .*set cv=5 to fewer"):
        MODLEncoder(output="mean").fit_transform(X[:4], [0, 1, 0, 1])


# -- missing and unseen ----------------------------------------------------------------------------------


def test_missing_numbers_lie_below_all_values():
    x = np.r_[np.full(100, np.nan), np.arange(-100.0, 0), np.arange(1.0, 101)]
    y = np.r_[np.ones(100), np.zeros(100), np.ones(100)].astype(int)
    encoder = MODLEncoder().fit(pd.DataFrame({"x": x}), y)
    fitted = encoder.partitions_["x"]
    assert fitted.labels == ["Missing", "]-inf; 0]", "]0; +inf["]
    assert fitted.missing
    assert np.isneginf(fitted.bounds[0])
    test = pd.DataFrame({"x": [np.nan, -1e300, 0.0, 0.1]})
    assert encoder.transform(test)["x"].tolist() == ["Missing", "]-inf; 0]", "]-inf; 0]", "]0; +inf["]
    values = encoder.inverse_transform(encoder.transform(test))["x"]
    assert np.isnan(values[0])
    joined = MODLEncoder().fit(pd.DataFrame({"x": x}), np.r_[np.zeros(200), np.ones(100)].astype(int))
    assert joined.partitions_["x"].labels == ["Missing or ]-inf; 0]", "]0; +inf["]
    never = MODLEncoder().fit(pd.DataFrame({"x": x[100:]}), y[100:])
    assert never.transform(test)["x"][0] == never.partitions_["x"].labels[0]
    lost = MODLEncoder(handle_missing="return_nan").fit(pd.DataFrame({"x": x}), y)
    assert lost.transform(test)["x"].isna().tolist() == [True, False, False, False]
    mean = MODLEncoder(output="mean", handle_missing="return_nan", cv=3).fit_transform(pd.DataFrame({"x": x}), y)
    np.testing.assert_array_equal(mean["x"].isna(), np.isnan(x))
    with pytest.raises(ValueError, match=r"Column 'x' holds a missing value \(row 0\); fill it in"):
        MODLEncoder(handle_missing="error").fit(pd.DataFrame({"x": x}), y)
    with pytest.raises(ValueError, match=r"Column 'x' holds a missing value \(row 0\)"):
        MODLEncoder(handle_missing="error").fit(pd.DataFrame({"x": x[100:]}), y[100:]).transform(test)
    pd.testing.assert_frame_equal(  # a column of None has no type that says that it held numbers
        never.transform(pd.DataFrame({"x": [None, None]})), never.transform(pd.DataFrame({"x": [np.nan, np.nan]}))
    )


def test_missing_symbols_are_a_symbol():
    frame = pd.DataFrame({"g": [None] * 100 + ["a"] * 100 + ["b"] * 100})
    y = np.r_[np.ones(100), np.zeros(200)].astype(int)
    encoder = MODLEncoder().fit(frame, y)
    assert encoder.partitions_["g"].groups == [["a", "b"], [None]]
    assert encoder.transform(frame)["g"].tolist() == ["{Missing}"] * 100 + ["{a, b}"] * 200
    back = encoder.inverse_transform(encoder.transform(frame[98:102]))["g"]
    assert back.isna().tolist() == [True, True, False, False]
    assert back[2:].tolist() == ["a", "a"]
    lost = MODLEncoder(handle_missing="return_nan", output="onehot").fit(frame, y)
    assert lost.transform(frame).isna().any(axis=1).sum() == 100
    with pytest.raises(ValueError, match=r"Column 'g' holds a missing value \(row 0\)"):
        MODLEncoder(handle_missing="error").fit(frame, y)
    seen = MODLEncoder().fit(frame[100:], np.repeat([0, 1], 100))
    default = seen.partitions_["g"].labels[seen.partitions_["g"].default]
    assert seen.transform(frame[:1])["g"].tolist() == [default]  # none missing in fit
    with pytest.raises(ValueError, match="Column 'g' holds a missing value"):
        MODLEncoder(handle_missing="error").fit(frame[100:], np.repeat([0, 1], 100)).transform(frame)
    word = pd.DataFrame({"g": ["Missing"] * 100 + [None] * 100})
    assert MODLEncoder().fit(word, np.repeat([0, 1], 100)).partitions_["g"].labels == ["{Missing} #1", "{Missing} #2"]


def test_unseen_symbols():
    frame = pd.DataFrame({"g": ["a"] * 100 + ["b"] * 90 + [None] * 100})
    y = np.r_[np.zeros(100), np.ones(90), np.arange(100) % 2].astype(int)
    new = pd.DataFrame({"g": ["never", "a"]})
    first = {
        unseen: MODLEncoder(unseen=unseen).fit(frame, y).transform(new)["g"][0]
        for unseen in ("default_group", "missing")
    }
    assert first == {"default_group": "{b}", "missing": "{Missing}"}
    assert MODLEncoder(unseen="missing").fit(frame[:190], y[:190]).transform(new)["g"][0] == "{b}"  # none missing
    for options in ({"unseen": "error"}, {"handle_unknown": "error"}, {"unseen": "error", "handle_unknown": "error"}):
        with pytest.raises(ValueError, match=r"Column 'g' holds 'never' \(row 0\), which was not seen in fit"):
            MODLEncoder(**options).fit(frame, y).transform(new)
    for output in ("group", "onehot", "probability", "mean"):
        out = MODLEncoder(handle_unknown="return_nan", output=output).fit(frame, y).transform(new)
        assert out.isna().all(axis=1).tolist() == [True, False]


def test_categories_are_matched_by_value():
    symbols = X["g"].astype("category")
    encoder = MODLEncoder().fit(X[["x"]].assign(g=symbols), Y)
    expected = encoder.transform(X)
    other = X.assign(g=X["g"].astype(pd.CategoricalDtype(list("hgfedcba"))))
    pd.testing.assert_frame_equal(encoder.transform(other), expected)
    same_parts(encoder, MODLEncoder().fit(X, Y))
    unused = MODLEncoder().fit(X.assign(g=symbols.cat.add_categories(["zz"])), Y)
    same_parts(unused, encoder)
    with pytest.raises(TypeError, match="Column 'g' held text in fit and holds numbers now"):
        encoder.transform(X.assign(g=pd.Series([1, 2] * (N // 2)).astype("category")))
    with pytest.raises(ValueError, match="Column 'x' holds symbols where numbers are needed"):
        encoder.transform(X.assign(x="a"))


# -- weights, order, pieces ------------------------------------------------------------------------------


ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 0.0, 1.0, 2.5, 7.0]),
        st.sampled_from([None, "a", "b", "c"]),
        st.sampled_from([0, 1, 2]),
        st.integers(0, 4),
    ),
    min_size=6,
    max_size=40,
)


@given(ROWS, st.sampled_from(["khiops", "page"]), st.booleans())
@settings(max_examples=25, deadline=None)
def test_whole_weights_are_repeated_rows(rows, criterion, amounts):
    frame = pd.DataFrame([row[:2] for row in rows], columns=["n", "g"]).astype({"n": float, "g": object})
    y, weight = np.array([row[2] for row in rows]), np.array([row[3] for row in rows])
    repeated = np.repeat(np.arange(len(rows)), weight)
    assume(len(np.unique(y[repeated])) > 1)
    encoder = MODLEncoder(criterion=criterion, target_type="continuous" if amounts else "classes")
    weighted = clone(encoder).fit(frame, y, sample_weight=weight)
    plain = encoder.fit(frame.iloc[repeated], y[repeated])
    same_parts(weighted, plain)
    assert amounts or weighted.classes_.tolist() == plain.classes_.tolist()


def test_rows_of_weight_0_are_absent():
    weight = np.where(np.arange(N) < 50, 0.0, 1.0)
    for y in (np.where(np.arange(N) < 50, 9, Y), np.where(np.arange(N) < 50, 1e9, AMOUNT)):
        frame = X.assign(g=np.where(np.arange(N) < 50, "absent", X["g"]), x=np.where(np.arange(N) < 50, 1e9, X["x"]))
        weighted = MODLEncoder().fit(frame, y, sample_weight=weight)
        same_parts(weighted, MODLEncoder().fit(frame[50:], y[50:]))
    with pytest.raises(ValueError, match=r"rows of weight above 0 have 1 class only \(0\); choose other weights"):
        MODLEncoder().fit(X, Y, sample_weight=1.0 - Y)


def test_a_row_of_weight_1_is_two_of_a_half():
    for y in (Y, AMOUNT):
        halves = MODLEncoder().fit(pd.concat([X, X]), np.r_[y, y], sample_weight=np.full(2 * N, 0.5))
        same_parts(halves, MODLEncoder().fit(X, y))
    heavy = MODLEncoder().fit(X, Y, sample_weight=np.full(N, 0.37))
    np.testing.assert_allclose(heavy.parts("x")["rows"].sum(), 0.37 * N)


def test_weights_of_any_size():
    for weight in (1e10, 1e6 + 0.5):  # as many quantiles as rows would not fit into memory
        encoder = MODLEncoder().fit(SMALL, SMALL_Y, sample_weight=np.full(40, weight))
        assert encoder.partitions_["x"].bounds.tolist() == [1.5]
        assert encoder.certificates_["x"].is_optimal
    with pytest.warns(UserWarning, match="add up to 1, and MODL takes that for the number of rows"):
        light = MODLEncoder(output="mean", cv=None).fit(SMALL, SMALL_Y, sample_weight=np.full(40, 1 / 40))
    assert light.levels_ == {"g": 0.0, "x": 0.0}
    np.testing.assert_allclose(light.transform(SMALL[:1]), 15 / 40)


@pytest.mark.parametrize("target", TARGETS)
def test_the_order_of_rows_does_not_matter(target):
    y = TARGETS[target]
    # symbols that are as rare as each other, in several groups, tell an order from another
    frame = X.assign(g=np.r_[X["g"][:-10], list("jklmnopqrs")], t=np.arange(N) // 60)
    frame["t"] = frame["t"].astype(str)
    encoder = MODLEncoder().fit(frame, y)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(N)
        other = MODLEncoder().fit(frame.iloc[order], y[order])
        same_parts(other, encoder)
        assert other.partitions_["g"].default == encoder.partitions_["g"].default


@pytest.mark.parametrize("target", TARGETS)
def test_pieces_are_the_whole(target):
    y = TARGETS[target]
    order = np.argsort(y, kind="stable") if target == "classes" else np.arange(N)  # a class appears late
    frame = X.assign(m=X["x"].where(np.arange(N) % 3 > 0), h=X["g"].where(np.arange(N) % 4 > 0))
    frame, y = frame.iloc[order], y[order]
    half = N // 2
    whole = MODLEncoder().fit(frame, y)
    pieces = MODLEncoder().partial_fit(frame[:half], y[:half]).partial_fit(frame[half:], y[half:])
    same_parts(pieces, whole)
    a = MODLEncoder().partial_fit(frame[half:], y[half:])
    b = MODLEncoder().partial_fit(frame[:half], y[:half])
    same_parts(a.merge(b), whole)
    pd.testing.assert_frame_equal(a.transform(frame), whole.transform(frame))
    if target != "amounts":
        assert pieces.classes_.tolist() == a.classes_.tolist() == whole.classes_.tolist()


def test_pieces_of_one_class_of_nothing_but_missing_and_of_one_row():
    encoder = MODLEncoder().partial_fit(X[:100], Y[:100])
    last = X[100:200].assign(x=None)
    encoder.partial_fit(last, np.zeros(100, dtype=int)).partial_fit(X[200:201], Y[200:201])
    whole = pd.concat([X[:100], last.astype({"x": float}), X[200:201]])
    same_parts(encoder, MODLEncoder().fit(whole, np.r_[Y[:100], np.zeros(100, dtype=int), Y[200]]))
    encoder.fit(X, Y)  # forgets the pieces
    same_parts(encoder.partial_fit(X[:100], Y[:100]), MODLEncoder().fit(X[:100], Y[:100]))


def test_a_failed_piece_leaves_the_encoder_as_it_was():
    encoder = MODLEncoder(monotonic=True).partial_fit(X, Y)
    before = encoder.transform(X), dict(encoder.costs_), encoder.tables_
    other = MODLEncoder().partial_fit(X.assign(x="text"), Y)
    for wrong, words in (
        (lambda: encoder.partial_fit(X), "requires y to be passed"),
        (lambda: encoder.partial_fit(X, np.where(Y, None, 1.0)), "target is missing"),
        (lambda: encoder.partial_fit(X, AMOUNT), "continuous"),
        (lambda: encoder.partial_fit(X, THREE), "target held numbers before and holds text now .such as 'high'."),
        (lambda: encoder.partial_fit(X, np.arange(N) % 3), "monotonic=True needs two classes"),
        (
            lambda: encoder.partial_fit(X.assign(x="a"), Y),
            "Column 'x' held numbers before and holds symbols of type st",
        ),
        (lambda: encoder.partial_fit(X.assign(g=1.5), Y), "Column 'g' held symbols of type str before and holds numb"),
        (lambda: encoder.partial_fit(X.assign(x=np.inf), Y), "Column 'x' contains infinity"),
        (lambda: encoder.partial_fit(X[["g", "x"]], Y), "must be in the same order"),
        (lambda: encoder.partial_fit(X, Y, sample_weight=-np.ones(N)), "negative"),
        (lambda: encoder.merge(other), "Column 'x' held numbers before and holds symbols of type str now; convert it"),
        (lambda: encoder.merge(MODLEncoder().partial_fit(X, THREE)), "target held numbers before and holds text"),
        (lambda: encoder.merge(MODLEncoder().partial_fit(X, AMOUNT)), "same columns and kind of target"),
        (lambda: encoder.merge(MODLEncoder().partial_fit(X[["x"]], Y)), r"these have \['g', 'x'\] and \['x'\]"),
        (lambda: encoder.merge(MODLEncoder().fit(X, Y)), "fit does not keep; fit both encoders by partial_fit"),
        (lambda: MODLEncoder().merge(encoder), "fit does not keep; fit both encoders by partial_fit"),
        (lambda: encoder.merge("other"), "takes another MODLEncoder, not 'other'"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            wrong()
        pd.testing.assert_frame_equal(encoder.transform(X), before[0])
        assert encoder.costs_ == before[1]
        assert encoder.tables_ is before[2]
    mean = MODLEncoder(output="mean").partial_fit(X, Y)
    with pytest.raises(ValueError, match="target has 3 classes"):
        mean.partial_fit(X, np.arange(N) % 3)
    assert mean.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sketch_misplaces_no_bound_by_more_than_it_says(monkeypatch, weighted):
    monkeypatch.setattr(contingency, "SKETCH_ABOVE", 100)
    n = 4000
    x = np.where(RNG.random(n) < 0.1, np.nan, RNG.normal(size=n))
    y = (np.nan_to_num(np.sin(3 * x), nan=1) + RNG.normal(size=n) / 4 > 0).astype(int)
    weight = RNG.integers(0, 3, n).astype(float) if weighted else np.ones(n)
    frame, encoder = pd.DataFrame({"x": x}), MODLEncoder()
    for start in range(0, n, 1000):
        rows = slice(start, start + 1000)
        encoder.partial_fit(frame[rows], y[rows], sample_weight=weight[rows])
    merged = MODLEncoder().partial_fit(frame[:2500], y[:2500], sample_weight=weight[:2500])
    merged.merge(MODLEncoder().partial_fit(frame[2500:], y[2500:], sample_weight=weight[2500:]))
    for one in (encoder, merged, MODLEncoder().fit(frame, y, sample_weight=weight)):
        fitted = one.partitions_["x"]
        assert fitted.error > 0
        assert fitted.partition.counts.sum() == weight.sum()
        assert fitted.partition.n_parts >= 5
        below = [weight[np.nan_to_num(x, nan=-np.inf) <= bound].sum() for bound in fitted.bounds]
        off = np.abs(below - np.cumsum(fitted.partition.counts.sum(axis=1))[:-1])
        assert off.max() <= fitted.error
        assert off[0] == 0  # missing has its own cell
        assert (np.diff(fitted.bounds) > 0).all()
        assert fitted.error < 0.06 * n
    assert MODLEncoder().fit(frame[:90], y[:90]).partitions_["x"].error == 0


# -- bounds ------------------------------------------------------------------------------------------------


def cut(values):
    """The encoder of a column whose values differ in class."""
    values = np.repeat(np.asarray(values), 100)
    return MODLEncoder().fit(pd.DataFrame({"x": values}), np.arange(len(values)) // 100 % 2)


def test_intervals_are_right_closed():
    encoder = cut([1.0, 2.0])
    assert encoder.partitions_["x"].bounds.tolist() == [1.5]
    out = encoder.transform(pd.DataFrame({"x": [1.5, np.nextafter(1.5, 2)]}))["x"]
    assert out.tolist() == ["]-inf; 1.5]", "]1.5; +inf["]


@pytest.mark.parametrize(
    "values",
    [
        [1.0, np.nextafter(1.0, 2), np.nextafter(np.nextafter(1.0, 2), 2)],
        [-np.nextafter(1.0, 2), -1.0],
        [0.0, 5e-324, 1e-323, 1.5e-323, 2.5e-323],
        [-1e-323, -5e-324, 0.0],
        [-1.7e308, -1e300, 1e300, 1.7e308],
        np.array([-(2**63), -(2**62), 0, 2**62, 2**63 - 1]),
        np.array([0, 2**64 - 1], dtype=np.uint64),
    ],
)
def test_neighbouring_and_extreme_values_are_told_apart(values):
    encoder = cut(values)
    fitted = encoder.partitions_["x"]
    assert fitted.partition.n_parts == len(values)
    assert np.isfinite(fitted.bounds).all()
    assert len(set(fitted.labels)) == len(values)
    assert encoder.transform(pd.DataFrame({"x": values}))["x"].cat.codes.tolist() == list(range(len(values)))
    back = encoder.inverse_transform(encoder.transform(pd.DataFrame({"x": values})))["x"]
    np.testing.assert_array_equal(back, np.asarray(values, dtype=float))


def test_labels_of_whole_numbers_are_exact():
    assert cut([20240101, 20240102]).partitions_["x"].labels == ["]-inf; 20240101.5]", "]20240101.5; +inf["]
    assert cut([1e6, 3e6]).partitions_["x"].labels == ["]-inf; 2000000]", "]2000000; +inf["]
    assert cut([0.1, 0.21]).partitions_["x"].labels == ["]-inf; 0.155]", "]0.155; +inf["]
    assert cut([1e20, 3e20]).partitions_["x"].labels == ["]-inf; 2e+20]", "]2e+20; +inf["]


def test_infinite_values_are_errors():
    for value in (np.inf, -np.inf):
        with pytest.raises(ValueError, match="Column 'x' contains infinity; replace"):
            MODLEncoder().fit(X.assign(x=value), Y)
        with pytest.raises(ValueError, match="Column 'x' contains infinity; replace"):
            MODLEncoder().fit(X, Y).transform(X.assign(x=value))


def test_inverse_gives_the_middle_rows_value_and_the_most_frequent_symbol():
    frame = pd.DataFrame({"x": [1.0] * 60 + [2.0] * 20 + [3.0] * 20 + [9.0] * 100, "g": ["p"] * 40 + ["q"] * 160})
    y = np.repeat([0, 1], 100)
    encoder = MODLEncoder().fit(frame, y)
    back = encoder.inverse_transform(encoder.transform(frame))
    assert back["x"].tolist() == [1.0] * 100 + [9.0] * 100
    assert set(back["g"]) == {"p", "q"}
    odd = encoder.transform(frame).astype(str)
    odd.loc[3, "g"] = "{never}"
    with pytest.raises(ValueError, match=r"Column 'g' holds '\{never\}' \(row 3\), which is no part of it"):
        encoder.inverse_transform(odd)
    with pytest.raises(ValueError, match="X has 1 columns, but fit saw 2; pass what transform returned"):
        encoder.inverse_transform(odd[["g"]])
    dropped = MODLEncoder(drop_invariant=True).fit(frame.assign(k=1), y)
    with pytest.raises(ValueError, match="drop_invariant=True has dropped 'k', which cannot come back"):
        dropped.inverse_transform(dropped.transform(frame.assign(k=1)))
    assert not hasattr(MODLEncoder(output="mean"), "inverse_transform")


# -- what it shows -------------------------------------------------------------------------------------------


def test_levels_costs_and_certificates():
    encoder = MODLEncoder(n_candidates=1).fit(X.assign(noise=RNG.normal(size=N)), Y)
    levels = encoder.levels_
    assert set(levels) == {"x", "g", "noise"}
    assert list(levels.values()) == sorted(levels.values(), reverse=True)
    assert levels["noise"] == 0
    for name, level in levels.items():
        np.testing.assert_allclose(level, 1 - encoder.costs_[name] / encoder.null_costs_[name])
        one = encoder.certificates_[name]
        assert one.is_optimal
        assert 0 <= one.gap < 1e-9
        assert one.lower_bound <= encoder.costs_[name]
    table = contingency.code_numbers(NUMBER).count(Y, np.arange(2))
    ends = np.searchsorted(table.values, encoder.partitions_["x"].bounds, side="right")
    np.testing.assert_allclose(encoder.costs_["x"], interval_cost(table.counts, [*ends, len(table.values)]))
    amounts = MODLEncoder().fit(X, AMOUNT)
    assert not any(one.is_optimal for one in amounts.certificates_.values())
    more = MODLEncoder(n_candidates=1000).fit(X, Y)
    assert more.levels_["x"] < levels["x"]


def test_parts_and_text():
    encoder = MODLEncoder().fit(X.assign(noise=1.0), Y)
    table = encoder.parts("g")
    assert list(table) == ["part", "rows", "share", "P(0)", "P(1)"]
    assert table["rows"].sum() == N
    np.testing.assert_allclose(table["share"].sum(), 1)
    np.testing.assert_allclose(table["P(0)"] + table["P(1)"], 1)
    row = table[table["part"] == encoder.transform(X.assign(noise=1.0))["g"][0]].iloc[0]
    members = encoder.transform(X.assign(noise=1.0))["g"] == row["part"]
    assert row["rows"] == members.sum()
    np.testing.assert_allclose(row["P(1)"], Y[members].mean())
    text = encoder.describe()
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert [head.split(":")[0] for head in heads] == list(encoder.levels_)
    assert f"Level {encoder.levels_['x']:.5f}" in text
    assert "khiops, optimal" in text
    assert "says nothing about the target on its own" in text
    assert all(part in text for name in ("x", "g") for part in encoder.partitions_[name].labels)
    assert list(MODLEncoder().fit(X, AMOUNT).parts("x"))[-2:] == ["mean", "sd"]
    assert "mean" in MODLEncoder().fit(X, AMOUNT).describe()
    many = pd.DataFrame({"x": np.arange(4000.0)})
    assert "... and " in MODLEncoder().fit(many, np.arange(4000) // 100 % 2).describe()
    with pytest.raises(ValueError, match="There is no encoded column 'q'; there are 'x', 'g'"):
        MODLEncoder().fit(X, Y).parts("q")


def test_verbose_writes_a_line_for_each_column(capsys):
    MODLEncoder(verbose=1, output="mean").fit_transform(X, Y)
    written = capsys.readouterr()
    assert [line.split(":")[0] for line in written.err.splitlines()] == ["x", "g"]
    MODLEncoder().fit(X, Y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("target", TARGETS)
def test_plots(target):
    from matplotlib import pyplot as plt

    frame = X.rename(columns={"x": "$ _{x}^", "g": "<b>&\n"})
    encoder = MODLEncoder().fit(frame.assign(**{"<b>&\n": "$" + X["g"] + "$^_{"}), TARGETS[target])
    for name in frame:
        ax = encoder.plot_partition(name)
        ax.figure.canvas.draw()
        widths = [bar.get_width() for bar in ax.containers[0] if hasattr(bar, "get_width")]
        np.testing.assert_allclose(widths, encoder.parts(name)["share"])
        assert encoder.plot_partition(name, ax=ax) is ax
        plt.close(ax.figure)


# -- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_limits_on_parts_hold(target):
    y = TARGETS[target]
    frame = pd.DataFrame({"x": NUMBER, "g": RNG.integers(0, 30, N).astype(str)})
    frame["g"] = np.where(RNG.random(N) < 0.5, X["g"], frame["g"])
    for criterion in ("khiops", "page"):
        free = MODLEncoder(criterion=criterion).fit(frame, y)
        for most in (1, 2, 3):
            encoder = MODLEncoder(criterion=criterion, max_parts=most).fit(frame, y)
            for name, one in encoder.partitions_.items():
                assert one.partition.n_parts <= most
                if target != "amounts":  # the joint grid of a regression is a local optimum
                    assert encoder.costs_[name] >= free.costs_[name] - 1e-9
        encoder = MODLEncoder(criterion=criterion, min_part_count=90).fit(frame, y)
        for one in encoder.partitions_.values():
            assert one.partition.counts.sum(axis=1).min() >= 90
        assert set(MODLEncoder(min_part_count=10 * N).fit(frame, y).levels_.values()) == {0.0}


def test_monotone_columns():
    frame = pd.DataFrame({"x": np.linspace(0, 6, 900)})
    for y in ((np.sin(frame["x"]) + RNG.normal(size=900) / 3 > 0).astype(int), np.sin(frame["x"])):
        free, bound = (MODLEncoder(monotonic=which).fit(frame, y) for which in (False, True))
        steps = np.diff(free.partitions_["x"].target.means)
        assert (steps > 0).any()
        assert (steps < 0).any()
        steps = np.diff(bound.partitions_["x"].target.means)
        assert len(steps)
        assert (steps >= 0).all() or (steps <= 0).all()
        assert bound.costs_["x"] >= free.costs_["x"] - 1e-9
    with pytest.raises(ValueError, match="monotonic=True needs two classes or a continuous target; set it to False"):
        MODLEncoder(monotonic=True).fit(X, THREE)


# -- targets -----------------------------------------------------------------------------------------------------


def test_what_the_target_is_taken_for():
    counts = np.arange(N) % 50
    assert len(MODLEncoder().fit(X, counts).classes_) == 50
    assert not hasattr(MODLEncoder().fit(X, np.arange(N)), "classes_")
    assert not hasattr(MODLEncoder(target_type="continuous").fit(X, Y), "classes_")
    assert len(MODLEncoder(target_type="classes").fit(X[["g"]], np.arange(N) % 150).classes_) == 150
    for y in (Y > 0, pd.Series(Y).astype("category"), pl.Series(Y), Y.tolist(), pd.Series(Y.astype(str)), Y * 1.0):
        same_parts(MODLEncoder().fit(X, y), MODLEncoder().fit(X, Y))
    for y in (pd.Series(AMOUNT).astype(object), pl.Series(AMOUNT), pd.Series(AMOUNT, dtype="Float64")):
        same_parts(MODLEncoder().fit(X, y), MODLEncoder().fit(X, AMOUNT))
    for y, words in (
        (np.zeros(N), "needs at least 2 classes, but the target has 1 class only"),
        (np.where(Y, np.nan, 1.0), "target is missing in"),
        (np.where(Y, np.inf, 1.5), "infinite"),
        (Y[:-1], "table has 420 rows and the target 419 values"),
        (None, "requires y to be passed"),
    ):
        with pytest.raises(ValueError, match=words):
            MODLEncoder().fit(X, y)
    with pytest.raises(ValueError, match="must be numeric, but holds values such as"):
        MODLEncoder(target_type="continuous").fit(X, THREE)
    with pytest.raises(ValueError, match="continuous"):
        MODLEncoder(target_type="classes").fit(X, AMOUNT)
    assert set(MODLEncoder(target_type="continuous").fit(X, np.ones(N)).levels_.values()) == {0.0}


def test_small_and_empty_columns():
    frame = pd.DataFrame({"k": 1.0, "text": "t", "gone": np.nan, "none": None, "g": X["g"]})
    for y in TARGETS.values():
        encoder = MODLEncoder().fit(frame, y)
        assert [encoder.levels_[name] for name in ("k", "text", "gone", "none")] == [0] * 4
        labels = {name: one.labels for name, one in encoder.partitions_.items() if name != "g"}
        assert labels == {
            "k": ["]-inf; +inf["],
            "text": ["{t}"],
            "gone": ["Missing or ]-inf; +inf["],
            "none": ["{Missing}"],
        }
        assert encoder.transform(frame).notna().all(axis=None)
        out = MODLEncoder(drop_invariant=True).fit(frame, y)
        assert list(out.transform(frame)) == ["g"]
        assert out.invariant_cols_ == ["k", "text", "gone", "none"]
    tiny = MODLEncoder().fit(X[:2], [0, 1])
    assert tiny.transform(X[:2]).shape == (2, 2)
    assert tiny.transform(X[:1]).shape == (1, 2)
    one = MODLEncoder(target_type="continuous").fit(X[:1], [2.5])
    assert one.levels_ == {"x": 0.0, "g": 0.0}
    with pytest.raises(ValueError, match="1 class only"):
        MODLEncoder().fit(X[:1], [0])
    with pytest.raises(ValueError, match="has no rows"):
        MODLEncoder().fit(X[:0], [])


def test_booleans_dates_and_numbers_of_other_types():
    flags = pd.DataFrame({"flag": NUMBER > 0, "null": pd.Series([True, False, None] * (N // 3), dtype="boolean")})
    encoder = MODLEncoder().fit(flags, (NUMBER > 0).astype(int))
    assert sorted(encoder.partitions_["flag"].labels) == ["{False}", "{True}"]
    days = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=N, freq="D", tz="Europe/Paris")})
    days.loc[3, "day"] = pd.NaT
    encoder = MODLEncoder().fit(days, (np.arange(N) >= 200).astype(int))
    assert encoder.partitions_["day"].partition.n_parts == 2
    assert encoder.transform(days)["day"].cat.codes.tolist() == [0] * 200 + [1] * 220
    whole = MODLEncoder().fit(X[["x"]], Y)
    for values in (
        pd.array(NUMBER, dtype="Float64"),
        NUMBER.astype(np.float32),
        pd.array(NUMBER, dtype="double[pyarrow]"),
    ):
        other = MODLEncoder().fit(pd.DataFrame({"x": values}), Y)
        assert other.partitions_["x"].partition.n_parts == whole.partitions_["x"].partition.n_parts
        assert other.costs_ == whole.costs_


# -- scikit-learn -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["group", "probability"])
def test_clones_and_pickles(output):
    encoder = MODLEncoder(output=output, max_parts=4).partial_fit(X, Y)
    again = pickle.loads(pickle.dumps(encoder))  # noqa: S301
    pd.testing.assert_frame_equal(again.transform(X), encoder.transform(X))
    same_parts(again.partial_fit(X, Y), encoder.partial_fit(X, Y))
    copy = clone(encoder)
    assert not hasattr(copy, "columns_")
    assert copy.get_params() == encoder.get_params()
    for n_jobs in (1, 2):
        same_parts(MODLEncoder(n_jobs=n_jobs).fit(X, THREE), MODLEncoder().fit(X, THREE))


def test_grid_search_in_a_pipeline():
    pipeline = make_pipeline(MODLEncoder(output="onehot"), LogisticRegression())
    grid = {"modlencoder__criterion": ["khiops", "page"], "modlencoder__output": ["onehot", "logodds"]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring="roc_auc").fit(X, Y)
    assert search.best_score_ > 0.9
    assert search.best_estimator_[:-1].get_feature_names_out()[0].startswith("x")
    pipeline.fit(X, Y, modlencoder__sample_weight=np.ones(N))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"output": "woe"}, "output='woe' is not known; use one of 'group', 'onehot'"),
        ({"output": ["group"]}, r"output=\['group'\] is not known"),
        ({"numeric": "skip"}, "numeric='skip' is not known; use one of 'discretize', 'passthrough'"),
        ({"criterion": "mdlp"}, "criterion='mdlp' is not known; use one of 'khiops', 'page'"),
        ({"unseen": "guess"}, "unseen='guess' is not known; use one of"),
        ({"unseen": "error", "handle_unknown": "return_nan"}, "'return_nan' and unseen='error' contradict each other"),
        ({"unseen": "missing", "handle_unknown": "return_nan"}, "'return_nan' and unseen='missing' contradict"),
        ({"unseen": "missing", "handle_unknown": "error"}, "'error' and unseen='missing' contradict each other"),
        ({"target_type": "binary"}, "target_type='binary' is not known; use one of"),
        ({"handle_missing": "drop"}, "handle_missing='drop' is not known; use one of"),
        ({"handle_unknown": "drop"}, "handle_unknown='drop' is not known; use one of"),
        ({"max_parts": 0}, "max_parts=0 is not possible; use a whole number of at least 1, or None"),
        ({"max_parts": 2.5}, "max_parts=2.5 is not possible"),
        ({"n_candidates": True}, "n_candidates=True is not possible"),
        ({"min_part_count": 0}, "min_part_count=0 is not possible; use a number above 0"),
        ({"min_part_count": None}, "min_part_count=None is not possible"),
        ({"min_part_count": float("nan")}, "min_part_count=nan is not possible"),
        ({"time_limit": -1}, "time_limit=-1 is not possible; use a number above 0, or None"),
        ({"monotonic": "increasing"}, "monotonic='increasing' is not possible; use True or False"),
        ({"sparse_output": True}, "sparse_output goes with output='onehot', not with 'group'; set it to False"),
        ({"sparse_output": "yes", "output": "onehot"}, "sparse_output='yes' is not possible; use True or False"),
        ({"cols": ["q"]}, "cols names column 'q', which is not in the table; it has 'x', 'g'"),
        ({"cols": "q"}, "cols names column 'q', which is not in the table; it has 'x', 'g'"),
        ({"cv": "five", "output": "mean"}, "Expected `cv` as an integer"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        MODLEncoder(**options).fit_transform(X, Y)


def test_columns_that_are_not_those_of_fit():
    encoder = MODLEncoder().fit(X, Y)
    for frame, words in (
        (X[["x"]], "now missing:\n- g"),
        (X[["g", "x"]], "same order"),
        (X.set_axis(["x", "x"], axis=1), "Duplicate column name 'x'"),
        (X.assign(x=[[1]] * N), "Column 'x' holds nested values"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            encoder.transform(frame)
    with pytest.raises(ValueError, match="not fitted yet"):
        MODLEncoder().transform(X)
    with pytest.raises(ValueError, match="which is there already; rename"):
        MODLEncoder(output="probability", cols=["x"]).fit_transform(X.assign(x_0=1.0), Y)


def test_labels_of_other_frames_hold_missing():
    assert Labels(np.array([0, -1, 1, -2]), ["p", "q"]).texts() == ["p", None, "q", None]


def test_means_of_folds_whose_target_is_constant():
    X = pd.DataFrame({"a": list("xyzw") * 10})
    y = np.where(np.arange(40) == 3, 7.0, 3.0)
    encoder = MODLEncoder(output="mean", target_type="continuous")
    for target in (y, np.full(40, 3.0)):
        encoded = encoder.fit_transform(X, target)["a"]
        assert encoded.between(3.0, 4.0).all()
        assert encoded.iloc[3] == 3.0  # by parts learned without it


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_intervals_of_dates_are_labelled_by_dates(make):
    days = pd.date_range("2020-01-01", periods=400, freq="D")
    X = make({"day": list(days.to_pydatetime()), "hour": list((days + pd.Timedelta("5h30min")).to_pydatetime())})
    y = np.where(np.arange(400) < 150, 0, 1)
    encoder = MODLEncoder().fit(X, y)
    assert encoder.partitions_["day"].labels == ["]-inf; 2020-05-29]", "]2020-05-29; +inf["]  # the 150th day
    assert encoder.partitions_["hour"].labels == ["]-inf; 2020-05-29 17:30]", "]2020-05-29 17:30; +inf["]
    half = make({"day": list(days.to_pydatetime()[:200])})
    merged = MODLEncoder().partial_fit(half, y[:200]).partial_fit(half, y[:200])
    assert merged.partitions_["day"].labels == ["]-inf; 2020-05-29]", "]2020-05-29; +inf["]
    wide = WideClassifier(numeric="modl").fit(X, y)
    assert wide.params_["day"].index.tolist() == ["]-inf; 2020-05-29]", "]2020-05-29; +inf["]
