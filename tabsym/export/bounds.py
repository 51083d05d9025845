"""What the arrays of a loaded model must be where compiled code indexes them without a check.

A file can hold any numbers. An index beyond an array would be read as memory, and a tree that leads back to itself
would be followed for ever. What Python or numpy follow raises an error by itself and is not looked at here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from tabsym.export.archive import BadFile

Ints = NDArray[np.signedinteger[Any]]

_HISTOGRAMS = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.BaseHistGradientBoosting"
_BITS = 256  # of a set of categories in a histogram tree


def check_instance(instance: Any, homes: set[str]) -> None:
    """Refuse an object whose arrays do not fit each other; `homes`: full names of its class and its bases.

    Raises
    ------
    BadFile
        They do not.
    """
    for home, check in _CHECKS.items():
        if home in homes and not check(instance):
            raise BadFile(f"holds a {type(instance).__name__} whose parts do not fit each other")


def _is_tree(inner: NDArray[np.intp], left: Ints, right: Ints, n_nodes: int) -> bool:
    """Whether every node but the first is the child of one inner node that stands before it."""
    children = np.concatenate([left, right]).astype(np.int64)
    after = (children > np.concatenate([inner, inner])).all()
    return n_nodes > 0 and bool(after) and np.array_equal(np.sort(children), np.arange(1, n_nodes))


# -- histogram trees of scikit-learn


def _fits_histogram(booster: Any) -> bool:
    state = vars(booster)
    if "_predictors" not in state:  # not fitted
        return True
    width = _width(state)
    mapper = vars(state["_bin_mapper"])
    by_set, bounds = mapper["is_categorical_"], mapper["bin_thresholds_"]
    return (
        "_in_fit" not in state
        and width is not None
        and isinstance(by_set, np.ndarray)
        and by_set.shape == (width,)
        and len(bounds) == width
        and all(_are_bits(bounds[position]) for position in np.flatnonzero(by_set))
        and all(len(stage) == state["n_trees_per_iteration_"] for stage in state["_predictors"])
        and all(_fits_tree(tree, by_set) for stage in state["_predictors"] for tree in stage)
    )


def _are_bits(values: Any) -> bool:
    return isinstance(values, np.ndarray) and bool(((values >= 0) & (values < _BITS)).all())


def _width(state: dict[str, Any]) -> int | None:
    """Columns of the rows that reach the trees: all, or those that the column transformer in front gives."""
    first, n_features = state.get("_preprocessor"), state.get("n_features_in_")
    if type(n_features) is not int or first is None:
        return n_features if type(n_features) is int else None
    parts, width = vars(first), 0
    for name, transformer, chosen in parts["transformers_"]:
        if isinstance(transformer, str):
            if transformer != "drop":
                return None
            continue
        plain = isinstance(chosen, np.ndarray) and chosen.dtype == np.bool_ and chosen.shape == (n_features,)
        if not plain or not _keeps_width(transformer):
            return None
        if not np.array_equal(parts["_transformer_to_input_indices"][name], np.flatnonzero(chosen)):
            return None
        width += int(np.count_nonzero(chosen))
    return width


def _keeps_width(transformer: Any) -> bool:
    kind = type(transformer).__name__
    check = getattr(getattr(transformer, "func", None), "func", None)  # of a partial
    return kind == "OrdinalEncoder" or (kind == "FunctionTransformer" and check is check_array)


def _fits_tree(tree: Any, by_set: NDArray[Any]) -> bool:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes, sets = vars(tree)["nodes"], vars(tree)["raw_left_cat_bitsets"]
    if not (isinstance(nodes, np.ndarray) and nodes.dtype == PREDICTOR_RECORD_DTYPE and nodes.ndim == 1):
        return False
    position = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[position]
    columns = inner["feature_idx"]
    if not _is_tree(position, inner["left"], inner["right"], len(nodes)):
        return False
    if ((columns < 0) | (columns >= len(by_set))).any():
        return False
    splits = inner["is_categorical"] != 0
    return (
        isinstance(sets, np.ndarray)
        and sets.ndim == 2
        and sets.shape[1] == _BITS // 32
        and bool((inner["bitset_idx"][splits] < len(sets)).all())
        and bool((by_set[columns[splits]] != 0).all())
    )


# -- models and trees of tabsym


def _fits_model(model: Any) -> bool:
    spec, n_outputs = model.spec, model.n_outputs
    n, n_blocks = spec.n_coefs, len(spec.blocks)
    factors = [factor for term in spec.terms for factor in term.factors]
    certainty = model.certainty
    return (
        type(n_outputs) is int
        and all(type(block.rank) is int and block.rank > 0 for block in spec.blocks)
        and all(type(f.block) is int and 0 <= f.block < n_blocks for f in factors)
        and all(type(f.component) is int and 0 <= f.component < spec.blocks[f.block].rank for f in factors)
        and model.theta.shape == (n, n_outputs)
        and model.counts.shape == model.weights.shape == (n,)
        and model.state.shape == (n * n_outputs, len(model.columns.fresh))
        and (certainty is None or certainty.samples is None or certainty.samples.shape[0] == n)
        and (certainty is None or certainty.unknown is None or certainty.unknown.shape[1] == n)
    )


def _fits_jitter_tree(tree: Any) -> bool:
    n = len(tree.feature)
    by_node = (
        tree.feature, tree.threshold, tree.left, tree.right, tree.other_left, tree.n_rows, tree.weight, tree.impurity,
        tree.gain,
    )  # fmt: skip
    inner = np.flatnonzero(tree.feature >= 0)
    positions = tree.pointer
    return (
        all(array.shape == (n,) for array in by_node)
        and all(array.dtype.kind == "i" for array in (tree.feature, tree.left, tree.right, positions, tree.symbols))
        and tree.value.ndim == 2
        and len(tree.value) == n
        and positions.shape == (n + 1,)
        and positions[0] == 0
        and bool((np.diff(positions) >= 0).all())
        and tree.symbols.shape == tree.to_left.shape == (positions[-1],)
        and _is_tree(inner, tree.left[inner], tree.right[inner], n)
    )


def _fits_jitter_estimator(estimator: Any) -> bool:
    state = vars(estimator)
    return "tree_" not in state or bool((state["tree_"].feature < len(state["_columns"].kinds)).all())


_CHECKS = {
    _HISTOGRAMS: _fits_histogram,
    "tabsym.models.model.WideModel": _fits_model,
    "tabsym.jitter.tree.Tree": _fits_jitter_tree,
    "tabsym.jitter.tree_estimators.JitterTree": _fits_jitter_estimator,
}
"""Full name of a class -> whether the arrays of an object of it fit."""
