"""Kernels of Newton's method by block coordinate descent, over coefficients: their steps, what is certain of them, what
they have in common.

Shapes, for q coefficients of a block and W models or classes: theta (q, W), or one after the other (q W,).
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, unsigned


@kernel
def step_ridge(gradient, curvature, theta, precision, most, right, steps):
    """Newton's steps (q W,) of coefficients penalized each by itself, none above `most`; theta moves with them.

    `right` (q W,) is set to what pulls at the coefficients, the penalty included. Nothing is summed here, so that
    several coefficients are taken at once.
    """
    for e in range(len(theta)):
        right[e] = -gradient[e] - precision * theta[e]
        both = curvature[e] + precision
        step = right[e] / both
        step = step if both > 0.0 else 0.0
        step = most if step > most else step
        step = -most if step < -most else step
        theta[e] += step
        steps[e] = step


@kernel
def step_pulled(grads, precision, most, rate, theta, curvature, right, steps):
    """As `step_ridge`, from pulls (2 q W,), a slope and a curvature each, which is kept; steps are left times `rate`.

    Of pulls in two columns the compiler would take one coefficient after the other, which takes four times as long.
    """
    for e in range(len(theta)):
        hess = grads[2 * e + 1]
        toward = -grads[2 * e] - precision * theta[e]
        both = hess + precision
        step = toward / both
        step = step if both > 0.0 else 0.0
        step = most if step > most else step
        step = -most if step < -most else step
        theta[e] += step
        curvature[e] = hess
        right[e] = toward
        steps[e] = rate * step


@kernel
def sum_products_of(left, right):
    """Of two arrays (q W,); BLAS would call other threads for long ones, which may be busy."""
    first = second = third = fourth = 0.0  # four sums, as each addition waits for the one before
    for e in range(len(left)):
        first, second, third, fourth = second, third, fourth, first + left[e] * right[e]
    return first + second + third + fourth


@kernel
def spread_ridge(curvature, precision, more, least, variances):
    """Posterior variances (q,) of coefficients penalized each by itself, jointly with one number that all rows have.

    `more`: information on that number from rows without a coefficient; where less than `least` of it is left beside the
    coefficients, it counts as known. Infinite where neither a row nor the penalty says anything; the sum of the others.
    """
    left, size = more, 0.0
    for e in range(len(curvature)):
        both = curvature[e] + precision
        left += curvature[e] * (precision / both if both > 0.0 else 0.0)
        size += curvature[e]
    of_level = 1.0 / left if left > least * size else 0.0
    total = 0.0
    for e in range(len(curvature)):
        both = curvature[e] + precision
        if both > 0.0:
            variances[e] = 1.0 / both + (curvature[e] / both) ** 2 * of_level
            total += variances[e]
        else:
            variances[e] = np.inf
    return total


@kernel
def weigh_ridge(curvature, theta, precision, more, least):
    """The sum of `spread_ridge`'s variances, and the sum of squares; curvature and theta (q, 1)."""
    left, size, alone, followed, length = more, 0.0, 0.0, 0.0, 0.0
    for e in range(len(curvature)):
        hess = curvature[e, 0]
        own = 1.0 / (hess + precision) if hess + precision > 0.0 else 0.0
        left += hess * (precision * own)
        size += hess
        alone += own
        followed += (hess * own) ** 2
        length += theta[e, 0] ** 2
    of_level = 1.0 / left if left > least * size else 0.0
    return alone + followed * of_level, length


@kernel
def move_precisions(indices, weighed, held, dispersion, least, most, precision, moving):
    """Move precisions (P,) at `indices` (a,) to where Fellner and Schall's update has them, by `most` of a logarithm.

    `weighed` (a, 2): effective coefficients, of which fewer than `least` move nothing, and sums of squares; `held`
    (P,): coefficients penalized. `moving` (a,) is set to how far the effective coefficients are moved by that.
    """
    for at in range(len(indices)):
        index, edf = indices[at], weighed[at, 0]
        moving[at] = 0.0
        if edf < least:
            continue
        now = dispersion * edf / max(weighed[at, 1], 1e-300)
        moved = min(max(np.log(max(now / precision[index], 1e-300)), -most), most)
        precision[index] *= np.exp(moved)
        moving[at] = abs(moved) * edf * (1.0 - edf / held[index])


@inlined
def _recenter(above, cells, own, theirs, theta, upper, shared, width):
    shared[:] = 0.0
    for c in range(len(above)):
        p = unsigned(above[c])
        for v in range(width):
            shared[p, v] += theta[c, v]
    gain = 0.0
    for p in range(len(cells)):
        both = own * cells[p] + theirs
        for v in range(width):
            moved = (own * shared[p, v] - theirs * upper[p, v]) / both
            moved = moved if cells[p] > 0.0 else 0.0
            gain += 0.5 * both * moved * moved
            shared[p, v] = moved
            upper[p, v] += moved
    for c in range(len(above)):
        p = unsigned(above[c])
        for v in range(width):
            theta[c, v] -= shared[p, v]
    return gain


@kernel
def recenter(above, cells, own, theirs, theta, upper, shared):
    """Hand what cells (q, W) have in common to the coefficients (p, W) that they lie within, above (q,), as far as it
    pays.

    `cells` (p,): how many lie within each; own and theirs are the precisions; the kernel works in `shared` (p, W).
    What the penalty falls by.
    """
    if theta.shape[1] == 1:  # a width that the compiler knows halves the time
        return _recenter(above, cells, own, theirs, theta, upper, shared, 1)
    if theta.shape[1] == 2:
        return _recenter(above, cells, own, theirs, theta, upper, shared, 2)
    return _recenter(above, cells, own, theirs, theta, upper, shared, theta.shape[1])


@kernel
def recenter_to_intercept(theta, level):
    """Hand the mean of coefficients (q, W) to a number that all rows have, level (1, W)."""
    for v in range(theta.shape[1]):
        first = second = third = fourth = 0.0  # as in `sum_products_of`
        for e in range(theta.shape[0]):
            first, second, third, fourth = second, third, fourth, first + theta[e, v]
        mean = (first + second + third + fourth) / theta.shape[0]
        level[0, v] += mean
        for e in range(theta.shape[0]):
            theta[e, v] -= mean
