"""The fitted wide model: arrays and categories, independent of the training method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import UNSEEN
from tabsym.design.model_spec import Compiled, ModelSpec, Program, Rows
from tabsym.design.sources import Bins, Coder, Crossing, Symbols
from tabsym.design.units import Moments, Units, fixed_score, lay_rows, users_units
from tabsym.frame import Table
from tabsym.losses.loss import Loss
from tabsym.solvers.newton.certainty import ORTHOGONAL, Certainty
from tabsym.solvers.newton.terms import share_apart
from tabsym.solvers.sgd.kernels import predict_margins
from tabsym.solvers.sgd.options import StateColumns

Floats = NDArray[np.float64]

TILE_CODES = 1 << 21
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
    certainty : Certainty or None
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
    certainty: Certainty | None = None
    centred: tuple[tuple[int, bool], ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}  # cached properties are recomputed

    @cached_property
    def program(self) -> Compiled:
        """The compiled program on the training scale."""
        return self.spec.compile(self.units.constants)

    @cached_property
    def shown(self) -> dict[Any, Any]:
        """Cache of the reported coefficient frames."""
        return {}

    @cached_property
    def _user_program(self) -> tuple[Compiled, Units, Floats]:
        """The compiled program for prediction, the original scale, and the values for unknown categories (slots, K)."""
        units = users_units(self.spec, self.numerics)
        averaged = frozenset(set(self._main_effects.values()) - dict(self.centred).keys())
        compiled = self.spec.compile(units.constants, averaged)
        return compiled, units, self._neutral_of_slots(compiled)

    def coder(self, table: Table, n_jobs: int | None = None) -> Coder:
        """The encoder of a table for this model, and for others with the same sources."""
        return self.spec.coder(table, n_jobs)

    def margins(self, table: Table, n_jobs: int | None = None) -> Floats:
        """Linear predictors (n, K) of a table, without an offset."""
        return self.margins_of(self.coder(table, n_jobs), len(table), n_jobs)

    def margins_of(self, coder: Coder, n_rows: int, n_jobs: int | None = None) -> Floats:
        """Linear predictors (n_rows, K) of the table of `coder`, possibly of another model with the same sources."""
        out = np.empty((n_rows, self.n_outputs))
        tile = max(1, TILE_CODES // max(1, len(self.spec.reads)))
        if n_rows <= tile:
            self._score(coder, out, n_jobs)
        else:
            coder.code_symbols()
            for first in range(0, n_rows, tile):
                part = slice(first, first + tile)
                self._score(coder.rows(part), out[part], n_jobs)
        fixed = fixed_score(self.spec, coder.numbers, n_rows)
        return out + fixed[:, None] if len(fixed) else out

    def score_deviations(self, table: Table, n_jobs: int | None = None) -> Floats:
        """Posterior standard deviations (n,) of the linear predictors of a table, for one output.

        An unknown category adds the variance component of its term, as a new random effect. Infinite where the rows of
        training do not determine the predictor, as for a combination of categories that none has.
        """
        assert self.certainty is not None and self.certainty.samples is not None
        samples, unknown = self.certainty.samples, None
        if self.certainty.unknown is not None:
            unknown = np.ascontiguousarray(self.certainty.unknown[0])
        coder = self.coder(table, n_jobs)
        coder.code_symbols()
        compiled = self._user_program[0]
        neutral = np.zeros((len(compiled.program.columns), samples.shape[1]))
        spread = np.empty(len(table))
        tile = max(1, TILE_CODES // (max(1, len(self.spec.reads)) + samples.shape[1]))
        for first in range(0, len(table), tile):
            part = slice(first, min(first + tile, len(table)))
            rows = coder.rows(part)
            out = np.empty((part.stop - part.start, samples.shape[1]))
            laid = self._lay(rows, len(out), n_jobs)
            predict_margins(laid, compiled.program, neutral, samples.reshape(-1, 1), out)
            spread[part] = np.square(out).mean(axis=1) + self._unseen_variance(rows, laid.x)
            if unknown is not None:
                out = np.empty((len(out), unknown.shape[1]))
                no_effect = np.zeros((len(compiled.program.columns), unknown.shape[1]))
                predict_margins(laid, compiled.program, no_effect, unknown.reshape(-1, 1), out)
                most = ORTHOGONAL * np.abs(unknown).max() * max(1.0, np.abs(laid.x).max(initial=0.0))
                spread[part][np.abs(out).max(axis=1) > most] = np.inf
        return np.sqrt(spread)

    def _unseen_variance(self, coder: Coder, x: Floats) -> Floats:
        """The variance (n,) that unknown coefficients add to linear predictors: prior variance times squared factor.

        `x` (n, numerics): the numeric factors of the program for prediction. The prior of slopes is at the mean of a
        centred factor.
        """
        assert self.certainty is not None
        spec, numerics = self.spec, self._user_program[0].numerics
        total, codes = np.zeros(len(x)), spec.code(coder)
        for index, term in enumerate(spec.fitted_terms):
            (factor,) = term.factors
            source = spec.blocks[factor.block].source
            if source is None or not isinstance(spec.sources[source], (Bins, Symbols, Crossing)):
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
        assert self.certainty is not None
        own, variance = self.spec.blocks[block], float(self.certainty.variances[block])
        if not own.ordered or own.source is None:
            return variance
        source = self.spec.sources[own.source]
        return variance / share_apart(len(source) - int(isinstance(source, Bins) and source.missing))

    def _unknown(self, block: int, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether codes (n,) of a block have no coefficient, or one without information from training."""
        assert self.certainty is not None
        untold = np.isinf(self.certainty.sd[self.spec.coefs(block), 0])
        if self.certainty.unknown is not None:  # without a coefficient of their own, but with information on sums
            untold &= ~self.certainty.unknown[0, self.spec.coefs(block)].any(axis=1)
        return np.asarray(np.append(untold, True)[np.where(codes == UNSEEN, len(untold), codes)])

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
            source = self.spec.blocks[read.block].source
            if source is not None and isinstance(self.spec.sources[source], Symbols) and (codes == UNSEEN).any():
                return read.columns[0], int(np.argmax(codes == UNSEEN))
        return None

    def neutral(self, index: int) -> Floats:
        """The value for unknown categories of a block (rank, K): 0, or the mean over training rows.

        Slopes by category have the mean over what that of the main effect of the same category is 0 over; where no
        intercept has that mean, both have that over training rows. Otherwise an unknown category would have the slope
        of some and the level of others.
        """
        block, centred = self.spec.blocks[index], dict(self.centred)
        own, home = self.spec.coefs(index), self._main_effects.get(index)
        has_slopes = index in self._main_effects.values()
        if block.source is None or (index in centred and home is None) or not (block.neutral_mean or has_slopes):
            return np.zeros((block.rank, self.n_outputs))
        weights = self.weights[own].reshape(-1, block.rank)[:, 0]
        if home is not None and centred.get(home, False):
            weights = np.ones_like(weights)
        if not weights.any():
            return np.full((block.rank, self.n_outputs), block.start * self.units.sizes[index])
        values = self.theta[own].reshape(-1, block.rank, self.n_outputs)
        return np.asarray(np.average(values, axis=0, weights=weights))

    @cached_property
    def _main_effects(self) -> dict[int, int]:
        """For each block of slopes by category the block of the main effect of the same category."""
        homes = {self.spec.fitted_terms[index]: home for index, home in self.spec.centering_terms.items()}
        return {term.factors[0].block: home.factors[0].block for term, home in homes.items() if len(term.factors) == 1}

    def _neutral_of_slots(self, compiled: Compiled) -> Floats:
        """The values for unknown categories (slots, K) in the order of a program's slots."""
        spec, program = self.spec, compiled.program
        out = np.zeros((len(program.columns), self.n_outputs))
        reads = [spec.reads[index] for index in compiled.reads]
        blocks = {block: self.neutral(block) for block in {read.block for read in reads}}
        for slot, column in enumerate(program.columns):
            if column >= 0 and reads[column].block in blocks:
                out[slot] = blocks[reads[column].block][program.coefs[slot]]
        return out
