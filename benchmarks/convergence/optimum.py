"""The optimum of a problem's training objective, computed without tabsym: scipy, one-hot columns, own gradients.

The objective is the mean training loss: half the squared error, the log-loss, or mu - y log(mu). Additive models
are convex: L-BFGS on one-hot sparse columns (each divided by the root of its count, numbers standardised), or
LSQR for squares. Products and dots have analytic gradients too, and several random starts of which the best is
kept: a lower loss may exist, so an excess below 0 is possible there and said as it is. Results are kept in
`benchmarks/results/.cache`.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import lsqr
from scipy.special import expit, logsumexp, softmax, xlogy

if TYPE_CHECKING:
    from problems import Problem

Floats = NDArray[np.float64]
CACHE = Path(__file__).parent.parent / "results" / ".cache"
VERSION = 4
STARTS = {"product": 3, "dot": 4}


@dataclass(frozen=True)
class Optimum:
    """The least mean training loss, and that of the best constant."""

    loss: float
    constant: float
    seconds: float

    def excess(self, loss: float) -> float:
        """How far a loss lies above the optimum, as a share of what the optimum gains over a constant."""
        return (loss - self.loss) / (self.constant - self.loss)


def loss_of(problem: Problem, score: Floats) -> float:
    """Mean training loss of scores (before the link; offset included)."""
    return _mean_loss(problem.loss, score, problem.y)[0]


def loss_of_predictions(problem: Problem, predicted: Floats) -> float:
    """The same from a model's own predictions: values, means, or probabilities (n_rows, n_classes)."""
    y = problem.y
    if problem.loss == "squared_error":
        return float(0.5 * np.mean((y - predicted) ** 2))
    if problem.loss == "poisson":
        return float(np.mean(predicted - xlogy(y, np.maximum(predicted, 1e-300))))
    return float(-np.mean(np.log(np.maximum(predicted[np.arange(len(y)), y], 1e-300))))


def loss_of_constant(problem: Problem) -> float:
    """The least mean training loss of a constant, beside the offset."""
    y, offset = problem.y, problem.offset
    if problem.loss == "squared_error":
        return float(0.5 * np.var(y if offset is None else y - offset))
    if problem.loss == "poisson":
        exposure = np.exp(np.zeros(len(y)) if offset is None else offset)
        return loss_of_predictions(problem, exposure * y.sum() / exposure.sum())
    share = np.bincount(y) / len(y)
    return float(-np.sum(share * np.log(share)))


def optimum(problem: Problem) -> Optimum:
    """From the cache, or computed and put there."""
    key = hashlib.sha256(f"{VERSION} {problem.kind} {problem.formula}".encode())
    for column in problem.X:
        key.update(pd.util.hash_pandas_object(problem.X[column], index=False).to_numpy().tobytes())
    for part in (problem.y, problem.offset):
        key.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    path = CACHE / f"optimum-{problem.kind}-{problem.place}-{len(problem.y)}-{key.hexdigest()[:16]}.json"
    if path.exists():
        return Optimum(**json.loads(path.read_text()))
    start = time.perf_counter()
    solve = {"product": _product_optimum, "dot": _dot_optimum}.get(problem.kind, _additive_optimum)
    found = Optimum(solve(problem), loss_of_constant(problem), time.perf_counter() - start)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(asdict(found)))
    part.replace(path)
    return found


def _mean_loss(loss: str, score: Floats, y: NDArray[Any]) -> tuple[float, Floats]:
    """Mean loss, and its gradient by the scores."""
    n = len(y)
    if loss == "squared_error":
        return float(0.5 * np.mean((score - y) ** 2)), (score - y) / n
    if loss == "logistic":
        return float(np.mean(np.logaddexp(0.0, score) - y * score)), (expit(score) - y) / n
    if loss == "poisson":
        mean = np.exp(np.minimum(score, 700.0))
        return float(np.mean(mean - y * score)), (mean - y) / n
    slope = softmax(score, axis=1)
    slope[np.arange(n), y] -= 1.0
    return float(np.mean(logsumexp(score, axis=1) - score[np.arange(n), y])), slope / n


def descend(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, steps: int, ftol: float = 1e-12
) -> tuple[Floats, float]:
    """L-BFGS until a step gains less than `ftol`: (parameters, loss)."""
    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 30, "ftol": ftol, "gtol": 1e-9}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return found.x, float(found.fun)


def one_hot(problem: Problem) -> sp.csr_matrix:
    """One column of ones, one for each symbol and each number, all of length sqrt(n_rows)."""
    n_rows = len(problem.X)
    parts = [sp.csr_matrix(np.ones((n_rows, 1)))]
    for name, column in problem.X.items():
        if name in problem.categories:
            codes = pd.factorize(column)[0]
            entry = np.sqrt(n_rows / np.bincount(codes))[codes]
            parts.append(sp.csr_matrix((entry, codes, np.arange(n_rows + 1))))
        else:
            values = column.to_numpy()
            parts.append(sp.csr_matrix(((values - values.mean()) / values.std())[:, None]))
    return sp.hstack(parts).tocsr()


