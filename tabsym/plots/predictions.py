"""Predictions of held-out rows in pictures and in numbers; and pictures of an explanation, of training and of donors.

Functions that draw return matplotlib axes. Numbers, on arrays: how predictions order and scale the target (deciles,
lift, Lorenz curve and Gini), and where they err: residuals of each category, or bin of numbers, with standard errors.
Each residual is tested against 0 beyond three standard errors, adjusted for the number of cells (Bonferroni). The
variance of a residual is the larger of what was observed and, for two classes and counts, of what the model itself
implies: a category of few rows without any event has residuals that are small, and not sure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from tabsym.messages import Number, check_option, plural
from tabsym.plots.style import BLUE, INK, ORANGE, PALE, axes_of, cut, dressed, label_of, legend, plain, titled, widened

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Function = Callable[[Floats], Floats]

DECILES = 10


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
    held_out = held_out_rows(y, prediction, sample_weight)
    curve = in_parts(held_out.predicted, held_out.observed, held_out.weight)
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
    held_out = held_out_rows(y, prediction, sample_weight)
    ax = axes_of(ax, height=3.8)
    draw_deciles(ax, deciles(held_out))
    mean = float(np.average(held_out.observed, weights=held_out.weight))
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
        raise ValueError(
            f"labels has {plural(len(labels), 'name')}; give two, of the first and of the second predictions."
        )
    one, two = held_out_rows(y, first, sample_weight), held_out_rows(y, second, sample_weight)
    is_ratio = one.predicted.min() > 0.0 and two.predicted.min() > 0.0
    order = two.predicted / one.predicted if is_ratio else two.predicted - one.predicted
    columns = (one.observed, one.predicted, two.predicted)
    means = np.stack([in_parts(order, values, one.weight)[:, 1] for values in columns], axis=1)
    ax = axes_of(ax, height=3.8)
    positions = np.arange(1, len(means) + 1)
    styles = (("observed", INK, "o-"), (labels[0], ORANGE, "s--"), (labels[1], BLUE, "^--"))
    for (label, colour, style), values in zip(styles, means.T, strict=True):
        ax.plot(positions, values, style, color=colour, markersize=4, label=plain(cut(str(label), 40)))
    ax.set_xticks(positions)
    ax.grid(axis="y", color=PALE, linewidth=0.6)
    what = "ratio" if is_ratio else "difference"
    ax.set_xlabel(plain(f"tenth of the {what} of {labels[1]} to {labels[0]}, lowest first"))
    ax.set_ylabel("mean")
    legend(ax)
    titled(ax, "double lift")
    return dressed(ax)


def draw_deciles(ax: Any, rows: list[dict[str, float]]) -> None:
    """Lines of observed and predicted means of `deciles`."""
    positions = [row["decile"] for row in rows]
    for what, colour, style in (("observed", BLUE, "o-"), ("predicted", ORANGE, "s--")):
        ax.plot(positions, [row[what] for row in rows], style, color=colour, markersize=4, label=what)
    ax.set_xticks(range(1, DECILES + 1))
    ax.grid(axis="y", color=PALE, linewidth=0.6)


def draw_reliability(ax: Any, curve: Floats, limits: tuple[float, float]) -> None:
    """Points (predicted, observed) over the diagonal."""
    ax.plot(limits, limits, color=PALE, linewidth=1.5, zorder=1)
    ax.plot(curve[:, 0], curve[:, 1], "o-", color=BLUE, markersize=3.5, linewidth=1, zorder=2)
    ax.set_xlim(*limits)
    ax.set_ylim(*limits)


def held_out_rows(y: Any, prediction: Any, sample_weight: Any = None) -> HeldOutRows:
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
            raise ValueError(
                f"{name} has {plural(len(values), 'value')} and y has {len(observed)}; give one of each a row."
            )
    for name, values in (("y", observed), ("prediction", predicted), ("sample_weight", weight)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds values that are not finite; leave these rows out.")
    if not weight.sum() > 0.0 or weight.min() < 0.0:
        raise ValueError("sample_weight needs weights of 0 or more, and one above 0.")
    return HeldOutRows(np.arange(len(observed)), predicted, observed, weight)


def _observed(y: Any) -> Floats:
    values = pd.Series(np.asarray(y).ravel() if not isinstance(y, pd.Series) else y.to_numpy())
    if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
        return values.to_numpy(dtype=np.float64)
    classes = sorted(values.unique().tolist(), key=str)
    if len(classes) > 2:
        raise ValueError(f"y holds {len(classes)} classes; give a column of 0 and 1 for one of them.")
    return (values == classes[-1]).to_numpy(dtype=np.float64)


def waterfall(
    contributions: pd.Series, *, base: float = 0.0, labels: Sequence[str] | None = None, top: int = 12, ax: Any = None
) -> Any:
    """Draw what a prediction is made of: a bar for each contribution, from a constant to the sum (needs matplotlib).

    Parameters
    ----------
    contributions : pandas.Series
        By term, such as a row of `explain`; contributions of 0 are left out.
    base : float, default 0.0
        Where the bars start: the constant that every row has.
    labels : sequence of str, optional
        Of the contributions; default: the index.
    top : int, default 12
        Number of bars, the largest by absolute value; the others are one bar.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import plots
    >>> ax = plots.waterfall(pd.Series({"colour": 0.7, "size": -0.2}), base=1.5)
    >>> ax.get_title(loc="left")
    '1.5 to 2'
    """
    return draw_waterfall(contributions, base, labels, top=top, ax=ax)


def draw_waterfall(
    contributions: pd.Series, base: float, labels: Sequence[str] | None = None, *, top: int, ax: Any = None,
    title: str = "", unit: str = "linear predictor", link: tuple[Function, Function] | None = None,
) -> Any:  # fmt: skip
    """The same, for models: with a link and its inverse, ticks are predictions and bars factors."""
    check_option("top", top, (Number(at_least=1, whole=True),))
    texts = list(map(str, contributions.index)) if labels is None else list(labels)
    amounts = contributions.to_numpy(dtype=np.float64)
    order = [at for at in np.argsort(-np.abs(amounts), kind="stable") if amounts[at] != 0.0]
    values, names = [float(amounts[at]) for at in order[:top]], [texts[at] for at in order[:top]]
    if len(order) > top:
        values.append(float(amounts[order[top:]].sum()))
        names.append(plural(len(order) - top, "other"))
    ends = base + np.cumsum([0.0, *values])
    ax = axes_of(ax, height=0.34 * max(len(values), 1) + 1.5)
    for position, (value, start) in enumerate(zip(values, ends[:-1], strict=True)):
        ax.barh(position, value, left=start, height=0.62, color=ORANGE if value < 0 else BLUE)
        ax.plot([start + value] * 2, [position, min(position + 1, len(values) - 1)], color=INK, linewidth=0.7, zorder=0)
        text = f"\N{MULTIPLICATION SIGN}{np.exp(value):.3g}" if link is not None else f"{value:+.3g}"
        beyond = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": INK}
        side = "left" if value >= 0 else "right"
        ax.annotate(text, (start + value, position), (3 if value >= 0 else -3, 0), ha=side, **beyond)
    for end, style in ((base, ":"), (ends[-1], "--")):
        ax.axvline(end, color=INK, linewidth=0.9, linestyle=style, zorder=0)
    ax.set_yticks(range(len(values)), [plain(cut(name, 44)) for name in names])
    ax.set_ylim(len(values) - 0.4, -0.6)
    ax.set_xlim(*widened(float(ends.min()), float(ends.max()), 0.16))
    if link is not None:
        _write_predictions(ax, *link)
    ax.set_xlabel(plain(unit))
    ax.grid(axis="x", color=PALE, linewidth=0.6)
    titled(ax, title or f"{base:.4g} to {ends[-1]:.4g}")
    return dressed(ax)


def _write_predictions(ax: Any, link: Function, inverse_link: Function) -> None:
    """Ticks at round predictions; at round linear predictors where there are too few of these."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator

    low, high = inverse_link(np.array(ax.get_xlim())).tolist()
    shown = np.asarray(MaxNLocator(6).tick_values(low, high), dtype=np.float64)
    shown = shown[(shown > low) & (shown < high)]
    if len(shown) < 3 or high > 30.0 * low:
        shown = inverse_link(np.array(MaxNLocator(6).tick_values(*ax.get_xlim())[1:-1]))
    ax.xaxis.set_major_locator(FixedLocator(link(shown).tolist()))
    ax.xaxis.set_major_formatter(FixedFormatter([_prediction_text(float(value)) for value in shown]))


