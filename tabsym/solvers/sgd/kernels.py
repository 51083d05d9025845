"""Kernels of stochastic gradient descent: linear predictors, updates of coefficients, predictions.

Arrays only, and tuples of them: `Rows`, `Program` and `Work` of `design.model_spec`, and `rules.Rule`.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, unsigned
from tabsym.losses.loss import loss_of_one, slopes_of_many
from tabsym.solvers.sgd.rules import catch_up, move, move_adagrad


@inlined
def coef_of_slot(i, s, codes, columns, coefs):
    """The coefficient that slot s selects for row i; -1 for an unknown category."""
    column = columns[s]
    if column < 0:
        return coefs[s]
    code = np.int64(codes[i, column])
    return code + coefs[s] if code >= 0 else np.int64(-1)


@inlined
def _product(i, k, t, skip, rows, program, neutral, n_outputs, state):
    """The product of term t without the factor in slot `skip` (-1: of all)."""
    value = program.constants[t]
    if program.numeric[t] >= 0:
        value *= rows.x[i, program.numeric[t]]
    for s in range(program.starts[t], program.starts[t + 1]):
        if s != skip:
            coef = coef_of_slot(i, s, rows.codes, program.columns, program.coefs)
            value *= state[coef * n_outputs + k, 0] if coef >= 0 else neutral[s, k]
    return value


@inlined
def additive_score(i, k, rows, program, n_outputs, state):
    """Output k of the additive terms."""
    total = 0.0
    for j in range(program.n_plain):
        coef = rows.codes[i, j]
        if coef >= 0:
            total += state[coef * n_outputs + k, 0]
    for j in range(len(program.slopes)):
        total += rows.x[i, j] * state[program.slopes[j] * n_outputs + k, 0]
    for j in range(len(program.scalars)):
        total += state[program.scalars[j] * n_outputs + k, 0]
    if len(rows.offset):
        total += rows.offset[i * n_outputs + k]
    return total


@inlined
def additive_scores(i, rows, program, state, scores):
    """`additive_score` of all outputs (K,), which are contiguous by coefficient."""
    n_outputs = len(scores)
    scores[:] = 0.0
    for j in range(program.n_plain):
        first = np.int64(rows.codes[i, j]) * n_outputs
        if first >= 0:
            for k in range(n_outputs):
                scores[k] += state[first + k, 0]
    for j in range(len(program.slopes)):
        first, number = program.slopes[j] * n_outputs, rows.x[i, j]
        for k in range(n_outputs):
            scores[k] += number * state[first + k, 0]
    for j in range(len(program.scalars)):
        first = program.scalars[j] * n_outputs
        for k in range(n_outputs):
            scores[k] += state[first + k, 0]
    if len(rows.offset):
        for k in range(n_outputs):
            scores[k] += rows.offset[i * n_outputs + k]


@inlined
def score_of_row(i, k, rows, program, neutral, n_outputs, state):
    """Output k of row i; an unknown category adds nothing, or multiplies by its slot's neutral value."""
    total = additive_score(i, k, rows, program, n_outputs, state)
    for t in range(len(program.constants)):
        total += _product(i, k, t, -1, rows, program, neutral, n_outputs, state)
    return total


@inlined
def slopes_of_row(i, rows, program, neutral, rule, slope, state):
    """Gradient by the linear predictors of row i into slope (K,); the loss."""
    n_outputs = len(slope)
    for k in range(n_outputs):
        slope[k] = score_of_row(i, k, rows, program, neutral, n_outputs, state)
    if n_outputs > 1:
        return slopes_of_many(slope, int(rows.y[i]))
    value, slope[0], _ = loss_of_one(slope[0], rows.y[i], rule.loss, rule.parameter)
    return value


@inlined
def product_gradients(i, k, grad, rows, program, neutral, n_outputs, state, work):
    """Gradients of row i's product terms by slot; a coefficient selected twice is in its first slot."""
    coef_of, gradient_of = work.coef_of, work.gradient_of
    for t in range(len(program.constants)):
        for s in range(program.starts[t], program.starts[t + 1]):
            coef_of[s] = coef_of_slot(i, s, rows.codes, program.columns, program.coefs)
            gradient_of[s] = grad * _product(i, k, t, s, rows, program, neutral, n_outputs, state)
    for p in range(len(program.twins)):  # slots that can select the same coefficient, each with those before it
        s, earlier = program.twins[p, 0], program.twins[p, 1]
        if coef_of[s] >= 0 and coef_of[earlier] == coef_of[s]:
            gradient_of[earlier] += gradient_of[s]
            coef_of[s] = -1


