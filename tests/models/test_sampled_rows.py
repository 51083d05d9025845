"""The sample of large tables, rows by what they hold, in any order; the spread of a target; numbers too large."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from tabsym import WideClassifier
from tabsym.categories import encode_columns
from tabsym.frame import read_table
from tabsym.models import data, solving
from tabsym.solvers.newton import fit as newton_fit

N, SOME = 900, 200
OWN = np.random.default_rng(0).permutation(N)
"""What tells each row from the others."""


def training_of(aspect, rows):
    """Rows that differ in one thing only."""
    same = np.zeros(N)
    frame = pd.DataFrame({"x": OWN + 0.5 if aspect == "number" else same + 0.5, "g": "c"})
    frame["g"] = [f"c{own}" for own in OWN] if aspect == "category" else "c"
    offset = np.zeros((N, 2))
    if aspect in ("offset", "second offset"):
        offset[:, int(aspect != "offset")] = OWN
    weight = OWN + 1.0 if aspect == "weight" else same + 1.0
    y = OWN.astype(float) if aspect == "target" else same
    return data.Training(read_table(frame.iloc[rows]), y[rows], weight[rows], offset[rows]).weighted_rows()


def sampled(training, seed=0, *, coded="categories"):
    names = ["x", "g"] if coded == "all" else ["g"]
    columns = dict(zip(names, encode_columns([training.table[name] for name in names]), strict=True))
    return data.Sampler(training, columns, np.random.RandomState(seed)).rows


@pytest.mark.parametrize("aspect", ["number", "category", "target", "weight", "offset", "second offset"])
@pytest.mark.parametrize("coded", ["categories", "all"])
def test_rows_are_drawn_by_what_they_hold_not_by_their_order(aspect, coded, monkeypatch):
    """As many as asked for, each as often as any other."""
    monkeypatch.setattr(data, "MOST_ROWS", SOME)
    order, counts = np.random.default_rng(1).permutation(N), np.zeros(N)
    first, other = training_of(aspect, np.arange(N)), training_of(aspect, order)
    for seed in range(30):
        one, two = sampled(first, seed, coded=coded), sampled(other, seed, coded=coded)
        assert one.n_rows == SOME
        np.testing.assert_array_equal(np.sort(OWN[one.rows]), np.sort(OWN[order][two.rows]))
        assert (np.diff(one.rows) > 0).all()
        counts[one.rows] += 1
    rate = SOME / N
    assert np.abs(counts - 30 * rate).max() <= 5 * np.sqrt(30 * rate * (1 - rate))


def test_zeros_and_missing_numbers_are_the_same_whatever_their_bits(monkeypatch):
    monkeypatch.setattr(data, "MOST_ROWS", SOME)
    x, strange = np.resize([0.0, np.nan, 1.0], N), np.resize([-0.0, -np.nan, 1.0], N)
    found = []
    for values in (x, strange):
        frame = pd.DataFrame({"x": values, "g": "c"})
        found.append(sampled(data.Training(read_table(frame), OWN.astype(float), None, None)))
    np.testing.assert_array_equal(found[0].rows, found[1].rows)


def test_small_tables_and_larger_demands_have_no_sample(monkeypatch):
    rng = np.random.RandomState(3)
    state = rng.get_state()[1].copy()
    monkeypatch.setattr(data, "MOST_ROWS", N)
    sampler = data.Sampler(training_of("number", np.arange(N)), {}, rng)
    assert sampler.for_most(N) is None
    np.testing.assert_array_equal(rng.get_state()[1], state)  # which later steps draw from
    monkeypatch.setattr(data, "MOST_ROWS", N - 1)
    sampler = data.Sampler(training_of("number", np.arange(N)), {}, rng)
    assert sampler.for_most(N - 1) is sampler and sampler.for_most(N) is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_models_of_large_tables_do_not_depend_on_the_order_of_rows(n_classes, monkeypatch):
    """Variances of infrequent categories by held-out rows, and interactions, which are found in the sample."""
    monkeypatch.setattr(data, "MOST_ROWS", 1200)
    for module in (solving, newton_fit):
        monkeypatch.setattr(module, "MAX_HELD_OUT", 1200)
    drawn, draw = [], data.ShuffledRows.sampled
    monkeypatch.setattr(data.ShuffledRows, "sampled", lambda *given: drawn.append(0) or draw(*given))
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.integers(0, 150, 2000).astype(str), "h": rng.integers(0, 4, 2000).astype(str)})
    X["x"] = rng.normal(size=2000)
    score = rng.normal(size=(150, n_classes))[X["g"].astype(int)] + rng.gumbel(size=(2000, n_classes))
    y, order = np.argmax(score, axis=1), rng.permutation(2000)
    first = WideClassifier(interactions=None, random_state=0).fit(X, y)
    other = WideClassifier(interactions=None, random_state=0).fit(X.iloc[order], y[order])
    assert len(drawn) == 2
    pd.testing.assert_frame_equal(first.variances_, other.variances_, rtol=1e-6)
    np.testing.assert_allclose(first.predict_proba(X), other.predict_proba(X), rtol=1e-5)


def middle_half(values):
    values = np.sort(values)
    return values[len(values) // 4 : -(len(values) // 4)].mean()


@pytest.mark.parametrize("times", [None, [1, 3, 2, 2]])
def test_the_spread_of_a_target_is_that_of_a_normal_variable(times):
    """The mean of the middle half of absolute deviations from that of the values, over a standard normal's."""
    low, high = stats.halfnorm.ppf([0.25, 0.75])
    of_normal = integrate.quad(lambda z: z * stats.halfnorm.pdf(z), low, high)[0] / 0.5
    y = np.random.default_rng(0).normal(3.0, 2.0, 40)
    y[:3] = [1e3, -1e4, 1e5]
    offset, weight = np.linspace(0.0, 1.0, 40)[:, None], None if times is None else np.resize(times, 40).astype(float)
    rows = np.repeat(y - offset[:, 0], 1 if times is None else np.resize(times, 40))
    wanted = middle_half(np.abs(rows - middle_half(rows))) / of_normal
    training = data.Training(read_table(pd.DataFrame({"x": y})), y, weight, offset)
    assert data.robust_spread(training) == pytest.approx(wanted, rel=1e-4)
    same = np.array([5.0] * 36 + [1.0, 2.0, 3.0, 4.0])  # of whose middle half all are the same
    training = data.Training(read_table(pd.DataFrame({"x": same})), same, None, None)
    assert data.robust_spread(training) == pytest.approx(np.sqrt(np.mean((same - 5.0) ** 2)))


def test_numbers_whose_squares_have_a_sum_are_taken():
    for value, is_taken in ((1e150, True), (-1e150, True), (1.001e150, False), (-1.001e150, False)):
        numeric = SimpleNamespace(values=lambda numbers, value=value: np.array([1.0, value]), label="x")
        spec = SimpleNamespace(numerics=[numeric])
        if is_taken:
            assert np.isfinite(data.numeric_moments(spec, {}, 2, None)[0].mean)
            continue
        with pytest.raises(ValueError, match=r"'x' is -?1\.001e\+150 in row 1, whose square is no finite number"):
            data.numeric_moments(spec, {}, 2, None)
