"""What a fit must keep: ``fixed``, terms whose coefficients are given, and ``monotonic_cst``, directions of terms.

A fit has the fixed terms in its offset, and the fitted model as terms. Of directions, here is which terms of a spec
they constrain, and what is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories import UNSEEN, Categories, encode_column
from tabsym.categories.coding import plain_categories
from tabsym.design.formula import Binary, Call, ColumnRef, Monomial, Node, columns_read, evaluate, expand, show
from tabsym.design.model_spec import Block, Factor, ModelSpec, Numeric, Term
from tabsym.design.sources import Bins, CategoricalSource, CountEffect, Flag, rows_by_code
from tabsym.design.units import Moments
from tabsym.frame import Column, Kind, Table
from tabsym.frame.read import is_missing
from tabsym.messages import plural, warn_user
from tabsym.models.checks import are_classes, by_class, nearest, numbers_by_class, positions_of_classes
from tabsym.models.config import Config
from tabsym.models.data import Training
from tabsym.models.model import WideModel, edge_names, source_of
from tabsym.modl.columns import interval_labels
from tabsym.solvers.newton.uncertainty import TermCovariance

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FixedTerm:
    """A term with given coefficients ``values`` (q, K): of a source's codes, or a slope of a numeric factor."""

    name: str
    column: str
    constant: float
    source: CategoricalSource | Bins | None
    numeric: Numeric | None
    values: Floats

    def codes(self, table: Table) -> NDArray[np.int32]:
        """The coefficient (n,) of each row, UNSEEN for categories without one."""
        column = table[self.column]
        if isinstance(self.source, Bins):
            return self.source.codes(column.values)
        if self.source is None:
            return np.zeros(len(table), dtype=np.int32)
        try:
            return self.source.vocabulary.transform(encode_column(column))
        except TypeError as error:
            example = self.source.vocabulary.inverse(np.arange(1))[0]
            raise ValueError(
                f"fixed[{self.name!r}] has categories such as {example!r}, of another type than the values of column "
                f"{self.column!r}; convert one of them."
            ) from error

    def factor(self, table: Table, weight: Floats | None) -> tuple[Floats, Moments]:
        """The numeric factor (n,), missing values as its mean, and its moments."""
        assert self.numeric is not None
        values = self.numeric.values({name: table[name].values for name in self.numeric.columns})
        moments = Moments.of(values, weight)
        return np.where(np.isnan(values), moments.mean, values), moments

    def scores(self, training: Training) -> Floats:
        """What the term adds to the linear predictors (n, K)."""
        if self.numeric is not None:
            return self.constant * self.factor(training.table, training.weight)[0][:, None] * self.values
        codes = self.codes(training.table)
        if (codes == UNSEEN).all():
            raise ValueError(
                f"fixed[{self.name!r}] has no category of column {self.column!r}, such as "
                f"{_cell(training, self.column, 0)!r}; give values by category, or leave it out."
            )
        if (codes == UNSEEN).any() and isinstance(self.source, CategoricalSource):
            known = self.source.vocabulary.inverse(np.setdiff1d(np.arange(len(self.values)), codes))
            absent = ", ".join(map(repr, list(known)[:3]))
            first = _cell(training, self.column, int(np.argmax(codes == UNSEEN)))
            warn_user(
                f"fixed[{self.name!r}] has no value for {plural(int((codes == UNSEEN).sum()), 'row')}, such as of "
                f"{first!r}, "
                "and adds 0 there" + (f"; it has values for {absent}, which training has not." if absent else ".")
            )
        return np.asarray(self.constant * np.concatenate([self.values, np.zeros((1, self.values.shape[1]))])[codes])


def _cell(training: Training, column: str, row: int) -> Any:
    """A cell in a message: numpy's numbers as Python writes them."""
    return plain_categories([training.table[column].series[row]])[0]


def with_fixed_scores(training: Training, terms: list[FixedTerm], n_outputs: int) -> Training:
    """The training rows with what fixed terms add in their offset."""
    offset = np.zeros((len(training.y), n_outputs)) if training.offset is None else training.offset
    return replace(training, offset=offset + np.sum([term.scores(training) for term in terms], axis=0))