@inlined
def _bring_up(i, step, rows, program, rule, n_outputs, state):
    """Apply the deferred steps of the coefficients that row i uses (gradient="mean", at zero gradients)."""
    for j in range(program.n_plain):
        coef = np.int64(rows.codes[i, j])
        if coef >= 0:
            for row in range(coef * n_outputs, (coef + 1) * n_outputs):
                catch_up(state, row, step, rule)
    for s in range(len(program.columns)):
        coef = coef_of_slot(i, s, rows.codes, program.columns, program.coefs)
        if coef >= 0 and program.columns[s] >= 0:
            for row in range(coef * n_outputs, (coef + 1) * n_outputs):
                catch_up(state, row, step, rule)


@inlined
def _note(n_moves, row, grad, penalized, work):
    """Record one more coefficient of a row's update; the number of them."""
    work.row_of[n_moves] = row
    work.move_gradient_of[n_moves] = grad
    work.penalized[n_moves] = penalized
    return n_moves + 1


@inlined
def _collect_moves(i, k, grad, rows, coef_weight, program, neutral, n_outputs, state, work, n_moves):
    """The gradients of row i for output k: one for each coefficient that it selects."""
    weighted = len(rows.weight) > 0
    for j in range(program.n_plain):
        coef = rows.codes[i, j]
        if coef >= 0:
            coef_grad = grad / coef_weight[coef] if weighted else grad
            n_moves = _note(n_moves, coef * n_outputs + k, coef_grad, 1.0, work)
    for j in range(len(program.slopes)):
        n_moves = _note(n_moves, program.slopes[j] * n_outputs + k, grad * rows.x[i, j], 0.0, work)
    for j in range(len(program.scalars)):
        n_moves = _note(n_moves, program.scalars[j] * n_outputs + k, grad, 0.0, work)
    if len(program.constants):
        product_gradients(i, k, grad, rows, program, neutral, n_outputs, state, work)
        for s in range(len(work.coef_of)):
            coef = work.coef_of[s]
            if coef >= 0:
                category = program.columns[s] >= 0
                coef_grad = work.gradient_of[s]
                if weighted and category:
                    coef_grad /= coef_weight[coef]
                n_moves = _note(n_moves, coef * n_outputs + k, coef_grad, 1.0 if category else 0.0, work)
    return n_moves


@kernel
def train_online(rows, order, coef_weight, program, neutral, rule, step, n_outputs, state, work):
    """One epoch, one row at a time; the sum of the losses, each before the row's update.

    With batches of one row, gse updates the coefficients that the row selects, each by the row's gradient. `step`
    is the number of updates before the epoch.
    """
    lost = 0.0
    for i in order:
        if rule.lazy:
            _bring_up(i, step, rows, program, rule, n_outputs, state)
        value = slopes_of_row(i, rows, program, neutral, rule, work.slope, state)
        w = rows.weight[i] if len(rows.weight) else 1.0
        lost += w * value
        n_moves = 0
        for k in range(n_outputs):
            grad = w * work.slope[k]
            n_moves = _collect_moves(i, k, grad, rows, coef_weight, program, neutral, n_outputs, state, work, n_moves)
        for m in range(n_moves):  # `move` is long: inlined here only
            p = work.penalized[m]
            move(state, work.row_of[m], work.move_gradient_of[m], rule, p * rule.l1, p * rule.l2)
        step += 1
    return lost


@kernel
def train_additive(rows, order, coef_weight, program, rule, n_outputs, state, work):
    """`train_online` for the default: no products, adagrad alone. Twice as fast as with all options."""
    codes, x, y, weight = rows.codes, rows.x, rows.y, rows.weight
    n_plain, slopes, scalars = program.n_plain, program.slopes, program.scalars
    rate, eps, loss, parameter = rule.rate, rule.eps, rule.loss, rule.parameter
    weighted = len(weight) > 0
    slope = work.slope
    lost = 0.0
    for i in order:
        if n_outputs > 1:
            additive_scores(i, rows, program, state, slope)
            value = slopes_of_many(slope, int(y[i]))
        else:
            slope[0] = additive_score(i, 0, rows, program, 1, state)
            value, slope[0], _ = loss_of_one(slope[0], y[i], loss, parameter)
        w = weight[i] if weighted else 1.0
        lost += w * value
        for k in range(n_outputs):
            slope[k] *= w
        for j in range(n_plain):
            coef = np.int64(codes[i, j])
            if coef >= 0:
                for k in range(n_outputs):
                    coef_grad = slope[k] / coef_weight[coef] if weighted else slope[k]
                    move_adagrad(state, coef * n_outputs + k, coef_grad, rate, eps)
        for j in range(len(slopes)):
            for k in range(n_outputs):
                move_adagrad(state, slopes[j] * n_outputs + k, slope[k] * x[i, j], rate, eps)
        for j in range(len(scalars)):
            for k in range(n_outputs):
                move_adagrad(state, scalars[j] * n_outputs + k, slope[k], rate, eps)
    return lost


