"""From a configuration and a training table to what the model has: intervals, blocks and terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral

from tabsym.estimators.binning import cut_finely, cut_numbers, cut_twice
from tabsym.estimators.config import Config
from tabsym.estimators.training_data import Training
from tabsym.table import Column, Kind, symbolic_columns
from tabsym.wide.layout import Layout
from tabsym.wide.losses import Loss
from tabsym.wide.plan import plan_additive, plan_formula
from tabsym.wide.polynomial import expand
from tabsym.wide.sources import Bins

Crosses = int | Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Cuts:
    """The numeric columns as intervals: those that crosses are of, and for ``numeric="smooth"`` finer ones."""

    coarse: Sequence[Bins] = ()
    fine: Sequence[Bins] = ()


NO_CUTS = Cuts()


def plan_cuts(config: Config, training: Training, loss: Loss) -> Cuts:
    """The intervals that `numeric` asks for; the cuts of the coarse ones are among those of the fine."""
    how, y, weight = config.numeric, training.y, training.relative_weight
    if how == "linear" or config.formula is not None:
        return NO_CUTS
    columns = _numeric_columns(config, training)
    if how == "smooth" and not loss.for_classes:
        pairs = [cut_twice(column, weight) for column in columns]
        return Cuts([coarse for coarse, _ in pairs], [fine for _, fine in pairs])
    if how == "smooth":
        coarse = cut_numbers(columns, "modl", y, weight, classes=True, n_jobs=config.n_jobs)
        found = {one.column: one for one in coarse}
        return Cuts(coarse, [cut_finely(column, weight, found.get(column.name)) for column in columns])
    return Cuts(cut_numbers(columns, how, y, weight, classes=loss.for_classes, n_jobs=config.n_jobs))


def _numeric_columns(config: Config, training: Training) -> list[Column]:
    _, others = _split_columns(config, training)
    return [column for column in others if column.kind is not Kind.SYMBOLIC]


def plan_layout(
    config: Config, training: Training, crosses: Crosses = 1, cuts: Cuts = NO_CUTS, *, whole: bool = True
) -> Layout:
    """The layout of the formula; without one, of the columns, intervals and crosses.

    `whole`: whether the rows are all there will be, so that a column without a value has none later either.
    """
    if config.formula is not None:
        return plan_formula(expand(config.formula))
    symbolic, numeric = _split_columns(config, training, whole=whole)
    text = [column.name for column in numeric if column.kind is Kind.SYMBOLIC]
    if text:
        raise ValueError(
            f"Column {text[0]!r} holds symbols but is not in cols; add it to cols, or drop it from the table."
        )
    if not isinstance(crosses, int):
        crosses = _found(crosses, training, symbolic, cuts)
    return plan_additive(
        symbolic, numeric, interactions=crosses, bins=cuts.coarse, fine=cuts.fine, rarity=config.rarity
    )


def _found(crosses: Crosses, training: Training, symbolic: list[Column], cuts: Cuts) -> list[tuple[str, ...]]:
    """Named crosses by the names of columns, each of which has categories or intervals; else a `ValueError`."""
    names = training.table.names
    crossable = {column.name for column in symbolic} | {bins.column for bins in cuts.coarse}
    found = []
    for one in crosses:  # type: ignore[union-attr]
        members = []
        for given in one:
            is_place = isinstance(given, Integral) and not training.table.named and 0 <= int(given) < len(names)
            name = names[int(given)] if is_place else given
            if name not in names:
                near = get_close_matches(str(name), names, n=3) or names[:5]
                raise ValueError(
                    f"interactions names {name!r}, and there is no such column; there is "
                    f"{' or '.join(map(repr, near))}."
                )
            if name not in crossable:
                raise ValueError(
                    f"interactions names {name!r}, a column of numbers that is not cut into intervals; add it to cols "
                    "to take its numbers for categories, or use numeric='quantile' to cross its intervals."
                )
            members.append(name)
        found.append(tuple(members))
    return found


def _split_columns(config: Config, training: Training, *, whole: bool = True) -> tuple[list[Column], list[Column]]:
    """The columns whose symbols are learned, also those without any value, and the others."""
    columns = training.table.columns
    chosen = {column.name for column in symbolic_columns(training.table, config.cols, booleans=True, whole=whole)}
    if whole and config.cols is not None:
        chosen |= {column.name for column in columns if column.is_empty}
    return [c for c in columns if c.name in chosen], [c for c in columns if c.name not in chosen]
