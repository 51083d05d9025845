"""The splits: every row where it belongs, nothing of the test rows in training, the same for the same seed."""

import datetime
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tabsym.compare.splits import SplitPlan, _ranks_of_moments, make_plan

HOW = ("random", "groups", "time", "column", "unseen")
TASKS = ("regression", "count", "binary", "multiclass")


def plan_of(column=None, how=None, folds=3, repeats=1, seed=0):
    """A plan by a column named c."""
    frame = pd.DataFrame({"c": [1, 2, 3] if column is None else column})
    options = {} if how is None else {{"column": "fold_column"}.get(how, how): "c"}
    return make_plan(frame, folds=folds, repeats=repeats, seed=seed, **options)


def target(n, task, seed=0):
    rng = np.random.default_rng(seed)
    if task == "binary":
        return rng.permutation(np.arange(n) % 2)
    if task == "multiclass":
        return rng.permutation(np.arange(n) % 3)
    return rng.normal(size=n) if task == "regression" else rng.poisson(1, n).astype(float)


def same(one, other):
    return all(np.array_equal(a, b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right))


def check(splits, n):
    """Rows in order, none in both parts, none elsewhere; neither part empty."""
    for train, test in splits:
        for part in (train, test):
            assert len(part)
            assert (np.diff(part) > 0).all()
            assert part[0] >= 0
            assert part[-1] < n
        assert not set(train) & set(test)


def check_each_once(splits, n):
    check(splits, n)
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(n))
    assert all(len(train) + len(test) == n for train, test in splits)


# At random.


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(0, 60), st.sampled_from(TASKS), st.integers(1, 3), st.integers(0, 10**6))
def test_random_folds_are_even_and_stratified(folds, more, task, repeats, seed):
    n = 3 * folds + more
    y = target(n, task, seed)
    splits = SplitPlan("random", None, folds, repeats, seed).splits(y, task)
    assert len(splits) == folds * repeats
    for repeat in range(repeats):
        once = splits[repeat * folds : (repeat + 1) * folds]
        check_each_once(once, n)
        sizes = [len(test) for _, test in once]
        classes = len(np.unique(y)) if task in ("binary", "multiclass") else 1
        assert max(sizes) - min(sizes) <= classes
        if classes > 1:
            for code in np.unique(y):
                held = [int((y[test] == code).sum()) for _, test in once]
                assert max(held) - min(held) <= 1


def test_repeats_differ_and_a_repeat_is_the_next_seed():
    y = target(30, "regression")
    splits = SplitPlan("random", None, 3, 2, 5).splits(y, "regression")
    assert not same(splits[:3], splits[3:])
    assert same(splits[3:], SplitPlan("random", None, 3, 1, 6).splits(y, "regression"))


@pytest.mark.parametrize("how", [None, "groups", "unseen"])
@pytest.mark.parametrize("task", TASKS)
def test_a_seed_decides(how, task):
    n = 60
    column = np.random.default_rng(0).integers(0, 20, n)
    y = target(n, task)
    once, again, other = (plan_of(column, how, seed=seed).splits(y, task) for seed in (1, 1, 2))
    assert same(once, again)
    assert not same(once, other)


@pytest.mark.parametrize("how", ["time", "column"])
def test_what_is_given_leaves_nothing_to_chance(how):
    column = np.random.default_rng(0).integers(0, 4, 60)
    y = target(60, "regression")
    once, other = (plan_of(column, how, seed=seed).splits(y, "regression") for seed in (1, 2))
    assert same(once, other)


def test_a_class_rarer_than_folds_is_no_warning(recwarn):
    y = np.array([0] * 20 + [1] * 20 + [2] * 2)
    splits = SplitPlan("random", None, 5, 1, 0).splits(y, "multiclass")
    check_each_once(splits, 42)
    assert not recwarn


@pytest.mark.parametrize("how", [None, "groups"])
def test_classes_that_are_all_rarer_than_folds_split_or_are_refused_in_a_sentence(how):
    y = np.arange(12) % 6
    try:
        check_each_once(plan_of(np.arange(12), how, folds=4).splits(y, "multiclass"), 12)
    except ValueError as error:
        assert str(error).endswith(".")
        assert "n_splits" not in str(error)
        assert "fold" in str(error)


