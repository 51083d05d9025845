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
