"""Pictures of the parts of a column: the target in each, and the grid with the intervals of a continuous target."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabsym.modl import Groups, Intervals
from tabsym.plots.style import BLUE, INK, ORANGE, PALE_BLUE, axes_of, cut, dressed, legend, plain, titled
from tabsym.plots.terms import diverging

_MAX_COLOURS = 12  # classes with a colour and a line of their own
_LINES_BETWEEN = 60  # parts up to which white lines keep them apart


def plot_parts(fitted: Intervals | Groups, name: str, *, ax: Any = None) -> Any:
    """Bars as wide as the part has rows: the target's distribution in each, and a line for that of all rows."""
    target = fitted.target
    rows = fitted.partition.counts.sum(axis=1)
    widths = rows / rows.sum()
    lefts = np.cumsum(widths) - widths
    ax = axes_of(ax, 8, 4.5)
    style: dict[str, Any] = {"align": "edge"}
    if len(rows) <= _LINES_BETWEEN:
        style |= {"edgecolor": "#ffffff80", "linewidth": 0.8}
    if target.means is not None:
        _plot_means(ax, target, lefts, widths, style)
    else:
        _plot_shares(ax, target, lefts, widths, style)
    _label_parts(ax.xaxis, fitted.labels, lefts, widths)
    ax.set_xlim(0, 1)
    level = fitted.partition.level
    titled(ax, f"{name}: {len(rows)} parts, Level {level:.4f} (width: rows)")
    return dressed(ax)


def _plot_means(ax: Any, target: Any, lefts: Any, widths: Any, style: dict[str, Any]) -> None:
    ax.bar(lefts, target.means, widths, color=PALE_BLUE, **style)
    if not target.is_classes:
        middle = lefts + widths / 2
        ax.errorbar(middle, target.means, target.deviations, fmt="none", ecolor=BLUE, elinewidth=0.8, capsize=2)
    ax.axhline(float(widths @ target.means), color=ORANGE, linewidth=1.2, linestyle="--", label="all rows")
    ax.set_ylabel(plain(f"P({target.names[1]})" if target.is_classes else "mean target (bars: sd)"))
    legend(ax, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _plot_shares(ax: Any, target: Any, lefts: Any, widths: Any, style: dict[str, Any]) -> None:
    from matplotlib import colormaps

    shares = target.counts / np.maximum(target.counts.sum(axis=1, keepdims=True), 1e-300)
    largest = sorted(np.argsort(-target.counts.sum(axis=0), kind="stable")[:_MAX_COLOURS].tolist())
    colours = dict(zip(largest, (colormaps["tab20"](k) for k in range(_MAX_COLOURS)), strict=False))
    bottom, others = np.zeros(len(widths)), False
    for j, name in enumerate(target.names):
        label = plain(str(name)) if j in colours else "_" if others else f"{len(target.names) - len(largest)} others"
        others = others or j not in colours
        ax.bar(lefts, shares[:, j], widths, bottom=bottom, color=colours.get(j, "#c9c9c9"), label=label, **style)
        bottom += shares[:, j]
    few = len(target.names) <= _MAX_COLOURS
    for height in np.cumsum(widths @ shares)[:-1] if few else ():
        ax.axhline(float(height), color=INK, linewidth=0.5, linestyle="--")
    ax.set_ylabel("P(class | part)" + ("; dashed: all rows" if few else ""))
    legend(ax, loc="upper left", bbox_to_anchor=(1.01, 1.0), reverse=True)  # as they lie


def plot_cells(fitted: Intervals | Groups, name: str, *, ax: Any = None) -> Any:
    """The cells of a grid by rows, coloured by the ratio of their rows to those of independence."""
    from matplotlib.colors import TwoSlopeNorm

    counts = fitted.target.counts
    ax = axes_of(ax, 8, 5)
    total = counts.sum()
    across, down = counts.sum(axis=1) / total, counts.sum(axis=0) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log2(counts / (total * np.outer(across, down)))
    known = np.where(np.isfinite(ratio), ratio, np.nan)
    reach = max(1.0, float(np.nanmax(np.abs(known))))
    edges = [np.append(0.0, np.cumsum(one)) for one in (across, down)]
    style = {"cmap": diverging(), "norm": TwoSlopeNorm(0.0, -reach, reach)}
    cells = ax.pcolormesh(*edges, np.ma.masked_invalid(known.T), edgecolors="#ffffff40", linewidth=0.4, **style)
    _label_parts(ax.xaxis, fitted.labels, edges[0][:-1], across)
    _label_parts(ax.yaxis, list(map(str, fitted.target.names)), edges[1][:-1], down, rotation=0)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel(plain(cut(name, 60)))
    ax.set_ylabel("target")
    bar = ax.figure.colorbar(cells, ax=ax, fraction=0.05, pad=0.02)
    ticks = [tick for tick in bar.get_ticks() if abs(tick) <= reach]
    bar.set_ticks(ticks, labels=[f"{2.0**tick:.3g}" for tick in ticks])
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)
    bar.set_label("rows, over those of independence", fontsize=8, color=INK)
    titled(ax, f"{name}: {counts.shape[0]} parts by {counts.shape[1]} intervals of the target (sizes: rows)")
    return dressed(ax)


def _label_parts(axis: Any, labels: list[str], lefts: Any, widths: Any, rotation: float = 35) -> None:
    """Labels of the parts, where there is room for one."""
    middles, shown = lefts + widths / 2, [0]
    for i in range(1, len(labels)):
        if middles[i] - middles[shown[-1]] >= 0.03:
            shown.append(i)
    ticks = [float(middles[i]) for i in shown]
    axis.set_ticks(ticks, [plain(cut(labels[i], 28)) for i in shown], rotation=rotation, ha="right", fontsize=8)
