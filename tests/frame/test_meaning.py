"""What a column or a target means is the same in every library: booleans, columns without a value, whole numbers."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from tabsym import (
    AugmentedModel,
    CrossFit,
    JitterTreeClassifier,
    MODLEncoder,
    OneHotEncoder,
    SelectiveNaiveBayesClassifier,
    TIWSEncoder,
    WideBoostClassifier,
    WideClassifier,
    WideEncoder,
    WideSGDClassifier,
)
from tabsym.frame.meaning import (
    check_later_cells,
    is_code,
    kind_of_whole_numbers,
    looks_like_dates,
    looks_like_times,
    whole_values,
)
from tabsym.integrations import load_adapter
from tests.options import GLM

N = 160
RNG = np.random.default_rng(0)
FLAG = RNG.random(N) < 0.5
MISSING = RNG.random(N) < 0.2
Y = (FLAG ^ (RNG.random(N) < 0.2)).astype(int)
OTHER = RNG.choice(list("uvw"), N)


def objects(values, missing):
    out = np.array(values, dtype=object)
    out[missing] = None
    return out


COLUMNS = {
    "objects": lambda v, m: pd.DataFrame({"f": objects(v, m), "o": OTHER[: len(v)]}),
    "objects with NaN": lambda v, m: pd.DataFrame(
        {"f": pd.Series(objects(v, m)).where(~m, np.nan), "o": OTHER[: len(v)]}
    ),
    "nullable": lambda v, m: pd.DataFrame({"f": pd.array(objects(v, m), dtype="boolean"), "o": OTHER[: len(v)]}),
    "arrow in pandas": lambda v, m: pd.DataFrame(
        {"f": pd.Series(objects(v, m), dtype="bool[pyarrow]"), "o": OTHER[: len(v)]}
    ),
    "polars": lambda v, m: pl.DataFrame(
        {"f": pl.Series(objects(v, m).tolist(), dtype=pl.Boolean), "o": OTHER[: len(v)]}
    ),
    "arrow": lambda v, m: pa.table({"f": pa.array(objects(v, m).tolist(), pa.bool_()), "o": OTHER[: len(v)]}),
}
NONE = np.zeros(N, dtype=bool)
ENCODERS = {
    "onehot": OneHotEncoder(),
    "tiws": TIWSEncoder(),
    "wide": WideEncoder(random_state=0),
    "modl": MODLEncoder(output="probability"),
    "modl of categories": MODLEncoder(output="onehot", numeric="passthrough"),
    "crossfit": CrossFit(WideEncoder(random_state=0)),
}


def as_numbers(out):
    frame = out.to_pandas() if not isinstance(out, pd.DataFrame) else out
    return list(frame), frame.to_numpy(dtype=object, na_value=None)


def same(a, b):
    assert a[0] == b[0]
    np.testing.assert_array_equal(a[1].astype(str), b[1].astype(str))


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", ENCODERS)
def test_booleans_with_missing_values_are_categories_in_every_library(name, kind):
    whole, encoder = COLUMNS["objects"](FLAG, MISSING), ENCODERS[name]
    wanted, truth = clone(encoder).fit(whole, Y), clone(encoder).fit_transform(whole, Y)
    names = list(truth)
    assert "f" not in names or truth["f"].to_numpy().dtype == np.float64
    table = COLUMNS[kind](FLAG, MISSING)
    fitted = clone(encoder)
    same(as_numbers(fitted.fit_transform(table, Y)), as_numbers(truth))
    for new, missing in ((FLAG[::-1], NONE), (FLAG, MISSING), (FLAG, ~NONE)):  # none missing, some, all
        same(
            as_numbers(fitted.transform(COLUMNS[kind](new, missing))),
            as_numbers(wanted.transform(COLUMNS["objects"](new, missing))),
        )


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", ["onehot", "tiws", "wide", "modl of categories", "crossfit"])
def test_booleans_without_missing_values_pass_through(name, kind):
    fitted = clone(ENCODERS[name])
    out = fitted.fit_transform(COLUMNS[kind](FLAG, NONE), Y)
    column = out["f"].to_pylist() if isinstance(out, pa.Table) else out["f"].to_list()
    assert column == FLAG.tolist()
    later = fitted.transform(COLUMNS[kind](FLAG, MISSING))  # what fit left alone is left alone
    column = later["f"].to_pylist() if isinstance(later, pa.Table) else later["f"].to_list()
    assert [None if pd.isna(v) else v for v in column] == objects(FLAG, MISSING).tolist()


EMPTY = {
    "float": lambda n: pd.Series(np.full(n, np.nan)),
    "objects": lambda n: pd.Series([None] * n, dtype=object),
    "text": lambda n: pd.Series([None] * n, dtype="str"),
    "nullable": lambda n: pd.Series([None] * n, dtype="Int64"),
    "boolean": lambda n: pd.Series([None] * n, dtype="boolean"),
    "dates": lambda n: pd.Series([pd.NaT] * n, dtype="datetime64[ns]"),
    "category": lambda n: pd.Series([None] * n, dtype="category"),
    "null": lambda n: pd.Series([None] * n, dtype=pd.ArrowDtype(pa.null())),
    "polars null": lambda n: pl.Series([None] * n, dtype=pl.Null),
    "polars float": lambda n: pl.Series([None] * n, dtype=pl.Float64),
    "polars text": lambda n: pl.Series([None] * n, dtype=pl.String),
}
FULL = {
    "text": lambda n: pd.Series(RNG.choice(list("ab"), n)),
    "numbers": lambda n: pd.Series(RNG.normal(size=n)),
    "integers": lambda n: pd.Series(RNG.integers(0, 5, n)),
    "booleans": lambda n: pd.Series(RNG.random(n) < 0.5),
    "dates": lambda n: pd.Series(pd.date_range("2020", periods=n)),
    "polars text": lambda n: pl.Series(RNG.choice(list("ab"), n)),
    "polars numbers": lambda n: pl.Series(RNG.normal(size=n)),
}
SMALL = {"random_state": 0, "n_jobs": 1}
MODELS = {
    "onehot": OneHotEncoder(),
    "sparse": OneHotEncoder(sparse_output=True, cols="all"),
    "tiws": TIWSEncoder(),
    "wide encoder": WideEncoder(random_state=0),
    "modl": MODLEncoder(output="probability"),
    "wide": WideSGDClassifier(random_state=0),
    "wide of one": WideSGDClassifier(random_state=0, categorical_features=["o"]),
    "solved": WideClassifier(count_effect=False),
    "intervals": WideClassifier(**GLM | {"numeric": "modl"}),
    "stack": WideBoostClassifier(cv=3, early_stopping=False, mode="margin", random_state=0),
    "tree": JitterTreeClassifier(random_state=0),
    "naive bayes": SelectiveNaiveBayesClassifier(),
    "lightgbm": load_adapter("lightgbm").native("binary", **SMALL).set_params(booster__n_estimators=3),
}


def table_of(column):
    return (
        pl.DataFrame({"s": column, "o": OTHER})
        if isinstance(column, pl.Series)
        else pd.DataFrame({"s": column, "o": OTHER})
    )


def answer(model, table):
    return model.predict_proba(table) if hasattr(model, "predict_proba") else model.transform(table)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.slow
def test_a_column_without_a_value_in_fit_has_no_type(name):
    for empty in list(EMPTY.values())[list(MODELS).index(name) % 4 :: 4]:  # which all models read by the same code
        fitted = clone(MODELS[name]).fit(table_of(empty(N)), Y)
        first = None
        for later in (*EMPTY.values(), *FULL.values()):
            out = answer(fitted, table_of(later(N)))
            assert out.shape[0] == N
            if hasattr(fitted, "predict_proba"):
                first = out if first is None else first
                assert np.isfinite(out).all() and np.abs(out - first).max() < 0.4


@pytest.mark.parametrize("name", MODELS)
def test_a_column_that_had_a_type_may_be_empty_later(name):
    for kind, full in list(FULL.items())[list(MODELS).index(name) % 2 :: 2]:
        if name == "wide of one" and "text" in kind:
            continue  # which is refused: categories that are not in categorical_features
        fitted = clone(MODELS[name]).fit(table_of(full(N)), Y)
        for later in EMPTY.values():
            out = answer(fitted, table_of(later(N)))
            assert out.shape[0] == N
            assert not hasattr(fitted, "predict_proba") or np.isfinite(out).all()


def test_a_piece_without_a_value_says_nothing_of_later_pieces():
    first, later = table_of(EMPTY["float"](N)), table_of(FULL["numbers"](N))
    for model in (WideSGDClassifier(random_state=0), MODLEncoder(), TIWSEncoder()):
        model.partial_fit(first, Y).partial_fit(later, Y)
        assert len(model.transform(later) if hasattr(model, "transform") else model.predict(later)) == N
    modl = MODLEncoder().partial_fit(first, Y).partial_fit(later, Y)
    assert hasattr(modl.partitions_["s"], "bounds")


TARGETS = {
    "numpy": lambda b: b,
    "list": lambda b: b.tolist(),
    "objects": lambda b: b.astype(object),
    "series of objects": lambda b: pd.Series(b.astype(object)),
    "nullable": lambda b: pd.Series(b, dtype="boolean"),
    "category": lambda b: pd.Series(b).astype("category"),
    "category of objects": lambda b: pd.Series(b.astype(object)).astype("category"),
    "arrow in pandas": lambda b: pd.Series(b, dtype="bool[pyarrow]"),
    "extension array": lambda b: pd.array(b, dtype="boolean"),
    "polars": pl.Series,
    "arrow": pa.array,
    "chunked": lambda b: pa.chunked_array([b]),
    "dictionary": lambda b: pa.chunked_array([pa.array(b).dictionary_encode()]),
}
CLASSIFIERS = {
    **{name: MODELS[name] for name in ("wide", "solved", "stack", "tree", "lightgbm")},
    "xgboost": load_adapter("xgboost").native("binary", **SMALL).set_params(booster__n_estimators=3),
    "catboost": load_adapter("catboost").native("binary", **SMALL).set_params(booster__n_estimators=3),
    "augmented": AugmentedModel(HistGradientBoostingClassifier(max_iter=3)),
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_boolean_targets_come_back_as_booleans(name, kind):
    table = pd.DataFrame({"o": np.where(Y == 1, "p", OTHER), "n": RNG.normal(size=N)})
    y = TARGETS[kind](Y == 1)
    fitted = clone(CLASSIFIERS[name]).fit(table, y)
    found = fitted.predict(table)
    assert found.dtype == bool and fitted.classes_.tolist() == [False, True] and fitted.classes_.dtype == bool
    assert fitted.score(table, y) == np.mean(found == (Y == 1))


WHOLE = {
    "objects": lambda y: y.astype(object),
    "nullable": lambda y: pd.Series(y, dtype="Int64"),
    "decimals": lambda y: pd.Series([Decimal(int(one)) for one in y], dtype=object),
    "decimals of arrow": lambda y: pa.chunked_array([pa.array([Decimal(int(one)) for one in y], pa.decimal128(5, 2))]),
    "dictionary of arrow": lambda y: pa.chunked_array([pa.array(y).dictionary_encode()]),
    "decimals of polars": lambda y: pl.Series(y).cast(pl.Decimal(5, 2)),
    "wide integers": lambda y: pl.Series(y, dtype=pl.Int128),
    "big-endian": lambda y: y.astype(">i8"),
}


@pytest.mark.parametrize("kind", WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_whole_numbers_as_objects_are_whole_numbers(name, kind):
    table = pd.DataFrame({"o": np.where(Y == 1, "p", OTHER), "n": RNG.normal(size=N)})
    fitted = clone(CLASSIFIERS[name]).fit(table, kind(Y))
    found = fitted.predict(table)
    assert found.dtype.kind == "i"
    assert fitted.score(table, kind(Y)) == np.mean(found == Y)


LABELS = {
    "text of any length": np.array(["no", "yes"], dtype=np.dtypes.StringDType()),
    "surrogates": np.array(["\ud800", "yes"], dtype=object),
    "halves": np.array([0, 1], dtype=np.float16),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", ["wide", "solved", "stack", "tree", "augmented", "naive bayes"])
def test_labels_of_rare_types_are_labels(name, labels):
    table = pd.DataFrame({"o": np.where(Y == 1, "p", OTHER), "n": RNG.normal(size=N)})
    model = (CLASSIFIERS | {"naive bayes": MODELS["naive bayes"]})[name]
    order = np.argsort(labels.astype(object))  # of the classes
    wanted = clone(model).fit(table, order[Y]).predict_proba(table)
    fitted = clone(model).fit(table, labels[Y])
    assert fitted.classes_.tolist() == labels.astype(object)[order].tolist()
    np.testing.assert_array_equal(fitted.predict_proba(table), wanted)
    assert fitted.score(table, labels[Y]) == np.mean(wanted.argmax(axis=1) == order[Y])


def test_tuples_are_no_labels():
    with pytest.raises(TypeError, match=r"The target holds nested values such as \('a', 1\)"):
        WideClassifier().fit(table_of(FULL["integers"](N)), pd.Series([("a", 1), ("b", 2)] * (N // 2)))


@pytest.mark.parametrize(("n_rows", "is_one"), [(49, False), (50, True)])
def test_numbers_are_codes_from_fifty_rows_on(n_rows, is_one):
    rng = np.random.default_rng(0)
    ids, effects = rng.choice(1_000_000, 20, replace=False), 10.0 * rng.normal(size=20)
    row = np.arange(n_rows) % 20  # each number comes twice
    assert is_code("x", ids[row].astype(float), effects[row] + 0.1 * rng.normal(size=n_rows)) is is_one


# -- whole numbers: codes, classes, counts and ratings -----------------------------------------------


def told_by_codes(distinct, times, seed=0):
    """Numbers, each so many times, with targets that differ by number, and of neighbours no less than of others."""
    rng = np.random.default_rng(seed)
    values = np.repeat(np.asarray(distinct, dtype=float), times)
    effects = np.resize([1.0, -1.0], len(distinct))
    return values, np.repeat(effects, times) + 0.01 * rng.normal(size=len(values))


def spread(n, low, high):
    """So many whole numbers from `low` to `high`, the others in between."""
    return [low, *range(low + 1, low + n - 1), high]


CODES = {
    "twenty numbers": (spread(20, 0, 1000), 3, True),
    "nineteen numbers": (spread(19, 0, 1000), 3, False),
    "each twice": (spread(40, 0, 1000), 2, True),
    "most of them once": (spread(41, 0, 1000), [2] * 40 + [1], False),
    "fifty rows": (spread(20, 0, 1000), [3] * 10 + [2] * 10, True),
    "forty-nine rows": (spread(20, 0, 1000), [3] * 9 + [2] * 11, False),
    "from a thousand on": (spread(20, 500, 1000), 3, True),
    "below a thousand": (spread(20, 500, 999), 3, False),
    "one in more than twenty": (spread(20, 1000, 1401), 3, True),
    "one in twenty": (spread(20, 1000, 1400), 3, False),
    "from 0 on": (spread(25, 0, 2000), 3, True),
    "below 0": (spread(25, -1, 2000), 3, False),
    "nineteen that repeat": (spread(20, 0, 1000), [3] * 19 + [1], False),
    "fractions": ([*spread(24, 0, 2000), 2000.5], 3, False),
}


@pytest.mark.parametrize("kind", CODES)
def test_sparse_numbers_that_repeat_and_have_no_order_are_codes(kind):
    distinct, times, wanted = CODES[kind]
    values, target = told_by_codes(distinct, times)
    assert is_code("size", values, target) == wanted
    noise = np.random.default_rng(0).normal(size=len(values))
    for factor, mean in ((1000.0, 0.0), (0.001, 0.0), (1.0, 100.0)):  # in other units
        assert is_code("size", values, mean + factor * target) == wanted
        assert not is_code("size", values, mean + factor * np.sort(noise))  # which the numbers rise with
        assert not is_code("size", values, mean + factor * noise)  # of which they tell nothing


def test_neighbours_may_be_alike_by_chance():
    values = np.repeat(np.array(spread(20, 0, 1000), dtype=float), 3)
    assert is_code("size", values, np.repeat(np.resize([1.0, 1.0, -1.0, -1.0], 20), 3))  # one more pair than not
    assert not is_code("size", values, np.repeat(np.resize([1.0] * 5 + [-1.0] * 5, 20), 3))  # 16 of 19 pairs


def test_numbers_seen_once_say_nothing_of_an_order():
    """Their mean is one row's: neither what neighbours have in common, nor whether values differ, is told by them."""
    values, times = np.array(spread(60, 0, 2000), dtype=float), np.resize([5, 1, 1], 60)
    rows = np.repeat(values, times)
    like_neighbours = np.resize([1.0, 1.0, -1.0, -1.0, -1.0, 1.0], 60)  # numbers seen five times alternate
    assert is_code("size", rows, np.repeat(like_neighbours, times))
    halves = np.resize([1.0] * 30 + [-1.0] * 30, 60)
    alternating = np.where(times == 1, np.resize([1.0, -1.0], 60), halves)  # those seen five times fall once
    assert not is_code("size", rows, np.repeat(alternating, times))
    noise = np.random.default_rng(0).normal(size=60)
    alone = np.where(times == 1, 10.0 * np.resize([1.0, 1.0, -1.0], 60), 0.1 * noise)  # only those seen once differ
    assert not is_code("size", rows, np.repeat(alone, times))


