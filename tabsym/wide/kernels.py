"""Training and prediction of a program over codes: arrays in, arrays out, nothing checked.

Shapes, for n rows, S code columns, K outputs, E entries in all:
    codes (n, S) int32 into the E entries, -1 unseen;  x (n, d);  y (n,);
    state (E * K, s): row e*K + k is output k of entry e, the parameter first,
    then the optimizer's memory, its step count and its running mean.
`weight` and `offset` are empty, or (n,); weights have mean 1, and then
`entry_weight` (E,) is the mean weight of the rows that select each entry.

The state is two-dimensional on purpose: with a third axis the same loops ran
four times slower (numba 0.68: .42 s against .11 s for a million rows of ten
columns), and so did reading options from an array inside them; `Rule` is a
tuple of numbers, which LLVM keeps in registers. `work` is what a kernel works
in: see `program.Work`.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel, part
from tabsym.wide.rules import catch_up, move, move_adagrad, slope_of_one
from tabsym.wide.scores import (
    additive_score,
    entry_of_slot,
    product_gradients,
    score_of_row,
    slopes_of_many,
    slopes_of_row,
)


@part
def _bring_up(i, step, codes, n_plain, columns, entries, rule, n_outputs, state):
    """Let the entries that row i reads take the steps they missed (gradient="mean", at zero gradients)."""
    for j in range(n_plain):
        entry = np.int64(codes[i, j])
        if entry >= 0:
            for row in range(entry * n_outputs, (entry + 1) * n_outputs):
                catch_up(state, row, step, rule, rule.penalised_decay)
    for s in range(len(columns)):
        entry = entry_of_slot(i, s, codes, columns, entries)
        if entry >= 0 and columns[s] >= 0:
            for row in range(entry * n_outputs, (entry + 1) * n_outputs):
                catch_up(state, row, step, rule, rule.penalised_decay)


@kernel
def train_online(rows, order, entry_weight, program, neutral, rule, step, n_outputs, state, work):
    """One pass, one row at a time; the sum of the losses, each before the row's own update.

    With batches of one row, gse moves the entries that the row selects, each
    by the row's own gradient. `step` is the number of updates before the pass.
    """
    codes, x, y, weight, offset = rows
    n_plain, slopes, scalars, starts, constants, numeric, columns, entries, fixed, is_fixed, shared = program
    weighted = len(weight) > 0
    slope, entry_of, gradient_of = work.slope, work.entry_of, work.gradient_of
    row_of, pull_of, penalised = work.row_of, work.pull_of, work.penalised
    lost = 0.0
    for i in order:
        if rule.lazy:
            _bring_up(i, step, codes, n_plain, columns, entries, rule, n_outputs, state)
        value = slopes_of_row(
            i, codes, x, y, offset, n_plain, slopes, scalars, starts, constants, numeric, columns, entries, neutral, rule,
            slope, state,
        )  # fmt: skip
        share = weight[i] if weighted else 1.0
        lost += share * value
        n_moves = 0
        for k in range(n_outputs):
            pull = share * slope[k]
            for j in range(n_plain):
                entry = codes[i, j]
                if entry >= 0:
                    row_of[n_moves] = entry * n_outputs + k
                    pull_of[n_moves] = pull / entry_weight[entry] if weighted else pull
                    penalised[n_moves] = 1.0
                    n_moves += 1
            for j in range(len(slopes)):
                row_of[n_moves] = slopes[j] * n_outputs + k
                pull_of[n_moves] = pull * x[i, j]
                penalised[n_moves] = 0.0
                n_moves += 1
            for j in range(len(scalars)):
                row_of[n_moves] = scalars[j] * n_outputs + k
                pull_of[n_moves] = pull
                penalised[n_moves] = 0.0
                n_moves += 1
            if len(constants):
                product_gradients(
                    i, k, pull, codes, x, starts, constants, numeric, columns, entries, shared, neutral, n_outputs, state,
                    entry_of, gradient_of,
                )  # fmt: skip
                for s in range(len(entry_of)):
                    entry = entry_of[s]
                    if entry >= 0:
                        symbol = columns[s] >= 0
                        row_of[n_moves] = entry * n_outputs + k
                        pull_of[n_moves] = (
                            gradient_of[s] / entry_weight[entry] if weighted and symbol else gradient_of[s]
                        )
                        penalised[n_moves] = 1.0 if symbol else 0.0
                        n_moves += 1
        for m in range(n_moves):  # one place where `move` is compiled in: it is long
            p = penalised[m]
            move(state, row_of[m], pull_of[m], rule, p * rule.l1, p * rule.l2, p * rule.penalised_decay)
        step += 1
    return lost


@kernel
def train_additive(rows, order, entry_weight, program, rule, n_outputs, state, work):
    """`train_online` for the default: no products, adagrad alone. Twice as fast as with every option at hand."""
    codes, x, y, weight, offset = rows
    n_plain, slopes, scalars = program.n_plain, program.slopes, program.scalars
    rate, eps, loss, parameter = rule.rate, rule.eps, rule.loss, rule.parameter
    weighted, shifted = len(weight) > 0, len(offset) > 0
    slope = work.slope
    lost = 0.0
    for i in order:
        for k in range(n_outputs):
            slope[k] = additive_score(i, k, codes, x, n_plain, slopes, scalars, n_outputs, state)
            if shifted:
                slope[k] += offset[i]
        if n_outputs > 1:
            value = slopes_of_many(slope, int(y[i]))
        else:
            slope[0], value = slope_of_one(slope[0], y[i], loss, parameter)
        share = weight[i] if weighted else 1.0
        lost += share * value
        for k in range(n_outputs):
            pull = share * slope[k]
            for j in range(n_plain):
                entry = codes[i, j]
                if entry >= 0:
                    own = pull / entry_weight[entry] if weighted else pull
                    move_adagrad(state, entry * n_outputs + k, own, rate, eps)
            for j in range(len(slopes)):
                move_adagrad(state, slopes[j] * n_outputs + k, pull * x[i, j], rate, eps)
            for j in range(len(scalars)):
                move_adagrad(state, scalars[j] * n_outputs + k, pull, rate, eps)
    return lost


@part
def _touch(entry, i, count, last_row, touched, n_touched):
    """Note that row i selects an entry; an entry counts once a row."""
    if last_row[entry] == i:
        return n_touched
    last_row[entry] = i
    if count[entry] == 0:
        touched[n_touched] = entry
        n_touched += 1
    count[entry] += 1
    return n_touched


@part
def _collect(
    batch, codes, x, y, weight, offset, n_plain, slopes, scalars, starts, constants, numeric, columns, entries, shared,
    neutral, rule, slope, entry_of, gradient_of, state, gradient, count, last_row, touched,
):  # fmt: skip
    """Sum the gradients of a batch by entry: how many symbols' entries it touches, and its loss."""
    n_outputs = len(slope)
    n_touched, lost = 0, 0.0
    for i in batch:
        value = slopes_of_row(
            i, codes, x, y, offset, n_plain, slopes, scalars, starts, constants, numeric, columns, entries, neutral, rule,
            slope, state,
        )  # fmt: skip
        share = weight[i] if len(weight) else 1.0
        lost += share * value
        for j in range(n_plain):
            entry = np.int64(codes[i, j])
            if entry >= 0:
                n_touched = _touch(entry, i, count, last_row, touched, n_touched)
                for k in range(n_outputs):
                    gradient[entry * n_outputs + k] += share * slope[k]
        for k in range(n_outputs):
            pull = share * slope[k]
            for j in range(len(slopes)):
                gradient[slopes[j] * n_outputs + k] += pull * x[i, j]
            for j in range(len(scalars)):
                gradient[scalars[j] * n_outputs + k] += pull
            if len(constants):
                product_gradients(
                    i, k, pull, codes, x, starts, constants, numeric, columns, entries, shared, neutral, n_outputs, state,
                    entry_of, gradient_of,
                )  # fmt: skip
                for s in range(len(entry_of)):
                    if entry_of[s] >= 0:
                        gradient[entry_of[s] * n_outputs + k] += gradient_of[s]
                        if columns[s] >= 0:
                            n_touched = _touch(entry_of[s], i, count, last_row, touched, n_touched)
    return n_touched, lost


