"""`to_sql`: a table for each term or encoded column, and a view that joins them to rows and predicts or transforms.

Tables are joined by value or by bounds of bins. The table of a term is `_ModelView._create_term`, of an interaction
with a key column for each of its columns.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tabsym.encoders.base import TableTransformer, names_alike
from tabsym.encoders.lookups import ColumnLookup, lookup_tables
from tabsym.export.spec import terms_of
from tabsym.export.sql_dialects import ANSI, ColumnText, Dialect, ansi_name, kind_of_values, number, slug, unique
from tabsym.models.export_terms import LookupFactor, ModelTerms, TermRecord

PREDICTION, ENCODED = "prediction", "encoded"
CHUNK = 500
"""Rows of an INSERT."""
_LARGEST = "1.7976931348623157e308"
SQLITE_TABLES = 64  # that one SELECT of SQLite can join
_FAR = "7e2"
"""Beyond this a difference of linear predictors is as good as infinite, and its exponential may be an error."""
CASE_SENSITIVE = ("postgres", "snowflake")
"""Dialects in which quoted names of columns that differ in case only are different."""


def to_sql(model: Any, table: str = "rows", dialect: str = "ansi", *, keep: Sequence[str] = ()) -> str:
    """A fitted model or encoder as SQL statements.

    They create a table for each term (``<table>_term_1_...``) and for the bins of each number (``<table>_bins_1_...``),
    and a view ``<table>_prediction``: all columns of `table`, and ``prediction``; in classification also ``score`` and
    ``probability_<class>``. Missing is NULL.

    Of an encoder they create a table for each column that it encodes (``<table>_encoding_1_...``), and a view
    ``<table>_encoded`` of the columns that `transform` returns.

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Also behind `DateParts` in a pipeline, or the winner of a comparison. Or MODLEncoder, OneHotEncoder, TIWSEncoder
        or WideEncoder, as far as each value of a column has one encoding.
    table : str, default "rows"
        The table of the rows to predict; a point is between schema and table.
    dialect : {"ansi", "duckdb", "sqlite", "postgres", "snowflake", "bigquery", "tsql", "spark"}, default "ansi"
        "ansi" runs on DuckDB and SQLite (3.39). All but the first three need sqlglot.
    keep : list of str, default ()
        For encoders: columns of `table` that stand before the encoded ones, such as its key.

    Returns
    -------
    str
        Statements that end in a semicolon.

    Raises
    ------
    ValueError, TypeError
        A part of the model has no SQL, with a message that names it.

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
    writer = Dialect(dialect)
    if isinstance(model, TableTransformer):
        names = [str(name) for name in model.get_feature_names_in()]
        _refuse_names_alike(names, dialect)
        return EncoderView(writer, lookup_tables(model), names, table).text(list(keep))
    if keep:
        raise ValueError("keep is for encoders: the view of a model has all columns of the table; leave it out.")
    terms = terms_of(model)
    if terms.checked:
        raise ValueError(
            f"handle_unknown='error' raises an error for unknown categories of column {terms.checked[0][0]!r}, which a "
            "view cannot; set_params(handle_unknown='neutral') to export the model."
        )
    _refuse_names_alike(list(terms.features), dialect)
    taken = [name for name in terms.features if name.casefold() == PREDICTION]
    if taken:
        raise ValueError(f"The table has a column {taken[0]!r}, as the view would have; rename it before fit.")
    return _ModelView(writer, terms, table).text()


def _refuse_names_alike(names: Sequence[str], dialect: str) -> None:
    """A `ValueError` for columns whose names differ in case only, in dialects that do not distinguish them.

    DuckDB gives one of them another name when it reads such a table, and takes either name for the first.
    """
    if dialect not in CASE_SENSITIVE and (alike := names_alike(names)):
        raise ValueError(
            f"Columns {alike[0]!r} and {alike[1]!r} differ in case only, which {dialect} does not tell apart; rename "
            "one of the two before fit."
        )


