"""The sum-of-products program that the kernels run: indices of coefficients, and the products of them.

Terms that are a category's coefficient ("plain"), a numeric column times a scalar ("slopes") or a scalar alone have
loops of their own, because additive models consist mostly of these. Every other term is a product of slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """A coded table: codes (n, reads), x (n, numerics), y (n,); weight (n,) and offset (n * K,), or empty."""

    codes: NDArray[np.int32]
    x: Floats
    y: Floats
    weight: Floats
    offset: Floats

    @property
    def shares(self) -> Floats | None:
        """The weights for numpy functions: None where they are all equal or all zero."""
        return self.weight if len(self.weight) and self.weight.any() else None

    def take(self, indices: NDArray[np.integer], n_outputs: int) -> Rows:
        """Some of the rows."""
        offset = self.offset.reshape(-1, n_outputs)[indices].ravel() if len(self.offset) else self.offset
        weight = self.weight[indices] if len(self.weight) else self.weight
        return Rows(self.codes[indices], self.x[indices], self.y[indices], weight, offset)


class Program(NamedTuple):
    """Compiled design for the kernels: code columns 0..n_plain-1 are terms, slot s is a factor of a product."""

    n_plain: int
    slopes: Ints  # indices of the coefficients that multiply x[:, j], j < len(slopes)
    scalars: Ints  # indices of coefficients that are terms
    starts: Ints  # (terms + 1,): first slot of each product
    constants: Floats  # (terms,)
    numeric: Ints  # (terms,): column of x in the product, -1 for none
    columns: Ints  # (slots,): code column that indexes the coefficient, -1 where the index is fixed
    coefs: Ints  # (slots,): the fixed index, or the increment of the code
    fixed: Ints  # indices of coefficients that every row uses
    is_fixed: NDArray[np.bool_]  # (coefficients,)
    twins: Ints  # (pairs, 2): slots that can index the same coefficient, the later one first


class Work(NamedTuple):
    """Workspace arrays of the training kernels."""

    slope: Floats  # (K,): derivative of a row's loss by its linear predictor
    coef_of: Ints  # (slots,)
    gradient_of: Floats  # (slots,)
    row_of: Ints  # the updates of a row: the row of the state,
    move_gradient_of: Floats  # its gradient,
    penalized: Floats  # and 1 where penalties apply, else 0
    gradient: Floats  # (E * K,), zeros between batches; this and the next three are empty for batches of one row
    hits: Ints  # (E,), zeros between batches
    last_row: Ints  # (E,), -1 between batches
    touched: Ints  # (E,)

    @classmethod
    def make(cls, program: Program, n_outputs: int, *, batches: bool) -> Work:
        """Allocate the arrays for one training run."""
        n_slots, n_coefs = len(program.columns), len(program.is_fixed) if batches else 0
        most = (program.n_plain + len(program.slopes) + len(program.scalars) + n_slots) * n_outputs
        return cls(
            slope=np.empty(n_outputs),
            coef_of=np.empty(n_slots, np.int64),
            gradient_of=np.empty(n_slots),
            row_of=np.empty(most, np.int64),
            move_gradient_of=np.empty(most),
            penalized=np.empty(most),
            gradient=np.zeros(n_coefs * n_outputs),
            hits=np.zeros(n_coefs, np.int64),
            last_row=np.full(n_coefs, -1, np.int64),
            touched=np.empty(n_coefs, np.int64),
        )


@dataclass(frozen=True)
class Slot:
    """A coefficient factor of a term: coefficient `start` of a scalar, or the one that code column `read` indexes.

    `read` is the index of a code column of the spec, None for a scalar; `block` is the index of the block;
    `component` is the index within a latent vector.
    """

    block: int
    start: int
    read: int | None
    component: int = 0


@dataclass(frozen=True)
class CompiledTerm:
    """A term: constant, index of a numeric column (or None), slots."""

    constant: float
    numeric: int | None
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Compiled:
    """A program, with the order in which it uses the code columns and the numeric columns."""

    program: Program
    reads: list[int]
    numerics: list[int]


def compile_program(products: Sequence[CompiledTerm], n_coefs: int, averaged: Collection[int] = ()) -> Compiled:
    """Compile terms for the kernels; `averaged`: blocks with a value for unknown categories, which plain terms lack."""
    uses = Counter((slot.block, slot.component) for product in products for slot in product.slots)
    plain: list[int] = []
    slopes: list[tuple[int, int]] = []
    scalars: list[int] = []
    others: list[CompiledTerm] = []
    for product in products:
        slot = product.slots[0]
        alone = len(product.slots) == 1 and product.constant == 1.0 and uses[slot.block, slot.component] == 1
        if alone and slot.read is not None and product.numeric is None and slot.block not in averaged:
            plain.append(slot.read)
        elif alone and slot.read is None and product.numeric is not None and product.numeric not in dict(slopes):
            slopes.append((product.numeric, slot.start))
        elif alone and slot.read is None:
            scalars.append(slot.start)
        else:
            others.append(product)
    reads = _indices([*plain, *(slot.read for product in others for slot in product.slots)])
    numerics = _indices([*(numeric for numeric, _ in slopes), *(product.numeric for product in others)])
    fixed = sorted({slot.start for product in products for slot in product.slots if slot.read is None})
    is_fixed = np.zeros(n_coefs, dtype=bool)
    is_fixed[fixed] = True
    slots = [slot for product in others for slot in product.slots]
    program = Program(
        n_plain=len(plain),
        slopes=_ints([coef for _, coef in slopes]),
        scalars=_ints(scalars),
        starts=_ints(np.cumsum([0, *(len(product.slots) for product in others)])),
        constants=np.array([product.constant for product in others], dtype=np.float64),
        numeric=_ints([-1 if p.numeric is None else numerics[p.numeric] for p in others]),
        columns=_ints([-1 if slot.read is None else reads[slot.read] for slot in slots]),
        coefs=_ints([slot.start if slot.read is None else slot.component for slot in slots]),
        fixed=_ints(fixed),
        is_fixed=is_fixed,
        twins=_twins(slots),
    )
    return Compiled(program, list(reads), list(numerics))


def _indices(found: Sequence[int | None]) -> dict[int, int]:
    """Index of each distinct value but None, in order of appearance."""
    return {n: index for index, n in enumerate(dict.fromkeys(n for n in found if n is not None))}


def _twins(slots: Sequence[Slot]) -> Ints:
    """The pairs of slots that use the same component of a block."""
    known: dict[tuple[int, int], list[int]] = {}
    pairs = []
    for index, slot in enumerate(slots):
        before = known.setdefault((slot.block, slot.component), [])
        pairs += [(index, earlier) for earlier in before]
        before.append(index)
    return _ints(pairs).reshape(-1, 2)


def _ints(values: Sequence[Any] | Ints) -> Ints:
    return np.asarray(values, dtype=np.int64)
