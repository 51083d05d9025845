"""Updates of blocks against steps taken one after the other by dense algebra: small blocks, large ones, and numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

from tabsym.losses.loss import LOSSES
from tabsym.solvers.newton import steps
from tabsym.solvers.newton.block_descent import MAX_STEP, BlockDescent
from tabsym.solvers.newton.kernels_coefs import move_precisions
from tabsym.solvers.newton.posteriors import SingleOutputPosteriors
from tabsym.solvers.newton.steps import MAX_WAIT, MIN_DECREASE, Recentering, Relation
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Prior, SolverTerm
from tabsym.solvers.newton.uncertainty import PosteriorSamples
from tabsym.solvers.newton.variances import VarianceComponents
from tests.oracles.variances import walk_beside_missing

N, PLAIN = 700, np.empty(0)
SIZES = [(1, Prior.FLAT, 0), (5, Prior.RIDGE, 0), (7, Prior.WALK, 2), (40, Prior.RIDGE, 0), (3, Prior.WALK, 0)]
LARGE = (300, Prior.RIDGE, 0)


def problem(seed, loss, *, numbers):
    """Pieces, small ones first, some rows without an entry of two; a target that the loss can tell."""
    rng = np.random.default_rng(seed)
    terms = []
    for block, (size, prior, apart) in enumerate([*SIZES, LARGE]):
        codes = rng.integers(-1 if block in (1, 5) else 0, size, N).astype(np.int32)
        terms.append(SolverTerm(block, codes, PLAIN, size, prior, apart))
    if numbers:
        codes = rng.integers(0, 6, N).astype(np.int32)
        terms.append(SolverTerm(len(terms), codes, rng.normal(size=N), 6, Prior.RIDGE))
    score = rng.normal(size=5)[terms[1].codes] + 0.5 * rng.normal(size=N)
    if loss == "squared_error":
        return terms, score, rng
    if loss == "logistic":
        return terms, (score > 0).astype(float), rng
    return terms, rng.poisson(np.exp(score)) + (0.1 if loss == "gamma" else 0.0), rng


def grads(loss, score, y):
    """Slope and curvature of each row, from the definitions of the losses."""
    k = loss.parameter
    if loss.name == "squared_error":
        return score - y, np.ones(len(y))
    if loss.name == "logistic":
        p = 1 / (1 + np.exp(-score))
        return p - y, p * (1 - p)
    if loss.name == "poisson":
        return np.exp(score) - y, np.exp(score)
    if loss.name == "gamma":
        return 1 - y * np.exp(-score), y * np.exp(-score)
    mean, rest = np.exp((2 - k) * score), y * np.exp((1 - k) * score)  # tweedie
    return mean - rest, (2 - k) * mean - (1 - k) * rest


def penalty(term, precision):
    """The matrix of a block's penalty, and its part that is no prior: what holds the level of a walk."""
    if term.prior is Prior.FLAT:
        return np.zeros((1, 1))
    if term.prior is Prior.RIDGE:
        return precision * np.eye(term.size)
    level = np.diag(np.where(np.arange(term.size) < term.n_unordered, 0.0, NEXT_TO_NOTHING))
    return level + precision * walk_beside_missing(term.size, term.n_unordered)


