"""Verdicts and sentences: what is said of contenders is true of their scores."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tabsym.compare.ranking import Pair, adjusted_for_pairs, against_best, outlying_fold, pair_of_rows, rank
from tabsym.compare.text import difference, summary, verdict

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import verdicts as study  # the study's own implementation of the test that it chose


def made(scores, *, larger=False, folds=5, pairs=None, repeats=1, split="random", partial=()):
    """Ranking and sentences of contenders with these scores by fold; the constant is named so."""
    told = {
        "metric": "auc" if larger else "rmse", "larger_is_better": larger, "n_splits": len(next(iter(scores.values()))),
        "folds": folds, "repeats": repeats, "split": split, "test_over_train": 1 / (folds - 1), "tune": None,
    }  # fmt: skip
    plain = {
        "fit_seconds": 1.0, "fit_cpu_seconds": 1.0, "busy": False,
        "predict_seconds": 1.0, "predict_row_seconds": 1e-5, "one_row_seconds": 1e-3,
        "peak_bytes": 1, "model_bytes": None, "unweighted": False, "observed": [10.0], "predicted": [11.0],
    }  # fmt: skip
    contenders = {
        name: {
            "label": name.capitalize(),
            "error": None,
            "folds": {str(j): plain | {"scores": {told["metric"]: float(score)}} for j, score in enumerate(own)},
        }
        for name, own in scores.items()
    }
    ranking = rank(told, contenders, pairs or {})
    return ranking, summary(ranking, list(partial), told), told


def by_name(ranking):
    return {row["name"]: row for row in ranking}


def test_without_rows_it_is_the_corrected_t_test_by_hand():
    differences = np.array([[0.1, 0.3, 0.2, 0.4, 0.0]])
    found = against_best(differences, [None], 0.25, np.ones(1))
    error = np.sqrt(differences.var(ddof=1) * (1 / 5 + 1 / 4))
    assert found.p[0] == pytest.approx(2 * stats.t.sf(0.2 / error, 4))
    assert found.high[0] == pytest.approx(0.2 + stats.t.isf(0.025, 4) * error)
    assert found.low[0] == pytest.approx(0.4 - found.high[0])


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("n_contenders", [2, 3, 4, 9])
def test_with_rows_it_is_the_test_that_the_study_chose(n_contenders, repeats):
    rng, n, folds = np.random.default_rng(n_contenders), 4000, 5
    parts = np.stack([rng.permutation(np.arange(n) % folds) for _ in range(repeats)])
    rows = rng.normal(size=(1, 1, n)) + 0.3 * rng.normal(size=(n_contenders, repeats, n))
    rows += 0.02 * np.arange(n_contenders)[:, None, None]
    splits = []
    for r in range(repeats):
        for j in range(folds):
            here = parts[r] == j
            rows[:, r, here] += 0.03 * rng.normal(size=(n_contenders, 1))  # what the training adds
            splits.append((np.flatnonzero(~here), np.flatnonzero(here)))
    scores = np.array([[[row[r, parts[r] == j].mean() for j in range(folds)] for r in range(repeats)] for row in rows])
    best, p, interval = study.verdict(scores, rows, parts)
    others = [k for k in range(n_contenders) if k != best]
    tests = [test for _, test in splits]
    tested = [(i // folds, test) for i, test in enumerate(tests)]
    pairs = [pair_of_rows([rows[k, r, test] - rows[best, r, test] for r, test in tested], None, tests) for k in others]
    differences = np.array([(scores[k] - scores[best]).ravel() for k in others])
    found = against_best(differences, pairs, 1 / (folds - 1), np.ones(len(others)))
    np.testing.assert_allclose(found.p_adjusted, p[others], rtol=0.02, atol=1e-8)
    np.testing.assert_allclose(found.low, interval[others, 0], rtol=0.02, atol=1e-4)
    np.testing.assert_allclose(found.high, interval[others, 1], rtol=0.02, atol=1e-4)


def test_equal_scores_are_no_difference_and_constant_ones_a_sure_one():
    found = against_best(np.array([[0.0] * 5, [1.0] * 5]), [Pair(0.0, 0.0, 10)] * 2, 0.25, np.ones(2))
    assert found.p.tolist() == [1.0, 0.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_adjusted_p_values_by_a_plain_loop(p):
    p = np.array(p)
    found, worst, left = adjusted_for_pairs(p), 0.0, len(p) + 1
    for place in np.argsort(p, kind="stable"):
        worst = max(worst, min(1.0, p[place] * left * (left - 1) / 2))
        assert found[place] == pytest.approx(worst)
        left -= 1


def test_weights_count_in_what_rows_say():
    rng = np.random.default_rng(0)
    tests = [np.arange(30), np.arange(30, 60)]
    difference, weight = rng.normal(size=60), rng.integers(1, 4, size=60).astype(float)
    pair = pair_of_rows([difference[:30], difference[30:]], weight, tests)
    want = 0.0
    for part in (slice(0, 30), slice(30, 60)):
        w, d = weight[part], difference[part]
        want += (w**2 * (d - np.average(d, weights=w)) ** 2).sum() / w.sum() ** 2 / 4  # two folds
    assert pair.rows == pytest.approx(want)
    assert pair.n == 60


def test_a_row_tested_in_each_repeat_counts_once():
    rng = np.random.default_rng(1)
    difference = rng.normal(size=40)
    half = [np.arange(20), np.arange(20, 40)]
    once = pair_of_rows([difference[:20], difference[20:]], None, half)
    twice = pair_of_rows([difference[:20], difference[20:]] * 2, None, half * 2)
    assert twice.rows == pytest.approx(once.rows)


SURE = {"constant": [9, 9.1, 9, 9.2, 9], "good": [1, 1.1, 1, 1.2, 1]}


def test_a_contender_that_diverges_is_unstable_and_not_equivalent():
    ranking, sentences, told = made(SURE | {"wild": [1.01, 1.11, 1.01, 40, 90], "close": [1.3, 1.4, 1.31, 1.5, 1.3]})
    wild = by_name(ranking)["wild"]
    assert wild["verdict"] == "unstable across folds"
    assert verdict(wild, told) == "unstable across folds, worse than the baseline"
    assert "Unstable across folds, worse than the baseline in some: Wild (in 2 of 5)." in sentences
    assert not any("No significant difference" in one for one in sentences)


def test_no_significant_difference_comes_with_its_interval_and_no_advice():
    ranking, sentences, _ = made(SURE | {"other": [1.3, 0.9, 1.4, 1.0, 1.5]})
    text = " ".join(sentences)
    assert by_name(ranking)["other"]["verdict"] == "no significant difference"
    assert "No significant difference to the best, which does not mean equal: Other (2 % worse, 95 % CI" in text
    assert "worse in 3 of 5 folds" in text
    assert "--repeats 3" in text
    assert "fits" not in text


def test_a_faster_one_is_named_only_where_it_is_equivalent():
    level = {"other": [1.001, 1.101, 1.0, 1.2, 1.0005]}
    ranking, sentences, told = made(SURE | level)
    assert by_name(ranking)["other"]["verdict"] == "practically equivalent"
    assert any(one.startswith("Practically equivalent to the best") and "Other" in one for one in sentences)
    other = by_name(ranking)["other"]
    other |= {"fit_seconds": 0.1, "fit_cpu_seconds": 0.08}
    said = "Other, practically equivalent to the best, fits 10.0 times as fast (12.5 times in processor time)."
    assert said in summary(ranking, [], told)
    other["fit_cpu_seconds"] = 0.3  # the clock says ten times, the processors three
    assert not any("as fast" in one for one in summary(ranking, [], told))
    other |= {"fit_cpu_seconds": 0.08, "busy": True}
    sentences = summary(ranking, [], told)
    assert not any("as fast" in one for one in sentences)
    assert any(
        one.startswith("The machine was busy with other processes during the fits of Other") for one in sentences
    )


def test_one_that_loses_every_fold_by_a_quarter():
    rng = np.random.default_rng(0)
    base = rng.normal(10, 0.3, 5)
    ranking, sentences, _ = made({"constant": base * 2, "good": base, "worse": base * 1.26 + rng.normal(0, 0.1, 5)})
    assert by_name(ranking)["worse"]["verdict"] == "worse"
    assert "Every other contender is significantly worse." in sentences


def test_told_apart_alone_but_not_among_many():
    rng = np.random.default_rng(3)
    others = {f"o{j}": 1.2 + np.abs(rng.normal(0, 0.5, 5)) for j in range(8)}
    ranking, sentences, told = made(SURE | {"near": [1.1, 1.19, 1.05, 1.3, 1.09]} | others)
    near = by_name(ranking)["near"]
    assert near["p"] < 0.05 < near["p_adjusted"]
    assert near["verdict"] == "worse before adjustment for multiple comparisons"
    assert verdict(near, told).startswith("worse before adjustment for multiple comparisons (p = .0")
    assert any(
        one.startswith("Worse before adjustment for multiple comparisons of 11 contenders:") for one in sentences
    )


def test_nothing_is_found_in_noise():
    rng = np.random.default_rng(0)
    scores = {"constant": 1 + 0.01 * rng.normal(size=5), "a": 0.999 + 0.01 * rng.normal(size=5)}
    _, sentences, _ = made(scores)
    assert "No contender predicts the target significantly better than the baseline." in sentences
    _, sentences, _ = made({"constant": [1.0, 1.01, 1, 1, 1], "a": [1.2, 1.3, 1.21, 1.2, 1.25]})
    assert "No contender does better than the baseline." in sentences
    assert "Worse than the baseline on average: A." in sentences


def test_of_scores_where_more_is_better_worse_is_less():
    scores = {"constant": [0.5] * 5, "a": [0.9, 0.91, 0.9, 0.92, 0.9], "b": [0.7, 0.9, 0.8, 0.9, 0.75]}
    ranking, sentences, _ = made(scores, larger=True)
    row = by_name(ranking)["b"]
    assert row["folds_lost"] == 5
    assert row["difference"] == pytest.approx(-0.096)
    assert "24 % worse" in " ".join(sentences)


@pytest.mark.parametrize(("options", "words"), [
    ({"split": "time"}, "More rows would be needed to show one."),
    ({"repeats": 2}, "--repeats 4"),
    ({"repeats": 10}, "More rows would be needed to show one."),
    ({"folds": 3}, "With 3 folds only large differences are significant: try --folds 5."),
])  # fmt: skip
def test_what_would_tell_more(options, words):
    _, sentences, _ = made(SURE | {"other": [1.3, 0.9, 1.4, 1.0, 1.5]}, **options)
    assert words in " ".join(sentences)


def test_partial_and_unweighted_contenders_are_named():
    some = {"label": "Slow", "folds": 2, "error": "x", "score": 1.5, "best": "Good", "best_score": 1.25}
    ranking, sentences, told = made(SURE, partial=[some])
    assert (
        "Slow completed 2 of 5 folds and is not ranked: rmse 1.5 on these folds; Good has 1.25 on the same folds."
        in sentences
    )
    by_name(ranking)["good"]["unweighted"] = True
    assert "Trained without the sample weights, as their fit takes none: Good." in summary(ranking, [], told)
    assert summary([], [some], told)[0] == "No contender completed all folds."


@pytest.mark.parametrize(
    ("partial", "why"),
    [([], "was chosen"), ([{"label": "Wide", "folds": 2, "score": 1.0, "error": "stopped"}], "finished all folds")],
)
def test_the_constant_alone_says_nothing_of_the_target(partial, why):
    sentences = made({"constant": [1.0, 2.0, 1.5]}, partial=partial)[1]
    assert sentences[1] == (
        f"Only the baseline {why}, so that the comparison does not show whether the columns predict the target."
    )
    assert "No contender predicts the target significantly better than the baseline." not in sentences


def test_what_is_equal_to_a_constant_that_is_best():
    sentences = made({"constant": [1.0, 2.0, 1.5], "same": [1.0, 2.0, 1.5]})[1]
    assert "Equal to the baseline: Same." in sentences
    assert not any("gain over the baseline" in one for one in sentences)


def test_losses_that_grow_in_time_are_compared_by_ratios():
    """As a trend makes them: the best wins every fold, by more and more. What is shown are the differences."""
    scores = {"constant": [15.9, 26.9, 33.2, 36.6, 50.7], "a": [5.8, 16.1, 6.4, 11.7, 11.9]}
    ranking, sentences, _ = made(scores, split="time")
    row = by_name(ranking)["constant"]
    ratio = np.log(np.array(scores["constant"]) / scores["a"])
    difference = np.array(scores["constant"]) - scores["a"]
    half = stats.t.isf(0.025, 4) * difference.std(ddof=1) * np.sqrt(1 / 5 + 1 / 4)
    assert row["difference"] == pytest.approx(difference.mean())
    assert [row["low"], row["high"]] == pytest.approx([difference.mean() - half, difference.mean() + half])
    assert row["p"] == pytest.approx(2 * stats.t.sf(ratio.mean() / (ratio.std(ddof=1) * np.sqrt(1 / 5 + 1 / 4)), 4))
    assert row["verdict"] == "worse"
    assert not any("No contender predicts" in one for one in sentences)


def test_an_interval_that_disagrees_with_the_verdict_is_explained():
    """The loss grows a hundredfold: the difference is near 1 in each fold, the ratio from 2 to next to 1."""
    best = np.array([1.0, 2.0, 30.0, 60.0, 100.0])
    scores = {"constant": best * 1.2 + 2, "a": best, "b": best + np.array([1.0, 1.05, 0.95, 1.0, 1.02])}
    legend = (
        "Intervals are of the difference in loss, unadjusted; significance is by the test of ratios of losses, "
        "adjusted for multiple comparisons."
    )
    ranking, sentences, _ = made(scores, split="time")
    row = by_name(ranking)["b"]
    assert row["low"] > 0 and row["verdict"] == "no significant difference"
    assert legend in sentences
    assert legend not in made(SURE | {"other": [1.3, 0.9, 1.4, 1.0, 1.5]}, split="time")[1]
    assert legend not in made(scores)[1]


def test_an_interval_before_adjustment_is_explained():
    """Worse alone and not among four, and in one fold worse than the baseline, so that the verdict is of the folds."""
    scores = {
        "constant": [1.3, 1.4, 1.3, 1.32, 1.3], "good": [1, 1.1, 1, 1.2, 1], "near": [1.13, 1.26, 1.04, 1.34, 1.08],
        "other": [1.2] * 5,
    }  # fmt: skip
    ranking, sentences, _ = made(scores)
    row = by_name(ranking)["near"]
    assert row["low"] > 0 and row["verdict"] == "unstable across folds"
    assert "Intervals are unadjusted; significance is adjusted for multiple comparisons." in sentences


def test_a_best_that_is_never_beaten_by_the_constant_predicts_something():
    _, sentences, _ = made({"constant": [1.0, 1.5, 1.2, 1.9, 1.1], "a": [0.99, 0.5, 1.19, 0.2, 1.09]})
    assert not any("No contender predicts" in one for one in sentences)


def test_next_to_nothing_is_no_base_for_per_cents():
    scores = {"constant": [17.0, 17.5, 17.2, 17.1, 17.3], "a": [0.0005] * 5, "b": [0.11, 0.12, 0.1, 0.13, 0.1]}
    ranking, _, told = made(scores)
    assert by_name(ranking)["b"]["verdict"] == "practically equivalent"
    assert difference(by_name(ranking)["b"], told).startswith("0.65 % worse [")
    same, _, told = made({"constant": [1.0] * 5, "a": [1.0 + 1e-15] * 5})
    assert difference(same[1], told) == "0 worse [+0 to +0]"


def test_one_fold_that_makes_the_interval_wide_is_named():
    assert outlying_fold(np.array([5.0, 330.0, 8.0])) == 2
    assert outlying_fold(np.array([5.0, 6.0, 8.0, 7.0])) is None
    assert outlying_fold(np.array([1.0, 100.0])) is None
    _, sentences, _ = made(SURE | {"other": [1.01, 1.11, 1.02, 1.21, 6.0]})
    assert "worse in 5 of 5 folds; fold 5 differs widely from the others)" in " ".join(sentences)


def test_table_sentence_and_verdict_have_one_denominator():
    """A contender is equivalent exactly where its interval in the table is within one percent."""
    ranking, _, told = made(SURE | {"in": [1.001, 1.101, 1.0, 1.2, 1.0005], "out": [1.2, 1.3, 1.2, 1.4, 1.2]})
    rows = by_name(ranking)
    assert (rows["in"]["verdict"], rows["out"]["verdict"]) == ("practically equivalent", "worse")
    assert rows["in"]["gain"] == pytest.approx(8.0)
    assert difference(rows["constant"], told).startswith("100 % worse")
    assert difference(rows["out"], told).startswith("2.5 % worse")


def test_where_rows_say_it_all_the_degrees_of_freedom_are_theirs_less_one():
    """Without scatter beyond the rows the p is that of a t test with as many rows as there are."""
    pair = Pair(rows=0.04, within=1e6, n=5)
    for n in (3, 5, 12):
        tests = against_best(np.array([[0.4, 0.4]]), [replace(pair, n=n)], 0.0, np.array([1.0]))
        assert tests.p[0] == pytest.approx(2 * stats.t.sf(0.4 / 0.2, n - 1))


def test_a_contender_that_equals_the_best_is_equivalent_whatever_the_baseline_does():
    """In one fold the baseline is better than both."""
    own = {"constant": [9, 9.1, 0.9, 9.2, 9], "good": [1, 1.1, 1, 1.2, 1], "twin": [1, 1.1, 1, 1.2, 1]}
    ranking, sentences, _ = made(own)
    assert by_name(ranking)["twin"]["verdict"] == "practically equivalent"
    assert not any("Unstable" in one for one in sentences)


def test_contenders_whose_settings_all_failed_are_told_of():
    ranking, _, told = made(SURE | {"other": [1.3, 0.9, 1.4, 1.0, 1.5]})
    by_name(ranking)["other"]["untuned"] = 2
    assert "Not tuned in some folds, as all settings but one failed there: Other." in summary(ranking, [], told)
