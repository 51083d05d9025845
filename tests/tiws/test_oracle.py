"""The reference for unseen categories, against the answers worked out by hand, and identities."""

import math

import numpy as np
import pytest

from tests.oracles import tiws as naive

COLUMNS = ("colour", "size", "shape")
TRAIN = [("red", "S", "o")] * 3 + [("red", "L", "o"), ("blue", "L", "o"), ("blue", "L", "x")]
TARGET = np.array([1.0, 1, 1, 0, 0, 0])
NEW = [("green", "S", "o"), ("green", "S", "x")]
BLUE, RED = 0, 1


def table(rows):
    return [dict(zip(COLUMNS, row)) for row in rows]


def by_hand(new=NEW, **options):
    return naive.poster(table(TRAIN), TARGET, np.ones(6), "colour", table(new), **options)


def close(found, expected, within=1e-9):
    np.testing.assert_allclose(found, expected, rtol=0, atol=within)


def example(seed=0, n_categories=7, n=150, classes=0, n_new=3):
    """A table with signal in its documents, and rows of `n_new` unseen categories."""
    rng = np.random.default_rng(seed)
    kind = rng.random(n_categories + n_new)

    def row(k):
        return {
            "c": f"c{k}",
            "a": "uvw"[rng.binomial(2, kind[k])],
            "b": None if rng.random() < 0.1 else "xy"[int(rng.random() < kind[k])],
        }

    codes = np.concatenate([np.arange(n_categories), rng.integers(n_categories, size=n - n_categories)])
    rows = [row(k) for k in codes]
    new = [row(k) for k in rng.integers(n_categories, n_categories + n_new, size=30)]
    y = kind[codes] * 2 + rng.normal(size=n) * 0.7
    if classes:
        y = np.eye(classes)[np.clip(np.round(y), 0, classes - 1).astype(int)]
    return rows, y, new


# ---------------------------------------------------------------- the answers by hand (section 11)
def test_documents_by_hand():
    categories, words, f = naive.documents(table(TRAIN), np.ones(6), "colour")
    assert categories == ["blue", "red"]
    assert words == [("size", "L"), ("size", "S"), ("shape", "o"), ("shape", "x")]
    assert f.tolist() == [[2, 0, 1, 1], [1, 3, 4, 0]]
    unseen, new = naive.unseen_documents(table([*NEW, ("red", "S", "o")]), categories, words, "colour")
    assert unseen == ["green"]
    assert new.tolist() == [[0, 2, 1, 1]]
    close(by_hand().theta, [1 / 6, 7 / 10])


def test_scores_by_hand():
    T, idf = naive.word_scores(np.array([[2.0, 0, 1, 1], [1, 3, 4, 0], [0, 2, 1, 1]]))
    third = math.sqrt(2 / 3)
    close(T[0], np.array([1, -1, 0, 0]) / third)
    close(T[1], np.array([-1, 1, 2, -2]) / math.sqrt(10 / 3))
    close(T[2], np.array([-1, 1, 0, 0]) / third)
    close(idf[:, 0], [1, 0, -1])
    close(idf[:, 1], np.array([-5, 4, 1]) / math.sqrt(21))
    close(idf[:, 2], np.array([-1, 2, -1]) / math.sqrt(3))
    close(idf[:, 3], np.array([1, -2, 1]) / math.sqrt(3))


def test_poster_by_hand():
    found = by_hand()
    close(2 * found.s[0] - 1, [26 / math.sqrt(1012), 4 / math.sqrt(5280)])
    close(found.s[0], [0.9086514988, 0.5275240941])
    close(found.estimate, [0.3625662384])
    one_row = by_hand(NEW[:1])
    close(one_row.s[0], [0.7328985653, 0.3767376672])
    close(one_row.estimate, [0.3477411034])
    empty = by_hand([("green", "?", "?")])
    close(empty.s[0], [0.5, 0.5])
    close(empty.estimate, [13 / 30])


