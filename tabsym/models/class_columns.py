"""Numbers by class that users give, as columns of frames or of one category, in the order of the classes.

They are matched by name, whatever their order; numbers that stand in an array, or in a frame with the columns 0, 1, ...
of one, are in the order of the classes already.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd


def positions_of_classes(names: Iterable[Any], classes: Iterable[Any], what: str, *, beside: bool = False) -> list[int]:
    """The index of each of several classes among names of columns; a `ValueError` where one is missing.

    `beside`: there may be other names. Names that count up from 0, as those of an array, name no classes.
    """
    names, classes = list(names), list(classes)
    numbers = list(range(len(classes)))
    if names in (numbers, [f"column_{number}" for number in numbers]):  # as pandas and polars call those of an array
        return numbers
    found = [next((at for at, name in enumerate(names) if _is_same(name, label)), -1) for label in classes]
    if min(found) < 0 or (len(names) > len(classes) and not beside):
        raise ValueError(
            f"{what} has the columns {list(map(str, names))}, and needs {list(map(str, classes))}; name one for each, "
            "or give an array in their order."
        )
    return found


def by_class(
    given: Any, classes: Iterable[Any] | None, what: str, *, beside: bool = False, ranked: bool = False
) -> Any:
    """A frame with a column for each of several classes, in their order; what is no frame stays as it is.

    `beside`: it may have other columns, which are left out then. `ranked`: it may be of latent vectors, with a column
    for each component and class, in the order of `coefs_`.
    """
    columns, classes = getattr(given, "columns", None), [] if classes is None else list(classes)
    if columns is None or len(classes) <= 2:
        return given
    names = list(getattr(given, "column_names", columns))
    if ranked and f"{classes[0]} 1" in names and f"{classes[0]}" not in names:
        return given
    positions = positions_of_classes(names, classes, what, beside=beside)
    if positions == list(range(len(names))):
        return given
    if isinstance(given, pd.DataFrame):
        return given.iloc[:, positions]
    return given.select([names[at] for at in positions])


def numbers_by_class(given: Any, classes: Iterable[Any] | None, what: str) -> Any:
    """The numbers of one category as an array in the order of several classes, where they are named by class."""
    classes = [] if classes is None else list(classes)
    if len(classes) <= 2 or not isinstance(given, (pd.Series, Mapping)):
        return given
    names = list(given.index if isinstance(given, pd.Series) else given)
    values = list(given.to_numpy() if isinstance(given, pd.Series) else given.values())
    return [values[at] for at in positions_of_classes(names, classes, what)]


def are_classes(names: Iterable[Any], classes: Iterable[Any]) -> bool:
    """Whether names are those of all classes, in any order."""
    names, classes = list(names), list(classes)
    return len(names) == len(classes) and all(any(_is_same(name, label) for name in names) for label in classes)


def _is_same(name: Any, label: Any) -> bool:
    """Whether a name is that of a class: equal to it, or to its text; dates and numbers by value."""
    if str(name) == str(label):
        return True
    if isinstance(name, (Real, np.bool_)) and isinstance(label, (Real, np.bool_)):
        return bool(name == label)
    if _is_moment(name) or _is_moment(label):
        one, other = _moment(name), _moment(label)
        return one is not None and one == other
    text, value = (name, label) if isinstance(name, str) else (label, name)
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and float(text) == value
    except (TypeError, ValueError):
        return False


def _is_moment(value: Any) -> bool:
    return isinstance(value, (datetime.date, np.datetime64))


def _moment(value: Any) -> pd.Timestamp | None:
    """A date or moment, also in text; in UTC where it has a zone."""
    if not _is_moment(value) and not isinstance(value, str):
        return None
    try:
        found = pd.Timestamp(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is None else found.tz_convert("UTC")
