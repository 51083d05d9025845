"""Fit an additive model from its terms, with given or estimated (REML) penalties; which terms are left out of it.

The optimum within monotone constraints is found from the one without, whose variances are kept. Where that keeps to the
constraints, it is the constrained optimum too, as the objective is convex. Otherwise block coordinate descent goes on
from the nearest coefficients that do: each step is the minimum of its quadratic approximation within the constraint of
its term (`kernels_walk`), and the constraints of different terms are separate, so that the descent ends at the
constrained optimum (Tseng 2001, "Convergence of a block coordinate descent method for nondifferentiable minimization").
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.design.content import Keys
from tabsym.losses.loss import MULTINOMIAL, SQUARED
from tabsym.messages import plural, show_progress
from tabsym.solvers.newton import CLOSE, ROUGHLY_CLOSE, Newton
from tabsym.solvers.newton.block_descent import BlockDescent, SampledRows, taken
from tabsym.solvers.newton.joint import finish, objective_of
from tabsym.solvers.newton.posteriors import JointPosteriors, are_possible
from tabsym.solvers.newton.posteriors_classes import MulticlassPosteriors
from tabsym.solvers.newton.terms import Prior, content_of_terms
from tabsym.solvers.newton.uncertainty import JointCovariance, PosteriorSamples, Uncertainty
from tabsym.solvers.newton.variances import MANY_ENTRIES, HeldOut, MulticlassHalves, VarianceComponents, halves_of

Floats = NDArray[np.float64]

MAX_HELD_OUT = 200_000
"""Held-out tuning of variances uses a random sample of this size of larger tables, as the choice of interactions
does."""

FEW_ROWS, MORE_SPLITS = 10_000, 3
"""In tables of up to `FEW_ROWS` rows the tuned variances are geometric means over this many random splits into halves,
since those of one split vary with it; in larger tables they vary less, and splits take longer
(`benchmarks/evidence/constants.md`)."""

AFTERWARDS = 30.0
"""Tolerance factor for re-estimating the variances of frequent terms once those of rare terms are tuned. Next to
categories that fit their own rows a long optimization overfits them (`benchmarks/evidence/constants.md`)."""


MEANWHILE = 4.0
"""Tolerance factor for the first phase of a classifier, which leaves the rare terms out: a rough estimate suffices, as
the variances are updated again later (`benchmarks/evidence/constants.md`)."""


MORE_ITERATIONS, MORE_BESIDE_VARIANCES = 12, 4
"""The most iterations after the objective has converged: coefficients that converge slowly are still off the optimum by
a fraction of their standard error then. Fewer where variances were estimated, whose error is larger than that."""

WIDER = 30.0
"""Tolerance factor while the common factor of the variances of several classes is found, whose losses differ by more
than the iterations still lower them (`benchmarks/evidence/constants.md`)."""

FEW_SHARED, FEW_SHARED_OF_INTERACTION = 0.02, 0.2
"""A term is dropped where at most this fraction of the rows share their coefficient with another row, as for an id: its
variance cannot be separated from the noise of the rows, and its estimate is chance. An interaction sooner, as its main
effects have most of its gain for the few new rows with a known combination
(`benchmarks/evidence/constants.md`)."""


@dataclass(frozen=True)
class Optimum:
    """The result of a fit: coefficients `solver.theta`, variances `components`, iterations, whether all converged.

    `aliased`: the unpenalized terms, where some of their coefficients are determined by others.
    """

    solver: BlockDescent
    components: VarianceComponents
    n_iterations: int
    converged: bool
    interrupted: bool = False
    aliased: Sequence[int] = ()


@dataclass(frozen=True)
class Posterior:
    """The posterior at an optimum, in the scale of training.

    Attributes
    ----------
    sd : list of (q, K)
        Standard deviations of the coefficients of each term.
    samples : list of (q, M) or None
        Minus the coefficients.
    drawn : bool
        Whether the samples converged.
    together : (f, f, K) or None
        Covariances of the unpenalized terms, where there are no samples.
    """

    sd: list[Floats]
    samples: list[Floats] | None
    drawn: bool
    together: Floats | None


def find_optimum(
    solver: BlockDescent,
    newton: Newton,
    penalty: float | None,
    theta: Sequence[Floats],
    rng: np.random.RandomState,
    fixed: Mapping[int, float] | None = None,
) -> Optimum:
    """The optimum, starting at `theta`: with a ridge `penalty` on the mean loss, or None for variances by REML.

    `fixed`: given precisions of some terms, while the variances of the others, if any, are estimated. Monotone terms
    are within their constraint at the end, at the optimum there for these variances. Ctrl-C ends the fit with the
    current coefficients.
    """
    solver.put(theta)
    if newton.verbose:
        solver.report = IterationReport()
    if newton.joint and are_possible(solver):
        solver.makes_posteriors = JointPosteriors
    components = VarianceComponents(solver)
    penalized = [index for index, term in enumerate(solver.terms) if term.prior is not Prior.FLAT]
    given = fixed or {} if penalty is None else dict.fromkeys(penalized, penalty * solver.total)
    solver.precision[list(given)] = list(given.values())
    estimates = not given.keys() >= set(penalized)
    interrupted, n_iterations, converged = False, 0, False
    try:
        n_iterations, stood = _find_variances(solver, components, newton, rng, given) if estimates else (0, True)
        if estimates:
            n_terms, n_dropped = len(penalized), int(solver.dropped.sum())
            show_progress(newton.verbose, f"variances of {plural(n_terms, 'term')} estimated, {n_dropped} of them as 0")
        more, converged = solver.iterate(newton.tol, newton.max_passes, surely=not estimates)
        n_iterations, converged = n_iterations + more, converged and stood
        dispersion = components.dispersion if components.has_dispersion else 1.0
        if components.has_dispersion and not estimates:
            dispersion = max(solver.dispersion(), 1e-12 * solver.target_scale)
        is_free = bool(solver.together) or 0.0 in given.values()  # an optimum that may be infinite
        # of several classes whose terms are all penalized, estimated variances are too rough to make more of
        if solver.loss.code != MULTINOMIAL or not estimates or is_free:
            limit = MORE_BESIDE_VARIANCES if estimates else MORE_ITERATIONS
            max_iterations = limit if newton.close >= CLOSE else newton.max_passes
            n_iterations += solver.polish(dispersion, newton.close, max_iterations)
            if newton.close < ROUGHLY_CLOSE:  # an iteration's decrease is no bound where terms nearly determine others
                more, is_reached = finish(solver, dispersion, newton.close, estimated=estimates)
                n_iterations, converged = n_iterations + more, (converged or is_reached) and stood
            more, is_within = iterate_within(solver, newton, max_iterations, dispersion, surely=not estimates)
            n_iterations, converged = n_iterations + more, converged and is_within
    except KeyboardInterrupt:
        interrupted = True
        solver.put(list(solver.theta))  # an iteration may have been interrupted
        bind(solver)
    solver.balance()
    if not estimates:
        _evaluate(solver, components)
    aliased = components.count_unpenalized()
    components.take_pearson()
    return Optimum(solver, components, n_iterations, converged, interrupted, aliased)


class IterationReport:
    """Progress lines on standard error after 1, 2, 4, 8, ... seconds: iterations, and the objective's last decrease."""

    def __init__(self) -> None:
        self._n_iterations, self._start, self._next = 0, time.monotonic(), 1.0

    def __call__(self, decrease: float) -> None:
        self._n_iterations += 1
        seconds = time.monotonic() - self._start
        if seconds >= self._next:
            self._next = 2.0 * seconds
            print(
                f"{plural(self._n_iterations, 'iteration')}, the objective falls by {decrease:.3g} a row",
                file=sys.stderr,
            )


