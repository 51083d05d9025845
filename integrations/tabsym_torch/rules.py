"""The update rules of torch.optim, for rows that have each had their own number of updates.

Each rule is torch's formula, with the step count a column: bias corrections
are those of the category's own updates. A rule takes compact arrays, one row
per present category, and changes them in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, optim

Options = dict[str, Any]  # a parameter group


class UpdatedRows(NamedTuple):
    """Parameters, gradients and state of the present categories; `step`: updates of each, this one included."""

    param: Tensor  # (n, width)
    grad: Tensor  # (n, width)
    state: dict[str, Tensor]  # each (n, width) or (n, 1)

    @property
    def step(self) -> Tensor:
        """Updates of each category, this one included: (n, 1), float64."""
        return self.state["step"]


class OptimizerRule(NamedTuple):
    """How an optimizer moves rows."""

    update: Callable[[UpdatedRows, Options], None]
    buffers: Callable[[Options], dict[str, float]]  # name -> value before the first update
    columns: tuple[str, ...] = ()  # buffers that hold one number per category
    counts: Callable[[Options], bool] = lambda options: True  # whether it keeps the step count


def _rate(options: Options) -> float:
    """The learning rate as a number, which schedulers may keep in a tensor."""
    return float(options["lr"])


def _decayed(rows: UpdatedRows, options: Options) -> Tensor:
    """The gradient to descend, weight decay included (or applied to the rows, where it is decoupled)."""
    grad = -rows.grad if options["maximize"] else rows.grad
    decay = options["weight_decay"]
    if decay == 0:
        return grad
    if options.get("decoupled_weight_decay"):
        rows.param.mul_(1 - _rate(options) * decay)
        return grad
    return grad.add(rows.param, alpha=decay)


def _correction(rows: UpdatedRows, beta: float) -> Tensor:
    """1 - beta ** step, in double precision as torch computes it."""
    return 1 - beta**rows.step


def _like(values: Tensor, rows: UpdatedRows) -> Tensor:
    return values.to(rows.param.dtype)


def _moments(rows: UpdatedRows, grad: Tensor, options: Options) -> tuple[Tensor, Tensor]:
    """The running means of the gradient and of its square."""
    beta1, beta2 = options["betas"]
    mean, square = rows.state["exp_avg"], rows.state["exp_avg_sq"]
    mean.lerp_(grad, 1 - beta1)
    square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    return mean, square


def sgd(rows: UpdatedRows, options: Options) -> None:
    """SGD with momentum; a category's first update is its momentum's first value, as a parameter's is."""
    grad = _decayed(rows, options)
    momentum, dampening = options["momentum"], options["dampening"]
    if momentum != 0:
        buffer = rows.state["momentum_buffer"]
        buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
        if dampening != 0:
            buffer.copy_(torch.where(rows.step == 1, grad, buffer))
        grad = grad.add(buffer, alpha=momentum) if options["nesterov"] else buffer
    rows.param.add_(grad, alpha=-_rate(options))


def adagrad(rows: UpdatedRows, options: Options) -> None:
    """Adagrad; the rate falls with the category's own updates where `lr_decay` is given."""
    grad = _decayed(rows, options)
    total = rows.state["sum"].addcmul_(grad, grad)
    deviation = total.sqrt().add_(options["eps"])
    if options["lr_decay"] == 0:
        rows.param.addcdiv_(grad, deviation, value=-_rate(options))
    else:
        rate = _rate(options) / (1 + (rows.step - 1) * options["lr_decay"])
        rows.param.addcdiv_(grad * _like(rate, rows), deviation, value=-1)


def rmsprop(rows: UpdatedRows, options: Options) -> None:
    """RMSprop, centred and with momentum where asked."""
    grad = _decayed(rows, options)
    alpha = options["alpha"]
    square = rows.state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
    if options["centered"]:
        mean = rows.state["grad_avg"].lerp_(grad, 1 - alpha)
        square = square.addcmul(mean, mean, value=-1)
    deviation = square.sqrt().add_(options["eps"])
    if options["momentum"] > 0:
        buffer = rows.state["momentum_buffer"].mul_(options["momentum"]).addcdiv_(grad, deviation)
        rows.param.add_(buffer, alpha=-_rate(options))
    else:
        rows.param.addcdiv_(grad, deviation, value=-_rate(options))


