"""The way through `kernels`: tables in the CPU's memory as arrays, and the options of an optimizer as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn, optim

from tabsym.messages import plural
from tabsym_torch import kernels
from tabsym_torch.counting import CountedParameter
from tabsym_torch.operations import buffers_of, make_buffers
from tabsym_torch.rules import RULES
from tabsym_torch.state import STEP, State, scalar_dtype

Options = dict[str, Any]
Kind = tuple[int, torch.dtype]  # the parameter group, by its id, and the type of the numbers

COLUMNS = (STEP, "mu_product")
FLOATS = (torch.float32, torch.float64)
NO_STATE = np.zeros((1, 5), np.int64)
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


def is_plain(table: CountedParameter) -> bool:
    """Whether kernels can read a table and its gradient: categories first, in CPU memory, four or eight bytes each.

    Kernels are given addresses: of what this lets through, the numbers lie there.
    """
    weight, gradient = table.parameter, table.parameter.grad
    return (
        table.dim == 0
        and type(weight) is nn.Parameter  # other kinds of tensors may hold their numbers elsewhere
        and weight.is_cpu
        and weight.dtype in FLOATS
        and weight.is_contiguous()
        and type(gradient) is Tensor
        and gradient.dtype is weight.dtype
        and gradient.numel() == weight.numel()
        and not gradient.is_neg()
    )


def has_plain_state(state: State, table: CountedParameter) -> bool:
    """Whether kernels can read what an optimizer keeps of a table."""
    n, dtype = table.parameter.numel(), table.parameter.dtype
    for name, value in state.items():
        if name in COLUMNS:
            fits = value.numel() == table.size and value.dtype is (torch.float64 if name == STEP else scalar_dtype())
        else:
            fits = value.numel() == n and value.dtype is dtype
        if not (fits and type(value) is Tensor and value.is_cpu and value.is_contiguous()):
            return False
    return True


class CountedTables(NamedTuple):
    """Tables whose categories have been counted, to be moved before others are."""

    tables: list[CountedParameter]
    n_rows: list[int]  # of each
    plan: NDArray[np.int64]  # a line for each
    gradients: list[Tensor]  # of each, without gaps: the plan says where they lie
    sparse: list[int]  # which of these are
    alike: dict[Kind, tuple[int, Options]]  # tables that one call of the kernel can move: their number in the plan


class Kernels:
    """Counts and moves the categories of tables by an optimizer's rule, in arrays that are kept from step to step."""

    def __init__(self, optimizer: optim.Optimizer) -> None:
        self._optimizer, self._rule = optimizer, RULES[type(optimizer)]
        self._number, names, self._own = OWN_OPTIONS[type(optimizer)]
        self._state_names = (*names, *COLUMNS)
        self._hits, self._last = np.zeros(0, np.int64), np.full(0, -1, np.int64)  # by category, of any table
        self._distinct, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)  # of one table after the other
        self._found = np.empty((0, 2), np.int64)  # where a table's begin in these, and how many these are

    def count(self, tables: list[CountedParameter], mean: bool) -> CountedTables:
        """Count what was selected in each table since its gradient began; `mean`: whether the loss is one over rows."""
        lines: list[int] = []
        chosen, all_rows, n_pairs = [], [], 0
        gradients: list[Tensor] = []
        sparse: list[int] = []
        alike: dict[Kind, tuple[int, Options]] = {}
        options: Options | None = None
        dtype: torch.dtype | None = None
        number = 0
        for table in tables:
            pairs, n_rows = table.chosen()
            symbols, rows, n = pairs.symbols, pairs.rows, pairs.symbols.numel()
            if not symbols.is_cpu:
                raise RuntimeError(f"{table.name} came to the CPU after a forward pass; move a model before it.")
            parameter = table.parameter
            gradient: Any = parameter.grad
            is_sparse = gradient.is_sparse
            if table.options is not options or parameter.dtype is not dtype:
                options, dtype = table.options, parameter.dtype
                number = alike.setdefault((id(options), dtype), (len(alike), options))[0]
            if is_sparse:
                sparse.append(len(gradients))
                position = 0  # of the sums, which there are not yet
            else:
                gradient = gradient.contiguous()
                position = gradient.data_ptr()
            lines += (
                symbols.data_ptr(),
                n,
                0 if rows is None else rows.data_ptr(),
                pairs.n_rows,
                -1 if table.padding is None else table.padding,
                *parameter.shape,
                parameter.data_ptr(),
                position,
                is_sparse,
                n_rows if mean else 1,
                number,
            )
            chosen.append(pairs)  # whose memory the kernel is to read
            gradients.append(gradient)
            all_rows.append(n_rows)
            n_pairs += n
        self._make_room(tables, n_pairs)
        plan = np.array(lines, np.int64).reshape(len(tables), -1)
        wrong = kernels.count(plan, self._hits, self._last, self._distinct, self._counts, self._found)
        if wrong >= 0:
            table = tables[wrong]
            raise RuntimeError(
                f"{table.name} was called with a code that is none of its {plural(table.size, 'entry', 'entries')}."
            )
        return CountedTables(tables, all_rows, plan, gradients, sparse, alike)

    def _make_room(self, tables: list[CountedParameter], n_pairs: int) -> None:
        size = max([table.size for table in tables])
        if len(self._hits) < size:
            self._hits, self._last = np.zeros(size, np.int64), np.full(size, -1, np.int64)
        if len(self._distinct) < n_pairs:
            self._distinct, self._counts = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
        if len(self._found) < len(tables):
            self._found = np.empty((len(tables), 2), np.int64)

    def move(self, counted: CountedTables) -> None:
        """Move the rows of the present categories."""
        tables, plan = counted.tables, counted.plan
        sums = [self._add_up(counted, position) for position in counted.sparse]  # kept until the kernel has read them
        for position, rows in zip(counted.sparse, sums):
            plan[position, kernels.GRADIENT] = rows.data_ptr()
        for kind, (number, options) in counted.alike.items():
            buffers = buffers_of(self._rule, options)
            state = self._state(tables, kind, buffers) if buffers else NO_STATE
            numbers = (*_shared(options), *map(float, self._own(options)))
            arrays = plan, state, self._found, self._distinct, self._counts, LIKE[kind[1]], LIKE[scalar_dtype()]
            kernels.move(self._number, number, *arrays, numbers)
        torch.autograd.graph.increment_version([table.parameter for table in tables])

    def _state(self, tables: list[CountedParameter], kind: Kind, buffers: dict[str, float]) -> NDArray[np.int64]:
        """Where the state lies that the rule uses by its options of now, for the tables of a kind."""
        lines: list[int] = []
        names = [name if name in buffers else None for name in self._state_names]
        for table in tables:
            if (id(table.options), table.parameter.dtype) == kind:
                state = self._optimizer.state[table.parameter]
                make_buffers(buffers, self._rule, state, table)
                lines += [state[name].data_ptr() if name else 0 for name in names]
            else:
                lines += [0] * len(names)
        return np.array(lines, np.int64).reshape(len(tables), -1)

    def _add_up(self, counted: CountedTables, position: int) -> Tensor:
        """A sparse gradient by present category.

        By addresses: as arrays of NumPy its parts could no longer grow, in which torch adds the next gradient up.
        """
        gradient = counted.gradients[position]
        first, n = self._found[position].tolist()
        indices, values = gradient._indices()[0].contiguous(), gradient._values().detach().contiguous()
        sums = torch.zeros((n, values.shape[1]), dtype=values.dtype)
        symbols = self._distinct[first : first + n]
        kernels.add_up(indices.data_ptr(), values.data_ptr(), len(indices), symbols, self._last, sums.numpy())
        return sums


def _shared(options: Options) -> tuple[float, float, float, float]:
    """The options that all rules have, as `kernels.move` takes them."""
    decoupled = float(options.get("decoupled_weight_decay", False))
    return float(options["lr"]), float(options["weight_decay"]), decoupled, -1.0 if options["maximize"] else 1.0
