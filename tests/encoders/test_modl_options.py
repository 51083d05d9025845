"""The options of MODLEncoder, and what it takes the target for."""

import warnings
from decimal import Decimal
from itertools import combinations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabsym import CrossFit, MODLEncoder
from tabsym.datasets import make_retail
from tests.modl_data import AMOUNT, NUMBER, TARGETS, THREE, N, X, Y, same_parts


def test_amounts_that_are_mostly_zero_are_cut_without_a_proof_as_with_one():
    """Coarse quantiles have no place for cuts among the few others: the search ended before it came to them."""
    draw = np.random.default_rng(0)
    x = np.where(draw.random(20_000) < 0.95, 0.0, draw.gamma(20.0, 100.0, 20_000).round())
    y = draw.random(20_000) < np.where((x > 1_500) & (x < 1_700) | (x > 2_300), 0.9, 0.2)
    quick, proved = (MODLEncoder(prove=prove).fit(pd.DataFrame({"x": x}), y) for prove in (False, True))
    assert len(proved.partitions_["x"].labels) > 3
    assert quick.costs_["x"] == pytest.approx(proved.costs_["x"], rel=1e-9)


@pytest.mark.parametrize("n, target", [(600, "classes"), (600, "amounts"), (6_000, "classes")])
@pytest.mark.parametrize("criterion", ["khiops", "page"])
@pytest.mark.parametrize("prove", ["auto", False])
def test_the_best_of_at_most_so_many_intervals_is_found(prove, criterion, n, target):
    """Of a wave of six steps: searches by price lead to six intervals and to one, and to none between."""
    rng = np.random.default_rng(0)
    x = rng.random(n)
    share = np.where(np.searchsorted([0.2, 0.35, 0.5, 0.7, 0.85], x) % 2, 0.85, 0.15)
    y = rng.random(n) < share if target == "classes" else share + 0.2 * rng.normal(size=n)
    how = {"criterion": criterion, "target_type": "classes" if target == "classes" else "continuous"}
    X = pd.DataFrame({"x": x})
    for most in (3, 4):
        found = MODLEncoder(max_parts=most, prove=prove, **how).fit(X, y)
        for cuts in combinations([0.2, 0.35, 0.5, 0.7, 0.85], most - 1):
            given = MODLEncoder(splits={"x": list(cuts)}, **how).fit(X, y)
            assert found.costs_["x"] <= given.costs_["x"] * (1 + 1e-12)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.slow
def test_limits_on_parts_hold(target):
    rng = np.random.default_rng(0)
    y = TARGETS[target]
    frame = pd.DataFrame({"x": NUMBER, "g": rng.integers(0, 30, N).astype(str)})
    frame["g"] = np.where(rng.random(N) < 0.5, X["g"], frame["g"])
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
            assert one.partition.n_parts > 1
            assert one.partition.counts.sum(axis=1).min() >= 90
        assert set(MODLEncoder(min_part_count=10 * N).fit(frame, y).levels_.values()) == {0.0}


@pytest.mark.slow
def test_monotone_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": np.linspace(0, 6, 300)})
    for y in ((np.sin(frame["x"]) + rng.normal(size=300) / 3 > 0).astype(int), np.sin(frame["x"])):
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


@pytest.mark.slow
def test_what_the_target_is_taken_for():
    assert len(MODLEncoder().fit(X, np.arange(N) % 20).classes_) == 20
    assert not hasattr(MODLEncoder().fit(X, np.arange(N) % 50), "classes_")
    assert not hasattr(MODLEncoder().fit(X, np.arange(N)), "classes_")
    assert not hasattr(MODLEncoder(target_type="continuous").fit(X, Y), "classes_")
    assert len(MODLEncoder(target_type="classes").fit(X[["g"]], np.arange(N) % 150).classes_) == 150
    for y in (Y > 0, pd.Series(Y).astype("category"), pl.Series(Y), Y.tolist(), pd.Series(Y.astype(str)), Y * 1.0):
        same_parts(MODLEncoder().fit(X, y), MODLEncoder().fit(X, Y))
    for y in (pd.Series(AMOUNT).astype(object), pl.Series(AMOUNT), pd.Series(AMOUNT, dtype="Float64")):
        same_parts(MODLEncoder().fit(X[["g"]], y), MODLEncoder().fit(X[["g"]], AMOUNT))
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


