"""What a step under GSE costs: `python benchmarks/torch/overhead.py [--device cuda]`.

Ratios of processor time (on a GPU: wall time, synchronised) in one run, both
sides in turn, the median over rounds:

- a training step (zero_grad, forward, backward, step) of small networks over
  nine columns at batch 128, under GSE against the optimizer alone;
- a step on an embedding of a million rows: GSE with Adam against dense Adam
  and against SparseAdam, the optimizer's step alone and the training step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from tabsym_torch import GSE, OneHotLinear
from torch import nn

ALPHABETS = [2, 3, 5, 7, 9, 14, 16, 41, 90]
BATCH = 128
ROUNDS, STEPS = 40, 10
Step = Callable[[], object]


def clock(device: str) -> float:
    """Processor time of this thread; on a GPU what a wall clock says once the device is done."""
    if device == "cpu":
        return time.thread_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def ratio(step: Step, peer: Step, device: str) -> tuple[float, float, float]:
    """Median of the ratio over rounds, and of both sides' microseconds a step."""
    for _ in range(3 * STEPS):
        step(), peer()
    times = [(_time(step, device), _time(peer, device)) for _ in range(ROUNDS)]
    mine, other = zip(*times)
    return statistics.median(a / b for a, b in times), statistics.median(mine), statistics.median(other)


def _time(step: Step, device: str) -> float:
    start = clock(device)
    for _ in range(STEPS):
        step()
    return (clock(device) - start) / STEPS * 1e6


def network(widths: list[int], device: str) -> nn.Module:
    """An MLP whose first layer is over one-hot columns."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [OneHotLinear(ALPHABETS, widths[0])]
    for narrow, wide in zip(widths, [*widths[1:], 1]):
        layers += [nn.ReLU(), nn.Linear(narrow, wide)]
    return nn.Sequential(*layers).to(device)


class Embedded(nn.Module):
    """An embedding for each column, side by side, under an MLP."""

    def __init__(self, width: int, device: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.columns = nn.ModuleList(nn.Embedding(size, 4) for size in ALPHABETS)
        self.head = nn.Sequential(nn.Linear(4 * len(ALPHABETS), width), nn.ReLU(), nn.Linear(width, 1))
        self.to(device)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Scores (n, 1)."""
        return self.head(torch.cat([column(codes[:, j]) for j, column in enumerate(self.columns)], dim=1))


def batches(device: str, n: int = 64) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Rows whose symbols are unevenly frequent, as in tables."""
    torch.manual_seed(1)
    codes = [torch.stack([(torch.rand(BATCH) ** 2 * size).long() for size in ALPHABETS], 1) for _ in range(n)]
    return [(each.to(device), torch.randint(0, 2, (BATCH, 1)).float().to(device)) for each in codes]


def training_step(model: nn.Module, optimizer: torch.optim.Optimizer, data: list) -> Step:
    """One step after the other over some batches."""
    place = iter(range(1 << 60))

    def step() -> None:
        codes, y = data[next(place) % len(data)]
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(codes), y).backward()
        optimizer.step()

    return step


def said(share: float, mine: float, other: float, peer: str) -> str:
    """A line's figures."""
    return f"{share:7.3f} of {peer} ({mine:,.0f} : {other:,.0f} us)"


def small_networks(device: str) -> None:
    """The overhead on small networks, a line for each network and optimizer."""
    data = batches(device)
    networks = {
        "MLP [4, 8, 4], OneHotLinear": partial(network, [4, 8, 4], device),
        "MLP [64, 64], OneHotLinear": partial(network, [64, 64], device),
        "nine nn.Embedding, MLP [64]": partial(Embedded, 64, device),
    }
    for name, make in networks.items():
        for optimizer in (torch.optim.SGD, torch.optim.Adagrad, torch.optim.Adam):
            model, other = make(), make()
            own = GSE(optimizer(model.parameters(), lr=0.01), model)
            plain = optimizer(other.parameters(), lr=0.01)
            result = ratio(training_step(model, own, data), training_step(other, plain, data), device)
            print(f"{name:28} {optimizer.__name__:8} {said(*result, 'the plain step')}")


def million_rows(device: str, rows: int = 1_000_000, width: int = 16, batch: int = 1024) -> None:
    """A large table: what a step costs must follow the symbols present."""
    torch.manual_seed(0)
    codes = torch.randint(0, rows, (batch,), device=device)

    def step_of(make: Callable, sparse: bool, gse: bool, whole: bool) -> Step:
        table = nn.Embedding(rows, width, sparse=sparse, device=device)
        optimizer = make(table.parameters(), lr=0.01)
        optimizer = GSE(optimizer, table) if gse else optimizer

        def both() -> None:
            optimizer.zero_grad()
            table(codes).square().sum(1).mean().backward()
            optimizer.step()

        both()
        return both if whole else optimizer.step

    adam, sparse_adam = torch.optim.Adam, torch.optim.SparseAdam
    for whole, what in ((False, "optimizer step"), (True, "training step")):
        mine = step_of(adam, True, True, whole)
        for name, peer in {
            "dense Adam": step_of(adam, False, False, whole),
            "SparseAdam": step_of(sparse_adam, True, False, whole),
        }.items():
            result = ratio(mine, peer, device)
            print(f"a million rows, {what}: GSE-Adam {said(*result, name)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {arguments.device}, one thread")
    small_networks(arguments.device)
    million_rows(arguments.device)
