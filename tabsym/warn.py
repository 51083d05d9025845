"""Warnings that name the user's line, not one of ours: Python shows each once per line, and that is whose it is."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import FrameType

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
