"""Growing a tree from coded columns: the options as numbers, and the memory that `kernels_grow` needs."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tabsym.jitter.kernels_grow import DONE, NODES_FULL, grow
from tabsym.jitter.tree import MODES, Tree
from tabsym.tiws.column import CONTEXTS
from tabsym.validation import Number

Floats = NDArray[np.float64]
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
        """The options of an estimator, for so many rows of a total weight."""
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
        max(1.0, n / weight.sum()),
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
    symbols, to_left = np.zeros(4 * most, dtype=np.int32), np.zeros(4 * most, dtype=np.bool_)
    while (state := grow(*fixed, stack, used, whole, real, symbols, to_left)) != DONE:
        if state == NODES_FULL:
            whole, real = _doubled(whole), _doubled(real)
        else:
            symbols, to_left = _doubled(symbols), _doubled(to_left)
    nodes, real = whole[: used[1]], real[: used[1]].copy()
    if n_classes:
        shares = _class_weights(nodes, orders[0], y.astype(np.int64), weight, n_classes)
        value = shares / shares.sum(axis=1, keepdims=True)
    else:
        value = real[:, 4:5].copy()
    feature, left, right, begin, end, other, _, _ = nodes.T.copy()
    pointer = np.append(nodes[:, 6], used[2])
    return Tree(
        feature, real[:, 0].copy(), left, right, other > 0, pointer, symbols[: used[2]].copy(),
        to_left[: used[2]].copy(), value, end - begin, real[:, 2].copy(), real[:, 1].copy(), real[:, 3].copy(),
    )  # fmt: skip


def _doubled(array: NDArray) -> NDArray:
    return np.concatenate([array, np.zeros_like(array)])


def _class_weights(
    nodes: NDArray[np.int64], order: NDArray[np.int32], y: NDArray[np.int64], weight: Floats, n_classes: int
) -> Floats:
    """Weight of each class in every node (nodes, K): of the leaves from their rows, of others from both sides."""
    leaves = np.flatnonzero(nodes[:, 0] < 0)
    leaves = leaves[np.argsort(nodes[leaves, 3])]
    leaf_of = np.repeat(leaves, nodes[leaves, 4] - nodes[leaves, 3])
    places = leaf_of * n_classes + y[order]
    out = np.zeros((len(nodes), n_classes))
    out += np.bincount(places, weight[order], minlength=out.size).reshape(out.shape)
    for node in range(len(nodes) - 1, -1, -1):  # sides have higher numbers
        if nodes[node, 0] >= 0:
            out[node] = out[nodes[node, 1]] + out[nodes[node, 2]]
    return out
