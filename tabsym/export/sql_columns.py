"""The columns of a table in the text of SQL: as keys, as numbers, and in expressions of formulas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tabsym.design.formula import Binary, Call, ColumnRef, Node, Number
from tabsym.export.sql_text import Writer, ansi_name, kind_of_values, number
from tabsym.export.terms import number_of_part
from tabsym.models.records import Coding, ModelTerms, NumberFactor

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


@dataclass(frozen=True)
class ColumnText:
    """Text about the columns of ``"r"``, the table of the rows, in ANSI SQL but for literals."""

    writer: Writer
    terms: ModelTerms

    def number_factor(self, factor: NumberFactor) -> str:
        if factor.fill is not None and isinstance(factor.node, ColumnRef):
            return f"COALESCE({self.number_of(factor.node.name)}, {number(factor.fill)})"
        return self.expression(factor.node)

    def expression(self, node: Node) -> str:
        """The SQL of a number in a formula: columns, operators and functions."""
        match node:
            case Number():
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
        own = self.terms.derived.get(column)
        return "date" if own is not None and own.part == "day" else self.terms.columns.get(column, "number")

    def raw(self, column: str) -> str:
        """A column, or what is made of one."""
        own = self.terms.derived.get(column)
        source = f'"r".{ansi_name(self.terms.source(column))}'
        if own is None:
            return source
        if own.part == "text":
            return f"CAST({source} AS VARCHAR{'(4000)' if self.writer.dialect == 'tsql' else ''})"
        if self.writer.dialect not in WITH_DATES or own.style not in ("moments", "ISO8601"):
            raise ValueError(
                f"Column {own.source!r} holds dates ({own.style}), of which the model uses the {own.part}, and "
                f"{self.writer.dialect} has no text for it; make the parts columns of the table by tabsym.DateParts, "
                "and export the model of these."
            )
        source = source if own.style == "moments" else f"CAST({source} AS TIMESTAMP)"
        return source if own.part == "day" else f"EXTRACT({_FIELDS[own.part]} FROM {source})"

    def number_of(self, column: str) -> str:
        """A column as a double."""
        if self.kind(column) == "number":
            return f"CAST({self.raw(column)} AS DOUBLE PRECISION)"
        self._refuse_durations(column)
        if self.writer.dialect not in WITH_DATES:
            raise ValueError(
                f"The term of column {column!r} takes dates as numbers, for which {self.writer.dialect} has no common "
                "way; make it a number of days before fit, or give it bins by numeric='quantile'."
            )
        return f"(EXTRACT(EPOCH FROM {self.raw(column)}) / 86400e0)"

    def _refuse_durations(self, column: str) -> None:
        if self.terms.columns.get(column) == "duration":
            raise ValueError(
                f"Column {column!r} holds durations, which engines write in ways of their own; make it a number, such "
                "as days, before fit."
            )

    def compared(self, column: str) -> str:
        """A column as its bins are compared with: a double, or a date."""
        self._refuse_durations(column)
        return self.number_of(column) if self.kind(column) == "number" else self.raw(column)

    def key_kind(self, coding: Coding, column: str) -> str:
        """The kind of the keys of categories; parts of dates are whole numbers."""
        assert coding.categories is not None
        is_part = column in self.terms.derived and self.terms.derived[column].part != "text"
        return "whole" if is_part else kind_of_values(coding.categories.tolist(), f"Column {column!r}")

    def literals(self, coding: Coding, column: str) -> list[str]:
        """The literal of each code."""
        if coding.categories is None:
            return [str(code) for code in range(len(coding))]
        categories = coding.categories.tolist()
        if self.key_kind(coding, column) == "whole" and column in self.terms.derived:
            categories = [None if one is None else number_of_part(one) for one in categories]
        return [self.writer.value(one) for one in categories]
