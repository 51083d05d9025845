"""Jitter trees: splits against every split there is, numbers against scikit-learn, unseen symbols by replacing them."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, BaggingRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tabsym import JitterTreeClassifier, JitterTreeRegressor, TIWSEncoder
from tests.conftest import as_frame
from tests.oracles import trees as naive_tree

NONE = float("nan")


def make_table(n=60, seed=0, categories=5, missing=0.1):
    rng = np.random.default_rng(seed)
    a = np.array(list("abcdefgh")[:categories], dtype=object)[rng.integers(0, categories, n)]
    b = np.array(["x", "y", "z"], dtype=object)[rng.integers(0, 3, n)]
    number = rng.normal(size=n).round(1)
    a[rng.random(n) < missing] = None
    number[rng.random(n) < missing] = np.nan
    return pd.DataFrame({"a": a, "n": number, "b": b}), rng


def codes_of(model):
    columns = model._columns
    return [
        {category: code for code, category in enumerate(columns.categories(place))} if size else None
        for place, size in enumerate(columns.sizes)
    ]


def rows_of(X):
    columns = [
        X[name].tolist()
        if pd.api.types.is_numeric_dtype(X[name])
        else [None if pd.isna(value) else value for value in X[name]]
        for name in X
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def rows_by_node(model, X):
    ways = [naive_tree.walk(model.tree_, row, codes_of(model)) for row in rows_of(X)]
    return {node: [i for i, way in enumerate(ways) if node in way] for node in range(len(model.tree_))}


def check_every_split(model, X, y, weight, n_classes, **limits):
    """Each node's gain is the best there is; leaves that could be split have a reason."""
    tree = model.tree_
    rows, total = rows_of(X), weight.sum()
    for node, members in rows_by_node(model, X).items():
        at = np.array(members)
        assert len(at) == tree.n_rows[node]
        here, by = y[at], weight[at]
        assert tree.weight[node] == pytest.approx(by.sum())
        impurity = naive_tree.impurity(here, by, model.criterion, n_classes)
        assert tree.impurity[node] == pytest.approx(impurity, abs=1e-9)
        columns = [[rows[i][f] for i in members] for f in range(3)]
        if len(set(here)) == 1:
            assert tree.feature[node] < 0
            continue
        best = naive_tree.best_gain(columns, [True, False, True], here, by, model.criterion, n_classes, **limits)
        if tree.feature[node] >= 0:
            assert tree.gain[node] == pytest.approx(best, abs=1e-9 * total)
        elif model.max_depth is None:
            assert best is None


# -- growing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_every_split_is_the_best_of_all_for_squared_error(seed, weighted):
    X, rng = make_table(seed=seed)
    y = rng.normal(size=60) + (X["a"] == "b") - 2 * (X["b"] == "x")
    weight = rng.integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    model = JitterTreeRegressor(smooth=0).fit(X, y, weight if weighted else None)
    check_every_split(model, X, np.asarray(y), weight, 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_every_split_is_the_best_of_all_for_two_classes(seed, criterion):
    X, rng = make_table(seed=seed)
    y = ((X["a"].isin(["a", "c"])) ^ (rng.random(60) < 0.3)).to_numpy().astype(int)
    weight = rng.random(60) + 0.5
    model = JitterTreeClassifier(criterion=criterion, smooth=0).fit(X, y, weight)
    check_every_split(model, X, y, weight, 2)


@pytest.mark.parametrize("seed", range(8))
def test_splits_of_drawn_means_are_the_best_of_all(seed):
    X, rng = make_table(seed=seed, categories=6)
    X, y = X[["a"]], rng.normal(size=60) + 0.7 * X["a"].isin(["b", "c"]).to_numpy()
    weight = rng.integers(1, 4, 60).astype(float)
    column = [row[0] for row in rows_of(X)]
    model = JitterTreeRegressor(max_depth=1).fit(X, y, weight)
    weight = weight / weight.mean()  # a row of mean weight is a row
    drawn = naive_tree.drawn_targets(column, y, weight)
    if drawn is None:
        assert model.get_n_leaves() == 1
    else:
        best = naive_tree.best_gain([column], [True], drawn, weight, "squared_error", 0)
        assert model.tree_.gain[0] / model.tree_.weight[0] == pytest.approx(best / weight.sum(), rel=1e-9)


def test_keys_do_not_predict():
    rng = np.random.default_rng(0)
    key, number = rng.integers(0, 500, 2000), rng.normal(size=2000)
    X = pd.DataFrame({"key": [f"k{k}" for k in key], "n": number})
    y = number + rng.normal(size=2000)
    honest, greedy = (JitterTreeRegressor(max_depth=3, smooth=smooth).fit(X, y) for smooth in ("auto", 0))
    assert honest.feature_importances_[0] < 0.02 < greedy.feature_importances_[0]
    only = JitterTreeClassifier().fit(X[["key"]], y > 0)
    assert only.get_n_leaves() < 20


@pytest.mark.parametrize("times", [1e-6, 1.0, 100.0])
def test_weights_of_boosting_are_shares_of_rows(times):
    X, y = alike_table()
    model, plain = JitterTreeRegressor().fit(X, y, np.full(400, times)), JitterTreeRegressor().fit(X, y)
    new = alike_table(20, seed=1)[0].assign(s="never")
    np.testing.assert_allclose(model.predict(new), plain.predict(new), rtol=1e-6)


def test_keys_do_not_predict_with_large_weights():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"key": [f"k{k}" for k in rng.integers(0, 500, 2000)], "n": rng.normal(size=2000)})
    y = X["n"] + rng.normal(size=2000)
    model = JitterTreeRegressor(max_depth=3).fit(X, y, rng.uniform(50, 150, 2000))
    assert model.feature_importances_[0] < 0.02


