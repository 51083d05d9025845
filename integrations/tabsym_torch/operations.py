"""The way through torch's operations, on any device: the estimator's gradients, and the rows that they move.

`compiled` does the same for plain tables in the CPU's memory.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tabsym_torch.counting import CountedParameter, Present
from tabsym_torch.rules import OptimizerRule, Options, UpdatedRows
from tabsym_torch.state import STEP, PresentRows, State, by_symbol, column


class Move(NamedTuple):
    """What a step does to a table: the present categories and their gradient under the estimator."""

    table: CountedParameter
    entries: PresentRows
    grads: Tensor  # (n, width)


def estimate(table: CountedParameter, found: Present, whole: int) -> Move:
    """The gradients of the present categories under the estimator.

    `whole`: the rows by which the mean loss divided; of a sum, the processes
    by which its gradient was divided.
    """
    gradient = table.parameter.grad
    assert gradient is not None
    if table.rescaled is not None:
        entries, n_batches = table.rescaled
        if n_batches != len(table.batches):
            raise RuntimeError(f"A backward pass came after rescale() of {table.name}; call it after the last one.")
        return Move(table, entries, _rows_of(gradient, entries))
    entries = found.entries
    grads = _rows_of(gradient, entries)
    wide = torch.promote_types(grads.dtype, torch.float32)  # rows and counts are beyond half precision
    factor = found.counts.to(wide).reciprocal_().mul_(whole)
    if table.numeric is not None:  # they are left to the ordinary gradient
        factor[torch.isin(entries.symbols, table.numeric)] = 1.0
    return Move(table, entries, (grads * factor.unsqueeze(1)).to(grads.dtype))


def move_rows(move: Move, rule: OptimizerRule, state: State) -> None:
    """Move the present categories of a table by the optimizer's rule, and nothing else."""
    table, entries, options = move.table, move.entries, move.table.options
    if not len(entries):
        return
    buffers = buffers_of(rule, options)
    make_buffers(buffers, rule, state, table)
    rows = {name: entries.take(state[name]) for name in buffers}
    param = entries.take(table.parameter.data)
    if STEP in rows:
        rows[STEP].add_(1)
    rule.update(UpdatedRows(param, move.grads, rows), options)
    entries.put(table.parameter.data, param)
    for name, of_present in rows.items():
        entries.put(state[name], of_present)


def buffers_of(rule: OptimizerRule, options: Options) -> dict[str, float]:
    """The state that a rule needs by its options of now: names, and what it begins with."""
    buffers = rule.buffers(options)
    if rule.counts(options):
        buffers[STEP] = 0.0
    return buffers


def make_buffers(buffers: dict[str, float], rule: OptimizerRule, state: State, table: CountedParameter) -> None:
    """The state that a rule needs, made where a table has none yet."""
    for name, value in buffers.items():
        if name not in state:
            state[name] = _new_buffer(name, value, rule, table)


def _new_buffer(name: str, value: float, rule: OptimizerRule, table: CountedParameter) -> Tensor:
    if name == STEP or name in rule.columns:
        return column(table.parameter, table.dim, value, torch.float64 if name == STEP else None)
    return torch.full_like(table.parameter.data, value)


def _rows_of(gradient: Tensor, entries: PresentRows) -> Tensor:
    """The gradient's rows of the present categories."""
    if not gradient.is_sparse:
        return entries.take(gradient)
    gradient = gradient.coalesce()
    symbols, held, values = entries.symbols, gradient.indices()[0], gradient.values()
    if held.shape == symbols.shape and torch.equal(held, symbols):
        return values
    rows = torch.zeros((len(symbols), values.shape[1]), dtype=values.dtype, device=values.device)
    positions = torch.searchsorted(symbols, held).clamp_(max=max(len(symbols) - 1, 0))
    known = symbols[positions] == held
    return rows.index_copy_(0, positions[known], values[known])


def put_gradient(move: Move) -> None:
    """Write the estimator's gradient over the ordinary one."""
    parameter = move.table.parameter
    assert parameter.grad is not None
    if parameter.grad.is_sparse:
        symbols = move.entries.symbols.unsqueeze(0)
        parameter.grad = torch.sparse_coo_tensor(
            symbols, move.grads, parameter.shape, is_coalesced=True, check_invariants=False
        )
    else:
        by_symbol(parameter.grad, move.table.dim).index_copy_(0, move.entries.symbols, move.grads)
