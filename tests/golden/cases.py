"""The cases: what is computed of each table. Names of the package stand in `names` alone.

A case is a function that gives a dict of entry -> array, frame or text. It belongs to a table, whose file holds what
it gave.
"""

from __future__ import annotations

import contextlib
import html
import io
import re
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeRegressor

from tests.golden import names
from tests.golden.names import online, solved
from tests.golden.store import TOLERANCE, plain
from tests.golden.tables import TABLES, Table

Found = dict[str, Any]

ITERATED = 1e-6
"""Tolerance of cases whose solver stops far from where rounding would stop it: variances that little holds, products.

Emulating older processors (no AVX, no FMA, other kernels of OpenBLAS) moved these by up to 3e-8, and all others by up
to 5e-10.
"""


@dataclass(frozen=True)
class Case:
    """A case: its function takes its table. `tolerance`: of numbers; `needs`: a library that may be absent."""

    name: str
    table: str
    compute: Callable[[Table], Found]
    tolerance: float
    needs: str | None

    def found(self) -> dict[str, dict[str, Any]]:
        """What it gives now, as plain JSON."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is said is for the tests of warnings
            return {entry: plain(value) for entry, value in self.compute(TABLES[self.table]()).items()}

    @property
    def can_run(self) -> bool:
        return self.needs is None or find_spec(self.needs) is not None


CASES: dict[str, Case] = {}


def case(table: str, *, tolerance: float = TOLERANCE, needs: str | None = None) -> Callable[[Any], Any]:
    """Enter a function among the cases, under its own name."""

    def enter(compute: Callable[[Table], Found]) -> Callable[[Table], Found]:
        CASES[compute.__name__] = Case(compute.__name__, table, compute, tolerance, needs)
        return compute

    return enter


# -- what is asked of models ----------------------------------------------------------------------


def _coefficients(model: Any) -> Found:
    """Of long frames every third row, for size: all coefficients have their part in the predictions."""
    frames = names.coefficients(model)
    return {f"coefficients of {term}": _thinned(one, 3) if len(one) > 45 else one for term, one in frames.items()}


def _of_solved(model: Any, X: pd.DataFrame) -> Found:
    """What a solved model predicts, and all that it tells."""
    return {
        **names.predictions(model, X),
        **_coefficients(model),
        "variances": names.variances(model),
        "dispersion, deviance, aic": names.fit_statistics(model),
        "explanation": names.explanation(model, X.tail(3)),
        "loss": names.loss_of(model),
        "summary": names.summary(model),
    }


def _of_online(model: Any, X: pd.DataFrame) -> Found:
    """What a model by gradient steps predicts, its coefficients and its losses."""
    curve = names.training_curve(model)
    return {
        **names.predictions(model, X),
        **_coefficients(model),
        "passes": np.array(len(curve)),
        "losses": curve[-3:],
    }


def _prefixed(prefix: str, found: Found) -> Found:
    return {f"{prefix}: {entry}": value for entry, value in found.items()}


def _thinned(encoded: Any, step: int = 13) -> Any:
    """Every so-manieth row, for size."""
    return encoded.iloc[::step] if isinstance(encoded, pd.DataFrame) else encoded[::step]


def _encodings(encoder: Any, table: Table, step: int = 13, **fit: Any) -> Found:
    """Training rows as `fit_transform` gives them (some, and sums over all), and new rows."""
    X = encoder.fit_transform(table.X, table.y, **fit)
    sums = X.select_dtypes("number").sum() if isinstance(X, pd.DataFrame) else np.asarray(X.sum(axis=0)).ravel()
    return {
        "training rows": _thinned(X, step),
        "sums of training rows": sums.to_numpy() if isinstance(sums, pd.Series) else sums,
        "new rows": encoder.transform(table.new),
    }


# -- wide models, solved ----------------------------------------------------------------------------


@case("shops")
def solved_two_classes(table: Table) -> Found:
    model = solved("classes").fit(table.X, table.y)
    return {
        **_of_solved(model, table.new),
        "crosses": names.chosen_crosses(model),
        "contrast": names.difference(model, "shop", "shop03", "shop00"),
        "table": _thinned(names.coefficient_table(model, base="largest"), 4),
        "curve": names.training_curve(model),
    }


@case("shops")
def solved_pairs_with_weights_and_offset(table: Table) -> Found:
    model = solved("classes", numbers="modl", crosses="pairs")
    model.fit(table.X, table.y, sample_weight=table.weight, offset=table.offset)
    offset = np.linspace(-1, 1, len(table.new))
    return {**names.predictions(model, table.new, offset=offset), **_coefficients(model)}


@case("loans")
def solved_bins(table: Table) -> Found:
    model = solved("classes", numbers="modl", crosses="auto").fit(table.X, table.y)
    return {**_of_solved(model, table.new), "table": _thinned(names.coefficient_table(model, base="largest"), 4)}


@case("shops")
def solved_plain(table: Table) -> Found:
    """No penalty: a generalised linear model."""
    X = table.X.drop(columns="colour")
    model = solved("classes", numbers="linear", crosses=None, penalty=0.0, count_effect=False)
    model.fit(X, table.y, sample_weight=table.weight)
    return {
        **_of_solved(model, table.new[list(X)]),
        "table": names.coefficient_table(model),
    }


@case("shops")
def solved_ridge(table: Table) -> Found:
    model = solved("classes", numbers="quantile", crosses=[("shop", "week")], penalty=0.01, count_effect=False)
    model.fit(table.X, table.y)
    changed = names.changed(model, {"shop": {"shop00": 1.5}})
    return {
        **_of_solved(model, table.new),
        "contrast": names.difference(model, "shop:week", ("shop00", "w00"), ("shop01", "w01")),
        "factors": _thinned(names.coefficient_table(model, factors=True, base={"shop": "shop01"}), 4),
        **_prefixed("changed", names.predictions(changed, table.new)),
    }


@case("shops")
def solved_with_posterior(table: Table) -> Found:
    model = solved("classes", crosses=None, count_effect=False, draws=16).fit(table.X, table.y)
    scores, spread = names.with_spread(model, table.new)
    return {"scores": scores, "spread": spread, **_coefficients(model)}


@case("flowers", tolerance=ITERATED)
def solved_four_classes(table: Table) -> Found:
    model = solved("classes").fit(table.X, table.y)
    return {**_of_solved(model, table.new), "contrast": names.difference(model, "soil", "soil00", "soil01")}


@case("flowers")
def solved_four_classes_ridge(table: Table) -> Found:
    model = solved("classes", numbers="modl", crosses="pairs", penalty=0.003, count_effect=False)
    return {**names.predictions(model.fit(table.X, table.y), table.new), **_coefficients(model)}


@case("prices")
def solved_amounts(table: Table) -> Found:
    """As the comparison's contender: the loss by held-out rows, which are sums here."""
    model = solved("amounts").fit(table.X, table.y)
    return {
        **_of_solved(model, table.new),
        "crosses": names.chosen_crosses(model),
        "losses": names.compared_losses(model),
        "table": _thinned(names.coefficient_table(model, base="largest"), 4),
        "contrast": names.difference(model, "maker", "maker02", "maker00"),
    }


