"""A column as fitted: what its known categories are estimated at, and what an unknown one is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.codes import PairCounts
from tabsym.codes.threads import one_blas_thread
from tabsym.table.dtypes import read_list, written_list
from tabsym.tiws.donors import DonorRule
from tabsym.tiws.intervals import Conformal
from tabsym.tiws.likeness import Described, Geometry
from tabsym.tiws.names import NameReader
from tabsym.tiws.poster import PRIOR_ROWS, similarities, weights_of
from tabsym.tiws.profiles import Base
from tabsym.tiws.regression import Covariance, DocumentRegression, Estimates, Solution
from tabsym.tiws.sums import Components, Sums, components_of, drawn

Floats = NDArray[np.float64]

MOST_DONORS = 1500
"""Categories, those with the most rows, that unknown ones are compared with: equations take their number cubed."""
MOST_COMPARED = 500
"""Categories, those with the most rows, by which the covariance and the donors' rule are chosen."""
_TILE = 512  # unknown categories at a time


@dataclass(frozen=True)
class Method:
    """How unknown categories are estimated, by the encoder's options; `simplex`: whether components are shares."""

    method: str = "documents"
    names: bool = False
    smooth: str | float = "auto"
    idf_rows: str = "all"
    simplex: bool = True


@dataclass(frozen=True)
class Unseen:
    """Categories that fit has not seen: their documents (m, words), as they are called, and the rows of each (m,)."""

    documents: sparse.csr_array
    symbols: list[Any]
    rows: Floats

    def __len__(self) -> int:
        return len(self.symbols)

    def take(self, places: slice) -> Unseen:
        return Unseen(self.documents[places], self.symbols[places], self.rows[places])

    def tiles(self) -> list[Unseen]:
        """A part at a time, so that what is compared with all donors stays small."""
        return [self.take(slice(first, first + _TILE)) for first in range(0, len(self), _TILE)]