def _prediction_text(value: float) -> str:
    """Three digits; for probabilities near 1 as many more as tell them from 1."""
    digits = 3 if not 0.99 < value < 1.0 else 1 + int(np.ceil(-np.log10(1.0 - value)))
    return f"{value:.{digits}g}"


def learning_curve(model: Any, *, ax: Any = None) -> Any:
    """Draw the loss by iteration of a fitted model: of training, and of held-out rows (needs matplotlib).

    For the score by the number of training rows see scikit-learn's `LearningCurveDisplay`.

    Parameters
    ----------
    model : WideSGDClassifier or WideSGDRegressor
        Or any model with `loss_curve_`, such as scikit-learn's MLPClassifier; `validation_curve_` is drawn where the
        fit had ``early_stopping=True``.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideSGDRegressor, plots
    >>> X = pd.DataFrame({"a": list("uv") * 50})
    >>> model = WideSGDRegressor(max_iter=5, random_state=0).fit(X, [1.0, 2.0] * 50)
    >>> len(plots.learning_curve(model).lines[0].get_xdata())
    5
    """
    curve = getattr(model, "loss_curve_", None)
    if curve is None:
        raise ValueError(f"{type(model).__name__} has no loss_curve_; fit it first, or give a model that is iterative.")
    ax = axes_of(ax, height=3.6)
    held_out = getattr(model, "validation_curve_", None)
    for label, values, colour in (("training rows", curve, BLUE), ("held-out rows", held_out, ORANGE)):
        if values is not None:
            positions = np.arange(1, len(values) + 1)
            ax.plot(positions, values, "o-", color=colour, markersize=3, linewidth=1.4, label=label)
    if held_out is not None:
        ax.axvline(int(np.argmin(held_out)) + 1, color=INK, linewidth=0.9, linestyle=":", label="best")
    ax.set_xlabel("iteration")
    ax.set_ylabel("mean loss")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(axis="y", color=PALE, linewidth=0.6)
    legend(ax)
    titled(ax, f"{type(model).__name__}: loss by iteration")
    return dressed(ax)