@case("prices", tolerance=ITERATED)
def solved_amounts_judged_by_absolute_errors(table: Table) -> Found:
    model = solved("amounts", judged_by="absolute").fit(table.X, table.y, sample_weight=table.weight)
    return {**names.predictions(model, table.new), "losses": names.compared_losses(model), **_coefficients(model)}


@case("prices")
def solved_robust(table: Table) -> Found:
    model = solved("amounts", loss="huber", numbers="smooth", crosses=None).fit(table.X, table.y)
    return _of_solved(model, table.new)


@case("prices")
def solved_amounts_plain(table: Table) -> Found:
    X = table.X.drop(columns="trim")
    model = solved("amounts", loss="squared", numbers="linear", crosses=None, penalty=0.0, count_effect=False)
    model.fit(X, table.y, sample_weight=table.weight)
    return {**_of_solved(model, table.new[list(X)]), "table": names.coefficient_table(model)}


@case("prices")
def solved_amounts_with_posterior(table: Table) -> Found:
    model = solved("amounts", loss="squared", crosses=None, draws=16).fit(table.X, table.y)
    predicted, spread = names.with_spread(model, table.new)
    return {"predictions": predicted, "spread": spread}


@case("sales", tolerance=ITERATED)
def solved_products_by_log_link(table: Table) -> Found:
    """As the comparison's contender, where effects multiply."""
    model = solved("amounts").fit(table.X, table.y)
    return {**_of_solved(model, table.new), "losses": names.compared_losses(model)}


