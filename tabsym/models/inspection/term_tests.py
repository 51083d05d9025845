"""Significance tests of terms, each given the others (Wald).

A test asks whether all coefficients of a term are equal (of a slope: 0), given the other terms.

With H the information on the coefficients b of a term, beside the other terms as they were estimated (penalized ones
as random effects), P the precision of their prior and V = inv(H + P) their posterior covariance, b is V times a score,
whose covariance is H where the term has no effect. The statistic b' inv(V) b is there a sum of chi2 of one degree of
freedom, whose weights are the eigenvalues of I - VP and add up to the term's effective degrees of freedom. Over these
it is F with the degrees of freedom of the same mean and variance (Satterthwaite's). Without a penalty it is the Wald
test of a GLM, and for groups of equal size the F test of the analysis of variance, whatever the variance component is
(Wood 2013, "A simple test for random effects in regression models", and 2017, "Generalized Additive Models", 6.12).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.stats import chi2, f

from tabsym.design.sources import Bins
from tabsym.models.identified import at_means_of_numbers, means_of
from tabsym.models.inspection.explain import variances_of_blocks
from tabsym.models.model import WideModel
from tabsym.solvers.newton.certainty import TermCovariance
from tabsym.solvers.newton.information import penalty_of
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]

NO_VARIANCE = 1e-12
"""Relative to the largest variance of a term: directions of less are those that its means take, and rounding."""


@dataclass(frozen=True)
class Wald:
    """A statistic, and the sum and the sum of squares of its weights; NaN where it cannot be had."""

    statistic: float
    edf: float
    squares: float

    @property
    def df(self) -> float:
        """Satterthwaite's degrees of freedom."""
        return self.edf**2 / self.squares if self.squares > 0.0 else np.nan


UNKNOWN = Wald(np.nan, np.nan, np.nan)


def wald_tests_of_terms(model: WideModel, n_rows: int) -> pd.DataFrame:
    """One row for each term with a column: see `WideRegressor.term_table`."""
    certainty, spec = model.certainty, model.spec
    assert certainty is not None
    slopes = {
        term.factors[0].block for term in spec.fitted_terms if term.numeric is not None and len(term.factors) == 1
    }
    kept = [index for index, block in enumerate(spec.blocks) if block.columns or index in slopes]
    found = [wald_of(model, index) for index in kept]
    frame = pd.DataFrame(
        {
            "coefficients": [spec.sizes[index] * model.n_outputs for index in kept],
            "edf": certainty.edf[kept],
            "sd": np.sqrt([model.entry_variance(index) for index in kept]),
            "statistic": [one.statistic / one.edf if one.edf > 0.0 else np.nan for one in found],
            "df": [one.df for one in found],
        },
        index=pd.Index([spec.blocks[index].name for index in kept], name="term", dtype=object),
    )
    left = np.nan if model.loss.for_classes else n_rows - certainty.total_edf
    shares = variances_of_blocks(model) or {}
    total = sum(size for size, _ in shares.values()) or 1.0
    sizes = np.array([shares[name][0] if name in shares else np.nan for name in frame.index])
    frame.insert(3, "share", sizes / total)
    frame["df_residual"] = np.where(frame["df"].isna(), np.nan, left)
    by_chi2 = chi2.sf(frame["statistic"] * frame["df"], frame["df"])
    frame["p"] = by_chi2 if model.loss.for_classes else f.sf(frame["statistic"], frame["df"], left)
    return frame.sort_values("share", ascending=False, kind="stable")


