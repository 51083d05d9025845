"""What values mean: words for missing ones, whole numbers that are codes or classes, and text that is a date.

Of dates in cells: which format the text of a column has, and the moments that its cells stand for.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.frame.columns import Kind, Table
from tabsym.messages import plural, warn_user

Floats = NDArray[np.float64]

CODE_NAMES = re.compile(
    r"(?:^|[^a-z])(?:id|ids|code|codes|zip|zipcode|postcode|postal|plz|sku|nr|key|isbn|ean)(?:$|[^a-z])"
)
MISSING_WORDS = frozenset(
    "? ?? - -- --- \u2013 \u2014 . .. * n/a na n.a. n.a #n/a #na nan null none nil missing unknown undefined "
    "unspecified unavailable tbd tba tbc not-available no-data nd n.d. n.d #value! #ref! #div/0! #name? #num! "
    "#null! <na> -nan 1.#qnan k.a. s/o nr".split()
) | {
    "not available",
    "not applicable",
    "not known",
    "not specified",
    "no data",
    "varies with device",
    "n / a",
    "(blank)",
    "(missing)",
    "(null)",
    "k. a.",
}
"""In lower case; they mean missing only where the other cells of a column are numbers or dates."""
_SHOWN = 5  # values that a sentence lists
CODES = "look like codes"
"""Of a warning, by which it is known."""
MIN_ROWS = 50
_MIN_CODES, _MIN_RANGE = 20, 1000
_MIN_EFFECT, _MAX_ORDER = 4.0, 2.0  # standard errors: of the values' effects together, and of their order
MAX_ROWS = 20_000
"""Rows, evenly spread."""


def code_columns(table: Table, y: Any) -> list[str]:
    """The columns of whole numbers that look like codes; `y` (n,): numbers, or labels."""
    step = -(-max(len(table), 1) // MAX_ROWS)
    numbers = [column for column in table.columns if column.kind is Kind.NUMERIC and column.measure.name == "numbers"]
    if not numbers:
        return []
    target = np.asarray(y)
    if target.ndim != 1 or not len(target) or np.ndim(target[0]) or pd.isna(target).any():
        return []  # refused where the target is checked
    target = target[::step]
    if not np.issubdtype(target.dtype, np.number):
        target = target == target[0]
    target = target.astype(np.float64)
    if not np.isfinite(target).all():
        return []
    codes = []
    for column in numbers:
        values = column.values[::step]
        if is_code(column.name, values, target) and _repeats(values):
            codes.append(column.name)
    return codes


def _repeats(values: Floats) -> bool:
    """Whether values come again, and none is half of them: not an id's, and no amount that is mostly 0."""
    _, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return 1.05 * len(counts) < counts.sum() and 2 * counts.max(initial=0) < counts.sum()


def is_code(name: str, values: Floats, target: Floats) -> bool:
    """Whether whole numbers name things: by the column's name, or sparse numbers that repeat and have no order.

    Parameters
    ----------
    name : str
    values : (n,)
        Missing ones NaN.
    target : (n,)
        Of classes 0 and 1 for the first.
    """
    distinct = np.unique(whole_values(values))
    if len(distinct) < 3 or distinct[0] < 0:
        return False
    if CODE_NAMES.search(words_of(name)):
        return True
    present = np.count_nonzero(~np.isnan(values))
    if len(distinct) < _MIN_CODES or len(values) < MIN_ROWS or 2 * len(distinct) > present:
        return False
    sparse = distinct[-1] - distinct[0] > 20 * len(distinct) and distinct[-1] >= _MIN_RANGE
    return bool(sparse and _order_says_nothing(values, target))


def whole_values(values: Floats) -> Floats:
    """The values that are there, of a column of whole numbers; none where it holds others."""
    present = values[~np.isnan(values)]
    return (
        present if len(present) and np.isfinite(present).all() and (present == np.round(present)).all() else np.empty(0)
    )


