"""Weights, the order of rows, and pieces of a table: partial_fit, merge and sketches."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from tabsym import MODLEncoder
from tabsym.categories import contingency
from tests.modl_data import AMOUNT, TARGETS, THREE, N, X, Y, same_parts

SMALL = pd.DataFrame({"g": ["a"] * 20 + ["b"] * 20, "x": [1.0] * 20 + [2.0] * 20})


SMALL_Y = np.array([0] * 20 + [0] * 5 + [1] * 15)


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


@pytest.mark.slow
def test_rows_of_weight_0_are_absent():
    weight = np.where(np.arange(N) < 50, 0.0, 1.0)
    for y in (np.where(np.arange(N) < 50, 9, Y), np.where(np.arange(N) < 50, 1e9, AMOUNT)):
        frame = X.assign(g=np.where(np.arange(N) < 50, "absent", X["g"]), x=np.where(np.arange(N) < 50, 1e9, X["x"]))
        weighted = MODLEncoder().fit(frame, y, sample_weight=weight)
        same_parts(weighted, MODLEncoder().fit(frame[50:], y[50:]))
    with pytest.raises(ValueError, match=r"rows of weight above 0 have 1 class only \(0\); choose other weights"):
        MODLEncoder().fit(X, Y, sample_weight=1.0 - Y)


@pytest.mark.slow
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
    with pytest.warns(UserWarning, match="add up to 1, which MODL takes for the number of rows"):
        light = MODLEncoder(output="mean", cv=None).fit(SMALL, SMALL_Y, sample_weight=np.full(40, 1 / 40))
    assert light.levels_ == {"g": 0.0, "x": 0.0}
    np.testing.assert_allclose(light.transform(SMALL[:1]), 15 / 40)


@pytest.mark.slow
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
@pytest.mark.slow
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


@pytest.mark.slow
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
            "Column 'x' held numbers before and holds categories of type st",
        ),
        (
            lambda: encoder.partial_fit(X.assign(g=1.5), Y),
            "Column 'g' held categories of type str before and holds numb",
        ),
        (lambda: encoder.partial_fit(X.assign(x=np.inf), Y), "Column 'x' contains infinity"),
        (lambda: encoder.partial_fit(X[["g", "x"]], Y), "must be in the same order"),
        (lambda: encoder.partial_fit(X, Y, sample_weight=-np.ones(N)), "negative"),
        (lambda: encoder.merge(other), "Column 'x' held numbers before and holds categories of type str now"),
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
    rng = np.random.default_rng(0)
    monkeypatch.setattr(contingency, "SKETCH_ABOVE", 100)
    n = 4000
    x = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    y = (np.nan_to_num(np.sin(3 * x), nan=1) + rng.normal(size=n) / 4 > 0).astype(int)
    weight = rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)
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


def test_a_column_whose_only_number_has_weight_0_is_all_missing():
    frame = pd.DataFrame({"n": [np.nan, np.nan, 0.0], "g": [None] * 3}).astype({"g": object})
    weighted = MODLEncoder().fit(frame, [0, 1, 0], sample_weight=[1, 1, 0])
    same_parts(weighted, MODLEncoder().fit(frame[:2], [0, 1]))
    assert weighted.parts("n")["part"].tolist() == ["{Missing}"]
