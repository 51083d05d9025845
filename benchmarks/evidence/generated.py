"""Figures of README.md that come from generated tables: what is found where the truth is known.

python benchmarks/evidence/generated.py variances  # of rare symbols, by rows held out, with few looks, by evidence
python benchmarks/evidence/generated.py sums       # how often loss="auto" takes sums for products
python benchmarks/evidence/generated.py small      # loss="auto" on tables of 40 to 150 rows
python benchmarks/evidence/generated.py alike      # numbers that say nearly the same
python benchmarks/evidence/generated.py zeros      # targets that are mostly 0, behind a log link
python benchmarks/evidence/generated.py few        # few rows, behind a log link: the dispersion for variances
python benchmarks/evidence/generated.py events     # few events among many rows: the prior of variances
python benchmarks/evidence/generated.py classes    # variances of several classes, with the factor and without
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.metrics import d2_tweedie_score, log_loss, mean_tweedie_deviance
from sklearn.model_selection import StratifiedKFold, cross_val_score

from tabsym import WideClassifier, WideRegressor
from tabsym.models import loss_selection as linking
from tabsym.models.config import Config
from tabsym.solvers.newton import dispersion as dispersion_module
from tabsym.solvers.newton import variances as variances_module

ADDITIVE = {"numeric": "linear", "interactions": None, "count_effect": False, "random_state": 0}


class ByEvidence(WideClassifier):
    """Variances of rare symbols by the evidence, too, without rows held out."""

    def _config(self) -> Config:
        config = super()._config()
        return replace(config, optimizer=replace(config.newton, rare_rows=0.0))


def variances() -> None:
    """300 symbols, three tables each: the variance found, and the log-loss of as many new rows."""
    print("| true variance | rows a symbol | rows held out | with four looks | by evidence |")
    print("| --- | --- | --- | --- | --- |")
    most = variances_module.MAX_EVALUATIONS
    for variance in (0, 1, 16, 64, 256):
        for rows in (2, 20, 80):
            found: dict[str, list[tuple[float, float]]] = {"held out": [], "four": [], "evidence": []}
            for seed in range(3):
                rng = np.random.RandomState(seed)
                n = 300 * rows
                codes = rng.randint(0, 300, 2 * n)
                score = np.sqrt(variance) * rng.randn(300)[codes]
                y = (rng.rand(2 * n) < 1 / (1 + np.exp(-score))).astype(int)
                X = pd.DataFrame({"g": [f"g{code}" for code in codes]})
                for name, got in found.items():
                    variances_module.MAX_EVALUATIONS = 4 if name == "four" else most
                    kind = ByEvidence if name == "evidence" else WideClassifier
                    model = kind(**ADDITIVE).fit(X[:n], y[:n])
                    loss = log_loss(y[n:], model.predict_proba(X[n:]))
                    got.append((float(model.variances_["variance"].iloc[0]), loss))
            variances_module.MAX_EVALUATIONS = most
            cells = (f"{v:.3g}, log-loss {loss:.4f}" for v, loss in (np.mean(got, axis=0) for got in found.values()))
            print(f"| {variance} | {rows} | " + " | ".join(cells) + " |", flush=True)


def classes() -> None:
    """300 categories and several classes, three tables each, and scikit-learn's tables: with the factor or without."""
    print("| classes | true variance | rows a category | with the factor | by REML alone | by the truth |")
    print("| --- | --- | --- | --- | --- | --- |")
    most = variances_module.MAX_DOUBLINGS

    def fitted(X, y, doublings):
        variances_module.MAX_DOUBLINGS = doublings
        model = WideClassifier(**ADDITIVE).fit(X, y)
        variances_module.MAX_DOUBLINGS = most
        return model

    for k, variance, rows in product((3, 8), (0.0, 0.25, 1.0, 9.0, 64.0), (2, 20, 80)):
        found = []
        for seed in range(3):
            rng, n = np.random.RandomState(seed), 300 * rows
            codes = rng.randint(0, 300, 2 * n)
            score = np.sqrt(variance) * rng.randn(300, k)[codes]
            y = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
            X = pd.DataFrame({"g": [f"g{code}" for code in codes]})
            own = [log_loss(y[n:], softmax(score[n:], axis=1), labels=range(k))]
            for doublings in (most, 0):
                model = fitted(X[:n], y[:n], doublings)
                own += [model.variances_["variance"].iloc[0], log_loss(y[n:], model.predict_proba(X[n:]))]
            found.append(own)
        truth, *cells = np.mean(found, axis=0)
        pairs = zip(cells[::2], cells[1::2], strict=True)
        words = " | ".join(f"{own:.3g}, log-loss {loss:.4f}" for own, loss in pairs)
        print(f"| {k} | {variance:g} | {rows} | {words} | {truth:.4f} |", flush=True)
    print("\n| table | with the factor | by REML alone |\n| --- | --- | --- |")
    for name, load in (("iris", load_iris), ("wine", load_wine), ("digits", load_digits)):
        X, y = load(as_frame=True, return_X_y=True)
        cells = []
        for doublings in (most, 0):
            variances_module.MAX_DOUBLINGS = doublings
            folds = StratifiedKFold(5, shuffle=True, random_state=0)
            own = -cross_val_score(WideClassifier(), X, y, cv=folds, scoring="neg_log_loss")
            cells.append(f"{own.mean():.4f} +- {own.std(ddof=1) / np.sqrt(5):.4f}")
        variances_module.MAX_DOUBLINGS = most
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def zeros() -> None:
    """Mostly zeros: deviance of 5,000 new rows over that of a constant, with the least dispersion and without."""
    print("| target | rows | positive | with it: mean, worst | without: mean, worst |")
    print("| --- | --- | --- | --- | --- |")
    kept = dispersion_module.MIN_DISPERSION, dispersion_module.MIN_POSITIVE
    for kind, (n, share) in product(ZEROS, ((200, 0.1), (1_000, 0.05), (10_000, 0.03), (30_000, 0.03))):
        ratios: dict[tuple[float, int], list[float]] = {kept: [], (0.0, 0): []}
        for seed in range(4):
            X, y = mostly_zeros(kind, n, share, seed)
            power = 1.0 if kind.startswith("counts") else 1.5
            for constants, own in ratios.items():
                dispersion_module.MIN_DISPERSION, dispersion_module.MIN_POSITIVE = constants
                model = WideRegressor(loss="poisson" if power == 1.0 else "tweedie").fit(X[:n], y[:n])
                found = np.maximum(model.predict(X[n:]), 1e-12)
                constant = np.full(len(found), y[:n].mean())
                losses = [mean_tweedie_deviance(y[n:], one, power=power) for one in (found, constant)]
                own.append(losses[0] / losses[1])
        dispersion_module.MIN_DISPERSION, dispersion_module.MIN_POSITIVE = kept
        cells = " | ".join(f"{np.exp(np.mean(np.log(own))):.3g}, {max(own):.3g}" for own in ratios.values())
        print(f"| {kind} | {n:,} | {share:.0%} | {cells} |", flush=True)


