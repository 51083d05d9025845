"""Interactions of the estimators: the search of ``interactions="auto"``, the table of those chosen, and named ones.

The rule by which they are chosen is in `tabsym.interactions.search`; here are the rows, folds and columns that it gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories import Categories, encode_column
from tabsym.categories.coding import first_rows
from tabsym.design.content import Keys, ShuffledRows, content_of_rows, keys_of_source, mixed, ranks_of
from tabsym.design.model_spec import ModelSpec, Read, Rows
from tabsym.design.plan import Members, Within
from tabsym.design.sources import Bins, CategoricalSource, CountEffect
from tabsym.design.units import TargetUnits
from tabsym.frame import Column
from tabsym.frame.target import Copies, of_one_copy, weights_within_classes
from tabsym.interactions.gains import THINNED, CodeColumn, HeldOutGains, Sorted
from tabsym.interactions.search import AutoInteractions, Chosen, choose_crosses
from tabsym.losses.loss import LOSSES, Loss, best_constant
from tabsym.models.bins import NumericBins, Precomputed
from tabsym.models.checks import nearest
from tabsym.models.config import Config
from tabsym.models.data import Training, lay_training, training_loss
from tabsym.models.model import source_of
from tabsym.models.start import NO_SGD_STATE, initial_model

Floats = NDArray[np.float64]
Crosses = int | Sequence[Members]
"""Named interactions, or up to how many columns all interactions have."""


def search_interactions(
    config: Config,
    auto: AutoInteractions,
    spec: ModelSpec,
    precomputed: Precomputed,
    training: Training,
    loss: Loss,
    n_outputs: int,
    rng: np.random.RandomState,
) -> list[Chosen]:
    """The interactions of ``interactions="auto"``, of the categorical columns and bins of an additive model.

    Categories are numbered in order of appearance in the sample, so that the order of categories in a data frame has no
    effect; nor has that of its columns, of which those of equal size are taken in an order of their content. The bins
    by which interactions of numbers are evaluated have main effects too, so that none is credited to an interaction.
    """
    model, coded = initial_model(config, NO_SGD_STATE, spec, training, loss, n_outputs, precomputed.column_codes, rng)
    spec, codes, copies, loss = model.spec, coded.codes, training.copies, training_loss(model)
    rows = lay_training(model, None, coded.numbers, coded.training, None, config.n_jobs)
    cuts = {
        name: CodeColumn(name, bins.codes(training.table[name].values), len(bins), _categories_of(bins))
        for name, bins in precomputed.cuts.searched.items()
    }
    sampler = precomputed.sampler and precomputed.sampler.for_most(auto.max_rows)
    if sampler is not None:
        some = sampler.rows
        codes = {read: column_codes[some.rows] for read, column_codes in codes.items()}
        rows, copies = _taken(rows, copies, some, n_outputs), some.copies
        cuts = {name: replace(column, codes=column.codes[some.rows]) for name, column in cuts.items()}
    constrained = set(training.directions_of(config.monotonic))  # an interaction would change the direction of these
    mains, crossed = [], []
    sources: dict[str, Any] = {}  # of the columns that can be crossed, in their order
    for read, column_codes in codes.items():
        block, source = spec.blocks[read.block], source_of(spec, read.block)
        column = CodeColumn(block.name, column_codes, spec.sizes[read.block], _categories_of(source))
        mains.append(column)
        if isinstance(source, (Bins, CategoricalSource)) and not constrained & set(block.columns):
            sources[block.name] = source
            crossed.append(cuts.get(block.name, column))
    mains += [cuts[name] for name in sources if name in cuts]
    n_rows = len(rows.y) if copies is None else int(copies.sum())
    if len(crossed) < 2 or n_rows < 2 * auto.folds:
        return []
    content = _content(spec, model.program.numerics, codes, rows, copies, n_outputs, cuts)
    shuffled = ShuffledRows.of(content, copies, rng).thin(auto.max_rows, rng)
    order, first = shuffled.rows, shuffled.is_first()  # the same however often rows are there
    mains, crossed = _in_order(mains, order, first), _in_order(crossed, order, first)
    numbers = sorted(rows.x[order].T, key=lambda x: crc32(ranks_of(x[first])[0].tobytes()))
    shuffled, fold = _folds(shuffled, rows.y if loss.for_classes else None, crossed[-1], auto.folds, rng)
    at = shuffled.rows
    mains = [replace(column, codes=column.codes.take(at)) for column in mains]
    crossed = [replace(column, codes=column.codes.take(at)) for column in crossed]
    rows = _taken(rows, copies, replace(shuffled, rows=order[at]), n_outputs)
    held_out = _held_out(rows, loss, n_outputs, shuffled, fold, auto.folds, rng)
    held_out.fit_main_effects(mains, [np.ascontiguousarray(x[at]) for x in numbers])
    rank = {name: number for number, name in enumerate(sources)}
    chosen = []
    for interaction in choose_crosses(crossed, held_out, auto, config.n_jobs):
        names = tuple(sorted(interaction.columns, key=rank.__getitem__))
        chosen.append(replace(interaction, columns=names, within=_category(interaction, sources)))
    return chosen


def _held_out(
    rows: Rows,
    loss: Loss,
    n_outputs: int,
    shuffled: ShuffledRows,
    fold: NDArray[np.int8],
    n_folds: int,
    rng: np.random.RandomState,
) -> HeldOutGains:
    """Models of the intercept alone, each trained without one fold, and the rows that `shuffled` has in its order."""
    copies, rows = shuffled.copies, TargetUnits.of(rows, loss).rows(rows)
    y, weight, offset = rows.y, rows.weight, rows.offset.reshape(-1, n_outputs)
    if loss.for_classes and len(weight):
        weight = weights_within_classes(y, weight, copies)
    if loss.name == "hinge":  # which has no second derivative
        loss = LOSSES["logistic"]
    constant = best_constant(loss, y, weight if len(weight) else None, n_outputs, offset if len(offset) else None)
    scores = constant[:, None] + (offset.T if len(offset) else np.zeros(len(y)))  # (K, n)
    scores = np.repeat(np.asarray(scores)[:, :, None], n_folds, 2)
    some = ShuffledRows.of(mixed(shuffled.content) + fold.astype(np.uint64), copies, rng)
    some = some.thin(max(some.n_rows // THINNED, 1), rng)
    glanced = np.zeros(len(y), dtype=np.int64)  # copies that the first look at a candidate takes, at random
    glanced[some.rows] = 1 if some.copies is None else some.copies
    return HeldOutGains(scores, fold, y, weight, loss, copies, glanced)


def _categories_of(source: Any) -> NDArray[np.intp] | None:
    """The codes of a source that are categories, others as -1; None where none is."""
    if isinstance(source, CategoricalSource):
        return np.arange(len(source))
    if isinstance(source, Bins) and source.missing:
        return np.append(0, np.full(len(source) - 1, -1))
    return None


def _category(interaction: Chosen, sources: Mapping[str, Any]) -> Within | None:
    if interaction.within is None:
        return None
    name, codes = interaction.within.column, np.array([interaction.within.category])
    source = sources[name]
    return Within(name, source.vocabulary.inverse(codes)[0] if isinstance(source, CategoricalSource) else None)


def members_of(interaction: Chosen) -> Members:
    """The members of a chosen interaction, as named ones have them."""
    return interaction.columns if interaction.within is None else (interaction.within, *interaction.columns)


def _in_order(
    columns: Iterable[CodeColumn], order: NDArray[np.signedinteger[Any]], first: NDArray[np.bool_]
) -> list[CodeColumn]:
    """Columns on the rows in `order`, their categories numbered by appearance; the smallest first, then by content."""
    ordered = []
    for column in columns:
        codes = column.codes.take(order)
        seen = first_rows(codes, column.size)
        by_appearance = np.argsort(np.where(seen < 0, len(codes), seen), kind="stable")
        rank = np.empty(column.size, dtype=np.int32)
        rank[by_appearance] = np.arange(column.size, dtype=np.int32)
        categories = None if column.categories is None else column.categories[by_appearance]
        ordered.append(replace(column, codes=np.where(codes >= 0, rank[codes], np.int32(-1)), categories=categories))
    return sorted(ordered, key=lambda column: (column.size, crc32(column.codes[first].tobytes())))


def _taken(rows: Rows, copies: Copies, some: ShuffledRows, n_outputs: int) -> Rows:
    """Some of the rows, of `copies` (n,), and of these copies."""
    taken = rows._replace(weight=of_one_copy(rows.weight, copies)).take(some.rows, n_outputs)
    return taken if some.copies is None else taken._replace(weight=taken.weight * some.copies)


def _content(
    spec: ModelSpec,
    numerics: Sequence[int],
    codes: Mapping[Read, NDArray[Any]],
    rows: Rows,
    copies: Copies,
    n_outputs: int,
    cuts: Mapping[str, CodeColumn],
) -> Keys:
    """The content of the rows (n,), coded."""
    coded, weight = [], of_one_copy(rows.weight, copies)
    for read, column_codes in codes.items():
        index = spec.blocks[read.block].source
        if index is not None and not isinstance(spec.sources[index], CountEffect):  # which a category determines
            coded.append((":".join(read.columns), column_codes, keys_of_source(spec.sources, index, read.columns)))
    coded += [
        (f"bins of {name}", binned.codes, np.arange(binned.size, dtype=np.uint64)) for name, binned in cuts.items()
    ]
    numbers = [(spec.numerics[numeric].label, rows.x[:, column]) for column, numeric in enumerate(numerics)]
    return content_of_rows(coded, numbers, rows.y, weight, rows.offset.reshape(-1, n_outputs))


def table_of_crosses(chosen: Sequence[Chosen]) -> pd.DataFrame:
    """The selected interactions, in order: name, order, mean held-out gain per row, standard error, round, size."""
    return pd.DataFrame(
        {
            "interaction": pd.Series([":".join(map(str, members_of(c))) for c in chosen], dtype=object),
            "order": pd.Series([len(members_of(c)) for c in chosen], dtype=np.int64),
            "gain": pd.Series([c.gain for c in chosen], dtype=np.float64),
            "error": pd.Series([c.error for c in chosen], dtype=np.float64),
            "round": pd.Series([c.round for c in chosen], dtype=np.int64),
            "coefficients": pd.Series([c.coefs for c in chosen], dtype=np.int64),
        }
    )


def _folds(
    rows: ShuffledRows, classes: Floats | None, column: CodeColumn, n_folds: int, rng: np.random.RandomState
) -> tuple[ShuffledRows, NDArray[np.int8]]:
    """The rows sorted by the categories of a column, for memory locality, and their folds.

    Random folds, stratified by class (of all rows of the table) and category: of two rows, one is for training, one for
    testing. The `rows` that are returned are indices of those given, which `column` has in their order; rows with
    copies in several folds are there once for each.
    """
    stratum = column.codes.astype(np.int64)
    if classes is not None:
        stratum += classes[rows.rows].astype(np.int64) * (column.size + 1)
    shuffled, fold = replace(rows, rows=np.arange(len(rows.rows))).deal(n_folds, rng, stratum)
    codes = column.codes[shuffled.rows]
    # by category, for memory locality of sums
    order = np.concatenate([np.flatnonzero(codes < 0), Sorted(CodeColumn("", codes, column.size)).rows[1]])
    return shuffled.take(order), fold[order]


# -- named interactions -----------------------------------------------------------------------------


def named_interactions(
    interactions: Crosses, training: Training, categorical: list[Column], cuts: NumericBins, config: Config
) -> list[Members]:
    """Named interactions as column names; a `ValueError` for columns without categories or bins.

    A member ``{column: category}`` becomes a `Within`, and the first one.
    """
    names = training.table.names
    with_categories = {column.name for column in categorical}
    crossable = with_categories | {bins.column for bins in cuts.coarse}
    named = []
    for interaction in interactions:  # type: ignore[union-attr]
        members: list[Any] = []
        for member in interaction:
            given, category = (member.column, member.category) if isinstance(member, Within) else (member, None)
            is_position = isinstance(given, Integral) and not training.table.named and 0 <= int(given) < len(names)
            name = names[int(given)] if is_position else given
            if name not in names:
                nearest_names = " or ".join(map(repr, nearest(name, names)))
                raise ValueError(f"interactions names {name!r}, and there is no such column; there is {nearest_names}.")
            if name in config.fixed:
                raise ValueError(
                    f"interactions names {name!r}, which is fixed, and a fixed column is in no interaction; leave one "
                    "of them out."
                )
            if name not in crossable and not isinstance(member, Within):
                raise ValueError(
                    f"interactions names {name!r}, a numeric column without bins; add it to "
                    "categorical_features to take its numbers for categories, or give it bins by numeric='quantile'."
                )
            if isinstance(member, Within):
                if not isinstance(config.interactions, AutoInteractions):
                    category = _known_category(category, training.table[name], name in with_categories)
                members.insert(0, Within(name, category))
            else:
                members.append(name)
        named.append(tuple(members))
    return named


def _known_category(category: Any, column: Column, is_categorical: bool) -> Any:
    """The category as training has it; a `ValueError` where no row has it. Of numbers it is missing, None."""
    if not is_categorical and category is not None:
        raise ValueError(
            f"interactions names {category!r} of {column.name!r}, a numeric column; add it to categorical_features to "
            "take its numbers for categories, or name None, for missing."
        )
    if not is_categorical:
        if not np.isnan(column.values).any():
            raise ValueError(f"interactions names missing, None, of {column.name!r}, which no row lacks; leave it out.")
        return None
    vocabulary = Categories.fit(column.name, encode_column(column))[0]
    known = list(vocabulary.inverse(np.arange(len(vocabulary))))
    if category not in known:
        raise ValueError(
            f"interactions names {category!r} of {column.name!r}, and no row has it; it has "
            f"{', '.join(map(repr, known[:5]))}."
        )
    return known[known.index(category)]


def refuse_constrained(interactions: Sequence[Members], directions: Mapping[str, int]) -> None:
    """A `ValueError` where an interaction names a column that `monotonic_cst` constrains."""
    for members in interactions:
        for member in members:
            name = member.column if isinstance(member, Within) else member
            if name in directions:
                named = tuple(map(str, members))
                raise ValueError(
                    f"interactions names {named!r}, and monotonic_cst constrains {name!r}, which then is in no "
                    "interaction; leave one of them out."
                )
