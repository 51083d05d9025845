"""`WideClassifier` and `WideRegressor`: one interpretable coefficient per category, solved to the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabsym.frame import check_regression_target, split_target
from tabsym.frame.read import Batches, is_dataset, is_larger_than_memory, is_stream
from tabsym.losses.loss import LOSSES, Loss
from tabsym.messages import show_progress, warn_user
from tabsym.models.bins import Precomputed
from tabsym.models.checks import check_offset_of_loss, check_target_of_loss
from tabsym.models.config import Config, defaults_of, solved_config
from tabsym.models.constraints import without_frames
from tabsym.models.data import GivenRows, Training
from tabsym.models.docs import SOLVED_ATTRIBUTES, described, fill_in
from tabsym.models.loss_selection import choose_loss
from tabsym.models.out_of_core.fit import fit_out_of_core
from tabsym.models.out_of_core.parts import SAMPLE_ROWS
from tabsym.models.stream import target_name
from tabsym.models.targets import WideClassifierBase, WideRegressorBase

Floats = NDArray[np.float64]

SMOOTH_LOSSES = ("auto", *(name for name, loss in LOSSES.items() if loss.is_smooth and not loss.for_classes))


class _Solved:
    """Base class of the solved models; not public."""

    fixed: Any
    _only_predicts: bool

    def __getstate__(self) -> dict[str, Any]:
        """Fixed coefficients as lists instead of frames, for files without code."""
        state: Any = super().__getstate__()
        if isinstance(state.get("fixed"), Mapping):
            state = {**state, "fixed": without_frames(self.fixed)}
        return dict(state)

    def _config(self) -> Config:
        return solved_config(self, posterior=not self._only_predicts)

    def _in_batches(
        self, X: Any, y: Any, sample_weight: Any, offset: Any, freq_weights: Any, cache_dir: Any
    ) -> tuple[Any, Any, Batches | None]:
        """The table, weights, and batches where it is larger than memory may be: a file, dataset or lazy frame."""
        formula: Any = self.formula  # type: ignore[attr-defined]
        if is_larger_than_memory(X) and (
            is_dataset(X) or isinstance(X, (str, Path)) or y is None or isinstance(y, str)
        ):
            target_name(y, formula)
            batches = Batches(X)
            if offset is not None:
                raise ValueError(
                    "offset of a table that is read in batches is one of its columns: name it by offset_column or "
                    "exposure_column."
                )
            if batches.count() > SAMPLE_ROWS:
                if freq_weights is not None:
                    raise ValueError(
                        "freq_weights is for a table in memory, and this one is read in batches; read it into one "
                        "(dataset.to_table(), lazy_frame.collect()), or name sample_weight instead."
                    )
                return X, sample_weight, batches
            X = batches.whole()
            if cache_dir is not None:
                warn_user(
                    f"cache_dir={str(cache_dir)!r} has no effect: tables of up to {SAMPLE_ROWS:,} rows are read whole, "
                    "and no coded rows are kept of them; leave it out."
                )
            if isinstance(sample_weight, str):
                X, sample_weight = split_target(X, sample_weight, type(self).__name__)
        elif is_stream(X):
            name = type(self).__name__
            raise ValueError(
                f"{name} goes over all rows again and again, and a stream comes in batches; use "
                f"{name.replace('Wide', 'WideSGD')} for streams, pass an Arrow dataset or the path of a folder of "
                "Parquet files, or read the rows into one table."
            )
        elif cache_dir is not None:
            raise ValueError(
                "cache_dir keeps rows that were coded from Parquet files, and this table is in memory; leave it out, "
                "or pass the path of a Parquet file or folder and the target by its name."
            )
        return X, sample_weight, None


@fill_in(
    parameters=described(
        "formula categorical_features numeric interactions alpha count_effect monotonic_cst fixed class_weight "
        "offset_column handle_unknown n_posterior_samples n_init max_iter tol random_state n_jobs verbose"
    ),
    attributes=SOLVED_ATTRIBUTES,
)
class WideClassifier(_Solved, WideClassifierBase):
    """Classifier with one interpretable coefficient per category (per class, where there are more than two).

    The linear predictor of a row is an intercept plus one coefficient for the category in each categorical column, one
    for each interaction, and a smooth effect of each numeric column; a logistic or softmax link makes probabilities of
    it. All coefficients are solved for by block coordinate Newton steps, without one-hot columns; the ridge penalty of
    each term is estimated (REML), so that infrequent categories are shrunk according to their term's variance.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    {attributes}

    See Also
    --------
    WideSGDClassifier : the same models online, for streams and `partial_fit`.

    References
    ----------
    Wood and Fasiolo 2017, "A generalized Fellner-Schall method for smoothing parameter estimation" (the penalties).

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideClassifier
    >>> X = pd.DataFrame({"colour": ["red", "blue", "green", "grey"] * 25})
    >>> y = ["sold", "kept", "sold", "kept"] * 24 + ["kept", "sold", "sold", "kept"]
    >>> model = WideClassifier().fit(X, y)
    >>> model.predict(pd.DataFrame({"colour": ["red", "blue", "green"]})).tolist()
    ['sold', 'kept', 'sold']
    >>> model.coefs_["colour"]["value"].gt(0).to_dict()
    {'red': True, 'blue': False, 'green': True, 'grey': False}
    """

    def __init__(
        self,
        formula=None,
        *,
        categorical_features="from_dtype",
        numeric="smooth",
        interactions="auto",
        alpha="auto",
        count_effect=True,
        monotonic_cst=None,
        fixed=None,
        class_weight=None,
        offset_column=None,
        handle_unknown="neutral",
        n_posterior_samples=0,
        n_init=3,
        max_iter=200,
        tol=1e-3,
        random_state=0,
        n_jobs=None,
        verbose=0,
    ):
        self.formula = formula
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.interactions = interactions
        self.alpha = alpha
        self.count_effect = count_effect
        self.monotonic_cst = monotonic_cst
        self.fixed = fixed
        self.class_weight = class_weight
        self.offset_column = offset_column
        self.handle_unknown = handle_unknown
        self.n_posterior_samples = n_posterior_samples
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        freq_weights: Any = None,
        cache_dir: Any = None,
    ) -> WideClassifier:
        """Fit from scratch.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            Or a table larger than memory: the path of a Parquet file or of a folder of them, a pyarrow Dataset, a
            polars LazyFrame or a DuckDB relation. Of more than 200,000 rows these are fitted out of core, with bins and
            interactions by a sample; `y` and `sample_weight` are then names of columns.
        y : array-like of shape (n_rows,), or the name of its column in X
            Classes: numbers, text or booleans. May be left out where the formula names the target.
        sample_weight : array-like of shape (n_rows,), or of a table larger than memory a name, optional
            Relative to their mean. The variance of a row of a regression is inverse to its weight, unless squared
            residuals contradict that. Rows of weight 0 count as absent.
        offset : array-like of shape (n_rows,), for more than two classes (n_rows, n_classes), optional
            Added to the linear predictor of each row; give it to `predict` too.
        freq_weights : array-like of shape (n_rows,), optional
            How many rows each row stands for, as after GROUP BY: whole numbers, and 0 for a row that is not there. The
            fit is that of the rows themselves, variances included, in the time of the table given; weights and offset
            are those of each of the rows. Not for a table larger than memory.
        cache_dir : str or path-like, optional
            A folder where the rows of Parquet files that are fitted out of core are kept once they are coded: the next
            fit with it, after an interruption or with other options, takes them from there. They are coded again, after
            a warning, where a file, the columns or `random_state` changed. Of a table that is read whole a warning says
            that it has no effect.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            In a sentence that names the column or argument; also where the indexes of pandas contradict each other.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideClassifier
        >>> counted = pd.DataFrame({"colour": ["red", "red", "blue"], "sold": [1, 0, 0], "count": [30, 10, 40]})
        >>> model = WideClassifier(alpha=0.01).fit(counted[["colour"]], counted["sold"], freq_weights=counted["count"])
        >>> model.coefs_["colour"]["rows"].to_dict()
        {'red': 40, 'blue': 40}
        """
        config = self._config()
        X, sample_weight, batches = self._in_batches(X, y, sample_weight, offset, freq_weights, cache_dir)
        if batches is None:
            self._fit_classes(config, X, y, sample_weight, offset, freq_weights)
            return self
        interrupted = fit_out_of_core(self, batches, y, sample_weight, cache_dir)
        if interrupted is not None:
            raise interrupted
        return self


@fill_in(
    parameters=described(
        "formula categorical_features numeric interactions loss_solved scoring alpha count_effect monotonic_cst "
        "fixed offset_column exposure_column handle_unknown n_posterior_samples n_init max_iter tol random_state "
        "n_jobs verbose"
    ),
    attributes=SOLVED_ATTRIBUTES,
)
class WideRegressor(_Solved, WideRegressorBase):
    """Regressor with one interpretable coefficient per category.

    The linear predictor of a row is an intercept plus one coefficient for the category in each categorical column, one
    for each interaction, and a smooth effect of each numeric column; for a loss with a log link, its exponential is
    the prediction. All coefficients are solved for by block coordinate Newton steps, without one-hot columns; the
    ridge penalty of each term is estimated (REML), so that infrequent categories are shrunk according to their term's
    variance.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    losses_ : pandas.DataFrame
        With ``loss="auto"`` only: the losses that were compared, and their score on held-out rows.

    See Also
    --------
    WideSGDRegressor : the same models online, for streams and `partial_fit`.

    References
    ----------
    Wood and Fasiolo 2017, "A generalized Fellner-Schall method for smoothing parameter estimation" (the penalties).

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
    >>> y = [10.0, 20.0, 30.0, 20.0] * 50
    >>> model = WideRegressor().fit(X, y)
    >>> model.predict(pd.DataFrame({"size": ["S", "L"]})).round().tolist()
    [10.0, 30.0]
    """

    losses = SMOOTH_LOSSES

    def _named_loss(self) -> Loss:
        name = getattr(self.loss, "name", self.loss)
        if name in ("absolute_error", "quantile"):
            raise ValueError(
                f"loss={self.loss!r} has no second derivative to solve by; use WideSGDRegressor, or loss='huber'."
            )
        return super()._named_loss()

    def __init__(
        self,
        formula=None,
        *,
        categorical_features="from_dtype",
        numeric="smooth",
        interactions="auto",
        loss="auto",
        scoring="neg_root_mean_squared_error",
        alpha="auto",
        count_effect=True,
        monotonic_cst=None,
        fixed=None,
        offset_column=None,
        exposure_column=None,
        handle_unknown="neutral",
        n_posterior_samples=0,
        n_init=3,
        max_iter=200,
        tol=1e-3,
        random_state=0,
        n_jobs=None,
        verbose=0,
    ):
        self.formula = formula
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.interactions = interactions
        self.loss = loss
        self.scoring = scoring
        self.alpha = alpha
        self.count_effect = count_effect
        self.monotonic_cst = monotonic_cst
        self.fixed = fixed
        self.offset_column = offset_column
        self.exposure_column = exposure_column
        self.handle_unknown = handle_unknown
        self.n_posterior_samples = n_posterior_samples
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        freq_weights: Any = None,
        cache_dir: Any = None,
    ) -> WideRegressor:
        """Fit from scratch.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            Or a table larger than memory: the path of a Parquet file or of a folder of them, a pyarrow Dataset, a
            polars LazyFrame or a DuckDB relation. Of more than 200,000 rows these are fitted out of core, with bins and
            interactions by a sample; `y` and `sample_weight` are then names of columns.
        y : array-like of shape (n_rows,), or the name of its column in X
            Finite numbers. May be left out where the formula names the target.
        sample_weight : array-like of shape (n_rows,), or of a table larger than memory a name, optional
            Rows of weight 0 count as absent.
        offset : array-like of shape (n_rows,), optional
            Added to the linear predictor of each row, as log(exposure) is for counts; give it to `predict` too. Not
            with ``loss="auto"``.
        freq_weights : array-like of shape (n_rows,), optional
            How many rows each row stands for, as after GROUP BY: whole numbers, and 0 for a row that is not there. The
            fit is that of the rows themselves, variances included, in the time of the table given; weights and offset
            are those of each of the rows. Not for a table larger than memory.
        cache_dir : str or path-like, optional
            A folder where the rows of Parquet files that are fitted out of core are kept once they are coded: the next
            fit with it, after an interruption or with other options, takes them from there. They are coded again, after
            a warning, where a file, the columns or `random_state` changed. Of a table that is read whole a warning says
            that it has no effect.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            In a sentence that names the column or argument; also where the indexes of pandas contradict each other.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> counted = pd.DataFrame({"size": ["S", "S", "L"], "price": [10.0, 12.0, 30.0], "count": [20, 20, 40]})
        >>> model = WideRegressor(loss="squared_error")
        >>> model = model.fit(counted[["size"]], counted["price"], freq_weights=counted["count"])
        >>> model.coefs_["size"]["rows"].to_dict()
        {'S': 40, 'L': 40}
        """
        config = self._config()
        if not self._names_no_loss():
            self._named_loss()
            self._refuse_scoring()
        X, sample_weight, batches = self._in_batches(X, y, sample_weight, offset, freq_weights, cache_dir)
        if batches is not None:
            interrupted = fit_out_of_core(self, batches, y, sample_weight, cache_dir)
        else:
            rows = self._read_rows(config, X, y, sample_weight, offset, freq_weights)
            loss, training, precomputed, losses = self._loss_and_training(config, rows)
            interrupted = self._fit(config, training, loss, 1, precomputed)
            self._losses = losses
        if interrupted is not None:
            raise interrupted
        return self

    def _loss_and_training(
        self, config: Config, rows: GivenRows
    ) -> tuple[Loss, Training, Precomputed | None, dict[str, float] | None]:
        """The loss, chosen on held-out rows where none is named, and the rows validated for it; scores of losses."""
        if not self._names_no_loss():
            self._refuse_scoring()
            return self._named_loss(), self._training(rows), None, None
        if config.fixed:
            raise ValueError(
                "loss='auto' compares losses of different links, and fixed belongs to one of them; name the loss, "
                "such as loss='poisson' or 'squared_error'."
            )
        target = check_regression_target(rows.y, len(rows.table), caller=type(self).__name__)
        training = rows.training(target, 1).weighted_rows()
        losses = {name: LOSSES[name] for name in ("squared_error", "poisson", "gamma", "tweedie")}
        column = rows.offset_column
        if column is not None and column.is_exposure:
            del losses["squared_error"]
            check_target_of_loss(training.y, losses["poisson"])
            check_offset_of_loss(training.offset, losses["poisson"])
        elif training.offset is not None:
            given = "offset=" if column is None else str(column)
            raise ValueError(
                f"loss='auto' compares losses of different links, and {given} belongs to one of them; name the loss, "
                "such as loss='poisson' or 'squared_error'."
            )
        loss, scores, precomputed = choose_loss(
            config, training, losses, self.scoring, check_random_state(self.random_state)
        )
        show_progress(config.verbose, f"losses compared on held-out rows: {loss.public_name} of {', '.join(scores)}")
        return loss, training, precomputed, scores

    def _refuse_scoring(self) -> None:
        if self.scoring != defaults_of(type(self))["scoring"]:
            raise ValueError(
                f"scoring={self.scoring!r} has no effect with loss={self.loss!r}, as it chooses the loss of "
                "loss='auto'; leave one of them out."
            )

    @property
    def losses_(self) -> pd.DataFrame:
        """The losses that ``loss="auto"`` compared, and their scores on held-out rows, best first."""
        check_is_fitted(self, "model_")
        scores = getattr(self, "_losses", None)
        if scores is None:
            raise AttributeError("losses_ is there after a fit with loss='auto' only.")
        return pd.DataFrame({"loss": list(scores), "score": list(scores.values())})
