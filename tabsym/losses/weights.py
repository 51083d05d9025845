"""What sample weights count for in classification, where the variance of a row is known.

Weights such as ``class_weight="balanced"`` say how much a row matters, not that it was seen several times: a rare class
whose rows weigh ten times as much has no more rows. Taken for repeated rows, they let each of them have a bin of its
own (benchmarks/weights.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def weights_within_classes(y: NDArray[np.generic], weight: Floats) -> Floats:
    """Weights (n,) over their mean in each class of `y` (n,).

    Weights of classes change the intercept only, as in case-control studies (Prentice and Pyke 1979): what the other
    terms are is decided without them.
    """
    codes = np.unique(y, return_inverse=True)[1].ravel()
    means = np.bincount(codes, weight) / np.bincount(codes)
    return np.asarray(weight / means[codes])


def design_effect(weight: Floats) -> float:
    """Kish's design effect (1965, "Survey Sampling", section 11.7): rows over the rows that weights are worth.

    1 for equal weights, and for none.
    """
    return float(np.square(weight).mean() / weight.mean() ** 2) if len(weight) else 1.0
