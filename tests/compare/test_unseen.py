"""Comparisons that hold whole symbols out, and the answers of others that ours are compared with."""

import numpy as np
import pandas as pd
import pytest

from tabsym import TIWSEncoder, compare
from tabsym.compare.contenders import all_contenders, choose
from tabsym.compare.estimators import FilledEncoder
from tabsym.compare.fitting import Data, train
from tabsym.compare.ranking import pair_of_rows

pytestmark = pytest.mark.usefixtures("in_process")

rng = np.random.default_rng(0)
N = 1200
OWN = rng.integers(0, 30, N)
KIND = OWN % 3
SALES = pd.DataFrame(
    {
        "model": [f"{'abc'[code % 3]}-{code}" for code in OWN],
        "kind": np.array(["car", "van", "bus"])[np.where(rng.random(N) < 0.5, KIND, rng.integers(0, 3, N))],
        "age": rng.integers(0, 9, N),
    }
)
SALES["price"] = 10.0 * KIND + 0.1 * OWN + SALES["age"] + rng.normal(0, 1, N)
UNSEEN = [name for name, one in all_contenders().items() if one.for_unseen]


def test_they_take_part_only_where_symbols_are_held_out():
    assert {"unseen-blind", "unseen-mean", "unseen-knn", "unseen-names", "unseen-tiws-printed", "unseen-documents",
            "unseen-augmented"} <= set(UNSEEN)  # fmt: skip
    assert not any(one.for_unseen for one in choose(None, "regression"))
    assert set(UNSEEN) <= {one.name for one in choose(None, "regression", unseen=True)}
    with pytest.raises(ValueError, match="needs held-out categories"):
        choose(["unseen-blind"], "regression")


@pytest.mark.slow
def test_a_comparison_of_held_out_symbols(tmp_path):
    chosen = ["lightgbm", "unseen-documents", "unseen-jitter-lightgbm"]
    found = compare(SALES, "price", unseen="model", folds=2, contenders=chosen, out=tmp_path / "out", quiet=True)
    assert not found.failures
    ranking = found.ranking.set_index("name")
    assert set(ranking.index) == {"constant", *chosen}
    assert (ranking["clustered_error"] > 0).all()
    assert ranking.loc["unseen-documents", "score"] < ranking.loc["lightgbm", "score"]
    assert ranking.loc["unseen-jitter-lightgbm", "score"] < ranking.loc["lightgbm", "score"]
    assert found.best.predict(SALES.head(3).assign(model="new")).shape == (3,)
    report = (tmp_path / "out" / "report.html").read_text()
    assert "s.e. clustered by categor" in report and "&#39;model&#39;" in report


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass", "count"])
@pytest.mark.parametrize("name", UNSEEN)
def test_each_answers_for_held_out_symbols(name, task):
    held = OWN >= 24
    y = {
        "regression": SALES["price"].to_numpy(),
        "binary": (SALES["price"] > 15).to_numpy().astype(int),
        "multiclass": np.digitize(SALES["price"], [9, 20]),
        "count": rng.poisson(np.exp(KIND)).astype(float),
    }[task]
    X = SALES.drop(columns="price")
    weight = rng.uniform(0.5, 1.5, N)
    if "catboost" in name and task != "binary":
        return  # seconds each, and no different
    data = Data(X, y, task, 3 if task == "multiclass" else 2, weight)
    model = all_contenders()[name].estimator(task, 0, 1, "model")
    trained = train(model, data.rows(np.flatnonzero(~held)))
    assert not trained.unweighted
    answers = trained.predict(data.rows(np.flatnonzero(held)))
    assert np.isfinite(answers).all()
    if task in ("binary", "multiclass"):
        np.testing.assert_allclose(answers.sum(axis=1), 1.0)
    if task == "regression" and name not in ("unseen-mean", "unseen-tiws-printed", "unseen-knn"):
        assert np.mean((answers - y[held]) ** 2) < np.var(y[held])


