"""Tables from files and from frames of other libraries."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

from tabsym.compare.settings import open_folder
from tabsym.compare.table import files as reading
from tabsym.compare.table.files import ReadOptions, read_path, read_some
from tests.compare.reading import read_typed


def read(table, **options):
    return read_typed(table, ReadOptions(**options))[0]


COLUMNS = {
    "city": ["Bern", "Genève", None, "Zürich"],
    "age": [31, 45, 22, 60],
    "price": [1.5, None, -2.25, 1e9],
    "zip": ["01234", "00017", "81000", "99999"],
}


def same(frame, columns=COLUMNS):
    """Text as text with its missing values, numbers as numbers."""
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(columns)
    for name, values in columns.items():
        got = [None if pd.isna(value) else value for value in frame[name].tolist()]
        assert got == values, name
        text = any(isinstance(value, str) for value in values)
        assert pd.api.types.is_numeric_dtype(frame[name]) is not text


def write(path: Path, text: str, encoding="utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def text_of(columns, separator):
    rows = [list(columns), *zip(*columns.values())]
    return "\n".join(separator.join("" if value is None else str(value) for value in row) for row in rows) + "\n"


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_csv_by_any_separator_and_encoding(tmp_path, separator, encoding):
    path = write(tmp_path / "t.csv", text_of(COLUMNS, separator), encoding)
    same(read(path))
    same(read(str(path)))


@pytest.mark.parametrize("ending", ["tsv", "TSV"])
def test_tsv_keeps_commas(tmp_path, ending):
    path = write(tmp_path / f"t.{ending}", "a\tb\nx, y\t1\nz, w\t2\n")
    same(read(path), {"a": ["x, y", "z, w"], "b": [1, 2]})


def test_parquet_arrow_and_json_lines(tmp_path):
    frame = pd.DataFrame(COLUMNS)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_parquet(tmp_path / "t.pq")
    frame.to_feather(tmp_path / "t.arrow")
    frame.to_feather(tmp_path / "t.feather")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    frame.to_json(tmp_path / "t.ndjson", orient="records", lines=True)
    for ending in ("parquet", "pq", "arrow", "feather", "jsonl", "ndjson"):
        same(read(tmp_path / f"t.{ending}"))


INDEXED = {
    "named": (pd.Index(["u", "v", "w"], name="store"), ["store"]),
    "several": (pd.MultiIndex.from_arrays([["u", "v", "w"], [7, 8, 9], [4, 5, 6]], names=["store", None, "week"]),
                ["store", "week"]),
    "without a name": (pd.Index([5, 3, 4]), []),
    "row numbers": (pd.RangeIndex(3, name="row"), []),
    "of a column's name": (pd.Index([5, 3, 4], name="price"), []),
}  # fmt: skip


@pytest.mark.parametrize(("index", "columns"), INDEXED.values(), ids=INDEXED)
def test_a_named_index_is_a_column_as_it_is_in_the_file(tmp_path, index, columns):
    frame = pd.DataFrame({"price": [1.5, 2.5, 3.5], "y": [1.0, 2.0, 4.0]}, index=index)
    table = pa.Table.from_pandas(frame)
    frame.to_parquet(tmp_path / "t.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "t.arrow")
    sources = [tmp_path / "t.parquet", tmp_path / "t.arrow", table, pyarrow.dataset.dataset(tmp_path / "t.parquet")]
    for source in sources:
        for most in (None, 2):
            found = read_some(source, ReadOptions(), "y", most, 0)[0].frame
            assert set(found.columns) == {*columns, "price", "y"}
            for name in columns:
                by_price = dict(zip(frame["price"], index.get_level_values(name), strict=True))
                assert found[name].tolist() == [by_price[price] for price in found["price"]]


def test_arrow_written_by_others(tmp_path):
    pl.DataFrame(COLUMNS).write_ipc(tmp_path / "t.arrow")
    pl.DataFrame(COLUMNS).write_parquet(tmp_path / "t.parquet")
    pl.DataFrame(COLUMNS).write_ndjson(tmp_path / "t.jsonl")
    for ending in ("arrow", "parquet", "jsonl"):
        same(read(tmp_path / f"t.{ending}"))


@pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame, pa.table, pd.DataFrame])
def test_frames_of_other_libraries(make):
    same(read(make(COLUMNS)))


def test_types_of_polars_arrive():
    moment = pd.Timestamp("2024-02-29")
    frame = pl.DataFrame(
        {
            "b": [True, None, False],
            "d": [moment, None, moment],
            "c": pl.Series(["x", "y", None], dtype=pl.Categorical),
            "n": [1, None, 3],
        }
    )
    got = read(frame)
    assert got["d"].tolist()[0] == moment
    assert pd.api.types.is_datetime64_any_dtype(got["d"])
    assert got["n"].dropna().tolist() == [1, 3]
    assert pd.api.types.is_numeric_dtype(got["n"])
    assert got["b"].dropna().tolist() == [True, False]
    assert got["c"].dropna().tolist() == ["x", "y"]
    assert got.isna().sum().tolist() == [1, 1, 1, 1]


def test_a_pandas_frame_is_taken_as_it_is():
    frame = pd.DataFrame({"a": [1, 2]}, index=[7, 8])
    assert read(frame) is frame


def test_quotes_hold_separators_and_lines(tmp_path):
    path = write(tmp_path / "t.csv", 'a,b\n"x, y",1\n"two\nlines",2\n"a ""quote""",3\n')
    same(read(path), {"a": ["x, y", "two\nlines", 'a "quote"'], "b": [1, 2, 3]})