class Obvious:
    """Parameters (q, W), a step of one block at a time."""

    def __init__(self, terms, y, weight, start, loss, column, n_models):
        self.terms, self.y, self.weight, self.start, self.loss, self.column = terms, y, weight, start, loss, column
        self.theta = [np.zeros((term.size, n_models)) for term in terms]
        self.curvature = [np.zeros((term.size, n_models)) for term in terms]

    def scores(self):
        total = self.start.copy()
        for term, theta in zip(self.terms, self.theta, strict=True):
            own = np.where(term.codes >= 0, theta[term.codes, self.column], 0.0)
            total += own * (term.x if len(term.x) else 1.0)
        return total

    def update_block(self, place, precision):
        """A step; half of what it gains by the slope."""
        term, decrease = self.terms[place], 0.0
        slope, hess = grads(self.loss, self.scores(), self.y)
        x = term.x if len(term.x) else np.ones(N)
        for model in range(self.theta[place].shape[1]):
            matrix, right = penalty(term, precision), -penalty(term, precision) @ self.theta[place][:, model]
            for e in range(term.size):
                rows = (term.codes == e) & (self.column == model)
                right[e] -= np.sum((self.weight * slope * x)[rows])
                self.curvature[place][e, model] = np.sum((self.weight * hess * x**2)[rows])
                matrix[e, e] += self.curvature[place][e, model]
            most = np.inf if self.loss.name == "squared_error" else MAX_STEP
            step = np.clip(np.linalg.solve(matrix, right), -most, most)
            self.theta[place][:, model] += step
            decrease += 0.5 * np.sum(np.abs(step * right))
        return decrease


@pytest.mark.parametrize(
    ("weighted", "numbers"),
    [(False, False), (False, True), (True, True)],
    ids=["plain", "numbers", "weighted numbers"],
)
@pytest.mark.parametrize("n_models", [1, 2])
@pytest.mark.parametrize("few", [256, 2048], ids=["one large", "all small"])
@pytest.mark.parametrize("loss", ["squared_error", "logistic", "poisson", "gamma", "tweedie"])
def test_sweeps_are_steps_one_after_the_other(monkeypatch, loss, few, n_models, weighted, numbers):
    monkeypatch.setattr(steps, "MAX_SMALL_SIZE", few)
    monkeypatch.setattr(Recentering, "recenter", lambda recentering, decrease: None)
    terms, y, rng = problem(n_models, loss, numbers=numbers)
    weight = rng.uniform(0.5, 2.0, N) if weighted else PLAIN
    start = 0.3 * rng.normal(size=N)
    column = rng.integers(0, n_models, N).astype(np.int8)
    precisions = [0.0, *rng.uniform(0.1, 20.0, len(terms) - 1)]
    solver = BlockDescent(terms, y, weight, start[:, None], LOSSES[loss], *([column, 2] if n_models == 2 else []))
    solver.precision = np.array(precisions)
    ones = weight if weighted else np.ones(N)
    oracle = Obvious(terms, y, ones, start, LOSSES[loss], column, n_models)
    for dropped in ([], [3], [0, 1, 2, 3, 4], []):
        solver.dropped = np.array([place in dropped for place in range(len(terms))])
        decrease = sum(
            oracle.update_block(place, precisions[place]) for place in range(len(terms)) if place not in dropped
        )
        assert solver.update_blocks() * solver.total == pytest.approx(decrease, rel=1e-4, abs=1e-6)
        for place, (found, wanted) in enumerate(zip(solver.theta, oracle.theta, strict=True)):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{place}")
        for place, (found, wanted) in enumerate(zip(solver.curvature, oracle.curvature, strict=True)):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=f"{place}")
    np.testing.assert_allclose(solver.scores()[:, 0], oracle.scores(), atol=1e-5)


