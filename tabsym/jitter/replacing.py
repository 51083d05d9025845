"""Unknown categories replaced by known ones, their donors: in which combinations, and in the rows of a table.

A row with several unknown values takes every combination of their donors, by the product of weights. Combinations are
counted through, never listed: a chunk of them is worked out from their numbers alone. The rows that a model gets are of
the kind that the user gave, with its types. A column that gets other categories is made longer by them, once; whatever
rows and categories are given later are then indices into it, which every library takes by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.frame import Column, Table, library_of_frame, restored, take_rows, type_of
from tabsym.frame.storage import object_array, series_at

Floats = NDArray[np.float64]
Indices = NDArray[np.integer]

MAX_COMBINATIONS = 2500
"""Of donors of one row; where all would be more, each unknown value keeps its heaviest."""
CHUNK = 1 << 16
"""Combinations at a time."""
MIN_WEIGHT = 1e-16
"""Least weight of a donor, as a fraction of the largest weight; donors with less are left out."""

Chunk = tuple[Indices, list[Indices], Floats]
"""Rows (n,), the donor (n,) of each column, below 0 for the row's own category, and weights (n,)."""


@dataclass(frozen=True)
class Donors:
    """Of one column's unknown values: `document` (r,) of each row, below 0 where it was seen; weights (m, donors)."""

    document: Indices
    weights: Floats


@dataclass(frozen=True)
class Ranked:
    """Donors of each document by weight, the heaviest first: those of document i from ``starts[i]`` on."""

    starts: Indices
    donor: Indices
    weight: Floats

    @classmethod
    def of(cls, weights: Floats) -> Ranked:
        """The donors of documents with these weights (m, donors), without those that weigh nothing."""
        kept = weights > MIN_WEIGHT * weights.max(axis=1, keepdims=True, initial=0.0)
        document, donor = np.nonzero(kept)
        weight = weights[kept]
        order = np.lexsort((-weight, document))
        return cls(np.append(0, kept.sum(axis=1).cumsum()), donor[order], weight[order])

    @property
    def sizes(self) -> Indices:
        """Donors of each document."""
        return np.diff(self.starts)


def kept_donors(weights: Floats, most: int | None) -> list[tuple[Indices, Floats]]:
    """The donors of each document (m, donors) that are asked about, the heaviest first, and their shares."""
    ranked = Ranked.of(weights)
    out = []
    for start, end in pairwise(ranked.starts):
        one = slice(start, end if most is None else min(end, start + most))
        out.append((ranked.donor[one], ranked.weight[one] / ranked.weight[one].sum()))
    return out