def test_numbers_with_a_fraction_or_an_infinite_one_are_not_whole():
    for values in ([0.5, 1.0], [1.0, np.inf], [np.nan], []):
        assert whole_values(np.array(values)).tolist() == []
    assert whole_values(np.array([3.0, np.nan, -2.0])).tolist() == [3.0, -2.0]


def test_missing_numbers_are_rows_and_no_repetitions():
    values, target = told_by_codes(spread(20, 0, 1000), [3] * 9 + [2] * 11)
    with_missing = np.append(values, [np.nan])
    assert is_code("size", with_missing, np.append(target, 0.0))  # of 50 rows
    values, target = told_by_codes(spread(41, 0, 1000), [2] * 40 + [1])
    assert not is_code("size", np.append(values, [np.nan] * 9), np.append(target, np.zeros(9)))


@pytest.mark.parametrize(
    ("name", "distinct", "wanted"),
    [
        ("zip", [0, 1, 2], True),
        ("zip", [0, 1], False),
        ("zip", [-1, 1, 2], False),
        ("zip", [0.5, 1, 2], False),
        ("customerId", [0, 1, 2], True),
        ("customer_id", [0, 1, 2], True),
        ("idea", [0, 1, 2], False),
        ("paid", [0, 1, 2], False),
    ],
)
def test_names_of_codes_need_three_numbers(name, distinct, wanted):
    assert is_code(name, np.array(distinct, dtype=float), np.zeros(len(distinct))) == wanted


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        ({0: 5, 1: 5}, "classes"),  # two values
        (dict.fromkeys(range(1, 21), 5), "classes"),  # as often as each other
        (dict.fromkeys(range(1, 22), 5), "amounts"),
        ({0: 400, 1: 200, 2: 100, 3: 40}, "counts"),
        ({1: 400, 2: 200, 3: 100, 4: 40}, "ratings"),  # not from 0 on
        ({0: 100, 1: 400, 2: 200, 3: 40}, "counts"),  # most often 1
        ({0: 100, 1: 200, 2: 400, 3: 40}, "ratings"),  # most often 2
        ({0: 400, 1: 100, 2: 200, 3: 40}, "classes"),  # down, up and down
        ({0: 400, 1: 300, 2: 250, 3: 200}, "counts"),  # the last half as often as the first
        ({0: 400, 1: 300, 2: 250, 3: 201}, "ratings"),
        ({0: 400, 1: 200, 2: 100}, "counts"),  # three values, each at most half as frequent
        ({0: 400, 1: 201, 2: 100}, "classes"),
        ({0: 400, 1: 200, 2: 101}, "classes"),
        ({1: 100, 2: 400, 3: 200, 4: 100}, "ratings"),
        ({1: 400, 2: 100, 3: 50, 4: 400}, "ratings"),  # down and up
        ({1: 100, 2: 400, 3: 50, 4: 400}, "classes"),
        ({1: 100, 2: 400, 4: 200, 5: 100}, "classes"),  # none of 3
        ({1: 100, 2: 400, 3: 100}, "classes"),  # three values
        ({1: 400, 2: 100, 3: 129, 4: 30}, "ratings"),  # 3 is above 2 by 29 of sqrt(229) = 15.1, less than two of them
        ({1: 400, 2: 100, 3: 133, 4: 30}, "classes"),  # by 33, more than two of sqrt(233) = 15.3
    ],
)
def test_whole_numbers_of_a_target_are_told_by_their_frequencies(times, wanted):
    numbers = np.repeat(np.array(list(times), dtype=float), list(times.values()))
    assert kind_of_whole_numbers(numbers) == wanted
    assert kind_of_whole_numbers(np.array(list(times), dtype=float), "", np.array([*times.values()], float)) == wanted
    named = "amounts" if wanted == "amounts" else "classes"
    assert kind_of_whole_numbers(numbers, "soil_type") == named


