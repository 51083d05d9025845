"""Donors: the known categories that an unknown one resembles, with weights that sum to 1.

The weight of a donor falls with its distance, by a rate chosen by leaving each known category out, and with how little
is known of it (rho_k = n_k / (n_k + s2 / tau2)).

Method "poster" is TIWS as printed (Bang and Lin, "Jitter Trees"), corrected only where it cannot be computed.
Counts of words are standardised along each document and along each word over all documents, the two multiplied, and
categories compared by the cosine of what results. It is kept for comparison: signs cancel in the product, so that an
exactly opposite document can count as alike, and scores follow how frequent a category is; see `similarity` for the
remedy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.tiws.regression import Components, Sums, drawn
from tabsym.tiws.similarity import Geometry, median_distance

Floats = NDArray[np.float64]

RATES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""g, per median squared distance of seen documents."""
NAME_RATES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The same for names, per unit of 1 - cosine."""
MIN_TO_TUNE = 4
"""Of fewer known categories all donors of one are alike: one left out leaves two at most."""


@dataclass(frozen=True)
class DonorRule:
    """How weights follow from distances: `rate` per `unit`, `name_rate`; `known` (l,) is each donor's rho."""

    rate: float
    name_rate: float
    unit: float
    known: Floats

    @classmethod
    def fit(cls, sums: Sums, components: Components, geometry: Geometry) -> DonorRule:
        """The rates that best predict left-out categories' targets; `geometry`: of categories with each other."""
        rule = cls(0.0, 0.0, median_distance(geometry.distances) or 1.0, _known(sums.rows, components))
        if len(sums.rows) < MIN_TO_TUNE:
            return rule
        estimates = drawn(sums, components.centre, components.ratio)
        sure = 1 / (components.between + components.within / sums.rows)
        centre = components.centre
        return min(
            rule.others(geometry), key=lambda one: one.left_out_error(geometry, sums.means, estimates, centre, sure)
        )

    def of(self, rows: Floats, components: Components) -> DonorRule:
        """The same rule for donors of so many rows (l,)."""
        return replace(self, known=_known(rows, components))

    def others(self, geometry: Geometry) -> list[DonorRule]:
        """The rules to choose from."""
        names = NAME_RATES if geometry.names is not None else (0.0,)
        return [DonorRule(rate, name, self.unit, self.known) for rate in RATES for name in names]

    def weights(self, geometry: Geometry, own: NDArray[np.integer] | None = None) -> Floats:
        """Of donors (l,) for each category (m, l); `own` (m,): a donor that is left out, below 0 for none."""
        logits = -self.rate * geometry.distances / self.unit
        if self.name_rate:
            assert geometry.names is not None
            logits = logits - self.name_rate * (1 - geometry.names)
        with np.errstate(divide="ignore"):
            logits = logits + np.log(self.known)
        if own is not None:
            held = np.flatnonzero(own >= 0)
            logits[held, own[held]] = -np.inf
        top = logits.max(axis=1, keepdims=True)
        weights = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
        total = weights.sum(axis=1, keepdims=True)
        return np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / weights.shape[1])

    def left_out_error(
        self, geometry: Geometry, means: Floats, estimates: Floats, centre: Floats, sure: Floats
    ) -> float:
        """Of categories foretold by the others, as far as that is worth: ``centre + lambda (foretold - centre)``."""
        foretold = self.weights(geometry, np.arange(len(means))) @ estimates - centre
        share = worth(foretold, means - centre, sure)
        return float((sure[:, None] * (means - centre - share * foretold) ** 2).sum())


def _known(rows: Floats, components: Components) -> Floats:
    """rho: how much of a category's estimate is its own."""
    return rows / (rows + components.ratio)


def worth(foretold: Floats, truth: Floats, sure: Floats) -> float:
    """The share in [0, 1] of what is foretold (l, q) that comes nearest to the truth (l, q), with weights (l,)."""
    square = float((sure[:, None] * foretold**2).sum())
    return float(np.clip((sure[:, None] * foretold * truth).sum() / square, 0.0, 1.0)) if square > 0 else 0.0


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
