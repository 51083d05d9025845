"""Trees of any library as arrays, and rows sent through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.jitter.kernels_routes import COVER, INDEPENDENT, MIXTURE, NAN_IS_MISSING, STOP, route_rows

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

ROUTES = {"mixture": MIXTURE, "independent": INDEPENDENT, "cover": COVER, "stop": STOP}


@dataclass(frozen=True)
class Node:
    """A node while trees are read; `feature` is -1 in a leaf, `listed` are codes of a categorical split."""

    feature: int = -1
    threshold: float = 0.0
    left: int = -1
    right: int = -1
    listed: Sequence[int] | None = None
    missing: int = NAN_IS_MISSING
    default_left: bool = False
    value: float = 0.0
    inner: float | None = None  # None: the mean of its children by cover
    cover: float = 0.0


@dataclass(frozen=True)
class Unseen:
    """Columns with unseen values, as trees see them.

    Attributes
    ----------
    features : list of int
        Of the matrix.
    document : (n, columns)
        Which of the weights each row's value goes by; -1 where it was seen.
    widths : list of int
        Codes of each column, and one for missing, the last.
    weights : (documents, widest)
    """

    features: list[int]
    document: Places
    widths: list[int]
    weights: Floats


@dataclass(frozen=True)
class Trees:
    """All trees of a model, node by node: a child's number is its place in the arrays.

    A number goes left where it is at most the `threshold` (n,). At a categorical split the codes whose bits are set in
    the `size` words of `listed` from `start` on go left where `listed_left`, else right. `missing` (n,): whether NaN
    is taken for 0, as are both where 1, or NaN goes by `default_left`. `inner` (n,): a node's own value.
    `base` (outputs,) is where sums of the type `kind` start; tree t begins at ``roots[t]`` and adds to ``outputs[t]``.
    """

    feature: Places
    threshold: Floats
    left: Places
    right: Places
    categorical: NDArray[np.bool_]
    missing: NDArray[np.uint8]
    default_left: NDArray[np.bool_]
    start: Places
    size: Places
    listed: NDArray[np.uint32]
    listed_left: bool
    value: Floats
    inner: Floats
    cover: Floats
    roots: Places
    outputs: Places
    base: Floats
    kind: Any = field(default=np.float64)

    @classmethod
    def of(
        cls, nodes: list[Node], roots: list[int], outputs: list[int], base: Any, *, listed_left: bool, kind: Any
    ) -> Trees:
        """Put nodes into arrays; children come after their parent."""
        words, start, size = [np.zeros(1, dtype=np.uint32)], [], []
        for node in nodes:
            start.append(sum(map(len, words)) if node.listed is not None else 0)
            size.append(0 if node.listed is None else max(node.listed, default=-1) // 32 + 1)
            if node.listed is not None:
                words.append(_bits(node.listed, size[-1]))
        value = np.array([node.value for node in nodes], dtype=np.float64)
        cover = np.array([node.cover for node in nodes], dtype=np.float64)
        return cls(
            np.array([node.feature for node in nodes], dtype=np.int64),
            np.array([node.threshold for node in nodes], dtype=np.float64),
            np.array([node.left for node in nodes], dtype=np.int64),
            np.array([node.right for node in nodes], dtype=np.int64),
            np.array([node.listed is not None for node in nodes], dtype=np.bool_),
            np.array([node.missing for node in nodes], dtype=np.uint8),
            np.array([bool(node.default_left) for node in nodes], dtype=np.bool_),
            np.array(start, dtype=np.int64),
            np.array(size, dtype=np.int64),
            np.concatenate(words),
            listed_left,
            value,
            _inner(nodes, value, cover),
            cover,
            np.array(roots, dtype=np.int64),
            np.array(outputs, dtype=np.int64),
            np.atleast_1d(np.asarray(base, dtype=np.float64)),
            kind,
        )

    @property
    def depth(self) -> int:
        """Of the deepest tree, its root counted."""
        depth = np.ones(len(self.feature), dtype=np.int64)
        for node in np.flatnonzero(self.feature >= 0):
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        return int(depth.max(initial=1))

    def scores(self, matrix: Floats, unseen: Unseen | None = None, route: str = "mixture") -> NDArray[Any]:
        """Raw scores of rows of numbers and codes (n, p): (n,), of several outputs (n, outputs).

        Without `unseen` sums are the library's own, bit by bit; with it they are of float64.
        """
        n = len(matrix)
        if unseen is None:
            unseen = Unseen([], np.empty((n, 0), dtype=np.int64), [], np.zeros((1, 1)))
            out = np.tile(self.base.astype(self.kind), (n, 1))
        else:
            out = np.tile(self.base, (n, 1))
        at = np.full(matrix.shape[1], -1, dtype=np.int64)
        at[unseen.features] = np.arange(len(unseen.features))
        depth = self.depth + 2
        route_rows(
            ROUTES[route], np.ascontiguousarray(matrix, dtype=np.float64), unseen.document, at,
            np.array(unseen.widths, dtype=np.int64), unseen.weights,
            self.roots, self.outputs, self.feature, self.threshold, self.left, self.right, self.categorical,
            self.missing, self.default_left, self.start, self.size, self.listed, self.listed_left, self.value,
            self.inner, self.cover, np.empty((depth, 4), dtype=np.int64), np.empty(depth),
            np.empty((depth, len(unseen.features), unseen.weights.shape[1])), out,
        )  # fmt: skip
        return out[:, 0] if out.shape[1] == 1 else out


def _bits(codes: Sequence[int], size: int) -> NDArray[np.uint32]:
    words = np.zeros(size, dtype=np.uint32)
    places = np.asarray(codes, dtype=np.int64)
    np.bitwise_or.at(words, places // 32, np.uint32(1) << (places % 32).astype(np.uint32))
    return words


def _inner(nodes: list[Node], value: Floats, cover: Floats) -> Floats:
    """Values of nodes: those that were read, else means of the children's, by their cover."""
    inner = value.copy()
    for place in range(len(nodes) - 1, -1, -1):
        node = nodes[place]
        if node.feature < 0:
            continue
        if node.inner is not None:
            inner[place] = node.inner
            continue
        pair = [node.left, node.right]
        share = cover[pair] if cover[pair].sum() > 0 else np.ones(2)
        inner[place] = np.average(inner[pair], weights=share)
    return inner
