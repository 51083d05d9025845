"""A grown tree: arrays over its nodes, and what can be told from them alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.jitter.kernels_descend import find_leaves

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
        Offsets of a node's categories in `symbols`, their codes in ascending order, and in `to_left`, the branch of
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
    symbols: NDArray[np.int32]
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
    def splits_symbols(self) -> NDArray[np.int64]:
        """The columns that some node splits by categories."""
        return np.unique(self.feature[np.diff(self.pointer) > 0])

    def left_symbols(self, node: int) -> NDArray[np.int32]:
        """Codes of the node's own categories that go left."""
        place = slice(self.pointer[node], self.pointer[node + 1])
        return self.symbols[place][self.to_left[place]]

    def right_symbols(self, node: int) -> NDArray[np.int32]:
        """Codes of the node's own categories that go right."""
        place = slice(self.pointer[node], self.pointer[node + 1])
        return self.symbols[place][~self.to_left[place]]

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
            cells, self.feature, self.threshold, self.left, self.right, self.other_left, self.pointer, self.symbols,
            self.to_left, out,
        )  # fmt: skip
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}
