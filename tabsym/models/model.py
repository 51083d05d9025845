"""The fitted wide model: arrays and categories, independent of the training method, and its coefficients as frames.

The factors of a product are identified up to constants. They are reported divided by their mean, so that 1.2 is 20 %
above the average row, with the product of the means as the scale of the term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories import UNSEEN
from tabsym.design.model_spec import Block, Compiled, ModelSpec, Program, Rows, Term
from tabsym.design.sources import Bins, CategoricalSource, Coder, CountEffect, Crossing, Flag, Source
from tabsym.design.units import Moments, Units, fixed_score, lay_rows, users_units
from tabsym.frame import Table
from tabsym.losses.loss import Loss
from tabsym.solvers.newton.terms import unordered_ratio
from tabsym.solvers.newton.uncertainty import ORTHOGONAL, TermCovariance, Uncertainty
from tabsym.solvers.sgd.kernels import predict_margins
from tabsym.solvers.sgd.options import StateColumns

Floats = NDArray[np.float64]

CHUNK_CODES = 1 << 21
"""Number of codes per chunk at prediction, so that memory does not grow with rows times terms."""


@dataclass(frozen=True, eq=False)
class WideModel:
    """A trained wide model.

    Attributes
    ----------
    spec : ModelSpec
        Columns, categories, blocks and terms.
    loss : Loss
        With its parameter (huber's delta) on the scale of the target.
    n_outputs : int
        Linear predictors per row, K: the number of classes for the multinomial loss, else 1.
    theta : (coefficients, K)
        Coefficients on the original scale, used for prediction.
    counts : (coefficients,)
        Training rows of each coefficient.
    units : Units
        The standardization of `state`.
    columns : StateColumns
        The meaning of the columns of `state`.
    state : (coefficients * K, width)
        Training state: coefficients on the training scale in the first column, the optimizer's state in the others.
    weights : (coefficients,)
        Relative weight of the training rows of each coefficient.
    target : Moments or None
        Of the target minus its offset, with a log link of the target; None where the loss does not scale the target.
    numerics : tuple of Moments
        Of the numeric factors.
    unit_weight : float
        The sample weight that counts as one row: the mean of the first table's.
    n_steps : int
        Number of updates so far, for categories that are added later.
    uncertainty : Uncertainty or None
        The posterior, after a fit by Newton's method.
    centred : tuple of (int, bool)
        The blocks whose mean is 0, as it was moved to another term; and whether it is over categories, and not rows.
    """

    spec: ModelSpec
    loss: Loss
    n_outputs: int
    theta: Floats
    counts: NDArray[np.int64]
    units: Units
    columns: StateColumns
    state: Floats
    weights: Floats
    target: Moments | None
    numerics: tuple[Moments, ...]
    unit_weight: float = 1.0
    n_steps: int = 0
    uncertainty: Uncertainty | None = None
    centred: tuple[tuple[int, bool], ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}  # cached properties are recomputed

    @cached_property
    def program(self) -> Compiled:
        """The compiled program on the training scale."""
        return self.spec.compile(self.units.constants)

    @cached_property
    def reported(self) -> dict[Any, Any]:
        """Cache of the reported coefficient frames."""
        return {}

    @cached_property
    def _user_program(self) -> tuple[Compiled, Units, Floats]:
        """The compiled program for prediction, the original scale, and the values for unknown categories (slots, K)."""
        units = users_units(self.spec, self.numerics)
        averaged = frozenset(set(self._main_effects.values()) - dict(self.centred).keys())
        compiled = self.spec.compile(units.constants, averaged)
        program, reads = compiled.program, compiled.reads
        neutral = np.zeros((len(program.columns), self.n_outputs))
        blocks = {block: self.neutral(block) for block in {read.block for read in reads}}
        for slot, column in enumerate(program.columns):
            if column >= 0 and reads[column].block in blocks:
                neutral[slot] = blocks[reads[column].block][program.coefs[slot]]
        return compiled, units, neutral

    def coder(self, table: Table, n_jobs: int | None = None) -> Coder:
        """The encoder of a table for this model, and for others with the same sources."""
        return self.spec.coder(table, n_jobs)

    def margins(self, table: Table, n_jobs: int | None = None) -> Floats:
        """Linear predictors (n, K) of a table, without an offset."""
        return self.margins_of(self.coder(table, n_jobs), len(table), n_jobs)

    def margins_of(self, coder: Coder, n_rows: int, n_jobs: int | None = None) -> Floats:
        """Linear predictors (n_rows, K) of the table of `coder`, possibly of another model with the same sources."""
        out = np.empty((n_rows, self.n_outputs))
        chunk = max(1, CHUNK_CODES // max(1, len(self.spec.reads)))
        if n_rows <= chunk:
            self._score(coder, out, n_jobs)
        else:
            coder.code_categories()
            for first in range(0, n_rows, chunk):
                part = slice(first, first + chunk)
                self._score(coder.rows(part), out[part], n_jobs)
        fixed = fixed_score(self.spec, coder.numbers, n_rows)
        return out + fixed[:, None] if len(fixed) else out

    def score_deviations(self, table: Table, n_jobs: int | None = None) -> Floats:
        """Posterior standard deviations (n,) of the linear predictors of a table, for one output.

        An unknown category adds the variance component of its term, as a new random effect. Infinite where the rows of
        training do not determine the predictor, as for a combination of categories that none has.
        """
        assert self.uncertainty is not None and self.uncertainty.samples is not None
        samples, unknown = self.uncertainty.samples, None
        if self.uncertainty.unknown is not None:
            unknown = np.ascontiguousarray(self.uncertainty.unknown[0])
        coder = self.coder(table, n_jobs)
        coder.code_categories()
        compiled = self._user_program[0]
        neutral = np.zeros((len(compiled.program.columns), samples.shape[1]))
        variance = np.empty(len(table))
        chunk = max(1, CHUNK_CODES // (max(1, len(self.spec.reads)) + samples.shape[1]))
        for first in range(0, len(table), chunk):
            part = slice(first, min(first + chunk, len(table)))
            rows = coder.rows(part)
            out = np.empty((part.stop - part.start, samples.shape[1]))
            laid = self._lay(rows, len(out), n_jobs)
            predict_margins(laid, compiled.program, neutral, samples.reshape(-1, 1), out)
            variance[part] = np.square(out).mean(axis=1) + self._unseen_variance(rows, laid.x)
            if unknown is not None:
                out = np.empty((len(out), unknown.shape[1]))
                no_effect = np.zeros((len(compiled.program.columns), unknown.shape[1]))
                predict_margins(laid, compiled.program, no_effect, unknown.reshape(-1, 1), out)
                tolerance = ORTHOGONAL * np.abs(unknown).max() * max(1.0, np.abs(laid.x).max(initial=0.0))
                variance[part][np.abs(out).max(axis=1) > tolerance] = np.inf
        return np.sqrt(variance)

    def _unseen_variance(self, coder: Coder, x: Floats) -> Floats:
        """The variance (n,) that unknown coefficients add to linear predictors: prior variance times squared factor.

        `x` (n, numerics): the numeric factors of the program for prediction. The prior of slopes is at the mean of a
        centred factor.
        """
        assert self.uncertainty is not None
        spec, numerics = self.spec, self._user_program[0].numerics
        total, codes = np.zeros(len(x)), spec.code(coder)
        for index, term in enumerate(spec.fitted_terms):
            (factor,) = term.factors
            if not isinstance(source_of(spec, factor.block), (Bins, CategoricalSource, Crossing)):
                continue
            by = np.full(len(x), term.constant)
            if term.numeric is not None:
                centre = self.units.means[term.numeric] if index in spec.centering_terms else 0.0
                by *= x[:, numerics.index(term.numeric)] - centre
            unknown = self._unknown(factor.block, codes[factor.read]) & (by != 0.0)
            within = spec.within(factor.block)
            if within is not None:
                unknown &= coder.read(within, factor.columns[:1]) != UNSEEN
            total[unknown] += np.square(by[unknown]) * self.entry_variance(factor.block)
        return total

    def entry_variance(self, block: int) -> float:
        """The prior variance of a coefficient of a block; for a random walk the marginal variance about its mean."""
        assert self.uncertainty is not None
        block_spec, variance = self.spec.blocks[block], float(self.uncertainty.variances[block])
        if not block_spec.ordered or block_spec.source is None:
            return variance
        source = self.spec.sources[block_spec.source]
        return variance / unordered_ratio(len(source) - int(isinstance(source, Bins) and source.missing))

    def _unknown(self, block: int, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether codes (n,) of a block have no coefficient, or one without information from training."""
        assert self.uncertainty is not None
        unidentified = np.isinf(self.uncertainty.sd[self.spec.coefs(block), 0])
        if self.uncertainty.unknown is not None:  # without a coefficient of their own, but with information on sums
            unidentified &= ~self.uncertainty.unknown[0, self.spec.coefs(block)].any(axis=1)
        return np.asarray(np.append(unidentified, True)[np.where(codes == UNSEEN, len(unidentified), codes)])

    def _score(self, coder: Coder, out: Floats, n_jobs: int | None) -> None:
        compiled, _, neutral = self._user_program
        rows = self._lay(coder, len(out), n_jobs)
        predict_margins(rows, compiled.program, neutral, self.theta.reshape(-1, 1), out)

    def _lay(self, coder: Coder, n_rows: int, n_jobs: int | None) -> Rows:
        compiled, units, _ = self._user_program
        return lay_rows(self.spec, compiled, units, self.spec.code(coder), coder.numbers, n_rows, None, n_jobs)

    @property
    def predicting(self) -> tuple[Program, Floats]:
        """The program for prediction from `theta`, and the values for unknown categories in its slots (slots, K)."""
        compiled, _, neutral = self._user_program
        return compiled.program, neutral

    def rows(self, table: Table, n_jobs: int | None = None) -> tuple[Rows, Floats]:
        """The rows of a table for `predicting`, and the sum (n,) of the terms without coefficients."""
        coder = self.coder(table, n_jobs)
        fixed = fixed_score(self.spec, coder.numbers, len(table))
        return self._lay(coder, len(table), n_jobs), fixed if len(fixed) else np.zeros(len(table))

    def first_unseen(self, table: Table) -> tuple[str, int] | None:
        """Column and row of the first category without a coefficient, or None."""
        coder = self.coder(table)
        for read, codes in self.spec.code(coder).items():
            if isinstance(source_of(self.spec, read.block), CategoricalSource) and (codes == UNSEEN).any():
                return read.columns[0], int(np.argmax(codes == UNSEEN))
        return None

    def neutral(self, index: int) -> Floats:
        """The value for unknown categories of a block (rank, K): 0, or the mean over training rows.

        Slopes by category have the mean over what that of the main effect of the same category is 0 over; where no
        intercept has that mean, both have that over training rows. Otherwise an unknown category would have the slope
        of some and the level of others.
        """
        block, centred = self.spec.blocks[index], dict(self.centred)
        coefs, main_effect = self.spec.coefs(index), self._main_effects.get(index)
        has_slopes = index in self._main_effects.values()
        if block.source is None or (index in centred and main_effect is None) or not (block.neutral_mean or has_slopes):
            return np.zeros((block.rank, self.n_outputs))
        weights = self.weights[coefs].reshape(-1, block.rank)[:, 0]
        if main_effect is not None and centred.get(main_effect, False):
            weights = np.ones_like(weights)
        if not weights.any():
            return np.full((block.rank, self.n_outputs), block.start * self.units.sizes[index])
        values = self.theta[coefs].reshape(-1, block.rank, self.n_outputs)
        return np.asarray(np.average(values, axis=0, weights=weights))

    @cached_property
    def _main_effects(self) -> dict[int, int]:
        """For each block of slopes by category the block of the main effect of the same category."""
        main_effects = {
            self.spec.fitted_terms[index]: main_effect for index, main_effect in self.spec.centering_terms.items()
        }
        return {
            term.factors[0].block: main_effect.factors[0].block
            for term, main_effect in main_effects.items()
            if len(term.factors) == 1
        }


MIN_MEAN = 0.1
"""Minimum of the mean over the root mean square; factors nearer to 0, as with both signs, are reported unchanged."""


def source_of(spec: ModelSpec, index: int | None) -> Source | None:
    """The source of a block's codes; None for a scalar, and for no block."""
    number = None if index is None else spec.blocks[index].source
    return None if number is None else spec.sources[number]


def index_of(spec: ModelSpec, name: str) -> int | None:
    """The block of a term by its name; None where there is none, as of the scale of a product."""
    return next((index for index, block in enumerate(spec.blocks) if block.name == name), None)


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
    products: list[Product] = []
    for block, term in _told_apart(model.spec).items():
        powers = Counter(factor.block for factor in term.factors)
        means = {factor_block: mean for factor_block in powers if (mean := _means(model, factor_block)) is not None}
        if len(means) == len(powers):
            scale = np.prod([mean ** powers[factor_block] for factor_block, mean in means.items()], axis=0)
            products.append(Product(scale_names(model.spec)[block], scale, means))
    return products


def scale_names(spec: ModelSpec) -> dict[int, str]:
    """The names of the scales of products, by the block of the first factor that is multiplied once."""
    products = _told_apart(spec).items()
    return {
        block: "scale of " + "*".join(spec.blocks[factor.block].name for factor in term.factors)
        for block, term in products
    }


def _told_apart(spec: ModelSpec) -> dict[int, Term]:
    """Products of several blocks that no other term uses, by the first one that is multiplied once."""
    products = {}
    for term in spec.fitted_terms:
        powers = Counter(factor.block for factor in term.factors)
        is_own = all(
            sum(spec.uses[block].values()) == n and spec.blocks[block].rank == 1 for block, n in powers.items()
        )
        first = next((block for block, n in powers.items() if n == 1), None)
        if len(powers) > 1 and is_own and first is not None:
            products[first] = term
    return products


def _means(model: WideModel, block: int) -> Floats | None:
    """The means over training rows (K,); None where one is small relative to the factors."""
    coefs = model.spec.coefs(block)
    values, weights = model.theta[coefs], model.weights[coefs]
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
        made, key = self._model.reported, (name, self._outputs)
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
        turned = [
            term for term in names if isinstance(name, str) and sorted(term.split(":")) == sorted(name.split(":"))
        ]
        of_column = [block.name for block in self._model.spec.blocks if block.columns == (name,)]
        if of_column and not turned:
            return f"There is no term {name!r}; the coefficients of column {name!r} are in the term {of_column[0]!r}."
        listed = turned or names
        more = ", ..." if len(listed) > 10 else ""
        return f"There is no term {name!r}; there is {', '.join(map(repr, listed[:10]))}{more}."


def coefficient_frame(model: WideModel, index: int, outputs: Sequence[str]) -> pd.DataFrame:
    """The coefficients of a term, on the original scale; `outputs` names the K linear predictors."""
    block, coefs = model.spec.blocks[index], model.spec.coefs(index)
    names = [f"{output} {r + 1}" if block.rank > 1 else output for r in range(block.rank) for output in outputs]
    mean = mean_of_factor(model, index)
    width = block.rank * model.n_outputs
    keys = _index(model.spec, block)
    values = model.theta[coefs].reshape(-1, width)
    frame = pd.DataFrame(values if mean is None else values / mean, index=keys, columns=names)
    if model.uncertainty is not None:
        covariance = None if mean is None else covariance_of_factor(model, index, mean)
        sd = model.uncertainty.sd[coefs]
        if mean is not None:
            sd = sd / np.abs(mean) if covariance is None else np.sqrt(covariance.variances())
        deviations = pd.DataFrame(sd.reshape(-1, width), index=keys, columns=deviation_names(names))
        frame = pd.concat([frame, deviations], axis=1)  # concatenated at once: pandas warns of many insertions
    if block.source is not None:
        frame[rows_name(outputs)] = model.counts[coefs][:: block.rank]
        source = model.spec.sources[block.source]
        if isinstance(source, Bins):
            low, high = edge_names(names)
            frame[low], frame[high] = edges(source.bounds, source.missing)
    return frame


def mean_of_factor(model: WideModel, index: int) -> Floats | None:
    """The means (K,) that the coefficients of a block are reported over; None where it is no factor of a product."""
    return next((product.means[index] for product in products_of(model) if index in product.means), None)


def covariance_of_factor(model: WideModel, index: int, mean: Floats) -> TermCovariance | None:
    """Covariance of the factors of a product divided by their means (K,), by the delta method."""
    assert model.uncertainty is not None
    coefs, covariances = model.spec.coefs(index), model.uncertainty.covariances
    if not covariances or (raw := covariances[index]) is None:
        return None
    shares = model.weights[coefs] if model.spec.blocks[index].source is not None else np.ones(1)
    shares = shares / shares.sum()
    centre = np.einsum("q,kqr->kr", shares, raw.factor)
    relative = (model.theta[coefs] / mean).T[:, :, None]
    factor = (raw.factor - relative * centre[:, None]) / mean[:, None, None]
    return TermCovariance(raw.diagonal / mean**2, factor, unknown=raw.unknown, unidentified=raw.unidentified)


def edge_names(outputs: Iterable[str]) -> tuple[str, str]:
    """Names of the columns with the bounds of bins; different ones where a class has such a name."""
    return ("bin low", "bin high") if {"low", "high"} & set(outputs) else ("low", "high")


def edges(bounds: Floats, missing: bool) -> tuple[Floats, Floats]:
    """The exact bounds of bins ``(low, high]`` by the inner ones; NaN for the bin of missing values, where it is."""
    of_missing = [np.nan] * missing
    return np.concatenate([of_missing, [-np.inf], bounds]), np.concatenate([of_missing, bounds, [np.inf]])


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
    columns, extra = list(map(str, values.columns)), frame.columns[width:]
    rows, low, high = (frame[name] if name in extra else None for name in (rows_name(columns), *edge_names(columns)))
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
    # far faster than factorizing the categories of all coefficients (`benchmarks/evidence/constants_models.md`)
    known, indices, names = [], [], list(block.columns)
    for categories, position_codes in zip(levels, codes, strict=True):
        present = np.array([category is not None for category in categories], dtype=bool)
        known.append(pd.Index(categories[present], dtype=object))
        renumbered = np.where(present, np.cumsum(present) - 1, -1)  # missing is not a level, but the code -1
        indices.append(renumbered[position_codes])
    return pd.MultiIndex(levels=known, codes=indices, names=names, verify_integrity=False)  # type: ignore[arg-type]


def categories_by_position(spec: ModelSpec, index: int) -> tuple[list[NDArray[np.object_]], list[NDArray[np.int32]]]:
    """The categories of each position of a source, and the codes of its coefficients there."""
    source = spec.sources[index]
    if isinstance(source, CategoricalSource):
        return [source.vocabulary.categories], [np.arange(len(source), dtype=np.int32)]
    if isinstance(source, Bins):
        return [np.array(source.labels, dtype=object)], [np.arange(len(source), dtype=np.int32)]
    if isinstance(source, Flag):
        return [np.array([None], dtype=object)], [np.zeros(1, dtype=np.int32)]
    assert isinstance(source, Crossing)
    left, right = source.interaction.pairs()
    levels, codes = categories_by_position(spec, source.left)
    more, (last,) = categories_by_position(spec, source.right)
    return levels + more, [position_codes[left] for position_codes in codes] + [last[right]]
