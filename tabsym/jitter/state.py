"""Options checked, and what of a predictor is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders import TIWSEncoder
from tabsym.jitter.batch import Treatment
from tabsym.jitter.mixture import kept_donors
from tabsym.jitter.strangers import road_of
from tabsym.jitter.weighing import donor_weights
from tabsym.table import match_features, read_table

AVERAGES = ("probability", "raw")


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator can answer; CatBoost has its own way to say so."""
    own = getattr(estimator, "is_fitted", None)
    if callable(own):
        return bool(own())
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def check_options(predictor: Any) -> None:
    """A `ValueError` or `TypeError` where an option is not known."""
    if not isinstance(predictor.encoder, TIWSEncoder):
        raise TypeError(f"encoder takes a TIWSEncoder, not {type(predictor.encoder).__name__}.")
    if not (hasattr(predictor.model, "predict") and hasattr(predictor.model, "fit")):
        raise TypeError(
            f"model takes an estimator with fit and predict, such as LGBMRegressor or XGBClassifier, not "
            f"{type(predictor.model).__name__}."
        )
    if predictor.average not in AVERAGES:
        raise ValueError(f"average={predictor.average!r} is not known; use {', '.join(map(repr, AVERAGES))}.")
    most = predictor.max_donors
    if most is not None and (isinstance(most, bool) or not isinstance(most, (int, np.integer)) or most < 1):
        raise ValueError(f"max_donors={most!r} is not possible; use a count of 1 or more, or None.")


def parts(predictor: Any) -> tuple[Any, TIWSEncoder]:
    """The fitted model and encoder, or a `NotFittedError`."""
    found = []
    for name in ("model", "encoder"):
        part = getattr(predictor, f"{name}_", getattr(predictor, name))
        if not is_fitted(part):
            raise NotFittedError(f"The {name} of this {type(predictor).__name__} is not fitted; fit it, or call fit.")
        found.append(part)
    return found[0], found[1]


def treatments(predictor: Any) -> dict[str, Treatment]:
    """What becomes of unknown values, by column, or a `ValueError` that names what is not encoded."""
    encoder = parts(predictor)[1]
    wanted = predictor.columns
    chosen = [wanted] if isinstance(wanted, str) else wanted
    names = list(encoder.columns_ if chosen is None else chosen)
    for name in names:
        if name not in encoder.columns_:
            have = ", ".join(map(repr, encoder.columns_))
            raise ValueError(f"columns names {name!r}, which the encoder does not encode; it encodes {have or 'none'}.")
    found = getattr(predictor, "calibration_", {})
    return {name: _treatment(found.get(name)) for name in names}


def guarded(predictor: Any) -> dict[str, Treatment]:
    """Of all encoded columns: unknown values of the others become missing, where XGBoost may get them."""
    treated = treatments(predictor)
    model, encoder = parts(predictor)
    if road_of(model) == "model":
        return treated
    return {name: treated.get(name, Treatment("missing")) for name in encoder.columns_}


def _treatment(calibration: Any) -> Treatment:
    if calibration is None:
        return Treatment()
    if calibration.used == "default":
        return Treatment(calibration.road)
    return Treatment("jitter", calibration.rule)


def described(predictor: Any, X: Any, column: str, n_donors: int) -> pd.DataFrame:
    """Donors of a column's unknown categories with their weights."""
    encoder, treated = parts(predictor)[1], treatments(predictor)
    if column not in treated:
        raise ValueError(
            f"Column {column!r} is not among the columns of the predictor; there are {', '.join(map(repr, treated))}."
        )
    labels = ["category", "donor", "weight", "rows"]
    if treated[column].used != "jitter":
        return pd.DataFrame([], columns=labels)
    table = match_features(encoder, read_table(X, who=type(predictor).__name__, allow_empty=True))
    fitted, found = encoder.columns_[column].fitted, encoder.unseen_rows(table, column)
    records = []
    weights = donor_weights(fitted, found.unseen, treated[column].rule)
    for symbol, (places, shares) in zip(found.unseen.symbols, kept_donors(weights, predictor.max_donors), strict=True):
        for place, share in zip(places[:n_donors], shares[:n_donors], strict=True):
            donor = fitted.donors[place]
            records.append([symbol, fitted.symbols[donor], share, fitted.sums.rows[donor]])
    return pd.DataFrame(records, columns=labels)


def summary(predictor: Any) -> pd.DataFrame:
    """What is used for each column, and what calibration found."""
    records = []
    encoder = parts(predictor)[1]
    found = getattr(predictor, "calibration_", {})
    for name in treatments(predictor):
        one = found.get(name)
        rule = encoder.columns_[name].fitted.rule if one is None or one.rule is None else one.rule
        losses = [np.nan] * 4 if one is None else [one.default, one.uncalibrated, one.calibrated, one.error]
        sizes = [0, 0] if one is None else [one.rows, one.categories]
        records.append([name, "jitter" if one is None else one.used, rule.rate, rule.name_rate, *losses, *sizes])
    labels = ["column", "used", "rate", "name_rate", "default", "uncalibrated", "calibrated", "error"]
    return pd.DataFrame(records, columns=[*labels, "rows", "categories"])
