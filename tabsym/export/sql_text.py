"""Names, values and types in the text of a SQL dialect, quoted so that they are nothing else."""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from typing import Any

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
class Writer:
    """The text of names, values and types in one dialect."""

    dialect: str = "ansi"

    def __post_init__(self) -> None:
        if self.dialect not in DIALECTS:
            raise ValueError(f"dialect={self.dialect!r} is not known; use one of {', '.join(map(repr, DIALECTS))}.")
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

        found = exp.Literal.string(value).sql(dialect=self.dialect)
        return f"N{found}" if self.dialect == "tsql" else found

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
    return Writer().name(text)


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
        There is no type for them, in a sentence about `what`.
    """
    kinds = {kind_of(value) for value in values if value is not None}
    if kinds == {"whole", "number"}:
        return "number"
    if len(kinds) > 1 or None in kinds:
        odd = next((value for value in values if value is not None and kind_of(value) is None), None)
        held = (
            f"{odd!r}, for which SQL has no literal" if odd is not None else f"{' and '.join(sorted(map(str, kinds)))}"
        )
        raise ValueError(f"{what} holds {held}; make its values text, or use to_spec.")
    return kinds.pop() or "text" if kinds else "text"


def slug(text: str) -> str:
    """Letters, digits and underscores, of a name that may be anything."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:24].strip("_").lower()


def unique(names: list[str], taken: set[str] | None = None) -> list[str]:
    """The names, with numbers behind those that occur again, whatever their case: some engines do not tell it apart."""
    known, found = {name.casefold() for name in taken or ()}, []
    for name in names:
        new, times = name, 1
        while new.casefold() in known:
            times += 1
            new = f"{name}_{times}"
        known.add(new.casefold())
        found.append(new)
    return found


def _moment(value: dt.datetime) -> str:
    if value.tzinfo is not None:
        return value.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f") + "+00:00"
    return value.strftime("%Y-%m-%d %H:%M:%S" + (".%f" if value.microsecond else ""))


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise ValueError(f"{text!r} holds a NUL character, which SQL text cannot; take it out of the table.")
