"""A table split into the rows that a model answers for by itself, and those with unknown values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders import TIWSEncoder
from tabsym.jitter.averaging import Spread, averaged
from tabsym.jitter.mixture import Donors, Mixture, Tile
from tabsym.jitter.replacing import Longer, longer, replaced, source_of, take, without_strange_levels
from tabsym.jitter.weighing import donor_symbols, donor_weights
from tabsym.table import match_features, read_table
from tabsym.tiws.column import FittedColumn, Unseen
from tabsym.tiws.donors import DonorRule

Ask = Callable[[Any], Any]
Floats = NDArray[np.float64]
Places = NDArray[np.integer]

MOST_WEIGHTS = 1 << 22
"""Of rows and donors, at a time."""


@dataclass(frozen=True)
class Treatment:
    """What becomes of a column's unknown values.

    `used`: "jitter", "missing" (they become missing values) or "model" (they go to the model as they are). `rule`: of
    the donors' weights, the encoder's where it is None.
    """

    used: str = "jitter"
    rule: DonorRule | None = None


@dataclass(frozen=True)
class Found:
    """One column's unknown values: `document` (r,) of each row, below 0 where it was seen.

    `weigh` gives the weights (m, donors) of documents by number: they are made for some rows at a time.
    """

    document: Places
    weigh: Callable[[Places], Floats]

    def donors(self) -> Donors:
        """With the weights of the documents that these rows go by, numbered anew."""
        hit = self.document >= 0
        numbers, which = np.unique(self.document[hit], return_inverse=True)
        document = np.full(len(self.document), -1, dtype=np.int64)
        document[hit] = which.ravel()
        return Donors(document, self.weigh(numbers))


@dataclass(frozen=True)
class Batch:
    """The rows of a table.

    Attributes
    ----------
    whole : the table as a whole, the very object that was given where it can go to the model
    source : what rows are taken from
    rows : (r,)
        Those with unknown values, of `n_rows`.
    columns : list of Longer
        Columns with unknown values, their donors below.
    found : list of Found
        Of the same columns, for `rows`.
    most : int
        Donors of a value, at most.
    """

    whole: Any
    source: Any
    n_rows: int
    rows: NDArray[np.int64]
    columns: list[Longer]
    found: list[Found]
    most: int

    @classmethod
    def of(cls, X: Any, encoder: TIWSEncoder, treatments: Mapping[str, Treatment], who: str) -> Batch:
        """Find unknown values of the columns to treat, and their donors."""
        table = match_features(encoder, read_table(X, who=who, allow_empty=True))
        found = {name: encoder.unseen_rows(table, name) for name, treat in treatments.items() if treat.used != "model"}
        numbers = {name: encoder.columns_[name].fitted.number for name in found}
        known = {numbers[name]: set(encoder.columns_[name].fitted.symbols) for name in found}
        given = source_of(X, table)
        source = without_strange_levels(given, known)
        hit = {name: one for name, one in found.items() if len(one.rows)}
        rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(one.rows for one in hit.values())]))
        columns, places, most = [], [], 1
        for name, one in hit.items():
            fitted, treat = encoder.columns_[name].fitted, treatments[name]
            document = np.full(len(rows), -1, dtype=np.int64)
            document[np.searchsorted(rows, one.rows)] = one.which
            symbols = [None] if treat.used == "missing" else donor_symbols(fitted)
            weigh = _all_alike if treat.used == "missing" else _weigher(fitted, one.unseen, treat.rule)
            columns.append(longer(given, numbers[name], table[name], symbols, known[numbers[name]]))
            places.append(Found(document, weigh))
            most = max(most, len(symbols))
        return cls(X if source is given else source, source, len(table), rows, columns, places, most)

    # -- asking -------------------------------------------------------------------------------

    def own(self, ask: Ask) -> Any:
        """What is answered of the rows without unknown values, in one call; None where there are none."""
        if not len(self.rows):
            return ask(self.whole)
        if len(self.rows) == self.n_rows:
            return None
        return ask(take(self.source, np.setdiff1d(np.arange(self.n_rows), self.rows)))

    def frame(self, rows: Any, symbols: list[Any]) -> Any:
        """Rows, by their number among those with unknown values, with donors by number."""
        return replaced(self.source, self.rows[rows], self.columns, symbols)

    def mean(self, ask: Ask, tiles: Iterable[Tile]) -> Spread:
        """Moments of the answers over donors."""
        return averaged(tiles, lambda rows, symbols: ask(self.frame(rows, symbols)), len(self.rows))

    def mixture(self, max_donors: int | None, *, combined: bool = True) -> Mixture:
        """The combinations of donors of these rows; options as of `Mixture.of`."""
        return Mixture.of(self.donors, max_donors, combined=combined)

    @cached_property
    def donors(self) -> list[Donors]:
        """Of each column."""
        return [one.donors() for one in self.found]

    def parts(self) -> Iterator[Batch]:
        """Some rows with unknown values at a time, so that their weights stay small."""
        step = max(1, MOST_WEIGHTS // self.most)
        for first in range(0, len(self.rows), step):
            yield self.some(np.arange(first, min(first + step, len(self.rows))))

    def some(self, rows: NDArray[np.int64]) -> Batch:
        """Some of the rows with unknown values."""
        found = [Found(one.document[rows], one.weigh) for one in self.found]
        return replace(self, rows=self.rows[rows], found=found)

    def joined(self, own: Any, mixed: Any) -> Any:
        """Answers in the order of the table: as they came where there are no unknown values."""
        if not len(self.rows):
            return own
        kind = mixed.dtype if own is None else _common(own.dtype, mixed.dtype)
        out = np.empty((self.n_rows, *mixed.shape[1:]), dtype=kind)
        out[self.rows] = mixed
        if own is not None:
            out[np.setdiff1d(np.arange(self.n_rows), self.rows)] = own
        return out


def _weigher(fitted: FittedColumn, unseen: Unseen, rule: DonorRule | None) -> Callable[[Places], Floats]:
    if rule is None and fitted.method.method == "poster":  # where weights depend on all documents of a call
        weights = donor_weights(fitted, unseen)
        return lambda numbers: weights[numbers]

    def weigh(numbers: Places) -> Floats:
        symbols = [unseen.symbols[number] for number in numbers.tolist()]
        return donor_weights(fitted, Unseen(unseen.documents[numbers], symbols, unseen.rows[numbers]), rule)

    return weigh


def _all_alike(numbers: Places) -> Floats:
    return np.ones((len(numbers), 1))


def _common(one: np.dtype[Any], another: np.dtype[Any]) -> np.dtype[Any]:
    """The type that holds answers of both kinds as they are."""
    alike = one.kind == another.kind or {one.kind, another.kind} <= set("biuf")
    return np.result_type(one, another) if alike else np.dtype(object)
