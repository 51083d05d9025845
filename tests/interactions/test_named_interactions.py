"""Interactions by name, and the share of false ones that interactions="auto" lets in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import clone

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.interactions import AutoInteractions
from tabsym.interactions.search import FOR_BINARY, min_errors
from tests.options import ADDITIVE, GLM

N = 400
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "a": RNG.choice(list("uvw"), N),
        "b": RNG.choice(list("pqrs"), N),
        "c": RNG.choice(list("xy"), N),
        "n": RNG.normal(size=N),
    }
)
EFFECT = dict(zip([(a, b) for a in "uvw" for b in "pqrs"], RNG.normal(size=12), strict=True))
SCORE = np.array([EFFECT[pair] for pair in zip(X["a"], X["b"], strict=True)]) + (X["n"] > 0) * (X["c"] == "x")
Y = SCORE + 0.1 * RNG.normal(size=N)
TWO = (np.median(SCORE) < SCORE).astype(int)
SOLVED = "solved"


def estimators(how, **options):
    """A regressor and a classifier: solved, or trained by an optimizer."""
    if how == SOLVED:
        own = GLM | options
        return WideRegressor(loss="squared_error", **own), WideClassifier(**own)
    own = {"optimizer": how, "random_state": 0, **options}
    return WideSGDRegressor(**own), WideSGDClassifier(**own)


@pytest.mark.parametrize("how", ["adagrad", "sgd", "adam", "rmsprop", SOLVED])
def test_named_pairs_are_the_blocks_of_all_pairs_that_are_asked_for(how):
    both = X[["a", "b"]]
    all_pairs, one_pair = estimators(how, interactions="pairwise"), estimators(how, interactions=[("a", "b")])
    for every, named, y in zip(all_pairs, one_pair, (Y, TWO), strict=True):
        every.fit(both, y)
        named.fit(both, y)
        np.testing.assert_array_equal(every.predict(both), named.predict(both))
        assert list(every.coefs_) == list(named.coefs_)
    some = estimators(how, interactions=[("c", "a"), ["a", "b", "c"]])[0].fit(X, Y)
    assert [name for name in some.coefs_ if ":" in name] == ["c:a", "a:b:c"]


def test_a_named_pair_says_what_its_cells_say():
    """Against least squares on one indicator a cell."""
    both = X[["a", "b"]]
    named = estimators(SOLVED, interactions=[("a", "b")])[0].fit(both, Y)
    means = pd.Series(Y).groupby([X["a"], X["b"]]).transform("mean")
    np.testing.assert_allclose(named.predict(both), means, atol=1e-3)


@pytest.mark.parametrize("numeric", ["modl", "quantile", "smooth"])
def test_numbers_are_crossed_by_their_intervals(numeric):
    table = X.assign(n=np.where(RNG.random(N) < 0.5, X["n"], X["n"] + 2 * TWO))
    model = WideClassifier(**GLM | {"numeric": numeric, "interactions": [("c", "n")]}).fit(table, TWO)
    cells = model.coefs_["c:n"]
    assert len(cells) >= 4
    assert not hasattr(model, "interactions_")
    with pytest.raises(ValueError, match=r"names 'n', a numeric column without bins; .* numeric='quantile'"):
        WideSGDClassifier(interactions=[("c", "n")]).fit(X, TWO)
    some = X[["c", "n"]].round({"n": 0})
    model = WideSGDClassifier(interactions=[("c", "n")], categorical_features=["c", "n"])
    assert "c:n" in model.fit(some, TWO).coefs_


def test_named_interactions_in_other_containers_pieces_and_clones():
    model = estimators(SOLVED, interactions=[("a", "b")])[0]
    wanted = clone(model).fit(X, Y).predict(X)
    frame = pl.DataFrame(X.to_dict("list"))
    np.testing.assert_allclose(clone(model).fit(frame, Y).predict(frame), wanted)
    array = X[["a", "b"]].to_numpy()
    by_place = estimators(SOLVED, interactions=[(0, 1)])[0].fit(array, Y)
    np.testing.assert_allclose(by_place.predict(array), clone(model).fit(X[["a", "b"]], Y).predict(X[["a", "b"]]))
    pieces = WideSGDRegressor(interactions=[("a", "b")], random_state=0)
    pieces.partial_fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    assert "a:b" in pieces.coefs_


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([("a", "colour")], "interactions names 'colour', and there is no such column; there is 'a' or 'b' or"),
        ([("a", "bb")], "interactions names 'bb', and there is no such column; there is 'b'"),
        ([("a",)], r"interactions names \('a',\), which is no pair or triple"),
        ([("a", "a")], r"interactions names \('a', 'a'\), which is no pair or triple of different columns"),
        ([("a", "b", "c", "n")], "no pair or triple"),
        (["ab"], "interactions names 'ab', which is no pair or triple"),
        ([("a", ["b"])], "no pair or triple"),
        ([("a", "b"), ("b", "a")], r"interactions names \('b', 'a'\) twice"),
        ([], "interactions is an empty list; use interactions=None for none"),
        (2, r"interactions=2 is not known; use 'auto', None, 'pairwise', a list of pairs or triples"),
        ("pairs", r"interactions='pairs' is not known; use 'auto', None, 'pairwise', a list of pairs or triples"),
    ],
)
def test_wrong_names_are_sentences(value, words):
    for kind in (WideRegressor, WideSGDRegressor):
        with pytest.raises(ValueError, match=words):
            kind(interactions=value).fit(X, Y)


def test_a_formula_says_itself_what_is_crossed():
    for kind in (WideRegressor, WideSGDRegressor):
        with pytest.raises(ValueError, match="has no meaning with a formula"):
            kind("w[a] + b[1]", interactions=[("a", "b")]).fit(X, Y)


# -- interactions="auto" ------------------------------------------------------------------------------


def drawn(seed, sizes, n, pair=0.0):
    rng = np.random.default_rng(seed)
    codes = [np.minimum((rng.random(n) ** 1.5 * size).astype(int), size - 1) for size in sizes]
    score = sum(rng.normal(size=size)[own] * 0.4 for size, own in zip(sizes, codes, strict=True))
    score = score + (rng.normal(size=(8, 5)) * pair)[np.minimum(codes[0], 7), np.minimum(codes[1], 4)]
    table = pd.DataFrame({f"c{place}": [f"v{code}" for code in own] for place, own in enumerate(codes)})
    return table, (rng.random(n) < expit(score)).astype(int)


def chosen(table, y, **options):
    auto = ADDITIVE | {"interactions": "auto"} | options
    return WideClassifier(**auto).fit(table, y).interactions_["interaction"].tolist()


@pytest.mark.parametrize("sizes", [[3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 60, 200], [5] * 12])
@pytest.mark.slow
def test_additive_truths_have_few_interactions(sizes):
    """Of 50 tables, so that their mean is known to .09."""
    false = [len(chosen(*drawn(seed, sizes, 1000))) for seed in range(50)]
    assert np.mean(false) <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "n_columns", "rows"),
    [
        *((task, 50, 1000) for task in ("two classes", "three classes", "squared_error", "poisson")),
        ("two classes", 100, 1000),
        ("squared_error", 50, 2000),
        ("poisson", 100, 1000),
    ],
)
def test_additive_truths_of_many_columns_have_few_interactions(task, n_columns, rows):
    """Errors by gradients of training rows were too small where main effects overfit: 5 to 25 a table (review)."""
    false = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        codes = np.minimum((rng.random((n_columns, rows)) ** 1.5 * 8).astype(int), 7)
        score = np.take_along_axis(rng.normal(size=(n_columns, 8)) * 0.4, codes, axis=1).sum(axis=0)
        table = pd.DataFrame({f"c{place}": [f"v{code}" for code in own] for place, own in enumerate(codes)})
        if "classes" in task:
            scores = np.stack([0 * score, score, -score][: 3 if task == "three classes" else 2], axis=1)
            model, y = WideClassifier(), np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
        else:
            y = score + rng.normal(size=rows) if task == "squared_error" else rng.poisson(np.exp(0.4 * score))
            model = WideRegressor(loss=task)
        false.append(len(model.fit(table, y).interactions_))
    assert np.mean(false) <= 0.5, false


@pytest.mark.slow
def test_a_true_pair_is_found():
    found = [chosen(*drawn(seed, [8, 5, 3, 4, 6, 10], 1000, pair=0.7)) for seed in range(100)]
    assert np.mean(["c0:c1" in one for one in found]) >= 0.8
    assert np.mean([len(one) for one in found]) <= 1.5
    found = [chosen(*drawn(seed, [8, 5, 3, 4, 6, 10], 3000, pair=0.7)) for seed in range(40)]
    assert np.mean(["c0:c1" in one for one in found]) >= 0.95


def test_the_bar_is_benjamini_and_hochbergs():
    """By hand: of the gains of all pairs, in standard errors."""
    for gains in ([0.5, 5.0, 1.9, 2.4, -1.0], [0.1, 0.2], [2.1, 2.2, 2.3, 2.4]):
        for share in (0.05, 0.3):
            p = np.sort(norm.sf(gains))
            passed = [k for k, one in enumerate(p, 1) if one <= share * k / 10]
            wanted = norm.isf(share * max(passed, default=1) / 10)
            assert min_errors(np.array(gains), share, 10) == pytest.approx(wanted)  # of ten pairs
    assert FOR_BINARY.false_discoveries == 0.05


def test_a_share_of_false_discoveries_is_below_1():
    with pytest.raises(
        ValueError, match=r"AutoInteractions\(false_discoveries=1.0\) is not possible; use a share below 1"
    ):
        AutoInteractions(false_discoveries=1.0)