def donors(encoder: Any, X: Any, column: str, *, category: Any = None, top: int = 12, ax: Any = None) -> Any:
    """Draw the known categories that an unknown one resembles, with their weights and estimates (needs matplotlib).

    Parameters
    ----------
    encoder : TIWSEncoder
        Fitted.
    X : dataframe
        Rows with unknown categories in the column.
    column : str
    category : optional
        The unknown category; default: the first one in X.
    top : int, default 12
        Maximal number of donors, the heaviest.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import TIWSEncoder, plots
    >>> X = pd.DataFrame({"city": ["Rome", "Milan", "Oslo", "Bergen"] * 20, "land": ["it", "it", "no", "no"] * 20})
    >>> encoder = TIWSEncoder(cols=["city"]).fit(X, [1.0, 1.2, 3.0, 3.3] * 20)
    >>> new = pd.DataFrame({"city": ["Turin"], "land": ["it"]})
    >>> ax = plots.donors(encoder, new, "city")
    >>> sorted(label.get_text() for label in ax.get_yticklabels())
    ['Milan  (20)', 'Rome  (20)']
    """
    table = encoder.donors(X, column, n_donors=top)
    if table.empty:
        raise ValueError(f"Column {column!r} of X holds no unknown category; give rows that have one.")
    wanted = table["category"].iloc[0] if category is None else category
    donors = table[table["category"] == wanted]
    if donors.empty:
        names = ", ".join(map(repr, table["category"].unique()[:5].tolist()))
        raise ValueError(f"{wanted!r} is no unknown category of {column!r} in X; there is {names}.")
    donors = donors[donors["weight"] >= 0.005 * donors["weight"].max()].sort_values("weight", kind="stable")
    ax = axes_of(ax, height=0.3 * len(donors) + 1.4)
    positions = np.arange(len(donors))
    ax.barh(positions, donors["weight"].to_numpy(), height=0.62, color=BLUE)
    sizes = zip(donors["donor"], donors["rows"], strict=True)
    ax.set_yticks(positions, [f"{label_of(name)}  ({int(n):,})" for name, n in sizes])
    if "estimate" in donors:
        texts = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": INK}
        for position, weight, estimate in zip(positions, donors["weight"], donors["estimate"], strict=True):
            ax.annotate(f"{estimate:.4g}", (max(weight, 0.0), position), (4, 0), **texts)
    ax.margins(x=0.12)
    ax.set_xlabel("weight (next to it: the estimate of the known category)" if "estimate" in donors else "weight")
    ax.grid(axis="x", color=PALE, linewidth=0.6)
    titled(ax, f"{cut(str(wanted), 30)}: the known categories of {plain(cut(column, 30))} that it resembles (rows)")
    return dressed(ax)


