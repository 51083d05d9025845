"""The nodes and constants of an ONNX graph, and terms, lookup tables and dates as nodes; all numbers are doubles.

Codes are shifted so that 0 is what a coding does not know: a table's first row is its default.

ONNX has no dates, so the calendar is computed from days since 1970-01-01: years begin in March, so that the leap day
is their last one, and all eras of 400 years have the same days (H. Hinnant, "chrono-compatible low-level date
algorithms").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.design.formula import Binary, Call, ColumnRef, Node, NumberLiteral
from tabsym.models.export_terms import Coding, LookupFactor, ModelTerms, NumberFactor, TermRecord

OPSET, ML_OPSET = 18, 3
"""Of the default domain, and of ai.onnx.ml: skl2onnx takes no higher one, so there are no encoders of doubles."""
FLOAT, INT64, STRING, BOOL, DOUBLE = 1, 7, 8, 9, 11
"""Types of tensors, as ONNX numbers them."""
MAX_WHOLE = 2.0**63
_DAY, _HOUR, _MINUTE = 86_400e6, 3_600e6, 60e6
"""In microseconds, to which times of day are rounded: a fraction of a day is no exact number."""
_TO_ERA, _ERA = 719_468.0, 146_097.0
"""Days from 0000-03-01 to 1970-01-01, and of 400 years."""
_FUNCTIONS = {"log": "Log", "sqrt": "Sqrt", "exp": "Exp", "abs": "Abs"}
_LOGARITHMS = {"log2": np.log(2.0), "log10": np.log(10.0)}
_OPERATORS = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "**": "Pow"}


@dataclass
class Graph:
    """Nodes and constants, named by numbers behind a prefix.

    Attributes
    ----------
    prefix : str
    nodes : list of (operator, inputs, output, attributes)
    constants : dict of str -> ndarray
        Arrays of objects are text.
    """

    prefix: str = "tabsym_"
    nodes: list[tuple[str, tuple[str, ...], str, dict[str, Any]]] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of what a new node puts out."""
        output = f"{self.prefix}{len(self.nodes)}"
        self.nodes.append((operator, inputs, output, attributes))
        return output

    def constant(self, values: Any) -> str:
        """The name of a new constant."""
        array = np.asarray(values)
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants[name] = array
        return name

    def cast(self, name: str, to: int) -> str:
        """The values in another type."""
        return self.add("Cast", name, to=to)

    def count_above(self, name: str, bounds: NDArray[np.float64], keepdims: int) -> str:
        """How many of the bounds are below each number; none for NaN."""
        above = self.cast(self.add("Greater", name, self.constant(bounds[None, :])), INT64)
        return self.add("ReduceSum", above, self.constant([1]), keepdims=keepdims)

    def encode(self, name: str, keys: list[str] | list[int]) -> str:
        """The position of each text or whole number among the keys, from 1 on; 0 where it is none of them."""
        kind = "keys_strings" if isinstance(keys[0], str) else "keys_int64s"
        positions = {kind: keys, "values_int64s": list(range(1, len(keys) + 1)), "default_int64": 0}
        return self.add("LabelEncoder", name, **positions)


