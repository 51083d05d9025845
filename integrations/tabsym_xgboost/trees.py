"""XGBoost's trees, as it saves them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tabsym.jitter.trees import Node, Trees

_LOGISTIC = {"binary:logistic", "reg:logistic", "binary:logitraw"}
_LOGARITHM = {"count:poisson", "reg:gamma", "reg:tweedie"}


def read_trees(booster: Any) -> Trees:
    """The trees of a fitted estimator, whose scores they give bit by bit.

    Categories that a split lists go right, numbers below its threshold left; both are float32, as are the sums, which
    start at the base score. A node's own value is the mean of its children's by their hessians: its weight as saved is
    not scaled by the learning rate.

    Raises
    ------
    ValueError
        The booster is not of plain trees ("dart", "gblinear").
    """
    saved = json.loads(bytes(booster.get_booster().save_raw("json")))["learner"]
    if saved["gradient_booster"]["name"] != "gbtree":
        name = saved["gradient_booster"]["name"]
        raise ValueError(f"Trees of XGBoost's booster={name!r} are not read; use route='mixture'.")
    model = saved["gradient_booster"]["model"]
    nodes: list[Node] = []
    roots = []
    for tree in model["trees"][: _asked(booster, model)]:
        roots.append(len(nodes))
        nodes.extend(_read(tree, len(nodes)))
    width = max(int(saved["learner_model_param"]["num_class"]), int(saved["learner_model_param"]["num_target"]), 1)
    base = np.broadcast_to(_base(saved), (width,))
    return Trees.of(nodes, roots, list(model["tree_info"])[: len(roots)], base, listed_left=False, kind=np.float32)


def _asked(booster: Any, model: dict[str, Any]) -> int:
    """How many trees are asked: those up to the best iteration, where training stopped early."""
    if any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in model["trees"]):
        raise ValueError("XGBoost's trees of several outputs each are not read; use route='mixture'.")
    try:
        best = int(booster.best_iteration)
    except AttributeError:
        return len(model["trees"])
    return int(model["iteration_indptr"][best + 1])


def _base(saved: dict[str, Any]) -> Any:
    """Where sums start."""
    stored = json.loads(saved["learner_model_param"]["base_score"])
    score = np.atleast_1d(np.asarray(stored, dtype=np.float32))
    name, one = saved["objective"]["name"], np.float32(1)
    if name in _LOGISTIC:
        return -_log(one / score - one)
    return _log(score) if name in _LOGARITHM else score


def _log(values: Any) -> Any:
    """The nearest float32, as the C library gives it; NumPy's own may be the one beside it."""
    return np.log(values.astype(np.float64)).astype(np.float32)


def _read(tree: dict[str, Any], first: int) -> list[Node]:
    begins = dict(zip(tree["categories_nodes"], zip(tree["categories_segments"], tree["categories_sizes"])))
    nodes = []
    for place, left in enumerate(tree["left_children"]):
        condition = np.float32(tree["split_conditions"][place])
        cover = tree["sum_hessian"][place]
        if left < 0:
            nodes.append(Node(value=float(condition), cover=cover))
            continue
        begin, size = begins.get(place, (0, 0))
        nodes.append(
            Node(
                feature=tree["split_indices"][place],
                threshold=float(np.nextafter(condition, np.float32(-np.inf))),  # less than becomes at most
                left=first + left,
                right=first + tree["right_children"][place],
                listed=tree["categories"][begin : begin + size] if tree["split_type"][place] else None,
                default_left=bool(tree["default_left"][place]),
                cover=cover,
            )
        )
    return nodes
