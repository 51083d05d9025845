"""Slow, obvious, dense: wide models under quadratic penalties, their posteriors, and the variances of the penalties.

The score is `matrix @ theta`, a column of the matrix for the intercept, for each slope, each flag of missing numbers,
each symbol and each observed combination. Nothing here is clever and nothing is shared with the package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, softmax

INTERCEPT = "(intercept)"


def held_of_missing(n_intervals):
    """Of a walk's penalty, that of the missing values beside it: as far as its intervals lie from their mean."""
    jumps = np.diff(np.eye(n_intervals), axis=0)
    return 1.0 / np.mean(np.diag(np.linalg.pinv(jumps.T @ jumps))) if n_intervals > 1 else 1.0


def walk_beside_missing(size, n_missing):
    """The penalty (q, q): squares of jumps of intervals, and of first entries about the mean of the intervals."""
    penalty, n_intervals = np.zeros((size, size)), size - n_missing
    for e in range(n_missing, size - 1):
        penalty[e : e + 2, e : e + 2] += [[1.0, -1.0], [-1.0, 1.0]]
    for e in range(n_missing):
        away = np.array([0.0] * n_missing + [-1.0 / n_intervals] * n_intervals)
        away[e] = 1.0
        penalty += held_of_missing(n_intervals) * np.outer(away, away)
    return penalty


# -- the design matrix --------------------------------------------------------------------


@dataclass
class Design:
    """A dense matrix (n, p), which columns are whose, and what each column of a block stands for."""

    matrix: np.ndarray
    places: dict[str, np.ndarray]
    keys: dict[str, list]
    flat: list[str]  # blocks that are no symbols' in themselves: intercept, slopes, flags

    @property
    def blocks(self):
        """Names of the blocks of symbols."""
        return [name for name in self.places if name not in self.flat]

    @property
    def flat_places(self):
        return np.concatenate([self.places[name] for name in self.flat])


def build(table, categorical, numeric=(), *, crosses=1, weight=None, cuts=None):
    """The design of a frame whose rows all count: `cuts` (column -> upper bounds) make intervals of numeric columns."""
    n, weight = len(table), np.ones(len(table)) if weight is None else weight
    columns, places, keys, flat = [], {}, {}, []

    def add(name, block, names, is_flat=False):
        places[name] = np.arange(len(columns), len(columns) + len(block))
        keys[name] = names
        columns.extend(block)
        if is_flat:
            flat.append(name)

    values = {name: [plain(value) for value in table[name]] for name in categorical}
    for order in range(1, crosses + 1):
        for names in combinations(categorical, order):
            rows = values[names[0]] if order == 1 else list(zip(*(values[name] for name in names)))
            seen = list(dict.fromkeys(rows))
            add(":".join(names), [np.array([row == key for row in rows], dtype=float) for key in seen], seen)
    for name, bounds in (cuts or {}).items():
        x = table[name].to_numpy(dtype=float)
        place = np.where(np.isnan(x), -1, np.searchsorted(bounds, x, side="left"))
        codes = [*([-1] if (place < 0).any() else []), *range(len(bounds) + 1)]
        add(name, [(place == code).astype(float) for code in codes], codes)
    for name in numeric:
        x = table[name].to_numpy(dtype=float)
        gone = np.isnan(x)
        if gone.any():
            add(f"{name} is missing", [gone.astype(float)], [None], is_flat=True)
        add(name, [np.where(gone, np.average(x[~gone], weights=weight[~gone]), x)], [name], is_flat=True)
    add(INTERCEPT, [np.ones(n)], [INTERCEPT], is_flat=True)
    return Design(np.column_stack(columns), places, keys, flat)


def plain(value):
    """Missing values as None."""
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else value


def ridge(design, precision):
    """The penalty (p, p) with `precision` (block -> number) on the squares of the block's numbers."""
    diagonal = np.zeros(design.matrix.shape[1])
    for name, value in precision.items():
        diagonal[design.places[name]] = value
    return np.diag(diagonal)


def walk(keys):
    """The penalty (q, q) of a random walk over codes of intervals in their order; -1, the missing, is at its mean."""
    order = sorted(range(len(keys)), key=lambda place: keys[place] != -1)  # the missing first
    penalty = np.zeros((len(keys), len(keys)))
    penalty[np.ix_(order, order)] = walk_beside_missing(len(keys), sum(key == -1 for key in keys))
    return penalty