@pytest.mark.parametrize(
    ("rare", "end"),
    [
        (3, "class 'no' has 3 rows and there are 5 folds; use at most 3 folds, or more rows."),
        (1, "class 'no' has 1 row and there are 5 folds; give more rows of it."),
    ],
)
def test_a_class_that_some_fold_lacks_is_named_with_what_helps(rare, end):
    y = (np.arange(40) >= rare).astype(int)
    with pytest.raises(ValueError, match="A fold contains one class only") as refusal:
        SplitPlan("random", None, 5, 1, 0).splits(y, "binary", ["no", "yes"])
    assert str(refusal.value) == f"A fold contains one class only, as {end}"
    if rare > 1:
        check_each_once(SplitPlan("random", None, rare, 1, 0).splits(y, "binary", ["no", "yes"]), 40)


# By groups, and with symbols held out.


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(["groups", "unseen"]), st.sampled_from(TASKS), st.integers(2, 5))
def test_groups_stay_together(data, how, task, folds):
    n_groups = data.draw(st.integers(folds, 12))
    codes = [*range(n_groups), *data.draw(st.lists(st.integers(0, n_groups - 1), max_size=50))]
    column = np.array([f"g{code}" for code in codes])[np.random.default_rng(0).permutation(len(codes))]
    n = len(column)
    y = target(n, task, len(codes))
    assume(task not in ("binary", "multiclass") or len(np.unique(y)) > 1)
    try:
        splits = plan_of(column, how, folds=folds).splits(y, task)
    except ValueError as error:
        assert task in ("binary", "multiclass")
        assert "class" in str(error)
        return
    assert len(splits) == folds
    check_each_once(splits, n)
    for train, test in splits:
        assert not set(column[train]) & set(column[test])


def test_groups_spread_classes():
    rng = np.random.default_rng(0)
    column = np.repeat(np.arange(60), 5)
    y = np.repeat(rng.permutation(np.arange(60) % 3 == 0), 5).astype(int)
    shares = [y[test].mean() for _, test in plan_of(column, "groups", folds=4).splits(y, "binary")]
    assert max(shares) - min(shares) < 0.15


def test_a_missing_symbol_is_one_of_its_own():
    column = pd.Series(["a", "b", None, "c", None, "a"])
    for train, test in plan_of(column, "unseen").splits(np.arange(6.0), "regression"):
        assert not {2, 4} & set(train) or not {2, 4} & set(test)


@pytest.mark.parametrize(
    "column",
    [
        ["a", "b", "c", "a"],
        [1, 2, 3, 1],
        [1.5, 2.5, 3.5, 1.5],
        pd.Categorical(["a", "b", "c", "a"], categories=["z", "c", "b", "a"]),
        pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-01"]),
        pd.array([1, 2, 3, 1], dtype="Int64"),
    ],
    ids=["text", "numbers", "fractions", "categories", "dates", "nullable"],
)
def test_groups_of_any_type(column):
    for train, test in plan_of(column, "groups").splits(np.arange(4.0), "regression"):
        assert ({0, 3} <= set(train)) or ({0, 3} <= set(test))


# By time.


def check_time(splits, moments, folds):
    """From the definition: `moments` are numbers, one per row."""
    n = len(moments)
    check(splits, n)
    assert len(splits) == folds
    for train, test in splits:
        assert moments[train].max() < moments[test].min()
        assert set(train) == set(np.flatnonzero(moments < moments[test].min()))  # the whole past
        together = np.isin(moments, moments[test])
        assert set(np.flatnonzero(together)) == set(test)  # ties are never parted
    for (before, first), (after, second) in pairwise(splits):
        assert set(after) == set(before) | set(first)  # expanding, no gap
        assert moments[first].max() < moments[second].min()
    assert moments[splits[-1][1]].max() == moments.max()


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 6))
@pytest.mark.slow
def test_training_is_what_was_before(data, folds):
    distinct = data.draw(
        st.lists(st.integers(-1000, 1000), unique=True, min_size=folds + 1, max_size=folds + 8)
    )  # ties of any size
    rows = distinct + data.draw(st.lists(st.sampled_from(distinct), max_size=80))
    moments = np.array(rows, dtype=float)
    splits = plan_of(moments, "time", folds=folds).splits(np.zeros(len(rows)), "regression")
    check_time(splits, moments, folds)


@pytest.mark.parametrize("folds", [2, 5, 9])
@pytest.mark.parametrize("n", [100, 1000])
def test_blocks_without_ties_are_about_even(folds, n):
    moments = np.random.default_rng(0).permutation(n).astype(float)
    splits = plan_of(moments, "time", folds=folds).splits(np.zeros(n), "regression")
    check_time(splits, moments, folds)
    sizes = [len(splits[0][0]), *(len(test) for _, test in splits)]
    assert max(sizes) - min(sizes) <= folds + 1