@case("sales", tolerance=ITERATED)
def solved_formula(table: Table) -> Found:
    """A product of factors: descended by L-BFGS, from several starts."""
    text = "sales ~ g[store] * m[group] * s[season] * size + b[1]"
    model = solved("amounts", formula=text, loss="squared", numbers="linear", crosses=1)
    model.fit(table.X.assign(sales=table.y))
    return _of_solved(model, table.new)


@case("sales")
def solved_formula_ridge(table: Table) -> Found:
    text = "sales ~ g[store] * m[group] * size + b[season]"
    model = solved("amounts", formula=text, loss="squared", numbers="linear", crosses=1, penalty=0.01)
    model.fit(table.X.assign(sales=table.y))
    return {**names.predictions(model, table.new), **_coefficients(model)}


@case("sales")
def solved_slopes_by_category(table: Table) -> Found:
    text = "sales ~ a[store] + b[group] * size + c[1] * size + d[1]"
    model = solved("amounts", formula=text, loss="squared", numbers="linear", crosses=1, count_effect=False)
    model.fit(table.X.assign(sales=table.y))
    return _of_solved(model, table.new)


@case("claims")
def solved_counts(table: Table) -> Found:
    X = table.X.drop(columns="before")
    model = solved("counts", exposure="years").fit(X, table.y)
    return {**_of_solved(model, table.new[list(X)]), "table": _thinned(names.coefficient_table(model, factors=True), 4)}


@case("claims")
def solved_counts_with_offset_column(table: Table) -> Found:
    model = solved("counts", numbers="linear", crosses=None, offset="before", penalty=0.0, count_effect=False)
    return _of_solved(model.fit(table.X.drop(columns="car"), table.y), table.new.drop(columns="car"))


@case("costs")
def solved_gamma(table: Table) -> Found:
    model = solved("amounts", loss="gamma").fit(table.X, table.y)
    return {**_of_solved(model, table.new), "table": _thinned(names.coefficient_table(model, factors=True), 4)}


@case("costs")
def solved_tweedie(table: Table) -> Found:
    model = solved("amounts", loss="tweedie", crosses="pairs", numbers="quantile").fit(table.X, table.y)
    return {**names.predictions(model, table.new), **_coefficients(model), "variances": names.variances(model)}


@case("visits")
def solved_dates_ids_codes(table: Table) -> Found:
    model = solved("classes", columns=["page", "code", "back", "id", "country"]).fit(table.X, table.y)
    return _of_solved(model, table.new)


@case("gaps")
def solved_missing_values(table: Table) -> Found:
    model = solved("amounts", loss="squared").fit(table.X, table.y)
    return _of_solved(model, table.new)


@case("cars")
def solved_unknown_by_similar(table: Table) -> Found:
    model = solved("amounts", loss="squared", unknown="similar").fit(table.X, table.y)
    return names.predictions(model, table.new)


@case("matches")
def solved_shared_block(table: Table) -> Found:
    text = "won ~ w[home] - w[away] + r[1] * rain + b[1]"
    model = solved("classes", formula=text, numbers="linear", crosses=1)
    return _of_solved(model.fit(table.X.assign(won=table.y)), table.new)


# -- wide models, by gradient steps -----------------------------------------------------------------

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adagrad": {"optimizer": "adagrad"},
    "adagrad in batches": {"optimizer": "adagrad", "batch": 32, "passes": 8, "rate": 0.3, "ridge": 0.001},
    "sgd": {"optimizer": "sgd", "rate": 0.1, "passes": 5},
    "momentum": {
        "optimizer": "sgd", "optimizer_options": {"momentum": 0.9, "nesterov": True}, "batch": 16, "rate": 0.005,
        "passes": 6,
    },
    "rmsprop": {"optimizer": "rmsprop", "rate": 0.02, "batch": 8, "passes": 6, "schedule": "invscaling"},
    "adam": {"optimizer": "adam", "optimizer_options": {"betas": (0.8, 0.99)}, "rate": 0.02, "batch": 8, "passes": 6},
    "mean of the batch": {"optimizer": "adagrad", "gradient": "mean", "batch": 16, "rate": 0.3, "passes": 6},
    "adam by the mean": {"optimizer": "adam", "gradient": "mean", "batch": "full", "rate": 0.05, "passes": 30},
    "lasso": {"optimizer": "adagrad", "lasso": 0.05, "rate": 0.3, "passes": 6},
    "averaged": {"optimizer": "sgd", "averaged": True, "rate": 0.1, "passes": 5},
    "adaptive": {"optimizer": "sgd", "schedule": "adaptive", "rate": 0.2, "passes": 12},
    "optimal": {"optimizer": "sgd", "schedule": "optimal", "ridge": 0.01, "passes": 5},
}  # fmt: skip


