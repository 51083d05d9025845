"""OneHotEncoder's options against the two encoders that they come from, combined with one another."""

import inspect
import itertools
import re

import category_encoders
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.preprocessing
from sklearn.base import clone

from tabsym import MODLEncoder, OneHotEncoder

RNG = np.random.default_rng(0)
A = np.repeat(list("abcdefg"), [40, 30, 20, 10, 5, 3, 2])
B = np.repeat(list("pqrst"), [60, 40, 5, 3, 2])
C = np.repeat(list("uv"), [50, 60])
TRAIN = pd.DataFrame({"A": RNG.permutation(A), "B": RNG.permutation(B), "C": RNG.permutation(C)})
TEST = pd.DataFrame({"A": [*"abcdefg", "new", "a"], "B": [*"pqrstq", "p", "new", "q"], "C": [*"uvuvuvuv", "new"]})
CATEGORIES = [sorted(set(TRAIN[name])) for name in TRAIN]

DROPS = [None, "first", "if_binary", ["b", "p", "v"]]
RARE = [
    {},
    {"min_frequency": 6},
    {"min_frequency": 0.1},
    {"max_categories": 4},
    {"max_categories": 3, "min_frequency": 4},
]
UNKNOWN = ["ignore", "infrequent_if_exist", "warn", "error"]


def both(**options):
    ours = OneHotEncoder(categories=CATEGORIES, **options).fit(TRAIN)
    theirs = sklearn.preprocessing.OneHotEncoder(
        categories=[np.array(one, dtype=object) for one in CATEGORIES], sparse_output=False, **options
    ).fit(TRAIN.astype(object))
    return ours, theirs


@pytest.mark.filterwarnings("ignore:Found unknown")
@pytest.mark.parametrize("drop", DROPS, ids=str)
@pytest.mark.parametrize("rare", RARE, ids=str)
@pytest.mark.parametrize("handle_unknown", UNKNOWN)
def test_values_as_scikit_learns(drop, rare, handle_unknown):
    ours, theirs = both(drop=drop, handle_unknown=handle_unknown, **rare)
    frames = [TRAIN] if handle_unknown == "error" else [TRAIN, TEST]
    for frame in frames:
        want = theirs.transform(frame.astype(object))
        np.testing.assert_array_equal(ours.transform(frame).to_numpy(dtype=float), want)
        np.testing.assert_array_equal(ours.transform(pl.from_pandas(frame)).to_numpy(), want)
        thin = clone(ours).set_params(sparse_output=True).fit(TRAIN)
        np.testing.assert_array_equal(thin.transform(frame).toarray(), want)
    if handle_unknown == "error":
        with pytest.raises(ValueError, match="Column 'A' holds 'new'"):
            ours.transform(TEST)
    for place, name in enumerate(TRAIN):
        dropped = None if theirs.drop_idx_ is None else theirs.drop_idx_[place]
        if dropped is None or name not in ours.infrequent_categories_:
            assert (ours.drop_idx_[name] is None) == (dropped is None)
        elif ours.infrequent_categories_[name] is None or TRAIN[name].nunique() != len(
            ours.infrequent_categories_[name]
        ):
            assert ours.drop_idx_[name] == dropped
        if rare:
            want_rare = theirs.infrequent_categories_[place]
            got = ours.infrequent_categories_[name]
            assert (got is None) == (want_rare is None)
            if got is not None:
                assert got.tolist() == want_rare.tolist()


@pytest.mark.filterwarnings("ignore:Found unknown")
@pytest.mark.parametrize("drop", DROPS, ids=str)
@pytest.mark.parametrize("rare", RARE, ids=str)
def test_the_way_back_as_scikit_learns_but_for_rare_symbols(drop, rare):
    """Theirs are the word 'infrequent_sklearn', ours the most frequent of them, which is encoded the same."""
    ours, theirs = both(drop=drop, handle_unknown="ignore", **rare)
    for frame in (TRAIN, TEST):
        encoded = ours.transform(frame)
        back, want = ours.inverse_transform(encoded), theirs.inverse_transform(encoded.to_numpy(dtype=float))
        known = want != "infrequent_sklearn"
        values = back.to_numpy(dtype=object)
        same = (values == want) | (pd.isna(values) & pd.isna(want))
        assert same[known].all()
        for place, name in enumerate(TRAIN):
            for row in np.flatnonzero(~known[:, place]):
                rare_ones = ours.infrequent_categories_[name].tolist()
                assert values[row, place] == max(rare_ones, key=TRAIN[name].tolist().count)
        pd.testing.assert_frame_equal(ours.transform(back), encoded)


