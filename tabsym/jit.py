"""How kernels are compiled: the one place for numba's flags.

`cache=True` keeps machine code on disk, so only the first process on a
machine compiles. It holds for plain functions over arrays and numbers, and for
closures over numbers; jitted functions passed as arguments or held in closures
and jitclass miss the cache in every process and are not used here (numba
#2956, #9659). The cache watches the file
of the kernel only: after editing an `inlined` function in another file, or a
kernel that one there calls, delete the ``*.nbi`` files beside the kernel
(``find . -name "*.nb?" -delete``). No fastmath: results must equal the
textbook's sequence of operations. Divisions are NumPy's: by zero gives inf or
nan, without a test before each.

Kernels are compiled without numba's reference counts: counting references to
the arrays that inlined functions hand to each other, atomically, took nine
tenths of the time. Such kernels cannot make arrays; they get the ones they
work in as arguments.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import IndexDataCacheFile
from numba.core.event import Listener, register

from tabsym.warn import warn_user

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

unsigned: Any = np.uintp
"""For indices read from arrays: numba tests signed ones for being negative, a third of the time of a tight loop."""


def kernel(function: Kernel) -> Kernel:
    """Compile a kernel that makes no arrays: nopython, cached on disk, without the GIL or reference counts."""
    return _compiled(function, _nrt=False, error_model="numpy")


def allocating_kernel(function: Kernel) -> Kernel:
    """Compile a kernel that makes arrays: as `kernel`, with reference counts."""
    return _compiled(function)


def kernels_by(make: Callable[..., Kernel]) -> Callable[..., Kernel]:
    """Kernels by constants such as the loss, each compiled when it is first used: ``move_and_sum(loss)(before, ...)``.

    `make` returns the plain function for its arguments, numbers that it holds as a closure: numba keeps machine code
    by their values, and leaves out branches that they exclude. One kernel with a branch for each loss took seven
    tenths of the time that a first fit spends in the compiler.

    Their names hold the constants. Numba finds machine code by a name made of the function's, the types of its
    arguments and a number that counts functions anew in every process: of two kernels of one name that two processes
    have kept on disk, a third would take one for the other.
    """

    @cache
    def made(*constants: Any) -> Kernel:
        function: Any = make(*constants)
        function.__qualname__ = "_".join([function.__qualname__, *map(str, constants)])
        return cast("Kernel", kernel(function))

    return made


def inlined(function: Kernel) -> Kernel:
    """Compile a piece of a kernel into its callers (LLVM would call it, passing arrays by pieces)."""
    return _compiled(function, inline="always")


_elsewhere: list[bool] = []
"""Whether kernels are kept in the temporary folder, once their usual places cannot be written: said once."""


def _compiled(function: Kernel, **options: Any) -> Kernel:
    """Compile, cached on disk; where neither the package's folder nor the home can be written, in a temporary one."""
    options |= {"nogil": True, "no_cfunc_wrapper": True}  # no kernel is called from C: a wrapper takes 10 ms to compile
    if not _elsewhere:
        try:
            return _kept_by_types(numba.njit(cache=True, **options)(function))
        except RuntimeError as error:
            if not _is_nowhere(error):
                raise
            _keep_elsewhere()
    if _elsewhere[0]:
        try:
            return _kept_by_types(numba.njit(cache=True, **options)(function))
        except RuntimeError as error:  # the folder went away, or there is no file of the source, as in a frozen program
            if not _is_nowhere(error):
                raise
    return cast("Kernel", numba.njit(**options)(function))


