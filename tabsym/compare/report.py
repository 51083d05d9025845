"""report.html: one self-contained page; how the table was read first, then the summary, the ranking and its details.

Nothing is loaded from elsewhere: images are data addresses, the only script sorts tables, and a policy in the page
allows that script alone. Names from data are escaped, in text and in attributes. A notebook shows a part of it.
Axes of the plots are chosen without contenders that are far off. Held-out rows are what was predicted and observed;
counts with exposure are rates, weighted by it.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.column_gains import LEAK, MAX_LEVEL_ROWS, source_column
from tabsym.compare.ranking import scores_of
from tabsym.compare.results import Results, load_predictions, load_results
from tabsym.compare.splits import Split
from tabsym.compare.table.prepare import CLASSES, Prepared
from tabsym.compare.text import cells, headings, other_cells, other_headings, split_words, unit, units
from tabsym.plots.predictions import (
    HeldOutRows,
    deciles,
    draw_deciles,
    draw_reliability,
    error_tables,
    in_parts,
    lorenz,
    mean_gini,
    pooled,
)
from tabsym.plots.style import (
    BLUE,
    COLOURS,
    INK,
    PALE,
    PALE_BLUE,
    SCHEME,
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

TASKS = ("binary", "count", "regression")


def held_out(name: str, prepared: Prepared, splits: list[Split], folder: Path) -> list[HeldOutRows] | None:
    """A contender's held-out rows by fold; None where predictions are gone, or there are more than two classes."""
    predictions = load_predictions(folder, name, splits) if prepared.task in TASKS else None
    if predictions is None:
        return None
    folds = []
    for prediction, (_, test) in zip(predictions, splits, strict=True):
        weight = prepared.weights(test)
        observed = prepared.y[test].astype(np.float64)
        predicted = prediction[:, 1] if prepared.task == "binary" else prediction
        if prepared.exposure is not None:
            exposure = prepared.exposure[test]
            predicted, observed, weight = predicted / exposure, observed / exposure, weight * exposure
            predicted = predicted.astype(np.float32)  # a rate that was multiplied and divided again is the same rate
        folds.append(HeldOutRows(test, np.asarray(predicted, dtype=np.float64), observed, weight))
    return folds


def reliability_of_classes(name: str, prepared: Prepared, splits: list[Split], folder: Path) -> Floats | None:
    """Mean probability and frequency (parts, 2) of every class of several in turn, together, the lowest first.

    None where predictions are gone.
    """
    predictions = load_predictions(folder, name, splits)
    if predictions is None:
        return None
    rows = np.concatenate([test for _, test in splits])
    weight = prepared.weights(rows)
    n_classes = len(prepared.classes)
    observed = np.eye(n_classes)[prepared.y[rows]]
    return in_parts(np.concatenate(predictions).T.ravel(), observed.T.ravel(), np.tile(weight, n_classes))


_MAX_COLUMNS, _MAX_TEXT, _MANY_COLUMNS = 60, 90, 15
_MAX_CURVES, _MAX_LIFTS = 12, 3
_NUMBER = re.compile(r"^<?\s*([-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?)", re.IGNORECASE)
_TEMPLATE = Path(__file__).with_name("report.html.jinja")
_SCRIPT = Path(__file__).with_name("sort.js")


