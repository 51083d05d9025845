"""What classifier and regressor share: validate, code, train, keep."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabsym.estimators.wide_options import check_options
from tabsym.table import Kind, Table, check_weights, match_features, read_table, remember_features, symbolic_columns
from tabsym.wide.layout import Layout, plan_layout, stack
from tabsym.wide.losses import Loss
from tabsym.wide.model import WideModel, empty_state, grow_model
from tabsym.wide.optimizers import ADAM_CODE, STEP_COLUMN
from tabsym.wide.training import Data, Options, storage_order, train

Floats = NDArray[np.float64]


class WideBase(BaseEstimator):
    """Shared by `WideClassifier` and `WideRegressor`; not public."""

    def __init__(
        self,
        *,
        cols=None,
        loss="auto",
        interactions=1,
        optimizer="adagrad",
        learning_rate="auto",
        gradient="gse",
        batch_size=1,
        epochs="auto",
        l2=0.0,
        shuffle=True,
        standardize=True,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=2,
        tol=None,
        unseen="neutral",
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.cols = cols
        self.loss = loss
        self.interactions = interactions
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.gradient = gradient
        self.batch_size = batch_size
        self.epochs = epochs
        self.l2 = l2
        self.shuffle = shuffle
        self.standardize = standardize
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # -- fitting ----------------------------------------------------------

    def _fit(self, table: Table, y: Floats, weight: Floats | None, loss: Loss, n_outputs: int) -> None:
        """Train from scratch on a checked table; fitted attributes are set last, all together."""
        table_rows, y, weight = _drop_weightless(table, y, weight)
        layout = self._plan(table_rows, weight)
        options = check_options(self, layout, len(y))
        mean, scale = self._target_units(y, weight)
        start = (loss, n_outputs, mean, scale, y, weight)
        model = _blank_model(layout, *start, fresh=options.optimizer.fresh)
        rng = check_random_state(self.random_state)
        model, outcome = self._advance(model, table_rows, y, weight, options, rng)
        remember_features(self, table)
        self._rng = rng
        self._keep(model, outcome.loss_curve, outcome.validation_curve, len(y) * len(outcome.loss_curve))

    def _partial_fit(self, table: Table, y: Floats, weight: Floats | None, start: Callable[[], WideModel]) -> None:
        """One epoch over one more batch of rows; a failure leaves the model as it was."""
        first = not hasattr(self, "model_")
        if not first:
            table = match_features(self, table)
        table_rows, y, weight = _drop_weightless(table, y, weight)
        model = start() if first else self.model_
        options = replace(check_options(self, model.layout, len(y)), epochs=1, early_stopping=False, tol=None)
        rng = check_random_state(self.random_state) if first else deepcopy(self._rng)
        model, outcome = self._advance(model, table_rows, y, weight, options, rng)
        if first:
            remember_features(self, table)
        self._rng = rng
        seen = len(y) + (0 if first else self.n_rows_seen_)
        curve = ([] if first else self.loss_curve_) + outcome.loss_curve
        self._keep(model, curve, [], seen)

    def _plan(self, table: Table, weight: Floats | None) -> Layout:
        symbolic = symbolic_columns(table, self.cols, booleans=True)
        chosen = {column.name for column in symbolic}
        numeric = [column for column in table.columns if column.name not in chosen]
        text = [column.name for column in numeric if column.kind is Kind.SYMBOLIC]
        if text:
            raise ValueError(
                f"Column {text[0]!r} holds symbols but is not in cols; add it to cols, or drop it from the table."
            )
        interactions = self.interactions if isinstance(self.interactions, int) else 1
        return plan_layout(
            symbolic, numeric, interactions=interactions, standardize=bool(self.standardize), weights=weight
        )

    def _blank(self, table: Table, y: Floats, weight: Floats | None, loss: Loss, n_outputs: int) -> WideModel:
        layout = self._plan(table, weight)
        options = check_options(self, layout, len(y))
        mean, scale = self._target_units(y, weight)
        return _blank_model(layout, loss, n_outputs, mean, scale, y, weight, fresh=options.optimizer.fresh)

    def _advance(
        self, model: WideModel, table: Table, y: Floats, weight: Floats | None, options: Options, rng: Any
    ) -> tuple[WideModel, Any]:
        """Grow the model to a table's symbols and train it on the table."""
        layout, codes, numbers = model.layout.grow(table, self.n_jobs)
        fresh = options.optimizer.fresh.copy()
        if options.gradient == "mean" and options.optimizer.code == ADAM_CODE:
            fresh[STEP_COLUMN] = model.n_steps  # under mean, every entry has had every step
        model = grow_model(model, layout, fresh)
        order = storage_order(len(y), len(codes), options.shuffle, rng)
        matrix, x = stack(layout, codes, numbers, len(y), order, self.n_jobs)
        del codes, numbers
        target = _in_units(y, model.target_mean, model.target_scale)
        relative = np.empty(0) if weight is None else weight / weight.mean()
        if order is not None:
            target = target[order]
            relative = relative[order] if weight is not None else relative
        data = Data(matrix.codes, x, target, relative)
        outcome = train(data, model.state, matrix.n_entries, model.loss, model.n_outputs, options, rng)
        batch = len(y) if options.batch_size is None else min(options.batch_size, len(y))
        n_steps = model.n_steps + len(outcome.loss_curve) * -(-len(y) // batch)
        counts = model.counts + matrix.counts()
        return replace(model, state=outcome.state, counts=counts, n_steps=n_steps), outcome

    def _target_units(self, y: Floats, weight: Floats | None) -> tuple[float, float]:
        return 0.0, 1.0

    def _keep(self, model: WideModel, curve: list[float], validation: list[float], n_rows_seen: int) -> None:
        self.model_ = model
        self.loss_curve_ = curve
        self.n_iter_ = len(curve)
        self.n_rows_seen_ = n_rows_seen
        if validation:
            self.validation_curve_ = validation
        elif hasattr(self, "validation_curve_"):
            del self.validation_curve_

    # -- using --------------------------------------------------------------

    def _margins(self, X: Any) -> Floats:
        """Scores (n, K) of a table, in original units."""
        check_is_fitted(self, "model_")
        table = read_table(X, who=type(self).__name__, allow_empty=True)
        table = match_features(self, table)
        model = self.model_
        margins, unseen = model.margins(table, self.n_jobs)
        if self.unseen == "error":
            _refuse_unseen(table, model.layout, unseen)
        return margins * model.target_scale + model.target_mean

    @property
    def params_(self) -> dict[str, pd.DataFrame]:
        """What was learned, by block: frames indexed by symbol, with the training rows as `count`."""
        check_is_fitted(self, "model_")
        return self.model_.tables(self._output_names())

    def _output_names(self) -> list[str]:
        return ["value"]


def read_training_table(estimator: Any, X: Any, sample_weight: Any) -> tuple[Table, Floats | None]:
    """The checked table and weights of a call to fit."""
    table = read_table(X, who=type(estimator).__name__)
    return table, check_weights(sample_weight, len(table))


def _blank_model(
    layout: Layout,
    loss: Loss,
    n_outputs: int,
    mean: float,
    scale: float,
    y: Floats,
    weight: Floats | None,
    *,
    fresh: Floats,
) -> WideModel:
    """A model before training: no entries yet, and the loss's best constant as intercept."""
    state = empty_state(sum(layout.sizes) + len(layout.numerics) + 1, n_outputs, fresh)
    state[-n_outputs:, 0] = loss.best_constant(_in_units(y, mean, scale), weight, n_outputs)
    counts = np.zeros(sum(layout.sizes), dtype=np.int64)
    return WideModel(layout, loss, n_outputs, state, counts, mean, scale)


def _in_units(y: Floats, mean: float, scale: float) -> Floats:
    """The target in the units of training; classes, which have none, are not copied."""
    return y if (mean, scale) == (0.0, 1.0) else (y - mean) / scale


def _drop_weightless(table: Table, y: Floats, weight: Floats | None) -> tuple[Table, Floats, Floats | None]:
    """Rows of weight zero count as absent: their symbols are unseen."""
    if weight is None or weight.all():
        return table, y, weight
    keep = weight > 0
    rows = np.flatnonzero(keep)
    columns = tuple(replace(column, series=column.series[rows]) for column in table.columns)
    return replace(table, columns=columns, n_rows=len(rows)), y[keep], weight[keep]


def _refuse_unseen(table: Table, layout: Layout, unseen: NDArray[np.bool_]) -> None:
    for place, alphabet in enumerate(layout.alphabets):
        if unseen[:, place].any():
            row = int(np.argmax(unseen[:, place]))
            value = table[alphabet.name].series.to_list()[row]
            raise ValueError(
                f"Column {alphabet.name!r} holds {value!r} (row {row}), which was not seen in fit; "
                "use unseen='neutral' to let it add nothing, or fit on rows that have it."
            )
