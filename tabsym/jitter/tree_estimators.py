"""`JitterTreeClassifier` and `JitterTreeRegressor`: trees that split categories by subsets and route unknown ones.

Their options are described once, in `TREE_PARAMETERS`; `tree` has the tree itself, and what each `handle_unknown` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders import TIWSEncoder
from tabsym.frame import (
    Table,
    TableEstimator,
    check_classes,
    check_regression_target,
    check_same_rows,
    check_target,
    check_weights,
    match_features,
    read_table,
    relative_weights,
    remember_features,
    split_target,
)
from tabsym.jitter.tree import DONOR_MODES, OPTIONS, Rules, Tree, TreeColumns, TreeDonors, grow_tree, spread, write_tree
from tabsym.messages import check_declared_options
from tabsym.models.docs import fill_in
from tabsym.models.targets import LabelClassifier, NumberRegressor
from tabsym.tiws.counts import counted_rows

TREE_PARAMETERS = """\
max_depth : int or None, default None
    Maximal number of splits on the way to a leaf.
min_samples_split : int or float, default 2
    Rows that a node needs to be split; a float is a fraction of all.
min_samples_leaf : int or float, default 1
    Rows that each branch of a split needs; a float is a fraction of all.
min_weight_fraction_leaf : float, default 0.0
    Fraction of the total weight that each branch needs.
max_features : int, float, {"sqrt", "log2"} or None, default None
    Columns drawn for each split, or their fraction; more where none of them splits. None: all.
min_impurity_decrease : float, default 0.0
    By how much a split must lower the impurity, weighted by the fraction of rows in the node.
smooth : "auto" or float, default "auto"
    Shrinkage of each category's mean while a split is searched, as a number of rows at the mean of categories, so that
    columns of many categories do not win by chance. "auto": at each node and column, the variance within categories
    over the variance between them; a column whose categories differ no more than by chance is not split there. 0: none,
    which finds the subset that is best for the training rows.
