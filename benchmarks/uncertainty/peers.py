"""Coefficients and standard errors beside those of statsmodels and glum: development tables, without penalty.

    TABSYM_DATA=FOLDER python benchmarks/uncertainty/peers.py        # needs glum, which nothing else here does

Categories with fewer than 30 rows, or with one target, are put together: a GLM has no finite optimum then. Weights
of .5 to 2 and offsets at random. Printed, over all coefficients but the intercept, in the coding of the first category
as the base: the largest difference of a coefficient in its standard errors, and the largest relative difference of a
standard error; by the default tolerance, and at ``tol=3e-7, max_iter=2000``.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

import glum
import numpy as np
import pandas as pd
import statsmodels.api as sm

sys.path.insert(0, str(Path(__file__).parent.parent))

from tables import read

from tabsym import WideClassifier, WideRegressor

CASES = {
    "adult, logistic": (
        "adult",
        "logistic",
        ["workclass", "education", "marital-status", "race"],
        ["age", "hours-per-week"],
    ),
    "usedcars, gamma": ("usedcars", "gamma", ["manufacturer_name", "body_type", "drivetrain"], ["year_produced"]),
    "usedcars, squared error": (
        "usedcars",
        "squared_error",
        ["manufacturer_name", "color", "engine_fuel"],
        ["year_produced"],
    ),
    "retail, poisson": ("retail", "poisson", ["group", "colour", "size", "week"], ["price"]),
    "amazon, logistic": ("amazon", "logistic", ["ROLE_FAMILY", "ROLE_ROLLUP_1"], []),
    "kick, logistic": ("kick", "logistic", ["Make", "Auction", "VNST"], ["VehBCost"]),
}
FAMILIES = {
    "logistic": sm.families.Binomial(), "gamma": sm.families.Gamma(sm.families.links.Log()),
    "squared_error": sm.families.Gaussian(), "poisson": sm.families.Poisson(),
}  # fmt: skip
GLUM = {"logistic": "binomial", "gamma": "gamma", "squared_error": "normal", "poisson": "poisson"}


def together(column: pd.Series, y: np.ndarray) -> pd.Series:
    named = column.astype(str)
    targets = pd.Series(y).groupby(named.to_numpy())
    told = (targets.size() >= 30) & (targets.min() < targets.max())
    return named.where(named.map(told), "~others")


def compare(name: str, loss: str, categories: list[str], numbers: list[str]) -> None:
    ready = read(name, None)
    y = np.asarray(ready.y, dtype=np.float64)
    X = pd.DataFrame({one: together(ready.X[one], y) for one in categories})
    y = np.round(np.maximum(y, 0.0)) if loss == "poisson" else y
    for one in numbers:
        own = pd.to_numeric(ready.X[one])
        X[one] = own.fillna(own.mean())
    rng = np.random.default_rng(0)
    weight, offset = rng.uniform(0.5, 2.0, len(X)), rng.normal(0.0, 0.2, len(X))
    weight = weight / weight.mean()
    design = pd.get_dummies(X, columns=categories, drop_first=True, dtype=np.float64)
    scale = {one: design[one].std() for one in numbers}
    design = design.assign(**{one: design[one] / scale[one] for one in numbers})
    start = time.perf_counter()
    fit = sm.GLM(y, sm.add_constant(design), family=FAMILIES[loss], offset=offset, var_weights=weight).fit(
        scale=1.0 if loss == "logistic" else "X2", tol=1e-14, maxiter=300
    )
    seconds = {"statsmodels": time.perf_counter() - start}
    wanted = {"statsmodels": (fit.params[design.columns].to_numpy(), fit.bse[design.columns].to_numpy())}
    start = time.perf_counter()
    peer = glum.GeneralizedLinearRegressor(
        family=GLUM[loss], link="log" if loss in ("gamma", "poisson") else "auto", alpha=0.0, gradient_tol=1e-10,
        max_iter=300,
    )  # fmt: skip
    peer.fit(design, y, sample_weight=weight, offset=offset)
    covariance = peer.covariance_matrix(
        design, y, sample_weight=weight, offset=offset, robust=False, expected_information=True
    )
    seconds["glum"] = time.perf_counter() - start
    wanted["glum"] = (peer.coef_, np.sqrt(np.diag(covariance))[1:])
    kind = WideClassifier if loss == "logistic" else WideRegressor
    named = {} if loss == "logistic" else {"loss": loss}
    plain = {"numeric": "linear", "interactions": None, "count_effect": False, "alpha": 0.0}
    for how, options in {"default": {}, "tol=3e-7": {"tol": 3e-7, "max_iter": 2000}}.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = kind(**plain, **options, **named).fit(
                X, y.astype(int) if loss == "logistic" else y, sample_weight=weight, offset=offset
            )
        own = time.perf_counter() - start
        base = {one: min(X[one]) for one in categories}
        table = model.coef_table(base=base).set_index(["term", "category"])
        keys = [(one, None) for one in numbers] + [
            (one, category) for one in categories for category in sorted(set(X[one]))[1:]
        ]
        by_term = {
            key: table.loc[[key[0]]].xs(key[1], level=1) if key[1] is not None else table.loc[[key[0]]] for key in keys
        }
        value = np.array([by_term[key]["value"].iloc[0] for key in keys])
        sd = np.array([by_term[key]["sd"].iloc[0] for key in keys])
        times = np.array([scale.get(key[0], 1.0) for key in keys])
        value, sd = value * times, sd * times
        order = [*numbers, *(f"{one}_{category}" for one, category in keys if category is not None)]
        at = [list(design.columns).index(one) for one in order]
        cells = []
        for peer_name, (values, errors) in wanted.items():
            away = np.max(np.abs(value - values[at]) / errors[at])
            error = np.max(np.abs(sd / errors[at] - 1.0))
            cells.append(f"{peer_name}: {away:.1e} {error:.1e} ({seconds[peer_name]:.2f} s)")
        print(f"{name}, {loss} | {len(X)} x {len(keys)} | {how} ({own:.2f} s) | " + " | ".join(cells), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for case in CASES.values():
        compare(*case)
