"""The sections of a model's report that need rows: calibration, lift, worst segments, and what fit has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_classifier

from tabsym.design.sources import Symbols
from tabsym.frame import Column, Kind, Table, check_regression_target, check_weights, plain_labels
from tabsym.models.inspection.explain import variances_of_columns
from tabsym.plots.predictions import (
    HeldOutRows,
    deciles,
    draw_deciles,
    draw_reliability,
    error_tables,
    gini,
    in_parts,
)
from tabsym.plots.style import (
    COLOURS,
    INK,
    PALE,
    cut,
    details,
    dressed,
    image,
    legend,
    listed,
    new_figure,
    paragraph,
    plain,
    table,
    titled,
    widened,
)

Floats = NDArray[np.float64]

_MAX_CLASSES = 6
_MAX_SEGMENTS = 12


@dataclass(frozen=True)
class RowsOfReport:
    """Rows with their predictions.

    `table`: the features; `observed`, `predicted` (n, outputs): values, rates with exposure, or indicators and
    probabilities of classes; `weight` (n,) with the exposure in it, `sample_weight` (n,) without; `names` of outputs.
    """

    table: Table
    observed: Floats
    predicted: Floats
    weight: Floats
    sample_weight: Floats
    names: list[str]
    task: str
    score: str

    def held(self, output: int) -> HeldOutRows:
        """One output's rows."""
        return HeldOutRows(
            np.arange(len(self.weight)), self.predicted[:, output], self.observed[:, output], self.weight
        )