def test_a_group_of_all_symbols_as_scikit_learns():
    ours, theirs = both(max_categories=1)
    np.testing.assert_array_equal(ours.transform(TRAIN).to_numpy(), theirs.transform(TRAIN.astype(object)))
    assert [one.tolist() for one in ours.infrequent_categories_.values()] == CATEGORIES
    ours, theirs = both(max_categories=1, drop="first")
    assert ours.transform(TRAIN).shape == theirs.transform(TRAIN.astype(object)).shape == (110, 0)


def test_names_as_scikit_learns():
    def combine(column, category):
        return f"{column} is {category}"

    for combiner in ("concat", combine):
        for drop in DROPS:
            ours, theirs = both(feature_name_combiner=combiner, drop=drop)
            assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    ours, theirs = both(feature_name_combiner=combine, min_frequency=6)
    names = [name.replace("infrequent_sklearn", "infrequent") for name in theirs.get_feature_names_out()]
    assert ours.get_feature_names_out().tolist() == names
    assert OneHotEncoder(max_categories=3).fit(TRAIN[["A"]]).get_feature_names_out().tolist() == ["A_1", "A_2", "A_3"]
    with pytest.raises(TypeError, match=r"feature_name_combiner gave 3 for column 'A'.*must return text"):
        OneHotEncoder(feature_name_combiner=lambda *_: 3).fit(TRAIN)


SIZES = [6, 0.1, 100]
WITH_MISSING = TRAIN.astype(object).mask(pd.DataFrame({name: np.arange(110) % 37 == 5 for name in TRAIN}))


GROUPS = list(itertools.product(SIZES, [None, "rest"], [None, True, False, "force"], ["value", "indicator"]))


@pytest.mark.parametrize(
    ("min_group_size", "min_group_name", "combine", "handle_unknown"), GROUPS[::3]  # any two values meet
)  # fmt: skip
def test_groups_as_category_encoders(min_group_size, min_group_name, combine, handle_unknown):
    options = {
        "min_group_size": min_group_size, "min_group_name": min_group_name, "combine_min_nan_groups": combine,
        "use_cat_names": True, "handle_unknown": handle_unknown,
    }  # fmt: skip
    test = TEST.drop(index=7) if min_group_size == 100 else TEST
    for train in (TRAIN.astype(object), WITH_MISSING):
        ours, theirs = OneHotEncoder(**options).fit(train), category_encoders.OneHotEncoder(**options).fit(train)
        names = {name: re.sub(r"_nan(_\w+)$", r"\1_nan", name) for name in theirs.get_feature_names_out()}
        assert sorted(ours.get_feature_names_out()) == sorted(names.values())  # pandas 2 sorts "nan" among the others
        for frame in (train, test.astype(object)):
            want = theirs.transform(frame).rename(columns=names)
            pd.testing.assert_frame_equal(ours.transform(frame)[want.columns], want, check_dtype=False)


def test_mapping_as_category_encoders():
    X = pd.DataFrame({"A": ["x", "y", "x"], "B": ["p", "q", "r"]})
    for options in ({}, {"handle_unknown": "indicator"}, {"handle_unknown": "return_nan", "handle_missing": "ignore"}):
        ours, theirs = OneHotEncoder(**options).fit(X), category_encoders.OneHotEncoder(**options).fit(X)
        for one, other in zip(ours.mapping, theirs.mapping, strict=True):
            assert one["col"] == other["col"]
            want = other["mapping"].loc[one["mapping"].index.intersection(other["mapping"].index)]
            pd.testing.assert_frame_equal(one["mapping"].loc[want.index], want, check_dtype=False)
    assert len(ours.category_mapping) == 2


def test_a_limit_that_the_symbols_meet_groups_none():
    """Unlike scikit-learn's, which makes a group of one symbol, and puts unknown ones in it."""
    assert OneHotEncoder(max_categories=2).fit(TRAIN[["C"]]).infrequent_categories_ == {"C": None}
    assert both(max_categories=2)[1].infrequent_categories_[2].tolist() == ["u"]  # as the notes on differences say


