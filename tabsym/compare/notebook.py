"""What a notebook shows of a comparison: conclusions, ranking, scores and times; self-contained, without a script."""

from __future__ import annotations

from typing import Any

from tabsym.compare.plots import scores_plot, time_plot
from tabsym.compare.results import load_results
from tabsym.compare.text import cells, headings
from tabsym.plots.html import details, fragment, paragraph, table, text


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
        rows = [cells(row, place, settings) for place, row in enumerate(ranking, 1)]
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
