"""From constructor arguments and a training table to what the model has: intervals, blocks and terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tabsym.estimators.binning import cut_numbers
from tabsym.estimators.training_data import Training
from tabsym.estimators.wide_options import check_init, check_interactions, check_numeric, refuse_beside_formula
from tabsym.table import Column, Kind, symbolic_columns
from tabsym.wide.formula import parse
from tabsym.wide.layout import Layout
from tabsym.wide.losses import Loss
from tabsym.wide.plan import plan_additive, plan_formula
from tabsym.wide.polynomial import expand
from tabsym.wide.sources import Bins

Crosses = int | Sequence[tuple[str, ...]]


def plan_bins(estimator: Any, training: Training, loss: Loss) -> list[Bins]:
    """The numeric columns as intervals, where `numeric` asks for them."""
    how = check_numeric(estimator.numeric)
    if how == "linear" or estimator.formula is not None:
        return []
    _, others = _split_columns(estimator, training)
    columns = [column for column in others if column.kind is not Kind.SYMBOLIC]
    return cut_numbers(columns, how, training.y, training.weight, classes=loss.for_classes, n_jobs=estimator.n_jobs)


def plan_layout(estimator: Any, training: Training, crosses: Crosses | None, bins: Sequence[Bins]) -> Layout:
    """The layout of the formula; without one, of the columns, `bins` and crosses (None: those of `interactions`)."""
    if estimator.formula is not None:
        return _plan_formula(estimator, training)
    if estimator.init is not None:
        raise ValueError("init sets where the blocks of a formula start; without a formula leave it out.")
    symbolic, numeric = _split_columns(estimator, training)
    text = [column.name for column in numeric if column.kind is Kind.SYMBOLIC]
    if text:
        raise ValueError(
            f"Column {text[0]!r} holds symbols but is not in cols; add it to cols, or drop it from the table."
        )
    if crosses is None:
        crosses = 1 if check_interactions(estimator.interactions) else int(estimator.interactions)
    return plan_additive(
        symbolic,
        numeric,
        interactions=crosses,
        standardize=bool(estimator.standardize),
        weights=training.weight,
        bins=bins,
    )


def _plan_formula(estimator: Any, training: Training) -> Layout:
    refuse_beside_formula(estimator)
    formula = parse(estimator.formula)
    return plan_formula(
        formula,
        expand(formula),
        training.table,
        standardize=bool(estimator.standardize),
        weights=training.weight,
        init=check_init(estimator.init),
    )


def _split_columns(estimator: Any, training: Training) -> tuple[list[Column], list[Column]]:
    """The columns whose symbols are learned, and the others."""
    symbolic = symbolic_columns(training.table, estimator.cols, booleans=True)
    chosen = {column.name for column in symbolic}
    return symbolic, [column for column in training.table.columns if column.name not in chosen]
