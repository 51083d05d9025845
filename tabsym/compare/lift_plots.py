"""Plots of how predictions order the target: lift by decile, and ordered Lorenz curves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.plots import GRID, _figure, _plain, _svg, _widened

Floats = NDArray[np.float64]

_COLOURS = ("#12355b", "#c05621", "#2f855a", "#8aa5c4", "#805ad5")
_MAX_POINTS = 400  # of a curve in the page


def lift_plot(tables: list[tuple[str, list[dict[str, float]]]]) -> str:
    """Predicted and observed means by decile of prediction, a panel for each of a few contenders."""
    figure, panels = _figure(3.0, 1, len(tables))
    every = [row[what] for _, rows in tables for row in rows for what in ("observed", "predicted")]
    limits = _widened(min(every), max(every))
    for panel, (label, rows) in zip(np.atleast_1d(panels).flat, tables, strict=True):
        places = [row["decile"] for row in rows]
        panel.plot(places, [row["observed"] for row in rows], "o-", color=_COLOURS[0], markersize=4, label="observed")
        panel.plot(
            places, [row["predicted"] for row in rows], "s--", color=_COLOURS[1], markersize=4, label="predicted"
        )
        panel.set_title(_title(label), fontsize=9)
        panel.set_xticks(range(1, 11))
        panel.set_ylim(*limits)  # the same for all: what one panel magnifies looks like an effect
        panel.tick_params(labelsize=7)
        panel.grid(axis="y", color=GRID)
    np.atleast_1d(panels).flat[0].legend(fontsize=8, frameon=False)
    figure.supxlabel("decile of prediction, lowest first", fontsize=9)
    return _svg(figure)


def lorenz_plot(curves: list[tuple[str, Floats]], of_weight: str, of_target: str) -> str:
    """Ordered Lorenz curves (n, 2) of a few contenders in one panel; the diagonal orders nothing."""
    figure, axes = _figure(4.6)
    axes.plot([0, 1], [0, 1], color="#999", linewidth=1)
    for (label, curve), colour in zip(curves, _COLOURS, strict=False):
        step = max(1, len(curve) // _MAX_POINTS)
        kept = np.concatenate([curve[:-1:step], curve[-1:]])
        axes.plot(kept[:, 0], kept[:, 1], color=colour, linewidth=1.5, label=_title(label))
    axes.set_xlabel(f"cumulative fraction of {of_weight}, lowest predictions first", fontsize=9)
    axes.set_ylabel(f"cumulative fraction of {of_target}", fontsize=9)
    axes.set_aspect("equal")
    axes.grid(color=GRID)
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    return _svg(figure)


def _title(label: Any) -> str:
    text = str(label)
    return _plain(text if len(text) <= 34 else text[:33] + "…")
