"""The coefficients of a wide model by category, as features for another model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from tabsym.categories import UNSEEN, Categories, RawCodes
from tabsym.encoders.folds import FoldFitter, OutOfFoldEncoder, refuse_one_class
from tabsym.encoders.lookups import MISSING
from tabsym.frame import (
    TARGET_TYPES,
    Kind,
    Table,
    check_classes,
    check_regression_target,
    check_target,
    holds_classes,
    name_of_target,
    read_table,
    relative_weights,
)
from tabsym.frame.frames import take_rows
from tabsym.models import WideClassifier, WideRegressor
from tabsym.models.config import defaults_of
from tabsym.models.loss_selection import with_loss_of
from tabsym.models.model import split_frame

Floats = NDArray[np.float64]

ADDITIVE: dict[str, Any] = {"interactions": None, "count_effect": False}
"""All that is known of a category is its number."""


@dataclass(frozen=True)
class WideColumn:
    """State of one column: its vocabulary, and the parameters (categories, K) of each category."""

    vocabulary: Categories
    names: list[str]
    values: Floats


class WideEncoder(OutOfFoldEncoder):
    """Replace each category by its coefficient in a wide model (one per class, for several).

    The model is additive by default, over the encoded columns and (see `numeric`) the numeric ones together, so a
    category's coefficient is its effect with the other columns held fixed, centred over the training rows; a target
    encoder's value is the plain mean target. (Coefficients are centred because the intercept can be shared between
    the terms of a sum in any way: without it, values of out-of-fold and of new rows, from other models, would differ
    by a constant.)

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor, default None
        Unfitted, without a formula, `categorical_features` and `handle_unknown`; None: `WideClassifier` or, with the
        squared error, `WideRegressor`, by the target, with one term per column: without interactions and effects of
        counts.
    target_type : {"auto", "classes", "continuous"}, default "auto"
        The kind of target, where no `model` determines it. "auto": text and booleans are classes; numbers with a
        fraction, more than 20 whole numbers, and fewer that look like counts or ratings are continuous, as in
        `compare`; a warning says what fewer are taken for.
    numeric : {"covariate", "passthrough"}, default "covariate"
        How numeric and boolean columns outside `cols` enter the model; in the output they are unchanged. "covariate":
        as terms, by the `numeric` of the model ("smooth" by default), and infinite values are errors. "passthrough":
        not at all.
    cv : int, splitter, list of splits or None, default 5
        `fit_transform` encodes each row by a model that was fitted without it, as
        scikit-learn's TargetEncoder does; None: as ``fit(X, y).transform(X)``, which leaks. Splitters
        get the `groups` of `fit_transform`. Rows that no fold holds out, as the first of TimeSeriesSplit, have 0.
    verbose : int, default 0
        Accepted for compatibility; nothing is printed.
    cols : list of str (or positions, for arrays), one of them, "all" or None, default None
        Columns to encode; None: text, object and category columns; "all": every column, numbers as categories
        (a column of that name alone is ``["all"]``). All others pass through untouched, in place.
    drop_invariant : bool, default False
        Drop output columns that are constant over the training rows.
    return_df : bool, default True
        Return a frame of the kind given (pandas for arrays); False: an array.
    handle_missing : {"value", "return_nan", "error"}, default "value"
        "value": missing is a category of its own where it occurred in training, else 0.
    handle_unknown : {"value", "return_nan", "error"}, default "value"
        How categories that are not in the training data are encoded. "value": as 0, the mean over the training rows.
    random_state : int, RandomState or None, default 0
        Of the default model and of the folds; 0: a second run makes the same features, None: others.

    Attributes
    ----------
    model_ : WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor or None
        Fitted on all rows; None where it would have no columns.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideEncoder
    >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
    >>> y = [10.5, 20.5, 30.5, 20.5] * 50
    >>> encoder = WideEncoder(random_state=0).fit(X, y)
    >>> encoder.transform(pd.DataFrame({"size": ["S", "L", "XL"]})).round()["size"].tolist()
    [-10.0, 10.0, 0.0]
    """

    model_: Any
    _allowed_options = {
        **OutOfFoldEncoder._allowed_options,
        "target_type": TARGET_TYPES,
        "numeric": ("covariate", "passthrough"),
    }

    def __init__(
        self,
        *,
        model=None,
        target_type="auto",
        numeric="covariate",
        cv=5,
        verbose=0,
        cols=None,
        drop_invariant=False,
        return_df=True,
        handle_missing="value",
        handle_unknown="value",
        random_state=0,
    ):
        self.model = model
        self.target_type = target_type
        self.numeric = numeric
        self.cv = cv
        self.verbose = verbose
        self.cols = cols
        self.drop_invariant = drop_invariant
        self.return_df = return_df
        self.handle_missing = handle_missing
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _fold_fitter(self, table: Table, y: Any, weight: Floats | None) -> FoldFitter:
        """A fold is fitted by a clone, and encoded by it."""
        classes = is_classifier(self.model_)
        target = check_classes(y, len(table)) if classes else None
        values = check_regression_target(y, len(table)) if target is None else target.codes
        labels = values if target is None else target.classes[values]

        def encoded(train: NDArray[Any], held_out: NDArray[Any]) -> dict[str, NDArray[Any]]:
            options = self.get_params(deep=False) | {"cv": None}  # which may be an iterator, and has no clone
            fold = clone(type(self)(**options)).set_params(
                drop_invariant=False, return_df=True, cols=list(self.columns_)
            )
            fold.set_params(target_type="classes" if classes else "continuous")  # as of all rows
            fold.set_params(model=None if self.model is None else with_loss_of(self.model, self.model_))
            if self.handle_unknown == "error":  # a category that the other folds lack was seen in fit
                fold.set_params(handle_unknown="value")
            each = None if weight is None else weight[train]
            if classes:
                refuse_one_class(labels[train] if each is None else labels[train][each > 0], "a fold")
            fold.fit(take_rows(table.native, train), labels[train], each)
            encoded_columns = fold._encoded_columns(read_table(take_rows(table.native, held_out)))
            seen = np.searchsorted(self.model_.classes_, fold.model_.classes_) if classes else None
            out: dict[str, NDArray[Any]] = {}
            for name, state in self.columns_.items():
                columns = _of_all_classes(list(encoded_columns[name].values()), seen, len(state.names))
                out |= dict(zip(state.names, columns, strict=True))
            return out

        return values, classes, encoded

    def _priors(self, table: Table) -> dict[str, NDArray[Any]]:
        """The output columns (n_rows,) of rows of which nothing is known, by name: 0, NaN as `handle_missing` says."""
        out: dict[str, Floats] = {}
        for name, codes in self._codes(table).items():
            state = self.columns_[name]
            unknown = replace(state, values=np.zeros_like(state.values))
            out |= dict(zip(state.names, self._encode_column(unknown, codes), strict=True))
        return out

    def _prepare(self, table: Table, encoded: list[str], y: Any, weight: Floats | None) -> None:
        """Fit the model over the encoded columns, and over the numeric ones where they are covariates."""
        target = check_target(y, len(table), type(self).__name__)
        model = self._choose_model(target, name_of_target(y), weight)
        others = self.numeric == "covariate"
        wanted = [c.name for c in table.columns if c.name in encoded or (others and c.kind is not Kind.CATEGORICAL)]
        if not wanted:
            self.model_ = None
            return
        chosen = [name for name in wanted if name in encoded or table[name].kind is Kind.BOOLEAN]
        model.set_params(categorical_features=chosen or "from_dtype")
        frame = nw.from_native(table.native, eager_only=True).select(wanted)
        self.model_ = model.fit(frame.to_native(), target, sample_weight=weight)

    def _choose_model(self, target: NDArray[Any], name: str, weight: Floats | None) -> Any:
        if self.model is None:
            if holds_classes(target, self.target_type, type(self).__name__, name, rows=relative_weights(weight)):
                return WideClassifier(**ADDITIVE, random_state=self.random_state)
            return WideRegressor(**ADDITIVE, loss="squared_error", random_state=self.random_state)
        if self.target_type == ("continuous" if is_classifier(self.model) else "classes"):
            raise ValueError(
                f"target_type={self.target_type!r} contradicts model={type(self.model).__name__}(...), which "
                "determines the kind of target; leave target_type out."
            )
        if self.model.formula is not None:
            raise ValueError(
                "model has a formula, and the encoder needs one term per column; give a model without a formula."
            )
        if self.model.handle_unknown != defaults_of(type(self.model))["handle_unknown"]:
            raise ValueError(
                f"model has handle_unknown={self.model.handle_unknown!r}, and the encoder treats unknown categories "
                "itself; leave it out there, and give WideEncoder its own handle_unknown."
            )
        given, default = self.model.categorical_features, defaults_of(type(self.model))["categorical_features"]
        if not isinstance(given, str) or given != default:
            raise ValueError(
                f"model has categorical_features={given!r}, and the encoder says itself which columns are categories; "
                "leave it out there, and give WideEncoder its own cols."
            )
        return clone(self.model)

    def _learn_column(self, name: str, raw: RawCodes, weight: Floats | None) -> WideColumn:
        vocabulary, codes = Categories.fit(name, raw)
        coefs = split_frame(self.model_.coefs_[name], self.model_.model_.n_outputs).values
        index = coefs.index.get_indexer(pd.Index(vocabulary.categories, dtype=object))
        names = [name] if coefs.shape[1] == 1 else [f"{name}_{label}" for label in coefs.columns]
        values = coefs.to_numpy()[index]
        rows = np.bincount(codes[codes >= 0], None if weight is None else weight[codes >= 0], minlength=len(values))
        return WideColumn(vocabulary, names, values - np.average(values, axis=0, weights=rows))

    def _encode_column(self, state: WideColumn, codes: NDArray[np.int32]) -> list[NDArray[Any]]:
        known = state.vocabulary.missing_code
        missing = (codes == MISSING) | ((codes == known) & (known != UNSEEN))
        values = np.where((codes >= 0)[:, None], state.values[np.maximum(codes, 0)], 0.0)
        if self.handle_missing == "return_nan":
            values[missing] = np.nan
        if self.handle_unknown == "return_nan":
            values[codes == UNSEEN] = np.nan
        return list(values.T)


def _of_all_classes(columns: list[NDArray[Any]], seen: Any, n_columns: int) -> list[NDArray[Any]]:
    """The output columns of a fold, 0 for classes that its training rows lack; `seen`: the indices of the others.

    The coefficients of several classes sum to 0. One column is the difference of two classes, which is half of it up
    and half of it down.
    """
    if len(columns) == n_columns:
        return columns
    if len(columns) == 1:
        columns = [-columns[0] / 2, columns[0] / 2]
    out = [0.0 * columns[0] for _ in range(n_columns)]  # NaN stays NaN
    for position, column in zip(seen, columns, strict=True):
        out[position] = column
    return out