def _by_each_optimizer(table: Table, formula: str | None, some: list[str], **options: Any) -> Found:
    found: Found = {}
    for name in some:
        model = online(table.task, formula=formula, **options, **OPTIMIZERS[name])
        given = table.X.assign(**{str(table.y.name): table.y}) if formula else table.X
        model.fit(given) if formula else model.fit(given, table.y)
        found[f"{name}: predictions"] = names.predictions(model, table.new)[
            "scores" if table.task == "classes" else "predictions"
        ]
        found[f"{name}: coefficients"] = pd.concat(
            [frame.iloc[:12, :1] for frame in names.coefficients(model).values()], ignore_index=True
        ).to_numpy()
        found[f"{name}: losses"] = names.training_curve(model)[:12]
    return found


@case("shops")
def online_optimizers_on_sums(table: Table) -> Found:
    return _by_each_optimizer(table, None, list(OPTIMIZERS))


@case("sales")
def online_optimizers_on_a_product(table: Table) -> Found:
    some = ["adagrad in batches", "sgd", "momentum", "rmsprop", "adam", "mean of the batch", "averaged"]
    return _by_each_optimizer(table, "sales ~ g[store] * m[group] * s[season] * size + b[1]", some)


@case("matches")
def online_vectors(table: Table) -> Found:
    some = ["adagrad in batches", "adam", "mean of the batch"]
    return _by_each_optimizer(table, "won ~ dot(u[home], v[away], rank=3) + b[1]", some)


@case("shops")
def online_by_default(table: Table) -> Found:
    model = online("classes").fit(table.X, table.y, sample_weight=table.weight)
    return {**_of_online(model, table.new), "summary": names.summary(model)}


@case("shops")
def online_chosen_crosses(table: Table) -> Found:
    """As the comparison's contender of chosen crosses."""
    model = online("classes", crosses="auto", numbers="modl").fit(table.X, table.y)
    return {**_of_online(model, table.new), "crosses": names.chosen_crosses(model)}


@case("loans")
def online_bins(table: Table) -> Found:
    model = online("classes", numbers="modl", crosses=[("age", "job")]).fit(table.X, table.y)
    return _of_online(model, table.new)


@case("shops")
def online_hinge_that_stops_early(table: Table) -> Found:
    model = online("classes", loss="hinge", stops_early=True, optimizer="sgd", passes=20, crosses="pairs")
    model.fit(table.X, table.y)
    return {**_of_online(model, table.new), "held-out losses": names.validation_curve(model)}


@case("shops")
def online_in_pieces(table: Table) -> Found:
    """Pieces of a table, each with categories that those before had not."""
    model = online("classes", crosses="pairs", optimizer="adam", batch=4, rate=0.02)
    assert table.weight is not None and table.offset is not None
    for rows in np.array_split(np.argsort(table.X["shop"].to_numpy(), kind="stable"), 5):
        model.partial_fit(
            table.X.iloc[rows], table.y.iloc[rows], classes=["kept", "sold"], sample_weight=table.weight[rows] + 1,
            offset=table.offset[rows],
        )  # fmt: skip
    return {**names.predictions(model, table.new, offset=np.zeros(len(table.new))), **_coefficients(model)}


@case("flowers")
def online_four_classes(table: Table) -> Found:
    return _of_online(online("classes", numbers="quantile").fit(table.X, table.y), table.new)


@case("prices")
def online_losses(table: Table) -> Found:
    found: Found = {}
    for loss, more in (("squared", {}), ("absolute", {}), ("huber", {"huber": 1.0}), ("quantile", {"quantile": 0.8})):
        model = online("amounts", loss=loss, more=more).fit(table.X, table.y, sample_weight=table.weight)
        found |= _prefixed(loss, {"predictions": model.predict(table.new), "losses": names.training_curve(model)[-3:]})
        found |= _prefixed(loss, {"coefficients of maker": names.coefficients(model)["maker"]})
    return found


