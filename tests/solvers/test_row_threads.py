"""Sums over parts of many rows: the same bits in any number of threads, and but for rounding those of all at once."""

from threading import get_ident
from time import sleep

import numpy as np
import pytest

from tabsym import WideClassifier, WideRegressor, jit
from tabsym.design.content import ShuffledRows
from tests.models.test_frequencies import TABLE, TARGETS

OPTIONS = {
    "additive": {"interactions": None, "n_posterior_samples": 3},
    "given": {"alpha": 0.0, "numeric": "linear", "interactions": None, "count_effect": False},
    "pairs": {"interactions": "pairwise"},
}


def fitted(loss, options, weight, n_jobs):
    target = TARGETS.get(loss, loss)
    if loss == "three":
        options = {name: value for name, value in options.items() if name != "n_posterior_samples"}
    model = WideClassifier(**options) if loss in ("two", "three") else WideRegressor(loss=loss, **options)
    X = TABLE[["shop", "kind", "x", "z"]]
    return model.set_params(n_jobs=n_jobs, tol=1e-5).fit(X, TABLE[target], sample_weight=weight)


LOSSES = ["squared_error", "poisson", "gamma", "huber", "two", "three"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "options"),
    [(loss, name) for i, loss in enumerate(LOSSES) for j, name in enumerate(OPTIONS) if (i + j) % 3],
)
def test_any_number_of_threads_gives_the_same_bits(loss, options, monkeypatch):
    """Each loss with two of the three sets of options, which share what is summed by parts."""
    options, weight = OPTIONS[options], TABLE["weight"] if loss in ("poisson", "two") else None
    whole = fitted(loss, options, weight, 1)
    monkeypatch.setattr(jit, "MANY_ROWS", 500)
    one, two = (fitted(loss, options, weight, n_jobs) for n_jobs in (None, 3))
    assert list(one.coefs_) == list(two.coefs_) == list(whole.coefs_)
    for name, frame in one.coefs_.items():
        np.testing.assert_array_equal(frame.to_numpy(float), two.coefs_[name].to_numpy(float), err_msg=name)
        together = whole.coefs_[name].to_numpy(float)
        np.testing.assert_allclose(frame.to_numpy(float), together, rtol=1e-4, atol=1e-4, err_msg=name)
    assert one.deviance_ == two.deviance_
    np.testing.assert_allclose(one.deviance_, whole.deviance_, rtol=1e-6)
    assert one.variances_.equals(two.variances_)


def test_parts_are_worked_on_by_as_many_threads(monkeypatch):
    monkeypatch.setattr(jit, "MANY_ROWS", 10)
    assert jit.parts_of(9) == [slice(0, 9)]
    rows = np.zeros(1003, dtype=int)

    def work(number, own):
        rows[own] += 1
        return number, get_ident()

    with jit.threads_for_rows(3):
        numbers, names = zip(*jit.by_parts(work, len(rows)), strict=True)
    assert numbers == tuple(range(jit.PARTS))
    assert get_ident() not in names and len(set(names)) <= 3
    assert {name for _, name in jit.by_parts(work, len(rows))} == {get_ident()}
    assert (rows == 2).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_none_is_left_running_where_one_ends(n_jobs, monkeypatch):
    monkeypatch.setattr(jit, "MANY_ROWS", 10)
    ended = []

    def work(number, own):
        if number == 1:
            raise KeyboardInterrupt
        sleep(0.02 * number)
        ended.append(number)

    with jit.threads_for_rows(n_jobs):
        with pytest.raises(KeyboardInterrupt):
            jit.by_parts(work, 1000)
        before = len(ended)
        sleep(0.3)
        assert len(ended) == before


@pytest.mark.parametrize("copies", [False, True])
def test_the_rows_of_a_sample_are_the_same_by_parts(copies, monkeypatch):
    rng = np.random.RandomState(0)
    content = rng.randint(0, 900, 2000).astype(np.uint64)  # some of them several times
    content[:200] = 7  # and one many times
    times = rng.randint(1, 4, 2000) if copies else None
    whole = ShuffledRows.sampled(content, times, 600, np.random.RandomState(1))
    monkeypatch.setattr(jit, "MANY_ROWS", 500)
    with jit.threads_for_rows(2):
        parts = ShuffledRows.sampled(content, times, 600, np.random.RandomState(1))
    assert 500 < whole.n_rows < 700
    for name in ("rows", "content", "copies"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
