"""HistGradientBoosting's trees, as scikit-learn keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.jitter.trees import Node, Trees


def read_trees(booster: Any) -> Trees:
    """The trees of a fitted estimator, whose scores they give bit by bit; features in the order of the table."""
    order = _order(booster)
    nodes: list[Node] = []
    roots, outputs = [], []
    for iteration in booster._predictors:
        for output, tree in enumerate(iteration):
            roots.append(len(nodes))
            outputs.append(output)
            nodes.extend(_read(tree, len(nodes), order))
    base = np.ravel(booster._baseline_prediction)
    return Trees.of(nodes, roots, outputs, base, listed_left=True, kind=np.float64)


def matrix_of(booster: Any, frame: Any) -> NDArray[np.float64]:
    """A table as the estimator's own numbers and codes, in the order of the table."""
    made = np.asarray(booster._preprocess_X(frame, reset=False), dtype=np.float64)
    out = np.empty_like(made)
    out[:, _order(booster)] = made
    return out


def raw_scores(booster: Any, frame: Any) -> NDArray[np.float64]:
    """Scores before the link, which a regressor does not tell."""
    scores = booster._raw_predict(frame)
    return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)


def _order(booster: Any) -> NDArray[np.int64]:
    """Columns of the table in the order of the estimator's matrix: categories come first there."""
    categorical = booster.is_categorical_
    if categorical is None or getattr(booster, "_preprocessor", None) is None:
        return np.arange(booster.n_features_in_)
    return np.concatenate([np.flatnonzero(categorical), np.flatnonzero(~categorical)])


def _read(tree: Any, first: int, order: NDArray[np.int64]) -> list[Node]:
    nodes = []
    for node in tree.nodes:
        if node["is_leaf"]:
            nodes.append(Node(value=float(node["value"]), cover=float(node["count"])))
            continue
        listed = None
        if node["is_categorical"]:
            words = tree.raw_left_cat_bitsets[node["bitset_idx"]].astype("<u4")
            listed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
        nodes.append(
            Node(
                feature=int(order[node["feature_idx"]]),
                threshold=float(node["num_threshold"]),
                left=first + int(node["left"]),
                right=first + int(node["right"]),
                listed=listed,
                default_left=bool(node["missing_go_to_left"]),
                cover=float(node["count"]),
            )
        )
    return nodes
