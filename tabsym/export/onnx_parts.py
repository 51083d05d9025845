"""What of a model or encoder becomes an ONNX graph: inputs and outputs with their types, and the nodes between them.

ONNX has no dates, so the calendar is computed from days since 1970-01-01: years begin in March, so that the leap day
is their last one, and all eras of 400 years have the same days (H. Hinnant, "chrono-compatible low-level date
algorithms").
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders.base import TableTransformer
from tabsym.encoders.lookups import ColumnLookup, lookup_tables
from tabsym.export.onnx_graph import BOOL, DOUBLE, INT64, STRING, Codes, Graph, Sum, with_default
from tabsym.export.spec import as_text, number_of_part, terms_of
from tabsym.frame.storage import object_array
from tabsym.models.export_terms import Coding, ModelTerms

_DAY, _HOUR, _MINUTE = 86_400e6, 3_600e6, 60e6
"""In microseconds, to which times of day are rounded: a fraction of a day is no exact number."""
_TO_ERA, _ERA = 719_468.0, 146_097.0
"""Days from 0000-03-01 to 1970-01-01, and of 400 years."""


def whole_days(value: Any) -> int | None:
    """A date, or a moment at midnight without a time zone, as days since 1970; None for other values."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None or value.time() != dt.time() or getattr(value, "nanosecond", False):
            return None
        value = value.date()
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else None


def part_of_date(graph: Graph, days: str, part: str) -> str:
    """A part as a number (n, 1), NaN where the day is: month, ISO week, weekday (1 is Monday), hour or minute."""
    own = _Calendar(graph)
    micro = graph.add("Round", own.times(days, _DAY))
    day = own.floor(micro, _DAY)
    time = own.minus(micro, own.times(day, _DAY))
    hour = own.floor(time, _HOUR)
    if part == "hour":
        return hour
    if part == "minute":
        return own.floor(own.minus(time, own.times(hour, _HOUR)), _MINUTE)
    from_monday = own.modulo(own.plus(day, 3.0), 7.0)  # 1970 began on a Thursday
    if part == "weekday":
        return own.plus(from_monday, 1.0)
    if part == "month":
        return own.month(own.in_era(day)[1])
    return own.week(own.plus(own.minus(day, from_monday), 3.0))


