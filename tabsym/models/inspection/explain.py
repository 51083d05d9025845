"""What `explain` returns of a fitted wide model, contributions to predictions, and what `summary` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.design.formula import show
from tabsym.design.model_spec import Factor, ModelSpec, Term
from tabsym.design.plan import LEVELS, at_level
from tabsym.design.sources import CountEffect, Flag
from tabsym.frame import Kind, Table
from tabsym.models.constraints import describe_directions
from tabsym.models.model import WideModel, products_of, source_of, split_frame
from tabsym.plots.style import LONGEST, category_text, cut

Floats = NDArray[np.float64]
OFFSET = "(offset)"
"""The column of `explain` that holds the offset of each row."""


def contributions(model: WideModel, table: Table, n_jobs: int | None = None) -> dict[str, Floats]:
    """The contribution (n, K) of every term, by name; their sum, with an offset, is the linear predictor.

    A slope's contribution is the slope times the centred value; the rest is in the intercept, or in the main effect of
    the same category. Dropped terms, which contribute 0, are left out; what centring has moved to one is the slopes'.
    The effect of a category's count is part of that of the category, and an interaction is one contribution whatever
    numbers of bins it has coefficients for.
    """
    spec = model.spec
    slopes = _slopes_of_dropped(model)
    off = _dropped_blocks(model) - slopes.keys()
    indices = {id(term): index for index, term in enumerate(spec.fitted_terms)}
    numbers = spec.numbers(table)
    codes = spec.code(model.coder(table, n_jobs))
    by_name: dict[str, Floats] = {}

    def add(term: Term, value: Floats) -> None:
        name = _whole(spec, slopes.get(term.factors[0].block, term) if term.factors else term)
        by_name[name] = by_name[name] + value if name in by_name else value

    for term in spec.terms:
        if any(factor.block in off for factor in term.factors):
            continue
        value: Floats = np.full((len(table), model.n_outputs), term.constant)
        for factor in term.factors:
            value = value * _selected(model, factor, codes.get(factor.read), len(table))
        if term.numeric is None:
            add(term, value)
            continue
        mean = model.numerics[term.numeric].mean
        x = np.broadcast_to(spec.numerics[term.numeric].values(numbers), (len(table),))
        x = np.where(np.isnan(x), mean, x)[:, None]
        main_effect = spec.centering_terms.get(indices.get(id(term), -1))
        if main_effect is None:
            add(term, value * x)
        else:
            add(term, value * (x - mean))
            add(main_effect, value * mean)
    return by_name


def _dropped_blocks(model: WideModel) -> set[int]:
    dropped = switched_off(model)
    return {index for index, block in enumerate(model.spec.blocks) if block.name in dropped}


def _slopes_of_dropped(model: WideModel) -> dict[int, Term]:
    """For each dropped block that the centring of slopes by the same category goes to, the first term of such slopes.

    Its coefficients are minus the slopes times the mean of their number then, which together with these is constant.
    """
    off, slopes = _dropped_blocks(model), dict[int, Term]()
    for index, main_effect in model.spec.centering_terms.items():
        slope, block = model.spec.fitted_terms[index], main_effect.factors[0].block
        if block in off and not any(factor.block in off for factor in slope.factors):
            slopes.setdefault(block, slope)
    return slopes


def columns_of_terms(model: WideModel) -> dict[str, tuple[str, ...]]:
    """The columns that each of the `contributions` is made of; none for an intercept."""
    spec = model.spec
    columns: dict[str, tuple[str, ...]] = {}
    for term in spec.terms:
        names = [name for factor in term.factors for name in factor.columns]
        names += [] if term.numeric is None else spec.numerics[term.numeric].columns
        key = _whole(spec, term)
        columns[key] = tuple(dict.fromkeys([*columns.get(key, ()), *names]))
    return columns


def variances_of_columns(model: WideModel) -> dict[str, float] | None:
    """Variance of the linear predictor over the training rows by column; interactions are divided equally among theirs.

    None for formulas that multiply or share coefficients.
    """
    by_term = variances_of_terms(model)
    if by_term is None:
        return None
    by_column: dict[str, float] = {}
    for variance, columns in by_term.values():
        for name in columns:
            by_column[name] = by_column.get(name, 0.0) + variance / len(columns)
    return by_column


def variances_of_terms(model: WideModel) -> dict[str, tuple[float, tuple[str, ...]]] | None:
    """Variance of each term over the training rows, and its columns; None as in `variances_of_columns`.

    Of an interaction at several numbers of bins, the sum of their variances.
    """
    blocks = variances_of_blocks(model)
    if blocks is None:
        return None
    whole = interactions_of_levels(model.spec)
    by_term: dict[str, tuple[float, tuple[str, ...]]] = {}
    for block, (variance, columns) in blocks.items():
        name = whole.get(block, block)
        by_term[name] = variance + by_term.get(name, (0.0, ()))[0], columns
    return by_term


def variances_of_blocks(model: WideModel) -> dict[str, tuple[float, tuple[str, ...]]] | None:
    """The same for each key of `coefs_`: an interaction at several numbers of bins has a variance for each.

    They are those of the `contributions` to the training rows. A model keeps no rows: slopes by category count as if
    their number had the same mean and variance in each category, and all else is exact.
    """
    spec, total, levels = model.spec, _weight_of_rows(model), _levels(model)
    by_block: dict[str, tuple[float, tuple[str, ...]]] = {}
    for term in spec.fitted_terms:
        index = term.factors[0].block
        block, coefs = spec.blocks[index], spec.coefs(index)
        if len(term.factors) > 1 or not spec.stands_alone(term) or block.rank > 1:
            return None
        theta, weights = term.constant * model.theta[coefs], model.weights[coefs]
        if term.numeric is None and (block.source is None or not weights.any()):
            continue
        columns, fractions, variance = block.columns, np.ones(1), 0.0
        if block.source is not None:
            is_whole = spec.within(index) is None and not isinstance(spec.sources[block.source], Flag)
            fractions = weights / ((float(weights.sum()) if is_whole else total) or 1.0)
            level = levels.get(index, np.zeros_like(theta))
            # absent: rows without a coefficient
            mean, absent = fractions @ level, max(1.0 - float(fractions.sum()), 0.0)
            variance = float(np.mean(fractions @ np.square(level - mean) + absent * np.square(mean)))
        if term.numeric is not None:
            columns = (*columns, *spec.numerics[term.numeric].columns)
            variance += (
                float(np.mean(fractions @ np.square(theta))) * model.numerics[term.numeric].squares / (total or 1.0)
            )
        by_block[block.name] = variance, columns
    return by_block


def _levels(model: WideModel) -> dict[int, Floats]:
    """By block, its contributions (categories, K) at the means of the numbers, where they are not 0."""
    spec, slopes = model.spec, _slopes_of_dropped(model)
    levels: dict[int, Floats] = {}
    for index, term in enumerate(spec.fitted_terms):
        block = term.factors[0].block
        if spec.blocks[block].source is not None:
            main_block = spec.centering_terms.get(index, term).factors[0].block
            at = slopes[main_block].factors[0].block if main_block in slopes else main_block
            factor = term.constant * (1.0 if term.numeric is None else model.numerics[term.numeric].mean)
            levels[at] = levels.get(at, 0.0) + factor * model.theta[spec.coefs(block)]
    return levels


def _weight_of_rows(model: WideModel) -> float:
    """The weight of the training rows: of a number those with a value, and those flagged as missing."""
    weights, flagged = [0.0], dict[str, float]()
    for index in range(len(model.spec.blocks)):
        weights.append(float(model.weights[model.spec.coefs(index)].sum()))
        source = source_of(model.spec, index)
        if isinstance(source, Flag):
            flagged[source.column] = weights[-1]
    for numeric, moments in zip(model.spec.numerics, model.numerics, strict=True):
        weights.append(moments.weight + sum(flagged.get(name, 0.0) for name in numeric.columns))
    return max(weights)


def interactions_of_levels(spec: ModelSpec) -> dict[str, str]:
    """For each block of an interaction at one of `LEVELS`, the interaction's name."""
    columns = {block.name: block.columns for block in spec.blocks}
    return {
        part: name
        for name, names in columns.items()
        for n_bins in LEVELS
        if len(names) > 1 and columns.get(part := at_level(name, n_bins)) == names
    }


