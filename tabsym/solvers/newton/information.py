"""The penalized Fisher information of terms, by sums over the rows wherever these are, its rank and its inverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri

from tabsym.categories.kernels import order_by_code
from tabsym.jit import address_of, by_parts
from tabsym.losses.loss import MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.kernels_rows import (
    nests,
    subtract_shared,
    subtract_square,
    sum_children,
    sum_cross,
    sum_pairs,
)
from tabsym.solvers.newton.terms import Prior, SolverTerm, side_by_side

Floats = NDArray[np.float64]

_NONE = np.empty(0)

MAX_COEFS = 1_200
"""Coefficients of all classes up to which there is one matrix of them."""

MAX_SHARED = 20_000_000
"""The largest size of the cross-information of a term and others for which the rank of all is computed."""

MAX_SHARED_OF_PARTS = 2_000_000
"""The largest size of the cross-information of a term and others that is summed by threads, each over a part of the
rows."""

MAX_CACHED = 0.25
"""The largest size of the cross-information of a term and others, over the number of rows, that is cached for the terms
in which the term is nested."""

MAX_OTHERS, MAX_CROSS_LARGEST = 600, 4_000_000
"""The most coefficients of all terms but the largest, and the largest size of their cross-information with that term,
for which posteriors are of all terms jointly: the matrix of the former is inverted."""

SINGULAR = 1e-9
"""Eigenvalues below this, of an information matrix scaled to diagonal 1, count as 0."""

UNIDENTIFIED, PART = 1e-2, 1e-6
"""A coefficient is not identified where more than this fraction of its squared length lies in the null space of the
information; below the second it is no part of the null space, up to rounding."""


NEXT_TO_NONE = 1e-10
"""Of the most information on a coefficient of a term: less, as on a separated category, counts as this. A variance of
1e12 would leave few digits of the others', from which it is subtracted where coefficients are about their mean."""

NEARLY_CERTAIN = 1e-5
"""Of the mean information of a row: what the rows of a separated category have less of."""

ALIKE, ROUNDING = 1e-3, 1e-6
"""Of directions of length 1: singular values up to which some of them are alike, and components that count as 0."""


def largest_ridge(terms: Sequence[SolverTerm], indices: Sequence[int]) -> int | None:
    """The largest of some terms that has a ridge penalty, whose information is diagonal; None where none has one."""
    ridges = [index for index in indices if terms[index].prior is Prior.RIDGE]
    return max(ridges, key=lambda index: terms[index].size, default=None)


def can_be_joint(terms: Sequence[SolverTerm], indices: Sequence[int]) -> bool:
    """Whether all terms but the largest with a ridge penalty are few enough for joint posteriors."""
    largest = largest_ridge(terms, indices)
    size = 0 if largest is None else terms[largest].size
    n_other_coefs = sum(terms[index].size for index in indices) - size
    return n_other_coefs <= MAX_OTHERS and n_other_coefs * size <= MAX_CROSS_LARGEST