@inlined
def _touch(coef, i, work, n_touched):
    """Record that row i selects a coefficient, once per row."""
    if work.last_row[coef] == i:
        return n_touched
    work.last_row[coef] = i
    if work.hits[coef] == 0:
        work.touched[n_touched] = coef
        n_touched += 1
    work.hits[coef] += 1
    return n_touched


@inlined
def _collect(batch, rows, program, neutral, rule, state, work):
    """Sum the gradients of a batch by coefficient: the number of categorical coefficients in it, and its loss."""
    slope, gradient, codes = work.slope, work.gradient, rows.codes
    n_outputs = len(slope)
    n_touched, lost = 0, 0.0
    for i in batch:
        value = slopes_of_row(i, rows, program, neutral, rule, slope, state)
        w = rows.weight[i] if len(rows.weight) else 1.0
        lost += w * value
        for j in range(program.n_plain):
            coef = np.int64(codes[i, j])
            if coef >= 0:
                n_touched = _touch(coef, i, work, n_touched)
                for k in range(n_outputs):
                    gradient[coef * n_outputs + k] += w * slope[k]
        for k in range(n_outputs):
            grad = w * slope[k]
            for j in range(len(program.slopes)):
                gradient[program.slopes[j] * n_outputs + k] += grad * rows.x[i, j]
            for j in range(len(program.scalars)):
                gradient[program.scalars[j] * n_outputs + k] += grad
            if len(program.constants):
                product_gradients(i, k, grad, rows, program, neutral, n_outputs, state, work)
                for s in range(len(work.coef_of)):
                    coef = work.coef_of[s]
                    if coef >= 0:
                        gradient[coef * n_outputs + k] += work.gradient_of[s]
                        if program.columns[s] >= 0:
                            n_touched = _touch(coef, i, work, n_touched)
    return n_touched, lost


@inlined
def _touch_all(program, work):
    """Record all categorical coefficients; their number."""
    n_touched = 0
    for coef in range(len(program.is_fixed)):
        if not program.is_fixed[coef]:
            work.touched[n_touched] = coef
            n_touched += 1
    return n_touched


@kernel
def train_batches(
    rows, order, batch, dense, update_all, coef_weight, program, neutral, rule, step, n_outputs, state, work
):
    """One epoch in batches of `batch` rows; the sum of the losses before each batch's update.

    ``dense=False`` is the gradient estimator for symbolical features: the mean of a coefficient's gradients over the
    rows of the batch that select it. ``dense=True`` is the ordinary mean over the whole batch; then coefficients without a row in
    the batch have a zero gradient. Where these change (momentum, Adam), `rule.lazy` defers their steps until they are
    next used; `update_all` updates all at once, which penalties need.
    """
    gradient, hits, fixed = work.gradient, work.hits, program.fixed
    weighted = len(rows.weight) > 0
    lost = 0.0
    for start in range(0, len(order), batch):
        members = order[start : start + batch]
        if rule.lazy:
            for i in members:
                _bring_up(i, step, rows, program, rule, n_outputs, state)
        n_touched, value = _collect(members, rows, program, neutral, rule, state, work)
        lost += value
        if update_all:
            n_touched = _touch_all(program, work)
        for t in range(n_touched + len(fixed)):  # `move` is long: inlined here only
            category = t < n_touched
            coef = work.touched[t] if category else fixed[t - n_touched]
            p = 1.0 if category else 0.0
            size = 1.0 * len(members)
            if category and not dense:
                size = hits[coef] * (coef_weight[coef] if weighted else 1.0)
            for row in range(coef * n_outputs, (coef + 1) * n_outputs):
                move(state, row, gradient[row] / size, rule, p * rule.l1, p * rule.l2)
                gradient[row] = 0.0
            hits[coef] = 0
            work.last_row[coef] = -1
        step += 1
    return lost


@kernel
def finish(step, program, rule, n_outputs, state):
    """Apply the deferred steps of every coefficient."""
    for coef in range(len(program.is_fixed)):
        if not program.is_fixed[coef]:
            for row in range(coef * n_outputs, (coef + 1) * n_outputs):
                catch_up(state, row, step, rule)


MAX_ADDITIVE_OUTPUTS = 8


