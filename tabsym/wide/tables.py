"""The parameters of a model as a person reads them: a frame for each block, indexed by symbol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.wide.layout import Block, Layout
from tabsym.wide.model import WideModel
from tabsym.wide.sources import Bins, Crossing, Flag, Rarity, Symbols

COUNT = "count"
OTHER_COUNT = "count of rows"
"""The name of the counts where a class is called "count"."""


class ParameterFrames(Mapping[str, pd.DataFrame]):
    """The blocks of a model by name; a frame is made when it is asked for, kept with the model, and copied for you.

    Parameters
    ----------
    model : WideModel
    outputs : sequence of str
        Names of the K scores.
    """

    def __init__(self, model: WideModel, outputs: Sequence[str]) -> None:
        self._model, self._outputs = model, tuple(outputs)
        self._places = {block.name: place for place, block in enumerate(model.layout.blocks)}

    def __getitem__(self, name: str) -> pd.DataFrame:
        place = self._places[name]
        made = self._model.shown
        if (place, self._outputs) not in made:
            made[place, self._outputs] = parameter_frame(self._model, place, self._outputs)
        frame: pd.DataFrame = made[place, self._outputs]
        return frame.copy()

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return "\n".join(f"{name}:\n{frame}" for name, frame in self.items())


def parameter_frame(model: WideModel, place: int, outputs: Sequence[str]) -> pd.DataFrame:
    """The parameters of a block, in the user's units; `outputs` names the K scores."""
    block, own = model.layout.blocks[place], model.layout.entries(place)
    names = [f"{output} {r + 1}" if block.rank > 1 else output for r in range(block.rank) for output in outputs]
    values = model.theta[own].reshape(-1, block.rank * model.n_outputs).copy()
    frame = pd.DataFrame(values, index=_index(model.layout, block), columns=names)
    if block.source is not None:
        frame[count_name(outputs)] = model.counts[own][:: block.rank]
    if model.certainty is not None:
        spread = model.certainty.sd[own].reshape(-1, block.rank * model.n_outputs)
        frame[deviation_names(names)] = spread
    return frame


def deviation_names(values: Iterable[str]) -> list[str]:
    """The columns of the standard deviations of columns of values."""
    names = list(values)
    return ["sd"] if len(names) == 1 else [f"sd {name}" for name in names]


def count_name(outputs: Sequence[str]) -> str:
    """The column of the training rows."""
    return OTHER_COUNT if COUNT in outputs else COUNT


def split_counts(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series | None]:
    """The values of a block's frame, and its training rows where it has them (a scalar has not)."""
    n_values = frame.shape[1]
    counted = [place for place in range(1, n_values) if frame.columns[place] in (COUNT, OTHER_COUNT)]
    if counted:
        return frame.iloc[:, : counted[-1]], frame.iloc[:, counted[-1]]
    if n_values % 2 == 0 and list(frame.columns[n_values // 2 :]) == deviation_names(frame.columns[: n_values // 2]):
        return frame.iloc[:, : n_values // 2], None
    return frame, None


def deviations(frame: pd.DataFrame) -> pd.DataFrame | None:
    """The standard deviations of a block's frame, where it has them."""
    values, _ = split_counts(frame)
    width = values.shape[1]
    is_known = frame.shape[1] >= 2 * width and list(frame.columns[-width:]) == deviation_names(values.columns)
    return frame.iloc[:, -width:] if is_known else None


def _index(layout: Layout, block: Block) -> pd.Index:
    if block.source is None:
        return pd.Index([block.name], dtype=object)
    source = layout.sources[block.source]
    if isinstance(source, Flag):
        return pd.Index([None], name=source.column, dtype=object)
    if isinstance(source, Rarity):
        return pd.Index(source.labels, name="other rows", dtype=object)
    levels, codes = _levels(layout, block.source)
    if len(levels) == 1:
        return pd.Index(levels[0], name=block.columns[0], dtype=object)
    return _multi_index(levels, codes, list(block.columns))


def _multi_index(levels: list[NDArray[np.object_]], codes: list[NDArray[np.int32]], names: list[str]) -> pd.MultiIndex:
    """From symbols and codes as they are: factorizing the symbols of every entry again takes a hundred times longer."""
    known, places = [], []
    for symbols, own in zip(levels, codes, strict=True):
        present = np.array([symbol is not None for symbol in symbols], dtype=bool)
        known.append(pd.Index(symbols[present], dtype=object))
        renumbered = np.where(present, np.cumsum(present) - 1, -1)  # missing is no level, but a code of -1
        places.append(renumbered[own])
    return pd.MultiIndex(levels=known, codes=places, names=names, verify_integrity=False)  # type: ignore[arg-type]


def _levels(layout: Layout, place: int) -> tuple[list[NDArray[np.object_]], list[NDArray[np.int32]]]:
    """The symbols of each position of a source, and the codes of its entries there."""
    source = layout.sources[place]
    if isinstance(source, Symbols):
        return [source.alphabet.symbols], [np.arange(len(source), dtype=np.int32)]
    if isinstance(source, Bins):
        return [np.array(source.labels, dtype=object)], [np.arange(len(source), dtype=np.int32)]
    assert isinstance(source, Crossing)
    left, right = source.cross.pairs()
    levels, codes = _levels(layout, source.left)
    more, (last,) = _levels(layout, source.right)
    return levels + more, [own[left] for own in codes] + [last[right]]