def test_a_quoted_header_of_two_lines(tmp_path):
    path = write(tmp_path / "t.csv", '"a\nlong",b\nx,1\ny,2\n')
    same(read(path), {"a\nlong": ["x", "y"], "b": [1, 2]})


def test_one_column(tmp_path):
    same(read(write(tmp_path / "t.csv", "price\n1.5\n2.5\n")), {"price": [1.5, 2.5]})


def test_decimal_commas_where_semicolons_separate(tmp_path):
    path = write(tmp_path / "t.csv", "a;b;c\n1,5;x,5;1\n-2,25;7;2\n3;8;3\n")
    same(read(path), {"a": [1.5, -2.25, 3.0], "b": ["x,5", "7", "8"], "c": [1, 2, 3]})


def test_codes_with_leading_zeros_stay_text_and_zero_is_a_number(tmp_path):
    path = write(tmp_path / "t.csv", "zip,n,f\n01234,0,0.5\n81000,10,0.25\n")
    same(read(path), {"zip": ["01234", "81000"], "n": [0, 10], "f": [0.5, 0.25]})


def test_few_numbers_with_a_word_of_their_own_stay_text_as_written(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1.50,1\n2,2\nground,3\n")
    same(read(path), {"a": ["1.50", "2", "ground"], "b": [1, 2, 3]})


def test_missing_values(tmp_path):
    got = read(write(tmp_path / "t.csv", "a,b,c\n1,x,\n,,\n3,NA,\n"))
    assert got["a"].isna().tolist() == [False, True, False]
    assert got["a"].dropna().tolist() == [1, 3]
    assert got["b"].isna().tolist() == [False, True, False]  # a country may be called NA
    assert got["c"].isna().all()


def test_windows_lines(tmp_path):
    same(read(write(tmp_path / "t.csv", "a,b\r\nx,1\r\ny,2\r\n")), {"a": ["x", "y"], "b": [1, 2]})


@pytest.mark.parametrize(
    ("header", "row", "columns"),
    [
        ("a,b,c;d", "1,2,3;4", ["a", "b", "c;d"]),
        ("id,a|b,n", "1,2|3,4", ["id", "a|b", "n"]),
        ("amount, EUR;b, EUR", "1,234,567;2", ["amount, EUR", "b, EUR"]),
    ],
)
def test_commas_between_whole_numbers_separate_unless_they_group_digits(header, row, columns, tmp_path):
    (tmp_path / "t.csv").write_text(header + "\n" + f"{row}\n" * 5)
    assert list(read(tmp_path / "t.csv").columns) == columns


@pytest.mark.parametrize("separator", [";", "\t"])
def test_commas_that_are_decimal_everywhere_separate_nothing(tmp_path, separator):
    """Also where the header has as many, in units."""
    header = separator.join(["length, m", "width, m", "height, m"])
    path = tmp_path / "t.csv"
    path.write_text("\n".join([header, *[separator.join(["1,5", "2,5", "3,25"])] * 5]) + "\n")
    assert list(read(path).columns) == ["length, m", "width, m", "height, m"]


def test_spaces_after_separators(tmp_path):
    same(read(write(tmp_path / "t.csv", "a, b\nx, 1\ny, 2\n")), {"a": ["x", "y"], "b": [1, 2]})


def test_json_lines_keep_text_and_booleans(tmp_path):
    lines = ['{"code": "007", "on": true, "n": 1}', '{"code": "12", "on": false, "n": null}']
    got = read(write(tmp_path / "t.jsonl", "\n".join(lines)))
    assert got["code"].tolist() == ["007", "12"]
    assert got["on"].tolist() == [True, False]
    assert got["n"].isna().tolist() == [False, True]


def test_objects_of_json_are_matched_by_their_keys(tmp_path):
    columns = {"n": {"0": 0, "1": 1, "10": 10}, "s": {"10": "ten", "0": "zero"}, "more": {"7": "seven"}}
    got = read(write(tmp_path / "t.json", json.dumps(columns)))
    assert got["n"].fillna(-1).tolist() == [0, 1, 10, -1]
    assert got["s"].fillna("").tolist() == ["zero", "", "ten", ""]
    assert got["more"].fillna("").tolist() == ["", "", "", "seven"]


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85"])
def test_only_ends_of_lines_end_lines(tmp_path, sign):
    word = f"a{sign}b"
    text = "".join(json.dumps({"s": word, "n": n}, ensure_ascii=False) + "\r\n" for n in range(2))
    same(read(write(tmp_path / "t.jsonl", text)), {"s": [word, word], "n": [0, 1]})
    same(read(write(tmp_path / "t.csv", f"{word}, n\nx, 0\ny, 1\n")), {word: ["x", "y"], "n": [0, 1]})


@pytest.mark.parametrize("text", ["a,b\nx,1\n", "a,b\nx,12\ny,3\n"])
def test_an_encoding_that_is_not_the_files_is_refused(tmp_path, text):
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        with pytest.raises(ValueError, match=rf"t\.csv is not encoded as {encoding} \(.*pass another encoding"):
            read(write(tmp_path / "t.csv", text), encoding=encoding)
    path = write(tmp_path / "t.csv", text, encoding="utf-16")
    assert list(read(path, encoding="utf-16")) == ["a", "b"]


REFUSED = {
    "an ending": ("t.xlsx", "a,b\n1,2\n", "t.xlsx"),
    "no ending": ("table", "a,b\n1,2\n", "table"),
    "empty": ("t.csv", "", "empty"),
    "blank": ("t.csv", " \n\n", "empty"),
    "twice": ("t.csv", "a,b,a\n1,2,3\n", "'a'"),
    "a longer line": ("t.csv", "a,b\n1,2\n3,4\n5,6,7\n", "line 4"),
    "all lines longer than the header": ("t.csv", "a,b\n1,2,3\n4,5,6\n", "t.csv"),
}


@pytest.mark.parametrize(("name", "text", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_table_is_refused_in_a_sentence(tmp_path, name, text, says):
    with pytest.raises(ValueError) as error:
        read_path(write(tmp_path / name, text))
    assert says in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("text", ["a\n1,5\n2,5\n", "a,b\n1,2,\n4,5,6\n"])
def test_a_further_field_never_moves_the_columns(tmp_path, text):
    with pytest.raises(ValueError, match=r"t\.csv is not a table of equal rows"):
        read(write(tmp_path / "t.csv", text))


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,x,\n4,y,\n", "a;b\n1;x;\n4;y;\n", "a,b\r\n1,x,,\r\n4,y,\r\n", 'a,b\n1,x,\n4,"y",""\n', "a,b\n1,x\n4,y,\n"],
)
def test_a_separator_at_the_end_of_rows_only_is_left_out_and_said(tmp_path, text):
    notes = []
    got, _ = read_typed(write(tmp_path / "t.csv", text), notes=notes)
    same(got, {"a": [1, 4], "b": ["x", "y"]})
    separator = ";" if ";" in text else ","
    assert notes == [f"Rows end in {separator!r} and the header does not; what follows it is empty and was left out."]


@pytest.mark.parametrize("text", ['a,b\n1,"",\n4,,\n5,y,\n', 'a,b\n1,""\n4,\n5,y\n', 'a,"b\n c"\n1,"",\n4,,\n5,y,\n'])
def test_quoted_empty_fields_are_text(tmp_path, text):
    found = read(write(tmp_path / "t.csv", text)).iloc[:, 1]
    assert found.isna().tolist() == [False, True, False]
    assert found.dropna().tolist() == ["", "y"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "a,b,c\n1,x,2\n4,y\n5,z,3",
            "1 row has fewer fields than the header, the first in line 3: what is not",
        ),
        ("a,b,c\n1,x,2\n\n4\n5", "2 rows have fewer fields than the header, the first in line 4: what is not"),
        (
            'a,b,c\n1,"",2\n4,y',
            "1 row has fewer .* line 3: what is not there, and quoted empty text, is",
        ),
    ],
)
def test_short_rows_are_said(tmp_path, text, says):
    notes = []
    read_typed(write(tmp_path / "t.csv", text), notes=notes)
    assert re.search(says, notes[0]), notes


