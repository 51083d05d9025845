"""The page of a fitted wide model, what a notebook shows and the report in one HTML file, and its pictures.

Of rows, where some are given, the report has calibration, lift, worst segments, and what fit has not seen.

The pictures are of a term, the most important terms together, and one row's waterfall.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import is_classifier

from tabsym.design.sources import Bins, CategoricalSource, CountEffect, Crossing
from tabsym.frame import Column, Kind, Table, check_regression_target, check_weights, plain_labels
from tabsym.messages import Number, check_option, plural
from tabsym.models.inspection.coef_table import base_of_term, has_ratios, table_of_term
from tabsym.models.inspection.explain import (
    category_range,
    columns_of_terms,
    interactions_of_levels,
    score_text,
    switched_off,
    variances_of_columns,
    variances_of_terms,
)
from tabsym.models.model import (
    CoefficientFrames,
    Split,
    WideModel,
    categories_by_position,
    edge_names,
    index_of,
    rows_name,
    source_of,
    split_frame,
)
from tabsym.plots.predictions import (
    HeldOutRows,
    deciles,
    draw_deciles,
    draw_reliability,
    draw_waterfall,
    error_tables,
    gini,
    in_parts,
)
from tabsym.plots.style import (
    COLOURS,
    INK,
    PALE,
    Raw,
    bar,
    bounds_as_text,
    category_text,
    cut,
    details,
    dressed,
    fragment,
    image,
    legend,
    listed,
    new_figure,
    page,
    paragraph,
    plain,
    table,
    titled,
    widened,
    window,
)
from tabsym.plots.terms import Look, draw_categories, draw_curve, draw_heatmap, draw_ordered

Floats = NDArray[np.float64]

MAX_TERMS = 12
"""Effects, and interactions, that the report draws."""
MAX_COEFFICIENTS = 40
"""Coefficients of a term in the report's table: the most frequent."""
MIN_FREQUENCY = 5
"""Training rows below which a category counts as infrequent."""


def notebook_html(model: Any) -> str:
    """The fitted model for a notebook: its terms by importance, variances and fit."""
    heading = f"{type(model).__name__}: loss {model.loss_}, {model._rows_in_words()}"
    more = [details("linear predictor", paragraph(score_text(model.model_.spec)))]
    return fragment(paragraph(heading), paragraph(facts(model), muted=True), terms_table(model), *more)


def write_report(model: Any, path: Any, rows: RowsOfReport | None, title: str | None) -> Path:
    """Write the report of a fitted model; `rows`: what the sections of rows are made of."""
    path = Path(path)
    if not path.parent.is_dir():  # before the pictures are drawn, which takes seconds
        raise ValueError(f"There is no folder {str(path.parent)!r} to write the report to; make it, or name another.")
    heading = f"{type(model).__name__}: {model._rows_in_words()}, loss {model.loss_}" if title is None else title
    names = [name for name, _ in important_terms(model.model_, model.coefs_)]
    spec = model.model_.spec
    interactions = [name for name in names if isinstance(source_of(spec, index_of(spec, name)), Crossing)]
    effects = [name for name in names if name not in interactions]
    parts = [
        paragraph(facts(model), muted=True),
        f'<h2>What to be careful with</h2><div class="box">{listed(cautions(model))}</div>',
        "<h2>Terms by importance, and their variances</h2>",
        paragraph(
            "Fraction: of the linear predictor's variance over the training rows, as if terms were uncorrelated. Sd: "
            "of the coefficients of a term about their mean, estimated (REML). Edf: effective degrees of freedom. "
            "Lowest and highest: coefficients on the link scale.",
            muted=True,
        ),
        terms_table(model),
        details("linear predictor", paragraph(score_text(model.model_.spec))),
        "<h2>Effects</h2>",
        paragraph(_units(model), muted=True),
        _pictures(model, effects),
    ]
    if interactions:
        parts += ["<h2>Interactions</h2>", _pictures(model, interactions)]
    if rows is None:
        parts += [
            "<h2>Calibration, lift and worst segments</h2>",
            paragraph("They need rows, and none were given: model.report(path, X, y), best with rows held out of fit."),
        ]
    else:
        parts += sections_of_rows(model, rows)
    path.write_text(page(heading, *parts), encoding="utf-8")
    return path


