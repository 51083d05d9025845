"""OneHotEncoder: the contract of category_encoders, over every kind of frame."""

import category_encoders
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from tabsym import MODLEncoder, OneHotEncoder
from tests.oracles import online as naive

TRAIN = pd.DataFrame({"a": ["x", "y", None, "x"], "n": [1.0, 2.0, 3.0, 4.0], "b": ["p", "q", "p", "p"]})
TEST = pd.DataFrame({"a": ["y", "new", None, "x"], "n": [1.0, 2.0, 3.0, 4.0], "b": ["q", None, "new", "p"]})


@pytest.mark.parametrize("handle_missing", ["value", "indicator", "return_nan", "ignore"])
@pytest.mark.parametrize("handle_unknown", ["value", "indicator", "return_nan"])
@pytest.mark.parametrize("use_cat_names", [False, True])
def test_same_values_and_names_as_category_encoders(handle_missing, handle_unknown, use_cat_names):
    options = {"handle_missing": handle_missing, "handle_unknown": handle_unknown, "use_cat_names": use_cat_names}
    ours, theirs = OneHotEncoder(**options).fit(TRAIN), category_encoders.OneHotEncoder(**options).fit(TRAIN)
    for frame in (TRAIN, TEST):
        got, want = ours.transform(frame), theirs.transform(frame)
        shared = [name for name in want.columns if name in got.columns]
        # theirs puts missing where it first appears; ours after all symbols: numbers of names may differ
        if use_cat_names:
            assert sorted(got.columns) == sorted(want.columns)
            pd.testing.assert_frame_equal(got[shared], want[shared], check_dtype=False)
        else:
            assert got.shape == want.shape
    assert ours.get_feature_names_out().tolist() == ours.transform(TRAIN).columns.tolist()


def test_errors_are_named():
    with pytest.raises(ValueError, match=r"Column 'a' holds a missing value \(row 2\)"):
        OneHotEncoder(handle_missing="error").fit(TRAIN)
    fitted = OneHotEncoder(handle_unknown="error").fit(TRAIN)
    with pytest.raises(ValueError, match=r"Column 'a' holds 'new' \(row 1\)"):
        fitted.transform(TEST)
    with pytest.raises(ValueError, match="handle_unknown='guess' is not known"):
        OneHotEncoder(handle_unknown="guess").fit(TRAIN)


def test_every_frame_gives_the_same_values(make_frame):
    frame = make_frame({"a": ["x", "y", None, "x"], "n": [1.0, 2.0, 3.0, 4.0]})
    out = OneHotEncoder().fit(frame).transform(frame)
    wrapped = nw.from_native(out).lazy().collect()
    assert wrapped.columns == ["a_1", "a_2", "a_3", "n"]
    assert wrapped.to_numpy().tolist() == [[1, 0, 0, 1], [0, 1, 0, 2], [0, 0, 1, 3], [1, 0, 0, 4]]
    kind = "polars" if "polars" in type(frame).__module__ else type(frame).__module__.split(".")[0]
    assert type(out).__module__.split(".")[0] == kind


def test_frames_restore(make_frame):
    frame = make_frame({"a": ["x", "y", None, "x"], "n": [1.0, 2.0, 3.0, 4.0]})
    encoder = OneHotEncoder().fit(frame)
    back = nw.from_native(encoder.inverse_transform(encoder.transform(frame)))
    assert [None if pd.isna(v) else v for v in back["a"].to_list()] == ["x", "y", None, "x"]
    assert back["n"].to_list() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("handle_unknown", ["value", "indicator", "return_nan"])
def test_sparse_equals_dense(handle_unknown):
    dense = OneHotEncoder(handle_unknown=handle_unknown).fit(TRAIN)
    thin = clone(dense).set_params(sparse_output=True).fit(TRAIN)
    out = thin.transform(TEST)
    assert sparse.issparse(out)
    assert out.format == "csr"
    np.testing.assert_array_equal(out.toarray(), dense.transform(TEST).to_numpy(dtype=float))
    if handle_unknown == "value":
        back = thin.inverse_transform(thin.transform(TRAIN))
        assert [None if pd.isna(v) else v for v in back["a"]] == ["x", "y", None, "x"]


@pytest.mark.parametrize(
    "encoder",
    [OneHotEncoder(sparse_output=True), MODLEncoder(output="onehot", sparse_output=True), OneHotEncoder()],
    ids=["one-hot", "MODL", "codes"],
)
def test_trees_take_sparse_output(encoder):
    """Trees of scikit-learn refuse matrices whose places are of 64 bits."""
    X = pd.concat([TRAIN] * 5, ignore_index=True)
    y = np.arange(len(X)) % 4 == 1
    encoder.fit(X, y)
    thin = encoder.transform(X) if "sparse_output=True" in str(encoder) else encoder.transform_codes(X).to_csr()
    for one in (thin, sparse.hstack([thin, np.ones((len(X), 1))], format="csr"), sparse.vstack([thin, thin])):
        assert one.indices.dtype == one.indptr.dtype == np.int32
    assert DecisionTreeClassifier().fit(thin, y).score(thin, y) == 1.0


def test_code_matrix_has_no_zeros():
    matrix = OneHotEncoder().fit(TRAIN).transform_codes(TEST)
    assert matrix.codes.tolist() == [[1, 4], [-1, -1], [2, -1], [0, 3]]


def test_sparse_refuses_text_columns():
    with pytest.raises(ValueError, match="Column 'b' holds categories and is not encoded"):
        OneHotEncoder(cols=["a"], sparse_output=True).fit(TRAIN).transform(TRAIN)


