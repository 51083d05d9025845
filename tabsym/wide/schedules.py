"""Learning-rate schedules: scikit-learn's names and formulas, t counting updates from 1.

constant: learning_rate. invscaling: learning_rate / t**power_t. optimal:
1 / (l2 * (t0 + t - 1)) with t0 by Bottou's rule. adaptive: constant, divided by
5 whenever the loss has not fallen by `tol` in `n_iter_no_change` epochs.
Under gse, t is the number of updates that the entry itself has had.
"""

from __future__ import annotations

import numpy as np

from tabsym.wide import rules, slopes
from tabsym.wide.losses import Loss

SCHEDULES = ("constant", "optimal", "invscaling", "adaptive")
ADAPTIVE_FACTOR, ADAPTIVE_END = 5.0, 1e-6


def schedule_numbers(
    schedule: str, power_t: float, l2: float, loss: Loss, cap: float | None = None
) -> tuple[int, float, float]:
    """(code, parameter, start) as `rules.Rule` wants them; "optimal" starts at a rate of `cap` at most."""
    if schedule == "invscaling":
        return rules.INVSCALING, power_t, 0.0
    if schedule == "optimal":
        start = _bottou_start(l2, loss)
        return rules.OPTIMAL, l2, start if cap is None else max(start, 1.0 / (cap * l2))
    return rules.CONSTANT, 0.0, 0.0


def _bottou_start(l2: float, loss: Loss) -> float:
    """scikit-learn's t0: the first rate moves a typical weight by no more than itself."""
    typical = float(np.sqrt(1.0 / np.sqrt(l2)))
    steepest = 0.5
    if loss.code != slopes.MULTINOMIAL:
        steepest = abs(float(loss.rows(np.array([[-typical]]), np.ones(1))[1][0]))
    return float(1.0 / (typical / max(1.0, steepest) * l2))