def facts(model: Any) -> str:
    """The fit in one line."""
    spec, uncertainty = model.model_.spec, model.model_.uncertainty
    words = [
        f"{plural(len(spec.blocks), 'term')} with {plural(sum(spec.sizes) * model.model_.n_outputs, 'coefficient')}"
    ]
    if uncertainty is not None:
        words.append(f"{uncertainty.total_edf:,.1f} effective degrees of freedom")
        measures = (("deviance", model.deviance_), ("AIC", model.aic_), ("dispersion", model.dispersion_))
        words += [f"{name} {value:,.4g}" for name, value in measures if np.isfinite(value)]
    words.append(plural(model.n_iter_, "iteration"))
    return "; ".join(words)


def terms_table(model: Any) -> str:
    """The terms, most important first: fraction of variance, sd, edf, and the extreme categories."""
    inner, frames = model.model_, model.coefs_
    terms = important_terms(inner, frames)
    index = {block.name: number for number, block in enumerate(inner.spec.blocks)}
    largest = max((fraction or 0.0 for _, fraction in terms), default=0.0) or 1.0
    rows = []
    for name, fraction in terms:
        frame, at = frames[name], index.get(name)
        values = _split(inner, frame, name).values
        known: list[Any] = ["-", "-"]
        if inner.uncertainty is not None and at is not None:
            variance = inner.entry_variance(at)
            sd = "fixed" if inner.spec.blocks[at].fixed else f"{np.sqrt(variance):.3g}"
            known = [sd if np.isfinite(variance) else "unpenalized", f"{inner.uncertainty.edf[at]:,.1f}"]
        fraction_cells = ["-", ""] if fraction is None else [f"{fraction:.1%}", Raw(bar(fraction / largest, 6.0))]
        low, high = float(np.nanmin(values.to_numpy())), float(np.nanmax(values.to_numpy()))
        bins = _bins_of(model, name)
        if bins is not None and len(bins.bounds) > 1:
            named = f"bins between {_outer(model, bins)}"
        else:
            categories = values if bins is None else values.set_axis(texts_of(bins, model._date_columns()))
            named = category_range(categories.iloc[:, 0]) if values.shape[1] == 1 and len(frame) > 1 else ""
        rows.append([name, *fraction_cells, f"{len(frame):,}", *known, f"{low:.3g}", f"{high:.3g}", named])
    headings = ["term", "fraction", "", "coefficients", "sd", "edf", "lowest", "highest", "from high to low"]
    dropped = switched_off(inner)
    more = paragraph(f"Dropped, as their variance is estimated as 0: {', '.join(dropped)}.", muted=True)
    return table(headings, rows) + (more if dropped else "")


