"""The kernels against the slow oracle, and identities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabsym.codes import CodeMatrix, Cross
from tabsym.wide.losses import LOSSES
from tabsym.wide.model import empty_state
from tabsym.wide.optimizers import SGD, Adagrad, Adam
from tabsym.wide.training import Data, Options, train
from tests import naive

RULES = {
    "sgd": (SGD(), lambda: naive.Rule("sgd", 0.1)),
    "adagrad": (Adagrad(0.3), lambda: naive.Rule("adagrad", 0.1, start=0.3)),
    "adam": (Adam(), lambda: naive.Rule("adam", 0.1, eps=1e-8)),
}


def options(optimizer, **changes):
    base = {
        "optimizer": optimizer,
        "learning_rate": 0.1,
        "gradient": "gse",
        "batch_size": 1,
        "epochs": 2,
        "l2": 0.0,
        "shuffle": False,
        "early_stopping": False,
        "validation_fraction": 0.1,
        "n_iter_no_change": 2,
        "tol": None,
        "verbose": 0,
    }
    return Options(**(base | changes))


def problem(loss, n=23, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(-1, 4, n), 4 + rng.integers(0, 6, n)]).astype(np.int32)
    codes[codes[:, 1] < 4, 1] = -1
    x = rng.normal(size=(n, 2))
    y = {"squared": rng.normal(size=n), "logistic": rng.integers(0, 2, n), "multinomial": rng.integers(0, 3, n)}[loss]
    return codes, x, y.astype(float)


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gradient", ["gse", "mean"])
@pytest.mark.parametrize("batch", [1, 5, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_training_equals_the_oracle(loss, rule, gradient, batch, weighted):
    codes, x, y = problem(loss)
    n_outputs = 3 if loss == "multinomial" else 1
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    optimizer, make_rule = RULES[rule]
    data = Data(codes, x, y, np.empty(0) if weight is None else weight / weight.mean())
    for l2 in (0.0, 0.05):
        state = empty_state(10 + 2 + 1, n_outputs, optimizer.fresh)
        got = train(
            data,
            state,
            10,
            LOSSES[loss],
            n_outputs,
            options(optimizer, gradient=gradient, batch_size=batch, l2=l2),
            np.random.RandomState(0),
        ).state[:, 0]
        want = naive.train(
            codes,
            x,
            y,
            n_entries=10,
            n_outputs=n_outputs,
            loss=loss,
            rule=make_rule(),
            gradient=gradient,
            batch=batch or len(y),
            l2=l2,
            weight=weight,
            epochs=2,
        )
        np.testing.assert_allclose(got.reshape(-1, n_outputs), want, rtol=1e-10, atol=1e-12)


def test_first_epoch_by_hand():
    """Two rows, one column, squared loss, sgd at rate .5 from 0: worked on paper."""
    codes = np.array([[0], [1]], dtype=np.int32)
    data = Data(codes, np.empty((2, 0)), np.array([1.0, 3.0]), np.empty(0))
    state = empty_state(3, 1, SGD().fresh)
    out = train(
        data, state, 2, LOSSES["squared"], 1, options(SGD(), learning_rate=0.5, epochs=1), np.random.RandomState(0)
    )
    # row 1: residual -1 -> w0 = .5, b = .5; row 2: residual .5 - 3 = -2.5 -> w1 = 1.25, b = 1.75
    np.testing.assert_allclose(out.state[:, 0], [0.5, 1.25, 1.75])
    assert out.loss_curve == [pytest.approx((0.5 * 1 + 0.5 * 2.5**2) / 2)]


def test_integer_weights_equal_repeated_rows_in_full_batches():
    codes, x, y = problem("logistic")
    times = np.random.default_rng(2).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), times)
    results = []
    for data in (
        Data(codes, x, y, times / times.mean()),
        Data(codes[rows], x[rows], y[rows], np.empty(0)),
    ):
        for gradient in ("gse", "mean"):
            state = empty_state(13, 1, Adagrad().fresh)
            chosen = options(Adagrad(), batch_size=None, epochs=5, gradient=gradient)
            results.append(train(data, state, 10, LOSSES["logistic"], 1, chosen, np.random.RandomState(0)).state[:, 0])
    np.testing.assert_allclose(results[0], results[2], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(results[1], results[3], rtol=1e-12, atol=1e-14)


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
