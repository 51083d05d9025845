"""Selective naive Bayes: its weights against a grid of weights, its numbers against Khiops', and what it promises."""

from itertools import product
from math import lgamma, log

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from tabsym import MODLEncoder, SelectiveNaiveBayesClassifier, load, save
from tabsym.naive_bayes import fit_naive_bayes
from tests.conftest import as_frame
from tests.oracles import modl as naive_modl

ALONE = MODLEncoder(n_candidates=1)  # the cost of a column does not depend on the others


def make_table(n=400, seed=0, classes="yn"):
    """Two columns that are informative, dependent given the class, and one of noise."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, n)
    b = np.where(rng.random(n) < 0.6, a, rng.integers(0, 4, n))
    code = (a + b + rng.integers(0, 4, n)) * len(classes) // 10
    table = pd.DataFrame({"a": np.array(list("uvwx"))[a], "b": b * 1.5})
    table["noise"] = np.array(list("pqr"))[rng.integers(0, 3, n)]
    return table, np.array(list(classes))[code]


def naive_columns(model, X, y):
    """By the definition: counts (parts, classes), the part of each row and the cost of the partition, by column."""
    found = {}
    for name, fitted in model.encoder_.partitions_.items():
        values = [None if pd.isna(value) else value for value in X[name]]
        if hasattr(fitted, "groups"):
            part_of = {value: i for i, members in enumerate(fitted.groups) for value in members}
        else:
            part_of = {value: int((fitted.bounds < value).sum()) for value in set(values)}
        parts = [part_of[value] for value in values]
        distinct = sorted(set(values))
        table = pd.crosstab(pd.Series(values), pd.Series(y)).loc[distinct].to_numpy()
        labels = [part_of[one] for one in distinct]
        counts = np.array(pd.crosstab(pd.Series(parts), pd.Series(y)))
        if len(counts) < 2:
            continue
        if hasattr(fitted, "groups"):
            cost = naive_modl.grouping_cost(table, labels, "khiops")
        else:
            ends = [i + 1 for i in range(len(labels)) if i + 1 == len(labels) or labels[i] != labels[i + 1]]
            cost = naive_modl.interval_cost(table, ends, "khiops")
        cost -= sum(lgamma(row.sum() + 1) - sum(lgamma(n + 1) for n in row) for row in counts) + log(2)
        found[name] = counts, parts, cost
    return found


def naive_scores(columns, weights, y, classes):
    """ln P(class) + sum of weight * ln P(part | class) of each row (n, J)."""
    n = len(y)
    share = [sum(t == c for t in y) / n for c in classes]
    tables = {
        name: np.log((counts + 1 / (n + 1)) / (counts.sum(axis=0) + len(counts) / (n + 1)))
        for name, (counts, _, _) in columns.items()
    }
    of_columns = [weights[name] * tables[name][parts] for name, (_, parts, _) in columns.items()]
    return np.array(np.log(share) + sum(of_columns))


def naive_objective(columns, weights, y, classes, prior_weight=0.1):
    scores = naive_scores(columns, weights, y, classes)
    loss = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(y)), np.searchsorted(classes, y)]
    return loss.sum() + prior_weight * sum(weights[name] * cost for name, (_, _, cost) in columns.items())


@pytest.mark.parametrize(("classes", "prior_weight"), [("yn", 0.1), ("abc", 0.1), ("abc", 1.0)])
def test_no_weights_on_a_grid_cost_less(classes, prior_weight):
    X, y = make_table(200, classes=classes)
    model = SelectiveNaiveBayesClassifier(encoder=ALONE, prior_weight=prior_weight).fit(X, y)
    columns = naive_columns(model, X, y)
    assert list(columns) == ["a", "b"]
    grid = {
        pair: naive_objective(columns, dict(zip("ab", pair, strict=True)), y, model.classes_, prior_weight)
        for pair in product(np.linspace(0, 1, 11), repeat=2)
    }
    best = min(grid, key=grid.get)
    assert naive_objective(columns, model.weights_, y, model.classes_, prior_weight) <= grid[best] + 1e-9
    assert abs(np.array(best) - [model.weights_["a"], model.weights_["b"]]).max() < 0.1
    assert min(best) > 0 or prior_weight == 1.0
    at_optimum = naive_objective(columns, model.weights_, y, model.classes_, prior_weight)
    for name, step in product("ab", (-2e-4, 2e-4)):  # so near that a tenth of a nat in the costs would show
        there = model.weights_ | {name: np.clip(model.weights_[name] + step, 0, 1)}
        assert naive_objective(columns, there, y, model.classes_, prior_weight) >= at_optimum - 1e-8


def test_probabilities_are_those_of_the_definition():
    X, y = make_table(200, classes="abc")
    model = SelectiveNaiveBayesClassifier(encoder=ALONE).fit(X, y)
    scores = naive_scores(naive_columns(model, X, y), model.weights_, y, model.classes_)
    wanted = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    wanted = (200 * wanted + 0.5 / 3) / 200.5
    assert model.predict_proba(X) == pytest.approx(wanted, abs=1e-12)
    assert (model.predict(X) == np.array(list("abc"))[wanted.argmax(axis=1)]).all()


def test_khiops_has_nearly_the_same_weights_importances_and_probabilities():
    """Khiops 11.0.1 on all rows of iris, without trees; its prior has the weights to the power of .95."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = SelectiveNaiveBayesClassifier().fit(X, y)
    assert [model.weights_[name] for name in X] == pytest.approx([0, 0, 0.507812, 0.570312], abs=0.025)
    assert model.feature_importances_ == pytest.approx([0, 0, 0.470533, 0.529467], abs=0.005)
    theirs = [[0.9977, 0.0012, 0.0012], [0.0012, 0.9594, 0.0394], [0.0012, 0.5577, 0.4411]]
    assert model.predict_proba(X)[[0, 60, 77]] == pytest.approx(np.array(theirs), abs=0.006)


