"""Significance tests: of terms, each given the others (Wald), and of two nested fits without penalties.

Wald's test asks whether all coefficients of a term are equal (of a slope: 0), given the other terms.

With H the information on the coefficients b of a term, given the other terms as they were estimated (penalized ones
as random effects), P the precision of their prior and V = inv(H + P) their posterior covariance, b is V times a score,
whose covariance is H where the term has no effect. The statistic b' inv(V) b is there a sum of chi2 of one degree of
freedom, whose weights are the eigenvalues of I - VP and add up to the term's effective degrees of freedom. Over these
it is F with the degrees of freedom of the same mean and variance (Satterthwaite's). Without a penalty it is the Wald
test of a GLM, and for groups of equal size the F test of the analysis of variance, whatever the variance component is
(Wood 2013, "A simple test for random effects in regression models", and 2017, "Generalized Additive Models", 6.12).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.stats import chi2, f

from tabsym.design.formula import show
from tabsym.design.model_spec import ModelSpec
from tabsym.design.sources import Bins, Crossing, Flag
from tabsym.losses.loss import HUBER, POISSON, Loss
from tabsym.models.identified import at_means_of_numbers
from tabsym.models.inspection.explain import variances_of_blocks
from tabsym.models.model import WideModel
from tabsym.models.solving import prior_of
from tabsym.solvers.newton.information import penalty_of
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.solvers.newton.uncertainty import TermCovariance

Floats = NDArray[np.float64]

NO_VARIANCE = 1e-12
"""Relative to the largest variance of a term: smaller eigenvalues are of constrained directions, or are rounding."""


@dataclass(frozen=True)
class Wald:
    """A statistic, and the sum and the sum of squares of its weights; NaN where it cannot be computed."""

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
    uncertainty, spec = model.uncertainty, model.spec
    assert uncertainty is not None
    slopes = {
        term.factors[0].block for term in spec.fitted_terms if term.numeric is not None and len(term.factors) == 1
    }
    tested = [index for index, block in enumerate(spec.blocks) if block.columns or index in slopes]
    tests = [wald_of(model, index) for index in tested]
    frame = pd.DataFrame(
        {
            "coefficients": [spec.sizes[index] * model.n_outputs for index in tested],
            "edf": uncertainty.edf[tested],
            "sd": np.sqrt([model.entry_variance(index) for index in tested]),
            "statistic": [test.statistic / test.edf if test.edf > 0.0 else np.nan for test in tests],
            "df": [test.df for test in tests],
        },
        index=pd.Index([spec.blocks[index].name for index in tested], name="term", dtype=object),
    )
    left = np.nan if model.loss.for_classes else n_rows - uncertainty.total_edf
    variances = variances_of_blocks(model) or {}
    total = sum(variance for variance, _ in variances.values()) or 1.0
    of_terms = np.array([variances[name][0] if name in variances else np.nan for name in frame.index])
    frame.insert(3, "share", of_terms / total)
    frame["df_residual"] = np.where(frame["df"].isna(), np.nan, left)
    by_chi2 = chi2.sf(frame["statistic"] * frame["df"], frame["df"])
    frame["p"] = by_chi2 if model.loss.for_classes else f.sf(frame["statistic"], frame["df"], left)
    return frame.sort_values("share", ascending=False, kind="stable")


def wald_of(model: WideModel, index: int) -> Wald:
    """The test of one block of a sum of terms."""
    uncertainty, spec = model.uncertainty, model.spec
    assert uncertainty is not None
    covariance = uncertainty.covariances[index] if uncertainty.covariances else None
    block, coefs = spec.blocks[index], spec.coefs(index)
    multiplied = any(
        len(term.factors) > 1 for term in spec.fitted_terms if index in [factor.block for factor in term.factors]
    )
    if model.n_outputs > 1 or covariance is None or block.fixed or multiplied or block.rank > 1:
        return UNKNOWN
    if block.name in uncertainty.separated:  # Wald's statistic falls as evidence grows (Hauck and Donner 1977)
        return UNKNOWN
    is_sampled = uncertainty.samples is not None and not uncertainty.joint.size and not uncertainty.total_sd.size
    if is_sampled or uncertainty.variances[index] == 0.0:  # a sampled covariance has no inverse; a dropped term no test
        return UNKNOWN
    moved = {mean.block for mean in spec.means} if spec.sizes[index] > 1 else set()
    estimates = model.theta[coefs]
    if np.isfinite(uncertainty.variances[index]):  # the prior is of the coefficients where numbers are at their means
        estimates, covariance = at_means_of_numbers(model, index)
        if covariance is None:
            return UNKNOWN
    theta, known = estimates[:, 0], np.isfinite(covariance.diagonal[:, 0])
    working = uncertainty.dispersion if np.isnan(uncertainty.working) else uncertainty.working
    if not np.isfinite(working / uncertainty.dispersion):
        return UNKNOWN
    precision = working / (uncertainty.dispersion * uncertainty.variances[index])  # of the prior, 0 for no penalty
    if covariance.diagonal[known].any():
        return _of_diagonal(theta[known], covariance, known, precision, index in moved)
    return _of_matrix(theta, covariance, known, _penalty(model, index, precision), index in moved)


def _penalty(model: WideModel, index: int, precision: float) -> Floats:
    """The precision (q, q) of the prior of a block's coefficients."""
    size = model.spec.sizes[index]
    prior, n_unordered = prior_of(model.spec, index)
    if prior is Prior.FLAT or precision == 0.0:
        return np.zeros((size, size))
    return penalty_of(SolverTerm(index, np.empty(0, np.int32), np.empty(0), size, prior, n_unordered), precision)