DAYS = pd.date_range("2023-11-05", periods=100, freq="D")
TIMES = {
    "datetimes": DAYS,
    "days of nanoseconds": DAYS.as_unit("ns"),
    "zone": DAYS.tz_localize("Europe/Berlin"),
    "ISO text": DAYS.strftime("%Y-%m-%d"),
    "German text": DAYS.strftime("%d.%m.%Y"),
    "American text": DAYS.strftime("%m/%d/%Y"),
    "English text": DAYS.strftime("%d/%m/%Y"),
    "text with hours": DAYS.strftime("%Y-%m-%d %H:%M"),
    "categories": pd.Categorical(DAYS.strftime("%d.%m.%Y")),
    "days of python": pd.Series(list(DAYS.date), dtype=object),
    "whole numbers": np.arange(100) * 7 - 300,
    "numbers": np.linspace(-1, 1, 100),
    "nullable": pd.array(np.arange(100), dtype="Int64"),
    "objects": pd.Series(list(range(100)), dtype=object),
    "numbers as text": np.arange(100).astype(str),
    "categories of numbers": pd.Categorical(np.arange(100) * 7),
    "summer time": DAYS.tz_localize("Europe/Berlin").strftime("%Y-%m-%dT%H:%M:%S%z"),
}


@pytest.mark.parametrize("column", TIMES.values(), ids=TIMES)
def test_moments_of_any_kind(column):
    order = np.random.default_rng(1).permutation(100)
    shuffled = pd.Series(column)[order].reset_index(drop=True)
    splits = plan_of(shuffled, "time", folds=4).splits(np.zeros(100), "regression")
    check_time(splits, order.astype(float), 4)
    assert same(splits, plan_of(order, "time", folds=4).splits(np.zeros(100), "regression"))


def test_moments_across_summer_time():
    """The same hour twice, an hour apart."""
    text = ["2024-10-27T02:30:00+02:00", "2024-10-27T02:30:00+01:00", "2024-10-27T02:10:00+01:00"]
    column = pd.to_datetime(pd.Series(text), utc=True).dt.tz_convert("Europe/Berlin")
    (first, second) = plan_of(column, "time", folds=2).splits(np.zeros(3), "regression")
    assert first[0].tolist() == [0]
    assert first[1].tolist() == [2]
    assert second[1].tolist() == [1]


# By a given column.


@pytest.mark.parametrize(
    "column",
    [
        [3, 1, 2, 1, 3, 10],
        ["c", "a", "b", "a", "c", "d"],
        [0.3, 0.1, 0.2, 0.1, 0.3, 0.4],
        pd.Categorical(["c", "a", "b", "a", "c", "d"]),
    ],
    ids=["numbers", "text", "fractions", "categories"],
)
def test_given_folds_are_taken_as_they_are(column):
    plan = plan_of(column, "column", folds=2)
    splits = plan.splits(np.arange(6.0), "regression")
    assert [test.tolist() for _, test in splits] == [[1, 3], [2], [0, 4], [5]]  # in the order of their names
    check_each_once(splits, 6)
    assert plan.folds == 4


def test_two_given_folds():
    splits = plan_of([True, False, True], "column").splits(np.arange(3.0), "regression")
    assert [test.tolist() for _, test in splits] == [[1], [0, 2]]


# Inside: the split of a fold's training rows that settings are chosen by.


def keys_for(how, n, rng):
    return None if how == "random" else np.unique(rng.integers(0, 12, n), return_inverse=True)[1]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(HOW), st.sampled_from(TASKS), st.integers(12, 80), st.integers(0, 10**6), st.integers(0, 10**6))
