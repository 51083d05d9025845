"""The wide estimators: known optima, frames, growth, weights, what they show."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tabsym import WideRegressor, WideSGDClassifier, WideSGDRegressor, datasets
from tabsym.datasets import make_retail
from tabsym.optimizers import SGD, Adam

RNG = np.random.default_rng(0)
N = 400
X = pd.DataFrame({"a": RNG.choice(list("uvw"), N), "b": RNG.choice(list("pq"), N), "n": RNG.normal(5, 3, N)})
SCORE = X["a"].map({"u": 1.0, "v": -1.0, "w": 0.0}) + X["b"].map({"p": 0.5, "q": -0.5}) + 0.3 * (X["n"] - 5)
Y = (RNG.random(N) < 1 / (1 + np.exp(-SCORE))).astype(int)
VALUES = SCORE.to_numpy() * 10 + RNG.normal(size=N)


@pytest.mark.parametrize("gradient", ["gse", "mean"])
def test_full_batch_reaches_the_logistic_optimum(gradient):
    model = WideSGDClassifier(
        optimizer="sgd", learning_rate=0.6, batch_size="full", max_iter=4000, gradient=gradient, random_state=0
    ).fit(X, Y)
    onehot = np.column_stack(
        [OneHotEncoder().fit_transform(X[["a", "b"]]).toarray(), StandardScaler().fit_transform(X[["n"]])]
    )
    best = LogisticRegression(C=1e8, tol=1e-10, max_iter=5000).fit(onehot, Y)
    np.testing.assert_allclose(model.predict_proba(X), best.predict_proba(onehot), atol=2e-5)


@pytest.mark.parametrize("gradient", ["gse", "mean"])
def test_full_batch_reaches_least_squares(gradient):
    model = WideSGDRegressor(
        optimizer="sgd", learning_rate=0.3, batch_size="full", max_iter=3000, gradient=gradient
    ).fit(X, VALUES)
    onehot = np.column_stack([OneHotEncoder().fit_transform(X[["a", "b"]]).toarray(), X[["n"]]])
    np.testing.assert_allclose(model.predict(X), Ridge(alpha=1e-9).fit(onehot, VALUES).predict(onehot), atol=1e-4)


def test_multinomial_reaches_its_optimum():
    y = np.where(SCORE > 0.7, "high", np.where(SCORE < -0.5, "low", "middle"))
    y = np.where(RNG.random(N) < 0.2, "middle", y)
    model = WideSGDClassifier(optimizer="sgd", learning_rate=0.6, batch_size="full", max_iter=3000).fit(
        X[["a", "b"]], y
    )
    onehot = OneHotEncoder().fit_transform(X[["a", "b"]]).toarray()
    best = LogisticRegression(C=1e8, tol=1e-10, max_iter=5000).fit(onehot, y)
    np.testing.assert_allclose(model.predict_proba(X[["a", "b"]]), best.predict_proba(onehot), atol=1e-4)
    assert model.decision_function(X[["a", "b"]]).shape == (N, 3)
    assert list(model.coefs_["a"].columns) == ["high", "low", "middle", "rows"]


def test_parameters_add_up_to_the_prediction():
    crosses = [("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")]
    model = WideSGDRegressor(interactions=crosses, max_iter=3, random_state=0).fit(X.assign(c=X["a"] + X["b"]), VALUES)
    params = model.coefs_
    assert list(params) == ["a", "b", "c", "a:b", "a:c", "b:c", "a:b:c", "n", "(intercept)"]
    row = X.assign(c=X["a"] + X["b"]).iloc[7]
    total = params["(intercept)"]["value"].iloc[0] + params["n"]["value"].iloc[0] * row["n"]
    for name in list(params)[:7]:
        key = tuple(row[part] for part in name.split(":"))
        total += params[name].loc[key if len(key) > 1 else key[0], "value"]
    assert model.predict(row.to_frame().T.astype({"n": float}))[0] == pytest.approx(total)
    assert params["a:b"]["rows"].sum() == N
    assert params["a"].loc["u", "rows"] == (X["a"] == "u").sum()


def test_every_frame_gives_the_same_model(make_frame):
    columns = {"a": X["a"].tolist(), "b": X["b"].tolist(), "n": X["n"].tolist()}
    reference = WideSGDClassifier(interactions="pairwise", max_iter=3, random_state=0).fit(X, Y).predict_proba(X)
    frame = make_frame(columns)
    got = WideSGDClassifier(interactions="pairwise", max_iter=3, random_state=0).fit(frame, Y).predict_proba(frame)
    np.testing.assert_allclose(got, reference, rtol=1e-12)


def test_unseen_adds_nothing_or_is_an_error():
    model = WideSGDRegressor(max_iter=3, random_state=0).fit(X, VALUES)
    other = X.head(1).assign(a="never")
    params = model.coefs_
    want = model.predict(X.head(1))[0] - params["a"].loc[X["a"].iloc[0], "value"]
    assert model.predict(other)[0] == pytest.approx(want)
    with pytest.raises(ValueError, match=r"Column 'a' holds 'never' \(row 0\)"):
        model.set_params(handle_unknown="error").predict(other)


def test_missing_is_a_symbol_where_it_occurred():
    holes = X.assign(a=X["a"].where(X["a"] != "w", None), n=X["n"].where(X["n"] > 0, np.nan))
    model = WideSGDRegressor(max_iter=5, random_state=0).fit(holes, VALUES)
    assert model.coefs_["a"].index[-1] is None
    assert model.coefs_["n is missing"]["rows"].iloc[0] == holes["n"].isna().sum()
    assert np.isfinite(model.predict(holes)).all()
    clean = WideSGDRegressor(max_iter=5, random_state=0).fit(X, VALUES)
    assert np.isfinite(clean.predict(holes)).all()


def test_partial_fit_grows_alphabets_and_learns_the_new():
    first, second = X[X["a"] != "w"], X[X["a"] == "w"]
    model = WideSGDRegressor(interactions="pairwise", random_state=0)
    model.partial_fit(first, VALUES[X["a"] != "w"])
    assert "w" not in model.coefs_["a"].index
    before = model.coefs_["a"]["value"].drop("u") - model.coefs_["a"].loc["u", "value"]
    for _ in range(20):
        model.partial_fit(second, np.full(len(second), 1000.0))
    after = model.coefs_["a"]["value"] - model.coefs_["a"].loc["u", "value"]
    np.testing.assert_allclose(after[before.index], before, rtol=1e-9)  # absent ones keep theirs, but for the mean
    assert model.coefs_["a"].loc["w", "rows"] == 20 * len(second)
    assert model.predict(second.head(1))[0] > 500
    assert model.n_rows_seen_ == len(first) + 20 * len(second)


def test_partial_fit_of_classes_and_order():
    model = WideSGDClassifier(random_state=0).partial_fit(X[Y == 0], Y[Y == 0], classes=[0, 1])
    model.partial_fit(X[Y == 1], Y[Y == 1])
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X, Y, classes=[0, 1, 2])


def test_same_seed_same_model_for_any_threads():
    one = WideSGDClassifier(interactions="pairwise", random_state=3, n_jobs=1).fit(X, Y)
    two = WideSGDClassifier(interactions="pairwise", random_state=3, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(one.model_.state, two.model_.state)


def test_weights_matter_online_and_zero_is_absent():
    weight = np.where(Y == 1, 5.0, 1.0)
    heavy = WideSGDClassifier(random_state=0).fit(X, Y, sample_weight=weight).predict_proba(X)[:, 1].mean()
    plain = WideSGDClassifier(random_state=0).fit(X, Y).predict_proba(X)[:, 1].mean()
    assert heavy > plain + 0.15
    keep = X["a"] != "w"
    zero = WideSGDRegressor(random_state=0).fit(X, VALUES, sample_weight=keep.to_numpy(dtype=float))
    gone = WideSGDRegressor(random_state=0).fit(X[keep], VALUES[keep])
    assert "w" not in zero.coefs_["a"].index
    np.testing.assert_allclose(zero.predict(X), gone.predict(X))


def test_early_stopping_ends_where_epochs_lower_the_loss_by_little_of_what_all_have():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 20, 3000).astype(str)})
    score = rng.normal(size=20)[table["a"].astype(int)] + rng.logistic(size=3000)
    options = {"early_stopping": True, "tol": 0.1, "n_iter_no_change": 3, "max_iter": 200, "learning_rate": 0.003}
    model = WideSGDClassifier(**options, random_state=0).fit(table, score > np.median(score))
    best = np.minimum.accumulate(model.validation_curve_)
    shares = (best[:-3] - best[3:]) / (np.log(2.0) - best[3:])  # as many rows of both classes: the best constant is 0
    assert 5 < len(best) < 200
    assert shares[-1] < 1.05 * options["tol"] < 1.1 * shares[:-1].min()


def test_early_stopping_keeps_the_best_epoch():
    noise = pd.DataFrame({"key": [f"k{j}" for j in RNG.integers(0, 300, N)]})
    model = WideSGDClassifier(early_stopping=True, max_iter=50, learning_rate=1.0, random_state=0).fit(noise, Y)
    assert model.n_iter_ < 50
    curve = model.validation_curve_
    assert len(curve) == model.n_iter_
    assert min(curve) <= curve[-1]
    refit = WideSGDClassifier(max_iter=50, learning_rate=1.0, random_state=0).fit(noise, Y)
    assert not hasattr(refit, "validation_curve_")
    assert refit.n_iter_ == 50


def test_tol_stops_without_validation():
    model = WideSGDRegressor(max_iter=500, tol=1e-3, random_state=0).fit(X, VALUES)
    assert model.n_iter_ < 500
    assert model.loss_curve_[-1] < model.loss_curve_[0]


def test_pipelines_grids_clones_and_pickles():
    options = {"widesgdclassifier__interactions": [None, "pairwise"]}
    grid = GridSearchCV(make_pipeline(WideSGDClassifier(random_state=0)), options, cv=3)
    grid.fit(X, Y)
    again = pickle.loads(pickle.dumps(grid.best_estimator_))  # noqa: S301
    np.testing.assert_array_equal(again.predict(X), grid.predict(X))
    assert clone(WideSGDClassifier(optimizer=Adam(betas=(0.8, 0.9)))).optimizer == Adam(betas=(0.8, 0.9))


@pytest.mark.parametrize("optimizer", [SGD(), "adagrad", "adam"])
@pytest.mark.parametrize("gradient", ["gse", "mean"])
@pytest.mark.parametrize("batch_size", [1, 32, "full"])
def test_every_combination_learns(optimizer, gradient, batch_size):
    options = {"optimizer": optimizer, "gradient": gradient, "batch_size": batch_size, "random_state": 0}
    options |= {"max_iter": 200 if batch_size == "full" else 10, "learning_rate": 0.05 if optimizer == "adam" else 0.3}
    model = WideSGDClassifier(**options).fit(X, Y)
    assert log_loss(Y, model.predict_proba(X)) < 0.63
    assert model.score(X, Y) > 0.6


def test_the_mean_gradient_of_single_rows_is_another_model_where_rows_have_weights():
    """Under gse weights count beside those of a category's own rows; without weights the two are the same."""
    weight = np.where(X["a"] == "u", 3.0, 0.5)
    options = {"learning_rate": 0.2, "max_iter": 5, "random_state": 0}
    models = [WideSGDClassifier(gradient=gradient, **options) for gradient in ("gse", "mean")]
    one, two = (model.fit(X, Y).predict_proba(X) for model in models)
    np.testing.assert_allclose(one, two, rtol=1e-9)
    one, two = (model.fit(X, Y, weight).predict_proba(X) for model in models)
    assert np.abs(one - two).max() > 1e-3