def test_a_symbol_that_the_rows_of_calibration_lack_is_a_donor():
    rare = SALES.copy()
    rare["model"] = np.where(np.arange(N) < 40, [f"rare-{i}" for i in range(N)], rare["model"])
    held = OWN >= 24
    model = all_contenders()["unseen-jitter-lightgbm"].estimator("regression", 0, 1, "model")
    model.fit(rare[~held].drop(columns="price").reset_index(drop=True), rare["price"][~held])
    new = rare[held & (np.arange(N) >= 40)].drop(columns="price")
    assert np.isfinite(model.predict(new)).all()
    assert model.predictor_.donors(new, "model", n_donors=99)["weight"].max() <= 1


def test_symbols_held_out_are_what_was_chosen_and_not_their_rows():
    """The variance of a mean of so few clusters, by the sum of squares of what they add to it."""
    clusters = np.repeat(np.arange(6), 5)
    difference = rng.normal(size=30)
    splits = [(np.flatnonzero(clusters > 2), np.flatnonzero(clusters <= 2)),
              (np.flatnonzero(clusters <= 2), np.flatnonzero(clusters > 2))]  # fmt: skip
    pair = pair_of_rows([difference[test] for _, test in splits], None, [test for _, test in splits], clusters)
    assert pair.rows == pytest.approx(difference.reshape(6, 5).mean(axis=1).var(ddof=1) / 6)
    assert pair.n == 6


def test_clusters_that_are_folds_vary_as_the_folds_do():
    """One group a fold: what the choice of groups makes of the mean is what the folds' means scatter."""
    clusters = np.repeat(np.arange(4), [5, 9, 7, 9])
    difference, weight = rng.normal(size=30), rng.uniform(0.5, 2.0, 30)
    splits = [(np.flatnonzero(clusters != group), np.flatnonzero(clusters == group)) for group in range(4)]
    means = np.array([np.average(difference[test], weights=weight[test]) for _, test in splits])
    pair = pair_of_rows([difference[test] for _, test in splits], weight, [test for _, test in splits], clusters)
    assert pair.rows == pytest.approx(means.var(ddof=1) / 4)
    assert pair.within == pytest.approx(means.var(ddof=1))


@pytest.mark.parametrize("by", ["knn", "names"])
def test_other_answers(by):
    held = OWN >= 24
    encoder = FilledEncoder(TIWSEncoder(cols=["model"]), "model", by=by)
    y = SALES["price"].to_numpy()
    X = SALES.drop(columns="price")
    out = encoder.fit_transform(X[~held], y[~held])
    plain = TIWSEncoder(cols=["model"]).fit_transform(X[~held], y[~held])
    pd.testing.assert_frame_equal(out, plain)
    new = encoder.transform(X)
    seen = encoder.encoder_.transform(X)
    np.testing.assert_array_equal(new["model"][~held], seen["model"][~held])
    assert np.corrcoef(new["model"][held], KIND[held])[0, 1] > (0.3 if by == "knn" else 0.9)
    if by == "knn":  # by hand, for one row
        row = int(np.flatnonzero(held)[0])
        train = X[~held].reset_index(drop=True)
        scale = train["age"].std(ddof=0)
        far = (train["kind"] != X["kind"][row]) * 1.0 + ((train["age"] - X["age"][row]) / scale) ** 2
        nearest = np.sort(far.to_numpy())[39]
        inside = (far < nearest - 1e-5).to_numpy()
        ties = (np.abs(far - nearest) <= 1e-5).to_numpy()
        low, high = np.sort(y[~held][ties])[: 40 - inside.sum()], np.sort(y[~held][ties])[-(40 - inside.sum()) :]
        total = y[~held][inside].sum()
        assert (total + low.sum()) / 40 - 1e-6 <= new["model"][row] <= (total + high.sum()) / 40 + 1e-6