def test_drop_invariant_is_the_same_on_every_fit():
    X = TRAIN.assign(c="same")
    encoder = OneHotEncoder(drop_invariant=True)
    for _ in range(3):
        encoder.fit(X)
        assert "c_1" not in encoder.transform(X).columns
        assert encoder.get_feature_names_out().tolist() == encoder.transform(X).columns.tolist()
    with pytest.raises(ValueError, match="drop_invariant"):
        encoder.inverse_transform(encoder.transform(X))


def test_cols_are_kept_and_clones_fit_other_frames():
    fitted = OneHotEncoder().fit(TRAIN)
    assert fitted.cols is None
    assert clone(fitted).fit(TRAIN.rename(columns={"a": "z"})).transform(TRAIN.rename(columns={"a": "z"})).shape[1] == 6


def test_arrays_and_return_df():
    out = OneHotEncoder(cols=[0], return_df=False).fit_transform(TRAIN.to_numpy(dtype=object)[:, :2])
    assert isinstance(out, np.ndarray)
    assert out.shape == (4, 4)


def test_output_that_clashes_with_a_column():
    with pytest.raises(ValueError, match="makes a column 'a_1', which is there already"):
        OneHotEncoder(cols=["a"]).fit(TRAIN.assign(a_1=1.0)).transform(TRAIN.assign(a_1=1.0))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_outputs_of_two_columns_with_one_name(frame):
    """category_encoders' names, which are right in every kind of output and on the way back."""
    X = frame({"match": ["box_-1", "b"], "match_box": ["-1", "-1"], "a": ["-1", "-1#"]})
    encoder = OneHotEncoder(use_cat_names=True, handle_unknown="indicator").fit(X)
    out = encoder.transform(X)
    names = ["match_box_-1", "match_b", "match_-1", "match_box_-1#", "match_box_-1##", "a_-1", "a_-1#", "a_-1##"]
    assert list(out.columns) == names == encoder.get_feature_names_out().tolist()
    np.testing.assert_array_equal(np.asarray(out), [[1, 0, 0, 1, 0, 1, 0, 0], [0, 1, 0, 1, 0, 0, 1, 0]])
    np.testing.assert_array_equal(clone(encoder).set_params(sparse_output=True).fit_transform(X).toarray(), out)
    back = encoder.inverse_transform(out)
    assert back.equals(X)
    assert list(encoder.mapping[1]["mapping"].columns) == ["match_box_-1#", "match_box_-1##"]
    dropped = clone(encoder).set_params(drop_invariant=True).fit(X)
    assert dropped.get_feature_names_out().tolist() == ["match_box_-1", "match_b", "a_-1", "a_-1#"]


def test_a_mapping_is_of_whole_numbers_where_it_holds_no_nan():
    mapping = OneHotEncoder().fit(TRAIN).mapping[0]["mapping"]
    assert {dtype.kind for dtype in mapping.dtypes} == {"i"}
    mapping = OneHotEncoder(handle_unknown="return_nan").fit(TRAIN).mapping[0]["mapping"]
    assert {dtype.kind for dtype in mapping.dtypes} == {"f"}


def test_set_output_of_sparse_is_refused():
    encoder = OneHotEncoder(sparse_output=True).set_output(transform="pandas")
    with pytest.raises(ValueError, match="sparse"):
        encoder.fit_transform(TRAIN)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.lists(st.one_of(st.none(), st.sampled_from(["é", "b", "c,d", ""])), min_size=1, max_size=30), st.randoms())
def test_permuting_rows_permutes_the_output(values, random):
    X = pd.DataFrame({"a": pd.Series(values, dtype=object)})
    encoder = OneHotEncoder(use_cat_names=True).fit(X)
    order = list(range(len(values)))
    random.shuffle(order)
    shuffled = X.iloc[order]
    np.testing.assert_array_equal(encoder.transform(shuffled), encoder.transform(X).iloc[order])
    again = OneHotEncoder(use_cat_names=True).fit(shuffled).transform(shuffled)
    assert set(again.columns) == set(encoder.transform(X).columns)
    codes, categories = naive.factorize(values)
    want = np.eye(len(categories), dtype=int)[codes]
    np.testing.assert_array_equal(encoder.transform(X).to_numpy(), want)


def test_pandas_out_of_polars_keeps_types():
    import datetime

    frame = pl.DataFrame({"s": ["u", "v"], "d": [datetime.date(2024, 1, 1)] * 2, "b": [True, False]})
    out = OneHotEncoder().set_output(transform="pandas").fit_transform(frame)
    assert isinstance(out, pd.DataFrame)
    assert [str(dtype) for dtype in out.dtypes][:2] == ["int8", "int8"]
    assert out["b"].dtype == bool


def test_arrays_after_frames_are_matched_by_position():
    frame = pd.DataFrame({"s": ["u", "v", "u"], "n": [1, 2, 3]})
    encoder = OneHotEncoder().fit(frame)
    with pytest.warns(UserWarning, match="does not have valid feature names, but OneHotEncoder was fitted with"):
        out = encoder.transform(frame.to_numpy(dtype=object))
    np.testing.assert_array_equal(out.to_numpy(dtype=float), encoder.transform(frame).to_numpy(dtype=float))
    plain = OneHotEncoder(cols=[0]).fit(frame.to_numpy(dtype=object))
    with pytest.warns(UserWarning, match="has feature names, but OneHotEncoder was fitted without"):
        out = plain.transform(frame)
    np.testing.assert_array_equal(out.to_numpy(dtype=float), encoder.transform(frame).to_numpy(dtype=float))
