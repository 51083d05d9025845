"""Every public name of an option, an attribute or a module that the golden cases use, once.

The cases speak words of their own; this module says what these are called in the package. Where names change, this
module changes, and the stored values stay. Nothing is computed here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import tabsym
from tabsym import losses as _losses
from tabsym import optimizers as _optimizers

SCORERS = {"absolute": "neg_mean_absolute_error", "squared": "neg_root_mean_squared_error"}

# -- wide models, solved to the optimum -----------------------------------------------------


def solved(
    task: str,
    *,
    formula: str | None = None,
    columns: Any = None,
    numbers: str = "smooth",
    crosses: Any = "auto",
    loss: str | None = None,
    judged_by: str = "squared",
    penalty: Any = "estimated",
    count_effect: bool = True,
    unknown: str = "neutral",
    exposure: str | None = None,
    offset: str | None = None,
    draws: int = 0,
    start: Any = None,
    seed: int = 0,
) -> Any:
    """A wide model that is solved; by default as it is without options.

    Parameters
    ----------
    loss : str or None
        None: for amounts the best by rows held out, for counts "poisson", for classes theirs.
    penalty : "estimated" or float
    """
    options: dict[str, Any] = {
        "formula": formula,
        "alpha": "auto" if penalty == "estimated" else penalty,
        "handle_unknown": unknown,
        "offset_column": offset,
        "n_posterior_samples": draws,
        "count_effect": count_effect,
        "random_state": seed,
    }
    if formula is None:
        options |= {
            "categorical_features": "from_dtype" if columns is None else columns,
            "numeric": numbers,
            "interactions": "pairwise" if crosses == "pairs" else crosses,
        }
    if task == "classes":
        return tabsym.WideClassifier(**options)
    options["exposure_column"] = exposure
    options["loss"] = {None: "auto" if task == "amounts" else "poisson", "squared": "squared_error"}.get(loss, loss)
    return tabsym.WideRegressor(scoring=SCORERS[judged_by], **options)


# -- wide models, by gradient steps ---------------------------------------------------------


def online(
    task: str,
    *,
    formula: str | None = None,
    columns: Any = None,
    numbers: str = "linear",
    crosses: Any = None,
    loss: str | None = None,
    optimizer: str = "adagrad",
    optimizer_options: dict[str, Any] | None = None,
    gradient: str = "gse",
    rate: Any = "auto",
    schedule: str = "constant",
    batch: Any = 1,
    passes: Any = "auto",
    lasso: float = 0.0,
    ridge: float = 0.0,
    averaged: bool = False,
    stops_early: bool = False,
    standardized: bool = True,
    unknown: str = "neutral",
    exposure: str | None = None,
    offset: str | None = None,
    start: Any = None,
    more: dict[str, Any] | None = None,
    seed: int = 0,
) -> Any:
    """A wide model by one of the gradient optimizers; by default as it is without options.

    `more`: numbers of a loss, by the loss's name: {"huber": 1.5}, {"quantile": .8}, {"tweedie": 1.3}.
    """
    kinds = {
        "adagrad": _optimizers.Adagrad,
        "sgd": _optimizers.SGD,
        "rmsprop": _optimizers.RMSprop,
        "adam": _optimizers.Adam,
    }
    penalty = lasso + ridge
    options: dict[str, Any] = {
        "formula": formula,
        "categorical_features": "from_dtype" if columns is None else columns,
        "numeric": numbers,
        "interactions": "pairwise" if crosses == "pairs" else crosses,
        "optimizer": kinds[optimizer](**optimizer_options) if optimizer_options else optimizer,
        "gradient": gradient,
        "learning_rate": rate,
        "schedule": schedule,
        "batch_size": batch,
        "max_iter": passes,
        "alpha": penalty,
        "l1_ratio": lasso / penalty if penalty else 0.0,
        "average": averaged,
        "early_stopping": stops_early,
        "standardize": standardized,
        "handle_unknown": unknown,
        "offset_column": offset,
        "coef_init": start,
        "random_state": seed,
    }
    if task == "classes":
        return tabsym.WideSGDClassifier(loss=loss or "log_loss", **options)
    named: Any = {None: "poisson" if task == "counts" else "squared_error"}.get(loss, loss)
    named = {"squared": "squared_error", "absolute": "absolute_error"}.get(named, named)
    kinds_of_loss = {"huber": _losses.Huber, "quantile": _losses.Quantile, "tweedie": _losses.Tweedie}
    if more:
        ((name, value),) = more.items()
        named = kinds_of_loss[name](value)
    return tabsym.WideSGDRegressor(loss=named, exposure_column=exposure, **options)


# -- what a wide model tells ------------------------------------------------------------------


def predictions(model: Any, X: Any, **options: Any) -> dict[str, Any]:
    """What a fitted estimator says of rows: predictions, probabilities, scores, as far as it has them."""
    found = {}
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(X, **options)
    if hasattr(model, "decision_function"):
        found["scores"] = model.decision_function(X, **options)
    found["predictions"] = model.predict(X, **options)
    return found


def coefficients(model: Any) -> dict[str, pd.DataFrame]:
    """By term: frames indexed by category, as they are shown."""
    return dict(model.coefs_)


def coefficient_table(model: Any, *, factors: bool = False, base: Any = None) -> pd.DataFrame:
    return model.coef_table(scale="response" if factors else "link", base=base)


def difference(model: Any, term: str, a: Any, b: Any) -> Any:
    found = model.contrast(term, a, b)
    return found[["value", "sd"]]  # the others follow from these


def variances(model: Any) -> pd.DataFrame:
    return model.variances_


def fit_statistics(model: Any) -> np.ndarray:
    """Dispersion, deviance, Akaike's criterion."""
    return np.array([model.dispersion_, model.deviance_, model.aic_])


