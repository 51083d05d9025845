"""Posterior covariances of the coefficients, of all terms together where they are few enough.

The inverse of the penalised Fisher information at the optimum, given the variance components (Wood 2017,
"Generalized Additive Models", section 6.10; without penalties, the covariance of a GLM). Up to `MOST_ENTRIES`
coefficients it is exact. Beyond, a block is joint with the intercept and the smallest blocks (`MOST_BESIDE`
coefficients), and given the others; these small blocks are joint with the largest one.

In units of training, where the dispersion is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf, dpotri

from tabsym.losses.kernels import MULTINOMIAL
from tabsym.solvers.newton.block_descent import Turns
from tabsym.solvers.newton.certainty import TermCovariance
from tabsym.solvers.newton.kernels_rows import sum_pairs
from tabsym.solvers.newton.terms import Piece, Prior

Floats = NDArray[np.float64]

MOST_ENTRIES, MOST_BESIDE = 800, 100
"""Coefficients of all classes whose covariance is one matrix, and beside a block of a larger model."""

MOST_FACTOR = 100_000
"""Numbers that are kept of the covariance of one block."""

MOST_VISITS = 200_000_000
"""Rows times pairs of blocks and of classes that are summed up, above which those of several classes are not known."""

SINGULAR = 1e-9
"""Of an information whose diagonal is 1: an eigenvalue below is none."""

ALMOST_ZERO = 1e-14, 1e-12, 1e-10
"""Of the largest variance, added to all for Cholesky's factor of a matrix that is singular."""

UNTOLD = 1e-2
"""The share of a coefficient (its square) in directions that the rows do not tell, above which it is not known."""


@dataclass(frozen=True, eq=False)
class Whole:
    """Of all coefficients: covariances (K, p, p), and which (p,) nothing tells."""

    matrix: Floats
    untold: NDArray[np.bool_]


class Information:
    """The penalised information on pieces, block by block.

    Parameters
    ----------
    turns : Turns
        At the optimum.
    shares : dict of place -> (q,)
        The means that no row tells: they are held at 0, which changes nothing that is told.
    """

    def __init__(self, turns: Turns, shares: dict[int, Floats]) -> None:
        self.turns, self.shares = turns, shares
        self.k = turns.n_outputs if turns.loss.code == MULTINOMIAL else 1
        if turns.loss.code == MULTINOMIAL:
            self._weight = turns.weight if len(turns.weight) else np.ones(len(turns.y))
            self._probabilities = turns.rows.probabilities  # type: ignore[union-attr]
        else:
            self._of_rows = turns.expected_curvature()

    def _curvature(self, k: int, m: int) -> Floats:
        """Of rows (n,) between the scores of two classes."""
        if self.turns.loss.code != MULTINOMIAL:
            return self._of_rows
        one, other = self._probabilities[:, k], self._probabilities[:, m]
        return np.asarray(self._weight * one * ((1.0 if k == m else 0.0) - other))

    def between(self, one: int, other: int, k: int = 0, m: int = 0) -> Floats:
        """Of rows alone, between two pieces (q, r)."""
        pieces = self.turns.pieces
        left, right = pieces[one], pieces[other]
        values = self._curvature(k, m)
        for piece in (left, right):
            if len(piece.x):
                values = values * piece.x
        sums = np.zeros((left.size, right.size))
        sum_pairs(left.codes, right.codes, np.ascontiguousarray(values), sums)
        return sums

    def diagonal(self, place: int) -> Floats:
        """Of a ridge piece (q,), with its penalty."""
        piece = self.turns.pieces[place]
        seen = piece.codes >= 0
        values = self._curvature(0, 0) * (np.square(piece.x) if len(piece.x) else 1.0)
        return np.bincount(piece.codes[seen], values[seen], minlength=piece.size) + self.turns.precision[place]

    def penalty(self, place: int) -> Floats:
        """The penalty's matrix (q, q) of a piece."""
        piece, precision = self.turns.pieces[place], self.turns.precision[place]
        if piece.prior is Prior.FLAT:
            return np.zeros((1, 1))
        if piece.prior is Prior.RIDGE:
            return np.asarray(precision * np.eye(piece.size))
        jumps, beside = np.diff(np.eye(piece.size)[piece.apart :], axis=0), np.eye(piece.size)[: piece.apart]
        beside[:, piece.apart :] = -1.0 / max(piece.size - piece.apart, 1)
        return np.asarray(precision * (jumps.T @ jumps + piece.share_apart * beside.T @ beside))

    def of(self, places: Sequence[int]) -> Floats:
        """Of pieces together (K p, K p), class after class, with their penalties and the means that are held."""
        pieces, k = self.turns.pieces, self.k
        starts = np.cumsum([0, *(pieces[place].size for place in places)])
        p = int(starts[-1])
        whole = np.zeros((k, p, k, p))
        own = [slice(a, b) for a, b in pairwise(starts.tolist())]
        for one in range(k):
            for other in range(one + 1):
                for i, left in enumerate(places):
                    for j in range(len(places)) if other < one else range(i + 1):
                        block = self.between(left, places[j], one, other)
                        whole[one, own[i], other, own[j]] = block
                        whole[other, own[j], one, own[i]] = block.T
        for i, place in enumerate(places):
            self._hold(whole, own[i], place)
        return whole.reshape(k * p, k * p)

    def _hold(self, whole: Floats, own: slice, place: int) -> None:
        """Add a piece's penalty, and hold what no row tells: its mean, and what is common to all classes."""
        k, size = self.k, own.stop - own.start
        level = max(float(np.trace(whole[0, own, 0, own])), 1e-300)
        for one in range(k):
            whole[one, own, one, own] += self.penalty(place)
            if place in self.shares:
                whole[one, own, one, own] += level * np.outer(self.shares[place], self.shares[place])
        if k > 1 and not (self.turns.pieces[place].prior is Prior.RIDGE and self.turns.precision[place] > 0.0):
            for one in range(k):
                for other in range(k):
                    whole[one, own, other, own] += level / size * np.eye(size)

    def visits(self, places: Sequence[int]) -> float:
        """Rows that are visited to sum the information on pieces up."""
        return 0.5 * len(self.turns.y) * len(places) ** 2 * self.k**2