@dataclass
class Codes:
    """Codes of columns, made once each.

    `columns`: the tensor (n, 1) of each column, of doubles but for those in `texts`. `number_of`: what makes a category
    of the others a number.
    """

    graph: Graph
    codings: tuple[Coding, ...]
    columns: Mapping[str, str]
    texts: Set[str]
    missing_text: str
    number_of: Callable[[str, Any], float]
    _tensors: dict[Any, str] = field(default_factory=dict)

    def of(self, index: int, column: str) -> str:
        """(n,): for values that the coding does not know 0, for those of code c the number c + 1, or, where the code 0
        is that of missing numbers, c."""
        if (index, column) not in self._tensors:
            self._tensors[index, column] = self._codes(self.codings[index], column)
        return self._tensors[index, column]

    def _codes(self, coding: Coding, column: str) -> str:
        graph, tensor = self.graph, self.columns[column]
        if coding.bounds is not None:  # NaN is above no bound, and a number above the first
            return graph.count_above(tensor, np.append(-np.inf, coding.bounds), keepdims=0)
        assert coding.categories is not None
        categories = coding.categories.tolist()
        if column not in self.texts:
            codes = self._of_numbers(
                tensor, [None if category is None else self.number_of(column, category) for category in categories]
            )
        else:
            codes = graph.encode(
                tensor, [self.missing_text if category is None else category for category in categories]
            )
        return graph.add("Squeeze", codes, graph.constant([1]))

    def _of_numbers(self, tensor: str, categories: list[float | None]) -> str:
        """(n, 1), like `Graph.encode`, which takes no doubles: the positions of candidates, that are compared then."""
        graph, known = self.graph, np.array([category for category in categories if category is not None])
        positions = np.flatnonzero([category is not None for category in categories]) + 1
        if known.size and (known == np.floor(known)).all() and (np.abs(known) < MAX_WHOLE).all():
            candidate = graph.encode(graph.cast(tensor, INT64), known.astype(np.int64).tolist())
            known, positions = np.append(np.nan, known), np.append(0, positions)
        else:
            order = np.argsort(known)
            candidate = graph.count_above(tensor, known[order], keepdims=1)
            known, positions = np.append(known[order], np.nan), np.append(positions[order], 0)
        is_it = graph.add("Equal", graph.add("Gather", graph.constant(known), candidate), tensor)
        codes = graph.add(
            "Where", is_it, graph.add("Gather", graph.constant(positions), candidate), graph.constant(np.int64(0))
        )
        if None not in categories:
            return codes
        missing = graph.constant(np.int64(categories.index(None) + 1))
        return graph.add("Where", graph.add("IsNaN", tensor), missing, codes)

    def combined(self, codings: tuple[int, ...], columns: tuple[str, ...], codes: NDArray[Any]) -> str:
        """(n,): the position of each row's combination among `codes` (m, positions), from 1 on; 0 where it is none."""
        first, *rest = zip(codings, columns, codes.T.astype(np.int64), strict=True)
        position, known = self.of(*first[:2]), first[2] + shift(self.codings[first[0]])
        for left, (coding, column, column_codes) in enumerate(rest, 1 - len(rest)):
            size = len(self.codings[coding]) + 1
            known = known * size + column_codes + shift(self.codings[coding])
            combinations = np.unique(known) if left else known  # the last ones in the order of the rows
            tensor = self.of(coding, column)
            joined = self.graph.add("Add", self.graph.add("Mul", position, self.graph.constant(size)), tensor)
            position = self.graph.encode(joined, combinations.tolist())
            known = np.searchsorted(combinations, known) + 1 if left else known
        return position


@dataclass
class Sum:
    """The linear predictors of a model's terms as nodes."""

    terms: ModelTerms
    codes: Codes
    _rows: dict[Any, str] = field(default_factory=dict)

    def margins(self) -> str:
        """(n, K)"""
        graph, terms = self.codes.graph, self.terms
        constant, parts = np.zeros((1, terms.n_outputs)), []
        for term in terms.terms:
            scale, factors = self._factors(term)
            if factors:
                factors = factors if (scale == 1.0).all() else [graph.constant(scale), *factors]
                parts.append(reduce(partial(graph.add, "Mul"), factors))
            else:
                constant = constant + scale
        if terms.offset is not None:
            tensor = self.codes.columns[terms.offset.name]
            parts.append(graph.add("Log", tensor) if terms.offset.is_exposure else tensor)
        if not terms.columns and terms.offset is None:
            column = next(iter(self.codes.columns.values()))
            parts.append(graph.add("Expand", graph.constant([[0.0]]), graph.add("Shape", column)))
        return graph.add("Sum", graph.constant(constant), *parts)

    def _factors(self, term: TermRecord) -> tuple[NDArray[np.float64], list[str]]:
        """The factors that no row changes, (1, K), and the others."""
        scale = np.full((1, self.terms.n_outputs), term.constant)
        factors = [self._number(factor) for factor in term.numbers]
        for factor in term.lookups:
            table = self.terms.tables[factor.table]
            if table.codings:
                factors.append(self._coefficients(factor))
            else:
                scale = scale * table.values[0, factor.component]
        return scale, factors

    def _coefficients(self, factor: LookupFactor) -> str:
        """(n, K)"""
        table = self.terms.tables[factor.table]
        values, default = table.values[:, factor.component], table.default[factor.component]
        if len(table.codings) == 1:
            rows = self.codes.of(table.codings[0], factor.columns[0])
            values = with_default(self.codes.codings[table.codings[0]], values, default)
        else:
            key = factor.table, factor.columns
            if key not in self._rows:
                self._rows[key] = self.codes.combined(table.codings, factor.columns, table.codes)
            rows, values = self._rows[key], np.vstack([default, values])
        return self.codes.graph.add("Gather", self.codes.graph.constant(values), rows)

    def _number(self, factor: NumberFactor) -> str:
        graph = self.codes.graph
        tensor = self._expression(factor.node)
        if factor.fill is None:
            return tensor
        return graph.add("Where", graph.add("IsNaN", tensor), graph.constant(factor.fill), tensor)

    def _expression(self, node: Node) -> str:
        graph = self.codes.graph
        match node:
            case NumberLiteral():
                return graph.constant([[node.value]])
            case ColumnRef():
                return self.codes.columns[node.name]
            case Call(function="log1p"):
                return graph.add("Log", graph.add("Add", graph.constant(1.0), self._expression(node.argument)))
            case Call(function="log2" | "log10"):
                logarithm = graph.add("Log", self._expression(node.argument))
                return graph.add("Div", logarithm, graph.constant(_LOGARITHMS[node.function]))
            case Call():
                return graph.add(_FUNCTIONS[node.function], self._expression(node.argument))
            case Binary():
                sides = self._expression(node.left), self._expression(node.right)
                return graph.add(_OPERATORS[node.operator], *sides)
        raise AssertionError(f"{node} is not numeric")


