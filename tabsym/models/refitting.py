"""Fits to other rows of the same table that take their loss and their shrinkage from a fit that was made.

Variances by evidence are most of what a fit costs (85 % on amazon and covtype_small; the choice of crosses 5 %), and
they are one number a block. They know a little of the rows that they were found on, all the same: a model of four
fifths of amazon that holds those of all rows loses .5 % less on the last fifth than one that holds none, and .6 % more
on new rows. So no judgement may depend on it. Crosses are chosen again in each fit; one that the other fit had not
says nothing.
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
    """Of each block the dispersion over its variance, infinite where it says nothing: how many rows it is held by.

    None where no variances were estimated, or where numbers multiply, and the optimum is not one.
    """
    model = fitted.model_
    by_evidence = getattr(fitted, "alpha", None) == "auto" and model.certainty is not None
    by_evidence = by_evidence and goes_by_turns(model.layout)
    if not by_evidence:
        return None
    units, certainty = model.units, model.certainty
    found_with = certainty.dispersion if np.isnan(certainty.working) else certainty.working
    scale = found_with / units.scale**2
    found = {}
    for block, variance, size in zip(model.layout.blocks, certainty.variances, units.sizes, strict=True):
        if np.isfinite(variance):
            found[block.name] = float(scale * size**2 / variance) if variance > 0.0 else np.inf
    return found


def with_loss_of(wide: Any, fitted: Any) -> Any:
    """With the loss that the other fit chose: folds of several losses would be on several scales."""
    if getattr(wide, "loss", None) != "auto":
        return wide
    options = {"scoring": defaults_of(type(wide))["scoring"]}  # which is for "auto" alone
    return clone(wide).set_params(loss=fitted.loss_, **options)


def fit_alike(wide: Any, held: Mapping[str, float] | None, X: Any, y: NDArray[Any], weight: Floats | None) -> Any:
    """A clone of a wide model, fitted; its variances held where there are any to hold."""
    model = clone(wide)
    if held is not None:
        model._held = held
    return model.fit(X, y, sample_weight=weight)
