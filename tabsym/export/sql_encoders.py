"""Encoders in SQL: a table of each encoded column, and a view of the columns that `transform` returns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tabsym.encoders.lookups import ColumnLookup
from tabsym.export.sql_tables import SQLTables
from tabsym.export.sql_text import Writer, ansi_name, slug, unique
from tabsym.models.records import ModelTerms

ENCODED = "encoded"


class EncoderView(SQLTables):
    """The statements of one encoder; `features`: the columns of fit."""

    def __init__(self, writer: Writer, lookups: list[ColumnLookup], features: list[str], table: str) -> None:
        kinds = {one.column: one.kind for one in lookups}
        codings = tuple(one.coding for one in lookups)
        super().__init__(
            writer, ModelTerms(0, "identity", None, kinds, codings, (), (), features=tuple(features)), table
        )
        self.lookups = {one.column: (index, one) for index, one in enumerate(lookups)}

    def text(self, keep: list[str]) -> str:
        """The statements; the view has the columns to keep first."""
        checked = [one.column for _, one in self.lookups.values() if one.checked]
        if checked:
            raise ValueError(
                f"handle_unknown='error' raises an error for unknown categories of column {checked[0]!r}, which a view "
                "cannot; set_params(handle_unknown='return_nan') to export the encoder."
            )
        columns = [(name, self._own(name)) for name in keep]
        for name in self.terms.features:
            columns += self._encoded(*self.lookups[name]) if name in self.lookups else [(name, self._own(name))]
        names = [name.casefold() for name, _ in columns]
        twice = next((name for name, _ in columns if names.count(name.casefold()) > 1), None)
        if twice is not None:
            raise ValueError(
                f"The view would have two columns {twice!r}; leave that out of keep, or rename one before fit."
            )
        listed = ", ".join(f"{value} AS {ansi_name(name)}" for name, value in columns)
        head = f"CREATE VIEW {self.quoted(f'{self.rows}_{ENCODED}')} AS\n"
        return self.with_view(f"{head}SELECT {listed}{self.source()}")

    def _own(self, name: str) -> str:
        return f'"r".{ansi_name(name)}'

    def _encoded(self, index: int, lookup: ColumnLookup) -> Iterator[tuple[str, str]]:
        """The output columns of a column, by name."""
        if not lookup.names:
            return
        is_bins = lookup.coding.bounds is not None
        is_text, is_onehot = lookup.values.dtype == object, lookup.values.ndim == 1
        values = lookup.values[:, None] if is_onehot else lookup.values
        literals = [[self._literal(one, whole=is_onehot) for one in row] for row in values.tolist()]
        heads = [f"value_{place + 1}" for place in range(values.shape[1])] if values.shape[1] > 1 else ["value"]
        key = unique([f"{lookup.column} bin" if is_bins else lookup.column], {"code", *heads})[0]
        kind = "whole" if is_bins else self.columns.key_kind(lookup.coding, lookup.column)
        keys = self.columns.literals(lookup.coding, lookup.column)
        if is_bins:  # as the table of the bins numbers them
            keys = [str(code) for code in range(len(lookup.coding))]
        name = f"{self.rows}_encoding_{index + 1}_{slug(lookup.column)}".rstrip("_")
        type_ = "text" if is_text else "whole" if is_onehot else "number"
        rows = [[own, str(code), *line] for code, (own, line) in enumerate(zip(keys, literals[:-1], strict=True))]
        self.create(name, [(key, kind), ("code", "whole"), *((head, type_) for head in heads)], rows)
        self.join(lookup.column, name, [(key, self.key(index, lookup.column))])
        alias = self.aliases[lookup.column]
        found = [self._value(alias, head, [line[place] for line in literals]) for place, head in enumerate(heads)]
        yield from zip(lookup.names, self._ones(found[0], lookup) if is_onehot else found, strict=True)

    def _value(self, alias: str, head: str, literals: list[str]) -> str:
        """A column of the joined table, or what values without a code have."""
        own, default = f"{alias}.{ansi_name(head)}", literals[-1]
        if default == "NULL":
            return own
        if "NULL" in literals:
            return f'CASE WHEN {alias}."code" IS NULL THEN {default} ELSE {own} END'
        return f"COALESCE({own}, {default})"

    def _ones(self, one: str, lookup: ColumnLookup) -> list[str]:
        """0/1 columns from the number of the one that is 1; -2 is a row of NULL."""
        missing = " WHEN -2 THEN NULL" if (lookup.values == -2).any() else ""
        return [f"CASE {one} WHEN {place} THEN 1{missing} ELSE 0 END" for place in range(len(lookup.names))]

    def _literal(self, value: Any, *, whole: bool) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "NULL"
        return self.writer.value(int(value) if whole else value)
