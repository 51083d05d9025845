"""The formulas of an Excel file, evaluated as Excel does: as far as `to_excel` writes them."""

import datetime as dt
import re

import numpy as np
import openpyxl

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"]|"")*")|(?P<ref>(?:'(?:[^']|'')+'!)?\$?[A-Z]{1,3}\$?\d+(?::\$?[A-Z]{1,3}\$?\d+)?)(?![A-Za-z0-9(])"""
    r"""|(?P<name>[A-Z]+[0-9]*\()|(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?)|(?P<sign><>|[-+*/^=<>(),&])"""
)


def serial(value):
    """A cell's value as Excel counts it: dates in days."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1899, 12, 30)) / dt.timedelta(days=1)
    return float((value - dt.date(1899, 12, 30)).days) if isinstance(value, dt.date) else value


def _shown(value):
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).upper()
    return "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


def _same(a, b):
    """Excel's =: numbers, text (case does not matter) and booleans are never equal."""
    kinds = [bool if isinstance(x, (bool, np.bool_)) else str if isinstance(x, str) else float for x in (a, b)]
    if kinds[0] is not kinds[1]:
        return False
    return a.casefold() == b.casefold() if kinds[0] is str else (0 if a is None else a) == (0 if b is None else b)


def _each(function):
    return np.frompyfunc(function, 2, 1)


class Value:
    """A number, text or an array of them with Excel's operators."""

    def __init__(self, value):
        self.value = value.value if isinstance(value, Value) else value

    def _numbers(self):
        """Text is NaN, which stands for Excel's #VALUE!: an IF evaluates both of its branches here."""
        array = np.asarray(self.value, dtype=object)
        numbers = [0.0 if one is None else np.nan if isinstance(one, str) else float(one) for one in array.ravel()]
        return np.array(numbers).reshape(array.shape)

    def _do(self, other, operator):
        return Value(operator(self._numbers(), Value(other)._numbers()))

    def __add__(self, other):
        return self._do(other, np.add)

    def __sub__(self, other):
        return self._do(other, np.subtract)

    def __mul__(self, other):
        return self._do(other, np.multiply)

    def __truediv__(self, other):
        return self._do(other, np.divide)

    def __pow__(self, other):
        return self._do(other, np.power)

    def __gt__(self, other):
        return self._do(other, np.greater)

    def __and__(self, other):
        return Value(_shown(self.value) + _shown(Value(other).value))

    def __neg__(self):
        return Value(-self._numbers())

    def __pos__(self):
        return self

    def __eq__(self, other):
        return Value(_each(_same)(np.asarray(self.value, dtype=object), np.asarray(Value(other).value, dtype=object)))

    __hash__ = None


