"""`to_sql`: a table for each term, and a view that joins them to rows and predicts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tabsym.export.sql_columns import ColumnText
from tabsym.export.sql_text import Writer, ansi_name, kind_of_values, number, slug, unique
from tabsym.export.terms import terms_of
from tabsym.models.records import LookupFactor, ModelTerms, TermRecord

CHUNK = 500
"""Rows of an INSERT."""
PREDICTION = "prediction"
_LARGEST = "1.7976931348623157e308"
_FAR = "7e2"
"""Beyond this a difference of linear predictors is as good as infinite, and its exponential may be an error."""


def to_sql(model: Any, table: str = "rows", dialect: str = "ansi") -> str:
    """A fitted model as SQL statements.

    They create a table for each term (``<table>_term_1_...``) and for the bins of each number (``<table>_bins_1_...``),
    and a view ``<table>_prediction``: all columns of `table`, and ``prediction``; in classification also ``score`` and
    ``probability_<class>``. Missing is NULL.

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Also behind `DateParts` in a pipeline, or the winner of a comparison.
    table : str, default "rows"
        The table of the rows to predict; a point is between schema and table.
    dialect : {"ansi", "duckdb", "sqlite", "postgres", "snowflake", "bigquery", "tsql", "spark"}, default "ansi"
        "ansi" runs on DuckDB and SQLite (3.39). All but the first three need sqlglot.

    Returns
    -------
    str
        Statements that end in a semicolon.

    Raises
    ------
    ValueError, TypeError
        A part of the model has no SQL, in a sentence that names it.

    Examples
    --------
    >>> import sqlite3
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym.export import to_sql
    >>> X, y = pd.DataFrame({"town": ["Ulm", "Bonn"] * 9}), [1.0, 3.0] * 9
    >>> text = to_sql(WideRegressor().fit(X, y), "sales")
    >>> database = sqlite3.connect(":memory:")
    >>> _ = X.to_sql("sales", database)
    >>> _ = database.executescript(text)
    >>> [round(row[0], 1) for row in database.execute("SELECT prediction FROM sales_prediction LIMIT 2")]
    [1.0, 3.0]
    """
    writer, terms = Writer(dialect), terms_of(model)
    if terms.checked:
        raise ValueError(
            f"handle_unknown='error' raises an error for unknown categories of column {terms.checked[0][0]!r}, which a "
            "view cannot; set_params(handle_unknown='neutral') to export the model."
        )
    taken = [name for name in terms.features if name.casefold() == PREDICTION]
    if taken:
        raise ValueError(f"The table has a column {taken[0]!r}, as the view would have; rename it before fit.")
    return _Statements(writer, terms, table).text()


class _Statements:
    """The statements of one model."""

    def __init__(self, writer: Writer, terms: ModelTerms, table: str) -> None:
        self.writer, self.terms, self.rows = writer, terms, table
        self.columns = ColumnText(writer, terms)
        self.statements: list[str] = []
        self.joins: list[str] = []
        self._bins: dict[int, str] = {}  # coding -> table
        self._tables: dict[int, tuple[str, list[str], list[str]]] = {}  # lookup -> table, keys, values
        self._aliases: dict[Any, str] = {}  # what is joined -> its alias

    def text(self) -> str:
        scores = [" + ".join(self._score(output)) or "0e0" for output in range(self.terms.n_outputs)]
        self.statements.append(self.writer.translated(self._view(scores)))
        if self.writer.dialect == "tsql":  # a view is alone in its batch
            self.statements[-1] = "GO\n\n" + self.statements[-1]
        return ";\n\n".join(self.statements) + ";\n"

    # -- the view ---------------------------------------------------------------------------------

    def _view(self, scores: list[str]) -> str:
        head = f"CREATE VIEW {self._quoted(f'{self.rows}_{PREDICTION}')} AS\n"
        source = "\nFROM " + self._quoted(self.rows) + ' AS "r"' + "".join(f"\n{join}" for join in self.joins)
        if self.terms.classes is None:
            value = f"EXP({scores[0]})" if self.terms.link == "log" else scores[0]
            return f'{head}SELECT "r".*, {value} AS {ansi_name(PREDICTION)}{source}'
        labels = [str(one) for one in self.terms.classes.tolist()]
        names = ["score"] if len(scores) == 1 else [f"score_{label}" for label in labels]
        names = unique([*names, *(f"probability_{label}" for label in labels)], {*self.terms.columns, PREDICTION})
        own, names = names[: len(scores)], names[len(scores) :]
        inner = ", ".join(f"{score} AS {ansi_name(name)}" for score, name in zip(scores, own, strict=True))
        said = [f"{value} AS {ansi_name(name)}" for value, name in zip(self._probabilities(own), names, strict=False)]
        columns = ", ".join(['"s".*', *said, f"{self._class(own)} AS {ansi_name(PREDICTION)}"])
        return f'{head}SELECT {columns}\nFROM (SELECT "r".*, {inner}{source}) AS "s"'

    def _probabilities(self, scores: list[str]) -> list[str]:
        if self.terms.link not in ("logit", "softmax"):
            return []
        own = [f'"s".{ansi_name(name)}' for name in scores]
        if len(own) == 1:
            return [f"1e0 / (1e0 + {_exp(own[0])})", f"1e0 / (1e0 + {_exp(f'-{own[0]}')})"]
        return [
            "1e0 / (" + " + ".join("1e0" if other == one else _exp(f"({other} - {one})") for other in own) + ")"
            for one in own
        ]

    def _class(self, scores: list[str]) -> str:
        """The class of the largest linear predictor, of equal ones the first; NULL where they are."""
        assert self.terms.classes is not None
        labels = self.terms.classes.tolist()
        kind_of_values(labels, "The target")
        own = [f'"s".{ansi_name(name)}' for name in scores]
        if len(own) == 1:
            conditions = [f"{own[0]} <= 0", f"{own[0]} > 0"]
        else:
            conditions = [" AND ".join(f"{one} >= {other}" for other in own if other != one) for one in own]
        cases = " ".join(f"WHEN {condition} THEN {_literal(label)}" for condition, label in zip(conditions, labels))
        return f"CASE {cases} END"

    def _score(self, output: int) -> Iterator[str]:
        for term in self.terms.terms:
            yield self._product(term, output)
        offset = self.terms.offset
        if offset is not None:
            own = self.columns.number_of(offset.name)
            yield f"LN({own})" if offset.is_exposure else own

    def _product(self, term: TermRecord, output: int) -> str:
        factors = [] if term.constant == 1.0 else [number(term.constant)]
        factors += [self.columns.number_factor(one) for one in term.numbers]
        factors += [self._coefficient(one, output) for one in term.lookups]
        return " * ".join(factors) or "1e0"

    def _coefficient(self, factor: LookupFactor, output: int) -> str:
        table = self.terms.tables[factor.table]
        if not table.codings:
            return number(float(table.values[0, factor.component, output]))
        alias, values = self._joined(factor)
        column = values[factor.component * self.terms.n_outputs + output]
        return f"COALESCE({alias}.{ansi_name(column)}, {number(float(table.default[factor.component, output]))})"

    # -- joins and tables --------------------------------------------------------------------------

    def _joined(self, factor: LookupFactor) -> tuple[str, list[str]]:
        """The alias of a table that is joined by columns, and its columns of values."""
        if factor.table not in self._tables:
            self._tables[factor.table] = self._create_term(factor)
        name, keys, values = self._tables[factor.table]
        if (factor.table, factor.columns) not in self._aliases:
            codings = self.terms.tables[factor.table].codings
            compared = [self._key(coding, column) for coding, column in zip(codings, factor.columns, strict=True)]
            alias = self._alias((factor.table, factor.columns), "t")
            on = " AND ".join(f"{alias}.{ansi_name(key)} {own}" for key, own in zip(keys, compared, strict=True))
            self.joins.append(f"LEFT JOIN {self._quoted(name)} AS {alias} ON {on}")
        return self._aliases[factor.table, factor.columns], values

    def _key(self, coding: int, column: str) -> str:
        """The comparison of a key with the column, or with its bin."""
        own = self.terms.codings[coding]
        if own.bounds is None:
            sign = "IS" if self.writer.dialect == "sqlite" else "IS NOT DISTINCT FROM"
            by_bytes = (
                self.writer.dialect == "tsql" and self.columns.key_kind(own, column) == "text"
            )  # else "A" is "a" there
            return f"{sign} {self.columns.raw(column)}" + (" COLLATE Latin1_General_BIN2" if by_bytes else "")
        if (coding, column) not in self._aliases:
            if coding not in self._bins:
                self._bins[coding] = self._create_bins(coding, column)
            self.joins.append(self._join_of_bins(coding, column))
        return f'= COALESCE({self._aliases[coding, column]}."bin", {int(own.missing) - 1})'

    def _join_of_bins(self, coding: int, column: str) -> str:
        alias, x = self._alias((coding, column), "b"), self.columns.compared(column)
        within = f'{x} > {alias}."low" AND {x} <= {alias}."high"'
        on = f'({within}) OR ({alias}."low" IS NULL AND {x} IS NULL)'  # no band join, which sorts all rows in DuckDB
        join = "JOIN" if self.writer.dialect == "bigquery" else "LEFT JOIN"  # whose outer joins need an equality
        return f"{join} {self._quoted(self._bins[coding])} AS {alias} ON {on}"

    def _alias(self, joined: Any, letter: str) -> str:
        self._aliases[joined] = f'"{letter}{len(self._aliases) + 1}"'
        return self._aliases[joined]

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
        self._create(name, [("bin", "whole"), ("low", type_), ("high", type_)], rows)
        return name

    def _moment(self, days: float | None, kind: str) -> str:
        """The last microsecond that is not after a number of days."""
        if days is None:
            return self.writer.moment(_typed(dt.datetime(9999, 12, 31), kind))
        micro = last_microsecond(days)
        return self.writer.moment(_typed(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micro), kind))

    def _create_term(self, factor: LookupFactor) -> tuple[str, list[str], list[str]]:
        table = self.terms.tables[factor.table]
        width = table.values.shape[1] * table.values.shape[2]
        values = ["value"] if width == 1 else [f"value_{index + 1}" for index in range(width)]
        keys, kinds, categories = [], [], []
        for index, column in zip(table.codings, factor.columns, strict=True):
            coding = self.terms.codings[index]
            keys.append(column if coding.bounds is None else f"{column} bin")
            kinds.append("whole" if coding.bounds is not None else self.columns.key_kind(coding, column))
            categories.append(self.columns.literals(coding, column))
        keys = unique(keys, set(values))
        numbers = table.values.reshape(len(table.values), -1).tolist()
        rows = [
            [*(own[code] for own, code in zip(categories, codes)), *map(number, line)]
            for codes, line in zip(table.codes.tolist(), numbers, strict=True)
        ]
        name = f"{self.rows}_term_{len(self._tables) + 1}_{slug(table.name)}".rstrip("_")
        columns = [*zip(keys, kinds, strict=True), *((one, "number") for one in values)]
        self._create(name, columns, rows)
        return name, keys, values

    def _create(self, name: str, columns: Sequence[tuple[str, str]], rows: list[list[str]]) -> None:
        write = self.writer
        listed = ", ".join(f"{write.name(column)} {write.type(kind)}" for column, kind in columns)
        self.statements.append(f"CREATE TABLE {write.table(name)} ({listed})")
        for first in range(0, len(rows), CHUNK):
            lines = ",\n".join(f"({', '.join(row)})" for row in rows[first : first + CHUNK])
            self.statements.append(f"INSERT INTO {write.table(name)} VALUES\n{lines}")

    def _quoted(self, name: str) -> str:
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


def _literal(value: Any) -> str:
    return Writer().value(value)


def _exp(text: str) -> str:
    """An exponential that neither overflows nor underflows."""
    return f"CASE WHEN {text} > {_FAR} THEN EXP({_FAR}) WHEN {text} < -{_FAR} THEN 0e0 ELSE EXP({text}) END"
