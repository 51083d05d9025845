"""`to_excel`: rate tables, a sheet a term, and a sheet whose formulas score a row that is typed in."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path
from typing import Any

from tabsym.design.formula import Binary, Call, ColumnRef, Node, NumberLiteral
from tabsym.export.rate_tables import MISSING, TermLines, Text, cell_of, letter, names_of_outputs, number, title
from tabsym.export.spec import terms_of
from tabsym.models.export_terms import Coding, LookupFactor, ModelTerms, NumberFactor, TermRecord

MAX_TEXT, MAX_ROWS = 32_767, 1_048_576
"""Characters of a cell, and rows of a sheet."""
EPOCH = 25_569
"""1970-01-01 as Excel counts days."""
ROUNDING = 1e-9
"""Days, a tenth of a millisecond: times in sheets are no more exact than that, and bounds of bins are times of rows."""
_FUNCTIONS = {
    "log": "LN({})",
    "log1p": "LN(1+{})",
    "log2": "(LN({})/LN(2))",
    "log10": "LOG10({})",
    "sqrt": "SQRT({})",
    "exp": "EXP({})",
    "abs": "ABS({})",
}
_PARTS = {
    "month": 'TEXT(MONTH({}),"00")',
    "week": 'TEXT(ISOWEEKNUM({}),"00")',
    "weekday": 'CHOOSE(WEEKDAY({},2),"Mon","Tue","Wed","Thu","Fri","Sat","Sun")',
    "hour": 'TEXT(HOUR({}),"00")',
    "minute": 'TEXT(MINUTE({}),"00")',
    "text": '{}&""',
    "booleans": 'IF({},"True","False")',
}
Reference = str


def to_excel(model: Any, path: str | os.PathLike[str], *, base: Mapping[str, Any] | str | None = None) -> Path:
    """Write the rate tables of a fitted model to an Excel file.

    The sheet "score" computes the prediction of a row that is typed into it by formulas that look values up in the
    other sheets: there is one for each term, with categories (or bins), training rows, coefficients, relativities
    (factors of the mean or of the odds) and 95 % intervals. What is edited there changes the score.

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Also behind `DateParts` in a pipeline, or the winner of a comparison.
    path : path
        Best with the ending ``.xlsx``.
    base : mapping of term -> category, "largest" or None, default None
        As in `coef_table`: the base category of a term, from which coefficients and intervals are differences and
        relativities ratios (its own is 1); "largest": the category with most rows. None: from the mean of the term. The
        intercept is that of the base categories, so that predictions stay the same. A category's count effect is part
        of its coefficient. Factors of products have no base.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError, TypeError
        A part of the model has no place in a sheet, with a message that names it.
    ModuleNotFoundError
        openpyxl is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym.export import to_excel
    >>> X, y = pd.DataFrame({"town": ["Ulm", "Bonn"] * 9}), [1.0, 3.0] * 9
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = to_excel(WideRegressor().fit(X, y), Path(folder) / "rates.xlsx")
    ...     pd.read_excel(path, sheet_name="1 town")["town"].tolist()
    ['Ulm', 'Bonn']
    """
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise ModuleNotFoundError('to_excel needs openpyxl: pip install "tabsym[export]".', name="openpyxl") from None
    terms = terms_of(model, base)
    book = openpyxl.Workbook()
    _Book(book, terms).fill()
    path = Path(path)
    book.save(path)
    return path


class _Book:
    """The sheets of one model."""

    def __init__(self, book: Any, terms: ModelTerms) -> None:
        self.book, self.terms = book, terms
        self.score, self._n_rows = book.active, 0
        self.score.title = "score"
        self._read: dict[str, Reference] = {}  # column -> the cell of its value, or the word for missing
        self._typed: dict[str, Reference] = {}  # column -> the cell that is typed into
        self._bins: dict[tuple[int, str], Reference] = {}  # coding, column -> the cell of its bin
        self._bounds: dict[int, Reference] = {}  # coding -> the range of its bounds
        self._sheets = TermSheets(book, terms)
        self._lookups: dict[LookupFactor, list[Reference]] = {}  # -> the cells of its coefficients, by output
        self.outputs = range(terms.n_outputs)
        self.names = self._sheets.names

    def fill(self) -> None:
        self._write_inputs()
        for term in self.terms.terms:
            for factor in term.lookups:
                self._add_lookup(factor)
        self._write_terms()
        for column, width in (("A", 34), ("B", 22), ("C", 22)):
            self.score.column_dimensions[column].width = width

    # -- the sheet that scores ------------------------------------------------------------------------

    def _row(self, *cells: Any) -> int:
        """A new row of the sheet, and its number."""
        self._n_rows += 1
        write_row(self.score, self._n_rows, cells)
        return self._n_rows

    def _write_inputs(self) -> None:
        self._row(Text("Type a row into column B; leave a cell empty where the value is missing."))
        self._row()
        self._row(Text("column"), Text("value"), Text("read as"))
        offset = self.terms.offset
        names = [self.terms.source(name) for name in self.terms.columns]
        names += [] if offset is None else [offset.name]
        for name in dict.fromkeys(names):
            row = self._row(Text(name))
            self._typed[name] = f"$B${row}"
            self._read[name] = self._write_reading(row, f"$B${row}", f"$B${row}")
            if self._is_date(name):
                self.score.cell(row, 2).number_format = self.score.cell(row, 3).number_format = "yyyy-mm-dd hh:mm"
        for name, derived in self.terms.derived.items():
            self._typed[name] = self._typed[derived.source]
            if derived.part != "day":
                row = self._row(Text(name))
                form = _PARTS["booleans" if derived.style == "booleans" else derived.part]
                self._read[name] = self._write_reading(row, self._typed[name], form.format(self._typed[name]))
        self._row()
        self._row(Text("bins and coefficients that are looked up"), *map(Text, self.names))

    def _write_reading(self, row: int, typed: Reference, value: str) -> Reference:
        """The cell with what is read from a typed one: the word for missing, or a value."""
        self.score.cell(row, 3).value = f'=IF(ISBLANK({typed}),"{MISSING}",{value})'
        return f"$C${row}"

    def _is_date(self, column: str) -> bool:
        sources = {derived.source for derived in self.terms.derived.values() if derived.part != "text"}
        return column in sources or self.terms.columns.get(column, "").startswith("date")

    def _add_lookup(self, factor: LookupFactor) -> None:
        table = self.terms.tables[factor.table]
        if factor in self._lookups:
            return
        matches = [self._matches(factor, position) for position in range(len(table.codings))]
        formulas = []
        for output in self.outputs:
            values = self._sheets.values(factor, output)
            default = float(table.default[factor.component, output])
            formulas.append(_look_up(matches, values, default, len(table.values)))
        label = f"{table.name}[{', '.join(factor.columns)}]" if factor.columns else table.name
        row = self._row(Text(label), *formulas)
        self._lookups[factor] = [f"${letter(2 + output)}${row}" for output in self.outputs]

    def _matches(self, factor: LookupFactor, position: int) -> str:
        """Which rows of a table have the value of a column, as a formula of an array."""
        table = self.terms.tables[factor.table]
        keys = self._sheets.keys(factor, position)
        index, column = table.codings[position], factor.columns[position]
        coding = self.terms.codings[index]
        if coding.bounds is not None:
            return f"({keys}={self._bin(index, column)})"
        if _is_text(coding):
            return f"EXACT({keys},{self._read[column]})"
        return f"({keys}={self._read[column]})"

    def _bin(self, index: int, column: str) -> Reference:
        """The cell with the number of a column's bin."""
        if (index, column) not in self._bins:
            coding = self.terms.codings[index]
            first, below = int(coding.missing), "0"
            if coding.bounds is not None and len(coding.bounds):
                below = f"SUMPRODUCT(({self._read[column]}>{self._bounds_of(index, column)})*1)"
            formula = f"=IF(ISBLANK({self._typed[column]}),{first - 1},{below}+{first})"
            row = self._row(Text(f"bin of {column}"), formula)
            self._bins[index, column] = f"$B${row}"
        return self._bins[index, column]

    def _bounds_of(self, coding: int, column: str) -> Reference:
        if coding not in self._bounds:
            sheet = self.book["bins"] if "bins" in self.book.sheetnames else self.book.create_sheet("bins", 1)
            index = len(self._bounds) + 1
            bounds = self.terms.codings[coding].bounds
            assert bounds is not None
            put(sheet.cell(1, index), Text(f"upper bounds of {column}"))
            shift = EPOCH + ROUNDING if self._is_date(column) else 0.0
            shift = ROUNDING if self.terms.columns[column] == "duration" else shift
            for row, bound in enumerate(bounds.tolist(), 2):
                sheet.cell(row, index).value = rounded_up(bound + shift)
                sheet.cell(row, index).number_format = "yyyy-mm-dd hh:mm" if shift > 1.0 else "General"
            self._bounds[coding] = range_of("bins", index, len(bounds))
        return self._bounds[coding]

    def _write_terms(self) -> None:
        self._row()
        self._row(Text("terms"), *map(Text, self.names))
        first = self._n_rows + 1
        for term in self.terms.terms:
            self._row(Text(term.name), *(self._product(term, output) for output in self.outputs))
        offset = self.terms.offset
        if offset is not None:
            formula = f"=LN({self._typed[offset.name]})" if offset.is_exposure else f"={self._number_of(offset.name)}"
            self._row(Text(f"offset: {offset.name}"), *(formula for _ in self.outputs))
        last = self._n_rows
        sums = [f"=SUM({letter(2 + k)}{first}:{letter(2 + k)}{last})" if last >= first else 0.0 for k in self.outputs]
        row = self._row(Text("linear predictor"), *sums)
        self._write_prediction([f"{letter(2 + output)}{row}" for output in self.outputs])

    def _write_prediction(self, scores: list[Reference]) -> None:
        link = self.terms.link
        if self.terms.classes is None:
            self._row(Text("prediction"), f"=EXP({scores[0]})" if link == "log" else f"={scores[0]}")
            return
        header = self._row(Text("classes"), *map(cell_of, self.terms.classes.tolist()))
        if len(scores) == 1:
            if link == "logit":
                self._row(Text("probability"), f"=1-C{header + 1}", f"=1/(1+EXP(-{scores[0]}))")
            self._row(Text("prediction"), f"=IF({scores[0]}>0,C{header},B{header})")
            return
        ends = f"{scores[0]}:{scores[-1]}"
        odds = [f"=EXP({score}-MAX({ends}))" for score in scores]
        row = self._row(Text("odds to the largest"), *odds)
        among = f"{letter(2)}{row}:{letter(1 + len(scores))}{row}"
        self._row(Text("probability"), *(f"={letter(2 + k)}{row}/SUM({among})" for k in self.outputs))
        names = f"{letter(2)}{header}:{letter(1 + len(scores))}{header}"
        self._row(Text("prediction"), f"=INDEX({names},1,MATCH(MAX({ends}),{ends},0))")

    def _product(self, term: TermRecord, output: int) -> str:
        factors = [] if term.constant == 1.0 else [number(term.constant)]
        factors += [self._numeric(factor) for factor in term.numbers]
        factors += [self._lookups[factor][output] for factor in term.lookups]
        return "=" + ("*".join(factors) or "1")

    def _numeric(self, factor: NumberFactor) -> str:
        if factor.fill is not None and isinstance(factor.node, ColumnRef):
            name = factor.node.name
            return f"IF(ISBLANK({self._typed[name]}),{number(factor.fill)},{self._number_of(name)})"
        return self._expression(factor.node)

    def _expression(self, node: Node) -> str:
        match node:
            case NumberLiteral():
                return number(node.value)
            case ColumnRef():
                return self._number_of(node.name)
            case Call():
                return _FUNCTIONS[node.function].format(self._expression(node.argument))
            case Binary():
                sign = "^" if node.operator == "**" else node.operator
                return f"({self._expression(node.left)}{sign}{self._expression(node.right)})"
        raise AssertionError(f"{node} is not numeric")

    def _number_of(self, column: str) -> str:
        """A column's number, of dates the days since 1970; an error where it is missing."""
        cell = self._read[column]
        return f"({cell}-{EPOCH})" if self._is_date(column) else f"({cell}+0)"


