"""Formulas with products, or with a term that occurs twice: L-BFGS over all coefficients, from several starts.

The Hessian of such a term is not diagonal, and products are not jointly convex, so that block coordinate descent
converges slowly along curved valleys. L-BFGS does not, with coefficients scaled to a Hessian diagonal of about one.
Directions that leave the linear predictors unchanged are optimized in closed form (`CommonLevels`). With REML, optimum
and variances alternate, as in `variances`, each term's posterior given the others; the dispersion is by the degrees of
freedom of all terms together, where there are few enough coefficients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import softmax

from tabsym.categories import row_numbers
from tabsym.design.model_spec import ModelSpec, Rows, Work
from tabsym.frame.target import Copies, design_effect
from tabsym.losses.loss import HUBER, LOGISTIC, MULTINOMIAL, deviance
from tabsym.solvers.newton import ROUGHLY_CLOSE, Newton
from tabsym.solvers.newton.block_descent import target_scale_of
from tabsym.solvers.newton.dispersion import (
    MIN_LEFT,
    NONE_LEFT,
    UNEVEN,
    PowerOfWeights,
    WeightBins,
    WorkingDispersion,
    for_sparse,
    lowest_positive,
    pearson_sums,
    sum_slopes,
)
from tabsym.solvers.newton.fit import SolverResult
from tabsym.solvers.newton.formula_posteriors import CommonLevels, Derivatives, FormulaPosteriors
from tabsym.solvers.newton.information import MAX_COEFS, inverse, without_information
from tabsym.solvers.newton.joint import MAX_HALVINGS, MAX_STEPS
from tabsym.solvers.newton.uncertainty import MAX_VISITS, JointCovariance, Uncertainty, root_of
from tabsym.solvers.newton.variances import prior_of_variances, with_prior
from tabsym.solvers.sgd.kernels import newton_sums, predict_margins
from tabsym.solvers.sgd.loop import Task
from tabsym.solvers.sgd.options import SGD, Options

Floats = NDArray[np.float64]

JITTERS = 0.3, 1.0
"""Further starts are the first one plus normal numbers of these standard deviations, in turn, on the factors of
products: near it, and with other signs of factors."""

PASSES_PER_UPDATE, STILL = 4, 0.01
"""Optimum and variances are updated once per this many of `max_passes`, at most. They have converged where no logarithm
of a variance changes by more, nor the effective degrees of freedom by as much: a variance never reaches 0."""

MAX_ROUNDS, MAX_PASSES, CLOSER, ROUNDING = 10, 200, 0.3, 1e-14
"""The most rounds of the last phase, by the joint posterior at the start of each, and iterations of L-BFGS in one, that
goes on until the gradient is smaller than it needs to be by the third; less of the objective cannot be gained."""

NEGLIGIBLE = 1e-10
"""Over the dispersion: the decrease of the objective that joint steps of the intercept and slopes may leave undone."""

FAR_OFF = 1e100
"""The value of the objective where an exp overflows."""

FLATTEST = 1e-6
"""Coefficients are scaled by their Hessians, or this fraction of the largest where that is more."""

FIRST_VARIANCE = 1.0

TINY = 1e-30
"""The smallest mean square of a factor."""

MIN_PRECISION, MAX_PRECISION = 1e-6, 1e8
"""Bounds of a precision."""


class Objective:
    """The loss of the rows, plus half the precision times each term's sum of squares (about its mean in products).

    The sum of squares of a factor is multiplied by the mean squares of the other factors: it is that of what its
    deviations add to the linear predictor, which stays the same when factors exchange scale. Without this the
    deviations of a factor would have no penalty where the means of the others grow, which are not penalized.

    Parameters
    ----------
    spec : ModelSpec
    rows : Rows
    task : Task
    centred : bool
        Whether factors of products are centred on the mean of their term, not on 0.
    copies : (n,) or None
        How many equal rows each row represents, whose weights the weight of the row adds up.

    Attributes
    ----------
    reached : (coefficients * K,) or None
        The best coefficients so far, by the current precisions.
    unit : float
        The unit of changes of the mean loss: for regression the variance of the targets.
    joint : dict of bytes -> (Floats, Floats)
        The last result of `_joint_posterior`, by coefficients and precisions.
    working : WorkingDispersion or None
        Behind a log link, where variances are estimated.
    weight_bins, power : WeightBins, PowerOfWeights or None
        Of uneven weights, where variances are estimated.
    other_factors : dict of int -> list of list of int
        For such factors: the other factors of each of their terms.
    """

    def __init__(self, spec: ModelSpec, rows: Rows, task: Task, *, centred: bool, copies: Copies = None) -> None:
        self.spec, self.rows, self.task, self.n_passes = spec, rows, task, 0
        self.copies, self.n_rows = copies, len(rows.y) if copies is None else int(copies.sum())
        positive = rows.y > 0.0
        self.n_positive = int(np.count_nonzero(positive) if copies is None else copies[positive].sum())
        self.precision = np.zeros(len(spec.blocks))
        self.total = float(rows.weight.sum()) if len(rows.weight) else float(len(rows.y))
        self._members = row_numbers(len(rows.y))
        self._work = Work.make(task.program, task.n_outputs, batches=False)
        self._rule = Options(optimizer=SGD(), learning_rate=1.0).rule(task.loss, 1.0)
        self.centred = [centred and block.neutral_mean for block in spec.blocks]
        self._levels = CommonLevels(spec, task.program, rows, self.centred)
        self.other_factors = _multiplied_by(spec, self.centred)
        if any(self._levels.moves(index) for index in self.other_factors):
            self.other_factors = {}
        y = rows.y - rows.offset if len(rows.offset) and task.loss.scales else rows.y
        self.reached: Floats | None = None
        self._lowest = np.inf
        self.joint: dict[bytes, tuple[Floats, Floats]] = {}
        self.working: WorkingDispersion | None = None
        n_penalized = len(list(self.penalized()))
        self.prior = prior_of_variances(task.loss, self.n_rows, self.n_positive, n_penalized)
        self.weight_bins: WeightBins | None = None
        self.power: PowerOfWeights | None = None
        self.unit = target_scale_of(y, rows.weight, task.loss) if task.loss.scales else 1.0

    def sums(self, phi: Floats) -> tuple[float, Floats, Floats]:
        """The sum of the losses, the gradient and the Hessian's diagonal (coefficients * K,)."""
        gradient, curvature = np.zeros(len(phi)), np.zeros(len(phi))
        self.n_passes += 1
        lost = newton_sums(
            self.rows, self._members, self.task.program, self.task.neutral, self._rule,
            np.ascontiguousarray(phi[:, None]), self._work, np.empty(self.task.n_outputs), gradient, curvature,
        )  # fmt: skip
        return float(lost), gradient, curvature

    def shared(self, phi: Floats) -> Floats:
        """Coefficients with the same linear predictors and the smallest penalty."""
        return self._levels.recenter(phi, self.precision)

    def value(self, phi: Floats) -> tuple[float, Floats]:
        """The objective, minimized over directions that leave the linear predictors unchanged, and its gradient."""
        phi = self.shared(phi)
        lost, gradient, _ = self.sums(phi)
        squares = self.mean_squares(phi)
        for index, coefs in self.penalized():
            away, scale = self.away(index, phi), self.penalty_scale(index, squares)
            half = 0.5 * self.precision[index] * float(np.square(away).sum())
            lost += scale * half
            gradient[coefs] += scale * self.precision[index] * away.ravel()
            for factors in self.other_factors.get(index, ()):
                for factor in factors:
                    changes = half * np.prod([squares[block] for block in factors]) / squares[factor]
                    gradient[self.coefs_of(factor)] += (
                        changes * 2.0 * phi[self.coefs_of(factor)] / self.spec.sizes[factor]
                    )
        if lost < self._lowest:
            self._lowest, self.reached = lost, phi
        return lost, gradient

    def put(self, indices: list[int], precisions: Floats) -> None:
        """Set precisions of terms; objectives before and after are not comparable."""
        self.precision[indices], self._lowest = precisions, np.inf

    def coefs_of(self, index: int) -> slice:
        """The slice of a block's coefficients."""
        coefs, k = self.spec.coefs(index), self.task.n_outputs
        return slice(coefs.start * k, coefs.stop * k)

    def mean_squares(self, phi: Floats) -> dict[int, float]:
        """The mean squares, summed over outputs, of the factors that scale the penalties of other factors."""
        blocks = {block for terms in self.other_factors.values() for factors in terms for block in factors}
        return {
            index: max(float(np.square(phi[self.coefs_of(index)]).sum()) / self.spec.sizes[index], TINY)
            for index in blocks
        }

    def penalty_scale(self, index: int, squares: dict[int, float]) -> float:
        """The multiple of a block's sum of squares in the penalty, from the mean squares of the factors."""
        if index not in self.other_factors:
            return 1.0
        return float(sum(np.prod([squares[block] for block in factors]) for factors in self.other_factors[index]))

    def precisions(self, phi: Floats) -> Floats:
        """The precisions of the coefficients themselves (blocks,)."""
        squares = self.mean_squares(phi)
        return self.precision * [self.penalty_scale(index, squares) for index in range(len(self.precision))]

    def penalized(self) -> Iterator[tuple[int, slice]]:
        """The penalized terms, and the slices of their coefficients."""
        for index, block in enumerate(self.spec.blocks):
            if block.source is not None:
                yield index, self.coefs_of(index)

    def away(self, index: int, phi: Floats) -> Floats:
        """Deviations of a term's coefficients from the mean of its prior (categories, rank * K)."""
        coefs, k = self.spec.coefs(index), self.task.n_outputs
        width = self.spec.blocks[index].rank * k
        numbers = phi[coefs.start * k : coefs.stop * k].reshape(-1, width)
        return numbers - numbers.mean(axis=0) if self.centred[index] else numbers

    def curvature(self, phi: Floats) -> Floats:
        """The Hessian's diagonal, with the penalty."""
        curvature, precisions = self.sums(phi)[2], self.precisions(phi)
        for index, coefs in self.penalized():
            curvature[coefs] += precisions[index]
        return curvature