def test_sides_have_the_rows_and_the_weight_that_they_need():
    X, rng = make_table(n=80, missing=0)
    X = X[["n", "n", "n"]].set_axis(["n", "m", "k"], axis=1) + rng.normal(size=(80, 3))
    y, weight = rng.normal(size=80), rng.random(80) + 0.1
    model = JitterTreeRegressor(min_samples_leaf=7, min_weight_fraction_leaf=0.1, max_depth=1).fit(X, y, weight)
    columns = [X[name].tolist() for name in X]
    best = naive_tree.best_gain(columns, [False] * 3, y, weight, "squared_error", 0, 7, 0.1 * weight.sum())
    assert model.tree_.gain[0] == pytest.approx(best)


def test_more_classes_come_near_the_best_subset():
    share = []
    for seed in range(20):
        X, rng = make_table(n=100, seed=seed, categories=6, missing=0)
        X = X[["a"]]
        y = (X["a"].map({s: i for i, s in enumerate("abcdef")}) // 2 + (rng.random(100) < 0.4)).to_numpy() % 3
        model = JitterTreeClassifier(max_depth=1, smooth=0).fit(X, y)
        best = naive_tree.best_gain([X["a"].tolist()], [True], y, np.ones(100), "gini", 3)
        share.append(model.tree_.gain[0] / best)
    assert max(share) <= 1 + 1e-9
    assert np.mean(share) > 0.97


@pytest.mark.parametrize("depth", [1, 3, 6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_numbers_are_split_as_scikit_learn_splits_them(criterion, depth, weighted):
    rng = np.random.default_rng(depth)
    X = rng.normal(size=(2000, 5)).astype(np.float32).astype(float)
    new = rng.normal(size=(500, 5)).astype(np.float32).astype(float)
    score = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=2000)
    weight = rng.random(2000) + 0.5 if weighted else None
    options = {"criterion": criterion, "max_depth": depth, "min_samples_leaf": 40}  # of fewer rows, some splits tie
    if criterion == "squared_error":
        theirs, ours, y = DecisionTreeRegressor(**options, random_state=0), JitterTreeRegressor(**options), score
        theirs.fit(X, y, weight), ours.fit(X, y, weight)
        a, b = theirs.predict(new), ours.predict(new)
    else:
        y = np.digitize(score, [-1.0, 0.5])
        theirs, ours = DecisionTreeClassifier(**options, random_state=0), JitterTreeClassifier(**options)
        theirs.fit(X, y, weight), ours.fit(X, y, weight)
        a, b = theirs.predict_proba(new), ours.predict_proba(new)
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(theirs.tree_.feature.clip(-1), ours.tree_.feature)
    np.testing.assert_allclose(theirs.tree_.impurity, ours.tree_.impurity, atol=1e-9)
    np.testing.assert_allclose(theirs.feature_importances_, ours.feature_importances_, atol=1e-9)
    np.testing.assert_array_equal(theirs.apply(new), ours.apply(new))
    assert (theirs.get_depth(), theirs.get_n_leaves()) == (ours.get_depth(), ours.get_n_leaves())


def test_small_gains_are_refused_as_scikit_learn_refuses_them():
    rng = np.random.default_rng(1)
    X, noise = rng.normal(size=(300, 3)).astype(np.float32).astype(float), rng.normal(size=300)
    options = {"min_impurity_decrease": 0.02, "min_samples_split": 20, "min_samples_leaf": 3}
    theirs = DecisionTreeRegressor(**options).fit(X, X[:, 0] + noise)
    ours = JitterTreeRegressor(**options).fit(X, X[:, 0] + noise)
    np.testing.assert_allclose(theirs.predict(X), ours.predict(X))
    assert 1 < ours.get_n_leaves() < 100


def test_missing_numbers_go_where_scikit_learn_sends_them():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3)).astype(np.float32).astype(float)
    X[rng.random((300, 3)) < 0.2] = np.nan
    y = np.where(np.isnan(X[:, 0]), 2.0, X[:, 0]) + np.nan_to_num(X[:, 1]) + rng.normal(size=300) / 4
    theirs = DecisionTreeRegressor(max_depth=4, min_samples_leaf=5).fit(X, y)
    ours = JitterTreeRegressor(max_depth=4, min_samples_leaf=5).fit(X, y)
    np.testing.assert_allclose(theirs.predict(X), ours.predict(X))


