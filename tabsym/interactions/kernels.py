"""Kernels of the search for interactions: gradients and Hessians of rows, their sums, and held-out gains."""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, kernels_by, unsigned
from tabsym.losses.loss import gradients_at, loss_of_one, slopes_of_many, stepped

MIN_HESSIAN = 1e-6
"""Lower bound of Hessians: a row whose class is nearly certain still counts a little."""


@kernel
def row_gradients(scores, y, weight, loss, parameter, slope, grads):
    """Gradients and Hessians, times the row's weight, at scores (K, n, F) into grads (K, n, 2 F): 2 v and 2 v + 1.

    The scores are those of F models. Softmax outputs are updated together, for which twice the diagonal of their
    Hessian is an upper bound. `slope` (K,) is work space.
    """
    for i in range(len(y)):
        row_weight = weight[i] if len(weight) else 1.0
        for v in range(scores.shape[2]):
            if len(scores) == 1:
                score = scores[0, i, v]
                _, slope_here, hess = loss_of_one(score, y[i], loss, parameter)
                grads[0, i, 2 * v] = row_weight * slope_here
                grads[0, i, 2 * v + 1] = row_weight * max(hess, MIN_HESSIAN)
            else:
                observed = int(y[i])
                for k in range(len(scores)):
                    slope[k] = scores[k, i, v]
                slopes_of_many(slope, observed)
                for k in range(len(scores)):
                    p = slope[k] + 1.0 if k == observed else slope[k]
                    grads[k, i, 2 * v] = row_weight * slope[k]
                    grads[k, i, 2 * v + 1] = row_weight * max(2.0 * p * (1.0 - p), MIN_HESSIAN)


@kernels_by
def logistic_gradients(n_folds):
    """Multiply odds (n, F), exp(-score), by `growth` (categories, F), exp(-step); derivatives (n, 2 F) there.

    All in single precision; target (n,) is 1 or 0. The same as adding the steps to the scores and then `row_gradients`
    of the logistic loss, without an exp per row.
    """

    def logistic_gradients(codes, growth, target, weight, odds, grads):
        one = np.float32(1.0)
        for i in range(len(target)):
            if codes[i] >= 0:
                s = unsigned(codes[i])
                row_weight = np.float32(weight[i]) if len(weight) else one
                for v in range(n_folds):
                    odds[i, v] *= growth[s, v]
                    p = one / (one + odds[i, v])
                    grads[i, 2 * v] = row_weight * (p - target[i])
                    grads[i, 2 * v + 1] = row_weight * max(p * (one - p), np.float32(MIN_HESSIAN))

    return logistic_gradients


@kernels_by
def stored_gradients(loss, n_folds):
    """Update stored values (n, F) by `growth` (categories, F); gradients and Hessians (n, 2 F) there.

    For squared loss, whose growth is the step, poisson, gamma and TWEEDIE_1_5, whose growth is the exp of it times a
    constant (see `losses.loss.stepped`): the same as adding steps to the scores and then `row_gradients`.
    """

    def stored_gradients(codes, growth, y, weight, values, grads):
        for i in range(len(y)):
            if codes[i] >= 0:
                s = unsigned(codes[i])
                row_weight = weight[i] if len(weight) else 1.0
                for v in range(n_folds):
                    value = stepped(values[i, v], growth[s, v], loss)
                    values[i, v] = value
                    slope, hess = gradients_at(value, y[i], loss, 0.0, MIN_HESSIAN)
                    grads[i, 2 * v] = row_weight * slope
                    grads[i, 2 * v + 1] = row_weight * hess

    return stored_gradients


@kernels_by
def softmax_gradients(n_folds):
    """Multiply probabilities (K, n, F) by `growth` (K, categories, F), exp(step); derivatives (K, n, 2 F) there.

    The same as adding the steps to the scores and then `row_gradients`, without an exp per row and class. Rows are
    taken in batches, class by class, so that memory is read in order; `totals` (rows of a batch, F) is work space.
    """

    def softmax_gradients(codes, growth, y, weight, values, totals, grads):
        n = values.shape[1]
        for first in range(0, n, len(totals)):
            last = min(first + len(totals), n)
            totals[:] = 0.0
            for k in range(len(values)):
                for i in range(first, last):
                    if codes[i] >= 0:
                        s = unsigned(codes[i])
                        for v in range(n_folds):
                            values[k, i, v] *= growth[k, s, v]
                            totals[i - first, v] += values[k, i, v]
            for i in range(last - first):
                for v in range(n_folds):
                    totals[i, v] = 1.0 / totals[i, v]
            for k in range(len(values)):
                for i in range(first, last):
                    if codes[i] >= 0:
                        row_weight, target = weight[i] if len(weight) else 1.0, 1.0 if y[i] == k else 0.0
                        for v in range(n_folds):
                            p = values[k, i, v] * totals[i - first, v]
                            values[k, i, v] = p
                            grads[k, i, 2 * v] = row_weight * (p - target)
                            grads[k, i, 2 * v + 1] = row_weight * max(2.0 * p * (1.0 - p), MIN_HESSIAN)

    return softmax_gradients