class _Calendar:
    """Arithmetic of doubles, and dates by it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def plus(self, one: str, other: str | float) -> str:
        return self.graph.add("Add", one, self._tensor(other))

    def minus(self, one: str, other: str | float) -> str:
        return self.graph.add("Sub", one, self._tensor(other))

    def times(self, one: str, number: float) -> str:
        return self.graph.add("Mul", one, self._tensor(number))

    def floor(self, one: str, by: float) -> str:
        return self.graph.add("Floor", self.graph.add("Div", one, self._tensor(by)))

    def modulo(self, one: str, by: float) -> str:
        return self.minus(one, self.times(self.floor(one, by), by))

    def _tensor(self, value: str | float) -> str:
        return value if isinstance(value, str) else self.graph.constant(value)

    def in_era(self, day: str) -> tuple[str, str]:
        """The year of its era, from 0 on, and the day of the year; years begin in March."""
        of_era = self.modulo(self.plus(day, _TO_ERA), _ERA)
        whole = self.minus(of_era, self.floor(of_era, 1460.0))
        whole = self.minus(self.plus(whole, self.floor(of_era, 36_524.0)), self.floor(of_era, 146_096.0))
        year = self.floor(whole, 365.0)
        before = self.minus(self.plus(self.times(year, 365.0), self.floor(year, 4.0)), self.floor(year, 100.0))
        return year, self.minus(of_era, before)

    def month(self, of_year: str) -> str:
        from_march = self.floor(self.plus(self.times(of_year, 5.0), 2.0), 153.0)
        return self.plus(self.modulo(self.plus(from_march, 2.0), 12.0), 1.0)

    def week(self, thursday: str) -> str:
        """The week of the year, which is that of its Thursday."""
        year, of_year = self.in_era(thursday)
        is_leap = self.minus(
            self._divides(year, 4.0), self.minus(self._divides(year, 100.0), self._divides(year, 400.0))
        )
        late = self.graph.add("GreaterOrEqual", of_year, self._tensor(306.0))  # January and February
        from_january = self.plus(self.plus(of_year, 59.0), is_leap)
        own = self.graph.add("Where", late, self.minus(of_year, 306.0), from_january)
        return self.plus(self.floor(own, 7.0), 1.0)

    def _divides(self, year: str, by: float) -> str:
        """1 where the year is a multiple, else 0."""
        rest = self.modulo(year, by)
        return self.minus(self._tensor(1.0), self.graph.add("Min", rest, self._tensor(1.0)))


EXACT = 2**53
"""Whole numbers beyond this are not all doubles."""


class GraphParts:
    """What is made into a graph: inputs with their types, outputs with their types and widths, and how.

    Attributes
    ----------
    inputs : dict of str -> int or None
        STRING or DOUBLE by column of the table; None where either will do.
    outputs : dict of str -> (int, int or None)
        Type and columns; None for a vector.
    features : tuple of str
        The columns of fit, in order.
    """

    inputs: dict[str, int | None]
    outputs: dict[str, tuple[int, int | None]]
    features: tuple[str, ...]

    def build(self, graph: Graph, columns: dict[str, str]) -> dict[str, str]:
        """Add the nodes; from the tensors of the inputs to those of the outputs."""
        raise NotImplementedError


def parts_of(model: Any, missing_text: str) -> GraphParts:
    """What `to_onnx` and the converters of skl2onnx make of a model or encoder."""
    if isinstance(model, TableTransformer):
        return _EncoderParts(model, lookup_tables(model), missing_text)
    return _ModelParts(terms_of(model), missing_text)


class _ModelParts(GraphParts):
    def __init__(self, terms: ModelTerms, missing_text: str) -> None:
        refuse_checked([name for name, _ in terms.checked])
        self.terms, self.missing_text, self.features = terms, missing_text, terms.features
        codings: dict[str, list[Coding]] = {name: [] for name in terms.columns}
        for term in terms.terms:
            for factor in term.lookups:
                for index, name in zip(terms.tables[factor.table].codings, factor.columns, strict=True):
                    codings[name].append(terms.codings[index])
        dates = {own.source for own in terms.derived.values() if own.part != "text"}
        self.inputs = {
            terms.source(name): DOUBLE
            if terms.source(name) in dates
            else input_type(terms.source(name), kind, codings[name], missing_text)
            for name, kind in terms.columns.items()
        }
        if terms.offset is not None:
            self.inputs[terms.offset.name] = DOUBLE
        if terms.classes is None:
            self.outputs = {"variable": (DOUBLE, 1)}
        else:
            shares = "probabilities" if terms.link in ("logit", "softmax") else "scores"
            width = 1 if shares == "scores" and terms.n_outputs == 1 else len(terms.classes)
            self.classes, kind = _labels(terms.classes)
            self.outputs = {"label": (kind, None), shares: (DOUBLE, width)}

    def build(self, graph: Graph, columns: dict[str, str]) -> dict[str, str]:
        """Add the sum of the terms, and what the link makes of it; the names of the outputs."""
        own = {name: self._tensor(graph, columns, name) for name in self.terms.columns}
        if self.terms.offset is not None:
            own[self.terms.offset.name] = columns[self.terms.offset.name]
        texts = {name for name in self.terms.columns if self.inputs[self.terms.source(name)] == STRING}
        codes = Codes(graph, self.terms.codings, own or columns, texts, self.missing_text, self._number_of)
        margins = Sum(self.terms, codes).margins()
        if self.terms.classes is None:
            return {"variable": graph.add("Exp", margins) if self.terms.link == "log" else margins}
        if self.terms.n_outputs == 1:
            above = graph.add("Greater", margins, graph.constant(0.0))
            position = graph.cast(graph.add("Squeeze", above, graph.constant([1])), INT64)
        else:
            position = graph.add("ArgMax", margins, axis=1, keepdims=0)
        found = {"label": graph.add("Gather", graph.constant(self.classes), position)}
        if "scores" in self.outputs:
            return found | {"scores": margins}
        if self.terms.n_outputs == 1:
            margins = graph.add("Concat", graph.add("Sub", margins, margins), margins, axis=1)
        return found | {"probabilities": graph.add("Softmax", margins, axis=1)}

    def _tensor(self, graph: Graph, columns: dict[str, str], name: str) -> str:
        own = columns[self.terms.source(name)]
        part = self._part(name)
        return own if part is None else part_of_date(graph, own, part)

    def _part(self, column: str) -> str | None:
        """The part of a date that a column is; None for the day, which is what there is of a date, and others."""
        made = self.terms.derived.get(column)
        return None if made is None or made.part in ("day", "text") else made.part

    def _number_of(self, column: str, category: Any) -> float:
        return _number_of(column, category) if self._part(column) is None else float(number_of_part(category))


class _EncoderParts(GraphParts):
    def __init__(self, encoder: Any, lookups: list[ColumnLookup], missing_text: str) -> None:
        refuse_checked([one.column for one in lookups if one.checked])
        self.lookups, self.missing_text = {one.column: one for one in lookups}, missing_text
        self.features = tuple(map(str, encoder.get_feature_names_in()))
        self.inputs = {
            name: input_type(name, one.kind, [one.coding], missing_text) for name, one in self.lookups.items()
        }
        texts = {one.values.dtype == object for one in lookups if one.names}
        passed = [name for name in self.features if name not in self.lookups]
        if True in texts and (False in texts or passed):
            name = next((one.column for one in lookups if one.values.dtype != object), *passed[:1])
            raise ValueError(
                f"The encoder makes text of some columns and numbers of column {name!r}, and an ONNX output has one "
                "type; encode them by two encoders."
            )
        self.inputs = {name: self.inputs.get(name, DOUBLE) for name in self.features}
        width = sum(len(self.lookups[name].names) if name in self.lookups else 1 for name in self.features)
        if not width:
            raise ValueError(
                "The encoder makes no column, as all are constant or dropped, and an ONNX output has at least one; fit "
                "with drop=None and drop_invariant=False."
            )
        self.outputs = {"variable": (STRING if True in texts else DOUBLE, width)}

    def build(self, graph: Graph, columns: dict[str, str]) -> dict[str, str]:
        """Add the lookups of the encoded columns; the name of the output, in which all columns are."""
        codings = tuple(one.coding for one in self.lookups.values())
        texts = {name for name, kind in self.inputs.items() if kind == STRING}
        codes = Codes(graph, codings, columns, texts, self.missing_text, _number_of)
        found = []
        for name in self.features:
            if name not in self.lookups:
                found.append(columns[name])
            elif self.lookups[name].names:
                rows = codes.of(list(self.lookups).index(name), name)
                found.append(self._encoded(graph, self.lookups[name], rows))
        return {"variable": graph.add("Concat", *found, axis=1)}

    def _encoded(self, graph: Graph, lookup: ColumnLookup, rows: str) -> str:
        """(n, outputs)"""
        values = with_default(lookup.coding, lookup.values[:-1], lookup.values[-1])
        if values.ndim > 1:
            if values.dtype == object:
                values = np.where(values == None, "", values)  # noqa: E711 (by element)
            return graph.add("Gather", graph.constant(values), rows)
        position = graph.add("Gather", graph.constant(values.astype(np.int64)[:, None]), rows)
        ones = graph.cast(graph.add("Equal", position, graph.constant(np.arange(len(lookup.names))[None, :])), DOUBLE)
        if not (values == -2).any():
            return ones
        is_nan = graph.add("Equal", position, graph.constant(-2))
        return graph.add("Where", is_nan, graph.constant(np.nan), ones)


def refuse_checked(names: Iterable[str]) -> None:
    """A `ValueError` that names the first column whose unknown categories are to be errors."""
    for name in names:
        raise ValueError(
            f"handle_unknown='error' raises an error for unknown categories of column {name!r}, which ONNX cannot; use "
            "set_params with another handle_unknown to export it."
        )


def input_type(name: str, kind: str, codings: Iterable[Coding], missing_text: str) -> int | None:
    """STRING or DOUBLE, or None where either will do.

    Raises
    ------
    ValueError
        The column holds other values, in a sentence that names it.
    """
    types = set[int]() if kind == "category" else {DOUBLE}  # dates and durations are days
    for coding in codings:
        if coding.categories is None:
            types.add(DOUBLE)
            continue
        values = [one for one in coding.categories.tolist() if one is not None]
        types |= {_type_of(name, one) for one in values}
        if missing_text in values:
            raise ValueError(
                f"{missing_text!r} is a category of column {name!r} and would stand for missing text, too; choose "
                "another missing_text."
            )
    return types.pop() if types else None  # a column has values of one type


def _type_of(name: str, value: Any) -> int:
    if whole_days(value) is not None:
        return DOUBLE
    if isinstance(value, (dt.date, dt.timedelta, np.datetime64, np.timedelta64)):
        raise ValueError(
            f"Column {name!r} holds {value!r} as a category, and the days that ONNX gets in place of dates are not "
            "exact enough for moments and durations; make them dates, numbers or text before fit, or use to_spec."
        )
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str):
        return STRING
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= EXACT):
        return DOUBLE
    raise ValueError(
        f"Column {name!r} holds {value!r}, which is neither text nor a double, as inputs of ONNX are; {as_text(value)}."
    )


def _number_of(column: str, category: Any) -> float:
    days = whole_days(category)
    return float(category if days is None else days)


def _labels(classes: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The classes as a tensor, and its type."""
    values = classes.tolist()
    for kind, types in ((BOOL, bool), (INT64, int), (DOUBLE, float), (STRING, str)):
        if all(isinstance(one, types) for one in values):
            return object_array(values) if types is str else np.array(values), kind
    raise ValueError(
        f"The classes {values[0]!r}, {values[1]!r} ... are not all text, whole numbers, numbers or booleans, as labels "
        "of ONNX are; make them text before fit."
    )
