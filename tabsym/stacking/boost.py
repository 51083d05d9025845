"""`WideBoostClassifier` and `WideBoostRegressor`: a wide model under a booster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.frame import (
    Table,
    check_classes,
    check_regression_target,
    check_same_rows,
    check_weights,
    read_table,
    split_target,
)
from tabsym.frame.target import totals_of_classes, weights_of_classes
from tabsym.losses.loss import LOSSES, Loss
from tabsym.models.docs import fill_in
from tabsym.models.loss_selection import with_loss_of
from tabsym.models.targets import LabelClassifier, NumberRegressor
from tabsym.stacking.base import WideBoost
from tabsym.stacking.selection import Criterion

STACK_PARAMETERS = """\
wide : WideClassifier or WideRegressor (or online), default None
    The wide model, unfitted; None: one with its defaults. Of one with `offset_column` or `exposure_column`, every
    booster starts from scores with the offset, as in ``mode="margin"``, and the column is a feature of none. Its
    `monotonic_cst` is kept by the boosters too.
booster : estimator, default None
    Of LightGBM, XGBoost, CatBoost or of an adapter of your own; HistGradientBoosting; or any estimator of scikit-learn.
    None: a small LightGBM with a low learning rate, or HistGradientBoosting if LightGBM is not installed.
mode : {"auto", "margin", "feature"}, default "auto"
    "margin": the booster starts from the wide model's scores (`init_score`, `base_margin`, `baseline`; residuals
    where a scikit-learn regressor has none of these and the link is the identity); "feature": they are additional
    columns; "auto": "margin" ("feature" where margins are not possible) is blended with the booster alone over native
    categories, with the weights that minimize the loss on held-out rows. A component beyond the wide model is kept if
    its gain there exceeds half a standard error.
cv : int, splitter or list of splits, default 3
    The folds of the out-of-fold margins; with an int they are shuffled, and stratified in classification. Splitters get
    `groups`; a list of pairs (training, held-out) names rows of the table given to `fit`. Rows that no fold holds out,
    such as the first of TimeSeriesSplit, have no margin, and a booster that starts from margins is trained without them
    (with a UserWarning).
codes : {"ordinal", "native", "group"} or transformer, default "ordinal"
    How categories are coded for the booster: by their rank in frequency, as the library's own categories, as MODL's
    groups, or by your own encoder, whose ``fit_transform`` codes the training rows, so that one that shows the target
    is out of fold there. It gets the sample weights if its `fit` takes them, more than two classes as text.
booster_cols : list of str (or positions, for arrays), one of them or None, default None
    The columns that the booster sees; None: all.
early_stopping : "folds", float or False, default "folds"
    How the number of rounds is chosen (0 is the wide model alone). "folds": by the held-out rows of the first fold of
    `cv` (of more folds, where that holds fewer than 100 rows; of the latest of a splitter over time); a fraction: by
    this fraction of the rows, which are held out before the folds are made (with `groups`, whole groups) and used by
    the final wide model only; False: all rounds of the booster, without validation.
random_state : int, RandomState or None, default 0
    Seed of the folds, and of a wide model and a booster without a `random_state`.
n_jobs : int or None, default None
    Threads of the default wide model and booster.
verbose : int, default 0
    1 writes a line per candidate, with its loss on held-out rows, to standard error."""

CLASS_WEIGHT = """\
class_weight : mapping of class -> float, "balanced" or None, default None
    Multiplies the sample weights of the wide model, of the booster and of the held-out rows, those of `eval_set` too.
    "balanced": inversely to the total weight of a class's rows. Refused where the wide model or the booster has its
    own."""

CLASS_WEIGHT_OPTIONS: dict[str, Any] = {
    "class_weight": None,
    "class_weights": None,
    "auto_class_weights": None,
    "is_unbalance": False,
    "scale_pos_weight": 1.0,
}
"""Options by which boosters weigh classes, and their defaults."""

STACK_ATTRIBUTES = """\
wide_ : WideClassifier or WideRegressor
    Fitted on all rows.
shares_ : dict of str -> float
    The weights of the components "wide" (the wide model alone), "margin", "feature" and "alone"; components of weight 0
    are left out. Scores are averaged before the link.
boosters_ : dict of str -> estimator
    Fitted boosters, by mode; empty if no booster helps on held-out rows. They see classes as 0, 1, ...
n_rounds_ : dict of str -> int
    Rounds of the boosters; 0 for "wide".
