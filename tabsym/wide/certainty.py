"""What a fit by Newton's method knows of its own certainty: variances of blocks, deviations of numbers, draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Certainty:
    """In the user's units.

    Attributes
    ----------
    variances : (blocks,)
        How far the numbers of a block, or neighbours of an ordered one, are spread: infinite where nothing holds
        them back, 0 where the block says nothing.
    effective : (blocks,)
        As how many free numbers those of a block count.
    dispersion : float
        Variance of a row's gradient over its curvature; for the squared loss that of the rows about their means.
    sd : (entries, K)
        Posterior standard deviations.
    draws : (entries, M) or None
        About the parameters, from their posterior.
    """

    variances: Floats
    effective: Floats
    dispersion: float
    sd: Floats
    draws: Floats | None
