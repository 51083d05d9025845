"""A formula as a sum of products: parentheses expanded, like terms collected, semantics checked.

A monomial has a constant, numeric factors (columns and functions of them) and coefficient factors (coefficients of
blocks).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tabsym.design.formula import (
    FUNCTIONS,
    Binary,
    BlockRef,
    Call,
    ColumnRef,
    Dot,
    Formula,
    FormulaError,
    Node,
    NumberLiteral,
    walk,
)

Floats = NDArray[np.float64]

MAX_TERMS = 10_000


@dataclass(frozen=True)
class Monomial:
    """``constant * product of numerics * product of blocks``."""

    constant: float
    numerics: tuple[Node, ...] = ()
    blocks: tuple[BlockRef, ...] = ()


def expand(formula: Formula) -> list[Monomial]:
    """The terms of a formula, like terms collected, in order of first appearance.

    Raises
    ------
    FormulaError
        For a division by a block, a function of a block, a block that cancels out, a block used with different
        numbers of columns, a column that is both categorical and numeric, or a formula without coefficients.

    Examples
    --------
    >>> from tabsym.design.formula import parse
    >>> for term in expand(parse("(u[a] + 2) * v[b] - x / 4")):
    ...     print(term.constant, [n.name for n in term.numerics], [b.block for b in term.blocks])
    1.0 [] ['u', 'v']
    2.0 [] ['v']
    -0.25 ['x'] []
    """
    refs = _block_refs(formula.root)
    _check_refs(formula, refs)
    united: dict[tuple[tuple[Node, ...], tuple[BlockRef, ...]], float] = {}
    for term in _expand(formula.root, formula.text):
        blocks = sorted(term.blocks, key=lambda ref: (ref.block, ref.columns, ref.component))
        key = (tuple(sorted(term.numerics, key=repr)), tuple(blocks))
        united[key] = united.get(key, 0.0) + term.constant
    terms = [Monomial(constant, *key) for key, constant in united.items() if constant != 0.0]
    used = {ref.block for term in terms for ref in term.blocks}
    for ref in refs:
        if ref.block not in used:
            raise FormulaError(f"{ref.block}[...] cancels out of the formula; remove it.", formula.text, ref.at)
    if not used:
        raise FormulaError("The formula has no coefficients; add a term such as w[column] or b[1].", formula.text, 0)
    return terms


def columns_read(node: Node) -> list[ColumnRef]:
    """Numeric columns of a syntax tree, in text order."""
    return [found for found in walk(node) if isinstance(found, ColumnRef)]


def evaluate(node: Node, columns: Mapping[str, Floats]) -> Floats:
    """Values (n,) of a numeric factor, from columns (n,); NaN or infinite outside a function's domain."""
    with np.errstate(all="ignore"):
        match node:
            case NumberLiteral():
                return np.asarray(node.value)
            case ColumnRef():
                return columns[node.name]
            case Call():
                return np.asarray(FUNCTIONS[node.function](evaluate(node.argument, columns)))
            case Binary():
                left, right = evaluate(node.left, columns), evaluate(node.right, columns)
                return np.asarray(_OPERATORS[node.operator](left, right))
    raise AssertionError(f"{node} is not numeric")


_OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power}


def _expand(node: Node, text: str) -> list[Monomial]:
    """Expand a node; a loop over the left operands, which are nested as deeply as the formula has terms."""
    spine: list[Binary] = []
    while isinstance(node, Binary) and node.operator != "**":
        spine.append(node)
        node = node.left
    out = _expand_leaf(node, text)
    for binary in reversed(spine):
        out = _combine(binary, out, text)
    return out


def _expand_leaf(node: Node, text: str) -> list[Monomial]:
    match node:
        case NumberLiteral():
            return [Monomial(node.value)]
        case ColumnRef():
            return [Monomial(1.0, numerics=(node,))]
        case BlockRef():
            return [Monomial(1.0, blocks=(node,))]
        case Call():
            _refuse_blocks(node.argument, text, f"{node.function}() is for columns, not for coefficients.")
            return [Monomial(1.0, numerics=(node,))]
        case Dot():
            sides = node.left, node.right
            vectors = [tuple(BlockRef(s.block, s.columns, r, node.rank, s.at) for s in sides) for r in range(node.rank)]
            return [Monomial(1.0, blocks=blocks) for blocks in vectors]
    power = cast("Binary", node)
    out = left = _expand(power.left, text)
    for _ in range(int(cast("NumberLiteral", power.right).value) - 1):
        out = _multiply(out, left, power, text)
    return out