def fit_formula(
    spec: ModelSpec,
    rows: Rows,
    task: Task,
    newton: Newton,
    penalty: float | None,
    start: Floats,
    rng: np.random.RandomState,
    copies: Copies = None,
) -> SolverResult:
    """The best optimum of several starts: with a ridge `penalty` on the mean loss, or None for variances by REML.

    Ctrl-C ends the fit with the best coefficients so far.
    """
    objective = Objective(spec, rows, task, centred=penalty is None, copies=copies)
    for index, _ in objective.penalized():
        objective.precision[index] = 1.0 / FIRST_VARIANCE if penalty is None else penalty * objective.total
    if penalty is None and task.loss.log_link:
        objective.working = _working_dispersion(objective, start)
    is_regression = task.loss.code not in (LOGISTIC, MULTINOMIAL)
    if penalty is None and is_regression and design_effect(rows.weight, copies) > UNEVEN:
        slopes, hessians = (derivatives[:, 0] for derivatives in _grads(objective, start))
        objective.weight_bins = WeightBins.of(rows.weight, copies)
        objective.power = PowerOfWeights(objective.weight_bins.sums(slopes, hessians, rows.weight, objective.unit))
    starts = [start]
    if not spec.is_additive:
        jitters = islice(cycle(JITTERS), newton.starts - 1)
        starts += [_jittered(spec, task.n_outputs, start, jitter, rng) for jitter in jitters]
    interrupted = False
    try:
        phi, converged, evaluated = _optimum(objective, starts, newton, estimates=penalty is None)
    except KeyboardInterrupt:
        if objective.reached is None:
            raise
        phi, converged, interrupted = objective.shared(objective.reached), False, True
        evaluated = _evaluate(objective, phi)
    dispersion = evaluated.dispersion
    variances, precisions = np.full(len(spec.blocks), np.inf), objective.precisions(phi)
    for index, _ in objective.penalized():
        variances[index] = evaluated.working / precisions[index] if precisions[index] > 0 else np.inf
    joint_edf = _joint_edf(objective, phi) if newton.posterior else np.nan
    is_valid = evaluated.variances >= 0.0  # negative by rounding where vectors are not identified
    sd = np.sqrt(dispersion * np.where(is_valid, evaluated.variances, np.inf))
    loss = objective.sums(phi)[0] / objective.total
    whole, k = _whole_covariance(objective, phi) if newton.posterior else None, task.n_outputs
    uncertainty = Uncertainty(
        variances, evaluated.edf, dispersion, sd.reshape(-1, k), None, working=evaluated.working, joint_edf=joint_edf
    )
    return SolverResult(
        phi.reshape(-1, k), uncertainty, loss, objective.n_passes, converged, whole=whole, interrupted=interrupted
    )


