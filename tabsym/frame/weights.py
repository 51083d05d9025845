"""Weights of rows, and `class_weight`: checked, made relative, and what they count for.

In classification, where the variance of a row is known, weights such as ``class_weight="balanced"`` say how much a row
matters, not that it was seen several times: a rare class whose rows weigh ten times as much has no more rows. Taken for
repeated rows, they let each of them have a bin of its own (benchmarks/weights.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.frame.storage import as_given
from tabsym.validation import Number, check_option
from tabsym.warn import warn_user

Floats = NDArray[np.float64]
Copies = NDArray[np.int64] | None
"""How many rows each row stands for (n,), by which its weight is multiplied; None for one each."""

DIGITS = 40
"""Of weights beside each other, in bits."""

MOST_COPIES = 2.0**53
"""Larger whole numbers are no floats."""


def check_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> Floats | None:
    """Check sample weights: (n_rows,) finite, >= 0, not all 0, their sum finite; None stays None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, str):
        raise TypeError(f"{name}={sample_weight!r} is text; pass the numbers, such as X[{sample_weight!r}].")
    weights = _as_numbers(sample_weight, f"{name} must hold numbers, one for each row")
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar; pass one weight for each row.")
    if weights.shape[0] != n_rows:
        raise ValueError(f"{name}.shape == ({weights.shape[0]},), expected ({n_rows},): pass one weight for each row.")
    if not np.isfinite(weights).all():
        raise ValueError(f"{name} contains NaN or infinity; every weight must be a finite number.")
    if (weights < 0).any():
        raise ValueError(f"{name} contains a negative value; weights must be 0 or more.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError(f"{name} is up to {weights.max():g}, too large to be added up; divide it by a number.")
    if not weights.any():
        raise ValueError(f"{name} is zero for every row; at least one row must count.")
    return weights


def _as_numbers(values: Any, needed: str) -> Floats:
    """Values as float64; an error, `needed` and why, where they are none, also for durations, moments and complex."""
    array = np.asarray(as_given(values))
    if array.dtype.kind in "mMc":
        raise TypeError(f"{needed} (its type is {array.dtype}).")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{needed} ({error}).") from error


def check_frequencies(freq_weights: Any, n_rows: int) -> NDArray[np.int64] | None:
    """Check how many rows each row stands for: (n_rows,) whole numbers >= 0, not all 0; None stays None."""
    if freq_weights is None:
        return None
    given = _as_numbers(freq_weights, "freq_weights must hold whole numbers, one for each row")
    if given.shape != (n_rows,):
        raise ValueError(f"freq_weights has shape {given.shape} and the table {n_rows} rows; pass one number for each.")
    wrong = ~((given >= 0.0) & (given == np.floor(given)) & (given < MOST_COPIES))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"freq_weights is {given[row]:g} in row {row}, and it says how many rows that one stands for: give whole "
            "numbers from 0 on; weights of another kind are sample_weight."
        )
    if not given.any():
        raise ValueError("freq_weights is zero for every row; at least one row must be there.")
    return given.astype(np.int64)


def relative_weights(weights: Floats | None, copies: Copies = None) -> Floats | None:
    """Weights (n,) over the mean of those above 0, of `copies` (n,) each, to twelve digits; None stays None.

    Sums of them are numbers of rows, whatever the unit of the weights; twelve digits are the same in each unit.
    """
    if weights is None:
        return None
    largest = weights.max()  # so that no sum of tiny or huge ones is rounded to 0 or beyond numbers
    fractions = weights / largest
    some = fractions > 0
    mean = np.average(fractions[some], weights=None if copies is None else copies[some])
    digits, exponents = np.frexp(fractions / mean)
    return np.ldexp(np.round(np.ldexp(digits, DIGITS)), exponents - DIGITS)


LIGHT = 0.1
"""Mean weight of the rows below which weights are proportions rather than numbers of rows."""


def warn_of_light_weights(weight: Floats | None, taker: str, effect: str) -> None:
    """A `UserWarning` where weights (n,) add up to far fewer rows than there are, and `taker` counts rows by them."""
    if weight is not None:
        warn_of_light_total(int(np.count_nonzero(weight)), float(weight.sum()), taker, effect)


def warn_of_light_total(n_rows: int, total: float, taker: str, effect: str) -> None:
    """The same by the number of rows of weight above 0, and the sum of the weights."""
    if total < LIGHT * n_rows:
        warn_user(
            f"The weights of {n_rows:,} rows add up to {total:.4g}, which {taker} takes for the number of rows, so "
            f"that {effect}; if weights are proportions, multiply them by the number of rows: "
            "sample_weight * len(sample_weight) / sample_weight.sum().",
        )


def weights_of_classes(class_weight: Any, classes: NDArray[Any], totals: Floats) -> Floats:
    """The weight (n_classes,) of each class, by the total weight of its rows (n_classes,), see `totals_of_classes`.

    Raises
    ------
    ValueError
        `class_weight` names another class, holds another number than one from 0 on, or is not known.
    """
    if isinstance(class_weight, Mapping):
        number = Number(at_least=0)
        given = {label: check_option(f"class_weight[{label!r}]", one, [number]) for label, one in class_weight.items()}
        unknown = [label for label in given if label not in classes.tolist()]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is no class of the target; leave it out: the classes are "
                f"{classes.tolist()}."
            )
        return np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return totals.sum() / (np.count_nonzero(totals) * np.where(totals > 0.0, totals, 1.0))
    raise ValueError(
        f"class_weight={class_weight!r} is not known; use 'balanced', a mapping from class to number, or None."
    )


def totals_of_classes(codes: NDArray[Any], n_classes: int, weight: Floats | None, copies: Copies = None) -> Floats:
    """The total weight (n_classes,) of the rows (n,) of each class, each as often as it has copies."""
    if weight is None:
        weight = np.ones(len(codes))
    return np.asarray(np.bincount(codes, weight if copies is None else weight * copies, n_classes), dtype=np.float64)


def weights_within_classes(y: NDArray[np.generic], weight: Floats, copies: Copies = None) -> Floats:
    """Weights (n,) over their mean in each class of `y` (n,), that of its copies.

    Class weights change the intercept only, as in case-control studies (Prentice and Pyke 1979): what the other
    terms are is decided without them.
    """
    codes = np.unique(y, return_inverse=True)[1].ravel()
    means = np.bincount(codes, weight) / np.bincount(codes, copies)
    return np.asarray(weight / means[codes])


def design_effect(weight: Floats, copies: Copies = None) -> float:
    """Kish's design effect (1965, "Survey Sampling", section 11.7): rows over the rows that weights are worth.

    1 for equal weights, and for none.
    """
    if not len(weight):
        return 1.0
    n_rows = len(weight) if copies is None else copies.sum()
    squares = np.square(weight) if copies is None else np.square(weight) / copies
    return float(squares.sum() * n_rows / weight.sum() ** 2)


def of_one_copy(weight: Floats, copies: Copies) -> Floats:
    """The weight (n,) of one copy of each row, as it was before it was multiplied by the number of copies.

    Empty for none. Weights have fewer digits than numbers (`relative_weights`): division gives them back.
    """
    if copies is None or not len(weight):
        return weight
    digits, exponents = np.frexp(weight / copies)
    return np.ldexp(np.round(np.ldexp(digits, DIGITS)), exponents - DIGITS)