def write_report(
    results: Results, ranking: list[dict[str, Any]], sentences: list[str], folder: Path,
    prepared: Prepared, splits: list[Split], clusters: NDArray[np.int64] | None = None,
    drawn: dict[str, Any] | None = None,
) -> Path:  # fmt: skip
    """Write ``report.html`` into a folder; names from data are escaped.

    `drawn`: keeps the pictures, which take most of the time, for a second page of the same ranking.
    """
    from jinja2 import Environment

    settings = results.settings
    rows_of = {row["name"]: held_out(row["name"], prepared, splits, folder) for row in ranking[:_MAX_CURVES]}
    known = {name: folds for name, folds in rows_of.items() if folds is not None}
    ginis = {name: mean_gini(folds) for name, folds in known.items()}
    drawn = {} if drawn is None else drawn
    if not drawn:
        if prepared.task in TASKS:
            every = {name: pooled(folds) for name, folds in known.items()}
            curves = {name: in_parts(rows.predicted, rows.observed, rows.weight) for name, rows in every.items()}
        else:
            of_classes = {name: reliability_of_classes(name, prepared, splits, folder) for name in rows_of}
            curves = {name: curve for name, curve in of_classes.items() if curve is not None}
        drawn["plots"] = _plots(results, ranking, curves) if ranking else []
        drawn["lift"] = _lift(ranking, known, settings)
    script = _SCRIPT.read_text(encoding="utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.globals["sort_key"] = sort_key
    page = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        settings=settings,
        scheme=SCHEME,
        script=script,
        digest=digest,
        split=split_words(settings),
        headings=headings(settings, judged=True),
        unit=unit(ranking, settings),
        units=units(settings),
        rows=[cells(row, position, settings) for position, row in enumerate(ranking, 1)],
        other_headings=[*other_headings(settings), *(["Gini (normalized)"] if known else [])],
        other_rows=[
            [*other_cells(row, position, settings), *([_or_dash(ginis.get(row["name"]), ".4f")] if known else [])]
            for position, row in enumerate(ranking, 1)
        ],
        summary=sentences,
        failures=[(e["label"], e["error"]) for e in results.contenders.values() if e["error"]],
        **drawn,
        errors=_errors(ranking, known, settings, prepared, clusters),
        tuned=_settings_chosen(results, ranking),
        columns=_column_rows(settings),
        leak=LEAK,
        level_rows=MAX_LEVEL_ROWS,
        many_columns=_MANY_COLUMNS,
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def sort_key(text: Any) -> float | None:
    """The number at the start of a cell, to sort by; a difference for the better is negative."""
    match = _NUMBER.match(str(text).strip())
    if match is None:
        return None
    value = float(match.group(1).replace(",", ""))
    return -value if re.search(r"^[^\[]*\bbetter\b", str(text)) else value


def _plots(results: Results, ranking: list[dict[str, Any]], curves: dict[str, Floats]) -> list[tuple[str, str, str]]:
    """Alternative texts, images, and captions; `curves`: of reliability, by contender."""
    settings = results.settings
    plots = [
        ("Scores by fold", scores_plot(settings, results.contenders, ranking), ""),
        ("Score against fit time", time_plot(settings, ranking), "Numbers are ranks."),
    ]
    known = [(row["label"], curves[row["name"]]) for row in ranking if row["name"] in curves]
    if known:
        words = "Reliability: on the diagonal, predictions equal observations."
        if settings["task"] == "multiclass":
            words += " Probabilities of all classes are pooled."
        plots.append(("Reliability", reliability_plot(known, settings["task"]), words))
    return plots


def _lift(
    ranking: list[dict[str, Any]], known: dict[str, list[HeldOutRows]], settings: dict[str, Any]
) -> dict[str, Any] | None:
    """Deciles of prediction and Lorenz curves of the best few; None where no order of predictions is defined."""
    best = [row for row in ranking if row["name"] in known][:_MAX_LIFTS]
    if not best:
        return None
    every = {row["name"]: pooled(known[row["name"]]) for row in best}
    tables = [(row["label"], deciles(every[row["name"]])) for row in best]
    first = every[best[0]["name"]]
    curve = None
    if first.observed.min() >= 0 and float(first.weight @ first.observed) > 0:
        weight = settings["exposure"] or ("exposure" if settings["offset"] and settings["task"] == "count" else "")
        curve = lorenz_plot(
            [(row["label"], lorenz(rows.predicted, rows.observed, rows.weight))
             for row in best for rows in [every[row["name"]]]],
            f"exposure ({weight})" if weight else "rows" if settings["weight"] is None else "weight",
            f"observed {settings['target']}" if settings["task"] != "binary" else f"class {settings['classes'][1]}",
        )  # fmt: skip
    return {"plot": lift_plot(tables), "lorenz": curve, "tables": [(label, _shown(rows)) for label, rows in tables]}


def _shown(rows: list[dict[str, float]]) -> list[list[str]]:
    return [
        [f"{row['decile']:.0f}", f"{row['rows']:,.0f}", f"{row['predicted']:.4g}", f"{row['observed']:.4g}",
         _or_dash(row["ratio"]), _or_dash(row["lift"])]
        for row in rows
    ]  # fmt: skip


def _or_dash(value: float | None, digits: str = ".3f") -> str:
    return "-" if value is None or math.isnan(value) else format(value, digits)


def _errors(
    ranking: list[dict[str, Any]], known: dict[str, list[HeldOutRows]], settings: dict[str, Any], prepared: Prepared,
    clusters: NDArray[np.int64] | None,
) -> dict[str, Any] | None:  # fmt: skip
    """Where the best contender errs, columns of large single gain first."""
    if not ranking or ranking[0]["name"] not in known:
        return None
    gains = {gain["column"]: gain["fraction"] for gain in settings.get("column_gains", [])}
    kinds = list(prepared.features.kinds)
    order = sorted(map(str, prepared.X.columns), key=lambda name: -gains.get(source_column(name, kinds), 0.0))
    tables = error_tables(
        pooled(known[ranking[0]["name"]]), prepared.X, prepared.weight, prepared.task, order, clusters
    )
    for column in tables["columns"]:
        column["rows"] = [
            (cell["flagged"],
             [cut(cell["category"], _MAX_TEXT),
              f"{cell['rows']:,}", f"{cell['observed']:.4g}", f"{cell['predicted']:.4g}",
              _or_dash(cell["predicted"] / cell["observed"]) if cell["observed"] > 0 else "-",
              f"{cell['difference']:+.3g}", f"{cell['error']:.2g}", f"{cell['z']:+.1f}"])
            for cell in column["cells"]
        ]  # fmt: skip
    return tables | {"label": ranking[0]["label"]}


def _settings_chosen(results: Results, ranking: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What tuning chose, by contender and fold."""
    out = []
    for row in ranking:
        for fold, result in results.contenders[row["name"]]["folds"].items():
            if result.get("params") is not None and results.settings["tune"]:
                shown = {n: f"{v:.3g}" if isinstance(v, float) else str(v) for n, v in result["params"].items()}
                chosen = ", ".join(f"{name}={value}" for name, value in shown.items()) or "defaults"
                tried = f"of {result['tried']} tried" + (f", {result['failed']} failed" if result["failed"] else "")
                out.append((f"{row['label']}, fold {int(fold) + 1}", f"{chosen} ({tried})"))
    return out


def _column_rows(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Single columns, largest gain first: fraction of the best's gain, and for classes MODL's Level and parts."""
    levels = {level["column"]: level for level in settings.get("levels", [])}
    gains = {gain["column"]: gain["fraction"] for gain in settings.get("column_gains", [])}
    names = [*gains, *(name for name in levels if name not in gains)]
    rows = []
    for name in names[:_MAX_COLUMNS]:
        level = levels.get(name)
        text = "  ".join(level["labels"]) if level is not None and level["parts"] > 1 else ""
        rows.append({
            "column": name,
            "fraction": gains.get(name),
            "level": None if level is None else level["level"],
            "parts": "" if level is None else level["parts"],
            "text": cut(text, _MAX_TEXT),
        })  # fmt: skip
    return rows


# -- plots -------------------------------------------------------------------------------------------

_FAR = 3.0  # times the spread of the better half: what lies further out is put at the edge, with its number


def scores_plot(settings: dict[str, Any], contenders: dict[str, dict[str, Any]], ranking: list[dict[str, Any]]) -> str:
    """Each contender's scores by fold, and their mean."""
    metric = settings["metric"]
    figure, (axes,) = _figure(0.4 * len(ranking) + 1.2)
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
    figure, (axes,) = _figure(4.2)
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
    for panel, (label, curve) in zip(panels, curves, strict=False):
        draw_reliability(panel, curve, (low, high))
        title = textwrap.fill(textwrap.shorten(label, 56, placeholder=" …"), 28)
        panel.set_title("\n".join(map(plain, title.splitlines())), fontsize=8, color=INK)
        panel.tick_params(labelsize=7)
    for panel in panels[len(curves) :]:
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


def limits(means: Floats, values: Floats) -> tuple[float, float]:
    """What an axis shows: all values, but for those far beyond the better-behaved half of the contenders."""
    middle = float(np.median(means))
    reach = float(np.median(np.abs(means - middle)))
    near = np.abs(values - middle) <= _FAR * max(3 * reach, 1e-12 + 0.02 * abs(middle))
    kept = values[near] if near.any() else values
    return float(kept.min()), float(kept.max())


def _figure(height: float, rows: int = 1, columns: int = 1) -> tuple[Any, list[Any]]:
    """A figure and its panels, row by row."""
    figure = new_figure(8.4, height)
    return figure, [dressed(panel) for panel in figure.subplots(rows, columns, squeeze=False).flat]


_MAX_POINTS = 400  # of a curve in the page


def lift_plot(tables: list[tuple[str, list[dict[str, float]]]]) -> str:
    """Predicted and observed means by decile of prediction, a panel for each of a few contenders."""
    figure, panels = _figure(3.0, 1, len(tables))
    every = [row[what] for _, rows in tables for row in rows for what in ("observed", "predicted")]
    limits = widened(min(every), max(every))
    for panel, (label, rows) in zip(panels, tables, strict=True):
        draw_deciles(panel, rows)
        panel.set_title(_title(label), fontsize=9, color=INK)
        panel.set_ylim(*limits)  # the same for all: what one panel magnifies looks like an effect
        panel.tick_params(labelsize=7)
    legend(panels[0])
    figure.supxlabel("decile of prediction, lowest first", fontsize=9, color=INK)
    return svg(figure)


def lorenz_plot(curves: list[tuple[str, Floats]], of_weight: str, of_target: str) -> str:
    """Ordered Lorenz curves (n, 2) of a few contenders in one panel; the diagonal orders nothing."""
    figure, (axes,) = _figure(4.6)
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
