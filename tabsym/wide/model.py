"""The fitted wide model: arrays and alphabets, apart from how it was trained."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table import Table
from tabsym.wide.kernels import predict_margins
from tabsym.wide.layout import Layout, stack
from tabsym.wide.losses import Loss

Floats = NDArray[np.float64]

INTERCEPT = "(intercept)"


@dataclass(frozen=True)
class WideModel:
    """A trained wide model.

    Attributes
    ----------
    layout : Layout
        Columns, alphabets, crosses and scales.
    loss : Loss
    n_outputs : int
        Scores per row, K: the number of classes for the multinomial loss, else 1.
    state : ((entries + numeric + 1) * K, s)
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
    state: Floats
    counts: NDArray[np.int64]
    target_mean: float
    target_scale: float
    n_steps: int = 0

    def margins(self, table: Table, n_jobs: int | None = None) -> tuple[Floats, NDArray[np.bool_]]:
        """Scores (n, K) in the units of training, and where blocks were unseen (n, blocks)."""
        codes, numbers = self.layout.transform(table, n_jobs)
        matrix, x = stack(self.layout, codes, numbers, len(table), None, n_jobs)
        return predict_margins(matrix.codes, x, self.n_outputs, self.state), matrix.codes < 0

    @property
    def parameters(self) -> Floats:
        """Parameters (entries + numeric + 1, K), in the units of training."""
        return self.state[:, 0].reshape(-1, self.n_outputs)

    def tables(self, columns: list[str]) -> dict[str, pd.DataFrame]:
        """Parameters by block, in original units, indexed by symbol.

        `columns` names the K outputs. Numeric columns and the intercept are
        frames of one row.
        """
        values = self.parameters * self.target_scale
        out: dict[str, pd.DataFrame] = {}
        labels = self._labels()
        start = 0
        for (name, index), size in zip(labels, self.layout.sizes, strict=True):
            frame = pd.DataFrame(values[start : start + size], index=index, columns=columns)
            frame["count"] = self.counts[start : start + size]
            out[name] = frame
            start += size
        intercept = values[-1] + self.target_mean
        for j, numeric in enumerate(self.layout.numerics):
            slope = values[start + j] / numeric.scale
            intercept = intercept - slope * numeric.mean
            out[numeric.name] = _single(numeric.name, slope, columns)
        out[INTERCEPT] = _single(INTERCEPT, intercept, columns)
        return out

    def _labels(self) -> list[tuple[str, pd.Index]]:
        singles = [pd.Index(a.symbols, name=a.name, dtype=object) for a in self.layout.alphabets]
        labels = [(str(index.name), index) for index in singles]
        labels += [(f"{name} is missing", pd.Index([None], name=name, dtype=object)) for name in self.layout.flags]
        pieces = [[symbols] for _, symbols in labels]
        for block in self.layout.crosses:
            left, right = block.cross.pairs()
            parts = [part.take(left) for part in pieces[block.left]] + [pieces[block.right][0].take(right)]
            pieces.append(parts)
            labels.append((":".join(block.names), pd.MultiIndex.from_arrays(parts, names=list(block.names))))
        return labels


def _single(name: str, values: Floats, columns: list[str]) -> pd.DataFrame:
    """A frame of one row, for a slope or the intercept."""
    return pd.DataFrame([values], index=pd.Index([name], dtype=object), columns=columns)


def empty_state(n_rows: int, n_outputs: int, fresh: Floats) -> Floats:
    """State of parameters that have not moved: (n_rows * K, s)."""
    return np.tile(fresh, (n_rows * n_outputs, 1))


def grow_model(model: WideModel, layout: Layout, fresh: Floats) -> WideModel:
    """The model laid out for a grown layout: old entries keep their state, new ones are fresh."""
    old, new = model.layout.sizes, layout.sizes
    if old == new:
        return replace(model, layout=layout)
    n_numeric = len(layout.numerics)
    k = model.n_outputs
    blocks, counts = [], []
    start = 0
    for was, is_now in zip(old, new, strict=True):
        blocks += [model.state[start * k : (start + was) * k], empty_state(is_now - was, k, fresh)]
        counts += [model.counts[start : start + was], np.zeros(is_now - was, dtype=np.int64)]
        start += was
    blocks.append(model.state[-(n_numeric + 1) * k :])
    return replace(model, layout=layout, state=np.concatenate(blocks), counts=np.concatenate(counts))
