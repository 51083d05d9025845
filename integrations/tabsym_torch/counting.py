"""Which categories a batch selects: counted in forward hooks, kept once a backward pass has come by.

An evaluation between two steps leaves no trace: a call of a module counts
only when a gradient reaches its output. Calls that one backward pass reaches
are one batch (a table read by two columns); the next backward pass is a
further micro-batch, whose counts add up as gradients do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling

from tabsym.messages import plural
from tabsym_torch.layers import OneHotLinear
from tabsym_torch.state import PresentRows, Slice

NO_HANDLE = -1  # torch numbers the handles of a tensor's hooks from 0


class Pairs(NamedTuple):
    """What the rows of one call select: entry `symbols[i]` by row `rows[i]`, rising."""

    symbols: Tensor  # int64, of any shape, without gaps
    rows: Tensor | None  # None: row by row, as many for each
    n_rows: int
    disjoint: bool  # no row selects an entry twice


class Present(NamedTuple):
    """The categories of a step: where, and the rows that select each; all rows."""

    entries: PresentRows
    counts: Tensor
    n_rows: int


@dataclass(eq=False)
class CountedParameter:
    """A categorical parameter: one entry per category along `dim`, and what was counted since its gradient began."""

    name: str
    parameter: nn.Parameter
    dim: int = 0
    padding: int | None = None  # an entry that never moves
    numeric: Tensor | None = None  # entries that every row selects: the numeric inputs of a linear layer
    reached: list[_ModuleCall] = field(default_factory=list)  # by the backward pass that is under way,
    backward: int = -1  # which one
    batches: list[list[Pairs | Tensor]] = field(default_factory=list)
    version: tuple[int, int] = (0, 0)  # which tensor the gradient was when the last batch was added, and its version
    rescaled: tuple[PresentRows, int] | None = (
        None  # entries whose gradient is the estimator's already; batches by then
    )
    options: dict[str, Any] = field(default_factory=dict)  # the parameter group
    size: int = 0  # number of categories
    watched: bool = False

    def __post_init__(self) -> None:
        self.size = self.parameter.shape[self.dim]

    def watch(self) -> None:
        """Hear of the gradient, from the first call on that has one: a frozen parameter takes no hook."""
        self.parameter.register_post_accumulate_grad_hook(self.close)
        self.watched = True

    def keep_up(self) -> None:
        """Raise where the parameter is not what it was; forget what was counted for a gradient cleared since."""
        if self.parameter.shape[self.dim] != self.size:
            raise RuntimeError(
                f"{self.name} had {plural(self.size, 'entry', 'entries')} when GSE was made, and has "
                f"{self.parameter.shape[self.dim]} now; make GSE anew."
            )
        if self.batches and self.gradient_is_new():
            self.forget()

    def forget(self) -> None:
        """Start counting anew, as a gradient does that is set to zero."""
        self.reached, self.batches, self.rescaled = [], [], None

    def close(self, _: Any = None) -> None:
        """The backward pass has added its gradient: its calls are one batch."""
        reached = self.reached
        if reached:
            self.batches.append([call.noted for call in reached])
            for call in reached:
                call.counted = self.batches
            self.reached = []
        self.note_version()

    def note_version(self) -> None:
        """Remember the gradient as it is, by which it has not been cleared since."""
        gradient = self.parameter.grad
        self.version = (0, -1) if gradient is None else (id(gradient), gradient._version)

    def gradient_is_new(self) -> bool:
        """Whether the gradient was cleared, by whomever; `model.zero_grad(set_to_none=False)` tells nobody."""
        gradient = self.parameter.grad
        if gradient is None:
            return True
        if (id(gradient), gradient._version) == self.version:
            return False
        values = gradient.coalesce().values() if gradient.is_sparse else gradient
        return not bool(values.any())

    def present(self) -> Present:
        """The categories counted since the gradient began, over all micro-batches; numeric entries always."""
        symbols, n_rows = self.selected()
        if self.numeric is None:
            return count_rows(symbols, n_rows, self)
        counts = torch.bincount(symbols, minlength=self.size)
        counts[self.numeric] = max(n_rows, 1)
        return _of_counts(counts, n_rows, self.dim)

    def chosen(self) -> tuple[Pairs, int]:
        """What rows select, counted or not: the pairs of a single call as they are; how many rows there are."""
        batches = self.batches
        if len(batches) == 1 and len(batches[0]) == 1:
            pairs = _pairs(batches[0][0])
            return pairs, pairs.n_rows
        symbols, n_rows = self.selected()
        return Pairs(symbols, None, len(symbols), True), n_rows

    def selected(self) -> tuple[Tensor, int]:
        """Every category as often as rows select it, and how many rows there are."""
        if len(self.batches) == 1:
            return self._distinct(self.batches[0])
        if not self.batches:
            return torch.empty(0, dtype=torch.long, device=self.parameter.device), 0
        symbols, sizes = zip(*map(self._distinct, self.batches))
        return torch.cat(symbols), sum(sizes)

    def _distinct(self, noted: list[Pairs | Tensor]) -> tuple[Tensor, int]:
        """Categories of a batch, each as often as rows select it: twice in a row counts once."""
        batch = [_pairs(of_call) for of_call in noted]
        first = batch[0]
        if len(batch) == 1 and first.disjoint:
            return first.symbols.reshape(-1), first.n_rows
        sizes = sorted({pairs.n_rows for pairs in batch})
        if len(sizes) > 1:
            raise ValueError(
                f"{self.name} was called with {' and '.join(map(str, sizes))} rows before one backward pass, so that "
                "its rows cannot be counted together; call backward once for each batch."
            )
        keys = torch.cat([_row_numbers(pairs) * self.size + pairs.symbols.reshape(-1) for pairs in batch])
        return torch.unique(keys) % self.size, first.n_rows


def count_rows(symbols: Tensor, n_rows: int, table: CountedParameter) -> Present:
    """Distinct categories but the padding, rising, and how often each occurs."""
    size, padding = table.size, table.padding
    if size > 8 * symbols.numel():  # a count per category of the table would cost more than sorting the batch
        distinct, counts = torch.unique(symbols, return_counts=True)
        keep = slice(None) if padding is None else distinct != padding
        return Present(PresentRows(distinct[keep], table.dim), counts[keep], n_rows)
    counts = torch.bincount(symbols, minlength=size)
    if not padding:  # none, or the first
        first = 0 if padding is None else 1
        some = counts.narrow(0, first, size - first)
        if some.all().item():
            return Present(Slice(first, size - first, table.dim, some.device), some, n_rows)
    if padding is not None:
        counts[padding] = 0
    return _of_counts(counts, n_rows, table.dim)


def _of_counts(counts: Tensor, n_rows: int, dim: int) -> Present:
    symbols = counts.nonzero().squeeze(1)
    return Present(PresentRows(symbols, dim), counts[symbols], n_rows)


def _pairs(noted: Pairs | Tensor) -> Pairs:
    """What was noted of a call; codes alone are those of one row after the other.

    Pairs are made in a step, for one table after the other: in the midst of
    a pass through the network the same takes three times as long.
    """
    if isinstance(noted, Pairs):
        return noted
    n_rows = noted.shape[0] if noted.dim() else 1
    return Pairs(noted.contiguous(), None, n_rows, noted.numel() == n_rows)


def _row_numbers(pairs: Pairs) -> Tensor:
    """The row of each pair; where no row selects twice, pairs stand row by row."""
    if pairs.rows is not None:
        return pairs.rows
    per_row = pairs.symbols.numel() // max(pairs.n_rows, 1)
    return torch.arange(pairs.n_rows, device=pairs.symbols.device).repeat_interleave(per_row)


def _own(codes: Tensor) -> Tensor:
    """A copy: who fills the same buffer with the next batch must not change what was counted."""
    return codes.clone() if codes.dtype is torch.int64 else codes.to(torch.int64)


def embedding_pairs(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """What the rows (the first dimension) of an Embedding's input select: its codes; a step makes pairs of these."""
    codes: Tensor = args[0] if args else kwargs["input"]
    return codes.clone() if codes.dtype is torch.int64 else codes.to(torch.int64)  # _own, without the call


