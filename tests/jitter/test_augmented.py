"""Training rows twice, and models over them."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tabsym import AugmentedModel, TIWSEncoder

rng = np.random.default_rng(0)
N = 900
OWN = rng.integers(0, 24, N)
KIND = OWN % 4
X = pd.DataFrame(
    {
        "model": [f"m{code}" for code in OWN],
        "kind": np.array(list("abcd"), dtype=object)[np.where(rng.random(N) < 0.9, KIND, rng.integers(0, 4, N))],
        "two": rng.choice(["yes", "no"], N),
        "n": rng.normal(size=N),
    }
)
Y = 10.0 * KIND + OWN / 24 + 0.5 * X["n"].to_numpy() + rng.normal(0, 1, N)


@pytest.mark.slow
def test_rows_stand_twice_with_half_the_weight():
    weight = rng.integers(0, 3, N).astype(float)
    encoder = TIWSEncoder(indicator=True, random_state=1)
    rows, target, weights = encoder.augment(X, Y, sample_weight=weight)
    plain = TIWSEncoder(indicator=True, random_state=1).fit_transform(X, Y, weight)
    pd.testing.assert_frame_equal(rows.iloc[:N].reset_index(drop=True), plain.reset_index(drop=True))
    np.testing.assert_array_equal(target, np.tile(Y, 2))
    np.testing.assert_array_equal(weights, np.tile(weight / 2, 2))
    second = rows.iloc[N:].reset_index(drop=True)
    flags = second[[f"{name}_unknown" for name in ("model", "kind", "two")]].to_numpy()
    assert (flags.sum(axis=1) == 1).all()  # one symbol of each row
    assert flags[:, 2].sum() == 0  # of two symbols one has nothing to say of the other
    assert 0.4 < flags[:, 0].mean() < 0.6
    for place, name in enumerate(("model", "kind", "two")):
        same = flags[:, place] == 0
        np.testing.assert_array_equal(second[name][same], plain[name].to_numpy()[same])
    pd.testing.assert_series_equal(second["n"], X["n"])


def test_an_unseen_copy_is_estimated_without_its_symbol():
    """By leaving each group of symbols out and encoding its rows as unseen ones of an encoder that has the rest."""
    encoder = TIWSEncoder(cols=["model"], numeric="passthrough", random_state=0)
    rows, _, _ = encoder.augment(X, Y)
    from tabsym.encoders.tiws_column import folds_of_categories

    fitted = encoder.columns_["model"].fitted
    groups = folds_of_categories(fitted.sums.rows, 0)
    assert len(np.unique(groups)) == 10
    changed = Y.copy()
    out = [category for category, group in zip(fitted.categories, groups, strict=True) if group == 3]
    held = X["model"].isin(out).to_numpy()
    changed[held] += 0.01 * rng.normal(size=held.sum())  # their own targets, hardly moved: what is chosen stays
    other, _, _ = TIWSEncoder(cols=["model"], numeric="passthrough", random_state=0).augment(X, changed)
    before, after = rows["model"].to_numpy()[N:], other["model"].to_numpy()[N:]
    assert np.abs(after - before)[held].max() < 1e-3  # only by the components of variance
    assert np.abs(after - before)[held].max() < np.abs(after - before)[~held].max() + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("frame", ["pandas", "polars", "array"])
def test_every_container(frame):
    table = {"pandas": X, "polars": pl.from_pandas(X), "array": X.to_numpy(dtype=object)}[frame]
    cols = [0, 1, 2] if frame == "array" else None
    model = AugmentedModel(HistGradientBoostingRegressor(max_iter=20), encoder=TIWSEncoder(indicator=True, cols=cols))
    model.fit(table, Y)
    assert model.score(table, Y) > 0.9
    again = AugmentedModel(HistGradientBoostingRegressor(max_iter=20), encoder=TIWSEncoder(indicator=True)).fit(X, Y)
    np.testing.assert_allclose(model.predict(table), again.predict(X), atol=1e-9)


@pytest.mark.slow
def test_new_symbols_are_foretold_and_blindness_is_reported():
    """`kind` is dropped: the model tells it, and the other columns do not."""
    model = AugmentedModel(HistGradientBoostingRegressor(max_iter=60, random_state=0))
    found = model.evaluate_unknown(X, Y, "model").set_index("model")
    assert list(found.columns) == ["loss", "difference", "standard_error"]
    assert found.loc["without column", "difference"] == 0
    assert found.loc["augmented", "loss"] < 1.3 * found.loc["without column", "loss"]
    assert not hasattr(model, "estimator_")
    # a column that tells beyond the others, of symbols with documents that tell too
    noisy = X.assign(kind=np.where(rng.random(N) < 0.4, X["kind"], rng.choice(list("abcd"), N)))
    found = model.evaluate_unknown(noisy, Y, "model").set_index("model")
    assert (
        found.loc["augmented", "loss"] + 2 * found.loc["augmented", "standard_error"]
        < found.loc["without column", "loss"]
    )


@pytest.mark.slow
def test_classifiers():
    labels = np.where(Y > 15, "dear", "cheap")
    model = AugmentedModel(HistGradientBoostingClassifier(max_iter=20)).fit(X, labels)
    assert is_classifier(model) and model.classes_.tolist() == ["cheap", "dear"]
    shares = model.predict_proba(X.assign(model="new"))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert model.score(X, labels) > 0.9
    found = model.evaluate_unknown(X[:400], labels[:400], "model", folds=3)
    assert set(found["model"]) == {"augmented", "encoded", "without column"}
    three = AugmentedModel(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, np.digitize(Y, [10, 20]))
    assert three.decision_function(X.head(2)).shape == (2, 3)


class Recorder(HistGradientBoostingRegressor):
    """Keeps what it was trained on."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = X.copy(), np.asarray(y), sample_weight
        return super().fit(X, y, sample_weight)


