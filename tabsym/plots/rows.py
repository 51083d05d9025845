"""Predictions against what came: calibration, lift and double lift, of any model's predictions of any rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.plots.held import DECILES, Held, deciles, in_parts
from tabsym.plots.style import BLUE, INK, ORANGE, PALE, axes_of, cut, dressed, legend, plain, titled, widened

Floats = NDArray[np.float64]


def calibration(y: Any, prediction: Any, *, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw mean outcome against mean prediction, by tenths of the rows (needs matplotlib).

    On the diagonal predictions are right on average.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        What was observed: numbers, or two classes, of which the second one counts as 1.
    prediction : array-like of shape (n_rows,) or (n_rows, 2)
        Values, or probabilities of the second class or of both.
    sample_weight : array-like of shape (n_rows,), optional
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from tabsym import plots
    >>> ax = plots.calibration([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.8])
    >>> ax.get_xlabel()
    'predicted (means of tenths of the rows)'
    """
    held = held_of(y, prediction, sample_weight)
    curve = in_parts(held.predicted, held.observed, held.weight)
    ax = axes_of(ax, 4.6, 4.4)
    draw_reliability(ax, curve, widened(float(curve.min()), float(curve.max())))
    ax.set_xlabel("predicted (means of tenths of the rows)")
    ax.set_ylabel("observed")
    titled(ax, "calibration")
    return dressed(ax)


def lift(y: Any, prediction: Any, *, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw predicted and observed means by decile of the prediction (needs matplotlib).

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        What was observed: numbers, or two classes, of which the second one counts as 1.
    prediction : array-like of shape (n_rows,) or (n_rows, 2)
        Values, or probabilities of the second class or of both.
    sample_weight : array-like of shape (n_rows,), optional
        Deciles have equal weights.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from tabsym import plots
    >>> y = np.arange(100.0)
    >>> ax = plots.lift(y, y + 1.0)
    >>> [line.get_label() for line in ax.lines]
    ['observed', 'predicted', 'mean']
    """
    held = held_of(y, prediction, sample_weight)
    ax = axes_of(ax, height=3.8)
    draw_deciles(ax, deciles(held))
    mean = float(np.average(held.observed, weights=held.weight))
    ax.axhline(mean, color=INK, linewidth=0.9, linestyle=":", label="mean")
    ax.set_xlabel("decile of the prediction, lowest first")
    ax.set_ylabel("mean")
    legend(ax)
    titled(ax, "lift: predicted and observed by decile")
    return dressed(ax)


def double_lift(
    y: Any, first: Any, second: Any, *, labels: Sequence[str] = ("first", "second"), sample_weight: Any = None,
    ax: Any = None,
) -> Any:  # fmt: skip
    """Draw what was observed where two models disagree (needs matplotlib).

    Rows are in the order of the ratio of the second prediction to the first (of the difference, where predictions are
    not all positive), in tenths. The better model is the one whose line is nearer to what was observed.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        What was observed: numbers, or two classes, of which the second one counts as 1.
    first, second : array-like of shape (n_rows,) or (n_rows, 2)
        Predictions of the two models: values, or probabilities of the second class or of both.
    labels : sequence of two str, default ("first", "second")
    sample_weight : array-like of shape (n_rows,), optional
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from tabsym import plots
    >>> y = np.arange(1.0, 101.0)
    >>> ax = plots.double_lift(y, np.full(100, 50.5), y, labels=["constant", "perfect"])
    >>> [line.get_label() for line in ax.lines]
    ['observed', 'constant', 'perfect']
    """
    if len(labels) != 2:
        raise ValueError(f"labels has {len(labels)} names; give two, of the first and of the second predictions.")
    one, two = held_of(y, first, sample_weight), held_of(y, second, sample_weight)
    is_ratio = one.predicted.min() > 0.0 and two.predicted.min() > 0.0
    order = two.predicted / one.predicted if is_ratio else two.predicted - one.predicted
    means = _tenths(order, [one.observed, one.predicted, two.predicted], one.weight)
    ax = axes_of(ax, height=3.8)
    places = np.arange(1, len(means) + 1)
    styles = (("observed", INK, "o-"), (labels[0], ORANGE, "s--"), (labels[1], BLUE, "^--"))
    for (label, colour, style), values in zip(styles, means.T, strict=True):
        ax.plot(places, values, style, color=colour, markersize=4, label=plain(cut(str(label), 40)))
    ax.set_xticks(places)
    ax.grid(axis="y", color=PALE, linewidth=0.6)
    what = "ratio" if is_ratio else "difference"
    ax.set_xlabel(plain(f"tenth of the {what} of {labels[1]} to {labels[0]}, lowest first"))
    ax.set_ylabel("mean")
    legend(ax)
    titled(ax, "double lift")
    return dressed(ax)


def draw_deciles(ax: Any, rows: list[dict[str, float]]) -> None:
    """Lines of observed and predicted means of `deciles`."""
    places = [row["decile"] for row in rows]
    for what, colour, style in (("observed", BLUE, "o-"), ("predicted", ORANGE, "s--")):
        ax.plot(places, [row[what] for row in rows], style, color=colour, markersize=4, label=what)
    ax.set_xticks(range(1, DECILES + 1))
    ax.grid(axis="y", color=PALE, linewidth=0.6)


def draw_reliability(ax: Any, curve: Floats, limits: tuple[float, float]) -> None:
    """Points (predicted, observed) over the diagonal."""
    ax.plot(limits, limits, color=PALE, linewidth=1.5, zorder=1)
    ax.plot(curve[:, 0], curve[:, 1], "o-", color=BLUE, markersize=3.5, linewidth=1, zorder=2)
    ax.set_xlim(*limits)
    ax.set_ylim(*limits)


def held_of(y: Any, prediction: Any, sample_weight: Any = None) -> Held:
    """Observed and predicted values of rows, validated.

    Raises
    ------
    ValueError
        Lengths differ, values are not finite, or there are more than two classes.
    """
    predicted = np.asarray(prediction, dtype=np.float64)
    if predicted.ndim == 2 and predicted.shape[1] <= 2:
        predicted = predicted[:, -1]
    if predicted.ndim != 1:
        raise ValueError(f"prediction has the shape {predicted.shape}; give one value a row, such as of one class.")
    observed = _observed(y)
    weight = np.ones(len(observed)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    for name, values in (("prediction", predicted), ("sample_weight", weight)):
        if len(values) != len(observed):
            raise ValueError(f"{name} has {len(values)} values and y has {len(observed)}; give one of each a row.")
    for name, values in (("y", observed), ("prediction", predicted), ("sample_weight", weight)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds values that are not finite; leave these rows out.")
    if not weight.sum() > 0.0 or weight.min() < 0.0:
        raise ValueError("sample_weight needs weights of 0 or more, and one above 0.")
    return Held(np.arange(len(observed)), predicted, observed, weight)


def _observed(y: Any) -> Floats:
    values = pd.Series(np.asarray(y).ravel() if not isinstance(y, pd.Series) else y.to_numpy())
    if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
        return values.to_numpy(dtype=np.float64)
    classes = sorted(values.unique().tolist(), key=str)
    if len(classes) > 2:
        raise ValueError(f"y holds {len(classes)} classes; give a column of 0 and 1 for one of them.")
    return (values == classes[-1]).to_numpy(dtype=np.float64)


def _tenths(order: Floats, columns: list[Floats], weight: Floats) -> Floats:
    """Means (parts, columns) by tenths of the weight in an order; equal ones stay together."""
    return np.stack([in_parts(order, values, weight)[:, 1] for values in columns], axis=1)