class StackedTerms:
    """Terms side by side, for the kernels of several terms.

    Parameters
    ----------
    terms : sequence of Term
    """

    def __init__(self, terms: Sequence[SolverTerm]) -> None:
        self._columns = [(np.ascontiguousarray(term.codes), np.ascontiguousarray(term.x)) for term in terms]
        ends = np.cumsum([0, *(term.size for term in terms)])
        self.size, self.starts = int(ends[-1]), ends[:-1]
        codes_at = np.array([address_of(codes) for codes, _ in self._columns], dtype=np.intp)
        x_at = np.array([address_of(x) if len(x) else 0 for _, x in self._columns], dtype=np.intp)
        self.arrays = codes_at, x_at, self.starts, np.empty(0, dtype=np.int32), np.empty(0)

    def sum_pairs(self, values: Floats) -> Floats:
        """The sums (p, p) of the rows' values (n,) by pairs of coefficients."""

        def sum_part(number: int, rows: slice) -> Floats:
            sums, part = np.zeros((self.size, self.size)), values[rows]
            sum_pairs(*self.of(rows), part, np.empty(len(part) if self.arrays[1].any() else 0), sums)
            return sums

        return np.asarray(sum(by_parts(sum_part, len(values))))

    def of(self, rows: slice) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The arrays that kernels take, of some of the rows."""
        codes_at, x_at, starts, codes_like, x_like = self.arrays
        codes_at = codes_at + rows.start * codes_like.itemsize
        return codes_at, np.where(x_at, x_at + rows.start * x_like.itemsize, 0), starts, codes_like, x_like


class Information:
    """The penalized Fisher information, term by term.

    Parameters
    ----------
    solver : BlockDescent
        At the optimum.
    mean_weights : dict of index -> (q,)
        Weights of the means that are not identified: they are constrained to 0, which changes no identified quantity.
    """

    has_rows = True
    """Whether rows are here, and not only sums over them."""

    def __init__(self, solver: BlockDescent, mean_weights: dict[int, Floats]) -> None:
        self.solver, self.mean_weights = solver, mean_weights
        self.k = solver.n_outputs if solver.loss.code == MULTINOMIAL else 1
        self._cross_sums: list[tuple[SolverTerm, list[int], Floats, Floats]] = []  # for `_from_finer`

    @cached_property
    def _weight(self) -> Floats:
        return self.solver.row_weights

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
        p_k, p_m = self._probabilities[:, k], self._probabilities[:, m]
        return np.asarray(self._weight * p_k * ((1.0 if k == m else 0.0) - p_m))

    def cross_information(self, index: int, other_terms: Sequence[int]) -> tuple[Floats, Floats]:
        """The diagonal of a term's information with its penalty (q,), and the cross-information with others (q, p).

        Of terms that are nested in each other, as an interaction at several numbers of bins, the finest come first: the
        sums of the coarser terms are sums of the finest one's, so that the rows need not be visited again.
        """
        term = self.solver.terms[index]
        diagonal, sums = self._from_finer(term, other_terms) or self.sum_cross(index, other_terms)
        if self.has_rows and sums.size <= MAX_CACHED * len(term.codes):
            self._cross_sums.append((term, list(other_terms), diagonal, sums))
        return diagonal + self.solver.precision[index], sums

    def _from_finer(self, term: SolverTerm, other_terms: Sequence[int]) -> tuple[Floats, Floats] | None:
        """The sums of a term by the cached ones of a term that is nested in it; the smallest such term is the last."""
        for finer, cached_terms, diagonal, sums in reversed(self._cross_sums):
            same_x = finer.x is term.x or not len(finer.x) + len(term.x)
            if not same_x or cached_terms[: len(other_terms)] != list(other_terms):
                continue
            parent = np.empty(finer.size, dtype=np.int32)
            if nests(finer.codes, term.codes, parent):
                parent_diagonal, parent_sums = np.zeros(term.size), np.zeros((term.size, sums.shape[1]))
                sum_children(parent, diagonal, sums, parent_diagonal, parent_sums)
                return parent_diagonal, parent_sums
        return None

    def eliminate(
        self, index: int, other_terms: Sequence[int], matrix: Floats
    ) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Subtract from the information on others (p, p), its lower triangle, what eliminating a ridge term takes.

        Returns the inverse of the term's diagonal information (q,), and a function for the product of coefficients (q,)
        with the cross-information.
        """
        term, columns = self.solver.terms[index], StackedTerms([self.solver.terms[i] for i in other_terms])
        if term.size * columns.size <= MAX_SHARED_OF_PARTS or not self.has_rows:
            diagonal, shared = self.cross_information(index, other_terms)
            alone = inverse_or(0.0, diagonal)
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

        def by_cross(by: Floats) -> Floats:
            of_rows = np.append(by, 0.0)[term.codes] * values  # -1 is the last
            sums = np.zeros((1, columns.size))
            sum_cross(
                np.zeros(len(values), dtype=np.int32), _NONE, *columns.arrays,
                of_rows * term.x if len(term.x) else of_rows, np.zeros(1), sums,
            )  # fmt: skip
            return np.asarray(sums[0])

        return alone, by_cross

    def sum_cross(
        self, index: int, other_terms: Sequence[int], start: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, Floats]:
        """The sums over rows in `cross_information`, added to those of other rows, `start`."""
        term, columns = self.solver.terms[index], StackedTerms([self.solver.terms[i] for i in other_terms])
        values = self._curvature(0, 0)
        if term.size * columns.size > MAX_SHARED_OF_PARTS or start is not None:
            diagonal, sums = start or (np.zeros(term.size), np.zeros((term.size, columns.size)))
            sum_cross(term.codes, term.x, *columns.arrays, values, diagonal, sums)
            return diagonal, sums

        def sum_part(number: int, rows: slice) -> tuple[Floats, Floats]:
            diagonal, sums = np.zeros(term.size), np.zeros((term.size, columns.size))
            sum_cross(term.codes[rows], term.x[rows], *columns.of(rows), values[rows], diagonal, sums)
            return diagonal, sums

        diagonals, parts = zip(*by_parts(sum_part, len(values)), strict=True)
        return np.asarray(sum(diagonals)), np.asarray(sum(parts))

    def cross_information_of_classes(self, index: int, other_terms: Sequence[int]) -> tuple[Floats, Floats]:
        """The information without penalty on a term (q, K, K), and between it and others (q, K, K p) by class."""
        term, k = self.solver.terms[index], self.k
        columns = StackedTerms([self.solver.terms[i] for i in other_terms])
        matrices, shared = np.zeros((k, k, term.size)), np.zeros((k, k, term.size, columns.size))
        for a in range(k):
            for b in range(a + 1):
                values = self._curvature(a, b)
                sum_cross(term.codes, term.x, *columns.arrays, values, matrices[a, b], shared[a, b])
                matrices[b, a], shared[b, a] = matrices[a, b], shared[a, b]
        together = shared.transpose(2, 0, 1, 3).reshape(term.size, k, -1)
        return np.ascontiguousarray(matrices.transpose(2, 0, 1)), np.ascontiguousarray(together)

    def of(self, indices: Sequence[int]) -> Floats:
        """The information on several terms (K p, K p), class by class, with penalties and constraints."""
        return self.penalized(self.sum_pairs(indices), indices)

    def penalized(self, whole: Floats, indices: Sequence[int]) -> Floats:
        """The sums over rows of `sum_pairs`, in place, with penalties and constraints."""
        for index, block in zip(indices, side_by_side(self.solver.terms, indices), strict=True):
            self._penalize(whole, block, index)
        k = self.k
        return whole.reshape(k * whole.shape[1], k * whole.shape[1])

    def sum_pairs(self, indices: Sequence[int]) -> Floats:
        """The sums over rows in `of` (K, p, K, p)."""
        columns, k = StackedTerms([self.solver.terms[index] for index in indices]), self.k
        p = columns.size
        if k == 1:
            return columns.sum_pairs(self._curvature(0, 0)).reshape(1, p, 1, p)
        whole = np.empty((k, p, k, p))
        for a in range(k):
            for b in range(a + 1):
                whole[a, :, b] = whole[b, :, a] = columns.sum_pairs(self._curvature(a, b))
        return whole

    def rank(self, indices: Sequence[int]) -> tuple[int | None, int]:
        """The rank of the design of terms, and how many coefficients have information, each alone; None for too many.

        The largest term is eliminated first: a row selects one of its coefficients, so that its information is
        diagonal.
        """
        terms = self.solver.terms
        *other_terms, largest = sorted(indices, key=lambda index: terms[index].size)
        size = sum(terms[index].size for index in other_terms)
        if size > MAX_COEFS or size * terms[largest].size > MAX_SHARED:
            return None, 0
        diagonal, shared, whole = self.sum_weights(largest, other_terms)
        is_informed, sizes = diagonal > 0.0, np.diag(whole)
        root = np.sqrt(np.where(sizes > 0.0, sizes, 1.0))
        left = whole - (shared[is_informed] / diagonal[is_informed, None]).T @ shared[is_informed]
        rank = np.count_nonzero(is_informed) + np.count_nonzero(
            np.linalg.eigvalsh(left / np.outer(root, root)) > SINGULAR
        )
        return int(rank), int(np.count_nonzero(is_informed) + np.count_nonzero(sizes))

    def sum_weights(
        self, index: int, other_terms: Sequence[int], start: tuple[Floats, Floats, Floats] | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """The rows' weights, without the loss, as in `sum_cross`, and by pairs of the others' coefficients (p, p)."""
        term, columns = self.solver.terms[index], StackedTerms([self.solver.terms[i] for i in other_terms])
        p, weight = columns.size, self._weight
        diagonal, shared, pairs = start or (np.zeros(term.size), np.zeros((term.size, p)), np.zeros((p, p)))
        sum_cross(term.codes, term.x, *columns.arrays, weight, diagonal, shared)
        return diagonal, shared, pairs + columns.sum_pairs(weight)

    def _penalize(self, whole: Floats, block: slice, index: int) -> None:
        """Add a term's penalty, and constrain its mean, and the direction common to all classes."""
        k, size = self.k, block.stop - block.start
        level = max(float(np.trace(whole[0, block, 0, block])), 1e-300)
        diagonals = np.array([np.diag(whole[a, block, a, block]) for a in range(k)])
        little = NEXT_TO_NONE * diagonals.max(axis=1, keepdims=True)
        more = np.where((diagonals > 0.0) & (diagonals < little), little, 0.0)
        weights = self.mean_weights.get(index)
        if weights is not None:  # of those that are known: the others' directions would be of all coefficients
            is_known = (diagonals > NEARLY_CERTAIN * weights * diagonals.sum(axis=1, keepdims=True)).all(axis=0)
            weights = np.where(is_known, weights, 0.0) if is_known.any() else weights
        for a in range(k):
            whole[a, block, a, block] += penalty_of(self.solver.terms[index], self.solver.precision[index])
            whole[a, block, a, block] += np.diag(more[a])
            if weights is not None:
                whole[a, block, a, block] += level * np.outer(weights, weights)
        if k > 1 and not (self.solver.terms[index].prior is Prior.RIDGE and self.solver.precision[index] > 0.0):
            for a, b in product(range(k), range(k)):
                whole[a, block, b, block] += level / size * np.eye(size)


def information_of(solver: BlockDescent, mean_weights: dict[int, Floats]) -> Information:
    """The penalized information of a model, by sums over its rows, wherever these are."""
    return (solver.makes_information or Information)(solver, mean_weights)


def penalty_of(term: SolverTerm, precision: float) -> Floats:
    """The penalty matrix (q, q) of a term."""
    if term.prior is Prior.FLAT:
        return np.zeros((1, 1))
    if term.prior is Prior.RIDGE:
        return np.asarray(precision * np.eye(term.size))
    jumps, about_mean = np.diff(np.eye(term.size)[term.n_unordered :], axis=0), np.eye(term.size)[: term.n_unordered]
    about_mean[:, term.n_unordered :] = -1.0 / max(term.size - term.n_unordered, 1)
    return np.asarray(precision * (jumps.T @ jumps + term.unordered_ratio * about_mean.T @ about_mean))


def inverse_or(otherwise: float, numbers: Floats) -> Floats:
    """1 over the positive numbers; `otherwise` where the inverse is not finite."""
    return np.divide(1.0, numbers, out=np.full_like(numbers, otherwise), where=numbers >= np.finfo(np.float64).tiny)


def inverse(information: Floats, null_space: Floats | None = None) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """The pseudoinverse (p, p), which coefficients (p,) have no information, and the null space (p, r) of the others.

    Variances are right for combinations of coefficients that are orthogonal to the null space. `null_space` (p, m):
    a likely basis of it, which saves time where it is right.
    """
    scaled, root, is_informed = _scaled(information)
    upper = _cholesky(scaled)
    unknown: Floats = np.empty((len(root), 0))
    if not len(root):  # LAPACK would write that it has nothing to do
        return scaled, ~is_informed, unknown
    if upper is None and null_space is not None and null_space.size:
        basis = np.linalg.qr(null_space * root[:, None])[0]
        if np.abs(scaled @ basis).max() < SINGULAR:
            upper, unknown = _cholesky(scaled + basis @ basis.T), basis
    if upper is not None:
        inverted = dpotri(upper, overwrite_c=1)[0].T
        inverted = np.tril(inverted)
        inverted += np.tril(inverted, -1).T
        if unknown.size:
            inverted -= unknown @ unknown.T
    else:
        axes, unknown = _known_axes(scaled)
        inverted = axes @ axes.T
    inverted[~is_informed] = inverted[:, ~is_informed] = 0.0
    inverted /= root[:, None]
    inverted /= root
    return inverted, ~is_informed, unknown / root[:, None]


def null_space_of(information: Floats) -> Floats:
    """The null space (p, r) of a matrix, as `inverse` returns it."""
    scaled, root, _ = _scaled(information)
    if not len(root) or _cholesky(scaled) is not None:
        return np.empty((len(root), 0))
    return _known_axes(scaled)[1] / root[:, None]


def are_unidentified(information: Floats, null_space: Floats) -> NDArray[np.bool_]:
    """Which coefficients (p,) lie in the null space (p, r) that `inverse` returns, by more than a little."""
    return np.asarray(np.diag(information) * np.square(null_space).sum(axis=1) > UNIDENTIFIED)


def root_of_inverse(information: Floats) -> Floats:
    """R (p, r), contiguous, with RR' the inverse; of the information the lower triangle is read."""
    if not len(information):
        return np.empty((0, 0))
    scaled, root, is_informed = _scaled(information)
    upper = _cholesky(scaled)
    factor = _known_axes(scaled)[0] if upper is None else dtrtri(upper, overwrite_c=1)[0]
    factor[~is_informed] = 0.0
    return np.ascontiguousarray(factor / root[:, None])


def _scaled(information: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The information scaled to diagonal 1, the roots (p,) of its diagonal, and where (p,) that is positive."""
    size = np.diag(information)
    is_informed = size > 0.0
    root = np.sqrt(np.where(is_informed, size, 1.0))
    scaled = information / root[:, None]
    scaled /= root
    scaled[~is_informed, ~is_informed] = 1.0
    return scaled, root, is_informed


def _cholesky(scaled: Floats) -> Floats | None:
    """U with U'U a matrix of diagonal 1, by its lower triangle; None where it is singular, or nearly."""
    upper, info = dpotrf(scaled.T)
    if info != 0 or np.square(np.diag(upper)).min(initial=1.0) < SINGULAR:
        return None
    return np.asarray(upper)


def without_information(information: Floats, known: Floats) -> Floats:
    """The directions (p, r) without information, except `known` ones (p, m) as far as these have none either."""
    scaled, root, _ = _scaled(information)
    if _cholesky(scaled) is not None:
        return np.empty((len(root), 0))
    lengths, axes = np.linalg.eigh(scaled)
    directions: Floats = axes[:, lengths <= SINGULAR]
    known = known * root[:, None]
    inside = directions.T @ (known / np.maximum(np.linalg.norm(known, axis=0), 1e-300))
    inside = inside[:, np.square(inside).sum(axis=0) > 1.0 - UNIDENTIFIED]
    if inside.size:
        left, sizes, _ = np.linalg.svd(inside)
        directions = directions @ left[:, int(np.count_nonzero(sizes > ALIKE)) :]
    return np.where(np.abs(directions) > ROUNDING, directions, 0.0) / root[:, None]


def _known_axes(scaled: Floats) -> tuple[Floats, Floats]:
    """R (p, r) with RR' the pseudoinverse of a singular matrix, and its null space (p, p - r)."""
    lengths, axes = np.linalg.eigh(scaled)
    known = lengths > SINGULAR
    unknown = axes[:, ~known]
    unknown[np.square(unknown).sum(axis=1) <= PART] = 0.0
    return axes[:, known] / np.sqrt(lengths[known]), unknown