@kernels_by
def newton_steps(n_folds):
    """Newton step of each category and fold's model, from the rows of the other folds, into steps (categories, F).

    The step is the same for all rows of a category, or times x (n,) of the row where `x` is not empty. `grads` (n, 2
    F); `sums` (categories, 2 F) is zeros between calls. The number of folds is known when it is compiled, here and
    below, so that loops over folds are unrolled.
    """

    def newton_steps(codes, x, fold, grads, penalty, sums, steps):
        for i in range(len(codes)):
            if codes[i] >= 0:
                s = unsigned(codes[i])
                factor = x[i] if len(x) else 1.0
                for k in range(1, n_folds):  # the other folds
                    index = unsigned(2 * ((fold[i] + k) % n_folds))
                    sums[s, index] += factor * grads[i, index]
                    sums[s, index + unsigned(1)] += factor * factor * grads[i, index + unsigned(1)]
        for s in range(len(steps)):
            for v in range(n_folds):
                steps[s, v] = -sums[s, 2 * v] / (sums[s, 2 * v + 1] + penalty)
                sums[s, 2 * v] = 0.0
                sums[s, 2 * v + 1] = 0.0

    return newton_steps


@kernel
def add_steps(codes, x, steps, scores):
    """Add the steps (categories, F) of rows to the scores (n, F); rows whose code is below 0 are unchanged."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            factor = x[i] if len(x) else 1.0
            for v in range(scores.shape[1]):
                scores[i, v] += factor * steps[codes[i], v]


@kernel
def sort_rows(codes, starts, order):
    """Counting sort of the rows by code; `starts` (categories + 1,) are zeros before. Returns the length of `order`."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            starts[codes[i]] += 1
    total = 0
    for s in range(len(starts)):
        total += starts[s]
        starts[s] = total  # the end of s, which the next loop brings to its start
    for i in range(len(codes) - 1, -1, -1):
        if codes[i] >= 0:
            starts[codes[i]] -= 1
            order[starts[codes[i]]] = i
    return total


@inlined
def _number(category, before, seen, n_cells):
    """The number of a category's level, from 1, and of levels; `before`: that before the current group of rows."""
    is_new = seen[category] <= before  # numbered for an earlier group, or never
    n_cells += is_new
    seen[category] = n_cells if is_new else seen[category]  # branchless: the branch would be unpredictable
    return seen[category], n_cells


@inlined
def _add_gradients(grads, row, row_fold, times, sums, cell, n_folds):
    """Add the gradients and Hessians of a row, of two models at once: a vector instruction for four.

    Then the square of its held-out gradient, of each of its copies.
    """
    first = unsigned(2 * n_folds) * row_fold
    for v in range(0, n_folds - 1, 2):
        k = unsigned(2 * v)
        a, b = grads[row, k], grads[row, k + unsigned(1)]
        c, d = grads[row, k + unsigned(2)], grads[row, k + unsigned(3)]
        at = first + k
        a, b = sums[cell, at] + a, sums[cell, at + unsigned(1)] + b
        c, d = sums[cell, at + unsigned(2)] + c, sums[cell, at + unsigned(3)] + d
        sums[cell, at], sums[cell, at + unsigned(1)] = a, b
        sums[cell, at + unsigned(2)], sums[cell, at + unsigned(3)] = c, d
    if n_folds % 2 == 1:
        k = unsigned(2 * n_folds - 2)
        sums[cell, first + k] += grads[row, k]
        sums[cell, first + k + unsigned(1)] += grads[row, k + unsigned(1)]
    held_out = np.float64(grads[row, unsigned(2) * row_fold])
    square = held_out * held_out
    sums[cell, unsigned(2 * n_folds * n_folds) + row_fold] += square / times[row] if len(times) else square


