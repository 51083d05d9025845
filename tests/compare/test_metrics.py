"""The metrics: scores against scikit-learn's, and what rows add to them against the bootstrap and naive loops."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from tabsym import compare
from tabsym.compare.metrics import METRICS, Metric, all_scores, choose_metric

pytestmark = pytest.mark.usefixtures("in_process")

N = 300
WEIGHTED = [False, True]
EVERY = [(task, name) for task, known in METRICS.items() for name in known]
BY_ROW = [(task, name) for task, name in EVERY if METRICS[task][name].by_row is not None]


def probabilities(rng, n, classes, digits=None):
    p = rng.dirichlet(np.ones(classes), n)
    if digits is not None:  # ties
        p[:, 1] = np.round(p[:, 1], digits)
        p[:, 0] = 1 - p[:, 1:].sum(axis=1)
    return p


def example(task, weighted, seed=0, n=N, digits=None):
    """Target, prediction and weights that go together somewhat."""
    rng = np.random.default_rng(seed)
    weight = rng.gamma(1, 1, n) if weighted else None
    if task == "regression":
        y = rng.normal(3, 2, n)
        return y, y + rng.normal(0.3, 1, n), weight
    if task == "count":
        y = rng.poisson(1.2, n).astype(float)
        return y, rng.gamma(2, 0.6, n) + 0.1 * y, weight
    classes = 2 if task == "binary" else 4
    p = probabilities(rng, n, classes, digits if task == "binary" else None)
    y = np.array([rng.choice(classes, p=np.clip(row, 0, 1) ** 0.5 / (np.clip(row, 0, 1) ** 0.5).sum()) for row in p])
    return y, p, weight


def of_scikit(task, name, y, p, weight):
    """The same score from scikit-learn."""
    labels = None if p.ndim == 1 else np.arange(p.shape[1])
    score = {
        "auc": lambda: metrics.roc_auc_score(y, p[:, 1], sample_weight=weight),
        "average_precision": lambda: metrics.average_precision_score(y, p[:, 1], sample_weight=weight),
        "log_loss": lambda: metrics.log_loss(y, p, labels=labels, sample_weight=weight),
        "brier": lambda: metrics.brier_score_loss(
            y, p[:, 1] if task == "binary" else p, labels=labels, sample_weight=weight
        ),
        "accuracy": lambda: metrics.accuracy_score(y, p.argmax(axis=1), sample_weight=weight),
        "rmse": lambda: metrics.root_mean_squared_error(y, p, sample_weight=weight),
        "mae": lambda: metrics.mean_absolute_error(y, p, sample_weight=weight),
        "r2": lambda: metrics.r2_score(y, p, sample_weight=weight),
        "poisson_deviance": lambda: metrics.mean_poisson_deviance(y, p, sample_weight=weight),
    }[name]
    return score()


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize(("task", "name"), EVERY)
def test_scores_are_those_of_scikit_learn(task, name, weighted):
    for seed in range(3):
        y, p, weight = example(task, weighted, seed, digits=1)
        want = of_scikit(task, name, y, p, weight)
        assert METRICS[task][name].of(y, p, weight) == pytest.approx(want, rel=1e-9)


def test_directions():
    larger = {name for known in METRICS.values() for name, metric in known.items() if metric.larger_is_better}
    assert larger == {"auc", "average_precision", "accuracy", "r2"}


@pytest.mark.parametrize(("task", "name"), EVERY)
def test_a_better_prediction_scores_better(task, name):
    y, p, _ = example(task, False)
    metric = METRICS[task][name]
    perfect = y if p.ndim == 1 else np.eye(p.shape[1])[y]
    better, worse = metric.of(y, np.maximum(perfect, 1e-9) if task == "count" else perfect, None), metric.of(y, p, None)
    assert better > worse if metric.larger_is_better else better < worse


@pytest.mark.parametrize(("task", "name"), EVERY)
def test_weights_are_repetitions_and_their_scale_is_none(task, name):
    y, p, _ = example(task, False, n=60)
    times = np.random.default_rng(1).integers(0, 4, 60)
    metric = METRICS[task][name]
    repeated = metric.of(np.repeat(y, times), np.repeat(p, times, axis=0), None)
    assert metric.of(y, p, times.astype(float)) == pytest.approx(repeated)
    assert metric.of(y, p, times * 1e-3) == pytest.approx(repeated)
    if metric.by_row is not None:
        rows = metric.by_row(y, p, times.astype(float))
        assert np.repeat(rows, times) == pytest.approx(
            metric.by_row(np.repeat(y, times), np.repeat(p, times, axis=0), None)
        )


def test_by_hand():
    y, p = np.array([0.0, 1.0, 4.0]), np.array([1.0, 1.0, 2.0])
    assert METRICS["regression"]["rmse"].of(y, p, None) == pytest.approx(np.sqrt(5 / 3))
    assert METRICS["regression"]["mae"].of(y, p, None) == pytest.approx(1.0)
    assert METRICS["regression"]["mae"].of(y, p, np.array([2.0, 1.0, 1.0])) == pytest.approx(1.0)
    assert METRICS["regression"]["mae"].of(y, p, np.array([0.0, 0.0, 1.0])) == pytest.approx(2.0)
    assert METRICS["count"]["poisson_deviance"].of(y, p, None) == pytest.approx((2 + 0 + 2 * (4 * np.log(2) - 2)) / 3)
    q = np.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]])
    codes = np.array([0, 1])
    assert METRICS["multiclass"]["log_loss"].of(codes, q, None) == pytest.approx((np.log(2) + np.log(5)) / 2)
    assert METRICS["multiclass"]["accuracy"].of(codes, q, None) == 0.5
    assert METRICS["multiclass"]["brier"].of(codes, q, None) == pytest.approx((0.375 + 1.04) / 2)


def test_a_probability_of_zero_and_a_count_of_zero_cost_much_but_not_everything():
    y, p = np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]])
    for task in ("binary", "multiclass"):
        score = METRICS[task]["log_loss"].of(y, p, None)
        assert 5 < score < 50
    assert METRICS["binary"]["log_loss"].of(np.array([0, 0]), p, None) == 0
    for task, q in (("binary", p), ("multiclass", np.array([[1.0, 0.0, 0.0], [0.5, 1e-14, 0.5]]))):
        found = METRICS[task]["log_loss"].of(y, q, None)
        assert found == pytest.approx(of_scikit(task, "log_loss", y, q, None), rel=1e-12)
    deviance = METRICS["count"]["poisson_deviance"]
    assert 10 < deviance.of(np.array([0.0, 3.0]), np.zeros(2), None) < 1000
    assert deviance.of(np.zeros(3), np.zeros(3), None) == pytest.approx(0, abs=1e-9)


# What rows add.


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize(("task", "name"), BY_ROW)
def test_the_mean_of_the_rows_is_the_score(task, name, weighted):
    for digits in (None, 1, 0):
        y, p, weight = example(task, weighted, digits=digits)
        metric = METRICS[task][name]
        rows = metric.by_row(y, p, weight)
        assert rows.shape == (N,)
        assert np.average(rows, weights=weight) == pytest.approx(metric.of(y, p, weight), rel=1e-9)


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize(("task", "name"), BY_ROW)
def test_rows_say_how_the_score_moves_with_their_weight(task, name, weighted):
    """Influence values: the slope of the score in a row's weight is (its value - score) / sum of weights."""
    y, p, weight = example(task, weighted, n=40, digits=1)
    weight = np.ones(40) if weight is None else weight
    metric = METRICS[task][name]
    slopes = np.empty(40)
    for row in range(40):
        step = np.zeros(40)
        step[row] = 1e-5
        slopes[row] = (metric.of(y, p, weight + step) - metric.of(y, p, weight - step)) / 2e-5
    want = metric.of(y, p, weight) + weight.sum() * slopes
    np.testing.assert_allclose(metric.by_row(y, p, weight), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("task", "name"), BY_ROW)
