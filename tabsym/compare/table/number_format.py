"""Text columns of numbers: which they are, and how they are written: decimal comma, thousands, currency, units.

A format is inferred from the distinct cells of a column and parses later cells in the same way. A number is only read
where its digit groups are valid, so that dates, ranges, phone numbers and version numbers stay text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.compare.table.files import ReadOptions
from tabsym.frame.meaning import means_missing
from tabsym.messages import plural
from tabsym.plots.style import cut

Floats = NDArray[np.float64]

_CODES = "USD EUR GBP JPY CHF INR CAD AUD CNY RMB SEK NOK DKK PLN BRL MXN ZAR RUB TRY KRW HKD NZD SGD CZK HUF ILS THB"
_CURRENCY = rf"(?:(?:US|A|C|R|HK|NZ|S)?\$|[€£¥₹₽₩₺₪฿₫]|(?:{'|'.join(_CODES.split())}|Rs|kr)(?![a-z])\.?|zł)"
_BLANK = r"[\s\u00a0\u202f\u2009]"
_DASH = r"[-\u2212\u2013\u2014]"
_UNIT = r"[^\d\s.,;:()<>=+\-\u2212\u2013\u2014_'#&|/\\][^\d\s()<>=+;:&|\\]*"
_CELL = re.compile(
    rf"""{_BLANK}*(?P<about>[<>≤≥~≈]=?|=|ca\.|approx\.|about)?{_BLANK}*
    (?P<open>\()?{_BLANK}*(?P<sign>[-+\u2212\u2013])?{_BLANK}*(?P<currency>{_CURRENCY})?{_BLANK}*(?P<sign_after>[-+\u2212])?{_BLANK}*
    (?P<digits>(?:\d(?:[\d'\u2019_]|[.,](?!{_DASH})|{_BLANK}(?=\d))*|[.,]\d+)(?:[eE][-+]?\d+(?![\w%]))?)
    (?P<no_cents>[.,]{_DASH}{{1,2}})?
    {_BLANK}*(?:(?P<unit>/?{_UNIT}(?:{_BLANK}[^\d\s()<>=+;:&|\\-]+)?[23]?)|\({_BLANK}*(?P<in_brackets>{_UNIT}){_BLANK}*\))?
    {_BLANK}*(?P<tail>[-+])?(?P<close>\))?{_BLANK}*""",
    re.VERBOSE | re.IGNORECASE,
)
_QUOTED = re.compile(r"""(?:="|["'])(?P<inner>[^"']*)["']?""")  # as spreadsheets keep a number from being one
_PLAIN = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_MARKS = str.maketrans("\u066b\u066c\u066a\uff0e\uff0c\uff05\uff0b\uff0d", ".,%.,%+-")  # Arabic, and of full width
_SPACES = " \u00a0\u202f\u2009"
GROUP_MARKS = "'\u2019_" + _SPACES
"""What may separate groups of digits besides a comma or a point."""

_MULTIPLIERS = {
    "k": 1e3, "thousand": 1e3, "tsd": 1e3, "m": 1e6, "mn": 1e6, "mio": 1e6, "mio.": 1e6, "million": 1e6,
    "millions": 1e6, "b": 1e9, "bn": 1e9, "mrd": 1e9, "mrd.": 1e9, "billion": 1e9, "billions": 1e9, "t": 1e12,
    "trillion": 1e12, "lakh": 1e5, "lakhs": 1e5, "lac": 1e5, "crore": 1e7, "crores": 1e7, "cr": 1e7,
}  # fmt: skip
_FAMILIES: tuple[dict[str, float], ...] = (
    {"mg": 1e-6, "g": 1e-3, "gr": 1e-3, "kg": 1.0, "t": 1e3},
    {"mm": 1e-3, "cm": 1e-2, "dm": 0.1, "m": 1.0, "km": 1e3},
    {"ml": 1e-3, "cl": 1e-2, "dl": 0.1, "l": 1.0, "hl": 100.0},
    {"ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "min": 60.0, "mins": 60.0, "h": 3600.0, "hr": 3600.0,
     "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0},
    {"b": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12},
    {"w": 1.0, "kw": 1e3, "mw": 1e6},
    {"oz": 1 / 16, "lb": 1.0, "lbs": 1.0},
    {"st": 1.0, "nd": 1.0, "rd": 1.0, "th": 1.0},
    {"year": 1.0, "years": 1.0, "yr": 1.0, "yrs": 1.0, "y": 1.0},
    {"month": 1.0, "months": 1.0, "mo": 1.0, "mos": 1.0},
    {"week": 1.0, "weeks": 1.0, "wk": 1.0, "wks": 1.0},
    {"piece": 1.0, "pieces": 1.0, "pc": 1.0, "pcs": 1.0, "item": 1.0, "items": 1.0, "unit": 1.0, "units": 1.0},
)  # fmt: skip


_SMALLER = 10.0  # times: numbers with "M" that are so much smaller than those without it are millions, not metres


@dataclass(frozen=True)
class Cell:
    """One cell taken apart: its digits as written, their sign, its currency, its unit, and a sign such as "<"."""

    digits: str
    sign: int
    currency: str
    unit: str
    about: str


@dataclass(frozen=True)
class NumberFormat:
    """How a column writes its numbers.

    Attributes
    ----------
    decimal : {".", ","}
    thousands : str
        Every character that may separate groups of digits.
    factors : dict of str -> float
        Unit, in lower case -> what a number with that unit is multiplied by; "" is a number without a unit.
    words : tuple of str
        Cells, in lower case, that mean missing in this column, besides those of `tabsym.frame.meaning`.
    example : str
        A cell that shows the format.
    """

    decimal: str
    thousands: str
    factors: dict[str, float]
    words: tuple[str, ...] = ()
    example: str = ""

    def parse(self, values: pd.Series) -> tuple[Floats, NDArray[np.bool_]]:
        """Numbers (n,), NaN where a cell is missing or is no number, and which cells (n,) are no number.

        Parameters
        ----------
        values : pandas.Series of shape (n,)
            Text, numbers and missing values.
        """
        codes, distinct = pd.factorize(values.astype(object), use_na_sentinel=True)
        parsed = [self._parse_one(value) for value in distinct]
        numbers = np.array([np.nan if number is None else number for number in parsed] + [np.nan])
        strange = np.array([number is None for number in parsed] + [False])
        return numbers[codes], strange[codes]

    def _parse_one(self, value: object) -> float | None:
        """The number of a cell; NaN for a word that means missing, None for a cell that is no number."""
        if not isinstance(value, str):
            try:
                return float(value)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                return None
        if means_missing(value) or value.strip().lower() in self.words:
            return float("nan")
        cell = split_cell(value)
        if cell is None or cell.unit not in self.factors:
            return None
        number = number_of(cell.digits, self.decimal, self.thousands)
        return None if number is None else cell.sign * number * self.factors[cell.unit]


def split_cell(text: str) -> Cell | None:
    """Take a cell apart; None where it is not a number with at most a sign, a currency and a unit around it.

    Digits of other scripts are those of ASCII, and "12.-" or "12,--" is a price without cents.
    """
    if not text.isascii():
        text = re.sub(r"\d", lambda digit: str(int(digit[0])), text.translate(_MARKS))
    quoted = _QUOTED.fullmatch(text.strip())
    match = _CELL.fullmatch(quoted["inner"] if quoted else text)
    if match is None or (match["open"] is None) != (match["close"] is None):
        return None
    signs = [sign for sign in (match["sign"], match["sign_after"], match["tail"]) if sign and sign != "+"]
    negative = len(signs) + (match["open"] is not None)
    if negative > 1 or (match["tail"] == "-" and match["unit"]):
        return None
    currency, unit = (match["currency"] or "").lower(), (match["unit"] or match["in_brackets"] or "").strip().lower()
    if unit and re.fullmatch(_CURRENCY, unit, re.IGNORECASE):
        if currency:
            return None
        currency, unit = unit, ""
    digits = match["digits"] + (f"{match['no_cents'][0]}00" if match["no_cents"] else "")
    return Cell(digits, -1 if negative else 1, currency.rstrip("."), unit, (match["about"] or "").lower())


def number_of(digits: str, decimal: str, thousands: str) -> float | None:
    """The value of digits under these separators; None where the groups of digits are not valid."""
    mantissa, mark, exponent = digits.lower().partition("e")
    whole, _, fraction = mantissa.partition(decimal)
    if not (fraction.isdigit() or not fraction) or not (whole or fraction):
        return None
    if whole and not whole.isdigit():
        marks = {sign for sign in whole if not sign.isdigit()}
        if len(marks) > 1 or not marks <= set(thousands):
            return None
        groups = whole.split(marks.pop())
        inner = all(len(group) == 3 for group in groups[1:])
        indian = len(groups[-1]) == 3 and all(len(group) == 2 for group in groups[1:-1]) and len(groups) > 2
        if not (inner or indian) or not 1 <= len(groups[0]) <= 3 or groups[0].startswith("0"):
            return None
        whole = "".join(groups)
    return float(f"{whole or '0'}.{fraction or '0'}{mark}{exponent}")


def is_plain(text: str) -> bool:
    """Whether a cell is a number as programs write it, such as -1.5e3."""
    return _PLAIN.fullmatch(text) is not None


def looks_ambiguous(cells: Sequence[str]) -> str | None:
    """The separator, "," or ".", where each cell that has one has it before groups of three digits only."""
    marks = {mark for cell in cells for mark in ",." if mark in cell}
    if len(marks) != 1:
        return None
    mark = marks.pop()
    with_mark = [cell for cell in cells if mark in cell]
    groups = all(number_of(cell, "#", mark) is not None and "e" not in cell.lower() for cell in with_mark)
    return mark if groups else None


def are_thousands(cells: Sequence[str]) -> bool:
    """Whether points separate thousands: groups of three, round ones among them, and other numbers have no point.

    Numbers of three decimals would all have a point where zeros are kept, and would not all have three where not.
    """
    with_point = [cell for cell in cells if "." in cell]
    return (
        0 < len(with_point) < len(cells)
        and looks_ambiguous(cells) == "."
        and any(cell.endswith("0") for cell in with_point)
        and all(len(cell) <= 3 for cell in cells if "." not in cell)
    )


def separators_of(
    cells: Mapping[str, int], decimal: str | None, thousands: str | None, *, prefer: str, scaled: bool
) -> tuple[str, str]:
    """The decimal separator of a column and what may separate its thousands.

    Parameters
    ----------
    cells : mapping of digits -> how often they occur
    decimal, thousands : str or None
        As the user gave them.
    prefer : {".", ","}
        The decimal separator where the cells leave a doubt: see `usual_decimal`.
    scaled : bool
        Whether larger units save large numbers, so that points in "1.610k" are of decimals.
    """
    if decimal or thousands:
        decimal = decimal or ("," if thousands == "." else ".")
        return decimal, thousands if thousands is not None else ("," if decimal == "." else ".") + GROUP_MARKS
    if are_thousands(list(cells)) and not scaled:
        return ",", "." + GROUP_MARKS
    if looks_ambiguous(list(cells)) == "." and prefer == ".":
        return ".", "," + GROUP_MARKS
    best, best_read = (".", ","), -1  # those under which most of these digits are numbers; in a tie the preferred ones
    for decimal, mark in ((".", ","), (",", ".")) if prefer == "." else ((",", "."), (".", ",")):
        thousands = mark + GROUP_MARKS
        read = sum(times for digits, times in cells.items() if number_of(digits, decimal, thousands) is not None)
        if read > best_read:
            best, best_read = (decimal, thousands), read
    return best


def usual_decimal(text: Mapping[str, Mapping[str, int]], separator: str) -> str:
    """The decimal separator of a table: that of the columns that leave no doubt.

    In a tie a point, of a file with semicolons between its fields (`separator`) a comma. `text`: by column, how often
    each cell occurs.
    """
    votes = {".": 0, ",": 0}
    for counts in text.values():
        cells = [cell.digits for cell in map(split_cell, counts) if cell is not None]
        if len(cells) < len(counts) / 2:
            continue
        for mark, other in ((".", ","), (",", ".")):
            votes[mark] += any(
                number_of(cell, mark, other) is not None and number_of(cell, other, mark) is None for cell in cells
            )
    if votes["."] == votes[","]:
        return "," if separator == ";" else "."
    return max(votes, key=lambda mark: votes[mark])


def unit_factors(cells: Sequence[tuple[Cell, int]]) -> dict[str, float] | str:
    """What each unit multiplies its numbers by; where units cannot be brought to one, a sentence's words for why."""
    currencies = Counter(cell.currency for cell, _ in cells if cell.currency)
    if len(currencies) > 1:
        return f"its cells mix the currencies {_listed(currencies)}"
    units: Counter[str] = Counter()
    for cell, times in cells:
        units[cell.unit] += times
    named = [unit for unit in units if unit]
    if not named:
        return {"": 1.0}
    if len(named) == 1:
        return _one_unit(named[0], units, cells)
    if all(unit in _MULTIPLIERS for unit in named):
        return {"": 1.0} | {unit: _MULTIPLIERS[unit] for unit in named}
    for family in _FAMILIES:
        if all(unit in family for unit in named) and ("" not in units or len({family[unit] for unit in named}) == 1):
            return {"": 1.0} | {unit: family[unit] for unit in named}
    return f"its cells mix the units {_listed(units)}"


def _one_unit(unit: str, units: Counter[str], cells: Sequence[tuple[Cell, int]]) -> dict[str, float]:
    """One unit, and bare numbers: a multiplier or per cent where the bare numbers are of another size."""
    if "" not in units:
        return {unit: 1.0, "": 1.0}
    if unit in _MULTIPLIERS and _middle(cells, "") > _SMALLER * _middle(cells, unit):
        return {unit: _MULTIPLIERS[unit], "": 1.0}
    if unit == "%":
        bare = [number_of(cell.digits, ".", ",") for cell, _ in cells if not cell.unit]
        if all(value is not None and value <= 1 for value in bare) and any(bare):
            return {unit: 0.01, "": 1.0}
    return {unit: 1.0, "": 1.0}


def _middle(cells: Sequence[tuple[Cell, int]], unit: str) -> float:
    """The median of the numbers that have a unit, as far as they are written with points."""
    values = [number_of(cell.digits, ".", "," + GROUP_MARKS) for cell, _ in cells if cell.unit == unit]
    return float(np.median([value for value in values if value is not None] or [0.0]))


def _listed(names: Counter[str]) -> str:
    shown = [repr(name) for name, _ in names.most_common(5) if name]
    return " and ".join(shown[:2]) if len(shown) <= 2 else ", ".join(shown)


# -- whether a column of text is one of numbers -------------------------------------------------------


def not_read(words: Mapping[str, int], one: str, several: str) -> str:
    """Cells that are not what the column is, in words."""
    times = sum(words.values())
    cells = plural(times, f"cell that is not {one}", f"cells that are not {several}")
    return f"{cells} ({quoted(words)})"


def quoted(words: Mapping[str, int]) -> str:
    """The most frequent words, five at most."""
    most = sorted(words, key=lambda word: -words[word])
    shown = ", ".join(repr(cut(word, 30)) for word in most[:5])
    return shown + (f" and {len(words) - 5:,} more" if len(words) > 5 else "")


_MIN_NUMBERS = 0.5  # of the cells of a column of numbers, the other ones being words for missing
_MAX_OTHER_CELLS, _MAX_OTHER_WORDS = 0.2, 3  # of words that are not known to mean missing
_INFINITE = re.compile(r"\s*[-+]?inf(?:inity)?\s*", re.IGNORECASE)  # missing, as infinite numbers are
_MAX_TYPING_ERRORS = 0.01  # of the cells, whatever they hold
_MIN_DISTINCT = 10  # numbers, next to words that are not known to mean missing
MAX_CLASSES = 20
"""Of a target of text."""


class PlainNumbers:
    """The answer for a typed column of text whose cells are all plain numbers: it stays text."""


@dataclass(frozen=True)
class TextColumn:
    """A column of text, by its distinct cells: whether it is one of numbers, and how they are written.

    `prefer`: the decimal separator where its cells leave a doubt; `untyped`: of a file without types, such as CSV.
    """

    name: str
    counts: dict[str, int]
    options: ReadOptions
    prefer: str
    untyped: bool
    is_target: bool

    def read(self) -> tuple[NumberFormat, str] | str | PlainNumbers | None:
        """The format and a note; a note that the column is read as text; None where it is plainly text."""
        forced = self.name in self.options.numeric
        parsed = {text: split_cell(text) for text in self.counts}
        cells = {text: (cell, self.counts[text]) for text, cell in parsed.items() if cell is not None}
        words = {text: times for text, times in self.counts.items() if parsed[text] is None}
        total = sum(self.counts.values())
        numeric = sum(times for _, times in cells.values())
        known = sum(times for word, times in words.items() if means_missing(word))
        if not numeric or (numeric < _MIN_NUMBERS * (total - (known if forced else 0)) and not forced):
            return self._refuse(words) if forced else None
        factors = unit_factors(list(cells.values()))
        if isinstance(factors, str) and forced:
            raise ValueError(f"Column {self.name!r} is in numeric, but {factors}; convert them to one unit first.")
        if isinstance(factors, str):
            return self._left(factors, "convert them to one unit")
        if not forced and _are_bounds([cell for cell, _ in cells.values()]):
            return self._left("its cells are bounds on either side of a number")
        digits: Counter[str] = Counter()
        for cell, times in cells.values():
            digits[cell.digits] += times
        scaled = len({factors[cell.unit] for cell, _ in cells.values()}) > 1
        asked = self.options.decimal, self.options.thousands
        decimal, thousands = separators_of(digits, *asked, prefer=self.prefer, scaled=scaled)
        good = {text for text, (cell, _) in cells.items() if number_of(cell.digits, decimal, thousands) is not None}
        other = {text: times for text, times in self.counts.items() if text not in good}
        unknown = {text: times for text, times in other.items() if not means_missing(text)}
        values = {number_of(cells[text][0].digits, decimal, thousands) for text in good}
        doubtful = {text: times for text, times in unknown.items() if not _INFINITE.fullmatch(text)}
        if not good or (not forced and not self._few(doubtful, total, len(values))):
            if forced:
                return self._refuse(unknown)
            left = f"{sum(unknown.values()):,} of its cells are not, such as {quoted(unknown)}"
            return self._left(left) if good else None
        if not forced and self._codes(good, cells, decimal, thousands):
            zeros = any(text.strip().startswith("0") and len(text.strip()) > 1 for text in good)
            why = "leading zeros, as codes have" if zeros else "several spellings of one number, as codes have"
            return self._left(f"they have {why}")
        plain = not other and all(is_plain(text) and "." not in text for text in good)
        if plain and not forced and not self.untyped:
            return PlainNumbers()
        example = max(good, key=lambda text: (not is_plain(text), self.counts[text], text))
        missing = tuple(sorted(text.strip().lower() for text in unknown))
        format_ = NumberFormat(decimal, thousands, factors, missing, example)
        return format_, self._note(format_, good, cells, other, digits)

    def _few(self, unknown: dict[str, int], total: int, n_values: int) -> bool:
        """Whether words that are not known to mean missing are few enough to mean it all the same."""
        cells = sum(unknown.values())
        if not cells:
            return True
        most = _MAX_OTHER_CELLS if len(unknown) <= _MAX_OTHER_WORDS else _MAX_TYPING_ERRORS
        return n_values >= _MIN_DISTINCT and cells <= most * total

    def _codes(self, good: set[str], cells: dict[str, tuple[Cell, int]], decimal: str, thousands: str) -> bool:
        """Whether plain numbers are codes: leading zeros, or in a typed column several spellings of one number."""
        plain = [cells[text][0].digits for text in good if is_plain(text.strip())]
        if len(plain) < len(good):
            return False
        if any(digits.startswith("0") and digits[1:].isdigit() for digits in plain):
            return True
        values = {number_of(digits, decimal, thousands) for digits in plain}
        return not self.untyped and len(set(plain)) > len(values)

    def _note(
        self, format_: NumberFormat, good: set[str], cells: dict[str, tuple[Cell, int]], other: dict[str, int],
        digits: dict[str, int],
    ) -> str:  # fmt: skip
        """One line on how the column was read; nothing of plain numbers in a file without types."""
        how = []
        if not all(is_plain(text) for text in good):
            how.append(f"written as {format_.example!r}")
        ambiguous = looks_ambiguous(list(digits))
        if ambiguous and any(cell.count(ambiguous) > 1 for cell in digits):  # no decimal separator
            ambiguous = None
        if ambiguous and self.options.decimal is None and self.options.thousands is None:
            shown = next(cell for cell in digits if ambiguous in cell)
            value = number_of(shown, format_.decimal, format_.thousands)
            option = "--thousands" if ambiguous == format_.decimal else "--decimal"
            how.append(f"{shown!r} read as {value:,.15g}; use {option} {ambiguous} for the other reading")
        if any(cells[text][0].about for text in good):
            how.append("signs such as '<' ignored")
        scaled = sorted(unit for unit, factor in format_.factors.items() if factor != 1.0)
        if scaled:
            how.append("with " + ", ".join(f"{unit!r} as {format_.factors[unit]:,.10g} times" for unit in scaled[:5]))
        blank = {text: times for text, times in other.items() if text.strip()}
        if blank:
            how.append(f"{not_read(blank, 'a number', 'numbers')} as missing")
        if not how and self.untyped:
            return ""
        said = f" ({'; '.join(how)})" if how else " (its type is text)"
        if self.is_target:
            classes = f"; as classes (--task {'binary' if len(good) == 2 else 'multiclass'}) they keep their text"
            return f"Target {self.name!r} is read as numbers{said}{classes if len(good) <= MAX_CLASSES else ''}."
        return f"Column {self.name!r} is read as numbers{said}; use --categorical {quote(self.name)} to keep the text."

    def _left(self, why: str, remedy: str = "") -> str:
        remedy = remedy or f"use --numeric {quote(self.name)}"
        return f"Column {self.name!r} looks like numbers but is read as text, as {why}; {remedy} to read numbers."

    def _refuse(self, words: Mapping[str, int]) -> str:
        raise ValueError(
            f"Column {self.name!r} is in numeric, but most of its cells are not numbers ({quoted(words)}); "
            "remove it from numeric (--numeric)."
        )


def _are_bounds(cells: Sequence[Cell]) -> bool:
    """Whether cells such as "<=50" and ">50" part the values in two, so that the signs are what matters."""
    sides: dict[str, set[str]] = {}
    for cell in cells:
        sides.setdefault(cell.digits, set()).add(cell.about[:1])
    return any({"<", ">"} <= signs or {"≤", ">"} <= signs or {"<", "≥"} <= signs for signs in sides.values())
