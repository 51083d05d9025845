"""The target as components: a number, or one indicator for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.table import check_classes, check_regression_target, check_target, holds_classes

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Components:
    """`y` (n, q): the target, or the indicators of all `classes`; `codes` (n,) of classes."""

    y: Floats
    classes: NDArray[Any] | None
    codes: NDArray[Any]


def components(y: Any, n_rows: int, target_type: str, who: str) -> Components:
    """The target of a table, checked."""
    if holds_classes(check_target(y, n_rows, who), target_type):
        found = check_classes(y, n_rows, who=who)
        return Components(np.eye(len(found.classes))[found.codes], found.classes, found.codes)
    values = check_regression_target(y, n_rows, who=who)
    return Components(values[:, None], None, values)


def further(y: Any, n_rows: int, classes: NDArray[Any] | None, who: str) -> Components:
    """The target of a further piece of a table, with the classes of the first."""
    if classes is None:
        values = check_regression_target(y, n_rows, who=who)
        return Components(values[:, None], None, values)
    found = check_classes(y, n_rows, classes=classes, who=who)
    return Components(np.eye(len(classes))[found.codes], classes, found.codes)
