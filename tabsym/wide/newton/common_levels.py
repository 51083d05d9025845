"""Directions along which terms of a formula trade off without a change of any linear predictor, at the least penalty.

In ``w[g]*x + s[1]*x`` all slopes can rise by what their common slope falls by; in ``c[city] + r[region]`` those of a
region's cities by what the region's number falls by. The loss is constant along such a direction and penalties
nearly so: a descent converges slowly along it. For given linear predictors the share of each is the solution of a small
linear system, at which the descent evaluates the objective (variable projection; Golub and Pereyra 1973).
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import SuperLU, splu

from tabsym.wide.layout import Layout, Term
from tabsym.wide.newton.flats import SAME
from tabsym.wide.newton.formula_spreads import Derivatives
from tabsym.wide.program import Program, Rows

Floats = NDArray[np.float64]

EQUAL = 1e-9
"""Derivatives differ by no more than rounding."""

SINGULAR = 1e-10
"""Of the diagonal of the system, added to it: directions may be sums of others, along which nothing moves."""


class CommonLevels:
    """The directions of a formula's terms along which no score moves.

    Parameters
    ----------
    layout : Layout
    program : Program
    rows : Rows
    centred : list of bool
        Blocks whose prior is about their mean. One that can give its mean to an unpenalized term is as one whose
        prior is about 0; others hand nothing on.
    """

    def __init__(self, layout: Layout, program: Program, rows: Rows, centred: list[bool]) -> None:
        self._layout, self._precision = layout, np.empty(0)
        self._solver: SuperLU | None = None
        beside = _other_factors(layout)
        held = [block for block in beside if layout.blocks[block].source is not None]
        found = [sparse.csc_array((layout.n_entries, 0))]
        if held and len(layout.blocks) > 1:
            rng = np.random.RandomState(0)  # at any two points: factors that terms share, and others, have any values
            places = [rng.normal(1.0, 0.3, layout.n_entries) for _ in range(2)]
            derivatives = [Derivatives(layout, program, rows, phi) for phi in places]
            to_flat = {block: _to_flat(layout, block, derivatives) for block in held}
            held = [block for block in held if not centred[block] or to_flat[block].shape[1]]
            found += [to_flat[block] for block in held]
            found += [
                _to_coarser(layout, one, other, derivatives)
                for one, other in permutations(held, 2)
                if beside[one] == beside[other] and layout.sizes[one] > layout.sizes[other]
            ]
        self._directions = sparse.hstack(found).tocsc()

    def share(self, phi: Floats, precision: Floats) -> Floats:
        """Numbers (entries * K,) of the same scores whose penalty, by the precisions of blocks, is least."""
        if not self._directions.shape[1]:
            return phi
        held = np.repeat(precision, self._layout.sizes)
        if self._solver is None or not np.array_equal(precision, self._precision):
            system = (self._directions.T @ (self._directions * held[:, None])).tocsc()
            size = system.diagonal()
            ridge = np.where(size > 0.0, SINGULAR * size, 1.0)
            self._solver, self._precision = splu((system + sparse.diags_array(ridge)).tocsc()), precision.copy()
        numbers = phi.reshape(self._layout.n_entries, -1)
        away = self._solver.solve(self._directions.T @ (held[:, None] * numbers))
        return np.asarray(numbers - self._directions @ away, dtype=np.float64).ravel()


def _other_factors(layout: Layout) -> dict[int, tuple[object, ...]]:
    """By block, the other factors of the terms that read it, where these are the same in all."""
    found: dict[int, set[tuple[object, ...]]] = {}
    for term in layout.learned:
        for factor in term.factors:
            found.setdefault(factor.block, set()).add(_beside(term, factor.block))
    return {
        block: next(iter(others))
        for block, others in found.items()
        if layout.blocks[block].rank == 1 and len(others) == 1
    }


def _beside(term: Term, block: int) -> tuple[object, ...]:
    others = [(factor.block, factor.columns, factor.component) for factor in term.factors if factor.block != block]
    return len(term.factors), *sorted(others)


def _to_flat(layout: Layout, block: int, derivatives: list[Derivatives]) -> sparse.csc_array:
    """The mean of a block, for unpenalized terms (entries, 1); none (entries, 0) where these have no such part.

    The intercept has its part in slopes, where the number that these are multiplied by is centred.
    """
    flat = [place for place, other in enumerate(layout.blocks) if other.source is None]
    found: Floats = np.empty(0)
    for by in derivatives:
        own = np.asarray(by.of(block).sum(axis=1)).ravel()
        columns = np.column_stack([np.empty((len(own), 0)), *(by.of(place).toarray() for place in flat)])
        if not len(found):
            found = np.asarray(np.linalg.lstsq(columns, own, rcond=SAME)[0], dtype=np.float64)
        if np.linalg.norm(own - columns @ found) > EQUAL * np.linalg.norm(own):
            return sparse.csc_array((layout.n_entries, 0))
    direction = np.zeros((layout.n_entries, 1))
    direction[layout.entries(block)] = 1.0
    for place, by_one in zip(flat, found, strict=True):
        direction[layout.entries(place)] = -by_one
    return sparse.csc_array(direction)


def _to_coarser(layout: Layout, one: int, other: int, derivatives: list[Derivatives]) -> sparse.csc_array:
    """What the entries of `one` within each entry of `other` can hand to that (entries, its size).

    None (entries, 0) where the one column is no function of the other, or what multiplies them is not the same.
    """
    nothing = sparse.csc_array((layout.n_entries, 0))
    within, times = None, 0.0
    for by in derivatives:
        by_one, by_other = by.of(one), by.of(other)
        if within is None:
            above = _entries_above(by_one, by_other)
            if above is None:
                return nothing
            seen = np.flatnonzero(above >= 0)
            within = sparse.csr_array((np.ones(len(seen)), (seen, above[seen])), shape=(len(above), by_other.shape[1]))
            times = float((by_one @ within).multiply(by_other).sum()) / float(by_other.multiply(by_other).sum() or 1.0)
        given = by_one @ within
        if times == 0.0 or sparse.linalg.norm(given - times * by_other) > EQUAL * sparse.linalg.norm(given):
            return nothing
    found = sparse.lil_array((layout.n_entries, layout.sizes[other]))
    found[layout.entries(one)] = within
    found[layout.entries(other)] = -times * sparse.eye_array(layout.sizes[other])
    return found.tocsc()


def _entries_above(by_one: sparse.csr_array, by_other: sparse.csr_array) -> NDArray[np.intp] | None:
    """For each entry that rows select the one of another block that they do, -1 for none; None where it is not one."""
    if max(np.diff(by_one.indptr).max(initial=0), np.diff(by_other.indptr).max(initial=0)) > 1:
        return None
    both = (np.diff(by_one.indptr) > 0) & (np.diff(by_other.indptr) > 0)
    lower, upper = (by.indices[by.indptr[:-1][both]] for by in (by_one, by_other))
    above = np.full(by_one.shape[1], -1, dtype=np.intp)
    above[lower] = upper
    return above if bool((above[lower] == upper).all()) else None
