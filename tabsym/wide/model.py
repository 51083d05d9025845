"""The fitted wide model: arrays and alphabets, apart from how it was trained."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.codes import UNSEEN
from tabsym.table import Table
from tabsym.wide.kernels import predict_margins
from tabsym.wide.layout import Block, Layout
from tabsym.wide.losses import Loss
from tabsym.wide.optimizers import StateColumns
from tabsym.wide.plan import VECTOR_SPREAD
from tabsym.wide.sources import Bins, Crossing, Flag, Symbols
from tabsym.wide.training import Task

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WideModel:
    """A trained wide model.

    Attributes
    ----------
    layout : Layout
        Columns, alphabets, blocks, terms and scales.
    loss : Loss
    n_outputs : int
        Scores per row, K: the number of classes for the multinomial loss, else 1.
    columns : StateColumns
        What the columns of `state` hold.
    state : (entries * K, width)
        Parameters in the first column, the optimizer's memory in the others.
    counts : (entries,)
        Training rows of each entry.
    target_mean, target_scale : float
        The target was trained as (y - mean) / scale.
    n_steps : int
        Updates so far: what a symbol that enters later has missed.
    """

    layout: Layout
    loss: Loss
    n_outputs: int
    columns: StateColumns
    state: Floats
    counts: NDArray[np.int64]
    target_mean: float
    target_scale: float
    n_steps: int = 0

    @property
    def task(self) -> Task:
        """What the kernels train."""
        layout = self.layout
        vectors = tuple(
            (layout.offsets[place], layout.offsets[place + 1], block.rank)
            for place, block in enumerate(layout.blocks)
            if block.rank > 1
        )
        return Task(layout.compiled.program, self._neutral_of_slots(), self.loss, self.n_outputs, vectors)

    def margins(self, table: Table, n_jobs: int | None = None) -> Floats:
        """Scores (n, K) in the units of training."""
        rows = self.layout.stack(self.layout.code(table, n_jobs), table, None, self.target_scale, n_jobs)
        shown = np.ascontiguousarray(self.state[:, [self.columns.shown]])
        task = self.task
        margins = np.empty((len(table), self.n_outputs))
        predict_margins(rows, task.program, task.neutral, shown, margins)
        return margins

    def first_unseen(self, table: Table) -> tuple[str, int] | None:
        """The first column, and row, that holds a symbol without an entry."""
        codes = self.layout.code(table)
        for (block, columns), column in codes.items():
            source = self.layout.blocks[block].source
            if source is not None and isinstance(self.layout.sources[source], Symbols) and (column == UNSEEN).any():
                return columns[0], int(np.argmax(column == UNSEEN))
        return None

    @property
    def parameters(self) -> Floats:
        """Parameters (entries, K), in the units of training."""
        return self.state[:, self.columns.shown].reshape(-1, self.n_outputs)

    def neutral(self, place: int) -> Floats:
        """What stands for a symbol without an entry in a block (rank, K): 0, or the mean over training rows."""
        block = self.layout.blocks[place]
        if not block.neutral_mean or block.source is None:
            return np.zeros((block.rank, self.n_outputs))
        part = slice(self.layout.offsets[place], self.layout.offsets[place + 1])
        values = self.parameters[part].reshape(-1, block.rank, self.n_outputs)
        counts = self.counts[part].reshape(-1, block.rank)[:, 0]
        if not counts.any():
            return np.full((block.rank, self.n_outputs), block.start)
        return np.asarray(np.average(values, axis=0, weights=counts))

    def _neutral_of_slots(self) -> Floats:
        """Neutral values (slots, K) in the order of the program's slots."""
        layout, program = self.layout, self.layout.compiled.program
        out = np.zeros((len(program.columns), self.n_outputs))
        reads = [layout.reads[place] for place in layout.compiled.reads]
        blocks = {block: self.neutral(block) for block, _ in reads if layout.blocks[block].neutral_mean}
        for slot, column in enumerate(program.columns):
            if column >= 0 and reads[column][0] in blocks:
                out[slot] = blocks[reads[column][0]][program.entries[slot]]
        return out

    def tables(self, columns: list[str]) -> dict[str, pd.DataFrame]:
        """Parameters by block, indexed by symbol, with the count of training rows; scalars are frames of one row.

        In original units where the model is additive, else in those of training.
        `columns` names the K outputs.
        """
        layout = self.layout
        additive = layout.is_additive
        values = self.parameters * (self.target_scale if additive else 1.0)
        if additive:
            values = self._in_original_units(values)
        out: dict[str, pd.DataFrame] = {}
        for place, block in enumerate(layout.blocks):
            part = slice(layout.offsets[place], layout.offsets[place + 1])
            names = [f"{c} {r + 1}" if block.rank > 1 else c for r in range(block.rank) for c in columns]
            frame = pd.DataFrame(
                values[part].reshape(-1, block.rank * self.n_outputs), index=self._index(block), columns=names
            )
            if block.source is not None:
                frame["count"] = self.counts[part][:: block.rank]
            out[block.name] = frame
        return out

    def _in_original_units(self, values: Floats) -> Floats:
        """Undo the scaling of numeric factors: slopes by their scale, and the scalar that stands alone by the means."""
        values = values.copy()
        layout = self.layout
        shift = np.zeros(self.n_outputs)
        alone = None
        for term in layout.terms:
            if not term.factors:
                continue
            factor = term.factors[0]
            part = slice(layout.offsets[factor.block], layout.offsets[factor.block + 1])
            if term.numeric is not None:
                numeric = layout.numerics[term.numeric]
                values[part] /= numeric.scale
                if numeric.mean:
                    shift += term.constant * values[part][0] * numeric.mean
            elif layout.blocks[factor.block].source is None:
                alone = (layout.offsets[factor.block], term.constant)
        if alone is not None:
            entry, constant = alone
            values[entry] += (self.target_mean - shift) / constant
        return values

    def _index(self, block: Block) -> pd.Index:
        if block.source is None:
            return pd.Index([block.name], dtype=object)
        source = self.layout.sources[block.source]
        if isinstance(source, Flag):
            return pd.Index([None], name=source.column, dtype=object)
        levels = self._levels(block.source)
        if len(levels) == 1:
            return pd.Index(levels[0], name=block.columns[0], dtype=object)
        return pd.MultiIndex.from_arrays(levels, names=list(block.columns))

    def _levels(self, place: int) -> list[NDArray[np.object_]]:
        """The symbols of each code of a source, one array per position."""
        source = self.layout.sources[place]
        if isinstance(source, Symbols):
            return [source.alphabet.symbols]
        if isinstance(source, Bins):
            return [np.array(source.labels, dtype=object)]
        assert isinstance(source, Crossing)
        left, right = source.cross.pairs()
        return [level[left] for level in self._levels(source.left)] + [self._levels(source.right)[0][right]]


