"""LightGBM's trees, as it dumps them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabsym.jitter.trees import Node, Trees

_MISSING = {"None": 0, "Zero": 1, "NaN": 2}


def read_trees(booster: Any) -> Trees:
    """The trees of a fitted estimator, whose scores they give bit by bit.

    Splits "==" list the codes that go left, joined by "||"; NaN goes right there. Where a split of numbers knows no
    missing values NaN is 0.

    Raises
    ------
    ValueError
        The trees are averaged ("rf"), or their leaves are linear.
    """
    dump = booster.booster_.dump_model()
    if dump["average_output"]:
        raise ValueError("Trees of LightGBM's boosting='rf' are averaged, which is not read; use route='mixture'.")
    nodes: list[Node] = []
    roots = [_read(tree["tree_structure"], nodes) for tree in dump["tree_info"]]
    width = int(dump["num_tree_per_iteration"])
    outputs = [place % width for place in range(len(roots))]
    return Trees.of(nodes, roots, outputs, np.zeros(width), listed_left=True, kind=np.float64)


def _read(root: dict[str, Any], nodes: list[Node]) -> int:
    """Add a tree's nodes, parents first; the place of its root."""
    place = len(nodes)
    if "split_feature" not in root:
        if root.get("leaf_coeff"):
            raise ValueError("LightGBM's linear leaves are not read; use route='mixture'.")
        nodes.append(Node(value=root["leaf_value"], cover=root.get("leaf_count", 0)))
        return place
    nodes.append(Node())
    left, right = _read(root["left_child"], nodes), _read(root["right_child"], nodes)
    categorical = root["decision_type"] == "=="
    nodes[place] = Node(
        feature=root["split_feature"],
        threshold=0.0 if categorical else root["threshold"],
        left=left,
        right=right,
        listed=[int(code) for code in root["threshold"].split("||")] if categorical else None,
        missing=_MISSING[root["missing_type"]],
        default_left=False if categorical else root["default_left"],
        inner=root["internal_value"],
        cover=root["internal_count"],
    )
    return place