# -- held-out rows in numbers ------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldOutRows:
    """Held-out rows of a fold: their indices, predicted and observed (probabilities, rates, values), and weights."""

    rows: Ints
    predicted: Floats
    observed: Floats
    weight: Floats


def pooled(folds: list[HeldOutRows]) -> HeldOutRows:
    """The rows of all folds, one after another."""
    fields = ("rows", "predicted", "observed", "weight")
    return HeldOutRows(*(np.concatenate([getattr(fold, name) for fold in folds]) for name in fields))


def deciles(held_out: HeldOutRows) -> list[dict[str, float]]:
    """Tenths of the weight in the order of prediction, lowest first; equal predictions stay together.

    Each with its rows, share of weight, mean predicted and observed, their ratio, and lift: observed over the mean.
    """
    tenth = _tenths(held_out.predicted, held_out.weight)
    weight = np.bincount(tenth, held_out.weight, minlength=DECILES)
    rows = np.bincount(tenth, minlength=DECILES)
    mean = float(np.average(held_out.observed, weights=held_out.weight))
    means = in_parts(held_out.predicted, held_out.observed, held_out.weight).tolist()
    out = []
    for decile, (predicted, observed) in zip(np.flatnonzero(weight > 0), means, strict=True):
        out.append({
            "decile": int(decile) + 1, "rows": int(rows[decile]), "share": float(weight[decile] / weight.sum()),
            "predicted": predicted, "observed": observed,
            "ratio": predicted / observed if observed > 0 else float("nan"),
            "lift": observed / mean if mean > 0 and held_out.observed.min() >= 0 else float("nan"),
        })  # fmt: skip
    return out


def lorenz(order: Floats, observed: Floats, weight: Floats) -> Floats:
    """Points (n, 2) of the ordered Lorenz curve: shares of weight and of what was observed, lowest `order` first.

    Rows of equal `order` are one straight piece, whatever their order in the table.
    """
    distinct, index = np.unique(order, return_inverse=True)
    mass = np.bincount(index, weight, minlength=len(distinct))
    total = np.bincount(index, weight * observed, minlength=len(distinct))
    points = np.stack([np.cumsum(mass), np.cumsum(total)], axis=1)
    return np.asarray(np.concatenate([[[0.0, 0.0]], points]) / points[-1])


def gini(held_out: HeldOutRows) -> float:
    """The normalized Gini coefficient: that of the predictions over that of the perfect ordering.

    For two classes it is 2 AUC - 1. NaN where all observed values are equal.
    """
    centred = held_out.observed - np.average(held_out.observed, weights=held_out.weight)
    orders = held_out.predicted, held_out.observed
    by_prediction, perfect = (_concentration(order, centred, held_out.weight) for order in orders)
    return by_prediction / perfect if perfect else float("nan")