@pytest.mark.parametrize("regression", [False, True])
def test_weights_count_as_repeated_rows_and_zero_as_none(regression):
    """But where rows are counted: for the shrinkage of means, and for similar categories."""
    X, rng = make_table(n=80, seed=3)
    y = rng.integers(0, 10, 80).astype(float) if regression else rng.integers(0, 3, 80)
    times = rng.integers(0, 4, 80)
    options = {"smooth": 0, "handle_unknown": "training_counts"}
    model = JitterTreeRegressor(**options) if regression else JitterTreeClassifier(**options)
    new, _ = make_table(n=200, seed=9, categories=8)
    weighted = clone(model).fit(X, y, times)
    repeated = clone(model).fit(X.loc[X.index.repeat(times)], np.repeat(y, times))
    values = ["predict" if regression else "predict_proba"]
    for name in values:
        np.testing.assert_allclose(getattr(weighted, name)(new), getattr(repeated, name)(new), atol=1e-9)


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_the_order_of_rows_changes_nothing(n_classes):
    X, rng = make_table(n=150, seed=4, categories=8)
    y = rng.normal(size=150) if n_classes == 0 else rng.integers(0, n_classes, 150)
    model = JitterTreeRegressor() if n_classes == 0 else JitterTreeClassifier()
    turned = rng.permutation(150)
    one, other = clone(model).fit(X, y), clone(model).fit(X.iloc[turned], y[turned])
    np.testing.assert_array_equal(one.tree_.feature, other.tree_.feature)
    np.testing.assert_array_equal(one.tree_.categories, other.tree_.categories)
    np.testing.assert_array_equal(one.tree_.to_left, other.tree_.to_left)
    np.testing.assert_allclose(one.tree_.value, other.tree_.value, atol=1e-12)