def inverse(information: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The inverse (p, p), and which coefficients (p,) nothing tells; for these, variances are no use."""
    size = np.diag(information)
    told = size > 0.0
    root = np.sqrt(np.where(told, size, 1.0))
    scaled = information / np.outer(root, root)
    scaled[~told, ~told] = 1.0
    found, missing = _inverse_of_positive(scaled), ~told
    if found is None:
        lengths, axes = np.linalg.eigh(scaled)
        known = lengths > SINGULAR
        found = (axes[:, known] / lengths[known]) @ axes[:, known].T
        missing = ~told | (np.square(axes[:, ~known]).sum(axis=1) > UNTOLD)
    found[~told] = found[:, ~told] = 0.0
    return found / np.outer(root, root), missing


def _inverse_of_positive(scaled: Floats) -> Floats | None:
    """The inverse of a matrix of diagonal 1; None where it is singular, or nearly."""
    lower, info = dpotrf(scaled, lower=1)
    if info != 0 or np.square(np.diag(lower)).min(initial=1.0) < SINGULAR:
        return None
    found, info = dpotri(lower, lower=1)
    if info != 0:
        return None
    return np.asarray(np.tril(found) + np.tril(found, -1).T)


def whole_covariance(turns: Turns, places: Sequence[int], shares: dict[int, Floats]) -> Whole | None:
    """Of the pieces at `places` together, in their order; None where they are too many."""
    information = Information(turns, shares)
    p = sum(turns.pieces[place].size for place in places)
    if p * information.k > MOST_ENTRIES or (information.k > 1 and information.visits(places) > MOST_VISITS):
        return None
    k = information.k
    found, untold = inverse(information.of(places))
    if k > 1:  # beside the mean of the classes, as what is common to all says nothing to the rows
        beside = np.kron(np.eye(k) - 1.0 / k, np.eye(p))
        found = beside @ found @ beside
    blocks = found.reshape(k, p, k, p)
    return Whole(np.array([blocks[one, :, one] for one in range(k)]), np.any(untold.reshape(k, p), axis=0))


class Parts:
    """Of models of more coefficients, block by block, for losses of one score.

    Parameters
    ----------
    turns : Turns
    places : sequence of int
        The pieces that are not switched off.
    shares : dict of place -> (q,)
    """

    def __init__(self, turns: Turns, places: Sequence[int], shares: dict[int, Floats]) -> None:
        self._information = Information(turns, shares)
        self._pieces, self._shares = turns.pieces, shares
        ordered = sorted(
            places, key=lambda place: (turns.pieces[place].prior is not Prior.FLAT, turns.pieces[place].size)
        )
        self.beside = _first_of(ordered, turns.pieces, MOST_BESIDE)
        self.others = [place for place in ordered if place not in self.beside]
        self._matrix = self._information.of(self.beside)
        sizes = [turns.pieces[place].size for place in self.beside]
        self._starts = np.cumsum([0, *sizes])
        self._largest = next(
            (place for place in reversed(self.others) if self._pieces[place].prior is Prior.RIDGE), None
        )

    @property
    def is_exact(self) -> bool:
        """Whether nothing is given: one block is beside the others, whose inverse is known entry by entry."""
        if len(self.others) != 1 or self._largest is None:
            return False
        return len(self._matrix) * self._pieces[self._largest].size <= MOST_FACTOR

    def __call__(self) -> tuple[dict[int, TermCovariance], Callable[[dict[int, Floats]], float]]:
        """Covariances by place, and what gives the variance of a sum of coefficients, by its shares (q,) by place."""
        found = {place: self._of_other(place) for place in self.others}
        left, taken, own = self._matrix, None, None
        if self._largest is not None:
            shared = self._shared(self._largest, len(self._matrix))
            own = self._information.diagonal(self._largest)
            taken = _divided(shared, own)
            left = left - taken @ shared.T
        matrix, untold = inverse(left)
        for number, place in enumerate(self.beside):
            at = slice(self._starts[number], self._starts[number + 1])
            found[place] = covariance_of(matrix[at, at][None], untold[at])

        def variance(by: dict[int, Floats]) -> float:
            c = np.zeros(len(matrix))
            for number, place in enumerate(self.beside):
                if place in by:
                    c[self._starts[number] : self._starts[number + 1]] = by[place]
            alone = 0.0
            if self._largest in by and taken is not None and own is not None:
                c -= taken @ by[self._largest]
                alone = float(_divided(np.square(by[self._largest]), own).sum())
            return float(c @ matrix @ c) + alone

        return found, variance

    def _of_other(self, place: int) -> TermCovariance:
        """Of a piece that is not among those beside, given the others that are not."""
        piece, width = self._pieces[place], len(self._matrix)
        while width > 1 and width * piece.size > MOST_FACTOR:
            width = int(self._starts[self._starts < width][-1]) or 1
        shared = self._shared(place, width)
        if piece.prior is Prior.RIDGE:
            own = self._information.diagonal(place)
            follows = _divided(shared, own).T
            alone = np.divide(1.0, own, out=np.full_like(own, np.inf), where=own > 0.0)
            left, _ = inverse(self._matrix[:width, :width] - shared @ follows)
            return TermCovariance(alone[:, None], (follows @ _root(left))[None])
        matrix, untold = inverse(self._information.of([place]))
        follows = matrix @ shared.T
        left, _ = inverse(self._matrix[:width, :width] - shared @ follows)
        return covariance_of((matrix + follows @ left @ follows.T)[None], untold)

    def _shared(self, place: int, width: int) -> Floats:
        """Information between the first pieces beside, of so many entries, and one other (width, q)."""
        beside = [one for one, start in zip(self.beside, self._starts, strict=False) if start < width]
        return np.concatenate([self._information.between(one, place) for one in beside])


def covariance_of(matrices: Floats, untold: NDArray[np.bool_]) -> TermCovariance:
    """From matrices (K, q, q), and which entries (q,) nothing tells."""
    own = np.zeros(matrices.shape[1:2] + matrices.shape[:1])
    own[untold] = np.inf
    return TermCovariance(own, np.array([_root(one) for one in matrices]))


def _root(matrix: Floats) -> Floats:
    """R with RR' = a matrix that has no negative eigenvalues but for rounding."""
    shift = np.diag(matrix).max(initial=0.0)
    for share in ALMOST_ZERO:
        lower, info = dpotrf(matrix + share * shift * np.eye(len(matrix)), lower=1)
        if info == 0:
            return np.asarray(np.tril(lower))
    lengths, axes = np.linalg.eigh(matrix)
    return np.asarray(axes * np.sqrt(np.maximum(lengths, 0.0)))


def _divided(numbers: Floats, by: Floats) -> Floats:
    return np.divide(numbers, by, out=np.zeros_like(numbers), where=by > 0.0)


def _first_of(ordered: Sequence[int], pieces: Sequence[Piece], most: int) -> list[int]:
    found: list[int] = []
    total = 0
    for place in ordered:
        total += pieces[place].size
        if found and total > most and pieces[place].prior is not Prior.FLAT:
            break
        found.append(place)
    return found


MOST_STEPS, MOST_HALVINGS = 8, 10
"""Steps, and halves of one that does not lower the objective."""

RIDGE_OF_DIAGONAL = 1e-10
"""Of the diagonal, added to it: the mean of a block and the intercept need not be identified."""


def finish(turns: Turns, dispersion: float, close: float) -> int:
    """Go on until no coefficient moves by more than `close` standard errors of it: how many steps it took.

    Of a model of one score and some hundred coefficients; others are left as they are.
    """
    places = [place for place in range(len(turns.pieces)) if not turns.silent[place]]
    if turns.loss.code == MULTINOMIAL or sum(turns.pieces[place].size for place in places) > MOST_ENTRIES:
        return 0
    for n_steps in range(MOST_STEPS):
        steps, fall = _steps(turns, places)
        if not fall > 0.5 * close**2 * dispersion or not _take(turns, places, steps):
            return n_steps
    return MOST_STEPS


def _steps(turns: Turns, places: list[int]) -> tuple[list[Floats], float]:
    """Newton's steps of the pieces, and half their decrement; 0 where they cannot be found."""
    slopes, _ = turns.pulls()
    gradients = []
    for place in places:
        piece = turns.pieces[place]
        seen = piece.codes >= 0
        own = (slopes * piece.x if len(piece.x) else slopes)[seen]
        pull = piece.pull_back(turns.theta[place], turns.precision[place])[:, 0]
        gradients.append(np.bincount(piece.codes[seen], own, minlength=piece.size) + pull)
    gradient = np.concatenate(gradients)
    information = Information(turns, {}).of(places)
    size = np.diag(information)
    information[np.diag_indices_from(information)] += np.where(size > 0.0, RIDGE_OF_DIAGONAL * size, 1.0)
    try:
        moves = -cho_solve(cho_factor(information, lower=True, overwrite_a=True), gradient)
    except (LinAlgError, ValueError):
        return [], 0.0
    ends = np.cumsum([len(one) for one in gradients])[:-1]
    return [move[:, None] for move in np.split(moves, ends)], -0.5 * float(gradient @ moves)


def _take(turns: Turns, places: list[int], steps: list[Floats]) -> bool:
    """Take the steps, or a half or quarter of them, that lower the objective; whether there are any."""
    theta, before = list(turns.theta), _objective(turns, places)
    share = 1.0
    for _ in range(MOST_HALVINGS):
        moved = list(theta)
        for place, step in zip(places, steps, strict=True):
            moved[place] = theta[place] + share * step
        turns.put(moved)
        if _objective(turns, places) <= before:
            return True
        share *= 0.5
    turns.put(theta)
    return False


def _objective(turns: Turns, places: list[int]) -> float:
    """The loss of the rows, and the penalties."""
    penalties = (turns.precision[place] * turns.pieces[place].length(turns.theta[place]) for place in places)
    with np.errstate(over="ignore", invalid="ignore"):
        return turns.total * turns.mean_loss() + 0.5 * sum(penalties)