def mean_gini(folds: list[HeldOutRows]) -> float | None:
    """The mean over folds, as other scores; None where a fold has none."""
    values = [gini(fold) for fold in folds]
    return None if np.isnan(values).any() else float(np.mean(values))


def _concentration(order: Floats, centred: Floats, weight: Floats) -> float:
    """The area between the diagonal and the cumulative sums of centred values, which may be negative ones."""
    distinct, index = np.unique(order, return_inverse=True)
    mass = np.bincount(index, weight, minlength=len(distinct))
    total = np.cumsum(np.bincount(index, weight * centred, minlength=len(distinct)))
    before = np.concatenate([[0.0], total[:-1]])
    return -float((mass * (before + total) / 2).sum())


def in_parts(predicted: Floats, came: Floats, weight: Floats) -> Floats:
    """Means (parts, 2) of tenths of the weight in the order of the prediction, without those that are empty."""
    part = _tenths(predicted, weight)
    total = np.bincount(part, weight, minlength=DECILES)
    kept = total > 0
    sums = [np.bincount(part, weight * values, minlength=DECILES)[kept] / total[kept] for values in (predicted, came)]
    return np.stack(sums, axis=1)


def _tenths(order: Floats, weight: Floats) -> Ints:
    """The tenth of the weight (n,), from 0 on, in which each row is; rows of equal `order` stay together."""
    distinct, index = np.unique(order, return_inverse=True)
    mass = np.bincount(index, weight, minlength=len(distinct))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return np.minimum((middle * DECILES).astype(np.int64), DECILES - 1)[index]


STANDARD_ERRORS = 3.0
_BINS = 10
_MIN_ROWS = 30  # of a cell that is flagged
_MAX_CELLS = 15  # shown of a column
_MAX_CATEGORIES = 200  # of a column; rarer ones are one cell


def error_tables(
    held_out: HeldOutRows, X: pd.DataFrame, row_weight: Floats | None, task: str, order: list[str],
    clusters: Ints | None = None, most: int = 5,
) -> dict[str, Any]:  # fmt: skip
    """By column: rows, observed, predicted, difference with its standard error, largest contribution first.

    Parameters
    ----------
    held_out : HeldOutRows
        Of one model, all folds; rows tested in several repeats count once, with their mean prediction.
    X : pandas.DataFrame
        The table of all rows, which `held_out.rows` are indices of.
    row_weight : array of shape (n_rows,), optional
        Sample weights without exposure.
    task : {"binary", "count", "regression"}
    order : list of str
        Features, those that matter most first: the first `most` are shown, and others that have a flagged cell.
    clusters : array of shape (n_rows,), optional
        Groups or categories held out whole: then residuals vary by these.

    Returns
    -------
    dict
        `columns`: name and cells; `cells`: how many were tested; `limit`: of |z| for a flag; `flagged`: how many.
    """
    rows, predicted, observed, weight = _by_row(held_out)
    row_weight = np.ones(len(rows)) if row_weight is None else row_weight[rows]
    cluster = rows if clusters is None else clusters[rows]
    tables = []
    for name in [name for name in order if name in X.columns]:
        codes, labels = cells_of(X[name], rows)
        tables.append((name, _cells(codes, labels, predicted, observed, weight, row_weight, cluster, task)))
    number = sum(len(cells) for _, cells in tables)
    limit = max(STANDARD_ERRORS, float(stats.norm.isf(stats.norm.sf(STANDARD_ERRORS) / max(number, 1))))
    columns = []
    for position, (name, cells) in enumerate(tables):
        for cell in cells:
            cell["flagged"] = bool(abs(cell["z"]) > limit and cell["rows"] >= _MIN_ROWS)
        flagged = sum(cell["flagged"] for cell in cells)
        if position < most or flagged:
            cells.sort(key=lambda cell: (not cell["flagged"], -abs(cell["contribution"])))
            columns.append({"column": name, "cells": cells[:_MAX_CELLS], "of": len(cells), "flagged": flagged})
    flags = sum(cell["flagged"] for _, cells in tables for cell in cells)
    return {"columns": columns, "cells": number, "limit": limit, "flagged": flags}


