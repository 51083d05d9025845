"""How kernels are compiled: the one place for numba's flags.

`cache=True` keeps machine code on disk, so only the first process on a
machine compiles. It holds for plain functions over arrays and numbers; jitted
functions passed as arguments, closures and jitclass miss the cache in every
process and are not used here (numba #2956, #9659). The cache watches the file
of the kernel only: after editing an `inlined` function in another file, or a
kernel that one there calls (`wide/newton/kernels_sweep.py` does), delete the
``*.nbi`` files beside the kernel (``find . -name "*.nb?" -delete``). No
fastmath: results must equal the textbook's sequence of operations. Divisions
are NumPy's: by zero gives inf or nan, without a test before each.

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
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

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


def inlined(function: Kernel) -> Kernel:
    """Compile a piece of a kernel into its callers (LLVM would call it, passing arrays by pieces)."""
    return _compiled(function, inline="always")


_uncached: list[str] = []
"""The first function that could not be cached: the user is warned once."""


def _compiled(function: Kernel, **options: Any) -> Kernel:
    """Compile, cached on disk; where neither the package's folder nor the home can be written, without a cache."""
    if not _uncached:
        try:
            return cast("Kernel", numba.njit(cache=True, nogil=True, **options)(function))
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            _uncached.append(function.__name__)
            warn_user(
                "Compiled kernels cannot be kept, as neither the folder of tabsym nor the home can be written; every "
                "process compiles anew. Set NUMBA_CACHE_DIR to a folder that can be written."
            )
    return cast("Kernel", numba.njit(nogil=True, **options)(function))


def _in_kernels(function: Callable[..., Any]) -> Any:
    """A function for kernels only, which emits code: its first argument is none of the call's."""
    return intrinsic(function)


@_in_kernels
def matrix_at(typing_context: Any, address: Any, rows: Any, columns: Any, like: Any) -> Any:
    """In a kernel: the array (rows, columns) at an address, its numbers of the type of those in `like`.

    For many small arrays in one call, where each as an argument of its own
    would cost more than a loop over it. Whoever hands over the address makes
    sure that such an array lies there, without gaps, for as long as it is used.
    """
    kind = types.Array(like.dtype, 2, "C")

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(like.dtype)))
        array = arrayobj.make_array(kind)(context, builder)
        data = builder.inttoptr(arguments[0], array.data.type)
        shape = [arguments[1], arguments[2]]
        strides = [builder.mul(arguments[2], width), width]
        arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=width, meminfo=None)
        return array._getvalue()

    return kind(types.intp, types.intp, types.intp, like), build
