"""Pictures of a term's coefficients: points with intervals, curves to scale with the rows below, heatmaps.

They draw rows of `coef_table` (columns `category`, `low`, `high`, `value`, `lower`, `upper`, `sd`, `rows`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.plots.style import (
    BLUE,
    INK,
    ORANGE,
    PALE,
    axes_of,
    category_text,
    coloured,
    cut,
    dressed,
    label_of,
    legend,
    limits_of,
    plain,
    show_as_ratios,
    titled,
)

Floats = NDArray[np.float64]

MAX_SIDE, MAX_ORDERED_SIDE = 30, 60
"""Rows and columns of a heatmap; the second where they have an order, as the weeks of a year have."""
_MAX_WRITTEN = 120
"""Cells of a heatmap up to which their values are written into them."""
_SKEWED = 8.0
"""A ratio of the upper to the lower half of the bounds from which on a positive column has a logarithmic axis."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
_ROWS_HEIGHT = 0.16
"""Of the axes, for the bars of rows."""


@dataclass(frozen=True)
class Look:
    """The legend of a plot of coefficients.

    `name`: the term; `unit`: the label of the values' axis; `ratios`: whether values are logarithms to be shown as
    ratios, around 1; `level` of the intervals, None where there are none; `note`: more for the title.
    """

    name: str
    unit: str
    ratios: bool
    level: float | None
    note: str = ""

    def title(self, more: str = "") -> str:
        """The title of a picture."""
        words = [text for text in (self.note, more) if text]
        words += [f"{100 * self.level:g} % intervals"] if self.level is not None else []
        return cut(self.name, 60) + (f" ({'; '.join(words)})" if words else "")

    def value(self, number: float) -> str:
        """A value in words: a ratio where ratios are shown."""
        return f"{np.exp(number):.3g}" if self.ratios else f"{number:.3g}"


def draw_categories(table: pd.DataFrame, look: Look, *, top: int, ax: Any = None) -> Any:
    """Points with intervals, the highest value above; the most frequent categories, or the largest where none is known.

    The labels have the training rows.
    """
    rows = table["rows"]
    measure = rows if rows.notna().all() else table["value"].abs()
    shown = table.loc[measure.sort_values(ascending=False, kind="stable").index[:top]]
    shown = shown.sort_values("value", kind="stable")
    ax = axes_of(ax, height=0.26 * len(shown) + 1.3)
    positions, values = np.arange(len(shown)), shown["value"].to_numpy()
    lower, upper = shown["lower"].to_numpy(), shown["upper"].to_numpy()
    known = np.isfinite(lower) & np.isfinite(upper)
    ax.axvline(0.0, color=INK, linewidth=0.8)
    colour = [ORANGE if value < 0 else BLUE for value in values]
    for position in positions[np.isinf(shown["sd"].to_numpy())]:  # its interval is everything
        ax.axhline(position, color=INK, linewidth=1, linestyle=":")
    ax.hlines(
        positions[known],
        lower[known],
        upper[known],
        colors=[colour[position] for position in positions[known]],
        linewidth=2,
    )
    ax.scatter(values, positions, s=26, color=colour, zorder=3)
    labels = [label_of(category) for category in shown["category"]]
    if rows.notna().all():
        labels = [f"{label}  ({int(count):,})" for label, count in zip(labels, shown["rows"], strict=True)]
    ax.set_yticks(positions, labels)
    ax.set_ylim(-0.7, len(shown) - 0.3)
    ax.set_xlim(*limits_of(np.append(values, 0.0), lower, upper))
    _label_values(ax, ax.xaxis, look, values)
    ax.grid(axis="x", color=PALE, linewidth=0.6)
    which = "most frequent" if rows.notna().all() else "largest"
    capped = f"the {len(shown)} {which} of {len(table):,}" if len(table) > len(shown) else ""
    titled(ax, look.title("; ".join(filter(None, [capped, "training rows" if rows.notna().all() else ""]))))
    return dressed(ax)


