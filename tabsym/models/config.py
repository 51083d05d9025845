"""The constructor arguments as one frozen, validated configuration, and the training options derived from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np

from tabsym.design.formula import Formula, Monomial, expand, parse
from tabsym.design.model_spec import ModelSpec
from tabsym.interactions.search import (
    FOR_BINARY,
    FOR_CLASSES,
    FOR_MANY_ROWS,
    FOR_REGRESSION,
    MANY_ROWS,
    AutoInteractions,
)
from tabsym.losses.loss import Loss
from tabsym.messages import check_option
from tabsym.models.checks import (
    Init,
    Named,
    Treatment,
    check_alpha,
    check_coef_init,
    check_columns,
    check_fixed,
    check_flag,
    check_formula,
    check_interactions,
    check_monotonic,
    check_number,
    check_numeric,
    check_optimizer,
    check_rate,
    check_schedule,
    check_whole,
    check_whole_or,
)
from tabsym.solvers.newton import Newton
from tabsym.solvers.sgd.loop import is_known_to_do, rule_of_thumb
from tabsym.solvers.sgd.options import SCHEDULES, Optimizer, Options

UNKNOWN = ("neutral", "error", "similar")
SOLVED_NUMERIC, ONLINE_NUMERIC = ("smooth", "linear", "modl", "quantile"), ("linear", "modl", "quantile")


@dataclass(frozen=True)
class Config:
    """Options of solved and online wide models; those that a kind does not have are at neutral values.

    None for automatic values (`learning_rate`, `epochs`), for all rows (`batch_size`) and for categories by dtype
    (`cols`). `numeric`: for columns that `numeric_of` does not name.
    """

    caller: str
    formula: Formula | None
    cols: Any
    interactions: int | AutoInteractions | Named
    is_auto: bool
    numeric: str
    optimizer: Optimizer | Newton
    verbose: int
    n_jobs: int | None
    numeric_of: Mapping[str, Treatment] = field(default_factory=dict)
    count_effect: bool = False
    by_evidence: bool = False
    monotonic: Mapping[Any, int] | tuple[int, ...] | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    l1: float = 0.0
    l2: float = 0.0
    learning_rate: float | None = None
    schedule: str = "constant"
    power_t: float = 0.5
    gradient: str = "gse"
    batch_size: int | None = 1
    epochs: int | None = None
    average: bool = False
    init: Init = None
    shuffle: bool = True
    standardize: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float | None = None

    def crosses_for(self, loss: Loss, n_outputs: int, n_rows: int) -> AutoInteractions | None:
        """The options of interaction selection; None without selection."""
        if not isinstance(self.interactions, AutoInteractions):
            return None
        if not (self.is_auto and self.by_evidence):
            return self.interactions
        if not loss.for_classes or n_outputs > 1:
            return FOR_CLASSES if loss.for_classes else FOR_REGRESSION
        return FOR_MANY_ROWS if n_rows >= MANY_ROWS else FOR_BINARY

    @property
    def free_terms(self) -> list[Monomial]:
        """The terms of the formula that are not fixed."""
        assert self.formula is not None
        terms = expand(self.formula)
        return [term for term in terms if not any(ref.block in self.fixed for ref in term.blocks)]

    @property
    def has_count_effects(self) -> bool:
        """Whether terms get count effects: without a penalty the coefficients of categories determine them."""
        return self.count_effect and self.ridge != 0.0

    @property
    def ridge(self) -> float | None:
        """The ridge penalty of Newton's method; None where variance components are estimated."""
        return None if self.by_evidence else self.l2

    def refuse_pieces(self) -> None:
        """Check for options that need all rows at once: invalid for streams and in a first `partial_fit`."""
        if isinstance(self.interactions, AutoInteractions):
            raise ValueError(
                "interactions='auto' chooses interactions from all rows at hand; call fit on a sample of the rows "
                "first and partial_fit on the others, or give interactions='pairwise'."
            )
        if self.numeric != "linear" or any(how != "linear" for how in self.numeric_of.values()):
            raise ValueError(
                f"numeric={self.numeric_of or self.numeric!r} chooses bins from all rows at hand; call fit on a sample "
                "of the rows first and partial_fit on the others, or give numeric='linear'."
            )

    @property
    def may_lack(self) -> bool:
        """Whether a model may lack interactions that options name: they are chosen, or it is a part of a fit."""
        return isinstance(self.interactions, AutoInteractions) or not self.newton.posterior

    @property
    def newton(self) -> Newton:
        """The options of Newton's method, of a solved model."""
        assert isinstance(self.optimizer, Newton)
        return self.optimizer

    def numeric_for(self, name: str) -> Treatment:
        """The treatment of a numeric column."""
        return self.numeric_of.get(name, self.numeric)


