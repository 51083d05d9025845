"""TIWS as printed on the poster (Bang and Lin, "Jitter Trees"), corrected only where it cannot be computed.

Counts of words are standardised along each document and along each word over all documents, the two multiplied, and
categories compared by the cosine of what results. It is kept for comparison: signs cancel in the product, so that an
exactly opposite document can count as alike, and scores follow how frequent a category is; see `profiles` for the
remedy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]

PRIOR_ROWS = 1.0
"""Rows at the mean of all that a known category's estimate is drawn by."""


def similarities(seen: sparse.csr_array, unseen: sparse.csr_array, words: int, *, batch: bool) -> Floats:
    """s (m, l) in [0, 1] of unknown documents (m, columns) with seen ones (l, columns).

    Parameters
    ----------
    seen, unseen : sparse
        Counts; columns beside the `words` that count are empty.
    words : int
        Words there are in the other columns.
    batch : bool
        Whether words are standardised over all documents of the call, or each unknown one alone beside the seen ones.
    """
    if batch:
        return _similarities(seen, unseen, words)
    rows = [_similarities(seen, unseen[[place]], words) for place in range(unseen.shape[0])]
    return np.concatenate(rows) if rows else np.zeros((0, seen.shape[0]))


def weights_of(similarity: Floats) -> Floats:
    """Similarities (m, l) as weights that sum to 1; equal ones where all are 0."""
    total = similarity.sum(axis=1, keepdims=True)
    return np.where(total > 0, similarity / np.where(total > 0, total, 1.0), 1 / similarity.shape[1])


def _similarities(seen: sparse.csr_array, unseen: sparse.csr_array, words: int) -> Floats:
    """H = A + u v' with A sparse: products of H without making it."""
    documents = sparse.csr_array(sparse.vstack([seen, unseen]), dtype=np.float64)
    along = _Spread.of(documents, words, axis=1)
    down = _Spread.of(documents, documents.shape[0], axis=0)
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
class _Spread:
    """Mean and 1 / standard deviation (ddof 1) of the rows or the columns; 0 where there is none."""

    mean: Floats
    inverse: Floats

    @classmethod
    def of(cls, documents: sparse.csr_array, count: int, axis: int) -> _Spread:
        total = np.asarray(documents.sum(axis=axis)).ravel()
        squares = np.asarray(documents.multiply(documents).sum(axis=axis)).ravel()
        mean = total / max(count, 1)
        spread = (squares - count * mean**2) / max(count - 1, 1)
        known = (spread > _ROUNDING * np.maximum(squares, 1e-300)) & (count > 1)
        return cls(mean, np.where(known, 1 / np.sqrt(np.where(known, spread, 1.0)), 0.0))