@pytest.mark.parametrize("options", [{}, {"max_categories": 2}, {"drop": "first"}, {"drop_invariant": True}], ids=str)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_rows_of_weight_zero_are_absent(make, options):
    """Also where they hold a category before all others do, and where a column varies by them alone."""
    rng = np.random.default_rng(0)
    for n in (12, 200):  # which are coded in two ways
        X = {"A": rng.choice(list("abcd"), n), "B": np.repeat(["u", "v"], [n // 3, n - n // 3]), "C": np.repeat("k", n)}
        weight = np.where(X["B"] == "u", 0, rng.integers(0, 3, n))
        X["C"] = np.where(weight == 0, "gone", X["C"])
        present = {name: column[weight > 0] for name, column in X.items()}
        given = OneHotEncoder(use_cat_names=True, **options).fit(make(X), sample_weight=weight)
        alone = OneHotEncoder(use_cat_names=True, **options).fit(make(present), sample_weight=weight[weight > 0])
        assert given.get_feature_names_out().tolist() == alone.get_feature_names_out().tolist()
        assert np.array_equal(given.transform(make(X)), alone.transform(make(X)))


def test_weights_are_frequencies():
    X = pd.DataFrame({"A": ["x", "y", "z", "x"]})
    weight = [0.5, 3.0, 2.0, 0.25]
    for option in ({"min_frequency": 2}, {"min_frequency": 0.3}, {"max_categories": 2}, {"min_group_size": 3}):
        weighted = OneHotEncoder(**option).fit(X, sample_weight=weight)
        repeated = OneHotEncoder(**option).fit(X.loc[np.repeat(range(4), [2, 12, 8, 1])])
        got, want = weighted.infrequent_categories_["A"], repeated.infrequent_categories_["A"]
        if option == {"min_frequency": 2}:
            assert got.tolist() == ["x"]
        elif "min_group_size" in option:
            assert got.tolist() == ["x", "z"]
        else:
            assert got.tolist() == want.tolist()


def test_infrequent_categories_depend_neither_on_the_unit_of_weights_nor_on_the_order_of_rows():
    """Shares that are met exactly, and equal frequencies, were decided by rounding."""
    rng = np.random.default_rng(0)
    for option in ({"min_frequency": 0.1}, {"min_frequency": 0.25}, {"max_categories": 3}, {"min_group_size": 0.2}):
        for n in range(5, 45, 2):
            X, weight = pd.DataFrame({"A": rng.choice(list("abcdef"), n)}), rng.integers(1, 4, n)
            categories = [[*"fedcba"]]  # of equally frequent ones the first are infrequent
            want = OneHotEncoder(categories=categories, **option).fit(X.loc[np.repeat(range(n), weight)])
            order = rng.permutation(n)
            for unit in (0.1, 0.7, 1 / 3):
                got = OneHotEncoder(categories=categories, **option).fit(X.loc[order], None, (weight * unit)[order])
                assert str(got.infrequent_categories_) == str(want.infrequent_categories_)
                assert [*got.transform(X)] == [*want.transform(X)]


@pytest.mark.filterwarnings("ignore:Found unknown")
@pytest.mark.parametrize("frame_of", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.slow
def test_all_options_combine(frame_of):
    """Whatever is asked for: names, sparse, codes and the way back agree with the dense columns."""
    train, test = frame_of(WITH_MISSING.astype("str")), frame_of(TEST.astype("str").mask(TEST == "c"))
    grid = itertools.product(
        ["value", "return_nan", "indicator", "ignore"], ["value", "return_nan", "indicator", "infrequent_if_exist"],
        [None, "first", {"A": "a"}],
        [{}, {"min_frequency": 11}, {"max_categories": 3, "combine_min_nan_groups": False}, {"min_group_size": 0.2}],
        [(None, False), ("float32", True)],
    )  # fmt: skip
    part = 1 if isinstance(train, pd.DataFrame) else 2
    for number, (missing, unknown, drop, rare, (dtype, drop_invariant)) in enumerate(grid):
        if sum(np.unravel_index(number, (4, 4, 3, 4, 2))) % 3 != part:  # with all pairs of options, for each frame
            continue
        options = {"handle_missing": missing, "handle_unknown": unknown, "drop": drop, "dtype": dtype, **rare}
        dense = OneHotEncoder(drop_invariant=drop_invariant, **options).fit(train)
        out = dense.transform(test)
        values = out.to_numpy().astype(float)
        assert list(out.columns) == dense.get_feature_names_out().tolist()
        can_be_nan = "return_nan" in (missing, unknown)
        kinds = {str(one).lower() for one in (out.dtypes if isinstance(out, pd.DataFrame) else out.schema.dtypes())}
        assert kinds <= {dtype or ("float64" if can_be_nan else "int8")}
        assert np.isin(values[~np.isnan(values)], [0, 1]).all()
        thin = clone(dense).set_params(sparse_output=True).fit(train).transform(test)
        assert thin.dtype == np.dtype(dtype or "float64")
        np.testing.assert_array_equal(thin.toarray(), values)
        if drop_invariant:
            continue
        back = dense.inverse_transform(out)
        again = dense.transform(back).to_numpy().astype(float)
        decoded = ~(pd.isna(back.to_numpy()) if isinstance(back, pd.DataFrame) else back.to_pandas().isna().to_numpy())
        widths = [len(state.names) for state in dense.columns_.values()]
        cells = np.repeat(decoded, widths, axis=1)
        np.testing.assert_array_equal(again[cells], values[cells])


def test_codes_without_zeros_with_groups_and_drops():
    encoder = OneHotEncoder(categories=CATEGORIES, drop="first", min_frequency=6).fit(TRAIN)
    with pytest.warns(
        UserWarning, match="Found unknown categories in column 'A', 'B', 'C', which are encoded as zeros"
    ):
        matrix = encoder.transform_codes(TEST)
    with pytest.warns(UserWarning, match="as the dropped category is"):
        want = encoder.transform(TEST).to_numpy()
    np.testing.assert_array_equal(matrix.to_csr().toarray(), want)


def test_warn_names_the_columns():
    encoder = OneHotEncoder(handle_unknown="warn").fit(TRAIN)
    with pytest.warns(UserWarning, match="Found unknown categories in column 'A', which are encoded as infrequent"):
        encoder.transform(TEST.assign(B="p", C="u"))


def test_categories_by_column_and_what_lies_beside_them():
    X = pd.DataFrame({"A": ["x", None, "y"], "B": ["p", "q", "q"]})
    encoder = OneHotEncoder(categories={"A": ["y", "z", None]}, use_cat_names=True).fit(X)
    assert encoder.categories_["A"].tolist() == ["y", "z", None]
    out = encoder.transform(X)
    assert list(out) == ["A_y", "A_z", "A_nan", "B_p", "B_q"]
    assert out.to_numpy()[:, :3].tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categories": [["x"]]}, "categories has 1 entry for 2 encoded columns"),
        ({"categories": {"C": ["x"]}}, "categories names column 'C', which is not encoded; encoded are 'A', 'B'"),
        ({"categories": "sorted"}, "categories='sorted' is not possible"),
        ({"categories": {"A": ["x", "x"]}}, "categories of column 'A' hold a value twice"),
        (
            {"categories": {"A": ["x", None]}, "handle_missing": "ignore"},
            "categories of column 'A' hold a missing value",
        ),
        (
            {"categories": {"A": ["x"]}, "handle_unknown": "error"},
            r"Column 'A' holds 'y' \(row 1\), which is not among",
        ),
        ({"drop": "last"}, "drop='last' is not known"),
        ({"drop": {"A": "z"}}, "drop names 'z' of column 'A', which is none of its categories"),
        ({"drop": ["x"]}, "drop has 1 entry for 2 encoded columns"),
        ({"drop": {"B": "r"}, "max_categories": 2}, "drop names 'r' of column 'B', which is among its infrequent"),
        ({"min_frequency": 0}, "min_frequency=0 is not possible"),
        ({"min_frequency": 1.5}, "min_frequency=1.5 is not possible"),
        ({"min_frequency": True}, "min_frequency=True is not possible"),
        ({"max_categories": 0}, "max_categories=0 is not possible"),
        ({"max_categories": 2.0}, "max_categories=2.0 is not possible"),
        ({"min_group_size": "few"}, "min_group_size='few' is not possible"),
        ({"min_group_size": 2, "min_frequency": 2}, "use one or the other"),
        ({"min_group_name": "rest"}, "no option makes one so"),
        ({"min_group_name": 3, "min_group_size": 2}, "min_group_name=3 is not possible"),
        ({"min_group_size": 2, "combine_min_nan_groups": "no"}, "combine_min_nan_groups='no' is not known"),
        ({"min_group_size": 2, "combine_min_nan_groups": "force", "handle_missing": "ignore"}, "not 'ignore'"),
        ({"dtype": "text"}, "dtype='text' is not possible"),
        ({"dtype": "datetime64[ns]"}, "is not possible; use a type of numbers"),
        ({"dtype": int, "handle_unknown": "return_nan"}, "holds no NaN, which 'return_nan' makes"),
        ({"feature_name_combiner": "join"}, "feature_name_combiner='join' is not known"),
        ({"handle_unknown": "infrequent"}, "handle_unknown='infrequent' is not known; use 'value', 'ignore'"),
    ],
)
def test_options_that_cannot_be(options, message):
    X = pd.DataFrame({"A": ["x", "y", "x", "x"], "B": ["p", "q", "p", "r"]})
    for frame in (X, pl.from_pandas(X)):
        with pytest.raises(ValueError, match=message):
            OneHotEncoder(**options).fit(frame)


def test_categories_of_another_type_are_refused():
    with pytest.raises(TypeError, match="categories of column 'A' hold values such as 1 and the column such as 'x'"):
        OneHotEncoder(categories={"A": [1, 2]}).fit(pd.DataFrame({"A": ["x", "y"]}))
    with pytest.raises(TypeError, match="categories of column 'A' hold nested values"):
        OneHotEncoder(categories={"A": [["x", "y"]]}).fit(pd.DataFrame({"A": ["x", "y"]}))


def test_a_column_whose_only_symbol_is_dropped_comes_back():
    X = pd.DataFrame({"A": ["x", "x"], "n": [1, 2]})
    encoder = OneHotEncoder(drop="first").fit(X)
    assert list(encoder.transform(X)) == ["n"]
    pd.testing.assert_frame_equal(encoder.inverse_transform(encoder.transform(X)), X)


def test_integers_and_untouched_columns_in_a_sparse_matrix():
    X = pd.DataFrame({"A": ["x", "y"], "n": [1.5, 2.5]})
    for dtype, want in (("int8", "float64"), ("float32", "float32"), (None, "float64")):
        out = OneHotEncoder(sparse_output=True, dtype=dtype).fit_transform(X)
        assert out.dtype == want
        assert out.toarray().tolist() == [[1, 0, 1.5], [0, 1, 2.5]]
    assert OneHotEncoder(sparse_output=True, dtype="int8").fit_transform(X[["A"]]).dtype == np.int8


@pytest.mark.parametrize("encoder", [OneHotEncoder, MODLEncoder])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_arrays_without_columns_have_rows(encoder, library):
    X = pd.DataFrame({"a": ["k"] * 40, "b": ["v"] * 40})
    X = X if library == "pandas" else pl.from_pandas(X)
    model = encoder(cols=["a", "b"], drop_invariant=True, return_df=False).fit(X, np.arange(40) % 2)
    assert model.transform(X).shape == (40, 0)


def test_the_differences_from_scikit_learn_are_listed():
    """By parameters' names and defaults, and attributes' types; what the list promises holds."""
    theirs, ours = (inspect.signature(kind).parameters for kind in (sklearn.preprocessing.OneHotEncoder, OneHotEncoder))
    assert set(theirs) <= set(ours)
    listed = OneHotEncoder.__doc__.partition("Differences from it:")[2].partition("Categories are in order")[0]
    other_defaults = {name for name in theirs if theirs[name].default != ours[name].default}
    for name in other_defaults | (set(ours) - set(theirs)):
        assert f"`{name}`" in listed
    X = pd.DataFrame({"a": pd.Series(["v", "u", "v", None, np.nan], dtype=object), "n": [1, 2, 1, 1, 2]})
    own = OneHotEncoder(cols="all", drop="first").fit(X)
    other = sklearn.preprocessing.OneHotEncoder(drop="first").fit(X)
    public = {name for name in dir(other) if not name.startswith("_")}
    assert public <= set(dir(own))
    assert {name for name in vars(other) if name.endswith("_")} >= {"categories_", "drop_idx_"}
    for name in ("categories_", "drop_idx_", "infrequent_categories_"):
        assert isinstance(getattr(own, name), dict)
        assert f"`{name}`" in listed
    assert own.categories_["a"].tolist() == ["v", "u", None]
    assert len(other.categories_[0]) == 4


def test_the_defaults_of_scikit_learn_make_its_matrix():
    X = pd.DataFrame({"a": list("abcab"), "n": [1, 2, 3, 1, 2]})
    as_theirs = OneHotEncoder(
        cols="all", handle_unknown="error", sparse_output=True, dtype=np.float64, feature_name_combiner="concat"
    )
    other = sklearn.preprocessing.OneHotEncoder()
    np.testing.assert_array_equal(as_theirs.fit_transform(X).toarray(), other.fit_transform(X).toarray())
    assert as_theirs.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
