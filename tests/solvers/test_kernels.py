"""The kernels against the slow oracle, and identities."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_softmax, softmax
from sklearn.linear_model import SGDClassifier

from tabsym.categories import CodeMatrix, Cross
from tabsym.design.model_spec import Block, Factor, ModelSpec, Rows, Term
from tabsym.design.sources import Bins
from tabsym.losses.loss import LOSSES, best_constant, deviance_and_likelihood, settled_shift
from tabsym.solvers.sgd.loop import Task, train
from tabsym.solvers.sgd.options import SGD, Adagrad, Adam, Options, RMSprop
from tests.oracles import online as naive

RATE = 0.1
RULES = {
    "sgd": (SGD(), {}),
    "momentum": (SGD(momentum=0.8), {"momentum": 0.8}),
    "nesterov": (SGD(momentum=0.8, nesterov=True), {"momentum": 0.8, "nesterov": True}),
    "adagrad": (Adagrad(0.3), {"start": 0.3}),
    "rmsprop": (RMSprop(alpha=0.9), {"alpha": 0.9, "eps": 1e-8}),
    "adam": (Adam(), {"eps": 1e-8}),
}
FAMILY = {"momentum": "sgd", "nesterov": "sgd"}


def oracle_rule(name, rate=RATE, **changes):
    return naive.Rule(FAMILY.get(name, name), rate, **(RULES[name][1] | changes))


# The programs: terms as the oracle reads them, and the same as products. Entries 0-3 and 4-9 are the two
# columns' symbols, 10 and 11 scalars, 12 an intercept.
ADDITIVE = [
    (1.0, None, [("code", 0, 0)]),
    (1.0, None, [("code", 1, 0)]),
    (1.0, 0, [("fixed", 10)]),
    (1.0, 1, [("fixed", 11)]),
    (1.0, None, [("fixed", 12)]),
]
PRODUCTS = [
    (1.0, 0, [("code", 0, 0), ("code", 1, 0)]),
    (-0.5, None, [("code", 1, 0), ("fixed", 10)]),
    (1.0, 1, [("fixed", 11)]),
    (1.0, None, [("fixed", 12)]),
]
SHARED = [  # one block read by two columns, and squared
    (1.0, None, [("code", 0, 0)]),
    (-1.0, None, [("code", 2, 0)]),
    (0.3, None, [("code", 0, 0), ("code", 0, 0)]),
    (1.0, None, [("fixed", 12)]),
]
PROGRAMS = {"additive": ADDITIVE, "products": PRODUCTS, "shared": SHARED}


def compiled(terms):
    blocks = {0: 0, 1: 1, 2: 0}  # code column -> block: columns 0 and 2 read the same one
    sources = tuple(Bins(name, np.arange(size - 1.0), ("",) * size, False) for name, size in (("a", 4), ("b", 6)))
    scalars = [Block(str(entry), None, ()) for entry in (10, 11, 12)]

    def factor(s):
        return Factor(s[1] - 8, ()) if s[0] == "fixed" else Factor(blocks[s[1]], (f"column {s[1]}",), s[2])

    products = tuple(Term(constant, column, tuple(factor(s) for s in slots)) for constant, column, slots in terms)
    spec = ModelSpec(sources, (Block("a", 0, ("a",)), Block("b", 1, ("b",)), *scalars), (), products)
    return spec.compile([term.constant for term in products])


def problem(loss, n=23, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, 4, n), 4 + rng.integers(0, 6, n), rng.integers(0, 4, n)]).astype(np.int32)
    x = rng.normal(size=(n, 2))
    targets = {
        "squared_error": rng.normal(size=n),
        "logistic": rng.integers(0, 2, n),
        "multinomial": rng.integers(0, 3, n),
    }
    return codes, x, targets[loss].astype(float)


def kernel_train(terms, codes, x, y, theta, loss, options, *, weight=None, offset=None):
    """Train through the kernels: parameters (entries, K) after it."""
    spec = compiled(terms)
    empty = np.empty(0)
    relative = empty if weight is None else weight / weight.mean()
    rows = Rows(
        np.ascontiguousarray(codes[:, [int(read.columns[0].removeprefix("column ")) for read in spec.reads]]),
        np.ascontiguousarray(x[:, spec.numerics]),
        y,
        relative,
        empty if offset is None else offset,
    )
    n_outputs = theta.shape[1]
    task = Task(spec.program, LOSSES[loss], n_outputs)
    coef_weight = empty
    if weight is not None:
        coef_weight = np.ones(13) if options.is_dense else mean_weights_of_entries(rows.codes, relative)
    state = options.columns.blank(theta.ravel())
    state = train(rows, coef_weight, state, task, options, np.random.RandomState(0)).state
    return state[:, options.columns.predicted].reshape(-1, n_outputs)


def mean_weights_of_entries(codes, weight):
    """The mean weight of the rows that select each entry."""
    rows = [{coef for coef in row if coef >= 0} for row in codes.tolist()]
    own = [[weight[i] for i, row in enumerate(rows) if coef in row] for coef in range(13)]
    return np.array([np.mean(values) if values else 1.0 for values in own])


def starting(n_outputs, seed=5):
    return np.random.default_rng(seed).normal(0.5, 0.3, (13, n_outputs))


def both(terms, rule, *, loss="logistic", weighted=False, offset=None, rate=RATE, seed=0, **changes):
    """The same training by the kernels and by the oracle."""
    codes, x, y = problem(loss, seed=seed)
    theta = starting(3 if loss == "multinomial" else 1)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    base = {"learning_rate": RATE, "gradient": "gse", "batch_size": 1, "epochs": 3, "shuffle": False}
    base["divergence"] = np.inf
    options = Options(RULES[rule][0], **(base | changes))
    got = kernel_train(terms, codes, x, y, theta, loss, options, weight=weight, offset=offset)
    want = naive.train(
        codes, x, y, terms, theta, loss=loss, rule=oracle_rule(rule, rate, l1=options.l1, l2=options.l2),
        gradient=options.gradient, batch=options.batch_size or len(y), weight=weight, offset=offset,
        epochs=options.epochs, average=options.average,
    )  # fmt: skip
    return got, want


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gradient", ["gse", "mean"])
@pytest.mark.parametrize("batch", [1, 5, None])
@pytest.mark.parametrize("program", PROGRAMS)
def test_training_equals_the_oracle(program, rule, gradient, batch):
    got, want = both(PROGRAMS[program], rule, gradient=gradient, batch_size=batch)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_error", "logistic", "multinomial"])
@pytest.mark.parametrize("gradient", ["gse", "mean"])
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"l2": 0.05}, {"l1": 0.02, "weighted": True}])
def test_losses_weights_and_penalties_equal_the_oracle(loss, gradient, batch, program, options):
    for rule in ("adam", "rmsprop"):
        got, want = both(PROGRAMS[program], rule, loss=loss, gradient=gradient, batch_size=batch, **options)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gradient", ["gse", "mean"])
@pytest.mark.parametrize("batch", [1, 5])
def test_running_means_equal_the_oracle(rule, gradient, batch):
    got, want = both(PRODUCTS, rule, gradient=gradient, batch_size=batch, average=True)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gradient", ["gse", "mean"])
@pytest.mark.parametrize("schedule", ["invscaling", "optimal"])
def test_schedules_equal_the_oracle(rule, gradient, schedule):
    start = SGDClassifier(alpha=0.02, loss="log_loss")  # scikit-learn's t0, by its formula
    typical = np.sqrt(1.0 / np.sqrt(start.alpha))
    t0 = 1.0 / (typical / max(1.0, 1 / (1 + np.exp(-typical))) * start.alpha)
    rate = (lambda t: RATE / t**0.4) if schedule == "invscaling" else (lambda t: 1 / (0.02 * (t0 + t - 1)))
    got, want = both(ADDITIVE, rule, gradient=gradient, schedule=schedule, power_t=0.4, l2=0.02, rate=rate)
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_offsets_are_added_to_the_score():
    offset = np.random.default_rng(9).normal(size=23)
    got, want = both(PRODUCTS, "sgd", loss="squared_error", offset=offset)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    assert not np.allclose(got, both(PRODUCTS, "sgd", loss="squared_error")[0])


@pytest.mark.parametrize("rule", RULES)
def test_the_lasso_is_reached_by_every_optimizer(rule):
    """A number by symbol, under "mean": the optimum is its mean, shrunken by the penalty over its share of rows."""
    rng = np.random.default_rng(0)
    codes = np.repeat([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [60, 30, 10], axis=0).astype(np.int32)
    y = np.repeat([2.0, -0.5, 0.4], [60, 30, 10]) + rng.normal(0, 0.1, 100)
    penalty = 0.06
    options = Options(
        RULES[rule][0], learning_rate=0.02 if rule in ("adam", "rmsprop") else 0.3, gradient="mean", batch_size=None,
        epochs=20_000, l1=penalty, shuffle=False,
    )  # fmt: skip
    terms = [(1.0, None, [("code", 0, 0)])]
    got = kernel_train(terms, codes, np.zeros((100, 2)), y, np.zeros((13, 1)), "squared_error", options)[:3, 0]
    means, shares = np.array([y[codes[:, 0] == k].mean() for k in range(3)]), np.array([0.6, 0.3, 0.1])
    want = np.sign(means) * np.maximum(np.abs(means) - penalty / shares, 0.0)
    np.testing.assert_allclose(got, want, atol=2e-3)


@pytest.mark.parametrize("name", list(LOSSES))
def test_slopes_are_derivatives_of_the_losses(name):
    loss = LOSSES[name]
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.normal(size=3 if name == "multinomial" else 1)
        y = float(rng.integers(0, 2)) if loss.for_classes else rng.gamma(2.0)
        assert loss.values(scores[None, :], np.array([y]))[0] == pytest.approx(
            naive.loss_value(scores, y, name, loss.parameter), rel=1e-9
        )
        if name == "multinomial":
            continue  # its slope is compared by training
        value, got, hess = (part[0] for part in loss.rows(scores[None, :1], np.array([y])))
        if name in ("squared_error", "logistic", "poisson", "gamma", "tweedie"):
            slopes = [naive.slope(scores + step, y, name, loss.parameter)[0] for step in (1e-4, -1e-4)]
            assert hess == pytest.approx((slopes[0] - slopes[1]) / 2e-4, rel=1e-4, abs=1e-6)
        assert value == pytest.approx(naive.loss_value(scores, y, name, loss.parameter), rel=1e-9, abs=1e-12)
        assert got == pytest.approx(naive.slope(scores, y, name, loss.parameter)[0], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_the_best_constant_is_best(name):
    loss = LOSSES[name]
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 500).astype(float) if loss.for_classes else rng.gamma(2.0, size=500)
    k = 2 if name == "multinomial" else 1
    best = best_constant(loss, y, None, k, None)

    def mean_loss(margin):
        return loss.values(np.tile(margin, (len(y), 1)), y).mean()

    for step in (-0.05, 0.05):
        moved = best.copy()
        moved[0] += step
        assert mean_loss(best) <= mean_loss(moved) + 1e-9


OFFSETS = {"none": (0.0, 0.0), "equal": (0.7, 0.0), "differing": (0.0, 2.0)}


@pytest.mark.parametrize("offsets", OFFSETS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [name for name in LOSSES if name != "multinomial"])
def test_the_best_constant_beside_offsets_is_best(name, weighted, offsets):
    """Of the values that the definition of the loss has on a grid none is lower."""
    loss, rng, n = LOSSES[name], np.random.default_rng(1), 200
    y = rng.integers(0, 2, n).astype(float) if loss.for_classes else rng.gamma(2.0, size=n)
    mean, spread = OFFSETS[offsets]
    offset = mean + spread * rng.normal(size=n)
    weight = np.where(y > np.median(y), 3.0, 1.0) * rng.gamma(2.0, size=n) if weighted else None

    def mean_loss(constant):
        values = [naive.loss_value([o + constant], t, name, loss.parameter) for o, t in zip(offset, y, strict=True)]
        return np.average(values, weights=weight)

    best = best_constant(loss, y, weight, 1, None if offsets == "none" else offset[:, None])[0]
    assert mean_loss(best) <= min(mean_loss(constant) for constant in np.linspace(-6.0, 6.0, 241)) + 1e-9


@pytest.mark.parametrize("apart", [2.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_constants_of_three_classes_beside_offsets_predict_their_shares(weighted, apart):
    """For softmax the gradient of the mean loss is the mean probability of a class less its share; their mean is 0."""
    rng, n = np.random.default_rng(1), 200
    y, offset = rng.integers(0, 3, n).astype(float), rng.normal(size=(n, 3)) + apart * np.array([0.0, 1.0, -1.0])
    weight = rng.gamma(2.0, size=n) + (y == 1) if weighted else None
    best = best_constant(LOSSES["multinomial"], y, weight, 3, offset)
    predicted = np.average(softmax(offset + best, axis=1), axis=0, weights=weight)
    np.testing.assert_allclose(predicted, np.bincount(y.astype(int), weight) / (n if weight is None else weight.sum()))
    assert best.mean() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["poisson", "tweedie"])
def test_where_all_targets_are_0_predictions_are_1_at_most(name):
    """The loss falls towards minus infinity: the constant is one for which the largest linear predictor is 0."""
    offset = np.array([[-1.0], [2.0], [0.5]])
    zeros, one, loss = np.zeros(3), np.array([0.0, 4.0, 0.0]), LOSSES[name]
    assert best_constant(loss, zeros, None, 1, None).tolist() == [0.0]
    for y, weight in ((zeros, None), (zeros, np.array([1.0, 2.0, 3.0])), (one, np.array([1.0, 0.0, 1.0]))):
        assert best_constant(loss, y, weight, 1, offset).tolist() == [-2.0]


@pytest.mark.parametrize(("name", "y"), [("logistic", 0.0), ("logistic", 1.0), ("poisson", 0.0)])
def test_rows_of_one_class_and_counts_of_0_are_shifted_nowhere(name, y):
    """The shift by which predictions would sum to them is infinite; a class without a row counts as half a row."""
    offset, targets, loss = np.array([[0.5], [-1.0], [2.0], [0.0]]), np.full(4, y), LOSSES[name]
    assert settled_shift(loss, offset, targets, None).tolist() == [0.0]
    assert settled_shift(loss, offset, targets, np.ones(4)).tolist() == [0.0]
    if name == "logistic":
        wanted = [np.log(4.5 / 0.5) * (1.0 if y else -1.0)]
        for given in (None, offset):
            np.testing.assert_allclose(best_constant(loss, targets, None, 1, given), wanted)
            np.testing.assert_allclose(best_constant(loss, targets, np.full(4, 3.0), 1, given), wanted)


def test_a_class_without_rows_is_left_where_it_is():
    """Shifts of the others are those of the model without it."""
    rng = np.random.default_rng(0)
    y, margins = rng.choice([0.0, 2.0], 50), rng.normal(size=(50, 3))
    margins[:, 1] = -40.0  # of no probability to speak of
    shift, two = (
        settled_shift(LOSSES["multinomial"], margins, y, None),
        settled_shift(LOSSES["logistic"], margins[:, [2]] - margins[:, [0]], (y == 2).astype(float), None),
    )
    assert shift[1] == 0.0 and shift[2] - shift[0] == pytest.approx(two[0], rel=1e-6)


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["squared_error", "poisson", "gamma", "logistic", "multinomial", "tweedie"])
def test_the_likelihood_is_that_of_the_distribution(name, weighted, copied):
    """scipy's, of each copy of a row with its part of the weight; a gamma variable's by the dispersion over the weight.

    That of a normal variable at the variance which fits best. There is none for Tweedie's.
    """
    rng, n, dispersion = np.random.default_rng(0), 60, 0.4
    times = rng.integers(1, 4, n) if copied else np.ones(n, dtype=int)
    weight = rng.gamma(2.0, size=n) * times if weighted else times.astype(float)
    weight *= times.sum() / weight.sum()
    loss, margins = LOSSES[name], rng.normal(size=(n, 3 if name == "multinomial" else 1))
    each, index = (weight / times)[np.repeat(np.arange(n), times)], np.repeat(np.arange(n), times)
    mean = np.exp(margins[index, 0])
    y = rng.poisson(2.0, n) if name == "poisson" else rng.gamma(2.0, size=n)
    y = rng.integers(0, 3 if name == "multinomial" else 2, n).astype(float) if loss.for_classes else y.astype(float)
    if name == "squared_error":
        variance = np.average((y - margins[:, 0]) ** 2, weights=weight)
        wanted = stats.norm.logpdf(y[index], margins[index, 0], np.sqrt(variance / each)).sum()
    elif name == "poisson":
        wanted = each @ stats.poisson.logpmf(y[index], mean)
    elif name == "gamma":
        shape = each / dispersion
        wanted = stats.gamma.logpdf(y[index], shape, scale=mean / shape).sum()
    elif name == "tweedie":
        wanted = np.nan
    else:
        scores = np.column_stack([np.zeros(n), margins]) if name == "logistic" else margins
        wanted = weight @ log_softmax(scores, axis=1)[np.arange(n), y.astype(int)]
    given = weight if weighted or copied else None
    found = deviance_and_likelihood(loss, margins, y, given, dispersion, times if copied else None)[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_first_epoch_by_hand():
    """Two rows, one column, squared loss, sgd at rate .5 from 0: worked on paper."""
    codes = np.array([[0, 0, 0], [1, 0, 0]], dtype=np.int32)
    terms = [(1.0, None, [("code", 0, 0)]), (1.0, None, [("fixed", 12)])]
    options = Options(SGD(), learning_rate=0.5, shuffle=False)
    out = kernel_train(
        terms, codes, np.zeros((2, 2)), np.array([1.0, 3.0]), np.zeros((13, 1)), "squared_error", options
    )
    # row 1: residual -1 -> w0 = .5, b = .5; row 2: residual .5 - 3 = -2.5 -> w1 = 1.25, b = 1.75
    np.testing.assert_allclose(out[[0, 1, 12], 0], [0.5, 1.25, 1.75])


def test_a_row_that_selects_an_entry_twice_counts_it_once():
    """w[home] - w[away] with home = away in one of two rows of a batch: worked on paper."""
    codes = np.array([[0, 0, 0], [0, 0, 1]], dtype=np.int32)
    terms = [(1.0, None, [("code", 0, 0)]), (-1.0, None, [("code", 2, 0)])]
    options = Options(SGD(), learning_rate=1.0, shuffle=False, batch_size=2)
    out = kernel_train(
        terms, codes, np.zeros((2, 2)), np.array([5.0, 2.0]), np.zeros((13, 1)), "squared_error", options
    )
    # slopes -5 and -2; entry 0: row 1 gives -5 + 5 = 0, row 2 -2, over 2 rows: moves by 1; entry 1: +2 over one row
    np.testing.assert_allclose(out[:2, 0], [1.0, -2.0])


def test_integer_weights_equal_repeated_rows_in_full_batches():
    codes, x, y = problem("logistic")
    times = np.random.default_rng(2).integers(1, 4, len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), times.astype(int))
    for gradient in ("gse", "mean"):
        options = Options(Adagrad(), learning_rate=RATE, batch_size=None, epochs=5, gradient=gradient, shuffle=False)
        once = kernel_train(PRODUCTS, codes, x, y, starting(1), "logistic", options, weight=times)
        repeated = kernel_train(PRODUCTS, codes[rows], x[rows], y[rows], starting(1), "logistic", options)
        np.testing.assert_allclose(once, repeated, rtol=1e-12, atol=1e-14)


def test_rare_symbols_take_the_steps_they_missed():
    """A symbol seen in the first and the last of 3,000 rows: Adam's dense sequence, not made densely."""
    codes = np.ones((3000, 3), dtype=np.int32)
    codes[[0, -1], 0] = 0
    y = np.random.default_rng(0).normal(size=3000)
    terms = [(1.0, None, [("code", 0, 0)]), (1.0, None, [("fixed", 12)])]
    for rule in ("adam", "momentum", "rmsprop"):
        options = Options(RULES[rule][0], learning_rate=0.01, gradient="mean", shuffle=False)
        got = kernel_train(terms, codes, np.zeros((3000, 2)), y, np.zeros((13, 1)), "squared_error", options)
        want = naive.train(
            codes, np.zeros((3000, 2)), y, terms, np.zeros((13, 1)), loss="squared_error", rule=oracle_rule(rule, 0.01),
            gradient="mean", batch=1,
        )  # fmt: skip
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"])
@pytest.mark.parametrize("batch", [1, 7])
def test_the_mean_is_the_sequence_of_torch(rule, batch):
    import torch

    codes, x, y = problem("logistic", n=60)
    theta = starting(1)
    options = Options(RULES[rule][0], learning_rate=RATE, gradient="mean", batch_size=batch, epochs=2, shuffle=False)
    got = kernel_train(PRODUCTS, codes, x, y, theta, "logistic", options)
    categories = torch.tensor(theta[:10, 0], requires_grad=True)
    scalars = torch.tensor(theta[10:, 0], requires_grad=True)
    made = {
        "sgd": lambda p: torch.optim.SGD(p, lr=RATE),
        "momentum": lambda p: torch.optim.SGD(p, lr=RATE, momentum=0.8),
        "nesterov": lambda p: torch.optim.SGD(p, lr=RATE, momentum=0.8, nesterov=True),
        "adagrad": lambda p: torch.optim.Adagrad(p, lr=RATE, initial_accumulator_value=0.3),
        "rmsprop": lambda p: torch.optim.RMSprop(p, lr=RATE, alpha=0.9),
        "adam": lambda p: torch.optim.Adam(p, lr=RATE),
    }[rule]([categories, scalars])
    c, xs, target = torch.tensor(codes.astype(np.int64)), torch.tensor(x), torch.tensor(y)
    for _ in range(2):
        for first in range(0, 60, batch):
            i = slice(first, first + batch)
            a, b = categories[c[i, 0]], categories[c[i, 1]]
            score = a * b * xs[i, 0] - 0.5 * b * scalars[0] + scalars[1] * xs[i, 1] + scalars[2]
            made.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(score, target[i]).backward()
            made.step()
    want = torch.cat([categories, scalars]).detach().numpy()
    np.testing.assert_allclose(got[:, 0], want, rtol=1e-10, atol=1e-12)


