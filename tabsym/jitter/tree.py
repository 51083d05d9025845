"""A decision tree over coded columns: grown, followed by rows with unknown categories, and written as text.

`kernels` grows it in memory that is made here, and larger as it asks for more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tabsym.categories import encode_column
from tabsym.encoders import TIWSEncoder
from tabsym.encoders.base import refuse_unknown
from tabsym.frame import Column, Measure, Table, categorical_columns
from tabsym.jitter.kernels import COVER, DONE, INDEPENDENT, MIXTURE, NODES_FULL, STOP, find_leaves, grow, spread_rows
from tabsym.messages import Number, plural
from tabsym.tiws.column import CONTEXTS, FittedColumn, UnseenRows
from tabsym.tiws.counts import CategoryWords

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tree:
    """A binary tree whose nodes are numbered as they are visited: node 0 is the root, a left side comes first.

    Attributes
    ----------
    feature : (nodes,)
        The column that a node splits, -1 for leaves.
    threshold : (nodes,)
        Numbers up to it go left; NaN for leaves and categories, infinite where only missing values go right.
    left, right : (nodes,)
        The child nodes, -1 for leaves.
    other_left : (nodes,)
        Whether values that no training row of the node has go left (known categories, missing numbers): to the branch
        with more rows. Missing numbers that the node has go to the better branch.
    pointer : (nodes + 1,)
        Offsets of a node's categories in `categories`, their codes in ascending order, and in `to_left`, the branch of
        each.
    value : (nodes, K)
        Class probabilities, or the mean target.
    n_rows, weight, impurity, gain : (nodes,)
        Training rows, their weight, their impurity, and by how much the split lowers impurity times weight (after
        shrinkage of the categories' means by `smooth`).
    """

    feature: NDArray[np.int64]
    threshold: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    other_left: NDArray[np.bool_]
    pointer: NDArray[np.int64]
    categories: NDArray[np.int32]
    to_left: NDArray[np.bool_]
    value: Floats
    n_rows: NDArray[np.int64]
    weight: Floats
    impurity: Floats
    gain: Floats

    def __len__(self) -> int:
        return len(self.feature)

    @cached_property
    def depth(self) -> int:
        """Splits on the longest way to a leaf."""
        depths = np.zeros(len(self), dtype=np.int64)
        for node in range(len(self)):
            if self.feature[node] >= 0:
                depths[[self.left[node], self.right[node]]] = depths[node] + 1
        return int(depths.max())

    @property
    def n_leaves(self) -> int:
        return int((self.feature < 0).sum())

    @cached_property
    def splits_categories(self) -> NDArray[np.int64]:
        """The columns that some node splits by categories."""
        return np.unique(self.feature[np.diff(self.pointer) > 0])

    def left_categories(self, node: int) -> NDArray[np.int32]:
        """Codes of the node's own categories that go left."""
        position = slice(self.pointer[node], self.pointer[node + 1])
        return self.categories[position][self.to_left[position]]

    def right_categories(self, node: int) -> NDArray[np.int32]:
        """Codes of the node's own categories that go right."""
        position = slice(self.pointer[node], self.pointer[node + 1])
        return self.categories[position][~self.to_left[position]]

    def importances(self, n_features: int) -> Floats:
        """Each column's part of what the splits gained (n_features,); of sum 1, where anything was gained."""
        inner = self.feature >= 0
        gains = np.zeros(n_features)
        np.add.at(gains, self.feature[inner], self.gain[inner])
        total = gains.sum()
        return gains / total if total > 0 else gains

    def leaves(self, cells: Floats) -> NDArray[np.int64]:
        """The leaf (n,) of each row of `cells` (p, n)."""
        out = np.empty(cells.shape[1], dtype=np.int64)
        find_leaves(
            cells, self.feature, self.threshold, self.left, self.right, self.other_left, self.pointer, self.categories,
            self.to_left, out,
        )  # fmt: skip
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class TreeColumns:
    """What fit saw in each column: its categories (missing is one), or what its numbers measure."""

    names: list[str]
    kinds: list[CategoryWords | Measure]

    @classmethod
    def fit(cls, table: Table, cols: Any, rows: NDArray[np.int64] | None) -> TreeColumns:
        """`cols`: categorical columns, as in encoders; `rows`: those that count, all if None."""
        categorical = {column.name for column in categorical_columns(table, cols, booleans=False)}

        def kind(column: Column) -> CategoryWords | Measure:
            if column.name in categorical or column.is_empty:
                return CategoryWords.of(column.name, encode_column(column), rows)
            return column.measure

        return cls(table.names, [kind(column) for column in table.columns])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Categories of each column (p,), 0 for numbers."""
        return np.array([len(kind) if isinstance(kind, CategoryWords) else 0 for kind in self.kinds], dtype=np.int64)

    def cells(self, table: Table) -> Floats:
        """Codes and numbers (p, n); -1 for categories that are not in the training data."""
        out = np.empty((len(self.kinds), len(table)))
        for position, (kind, column) in enumerate(zip(self.kinds, table.columns, strict=True)):
            if isinstance(kind, CategoryWords):
                out[position] = kind.codes(column)
            else:
                out[position] = column.values
                column.check_measure(kind)
        return out

    def refuse_unknown(self, table: Table, cells: Floats) -> None:
        """A `ValueError` that names the first category that is not in the training data, if there is one."""
        for position in np.flatnonzero(self.sizes):
            if (cells[position] < 0).any():
                refuse_unknown(self.names[position], encode_column(table.columns[position]), cells[position] < 0)

    def categories(self, position: int) -> list[Any]:
        """By code; None is missing."""
        kind = self.kinds[position]
        return list(kind.vocabulary.categories) if isinstance(kind, CategoryWords) else []


DONOR_MODES = ("similar", "similar_per_node")
MODES = {"similar": MIXTURE, "similar_per_node": INDEPENDENT, "training_counts": COVER, "node_value": STOP}
"""Values of `handle_unknown` as `kernels` know them."""
_CHUNK = 1024  # rows at a time, so that weights of all donors for each stay small


@dataclass(frozen=True)
class TreeDonors:
    """A column's unknown categories: rows that have them, and how each resembles the known categories `codes` (d,)."""

    fitted: FittedColumn
    unseen_rows: UnseenRows
    codes: NDArray[np.int64]
    alike: Floats | None  # (m, d), where one document's weights depend on the others

    @classmethod
    def of(cls, encoder: TIWSEncoder, table: Table, column: str, context: str | None) -> TreeDonors:
        """Of a fitted encoder, for the rows of a table whose categories in `column` it has not seen."""
        fitted = encoder.columns_[column].fitted
        unseen_rows = encoder.unseen_rows(table, column, context=context)
        if fitted.method.method != "poster":
            return cls(fitted, unseen_rows, fitted.donors, None)
        return cls(fitted, unseen_rows, *fitted.shown_weights(unseen_rows.unseen))

    def weights(self, positions: NDArray[np.int64]) -> Floats:
        """Of the donors (len(positions), d) for some of the documents; they sum to 1."""
        if self.alike is not None:
            return self.alike[positions]
        return self.fitted.weights(self.unseen_rows.unseen.take(positions))

    def table(self, categories: list[Any], n_donors: int) -> pd.DataFrame:
        """The heaviest donors of each unknown category, by name: `categories` are the known ones of the column."""
        weights = self.weights(np.arange(len(self.unseen_rows.unseen)))
        records = []
        for unknown, row in zip(self.unseen_rows.unseen.categories, weights, strict=True):
            heaviest = np.argsort(-row, kind="stable")[:n_donors]
            records += [[unknown, categories[self.codes[at]], row[at]] for at in heaviest if row[at] > 0]
        return pd.DataFrame(records, columns=["category", "donor", "weight"])


def spread(tree: Tree, cells: Floats, mode: str, donors: dict[int, TreeDonors]) -> tuple[Floats, NDArray[np.int64]]:
    """Values (n, K) and heaviest leaves (n,) of rows with unknown categories.

    Parameters
    ----------
    tree : Tree
    cells : (p, n)
        Of the whole table, codes of unknown categories below 0; rows without any get 0.
    mode : {"similar", "similar_per_node", "training_counts", "node_value"}
    donors : dict of int -> Donors
        By column; none are needed where nothing is asked of them.
    """
    out, heaviest = np.zeros((cells.shape[1], tree.value.shape[1])), np.zeros(cells.shape[1], dtype=np.int64)
    rows = np.flatnonzero((cells[tree.splits_categories] < 0).any(axis=0))
    which = np.full((len(donors), cells.shape[1]), -1, dtype=np.int64)
    for slot, column_donors in enumerate(donors.values()):
        which[slot, column_donors.unseen_rows.rows] = column_donors.unseen_rows.which
    for first in range(0, len(rows), _CHUNK):
        chunk = rows[first : first + _CHUNK]
        some = np.ascontiguousarray(cells[:, chunk])
        out[chunk], heaviest[chunk] = _spread(tree, some, mode, donors, which[:, chunk])
    return out, heaviest


def _spread(
    tree: Tree, cells: Floats, mode: str, donors: dict[int, TreeDonors], which: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int64]]:
    n, many = cells.shape[1], len(donors)
    sizes = np.array([len(column_donors.codes) for column_donors in donors.values()], dtype=np.int64)
    most = int(sizes.max(initial=1))
    slot, codes = np.full(len(cells), -1, dtype=np.int64), np.zeros((many, most), dtype=np.int64)
    weights, local = [], np.full((many, n), -1, dtype=np.int64)
    for u, (column, column_donors) in enumerate(donors.items()):
        slot[column], codes[u, : sizes[u]] = u, column_donors.codes
        there = which[u] >= 0
        positions, number = np.unique(which[u, there], return_inverse=True)
        local[u, there] = number
        weights.append(column_donors.weights(positions).ravel())
    firsts = np.cumsum([0, *(len(column_weights) for column_weights in weights)], dtype=np.int64)
    out, heaviest = np.zeros((n, tree.value.shape[1])), np.zeros(n, dtype=np.int64)
    live, masses = np.zeros((many, most), dtype=np.int64), np.zeros(tree.depth + 2)
    stack = np.zeros((tree.depth + 2, 1 + 2 * many), dtype=np.int64)
    flat = np.concatenate([*weights, np.zeros(0)])
    spread_rows(
        cells, tree.feature, tree.threshold, tree.left, tree.right, tree.other_left, tree.pointer, tree.categories,
        tree.to_left, tree.value, tree.weight, MODES[mode], slot, local, codes, sizes, flat, firsts, live, stack,
        masses, out, heaviest,
    )  # fmt: skip
    return out, heaviest