def _of_matrix(
    theta: Floats, covariance: TermCovariance, known: NDArray[np.bool_], penalty: Floats, about_mean: bool
) -> Wald:
    """From a covariance that is given by its root; `about_mean`: of differences only."""
    known_coefs = np.flatnonzero(known)
    fixed = [np.ones((1, len(known_coefs)))] if about_mean else []
    if covariance.unknown is not None:
        fixed.append(covariance.unknown[0][known_coefs].T)
    axes = null_space(np.concatenate(fixed)) if fixed else np.eye(len(known_coefs))
    root = axes.T @ covariance.factor[0][known_coefs]
    if not axes.shape[1]:
        return UNKNOWN
    eigenvalues, eigenvectors = np.linalg.eigh(root @ root.T)
    has_variance = eigenvalues > NO_VARIANCE * eigenvalues[-1]
    axes = axes @ eigenvectors[:, has_variance]
    shrunk = np.eye(int(has_variance.sum())) - eigenvalues[has_variance][:, None] * (
        axes.T @ penalty[np.ix_(known_coefs, known_coefs)] @ axes
    )
    statistic = float(np.square(axes.T @ theta[known_coefs]) @ (1.0 / eigenvalues[has_variance]))
    return Wald(statistic, float(np.trace(shrunk)), float(np.sum(shrunk * shrunk.T)))


def _of_diagonal(
    theta: Floats, covariance: TermCovariance, known: NDArray[np.bool_], precision: float, about_mean: bool
) -> Wald:
    """From a diagonal plus a matrix of low rank, of many coefficients that are independent a priori."""
    diagonal, root = covariance.diagonal[known, 0], covariance.factor[0][known]
    inverse = 1.0 / diagonal
    mean = inverse / inverse.sum() if about_mean else np.zeros(len(diagonal))

    def projected(columns: Floats) -> Floats:
        """The inverse of the diagonal times columns (q, r), for differences only."""
        return np.asarray(inverse[:, None] * (columns - mean @ columns))

    projections = projected(np.column_stack([root, theta]))
    left = projections.T @ theta
    inner = np.eye(root.shape[1]) + root.T @ projections[:, :-1]
    statistic = float(left[-1] - left[:-1] @ np.linalg.solve(inner, left[:-1]))
    q, mean_weight = len(diagonal), 1.0 / len(diagonal) if about_mean else 0.0
    centred = root - mean_weight * root.sum(axis=0)
    trace = (1.0 - mean_weight) * diagonal.sum() + np.square(centred).sum()
    squares = (1.0 - 2.0 * mean_weight) * np.square(diagonal).sum() + (mean_weight * diagonal.sum()) ** 2
    squares += 2.0 * (diagonal @ np.square(centred).sum(axis=1)) + np.square(centred.T @ centred).sum()
    n = q - int(about_mean)
    edf = n - precision * trace
    return Wald(statistic, float(edf), float(n - 2.0 * precision * trace + precision**2 * squares))


SAME = 1e-9
"""Sums over the rows that differ by less, relatively, are of the same rows in another order."""

ROUNDING = 1e-6
"""A smaller gain below 0, relative to the deviance, is that of an optimum that was nearly reached."""


