"""Separation: unpenalized coefficients that tell the classes, or rows of no event, apart, and have no finite optimum.

Albert and Anderson (1984), "On the existence of maximum likelihood estimates in logistic regression models".
"""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tabsym.warn import warn_user
from tabsym.wide.model import WideModel
from tabsym.wide.slopes import LOGISTIC, MULTINOMIAL, POISSON

CERTAIN = 0.02
"""A mean log-loss below which the classes are told apart as a whole."""

FAR_SCORE, SHARE_OF_SCORE = 6.0, 0.3
"""What a coefficient adds to the linear predictor where the targets are as good as certain, and how little is known of
it then: the deviation, over that."""


def warn_of_separation(who: str, model: WideModel, loss: float) -> None:
    """Warn of unpenalized terms whose optimum is infinite; `loss`: the mean loss of the training rows."""
    certainty, layout = model.certainty, model.layout
    if certainty is None or model.loss.code not in (LOGISTIC, MULTINOMIAL, POISSON):
        return
    found = []
    for term in layout.learned:
        block = term.factors[0].block
        if not layout.stands_alone(term) or np.isfinite(certainty.variances[block]) or term == layout.constant:
            continue
        if term.numeric is not None and not (model.loss.for_classes and loss < CERTAIN):
            continue  # of numbers that say the same coefficients are large, too, and cancel
        moments = None if term.numeric is None else model.numerics[term.numeric]
        size = 1.0 if moments is None else moments.spread_about(moments.mean)
        own = layout.entries(block)
        score, sd = size * np.abs(model.theta[own]), size * certainty.sd[own]
        known = np.isfinite(sd) & (model.counts[own][:, None] > 0 if layout.blocks[block].source is not None else True)
        if (known & (score > FAR_SCORE) & (sd > SHARE_OF_SCORE * score)).any():
            found.append(layout.blocks[block].name)
    if found:
        names = ", ".join(map(repr, found[:5])) + (", ..." if len(found) > 5 else "")
        warn_user(
            f"{who}: {names} separate{'s' if len(found) == 1 else ''} the target completely (separation): the "
            "maximum likelihood estimates are infinite, and the coefficients shown are where the solver ended; "
            "penalize them (alpha='auto', or a number), or leave out the column that gives the target away.",
            ConvergenceWarning,
        )
