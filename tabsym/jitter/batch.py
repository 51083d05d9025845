"""A table split into the rows that a model answers for by itself, and those with unseen values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders import TIWSEncoder
from tabsym.jitter.averaging import Spread, averaged
from tabsym.jitter.mixture import Donors, Mixture, Tile
from tabsym.jitter.replacing import Longer, longer, replaced, source_of, take, without_strange_levels
from tabsym.jitter.weighing import donor_symbols, donor_weights
from tabsym.table import match_features, read_table
from tabsym.tiws.donors import DonorRule

Ask = Callable[[Any], Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Treatment:
    """What becomes of a column's unseen values.

    `used`: "jitter", "missing" (they become missing values) or "model" (they go to the model as they are). `rule`: of
    the donors' weights, the encoder's where it is None.
    """

    used: str = "jitter"
    rule: DonorRule | None = None


@dataclass(frozen=True)
class Batch:
    """The rows of a table.

    Attributes
    ----------
    whole : the table as a whole, the very object that was given where it can go to the model
    source : what rows are taken from
    rows : (r,)
        Those with unseen values, of `n_rows`.
    columns : list of Longer
        Columns with unseen values, their donors below.
    donors : list of Donors
        Of the same columns, for `rows`.
    """

    whole: Any
    source: Any
    n_rows: int
    rows: NDArray[np.int64]
    names: list[str]
    columns: list[Longer]
    donors: list[Donors]

    @classmethod
    def of(cls, X: Any, encoder: TIWSEncoder, treatments: Mapping[str, Treatment], who: str) -> Batch:
        """Find unseen values of the columns to treat, and their donors."""
        table = match_features(encoder, read_table(X, who=who, allow_empty=True))
        found = {name: encoder.unseen_rows(table, name) for name, treat in treatments.items() if treat.used != "model"}
        numbers = {name: encoder.columns_[name].fitted.number for name in found}
        known = {numbers[name]: set(encoder.columns_[name].fitted.symbols) for name in found}
        given = source_of(X, table)
        source = without_strange_levels(given, known)
        hit = {name: one for name, one in found.items() if len(one.rows)}
        rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(one.rows for one in hit.values())]))
        columns, donors = [], []
        for name, one in hit.items():
            fitted, treat = encoder.columns_[name].fitted, treatments[name]
            document = np.full(len(rows), -1, dtype=np.int64)
            document[np.searchsorted(rows, one.rows)] = one.which
            if treat.used == "missing":
                symbols, weights = [None], np.ones((len(one.unseen), 1))
            else:
                symbols, weights = donor_symbols(fitted), donor_weights(fitted, one.unseen, treat.rule)
            columns.append(longer(given, numbers[name], table[name], symbols, known[numbers[name]]))
            donors.append(Donors(document, weights))
        return cls(X if source is given else source, source, len(table), rows, list(hit), columns, donors)

    # -- asking -------------------------------------------------------------------------------

    def own(self, ask: Ask) -> Any:
        """What is answered of the rows without unseen values, in one call; None where there are none."""
        if not len(self.rows):
            return ask(self.whole)
        if len(self.rows) == self.n_rows:
            return None
        return ask(take(self.source, np.setdiff1d(np.arange(self.n_rows), self.rows)))

    def frame(self, rows: Any, symbols: list[Any]) -> Any:
        """Rows, by their number among those with unseen values, with donors by number."""
        return replaced(self.source, self.rows[rows], self.columns, symbols)

    def mean(self, ask: Ask, tiles: Iterable[Tile]) -> Spread:
        """Moments of the answers over donors."""
        return averaged(tiles, lambda rows, symbols: ask(self.frame(rows, symbols)), len(self.rows))

    def mixture(self, max_donors: int | None) -> Mixture:
        return Mixture.of(self.donors, max_donors)

    def some(self, rows: NDArray[np.int64]) -> Batch:
        """Some of the rows with unseen values."""
        donors = [Donors(one.document[rows], one.weights) for one in self.donors]
        return replace(self, rows=self.rows[rows], donors=donors)

    def joined(self, own: Any, mixed: Any) -> Any:
        """Answers in the order of the table: as they came where there are no unseen values."""
        if not len(self.rows):
            return own
        kind = mixed.dtype if own is None else _common(own.dtype, mixed.dtype)
        out = np.empty((self.n_rows, *mixed.shape[1:]), dtype=kind)
        out[self.rows] = mixed
        if own is not None:
            out[np.setdiff1d(np.arange(self.n_rows), self.rows)] = own
        return out


def _common(one: np.dtype[Any], another: np.dtype[Any]) -> np.dtype[Any]:
    """The type that holds answers of both kinds as they are."""
    alike = one.kind == another.kind or {one.kind, another.kind} <= set("biuf")
    return np.result_type(one, another) if alike else np.dtype(object)
