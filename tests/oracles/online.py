"""Slow, obvious oracles: what the kernels must compute, in plain Python."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pandas as pd


def factorize(values):
    """Codes by first appearance; missing (None, NaN) last where there is any."""
    categories = []
    for value in values:
        if not is_missing(value) and value not in categories:
            categories.append(value)
    codes = [len(categories) if is_missing(value) else categories.index(value) for value in values]
    if any(is_missing(value) for value in values):
        categories.append(None)
    return codes, categories


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def loss_value(scores, y, loss, parameter=0.0):
    """The loss of one row, straight from its definition."""
    s = scores[0]
    match loss:
        case "squared_error":
            return 0.5 * (y - s) ** 2
        case "absolute_error":
            return abs(y - s)
        case "huber":
            r = abs(y - s)
            return 0.5 * r * r if r <= parameter else parameter * (r - 0.5 * parameter)
        case "quantile":
            return parameter * (y - s) if y >= s else (1 - parameter) * (s - y)
        case "logistic":
            return math.log(1 + math.exp(-s if y > 0 else s))
        case "hinge":
            return max(0.0, 1 - (1 if y > 0 else -1) * s)
        case "poisson":
            return math.exp(s) - y * s
        case "gamma":
            return s + y / math.exp(s)
        case "tweedie":
            return math.exp((2 - parameter) * s) / (2 - parameter) - y * math.exp((1 - parameter) * s) / (1 - parameter)
    return math.log(sum(math.exp(v) for v in scores)) - scores[int(y)]


def slope(scores, y, loss, parameter=0.0):
    """dloss/dscore by central differences of the definition, one number per output."""
    out = []
    for k in range(len(scores)):
        values = []
        for step in (1e-5, -1e-5, 2e-5, -2e-5):  # fourth order
            moved = list(scores)
            moved[k] += step
            values.append(loss_value(moved, y, loss, parameter))
        out.append((8 * (values[0] - values[1]) - (values[2] - values[3])) / 12e-5)
    return out


def exact_slope(scores, y, loss):
    """dloss/dscore in closed form, for the losses that training is compared with."""
    if loss == "squared_error":
        return [scores[0] - y]
    if loss == "logistic":
        return [1 / (1 + math.exp(-scores[0])) - y]
    total = sum(math.exp(s) for s in scores)
    return [math.exp(s) / total - (k == y) for k, s in enumerate(scores)]


class Rule:
    """Textbook optimizers, one parameter at a time; state by key."""

    def __init__(self, name, rate, *, start=0.0, eps=1e-10, betas=(0.9, 0.999), alpha=0.99, momentum=0.0,
                 nesterov=False, l1=0.0, l2=0.0):  # fmt: skip
        self.name, self.rate, self.eps, self.betas, self.alpha = name, rate, eps, betas, alpha
        self.momentum, self.nesterov, self.l1, self.l2 = momentum, nesterov, l1, l2
        self.total = defaultdict(lambda: start)
        self.first = defaultdict(float)
        self.second = defaultdict(float)
        self.steps = defaultdict(int)

    def rate_now(self, key):
        return self.rate(self.steps[key]) if callable(self.rate) else self.rate

    def step(self, key, theta, gradient, *, penalised=True):
        self.steps[key] += 1
        rate = self.rate_now(key)
        if penalised:
            gradient += self.l2 * theta
        theta = theta - rate * self.direction(key, gradient)
        if penalised and self.l1:
            theta = math.copysign(max(abs(theta) - rate * self.delta_eta(key) * self.l1, 0.0), theta)
        return theta

    def delta_eta(self, key):
        """What a gradient of 1 that lasts moves a parameter in a step, over the rate: l1 is such a gradient."""
        if self.name == "sgd":
            return 1 / (1 - self.momentum)
        if self.name == "adagrad":
            return 1 / (math.sqrt(self.total[key]) + self.eps)
        if self.name == "rmsprop":
            return 1 / (math.sqrt(self.second[key]) + self.eps)
        return 1 / (math.sqrt(self.second[key] / (1 - self.betas[1] ** self.steps[key])) + self.eps)

    def direction(self, key, gradient):
        if self.name == "sgd":
            self.first[key] = self.momentum * self.first[key] + gradient
            if self.nesterov:
                return gradient + self.momentum * self.first[key]
            return self.first[key]
        if self.name == "adagrad":
            self.total[key] += gradient**2
            return gradient / (math.sqrt(self.total[key]) + self.eps)
        if self.name == "rmsprop":
            self.second[key] = self.alpha * self.second[key] + (1 - self.alpha) * gradient**2
            return gradient / (math.sqrt(self.second[key]) + self.eps)
        b1, b2 = self.betas
        self.first[key] = b1 * self.first[key] + (1 - b1) * gradient
        self.second[key] = b2 * self.second[key] + (1 - b2) * gradient**2
        m = self.first[key] / (1 - b1 ** self.steps[key])
        v = self.second[key] / (1 - b2 ** self.steps[key])
        return m / (math.sqrt(v) + self.eps)


def train(codes, x, y, terms, theta, *, loss, rule, gradient, batch, weight=None, offset=None, epochs=1, average=False):
    """Algorithm 1 of the paper (gse), or the ordinary mean, row by row and entry by entry.

    `terms`: (constant, column of x or None, slots); a slot is ("code", column, shift) or ("fixed", entry).
    `theta` (entries, K). Entries of fixed slots are scalars: in every batch, and not penalised.
    """
    theta = np.array(theta, dtype=float)
    n, n_outputs = len(y), theta.shape[1]
    weight = [1.0] * n if weight is None else [w / np.mean(weight) for w in weight]
    fixed = {slot[1] for _, _, slots in terms for slot in slots if slot[0] == "fixed"}
    mean, moves = theta.copy(), defaultdict(int)

    def select(i, slot):
        if slot[0] == "fixed":
            return slot[1]
        return codes[i][slot[1]] + slot[2] if codes[i][slot[1]] >= 0 else None

    def value(i, k, term, without=None):
        constant, column, slots = term
        out = constant * (1.0 if column is None else x[i][column])
        for place, slot in enumerate(slots):
            entry = select(i, slot)
            if entry is None:
                return 0.0
            if place != without:
                out *= theta[entry, k]
        return out

    selected = [{select(i, slot) for _, _, slots in terms for slot in slots} - {None} for i in range(n)]
    for _ in range(epochs):
        for first in range(0, n, batch):
            rows = range(first, min(first + batch, n))
            total = np.zeros_like(theta)
            for i in rows:
                start = 0.0 if offset is None else offset[i]
                scores = [start + sum(value(i, k, term) for term in terms) for k in range(n_outputs)]
                for k, g in enumerate(exact_slope(scores, y[i], loss)):
                    for term in terms:
                        for place, slot in enumerate(term[2]):
                            entry = select(i, slot)
                            if entry is not None:
                                total[entry, k] += weight[i] * g * value(i, k, term, without=place)
            for e in range(len(theta)):
                present = [i for i in rows if e in selected[i]]
                if e in fixed or gradient == "mean":
                    size = len(rows)
                elif present:
                    size = len(present) * np.mean([weight[i] for i in range(n) if e in selected[i]])
                else:
                    continue
                moves[e] += 1
                for k in range(n_outputs):
                    theta[e, k] = rule.step((e, k), theta[e, k], total[e, k] / size, penalised=e not in fixed)
                    mean[e, k] += (theta[e, k] - mean[e, k]) / moves[e]
    return mean if average else theta


def gain_of_cross(left, right, fold, gradients, hessians, penalty):
    """Held-out gain of a cross and its variance by squares of gradients, by groups; of one output, or of classes.

    `gradients` and `hessians` (n, F, K): gradients and curvatures under the models that have not seen each fold.
    """
    gain, variance = 0.0, 0.0
    for v in range(gradients.shape[1]):
        for k in range(gradients.shape[2]):
            rows = pd.DataFrame({"a": left, "b": right, "g": gradients[:, v, k], "h": hessians[:, v, k]})
            seen = rows[fold != v].groupby(["a", "b"])[["g", "h"]].sum()
            steps = (-seen["g"] / (seen["h"] + penalty)).rename("d")
            held = rows[fold == v].join(steps, on=["a", "b"]).fillna({"d": 0.0})
            gain -= (held["g"] * held["d"] + 0.5 * held["h"] * held["d"] ** 2).sum()
            variance += (held["g"] ** 2 * held["d"] ** 2).sum()
    n_outputs = gradients.shape[2]
    return gain, variance * (n_outputs / (n_outputs - 1) if n_outputs > 1 else 1.0)


def steps_of_cross(left, right, fold, gradients, hessians, penalty):
    """The Newton steps (n, F, K) of a cross for all rows: those of model v are made of the other folds."""
    steps = np.zeros(gradients.shape)
    for v in range(gradients.shape[1]):
        for k in range(gradients.shape[2]):
            rows = pd.DataFrame({"a": left, "b": right, "g": gradients[:, v, k], "h": hessians[:, v, k]})
            seen = rows[fold != v].groupby(["a", "b"])[["g", "h"]].sum()
            cells = (-seen["g"] / (seen["h"] + penalty)).rename("d")
            steps[:, v, k] = rows.join(cells, on=["a", "b"])["d"].fillna(0.0)
    return steps
