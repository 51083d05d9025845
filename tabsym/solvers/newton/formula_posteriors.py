"""Posteriors of a formula's terms: one term jointly with the unpenalized coefficients, given the other terms.

A row's linear predictor depends on a term's coefficients by its derivatives J, and the term's Hessian is J'WJ, with W
the Hessians of the rows (Gauss-Newton: exact for a term that occurs once in the formula). For a term that occurs once
it consists of a small matrix for each category, of the size of its vectors; for one that occurs twice (w[home] -
w[away]) it is a sparse matrix. The unpenalized coefficients, and the mean on which factors of products are centred, are
a low-rank correction with columns B: V = (D - BB')^-1 = D^-1 + Y (1 - B'Y)^-1 Y', with Y = D^-1 B.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import SuperLU, cg, splu

from tabsym.design.model_spec import ModelSpec, Program, Rows
from tabsym.solvers.newton.steps import SAME, rank_of_information

Floats = NDArray[np.float64]

MAX_DENSE = 1000
"""For a term that occurs twice, the number of coefficients above which the diagonal of its inverse is sampled."""

N_SAMPLES = 64

NOTHING_LEFT = 1e-5
"""Relative to the information on the unpenalized coefficients: less counts as none."""


class Derivatives:
    """Derivatives of the rows' linear predictors by the coefficients, one output at a time.

    Parameters
    ----------
    spec : ModelSpec
    program : Program
    rows : Rows
    phi : (coefficients,)
        Coefficients of the output.
    """

    def __init__(self, spec: ModelSpec, program: Program, rows: Rows, phi: Floats) -> None:
        self.spec, self.program, self.rows, self.phi = spec, program, rows, phi

    def of(self, block: int) -> sparse.csr_array:
        """Derivatives by the coefficients of a term (n, size)."""
        coefs_of_term = self.spec.coefs(block)  # all coefficients of a slot are of one term
        triplets = [
            (rows, coefs - coefs_of_term.start, by)
            for rows, coefs, by in self._all
            if len(coefs) and coefs_of_term.start <= coefs[0] < coefs_of_term.stop
        ]
        shape = len(self.rows.y), coefs_of_term.stop - coefs_of_term.start
        if not triplets:
            return sparse.csr_array(shape)
        rows, coefs, by = (np.concatenate(parts) for parts in zip(*triplets, strict=True))
        return sparse.csr_array((by, (rows, coefs)), shape=shape)  # duplicates are summed

    @cached_property
    def _all(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64], Floats]]:
        """Rows, coefficients and derivatives of every slot of the program with coefficients."""
        program, rows, n = self.program, self.rows, len(self.rows.y)
        every, ones = np.arange(n), np.ones(n)
        triplets = [self._with_coef(rows.codes[:, j].astype(np.int64), ones) for j in range(program.n_plain)]
        triplets += [(every, np.full(n, coef), rows.x[:, j]) for j, coef in enumerate(program.slopes)]
        triplets += [(every, np.full(n, coef), ones) for coef in program.scalars]
        for term in range(len(program.constants)):
            slots = range(program.starts[term], program.starts[term + 1])
            coefs = [self._coefs(slot) for slot in slots]
            values = [np.where(selected >= 0, self.phi[selected], 0.0) for selected in coefs]
            number = program.numeric[term]
            factor = program.constants[term] * (rows.x[:, number] if number >= 0 else ones)
            for index, selected in enumerate(coefs):
                factors = [value for i, value in enumerate(values) if i != index]
                triplets.append(self._with_coef(selected, np.prod([factor, *factors], axis=0)))
        return triplets

    def _coefs(self, slot: int) -> NDArray[np.int64]:
        column, first = self.program.columns[slot], self.program.coefs[slot]
        if column < 0:
            return np.full(len(self.rows.y), first)
        codes = self.rows.codes[:, column].astype(np.int64)
        return np.where(codes >= 0, codes + first, -1)

    @staticmethod
    def _with_coef(coefs: NDArray[np.int64], by: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        at = np.flatnonzero(coefs >= 0)
        return at, coefs[at], by[at]


class FormulaPosteriors:
    """The posteriors of the terms at the current coefficients, for one output.

    Parameters
    ----------
    derivatives : Derivatives
    hessians : (n,)
        Hessians of the rows, times their weight.
    """

    def __init__(self, derivatives: Derivatives, hessians: Floats) -> None:
        self.derivatives, self.spec, self.hessians = derivatives, derivatives.spec, hessians
        self.unpenalized = [index for index, block in enumerate(self.spec.blocks) if block.source is None]
        self._widest: Floats = np.zeros((len(self.unpenalized), len(self.unpenalized)))

    def of(self, block: int, precision: float, *, centred: bool) -> tuple[Floats, float]:
        """Posterior variances (coefficients,) of a term, dispersion 1, and its effective degrees of freedom.

        With a ridge of this precision, about its mean where `centred`.
        """
        rank = self.spec.blocks[block].rank
        by = self.derivatives.of(block)
        diagonal, times = self._inverse(block, by, precision)
        shared = by.T @ (self.hessians[:, None] * self._by_unpenalized)
        lengths, axes = np.linalg.eigh(self._unpenalized_information)
        known = lengths > NOTHING_LEFT * lengths.max(initial=0.0)
        columns = shared @ (axes[:, known] / np.sqrt(lengths[known]))  # by a root of the pseudo-inverse
        size = by.shape[1] // rank
        means = np.tile(np.eye(rank), (size, 1)) / np.sqrt(size)
        if centred:
            columns = np.concatenate([columns, np.sqrt(precision) * means], axis=1)
        followed = times(columns)
        left = np.eye(columns.shape[1]) - columns.T @ followed
        middle = np.linalg.pinv(left, rcond=NOTHING_LEFT, hermitian=True)
        variances = diagonal + ((followed @ middle) * followed).sum(axis=1)
        penalized, n_penalized = float(variances.sum()), by.shape[1]
        if centred:
            mean_followed = means.T @ followed
            of_means = np.trace(means.T @ times(means)) + np.trace(mean_followed @ middle @ mean_followed.T)
            penalized, n_penalized = penalized - float(of_means), n_penalized - rank
        widest = self._unpenalized_information - shared.T @ times(shared)
        widest = np.asarray(np.linalg.pinv(widest, rcond=NOTHING_LEFT, hermitian=True), dtype=np.float64)
        if np.trace(widest) > np.trace(self._widest):
            self._widest = widest
        return variances, max(n_penalized - precision * penalized, 0.0)

    def unpenalized_variances(self) -> Floats:
        """Variances (f,) of the unpenalized coefficients, joint with the term for which they are largest."""
        alone = np.diag(np.linalg.pinv(self._unpenalized_information, rcond=NOTHING_LEFT, hermitian=True))
        return np.maximum(alone, np.diag(self._widest))

    @property
    def unpenalized_rank(self) -> int:
        """The rank of the information on the unpenalized coefficients."""
        return rank_of_information(self._unpenalized_information)

    def _inverse(self, block: int, by: sparse.csr_array, precision: float) -> Inverse:
        root = (by * np.sqrt(self.hessians)[:, None]).tocsr()
        curvature = (root.T @ root).tocsr()
        if sum(read.block == block for read in self.spec.reads) == 1:
            return _by_category(curvature, precision, self.spec.blocks[block].rank)
        if by.shape[1] > MAX_DENSE:
            return _sampled(curvature, precision, root)
        whole = _inverse_of(curvature.toarray() + precision * np.eye(curvature.shape[0]))
        return np.diag(whole), lambda columns: np.asarray(whole @ columns)

    @cached_property
    def _by_unpenalized(self) -> Floats:
        """Derivatives (n, f) by the unpenalized coefficients."""
        columns = [self.derivatives.of(index).toarray() for index in self.unpenalized]
        return np.concatenate([np.zeros((len(self.hessians), 0)), *columns], axis=1)

    @cached_property
    def _unpenalized_information(self) -> Floats:
        return np.asarray(self._by_unpenalized.T @ (self.hessians[:, None] * self._by_unpenalized))


Inverse = tuple[Floats, Callable[[Floats], Floats]]
"""The inverse of a term's Hessian with penalty: its diagonal (q,), and its product with columns (q, m)."""