def solved_config(e: Any, *, posterior: bool = True) -> Config:
    """The configuration of a solved model; a `ValueError` names an invalid argument.

    `posterior`: with that of the coefficients.
    """
    common = _common(e, SOLVED_NUMERIC, "smooth")
    alpha = check_alpha(e.alpha)
    n_init = check_whole("n_init", e.n_init)
    n_samples = check_whole("n_posterior_samples", e.n_posterior_samples, 0)
    newton = Newton.to(
        check_number("tol", e.tol, above=0),
        max_passes=check_whole("max_iter", e.max_iter),
        starts=n_init,
        samples=n_samples,
        posterior=posterior,
        penalties=alpha if isinstance(alpha, Mapping) else None,
        verbose=common["verbose"],
    )
    is_number, fixed = isinstance(alpha, float), check_fixed(e.fixed)
    for name in newton.penalties or ():
        if name in fixed:
            raise ValueError(
                f"alpha names {name!r}, whose coefficients are given by fixed, without a penalty; leave it out."
            )
    monotonic = check_monotonic(e.monotonic_cst)
    if common["formula"] is not None and isinstance(monotonic, tuple):
        raise ValueError(
            "monotonic_cst by position has no meaning with a formula; name the columns: monotonic_cst={'price': -1}."
        )
    return Config(
        **common,
        monotonic=monotonic,
        fixed=fixed,
        optimizer=newton,
        count_effect=check_flag("count_effect", e.count_effect),
        by_evidence=not is_number,
        l2=alpha if isinstance(alpha, float) else 0.0,
    )


def online_config(e: Any) -> Config:
    """The configuration of a model that is trained by SGD."""
    common = _common(e, ONLINE_NUMERIC, "linear")
    alpha = check_number("alpha", e.alpha, at_least=0)
    l1_ratio = check_number("l1_ratio", e.l1_ratio, at_least=0, at_most=1)
    optimizer = check_optimizer(e.optimizer)
    config = Config(
        **common,
        optimizer=optimizer,
        l1=alpha * l1_ratio,
        l2=alpha * (1.0 - l1_ratio),
        learning_rate=check_rate(e.learning_rate),
        schedule=check_option("schedule", e.schedule, SCHEDULES),
        power_t=check_number("power_t", e.power_t, at_least=0),
        gradient=check_option("gradient", e.gradient, ("gse", "mean")),
        batch_size=check_whole_or("full", "batch_size", e.batch_size),
        epochs=check_whole_or("auto", "max_iter", e.max_iter),
        average=check_flag("average", e.average),
        init=check_coef_init(e.coef_init),
        shuffle=check_flag("shuffle", e.shuffle),
        standardize=check_flag("standardize", e.standardize),
        early_stopping=check_flag("early_stopping", e.early_stopping),
        validation_fraction=check_number("validation_fraction", e.validation_fraction, above=0, below=1),
        n_iter_no_change=check_whole("n_iter_no_change", e.n_iter_no_change),
        tol=None if e.tol is None else check_number("tol", e.tol, at_least=0),
    )
    check_schedule(config.schedule, optimizer, config.l2)
    _refuse_without_effect(config, e)
    return config


def _common(e: Any, numerics: tuple[str, ...], numeric: str) -> dict[str, Any]:
    """The options of both kinds, by the field names of `Config`."""
    check_option("handle_unknown", e.handle_unknown, UNKNOWN)
    formula = None if e.formula is None else parse(check_formula(e.formula))
    cols = check_columns(e.categorical_features)
    interactions = check_interactions(e.interactions)
    how, by_column = check_numeric(e.numeric, numerics, numeric)
    if formula is not None:
        interactions = 1
        plain = defaults_of(type(e))
        for name in ("interactions", "categorical_features"):
            value = getattr(e, name)
            if not _is_default(value, plain[name]):
                raise ValueError(
                    f"{name}={value!r} has no meaning with a formula; leave it out, or write it there: w[a, b]."
                )
        if e.handle_unknown == "similar":
            raise ValueError(
                "handle_unknown='similar' estimates what a category adds, and a formula may multiply; leave it out "
                "with a formula."
            )
    return {
        "caller": type(e).__name__,
        "formula": formula,
        "cols": cols,
        "interactions": interactions,
        "is_auto": isinstance(e.interactions, str) and e.interactions == "auto" and formula is None,
        "numeric": how,
        "numeric_of": by_column,
        "verbose": check_whole("verbose", int(e.verbose) if isinstance(e.verbose, bool) else e.verbose, 0),
        "n_jobs": e.n_jobs,
    }