def compare_nested(larger: Any, smaller: Any) -> pd.Series:
    """See `WideRegressor.likelihood_ratio_test`."""
    full, reduced = larger.model_, smaller.model_
    for estimator in (larger, smaller):
        _check_unpenalized(estimator, _options_without_penalty(larger, smaller))
    if full.loss.public_name != reduced.loss.public_name or full.loss.parameter != reduced.loss.parameter:
        raise ValueError(
            f"The two fits have different losses ({_name_of(full.loss)}, {_name_of(reduced.loss)}); fit both with the "
            "same loss."
        )
    rows = [int(estimator._n_rows()) for estimator in (larger, smaller)]
    if rows[0] != rows[1]:
        raise ValueError(f"The two fits are to {rows[0]:,} and {rows[1]:,} rows; fit both to the same rows.")
    _check_same_rows(larger, smaller)
    _check_same_given(larger, smaller)
    scopes = _scopes(full)
    outside = [scope for scope in _scopes(reduced) if not any(scope.is_within(each) for each in scopes)]
    if outside:
        raise ValueError(
            f"The other fit has the term {str(outside[0])!r}, and no term of this one contains it: the test is of "
            "nested fits, called of the larger one; compare others by aic_ or bic_."
        )
    df = full.uncertainty.total_edf - reduced.uncertainty.total_edf
    gain = reduced.uncertainty.deviance - full.uncertainty.deviance
    if round(df) < 1 or gain < -ROUNDING * max(reduced.uncertainty.deviance, 1e-300):
        raise ValueError(
            "The other fit has as many coefficients, or a lower deviance: it is not nested in this one; call the "
            "method of the larger fit."
        )
    gain, df = max(gain, 0.0), round(df)
    if full.loss.for_classes or full.loss.code == POISSON:  # whose dispersion is 1 for a row of weight 1
        gain *= _sums_of(larger).get("sample weights", 1.0)
        gain /= larger._mean_class_weight * larger._class_effect  # a weight of a class is no repeated row
        return pd.Series({"statistic": gain, "df": df, "df_residual": np.nan, "p": chi2.sf(gain, df)}, name="chi2")
    left = rows[0] - round(full.uncertainty.total_edf)
    statistic = gain / df / full.uncertainty.dispersion
    return pd.Series({"statistic": statistic, "df": df, "df_residual": left, "p": f.sf(statistic, df, left)}, name="F")


def _sums_of(estimator: Any) -> dict[str, float]:
    """Those of its training rows; none for a fit of a version that did not keep them."""
    return getattr(estimator, "_sums", {})


def _name_of(loss: Loss) -> str:
    """As in messages: with the parameter that distinguishes it from others of its name."""
    return repr(loss.public_name) + (f" of {loss.argument} {loss.parameter:g}" if loss.argument else "")


_COMPARED = {
    "sample weights": "sample weights",
    "squared sample weights": "sample weights",
    "targets of rows": "targets",
    "targets": "pairs of target and sample weight",
    "squared targets": "targets",
    "offsets": "offsets",
    "squared offsets": "offsets",
    "offsets times targets": "offsets",
}
"""Sums over the training rows, and what differs where they do and those before do not: weights change most of them."""


def _check_same_rows(larger: Any, smaller: Any) -> None:
    full, reduced = _sums_of(larger), _sums_of(smaller)
    for what, name in _COMPARED.items():
        if what not in full or what not in reduced:
            continue
        sizes = [max(abs(sums[what]), _largest_sum(sums, what, larger._n_rows())) for sums in (full, reduced)]
        if abs(full[what] - reduced[what]) > SAME * max(sizes):
            by_class = getattr(larger, "class_weight", None) != getattr(smaller, "class_weight", None)
            given = "class weights" if by_class else name
            raise ValueError(f"The two fits have different {given}; fit both to the same rows, with the same {given}.")


def _largest_sum(sums: dict[str, float], what: str, n_rows: float) -> float:
    """The maximum of a weighted sum of values or products by the sums of squares (Cauchy-Schwarz)."""
    first, _, second = what.removesuffix(" of rows").partition(" times ")
    squares = sums.get(f"squared {second}", 0.0) if second else n_rows * sums["sample weights"]
    return float(np.sqrt(sums.get(f"squared {first}", 0.0) * squares))


def _check_same_given(larger: Any, smaller: Any) -> None:
    """A `ValueError` where what is given, not estimated, differs: coefficients of `fixed`, and `monotonic_cst`."""
    for estimator, other_fit in ((larger, smaller), (smaller, larger)):
        for block in (block for block in estimator.model_.spec.blocks if block.fixed):
            in_both = block.name in other_fit.coefs_
            if in_both and estimator is smaller and not _is_fixed(other_fit, block.name):
                continue  # what the larger fit estimates
            if not in_both or not _is_fixed(other_fit, block.name) or not _are_same(larger, smaller, block.name):
                raise ValueError(
                    f"The two fits have different coefficients of {block.name!r} in fixed; fit both with the same."
                )
    full, reduced = (_directions(estimator.model_.spec) for estimator in (larger, smaller))
    differ = sorted(name for name in full.keys() | reduced.keys() if full.get(name) != reduced.get(name))
    if differ:
        raise ValueError(
            f"The two fits have different directions of {differ[0]!r} in monotonic_cst, which are no coefficients: the "
            "test is of fits with the same, and of terms without."
        )