def _whole(spec: ModelSpec, term: Term) -> str:
    """The name of a term, or of that which it is a part of: a count effect of the term whose categories it counts."""
    counts, name = source_of(spec, term.factors[0].block) if term.factors else None, term_name(spec, term)
    if isinstance(counts, CountEffect):
        counted = (block.name for block in spec.blocks if (block.source, block.columns) == (counts.of, counts.columns))
        name = next(counted, name)
    return interactions_of_levels(spec).get(name, name)


def term_name(spec: ModelSpec, term: Term) -> str:
    """Display name of a term: the name of its block if no other term uses the block, else its factors."""
    if len(term.factors) == 1 and spec.stands_alone(term) and spec.blocks[term.factors[0].block].rank == 1:
        return spec.blocks[term.factors[0].block].name
    words = [] if term.constant == 1.0 and (term.factors or term.numeric is not None) else [f"{term.constant:g}"]
    for factor in term.factors:
        block = spec.blocks[factor.block]
        component = f" {factor.component + 1}" if block.rank > 1 else ""
        words.append(f"{block.name}{component}[{', '.join(factor.columns) or '1'}]")
    if term.numeric is not None:
        words.append(spec.numerics[term.numeric].label)
    return " * ".join(words)


def _selected(model: WideModel, factor: Factor, codes: NDArray[np.signedinteger] | None, n_rows: int) -> Floats:
    """The value of a coefficient factor in each row (n, K)."""
    block, coefs = model.spec.blocks[factor.block], model.spec.coefs(factor.block)
    values = model.theta[coefs].reshape(-1, block.rank, model.n_outputs)[:, factor.component]
    if codes is None:
        return np.broadcast_to(values, (n_rows, model.n_outputs))
    neutral = model.neutral(factor.block)[factor.component]
    if not len(values):
        return np.broadcast_to(neutral, (n_rows, model.n_outputs))
    return np.where((codes >= 0)[:, None], values[codes], neutral)