def bag_pairs(module: nn.EmbeddingBag, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pairs | Tensor:
    """What the bags of an EmbeddingBag select: rows of a matrix, or pieces of a vector between offsets."""
    codes = args[0] if args else kwargs["input"]
    if codes.dim() != 1:
        return embedding_pairs(module, args, kwargs)
    offsets = args[1] if len(args) > 1 else kwargs["offsets"]
    n_rows = len(offsets) - bool(module.include_last_offset)
    positions = torch.arange(len(codes), device=codes.device)
    rows = torch.searchsorted(offsets[:n_rows].long().contiguous(), positions, right=True) - 1
    return Pairs(_own(codes), rows, n_rows, False)


def one_hot_pairs(module: OneHotLinear, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pairs:
    """What the rows of a OneHotLinear's input select; columns do not share categories."""
    selected = module.selected
    if selected is None:
        raise RuntimeError(
            f"The forward of {type(module).__name__} must set self.selected, the rows of weight it reads."
        )
    if selected.dtype is not torch.int64 or not selected.is_contiguous():  # of a layer of one's own
        selected = selected.to(torch.int64).contiguous()
    return Pairs(selected, None, selected.shape[0], True)


def linear_pairs(columns: Tensor, module: nn.Linear, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pairs:
    """The one-hot columns of a linear layer's input that are not zero, row by row."""
    x = (args[0] if args else kwargs["input"]).detach()
    x = x.reshape(1, -1) if x.dim() == 1 else x
    hot = x.index_select(-1, columns.to(x.device)) != 0
    hot = hot.flatten(1, -2).any(1) if hot.dim() > 2 else hot
    rows, positions = hot.nonzero(as_tuple=True)
    return Pairs(columns.to(x.device)[positions], rows, len(hot), True)


class ForwardHook:
    """Notes what a call of a module selects, for when a gradient reaches the call's output.

    A copy of the module (copy.deepcopy, torch.save of a whole module) counts
    for nobody: it gets a hook that does nothing.
    """

    def __init__(self, table: CountedParameter, pairs_of: Callable[..., Pairs | Tensor]) -> None:
        self.table, self.pairs_of = table, pairs_of

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        """Called by torch after `module.forward`."""
        if is_dynamo_compiling():
            self._note_uncompiled(module, args, kwargs, output)
        elif output.requires_grad:
            table = self.table
            if not table.watched:
                table.watch()
            _on_gradient(output, _ModuleCall(table, self.pairs_of(module, args, kwargs)))

    @torch.compiler.disable
    def _note_uncompiled(self, *call: Any) -> None:
        self(*call)

    def __reduce__(self) -> tuple[Any, ...]:
        return _no_hook, ()


def _on_gradient(output: Tensor, call: _ModuleCall) -> None:
    """`output.register_hook(call)`; without the handle that would remove it, which takes two thirds of its time."""
    node = output.grad_fn
    if type(output) is not Tensor or output._backward_hooks is not None or node is None:
        output.register_hook(call)
        return
    hooks: OrderedDict[int, Any] = OrderedDict()
    hooks[NO_HANDLE] = call
    output._backward_hooks = hooks
    node._register_hook_dict(output)


class _ModuleCall:
    """One call of a module; counted once, however many backward passes add to the gradient through it."""

    __slots__ = ("counted", "noted", "table")

    def __init__(self, table: CountedParameter, noted: Pairs | Tensor) -> None:
        self.table, self.noted = table, noted
        self.counted: list[list[Pairs | Tensor]] | None = None

    def __call__(self, gradient: Tensor) -> None:
        """A gradient has reached the call: the first of a gradient that was set to zero starts the count anew."""
        table = self.table
        backward = torch._C._current_graph_task_id()
        if backward != table.backward or not table.reached:
            table.backward, table.reached = backward, []  # of torch.autograd.grad, which adds to no gradient: dropped
            if table.batches and table.gradient_is_new():
                table.forget()
        if self.counted is not table.batches and self not in table.reached:
            table.reached.append(self)


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _no_hook() -> Callable[..., None]:
    return _nothing