def _optimum(
    objective: Objective, starts: list[Floats], newton: Newton, *, estimates: bool
) -> tuple[Floats, bool, _EvaluatedTerms]:
    """The coefficients, whether they converged, and their posterior; `estimates`: of the variances, too."""
    reached = [_descend(objective, start, newton) for start in starts]
    phi, converged = min(reached, key=lambda optimum: objective.value(optimum[0])[0])
    evaluated = _evaluate(objective, phi)
    change, n_updates = np.inf if estimates else 0.0, 0
    while change >= STILL and PASSES_PER_UPDATE * n_updates < newton.max_passes:
        change, n_updates = _move_variances(objective, phi, evaluated), n_updates + 1
        phi, converged = _descend(objective, phi, newton)
        evaluated = _evaluate(objective, phi)
    if newton.close < ROUGHLY_CLOSE:
        if any(objective.centred):
            phi, is_reached, n_steps = _finish_estimated(objective, phi, evaluated.dispersion, newton.close)
            converged = converged or is_reached
        else:
            phi, is_known, n_steps = _finish(objective, phi, evaluated.dispersion, newton)
            converged = converged if is_known is None else is_known
        evaluated = _evaluate(objective, phi) if n_steps else evaluated
    phi, n_steps = _finish_scalars(objective, phi, evaluated.dispersion)
    return phi, converged and change < STILL, _evaluate(objective, phi) if n_steps else evaluated