def predict_margins(rows, program, neutral, state, out):
    """Linear predictors of rows into out (n, K), from coefficients, state (coefficients * K, 1)."""
    if len(program.constants) or out.shape[1] > MAX_ADDITIVE_OUTPUTS:
        _predict_program(rows, program, neutral, state, out)
    else:
        theta, offset = state.ravel(), rows.offset
        _predict_additive(rows.codes, rows.x, program.n_plain, program.slopes, program.scalars, offset, theta, out)


@kernel
def _predict_additive(codes, x, n_plain, slopes, scalars, offset, theta, out):
    """As `additive_scores` of all rows, in a third of the time where there are few outputs, and quick to compile."""
    n_outputs = out.shape[1]
    for i in range(len(out)):
        for k in range(n_outputs):
            total = 0.0
            for j in range(n_plain):
                if codes[i, j] >= 0:
                    total += theta[unsigned(np.int64(codes[i, j]) * n_outputs + k)]
            for j in range(len(slopes)):
                total += x[i, j] * theta[slopes[j] * n_outputs + k]
            for j in range(len(scalars)):
                total += theta[scalars[j] * n_outputs + k]
            out[i, k] = total + offset[i * n_outputs + k] if len(offset) else total


@kernel
def _predict_program(rows, program, neutral, state, out):
    n_outputs = out.shape[1]
    for i in range(len(out)):
        if n_outputs > 1 and not len(program.constants):
            additive_scores(i, rows, program, state, out[i])
        else:
            for k in range(n_outputs):
                out[i, k] = score_of_row(i, k, rows, program, neutral, n_outputs, state)


@kernel
def sum_by_entry(codes, weight, last_row, total):
    """Add the weights of the rows that select each coefficient to total (coefficients,), once per row.

    `weight` is empty for ones; `last_row` (coefficients,) is -1 before.
    """
    for i in range(codes.shape[0]):
        w = weight[i] if len(weight) else 1.0
        for j in range(codes.shape[1]):
            coef = codes[i, j]
            if coef >= 0 and last_row[coef] != i:
                last_row[coef] = i
                total[coef] += w


@inlined
def _gradients_and_hessians(i, rows, program, neutral, rule, state, work, hessians):
    """First and second derivatives of row i's loss by its scores, into ``work.slope`` and `hessians` (K,); the loss."""
    slope = work.slope
    n_outputs = len(slope)
    for k in range(n_outputs):
        slope[k] = score_of_row(i, k, rows, program, neutral, n_outputs, state)
    if n_outputs > 1:
        label = int(rows.y[i])
        value = slopes_of_many(slope, label)
        for k in range(n_outputs):
            p = slope[k] + 1.0 if k == label else slope[k]
            hessians[k] = p * (1.0 - p)
    else:
        value, slope[0], hessians[0] = loss_of_one(slope[0], rows.y[i], rule.loss, rule.parameter)
    return value


@kernel
def newton_sums(rows, members, program, neutral, rule, state, work, hessians, gradient, curvature):
    """Add gradient and Hessian diagonal (coefficients * K,) of the weighted loss of rows; the sum of losses.

    Each derivative is by one coefficient alone, while the others stay fixed.
    """
    n_outputs = len(work.slope)
    lost = 0.0
    for i in members:
        value = _gradients_and_hessians(i, rows, program, neutral, rule, state, work, hessians)
        w = rows.weight[i] if len(rows.weight) else 1.0
        lost += w * value
        for k in range(n_outputs):
            grad, hess = w * work.slope[k], w * hessians[k]
            for j in range(program.n_plain):
                coef = np.int64(rows.codes[i, j])
                if coef >= 0:
                    gradient[coef * n_outputs + k] += grad
                    curvature[coef * n_outputs + k] += hess
            for j in range(len(program.slopes)):
                gradient[program.slopes[j] * n_outputs + k] += grad * rows.x[i, j]
                curvature[program.slopes[j] * n_outputs + k] += hess * rows.x[i, j] * rows.x[i, j]
            for j in range(len(program.scalars)):
                gradient[program.scalars[j] * n_outputs + k] += grad
                curvature[program.scalars[j] * n_outputs + k] += hess
            if len(program.constants):
                product_gradients(i, k, 1.0, rows, program, neutral, n_outputs, state, work)
                for s in range(len(work.coef_of)):
                    coef = work.coef_of[s]
                    if coef >= 0:
                        derivative = work.gradient_of[s]
                        gradient[coef * n_outputs + k] += grad * derivative
                        curvature[coef * n_outputs + k] += hess * derivative * derivative
    return lost
