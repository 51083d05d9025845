"""report.html: one self-contained page; how the table was read first, then the summary, the ranking and its details.

Nothing is loaded from elsewhere: images are data addresses, the only script sorts tables, and a policy in the page
allows that script alone. Names from data are escaped, in text and in attributes.
Held-out rows are what was predicted and observed; counts with exposure are rates, weighted by it.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.column_gains import LEAK, MAX_LEVEL_ROWS, source_column
from tabsym.compare.live import split_words
from tabsym.compare.plots import lift_plot, lorenz_plot, reliability_plot, scores_plot, time_plot
from tabsym.compare.results import Results, load_predictions
from tabsym.compare.splits import Split
from tabsym.compare.table.prepare import Prepared
from tabsym.compare.text import cells, headings, other_cells, other_headings, unit, units
from tabsym.plots.held_out import HeldOutRows, deciles, error_tables, in_parts, lorenz, mean_gini, pooled
from tabsym.plots.style import SCHEME, cut

Floats = NDArray[np.float64]

TASKS = ("binary", "count", "regression")


def held_out(name: str, prepared: Prepared, splits: list[Split], folder: Path) -> list[HeldOutRows] | None:
    """A contender's held-out rows by fold; None where predictions are gone, or there are more than two classes."""
    predictions = load_predictions(folder, name, splits) if prepared.task in TASKS else None
    if predictions is None:
        return None
    folds = []
    for prediction, (_, test) in zip(predictions, splits, strict=True):
        weight = np.ones(len(test)) if prepared.weight is None else prepared.weight[test]
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
    weight = np.ones(len(rows)) if prepared.weight is None else prepared.weight[rows]
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
    held = {row["name"]: held_out(row["name"], prepared, splits, folder) for row in ranking[:_MAX_CURVES]}
    known = {name: folds for name, folds in held.items() if folds is not None}
    drawn = {} if drawn is None else drawn
    if not drawn:
        if prepared.task in TASKS:
            every = {name: pooled(folds) for name, folds in known.items()}
            curves = {name: in_parts(one.predicted, one.observed, one.weight) for name, one in every.items()}
        else:
            found = {name: reliability_of_classes(name, prepared, splits, folder) for name in held}
            curves = {name: curve for name, curve in found.items() if curve is not None}
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
            [*other_cells(row, position, settings), *([_gini(known.get(row["name"]))] if known else [])]
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
    found = _NUMBER.match(str(text).strip())
    if found is None:
        return None
    value = float(found.group(1).replace(",", ""))
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
            [(row["label"], lorenz(held.predicted, held.observed, held.weight))
             for row in best for held in [every[row["name"]]]],
            f"exposure ({weight})" if weight else "rows" if settings["weight"] is None else "weight",
            f"observed {settings['target']}" if settings["task"] != "binary" else f"class {settings['classes'][1]}",
        )  # fmt: skip
    return {"plot": lift_plot(tables), "lorenz": curve, "tables": [(label, _shown(rows)) for label, rows in tables]}


def _shown(rows: list[dict[str, float]]) -> list[list[str]]:
    return [
        [f"{row['decile']:.0f}", f"{row['rows']:,.0f}", f"{row['predicted']:.4g}", f"{row['observed']:.4g}",
         _ratio(row["ratio"]), _ratio(row["lift"])]
        for row in rows
    ]  # fmt: skip


def _ratio(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _gini(folds: list[HeldOutRows] | None) -> str:
    value = None if folds is None else mean_gini(folds)
    return "-" if value is None else f"{value:.4f}"


def _errors(
    ranking: list[dict[str, Any]], known: dict[str, list[HeldOutRows]], settings: dict[str, Any], prepared: Prepared,
    clusters: NDArray[np.int64] | None,
) -> dict[str, Any] | None:  # fmt: skip
    """Where the best contender errs, columns of large single gain first."""
    if not ranking or ranking[0]["name"] not in known:
        return None
    gains = {one["column"]: one["fraction"] for one in settings.get("column_gains", [])}
    kinds = list(prepared.features.kinds)
    order = sorted(map(str, prepared.X.columns), key=lambda name: -gains.get(source_column(name, kinds), 0.0))
    tables = error_tables(
        pooled(known[ranking[0]["name"]]), prepared.X, prepared.weight, prepared.task, order, clusters
    )
    for one in tables["columns"]:
        one["rows"] = [
            (cell["flagged"],
             [cut(cell["category"], _MAX_TEXT),
              f"{cell['rows']:,}", f"{cell['observed']:.4g}", f"{cell['predicted']:.4g}",
              _ratio(cell["predicted"] / cell["observed"]) if cell["observed"] > 0 else "-",
              f"{cell['difference']:+.3g}", f"{cell['error']:.2g}", f"{cell['z']:+.1f}"])
            for cell in one["cells"]
        ]  # fmt: skip
    return tables | {"label": ranking[0]["label"]}


def _settings_chosen(results: Results, ranking: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What tuning chose, by contender and fold."""
    out = []
    for row in ranking:
        for fold, result in results.contenders[row["name"]]["folds"].items():
            if result.get("params") is not None and results.settings["tune"]:
                chosen = ", ".join(f"{name}={_short(value)}" for name, value in result["params"].items()) or "defaults"
                tried = f"of {result['tried']} tried" + (f", {result['failed']} failed" if result["failed"] else "")
                out.append((f"{row['label']}, fold {int(fold) + 1}", f"{chosen} ({tried})"))
    return out


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _column_rows(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Single columns, largest gain first: fraction of the best's gain, and for classes MODL's Level and parts."""
    levels = {one["column"]: one for one in settings.get("levels", [])}
    gains = {one["column"]: one["fraction"] for one in settings.get("column_gains", [])}
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