@pytest.mark.parametrize("text", ["a,b,\n1,x\n4,y\n", "a,b\n1,x\n \n4,y\n\n", 'a,b\n1,"x"\n4,\n'])
def test_rows_without_the_blank_end_of_the_header_are_not_short(tmp_path, text):
    notes = []
    read_typed(write(tmp_path / "t.csv", text), notes=notes)
    assert not any("fewer fields" in note for note in notes)


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_first_line_that_names_the_separator(tmp_path, first, end):
    notes = []
    got, _ = read_typed(write(tmp_path / "t.csv", end.join([first, "a;b", "1,5;x, y", "2,5;z, w", ""])), notes=notes)
    same(got, {"a": [1.5, 2.5], "b": ["x, y", "z, w"]})
    assert notes[0] == "The first line names the separator ';' and is no row."
    same(read(write(tmp_path / "t.csv", "sep=|\nx\ny\n"), sep=","), {"x": ["y"]})


EQUAL = pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=["a", "b", "a"])
EQUAL_NAMES = {
    "pandas": lambda path: EQUAL,
    "pyarrow": lambda path: equal_in_arrow(),
    "csv": lambda path: EQUAL.to_csv(path / "t.csv", index=False) or path / "t.csv",
    "xlsx": lambda path: EQUAL.to_excel(path / "t.xlsx", index=False) or path / "t.xlsx",
    "parquet": lambda path: pa.parquet.write_table(equal_in_arrow(), path / "t.parquet") or path / "t.parquet",
    "arrow": lambda path: pa.feather.write_feather(equal_in_arrow(), path / "t.arrow") or path / "t.arrow",
    "json": lambda path: write(path / "t.json", '[{"a": 1, "b": 2}, {"a": 1, "a": 2, "b": 2}]'),
    "json by column": lambda path: write(path / "t.json", '{"a": [1], "b": [2], "a": [3]}'),
    "jsonl": lambda path: write(path / "t.jsonl", '{"a": 1, "b": 2}\n{"a": 1, "b": 2, "a": 3}\n'),
}