def _combine(node: Binary, left: list[Monomial], text: str) -> list[Monomial]:
    """The expansion of a sum or product, given the expansion of its left operand, which is modified."""
    if node.operator == "/":
        _refuse_blocks(node.right, text, "Nothing can be divided by coefficients; multiply by them instead.")
        return _multiply(left, [_inverse(node.right, text)], node, text)
    right = _expand(node.right, text)
    if node.operator == "*":
        if all(term.blocks for term in left) and _is_sum_of_columns(node.right):
            right = [Monomial(1.0, numerics=(node.right,))]
        elif all(term.blocks for term in right) and _is_sum_of_columns(node.left):
            left = [Monomial(1.0, numerics=(node.left,))]
        return _multiply(left, right, node, text)
    sign = 1.0 if node.operator == "+" else -1.0
    left += [Monomial(sign * term.constant, term.numerics, term.blocks) for term in right]
    if len(left) > MAX_TERMS:
        raise FormulaError(f"This sum has more than {MAX_TERMS:,} terms; simplify it.", text, node.at)
    return left


def _is_sum_of_columns(node: Node) -> bool:
    """Whether a factor such as ``year - 2010`` is one number, which is then centred as a column is.

    Expanded, its coefficients would be shared by two terms, and penalized for a number far from 0.
    """
    parts = list(walk(node))
    sums = any(isinstance(part, Binary) and part.operator in "+-" for part in parts)
    return sums and any(isinstance(part, ColumnRef) for part in parts) and not _block_refs(node)


def _multiply(left: list[Monomial], right: list[Monomial], node: Binary, text: str) -> list[Monomial]:
    if len(left) * len(right) > MAX_TERMS:
        raise FormulaError(f"This product has more than {MAX_TERMS:,} terms; simplify it.", text, node.at)
    return [
        Monomial(a.constant * b.constant, a.numerics + b.numerics, a.blocks + b.blocks) for a in left for b in right
    ]


def _inverse(node: Node, text: str) -> Monomial:
    if isinstance(node, NumberLiteral):
        if node.value == 0:
            raise FormulaError("Division by zero.", text, node.at)
        return Monomial(1.0 / node.value)
    return Monomial(1.0, numerics=(Binary("/", NumberLiteral(1.0), node),))


def _block_refs(node: Node) -> list[BlockRef]:
    """The block references, latent vectors with their rank."""
    refs: list[BlockRef] = []
    ranks: dict[int, int] = {}  # of the operands of a dot, which `walk` yields after it
    for found in walk(node):
        if isinstance(found, Dot):
            ranks |= {id(side): found.rank for side in (found.left, found.right)}
        elif isinstance(found, BlockRef):
            refs.append(replace(found, rank=ranks.get(id(found), found.rank)))
    return refs


def _refuse_blocks(node: Node, text: str, message: str) -> None:
    for ref in _block_refs(node):
        raise FormulaError(message, text, ref.at)


def _check_refs(formula: Formula, refs: list[BlockRef]) -> None:
    first: dict[str, BlockRef] = {}
    for ref in refs:
        known = first.setdefault(ref.block, ref)
        if len(known.columns) != len(ref.columns):
            raise FormulaError(
                f"{ref.block} is one term and was read with {len(known.columns)} column(s) before; "
                "give one of them another name.",
                formula.text,
                ref.at,
            )
        if known.rank != ref.rank:
            raise FormulaError(
                f"{ref.block} is a term of rank {known.rank} and of rank {ref.rank}; give one of them another name.",
                formula.text,
                ref.at,
            )
    read = [(ref.at, (ref.name,)) for ref in columns_read(formula.root)] + [(ref.at, ref.columns) for ref in refs]
    for at, names in read:
        if formula.target in names:
            raise FormulaError(f"The target {formula.target!r} cannot predict itself.", formula.text, at)
