"""What `TIWSEncoder` takes, checked: its options, the target, and pieces whose counts are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from tabsym.categories.lazy import MAX_TARGET_CELLS, LazyRows, LazyTarget, sizes_of
from tabsym.frame import (
    check_classes,
    check_regression_target,
    check_target,
    holds_classes,
    name_of_target,
)
from tabsym.validation import check_declared_options

Floats = NDArray[np.float64]


def check_options(encoder: Any) -> None:
    """A `ValueError` that names the argument and what it can be."""
    check_declared_options(encoder)
    if encoder.names and encoder.method == "poster":
        raise ValueError("names=True needs method='documents'; set names=False with method='poster'.")
    _check_numeric(encoder.numeric)


def _check_numeric(numeric: Any) -> None:
    allowed = ("modl", "quantile", "passthrough")
    if isinstance(numeric, str) and numeric in allowed:
        return
    words = ", ".join(map(repr, allowed))
    if not isinstance(numeric, Mapping):
        raise ValueError(
            f"numeric={numeric!r} is not known; use one of {words}, or a dict of column names and edges (or one of "
            "these words)."
        )
    for name, edges in numeric.items():
        if isinstance(edges, str):
            if edges not in allowed:
                raise ValueError(f"numeric has {edges!r} for column {name!r}; use one of {words}, or edges.")
            continue
        try:
            values = np.asarray(edges, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.ndim != 1 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
            raise ValueError(f"The edges of column {name!r} in numeric must be ascending finite numbers.")


@dataclass(frozen=True)
class TargetComponents:
    """`y` (n, q): the target, or the indicators of all `classes`; `codes` (n,) for classification."""

    y: Floats
    classes: NDArray[Any] | None
    codes: NDArray[Any]


def components(
    y: Any, n_rows: int, target_type: str, caller: str, classes: Any = None, weight: Floats | None = None
) -> TargetComponents:
    """The target of a table, checked; `classes`: all that there can be, if they are known.

    Otherwise classes whose rows all have `weight` (n,) 0 are absent, as these rows are.
    """
    if classes is not None:
        return further(y, n_rows, _all_classes(classes, target_type), caller)
    if holds_classes(check_target(y, n_rows, caller), target_type, caller, name_of_target(y)):
        found = check_classes(y, n_rows, caller=caller).weighed(weight)
        if len(found.classes) < 2:
            raise ValueError(
                f"{caller} needs at least 2 classes, but the rows of positive weight have 1 class only "
                f"({found.classes.tolist()[0]!r}); choose another target or other weights."
            )
        return TargetComponents(np.eye(len(found.classes))[found.codes], found.classes, found.codes)
    return further(y, n_rows, None, caller)


def lazy_target(rows: LazyRows, target_type: str, caller: str) -> LazyTarget | None:
    """The classes of a lazy frame's target, checked; None where it holds numbers."""
    name = rows.target
    assert name is not None
    if target_type != "classes" and rows.is_number(name) and rows.n_distinct(name) > MAX_TARGET_CELLS:
        ends = rows.total(low=nw.col(name).min(), high=nw.col(name).max())
        check_regression_target(list(ends.values()), 2, caller=caller)
        return None
    groups = rows.groups([nw.col(name)])
    column = rows.read(groups, "k0", name)
    series = column.series.to_native()
    values = check_target(series, len(groups), caller)
    if holds_classes(values, target_type, caller, name, rows=sizes_of(groups)):
        found = check_classes(series, len(groups), caller=caller)
        return LazyTarget.of(nw.col(name), found.classes, column, found.codes)
    check_regression_target(series, len(groups), caller=caller)
    return None


def further(
    y: Any, n_rows: int, classes: NDArray[Any] | None, caller: str, weight: Floats | None = None
) -> TargetComponents:
    """The target of a further piece of a table, with the classes of the first; rows of `weight` 0 may have others."""
    if classes is None:
        values = check_regression_target(y, n_rows, caller=caller)
        return TargetComponents(values[:, None], None, values)
    if weight is not None:
        counted = check_classes(y, n_rows, caller=caller).weighed(weight)
        y = counted.classes[counted.codes]
    found = check_classes(y, n_rows, classes=classes, caller=caller)
    return TargetComponents(np.eye(len(classes))[found.codes], classes, found.codes)


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


def check_mergeable(one: Any, other: Any) -> None:
    """A `ValueError` where the counts of two fitted encoders cannot be added."""
    if one._names_in != other._names_in or list(one.columns_) != list(other.columns_):
        raise ValueError("merge needs encoders of the same columns, in the same order.")
    if _labels(one._classes) != _labels(other._classes):
        raise ValueError(
            f"merge needs encoders of the same target; these have {_told(one._classes)} and {_told(other._classes)}."
        )
    for a, b in zip(one.counts_.words, other.counts_.words, strict=True):
        if type(a) is not type(b) or not np.array_equal(getattr(a, "edges", ()), getattr(b, "edges", ())):
            raise ValueError(
                f"Column {a.name!r} was cut into other intervals in the two encoders; give both the same edges: "
                "numeric={'column': [...]}."
            )


def _labels(classes: NDArray[Any] | None) -> list[Any] | None:
    return None if classes is None else classes.tolist()


def _told(classes: NDArray[Any] | None) -> str:
    return "numbers" if classes is None else f"the classes {classes.tolist()}"