def words_of(name: str) -> str:
    """A name in lower case, words in it apart: "customerId" as "customer id"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def _order_says_nothing(values: Floats, target: Floats) -> bool:
    """Whether values differ in their mean target, but neighbours no less than others: names, and not quantities."""
    present = ~np.isnan(values)
    codes = np.unique(values[present], return_inverse=True)[1]
    y = target[present] - target[present].mean()
    counts = np.bincount(codes)
    effects = np.bincount(codes, y) / np.sqrt(counts) / max(y.std(), 1e-300)
    effects, n = effects[counts > 1], int((counts > 1).sum())
    if n < _MIN_CODES:
        return False
    together = ((effects**2).sum() - n) / np.sqrt(2 * n)
    order = (effects[1:] * effects[:-1]).sum() / (effects**2).sum() * np.sqrt(n)
    return bool(together > _MIN_EFFECT and order < _MAX_ORDER)


def means_missing(text: str) -> bool:
    """Whether a cell is blank or a word for missing."""
    word = text.strip().lower()
    return not word or word in MISSING_WORDS


def check_later_cells(name: str, cells: Sequence[Any], n_present: int, what: str) -> None:
    """Warn of cells of a later table that are no `what`, and count as missing.

    Parameters
    ----------
    name : str
        Of the column.
    cells : sequence
        The values, one for each row.
    n_present : int
        How many cells of the column are not missing.
    what : str
        What the column held in training, in the plural.

    Raises
    ------
    ValueError
        Half of the cells or more are such, so that it is not the column of training.
    """
    if not len(cells):
        return
    distinct = list(dict.fromkeys(repr(cell.item() if isinstance(cell, np.generic) else cell) for cell in cells))
    listed = ", ".join(distinct[:_SHOWN]) + (f" and {len(distinct) - _SHOWN:,} more" if len(distinct) > _SHOWN else "")
    times = f"{len(cells):,} of its {plural(n_present, 'cell')}"
    problem = f"Column {name!r} held {what} in training and now holds {listed} in {times}"
    if 2 * len(cells) >= n_present:
        raise ValueError(f"{problem}; pass the column that the model was trained with, or correct these cells.")
    warn_user(f"{problem}; {'it counts' if len(cells) == 1 else 'they count'} as missing.")


MAX_CLASSES = 20
"""More whole numbers than these are a continuous target."""

_CLASS_NAMES = re.compile(r"class|label|type|species|categor|cluster|segment|kind|group", re.IGNORECASE)


def kind_of_whole_numbers(numbers: NDArray[np.float64], name: str = "", rows: NDArray[np.float64] | None = None) -> str:
    """What whole numbers (n,) of a target are taken for: "classes", "counts", "ratings" or "amounts".

    Two values are classes, more than `MAX_CLASSES` amounts. Between these: counts where they start at 0 and become
    ever rarer, ratings where four or more in a row rise and fall in frequency once; else, or where the name of the
    target is one of classes ("type", "label"), classes. `rows` (n,): of each number, where they were counted.
    """
    values = np.unique(numbers)
    if len(values) <= 2:
        return "classes"
    if len(values) > MAX_CLASSES:
        return "amounts"
    low, high = int(values[0]), int(values[-1])
    if _CLASS_NAMES.search(name):
        return "classes"
    times = np.bincount((numbers - low).astype(np.int64), rows) if high - low < 10 * MAX_CLASSES else np.zeros(0)
    if _like_counts(low, times):
        return "counts"
    return "ratings" if _like_ratings(times) else "classes"


def _like_counts(low: int, times: NDArray[Any]) -> bool:
    """From 0 on, most often 0 or 1, and ever rarer; three values only where each is at most half as frequent."""
    if low != 0 or len(times) < 3:
        return False
    top = int(np.argmax(times))
    falls = _steps(times[top:])
    if top > 1 or (falls > 0).any() or times[-1] > times[top] / 2:
        return False
    return len(times) > 3 or bool((times[1:] <= times[:-1] / 2).all())


def _like_ratings(times: NDArray[Any]) -> bool:
    """Four or more values in a row whose frequencies rise and fall once at most: codes of classes go up and down."""
    if len(times) < 4 or not times.all():
        return False
    steps = _steps(times)
    steps = steps[steps != 0]
    return len(steps) > 0 and int((steps[1:] != steps[:-1]).sum()) <= 1


def _steps(times: NDArray[Any]) -> NDArray[np.float64]:
    """Whether each frequency is above (1) or below (-1) the one before, or within two standard errors of it (0)."""
    change = np.diff(times).astype(np.float64)
    return np.sign(change) * (np.abs(change) > 2 * np.sqrt(times[1:] + times[:-1]))


# -- text of numbers --------------------------------------------------------------------------------

MIN_MEANT = 20
"""Fewer categories than these are no amounts or dates."""
_MAX_READ, _FOR_FORMAT = 10_000, 50
_MARKS = ",.'\u2019 \u00a0\u202f"
_WHOLE = re.compile(r"[-+]?(?:0|[1-9]\d*)", re.ASCII)
_FRACTION = re.compile(r"[-+]?(?P<whole>0|[1-9]\d*|)(?P<decimal>[.,])(?P<digits>\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_GROUPED = re.compile(
    rf"[-+]?[1-9]\d{{0,2}}(?P<mark>[{_MARKS}])\d{{3}}(?P<more>(?:(?P=mark)\d{{3}})*)"
    r"(?:(?!(?P=mark))(?P<decimal>[.,])\d+)?",
    re.ASCII,
)


_CURRENCIES = "AUD BRL CAD CHF CNY CZK DKK EUR GBP HUF INR JPY KRW MXN NOK PLN RON RUB SEK TRY USD ZAR"
_CURRENCY = rf"(?:[A-Z]{{0,2}}[$€£¥₹₩₪₺₽]|(?:{'|'.join(_CURRENCIES.split())}|Rs|kr)(?![A-Za-z])\.?|zł)"
_AMOUNT = re.compile(
    rf"(?P<sign>[-+]?)(?:(?P<before>{_CURRENCY})\s?)?(?P<number>[-+]?[\d{_MARKS}]*\d)"
    rf"\s?(?P<times>[kKM]?)(?:\s?(?P<after>%|{_CURRENCY}))?"
)
MIN_AMOUNT_SHARE = 0.95
"""Of the categories of a column of amounts of money or percentages; the others become missing."""


def meant_by_text(categories: Sequence[Any], series: str) -> tuple[str, str, str] | None:
    """What text categories stand for: "numbers" or "dates", one of them, and pandas code that converts `series`.

    The code is "" where a point or comma may be of decimals or of thousands, and where units differ. None of integers,
    which may be codes, of numbers with zeros in front, of fewer than `MIN_MEANT` categories, and where some are
    neither; next to amounts of money and percentages a few may be.
    """
    if len(categories) <= MIN_MEANT - 1:
        return None
    step = -(-len(categories) // _MAX_READ)
    words = [word.strip() if isinstance(word, str) else word for word in categories[::step] if word is not None]
    if not all(isinstance(word, str) for word in words[:MIN_MEANT]):
        return None
    meaning = _meant_by_numbers(words, series) or _meant_by_amounts(words, series)
    return meaning or _meant_by_dates(words, series)


def _meant_by_numbers(words: Sequence[Any], series: str) -> tuple[str, str, str] | None:
    numbers, n_whole, n_missing = [], 0, 0
    for word in words:
        if not isinstance(word, str):
            return None
        if _WHOLE.fullmatch(word):
            n_whole += 1
        elif _FRACTION.fullmatch(word) or _GROUPED.fullmatch(word):
            numbers.append(word)
        elif not word or means_missing(word):
            n_missing += 1
        else:
            return None
    if len(numbers) < max(MIN_MEANT, n_whole):
        return None
    return "numbers", numbers[0], _conversion(numbers, series, coerce=n_missing > 0)


def _meant_by_amounts(words: Sequence[Any], series: str) -> tuple[str, str, str] | None:
    """The same of numbers next to a currency, "%", or "k" for thousands: "$1,200", "12.50 EUR", "12 %", "1.2k"."""
    sample = [word for word in words[: 2 * MIN_MEANT] if isinstance(word, str)]
    if 2 * sum(_AMOUNT.fullmatch(word) is not None for word in sample) < len(sample):  # most columns end here
        return None
    if not all(isinstance(word, str) for word in words):
        return None
    present = [word for word in words if word and not means_missing(word)]
    cells = [(word, cell) for word in present if (cell := _amount(word)) is not None]
    with_unit = [(word, cell) for word, cell in cells if cell[1] or cell[2]]
    scaled = [number for _, (number, _, times) in with_unit if times]
    n_plain = len(cells) - len(with_unit)
    if len(with_unit) < max(MIN_MEANT, n_plain) or len(cells) < MIN_AMOUNT_SHARE * len(present):
        return None
    if 2 * sum(_FRACTION.fullmatch(number) is not None for number in scaled) < len(scaled):  # 12K may be a code
        return None
    units, code = {unit for _, (_, unit, _) in with_unit}, ""
    if len(units) == 1 and not scaled:
        (unit,) = units
        text, numbers = f"{series}.str.replace({unit!r}, '')", [number for _, (number, _, _) in cells]
        if any(re.search(r"\s", word) for word, _ in cells):  # pandas reads no "- 5.20"
            text, numbers = (
                rf"{text}.str.replace(r'\s', '', regex=True)",
                [re.sub(r"\s", "", number) for number in numbers],
            )
        numbers = [number for number in numbers if not _WHOLE.fullmatch(number)]
        code = _conversion(numbers, text, coerce=len(cells) < len(words))
    return "numbers", with_unit[0][0], code


def _amount(word: str) -> tuple[str, str, str] | None:
    """The number, the unit and "k" or "M" of a cell, "" where it has none; None where it is no number with a unit."""
    match = _AMOUNT.fullmatch(word)
    if match is None or (match["before"] and match["after"]):
        return None
    number = match["sign"] + match["number"]
    if not any(kind.fullmatch(number) for kind in (_WHOLE, _FRACTION, _GROUPED)):
        return None
    return number, match["before"] or match["after"] or "", match["times"]


def _conversion(numbers: Sequence[str], text: str, *, coerce: bool) -> str:
    """pandas code that converts `text`, by the marks in numbers that are not whole; "" where their meaning is open.

    `coerce`: whether there are other cells, which become missing.
    """
    decimals, thousands, open_marks = set(), set(), set()  # marks by what they surely are, and those that may be both
    for number in numbers:
        fraction, grouped = _FRACTION.fullmatch(number), _GROUPED.fullmatch(number)
        if grouped is None:
            assert fraction is not None
            decimals.add(fraction["decimal"])
        elif fraction is not None:
            open_marks.add(grouped["mark"])
        else:
            thousands.add(grouped["mark"])
            decimals |= {grouped["decimal"]} - {None}
    open_marks -= decimals | thousands
    if decimals and open_marks:  # of 1.234 and 0,5
        thousands, open_marks = thousands | open_marks, set()
    if open_marks or len(decimals) > 1 or decimals & thousands:
        return ""
    text += "".join(f".str.replace({mark!r}, '')" for mark in sorted(thousands))
    text += ".str.replace(',', '.')" if "," in decimals else ""
    return f"pd.to_numeric({text}, errors='coerce')" if coerce else f"{text}.astype(float)"


def _meant_by_dates(words: Sequence[Any], series: str) -> tuple[str, str, str] | None:
    sample = [word for word in words[: 2 * MIN_MEANT] if isinstance(word, str)]
    if 2 * sum(re.search(_STARTS, word) is not None for word in sample) < len(sample):  # most columns end here
        return None
    if not all(isinstance(word, str) for word in words):
        return None
    text = pd.Series(words, dtype=object)
    format_ = date_format(text[:: -(-len(text) // _FOR_FORMAT)])  # of few, as there are hundreds of formats to try
    if format_ is None:
        return None
    are_dates = parse_dates(text, format_).notna()
    if are_dates.sum() < max(MIN_MEANT, MIN_DATE_SHARE * len(text)):
        return None
    options = "" if are_dates.all() else ", errors='coerce'"
    options += ", utc=True" if format_ == "ISO8601" and any(map(_OFFSET.search, words)) else ""
    return "dates", str(text[are_dates].iloc[0]), f"pd.to_datetime({series}, format={format_!r}{options})"


# -- dates ------------------------------------------------------------------------------------------

MIN_DATE_SHARE = 0.95
"""Of the cells of a column of dates; the others become missing."""

_DAYS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m-%d-%Y", "%d-%m-%Y", "%Y.%m.%d", "%d.%m.%y", "%m/%d/%y",
         "%d/%m/%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y",
         "%a, %d %b %Y")  # fmt: skip
_MONTHS = ("%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%B %Y", "%b-%Y", "%b-%y")
"""Of dates without a day, which are the first of the month."""
_TIMES = (
    "",
    " %H:%M",
    " %H:%M:%S",
    " %H:%M:%S.%f",
    " %I:%M %p",
    " %I:%M:%S %p",
    "T%H:%M",
    "T%H:%M:%S",
    ", %H:%M",
    ", %H:%M:%S",
)
_SAMPLE = 200
_OFFSET = re.compile(r"(\d:\d{2}(?:\.\d+)?) ?(?:Z|UTC|[-+]\d{2}(?::?\d{2})?)\s*$", re.IGNORECASE)
_STARTS = (
    r"^(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}\.?[ -][^\W\d_]{3,9}\.?[ -]\d{2,4}|[A-Za-z]{3,9},? \d{1,2},? "
    r"(?:[A-Za-z]{3,9} )?\d{4}|\d{4}[-/](?:0[1-9]|1[0-2])$|(?:0?[1-9]|1[0-2])/\d{4}$|[A-Za-z]{3,9}[ -](?:\d{4}|\d{2})$)"
)
_YEAR = r"(?<!\d)(?:1[5-9]|20|21|99)\d{2}(?!\d)"
_CLOCK = r"\d{1,3}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AaPp][Mm])?"


def format_of(column: pd.Series, dayfirst: bool | None = None) -> str | None:
    """The format of a column of dates: "moments" for a date type; None where it holds no dates."""
    if pd.api.types.is_datetime64_any_dtype(column) or holds_days(column):
        return "moments"
    is_text = pd.api.types.infer_dtype(column, skipna=True) in ("string", "categorical")
    return date_format(column.astype("str").where(column.notna()), dayfirst) if is_text else None


def has_offsets(column: pd.Series) -> bool:
    """Whether moments have a time zone, or an offset from UTC where they are text."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return not _has_days_alone(column) and column.dt.tz is not None
    return any(
        getattr(value, "tzinfo", None) is not None or (isinstance(value, str) and _OFFSET.search(value) is not None)
        for value in column.dropna().unique()
    )