def starting_state(
    block: Block, n_codes: int, n_outputs: int, columns: StateColumns, rng: np.random.RandomState, steps: int = 0
) -> Floats:
    """State of `n_codes` entries of a block that have not moved: (codes * rank * K, width)."""
    size = n_codes * block.rank * n_outputs
    values = np.full(size, block.start)
    if block.rank > 1:  # equal starts would stay equal
        values = rng.normal(0.0, VECTOR_SPREAD, size)
    return columns.blank(values, steps)


def grow_model(model: WideModel, layout: Layout, rng: np.random.RandomState, steps: int) -> WideModel:
    """The model laid out for a grown layout: old entries keep their state, new ones are neutral and fresh.

    `steps`: the updates that a new entry counts as had (all of them under "mean", none under gse).
    """
    if layout.sizes == model.layout.sizes:
        return replace(model, layout=layout)
    k = model.n_outputs
    states, counts = [], []
    for place, block in enumerate(layout.blocks):
        old = slice(model.layout.offsets[place], model.layout.offsets[place + 1])
        states.append(model.state[old.start * k : old.stop * k])
        counts.append(model.counts[old])
        more = (layout.sizes[place] - model.layout.sizes[place]) // block.rank
        if not more:
            continue
        fresh = starting_state(block, more, k, model.columns, rng, steps)
        if block.neutral_mean and block.rank == 1 and model.counts[old].any():
            neutral = np.tile(model.neutral(place)[0], more)
            fresh = model.columns.blank(neutral, steps)
        states.append(fresh)
        counts.append(np.zeros(more * block.rank, dtype=np.int64))
    return replace(model, layout=layout, state=np.concatenate(states), counts=np.concatenate(counts))
