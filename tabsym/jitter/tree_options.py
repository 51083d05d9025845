"""The options of jitter trees, checked."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tabsym.encoders import TIWSEncoder
from tabsym.jitter.tree_donors import MODES
from tabsym.jitter.tree_grow import Rules
from tabsym.tiws.unseen import CONTEXTS


def check_words(tree: Any, criteria: tuple[str, ...]) -> None:
    """A `ValueError` or `TypeError` that names the argument and what it can be."""
    _check_word("criterion", tree.criterion, criteria)
    _check_word("handle_unknown", tree.handle_unknown, tuple(MODES))
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