def test_large_tables_are_shuffled_by_runs(monkeypatch):
    from tabsym.solvers.sgd import loop as trainer

    plain = WideSGDClassifier(random_state=0, max_iter=5).fit(X, Y)
    monkeypatch.setattr(trainer, "CACHE_BYTES", 16)
    monkeypatch.setattr(trainer, "RUN", 7)
    rows = np.arange(0, 2 * N, 2)
    order = rows.copy()
    trainer.shuffle_rows(rows, order, 10_000, np.random.RandomState(0))
    assert sorted(order.tolist()) == rows.tolist()
    assert order[:7].tolist() != rows[:7].tolist()
    runs = WideSGDClassifier(random_state=0, max_iter=5).fit(X, Y)
    assert runs.model_.counts.tolist() == plain.model_.counts.tolist()
    assert roc_auc_score(Y, runs.predict_proba(X)[:, 1]) == pytest.approx(
        roc_auc_score(Y, plain.predict_proba(X)[:, 1]), abs=0.02
    )


def test_the_generated_retail_table_is_learnable():
    sales, truth = make_retail(5_000, return_truth=True)
    assert sales["sales"].gt(0).all()
    features = sales.drop(columns="sales")
    model = WideSGDRegressor(max_iter=10, random_state=0).fit(features, np.log(sales["sales"] + 0.01))
    stores = model.coefs_["store"]
    known = stores[stores["rows"] >= 20]
    assert np.corrcoef(known["value"], np.log(truth.store[known.index]))[0, 1] > 0.8


