"""How similar categories are: documents as profiles, names as bags of character n-grams, and kernels over both.

A document is a row of counts over words. Its profile is, block by block (a block is the words of one column), the share
of each word, shrunk to the share in all seen documents by `KAPPA` rows. Profiles are compared by the Euclidean distance
of their square roots (Hellinger's), counted from the roots of the base shares: a document without words is the origin.

Where a word is not in the document its root is the base's root times a number of the block. So the roots are kept as
a sparse matrix of what differs from that, and one number for each block; nothing dense is made.

Method "poster" is TIWS as printed (Bang and Lin, "Jitter Trees"), corrected only where it cannot be computed.
Counts of words are standardised along each document and along each word over all documents, the two multiplied, and
categories compared by the cosine of what results. It is kept for comparison: signs cancel in the product, so that an
exactly opposite document can count as alike, and scores follow how frequent a category is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Names:
    """Vectors (m, pieces) of length 1, or 0 for a name of which no piece is known."""

    vectors: sparse.csr_array

    def cosines(self, other: Names) -> NDArray[np.float64]:
        """Similarity (m, other), 0 to 1."""
        return np.clip((self.vectors @ other.vectors.T.tocsr()).toarray(), 0.0, 1.0)


@dataclass(frozen=True)
class NameReader:
    """Reads names by the pieces of those that fit has seen."""

    vectorizer: TfidfVectorizer

    @classmethod
    def fit(cls, categories: Sequence[Any]) -> NameReader:
        """The reader of the names of these categories."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        reader = TfidfVectorizer(analyzer="char", ngram_range=(2, 4))
        texts = [_text(category) for category in categories]
        if not any(text.strip() for text in texts):  # of blanks there are no pieces, which scikit-learn refuses
            texts = [_text("\0")]
        return cls(reader.fit(texts))

    def __call__(self, categories: Sequence[Any]) -> Names:
        return Names(sparse.csr_array(self.vectorizer.transform([_text(category) for category in categories])))


def _text(category: Any) -> str:
    """A category as text with its ends marked, so that no name is too short for a piece."""
    return f" {'' if category is None else category} "


KAPPA = 1.0
"""Rows at the base shares that each block of a document is shrunk by."""
_MAX_DENSE = 2**24  # entries of a dense piece of documents
_SPARSE_COST = 100  # number of products of dense numbers that take the time of one of sparse ones


