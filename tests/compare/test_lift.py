"""Lift, ordered Lorenz curves and Gini coefficients: equal to what is worked by hand, and to scikit-learn's AUC."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from tabsym.compare.report import held_out
from tabsym.compare.results import prediction_path
from tabsym.compare.table.prepare import RoleColumns, prepare
from tabsym.plots.predictions import HeldOutRows, deciles, gini, lorenz, mean_gini, pooled


def held(predicted, observed, weight=None):
    predicted, observed = np.asarray(predicted, dtype=float), np.asarray(observed, dtype=float)
    weight = np.ones(len(observed)) if weight is None else np.asarray(weight, dtype=float)
    return HeldOutRows(np.arange(len(observed)), predicted, observed, weight)


def naive_gini(one):
    """Weighted pairs: how far apart two rows are in what was observed, the higher prediction first, ties nothing."""
    found = most = 0.0
    for i in range(len(one.observed)):
        for j in range(len(one.observed)):
            apart = one.weight[i] * one.weight[j] * (one.observed[i] - one.observed[j])
            found += apart * np.sign(one.predicted[i] - one.predicted[j])
            most += apart * np.sign(one.observed[i] - one.observed[j])
    return found / most


@pytest.mark.parametrize("seed", range(6))
def test_of_two_classes_it_is_twice_the_auc_less_1(seed):
    rng = np.random.default_rng(seed)
    n = 300
    p = rng.random(n).round([8, 1][seed % 2])  # every other time with ties
    y = (rng.random(n) < p).astype(float)
    weight = rng.uniform(0.1, 3, n) if seed > 1 else np.ones(n)
    assert gini(held(p, y, weight)) == pytest.approx(2 * roc_auc_score(y, p, sample_weight=weight) - 1, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_of_amounts_it_is_the_share_of_pairs_in_order(seed):
    rng = np.random.default_rng(seed)
    observed = rng.gamma(0.5, 2, 60).round(1) - (5 if seed == 3 else 0)  # also with negative ones
    one = held((observed + rng.normal(size=60)).round(1), observed, rng.uniform(0.5, 2, 60))
    assert gini(one) == pytest.approx(naive_gini(one), abs=1e-12)


def test_perfect_orders_have_1_reversed_ones_minus_1_and_constants_0():
    observed = np.random.default_rng(0).gamma(0.7, 3, 500)
    weight = np.random.default_rng(1).uniform(0.2, 2, 500)
    assert gini(held(np.exp(observed / 9), observed, weight)) == pytest.approx(1)
    assert gini(held(-observed, observed, weight)) == pytest.approx(-1)
    assert gini(held(np.full(500, 0.3), observed, weight)) == pytest.approx(0, abs=1e-12)
    assert np.isnan(gini(held(observed, np.full(500, 2.0))))


def test_gini_by_hand():
    # pairs (higher observed, lower): 3-1, 3-0, 1-0; predicted 2, 1, 3 of observed 0, 1, 3: 2 + 3 - 1 of 2 + 3 + 1
    assert gini(held([2, 1, 3], [0, 1, 3])) == pytest.approx(4 / 6)


def test_the_mean_is_that_of_the_folds():
    one, other = held([1, 2, 3], [1, 2, 3]), held([3, 2, 1], [1, 2, 3])
    assert mean_gini([one, one, other]) == pytest.approx(1 / 3)
    assert mean_gini([one, held([1, 2], [5, 5])]) is None


@pytest.mark.parametrize("seed", range(5))
def test_deciles_add_up_to_the_totals(seed):
    rng = np.random.default_rng(seed)
    n = [7, 300, 301, 1000, 1000][seed]
    predicted = rng.gamma(2, 1, n).round([9, 9, 1, 0, 9][seed])
    weight = rng.uniform(0.1, 2, n)
    observed = rng.poisson(predicted)
    rows = deciles(held(predicted, observed, weight))
    share = np.array([row["share"] for row in rows])
    assert sum(row["rows"] for row in rows) == n
    assert share.sum() == pytest.approx(1)
    for what, values in (("observed", observed), ("predicted", predicted)):
        total = share @ [row[what] for row in rows] * weight.sum()
        assert total == pytest.approx(weight @ values)
    assert share @ [row["lift"] for row in rows] == pytest.approx(1)
    means = [row["predicted"] for row in rows]
    assert means == sorted(means)
    if seed in (1, 4):  # no ties
        assert len(rows) == 10
        assert np.abs(share - 0.1).max() <= weight.max() / weight.sum()


def test_deciles_by_hand():
    rows = deciles(held(np.arange(20), np.repeat([0.0, 2.0], 10)))
    assert [row["decile"] for row in rows] == list(range(1, 11))
    assert [row["rows"] for row in rows] == [2] * 10
    assert rows[0] == pytest.approx(
        {"decile": 1, "rows": 2, "share": 0.1, "predicted": 0.5, "observed": 0.0, "ratio": np.nan, "lift": 0.0},
        nan_ok=True,
    )
    assert rows[9]["lift"] == pytest.approx(2.0)
    assert rows[9]["ratio"] == pytest.approx(18.5 / 2)


def test_equal_predictions_stay_together():
    rows = deciles(held(np.full(50, 0.3), np.arange(50)))
    assert len(rows) == 1
    assert rows[0]["rows"] == 50
    assert rows[0]["lift"] == pytest.approx(1)


def test_lorenz_curves_by_hand():
    curve = lorenz(np.array([2.0, 1, 1, 3]), np.array([1.0, 0, 2, 7]), np.array([1.0, 1, 1, 2]))
    np.testing.assert_allclose(curve, [[0, 0], [0.4, 2 / 17], [0.6, 3 / 17], [1, 1]])
    shuffled = lorenz(np.array([1.0, 3, 2, 1]), np.array([2.0, 7, 1, 0]), np.array([1.0, 2, 1, 1]))
    np.testing.assert_allclose(shuffled, curve)  # whatever the order of the rows


def test_the_area_of_the_lorenz_curve_gives_the_gini():
    rng = np.random.default_rng(7)
    observed, weight = rng.gamma(1, 2, 200), rng.uniform(0.5, 2, 200)
    predicted = observed + rng.normal(size=200)
    areas = [1 - 2 * np.trapezoid(c[:, 1], c[:, 0]) for c in (
        lorenz(order, observed, weight) for order in (predicted, observed)
    )]  # fmt: skip
    assert areas[0] / areas[1] == pytest.approx(gini(held(predicted, observed, weight)))


def test_counts_are_rates_weighted_by_their_exposure(tmp_path):
    rng = np.random.default_rng(2)
    n = 400
    exposure, weight, rate = rng.uniform(0.1, 2, n), rng.uniform(0.5, 2, n), rng.choice([0.2, 0.5, 1.5], n)
    table = pd.DataFrame({
        "rate": rate, "e": exposure, "w": weight, "y": rng.poisson(rate * exposure),
    })  # fmt: skip
    prepared = prepare(table, "y", task="count", roles=RoleColumns(weight="w", exposure="e"))
    splits = [(np.arange(200, n), np.arange(200)), (np.arange(200), np.arange(200, n))]
    for fold, (_, test) in enumerate(splits):
        path = prediction_path(tmp_path, "it", fold)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, (rate * exposure)[test])
    folds = held_out("it", prepared, splits, tmp_path)
    both = pooled(folds)
    np.testing.assert_array_equal(both.rows, np.arange(n))
    np.testing.assert_allclose(both.weight, weight * exposure)
    np.testing.assert_allclose(both.observed, table["y"] / exposure)
    assert len(np.unique(both.predicted)) == 3  # equal rates are ties, whatever their exposure
    rows = deciles(both)
    assert len(rows) == 3
    total = sum(row["share"] * row["observed"] for row in rows) * both.weight.sum()
    assert total == pytest.approx(weight @ table["y"])  # the events there were
    assert held_out("nobody", prepared, splits, tmp_path) is None


def test_more_than_two_classes_have_no_order(tmp_path):
    table = pd.DataFrame({"a": list("abc") * 20, "y": list("xyz") * 20})
    assert held_out("it", prepare(table, "y"), [(np.arange(30), np.arange(30, 60))], tmp_path) is None