@kernel
def train_batches(rows, order, batch, dense, sweep, entry_weight, program, neutral, rule, step, n_outputs, state, work):
    """One pass in batches of `batch` rows; the sum of the losses before each batch's update.

    ``dense=False`` is the gradient estimator for symbolical features: the mean
    of an entry's gradients over its own rows in the batch. ``dense=True`` is
    the ordinary mean over the whole batch; then entries without a row in the
    batch have a zero gradient. Where those move (momentum, Adam), `rule.lazy`
    lets them do so when they are next read; `sweep` moves all at once, which
    penalties need.
    """
    codes, x, y, weight, offset = rows
    n_plain, slopes, scalars, starts, constants, numeric, columns, entries, fixed, is_fixed, shared = program
    n_entries = len(state) // n_outputs
    slope, entry_of, gradient_of = work.slope, work.entry_of, work.gradient_of
    gradient, count, last_row, touched = work.gradient, work.hits, work.last_row, work.touched
    lost = 0.0
    for start in range(0, len(order), batch):
        members = order[start : start + batch]
        if rule.lazy:
            for i in members:
                _bring_up(i, step, codes, n_plain, columns, entries, rule, n_outputs, state)
        n_touched, value = _collect(
            members, codes, x, y, weight, offset, n_plain, slopes, scalars, starts, constants, numeric, columns, entries,
            shared, neutral, rule, slope, entry_of, gradient_of, state, gradient, count, last_row, touched,
        )  # fmt: skip
        lost += value
        if sweep:
            n_touched = 0
            for entry in range(n_entries):
                if not is_fixed[entry]:
                    touched[n_touched] = entry
                    n_touched += 1
        for t in range(n_touched + len(fixed)):  # one place where `move` is compiled in: it is long
            symbol = t < n_touched
            entry = touched[t] if symbol else fixed[t - n_touched]
            p = 1.0 if symbol else 0.0
            size = 1.0 * len(members)
            if symbol and not dense:
                size = count[entry] * (entry_weight[entry] if len(weight) else 1.0)
            for row in range(entry * n_outputs, (entry + 1) * n_outputs):
                move(state, row, gradient[row] / size, rule, p * rule.l1, p * rule.l2, p * rule.penalised_decay)
                gradient[row] = 0.0
            count[entry] = 0
            last_row[entry] = -1
        step += 1
    return lost


@kernel
def finish(step, program, rule, n_outputs, state):
    """Let every entry take the steps it missed."""
    is_fixed = program.is_fixed
    for entry in range(len(state) // n_outputs):
        if not is_fixed[entry]:
            for row in range(entry * n_outputs, (entry + 1) * n_outputs):
                catch_up(state, row, step, rule, rule.penalised_decay)


@kernel
def predict_margins(rows, program, neutral, state, out):
    """Scores of rows into out (n, K)."""
    codes, x, y, weight, offset = rows
    n_plain, slopes, scalars, starts, constants, numeric, columns, entries, fixed, is_fixed, shared = program
    n_outputs = out.shape[1]
    for i in range(len(codes)):
        for k in range(n_outputs):
            out[i, k] = score_of_row(
            i, k, codes, x, offset, n_plain, slopes, scalars, starts, constants, numeric, columns, entries, neutral,
            n_outputs, state,
        )  # fmt: skip
    return out


@kernel
def sum_weights(codes, weight, total):
    """Add the weights of the rows that select each entry to total (n_entries,), once however often they do."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            again = codes[i, j] < 0
            for earlier in range(j):
                again |= codes[i, earlier] == codes[i, j]
            if not again:
                total[codes[i, j]] += weight[i]
