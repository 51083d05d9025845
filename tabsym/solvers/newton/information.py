"""The penalized Fisher information of terms, by sums over the rows wherever these are, its rank and its inverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri

from tabsym.categories.kernels import order_by_code
from tabsym.intrinsics import address_of
from tabsym.losses.kernels import MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.kernels_joint import (
    mirror,
    nests,
    subtract_shared,
    subtract_square,
    sum_beside,
    sum_children,
    sum_pairs,
)
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.threads import by_parts

Floats = NDArray[np.float64]

_NONE = np.empty(0)

MAX_COEFS = 1_200
"""Coefficients of all classes up to which there is one matrix of them."""

MAX_SHARED = 20_000_000
"""The most numbers that a term shares with others for which the rank of all is found."""

MAX_SHARED_OF_PARTS = 2_000_000
"""The most numbers that a term shares with others for which parts of the rows have sums of their own, in threads."""

MAX_KEPT = 0.25
"""The most numbers that a term shares with others, over the rows, that are kept for the terms that it is nested in."""

MAX_BESIDE, MAX_BESIDE_LARGEST = 600, 4_000_000
"""The most coefficients beside the largest term, and numbers that these share with it, up to which posteriors are of
all terms together: a matrix of the former is inverted."""

SINGULAR = 1e-9
"""Eigenvalues below this, of an information matrix scaled to diagonal 1, count as 0."""

UNTOLD = 1e-2
"""A coefficient is not identified where more than this fraction of its squared length lies in the null space of the
information."""


ALIKE, ROUNDING = 1e-3, 1e-6
"""Of directions of length 1: singular values up to which some of them are alike, and components that count as 0."""


def largest_ridge(terms: Sequence[SolverTerm], indices: Sequence[int]) -> int | None:
    """The largest of some terms that has a ridge penalty, whose information is diagonal; None where none has one."""
    ridges = [index for index in indices if terms[index].prior is Prior.RIDGE]
    return max(ridges, key=lambda index: terms[index].size, default=None)


def are_few_beside_largest(terms: Sequence[SolverTerm], indices: Sequence[int]) -> bool:
    """Whether the terms beside the largest with a ridge penalty are few enough for posteriors of all together."""
    largest = largest_ridge(terms, indices)
    size = 0 if largest is None else terms[largest].size
    beside = sum(terms[index].size for index in indices) - size
    return beside <= MAX_BESIDE and beside * size <= MAX_BESIDE_LARGEST


class StackedTerms:
    """Terms side by side, for the kernels of several terms.

    Parameters
    ----------
    terms : sequence of Term
    """

    def __init__(self, terms: Sequence[SolverTerm]) -> None:
        self._kept = [(np.ascontiguousarray(term.codes), np.ascontiguousarray(term.x)) for term in terms]
        ends = np.cumsum([0, *(term.size for term in terms)])
        self.size, self.starts = int(ends[-1]), ends[:-1]
        codes_at = np.array([address_of(codes) for codes, _ in self._kept], dtype=np.intp)
        x_at = np.array([address_of(x) if len(x) else 0 for _, x in self._kept], dtype=np.intp)
        self.arrays = codes_at, x_at, self.starts, np.empty(0, dtype=np.int32), np.empty(0)

    def sum_pairs(self, values: Floats) -> Floats:
        """The sums (p, p) of the rows' values (n,) by pairs of coefficients."""

        def sum_part(number: int, own: slice) -> Floats:
            sums, shares = np.zeros((self.size, self.size)), values[own]
            sum_pairs(*self.of(own), shares, np.empty(len(shares) if self.arrays[1].any() else 0), sums)
            return sums

        return np.asarray(sum(by_parts(sum_part, len(values))))

    def of(self, own: slice) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The arrays that kernels take, of some of the rows."""
        codes_at, x_at, starts, codes_like, x_like = self.arrays
        codes_at = codes_at + own.start * codes_like.itemsize
        return codes_at, np.where(x_at, x_at + own.start * x_like.itemsize, 0), starts, codes_like, x_like


class Information:
    """The penalized Fisher information, term by term.

    Parameters
    ----------
    solver : BlockDescent
        At the optimum.
    shares : dict of index -> (q,)
        Weights of the means that are not identified: they are constrained to 0, which changes no identified quantity.
    """

    has_rows = True
    """Whether rows are here, and not only sums over them."""

    def __init__(self, solver: BlockDescent, shares: dict[int, Floats]) -> None:
        self.solver, self.shares = solver, shares
        self.k = solver.n_outputs if solver.loss.code == MULTINOMIAL else 1
        self._kept: list[tuple[SolverTerm, list[int], Floats, Floats]] = []  # what terms share with others, so far

    @cached_property
    def _weight(self) -> Floats:
        return self.solver.weight if len(self.solver.weight) else np.ones(len(self.solver.y))

    @cached_property
    def _probabilities(self) -> Floats:
        return self.solver.rows.probabilities  # type: ignore[union-attr]

    @cached_property
    def _of_rows(self) -> Floats:
        return self.solver.expected_curvature()

    def _curvature(self, k: int, m: int) -> Floats:
        """The rows' Hessians (n,) by the linear predictors of two classes."""
        if self.solver.loss.code != MULTINOMIAL:
            return self._of_rows
        one, other = self._probabilities[:, k], self._probabilities[:, m]
        return np.asarray(self._weight * one * ((1.0 if k == m else 0.0) - other))

    def beside(self, index: int, others: Sequence[int]) -> tuple[Floats, Floats]:
        """The information without penalty between a term and others (q, p), and its own diagonal with it (q,).

        Of terms that are nested in each other, as an interaction at several numbers of bins, the finest come first: the
        sums of the others are sums of its own, so that the rows need not be visited again.
        """
        term = self.solver.terms[index]
        own, sums = self._from_finer(term, others) or self.sum_beside(index, others)
        if self.has_rows and sums.size <= MAX_KEPT * len(term.codes):
            self._kept.append((term, list(others), own, sums))
        return own + self.solver.precision[index], sums

    def _from_finer(self, term: SolverTerm, others: Sequence[int]) -> tuple[Floats, Floats] | None:
        """The sums of a term by those that are kept of one that is nested in it; the smallest such term is the last."""
        for finer, beside, own, sums in reversed(self._kept):
            same_x = finer.x is term.x or not len(finer.x) + len(term.x)
            if not same_x or beside[: len(others)] != list(others):
                continue
            parent = np.empty(finer.size, dtype=np.int32)
            if nests(finer.codes, term.codes, parent):
                own_above, sums_above = np.zeros(term.size), np.zeros((term.size, sums.shape[1]))
                sum_children(parent, own, sums, own_above, sums_above)
                return own_above, sums_above
        return None

    def eliminate(self, index: int, others: Sequence[int], matrix: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Subtract from the information on others (p, p), its lower triangle, what a ridge term has with them.

        Returns the inverse of the term's own information (q,), and the product of coefficients (q,) with what the two
        share.
        """
        term, columns = self.solver.terms[index], StackedTerms([self.solver.terms[other] for other in others])
        if term.size * columns.size <= MAX_SHARED_OF_PARTS or not self.has_rows:
            own, shared = self.beside(index, others)
            alone = inverse_or(0.0, own)
            subtract_square(shared, alone, matrix)
            return alone, lambda by: np.asarray(by @ shared)
        ends = np.cumsum(np.bincount(term.codes + 1, minlength=term.size + 1)[1:])
        order, cursors = np.empty(ends[-1], dtype=np.int32), np.append(0, ends[:-1])
        order_by_code(term.codes, cursors, order)
        values, alone = self._curvature(0, 0), np.empty(term.size)
        subtract_shared(
            order, ends, term.x, *columns.arrays, values, float(self.solver.precision[index]), alone,
            np.zeros((3, columns.size)), matrix,
        )  # fmt: skip

        def product(by: Floats) -> Floats:
            of_rows = np.append(by, 0.0)[term.codes] * values  # -1 is the last
            sums = np.zeros((1, columns.size))
            sum_beside(
                np.zeros(len(values), dtype=np.int32), _NONE, *columns.arrays,
                of_rows * term.x if len(term.x) else of_rows, np.zeros(1), sums,
            )  # fmt: skip
            return np.asarray(sums[0])

        return alone, product

    def sum_beside(
        self, index: int, others: Sequence[int], found: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, Floats]:
        """The sums over rows in `beside`, added to those of other rows."""
        term, columns = self.solver.terms[index], StackedTerms([self.solver.terms[other] for other in others])
        values = self._curvature(0, 0)
        if term.size * columns.size > MAX_SHARED_OF_PARTS or found is not None:
            own, sums = found or (np.zeros(term.size), np.zeros((term.size, columns.size)))
            sum_beside(term.codes, term.x, *columns.arrays, values, own, sums)
            return own, sums

        def sum_part(number: int, rows: slice) -> tuple[Floats, Floats]:
            own, sums = np.zeros(term.size), np.zeros((term.size, columns.size))
            sum_beside(term.codes[rows], term.x[rows], *columns.of(rows), values[rows], own, sums)
            return own, sums

        owns, parts = zip(*by_parts(sum_part, len(values)), strict=True)
        return np.asarray(sum(owns)), np.asarray(sum(parts))

    def beside_of_classes(self, index: int, others: Sequence[int]) -> tuple[Floats, Floats]:
        """The information without penalty on a term (q, K, K), and between it and others (q, K, K p) by class."""
        term, columns, k = (
            self.solver.terms[index],
            StackedTerms([self.solver.terms[other] for other in others]),
            self.k,
        )
        own, shared = np.zeros((k, k, term.size)), np.zeros((k, k, term.size, columns.size))
        for one in range(k):
            for other in range(one + 1):
                values = self._curvature(one, other)
                sum_beside(term.codes, term.x, *columns.arrays, values, own[one, other], shared[one, other])
                own[other, one], shared[other, one] = own[one, other], shared[one, other]
        together = shared.transpose(2, 0, 1, 3).reshape(term.size, k, -1)
        return np.ascontiguousarray(own.transpose(2, 0, 1)), np.ascontiguousarray(together)

    def of(self, indices: Sequence[int]) -> Floats:
        """The information on several terms (K p, K p), class by class, with penalties and constraints."""
        return self.held(self.sum_pairs(indices), indices)

    def held(self, whole: Floats, indices: Sequence[int]) -> Floats:
        """The sums over rows of `sum_pairs`, in place, with penalties and constraints."""
        k = self.k
        ends = np.cumsum([0, *(self.solver.terms[index].size for index in indices)]).tolist()
        own = [slice(a, b) for a, b in pairwise(ends)]
        for i, index in enumerate(indices):
            self._hold(whole, own[i], index)
        return whole.reshape(k * ends[-1], k * ends[-1])

    def sum_pairs(self, indices: Sequence[int]) -> Floats:
        """The sums over rows in `of` (K, p, K, p)."""
        columns, k = StackedTerms([self.solver.terms[index] for index in indices]), self.k
        p = columns.size
        if k == 1:
            return columns.sum_pairs(self._curvature(0, 0)).reshape(1, p, 1, p)
        whole = np.empty((k, p, k, p))
        for one in range(k):
            for other in range(one + 1):
                whole[one, :, other] = whole[other, :, one] = columns.sum_pairs(self._curvature(one, other))
        return whole

    def rank(self, indices: Sequence[int]) -> tuple[int | None, int]:
        """The rank of the design of terms, and how many coefficients are informed, each alone; None for too many.

        The largest term is eliminated first: a row selects one of its coefficients, so that its information is
        diagonal.
        """
        terms = self.solver.terms
        *others, largest = sorted(indices, key=lambda index: terms[index].size)
        size = sum(terms[index].size for index in others)
        if size > MAX_COEFS or size * terms[largest].size > MAX_SHARED:
            return None, 0
        own, shared, whole = self.sum_weights(largest, others)
        told, sizes = own > 0.0, np.diag(whole)
        root = np.sqrt(np.where(sizes > 0.0, sizes, 1.0))
        left = whole - (shared[told] / own[told, None]).T @ shared[told]
        rank = np.count_nonzero(told) + np.count_nonzero(np.linalg.eigvalsh(left / np.outer(root, root)) > SINGULAR)
        return int(rank), int(np.count_nonzero(told) + np.count_nonzero(sizes))

    def sum_weights(
        self, index: int, others: Sequence[int], found: tuple[Floats, Floats, Floats] | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """The rows' weights, without the loss, as in `sum_beside`, and by pairs of the others' coefficients (p, p)."""
        term, columns = self.solver.terms[index], StackedTerms([self.solver.terms[other] for other in others])
        p, weight = columns.size, self._weight
        own, shared, pairs = found or (np.zeros(term.size), np.zeros((term.size, p)), np.zeros((p, p)))
        sum_beside(term.codes, term.x, *columns.arrays, weight, own, shared)
        return own, shared, pairs + columns.sum_pairs(weight)

    def _hold(self, whole: Floats, own: slice, index: int) -> None:
        """Add a term's penalty, and constrain its mean, and the direction common to all classes."""
        k, size = self.k, own.stop - own.start
        level = max(float(np.trace(whole[0, own, 0, own])), 1e-300)
        for one in range(k):
            whole[one, own, one, own] += penalty_of(self.solver.terms[index], self.solver.precision[index])
            if index in self.shares:
                whole[one, own, one, own] += level * np.outer(self.shares[index], self.shares[index])
        if k > 1 and not (self.solver.terms[index].prior is Prior.RIDGE and self.solver.precision[index] > 0.0):
            for one in range(k):
                for other in range(k):
                    whole[one, own, other, own] += level / size * np.eye(size)

    def visits(self, indices: Sequence[int]) -> float:
        """The number of rows visited to compute the information on terms."""
        return 0.5 * len(self.solver.y) * len(indices) ** 2 * self.k**2


def information_of(solver: BlockDescent, shares: dict[int, Floats]) -> Information:
    """The penalized information of a model, by sums over its rows, wherever these are."""
    return (solver.makes_information or Information)(solver, shares)


def penalty_of(term: SolverTerm, precision: float) -> Floats:
    """The penalty matrix (q, q) of a term."""
    if term.prior is Prior.FLAT:
        return np.zeros((1, 1))
    if term.prior is Prior.RIDGE:
        return np.asarray(precision * np.eye(term.size))
    jumps, beside = np.diff(np.eye(term.size)[term.apart :], axis=0), np.eye(term.size)[: term.apart]
    beside[:, term.apart :] = -1.0 / max(term.size - term.apart, 1)
    return np.asarray(precision * (jumps.T @ jumps + term.share_apart * beside.T @ beside))


def inverse_or(otherwise: float, numbers: Floats) -> Floats:
    """1 over the positive numbers, but for those whose inverse is none."""
    return np.divide(1.0, numbers, out=np.full_like(numbers, otherwise), where=numbers >= np.finfo(np.float64).tiny)


def inverse(information: Floats, untold: Floats | None = None) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """The pseudoinverse (p, p), which coefficients (p,) have no information, and the null space (p, r) of the others.

    Variances are right for combinations of coefficients that are orthogonal to the null space. `untold` (p, m): what is
    likely to span it, which takes less time then.
    """
    scaled, root, told = _scaled(information)
    upper = _cholesky(scaled)
    unknown: Floats = np.empty((len(root), 0))
    if not len(root):  # LAPACK would write that it has nothing to do
        return scaled, ~told, unknown
    if upper is None and untold is not None and untold.size:
        basis = np.linalg.qr(untold * root[:, None])[0]
        if np.abs(scaled @ basis).max() < SINGULAR:
            upper, unknown = _cholesky(scaled + basis @ basis.T), basis
    if upper is not None:
        found = dpotri(upper, overwrite_c=1)[0].T
        mirror(found)
        if unknown.size:
            found -= unknown @ unknown.T
    else:
        axes, unknown = _known_axes(scaled)
        found = axes @ axes.T
    found[~told] = found[:, ~told] = 0.0
    found /= root[:, None]
    found /= root
    return found, ~told, unknown / root[:, None]


def root_of_inverse(information: Floats) -> Floats:
    """R (p, r), contiguous, with RR' the inverse; of the information the lower triangle is read."""
    if not len(information):
        return np.empty((0, 0))
    scaled, root, told = _scaled(information)
    upper = _cholesky(scaled)
    found = _known_axes(scaled)[0] if upper is None else dtrtri(upper, overwrite_c=1)[0]
    found[~told] = 0.0
    return np.ascontiguousarray(found / root[:, None])


def _scaled(information: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The information scaled to diagonal 1, the roots (p,) of its diagonal, and where (p,) that is positive."""
    size = np.diag(information)
    told = size > 0.0
    root = np.sqrt(np.where(told, size, 1.0))
    scaled = information / root[:, None]
    scaled /= root
    scaled[~told, ~told] = 1.0
    return scaled, root, told


def _cholesky(scaled: Floats) -> Floats | None:
    """U with U'U a matrix of diagonal 1, by its lower triangle; None where it is singular, or nearly."""
    upper, info = dpotrf(scaled.T)
    if info != 0 or np.square(np.diag(upper)).min(initial=1.0) < SINGULAR:
        return None
    return np.asarray(upper)


def without_information(information: Floats, known: Floats) -> Floats:
    """The directions (p, r) without information, but for `known` ones (p, m), as far as these are among them."""
    scaled, root, _ = _scaled(information)
    if _cholesky(scaled) is not None:
        return np.empty((len(root), 0))
    lengths, axes = np.linalg.eigh(scaled)
    found: Floats = axes[:, lengths <= SINGULAR]
    known = known * root[:, None]
    inside = found.T @ (known / np.maximum(np.linalg.norm(known, axis=0), 1e-300))
    inside = inside[:, np.square(inside).sum(axis=0) > 1.0 - UNTOLD]
    if inside.size:
        left, sizes, _ = np.linalg.svd(inside)
        found = found @ left[:, int(np.count_nonzero(sizes > ALIKE)) :]
    return np.where(np.abs(found) > ROUNDING, found, 0.0) / root[:, None]


def _known_axes(scaled: Floats) -> tuple[Floats, Floats]:
    """R (p, r) with RR' the pseudoinverse of a singular matrix, and its null space (p, p - r)."""
    lengths, axes = np.linalg.eigh(scaled)
    known = lengths > SINGULAR
    unknown = axes[:, ~known]
    unknown[np.square(unknown).sum(axis=1) <= UNTOLD] = 0.0
    return axes[:, known] / np.sqrt(lengths[known]), unknown