def test_small_blocks_are_silenced_and_put_elsewhere():
    """Their parameters are parts of one array, which all that changes them has to change."""
    terms, y, rng = problem(0, "poisson", numbers=False)
    solver = BlockDescent(terms, y, PLAIN, np.zeros((N, 1)), LOSSES["poisson"])
    solver.precision = np.array([0.0, *[1.0] * (len(terms) - 1)])
    solver.update_blocks()
    solver.drop(1)
    assert not solver.theta[1].any()
    before = solver.scores()
    np.testing.assert_allclose(solver.rows.scores_by_sums(solver.terms, solver.theta), before, atol=1e-12)
    elsewhere = [rng.normal(size=theta.shape) for theta in solver.theta]
    solver.put(elsewhere)
    other = BlockDescent(terms, y, PLAIN, np.zeros((N, 1)), LOSSES["poisson"])
    other.precision, other.dropped = solver.precision.copy(), solver.dropped.copy()
    other.put(elsewhere)
    for _ in range(2):
        solver.update_blocks()
        other.update_blocks()
    for found, wanted in zip(solver.theta, other.theta, strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(solver.rows.scores_by_sums(solver.terms, solver.theta), solver.scores(), atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("loss", ["squared_error", "logistic", "poisson", "gamma", "tweedie"])
def test_the_dispersions_of_gradients_and_pearsons(loss, weighted):
    terms, y, rng = problem(5, loss, numbers=False)
    weight = rng.uniform(0.5, 2.0, N) if weighted else PLAIN
    start = 0.3 * rng.normal(size=N)
    solver = BlockDescent(terms, y, weight, start[:, None], LOSSES[loss])
    slope, hess = grads(LOSSES[loss], start, y)
    share = weight if weighted else np.ones(N)
    wanted = np.sum(share * slope**2) / np.sum(share * hess)
    assert solver.dispersion() == pytest.approx(wanted, rel=1e-4)
    fletcher = 0.0
    if loss in ("poisson", "gamma", "tweedie"):
        mean, power = np.exp(start), {"poisson": 1, "gamma": 2, "tweedie": 1.5}[loss]
        wanted = np.sum(share * (y - mean) ** 2 / mean**power) / np.sum(share)
        fletcher = np.sum(share * power * (y - mean) / mean) / np.sum(share)
    assert solver.pearson() == (pytest.approx(wanted, rel=1e-4), pytest.approx(fletcher, rel=1e-4))


def test_blocks_that_pass_need_not_stand():
    """They move as the others do, and are not counted in how far all moved."""
    terms, y, _ = problem(3, "logistic", numbers=False)
    changes, precisions = [], []
    for passing in ((), (5,), (1, 3), (1, 2, 3, 4, 5)):
        solver = BlockDescent(terms, y, PLAIN, np.zeros((N, 1)), LOSSES["logistic"])
        evidence = VarianceComponents(solver)
        evidence.start()
        solver.update_blocks()
        changes.append(evidence.move([1, 2, 3, 4, 5], passing))
        precisions.append(solver.precision)
    assert changes[0] >= changes[1] > changes[3] == 0.0
    assert changes[0] >= changes[2]
    assert len({*changes[:3]}) > 1
    np.testing.assert_array_equal(precisions[0], precisions[3])


def test_precisions_move_as_fellner_and_schall_say():
    """By hand: 4 effective entries with a sum of squares of 2 want a precision of 2 times the dispersion."""
    evaluated = np.array([[4.0, 2.0], [0.01, 5.0], [3.0, 1e-9], [6.0, 12.0]])
    precision, moving, held = np.array([9.0, 1.0, 2.0, 5.0, 1.0]), np.empty(4), np.array([0.0, 8.0, 8.0, 6.0, 6.0])
    edf, squares = np.ascontiguousarray(evaluated.T)
    at = np.array([1, 2, 3, 4])
    move_precisions(at, edf, edf, squares, held, 1.5, 0.02, np.log(30.0), precision, moving)
    np.testing.assert_allclose(precision, [9.0, 3.0, 2.0, 150.0, 0.75])  # one is too little, one moves by the most
    np.testing.assert_allclose(moving, [np.log(3) * 4 / 2, 0.0, np.log(30) * 3 / 2, 0.0])


@pytest.mark.parametrize("few", [256, 2048], ids=["one large", "all small"])
@pytest.mark.parametrize("loss", ["squared_error", "logistic", "poisson"])
def test_blocks_are_weighed_as_by_dense_algebra(monkeypatch, loss, few):
    """Each jointly with the intercept: effective entries, held less the trace of penalty and covariance; the length."""
    monkeypatch.setattr(steps, "MAX_SMALL_SIZE", few)
    terms, y, rng = problem(3, loss, numbers=False)
    solver = BlockDescent(terms, y, PLAIN, np.zeros((N, 1)), LOSSES[loss])
    solver.precision = np.array([0.0, *rng.uniform(0.1, 20.0, len(terms) - 1)])
    for _ in range(3):
        solver.update_blocks()
    asked = [1, 2, 5, 4]  # not all of them, and in any order
    for place, (edf, length) in zip(asked, SingleOutputPosteriors(solver).evaluate(asked), strict=True):
        term, own, theta = terms[place], solver.curvature[place][:, 0], solver.theta[place][:, 0]
        prior = penalty(term, 1.0) - penalty(term, 0.0)
        whole = own.sum() if (term.codes >= 0).all() else max(own.sum(), solver.curvature[0][0, 0])
        joint = np.block([[np.array([[whole]]), own[None]], [own[:, None], np.diag(own)]])
        joint[1:, 1:] += penalty(term, solver.precision[place])
        covariance = np.linalg.pinv(joint, hermitian=True)[1:, 1:]
        wanted = term.n_penalized - solver.precision[place] * np.trace(prior @ covariance)
        assert edf == pytest.approx(wanted, rel=1e-5, abs=1e-6)
        assert length == pytest.approx(theta @ prior @ theta, rel=1e-9)


def crossed(loss="squared_error"):
    """Two blocks, and one whose entries lie within theirs."""
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, 4, N).astype(np.int32), rng.integers(0, 5, N).astype(np.int32)
    intercept = SolverTerm(0, np.zeros(N, dtype=np.int32), PLAIN, 1, Prior.FLAT)
    within = {1: np.repeat(np.arange(4), 5).astype(np.int32), 2: np.tile(np.arange(5), 4).astype(np.int32)}
    cross = SolverTerm(3, 5 * first + second, PLAIN, 20, Prior.RIDGE, within=within)
    blocks = [
        intercept,
        SolverTerm(1, first, PLAIN, 4, Prior.RIDGE),
        SolverTerm(2, second, PLAIN, 5, Prior.RIDGE),
        cross,
    ]
    y = rng.integers(0, 2, N).astype(float) if loss == "logistic" else rng.normal(size=N)
    solver = BlockDescent(blocks, y, PLAIN, np.zeros((N, 1)), LOSSES[loss])
    solver.precision = np.array([0.0, 3.0, 5.0, 2.0])
    solver.put([rng.normal(size=theta.shape) for theta in solver.theta])
    return solver


def test_what_cells_share_goes_where_it_costs_least():
    """No row moves, and no other share of it would lower the penalty more."""
    solver = crossed()
    before, scores = [theta.copy() for theta in solver.theta], solver.rows.scores_by_sums(solver.terms, solver.theta)
    recentering = solver.recentering
    gain = recentering._recenter_interaction(recentering.above(3, recentering.recentered())[0])

    def cost(shared):
        upper, cells = before[1] + shared[:, None], before[3] - np.repeat(shared, 5)[:, None]
        return 0.5 * (3.0 * np.square(upper).sum() + 2.0 * np.square(cells).sum())

    shared = (solver.theta[1] - before[1])[:, 0]
    np.testing.assert_allclose(solver.theta[3], before[3] - np.repeat(shared, 5)[:, None], atol=1e-12)
    assert gain == pytest.approx(cost(np.zeros(4)) - cost(shared))
    for other in np.random.default_rng(0).normal(scale=0.1, size=(20, 4)):
        assert cost(shared) < cost(shared + other)
    np.testing.assert_allclose(solver.rows.scores_by_sums(solver.terms, solver.theta), scores, atol=1e-12)


@pytest.mark.parametrize("prior", [Prior.RIDGE, Prior.WALK])
def test_steps_are_no_longer_than_asked(prior):
    """Of both signs, whatever they would have been; others are as they are, and parameters move with them."""
    rng = np.random.default_rng(2)
    term = SolverTerm(0, np.zeros(0, dtype=np.int32), PLAIN, 7, prior, 1)
    gradient, curvature, theta = rng.normal(size=(7, 2)), rng.uniform(0.5, 2.0, (7, 2)), rng.normal(size=(7, 2))
    whole, _ = term.step(gradient, curvature, theta.copy(), 0.7)
    assert whole.min() < -0.3 < 0.3 < whole.max()
    assert np.abs(whole).min() < 0.3
    moved = theta.copy()
    steps, _ = term.step(gradient, curvature, moved, 0.7, 0.3)
    np.testing.assert_allclose(steps, np.clip(whole, -0.3, 0.3))
    np.testing.assert_allclose(moved, theta + steps)


def test_cells_with_little_to_hand_up_wait_longer():
    relation = Relation(0, 1, np.zeros(1, dtype=np.int32), np.ones(1))
    times = []
    for update_blocks in range(40):
        if relation.is_due():
            times.append(update_blocks)
            relation.wait_on(is_small=len(times) < 6)
    assert np.diff(times)[:5].tolist() == [2, 4, MAX_WAIT, MAX_WAIT, MAX_WAIT]
    assert np.diff(times)[5:9].tolist() == [MAX_WAIT // 2, MAX_WAIT // 4, 1, 1]


@pytest.mark.parametrize(
    ("loss", "wanted"),
    [("logistic", [1, 2, 1, 1, 2, 1]), ("squared_error", [1, 2] * 4)],
    ids=["two classes", "amounts"],
)
def test_cells_hand_up_at_first_and_what_is_little_is_measured_by_the_sweep(monkeypatch, loss, wanted):
    """Of two classes; of amounts none waits."""
    solver, recentered = crossed(loss), []
    gain = {1: 2.0 * MIN_DECREASE, 2: 0.5 * MIN_DECREASE}
    monkeypatch.setattr(
        Recentering,
        "_recenter_interaction",
        lambda _, relation: recentered.append(relation.parent_term) or gain[relation.parent_term],
    )
    for _ in range(4):
        solver.recentering.recenter(1.0)
    assert recentered == wanted
    solver.drop(1)
    solver.recentering.recenter(1.0)
    wanted = wanted + [2] * (loss == "squared_error")  # 1 is silent; of classes 2 waits
    assert recentered == wanted
    solver.precision[3] = 0.0  # means of an unpenalized term are not moved
    solver.recentering.recenter(1.0)
    assert recentered == wanted


@pytest.mark.parametrize(("size", "n_missing"), [(4, 0), (4, 1), (5, 2)])
def test_what_the_prior_adds_to_posterior_samples_has_the_covariance_of_its_penalty(size, n_missing):
    """Of a walk beside missing values, by the definition of both; without rows that say anything."""
    term = SolverTerm(0, np.zeros(1, np.int32), PLAIN, size, Prior.WALK, n_missing)
    drawn = SimpleNamespace(solver=SimpleNamespace(terms=[term], precision=[3.0]))
    n_samples = 100_000
    right = PosteriorSamples._perturb(drawn, 0, np.zeros((1, n_samples)), np.random.RandomState(0))
    wanted = 3.0 * walk_beside_missing(size, n_missing)
    errors = np.sqrt((np.square(wanted) + np.outer(np.diag(wanted), np.diag(wanted))) / n_samples)
    assert (np.abs(right @ right.T / n_samples - wanted) <= 5.0 * errors + 1e-12).all()


def update_small(solver):
    """Of the others none, which are dropped."""
    solver.dropped[len(SIZES) + 1 :] = True
    solver.update_blocks()


MOVES = {
    "a large block": lambda solver: solver.update_block(5),
    "a walk": lambda solver: solver.update_block(2),
    "small blocks": update_small,
    "a block that is dropped": lambda solver: solver.drop(3),
    "other coefficients": lambda solver: solver.put([0.5 * theta for theta in solver.theta]),
    "the level": lambda solver: solver.balance(),
    "an intercept and a slope": lambda solver: solver._update_together(),
}


@pytest.mark.parametrize("kind", MOVES)
@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_posteriors_follow_every_move_of_the_rows(loss, kind):
    """What they have summed over the rows' Hessians is of the coefficients before, as new posteriors show."""
    terms, y, rng = problem(5, loss, numbers=True)
    if kind == "an intercept and a slope":
        terms.append(SolverTerm(len(terms), np.zeros(N, dtype=np.int32), rng.normal(size=N), 1, Prior.FLAT))
    solver = BlockDescent(terms, y, PLAIN, np.zeros((N, 1)), LOSSES[loss])
    solver.precision[1:7] = 2.0
    solver.update_blocks()
    posteriors = SingleOutputPosteriors(solver)
    before = posteriors.of(6).variances
    MOVES[kind](solver)
    found = posteriors.of(6).variances
    np.testing.assert_array_equal(found, SingleOutputPosteriors(solver).of(6).variances)
    assert np.abs(found / before - 1.0).max() > 1e-6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("loss", ["squared_error", "logistic", "poisson"])
def test_posteriors_by_one_column_are_joint_by_dense_algebra(loss, common, weighted):
    """Its effects and slopes, with what has no penalty, given the other blocks; not those that are dropped."""
    rng, q = np.random.default_rng(4), 7
    column = rng.integers(-1, q - 1, N).astype(np.int32)  # the last category has no row
    other = rng.integers(0, q, N).astype(np.int32)
    x, z, zeros = rng.normal(1.0, 1.0, N), rng.normal(size=N), np.zeros(N, dtype=np.int32)
    numbers = [PLAIN, *([x] if common else []), PLAIN, x, z, PLAIN, x]
    codes = [zeros] * (1 + common) + [column] * 3 + [other] * 2
    terms = [
        SolverTerm(block, own, by, 1 if own is zeros else q, Prior.FLAT if own is zeros else Prior.RIDGE)
        for block, (own, by) in enumerate(zip(codes, numbers, strict=True))
    ]
    score = 0.5 * rng.normal(size=q)[column] + 0.4 * rng.normal(size=q)[column] * x
    y = {"squared_error": score + rng.normal(size=N), "logistic": (rng.random(N) < 0.5).astype(float)}
    y = y.get(loss, rng.poisson(np.exp(score)).astype(float))
    weight = rng.uniform(0.5, 2.0, N) if weighted else PLAIN
    solver = BlockDescent(terms, y, weight, np.zeros((N, 1)), LOSSES[loss])
    first = 1 + common
    solver.precision[first:] = rng.uniform(0.3, 0.9, 5)
    for _ in range(3):
        solver.update_blocks()

    def check(families):
        posteriors = SingleOutputPosteriors(solver)
        hessian = grads(LOSSES[loss], solver.scores()[:, 0], y)[1] * (weight if weighted else 1.0)
        for family in families:
            together = [*range(first), *family]
            designs = []
            for index in together:
                term = terms[index]
                design = np.eye(term.size)[term.codes] * (term.codes >= 0)[:, None]
                designs.append(design * (term.x[:, None] if len(term.x) else 1.0))
            Z, sizes = np.column_stack(designs), [terms[index].size for index in together]
            matrix = Z.T @ (hessian[:, None] * Z) + np.diag(np.repeat(solver.precision[together], sizes))
            variances = np.split(np.diag(np.linalg.inv(matrix)), np.cumsum(sizes)[:-1])
            for index, wanted in list(zip(together, variances, strict=True))[first:]:
                found, edf = posteriors.of(index), q - solver.precision[index] * wanted.sum()
                np.testing.assert_allclose(found.variances[:, 0], wanted, rtol=1e-8)
                assert found.edf == pytest.approx(edf, rel=1e-7)
                length = np.square(solver.theta[index]).sum()
                np.testing.assert_allclose(posteriors.evaluate([index]), [[edf, length]], rtol=1e-7)

    check([[first, first + 1, first + 2], [first + 3, first + 4]])
    solver.drop(first + 1)
    check([[first, first + 2], [first + 3, first + 4]])
    solver.precision[[first, first + 2]] = 0.0  # neither rows nor a penalty tell of the last category
    found = SingleOutputPosteriors(solver).of(first)
    assert np.isinf(found.variances[:, 0]).tolist() == [False] * (q - 1) + [True]
    assert found.edf == pytest.approx(q - 1)
