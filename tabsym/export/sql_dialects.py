"""What views of SQL are made of, as text.

Names, values and types of a dialect, quoted so that they are nothing else; and the columns of rows as expressions.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tabsym.design.formula import Binary, Call, ColumnRef, Node, NumberLiteral
from tabsym.export.spec import as_text, number_of_part
from tabsym.messages import check_option
from tabsym.models.export_terms import Coding, ModelTerms, NumberFactor

ANSI = ("ansi", "sqlite", "duckdb")
"""Dialects that are written here, without sqlglot."""
DIALECTS = (*ANSI, "postgres", "snowflake", "bigquery", "tsql", "spark")
_TYPES = {
    "number": "DOUBLE PRECISION",
    "whole": "BIGINT",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "datetime": "TIMESTAMP",
    "datetime in UTC": "TIMESTAMP WITH TIME ZONE",
}
_TSQL_TYPES = {"text": "NVARCHAR(4000)", "datetime": "DATETIME2", "datetime in UTC": "DATETIMEOFFSET"}
MAX_WHOLE = 2**63


@dataclass(frozen=True)
class Dialect:
    """The text of names, values and types in one dialect."""

    dialect: str = "ansi"

    def __post_init__(self) -> None:
        check_option("dialect", self.dialect, DIALECTS)
        if self.dialect not in ANSI:
            try:
                import sqlglot  # noqa: F401
            except ModuleNotFoundError:
                raise ModuleNotFoundError(
                    f"dialect={self.dialect!r} needs sqlglot: pip install \"tabsym[export]\"; dialect='ansi' does not.",
                    name="sqlglot",
                ) from None

    def name(self, text: str) -> str:
        """A quoted identifier."""
        _refuse_nul(text)
        if self.dialect in ANSI:
            return '"' + text.replace('"', '""') + '"'
        from sqlglot import exp

        return exp.to_identifier(text, quoted=True).sql(dialect=self.dialect)

    def table(self, text: str) -> str:
        """A quoted name of a table; a point is between schema and table."""
        return ".".join(map(self.name, text.split(".")))

    def text(self, value: str) -> str:
        """A string literal."""
        _refuse_nul(value)
        if self.dialect in ANSI:
            return "'" + value.replace("'", "''") + "'"
        from sqlglot import exp

        literal = exp.Literal.string(value).sql(dialect=self.dialect)
        return f"N{literal}" if self.dialect == "tsql" else literal

    def value(self, value: Any) -> str:
        """The literal of a category, a class or a number."""
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return str(int(value)) if self.dialect == "tsql" else str(value).upper()
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return number(value)
        if isinstance(value, str):
            return self.text(value)
        kind = str(kind_of(value))
        literal = self.text(value.isoformat() if kind == "date" else _moment(value))
        return literal if self.dialect in ANSI else f"CAST({literal} AS {self.type(kind)})"

    def moment(self, value: dt.datetime) -> str:
        """The literal of a bound of dates, with all its digits: where dates are text, shorter ones sort below it."""
        zone = "" if value.tzinfo is None else "+00:00"
        literal = self.text(value.strftime("%Y-%m-%d %H:%M:%S.%f").zfill(26) + zone)
        kind = str(kind_of(value))
        return literal if self.dialect in ANSI else f"CAST({literal} AS {self.type(kind)})"

    def type(self, kind: str) -> str:
        """A column's type; kinds are those of `kind_of_values`."""
        if self.dialect in ANSI:
            return _TYPES[kind]
        if self.dialect == "tsql" and kind in _TSQL_TYPES:
            return _TSQL_TYPES[kind]
        from sqlglot import exp

        return exp.DataType.build(_TYPES[kind], dialect="postgres").sql(dialect=self.dialect)

    def translated(self, statement: str) -> str:
        """A statement of ANSI SQL with quoted names."""
        if self.dialect in ANSI:
            return statement
        import sqlglot

        return sqlglot.transpile(statement, read="postgres", write=self.dialect, pretty=True)[0]


def ansi_name(text: str) -> str:
    """A quoted identifier of ANSI SQL."""
    return Dialect().name(text)