def test_noise_has_no_weight_and_a_superfluous_column_neither():
    X, y = make_table()
    rng = np.random.default_rng(1)
    X["echo"] = np.where(rng.random(len(X)) < 0.7, X["a"], "u")  # says less of the class than a, and nothing beside it
    model = SelectiveNaiveBayesClassifier().fit(X, y)
    assert model.encoder_.levels_["echo"] > 0
    assert model.weights_["noise"] == model.weights_["echo"] == 0
    assert list(model.weights_)[:2] == sorted(["a", "b"], key=lambda name: -model.weights_[name])
    assert model.feature_importances_[[2, 3]].tolist() == [0, 0] and model.feature_importances_.sum() == pytest.approx(
        1
    )


def test_copies_share_a_weight():
    X, y = make_table()
    one = SelectiveNaiveBayesClassifier(encoder=ALONE).fit(X, y)
    two = SelectiveNaiveBayesClassifier(encoder=ALONE).fit(X.assign(again=X["a"]), y)
    assert two.weights_["a"] == pytest.approx(two.weights_["again"], abs=1e-6)
    assert two.weights_["a"] + two.weights_["again"] == pytest.approx(one.weights_["a"], abs=1e-4)
    assert two.predict_proba(X.assign(again=X["a"])) == pytest.approx(one.predict_proba(X), abs=1e-4)


