"""The way through `kernels`: tables in the CPU's memory as arrays, and the options of an optimizer as numbers."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import optim

from tabsym_torch import kernels
from tabsym_torch.counting import Table
from tabsym_torch.state import STEP, State

Options = dict[str, Any]
Array = NDArray[Any]

NONE, NO_NUMBERS = np.empty(0, np.int64), np.empty(0)
FLOATS = (torch.float32, torch.float64)


def _adam(o: Options) -> tuple[float, ...]:
    return (*o["betas"], o["eps"], 0.0, 0.0, 0.0)


MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
OWN_OPTIONS: dict[type[optim.Optimizer], tuple[int, tuple[str, str, str], Callable[[Options], tuple[float, ...]]]] = {
    optim.SGD: (
        kernels.SGD,
        ("", "", "momentum_buffer"),
        lambda o: (0.0, 0.0, 0.0, o["momentum"], o["dampening"], float(o["nesterov"])),
    ),
    optim.Adagrad: (kernels.ADAGRAD, ("sum", "", ""), lambda o: (0.0, 0.0, o["eps"], o["lr_decay"], 0.0, 0.0)),
    optim.RMSprop: (
        kernels.RMSPROP,
        ("square_avg", "grad_avg", "momentum_buffer"),
        lambda o: (0.0, 0.0, o["eps"], o["alpha"], max(o["momentum"], 0.0), float(o["centered"])),
    ),
    optim.Adam: (kernels.ADAM, MOMENTS, _adam),
    optim.AdamW: (kernels.ADAM, MOMENTS, _adam),
    optim.NAdam: (kernels.NADAM, MOMENTS, lambda o: (*o["betas"], o["eps"], o["momentum_decay"], 0.0, 0.0)),
    optim.RAdam: (kernels.RADAM, MOMENTS, _adam),
    optim.Adamax: (kernels.ADAMAX, ("exp_avg", "exp_inf", ""), _adam),
}
"""Which rule of the kernels; torch's names for its first, second and third table of state; betas, eps and the three
numbers of its own."""


def is_plain(table: Table) -> bool:
    """Whether kernels can read a table: symbols first, in the CPU's memory, numbers of four or eight bytes."""
    weight = table.parameter
    return table.dim == 0 and weight.is_cpu and weight.dtype in FLOATS and weight.is_contiguous()


class Counter:
    """Counts the symbols of a table in arrays that are kept from step to step."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.hits, self.last = np.zeros(table.size, np.int64), np.full(table.size, -1, np.int64)

    def count(self) -> Counted:
        """What was counted since the gradient began."""
        batches, table = self.table.batches, self.table
        if len(batches) == 1 and len(batches[0]) == 1:
            pairs = batches[0][0]
            n_rows, rows, symbols = pairs.n_rows, pairs.rows, pairs.symbols.numpy().reshape(-1)
            per_row = max(len(symbols) // max(n_rows, 1), 1)
        else:
            selected, n_rows = table.selected()
            rows, symbols, per_row = None, selected.numpy(), 1
        distinct, counts = np.empty((2, len(symbols)), np.int64)
        nothing = -1 if table.padding is None else table.padding
        of_rows = NONE if rows is None else rows.numpy()
        n = kernels.count(symbols, of_rows, per_row, nothing, self.hits, self.last, distinct, counts)
        if n < 0:
            raise RuntimeError(f"{table.name} was called with a code that is none of its {table.size} entries.")
        return Counted(self, distinct[:n], counts[:n], n_rows)


class Counted(NamedTuple):
    """The symbols of a step, in any order; the rows that select each; all rows."""

    counter: Counter
    symbols: Array  # (n,)
    counts: Array  # (n,)
    n_rows: int


def move(kind: type[optim.Optimizer], counted: Counted, state: State, buffers: Container[str], whole: float) -> None:
    """Move the rows of the present symbols.

    `buffers`: the state that the rule uses by its options of now; `whole`: the rows by which the mean loss divided.
    """
    table, symbols = counted.counter.table, counted.symbols
    options, parameter = table.options, table.parameter
    rule, names, own = OWN_OPTIONS[kind]
    decoupled = float(options.get("decoupled_weight_decay", False))
    sign = -1.0 if options["maximize"] else 1.0
    numbers = (float(options["lr"]), float(options["weight_decay"]), decoupled, sign, *map(float, own(options)))
    grad, compact = _gradient(counted)
    data = parameter.detach().numpy()
    nothing = data[:0]
    tables = [state[name].numpy() if name in buffers else nothing for name in names]
    columns = [state[name].numpy() if name in buffers else NO_NUMBERS for name in (STEP, "mu_product")]
    arrays: list[Any] = [data, *tables, *columns, numbers]
    kernels.move(rule, symbols, counted.counts, float(whole), grad, compact, *arrays)
    torch.autograd.graph.increment_version(parameter)


def _gradient(counted: Counted) -> tuple[Array, bool]:
    """The gradient as an array, and whether it holds the present symbols' rows only."""
    gradient = counted.counter.table.parameter.grad
    assert gradient is not None
    if not gradient.is_sparse:
        return gradient.detach().numpy(), False
    indices, values = gradient._indices()[0].numpy(), gradient._values().detach().numpy()
    sums = np.zeros((len(counted.symbols), values.shape[1]), values.dtype)
    kernels.add_up(indices, values, counted.symbols, counted.counter.last, sums)
    return sums, True
