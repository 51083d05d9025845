"""Test of two nested fits without penalties: is the larger one significantly better?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2, f

from tabsym.design.plan import show
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
    missing = _columns(other) - _columns(one)
    if missing:
        raise ValueError(
            f"The other fit has {', '.join(map(repr, sorted(missing)))} in its terms and this one has not: neither is "
            "nested in the other; compare them by aic_ or bic_."
        )
    df = float(one.certainty.edf.sum() - other.certainty.edf.sum())
    gain = other.certainty.deviance - one.certainty.deviance
    if round(df) < 1 or gain < -ROUNDING * max(other.certainty.deviance, 1e-300):
        raise ValueError(
            "The other fit has as many coefficients, or a lower deviance: it is not nested in this one; call the "
            "method of the larger fit."
        )
    gain, df = max(gain, 0.0), round(df)
    if one.loss.for_classes or one.loss.code == POISSON:  # whose dispersion is 1 for a row of weight 1
        gain *= _sums_of(larger).get("sample weights", 1.0)
    if one.loss.for_classes or one.loss.code == POISSON:
        return pd.Series({"statistic": gain, "df": df, "df_residual": np.nan, "p": chi2.sf(gain, df)}, name="chi2")
    left = rows[0] - round(float(one.certainty.edf.sum()))
    statistic = gain / df / one.certainty.dispersion
    return pd.Series({"statistic": statistic, "df": df, "df_residual": left, "p": f.sf(statistic, df, left)}, name="F")


def _sums_of(estimator: Any) -> dict[str, float]:
    """Those of its training rows; none for a fit of a version that did not keep them."""
    return getattr(estimator, "_sums", {})


def _check_same_rows(larger: Any, smaller: Any) -> None:
    one, other = _sums_of(larger), _sums_of(smaller)
    for what in one.keys() & other.keys():
        if abs(one[what] - other[what]) > SAME * max(abs(one[what]), abs(other[what])):
            name = what.removeprefix("squared ")
            raise ValueError(f"The two fits have different {name}; fit both to the same rows, with the same {name}.")


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


def _columns(model: WideModel) -> set[str]:
    """What the terms are of, whatever they are called: columns in brackets, and numeric factors."""
    spec, found = model.spec, set()
    for term in spec.learned:
        numeric = "" if term.numeric is None else " * ".join(sorted(map(show, spec.numerics[term.numeric].nodes)))
        brackets = sorted(":".join(factor.columns) for factor in term.factors if factor.columns)
        found.add(" * ".join(filter(None, [*brackets, numeric])) or "1")
    return found