def _finish_scalars(objective: Objective, phi: Floats, dispersion: float) -> tuple[Floats, int]:
    """Newton steps of the intercept and of slopes that are no factors of products; also the number of steps.

    Where products have estimated variances there is no optimum of all coefficients (`_finish_estimated`), but there is
    one of these given the others, by which predictions add up to the targets.
    """
    spec, k = objective.spec, objective.task.n_outputs
    within = {factor.block for term in spec.fitted_terms if len(term.factors) > 1 for factor in term.factors}
    free = [index for index, block in enumerate(spec.blocks) if block.source is None and index not in within]
    if not free:
        return phi, 0
    derivatives = Derivatives(spec, objective.task.program, objective.rows, phi[::k])
    design = sparse.hstack([derivatives.of(index) for index in free]).toarray()
    at = np.concatenate([np.arange(k) + k * spec.coefs(index).start for index in free])
    for n_steps in range(MAX_STEPS):
        gradient = (design.T @ _grads(objective, phi)[0]).ravel()
        information = _information(objective, phi, [design] * k).transpose(1, 0, 3, 2)
        steps = -inverse(information.reshape(len(at), -1))[0] @ gradient
        if not -0.5 * float(gradient @ steps) > NEGLIGIBLE * dispersion:
            return phi, n_steps
        moved = _lowered(objective, phi, at, steps)
        if moved is None:
            return phi, n_steps
        phi = moved
    return phi, MAX_STEPS


def _lowered(objective: Objective, phi: Floats, at: Any, steps: Floats) -> Floats | None:
    """The coefficients after steps of those `at`, halved until the objective decreases; None where it does not."""
    before = objective.value(phi)[0]
    for halvings in range(MAX_HALVINGS):
        moved = phi.copy()
        moved[at] += 0.5**halvings * steps
        if objective.value(moved)[0] < before:
            return objective.shared(moved)
    return None


def _finish_estimated(objective: Objective, phi: Floats, dispersion: float, close: float) -> tuple[Floats, bool, int]:
    """A few joint Gauss-Newton steps at estimated variances, until no coefficient moves by more than `close`.

    In standard errors. The priors of factors are then about their means, which have no prior: given the variances the
    objective is minimal where a mean is infinite and all shrinkage is lost, so that few steps are taken. Returns the
    coefficients, whether they are as close, and the number of steps; unchanged coefficients where they are too many.
    """
    k = objective.task.n_outputs
    for n_steps in range(MAX_STEPS):
        joint = _joint_posterior(objective, phi)
        if joint is None:
            return phi, False, n_steps
        gradient = objective.value(phi)[1].reshape(-1, k).T.ravel()
        steps = -joint[0] @ gradient
        if not -0.5 * float(gradient @ steps) > 0.5 * close**2 * dispersion:
            return phi, True, n_steps
        moved = _lowered(objective, phi, slice(None), steps.reshape(k, -1).T.ravel())
        if moved is None:
            return phi, False, n_steps
        phi = moved
    return phi, False, MAX_STEPS


