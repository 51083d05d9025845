"""Training and prediction over codes: arrays in, arrays out, nothing checked.

Shapes, for n rows, b blocks, d numeric columns, K outputs, P entries of blocks:
    codes (n, b) int32 into the P entries, -1 unseen;  x (n, d);  y (n,);
    state ((P + d + 1) * K, s): row e*K + k is output k of entry e, the
    parameter first, then the optimizer's memory.
Entries P .. P+d-1 multiply the numeric columns, entry P+d is the intercept.
`weight` is empty, or (n,) with mean 1; then `entry_weight` (P,) is the mean
weight of the rows that select each entry.

The state is two-dimensional on purpose: with a third axis the same loops ran
four times slower (numba 0.68: .42 s against .11 s for a million rows of ten
columns), and so did reading `hyper` inside them.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel, part

# Codes as in losses.py and optimizers.py; numba freezes module globals.
_SQUARED, _LOGISTIC = 0, 1
_SGD, _ADAGRAD = 0, 1


@part
def _move(state, row, gradient, optimizer, rate, eps, beta1, beta2):
    """One textbook update of one parameter."""
    if optimizer == _ADAGRAD:
        total = state[row, 1] + gradient * gradient
        state[row, 1] = total
        state[row, 0] -= rate * gradient / (np.sqrt(total) + eps)
    elif optimizer == _SGD:
        state[row, 0] -= rate * gradient
    else:  # Adam
        step = state[row, 3] + 1.0
        first = beta1 * state[row, 1] + (1.0 - beta1) * gradient
        second = beta2 * state[row, 2] + (1.0 - beta2) * gradient * gradient
        state[row, 1] = first
        state[row, 2] = second
        state[row, 3] = step
        spread = np.sqrt(second) / np.sqrt(1.0 - beta2**step) + eps
        state[row, 0] -= rate / (1.0 - beta1**step) * first / spread


@part
def _score(i, k, codes, x, state, n_outputs):
    """Output k of the score of row i."""
    n_numeric = x.shape[1]
    n_entries = len(state) // n_outputs - n_numeric - 1
    total = state[(n_entries + n_numeric) * n_outputs + k, 0]
    for j in range(codes.shape[1]):
        entry = codes[i, j]
        if entry >= 0:
            total += state[entry * n_outputs + k, 0]
    for j in range(n_numeric):
        total += x[i, j] * state[(n_entries + j) * n_outputs + k, 0]
    return total


@part
def _slope_of_one(score, target, loss):
    """dloss/dscore and the loss, where there is one score."""
    if loss == _SQUARED:
        return score - target, 0.5 * (score - target) ** 2
    margin = score if target > 0 else -score
    small = np.exp(-abs(margin))
    miss = (small if margin > 0 else 1.0) / (1.0 + small)  # 1 - p of the class that occurred
    value = np.log1p(small) + (0.0 if margin > 0 else -margin)
    return (-miss if target > 0 else miss), value


@part
def _slopes_of_many(scores, target):
    """Scores (K,) -> softmax minus indicator, in place; the loss."""
    top = scores.max()
    own = scores[target]
    total = 0.0
    for k in range(len(scores)):
        scores[k] = np.exp(scores[k] - top)
        total += scores[k]
    for k in range(len(scores)):
        scores[k] /= total
    scores[target] -= 1.0
    return np.log(total) + top - own


@part
def _slopes(i, codes, x, target, state, loss, slope):
    """dloss/dscore of row i into slope (K,); the loss."""
    n_outputs = len(slope)
    for k in range(n_outputs):
        slope[k] = _score(i, k, codes, x, state, n_outputs)
    if n_outputs > 1:
        return _slopes_of_many(slope, int(target))
    slope[0], value = _slope_of_one(slope[0], target, loss)
    return value


@kernel
def train_online(codes, x, y, weight, entry_weight, order, loss, optimizer, rate, l2, hyper, n_outputs, state):
    """One pass, one row at a time; the sum of the losses, each before the row's own update.

    With batches of one row, gse moves the entries that the row selects, each
    by the row's own gradient.
    """
    n_blocks, n_numeric = codes.shape[1], x.shape[1]
    n_entries = len(state) // n_outputs - n_numeric - 1
    eps, beta1, beta2 = hyper[0], hyper[1], hyper[2]
    weighted = len(weight) > 0
    slope = np.empty(n_outputs)
    lost = 0.0
    for i in order:
        value = _slopes(i, codes, x, y[i], state, loss, slope)
        share = weight[i] if weighted else 1.0
        lost += share * value
        for k in range(n_outputs):
            pull = share * slope[k]
            for j in range(n_blocks):
                if codes[i, j] >= 0:
                    own = pull / entry_weight[codes[i, j]] if weighted else pull
                    row = codes[i, j] * n_outputs + k
                    _move(state, row, own + l2 * state[row, 0], optimizer, rate, eps, beta1, beta2)
            for j in range(n_numeric):
                row = (n_entries + j) * n_outputs + k
                own = pull * x[i, j] + l2 * state[row, 0]
                _move(state, row, own, optimizer, rate, eps, beta1, beta2)
            row = (n_entries + n_numeric) * n_outputs + k
            _move(state, row, pull, optimizer, rate, eps, beta1, beta2)
    return lost


@part
def _collect(rows, codes, x, y, weight, loss, state, slope, gradient, count, touched):
    """Sum the gradients of a batch by entry: how many block entries it touches, and its loss."""
    n_outputs, n_numeric, n_entries = len(slope), x.shape[1], len(count)
    n_touched, lost = 0, 0.0
    for i in rows:
        value = _slopes(i, codes, x, y[i], state, loss, slope)
        share = weight[i] if len(weight) else 1.0
        lost += share * value
        for j in range(codes.shape[1]):
            entry = codes[i, j]
            if entry >= 0:
                if count[entry] == 0:
                    touched[n_touched] = entry
                    n_touched += 1
                count[entry] += 1
                for k in range(n_outputs):
                    gradient[entry * n_outputs + k] += share * slope[k]
        for k in range(n_outputs):
            for j in range(n_numeric):
                gradient[(n_entries + j) * n_outputs + k] += share * slope[k] * x[i, j]
            gradient[(n_entries + n_numeric) * n_outputs + k] += share * slope[k]
    return n_touched, lost


@kernel
def train_batches(
    codes, x, y, weight, entry_weight, order, batch, dense, sweep,
    loss, optimizer, rate, l2, hyper, n_outputs, state,
):  # fmt: skip
    """One pass in batches of `batch` rows; the sum of the losses before each batch's update.

    ``dense=False`` is the gradient estimator for symbolical features: the mean
    of an entry's gradients over its own rows in the batch. ``dense=True`` is
    the ordinary mean over the whole batch; then `sweep` says whether entries
    without a row in the batch move too (they do where the optimizer has
    momentum or a penalty; elsewhere a zero gradient changes nothing).
    """
    n_numeric = x.shape[1]
    n_entries = len(state) // n_outputs - n_numeric - 1
    eps, beta1, beta2 = hyper[0], hyper[1], hyper[2]
    gradient = np.zeros(len(state))
    count = np.zeros(n_entries, np.int64)
    touched = np.empty(n_entries, np.int64)
    slope = np.empty(n_outputs)
    lost = 0.0
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        n_touched, value = _collect(rows, codes, x, y, weight, loss, state, slope, gradient, count, touched)
        lost += value
        if sweep:
            n_touched = n_entries
            for entry in range(n_entries):
                touched[entry] = entry
        for t in range(n_touched + n_numeric + 1):
            entry = touched[t] if t < n_touched else n_entries + t - n_touched
            size = 1.0 * len(rows)
            if not dense and entry < n_entries:
                size = count[entry] * (entry_weight[entry] if len(weight) else 1.0)
            decay = l2 if entry < n_entries + n_numeric else 0.0  # the intercept is not penalised
            for row in range(entry * n_outputs, (entry + 1) * n_outputs):
                own = gradient[row] / size + decay * state[row, 0]
                _move(state, row, own, optimizer, rate, eps, beta1, beta2)
                gradient[row] = 0.0
            if entry < n_entries:
                count[entry] = 0
    return lost


@kernel
def predict_margins(codes, x, n_outputs, state):
    """Scores (n, K) of rows; an unseen symbol adds nothing."""
    out = np.empty((len(codes), n_outputs))
    for i in range(len(codes)):
        for k in range(n_outputs):
            out[i, k] = _score(i, k, codes, x, state, n_outputs)
    return out


@kernel
def sum_weights(codes, weight, n_entries):
    """The sum of the weights of the rows that select each entry (n_entries,)."""
    total = np.zeros(n_entries)
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            if codes[i, j] >= 0:
                total[codes[i, j]] += weight[i]
    return total
