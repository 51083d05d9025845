"""Fits to other rows of the same table with the loss and the variance components of an earlier fit.

The estimation of variance components is most of the time of a fit, and they are one number per block. Reusing them
leaks slightly, because they depend on the rows that they were estimated from
(`benchmarks/evidence/constants_models.md`), so these fits must not be used for model selection. Interactions are
selected again in each fit; one that the earlier fit did not have is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tabsym.models.config import defaults_of
from tabsym.models.solving import goes_by_turns

Floats = NDArray[np.float64]


def held_precisions(fitted: Any) -> Mapping[str, float] | None:
    """Fixed precision of each block, dispersion over variance, infinite for dropped blocks.

    None where no variance components were estimated, or for products of coefficients, whose optimum is not unique.
    """
    model = fitted.model_
    by_evidence = getattr(fitted, "alpha", None) == "auto" and model.certainty is not None
    by_evidence = by_evidence and goes_by_turns(model.spec)
    if not by_evidence:
        return None
    units, certainty = model.units, model.certainty
    found_with = certainty.dispersion if np.isnan(certainty.working) else certainty.working
    scale = found_with / units.scale**2
    found = {}
    for block, variance, size in zip(model.spec.blocks, certainty.variances, units.sizes, strict=True):
        if np.isfinite(variance):
            found[block.name] = float(scale * size**2 / variance) if variance > 0.0 else np.inf
    return found


def with_loss_of(wide: Any, fitted: Any) -> Any:
    """Set the loss that the other fit selected, so that all folds have the same scale."""
    if getattr(wide, "loss", None) != "auto":
        return wide
    options = {"scoring": defaults_of(type(wide))["scoring"]}  # `scoring` is for "auto" only
    return clone(wide).set_params(loss=fitted.loss_, **options)


def fit_alike(wide: Any, held: Mapping[str, float] | None, X: Any, y: NDArray[Any], weight: Floats | None) -> Any:
    """Fit a clone of a wide model; its precisions are fixed at `held` where given."""
    model = clone(wide)
    if held is not None:
        model._held = held
    return model.fit(X, y, sample_weight=weight)
