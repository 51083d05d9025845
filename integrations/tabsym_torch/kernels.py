"""On the CPU a table's step is two compiled loops: count the categories of a batch, move their rows.

Dozens of small tensor operations would cost more than the rest of a small
network's training step. Formulas are those of `rules`, a number at a time and
in double precision; on other devices, and for tables that are not plain
arrays, `rules` itself is used.

All tables are counted in one call, and moved in another: their memory is
handed over as addresses, of arrays without gaps, a line of integers for each.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, matrix_at

SGD, ADAGRAD, RMSPROP, ADAM, NADAM, RADAM, ADAMAX = range(7)
PLAN = SYMBOLS, N_SYMBOLS, ROWS, N_ROWS, PADDING, SIZE, WIDTH, PARAMETER, GRADIENT, COMPACT, WHOLE, NUMBER = range(12)
"""What a line of integers says of a table: where the categories that rows select lie, row by row, and how many;
where the rows of these lie, or 0: as many for each row; how many rows; the padding or -1; how many categories and
numbers of each the table has; where it and its gradient lie; whether that holds the present categories' rows only; the
rows by
which a mean loss divided, 1 for a sum; and a number for tables that have options and type in common."""
INTEGERS = np.empty(0, np.int64)
DOUBLES = np.empty(0)


@kernel
def count(plan, hits, last, distinct, counts, found):
    """Of each table the distinct categories but the padding, by appearance, and the rows that select each.

    plan (t, 12): see PLAN. hits and last (K,) are zeros and -1, and are left
    so; distinct, counts (of all tables) and found (t, 2), where a table's begin
    in these and how many they are, are written. Returns the table of a category
    that there is not, or -1.
    """
    n = 0
    wrong = -1
    for t in range(len(plan)):
        m, padding, size = plan[t, N_SYMBOLS], plan[t, PADDING], plan[t, SIZE]
        per_row = max(m // max(plan[t, N_ROWS], 1), 1)
        symbols = matrix_at(plan[t, SYMBOLS], m, 1, INTEGERS)
        rows = matrix_at(plan[t, ROWS], m if plan[t, ROWS] else 0, 1, INTEGERS)
        first = n
        for i in range(m):
            k = symbols[i, 0]
            if k < 0 or k >= size:
                wrong = t
                break
            row = rows[i, 0] if len(rows) else i // per_row
            if k == padding or last[k] == row:
                continue
            last[k] = row
            if hits[k] == 0:
                distinct[n] = k
                n += 1
            hits[k] += 1
        for i in range(first, n):
            counts[i] = hits[distinct[i]]
            hits[distinct[i]] = 0
            last[distinct[i]] = -1
        if wrong >= 0:
            break
        found[t, 0], found[t, 1] = first, n - first
    return wrong


@kernel
def add_up(indices_at, values_at, n_rows, symbols, position, sums):
    """Rows of a sparse gradient added up by category: sums (n, width), zeros before.

    Its indices (n_rows,) and values (n_rows, width) lie at addresses, of the types of `symbols` and `sums`; place (K,)
    is -1, and is left so.
    """
    indices = matrix_at(indices_at, 1, n_rows, symbols)[0]
    values = matrix_at(values_at, n_rows, sums.shape[1], sums)
    for i in range(len(symbols)):
        position[symbols[i]] = i
    for i in range(len(indices)):
        at = position[indices[i]]
        if at >= 0:
            for j in range(values.shape[1]):
                sums[at, j] += values[i, j]
    for i in range(len(symbols)):
        position[symbols[i]] = -1


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
def move_rows(rule, symbols, counts, whole, grad, compact, param, first, second, third, step, product, o):
    """Move the rows of the present categories by an optimizer's rule.

    categories, counts (n,); whole: the rows by which a mean loss divided, 1 for
    a sum; grad (K, width), or (n, width) where `compact`; param, first,
    second, third (K, width), step, product (K, 1): the state, empty where the
    rule has none. o: rate, weight decay, whether it is decoupled, sign of the
    gradient, beta1, beta2, eps, and three numbers of the rule's own.
    """
    lr, decay, decoupled, sign, beta1, beta2, eps, x, y, z = o
    bare = rule == SGD and x == 0.0 and decay == 0.0  # a loop of its own takes a sixth of the time
    for i in range(len(symbols)):
        k = symbols[i]
        row = i if compact else k
        scale = sign * whole / counts[i]
        n = 0.0
        if len(step):
            n = step[k, 0] + 1.0
            step[k, 0] = n
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
            before = product[k, 0]
            product[k, 0] = mu  # rounded to the column's type, as torch does
            product[k, 0] = before * product[k, 0]
            rate, rate2 = lr * (1.0 - mu) / (1.0 - product[k, 0]), lr * following / (1.0 - product[k, 0] * following)
        if rule == ADAGRAD:
            rate = lr / (1.0 + (n - 1.0) * x)
        if bare:
            for j in range(param.shape[1]):
                param[k, j] -= lr * (scale * grad[row, j])
            continue
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


@kernel
def move(rule, number, plan, state, found, distinct, counts, floats, column_floats, o):
    """Move the rows of the present categories, of tables of one number in the plan, by an optimizer's rule.

    plan (t, 12): see PLAN; state (t, 5), or (1, 5) for all: where the rule's three
    tables and two columns lie, or 0 where it has none. found, distinct, counts:
    as `count` left them. floats, column_floats (0,): of the types of the
    tables' numbers, and of the second column's. o: see `move_rows`.
    """
    for t in range(len(plan)):
        if plan[t, NUMBER] != number:
            continue
        first, n = found[t, 0], found[t, 1]
        size, width, compact = plan[t, SIZE], plan[t, WIDTH], plan[t, COMPACT] != 0
        at = state[t if len(state) > 1 else 0]
        move_rows(
            rule,
            distinct[first : first + n],
            counts[first : first + n],
            float(plan[t, WHOLE]),
            matrix_at(plan[t, GRADIENT], n if compact else size, width, floats),
            compact,
            matrix_at(plan[t, PARAMETER], size, width, floats),
            matrix_at(at[0], size if at[0] else 0, width, floats),
            matrix_at(at[1], size if at[1] else 0, width, floats),
            matrix_at(at[2], size if at[2] else 0, width, floats),
            matrix_at(at[3], size if at[3] else 0, 1, DOUBLES),
            matrix_at(at[4], size if at[4] else 0, 1, column_floats),
            o,
        )