evidence_ : pandas.DataFrame or None
    The validation scores of the candidates: `mode` ("both": the blend of two), `rounds`, `share` (weight) of the
    booster alone, `loss`, the mean over held-out rows, `gain` over the wide model ("both": over the other component
    alone) with its standard `error` over rows, the number of `folds`, and `variant`, what distinguishes a second
    candidate of the same mode; None with ``early_stopping=False``.
feature_importances_ : ndarray of shape (n_columns,)
    The fraction of each column in the scores.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_columns,)
    Column names, where the table has them."""

STACK_NOTES = """\
The validation loss, by which the rounds and the components are chosen, is that of the wide model: the log loss for
classes, the loss that ``wide=WideRegressor(loss="poisson")`` names; with ``loss="auto"`` the squared error (the
absolute one with ``scoring="neg_mean_absolute_error"``). The metric of a booster (`metric`, `eval_metric`) has no
part in it."""


Floats = NDArray[np.float64]


@fill_in(
    parameters=STACK_PARAMETERS.replace("random_state : int", f"{CLASS_WEIGHT}\nrandom_state : int"),
    attributes=STACK_ATTRIBUTES,
    notes=STACK_NOTES,
)
class WideBoostClassifier(LabelClassifier, WideBoost):
    """A wide classifier with a booster on top: the wide model fits categories, the booster the rest.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    {attributes}

    Notes
    -----
    {notes}

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideBoostClassifier
    >>> X = pd.DataFrame({"colour": ["red", "blue", "red", "green"] * 50, "price": range(200)})
    >>> y = ["sold" if c == "red" and p < 120 else "kept" for c, p in zip(X["colour"], X["price"])]
    >>> model = WideBoostClassifier(random_state=0, n_jobs=1).fit(X, y)
    >>> model.predict(X.iloc[[0, 1, 198]]).tolist()
    ['sold', 'kept', 'kept']
    """

    def __init__(
        self,
        wide=None,
        booster=None,
        *,
        mode="auto",
        cv=3,
        codes="ordinal",
        booster_cols=None,
        early_stopping="folds",
        class_weight=None,
        random_state=0,
        n_jobs=None,
        verbose=0,
    ):
        super().__init__(
            wide,
            booster,
            mode=mode,
            cv=cv,
            codes=codes,
            booster_cols=booster_cols,
            early_stopping=early_stopping,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, eval_set: Any = None
    ) -> WideBoostClassifier:
        """Cross-fit the wide model, train the booster on its margins out of fold, refit the wide model on all rows.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
            Rows of weight 0 are ignored.
        groups : array-like of shape (n_rows,), optional
            For a `cv` that keeps groups together, such as GroupKFold.
        eval_set : tuple of a table and its target (or the name of its column), optional
            Rows that choose the number of rounds, instead of the folds; each counts once, times `class_weight`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            The input is not valid; the message names the column or argument.
        """
        X, y = split_target(X, y, type(self).__name__)
        table = read_rows(type(self).__name__, X, y, sample_weight, groups)
        weight = check_weights(sample_weight, len(table))
        target = check_classes(y, len(table), caller=type(self).__name__)
        self._by_class = None
        if self.class_weight is not None:
            self._refuse_weights_twice()
            totals = totals_of_classes(target.codes, len(target.classes), weight)
            self._by_class = weights_of_classes(self.class_weight, target.classes, totals)
            of_class = self._by_class[target.codes]
            weight = of_class if weight is None else weight * of_class
        if weight is not None:
            absent = totals_of_classes(target.codes, len(target.classes), weight) == 0.0
            if np.count_nonzero(~absent) < 2:
                raise ValueError(
                    "Without the rows of weight 0 the target has 1 class only; give rows of both classes weight."
                )
            target = target.without(absent)
            self._by_class = None if self._by_class is None else self._by_class[~absent]
        self._fit(table, target.codes.astype(np.int64), target.classes, weight, groups, eval_set)
        self.classes_ = target.classes
        return self

    def decision_function(self, X: Any) -> Floats:
        """Scores before the link.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,), for more than two classes (n_rows, n_classes)
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, in the order of `classes_`.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        scores = self._scores(X)
        return self._loss.predict(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        scores = self._scores(X)
        positions = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[positions])

    def _loss_of(self, fitted: Any, n_classes: int) -> Loss:
        loss = fitted.model_.loss
        if loss.name not in ("logistic", "multinomial"):
            return loss
        return LOSSES["logistic" if n_classes == 2 else "multinomial"]  # held-out rows may take a class with them

    def _check_eval_target(self, y: Any, n_rows: int, labels: NDArray[Any] | None) -> tuple[NDArray[Any], Any]:
        target = check_classes(y, n_rows, classes=labels, caller=type(self).__name__, remedy="leave such rows out")
        codes = target.codes.astype(np.int64)
        return codes, None if self._by_class is None else self._by_class[codes]

    def _refuse_weights_twice(self) -> None:
        """A `ValueError` where the wide model or the booster would multiply by weights of its own."""
        for name, part in (("wide", self.wide), ("booster", self.booster)):
            params = part.get_params() if hasattr(part, "get_params") and not isinstance(part, type) else {}
            for option, default in CLASS_WEIGHT_OPTIONS.items():
                if params.get(option, default) not in (default, None):
                    raise ValueError(
                        f"class_weight={self.class_weight!r} is for the wide model and the booster, and {name} has "
                        f"{option}={params[option]!r}, which would weigh the classes twice; leave one of the two out."
                    )


