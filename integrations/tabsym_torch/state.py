"""The optimizer's state of a categorical parameter: one row per category, in the optimizer's own `state`.

What torch keeps once per parameter (a step count, a product of momenta) is
kept once per category, as a column. All of it lies in `optimizer.state`, under
torch's names, so that `state_dict` carries it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

STEP = "step"  # updates of each category: torch's name, which load_state_dict does not cast; float64
SEEN = "gse_seen"  # 1 where an optimizer without a rule has moved the category

State = dict[str, Any]


def scalar_dtype() -> torch.dtype:
    """The type in which torch.optim keeps numbers that are one per parameter."""
    return torch.float64 if torch.get_default_dtype() == torch.float64 else torch.float32


def column(parameter: nn.Parameter, dim: int, value: float = 0.0, dtype: torch.dtype | None = None) -> Tensor:
    """One number per category."""
    return torch.full((parameter.shape[dim],), value, dtype=dtype or scalar_dtype(), device=parameter.device)


def is_column(value: Any) -> bool:
    """Whether this holds one number per category; what is as large as the parameter has two dimensions."""
    return isinstance(value, Tensor) and value.dim() == 1


def adopt(state: State, parameter: nn.Parameter, dim: int, by_rule: bool) -> None:
    """Make what an optimizer (or a file) holds once per parameter a column, and bring columns to their type.

    A state that a plain optimizer left is that of categories which have been
    moved already. `by_rule`: whether a rule moves the rows.
    """
    for name, value in list(state.items()):
        if value is None:
            del state[name]
        elif not (isinstance(value, Tensor) and value.shape == parameter.shape):
            dtype = torch.float64 if name == STEP else scalar_dtype()
            numbers = torch.as_tensor(value, dtype=dtype, device=parameter.device)
            state[name] = numbers.reshape(-1).expand(parameter.shape[dim]).clone()
    if state and not by_rule and SEEN not in state:
        state[SEEN] = column(parameter, dim, 1.0)
    if "momentum_buffer" in state and STEP not in state:
        state[STEP] = column(parameter, dim, 1.0, torch.float64)


def check_shapes(name: str, state: State, parameter: nn.Parameter, dim: int) -> None:
    """Raise where a saved state is that of another table."""
    allowed = (tuple(parameter.shape), (parameter.shape[dim],), ())
    for key, value in state.items():
        if isinstance(value, Tensor) and tuple(value.shape) not in allowed:
            raise ValueError(
                f"The saved {key} of {name} has the shape {tuple(value.shape)}, and the table has "
                f"{tuple(parameter.shape)}; load the state of a model with the same numbers of categories."
            )


def by_symbol(tensor: Tensor, dim: int) -> Tensor:
    """A view with categories first."""
    return tensor.t() if dim == 1 else tensor


class PresentRows:
    """The rows of the present categories: taken out of a table, and put back."""

    def __init__(self, symbols: Tensor, dim: int) -> None:
        self.symbols, self.dim = symbols, dim

    def __len__(self) -> int:
        return len(self.symbols)

    def take(self, tensor: Tensor) -> Tensor:
        """Rows of a table, or numbers as a column of one."""
        if is_column(tensor):
            return tensor.index_select(0, self.symbols).unsqueeze(1)
        return by_symbol(tensor, self.dim).index_select(0, self.symbols)

    def put(self, tensor: Tensor, rows: Tensor) -> None:
        """Rows taken go back."""
        if is_column(tensor):
            tensor.index_copy_(0, self.symbols, rows.squeeze(1))
        else:
            by_symbol(tensor, self.dim).index_copy_(0, self.symbols, rows)


class Slice(PresentRows):
    """All categories of a small table are present: rows are the table's own, and change in place."""

    def __init__(self, first: int, n: int, dim: int, device: torch.device) -> None:
        self.first, self.n, self.dim, self.device = first, n, dim, device

    @cached_property
    def symbols(self) -> Tensor:  # type: ignore[override]
        """Their numbers, seldom asked for."""
        return torch.arange(self.first, self.first + self.n, device=self.device)

    def __len__(self) -> int:
        return self.n

    def take(self, tensor: Tensor) -> Tensor:
        """A view of the table's rows."""
        if is_column(tensor):
            return tensor.narrow(0, self.first, self.n).unsqueeze(1)
        return by_symbol(tensor, self.dim).narrow(0, self.first, self.n)

    def put(self, tensor: Tensor, rows: Tensor) -> None:
        """They are there already."""