handle_unknown : {"similar", "similar_per_node", "training_counts", "node_value", "error"}, default "similar"
    How rows with a category that is not in the training data are predicted. "similar": the weighted mean of the
    predictions with the category replaced by each similar known one (a donor). "similar_per_node": down both
    branches, weighted by the donors in each, anew at every node (the poster's wording). "training_counts": down
    both branches, weighted by their training rows. "node_value": by the value of the node that splits the column.
    "error": they are refused, whether or not the tree splits the column.
encoder : TIWSEncoder or None, default None
    Finds similar categories on the same table; None: ``TIWSEncoder()``. With ``method="poster"`` the similarities as
    published are the weights. A clone of it is fitted on the categorical columns that the tree splits, if there are
    any and `handle_unknown` needs donors.
context : {"batch", "row", "observed"} or None, default None
    The rows that describe an unknown category: None, as set in the encoder, by default "batch": all its rows in the
    call, so that its prediction can depend on the other rows of the call. "row": the row alone.
    "observed": what ``encoder_.observe`` was given.
cols : list of str (or positions, for arrays), one of them, "all" or None, default None
    Categorical columns; None: text, object and category columns. All others are numeric; dates are days.
random_state : int, RandomState or None, default None
    Of the columns drawn, where `max_features` is not all; nothing else is random."""

TREE_ATTRIBUTES = """\
tree_ : Tree
    Arrays over the nodes: feature, threshold, left, right, categories (their codes), value, n_rows, impurity and more.
encoder_ : TIWSEncoder or None
    Fitted, if donors can be needed.
feature_importances_ : ndarray of shape (n_columns,)
    The fraction of the total decrease of impurity that is due to each column.
max_features_ : int
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_columns,)
    Where the columns have names."""

TREE_NOTES = """\
Numbers are split halfway between values; missing ones go to the better branch, or, where a node had none, to the
branch with more rows. A missing category is a category of its own. A known category that no row of the node has goes
to the branch with more rows, by weight. Among splits that are equally good the first column's wins, then the lower
threshold. Rows of weight 0 count as absent."""


Floats = NDArray[np.float64]


class JitterTree(TableEstimator):
    """Shared by `JitterTreeClassifier` and `JitterTreeRegressor`; not public."""

    tree_: Tree
    encoder_: TIWSEncoder | None

    # -- fitting ------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, Floats | None]:
        check_declared_options(self)
        if not isinstance(self.encoder, TIWSEncoder | None):
            raise TypeError(f"encoder={self.encoder!r} is not possible; use a TIWSEncoder or None, the default one.")
        check_same_rows(X, y=y, sample_weight=sample_weight)
        table = read_table(X, caller=type(self).__name__)
        weight = check_weights(sample_weight, len(table))
        if weight is not None and not 1e-100 < weight.max() < 1e100:  # squares of sums would be 0, or no numbers
            weight = relative_weights(weight)
        return table, weight

    def _fit(self, table: Table, y: Floats, weight: Floats | None, n_classes: int) -> None:
        """Grow on rows of weight above 0; fitted attributes are set last, all together."""
        rows = counted_rows(weight)
        columns = TreeColumns.fit(table, self.cols, rows)
        cells, target = columns.cells(table), y
        counted = np.ones(len(table)) if weight is None else weight
        if rows is not None:
            cells, target, counted = np.ascontiguousarray(cells[:, rows]), y[rows], counted[rows]
        rules = Rules.of(self, len(target), len(columns.names), float(counted.sum()))
        tree = grow_tree(cells, columns.sizes, target, counted, n_classes, rules)
        encoder = self._fit_encoder(table, tree, y, weight, n_classes)
        remember_features(self, table)
        self._columns = columns
        self.max_features_ = rules.max_features
        self.tree_ = tree
        self.encoder_ = encoder

    def _fit_encoder(
        self, table: Table, tree: Tree, y: Floats, weight: Floats | None, n_classes: int
    ) -> TIWSEncoder | None:
        """Fitted to find the categories that unknown ones of the split columns resemble; None where not needed."""
        split = tree.splits_categories
        if self.handle_unknown not in DONOR_MODES or not len(split):
            return None
        encoder = TIWSEncoder() if self.encoder is None else clone(self.encoder)
        kind = "classes" if n_classes else "continuous"
        encoder.set_params(cols=[table.names[position] for position in split], target_type=kind)
        return encoder.fit(table.native, y.astype(np.int64) if n_classes else y, relative_weights(weight))

    # -- rows --------------------------------------------------------------------------------

    def _read_as_fitted(self, X: Any) -> Table:
        check_is_fitted(self, "tree_")
        check_same_rows(X)
        return match_features(self, read_table(X, caller=type(self).__name__, allow_empty=True))

    def _route(self, X: Any) -> tuple[Floats, NDArray[np.int64]]:
        """Values (n, K) and leaves (n,) of the rows; with unknown categories, the leaf with most of the weight."""
        table = self._read_as_fitted(X)
        cells = self._columns.cells(table)
        if self.handle_unknown == "error":
            self._columns.refuse_unknown(table, cells)
        leaves = self.tree_.leaves(cells)
        values = self.tree_.value[leaves]
        unknown = (cells[self.tree_.splits_categories] < 0).any(axis=0)
        if unknown.any():
            mode, donors = self.handle_unknown, {}
            if self.encoder_ is not None:
                columns = [int(column) for column in self.tree_.splits_categories if (cells[column] < 0).any()]
                donors = {column: self._donors(table, column) for column in columns}
            elif mode in DONOR_MODES:
                mode = "node_value"
            spread_values, heaviest = spread(self.tree_, cells, mode, donors)
            values[unknown], leaves[unknown] = spread_values[unknown], heaviest[unknown]
        return values, leaves

    def _donors(self, table: Table, column: int) -> TreeDonors:
        assert self.encoder_ is not None
        return TreeDonors.of(self.encoder_, table, table.names[column], self.context)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The leaf of each row; with unknown categories, the one with most of the row's weight.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of int of shape (n_rows,)

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import JitterTreeClassifier
        >>> X = pd.DataFrame({"colour": ["red", "blue", "green"] * 20, "price": range(60)})
        >>> tree = JitterTreeClassifier(max_depth=2).fit(X, X["colour"] == "red")
        >>> tree.apply(X[:3]).tolist()
        [2, 1, 1]
        """
        return self._route(X)[1]

    def donors(self, X: Any, column: str, *, n_donors: int = 5) -> pd.DataFrame:
        """The known categories ("donors") that replace the unknown ones of a column.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        column : str
            One that the tree splits by categories.
        n_donors : int, default 5
            Maximal number for each.

        Returns
        -------
        pandas.DataFrame
            Columns category, donor and weight (of all donors they sum to 1), the heaviest donor first. With context
            "row" once for each row.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import JitterTreeClassifier
        >>> X = pd.DataFrame({"car": list("abcd") * 20, "body": ["van", "van", "city", "city"] * 20})
        >>> tree = JitterTreeClassifier(max_depth=2).fit(X, X["body"] == "van")
        >>> tree.donors(pd.DataFrame({"car": ["new"], "body": ["van"]}), "car", n_donors=2)["donor"].tolist()
        ['a', 'b']
        """
        table = self._read_as_fitted(X)
        split = [] if self.encoder_ is None else [table.names[position] for position in self.tree_.splits_categories]
        if column not in split:
            why = f", or handle_unknown={self.handle_unknown!r} needs none."
            if split:
                why = f"; {', '.join(map(repr, split))} is."
            raise ValueError(f"There are no donors for column {column!r}: it is not split by categories{why}")
        position = table.names.index(column)
        return self._donors(table, position).table(self._columns.categories(position), n_donors)

    # -- inspection ------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> Floats:
        """The fraction of the total decrease of impurity that is due to each column (n_columns,)."""
        check_is_fitted(self, "tree_")
        return self.tree_.importances(len(self._columns.names))

    def get_depth(self) -> int:
        """Splits on the longest way from the root to a leaf.

        Returns
        -------
        int
        """
        check_is_fitted(self, "tree_")
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Leaves of the tree.

        Returns
        -------
        int
        """
        check_is_fitted(self, "tree_")
        return self.tree_.n_leaves

    def export_text(self, *, max_depth: int = 10, max_categories: int = 5, decimals: int = 2) -> str:
        """The tree as text: the condition of each branch, then the predictions of the leaves.

        Parameters
        ----------
        max_depth : int, default 10
            Splits below it are counted only.
        max_categories : int, default 5
            Categories shown of each set.
        decimals : int, default 2
            Of numbers.

        Returns
        -------
        str

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import JitterTreeClassifier
        >>> X = pd.DataFrame({"colour": ["red", "blue", "green"] * 20, "price": range(60)})
        >>> tree = JitterTreeClassifier(max_depth=2).fit(X, X["colour"] == "red")
        >>> print(tree.export_text().rstrip())
        |--- colour not in {red}
        |   |--- class: False (40 rows)
        |--- colour in {red}
        |   |--- class: True (20 rows)
        """
        check_is_fitted(self, "tree_")
        return write_tree(
            self.tree_, self._columns, lambda node: self._leaf_text(node, decimals), max_depth, max_categories, decimals
        )

    def _leaf_text(self, node: int, decimals: int) -> str:
        raise NotImplementedError


@fill_in(parameters=TREE_PARAMETERS, attributes=TREE_ATTRIBUTES, notes=TREE_NOTES)
class JitterTreeClassifier(LabelClassifier, JitterTree):
    """Decision tree that splits categories by subsets, and sends unknown categories where similar ones go.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}, default "gini"
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
    >>> X = pd.DataFrame({"model": ["a", "b", "c", "d"] * 25, "kind": ["car", "van"] * 50})
    >>> y = ["sold", "kept"] * 50
    >>> tree = JitterTreeClassifier().fit(X, y)
    >>> print(tree.export_text())
    |--- model in {b, d}
    |   |--- class: kept (50 rows)
    |--- model not in {b, d}
    |   |--- class: sold (50 rows)
    >>> tree.predict(pd.DataFrame({"model": ["new", "other"], "kind": ["car", "van"]})).tolist()
    ['sold', 'kept']
    """

    _allowed_options = {**OPTIONS, "criterion": ("gini", "entropy", "log_loss")}

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
        y : array-like of shape (n_rows,), or the name of its column in X
            Classes: numbers, text or booleans; one class is possible.
        sample_weight : array-like of shape (n_rows,), optional
            Only relative weights matter, also where rows are counted to shrink means of categories (`smooth`) and to
            find similar ones: weights have a mean of 1 over the rows of weight above 0, the others count as absent.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With the name of the column or option.
        """
        caller = type(self).__name__
        X, y = split_target(X, y, caller)
        table, weight = self._read(X, y, sample_weight)
        values = check_target(y, len(table), caller)
        only = pd.unique(values)  # one class alone is no mistake here: ensembles draw such samples
        target = check_classes(y, len(table), classes=only if len(only) == 1 else None, caller=caller).weighed(weight)
        self._fit(table, target.codes.astype(np.float64), weight, len(target.classes))
        self.classes_ = target.classes
        self.n_classes_ = len(target.classes)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, in the order of `classes_`.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return self._route(X)[0]

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the class probabilities.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        probabilities = self.predict_proba(X)  # which needs a fit, and says so
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def _leaf_text(self, node: int, decimals: int) -> str:
        return f"class: {self.classes_[self.tree_.value[node].argmax()]}"


