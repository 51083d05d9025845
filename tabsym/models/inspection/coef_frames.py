"""Reported coefficients: frames by term, and products as factors with mean 1 and a common scale.

The factors of a product are identified up to constants. They are reported divided by their mean, so that 1.2 is 20 %
above the average row, with the product of the means as the scale of the term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.design.model_spec import Block, ModelSpec, Term
from tabsym.design.sources import Bins, CountEffect, Crossing, Flag, Symbols
from tabsym.models.model import WideModel
from tabsym.solvers.newton.certainty import TermCovariance

Floats = NDArray[np.float64]

MIN_MEAN = 0.1
"""Minimum of the mean over the root mean square; factors nearer to 0, as with both signs, are reported unchanged."""


@dataclass(frozen=True)
class Product:
    """A term with several coefficient factors.

    Attributes
    ----------
    name : str
        Name of its scale.
    scale : (K,)
        The product of the means, to the powers of their factors, and of the scalar coefficients.
    means : mapping of block -> (K,)
        The divisors of the factors of each block: their means, for a scalar itself.
    """

    name: str
    scale: Floats
    means: Mapping[int, Floats]


def products_of(model: WideModel) -> list[Product]:
    """The terms whose factors are reported with mean 1: of blocks in one term only."""
    found: list[Product] = []
    for block, term in _told_apart(model.spec).items():
        powers = Counter(factor.block for factor in term.factors)
        means = {one: mean for one in powers if (mean := _means(model, one)) is not None}
        if len(means) == len(powers):
            scale = np.prod([mean ** powers[one] for one, mean in means.items()], axis=0)
            found.append(Product(scale_names(model.spec)[block], scale, means))
    return found


def scale_names(spec: ModelSpec) -> dict[int, str]:
    """The names of the scales of products, by the block of the first factor that is multiplied once."""
    products = _told_apart(spec).items()
    return {
        block: "scale of " + "*".join(spec.blocks[one.block].name for one in term.factors) for block, term in products
    }


def _told_apart(spec: ModelSpec) -> dict[int, Term]:
    """Products of several blocks that no other term uses, by the first one that is multiplied once."""
    found = {}
    for term in spec.fitted_terms:
        powers = Counter(factor.block for factor in term.factors)
        is_own = all(sum(spec.uses[one].values()) == n and spec.blocks[one].rank == 1 for one, n in powers.items())
        first = next((one for one, n in powers.items() if n == 1), None)
        if len(powers) > 1 and is_own and first is not None:
            found[first] = term
    return found


def _means(model: WideModel, block: int) -> Floats | None:
    """The means over training rows (K,); None where one is small relative to the factors."""
    own = model.spec.coefs(block)
    values, weights = model.theta[own], model.weights[own]
    if model.spec.blocks[block].source is None or not weights.sum() > 0.0:
        return values[0] if len(values) == 1 and values.all() else None
    means = np.average(values, axis=0, weights=weights)
    sizes = np.sqrt(np.average(np.square(values), axis=0, weights=weights))
    return means if (np.abs(means) > MIN_MEAN * sizes).all() else None


ROWS, OTHER_ROWS = "rows", "training rows"
"""The name of the column with the number of training rows; the second where a class is called "rows"."""


class CoefficientFrames(Mapping[str, pd.DataFrame]):
    """Mapping from term to coefficient frame; frames are computed on access, cached with the model, and copied.

    Parameters
    ----------
    model : WideModel
    outputs : sequence of str
        Names of the K linear predictors.
    """

    def __init__(self, model: WideModel, outputs: Sequence[str]) -> None:
        self._model, self._outputs = model, tuple(outputs)
        self._indices = {block.name: index for index, block in enumerate(model.spec.blocks)}
        self._scales = {product.name: product for product in products_of(model)}

    def __getitem__(self, name: str) -> pd.DataFrame:
        made, key = self._model.shown, (name, self._outputs)
        if name not in self._indices and name not in self._scales:
            raise KeyError(self._unknown(name))
        if key not in made:
            if name in self._scales:
                scale, index = self._scales[name].scale[None], pd.Index([name], dtype=object)
                made[key] = pd.DataFrame(scale, index=index, columns=list(self._outputs))
            else:
                made[key] = coefficient_frame(self._model, self._indices[name], self._outputs)
        frame: pd.DataFrame = made[key]
        return frame.copy()

    def __iter__(self) -> Iterator[str]:
        return iter([*self._indices, *self._scales])

    def __len__(self) -> int:
        return len(self._indices) + len(self._scales)

    def __repr__(self) -> str:
        return "\n".join(f"{name}:\n{frame}" for name, frame in self.items())

    def keys(self) -> KeysView[str]:
        """The names, without the frames in what is printed."""
        return dict.fromkeys(self).keys()

    def _unknown(self, name: object) -> str:
        """A sentence: of a pair in the other order, and of a column in a formula's term, with the name of the term."""
        names = list(self)
        turned = [one for one in names if isinstance(name, str) and sorted(one.split(":")) == sorted(name.split(":"))]
        of_column = [block.name for block in self._model.spec.blocks if block.columns == (name,)]
        if of_column and not turned:
            return f"There is no term {name!r}; the coefficients of column {name!r} are in the term {of_column[0]!r}."
        shown = turned or names
        more = ", ..." if len(shown) > 10 else ""
        return f"There is no term {name!r}; there is {', '.join(map(repr, shown[:10]))}{more}."


