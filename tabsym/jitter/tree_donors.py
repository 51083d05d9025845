"""Where rows with unknown categories go: where the known categories go that those resemble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders import TIWSEncoder
from tabsym.jitter.kernels_descend import COVER, INDEPENDENT, MIXTURE, STOP, spread_rows
from tabsym.jitter.tree_arrays import Tree
from tabsym.table import Table
from tabsym.tiws.column import FittedColumn, Unseen
from tabsym.tiws.unseen import UnseenRows

Floats = NDArray[np.float64]

MODES = {"similar": MIXTURE, "similar_per_node": INDEPENDENT, "training_counts": COVER, "node_value": STOP}
_TILE = 1024  # rows at a time, so that weights of all donors for each stay small


@dataclass(frozen=True)
class Donors:
    """A column's unknown categories: rows that have them, and how each resembles the known categories `codes` (d,)."""

    fitted: FittedColumn
    found: UnseenRows
    codes: NDArray[np.int64]
    alike: Floats | None  # (m, d), where one document's weights depend on the others

    @classmethod
    def of(cls, encoder: TIWSEncoder, table: Table, column: str, context: str | None) -> Donors:
        """Of a fitted encoder, for the rows of a table whose categories in `column` it has not seen."""
        fitted = encoder.columns_[column].fitted
        found = encoder.unseen_rows(table, column, context=context)
        if fitted.method.method != "poster":
            return cls(fitted, found, fitted.donors, None)
        return cls(fitted, found, *fitted.shown_weights(found.unseen))

    def weights(self, places: NDArray[np.int64]) -> Floats:
        """Of the donors (len(places), d) for some of the documents; they sum to 1."""
        if self.alike is not None:
            return self.alike[places]
        unseen = self.found.unseen
        some = Unseen(unseen.documents[places], [unseen.symbols[place] for place in places], unseen.rows[places])
        return self.fitted.weights(some)


def spread(tree: Tree, cells: Floats, mode: str, donors: dict[int, Donors]) -> tuple[Floats, NDArray[np.int64]]:
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
    rows = np.flatnonzero((cells[tree.splits_symbols] < 0).any(axis=0))
    which = np.full((len(donors), cells.shape[1]), -1, dtype=np.int64)
    for slot, one in enumerate(donors.values()):
        which[slot, one.found.rows] = one.found.which
    for first in range(0, len(rows), _TILE):
        tile = rows[first : first + _TILE]
        out[tile], heaviest[tile] = _spread(tree, np.ascontiguousarray(cells[:, tile]), mode, donors, which[:, tile])
    return out, heaviest


def _spread(
    tree: Tree, cells: Floats, mode: str, donors: dict[int, Donors], which: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int64]]:
    n, many = cells.shape[1], len(donors)
    sizes = np.array([len(one.codes) for one in donors.values()], dtype=np.int64)
    most = int(sizes.max(initial=1))
    slot, codes = np.full(len(cells), -1, dtype=np.int64), np.zeros((many, most), dtype=np.int64)
    weights, local = [], np.full((many, n), -1, dtype=np.int64)
    for u, (column, one) in enumerate(donors.items()):
        slot[column], codes[u, : sizes[u]] = u, one.codes
        there = which[u] >= 0
        places, number = np.unique(which[u, there], return_inverse=True)
        local[u, there] = number
        weights.append(one.weights(places).ravel())
    firsts = np.cumsum([0, *(len(one) for one in weights)], dtype=np.int64)
    out, heaviest = np.zeros((n, tree.value.shape[1])), np.zeros(n, dtype=np.int64)
    live, masses = np.zeros((many, most), dtype=np.int64), np.zeros(tree.depth + 2)
    stack = np.zeros((tree.depth + 2, 1 + 2 * many), dtype=np.int64)
    flat = np.concatenate([*weights, np.zeros(0)])
    spread_rows(
        cells, tree.feature, tree.threshold, tree.left, tree.right, tree.other_left, tree.pointer, tree.symbols,
        tree.to_left, tree.value, tree.weight, MODES[mode], slot, local, codes, sizes, flat, firsts, live, stack,
        masses, out, heaviest,
    )  # fmt: skip
    return out, heaviest
