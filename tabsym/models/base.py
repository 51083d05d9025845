"""Base class of the four wide estimators: validation, fit, fitted state, and what an unknown category adds.

With ``handle_unknown="similar"`` its contribution to the linear predictor is estimated from known categories with
similar context. (The option of `MODLEncoder` is `encoders.modl_column`'s, that of jitter trees `jitter.tree`'s; context
and similarity are of `tabsym.tiws` for all of them.) A row's working response is its category's coefficient plus the
row's working residual, on the scale of the linear predictor. By category these are the targets of a regression on
co-occurrence profiles, in which a coefficient has the precision of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import UNSEEN, encode_column
from tabsym.design.formula import ColumnRef, Formula, expand, show
from tabsym.design.plan import INTERCEPT
from tabsym.design.sources import CategoricalSource
from tabsym.frame import (
    NUMBERS,
    Kind,
    Table,
    TableEstimator,
    categorical_columns,
    check_frequencies,
    check_same_rows,
    exact_values,
    match_features,
    plain_labels,
    read_table,
    remember_features,
    select_features,
    split_target,
    take_of,
)
from tabsym.frame.frames import FromRows, as_rows, refuse_lacking
from tabsym.frame.meaning import CODES, code_columns, meant_by_text
from tabsym.frame.storage import library_of
from tabsym.jit import one_blas_thread
from tabsym.losses.loss import Loss
from tabsym.messages import plural, warn_user
from tabsym.models.bins import Precomputed
from tabsym.models.checks import by_class, check_offset, columns_of
from tabsym.models.config import Config
from tabsym.models.data import GivenRows, Training, offset_column_of, read_rows
from tabsym.models.fitting import Fitted, fit_model
from tabsym.models.inspection.methods import InspectionMethods
from tabsym.models.model import WideModel, coefficient_frame, source_of
from tabsym.models.stream import predict_to_parquet
from tabsym.solvers.newton import Newton
from tabsym.tiws.column import FittedColumn, Method, Observed, unseen_rows
from tabsym.tiws.counts import CategoryWords, ContextCounting, Words, codes_of
from tabsym.tiws.unknown import Sums

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Similar:
    """The known categories of each column: the tokens of all columns, and the coefficients by category."""

    words: tuple[Words, ...]
    offsets: NDArray[np.int64]
    columns: dict[str, FittedColumn]

    @classmethod
    def fit(cls, model: WideModel, training: Training, n_jobs: int | None) -> Similar:
        """Fit to an additive model and its training rows."""
        table, weight = training.table, training.weight
        blocks = {  # of categorical main effects, by column
            block.name: index
            for index, block in enumerate(model.spec.blocks)
            if block.columns == (block.name,)
            and not block.fixed
            and isinstance(source_of(model.spec, index), CategoricalSource)
        }
        left = _left_over(model, training, n_jobs)
        counting = ContextCounting("quantile", n_jobs)
        counts = counting.first_piece(table, list(blocks), (left, False), weight, whole=True)
        indices = {column.name: index for index, column in enumerate(table.columns)}
        fitted = {}
        for name, block in blocks.items():
            number = indices[name]
            words = counts.words[number]
            assert isinstance(words, CategoryWords)
            categories = words.vocabulary.categories
            frame = coefficient_frame(model, block, [str(k) for k in range(model.n_outputs)]).iloc[:, : model.n_outputs]
            coefs = frame.to_numpy()[frame.index.get_indexer(pd.Index(categories, dtype=object))]
            codes = words.codes(table[name])
            sums = Sums.count(codes, coefs[codes] + left, weight, len(categories), np.zeros(model.n_outputs))
            fitted[name] = FittedColumn.fit(number, Method(simplex=False), categories.tolist(), counts.pairs, sums)
        return cls(counts.words, counts.offsets, fitted)

    def add(self, table: Table, n_outputs: int) -> Floats:
        """The contribution of unknown categories to the linear predictors (n, K) of a table."""
        out = np.zeros((len(table), n_outputs))
        words: list[NDArray[np.int32]] | None = None
        for name, fitted in self.columns.items():
            category_words = self.words[fitted.number]
            assert isinstance(category_words, CategoryWords)
            raw = encode_column(table[name])
            codes = category_words.vocabulary.transform(raw)
            if not (codes == UNSEEN).any():
                continue
            words = codes_of(table, self.words) if words is None else words
            nothing = Observed.none(int(self.offsets[-1]))
            unseen = unseen_rows(codes, raw, words, self.offsets, "batch", nothing)
            out[unseen.rows] += fitted.unseen_estimates(unseen.unseen)[unseen.which]
        return out


def _left_over(model: WideModel, training: Training, n_jobs: int | None) -> Floats:
    """Working residuals of the linear predictor (n, K): minus the gradient over the mean Hessian."""
    margins = model.margins(training.table, n_jobs)
    if training.offset is not None:
        margins = margins + training.offset
    if model.n_outputs == 1:
        _, slope, hess = model.loss.rows(margins, training.y)
        slopes, hessians = slope[:, None], hess[:, None]
    else:
        shares = softmax(margins, axis=1)
        slopes = shares - np.eye(model.n_outputs)[training.y.astype(np.int64)]
        hessians = shares * (1 - shares)
    mean = np.average(hessians, axis=0, weights=training.weight)
    return np.asarray(-slopes / np.maximum(mean, np.finfo(float).tiny))


FAR = 10.0
"""Standard deviations of a number's mean from 0 beyond which products with it are warned of."""

