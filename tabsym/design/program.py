"""The sum-of-products program that the kernels run: what a row selects, and what is multiplied.

Terms that are one category's coefficient ("plain"), a numeric column times a scalar
("slopes") or a scalar alone have loops of their own, because a row of an
additive model is little else. Every other term is a product of slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
        """The weights as numpy wants them: None for equal ones, and where they are all zero."""
        return self.weight if len(self.weight) and self.weight.any() else None


class Program(NamedTuple):
    """What the kernels read: code columns 0..n_plain-1 are terms, slot s is a factor of a product."""

    n_plain: int
    slopes: Ints  # the coefficient that multiplies x[:, j], j < len(slopes)
    scalars: Ints  # coefficients that are terms
    starts: Ints  # (terms + 1,): the slots of each product
    constants: Floats  # (terms,)
    numeric: Ints  # (terms,): the column of x in the product, -1 none
    columns: Ints  # (slots,): the code column that selects, -1 where the coefficient is fixed
    coefs: Ints  # (slots,): the fixed coefficient, or what is added to the code
    fixed: Ints  # coefficients that every row selects
    is_fixed: NDArray[np.bool_]  # (coefficients,)
    twins: Ints  # (pairs, 2): slots that can select the same coefficient, the later one first


class Work(NamedTuple):
    """Arrays that the training kernels work in."""

    slope: Floats  # (K,): dloss/dscore of a row
    coef_of: Ints  # (slots,)
    gradient_of: Floats  # (slots,)
    row_of: Ints  # the updates of a row: which row of the state,
    pull_of: Floats  # by what gradient,
    penalized: Floats  # 1 where penalties apply, else 0
    gradient: Floats  # (E * K,), zeros between batches; this and the next three are empty online
    hits: Ints  # (E,), zeros between batches
    last_row: Ints  # (E,), -1 between batches
    touched: Ints  # (E,)

    @classmethod
    def make(cls, program: Program, n_outputs: int, *, batches: bool) -> Work:
        """Arrays for one training."""
        n_slots, n_coefs = len(program.columns), len(program.is_fixed) if batches else 0
        most = (program.n_plain + len(program.slopes) + len(program.scalars) + n_slots) * n_outputs
        return cls(
            slope=np.empty(n_outputs),
            coef_of=np.empty(n_slots, np.int64),
            gradient_of=np.empty(n_slots),
            row_of=np.empty(most, np.int64),
            pull_of=np.empty(most),
            penalized=np.empty(most),
            gradient=np.zeros(n_coefs * n_outputs),
            hits=np.zeros(n_coefs, np.int64),
            last_row=np.full(n_coefs, -1, np.int64),
            touched=np.empty(n_coefs, np.int64),
        )


@dataclass(frozen=True)
class Slot:
    """A factor of a term: coefficient `start` of a scalar, or what the code column `read` selects.

    `read` numbers the distinct reads of the formula, None for a scalar; `block` numbers the blocks; `component` is
    the place in a latent vector.
    """

    block: int
    start: int
    read: int | None
    component: int = 0


@dataclass(frozen=True)
class Product:
    """A term: constant, numeric column (None: none), slots."""

    constant: float
    numeric: int | None
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Compiled:
    """A program, and the order in which it wants the code columns and the numeric columns."""

    program: Program
    reads: list[int]
    numerics: list[int]


def compile_program(products: Sequence[Product], n_coefs: int) -> Compiled:
    """Lay terms out for the kernels."""
    uses = Counter((slot.block, slot.component) for product in products for slot in product.slots)
    plain: list[int] = []
    slopes: list[tuple[int, int]] = []
    scalars: list[int] = []
    others: list[Product] = []
    for product in products:
        slot = product.slots[0]
        alone = len(product.slots) == 1 and product.constant == 1.0 and uses[slot.block, slot.component] == 1
        if alone and slot.read is not None and product.numeric is None:
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
    """Those found, in order, with their places."""
    return {n: index for index, n in enumerate(dict.fromkeys(n for n in found if n is not None))}


def _twins(slots: Sequence[Slot]) -> Ints:
    """The pairs of slots that read the same component of a block."""
    known: dict[tuple[int, int], list[int]] = {}
    pairs = []
    for index, slot in enumerate(slots):
        before = known.setdefault((slot.block, slot.component), [])
        pairs += [(index, earlier) for earlier in before]
        before.append(index)
    return _ints(pairs).reshape(-1, 2)


def _ints(values: Sequence[Any] | Ints) -> Ints:
    return np.asarray(values, dtype=np.int64)
