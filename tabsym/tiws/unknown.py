"""Document regression: a category's target is predicted by the targets of categories with documents like its own.

The mean target of category k is ``mu + u_k + v_k + e_k``: u as alike as documents are (covariance t tau2 f K), v a
category's own (t tau2 (1 - f)), e the mean of its rows' scatter (s2 / n_k). The shares f and t and the kernel K are
those of greatest restricted likelihood; f = 0 is the plain random-effects mean, so that uninformative contexts do
no harm. The estimate of a category without targets is the best linear unbiased predictor of mu + u.

Intervals for unknown categories are conformal over categories, which are taken to be exchangeable: how far each known
category's mean was from its prediction by the others, in units of what was expected, is what an unknown one's is.

Where a model is asked about known categories in place of an unknown one, these are its donors, with weights that sum to
1: the weight of a donor falls with its distance, by a rate chosen by leaving each known category out, and with how
little is known of it (rho_k = n_k / (n_k + s2 / tau2)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import cho_factor, cho_solve

from tabsym.tiws.similarity import Geometry, SimilarityKernel, median_distance, weights_of

Floats = NDArray[np.float64]


MIN_VARIANCE = 1e-8
"""Of categories' means, in units of the target's variance: an uninformative column has no estimate below."""


@dataclass(frozen=True)
class Sums:
    """By category (l,) or category and component of the target (l, q): rows, sums, sums of squares.

    Targets are counted from `origin` (q,), lest squares of large numbers lose what they differ by.
    """

    rows: Floats
    sums: Floats
    squares: Floats
    origin: Floats

    @classmethod
    def count(cls, codes: NDArray[np.integer], y: Floats, weight: Floats | None, size: int, origin: Floats) -> Sums:
        """Of rows with these codes (n,), below 0 for none, and targets (n, q)."""
        known = codes >= 0
        codes, centred = codes[known], y[known] - origin
        each = np.ones(len(codes)) if weight is None else weight[known]
        sums, squares = np.empty((size, y.shape[1])), np.empty((size, y.shape[1]))
        for position, column in enumerate(centred.T):
            sums[:, position] = np.bincount(codes, each * column, minlength=size)
            squares[:, position] = np.bincount(codes, each * column**2, minlength=size)
        return cls(np.bincount(codes, each, minlength=size).astype(np.float64), sums, squares, origin)

    def __add__(self, other: Sums) -> Sums:
        assert np.array_equal(self.origin, other.origin)
        return Sums(self.rows + other.rows, self.sums + other.sums, self.squares + other.squares, self.origin)

    def counted_from(self, origin: Floats) -> Sums:
        """The same sums with another origin."""
        shift = self.origin - origin
        n = self.rows[:, None]
        squares = self.squares + 2 * shift * self.sums + n * shift**2
        return Sums(self.rows, self.sums + n * shift, squares, origin)

    def placed(self, positions: NDArray[np.int64], size: int) -> Sums:
        """The same sums by other codes."""
        rows, sums, squares = np.zeros(size), np.zeros((size, self.sums.shape[1])), np.zeros((size, self.sums.shape[1]))
        rows[positions], sums[positions], squares[positions] = self.rows, self.sums, self.squares
        return Sums(rows, sums, squares, self.origin)

    def of(self, categories: NDArray[np.integer]) -> Sums:
        """Those of some categories."""
        return Sums(self.rows[categories], self.sums[categories], self.squares[categories], self.origin)

    @property
    def means(self) -> Floats:
        """Mean target of each category (l, q); 0 from the origin where there are no rows."""
        return self.sums / np.where(self.rows > 0, self.rows, 1.0)[:, None]

    @property
    def grand_mean(self) -> Floats:
        """Mean target of all rows (q,), from the origin."""
        return np.asarray(self.sums.sum(axis=0) / self.rows.sum())


@dataclass(frozen=True)
class Components:
    """How a target varies: `within` categories (s2) and `between` them (tau2), on average over its components.

    `centre` (q,): the mean of categories' means, each with the weight of how surely it is known; from the sums' origin.
    """

    within: float
    between: float
    centre: Floats

    @property
    def ratio(self) -> float:
        """Rows that the centre counts for (s2 / tau2)."""
        return self.within / self.between


def components_of(sums: Sums) -> Components:
    """Components of variance by moments (ANOVA of categories of unequal size).

    A target of several components (classes) has one of each, their mean: they share the weights of categories.
    """
    seen = sums.rows > 0
    n, means = sums.rows[seen], sums.means[seen]
    total, l = n.sum(), len(n)  # noqa: E741 (the formulas' letter)
    inner = np.maximum(sums.squares[seen] - n[:, None] * means**2, 0.0).sum(axis=0)
    outer = (n[:, None] * (means - sums.grand_mean) ** 2).sum(axis=0)
    scale = float((inner + outer).mean() / total)
    if total - l > 1e-9 * total:
        within = float(inner.mean() / (total - l))
    else:  # no two rows share a category: the variance between categories is not identified
        within = float((inner + outer).mean() / max(total - 1, 1e-9 * total))
    balance = total - (n * (n / total)).sum()  # without squares, which are beyond numbers for weights of 1e300
    between = max(float(outer.mean() - (l - 1) * within), 0.0) / float(balance) if balance > 0 else 0.0
    if not scale > 0:  # one value everywhere: nothing depends on these
        within = between = scale = 1.0
    between = max(between, MIN_VARIANCE * scale)
    of_mean = n * between + within
    precision = (n / n.max()) * (of_mean.min() / of_mean)  # 1 / (between + within / n) times a number
    return Components(within, between, np.asarray((precision[:, None] * means).sum(axis=0) / precision.sum()))


def shrunken(sums: Sums, centre: Floats, rows: float) -> Floats:
    """Estimates (l, q): means of each category's rows and a number of rows at the centre."""
    total = sums.rows + rows
    estimates = (sums.sums + rows * centre) / np.where(total > 0, total, 1.0)[:, None]
    return np.where((total > 0)[:, None], estimates, centre)


