"""Which symbols a batch selects: counted in forward hooks, kept once a backward pass has come by.

An evaluation between two steps leaves no trace: a call of a module counts
only when a gradient reaches its output. Calls that one backward pass reaches
are one batch (a table read by two columns); the next backward pass is a
further micro-batch, whose counts add up as gradients do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tabsym_torch.layers import OneHotLinear
from tabsym_torch.state import Entries


class Pairs(NamedTuple):
    """What the rows of one call select: entry `symbols[i]` by row `rows[i]`."""

    symbols: Tensor
    rows: Tensor | None  # None: no row selects an entry twice, so it need not be known which row it was
    n_rows: int


class Present(NamedTuple):
    """The symbols of a step: distinct, rising; the rows that select each; all rows."""

    symbols: Tensor
    counts: Tensor
    n_rows: int


@dataclass(eq=False)
class Table:
    """A symbolic parameter: one entry per symbol along `dim`, and what was counted since its gradient began."""

    name: str
    parameter: nn.Parameter
    dim: int = 0
    padding: int | None = None  # an entry that never moves
    numeric: Tensor | None = None  # entries that every row selects: the numeric inputs of a linear layer
    reached: list[Pairs] = field(default_factory=list)  # calls of the backward pass that is under way,
    backward: int = -1  # which one
    batches: list[list[Pairs]] = field(default_factory=list)
    version: int = 0  # of the gradient when the last batch was added to it
    rescaled: tuple[Entries, int] | None = None  # entries whose gradient is the estimator's already; batches by then

    @property
    def size(self) -> int:
        """Number of symbols."""
        return self.parameter.shape[self.dim]

    def forget(self) -> None:
        """Start counting anew, as a gradient does that is set to zero."""
        self.reached, self.batches, self.rescaled = [], [], None

    def begin(self) -> None:
        """A gradient has reached a call: the first of a gradient that was set to zero starts the count anew."""
        backward = torch._C._current_graph_task_id()
        if backward == self.backward and self.reached:
            return
        self.backward, self.reached = backward, []  # torch.autograd.grad adds to no gradient: its calls are dropped
        if self.batches and self._gradient_is_new():
            self.forget()

    def close(self, _: Any = None) -> None:
        """The backward pass has added its gradient: its calls are one batch."""
        if self.reached:
            self.batches.append(self.reached)
        self.reached = []
        gradient = self.parameter.grad
        self.version = -1 if gradient is None else gradient._version

    def _gradient_is_new(self) -> bool:
        """Whether the gradient was cleared, by whomever; `model.zero_grad(set_to_none=False)` tells nobody."""
        gradient = self.parameter.grad
        if gradient is None or gradient._version == self.version:
            return gradient is None
        values = gradient.coalesce().values() if gradient.is_sparse else gradient
        return not bool(values.any())

    def present(self) -> Present:
        """The symbols counted since the gradient began, over all micro-batches; numeric entries always."""
        device = self.parameter.device
        selected = [self._distinct(batch) for batch in self.batches]
        n_rows = sum(_rows_of(self.name, batch) for batch in self.batches)
        if len(selected) == 1:
            symbols = selected[0]
        else:
            symbols = torch.cat(selected) if selected else torch.empty(0, dtype=torch.long, device=device)
        symbols, counts = tally(symbols, self.size, self.padding)
        return self._with_numeric(Present(symbols, counts, n_rows))

    def _distinct(self, batch: list[Pairs]) -> Tensor:
        """Symbols of a batch, each as often as rows select it: twice in a row counts once."""
        if len(batch) == 1 and batch[0].rows is None:
            return batch[0].symbols
        keys = torch.cat([_row_numbers(pairs) * self.size + pairs.symbols for pairs in batch])
        return torch.unique(keys) % self.size

    def _with_numeric(self, present: Present) -> Present:
        if self.numeric is None:
            return present
        counts = torch.zeros(self.size, dtype=torch.long, device=self.parameter.device)
        counts[present.symbols] = present.counts
        counts[self.numeric] = max(present.n_rows, 1)
        symbols = counts.nonzero().squeeze(1)
        return Present(symbols, counts[symbols], present.n_rows)


def tally(symbols: Tensor, size: int, padding: int | None = None) -> tuple[Tensor, Tensor]:
    """Distinct symbols but `padding`, rising, and how often each occurs."""
    if size > 8 * symbols.numel():  # a count per symbol of the table would cost more than sorting the batch
        distinct, counts = torch.unique(symbols, return_counts=True)
        keep = slice(None) if padding is None else distinct != padding
        return distinct[keep], counts[keep]
    counts = torch.bincount(symbols, minlength=size)
    if padding is not None:
        counts[padding] = 0
    distinct = counts.nonzero().squeeze(1)
    return distinct, counts[distinct]


def _rows_of(name: str, batch: list[Pairs]) -> int:
    sizes = sorted({pairs.n_rows for pairs in batch})
    if len(sizes) > 1:
        raise ValueError(
            f"{name} was called with {' and '.join(map(str, sizes))} rows before one backward pass, so that its rows "
            "cannot be counted together; call backward once for each batch."
        )
    return sizes[0]


def _row_numbers(pairs: Pairs) -> Tensor:
    """The row of each pair; where no row selects twice, pairs stand row by row."""
    if pairs.rows is not None:
        return pairs.rows
    per_row = pairs.symbols.numel() // max(pairs.n_rows, 1)
    return torch.arange(pairs.n_rows, device=pairs.symbols.device).repeat_interleave(per_row)


def _arguments(names: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    return [args[i] if i < len(args) else kwargs.get(name) for i, name in enumerate(names.split())]


def embedding_pairs(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pairs:
    """What the rows (the first dimension) of an Embedding's input select."""
    (codes,) = _arguments("input", args, kwargs)
    n_rows = codes.shape[0] if codes.dim() else 1
    if codes.numel() == n_rows:
        return Pairs(codes.reshape(-1).long(), None, n_rows)
    rows = torch.arange(n_rows, device=codes.device).repeat_interleave(codes.numel() // max(n_rows, 1))
    return Pairs(codes.reshape(-1).long(), rows, n_rows)


def bag_pairs(module: nn.EmbeddingBag, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pairs:
    """What the bags of an EmbeddingBag select: rows of a matrix, or pieces of a vector between offsets."""
    codes, offsets = _arguments("input offsets", args, kwargs)
    if codes.dim() != 1:
        return embedding_pairs(module, args, kwargs)
    n_rows = len(offsets) - bool(module.include_last_offset)
    places = torch.arange(len(codes), device=codes.device)
    rows = torch.searchsorted(offsets[:n_rows].long().contiguous(), places, right=True) - 1
    return Pairs(codes.long(), rows, n_rows)


def one_hot_pairs(module: OneHotLinear, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pairs:
    """What the rows of a OneHotLinear's input select; columns do not share symbols."""
    rows = module.selected
    return Pairs(rows.reshape(-1), None, rows.shape[0])


def linear_pairs(columns: Tensor, module: nn.Linear, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pairs:
    """The one-hot columns of a linear layer's input that are not zero, row by row."""
    (x,) = _arguments("input", args, kwargs)
    x = x.detach()
    x = x.reshape(1, -1) if x.dim() == 1 else x
    hot = x.index_select(-1, columns.to(x.device)) != 0
    hot = hot.flatten(1, -2).any(1) if hot.dim() > 2 else hot
    rows, places = hot.nonzero(as_tuple=True)
    return Pairs(columns.to(x.device)[places], rows, len(hot))


class ForwardHook:
    """Notes what a call of a module selects, for when a gradient reaches the call's output.

    A copy of the module (copy.deepcopy, torch.save of a whole module) counts
    for nobody: it gets a hook that does nothing.
    """

    def __init__(self, table: Table, pairs_of: Callable[..., Pairs]) -> None:
        self.table, self.pairs_of = table, pairs_of

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        """Called by torch after `module.forward`."""
        if torch.compiler.is_compiling():
            self._note_uncompiled(module, args, kwargs, output)
        elif output.requires_grad:
            output.register_hook(_Call(self.table, self.pairs_of(module, args, kwargs)))

    @torch.compiler.disable
    def _note_uncompiled(self, *call: Any) -> None:
        self(*call)

    def __reduce__(self) -> tuple[Any, ...]:
        return _no_hook, ()


class _Call:
    """One call of a module; counted once, however many backward passes go through it."""

    def __init__(self, table: Table, pairs: Pairs) -> None:
        self.table, self.pairs = table, pairs
        self.counted: list[list[Pairs]] | None = None

    def __call__(self, gradient: Tensor) -> None:
        self.table.begin()
        if self.counted is not self.table.batches:
            self.table.reached.append(self.pairs)
            self.counted = self.table.batches


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _no_hook() -> Callable[..., None]:
    return _nothing