@case("prices")
def online_chosen_crosses_of_amounts(table: Table) -> Found:
    model = online("amounts", crosses="auto", numbers="quantile").fit(table.X, table.y)
    return {**_of_online(model, table.new), "crosses": names.chosen_crosses(model)}


@case("prices")
def online_amounts_in_pieces(table: Table) -> Found:
    model = online("amounts", crosses="pairs")
    for rows in np.array_split(np.arange(len(table.y)), 4):
        model.partial_fit(table.X.iloc[rows], table.y.iloc[rows])
    again = online("amounts", start=names.coefficients(model), crosses="pairs", passes=2, rate=0.1)
    return {
        **_of_online(model, table.new),
        **_prefixed("from there", names.predictions(again.fit(table.X, table.y), table.new)),
    }


@case("costs")
def online_log_links(table: Table) -> Found:
    found: Found = {}
    for loss, more in (("poisson", {}), ("gamma", {}), ("tweedie", {"tweedie": 1.3})):
        model = online("amounts", loss=loss, more=more).fit(table.X, table.y)
        found |= _prefixed(loss, _of_online(model, table.new))
    return found


@case("claims")
def online_counts(table: Table) -> Found:
    X = table.X.drop(columns="before")
    return _of_online(online("counts", exposure="years").fit(X, table.y), table.new[list(X)])


@case("claims")
def online_counts_with_offset_column(table: Table) -> Found:
    model = online("counts", offset="before", numbers="modl", standardized=False).fit(table.X, table.y)
    return _of_online(model, table.new)


@case("visits")
def online_dates_ids_codes(table: Table) -> Found:
    return _of_online(online("classes").fit(table.X, table.y), table.new)


@case("gaps")
def online_missing_values(table: Table) -> Found:
    return _of_online(online("amounts", columns=["team", "kind"]).fit(table.X, table.y), table.new)


@case("cars")
def online_unknown_by_similar(table: Table) -> Found:
    model = online("amounts", unknown="similar").fit(table.X, table.y)
    return names.predictions(model, table.new)


@case("lorries")
def online_unknown_by_similar_of_classes(table: Table) -> Found:
    return names.predictions(online("classes", unknown="similar").fit(table.X, table.y), table.new)


# -- MODL -------------------------------------------------------------------------------------------


@case("loans")
def modl_two_classes(table: Table) -> Found:
    encoder = names.modl().fit(table.X, table.y)
    return {**names.parts(encoder), "new rows": encoder.transform(table.new)}


@case("flowers")
def modl_four_classes(table: Table) -> Found:
    encoder = names.modl().fit(table.X, table.y)
    return {**names.parts(encoder), "new rows": encoder.transform(table.new)}


@case("prices")
def modl_amounts(table: Table) -> Found:
    encoder = names.modl().fit(table.X, table.y)
    return {**names.parts(encoder), "new rows": encoder.transform(table.new)}


@case("visits")
def modl_dates_ids_codes(table: Table) -> Found:
    encoder = names.modl().fit(table.X, table.y)
    return {**names.parts(encoder), "new rows": encoder.transform(table.new)}


@case("gaps")
def modl_missing_values(table: Table) -> Found:
    encoder = names.modl(proofs=False).fit(table.X, table.y)
    return {**names.parts(encoder), "new rows": encoder.transform(table.new)}


@case("loans")
def modl_options(table: Table) -> Found:
    found: Found = {}
    for words, options in (
        ("as published", {"criterion": "page"}),
        ("few parts", {"most_parts": 2, "fewest_rows": 30}),
        ("monotonic", {"monotonic": True, "columns": ["age", "income"]}),
    ):
        encoder = names.modl(**options).fit(table.X, table.y, sample_weight=table.weight)
        found |= _prefixed(words, {k: v for k, v in names.parts(encoder).items() if k.startswith(("levels", "parts"))})
    return found


@case("loans")
def modl_outputs(table: Table) -> Found:
    found: Found = {}
    for output in ("onehot", "probability", "logodds", "mean"):
        found |= _prefixed(output, _encodings(names.modl(output=output), table))
    found |= _prefixed("sparse", _encodings(names.modl(output="onehot", columns=["job"], sparse=True), _texts(table)))
    return found


@case("flowers")
def modl_outputs_of_four_classes(table: Table) -> Found:
    found: Found = {}
    for output in ("probability", "logodds"):
        found |= _prefixed(output, _encodings(names.modl(output=output), table, 29))
    return found


