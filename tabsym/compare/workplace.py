"""The temporary folder of a comparison: the table and the folds for its workers, and nothing left behind.

The owner holds a lock in the folder, which goes away with its process; what a killed comparison left is removed by the
worker that outlives it, or else by the next comparison of the same user.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tabsym.compare.lock import NAME as LOCK
from tabsym.compare.lock import is_free, owned

PREFIX = "tabsym-compare-"
_MIN_AGE = 60.0  # seconds: a folder that is being made is not locked yet


@contextmanager
def workplace(n_workers: int, write: Callable[[Path], None]) -> Iterator[list[Path]]:
    """Folders, one for each worker, that share what `write` puts into a folder."""
    _remove_abandoned()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name, owned(Path(name)):
        shared = Path(name) / "shared"
        shared.mkdir()
        write(shared)
        yield [Path(name) / f"worker{job}" for job in range(n_workers)]


def renew(place: Path) -> None:
    """Make a worker's folder anew: the contender before may have done anything to it."""
    place.unlink() if place.is_symlink() else shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for path in (place.parent / "shared").iterdir():
        try:
            os.link(path, place / path.name)  # whoever removes it removes no one else's
        except OSError:
            shutil.copyfile(path, place / path.name)


def _remove_abandoned() -> None:
    """Remove the folders of this user whose comparisons are gone."""
    if not hasattr(os, "getuid"):
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            mine = not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.getuid()
            if mine and time.time() - (folder / LOCK).lstat().st_mtime > _MIN_AGE and is_free(folder):
                shutil.rmtree(folder, ignore_errors=True)
