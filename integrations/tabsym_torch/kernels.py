"""On the CPU a table's step is two compiled loops: count the symbols of a batch, move their rows.

Dozens of small tensor operations would cost more than the rest of a small
network's training step. Formulas are those of `rules`, a number at a time and
in double precision; on other devices, and for tables that are not plain
arrays, `rules` itself is used.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel

SGD, ADAGRAD, RMSPROP, ADAM, NADAM, RADAM, ADAMAX = range(7)


@kernel
def count(symbols, rows, per_row, padding, hits, last, distinct, counts):
    """Distinct symbols but the padding, in order of appearance, and the rows that select each; how many, -1: no symbol.

    symbols (m,), row by row; rows (m,), or empty: `per_row` symbols a row.
    hits and last (K,) are zeros and -1, and are left so; distinct, counts (m,)
    are written.
    """
    n = 0
    known = True
    for i in range(len(symbols)):
        k = symbols[i]
        if k < 0 or k >= len(hits):
            known = False
            break
        row = rows[i] if len(rows) else i // per_row
        if k == padding or last[k] == row:
            continue
        last[k] = row
        if hits[k] == 0:
            distinct[n] = k
            n += 1
        hits[k] += 1
    for i in range(n):
        counts[i] = hits[distinct[i]]
        hits[distinct[i]] = 0
        last[distinct[i]] = -1
    return n if known else -1


@kernel
def add_up(indices, values, symbols, place, sums):
    """Rows of a sparse gradient added up by symbol: sums (n, width), zeros before.

    place (K,) is -1, and is left so.
    """
    for i in range(len(symbols)):
        place[symbols[i]] = i
    for i in range(len(indices)):
        at = place[indices[i]]
        if at >= 0:
            for j in range(values.shape[1]):
                sums[at, j] += values[i, j]
    for i in range(len(symbols)):
        place[symbols[i]] = -1


@inlined
def _sgd(k, j, g, n, param, third, lr, momentum, dampening, nesterov):
    if momentum != 0.0:
        buffer = g if n == 1.0 and dampening != 0.0 else momentum * third[k, j] + (1.0 - dampening) * g
        third[k, j] = buffer
        g = g + momentum * buffer if nesterov != 0.0 else buffer
    param[k, j] -= lr * g


@inlined
def _rmsprop(k, j, g, param, first, second, third, lr, alpha, eps, momentum, centered):
    square = alpha * first[k, j] + (1.0 - alpha) * g * g
    first[k, j] = square
    if centered != 0.0:
        mean = second[k, j] + (1.0 - alpha) * (g - second[k, j])
        second[k, j] = mean
        square -= mean * mean
    ratio = g / (np.sqrt(square) + eps)
    if momentum != 0.0:
        ratio += momentum * third[k, j]
        third[k, j] = ratio
    param[k, j] -= lr * ratio


@kernel
def move(rule, symbols, counts, whole, grad, compact, param, first, second, third, step, product, o):
    """Move the rows of the present symbols by an optimizer's rule.

    symbols, counts (n,); whole: the rows by which a mean loss divided, 1 for
    a sum; grad (K, width), or (n, width) where `compact`; param, first,
    second, third (K, width), step, product (K,): the state, empty where the
    rule has none. o: rate, weight decay, whether it is decoupled, sign of the
    gradient, beta1, beta2, eps, and three numbers of the rule's own.
    """
    lr, decay, decoupled, sign, beta1, beta2, eps, x, y, z = o
    for i in range(len(symbols)):
        k = symbols[i]
        row = i if compact else k
        scale = sign * whole / counts[i]
        n = 0.0
        if len(step):
            n = step[k] + 1.0
            step[k] = n
        correction1 = correction2 = rate = rate2 = 1.0
        if rule in (ADAM, RADAM, ADAMAX):
            correction1, correction2 = 1.0 - beta1**n, 1.0 - beta2**n
        if rule == ADAM:
            correction2 = np.sqrt(correction2)
        if rule == RADAM:
            longest = 2.0 / (1.0 - beta2) - 1.0
            length = longest - 2.0 * n * beta2**n / correction2
            rate = 0.0  # not rectified yet
            if length > 5.0:
                rate = np.sqrt((length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length))
                rate *= np.sqrt(correction2)
        if rule == NADAM:
            correction2 = 1.0 - beta2**n
            mu = beta1 * (1.0 - 0.5 * 0.96 ** (n * x))
            following = beta1 * (1.0 - 0.5 * 0.96 ** ((n + 1.0) * x))
            before = product[k]
            product[k] = mu  # rounded to the column's type, as torch does
            product[k] = before * product[k]
            rate, rate2 = lr * (1.0 - mu) / (1.0 - product[k]), lr * following / (1.0 - product[k] * following)
        if rule == ADAGRAD:
            rate = lr / (1.0 + (n - 1.0) * x)
        for j in range(param.shape[1]):
            g = scale * grad[row, j]
            if decay != 0.0:
                if decoupled != 0.0:
                    param[k, j] *= 1.0 - lr * decay
                else:
                    g += decay * param[k, j]
            if rule == SGD:
                _sgd(k, j, g, n, param, third, lr, x, y, z)
            elif rule == ADAGRAD:
                first[k, j] += g * g
                param[k, j] -= rate * g / (np.sqrt(first[k, j]) + eps)
            elif rule == RMSPROP:
                _rmsprop(k, j, g, param, first, second, third, lr, x, eps, y, z)
            elif rule == ADAMAX:
                first[k, j] += (1.0 - beta1) * (g - first[k, j])
                second[k, j] = max(beta2 * second[k, j], abs(g) + eps)
                param[k, j] -= lr / correction1 * first[k, j] / second[k, j]
            else:
                first[k, j] += (1.0 - beta1) * (g - first[k, j])
                second[k, j] = beta2 * second[k, j] + (1.0 - beta2) * g * g
                mean, square = first[k, j], second[k, j]
                if rule == ADAM:
                    if len(third):
                        third[k, j] = max(third[k, j], square)
                        square = third[k, j]
                    param[k, j] -= lr / correction1 * mean / (np.sqrt(square) / correction2 + eps)
                elif rule == NADAM:
                    param[k, j] -= (rate * g + rate2 * mean) / (np.sqrt(square / correction2) + eps)
                else:
                    adaptive = rate / (np.sqrt(square) + eps) if rate > 0.0 else 1.0
                    param[k, j] -= lr / correction1 * mean * adaptive