@case("prices")
def modl_outputs_of_amounts(table: Table) -> Found:
    found: Found = {}
    for output, columns in (("mean", None), ("probability", ["maker"])):
        found |= _prefixed(output, _encodings(names.modl(output=output, columns=columns, proofs=False), table, 29))
    return found


@case("loans")
def modl_in_pieces(table: Table) -> Found:
    halves = [np.arange(0, 200), np.arange(200, 400)]
    one, other = (names.modl().partial_fit(table.X.iloc[rows], table.y.iloc[rows]) for rows in halves)
    return {k: v for k, v in names.parts(one.merge(other)).items() if k.startswith(("levels", "parts"))}


@case("lorries")
def modl_unknown_by_donors(table: Table) -> Found:
    encoder = names.modl(unknown="similar", columns=["model"]).fit(table.X, table.y)
    return {"new rows": encoder.transform(table.new)}


def _texts(table: Table) -> Table:
    """With text columns that are encoded, and numbers: what a sparse matrix can hold."""
    keep = ["job", "age", "owner"]
    return Table(table.task, table.X[keep], table.y, table.new[keep])


# -- other encoders -----------------------------------------------------------------------------------


@case("cars")
def tiws_amounts(table: Table) -> Found:
    encoder = names.tiws(columns=["model", "body"], flagged=True)
    found = _encodings(encoder, table)
    values, intervals = names.with_intervals(encoder, table.new, 0.9)
    return {
        **found,
        "estimates": values["model"].to_numpy(),
        "intervals": intervals,
        "donors": names.donors(encoder, table.new, "model"),
        "donors of known": names.donors(encoder, None, "model", 1),
    }


@case("lorries")
def tiws_two_classes(table: Table) -> Found:
    found: Found = {}
    for words, options in (
        ("rows alone", {"context": "row", "numbers": "quantile"}),
        ("by names", {"by_names": True}),
        ("poster", {"method": "poster", "smooth": 1.0}),
    ):
        encoder = names.tiws(columns=["model"], **options)
        found |= _prefixed(words, _encodings(encoder, table, 29))
        found |= _prefixed(words, {"donors": names.donors(encoder, table.new, "model")})
    return found


@case("bikes")
def tiws_three_classes(table: Table) -> Found:
    encoder = names.tiws(columns="model")
    found = _encodings(encoder, table, 29)
    encoder.observe(table.new)
    pieces = names.tiws(columns="model", numbers={"weight": [1000.0, 1300.0]})
    for rows in np.array_split(np.arange(len(table.y)), 3):
        pieces.partial_fit(table.X.iloc[rows], table.y.iloc[rows], classes=["a", "b", "c"])
    return {
        **found,
        "after observing": encoder.transform(table.new.iloc[[10, 20]]),
        "in pieces": pieces.transform(table.new),
    }


@case("cars")
def tiws_augmented_rows(table: Table) -> Found:
    encoded, target, weight = names.tiws(columns=["model"], flagged=True).augment(table.X, table.y, table.weight)
    return {
        "rows": _thinned(encoded, 29),
        "sums": encoded.select_dtypes("number").sum().to_numpy(),
        "target and weight": np.array([target.sum(), weight.sum(), target @ weight]),
    }


@case("shops")
def one_hot(table: Table) -> Found:
    found: Found = {}
    for words, options in (
        ("by default", {}),
        ("names", {"use_cat_names": True, "handle_missing": "indicator", "handle_unknown": "indicator"}),
        ("rare", {"max_categories": 5, "drop": "first", "handle_unknown": "infrequent_if_exist"}),
        ("sparse", {"sparse_output": True, "min_frequency": 20, "handle_unknown": "return_nan"}),
    ):
        encoder = names.one_hot(**options)
        encoder.fit(table.X, table.y)
        encoded = encoder.transform(table.new)
        found |= _prefixed(words, {"new rows": encoded, "names": "\n".join(encoder.get_feature_names_out())})
    found["back"] = encoder.inverse_transform(encoder.transform(table.X.head(20)))
    return found


@case("shops")
def wide_encoder(table: Table) -> Found:
    return _encodings(names.wide_encoder(), table)


