"""The tables of terms in sheets and in the files of `to_csv`; cells: text that is never a formula, and numbers."""

from __future__ import annotations

import csv
import datetime as dt
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np

from tabsym.export.spec import as_text, terms_of
from tabsym.models.export_terms import LookupFactor, ModelTerms

MAX_TEXT, MAX_TITLE, MAX_WHOLE = 32_767, 31, 10**15
"""Characters of a cell and of a sheet's name, and a number that keeps all its digits."""


class Text(str):
    """Text that is no formula."""


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


def cell_of(value: Any) -> Any:
    """A category or class as a cell.

    Raises
    ------
    ValueError
        Cells do not hold its type.
    """
    if isinstance(value, str):
        return Text(value)
    fits = isinstance(value, (bool, float, dt.date)) or (isinstance(value, int) and abs(value) < MAX_WHOLE)
    if fits and getattr(value, "tzinfo", None) is None:
        return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    raise ValueError(f"The category {value!r} is no text, number or date of a sheet; {as_text(value)}.")


def number(value: float) -> str:
    """A number in a formula."""
    return f"({value!r})" if value < 0 else repr(float(value))


def rounded_up(value: float) -> float:
    """A number of the 16 digits that openpyxl writes, which is not below: a bound of bins belongs to the bin below."""
    return float(Context(prec=16, rounding=ROUND_CEILING).create_decimal(Decimal(value)))


def letter(column: int) -> str:
    """The letters of a column of a sheet, from 1 on."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(column))


def title(text: str) -> str:
    """A name for a sheet."""
    return re.sub(r"[\[\]:*?/\\\x00-\x1f]", "_", text)[:MAX_TITLE].strip("'")


def quoted(sheet: str) -> str:
    """A sheet's name in a formula."""
    return "'" + sheet.replace("'", "''") + "'"


MAX_ROWS = 1_048_576
"""Of a sheet."""
MISSING = "(missing)"
LEVEL = 1.959963984540054
"""Standard deviations on either side of a coefficient in its 95 % interval."""


class TermSheets:
    """A sheet for each lookup table, made when it is first used."""

    def __init__(self, book: Any, terms: ModelTerms) -> None:
        self.book, self.terms = book, terms
        self.names = names_of_outputs(terms)
        self._made: dict[int, tuple[str, int]] = {}  # table -> sheet, number of key columns

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
        if factor.table not in self._made:
            self._made[factor.table] = self._write(factor)
        return self._made[factor.table]

    def _write(self, factor: LookupFactor) -> tuple[str, int]:
        """The sheet of a lookup table; its name, and how many columns of keys it has."""
        table = self.terms.tables[factor.table]
        if len(table.values) >= MAX_ROWS:
            raise ValueError(
                f"Term {table.name!r} has {len(table.values):,} coefficients, more than the {MAX_ROWS - 1:,} rows of a "
                "sheet; use to_sql or to_spec."
            )
        name = title(f"{len(self._made) + 1} {table.name}")
        sheet = self.book.create_sheet(name)
        lines = TermLines(self.terms, factor, self.names, with_formulas=True)
        for row, cells in enumerate(lines, 1):
            write_row(sheet, row, cells)
        sheet.freeze_panes = "A2"
        sheet.column_dimensions["A"].width = 28
        return name, lines.n_keys


def names_of_outputs(terms: ModelTerms) -> list[str]:
    """What the columns of coefficients are called: the classes, where there are linear predictors of several."""
    several = terms.n_outputs > 1 and terms.classes is not None
    return [str(one) for one in terms.classes.tolist()] if several else ["coefficient"]  # type: ignore[union-attr]


