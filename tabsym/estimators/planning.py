"""From a configuration and a training table to what the model has: intervals, blocks and terms."""

from __future__ import annotations

from collections.abc import Sequence

from tabsym.estimators.binning import cut_numbers
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
    """The numeric columns as intervals, where `numeric` asks for them."""
    if config.numeric == "linear" or config.formula is not None:
        return []
    _, others = _split_columns(config, training)
    columns = [column for column in others if column.kind is not Kind.SYMBOLIC]
    y, weight = training.y, training.weight
    return cut_numbers(columns, config.numeric, y, weight, classes=loss.for_classes, n_jobs=config.n_jobs)


def plan_layout(config: Config, training: Training, crosses: Crosses = 1, bins: Sequence[Bins] = ()) -> Layout:
    """The layout of the formula; without one, of the columns, `bins` and crosses."""
    if config.formula is not None:
        return plan_formula(expand(config.formula))
    symbolic, numeric = _split_columns(config, training)
    text = [column.name for column in numeric if column.kind is Kind.SYMBOLIC]
    if text:
        raise ValueError(
            f"Column {text[0]!r} holds symbols but is not in cols; add it to cols, or drop it from the table."
        )
    return plan_additive(symbolic, numeric, interactions=crosses, bins=bins)


def _split_columns(config: Config, training: Training) -> tuple[list[Column], list[Column]]:
    """The columns whose symbols are learned, and the others."""
    symbolic = symbolic_columns(training.table, config.cols, booleans=True)
    chosen = {column.name for column in symbolic}
    return symbolic, [column for column in training.table.columns if column.name not in chosen]