@pytest.mark.slow
def test_columns_are_drawn_by_the_random_state():
    X, rng = make_table(n=200, seed=5)
    y = rng.normal(size=200)
    trees = [JitterTreeRegressor(max_features=1, smooth=0, random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    assert trees[0].max_features_ == 1
    np.testing.assert_array_equal(trees[0].tree_.feature, trees[1].tree_.feature)
    assert not np.array_equal(trees[0].tree_.feature[:20], trees[2].tree_.feature[:20])
    first = [JitterTreeRegressor(max_features=1, max_depth=1, smooth=0, random_state=s).fit(X, y).tree_.feature[0]
             for s in range(300)]  # fmt: skip
    assert (np.bincount(first, minlength=3) > 70).all()


def test_rows_end_where_the_arrays_say():
    X, rng = make_table(n=100, seed=6)
    y = rng.integers(0, 3, 100)
    model = JitterTreeClassifier(min_samples_leaf=3).fit(X, y)
    leaves = model.apply(X)
    assert leaves.tolist() == [naive_tree.walk(model.tree_, row, codes_of(model))[-1] for row in rows_of(X)]
    for leaf in np.unique(leaves):
        shares = np.bincount(y[leaves == leaf], minlength=3) / (leaves == leaf).sum()
        np.testing.assert_allclose(model.tree_.value[leaf], shares)
    np.testing.assert_allclose(model.predict_proba(X), model.tree_.value[leaves])


def test_a_symbol_that_a_node_has_not_seen_goes_with_most_of_its_rows():
    X, y = alike_table()
    weight = np.random.default_rng(0).random(400) + 0.1
    model = JitterTreeRegressor(smooth=0).fit(X, y, weight)  # no number is missing
    tree, rows = model.tree_, rows_by_node(model, X)
    inner = np.flatnonzero(tree.feature >= 0)
    for node in inner:
        left, right = (weight[rows[side[node]]].sum() for side in (tree.left, tree.right))
        assert tree.other_left[node] == (left > right)
    strange = [n for n in inner if 0 < tree.pointer[n + 1] - tree.pointer[n] < model._columns.sizes[tree.feature[n]]]
    assert strange  # nodes that lack symbols of the table: what follows goes through them
    mixed = pd.DataFrame(list(product("abcdef", "rstuv", "KLM", [0.0, 2.0, 4.0])), columns=list(X))
    ends = [naive_tree.walk(tree, row, codes_of(model))[-1] for row in rows_of(mixed)]
    assert model.apply(mixed).tolist() == ends


# -- unseen symbols ----------------------------------------------------------------------------


def alike_table(n=400, seed=0):
    """Symbols a..f of `s`, told apart by `t` and `kind`; r..v of `t`; both matter to y together."""
    rng = np.random.default_rng(seed)
    s, t = rng.integers(0, 6, n), rng.integers(0, 5, n)
    kind = np.where(rng.random(n) < 0.8, s % 3, rng.integers(0, 3, n))
    number = rng.normal(size=n) + s
    y = s * 1.0 + t * (s % 2) + number / 3 + rng.normal(size=n) / 5
    X = pd.DataFrame({
        "s": np.array(list("abcdef"))[s], "t": np.array(list("rstuv"))[t], "kind": np.array(list("KLM"))[kind],
        "n": number.round(2),
    })  # fmt: skip
    return X, y


def by_replacing(model, X, names):
    """The mean of the predictions with each unseen symbol replaced by each of its donors."""
    places = {name: list(X.columns).index(name) for name in names}
    tables = {name: model.donors(X, name, n_donors=10_000) for name in names}
    out = []
    for i, row in enumerate(rows_of(X)):
        donors = {}
        for name, place in places.items():
            mine = tables[name][tables[name]["category"] == X[name].iloc[i]]
            if len(mine):
                donors[place] = dict(zip(mine["donor"], mine["weight"], strict=True))
        out.append(naive_tree.mixture(model.tree_, row, codes_of(model), donors))
    return np.array(out)


@pytest.mark.parametrize("method", ["documents", "poster"])
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("names", [["s"], ["s", "t"]])
def test_a_mixture_is_replacing_by_each_donor_and_averaging(method, classes, names):
    X, y = alike_table()
    model = JitterTreeRegressor(encoder=TIWSEncoder(method=method), min_samples_leaf=3)
    if classes:
        model, y = JitterTreeClassifier(encoder=TIWSEncoder(method=method)), np.digitize(y, [2.0, 5.0])
    model.fit(X, y)
    new = alike_table(40, seed=1)[0]
    for name in names:
        new.loc[new.index % (2 if name == "s" else 3) == 0, name] = "never"
    values = model.predict_proba(new) if classes else model.predict(new)[:, None]
    np.testing.assert_allclose(values, by_replacing(model, new, names), rtol=1e-12, atol=1e-12)


def test_independent_divides_anew_at_each_node():
    X, y = alike_table()
    new = alike_table(30, seed=1)[0].assign(s="never")
    model = JitterTreeRegressor(handle_unknown="similar_per_node", max_depth=5).fit(X, y)
    weights = dict(model.donors(new, "s", n_donors=100)[["donor", "weight"]].itertuples(index=False))
    tree, code = model.tree_, codes_of(model)
    names = model._columns.categories(0)

    def value(node, row):
        if tree.feature[node] < 0:
            return tree.value[node, 0]
        if tree.feature[node] != 0:
            way = naive_tree.walk(tree, row, code) if node == 0 else None
            f, cell = tree.feature[node], row[tree.feature[node]]
            left = code[f][cell] in tree.left_categories(node) if code[f] else cell <= tree.threshold[node]
            if code[f] and code[f][cell] not in tree.categories[tree.pointer[node] : tree.pointer[node + 1]]:
                left = tree.other_left[node]
            assert way is None or way[1] == (tree.left[node] if left else tree.right[node])
            return value(tree.left[node] if left else tree.right[node], row)
        left, right = ({names[c] for c in side(node)} for side in (tree.left_categories, tree.right_categories))
        share = sum(w for k, w in weights.items() if k in left or (k not in right and tree.other_left[node]))
        return share * value(tree.left[node], row) + (1 - share) * value(tree.right[node], row)

    expected = [value(0, row) for row in rows_of(new)]
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9)
    mixture = JitterTreeRegressor(max_depth=5).fit(X, y).predict(new)
    assert np.abs(mixture - expected).max() > 1e-3  # a way can split on s twice


def test_cover_and_stop_need_no_donors():
    X = pd.DataFrame({"s": list("aaab"), "n": [0.0, 0.0, 0.0, 0.0]})
    new = pd.DataFrame({"s": ["never"], "n": [0.0]})
    cover = JitterTreeRegressor(handle_unknown="training_counts").fit(X, [1.0, 1.0, 1.0, 9.0])
    stop = JitterTreeRegressor(handle_unknown="node_value").fit(X, [1.0, 1.0, 1.0, 9.0])
    assert cover.predict(new).tolist() == [3.0] and stop.predict(new).tolist() == [3.0]
    assert cover.encoder_ is None and stop.apply(new).tolist() == [0]
    assert cover.apply(new).tolist() == cover.apply(X[:1]).tolist()  # where most of it goes
    with pytest.raises(ValueError, match="There are no donors for column 's'"):
        cover.donors(new, "s")


def test_an_unseen_symbol_is_predicted_as_the_seen_one_that_it_behaves_like():
    X, y = alike_table(3000)
    like = X["s"].eq("e") & (np.arange(3000) % 2 == 0)
    seen = X[~like]
    model = JitterTreeRegressor(min_samples_leaf=20).fit(seen, y[~like])
    new = X[like].assign(s="never")
    assert model.donors(new, "s", n_donors=1)["donor"].tolist() == ["e"]
    truth, blind = (
        model.predict(X[like]),
        JitterTreeRegressor(min_samples_leaf=20, handle_unknown="node_value").fit(seen, y[~like]),
    )
    assert np.abs(model.predict(new) - truth).mean() < 0.5 * np.abs(blind.predict(new) - truth).mean()


def test_context_says_what_an_unseen_symbol_goes_by():
    X, y = alike_table()
    new = alike_table(20, seed=1)[0].assign(s="never")
    batch = JitterTreeRegressor().fit(X, y)
    row = JitterTreeRegressor(context="row").fit(X, y)
    alone = np.concatenate([row.predict(new[i : i + 1]) for i in range(20)])
    np.testing.assert_allclose(row.predict(new), alone, rtol=1e-12)
    assert np.abs(batch.predict(new) - alone).max() > 1e-3
    assert len(row.donors(new, "s", n_donors=1)) == 20 and len(batch.donors(new, "s", n_donors=1)) == 1
    service = JitterTreeRegressor(context="observed").fit(X, y)
    service.encoder_.observe(new)
    one_by_one = np.concatenate([service.predict(new[i : i + 1]) for i in range(20)])
    np.testing.assert_allclose(one_by_one, batch.predict(new), rtol=1e-12)


def test_seen_rows_do_not_depend_on_unseen_ones():
    X, y = alike_table()
    model = JitterTreeRegressor().fit(X, y)
    both = pd.concat([X[:30], X[:30].assign(s="never")])
    np.testing.assert_array_equal(model.predict(both)[:30], model.predict(X[:30]))


# -- input -------------------------------------------------------------------------------------


def test_every_kind_of_frame_gives_the_same_tree(make_frame):
    X, rng = make_table(n=80, seed=7)
    y = rng.integers(0, 2, 80)
    columns = {"a": [None if pd.isna(v) else v for v in X["a"]], "n": X["n"].fillna(0).tolist(), "b": X["b"].tolist()}
    plain = JitterTreeClassifier().fit(as_frame(columns, "pandas-object"), y)
    model = JitterTreeClassifier().fit(make_frame(columns), y)
    new = {"a": ["a", "b", None, "never"], "n": [0.0, 1.0, -1.0, 0.5], "b": ["x", "never", "y", "z"]}
    np.testing.assert_array_equal(plain.tree_.categories, model.tree_.categories)
    np.testing.assert_allclose(
        model.predict_proba(make_frame(new)), plain.predict_proba(as_frame(new, "pandas-object"))
    )
    assert model.export_text() == plain.export_text()


def test_arrays_and_cols():
    X, rng = make_table(n=80, seed=8, missing=0)
    y = rng.normal(size=80)
    frame = JitterTreeRegressor().fit(X, y).predict(X)
    np.testing.assert_array_equal(JitterTreeRegressor().fit(X.to_numpy(), y).predict(X.to_numpy()), frame)
    numbers = np.column_stack([X["a"].map({s: i for i, s in enumerate("edcba")}), X["n"]]).astype(float)
    model = JitterTreeRegressor(cols=[0]).fit(numbers, y)
    assert model._columns.sizes.tolist() == [5, 0] and not hasattr(model, "feature_names_in_")
    words = JitterTreeRegressor().fit(X[["a", "n"]], y)
    np.testing.assert_allclose(model.predict(numbers), words.predict(X[["a", "n"]]), rtol=1e-12)
    everything = JitterTreeRegressor(cols="all").fit(numbers, y)
    assert (everything._columns.sizes > 0).all()


def test_ensembles_of_scikit_learn_take_them():
    X, y = alike_table(200)
    array, label = X.to_numpy(dtype=object), (y > np.median(y)).astype(int)
    bag = BaggingClassifier(JitterTreeClassifier(), n_estimators=5, random_state=0).fit(array, label)
    assert bag.score(array, label) > 0.9
    new = array[:10].copy()
    new[:, 0] = "never"
    assert np.allclose(bag.predict_proba(new).sum(axis=1), 1)
    boosted = AdaBoostClassifier(JitterTreeClassifier(max_depth=2), n_estimators=5).fit(array, label)
    assert boosted.score(array, label) > 0.9
    forest = BaggingRegressor(JitterTreeRegressor(max_features=2), n_estimators=5, max_features=0.75, random_state=0)
    assert forest.fit(array, y).score(array, y) > 0.8
    assert forest.fit(X[["n"]].to_numpy(), y).score(X[["n"]].to_numpy(), y) > 0.8


def test_edges():
    X, rng = make_table(n=20)
    one_class = JitterTreeClassifier().fit(X, ["yes"] * 20)
    assert one_class.predict(X).tolist() == ["yes"] * 20 and one_class.predict_proba(X).shape == (20, 1)
    constant = JitterTreeRegressor().fit(X, np.full(20, 3.0))
    assert constant.get_n_leaves() == 1 and (constant.predict(X.assign(a="never")) == 3).all()
    assert constant.feature_importances_.tolist() == [0, 0, 0] and constant.get_depth() == 0
    same = pd.DataFrame({"s": ["a"] * 20})
    assert JitterTreeRegressor().fit(same, np.arange(20.0)).predict(pd.DataFrame({"s": ["b"]})).tolist() == [9.5]
    y = rng.normal(size=20)
    model = JitterTreeRegressor().fit(X, y)
    assert model.predict(X[:0]).shape == (0,) and model.apply(X[:0]).shape == (0,)
    assert JitterTreeRegressor().fit(X[:1], [2.0]).predict(X).tolist() == [2.0] * 20
    gone = pd.DataFrame({"a": [None] * 4, "n": [NONE] * 4, "b": ["never"] * 4})
    assert np.isfinite(model.predict(gone)).all()
    empty = pd.DataFrame({"a": pd.Series([None] * 4, dtype=object), "n": [NONE] * 4})
    assert JitterTreeClassifier().fit(empty, [0, 1, 1, 1]).predict(empty).tolist() == [1] * 4


def test_a_symbolic_xor_is_learned_although_no_first_split_gains():
    X = pd.DataFrame(list(product("ab", "cd")) * 5, columns=["s", "t"])
    y = (X["s"] == "a") ^ (X["t"] == "c")
    assert (JitterTreeClassifier(smooth=0).fit(X, y).predict(X) == y).all()


def test_importances_text_and_pickles():
    X, y = alike_table()
    model = JitterTreeRegressor(max_depth=2).fit(X, y)
    assert model.feature_importances_.sum() == pytest.approx(1) and model.feature_importances_.argmax() in (0, 3)
    text = model.export_text(max_categories=1)
    assert text.count("value:") == model.get_n_leaves() and "in all}" in text
    assert "1 more split\n" in model.export_text(max_depth=1)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    new = X.assign(s="never")
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"criterion": "mse"}, "criterion='mse' is not known"),
        ({"handle_unknown": "left"}, "handle_unknown='left' is not known"),
        ({"context": "all"}, "context='all' is not known"),
        ({"max_depth": 0}, "max_depth=0 is not possible"),
        ({"min_samples_leaf": 0}, "min_samples_leaf=0 is not possible"),
        ({"min_samples_split": 1}, "min_samples_split=1 is not possible"),
        ({"min_weight_fraction_leaf": 0.7}, "of at least 0 and at most 0.5"),
        ({"max_features": "all"}, "max_features='all' is not known"),
        ({"min_impurity_decrease": -1.0}, "of at least 0"),
        ({"smooth": None}, "smooth=None is not possible"),
    ],
)
def test_options_that_are_not_possible_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        JitterTreeRegressor(**options).fit(pd.DataFrame({"s": ["a", "b"]}), [0.0, 1.0])