@kernels_by
def sum_cells(n_folds):
    """Number the levels of an interaction into codes (n,), -1 before, or empty; sum derivatives; the number of levels.

    On a sample, every `by_category`-th category that rows are sorted by; 1 for all. `sums` (levels or more, 2 F^2 + F),
    zeros before: gradients and Hessians of rows of fold u under the model trained without fold v at 2 (u F + v), then
    squares of held-out gradients. `times` (n,) or empty: how many copies each row has.
    """

    def sum_cells(starts, order, other, fold, times, grads, by_category, seen, sums, codes):
        n_cells, s = 0, 0
        while s < len(starts) - 1:
            before = n_cells
            for at in range(starts[s], starts[s + 1]):
                i = unsigned(order[at])
                if other[i] >= 0:
                    number, n_cells = _number(unsigned(other[i]), before, seen, n_cells)
                    if len(codes):
                        codes[i] = np.int32(number - 1)
                    _add_gradients(grads, i, unsigned(fold[i]), times, sums, unsigned(number - 1), n_folds)
            s += by_category
        for category in range(len(seen)):
            seen[category] = 0
        return n_cells

    return sum_cells


@kernels_by
def add_cells(n_folds):
    """Add derivatives to the sums by levels that `sum_cells` has numbered, for another class."""

    def add_cells(codes, fold, times, grads, sums):
        for i in range(len(codes)):
            if codes[i] >= 0:
                _add_gradients(grads, unsigned(i), unsigned(fold[i]), times, sums, unsigned(codes[i]), n_folds)

    return add_cells


@kernels_by
def gain_of_cells(n_folds):
    """The gain of a penalized Newton step per level, from the other folds, on the rows of each fold.

    Returns the sum over rows, and its variance given the steps, by the squares of gradients: whatever the variance of a
    row is (White 1980). `sums`: as `sum_cells` leaves them, reset to zeros; the steps are written into `steps` (levels,
    F). They are 0 where the other folds have no rows.
    """

    def gain_of_cells(sums, penalty, steps):
        gain, variance = 0.0, 0.0
        for cell in range(len(steps)):
            for v in range(n_folds):
                grad, hess = 0.0, 0.0
                for u in range(n_folds):
                    if u != v:
                        grad += sums[cell, 2 * (u * n_folds + v)]
                        hess += sums[cell, 2 * (u * n_folds + v) + 1]
                step = -grad / (hess + penalty)
                held_out = 2 * (v * n_folds + v)
                gain -= step * (sums[cell, held_out] + 0.5 * step * sums[cell, held_out + 1])
                variance += step * step * sums[cell, 2 * n_folds * n_folds + v]
                steps[cell, v] = step
            for k in range(2 * n_folds * n_folds + n_folds):
                sums[cell, k] = 0.0
        return gain, variance

    return gain_of_cells


@kernel
def gains_of_rows(rows, codes, fold, grads, steps, gains):
    """Add to gains (r,) what the steps (levels, F) of an interaction add to those of `rows` (r,), for one class.

    `codes` (n,) are levels, -1 for none.
    """
    for at in range(len(rows)):
        i = unsigned(rows[at])
        if codes[i] >= 0:
            v = unsigned(fold[i])
            step, k = steps[unsigned(codes[i]), v], unsigned(2) * v
            gains[at] -= step * (grads[i, k] + 0.5 * step * grads[i, k + unsigned(1)])


@kernel
def sum_gains(rows, codes, gains, sums):
    """Add the gains (r,) of `rows` (r,) to the sums (categories,) by the code of each, -1 for none."""
    for at in range(len(rows)):
        code = codes[unsigned(rows[at])]
        if code >= 0:
            sums[unsigned(code)] += gains[at]


@kernel
def is_function(starts, order, other, copies, max_exceptions, seen):
    """Whether the other column is a function of the one that rows are sorted by, but for `max_exceptions` rows.

    Exceptions are the rows outside the most frequent pair of their category; `copies` (n,) or empty: of each row.
    """
    n_exceptions = 0
    for s in range(len(starts) - 1):
        largest, n_rows = 0, 0
        for at in range(starts[s], starts[s + 1]):
            category = other[order[at]]
            if category >= 0:
                times = copies[order[at]] if len(copies) else 1
                seen[category] += times
                n_rows += times
                largest = seen[category] if seen[category] > largest else largest
        for at in range(starts[s], starts[s + 1]):
            category = other[order[at]]
            if category >= 0:
                seen[category] = 0
        n_exceptions += n_rows - largest
        if n_exceptions > max_exceptions:
            return False
    return True
