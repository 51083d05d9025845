"""What classifier and regressor share: validate, code, train, keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabsym.codes import RawCodes
from tabsym.estimators.crossing import find_crosses, table_of_crosses
from tabsym.estimators.planning import Crosses, plan_bins, plan_layout
from tabsym.estimators.show import describe_crosses, describe_model, plot_block
from tabsym.estimators.training_data import Training, count_rows_of_entries, find_units, in_units, lay_out
from tabsym.estimators.wide_options import (
    MOST_EPOCHS_CHOSEN,
    check_interactions,
    check_loss_parameter,
    check_offset,
    check_options,
    refuse_auto_in_pieces,
    refuse_intervals_in_pieces,
)
from tabsym.table import Table, match_features, read_table, remember_features
from tabsym.wide.crosses import AutoCrosses, Chosen
from tabsym.wide.formula import parse
from tabsym.wide.losses import LOSSES, Loss
from tabsym.wide.model import WideModel, grow_model, starting_state
from tabsym.wide.plan import used_columns
from tabsym.wide.rules import HUBER
from tabsym.wide.sources import Bins
from tabsym.wide.training import Options, Outcome, storage_order, train

Floats = NDArray[np.float64]


class WideBase(BaseEstimator):
    """Shared by `WideClassifier` and `WideRegressor`; not public."""

    def __init__(
        self,
        formula=None,
        *,
        cols=None,
        loss="auto",
        delta=1.35,
        quantile=0.5,
        power=1.5,
        interactions=1,
        numeric="linear",
        optimizer="adagrad",
        learning_rate="auto",
        schedule="constant",
        power_t=0.5,
        gradient="gse",
        batch_size=1,
        epochs="auto",
        l1=0.0,
        l2=0.0,
        average=False,
        init=None,
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
        self.formula = formula
        self.cols = cols
        self.loss = loss
        self.delta = delta
        self.quantile = quantile
        self.power = power
        self.interactions = interactions
        self.numeric = numeric
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.power_t = power_t
        self.gradient = gradient
        self.batch_size = batch_size
        self.epochs = epochs
        self.l1 = l1
        self.l2 = l2
        self.average = average
        self.init = init
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

    def _fit(self, training: Training, loss: Loss, n_outputs: int) -> None:
        """Train from scratch on a checked table; fitted attributes are set last, all together."""
        training = training.weighted_rows()
        rng = check_random_state(self.random_state)
        auto = check_interactions(self.interactions)
        raws: dict[str, RawCodes] = {}  # columns are coded once
        bins = plan_bins(self, training, loss)
        chosen = None if auto is None else self._choose_crosses(auto, training, loss, n_outputs, rng, raws, bins)
        crosses = None if chosen is None else [cross.columns for cross in chosen]
        model, options = self._blank(training, loss, n_outputs, rng, crosses, bins)
        if chosen and self.epochs == "auto":
            options = replace(options, epochs=min(options.epochs, MOST_EPOCHS_CHOSEN))
        model, outcome = self._advance(model, training, options, rng, raws)
        self._keep_crosses(chosen)
        remember_features(self, training.table)
        self._rng = rng
        n_seen = len(training.y) * len(outcome.loss_curve)
        self._keep(model, outcome.loss_curve, outcome.validation_curve, n_seen)
        if outcome.interrupted:
            raise KeyboardInterrupt(f"Stopped after {len(outcome.loss_curve)} epochs; the model is fitted, and usable.")

    def _partial_fit(self, training: Training, loss: Loss, n_outputs: int) -> None:
        """One epoch over one more batch of rows; a failure leaves the model as it was."""
        first = not hasattr(self, "model_")
        if not first:
            training = replace(training, table=match_features(self, training.table))
        training = training.weighted_rows()
        rng = check_random_state(self.random_state) if first else deepcopy(self._rng)
        if first:
            refuse_auto_in_pieces(self.interactions)
            refuse_intervals_in_pieces(self.numeric)
            model, options = self._blank(training, loss, n_outputs, rng)
        else:
            model = self.model_
            options = check_options(self, model.layout, len(training.y))
        options = replace(options, epochs=1, early_stopping=False, tol=None)
        model, outcome = self._advance(model, training, options, rng)
        if first:
            remember_features(self, training.table)
        self._rng = rng
        seen = len(training.y) + (0 if first else self.n_rows_seen_)
        curve = ([] if first else self.loss_curve_) + outcome.loss_curve
        self._keep(model, curve, [], seen)

    def _choose_crosses(
        self,
        auto: AutoCrosses,
        training: Training,
        loss: Loss,
        n_outputs: int,
        rng: np.random.RandomState,
        raws: dict[str, RawCodes],
        bins: Sequence[Bins],
    ) -> list[Chosen]:
        """The crosses of ``interactions="auto"``; `raws` keeps the coded columns."""
        model, _ = self._blank(training, loss, n_outputs, rng, bins=bins)
        layout, codes = model.layout.grow(training.table, self.n_jobs, raws)
        rows = lay_out(model, None, training, None, self.n_jobs)
        return find_crosses(model.loss, n_outputs, layout, codes, rows, auto, rng, self.n_jobs)

    def _keep_crosses(self, chosen: list[Chosen] | None) -> None:
        if chosen is not None:
            self.interactions_ = table_of_crosses(chosen)
        elif hasattr(self, "interactions_"):
            del self.interactions_

    def _blank(
        self,
        training: Training,
        loss: Loss,
        n_outputs: int,
        rng: np.random.RandomState,
        crosses: Crosses | None = None,
        bins: Sequence[Bins] = (),
    ) -> tuple[WideModel, Options]:
        """A model before training: no symbols yet, and the loss's best constant as intercept."""
        layout = plan_layout(self, training, crosses, bins)
        options = check_options(self, layout, len(training.y))
        mean, scale = 0.0, 1.0
        if self.standardize and loss.scales:
            mean, scale = find_units(training.y, training.weight, centre=layout.constant_block is not None)
        if loss.code == HUBER:  # delta is in units of the target
            loss = replace(loss, parameter=loss.parameter / scale)
        target = in_units(training.y, mean, scale)
        columns = options.columns
        states = [
            starting_state(block, size // block.rank, n_outputs, columns, rng)
            for block, size in zip(layout.blocks, layout.sizes, strict=True)
        ]
        if layout.constant_block is not None and not self._is_given(layout.blocks[layout.constant_block].name):
            states[layout.constant_block] = columns.blank(loss.best_constant(target, training.weight, n_outputs))
        counts = np.zeros(layout.n_entries, dtype=np.int64)
        model = WideModel(layout, loss, n_outputs, columns, np.concatenate(states), counts, mean, scale)
        return model, options

    def _is_given(self, block: str) -> bool:
        return self.init is not None and (not isinstance(self.init, Mapping) or block in self.init)

    def _advance(
        self,
        model: WideModel,
        training: Training,
        options: Options,
        rng: np.random.RandomState,
        raws: dict[str, RawCodes] | None = None,
    ) -> tuple[WideModel, Outcome]:
        """Grow the model to a table's symbols and train it on the table; `raws`: its columns, coded already."""
        if options.columns != model.columns:
            raise ValueError(
                "The optimizer, schedule, gradient or average changed since the model was started, and its state does "
                "not fit them; set them back, or fit from scratch."
            )
        layout, codes = model.layout.grow(training.table, self.n_jobs, raws)
        model = grow_model(model, layout, rng, model.n_steps if options.is_dense else 0)
        order = storage_order(len(training.y), len(layout.reads), options.shuffle, rng)
        rows = lay_out(model, codes, training, order, self.n_jobs)
        del order, codes  # what training does not need is not kept while it runs
        outcome = train(rows, model.state, model.task, options, rng, model.n_steps)
        model = replace(model, state=outcome.state, n_steps=outcome.n_steps)
        return replace(model, counts=model.counts + count_rows_of_entries(rows.codes, layout)), outcome

    def _choose(self, name: str) -> Loss:
        """The loss by name, with its number from the constructor."""
        loss = LOSSES[name]
        argument = {"huber": "delta", "quantile": "quantile", "tweedie": "power"}.get(name)
        return loss if argument is None else replace(loss, parameter=check_loss_parameter(self, argument))

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

    def _margins(self, X: Any, offset: Any = None) -> Floats:
        """Scores (n, K) of a table, in original units."""
        check_is_fitted(self, "model_")
        table = read_table(X, who=type(self).__name__, allow_empty=True)
        table = match_features(self, self._used_columns(table))
        model = self.model_
        margins = model.margins(table, self.n_jobs)
        if self.unseen == "error":
            self._refuse_unseen(table)
        margins = margins * model.target_scale + model.target_mean
        return margins if offset is None else margins + check_offset(offset, len(table))[:, None]

    def _used_columns(self, table: Table) -> Table:
        """Under a formula, the columns that it reads, in its order."""
        if self.formula is None:
            return table
        return replace(table, columns=tuple(table[name] for name in used_columns(parse(self.formula), table)))

    def _refuse_unseen(self, table: Table) -> None:
        found = self.model_.first_unseen(table)
        if found is not None:
            name, row = found
            raise ValueError(
                f"Column {name!r} holds {table[name].series.to_list()[row]!r} (row {row}), which was not seen in fit; "
                "use unseen='neutral' to let it add nothing, or fit on rows that have it."
            )

    @property
    def params_(self) -> dict[str, pd.DataFrame]:
        """What was learned, by block: frames indexed by symbol, with the training rows as `count`."""
        check_is_fitted(self, "model_")
        return self.model_.tables(self._output_names())

    def summary(self) -> str:
        """The score, and for every block its entries, rows, spread, and highest and lowest symbols, as text."""
        check_is_fitted(self, "model_")
        heading = f"{type(self).__name__}: loss {self.model_.loss.name}, {self.n_rows_seen_:,} rows shown"
        text = describe_model(self.model_, self.params_, heading)
        return f"{text}\n\n{describe_crosses(self.interactions_)}" if hasattr(self, "interactions_") else text

    def plot_params(self, block: str, *, top: int = 30, ax: Any = None) -> Any:
        """Draw the parameters of a block, the `top` largest by size (needs matplotlib).

        Parameters
        ----------
        block : str
            A key of `params_`.
        top : int, default 30
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        tables = self.params_
        if block not in tables:
            raise ValueError(f"There is no block {block!r}; there are {', '.join(map(repr, tables))}.")
        return plot_block(tables[block], block, top=top, ax=ax)

    def _output_names(self) -> list[str]:
        return ["value"]