class _FilesByTypes(IndexDataCacheFile):
    """The files of a kernel on disk, one for the types of its arguments, which its name holds.

    Numba numbers them. Two processes that compile a kernel for different types at the same time may take the same
    number, and later the machine code of one is run on the arguments of the other, as of integers on floats.

    What an earlier version of the package left there names classes by the modules that they were in; numba reads it
    before it looks whether it is of the same source. Where such a class has moved, the kernel is compiled anew.
    """

    def load(self, key: Any) -> Any:
        """The machine code under a key; None where there is none that can be read."""
        try:
            return super().load(key)
        except (ImportError, AttributeError):
            return None

    def _load_index(self) -> dict[Any, str]:
        try:
            return dict(super()._load_index())
        except (ImportError, AttributeError):
            return {}

    def save(self, key: Any, data: Any) -> None:
        """Keep machine code under a key: the types, the processor, and what was compiled."""
        name = self._data_name_pattern.replace("{number:d}", sha256(repr(key).encode()).hexdigest()[:16])
        self._save_index({**self._load_index(), key: name})
        self._save_data(name, data)


def _kept_by_types(compiled: Any) -> Any:
    """A kernel whose machine code is kept in `_FilesByTypes`."""
    files = getattr(getattr(compiled, "_cache", None), "_cache_file", None)  # none with NUMBA_DISABLE_JIT
    if type(files) is IndexDataCacheFile:
        files.__class__ = _FilesByTypes
    return compiled


def _is_nowhere(error: RuntimeError) -> bool:
    return "no locator available" in str(error)


def _keep_elsewhere() -> None:
    """Let numba keep kernels in a temporary folder, here and in the processes that are started from here."""
    folder = own_temporary_folder("tabsym-numba")
    _elsewhere.append(folder is not None)
    unwritable = "Neither the folder of tabsym nor the home can be written: compiled kernels are kept"
    if folder is None:
        warn_user(
            f"{unwritable} nowhere, and every process compiles anew, for a minute or more. "
            "Set NUMBA_CACHE_DIR to a folder that can be written."
        )
        return
    os.environ["NUMBA_CACHE_DIR"] = folder
    vars(numba.config)["CACHE_DIR"] = folder  # what is in the environment is read again when something is compiled
    warn_user(
        f"{unwritable} in the temporary folder {folder}. "
        "Set NUMBA_CACHE_DIR to a folder that can be written and lasts, or each new machine compiles for a minute."
    )


class CompilationNotice(Listener):
    """Says once a process that kernels are being compiled, when that has taken longer than `PATIENCE` seconds."""

    PATIENCE = 3.0

    def __init__(self) -> None:
        self.is_due, self._seconds = True, 0.0
        self._starts: list[float] = []

    def on_start(self, event: Any) -> None:
        """A kernel begins to be compiled, which was not on disk; others can be within it."""
        self._starts.append(time.monotonic())
        if self.is_due and self._seconds > self.PATIENCE and _is_kernel(event):
            self.is_due = False
            warn_user(
                "tabsym is compiling its kernels, once per machine and kind of model: such a fit takes up to a minute "
                "longer, later ones read them from disk."
            )

    def on_end(self, event: Any) -> None:
        """A kernel is compiled."""
        start = self._starts.pop()
        if not self._starts and _is_kernel(event):
            self._seconds += time.monotonic() - start


def _is_kernel(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).partition(".")[0] == "tabsym"


compilation_notice = CompilationNotice()
register("numba:compile", compilation_notice)


def own_temporary_folder(name: str) -> str | None:
    """A folder of this user's in the temporary one, the same for all processes; None where it could be another's.

    What lies in it will be run: whoever could write there, or put another
    folder in its place, could run code as this user.
    """
    user = os.getuid() if hasattr(os, "getuid") else None  # Windows has a temporary folder for each user
    try:
        parent = Path(tempfile.gettempdir()).resolve()
        path = parent / (name if user is None else f"{name}-{user}")
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        above, own = parent.stat(), path.lstat()
    except OSError:
        return None
    if user is not None:
        swappable = above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX
        if swappable or above.st_uid not in (0, user) or own.st_uid != user or own.st_mode & 0o077:
            return None
    return str(path) if stat.S_ISDIR(own.st_mode) and os.access(path, os.W_OK) else None
