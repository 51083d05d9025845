"""Ctrl-C ends the fit of a solved model with the coefficients that were reached; `verbose` shows how far it is."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tabsym import WideClassifier, WideRegressor
from tabsym.solvers.newton import fit
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.formulas import Objective

N = 500
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.choice(list("abcdef"), N), "b": RNG.integers(0, 90, N).astype(str), "x": RNG.normal(size=N)})
EFFECT = X["a"].map(dict(zip("abcdef", [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0], strict=True))).to_numpy() + X["x"].to_numpy()
AMOUNTS = EFFECT + RNG.normal(size=N)
TWO = np.where(EFFECT + RNG.logistic(size=N) > 0, "yes", "no")
THREE = np.argmax(np.stack([0 * EFFECT, EFFECT, -EFFECT], 1) + RNG.gumbel(size=(N, 3)), 1)


@pytest.mark.parametrize("after", [1, 3, 8])
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (WideRegressor(loss="squared_error"), AMOUNTS),
        (WideRegressor(loss="squared_error", alpha=0.0), AMOUNTS),
        (WideClassifier(), TWO),
        (WideClassifier(), THREE),
    ],
    ids=["estimated", "unpenalized", "two classes", "three classes"],
)
def test_what_was_reached_is_kept(model, y, after, monkeypatch):
    update_blocks, calls = BlockDescent.update_blocks, []

    def interrupted(solver):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return update_blocks(solver)

    monkeypatch.setattr(BlockDescent, "update_blocks", interrupted)
    model = clone(model)
    with pytest.raises(KeyboardInterrupt, match="iterations; the model is fitted, and usable"):
        model.fit(X, y)
    assert model.score(X, y) > (0.3 if y is AMOUNTS else 0.5)
    assert np.isfinite(model.model_.theta).all()
    monkeypatch.setattr(BlockDescent, "update_blocks", update_blocks)
    assert model.fit(X, y).score(X, y) > (0.5 if y is AMOUNTS else 0.6)


@pytest.mark.parametrize("after", [1, 6, 60])
@pytest.mark.parametrize("alpha", ["auto", 0.0])
def test_what_a_formula_with_products_reached_is_kept(alpha, after, monkeypatch):
    value, calls = Objective.value, []

    def interrupted(objective, phi):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return value(objective, phi)

    y = (3.0 + EFFECT) * (1 + (X["b"].astype(int) % 3)) + RNG.normal(size=N)
    model = WideRegressor("f[a] * g[b] + c[1]", loss="squared_error", alpha=alpha)
    monkeypatch.setattr(Objective, "value", interrupted)
    with pytest.raises(KeyboardInterrupt, match="the model is fitted, and usable"):
        model.fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert after < 60 or model.score(X, y) > 0.5
    assert model.coefs_["f"]["sd"].notna().all()


def test_an_interruption_before_any_coefficient_leaves_the_model_unfitted(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tabsym.models.fitting.plan_cuts", interrupted)
    model = WideClassifier()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, TWO)
    assert not hasattr(model, "model_")


def test_progress_is_shown(monkeypatch, capsys):
    clock = iter(range(10_000))
    monkeypatch.setattr(fit.time, "monotonic", lambda: float(next(clock)))
    model = WideClassifier(verbose=1).fit(X, TWO)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("interactions searched: ")
    n_terms = int(lines[1].split()[0])
    assert len(model.coefs_) <= n_terms  # count effects that are dropped are not shown
    assert lines[1].startswith(f"{n_terms} terms coded: ")
    assert lines[1].endswith(f" coefficients, {N} rows")
    assert lines[2].startswith("1 iteration, the objective falls by ")
    assert any(line.startswith(f"variances of {n_terms - 1} terms estimated, ") for line in lines)
    assert "mean loss" in lines[-1]
    assert len(lines) <= 10
    WideRegressor(verbose=1, interactions=None).fit(X, AMOUNTS - AMOUNTS.min() + 1)
    assert "losses compared on held-out rows: squared_error of " in capsys.readouterr().err
    WideClassifier().fit(X, TWO)
    assert capsys.readouterr().err == ""
