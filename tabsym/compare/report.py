"""report.html: one self-contained page with the ranking, plots and how it was made."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

from tabsym.compare.levels import MOST_ROWS
from tabsym.compare.live import cells, headings
from tabsym.compare.results import Results, rank

_FEW_FOLDS = 5
_MOST_COLUMNS, _MOST_TEXT = 60, 90  # of the Levels
_WORTH_SAYING = 1.5  # ratios of times below this may be noise
_TEMPLATE = Path(__file__).with_name("report.html.jinja")


def write_report(results: Results, folder: Path) -> Path:
    """Write ``report.html`` into a folder; names from data are escaped."""
    from jinja2 import Environment

    ranking = rank(results)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        settings=results.settings,
        headings=headings(results.settings["metric"]),
        rows=[cells(row, place) for place, row in enumerate(ranking, 1)],
        summary=summary(ranking, results.settings),
        failures=[(e["label"], e["error"]) for e in results.contenders.values() if e["error"]],
        plots=_plots(results, ranking) if ranking else [],
        levels=_level_rows(results.settings.get("levels", [])),
        most_level=max([one["level"] for one in results.settings.get("levels", [])] + [1e-12]),
        level_rows=MOST_ROWS,
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def summary(ranking: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """The finding in a sentence or two."""
    if not ranking:
        return "No contender completed all folds."
    best = ranking[0]
    text = f"{best['label']} has the best mean {settings['metric']} ({best['score']:.5g})."
    ties = [row["label"] for row in ranking[1:] if row["p_adjusted"] >= 0.05]
    if ties:
        text += f" No detectable difference to it on this table: {', '.join(ties)}."
    elif len(ranking) > 1:
        text += " Every other contender is detectably worse."
    if settings["n_splits"] < _FEW_FOLDS:
        text += f" With {settings['n_splits']} folds, differences that matter can go undetected; use more."
    level = [row for row in ranking if row is best or row["p_adjusted"] >= 0.05]
    if any(row["name"] == "constant" for row in level[1:]):
        return text + " That holds of the constant too: nothing here detectably predicts the target."
    fastest = min(level, key=lambda row: row["fit_seconds"])
    ratio = best["fit_seconds"] / max(fastest["fit_seconds"], 1e-9)
    if ratio >= _WORTH_SAYING:
        text += f" Of these, {fastest['label']} fits fastest, {ratio:.1f} times as fast as the best."
    return text


def _level_rows(levels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first columns, their parts as a short text."""
    rows = []
    for one in levels[:_MOST_COLUMNS]:
        text = "  ".join(one["labels"]) if one["parts"] > 1 else ""
        rows.append(one | {"text": text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"})
    return rows


def _plots(results: Results, ranking: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Captions and images."""
    return [
        ("Scores by fold", _scores_plot(results, ranking)),
        ("Score against fit time", _time_plot(results, ranking)),
    ]


def _scores_plot(results: Results, ranking: list[dict[str, Any]]) -> str:
    metric = results.settings["metric"]
    figure, axes = _figure(0.4 * len(ranking) + 1.2)
    for place, row in enumerate(reversed(ranking)):
        folds = results.contenders[row["name"]]["folds"].values()
        values = [fold["scores"][metric] for fold in folds]
        axes.plot(values, [place] * len(values), "o", color="#8aa5c4", markersize=5, zorder=2)
        axes.plot([row["score"]], [place], "|", color="#12355b", markersize=16, markeredgewidth=2.5, zorder=3)
    names = [f"{_plain(row['label'])}  {place}" for place, row in enumerate(ranking, 1)]
    axes.set_yticks(range(len(ranking)), names[::-1])
    better = "right" if results.settings["larger_is_better"] else "left"
    axes.set_xlabel(f"{metric}: each fold, and the mean (better to the {better})")
    axes.grid(axis="x", color="#e5e5e5")
    return _svg(figure)


def _time_plot(results: Results, ranking: list[dict[str, Any]]) -> str:
    figure, axes = _figure(4.2)
    for place, row in enumerate(ranking):
        axes.plot(row["fit_seconds"], row["score"], "o", color="#12355b" if place == 0 else "#8aa5c4")
        point = (row["fit_seconds"], row["score"])
        axes.annotate(str(place + 1), point, (5, 4), textcoords="offset points", fontsize=10)
    axes.set_xscale("log")
    axes.margins(x=0.08, y=0.12)
    axes.set_xlabel("fit, seconds (median of folds, logarithmic)")
    axes.set_ylabel(results.settings["metric"])
    if not results.settings["larger_is_better"]:
        axes.invert_yaxis()
        axes.set_ylabel(results.settings["metric"] + " (better is up)")
    axes.grid(color="#e5e5e5")
    return _svg(figure)


def _figure(height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    return figure, axes


def _plain(text: str) -> str:
    return text.replace("$", r"\$")  # matplotlib would read a formula


def _svg(figure: Any) -> str:
    """The figure as a data address: an image element runs no script, whatever the labels hold."""
    out = io.BytesIO()
    figure.savefig(out, format="svg")
    return "data:image/svg+xml;base64," + base64.b64encode(out.getvalue()).decode()