@pytest.mark.slow
def test_the_spread_of_rows_is_that_of_the_bootstrap(task, name):
    y, p, _ = example(task, False)
    metric = METRICS[task][name]
    rng = np.random.default_rng(5)
    draws = []
    for _ in range(600):
        rows = rng.integers(0, N, N)
        draws.append(metric.of(y[rows], p[rows], None))
    assert metric.by_row(y, p, None).std() / np.sqrt(N) == pytest.approx(np.std(draws), rel=0.12)


def naive_delong(y, score, other):
    """AUC, and variance of the difference of two, by DeLong's pairs in loops."""
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)

    def won(s):
        return np.array([[float(s[i] > s[j]) + 0.5 * float(s[i] == s[j]) for j in negative] for i in positive])

    one, two = won(score), won(other)
    gap = one - two
    m, n = gap.shape
    return one.mean(), two.mean(), gap.mean(axis=1).var() / m + gap.mean(axis=0).var() / n


@pytest.mark.parametrize("digits", [None, 1])
def test_the_rows_of_the_auc_give_delongs_test(digits):
    y, p, _ = example("binary", False, n=120, digits=digits)
    _, other, _ = example("binary", False, seed=1, n=120, digits=digits)
    other[:, 1] = np.round(0.6 * p[:, 1] + 0.4 * other[:, 1], digits or 9)
    auc = METRICS["binary"]["auc"]
    rows, others = auc.by_row(y, p, None), auc.by_row(y, other, None)
    want, second, variance = naive_delong(y, p[:, 1], other[:, 1])
    assert rows.mean() == pytest.approx(want)
    assert others.mean() == pytest.approx(second)
    assert (rows - others).var() / 120 == pytest.approx(variance, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.floats(0.01, 10)), min_size=2, max_size=30).filter(
        lambda rows: len({row[0] for row in rows}) == 2
    )
)
def test_the_rows_of_a_weighted_auc_by_pairs(rows):
    y, score, weight = (np.array(column, dtype=float) for column in zip(*rows))
    auc = METRICS["binary"]["auc"].by_row(y, np.column_stack([1 - score / 5, score / 5]), weight)
    total = won = 0.0
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            total += weight[i] * weight[j]
            won += weight[i] * weight[j] * (float(score[i] > score[j]) + 0.5 * float(score[i] == score[j]))
    assert np.average(auc, weights=weight) == pytest.approx(won / total)