def find_fixed(config: Config, name: str, value: Any, training: Training, n_outputs: int) -> FixedTerm:
    """The fixed term of a name and what `fixed` gives for it, for a training table."""
    table, constant, numeric = training.table, 1.0, None
    if config.formula is not None:
        term = _of_formula(expand(config.formula), name)
        constant = term.constant
        if term.numerics:
            numeric = Numeric(" * ".join(map(show, term.numerics)), term.numerics)
        column = numeric.columns[0] if numeric is not None else term.blocks[0].columns[0]
    else:
        column = name
        if name not in table.names:
            nearest_names = ", ".join(map(repr, nearest(name, table.names)))
            raise ValueError(f"fixed names {name!r}, which is no feature of the table; there is {nearest_names}.")
    if isinstance(value, (Mapping, pd.DataFrame)) and (numeric is not None or table[column].kind is Kind.NUMERIC):
        lists = as_lists(value, what=f"fixed[{name!r}]")  # of a slope, as `coefs_` has it
        value = lists["value"][0] if lists.get("category") == [name] else value
    is_number = not isinstance(value, (Mapping, pd.Series, pd.DataFrame))
    if is_number and numeric is None:
        if config.formula is not None or table[column].kind is Kind.CATEGORICAL:
            raise ValueError(f"fixed[{name!r}]={value!r} is one number for categories; give {{category: number}}.")
        numeric = Numeric(column, (ColumnRef(column),), missing_ok=True)
    if is_number != (numeric is not None):
        raise ValueError(f"fixed[{name!r}] has values by category for a slope; give one number.")
    if is_number:
        return FixedTerm(name, column, constant, None, numeric, _numbers(value, name, n_outputs).reshape(1, n_outputs))
    source, values = _by_category(value, name, table[column], n_outputs)
    return FixedTerm(name, column, constant, source, None, values)


def _of_formula(terms: list[Monomial], name: str) -> Monomial:
    """The term of a formula that has a block by itself."""
    matches = [term for term in terms if any(ref.block == name for ref in term.blocks)]
    if not matches:
        names = list(dict.fromkeys(ref.block for term in terms for ref in term.blocks))
        of_column = next((ref.block for term in terms for ref in term.blocks if [name] == list(ref.columns)), None)
        hint = "" if of_column is None else f"; the coefficients of column {name!r} are in the term {of_column!r}"
        raise ValueError(f"fixed names {name!r}, which is no term of the formula; it has {', '.join(names)}{hint}.")
    (ref, *other_blocks), numerics = matches[0].blocks, matches[0].numerics
    alone = len(matches) == 1 and not other_blocks and ref.rank == 1
    if not alone or len(ref.columns) + bool(numerics) != 1:
        raise ValueError(
            f"fixed names {name!r}, and is for coefficients of one column, w[column], and slopes, s[1]*column, that "
            "have a term of their own; leave it out."
        )
    return matches[0]


def _by_category(value: Any, name: str, column: Column, n_outputs: int) -> tuple[CategoricalSource | Bins, Floats]:
    """The categories or bins, and the coefficients (q, K)."""
    table = as_lists(value, what=f"fixed[{name!r}]")
    values = np.array([_numbers(given, name, n_outputs) for given in table["value"]]).reshape(-1, n_outputs)
    if "low" not in table:
        keys = [None if is_missing(key) else key for key in table["category"]]
        if len(set(keys)) < len(keys):
            raise ValueError(f"fixed[{name!r}] has a category twice; leave one of them out.")
        return CategoricalSource((column.name,), Categories(column.name, plain_categories(keys))), values
    if column.kind is Kind.CATEGORICAL:
        raise ValueError(f"fixed[{name!r}] has bins, and column {column.name!r} is categorical; give its categories.")
    low, high = np.asarray(table["low"], dtype=np.float64), np.asarray(table["high"], dtype=np.float64)
    missing = np.isnan(low) & np.isnan(high)
    order = np.concatenate([np.flatnonzero(missing), np.flatnonzero(~missing)[np.argsort(low[~missing])]])
    n_missing = int(missing.sum())
    low, high = low[order][n_missing:], high[order][n_missing:]
    is_whole = len(low) and low[0] == -np.inf and high[-1] == np.inf and (low[1:] == high[:-1]).all()
    if n_missing > 1 or not is_whole or not (low < high).all():
        raise ValueError(f"fixed[{name!r}] has bins with gaps or overlaps; give (low, high] from -inf to inf.")
    bounds = high[:-1]
    labels = (*(["Missing"] * n_missing), *interval_labels(bounds, measure=column.measure))
    return Bins(column.name, bounds, labels, bool(n_missing)), values[order]


