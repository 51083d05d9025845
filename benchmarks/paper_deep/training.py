"""Training a stack of networks: repetitions of one cell, or learning rates to choose among, in one run.

The optimizers treat every number by itself, so networks that share an
optimizer do not touch each other. Their rates may differ: an update of SGD,
Adagrad and Adam is the learning rate times something that does not depend on
it, so a step of rate 1 is taken and scaled by the network's own rate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from networks import NETWORKS, OneHotStack, stack
from problems import Part, Problem
from tabsym_torch import GSE
from torch import Tensor, nn, optim

OPTIMIZERS = {"sgd": optim.SGD, "adagrad": optim.Adagrad, "adam": optim.Adam}
ESTIMATORS = ("gse", "mean")
EVALUATED_AT_ONCE = 2_000


@dataclass(frozen=True)
class Cell:
    """What is trained alike; the estimator is "gse" or "mean" (the ordinary one)."""

    model: str
    optimizer: str
    estimator: str
    batch_size: int


@dataclass(frozen=True)
class Copy:
    """A network of a stack: the seed draws its first values and the order of its rows."""

    seed: int
    rate: float


@dataclass(frozen=True)
class TrainingResult:
    """A number for each network: losses, and accuracy (a regression: RMSE in units of the target)."""

    train_loss: list[float]
    validation_loss: list[float]
    test_loss: list[float]
    test_score: list[float]
    seconds: float


def initial(problem: Problem, model: str, seeds: list[int]) -> nn.Module:
    """Networks with first values drawn from their seeds, as a stack."""
    return stack([_drawn(problem, model, seed) for seed in seeds])


def _drawn(problem: Problem, model: str, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return NETWORKS[model](problem.sizes, problem.n_out)


def train(problem: Problem, cell: Cell, copies: list[Copy], epochs: int) -> TrainingResult:
    """Train networks side by side and score them; seconds are those of the training, of all together."""
    network = initial(problem, cell.model, [copy.seed for copy in copies])
    start = time.perf_counter()
    fit(network, problem.train, cell, copies, epochs)
    seconds = time.perf_counter() - start
    train_loss, _ = scores(network, problem, problem.train)
    validation_loss, _ = scores(network, problem, problem.validation)
    return TrainingResult(train_loss, validation_loss, *scores(network, problem, problem.test), seconds)


def fit(network: nn.Module, rows: Part, cell: Cell, copies: list[Copy], epochs: int) -> None:
    """Epochs of mini-batches, in the order that a network's seed gives; the last batch may be smaller."""
    step = Step(network, cell, [copy.rate for copy in copies])
    generators = [torch.Generator().manual_seed(copy.seed) for copy in copies]
    network.train()
    for _ in range(epochs):
        orders = torch.stack([torch.randperm(len(rows), generator=generator) for generator in generators])
        for chosen in orders.split(cell.batch_size, dim=1):
            if chosen.shape[1] > 1:  # batch norm has no variance of one row
                step.optimizer.zero_grad()
                output = network(rows.codes[chosen.t()])
                losses(output, rows.y[chosen]).mean(1).sum().backward()
                step.take()


class Step:
    """An optimizer's step for networks side by side, each at its own rate."""

    def __init__(self, network: nn.Module, cell: Cell, rates: list[float]) -> None:
        self.parameters = list(network.parameters())
        same = len(set(rates)) == 1
        optimizer = OPTIMIZERS[cell.optimizer](self.parameters, lr=rates[0] if same else 1.0, fused=True)
        self.optimizer = GSE(optimizer, network) if cell.estimator == "gse" else optimizer
        self.rates = None if same else [_rates_of(p, network, torch.tensor(rates)) for p in self.parameters]

    def take(self) -> None:
        """Step; where rates differ, go only that share of the way."""
        if self.rates is None:
            self.optimizer.step()
            return
        before = [parameter.detach().clone() for parameter in self.parameters]
        self.optimizer.step()
        with torch.no_grad():
            for parameter, old, rate in zip(self.parameters, before, self.rates, strict=True):
                torch.lerp(old, parameter, rate, out=parameter.detach())


def _rates_of(parameter: Tensor, network: nn.Module, rates: Tensor) -> Tensor:
    """The rate of each first index of a parameter: a network's number, but in the table of symbols."""
    first = next(module for module in network.modules() if isinstance(module, OneHotStack))
    if parameter is first.weight:
        rates = torch.cat([torch.ones(1), rates.repeat_interleave((len(parameter) - 1) // len(rates))])
    return rates.view(-1, *[1] * (parameter.dim() - 1))


def losses(output: Tensor, y: Tensor) -> Tensor:
    """The loss of each network (first) and row: cross-entropy, or the squared error."""
    if y.is_floating_point():
        return (output.squeeze(2) - y).square()
    return nn.functional.cross_entropy(output.flatten(0, 1), y.flatten(), reduction="none").view(y.shape)


@torch.no_grad()
def scores(network: nn.Module, problem: Problem, part: Part) -> tuple[list[float], list[float]]:
    """Mean loss of each network, and its accuracy (a regression: RMSE)."""
    network.eval()
    n = next(module for module in network.modules() if isinstance(module, OneHotStack)).n
    loss, hits = torch.zeros(n, dtype=torch.float64), torch.zeros(n, dtype=torch.float64)
    for codes, y in zip(part.codes.split(EVALUATED_AT_ONCE), part.y.split(EVALUATED_AT_ONCE), strict=True):
        output = network(codes.unsqueeze(1).expand(-1, n, -1))
        loss += losses(output, y.expand(n, -1)).double().sum(1)
        hits += (output.argmax(2) == y).sum(1)
    loss /= len(part)
    score = problem.scale * loss.sqrt() if problem.regression else hits / len(part)
    return loss.tolist(), score.tolist()