def least_squares(problem: Problem) -> Floats:
    """Predictions (n_rows,) of the additive model by LSQR; offset included."""
    offset = np.zeros(len(problem.y)) if problem.offset is None else problem.offset
    X, y = one_hot(problem), problem.y - offset
    centre, unit = y.mean(), y.std()
    weights = lsqr(X, (y - centre) / unit, atol=1e-12, btol=1e-12, iter_lim=5_000)[0]
    return X @ weights * unit + centre + offset


def _additive_optimum(problem: Problem) -> float:
    if problem.loss == "squared_error":
        return loss_of(problem, least_squares(problem))
    X, y = one_hot(problem), problem.y
    offset = 0.0 if problem.offset is None else problem.offset
    shape = (X.shape[1], 1 + int(y.max())) if problem.loss == "multinomial" else (X.shape[1],)
    transposed = X.T.tocsr()

    def objective(weights: Floats) -> tuple[float, Floats]:
        loss, slope = _mean_loss(problem.loss, X @ weights.reshape(shape) + offset, y)
        return loss, np.ravel(transposed @ slope)

    start = np.zeros(shape)
    if problem.loss == "poisson":
        start[0] = np.log(y.sum() / np.exp(offset).sum())
    return descend(objective, start.ravel(), 3_000)[1]


def product_fit(
    codes: tuple[NDArray[np.int64], NDArray[np.int64]], x: Floats, y: Floats, start: Floats, steps: int = 2_000
) -> tuple[Floats, Floats, float, float]:
    """`g[a]*m[b]*x + c[1]` by L-BFGS on half the mean squared error: (g, m, c, loss), from (g, m, c) in a row."""
    (a, b), n_rows = codes, len(y)
    n_a, n_b = int(a.max()) + 1, int(b.max()) + 1

    # rare symbols have flat directions: every entry in units in which its curvature is about the same
    unit = np.concatenate([np.sqrt(n_rows / np.maximum(np.bincount(codes), 1)) for codes in (a, b)] + [np.ones(1)])

    def objective(scaled: Floats) -> tuple[float, Floats]:
        weights = scaled * unit
        g, m = weights[:n_a][a], weights[n_a:-1][b]
        residual = g * m * x + weights[-1] - y
        slope = residual * x / n_rows
        by_a, by_b = np.bincount(a, slope * m, n_a), np.bincount(b, slope * g, n_b)
        return 0.5 * float(np.mean(residual**2)), np.concatenate([by_a, by_b, [residual.mean()]]) * unit

    weights, loss = descend(objective, start / unit, steps, 1e-10)
    weights = weights * unit
    return weights[:n_a], weights[n_a:-1], float(weights[-1]), loss


def _product_optimum(problem: Problem) -> float:
    rng = np.random.default_rng(0)
    a, b = (pd.factorize(problem.X[name])[0] for name in ("a", "b"))
    x, centre, unit = problem.X["x"].to_numpy(), problem.y.mean(), problem.y.std()
    x, y = x / np.sqrt(np.mean(x**2)), (problem.y - centre) / unit
    losses = []
    for _ in range(STARTS["product"]):
        g, m = rng.normal(1.0, 0.3, a.max() + 1), rng.normal(1.0, 0.3, b.max() + 1)
        losses.append(product_fit((a, b), x, y, np.concatenate([g, m, [0.0]]))[-1])
    return min(losses) * unit**2


def _dot_optimum(problem: Problem, rank: int = 4) -> float:
    rng = np.random.default_rng(0)
    a, b = (pd.factorize(problem.X[name])[0] for name in ("user", "item"))
    n_a, n_b, n_rows = int(a.max()) + 1, int(b.max()) + 1, len(a)
    unit = problem.y.std()
    y = (problem.y - problem.y.mean()) / unit
    rows = np.arange(n_rows + 1)
    pick_a, pick_b = (sp.csr_matrix((np.ones(n_rows), codes, rows)) for codes in (a, b))
    back_a, back_b = pick_a.T.tocsr(), pick_b.T.tocsr()

    counts = [np.repeat(np.maximum(np.bincount(codes), 1), rank) for codes in (a, b)]
    scale = np.sqrt(n_rows / np.concatenate([*counts, [n_rows]]))  # as in `product_fit`

    def objective(scaled: Floats) -> tuple[float, Floats]:
        weights = scaled * scale
        u, v = weights[: n_a * rank].reshape(-1, rank)[a], weights[n_a * rank : -1].reshape(-1, rank)[b]
        residual = (u * v).sum(axis=1) + weights[-1] - y
        slope = (residual / n_rows)[:, None]
        parts = [np.ravel(back_a @ (slope * v)), np.ravel(back_b @ (slope * u)), [residual.mean()]]
        return 0.5 * float(np.mean(residual**2)), np.concatenate(parts) * scale

    starts = [np.append(rng.normal(0, 0.5, (n_a + n_b) * rank), 0.0) / scale for _ in range(STARTS["dot"])]
    first = sorted((descend(objective, start, 100, 1e-6) for start in starts), key=lambda found: found[1])
    return min(descend(objective, weights, 1_000, 1e-8)[1] for weights, _ in first[:2]) * unit**2