def coefficient_frame(model: WideModel, index: int, outputs: Sequence[str]) -> pd.DataFrame:
    """The coefficients of a term, on the original scale; `outputs` names the K linear predictors."""
    block, own = model.spec.blocks[index], model.spec.coefs(index)
    names = [f"{output} {r + 1}" if block.rank > 1 else output for r in range(block.rank) for output in outputs]
    mean = mean_of_factor(model, index)
    width = block.rank * model.n_outputs
    keys = _index(model.spec, block)
    values = model.theta[own].reshape(-1, width)
    frame = pd.DataFrame(values if mean is None else values / mean, index=keys, columns=names)
    if model.certainty is not None:
        covariance = None if mean is None else covariance_of_factor(model, index, mean)
        sd = model.certainty.sd[own]
        if mean is not None:
            sd = sd / np.abs(mean) if covariance is None else np.sqrt(covariance.variances())
        deviations = pd.DataFrame(sd.reshape(-1, width), index=keys, columns=deviation_names(names))
        frame = pd.concat([frame, deviations], axis=1)  # concatenated at once: pandas warns of many insertions
    if block.source is not None:
        frame[rows_name(outputs)] = model.counts[own][:: block.rank]
        source = model.spec.sources[block.source]
        if isinstance(source, Bins):
            low, high = edge_names(names)
            frame[low], frame[high] = edges(source)
    return frame


def mean_of_factor(model: WideModel, index: int) -> Floats | None:
    """The means (K,) that the coefficients of a block are reported over; None where it is no factor of a product."""
    return next((product.means[index] for product in products_of(model) if index in product.means), None)


def covariance_of_factor(model: WideModel, index: int, mean: Floats) -> TermCovariance | None:
    """Covariance of the factors of a product divided by their means (K,), by the delta method."""
    assert model.certainty is not None
    own, found = model.spec.coefs(index), model.certainty.covariances
    if not found or (raw := found[index]) is None:
        return None
    shares = model.weights[own] if model.spec.blocks[index].source is not None else np.ones(1)
    shares = shares / shares.sum()
    centre = np.einsum("q,kqr->kr", shares, raw.factor)
    relative = (model.theta[own] / mean).T[:, :, None]
    factor = (raw.factor - relative * centre[:, None]) / mean[:, None, None]
    return TermCovariance(raw.own / mean**2, factor, unknown=raw.unknown)