class SQLTables:
    """The statements that create tables, and the joins of a view over them."""

    def __init__(self, writer: Dialect, terms: ModelTerms, table: str) -> None:
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
        """The rows, and what is joined to them; a `ValueError` where SQLite would not read the view."""
        if self.writer.dialect == "sqlite" and len(self.joins) >= SQLITE_TABLES:
            raise ValueError(
                f"The view would join {len(self.joins) + 1} tables, and SQLite joins at most {SQLITE_TABLES}; export a "
                "model of fewer columns, or to another engine."
            )
        return "\nFROM " + self.quoted(self.rows) + ' AS "r"' + "".join(f"\n{join}" for join in self.joins)

    def join(self, joined: Any, table: str, conditions: Iterable[tuple[str, str]]) -> None:
        """Join a table where its keys compare with the row as the conditions have it."""
        alias = self._alias(joined, "t")
        on = " AND ".join(f"{alias}.{ansi_name(key)} {comparison}" for key, comparison in conditions)
        self.joins.append(f"LEFT JOIN {self.quoted(table)} AS {alias} ON {on}")

    def keys(
        self, codings: Sequence[int], columns: Sequence[str], taken: set[str]
    ) -> tuple[list[tuple[str, str]], list[list[str]]]:
        """The columns of a table that are compared with these, by name and kind; and the literal of each code."""
        names, kinds, literals = [], [], []
        for index, column in zip(codings, columns, strict=True):
            coding = self.terms.codings[index]
            names.append(column if coding.bounds is None else f"{column} bin")
            kinds.append("whole" if coding.bounds is not None else self.columns.key_kind(coding, column))
            literals.append(self.columns.literals(coding, column))
        return list(zip(unique(names, taken), kinds, strict=True)), literals

    def key(self, index: int, column: str) -> str:
        """The comparison of a key with the column, or with its bin."""
        coding = self.terms.codings[index]
        if coding.bounds is None:
            sign = "IS" if self.writer.dialect == "sqlite" else "IS NOT DISTINCT FROM"
            by_bytes = self.writer.dialect == "tsql" and self.columns.key_kind(coding, column) == "text"
            collation = " COLLATE Latin1_General_BIN2" if by_bytes else ""  # else "A" is "a" there
            return f"{sign} {self.columns.compared_as_key(coding, column)}{collation}"
        if (index, column) not in self.aliases:
            if index not in self._bins:
                self._bins[index] = self._create_bins(index, column)
            self.joins.append(self._join_of_bins(index, column))
        return f'= COALESCE({self.aliases[index, column]}."bin", {int(coding.missing) - 1})'

    def _join_of_bins(self, index: int, column: str) -> str:
        alias, x = self._alias((index, column), "b"), self.columns.compared(column)
        kind, first = self.columns.kind(column), int(self.terms.codings[index].missing)
        # "<=", as dates that are text may lack their fraction
        lowest, is_lowest = self._lowest(kind), "=" if kind == "number" else "<="
        if kind != "number" and self.writer.dialect not in ANSI:  # the view is translated as a whole
            zone = "" if kind == "date" else " WITH TIME ZONE"
            lowest = f"CAST({self.writer.text(str(_typed(dt.datetime.min, kind)))} AS TIMESTAMP{zone})"
        within = (
            f'{x} > {alias}."low" AND {x} <= {alias}."high" OR {alias}."bin" = {first} AND {x} {is_lowest} {lowest}'
        )
        on = f'({within}) OR ({alias}."low" IS NULL AND {x} IS NULL)'  # no band join, which sorts all rows in DuckDB
        join = "JOIN" if self.writer.dialect == "bigquery" else "LEFT JOIN"  # whose outer joins need an equality
        return f"{join} {self.quoted(self._bins[index])} AS {alias} ON {on}"

    def _alias(self, joined: Any, letter: str) -> str:
        self.aliases[joined] = f'"{letter}{len(self.aliases) + 1}"'
        return self.aliases[joined]

    def _create_bins(self, index: int, column: str) -> str:
        """The table of the bins ``(low, high]`` of a column; of dates in microseconds."""
        coding, kind = self.terms.codings[index], self.columns.kind(column)
        assert coding.bounds is not None
        if kind == "number":
            ends = [f"-{_LARGEST}", *map(number, coding.bounds.tolist()), _LARGEST]
        else:
            last = self.writer.moment(_typed(dt.datetime.max, kind))
            ends = [self._lowest(kind), *(self._moment(bound, kind) for bound in coding.bounds.tolist()), last]
        rows = [[str(code), *pair] for code, pair in enumerate(pairwise(ends), coding.missing)]
        rows.append([str(coding.missing - 1), "NULL", "NULL"])
        type_ = {"number": "number", "date": "datetime"}.get(kind, "datetime in UTC")
        name = f"{self.rows}_bins_{len(self._bins) + 1}_{slug(column)}".rstrip("_")
        self.create(name, [("bin", "whole"), ("low", type_), ("high", type_)], rows)
        return name

    def _lowest(self, kind: str) -> str:
        """The lowest number or moment that there is."""
        return f"-{_LARGEST}" if kind == "number" else self.writer.moment(_typed(dt.datetime.min, kind))

    def _moment(self, days: float, kind: str) -> str:
        """The last microsecond that is not after a number of days."""
        micro = last_microsecond(days)
        return self.writer.moment(_typed(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micro), kind))

    def create(self, name: str, columns: Sequence[tuple[str, str]], rows: list[list[str]]) -> None:
        """Add the statements of a table of these columns, by name and kind, and rows of literals."""
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
    nearest = int(days * per_day)
    candidates = [
        micro for micro in range(nearest - 64, nearest + 65) if micro // per_day + micro % per_day / per_day <= days
    ]
    return max(candidates)