def test_log_odds_need_no_guess_of_what_whole_numbers_are():
    ratings = np.repeat(np.arange(1, 6), [40, 80, 120, 100, 80])
    with pytest.warns(UserWarning, match="for ratings, a continuous target"):
        MODLEncoder().fit(X, ratings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = MODLEncoder(output="logodds", cv=None).fit(X, ratings)
        crossed = CrossFit(MODLEncoder(output="logodds", cv=None), cv=3).fit_transform(X, ratings)
    assert encoder.classes_.tolist() == [1, 2, 3, 4, 5]
    assert crossed.shape == encoder.transform(X).shape


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"output": "woe"}, "output='woe' is not known; use 'group', 'onehot', 'probability', 'logodds' or 'mean'"),
        ({"output": ["group"]}, r"output=\['group'\] is not known"),
        ({"numeric": "skip"}, "numeric='skip' is not known; use 'discretize' or 'passthrough'"),
        ({"criterion": "mdlp"}, "criterion='mdlp' is not known; use 'khiops' or 'page'"),
        ({"target_type": "binary"}, "target_type='binary' is not known; use 'auto', 'classes' or 'continuous'"),
        ({"handle_missing": "drop"}, "handle_missing='drop' is not known; use 'value'"),
        ({"handle_unknown": "drop"}, "use 'value', 'missing', 'similar', 'return_nan' or 'error'"),
        ({"max_parts": 0}, "max_parts=0 is not possible; use a whole number of at least 1 or None"),
        ({"max_parts": 2.5}, "max_parts=2.5 is not possible"),
        ({"n_candidates": True}, "n_candidates=True is not possible"),
        ({"min_part_count": 0}, "min_part_count=0 is not possible; use a number above 0"),
        ({"min_part_count": None}, "min_part_count=None is not possible"),
        ({"min_part_count": float("nan")}, "min_part_count=nan is not possible"),
        ({"time_limit": -1}, "time_limit=-1 is not possible; use a number above 0 or None"),
        ({"monotonic": "increasing"}, "monotonic='increasing' is not possible; use True, False or"),
        ({"sparse_output": True}, "sparse_output goes with output='onehot', not with 'group'; set it to False"),
        ({"sparse_output": "yes", "output": "onehot"}, "sparse_output='yes' is not possible; use True or False"),
        ({"cols": ["q"]}, "cols names column 'q', which is not in the table; it has 'x', 'g'"),
        ({"cols": "q"}, "cols names column 'q', which is not in the table; it has 'x', 'g'"),
        ({"cv": "five", "output": "mean"}, "cv='five' is not possible; use a whole number of folds of at least 2"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        MODLEncoder(**options).fit_transform(X, Y)


@pytest.mark.slow
def test_without_proofs_the_parts_are_as_good_or_a_little_dearer():
    sales = make_retail(1500, random_state=3)
    X, y = sales[["colour", "price"]], sales["sales"]
    whole, quick = MODLEncoder(prove=True).fit(X, y), MODLEncoder(prove=False).fit(X, y)
    for name in X:
        assert whole.costs_[name] <= quick.costs_[name] + 1e-9 <= whole.costs_[name] * (1 + 1e-3)
        assert quick.certificates_[name].lower_bound == -np.inf
    classes = MODLEncoder(prove=False).fit(X, y > y.median())
    proved = MODLEncoder(prove=True).fit(X, y > y.median())
    assert classes.costs_["price"] == pytest.approx(proved.costs_["price"])
    assert MODLEncoder().fit(X, y).certificates_ == quick.certificates_  # by default of classes only
    assert MODLEncoder().fit(X, y > y.median()).certificates_ == proved.certificates_ != classes.certificates_


@pytest.mark.parametrize("output", ["group", "onehot", "mean"])
def test_unknown_categories_go_where_similar_ones_are(output):
    rng = np.random.default_rng(0)
    own = rng.integers(0, 30, 3000)
    kind = own % 3
    X = pd.DataFrame({"model": [f"m{code}" for code in own], "kind": np.array(["car", "van", "bus"])[kind]})
    y = (rng.random(3000) < np.array([0.1, 0.5, 0.9])[kind]).astype(int)
    options = {"output": output, "cols": ["model"], "numeric": "passthrough"}
    encoder = MODLEncoder(handle_unknown="similar", **options).fit(X, y)
    assert len(encoder.partitions_["model"].groups) == 3
    new = pd.DataFrame({"model": ["a", "b", "c"] * 5, "kind": ["car", "van", "bus"] * 5})
    like = new.assign(model=new["kind"].map({"car": "m0", "van": "m1", "bus": "m2"}))
    pd.testing.assert_frame_equal(encoder.transform(new), encoder.transform(like))
    pd.testing.assert_frame_equal(encoder.transform(X), MODLEncoder(**options).fit(X, y).transform(X))
    nan = MODLEncoder(handle_unknown="similar", handle_missing="return_nan", **options).fit(X, y)
    out = nan.transform(new.assign(model=None))
    assert out.drop(columns="kind").isna().all().all()
    with pytest.raises(ValueError, match="not supported by partial_fit"):
        MODLEncoder(handle_unknown="similar").partial_fit(X, y)
    sparse = MODLEncoder(
        handle_unknown="similar", output="onehot", sparse_output=True, cols=["model"], numeric="passthrough"
    )
    numbers = X.assign(kind=kind.astype(float))  # context that is no symbol
    sparse.fit(numbers, y)
    new = new.assign(kind=[0.0, 1.0, 2.0] * 5)
    like = like.assign(kind=new["kind"])
    assert (sparse.transform(new) != sparse.transform(like)).nnz == 0


def infinite_numbers(n=900):
    """Numbers with infinite ones, which tell of the target; and with others beyond all finite ones in their place."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=n)
    x[: n // 5], x[n // 5 : n // 3], x[n // 3 : n // 3 + 40] = np.inf, -np.inf, np.nan
    y = draw.random(n) < np.select([x == np.inf, x == -np.inf, x > 0], [0.9, 0.1, 0.7], 0.4)
    order = draw.permutation(n)
    frame = pd.DataFrame({"x": x, "g": draw.choice(list("abc"), n)}).iloc[order].reset_index(drop=True)
    return frame, frame.replace({"x": {np.inf: 1e9, -np.inf: -1e9}}), y[order].astype(int)


@pytest.mark.parametrize("kind", ["float64", "float32", "polars", "lazy", "duckdb"])
@pytest.mark.parametrize("output", ["group", "onehot", "logodds", "mean"])
def test_infinite_numbers_are_extremes_where_that_is_asked_for(kind, output):
    frame, finite, y = infinite_numbers()
    options = {"output": output, "target_type": "classes"}
    expected = MODLEncoder(**options).fit(finite, y)
    encoder = MODLEncoder(handle_infinite="extreme", **options)
    if kind in ("lazy", "duckdb"):
        source = pl.from_pandas(frame.assign(y=y))
        encoder.fit(source.lazy() if kind == "lazy" else duckdb.sql("select * from source"), "y")
        given = source.drop("y")
    else:
        given = pl.from_pandas(frame) if kind == "polars" else frame.astype({"x": kind})
        encoder.fit(given, y)
        made = encoder.fit_transform(given, y)
        theirs = MODLEncoder(**options).fit_transform(finite, y)
        if output != "group":
            np.testing.assert_allclose(np.asarray(made, dtype=float), np.asarray(theirs, dtype=float))
    assert encoder.costs_ == pytest.approx(expected.costs_)
    assert encoder.partitions_["x"].partition.n_parts == expected.partitions_["x"].partition.n_parts > 3
    codes = [np.unique(np.asarray(one.transform(of))[:, 0].astype(str), return_inverse=True)[1] for one, of in
             ((encoder, given), (expected, finite))]  # fmt: skip
    assert len(set(zip(*codes, strict=True))) == len(set(codes[0])) == len(set(codes[1]))


@pytest.mark.parametrize("largest", ["Infinity", "1e400"])
def test_decimals_that_are_infinite_or_too_large_are_extremes(largest):
    """They ended in OverflowError."""
    words = [largest, "1", "2", "-" + largest, "NaN"] * 20
    X = pd.DataFrame({"x": pd.Series(list(map(Decimal, words)), dtype=object)})
    y = [one.strip("-") == largest for one in words]
    finite = X["x"].map(lambda number: max(-9.0, min(9.0, float(number)))).where(X["x"].notna())
    encoder = MODLEncoder(handle_infinite="extreme", return_df=False).fit(X, y)
    expected = MODLEncoder(return_df=False).fit(finite.to_frame(), y)
    assert encoder.partitions_["x"].partition.n_parts == 4  # missing, -inf, the others, inf
    np.testing.assert_array_equal(encoder.transform(X), expected.transform(finite.to_frame()))
    with pytest.raises(ValueError, match="Column 'x' contains infinity"):
        MODLEncoder().fit(X, y)


def test_infinite_numbers_are_refused_where_they_have_no_place():
    frame, _, y = infinite_numbers(300)
    with pytest.raises(ValueError, match="contains infinity"):
        MODLEncoder().fit(frame, y)
    finite = frame["x"].clip(-9, 9)
    encoder = MODLEncoder().fit(frame.assign(x=finite), y)
    with pytest.raises(ValueError, match="contains infinity"):
        encoder.transform(frame)
    with pytest.raises(ValueError, match="not supported with handle_unknown='similar'"):
        MODLEncoder(handle_infinite="extreme", handle_unknown="similar").fit(frame, y)
