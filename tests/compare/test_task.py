"""Which task a target's values lead to, what is said about it, and what is refused."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabsym.compare.table.prepare import TASKS, prepare, read_target


def repeated(frequencies):
    """Value -> frequency, as a shuffled series."""
    values = np.repeat(list(frequencies), list(frequencies.values()))
    return pd.Series(np.random.default_rng(0).permutation(values))


def guess(values, name="y"):
    return read_target(pd.Series(values), name, None)


def sentence(error):
    """The message, checked to be one a user can read."""
    text = str(error.value)
    assert text.endswith(".")
    assert "np." not in text
    assert "Traceback" not in text
    return text


TWO = {
    "text": ["no", "yes", "no"],
    "numbers": [0, 1, 1],
    "one and two": [2, 1, 1],
    "floats": [0.0, 1.0, 1.0],
    "negative": [-1, 1, 1],
    "fractions": [0.5, 1.5, 0.5],
    "booleans": [True, False, True],
    "nullable booleans": pd.array([True, False, True], dtype="boolean"),
    "categories": pd.Categorical(["a", "b", "a"], categories=["z", "b", "a"]),
}


@pytest.mark.parametrize("values", TWO.values(), ids=TWO)
def test_two_values_are_two_classes(values):
    target = guess(values)
    assert target.task == "binary"
    assert len(target.classes) == 2
    assert target.classes[target.y].tolist() == pd.Series(values).tolist()  # codes lead back to the user's values
    for value in pd.Series(values).unique():
        assert str(value) in target.reading


def test_the_second_of_two_classes_is_the_larger_value():
    assert guess([1, 0, 1]).y.tolist() == [1, 0, 1]
    assert guess([False, True]).y.tolist() == [0, 1]
    assert guess(["no", "yes", "no"]).y.tolist() == [0, 1, 0]


COUNTS = {
    "claims": {0: 6000, 1: 900, 2: 150, 3: 30, 4: 6, 5: 2},
    "a gap": {0: 6000, 1: 900, 2: 150, 3: 30, 5: 2},
    "one is most frequent": {0: 300, 1: 370, 2: 180, 3: 60, 4: 15, 5: 3},
    "three values": {0: 6000, 1: 400, 2: 20},
    "poisson": dict(enumerate(np.bincount(np.random.default_rng(3).poisson(0.7, 5000)).tolist())),
}


@pytest.mark.parametrize("frequencies", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "uint8"])
def test_small_whole_numbers_that_get_rarer_are_counts(frequencies, dtype):
    target = guess(repeated(frequencies).astype(dtype))
    assert target.task == "count"
    assert target.y.dtype == np.float64
    assert f"from 0 to {max(frequencies)}" in target.reading
    assert "--task regression" in target.reading
    assert "--task multiclass" in target.reading


RATINGS = {
    "stars": {1: 50, 2: 80, 3: 200, 4: 400, 5: 350},
    "ever more": {1: 20, 2: 60, 3: 150, 4: 300, 5: 700},
    "one to ten": {1: 20, 2: 40, 3: 80, 4: 150, 5: 300, 6: 500, 7: 600, 8: 400, 9: 150, 10: 60},
    "wine": {3: 20, 4: 163, 5: 1457, 6: 2198, 7: 880, 8: 175, 9: 5},
    "either end": {1: 400, 2: 100, 3: 50, 4: 120, 5: 500},
}


@pytest.mark.parametrize("frequencies", RATINGS.values(), ids=RATINGS)
def test_whole_numbers_in_a_row_whose_frequencies_turn_once_are_ratings(frequencies):
    target = guess(repeated(frequencies))
    assert target.task == "regression"
    assert f"from {min(frequencies)} to {max(frequencies)}" in target.reading
    assert "--task multiclass" in target.reading
    assert "--task count" in target.reading


CODES = {
    "three balanced": {0: 50, 1: 50, 2: 50},
    "three unbalanced": {1: 100, 2: 400, 3: 200},
    "up and down": {1: 2000, 2: 2800, 3: 350, 4: 30, 5: 100, 6: 200, 7: 150},
    "two turns": {1: 100, 2: 400, 3: 100, 4: 400},
    "three that fall slowly": {0: 400, 1: 300, 2: 150},
    "zigzag": {0: 500, 1: 100, 2: 500, 3: 100, 4: 500, 5: 100},
    "balanced digits": dict.fromkeys(range(10), 180),
    "gaps": {10: 300, 20: 200, 30: 100, 40: 50},
    "negative": {-1: 100, 0: 100, 1: 100},
    "far apart": {0: 30, 5: 30, 10**12: 30},
}


@pytest.mark.parametrize("frequencies", CODES.values(), ids=CODES)
def test_other_few_whole_numbers_name_classes(frequencies):
    target = guess(repeated(frequencies))
    assert target.task == "multiclass"
    assert target.classes.tolist() == sorted(frequencies)
    assert f"from {min(frequencies)} to {max(frequencies)}" in target.reading
    assert "--task regression" in target.reading


@pytest.mark.parametrize("name", ["class", "Cover_Type", "species", "label", "wine category", "CLUSTER"])
@pytest.mark.parametrize("frequencies", [COUNTS["claims"], RATINGS["stars"]], ids=["counts", "ratings"])
def test_a_name_that_speaks_of_classes_decides(name, frequencies):
    assert guess(repeated(frequencies), name).task == "multiclass"


@pytest.mark.parametrize("name", ["claims", "rating", "quality", "y", "n"])
def test_other_names_do_not(name):
    assert guess(repeated(COUNTS["claims"]), name).task == "count"
    assert guess(repeated(RATINGS["stars"]), name).task == "regression"


def test_a_name_that_is_a_number():
    assert guess(repeated(RATINGS["stars"]), 5).task == "regression"


def test_more_than_twenty_whole_numbers_are_amounts():
    values = np.arange(21).repeat(4)
    target = guess(values)
    assert target.task == "regression"
    assert "21" in target.reading
    assert "--task count" in target.reading
    assert guess(values - 5).task == "regression"
    assert "count" not in guess(values - 5).reading  # counts are not below 0
    assert guess(np.arange(20).repeat(4)).task != "regression"  # as frequent, twenty of them


@pytest.mark.parametrize("values", [[1.5, 2.5, 3.5, 1.5], [0.1, 0.2, 0.3, 1e9]])
def test_fractions_are_amounts_however_few(values):
    target = guess(values)
    assert target.task == "regression"
    assert target.y.tolist() == values


def test_fractions_are_amounts_and_large_numbers_too():
    values = np.random.default_rng(0).lognormal(8, 2, 500)
    target = guess(values)
    assert target.task == "regression"
    np.testing.assert_array_equal(target.y, values)
    assert "500" in target.reading


def test_text_is_classes():
    target = guess(["b", "a", "c", "b"])
    assert target.task == "multiclass"
    assert target.classes.tolist() == ["a", "b", "c"]
    assert target.y.tolist() == [1, 0, 2, 1]
    assert "3" in target.reading


@pytest.mark.parametrize("ordered", [True, False])
def test_categories_are_classes_in_the_order_of_text_and_lose_those_that_never_occur(ordered):
    """A text file of the same cells has no other order: the second class is the positive one in both."""
    target = guess(pd.Categorical(["low", "high", "mid"], categories=["none", "low", "mid", "high"], ordered=ordered))
    assert target.task == "multiclass"
    assert target.classes[target.y].tolist() == ["low", "high", "mid"]
    assert target.classes.tolist() == ["high", "low", "mid"]


@pytest.mark.parametrize("values", [[0, 1, 1, 0], [1.0, 2.0, 2.0], [0.5, 1.0, 1.5, 0.5]])
def test_few_numbers_can_be_taken_otherwise_and_the_sentence_says_how(values):
    """Claims of 0 and 1 can be counts, half stars can name classes."""
    target = guess(values)
    assert "--task" in target.reading


def test_numbers_kept_as_objects_are_numbers():
    """A column of objects that are all numbers, such as what is left after missing values were dropped."""
    target = guess(pd.Series([1.5, 2, 3.25, None, 1.5], dtype=object).dropna())
    assert target.task == "regression"
    assert "not numbers" not in target.reading


@pytest.mark.parametrize(
    ("values", "classes"), [([True, False, None, True], [False, True]), (["a", None, "b"], ["a", "b"])]
)
def test_classes_whose_missing_values_were_left_out(values, classes):
    target = guess(pd.Series(values, dtype=object).dropna())
    assert target.task == "binary"
    assert target.classes.tolist() == classes


def test_booleans_whose_missing_values_were_left_out_can_be_numbers():
    target = read_target(pd.Series([True, False, None, True], dtype=object).dropna(), "y", "regression")
    assert target.y.tolist() == [1.0, 0.0, 1.0]


ASKED = [
    ("binary", [0, 1, 0]),
    ("binary", ["a", "b"]),
    ("binary", [True, False]),
    ("multiclass", [0, 1, 2, 1, 0]),
    ("multiclass", ["a", "b", "c"]),
    ("multiclass", [0.5, 1.0, 1.5, 0.5, 0.5, 1.0]),
    ("regression", [0, 1, 0]),
    ("regression", [True, False]),
    ("regression", [0, 1, 2, -5]),
    ("count", [0, 1]),
    ("count", [0, 1, 100, 20_000]),
    ("count", [True, False]),
]


@pytest.mark.parametrize(("task", "values"), ASKED)
def test_a_task_that_is_asked_for_is_taken(task, values):
    target = read_target(pd.Series(values), "sales", task)
    assert target.task == task
    assert "'sales'" in target.reading
    assert repr(task) in target.reading
    if task in ("binary", "multiclass"):
        assert target.classes[target.y].tolist() == values
    else:
        assert target.y.dtype == np.float64
        assert target.y.tolist() == [float(value) for value in values]


REFUSED = [
    ("binary", ["a", "b", "c"], "3"),
    ("binary", [1, 2, 3], "3"),
    ("multiclass", ["a", "b", "a"], "binary"),
    ("multiclass", [0, 1], "binary"),
    ("multiclass", list(range(100)), "regression"),
    ("multiclass", np.linspace(0, 1, 60).tolist(), "regression"),
    ("multiclass", [f"name {k}" for k in range(100)], "100"),
    ("regression", ["a", "b", "c"], "'a'"),
    ("regression", ["1.5", "2.5", "n/a", "3"], "'n/a' in row 2"),
    ("count", ["1", "2", "3", "many"], "'many' in row 3"),
    ("count", [0, 1, -2], "-2"),
    ("count", [-0.5, 1.0, 3.0], "-0.5"),
    ("regression", [1.0, 2.0, np.inf], "infinite"),
    ("regression", [1.0, 2.0, -np.inf], "infinite"),
    ("count", [1.0, 2.0, np.inf], "infinite"),
    ("ordinal", [1, 2, 3], "'ordinal'"),
    ("Binary", [0, 1], "'Binary'"),
]


@pytest.mark.parametrize(("task", "values", "says"), REFUSED)
def test_a_task_that_does_not_fit_is_refused_in_a_sentence(task, values, says):
    with pytest.raises(ValueError) as error:
        read_target(pd.Series(values), "sales", task)
    assert says in sentence(error)


def test_an_unknown_task_is_answered_with_those_there_are():
    with pytest.raises(ValueError) as error:
        read_target(pd.Series([1, 2, 3]), "y", "survival")
    assert all(repr(task) in sentence(error) for task in TASKS)


@pytest.mark.parametrize("values", [[3, 3], [3.0], ["a", "a", "a"], [True, True], [np.inf, np.inf]])
@pytest.mark.parametrize("task", [None, "binary", "multiclass", "regression", "count"])
def test_one_value_is_refused(values, task):
    with pytest.raises(ValueError, match="one value") as error:
        read_target(pd.Series(values), "y", task)
    assert f"({values[0]!r})" in sentence(error)


@pytest.mark.parametrize("dtype", ["float64", "str", object])
def test_no_rows_are_refused(dtype):
    with pytest.raises(ValueError, match="'y'") as error:
        read_target(pd.Series([], dtype=dtype), "y", None)
    sentence(error)


@pytest.mark.parametrize("values", [[1.5, 2.5, np.inf], [0.0, 1.0, -np.inf], [0.0, np.inf], [1.0, 2.0, 3.0, np.inf]])
def test_an_infinite_number_is_refused_and_never_a_class(values):
    with pytest.raises(ValueError, match="infinite") as error:
        guess(values)
    sentence(error)


def test_text_of_too_many_values_names_one_that_is_no_number():
    values = [f"{k / 7:.3f}" for k in range(300)]
    values[123] = "unknown"
    with pytest.raises(ValueError, match="too many") as error:
        guess(pd.Series(values, index=range(1000, 1300)))
    assert "'unknown' in row 1123" in sentence(error)


def test_text_of_as_many_values_as_a_class_may_have():
    values = [f"class {k}" for k in range(30)] * 10
    assert guess(values).task == "multiclass"  # 30 in 300 rows
    with pytest.raises(ValueError, match="too many"):
        guess(values[:290])
    assert len(guess([f"class {k}" for k in range(20)]).classes) == 20  # twenty are never too many


values = st.one_of(
    st.lists(st.integers(-3, 12), min_size=1, max_size=60),
    st.lists(st.sampled_from(["a", "b", "c", "1"]), min_size=1, max_size=30),
    st.lists(st.booleans(), min_size=1, max_size=10),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
)


@settings(max_examples=60, deadline=None)
@given(values, st.sampled_from([None, *TASKS]))
def test_a_target_is_taken_or_refused_in_a_sentence(values, task):
    series = pd.Series(values)
    try:
        target = read_target(series, "y", task)
    except ValueError as error:
        text = str(error)
        assert "'y'" in text
        assert text.endswith(".")
        assert "np." not in text
        assert task is not None or series.nunique() < 2  # a guess fits its own values
        return
    assert target.task in TASKS
    assert task in (None, target.task)
    assert len(target.y) == len(values)
    assert target.reading.startswith("Target 'y'")
    assert target.reading.endswith(".")
    if target.task in ("binary", "multiclass"):
        assert target.classes[target.y].tolist() == values
        assert len(target.classes) == series.nunique()
        assert (target.task == "binary") == (series.nunique() == 2)
    else:
        assert target.y.tolist() == [float(value) for value in values]
        assert target.task != "count" or target.y.min() >= 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 15), min_size=2, max_size=80).filter(lambda v: len(set(v)) > 2), st.randoms())
@pytest.mark.slow
def test_the_guess_depends_on_the_values_alone(values, random):
    """Not on their order, nor on the type they come in."""
    want = guess(values)
    other = list(values)
    random.shuffle(other)
    for series in (pd.Series(other), pd.Series(other, dtype=float), pd.Series(other, dtype="Int64")):
        assert guess(series).task == want.task
        assert guess(series).reading == want.reading


LABELS = {
    "per cent": (["10%", "20%", "10%", "40%"], ["10%", "20%", "40%"]),
    "two amounts": (["$1,000.00", "$50", "$50", "$1,000.00"], ["$50", "$1,000.00"]),
    "decimal commas": (["1,0", "2,0", "3,0", "2,0"], ["1,0", "2,0", "3,0"]),
}


@pytest.mark.parametrize("name", LABELS)
def test_classes_keep_their_text(name, tmp_path):
    cells, classes = LABELS[name]
    frame = pd.DataFrame({"x": np.arange(80) % 7, "y": cells * 20})
    frame.loc[5, "y"] = "?"
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    for table in (frame, tmp_path / "t.csv"):
        prepared = prepare(table, "y", task="binary" if len(classes) == 2 else "multiclass")
        assert prepared.classes == classes
        assert np.array(classes)[prepared.y].tolist() == [cell for cell in frame["y"] if cell != "?"]
        numbers = prepare(table, "y", task="regression")
        assert not len(numbers.target.classes)
    if len(classes) == 2:
        (line,) = [note for note in prepare(frame, "y").notes if "two values" in note]
        assert all(cell in line for cell in classes)


@pytest.mark.parametrize("cells", [["10%", "20%", "40%"], ["$10", "$20"], [f"${value}" for value in range(1000, 1040)]])
def test_advice_on_a_target_of_text_works(cells):
    frame = pd.DataFrame({"x": np.arange(len(cells) * 20) % 7, "y": cells * 20})
    (line,) = [note for note in prepare(frame, "y").notes if note.startswith("Target 'y' is read as numbers")]
    assert "--categorical" not in line
    task = re.search(r"--task (\w+)", line)
    assert (task is None) == (len(cells) > 20)
    if task:
        assert prepare(frame, "y", task=task[1]).classes == cells