def draw_curve(
    tables: dict[str, pd.DataFrame], look: Look, column: str, *, is_date: bool = False, ax: Any = None
) -> Any:
    """A step for each bin ``(low, high]`` of a column, to scale, a line for each class; the rows as bars below.

    The outer bins have no end: they are drawn as wide as their neighbours. A missing value is a point to the left.
    """
    ax = axes_of(ax, height=3.6)
    first = next(iter(tables.values()))
    apart = int(first["low"].isna().iloc[0])
    inner = first["high"].to_numpy(dtype=np.float64)[apart:-1]
    is_log = not is_date and _is_skewed(inner)
    edges = _finite_edges(inner, is_log)
    for label, table, colour in coloured(tables):
        values, lower, upper = (table[name].to_numpy()[apart:] for name in ("value", "lower", "upper"))
        ax.plot(edges, _repeat_last(values), color=colour, drawstyle="steps-post", linewidth=1.6, label=plain(label))
        if look.level is not None:
            band = {"step": "post", "color": colour, "alpha": 0.22, "linewidth": 0}
            ax.fill_between(edges, _repeat_last(lower), _repeat_last(upper), **band)
    if is_log:
        ax.set_xscale("log")
    left = _draw_missing(ax, tables, edges, is_log) if apart else edges[0]
    every = pd.concat(list(tables.values()))
    shown, lower, upper = (every[name].to_numpy() for name in ("value", "lower", "upper"))
    low, high = limits_of(np.append(shown, 0.0), lower, upper)
    ax.axhline(0.0, color=INK, linewidth=0.8)
    ax.set_xlim(left, edges[-1])
    if first["rows"].notna().all():
        low -= 1.15 * _ROWS_HEIGHT * (high - low) / (1.0 - _ROWS_HEIGHT)
        _draw_rows(ax, edges, first["rows"].to_numpy(dtype=np.float64)[apart:], is_log)
    ax.set_ylim(low, high)
    if apart:  # the word next to the point of missing values, where the point is not
        is_high = np.mean([table["value"].iloc[0] for table in tables.values()]) > np.mean(ax.get_ylim())
        x, y = float(np.sqrt(left * edges[0]) if is_log else (left + edges[0]) / 2), 0.02 if is_high else 0.98
        at = {"ha": "center", "va": "bottom" if is_high else "top", "rotation": 90, "fontsize": 7, "color": INK}
        ax.text(x, y, "missing", transform=ax.get_xaxis_transform(), **at)
    _label_values(ax, ax.yaxis, look, shown)
    if is_date:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(maxticks=8)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    ax.set_xlabel(plain(cut(column, 60)) + (" (logarithmic)" if is_log else ""))
    if len(tables) > 1:
        legend(ax, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    titled(ax, look.title("bars: rows per unit" if first["rows"].notna().all() else ""))
    return dressed(ax)


def draw_ordered(tables: dict[str, pd.DataFrame], look: Look, column: str, *, ax: Any = None) -> Any:
    """Points with intervals in the order given, joined by a line, one for each class."""
    ax = axes_of(ax, height=3.6)
    for label, table, colour in coloured(tables):
        positions, values = np.arange(len(table)), table["value"].to_numpy()
        ax.plot(positions, values, "o-", color=colour, markersize=4, linewidth=1.2, label=plain(label))
        known = np.isfinite(table["lower"].to_numpy()) & np.isfinite(table["upper"].to_numpy())
        ax.vlines(positions[known], table["lower"].to_numpy()[known], table["upper"].to_numpy()[known], colors=colour)
    first = next(iter(tables.values()))
    labels = [label_of(category, 16) for category in first["category"]]
    turned = {"rotation": 35, "ha": "right"} if sum(map(len, labels)) > 40 else {}
    ax.set_xticks(np.arange(len(first)), labels, **turned)
    ax.axhline(0.0, color=INK, linewidth=0.8)
    ax.set_xlabel(plain(cut(column, 60)))
    _label_values(ax, ax.yaxis, look, np.concatenate([table["value"].to_numpy() for table in tables.values()]))
    if len(tables) > 1:
        legend(ax)
    titled(ax, look.title())
    return dressed(ax)


def draw_heatmap(
    table: pd.DataFrame, look: Look, columns: tuple[str, str], orders: Sequence[Sequence[Any] | None], *, ax: Any = None
) -> Any:
    """The combinations of two columns as coloured cells; those without training rows are empty.

    Bins, and categories that are numbers (also "week 7"), lie in their order, others by their mean value. Of more than
    30 (60 in order) the most frequent are shown, which the label of the axis says.
    """
    combined = [(category_text(category[0]), category_text(category[1])) for category in table["category"]]
    pairs = pd.DataFrame(combined, columns=["row", "column"])
    pairs["value"], pairs["rows"] = table["value"].to_numpy(), table["rows"].fillna(1.0).to_numpy()
    sides = [_side(pairs, side, order) for side, order in zip(("row", "column"), orders, strict=True)]
    (down, n_down), (across, n_across) = sides
    pairs = pairs[pairs["row"].isin(down) & pairs["column"].isin(across)]
    grid = np.full((len(down), len(across)), np.nan)
    shown = {"row": down, "column": across}
    at = tuple(pd.Index(texts).get_indexer(pd.Index(pairs[side])) for side, texts in shown.items())
    grid[at] = pairs["value"].to_numpy()
    ax = axes_of(ax, height=0.24 * len(down) + 1.9)
    reach = float(np.nanmax(np.abs(grid))) or 1.0
    image = ax.imshow(grid, cmap=diverging(), vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest")
    ax.set_yticks(np.arange(len(down)), [label_of(category, 24) for category in down])
    every = max(1, -(-len(across) // 16)) if orders[1] is not None or _natural_order(across) is not None else 1
    ticks = np.arange(0, len(across), every)
    ax.set_xticks(ticks, [label_of(across[tick], 16) for tick in ticks], rotation=45, ha="right")
    both = ((ax.yaxis, columns[0], down, n_down), (ax.xaxis, columns[1], across, n_across))
    for axis, column, texts, n in both:
        more = f" (the {len(texts)} most frequent of {n:,})" if n > len(texts) else ""
        axis.set_label_text(plain(cut(column, 40)) + more)
    if grid.size <= _MAX_WRITTEN:
        for row, column in zip(*np.nonzero(np.isfinite(grid)), strict=True):
            colour = "#ffffff" if abs(grid[row, column]) > 0.6 * reach else "#1c1c1c"
            ax.text(column, row, look.value(grid[row, column]), ha="center", va="center", fontsize=7, color=colour)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
    if look.ratios:
        show_as_ratios(bar.ax.yaxis, grid.ravel())
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)
    bar.set_label(plain(look.unit), fontsize=8, color=INK)
    titled(ax, cut(look.name, 60) + (f" ({look.note})" if look.note else ""))
    dressed(ax).spines[:].set_visible(False)
    return ax


def _label_values(ax: Any, axis: Any, look: Look, values: Floats) -> None:
    """The label of the axis of values, and its ticks as ratios."""
    if look.ratios:
        limits = ax.get_xlim() if axis is ax.xaxis else ax.get_ylim()
        show_as_ratios(axis, np.append(np.clip(values, *limits), limits))
    axis.set_label_text(plain(look.unit))


def _side(pairs: pd.DataFrame, side: str, order: Sequence[Any] | None) -> tuple[list[str], int]:
    """The categories of one side of a heatmap that are shown, in order, and how many there are."""
    rows = pairs.groupby(side, sort=False)["rows"].sum().sort_values(ascending=False, kind="stable")
    shown = rows.index[:MAX_ORDERED_SIDE].tolist()
    if order is not None:
        return [text for text in map(category_text, order) if text in set(shown)], len(rows)
    natural = _natural_order(shown)
    if natural is not None:
        return natural, len(rows)
    shown = shown[:MAX_SIDE]
    weighted = (pairs["value"] * pairs["rows"]).groupby(pairs[side], sort=False).sum() / rows.clip(lower=1e-12)
    return weighted.loc[shown].sort_values(ascending=False, kind="stable").index.tolist(), len(rows)


def _natural_order(texts: list[str]) -> list[str] | None:
    """By their numbers, where texts differ in nothing else, as dates and "week 7" do; the missing one first."""
    known = [text for text in texts if text != "(missing)"]
    missing = [text for text in texts if text == "(missing)"]
    if known and all(_NUMBER.fullmatch(text) for text in known):
        return missing + sorted(known, key=float)
    frames = {re.sub(r"\d+", "0", text) for text in known}
    if len(frames) != 1 or "0" not in next(iter(frames)):
        return None
    return missing + sorted(known, key=lambda text: [int(number) for number in re.findall(r"\d+", text)])


def _is_skewed(bounds: Floats) -> bool:
    """Whether a column needs a logarithmic axis: all bounds are positive, and those above the middle lie far out."""
    if len(bounds) < 4 or bounds[0] <= 0.0:
        return False
    middle = float(np.median(bounds))
    return (bounds[-1] - middle) > _SKEWED * max(middle - bounds[0], 1e-300)


def _finite_edges(inner: Floats, is_log: bool) -> Floats:
    """The bounds of bins with ends for the outer ones, each as far out as the width of the neighbouring bin."""
    if is_log:
        return np.exp(_finite_edges(np.log(inner), False))
    if len(inner) < 2:
        width = max(abs(float(inner[0])), 1.0) if len(inner) else 1.0
        middle = inner if len(inner) else np.array([0.0])
        return np.concatenate([middle[:1] - width, middle, middle[-1:] + width])
    most = 0.15 * (inner[-1] - inner[0])
    first, last = min(inner[1] - inner[0], most), min(inner[-1] - inner[-2], most)
    return np.concatenate([[inner[0] - first], inner, [inner[-1] + last]])


def _repeat_last(values: Floats) -> Floats:
    return np.append(values, values[-1])


def _draw_missing(ax: Any, tables: dict[str, pd.DataFrame], edges: Floats, is_log: bool) -> float:
    """The coefficient of missing values to the left of the others; the new left end."""
    on_axis = np.log(edges) if is_log else edges
    width = on_axis[-1] - on_axis[0]
    position, left = on_axis[0] - 0.06 * width, on_axis[0] - 0.11 * width
    if is_log:
        position, left = np.exp(position), np.exp(left)
    for _, table, colour in coloured(tables):
        one = table.iloc[0]
        ax.plot([position], [one["value"]], "o", color=colour, markersize=5)
        if np.isfinite(one["lower"]) and np.isfinite(one["upper"]):
            ax.vlines([position], one["lower"], one["upper"], colors=colour, linewidth=2)
    ax.axvline(edges[0], color=INK, linewidth=0.6, linestyle=":")
    return float(left)


def _draw_rows(ax: Any, edges: Floats, rows: Floats, is_log: bool) -> None:
    """A histogram at the foot of the axes, whose areas are the rows of the bins."""
    widths = np.diff(np.log(edges) if is_log else edges)
    heights = rows / widths
    most = min(heights.max(), 1.25 * np.quantile(heights, 0.9)) or 1.0  # spikes would hide the others
    heights = _ROWS_HEIGHT * np.minimum(heights / most, 1.0)
    bars = {"align": "edge", "color": PALE, "linewidth": 0, "transform": ax.get_xaxis_transform(), "zorder": 0}
    ax.bar(edges[:-1], heights, np.diff(edges), **bars)


def diverging() -> Any:
    """Orange below 0, blue above it, grey at 0: empty cells are transparent."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("tabsym", ["#a8430f", ORANGE, "#d8d8d8", BLUE, "#15518c"])