def test_retail_is_reproducible():
    pd.testing.assert_frame_equal(make_retail(100), make_retail(100))
    assert not make_retail(100, random_state=1).equals(make_retail(100))


@pytest.mark.data
@pytest.mark.slow
def test_amazon_reaches_the_promised_auc(data_folder):
    features, target = datasets.load("amazon", data_folder)
    target = target.to_numpy()
    for interactions, least in ((None, 0.857), ("pairwise", 0.872)):
        scores = []
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(features, target):
            model = WideSGDClassifier(interactions=interactions, random_state=0).fit(
                features.iloc[train], target[train]
            )
            scores.append(roc_auc_score(target[test], model.predict_proba(features.iloc[test])[:, 1]))
        assert np.mean(scores) >= least


@pytest.mark.parametrize("numeric", ["smooth", "quantile", "modl"])
@pytest.mark.parametrize("unit", [1.0, 1e6, -1e-3])
def test_values_with_16_digits_stay_in_their_bins(numeric, unit):
    """As Excel keeps them; bin edges are values of training."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": unit * rng.normal(size=2000)})
    model = WideRegressor(numeric=numeric, loss="squared_error").fit(
        X, np.sin(2 * X["x"] / unit) + rng.normal(size=2000)
    )
    kept = X.map(lambda value: float(f"{value:.16g}"))
    assert (kept["x"] > X["x"]).sum() > 300
    np.testing.assert_array_equal(model.predict(kept), model.predict(X))


def test_edges_of_few_digits_are_values_of_the_column():
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=2000).round(2)})
    bounds = WideRegressor(loss="squared_error").fit(X, X["x"] ** 2).coefs_["x"].reset_index()["high"]
    assert set(bounds[np.isfinite(bounds)]) <= set(X["x"])
