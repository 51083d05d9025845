"""MODLEncoder as a transformer: frames, outputs, names, and scikit-learn."""

import pickle

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from tabsym import MODLEncoder
from tabsym.frame.frames import Labels
from tests.conftest import as_frame
from tests.modl_data import NUMBER, TARGETS, THREE, N, X, Y, same_parts

SMALL = pd.DataFrame({"g": ["a"] * 20 + ["b"] * 20, "x": [1.0] * 20 + [2.0] * 20})


SMALL_Y = np.array([0] * 20 + [0] * 5 + [1] * 15)


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
    wrapped = nw.from_native(out).lazy().collect()
    assert wrapped.columns == ["g", "n", "flag"] == encoder.get_feature_names_out().tolist()
    for name in wrapped.columns:
        assert wrapped[name].cast(nw.String()).to_list() == expected[name].astype(str).tolist()
    again = nw.from_native(encoder.inverse_transform(out))
    assert again.columns == ["g", "n", "flag"]
    assert set(again["flag"].to_list()) <= {True, False}


def test_the_type_of_the_frame_stays():
    rng = np.random.default_rng(0)
    index = pd.Index(rng.integers(0, 9, N), name="key")  # labels that repeat
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
    with pytest.raises(ValueError, match=r"Column 'g' holds categories and is not encoded.*sparse_output=False"):
        MODLEncoder(output="onehot", sparse_output=True, cols=["x"]).fit_transform(X, Y)


@pytest.mark.parametrize("options", [{}, {"cols": ["g"], "drop_invariant": True}])
def test_sparse_onehot_has_nan_where_the_dense_one_has_it(options):
    options = options | {"output": "onehot", "handle_unknown": "return_nan", "handle_missing": "return_nan"}
    other = X.assign(g=[["never", None, *X["g"]][i % 7] for i in range(len(X))])
    dense = MODLEncoder(**options).fit(X, Y).transform(other).to_numpy(dtype=np.float64)
    thin = MODLEncoder(**options, sparse_output=True).fit(X, Y).transform(other)
    assert np.isnan(dense).any() and not np.isnan(dense).all(axis=1).all()
    np.testing.assert_array_equal(thin.toarray(), dense)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("output", ["group", "onehot", "probability", "logodds", "mean"])
@pytest.mark.slow
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


def test_labels_of_other_frames_hold_missing():
    assert Labels(np.array([0, -1, 1, -2]), ["p", "q"]).texts() == ["p", None, "q", None]


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


TIED = np.repeat(["p", "q", "m", "k"], [60, 60, 20, 20])
OF_TIED = np.repeat([0, 1, 0, 1, 0, 1], [55, 5, 5, 55, 20, 20])
LEVELS_OF_TIED = ["new", "q", "m", "p", "k"]


@pytest.mark.parametrize(
    "frame",
    [
        lambda values: pd.DataFrame({"c": values.astype(object)}),
        lambda values: pd.DataFrame({"c": pd.Categorical(values, LEVELS_OF_TIED)}),
        lambda values: pd.DataFrame({"c": pd.Categorical(values, LEVELS_OF_TIED, ordered=True)}),
        lambda values: pl.DataFrame({"c": values.tolist()}),
        lambda values: pl.DataFrame({"c": pl.Series(values.tolist(), dtype=pl.Enum(LEVELS_OF_TIED))}),
        lambda values: pa.table({"c": pa.array(values.tolist()).dictionary_encode()}),
    ],
    ids=["object", "category", "ordered", "polars", "enum", "dictionary"],
)
def test_of_several_least_frequent_categories_the_first_as_text_gives_the_default_group(frame):
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(160) if seed else np.arange(160)
        encoder = MODLEncoder().fit(frame(TIED[order]), OF_TIED[order])
        new = np.array(["new", "k", "m"])
        labels = list(encoder.transform(frame(new))["c"])
        assert str(labels[0]) == str(labels[1]) != str(labels[2])


def test_numbers_that_are_least_frequent_together_are_ordered_as_text():
    """By "100" before "9"."""
    numbers = pd.Series(TIED).map({"p": 3, "q": 20, "m": 9, "k": 100}).astype("category")
    encoder = MODLEncoder().fit(pd.DataFrame({"c": numbers}), OF_TIED)
    new, least, other = encoder.transform(pd.DataFrame({"c": [77, 100, 9]}).astype("category"))["c"]
    assert new == least != other