def _finish(objective: Objective, phi: Floats, dispersion: float, newton: Newton) -> tuple[Floats, bool | None, int]:
    """L-BFGS in the coordinates of the joint posterior, until no coefficient is `newton.close` standard errors away.

    In these coordinates the Hessian is about 1, except for the second derivatives of products, which Gauss-Newton
    leaves out. L-BFGS in the coefficients themselves does not converge where terms nearly determine each other, as
    categories do a numeric column that hardly varies within them. Where coefficients are too many for a joint
    posterior, rounds of L-BFGS in the coefficients follow until one gains no more than that; none for vectors. Returns
    the coefficients, whether they are as close, None where that is not known, and the number of rounds.
    """
    k = objective.task.n_outputs
    for n_rounds in range(MAX_ROUNDS):
        joint = _joint_posterior(objective, phi)
        if joint is None and any(block.rank > 1 for block in objective.spec.blocks):
            return phi, None, n_rounds
        start, (first, gradient) = phi, objective.value(phi)
        enough = max(0.5 * newton.close**2 * dispersion, ROUNDING * abs(first))
        if joint is None:
            root: Any = sparse.diags_array(1.0 / _scales(objective.curvature(phi)))
        else:
            gradient = gradient.reshape(-1, k).T.ravel()
            if not 0.5 * float(gradient @ joint[0] @ gradient) > enough:
                return phi, True, n_rounds
            root = root_of(joint[0])  # its rows sorted by output, now by coefficient
            root = np.ascontiguousarray(root.reshape(k, -1, root.shape[1]).transpose(1, 0, 2).reshape(root.shape))

        def value(z: Floats, start: Floats = start, root: Any = root, first: float = first) -> tuple[float, Floats]:
            with np.errstate(invalid="ignore", over="ignore"):
                lost, slopes = objective.value(start + root @ z)
                gradient = np.asarray(root.T @ slopes)
            if not (np.isfinite(lost) and np.isfinite(gradient).all()):  # too far, for a log link
                return FAR_OFF, np.zeros_like(z)
            return lost - first, gradient

        gtol = CLOSER * np.sqrt(2.0 * enough / root.shape[1])
        options = {"maxiter": max(MAX_PASSES, newton.max_passes), "maxcor": 20, "ftol": 0.0, "gtol": gtol}
        result = minimize(value, np.zeros(root.shape[1]), jac=True, method="L-BFGS-B", options=options)
        if result.fun < 0.0:
            phi = objective.shared(start + root @ result.x)
        if joint is None and not result.fun < -enough:
            return phi, None, n_rounds + 1
        if not result.fun < 0.0:
            return phi, False, n_rounds
    return phi, False, MAX_ROUNDS


def _whole_covariance(objective: Objective, phi: Floats) -> JointCovariance | None:
    """Covariance of all coefficients by output, dispersion 1, by Gauss-Newton; None where they are too many.

    Of several classes jointly with those of the others, up to `MAX_COEFS` of all.
    """
    spec, k = objective.spec, objective.task.n_outputs
    has_vectors = any(block.rank > 1 for block in spec.blocks)  # identified up to rotations: conditional only
    if has_vectors or spec.n_coefs > MAX_COEFS or spec.n_coefs * len(objective.rows.y) > MAX_VISITS:
        return None
    hessians = _expected_curvature(objective, phi)
    covariances, unknown, uninformed = [], [], np.zeros(spec.n_coefs, dtype=np.bool_)
    for output in range(k):
        derivatives = Derivatives(spec, objective.task.program, objective.rows, phi[output::k])
        by = sparse.hstack([derivatives.of(index) for index in range(len(spec.blocks))]).tocsr()
        information = (by.T @ (by * hessians[:, output][:, None])).toarray() + _penalty(objective, phi)
        covariances.append(inverse(information)[0])
        unknown.append(without_information(information, _exchanges(spec, phi[output::k])))
        uninformed |= np.diag(information) == 0.0
    joint = _joint_posterior(objective, phi) if k > 1 else None
    if joint is not None:  # the classes are not known given each other
        p, alone = spec.n_coefs, np.ones(spec.n_coefs)
        for factor in (factor for term in spec.fitted_terms if len(term.factors) > 1 for factor in term.factors):
            alone[spec.coefs(factor.block)] = 0.0
        # less their mean over the classes, which changes no prediction, except for factors of products
        less = np.eye(k * p) - np.kron(np.full((k, k), 1.0 / k), np.diag(alone))
        whole = less @ joint[0] @ less.T
        covariances = [whole[c * p : (c + 1) * p, c * p : (c + 1) * p] for c in range(k)]
    width = max(directions.shape[1] for directions in unknown)
    padded = [np.pad(directions, ((0, 0), (0, width - directions.shape[1]))) for directions in unknown]
    return JointCovariance(np.array(covariances), uninformed, np.array(padded))