SHARES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.995)
"""f: the fraction of the variance between categories that contexts explain."""
SCALES = (0.3, 1.0, 3.0)
"""t: the variance between categories, relative to its estimate by moments."""


@dataclass(frozen=True)
class Covariance:
    """Of categories' mean targets: kernel, share f and scale t; without a kernel f is 0."""

    kernel: SimilarityKernel | None
    share: float
    scale: float


@dataclass(frozen=True)
class Estimates:
    """Estimated targets (m, q) of categories, from the sums' origin, and the variance of what they miss (m,)."""

    values: Floats
    variances: Floats


@dataclass(frozen=True)
class DocumentRegression:
    """Best linear unbiased prediction (kriging) by a kernel of documents, solved for `l` categories that have rows.

    Attributes
    ----------
    sums : Sums
        Of these categories.
    components : Components
    covariance : Covariance
    matrix : (l, l)
        The covariance of their means.
    """

    sums: Sums
    components: Components
    covariance: Covariance
    matrix: Floats

    @classmethod
    def of(cls, sums: Sums, components: Components, covariance: Covariance, geometry: Geometry) -> DocumentRegression:
        """With the equations to solve; `geometry`: of the categories with each other."""
        similarity = 0.0 if covariance.kernel is None else geometry.covariance(covariance.kernel)
        return cls(sums, components, covariance, _matrix(sums, components, covariance, similarity))

    def estimates(self, geometry: Geometry) -> Estimates:
        """Of categories without targets; `geometry`: of them with the regression's categories."""
        one = self.covariance
        size = one.scale * self.components.between
        near, alone = np.zeros(geometry.products.shape), np.ones(len(geometry.squares))
        if one.kernel is not None:
            near = size * one.share * geometry.covariance(one.kernel)
            # a linear kernel would call a small document, near the base, one that is known well
            alone = np.maximum(1.0, geometry.variance(one.kernel)) * one.share + 1 - one.share
        values = np.clip(self.mean + near @ self.weights, self._known.min(axis=0), self._known.max(axis=0))
        inside = np.einsum("ml,lm->m", near, cho_solve(self._factor, near.T))
        outside = (1 - near @ self._ones) ** 2 / self._ones.sum()
        return Estimates(values, np.maximum(size * alone - inside + outside, 0.0))

    def held_out(self, groups: NDArray[np.integer]) -> Estimates:
        """Of each category from those of other groups: `groups` (l,) holds numbers; the mean is estimated anew, too."""
        precision = cho_solve(self._factor, np.eye(len(self.matrix)))
        precision -= np.outer(self._ones, self._ones) / self._ones.sum()
        means = self.sums.means
        weighted = precision @ means
        values, variances = np.empty_like(means), np.empty(len(means))
        scatter = self.components.within / self.sums.rows
        for group in np.unique(groups):
            inside = np.flatnonzero(groups == group)
            rest = self._known[groups != group]
            if not len(rest):  # nothing is known without them
                values[inside] = self.mean
                variances[inside] = self.matrix[inside, inside] - scatter[inside]
                continue
            spread = np.linalg.inv(precision[np.ix_(inside, inside)])
            values[inside] = np.clip(means[inside] - spread @ weighted[inside], rest.min(axis=0), rest.max(axis=0))
            variances[inside] = np.diag(spread) - scatter[inside]
        return Estimates(values, np.maximum(variances, 0.0))

    @cached_property
    def mean(self) -> Floats:
        """The mean of categories' means (q,), by generalised least squares."""
        return np.asarray(self._ones @ self.sums.means / self._ones.sum())

    @cached_property
    def weights(self) -> Floats:
        """What similarity is multiplied by (l, q)."""
        return np.asarray(cho_solve(self._factor, self.sums.means - self.mean))

    @cached_property
    def _known(self) -> Floats:
        """The estimates of the categories (l, q), whose range bounds those of others."""
        return shrunken(self.sums, self.components.centre, self.components.ratio)

    @cached_property
    def _factor(self) -> Any:
        return cho_factor(self.matrix, lower=True)

    @cached_property
    def _ones(self) -> Floats:
        """The precision's row sums (l,)."""
        return np.asarray(cho_solve(self._factor, np.ones(len(self.matrix))))


