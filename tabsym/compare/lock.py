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
        Another comparison holds it, or its lock cannot be opened.
    """
    if fcntl is None:
        yield
        return
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(folder / NAME, flags, 0o644)
    except OSError as error:  # a folder, or a link to elsewhere
        raise ValueError(
            f"{folder / NAME} cannot be opened ({error.strerror}); remove it, or choose another folder than {folder}."
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another comparison is writing to {folder}; wait until it has ended, or choose another folder."
            ) from None
        except OSError:  # a file system without locks
            pass
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
