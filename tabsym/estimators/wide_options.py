"""From constructor arguments to checked training options."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from tabsym.wide.layout import Layout
from tabsym.wide.optimizers import OPTIMIZERS, SGD, Adagrad, Adam, Optimizer
from tabsym.wide.training import Options

AUTO_RATE, MOST_RATE = 3.0, 0.5
"""learning_rate="auto" is AUTO_RATE / (terms of a row's score), at most MOST_RATE.

The terms of a row move together, so the score moves by rate times their
number in an optimizer's first steps: amazon's nine columns want .3, their 45
singles and pairs .05 to .1 (``benchmarks/defaults.py``).
"""

AUTO_VISITS = 125_000
MOST_EPOCHS, LEAST_EPOCHS = 50, 2
"""epochs="auto": as many as show AUTO_VISITS rows, within these bounds."""


def check_options(estimator: Any, layout: Layout, n_rows: int) -> Options:
    """The training options of an estimator; a `ValueError` names the argument that is wrong."""
    e = estimator
    _one_of("gradient", e.gradient, ("gse", "mean"))
    _one_of("unseen", e.unseen, ("neutral", "error"))
    _number("l2", e.l2, 0, None)
    _number("validation_fraction", e.validation_fraction, 0, 1, strict=True)
    _whole("n_iter_no_change", e.n_iter_no_change)
    _whole("interactions", e.interactions)
    if e.tol is not None:
        _number("tol", e.tol, 0, None)
    return Options(
        optimizer=_optimizer(e.optimizer),
        learning_rate=_rate(e.learning_rate, layout),
        gradient=e.gradient,
        batch_size=_batch_size(e.batch_size),
        epochs=_epochs(e.epochs, n_rows),
        l2=float(e.l2),
        shuffle=bool(e.shuffle),
        early_stopping=bool(e.early_stopping),
        validation_fraction=float(e.validation_fraction),
        n_iter_no_change=int(e.n_iter_no_change),
        tol=e.tol,
        verbose=int(e.verbose),
    )


def auto_epochs(n_rows: int) -> int:
    """The epochs of ``epochs="auto"``: small tables need more passes for as many updates."""
    return int(np.clip(-(-AUTO_VISITS // n_rows), LEAST_EPOCHS, MOST_EPOCHS))


def _optimizer(value: Any) -> Optimizer:
    if isinstance(value, (SGD, Adagrad, Adam)):
        return value
    _one_of("optimizer", value, tuple(OPTIMIZERS))
    return OPTIMIZERS[value]


def _rate(value: Any, layout: Layout) -> float:
    if isinstance(value, str):
        _one_of("learning_rate", value, ("auto",), "a number above 0")
        return min(MOST_RATE, AUTO_RATE / max(1, layout.n_terms))
    _number("learning_rate", value, 0, None, strict=True)
    return float(value)


def _batch_size(value: Any) -> int | None:
    if isinstance(value, str):
        _one_of("batch_size", value, ("full",), "a whole number")
        return None
    _whole("batch_size", value)
    return int(value)


def _epochs(value: Any, n_rows: int) -> int:
    if isinstance(value, str):
        _one_of("epochs", value, ("auto",), "a whole number")
        return auto_epochs(n_rows)
    _whole("epochs", value)
    return int(value)


def _one_of(name: str, value: Any, allowed: tuple[str, ...], *others: str) -> None:
    if not (isinstance(value, str) and value in allowed):
        words = " or ".join([*(repr(word) for word in allowed), *others])
        raise ValueError(f"{name}={value!r} is not known; use {words}.")


def _whole(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} is not possible; use a whole number of at least 1.")


def _number(name: str, value: Any, low: float, high: float | None, *, strict: bool = False) -> None:
    good = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    good = good and (value > low if strict else value >= low) and (high is None or value < high)
    if not good:
        bounds = f"{'above' if strict else 'of at least'} {low}" + ("" if high is None else f" and below {high}")
        raise ValueError(f"{name}={value!r} is not possible; use a number {bounds}.")