def _joint_edf(objective: Objective, phi: Floats) -> float:
    """Effective degrees of freedom of all coefficients together; NaN where they are too many.

    The trace of (A + P)^+ A, with A the information on the coefficients by Gauss-Newton and P the penalty: degrees of
    freedom that terms have in common count once. Without penalties it is the rank of the derivatives.
    """
    joint = _joint_posterior(objective, phi)
    return np.nan if joint is None else float(np.einsum("ij,ij->", *joint))


def _joint_posterior(objective: Objective, phi: Floats) -> tuple[Floats, Floats] | None:
    """The inverse of the information with penalties on all coefficients, class by class, and that without (K p, K p).

    By Gauss-Newton; None where they are too many. That of the last coefficients is cached.
    """
    spec, k = objective.spec, objective.task.n_outputs
    if k * spec.n_coefs > MAX_COEFS or k * spec.n_coefs * len(objective.rows.y) > MAX_VISITS:
        return None
    at = phi.tobytes() + objective.precision.tobytes()
    if at not in objective.joint:
        by = []
        for output in range(k):
            derivatives = Derivatives(spec, objective.task.program, objective.rows, phi[output::k])
            by.append(sparse.hstack([derivatives.of(index) for index in range(len(spec.blocks))]).tocsr())
        information = _information(objective, phi, by).reshape(k * spec.n_coefs, -1)
        covariance = inverse(information + np.kron(np.eye(k), _penalty(objective, phi)))[0]
        objective.joint = {at: (covariance, information)}
    return objective.joint[at]


def _information(objective: Objective, phi: Floats, by: Sequence[Any]) -> Floats:
    """The information (K, p, K, p), by the derivatives (n, p) of each output's linear predictor by coefficients."""
    hessians, weight, k = _expected_curvature(objective, phi), objective.rows.weight, len(by)
    probabilities = softmax(_margins(objective, phi), axis=1) if k > 1 else np.zeros_like(hessians)
    blocks = np.empty((k, by[0].shape[1], k, by[0].shape[1]))
    for a, b in product(range(k), range(k)):
        between = -probabilities[:, a] * probabilities[:, b] * (weight if len(weight) else 1.0)
        block = by[a].T @ (by[b] * (hessians[:, a] if a == b else between)[:, None])
        blocks[a, :, b] = block.toarray() if sparse.issparse(block) else block
    return blocks


def _penalty(objective: Objective, phi: Floats) -> Floats:
    """The precisions (coefficients, coefficients) of the prior, of one output."""
    penalty, precisions = np.zeros((objective.spec.n_coefs, objective.spec.n_coefs)), objective.precisions(phi)
    for index, _ in objective.penalized():
        coefs, rank = objective.spec.coefs(index), objective.spec.blocks[index].rank
        size = (coefs.stop - coefs.start) // rank
        centring = np.eye(size) - (1.0 / size if objective.centred[index] else 0.0)
        penalty[coefs, coefs] = precisions[index] * np.kron(centring, np.eye(rank))
    return penalty


def _exchanges(spec: ModelSpec, phi: Floats) -> Floats:
    """Directions (coefficients, m) in which factors of a product exchange scale: one grows as another shrinks.

    Coefficients are shown with a fixed scale.
    """
    directions = [np.zeros(spec.n_coefs)]
    for term in spec.fitted_terms:
        powers = Counter(factor.block for factor in term.factors)
        first, *other_factors = powers
        for factor in other_factors:
            directions.append(np.zeros(spec.n_coefs))
            directions[-1][spec.coefs(first)] = powers[factor] * phi[spec.coefs(first)]
            directions[-1][spec.coefs(factor)] = -powers[first] * phi[spec.coefs(factor)]
    return np.array(directions[1:]).reshape(-1, spec.n_coefs).T


def _expected_curvature(objective: Objective, phi: Floats) -> Floats:
    """Fisher information of the rows (n, K), times their weight."""
    task, rows = objective.task, objective.rows
    power = task.loss.variance_power
    if power is None or task.loss.canonical:
        return _grads(objective, phi)[1]
    weight = rows.weight[:, None] if len(rows.weight) else 1.0
    return np.asarray(np.exp((2.0 - power) * _margins(objective, phi)) * weight)


def _jittered(spec: ModelSpec, n_outputs: int, start: Floats, jitter: float, rng: np.random.RandomState) -> Floats:
    """Another start: the factors of products plus normal noise."""
    out = start.copy()
    for index, block in enumerate(spec.blocks):
        if block.start != 0.0 or block.rank > 1:
            coefs = spec.coefs(index)
            coefs = slice(coefs.start * n_outputs, coefs.stop * n_outputs)
            out[coefs] += rng.normal(0.0, jitter, coefs.stop - coefs.start)
    return out