def cautions(model: Any) -> list[str]:
    """What a reader should know before using the coefficients, in sentences."""
    inner = model.model_
    spec, uncertainty = inner.spec, inner.uncertainty
    dropped = set(switched_off(inner))
    sentences = []
    if uncertainty is None:
        sentences.append("Coefficients have no intervals, as the model was trained online.")
    separated = uncertainty.separated if uncertainty is not None else ()
    if separated:
        sentences.append(
            f"Separation: {_names(list(separated))} predict the target completely in some rows; without penalties "
            "their maximum likelihood estimates are infinite, and what is shown is where the solver ended. Standard "
            "deviations of the term are infinite, but not of differences of its other categories (contrast)."
        )
    if uncertainty is not None:
        unknown = [
            block.name
            for index, block in enumerate(spec.blocks)
            if np.isinf(uncertainty.sd[spec.coefs(index)]).any()
            and block.name not in separated
            and (block.columns or not separated)  # the intercept has the means of separated terms
        ]
        if unknown:
            sentences.append(
                f"Aliased: some coefficients of {_names(unknown)} are not unique, as other terms determine them or no "
                "row has them; their standard deviations are infinite, and predictions are not affected."
            )
    for index, block in enumerate(spec.blocks):
        source = source_of(spec, index)
        counts = inner.counts[spec.coefs(index)][:: block.rank]
        n_few = int(np.count_nonzero(counts < MIN_FREQUENCY))
        if isinstance(source, (CategoricalSource, Crossing)) and n_few and block.name not in dropped:
            sentences.append(
                f"Rare: {n_few:,} of the {len(counts):,} categories of {block.name!r} have fewer than {MIN_FREQUENCY} "
                f"training rows ({counts[counts < MIN_FREQUENCY].sum() / max(int(counts.sum()), 1):.1%} of the rows)"
                + ("; they are shrunk towards the mean." if uncertainty is not None and not block.fixed else ".")
            )
    sentences.append(
        {
            "neutral": "Unknown categories add nothing: they are predicted as the mean of their term.",
            "error": "Unknown categories are refused at prediction.",
            "similar": "Unknown categories are predicted as the known ones that they resemble in the other columns.",
        }[model.handle_unknown]
    )
    fitted_sources = [source_of(spec, index) for index, block in enumerate(spec.blocks) if block.name not in dropped]
    bins = {source.column: source for source in fitted_sources if isinstance(source, Bins) and len(source.bounds) > 1}
    if bins:
        ends = [f"{cut(name, 40)} ({_outer(model, source)})" for name, source in list(bins.items())[:8]]
        sentences.append(
            f"Extrapolation: beyond the outer bounds of a number its effect stays the same: {', '.join(ends)}"
            + (", ..." if len(bins) > len(ends) else ".")
        )
    slopes = list(dict.fromkeys(numeric.label for numeric in spec.numerics))
    if slopes:
        sentences.append(f"Extrapolation: the effect of {_names(slopes)} is linear, also beyond the training rows.")
    if dropped:
        sentences.append(
            f"Dropped: the variance of {_names(sorted(dropped))} is estimated as 0, so that they have no effect."
        )
    sentences.append("Coefficients describe associations, given the other terms; they are not effects of a change.")
    return sentences


def _pictures(model: Any, names: list[str]) -> str:
    """The pictures of terms with their coefficients, two in a row where there is room."""
    scale = "response" if shows_ratios(model.model_) else "link"
    parts = []
    for name in names[:MAX_TERMS]:
        figure = new_figure(5.6, 3.4)
        draw_term(
            model.model_, model.coefs_, model._output_names(), model._date_columns(), name,
            scale=scale, base=None, level=0.95, top=16, output=None, ax=figure,
        )  # fmt: skip
        coefficients = details(f"{name}: coefficients", _coefficients(model, name))
        parts.append(f"<div>{image(figure, f'Coefficients of {name}')}{coefficients}</div>")
    n_more = len(names) - MAX_TERMS
    more = f"{n_more} further {'term is' if n_more == 1 else 'terms are'} not drawn." if n_more > 0 else ""
    return f'<div class="grid">{"".join(parts)}</div>' + (paragraph(more, muted=True) if more else "")


def _coefficients(model: Any, name: str) -> str:
    """The coefficients of a term: bins in order, of categories the most frequent."""
    frame, bins = model.coefs_[name], _bins_of(model, name)
    if bins is not None:
        frame = frame.set_axis(texts_of(bins, model._date_columns()))
    split = _split(model.model_, frame, name)
    if split.low is None and split.rows is not None:
        order = np.argsort(-split.rows.to_numpy(), kind="stable")
        frame = frame.iloc[order]
        split = _split(model.model_, frame, name)
    names = list(map(str, split.values.columns))  # classes may be called "low" or "rows"
    cells = frame if split.low is None else frame.drop(columns=list(edge_names(names)))
    rows = [
        [category_text(key), *(_number(value, column == rows_name(names)) for column, value in zip(cells, values))]
        for key, values in zip(cells.index[:MAX_COEFFICIENTS], cells.to_numpy()[:MAX_COEFFICIENTS], strict=True)
    ]
    more = paragraph(f"{MAX_COEFFICIENTS} of {len(frame):,}.", muted=True) if len(frame) > MAX_COEFFICIENTS else ""
    return table(["category" if bins is None else "bin", *map(str, cells.columns)], rows) + more


def _split(model: WideModel, frame: pd.DataFrame, name: str) -> Split:
    """The columns of a term's coefficients: of vectors the values of all components."""
    at = index_of(model.spec, name)
    return split_frame(frame, model.n_outputs * (1 if at is None else model.spec.blocks[at].rank))


