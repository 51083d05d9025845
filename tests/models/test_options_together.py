"""What options did together, or to each other, that they must not do: one test for each."""

import warnings
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from tabsym import WideClassifier, WideSGDClassifier, WideSGDRegressor
from tabsym.models import fitting
from tabsym.optimizers import SGD
from tabsym.solvers.sgd import loop as training
from tabsym.solvers.sgd.loop import TrainingLoop
from tests.options import ADDITIVE, GLM

RNG = np.random.default_rng(0)
N = 1500
TABLE = pd.DataFrame({f"c{j}": RNG.choice(list("klmnopqr"), N) for j in range(6)})
EFFECT = sum(TABLE[name].map(dict(zip("klmnopqr", RNG.normal(0, 1, 8)))) for name in TABLE).to_numpy()
Y = EFFECT + RNG.normal(0, 0.5, N)


@pytest.mark.parametrize(("batch_size", "rate"), [(64, 0.55), ("full", 2.5)])
def test_a_rate_that_diverges_is_an_error_though_the_loss_is_finite(batch_size, rate):
    model = WideSGDRegressor(optimizer="sgd", learning_rate=rate, batch_size=batch_size, max_iter=30, random_state=0)
    with pytest.raises(ValueError, match=rf"Training diverged .* with learning_rate={rate}; try a learning_rate"):
        model.fit(TABLE, Y)
    assert not hasattr(model, "model_")


def test_where_all_automatic_rates_diverge_another_remedy_is_named():
    """It was to try a rate ten times smaller, than 1e-15."""
    table = TABLE.assign(x=9e15 * np.random.default_rng(0).integers(0, 2, N))
    model = WideSGDClassifier(optimizer="rmsprop", standardize=False, random_state=0)
    with pytest.raises(ValueError, match=r"Training diverged .* and larger ones; use standardize=True"):
        model.fit(table, Y > 0)


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "rmsprop", "adam"])
@pytest.mark.parametrize("batch_size", [1, 64, "full"])
def test_automatic_rates_reach_the_optimum(optimizer, batch_size):
    """Least squares on one-hot columns, by every optimizer at its defaults."""
    onehot = pd.get_dummies(TABLE).to_numpy(dtype=float)
    best = np.linalg.lstsq(np.column_stack([onehot, np.ones(N)]), Y, rcond=None)[0]
    least = np.mean((Y - np.column_stack([onehot, np.ones(N)]) @ best) ** 2)
    model = WideSGDRegressor(optimizer=optimizer, batch_size=batch_size, random_state=0).fit(TABLE, Y)
    assert np.mean((Y - model.predict(TABLE)) ** 2) < 1.05 * least