def write_tree(
    tree: Tree, columns: TreeColumns, said: Callable[[int], str], max_depth: int, max_categories: int, decimals: int
) -> str:
    """Lines that read from top to bottom.

    Parameters
    ----------
    tree : Tree
    columns : TreeColumns
    said : callable
        The text of a leaf, by its node.
    max_depth, max_categories, decimals : int
    """
    lines: list[str] = []
    todo = [(0, 0, "")]
    while todo:
        node, depth, condition = todo.pop()
        bar = "|   " * (depth - 1) + "|--- "
        if depth:
            lines.append(bar + condition)
        inner = "|   " * depth + "|--- "
        if tree.feature[node] < 0:
            lines.append(f"{inner}{said(node)} ({plural(tree.n_rows[node], 'row')})")
        elif depth == max_depth:
            lines.append(f"{inner}... {plural(_splits_below(tree, node), 'more split')}")
        else:
            left, right = _conditions(tree, columns, node, max_categories, decimals)
            todo += [(tree.right[node], depth + 1, right), (tree.left[node], depth + 1, left)]
    return "\n".join(lines) + "\n"


def _conditions(tree: Tree, columns: TreeColumns, node: int, most: int, decimals: int) -> tuple[str, str]:
    """The conditions of the left and of the right branch; categories that no row of the node has are not listed."""
    position, other_left = int(tree.feature[node]), tree.other_left[node]
    name = columns.names[position]
    if tree.pointer[node + 1] > tree.pointer[node]:
        some = tree.right_categories(node) if other_left else tree.left_categories(node)
        listed = _listed(columns.categories(position), some, most)
        inside, outside = f"{name} in {listed}", f"{name} not in {listed}"
        return (outside, inside) if other_left else (inside, outside)
    threshold = tree.threshold[node]
    if np.isinf(threshold):
        return f"{name} is there", f"{name} is missing"
    missing = (" or missing", "") if other_left else ("", " or missing")
    return f"{name} <= {threshold:.{decimals}f}{missing[0]}", f"{name} > {threshold:.{decimals}f}{missing[1]}"


