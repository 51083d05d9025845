"""The tables that views join to rows: of categories by value, of bins by their bounds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from tabsym.export.sql_columns import ColumnText
from tabsym.export.sql_text import Writer, ansi_name, number, slug
from tabsym.models.records import ModelTerms

CHUNK = 500
"""Rows of an INSERT."""
_LARGEST = "1.7976931348623157e308"


class SQLTables:
    """The statements that create tables, and the joins of a view over them."""

    def __init__(self, writer: Writer, terms: ModelTerms, table: str) -> None:
        self.writer, self.terms, self.rows = writer, terms, table
        self.columns = ColumnText(writer, terms)
        self.statements: list[str] = []
        self.joins: list[str] = []
        self.aliases: dict[Any, str] = {}  # what is joined -> its alias
        self._bins: dict[int, str] = {}  # coding -> table

    def with_view(self, view: str) -> str:
        """All statements, and this one of a view."""
        self.statements.append(self.writer.translated(view))
        if self.writer.dialect == "tsql":  # a view is alone in its batch
            self.statements[-1] = "GO\n\n" + self.statements[-1]
        return ";\n\n".join(self.statements) + ";\n"

    def source(self) -> str:
        """The rows, and what is joined to them."""
        return "\nFROM " + self.quoted(self.rows) + ' AS "r"' + "".join(f"\n{join}" for join in self.joins)

    def join(self, joined: Any, table: str, conditions: Iterable[tuple[str, str]]) -> None:
        """Join a table where its keys compare with the row as the conditions have it."""
        alias = self._alias(joined, "t")
        on = " AND ".join(f"{alias}.{ansi_name(key)} {own}" for key, own in conditions)
        self.joins.append(f"LEFT JOIN {self.quoted(table)} AS {alias} ON {on}")

    def key(self, coding: int, column: str) -> str:
        """The comparison of a key with the column, or with its bin."""
        own = self.terms.codings[coding]
        if own.bounds is None:
            sign = "IS" if self.writer.dialect == "sqlite" else "IS NOT DISTINCT FROM"
            by_bytes = (
                self.writer.dialect == "tsql" and self.columns.key_kind(own, column) == "text"
            )  # else "A" is "a" there
            return f"{sign} {self.columns.raw(column)}" + (" COLLATE Latin1_General_BIN2" if by_bytes else "")
        if (coding, column) not in self.aliases:
            if coding not in self._bins:
                self._bins[coding] = self._create_bins(coding, column)
            self.joins.append(self._join_of_bins(coding, column))
        return f'= COALESCE({self.aliases[coding, column]}."bin", {int(own.missing) - 1})'

    def _join_of_bins(self, coding: int, column: str) -> str:
        alias, x = self._alias((coding, column), "b"), self.columns.compared(column)
        within = f'{x} > {alias}."low" AND {x} <= {alias}."high"'
        on = f'({within}) OR ({alias}."low" IS NULL AND {x} IS NULL)'  # no band join, which sorts all rows in DuckDB
        join = "JOIN" if self.writer.dialect == "bigquery" else "LEFT JOIN"  # whose outer joins need an equality
        return f"{join} {self.quoted(self._bins[coding])} AS {alias} ON {on}"

    def _alias(self, joined: Any, letter: str) -> str:
        self.aliases[joined] = f'"{letter}{len(self.aliases) + 1}"'
        return self.aliases[joined]

    def _create_bins(self, coding: int, column: str) -> str:
        """The table of the bins ``(low, high]`` of a column; of dates in microseconds."""
        own, kind = self.terms.codings[coding], self.columns.kind(column)
        assert own.bounds is not None
        if kind == "number":
            ends = [f"-{_LARGEST}", *map(number, own.bounds.tolist()), _LARGEST]
        else:
            ends = [self._moment(one, kind) for one in (None, *own.bounds.tolist(), None)]
            ends[0] = self.writer.moment(_typed(dt.datetime(1, 1, 1), kind))
        rows = [[str(code), *pair] for code, pair in enumerate(pairwise(ends), own.missing)]
        rows.append([str(own.missing - 1), "NULL", "NULL"])
        type_ = {"number": "number", "date": "datetime"}.get(kind, "datetime in UTC")
        name = f"{self.rows}_bins_{len(self._bins) + 1}_{slug(column)}".rstrip("_")
        self.create(name, [("bin", "whole"), ("low", type_), ("high", type_)], rows)
        return name

    def _moment(self, days: float | None, kind: str) -> str:
        """The last microsecond that is not after a number of days."""
        if days is None:
            return self.writer.moment(_typed(dt.datetime(9999, 12, 31), kind))
        micro = last_microsecond(days)
        return self.writer.moment(_typed(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micro), kind))

    def create(self, name: str, columns: Sequence[tuple[str, str]], rows: list[list[str]]) -> None:
        write = self.writer
        listed = ", ".join(f"{write.name(column)} {write.type(kind)}" for column, kind in columns)
        self.statements.append(f"CREATE TABLE {write.table(name)} ({listed})")
        for first in range(0, len(rows), CHUNK):
            lines = ",\n".join(f"({', '.join(row)})" for row in rows[first : first + CHUNK])
            self.statements.append(f"INSERT INTO {write.table(name)} VALUES\n{lines}")

    def quoted(self, name: str) -> str:
        """A table's name in the view, which is translated as a whole."""
        return ".".join(map(ansi_name, name.split(".")))


def last_microsecond(days: float) -> int:
    """The last microsecond since 1970 whose number of days, as the model computes it, is at most `days`."""
    per_day = 86_400 * 10**6
    found = int(days * per_day)
    near = [one for one in range(found - 64, found + 65) if one // per_day + one % per_day / per_day <= days]
    return max(near)


def _typed(moment: dt.datetime, kind: str) -> dt.datetime:
    return moment.replace(tzinfo=dt.UTC) if kind == "date in UTC" else moment