# -- losses -------------------------------------------------------------------------------


def losses(loss, scores, y, parameter=0.0):
    """Value (n,), gradient (n, K) and Hessian (n, K, K) by the scores (n, K) of each row."""
    if loss == "multinomial":
        p, own = softmax(scores, axis=1), np.eye(scores.shape[1])[y.astype(int)]
        top = scores.max(axis=1)
        value = top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - (scores * own).sum(axis=1)
        return value, p - own, p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :]
    value, slope, hessian = _losses_of_one(loss, scores[:, 0], y, parameter)
    return value, slope[:, None], hessian[:, None, None]


def _losses_of_one(loss, s, y, k):
    if loss == "squared_error":
        return 0.5 * (y - s) ** 2, s - y, np.ones(len(y))
    if loss == "huber":
        r = np.abs(y - s)
        return np.where(r <= k, 0.5 * r**2, k * (r - 0.5 * k)), np.clip(s - y, -k, k), (r <= k).astype(float)
    if loss == "logistic":
        return np.logaddexp(0.0, s) - y * s, expit(s) - y, expit(s) * expit(-s)
    if loss == "poisson":
        return np.exp(s) - y * s, np.exp(s) - y, np.exp(s)
    if loss == "gamma":
        return s + y * np.exp(-s), 1.0 - y * np.exp(-s), y * np.exp(-s)
    one, two = np.exp((1 - k) * s), np.exp((2 - k) * s)  # tweedie
    return two / (2 - k) - y * one / (1 - k), two - y * one, (2 - k) * two - (1 - k) * y * one


def invert(matrix):
    """An inverse, of a positive matrix with free directions one that is right wherever it does not matter."""
    size = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    return size[:, None] * np.linalg.pinv(size[:, None] * matrix * size, rcond=1e-13, hermitian=True) * size


# -- the optimum under a penalty, and the posterior about it ------------------------------


@dataclass
class Problem:
    """Minimise sum_i share_i loss(scores_i, y_i) + trace(theta' penalty theta) / 2 over theta (p, K)."""

    matrix: np.ndarray
    y: np.ndarray
    loss: str
    share: np.ndarray
    penalty: np.ndarray
    offset: np.ndarray | None = None
    parameter: float = 0.0
    n_outputs: int = 1
    start: np.ndarray | None = field(default=None, repr=False)

    def scores(self, theta):
        scores = self.matrix @ theta
        if self.offset is None:
            return scores
        return scores + (self.offset if self.offset.ndim == 2 else self.offset[:, None])

    def objective(self, theta):
        value, _, _ = losses(self.loss, self.scores(theta), self.y, self.parameter)
        return self.share @ value + 0.5 * np.sum(theta * (self.penalty @ theta))

    def gradient(self, theta):
        _, slope, _ = losses(self.loss, self.scores(theta), self.y, self.parameter)
        return self.matrix.T @ (self.share[:, None] * slope) + self.penalty @ theta

    def hessian(self, theta):
        """(p K, p K), the outputs of an entry beside each other."""
        _, _, hessian = losses(self.loss, self.scores(theta), self.y, self.parameter)
        p, n_outputs = theta.shape
        out = np.einsum("i,ia,ikl,ib->akbl", self.share, self.matrix, hessian, self.matrix, optimize=True)
        return out.reshape(p * n_outputs, -1) + np.kron(self.penalty, np.eye(n_outputs))

    def best(self):
        """The optimum (p, K): L-BFGS, then Newton steps, halved until they do not climb, to the end of precision."""
        shape = (self.matrix.shape[1], self.n_outputs)
        theta = np.zeros(shape) if self.start is None else self.start
        found = minimize(lambda t: self.objective(t.reshape(shape)), theta.ravel(), method="L-BFGS-B",
                         jac=lambda t: self.gradient(t.reshape(shape)).ravel(),
                         options={"maxiter": 500, "gtol": 1e-5 * self.share.sum()})  # fmt: skip
        theta = found.x.reshape(shape)
        for _ in range(100):
            gradient = self.gradient(theta)
            if np.abs(gradient).max() < 1e-14 * self.share.sum():
                break
            step = -(invert(self.hessian(theta)) @ gradient.ravel())
            size, before = 1.0, self.objective(theta)
            while size > 1e-9 and self.objective(theta + size * step.reshape(shape)) > before + 1e-15 * abs(before):
                size /= 2
            theta = theta + size * step.reshape(shape)
            if np.abs(size * step).max() < 1e-13 * np.abs(theta).max():
                break
        assert np.abs(self.gradient(theta)).max() < 1e-10 * self.share.sum(), "the oracle found no optimum"
        return theta

    def covariance(self, theta, kept=None):
        """Inverse Hessian (p K, p K), of the entries `kept` while all others are held."""
        kept = np.arange(len(theta)) if kept is None else np.asarray(kept)
        where = (kept[:, None] * self.n_outputs + np.arange(self.n_outputs)).ravel()
        return invert(self.hessian(theta)[np.ix_(where, where)])

    def covariance_of_block(self, design, theta, name):
        """The block's own part (q K, q K), jointly with intercept, slopes and flags; other blocks held."""
        kept = np.concatenate([design.places[name], design.flat_places])
        size = len(design.places[name]) * self.n_outputs
        return self.covariance(theta, kept)[:size, :size]


