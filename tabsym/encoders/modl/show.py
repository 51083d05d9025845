"""What a person sees of a fitted partition: a table, a text, a plot."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

from tabsym.modl import Groups, Intervals

_MOST_LINES = 12  # lines of a column in the text
_MOST_CLASSES = 6
_MOST_COLOURS = 12  # classes of a plot with a colour and a line of their own
_LINES_BETWEEN = 60  # parts of a plot up to which white lines keep them apart


def parts_table(fitted: Intervals | Groups) -> pd.DataFrame:
    """The parts of a column: label, rows, share of the rows, and the target in each."""
    target, counts = fitted.target, fitted.partition.counts
    rows = counts.sum(axis=1)
    table = pd.DataFrame({"part": fitted.labels, "rows": rows, "share": rows / rows.sum()})
    for name, column in zip(target.names, target.counts.T, strict=True):
        table[f"P({name})"] = column / rows
    if target.means is not None and not target.is_classes:
        table["mean"], table["sd"] = target.means, target.deviations
    return table


def describe_columns(columns: dict[str, Intervals | Groups]) -> str:
    """Columns in the order given, each with its Level, costs and parts."""
    lines: list[str] = []
    for name, fitted in columns.items():
        one = fitted.partition
        kind = "interval" if isinstance(fitted, Intervals) else "group"
        proof = "optimal" if one.is_optimal else "no bound" if np.isinf(one.gap) else f"gap {one.gap:.1e}"
        if one.is_best_without_garbage and not one.is_optimal:
            proof = "optimal but for garbage groups" + ("" if np.isinf(one.gap) else f", gap {one.gap:.1e}")
        lines.append(
            f"{name}: Level {one.level:.5f}, {one.n_parts} {kind}{'s' * (one.n_parts > 1)}, cost {one.cost:.3f} "
            f"(null {one.null_cost:.3f}, {one.criterion}, {proof})"
        )
        if one.n_parts == 1:
            lines += ["    uninformative about the target on its own", ""]
            continue
        lines += [f"    {line}" for line in _part_lines(fitted)] + [""]
    return "\n".join(lines).rstrip()


def print_heads(columns: dict[str, Intervals | Groups]) -> None:
    """The line of each column, without its parts, to standard error."""
    for line in describe_columns(columns).splitlines():
        if line[:1].strip():
            print(line, file=sys.stderr)


def plot_parts(fitted: Intervals | Groups, name: str, *, ax: Any = None) -> Any:
    """Bars as wide as the part has rows: the target's distribution in each, and a line for that of all rows."""
    from matplotlib import pyplot as plt

    target = fitted.target
    rows = fitted.partition.counts.sum(axis=1)
    widths = rows / rows.sum()
    lefts = np.cumsum(widths) - widths
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    style: dict[str, Any] = {"align": "edge"}
    if len(rows) <= _LINES_BETWEEN:
        style |= {"edgecolor": "white", "linewidth": 1.0}
    if target.means is not None:
        _plot_means(ax, target, lefts, widths, style)
    else:
        _plot_shares(ax, target, lefts, widths, style)
    _label_parts(ax, fitted.labels, lefts, widths)
    ax.set_xlim(0, 1)
    level = fitted.partition.level
    ax.set_title(_plain(f"{name}: {len(rows)} parts, Level {level:.4f} (width: rows)"), loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _plot_means(ax: Any, target: Any, lefts: Any, widths: Any, style: dict[str, Any]) -> None:
    ax.bar(lefts, target.means, widths, color="#7d9cc0", **style)
    if not target.is_classes:
        middle = lefts + widths / 2
        ax.errorbar(middle, target.means, target.deviations, fmt="none", ecolor="#12355b", elinewidth=0.8, capsize=2)
    ax.axhline(float(widths @ target.means), color="#b5482a", linewidth=1.2, linestyle="--", label="all rows")
    ax.set_ylabel(_plain(f"P({target.names[1]})" if target.is_classes else "mean target (bars: sd)"))
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _plot_shares(ax: Any, target: Any, lefts: Any, widths: Any, style: dict[str, Any]) -> None:
    from matplotlib import colormaps

    shares = target.counts / target.counts.sum(axis=1, keepdims=True)
    largest = sorted(np.argsort(-target.counts.sum(axis=0), kind="stable")[:_MOST_COLOURS].tolist())
    colours = dict(zip(largest, (colormaps["tab20"](k) for k in range(_MOST_COLOURS)), strict=False))
    bottom, others = np.zeros(len(widths)), False
    for j, name in enumerate(target.names):
        label = _plain(str(name)) if j in colours else "_" if others else f"{len(target.names) - len(largest)} others"
        others = others or j not in colours
        ax.bar(lefts, shares[:, j], widths, bottom=bottom, color=colours.get(j, "#c9c9c9"), label=label, **style)
        bottom += shares[:, j]
    few = len(target.names) <= _MOST_COLOURS
    for height in np.cumsum(widths @ shares)[:-1] if few else ():
        ax.axhline(float(height), color="#1c1c1c", linewidth=0.5, linestyle="--")
    ax.set_ylabel("P(class | part)" + ("; dashed: all rows" if few else ""))
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0), reverse=True)  # as they lie


def _label_parts(ax: Any, labels: list[str], lefts: Any, widths: Any) -> None:
    """Labels under the parts, where there is room for one."""
    middles, shown = lefts + widths / 2, [0]
    for i in range(1, len(labels)):
        if middles[i] - middles[shown[-1]] >= 0.03:
            shown.append(i)
    ticks = [float(middles[i]) for i in shown]
    texts = [labels[i] if len(labels[i]) <= 28 else labels[i][:27] + "…" for i in shown]
    ax.set_xticks(ticks, [_plain(text) for text in texts], rotation=35, ha="right", fontsize=8)


def _part_lines(fitted: Intervals | Groups) -> list[str]:
    table = parts_table(fitted)
    columns = [c for c in table.columns if c.startswith("P(")]
    if "mean" in table:
        columns = ["mean", "sd"]
    elif len(columns) > _MOST_CLASSES:
        total = fitted.target.counts.sum(axis=0)
        columns = [columns[j] for j in sorted(np.argsort(-total, kind="stable")[:_MOST_CLASSES])]
    shown = table.head(_MOST_LINES)[["part", "rows", "share", *columns]].copy()
    shown["part"] = [text if len(text) <= 44 else text[:43] + "…" for text in shown["part"]]
    text = shown.to_string(index=False, float_format=lambda value: f"{value:.4g}").splitlines()
    more = len(table) - len(shown)
    return [*text, f"... and {more} more"] if more > 0 else text


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("$", r"\$")  # matplotlib would read a formula
