"""What a formula is once it is read: a tree of nodes, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

FUNCTIONS = {
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "abs": np.abs,
}
"""Numeric functions of columns."""


class FormulaError(ValueError):
    """A formula that cannot be read; the message shows the place."""

    def __init__(self, message: str, text: str, at: int) -> None:
        super().__init__(f"{message}\n    {text}\n    {' ' * at}^")


@dataclass(frozen=True)
class Number:
    value: float
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class ColumnRef:
    """A numeric column."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class BlockRef:
    """An entry of a block, selected by the symbols of `columns`; none for a scalar. `component`: place in a vector."""

    block: str
    columns: tuple[str, ...]
    component: int = 0
    rank: int = 1
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Call:
    function: str
    argument: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Dot:
    """The inner product of two latent vectors."""

    left: BlockRef
    right: BlockRef
    rank: int
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Binary:
    """`operator` is one of ``+ - * / **``; the exponent is a whole `Number`."""

    operator: str
    left: Node
    right: Node
    at: int = field(default=0, compare=False)


Node = Number | ColumnRef | BlockRef | Call | Dot | Binary


@dataclass(frozen=True)
class Formula:
    """A parsed formula: `target` is the column before ``~``, or None."""

    text: str
    target: str | None
    root: Node