def shift(coding: Coding) -> int:
    """What is added to codes so that 0 is left for what is not known."""
    return 0 if coding.bounds is not None and coding.missing else 1


def with_default(coding: Coding, values: NDArray[Any], default: Any) -> NDArray[Any]:
    """The rows of a table by shifted code."""
    return np.concatenate([[default], values]) if shift(coding) else values


def domain_of(operator: str) -> str:
    """The set of operators that one belongs to."""
    return "ai.onnx.ml" if operator == "LabelEncoder" else ""


# -- parts of dates ---------------------------------------------------------------------------------------


def part_of_date(graph: Graph, days: str, part: str) -> str:
    """A part as a number (n, 1), NaN where the day is: month, ISO week, weekday (1 is Monday), hour or minute."""
    calendar = _Calendar(graph)
    micro = graph.add("Round", calendar.times(days, _DAY))
    day = calendar.floor(micro, _DAY)
    time = calendar.minus(micro, calendar.times(day, _DAY))
    hour = calendar.floor(time, _HOUR)
    if part == "hour":
        return hour
    if part == "minute":
        return calendar.floor(calendar.minus(time, calendar.times(hour, _HOUR)), _MINUTE)
    from_monday = calendar.modulo(calendar.plus(day, 3.0), 7.0)  # 1970 began on a Thursday
    if part == "weekday":
        return calendar.plus(from_monday, 1.0)
    if part == "month":
        return calendar.month(calendar.in_era(day)[1])
    return calendar.week(calendar.plus(calendar.minus(day, from_monday), 3.0))


class _Calendar:
    """Arithmetic of doubles, and dates by it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def plus(self, left: str, right: str | float) -> str:
        return self.graph.add("Add", left, self._tensor(right))

    def minus(self, left: str, right: str | float) -> str:
        return self.graph.add("Sub", left, self._tensor(right))

    def times(self, tensor: str, number: float) -> str:
        return self.graph.add("Mul", tensor, self._tensor(number))

    def floor(self, tensor: str, by: float) -> str:
        return self.graph.add("Floor", self.graph.add("Div", tensor, self._tensor(by)))

    def modulo(self, tensor: str, by: float) -> str:
        return self.minus(tensor, self.times(self.floor(tensor, by), by))

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
        day = self.graph.add("Where", late, self.minus(of_year, 306.0), from_january)
        return self.plus(self.floor(day, 7.0), 1.0)

    def _divides(self, year: str, by: float) -> str:
        """1 where the year is a multiple, else 0."""
        rest = self.modulo(year, by)
        return self.minus(self._tensor(1.0), self.graph.add("Min", rest, self._tensor(1.0)))