@dataclass(frozen=True)
class Base:
    """The shares of words among seen documents; `blocks` (p + 1,) says where each block of words begins.

    In a block whose words no document holds (a column's own) all documents are at the base.
    """

    shares: Floats
    blocks: NDArray[np.int64]

    @classmethod
    def of(cls, totals: Floats, blocks: NDArray[np.int64]) -> Base:
        """From the counts of words (words,) in all seen documents."""
        counts = totals + 0.5
        totals = _by_block(counts, blocks)
        return cls(counts / np.repeat(np.where(totals > 0, totals, 1.0), np.diff(blocks)), blocks)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Whether a block has words (p,)."""
        return _by_block(self.shares, self.blocks) > 0

    def profiles(self, documents: sparse.csr_array) -> Profiles:
        """The profiles of documents (m, words)."""
        counts = sparse.csr_array(documents, dtype=np.float64)
        block_of = _block_of(self.blocks)
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        at = row * (len(self.blocks) - 1) + block_of[counts.indices]
        shape = counts.shape[0], len(self.blocks) - 1
        rows = np.bincount(at, counts.data, minlength=shape[0] * shape[1]).reshape(shape)
        scale = np.sqrt(KAPPA / (rows + KAPPA)) * self.used
        share = self.shares[counts.indices]
        total = rows[row, block_of[counts.indices]] + KAPPA
        root = np.sqrt((counts.data + KAPPA * share) / total)
        excess = root - np.sqrt(share) * scale[row, block_of[counts.indices]]
        pulls = np.bincount(at, excess * np.sqrt(share), minlength=shape[0] * shape[1]).reshape(shape)
        roots = sparse.csr_array((excess, counts.indices, counts.indptr), shape=counts.shape)
        return Profiles(roots, scale, pulls, int(self.used.sum()))


@dataclass(frozen=True)
class Profiles:
    """Roots of shares: ``excess + scale[block] * base roots``.

    `excess`: (m, words) sparse; `scale`, `pulls`: (m, p), the latter its product with the base roots;
    `n_blocks`: blocks that have words.
    """

    excess: sparse.csr_array
    scale: Floats
    pulls: Floats
    n_blocks: int

    @cached_property
    def along_base(self) -> Floats:
        """Products with the base roots (m,)."""
        return np.asarray((self.scale + self.pulls).sum(axis=1))

    @cached_property
    def squares(self) -> Floats:
        """Squared distance from the base (m,)."""
        return np.maximum(2 * (self.n_blocks - self.along_base), 0.0)

    def products(self, other: Profiles) -> Floats:
        """Inner products (m, other) of both, counted from the base."""
        roots = _crossed(self.excess, other.excess) if other is not self else _with_each_other(self.excess)
        roots += self.scale @ (other.scale + other.pulls).T
        roots += self.pulls @ other.scale.T
        roots -= self.along_base[:, None]
        roots -= other.along_base[None, :]
        roots += self.n_blocks
        return roots

    def distances(self, other: Profiles, products: Floats | None = None) -> Floats:
        """Squared distances (m, other)."""
        products = self.products(other) if products is None else products
        return np.maximum(self.squares[:, None] + other.squares[None, :] - 2 * products, 0.0)


def _with_each_other(one: sparse.csr_array) -> Floats:
    """``one @ one.T``, dense (m, m): of a dense piece NumPy computes one half only."""
    per_word = np.diff(one.tocsc().indptr).astype(float)
    if _is_sparse(float(per_word @ per_word), (*one.shape, one.shape[0])):
        return np.asarray((one @ one.T.tocsr()).toarray())
    out = np.zeros((one.shape[0],) * 2)
    by_word, step = one.tocsc(), max(1, _MAX_DENSE // max(one.shape[0], 1))
    for first in range(0, one.shape[1], step):
        piece = by_word[:, first : first + step].toarray()
        out += piece @ piece.T
    return out


def _is_sparse(work: float, shape: tuple[int, ...]) -> bool:
    """Whether this number of products of sparse numbers takes less time than those of dense matrices."""
    return work * _SPARSE_COST < float(np.prod(np.array(shape, dtype=float))) or 0 in shape


def _crossed(left: sparse.csr_array, right: sparse.csr_array) -> Floats:
    """``left @ right.T``, dense (m, n), word by word dense where there is much of it."""
    shape = left.shape[0], right.shape[0]
    work = float(np.diff(left.tocsc().indptr).astype(float) @ np.diff(right.tocsc().indptr))
    if _is_sparse(work, (*shape, left.shape[1])):
        return np.asarray((left @ right.T.tocsr()).toarray())
    out = np.zeros(shape)
    step = max(1, _MAX_DENSE // (shape[0] + shape[1]))
    left, right = left.tocsc(), right.tocsc()
    for first in range(0, left.shape[1], step):
        words = slice(first, first + step)
        out += left[:, words].toarray() @ right[:, words].toarray().T
    return out


def _by_block(values: Floats, blocks: NDArray[np.int64]) -> Floats:
    """Sums by block (p,)."""
    return np.bincount(_block_of(blocks), values, minlength=len(blocks) - 1).astype(np.float64)


def _block_of(blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The block of each word."""
    return np.repeat(np.arange(len(blocks) - 1), np.diff(blocks))


LENGTHS = (0.1, 0.3, 1.0, 3.0)
"""Of exponential kernels, in units of the median squared distance of seen documents."""
ROUNDING = 1e-12
"""Squared distances below are none."""


@dataclass(frozen=True)
class SimilarityKernel:
    """A kernel: "linear", or exponential with a `length`; divided by `unit`. `names`: the share of names' likeness."""

    length: float | None
    unit: float
    names: float = 0.0

    def __str__(self) -> str:
        kind = "linear" if self.length is None else f"exponential, length {self.length:g}"
        return kind if not self.names else f"{kind}, names {self.names:g}"


@dataclass(frozen=True)
class Described:
    """Categories by what is known of them: profiles, and names where they are requested."""

    profiles: Profiles
    names: Names | None = None


@dataclass(frozen=True)
class Geometry:
    """Products and squared distances of documents (m, l), squares (m,) of the first ones, and likeness of names."""

    products: Floats
    distances: Floats
    squares: Floats
    names: Floats | None = None

    @classmethod
    def between(cls, some: Described, others: Described) -> Geometry:
        """Of documents with others."""
        products = some.profiles.products(others.profiles)
        distances = some.profiles.distances(others.profiles, products)
        names = None if some.names is None or others.names is None else some.names.cosines(others.names)
        return cls(products, distances, some.profiles.squares, names)

    def covariance(self, kernel: SimilarityKernel) -> Floats:
        """The kernel (m, l)."""
        if kernel.length is None:
            documents = self.products / kernel.unit
        else:
            documents = np.exp(-self.distances / (2 * kernel.length * kernel.unit))
        if not kernel.names:
            return documents
        assert self.names is not None
        return np.asarray((1 - kernel.names) * documents + kernel.names * self.names)

    def variance(self, kernel: SimilarityKernel) -> Floats:
        """The kernel of each of the first with itself (m,)."""
        documents = self.squares / kernel.unit if kernel.length is None else np.ones(len(self.squares))
        return (1 - kernel.names) * documents + kernel.names

    def candidates(self) -> Iterator[SimilarityKernel]:
        """The kernels to choose from, of documents with each other; none where documents do not differ."""
        l = len(self.squares)  # noqa: E741 (the formulas' letter)
        spread, middle = float(self.squares.mean()), median_distance(self.distances)
        kernels = [SimilarityKernel(None, spread)] if spread > ROUNDING else []
        kernels += [SimilarityKernel(length, middle) for length in LENGTHS] if middle > 0 else []
        yield from kernels
        if self.names is not None and l > 1:
            yield from (SimilarityKernel(kernel.length, kernel.unit, names=0.5) for kernel in kernels)
            yield SimilarityKernel(1.0, middle if middle > 0 else 1.0, names=1.0)