def adam(rows: UpdatedRows, options: Options) -> None:
    """Adam and AdamW."""
    mean, square = _moments(rows, _decayed(rows, options), options)
    if options["amsgrad"]:
        square = torch.maximum(rows.state["max_exp_avg_sq"], square, out=rows.state["max_exp_avg_sq"])
    beta1, beta2 = options["betas"]
    deviation = square.sqrt().div_(_like(_correction(rows, beta2).sqrt_(), rows)).add_(options["eps"])
    rows.param.addcdiv_(mean, deviation.mul_(_like(_correction(rows, beta1), rows)), value=-_rate(options))


def nadam(rows: UpdatedRows, options: Options) -> None:
    """NAdam; the product of its momenta is the category's own."""
    grad = _decayed(rows, options)
    mean, square = _moments(rows, grad, options)
    beta1, beta2 = options["betas"]
    step, decay, rate = rows.step, options["momentum_decay"], _rate(options)
    mu = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
    following = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
    held = rows.state["mu_product"]
    product = held.mul_(mu.to(held.dtype)).double()
    deviation = square.div(_like(_correction(rows, beta2), rows)).sqrt_().add_(options["eps"])
    rows.param.addcdiv_(grad * _like(rate * (1 - mu) / (1 - product), rows), deviation, value=-1)
    rows.param.addcdiv_(mean * _like(rate * following / (1 - product * following), rows), deviation, value=-1)


def radam(rows: UpdatedRows, options: Options) -> None:
    """RAdam; a category's rectification begins after its own first updates."""
    mean, square = _moments(rows, _decayed(rows, options), options)
    beta1, beta2 = options["betas"]
    step = rows.step
    correction = _correction(rows, beta2)
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    rectified = length > 5
    sure = torch.where(rectified, length, longest)  # whatever, where it is not used: no roots of negative numbers
    rectification = ((sure - 4) * (sure - 2) * longest / ((longest - 4) * (longest - 2) * sure)).sqrt()
    adaptive = _like(rectification * correction.sqrt(), rows) / square.sqrt().add_(options["eps"])
    update = torch.where(rectified, adaptive, 1.0)
    rate = _like(_rate(options) / _correction(rows, beta1), rows)
    rows.param.sub_(mean * rate * update)


def adamax(rows: UpdatedRows, options: Options) -> None:
    """Adamax."""
    grad = _decayed(rows, options)
    beta1, beta2 = options["betas"]
    mean = rows.state["exp_avg"].lerp_(grad, 1 - beta1)
    largest = rows.state["exp_inf"]
    torch.maximum(largest.mul_(beta2), grad.abs().add_(options["eps"]), out=largest)
    rate = _like(_rate(options) / _correction(rows, beta1), rows)
    rows.param.addcdiv_(mean * rate, largest, value=-1)


def _adam_buffers(options: Options) -> dict[str, float]:
    return {"exp_avg": 0.0, "exp_avg_sq": 0.0} | ({"max_exp_avg_sq": 0.0} if options.get("amsgrad") else {})


def _rmsprop_buffers(options: Options) -> dict[str, float]:
    centred = {"grad_avg": 0.0} if options["centered"] else {}
    return {"square_avg": 0.0} | centred | ({"momentum_buffer": 0.0} if options["momentum"] > 0 else {})


RULES: dict[type[optim.Optimizer], OptimizerRule] = {
    optim.SGD: OptimizerRule(
        sgd,
        lambda options: {"momentum_buffer": 0.0} if options["momentum"] != 0 else {},
        counts=lambda options: options["momentum"] != 0,
    ),
    optim.Adagrad: OptimizerRule(adagrad, lambda options: {"sum": options["initial_accumulator_value"]}),
    optim.RMSprop: OptimizerRule(rmsprop, _rmsprop_buffers),
    optim.Adam: OptimizerRule(adam, _adam_buffers),
    optim.AdamW: OptimizerRule(adam, _adam_buffers),
    optim.NAdam: OptimizerRule(nadam, lambda options: {**_adam_buffers(options), "mu_product": 1.0}, ("mu_product",)),
    optim.RAdam: OptimizerRule(radam, _adam_buffers),
    optim.Adamax: OptimizerRule(adamax, lambda options: {"exp_avg": 0.0, "exp_inf": 0.0}),
}