def _has_days_alone(column: pd.Series) -> bool:
    """Whether a column is of Arrow's dates in pandas, which have no time of day."""
    return isinstance(column.dtype, pd.ArrowDtype) and str(column.dtype).startswith("date")


def holds_days(column: pd.Series) -> bool:
    """Whether a column of objects holds dates of Python, and missing values."""
    if not pd.api.types.is_object_dtype(column.dtype):
        return False
    present = column.dropna()
    return bool(len(present)) and all(isinstance(value, datetime.date) for value in present)


def moments_of(
    name: str, column: pd.Series, format_: str, *, later: bool = False, dayfirst: bool | None = None
) -> pd.Series:
    """The moments of a column of dates, in whatever type it comes; cells that are none become missing.

    Of a `later` table each is warned of, as the format was found in other cells. Where `format_` is "moments" that of
    text is found in the text, with the day first or not as `dayfirst` says.

    Raises
    ------
    ValueError
        Most of the cells are no dates.
    """
    present = column.dropna()
    if pd.api.types.is_datetime64_any_dtype(column):
        moments = column.astype("datetime64[us]") if _has_days_alone(column) else column
    elif len(present) and pd.api.types.infer_dtype(present) in (
        *("integer", "floating", "boolean", "decimal", "mixed-integer-float", "complex"),
    ):
        moments = pd.Series(pd.NaT, column.index, dtype="datetime64[us]")
    elif holds_days(column):
        moments = parse_dates(column, None)
    else:
        text, other_cells = text_and_rest(column)
        if format_ == "moments":
            format_ = date_format(text, dayfirst) or "ISO8601"
            order, is_open = day_and_month(format_, text) if later and dayfirst is None else ("", False)
            if is_open:
                warn_user(
                    f"Column {name!r} held dates in training, and now text such as {text.dropna().iloc[0]!r}, which is "
                    f"read with {order}; write dates like 2024-02-29 to leave no doubt."
                )
        moments, column = (
            moments_of_cells(text, other_cells, format_),
            text.astype(object).where(other_cells.isna(), other_cells),
        )
        present = column.dropna()
    lost = moments.isna().to_numpy() & column.notna().to_numpy()
    if later or lost.sum() > (1 - MIN_DATE_SHARE) * len(present):
        check_later_cells(name, column[lost].tolist(), len(present), "dates")
    return moments


