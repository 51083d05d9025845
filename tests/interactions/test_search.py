"""interactions="auto": the kernels against oracles, what is found and what is not, and the estimators around it."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.interactions import AutoInteractions
from tabsym.interactions import search as crosses
from tabsym.interactions.gains import CodeColumn, HeldOutGains, Sorted
from tabsym.interactions.search import choose_crosses
from tabsym.losses.loss import LOSSES
from tests.options import ADDITIVE
from tests.oracles import online as naive

NONE = np.empty(0)


def random_table(n, sizes, seed=0):
    rng = np.random.RandomState(seed)
    return pd.DataFrame({f"c{i}": rng.randint(0, size, n).astype(str) for i, size in enumerate(sizes)})


def with_share(chance, seed=0):
    return np.random.RandomState(seed + 1000).rand(len(chance)) < chance


def chosen_by(model):
    return model.interactions_["interaction"].tolist()


def columns_of(table):
    return [CodeColumn(name, table[name].astype(np.int32).to_numpy(), table[name].nunique()) for name in table]


def evidence_of(loss="logistic", n=400, n_folds=2, n_outputs=1, weights=False, seed=0):
    rng = np.random.RandomState(seed)
    scores = rng.normal(0, 1, (n_outputs, n, n_folds))
    y = rng.randint(0, max(2, n_outputs), n).astype(float)
    weight = rng.randint(1, 4, n).astype(float) if weights else NONE
    return HeldOutGains(scores, rng.randint(0, n_folds, n).astype(np.int8), y, weight, LOSSES[loss])


def split_gradients(evidence):
    """Gradients and curvatures (n, F, K), as the oracles take them."""
    grads = evidence.models.grads.astype(float).transpose(1, 2, 0)
    return grads[:, ::2], grads[:, 1::2]


# -- kernels --------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "n_folds", "n_outputs"),
    [
        ("logistic", 2, 1),
        ("squared_error", 2, 1),
        ("logistic", 3, 1),
        ("squared_error", 4, 1),
        ("multinomial", 2, 4),
        ("multinomial", 3, 3),
    ],
)
@pytest.mark.parametrize("sizes", [(60, 5), (5, 60), (3, 2), (300, 200)])
def test_gains_and_steps_equal_the_oracles(loss, n_folds, n_outputs, sizes):
    evidence = evidence_of(loss, n_folds=n_folds, n_outputs=n_outputs, weights=True)
    rng = np.random.RandomState(1)
    left, right = (CodeColumn(str(i), rng.randint(0, s, 400).astype(np.int32), s) for i, s in enumerate(sizes))
    grads, hessians = split_gradients(evidence)
    data = (left.codes, right.codes, evidence.fold, grads, hessians, 2.0)
    gain, variance = naive.gain_of_cross(*data)
    cross = Sorted(left)
    for _ in range(2):  # work arrays are left clean
        one = evidence.evaluate(cross, right, 2.0)
        assert one.gain * evidence.total == pytest.approx(gain, rel=1e-9, abs=1e-9)
        assert one.error * evidence.total == pytest.approx(np.sqrt(variance), rel=1e-9)
    rows = np.arange(400)
    assert evidence.gains_of_rows(one, rows).sum() == pytest.approx(gain, rel=1e-4, abs=1e-4)  # in single precision
    before = evidence.models.current_scores()
    evidence.add(one)
    steps = (evidence.models.current_scores() - before).transpose(1, 2, 0)
    wanted = naive.steps_of_cross(*data)
    if n_outputs > 1:  # what is common to all classes has no effect
        steps, wanted = (one - one.mean(axis=2, keepdims=True) for one in (steps, wanted))
    exact = 1e-5 if loss == "logistic" else 1e-9  # exp(-score) is kept in single precision
    np.testing.assert_allclose(steps, wanted, atol=exact)


@pytest.mark.parametrize("name", list(LOSSES))
def test_gradients_and_curvatures_are_those_of_the_loss(name):
    loss = LOSSES[name]
    k = 3 if name == "multinomial" else 1
    rng = np.random.RandomState(0)
    y = rng.randint(0, 3, 50).astype(float) if k == 3 else rng.randint(0, 2, 50) + (0.5 if name == "gamma" else 0.0)
    evidence = HeldOutGains(rng.normal(size=(k, 50, 2)), (np.arange(50) % 2).astype(np.int8), y, NONE, loss)
    grads, hessians = split_gradients(evidence)
    step = 1e-4
    for v in range(2):
        own = evidence.models.current_scores()[:, :, v].T
        for place in range(k):
            up, down = (own + side * step * np.eye(k)[place] for side in (1, -1))
            low, middle, high = (loss.values(scores, y) for scores in (down, own, up))
            np.testing.assert_allclose(grads[:, v, place], (high - low) / (2 * step), atol=1e-3)
            second = (high - 2 * middle + low) / step**2
            if name in ("squared_error", "logistic", "poisson", "gamma", "tweedie"):
                np.testing.assert_allclose(hessians[:, v, place], second, atol=1e-3, rtol=1e-3)
            elif name in ("multinomial", "huber"):
                assert (hessians[:, v, place] > second - 1e-3).all()
            else:
                assert (hessians[:, v, place] == 1).all()


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("n_folds", [2, 3])
@pytest.mark.parametrize("name", [*LOSSES, "tweedie of another power"])
def test_moved_models_have_the_gradients_of_models_that_start_there(name, n_folds, weights):
    """However rows are kept: steps by symbol, of rows without one, and of numbers."""
    loss = replace(LOSSES["tweedie"], parameter=1.3) if " " in name else LOSSES[name]
    k, rng = 3 if name == "multinomial" else 1, np.random.RandomState(0)
    scores = rng.normal(size=(k, 50, n_folds))
    y = rng.randint(0, 3, 50).astype(float) if k == 3 else rng.randint(0, 2, 50) + (0.5 if name == "gamma" else 0.0)
    weight = rng.uniform(0.5, 2.0, 50) if weights else NONE
    fold = (np.arange(50) % n_folds).astype(np.int8)
    moved = HeldOutGains(scores.copy(), fold, y, weight, loss)
    codes, by_category = rng.randint(-1, 4, 50).astype(np.int32), rng.normal(size=(k, 4, n_folds))
    x, of_number = rng.normal(size=50), rng.normal(size=(k, 1, n_folds))
    moved.models.add(codes, NONE, by_category)
    moved.models.add(np.zeros(50, dtype=np.int32), x, of_number)
    there = scores + np.where(codes[:, None] >= 0, by_category[:, codes], 0.0) + x[:, None] * of_number
    grads, hessians = split_gradients(moved)
    wanted_gradients, wanted_hessians = split_gradients(HeldOutGains(there, fold, y, weight, loss))
    np.testing.assert_allclose(grads, wanted_gradients, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(hessians, wanted_hessians, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["logistic", "squared_error", "poisson", "gamma", "tweedie", "huber", "multinomial"])
def test_integer_weights_are_repeated_rows(name):
    rng, loss = np.random.RandomState(2), LOSSES[name]
    scores, y = rng.normal(size=(2 if name == "multinomial" else 1, 400, 2)), rng.randint(0, 2, 400).astype(float)
    y += 0.5 if name == "gamma" else 0.0
    fold, times = rng.randint(0, 2, 400).astype(np.int8), rng.randint(1, 4, 400)
    weighted = HeldOutGains(scores, fold, y, times.astype(float), loss, times)
    repeated = HeldOutGains(np.repeat(scores, times, 1), np.repeat(fold, times), np.repeat(y, times), NONE, loss)
    codes = [rng.randint(0, size, 400).astype(np.int32) for size in (20, 6)]
    results = [
        evidence.evaluate(Sorted(CodeColumn("a", *left)), CodeColumn("b", *right), 2.0)
        for evidence, left, right in (
            (weighted, (codes[0], 20), (codes[1], 6)),
            (repeated, (np.repeat(codes[0], times), 20), (np.repeat(codes[1], times), 6)),
        )
    ]
    assert results[0].gain == pytest.approx(results[1].gain, rel=1e-6)
    assert results[0].error == pytest.approx(results[1].error, rel=1e-6)


def test_a_first_look_takes_a_sample():
    evidence = evidence_of(n=4000)
    rng = np.random.RandomState(1)
    right = CodeColumn("right", rng.randint(0, 5, 4000).astype(np.int32), 5)
    grads, hessians = split_gradients(evidence)
    for size in (8, 400):  # of rows, of symbols
        left = CodeColumn("left", np.sort(rng.randint(0, size, 4000)).astype(np.int32), size)
        first = np.searchsorted(left.codes, left.codes)
        kept = (np.arange(4000) - first) % 4 == 0 if size == 8 else left.codes % 4 == 0
        data = (left.codes, right.codes, evidence.fold, grads, hessians)
        gain, _ = naive.gain_of_cross(*(column[kept] for column in data), 2.0)
        evidence._glanced = kept.astype(np.int64)
        one = evidence.evaluate(Sorted(left), right, 2.0, thinned=True)
        assert one.gain * evidence.total == pytest.approx(gain, rel=1e-6)


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(crosses, "MANY_ROWS", 0)
    table = random_table(3000, [40, 30, 20, 10, 5])
    y = with_share(np.where((table["c3"] < "5") ^ (table["c4"] < "2"), 0.7, 0.2)).astype(float)
    fold = (np.arange(3000) % 2).astype(np.int8)
    found = []
    for n_jobs in (1, 4):
        evidence = HeldOutGains(np.zeros((1, 3000, 2)), fold, y, NONE, LOSSES["logistic"])
        found.append(choose_crosses(columns_of(table), evidence, AutoInteractions(), n_jobs))
    assert found[0] == found[1]
    assert found[0][0].columns == ("c3", "c4")


def test_outliers_in_numbers_leave_finite_gradients():
    rng = np.random.RandomState(0)
    y, fold = rng.randint(0, 2, 400).astype(float), (np.arange(400) % 2).astype(np.int8)
    evidence = HeldOutGains(np.zeros((1, 400, 2)), fold, y, NONE, LOSSES["logistic"])
    x = np.where(np.arange(400) == 7, 1e6, rng.normal(size=400) + y)
    evidence.fit_main_effects([], [x, -3 * x, x])
    assert np.isfinite(evidence.models.grads).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie", "multinomial"])
def test_scores_beyond_an_exp_leave_finite_gradients(name):
    y, fold = 1.0 + np.arange(40) % 2, (np.arange(40) % 2).astype(np.int8)
    scores = np.where(np.arange(40)[:, None] < 2, 1000.0, -1000.0) * np.ones((1, 40, 2))
    if name == "multinomial":
        scores, y = np.concatenate([scores, -scores]), y - 1.0
    models = HeldOutGains(scores, fold, y, NONE, LOSSES[name]).models
    codes = np.zeros(40, dtype=np.int32)
    for step in (50.0, -50.0, -50.0):
        models.add(codes, NONE, np.full((len(scores), 1, 2), step))
        assert np.isfinite(models.grads).all()


# -- what is found ----------------------------------------------------------


def test_exclusive_or_is_found_and_learned():
    X = random_table(3000, [2, 2, 3, 8, 40])
    y = with_share(np.where(X["c0"] != X["c1"], 0.9, 0.1))
    model = WideSGDClassifier(interactions="auto", random_state=0).fit(X, y)
    assert chosen_by(model) == ["c0:c1"]
    assert model.score(X, y) > 0.87
    assert WideSGDClassifier(random_state=0).fit(X, y).score(X, y) < 0.6


@pytest.mark.parametrize("seed", range(4))
def test_noise_has_no_crosses(seed):
    X = random_table(4000, [3, 5, 10, 30, 100, 400], seed)
    rng = np.random.RandomState(seed)
    assert chosen_by(WideSGDClassifier(interactions="auto", random_state=seed).fit(X, rng.rand(4000) < 0.2)) == []
    assert chosen_by(WideSGDRegressor(interactions="auto", random_state=seed).fit(X, rng.normal(size=4000))) == []
    main = sum(rng.normal(size=400)[X[name].astype(int)] for name in X)
    y = main + rng.normal(size=4000)
    assert chosen_by(WideSGDRegressor(interactions="auto", random_state=seed).fit(X, y)) == []


@pytest.mark.parametrize("seed", range(4))
def test_crosses_with_rare_symbols_do_no_harm_where_there_are_none(seed):
    """Two Newton steps leave rare symbols short of what they are owed; a cross with them may be credited with it."""
    X = random_table(8000, [3, 5, 10, 30, 100, 400], seed)
    rng = np.random.RandomState(seed)
    main = sum(rng.normal(size=400)[X[name].astype(int)] for name in X)
    y = rng.rand(8000) < 1 / (1 + np.exp(-main))
    losses = []
    for interactions in (None, "auto"):
        model = WideSGDClassifier(interactions=interactions, random_state=seed).fit(X[:4000], y[:4000])
        losses.append(log_loss(y[4000:], model.predict_proba(X[4000:])))
    assert len(chosen_by(model)) <= 3
    assert losses[1] < losses[0] + 0.005


def test_a_triple_that_extends_pairs_is_found():
    X = random_table(6000, [4, 4, 4, 8, 30])
    y = with_share(np.where((X["c0"] < "2") & (X["c1"] < "2") & (X["c2"] < "2"), 0.95, 0.1))
    model = WideSGDClassifier(interactions="auto", random_state=0).fit(X, y)
    table = model.interactions_.set_index("interaction")
    assert table.loc["c0:c1:c2", ["order", "round", "coefficients"]].tolist() == [3, 1, 64]
    assert {"c0:c1:c2", "c0:c1"} <= set(model.coefs_)
    only_pairs = WideSGDClassifier(interactions=AutoInteractions(max_order=2), random_state=0).fit(X, y)
    assert set(only_pairs.interactions_["order"]) == {2}


def with_triples():
    """Pairs that gain much, a triple of them that gains a sixth of that, one that gains a twentieth."""
    rng = np.random.default_rng(3)
    X = random_table(6000, [30, 25, 20, 15, 300])
    a, b, c, d = (X[f"c{k}"].astype(int).to_numpy() for k in range(4))
    effect = 1.5 * rng.normal(size=(30, 25, 20))[a, b, c] + rng.normal(size=(30, 25))[a, b]
    effect += rng.normal(size=(20, 15))[c, d] + rng.normal(size=(30, 20))[a, c] + rng.normal(size=(25, 20))[b, c]
    return X, (rng.random(6000) < expit(effect)).astype(int)


@pytest.mark.slow
def test_triples_must_gain_a_share_of_what_the_best_pair_did():
    """However rows are dealt to folds: one triple gains a tenth of the best pair, and none three tenths."""
    X, y = with_triples()
    n_others = 0
    for seed in range(10):
        tables = {}
        for share in (0.0, 0.1, 0.3):
            options = AutoInteractions(significance=0.0, threshold=0.0, triple_share=share)
            table = WideSGDClassifier(interactions=options, random_state=seed).fit(X, y).interactions_
            triples, tables[share] = table[table["order"] == 3], table[table["order"] == 2]
            pd.testing.assert_frame_equal(tables[share], tables[0.0])
            assert (triples["gain"] > share * tables[share]["gain"].max()).all()
            found = set(triples["interaction"])
            n_others += len(found - {"c0:c1:c2"})
            assert ("c0:c1:c2" in found) == (share < 0.3)
            assert share == 0.0 or found <= {"c0:c1:c2"}
    assert n_others > 0  # without a share more are let in


def test_a_triple_of_few_frequent_cells_is_weighed_by_all_of_them():
    """A sample of symbols, which is looked at to order pairs, would have none of the rows that tell."""
    rng = np.random.default_rng(0)
    n = 40_000
    a, b, both = rng.integers(1, 30, n), rng.integers(1, 25, n), rng.random(n) < 0.15
    one = rng.random(n)
    a[both | (one < 0.2)], b[both | (one > 0.8)] = 0, 0
    c = rng.integers(0, 6, n)
    effect = 1.5 * rng.normal(size=6)[c] * ((a == 0) & (b == 0)) + rng.normal(size=(30, 25))[a, b] * ~both
    effect += 0.5 * rng.normal(size=(30, 6))[a, c] * (a > 0) + 0.5 * rng.normal(size=(25, 6))[b, c] * (b > 0)
    X = pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "c": c.astype(str)})[:30_000]
    y = (rng.random(n) < expit(effect)).astype(int)[:30_000]
    model = WideClassifier(**ADDITIVE | {"interactions": "auto"})
    assert "a:b:c" in chosen_by(model.fit(X, y))


def test_of_a_name_and_its_id_one_is_crossed():
    X = random_table(4000, [6, 6, 12])
    X["id"] = "id " + X["c0"]
    X.loc[::500, "id"] = "lost"  # nearly its double
    y = with_share(np.where((X["c0"] < "3") ^ (X["c1"] < "3"), 0.8, 0.2))
    found = chosen_by(WideSGDClassifier(interactions="auto", random_state=0).fit(X, y))
    assert found in (["c0:c1"], ["c1:id"])


@pytest.mark.slow
@pytest.mark.parametrize("numeric", ["smooth", "linear"])
def test_the_order_of_columns_does_not_matter(numeric):
    rng = np.random.default_rng(11)
    for _ in range(3):
        X = random_table(250, [4, 4, 4, 4], seed=rng.integers(1000))
        X[["u", "v", "w"]] = rng.normal(size=(250, 3))  # bins are as many for each
        together = (X["c0"] > "1") ^ (X["c1"] > "1")
        y = rng.random(250) < expit(1.5 * together + X["u"] - 0.5 * X["v"] * (X["c3"] > "1") - 1)
        found = []
        for _ in range(4):
            X = X[list(rng.permutation(X.columns))]
            table = (
                WideClassifier(interactions=AutoInteractions(significance=1.0), numeric=numeric).fit(X, y).interactions_
            )
            found.append({frozenset(name.split(":")): gain for name, gain in zip(table["interaction"], table["gain"])})
        for one in found[1:]:
            assert one.keys() == found[0].keys()
            assert list(map(one.get, found[0])) == pytest.approx(list(found[0].values()), rel=1e-9)


def test_a_column_is_not_crossed_with_a_function_of_it():
    X = random_table(3000, [50, 3])
    X["group"] = (X["c0"].astype(int) // 10).astype(str)
    y = np.random.RandomState(0).normal(size=50)[X["c0"].astype(int)]
    options = AutoInteractions(threshold=0, significance=0)
    assert "c0:group" not in chosen_by(WideSGDRegressor(interactions=options, random_state=0).fit(X, y))


def test_regression_and_classes():
    X = random_table(3000, [4, 4, 20])
    effect = (X["c0"].astype(int) + X["c1"].astype(int)) % 4
    y = 1000.0 * effect + np.random.RandomState(0).normal(size=3000)
    model = WideSGDRegressor(interactions="auto", random_state=0).fit(X, y)
    # What the columns by themselves were credited with is stale then, and another cross may set it right.
    assert chosen_by(model)[0] == "c0:c1"
    assert len(chosen_by(model)) <= 2
    assert model.score(X, y) > 0.99
    model = WideSGDClassifier(interactions="auto", random_state=0).fit(X, np.array(list("wxyz"))[effect])
    assert chosen_by(model) == ["c0:c1"]
    assert model.score(X, np.array(list("wxyz"))[effect]) > 0.99


@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_finds_a_strong_cross(name):
    X = random_table(2000, [3, 3, 10])
    up = (X["c0"].astype(int) + X["c1"].astype(int)) % 3 == 0
    if LOSSES[name].for_classes:
        y = with_share(np.where(up, 0.9, 0.1)).astype(int)
        if name == "multinomial":
            y[::9] = 2  # a third class
        model = WideSGDClassifier(loss=LOSSES[name].public_name, interactions="auto", random_state=0)
    else:
        y = np.random.RandomState(0).gamma(2.0, np.where(up, 3.0, 1.0))
        model = WideSGDRegressor(loss=name, interactions="auto", random_state=0)
    assert chosen_by(model.fit(X, y))[0] == "c0:c1"


# -- the estimators around it -------------------------------------------------


def small():
    X = random_table(1200, [3, 3, 8])
    X["n"] = np.random.RandomState(5).normal(size=1200)
    return X, with_share(np.where(X["c0"] == X["c1"], 0.9, 0.1))


def test_what_is_shown():
    X, y = small()
    model = WideSGDClassifier(interactions="auto", random_state=0).fit(X, y)
    assert model.interactions_.columns.tolist() == ["interaction", "order", "gain", "error", "round", "coefficients"]
    row = model.interactions_.iloc[0]
    assert (row["interaction"], row["order"], row["round"], row["coefficients"]) == ("c0:c1", 2, 1, 9)
    assert row["gain"] > 5 * row["error"] > 0
    assert len(model.coefs_["c0:c1"]) == 9
    assert re.search(r"interaction, best first.*\nc0:c1 +9 ", model.summary())
    model.set_params(interactions=None).fit(X, y)
    assert not hasattr(model, "interactions_")
    noise = WideSGDClassifier(interactions="auto", random_state=0).fit(X, with_share(np.full(1200, 0.5)))
    assert noise.interactions_.empty
    assert "interactions: none lowered" in noise.summary()


def test_reproducible_for_any_table_and_threads(monkeypatch):
    monkeypatch.setattr(crosses, "MANY_ROWS", 0)
    X, y = small()
    reference = WideSGDClassifier(interactions="auto", random_state=7).fit(X, y)
    for frame, n_jobs in ((X, 2), (pl.from_pandas(X), 1), (X.astype({"c0": "category"}), 1)):
        model = WideSGDClassifier(interactions="auto", random_state=7, n_jobs=n_jobs).fit(frame, y)
        assert chosen_by(model) == chosen_by(reference)
        if n_jobs == 2:
            pd.testing.assert_frame_equal(model.interactions_, reference.interactions_)
            np.testing.assert_array_equal(model.predict_proba(frame), reference.predict_proba(X))


def test_pickle_clone_and_grid_search():
    X, y = small()
    options = AutoInteractions(max_order=2, folds=3)
    model = WideSGDClassifier(interactions=options, random_state=0)
    assert clone(model).interactions == options
    fitted = pickle.loads(pickle.dumps(model.fit(X, y)))  # noqa: S301
    pd.testing.assert_frame_equal(fitted.interactions_, model.interactions_)
    np.testing.assert_array_equal(fitted.predict_proba(X), model.predict_proba(X))
    search = GridSearchCV(clone(model), {"interactions": [None, "auto", options]}, cv=2).fit(X, y)
    assert search.best_params_["interactions"] is not None


def test_weights_and_offsets_are_taken_along():
    X, y = small()
    weight = np.where(np.arange(1200) < 600, 0.0, 2.0)
    weighted = WideSGDClassifier(interactions="auto", random_state=0).fit(X, y, sample_weight=weight)
    part = WideSGDClassifier(interactions="auto", random_state=0).fit(X[600:], y[600:])
    pd.testing.assert_frame_equal(weighted.interactions_, part.interactions_)
    known = np.where(X["c0"] == X["c1"], 2.2, -2.2)
    assert chosen_by(WideSGDClassifier(interactions="auto", random_state=0).fit(X, y, offset=known)) == []


def test_large_tables_are_sampled():
    X, y = small()
    model = WideSGDClassifier(interactions=AutoInteractions(max_rows=500), random_state=0).fit(X, y)
    assert chosen_by(model) == ["c0:c1"]


def test_few_columns_or_rows_have_no_crosses():
    X, y = small()
    assert chosen_by(WideSGDClassifier(interactions="auto").fit(X[["c0", "n"]], y)) == []
    assert chosen_by(WideSGDClassifier(interactions="auto").fit(X[:3], [0, 1, 0])) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [("max_order", 4), ("max_order", 1), ("rounds", 0), ("folds", 1), ("folds", 2.0), ("threshold", -1.0),
     ("significance", "high"), ("triple_share", -0.1), ("penalty", 0.0), ("max_crosses", True), ("max_rows", 10),
     ("threshold", np.inf), ("within_categories", 1)],
)  # fmt: skip
def test_wrong_options_are_named(option, value):
    with pytest.raises(ValueError, match=rf"AutoInteractions\({option}="):
        AutoInteractions(**{option: value})


def test_pairs_within_categories_are_triples():
    with pytest.raises(ValueError, match="within_categories=True, max_order=2"):
        AutoInteractions(within_categories=True, max_order=2)


def test_wrong_uses_are_named():
    X, y = small()
    with pytest.raises(ValueError, match="interactions='all' is not known"):
        WideSGDClassifier(interactions="all").fit(X, y)
    with pytest.raises(ValueError, match="interactions='auto' has no meaning with a formula"):
        WideSGDClassifier("w[c0]", interactions="auto").fit(X, y)
    with pytest.raises(ValueError, match="interactions='auto' chooses interactions from all rows"):
        WideSGDClassifier(interactions="auto").partial_fit(X, y)
    with pytest.raises(ValueError, match="interactions='auto' chooses interactions from all rows"):
        WideSGDClassifier(interactions="auto").fit(iter([X.assign(y=y)]), "y")
    model = WideSGDClassifier(interactions="auto", random_state=0).fit(X, y)
    assert chosen_by(model.partial_fit(X, y)) == ["c0:c1"]  # what the message says: the others in pieces


@pytest.mark.parametrize("kind", ["amounts", "classes"])
def test_no_interactions_are_searched_where_main_effects_overfit(kind):
    """Additive truths of 50 columns and 1,000 rows: 18 to 36 interactions were found."""
    rng = np.random.default_rng(0)
    n, sizes = 1000, rng.integers(3, 30, 50)
    X = pd.DataFrame({f"c{j}": rng.integers(0, size, n).astype(str) for j, size in enumerate(sizes)})
    eta = sum(0.4 * rng.normal(size=size)[X[f"c{j}"].astype(int)] for j, size in enumerate(sizes[:8]))
    if kind == "amounts":
        model = WideRegressor(loss="squared_error").fit(X, eta + rng.normal(size=n))
    else:
        model = WideClassifier().fit(X, rng.random(n) < 1 / (1 + np.exp(-eta)))
    assert len(model.interactions_) == 0


@pytest.mark.parametrize("interactions", ["pairwise", "auto"])
@pytest.mark.parametrize("value", ["same", 1.0, None, [None, np.nan] * 200])
def test_a_constant_column_changes_nothing(interactions, value):
    """A pair with it is the other column's main effect again, whose variance two terms would share."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("pqrs"), 400), "b": rng.choice(list("xyz"), 400), "z": rng.normal(size=400)})
    y = (X["a"] == "p") + X["z"] + rng.normal(size=400)
    made = []
    more = pd.Series(value, dtype=object) if isinstance(value, list) else value
    for rows in (X, X.assign(c=more)):
        model = WideRegressor(loss="squared_error", interactions=interactions).fit(rows, y)
        assert not any("c" in term.split(":") for term in model.coefs_ if ":" in term)
        made.append(model.predict(rows))
    np.testing.assert_allclose(*made, rtol=1e-9)


@pytest.mark.parametrize(("rounds", "n_gone"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_a_search_goes_on_until_a_round_chooses_nothing(rounds, n_gone, monkeypatch):
    """Two pairs are chosen in the first round, one in the second, none in the third."""
    gone = []

    class Rounds:
        def __init__(self, *_):
            self.chosen = []

        def pairs(self):
            return "pairs"

        def take(self, candidates, round_):
            gone.append(round_)
            self.chosen += [candidates] * max(3 - round_, 0)

    monkeypatch.setattr(crosses, "_Search", Rounds)
    found = choose_crosses([], None, AutoInteractions(max_order=2, rounds=rounds))
    assert gone == list(range(1, n_gone + 1)) and len(found) == min(2 + (rounds > 1), 3)
