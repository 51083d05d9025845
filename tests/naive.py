"""Slow, obvious oracles: what the kernels must compute, in plain Python."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np


def factorize(values):
    """Codes by first appearance; missing (None, NaN) last where there is any."""
    symbols = []
    for value in values:
        if not is_missing(value) and value not in symbols:
            symbols.append(value)
    codes = [len(symbols) if is_missing(value) else symbols.index(value) for value in values]
    if any(is_missing(value) for value in values):
        symbols.append(None)
    return codes, symbols


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def slope(scores, y, loss):
    """dloss/dscore, one number per output."""
    if loss == "squared":
        return [scores[0] - y]
    if loss == "logistic":
        return [1 / (1 + math.exp(-scores[0])) - y]
    total = sum(math.exp(s) for s in scores)
    return [math.exp(s) / total - (k == y) for k, s in enumerate(scores)]


class Rule:
    """Textbook optimizers, one parameter at a time."""

    def __init__(self, name, rate, start=0.0, eps=1e-10, betas=(0.9, 0.999)):
        self.name, self.rate, self.eps, self.betas = name, rate, eps, betas
        self.total = defaultdict(lambda: start)
        self.first = defaultdict(float)
        self.second = defaultdict(float)
        self.steps = defaultdict(int)

    def step(self, key, theta, gradient):
        if self.name == "sgd":
            return theta - self.rate * gradient
        if self.name == "adagrad":
            self.total[key] += gradient**2
            return theta - self.rate * gradient / (math.sqrt(self.total[key]) + self.eps)
        b1, b2 = self.betas
        self.steps[key] += 1
        self.first[key] = b1 * self.first[key] + (1 - b1) * gradient
        self.second[key] = b2 * self.second[key] + (1 - b2) * gradient**2
        m = self.first[key] / (1 - b1 ** self.steps[key])
        v = self.second[key] / (1 - b2 ** self.steps[key])
        return theta - self.rate * m / (math.sqrt(v) + self.eps)


def train(  # noqa: PLR0912
    codes, x, y, *, n_entries, n_outputs, loss, rule, gradient, batch, l2=0.0, weight=None, epochs=1, start=None
):
    """Algorithm 1 of the paper (gse), or the ordinary mean, row by row and entry by entry.

    Entries are (entry, output); numeric column j is entry n_entries + j, the intercept comes last.
    """
    n, d = len(y), len(x[0]) if len(x) else 0
    weight = [1.0] * n if weight is None else [w / np.mean(weight) for w in weight]
    theta = np.zeros((n_entries + d + 1, n_outputs)) if start is None else np.array(start, dtype=float)
    rows_of = defaultdict(list)
    for i in range(n):
        for entry in codes[i]:
            if entry >= 0:
                rows_of[entry].append(i)
    for _ in range(epochs):
        for first in range(0, n, batch):
            rows = range(first, min(first + batch, n))
            total, count = defaultdict(float), defaultdict(int)
            for i in rows:
                scores = [
                    theta[-1, k]
                    + sum(theta[e, k] for e in codes[i] if e >= 0)
                    + sum(x[i][j] * theta[n_entries + j, k] for j in range(d))
                    for k in range(n_outputs)
                ]
                for k, g in enumerate(slope(scores, y[i], loss)):
                    for e in codes[i]:
                        if e >= 0:
                            total[e, k] += weight[i] * g
                    for j in range(d):
                        total[n_entries + j, k] += weight[i] * g * x[i][j]
                    total[n_entries + d, k] += weight[i] * g
                for e in codes[i]:
                    if e >= 0:
                        count[e] += 1
            for e in range(n_entries + d + 1):
                if e >= n_entries or gradient == "mean":
                    size = len(rows)
                elif count[e]:
                    size = count[e] * np.mean([weight[i] for i in rows_of[e]])
                else:
                    continue
                for k in range(n_outputs):
                    g = total[e, k] / size + (l2 * theta[e, k] if e < n_entries + d else 0.0)
                    theta[e, k] = rule.step((e, k), theta[e, k], g)
    return theta
