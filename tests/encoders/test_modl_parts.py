"""The part of each row and the way back: missing and unseen values, categories, columns that are not those of fit."""

import numpy as np
import pandas as pd
import pytest

from tabsym import MODLEncoder
from tests.modl_data import N, X, Y, same_parts


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


def test_unknown_categories():
    frame = pd.DataFrame({"g": ["a"] * 100 + ["b"] * 90 + [None] * 100})
    y = np.r_[np.zeros(100), np.ones(90), np.arange(100) % 2].astype(int)
    new = pd.DataFrame({"g": ["never", "a"]})
    first = {how: MODLEncoder(handle_unknown=how).fit(frame, y).transform(new)["g"][0] for how in ("value", "missing")}
    assert first == {"value": "{b}", "missing": "{Missing}"}
    complete = MODLEncoder(handle_unknown="missing").fit(frame[:190], y[:190])  # without missing values
    assert complete.transform(new)["g"][0] == "{b}"
    with pytest.raises(ValueError, match=r"Column 'g' holds 'never' \(row 0\), which is not in the training data"):
        MODLEncoder(handle_unknown="error").fit(frame, y).transform(new)
    for output in ("group", "onehot", "probability", "mean"):
        out = MODLEncoder(handle_unknown="return_nan", output=output).fit(frame, y).transform(new)
        assert out.isna().all(axis=1).tolist() == [True, False]


def test_categories_are_matched_by_value():
    categories = X["g"].astype("category")
    encoder = MODLEncoder().fit(X[["x"]].assign(g=categories), Y)
    expected = encoder.transform(X)
    other = X.assign(g=X["g"].astype(pd.CategoricalDtype(list("hgfedcba"))))
    pd.testing.assert_frame_equal(encoder.transform(other), expected)
    same_parts(encoder, MODLEncoder().fit(X, Y))
    unused = MODLEncoder().fit(X.assign(g=categories.cat.add_categories(["zz"])), Y)
    same_parts(unused, encoder)
    with pytest.raises(TypeError, match="Column 'g' held text in fit and holds numbers now"):
        encoder.transform(X.assign(g=pd.Series([1, 2] * (N // 2)).astype("category")))
    with pytest.raises(ValueError, match="Column 'x' holds text where numbers are needed"):
        encoder.transform(X.assign(x="a"))


def test_inverse_gives_the_middle_rows_value_and_the_most_frequent_symbol():
    frame = pd.DataFrame({"x": [1.0] * 60 + [2.0] * 20 + [3.0] * 20 + [9.0] * 100, "g": ["p"] * 40 + ["q"] * 160})
    y = np.repeat([0, 1], 100)
    encoder = MODLEncoder().fit(frame, y)
    back = encoder.inverse_transform(encoder.transform(frame))
    assert back["x"].tolist() == [1.0] * 100 + [9.0] * 100
    assert set(back["g"]) == {"p", "q"}
    odd = encoder.transform(frame).astype(str)
    odd.loc[3, "g"] = "{never}"
    with pytest.raises(
        ValueError, match=r"Column 'g' holds '\{never\}' \(row 3\), which is none of its intervals or groups"
    ):
        encoder.inverse_transform(odd)
    with pytest.raises(ValueError, match="X has 1 column, but the training data had 2; pass what transform returned"):
        encoder.inverse_transform(odd[["g"]])
    dropped = MODLEncoder(drop_invariant=True).fit(frame.assign(k=1), y)
    with pytest.raises(ValueError, match="drop_invariant=True has dropped 'k', which cannot come back"):
        dropped.inverse_transform(dropped.transform(frame.assign(k=1)))
    assert not hasattr(MODLEncoder(output="mean"), "inverse_transform")


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
