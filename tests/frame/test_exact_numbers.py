"""Numbers that float64 rounds: the encoder cuts between them as between the same numbers less 2**60, which it holds."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tabsym
from tabsym import MODLEncoder, WideClassifier, WideRegressor
from tabsym.frame import exact_number, exact_values, nanoseconds_of, read_table

HALF = 60
Y = np.repeat([0, 1], HALF)
EDGE, TOP = 2**53, 2**63
MOMENT = 1_700_000_000_123_456_789  # nanoseconds since 1970


def pandas(dtype):
    return lambda values: pd.DataFrame({"x": pd.array(values, dtype=dtype)})


def polars(dtype):
    return lambda values: pl.DataFrame({"x": pl.Series(values, dtype=dtype)})


def arrow(dtype):
    return lambda values: pa.table({"x": pa.array(values, type=dtype)})


WHOLE = {
    "int64": (EDGE, pandas("int64")),
    "int64, negative": (-EDGE - 1, pandas("int64")),
    "int64, far": (2**62 + 5, pandas("int64")),
    "uint64": (TOP + 1, pandas("uint64")),
    "Int64": (EDGE, pandas("Int64")),
    "UInt64": (TOP + 1, pandas("UInt64")),
    "pandas over arrow": (TOP + 1, pandas(pd.ArrowDtype(pa.uint64()))),
    "polars int64": (EDGE, polars(pl.Int64)),
    "polars uint64": (TOP + 1, polars(pl.UInt64)),
    "arrow int64": (-EDGE - 1, arrow(pa.int64())),
    "arrow uint64": (TOP + 1, arrow(pa.uint64())),
}
MOMENTS = {
    "datetime64[ns]": lambda values: pd.DataFrame({"x": pd.to_datetime(values)}),
    "with a zone": lambda values: pd.DataFrame({"x": pd.to_datetime(values, utc=True).tz_convert("Asia/Tokyo")}),
    "timedelta64[ns]": lambda values: pd.DataFrame({"x": pd.to_timedelta(values)}),
    "polars": lambda values: pl.DataFrame({"x": pl.Series(values).cast(pl.Datetime("ns"))}),
    "polars durations": lambda values: pl.DataFrame({"x": pl.Series(values).cast(pl.Duration("ns"))}),
    "arrow": lambda values: pa.table({"x": pa.array(values).cast(pa.timestamp("ns"))}),
    "pandas over arrow": lambda values: pd.DataFrame(
        {"x": pd.array(pd.to_datetime(values), dtype=pd.ArrowDtype(pa.timestamp("ns")))}
    ),
}


def parts(encoder, X):
    """Numbers of the parts (n,)."""
    labels = encoder.partitions_["x"].labels
    return np.array([labels.index(one) for one in encoder.transform(X)["x"].to_pylist()]) if isinstance(
        X, pa.Table
    ) else np.array([labels.index(one) for one in encoder.transform(X)["x"].to_list()])  # fmt: skip


@pytest.mark.parametrize("first, make", WHOLE.values(), ids=WHOLE)
def test_neighbouring_whole_numbers_are_told_apart(first, make):
    X = make([first] * HALF + [first + 1] * HALF)
    encoder = MODLEncoder().fit(X, Y)
    assert encoder.partitions_["x"].labels == [f"]-inf; {first}]", f"]{first}; +inf["]
    small = MODLEncoder().fit(pd.DataFrame({"x": np.repeat([0, 1], HALF)}), Y)
    assert encoder.levels_["x"] == pytest.approx(small.levels_["x"])
    np.testing.assert_array_equal(parts(encoder, X), Y)
    back = encoder.inverse_transform(encoder.transform(X))
    assert type(back) is type(X)
    if isinstance(X, pa.Table):
        assert back.equals(X)
    else:
        assert back["x"].to_list() == X["x"].to_list()
        assert back["x"].dtype == X["x"].dtype


@pytest.mark.parametrize("make", MOMENTS.values(), ids=MOMENTS)
def test_neighbouring_nanoseconds_are_told_apart(make):
    X = make([MOMENT] * HALF + [MOMENT + 1] * HALF)
    encoder = MODLEncoder().fit(X, Y)
    assert len(encoder.partitions_["x"].labels) == 2
    assert all("22:13:20.123456789" in one or "07:13:20.123456789+09:00" in one
               for one in encoder.partitions_["x"].labels)  # fmt: skip
    np.testing.assert_array_equal(parts(encoder, X), Y)
    assert parts(encoder, make([MOMENT - 1, MOMENT + 2, MOMENT - 10**9, MOMENT + 10**9])).tolist() == [0, 1, 0, 1]


RNG = np.random.default_rng(0)
OFFSETS = RNG.integers(0, 300, 900)
NOISY = ((OFFSETS > 70) & (OFFSETS <= 181)) ^ (RNG.random(900) < 0.1)
TARGETS = {"classes": NOISY.astype(int), "amounts": NOISY + RNG.normal(size=900)}
BASES = {
    "int64": (2**60, pandas("int64")),
    "uint64": (TOP + 2**62, pandas("uint64")),
    "polars": (-(2**60), polars(pl.Int64)),
    "moments": (MOMENT, MOMENTS["datetime64[ns]"]),
}


@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("base, make", BASES.values(), ids=BASES)
def test_parts_are_those_of_small_numbers(base, make, task):
    y = TARGETS[task]
    small = MODLEncoder().fit(pd.DataFrame({"x": OFFSETS}), y)
    large = MODLEncoder().fit(make([base + int(one) for one in OFFSETS]), y)
    assert len(small.partitions_["x"].labels) == len(large.partitions_["x"].labels) > 2
    assert large.costs_["x"] == small.costs_["x"]
    new = np.arange(-20, 320)
    np.testing.assert_array_equal(
        parts(large, make([base + int(one) for one in new])), parts(small, pd.DataFrame({"x": new}))
    )


@pytest.mark.parametrize("base, make", BASES.values(), ids=BASES)
def test_pieces_and_folds_of_numbers_that_float64_rounds(base, make):
    y, X = TARGETS["classes"], make([base + int(one) for one in OFFSETS])
    whole = MODLEncoder().fit(X, y)
    pieces = MODLEncoder().partial_fit(X[:400], y[:400]).partial_fit(X[400:], y[400:])
    merged = MODLEncoder().partial_fit(X[:400], y[:400]).merge(MODLEncoder().partial_fit(X[400:], y[400:]))
    for other in (pieces, merged):
        assert other.partitions_["x"].labels == whole.partitions_["x"].labels
    small = pd.DataFrame({"x": OFFSETS})
    encoder = MODLEncoder(output="mean")
    wanted = np.asarray(encoder.fit_transform(small, y)).ravel()
    np.testing.assert_array_equal(np.asarray(encoder.fit_transform(X, y)).ravel(), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("base, make", BASES.values(), ids=BASES)
def test_files_and_pickles_are_exact(base, make, tmp_path):
    X = make([base + int(one) for one in OFFSETS])
    encoder = MODLEncoder().fit(X, TARGETS["classes"])
    tabsym.save(encoder, tmp_path / "encoder.tabsym")
    copies = [pickle.loads(pickle.dumps(encoder)), tabsym.load(tmp_path / "encoder.tabsym")]  # noqa: S301
    for copy in copies:
        assert copy.partitions_["x"].labels == encoder.partitions_["x"].labels
        np.testing.assert_array_equal(parts(copy, X), parts(encoder, X))


def test_other_types_in_transform():
    encoder = MODLEncoder().fit(pandas("int64")([EDGE] * HALF + [EDGE + 1] * HALF), Y)
    wanted = [0, 0, 1, 1]
    values = [0, EDGE, EDGE + 1, EDGE + 2]
    for make in (pandas("uint64"), pandas("Int64"), pandas(object), polars(pl.UInt64), arrow(pa.int64())):
        assert parts(encoder, make(values)).tolist() == wanted
    assert parts(encoder, pandas("float64")([0.0, 2.0**53, 2.0**53 + 2, 1e300])).tolist() == wanted
    assert parts(encoder, pandas("Int64")([None, EDGE + 1])).tolist() == [0, 1]  # missing lies below all
    moments = MODLEncoder().fit(MOMENTS["datetime64[ns]"]([MOMENT] * HALF + [MOMENT + 1] * HALF), Y)
    coarse = pd.DataFrame({"x": pd.to_datetime([MOMENT - 789, MOMENT + 211]).as_unit("us")})
    assert parts(moments, coarse).tolist() == [0, 1]
    objects = pd.DataFrame({"x": pd.Series(list(pd.to_datetime([MOMENT, MOMENT + 1])), dtype=object)})
    assert parts(moments, objects).tolist() == [0, 1]


def test_missing_values_beside_numbers_that_float64_rounds():
    column = [None if row < 12 else EDGE + int(y) for row, y in enumerate(Y)]
    for make in (pandas("Int64"), polars(pl.Int64), arrow(pa.int64())):
        encoder = MODLEncoder(handle_missing="return_nan").fit(make(column), Y)
        assert encoder.partitions_["x"].labels == [f"Missing or ]-inf; {EDGE}]", f"]{EDGE}; +inf["]
    alone = np.where(np.arange(2 * HALF) < 12, 2, Y)  # missing has a class of its own
    encoder = MODLEncoder().fit(pandas("Int64")(column), alone)
    assert encoder.partitions_["x"].labels == ["Missing", f"]-inf; {EDGE}]", f"]{EDGE}; +inf["]


def test_what_float64_tells_apart_is_as_it_was():
    day = pd.Timestamp("2024-01-31").value
    dates = pd.to_datetime([day + 1000 * int(one) for one in np.repeat([0, 3_600_000_000], HALF)])
    for moments in (dates.as_unit("ns"), dates.as_unit("us"), dates + pd.Timedelta(1, "ns")):
        X = pd.DataFrame({"x": moments})
        for encoder in (MODLEncoder().fit(X, Y), MODLEncoder().partial_fit(X, Y)):
            assert encoder.partitions_["x"].labels == ["]-inf; 2024-01-31 00:30]", "]2024-01-31 00:30; +inf["]
            assert encoder.partitions_["x"].bound_rests is None
    numbers = pd.DataFrame({"x": np.repeat([2**60, 2**60 + 2**20], HALF)})
    assert MODLEncoder().fit(numbers, Y).partitions_["x"].bounds == [2.0**60 + 2.0**19]


def column_of(values):
    return read_table(pd.DataFrame({"x": values}))["x"]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_exact_values_have_the_order_of_whole_numbers(dtype):
    limits, rng = np.iinfo(dtype), np.random.default_rng(1)
    values = rng.integers(limits.min, limits.max, 500, dtype=dtype, endpoint=True)
    values = np.concatenate([values, values[:100] - np.array(1, dtype), np.array([limits.min, limits.max], dtype)])
    found = exact_values(column_of(values))
    assert [exact_number(float(one.real), float(one.imag)) for one in found] == values.tolist()
    assert found.argsort(kind="stable").tolist() == sorted(range(len(values)), key=values.tolist().__getitem__)


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_exact_moments_are_their_nanoseconds(unit):
    rng, of_unit = np.random.default_rng(2), {"us": 1000, "ns": 1}[unit]
    most = 9 * 10**18 // {"us": 10, "ns": 1}[unit]  # microseconds of 28,000 years are a type that pandas has, too
    values = np.concatenate([rng.integers(-most, most, 500), [-1, 0, 1, 86_400 * 10**9 // of_unit - 1]])
    found = exact_values(column_of(pd.Series(values.view(f"M8[{unit}]"))), always=True)
    assert [nanoseconds_of(float(one.real), float(one.imag)) for one in found] == [int(v) * of_unit for v in values]
    assert (np.diff(found[np.argsort(values)].real) >= 0).all()


def test_late_microseconds_are_told_apart():
    late = np.datetime64("2300-05-01T12:00:00.000000", "us").astype(np.int64)
    rounded = 0
    for one in range(late, late + 8):
        X = pd.DataFrame({"x": np.repeat([one, one + 1], HALF).view("M8[us]")})
        encoder = MODLEncoder().fit(X, Y)
        np.testing.assert_array_equal(parts(encoder, X), Y)
        if encoder.partitions_["x"].bound_rests is not None:
            rounded += 1
            assert encoder.partitions_["x"].labels[0] == f"]-inf; 2300-05-01 12:00:00.00000{one - late}]"
    assert rounded > 0  # a day in float64 is as good as 1.3 microseconds there


HOURS = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(400) % 90, unit="h"))
COUNTS = pd.Series(np.arange(400) % 90)
SPECIAL = [
    (COUNTS.astype("int64"), 2**53),
    (COUNTS.astype("int64"), 2**53 + 1),
    (COUNTS.astype("int64"), 9_999_999_999_999_999),
    (COUNTS.astype("Int64"), 2**63 - 1),
    (COUNTS.astype("uint64"), 2**64 - 1),
    ((COUNTS / 7).astype("float32"), -9.99),
    (COUNTS / 7, -9.99),
    (HOURS.astype("datetime64[us]"), "9999-12-31 23:59:59"),
    (HOURS.astype("datetime64[us]"), "9999-12-31"),
    (HOURS.astype("datetime64[ns]"), pd.Timestamp.max),
    (HOURS.astype("datetime64[ns]"), "2024-03-03 03:03:03.123456789"),
]


@pytest.mark.parametrize(("column", "code"), SPECIAL, ids=[f"{column.dtype} {code}" for column, code in SPECIAL])
def test_special_codes_that_float64_does_not_hold(column, code, tmp_path):
    """Fit had found none of them, and counted their rows among the others, while transform knew them."""
    rng = np.random.default_rng(0)
    own, column = rng.random(400) < 0.3, column.copy()
    column[own] = pd.Timestamp(code) if isinstance(code, str) else code
    y = (rng.random(400) < np.where(own, 0.9, 0.2)).astype(int)
    X = pd.DataFrame({"x": column})
    model = MODLEncoder(special_codes={"x": [code]}, output="group").fit(X, y)
    parts = model.parts("x")
    assert parts["rows"].iloc[-1] == own.sum() and parts["rows"].sum() == 400
    assert "-9.99}" in parts["part"].iloc[-1] or code != -9.99
    group = model.transform(X).iloc[:, 0].to_numpy()
    if isinstance(code, int) and code == 2**53 + 1:  # alone in a table of numbers that float64 holds
        assert model.transform(pd.DataFrame({"x": [2**53]})).iloc[0, 0] != group[own][0]
    assert (group[own] == group[own][0]).all() and (group[~own] != group[own][0]).all()
    if isinstance(code, pd.Timestamp):
        with pytest.raises(ValueError, match=r"special_codes\['x'\]\[0\] is a pandas.Timestamp .* use text instead"):
            tabsym.save(model, tmp_path / "m.skops")
        return
    tabsym.save(model, tmp_path / "m.skops")
    np.testing.assert_array_equal(tabsym.load(tmp_path / "m.skops").transform(X).iloc[:, 0], group)


def test_cut_points_that_float64_does_not_hold():
    X = pd.DataFrame(
        {"n": 2**53 + np.arange(100), "t": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(100), unit="ns")}
    )
    splits = {"n": [2**53 + 49], "t": [pd.Timestamp("2024-01-01 00:00:00.000000049")]}
    model = MODLEncoder(splits=splits, output="group").fit(X, np.arange(100) % 2)
    assert [model.parts(name)["rows"].tolist() for name in "nt"] == [[50, 50], [50, 50]]
    found = model.transform(X).to_numpy()
    assert ((found[:50] == found[0]).all() and (found[50:] == found[50]).all()) and (found[0] != found[50]).all()


@pytest.mark.parametrize("option", ["special_codes", "splits"])
def test_numbers_that_float64_cannot_hold_at_all(option):
    with pytest.raises(ValueError, match=rf"{option}\['x'\] holds a number beyond 1.8e308"):
        MODLEncoder(**{option: {"x": [10**400]}}).fit(pd.DataFrame({"x": [1.0, 2.0] * 20}), [0, 1] * 20)


IDS = [2**60 + place for place in range(4)]


@pytest.fixture(scope="module")
def by_id():
    """A model of ids that float64 does not tell apart, with effects -3, -1, 1 and 3."""
    X = pd.DataFrame({"id": np.tile(IDS, 100), "c": np.repeat(["x", "y"], 200)})
    y = np.tile([-3.0, -1.0, 1.0, 3.0], 100)
    return WideRegressor(loss="squared_error", categorical_features=["id", "c"], interactions=None).fit(X, y)


GIVEN = {
    "dicts": lambda ids: [{"id": one, "c": "x"} for one in ids],
    "columns": lambda ids: {"id": ids, "c": ["x"] * len(ids)},
    "lists": lambda ids: [[one, "x"] for one in ids],
    "objects": lambda ids: np.array([[one, "x"] for one in ids], dtype=object),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_one_missing_id_leaves_the_others_what_they_are(given, by_id):
    """pandas makes floats of whole numbers beside None, which are one id then."""
    np.testing.assert_allclose(by_id.predict(GIVEN[given](IDS)), [-3, -1, 1, 3], atol=0.1)
    np.testing.assert_allclose(by_id.predict(GIVEN[given]([*IDS, None])), [-3, -1, 1, 3, 0], atol=0.1)


def test_ids_of_lists_with_one_missing_are_told_apart_in_fit():
    rows = [[one] for one in IDS * 100] + [[None]]
    y = [*np.tile([-3.0, -1.0, 1.0, 3.0], 100), 0.0]
    model = WideRegressor(loss="squared_error", categorical_features=[0], interactions=None).fit(rows, y)
    np.testing.assert_allclose(model.predict(rows[:4]), [-3, -1, 1, 3], atol=0.1)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64"])
def test_wide_models_say_that_they_merge_whole_numbers(dtype):
    X = pd.DataFrame({"t": pd.array(2**60 + np.arange(200) % 40, dtype=dtype)})
    y = np.arange(200) % 40 > 20
    with pytest.warns(UserWarning, match="Column 't' holds whole numbers of more than 15 digits, .* subtract the"):
        WideClassifier().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WideClassifier().fit(X - 2**60, y)
        WideClassifier(categorical_features=["t"]).fit(X, y)
        WideClassifier().fit((X - 2**60) * 2**45, y)  # which float64 holds