def text_and_rest(column: pd.Series) -> tuple[pd.Series, pd.Series]:
    """The text (n,) of a column, without words that mean missing, and its other cells (n,)."""
    is_text = column.map(lambda cell: isinstance(cell, str)).astype(bool)
    return without_words(column.astype("str").where(is_text)), column.astype(object).mask(is_text)


def moments_of_cells(text: pd.Series, other_cells: pd.Series, format_: str) -> pd.Series:
    """The moments (n,) of text in a format, and of other cells that are dates."""
    moments = parse_dates(text, format_)
    if not holds_days(other_cells):
        return moments
    return moments.where(text.notna(), parse_dates(other_cells, None).astype(moments.dtype))


def date_format(text: pd.Series, dayfirst: bool | None = None) -> str | None:
    """The format in which text holds dates; None where it does not.

    Parameters
    ----------
    text : pandas.Series of shape (n,)
    dayfirst : bool, optional
        Whether 03/04 is the third of April. By default the format is taken under which most cells are dates, in a tie
        the one with the month first for slashes, with the day first for points and hyphens.
    """
    present = without_words(text).dropna()
    sample = present.head(_SAMPLE)
    if not len(sample) or sample.str.contains(_STARTS, regex=True).mean() < MIN_DATE_SHARE:
        return None
    counts = present.value_counts(sort=False)
    cells, times = pd.Series(counts.index), counts.to_numpy()
    best, max_dates, left = None, 0, np.ones(len(cells), dtype=np.bool_)  # cells that the best format does not read
    for format_ in _candidates(sample, dayfirst):
        if not parse_dates(cells[left], format_).notna().any():
            continue
        are_dates = parse_dates(cells, format_).notna().to_numpy()
        if (n_dates := int(times[are_dates].sum())) > max_dates:
            best, max_dates, left = format_, n_dates, ~are_dates
    return best if max_dates >= MIN_DATE_SHARE * len(present) else None