SAME_COST = 1e-9
"""Logarithms of likelihoods that differ relatively by less are equal."""


def choose_covariance(sums: Sums, components: Components, geometry: Geometry) -> Covariance:
    """The covariance of greatest restricted likelihood; of equal ones the first."""
    best, least = Covariance(None, 0.0, 1.0), np.inf
    for kernel in (None, *geometry.candidates()):
        similarity = 0.0 if kernel is None else geometry.covariance(kernel)
        for share in SHARES[:1] if kernel is None else SHARES[1:]:
            for scale in SCALES:
                one = Covariance(kernel, share, scale)
                cost = _cost(sums, _matrix(sums, components, one, similarity))
                # by more than rounding, which the order of rows and the origin of the target decide
                if least == np.inf or cost < least - SAME_COST * (1.0 + abs(least)):
                    best, least = one, cost
    return best


def _matrix(sums: Sums, components: Components, one: Covariance, similarity: Floats | float) -> Floats:
    """The covariance (l, l) of categories' mean targets."""
    size = one.scale * components.between
    matrix = np.zeros((len(sums.rows),) * 2) + size * one.share * similarity
    matrix[np.diag_indices_from(matrix)] += size * (1 - one.share) + components.within / sums.rows
    return matrix


def _cost(sums: Sums, matrix: Floats) -> float:
    """Minus the logarithm of the restricted likelihood, summed over the target's components."""
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    means = sums.means
    solved = cho_solve(factor, np.column_stack([np.ones(len(means)), means]), check_finite=False)
    ones, weighted = solved[:, 0], solved[:, 1:]
    centre = ones @ means / ones.sum()
    away = means - centre
    fit = float((away * (weighted - ones[:, None] * centre)).sum())
    logs = 2 * float(np.log(np.diag(factor[0])).sum()) + float(np.log(ones.sum()))
    return fit / 2 + means.shape[1] * logs / 2


