"""A tree as text, one line a side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tabsym.jitter.tree_arrays import Tree
from tabsym.jitter.tree_columns import TreeColumns


def write_tree(
    tree: Tree, columns: TreeColumns, said: Callable[[int], str], max_depth: int, max_categories: int, decimals: int
) -> str:
    """Lines that read from top to bottom.

    Parameters
    ----------
    tree : Tree
    columns : TreeColumns
    said : callable
        What a leaf says, by its node.
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
            lines.append(f"{inner}{said(node)} ({tree.n_rows[node]} rows)")
        elif depth == max_depth:
            lines.append(f"{inner}... {_splits_below(tree, node)} more splits")
        else:
            left, right = _conditions(tree, columns, node, max_categories, decimals)
            todo += [(tree.right[node], depth + 1, right), (tree.left[node], depth + 1, left)]
    return "\n".join(lines) + "\n"


def _conditions(tree: Tree, columns: TreeColumns, node: int, most: int, decimals: int) -> tuple[str, str]:
    """The conditions of the left and of the right branch; categories that no row of the node has are not listed."""
    place, other_left = int(tree.feature[node]), tree.other_left[node]
    name = columns.names[place]
    if tree.pointer[node + 1] > tree.pointer[node]:
        some = tree.right_symbols(node) if other_left else tree.left_symbols(node)
        listed = _listed(columns.symbols(place), some, most)
        inside, outside = f"{name} in {listed}", f"{name} not in {listed}"
        return (outside, inside) if other_left else (inside, outside)
    threshold = tree.threshold[node]
    if np.isinf(threshold):
        return f"{name} is there", f"{name} is missing"
    missing = (" or missing", "") if other_left else ("", " or missing")
    return f"{name} <= {threshold:.{decimals}f}{missing[0]}", f"{name} > {threshold:.{decimals}f}{missing[1]}"


def _listed(symbols: list, codes: NDArray[np.int32], most: int) -> str:
    shown = ["missing" if symbols[code] is None else str(symbols[code]) for code in codes[:most]]
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