def shown_deviations(problem, design, theta):
    """Deviations (p, K) of all terms together, by Fisher's information; categories about their mean, classes too."""
    k, covariance = problem.n_outputs, expected_covariance(problem, theta)
    beside = np.eye(len(theta))
    for name in design.blocks:
        places = design.places[name]
        beside[np.ix_(places, places)] -= 1.0 / len(places)
    beside = np.kron(beside, np.eye(k) - (1.0 / k if k > 1 else 0.0))
    return np.sqrt(np.maximum(np.diag(beside @ covariance @ beside.T), 0.0)).reshape(len(theta), k)


def expected_covariance(problem, theta):
    """The inverse of the Fisher information with penalties: of gamma and tweedie that of targets at their mean."""
    y = problem.y
    if problem.loss in ("gamma", "tweedie"):
        problem.y = np.exp(problem.scores(theta)[:, 0])
    covariance = problem.covariance(theta)
    problem.y = y
    return covariance


def effective(problem, design, theta, name):
    """Effective degrees of freedom of a block: entries less the trace of covariance times precision.

    Jointly with all others; of several classes given them.
    """
    own = np.ix_(design.places[name], design.places[name])
    precision = np.kron(problem.penalty[own], np.eye(problem.n_outputs))
    if problem.n_outputs == 1:
        return len(precision) - np.sum(expected_covariance(problem, theta)[own] * precision)
    trace = np.sum(problem.covariance_of_block(design, theta, name) * precision)
    return len(precision) - trace


def dispersion(problem, theta, weight, edf):
    """Sum of squared gradients over the sum of curvatures, over 1 - edf / n; weights of mean 1."""
    _, slope, hessian = losses(problem.loss, problem.scores(theta), problem.y, problem.parameter)
    weight = weight / weight.mean()
    return (weight @ slope[:, 0] ** 2) / (weight @ hessian[:, 0, 0]) / (1 - edf / len(weight))


# -- variances ----------------------------------------------------------------------------


def fellner_schall(design, name, y, loss, *, weight=None, parameter=0.0, shape=None, n_outputs=1, passes=5000):
    """The fixed point of the variance of the only block of symbols: (variance, dispersion, theta, problem)."""
    n = len(y)
    weight = np.ones(n) if weight is None else weight / weight.mean()
    own = np.ix_(design.places[name], design.places[name])
    shape = np.eye(len(design.places[name])) if shape is None else shape
    variance, phi, theta = 1.0, 1.0, None
    for _ in range(passes):
        penalty = np.zeros((design.matrix.shape[1],) * 2)
        penalty[own] = shape / variance
        problem = Problem(design.matrix, y, loss, weight / phi, penalty, None, parameter, n_outputs, start=theta)
        theta = problem.best()
        edf = effective(problem, design, theta, name)
        numbers = theta[design.places[name]]
        new = np.sum(numbers * (shape @ numbers)) / edf
        if loss not in ("logistic", "multinomial"):
            phi = dispersion(problem, theta, weight, edf + len(design.flat_places))
        if abs(new / variance - 1) < 1e-11:
            return new, phi, theta, problem
        variance = new
    raise AssertionError("the oracle found no fixed point")


