"""One owner of a folder at a time: a lock that goes away with the process that holds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Hold the folder for this comparison.

    Raises
    ------
    ValueError
        Another comparison holds it.
    """
    if fcntl is None:
        yield
        return
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(folder / NAME, flags, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another comparison is writing to {folder}; wait until it has ended, or choose another folder."
            ) from None
        yield
    finally:
        os.close(descriptor)


def is_free(folder: Path) -> bool:
    """Whether a folder was locked once and is not any more; False where locks are not known."""
    if fcntl is None:
        return False
    descriptor = os.open(folder / NAME, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