def _descend(objective: Objective, start: Floats, newton: Newton) -> tuple[Floats, bool]:
    """The optimum near a start, and whether it was reached."""
    phi, unit, first = start, objective.total * objective.unit, objective.value(start)[0]
    for _ in range(3):  # restarts, scaled by the current Hessian's diagonal
        phi = objective.shared(phi)
        root = _scales(objective.curvature(phi))

        def value(z: Floats, root: Floats = root) -> tuple[float, Floats]:
            lost, gradient = objective.value(z / root)
            return (lost - first) / unit, gradient / (root * unit)  # relative to the start, which outliers may dominate

        options = {"maxiter": newton.max_passes, "maxcor": 20, "ftol": 0.01 * newton.tol, "gtol": 0.0}
        result = minimize(value, phi * root, jac=True, method="L-BFGS-B", options=options)
        before, phi = value(phi * root)[0], objective.shared(result.x / root)
        if before - result.fun < newton.tol:
            return phi, True
    return phi, bool(result.success)


def _scales(curvature: Floats) -> Floats:
    """Factors of coefficients (coefficients * K,) by which their Hessians are about 1."""
    return np.sqrt(np.maximum(curvature, FLATTEST * max(float(curvature.max()), 1e-300)))


@dataclass(frozen=True)
class _EvaluatedTerms:
    """Dispersion, effective degrees of freedom by term, and posterior variances (coefficients * K,) at dispersion 1.

    `working`: the dispersion by which variances are estimated.
    """

    dispersion: float
    working: float
    edf: Floats
    variances: Floats


def _evaluate(objective: Objective, phi: Floats) -> _EvaluatedTerms:
    spec, k = objective.spec, objective.task.n_outputs
    edf, variances = np.zeros(len(spec.blocks)), np.zeros((spec.n_coefs, k))
    slopes, hessians = _grads(objective, phi)
    used, precisions = 0.0, objective.precisions(phi)
    for output in range(k):
        derivatives = Derivatives(spec, objective.task.program, objective.rows, phi[output::k])
        posteriors = FormulaPosteriors(derivatives, hessians[:, output])
        for index, _ in objective.penalized():
            centred = objective.centred[index]
            variances[spec.coefs(index), output], block_edf = posteriors.of(
                index, float(precisions[index]), centred=centred
            )
            edf[index] += block_edf
            used += spec.blocks[index].rank if centred else 0
        for index, variance in zip(posteriors.unpenalized, posteriors.unpenalized_variances(), strict=True):
            edf[index] += posteriors.unpenalized_rank / len(posteriors.unpenalized)
            variances[spec.coefs(index), output] = variance
    dispersion = 1.0
    if objective.task.loss.code not in (LOGISTIC, MULTINOMIAL):
        joint = _joint_edf(objective, phi)
        is_penalized = bool(objective.precision.any())
        left = objective.total - (edf.sum() + used if np.isnan(joint) else joint)
        left = max(left, MIN_LEFT * objective.total if is_penalized else 0.0)
        statistic = _pearson(objective, phi, slopes[:, 0], hessians[:, 0])
        dispersion = max(statistic / left, 1e-12) if left > NONE_LEFT else np.nan
    working = dispersion
    if objective.working is not None and np.isfinite(dispersion):
        rows = objective.rows
        weight = rows.weight if len(rows.weight) else None
        working = objective.working(
            dispersion, deviance(objective.task.loss, _margins(objective, phi), rows.y, weight) / left, left
        )
    if objective.weight_bins is not None and objective.power is not None and np.isfinite(working):
        by_weight = objective.weight_bins.sums(slopes[:, 0], hessians[:, 0], objective.rows.weight, working)
        working *= objective.power.inflation(by_weight, float(edf.sum()) / objective.total)
    return _EvaluatedTerms(dispersion, working, edf, variances.ravel())


def _working_dispersion(objective: Objective, constant: Floats) -> WorkingDispersion:
    """The dispersion for variances, by the coefficients of the constant model."""
    rows = objective.rows
    slopes, hessians = _grads(objective, constant)
    squares = np.square(slopes[:, 0]) / (rows.weight if len(rows.weight) else 1.0)
    return WorkingDispersion.of(
        objective.task.loss, objective.total, objective.n_rows, objective.n_positive,
        lowest_positive(rows.y, rows.weight, objective.copies)[0], float(squares.sum() / hessians.sum()),
    )  # fmt: skip