def test_profiles_by_hand():
    found = naive.documents_method(table(TRAIN), TARGET, np.ones(6), "colour", table(NEW))
    close(found.base, [1 / 2, 1 / 2, 11 / 14, 3 / 14])
    P = naive.profiles(np.vstack([found.f, found.f_new]), found.words, found.base)
    close(P[0], [5 / 6, 1 / 6, 25 / 42, 17 / 42])
    close(P[1], [3 / 10, 7 / 10, 67 / 70, 3 / 70])
    close(P[2], [1 / 6, 5 / 6, 25 / 42, 17 / 42])
    close(found.d2_new[0, BLUE], 2 * (math.sqrt(5 / 6) - math.sqrt(1 / 6)) ** 2)
    close(found.d2_new[0], [0.509288, 0.252239], 5e-7)
    theta = np.array([1 / 6, 7 / 10])
    for g, weights, estimate in ((4, [0.263434, 0.736566], 0.559502), (1, [0.436089, 0.563911], 0.467419)):
        w = naive.weights_at(np.ones(2), found.d2_new[0], g)
        close(w, weights, 5e-7)
        close(w @ theta, estimate, 5e-7)
        close(w[BLUE] / w[RED], math.exp(-g * (found.d2_new[0, BLUE] - found.d2_new[0, RED])))


# ---------------------------------------------------------------- the poster
def test_rows_of_weight_zero_are_absent():
    rows = table([*TRAIN, ("green", "S", "z"), ("blue", "M", "o")])
    found = naive.poster(rows, [*TARGET, 1, 1], [1] * 6 + [0, 0], "colour", table(NEW))
    close(found.estimate, by_hand().estimate)


def test_doubled_unseen_rows_leave_the_scores_over_words():
    _, words, f = naive.documents(table(TRAIN), np.ones(6), "colour")
    scores = []
    for rows in (NEW, NEW * 2):
        _, new = naive.document_of(table(rows), words, "colour")
        scores.append(naive.word_scores(np.vstack([f, new])))
    close(scores[0][0], scores[1][0])
    assert np.abs(scores[0][1] - scores[1][1]).max() > 0.1


def test_order_and_names_change_nothing_in_the_poster():
    rows, y, new = example(11, classes=3)
    one = naive.poster(rows, y, np.ones(len(rows)), "c", new)
    close(one.estimate.sum(axis=1), 1)
    order = np.random.default_rng(0).permutation(len(rows))
    seen, letters = {f"c{k}": f"{(k * 5) % 11:02d}" for k in range(11)}, {"u": "w", "v": "u", "w": "v"}
    renamed = [{**row, "c": seen[row["c"]], "a": letters[row["a"]]} for row in rows]
    later = [{**row, "c": seen[row["c"]], "a": letters[row["a"]]} for row in new[::-1]]
    two = naive.poster([renamed[i] for i in order], y[order], np.ones(len(rows)), "c", later)
    close(two.estimate[[two.unseen.index(seen[c]) for c in one.unseen]], one.estimate)


def test_other_unseen_categories_count_unless_left_out():
    more = [*NEW, ("grey", "L", "o"), ("grey", "S", "o")]
    close(by_hand(more, idf_rows="known+self").estimate[0], by_hand(NEW).estimate[0])
    close(by_hand(NEW, idf_rows="known+self").estimate, by_hand(NEW).estimate)
    assert abs(by_hand(more).estimate[0] - by_hand(NEW).estimate[0]) > 1e-4


def test_sparse_form_of_the_scores():
    rng = np.random.default_rng(0)
    D = rng.integers(0, 6, size=(5, 9)).astype(float)
    T, idf = naive.word_scores(D)
    mu, s = D.mean(axis=1), D.std(axis=1, ddof=1)
    nu, t = D.mean(axis=0), D.std(axis=0, ddof=1)
    A = (D * D - D * nu - mu[:, None] * D) / np.outer(s, t)
    close(T * idf, A + np.outer(mu / s, nu / t), 1e-12)