def as_lists(value: Any, classes: NDArray[Any] | tuple[Any, ...] = (), what: str = "fixed") -> dict[str, list[Any]]:
    """Values by category as lists: "category", or "low" and "high" of bins, and "value".

    Such a mapping of lists stays as it is. `classes`: of a model of several ones, by whose names a frame has columns,
    in any order.
    """
    if isinstance(value, Mapping) and isinstance(value.get("value"), list):
        if "columns" not in value:
            return dict(value)
        index, columns = (pd.Index(value[name], dtype=object) for name in ("category", "columns"))
        value = pd.DataFrame(value["value"], index=index, columns=columns)
    if isinstance(value, Mapping):
        given = [numbers_by_class(numbers, classes, f"{what}[{name!r}]") for name, numbers in value.items()]
        return {"category": list(value), "value": given}
    if isinstance(value, pd.Series):
        given = [numbers_by_class(numbers, classes, what) for numbers in value]
        return {"category": plain_categories(value.index).tolist(), "value": given}
    several = len(classes) > 2
    ends = edge_names([str(label) for label in classes] if several else ())
    column_of = {str(column): column for column in value.columns}
    bins = {
        end: value[column_of[edge]].tolist()
        for end, edge in zip(("low", "high"), ends, strict=True)
        if edge in column_of
    }
    frame = value.drop(columns=[column_of[end] for end in ends if end in column_of])
    extra = [column for column in frame if str(column) in ("sd", "rows") or str(column).startswith("sd ")]
    values = frame[["value"]] if "value" in frame else frame.drop(columns=extra)
    if several and values.columns.tolist() != list(range(len(classes))):
        values = frame.iloc[:, positions_of_classes(frame.columns, classes, what, allow_extra=True)]
    try:
        rows = values.to_numpy(dtype=np.float64).tolist()
    except (TypeError, ValueError):
        names = ", ".join(map(repr, map(str, values.columns)))
        raise ValueError(f"{what} holds what is no number in the columns {names}; convert them to numbers.") from None
    keys = bins if len(bins) == 2 else {"category": plain_categories(value.index).tolist()}
    return {**keys, "value": [row[0] if len(row) == 1 else row for row in rows]}


def without_frames(fixed: Mapping[str, Any]) -> dict[str, Any]:
    """The argument with lists instead of frames, for files without code; columns that are no numbers are not read."""
    converted = {}
    for name, value in fixed.items():
        if not isinstance(value, pd.DataFrame):
            converted[name] = as_lists(value) if isinstance(value, pd.Series) else value
            continue
        columns, numbers = [], []
        for at, column in enumerate(value.columns):
            try:
                numbers.append(value.iloc[:, at].to_numpy(dtype=np.float64))
            except (TypeError, ValueError):
                continue
            if isinstance(column, np.generic):
                columns.append(column.item())
            else:
                columns.append(column if isinstance(column, (str, int, float)) else str(column))
        rows = np.reshape(numbers, (len(columns), len(value))).T.tolist()
        converted[name] = {"category": plain_categories(value.index).tolist(), "columns": columns, "value": rows}
    return converted


def with_classes(config: Config, classes: NDArray[Any]) -> Config:
    """The configuration with numbers that are given by class in the order of several classes."""
    fixed = {name: _in_order(value, classes, f"fixed[{name!r}]") for name, value in config.fixed.items()}
    init = config.init
    if isinstance(init, Mapping):
        init = {
            n: by_class(value, classes, f"coef_init[{n!r}]", allow_extra=True, ranked=True) for n, value in init.items()
        }
        for name, value in init.items():
            if name.startswith("scale of ") and isinstance(value, (Mapping, pd.Series)) and len(value) > 1:
                init[name] = pd.Series(numbers_by_class(value, classes, f"coef_init[{name!r}]"))
    return replace(config, fixed=fixed, init=init)


def _in_order(value: Any, classes: NDArray[Any], what: str) -> Any:
    """What is given for one term, in the order of several classes: a slope as an array, categories as lists."""
    if not isinstance(value, (Mapping, pd.Series, pd.DataFrame)):
        return value
    lists = as_lists(value, classes, what)
    keys = lists.get("category", [])
    if are_classes(keys, classes) and all(map(np.isscalar, lists["value"])):
        return numbers_by_class(dict(zip(keys, lists["value"], strict=True)), classes, what)
    return lists