@pytest.mark.slow
def test_inside_splits_some_rows_in_the_same_manner(how, task, n, seed, state):
    rng = np.random.default_rng(seed)
    keys = keys_for(how, n, rng)
    y = target(n, task, seed)
    rows = np.sort(rng.choice(n, rng.integers(12, n + 1), replace=False))
    folds = 3 if keys is None or how != "column" else int(keys.max()) + 1
    plan = SplitPlan(how, "c", folds, 1, state, keys)
    train, test = plan.inside(rows, y, task)
    check([(train, test)], len(rows))  # places of rows: nothing outside can be meant
    assert len(train) + len(test) == len(rows)
    assert len(train) >= len(test) or how != "random"
    if keys is not None:
        inner = keys[rows]
        assert not set(inner[train]) & set(inner[test])
        if how == "time":
            assert inner[train].max() < inner[test].min()
    assert same([(train, test)], [plan.inside(rows, y, task)])
    elsewhere = np.setdiff1d(np.arange(n), rows)
    changed = y.copy()
    changed[elsewhere] = y[rows[0]]
    other = None if keys is None else keys.copy()
    if other is not None:
        other[elsewhere] = 0
    assert same([(train, test)], [SplitPlan(how, "c", folds, 1, state, other).inside(rows, changed, task)])


def test_inside_is_the_last_in_time():
    moments = np.arange(40)
    plan = plan_of(np.random.default_rng(0).permutation(moments), "time")
    keys = plan.keys
    rows = np.flatnonzero(keys < 20)
    _, test = plan.inside(rows, np.zeros(40), "regression")
    assert sorted(keys[rows[test]]) == list(range(20 - len(test), 20))
    assert 3 <= len(test) <= 10


@pytest.mark.parametrize("how", [how for how in HOW if how != "random"])
def test_inside_rows_of_one_moment_or_group(how):
    """The first fold in time can have trained on one moment only, the larger of two folds on one group."""
    keys = np.array([0] * 8 + [1, 2, 3])
    plan = SplitPlan(how, "c", 3, 1, 0, keys)
    train, test = plan.inside(np.arange(8), np.arange(11.0), "regression")
    check([(train, test)], 8)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("task", TASKS)
def test_inside_two_moments_or_groups(how, task):
    keys = None if how == "random" else np.array([0] * 6 + [1] * 6 + [2] * 6)
    y = np.arange(18) % 2
    train, test = SplitPlan(how, "c", 2, 1, 0, keys).inside(np.arange(12), y, task)
    check([(train, test)], 12)
    assert keys is None or len(train) == len(test) == 6


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_inside_few_rows(how, n):
    keys = None if how == "random" else np.arange(10)
    train, test = SplitPlan(how, "c", 2, 1, 0, keys).inside(np.arange(n), np.arange(10.0), "regression")
    check([(train, test)], n)


@pytest.mark.parametrize("how", ["random", "groups"])
def test_inside_classes_of_few_rows(how):
    y = np.arange(9) % 3
    train, test = SplitPlan(how, "c", 2, 1, 0, None if how == "random" else np.arange(9)).inside(
        np.arange(9), y, "multiclass"
    )
    check([(train, test)], 9)


# Refusals.


def refused(call, *says):
    with pytest.raises(ValueError) as error:
        call()
    text = str(error.value)
    assert text.endswith(".")
    assert "np." not in text
    for word in says:
        assert word in text
    return text


def test_one_way_only():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]})
    ways = ["groups", "time", "fold_column", "unseen"]
    for one in ways:
        for other in ways[ways.index(one) + 1 :]:
            refused(lambda one=one, other=other: make_plan(frame, folds=2, repeats=1, seed=0, **{one: "a", other: "b"}),
                    one, other)  # fmt: skip


@pytest.mark.parametrize("folds", [-1, 0, 1])
def test_too_few_folds(folds):
    refused(lambda: plan_of(folds=folds).splits(np.arange(3.0), "regression"), f"folds={folds}", "2")


def test_more_folds_than_rows():
    refused(lambda: plan_of(folds=4).splits(np.arange(3.0), "regression"), "folds=4", "3 rows")
    assert len(plan_of(folds=3).splits(np.arange(3.0), "regression")) == 3


@pytest.mark.parametrize("how", ["time", "column"])
def test_repeats_of_what_is_always_the_same(how):
    column = np.arange(12) % 6
    refused(lambda: plan_of(column, how, repeats=2).splits(np.arange(12.0), "regression"), "repeats=2", how)


@pytest.mark.parametrize("how", ["groups", "time", "column"])
def test_missing_values_where_rows_are_split_by(how):
    refused(
        lambda: plan_of(pd.Series(["2024-01-01", None, "2024-01-03", None]), how, folds=2), "'c'", "2 missing values"
    )


