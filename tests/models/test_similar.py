"""Wide models whose unseen symbols add what similar ones do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabsym import WideSGDClassifier, WideSGDRegressor

rng = np.random.default_rng(0)
N = 3000
OWN = rng.integers(0, 40, N)
KIND = OWN % 4
X = pd.DataFrame(
    {
        "model": [f"m{code}" for code in OWN],
        "kind": np.array(list("abcd"), dtype=object)[np.where(rng.random(N) < 0.5, KIND, rng.integers(0, 4, N))],
        "n": rng.normal(size=N),
    }
)
SCORE = KIND - 1.5 + OWN / 100 + 0.2 * X["n"].to_numpy()
HELD = OWN >= 32
TARGETS = {
    "squared_error": SCORE + rng.normal(0, 0.5, N),
    "huber": SCORE + rng.normal(0, 0.5, N),
    "absolute_error": SCORE + rng.normal(0, 0.5, N),
    "poisson": rng.poisson(np.exp(SCORE)).astype(float),
    "logistic": (rng.random(N) < 1 / (1 + np.exp(-2 * SCORE))).astype(int),
    "multinomial": np.digitize(SCORE + rng.normal(0, 0.3, N), [-0.8, 0.6]),
}


def model(loss, **options):
    if loss in ("logistic", "multinomial"):
        return WideSGDClassifier(random_state=0, **options)
    return WideSGDRegressor(random_state=0, loss=loss, **options)


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("weighted", [False, True])
def test_similar_symbols_foretell(loss, weighted):
    y = TARGETS[loss]
    weight = rng.integers(0, 3, N).astype(float) if weighted else None
    given = None if weight is None else weight[~HELD]
    plain = model(loss).fit(X[~HELD], y[~HELD], sample_weight=given)
    similar = model(loss, handle_unknown="similar").fit(X[~HELD], y[~HELD], sample_weight=given)
    assert similar.score(X[HELD], y[HELD]) > plain.score(X[HELD], y[HELD]) + 0.05
    np.testing.assert_array_equal(similar.predict(X[~HELD]), plain.predict(X[~HELD]))  # nothing unseen
    frame = pl.from_pandas(X[HELD])
    np.testing.assert_allclose(similar.predict(frame), similar.predict(X[HELD]))


def test_what_is_added_is_about_what_the_symbol_is_worth():
    y = TARGETS["squared_error"]
    similar = WideSGDRegressor(handle_unknown="similar", random_state=0).fit(X[~HELD], y[~HELD])
    whole = WideSGDRegressor(random_state=0).fit(X, y)
    worth = whole.coefs_["model"]["value"] - whole.coefs_["model"]["value"][[f"m{i}" for i in range(32)]].mean()
    kinds = pd.DataFrame({"model": X["model"][HELD], "kind": X["kind"][HELD], "n": X["n"][HELD]})
    within = similar._similar.columns["model"].components.within
    assert within == pytest.approx(0.25, rel=0.15)  # of the rows about their symbols: what is left over counts
    neutral = WideSGDRegressor(random_state=0).fit(X[~HELD], y[~HELD])
    added = pd.Series(similar.predict(kinds) - neutral.predict(kinds), index=kinds["model"]).groupby(level=0).first()
    assert np.corrcoef(added, worth[added.index])[0, 1] > 0.9


def test_offsets_and_crosses():
    y = TARGETS["squared_error"]
    offset = 5 * rng.normal(size=N)
    shifted = WideSGDRegressor(handle_unknown="similar", random_state=0, interactions="pairwise")
    shifted.fit(X[~HELD], (y + offset)[~HELD], offset=offset[~HELD])
    plain = WideSGDRegressor(random_state=0, interactions="pairwise").fit(
        X[~HELD], (y + offset)[~HELD], offset=offset[~HELD]
    )
    errors = [
        np.mean((one.predict(X[HELD], offset=offset[HELD]) - (y + offset)[HELD]) ** 2) for one in (shifted, plain)
    ]
    assert errors[0] < 0.7 * errors[1]


def test_what_is_refused():
    y = TARGETS["squared_error"]
    with pytest.raises(ValueError, match="with a formula"):
        WideSGDRegressor("w[model] + b[1]", handle_unknown="similar").fit(X, y)
    with pytest.raises(ValueError, match="from all rows at hand"):
        WideSGDRegressor(handle_unknown="similar").partial_fit(X, y)
    with pytest.raises(ValueError, match="fit again"):
        WideSGDRegressor().fit(X, y).set_params(handle_unknown="similar").predict(X)
    only = WideSGDRegressor(handle_unknown="similar").fit(X[["n"]], y)  # no symbols at all
    assert np.isfinite(only.predict(X[["n"]])).all()
    alone = WideSGDRegressor(handle_unknown="similar").fit(X[["model"]], y)  # nothing that could tell
    new = pd.DataFrame({"model": ["x", "y"]})
    assert np.ptp(alone.predict(new)) == 0