def test_epochs_that_end_before_the_loss_has_converged_are_warned_of(monkeypatch):
    from tabsym.models import config as automatic

    monkeypatch.setattr(automatic, "MAX_EPOCHS", 15)
    with pytest.warns(
        ConvergenceWarning, match=r"Training did not converge in 15 epochs; give more, e\.g\. max_iter=60"
    ):
        WideSGDRegressor(optimizer="sgd", gradient="mean", batch_size="full", random_state=0).fit(TABLE, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WideSGDRegressor(random_state=0).fit(TABLE, Y)
        WideSGDRegressor(max_iter=2, random_state=0).fit(TABLE, Y)  # as asked for
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 epochs"):
        WideSGDRegressor(max_iter=2, tol=1e-6, random_state=0).fit(TABLE, Y)


def test_of_four_automatic_epochs_it_is_told_that_the_loss_is_falling(monkeypatch):
    """The last quarter of fewer is less than an epoch."""
    from tabsym.models import config as automatic

    table = pd.DataFrame({"a": np.random.default_rng(0).integers(0, 100, 400).astype(str)})
    y = np.random.default_rng(1).normal(size=100)[table["a"].astype(int)] > 0  # separated: the loss falls for ever
    for epochs in (3, 4):
        monkeypatch.setattr(automatic, "auto_epochs", lambda _, epochs=epochs: epochs)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            WideSGDClassifier(learning_rate=0.3, random_state=0).fit(table, y)
        assert [f"did not converge in {epochs} epochs" in str(one.message) for one in told] == [True] * (epochs == 4)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_by_held_out_rows_no_rate_is_more_than_4_times_the_first(early_stopping, monkeypatch):
    """However good large ones look: they may fit the rows in their first epoch, where smaller ones need more."""
    found = []

    def noted(*given):
        found.append(search_rate(*given) / given[5].learning_rate)
        return given[5].learning_rate

    search_rate = fitting.search_rate
    monkeypatch.setattr(training, "_try", lambda *given: np.array([1.0 / given[5].learning_rate]))
    monkeypatch.setattr(fitting, "search_rate", noted)
    WideSGDRegressor(optimizer="sgd", early_stopping=early_stopping, random_state=0).fit(TABLE, Y)
    assert found == [4.0] if early_stopping else found[0] > 100.0


def dot_table():
    rng = np.random.RandomState(0)
    share = 1.0 / np.arange(1, 301)
    codes = rng.choice(50, 3000, p=share[:50] / share[:50].sum()), rng.choice(300, 3000, p=share / share.sum())
    u, v = rng.normal(size=(50, 4)), rng.normal(size=(300, 4))
    y = 2.5 * np.sum(u[codes[0]] * v[codes[1]], axis=1) + rng.normal(size=3000)
    return pd.DataFrame({"a": [f"s{c}" for c in codes[0]], "b": [f"s{c}" for c in codes[1]]}), y


def weak_signal():
    """A twentieth of the variance told by 200 symbols: the noise of epochs is as large as what is left to gain."""
    rng = np.random.RandomState(3)
    X = pd.DataFrame({"a": rng.randint(200, size=4000), "b": rng.randint(20, size=4000)}).astype(str)
    return X, 0.25 * rng.normal(size=200)[X["a"].astype(int)] + rng.normal(size=4000)


@pytest.mark.parametrize(("table", "formula"), [(dot_table, "dot(u[a], v[b], rank=4) + b0[1]"), (weak_signal, None)])
@pytest.mark.slow
def test_silence_means_near_an_optimum(table, formula):
    """Within a twentieth of what the best of all fits gains over the mean, or a warning."""
    X, y = table()
    fits = []
    ways = enumerate(product(("sgd", "adagrad", "adam"), ("gse", "mean"), (1, 64, "full")))
    half = [way for place, way in ways if sum(np.unravel_index(place, (3, 2, 3))) % 2 == 0]  # with all pairs
    for optimizer, gradient, batch_size in half:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            options = {"optimizer": optimizer, "gradient": gradient, "batch_size": batch_size, "random_state": 0}
            model = WideSGDRegressor(formula, **options).fit(X, y)
        fits.append((np.mean((y - model.predict(X)) ** 2), bool(caught), optimizer, gradient, batch_size))
    least = min(loss for loss, *_ in fits)
    assert sum(told for _, told, *_ in fits) < len(fits) / 2
    assert all(told or loss < least + 0.05 * (np.var(y) - least) for loss, told, *_ in fits), fits


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("kind", [WideSGDRegressor, WideSGDClassifier])
def test_numbers_that_are_not_standardized_are_fitted_or_told_of(kind, scale):
    """The default optimizer ended at half of R² without a word: its loss did not fall any more."""
    draw = np.random.default_rng(0)
    X = pd.DataFrame({"g": draw.choice(list("abcd"), 1000), "x": scale * draw.normal(size=1000)})
    y = X["x"] / scale + X["g"].map(dict(zip("abcd", range(4), strict=True))) + 0.1 * draw.normal(size=1000)
    y = y if kind is WideSGDRegressor else y + draw.logistic(size=1000) > 1.5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        score = kind(standardize=False, random_state=0).fit(X, y).score(X, y)
    best = kind(random_state=0).fit(X, y).score(X, y)
    assert score > best - 0.03 or any("or standardize=True" in str(one.message) for one in caught)
    assert scale != 1.0 or not caught


WAYS = [("gse", "full"), ("gse", 32), ("mean", "full")]


@pytest.mark.parametrize(
    ("loss", "optimizer", "gradient", "batch_size"),
    [
        (loss, optimizer, *WAYS[(place + turn) % 3])  # any two of them meet
        for place, loss in enumerate(["squared_error", "poisson", "logistic", "multinomial"])
        for turn, optimizer in enumerate(["sgd", "adagrad", "adam"])
    ],
)
def test_early_stopping_is_no_worse_than_a_constant(loss, optimizer, gradient, batch_size):
    """Rates chosen by the rows trained on fit an id in one epoch: 13.5 of log-loss where a constant has .96."""
    gaps = []
    for seed in range(3):
        rng = np.random.RandomState(seed)
        X = pd.DataFrame({"a": rng.randint(6, size=900), "b": rng.randint(40, size=900)}).astype(str)
        X = X.assign(x=100 * rng.normal(size=900), id=[f"i{j}" for j in range(900)])
        signal = 1.5 * rng.normal(size=6)[X["a"].astype(int)]
        if loss == "squared_error":
            y = signal + rng.normal(size=900)
        elif loss == "poisson":
            y = rng.poisson(np.exp(signal)).astype(float)
        else:
            scores = np.stack([signal, -signal, 0 * signal], axis=1)[:, : 3 if loss == "multinomial" else 2]
            y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
        kind = WideSGDClassifier if loss in ("logistic", "multinomial") else WideSGDRegressor
        named = {} if kind is WideSGDClassifier else {"loss": loss}
        model = kind(**named, optimizer=optimizer, gradient=gradient, batch_size=batch_size, early_stopping=True,
                     interactions="pairwise", random_state=0).fit(X[:200], y[:200])  # fmt: skip
        test, seen = y[200:], y[:200]
        if kind is WideSGDClassifier:
            p = model.predict_proba(X[200:])[np.arange(700), test]
            gaps.append(np.mean(-np.log(p)) - np.mean(-np.log(np.bincount(seen)[test] / 200)))
        else:
            p, c = model.predict(X[200:]), seen.mean()
            if loss == "squared_error":
                gaps.append(np.mean((test - p) ** 2) - np.mean((test - c) ** 2))
            else:
                gaps.append(np.mean(p - test * np.log(p)) - np.mean(c - test * np.log(c)))
    assert np.mean(gaps) < 0.02, gaps


def test_where_no_epoch_is_better_than_the_start_the_start_is_kept():
    """A target that has nothing to do with the columns: the answer is the share of each class."""
    rng = np.random.RandomState(0)
    X = pd.DataFrame({"id": [f"i{j % 250}" for j in range(500)]})
    y = rng.randint(2, size=500)
    model = WideSGDClassifier(early_stopping=True, learning_rate=2.0, batch_size="full", random_state=0)
    with pytest.warns(ConvergenceWarning, match="No epoch lowered the loss of the held-out rows .* smaller learning_r"):
        model.fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], y.mean(), atol=1e-9)
    assert model.model_.n_steps == 0
    assert len(model.validation_curve_) == model.n_iter_ == model.n_iter_no_change


