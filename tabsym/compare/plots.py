"""The plots of a comparison, as images without scripts, and the page of them that a notebook shows.

Axes are chosen without contenders that are far off.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.compare.ranking import scores_of
from tabsym.compare.results import load_results
from tabsym.compare.table.prepare import CLASSES
from tabsym.compare.text import cells, headings
from tabsym.plots.predictions import draw_deciles, draw_reliability
from tabsym.plots.style import (
    BLUE,
    COLOURS,
    INK,
    PALE,
    PALE_BLUE,
    cut,
    details,
    dressed,
    fragment,
    legend,
    new_figure,
    paragraph,
    plain,
    svg,
    table,
    text,
    widened,
)

Floats = NDArray[np.float64]

_FAR = 3.0  # times the spread of the better half: what lies further out is put at the edge, with its number


def scores_plot(settings: dict[str, Any], contenders: dict[str, dict[str, Any]], ranking: list[dict[str, Any]]) -> str:
    """Each contender's scores by fold, and their mean."""
    metric = settings["metric"]
    figure, axes = _figure(0.4 * len(ranking) + 1.2)
    by_name = {row["name"]: scores_of(contenders[row["name"]], metric) for row in ranking}
    low, high = limits(np.array([row["score"] for row in ranking]), np.concatenate(list(by_name.values())))
    for position, row in enumerate(reversed(ranking)):
        values = by_name[row["name"]]
        inside = (values >= low) & (values <= high)
        axes.plot(values[inside], np.full(inside.sum(), position), "o", color=PALE_BLUE, markersize=5, zorder=2)
        for beyond, edge, mark in ((values < low, low, "<"), (values > high, high, ">")):
            if beyond.any():
                axes.plot([edge], [position], mark, color=PALE_BLUE, markersize=7, zorder=2, clip_on=False)
        if low <= row["score"] <= high:
            axes.plot([row["score"]], [position], "|", color=BLUE, markersize=16, markeredgewidth=2.5, zorder=3)
        else:
            right = row["score"] > high
            axes.annotate(
                f"mean {row['score']:.3g}", (high if right else low, position), (-10 if right else 10, 0),
                textcoords="offset points", ha="right" if right else "left", va="center", fontsize=9, color=BLUE,
            )  # fmt: skip
    names = [f"{plain(row['label'])}  {position}" for position, row in enumerate(ranking, 1)]
    axes.set_yticks(range(len(ranking)), names[::-1])
    axes.set_ylim(-0.6, len(ranking) - 0.4)  # room for the marks of the first and the last
    axes.set_xlim(*widened(low, high))
    better = "right" if settings["larger_is_better"] else "left"
    far = any((values < low).any() or (values > high).any() for values in by_name.values())
    arrows = "; arrows: further out" if far else ""
    axes.set_xlabel(f"{metric}: each fold, and the mean (better to the {better}{arrows})", fontsize=9)
    axes.grid(axis="x", color=PALE)
    return svg(figure)


def time_plot(settings: dict[str, Any], ranking: list[dict[str, Any]]) -> str:
    """Score against fit time; what is far off lies at the edge."""
    from matplotlib.ticker import LogFormatter

    scores = np.array([row["score"] for row in ranking])
    low, high = limits(scores, scores)
    figure, axes = _figure(4.2)
    for position, row in enumerate(ranking):
        shown = min(max(row["score"], low), high)
        far = shown != row["score"]
        worse_is_down = (row["score"] < low) == settings["larger_is_better"]
        mark = ("v" if worse_is_down else "^") if far else "o"
        axes.plot(row["fit_seconds"], shown, mark, color=BLUE if position == 0 else PALE_BLUE, clip_on=False)
        text = f"{position + 1}" + (f" ({row['score']:.3g})" if far else "")
        axes.annotate(text, (row["fit_seconds"], shown), (5, 4), textcoords="offset points", fontsize=10, color=INK)
    axes.set_xscale("log")
    axes.margins(x=0.08)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))  # seconds, where a decade is all there is
    axes.set_ylim(*widened(low, high, 0.12))
    axes.set_xlabel("fit, seconds (median of folds, logarithmic)")
    axes.set_ylabel(settings["metric"] + " (better is up)")
    if not settings["larger_is_better"]:
        axes.invert_yaxis()
    axes.grid(color=PALE)
    return svg(figure)