@pytest.mark.parametrize(
    ("cells", "n_present", "end"),
    [
        (["a"], 3, "holds 'a' in 1 of its 3 cells; it counts as missing."),
        (["a", "a"], 5, "holds 'a' in 2 of its 5 cells; they count as missing."),
        (list("abcde"), 11, "holds 'a', 'b', 'c', 'd', 'e' in 5 of its 11 cells; they count as missing."),
        (list("abcdef"), 13, "holds 'a', 'b', 'c', 'd', 'e' and 1 more in 6 of its 13 cells; they count as missing."),
        ([np.float64(1.5), np.str_("b")], 5, "holds 1.5, 'b' in 2 of its 5 cells; they count as missing."),
    ],
)
def test_later_cells_that_are_none_are_told_and_counted(cells, n_present, end):
    with pytest.warns(UserWarning, match=f"^Column 'x' held numbers in training and now {re.escape(end)}$"):
        check_later_cells("x", cells, n_present, "numbers")


def test_half_of_the_later_cells_is_another_column(recwarn):
    for cells, n_present in ((["a"], 2), (["a"], 1), (["a", "b"], 3)):
        with pytest.raises(ValueError, match=f"in {len(cells)} of its {n_present} cells?; pass the column that the mo"):
            check_later_cells("x", cells, n_present, "numbers")
    check_later_cells("x", [], 0, "numbers")
    assert not recwarn


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["3.4.2024"] * 51 + ["3.4.24"] * 49, True),  # most have a year
        (["3.4.2024"] * 50 + ["3.4.24"] * 50, False),
        (["3.4.2024"] * 95 + ["soon"] * 5, True),
        (["3.4.2024"] * 94 + ["soon"] * 6, False),
        (["3.4.2024"] * 19 + ["n/a", " ", None] * 9 + ["soon"], True),  # of those that are there
        (["3.4.2024"] * 200 + ["soon"] * 200, True),  # the first two hundred
        (["soon"] + ["3.4.2024"] * 18 + ["soon"] * 400, False),
        (["n/a", None], False),
        ([], False),
    ],
)
def test_text_looks_like_dates_by_its_beginnings_and_years(cells, wanted):
    assert looks_like_dates(pd.Series(cells, dtype="str")) is wanted


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["9:45", "09:45:30", "9:45 PM", "120:15", "9:45:30.25am"], True),
        (["9:45"] * 95 + ["noon"] * 5, True),
        (["9:45"] * 94 + ["noon"] * 6, False),
        (["9:45"] * 19 + ["n/a", None] * 9 + ["noon"], True),
        (["9:45"] * 200 + ["noon"] * 200, True),
        (["at 9:45"], False),
        (["n/a", None], False),
        ([], False),
    ],
)
def test_text_looks_like_times_of_day(cells, wanted):
    assert looks_like_times(pd.Series(cells, dtype="str")) is wanted
