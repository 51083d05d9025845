"""What classifier and regressor share: read, code, grow, keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders import TIWSEncoder
from tabsym.jitter.tree_arrays import Tree
from tabsym.jitter.tree_columns import TreeColumns
from tabsym.jitter.tree_donors import Donors, spread
from tabsym.jitter.tree_grow import grow_tree
from tabsym.jitter.tree_options import check_words, rules_of
from tabsym.jitter.tree_text import write_tree
from tabsym.table import Table, check_same_rows, check_weights, match_features, read_table, remember_features

Floats = NDArray[np.float64]


class JitterTree(BaseEstimator):
    """Shared by `JitterTreeClassifier` and `JitterTreeRegressor`; not public."""

    tree_: Tree
    encoder_: TIWSEncoder | None
    criterion: str
    _criteria: tuple[str, ...]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # -- fitting ------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, Floats | None]:
        check_words(self, self._criteria)
        check_same_rows(X, y=y, sample_weight=sample_weight)
        table = read_table(X, who=type(self).__name__)
        return table, check_weights(sample_weight, len(table))

    def _fit(self, table: Table, y: Floats, weight: Floats | None, n_classes: int) -> None:
        """Grow on rows of weight above 0; fitted attributes are set last, all together."""
        rows = None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
        columns = TreeColumns.fit(table, self.cols, rows)
        cells, target = columns.cells(table), y
        counted = np.ones(len(table)) if weight is None else weight
        if rows is not None:
            cells, target, counted = np.ascontiguousarray(cells[:, rows]), y[rows], counted[rows]
        rules = rules_of(self, len(target), len(columns.names), float(counted.sum()))
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
        split = tree.splits_symbols
        if self.handle_unknown in ("training_counts", "node_value") or not len(split):
            return None
        encoder = TIWSEncoder() if self.encoder is None else clone(self.encoder)
        encoder.set_params(
            cols=[table.names[place] for place in split], target_type="classes" if n_classes else "continuous"
        )
        if weight is not None:  # which the encoder takes for rows, and boosting makes sum to 1
            weight = weight * max(1.0, np.count_nonzero(weight) / weight.sum())
        return encoder.fit(table.native, y.astype(np.int64) if n_classes else y, weight)

    # -- using --------------------------------------------------------------------------------

    def _read_as_fitted(self, X: Any) -> Table:
        check_is_fitted(self, "tree_")
        check_same_rows(X)
        return match_features(self, read_table(X, who=type(self).__name__, allow_empty=True))

    def _route(self, X: Any) -> tuple[Floats, NDArray[np.int64]]:
        """Values (n, K) and leaves (n,)."""
        table = self._read_as_fitted(X)
        cells = self._columns.cells(table)
        leaves = self.tree_.leaves(cells)
        values = self.tree_.value[leaves]
        split = self.tree_.splits_symbols
        rows = (cells[split] < 0).any(axis=0)
        if rows.any():
            some = [int(place) for place in split if (cells[place] < 0).any()]
            donors = {} if self.encoder_ is None else {place: self._donors(table, place) for place in some}
            needs_encoder = self.handle_unknown in ("similar", "similar_per_node")
            mode = "node_value" if self.encoder_ is None and needs_encoder else self.handle_unknown
            found, heaviest = spread(self.tree_, cells, mode, donors)
            values[rows], leaves[rows] = found[rows], heaviest[rows]
        return values, leaves

    def _donors(self, table: Table, place: int) -> Donors:
        assert self.encoder_ is not None
        return Donors.of(self.encoder_, table, table.names[place], self.context)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The leaf (n_rows,) of each row; with unknown categories, the one with most of the row's weight."""
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
        """
        table = self._read_as_fitted(X)
        able = [] if self.encoder_ is None else [table.names[place] for place in self.tree_.splits_symbols]
        if column not in able:
            raise ValueError(
                f"There are no donors for column {column!r}: it is not split by categories"
                + (
                    f"; {', '.join(map(repr, able))} is."
                    if able
                    else f", or handle_unknown={self.handle_unknown!r} needs none."
                )
            )
        place = table.names.index(column)
        found, symbols = self._donors(table, place), self._columns.symbols(place)
        weights = found.weights(np.arange(len(found.found.unseen)))
        records = []
        for symbol, row in zip(found.found.unseen.symbols, weights, strict=True):
            best = np.argsort(-row, kind="stable")[:n_donors]
            records += [[symbol, symbols[found.codes[one]], row[one]] for one in best if row[one] > 0]
        return pd.DataFrame(records, columns=["category", "donor", "weight"])

    # -- telling ------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> Floats:
        """The fraction of the total decrease of impurity that is due to each column (n_features_in_,)."""
        check_is_fitted(self, "tree_")
        return self.tree_.importances(len(self._columns.names))

    def get_depth(self) -> int:
        """Splits on the longest way from the root to a leaf."""
        check_is_fitted(self, "tree_")
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Leaves of the tree."""
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
        """
        check_is_fitted(self, "tree_")
        return write_tree(
            self.tree_, self._columns, lambda node: self._say(node, decimals), max_depth, max_categories, decimals
        )

    def _say(self, node: int, decimals: int) -> str:
        raise NotImplementedError