@fill_in(parameters=TREE_PARAMETERS, attributes=TREE_ATTRIBUTES, notes=TREE_NOTES)
class JitterTreeRegressor(NumberRegressor, JitterTree):
    """Regression tree that splits categories by subsets, and sends unknown categories where similar ones go.

    Parameters
    ----------
    criterion : {"squared_error"}, default "squared_error"
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
    >>> X = pd.DataFrame({"model": ["a", "b", "c", "d"] * 25, "kind": ["car", "van"] * 50})
    >>> tree = JitterTreeRegressor().fit(X, [10.0, 20.0, 11.0, 21.0] * 25)
    >>> tree.predict(pd.DataFrame({"model": ["a", "new", "other"], "kind": ["car", "car", "van"]})).round(1).tolist()
    [10.0, 10.5, 20.5]
    """

    _allowed_options = {**OPTIONS, "criterion": ("squared_error",)}

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
        y : array-like of shape (n_rows,), or the name of its column in X
            Finite numbers.
        sample_weight : array-like of shape (n_rows,), optional
            Only relative weights matter, also where rows are counted to shrink means of categories (`smooth`) and to
            find similar ones: weights have a mean of 1 over the rows of weight above 0, the others count as absent.

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
        self._fit(table, check_regression_target(y, len(table), caller=type(self).__name__), weight, 0)
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted values.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._route(X)[0][:, 0]

    def _leaf_text(self, node: int, decimals: int) -> str:
        return f"value: {self.tree_.value[node, 0]:.{decimals}f}"
