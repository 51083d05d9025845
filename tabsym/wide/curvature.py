"""Kernels of second order: gradients and curvatures of rows, and the Newton steps they make."""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, unsigned
from tabsym.wide.slopes import GAMMA, HALVES, POISSON, SQUARED, loss_of_one, pulls_there, slopes_of_many, stepped

LEAST = 1e-6
"""Curvatures are no smaller: a row whose class is certain still counts a little."""


@kernel
def pulls_of_rows(scores, y, weight, loss, parameter, slope, pulls):
    """Gradients and curvatures, times the row's weight, of scores (K, n, F) into pulls (K, n, 2 F): 2 v and 2 v + 1.

    The scores are those of F models. Softmax outputs move together, which twice the diagonal
    of their curvature bounds. `slope` (K,) is what the kernel works in.
    """
    for i in range(len(y)):
        share = weight[i] if len(weight) else 1.0
        for v in range(scores.shape[2]):
            if len(scores) == 1:
                score = scores[0, i, v]
                _, slope_here, bend = loss_of_one(score, y[i], loss, parameter)
                pulls[0, i, 2 * v] = share * slope_here
                pulls[0, i, 2 * v + 1] = share * max(bend, LEAST)
            else:
                own = int(y[i])
                for k in range(len(scores)):
                    slope[k] = scores[k, i, v]
                slopes_of_many(slope, own)
                for k in range(len(scores)):
                    p = slope[k] + 1.0 if k == own else slope[k]
                    pulls[k, i, 2 * v] = share * slope[k]
                    pulls[k, i, 2 * v + 1] = share * max(2.0 * p * (1.0 - p), LEAST)


@inlined
def _logistic_pulls(codes, growth, target, weight, n_folds, odds, pulls):
    one = np.float32(1.0)
    for i in range(len(target)):
        if codes[i] >= 0:
            s = unsigned(codes[i])
            share = np.float32(weight[i]) if len(weight) else one
            for v in range(n_folds):
                odds[i, v] *= growth[s, v]
                p = one / (one + odds[i, v])
                pulls[i, 2 * v] = share * (p - target[i])
                pulls[i, 2 * v + 1] = share * max(p * (one - p), np.float32(LEAST))


@kernel
def logistic_pulls(codes, growth, target, weight, odds, pulls):
    """Multiply exp(-score), odds (n, F), by the growth (symbols, F), exp(-step), and find the pulls (n, 2 F) there.

    All in single precision; target (n,) is 1 or 0.
    The same as adding the steps to the scores and then `pulls_of_rows` of the logistic loss, without an exp per row.
    """
    if odds.shape[1] == 2:  # so that loops over folds are unrolled
        _logistic_pulls(codes, growth, target, weight, 2, odds, pulls)
    else:
        _logistic_pulls(codes, growth, target, weight, odds.shape[1], odds, pulls)


@inlined
def _kept_pulls(codes, growth, y, weight, loss, n_folds, values, pulls):
    for i in range(len(y)):
        if codes[i] >= 0:
            s = unsigned(codes[i])
            share = weight[i] if len(weight) else 1.0
            for v in range(n_folds):
                value = stepped(values[i, v], growth[s, v], loss)
                values[i, v] = value
                slope, bend = pulls_there(value, y[i], loss, 0.0, LEAST)
                pulls[i, 2 * v] = share * slope
                pulls[i, 2 * v + 1] = share * bend


@inlined
def _kept_pulls_of(codes, growth, y, weight, loss, values, pulls):
    if values.shape[1] == 2:  # so that loops over folds are unrolled
        _kept_pulls(codes, growth, y, weight, loss, 2, values, pulls)
    else:
        _kept_pulls(codes, growth, y, weight, loss, values.shape[1], values, pulls)


@kernel
def kept_pulls(codes, growth, y, weight, loss, values, pulls):
    """Move rows, kept at values (n, F), by the growth (symbols, F) of their symbols, and find the pulls (n, 2 F) there.

    For squared loss, whose growth is the step, poisson, gamma and HALVES, whose growth is the exp of it times a rate
    (see `slopes.stepped`): the same as adding steps to the scores and then `pulls_of_rows`.
    """
    if loss == SQUARED:  # a loop each: which loss it is, is then known in it
        _kept_pulls_of(codes, growth, y, weight, SQUARED, values, pulls)
    elif loss == POISSON:
        _kept_pulls_of(codes, growth, y, weight, POISSON, values, pulls)
    elif loss == GAMMA:
        _kept_pulls_of(codes, growth, y, weight, GAMMA, values, pulls)
    else:
        _kept_pulls_of(codes, growth, y, weight, HALVES, values, pulls)


@kernel
def softmax_pulls(codes, growth, y, weight, values, pulls):
    """Multiply probabilities (K, n, F) by the growth (K, symbols, F), exp(step), and find the pulls (K, n, 2 F) there.

    The same as adding the steps to the scores and then `pulls_of_rows`, without an exp per row and class.
    """
    for i in range(len(y)):
        if codes[i] >= 0:
            s, own = unsigned(codes[i]), int(y[i])
            share = weight[i] if len(weight) else 1.0
            for v in range(values.shape[2]):
                total = 0.0
                for k in range(len(values)):
                    values[k, i, v] *= growth[k, s, v]
                    total += values[k, i, v]
                scale = 1.0 / total
                for k in range(len(values)):
                    p = values[k, i, v] * scale
                    values[k, i, v] = p
                    pulls[k, i, 2 * v] = share * (p - 1.0 if k == own else p)
                    pulls[k, i, 2 * v + 1] = share * max(2.0 * p * (1.0 - p), LEAST)


@inlined
def _newton_steps(codes, x, fold, n_folds, pulls, penalty, sums, steps):
    for i in range(len(codes)):
        if codes[i] >= 0:
            s = unsigned(codes[i])
            factor = x[i] if len(x) else 1.0
            for k in range(1, n_folds):  # the other folds
                place = unsigned(2 * ((fold[i] + k) % n_folds))
                sums[s, place] += factor * pulls[i, place]
                sums[s, place + unsigned(1)] += factor * factor * pulls[i, place + unsigned(1)]
    for s in range(len(steps)):
        for v in range(n_folds):
            steps[s, v] = -sums[s, 2 * v] / (sums[s, 2 * v + 1] + penalty)
            sums[s, 2 * v] = 0.0
            sums[s, 2 * v + 1] = 0.0


@kernel
def newton_steps(codes, x, fold, n_folds, pulls, penalty, sums, steps):
    """A Newton step for each symbol and fold's model, made of the rows of the other folds, into steps (symbols, F).

    The step is the same for all rows of a symbol, or times x (n,) of the row where `x` is not empty.
    `pulls` (n, 2 F); `sums` (symbols, 2 F) is zeros between calls.
    """
    if n_folds == 2:  # so that loops over folds are unrolled
        _newton_steps(codes, x, fold, 2, pulls, penalty, sums, steps)
    elif n_folds == 4:
        _newton_steps(codes, x, fold, 4, pulls, penalty, sums, steps)
    else:
        _newton_steps(codes, x, fold, n_folds, pulls, penalty, sums, steps)


@kernel
def add_steps(codes, x, steps, scores):
    """Add the steps (symbols, F) of rows to the scores (n, F); rows whose code is below 0 are left alone."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            factor = x[i] if len(x) else 1.0
            for v in range(scores.shape[1]):
                scores[i, v] += factor * steps[codes[i], v]
