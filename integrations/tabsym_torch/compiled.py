"""The way through `kernels`: tables in the CPU's memory as arrays, and the options of an optimizer as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
NO_STATE = (0, 0, 0, 0, 0)
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


class Kernels:
    """Counts and moves the symbols of tables by an optimizer's rule, in arrays that are kept from step to step."""

    def __init__(self, optimizer: optim.Optimizer) -> None:
        self._optimizer, self._rule = optimizer, RULES[type(optimizer)]
        self._number, names, self._own = OWN_OPTIONS[type(optimizer)]
        self._state_names = (*names, *COLUMNS)
        self._hits, self._last = np.zeros(0, np.int64), np.full(0, -1, np.int64)  # by symbol, of any table
        self._distinct, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)  # of one table after the other
        self._found = np.empty((0, 2), np.int64)  # where a table's begin in these, and how many these are

    def count(self, tables: list[Table]) -> list[int]:
        """Count what was selected in each table since its gradient began, for `move`; the rows there were for each."""
        lines: list[int] = []
        chosen, rows_of, n_pairs = [], [], 0
        for table in tables:
            pairs, n_rows = table.chosen()
            symbols, rows, n = pairs.symbols, pairs.rows, pairs.symbols.numel()
            lines += (symbols.data_ptr(), n, 0 if rows is None else rows.data_ptr(), pairs.n_rows)
            lines += (-1 if table.padding is None else table.padding, table.size)
            chosen.append(pairs)  # whose memory the kernel is to read
            rows_of.append(n_rows)
            n_pairs += n
        self._make_room(tables, n_pairs)
        plan = np.array(lines, np.int64).reshape(-1, 6)
        wrong = kernels.count(plan, self._hits, self._last, self._distinct, self._counts, self._found)
        if wrong >= 0:
            table = tables[wrong]
            raise RuntimeError(f"{table.name} was called with a code that is none of its {table.size} entries.")
        return rows_of

    def _make_room(self, tables: list[Table], n_pairs: int) -> None:
        size = max([table.size for table in tables])
        if len(self._hits) < size:
            self._hits, self._last = np.zeros(size, np.int64), np.full(size, -1, np.int64)
        if len(self._distinct) < n_pairs:
            self._distinct, self._counts = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
        if len(self._found) < len(tables):
            self._found = np.empty((len(tables), 2), np.int64)

    def move(self, tables: list[Table], wholes: list[int]) -> None:
        """Move the present symbols of the tables just counted; `wholes`: the rows by which each mean loss divided."""
        alike: dict[tuple[int, torch.dtype], list[int]] = {}  # one call: one parameter group, numbers of one type
        for place, table in enumerate(tables):
            alike.setdefault((id(table.options), table.parameter.dtype), []).append(place)
        for places in alike.values():
            self._move_alike(tables, wholes, places)
        torch.autograd.graph.increment_version([table.parameter for table in tables])

    def _move_alike(self, tables: list[Table], wholes: list[int], places: list[int]) -> None:
        options, dtype = tables[places[0]].options, tables[places[0]].parameter.dtype
        buffers = buffers_of(self._rule, options)
        lines: list[int] = []
        gradients = []  # whose memory the kernel is to read
        for place in places:
            table = tables[place]
            parameter, gradient = table.parameter, table.parameter.grad
            assert gradient is not None
            compact = gradient.is_sparse
            gradient = self._sums(gradient, place) if compact else gradient.contiguous()
            gradients.append(gradient)
            lines += (place, wholes[place], compact, *parameter.shape, gradient.data_ptr(), parameter.data_ptr())
            lines += self._state(table, buffers) if buffers else NO_STATE
        plan = np.array(lines, np.int64).reshape(-1, 12)
        numbers = (*_shared(options), *map(float, self._own(options)))
        floats, column_floats = LIKE[dtype], LIKE[scalar_dtype()]
        counted = self._found, self._distinct, self._counts
        kernels.move(self._number, plan, *counted, floats, column_floats, numbers)

    def _state(self, table: Table, buffers: dict[str, float]) -> list[int]:
        """Where the state lies that the rule uses by its options of now."""
        state = self._optimizer.state[table.parameter]
        make_buffers(buffers, self._rule, state, table)
        return [state[name].data_ptr() if name in buffers else 0 for name in self._state_names]

    def _sums(self, gradient: Tensor, place: int) -> Tensor:
        """A sparse gradient, added up by present symbol."""
        first, n = self._found[place].tolist()
        values = gradient._values().detach()
        sums = torch.zeros((n, values.shape[1]), dtype=values.dtype)
        symbols = self._distinct[first : first + n]
        kernels.add_up(gradient._indices()[0].numpy(), values.numpy(), symbols, self._last, sums.numpy())
        return sums


def _shared(options: Options) -> tuple[float, float, float, float]:
    """The options that all rules have, as `kernels.move` takes them."""
    decoupled = float(options.get("decoupled_weight_decay", False))
    return float(options["lr"]), float(options["weight_decay"]), decoupled, -1.0 if options["maximize"] else 1.0
