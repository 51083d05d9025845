"""The target as components: a number, or one indicator for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from tabsym.table import check_classes, check_regression_target, check_target, holds_classes

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Components:
    """`y` (n, q): the target, or the indicators of all `classes`; `codes` (n,) of classes."""

    y: Floats
    classes: NDArray[Any] | None
    codes: NDArray[Any]


def components(y: Any, n_rows: int, target_type: str, who: str, classes: Any = None) -> Components:
    """The target of a table, checked; `classes`: all that there can be, if they are known."""
    if classes is not None:
        return further(y, n_rows, _all_classes(classes, target_type), who)
    if holds_classes(check_target(y, n_rows, who), target_type):
        found = check_classes(y, n_rows, who=who)
        return Components(np.eye(len(found.classes))[found.codes], found.classes, found.codes)
    return further(y, n_rows, None, who)


def further(y: Any, n_rows: int, classes: NDArray[Any] | None, who: str) -> Components:
    """The target of a further piece of a table, with the classes of the first."""
    if classes is None:
        values = check_regression_target(y, n_rows, who=who)
        return Components(values[:, None], None, values)
    found = check_classes(y, n_rows, classes=classes, who=who)
    return Components(np.eye(len(classes))[found.codes], classes, found.codes)


def check_same_classes(given: Any, before: NDArray[Any] | None) -> None:
    """A `ValueError` where the classes given with a further piece are not those of the first."""
    if given is None:
        return
    if before is None:
        raise ValueError("classes were given, but the target held numbers before; leave classes out.")
    if not np.array_equal(_distinct(given), before):
        raise ValueError(
            f"classes={list(given)!r} is not the same as on last call to partial_fit, was: {before.tolist()!r}; leave "
            "classes out."
        )


def _all_classes(given: Any, target_type: str) -> NDArray[Any]:
    if target_type == "continuous":
        raise ValueError("target_type='continuous' has no classes; leave classes out.")
    classes = _distinct(given)
    if len(classes) < 2:
        raise ValueError(f"classes={list(given)!r} is not possible; give all classes, at least 2.")
    return classes


def _distinct(classes: Any) -> NDArray[Any]:
    return np.unique(column_or_1d(classes))
