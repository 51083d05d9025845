"""From constructor arguments to checked training options."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.crosses import AutoCrosses
from tabsym.wide.layout import Layout
from tabsym.wide.optimizers import FTRL, OPTIMIZERS, Optimizer
from tabsym.wide.schedules import SCHEDULES
from tabsym.wide.training import Options

AUTO_RATE, MOST_RATE, MOST_PRODUCT_RATE = 3.0, 0.5, 0.1
"""learning_rate="auto" is AUTO_RATE / (terms of a row's score), at most MOST_RATE, or MOST_PRODUCT_RATE.

The terms of a row move together, so the score moves by rate times their
number in an optimizer's first steps: amazon's nine columns want .3, their 45
singles and pairs .05 to .1 (``benchmarks/defaults.py``). Factors of a product
multiply each other's noise: recovered products (tests/test_formula_models.py)
came within 1.1 % of the truth's error at .1, 3.6 % at .5.
"""

AUTO_VISITS = 125_000
MOST_EPOCHS, LEAST_EPOCHS = 50, 2
"""epochs="auto": as many as show AUTO_VISITS rows, within these bounds."""

MOST_EPOCHS_CHOSEN = 5
"""epochs="auto" where interactions="auto" chose crosses: more passes fit their cells of few rows.

Crosses are chosen by shrunken steps, training does not shrink. The generated retail table, 1,300, 3,300 and
6,700 training rows, RMSE without crosses 21.4, 26.7, 22.7: with chosen crosses and as many epochs
23.4, 26.6, 22.8, with 5 epochs 20.5, 24.6, 21.5.
"""


def check_options(estimator: Any, layout: Layout, n_rows: int) -> Options:
    """The training options of an estimator; a `ValueError` names the argument that is wrong."""
    e = estimator
    _one_of("gradient", e.gradient, ("gse", "mean"))
    _one_of("unseen", e.unseen, ("neutral", "error"))
    _one_of("schedule", e.schedule, SCHEDULES)
    _number("power_t", e.power_t, 0, None)
    _number("l1", e.l1, 0, None)
    _number("l2", e.l2, 0, None)
    if e.schedule in ("optimal", "invscaling") and isinstance(_optimizer(e.optimizer), FTRL):
        raise ValueError(f"schedule={e.schedule!r} does not fit ftrl, which has rates of its own; use 'constant'.")
    if e.schedule == "optimal" and e.l2 == 0:
        raise ValueError("schedule='optimal' takes its rate from the penalty; give l2 above 0, or another schedule.")
    _number("validation_fraction", e.validation_fraction, 0, 1, strict=True)
    _whole("n_iter_no_change", e.n_iter_no_change)
    check_interactions(e.interactions)
    check_numeric(e.numeric)
    if e.tol is not None:
        _number("tol", e.tol, 0, None)
    return Options(
        optimizer=_optimizer(e.optimizer),
        learning_rate=_rate(e.learning_rate, layout),
        schedule=e.schedule,
        power_t=float(e.power_t),
        gradient=e.gradient,
        batch_size=_batch_size(e.batch_size),
        epochs=_epochs(e.epochs, n_rows),
        l1=float(e.l1),
        l2=float(e.l2),
        average=bool(e.average),
        shuffle=bool(e.shuffle),
        early_stopping=bool(e.early_stopping),
        validation_fraction=float(e.validation_fraction),
        n_iter_no_change=int(e.n_iter_no_change),
        tol=e.tol,
        verbose=int(e.verbose),
    )


def check_interactions(value: Any) -> AutoCrosses | None:
    """How crosses are chosen; None where they are given by their order."""
    if isinstance(value, AutoCrosses):
        return value
    if isinstance(value, str) and value == "auto":
        return AutoCrosses()
    if isinstance(value, str) or not isinstance(value, Integral):
        raise ValueError(
            f"interactions={value!r} is not known; use a whole number of at least 1, 'auto', or "
            "tabsym.wide.AutoCrosses(...)."
        )
    _whole("interactions", value)
    return None


def check_numeric(value: Any) -> str:
    """What becomes of numeric columns."""
    _one_of("numeric", value, ("linear", "modl", "quantile"))
    return str(value)


def refuse_intervals_in_pieces(value: Any) -> None:
    """Intervals are chosen from all rows at once."""
    if check_numeric(value) != "linear":
        raise ValueError(
            f"numeric={value!r} chooses intervals from all rows at hand; call fit on a sample of the rows first and "
            "partial_fit on the others, or give numeric='linear'."
        )


def refuse_auto_in_pieces(value: Any) -> None:
    """Crosses are chosen from all rows at once: not from a stream, nor from the first call to partial_fit."""
    if check_interactions(value) is not None:
        raise ValueError(
            f"interactions={value!r} chooses crosses from all rows at hand; call fit on a sample of the rows first and "
            "partial_fit on the others, or give interactions=2."
        )


def check_stream_options(estimator: Any, extras: dict[str, Any]) -> None:
    """A stream has no weights, offsets or held-out rows: refuse them."""
    for name, value in extras.items():
        if value is not None:
            raise ValueError(f"{name} cannot be given with a stream; call partial_fit on each piece with its own.")
    refuse_auto_in_pieces(estimator.interactions)
    refuse_intervals_in_pieces(estimator.numeric)
    if estimator.early_stopping:
        raise ValueError("early_stopping needs all rows at hand; set it to False for a stream, and choose epochs.")


def auto_epochs(n_rows: int) -> int:
    """The epochs of ``epochs="auto"``: small tables need more passes for as many updates."""
    return int(np.clip(-(-AUTO_VISITS // n_rows), LEAST_EPOCHS, MOST_EPOCHS))


def check_formula(value: Any) -> str:
    """The formula, or a `TypeError`."""
    if not isinstance(value, str):
        raise TypeError(
            f"formula must be text such as 'w[column] + b[1]', not {type(value).__name__}; pass the table to fit."
        )
    return value


def refuse_beside_formula(estimator: Any) -> None:
    """A formula says what is crossed and what is a symbol: options that say it too are refused, not ignored."""
    given = {"interactions": estimator.interactions != 1, "cols": estimator.cols is not None}
    given["numeric"] = estimator.numeric != "linear"
    for name in (name for name, is_given in given.items() if is_given):
        raise ValueError(
            f"{name}={getattr(estimator, name)!r} has no meaning beside a formula; leave it out, or write it there: "
            "w[a, b]."
        )


def check_init(value: Any) -> float | dict[str, float] | None:
    """Starting values of blocks: a number, a mapping from block to number, or None."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        for name, number in value.items():
            _number(f"init[{name!r}]", number, -np.inf, None)
        return {str(name): float(number) for name, number in value.items()}
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(float(value)):
        raise ValueError(f"init={value!r} is not possible; use a finite number, or a mapping from block to number.")
    return float(value)


def check_loss_parameter(estimator: Any, name: str) -> float:
    """huber's delta, the quantile or tweedie's power, within their bounds."""
    value = getattr(estimator, name)
    low, high = {"delta": (0, None), "quantile": (0, 1), "power": (1, 2)}[name]
    _number(name, value, low, high, strict=True)
    return float(value)


def check_offset(offset: Any, n_rows: int) -> NDArray[np.float64]:
    """What is added to the score of each row (n_rows,): finite numbers."""
    try:
        values = np.asarray(offset, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("offset must hold numbers, one per row; convert it first.") from None
    if values.shape != (n_rows,):
        raise ValueError(f"offset has shape {values.shape}, but the table has {n_rows} rows; give one number per row.")
    if not np.isfinite(values).all():
        raise ValueError(
            f"offset is not finite in row {int(np.argmin(np.isfinite(values)))}; an exposure of 0 has no logarithm, "
            "drop such rows."
        )
    return values


def _optimizer(value: Any) -> Optimizer:
    if isinstance(value, Optimizer):
        return value
    _one_of("optimizer", value, tuple(OPTIMIZERS))
    return OPTIMIZERS[value]


def _rate(value: Any, layout: Layout) -> float:
    if isinstance(value, str):
        _one_of("learning_rate", value, ("auto",), "a number above 0")
        return auto_rate(layout)
    _number("learning_rate", value, 0, None, strict=True)
    return float(value)


def auto_rate(layout: Layout) -> float:
    """The rate of ``learning_rate="auto"``."""
    return min(MOST_RATE if layout.is_additive else MOST_PRODUCT_RATE, AUTO_RATE / max(1, layout.n_terms))


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
