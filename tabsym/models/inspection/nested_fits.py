"""Significance tests of two nested fits without penalties, by their deviances."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2, f

from tabsym.design.model_spec import ModelSpec
from tabsym.design.plan import show
from tabsym.design.sources import Bins, Crossing, Flag
from tabsym.losses.kernels import HUBER, POISSON
from tabsym.models.model import WideModel

SAME = 1e-9
"""Sums over the rows that differ by less, relatively, are of the same rows in another order."""

ROUNDING = 1e-6
"""A smaller gain below 0, relative to the deviance, is that of an optimum that was nearly reached."""


def compare_nested(larger: Any, smaller: Any) -> pd.Series:
    """See `WideRegressor.likelihood_ratio_test`."""
    one, other = larger.model_, smaller.model_
    for estimator in (larger, smaller):
        _check_unpenalized(estimator)
    if one.loss.public_name != other.loss.public_name or one.loss.parameter != other.loss.parameter:
        raise ValueError(
            f"The two fits have different losses ({one.loss.public_name!r}, {other.loss.public_name!r}); fit both with "
            "the same loss."
        )
    rows = [int(estimator._n_rows()) for estimator in (larger, smaller)]
    if rows[0] != rows[1]:
        raise ValueError(f"The two fits are to {rows[0]:,} and {rows[1]:,} rows; fit both to the same rows.")
    _check_same_rows(larger, smaller)
    _check_same_given(larger, smaller)
    scopes = _scopes(one)
    outside = [scope for scope in _scopes(other) if not any(scope.is_within(each) for each in scopes)]
    if outside:
        raise ValueError(
            f"The other fit has the term {str(outside[0])!r}, and no term of this one contains it: the test is of "
            "nested fits, called of the larger one; compare others by aic_ or bic_."
        )
    df = one.certainty.total_edf - other.certainty.total_edf
    gain = other.certainty.deviance - one.certainty.deviance
    if round(df) < 1 or gain < -ROUNDING * max(other.certainty.deviance, 1e-300):
        raise ValueError(
            "The other fit has as many coefficients, or a lower deviance: it is not nested in this one; call the "
            "method of the larger fit."
        )
    gain, df = max(gain, 0.0), round(df)
    if one.loss.for_classes or one.loss.code == POISSON:  # whose dispersion is 1 for a row of weight 1
        gain *= _sums_of(larger).get("sample weights", 1.0)
        gain /= larger._mean_class_weight * larger._class_effect  # a weight of a class is no repeated row
        return pd.Series({"statistic": gain, "df": df, "df_residual": np.nan, "p": chi2.sf(gain, df)}, name="chi2")
    left = rows[0] - round(one.certainty.total_edf)
    statistic = gain / df / one.certainty.dispersion
    return pd.Series({"statistic": statistic, "df": df, "df_residual": left, "p": f.sf(statistic, df, left)}, name="F")


def _sums_of(estimator: Any) -> dict[str, float]:
    """Those of its training rows; none for a fit of a version that did not keep them."""
    return getattr(estimator, "_sums", {})


def _check_same_rows(larger: Any, smaller: Any) -> None:
    one, other = _sums_of(larger), _sums_of(smaller)
    for what in one.keys() & other.keys():
        sizes = [max(abs(sums[what]), _largest_sum(sums, what, larger._n_rows())) for sums in (one, other)]
        if abs(one[what] - other[what]) > SAME * max(sizes):
            name = what.removeprefix("squared ").removesuffix(" times targets")
            raise ValueError(f"The two fits have different {name}; fit both to the same rows, with the same {name}.")


def _largest_sum(sums: dict[str, float], what: str, n_rows: float) -> float:
    """What a weighted sum of values or products may be at most by the sums of squares; its own may be 0."""
    first, _, second = what.partition(" times ")
    others = sums.get(f"squared {second}", 0.0) if second else n_rows * sums["sample weights"]
    return float(np.sqrt(sums.get(f"squared {first}", 0.0) * others))


def _check_same_given(larger: Any, smaller: Any) -> None:
    """A `ValueError` where what is given, not estimated, differs: coefficients of `fixed`, and `monotonic_cst`."""
    for estimator, other in ((larger, smaller), (smaller, larger)):
        for block in (block for block in estimator.model_.spec.blocks if block.fixed):
            in_both = block.name in other.coefs_
            if in_both and estimator is smaller and not _is_fixed(other, block.name):
                continue  # what the larger fit estimates
            if not in_both or not _is_fixed(other, block.name) or not _are_same(larger, smaller, block.name):
                raise ValueError(
                    f"The two fits have different coefficients of {block.name!r} in fixed; fit both with the same."
                )
    one, two = (_directions(estimator.model_.spec) for estimator in (larger, smaller))
    differ = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
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
    one, other = (estimator.coefs_[name].iloc[:, :k] for estimator in (larger, smaller))
    same = one.shape == other.shape and one.columns.equals(other.columns)
    return same and bool(np.allclose(one, other.reindex(one.index), rtol=SAME, atol=0.0))


def _check_unpenalized(estimator: Any) -> None:
    """A `ValueError` where coefficients are penalized, or the loss is no likelihood."""
    model: WideModel = estimator.model_
    certainty = estimator._certainty("likelihood_ratio_test")
    penalized = [
        block.name
        for block, own in zip(model.spec.blocks, certainty.variances, strict=True)
        if np.isfinite(own) and not block.fixed
    ]
    if penalized:
        raise ValueError(
            f"The terms {', '.join(map(repr, penalized[:5]))} are penalized, and the test is of maximum likelihood; "
            "fit both with alpha=0.0, numeric='linear' and count_effect=False, or compare aic_ or bic_."
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
    found = []
    for term in spec.fitted_terms:
        number = None if term.numeric is None else spec.numerics[term.numeric]
        codings = {
            (column, _bounds_of(spec, spec.blocks[factor.block].source, column))
            for factor in term.factors
            for column in factor.columns
        }
        block = term.factors[0].block
        found.append(
            _Scope(
                frozenset(codings),
                "" if number is None else " * ".join(sorted(map(show, number.nodes))),
                frozenset() if number is None else frozenset(number.columns),
                len(term.factors) == 1 and reads[block] == 1 and not spec.blocks[block].fixed,
            )
        )
    return found


def _bounds_of(spec: ModelSpec, index: int | None, column: str) -> frozenset[float] | None:
    """The bounds of the bins of a column in a source: none where it says what is missing; None for categories."""
    source = None if index is None else spec.sources[index]
    if isinstance(source, Bins) and source.column == column:
        return frozenset(source.bounds.tolist())
    if isinstance(source, Flag):
        return frozenset()
    if isinstance(source, Crossing):
        parts = (_bounds_of(spec, part, column) for part in (source.left, source.right))
        return next((bounds for bounds in parts if bounds is not None), None)
    return None