@pytest.mark.parametrize(("task", "name"), BY_ROW)
def test_a_perfect_prediction_has_rows_without_spread(task, name):
    y, p, _ = example(task, False)
    perfect = y if p.ndim == 1 else np.eye(p.shape[1])[y]
    rows = METRICS[task][name].by_row(y, perfect, None)
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows, METRICS[task][name].of(y, perfect, None), atol=1e-9)


def test_what_was_given_is_left_as_it_was():
    for task, name in EVERY:
        y, p, weight = example(task, True)
        copies = y.copy(), p.copy(), weight.copy()
        METRICS[task][name].of(y, p, weight)
        if METRICS[task][name].by_row is not None:
            METRICS[task][name].by_row(y, p, weight)
        for now, before in zip((y, p, weight), copies):
            np.testing.assert_array_equal(now, before)


# Choosing, and a metric of the user's own.


@pytest.mark.parametrize(
    ("task", "name"),
    [("binary", "auc"), ("multiclass", "log_loss"), ("regression", "rmse"), ("count", "poisson_deviance")],
)
def test_the_default_of_a_task(task, name):
    assert choose_metric(task, None).name == name


@pytest.mark.parametrize(("task", "name"), EVERY)
def test_by_name(task, name):
    assert choose_metric(task, name) is METRICS[task][name]


@pytest.mark.parametrize(("task", "name"), [("regression", "auc"), ("binary", "rmse"), ("count", "R2"), ("binary", "")])
def test_a_name_that_is_not_known_is_answered_with_those_that_are(task, name):
    with pytest.raises(ValueError) as error:
        choose_metric(task, name)
    assert repr(name) in str(error.value)
    assert all(known in str(error.value) for known in METRICS[task])
    assert str(error.value).endswith(".")


def test_a_bare_function_is_answered_with_how_to_wrap_it():
    with pytest.raises(ValueError, match="Metric\\('cost'"):
        choose_metric("regression", metrics.mean_absolute_error)


def pinball(y, p, weight=None):
    return float(np.average(np.maximum(0.9 * (y - p), 0.1 * (p - y)), weights=weight))


@pytest.mark.parametrize("weighted", WEIGHTED)
def test_a_metric_of_the_users_own(weighted):
    own = Metric("pinball", larger_is_better=False, score=pinball)
    assert choose_metric("regression", own) is own
    y, p, weight = example("regression", weighted)
    want = metrics.mean_pinball_loss(y, p, alpha=0.9, sample_weight=weight)
    assert own.of(y, p, weight) == pytest.approx(want)
    scores = all_scores("regression", own, y, p, weight)
    assert scores["pinball"] == pytest.approx(want)
    assert set(scores) == {"rmse", "mae", "r2", "pinball"}