def _is_text(coding: Coding) -> bool:
    assert coding.categories is not None
    return not all(
        isinstance(category, (int, float, dt.date)) for category in coding.categories.tolist() if category is not None
    )


def _look_up(matches: list[str], values: Reference, default: float, length: int) -> str:
    if not matches:
        return "=" + values.split(":")[0]
    if not length:
        return f"={number(default)}"
    among = "*".join(matches)
    total = f"SUMPRODUCT({among}*{values})"
    return f"={total}" if default == 0.0 else f"=IF(SUMPRODUCT({among}*1)=0,{number(default)},{total})"


# -- sheets -----------------------------------------------------------------------------------------------


class TermSheets:
    """A sheet for each lookup table, made when it is first used."""

    def __init__(self, book: Any, terms: ModelTerms) -> None:
        self.book, self.terms = book, terms
        self.names = names_of_outputs(terms)
        self._sheet_of_table: dict[int, tuple[str, int]] = {}  # table -> sheet, number of key columns

    def keys(self, factor: LookupFactor, index: int) -> str:
        """The range of the keys of a table at a position."""
        sheet, _ = self._sheet(factor)
        return range_of(sheet, index + 1, len(self.terms.tables[factor.table].values))

    def values(self, factor: LookupFactor, output: int) -> str:
        """The range of the coefficients of a component for a linear predictor."""
        sheet, n_keys = self._sheet(factor)
        first = n_keys + 2 + factor.component * self.terms.n_outputs
        return range_of(sheet, first + output, len(self.terms.tables[factor.table].values))

    def _sheet(self, factor: LookupFactor) -> tuple[str, int]:
        if factor.table not in self._sheet_of_table:
            self._sheet_of_table[factor.table] = self._write(factor)
        return self._sheet_of_table[factor.table]

    def _write(self, factor: LookupFactor) -> tuple[str, int]:
        """The sheet of a lookup table; its name, and how many columns of keys it has."""
        table = self.terms.tables[factor.table]
        if len(table.values) >= MAX_ROWS:
            raise ValueError(
                f"Term {table.name!r} has {len(table.values):,} coefficients, more than the {MAX_ROWS - 1:,} rows of a "
                "sheet; use to_sql or to_spec."
            )
        name = title(f"{len(self._sheet_of_table) + 1} {table.name}")
        sheet = self.book.create_sheet(name)
        lines = TermLines(self.terms, factor, self.names, with_formulas=True)
        for row, cells in enumerate(lines, 1):
            write_row(sheet, row, cells)
        sheet.freeze_panes = "A2"
        sheet.column_dimensions["A"].width = 28
        return name, lines.n_keys