def test_the_intercept_is_not_settled_by_what_held_out_rows_lose(monkeypatch):
    """Rows trained on may be fitted too closely; their totals are no reason to move from where held-out rows are."""
    from tabsym.models import fitting

    monkeypatch.setattr(fitting, "settled_shift", lambda *_: np.array([50.0]))
    y = Y > 0
    shares = {}
    for stops in (False, True):
        model = WideSGDClassifier(early_stopping=stops, random_state=0).fit(TABLE, y)
        shares[stops] = model.predict(TABLE).mean()
    assert shares[False] > 0.9
    assert abs(shares[True] - y.mean()) < 0.1


def penalised(model, X, y, l1, l2):
    """Mean log-loss and penalties, written from the documentation: under gse a symbol's are on its own rows."""
    p = model.predict_proba(X)[np.arange(len(y)), (y == model.classes_[1]).astype(int)]
    total = -np.mean(np.log(p))
    for name in X:
        values = model.coefs_[name].loc[X[name].unique(), "value"].to_numpy()
        rows = X[name].value_counts(normalize=True)[X[name].unique()].to_numpy()
        reach = rows if model.gradient == "gse" else 1.0
        total += np.sum(reach * (l1 * np.abs(values) + 0.5 * l2 * values**2))
    return total


def symbols_of_two_classes():
    rng = np.random.RandomState(0)
    X = pd.DataFrame({"a": rng.randint(150, size=600), "b": rng.randint(5, size=600)}).astype(str)
    return X, (rng.normal(size=150)[X["a"].astype(int)] + rng.logistic(size=600)) > 0


@cache
def least_penalised(gradient, l1, l2):
    """By many passes, whatever the automatic ones would be."""
    X, y = symbols_of_two_classes()
    model = WideSGDClassifier(optimizer="adam", batch_size="full", max_iter=2000, gradient=gradient, random_state=0,
                              alpha=l1 + l2, l1_ratio=l1 / (l1 + l2)).fit(X, y)  # fmt: skip
    return penalised(model, X, y, l1, l2)