class Book:
    """The cells of a file; `type_in` sets one, `read` evaluates one."""

    def __init__(self, path):
        self.book = openpyxl.load_workbook(path)
        self.typed, self.known = {}, {}
        score = self.book["score"]
        self.rows = {}
        for (cell,) in score.iter_rows(min_col=1, max_col=1):
            if cell.value is not None:
                self.rows.setdefault(cell.value, cell.row)
        self.last = {cell.value: cell.row for (cell,) in score.iter_rows(min_col=1, max_col=1)}

    def type_in(self, values):
        """Column -> value, None for an empty cell."""
        self.known = {}
        self.typed = {("score", self.rows[name], 2): value for name, value in values.items() if name in self.rows}

    def result(self, label, column=2):
        """A cell of the last row with a label."""
        found = self.cell("score", self.last[label], column)
        return np.asarray(found).item() if isinstance(found, np.ndarray) else found

    def cell(self, sheet, row, column):
        key = (sheet, row, column)
        if key not in self.known:
            cell = self.book[sheet].cell(row, column)
            value = self.typed.get(key, cell.value)
            is_formula = cell.data_type == "f" and key not in self.typed
            self.known[key] = self.evaluate(value[1:], sheet).value if is_formula else serial(value)
        return self.known[key]

    def reference(self, text, sheet):
        if "!" in text:
            name, text = text.rsplit("!", 1)
            sheet = name[1:-1].replace("''", "'")
        ends = [openpyxl.utils.cell.coordinate_from_string(one) for one in text.replace("$", "").split(":")]
        places = [(row, openpyxl.utils.column_index_from_string(letter)) for letter, row in ends]
        if len(places) == 1:
            return Value(self.cell(sheet, *places[0]))
        (top, left), (bottom, right) = places
        cells = [[self.cell(sheet, row, column) for column in range(left, right + 1)] for row in range(top, bottom + 1)]
        return Value(np.array(cells, dtype=object).reshape(bottom - top + 1, right - left + 1))

    def evaluate(self, formula, sheet):
        """A formula by Python, whose operators have the same precedence but for a sign before a power."""
        parts, at = [], 0
        while at < len(formula):
            match = _TOKEN.match(formula, at)
            assert match, formula[at:]
            at = match.end()
            kind, text = match.lastgroup, match.group()
            parts.append(
                {
                    "text": lambda t: f"Value({t[1:-1].replace(chr(34) * 2, chr(34))!r})",
                    "ref": lambda t: f"ref({t!r})",
                    "name": lambda t: f"{t[:-1]}(",
                    "number": lambda t: f"Value({float(t)!r})",
                    "sign": lambda t: {"=": "==", "^": "**"}.get(t, t),
                }[kind](text)
            )
        names = {name: getattr(self, f"_{name.lower()}") for name in _FUNCTIONS}
        known = {**names, "Value": Value, "ref": lambda text: self.reference(text, sheet)}
        return eval("".join(parts), {"__builtins__": {}}, known)  # noqa: S307 (of a file that the test wrote)

    @staticmethod
    def _if(condition, then, other):
        return then if np.asarray(condition.value).item() else other

    @staticmethod
    def _text(value, shape):
        assert shape.value == "00"
        return Value("" if np.isnan(value.value) else f"{value.value:02.0f}")

    @staticmethod
    def _choose(index, *values):
        return Value("") if np.isnan(index.value) else values[int(index.value) - 1]

    @staticmethod
    def _weekday(value, kind):
        assert kind.value == 2  # Monday is 1
        return _part(value, lambda moment: moment.isoweekday())

    @staticmethod
    def _month(value):
        return _part(value, lambda moment: moment.month)

    @staticmethod
    def _isoweeknum(value):
        return _part(value, lambda moment: moment.isocalendar()[1])

    @staticmethod
    def _hour(value):
        return _part(value, lambda moment: moment.hour)

    @staticmethod
    def _minute(value):
        return _part(value, lambda moment: moment.minute)

    @staticmethod
    def _sumproduct(array):
        return Value(float(array._numbers().sum()))

    @staticmethod
    def _sum(array):
        return Value(float(sum(one for one in np.ravel(array.value) if isinstance(one, (int, float)))))

    @staticmethod
    def _max(array):
        return Value(max(np.ravel(array.value)))

    @staticmethod
    def _exact(a, b):
        same = _each(lambda x, y: _shown(x) == _shown(y))
        return Value(same(np.asarray(a.value, dtype=object), np.asarray(b.value, dtype=object)))

    @staticmethod
    def _isblank(value):
        return Value(value.value is None)

    @staticmethod
    def _match(value, array, _):
        return Value(1 + list(np.ravel(array.value)).index(value.value))

    @staticmethod
    def _index(array, row, column):
        return Value(array.value[int(row.value) - 1, int(column.value) - 1])


def _part(value, part):
    if not isinstance(value.value, float):
        return Value(np.nan)
    seconds = round(value.value * 86_400)  # Excel shows times to the second
    return Value(float(part(dt.datetime(1899, 12, 30) + dt.timedelta(seconds=seconds))))


def _number_function(function):
    return staticmethod(lambda value: Value(float(function(value._numbers()))))


_FUNCTIONS = ["SUMPRODUCT", "SUM", "MAX", "EXACT", "ISBLANK", "MATCH", "INDEX", "IF", "TEXT", "CHOOSE"]
_FUNCTIONS += ["WEEKDAY", "MONTH", "ISOWEEKNUM", "HOUR", "MINUTE"]
for _name, _function in {"EXP": np.exp, "LN": np.log, "LOG10": np.log10, "SQRT": np.sqrt, "ABS": np.abs}.items():
    setattr(Book, f"_{_name.lower()}", _number_function(_function))
    _FUNCTIONS.append(_name)
