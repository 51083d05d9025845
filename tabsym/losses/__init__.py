"""Losses with a parameter: objects for the `loss` of the wide models, next to the names of those without."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

__all__ = ["Huber", "Quantile", "Tweedie"]


def _check_between(caller: str, name: str, value: object, low: float, high: float) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low < float(value) < high:  # type: ignore[arg-type]
        bounds = f"above {low:g}" + ("" if high == float("inf") else f" and below {high:g}")
        raise ValueError(f"{caller}({name}={value!r}) is not possible; use a number {bounds}.")


@dataclass(frozen=True)
class Huber:
    """Squared within `delta` of the target, linear beyond: for regression with outliers.

    Parameters
    ----------
    delta : float, default 1.35
        In units of the target's scale: the interquartile mean of its absolute deviations, scaled to be 1 for a
        standard normal target (in `partial_fit` of the first call's rows).

    References
    ----------
    Huber 1964, "Robust estimation of a location parameter".

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym.losses import Huber
    >>> X = pd.DataFrame({"shop": ["a", "b"] * 20})
    >>> y = [1.0, 2.0] * 19 + [1.0, 900.0]
    >>> WideRegressor(loss=Huber(1.0)).fit(X, y).predict(X[:2]).round(1).tolist()
    [1.0, 2.0]
    """

    delta: float = 1.35
    name: ClassVar[str] = "huber"

    def __post_init__(self) -> None:
        _check_between("Huber", "delta", self.delta, 0.0, float("inf"))


@dataclass(frozen=True)
class Quantile:
    """The pinball loss, whose optimum is a quantile of the target. For online models, as it has no second derivative.

    Parameters
    ----------
    quantile : float, default 0.5
        Above 0 and below 1.

    References
    ----------
    Koenker and Bassett 1978, "Regression quantiles".

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideSGDRegressor
    >>> from tabsym.losses import Quantile
    >>> X = pd.DataFrame({"shop": ["a"] * 1000})
    >>> model = WideSGDRegressor(loss=Quantile(0.9), random_state=0).fit(X, range(1000))
    >>> bool(850 < model.predict(X[:1])[0] < 950)
    True
    """

    quantile: float = 0.5
    name: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        _check_between("Quantile", "quantile", self.quantile, 0.0, 1.0)


@dataclass(frozen=True)
class Tweedie:
    """Tweedie's deviance behind a log link, for regression targets with many zeros, such as claims.

    Parameters
    ----------
    power : float, default 1.5
        Above 1 and below 2: the variance is proportional to this power of the mean.

    References
    ----------
    Joergensen 1987, "Exponential dispersion models".

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym.losses import Tweedie
    >>> X = pd.DataFrame({"area": ["a", "b"] * 50})
    >>> WideRegressor(loss=Tweedie(1.5)).fit(X, [0.0, 4.0, 0.0, 0.0] * 25).predict(X[:2]).round(1).tolist()
    [0.0, 2.0]
    """

    power: float = 1.5
    name: ClassVar[str] = "tweedie"

    def __post_init__(self) -> None:
        _check_between("Tweedie", "power", self.power, 1.0, 2.0)


WITH_NUMBER = {kind.name: kind for kind in (Huber, Quantile, Tweedie)}
"""By name, the losses with a parameter; the name stands for the default object."""