@pytest.mark.parametrize("gradient", ["gse", "mean"])
@pytest.mark.parametrize("batch_size", [32, "full"])
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "rmsprop", "adam"])
@pytest.mark.slow
def test_automatic_passes_end_at_the_optimum_of_what_is_penalised(optimizer, batch_size, gradient):
    """Passes were judged by the loss alone: a fit that had overshot its penalty could never come back."""
    X, y = symbols_of_two_classes()
    options = {"optimizer": optimizer, "batch_size": batch_size, "gradient": gradient, "random_state": 0}
    for l1, l2 in ((0.0, 0.1), (2e-3, 0.0), (2e-3, 0.02)):
        options |= {"alpha": l1 + l2, "l1_ratio": l1 / (l1 + l2)}
        model = WideSGDClassifier(**options).fit(X, y)
        best = least_penalised(gradient, l1, l2)
        assert penalised(model, X, y, l1, l2) < best + 0.05 * abs(best), (l1, l2, model.n_iter_)


def test_a_given_rate_that_is_small_gets_passes_or_a_warning():
    """50 passes by count at a rate of .0001 ended at the constant, silently."""
    y = Y > 0
    near = WideSGDClassifier(learning_rate=0.1, random_state=0).fit(TABLE, y)
    least = WideClassifier(**GLM).fit(TABLE, y)
    losses = [-np.mean(np.log(model.predict_proba(TABLE)[np.arange(N), y.astype(int)])) for model in (near, least)]
    assert losses[0] < 1.05 * losses[1]
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        WideSGDClassifier(learning_rate=1e-6, random_state=0).fit(TABLE, y)
    with pytest.warns(ConvergenceWarning, match="did not converge"):  # by a tolerance that was met far from the optimum
        early = WideSGDClassifier(learning_rate=1e-6, tol=0.5, max_iter=300, random_state=0).fit(TABLE, y)
    assert early.n_iter_ < 100
    assert -np.mean(np.log(early.predict_proba(TABLE)[np.arange(N), y.astype(int)])) > 1.5 * losses[1]


def test_a_fit_by_stream_leaves_nothing_of_the_fit_before():
    dataset = pytest.importorskip("pyarrow.dataset")
    pa = pytest.importorskip("pyarrow")
    y = np.where(Y > 0, "yes", "no")
    stream = dataset.dataset(pa.Table.from_pandas(TABLE.assign(y=y)))
    model = WideSGDClassifier(handle_unknown="similar", interactions="auto", early_stopping=True, random_state=0).fit(
        TABLE, y[::-1]
    )
    model.set_params(handle_unknown="neutral", interactions=None, early_stopping=False, max_iter=3).fit(stream, "y")
    assert not hasattr(model, "validation_curve_")
    assert model.coefs_["c0"]["rows"].sum() == N  # not once an epoch
    model.set_params(handle_unknown="similar")
    with pytest.raises(ValueError, match="handle_unknown='similar' was set after fit"):
        model.predict(TABLE.assign(c0="never"))
    model.set_params(handle_unknown="neutral", interactions=None).partial_fit(TABLE, y)
    assert model.coefs_["c0"]["rows"].sum() == 2 * N


def test_a_rate_falls_over_a_share_of_the_passes_that_were_made():
    passes = []

    class Noting(TrainingLoop):
        def _step(self, rate, until=None):
            passes.append(until is not None)
            super()._step(rate, until)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "TrainingLoop", Noting)
        WideSGDRegressor(optimizer="adam", batch_size=64, max_iter=20, random_state=0).fit(TABLE, Y)
        assert passes == [False] * 16 + [True] * 4
        passes.clear()
        WideSGDRegressor(optimizer="adam", batch_size=64, tol=1.0, random_state=0).fit(TABLE, Y)  # ends at once
        assert passes == [False] * 11 + [True] * 10
        passes.clear()
        WideSGDRegressor(max_iter=20, random_state=0).fit(TABLE, Y)  # the default, as it was studied
        assert passes == [False] * 19 + [True]


def test_newton_is_the_same_each_time():
    rng = np.random.RandomState(0)
    X = pd.DataFrame({"a": rng.randint(300, size=900)}).astype(str)
    y = rng.normal(size=300)[X["a"].astype(int)] + rng.logistic(size=900) > 0
    one, two = (WideClassifier(**ADDITIVE).fit(X, y).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("optimizer", "n_categories"), [("rmsprop", 100), ("adam", 600)])