def _find_variances(
    solver: BlockDescent,
    components: VarianceComponents,
    newton: Newton,
    rng: np.random.RandomState,
    fixed: Mapping[int, float],
) -> tuple[int, bool]:
    """Variances by REML; those of terms with few rows per category by held-out tuning.

    Returns the number of iterations, and whether the variances by REML converged in the end.
    """
    components.start()
    for index in range(len(solver.terms)):
        if index not in fixed and _is_unique(solver, index):
            solver.drop(index)
            components.edf[index] = 0.0
    components.take(fixed)
    estimated = [
        index
        for index, term in enumerate(solver.terms)
        if term.prior is not Prior.FLAT and not solver.dropped[index] and index not in fixed
    ]
    is_exact = components.posteriors.is_joint and solver.loss.code == SQUARED  # REML, with any number of rows
    tunes = solver.n_outputs == 1 and not is_exact
    rare = [index for index in estimated if tunes and _is_rare(solver, index, newton.rare_rows)]
    common = [index for index in estimated if index not in rare]
    if components.has_dispersion or not rare:
        n_iterations, stood = components.find(estimated, newton.tol, newton.max_passes, passing=rare)
        rare = [index for index in rare if not solver.dropped[index]]
    else:
        n_iterations, stood = _find_without(solver, components, common, rare, newton)
    if solver.loss.code == MULTINOMIAL:
        n_iterations += _widen(solver, components, estimated, newton, rng)
    if not rare:
        for index in fixed:
            components.posterior(index)
        return n_iterations, stood
    logs = []
    rows = solver.sample(MAX_HELD_OUT, rng)
    content = content_of_terms(*rows)
    for _ in range(MORE_SPLITS if solver.n_rows <= FEW_ROWS else 1):
        halves = _two_halves(solver, rows, content, rng)
        halves.precision, halves.dropped = solver.precision.copy(), solver.dropped.copy()
        held_out = HeldOut(halves, components.dispersion)
        logs.append(np.log(held_out.tune(rare)))
    solver.precision[rare] = np.exp(np.mean(logs, axis=0))
    components.keep(rare)
    if not components.has_dispersion:  # for regression they are at the estimate by REML already
        solver.put(
            [held_out.of_all_rows(index) if index in rare else theta for index, theta in enumerate(solver.theta)]
        )
    more, stood = components.find(common, AFTERWARDS * newton.tol, newton.max_passes)
    for index in [*rare, *common, *fixed]:
        if not solver.dropped[index]:
            components.posterior(index)
    if fixed and components.has_dispersion:
        components.count_unpenalized()
    components.move(())
    return n_iterations + more, stood


