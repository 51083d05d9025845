"""Wide models by Newton's method: deterministic, without a learning rate, shrunk by variance components.

`terms` (the solver's view of a spec) -> `block_descent` (Newton steps of one term after the other; `steps` that
several take at once) -> `variances` (one per term, by REML; of terms with few rows per category, by held-out loss) ->
`joint` (joint Newton steps at the end) -> `fit` (the whole). Formulas with products are fitted by `formulas`.
`posteriors` and `uncertainty` give covariances.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RARE_ROWS = 100.0
"""A term is rare whose categories have fewer rows on average."""


TOL, CLOSE = 1e-5, 1e-3
"""Convergence of Newton iterations: the decrease of the objective, per row, and the distance to the optimum in standard
errors."""

ROUGHLY_CLOSE = 0.1
"""The distance while losses are compared, where a joint Newton step of all coefficients would not pay."""


@dataclass(frozen=True)
class Newton:
    """Options of block coordinate Newton, and of L-BFGS for formulas that multiply; the estimators check them.

    Attributes
    ----------
    tol : float
        The estimation of variances has converged once an iteration lowers the objective by less, per row.
    close : float
        The distance of coefficients to the optimum at the end, in their standard errors.
    max_passes : int
        The most iterations, for variances and for coefficients each; for formulas, of one run of L-BFGS, of which there
        are up to a quarter as many.
    starts : int
        The number of starting points for a formula with products; the best optimum is kept.
    samples : int
        Posterior samples of all coefficients jointly.
    rare_rows : float
        Variances of large terms with fewer rows per category are tuned by held-out loss; 0 for none.
    penalties : mapping of term -> float
        Ridge penalties of some terms, on the scale of the mean loss; the variances of the others are estimated.
    posterior : bool
        Whether the posterior of the coefficients is wanted, which predictions do without.
    joint : bool
        Whether variances are estimated by the posterior of all terms together, where these are few enough; else each
        given the other terms.
    """

    tol: float = TOL
    close: float = CLOSE
    max_passes: int = 200
    starts: int = 3
    samples: int = 0
    rare_rows: float = RARE_ROWS
    penalties: Mapping[str, float] | None = None
    posterior: bool = True
    joint: bool = True
    verbose: int = 0

    @classmethod
    def to(cls, close: float, **options: Any) -> Newton:
        """Options by the distance to the optimum: the remaining decrease is proportional to its square."""
        return cls(tol=TOL * (close / CLOSE) ** 2, close=close, **options)