def test_opposite_profile_is_alike_in_the_poster():
    A, B = np.array([5.0, 1, 4, 2]), np.array([1.0, 5, 2, 4])
    s = naive.similarities(np.vstack([A, B]), A[None])
    close(s[0], [1, 0.5 - 0.5 * np.corrcoef(A, B)[0, 1]])
    close(s[0, 1], 1)


# ---------------------------------------------------------------- documents
@pytest.mark.parametrize("classes", [0, 3])
def test_leaving_a_category_out_in_closed_form(classes):
    for seed in range(4):
        rows, y, new = example(seed, classes=classes)
        found = naive.documents_method(rows, y, np.ones(len(rows)), "c", new).regression
        close(found.loo, found.loo_out)
        close(found.loo_mu, found.loo_out_mu)
        assert np.abs(found.loo - found.loo_mu).max() > 1e-4
        assert (found.vlat_mu > found.vlat).all()
        if classes:
            close(found.estimate.sum(axis=1), 1)


def test_criterion_is_the_likelihood_of_contrasts():
    rows, y, new = example(1)
    found = naive.documents_method(rows, y, np.ones(len(rows)), "c", new)
    size = len(found.n)
    contrasts = np.linalg.svd(np.eye(size) - 1 / size)[0][:, : size - 1].T
    small, r = contrasts @ found.regression.C @ contrasts.T, contrasts @ found.ybar
    expected = 0.5 * r @ np.linalg.solve(small, r) + 0.5 * np.linalg.slogdet(small)[1] + 0.5 * math.log(size)
    close(found.regression.criterion, expected)


def test_no_fraction_gives_the_mean():
    rows, y, new = example(2)
    rng = np.random.default_rng(0)
    for row in rows + new:
        row["a"], row["b"] = rng.choice(["u", "v"], size=2)
    found = naive.documents_method(rows, y, np.ones(len(rows)), "c", new).regression
    assert (found.kernel, found.f) == ("linear", 0)
    close(found.estimate, found.mu)


def test_two_classes_are_a_binary_target():
    rows, y, new = example(3)
    y = (y > np.median(y)).astype(float)
    one = naive.documents_method(rows, y, np.ones(len(rows)), "c", new)
    two = naive.documents_method(rows, np.column_stack([1 - y, y]), np.ones(len(rows)), "c", new)
    close(two.regression.estimate[:, 1], one.regression.estimate)
    close(two.donors.estimate[:, 1], one.donors.estimate)
    close(two.theta[:, 1], one.theta)


def test_weights_are_repeated_rows():
    rows, y, new = example(4, n=60)
    weight = np.random.default_rng(0).integers(0, 4, size=len(rows))
    repeated = [i for i, w in enumerate(weight) for _ in range(w)]
    one = naive.documents_method(rows, y, weight, "c", new)
    two = naive.documents_method([rows[i] for i in repeated], y[repeated], np.ones(len(repeated)), "c", new)
    close(one.regression.estimate, two.regression.estimate)
    close(one.donors.weights, two.donors.weights)


def test_order_names_and_other_unseen_categories_change_nothing():
    rows, y, new = example(5)
    one = naive.documents_method(rows, y, np.ones(len(rows)), "c", new)
    order = np.random.default_rng(0).permutation(len(rows))
    seen = {f"c{k}": f"{(k * 5) % 11:02d}" for k in range(11)}
    letters = {"u": "w", "v": "u", "w": "v"}
    renamed = [{**row, "c": seen[row["c"]], "a": letters[row["a"]]} for row in rows]
    later = [{**row, "c": seen[row["c"]], "a": letters[row["a"]]} for row in new[::-1]]
    two = naive.documents_method([renamed[i] for i in order], y[order], np.ones(len(rows)), "c", later)
    at = [two.unseen.index(seen[c]) for c in one.unseen]
    close(two.regression.estimate[at], one.regression.estimate)
    close(two.donors.estimate[at], one.donors.estimate)
    alone = naive.documents_method(rows, y, np.ones(len(rows)), "c", [r for r in new if r["c"] == one.unseen[0]])
    close(alone.regression.estimate, one.regression.estimate[:1])
    close(alone.donors.weights, one.donors.weights[:1])