def test_of_two_copies_the_cheaper_has_the_weight():
    """The problem is then as good as singular."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, 3000)
    parts = [np.where(rng.random(3000) < 0.7, codes, rng.integers(0, 2, 3000)) for _ in range(3)]
    counts = [np.histogram2d(part, codes, 2)[0] for part in parts]
    alone = fit_naive_bayes(parts, codes, counts, np.array([8.0, 20.0, 9.0]))
    both = fit_naive_bayes([parts[0], *parts], codes, [counts[0], *counts], np.array([8.5, 8.0, 20.0, 9.0]))
    assert both.weights == pytest.approx([0, *alone.weights], abs=1e-5)
    assert alone.weights.min() > 0.5


def test_nothing_informative_predicts_the_frequencies():
    X, y = make_table(200, classes="abc")
    for names, prior_weight in ((["noise"], 0.1), (list(X), 1e4)):
        model = SelectiveNaiveBayesClassifier(prior_weight=prior_weight).fit(X[names], y)
        assert set(model.weights_.values()) == {0.0} and not model.feature_importances_.any()
        frequencies = pd.Series(y).value_counts(normalize=True)[model.classes_].to_numpy()
        found = model.predict_proba(X[names])
        assert found == pytest.approx(np.repeat((200 * frequencies[None] + 0.5 / 3) / 200.5, 200, axis=0))


def test_weights_are_relative_and_count_as_rows_once_of_mean_one():
    """As `MODLEncoder`, which counts weights as rows, finds parts by weights of mean 1; those of survey weights too."""
    X, y = make_table(400, classes="abc")
    weight = np.random.default_rng(2).integers(0, 3, len(X))
    rows = weight > 0
    relative = weight / weight[rows].mean()
    models = [SelectiveNaiveBayesClassifier().fit(X, y, weight * unit) for unit in (1, 1_740.0, 1e-3)]
    for model in models:
        assert model.predict_proba(X) == pytest.approx(models[0].predict_proba(X), abs=1e-9)
        assert model.model_.class_counts.sum() == pytest.approx(rows.sum())
    encoder = MODLEncoder(output="group", target_type="classes").fit(X, y, sample_weight=relative)
    assert (encoder.transform(X) == models[0].encoder_.transform(X)).all().all()
    absent = SelectiveNaiveBayesClassifier().fit(X[rows], y[rows], weight[rows])
    assert absent.predict_proba(X) == pytest.approx(models[0].predict_proba(X), abs=1e-9)
    kept = y != "a"
    assert SelectiveNaiveBayesClassifier().fit(X, y, kept * 1.0).classes_.tolist() == ["b", "c"]


def test_weights_of_all_rows_alike_change_nothing():
    X, y = make_table(400)
    plain = SelectiveNaiveBayesClassifier().fit(X, y)
    weighted = SelectiveNaiveBayesClassifier().fit(X, y, np.full(len(X), 1_740.0))
    assert weighted.weights_ == pytest.approx(plain.weights_, abs=1e-9)
    assert weighted.predict_proba(X) == pytest.approx(plain.predict_proba(X), abs=1e-9)


def test_missing_and_unknown_values_are_as_the_encoder_says():
    X, y = make_table()
    X.loc[::9, "a"] = None
    new = pd.DataFrame({"a": [None, "new", "u"], "b": [1.5, 1.5, np.nan], "noise": ["p"] * 3})
    plain = SelectiveNaiveBayesClassifier().fit(X, y)
    rarest = X["a"].value_counts(dropna=False).index[-1]
    same = new.assign(a=[None, rarest, "u"], b=[1.5, 1.5, -1e9])  # missing numbers lie below all
    assert (plain.predict_proba(new) == plain.predict_proba(same)).all()
    nan = MODLEncoder(handle_missing="return_nan", handle_unknown="return_nan")
    left_out = SelectiveNaiveBayesClassifier(encoder=nan)
    found = left_out.fit(X, y).predict_proba(new)
    b_alone = left_out.model_.likelihoods[1][left_out.encoder_.partitions_["b"].parts(np.array([1.5]))[0]]
    scores = np.log(left_out.model_.class_counts / len(X)) + left_out.weights_["b"] * b_alone
    wanted = (len(X) * np.exp(scores) / np.exp(scores).sum() + 0.25) / (len(X) + 0.5)
    assert found[:2] == pytest.approx(np.tile(wanted, (2, 1)))
    with pytest.raises(ValueError, match="Column 'a' holds 'new' "):
        SelectiveNaiveBayesClassifier(encoder=MODLEncoder(handle_unknown="error")).fit(X, y).predict(new)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library):
    X, y = make_table(150)
    wanted = SelectiveNaiveBayesClassifier().fit(X, y)
    model = SelectiveNaiveBayesClassifier().fit(as_frame(X.assign(y=y), library), "y")
    assert model.weights_ == wanted.weights_ and model.feature_names_in_.tolist() == ["a", "b", "noise"]
    assert (model.predict_proba(as_frame(X, library)) == wanted.predict_proba(X)).all()


def test_files(tmp_path):
    X, y = make_table(150, classes="abc")
    model = SelectiveNaiveBayesClassifier(encoder=MODLEncoder(max_parts=3), prior_weight=0.2).fit(X, y)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert again.weights_ == model.weights_ and again.get_params()["encoder__max_parts"] == 3


def test_options_are_checked():
    X, y = make_table(60)
    with pytest.raises(ValueError, match="prior_weight=-1 is not possible"):
        SelectiveNaiveBayesClassifier(prior_weight=-1).fit(X, y)
    with pytest.raises(ValueError, match="encoder='modl' is not possible; use a MODLEncoder or None"):
        SelectiveNaiveBayesClassifier(encoder="modl").fit(X, y)
    with pytest.raises(ValueError, match="SelectiveNaiveBayesClassifier needs at least 2 classes"):
        SelectiveNaiveBayesClassifier().fit(X, ["a"] * len(X))
