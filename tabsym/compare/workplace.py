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

from tabsym.compare.lock import is_free, owned

PREFIX = "tabsym-compare-"
_MAKING = "tabsym-making-"
_MIN_AGE = 60.0
"""Seconds after which a folder that was never finished, and so never locked, is abandoned."""


@contextmanager
def workplace(n_workers: int, write: Callable[[Path], None]) -> Iterator[list[Path]]:
    """Folders, one for each worker, that share what `write` puts into a folder."""
    _remove_abandoned()
    made = Path(tempfile.mkdtemp(prefix=_MAKING))
    folder = made.with_name(PREFIX + made.name.removeprefix(_MAKING))
    try:
        with owned(made):  # locked before it has the name by which abandoned ones are found
            made.rename(folder)
            (folder / "shared").mkdir()
            write(folder / "shared")
            yield [folder / f"worker{job}" for job in range(n_workers)]
    finally:
        for path in (made, folder):
            shutil.rmtree(path, ignore_errors=True)


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
    for folder in Path(tempfile.gettempdir()).glob("tabsym-*-*"):
        with suppress(OSError):
            if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.getuid():
                continue
            unfinished = folder.name.startswith(_MAKING) and time.time() - folder.stat().st_mtime > _MIN_AGE
            if unfinished or (folder.name.startswith(PREFIX) and is_free(folder)):
                shutil.rmtree(folder, ignore_errors=True)