def cells_of(column: pd.Series, rows: Ints) -> tuple[Ints, list[str]]:
    """Codes of some rows of a column, and the labels of the codes: categories, or bins of about equal size."""
    values = column.iloc[rows]
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        numbers = values.to_numpy(dtype=np.float64)
        distinct = np.unique(numbers[~np.isnan(numbers)])
        if len(distinct) > _BINS:
            edges = np.unique(np.nanquantile(numbers, np.arange(1, _BINS) / _BINS, method="lower"))
            codes = np.searchsorted(edges, numbers, side="left")
            ends = [f"{edge:.6g}" for edge in edges]
            labels = [f"up to {ends[0]}", *(f"({a}, {b}]" for a, b in pairwise(ends)), f"over {ends[-1]}"]
        else:
            codes, labels = np.searchsorted(distinct, numbers), [f"{value:.6g}" for value in distinct]
        missing = np.isnan(numbers)
        return np.where(missing, len(labels), codes).astype(np.int64), [*labels, "(missing)"]
    codes, categories = pd.factorize(values, use_na_sentinel=True)
    labels = [str(category) for category in categories] + ["(missing)"]
    codes = np.where(codes < 0, len(categories), codes).astype(np.int64)
    if len(labels) > _MAX_CATEGORIES:
        count = np.bincount(codes, minlength=len(labels))
        common = np.argsort(-count, kind="stable")[: _MAX_CATEGORIES - 1]
        new = np.full(len(labels), len(common))
        new[common] = np.arange(len(common))
        rest = len(labels) - len(common)
        return new[codes], [labels[code] for code in common] + [f"({plural(rest, 'less frequent one')})"]
    return codes, labels


def _by_row(held_out: HeldOutRows) -> tuple[Ints, Floats, Floats, Floats]:
    """Each row once, with its mean prediction over repeats."""
    rows, first, index, times = np.unique(held_out.rows, return_index=True, return_inverse=True, return_counts=True)
    return rows, np.bincount(index, held_out.predicted) / times, held_out.observed[first], held_out.weight[first]


def _cells(
    codes: Ints, labels: list[str], predicted: Floats, observed: Floats, weight: Floats, row_weight: Floats,
    cluster: Ints, task: str,
) -> list[dict[str, Any]]:  # fmt: skip
    """Each cell's means, its sum of residuals, and the standard error of that."""
    n = len(labels)
    residual = observed - predicted
    mass, total = np.bincount(codes, weight, n), np.bincount(codes, weight * residual, n)
    sums = [np.bincount(codes, weight * values, n) for values in (observed, predicted)]
    # squares of the sums of the clusters in each cell
    unit = np.unique(cluster, return_inverse=True)[1]
    width = int(unit.max()) + 1
    pair, index = np.unique(codes * width + unit, return_inverse=True)
    variance = np.bincount(pair // width, np.bincount(index, weight * residual) ** 2, minlength=n)
    if task == "binary":
        of_events = np.bincount(codes, weight**2 * np.clip(predicted * (1 - predicted), 0, None), n)
        variance = np.maximum(variance, of_events)
    elif task == "count":  # `weight` has the exposure in it, so that this is the expected count
        variance = np.maximum(variance, np.bincount(codes, row_weight * weight * np.maximum(predicted, 0.0), n))
    rows = np.bincount(codes, minlength=n)
    out = []
    for code in np.flatnonzero(mass > 0):
        error = float(np.sqrt(variance[code]))
        out.append({
            "category": labels[code], "rows": int(rows[code]), "observed": float(sums[0][code] / mass[code]),
            "predicted": float(sums[1][code] / mass[code]), "difference": float(total[code] / mass[code]),
            "error": error / float(mass[code]), "z": float(total[code]) / error if error > 0 else 0.0,
            "contribution": float(total[code]),
        })  # fmt: skip
    return out
