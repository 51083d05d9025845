"""Any optimizer that moves every number by itself: categories with the same history as one parameter of its own.

Where no rule of `rules.py` says how rows with different numbers of updates
move together, the optimizer itself is asked, once for each distinct history
(its step counts and the like). Exact for every elementwise optimizer; slow
where a batch holds categories of many histories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tabsym_torch.counting import CountedParameter
from tabsym_torch.state import SEEN, State, by_symbol, column, is_column


@dataclass
class Proxy:
    """Some present categories as a parameter of their own, for one step of the optimizer."""

    table: CountedParameter
    symbols: Tensor
    parameter: nn.Parameter

    def load(self, state: State) -> State:
        """The categories' state as the optimizer keeps it for one parameter; empty for those it has not moved."""
        if SEEN not in state or not bool(state[SEEN][self.symbols[0]]):
            return {}
        return {name: self._of_symbols(value) for name, value in state.items() if name != SEEN}

    def _of_symbols(self, value: Tensor) -> Tensor:
        if is_column(value):
            return value[self.symbols[0]].clone()
        return by_symbol(value, self.table.dim)[self.symbols]

    def store(self, state: State, moved: State) -> None:
        """Put parameters and state back into the table."""
        self._put(self.table.parameter.data, self.parameter.data)
        for name, value in {**moved, SEEN: 1.0}.items():
            if isinstance(value, Tensor) and value.shape == self.parameter.shape:
                if name not in state:
                    state[name] = torch.zeros_like(self.table.parameter.data, dtype=value.dtype)
                self._put(state[name], value)
            elif value is not None:
                if name not in state:
                    state[name] = column(self.table.parameter, self.table.dim)
                state[name][self.symbols] = float(value)

    def _put(self, table: Tensor, rows: Tensor) -> None:
        by_symbol(table, self.table.dim).index_copy_(0, self.symbols, rows)


def proxies(table: CountedParameter, symbols: Tensor, grads: Tensor, state: State) -> Iterator[Proxy]:
    """One parameter for each history among the present categories, its gradient in place."""
    values = by_symbol(table.parameter.data, table.dim)
    for positions in _histories(symbols, state):
        proxy = Proxy(table, symbols[positions], nn.Parameter(values[symbols[positions]]))
        proxy.parameter.grad = grads[positions]
        yield proxy


def _histories(symbols: Tensor, state: dict[str, Any]) -> Iterator[Tensor]:
    """Places of present categories whose numbers, one per category, are all the same."""
    columns = [value[symbols].double() for value in state.values() if is_column(value)]
    if not columns:
        yield torch.arange(len(symbols), device=symbols.device)
        return
    distinct, history = torch.unique(torch.stack(columns, dim=1), dim=0, return_inverse=True)
    for i in range(len(distinct)):
        yield (history == i).nonzero().squeeze(1)