def test_a_metric_of_the_users_own_gets_no_weights_where_there_are_none():
    seen = []

    def score(*given):
        seen.append(len(given))
        return np.float32(1.5)

    own = Metric("own", True, score)
    y, p, weight = example("regression", True)
    assert own.of(y, p, None) == 1.5
    assert type(own.of(y, p, weight)) is float
    assert seen == [2, 3]


def test_a_metric_of_the_users_own_replaces_one_of_the_same_name():
    own = Metric("mae", False, lambda y, p: 42.0)
    y, p, _ = example("regression", False)
    assert all_scores("regression", own, y, p, None)["mae"] == 42.0
    assert METRICS["regression"]["mae"].of(y, p, None) != 42.0


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize("task", METRICS)
def test_all_scores_are_those_of_the_task(task, weighted):
    y, p, weight = example(task, weighted)
    scores = all_scores(task, choose_metric(task, None), y, p, weight)
    assert set(scores) == set(METRICS[task])
    for name, score in scores.items():
        assert type(score) is float
        assert score == pytest.approx(of_scikit(task, name, y, p, weight))


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("task", METRICS)
def test_a_prediction_that_is_not_finite_is_refused(task, strange):
    y, p, _ = example(task, False)
    p.flat[7] = strange
    with pytest.raises(ValueError, match="predictions") as error:
        all_scores(task, choose_metric(task, None), y, p, None)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_refused(strange):
    y, p, _ = example("regression", False)
    with pytest.raises(ValueError, match="not finite") as error:
        all_scores("regression", Metric("own", True, lambda y, p: strange), y, p, None)
    assert str(error.value).endswith(".")


def test_predictions_too_large_to_square_are_refused():
    y, p, _ = example("regression", False)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large"):
        all_scores("regression", choose_metric("regression", "mae"), y, p * 1e200, None)


def test_a_metric_that_does_not_rank_may_be_missing(tmp_path):
    y, p = np.array([1.0]), np.array([2.0])
    scores = all_scores("regression", choose_metric("regression", None), y, p, None)
    assert scores == {"rmse": 1.0, "mae": 1.0, "r2": None}
    table = pd.DataFrame({"a": list("uvuvuv"), "y": [1.0, 2.5, 1.5, 3.0, 1.25, 2.0]})
    result = compare(table, "y", contenders=["constant"], folds=6, out=tmp_path / "o", quiet=True)
    assert result.ranking["scores"][0]["r2"] is None
    assert "NaN" not in (result.folder / "results.json").read_text()
    assert pd.read_csv(result.folder / "results.csv").query("metric == 'r2'")["score"].isna().all()
    assert re.search(r"<td[^>]*>-</td>", (result.folder / "report.html").read_text())


def test_folds_too_small_for_the_metric_that_ranks_are_refused(tmp_path):
    table = pd.DataFrame({"a": list("uvuvuv"), "y": [1.0, 2.5, 1.5, 3.0, 1.25, 2.0]})
    message = r"metric='r2' cannot be computed on the test rows of fold 1 \(1 of them\); use fewer folds, another split"
    with pytest.raises(ValueError, match=message):
        compare(table, "y", contenders=["constant"], folds=6, metric="r2", out=tmp_path / "o", quiet=True)
    table = pd.DataFrame({"a": list("uv") * 6, "y": list("nnyyny") * 2, "w": [1.0, 1, 0, 0, 1, 0] * 2})
    table["fold"] = [0] * 6 + [1] * 6
    message = r"metric='auc' cannot be computed on the test rows of fold 0 of 'fold' \(6 of them\)"
    with pytest.raises(ValueError, match=message):
        compare(table, "y", weight="w", fold_column="fold", out=tmp_path / "o", quiet=True)
    assert not (tmp_path / "o").exists()


def test_folds_without_weight_are_refused(tmp_path):
    table = pd.DataFrame({"a": list("uvw") * 4, "y": np.arange(12.0) ** 2, "fold": list("pqr") * 4, "day": range(12)})
    message = "All test rows of fold r of 'fold' have weight 0 in column 'w'; give some of them weight"
    with pytest.raises(ValueError, match=message):
        compare(table.assign(w=(table["fold"] != "r") * 1.0), "y", weight="w", fold_column="fold", out=tmp_path / "o")
    message = "All training rows of fold 1 have weight 0 in column 'w'; give some of them weight"
    with pytest.raises(ValueError, match=message):
        compare(table.assign(w=(table["day"] > 4) * 1.0), "y", weight="w", time="day", folds=2, out=tmp_path / "o")