FURTHEST = 1e10
"""The same of slopes: a double has 16 digits, so that predictions are rounded to this times 1e-16 of their spread."""


class WideBase(InspectionMethods, TableEstimator):
    """Base class of the wide models, solved and online; not public."""

    def _config(self) -> Config:
        """The validated constructor arguments."""
        raise NotImplementedError

    random_state: Any
    handle_unknown: str
    _similar: Any
    _class_effect = 1.0
    """By how much `class_weight` raises the variance of a mean (Kish's design effect)."""
    _mean_class_weight = 1.0
    _only_predicts = False
    """Of a clone that is fitted once, for what it predicts: without a posterior, and without warnings of columns."""

    # -- fitting ----------------------------------------------------------

    def _read_rows(
        self, config: Config, X: Any, y: Any, sample_weight: Any, offset: Any, freq_weights: Any = None
    ) -> GivenRows:
        """The columns that the model uses, the target, weights and offset, all validated but the target."""
        X, y = split_target(X, y, config.caller)  # which compares the rows of both
        check_same_rows(X, sample_weight=sample_weight, offset=offset, freq_weights=freq_weights)
        table = read_table(X, caller=config.caller)
        copies = check_frequencies(freq_weights, len(table))
        if copies is not None and not copies.all():  # the others are not there
            seen = np.flatnonzero(copies)
            y, sample_weight, offset = (take_of(values, seen, len(table)) for values in (y, sample_weight, offset))
            table, copies = table.taken(seen), copies[seen]
        column = offset_column_of(self, table, offset)
        if column is not None and column.is_exposure and not self._has_log_link():
            instead = (
                "give its logarithm by offset_column" if is_classifier(self) else "set loss='poisson', for example"
            )
            raise ValueError(f"{column} is for a loss with a log link; {instead}, or leave it out.")
        if config.formula is None and not self._only_predicts:
            _warn_of_columns(config, table, y)
        given, y, weight = read_rows(config.formula, table, y, sample_weight, column)
        if config.formula is not None:  # of a formula that the table fits: an error has a remedy of its own
            _warn_of_other_meanings(config.caller, config.formula)
        if column is None:
            return GivenRows(given, y, weight, offset, None, None, copies)
        table, offset = column.split(given)
        return GivenRows(table, y, weight, offset, given, column, copies)

    def _warn_of_far_numbers(self, config: Config, model: WideModel) -> None:
        """Warn of numbers far from 0 that a formula multiplies by coefficients of categories, and that are not centred.

        These are centred where the formula has the same term without the number, which takes up the difference.
        """
        if config.formula is None or self._only_predicts:
            return
        spec, uncertainty = model.spec, model.uncertainty
        for index, term in enumerate(spec.fitted_terms):
            if term.numeric is None or spec.is_scalar(term) or index in spec.centering_terms:
                continue
            block = next(factor.block for factor in term.factors if spec.blocks[factor.block].source is not None)
            variances = None if uncertainty is None else uncertainty.variances
            is_shrunk = config.l1 + config.l2 > 0.0 if variances is None else np.isfinite(variances[block])
            if not is_shrunk:
                continue
            moments = model.numerics[term.numeric]
            sd = moments.spread_about(moments.mean)
            if moments.squares > 0.0 and abs(moments.mean) > FAR * sd:
                name = " * ".join(map(show, spec.numerics[term.numeric].nodes))
                rounded = round(moments.mean, -math.floor(math.log10(sd)))
                warn_user(
                    f"The formula of {config.caller} multiplies {spec.blocks[block].name} by {name}, "
                    f"whose values are far from 0 (mean {moments.mean:.6g}, standard deviation {sd:.3g}): "
                    f"coefficients are shrunk towards 0 at {name} = 0, where there are no rows; write "
                    f"({name} {'-' if rounded > 0.0 else '+'} {abs(rounded):.15g})."
                )
                return

    def _warn_of_furthest_numbers(self, config: Config, model: WideModel) -> None:
        """Warn of slopes of numbers so far from 0 that the slope times the number leaves predictions few digits."""
        for term in model.spec.fitted_terms:
            if term.numeric is None or self._only_predicts:
                continue
            moments = model.numerics[term.numeric]
            sd = math.sqrt(moments.squares / (moments.weight or 1.0))
            if 0.0 < FURTHEST * sd < abs(moments.mean):
                name = " * ".join(map(show, model.spec.numerics[term.numeric].nodes))
                warn_user(
                    f"The values of {name} are {moments.mean:.6g} with a standard deviation of {sd:.3g}, so that "
                    f"predictions of {config.caller} are rounded, to about {1e-16 * abs(moments.mean) / sd:.0e} of "
                    f"what {name} adds; subtract a number near {moments.mean:.6g} from it."
                )
                return

    def _warn_of_text(self, config: Config, model: WideModel, table: Table) -> None:
        """Warn of text that is numbers or dates, whose values are categories unless the user has decided.

        By the categories, of which there are fewer than rows, and which are known once the model is fitted.
        """
        if config.formula is not None or config.cols is not None or self._only_predicts:
            return
        for source in model.spec.sources:
            if not isinstance(source, CategoricalSource) or len(source.columns) > 1 or source.closed:
                continue
            (name,), vocabulary = source.columns, source.vocabulary
            meaning = meant_by_text(vocabulary.categories.tolist(), f"X[{name!r}]")
            column = table[name]
            if meaning is None or isinstance(column.series.dtype, (nw.Categorical, nw.Enum)):
                continue
            what, example, code = meaning
            is_pandas = table.named and library_of(column.stored) == "pandas"
            example_code = f", e.g. with {code}" if code and is_pandas else f" to {what}"
            category = f" (X[{name!r}].astype('category'))" if is_pandas else ""
            warn_user(
                f"Column {name!r} is text of {what} ({example!r}, ...), and {config.caller} takes it for "
                f"{plural(len(vocabulary), 'category', 'categories')}; convert it{example_code}, or pass it as a "
                f"category{category} where that is meant."
            )

    def _has_log_link(self) -> bool:
        """Whether the loss has a log link, or is selected among losses with one."""
        return False

    @one_blas_thread()
    def _fit(
        self, config: Config, training: Training, loss: Loss, n_outputs: int, precomputed: Precomputed | None = None
    ) -> KeyboardInterrupt | None:
        """Fit from scratch on a validated table; fitted attributes are set last, all together.

        Returns the interrupt of training after its first iteration, if any, to be raised when all attributes are set.
        """
        rng = check_random_state(self.random_state)
        fitted = fit_model(config, training, loss, n_outputs, rng, precomputed)
        if not isinstance(config.optimizer, Newton):  # partial_fit continues with it
            self._rng = rng
        sums = training.sums() if isinstance(config.optimizer, Newton) else None
        return self._adopt_fit(config, fitted, training, training.n_weighted, sums)

    def _adopt_fit(
        self, config: Config, fitted: Fitted, training: Training, n_rows: int, sums: dict[str, float] | None
    ) -> KeyboardInterrupt | None:
        """Set the fitted attributes; `training`: the rows, or a sample of them."""
        training_result = fitted.training_result
        uncertainty = fitted.model.uncertainty
        if uncertainty is not None and self._class_effect != 1.0:  # a weight is no repeated row
            uncertainty = uncertainty.times(self._class_effect)
            fitted = replace(fitted, model=replace(fitted.model, uncertainty=uncertainty))
        self._similar = None
        if self.handle_unknown == "similar":
            self._similar = Similar.fit(fitted.model, training.weighted_rows(), self.n_jobs)
        self._chosen = fitted.chosen
        self._warn_of_far_numbers(config, fitted.model)
        self._warn_of_furthest_numbers(config, fitted.model)
        self._warn_of_text(config, fitted.model, training.table)
        self._remember(training)
        if sums is not None:
            self._sums = sums
        self._keep(
            fitted.model,
            training_result.loss_curve,
            training_result.validation_curve,
            n_rows * len(training_result.loss_curve),
        )
        self._by_formula = config.formula is not None
        if not training_result.interrupted:
            return None
        done = plural(len(training_result.loss_curve), "iteration" if isinstance(config.optimizer, Newton) else "epoch")
        return KeyboardInterrupt(f"Stopped after {done}; the model is fitted, and usable.")

    def _remember(self, training: Training) -> None:
        """Store the feature names and the offset column for validation in predict."""
        remember_features(self, training.table if training.given is None else training.given)
        self._offset_column = training.offset_column
        self._had_offset = training.offset is not None and training.offset_column is None
        self._moments = {
            column.name: str(column.measure)
            for column in training.table.columns
            if column.kind is Kind.NUMERIC and column.measure.name != "numbers"
        }

    def _keep(self, model: WideModel, curve: list[float], validation: list[float], n_rows_seen: int) -> None:
        self.model_ = model
        self._by_formula = False  # streams and `partial_fit` add no intercept to a formula
        self.loss_curve_ = curve
        self.n_iter_ = len(curve)
        self.n_rows_seen_ = n_rows_seen
        if validation:
            self.validation_curve_ = validation
        elif hasattr(self, "validation_curve_"):
            del self.validation_curve_

    # -- using --------------------------------------------------------------

    def predict_to_parquet(self, X: Any, path: Any, *, keep: Sequence[str] = ()) -> int:
        """Predict a table larger than memory batch by batch, into a Parquet file.

        Parameters
        ----------
        X : pyarrow.dataset.Dataset, polars.LazyFrame, DuckDB relation, or path
            The path of a Parquet file, or of a folder of them. Columns that the model does not use are left aside.
        path : str or path-like
            Where the file is written: a column `prediction`, of classifiers also `probability_<class>`.
        keep : sequence of str
            Columns of `X` to write along, such as a key of the rows.

        Returns
        -------
        int
            The number of rows.

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> rows = pd.DataFrame({"shop": ["a", "b"] * 50, "sales": [1.0, 3.0] * 50})
        >>> model = WideRegressor(loss="squared_error").fit(rows, "sales")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows.to_parquet(f"{folder}/rows.parquet")
        ...     model.predict_to_parquet(f"{folder}/rows.parquet", f"{folder}/predicted.parquet", keep=["shop"])
        100
        """
        check_is_fitted(self, "model_")
        return predict_to_parquet(self, X, path, list(keep))

    def _margins(self, X: Any, offset: Any = None) -> Floats:
        """Linear predictors (n, K) of a table, on the original scale."""
        X = as_rows(X)
        check_same_rows(X, offset=offset)
        table, column_offset = self._read_to_predict(X)
        offset = self._offset_to_add(column_offset, offset)
        margins = self.model_.margins(table, self.n_jobs)
        if self.handle_unknown == "error":
            self._refuse_unseen(table)
        if self.handle_unknown == "similar":
            if getattr(self, "_similar", None) is None:
                raise ValueError("handle_unknown='similar' was set after fit, which prepares it; fit again.")
            margins = margins + self._similar.add(table, self.model_.n_outputs)
        if offset is None:
            return margins
        given = by_class(offset, getattr(self, "classes_", None), "offset")
        return margins + check_offset(given, len(table), self.model_.n_outputs)

    def _read_to_predict(self, X: Any) -> tuple[Table, Floats | None]:
        """The features of the fit from a table, validated, and the offset column (n,) or None."""
        check_is_fitted(self, "model_")
        if isinstance(X, (list, tuple)) and not X:  # no rows, as services may get them
            names = getattr(self, "feature_names_in_", None)
            X = np.empty((0, self.n_features_in_)) if names is None else FromRows(columns=list(names))
        table = read_table(X, caller=type(self).__name__, allow_empty=True)
        column = getattr(self, "_offset_column", None)
        by_name = table.named and hasattr(self, "feature_names_in_")  # otherwise by position, as the features
        if column is not None and by_name and column.name not in table.names:
            column.split(table)  # raises the ValueError
        if self._is_of_formula or isinstance(X, FromRows):  # in any order, and with additional columns
            table = select_features(self, table)
        if isinstance(X, FromRows):
            refuse_lacking(X, (name for name in table.names if column is None or name != column.name))
        table = match_features(self, table)
        self._check_measures(table)
        return (table, None) if column is None else column.split(table)

    @property
    def _is_of_formula(self) -> bool:
        """Whether the fitted model is that of a formula, whatever the option `formula` is now."""
        without = not any(block.name == INTERCEPT for block in self.model_.spec.blocks)
        return without or getattr(self, "_by_formula", False)  # that of smooth terms has an intercept, too

    def _check_measures(self, table: Table) -> None:
        """A `TypeError` where numbers of training are dates or durations now, or the other way round."""
        spec, measures = self.model_.spec, getattr(self, "_moments", {})
        seen = zip(spec.numerics, self.model_.numerics, strict=True)
        empty = {name for numeric, moments in seen if moments.weight <= 0.0 for name in numeric.columns}
        for name in spec.number_columns:
            if name not in empty:
                table[name].check_measure(measures.get(name, NUMBERS))

    def _offset_to_add(self, column_offset: Floats | None, offset: Any) -> Any:
        """The offset at prediction, a column or `offset`; warns where only training had one."""
        if column_offset is not None:
            if offset is not None:
                raise ValueError(
                    f"offset= is given, and {self._offset_column} is read from the table; leave offset out."
                )
            return column_offset
        if offset is None:
            self._warn_of_no_offset("predicts without one; give offset to predict, or")
        return offset

    def _warn_of_no_offset(self, how: str) -> None:
        """A `UserWarning` where training had an offset that is no column of the table."""
        if getattr(self, "_had_offset", False):
            warn_user(
                f"{type(self).__name__} was fitted with offset=, and {how} name a column of the table by offset_column."
            )

    def _score_deviations(self, X: Any) -> Floats:
        """Posterior standard deviations (n,) of the linear predictors of a table."""
        table, _ = self._read_to_predict(as_rows(X))  # an offset is certain
        uncertainty = self.model_.uncertainty
        if uncertainty is None or uncertainty.samples is None:
            raise ValueError(
                "return_std=True needs samples from the posterior: fit with n_posterior_samples=32, for sums of terms "
                "and one linear predictor (not for more than two classes)."
            )
        return self.model_.score_deviations(table, self.n_jobs)

    def _refuse_unseen(self, table: Table) -> None:
        unseen = self.model_.first_unseen(table)
        if unseen is not None:
            name, row = unseen
            raise ValueError(
                f"Column {name!r} holds {table[name].series.to_list()[row]!r} (row {row}), which was not seen in fit; "
                "use handle_unknown='neutral' to let it add nothing, or fit on rows that have it."
            )


