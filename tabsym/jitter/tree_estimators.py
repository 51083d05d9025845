"""`JitterTreeClassifier` and `JitterTreeRegressor`: trees that split categories by subsets and route unknown ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from tabsym.jitter.tree_base import JitterTree
from tabsym.jitter.tree_docs import TREE_ATTRIBUTES, TREE_NOTES, TREE_PARAMETERS
from tabsym.models.docs import fill_in
from tabsym.models.targets import LabelClassifier
from tabsym.table import check_classes, check_regression_target, check_target, split_target

Floats = NDArray[np.float64]


@fill_in(parameters=TREE_PARAMETERS, attributes=TREE_ATTRIBUTES, notes=TREE_NOTES)
class JitterTreeClassifier(LabelClassifier, JitterTree):
    """Decision tree that splits categories by subsets, and sends unknown categories where similar ones go.

    Parameters
    ----------
    criterion : {{"gini", "entropy", "log_loss"}}, default "gini"
        The impurity; "entropy" and "log_loss" are the same.
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    {attributes}

    Notes
    -----
    Of two classes the best subset of a node's categories is found exactly, by Breiman's ordering (of their means
    after shrinkage by `smooth`; of the raw means with ``smooth=0``); of more classes categories are ordered along the
    first principal component of their class proportions (Coppersmith, Hong and Hosking), which is close to optimal.
    Jitter, and the similarity of categories, are of Bang and Lin, "Jitter Trees". {notes}

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import JitterTreeClassifier
    >>> X = pd.DataFrame({{"model": ["a", "b", "c", "d"] * 25, "kind": ["car", "van"] * 50}})
    >>> y = ["sold", "kept"] * 50
    >>> tree = JitterTreeClassifier().fit(X, y)
    >>> print(tree.export_text())
    |--- model in {{b, d}}
    |   |--- class: kept (50 rows)
    |--- model not in {{b, d}}
    |   |--- class: sold (50 rows)
    >>> tree.predict(pd.DataFrame({{"model": ["new", "other"], "kind": ["car", "van"]}})).tolist()
    ['sold', 'kept']
    """

    _criteria = ("gini", "entropy", "log_loss")

    def __init__(
        self,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        min_impurity_decrease=0.0,
        smooth="auto",
        handle_unknown="similar",
        encoder=None,
        context=None,
        cols=None,
        random_state=None,
    ):
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.smooth = smooth
        self.handle_unknown = handle_unknown
        self.encoder = encoder
        self.context = context
        self.cols = cols
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> JitterTreeClassifier:
        """Grow the tree.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
            Classes: numbers, text or booleans; one class is possible.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows where impurity is measured; rows of weight 0 count as absent.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With the name of the column or option.
        """
        X, y = split_target(X, y, type(self).__name__)
        table, weight = self._read(X, y, sample_weight)
        who = type(self).__name__
        values = check_target(y, len(table), who)
        only = pd.unique(values)  # one class alone is no mistake here: ensembles draw such samples
        target = check_classes(y, len(table), classes=only if len(only) == 1 else None, who=who)
        self._fit(table, target.codes.astype(np.float64), weight, len(target.classes))
        self.classes_ = target.classes
        self.n_classes_ = len(target.classes)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities (n_rows, n_classes), in the order of `classes_`."""
        return self._route(X)[0]

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the class probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row (n_rows,)."""
        places = self._route(X)[0].argmax(axis=1)
        return np.asarray(self.classes_[places])

    def _say(self, node: int, decimals: int) -> str:
        return f"class: {self.classes_[self.tree_.value[node].argmax()]}"


@fill_in(parameters=TREE_PARAMETERS, attributes=TREE_ATTRIBUTES, notes=TREE_NOTES)
class JitterTreeRegressor(RegressorMixin, JitterTree):
    """Regression tree that splits categories by subsets, and sends unknown categories where similar ones go.

    Parameters
    ----------
    criterion : {{"squared_error"}}, default "squared_error"
        The impurity.
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    The best subset of a node's categories is found exactly, by Breiman's ordering (of their means after shrinkage by
    `smooth`; of the raw means with ``smooth=0``). Jitter, and the similarity of categories,
    are of Bang and Lin, "Jitter Trees". {notes}

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import JitterTreeRegressor
    >>> X = pd.DataFrame({{"model": ["a", "b", "c", "d"] * 25, "kind": ["car", "van"] * 50}})
    >>> tree = JitterTreeRegressor().fit(X, [10.0, 20.0, 11.0, 21.0] * 25)
    >>> tree.predict(pd.DataFrame({{"model": ["a", "new", "other"], "kind": ["car", "car", "van"]}})).round(1).tolist()
    [10.0, 10.5, 20.5]
    """

    _criteria = ("squared_error",)

    def __init__(
        self,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        min_impurity_decrease=0.0,
        smooth="auto",
        handle_unknown="similar",
        encoder=None,
        context=None,
        cols=None,
        random_state=None,
    ):
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.smooth = smooth
        self.handle_unknown = handle_unknown
        self.encoder = encoder
        self.context = context
        self.cols = cols
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> JitterTreeRegressor:
        """Grow the tree.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
            Finite numbers.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows where impurity is measured; rows of weight 0 count as absent.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With the name of the column or option.
        """
        X, y = split_target(X, y, type(self).__name__)
        table, weight = self._read(X, y, sample_weight)
        self._fit(table, check_regression_target(y, len(table), who=type(self).__name__), weight, 0)
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted values (n_rows,)."""
        return self._route(X)[0][:, 0]

    def _say(self, node: int, decimals: int) -> str:
        return f"value: {self.tree_.value[node, 0]:.{decimals}f}"