def _bins_of(model: Any, name: str) -> Bins | None:
    """The bins whose coefficients a term has."""
    source = source_of(model.model_.spec, index_of(model.model_.spec, name))
    return source if isinstance(source, Bins) else None


def _number(value: Any, is_count: bool) -> str:
    return "-" if pd.isna(value) else f"{value:,.0f}" if is_count else f"{value:.4g}"


def _units(model: Any) -> str:
    """What the pictures show."""
    if model.model_.n_outputs > 1:
        return f"They show the {unit_of(model.model_, True)}. Bands and lines are intervals of 95 %."
    if model.model_.loss.for_classes and shows_ratios(model.model_):
        return "Odds ratios to the mean of the term: 2 is twice the odds. Bands and lines are intervals of 95 %."
    if shows_ratios(model.model_):
        return "Relativities: factors of the mean of the term, 1.2 is 20 % more. Bands and lines are intervals of 95 %."
    return f"They show the {unit_of(model.model_, False)}. Bands and lines are intervals of 95 %."


def _outer(model: Any, bins: Bins) -> str:
    """The outer bounds of bins."""
    return " and ".join(bounds_as_text(bins.bounds[[0, -1]], bins.column in model._date_columns()))


def _names(names: list[str]) -> str:
    return ", ".join(repr(cut(name, 40)) for name in names[:6]) + (", ..." if len(names) > 6 else "")


_MAX_CLASSES = 6
_MAX_SEGMENTS = 12


@dataclass(frozen=True)
class RowsOfReport:
    """Rows with their predictions.

    `table`: the features; `observed`, `predicted` (n, outputs): values, rates with exposure, or indicators and
    class probabilities; `weight` (n,) with the exposure in it, `sample_weight` (n,) without; `names` of outputs.
    """

    table: Table
    observed: Floats
    predicted: Floats
    weight: Floats
    sample_weight: Floats
    names: list[str]
    task: str
    score: str

    def of_output(self, output: int) -> HeldOutRows:
        """One output's rows."""
        return HeldOutRows(
            np.arange(len(self.weight)), self.predicted[:, output], self.observed[:, output], self.weight
        )


