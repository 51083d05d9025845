"""A column as fitted: estimates of its known categories, and of unknown ones by the rows that have them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.categories import UNSEEN, RawCodes
from tabsym.categories.contingency import PairCounts
from tabsym.frame.dtypes import read_list, written_list
from tabsym.jit import one_blas_thread
from tabsym.tiws.counts import documents_of_rows
from tabsym.tiws.similarity import Base, Described, Geometry, NameReader, similarities, weights_of
from tabsym.tiws.unknown import (
    Components,
    Conformal,
    Covariance,
    DocumentRegression,
    DonorRule,
    Estimates,
    Sums,
    choose_covariance,
    components_of,
    shrunken,
)

Floats = NDArray[np.float64]

MAX_DONORS = 1500
"""Categories that unknown ones are compared with, of more a sample: equations take their number cubed."""
MAX_COMPARED = 500
"""Categories by which the covariance and the donors' rule are chosen, of more a sample."""
PRIOR_ROWS = 1.0
"""Of method "poster": rows at the mean of all that a known category's estimate is shrunk by."""
_CHUNK = 512  # unknown categories at a time


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
    """Categories that fit has not seen: their documents (m, words), as they are called, and the rows of each (m,).

    `alone`: whether none is to depend on another, as each is a row.
    """

    documents: sparse.csr_array
    categories: list[Any]
    rows: Floats
    alone: bool = False

    def __len__(self) -> int:
        return len(self.categories)

    def take(self, positions: slice | NDArray[np.integer]) -> Unseen:
        """Some of them."""
        categories = [self.categories[position] for position in np.arange(len(self))[positions].tolist()]
        return Unseen(self.documents[positions], categories, self.rows[positions], self.alone)

    def chunks(self) -> list[Unseen]:
        """A part at a time, so that what is compared with all donors stays small."""
        return [self.take(slice(first, first + _CHUNK)) for first in range(0, len(self), _CHUNK)]


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

    `covariance` of the donors' means and `rule`, how a donor's weight follows from its distance, are found when they
    are first asked for: most of the time of a fit, and needed for unknown categories only.
    """

    number: int
    method: Method
    categories: list[Any]
    pairs: PairCounts
    sums: Sums
    components: Components
    donors: NDArray[np.int64]

    @classmethod
    def fit(cls, number: int, method: Method, categories: list[Any], pairs: PairCounts, sums: Sums) -> FittedColumn:
        """Variance components; the weights of donors follow."""
        components = components_of(sums)
        donors = sampled(np.flatnonzero(sums.rows > 0), pairs, number, sums, components, MAX_DONORS)
        return cls(number, method, categories, pairs, sums, components, donors)

    @cached_property
    def covariance(self) -> Covariance:
        """Of the donors' means, from a sample of them."""
        if self.method.method == "poster":
            return Covariance(None, 0.0, 1.0)
        some = self._compared
        with one_blas_thread():
            return choose_covariance(self.sums.of(some.donors), self.components, some.geometry)

    @cached_property
    def rule(self) -> DonorRule:
        """How a donor's weight follows from its distance, from a sample of the donors."""
        if self.method.method == "poster":
            return DonorRule(0.0, 0.0, 1.0, np.ones(len(self.donors)))
        some = self._compared
        with one_blas_thread():
            rule = DonorRule.fit(self.sums.of(some.donors), self.components, some.geometry)
        return rule.of(self.sums.rows[self.donors], self.components)

    @property
    def _compared(self) -> FittedColumn:
        some = sampled(self.donors, self.pairs, self.number, self.sums, self.components, MAX_COMPARED)
        return replace(self, donors=some)

    # -- known categories -------------------------------------------------------------------------

    @cached_property
    def estimates(self) -> Floats:
        """Of known categories (l, q): their means, shrunk to the centre."""
        if self.method.smooth != "auto":
            rows = float(self.method.smooth)
        else:
            rows = PRIOR_ROWS if self.method.method == "poster" else self.components.ratio
        return shrunken(self.sums, self._centre, rows) + self.sums.origin

    @property
    def donor_categories(self) -> list[Any]:
        """The donors as they are called."""
        return [self.categories[code] for code in self.donors]

    @property
    def prior(self) -> Floats:
        """The estimate (q,) of a category of which nothing is known."""
        return self._shares((self._centre + self.sums.origin)[None])[0]

    @property
    def _centre(self) -> Floats:
        """What means are shrunk to (q,), from the origin."""
        return self.sums.grand_mean if self.method.method == "poster" else self.components.centre

    def with_sums(self, sums: Sums) -> FittedColumn:
        """As if some rows' targets were not known; documents, covariance and the donors' rule stay."""
        components, donors = components_of(sums), self.donors[sums.rows[self.donors] > 0]
        new = replace(self, sums=sums, components=components, donors=donors)
        vars(new).update(covariance=self.covariance, rule=self.rule.of(sums.rows[donors], components))
        return new

    # -- unknown categories -----------------------------------------------------------------------

    @one_blas_thread()
    def unseen_estimates(self, unseen: Unseen) -> Floats:
        """Estimated targets (m, q)."""
        if not len(unseen):
            return np.zeros((0, self.sums.sums.shape[1]))
        if self.method.method == "poster":  # not in chunks: the words of all documents are standardised together
            return self.similarity_weights(unseen, self._seen) @ self.estimates[self._seen]
        chunks = [self._estimates(chunk).values + self.sums.origin for chunk in unseen.chunks()]
        return self._shares(np.concatenate(chunks))

    @one_blas_thread()
    def intervals(self, unseen: Unseen, level: float) -> tuple[Floats, Floats]:
        """Bounds (m, q) for the mean target of each category's rows."""
        estimates = [self._estimates(chunk) for chunk in unseen.chunks()]
        half = [
            self.conformal.half_width(estimate.variances, chunk.rows, level)
            for estimate, chunk in zip(estimates, unseen.chunks(), strict=True)
        ]
        shape = (0, self.sums.sums.shape[1])
        values = np.concatenate([np.zeros(shape), *(estimate.values for estimate in estimates)]) + self.sums.origin
        halves = np.concatenate([np.zeros(shape), *half])
        return values - halves, values + halves

    @one_blas_thread()
    def weights(
        self, unseen: Unseen, codes: NDArray[np.integer] | None = None, rule: DonorRule | None = None
    ) -> Floats:
        """Of the donors (m, d) for each category.

        `codes` (m,): of known ones, which are not their own donors; `rule`: another one than the column's.
        """
        if rule is None and self.method.method == "poster":
            return self.similarity_weights(unseen, self.donors, codes)
        rule = self.rule if rule is None else rule.of(self.sums.rows[self.donors], self.components)
        positions = None if codes is None else self.positions(self.donors, codes)
        out = np.zeros((len(unseen), len(self.donors)))
        for first in range(0, len(unseen), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            geometry = self.between(unseen.take(chunk))
            out[chunk] = rule.weights(geometry, None if positions is None else positions[chunk])
        return out

    def similarity_weights(
        self, unseen: Unseen, donors: NDArray[np.integer], codes: NDArray[np.integer] | None = None
    ) -> Floats:
        """Of method "poster": what the estimates of these categories (d,), by code, are multiplied by (m, d)."""
        if not len(unseen):
            return np.zeros((0, len(donors)))
        words = int(np.diff(self.pairs.offsets).sum() - self.pairs.sizes[self.number])
        documents = self.pairs.documents(self.number, donors)
        batch = self.method.idf_rows == "all" and not unseen.alone
        alike = similarities(documents, unseen.documents, words, batch=batch)
        if codes is not None:
            positions = self.positions(donors, codes)
            among = np.flatnonzero(positions >= 0)
            alike[among, positions[among]] = 0.0
        return weights_of(alike)

    def shown_weights(
        self, unseen: Unseen, codes: NDArray[np.integer] | None = None
    ) -> tuple[NDArray[np.int64], Floats]:
        """Codes of the donors (d,) and their weights (m, d), of method "poster" those that estimates are made with."""
        if self.method.method == "poster":
            return self._seen, self.similarity_weights(unseen, self._seen, codes)
        return self.donors, self.weights(unseen, codes)

    def between(self, unseen: Unseen) -> Geometry:
        """Unknown categories compared with the donors."""
        return Geometry.between(self._describe(unseen.documents, unseen.categories), self._described)

    def as_unseen(self, codes: NDArray[np.integer]) -> Unseen:
        """Known categories as if they were not, by their documents."""
        documents = self.pairs.documents(self.number, np.asarray(codes))
        return Unseen(documents, [self.categories[code] for code in codes], self.sums.rows[codes])

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
        out = np.empty((len(self.categories), self.sums.sums.shape[1]))
        out[self.donors] = self._shares(self.solution.held_out(groups[self.donors]).values + self.sums.origin)
        others = np.setdiff1d(np.arange(len(self.categories)), self.donors)
        out[others] = self.unseen_estimates(self.as_unseen(others))
        return out

    # -- pieces -------------------------------------------------------------------------------

    def _estimates(self, unseen: Unseen) -> Estimates:
        estimates = self.solution.estimates(self.between(unseen))
        empty = np.diff(unseen.documents.indptr) == 0  # of which nothing is known
        values = np.where(empty[:, None], self.components.centre, estimates.values)
        return Estimates(values, np.where(empty, self.components.between, estimates.variances))

    def _shares(self, values: Floats) -> Floats:
        """Estimates (m, q); those of several classes, where they are shares, not below 0 and of sum 1."""
        if not self.method.simplex or values.shape[1] == 1:
            return values
        positive = np.maximum(values, 0.0)
        total = positive.sum(axis=1, keepdims=True)
        return np.where(total > 0, positive / np.where(total > 0, total, 1.0), 1 / values.shape[1])

    @property
    def _seen(self) -> NDArray[np.int64]:
        """Codes of categories with rows."""
        return np.flatnonzero(self.sums.rows > 0)

    def positions(self, donors: NDArray[np.integer], codes: NDArray[np.integer]) -> NDArray[np.int64]:
        """Where categories are among these donors; -1: nowhere."""
        position = np.full(len(self.categories) + 1, -1, dtype=np.int64)
        position[donors] = np.arange(len(donors))
        return position[codes]

    def _describe(self, documents: sparse.csr_array, categories: list[Any]) -> Described:
        names = None if self._reader is None else self._reader(categories)
        return Described(self._base.profiles(documents), names)

    # Caches, made when they are first needed and never pickled.

    @cached_property
    def _base(self) -> Base:
        return Base.of(self.pairs.totals(self.number), self.pairs.offsets)

    @cached_property
    def _described(self) -> Described:
        """The donors."""
        documents = self.pairs.documents(self.number, self.donors)
        return self._describe(documents, self.donor_categories)

    @cached_property
    def _reader(self) -> NameReader | None:
        return NameReader.fit(self.categories) if self.method.names else None

    @cached_property
    def geometry(self) -> Geometry:
        """Donors with each other."""
        return Geometry.between(self._described, self._described)

    @cached_property
    def solution(self) -> DocumentRegression:
        """The regression of the targets of donors on their documents."""
        among = self.sums.of(self.donors)
        return DocumentRegression.of(among, self.components, self.covariance, self.geometry)

    @cached_property
    def conformal(self) -> Conformal:
        """What intervals are made of: how far categories' means were from their estimates by the others."""
        return Conformal.of(self.solution)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: self.__dict__[name] for name in self.__dataclass_fields__}
        return state | {"symbols": written_list(self.categories), "covariance": self.covariance, "rule": self.rule}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, categories=read_list(state["symbols"]))


