"""What draws a case of each estimator: options that look valid, and the promises that follow from them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

import tabsym
from fuzzing.case import Case
from fuzzing.tables import CLASSES, TASKS, draw_table, draw_target, draw_weight, pick
from tabsym.interactions import AutoInteractions
from tabsym.losses import Huber, Quantile, Tweedie

FORMULAS = ["w[a] * z + v[b] + c[1]", "dot(u[a], v[b], rank=2) + c[1]", "w[a, b] + s[1] * z + c[1]"]


def solved(rng: Any, classes: bool) -> Case:
    """`WideClassifier` or `WideRegressor`."""
    task = str(rng.choice(CLASSES if classes else TASKS[2:]))
    X, signal = draw_table(rng)
    y = draw_target(rng, task, signal)
    losses = {"counts": ["poisson", Tweedie(1.3), "auto"], "positive": ["gamma", "poisson", "tweedie", "auto", "huber"],
              "amounts": ["squared_error", Huber(2.0), "auto"]}  # fmt: skip
    options: dict[str, Any] = pick(
        rng, alpha=[0.01, 1e-4, {"a": 0.01}], count_effect=[False], n_posterior_samples=[4], tol=[1e-2],
        handle_unknown=["similar", "error"], numeric=["linear", "linear", "modl", "quantile", {"z": "linear"}],
        interactions=[None, None, "pairwise", [("a", "b")], AutoInteractions(max_order=2), _within(X)],
    )  # fmt: skip
    if classes:
        options |= pick(rng, class_weight=["balanced"])
    else:
        options["loss"] = losses[task][rng.integers(len(losses[task]))]
        options |= pick(rng, scoring=["neg_mean_absolute_error"]) if options["loss"] == "auto" else {}
    if rng.random() < 0.08:
        options = {name: options[name] for name in ("loss", "class_weight") if name in options}
        options["formula"] = str(rng.choice(FORMULAS))
    offset = _offset(rng, X, y, task, options)
    auto = options.get("interactions", "auto") in ("auto", AutoInteractions(max_order=2))
    by_evidence = not isinstance(options.get("alpha"), float) and not auto and options.get("loss") != "auto"
    beats = "formula" not in options and not {"exposure_column", "offset_column", "class_weight"} & set(options)
    alike = by_evidence and options.get("interactions", "") is None  # else rows held out by lot choose variances
    made = (tabsym.WideClassifier if classes else tabsym.WideRegressor)(**options)
    unknown = options.get("handle_unknown")
    return Case(made, X, y, task, draw_weight(rng, len(X)), offset, columns=1e-3,
                rows=0.02 if alike else None, relative=1e-5, alone=unknown != "similar",
                settled=not (isinstance(options.get("alpha"), float) and options.get("interactions") == "pairwise"),
                beats=beats and offset is None, refuses=unknown == "error" or "formula" in options)  # fmt: skip


def _within(X: Any) -> list[tuple[Any, ...]]:
    """An interaction within one category."""
    first = X["a"].iloc[0]
    return [("a", "b"), ({"a": None if pd.isna(first) else first}, "b")]


def online(rng: Any, classes: bool) -> Case:
    """`WideSGDClassifier` or `WideSGDRegressor`."""
    task = str(rng.choice(CLASSES if classes else TASKS[2:]))
    X, signal = draw_table(rng)
    y = draw_target(rng, task, signal)
    losses: dict[str, list[Any]] = {
        "binary": ["log_loss", "hinge"], "several": ["log_loss"], "counts": ["poisson", "tweedie", "squared_error"],
        "positive": ["gamma", "poisson", Tweedie(1.3), "huber"],
        "amounts": ["squared_error", "huber", "absolute_error", Quantile(0.8)],
    }  # fmt: skip
    options: dict[str, Any] = {"loss": losses[task][rng.integers(len(losses[task]))], "random_state": 0}
    options["optimizer"] = str(rng.choice(["adagrad", "adagrad", "adam", "sgd", "rmsprop"]))
    options |= pick(rng, numeric=["modl", "quantile"], handle_unknown=["similar", "error"], standardize=[False],
                    batch_size=[32, "full"], gradient=["mean"], average=[True], early_stopping=[True],
                    alpha=[1e-3, 0.1], schedule=["invscaling", "adaptive"], max_iter=[5], shuffle=[False],
                    learning_rate=[0.05], interactions=["pairwise", "auto", [("a", "b")], _within(X)])  # fmt: skip
    options |= pick(rng, l1_ratio=[0.5, 1.0]) if "alpha" in options else {}
    options |= pick(rng, class_weight=["balanced"]) if classes else {}
    if rng.random() < 0.08:
        options = {name: options[name] for name in ("loss", "optimizer", "random_state")}
        options["formula"] = str(rng.choice(FORMULAS))
    offset = _offset(rng, X, y, task, options)
    beats = not {"formula", "max_iter", "learning_rate", "schedule", "early_stopping", "alpha", "class_weight",
                 "offset_column", "exposure_column"} & set(options)  # fmt: skip
    made = (tabsym.WideSGDClassifier if classes else tabsym.WideSGDRegressor)(**options)
    unknown = options.get("handle_unknown")
    return Case(made, X, y, task, draw_weight(rng, len(X)), offset, columns=0.3, relative=1e-5,
                alone=unknown != "similar", beats=beats and offset is None,
                refuses=unknown == "error" or "formula" in options)  # fmt: skip


def _offset(rng: Any, X: Any, y: Any, task: str, options: dict[str, Any]) -> Any:
    """Now and then an offset of the rows, or a column of it that `options` names."""
    chance, n = rng.random(), len(X)
    if chance < 0.1:
        return rng.normal(0, 0.3, (n, len(np.unique(y))) if task == "several" else n)
    if chance < 0.2:
        logs = options.get("loss") in ("poisson", "gamma", "tweedie", "auto")
        options["exposure_column" if logs else "offset_column"], X["e"] = "e", rng.uniform(0.5, 2, n)
    return None


def coder(
    rng: Any, make: Callable[[Any, str], Any], *, whole: bool = False, dates: bool = True, **promises: Any
) -> Case:
    """A case of an encoder: options that all of them share, and promises that follow from them."""
    task = str(rng.choice(TASKS))
    X, signal = draw_table(rng, dates=dates)
    estimator = make(rng, task)
    if not isinstance(estimator, tabsym.CrossFit):
        if getattr(estimator, "sparse_output", False):
            X = X.drop(columns=[name for name in ("category", "ordered", "id", "again", "constant") if name in X])
        words = ["return_nan", "error"]
        unknown = [*words, "missing", "similar"] if isinstance(estimator, tabsym.MODLEncoder) else words
        options = pick(rng, cols=["all", ["a", "b"]], drop_invariant=[True], return_df=[False])
        estimator.set_params(**options, **pick(rng, handle_missing=words, handle_unknown=unknown))
    inner = getattr(estimator, "encoder", estimator)
    refuses = "error" in [getattr(inner, name, "") for name in ("handle_unknown", "handle_missing")]
    weight = None if isinstance(inner, TargetEncoder) else draw_weight(rng, len(X), whole=whole)
    return Case(estimator, X, draw_target(rng, task, signal), task, weight, gaps=True, refuses=refuses, **promises)


def one_hot(rng: Any) -> Case:
    def make(rng: Any, task: str) -> Any:
        options = pick(rng, use_cat_names=[True], sparse_output=[True], drop=["first", "if_binary"],
                       min_frequency=[5, 0.1], max_categories=[3], dtype=["float32", "int64"])  # fmt: skip
        return tabsym.OneHotEncoder(**options)

    return coder(rng, make, whole=True, columns=0.0, repeats=True)


def _modl(rng: Any, task: str) -> Any:
    options = pick(rng, criterion=["page"], n_candidates=[1, 5], max_parts=[3], min_part_count=[5], monotonic=[True],
                   numeric=["passthrough"], handle_unknown=["missing", "similar", "error"])  # fmt: skip
    output = str(rng.choice(["group", "onehot", "probability", "mean" if task != "several" else "logodds"]))
    options |= pick(rng, sparse_output=[True]) if output == "onehot" else {}
    options["target_type"] = "classes" if task in CLASSES else "continuous"
    prove = task in CLASSES and bool(rng.random() < 0.3)  # of regressions seconds to minutes
    return tabsym.MODLEncoder(output=output, prove=prove, **options)


def _tiws(rng: Any, task: str) -> Any:
    options = pick(rng, method=["poster"], context=["row", "observed"], names=[True], indicator=[True],
                   numeric=["quantile", "passthrough"], smooth=[0, 5.0], idf_rows=["known+self"])  # fmt: skip
    return tabsym.TIWSEncoder(**options)


def modl(rng: Any) -> Case:
    case = coder(rng, _modl, whole=True, columns=1e-9, rows=1e-9, repeats=True)
    case.alone = case.estimator.handle_unknown != "similar"
    return case


def tiws(rng: Any) -> Case:
    case = coder(rng, _tiws, whole=True, columns=1e-6, rows=1e-6, repeats=True)
    case.alone = case.estimator.context != "batch"
    return case


def wide_encoder(rng: Any) -> Case:
    def make(rng: Any, task: str) -> Any:
        kind = tabsym.WideSGDClassifier if task in CLASSES else tabsym.WideSGDRegressor
        options: dict[str, Any] = {"target_type": "classes" if task in CLASSES else "continuous"}
        if rng.random() < 0.4:
            options = {"model": kind(random_state=0)}
        return tabsym.WideEncoder(**options, **pick(rng, numeric=["passthrough"], cv=[3]))

    case = coder(rng, make, relative=1e-5)
    case.columns = 0.02 if case.estimator.model is None else 0.3
    case.size = 1.0 if case.task in CLASSES else float(np.std(case.y))  # a term may have almost no effect
    return case


def cross_fit(rng: Any) -> Case:
    def make(rng: Any, task: str) -> Any:
        kind = int(rng.integers(4))
        if kind == 0:
            return tabsym.CrossFit(TargetEncoder(random_state=0), cv=3)
        inner = (_modl, _tiws, lambda rng, task: tabsym.WideEncoder())[kind - 1](rng, task)
        return tabsym.CrossFit(inner, cv=3)

    case = coder(rng, make, whole=True)
    if isinstance(case.estimator.encoder, TargetEncoder):
        case.X = case.X[["a", "b", *(["category"] if "category" in case.X else [])]]
    inner = case.estimator.encoder
    case.alone = getattr(inner, "context", "row") != "batch" and getattr(inner, "handle_unknown", "") != "similar"
    return case


def _booster(rng: Any, task: str, *, lightgbm: bool = True) -> Any:
    if lightgbm and rng.random() < 0.5:
        return (LGBMClassifier if task in CLASSES else LGBMRegressor)(
            n_estimators=10, num_leaves=7, verbose=-1, n_jobs=1
        )
    return (HistGradientBoostingClassifier if task in CLASSES else HistGradientBoostingRegressor)(
        max_iter=10, max_leaf_nodes=7, random_state=0, early_stopping=False
    )


def stack(rng: Any, classes: bool) -> Case:
    task = str(rng.choice(CLASSES if classes else TASKS[2:]))
    X, signal = draw_table(rng)
    options = pick(rng, mode=["margin", "feature"], codes=["native", "group"], early_stopping=[0.2, False],
                   booster_cols=[["a", "z"]])  # fmt: skip
    chance = rng.random()
    if chance < 0.5:
        named = {} if classes else {"loss": str(rng.choice(["squared_error", "auto"]))}
        kind = tabsym.WideClassifier if classes else tabsym.WideRegressor
        options["wide"] = kind(**named, **pick(rng, interactions=[None], alpha=[0.01]))
    elif chance < 0.8:
        options["wide"] = (tabsym.WideSGDClassifier if classes else tabsym.WideSGDRegressor)(max_iter=5)
    options["booster"] = _booster(rng, task)
    kind = tabsym.WideBoostClassifier if classes else tabsym.WideBoostRegressor
    return Case(kind(**options, cv=3, random_state=0, n_jobs=1), X, draw_target(rng, task, signal), task,
                draw_weight(rng, len(X)), relative=1e-4, beats=True)  # fmt: skip


def augmented(rng: Any) -> Case:
    task = str(rng.choice(TASKS))
    X, signal = draw_table(rng, dates=bool(rng.random() < 0.1))
    encoder = _tiws(rng, task).set_params(target_type="classes" if task in CLASSES else "continuous")
    encoder = encoder if rng.random() < 0.7 else None
    model = tabsym.AugmentedModel(_booster(rng, task, lightgbm=False), encoder=encoder)
    return Case(model, X, draw_target(rng, task, signal), task, draw_weight(rng, len(X), whole=True),
                alone=encoder is not None and encoder.context != "batch")  # fmt: skip


def jitter(rng: Any) -> Case:
    task = str(rng.choice(TASKS))
    X, signal = draw_table(rng, dates=False)
    encoder = _tiws(rng, task).set_params(target_type="classes" if task in CLASSES else "continuous")
    options = pick(
        rng, average=["raw"] if task in CLASSES else ["probability"], max_donors=[5, None], columns=["a", ["b"]]
    )
    model = make_pipeline(tabsym.OneHotEncoder(), _booster(rng, task, lightgbm=False))
    return Case(tabsym.JitterPredictor(model, encoder, **options), X, draw_target(rng, task, signal), task,
                alone=encoder.context != "batch")  # fmt: skip


def tree(rng: Any, classes: bool) -> Case:
    task = str(rng.choice(CLASSES if classes else TASKS[2:]))
    X, signal = draw_table(rng)
    options = pick(rng, max_depth=[3, 1], min_samples_leaf=[5, 0.1], max_features=["sqrt", 0.5], smooth=[0, 3.0],
                   handle_unknown=["similar_per_node", "training_counts", "node_value"], context=["row", "observed"],
                   cols=["all"],
                   min_weight_fraction_leaf=[0.05], min_impurity_decrease=[0.01], min_samples_split=[10],
                   criterion=["gini", "entropy", "log_loss"] if classes else ["squared_error"])  # fmt: skip
    alone = options.get("context", "batch") != "batch" or options.get("handle_unknown") in (
        "training_counts",
        "node_value",
    )
    return Case((tabsym.JitterTreeClassifier if classes else tabsym.JitterTreeRegressor)(random_state=0, **options), X,
                draw_target(rng, task, signal), task, draw_weight(rng, len(X)), alone=alone, beats=True)  # fmt: skip


def naive_bayes(rng: Any) -> Case:
    task = str(rng.choice(CLASSES))
    X, signal = draw_table(rng)
    encoder = _modl(rng, task).set_params(**pick(rng, handle_missing=["return_nan", "error"]))
    options = pick(rng, encoder=[encoder], prior_weight=[0, 1.0])
    similar = "encoder" in options and encoder.handle_unknown == "similar"
    refuses = "encoder" in options and "error" in (encoder.handle_unknown, encoder.handle_missing)
    return Case(tabsym.SelectiveNaiveBayesClassifier(**options), X, draw_target(rng, task, signal), task,
                draw_weight(rng, len(X), whole=True), columns=1e-5, rows=1e-5, alone=not similar,
                refuses=refuses)  # fmt: skip


KINDS: dict[str, tuple[int, Callable[[Any], Case]]] = {
    "WideClassifier": (3, lambda rng: solved(rng, True)),
    "WideRegressor": (4, lambda rng: solved(rng, False)),
    "WideSGDClassifier": (2, lambda rng: online(rng, True)),
    "WideSGDRegressor": (2, lambda rng: online(rng, False)),
    "OneHotEncoder": (2, one_hot),
    "MODLEncoder": (2, modl),
    "TIWSEncoder": (2, tiws),
    "WideEncoder": (2, wide_encoder),
    "CrossFit": (2, cross_fit),
    "WideBoostClassifier": (1, lambda rng: stack(rng, True)),
    "WideBoostRegressor": (1, lambda rng: stack(rng, False)),
    "AugmentedModel": (1, augmented),
    "JitterPredictor": (1, jitter),
    "JitterTreeClassifier": (1, lambda rng: tree(rng, True)),
    "JitterTreeRegressor": (1, lambda rng: tree(rng, False)),
    "SelectiveNaiveBayesClassifier": (1, naive_bayes),
}
"""Name -> its share of the seeds, and what draws a case."""