def shap_explanation(model: WideModel, made: pd.DataFrame, table: Table, outputs: list[str]) -> Any:
    """The explanation of the rows of a table; `made`: what `explain` returns for them."""
    try:
        import shap
    except ModuleNotFoundError:
        raise ModuleNotFoundError("to_shap needs shap: pip install shap", name="shap") from None
    columns = columns_of_terms(model)
    terms = list(dict.fromkeys(made.columns.get_level_values(0)))
    named = [name for name in terms if columns.get(name)]
    constants = [name for name in terms if name not in named]
    values = np.zeros((len(made), len(named), len(outputs)))
    for at, name in enumerate(named):
        values[:, at] = made[name].to_numpy(dtype=np.float64).reshape(len(made), -1)
    base = np.zeros((len(made), len(outputs)))
    for name in constants:
        base += made[name].to_numpy(dtype=np.float64).reshape(len(made), -1)
    data = np.empty((len(made), len(named)), dtype=object)
    for at, name in enumerate(named):
        data[:, at] = _values_of(table, columns[name])
    if len(outputs) == 1:
        return shap.Explanation(values[:, :, 0], base[:, 0], data, feature_names=named)
    return shap.Explanation(values, base, data, feature_names=named, output_names=outputs)


def _values_of(table: Table, columns: tuple[str, ...]) -> list[Any]:
    """What the rows have in the columns of a term: numbers as such, all else as text."""
    values = [table[name].series.to_list() for name in columns]
    if len(columns) > 1:
        return [category_text(cell) for cell in zip(*values, strict=True)]
    if table[columns[0]].kind is Kind.NUMERIC:
        return list(table[columns[0]].values)
    return [category_text(value) for value in values[0]]


_MAX_NAMED = 3
_MAX_TICKS = 10


def _of_factors(model: WideModel) -> str:
    """How the factors of products are shown, with their names where only some are shown relative to their mean."""
    names = [product.name.removeprefix("scale of ") for product in products_of(model)]
    n_products = sum(len(term.factors) > 1 for term in model.spec.fitted_terms)
    which = "a product" if len(names) == n_products else ", ".join(names)
    return f"; factors of {which} over their mean, times one scale" if names else ""