def _pearson(objective: Objective, phi: Floats, slopes: Floats, hessians: Floats) -> float:
    """Pearson's statistic from gradients and Hessians (n,) times weights; Huber's loss has no variance function.

    With penalties it is for sparse data.
    """
    if objective.task.loss.code == HUBER:
        weight = objective.rows.weight if len(objective.rows.weight) else 1.0
        squares, slope = float((np.square(slopes) / weight).sum()), sum_slopes(hessians, objective.rows.weight)
        return squares * float(hessians.sum()) / slope**2 * objective.total
    expected, power = _expected_curvature(objective, phi)[:, 0], objective.task.loss.variance_power
    squares, terms = pearson_sums(power or 0.0, slopes, expected, objective.rows.weight)
    return for_sparse(squares, terms / objective.total) if objective.precision.any() else squares


def _grads(objective: Objective, phi: Floats) -> tuple[Floats, Floats]:
    """Gradients and Hessians (n, K) of the rows, times their weight."""
    task, rows, margins = objective.task, objective.rows, _margins(objective, phi)
    weight = rows.weight[:, None] if len(rows.weight) else 1.0
    if task.n_outputs > 1:
        p = softmax(margins, axis=1)
        slopes, hessians = p - np.eye(task.n_outputs)[rows.y.astype(np.int64)], p * (1.0 - p)
    else:
        slopes, hessians = (values[:, None] for values in task.loss.rows(margins, rows.y)[1:])
    return weight * slopes, weight * hessians


def _margins(objective: Objective, phi: Floats) -> Floats:
    """Linear predictors of the rows (n, K)."""
    task, margins = objective.task, np.empty((len(objective.rows.y), objective.task.n_outputs))
    predict_margins(objective.rows, task.program, task.neutral, np.ascontiguousarray(phi[:, None]), margins)
    return margins


def _move_variances(objective: Objective, phi: Floats, evaluated: _EvaluatedTerms) -> float:
    """One update of the precisions; the largest change of a logarithm, or of the edf if that is less."""
    indices = [index for index, _ in objective.penalized()]
    squares = objective.mean_squares(phi)
    lengths = np.array(
        [objective.penalty_scale(index, squares) * np.square(objective.away(index, phi)).sum() for index in indices]
    )
    used, lengths = with_prior(evaluated.edf[indices], lengths, objective.prior, np.ones(len(indices)))
    now = evaluated.working * used / np.maximum(lengths, 1e-300)
    moves = np.log(np.clip(now, MIN_PRECISION, MAX_PRECISION) / objective.precision[indices])
    free = scale_free(objective.spec)
    relative = free[list(objective.other_factors)]
    free = (free @ null_space(relative) if len(relative) else free)[indices]
    moves -= free @ (np.linalg.pinv(free) @ moves)
    objective.put(indices, np.clip(objective.precision[indices] * np.exp(moves), MIN_PRECISION, MAX_PRECISION))
    edf, coefs = evaluated.edf[indices], np.array([phi[own].size for _, own in objective.penalized()])
    moving = np.abs(moves) * np.minimum(edf * (1.0 - edf / coefs), 1.0)
    return float(moving.max(initial=0.0))


def _multiplied_by(spec: ModelSpec, centred: Sequence[bool]) -> dict[int, list[list[int]]]:
    """By block that is multiplied by others, without vectors: the other factors of each of its terms."""
    factors: dict[int, list[list[int]]] = {}
    for term in spec.fitted_terms:
        blocks = [factor.block for factor in term.factors]
        for at, block in enumerate(blocks):
            factors.setdefault(block, []).append([*blocks[:at], *blocks[at + 1 :]])
    return {
        block: terms
        for block, terms in factors.items()
        if centred[block] and any(terms) and all(spec.blocks[index].rank == 1 for group in terms for index in group)
    }


def scale_free(spec: ModelSpec) -> Floats:
    """Directions (terms, d) in which logarithms of the terms' scales can change while every linear predictor stays.

    The factors of a product can exchange scale: only the product of their variances is identified, where they are not
    those of what factors add. Along these directions the variances keep their initial values, as they would drift
    without end.
    """
    factors = np.zeros((len(spec.fitted_terms), len(spec.blocks)))
    for number, term in enumerate(spec.fitted_terms):
        for factor in term.factors:
            factors[number, factor.block] += 1.0
    return np.asarray(null_space(factors))