def _widen(
    solver: BlockDescent,
    components: VarianceComponents,
    estimated: list[int],
    newton: Newton,
    rng: np.random.RandomState,
) -> int:
    """Multiply the variances of several classes by a factor that held-out rows decide; the number of iterations."""
    free = [index for index in estimated if not solver.dropped[index]]
    if not free:
        return 0
    rows = solver.sample(MAX_HELD_OUT, rng)
    shuffled, column = halves_of(content_of_terms(*rows), rows[-1], rows[1], rng)
    factor = MulticlassHalves(solver, rows, shuffled, column).factor(free, WIDER * newton.tol)
    if factor == 1.0:
        return 0
    show_progress(newton.verbose, f"variances of {plural(len(free), 'term')} times {factor:g}, by held-out rows")
    solver.precision[free] /= factor
    n_iterations, _ = solver.iterate(newton.tol, newton.max_passes)
    for index in free:
        components.posterior(index)
    return n_iterations


def _two_halves(solver: BlockDescent, rows: SampledRows, content: Keys, rng: np.random.RandomState) -> BlockDescent:
    """Two models of half of these rows each, started at the unpenalized coefficients."""
    shuffled, column = halves_of(content, rows[-1], rows[1] if solver.loss.for_classes else None, rng)
    terms, y, weight, start_of_rows, copies = rows if shuffled.copies is None else taken(rows, shuffled)
    halves = BlockDescent(terms, y, weight, start_of_rows, solver.loss, column, 2, copies)
    start = []
    for term, theta in zip(terms, solver.theta, strict=True):
        is_free = term.prior is Prior.FLAT
        start.append(np.column_stack([theta, theta]) if is_free else np.zeros((term.size, 2)))
    halves.put(start)
    return halves


def _find_without(
    solver: BlockDescent, components: VarianceComponents, common: list[int], rare: list[int], newton: Newton
) -> tuple[int, bool]:
    """Estimate the variances of frequent terms while the rare ones are left out: as `VarianceComponents.find`.

    In a classifier a category seen once fits its own row as far as its variance allows, and would leave the other terms
    nothing to explain.
    """
    waiting = [solver.precision[index] for index in rare]
    for index in rare:
        solver.dropped[index] = True
    result = components.find(common, MEANWHILE * newton.tol, newton.max_passes)
    for index, precision in zip(rare, waiting, strict=True):
        solver.dropped[index], solver.precision[index] = False, precision
    return result


def _is_unique(solver: BlockDescent, index: int) -> bool:
    """Whether hardly any two rows share a coefficient, as with an id: such a coefficient may fit noise alone."""
    term = solver.terms[index]
    if term.prior is not Prior.RIDGE or 2 * term.size < solver.n_rows:
        return False
    counts, least = solver.count_rows(index), FEW_SHARED_OF_INTERACTION if term.within else FEW_SHARED
    return float(counts[counts > 1].sum()) < least * solver.n_rows