def test_donor_weights_sum_to_one_and_lambda_is_the_best():
    rows, y, new = example(6)
    found = naive.documents_method(rows, y, np.ones(len(rows)), "c", new)
    close(found.donors.weights.sum(axis=1), 1)
    near = found.d2 / naive.median_distance(found.d2)
    trust = 1 / (found.tau2 + found.s2 / found.n)
    rho = found.n / (found.n + found.s2 / found.tau2)
    errors = {}
    for g in naive.DECAYS:
        for lam in np.linspace(0, 1, 101):
            guesses = [
                found.mu + lam * (naive.weights_at(np.delete(rho, k), np.delete(near[k], k), g)
                                  @ np.delete(found.theta, k) - found.mu) for k in range(len(rho))
            ]  # fmt: skip
            errors[g, lam] = float(trust @ (found.ybar - guesses) ** 2)
    g, lam = min(errors, key=errors.get)
    assert g == found.donors.g
    assert abs(lam - found.donors.lam) <= 0.005 + 1e-9


def test_interval_takes_a_score_of_the_seen():
    rows, y, new = example(7)
    found = naive.documents_method(rows, y, np.ones(len(rows)), "c", new)
    r = found.regression
    scores = np.sort(np.abs(found.ybar - r.loo) / np.sqrt(r.vlat + found.s2 / found.n))
    for level, at in ((0.5, 3), (0.75, 5), (0.9, 6), (0.1, 0)):
        low, high = naive.interval(r.estimate, r.variance, found.ybar, r.loo, r.vlat, found.n, found.s2, np.inf, level)
        close((high - low) / 2, scores[at] * np.sqrt(r.variance))
        close((high + low) / 2, r.estimate)


# ---------------------------------------------------------------- edge cases (section 9)
def test_one_seen_category_gives_its_mean():
    rows = table([("red", "S", "o"), ("red", "L", "o")])
    close(naive.poster(rows, [0.0, 1], np.ones(2), "colour", table(NEW)).estimate, 0.5)
    found = naive.documents_method(rows, [0.0, 1], np.ones(2), "colour", table(NEW))
    close(found.regression.estimate, found.theta)
    close(found.donors.weights, 1)


def test_no_other_feature_or_no_known_word_gives_the_prior():
    rows, y, _ = example(8)
    only = naive.documents_method([{"c": r["c"]} for r in rows], y, np.ones(len(rows)), "c", [{"c": "new"}])
    close(only.regression.estimate, only.mu)
    poster = naive.poster([{"c": r["c"]} for r in rows], y, np.ones(len(rows)), "c", [{"c": "new"}])
    close(poster.estimate, y.mean())
    found = naive.documents_method(rows, y, np.ones(len(rows)), "c", [{"c": "new", "a": "?", "b": "?"}])
    close(found.h_new, 0)
    close(found.regression.estimate, found.mu)
    close(found.regression.variance, found.tau2)


def test_equal_targets_stay_and_an_empty_call_is_empty():
    rows, y, new = example(9)
    for target in (np.full(len(y), 2.5), y):
        found = naive.documents_method(rows, target, np.ones(len(y)), "c", new if target is not y else [])
        assert len(found.regression.estimate) == len(found.donors.weights) == len(found.unseen)
        close(found.regression.estimate, 2.5)
        close(found.donors.estimate, 2.5)
    assert naive.poster(rows, y, np.ones(len(y)), "c", []).estimate.shape == (0,)


def test_missing_is_a_category_and_a_word():
    rows, y, new = example(10)
    categories, words, _ = naive.documents(rows, np.ones(len(rows)), "b")
    assert categories == ["x", "y", None]
    assert ("a", "u") in words and ("b", None) in naive.documents(rows, np.ones(len(rows)), "c")[1]
    new[0]["c"] = None
    found = naive.documents_method(rows, y, np.ones(len(rows)), "c", new)
    assert found.unseen[-1] is None
    assert found.f_new[-1].sum() == 2