def reliability_plot(curves: list[tuple[str, Floats]], task: str) -> str:
    """Mean outcome against mean prediction by tenths of the rows, a small panel each."""
    columns = min(4, len(curves))
    rows = -(-len(curves) // columns)
    figure, panels = _figure(2.4 * rows + 0.4, rows, columns)
    every = np.concatenate([curve for _, curve in curves])
    low, high = float(every.min()), float(every.max())
    if task not in CLASSES:
        low, high = reliability_limits(every)
    low, high = widened(low, high)
    panels = np.atleast_1d(panels)
    for panel, (label, curve) in zip(panels.flat, curves, strict=False):
        draw_reliability(panel, curve, (low, high))
        title = textwrap.fill(textwrap.shorten(label, 56, placeholder=" …"), 28)
        panel.set_title("\n".join(map(plain, title.splitlines())), fontsize=8, color=INK)
        panel.tick_params(labelsize=7)
    for panel in list(panels.flat)[len(curves) :]:
        panel.set_visible(False)
    figure.supxlabel("predicted (means of tenths of the test rows)", fontsize=9, color=INK)
    figure.supylabel("observed", fontsize=9, color=INK)
    return svg(figure)


def reliability_limits(every: Floats) -> tuple[float, float]:
    """All that was observed, and what was predicted within thrice that range, of points (predicted, observed)."""
    low, high = float(every[:, 1].min()), float(every[:, 1].max())
    room = high - low
    near = every[(every[:, 0] >= low - room) & (every[:, 0] <= high + room), 0]
    return min(low, float(near.min(initial=low))), max(high, float(near.max(initial=high)))


def ranks_plot(means: pd.Series, critical: float) -> str:
    """`ranks_figure` for a page."""
    return svg(ranks_figure(means, critical))


def ranks_figure(means: pd.Series, critical: float) -> Any:
    """Mean ranks, best first, with the critical difference from the best on, as a figure of matplotlib."""
    figure, axes = _figure(0.35 * len(means) + 1.2)
    positions = range(len(means))
    best = float(means.iloc[0])
    axes.axvspan(best, best + critical, color=PALE, zorder=1)
    axes.plot(means.to_numpy(), positions, "o", color=BLUE, zorder=3)
    axes.set_yticks(positions, [plain(str(name)) for name in means.index])
    axes.invert_yaxis()
    axes.set_xlim(0.5, len(means) + 0.5)
    axes.set_xlabel("mean rank over tables (better to the left; the band: the critical difference)")
    return figure


def limits(means: Floats, values: Floats) -> tuple[float, float]:
    """What an axis shows: all values, but for those far beyond the better-behaved half of the contenders."""
    middle = float(np.median(means))
    reach = float(np.median(np.abs(means - middle)))
    near = np.abs(values - middle) <= _FAR * max(3 * reach, 1e-12 + 0.02 * abs(middle))
    kept = values[near] if near.any() else values
    return float(kept.min()), float(kept.max())


def _figure(height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    figure = new_figure(8.4, height)
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        dressed(one)
    return figure, axes if rows * columns > 1 else axes[0, 0]


_MAX_POINTS = 400  # of a curve in the page


def lift_plot(tables: list[tuple[str, list[dict[str, float]]]]) -> str:
    """Predicted and observed means by decile of prediction, a panel for each of a few contenders."""
    figure, panels = _figure(3.0, 1, len(tables))
    every = [row[what] for _, rows in tables for row in rows for what in ("observed", "predicted")]
    limits = widened(min(every), max(every))
    for panel, (label, rows) in zip(np.atleast_1d(panels).flat, tables, strict=True):
        draw_deciles(panel, rows)
        panel.set_title(_title(label), fontsize=9, color=INK)
        panel.set_ylim(*limits)  # the same for all: what one panel magnifies looks like an effect
        panel.tick_params(labelsize=7)
    legend(np.atleast_1d(panels).flat[0])
    figure.supxlabel("decile of prediction, lowest first", fontsize=9, color=INK)
    return svg(figure)


def lorenz_plot(curves: list[tuple[str, Floats]], of_weight: str, of_target: str) -> str:
    """Ordered Lorenz curves (n, 2) of a few contenders in one panel; the diagonal orders nothing."""
    figure, axes = _figure(4.6)
    axes.plot([0, 1], [0, 1], color="#999", linewidth=1)
    for (label, curve), colour in zip(curves, COLOURS, strict=False):
        step = max(1, len(curve) // _MAX_POINTS)
        kept = np.concatenate([curve[:-1:step], curve[-1:]])
        axes.plot(kept[:, 0], kept[:, 1], color=colour, linewidth=1.5, label=_title(label))
    axes.set_xlabel(f"cumulative fraction of {of_weight}, lowest predictions first", fontsize=9)
    axes.set_ylabel(f"cumulative fraction of {of_target}", fontsize=9)
    axes.set_aspect("equal")
    axes.grid(color=PALE)
    legend(axes, loc="upper left")
    return svg(figure)


def _title(label: Any) -> str:
    return plain(cut(str(label), 34))


def comparison_html(comparison: Any) -> str:
    """The page of a `Comparison`; without pictures where its folder is gone."""
    ranking = comparison.ranking.to_dict("records")
    parts = [paragraph(sentence) for sentence in comparison.summary]
    try:
        results = load_results(comparison.folder)
    except (ValueError, OSError):
        results = None
    if ranking and results is not None:
        settings = results.settings
        rows = [cells(row, position, settings) for position, row in enumerate(ranking, 1)]
        parts.append(table(headings(settings, judged=True), rows))
        plots = [("Scores by fold", scores_plot(settings, results.contenders, ranking))]
        plots.append(("Score against fit time; numbers are ranks", time_plot(settings, ranking)))
        images = (f'<p><img src="{plot}" alt="{text(caption)}"></p>' for caption, plot in plots)
        parts.append(details("scores by fold, and times", "".join(images), is_open=True))
    elif ranking:
        parts.append(table(["contender", "score"], [[row["label"], f"{row['score']:.6g}"] for row in ranking]))
    if comparison.failures:
        lines = [[name, why] for name, why in comparison.failures.items()]
        parts.append(details("failed or not run", table(["contender", "why"], lines)))
    return fragment(*parts, paragraph(f"The report: {comparison.folder / 'report.html'}", muted=True))