@fill_in(parameters=STACK_PARAMETERS, attributes=STACK_ATTRIBUTES, notes=STACK_NOTES)
class WideBoostRegressor(NumberRegressor, WideBoost):
    """A wide regressor with a booster on top: the wide model fits categories, the booster the rest.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    {notes}
    A wide regressor with a log link (``loss="poisson"``, "gamma", "tweedie", or "auto") has margins on the
    log scale; the booster gets the objective of the same loss if it has none, and must have the same link.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideBoostRegressor
    >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50, "weight": range(200)})
    >>> y = [len(s) + 10.0 * (s == "L") + (w > 99) for s, w in zip(X["size"], X["weight"])]
    >>> model = WideBoostRegressor(random_state=0, n_jobs=1).fit(X, y)
    >>> model.predict(X.iloc[[0, 2, 198]]).round().tolist()
    [1.0, 11.0, 12.0]
    """

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, eval_set: Any = None
    ) -> WideBoostRegressor:
        """Cross-fit the wide model, train the booster on its margins out of fold, refit the wide model on all rows.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
            Rows of weight 0 are ignored.
        groups : array-like of shape (n_rows,), optional
            For a `cv` that keeps groups together, such as GroupKFold.
        eval_set : tuple of a table and its target (or the name of its column), optional
            Rows that choose the number of rounds, instead of the folds; each counts once.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            The input is not valid; the message names the column or argument.
        """
        X, y = split_target(X, y, type(self).__name__)
        table = read_rows(type(self).__name__, X, y, sample_weight, groups)
        target = _of_single_precision(check_regression_target(y, len(table), caller=type(self).__name__))
        self._fit(table, target, None, sample_weight, groups, eval_set)
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted values; with a log link, the mean.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        scores = self._scores(X)
        return self._loss.predict(scores)[:, 0]

    def _power_of_score(self) -> float | None:
        return None if self.wide is None else self.wide._power_of_score()

    def _settled(self, wide: Any, fitted: Any) -> Any:
        return with_loss_of(wide, fitted)

    def _loss_of(self, fitted: Any, n_classes: int) -> Loss:
        return fitted.model_.loss

    def _criterion(self, wide: Any, loss: Loss) -> Criterion:
        if wide.loss != "auto":
            return loss.values
        power = 1 if wide.scoring == "neg_mean_absolute_error" else 2
        return lambda scores, y: np.abs(loss.predict(scores)[:, 0] - y) ** power

    def _check_eval_target(self, y: Any, n_rows: int, labels: NDArray[Any] | None) -> tuple[NDArray[Any], Any]:
        return _of_single_precision(check_regression_target(y, n_rows, caller=type(self).__name__)), None


LARGEST = 1e37
"""Of a target, whose gradients boosters have in 32-bit floats, from 1.2e-38 to 3.4e38."""


def _of_single_precision(target: Floats) -> Floats:
    """The target, or a `ValueError` where it is infinite or 0 to a booster."""
    size = float(np.abs(target).max())
    if size > LARGEST or 0.0 < size < 1.0 / LARGEST:
        change = "divide" if size > LARGEST else "multiply"
        raise ValueError(
            f"The target is up to {size:g} in size, and boosters compute in 32-bit floats: {change} it by a constant, "
            f"so that its largest value is between {1.0 / LARGEST:g} and {LARGEST:g}."
        )
    return target


def read_rows(caller: str, X: Any, y: Any, sample_weight: Any, groups: Any) -> Table:
    """The table, after the indexes of pandas were compared."""
    check_same_rows(X, y=y, sample_weight=sample_weight, groups=groups)
    return read_table(X, caller=caller)