@dataclass(frozen=True)
class Conformal:
    """Scores (l, q), ascending, of known categories left out; `within`: a row's variance about its category's mean."""

    scores: Floats
    within: float

    @classmethod
    def of(cls, solution: DocumentRegression) -> Conformal:
        """From each category left out in turn."""
        sums, within = solution.sums, solution.components.within
        left_out = solution.held_out(np.arange(len(sums.rows)))
        spread = np.sqrt(left_out.variances + within / sums.rows)[:, None]
        away = np.abs(sums.means - left_out.values)
        scores = np.where(spread > 0, away / np.where(spread > 0, spread, 1.0), 0.0)
        return cls(np.sort(scores, axis=0), within)

    def half_width(self, variances: Floats, rows: Floats, level: float) -> Floats:
        """Of the interval (m, q) for the mean over `rows` (m,) rows of categories with error `variances` (m,)."""
        position = int(np.ceil(level * (len(self.scores) + 1) - 1e-9)) - 1
        score = self.scores[min(position, len(self.scores) - 1)]
        if position >= len(self.scores):  # more than the known categories determine: at least as for normal ones
            score = np.maximum(score, stats.norm.isf((1 - level) / 2))
        with np.errstate(divide="ignore"):
            spread = np.sqrt(variances + np.where(rows > 0, self.within / rows, 0.0))
        return np.asarray(score * spread[:, None])


# -- donors and their weights ----------------------------------------------------------------------


RATES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""g, per median squared distance of seen documents."""
NAME_RATES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The same for names, per unit of 1 - cosine."""
MIN_TO_TUNE = 4
"""Of fewer known categories all donors of one are alike: one left out leaves two at most."""


@dataclass(frozen=True)
class DonorRule:
    """How weights follow from distances: `rate` per `unit`, `name_rate`; `known` (l,) is each donor's rho."""

    rate: float
    name_rate: float
    unit: float
    known: Floats

    @classmethod
    def fit(cls, sums: Sums, components: Components, geometry: Geometry) -> DonorRule:
        """The rates that best predict left-out categories' targets; `geometry`: of categories with each other."""
        rule = cls(0.0, 0.0, median_distance(geometry.distances) or 1.0, _known(sums.rows, components))
        if len(sums.rows) < MIN_TO_TUNE:
            return rule
        estimates = shrunken(sums, components.centre, components.ratio)
        precision = 1 / (components.between + components.within / sums.rows)
        truth, everyone = sums.means - components.centre, np.arange(len(sums.rows))

        def left_out_error(one: DonorRule) -> float:
            """Of categories predicted by the others, as far as that is worth."""
            predicted = one.weights(geometry, everyone) @ estimates - components.centre
            return float((precision[:, None] * (truth - shrinkage(predicted, truth, precision) * predicted) ** 2).sum())

        return min(rule.others(geometry), key=left_out_error)

    def of(self, rows: Floats, components: Components) -> DonorRule:
        """The same rule for donors with these numbers of rows (l,)."""
        return replace(self, known=_known(rows, components))

    def others(self, geometry: Geometry) -> list[DonorRule]:
        """The rules to choose from."""
        names = NAME_RATES if geometry.names is not None else (0.0,)
        return [DonorRule(rate, name, self.unit, self.known) for rate in RATES for name in names]

    def weights(self, geometry: Geometry, left_out: NDArray[np.integer] | None = None) -> Floats:
        """Of donors (l,) for each category (m, l); `left_out` (m,): a donor of each, below 0 for none."""
        logits = -self.rate * geometry.distances / self.unit
        if self.name_rate:
            assert geometry.names is not None
            logits = logits - self.name_rate * (1 - geometry.names)
        with np.errstate(divide="ignore"):
            logits = logits + np.log(self.known)
        if left_out is not None:
            among = np.flatnonzero(left_out >= 0)
            logits[among, left_out[among]] = -np.inf
        top = logits.max(axis=1, keepdims=True)
        return weights_of(np.exp(logits - np.where(np.isfinite(top), top, 0.0)))


def _known(rows: Floats, components: Components) -> Floats:
    """rho: how much of a category's estimate is its own."""
    return rows / (rows + components.ratio)


def shrinkage(predicted: Floats, truth: Floats, precision: Floats) -> float:
    """The share in [0, 1] of what is predicted (l, q) that comes nearest to the truth (l, q), with weights (l,)."""
    square = float((precision[:, None] * predicted**2).sum())
    return float(np.clip((precision[:, None] * predicted * truth).sum() / square, 0.0, 1.0)) if square > 0 else 0.0