def number(value: float) -> str:
    """A literal of type double with all its digits."""
    digits, exponent = f"{value:.16e}".split("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def kind_of(value: Any) -> str | None:
    """The kind of a category; None where SQL has no literal for it."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "whole" if -MAX_WHOLE <= value < MAX_WHOLE else None
    if isinstance(value, float):
        return "number" if math.isfinite(value) else None
    if isinstance(value, str):
        return "text"
    if isinstance(value, dt.datetime):
        if getattr(value, "nanosecond", 0):
            return None
        return "datetime" if value.tzinfo is None else "datetime in UTC"
    return "date" if isinstance(value, dt.date) else None


def kind_of_values(values: list[Any], what: str) -> str:
    """The one kind of the categories of a column, or of classes; text where there are none.

    Raises
    ------
    ValueError
        There is no type for them, with a message about `what`.
    """
    kinds = {kind_of(value) for value in values if value is not None}
    if kinds == {"whole", "number"}:
        return "number"
    if len(kinds) > 1 or None in kinds:
        unsupported = next((value for value in values if value is not None and kind_of(value) is None), None)
        kinds_found, remedy = " and ".join(sorted(map(str, kinds))), "make its values text, or use to_spec"
        if unsupported is not None:
            kinds_found = f"{unsupported!r}, for which SQL has no literal"
        if isinstance(unsupported, pd.Interval):
            remedy = as_text(unsupported)
        raise ValueError(f"{what} holds {kinds_found}; {remedy}.")
    return kinds.pop() or "text" if kinds else "text"


def slug(text: str) -> str:
    """Letters, digits and underscores, of a name that may be anything."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:24].strip("_").lower()


def unique(names: list[str], taken: set[str] | None = None) -> list[str]:
    """The names, with numbers behind those that occur again, whatever their case: some engines ignore it."""
    used, unique_names = {name.casefold() for name in taken or ()}, []
    for name in names:
        new, times = name, 1
        while new.casefold() in used:
            times += 1
            new = f"{name}_{times}"
        used.add(new.casefold())
        unique_names.append(new)
    return unique_names


def _moment(value: dt.datetime) -> str:
    return (value if value.tzinfo is None else value.astimezone(dt.UTC)).isoformat(" ")


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise ValueError(f"{text!r} holds a NUL character, which SQL text cannot; take it out of the table.")


WITH_DATES = ("ansi", "duckdb", "postgres")
"""Dialects in which parts of dates, and dates as numbers, are written alike."""
_FIELDS = {"month": "MONTH", "week": "WEEK", "weekday": "ISODOW", "hour": "HOUR", "minute": "MINUTE"}
_FUNCTIONS = {
    "log": "LN({})",
    "log1p": "LN(1e0 + {})",
    "log2": "LN({}) / " + number(float(np.log(2.0))),
    "log10": "LN({}) / " + number(float(np.log(10.0))),
    "sqrt": "SQRT({})",
    "exp": "EXP({})",
    "abs": "ABS({})",
}


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _number_of(text: Any) -> int | float | None:
    """A number in text; None for other text."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    if value.is_integer() and re.fullmatch(r"-?\d+", text) and abs(int(text)) < MAX_WHOLE:
        return int(text)
    return value if math.isfinite(value) and abs(value) < MAX_WHOLE else None


_VALUE_OF: dict[str, Callable[[Any], Any]] = {
    "numbers": _number_of,
    "booleans": lambda text: {"true": True, "false": False}.get(str(text).lower()),
}
"""The value of the text of a category, by what its column holds; None where there is none."""


@dataclass(frozen=True)
class ColumnText:
    """Text about the columns of ``"r"``, the table of the rows, in ANSI SQL but for literals."""

    writer: Dialect
    terms: ModelTerms

    def number_factor(self, factor: NumberFactor) -> str:
        """The number that multiplies a term, with the fill value of a missing one."""
        if factor.fill is not None and isinstance(factor.node, ColumnRef):
            return f"COALESCE({self.number_of(factor.node.name)}, {number(factor.fill)})"
        return self.expression(factor.node)

    def expression(self, node: Node) -> str:
        """The SQL of a number in a formula: columns, operators and functions."""
        match node:
            case NumberLiteral():
                return number(node.value)
            case ColumnRef():
                return self.number_of(node.name)
            case Call():
                return f"({_FUNCTIONS[node.function].format(self.expression(node.argument))})"
            case Binary(operator="**"):
                return f"POWER({self.expression(node.left)}, {self.expression(node.right)})"
            case Binary():
                return f"({self.expression(node.left)} {node.operator} {self.expression(node.right)})"
        raise AssertionError(f"{node} is not numeric")

    def kind(self, column: str) -> str:
        """What a column of the table is."""
        derived = self.terms.derived.get(column)
        return "date" if derived is not None and derived.part == "day" else self.terms.columns.get(column, "number")

    def raw(self, column: str) -> str:
        """A column, or what is made of one."""
        derived = self.terms.derived.get(column)
        source = f'"r".{ansi_name(self.terms.source(column))}'
        if derived is None:
            return source
        if derived.part == "text":
            return self._text_of(column, source)
        if self.writer.dialect not in WITH_DATES or derived.style not in ("moments", "ISO8601"):
            raise ValueError(
                f"Column {derived.source!r} holds dates ({derived.style}), of which the model uses the {derived.part}, "
                f"and {self.writer.dialect} has no text for it; make the parts columns of the table by "
                "tabsym.DateParts, and export the model of these."
            )
        source = source if derived.style == "moments" else f"CAST({source} AS TIMESTAMP)"
        return source if derived.part == "day" else f"EXTRACT({_FIELDS[derived.part]} FROM {source})"

    def number_of(self, column: str) -> str:
        """A column as a double."""
        if self.kind(column) in ("number", "category"):  # of which a formula may take one as both
            return f"CAST({self.raw(column)} AS DOUBLE PRECISION)"
        self._refuse_durations(column)
        if self.writer.dialect not in WITH_DATES:
            raise ValueError(
                f"The term of column {column!r} takes dates as numbers, for which {self.writer.dialect} has no common "
                "way; make it a number of days before fit, or give it bins by numeric='quantile'."
            )
        return f"(EXTRACT(EPOCH FROM {self.raw(column)}) / 86400e0)"

    def _text_of(self, column: str, source: str) -> str:
        """A column whose categories are text; numbers and booleans are compared as such: their text has many forms."""
        if self._holds(column):
            return source
        text = f"CAST({source} AS VARCHAR{'(4000)' if self.writer.dialect == 'tsql' else ''})"
        if not any(_DAY.fullmatch(str(category)) for category in self._categories(column)):
            return text
        return f"CASE WHEN {text} LIKE '____-__-__ 00:00:00' THEN SUBSTR({text}, 1, 10) ELSE {text} END"

    def _holds(self, column: str) -> str:
        """What the categories of a column are that are text: "numbers", "booleans", or "" for others."""
        derived = self.terms.derived.get(column)
        if derived is None or derived.part != "text" or derived.style not in _VALUE_OF:
            return ""
        texts = {str(text) for text in self._categories(column)}
        values = {_VALUE_OF[derived.style](text) for text in texts} - {None}
        return derived.style if len(values) == len(texts) else ""  # text where two are the same number

    def _categories(self, column: str) -> list[Any]:
        """The categories of a column, but missing."""
        of_factors = [
            self.terms.codings[coding].categories
            for factor in (lookup for term in self.terms.terms for lookup in term.lookups)
            for coding, name in zip(self.terms.tables[factor.table].codings, factor.columns, strict=True)
            if name == column
        ]
        return [
            category
            for categories in of_factors
            if categories is not None
            for category in categories.tolist()
            if category is not None
        ]

    def _refuse_durations(self, column: str) -> None:
        if self.terms.columns.get(column) == "duration":
            raise ValueError(
                f"Column {column!r} holds durations, which engines write in ways of their own; make it a number, such "
                "as days, before fit."
            )

    def compared(self, column: str) -> str:
        """A column as its bins are compared with: a double, or a date."""
        self._refuse_durations(column)
        if self.kind(column) == "number":
            return self.number_of(column)
        if self.kind(column) == "date" and self.writer.dialect == "duckdb":
            return f"CAST({self.raw(column)} AS TIMESTAMP)"  # DuckDB's nanoseconds do not reach the outer bounds
        return self._as_written(self.raw(column), "datetime" if self.kind(column) == "date" else "datetime in UTC")

    def compared_as_key(self, coding: Coding, column: str) -> str:
        """A column as the keys of categories are compared with."""
        if column in self.terms.derived and self.terms.derived[column].part == "day":
            return self.number_of(column)
        return self._as_written(self.raw(column), self.key_kind(coding, column))

    def _as_written(self, x: str, kind: str) -> str:
        """Dates in the form of literals, in SQLite, where they are text that may have another."""
        if self.writer.dialect != "sqlite" or kind not in ("date", "datetime", "datetime in UTC"):
            return x
        if kind == "date":
            return f"CASE WHEN STRFTIME('%H:%M:%f', {x}) = '00:00:00.000' THEN DATE({x}) ELSE {x} END"
        zone = " || '+00:00'" if kind == "datetime in UTC" else ""
        has_fraction = f"REPLACE({x}, '.000000', '') LIKE '%.%'"  # which DATETIME would cut off
        with_blank = f"SUBSTR({x}, 1, 10) || ' ' || REPLACE(SUBSTR({x}, 12), 'Z', '{zone[5:-1]}')"  # for a T
        return f"CASE WHEN {has_fraction} THEN {with_blank} ELSE COALESCE(DATETIME({x}){zone}, {x}) END"

    def key_kind(self, coding: Coding, column: str) -> str:
        """The kind of the keys of categories; parts of dates are whole numbers."""
        assert coding.categories is not None
        if self._holds(column) == "booleans":
            return "boolean"
        if self._holds(column):
            numbers = map(_number_of, self._categories(column))
            return "whole" if all(isinstance(number, int) for number in numbers) else "number"
        is_part = column in self.terms.derived and self.terms.derived[column].part != "text"
        return "whole" if is_part else kind_of_values(coding.categories.tolist(), f"Column {column!r}")

    def literals(self, coding: Coding, column: str) -> list[str]:
        """The literal of each code."""
        if coding.categories is None:
            return [str(code) for code in range(len(coding))]
        categories = coding.categories.tolist()
        if stored_kind := self._holds(column):
            return [
                self.writer.value(None if category is None else _VALUE_OF[stored_kind](category))
                for category in categories
            ]
        if self.key_kind(coding, column) == "whole" and column in self.terms.derived:
            categories = [None if category is None else number_of_part(category) for category in categories]
        return [self.writer.value(category) for category in categories]