def test_memories_shorter_than_the_time_between_two_rows_are_warned_of(optimizer, n_categories):
    """Steps divided by the root of what is left of a symbol's squared gradients lead to no optimum."""
    X = pd.DataFrame({"a": [f"s{j % n_categories}" for j in range(2200)]})
    y = np.exp(2 * np.sin(np.arange(2200) % n_categories))
    y += np.random.RandomState(0).normal(size=2200)
    best = np.mean((y - pd.Series(y).groupby(X["a"]).transform("mean")) ** 2)
    for batch_size in (1, 256):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            options = {"optimizer": optimizer, "gradient": "mean", "batch_size": batch_size, "random_state": 0}
            model = WideSGDRegressor(**options).fit(X, y)
        assert caught or np.mean((y - model.predict(X)) ** 2) < best + 0.05 * (np.var(y) - best)


def test_the_best_epoch_comes_back_with_its_updates():
    """Under "mean" an absent symbol has missed the updates since it was last read: those of the epoch that is kept."""
    model = WideSGDRegressor(
        "w[c0] + b[1]", optimizer="adam", gradient="mean", learning_rate=0.3, early_stopping=True, max_iter=6,
        n_iter_no_change=6, batch_size=50, random_state=0,
    ).fit(TABLE[["c0"]], Y)  # fmt: skip
    n_updates = -(-int(N * 0.9) // 50)
    assert model.model_.n_steps == n_updates * (int(np.argmin(model.validation_curve_)) + 1)


def test_crosses_do_not_depend_on_the_order_of_categories():
    y = ((TABLE["c0"] == "k") ^ (TABLE["c1"] == "l")) | (RNG.random(N) < 0.1)
    shapes = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(list("klmnopqr"))
        table = TABLE.astype(pd.CategoricalDtype(order))
        model = WideSGDClassifier(interactions="auto", random_state=0).fit(table, y)
        shapes.append((model.interactions_["interaction"].tolist(), model.interactions_["gain"].round(12).tolist()))
    assert all(shape == shapes[0] for shape in shapes)


def test_vectors_do_not_depend_on_the_order_of_categories():
    codes = [TABLE.astype(pd.CategoricalDtype(list(order))) for order in ("klmnopqr", "rqponmlk")]
    models = [WideSGDRegressor("dot(u[c0], v[c1], rank=2) + b[1]", max_iter=2, random_state=0) for _ in codes]
    one, two = (model.fit(table, Y).predict(table) for model, table in zip(models, codes))
    np.testing.assert_allclose(one, two, rtol=1e-9)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"(intercept)": "k"}, {}),
        ({"c0:c1": "k"}, {"interactions": "pairwise"}),
        ({"x is missing": "k", "x": np.nan}, {}),
    ],
)
def test_columns_called_as_the_model_calls_its_own_blocks_are_refused(columns, options):
    table = TABLE[["c0", "c1"]].assign(**columns)
    if "x" in table:
        table["x"] = table["x"].where(np.arange(N) % 2 == 0, 1.0)
    with pytest.raises(ValueError, match=r"Two terms would be called .*; rename the column"):
        WideSGDRegressor(**options).fit(table, Y)


def test_a_class_called_count_keeps_its_column():
    y = np.where(Y > 1, "count", np.where(Y < -1, "low", "mid"))
    frame = WideSGDClassifier(random_state=0).fit(TABLE, y).coefs_["c0"]
    assert frame.columns.tolist() == ["count", "low", "mid", "rows"]
    assert frame["rows"].sum() == N


def test_a_formula_of_a_thousand_terms_is_read():
    wide = pd.DataFrame({f"x{j}": RNG.normal(size=40) for j in range(1000)})
    text = " + ".join(f"s{j}[1] * x{j}" for j in range(1000))
    model = WideSGDRegressor(text, max_iter=1, random_state=0).fit(wide, RNG.normal(size=40))
    assert len(model.coefs_) == 1000


@pytest.mark.slow
def test_streams_of_single_rows_are_standardised_by_all_rows():
    """A first row has no spread: prices of 100,000 came out worse than their mean."""
    y = 1e5 + 2e4 * EFFECT
    model = WideSGDRegressor("w[c0] + v[c1] + u[c2] + t[c3] + s[c4] + r[c5] + b[1]", optimizer=SGD(), random_state=0)
    for row in range(600):
        model.partial_fit(TABLE.iloc[[row]], y[[row]])
    rest = slice(600, None)
    assert np.mean((model.predict(TABLE[rest]) - y[rest]) ** 2) < 0.5 * np.var(y[rest])


