"""The target of a MODL encoder: classes or numbers, coded; the later pieces of a stream like the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table import check_classes, check_regression_target, check_target, holds_classes

Floats = NDArray[np.float64]

MOST_TARGETS = 65_536
"""Continuous targets with more distinct values are taken in so many cells of neighbours, each at its mean."""


@dataclass(frozen=True)
class CodedTarget:
    """The target of each row: codes (n,) into the distinct `values` (T,), ascending."""

    codes: NDArray[Any]
    values: NDArray[Any]
    is_classes: bool

    def present_in(self, rows: NDArray[np.int64]) -> CodedTarget:
        """With the values of these rows only; the codes of the other rows are then any."""
        used = np.bincount(self.codes[rows], minlength=len(self.values)) > 0
        return CodedTarget((np.cumsum(used) - 1)[self.codes], self.values[used], self.is_classes)


def is_classification(y: Any, n_rows: int, target_type: str, who: str) -> bool:
    """Whether the target holds classes, by `target_type`."""
    return holds_classes(check_target(y, n_rows, who), target_type)


def code_target(y: Any, n_rows: int, *, classes: bool, who: str) -> CodedTarget:
    """The target of a whole table, or of the first piece of one."""
    if classes:
        target = check_classes(y, n_rows, who=who)
        return CodedTarget(target.codes, target.classes, True)
    values = check_regression_target(y, n_rows, who=who)
    targets, codes = np.unique(values, return_inverse=True)
    if len(targets) > MOST_TARGETS:
        return CodedTarget(*_in_cells(values, codes.ravel()), False)
    return CodedTarget(codes.ravel(), targets, False)


def code_further_classes(y: Any, n_rows: int, before: NDArray[Any] | None, who: str) -> CodedTarget:
    """The classes of a later piece, which may hold one only, or new ones; `before`: those so far, if there are any."""
    found = pd.unique(check_target(y, n_rows, who))
    before = found[:0] if before is None else before
    check_target_piece(before, found)
    target = check_classes(y, n_rows, classes=np.union1d(before, found), who=who)
    return CodedTarget(target.codes, target.classes, True)


def check_target_piece(before: Any, now: Any) -> None:
    """A `TypeError` where the classes of two pieces are numbers in one and text in the other."""
    kinds = ["numbers" if np.asarray(one).dtype.kind in "biuf" else "text" for one in (before, now)]
    if len(before) and kinds[0] != kinds[1]:
        raise TypeError(
            f"The target held {kinds[0]} before and holds {kinds[1]} now (such as {np.asarray(now).tolist()[0]!r}); "
            "convert it to one type in every piece."
        )


def _in_cells(values: Floats, ranks: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Codes (n,) into cells of neighbouring values of nearly equal size, and their means."""
    sizes = np.bincount(ranks)
    cell = (np.cumsum(sizes) - sizes) * MOST_TARGETS // len(values)
    cell = np.cumsum(np.append(0, np.diff(cell) > 0))
    codes = cell[ranks]
    return codes, np.bincount(codes, values) / np.bincount(codes)