@case("gaps")
def wide_encoder_of_amounts(table: Table) -> Found:
    model = solved("amounts", loss="squared", crosses=None, numbers="linear", count_effect=False)
    found = _prefixed("solved", _encodings(names.wide_encoder(model=model), table))
    return found | _prefixed("online", _encodings(names.wide_encoder(numbers="passthrough"), table))


@case("flowers")
def wide_encoder_of_four_classes(table: Table) -> Found:
    return _encodings(names.wide_encoder(columns=["place"]), table, 29)


@case("prices")
def cross_fit(table: Table) -> Found:
    texts = Table(table.task, table.X[["maker", "region", "trim"]].fillna("?"), table.y,
                  table.new[["maker", "region", "trim"]].fillna("?"))  # fmt: skip
    found = _prefixed("TargetEncoder", _encodings(names.cross_fit(TargetEncoder(target_type="continuous")), texts, 29))
    wide = names.cross_fit(names.wide_encoder(), KFold(3))
    found |= _prefixed("wide", _encodings(wide, table, 29))
    past = names.cross_fit(names.modl(output="mean", proofs=False), TimeSeriesSplit(3))
    return found | _prefixed("the past", _encodings(past, table, 29))


@case("visits")
def date_parts(table: Table) -> Found:
    return _encodings(names.date_parts(), table, 29)


# -- stacks -------------------------------------------------------------------------------------------


def _stacked(model: Any, table: Table) -> Found:
    return {**names.predictions(model, table.new), **names.stacked(model)}


@case("fields")
def stack_of_classes(table: Table) -> Found:
    found: Found = {}
    wide = solved("classes", crosses=None, numbers="linear")
    for mode in ("auto", "feature"):
        booster = HistGradientBoostingClassifier(
            max_iter=25, learning_rate=0.2, max_leaf_nodes=5, early_stopping=False, random_state=0
        )
        model = names.stack("classes", wide=wide, booster=booster, mode=mode, folds=3)
        found |= _prefixed(mode, _stacked(model.fit(table.X, table.y, sample_weight=table.weight), table))
    return found


@case("fields", needs="lightgbm")
def stack_by_default(table: Table) -> Found:
    return _stacked(names.stack("classes", folds=3).fit(table.X, table.y), table)


@case("shops")
def stack_that_needs_no_booster(table: Table) -> Found:
    booster = HistGradientBoostingClassifier(max_iter=10, early_stopping=False, random_state=0)
    return _stacked(names.stack("classes", booster=booster, folds=3).fit(table.X, table.y), table)


@case("prices")
def stack_of_amounts(table: Table) -> Found:
    found: Found = {}
    wide = solved("amounts", loss="squared", crosses=None)
    for mode in ("margin", "feature"):
        booster = HistGradientBoostingRegressor(max_iter=15, max_leaf_nodes=5, early_stopping=False, random_state=0)
        model = names.stack("amounts", wide=wide, booster=booster, mode=mode, codes="group", folds=3)
        model.fit(table.X, table.y)
        found |= _prefixed(mode, _stacked(model, table))
    tree = DecisionTreeRegressor(max_depth=2, random_state=0)
    model = names.stack("amounts", wide=wide, booster=tree, mode="margin", stops_early=False, folds=3)
    found |= _prefixed("residuals", names.predictions(model.fit(table.X, table.y), table.new))
    return found


# -- unknown categories ---------------------------------------------------------------------------------


def _numbers_and_text(task: str) -> Any:
    last = LogisticRegression(C=1.0, solver="newton-cholesky") if task == "classes" else Ridge(alpha=1.0)
    return make_pipeline(names.one_hot(), SimpleImputer(), StandardScaler(), last)


@case("cars")
def jitter_amounts(table: Table) -> Found:
    encoder = names.tiws(columns=["model"]).fit(table.X, table.y)
    model = names.jitter(_numbers_and_text("amounts").fit(table.X, table.y), encoder).fit(table.X, table.y)
    predicted, spread = model.predict(table.new, return_std=True)
    names.calibrated(model, table.X, table.y, 150)
    return {
        "predictions": predicted,
        "spread": spread,
        "calibrated": model.predict(table.new),
        "what was chosen": model.describe(),
        "donors": names.donors(model, table.new, "model"),
        "drawn": model.predict(table.new, n_draws=5, random_state=0),
    }