def wald_of(model: WideModel, index: int) -> Wald:
    """The test of one block of a sum of terms."""
    certainty, spec = model.certainty, model.spec
    assert certainty is not None
    covariance = certainty.covariances[index] if certainty.covariances else None
    block, own = spec.blocks[index], spec.coefs(index)
    multiplied = any(
        len(term.factors) > 1 for term in spec.fitted_terms if index in [one.block for one in term.factors]
    )
    if model.n_outputs > 1 or covariance is None or block.fixed or multiplied or block.rank > 1:
        return UNKNOWN
    if block.name in certainty.separated:  # where Wald's statistic falls as the evidence grows (Hauck and Donner 1977)
        return UNKNOWN
    is_sampled = certainty.samples is not None and not certainty.joint.size and not certainty.total_sd.size
    if is_sampled or certainty.variances[index] == 0.0:  # a sampled covariance has no inverse; a dropped term no test
        return UNKNOWN
    moved = {mean.block for mean in means_of(spec)} if spec.sizes[index] > 1 else set()
    shown = model.theta[own]
    if np.isfinite(certainty.variances[index]):  # the prior is of the coefficients where numbers are at their means
        shown, covariance = at_means_of_numbers(model, index)
        if covariance is None:
            return UNKNOWN
    theta, known = shown[:, 0], np.isfinite(covariance.own[:, 0])
    working = certainty.dispersion if np.isnan(certainty.working) else certainty.working
    if not np.isfinite(working / certainty.dispersion):
        return UNKNOWN
    precision = working / (certainty.dispersion * certainty.variances[index])  # of the prior, 0 for no penalty
    if covariance.own[known].any():
        return _of_diagonal(theta[known], covariance, known, precision, index in moved)
    return _of_matrix(theta, covariance, known, _penalty(model, index, precision), index in moved)


def _penalty(model: WideModel, index: int, precision: float) -> Floats:
    """The precision (q, q) of the prior of a block's coefficients."""
    block, size = model.spec.blocks[index], model.spec.sizes[index]
    if block.source is None or precision == 0.0:
        return np.zeros((size, size))
    source = model.spec.sources[block.source]
    apart = int(isinstance(source, Bins) and source.missing)
    prior = Prior.WALK if block.ordered and size - apart > 1 else Prior.RIDGE
    return penalty_of(SolverTerm(index, np.empty(0, np.int32), np.empty(0), size, prior, apart), precision)


def _of_matrix(
    theta: Floats, covariance: TermCovariance, known: NDArray[np.bool_], penalty: Floats, about_mean: bool
) -> Wald:
    """From a covariance that is given by its root; `about_mean`: of differences only."""
    kept = np.flatnonzero(known)
    fixed = [np.ones((1, len(kept)))] if about_mean else []
    if covariance.unknown is not None:
        fixed.append(covariance.unknown[0][kept].T)
    axes = null_space(np.concatenate(fixed)) if fixed else np.eye(len(kept))
    root = axes.T @ covariance.factor[0][kept]
    if not axes.shape[1]:
        return UNKNOWN
    lengths, turned = np.linalg.eigh(root @ root.T)
    told = lengths > NO_VARIANCE * lengths[-1]
    axes = axes @ turned[:, told]
    shrunk = np.eye(int(told.sum())) - lengths[told][:, None] * (axes.T @ penalty[np.ix_(kept, kept)] @ axes)
    statistic = float(np.square(axes.T @ theta[kept]) @ (1.0 / lengths[told]))
    return Wald(statistic, float(np.trace(shrunk)), float(np.sum(shrunk * shrunk.T)))


def _of_diagonal(
    theta: Floats, covariance: TermCovariance, known: NDArray[np.bool_], precision: float, about_mean: bool
) -> Wald:
    """From a diagonal plus a matrix of low rank, of many coefficients that are independent a priori."""
    own, root = covariance.own[known, 0], covariance.factor[0][known]
    inverse = 1.0 / own
    mean = inverse / inverse.sum() if about_mean else np.zeros(len(own))

    def projected(columns: Floats) -> Floats:
        """The inverse of the diagonal times columns (q, r), for differences only."""
        return np.asarray(inverse[:, None] * (columns - mean @ columns))

    weighed = projected(np.column_stack([root, theta]))
    left = weighed.T @ theta
    inner = np.eye(root.shape[1]) + root.T @ weighed[:, :-1]
    statistic = float(left[-1] - left[:-1] @ np.linalg.solve(inner, left[:-1]))
    q, share = len(own), 1.0 / len(own) if about_mean else 0.0
    centred = root - share * root.sum(axis=0)
    trace = (1.0 - share) * own.sum() + np.square(centred).sum()
    squares = (1.0 - 2.0 * share) * np.square(own).sum() + (share * own.sum()) ** 2
    squares += 2.0 * (own @ np.square(centred).sum(axis=1)) + np.square(centred.T @ centred).sum()
    n = q - int(about_mean)
    edf = n - precision * trace
    return Wald(statistic, float(edf), float(n - 2.0 * precision * trace + precision**2 * squares))
