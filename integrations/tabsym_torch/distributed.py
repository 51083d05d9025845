"""Counts of several processes, added up: what one process would count in the joined batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed

from tabsym_torch.counting import CountedParameter, Present
from tabsym_torch.state import PresentRows

Group = Any  # a process group, None (all processes) or False (nobody)

AVAILABLE = distributed.is_available()


def workers(group: Group) -> int:
    """How many processes count together."""
    if group is False or not (AVAILABLE and distributed.is_initialized()):
        return 1
    return distributed.get_world_size(group)


def join(present: list[Present], tables: list[CountedParameter], group: Group) -> list[Present]:
    """The categories that are present in any process, with their counts over all.

    Two messages a step, however many tables: how much each process has to
    say, and what. Every process must take part in every step.
    """
    device = tables[0].parameter.device
    starts = _starts(tables)
    rows = torch.tensor([found.n_rows for found in present], device=device)
    symbols = torch.cat([found.entries.symbols + start for found, start in zip(present, starts)])
    counts = torch.cat([found.counts for found in present])
    said = torch.stack([symbols, counts], dim=1)
    pieces = _gather(said, rows, group)
    return _add_up(pieces, starts, tables)


def _starts(tables: list[CountedParameter]) -> list[int]:
    """Where each table's categories begin in one row of numbers for all."""
    starts = [0]
    for table in tables[:-1]:
        starts.append(starts[-1] + table.size)
    return starts


def _gather(said: Tensor, rows: Tensor, group: Group) -> list[tuple[Tensor, Tensor]]:
    """Every process's pairs (category, count) and rows of each table."""
    n_workers = distributed.get_world_size(group)
    head = torch.cat([torch.tensor([len(said)], device=said.device), rows])
    heads = [torch.empty_like(head) for _ in range(n_workers)]
    distributed.all_gather(heads, head, group=group)
    longest = max(int(other[0]) for other in heads)
    padded = torch.zeros((longest, 2), dtype=said.dtype, device=said.device)
    padded[: len(said)] = said
    bodies = [torch.empty_like(padded) for _ in range(n_workers)]
    distributed.all_gather(bodies, padded, group=group)
    return [(body[: int(other[0])], other[1:]) for body, other in zip(bodies, heads)]


def _add_up(pieces: list[tuple[Tensor, Tensor]], starts: list[int], tables: list[CountedParameter]) -> list[Present]:
    said = torch.cat([body for body, _ in pieces])
    rows = torch.stack([of_tables for _, of_tables in pieces]).sum(0).tolist()
    symbols, position = torch.unique(said[:, 0], return_inverse=True)
    counts = torch.zeros_like(symbols).index_add_(0, position, said[:, 1])
    joined = []
    for start, table, n_rows in zip(starts, tables, rows):
        here = (symbols >= start) & (symbols < start + table.size)
        joined.append(Present(PresentRows(symbols[here] - start, table.dim), counts[here], n_rows))
    return joined