def _listed(categories: list, codes: NDArray[np.int32], most: int) -> str:
    shown = ["missing" if categories[code] is None else str(categories[code]) for code in codes[:most]]
    more = f", ... {len(codes)} in all" if len(codes) > most else ""
    return "{" + ", ".join(shown) + more + "}"


def _splits_below(tree: Tree, node: int) -> int:
    todo, count = [node], 0
    while todo:
        node = todo.pop()
        if tree.feature[node] >= 0:
            count += 1
            todo += [int(tree.left[node]), int(tree.right[node])]
    return count


# -- growing ---------------------------------------------------------------------------------------

_COUNT = Number(at_least=1, whole=True)
_OF_ROWS = Number(above=0, at_most=1, fraction=True, of="the rows")

OPTIONS: dict[str, tuple[Any, ...]] = {
    "max_depth": (_COUNT, None),
    "min_samples_leaf": (_COUNT, _OF_ROWS),
    "min_samples_split": (Number(at_least=2, whole=True), _OF_ROWS),
    "min_weight_fraction_leaf": (Number(at_least=0, at_most=0.5),),
    "min_impurity_decrease": (Number(at_least=0),),
    "max_features": ("sqrt", "log2", _COUNT, Number(above=0, at_most=1, fraction=True, of="the columns"), None),
    "smooth": ("auto", Number(at_least=0, of="rows")),
    "handle_unknown": (*MODES, "error"),
    "context": (*CONTEXTS, None),
}
"""Of both estimators; the values that each may have."""


