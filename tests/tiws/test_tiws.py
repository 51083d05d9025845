"""The methods for unseen symbols against an independent computation, known answers, and what must not matter."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabsym import TIWSEncoder
from tabsym.tiws.counts import deciles
from tests.oracles import tiws as naive_tiws

KINDS = ("regression", "binary", "multiclass")


def make(seed, kind="regression", n=160, l=7, weighted=False, missing=True):  # noqa: E741
    """A table of which the other columns tell something about `a`, and rows of symbols that are new in it."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, l, n)
    X = pd.DataFrame(
        {
            "a": np.array([f"a{code}" for code in range(l)], dtype=object)[own],
            "b": np.array(list("pqrst"), dtype=object)[(own // 2 + rng.integers(0, 3, n)) % 5],
            "c": np.array(list("uvw"), dtype=object)[(own + rng.integers(0, 2, n)) % 3],
        }
    )
    if missing:
        X.loc[rng.random(n) < 0.05, "b"] = None
        X.loc[rng.random(n) < 0.04, "a"] = None
    score = np.sin(own) + 0.4 * (X["c"] == "u") + rng.normal(0, 0.5, n)
    y = {
        "regression": score,
        "binary": np.where(score > 0.3, "yes", "no"),
        "multiclass": np.array(["lo", "mid", "up"])[np.digitize(score, [-0.2, 0.8])],
    }[kind]
    weight = rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    m = 40
    which = rng.integers(0, 3, m)
    new = pd.DataFrame(
        {
            "a": np.array(["n0", "n1", "n2"], dtype=object)[which],
            "b": np.array(list("pqrstz"), dtype=object)[(which + rng.integers(0, 2, m)) % 6],
            "c": np.array(list("uvw"), dtype=object)[(which + rng.integers(0, 2, m)) % 3],
        }
    )
    new.loc[0] = ["n3", "never", "nowhere"]  # no known word
    return X, y, weight, new


def dicts(X):
    return [{k: None if pd.isna(v) else v for k, v in row.items()} for row in X.to_dict("records")]


def components(y):
    """What the oracle takes for a target: numbers, the second class's indicator, or one column for each class."""
    if np.asarray(y).dtype.kind == "f":
        return np.asarray(y)
    classes = np.unique(y)
    hot = (np.asarray(y)[:, None] == classes).astype(float)
    return hot[:, 1] if len(classes) == 2 else hot


def by_category(frame, X, column="a"):
    """Encoded values by symbol of the column, each the same in all its rows."""
    names = [name for name in frame.columns if name == column or name.startswith(f"{column}_")]
    values = frame[names].to_numpy()
    keys = [None if pd.isna(v) else v for v in X[column]]
    found = {}
    for key, value in zip(keys, values, strict=True):
        np.testing.assert_allclose(found.setdefault(key, value), value, atol=1e-12)
    return found


def same(found, keys, values, **limits):
    for key, value in zip(keys, values, strict=True):
        np.testing.assert_allclose(found[key], np.atleast_1d(value), **(limits or {"atol": 1e-8}))


# ---------------------------------------------------------------- against the oracle
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_document_regression_is_the_methods(seed, kind, weighted):
    X, y, weight, new = make(seed, kind, l=[2, 3, 5, 7, 9][seed], weighted=weighted)
    truth = naive_tiws.documents_method(dicts(X), components(y), weight, "a", dicts(new))
    encoder = TIWSEncoder(cols=["a"]).fit(X, y, sample_weight=weight)
    same(by_category(encoder.transform(X[weight > 0]), X[weight > 0]), truth.categories, truth.theta)
    same(by_category(encoder.transform(new), new), truth.unseen, truth.regression.estimate, atol=1e-7)
    assert set(truth.unseen) == {"n0", "n1", "n2", "n3"}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("idf_rows", ["all", "known+self"])
@pytest.mark.parametrize("seed", range(3))
def test_the_posters_estimate_is_as_printed(seed, idf_rows, kind, weighted):
    X, y, weight, new = make(seed, kind, l=[2, 5, 8][seed], weighted=weighted)
    truth = naive_tiws.poster(dicts(X), components(y), weight, "a", dicts(new), idf_rows=idf_rows)
    encoder = TIWSEncoder(method="poster", idf_rows=idf_rows, cols=["a"]).fit(X, y, sample_weight=weight)
    same(by_category(encoder.transform(X[weight > 0]), X[weight > 0]), truth.categories, truth.theta)
    same(by_category(encoder.transform(new), new), truth.unseen, truth.estimate)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_donors_are_the_methods(seed, kind):
    X, y, weight, new = make(seed, kind, l=[3, 4, 7, 9][seed])
    truth = naive_tiws.documents_method(dicts(X), components(y), weight, "a", dicts(new))
    found = TIWSEncoder(cols=["a"]).fit(X, y).donors(new, "a", n_donors=99)
    for unseen, weights in zip(truth.unseen, truth.donors.weights, strict=True):
        of = found[found["category"] == unseen].set_index("donor")["weight"]
        assert of.is_monotonic_decreasing
        for donor, one in zip(truth.categories, weights, strict=True):
            assert of.get(donor, of.get(np.nan, 0.0)) == pytest.approx(one, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("idf_rows", ["all", "known+self"])
@pytest.mark.parametrize("context", ["batch", "row"])
def test_the_posters_donors_are_those_of_transform(kind, idf_rows, context):
    X, y, weight, new = make(2, kind, l=8)
    encoder = TIWSEncoder(method="poster", idf_rows=idf_rows, context=context, cols=["a"]).fit(
        X, y, sample_weight=weight
    )
    rows = new.drop_duplicates("a")
    found = encoder.donors(rows, "a", n_donors=99)
    estimates = [name for name in found if name.startswith("estimate")]
    encoded = encoder.transform(rows)
    made = [name for name in encoded if name == "a" or name.startswith("a_")]
    assert found["weight"].nunique() > len(rows)
    for category, values in zip(rows["a"], encoded[made].to_numpy(), strict=True):
        one = found[found["category"] == category]
        np.testing.assert_allclose(one["weight"] @ one[estimates].to_numpy(), values, atol=1e-12)
    for category, one in encoder.donors(None, "a", n_donors=99).groupby("category"):
        assert category not in set(one["donor"]) and one["weight"].sum() == pytest.approx(1)


@pytest.mark.slow
def test_the_posters_words_are_weighed_over_all_unseen_categories_of_a_call(monkeypatch):
    """Also of more than are compared at a time."""
    monkeypatch.setattr("tabsym.tiws.column._CHUNK", 32)
    X, y, weight, _ = make(2, "regression", l=8)
    many = X.sample(80, replace=True, random_state=0).assign(a=[f"new{i}" for i in range(80)])
    truth = naive_tiws.poster(dicts(X), components(y), weight, "a", dicts(many))
    encoder = TIWSEncoder(method="poster", cols=["a"]).fit(X, y, sample_weight=weight)
    same(by_category(encoder.transform(many), many), truth.unseen, truth.estimate)


@pytest.mark.parametrize("kind", ["regression", "multiclass"])
def test_left_out_symbols_are_estimated_without_them(kind):
    X, y, weight, new = make(3, kind)
    truth = naive_tiws.documents_method(dicts(X), components(y), weight, "a", dicts(new))
    encoder = TIWSEncoder(cols=["a"]).fit(X, y)
    fitted = encoder.columns_["a"].fitted
    origin = fitted.sums.origin
    solution = fitted.solution
    left_out = solution.held_out(np.arange(len(truth.n)))
    rest = [np.delete(truth.theta, k, axis=0) for k in range(len(truth.n))]
    for k, others in enumerate(rest):
        wanted = np.clip(truth.regression.loo_out_mu[k], others.min(axis=0), others.max(axis=0))
        np.testing.assert_allclose(left_out.values[k] + origin, np.atleast_1d(wanted), atol=1e-8)
    np.testing.assert_allclose(left_out.variances, truth.regression.vlat_mu, atol=1e-8)
    if kind == "multiclass":
        return
    in_pairs = np.arange(len(truth.n)) // 2  # two symbols left out together, by leaving them out
    found = solution.held_out(in_pairs).values[:, 0] + origin
    for pair in np.unique(in_pairs):
        out, kept = np.flatnonzero(in_pairs == pair), np.flatnonzero(in_pairs != pair)
        C, ybar = truth.regression.C, truth.ybar
        mu = naive_tiws.general_mean(C[np.ix_(kept, kept)], ybar[kept])
        wanted = mu + C[np.ix_(out, kept)] @ np.linalg.solve(C[np.ix_(kept, kept)], ybar[kept] - mu)
        theta = truth.theta[kept]
        np.testing.assert_allclose(found[out], np.clip(wanted, theta.min(), theta.max()), atol=1e-8)


def test_intervals_are_conformal_over_symbols():
    X, y, weight, new = make(2, l=9)
    truth = naive_tiws.documents_method(dicts(X), y, weight, "a", dicts(new))
    encoder = TIWSEncoder(cols=["a"]).fit(X, y)
    _, found = encoder.transform(new, return_interval=0.8)
    assert list(found.columns) == ["a_lower", "a_upper"]
    fitted = encoder.columns_["a"].fitted
    theta, reg = truth.theta, truth.regression
    rest = [np.delete(theta, k) for k in range(len(theta))]
    loo = np.array([np.clip(reg.loo_out_mu[k], others.min(), others.max()) for k, others in enumerate(rest)])
    at = [new["a"].tolist().index(category) for category in truth.unseen]
    alone = [_unseen(encoder, new[new["a"] == category], "a") for category in truth.unseen]
    variance = np.array([fitted.solution.estimates(fitted.between(one)).variances[0] for one in alone])
    variance[truth.unseen.index("n3")] = truth.tau2
    rows = new["a"].value_counts()[truth.unseen].to_numpy()
    low, high = naive_tiws.interval(
        reg.estimate, variance, truth.ybar, loo, reg.vlat_mu, truth.n, truth.s2, rows, level=0.8
    )
    np.testing.assert_allclose(found["a_lower"].to_numpy()[at], low, atol=1e-7)
    np.testing.assert_allclose(found["a_upper"].to_numpy()[at], high, atol=1e-7)
    assert encoder.transform(X, return_interval=0.8)[1]["a_lower"].isna().all()


# ---------------------------------------------------------------- known answers
def worked_example():
    X = pd.DataFrame(
        [["red", "S", "o"]] * 3 + [["red", "L", "o"], ["blue", "L", "o"], ["blue", "L", "x"]],
        columns=["colour", "size", "shape"],
    )
    return X, [1, 1, 1, 0, 0, 0], pd.DataFrame([["green", "S", "o"], ["green", "S", "x"]], columns=X.columns)


def test_the_worked_example():
    X, y, new = worked_example()
    encoder = TIWSEncoder(method="poster", cols=["colour"], target_type="classes").fit(X, y)
    np.testing.assert_allclose(encoder.transform(X)["colour"].unique(), [7 / 10, 1 / 6], atol=1e-12)
    np.testing.assert_allclose(encoder.transform(new)["colour"], [0.3625662384] * 2, atol=1e-9)
    row = TIWSEncoder(method="poster", context="row", cols=["colour"], idf_rows="known+self").fit(X, y)
    assert row.transform(new)["colour"][0] == pytest.approx(0.3477411034, abs=1e-9)
    empty = pd.DataFrame([["green", "?", "?"]], columns=X.columns)
    assert encoder.transform(empty)["colour"][0] == pytest.approx(13 / 30, abs=1e-12)


def test_the_worked_examples_profiles():
    X, y, new = worked_example()
    fitted = TIWSEncoder(cols=["colour"], target_type="classes").fit(X, y).columns_["colour"].fitted
    assert fitted.categories == ["blue", "red"]
    geometry = fitted.between(_unseen(TIWSEncoder(cols=["colour"], target_type="classes").fit(X, y), new))
    np.testing.assert_allclose(geometry.distances, [[0.509288, 0.252239]], atol=1e-6)


def _unseen(encoder, new, column="colour"):
    return encoder.unseen_rows(new, column).unseen


def test_relabelled_rows_find_their_symbol(data_folder):
    titanic = pd.read_parquet(f"{data_folder}/titanic.parquet")
    rng = np.random.default_rng(0)
    X = titanic[["Embarked", "Pclass", "Sex", "Fare", "Age", "SibSp", "Parch"]].copy()
    renamed = rng.choice(np.flatnonzero(X["Embarked"] == "S"), 77, replace=False)
    X["Embarked"] = X["Embarked"].fillna("?")
    keep = np.setdiff1d(np.arange(len(X)), renamed)
    encoder = TIWSEncoder(cols=["Embarked"], target_type="classes").fit(X.iloc[keep], titanic["Survived"].iloc[keep])
    new = X.iloc[renamed].assign(Embarked="new")
    donors = encoder.donors(new, "Embarked")
    unseen = _unseen(encoder, new, "Embarked")
    fitted = encoder.columns_["Embarked"].fitted
    distances = fitted.between(unseen).distances[0]
    assert fitted.categories[fitted.donors[np.argmin(distances)]] == "S"
    assert donors["donor"].iloc[0] == "S"


# ---------------------------------------------------------------- what must not matter, and what must
@pytest.mark.parametrize("method", ["documents", "poster"])
@pytest.mark.parametrize("kind", KINDS)
def test_order_of_rows_and_names_of_symbols_do_not_matter(kind, method):
    X, y, _, new = make(5, kind)
    rng = np.random.default_rng(1)
    plain = TIWSEncoder(method=method, cols=["a", "b"]).fit(X, y).transform(new)
    order = rng.permutation(len(X))
    mixed = TIWSEncoder(method=method, cols=["a", "b"]).fit(X.iloc[order], y[order])
    back = rng.permutation(len(new))
    np.testing.assert_allclose(mixed.transform(new.iloc[back]).to_numpy()[:, :2].astype(float),
                               plain.to_numpy()[back, :2].astype(float), atol=1e-9)  # fmt: skip
    names = {
        category: f"z{i}" for i, category in enumerate(rng.permutation(list({*X["a"].dropna(), *new["a"]})).tolist())
    }
    other = TIWSEncoder(method=method, cols=["a", "b"]).fit(X.assign(a=X["a"].map(names)), y)
    renamed = other.transform(new.assign(a=new["a"].map(names)))
    np.testing.assert_allclose(renamed.iloc[:, :2].astype(float), plain.iloc[:, :2].astype(float), atol=1e-8)


@pytest.mark.parametrize("method", ["documents", "poster"])
def test_seen_rows_do_not_depend_on_the_batch(method):
    X, y, _, new = make(6)
    encoder = TIWSEncoder(method=method, cols=["a"]).fit(X, y)
    alone = encoder.transform(X)["a"].to_numpy()
    together = encoder.transform(pd.concat([X, new], ignore_index=True))["a"].to_numpy()
    np.testing.assert_array_equal(together[: len(X)], alone)


def test_another_unseen_symbol_changes_nothing_under_documents():
    X, y, _, new = make(7)
    encoder = TIWSEncoder(cols=["a"]).fit(X, y)
    whole = encoder.transform(new)
    for category in new["a"].unique():
        rows = (new["a"] == category).to_numpy()
        np.testing.assert_allclose(encoder.transform(new[rows])["a"], whole["a"][rows], atol=1e-12)


def test_a_row_alone_is_what_it_is_in_context_row():
    X, y, _, new = make(8)
    encoder = TIWSEncoder(cols=["a", "b"], context="row").fit(X, y)
    whole = encoder.transform(new)
    for row in range(len(new)):
        one = encoder.transform(new.iloc[[row]])
        np.testing.assert_allclose(one.iloc[0, :2].astype(float), whole.iloc[row, :2].astype(float), atol=1e-12)


def test_observed_rows_are_context():
    X, y, _, new = make(9)
    batch = TIWSEncoder(cols=["a"]).fit(X, y).transform(new)
    observer = TIWSEncoder(cols=["a"], context="observed").fit(X, y)
    before = observer.transform(new)["a"]
    assert before.nunique() == 1  # nothing observed: the prior
    for row in range(len(new)):  # one row at a time, as a service sees them
        observer.observe(new.iloc[[row]])
    observer.observe(X)  # rows of seen symbols change nothing
    np.testing.assert_allclose(observer.transform(new)["a"], batch["a"], atol=1e-12)
    np.testing.assert_allclose(observer.transform(new.iloc[[5]])["a"], batch["a"].iloc[[5]], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["documents", "poster"])
def test_counts_of_two_halves_are_those_of_the_whole(method, kind):
    X, y, weight, new = make(10, kind, weighted=True)
    options = {"method": method, "cols": ["a", "b"], "numeric": {}}
    half = len(X) // 2
    whole = TIWSEncoder(**options).fit(X, y, sample_weight=weight)
    pieces = TIWSEncoder(**options).partial_fit(X[:half], y[:half], sample_weight=weight[:half])
    pieces.observe(new)
    pieces.partial_fit(X[half:], y[half:], sample_weight=weight[half:])
    merged = TIWSEncoder(**options).fit(X[:half], y[:half], sample_weight=weight[:half])
    merged.merge(TIWSEncoder(**options).fit(X[half:], y[half:], sample_weight=weight[half:]))
    for other in (merged, copy.deepcopy(merged)):
        np.testing.assert_allclose(_numbers(other.transform(X)), _numbers(whole.transform(X)), atol=1e-9)
        np.testing.assert_allclose(_numbers(other.transform(new)), _numbers(whole.transform(new)), atol=1e-7)
    assert set(pieces._observed["a"].categories) == set(new["a"])
    np.testing.assert_allclose(_numbers(pieces.transform(X)), _numbers(whole.transform(X)), atol=1e-9)


def test_what_was_observed_is_kept_where_words_come_in_between():
    X, y, _, new = make(17, missing=False)
    options = {"cols": ["a"], "numeric": {}, "context": "observed"}
    first = ((X["b"] != "p") & (X["c"] != "u") & (X["a"] != "a0")).to_numpy()  # words that sort before the others
    known = new[~new["b"].isin(["p", "z", "never"]) & ~new["c"].isin(["u", "nowhere"])]
    pieces = TIWSEncoder(**options).fit(X[first], y[first]).observe(known)
    pieces.partial_fit(X[~first], y[~first])
    whole = TIWSEncoder(**options).fit(X, y).observe(known)
    assert whole.transform(known)["a"].nunique() > 1
    np.testing.assert_allclose(pieces.transform(known)["a"], whole.transform(known)["a"])
    merged = TIWSEncoder(**options).fit(X[~first], y[~first])
    merged.merge(TIWSEncoder(**options).fit(X[first], y[first]).observe(known))
    np.testing.assert_allclose(merged.transform(known)["a"], whole.transform(known)["a"])


@pytest.mark.parametrize("method", ["documents", "poster"])
def test_a_first_piece_may_lack_classes(method):
    X, y, weight, new = make(12, "multiclass", weighted=True)
    options = {"method": method, "cols": ["a", "b"], "numeric": {}}
    lo = y == "lo"
    pieces = TIWSEncoder(**options)
    pieces.partial_fit(X[lo], y[lo], sample_weight=weight[lo], classes=["up", "lo", "mid"])
    assert pieces.classes_.tolist() == ["lo", "mid", "up"]
    np.testing.assert_allclose(pieces.transform(new)[["a_lo", "a_mid", "a_up"]], [[1, 0, 0]] * len(new), atol=1e-12)
    other = copy.deepcopy(pieces).merge(TIWSEncoder(**options).fit(X, y))
    assert other.classes_.tolist() == ["lo", "mid", "up"]
    pieces.partial_fit(X[~lo], y[~lo], sample_weight=weight[~lo], classes=["lo", "mid", "up"])
    whole = TIWSEncoder(**options).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(_numbers(pieces.transform(X)), _numbers(whole.transform(X)), atol=1e-9)
    np.testing.assert_allclose(_numbers(pieces.transform(new)), _numbers(whole.transform(new)), atol=1e-7)


def test_classes_that_do_not_fit_are_refused_with_what_to_do():
    X, y, _, _ = make(12, "multiclass")
    few = y != "mid"
    with pytest.raises(ValueError, match=r"holds 'mid'.*pass all classes in the first call of partial_fit \(classes="):
        TIWSEncoder().partial_fit(X[few], y[few]).partial_fit(X, y)
    with pytest.raises(ValueError, match="holds 'mid', which is not among the classes"):
        TIWSEncoder().partial_fit(X, y, classes=["lo", "up"])
    with pytest.raises(ValueError, match=r"classes=.* is not the same as on last call to partial_fit"):
        TIWSEncoder().partial_fit(X, y).partial_fit(X, y, classes=["lo", "up"])
    with pytest.raises(ValueError, match="give all classes, at least 2"):
        TIWSEncoder().partial_fit(X, y, classes=["lo"])
    with pytest.raises(ValueError, match="target_type='continuous' has no classes"):
        TIWSEncoder(target_type="continuous").partial_fit(X, y, classes=["lo", "up"])
    numbers = TIWSEncoder().fit(X, np.arange(len(X)) / 3)
    with pytest.raises(ValueError, match="the target held numbers before; leave classes out"):
        numbers.partial_fit(X, y, classes=["lo", "mid", "up"])


def _numbers(frame):
    return frame.drop(columns="c").to_numpy(dtype=float)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repeated_rows(kind):
    X, y, weight, new = make(11, kind, weighted=True)
    times = np.repeat(np.arange(len(X)), weight.astype(int))
    options = {"cols": ["a", "b"], "numeric": {}}
    weighted = TIWSEncoder(**options).fit(X, y, sample_weight=weight)
    repeated = TIWSEncoder(**options).fit(X.iloc[times], y[times])
    np.testing.assert_allclose(_numbers(weighted.transform(new)), _numbers(repeated.transform(new)), atol=1e-8)


@pytest.mark.parametrize("numeric", ["modl", "quantile"])
def test_weights_are_repeated_rows_where_numbers_are_cut(numeric):
    """The deciles of numbers, and of the target by which MODL cuts them, are of weighted rows."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": [f"a{i}" for i in range(60)], "x": rng.normal(size=60), "z": rng.gamma(2.0, size=60)})
    y, weight = 10.0 * X["x"].to_numpy() + rng.normal(size=60), rng.choice([0, 1, 2, 5], 60)
    times = np.repeat(np.arange(60), weight)
    options = {"cols": ["a"], "numeric": numeric}
    weighted = TIWSEncoder(**options).fit(X, y, sample_weight=weight).transform(X)
    np.testing.assert_allclose(weighted, TIWSEncoder(**options).fit(X.iloc[times], y[times]).transform(X), atol=1e-9)


def test_classes_are_on_the_simplex():
    X, y, _, new = make(12, "multiclass")
    for method in ("documents", "poster"):
        for context in ("batch", "row", "observed"):
            encoder = TIWSEncoder(method=method, context=context, cols=["a"]).fit(X, y)
            for table in (X, new):
                values = encoder.transform(table)[[f"a_{label}" for label in encoder.classes_]].to_numpy()
                assert (values >= 0).all()
                np.testing.assert_allclose(values.sum(axis=1), 1.0)


@pytest.mark.slow
def test_a_column_of_random_keys_does_not_predict():
    rng = np.random.default_rng(0)
    n = 2000
    X = pd.DataFrame({"key": rng.integers(0, 900, n).astype(str), "other": rng.choice(list("abc"), n)})
    y = rng.normal(size=n)
    encoder = TIWSEncoder(cols=["key"])
    encoded = encoder.fit_transform(X, y)["key"]
    assert abs(np.corrcoef(encoded, y)[0, 1]) < 0.08
    as_unseen = encoder._held_out_column(encoder._read_as_fitted(X), encoder.columns_["key"], None)[0]
    held_out = TIWSEncoder(cols=["key"]).augment(X, y)[0]["key"].to_numpy()[n:]
    for values in (as_unseen, held_out):
        assert abs(np.corrcoef(values, y)[0, 1]) < 0.08
    from sklearn.tree import DecisionTreeRegressor

    for values in (encoded.to_numpy(), as_unseen, held_out):  # ranks may tell what correlations do not
        half = np.arange(n) < n // 2
        tree = DecisionTreeRegressor(min_samples_leaf=20, random_state=0).fit(values[half, None], y[half])
        assert tree.score(values[~half, None], y[~half]) < 0.02


def test_symbols_that_occur_once_say_nothing():
    X = pd.DataFrame({"key": [f"k{i}" for i in range(60)], "other": list("ab") * 30})
    y = np.arange(60.0) % 7
    encoder = TIWSEncoder(cols=["key"], target_type="continuous").fit(X, y)
    np.testing.assert_allclose(encoder.transform(X)["key"], y.mean(), atol=1e-6)


# ---------------------------------------------------------------- edges
@pytest.mark.parametrize("method", ["documents", "poster"])
@pytest.mark.parametrize("kind", KINDS)
def test_edges(kind, method):
    X, y, _, new = make(13, kind)
    lonely = TIWSEncoder(method=method).fit(X[["a"]], y)  # no other column
    values = lonely.transform(new[["a"]]).to_numpy(dtype=float)
    assert np.isfinite(values).all() and (values == values[0]).all()
    one = TIWSEncoder(method=method, cols=["a"]).fit(X.assign(a="only"), y)  # one seen symbol
    seen, unseen = one.transform(X.assign(a="only")), one.transform(new)
    np.testing.assert_allclose(unseen.iloc[:, 0].astype(float), float(seen.iloc[0, 0]), atol=1e-9)
    assert one.transform(new.iloc[:0]).shape[0] == 0
    if kind == "regression":
        constant = TIWSEncoder(method=method, cols=["a"]).fit(X, np.full(len(X), 3.25))
        np.testing.assert_allclose(constant.transform(new)["a"], 3.25)
    two = TIWSEncoder(method=method, cols=["a", "b"]).fit(X, y)  # unseen in both
    assert np.isfinite(_numbers(two.transform(new.assign(b="also new")))).all()


def test_missing_values_never_seen_are_a_symbol_like_another():
    X, y, _, new = make(14, missing=False)
    encoder = TIWSEncoder(cols=["a"]).fit(X, y)
    none = encoder.transform(new.assign(a=None))["a"]
    named = encoder.transform(new.assign(a="one new name"))["a"]
    np.testing.assert_allclose(none, named, atol=1e-12)
    nan = TIWSEncoder(cols=["a"], handle_missing="return_nan").fit(X, y)
    assert nan.transform(new.assign(a=None))["a"].isna().all()
    assert np.isfinite(nan.transform(new)["a"]).all()
    unknown = TIWSEncoder(cols=["a"], handle_unknown="return_nan").fit(X, y)
    assert unknown.transform(new)["a"].isna().all()
    for handle_unknown in ("return_nan", "error"):  # which are for names, as in every encoder
        other = TIWSEncoder(cols=["a"], handle_unknown=handle_unknown).fit(X, y)
        np.testing.assert_array_equal(other.transform(new.assign(a=None))["a"], none)


def test_deciles_depend_neither_on_the_unit_of_weights_nor_on_the_order_of_rows():
    """Sums of weights that reach a tenth of all exactly fell short of it by rounding, one table in nine."""
    rng = np.random.default_rng(0)
    for n in range(2, 150):
        values, weight = rng.integers(0, 30, n) * 1.0, rng.integers(1, 4, n)
        want = np.unique(np.quantile(np.repeat(values, weight), np.arange(1, 10) / 10, method="inverted_cdf"))
        order = rng.permutation(n)
        for unit in (1.0, 0.1, 0.7, 1 / weight.mean(), 3.0):
            np.testing.assert_array_equal(deciles(values, weight * unit), want)
            np.testing.assert_array_equal(deciles(values[order], (weight * unit)[order]), want)


@pytest.mark.parametrize("numeric", ["modl", "quantile", "passthrough", {"n": [0.0, 1.0]}])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_context(kind, numeric):
    X, y, _, new = make(15, kind)
    rng = np.random.default_rng(2)
    X["n"] = np.where(X["c"] == "u", 2.0, -1.0) + rng.normal(0, 0.3, len(X))
    X.loc[3, "n"] = np.nan
    new["n"] = np.where(new["c"] == "u", 2.0, -1.0)
    new.loc[1, "n"] = np.nan
    pandas = TIWSEncoder(numeric=numeric, cols=["a"]).fit(X, y)
    out = pandas.transform(new)
    pd.testing.assert_series_equal(out["n"], new["n"])  # comes out as it went in
    polars = TIWSEncoder(numeric=numeric, cols=["a"]).fit(pl.from_pandas(X), y).transform(pl.from_pandas(new))
    names = [name for name in out if name.startswith("a")]
    np.testing.assert_allclose(polars.select(names).to_numpy(), out[names].to_numpy(), atol=1e-9)


@pytest.mark.parametrize("numeric", ["passthrough", {}])
def test_numbers_that_are_no_words_may_be_infinite(numeric):
    X, y, _, new = make(15)
    finite = TIWSEncoder(cols=["a"], numeric=numeric).fit(X.assign(n=1.0), y).transform(new.assign(n=1.0))
    endless = X.assign(n=np.where(X["c"] == "u", np.inf, -np.inf))
    encoder = TIWSEncoder(cols=["a"], numeric=numeric).fit(endless, y)
    pieces = TIWSEncoder(cols=["a"], numeric=numeric).partial_fit(endless[:80], y[:80])
    pieces.partial_fit(endless[80:], y[80:])
    for one in (encoder, pieces):
        out = one.transform(new.assign(n=np.inf))
        assert (out["n"] == np.inf).all()
        np.testing.assert_allclose(out["a"], finite["a"], atol=1e-9)
    for cut in ("modl", "quantile", {"n": [0.0]}):
        with pytest.raises(ValueError, match="Column 'n' contains infinity"):
            TIWSEncoder(cols=["a"], numeric=cut).fit(endless, y)


def test_names_may_tell():
    rng = np.random.default_rng(0)
    models = [f"{maker} {i}" for maker in ("ford", "opel", "audi") for i in range(8)]
    level = {"ford": 10.0, "opel": 20.0, "audi": 40.0}
    X = pd.DataFrame({"model": rng.choice(models, 600), "noise": rng.choice(list("ab"), 600)})
    y = X["model"].str[:4].map(level) + rng.normal(0, 1, 600)
    new = pd.DataFrame({"model": ["ford 99", "audi 99"], "noise": ["a", "b"]})
    assert np.ptp(TIWSEncoder(cols=["model"]).fit(X, y).transform(new)["model"]) < 10
    named = TIWSEncoder(cols=["model"], names=True).fit(X, y)
    np.testing.assert_allclose(named.transform(new)["model"], [10, 40], atol=4)


def test_an_indicator_says_what_was_unseen():
    X, y, _, new = make(16)
    encoder = TIWSEncoder(cols=["a"], indicator=True).fit(X, y)
    both = pd.concat([X[:5], new], ignore_index=True)
    assert encoder.transform(both)["a_unknown"].tolist() == [0] * 5 + [1] * len(new)
    assert encoder.get_feature_names_out().tolist() == ["a", "a_unknown", "b", "c"]
    assert (encoder.fit_transform(X, y)["a_unknown"] == 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "tiws"}, "method='tiws'"),
        ({"context": "all"}, "context='all'"),
        ({"names": True, "method": "poster"}, "names=True"),
        ({"numeric": "bins"}, "numeric='bins'"),
        ({"numeric": {"n": [2.0, 1.0]}}, "edges of column 'n'"),
        ({"smooth": -1}, "smooth=-1"),
        ({"idf_rows": "self"}, "idf_rows='self'"),
        ({"indicator": "yes"}, "indicator='yes'"),
    ],
)
def test_wrong_options_are_named(options, words):
    X, y, _, _ = make(0)
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        TIWSEncoder(**options).fit(X, y)


def test_wrong_calls_are_named():
    X, y, _, new = make(0)
    encoder = TIWSEncoder(cols=["a"]).fit(X, y)
    for call, words in (
        (lambda: encoder.transform(new, return_interval="x"), "return_interval='x'"),
        (lambda: encoder.unseen_rows(new, "q"), "Column 'q' is not encoded"),
        (lambda: encoder.unseen_rows(new, "a", context="z"), "context='z'"),
        (lambda: encoder.donors(None, "a", n_donors=0), "n_donors=0"),
        (lambda: TIWSEncoder(numeric={"zzz": [1.0]}).fit(X, y), "no such column"),
        (lambda: TIWSEncoder(numeric={"n": ["x"]}).fit(X, y), "edges of column 'n'"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(ValueError, match="return_interval=2"):
        encoder.transform(new, return_interval=2)
    with pytest.raises(ValueError, match="not encoded"):
        encoder.donors(None, "b")
    with pytest.raises(TypeError, match="another TIWSEncoder"):
        encoder.merge("x")
    with pytest.raises(ValueError, match="same target"):
        encoder.merge(TIWSEncoder(cols=["a"]).fit(X, y > 0))
    numbers = X.assign(n=np.arange(len(X), dtype=float))
    one = TIWSEncoder(cols=["a"], numeric={"n": [1.0]}).fit(numbers, y)
    with pytest.raises(ValueError, match="Column 'n'"):
        one.merge(TIWSEncoder(cols=["a"], numeric={"n": [2.0]}).fit(numbers, y))
    before = one.transform(numbers)
    pd.testing.assert_frame_equal(one.transform(numbers), before)
    with pytest.raises(ValueError, match="needs method='documents'"):
        TIWSEncoder(method="poster", cols=["a"]).fit(X, y).transform(new, return_interval=0.9)
    with pytest.raises(ValueError, match="not in the training data"):
        TIWSEncoder(cols=["a"], handle_unknown="error").fit(X, y).transform(new)


@pytest.mark.parametrize("blank", ["", " ", None])
def test_names_may_be_blank(blank):
    """Of blanks there are no pieces of names, which scikit-learn refused."""
    X = pd.DataFrame({"a": ["u", "v"] * 30, "blank": pd.Series([blank] * 60, dtype=object)})
    out = TIWSEncoder(cols="all", names=True).fit(X, np.arange(60.0) % 2).transform(X)
    assert np.isfinite(out["blank"]).all()


def test_numeric_takes_words_by_column():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("uvwxyz"), 300), "p": rng.normal(size=300), "q": rng.normal(size=300)})
    y = X["p"].to_numpy() + (X["a"] == "u") + 0.1 * rng.normal(size=300)
    new = X.assign(a="new")
    for word in ("modl", "quantile", "passthrough"):
        both = TIWSEncoder(numeric={"p": word, "q": word}).fit(X, y).transform(new)
        pd.testing.assert_frame_equal(both, TIWSEncoder(numeric=word).fit(X, y).transform(new))
    mixed = TIWSEncoder(numeric={"p": "quantile", "q": [0.0]}).fit(X, y)
    words = {one.name: len(one) for one in mixed.counts_.words}
    assert words["p"] == 10 and words["q"] == 2
    with pytest.raises(ValueError, match="numeric has 'deciles' for column 'p'; use one of 'modl', 'quantile'"):
        TIWSEncoder(numeric={"p": "deciles"}).fit(X, y)


@pytest.mark.slow
def test_kernels_that_tie_are_taken_in_order():
    """Names without a piece in common: their kernel is that of no names, and which of the two is taken must not hang
    on rounding, as an unknown name may share pieces.
    """
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"grade": rng.choice(list("ABCDEFGH"), 400), "b": rng.choice(list("xyz"), 400)})
        means = dict(zip("ABCDEFGH", rng.normal(size=8), strict=True))
        y = X["grade"].map(means).to_numpy() + rng.normal(size=400)
        new, other = pd.DataFrame({"grade": ["AA"] * 5, "b": list("xyzxy")}), rng.permutation(400)

        def estimate(target, rows=slice(None), X=X, new=new):
            encoder = TIWSEncoder(cols=["grade"], names=True, target_type="continuous")
            return encoder.fit(X.iloc[rows], target[rows]).transform(new)["grade"][0]

        found = estimate(y)
        assert estimate(y, other) == pytest.approx(found, abs=1e-9)
        assert estimate(y + 1000.0) - 1000.0 == pytest.approx(found, abs=1e-9)
        assert estimate(0.1 * y) * 10.0 == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("method", ["documents", "poster"])
@pytest.mark.parametrize("idf_rows", ["all", "known+self"])
def test_rows_alone_do_not_depend_on_other_rows(method, idf_rows):
    if method == "documents" and idf_rows != "all":
        return
    X, y, _, _ = make(3)
    encoder = TIWSEncoder(cols=["a"], method=method, context="row", idf_rows=idf_rows).fit(X, y)
    new = X.head(30).assign(a="new")
    alone = [encoder.transform(new.iloc[[row]])["a"].iloc[0] for row in range(30)]
    np.testing.assert_allclose(encoder.transform(new)["a"], alone, rtol=1e-12)
    assert np.ptp(alone) > 0


@pytest.mark.parametrize("options", [{}, {"numeric": "quantile"}, {"method": "poster"}, {"cv": None}])
def test_a_class_whose_rows_have_weight_0_is_absent(options):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("pqrs"), 400), "b": rng.choice(list("xyz"), 400), "z": rng.normal(size=400)})
    y, new = rng.choice(["u", "v", "w"], 400), pd.DataFrame({"a": ["p", "zz"], "b": ["x", "y"], "z": [0.0, 1.0]})
    weight = np.where(y == "w", 0.0, rng.integers(1, 3, 400).astype(float))
    kept = weight > 0
    encoder = TIWSEncoder(**options)
    found = encoder.fit(X, y, sample_weight=weight).transform(new)
    pd.testing.assert_frame_equal(found, encoder.fit(X[kept], y[kept], sample_weight=weight[kept]).transform(new))
    out = encoder.fit_transform(X, y, sample_weight=weight)
    assert list(out) == list(found) and np.isfinite(out.loc[kept, "a"].to_numpy(dtype=float)).all()
    with pytest.raises(ValueError, match=r"rows of positive weight have 1 class only \('u'\)"):
        encoder.fit(X, y, sample_weight=np.where(y == "u", 1.0, 0.0))


@pytest.mark.parametrize("method", ["documents", "poster"])
@pytest.mark.parametrize("lazily", [False, True])
def test_numbers_that_are_passed_through_say_nothing_of_a_row(method, lazily):
    """Nor does whether they are missing: estimates are those without the columns."""
    rng, n = np.random.default_rng(0), 400
    X = pd.DataFrame({"s": rng.integers(0, 12, n).astype(str), "t": rng.choice(list("abc"), n)})
    X["z"], X["w"] = rng.normal(size=(2, n))
    X.loc[rng.random(n) < 0.2, "z"] = np.nan
    y = rng.normal(size=n) + X["s"].astype(int) * 0.2
    new = X.head(20).assign(s="new")
    new.loc[:9, ["z", "w"]] = np.nan

    def estimates(columns, numeric):
        encoder = TIWSEncoder(cols=["s"], method=method, numeric=numeric)
        table = X[columns].assign(y=y)
        fitted = encoder.fit(pl.from_pandas(table).lazy(), "y") if lazily else encoder.fit(X[columns], y)
        return fitted.transform(new[columns])["s"].to_numpy()

    wanted = estimates(["s", "t"], "modl")
    for numeric in ("passthrough", {}):
        np.testing.assert_allclose(estimates(["s", "t", "z", "w"], numeric), wanted, rtol=1e-12)


def cars_and_vans(n_cars, n_vans, names="{}{}"):
    """Cars have 5 rows and the mean 0, vans 4 rows and the mean 10; the only other column tells them apart."""
    kinds = ["car"] * n_cars + ["van"] * n_vans
    rows = np.repeat(np.arange(len(kinds)), [5 if kind == "car" else 4 for kind in kinds])
    X = pd.DataFrame({"model": [names.format(kinds[row], row) for row in rows], "kind": [kinds[row] for row in rows]})
    return X, 10.0 * (X["kind"] == "van") + np.random.default_rng(0).normal(size=len(rows))


@pytest.mark.parametrize(("n_cars", "n_vans"), [(600, 60), (1500, 100), (1500, 1500)])
def test_of_many_categories_all_kinds_are_donors(n_cars, n_vans):
    """Those with the most rows were, so that vans, of fewer rows, were none."""
    X, y = cars_and_vans(n_cars, n_vans)
    new = pd.DataFrame({"model": ["new"] * 10, "kind": ["van"] * 10})
    encoder = TIWSEncoder(cols=["model"]).fit(X, y)
    assert encoder.transform(new)["model"].to_numpy() == pytest.approx(10.0, abs=1.5)
    assert encoder.donors(new.head(1), "model")["donor"].str.startswith("van").all()
    donors = encoder.columns_["model"].fitted.donors
    n_cars = sum(str(encoder.columns_["model"].fitted.categories[code]).startswith("car") for code in donors)
    assert min(n_cars, len(donors) - n_cars) > 50
    assert len(np.unique(donors)) == len(donors)
    assert 0.9 * min(1500, len(X["model"].unique())) < len(donors) <= 1500


def test_of_many_categories_the_same_are_donors_whatever_they_are_called():
    X, y = cars_and_vans(1500, 300)
    new = pd.DataFrame({"model": ["new"] * 10, "kind": ["van", "car"] * 5})
    other, _ = cars_and_vans(1500, 300, names="{1:x}-{0}")
    rows = np.random.default_rng(1).permutation(len(X))
    wanted = TIWSEncoder(cols=["model"]).fit(X, y).transform(new)["model"]
    found = TIWSEncoder(cols=["model"]).fit(other.iloc[rows], y[rows]).transform(new)["model"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
