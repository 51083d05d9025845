"""What sample weights count for in classification, where the variance of a row is known.

Weights such as ``class_weight="balanced"`` say how much a row matters, not that it was seen several times: a rare class
whose rows weigh ten times as much has no more rows. Taken for repeated rows, they let each of them have a bin of its
own (benchmarks/weights.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.frame.target import DIGITS

Floats = NDArray[np.float64]
Copies = NDArray[np.int64] | None
"""How many rows each row stands for (n,), by which its weight is multiplied; None for one each."""


def weights_within_classes(y: NDArray[np.generic], weight: Floats, copies: Copies = None) -> Floats:
    """Weights (n,) over their mean in each class of `y` (n,), that of its copies.

    Weights of classes change the intercept only, as in case-control studies (Prentice and Pyke 1979): what the other
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

    Empty for none. Weights have fewer digits than numbers (`frame.target.relative_weights`): division gives them back.
    """
    if copies is None or not len(weight):
        return weight
    digits, exponents = np.frexp(weight / copies)
    return np.ldexp(np.round(np.ldexp(digits, DIGITS)), exponents - DIGITS)