def _numbers(value: Any, name: str, n_outputs: int) -> Floats:
    """The coefficients (K,) of one category."""
    try:
        values = np.asarray(value, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        values = np.empty(0)
    if len(values) != n_outputs or not np.isfinite(values).all():
        needed = "a finite number" if n_outputs == 1 else f"{n_outputs} finite numbers, one for each class"
        raise ValueError(f"fixed[{name!r}] holds {value!r}; give {needed} for each category.")
    return values


def with_fixed_term(model: WideModel, term: FixedTerm, training: Training) -> WideModel:
    """The fitted model with a fixed term at the end: without deviation, variance and degrees of freedom."""
    spec, units, k = model.spec, model.units, model.n_outputs
    if term.name in [block.name for block in spec.blocks]:
        raise ValueError(f"Two terms would be called {term.name!r}; rename the column.")
    codes, q = term.codes(training.table), len(term.values)
    is_slope = term.numeric is not None
    columns = () if is_slope else (term.column,)
    block = Block(term.name, None if is_slope else len(spec.sources), columns, fixed=True)
    numeric = len(spec.numerics) if is_slope else None
    model_term = Term(term.constant, numeric, (Factor(len(spec.blocks), columns),))
    spec = replace(
        spec,
        sources=spec.sources if term.source is None else (*spec.sources, term.source),
        blocks=(*spec.blocks, block),
        numerics=spec.numerics if term.numeric is None else (*spec.numerics, term.numeric),
        terms=(*spec.terms, model_term),
    )
    size = units.scale / term.constant
    units = replace(units, sizes=np.append(units.sizes, size), constants=np.append(units.constants, 1.0))
    numerics = model.numerics
    if is_slope:
        moments = term.factor(training.table, training.weight)[1]
        numerics = (*numerics, moments)
        means, spreads = np.append(units.means, 0.0), np.append(units.spreads, 1.0)
        units = replace(units, means=means, spreads=spreads, fills=np.append(units.fills, moments.mean))
    seen = codes >= 0
    weight = None if training.weight is None else training.weight[seen]
    uncertainty = model.uncertainty
    if uncertainty is not None:
        samples, unknown = uncertainty.samples, uncertainty.unknown
        no_covariance = TermCovariance(np.zeros((q, k)), np.zeros((k, q, 0)))
        uncertainty = replace(
            uncertainty,
            variances=np.append(uncertainty.variances, 0.0),
            edf=np.append(uncertainty.edf, 0.0),
            sd=np.concatenate([uncertainty.sd, np.zeros((q, k))]),
            samples=None if samples is None else np.concatenate([samples, np.zeros((q, samples.shape[1]))]),
            covariances=(*uncertainty.covariances, no_covariance) if uncertainty.covariances else (),
            unknown=None if unknown is None else np.pad(unknown, ((0, 0), (0, q), (0, 0))),
        )
    return replace(
        model,
        spec=spec,
        units=units,
        numerics=numerics,
        theta=np.concatenate([model.theta, term.values]),
        counts=np.concatenate([model.counts, rows_by_code(codes, q, training.copies)]),
        weights=np.concatenate([model.weights, np.bincount(codes[seen], weight, minlength=q)]),
        state=np.concatenate([model.state, model.columns.blank((term.values / size).ravel())]),
        uncertainty=uncertainty,
    )


# -- ``monotonic_cst`` -----------------------------------------------------------------------------

Directions = Mapping[str, int]


def with_directions(spec: ModelSpec, directions: Directions, training: Training) -> ModelSpec:
    """The spec with the constrained terms marked; a `ValueError` where a column can have no direction.

    Categories of a constrained column get no count effect, which would break their order.
    """
    counted = [
        index
        for index, block in enumerate(spec.blocks)
        if isinstance(source_of(spec, index), CountEffect) and set(block.columns) & set(directions)
    ]
    spec = spec.without(counted)
    blocks = list(spec.blocks)
    for name, direction in directions.items():
        term = _only_term(spec, name)
        block = term.factors[0].block
        trend = 1 if term.numeric is None else _trend_of(spec, term, name)
        column = training.table[name]
        has_order = column.kind is Kind.BOOLEAN or isinstance(column.series.dtype, nw.Enum)
        if isinstance(source_of(spec, block), CategoricalSource) and not has_order:
            raise ValueError(
                f"monotonic_cst names {name!r}, whose categories have no order; make it an ordered Categorical "
                "(pandas) or an Enum (polars), or leave it out."
            )
        blocks[block] = replace(blocks[block], monotone=direction * trend)
    return replace(spec, blocks=tuple(blocks))


def order_of(source: CategoricalSource | Bins) -> NDArray[np.intp]:
    """The codes of a source in ascending order, without that of missing values."""
    if isinstance(source, Bins):
        return np.arange(int(source.missing), len(source), dtype=np.intp)
    categories = source.vocabulary.inverse(np.arange(len(source)))
    known = [code for code, category in enumerate(categories) if category is not None]
    if all(isinstance(categories[code], (bool, np.bool_)) for code in known):
        known.sort(key=lambda code: bool(categories[code]))
    return np.array(known, dtype=np.intp)


def describe_directions(spec: ModelSpec) -> str | None:
    """The line of `summary` about the constraints; None without any."""
    said = []
    for index, block in enumerate(spec.blocks):
        if not block.monotone:
            continue
        term = next(term for term in spec.fitted_terms if term.factors[0].block == index)
        is_falling, name = block.monotone < 0, block.name
        if term.numeric is not None:
            name = spec.numerics[term.numeric].columns[0]
            is_falling = is_falling != (_trend_of(spec, term, name) < 0)
        said.append(f"{name} {'not increasing' if is_falling else 'not decreasing'}")
    return f"monotonic (in no interaction): {', '.join(said)}" if said else None


def _only_term(spec: ModelSpec, name: str) -> Term:
    """The one term of a column, by itself."""
    matches = [term for term in spec.terms if name in _columns(spec, term)]
    shared = [term for term in matches if len(_columns(spec, term)) > 1 or len(term.factors) != 1]
    if shared or len(matches) > 1:
        text = " and ".join(_text(spec, term) for term in matches[:3])
        raise ValueError(
            f"monotonic_cst names {name!r}, which must have one term of its own to have a direction, and is in {text}; "
            "leave it out of monotonic_cst, or of the other terms."
        )
    if not matches:
        raise ValueError(f"monotonic_cst names {name!r}, which has no term in the model; leave it out.")
    return matches[0]


def _columns(spec: ModelSpec, term: Term) -> set[str]:
    """The columns that a term depends on; none for the flag of missing values, which has no direction."""
    columns = set() if term.numeric is None else set(spec.numerics[term.numeric].columns)
    for factor in term.factors:
        if not isinstance(source_of(spec, factor.block), (Flag, NoneType)):
            columns |= set(factor.columns)
    return columns


def _text(spec: ModelSpec, term: Term) -> str:
    if not term.factors:
        return "a term without coefficient"
    return " * ".join(repr(spec.blocks[factor.block].name) for factor in term.factors)


def _trend_of(spec: ModelSpec, term: Term, name: str) -> int:
    """Whether the numeric factor of a term rises (1) or falls (-1) with a column; a `ValueError` for neither."""
    assert term.numeric is not None
    numeric = spec.numerics[term.numeric]
    moving = [node for node in numeric.nodes if columns_read(node)]
    constants = [float(evaluate(node, {})) for node in numeric.nodes if not columns_read(node)]
    trend = int(np.sign(np.prod(constants))) * _trend(moving[0]) if len(moving) == 1 else 0
    if trend == 0:
        raise ValueError(
            f"monotonic_cst names {name!r}, and {numeric.label} need not rise or fall with it; use the column itself, "
            "or its log, sqrt or exp."
        )
    return trend


def _trend(node: Node) -> int:
    match node:
        case ColumnRef():
            return 1
        case Call():
            return 0 if node.function == "abs" else _trend(node.argument)
        case Binary(operator="+" | "-" | "*" | "/"):
            is_right = bool(columns_read(node.right))
            if is_right == bool(columns_read(node.left)):
                return 0
            moving, constant = (node.right, node.left) if is_right else (node.left, node.right)
            is_falling = is_right and node.operator == "-"
            if node.operator in "*/":
                by = float(evaluate(constant, {}))
                if by == 0.0 or (is_right and node.operator == "/"):
                    return 0
                is_falling = by < 0.0
            return -_trend(moving) if is_falling else _trend(moving)
    return 0
