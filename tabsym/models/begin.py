"""Initialization of a model: the coded table, its standardization, and the initial coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import RawCodes
from tabsym.design.model_spec import Codes, ModelSpec, Numbers, Read
from tabsym.design.program import Rows
from tabsym.design.sources import Coder, CountEffect
from tabsym.design.units import Moments, Units, find_units, users_units
from tabsym.losses.loss import Loss, best_constant
from tabsym.models.config import Config
from tabsym.models.data import Training, lay_training, numeric_moments, training_loss, with_spread
from tabsym.models.model import WideModel
from tabsym.models.start import given_blocks, starting_parameters, with_init
from tabsym.solvers.sgd.kernels import predict_margins
from tabsym.solvers.sgd.optimizers import SGD, Newton, StateColumns
from tabsym.solvers.sgd.options import Options
from tabsym.solvers.sgd.state import Task, storage_order

Floats = NDArray[np.float64]
Rng = np.random.RandomState

COMMON_ROWS = 50.0
"""Terms with at least this many rows per category, on average, get no count effect."""

NO_MEMORY = StateColumns.plan(SGD(), keep_steps=False, keep_mean=False)
"""The state columns of a model that is not trained by SGD."""


@dataclass(frozen=True)
class Coded:
    """A training table coded by a spec, before conversion to the kernels' memory spec."""

    codes: Mapping[Read, Codes]
    numbers: Numbers
    training: Training

    def lay(self, model: WideModel, options: Options, rng: Rng, n_jobs: int | None) -> Rows:
        """The rows in the kernels' memory spec, in the order of training."""
        order = storage_order(len(self.training.y), len(model.spec.reads), options.shuffle, rng)
        return lay_training(model, self.codes, self.numbers, self.training, order, n_jobs)


def blank_model(
    config: Config,
    columns: StateColumns,
    spec: ModelSpec,
    training: Training,
    loss: Loss,
    n_outputs: int,
    column_codes: dict[str, RawCodes],
    rng: Rng,
) -> tuple[WideModel, Coded]:
    """The model before training, its intercept 0, and the coded table; `column_codes`: cache of factorized columns."""
    coder = spec.coder(training.table, config.n_jobs, column_codes, training.copies)
    spec, coded = code_table(config, spec, coder, training, n_outputs)
    return blank_of(config, columns, spec, coded, loss, n_outputs, rng), coded


def code_table(
    config: Config, spec: ModelSpec, coder: Coder, training: Training, n_outputs: int
) -> tuple[ModelSpec, Coded]:
    """The spec with the categories of the table of `coder`, and the coded table."""
    spec, codes = spec.grow(coder)
    if config.has_count_effects:
        spec, codes = without_common(spec, codes, training.n_rows)
    return spec, Coded(codes, coder.numbers, training.with_fixed(spec, coder.numbers, n_outputs))


def blank_of(
    config: Config, columns: StateColumns, spec: ModelSpec, coded: Coded, loss: Loss, n_outputs: int, rng: Rng
) -> WideModel:
    """The model before training, for a coded table."""
    training = coded.training
    numerics = numeric_moments(spec, coded.numbers, len(training.y), training.weight)
    target = target_moments(config, loss, training)
    phi = starting_parameters(spec, coded.codes, n_outputs, rng)
    return WideModel(
        spec,
        with_spread(loss, training),
        n_outputs,
        theta=phi,
        counts=np.zeros(spec.n_coefs, dtype=np.int64),
        units=choose_units(config, spec, loss, target, numerics),
        columns=columns,
        state=columns.blank(phi.ravel()),
        weights=np.zeros(spec.n_coefs),
        target=target,
        numerics=numerics,
        unit_weight=1.0 if training.unit_weight is None else training.unit_weight,
    )


def without_common(spec: ModelSpec, codes: dict[Read, Codes], n_rows: int) -> tuple[ModelSpec, dict[Read, Codes]]:
    """Remove the count effects of frequent terms: with many rows per category, the count has little effect."""
    common = is_common(spec, n_rows)
    kept = [index for index in range(len(spec.blocks)) if index not in common]
    indices = {index: number for number, index in enumerate(kept)}
    lean = {Read(indices[read.block], read.columns): own for read, own in codes.items() if read.block in indices}
    return spec.without(common), lean


def is_common(spec: ModelSpec, n_rows: int) -> list[int]:
    """The count effects of frequent terms."""
    return [
        index
        for index, block in enumerate(spec.blocks)
        if block.source is not None
        and isinstance(source := spec.sources[block.source], CountEffect)
        and (len(source) < 2 or n_rows >= COMMON_ROWS * len(source.counts))
    ]


def begin(model: WideModel, rows: Rows, config: Config) -> WideModel:
    """Set the initial coefficients: `coef_init` where given, and the optimal intercept given these."""
    spec, k = model.spec, model.n_outputs
    phi = with_init(model, model.state[:, 0].reshape(-1, k), config.init)
    constant = None if spec.constant is None else spec.constant.factors[0].block
    if constant is not None and constant not in given_blocks(spec, config.init):
        offset = rows.offset.reshape(-1, k) if len(rows.offset) else None
        start = offset if config.init is None else scores_of(model, rows, phi)
        weight = rows.weight if len(rows.weight) else None
        phi[spec.coefs(constant)] = best_constant(training_loss(model), rows.y, weight, k, start)
    return replace(model, state=model.columns.blank(phi.ravel()), theta=model.units.to_user(spec, phi))


def target_moments(config: Config, loss: Loss, training: Training) -> Moments | None:
    """The moments that standardize the target: of its residuals from the offset, or of itself with a log link.

    None for no scaling: in classification, and for Newton's method with a log link, which uses `TargetUnits`.
    """
    if loss.scales:
        return Moments.of(training.differences, training.weight)
    if loss.log_link and not isinstance(config.optimizer, Newton):
        return Moments.of(training.y, training.weight)
    return None


def choose_units(
    config: Config, spec: ModelSpec, loss: Loss, target: Moments | None, numerics: tuple[Moments, ...]
) -> Units:
    if not config.standardize:
        return users_units(spec, numerics)
    return find_units(spec, target, numerics, log_link=loss.log_link)


def scores_of(model: WideModel, rows: Rows, phi: Floats) -> Floats:
    """Linear predictors (n, K) of training rows, on the training scale, with the offset."""
    out = np.empty((len(rows.y), model.n_outputs))
    task = task_of(model)
    predict_margins(rows, task.program, task.neutral, np.ascontiguousarray(phi).reshape(-1, 1), out)
    return out


def task_of(model: WideModel) -> Task:
    return Task(model.program.program, training_loss(model), model.n_outputs)