@dataclass(frozen=True)
class Rules:
    """When a node is split, and how: the estimators' options, as numbers."""

    entropy: bool
    max_depth: float
    min_rows_split: int
    min_rows_leaf: int
    min_weight_leaf: float
    min_gain: float
    max_features: int
    smooth: float
    seed: int

    @classmethod
    def of(cls, tree: Any, n_rows: int, n_features: int, total: float) -> Rules:
        """The options of an estimator, for this number of rows and total weight."""
        leaf = _count(tree.min_samples_leaf, n_rows)
        features = n_features if tree.max_features is None else tree.max_features
        if isinstance(features, str):
            features = int(np.sqrt(n_features) if features == "sqrt" else np.log2(n_features))
        elif not isinstance(features, Integral):
            features = int(float(features) * n_features)
        return cls(
            entropy=tree.criterion in ("entropy", "log_loss"),
            max_depth=np.inf if tree.max_depth is None else int(tree.max_depth),
            min_rows_split=max(2, _count(tree.min_samples_split, n_rows), 2 * leaf),
            min_rows_leaf=leaf,
            min_weight_leaf=float(tree.min_weight_fraction_leaf) * total,
            min_gain=float(tree.min_impurity_decrease) * total,
            max_features=min(max(1, int(features)), n_features),
            smooth=-1.0 if tree.smooth == "auto" else float(tree.smooth),
            seed=int(check_random_state(tree.random_state).randint(np.iinfo(np.int32).max)),
        )


def _count(value: Any, n_rows: int) -> int:
    """Rows, given as such or as a fraction of all."""
    return int(value) if isinstance(value, Integral) else max(1, int(np.ceil(float(value) * n_rows)))


