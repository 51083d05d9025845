"""Turns of blocks against steps taken one after the other by dense algebra: small blocks, large ones, and numbers."""

import numpy as np
import pytest

from tabsym.losses.loss import LOSSES
from tabsym.solvers.newton import block_descent as small
from tabsym.solvers.newton.block_descent import MOST_STEP, Turns
from tabsym.solvers.newton.kernels_coefs import move_precisions
from tabsym.solvers.newton.recentering import LITTLE, MOST_WAIT, Relation, Sharing
from tabsym.solvers.newton.spreads import SpreadsOfOne
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Piece, Prior
from tabsym.solvers.newton.variances import Evidence
from tests import naive
from tests.naive_evidence import walk_beside_missing

N, PLAIN = 700, np.empty(0)
SIZES = [(1, Prior.FLAT, 0), (5, Prior.RIDGE, 0), (7, Prior.WALK, 2), (40, Prior.RIDGE, 0), (3, Prior.WALK, 0)]
LARGE = (300, Prior.RIDGE, 0)


def problem(seed, loss, *, numbers):
    """Pieces, small ones first, some rows without an entry of two; a target that the loss can tell."""
    rng = np.random.default_rng(seed)
    pieces = []
    for block, (size, prior, apart) in enumerate([*SIZES, LARGE]):
        codes = rng.integers(-1 if block in (1, 5) else 0, size, N).astype(np.int32)
        pieces.append(Piece(block, codes, PLAIN, size, prior, apart))
    if numbers:
        codes = rng.integers(0, 6, N).astype(np.int32)
        pieces.append(Piece(len(pieces), codes, rng.normal(size=N), 6, Prior.RIDGE))
    score = rng.normal(size=5)[pieces[1].codes] + 0.5 * rng.normal(size=N)
    if loss == "squared_error":
        return pieces, score, rng
    if loss == "logistic":
        return pieces, (score > 0).astype(float), rng
    return pieces, rng.poisson(np.exp(score)) + (0.1 if loss == "gamma" else 0.0), rng


def pulls(loss, score, y):
    """Slope and curvature of each row, by differences of the oracle's slope."""
    h = 1e-5
    slopes = [
        np.array([naive.slope([s + d], t, loss.name, loss.parameter)[0] for s, t in zip(score, y)]) for d in (0, h, -h)
    ]
    return slopes[0], (slopes[1] - slopes[2]) / (2 * h)


def penalty(piece, precision):
    """The matrix of a block's penalty, and its part that is no prior: what holds the level of a walk."""
    if piece.prior is Prior.FLAT:
        return np.zeros((1, 1))
    if piece.prior is Prior.RIDGE:
        return precision * np.eye(piece.size)
    level = np.diag(np.where(np.arange(piece.size) < piece.apart, 0.0, NEXT_TO_NOTHING))
    return level + precision * walk_beside_missing(piece.size, piece.apart)


class Obvious:
    """Parameters (q, W), a step of one block at a time."""

    def __init__(self, pieces, y, weight, start, loss, column, n_models):
        self.pieces, self.y, self.weight, self.start, self.loss, self.column = pieces, y, weight, start, loss, column
        self.theta = [np.zeros((piece.size, n_models)) for piece in pieces]
        self.curvature = [np.zeros((piece.size, n_models)) for piece in pieces]

    def scores(self):
        total = self.start.copy()
        for piece, theta in zip(self.pieces, self.theta, strict=True):
            own = np.where(piece.codes >= 0, theta[piece.codes, self.column], 0.0)
            total += own * (piece.x if len(piece.x) else 1.0)
        return total

    def turn(self, place, precision):
        """A step; half of what it gains by the slope."""
        piece, fall = self.pieces[place], 0.0
        slope, bend = pulls(self.loss, self.scores(), self.y)
        x = piece.x if len(piece.x) else np.ones(N)
        for model in range(self.theta[place].shape[1]):
            matrix, right = penalty(piece, precision), -penalty(piece, precision) @ self.theta[place][:, model]
            for e in range(piece.size):
                rows = (piece.codes == e) & (self.column == model)
                right[e] -= np.sum((self.weight * slope * x)[rows])
                self.curvature[place][e, model] = np.sum((self.weight * bend * x**2)[rows])
                matrix[e, e] += self.curvature[place][e, model]
            most = np.inf if self.loss.name == "squared_error" else MOST_STEP
            step = np.clip(np.linalg.solve(matrix, right), -most, most)
            self.theta[place][:, model] += step
            fall += 0.5 * np.sum(np.abs(step * right))
        return fall


