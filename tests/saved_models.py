"""Fitted estimators of every kind and option that adds state, for tests of saving: name -> (fit, table to predict)."""

import numpy as np
import pandas as pd

from tests.options import ADDITIVE, GLM

N = 240
RNG = np.random.default_rng(0)
CITY = RNG.choice(["Ulm", "Bonn", "Köln", "Trier", "Jena", "Hof"], N)
X = pd.DataFrame({"city": CITY, "colour": RNG.choice(["red", "blue", "green"], N), "size": RNG.normal(size=N)})
Y = pd.Series(CITY).map({"Ulm": 1.0, "Bonn": 2.0, "Köln": -1.0}).fillna(0).to_numpy() + RNG.normal(size=N) * 0.1
B = np.where(np.median(Y) < Y, "yes", "no")
M = np.array(["a", "b", "c"])[np.digitize(Y, [0.0, 1.0])]


def tables():
    """The same rows in other containers and types."""
    import polars as pl

    days = pd.date_range("2024-01-01", periods=N)
    flags = pd.array([True, False, None] * (N // 3), dtype="boolean")
    text = X[["city", "colour"]]
    return {
        "text": X,
        "categorical": X.astype({"city": "category", "colour": "category"}),
        "polars": pl.from_pandas(X),
        "integers": pd.DataFrame({"city": pd.factorize(CITY)[0], "n": np.arange(N) % 7}).astype({"city": "category"}),
        "dates": text.assign(day=days),
        "flags": text.assign(flag=flags),
        "gaps": text.assign(size=X["size"].mask(np.arange(N) % 9 == 0)),
        "missing": text.mask(pd.DataFrame({c: np.arange(N) % 9 == 0 for c in text}), None),
    }


def _encoders():
    from tabsym import CrossFit, MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder

    return {
        "onehot": OneHotEncoder(),
        "modl": MODLEncoder(),
        "modl-donors": MODLEncoder(handle_unknown="similar"),
        "tiws": TIWSEncoder(),
        "wide-encoder": WideEncoder(),
        "crossfit-modl": CrossFit(MODLEncoder()),
        "crossfit-tiws": CrossFit(TIWSEncoder()),
        "crossfit-wide": CrossFit(WideEncoder()),
    }


def _models():
    from catboost import CatBoostRegressor
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from xgboost import XGBClassifier, XGBRegressor

    from tabsym import (
        AugmentedModel,
        JitterPredictor,
        JitterTreeClassifier,
        JitterTreeRegressor,
        OneHotEncoder,
        SelectiveNaiveBayesClassifier,
        TIWSEncoder,
        WideBoostClassifier,
        WideBoostRegressor,
        WideClassifier,
        WideRegressor,
        WideSGDClassifier,
        WideSGDRegressor,
    )
    from tabsym.interactions import AutoInteractions
    from tabsym.losses import Huber, Quantile, Tweedie
    from tabsym.optimizers import SGD, Adagrad, Adam, RMSprop

    trees = {"n_estimators": 5, "random_state": 0}
    small = {"max_iter": 5, "random_state": 0}
    return {
        "online": (WideSGDClassifier(random_state=0), B),
        "online-3": (WideSGDClassifier(random_state=0), M),
        "online-r": (WideSGDRegressor(random_state=0), Y),
        "online-poisson": (WideSGDRegressor(loss="poisson", random_state=0), np.abs(Y).round()),
        "online-quantile": (WideSGDRegressor(loss=Quantile(0.9), random_state=0), Y),
        "online-pairs": (WideSGDRegressor(interactions="auto", random_state=0), Y),
        "adam": (WideSGDRegressor(optimizer="adam", random_state=0), Y),
        "formula": (WideSGDRegressor("w[city] + v[colour] * u[city]", random_state=0), Y),
        "formula-functions": (
            WideRegressor("w[city] * exp(0.1 * size) + s[1] * -(size - 2) ** 2 + c[1]", loss="squared_error"),
            Y,
        ),
        "similar": (WideSGDRegressor(handle_unknown="similar", random_state=0), Y),
        "similar-b": (WideSGDClassifier(handle_unknown="similar", random_state=0), B),
        "solved": (WideClassifier(**GLM), B),
        "solved-3": (WideClassifier(**GLM), M),
        "solved-huber": (WideRegressor(loss=Huber(1.0), **GLM), Y),
        "solved-tweedie": (WideRegressor(loss=Tweedie(1.7), alpha={"city": 0.1}), np.abs(Y).round()),
        "solved-formula": (WideRegressor("w[city] + v[colour] * u[city]", loss="squared_error"), Y),
        "solved-draws": (WideRegressor(loss="squared_error", n_posterior_samples=4, **ADDITIVE), Y),
        "evidence": (WideRegressor(loss="squared_error", **ADDITIVE | {"numeric": "smooth"}), Y),
        "evidence-pairs": (WideClassifier(**ADDITIVE | {"interactions": "auto"}), B),
        "chosen": (WideRegressor(interactions=AutoInteractions(max_order=2), numeric="linear"), Y),
        **{
            type(rule).__name__: (WideSGDRegressor(optimizer=rule, max_iter=3, random_state=0), Y)
            for rule in (SGD(momentum=0.5), Adagrad(), RMSprop(), Adam(betas=(0.8, 0.99)))
        },
        "default": (WideClassifier(), B),
        "default-3": (WideClassifier(class_weight="balanced"), M),
        "default-r": (WideRegressor(scoring="neg_mean_absolute_error"), np.exp(Y)),
        "boost-hist": (
            WideBoostClassifier(
                booster=HistGradientBoostingClassifier(**small), mode="feature", early_stopping=False, random_state=0
            ),
            B,
        ),
        "boost-hist-3": (
            WideBoostClassifier(
                booster=HistGradientBoostingClassifier(**small), mode="feature", early_stopping=False, random_state=0
            ),
            M,
        ),
        "boost-hist-r": (
            WideBoostRegressor(
                booster=HistGradientBoostingRegressor(**small), mode="feature", early_stopping=False, random_state=0
            ),
            Y,
        ),
        "jitter-tree": (JitterTreeClassifier(random_state=0), B),
        "jitter-tree-3": (JitterTreeClassifier(random_state=0), M),
        "jitter-tree-r": (JitterTreeRegressor(random_state=0), Y),
        "naive-bayes": (SelectiveNaiveBayesClassifier(), M),
        "boost-lightgbm": (WideBoostClassifier(mode="margin", early_stopping=False, random_state=0), B),
        "boost-xgboost-b": (
            WideBoostClassifier(booster=XGBClassifier(**trees), mode="margin", early_stopping=False, random_state=0),
            B,
        ),
        "boost-xgboost": (
            WideBoostRegressor(booster=XGBRegressor(**trees), mode="margin", early_stopping=False, random_state=0),
            Y,
        ),
        "boost-catboost": (
            WideBoostRegressor(
                booster=CatBoostRegressor(**trees, verbose=0, allow_writing_files=False),
                mode="margin",
                early_stopping=False,
                random_state=0,
            ),
            Y,
        ),
        "boost-share": (WideBoostClassifier(booster=LGBMClassifier(**trees, verbose=-1), early_stopping=0.2), B),
        "jitter": (
            JitterPredictor(make_pipeline(OneHotEncoder(), HistGradientBoostingRegressor(**small)), TIWSEncoder()),
            Y,
        ),
        "pipeline": (make_pipeline(OneHotEncoder(), LogisticRegression()), B),
        "augmented-lightgbm": (AugmentedModel(LGBMClassifier(**trees, verbose=-1)), B),
        "augmented": (AugmentedModel(HistGradientBoostingRegressor(**small)), Y),
    }


def cases():
    """Names of all: encoders over every table, models over text, and those that read columns themselves over others.

    Models of one way of reading columns share its tables; parts of folds hold what an encoder of all rows does.
    """
    several = ("online", "default", "jitter-tree", "augmented")
    for name in _encoders():
        yield from (f"{name}:{table}" for table in (["text", "missing"] if "crossfit" in name else tables()))
    for name in _models():
        few = ["text", "gaps"] if name in ("solved", "similar") else ["text"]
        yield from (f"{name}:{table}" for table in (tables() if name in several else few))


def fitted(case):
    """The fitted estimator of a case, and its table."""
    from sklearn.base import clone

    name, table = case.split(":")
    estimator, y = {**{key: (one, Y) for key, one in _encoders().items()}, **_models()}[name]
    X = tables()[table]
    return clone(estimator).fit(X, y), X


def answers(model, X):
    """What a fitted estimator says of rows, as arrays."""
    for method in ("predict_proba", "predict", "transform"):
        if hasattr(model, method):
            found = getattr(model, method)(X)
            yield np.asarray(found.toarray() if hasattr(found, "toarray") else found)