def rows_of_report(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> RowsOfReport:
    """Rows for the report of a fitted model, with their predictions, validated."""
    table, own = model._read_to_predict(X)
    given = np.ones(len(table)) if (found := check_weights(sample_weight, len(table))) is None else found
    if model.model_.loss.for_classes and not model.model_.loss.is_smooth:
        raise ValueError("The hinge loss has no probabilities for the sections of rows; leave X and y out.")
    score = model.score(X, y, sample_weight, offset=offset)
    if is_classifier(model):
        predicted = np.asarray(model.predict_proba(X, offset=offset))
        classes = model.classes_
        observed = (np.asarray(plain_labels(y))[:, None] == classes[None, :]).astype(np.float64)
        names = list(map(str, classes))
        if len(names) == 2:
            predicted, observed, names = predicted[:, 1:], observed[:, 1:], names[1:]
        task = "binary" if len(names) == 1 else "multiclass"
        return RowsOfReport(table, observed, predicted, given, given, names, task, f"accuracy {score:.3f}")
    target = check_regression_target(y, len(table), caller=type(model).__name__)
    values, weight = np.asarray(model.predict(X, offset=offset), dtype=np.float64), given
    column = getattr(model, "_offset_column", None)
    if column is not None and column.is_exposure and own is not None:
        exposure = np.exp(own)
        values, target, weight = values / exposure, target / exposure, weight * exposure
    task = "count" if model.model_.loss.name == "poisson" else "regression"
    is_squared = model._names_no_loss() or not model.model_.loss.log_link
    words = f"R2 {score:.3f}" if is_squared else f"D2, the fraction of deviance explained, {score:.3f}"
    return RowsOfReport(table, target[:, None], values[:, None], weight, given, ["target"], task, words)


def sections_of_rows(model: Any, rows: RowsOfReport) -> list[str]:
    """HTML of all sections."""
    single = rows.held(0)
    parts = ["<h2>Calibration and lift</h2>", paragraph(_facts(rows))]
    parts.append(f'<div class="grid">{_calibration(rows)}{_lift(rows, single)}</div>')
    new = _unseen(model, rows)
    if new:
        parts += ["<h2>What fit has not seen</h2>", listed(new)]
    return parts + _segments(model, rows, single)


def _facts(rows: RowsOfReport) -> str:
    held = rows.held(0)
    of = f" of {rows.names[0]}" if rows.task in ("binary", "multiclass") else ""
    means = [float(np.average(values, weights=held.weight)) for values in (held.observed, held.predicted)]
    words = f"{len(rows.weight):,} rows; {rows.score}; mean{of} {means[0]:.4g} observed and {means[1]:.4g} predicted"
    if rows.task != "multiclass":
        words += f"; normalized Gini {gini(held):.3f}"
    return f"{words}. Rows that the model was trained on look better than new ones."


def _calibration(rows: RowsOfReport) -> str:
    figure = new_figure(5.6, 4.4)
    ax = dressed(figure.subplots())
    if len(rows.names) == 1:
        held = rows.held(0)
        curve = in_parts(held.predicted, held.observed, held.weight)
        draw_reliability(ax, curve, widened(float(curve.min()), float(curve.max())))
    else:
        ax.plot([0, 1], [0, 1], color=PALE, linewidth=1.5)
        common = np.argsort(-(rows.weight @ rows.observed), kind="stable")[:_MAX_CLASSES]
        for output, colour in zip(common.tolist(), COLOURS, strict=False):
            held = rows.held(output)
            curve = in_parts(held.predicted, held.observed, held.weight)
            label = plain(cut(rows.names[output], 20))
            ax.plot(curve[:, 0], curve[:, 1], "o-", color=colour, markersize=3.5, linewidth=1, label=label)
        legend(ax)
    ax.set_xlabel("predicted (means of tenths of the rows)", color=INK)
    ax.set_ylabel("observed", color=INK)
    titled(ax, "calibration: on the diagonal, predictions are right on average")
    return f"<div>{image(figure, 'Calibration')}</div>"


def _lift(rows: RowsOfReport, held: HeldOutRows) -> str:
    if rows.task == "multiclass":
        return ""
    tenths = deciles(held)
    figure = new_figure(5.6, 4.4)
    ax = dressed(figure.subplots())
    draw_deciles(ax, tenths)
    legend(ax)
    ax.set_xlabel("decile of the prediction, lowest first", color=INK)
    ax.set_ylabel("mean", color=INK)
    titled(ax, "lift: predicted and observed by decile")
    cells = [
        [f"{one['decile']:.0f}", f"{one['rows']:,.0f}", f"{one['predicted']:.4g}", f"{one['observed']:.4g}",
         "-" if np.isnan(one["lift"]) else f"{one['lift']:.3f}"]
        for one in tenths
    ]  # fmt: skip
    numbers = table(["decile", "rows", "predicted", "observed", "lift"], cells)
    return f"<div>{image(figure, 'Lift by decile')}{details('deciles', numbers)}</div>"


def _unseen(model: Any, rows: RowsOfReport) -> list[str]:
    """Unknown categories, in sentences."""
    inner, found = model.model_, []
    codes = inner.spec.code(inner.coder(rows.table, model.n_jobs))
    for read, own in codes.items():
        source = inner.spec.blocks[read.block].source
        if len(read.columns) != 1 or source is None or not isinstance(inner.spec.sources[source], Symbols):
            continue
        n = int(np.count_nonzero(own < 0))
        if n:
            found.append(
                f"{n:,} rows ({n / len(own):.1%}) have a category of {read.columns[0]!r} that fit has not seen."
            )
    return list(dict.fromkeys(found))


def _cells_of(column: Column) -> pd.Series:
    """A column as categories, or as numbers that are binned; dates by month, or by year where there are many."""
    if column.kind is not Kind.NUMERIC:
        return pd.Series(column.series.to_list(), dtype=object)
    if column.measure.name != "dates":
        return pd.Series(np.asarray(column.values, dtype=np.float64))
    seconds = np.round(86400 * np.asarray(column.values, dtype=np.float64)).astype("timedelta64[s]")
    days = pd.Series(np.datetime64(0, "s") + seconds)  # nanoseconds end in 2262
    is_long = (days.max() - days.min()) > pd.Timedelta(days=3 * 366)
    return days.dt.strftime("%Y" if is_long else "%Y-%m")


def _segments(model: Any, rows: RowsOfReport, held: HeldOutRows) -> list[str]:
    """Where predictions err."""
    heading = "<h2>Worst segments</h2>"
    if rows.task == "multiclass":
        return [
            heading,
            paragraph("They are shown for one prediction a row, and each class has its own."),
        ]
    frame = pd.DataFrame({column.name: _cells_of(column) for column in rows.table.columns})
    sizes = variances_of_columns(model.model_) or {}
    order = sorted(frame.columns, key=lambda name: -sizes.get(str(name), 0.0))
    errors = error_tables(held, frame, rows.sample_weight, rows.task, order)
    parts = [
        heading,
        paragraph(
            f"Rows by category, or by bins of numbers, of the columns that matter most, and of all with a marked row. "
            f"{errors['flagged']} of {errors['cells']} differences are marked: they are beyond {errors['limit']:.1f} "
            "standard errors, which is 3 adjusted for the number of differences.",
            muted=True,
        ),
    ]
    headings = ["category", "rows", "observed", "predicted", "observed - predicted", "s.e.", "z"]
    for at, one in enumerate(errors["columns"]):
        cells = one["cells"][:_MAX_SEGMENTS]
        lines = [
            [cell["category"], f"{cell['rows']:,}", f"{cell['observed']:.4g}", f"{cell['predicted']:.4g}",
             f"{cell['difference']:+.3g}", f"{cell['error']:.2g}", f"{cell['z']:+.1f}"]
            for cell in cells
        ]  # fmt: skip
        marked = f" ({one['flagged']} marked)" if one["flagged"] else ""
        body = table(headings, lines, [cell["flagged"] for cell in cells])
        body += paragraph(f"{len(cells)} of {one['of']}.", muted=True) if one["of"] > len(cells) else ""
        parts.append(details(f"{one['column']}{marked}", body, is_open=at < 2 or bool(one["flagged"])))
    return parts