def _is_rare(solver: BlockDescent, index: int, rows: float) -> bool:
    term = solver.terms[index]
    return term.prior is Prior.RIDGE and term.size >= MANY_ENTRIES and solver.n_rows < rows * term.size


def _evaluate(solver: BlockDescent, components: VarianceComponents) -> None:
    """Effective degrees of freedom and dispersion for penalties that were given."""
    for index, term in enumerate(solver.terms):
        if solver.dropped[index]:
            components.edf[index] = 0.0
        elif term.prior is not Prior.FLAT:
            components.posterior(index)
    components.move(())


def posterior_of(optimum: Optimum, newton: Newton, rng: np.random.RandomState) -> Posterior:
    """Posterior standard deviations, and samples where they are requested."""
    solver, components = optimum.solver, optimum.components
    samples = PosteriorSamples(solver, newton.samples, rng) if newton.samples else None
    root = np.sqrt(components.pearson)
    posteriors, flat = components.posteriors, components.posteriors.flat
    together = posteriors.of_flat() if flat and isinstance(posteriors, MulticlassPosteriors) else None
    sd = []
    for index, theta in enumerate(solver.theta):
        if solver.dropped[index]:
            variances = np.zeros_like(theta)
        elif samples is not None:
            variances = samples.variances(index)
        elif index in flat:  # of one linear predictor: with the covariances of all terms (`models.identified`)
            at = flat.index(index)
            variances = np.zeros_like(theta) if together is None else together[at, at][None]
        else:
            variances = components.posterior(index).variances
        sd.append(root * np.sqrt(variances))
    components.count_unpenalized()  # whose posteriors count each by itself
    scaled_samples = None if samples is None else [root * of_term for of_term in samples.deviations]
    together = None if together is None else components.pearson * together
    return Posterior(sd, scaled_samples, samples is None or samples.converged, together)


@dataclass(frozen=True)
class SolverResult:
    """Solver result on the training scale: coefficients (coefficients, K), posterior, mean loss, iterations.

    `whole`: covariances of all coefficients of a formula, for dispersion 1.
    `together`: the unpenalized coefficients (f,), and their covariances (f, f, K), where these are known.
    """

    coefs_scaled: Floats
    uncertainty: Uncertainty
    loss: float
    n_iterations: int
    converged: bool
    together: tuple[NDArray[np.int64], Floats] | None = None
    whole: JointCovariance | None = None
    interrupted: bool = False


MAX_ROUNDS = 30
"""The most times that joint steps of the coefficients that are free are followed by an iteration that frees others."""


def bind(solver: BlockDescent) -> None:
    """Move the terms into their constraints, for good; nothing where they are there.

    From 0 where that is nearer the optimum: coefficients that are not unique may be huge, and cancel between terms no
    more once some are moved.
    """
    if all(term.is_feasible(coefs) for term, coefs in zip(solver.terms, solver.theta, strict=True) if term.is_monotone):
        return
    solver.is_bound = True
    every = zip(solver.terms, solver.theta, solver.curvature, strict=True)
    nearest = [term.feasible(theta, curvature) if term.is_monotone else theta for term, theta, curvature in every]
    indices = solver.active
    solver.put([np.zeros_like(theta) for theta in nearest])
    at_zero = objective_of(solver, indices)
    solver.put(nearest)
    if not objective_of(solver, indices) <= at_zero:
        solver.put([np.zeros_like(theta) for theta in nearest])


def iterate_within(
    solver: BlockDescent, newton: Newton, max_more: int, dispersion: float, *, surely: bool
) -> tuple[int, bool]:
    """Iterate to the optimum within the constraints; the number of iterations, and whether they converged.

    As `BlockDescent.iterate` and then `BlockDescent.polish`, up to `max_more` times; joint steps follow once, or until
    the bound is reached where those are as many as for the former.
    """
    bind(solver)
    if not solver.is_bound:
        return 0, True
    n_iterations, converged = solver.iterate(newton.tol, newton.max_passes, surely=surely)
    n_iterations += solver.polish(dispersion, newton.close, max_more)
    n_rounds = 1 if max_more < newton.max_passes else MAX_ROUNDS
    for _ in range(n_rounds):
        n_iterations += 1 + finish(solver, dispersion, newton.close)[0]
        if solver.total * solver.update_blocks() < 0.5 * newton.close**2 * dispersion:
            return n_iterations, converged
    return n_iterations, converged and n_rounds == 1