def chosen_crosses(model: Any) -> pd.DataFrame:
    return model.interactions_


def compared_losses(model: Any) -> pd.DataFrame:
    return model.losses_


def loss_of(model: Any) -> str:
    return str(model.loss_)


def training_curve(model: Any) -> np.ndarray:
    return np.asarray(model.loss_curve_)


def validation_curve(model: Any) -> np.ndarray:
    return np.asarray(model.validation_curve_)


def explanation(model: Any, X: Any) -> pd.DataFrame:
    return model.explain(X)


def summary(model: Any) -> str:
    return str(model.summary())


def changed(model: Any, values: dict[str, Any]) -> Any:
    """A copy that predicts by coefficients of the user's own."""
    return model.with_coefs(values)


def with_spread(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Predictions (of classifiers scores) with their posterior standard deviations."""
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict
    return ask(X, return_std=True)


# -- encoders -----------------------------------------------------------------------------------


def modl(
    *,
    output: str = "group",
    columns: Any = None,
    criterion: str = "khiops",
    most_parts: int | None = None,
    fewest_rows: Any = 1,
    monotonic: bool = False,
    unknown: str = "value",
    numbers: str = "discretize",
    kind: str = "auto",
    sparse: bool = False,
    proofs: bool = True,
) -> Any:
    return tabsym.MODLEncoder(
        output=output,
        cols=columns,
        criterion=criterion,
        max_parts=most_parts,
        min_part_count=fewest_rows,
        monotonic=monotonic,
        handle_unknown=unknown,
        numeric=numbers,
        target_type=kind,
        sparse_output=sparse,
        prove=proofs,
    )


def parts(encoder: Any) -> dict[str, Any]:
    """What MODL found, by column: Levels, costs and bounds; the parts; and all of it in words."""
    proofs = encoder.certificates_
    names = list(encoder.partitions_)
    found: dict[str, Any] = {
        "levels": pd.DataFrame(
            {
                "level": [encoder.levels_[name] for name in names],
                "cost": [encoder.costs_[name] for name in names],
                "null_cost": [encoder.null_costs_[name] for name in names],
                "lower_bound": [proofs[name].lower_bound for name in names],
                "is_optimal": [float(proofs[name].is_optimal) for name in names],
                "is_best_without_garbage": [float(proofs[name].is_best_without_garbage) for name in names],
            },
            index=names,
        ),
        "order": " > ".join(encoder.levels_),
        "description": encoder.describe(),
    }
    for name, one in encoder.partitions_.items():
        found[f"parts of {name}"] = encoder.parts(name)
        if hasattr(one, "bounds"):
            found[f"bounds of {name}"] = np.asarray(one.bounds)
        else:
            found[f"groups of {name}"] = "\n".join(", ".join(map(str, group)) for group in one.groups)
    return found


def tiws(
    *,
    method: str = "documents",
    columns: Any = None,
    context: str = "batch",
    by_names: bool = False,
    flagged: bool = False,
    numbers: Any = "modl",
    smooth: Any = "auto",
    kind: str = "auto",
) -> Any:
    return tabsym.TIWSEncoder(
        method=method,
        cols=columns,
        context=context,
        names=by_names,
        indicator=flagged,
        numeric=numbers,
        smooth=smooth,
        target_type=kind,
    )


def with_intervals(encoder: Any, X: Any, level: float) -> tuple[Any, pd.DataFrame]:
    return encoder.transform(X, return_interval=level)


def donors(model: Any, X: Any, column: str, n_donors: int = 3) -> pd.DataFrame:
    """Of a TIWS encoder, a jitter predictor or a jitter tree."""
    return model.donors(X, column, n_donors=n_donors)


def one_hot(**options: Any) -> Any:
    """By options of category_encoders and scikit-learn, which keep their names."""
    return tabsym.OneHotEncoder(**options)


def wide_encoder(*, model: Any = None, columns: Any = None, numbers: str = "covariate", kind: str = "auto") -> Any:
    return tabsym.WideEncoder(model=model, cols=columns, numeric=numbers, target_type=kind)


def cross_fit(encoder: Any, folds: Any = 5) -> Any:
    return tabsym.CrossFit(encoder, cv=folds)


def date_parts() -> Any:
    return tabsym.DateParts()


# -- stacks ---------------------------------------------------------------------------------------


def stack(
    task: str,
    *,
    wide: Any = None,
    booster: Any = None,
    mode: str = "auto",
    codes: str = "ordinal",
    folds: Any = 5,
    stops_early: Any = "folds",
    seed: int = 0,
) -> Any:
    kind = tabsym.WideBoostClassifier if task == "classes" else tabsym.WideBoostRegressor
    return kind(
        wide=wide,
        booster=booster,
        mode=mode,
        codes=codes,
        cv=folds,
        early_stopping=stops_early,
        random_state=seed,
        n_jobs=1,
    )


def stacked(model: Any) -> dict[str, Any]:
    """What a stack decided: shares, rounds and what was compared."""
    found: dict[str, Any] = {
        "shares": pd.Series(model.shares_, dtype=float),
        "rounds": pd.Series(model.n_rounds_, dtype=float),
    }
    if model.evidence_ is not None:
        found["evidence"] = model.evidence_.iloc[::4]
    return found


# -- unknown categories ---------------------------------------------------------------------------


def jitter(model: Any, encoder: Any, *, average: str = "probability", most_donors: int | None = 64) -> Any:
    return tabsym.JitterPredictor(model, encoder, average=average, max_donors=most_donors)


def calibrated(model: Any, X: Any, y: Any, n_rows: int) -> Any:
    return model.calibrate(X, y, n_rows=n_rows)


def tree(
    task: str,
    *,
    criterion: str | None = None,
    depth: int | None = None,
    fewest_in_leaf: int = 1,
    smooth: Any = "auto",
    unknown: str = "similar",
    encoder: Any = None,
    context: str | None = None,
) -> Any:
    kind = tabsym.JitterTreeClassifier if task == "classes" else tabsym.JitterTreeRegressor
    options: dict[str, Any] = {} if criterion is None else {"criterion": criterion}
    return kind(
        max_depth=depth,
        min_samples_leaf=fewest_in_leaf,
        smooth=smooth,
        handle_unknown=unknown,
        encoder=encoder,
        context=context,
        random_state=0,
        **options,
    )


def augmented(estimator: Any, encoder: Any = None) -> Any:
    return tabsym.AugmentedModel(estimator, encoder=encoder)


def without_unknown(model: Any, X: Any, y: Any, column: str) -> pd.DataFrame:
    """Losses with whole categories held out."""
    return model.evaluate_unknown(X, y, column, folds=3)


# -- the comparison -------------------------------------------------------------------------------


CONTENDERS = {"baseline": "constant", "solved": "wide", "online": "wide-additive"}


def compared(table: pd.DataFrame, target: str, contenders: list[str], folder: Any, **options: Any) -> Any:
    """A comparison of contenders, by keys of `CONTENDERS`; it prints its report as it goes."""
    return tabsym.compare(
        table, target, contenders=[CONTENDERS[name] for name in contenders], out=folder, threads=1, **options
    )


def ranking(result: Any) -> pd.DataFrame:
    """By contender, in the order of the ranking: what does not depend on the machine."""
    return result.ranking.set_index("name")[["score", "sd", "difference", "p", "verdict"]]