def grow_tree(cells: Floats, sizes: NDArray[np.int64], y: Floats, weight: Floats, n_classes: int, rules: Rules) -> Tree:
    """A tree of rows by columns.

    Parameters
    ----------
    cells : (p, n)
        Numbers, NaN for missing, and codes of categories.
    sizes : (p,)
        Categories of each column, 0 for numbers.
    y : (n,)
        Class numbers, or the target.
    weight : (n,)
        Above 0.
    n_classes : int
        0 for a target of numbers.
    rules : Rules
    """
    p, n = cells.shape
    width, most = max(n_classes, 1), max(int(sizes.max()), 1)
    orders = np.argsort(cells, axis=1, kind="stable").astype(np.int32)
    numbers = np.array([
        n_classes > 0, rules.entropy, rules.min_rows_leaf, rules.min_weight_leaf, rules.min_rows_split,
        rules.max_depth, rules.min_gain, rules.max_features, rules.smooth,
        n / weight.sum(),
    ], dtype=np.float64)  # fmt: skip
    fixed = (
        cells, sizes > 0, y, weight, orders, numbers, np.zeros((4, width)), np.zeros(5), np.zeros(6),
        np.zeros((3, width)), np.zeros((most, 1 + width)), np.zeros(most + 1, dtype=np.int64), np.zeros(most),
        np.zeros((2, most), dtype=np.int64), np.arange(p), np.array([rules.seed + 1], dtype=np.uint64),
        np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.int32),
    )  # fmt: skip
    stack = np.zeros((int(min(rules.max_depth, n)) + 2, 4), dtype=np.int64)
    stack[0] = 0, n, 0, -1
    used = np.array([1, 0, 0], dtype=np.int64)
    whole, real = np.zeros((64, 8), dtype=np.int64), np.zeros((64, 5))
    categories, to_left = np.zeros(4 * most, dtype=np.int32), np.zeros(4 * most, dtype=np.bool_)
    while (state := grow(*fixed, stack, used, whole, real, categories, to_left)) != DONE:
        if state == NODES_FULL:
            whole, real = _doubled(whole), _doubled(real)
        else:
            categories, to_left = _doubled(categories), _doubled(to_left)
    nodes, real = whole[: used[1]], real[: used[1]].copy()
    if n_classes:
        shares = _weight_by_class(nodes, orders[0], y.astype(np.int64), weight, n_classes)
        value = shares / shares.sum(axis=1, keepdims=True)
    else:
        value = real[:, 4:5].copy()
    feature, left, right, begin, end, other, _, _ = nodes.T.copy()
    pointer = np.append(nodes[:, 6], used[2])
    return Tree(
        feature, real[:, 0].copy(), left, right, other > 0, pointer, categories[: used[2]].copy(),
        to_left[: used[2]].copy(), value, end - begin, real[:, 2].copy(), real[:, 1].copy(), real[:, 3].copy(),
    )  # fmt: skip


def _doubled(array: NDArray) -> NDArray:
    return np.concatenate([array, np.zeros_like(array)])


def _weight_by_class(
    nodes: NDArray[np.int64], order: NDArray[np.int32], y: NDArray[np.int64], weight: Floats, n_classes: int
) -> Floats:
    """Weight of each class in every node (nodes, K): of the leaves from their rows, of others from both sides."""
    leaves = np.flatnonzero(nodes[:, 0] < 0)
    leaves = leaves[np.argsort(nodes[leaves, 3])]
    leaf_of = np.repeat(leaves, nodes[leaves, 4] - nodes[leaves, 3])
    positions = leaf_of * n_classes + y[order]
    out = np.zeros((len(nodes), n_classes))
    out += np.bincount(positions, weight[order], minlength=out.size).reshape(out.shape)
    for node in range(len(nodes) - 1, -1, -1):  # sides have higher numbers
        if nodes[node, 0] >= 0:
            out[node] = out[nodes[node, 1]] + out[nodes[node, 2]]
    return out