def sampled(
    codes: NDArray[np.int64], pairs: PairCounts, number: int, sums: Sums, components: Components, most: int
) -> NDArray[np.int64]:
    """Of some categories of column `number`, by code, up to a maximum number, ascending, whatever their names.

    Half of them are those with the most rows, whose means are known best; the others a systematic sample along the
    documents, in which a category's share is how surely its mean is known, so that all kinds of documents are in it.
    """
    if len(codes) <= most:
        return codes
    known = sums.of(codes)
    order = np.lexsort((*known.sums.T, known.rows, _keys_of_rows(pairs.documents(number, codes))))
    share = (known.rows / (known.rows + components.ratio))[order]
    taken = np.zeros(len(codes), dtype=bool)
    taken[np.argsort(-share, kind="stable")[: most // 2]] = True
    while (left := most - int(taken.sum())) > 0:  # those whose share is more than a step are taken, and steps shrink
        step = share[~taken].sum() / left
        sure = ~taken & (share >= step)
        if not sure.any():
            ends = np.cumsum(np.where(taken, 0.0, share))
            picks = np.searchsorted(ends, (np.arange(left) + 0.5) * step)
            taken[np.minimum(picks, len(codes) - 1)] = True
            break
        taken |= sure
    return np.sort(codes[order[taken]])


def _keys_of_rows(documents: sparse.csr_array) -> NDArray[np.uint64]:
    """A number for each document (m,), the same for equal ones."""
    counts = np.ascontiguousarray(documents.data, dtype=np.float64).view(np.uint64)
    mixed = (documents.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29)) ^ counts) * np.uint64(0xBF58476D1CE4E5B9)
    totals = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed ^ (mixed >> np.uint64(32)))])
    keys = totals[documents.indptr[1:]] - totals[documents.indptr[:-1]]
    return (keys ^ (keys >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)


CONTEXTS = ("batch", "row", "observed")


@dataclass(frozen=True)
class Observed:
    """Documents (m, words) of unknown categories of one column from rows without targets, and how many rows (m,)."""

    documents: sparse.csr_array
    categories: list[Any] = field(default_factory=list)
    rows: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def none(cls, n_words: int) -> Observed:
        """Nothing observed yet."""
        return cls(sparse.csr_array((0, n_words)))

    def __add__(self, other: Unseen) -> Observed:
        """With the rows of further documents."""
        position = {category: i for i, category in enumerate(self.categories)}
        for category in other.categories:
            position.setdefault(category, len(position))
        at = np.array([position[category] for category in other.categories], dtype=np.int64)
        size = len(position), self.documents.shape[1]
        pointer = self.documents.indptr
        pointer = np.append(pointer, np.full(len(position) + 1 - len(pointer), pointer[-1], dtype=pointer.dtype))
        old = sparse.csr_array((self.documents.data, self.documents.indices, pointer), shape=size)
        new = sparse.csr_array((np.ones(len(at)), (at, np.arange(len(at)))), shape=(size[0], len(at))) @ other.documents
        rows = np.bincount(at, other.rows, minlength=size[0]).astype(np.float64)
        rows[: len(self.rows)] += self.rows
        return Observed(sparse.csr_array(old + new), list(position), rows)

    def positions(self, categories: list[Any]) -> NDArray[np.int64]:
        """Where categories are among these; -1: nowhere."""
        position = {category: i for i, category in enumerate(self.categories)}
        return np.array([position.get(category, -1) for category in categories], dtype=np.int64)

    def placed(self, positions: NDArray[np.int64], n_words: int, keep: NDArray[np.bool_]) -> Observed:
        """By new numbers of the words (words,), of the categories to `keep`."""
        cells = self.documents[np.flatnonzero(keep)].tocoo()
        shape = int(keep.sum()), n_words
        documents = sparse.coo_array((cells.data, (cells.row, positions[cells.col])), shape=shape).tocsr()
        categories = [category for category, kept in zip(self.categories, keep, strict=True) if kept]
        return Observed(documents, categories, self.rows[keep])

    def all(self) -> Unseen:
        """What was observed, as unknown categories."""
        return Unseen(self.documents, self.categories, self.rows)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"symbols": written_list(self.categories)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, categories=read_list(state["symbols"]))