def _candidates(sample: pd.Series, dayfirst: bool | None) -> list[str]:
    """Formats, the one under which most of a sample are dates first."""
    formats = [*_MONTHS, "ISO8601"]
    for day in _DAYS:
        first = day.index("%d") < day.index("%m") if "%m" in day and not day.startswith("%Y") else None
        if dayfirst is None or first is None or first is dayfirst:
            formats += [day + time for time in _TIMES]
    dates = {format_: int(parse_dates(sample, format_).notna().sum()) for format_ in formats}
    rank = sorted((format_ for format_ in formats if dates[format_]), key=lambda format_: -dates[format_])
    n_dates = dates[rank[0]] if rank else 0
    preferred = [format_ for format_ in rank if dates[format_] == n_dates]
    hyphens = [format_ for format_ in preferred if format_.startswith("%d-%m")]
    return [*hyphens, *(format_ for format_ in rank if format_ not in hyphens)]


def moments_of_words(words: Sequence[str]) -> pd.Series:
    """The moments of cells that are dates, each in a format of its own."""
    moments = [
        parse_dates(word, date_format(word)) for word in (pd.Series([word]) for word in words) if date_format(word)
    ]
    return pd.concat(moments).dropna() if moments else pd.Series([], dtype="datetime64[us]")


def looks_like_dates(text: pd.Series) -> bool:
    """Whether cells begin as dates do, and most have a year of four digits, whatever their formats are."""
    sample = without_words(text).dropna().head(_SAMPLE)
    if not len(sample) or sample.str.contains(_STARTS, regex=True).mean() < MIN_DATE_SHARE:
        return False
    return bool(sample.str.contains(_YEAR, regex=True).mean() > 0.5)