def range_of(sheet: str, column: int, length: int) -> str:
    """The cells of a column below its head."""
    quoted = "'" + sheet.replace("'", "''") + "'"
    return f"{quoted}!${letter(column)}$2:${letter(column)}${length + 1}"


def write_row(sheet: Any, row: int, cells: Sequence[Any]) -> None:
    """Write cells from the first column on."""
    for column, value in enumerate(cells, 1):
        put(sheet.cell(row, column), value)


def put(cell: Any, value: Any) -> None:
    """Set a cell; text is kept as text whatever it begins with, so that no category is a formula."""
    from openpyxl.utils.exceptions import IllegalCharacterError

    if not isinstance(value, Text):
        cell.value = value
        return
    if len(value) > MAX_TEXT:
        raise ValueError(
            f"The text {value[:40]!r}... has {len(value):,} characters, more than a cell of a sheet holds."
        )
    try:
        cell.value = str(value)
    except IllegalCharacterError:
        raise ValueError(f"The text {str(value)[:40]!r} holds a character that Excel files cannot.") from None
    cell.data_type = "s"
    if value[:1] in ("=", "+", "-", "@", "'"):
        cell.quotePrefix = True


def rounded_up(value: float) -> float:
    """A number of the 16 digits that openpyxl writes, which is not below: a bound of bins belongs to the bin below."""
    return float(Context(prec=16, rounding=ROUND_CEILING).create_decimal(Decimal(value)))