@dataclass(frozen=True)
class Mixture:
    """Combinations of donors for rows with unknown values.

    Attributes
    ----------
    columns : list of (Ranked, document (r,), kept (r,), total (r,))
        Of each row: the document its value goes by, how many of its donors are kept, and what those weigh.
    sizes : (r,)
        Combinations of each row.
    cut : (r,)
        Whether a row has more donors than can be combined, so that some are not kept.
    """

    columns: list[tuple[Ranked, Indices, Indices, Floats]]
    sizes: Indices
    cut: NDArray[np.bool_]

    @classmethod
    def of(cls, donors: list[Donors], max_donors: int | None, *, combined: bool = True) -> Mixture:
        """Combinations of the heaviest donors, all if None; `combined`: at most `MAX_COMBINATIONS` of a row."""
        ranked = [(Ranked.of(column.weights), column.document) for column in donors]
        counts = [np.where(document < 0, 1, np.append(rank.sizes, 1)[document]) for rank, document in ranked]
        sizes = np.stack(counts, axis=1)
        allowed = sizes if max_donors is None else np.minimum(sizes, max_donors)
        kept = _bounded(allowed) if combined else allowed
        columns = [
            (rank, document, kept[:, j], _heaviest(rank, document, kept[:, j]))
            for j, (rank, document) in enumerate(ranked)
        ]
        return cls(columns, kept.prod(axis=1), np.asarray((kept < allowed).any(axis=1)))

    def chunks(self) -> Iterator[Chunk]:
        """Every combination once, rows in order."""
        ends = self.sizes.cumsum()
        for first in range(0, int(ends[-1]) if len(ends) else 0, CHUNK):
            numbers = np.arange(first, min(first + CHUNK, int(ends[-1])))
            rows = np.searchsorted(ends, numbers, side="right")
            rest = numbers - (ends - self.sizes)[rows]
            categories, weights = [], np.ones(len(numbers))
            for ranked, document, kept, total in self.columns:
                rest, digit = np.divmod(rest, kept[rows])
                donor, weight = _picked(ranked, document[rows], digit, total[rows])
                categories.append(donor)
                weights *= weight
            yield rows, categories, weights

    def draws(self, n_draws: int, random: np.random.Generator) -> Iterator[Chunk]:
        """One donor for each row, column and draw: every combination drawn once, with its share of the draws."""
        step = max(1, CHUNK // n_draws)
        for first in range(0, len(self.sizes), step):
            rows = np.repeat(np.arange(first, min(first + step, len(self.sizes))), n_draws)
            picks: list[Indices] = [rows]
            for ranked, document, kept, total in self.columns:
                sums = np.append(0.0, ranked.weight.cumsum())
                start = ranked.starts[document[rows]]
                aim = sums[start] + random.random(len(rows)) * total[rows]
                digit = np.searchsorted(sums, aim, side="right") - 1 - start
                digit = np.clip(digit, 0, kept[rows] - 1)
                picks.append(_picked(ranked, document[rows], digit, total[rows])[0])
            drawn, times = np.unique(np.stack(picks), axis=1, return_counts=True)
            yield drawn[0], list(drawn[1:]), times / n_draws


def _picked(ranked: Ranked, document: Indices, digit: Indices, total: Floats) -> tuple[Indices, Floats]:
    """Donors by rank, and their weights among those kept; where the value was seen its own, of weight 1."""
    is_known = document < 0
    at = np.where(is_known, 0, ranked.starts[document] + digit)
    return np.where(is_known, -1, ranked.donor[at]), np.where(is_known, 1.0, ranked.weight[at] / total)


def _heaviest(ranked: Ranked, document: Indices, kept: Indices) -> Floats:
    """What the kept donors of each row weigh together."""
    sums = np.append(0.0, ranked.weight.cumsum())
    start = ranked.starts[document]
    exact = np.append(np.add.reduceat(ranked.weight, ranked.starts[:-1]), 1.0)[document]
    some = sums[np.minimum(start + kept, len(ranked.weight))] - sums[start]
    return np.where(document < 0, 1.0, np.where(kept == np.append(ranked.sizes, 1)[document], exact, some))


def _bounded(sizes: Indices) -> Indices:
    """How many donors each value of each row (r, columns) keeps."""
    kept = sizes.copy()
    many = np.flatnonzero(np.prod(sizes.astype(np.float64), axis=1) > MAX_COMBINATIONS)
    several = many[(sizes[many] > 1).sum(axis=1) > 1]
    distinct, which = np.unique(sizes[several], axis=0, return_inverse=True)
    caps = np.array([_caps(row) for row in distinct], dtype=sizes.dtype).reshape(distinct.shape)
    kept[several] = caps[which.ravel()]
    return kept


def _caps(sizes: Indices) -> Indices:
    """Counts whose product is within bounds: small ones whole, the others alike."""
    out, left = sizes.copy(), float(MAX_COMBINATIONS)
    order = np.argsort(sizes, kind="stable")
    for done, position in enumerate(order):
        out[position] = min(sizes[position], max(1, int(left ** (1 / (len(sizes) - done)) + 1e-9)))
        left /= out[position]
    return out


@dataclass(frozen=True)
class Longer:
    """A column at a position of a table, with categories below its rows."""

    position: int
    values: Any
    n_rows: int


def source_of(X: Any, table: Table) -> Any:
    """What rows are taken from: the user's own frame or array; of lists an array; of all else a frame of it."""
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return X
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], (list, tuple, np.ndarray)):
        rows = np.empty((len(X), len(X[0])), dtype=object)
        rows[:] = [list(row) for row in X]
        return rows
    if isinstance(X, pd.DataFrame):
        return X
    native = table.native
    if library_of_frame(native) != "pandas" or isinstance(native, pd.DataFrame):
        return native
    return nw.from_native(native, eager_only=True).to_pandas()


def longer(source: Any, position: int, column: Column, categories: Sequence[Any], known: set[Any]) -> Longer:
    """A column of the source with categories below; levels of its type that are not `known` are no longer there."""
    below = object_array(categories)
    if isinstance(source, np.ndarray):
        return Longer(position, _of_array(source[:, position], below), len(source))
    kind, library = type_of(column), library_of_frame(source)
    made = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow}[library]
    return Longer(position, made(series_at(source, position).to_native(), below, kind, known), len(source))


def replaced(source: Any, rows: Indices, columns: Sequence[Longer], categories: Sequence[Indices]) -> Any:
    """Rows of a source, each of the columns with the categories of these numbers (below 0: the row's own)."""
    part = take_rows(source, rows)
    if isinstance(part, np.ndarray):
        part = part.astype(np.result_type(part, *(column.values for column in columns)))
    elif isinstance(part, pd.DataFrame):
        part = part.copy()
    for column, category in zip(columns, categories, strict=True):
        part = _with_column(part, column, np.where(category < 0, rows, column.n_rows + category))
    return part