@pytest.mark.slow
def test_early_stopping_and_adaptive_rates_get_passes_to_work_with():
    table, y = pd.concat([TABLE] * 50), np.tile(Y, 50)
    assert WideSGDRegressor(early_stopping=True, random_state=0).fit(table, y).n_iter_ > 3
    assert WideSGDRegressor(schedule="adaptive", random_state=0).fit(table, y).n_iter_ > 5


@pytest.mark.parametrize("alpha", [0.0, 1e-12])  # steps missed are made when a symbol is read, or all at once
def test_a_new_symbol_has_had_the_steps_of_the_others_under_mean(alpha):
    """Adam's first step on a gradient of any size, as step t of a sequence that was zero before: in closed form."""
    rate, t = 0.01, 41
    model = WideSGDRegressor(
        "w[a]", optimizer="adam", gradient="mean", learning_rate=rate, alpha=alpha, standardize=False, shuffle=False
    ).partial_fit(pd.DataFrame({"a": ["u"] * (t - 1)}), np.ones(t - 1))
    model.partial_fit(pd.DataFrame({"a": ["v"]}), np.array([50.0]))
    first, second = 0.1 / (1 - 0.9**t), 0.001 / (1 - 0.999**t)
    assert model.coefs_["w"].loc["v", "value"] == pytest.approx(rate * first / np.sqrt(second), rel=1e-6)


@pytest.mark.parametrize("formula", ["s[1] * x + b[1]", "w[c0] + v[c0] * x"])
def test_numbers_far_from_zero_are_centred_and_handed_back(formula):
    """At a given rate and given epochs, where nothing is settled afterwards: the least squares of each symbol."""
    table = TABLE[["c0"]].assign(x=50 + RNG.normal(size=N))
    y = 3.0 * table["x"].to_numpy() + EFFECT
    model = WideSGDRegressor(formula, optimizer="sgd", learning_rate=0.5, batch_size="full", max_iter=400).fit(table, y)
    groups = table["c0"] if "c0" in formula else pd.Series(0, index=table.index)
    for _, rows in table.groupby(groups.to_numpy()):
        slope, start = np.polyfit(rows["x"], y[rows.index], 1)
        np.testing.assert_allclose(model.predict(rows), slope * rows["x"] + start, atol=1e-3)


HEAVY = {
    "pareto": ("squared_error", lambda rng, n: rng.pareto(1.5, n)),
    "three spikes": ("squared_error", lambda rng, n: np.where(np.arange(n) % (n // 3 + 1) == 17, 1e6, 0.0)),
    "rare counts": ("poisson", lambda rng, n: (rng.random(n) < 2e-4).astype(float)),
    "large counts": ("poisson", lambda rng, n: np.floor(rng.pareto(1.2, n))),
    "claims": ("gamma", lambda rng, n: np.exp(rng.normal(0, 2.5, n))),
    "rare claims": ("tweedie", lambda rng, n: np.where(rng.random(n) < 0.01, rng.pareto(1.5, n), 0.0)),
}


@pytest.mark.parametrize("kind", HEAVY)
@pytest.mark.parametrize("options", [{}, {"optimizer": "adam", "batch_size": 1000}, {"optimizer": "sgd"}], ids=str)
def test_targets_with_heavy_tails_do_not_look_as_if_training_ran_away(kind, options):
    """What a sample of the rows shows of such a target is no guide to its mean loss."""
    loss, draw = HEAVY[kind]
    rng, n = np.random.default_rng(0), 30_000
    table, y = pd.DataFrame({c: rng.integers(0, 50, n).astype(str) for c in "abc"}), draw(rng, n)
    model = WideSGDRegressor(loss=loss, random_state=0, **options).fit(table, y)
    assert np.isfinite(model.predict(table)).all()
    if loss in ("poisson", "squared_error"):
        assert model.predict(table).mean() == pytest.approx(y.mean(), rel=0.01)


def test_a_rate_found_on_rows_without_an_event_is_made_small_enough():
    rng, n = np.random.default_rng(0), 100_000
    table = pd.DataFrame({c: rng.integers(0, 50, n).astype(str) for c in "abc"})
    y = rng.random(n) < 5e-5
    model = WideSGDClassifier(optimizer="sgd", random_state=0).fit(table, y)
    assert model.predict_proba(table)[:, 1].mean() == pytest.approx(y.mean(), rel=0.01)
