"""The way through `kernels`: tables in the CPU's memory as arrays, and the options of an optimizer as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, optim

from tabsym_torch import kernels
from tabsym_torch.counting import Table
from tabsym_torch.operations import buffers_of, make_buffers
from tabsym_torch.rules import RULES
from tabsym_torch.state import STEP, State, scalar_dtype

Options = dict[str, Any]

COLUMNS = (STEP, "mu_product")
FLOATS = (torch.float32, torch.float64)
LIKE = {torch.float32: np.empty(0, np.float32), torch.float64: np.empty(0)}


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
    """Whether kernels can read a table and its gradient: symbols first, in the CPU's memory, four or eight bytes each.

    A sparse gradient is added up by symbol before it gets there.
    """
    weight, gradient = table.parameter, table.parameter.grad
    return (
        table.dim == 0
        and weight.is_cpu
        and weight.dtype in FLOATS
        and weight.is_contiguous()
        and gradient is not None
        and gradient.dtype is weight.dtype
    )


def has_plain_state(state: State, table: Table) -> bool:
    """Whether kernels can read what an optimizer keeps of a table."""
    weight = table.parameter
    for name, value in state.items():
        if name in COLUMNS:
            shape, dtype = weight.shape[:1], torch.float64 if name == STEP else scalar_dtype()
        else:
            shape, dtype = weight.shape, weight.dtype
        if not (value.dtype is dtype and value.is_cpu and value.is_contiguous() and value.shape == shape):
            return False
    return True


class Counted(NamedTuple):
    """A table whose symbols have been counted: as the how manieth, and how many rows there are."""

    table: Table
    index: int
    n_rows: int


class Kernels:
    """Counts and moves the symbols of tables, in arrays that are kept from step to step."""

    def __init__(self) -> None:
        self._hits, self._last = np.zeros(0, np.int64), np.full(0, -1, np.int64)  # by symbol, of any table
        self._distinct, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)  # of one table after the other
        self._found = np.empty((0, 2), np.int64)  # where a table's begin in these, and how many these are

    def count(self, tables: list[Table]) -> list[Counted]:
        """What was counted for each table since its gradient began."""
        counted, lines, kept = [], [], []
        n_pairs = 0
        for table in tables:
            pairs, n_rows = table.chosen()
            symbols, rows = _integers(pairs.symbols), None if pairs.rows is None else _integers(pairs.rows)
            kept.append((symbols, rows))  # until they have been read
            n = symbols.numel()
            lines += [symbols.data_ptr(), n, 0 if rows is None else rows.data_ptr(), max(n // max(pairs.n_rows, 1), 1)]
            lines += [-1 if table.padding is None else table.padding, table.size]
            counted.append(Counted(table, len(counted), n_rows))
            n_pairs += n
        self._make_room(tables, n_pairs)
        plan = np.array(lines, np.int64).reshape(-1, 6)
        wrong = kernels.count(plan, self._hits, self._last, self._distinct, self._counts, self._found)
        if wrong >= 0:
            table = tables[wrong]
            raise RuntimeError(f"{table.name} was called with a code that is none of its {table.size} entries.")
        return counted

    def _make_room(self, tables: list[Table], n_pairs: int) -> None:
        size = max((table.size for table in tables), default=0)
        if len(self._hits) < size:
            self._hits, self._last = np.zeros(size, np.int64), np.full(size, -1, np.int64)
        if len(self._distinct) < n_pairs:
            self._distinct, self._counts = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
        if len(self._found) < len(tables):
            self._found = np.empty((len(tables), 2), np.int64)

    def move(
        self, kind: type[optim.Optimizer], counted: list[Counted], states: Mapping[Tensor, State], mean: bool
    ) -> None:
        """Move the rows of the present symbols; `mean`: whether the loss is one over the rows."""
        for alike in _alike(counted):
            self._move(kind, alike, states, mean)
        torch.autograd.graph.increment_version([found.table.parameter for found in counted])

    def _move(
        self, kind: type[optim.Optimizer], counted: list[Counted], states: Mapping[Tensor, State], mean: bool
    ) -> None:
        """Tables of one parameter group, of numbers of one type."""
        options, dtype = counted[0].table.options, counted[0].table.parameter.dtype
        rule, names, own = OWN_OPTIONS[kind]
        buffers = buffers_of(RULES[kind], options)
        lines, kept = [], []
        for table, index, n_rows in counted:
            parameter, state = table.parameter, states[table.parameter]
            make_buffers(buffers, RULES[kind], state, table)
            gradient, compact = self._gradient(table, index)
            kept.append(gradient)  # until it has been read
            lines += [index, n_rows if mean else 1, compact, table.size, parameter.shape[1]]
            lines += [gradient.data_ptr(), parameter.data_ptr()]
            lines += [state[name].data_ptr() if name in buffers else 0 for name in (*names, *COLUMNS)]
        plan = np.array(lines, np.int64).reshape(-1, 12)
        decoupled = float(options.get("decoupled_weight_decay", False))
        sign = -1.0 if options["maximize"] else 1.0
        numbers = (float(options["lr"]), float(options["weight_decay"]), decoupled, sign, *map(float, own(options)))
        likes = LIKE[dtype], LIKE[scalar_dtype()]
        kernels.move(rule, plan, self._found, self._distinct, self._counts, *likes, numbers)

    def _gradient(self, table: Table, index: int) -> tuple[Tensor, bool]:
        """The gradient without gaps, and whether it holds the present symbols' rows only."""
        gradient = table.parameter.grad
        assert gradient is not None
        if not gradient.is_sparse:
            return gradient.contiguous(), False
        first, n = self._found[index].tolist()
        indices, values = gradient._indices()[0], gradient._values().detach()
        sums = torch.zeros((n, values.shape[1]), dtype=values.dtype)
        arrays = indices.numpy(), values.numpy(), self._distinct[first : first + n]
        kernels.add_up(*arrays, self._last, sums.numpy())
        return sums, True


def _alike(counted: list[Counted]) -> list[list[Counted]]:
    """Tables that one call of the kernel can move: of one parameter group, and of numbers of one type."""
    groups: dict[tuple[int, torch.dtype], list[Counted]] = {}
    for found in counted:
        groups.setdefault((id(found.table.options), found.table.parameter.dtype), []).append(found)
    return list(groups.values())


def _integers(codes: Tensor) -> Tensor:
    """Codes of eight bytes without gaps: the codes themselves, almost always."""
    return codes.to(torch.int64).contiguous()