def _directions(spec: ModelSpec) -> dict[str, int]:
    return {block.name: block.monotone for block in spec.blocks if block.monotone}


def _is_fixed(estimator: Any, name: str) -> bool:
    return any(block.fixed for block in estimator.model_.spec.blocks if block.name == name)


def _are_same(larger: Any, smaller: Any, name: str) -> bool:
    k = larger.model_.n_outputs
    full, reduced = (estimator.coefs_[name].iloc[:, :k] for estimator in (larger, smaller))
    same = full.shape == reduced.shape and full.columns.equals(reduced.columns)
    return same and bool(np.allclose(full, reduced.reindex(full.index), rtol=SAME, atol=0.0))


def _options_without_penalty(larger: Any, smaller: Any) -> str:
    """The options of fits by maximum likelihood; a formula says itself whether numbers have bins."""
    has_formula = [getattr(estimator, "formula", None) is not None for estimator in (larger, smaller)]
    if all(has_formula):
        return "alpha=0.0"
    if any(has_formula):
        return "alpha=0.0, the one without a formula also with numeric='linear',"
    return "alpha=0.0 and numeric='linear'"


def _check_unpenalized(estimator: Any, options: str) -> None:
    """A `ValueError` where coefficients are penalized, or the loss is no likelihood; `options`: of fits that are not.

    Without `alpha` there are no count effects (`Config.has_count_effects`), which need no option.
    """
    model: WideModel = estimator.model_
    uncertainty = estimator._uncertainty("likelihood_ratio_test")
    penalized = [
        block.name
        for block, variance in zip(model.spec.blocks, uncertainty.variances, strict=True)
        if np.isfinite(variance) and not block.fixed
    ]
    if penalized:
        raise ValueError(
            f"The terms {', '.join(map(repr, penalized[:5]))} are penalized, and the test is of maximum likelihood; "
            f"fit both with {options}, or compare aic_ or bic_."
        )
    if model.loss.code == HUBER:
        raise ValueError("loss='huber' is no likelihood; use another loss, or compare scores on held-out rows.")


@dataclass(frozen=True)
class _Scope:
    """What a term can be a function of, whatever it is called.

    Attributes
    ----------
    codings : set of (str, set of float or None)
        The columns in brackets, and the bounds of their bins; None for categories.
    number : str
        The number that it is a slope of; "" for none.
    read : frozenset of str
        The columns of that number.
    is_free : bool
        Whether it is any function of its codings: no product, no coefficients that other terms share or that are given.
    """

    codings: frozenset[tuple[str, frozenset[float] | None]]
    number: str
    read: frozenset[str]
    is_free: bool

    def is_within(self, other: _Scope) -> bool:
        """Whether the other term can be what this one is."""
        if self == other or not other.is_free:
            return self == other
        wider = dict(other.codings)
        categories = {column for column, bounds in other.codings if bounds is None}
        if self.number != other.number and (other.number or not self.read <= categories):
            return False
        return all(
            column in categories or (bounds is not None and bounds <= (wider.get(column) or set()))
            for column, bounds in self.codings
        )

    def __str__(self) -> str:
        columns = ", ".join(sorted(column for column, _ in self.codings))
        return " * ".join(filter(None, [f"[{columns or 1}]", self.number]))


def _scopes(model: WideModel) -> list[_Scope]:
    spec = model.spec
    reads = Counter(factor.block for term in spec.fitted_terms for factor in term.factors)
    scopes = []
    for term in spec.fitted_terms:
        number = None if term.numeric is None else spec.numerics[term.numeric]
        codings = {
            (column, _bounds_of(spec, spec.blocks[factor.block].source, column))
            for factor in term.factors
            for column in factor.columns
        }
        block = term.factors[0].block
        scopes.append(
            _Scope(
                frozenset(codings),
                "" if number is None else " * ".join(sorted(map(show, number.nodes))),
                frozenset() if number is None else frozenset(number.columns),
                len(term.factors) == 1 and reads[block] == 1 and not spec.blocks[block].fixed,
            )
        )
    return scopes


def _bounds_of(spec: ModelSpec, index: int | None, column: str) -> frozenset[float] | None:
    """The bounds of the bins of a column in a source: no bounds for a missing indicator; None for categories."""
    source = None if index is None else spec.sources[index]
    if isinstance(source, Bins) and source.column == column:
        return frozenset(source.bounds.tolist())
    if isinstance(source, Flag):
        return frozenset()
    if isinstance(source, Crossing):
        parts = (_bounds_of(spec, part, column) for part in (source.left, source.right))
        return next((bounds for bounds in parts if bounds is not None), None)
    return None