@dataclass(frozen=True)
class UnseenRows:
    """Rows of a table with an unknown category in one column, and the document `which` (rows,) that each goes by."""

    rows: NDArray[np.int64]
    which: NDArray[np.int64]
    unseen: Unseen


def unseen_rows(
    codes: NDArray[np.integer], raw: RawCodes, words: list[NDArray[np.int32]], offsets: NDArray[np.int64],
    context: str, observed: Observed,
) -> UnseenRows:  # fmt: skip
    """The rows whose code is UNSEEN, with documents by `context`.

    Parameters
    ----------
    codes : (n,)
        In the column's vocabulary.
    raw : RawCodes
        Of the column.
    words : list of (n,)
        Words of all columns.
    offsets : (p + 1,)
        Where each column's words begin.
    context : {"batch", "row", "observed"}
    observed : Observed
    """
    rows = np.flatnonzero(codes == UNSEEN)
    unknown, which = np.unique(raw.codes[rows], return_inverse=True)  # -1, missing, is a category like another
    categories = [None if code < 0 else raw.categories[code] for code in unknown.tolist()]
    which = which.ravel()
    if context == "row":
        categories, which = [categories[position] for position in which.tolist()], np.arange(len(rows))
    seen_before = observed.positions(categories)
    before = sparse.vstack([observed.documents, sparse.csr_array((1, int(offsets[-1])))], format="csr")[seen_before]
    counts = np.append(observed.rows, 0.0)[seen_before]
    if context == "observed":
        return UnseenRows(rows, which, Unseen(before, categories, counts))
    now = documents_of_rows([column[rows] for column in words], offsets, which, len(categories))
    counts = counts + np.bincount(which, minlength=len(categories))
    return UnseenRows(rows, which, Unseen(sparse.csr_array(before + now), categories, counts, context == "row"))