class TermLines:
    """The lines of a lookup table, the first one its heads.

    With formulas, relativities and intervals follow the coefficients in Excel; else they are numbers.
    """

    def __init__(self, terms: ModelTerms, factor: LookupFactor, names: list[str], *, with_formulas: bool) -> None:
        self.terms, self.names, self.with_formulas = terms, names, with_formulas
        self.table = terms.tables[factor.table]
        codings = self.table.codings
        self._keys = [self._keys_of(coding, column) for coding, column in zip(codings, factor.columns, strict=True)]
        self._heads_of_keys = [
            f"{column} bin" if self._is_bin(coding) else column
            for coding, column in zip(codings, factor.columns, strict=True)
        ]
        if not codings:
            self._heads_of_keys, self._keys = ["coefficient of"], [[Text(self.table.name)]]

    @property
    def n_keys(self) -> int:
        """Columns of a line that name its category or bin."""
        return len(self._keys)

    def __iter__(self) -> Iterator[list[Any]]:
        table, first = self.table, self.n_keys + 2
        yield [Text(head) for head in [*self._heads_of_keys, "rows", *self._heads()]]
        codes = table.codes if table.codings else np.zeros((1, 1), dtype=np.int64)
        values = table.values.reshape(len(table.values), -1).tolist()
        deviations = None if table.sd is None else table.sd.reshape(len(table.values), -1).tolist()
        for position, line in enumerate(values):
            cells: list[Any] = [own[code] for own, code in zip(self._keys, codes[position].tolist(), strict=True)]
            cells += [int(table.rows[position]), *line]
            own = [f"{letter(first + k)}{position + 2}" for k in range(len(line))] if self.with_formulas else line
            if self._has_ratios:
                cells += [f"=EXP({one})" if self.with_formulas else float(np.exp(one)) for one in own]
            if deviations is not None:
                limits = self._limits(own, deviations[position])
                cells += limits + ([_exp_of(one) for one in limits] if self._has_ratios else [])
            yield cells + self._edges(codes[position].tolist())

    def _heads(self) -> list[str]:
        table = self.table
        rank = table.values.shape[1]
        own = [f"{name} {part + 1}" if rank > 1 else name for part in range(rank) for name in self.names]
        plain = self.names == ["coefficient"] and rank == 1
        ratios = (["relativity"] if plain else [f"relativity {one}" for one in own]) if self._has_ratios else []
        of = ["coefficient", "relativity"] if self._has_ratios else ["coefficient"]
        if plain:
            limits = [f"{what} {side}" for what in of for side in ("lower", "upper")]
        else:
            between = ["" if what == "coefficient" else f"{what} " for what in of]
            limits = [f"{what}{side} {one}" for what in between for one in own for side in ("lower", "upper")]
        bins = [f"bin {position + 1}" for position, coding in enumerate(self.table.codings) if self._is_bin(coding)]
        edges = [f"{column} {side}" for column in bins for side in ("above", "up to")]
        return [*own, *ratios, *(limits if table.sd is not None else []), *edges]

    @property
    def _has_ratios(self) -> bool:
        return self.terms.link != "identity"

    def _limits(self, own: list[Any], deviations: Sequence[float]) -> list[Any]:
        """The 95 % intervals; empty where deviations are not known."""
        found: list[Any] = []
        for one, deviation in zip(own, deviations, strict=True):
            reach = LEVEL * deviation
            if not np.isfinite(reach):
                found += [None, None]
            elif self.with_formulas:
                found += [f"={one}-{number(reach)}", f"={one}+{number(reach)}"]
            else:
                found += [one - reach, one + reach]
        return found

    def _edges(self, codes: Sequence[int]) -> list[Any]:
        """The bounds of bins ``(above, up to]``; nothing of missing values."""
        found: list[Any] = []
        for coding, code in zip(self.table.codings, codes, strict=False):
            bounds = self.terms.codings[coding].bounds
            if bounds is not None:
                position = code - int(self.terms.codings[coding].missing)
                found += [
                    float(bounds[position - 1]) if position > 0 else None,
                    float(bounds[position]) if 0 <= position < len(bounds) else None,
                ]
        return found

    def _is_bin(self, coding: int) -> bool:
        return self.terms.codings[coding].bounds is not None

    def _keys_of(self, coding: int, column: str) -> list[Any]:
        """The cell of each code."""
        own = self.terms.codings[coding]
        if own.categories is None:
            return list(range(len(own)))
        categories = own.categories.tolist()
        if MISSING in categories:
            raise ValueError(
                f"Column {column!r} has a category {MISSING!r}, as empty cells have; rename it before fit."
            )
        return [Text(MISSING) if one is None else cell_of(one) for one in categories]


def _exp_of(limit: Any) -> Any:
    """The cell of exp of a limit of a coefficient."""
    if limit is None:
        return None
    return f"=EXP({limit[1:]})" if isinstance(limit, str) else float(np.exp(limit))


def range_of(sheet: str, column: int, length: int) -> str:
    """The cells of a column below its head."""
    return f"{quoted(sheet)}!${letter(column)}$2:${letter(column)}${length + 1}"


def to_csv(model: Any, folder: str | os.PathLike[str], *, base: Mapping[str, Any] | str | None = None) -> list[Path]:
    """Write the rate tables of a fitted model as CSV files, one for each term.

    They have the columns of the sheets of `to_excel`: categories (or bins), training rows, coefficients, relativities
    (factors of the mean or of the odds) and 95 % intervals. Numbers have all their digits; the encoding is UTF-8.

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Also behind `DateParts` in a pipeline, or the winner of a comparison.
    folder : path
        Made where it is absent; files of the same names are replaced, others stay.
    base : mapping of term -> category, "largest" or None, default None
        As in `coef_table`: the base category of a term, from which coefficients and intervals are differences and
        relativities ratios (its own is 1); "largest": the category with most rows. None: from the mean of the term. The
        intercept is that of the base categories, so that predictions stay the same. A category's count effect is part
        of its coefficient. Factors of products have no base.

    Returns
    -------
    list of Path
        The files, in the order of the terms.

    Raises
    ------
    ValueError, TypeError
        A part of the model has no place in a file, in a sentence that names it.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym.export import to_csv
    >>> X, y = pd.DataFrame({"town": ["Ulm", "Bonn"] * 9}), [1.0, 3.0] * 9
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = to_csv(WideRegressor().fit(X, y), folder)
    ...     [file.name for file in files], pd.read_csv(files[0])["town"].tolist()
    (['1 town.csv', '2 (intercept).csv'], ['Ulm', 'Bonn'])
    """
    terms = terms_of(model, base)
    factors: dict[int, LookupFactor] = {}
    for term in terms.terms:
        for factor in term.lookups:
            factors.setdefault(factor.table, factor)
    tables = {}
    for position, factor in enumerate(factors.values(), 1):
        name = re.sub('[<>|"]', "_", title(f"{position} {terms.tables[factor.table].name}"))
        tables[f"{name}.csv"] = list(TermLines(terms, factor, names_of_outputs(terms), with_formulas=False))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)
    return [folder / name for name in tables]