def looks_like_times(text: pd.Series) -> bool:
    """Whether cells are times of day, or hours and minutes, such as 09:45."""
    sample = without_words(text).dropna().head(_SAMPLE)
    return bool(len(sample)) and bool(sample.str.fullmatch(_CLOCK).mean() >= MIN_DATE_SHARE)


def without_words(text: pd.Series) -> pd.Series:
    """Text without blanks around, and with missing values where words for them stand."""
    text = text.str.strip()
    return text.mask(text.map(lambda cell: isinstance(cell, str) and means_missing(cell)).astype(bool))


def day_and_month(format_: str, text: pd.Series) -> tuple[str, bool]:
    """In words, whether the day or the month comes first, "" where it is plain; and whether all cells leave a doubt."""
    if not format_.startswith(("%d", "%m")) or not {"%d", "%m"} <= {format_[:2], format_[3:5]}:
        return "", False
    fields = ("%d", "%m")
    swapped = format_.replace(fields[0], "\0").replace(fields[1], fields[0]).replace("\0", fields[1])
    doubt = bool(parse_dates(without_words(text).dropna(), swapped).notna().all())
    return "the day before the month" if format_.startswith("%d") else "the month before the day", doubt


def parse_dates(values: pd.Series, format_: str | None) -> pd.Series:
    """Moments of text in a format, or of dates of Python, at the clock time as written; missing where no date is."""
    if format_ is None:
        values = values.map(lambda value: value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value)
    elif format_ == "ISO8601":  # offsets of summer and winter would move the clock of one column
        values = values.str.replace(_OFFSET, r"\1", regex=True)
    moments = pd.to_datetime(values, format=format_, errors="coerce")
    if moments.dtype != "datetime64[ns]":
        return moments
    left = values[moments.isna()].dropna().unique()  # pandas before 3 makes nanoseconds of all dates
    out_of_range = {value: moment for value in left if (moment := _beyond_nanoseconds(value, format_)) is not None}
    if not out_of_range:
        return moments
    by_value = pd.Series(
        np.array(list(out_of_range.values()), dtype="datetime64[us]"), index=pd.Index(out_of_range, dtype=object)
    )
    return moments.astype("datetime64[us]").fillna(values.astype(object).map(by_value))


def _beyond_nanoseconds(value: Any, format_: str | None) -> datetime.date | None:
    """The date of a cell in a year that nanoseconds, from 1677 to 2262, do not reach; None of any other cell."""
    try:
        if format_ == "ISO8601":
            value = datetime.datetime.fromisoformat(value)
        elif format_ is not None:
            value = datetime.datetime.strptime(value, format_)
    except ValueError:
        return None
    return value if isinstance(value, datetime.date) and not 1677 < value.year < 2262 else None
