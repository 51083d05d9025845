"""Numbers however they are written: messy columns beside the clean one, from every kind of file and frame."""

import datetime
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabsym.compare import compare, load
from tabsym.compare.splits import make_plan
from tabsym.compare.table.files import ReadOptions
from tabsym.compare.table.number_format import NumberFormat, number_of, split_cell
from tabsym.compare.table.prepare import RoleColumns, prepare
from tests.compare.reading import read_typed

pytestmark = pytest.mark.usefixtures("in_process")

RNG = np.random.default_rng(0)
N = 120
X = np.round(RNG.lognormal(6, 1, N), 2)  # amounts
K = RNG.integers(1000, 99999, N)  # whole numbers of four and five digits
H = RNG.integers(0, 60, N)  # small whole numbers
F = np.round(RNG.normal(0, 5, N), 3)  # of both signs


def german(value, digits=2):
    return f"{value:,.{digits}f}".replace(",", "#").replace(".", ",").replace("#", ".")


def each(values, write):
    return [write(value) for value in values]


def some(word, values, every=9, write=str):
    """Every so many cells are a word for missing; and the clean numbers."""
    cells = [word if place % every == 0 else write(value) for place, value in enumerate(values)]
    return cells, np.where(np.arange(len(values)) % every == 0, np.nan, values)