def _typed(moment: dt.datetime, kind: str) -> dt.datetime:
    return moment.replace(tzinfo=dt.UTC) if kind == "date in UTC" else moment


class _ModelView(SQLTables):
    """The statements of one model."""

    def __init__(self, writer: Dialect, terms: ModelTerms, table: str) -> None:
        super().__init__(writer, terms, table)
        self._tables: dict[int, tuple[str, list[str], list[str]]] = {}  # lookup -> table, keys, values

    def text(self) -> str:
        scores = [" + ".join(self._score(output)) or "0e0" for output in range(self.terms.n_outputs)]
        return self.with_view(self._view(scores))

    # -- the view ---------------------------------------------------------------------------------

    def _view(self, scores: list[str]) -> str:
        """What is computed comes first: of columns of one name engines take the first, or refuse the view.

        The table may have columns that the model does not know, such as the predictions of an earlier one.
        """
        head = f"CREATE VIEW {self.quoted(f'{self.rows}_{PREDICTION}')} AS\n"
        source = self.source()
        if self.terms.classes is None:
            value = f"EXP({scores[0]})" if self.terms.link == "log" else scores[0]
            return f'{head}SELECT {value} AS {ansi_name(PREDICTION)}, "r".*{source}'
        labels = [str(label) for label in self.terms.classes.tolist()]
        names = ["score"] if len(scores) == 1 else [f"score_{label}" for label in labels]
        taken = {*self.terms.features, *self.terms.columns, PREDICTION}
        names = unique([*names, *(f"probability_{label}" for label in labels)], taken)
        score_names, names = names[: len(scores)], names[len(scores) :]
        inner = ", ".join(f"{score} AS {ansi_name(name)}" for score, name in zip(scores, score_names, strict=True))
        shares = zip(self._probabilities(score_names), names, strict=False)
        probabilities = [f"{value} AS {ansi_name(name)}" for value, name in shares]
        columns = ", ".join([f"{self._class(score_names)} AS {ansi_name(PREDICTION)}", *probabilities, '"s".*'])
        return f'{head}SELECT {columns}\nFROM (SELECT {inner}, "r".*{source}) AS "s"'

    def _probabilities(self, scores: list[str]) -> list[str]:
        if self.terms.link not in ("logit", "softmax"):
            return []
        columns = [f'"s".{ansi_name(name)}' for name in scores]
        if len(columns) == 1:
            return [f"1e0 / (1e0 + {_exp(columns[0])})", f"1e0 / (1e0 + {_exp(f'-{columns[0]}')})"]
        ratios = [["1e0" if a == b else _exp(f"({a} - {b})") for a in columns] for b in columns]
        return [f"1e0 / ({' + '.join(of_others)})" for of_others in ratios]

    def _class(self, scores: list[str]) -> str:
        """The class of the largest linear predictor, of equal ones the first; NULL where they are."""
        assert self.terms.classes is not None
        labels = self.terms.classes.tolist()
        kind_of_values(labels, "The target")
        columns = [f'"s".{ansi_name(name)}' for name in scores]
        if len(columns) == 1:
            conditions = [f"{columns[0]} <= 0", f"{columns[0]} > 0"]
        else:
            conditions = [" AND ".join(f"{a} >= {b}" for b in columns if b != a) for a in columns]
        values = map(Dialect().value, labels)
        cases = " ".join(f"WHEN {condition} THEN {value}" for condition, value in zip(conditions, values))
        return f"CASE {cases} END"

    def _score(self, output: int) -> Iterator[str]:
        for term in self.terms.terms:
            yield self._product(term, output)
        offset = self.terms.offset
        if offset is not None:
            value = self.columns.number_of(offset.name)
            yield f"LN({value})" if offset.is_exposure else value

    def _product(self, term: TermRecord, output: int) -> str:
        factors = [] if term.constant == 1.0 else [number(term.constant)]
        factors += [self.columns.number_factor(factor) for factor in term.numbers]
        factors += [self._coefficient(factor, output) for factor in term.lookups]
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
        if (factor.table, factor.columns) not in self.aliases:
            codings = self.terms.tables[factor.table].codings
            compared = [self.key(coding, column) for coding, column in zip(codings, factor.columns, strict=True)]
            self.join((factor.table, factor.columns), name, zip(keys, compared, strict=True))
        return self.aliases[factor.table, factor.columns], values

    def _create_term(self, factor: LookupFactor) -> tuple[str, list[str], list[str]]:
        table = self.terms.tables[factor.table]
        width = table.values.shape[1] * table.values.shape[2]
        values = _value_names(width)
        keys, categories = self.keys(table.codings, factor.columns, set(values))
        numbers = table.values.reshape(len(table.values), -1).tolist()
        rows = [
            [*(literals[code] for literals, code in zip(categories, codes)), *map(number, line)]
            for codes, line in zip(table.codes.tolist(), numbers, strict=True)
        ]
        name = f"{self.rows}_term_{len(self._tables) + 1}_{slug(table.name)}".rstrip("_")
        self.create(name, keys + [(value, "number") for value in values], rows)
        return name, [key for key, _ in keys], values