def _warn_of_columns(config: Config, table: Table, y: Any) -> None:
    """Warn of columns that are taken for what they may not be: codes, rounded numbers, labels of rows.

    Of integers that look like codes but are treated as numeric, unless the user has decided; of whole numbers that are
    taken for quantities, and of which float64 makes fewer; of the labels of rows that pandas wrote into a file next to
    the columns, under a name of its own.
    """
    like_codes = []
    if config.cols is None and y is not None:
        like_codes = [name for name in code_columns(table, plain_labels(y)) if name not in config.numeric_of]
    if like_codes:
        columns = [column.name for column in categorical_columns(table, None, booleans=True)]
        what = (
            f"Column {like_codes[0]!r} holds"
            if len(like_codes) == 1
            else f"Columns {', '.join(map(repr, like_codes[:5]))} hold"
        )
        warn_user(
            f"{what} whole numbers that {CODES}, and {config.caller} takes numbers as quantities; if they name "
            f"things, make them categories: categorical_features={[*columns, *like_codes]!r}, or text in the table; if "
            f"they are quantities: numeric={dict.fromkeys(like_codes, config.numeric)!r}."
        )
    cols = columns_of(config.cols, table.names)
    named = {column.name for column in categorical_columns(table, cols, booleans=True, option="categorical_features")}
    for column in table.columns:
        if column.kind is not Kind.NUMERIC or column.name in named or column.measure != NUMBERS:
            continue
        values = exact_values(column)
        if np.iscomplexobj(values) and len(np.unique(values)) > len(np.unique(values.real)):
            warn_user(
                f"Column {column.name!r} holds whole numbers of more than 15 digits, some of which are one number "
                f"in 64-bit floats, by which {config.caller} computes; subtract the smallest one, or make them "
                "categories by categorical_features."
            )
    labels = [name for name in table.names if name.startswith("__index_level_")]
    if labels:
        warn_user(
            f"Column {labels[0]!r} is the index of the pandas frame that the table was written from, and "
            f"{config.caller} takes it for a feature; drop it, or write the table with index=False."
        )


def _warn_of_other_meanings(caller: str, formula: Formula) -> None:
    """Warn of terms that formulas of R, lme4 and statsmodels give a coefficient, or a correlation."""
    for effects in formula.correlated:
        warn_user(
            f"The formula of {caller} has {effects}, whose intercepts and slopes are estimated without a "
            "correlation between them; write || in place of |, which means that."
        )
    for term in (term for term in expand(formula) if not term.blocks):
        if term.numerics:
            name = " * ".join(map(show, term.numerics))
            what = f"{name!r} without a coefficient, as an offset; write s[1]*{name} to estimate its slope"
            remedy = f", or offset_column={name!r} for an offset" if isinstance(term.numerics[0], ColumnRef) else ""
        else:
            what, remedy = f"the constant {term.constant:g}; write b[1] for an intercept", ""
        warn_user(f"The formula of {caller} adds {what}{remedy}.")