def rows_of_report(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> RowsOfReport:
    """Rows for the report of a fitted model, with their predictions, validated."""
    table, offsets = model._read_to_predict(X)
    given = np.ones(len(table)) if (weights := check_weights(sample_weight, len(table))) is None else weights
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
    if column is not None and column.is_exposure and offsets is not None:
        exposure = np.exp(offsets)
        values, target, weight = values / exposure, target / exposure, weight * exposure
    task = "count" if model.model_.loss.name == "poisson" else "regression"
    is_squared = model._names_no_loss() or not model.model_.loss.log_link
    words = f"R2 {score:.3f}" if is_squared else f"D2, the fraction of deviance explained, {score:.3f}"
    return RowsOfReport(table, target[:, None], values[:, None], weight, given, ["target"], task, words)


def sections_of_rows(model: Any, rows: RowsOfReport) -> list[str]:
    """HTML of all sections."""
    single = rows.of_output(0)
    parts = ["<h2>Calibration and lift</h2>", paragraph(_facts(rows))]
    parts.append(f'<div class="grid">{_calibration(rows)}{_lift(rows, single)}</div>')
    new = _unseen(model, rows)
    if new:
        parts += ["<h2>What fit has not seen</h2>", listed(new)]
    return parts + _segments(model, rows, single)


def _facts(rows: RowsOfReport) -> str:
    single = rows.of_output(0)
    of = f" of {rows.names[0]}" if rows.task in ("binary", "multiclass") else ""
    means = [float(np.average(values, weights=single.weight)) for values in (single.observed, single.predicted)]
    means_said = f"mean{of} {means[0]:.4g} observed and {means[1]:.4g} predicted"
    words = f"{plural(len(rows.weight), 'row')}; {rows.score}; {means_said}"
    if rows.task != "multiclass":
        words += f"; normalized Gini {gini(single):.3f}"
    return f"{words}. Rows that the model was trained on look better than new ones."


def _calibration(rows: RowsOfReport) -> str:
    figure = new_figure(5.6, 4.4)
    ax = dressed(figure.subplots())
    if len(rows.names) == 1:
        output_rows = rows.of_output(0)
        curve = in_parts(output_rows.predicted, output_rows.observed, output_rows.weight)
        draw_reliability(ax, curve, widened(float(curve.min()), float(curve.max())))
    else:
        ax.plot([0, 1], [0, 1], color=PALE, linewidth=1.5)
        common = np.argsort(-(rows.weight @ rows.observed), kind="stable")[:_MAX_CLASSES]
        for output, colour in zip(common.tolist(), COLOURS, strict=False):
            output_rows = rows.of_output(output)
            curve = in_parts(output_rows.predicted, output_rows.observed, output_rows.weight)
            label = plain(cut(rows.names[output], 20))
            ax.plot(curve[:, 0], curve[:, 1], "o-", color=colour, markersize=3.5, linewidth=1, label=label)
        legend(ax)
    ax.set_xlabel("predicted (means of tenths of the rows)", color=INK)
    ax.set_ylabel("observed", color=INK)
    titled(ax, "calibration: on the diagonal, predictions are right on average")
    return f"<div>{image(figure, 'Calibration')}</div>"


def _lift(rows: RowsOfReport, single: HeldOutRows) -> str:
    if rows.task == "multiclass":
        return ""
    tenths = deciles(single)
    figure = new_figure(5.6, 4.4)
    ax = dressed(figure.subplots())
    draw_deciles(ax, tenths)
    legend(ax)
    ax.set_xlabel("decile of the prediction, lowest first", color=INK)
    ax.set_ylabel("mean", color=INK)
    titled(ax, "lift: predicted and observed by decile")
    cells = [
        [f"{tenth['decile']:.0f}", f"{tenth['rows']:,.0f}", f"{tenth['predicted']:.4g}", f"{tenth['observed']:.4g}",
         "-" if np.isnan(tenth["lift"]) else f"{tenth['lift']:.3f}"]
        for tenth in tenths
    ]  # fmt: skip
    numbers = table(["decile", "rows", "predicted", "observed", "lift"], cells)
    return f"<div>{image(figure, 'Lift by decile')}{details('deciles', numbers)}</div>"


def _unseen(model: Any, rows: RowsOfReport) -> list[str]:
    """Unknown categories, in sentences."""
    inner, sentences = model.model_, []
    codes = inner.spec.code(inner.coder(rows.table, model.n_jobs))
    for read, row_codes in codes.items():
        if len(read.columns) != 1 or not isinstance(source_of(inner.spec, read.block), CategoricalSource):
            continue
        n = int(np.count_nonzero(row_codes < 0))
        if n:
            fraction = f"({n / len(row_codes):.1%})"
            rows_text = f"{plural(n, 'row')} {fraction} {'has' if n == 1 else 'have'}"
            sentences.append(f"{rows_text} a category of {read.columns[0]!r} that fit has not seen.")
    return list(dict.fromkeys(sentences))


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


def _segments(model: Any, rows: RowsOfReport, single: HeldOutRows) -> list[str]:
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
    errors = error_tables(single, frame, rows.sample_weight, rows.task, order)
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
    for at, by_category in enumerate(errors["columns"]):
        cells = by_category["cells"][:_MAX_SEGMENTS]
        lines = [
            [cell["category"], f"{cell['rows']:,}", f"{cell['observed']:.4g}", f"{cell['predicted']:.4g}",
             f"{cell['difference']:+.3g}", f"{cell['error']:.2g}", f"{cell['z']:+.1f}"]
            for cell in cells
        ]  # fmt: skip
        marked = f" ({by_category['flagged']} marked)" if by_category["flagged"] else ""
        body = table(headings, lines, [cell["flagged"] for cell in cells])
        body += paragraph(f"{len(cells)} of {by_category['of']}.", muted=True) if by_category["of"] > len(cells) else ""
        parts.append(details(f"{by_category['column']}{marked}", body, is_open=at < 2 or bool(by_category["flagged"])))
    return parts


# -- pictures of a fitted wide model ---------------------------------------------------------------

_MAX_LINES = 8
"""Classes that are drawn together."""
_MAX_POINTS = 3
"""Bins up to which they are points, as of a column of 0 and 1; a curve would be of ends that no bin has."""
_IN_PANEL = 12
"""Categories of a panel of the whole model."""


def draw_term(
    model: WideModel, frames: CoefficientFrames, outputs: list[str], dates: set[str], term: str, *,
    scale: str, base: Any, level: float, top: int, output: Any, ax: Any,
) -> Any:  # fmt: skip
    """The picture of a term by what it has coefficients of; see `plot_term`."""
    check_option("top", top, (Number(at_least=1, whole=True),))
    base = base_of_term(base, model, frames, term, len(outputs))
    table = table_of_term(model, frames, outputs, term, scale=scale, base=base, level=level)
    ratios = scale == "response" and shows_ratios(model)
    dropped = _dropped_wholly(model)
    note = "dropped: its variance is estimated as 0" if term in dropped else ""
    labels = Look(term, unit_of(model, ratios, base), ratios, level if table["sd"].notna().any() else None, note)
    tables = {str(name): rows.reset_index(drop=True) for name, rows in table.groupby("class", sort=False)}
    if output is not None and str(output) not in tables:
        raise ValueError(f"Term {term!r} has no class {output!r}; it has {', '.join(map(repr, tables))}.")
    index = index_of(model.spec, term)
    source = source_of(model.spec, index)
    chosen = {str(output): tables[str(output)]} if output is not None else tables
    first = next(iter(chosen.values()))
    single = replace(labels, name=f"{term}: {next(iter(chosen))}") if len(tables) > 1 else labels
    plotted = dict(list(chosen.items())[:_MAX_LINES])
    if isinstance(source, Bins) and 1 < len(first) <= _MAX_POINTS:
        plotted = {name: table.assign(category=texts_of(source, dates)) for name, table in plotted.items()}
        return draw_ordered(plotted, labels if len(plotted) > 1 else single, source.column, ax=ax)
    if isinstance(source, Bins) and len(first) > 1:
        return draw_curve(
            plotted, labels if len(plotted) > 1 else single, source.column, is_date=source.column in dates, ax=ax
        )
    if isinstance(source, CountEffect) and len(first) > 1:
        return draw_ordered(
            plotted, labels if len(plotted) > 1 else single, "other training rows of the category", ax=ax
        )
    columns = () if index is None else model.spec.blocks[index].columns
    if isinstance(source, Crossing) and len(columns) == 2 and len(first) > 1:
        parts = _parts(model, term)
        if len(parts) > 1 and base is None:
            output_index = list(tables).index(str(first["class"].iloc[0])) if len(tables) > 1 else 0
            named, orders = _surface(model, parts, output_index, dates)
        else:
            named, orders = _in_words(model, source, first, dates)
        return draw_heatmap(named, single, (columns[0], columns[1]), orders, ax=ax)
    return draw_categories(first, single, top=top, ax=ax)


def texts_of(bins: Bins, dates: set[str]) -> list[str]:
    """The bins ``(low, high]`` of a column as text."""
    ends = bounds_as_text(bins.bounds, bins.column in dates)
    inner = [f"({low}, {high}]" for low, high in pairwise(ends)]
    return ["(missing)"] * bins.missing + ([f"≤ {ends[0]}", *inner, f"> {ends[-1]}"] if ends else ["all"])


def _in_words(
    model: WideModel, source: Crossing, table: pd.DataFrame, dates: set[str]
) -> tuple[pd.DataFrame, list[list[str] | None]]:
    """The rows of an interaction with bins as text, and the order of the bins on each side, None for categories."""
    sides = (model.spec.sources[source.left], model.spec.sources[source.right])
    texts = [
        dict(zip(side.labels, texts_of(side, dates), strict=True)) if isinstance(side, Bins) else {} for side in sides
    ]
    named = [tuple(words.get(part, part) for words, part in zip(texts, key, strict=True)) for key in table["category"]]
    orders = [list(words.values()) if words else None for words in texts]
    return table.assign(category=pd.Series(named, index=table.index, dtype=object)), orders


def _parts(model: WideModel, term: str) -> list[int]:
    """The blocks that add up to an interaction, that of all bins first."""
    whole = interactions_of_levels(model.spec)
    names = [block.name for block in model.spec.blocks]
    return [names.index(term), *(index for index, name in enumerate(names) if whole.get(name) == term)]


def _dropped_wholly(model: WideModel) -> set[str]:
    """The dropped terms, of interactions those whose parts are all dropped."""
    dropped = set(switched_off(model))
    partly_kept = {name for part, name in interactions_of_levels(model.spec).items() if part not in dropped}
    return dropped - partly_kept


def _surface(
    model: WideModel, parts: list[int], output: int, dates: set[str]
) -> tuple[pd.DataFrame, list[list[str] | None]]:
    """The sums of an interaction's parts, as `_in_words`: on all edges of their bins, where each has training rows."""
    crossings: list[Any] = [source_of(model.spec, index) for index in parts]
    sides = [[model.spec.sources[getattr(crossing, side)] for crossing in crossings] for side in ("left", "right")]
    texts, codes = [], []  # of each cell of a side; codes for each part
    for side, sources in zip(("left", "right"), sides, strict=True):
        first = sources[0]
        if isinstance(first, Bins):
            bounds = np.unique(np.concatenate([bins.bounds for bins in sources]))
            every = Bins(first.column, bounds, (), first.missing)
            inside = np.concatenate([[np.nan] * first.missing, bounds, [np.inf]])
            texts.append(texts_of(every, dates))
            codes.append([bins.codes(inside) for bins in sources])
        else:
            (categories,), _ = categories_by_position(model.spec, getattr(crossings[0], side))
            texts.append(list(categories))
            codes.append([np.arange(len(first), dtype=np.int32)] * len(sources))
    n_left, n_right = map(len, texts)
    value, rows = np.zeros(n_left * n_right), np.zeros(n_left * n_right)
    known = np.ones(n_left * n_right, dtype=bool)
    for index, crossing, left, right in zip(parts, crossings, *codes, strict=True):
        cells = crossing.interaction.transform(np.repeat(left, n_right), np.tile(right, n_left))
        coefs = model.spec.coefs(index)
        value += model.theta[coefs].reshape(-1, model.n_outputs)[cells, output]
        rows += model.counts[coefs][cells] * (index == parts[0])
        known &= cells >= 0
    pairs = [(left, right) for left in texts[0] for right in texts[1]]
    table = pd.DataFrame({"category": pd.Series(pairs, dtype=object), "value": value, "rows": rows})
    orders = [text if isinstance(sources[0], Bins) else None for text, sources in zip(texts, sides, strict=True)]
    return table[known].reset_index(drop=True), orders


def shows_ratios(model: WideModel) -> bool:
    """Whether coefficients are logarithms of relativities or odds ratios; those of the hinge loss are neither."""
    return has_ratios(model) and model.loss.is_smooth


def unit_of(model: WideModel, ratios: bool, base: Any = None) -> str:
    """The label of an axis of coefficients."""
    to = "the mean" if base is None else "the base"
    if ratios:
        if model.n_outputs > 1:
            return f"ratio to {to}, of the class to the geometric mean of all"
        return f"odds ratio to {to}" if model.loss.for_classes else f"relativity to {to}"
    if not model.loss.is_smooth and model.loss.for_classes:
        return f"difference from {to}, of the decision function"
    if not has_ratios(model):
        return f"difference from {to}, in units of the target"
    if model.n_outputs > 1:
        return "difference of the logarithm, of the class to the geometric mean of all"
    return "difference of log odds" if model.loss.for_classes else "difference of the logarithm"


def important_terms(model: WideModel, frames: CoefficientFrames) -> list[tuple[str, float | None]]:
    """The terms with categories or slopes, most important first, with their fraction of the variance if it is known.

    Of products by the standard deviation of their coefficients. Without dropped terms.
    """
    dropped = _dropped_wholly(model)
    variances = variances_of_terms(model)
    if variances is not None:
        total = sum(variance for variance, _ in variances.values()) or 1.0
        fractions = {
            name: variance / total for name, (variance, columns) in variances.items() if columns and name not in dropped
        }
        return [(name, fractions[name]) for name in sorted(fractions, key=lambda name: -fractions[name])]
    deviations = {}
    for name, frame in frames.items():
        values = _split(model, frame, name).values.to_numpy(dtype=np.float64)
        if len(values) > 1 and name not in dropped:
            deviations[name] = float(np.nanstd(values))
    return [(name, None) for name in sorted(deviations, key=lambda name: -deviations[name])]


def draw_model(
    model: WideModel, frames: CoefficientFrames, outputs: list[str], dates: set[str], *,
    scale: str, top: int, output: Any,
) -> Any:  # fmt: skip
    """The most important terms, two in a row; an array of axes."""
    check_option("top", top, (Number(at_least=1, whole=True),))
    terms = important_terms(model, frames)
    if not terms:
        raise ValueError("The model has no term other than the intercept to plot; all were dropped or none was there.")
    plotted = terms[:top]
    columns = min(2, len(plotted))
    lines = -(-len(plotted) // columns)
    figure = window(6.2 * columns, 3.7 * lines + 0.4)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for panel, (name, fraction) in zip(panels, plotted, strict=False):
        draw_term(
            model, frames, outputs, dates, name,
            scale=scale, base=None, level=0.95, top=_IN_PANEL, output=output, ax=panel,
        )  # fmt: skip
        for side in ("left", "right"):
            panel.set_title("", loc=side)
        n = len(frames[name])
        capped = f"; {_IN_PANEL} of {n}" if len(panel.get_yticklabels()) == _IN_PANEL < n else ""
        title = cut(name, 40) + ("" if fraction is None else f" ({fraction:.1%} of the variance{capped})")
        panel.set_title(plain(title), loc="left", fontsize=10, color=INK)
    for panel in panels[len(plotted) :]:
        panel.remove()
    more = f", the {len(plotted)} most important of {len(terms)} terms" if len(terms) > len(plotted) else ""
    figure.suptitle(plain(f"linear predictor by term{more}"), fontsize=11, color=INK)
    return panels[: len(plotted)]


def link_of(model: WideModel) -> tuple[str, Any, Any] | None:
    """The name of a prediction, the link and its inverse; None where predictions are the linear predictor, or many."""
    if model.n_outputs > 1 or not shows_ratios(model):
        return None
    return ("probability", logit, expit) if model.loss.for_classes else ("prediction", np.log, np.exp)


def draw_explanation(
    model: WideModel, explained: pd.Series, table: Table, row: int, outputs: list[str], *,
    scale: str, top: int, output: Any, ax: Any,
) -> Any:  # fmt: skip
    """The contributions to one row's prediction (`explained`) as a waterfall; see `plot_explanation`."""
    of = ""
    if len(outputs) > 1:
        if output is not None and str(output) not in outputs:
            raise ValueError(f"There is no output {output!r}; it has {', '.join(map(repr, outputs))}.")
        best = str(explained.groupby(level=1, sort=False).sum().idxmax()) if output is None else str(output)
        explained, of = explained.xs(best, level=1), f" of {best}"
    constants = [name for name, columns in columns_of_terms(model).items() if not columns]
    base = float(explained.reindex(constants).sum())
    explained = explained.drop(constants, errors="ignore")
    values = _values_of_row(model, table, row)
    labels = [f"{name} = {values[name]}" if name in values else str(name) for name in explained.index]
    link = link_of(model) if scale == "response" else None
    if scale == "response" and link is None and len(outputs) > 1:
        raise ValueError("scale='response' is for one linear predictor, and each class has its own; use 'link'.")
    score = base + float(explained.sum())
    unit = "linear predictor" if link is None else link[0]
    predicted = score if link is None else float(link[2](score))
    return draw_waterfall(
        explained, base, labels, top=top, ax=ax, unit=unit + of, link=None if link is None else link[1:],
        title=f"{unit}{of}: {predicted:.4g}, from the intercept (dotted) on",
    )  # fmt: skip


def _values_of_row(model: WideModel, table: Table, row: int) -> dict[str, str]:
    """The categories and numbers of a row as text, by term and by column."""
    cells = {name: table[name].series.to_list()[row] for name in table.names}
    is_number = {name: isinstance(cell, float) and not np.isnan(cell) for name, cell in cells.items()}
    texts = {name: f"{cell:.6g}" if is_number[name] else category_text(cell) for name, cell in cells.items()}
    blocks = [block for block in model.spec.blocks if block.columns]
    by_term = {block.name: " | ".join(texts[name] for name in block.columns) for block in blocks}
    return {name: text for name, text in texts.items() if name not in by_term} | by_term
