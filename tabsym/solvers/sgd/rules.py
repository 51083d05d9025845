"""One update of a coefficient, inlined into the kernels: rates, optimizers, penalties, deferred steps.

Codes are those of optimizers.py and options.py; numba freezes module globals. The l1 penalty shrinks a coefficient by
l1 times the step size for a constant gradient of 1, so that it is stationary where the gradient is l1: that is the
optimum of loss + l1 |theta| under every optimizer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tabsym.jit import inlined, kernel

SGD_CODE, ADAGRAD_CODE, RMSPROP_CODE, ADAM_CODE = range(4)
CONSTANT, OPTIMAL, INVSCALING = range(3)

STILL = 1e-14
"""A step smaller than this fraction of its coefficient ends the deferred steps: the sum of those skipped is below 1e-12
of it."""


class Rule(NamedTuple):
    """Options of an update, as numbers."""

    loss: int
    parameter: float  # huber's delta, the quantile, tweedie's power
    optimizer: int
    rate: float
    schedule: int
    schedule_parameter: float  # power_t, or the penalty that `optimal` derives its rate from
    schedule_start: float  # optimal's t0
    l1: float
    l2: float
    eps: float
    beta1: float  # sgd's momentum; rmsprop's alpha is beta2
    beta2: float
    nesterov: bool
    step_column: int  # -1 where there is no step count
    mean_column: int  # -1 where there is no running mean
    lazy: bool
    simple: bool  # adagrad without penalties, steps or means: the default, with its own code path


@inlined
def rate_at(step, rule):
    """The learning rate of update number `step`, counted from 1."""
    if rule.schedule == INVSCALING:
        return rule.rate / step**rule.schedule_parameter
    if rule.schedule == OPTIMAL:
        return 1.0 / (rule.schedule_parameter * (rule.schedule_start + step - 1.0))
    return rule.rate


@inlined
def move_adagrad(state, row, gradient, rate, eps):
    """Adagrad without further options."""
    total = state[row, 1] + gradient * gradient
    state[row, 1] = total
    state[row, 0] -= rate * gradient / (np.sqrt(total) + eps)


@inlined
def move(state, row, gradient, rule, l1, l2):
    """One update of one coefficient."""
    if rule.simple:
        move_adagrad(state, row, gradient, rule.rate, rule.eps)
    else:
        _move_with_options(state, row, gradient, rule, l1, l2)


@inlined
def _move_with_options(state, row, gradient, rule, l1, l2):
    step = 1.0
    rate = rule.rate
    if rule.step_column >= 0:
        step = state[row, rule.step_column] + 1.0
        state[row, rule.step_column] = step
        if rule.schedule != CONSTANT:
            rate = rate_at(step, rule)
    if l2 > 0.0:
        gradient += l2 * state[row, 0]
    step_size = _descend(state, row, gradient, rule, rate, step)
    if l1 > 0.0:  # towards zero, and no further
        size = abs(state[row, 0]) - step_size * l1
        state[row, 0] = np.copysign(size, state[row, 0]) if size > 0.0 else 0.0
    if rule.mean_column >= 0:
        state[row, rule.mean_column] += (state[row, 0] - state[row, rule.mean_column]) / step


@inlined
def _descend(state, row, gradient, rule, rate, step):
    """A step against the gradient; returns the effective step size, that for a constant gradient of 1."""
    if rule.optimizer == ADAGRAD_CODE:
        total = state[row, 1] + gradient * gradient
        state[row, 1] = total
        step_size = rate / (np.sqrt(total) + rule.eps)
        state[row, 0] -= rate * gradient / (np.sqrt(total) + rule.eps)
    elif rule.optimizer == SGD_CODE:
        step_size = rate
        if rule.beta1 > 0.0:
            velocity = rule.beta1 * state[row, 1] + gradient
            state[row, 1] = velocity
            gradient = gradient + rule.beta1 * velocity if rule.nesterov else velocity
            step_size = rate / (1.0 - rule.beta1)
        state[row, 0] -= rate * gradient
    elif rule.optimizer == RMSPROP_CODE:
        square = rule.beta2 * state[row, 1] + (1.0 - rule.beta2) * gradient * gradient
        state[row, 1] = square
        step_size = rate / (np.sqrt(square) + rule.eps)
        state[row, 0] -= rate * gradient / (np.sqrt(square) + rule.eps)
    else:  # Adam
        first = rule.beta1 * state[row, 1] + (1.0 - rule.beta1) * gradient
        second = rule.beta2 * state[row, 2] + (1.0 - rule.beta2) * gradient * gradient
        state[row, 1] = first
        state[row, 2] = second
        denominator = np.sqrt(second) / np.sqrt(1.0 - rule.beta2**step) + rule.eps
        step_size = rate / denominator
        state[row, 0] -= rate / (1.0 - rule.beta1**step) * first / denominator
    return step_size


@kernel  # not inlined, which would double the compile time
def catch_up(state, row, until, rule):
    """Apply a coefficient's deferred steps, at zero gradients: singly while they change it, then in closed form."""
    missed = until - state[row, rule.step_column]
    if missed > 0.0 and rule.optimizer == ADAM_CODE and rule.schedule == CONSTANT and rule.mean_column < 0:
        missed = _deferred_adam(state, row, missed, rule)
    else:
        while missed > 0.0:
            before = state[row, 0]
            move(state, row, 0.0, rule, 0.0, 0.0)
            missed -= 1.0
            if abs(state[row, 0] - before) <= STILL * abs(state[row, 0]):
                break
    if missed > 0.0:
        _decay(state, row, missed, rule)


@inlined
def _deferred_adam(state, row, missed, rule):
    """Adam's deferred steps, without a power in each; the number left when they no longer change the coefficient."""
    theta, first, second, step = state[row, 0], state[row, 1], state[row, 2], state[row, rule.step_column]
    power1, power2 = rule.beta1**step, rule.beta2**step
    while missed > 0.0:
        first *= rule.beta1
        second *= rule.beta2
        power1 *= rule.beta1
        power2 *= rule.beta2
        step += 1.0
        missed -= 1.0
        denominator = np.sqrt(second / (1.0 - power2)) + rule.eps
        moved = rule.rate * first / ((1.0 - power1) * denominator)
        theta -= moved
        if abs(moved) <= STILL * abs(theta):
            break
    state[row, 0], state[row, 1], state[row, 2], state[row, rule.step_column] = theta, first, second, step
    return missed


@inlined
def _decay(state, row, missed, rule):
    """Deferred steps that no longer change a coefficient: the optimizer's state decays, the running mean is updated."""
    if rule.optimizer == SGD_CODE and rule.beta1 > 0.0:
        state[row, 1] *= rule.beta1**missed
    elif rule.optimizer == RMSPROP_CODE:
        state[row, 1] *= rule.beta2**missed
    elif rule.optimizer == ADAM_CODE:
        state[row, 1] *= rule.beta1**missed
        state[row, 2] *= rule.beta2**missed
    step = state[row, rule.step_column] + missed
    state[row, rule.step_column] = step
    if rule.mean_column >= 0:
        state[row, rule.mean_column] += (state[row, 0] - state[row, rule.mean_column]) * missed / step