def test_too_few_groups_symbols_moments():
    column = ["a", "b", "a", "b"]
    refused(lambda: plan_of(column, "groups"), "'c'", "2 groups", "3 folds")
    refused(lambda: plan_of(column, "unseen"), "'c'", "2 categories", "3 folds")
    refused(lambda: plan_of([1, 2, 3, 3], "time"), "'c'", "3 distinct times", "3 folds")
    assert plan_of([1, 2, 3, 3], "time", folds=2).folds == 2  # the first is trained on, two are tested
    refused(lambda: plan_of([1, 1, 1], "column"), "'c'", "one value")


@pytest.mark.parametrize(
    "values", [["red", "green", "blue", "red"], ["2024-01-01", "2024-01-02", "soon", "2024-01-03"]]
)
def test_what_is_no_moment_is_shown(values):
    strange = "'soon'" if "soon" in values else "'red'"
    refused(lambda: plan_of(values, "time", folds=2), "'c'", strange)


def test_one_word_among_many_dates_is_shown():
    values = [str(day) for day in DAYS.date]
    values[40] = "unknown"
    refused(lambda: plan_of(values, "time"), "'c'", "'unknown'")


def test_one_word_or_date_among_numbers_as_text_is_shown():
    numbers = [str(number) for number in range(30)]
    refused(lambda: plan_of([*numbers, "unknown"], "time"), "'c'", "'unknown', which is neither a date nor a number")
    refused(lambda: plan_of([*numbers, "2024-01-01"], "time"), "'c'", "'0', which is a number among dates")


def test_symbols_read_as_numbers_are_refused_with_the_remedy():
    refused(lambda: plan_of([1.0, 2.0, None], "unseen", folds=2), "'c'", "--categorical c")


@pytest.mark.parametrize("how", ["groups", "unseen", "column", "time"])
def test_a_fold_of_one_class_is_refused(how):
    column = np.repeat([0, 1, 2, 3], 5)
    y = (column == 3).astype(int)
    refused(lambda: plan_of(column, how, folds=2).splits(y, "binary"), "one class")
    refused(lambda: plan_of(column, how, folds=3).splits(y, "binary"), "one class")


def test_a_fold_without_one_of_many_classes_is_fine():
    column = np.repeat([0, 1, 2, 3], 6)
    y = np.where(column == 3, 2, np.arange(24) % 2)
    check_each_once(plan_of(column, "groups", folds=4).splits(y, "multiclass"), 24)


def test_other_columns_play_no_role():
    frame = pd.DataFrame({"c": np.arange(30) % 7, "weight": np.ones(30)})
    heavy = frame.assign(weight=np.arange(30.0))
    y = target(30, "regression")
    for options in ({}, {"groups": "c"}, {"time": "c"}, {"fold_column": "c"}, {"unseen": "c"}):
        plans = [make_plan(table, folds=3, repeats=1, seed=0, **options) for table in (frame, heavy)]
        assert same(*(plan.splits(y, "regression") for plan in plans))


def test_how_a_plan_says_it_splits():
    assert plan_of().how == "random"
    got = Counter(plan_of(np.arange(9) % 4, how).how for how in ("groups", "time", "column", "unseen"))
    assert set(got) == set(HOW) - {"random"}


def test_days_of_python_as_groups():
    column = pd.Series([datetime.date(2024, 1, day) for day in (1, 2, 3, 1)], dtype=object)
    for train, test in plan_of(column, "groups").splits(np.arange(4.0), "regression"):
        assert ({0, 3} <= set(train)) or ({0, 3} <= set(test))


def test_moments_with_several_offsets_are_ordered_in_one_time():
    """Text whose order, and whose hours on the wall, say the opposite of what was first."""
    text = ["2024-05-01T12:00:00+02:00", "2024-05-01T11:00:00+00:00", "2024-05-01T09:30:00-03:00"]
    frame = pd.DataFrame({"x": range(3), "when": [text[2], text[0], text[1]]})
    assert _ranks_of_moments(frame["when"], "when").tolist() == [2, 0, 1]


def test_inside_holds_out_a_quarter():
    """Of groups one in four, of time the last of four parts."""
    keys = np.repeat(np.arange(40), 5)
    for how, column in (("groups", "g"), ("unseen", "g"), ("column", "g")):
        plan = SplitPlan(how, column, 5, 1, 0, keys)
        train, test = plan.inside(np.arange(200), np.zeros(200), "regression")
        assert len(np.unique(keys[test])) == 10 and len(train) == 150
    train, test = SplitPlan("time", "t", 5, 1, 0, np.arange(200)).inside(np.arange(200), np.zeros(200), "regression")
    assert 48 <= len(test) <= 52 and test.min() > train.max() and len(train) + len(test) == 200
