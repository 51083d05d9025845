"""report.html: one self-contained page with the finding, the ranking, plots and how it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tabsym.compare.calibration import reliability
from tabsym.compare.cells import cells, headings, other_cells, other_headings
from tabsym.compare.levels import most_rows
from tabsym.compare.live import split_words
from tabsym.compare.plots import reliability_plot, scores_plot, time_plot
from tabsym.compare.prepare import Prepared
from tabsym.compare.results import Results
from tabsym.compare.splits import Split
from tabsym.compare.words import units

_MOST_COLUMNS, _MOST_TEXT = 60, 90  # of the Levels
_MOST_CURVES = 12
_TEMPLATE = Path(__file__).with_name("report.html.jinja")


def write_report(
    results: Results, ranking: list[dict[str, Any]], finding: list[str], folder: Path,
    prepared: Prepared, splits: list[Split],
) -> Path:  # fmt: skip
    """Write ``report.html`` into a folder; names from data are escaped."""
    from jinja2 import Environment

    settings = results.settings
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        settings=settings,
        split=split_words(settings),
        headings=headings(settings, judged=True),
        units=units(settings),
        rows=[cells(row, place, settings) for place, row in enumerate(ranking, 1)],
        other_headings=other_headings(settings),
        other_rows=[other_cells(row, place, settings) for place, row in enumerate(ranking, 1)],
        finding=finding,
        failures=[(e["label"], e["error"]) for e in results.contenders.values() if e["error"]],
        plots=_plots(results, ranking, prepared, splits, folder) if ranking else [],
        tuned=_settings_chosen(results, ranking),
        levels=_level_rows(settings.get("levels", [])),
        most_level=max([one["level"] for one in settings.get("levels", [])] + [1e-12]),
        level_rows=most_rows(settings["task"]),
        levels_left=len(settings["columns"]) - len(settings.get("levels", [])),
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def _plots(
    results: Results, ranking: list[dict[str, Any]], prepared: Prepared, splits: list[Split], folder: Path
) -> list[tuple[str, str, str]]:
    """Alternative texts, images, and what is to be said below each."""
    settings = results.settings
    plots = [
        ("Scores by fold", scores_plot(settings, results.contenders, ranking), ""),
        ("Score against fit time", time_plot(settings, ranking), "Numbers are places in the ranking."),
    ]
    curves = [(row["label"], reliability(row["name"], prepared, splits, folder)) for row in ranking[:_MOST_CURVES]]
    known = [(label, curve) for label, curve in curves if curve is not None]
    if known:
        words = "Reliability: on the line, what was predicted is what came."
        if settings["task"] == "multiclass":
            words += " Probabilities of all classes together."
        plots.append(("Reliability", reliability_plot(known, settings["task"]), words))
    return plots


def _settings_chosen(results: Results, ranking: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What tuning chose, by contender and fold."""
    out = []
    for row in ranking:
        for fold, result in results.contenders[row["name"]]["folds"].items():
            if result.get("params") is not None and results.settings["tune"]:
                chosen = ", ".join(f"{name}={_short(value)}" for name, value in result["params"].items()) or "defaults"
                out.append((f"{row['label']}, fold {int(fold) + 1}", f"{chosen} (of {result['tried']} tried)"))
    return out


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _level_rows(levels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first columns, their parts as a short text."""
    rows = []
    for one in levels[:_MOST_COLUMNS]:
        text = "  ".join(one["labels"]) if one["parts"] > 1 else ""
        rows.append(one | {"text": text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"})
    return rows
