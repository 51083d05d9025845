"""The paper's two kinds of network on symbolic columns, and any number of them trained as one.

A stack holds networks of one shape side by side: dense layers as parameters
of shape (networks, ...), the first layers' tables in one table in which each
network has rows of its own. What a network reads, predicts and gets as
gradient is what it would alone; `tests/integrations/test_paper_deep.py` checks that.
"""

from __future__ import annotations

from typing import Any

import torch
from tabsym_torch import OneHotLinear
from torch import Tensor, nn

MLP_WIDTHS = (4, 8, 4)
RESNET_WIDTH, RESNET_HIDDEN, RESNET_BLOCKS = 16, 32, 2


def mlp(sizes: list[int], n_out: int) -> nn.Sequential:
    """The paper's MLP: hidden layers of 4, 8 and 4 units with ReLU."""
    first, *others = MLP_WIDTHS
    layers: list[nn.Module] = [OneHotLinear(sizes, first)]
    for width_in, width in zip(MLP_WIDTHS, others, strict=False):
        layers += [nn.ReLU(), nn.Linear(width_in, width)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(MLP_WIDTHS[-1], n_out))


class Block(nn.Module):
    """A block of Gorishniy et al. (2021): x + Linear(ReLU(Linear(BatchNorm(x)))); no dropout."""

    def __init__(self, norm: nn.Module, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.norm, self.first, self.second = norm, first, second

    def forward(self, x: Tensor) -> Tensor:
        """What goes in, and what the two layers add."""
        return x + self.second(torch.relu(self.first(self.norm(x))))


def resnet(sizes: list[int], n_out: int) -> nn.Sequential:
    """The ResNet of Gorishniy et al. (2021), small: width 16, 32 within its 2 blocks."""
    width, hidden = RESNET_WIDTH, RESNET_HIDDEN
    blocks = [
        Block(nn.BatchNorm1d(width), nn.Linear(width, hidden), nn.Linear(hidden, width)) for _ in range(RESNET_BLOCKS)
    ]
    head = [nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, n_out)]
    return nn.Sequential(OneHotLinear(sizes, width), *blocks, *head)


NETWORKS = {"mlp": mlp, "resnet": resnet}


class _SumOfEntries(torch.autograd.Function):
    """Rows of a table, summed over the columns of each network; the gradient by index_add_, three times as fast."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Tensor, n: int) -> Tensor:
        """`rows` (batch, n * columns) -> (batch, n, width)."""
        ctx.save_for_backward(rows)
        ctx.n, ctx.size = n, len(weight)
        return weight.index_select(0, rows.reshape(-1)).view(len(rows), n, -1, weight.shape[1]).sum(2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Each entry read gets its network's gradient; row 0, "no symbol", none."""
        (rows,) = ctx.saved_tensors
        batch, n, width = gradient.shape
        each = gradient.unsqueeze(2).expand(batch, n, rows.shape[1] // n, width).reshape(-1, width)
        total = gradient.new_zeros(ctx.size, width).index_add_(0, rows.reshape(-1), each)
        total[0] = 0
        return total, None, None


class OneHotStack(OneHotLinear):
    """First layers: a `OneHotLinear` over the columns of all networks, summed for each network."""

    def __init__(self, layers: list[OneHotLinear]) -> None:
        super().__init__(layers[0].alphabet_sizes * len(layers), layers[0].out_features, bias=False)
        self.n = len(layers)  # networks
        with torch.no_grad():
            self.weight[1:] = torch.cat([layer.weight[1:] for layer in layers])
        self.shift = _stacked([layer.bias for layer in layers])

    def forward(self, codes: Tensor) -> Tensor:
        """`codes` (batch, networks, columns) -> (networks, batch, width)."""
        self.selected = self.rows_of(codes.flatten(1))
        return _SumOfEntries.apply(self.weight, self.selected, self.n).transpose(0, 1) + self.shift.unsqueeze(1)


class LinearStack(nn.Module):
    """Linear layers side by side."""

    def __init__(self, layers: list[nn.Linear]) -> None:
        super().__init__()
        self.weight = _stacked([layer.weight.t() for layer in layers])
        self.bias = _stacked([layer.bias for layer in layers])

    def forward(self, x: Tensor) -> Tensor:
        """(networks, batch, in) -> (networks, batch, out)."""
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight)


class NormStack(nn.Module):
    """Batch norms side by side: every network has its own means and variances."""

    mean: Tensor
    variance: Tensor

    def __init__(self, layers: list[nn.BatchNorm1d]) -> None:
        super().__init__()
        self.weight, self.bias = _stacked([one.weight for one in layers]), _stacked([one.bias for one in layers])
        self.register_buffer("mean", torch.cat([one.running_mean for one in layers]))
        self.register_buffer("variance", torch.cat([one.running_var for one in layers]))

    def forward(self, x: Tensor) -> Tensor:
        """(networks, batch, width) -> the same; networks stand side by side as columns."""
        n, batch, width = x.shape
        flat = x.transpose(0, 1).reshape(batch, n * width)
        weight, bias = self.weight.flatten(), self.bias.flatten()
        normed = nn.functional.batch_norm(flat, self.mean, self.variance, weight, bias, self.training)
        return normed.view(batch, n, width).transpose(0, 1)


def _stacked(parameters: list[Tensor]) -> nn.Parameter:
    return nn.Parameter(torch.stack([parameter.detach() for parameter in parameters]).clone())


def stack(networks: list[Any]) -> nn.Module:
    """Networks of one shape as one, each with the values it has."""
    kinds = {OneHotLinear: OneHotStack, nn.Linear: LinearStack, nn.BatchNorm1d: NormStack}
    kind = type(networks[0])
    if kind in kinds:
        return kinds[kind](networks)
    if kind is Block:
        return Block(*[stack([getattr(one, part) for one in networks]) for part in ("norm", "first", "second")])
    if kind is nn.Sequential:
        return nn.Sequential(*[stack(list(parts)) for parts in zip(*networks, strict=True)])
    return networks[0]  # nothing to learn: ReLU
