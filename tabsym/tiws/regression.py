"""Document regression: a category's target is foretold by the targets of categories with documents like its own.

The mean target of category k is ``mu + u_k + v_k + e_k``: u as alike as documents are (covariance t tau2 f K), v a
category's own (t tau2 (1 - f)), e the mean of its rows' scatter (s2 / n_k). The shares f and t and the kernel K are
those of greatest restricted likelihood; f = 0 is the plain random-effects mean, so that documents that tell nothing do
no harm. The estimate of a category without targets is the best linear unbiased predictor of mu + u.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from tabsym.tiws.likeness import Geometry, Likeness
from tabsym.tiws.sums import Components, Sums, drawn

Floats = NDArray[np.float64]

SHARES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.995)
"""f: of the variance between categories, what documents can tell."""
SCALES = (0.3, 1.0, 3.0)
"""t: the variance between categories, in units of what moments say it is."""


@dataclass(frozen=True)
class Covariance:
    """Of categories' mean targets: kernel, share f and scale t; without a kernel f is 0."""

    kernel: Likeness | None
    share: float
    scale: float


@dataclass(frozen=True)
class Estimates:
    """Estimated targets (m, q) of categories, from the sums' origin, and the variance of what they miss (m,)."""

    values: Floats
    variances: Floats


@dataclass(frozen=True)
class DocumentRegression:
    """Fitted to `l` categories that have rows.

    Attributes
    ----------
    sums : Sums
        Of these categories.
    components : Components
    covariance : Covariance
    """

    sums: Sums
    components: Components
    covariance: Covariance

    @classmethod
    def fit(cls, sums: Sums, components: Components, geometry: Geometry) -> DocumentRegression:
        """Choose the covariance; `geometry`: of the categories with each other."""
        return cls(sums, components, _chosen(sums, components, geometry))

    def solved(self, geometry: Geometry) -> Solution:
        """The equations solved; `geometry`: of the categories with each other."""
        return Solution(self, _matrix(self.sums, self.components, self.covariance, geometry))

    def with_sums(self, sums: Sums) -> DocumentRegression:
        """The same covariance with targets of other rows of the same categories."""
        return replace(self, sums=sums)

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """Least and greatest estimate of a known category (q,)."""
        known = drawn(self.sums, self.components.centre, self.components.ratio)
        return known.min(axis=0), known.max(axis=0)


@dataclass(frozen=True)
class Solution:
    """What follows from a regression and the covariance (l, l) of its categories' means."""

    regression: DocumentRegression
    matrix: Floats

    def estimates(self, geometry: Geometry) -> Estimates:
        """Of categories without targets; `geometry`: of them with the regression's categories."""
        one, components = self.regression.covariance, self.regression.components
        size = one.scale * components.between
        near, own = np.zeros(geometry.products.shape), np.ones(len(geometry.squares))
        if one.kernel is not None:
            near = size * one.share * geometry.covariance(one.kernel)
            # a linear kernel would call a small document, near the base, one that is known well
            own = np.maximum(1.0, geometry.variance(one.kernel)) * one.share + 1 - one.share
        values = np.clip(self.mean + near @ self.weights, *self.regression.limits)
        inside = np.einsum("ml,lm->m", near, cho_solve(self._factor, near.T))
        outside = (1 - near @ self._ones) ** 2 / self._ones.sum()
        return Estimates(values, np.maximum(size * own - inside + outside, 0.0))

    def held_out(self, groups: NDArray[np.integer]) -> Estimates:
        """Of each category from those of other groups: `groups` (l,) holds numbers; the mean is estimated anew, too."""
        precision = cho_solve(self._factor, np.eye(len(self.matrix)))
        precision -= np.outer(self._ones, self._ones) / self._ones.sum()
        pulled, means = precision @ self._means, self._means
        values, variances = np.empty_like(means), np.empty(len(means))
        scatter = self.regression.components.within / self.regression.sums.rows
        known = drawn(self.regression.sums, self.regression.components.centre, self.regression.components.ratio)
        for group in np.unique(groups):
            inside = np.flatnonzero(groups == group)
            rest = known[groups != group]
            if not len(rest):  # nothing is known without them
                values[inside] = self.mean
                variances[inside] = self.matrix[inside, inside] - scatter[inside]
                continue
            spread = np.linalg.inv(precision[np.ix_(inside, inside)])
            values[inside] = np.clip(means[inside] - spread @ pulled[inside], rest.min(axis=0), rest.max(axis=0))
            variances[inside] = np.diag(spread) - scatter[inside]
        return Estimates(values, np.maximum(variances, 0.0))

    @cached_property
    def mean(self) -> Floats:
        """The mean of categories' means (q,), by generalised least squares."""
        return np.asarray(self._ones @ self._means / self._ones.sum())

    @cached_property
    def weights(self) -> Floats:
        """What likeness is multiplied by (l, q)."""
        return np.asarray(cho_solve(self._factor, self._means - self.mean))

    @property
    def _means(self) -> Floats:
        return self.regression.sums.means

    @cached_property
    def _factor(self) -> Any:
        return cho_factor(self.matrix, lower=True)

    @cached_property
    def _ones(self) -> Floats:
        """The precision's row sums (l,)."""
        return np.asarray(cho_solve(self._factor, np.ones(len(self.matrix))))


def _chosen(sums: Sums, components: Components, geometry: Geometry) -> Covariance:
    """The covariance of greatest restricted likelihood; of equal ones the first."""
    best, least = Covariance(None, 0.0, 1.0), np.inf
    plain = [Covariance(None, 0.0, scale) for scale in SCALES]
    kernels = list(geometry.candidates())
    for one in plain:
        cost = _cost(sums, components, _matrix(sums, components, one, geometry))
        if cost < least:
            best, least = one, cost
    for kernel in kernels:
        likeness = geometry.covariance(kernel)
        for share in SHARES[1:]:
            for scale in SCALES:
                one = Covariance(kernel, share, scale)
                cost = _cost(sums, components, _mixed(sums, components, one, likeness))
                if cost < least:
                    best, least = one, cost
    return best


def _matrix(sums: Sums, components: Components, one: Covariance, geometry: Geometry) -> Floats:
    likeness = 0.0 if one.kernel is None else geometry.covariance(one.kernel)
    return _mixed(sums, components, one, likeness)


def _mixed(sums: Sums, components: Components, one: Covariance, likeness: Floats | float) -> Floats:
    """The covariance (l, l) of categories' mean targets."""
    size = one.scale * components.between
    matrix = np.zeros((len(sums.rows),) * 2) + size * one.share * likeness
    matrix[np.diag_indices_from(matrix)] += size * (1 - one.share) + components.within / sums.rows
    return matrix


def _cost(sums: Sums, components: Components, matrix: Floats) -> float:
    """Minus the logarithm of the restricted likelihood, summed over the target's components."""
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    means = sums.means
    solved = cho_solve(factor, np.column_stack([np.ones(len(means)), means]), check_finite=False)
    ones, pulled = solved[:, 0], solved[:, 1:]
    centre = ones @ means / ones.sum()
    away = means - centre
    fit = float((away * (pulled - ones[:, None] * centre)).sum())
    logs = 2 * float(np.log(np.diag(factor[0])).sum()) + float(np.log(ones.sum()))
    return fit / 2 + means.shape[1] * logs / 2
