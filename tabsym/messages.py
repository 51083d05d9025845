"""Messages to users: allowed values of options, warnings, and progress.

A class declares the values of its options, as scikit-learn's `_parameter_constraints` does::

    _allowed_options = {
        "output": ("category", "text"),
        "max_levels": (Number(at_least=1, whole=True), None),
        "sparse_output": (True, False),
    }

and its `fit` begins with ``check_declared_options(self)``. `check_option` does the same for the argument of a function.

Warnings name the user's line, not one of ours: Python shows each once per line, and that is whose it is.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np

Value = TypeVar("Value")


@dataclass(frozen=True)
class Number:
    """A finite number within bounds, such as ``Number(above=0)``; `of` names what it counts, such as "rows".

    `fraction`: whole numbers are counts next to it, so that 1 is one row and 1.0 all.
    """

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    whole: bool = False
    fraction: bool = False
    of: str = ""

    def allows(self, value: Any) -> bool:
        """Whether a value is a finite number of this kind; True and False are none."""
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        if self.fraction and isinstance(value, Integral):
            return False
        number: Any = value
        return (
            (isinstance(value, Integral) or math.isfinite(value))
            and (self.at_least is None or number >= self.at_least)
            and (self.above is None or number > self.above)
            and (self.at_most is None or number <= self.at_most)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
        bounds = {"of at least": self.at_least, "above": self.above, "at most": self.at_most, "below": self.below}
        given = " and ".join(f"{word} {bound}" for word, bound in bounds.items() if bound is not None)
        noun = "a fraction" if self.fraction else f"a {'whole ' * self.whole}number"
        noun += f" of {self.of}" if self.of else ""
        return f"{noun} {given}" if given else noun


@dataclass(frozen=True)
class Instance:
    """An object of some type; `text` describes it in the sentence, such as "an object of tabsym.losses"."""

    type: Any
    text: str

    def allows(self, value: Any) -> bool:
        return isinstance(value, self.type)

    def __str__(self) -> str:
        return self.text


def check_declared_options(estimator: Any) -> None:
    """A `ValueError` for the first option of an estimator that is none of those in its `_allowed_options`."""
    for name, allowed in estimator._allowed_options.items():
        check_option(name, getattr(estimator, name), allowed)


def check_option(name: str, value: Value, allowed: Iterable[Any], *alternatives: str) -> Value:
    """The value of an option, or a `ValueError` with the name, the value and those that are allowed.

    Parameters
    ----------
    name : str
    value : object
    allowed : iterable of str, bool, None, Number or Instance
    alternatives : str
        What else may be given, in words; the caller has found that the value is none of it.

    Raises
    ------
    ValueError
        Such as "output='csv' is not known; use 'category' or 'text'."
    """
    allowed = tuple(allowed)
    if any(_allows(possible, value) for possible in allowed):
        return value
    words = [
        str(possible) if isinstance(possible, (Number, Instance)) else repr(possible) for possible in allowed
    ] + list(alternatives)
    is_word = any(isinstance(possible, str) for possible in allowed) and (
        isinstance(value, str) or all(possible is None or isinstance(possible, str) for possible in allowed)
    )
    listed = " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    raise ValueError(f"{name}={value!r} is not {'known' if is_word else 'possible'}; use {listed}.")


def _allows(possible: Any, value: Any) -> bool:
    if isinstance(possible, (Number, Instance)):
        return possible.allows(value)
    if isinstance(possible, bool):
        return isinstance(value, (bool, np.bool_)) and bool(value) is possible
    return value is possible if possible is None else isinstance(value, str) and value == possible


def plural(n: int, singular: str, several: str = "") -> str:
    """A count with its noun: "1 row", "2,000 rows"; a plural of another form is given, such as "categories"."""
    return f"{n:,} {singular if n == 1 else several or singular + 's'}"


# -- warnings and progress -------------------------------------------------------------------------

_OURS = f"{Path(__file__).parent}{os.sep}"
_WRAPPERS = ("sklearn", "joblib", "contextlib", "numba")
"""Libraries that call estimators, or parts of them, for the user: pipelines, searches, containers, decorators."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is neither of this package nor of a library that calls it for the user."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and (_is_import(frame) or _is_between(frame)):  # a thread's outermost line is ours
        level, frame = level + (not _is_import(frame)), frame.f_back
    warnings.warn(message, category, stacklevel=level)


def show_progress(verbose: int, text: str) -> None:
    """A line of progress on standard error, for an estimator with ``verbose >= 1``."""
    if verbose:
        print(text, file=sys.stderr)


def _is_between(frame: FrameType) -> bool:
    library = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return frame.f_code.co_filename.startswith(_OURS) or library in _WRAPPERS


def _is_import(frame: FrameType) -> bool:
    """Whether a frame is of the import system, which Python does not count in `stacklevel`."""
    return "importlib" in frame.f_code.co_filename and "_bootstrap" in frame.f_code.co_filename