def edge_names(outputs: Iterable[str]) -> tuple[str, str]:
    """Names of the columns with the bounds of bins; different ones where a class has such a name."""
    return ("bin low", "bin high") if {"low", "high"} & set(outputs) else ("low", "high")


def edges(source: Bins) -> tuple[Floats, Floats]:
    """The exact bounds of bins ``(low, high]``, NaN for missing values."""
    missing = [np.nan] * source.missing
    return (
        np.concatenate([missing, [-np.inf], source.bounds]),
        np.concatenate([missing, source.bounds, [np.inf]]),
    )


def deviation_names(values: Iterable[str]) -> list[str]:
    """Names of the columns with the standard deviations of columns of values."""
    names = list(values)
    return ["sd"] if len(names) == 1 else [f"sd {name}" for name in names]


def rows_name(outputs: Iterable[str]) -> str:
    """Name of the column with the number of training rows."""
    return OTHER_ROWS if ROWS in outputs else ROWS


@dataclass(frozen=True)
class Split:
    """The columns of a frame of `coefs_`: values (categories, width); deviations, rows and bounds, or None."""

    values: pd.DataFrame
    sd: pd.DataFrame | None
    rows: pd.Series | None
    low: pd.Series | None
    high: pd.Series | None


def split_frame(frame: pd.DataFrame, width: int) -> Split:
    """Split a frame of `coefs_` with `width` columns of values."""
    values = frame.iloc[:, :width]
    has_sd = list(frame.columns[width : 2 * width]) == deviation_names(map(str, values.columns))
    columns, beside = list(map(str, values.columns)), frame.columns[width:]
    rows, low, high = (frame[name] if name in beside else None for name in (rows_name(columns), *edge_names(columns)))
    return Split(values, frame.iloc[:, width : 2 * width] if has_sd else None, rows, low, high)


def _index(spec: ModelSpec, block: Block) -> pd.Index:
    if block.source is None:
        return pd.Index([block.name], dtype=object)
    source = spec.sources[block.source]
    if isinstance(source, Flag):
        return pd.Index([None], name=source.column, dtype=object)
    if isinstance(source, CountEffect):
        return pd.Index(source.labels, name="other rows", dtype=object)
    levels, codes = categories_by_position(spec, block.source)
    if len(levels) == 1:
        return pd.Index(levels[0], name=block.columns[0], dtype=object)
    return _multi_index(levels, codes, list(block.columns))


def _multi_index(levels: list[NDArray[np.object_]], codes: list[NDArray[np.int32]], names: list[str]) -> pd.MultiIndex:
    """From given categories and codes, far faster than factorizing the categories of all coefficients
    (`benchmarks/evidence/constants_models.md`).
    """
    known, indices = [], []
    for categories, own in zip(levels, codes, strict=True):
        present = np.array([category is not None for category in categories], dtype=bool)
        known.append(pd.Index(categories[present], dtype=object))
        renumbered = np.where(present, np.cumsum(present) - 1, -1)  # missing is not a level, but the code -1
        indices.append(renumbered[own])
    return pd.MultiIndex(levels=known, codes=indices, names=names, verify_integrity=False)  # type: ignore[arg-type]


def categories_by_position(spec: ModelSpec, index: int) -> tuple[list[NDArray[np.object_]], list[NDArray[np.int32]]]:
    """The categories of each position of a source, and the codes of its coefficients there."""
    source = spec.sources[index]
    if isinstance(source, Symbols):
        return [source.alphabet.symbols], [np.arange(len(source), dtype=np.int32)]
    if isinstance(source, Bins):
        return [np.array(source.labels, dtype=object)], [np.arange(len(source), dtype=np.int32)]
    if isinstance(source, Flag):
        return [np.array([None], dtype=object)], [np.zeros(1, dtype=np.int32)]
    assert isinstance(source, Crossing)
    left, right = source.interaction.pairs()
    levels, codes = categories_by_position(spec, source.left)
    more, (last,) = categories_by_position(spec, source.right)
    return levels + more, [own[left] for own in codes] + [last[right]]
