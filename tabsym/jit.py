"""How kernels are compiled: the one place for numba's flags.

`cache=True` keeps machine code on disk, so only the first process on a
machine compiles. It holds for plain functions over arrays and numbers; jitted
functions passed as arguments, closures and jitclass miss the cache in every
process and are not used here (numba #2956, #9659). No fastmath: results must
equal the textbook's sequence of operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile a kernel: nopython, cached on disk, without the GIL."""
    return cast("Kernel", numba.njit(cache=True, nogil=True)(function))


def part(function: Kernel) -> Kernel:
    """Compile a piece of a kernel into its callers (LLVM would call it, passing arrays by pieces)."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, inline="always")(function))