def _value_names(n: int) -> list[str]:
    return ["value"] if n == 1 else [f"value_{position + 1}" for position in range(n)]


def _exp(text: str) -> str:
    """An exponential that neither overflows nor underflows."""
    return f"CASE WHEN {text} > {_FAR} THEN EXP({_FAR}) WHEN {text} < -{_FAR} THEN 0e0 ELSE EXP({text}) END"


class EncoderView(SQLTables):
    """The statements of one encoder; `features`: the columns of fit."""

    def __init__(self, writer: Dialect, lookups: list[ColumnLookup], features: list[str], table: str) -> None:
        kinds = {lookup.column: lookup.kind for lookup in lookups}
        codings = tuple(lookup.coding for lookup in lookups)
        terms = ModelTerms(0, "identity", None, kinds, codings, (), (), features=tuple(features))
        super().__init__(writer, terms, table)
        self.lookups = {lookup.column: (index, lookup) for index, lookup in enumerate(lookups)}

    def text(self, keep: list[str]) -> str:
        """The statements; the view has the columns to keep first."""
        checked = [lookup.column for _, lookup in self.lookups.values() if lookup.checked]
        if checked:
            raise ValueError(
                f"handle_unknown='error' raises an error for unknown categories of column {checked[0]!r}, which a view "
                "cannot; set_params(handle_unknown='return_nan') to export the encoder."
            )
        columns = [(name, self._row_column(name)) for name in keep]
        for name in self.terms.features:
            columns += self._encoded(*self.lookups[name]) if name in self.lookups else [(name, self._row_column(name))]
        if not columns:
            raise ValueError(
                "The encoder makes no column, as all are constant or dropped, and a view has at least one; name "
                "columns to keep, or fit with drop=None and drop_invariant=False."
            )
        names = [name.casefold() for name, _ in columns]
        twice = next((name for name, _ in columns if names.count(name.casefold()) > 1), None)
        if twice is not None:
            raise ValueError(
                f"The view would have two columns {twice!r}; leave that out of keep, or rename one before fit."
            )
        listed = ", ".join(f"{value} AS {ansi_name(name)}" for name, value in columns)
        head = f"CREATE VIEW {self.quoted(f'{self.rows}_{ENCODED}')} AS\n"
        return self.with_view(f"{head}SELECT {listed}{self.source()}")

    def _row_column(self, name: str) -> str:
        return f'"r".{ansi_name(name)}'

    def _encoded(self, index: int, lookup: ColumnLookup) -> Iterator[tuple[str, str]]:
        """The output columns of a column, by name."""
        if not lookup.names:
            return
        is_text, is_onehot = lookup.values.dtype == object, lookup.values.ndim == 1
        values = lookup.values[:, None] if is_onehot else lookup.values
        literals = [[self._literal(value, whole=is_onehot) for value in row] for row in values.tolist()]
        heads = _value_names(values.shape[1])
        [(key, kind)], [keys] = self.keys((index,), (lookup.column,), {"code", *heads})
        name = f"{self.rows}_encoding_{index + 1}_{slug(lookup.column)}".rstrip("_")
        type_ = "text" if is_text else "whole" if is_onehot else "number"
        lines = enumerate(zip(keys, literals[:-1], strict=True))
        rows = [[key_literal, str(code), *line] for code, (key_literal, line) in lines]
        self.create(name, [(key, kind), ("code", "whole"), *((head, type_) for head in heads)], rows)
        self.join(lookup.column, name, [(key, self.key(index, lookup.column))])
        alias = self.aliases[lookup.column]
        columns = [
            self._value(alias, head, [line[position] for line in literals]) for position, head in enumerate(heads)
        ]
        yield from zip(lookup.names, self._ones(columns[0], lookup) if is_onehot else columns, strict=True)

    def _value(self, alias: str, head: str, literals: list[str]) -> str:
        """A column of the joined table, or what values without a code have."""
        value, default = f"{alias}.{ansi_name(head)}", literals[-1]
        if default == "NULL":
            return value
        if "NULL" in literals:
            return f'CASE WHEN {alias}."code" IS NULL THEN {default} ELSE {value} END'
        return f"COALESCE({value}, {default})"

    def _ones(self, hot: str, lookup: ColumnLookup) -> list[str]:
        """0/1 columns from `hot`, the number of the column that is 1; -2 is a row of NULL."""
        missing = " WHEN -2 THEN NULL" if (lookup.values == -2).any() else ""
        return [f"CASE {hot} WHEN {position} THEN 1{missing} ELSE 0 END" for position in range(len(lookup.names))]

    def _literal(self, value: Any, *, whole: bool) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "NULL"
        return self.writer.value(int(value) if whole else value)
