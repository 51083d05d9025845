"""The constructor's arguments as one frozen, checked configuration, made once for each call to fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tabsym.estimators.checks import (
    Named,
    check_batch_size,
    check_epochs,
    check_flag,
    check_formula,
    check_init,
    check_interactions,
    check_l2,
    check_number,
    check_one_of,
    check_optimizer,
    check_rate,
    check_schedule,
    check_whole,
)
from tabsym.wide.crosses import FOR_EVIDENCE, AutoCrosses
from tabsym.wide.formula import parse
from tabsym.wide.losses import Loss
from tabsym.wide.optimizers import Newton, Optimizer
from tabsym.wide.schedules import SCHEDULES
from tabsym.wide.start import Init
from tabsym.wide.syntax import Formula


@dataclass(frozen=True)
class Config:
    """Names as in the estimators; None for what is automatic (`learning_rate`, `epochs`) or all rows (`batch_size`)."""

    who: str
    formula: Formula | None
    cols: Any
    interactions: int | AutoCrosses | Named
    is_auto: bool
    numeric: str
    rarity: bool
    optimizer: Optimizer | Newton
    learning_rate: float | None
    schedule: str
    power_t: float
    gradient: str
    batch_size: int | None
    epochs: int | None
    l1: float
    l2: float
    by_evidence: bool
    average: bool
    init: Init
    shuffle: bool
    standardize: bool
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float | None
    n_jobs: int | None
    verbose: int

    @classmethod
    def of(cls, e: Any) -> Config:
        """The configuration of an estimator; a `ValueError` names the argument that is wrong."""
        check_one_of("unseen", e.unseen, ("neutral", "similar", "error"))
        formula = None if e.formula is None else parse(check_formula(e.formula))
        l2 = check_l2(e.l2)
        config = cls(
            who=type(e).__name__,
            formula=formula,
            cols=e.cols,
            interactions=check_interactions(e.interactions),
            is_auto=isinstance(e.interactions, str),
            numeric=check_one_of("numeric", e.numeric, ("linear", "modl", "quantile", "smooth")),
            rarity=check_flag("rarity", e.rarity),
            optimizer=check_optimizer(e.optimizer),
            learning_rate=check_rate(e.learning_rate),
            schedule=check_one_of("schedule", e.schedule, SCHEDULES),
            power_t=check_number("power_t", e.power_t, 0, None),
            gradient=check_one_of("gradient", e.gradient, ("gse", "mean")),
            batch_size=check_batch_size(e.batch_size),
            epochs=check_epochs(e.epochs),
            l1=check_number("l1", e.l1, 0, None),
            l2=0.0 if l2 is None else l2,
            by_evidence=l2 is None,
            average=check_flag("average", e.average),
            init=check_init(e.init),
            shuffle=check_flag("shuffle", e.shuffle),
            standardize=check_flag("standardize", e.standardize),
            early_stopping=check_flag("early_stopping", e.early_stopping),
            validation_fraction=check_number("validation_fraction", e.validation_fraction, 0, 1, strict=True),
            n_iter_no_change=check_whole("n_iter_no_change", e.n_iter_no_change),
            tol=None if e.tol is None else check_number("tol", e.tol, 0, None),
            n_jobs=e.n_jobs,
            verbose=int(e.verbose),
        )
        check_schedule(config.schedule, config.optimizer, config.l2)
        if isinstance(config.optimizer, Newton):
            _refuse_beside_newton(config, e)
            if e.loss in ("absolute", "quantile", "hinge"):
                raise ValueError(
                    f"loss={e.loss!r} has no curvature, which optimizer='newton' divides by; use another optimizer, or "
                    "loss='huber' or 'logistic'."
                )
        else:
            _refuse_without_newton(config)
        if formula is not None:
            _refuse_beside_formula(config)
            if e.unseen == "similar":
                raise ValueError(
                    "unseen='similar' estimates what a symbol adds, and a formula may multiply; leave it out beside a "
                    "formula."
                )
        return config

    def crosses_for(self, loss: Loss, n_outputs: int) -> AutoCrosses | None:
        """How crosses are chosen; None where they are not."""
        if not isinstance(self.interactions, AutoCrosses):
            return None
        is_freer = self.is_auto and self.by_evidence and loss.for_classes and n_outputs == 1
        return FOR_EVIDENCE if is_freer else self.interactions

    @property
    def ridge(self) -> float | None:
        """The penalty of Newton's method; None for variances by evidence."""
        return None if self.by_evidence else self.l2

    def refuse_newton(self) -> None:
        """All rows at once: no stream."""
        if isinstance(self.optimizer, Newton):
            raise ValueError(
                "optimizer='newton' goes over all rows again and again; call fit on a table, or use another optimizer "
                "for streams."
            )

    def refuse_pieces(self) -> None:
        """Crosses and intervals are chosen from all rows at once: not from a stream, nor a first `partial_fit`."""
        if isinstance(self.interactions, AutoCrosses):
            raise ValueError(
                "interactions='auto' chooses crosses from all rows at hand; call fit on a sample of the rows first and "
                "partial_fit on the others, or give interactions=2."
            )
        if self.numeric != "linear":
            raise ValueError(
                f"numeric={self.numeric!r} chooses intervals from all rows at hand; call fit on a sample of the rows "
                "first and partial_fit on the others, or give numeric='linear'."
            )


def _refuse_beside_newton(config: Config, e: Any) -> None:
    """Newton's method has no rate and no batches: options of those that descend by gradients are not ignored."""
    plain = {"learning_rate": "auto", "schedule": "constant", "gradient": "gse", "batch_size": 1, "epochs": "auto"}
    plain |= {"l1": 0.0, "average": False, "early_stopping": False, "tol": None}
    for name, default in plain.items():
        value = getattr(e, name)
        if value != default:
            raise ValueError(
                f"{name}={value!r} has no meaning for optimizer='newton'; leave it out, or see the options of "
                "tabsym.wide.Newton."
            )


def _refuse_without_newton(config: Config) -> None:
    given = {"l2='evidence'": config.by_evidence, "numeric='smooth'": config.numeric == "smooth"}
    for name in (name for name, is_given in (given | {"rarity=True": config.rarity}).items() if is_given):
        raise ValueError(f"{name} is for optimizer='newton'; set that too, or leave it out.")


def _refuse_beside_formula(config: Config) -> None:
    """A formula says what is crossed and what is a symbol: options that say it too are refused, not ignored."""
    given = {"interactions": config.interactions != 1, "cols": config.cols is not None}
    given |= {"numeric": config.numeric != "linear", "rarity": config.rarity}
    for name in (name for name, is_given in given.items() if is_given):
        value = getattr(config, name)
        shown = "'auto'" if isinstance(value, AutoCrosses) else repr(value)
        instead = ", or write it there: w[a, b]" if name in ("interactions", "cols") else ""
        raise ValueError(f"{name}={shown} has no meaning beside a formula; leave it out{instead}.")