def _by_category(curvature: sparse.csr_array, precision: float, rank: int) -> Inverse:
    """For a term that occurs once: a matrix (rank, rank) for each category."""
    n_categories = curvature.shape[0] // rank
    hessians = np.zeros((n_categories, rank, rank))
    coo = curvature.tocoo()
    hessians[coo.row // rank, coo.row % rank, coo.col % rank] = coo.data
    inverses = _inverse_of(hessians + precision * np.eye(rank))

    def times(columns: Floats) -> Floats:
        return np.asarray((inverses @ columns.reshape(n_categories, rank, -1)).reshape(len(columns), -1))

    return np.diagonal(inverses, axis1=1, axis2=2).ravel(), times


def _sampled(curvature: sparse.csr_array, precision: float, root: sparse.csr_array) -> Inverse:
    """For one with many coefficients: the diagonal from samples, by conjugate gradients with a fixed seed.

    The variance of a coefficient is that given the others, known exactly, plus that of its conditional mean, over the
    samples (as in `uncertainty.PosteriorSamples`). `root` (n, q): R with R'R = the Hessian.
    """
    alone = curvature.diagonal()
    precision = max(precision, NOTHING_LEFT * float(alone.mean()))
    both = (curvature + precision * sparse.eye_array(len(alone))).tocsr()
    conditional = 1.0 / (alone + precision)

    def times(columns: Floats) -> Floats:
        scale = sparse.diags_array(conditional)
        return np.stack([cg(both, column, rtol=1e-8, M=scale)[0] for column in columns.T], axis=1)

    rng = np.random.RandomState(0)
    right = root.T @ rng.standard_normal((root.shape[0], N_SAMPLES))
    right += np.sqrt(precision) * rng.standard_normal(right.shape)  # of covariance `both`
    means = right - times(right) / conditional[:, None]
    return conditional + np.square(conditional[:, None] * means).mean(axis=1), times


def _inverse_of(matrices: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.inv(matrices))
    except np.linalg.LinAlgError:  # no penalty, and coefficients that are not identified
        return np.asarray(np.linalg.pinv(matrices, rcond=NOTHING_LEFT, hermitian=True))


EQUAL = 1e-9
"""Relative differences of derivatives below this are rounding."""

SINGULAR = 1e-10
"""Relative ridge on the diagonal of the system: directions may be linearly dependent."""


class CommonLevels:
    """The directions of a formula's coefficients along which no linear predictor changes.

    Parameters
    ----------
    spec : ModelSpec
    program : Program
    rows : Rows
    centred : list of bool
        Terms whose prior is about their mean. Where an unpenalized term can absorb the mean, it is treated as a prior
        about 0; others are not recentered.
    """

    def __init__(self, spec: ModelSpec, program: Program, rows: Rows, centred: list[bool]) -> None:
        self._spec, self._precision = spec, np.empty(0)
        self._solver: SuperLU | None = None
        other_factors = _other_factors(spec)
        penalized = [block for block in other_factors if spec.blocks[block].source is not None]
        directions = [sparse.csc_array((spec.n_coefs, 0))]
        if penalized and len(spec.blocks) > 1:
            rng = np.random.RandomState(0)  # at two generic points
            indices = [rng.normal(1.0, 0.3, spec.n_coefs) for _ in range(2)]
            derivatives = [Derivatives(spec, program, rows, phi) for phi in indices]
            to_unpenalized = {block: _to_unpenalized(spec, block, derivatives) for block in penalized}
            penalized = [block for block in penalized if not centred[block] or to_unpenalized[block].shape[1]]
            directions += [to_unpenalized[block] for block in penalized]
            directions += [
                _to_coarser(spec, child, parent, derivatives)
                for child, parent in permutations(penalized, 2)
                if other_factors[child] == other_factors[parent] and spec.sizes[child] > spec.sizes[parent]
            ]
        self._directions: sparse.csc_array = sparse.hstack(directions).tocsc()

    def moves(self, block: int) -> bool:
        """Whether directions change coefficients of a block."""
        return bool(self._directions[self._spec.coefs(block)].count_nonzero())

    def recenter(self, phi: Floats, precision: Floats) -> Floats:
        """Coefficients (coefficients * K,) of least penalty, by the terms' precisions, with the same predictors."""
        if not self._directions.shape[1]:
            return phi
        precisions = np.repeat(precision, self._spec.sizes)
        if self._solver is None or not np.array_equal(precision, self._precision):
            system = (self._directions.T @ (self._directions * precisions[:, None])).tocsc()
            size = system.diagonal()
            ridge = np.where(size > 0.0, SINGULAR * size, 1.0)
            self._solver, self._precision = splu((system + sparse.diags_array(ridge)).tocsc()), precision.copy()
        numbers = phi.reshape(self._spec.n_coefs, -1)
        away = self._solver.solve(self._directions.T @ (precisions[:, None] * numbers))
        return np.asarray(numbers - self._directions @ away, dtype=np.float64).ravel()


def _other_factors(spec: ModelSpec) -> dict[int, tuple[object, ...]]:
    """By term, the other factors that it is multiplied by, where these are the same throughout the formula."""
    other_factors: dict[int, set[tuple[object, ...]]] = {}
    for term in spec.fitted_terms:
        for block in (factor.block for factor in term.factors):
            multipliers = [
                (factor.block, factor.columns, factor.component) for factor in term.factors if factor.block != block
            ]
            other_factors.setdefault(block, set()).add((len(term.factors), *sorted(multipliers)))
    return {
        block: next(iter(variants))
        for block, variants in other_factors.items()
        if spec.blocks[block].rank == 1 and len(variants) == 1
    }


def _to_unpenalized(spec: ModelSpec, block: int, derivatives: list[Derivatives]) -> sparse.csc_array:
    """The direction of a term's mean and unpenalized terms (coefficients, 1); none (coefficients, 0) where they differ.

    The intercept has a part in slopes, where their numeric column is centred.
    """
    unpenalized = [index for index, b in enumerate(spec.blocks) if b.source is None]
    weights: Floats = np.empty(0)
    for by in derivatives:
        level = np.asarray(by.of(block).sum(axis=1)).ravel()
        columns = np.column_stack([np.empty((len(level), 0)), *(by.of(index).toarray() for index in unpenalized)])
        if not len(weights):
            weights = np.asarray(np.linalg.lstsq(columns, level, rcond=SAME)[0], dtype=np.float64)
        if np.linalg.norm(level - columns @ weights) > EQUAL * np.linalg.norm(level):
            return sparse.csc_array((spec.n_coefs, 0))
    direction = np.zeros((spec.n_coefs, 1))
    direction[spec.coefs(block)] = 1.0
    for index, weight in zip(unpenalized, weights, strict=True):
        direction[spec.coefs(index)] = -weight
    return sparse.csc_array(direction)


def _to_coarser(spec: ModelSpec, child: int, parent: int, derivatives: list[Derivatives]) -> sparse.csc_array:
    """Directions that move coefficients of `child` into each coefficient of `parent` (coefficients, size of parent).

    None (coefficients, 0) where the parent's column is no function of the child's, or their other factors differ.
    """
    nothing = sparse.csc_array((spec.n_coefs, 0))
    within, times = None, 0.0
    for by in derivatives:
        by_child, by_parent = by.of(child), by.of(parent)
        if within is None:
            above = _parents_of(by_child, by_parent)
            if above is None:
                return nothing
            seen = np.flatnonzero(above >= 0)
            within = sparse.csr_array((np.ones(len(seen)), (seen, above[seen])), shape=(len(above), by_parent.shape[1]))
            times = float((by_child @ within).multiply(by_parent).sum()) / float(
                by_parent.multiply(by_parent).sum() or 1.0
            )
        given = by_child @ within
        if times == 0.0 or sparse.linalg.norm(given - times * by_parent) > EQUAL * sparse.linalg.norm(given):
            return nothing
    directions = sparse.lil_array((spec.n_coefs, spec.sizes[parent]))
    directions[spec.coefs(child)] = within
    directions[spec.coefs(parent)] = -times * sparse.eye_array(spec.sizes[parent])
    return directions.tocsc()


def _parents_of(by_child: sparse.csr_array, by_parent: sparse.csr_array) -> NDArray[np.intp] | None:
    """For each coefficient its parent in another term, by the rows, -1 for none; None where it is not unique."""
    if max(np.diff(by_child.indptr).max(initial=0), np.diff(by_parent.indptr).max(initial=0)) > 1:
        return None
    both = (np.diff(by_child.indptr) > 0) & (np.diff(by_parent.indptr) > 0)
    lower, upper = (by.indices[by.indptr[:-1][both]] for by in (by_child, by_parent))
    above = np.full(by_child.shape[1], -1, dtype=np.intp)
    above[lower] = upper
    return above if bool((above[lower] == upper).all()) else None