pairs = st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 3)), max_size=60)


@settings(deadline=None)
@given(pairs, pairs)
def test_crosses_number_pairs_like_a_dictionary(first, second):
    known: dict = {}

    def oracle(rows, grow):
        codes = []
        for row in rows:
            if min(row) < 0 or (row not in known and not grow):
                codes.append(-1)
            else:
                codes.append(known.setdefault(row, len(known)))
        return codes

    def columns(rows):
        array = np.array(rows, dtype=np.int32).reshape(-1, 2)
        return np.ascontiguousarray(array[:, 0]), np.ascontiguousarray(array[:, 1])

    cross, codes = Cross.fit(*columns(first))
    assert codes.tolist() == oracle(first, True)
    assert cross.transform(*columns(second)).tolist() == oracle(second, False)
    grown, codes = cross.grow(*columns(second))
    assert codes.tolist() == oracle(second, True)
    assert len(grown) == len(known)
    assert list(zip(*(part.tolist() for part in grown.pairs()))) == list(known)


def test_many_pairs_survive_the_growth_of_the_table():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 500, 20_000).astype(np.int32), rng.integers(0, 500, 20_000).astype(np.int32)
    cross, codes = Cross.fit(left, right)
    back_left, back_right = cross.pairs()
    assert (back_left[codes] == left).all()
    assert (back_right[codes] == right).all()
    assert len(cross) == len(set(zip(left.tolist(), right.tolist())))