@pytest.mark.parametrize("numbers", [False, True], ids=["plain", "numbers"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("n_models", [1, 2])
@pytest.mark.parametrize("few", [256, 2048], ids=["one large", "all small"])
@pytest.mark.parametrize("loss", ["squared_error", "logistic", "poisson", "gamma", "tweedie"])
def test_sweeps_are_steps_one_after_the_other(monkeypatch, loss, few, n_models, weighted, numbers):
    monkeypatch.setattr(small, "FEW_FOR_CALLS", few)
    monkeypatch.setattr(Sharing, "hand_up", lambda sharing, fall: None)
    pieces, y, rng = problem(n_models, loss, numbers=numbers)
    weight = rng.uniform(0.5, 2.0, N) if weighted else PLAIN
    start = 0.3 * rng.normal(size=N)
    column = rng.integers(0, n_models, N).astype(np.int8)
    precisions = [0.0, *rng.uniform(0.1, 20.0, len(pieces) - 1)]
    turns = Turns(pieces, y, weight, start[:, None], LOSSES[loss], *([column, 2] if n_models == 2 else []))
    turns.precision = np.array(precisions)
    ones = weight if weighted else np.ones(N)
    oracle = Obvious(pieces, y, ones, start, LOSSES[loss], column, n_models)
    for silent in ([], [], [3], [0, 1, 2, 3, 4], [4], []):
        turns.silent = np.array([place in silent for place in range(len(pieces))])
        fall = sum(oracle.turn(place, precisions[place]) for place in range(len(pieces)) if place not in silent)
        assert turns.sweep() * turns.total == pytest.approx(fall, rel=1e-4, abs=1e-6)
        for place, (found, wanted) in enumerate(zip(turns.theta, oracle.theta, strict=True)):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{place}")
        for place, (found, wanted) in enumerate(zip(turns.curvature, oracle.curvature, strict=True)):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=f"{place}")
    np.testing.assert_allclose(turns.scores()[:, 0], oracle.scores(), atol=1e-5)


def test_small_blocks_are_silenced_and_put_elsewhere():
    """Their parameters are parts of one array, which all that changes them has to change."""
    pieces, y, rng = problem(0, "poisson", numbers=False)
    turns = Turns(pieces, y, PLAIN, np.zeros((N, 1)), LOSSES["poisson"])
    turns.precision = np.array([0.0, *[1.0] * (len(pieces) - 1)])
    turns.sweep()
    turns.silence(1)
    assert not turns.theta[1].any()
    before = turns.scores()
    np.testing.assert_allclose(turns.rows.scores_by_sums(turns.pieces, turns.theta), before, atol=1e-12)
    elsewhere = [rng.normal(size=theta.shape) for theta in turns.theta]
    turns.put(elsewhere)
    other = Turns(pieces, y, PLAIN, np.zeros((N, 1)), LOSSES["poisson"])
    other.precision, other.silent = turns.precision.copy(), turns.silent.copy()
    other.put(elsewhere)
    for _ in range(2):
        turns.sweep()
        other.sweep()
    for found, wanted in zip(turns.theta, other.theta, strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(turns.rows.scores_by_sums(turns.pieces, turns.theta), turns.scores(), atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("loss", ["squared_error", "logistic", "poisson", "gamma", "tweedie"])
def test_the_dispersions_of_gradients_and_pearsons(loss, weighted):
    pieces, y, rng = problem(5, loss, numbers=False)
    weight = rng.uniform(0.5, 2.0, N) if weighted else PLAIN
    start = 0.3 * rng.normal(size=N)
    turns = Turns(pieces, y, weight, start[:, None], LOSSES[loss])
    slope, bend = pulls(LOSSES[loss], start, y)
    share = weight if weighted else np.ones(N)
    wanted = np.sum(share * slope**2) / np.sum(share * bend)
    assert turns.dispersion() == pytest.approx(wanted, rel=1e-4)
    if loss in ("poisson", "gamma", "tweedie"):
        mean, power = np.exp(start), {"poisson": 1, "gamma": 2, "tweedie": 1.5}[loss]
        wanted = np.sum(share * (y - mean) ** 2 / mean**power) / np.sum(share)
    assert turns.pearson() == pytest.approx(wanted, rel=1e-4)


def test_blocks_that_pass_need_not_stand():
    """They move as the others do, and are not counted in how far all moved."""
    pieces, y, _ = problem(3, "logistic", numbers=False)
    changes, precisions = [], []
    for passing in ((), (5,), (1, 3), (1, 2, 3, 4, 5)):
        turns = Turns(pieces, y, PLAIN, np.zeros((N, 1)), LOSSES["logistic"])
        evidence = Evidence(turns)
        evidence.start()
        turns.sweep()
        changes.append(evidence.move([1, 2, 3, 4, 5], passing))
        precisions.append(turns.precision)
    assert changes[0] >= changes[1] > changes[3] == 0.0
    assert changes[0] >= changes[2]
    assert len({*changes[:3]}) > 1
    np.testing.assert_array_equal(precisions[0], precisions[3])


def test_precisions_move_as_fellner_and_schall_say():
    """By hand: 4 effective entries with a sum of squares of 2 want a precision of 2 times the dispersion."""
    weighed = np.array([[4.0, 2.0], [0.01, 5.0], [3.0, 1e-9], [6.0, 12.0]])
    precision, moving, held = np.array([9.0, 1.0, 2.0, 5.0, 1.0]), np.empty(4), np.array([0.0, 8.0, 8.0, 6.0, 6.0])
    move_precisions(np.array([1, 2, 3, 4]), weighed, held, 1.5, 0.02, np.log(30.0), precision, moving)
    np.testing.assert_allclose(precision, [9.0, 3.0, 2.0, 150.0, 0.75])  # one is too little, one moves by the most
    np.testing.assert_allclose(moving, [np.log(3) * 4 / 2, 0.0, np.log(30) * 3 / 2, 0.0])


@pytest.mark.parametrize("few", [256, 2048], ids=["one large", "all small"])
@pytest.mark.parametrize("loss", ["squared_error", "logistic", "poisson"])
def test_blocks_are_weighed_as_by_dense_algebra(monkeypatch, loss, few):
    """Each jointly with the intercept: effective entries, held less the trace of penalty and covariance; the length."""
    monkeypatch.setattr(small, "FEW_FOR_CALLS", few)
    pieces, y, rng = problem(3, loss, numbers=False)
    turns = Turns(pieces, y, PLAIN, np.zeros((N, 1)), LOSSES[loss])
    turns.precision = np.array([0.0, *rng.uniform(0.1, 20.0, len(pieces) - 1)])
    for _ in range(3):
        turns.sweep()
    asked = [1, 2, 5, 4]  # not all of them, and in any order
    for place, (effective, length) in zip(asked, SpreadsOfOne(turns).weigh(asked), strict=True):
        piece, own, theta = pieces[place], turns.curvature[place][:, 0], turns.theta[place][:, 0]
        prior = penalty(piece, 1.0) - penalty(piece, 0.0)
        whole = own.sum() if (piece.codes >= 0).all() else max(own.sum(), turns.curvature[0][0, 0])
        joint = np.block([[np.array([[whole]]), own[None]], [own[:, None], np.diag(own)]])
        joint[1:, 1:] += penalty(piece, turns.precision[place])
        covariance = np.linalg.pinv(joint, hermitian=True)[1:, 1:]
        wanted = piece.held - turns.precision[place] * np.trace(prior @ covariance)
        assert effective == pytest.approx(wanted, rel=1e-5, abs=1e-6)
        assert length == pytest.approx(theta @ prior @ theta, rel=1e-9)


def crossed(loss="squared_error"):
    """Two blocks, and one whose entries lie within theirs."""
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, 4, N).astype(np.int32), rng.integers(0, 5, N).astype(np.int32)
    intercept = Piece(0, np.zeros(N, dtype=np.int32), PLAIN, 1, Prior.FLAT)
    within = {1: np.repeat(np.arange(4), 5).astype(np.int32), 2: np.tile(np.arange(5), 4).astype(np.int32)}
    cross = Piece(3, 5 * first + second, PLAIN, 20, Prior.RIDGE, within=within)
    blocks = [intercept, Piece(1, first, PLAIN, 4, Prior.RIDGE), Piece(2, second, PLAIN, 5, Prior.RIDGE), cross]
    y = rng.integers(0, 2, N).astype(float) if loss == "logistic" else rng.normal(size=N)
    turns = Turns(blocks, y, PLAIN, np.zeros((N, 1)), LOSSES[loss])
    turns.precision = np.array([0.0, 3.0, 5.0, 2.0])
    turns.put([rng.normal(size=theta.shape) for theta in turns.theta])
    return turns


def test_what_cells_share_goes_where_it_costs_least():
    """No row moves, and no other share of it would lower the penalty more."""
    turns = crossed()
    before, scores = [theta.copy() for theta in turns.theta], turns.rows.scores_by_sums(turns.pieces, turns.theta)
    gain = turns.sharing._hand_up_cells(turns.sharing.above(3)[0])

    def cost(shared):
        upper, cells = before[1] + shared[:, None], before[3] - np.repeat(shared, 5)[:, None]
        return 0.5 * (3.0 * np.square(upper).sum() + 2.0 * np.square(cells).sum())

    shared = (turns.theta[1] - before[1])[:, 0]
    np.testing.assert_allclose(turns.theta[3], before[3] - np.repeat(shared, 5)[:, None], atol=1e-12)
    assert gain == pytest.approx(cost(np.zeros(4)) - cost(shared))
    for other in np.random.default_rng(0).normal(scale=0.1, size=(20, 4)):
        assert cost(shared) < cost(shared + other)
    np.testing.assert_allclose(turns.rows.scores_by_sums(turns.pieces, turns.theta), scores, atol=1e-12)


@pytest.mark.parametrize("prior", [Prior.RIDGE, Prior.WALK])
def test_steps_are_no_longer_than_asked(prior):
    """Of both signs, whatever they would have been; others are as they are, and parameters move with them."""
    rng = np.random.default_rng(2)
    piece = Piece(0, np.zeros(0, dtype=np.int32), PLAIN, 7, prior, 1)
    gradient, curvature, theta = rng.normal(size=(7, 2)), rng.uniform(0.5, 2.0, (7, 2)), rng.normal(size=(7, 2))
    whole, _ = piece.step(gradient, curvature, theta.copy(), 0.7)
    assert whole.min() < -0.3 < 0.3 < whole.max()
    assert np.abs(whole).min() < 0.3
    moved = theta.copy()
    steps, _ = piece.step(gradient, curvature, moved, 0.7, 0.3)
    np.testing.assert_allclose(steps, np.clip(whole, -0.3, 0.3))
    np.testing.assert_allclose(moved, theta + steps)


def test_cells_with_little_to_hand_up_wait_longer():
    relation = Relation(0, 1, np.zeros(1, dtype=np.int32), np.ones(1))
    times = []
    for sweep in range(40):
        if relation.is_due():
            times.append(sweep)
            relation.wait_on(is_little=len(times) < 6)
    assert np.diff(times)[:5].tolist() == [2, 4, MOST_WAIT, MOST_WAIT, MOST_WAIT]
    assert np.diff(times)[5:9].tolist() == [MOST_WAIT // 2, MOST_WAIT // 4, 1, 1]


@pytest.mark.parametrize(
    ("loss", "wanted"),
    [("logistic", [1, 2, 1, 1, 2, 1]), ("squared_error", [1, 2] * 4)],
    ids=["two classes", "amounts"],
)
def test_cells_hand_up_at_first_and_what_is_little_is_measured_by_the_sweep(monkeypatch, loss, wanted):
    """Of two classes; of amounts none waits."""
    turns, handed = crossed(loss), []
    gain = {1: 2.0 * LITTLE, 2: 0.5 * LITTLE}
    monkeypatch.setattr(
        Sharing, "_hand_up_cells", lambda _, relation: handed.append(relation.other) or gain[relation.other]
    )
    for _ in range(4):
        turns.sharing.hand_up(1.0)
    assert handed == wanted
    turns.silence(1)
    turns.sharing.hand_up(1.0)
    wanted = wanted + [2] * (loss == "squared_error")  # 1 is silent; of classes 2 waits
    assert handed == wanted
    turns.precision[3] = 0.0  # what nothing holds back has nothing to hand up
    turns.sharing.hand_up(1.0)
    assert handed == wanted
