"""From a configuration and a training table to what the model has: intervals, blocks and terms."""

from __future__ import annotations

from collections.abc import Sequence

from tabsym.estimators.binning import cut_finely, cut_numbers
from tabsym.estimators.config import Config
from tabsym.estimators.training_data import Training
from tabsym.table import Column, Kind, symbolic_columns
from tabsym.wide.layout import Layout
from tabsym.wide.losses import Loss
from tabsym.wide.plan import plan_additive, plan_formula
from tabsym.wide.polynomial import expand
from tabsym.wide.sources import Bins

Crosses = int | Sequence[tuple[str, ...]]


def plan_bins(config: Config, training: Training, loss: Loss) -> list[Bins]:
    """The numeric columns as intervals, where `numeric` asks for them; smooth ones are crossed by coarser intervals."""
    if config.numeric == "linear" or config.formula is not None:
        return []
    how = config.numeric
    if how == "smooth":
        how = "modl" if loss.for_classes else "quantile"
    y, weight = training.y, training.weight
    columns = _numeric_columns(config, training)
    return cut_numbers(columns, how, y, weight, classes=loss.for_classes, n_jobs=config.n_jobs)


def plan_fine(config: Config, training: Training, bins: Sequence[Bins]) -> list[Bins]:
    """Fine intervals of every numeric column for ``numeric="smooth"``, with the cuts of `bins` among theirs."""
    if config.numeric != "smooth":
        return []
    coarse = {one.column: one for one in bins}
    columns = _numeric_columns(config, training)
    return [cut_finely(column, training.weight, coarse.get(column.name)) for column in columns]


def _numeric_columns(config: Config, training: Training) -> list[Column]:
    _, others = _split_columns(config, training)
    return [column for column in others if column.kind is not Kind.SYMBOLIC]


def plan_layout(
    config: Config, training: Training, crosses: Crosses = 1, bins: Sequence[Bins] = (), fine: Sequence[Bins] = ()
) -> Layout:
    """The layout of the formula; without one, of the columns, intervals and crosses."""
    if config.formula is not None:
        return plan_formula(expand(config.formula))
    symbolic, numeric = _split_columns(config, training)
    text = [column.name for column in numeric if column.kind is Kind.SYMBOLIC]
    if text:
        raise ValueError(
            f"Column {text[0]!r} holds symbols but is not in cols; add it to cols, or drop it from the table."
        )
    return plan_additive(symbolic, numeric, interactions=crosses, bins=bins, fine=fine, rarity=config.rarity)


def _split_columns(config: Config, training: Training) -> tuple[list[Column], list[Column]]:
    """The columns whose symbols are learned, and the others."""
    symbolic = symbolic_columns(training.table, config.cols, booleans=True)
    chosen = {column.name for column in symbolic}
    return symbolic, [column for column in training.table.columns if column.name not in chosen]