def test_code_matrix_is_one_hot_without_zeros():
    matrix = CodeMatrix.assemble([np.array([0, 1, -1]), np.array([1, 1, 0])], [2, 2], 3)
    assert matrix.to_csr().toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]]
    assert matrix.counts().tolist() == [1, 1, 1, 2]


@pytest.mark.slow
def test_a_first_fit_says_that_kernels_are_compiled_and_a_second_process_has_none(tmp_path):
    """In a folder without compiled kernels; the warning is at the user's line."""
    script = tmp_path / "first.py"
    script.write_text(
        "import warnings\n"
        "warnings.simplefilter('always')\n"
        "from tabsym.jit import CompilationNotice\n"
        "CompilationNotice.PATIENCE = 0.0\n"
        "import pandas as pd\n"
        "from tabsym import MODLEncoder\n"
        "X, y = pd.DataFrame({'a': ['p', 'q'] * 40, 'b': [0.5 * i for i in range(80)]}), [0.0, 1.0] * 40\n"
        "MODLEncoder().fit(X, y)\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    ]
    assert said[0].count("tabsym is compiling its kernels, once per machine") == 1
    assert "first.py:8: UserWarning" in said[0]
    assert "compiling" not in said[1]


KERNELS_OF_ONE_NAME = """
import sys
import numpy as np
from tabsym.jit import address_of_kernel, call_at, kernel, kernels_by

@kernels_by
def times(factor):
    def times(numbers):
        for i in range(len(numbers)):
            numbers[i] *= factor
    return times

@kernel
def call(address, numbers):
    call_at(address, (numbers,), None)

factors = [int(one) for one in sys.argv[1:]]
by_name, by_address = np.ones((2, len(factors), 1))
for factor, numbers in zip(factors, by_name):
    times(factor)(numbers)
for factor, numbers in zip(factors, by_address):
    call(address_of_kernel(times(factor), (numbers,)), numbers)
found = [*by_name.ravel().astype(int), *by_address.ravel().astype(int)]
print(*found)
"""


@pytest.mark.slow
def test_kernels_that_two_processes_have_kept_are_not_taken_for_each_other(tmp_path):
    """Each as the first kernel that its process compiles: numba gives both the same number."""
    script, environment = tmp_path / "kept.py", os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    script.write_text(KERNELS_OF_ONE_NAME)
    for factors in (["2"], ["3"], ["2", "3"], ["3", "2"]):
        command = [sys.executable, str(script), *factors]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [*factors, *factors]  # called by name, and by address


KERNEL_OF_TWO_TYPES = """
import sys
import numpy as np
from tabsym.jit import kernel

@kernel
def total(numbers, out):
    for i in range(len(numbers)):
        out[0] += numbers[i]

def call(kind):
    out = np.zeros(1)
    total(np.ones(3, dtype=kind), out)
    return out[0]

files = total._cache._cache_file
if sys.argv[1] == "at once":
    written, usual = [], type(files)

    class AtOnce(usual):
        def _load_index(self):
            return {}

        def _save_data(self, name, data):
            written.append((name, data))

    files.__class__ = AtOnce
    call(np.int64), call(np.float64)
    files.__class__ = usual
    for name, data in reversed(written):
        files._save_data(name, data)
print(call(np.float64), call(np.int64))
"""


@pytest.mark.slow
def test_machine_code_that_two_processes_keep_at_once_is_not_taken_for_each_other(tmp_path):
    """Each finds nothing on disk, writes the index, and then the code, in the other order."""
    script, environment = tmp_path / "kept.py", os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    script.write_text(KERNEL_OF_TWO_TYPES)
    for when in ("at once", "later"):
        command = [sys.executable, str(script), when]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["3.0", "3.0"]


KERNEL_OF_A_CLASS = """
import sys
from collections import namedtuple
import numpy as np
import gone
from tabsym.jit import kernel

@kernel
def total(arrays):
    found = 0.0
    for i in range(len(arrays.values)):
        found += arrays.values[i]
    return found

kind = gone.Arrays if sys.argv[1] == "before" else gone.moved
print(total(kind(np.ones(3))))
"""


@pytest.mark.slow
def test_machine_code_of_a_class_that_has_moved_is_made_anew(tmp_path):
    """As after an upgrade: numba's files name the classes of arguments by their modules."""
    script, environment = tmp_path / "kept.py", os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    script.write_text(KERNEL_OF_A_CLASS)
    made = "Arrays = namedtuple('Arrays', 'values')\n"
    for when, modules in (
        ("before", {"gone": "from collections import namedtuple\n" + made}),
        (
            "after",
            {"gone": "from other import Arrays as moved\n", "other": "from collections import namedtuple\n" + made},
        ),
        ("after", {}),
    ):
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)
        command = [sys.executable, "-B", str(script), when]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout.split() == ["3.0"], done.stderr
    assert len(list((tmp_path / "kept").rglob("*.nbi"))) == 1


@pytest.mark.slow
def test_the_package_is_imported_with_the_compiler_switched_off():
    """As debuggers and coverage tools of numba's users do: for all of a process."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [
        sys.executable,
        "-c",
        "import tabsym, tabsym.solvers.newton.fit, tabsym.solvers.sgd.loop, tabsym.modl.grid",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