def test_an_encoder_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="use a TIWSEncoder"):
        JitterTreeClassifier(encoder="tiws").fit(pd.DataFrame({"s": ["a", "b"]}), [0, 1])


@pytest.mark.parametrize("tree", [JitterTreeClassifier, JitterTreeRegressor])
def test_unknown_categories_are_refused_where_asked(tree):
    X = pd.DataFrame({"s": ["a", "b"] * 20, "t": ["u"] * 40})
    y = [0, 1] * 20
    model = tree(handle_unknown="error").fit(X, y)
    assert model.encoder_ is None
    np.testing.assert_array_equal(model.predict(X), tree().fit(X, y).predict(X))
    for column in ("s", "t"):  # the tree does not split t
        with pytest.raises(ValueError, match=f"Column '{column}' holds 'new' .row 3., which is not in the training"):
            model.predict(X.mask((X.index == 3)[:, None] & (X.columns == column), "new"))
    with pytest.raises(ValueError, match=r"Column 's' holds a missing value .row 0., which is not in the training"):
        model.predict(X.assign(s=None))


def test_a_class_whose_rows_have_weight_0_is_absent():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("pqrs"), 400), "b": rng.choice(list("xyz"), 400)})
    y, weight = rng.choice(["u", "v", "w"], 400), rng.integers(1, 3, 400).astype(float)
    kept = y != "w"
    whole = JitterTreeClassifier(random_state=0).fit(X, y, sample_weight=np.where(kept, weight, 0.0))
    part = JitterTreeClassifier(random_state=0).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert whole.classes_.tolist() == ["u", "v"]
    np.testing.assert_allclose(whole.predict_proba(X), part.predict_proba(X))
