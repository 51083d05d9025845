"""How kernels are compiled: the one place for numba's flags.

`cache=True` keeps machine code on disk, so only the first process on a
machine compiles. It holds for plain functions over arrays and numbers; jitted
functions passed as arguments, closures and jitclass miss the cache in every
process and are not used here (numba #2956, #9659). The cache watches the file
of the kernel only: after editing an `inlined` function in another file, delete the ``*.nbi``
files beside the kernel (``find . -name "*.nb?" -delete``). No fastmath: results
must equal the textbook's sequence of operations. Divisions are NumPy's: by zero
gives inf or nan, without a test before each.

Kernels are compiled without numba's reference counts: counting references to
the arrays that inlined functions hand to each other, atomically, took nine
tenths of the time. Such kernels cannot make arrays; they get the ones they
work in as arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

unsigned: Any = np.uintp
"""For indices read from arrays: numba tests signed ones for being negative, a third of the time of a tight loop."""


def kernel(function: Kernel) -> Kernel:
    """Compile a kernel that makes no arrays: nopython, cached on disk, without the GIL or reference counts."""
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False, "error_model": "numpy"}
    return cast("Kernel", numba.njit(**options)(function))


def allocating_kernel(function: Kernel) -> Kernel:
    """Compile a kernel that makes arrays: as `kernel`, with reference counts."""
    return cast("Kernel", numba.njit(cache=True, nogil=True)(function))


def inlined(function: Kernel) -> Kernel:
    """Compile a piece of a kernel into its callers (LLVM would call it, passing arrays by pieces)."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, inline="always")(function))