def describe_model(model: WideModel, tables: Mapping[str, pd.DataFrame], heading: str) -> str:
    """Text summary: linear predictor, units, and a line per term: coefficients, rows, deviations, extreme categories.

    Dropped terms are named in one line.
    """
    has_link = model.loss.log_link or model.loss.for_classes
    units = "units of the linear predictor, before the link" if has_link else "units of the target"
    units += _of_factors(model)
    lines = [heading, f"linear predictor = {score_text(model.spec)}", f"coefficients in {units}", ""]
    certain = model.uncertainty
    heads = "" if certain is None else f"{'median sd':>11}{'sd of term':>12}{'edf':>8}"
    lines.append(
        f"{'term':24}{'coefs':>9}{'rows':>12}{'lowest':>11}{'highest':>11}{heads}  categories from high to low"
    )
    off = switched_off(model)
    for index, (name, frame) in enumerate(tables.items()):
        if name in off:
            continue
        is_block = index < len(model.spec.blocks)
        split = split_frame(frame, model.n_outputs * (model.spec.blocks[index].rank if is_block else 1))
        rows = "" if split.rows is None else f"{int(split.rows.sum()):,}"
        low, high = float(np.nanmin(split.values.to_numpy())), float(np.nanmax(split.values.to_numpy()))
        named = category_range(split.values.iloc[:, 0]) if split.values.shape[1] == 1 and len(frame) > 1 else ""
        known = ""
        if certain is not None and is_block:
            median_sd = "" if split.sd is None else f"{np.median(split.sd.to_numpy()):.4g}"
            variance = model.entry_variance(index)
            term_sd = f"{np.sqrt(variance):.4g}" if np.isfinite(variance) else "unpenalized"
            term_sd = "fixed" if model.spec.blocks[index].fixed else term_sd
            known = f"{median_sd:>11}{term_sd:>12}{certain.edf[index]:8.1f}"
        lines.append(f"{cut(name, 23):24}{len(frame):9,}{rows:>12}{low:11.4g}{high:11.4g}{known}  {named}".rstrip())
    variances = variances_of_terms(model)
    if variances:
        lines.append(_fractions_line({name: variance for name, (variance, _) in variances.items()}))
    if directions := describe_directions(model.spec):
        lines.append(directions)
    if certain is not None and certain.separated:
        lines.append(
            f"separation: without a penalty the estimates of {', '.join(certain.separated)} are infinite, and "
            "so are deviations from the mean of the term; contrast() and coef_table(base=...) compare the others"
        )
    if off:
        lines.append(f"dropped (variance estimated as 0): {', '.join(off)}")
    return "\n".join(lines)


def _fractions_line(variances: Mapping[str, float]) -> str:
    """The largest fractions of the terms in the variance of the linear predictor, as if they were uncorrelated."""
    total = sum(variances.values()) or 1.0
    ordered = sorted(variances, key=lambda name: -variances[name])
    texts = [
        f"{cut(name, LONGEST)} {variances[name] / total:.1%}" for name in ordered if variances[name] >= 0.001 * total
    ]
    return f"share of the linear predictor's variance: {', '.join(texts[:_MAX_TICKS]) or 'none'}"


def switched_off(model: WideModel) -> list[str]:
    """The dropped terms, whose variance component is estimated as 0."""
    if model.uncertainty is None:
        return []
    blocks = zip(model.spec.blocks, model.uncertainty.variances, strict=True)
    return [block.name for block, variance in blocks if variance == 0.0 and not block.fixed]


def describe_crosses(chosen: pd.DataFrame) -> str:
    """Text table of the selected interactions."""
    if chosen.empty:
        return "interactions: none lowered the loss of held-out rows"
    lines = [f"{'interaction, best first':44}{'coefs':>9}{'gain a row':>12}{'error':>10}{'round':>7}"]
    for row in chosen.itertuples():
        lines.append(
            f"{cut(str(row.interaction), 43):44}{row.coefficients:9,}{row.gain:12.2g}{row.error:10.1g}{row.round:7}"
        )
    return "\n".join(lines)


def score_text(spec: ModelSpec) -> str:
    """The linear predictor as a formula."""
    products = []
    levels = interactions_of_levels(spec)
    for term in spec.terms:
        if any(spec.blocks[factor.block].name in levels for factor in term.factors):
            continue
        alone = term.constant == 1.0 and (term.factors or term.numeric is not None)
        factors = [] if alone else [f"{term.constant:g}"]
        for factor in term.factors:
            block = spec.blocks[factor.block]
            component = f" {factor.component + 1}" if block.rank > 1 else ""
            if block.name.startswith(("s(", "te(")):  # no name of a user's has a parenthesis
                factors.append(block.name)
            elif block.name.endswith(f" | {':'.join(factor.columns)}"):
                factors.append(f"({block.name})")
            else:
                factors.append(f"{block.name}{component}[{', '.join(factor.columns) or '1'}]")
        if term.numeric is not None:
            factors += [show(node) for node in spec.numerics[term.numeric].nodes]
        products.append(" * ".join(factors))
    return " + ".join(products)


def category_range(values: pd.Series) -> str:
    """The categories with the highest values, and those with the lowest."""
    ordered = values.sort_values(ascending=False)
    names = [cut(" ".join(category_text(category).split()), 20) for category in ordered.index]
    if len(names) <= 2 * _MAX_NAMED:
        return ", ".join(names)
    return ", ".join(names[:_MAX_NAMED]) + " ... " + ", ".join(names[-_MAX_NAMED:])
