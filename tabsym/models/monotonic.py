"""``monotonic_cst``: which terms of a spec are constrained by it, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from tabsym.design.formula import Binary, Call, ColumnRef, Node
from tabsym.design.model_spec import ModelSpec, Term
from tabsym.design.polynomial import columns_read, evaluate
from tabsym.design.sources import Bins, CountEffect, Flag, Symbols
from tabsym.frame import Kind
from tabsym.models.checks import name_of, nearest
from tabsym.models.data import Training
from tabsym.models.model import source_of

Directions = Mapping[str, int]


def directions_of(given: Mapping[Any, int] | Sequence[int] | None, training: Training) -> dict[str, int]:
    """The direction, 1 or -1, of each constrained column; a `ValueError` for columns that are no features."""
    if given is None:
        return {}
    names = (training.given or training.table).names
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise ValueError(
                f"monotonic_cst has {len(given)} directions, and the table has {len(names)} columns; give one for "
                "each, 0 for none, or a mapping from column to 1 or -1."
            )
        given = dict(zip(names, given, strict=True))
    found = {name_of(name, names): direction for name, direction in given.items()}
    features = training.table.names
    for name, direction in found.items():
        if name not in features and (direction or name not in names):
            near = ", ".join(map(repr, nearest(name, features)))
            raise ValueError(f"monotonic_cst names {name!r}, which is no feature of the model; there is {near}.")
    return {name: direction for name, direction in found.items() if direction}


def with_directions(spec: ModelSpec, directions: Directions, training: Training) -> ModelSpec:
    """The spec with the constrained terms marked; a `ValueError` where a column can have no direction.

    Categories of a constrained column get no count effect, which would break their order.
    """
    if not directions:
        return spec
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
        if isinstance(source_of(spec, block), Symbols) and not has_order:
            raise ValueError(
                f"monotonic_cst names {name!r}, whose categories have no order; make it an ordered Categorical "
                "(pandas) or an Enum (polars), or leave it out."
            )
        blocks[block] = replace(blocks[block], monotone=direction * trend)
    return replace(spec, blocks=tuple(blocks))


def order_of(source: Symbols | Bins) -> NDArray[np.intp]:
    """The codes of a source in ascending order, without that of missing values."""
    if isinstance(source, Bins):
        return np.arange(int(source.missing), len(source), dtype=np.intp)
    categories = source.alphabet.inverse(np.arange(len(source)))
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
    found = [term for term in spec.terms if name in _columns(spec, term)]
    beside = [term for term in found if len(_columns(spec, term)) > 1 or len(term.factors) != 1]
    if beside or len(found) > 1:
        text = " and ".join(_text(spec, term) for term in found[:3])
        raise ValueError(
            f"monotonic_cst names {name!r}, which must have one term of its own to have a direction, and is in {text}; "
            "leave it out of monotonic_cst, or of the other terms."
        )
    if not found:
        raise ValueError(f"monotonic_cst names {name!r}, which has no term in the model; leave it out.")
    return found[0]


def _columns(spec: ModelSpec, term: Term) -> set[str]:
    """The columns that a term depends on; none for the flag of missing values, which has no direction."""
    found = set() if term.numeric is None else set(spec.numerics[term.numeric].columns)
    for factor in term.factors:
        if not isinstance(source_of(spec, factor.block), (Flag, NoneType)):
            found |= set(factor.columns)
    return found


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
            moving, other = (node.right, node.left) if is_right else (node.left, node.right)
            is_falling = is_right and node.operator == "-"
            if node.operator in "*/":
                by = float(evaluate(other, {}))
                if by == 0.0 or (is_right and node.operator == "/"):
                    return 0
                is_falling = by < 0.0
            return -_trend(moving) if is_falling else _trend(moving)
    return 0