@dataclass(frozen=True)
class FittedColumn:
    """The known categories of column `number` and their estimates.

    Attributes
    ----------
    symbols : list
        Known categories, by code (l,).
    sums : Sums
        Their targets.
    components : Components
    donors : (d,)
        Codes of the categories that unknown ones are compared with.
    covariance : Covariance
        Of the donors' means.
    rule : DonorRule
        How a donor's weight follows from its distance.
    """

    number: int
    method: Method
    symbols: list[Any]
    pairs: PairCounts
    sums: Sums
    components: Components
    donors: NDArray[np.int64]
    covariance: Covariance
    rule: DonorRule

    @classmethod
    @one_blas_thread()
    def fit(cls, number: int, method: Method, symbols: list[Any], pairs: PairCounts, sums: Sums) -> FittedColumn:
        """Components of variance, then how donors are weighed."""
        components = components_of(sums)
        donors = _most_frequent(sums.rows, MOST_DONORS)
        plain = Covariance(None, 0.0, 1.0)
        rule = DonorRule(0.0, 0.0, 1.0, np.ones(len(donors)))
        new = cls(number, method, symbols, pairs, sums, components, donors, plain, rule)
        if method.method == "poster":
            return new
        some = replace(new, donors=_most_frequent(sums.rows, MOST_COMPARED))
        covariance = DocumentRegression.fit(sums.of(some.donors), components, some.geometry).covariance
        rule = DonorRule.fit(sums.of(some.donors), components, some.geometry)
        return replace(new, covariance=covariance, rule=rule.of(sums.rows[donors], components))

    # -- known categories -------------------------------------------------------------------------

    @cached_property
    def estimates(self) -> Floats:
        """Of known categories (l, q): their means, drawn to the centre."""
        return drawn(self.sums, self._centre, self._prior_rows) + self.sums.origin

    @property
    def prior(self) -> Floats:
        """The estimate (q,) of a category of which nothing is known."""
        return self._shares((self._centre + self.sums.origin)[None])[0]

    @property
    def _centre(self) -> Floats:
        """What means are drawn to (q,), from the origin."""
        return self.sums.grand_mean if self.method.method == "poster" else self.components.centre

    @property
    def _prior_rows(self) -> float:
        if self.method.smooth != "auto":
            return float(self.method.smooth)
        return PRIOR_ROWS if self.method.method == "poster" else self.components.ratio

    def with_sums(self, sums: Sums) -> FittedColumn:
        """As if some rows' targets were not known; documents, covariance and the donors' rule stay."""
        components, donors = components_of(sums), self.donors[sums.rows[self.donors] > 0]
        rule = self.rule.of(sums.rows[donors], components)
        return replace(self, sums=sums, components=components, donors=donors, rule=rule)

    # -- unknown categories -----------------------------------------------------------------------

    @one_blas_thread()
    def unseen_estimates(self, unseen: Unseen) -> Floats:
        """Estimated targets (m, q)."""
        if not len(unseen):
            return np.zeros((0, self.sums.sums.shape[1]))
        if self.method.method == "poster":  # not in tiles: the words of all documents are standardised together
            return self.similarity_weights(unseen, self._seen) @ self.estimates[self._seen]
        tiles = [self._estimates(tile).values + self.sums.origin for tile in unseen.tiles()]
        return self._shares(np.concatenate(tiles))

    @one_blas_thread()
    def intervals(self, unseen: Unseen, level: float) -> tuple[Floats, Floats]:
        """Bounds (m, q) for the mean target of each category's rows."""
        found = [self._estimates(tile) for tile in unseen.tiles()]
        half = [
            self.conformal.half_width(one.variances, tile.rows, level)
            for one, tile in zip(found, unseen.tiles(), strict=True)
        ]
        shape = (0, self.sums.sums.shape[1])
        values = np.concatenate([np.zeros(shape), *(one.values for one in found)]) + self.sums.origin
        halves = np.concatenate([np.zeros(shape), *half])
        return values - halves, values + halves

    @one_blas_thread()
    def weights(self, unseen: Unseen, own: NDArray[np.integer] | None = None) -> Floats:
        """Of the donors (m, d) for each category; `own` (m,): codes of known ones, which are not their own donors."""
        if self.method.method == "poster":
            return self.similarity_weights(unseen, self.donors, own)
        places = None if own is None else self._places(self.donors, own)
        out = np.zeros((len(unseen), len(self.donors)))
        for first in range(0, len(unseen), _TILE):
            tile = slice(first, first + _TILE)
            geometry = self.between(unseen.take(tile))
            out[tile] = self.rule.weights(geometry, None if places is None else places[tile])
        return out

    def similarity_weights(
        self, unseen: Unseen, donors: NDArray[np.integer], own: NDArray[np.integer] | None = None
    ) -> Floats:
        """Of method "poster": what the estimates of these categories (d,), by code, are multiplied by (m, d)."""
        if not len(unseen):
            return np.zeros((0, len(donors)))
        words = int(np.diff(self.pairs.offsets).sum() - self.pairs.sizes[self.number])
        documents = self.pairs.documents(self.number, donors)
        alike = similarities(documents, unseen.documents, words, batch=self.method.idf_rows == "all")
        if own is not None:
            places = self._places(donors, own)
            held = np.flatnonzero(places >= 0)
            alike[held, places[held]] = 0.0
        return weights_of(alike)

    def shown_weights(self, unseen: Unseen, own: NDArray[np.integer] | None = None) -> tuple[NDArray[np.int64], Floats]:
        """Codes of the donors (d,) and their weights (m, d), of method "poster" those that estimates are made with."""
        if self.method.method == "poster":
            return self._seen, self.similarity_weights(unseen, self._seen, own)
        return self.donors, self.weights(unseen, own)

    def between(self, unseen: Unseen) -> Geometry:
        """Unknown categories beside the donors."""
        return Geometry.between(self._describe(unseen.documents, unseen.symbols), self._described)

    def as_unseen(self, codes: NDArray[np.integer]) -> Unseen:
        """Known categories as if they were not, by their documents."""
        documents = self.pairs.documents(self.number, np.asarray(codes))
        return Unseen(documents, [self.symbols[code] for code in codes], self.sums.rows[codes])

    @one_blas_thread()
    def held_out(self, groups: NDArray[np.integer]) -> Floats:
        """Estimates (l, q) of known categories by those of other groups; `groups` (l,) holds numbers."""
        if self.method.method == "poster":
            out = np.empty_like(self.estimates)
            for group in np.unique(groups):
                inside = np.flatnonzero(groups == group)
                rows = np.where(groups == group, 0.0, self.sums.rows)
                if not rows.any():
                    out[inside] = self.estimates.mean(axis=0)
                    continue
                rest = Sums(rows, self.sums.sums * (rows > 0)[:, None], self.sums.squares, self.sums.origin)
                out[inside] = self.with_sums(rest).unseen_estimates(self.as_unseen(inside))
            return out
        out = np.empty((len(self.symbols), self.sums.sums.shape[1]))
        out[self.donors] = self._shares(self.solution.held_out(groups[self.donors]).values + self.sums.origin)
        others = np.setdiff1d(np.arange(len(self.symbols)), self.donors)
        out[others] = self.unseen_estimates(self.as_unseen(others))
        return out

    # -- pieces -------------------------------------------------------------------------------

    def _estimates(self, unseen: Unseen) -> Estimates:
        found = self.solution.estimates(self.between(unseen))
        empty = np.diff(unseen.documents.indptr) == 0  # of which nothing is known
        values = np.where(empty[:, None], self.components.centre, found.values)
        return Estimates(values, np.where(empty, self.components.between, found.variances))

    def _shares(self, values: Floats) -> Floats:
        return on_simplex(values) if self.method.simplex else values

    @property
    def _seen(self) -> NDArray[np.int64]:
        """Codes of categories with rows."""
        return np.flatnonzero(self.sums.rows > 0)

    def _places(self, donors: NDArray[np.integer], codes: NDArray[np.integer]) -> NDArray[np.int64]:
        """Where categories are among these donors; -1: nowhere."""
        place = np.full(len(self.symbols) + 1, -1, dtype=np.int64)
        place[donors] = np.arange(len(donors))
        return place[codes]

    def _describe(self, documents: sparse.csr_array, symbols: list[Any]) -> Described:
        names = None if self._reader is None else self._reader(symbols)
        return Described(self._base.profiles(documents), names)

    # Caches, made when they are first needed and never pickled.

    @cached_property
    def _base(self) -> Base:
        return Base.of(self.pairs.totals(self.number), self.pairs.offsets)

    @cached_property
    def _described(self) -> Described:
        """The donors."""
        documents = self.pairs.documents(self.number, self.donors)
        return self._describe(documents, [self.symbols[code] for code in self.donors])

    @cached_property
    def _reader(self) -> NameReader | None:
        return NameReader.fit(self.symbols) if self.method.names else None

    @cached_property
    def geometry(self) -> Geometry:
        """Donors with each other."""
        return Geometry.between(self._described, self._described)

    @cached_property
    def solution(self) -> Solution:
        among = self.sums.of(self.donors)
        return DocumentRegression(among, self.components, self.covariance).solved(self.geometry)

    @cached_property
    def conformal(self) -> Conformal:
        """What intervals are made of: how far categories' means were from what the others say."""
        return Conformal.of(self.solution)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: self.__dict__[name] for name in self.__dataclass_fields__}
        return state | {"symbols": written_list(self.symbols)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, symbols=read_list(state["symbols"]))


def on_simplex(values: Floats) -> Floats:
    """Estimates (m, q); those of several classes not below 0 and of sum 1."""
    if values.shape[1] == 1:
        return values
    positive = np.maximum(values, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), 1 / values.shape[1])


def _most_frequent(rows: Floats, most: int) -> NDArray[np.int64]:
    """Codes, ascending, of the categories with the most rows."""
    seen = np.flatnonzero(rows > 0)
    return np.sort(seen[np.argsort(-rows[seen], kind="stable")[:most]])
