"""Pictures of a fitted wide model: which one shows a term, the most important terms together, one row's waterfall."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from tabsym.design.sources import Bins, CountEffect, Crossing
from tabsym.frame import Table
from tabsym.models.inspection.coef_table import has_ratios, table_of_term
from tabsym.models.inspection.explain import columns_of_terms, interactions_of_levels, switched_off, variances_of_terms
from tabsym.models.model import CoefficientFrames, WideModel, categories_by_position, index_of, source_of, split_frame
from tabsym.plots.predictions import draw_waterfall
from tabsym.plots.style import INK, bounds_as_text, category_text, cut, plain, window
from tabsym.plots.terms import Look, draw_categories, draw_curve, draw_heatmap, draw_ordered
from tabsym.validation import Number, check_option

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
    table = table_of_term(model, frames, outputs, term, scale=scale, base=base, level=level)
    ratios = scale == "response" and shows_ratios(model)
    dropped = _dropped_wholly(model)
    note = "dropped: its variance is estimated as 0" if term in dropped else ""
    look = Look(term, unit_of(model, ratios, base), ratios, level if table["sd"].notna().any() else None, note)
    tables = {str(name): rows.reset_index(drop=True) for name, rows in table.groupby("class", sort=False)}
    if output is not None and str(output) not in tables:
        raise ValueError(f"Term {term!r} has no class {output!r}; it has {', '.join(map(repr, tables))}.")
    index = index_of(model.spec, term)
    source = source_of(model.spec, index)
    chosen = {str(output): tables[str(output)]} if output is not None else tables
    first = next(iter(chosen.values()))
    single = replace(look, name=f"{term}: {next(iter(chosen))}") if len(tables) > 1 else look
    drawn = dict(list(chosen.items())[:_MAX_LINES])
    if isinstance(source, Bins) and 1 < len(first) <= _MAX_POINTS:
        drawn = {name: table.assign(category=texts_of(source, dates)) for name, table in drawn.items()}
        return draw_ordered(drawn, look if len(drawn) > 1 else single, source.column, ax=ax)
    if isinstance(source, Bins) and len(first) > 1:
        return draw_curve(
            drawn, look if len(drawn) > 1 else single, source.column, is_date=source.column in dates, ax=ax
        )
    if isinstance(source, CountEffect) and len(first) > 1:
        return draw_ordered(drawn, look if len(drawn) > 1 else single, "other training rows of the category", ax=ax)
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

    Of products by the range of their coefficients. Without dropped terms.
    """
    dropped = _dropped_wholly(model)
    variances = variances_of_terms(model)
    if variances is not None:
        total = sum(variance for variance, _ in variances.values()) or 1.0
        fractions = {
            name: variance / total for name, (variance, columns) in variances.items() if columns and name not in dropped
        }
        return [(name, fractions[name]) for name in sorted(fractions, key=lambda name: -fractions[name])]
    ranges = {}
    for name, frame in frames.items():
        values = split_frame(frame, model.n_outputs).values.to_numpy(dtype=np.float64)
        if len(values) > 1 and name not in dropped:
            ranges[name] = float(np.nanstd(values))
    return [(name, None) for name in sorted(ranges, key=lambda name: -ranges[name])]


def draw_model(
    model: WideModel, frames: CoefficientFrames, outputs: list[str], dates: set[str], *,
    scale: str, top: int, output: Any,
) -> Any:  # fmt: skip
    """The most important terms, two in a row; an array of axes."""
    check_option("top", top, (Number(at_least=1, whole=True),))
    terms = important_terms(model, frames)
    if not terms:
        raise ValueError("The model has no term beside the intercept to plot; all were dropped or none was there.")
    shown = terms[:top]
    columns = min(2, len(shown))
    lines = -(-len(shown) // columns)
    figure = window(6.2 * columns, 3.7 * lines + 0.4)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for panel, (name, fraction) in zip(panels, shown, strict=False):
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
    for panel in panels[len(shown) :]:
        panel.remove()
    more = f", the {len(shown)} most important of {len(terms)} terms" if len(terms) > len(shown) else ""
    figure.suptitle(plain(f"linear predictor by term{more}"), fontsize=11, color=INK)
    return panels[: len(shown)]


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
    shown = score if link is None else float(link[2](score))
    return draw_waterfall(
        explained, base, labels, top=top, ax=ax, unit=unit + of, link=None if link is None else link[1:],
        title=f"{unit}{of}: {shown:.4g}, from the intercept (dotted) on",
    )  # fmt: skip


def _values_of_row(model: WideModel, table: Table, row: int) -> dict[str, str]:
    """The categories and numbers of a row as text, by term and by column."""
    cells = {name: table[name].series.to_list()[row] for name in table.names}
    is_number = {name: isinstance(cell, float) and not np.isnan(cell) for name, cell in cells.items()}
    texts = {name: f"{cell:.6g}" if is_number[name] else category_text(cell) for name, cell in cells.items()}
    blocks = [block for block in model.spec.blocks if block.columns]
    by_term = {block.name: " | ".join(texts[name] for name in block.columns) for block in blocks}
    return {name: text for name, text in texts.items() if name not in by_term} | by_term