def equal_in_arrow():
    return pa.table([[1, 4], [2, 5], [3, 6]], names=["a", "b", "a"])


@pytest.mark.parametrize("kind", EQUAL_NAMES)
def test_two_columns_of_one_name_are_refused_in_every_kind_of_table(kind, tmp_path):
    table = EQUAL_NAMES[kind](tmp_path)
    where = "the table" if not isinstance(table, Path) else rf"the header of t\{table.suffix}"
    with pytest.raises(ValueError, match=f"^Column 'a' appears twice in {where}; rename one of the two\\.$"):
        read(table)


def test_a_workbook_of_several_sheets_says_which_one_was_read(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        for name, rows in {"empty": [], "first": [1, 2], "more": [3]}.items():
            pd.DataFrame({"a": rows} if rows else {}).to_excel(book, sheet_name=name, index=False)
    source = read_path(tmp_path / "t.xlsx")
    assert source.frame["a"].tolist() == [1, 2]
    assert source.notes == ("Sheet 'first' was read, and not 'more'; name another one by sheet (--sheet).",)
    named = read_path(tmp_path / "t.xlsx", ReadOptions(sheet="more"))
    assert named.frame["a"].tolist() == [3] and named.notes == ()
    for name in ("moer", "empty"):
        message = f"^The workbook has no sheet '{name}' with rows.*; there are 'first', 'more'\\.$"
        with pytest.raises(ValueError, match=message):
            read_path(tmp_path / "t.xlsx", ReadOptions(sheet=name))


@pytest.mark.parametrize("option", ["sep", "encoding", "sheet"])
def test_an_option_for_another_kind_of_file_is_refused(option, tmp_path):
    frame = pd.DataFrame({"a": [1, 2]})
    tables = [
        frame,
        pl.DataFrame(frame),
        tmp_path / "t.parquet",
        tmp_path / ("t.csv" if option == "sheet" else "t.xlsx"),
    ]
    frame.to_parquet(tables[2])
    frame.to_csv(tables[3], index=False) if option == "sheet" else frame.to_excel(tables[3], index=False)
    for table in tables:
        what = table.name if isinstance(table, Path) else "a DataFrame"
        with pytest.raises(ValueError, match=rf"^{option} \(--{option}\) is for .*; leave it out for {what}\.$"):
            read(table, **{option: ","})


def test_a_number_and_its_text_are_one_name():
    with pytest.raises(ValueError, match=r"^Column '1' appears twice"):
        read(pd.DataFrame([[1, 2]], columns=["1", 1]))


def test_no_file():
    with pytest.raises(FileNotFoundError, match=r"'nowhere\.csv'"):
        read("nowhere.csv")


def test_files_of_a_kind_hold_the_same(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "k": rng.integers(0, 9, 300), "s": rng.choice(["a", "b c"], 300)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "t.parquet")
    for ending in ("csv", "tsv", "parquet"):
        pd.testing.assert_frame_equal(read(tmp_path / f"t.{ending}"), frame, check_dtype=False, rtol=1e-12)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_files_that_are_not_what_they_end_in_are_named(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    path.write_text("this, is\nno table\n")
    with pytest.raises(ValueError, match=rf"^t\.{ending} cannot be read as \.{ending} \(.+\); write it again"):
        read(path)


def test_folders_that_cannot_be_made_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match=r"cannot be made \(.+\); name another by out \(--out\)"):
            open_folder(out, "retail", resume=False)


@pytest.mark.parametrize("names", [["zip"], ["zip", "shop"], [None], ["a"]])
def test_a_named_index_is_no_column_and_said(names):
    """A file of such a frame has it as a column; not where a column has the name, too."""
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    table.index = pd.MultiIndex.from_arrays([[1, 2, 3]] * len(names), names=names)
    source = reading.read(table)
    assert list(source.frame) == ["a"]
    told = [name for name in names if name not in (None, "a")]
    assert len(source.notes) == bool(told) and all(repr(name) in source.notes[0] for name in told)


LISTS = {
    "semicolons in a cell": ("id,text,y", "he said;'hello';5", ","),
    "a list by semicolons": ("id,text,y", "['a'; 'b'; 'c']", ","),
    "a list by commas": ("id;text;y", "['a', 'b', 'c']", ";"),
    "a name": ("id;text;y", "Smith, 'Joe', Jr", ";"),
    "quotes": ("id;text;y", 'a, "b", c', ";"),
    "tabs": ("id\ttext\ty", "['a', 'b', 'c']", "\t"),
    "bars": ("id|text|y", "p;'q';r", "|"),
    "units in the header": ("a;weight, kg;y, EUR", "1,5", ";"),
}


@pytest.mark.parametrize("case", LISTS)
def test_what_separates_words_in_cells_is_not_the_separator(case, tmp_path):
    header, cell, separator = LISTS[case]
    text = header + "\n" + "".join(f"{row}{separator}{cell}{separator}2,{row}\n" for row in range(30))
    if separator == ",":
        text = header + "\n" + "".join(f"{row},{cell},{row}\n" for row in range(30))
    path = tmp_path / "t.csv"
    path.write_text(text)
    found = reading.read(str(path))
    assert found.separator == separator
    assert found.frame.shape == (30, 3) and found.frame.iloc[0, 1] == cell


TIES = {  # header, what a row has behind its number, separator, columns
    "a bar in a name and in cells": ("id,a|b", ",5|7", ",", 2),
    "a bar in a name and in text": ("id,a|b", ",p|q", ",", 2),
    "a bar in a name": ("id,a|b", ",7", ",", 2),
    "bars, and a unit": ("id|a, m", "|1,5", "|", 2),
    "bars, and decimal commas": ("id|a|b", "|1,5|2,5", "|", 3),
    "bars, and more of them than commas": ("id|a,b|c", "|1,5|2,5", "|", 3),
    "semicolons": ("id;a,b", ";1,5", ";", 2),
    "semicolons, and text": ("id;a,b", ";x,y", ";", 2),
    "tabs": ("id\ta,b", "\t1,5", "\t", 2),
    "tabs, and text": ("id\ta,b", "\tx,y", "\t", 2),
}


@pytest.mark.parametrize("case", TIES)
def test_of_two_separators_that_fit_alike(case, tmp_path):
    header, cells, separator, n_columns = TIES[case]
    path = tmp_path / "t.csv"
    path.write_text(header + "\n" + "".join(f"{row}{cells}\n" for row in range(30)))
    found = reading.read(str(path))
    assert (found.separator, found.frame.shape) == (separator, (30, n_columns))
    assert list(found.frame) == header.split(separator)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("n_columns", [3, 2_000])
def test_wide_headers_and_any_end_of_lines(end, separator, n_columns, tmp_path):
    names = [f"column number {place:05}" for place in range(n_columns)]
    lines = [separator.join(names), *[separator.join(map(str, range(n_columns)))] * 20]
    path = tmp_path / "t.csv"
    path.write_bytes(end.join(lines).encode())
    found = reading.read(str(path))
    assert found.separator == separator and found.frame.shape == (20, n_columns)


def test_empty_fields_at_the_end_of_rows_and_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name;weight, kg\n" + "".join(f"x{row};1,5;\n" for row in range(30)))
    assert reading.read(str(path)).frame.columns.tolist() == ["name", "weight, kg"]


@pytest.mark.parametrize("sep", [";;", "", '"', "\n", "tabs"])
def test_separators_that_are_none(sep, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;2\n")
    with pytest.raises(ValueError, match=r"sep=.* is not possible; use one character, such as ';', or 'tab'"):
        reading.read(str(path), ReadOptions(sep=sep))


@pytest.mark.parametrize("text", ["", "\n\n", "sep=;\n", "sep=,\r\n\r\n"])
def test_a_file_without_a_header_is_empty(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=r"t\.csv is empty"):
        read_path(tmp_path / "t.csv")