def reml(y, X, Z, variance, phi, weight=None):
    """Restricted log-likelihood of y ~ N(X b, phi / weight + variance Z Z'), up to a constant."""
    noise = np.ones(len(y)) if weight is None else 1.0 / weight
    total = np.diag(phi * noise) + variance * Z @ Z.T
    inverse = np.linalg.inv(total)
    fixed = X.T @ inverse @ X
    rest = y - X @ np.linalg.solve(fixed, X.T @ inverse @ y)
    logs = np.linalg.slogdet(total)[1] + np.linalg.slogdet(fixed)[1]
    return -0.5 * (logs + rest @ inverse @ rest)


def maximise_reml(y, X, Z, weight=None):
    """(variance, phi) of the highest restricted likelihood, by brute force: a search inside a search."""
    scale = y.var()

    def best_phi(log_ratio):
        found = minimize_scalar(lambda t: -reml(y, X, Z, math.exp(log_ratio + t), math.exp(t), weight),
                                bracket=(math.log(scale) - 2, math.log(scale)), tol=1e-13)  # fmt: skip
        return found.fun, found.x

    ratio = minimize_scalar(lambda r: best_phi(r)[0], bracket=(-2.0, 0.0), tol=1e-13).x
    phi = math.exp(best_phi(ratio)[1])
    return math.exp(ratio) * phi, phi


def predict_random_effects(y, X, Z, variance, phi):
    """Best linear unbiased predictions of Z's effects, and the sd of their errors, from the joint normal law."""
    total = np.linalg.inv(phi * np.eye(len(y)) + variance * Z @ Z.T)
    project = total - total @ X @ np.linalg.solve(X.T @ total @ X, X.T @ total)
    errors = variance * np.eye(Z.shape[1]) - variance**2 * Z.T @ project @ Z
    return variance * Z.T @ project @ y, np.sqrt(np.diag(errors))


def laplace_logistic(groups, y, variance):
    """Mode and sd of (an intercept, a number per group) with prior N(0, variance) of the numbers, loop by loop."""
    names = list(dict.fromkeys(groups))
    mode = np.zeros(len(names) + 1)
    for _ in range(200):
        gradient = np.zeros(len(mode))
        inverse = np.zeros((len(mode), len(mode)))
        for group, outcome in zip(groups, y):
            j = 1 + names.index(group)
            p = 1 / (1 + math.exp(-(mode[0] + mode[j])))
            gradient[[0, j]] += outcome - p
            for a in (0, j):
                for b in (0, j):
                    inverse[a, b] += p * (1 - p)
        gradient[1:] -= mode[1:] / variance
        inverse[range(1, len(mode)), range(1, len(mode))] += 1 / variance
        step = np.linalg.solve(inverse, gradient)
        mode = mode + step
        if np.abs(step).max() < 1e-13:
            break
    return names, mode, np.sqrt(np.diag(np.linalg.inv(inverse)))


def probabilities_of_classes(pieces, theta, start):
    """Of the classes (n, K): the softmax of every row's scores, summed piece by piece."""
    found = np.empty(start.shape)
    for i in range(len(start)):
        score = start[i].copy()
        for piece, values in zip(pieces, theta, strict=True):
            if piece.codes[i] >= 0:
                score += values[piece.codes[i]] * (piece.x[i] if len(piece.x) else 1.0)
        odds = np.exp(score - score.max())
        found[i] = odds / odds.sum()
    return found


def slopes_of_classes(piece, p, y, weight):
    """By entry and class (q, K): the slope of the multinomial loss, its bound's curvature, and its own."""
    slope, bound, own = np.zeros((3, piece.size, p.shape[1]))
    for i, code in enumerate(piece.codes):
        if code >= 0:
            share = weight[i] if len(weight) else 1.0
            x = piece.x[i] if len(piece.x) else 1.0
            slope[code] += share * x * (p[i] - (np.arange(p.shape[1]) == y[i]))
            bound[code] += share * x * x * p[i]
            own[code] += share * x * x * p[i] * (1.0 - p[i])
    return slope, bound, own


def matrices_of_classes(piece, factor, p, weight):
    """The curvature matrix of each entry (q, K, K), of rows times `factor` (n,), empty for 1."""
    found = np.zeros((piece.size, p.shape[1], p.shape[1]))
    for i, code in enumerate(piece.codes):
        if code >= 0:
            share = (weight[i] if len(weight) else 1.0) * (factor[i] if len(factor) else 1.0)
            found[code] += share * (np.diag(p[i]) - np.outer(p[i], p[i]))
    return found