@case("lorries")
def jitter_classes(table: Table) -> Found:
    encoder = names.tiws(columns=["model", "body"])
    found: Found = {}
    for average in ("probability", "raw"):
        model = names.jitter(_numbers_and_text("classes"), encoder, average=average, most_donors=None)
        found |= _prefixed(average, names.predictions(model.fit(table.X, table.y), table.new))
    return found


@case("cars")
def tree_of_amounts(table: Table) -> Found:
    model = names.tree("amounts", depth=5, fewest_in_leaf=4).fit(table.X, table.y, sample_weight=table.weight)
    return {
        "predictions": model.predict(table.new),
        "leaves": model.apply(table.new),
        "importances": model.feature_importances_,
        "text": model.export_text(),
        "donors": names.donors(model, table.new, "model"),
    }


@case("bikes")
def tree_of_classes(table: Table) -> Found:
    found: Found = {}
    for unknown in ("similar", "similar_per_node", "training_counts", "node_value"):
        model = names.tree("classes", depth=4, criterion="entropy", unknown=unknown).fit(table.X, table.y)
        found[f"{unknown}: probabilities"] = model.predict_proba(table.new)
    rows = names.tree("classes", encoder=names.tiws(method="poster"), context="row", smooth=0.0, depth=4)
    return {
        **found,
        "text": model.export_text(),
        "rows alone: probabilities": rows.fit(table.X, table.y).predict_proba(table.new),
    }


@case("cars")
def augmented_amounts(table: Table) -> Found:
    model = names.augmented(make_pipeline(SimpleImputer(), Ridge(alpha=1.0)), names.tiws(flagged=True)).fit(
        table.X, table.y
    )
    return {
        "predictions": model.predict(table.new),
        "held out": names.without_unknown(model, table.X, table.y, "model"),
    }


@case("lorries")
def augmented_classes(table: Table) -> Found:
    booster = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=5, early_stopping=False, random_state=0)
    model = names.augmented(booster).fit(table.X, table.y)
    return names.predictions(model, table.new)


# -- the comparison -------------------------------------------------------------------------------------


@case("sales", tolerance=1e-5)
def comparison(table: Table) -> Found:
    """What a comparison ranks and prints; its times, versions and folder are masked.

    Probabilities of tests move by some hundred times as much as the predictions that they are of.
    """
    said = io.StringIO()
    given = table.X.assign(sales=table.y).head(240)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
        result = names.compared(given, "sales", ["baseline", "solved", "online"], Path(folder) / "out", folds=2)
        page = (result.folder / "report.html").read_text(encoding="utf-8")
        return {
            "ranking": names.ranking(result),
            "summary": _without_times("\n".join(result.summary)),
            "printed": _without_times(_printed(said.getvalue().replace(folder, "FOLDER"))),
            "report": _without_times(_words_of(page)),
        }


FIRST_OF_THE_MACHINE = "fit s"
"""The heading of the ranking from which on columns are times and memory."""


ON_TIMES = ("times as fast", "busy with other processes")
"""Sentences with these words are of the machine, too."""


def _without_times(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not any(words in line for words in ON_TIMES))


def _printed(text: str) -> str:
    """What was printed, without times and memory."""
    lines = re.sub(r"\bfits [\d.,]+ s\b", "fits # s", text).splitlines()
    head = next(place for place, line in enumerate(lines) if FIRST_OF_THE_MACHINE in line)
    end = lines.index("", head)
    width = lines[head].index(FIRST_OF_THE_MACHINE)
    ranking = [line[:width].rstrip() for line in lines[head:end]]
    return "\n".join(lines[:head] + ranking + lines[end:])


def _words_of(page: str) -> str:
    """The words of the report, a line for each cell or paragraph: without times and memory, and what it ran on."""
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page[page.index("<body>") :], flags=re.DOTALL)
    start = body.index('<table class="ranking')
    end = body.index("</table>", start)
    rows = [re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row) for row in body[start:end].split("<tr")[1:]]
    kept = rows[0].index(FIRST_OF_THE_MACHINE)
    ranking = "\n".join(" | ".join(row[:kept]) for row in rows)
    lines = [line.strip() for line in re.sub(r"<[^>]*>", "\n", body[:start] + ranking + body[end:]).splitlines()]
    words = "\n".join(line for line in lines[: lines.index("Provenance")] if line)
    return html.unescape(re.sub(r"(?m)^-(0\.0+)$", r"\1", words))  # the sign of 0 is noise