ARABIC = str.maketrans("0123456789.,", "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669\u066b\u066c")
SPELLINGS = {
    "dollars": (each(X, "${:,.2f}".format), X),
    "dollars after the sign": (each(F, lambda v: f"{'-' if v < 0 else ''}${abs(v):.3f}"), F),
    "dollars before the sign": (each(F, lambda v: f"${v:.3f}"), F),
    "US dollars": (each(X, "US$ {:.2f}".format), X),
    "euros, German": (each(X, lambda v: german(v) + " €"), X),
    "euros in front": (each(X, "€{:.2f}".format), X),
    "pounds": (each(X, "£{:,.2f}".format), X),
    "yen": (each(K, "¥{}".format), K),
    "rupees": (each(K, "₹{:,}".format), K),
    "rupees, words": (each(K, "Rs. {}".format), K),
    "Indian groups": (each(K, lambda v: f"1,{v % 90 + 10},{v % 900 + 100}"),
                      100000 + 1000 * (K % 90 + 10) + K % 900 + 100),
    "a code in front": (each(K, "USD {}".format), K),
    "a code behind": (each(X, "{:.2f} CHF".format), X),
    "crowns": (each(X, lambda v: german(v) + " kr"), X),
    "accounting": (each(F, lambda v: f"({abs(v):.3f})" if v < 0 else f"{v:.3f}"), F),
    "accounting dollars": (each(F, lambda v: f"(${abs(v):.3f})" if v < 0 else f"${v:.3f}"), F),
    "per cent": (each(F, "{:.3f}%".format), F),
    "per cent, German": (each(X, lambda v: german(v) + " %"), X),
    "thousands by commas": (each(K, "{:,}".format), K),
    "thousands by points": (each(np.where(H < 20, H, K // 10 * 10), lambda v: f"{v:,}".replace(",", ".")),
                            np.where(H < 20, H, K // 10 * 10)),
    "millions by points": (each(K * 100, lambda v: f"{v:,}".replace(",", ".")), K * 100),
    "thousands by blanks": (each(K, lambda v: f"{v:,}".replace(",", " ")), K),
    "thousands by hard blanks": (each(K, lambda v: f"{v:,}".replace(",", "\u00a0")), K),
    "thousands by thin blanks": (each(K, lambda v: f"{v:,}".replace(",", "\u202f")), K),
    "Swiss thousands": (each(X, lambda v: f"{v:,.2f}".replace(",", "'")), X),
    "typeset Swiss thousands": (each(K, lambda v: f"{v:,}".replace(",", "\u2019")), K),
    "underscores": (each(K, "{:_}".format), K),
    "decimal commas": (each(X, lambda v: f"{v:.2f}".replace(".", ",")), X),
    "decimal commas of both signs": (each(F, lambda v: f"{v:.3f}".replace(".", ",")), F),
    "kilometres per litre": (each(X, "{:.2f} kmpl".format), X),
    "cubic centimetres": (each(K, "{} CC".format), K),
    "horse powers": (each(K, "{}bhp".format), K),
    "square metres": (each(K, "{} m²".format), K),
    "square metres by 2": (each(K, "{} m2".format), K),
    "speeds": (each(H, "{} km/h".format), H),
    "degrees": (each(F, "{:.3f} °C".format), F),
    "years": (each(H, lambda v: f"{v} year" if v == 1 else f"{v} years"), H),
    "a unit of two words": (each(K, "{} sq ft".format), K),
    "blanks around": (each(X, "  {:.2f} ".format), X),
    "tabs": (each(K, "\t{}".format), K),
    "plus signs": (each(F, "{:+.3f}".format), F),
    "typeset minus": (each(F, lambda v: f"{v:.3f}".replace("-", "\u2212")), F),
    "minus behind": (each(F, lambda v: f"{abs(v):.3f}-" if v < 0 else f"{v:.3f}"), F),
    "below the limit": (each(H, lambda v: f"<{v}" if v < 5 else str(v)), H),
    "above the limit": (each(H, lambda v: f">{v}" if v > 50 else str(v)), H),
    "at least": (each(H, "≥ {}".format), H),
    "and more": (each(K, "{:,}+".format), K),
    "about": (each(H, "~{}".format), H),
    "circa": (each(H, "ca. {}".format), H),
    "k and M": (each(K, lambda v: f"{v / 1000}k" if v < 50000 else f"{v / 1e6}M"), K),
    "some in k": (each(K // 1000 * 1000, lambda v: f"{v // 1000}k" if v > 20000 else str(v)), K // 1000 * 1000),
    "one in millions": (["3.0M", *map(str, K[1:])], [3e6, *K[1:]]),
    "kB and MB": (each(H + 1, lambda v: f"{v} MB" if v > 9 else f"{v * 1000} kB"), (H + 1) * 1e6),
    "g and kg": (each(H + 1, lambda v: f"{v} kg" if v > 9 else f"{v * 1000} g"), H + 1),
    "question marks": some("?", H),
    "hyphens": some("-", H),
    "dashes": some("—", X),
    "N/A": some("N/A", H),
    "NA": some("NA", X),
    "n.a.": some("n.a.", H),
    "null": some("null", H),
    "None": some("None", X, 3),
    "#N/A": some("#N/A", H),
    "not available": some("not available", X),
    "unknown": some("Unknown", H),
    "Varies with device": some("Varies with device", X, 5, "{}M".format),
    "a point": some(".", X),
    "a word of one's own": some("call us", K, 7, "${}".format),
    "one typing error": (["12..5", *map(str, X[1:])], [np.nan, *X[1:]]),
    "scientific": (each(X, "{:.6e}".format), X),
    "scientific with units": (each(X, "{:.6E} kg".format), X),
    "an apostrophe in front": (each(K, "'{}".format), K),
    "quoted": (each(K, '"{}"'.format), K),
    "no cents, comma": (each(np.floor(X), "{:.0f},-".format), np.floor(X)),
    "no cents, point": (each(K, "CHF {}.-".format), K),
    "no cents, two dashes": (each(K, lambda v: f"{v:,}".replace(",", ".") + ",--"), K),
    "no cents, a long dash": (each(K, "{},\u2014 \u20ac".format), K),
    "some without cents": (each(np.where(H < 20, X, H), lambda v: f"{v:.0f},-" if v == int(v) else german(v)),
                           np.where(H < 20, X, H)),
    "a unit in brackets": (each(K, "{} (kg)".format), K),
    "a month": (each(X, "${:,.2f}/mo".format), X),
    "Arabic-Indic digits": (each(K, lambda v: str(v).translate(ARABIC)), K),
    "Arabic-Indic decimals": (each(X, lambda v: f"{v:,.2f}".translate(ARABIC)), X),
    "digits of full width": (each(X, lambda v: "".join(chr(ord(c) + 0xFEE0) for c in f"{v:.2f}")), X),
    "Devanagari digits": (each(K, lambda v: "".join(chr(0x966 + int(c)) for c in str(v))), K),
    "decimals of k": (each(np.where(H < 20, H, K), lambda v: f"{v / 1000:.3f}k" if v > 999 else str(v)),
                      np.where(H < 20, H, K)),
    "decimals of kilometres": (each(H + 1, lambda v: f"{v * 0.06:.3f} km" if v > 16 else f"{v * 60} m"),
                               (H + 1) * 60),
}  # fmt: skip

LEFT = {
    "mixed currencies": each(K, lambda v: f"${v}" if v % 2 else f"€{v}"),
    "mixed units": each(K, lambda v: f"{v} kg" if v % 2 else f"{v} km"),
    "codes with zeros": each(K, "{:05d}".format),
    "floors": each(H, lambda v: str(v % 4) if v % 5 else "ground"),
    "seats": each(H, lambda v: f"{v}{'ABC'[v % 3]}"),
    "bounds": each(H, lambda v: "<=50K" if v < 30 else ">50K"),
}
TEXT = {
    "ranges": each(H, lambda v: f"{v}-{v + 5}"),
    "times": each(H, lambda v: f"{v % 24:02d}:30"),
    "versions": each(H, "1.{}.0".format),
    "addresses": each(H, "10.0.0.{}".format),
    "phones": each(K, "555-{}".format),
    "fractions": each(H, "{}/60".format),
    "countries": list(RNG.choice(["NA", "DE", "FR"], N)),
    "names": list(RNG.choice(["None", "Null", "Bob"], N)),
    "sizes": list(RNG.choice(["S", "M", "L", "10"], N)),
}


FILES = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "parquet": lambda frame, path: frame.to_parquet(path),
    "xlsx": lambda frame, path: frame.to_excel(path, index=False),
    "json": lambda frame, path: frame.to_json(path, orient="records"),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
}
FRAMES = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "objects": lambda frame: frame.astype(object)}
KINDS = [*FILES, *FRAMES]


def tables_of(frame, folder, kinds=KINDS):
    """The same cells in some kinds of file and frame."""
    for kind in kinds:
        if kind in FILES:
            FILES[kind](frame, folder / f"t.{kind}")
        yield folder / f"t.{kind}" if kind in FILES else FRAMES[kind](frame)


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_clean_numbers_come_from_every_kind_of_table(name, tmp_path):
    """A csv and another kind in turn, so that each reads one of nine spellings."""
    cells, clean = SPELLINGS[name]
    frame = pd.DataFrame({"x": [str(cell) for cell in cells], "c": ["a", "b"] * (N // 2)})
    other = KINDS[1 + list(SPELLINGS).index(name) % (len(KINDS) - 1)]
    for table in tables_of(frame, tmp_path, ["csv", other]):
        notes = []
        got, retyping = read_typed(table, notes=notes)
        np.testing.assert_allclose(got["x"].to_numpy(dtype=float), np.asarray(clean, dtype=float), rtol=1e-9)
        assert len([note for note in notes if "'x'" in note]) <= 1
        pd.testing.assert_frame_equal(retyping.read(table), got, check_dtype=False)
        pd.testing.assert_frame_equal(retyping.read(frame.head(7)), got.head(7), check_dtype=False)
    if name not in ("plus signs", "scientific"):  # which programs write as well
        _, said = (
            read_typed(tmp_path / "t.csv", notes=notes),
            [note for note in notes if "'x' is read as numbers" in note],
        )
        assert said


@pytest.mark.parametrize(
    ("cells", "pair"),
    [
        (["1.1", "1.10", "1.2"], "'1.1' and '1.10'"),
        (["1.50", "1.500"], "'1.50' and '1.500'"),
        (["1", "1.0", "2.5"], None),  # one number, as programs write it that are not of one mind
        (["1.10", "1.20", "3.50"], None),
        (["10", "100", "0.5"], None),
    ],
)
def test_versions_are_told_from_numbers(cells, pair, tmp_path):
    """Cells that differ in zeros at the end are one number, which is said, and categories if the user says so."""
    (tmp_path / "t.csv").write_text("v,y\n" + "\n".join(f"{cell},{i}" for i, cell in enumerate(cells * 9)) + "\n")
    notes = []
    got, _ = read_typed(tmp_path / "t.csv", notes=notes)
    assert got["v"].tolist() == [float(cell) for cell in cells * 9]
    said = [note for note in notes if "are the same" in note]
    assert len(said) == (pair is not None) and all(pair in note and "--categorical v" in note for note in said)
    named, retyping = read_typed(tmp_path / "t.csv", ReadOptions(categorical=["v"]))
    assert named["v"].nunique() == (len(set(cells)) if pair else len({float(cell) for cell in cells}))
    again = retyping.read(tmp_path / "t.csv")["v"].tolist()
    assert (again if pair else [float(cell) for cell in again]) == named["v"].tolist()


CATEGORIES = {
    "pandas": lambda cells: pd.DataFrame({"x": pd.Categorical(cells)}),
    "pandas, ordered": lambda cells: pd.DataFrame({"x": pd.Categorical(cells, ordered=True)}),
    "polars Categorical": lambda cells: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Categorical)}),
    "polars Enum": lambda cells: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Enum(sorted(set(cells))))}),
    "pyarrow dictionary": lambda cells: pa.table({"x": pa.array(cells).dictionary_encode()}),
}


@pytest.mark.parametrize("make", CATEGORIES.values(), ids=CATEGORIES)
@pytest.mark.parametrize("name", ["dollars", "question marks", "mixed currencies", "whole"])
def test_categories_of_text_are_read_or_said_as_text_is(name, make, tmp_path):
    cells = each(K, str) if name == "whole" else LEFT.get(name) or [str(cell) for cell in SPELLINGS[name][0]]
    notes, said = [], []
    want, _ = read_typed(pd.DataFrame({"x": cells}), notes=said)
    got, retyping = read_typed(make(cells), notes=notes)
    assert notes == said and len(notes) == 1
    assert got["x"].tolist() == want["x"].tolist() or np.allclose(got["x"], want["x"], equal_nan=True)
    later = retyping.read(make(cells[:7]))["x"]
    assert later.tolist() == want["x"].tolist()[:7] or np.allclose(later, want["x"][:7], equal_nan=True)


DECIMALS = [Decimal(f"{value:.2f}") for value in X]
DAY = datetime.timedelta(1)
MINUTES = pd.Series(pd.to_timedelta(K, unit="s"))
TYPED = {
    "decimals": (DECIMALS, X, 0),
    "decimals with gaps": ([None, *DECIMALS[1:]], [np.nan, *X[1:]], 0),
    "decimals without places": ([Decimal(int(value)) for value in K], K, 0),
    "durations": (MINUTES, K, 1),
    "durations of Python": (pd.Series([one.to_pytimedelta() + DAY for one in MINUTES], dtype=object), K + 86400, 1),
    "some of a day": (
        [str(one.to_pytimedelta()) for one in pd.to_timedelta([100000, *K[1:]], unit="s")],
        [100000, *K[1:]],
        1,
    ),
    "durations as text": (MINUTES.astype(str), K, 1),
    "durations as ISO text": (MINUTES.map(pd.Timedelta.isoformat), K, 1),
    "durations with words": (
        MINUTES.astype(str).mask(np.arange(N) % 9 == 0, "n/a"),
        np.where(np.arange(N) % 9, K, np.nan),
        1,
    ),
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "pyarrow", "arrow types"])
@pytest.mark.parametrize("name", TYPED)
def test_decimals_and_durations_are_numbers_in_every_kind_of_table(name, kind, tmp_path):
    """Durations in seconds, which is said; as features, as targets, and in later tables."""
    cells, clean, lines = TYPED[name]
    frame = pd.DataFrame({"x": cells, "c": ["a", "b"] * (N // 2)})
    if kind == "csv":
        frame.to_csv(table := tmp_path / "t.csv", index=False)
    elif kind == "parquet":
        frame.to_parquet(table := tmp_path / "t.parquet")
    else:
        make = {"pandas": lambda one: one, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
        make["arrow types"] = lambda one: pa.Table.from_pandas(one).to_pandas(types_mapper=pd.ArrowDtype)
        table = make[kind](frame)
    notes = []
    got, retyping = read_typed(table, notes=notes)
    np.testing.assert_allclose(got["x"], clean)
    assert len([note for note in notes if "'x' contains durations and is read as numbers, in seconds" in note]) == lines
    np.testing.assert_allclose(retyping.read(table)["x"], clean)
    np.testing.assert_allclose(retyping.read(frame.head(7))["x"], clean[:7])
    prepared = prepare(table, "x")
    assert prepared.task == "regression"
    np.testing.assert_allclose(prepared.y, np.asarray(clean)[~np.isnan(clean)])


MOMENTS = pd.Series(pd.date_range("2020-01-01", periods=N, freq="D")).astype(object)
AMONG_DATES = {
    "words for missing": (
        MOMENTS.mask(np.arange(N) % 9 == 0, "unknown").mask(np.arange(N) == 3, "n/a"),
        15,
        "'unknown', 'n/a'",
    ),
    "a word of one's own": (MOMENTS.mask(np.arange(N) == 3, "soon"), 1, "'soon'"),
    "days": (MOMENTS.map(pd.Timestamp.date).mask(np.arange(N) == 3, "?"), 1, "'?'"),
    "text that is a date": (MOMENTS.mask(np.arange(N) == 3, "04.01.2020"), 0, ""),
}


@pytest.mark.parametrize("name", AMONG_DATES)
def test_words_among_dates_are_missing_as_in_csv(name, tmp_path):
    column, missing, words = AMONG_DATES[name]
    frame = pd.DataFrame({"x": column, "y": np.arange(N) % 7 / 3})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    days = [(day - pd.Timestamp(0)).days for day in MOMENTS]
    for table in (frame, tmp_path / "t.xlsx"):
        prepared = prepare(table, "y")
        assert prepared.X["x"].isna().sum() == missing
        there = prepared.X["x"].notna()
        assert prepared.X["x"][there].tolist() == np.array(days)[there].tolist()
        said = [note for note in prepared.notes if f"({words})" in note and "as missing" in note]
        assert len(said) == (missing > 0)
        again = prepared.features.apply(prepared.retyping.read(table))
        pd.testing.assert_frame_equal(again, prepared.X)


@pytest.mark.parametrize("name", LEFT)
def test_what_only_looks_like_numbers_is_left_and_this_is_said(name, tmp_path):
    frame = pd.DataFrame({"x": LEFT[name], "c": ["a", "b"] * (N // 2)})
    for table in tables_of(frame, tmp_path):
        notes = []
        got, _ = read_typed(table, notes=notes)
        assert got["x"].tolist() == LEFT[name]
        assert ["'x' looks like numbers but is read as text" in note for note in notes] == [True]
        is_mixed = name.startswith("mixed") or name == "seats"  # of which --numeric is refused
        assert ("convert them to one unit" if is_mixed else "--numeric x") in notes[0]


@pytest.mark.parametrize("name", TEXT)
def test_text_stays_text(name, tmp_path):
    frame = pd.DataFrame({"x": TEXT[name], "c": ["a", "b"] * (N // 2)})
    for table in tables_of(frame, tmp_path):
        notes = []
        assert read_typed(table, notes=notes)[0]["x"].tolist() == TEXT[name]
        assert notes == []


def test_only_an_empty_field_without_quotes_is_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('c,n\nNA,1\n"",2\n,3\nnull,\n" ",4\n"x ""y"" ",5\n')
    got, _ = read_typed(path)
    assert [None if pd.isna(value) else value for value in got["c"]] == ["NA", "", None, "null", " ", 'x "y" ']
    assert got["n"].isna().tolist() == [False, False, False, True, False, False]


def test_booleans_are_the_same_from_text(tmp_path):
    frame = pd.DataFrame({"b": [True, False, True], "m": pd.Series([True, None, False], dtype=object), "y": [1, 2, 3]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for table in (frame, tmp_path / "t.csv", frame.astype({"b": "str"})):
        X = prepare(table, "y").X
        assert X["b"].tolist() == [True, False, True]
        assert X["b"].dtype == bool
        assert X["m"].tolist()[::2] == [1.0, 0.0]


def test_whole_numbers_as_text_stay_text_where_a_table_has_types(tmp_path):
    frame = pd.DataFrame({"id": [str(value) for value in K], "y": X})
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (frame, tmp_path / "t.parquet"):
        prepared = prepare(table, "y")
        assert prepared.features.kinds == {"id": "categories"}
        assert any("'id' holds numbers as text and is read as text" in note for note in prepared.notes)
        assert prepare(table, "y", reading=ReadOptions(numeric=["id"])).features.kinds == {"id": "number"}


OPTIONS = {
    "decimal": ("x\n1.234\n5.678\n", {"decimal": ","}, [1234, 5678]),
    "thousands by points": ("x\n1.234\n5.678\n", {"thousands": "."}, [1234, 5678]),
    "thousands": ("x;c\n1,234;a\n5,678;b\n", {"thousands": ","}, [1234, 5678]),
    "sep": ("x#c\n1#a\n2#b\n", {"sep": "#"}, [1, 2]),
    "na_values": ("x,c\n1,-200\n-200,a\n", {"na_values": {"": ["-200"]}}, [1, None]),
    "na_values of a column": ("x,c\n1,-200\n-200,a\n", {"na_values": {"x": ["-200"]}}, [1, None]),
    "numeric": ("x,c\n1,a\nbasement,b\n2,c\n", {"numeric": ["x"]}, [1, None, 2]),
    "numeric codes": ("x,c\n007,a\n042,b\n", {"numeric": ["x"]}, [7, 42]),
    "categorical": ("x,c\n$1,a\n$2,b\n", {"categorical": ["x"]}, ["$1", "$2"]),
}


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("mark", [".", ","])
def test_three_digits_after_every_separator_are_said_with_the_other_reading(mark, zeros, typed, tmp_path):
    cells = [f"{v % 899 + 100}{mark}{v % 90 + 10}{0 if zeros else 5}" for v in K.tolist()]
    frame = pd.DataFrame({"x": cells, "c": ["a", "b"] * (N // 2)})
    table = frame if typed else tmp_path / "t.csv"
    frame.to_csv(tmp_path / "t.csv", index=False)
    notes = []
    got, _ = read_typed(table, notes=notes)
    (line,) = [note for note in notes if "'x'" in note]
    found = re.search(r"use --(decimal|thousands) ([.,])", line)
    other, _ = read_typed(table, ReadOptions(**{found[1]: found[2]}))
    np.testing.assert_allclose(np.log10(got["x"] / other["x"]).abs(), 3)


@pytest.mark.parametrize(("text", "options", "want"), OPTIONS.values(), ids=OPTIONS)
def test_every_option_changes_what_it_says(text, options, want, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    got, retyping = read_typed(tmp_path / "t.csv", ReadOptions(**options))
    assert [None if pd.isna(value) else value for value in got["x"]] == want
    assert [None if pd.isna(value) else value for value in retyping.read(tmp_path / "t.csv")["x"]] == want
    (tmp_path / "plain.csv").write_text(text)
    try:
        plain = read_typed(tmp_path / "plain.csv")[0]
        assert [None if pd.isna(value) else value for value in plain.get("x", [])] != want
    except ValueError as error:
        assert "plain.csv" in str(error)


def test_tab_can_be_asked_for_by_name(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\tc,d\n1,2\t3,4\n")
    assert list(read_typed(tmp_path / "t.csv", ReadOptions(sep="tab"))[0].columns) == ["a,b", "c,d"]
    with pytest.raises(ValueError, match="sep='ab' is not possible"):
        read_typed(tmp_path / "t.csv", ReadOptions(sep="ab"))
    (tmp_path / "t.json").write_text('[{"a": 1}]')
    with pytest.raises(ValueError, match=r"sep \(--sep\) is for text files"):
        read_typed(tmp_path / "t.json", ReadOptions(sep=","))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"numeric": ["c"]}, "'c' is in numeric, but most of its cells are not numbers"),
        ({"numeric": ["u"]}, "'u' is in numeric, but its cells mix the units"),
    ],
)
def test_what_cannot_be_numeric_is_named(options, says):
    frame = pd.DataFrame({"c": ["a", "b"], "u": ["1 kg", "2 km"]})
    with pytest.raises(ValueError, match=says):
        read_typed(frame, ReadOptions(**options))
    notes: list[str] = []
    read_typed(pd.DataFrame({"u": ["1 kg", "2 km", "3 kg"] * 20}), notes=notes)
    assert any("convert them to one unit to read numbers" in str(note) for note in notes), notes


def test_encoding_is_taken_as_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("c,y\nжш,1\nлщ,2\n".encode("koi8-r"))
    assert read_typed(path, ReadOptions(encoding="koi8-r"))[0]["c"].tolist() == ["жш", "лщ"]
    with pytest.raises(ValueError, match="encoding='nonsense' is not known"):
        read_typed(path, ReadOptions(encoding="nonsense"))
    with pytest.raises(ValueError, match="is not encoded as utf-8"):
        read_typed(path, ReadOptions(encoding="utf-8"))


def test_blank_columns_are_dropped_and_unnamed_ones_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a,b,,\n0,x,1,,\n1,y,2,,\n")
    notes = []
    got, _ = read_typed(path, notes=notes)
    assert list(got.columns) == ["column 1", "a", "b"]
    assert notes == [
        "Column 1 has no name in the header and is called 'column 1'.",
        "2 blank columns without a name were left out.",
    ]


@pytest.mark.slow
def test_the_verdict_and_the_winner_are_those_of_the_clean_table(tmp_path):
    """N2: the same rows but for how they are written; the scores are the same to the last digit."""
    rng = np.random.default_rng(1)
    n = 400
    clean = pd.DataFrame({"amount": np.round(rng.uniform(1000, 4000, n), 2), "share": rng.integers(0, 100, n)})
    clean["r"] = rng.choice(["p", "q"], n)
    clean["y"] = clean["amount"] + 10 * clean["share"] + rng.normal(0, 30, n)
    messy = clean.assign(
        amount=clean["amount"].map("${:,.2f}".format),
        share=clean["share"].map("{} %".format),
        y=clean["y"].map("€{}".format),
    )
    clean.to_csv(tmp_path / "clean.csv", index=False)
    messy.to_csv(tmp_path / "messy.csv", index=False)
    options = {"contenders": ["constant", "wide"], "folds": 2, "quiet": True}
    results = [compare(tmp_path / f"{name}.csv", "y", out=tmp_path / name, **options) for name in ("clean", "messy")]
    first, second = (result.ranking.set_index("name")["score"] for result in results)
    pd.testing.assert_series_equal(first, second)
    assert first["wide"] < first["constant"] / 5
    back = load(results[1].best.save(tmp_path / "best.skops"))
    np.testing.assert_array_equal(back.predict(tmp_path / "messy.csv"), back.predict(messy))
    np.testing.assert_array_equal(back.predict(messy), back.predict(clean))


@given(st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 2)), st.sampled_from([".", ","]))
def test_what_python_writes_with_separators_is_read_back(value, decimal):
    text = f"{value:,.2f}" if decimal == "." else german(value)
    cell = split_cell(f"${text}")
    thousands = "," if decimal == "." else "."
    assert cell.sign * number_of(cell.digits, decimal, thousands) == value


@pytest.mark.slow
@given(st.text(max_size=12))
def test_any_text_is_a_number_missing_or_strange(text):
    numbers, strange = NumberFormat(".", ",", {"": 1.0}).parse(pd.Series([text, 1.5, None]))
    assert numbers[1] == 1.5
    assert np.isnan(numbers[2])
    assert strange.tolist()[1:] == [False, False]
    assert np.isnan(numbers[0]) or not strange[0]


STEPS = np.arange(N) % 4
AS_CATEGORIES = {
    "decimals": [Decimal(f"{step}.50") for step in STEPS],
    "whole decimals": [Decimal(f"{step}.00") for step in STEPS],
    "numbers of many digits": [2**60 + int(step) for step in STEPS],
    "days": [pd.Timestamp(2024, 1, 1 + int(step)) for step in STEPS],
    "moments": [pd.Timestamp(2024, 1, 1, 9, int(step)) for step in STEPS],
    "dates": [datetime.date(2024, 1, 1 + int(step)) for step in STEPS],
    "durations": [f"0 days 0{step}:00:00" for step in STEPS],
    "whole numbers": [float(step) for step in STEPS],
}


@pytest.mark.parametrize("name", AS_CATEGORIES)
def test_named_categories_are_the_same_from_every_kind_of_table(name, tmp_path):
    """In training and later, whichever kind it was trained on."""
    frame = pd.DataFrame({"x": pd.Series(AS_CATEGORIES[name]), "c": ["a", "b"] * (N // 2), "y": np.arange(N) / 7})
    kinds = ["csv", "parquet", "xlsx", "pandas", "polars"]
    if name == "numbers of many digits":
        kinds.remove("xlsx")  # whose numbers are floats
    tables = list(tables_of(frame, tmp_path, kinds))
    trained = [prepare(table, "y", reading=ReadOptions(categorical=["x"])) for table in tables]
    for one in trained:
        assert one.X["x"].nunique() == 4
        assert one.X["x"].tolist() == trained[0].X["x"].tolist()
        for table in tables:
            pd.testing.assert_frame_equal(one.features.apply(one.retyping.read(table)), one.X)


def test_codes_of_many_digits_beside_missing_ones_are_not_rounded(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{2**60 + n % 4 if n % 5 else ''},{n / 7}\n" for n in range(N)))
    prepared = prepare(tmp_path / "t.csv", "y", reading=ReadOptions(categorical=["x"]))
    assert sorted(prepared.X["x"].dropna().unique()) == [str(2**60 + step) for step in range(4)]
    pd.testing.assert_frame_equal(prepared.features.apply(prepared.retyping.read(tmp_path / "t.csv")), prepared.X)


def test_booleans_with_missing_ones_are_the_same_from_every_kind_of_table(tmp_path):
    flags = pd.Series(STEPS > 1).astype("boolean").mask(STEPS == 3)
    frame = pd.DataFrame({"x": flags, "y": np.arange(N) / 7})
    tables = list(tables_of(frame, tmp_path, ["csv", "parquet", "xlsx", "jsonl", "pandas", "polars"]))
    for trained in (prepare(table, "y") for table in tables):
        for table in tables:
            again = trained.features.apply(trained.retyping.read(table))
            pd.testing.assert_frame_equal(again, trained.X, check_dtype=False)


@pytest.mark.parametrize(("cells", "doubted"), [(["1,234", "5,678"], True), (["1,23,456", "5,678"], False)])
def test_two_separators_in_a_cell_leave_one_reading(cells, doubted):
    notes = []
    read_typed(pd.DataFrame({"x": cells * 20, "y": range(40)}), notes=notes)
    assert any("for the other reading" in note for note in notes) == doubted


def test_infinite_numbers_are_missing_in_every_kind_of_table(tmp_path):
    values = np.where(np.arange(N) % 3 == 0, np.inf, F) * np.where(np.arange(N) % 2, 1.0, -1.0)
    frame = pd.DataFrame({"x": values, "y": np.arange(N) / 7})
    tables = list(tables_of(frame, tmp_path, ["csv", "tsv", "parquet", "xlsx", "pandas", "polars"]))
    for trained in (prepare(table, "y") for table in tables):
        assert trained.X["x"].isna().sum() == N / 3
        for table in tables[:3]:
            again = trained.features.apply(trained.retyping.read(table))
            np.testing.assert_allclose(again["x"].to_numpy(), trained.X["x"].to_numpy())


def halves(values):
    """Every other cell is a number, or a date, and the others are its text."""
    return pd.Series([value if place % 2 else str(value) for place, value in enumerate(values)], dtype=object)


def test_numbers_and_their_text_in_one_column_are_the_same_classes_groups_and_folds(tmp_path):
    frame = pd.DataFrame({"g": halves(H % 7), "y": halves(H % 3), "flag": [True, "TRUE", False, "FALSE"] * (N // 4)})
    frame = frame.assign(x=F)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.to_csv(tmp_path / "t.csv", index=False)
    for table in (tmp_path / "t.csv", tmp_path / "t.xlsx", frame, tmp_path / "t.csv"):
        assert prepare(table, "y", task="multiclass").classes == ["0", "1", "2"]
        assert prepare(table, "flag").classes == ["False", "True"]
        for role in ("groups", "fold_column"):
            prepared = prepare(table, "x", roles=RoleColumns(**{role: "g"}))
            assert prepared.frame["g"].nunique() == 7
            splits = make_plan(prepared.frame, folds=3, repeats=1, seed=0, **{role: "g"}).splits(F, "regression")
            assert not any(set(H[train] % 7) & set(H[test] % 7) for train, test in splits)


def test_numbers_among_text_are_text_as_in_a_text_file(tmp_path):
    frame = pd.DataFrame({"x": [38, "S", 40, "M", 41.5, None] * (N // 6), "y": F})
    tables = list(tables_of(frame.astype({"x": "str"}).mask(frame.isna()), tmp_path, ["csv"]))
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    tables += [tmp_path / "t.xlsx", frame]
    for trained in (prepare(table, "y") for table in tables):
        assert sorted(trained.X["x"].dropna().unique()) == ["38", "40", "41.5", "M", "S"]
        for table in tables:
            again = trained.features.apply(trained.retyping.read(table))
            pd.testing.assert_frame_equal(again, trained.X)
    assert any("'x'" in note and "read as text" in note for note in trained.notes)


@pytest.mark.parametrize("words", [["10 days", "2 weeks", "3 months"], ["PT1H", "P1DT", "other"]])
def test_what_text_means_does_not_depend_on_the_other_rows(words):
    frame = pd.DataFrame({"x": np.array(words)[H % 3], "y": F})
    trained = prepare(frame, "y")
    for word in words:
        alone = trained.features.apply(trained.retyping.read(frame[frame["x"] == word]))
        assert alone["x"].unique().tolist() == [word]


def test_durations_are_those_of_training_whatever_else_a_later_table_has():
    spans = pd.to_timedelta(H * 3600.0 + K, unit="s")
    text = pd.Series(spans).astype("str").str.removeprefix("0 days ")
    trained = prepare(pd.DataFrame({"x": text, "y": F}), "y")
    clock = text[~text.str.contains("day")]
    later = pd.DataFrame({"x": [clock.iloc[0], clock.iloc[1], None, " "], "y": 0.0})
    found = trained.features.apply(trained.retyping.read(later))["x"]
    np.testing.assert_allclose(found[:2], spans.total_seconds()[clock.index[:2]])
    assert found[2:].isna().all()
    with pytest.warns(UserWarning, match="Column 'x' held numbers in training and now holds 'soon' in 1 of its 3"):
        strange = trained.features.apply(trained.retyping.read(later.fillna("soon")), later=True)["x"]
    assert strange.isna().tolist() == [False, False, True, True]


DAYS = pd.Series(pd.date_range("2024-01-01", "2024-12-31", freq="D"))
DAYS = DAYS[DAYS.dt.day <= 12].sample(N, random_state=0).reset_index(drop=True)  # whose day could be the month


def as_dates(kind):
    text = DAYS.dt.strftime("%d/%m/%Y")
    mixed = pd.Series([cell if n % 2 else text[n] for n, cell in enumerate(DAYS.dt.to_pydatetime())], dtype=object)
    return {"text": text, "dates": DAYS, "mixed": mixed}[kind]


@pytest.mark.parametrize("kind", ["text", "dates", "mixed"])
def test_the_day_comes_first_wherever_dates_are_text(kind, tmp_path):
    frame = pd.DataFrame({"t": as_dates(kind), "y": F})
    trained = prepare(frame, "y", reading=ReadOptions(dayfirst=True))
    days = (DAYS - pd.Timestamp("1970-01-01")).dt.days
    np.testing.assert_array_equal(trained.X["t"], days)
    assert kind == "dates" or any("the day before the month" in note for note in trained.notes)
    plan = make_plan(trained.frame, folds=3, repeats=1, seed=0, time="t", dayfirst=True)
    for train, test in plan.splits(F, "regression"):
        assert DAYS[train].max() < DAYS[test].min()
    for other in ("text", "dates", "mixed"):
        later = pd.DataFrame({"t": as_dates(other), "y": F})
        later.to_excel(tmp_path / "later.xlsx", index=False)
        for table in (later, later.iloc[:1], later.set_axis([0] * N), tmp_path / "later.xlsx"):
            found = trained.features.apply(trained.retyping.read(table), later=True)["t"]
            np.testing.assert_array_equal(found, days[: len(found)])


def test_later_text_of_dates_that_could_be_read_two_ways_is_told_of():
    trained = prepare(pd.DataFrame({"t": DAYS, "y": F}), "y")
    words = r"held dates in training, and now text such as '03/04/2024', which is read with the month before the day;"
    with pytest.warns(UserWarning, match=words):
        trained.features.apply(pd.DataFrame({"t": ["03/04/2024"]}), later=True)


@pytest.mark.parametrize("role", ["feature", "target"])
def test_numbers_that_mean_missing_are_found_however_they_are_written(role, tmp_path):
    amounts, lost = np.where(np.arange(N) % 5 == 0, -200.0, F), np.arange(N) % 5 == 0
    frame = pd.DataFrame({"a": amounts, "b": F} if role == "feature" else {"b": amounts, "a": F + 1.0})
    target = "b"
    name = "a" if role == "feature" else "b"
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.assign(**{name: [Decimal(str(value)) for value in amounts]}).to_parquet(tmp_path / "t.parquet")
    marked = frame.astype({name: object})
    marked.loc[0, name] = "?"
    marked.to_excel(tmp_path / "t.xlsx", index=False)
    euros = frame.assign(**{name: each(amounts, lambda value: f"{value:.3f} €")})
    tables = [tmp_path / "t.csv", tmp_path / "t.parquet", tmp_path / "t.xlsx", frame, euros]
    for table in tables:
        trained = prepare(table, target, reading=ReadOptions(na_values={name: ["-200"]}))
        assert not any("No cell" in note or "--na-values" in note for note in trained.notes), trained.notes
        if role == "target":
            assert len(trained.y) == N - lost.sum()
            continue
        assert trained.X["a"].isna().to_numpy().tolist() == lost.tolist()
        for later in tables[:4]:
            again = trained.features.apply(trained.retyping.read(later))["a"]
            assert again.isna().to_numpy().tolist() == lost.tolist()


@pytest.mark.slow
def test_dates_and_flags_that_mean_missing_are_found_and_words_that_are_nowhere_told_of(tmp_path):
    days = DAYS.mask(H % 5 == 0, pd.Timestamp("1900-01-01"))
    frame = pd.DataFrame({"t": days, "flag": pd.Series(H % 2 == 0), "kind": pd.Categorical(H % 3), "y": F})
    frame.to_csv(tmp_path / "t.csv", index=False, date_format="%Y-%m-%d %H:%M:%S")
    words = {"t": ["1900-01-01"], "flag": ["False"], "kind": ["2", "9"], "": ["nowhere"]}
    for table in (frame, tmp_path / "t.csv"):
        trained = prepare(table, "y", reading=ReadOptions(na_values=words))
        for later in (frame, tmp_path / "t.csv"):
            found = trained.features.apply(trained.retyping.read(later))
            assert found["t"].isna().tolist() == (H % 5 == 0).tolist()
            assert found["flag"].isna().tolist() == (H % 2 != 0).tolist()
            assert found["kind"].isna().tolist() == (H % 3 == 2).tolist()
        unused = [note for note in trained.notes if note.startswith("No cell")]
        assert [note.split(",")[0] for note in unused] == [
            "No cell of column 'kind' is '9'",
            "No cell of the table is 'nowhere'",
        ]


def test_a_decimal_comma_that_was_named_is_that_of_later_text(tmp_path):
    frame = pd.DataFrame({"x": X, "y": F})
    trained = prepare(frame, "y", reading=ReadOptions(decimal=","))
    later = frame.assign(x=each(X, german))
    np.testing.assert_allclose(trained.features.apply(trained.retyping.read(later), later=True)["x"], X)


@pytest.mark.parametrize(("sep", "encoding"), [(";", "cp1250"), ("~", "koi8-r"), ("tab", "utf-16"), (",", "utf-8")])
def test_a_winner_reads_text_files_of_other_separators_and_encodings(sep, encoding, tmp_path):
    words = {"koi8-r": ["жш", "лщ", "эы"]}.get(encoding, ["ąę", "łó", "żź"])
    frame = pd.DataFrame({"word": np.array(words)[H % 3], "y": F})
    mark = "\t" if sep == "tab" else sep
    frame.to_csv(tmp_path / "t.csv", index=False, sep=mark, encoding=encoding)
    trained = prepare(tmp_path / "t.csv", "y", reading=ReadOptions(sep=sep, encoding=encoding))
    assert sorted(trained.X["word"].unique()) == sorted(words)
    for place, other in enumerate((";", ",", "\t", mark)):
        later = tmp_path / f"later{place}.csv"
        frame.to_csv(later, index=False, sep=other, encoding="utf-8")
        again = trained.features.apply(trained.retyping.read(later), later=True)
        pd.testing.assert_frame_equal(again, trained.X)
    pd.testing.assert_frame_equal(trained.features.apply(trained.retyping.read(tmp_path / "t.csv")), trained.X)