def median_distance(distances: Floats) -> float:
    """The median of the squared distances (l, l) of different categories; 0 where it is rounding or there are none."""
    l = len(distances)  # noqa: E741
    middle = float(np.median(distances[np.triu_indices(l, 1)])) if l > 1 else 0.0
    return middle if middle > ROUNDING else 0.0


# -- as published: method "poster" -----------------------------------------------------------------


def similarities(seen: sparse.csr_array, unseen: sparse.csr_array, words: int, *, batch: bool) -> Floats:
    """s (m, l) in [0, 1] of unknown documents (m, columns) with seen ones (l, columns).

    Parameters
    ----------
    seen, unseen : sparse
        Counts; columns other than the `words` that count are empty.
    words : int
        Words there are in the other columns.
    batch : bool
        Whether words are standardised over all documents of the call, or each unknown one alone with the seen ones.
    """
    if batch:
        return _similarities(seen, unseen, words)
    rows = [_similarities(seen, unseen[[position]], words) for position in range(unseen.shape[0])]
    return np.concatenate(rows) if rows else np.zeros((0, seen.shape[0]))


def weights_of(similarity: Floats) -> Floats:
    """Similarities (m, l) as weights that sum to 1; equal ones where all are 0."""
    total = similarity.sum(axis=1, keepdims=True)
    return np.where(total > 0, similarity / np.where(total > 0, total, 1.0), 1 / similarity.shape[1])


def _similarities(seen: sparse.csr_array, unseen: sparse.csr_array, words: int) -> Floats:
    """H = A + u v' with A sparse: products of H without making it."""
    documents = sparse.csr_array(sparse.vstack([seen, unseen]), dtype=np.float64)
    along = _MeanAndScale.of(documents, words, axis=1)
    down = _MeanAndScale.of(documents, documents.shape[0], axis=0)
    counted = sparse.coo_array(documents)
    f, row, word = counted.data, counted.row, counted.col
    scaled = along.inverse[row] * down.inverse[word]
    mixed = (f * f - f * down.mean[word] - along.mean[row] * f) * scaled
    a = sparse.csr_array((mixed, (row, word)), shape=documents.shape)
    u, v = along.mean * along.inverse, down.mean * down.inverse
    across, square = a @ v, float(v @ v)
    norms = np.asarray(a.multiply(a).sum(axis=1)).ravel() + 2 * u * across + u * u * square
    n = seen.shape[0]
    cross = (a[n:] @ a[:n].T.tocsr()).toarray() + np.outer(u[n:], across[:n]) + np.outer(across[n:], u[:n])
    cross += np.outer(u[n:], u[:n]) * square
    length = np.sqrt(np.outer(np.maximum(norms[n:], 0.0), np.maximum(norms[:n], 0.0)))
    largest = float(norms.max(initial=0.0))
    known = length > _ROUNDING * largest
    return np.clip(0.5 + 0.5 * np.where(known, cross / np.where(known, length, 1.0), 0.0), 0.0, 1.0)


_ROUNDING = 1e-12  # of the greatest squared norm: less is none


@dataclass(frozen=True)
class _MeanAndScale:
    """Mean and 1 / standard deviation (ddof 1) of the rows or the columns; 0 where there is none."""

    mean: Floats
    inverse: Floats

    @classmethod
    def of(cls, documents: sparse.csr_array, count: int, axis: int) -> _MeanAndScale:
        total = np.asarray(documents.sum(axis=axis)).ravel()
        squares = np.asarray(documents.multiply(documents).sum(axis=axis)).ravel()
        mean = total / max(count, 1)
        spread = (squares - count * mean**2) / max(count - 1, 1)
        known = (spread > _ROUNDING * np.maximum(squares, 1e-300)) & (count > 1)
        return cls(mean, np.where(known, 1 / np.sqrt(np.where(known, spread, 1.0)), 0.0))
