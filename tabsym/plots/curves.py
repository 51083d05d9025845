"""Training curves, and the known categories that an unknown one resembles."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabsym.plots.style import BLUE, INK, ORANGE, PALE, axes_of, cut, dressed, label_of, legend, plain, titled


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
    curves = [("training rows", curve, BLUE), ("held-out rows", getattr(model, "validation_curve_", None), ORANGE)]
    for label, values, colour in curves:
        if values is not None:
            places = np.arange(1, len(values) + 1)
            ax.plot(places, values, "o-", color=colour, markersize=3, linewidth=1.4, label=label)
    best = getattr(model, "validation_curve_", None)
    if best is not None:
        ax.axvline(int(np.argmin(best)) + 1, color=INK, linewidth=0.9, linestyle=":", label="best")
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
    found = encoder.donors(X, column, n_donors=top)
    if found.empty:
        raise ValueError(f"Column {column!r} of X holds no unknown category; give rows that have one.")
    wanted = found["category"].iloc[0] if category is None else category
    own = found[found["category"] == wanted]
    if own.empty:
        names = ", ".join(map(repr, found["category"].unique()[:5].tolist()))
        raise ValueError(f"{wanted!r} is no unknown category of {column!r} in X; there is {names}.")
    own = own[own["weight"] >= 0.005 * own["weight"].max()].sort_values("weight", kind="stable")
    ax = axes_of(ax, height=0.3 * len(own) + 1.4)
    places = np.arange(len(own))
    ax.barh(places, own["weight"].to_numpy(), height=0.62, color=BLUE)
    ax.set_yticks(places, [f"{label_of(one)}  ({int(n):,})" for one, n in zip(own["donor"], own["rows"], strict=True)])
    if "estimate" in own:
        texts = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": INK}
        for place, weight, estimate in zip(places, own["weight"], own["estimate"], strict=True):
            ax.annotate(f"{estimate:.4g}", (max(weight, 0.0), place), (4, 0), **texts)
    ax.margins(x=0.12)
    ax.set_xlabel("weight (beside it: the estimate of the known category)" if "estimate" in own else "weight")
    ax.grid(axis="x", color=PALE, linewidth=0.6)
    titled(ax, f"{cut(str(wanted), 30)}: the known categories of {plain(cut(column, 30))} that it resembles (rows)")
    return dressed(ax)