def without_strange_levels(source: Any, known: dict[int, set[Any]]) -> Any:
    """A source whose categories, of the columns at these positions, are all known; the source itself where they are."""
    if not isinstance(source, pd.DataFrame):
        return source
    out = source
    for position, categories in known.items():
        dtype = source.dtypes.iloc[position]
        if isinstance(dtype, pd.CategoricalDtype) and not set(dtype.categories) <= categories:
            out = source.copy(deep=False) if out is source else out
            kept = [level for level in dtype.categories if level in categories]
            levels = pd.Index(kept, dtype=dtype.categories.dtype)
            out.isetitem(position, source.iloc[:, position].cat.set_categories(levels).array)
    return out


def _with_column(part: Any, one: Longer, positions: Indices) -> Any:
    if isinstance(part, np.ndarray):
        part[:, one.position] = one.values[positions]
        return part
    if isinstance(part, pd.DataFrame):
        column: Any = one.values.iloc[positions].set_axis(part.index)  # as an array, objects would become text
        part.isetitem(one.position, column)
        return part
    if library_of_frame(part) == "polars":
        return part.with_columns(one.values.gather(positions).alias(part.columns[one.position]))
    values, dtype = one.values.take(positions), part.schema.field(one.position).type
    if _is_dictionary(dtype):
        values = values.dictionary_encode()
    return part.set_column(one.position, part.column_names[one.position], values)


def _of_array(values: NDArray[Any], below: NDArray[Any]) -> NDArray[Any]:
    if values.dtype == object:
        return np.concatenate([values, _with_missing_of(values, below)])
    if values.dtype.kind in "US" and not any(category is None for category in below):
        return np.concatenate([values, below.astype(values.dtype.kind)])
    if values.dtype.kind in "biuf":
        numbers = [np.nan if category is None else category for category in below.tolist()]
        return np.concatenate([values, np.array(numbers)])
    return np.concatenate([values.astype(object), below])


def _with_missing_of(values: Any, below: NDArray[Any]) -> NDArray[Any]:
    """None as the missing value that a column of objects has, NaN where it has none."""
    empty = np.array([category is None for category in below], dtype=bool)
    if not empty.any():
        return below
    missing = pd.isna(values)
    out = below.copy()
    out[empty] = values[int(np.argmax(missing))] if missing.any() else np.nan
    return out


def _of_pandas(series: pd.Series, below: NDArray[Any], kind: Any, known: set[Any]) -> pd.Series:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = [level for level in dtype.categories if level in known]
        have = set(levels)
        levels += [category for category in below.tolist() if category is not None and category not in have]
        index = _index(levels, dtype.categories.dtype)
        more: Any = pd.Series(pd.Categorical(below, categories=index, ordered=dtype.ordered))
        series = series.cat.set_categories(index)
    elif pd.api.types.is_object_dtype(dtype):
        more = pd.Series(_with_missing_of(series.array, below), dtype=object)
    else:
        more = restored(below, kind, "pandas")
    return pd.concat([series, more], ignore_index=True)


def _index(levels: list[Any], dtype: Any) -> pd.Index:
    try:
        return pd.Index(levels, dtype=dtype)
    except (TypeError, ValueError):  # categories that the type of the levels cannot hold
        return pd.Index(levels, dtype=object)


def _of_polars(series: Any, below: NDArray[Any], kind: Any, known: set[Any]) -> Any:
    import polars as pl

    if isinstance(series.dtype, pl.Enum) and not set(below.tolist()) <= {None, *series.dtype.categories}:
        series, more = series.cast(pl.String), pl.Series(below.tolist(), dtype=pl.String)
    else:
        more = restored(below, kind, "polars")
    if series.dtype == pl.Null:
        series = series.cast(more.dtype)
    elif series.dtype != more.dtype:
        series, more = series.cast(pl.String), more.cast(pl.String)
    return pl.concat([series.alias("x"), more.alias("x")])


def _of_arrow(values: Any, below: NDArray[Any], kind: Any, known: set[Any]) -> Any:
    import pyarrow as pa

    more = restored(below, kind, "pyarrow")
    plain = values.type.value_type if _is_dictionary(values.type) else values.type
    if pa.types.is_null(plain):
        plain = more.type
    return pa.chunked_array([*values.cast(plain).chunks, *more.cast(plain).chunks], type=plain)


def _is_dictionary(dtype: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(dtype))
