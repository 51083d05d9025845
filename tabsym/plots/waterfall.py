"""One prediction as a waterfall: from the constant, term by term, to the linear predictor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.plots.style import BLUE, INK, ORANGE, PALE, axes_of, cut, dressed, plain, titled, widened
from tabsym.validation import Number, check_option

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]


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
    own = contributions.to_numpy(dtype=np.float64)
    order = [at for at in np.argsort(-np.abs(own), kind="stable") if own[at] != 0.0]
    values, names = [float(own[at]) for at in order[:top]], [texts[at] for at in order[:top]]
    if len(order) > top:
        values.append(float(own[order[top:]].sum()))
        names.append(f"{len(order) - top} others")
    ends = base + np.cumsum([0.0, *values])
    ax = axes_of(ax, height=0.34 * max(len(values), 1) + 1.5)
    for place, (value, start) in enumerate(zip(values, ends[:-1], strict=True)):
        ax.barh(place, value, left=start, height=0.62, color=ORANGE if value < 0 else BLUE)
        ax.plot([start + value] * 2, [place, min(place + 1, len(values) - 1)], color=INK, linewidth=0.7, zorder=0)
        text = f"\N{MULTIPLICATION SIGN}{np.exp(value):.3g}" if link is not None else f"{value:+.3g}"
        beyond = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": INK}
        side = "left" if value >= 0 else "right"
        ax.annotate(text, (start + value, place), (3 if value >= 0 else -3, 0), ha=side, **beyond)
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