ZEROS = ("counts of claims", "amounts of claims", "counts by categories", "amounts by categories", "amounts at random")


def mostly_zeros(kind: str, n: int, share: float, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with about this share of positive targets, in `n` rows and 5,000 more."""
    rng, size = np.random.default_rng(seed), n + 5000
    if kind.endswith("claims"):
        X = pd.DataFrame({"model": rng.integers(0, max(n // 10, 20), size), "region": rng.integers(0, 20, size)})
        X = X.astype(str).assign(age=rng.integers(18, 90, size), power=rng.lognormal(4.5, 0.4, size))
        score = 0.4 * rng.normal(size=max(n // 10, 20))[X["model"].astype(int)] + 0.4 * np.cos(X["age"] / 15)
        counts = rng.poisson(share * np.exp(score + 0.3 * rng.normal(size=20)[X["region"].astype(int)]))
        return X, counts if kind.startswith("counts") else np.array([rng.gamma(2, 500, one).sum() for one in counts])
    X = pd.DataFrame({"id": rng.integers(0, int(0.8 * n), size), "g": rng.integers(0, n // 8, size)}).astype(str)
    X["x"], X["z"], X["w"] = rng.normal(size=size), rng.lognormal(0, 2, size), rng.integers(0, 5, size).astype(str)
    score = 0.7 * rng.normal(size=n // 8)[X["g"].astype(int)] + 0.5 * rng.normal(size=5)[X["w"].astype(int)]
    score = score + 0.5 * np.sin(2 * X["x"].to_numpy())
    has = rng.random(size) < share if kind.endswith("random") else score > np.quantile(score, 1 - share)
    if kind.startswith("counts"):
        return X, rng.poisson(np.where(has, 4 * np.exp(score), 0.02))
    return X, np.where(has, np.exp(score + rng.normal(size=size)), 0.0)


def few() -> None:
    """D² of 3,000 new rows where columns have no effect, or two have one: mean of 8 tables, and of the differences."""
    print("| target | rows | columns | categories | effect | with it: mean, worst | without: mean, worst | gain |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    kept = dispersion_module.N_ERRORS
    layouts = ((120, 20, 5), (120, 5, 30), (120, 30, 2), (500, 20, 5), (500, 4, 100), (3000, 10, 30))
    for (law, loss), (n, n_columns, size), effect in product(FEW.items(), layouts, (0.0, 0.5)):
        power = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}[loss]
        scores: dict[float, list[float]] = {kept: [], 0.0: []}
        for seed in range(8):
            rng = np.random.default_rng(seed)
            X = pd.DataFrame(rng.integers(0, size, (n + 3000, n_columns)).astype(str)).add_prefix("c")
            score = sum(effect * rng.normal(size=size)[X[name].astype(int)] for name in ("c0", "c1"))
            y = drawn(law, np.exp(score), rng)
            for dispersion_module.N_ERRORS, own in scores.items():
                model = WideRegressor(loss=loss).fit(X[:n], y[:n])
                own.append(d2_tweedie_score(y[n:], model.predict(X[n:]), power=power))
        dispersion_module.N_ERRORS = kept
        cells = " | ".join(f"{np.mean(own):.3f}, {min(own):.3f}" for own in scores.values())
        gain = np.subtract(*scores.values())
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        print(
            f"| {law} | {n:,} | {n_columns} | {size} | {effect} | {cells} | {gain.mean():+.3f} ± {error:.3f} |",
            flush=True,
        )


FEW = {
    "counts": "poisson",
    "counts, overdispersed": "poisson",
    "counts of ten trials": "poisson",
    "rare counts": "poisson",
    "gamma, shape 1": "gamma",
    "gamma, shape .5": "gamma",
    "gamma, shape 5": "gamma",
    "lognormal": "gamma",
    "sums of a count of amounts": "tweedie",
    "amounts, 40 % zeros": "tweedie",
}


def drawn(law: str, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Targets of a law in `FEW`, of this mean up to a factor."""
    if law == "counts of ten trials":
        return rng.binomial(10, 0.7 * mean / (1.0 + mean)).astype(float)
    if "counts" in law:
        size = rng.gamma(1.0, 1.0, len(mean)) if "over" in law else 0.2 if "rare" in law else 1.0
        return rng.poisson(size * mean).astype(float)
    if law.startswith("gamma"):
        return rng.gamma(float(law.rsplit(maxsplit=1)[-1]), mean)
    if law == "lognormal":
        return mean * np.exp(rng.normal(size=len(mean)))
    if law.startswith("sums"):
        counts = rng.poisson(mean)
        return np.where(counts > 0, rng.gamma(2.0 * np.maximum(counts, 1), 1.0), 0.0)
    return np.where(rng.random(len(mean)) < 0.4, 0.0, rng.gamma(2.0, mean))


def events() -> None:
    """D² of 10,000 new rows where events are few, without an effect of any column and with some: means of 8 tables."""
    print("| target | rows | of which events | columns | categories | with an effect | with it | without |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    kept = variances_module.prior_of_variances
    layouts = ((30, 2, 0), (30, 2, 4), (30, 2, 20), (10, 5, 0), (10, 5, 3), (3, 30, 0), (3, 30, 2))
    sizes = ((300, 0.03), (300, 0.1), (1000, 0.03), (1000, 0.05))
    cases = [*product(("two classes", "counts", "amounts"), sizes), *(("normal", (n, 1.0)) for n in (60, 120))]
    for (target, (n, rate)), (n_columns, size, n_effects) in product(cases, layouts):
        scores: dict[bool, list[float]] = {True: [], False: []}
        for seed in range(8):
            X, y = of_few_events(target, n + 10_000, rate, n_columns, size, n_effects, np.random.default_rng(seed))
            if np.count_nonzero(y[:n]) < 3:
                continue
            for has_prior, own in scores.items():
                variances_module.prior_of_variances = kept if has_prior else lambda *_: 0.0
                if target == "two classes":
                    p = WideClassifier().fit(X[:n], y[:n]).predict_proba(X[n:])[:, 1]
                    known = [log_loss(y[n:], one) for one in (p, np.full(10_000, y[:n].mean()))]
                else:
                    power, loss = {"counts": (1.0, "poisson"), "amounts": (1.5, "tweedie")}.get(
                        target, (0.0, "squared_error")
                    )
                    model = WideRegressor(loss=loss).fit(X[:n], y[:n])
                    predicted = model.predict(X[n:]), np.full(10_000, y[:n].mean())
                    known = [mean_tweedie_deviance(y[n:], one, power=power) for one in predicted]
                own.append(1.0 - known[0] / known[1])
        variances_module.prior_of_variances = kept
        cells = " | ".join(f"{np.mean(own):.3f}, {min(own):.3f}" for own in scores.values())
        print(f"| {target} | {n:,} | {rate * n:.0f} | {n_columns} | {size} | {n_effects} | {cells} |", flush=True)


def of_few_events(
    target: str, n: int, rate: float, n_columns: int, size: int, n_effects: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Two classes, counts or sums of a count of amounts, mostly 0, or a normal target, of which each row tells
    something; the first columns have an effect.
    """
    X = pd.DataFrame(rng.integers(0, size, (n, n_columns)).astype(str)).add_prefix("c")
    score = np.zeros(n)
    for name in list(X)[:n_effects]:
        score += (np.array([-0.6, 0.6]) if size == 2 else rng.normal(size=size))[X[name].astype(int)]
    if target == "two classes":
        level = brentq(lambda by: expit(score + by).mean() - rate, -30.0, 30.0)
        return X, (rng.random(n) < expit(score + level)).astype(int)
    if target == "normal":
        return X, 0.5 * score + rng.normal(size=n)
    counts = rng.poisson(rate * np.exp(score) / np.exp(score).mean())
    if target == "counts":
        return X, counts.astype(float)
    return X, np.where(counts > 0, rng.gamma(2.0 * np.maximum(counts, 1), 0.5), 0.0)


def sums() -> None:
    """40 tables of 1,500 rows, whose amounts are sums; noise in proportion."""
    share = linking.HELD_OUT
    for linking.HELD_OUT in (0.2, 0.3, 0.4):
        wrong = 0
        for seed in range(40):
            rng = np.random.default_rng(seed)
            X = pd.DataFrame({name: rng.integers(0, 12, 1500).astype(str) for name in "ab"})
            a, b = rng.normal(0, 1, 12)[X["a"].astype(int)], rng.normal(0, 1, 12)[X["b"].astype(int)]
            y = np.maximum(20 + 3 * a + 3 * b, 0.5) * rng.gamma(20, 1 / 20, 1500)
            wrong += WideRegressor(loss="auto", **ADDITIVE).fit(X, y).model_.loss.name != "squared_error"
        print(f"{linking.HELD_OUT:.0%} held out: {wrong} of 40 sums taken for products", flush=True)
    linking.HELD_OUT = share


def small() -> None:
    """Sums and products on few rows, 60 tables each: how often a link is a log, and what that costs or gains."""
    for n in (40, 60, 150):
        for is_sum in (True, False):
            logs, errors = 0, []
            for seed in range(60):
                rng = np.random.default_rng(seed)
                X = pd.DataFrame({name: rng.integers(0, 4, 2 * n).astype(str) for name in "ab"})
                a, b = rng.normal(0, 1, 4)[X["a"].astype(int)], rng.normal(0, 1, 4)[X["b"].astype(int)]
                mean = np.maximum(20 + 3 * a + 3 * b, 0.5) if is_sum else np.exp(2 + 0.5 * a + 0.5 * b)
                y = mean * rng.gamma(20, 1 / 20, 2 * n)
                chosen, squared = (
                    WideRegressor(loss=loss, **ADDITIVE).fit(X[:n], y[:n]) for loss in ("auto", "squared_error")
                )
                logs += chosen.model_.loss.name != "squared_error"
                errors.append([np.sqrt(np.mean((one.predict(X[n:]) - mean[n:]) ** 2)) for one in (chosen, squared)])
            found, plain = np.array(errors).T
            error = (found - plain).std(ddof=1) / np.sqrt(len(found)) / plain.mean()
            print(
                f"{n} rows, {'sums' if is_sum else 'products'}: a log link for {logs / 60:.0%}, error "
                f"{found.mean() / plain.mean() - 1:+.1%} ± {error:.1%} beside squared loss",
                flush=True,
            )


def alike() -> None:
    """Two numbers, and what they tell together: RMSE on the training rows beside least squares."""
    rng = np.random.RandomState(0)
    u, e = rng.randn(2000), rng.randn(2000)
    y = 2 * e + rng.randn(2000)
    for distance in (0.3, 0.1, 0.03, 0.01):
        X = pd.DataFrame({"u": u, "u2": u + distance * e})
        wide = WideRegressor(loss="squared_error", **ADDITIVE)
        found, best = (model.fit(X, y).predict(X) for model in (wide, LinearRegression()))
        rmse = (np.sqrt(np.mean((y - one) ** 2)) for one in (found, best))
        print(
            f"correlation {np.corrcoef(X.T)[0, 1]:.5f}: RMSE " + ", least squares ".join(f"{one:.4f}" for one in rmse)
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    studies = {study.__name__: study for study in (variances, classes, zeros, few, events, sums, small, alike)}
    parser.add_argument("what", choices=studies)
    warnings.simplefilter("ignore")
    studies[parser.parse_args().what]()


if __name__ == "__main__":
    main()