def _refuse_without_effect(config: Config, e: Any) -> None:
    """Check for options without effect, given the others."""
    plain = defaults_of(type(e))

    def refuse(name: str, needs: str) -> None:
        if not _is_default(getattr(e, name), plain[name]):
            raise ValueError(f"{name}={getattr(e, name)!r} has no effect {needs}, or leave it out.")

    if config.l1 == config.l2 == 0.0:
        refuse("l1_ratio", "without a penalty; give alpha")
    if config.schedule != "invscaling":
        refuse("power_t", "without schedule='invscaling'; set that")
    if config.schedule == "optimal":
        refuse("learning_rate", "with schedule='optimal', whose rate follows from alpha; set another schedule")
    if not config.early_stopping:
        refuse("validation_fraction", "without early_stopping=True; set that")
        if config.epochs is not None and config.tol is None and config.schedule != "adaptive":
            refuse("n_iter_no_change", "where all max_iter epochs are made; give tol or early_stopping=True")


def defaults_of(kind: type) -> dict[str, Any]:
    """The constructor options of an estimator, with their defaults."""
    return {name: parameter.default for name, parameter in signature(kind).parameters.items()}


def _is_default(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


AUTO_VISITS = 125_000
MAX_AUTO_EPOCHS, MIN_AUTO_EPOCHS = 50, 2
"""Epochs of the default training of additive models: about AUTO_VISITS rows in total, within these bounds.

More epochs overfit infrequent categories; see ``benchmarks/defaults.py``.
"""

MAX_EPOCHS_CHOSEN = 5
"""Maximum where interactions were selected with shrinkage: SGD does not shrink their infrequent combinations."""

MAX_EPOCHS, TOL = 1_000, 1e-3
"""Otherwise training runs until the loss has converged, as in scikit-learn's SGD, for at most this number of epochs."""

SLOW = 4.0
"""A learning rate smaller than the automatic one by this factor trains to convergence, not for AUTO_VISITS rows."""

SHORT = 0.05
"""Warn that training by AUTO_VISITS was too short if the last epoch lowered the loss by more than this fraction."""

TRIES = 12
"""Maximum number of reductions of an automatic learning rate that diverges."""


def training_options(config: Config, spec: ModelSpec, n_rows: int, *, chosen: bool = False) -> Options:
    """The options of `fit`; `chosen`: whether interactions were selected."""
    options = _options(config, spec)
    is_usual = is_known_to_do(options, spec) and config.schedule == "constant"
    stops_itself = config.early_stopping or config.tol is not None
    by_count = is_usual and not stops_itself and options.learning_rate * SLOW > rule_of_thumb(options.optimizer, spec)
    if is_usual and (by_count or config.epochs is not None):  # as in benchmarks/defaults.py
        options = replace(options, cooling=0.0)
    if config.learning_rate is None:
        options = options.with_automatic_rate(TRIES)
    if config.epochs is not None:
        return replace(options, epochs=config.epochs)
    if by_count:
        if config.n_iter_no_change != Config.n_iter_no_change:
            raise ValueError(
                f"n_iter_no_change={config.n_iter_no_change} has no effect where epochs go by the number of rows, as "
                "the default optimizer's on sums do; give tol or early_stopping=True, or leave it out."
            )
        epochs = auto_epochs(n_rows)
        return replace(options, epochs=min(epochs, MAX_EPOCHS_CHOSEN) if chosen else epochs, short=SHORT)
    return replace(options, epochs=MAX_EPOCHS, tol=TOL if config.tol is None else config.tol)


def piece_options(config: Config, spec: ModelSpec) -> Options:
    """The options of `partial_fit`: one epoch, at one learning rate."""
    return replace(_options(config, spec), epochs=1).for_piece()


def auto_epochs(n_rows: int) -> int:
    """The epochs of ``max_iter="auto"`` by default: small tables need more for the same number of updates."""
    return int(np.clip(-(-AUTO_VISITS // n_rows), MIN_AUTO_EPOCHS, MAX_AUTO_EPOCHS))


def _options(config: Config, spec: ModelSpec) -> Options:
    assert not isinstance(config.optimizer, Newton), "solved, not trained"
    automatic = config.learning_rate is None
    rate = rule_of_thumb(config.optimizer, spec) if config.learning_rate is None else config.learning_rate
    return Options(
        optimizer=config.optimizer,
        learning_rate=rate,
        scaled=config.standardize,
        optimal_cap=rate if automatic and config.schedule == "optimal" else None,
        schedule=config.schedule,
        power_t=config.power_t,
        gradient=config.gradient,
        batch_size=config.batch_size,
        l1=config.l1,
        l2=config.l2,
        average=config.average,
        shuffle=config.shuffle,
        early_stopping=config.early_stopping,
        validation_fraction=config.validation_fraction,
        n_iter_no_change=config.n_iter_no_change,
        tol=config.tol,
        verbose=config.verbose,
    )
