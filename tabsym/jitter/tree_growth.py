"""Growing a tree from coded columns: the options, checked, and the memory that `kernels_grow` needs."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tabsym.encoders import TIWSEncoder
from tabsym.jitter.kernels_grow import DONE, NODES_FULL, grow
from tabsym.jitter.tree import MODES, Tree
from tabsym.tiws.column import CONTEXTS


def check_words(tree: Any, criteria: tuple[str, ...]) -> None:
    """A `ValueError` or `TypeError` that names the argument and what it can be."""
    _check_word("criterion", tree.criterion, criteria)
    _check_word("handle_unknown", tree.handle_unknown, (*MODES, "error"))
    if tree.context is not None:
        _check_word("context", tree.context, CONTEXTS)
    if tree.encoder is not None and not isinstance(tree.encoder, TIWSEncoder):
        raise TypeError(f"encoder={tree.encoder!r} is not possible; use a TIWSEncoder, or None for the default one.")


def rules_of(tree: Any, n_rows: int, n_features: int, total: float) -> Rules:
    """The options as numbers, for so many rows of a total weight."""
    depth = np.inf if tree.max_depth is None else _whole("max_depth", tree.max_depth, 1)
    leaf = _rows("min_samples_leaf", tree.min_samples_leaf, n_rows, 1, 1.0)
    split = _rows("min_samples_split", tree.min_samples_split, n_rows, 2, 1.0)
    return Rules(
        entropy=tree.criterion in ("entropy", "log_loss"),
        max_depth=depth,
        min_rows_split=max(split, 2 * leaf),
        min_rows_leaf=leaf,
        min_weight_leaf=_number("min_weight_fraction_leaf", tree.min_weight_fraction_leaf, 0.5) * total,
        min_gain=_number("min_impurity_decrease", tree.min_impurity_decrease) * total,
        max_features=_columns(tree.max_features, n_features),
        smooth=_smooth(tree.smooth),
        seed=int(check_random_state(tree.random_state).randint(np.iinfo(np.int32).max)),
    )


def _check_word(option: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise ValueError(f"{option}={value!r} is not known; use one of {', '.join(map(repr, allowed))}.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _whole(option: str, value: Any, least: int) -> int:
    if not (_is_whole(value) and value >= least):
        raise ValueError(f"{option}={value!r} is not possible; use a whole number of at least {least}.")
    return int(value)


def _number(option: str, value: Any, most: float = np.inf) -> float:
    if not (isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= most and value < np.inf):
        upto = "of at least 0" if most == np.inf else f"from 0 to {most:g}"
        raise ValueError(f"{option}={value!r} is not possible; use a number {upto}.")
    return float(value)


def _smooth(value: Any) -> float:
    """Rows, -1 for "auto"."""
    if isinstance(value, str) and value == "auto":
        return -1.0
    if not (isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf):
        raise ValueError(f"smooth={value!r} is not possible; use 'auto' or a number of rows of at least 0.")
    return float(value)


def _rows(option: str, value: Any, n_rows: int, least: int, most: float) -> int:
    """Rows, given as such or as a share of all."""
    if _is_whole(value):
        return _whole(option, value, least)
    if not (isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) <= most):
        raise ValueError(
            f"{option}={value!r} is not possible; use a whole number of at least {least}, or a share of the rows above "
            "0 and up to 1."
        )
    return max(least, int(np.ceil(float(value) * n_rows)))


def _columns(value: Any, n_features: int) -> int:
    """Columns to draw at each split."""
    if value is None:
        return n_features
    if isinstance(value, str) and value in ("sqrt", "log2"):
        return max(1, int(np.sqrt(n_features) if value == "sqrt" else np.log2(n_features)))
    if _is_whole(value) and value >= 1:
        return min(int(value), n_features)
    if isinstance(value, Real) and not _is_whole(value) and not isinstance(value, bool) and 0 < float(value) <= 1:
        return max(1, int(float(value) * n_features))
    raise ValueError(
        f"max_features={value!r} is not possible; use a number of columns, a share above 0 and up to 1, 'sqrt', "
        "'log2' or None for all."
    )


Floats = NDArray[np.float64]


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