@pytest.mark.slow
def test_each_row_is_there_once():
    weight = rng.permutation(np.repeat([0.5, 1.5], N // 2))
    encoder = TIWSEncoder(indicator=True, random_state=3)
    rows, _, _ = clone(encoder).augment(X, Y, weight)
    seen, y, weights = AugmentedModel(Recorder(), encoder=encoder).fit(X, Y, sample_weight=7 * weight).estimator_.seen_
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_allclose(weights, weight)
    unseen = seen[["model_unknown", "kind_unknown"]].sum(axis=1).to_numpy()
    assert 0.45 < unseen.mean() < 0.55
    first, second = rows.iloc[:N].to_numpy(), rows.iloc[N:].to_numpy()
    np.testing.assert_array_equal(seen.to_numpy(), np.where(unseen[:, None] > 0, second, first))
    assert AugmentedModel(Recorder()).fit(X, Y).estimator_.seen_[2] is None


def test_only_relative_weights_matter():
    times = 100.0
    weight = rng.uniform(0.5, 2, N) * (rng.random(N) < 0.9)
    new = X.assign(model=np.where(np.arange(N) % 3, X["model"], "new"))
    classes = Y > 15
    one = AugmentedModel(LogisticRegression()).fit(X, classes, sample_weight=weight)
    other = AugmentedModel(LogisticRegression()).fit(X, classes, sample_weight=weight * times)
    np.testing.assert_allclose(other.predict_proba(new), one.predict_proba(new), rtol=1e-9)
    found = [one.evaluate_unknown(X, classes, "model", sample_weight=w, folds=2) for w in (weight, weight * times)]
    pd.testing.assert_frame_equal(*found, rtol=1e-7)


def test_weights_in_another_order_are_refused():
    weight = pd.Series(np.ones(N), index=X.index[::-1])
    with pytest.raises(ValueError, match="X and sample_weight have different indexes"):
        AugmentedModel(LogisticRegression()).fit(X, Y > 15, sample_weight=weight)


def test_errors_are_sentences():
    with pytest.raises(TypeError, match="takes no sample_weight"):
        AugmentedModel(KNeighborsRegressor()).fit(X, Y, sample_weight=np.ones(N))
    assert AugmentedModel(make_pipeline(StandardScaler(), KNeighborsRegressor())).fit(X, Y).score(X, Y) > 0.5
    with pytest.raises(TypeError, match="must be a TIWSEncoder"):
        AugmentedModel(HistGradientBoostingRegressor(), encoder=StandardScaler()).fit(X, Y)
    with pytest.raises(ValueError, match="folds=1"):
        AugmentedModel(HistGradientBoostingRegressor()).evaluate_unknown(X, Y, "model", folds=1)
    with pytest.raises(ValueError, match="There is no column 'nowhere'"):
        AugmentedModel(HistGradientBoostingRegressor()).evaluate_unknown(X, Y, "nowhere")


PRICES = [Decimal(1), None, Decimal(3), Decimal("0.5")]
RARE = {
    "decimals of arrow in pandas": pd.Series(PRICES, dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    "decimals of polars": pl.Series(PRICES, dtype=pl.Decimal(5, 2)),
    "decimals of arrow": pa.array(PRICES, pa.decimal256(50, 2)),
    "sparse": pd.Series(pd.arrays.SparseArray([1.0, np.nan, 3.0, 0.5])),
    "sparse around 0": pd.Series(pd.arrays.SparseArray([1.0, np.nan, 3.0, 0.5], fill_value=0)),
}


@pytest.mark.parametrize("others", [{}, {"whole": np.arange(120) % 7}], ids=["alone", "beside others"])
@pytest.mark.parametrize("column", RARE.values(), ids=RARE)
def test_numbers_of_rare_types_reach_the_model_as_floats(column, others):
    """scikit-learn takes no missing value of decimals, and no frame of sparse columns alone."""

    def table(values):
        made = {pl.Series: pl.DataFrame, pd.Series: pd.DataFrame}.get(type(values), pa.table)
        return made({"price": values} | others)

    many = np.tile(np.arange(4), 30)
    rows = column.take(pa.array(many)) if isinstance(column, pa.Array) else column[many.tolist()]
    rows = rows.reset_index(drop=True) if isinstance(rows, pd.Series) else rows
    plain = pd.DataFrame({"price": np.array([1.0, np.nan, 3.0, 0.5])[many]} | others)
    y = np.where(many == 0, 1.0, 2.0) + np.arange(120) / 1000
    model = AugmentedModel(HistGradientBoostingRegressor(max_iter=5))
    wanted = clone(model).fit(plain, y).predict(plain)
    assert np.ptp(wanted) > 0.1
    np.testing.assert_array_equal(clone(model).fit(table(rows), y).predict(table(rows)), wanted)


@pytest.mark.slow
def test_an_encoder_that_names_the_column_is_compared_without_it():
    """The encoder of the rows without the column cannot be told to encode it."""
    rows, y = X[["model", "kind", "n"]].iloc[:300], Y[:300]
    trees = HistGradientBoostingRegressor(max_iter=10, random_state=0)
    found = [
        AugmentedModel(trees, encoder=TIWSEncoder(indicator=True, **options)).evaluate_unknown(
            rows, y, "model", folds=2
        )
        for options in ({}, {"cols": ["model", "kind"]}, {"numeric": {"n": "modl"}})
    ]
    pd.testing.assert_frame_equal(found[0], found[1])
    pd.testing.assert_frame_equal(found[0], found[2])
    alone = rows[["model", "n"]]
    one = AugmentedModel(trees, encoder=TIWSEncoder(cols="model")).evaluate_unknown(alone, y, "model", folds=2)
    other = AugmentedModel(trees, encoder=TIWSEncoder()).evaluate_unknown(alone, y, "model", folds=2)
    pd.testing.assert_frame_equal(one, other)
