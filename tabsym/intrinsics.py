"""Functions for kernels that emit code, which numba has none of: arrays and kernels at addresses, rows as vectors.

Whoever hands over an address makes sure that what lies there stays for as long as it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # what numba is made with, and installs
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj


def _in_kernels(function: Callable[..., Any]) -> Any:
    """A function for kernels only, which emits code: its first argument is none of the call's."""
    return intrinsic(function)


def _with_constants(function: Callable[..., Any]) -> Any:
    """As `_in_kernels`, for arguments whose values are known when the kernel is compiled."""
    return intrinsic(prefer_literal=True)(function)


@_in_kernels
def vector_at(typing_context: Any, address: Any, length: Any, like: Any) -> Any:
    """In a kernel: the array (length,) at an address, see `matrix_at`."""
    return _array_at(like, 1)


@_in_kernels
def matrix_at(typing_context: Any, address: Any, rows: Any, columns: Any, like: Any) -> Any:
    """In a kernel: the array (rows, columns) at an address, its numbers of the type of those in `like`.

    For many small arrays in one call, where each as an argument of its own
    would cost more than a loop over it. Whoever hands over the address makes
    sure that such an array lies there, without gaps, for as long as it is used.
    """
    return _array_at(like, 2)


def _array_at(like: Any, n_axes: int) -> Any:
    kind = types.Array(like.dtype, n_axes, "C")

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(like.dtype)))
        array = arrayobj.make_array(kind)(context, builder)
        data, shape = builder.inttoptr(arguments[0], array.data.type), arguments[1:-1]
        strides = [builder.mul(length, width) for length in shape[1:]] + [width]
        arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=width, meminfo=None)
        return array._getvalue()

    return kind(*[types.intp] * (1 + n_axes), like), build


@_in_kernels
def call_at(typing_context: Any, address: Any, arguments: Any, result: Any) -> Any:
    """In a kernel: call the kernel at an address (`address_of_kernel`) with a tuple; it returns the type of `result`.

    The caller is compiled once for all kernels that it may be given. They must take the types of the arguments.
    """

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        values = [builder.extract_value(given[1], index) for index in range(len(arguments))]
        function = context.call_conv.get_function_type(result, arguments.types)
        callee = builder.inttoptr(given[0], function.as_pointer())
        return context.call_conv.call_function(builder, callee, result, arguments.types, values)[1]

    return result(types.intp, arguments, result), build


def address_of(array: np.ndarray[Any, Any]) -> int:
    """The address of the first number, for `vector_at`; the caller keeps the array alive."""
    return int(array.__array_interface__["data"][0])


def address_of_kernel(compiled: Any, examples: tuple[Any, ...]) -> int:
    """The address of the machine code of a kernel for arguments of the types of these examples, for `call_at`."""
    kinds = tuple(numba.typeof(example) for example in examples)
    compiled.compile(kinds)
    result = compiled.overloads[kinds]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


LANES = 4
"""Numbers that one instruction takes, of a row with a few columns: LLVM finds no vectors in loops as short as these."""


class _Row:
    """A row of a matrix of doubles as vectors of `LANES`, 2 and 1 numbers, in code that `move_and_sum_row` emits."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any, index: Any, width: int) -> None:
        first = builder.mul(index, ir.Constant(index.type, width))
        start = builder.gep(arrayobj.make_array(kind)(context, builder, array).data, [first])
        self.builder, self.positions, at = builder, [], 0
        while at < width:
            length = min(LANES, 1 << ((width - at).bit_length() - 1))
            vector = ir.VectorType(ir.DoubleType(), length) if length > 1 else ir.DoubleType()
            position = builder.gep(start, [ir.Constant(index.type, at)])
            self.positions.append(builder.bitcast(position, vector.as_pointer()))
            at += length

    def load(self) -> list[Any]:
        """The vectors of the row."""
        loaded = [self.builder.load(position) for position in self.positions]
        for one in loaded:
            one.align = 8
        return loaded

    def store(self, vectors: list[Any]) -> None:
        """Overwrite the row."""
        for vector, position in zip(vectors, self.positions, strict=True):
            self.builder.store(vector, position).align = 8

    def times(self, vectors: list[Any], factor: Any) -> list[Any]:
        """The vectors times a number."""
        return [self.builder.fmul(vector, self._repeated(factor, vector.type)) for vector in vectors]

    def total(self, vectors: list[Any]) -> Any:
        """The sum of all numbers."""
        by_length: dict[int, Any] = {}
        for one in vectors:
            length = _length(one)
            by_length[length] = self.builder.fadd(by_length[length], one) if length in by_length else one
        numbers = [
            self.builder.extract_element(one, _whole(at)) if length > 1 else one
            for length, one in by_length.items()
            for at in range(length)
        ]
        return reduce(self.builder.fadd, numbers)

    def _repeated(self, number: Any, kind: Any) -> Any:
        """A number in all places of a vector."""
        if not isinstance(kind, ir.VectorType):
            return number
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), number, _whole(0))
        return self.builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INT, kind.count), [0] * kind.count))


_INT = ir.IntType(32)


def _whole(number: int) -> Any:
    return ir.Constant(_INT, number)


def _length(vector: Any) -> int:
    return vector.type.count if isinstance(vector.type, ir.VectorType) else 1


@_with_constants
def move_and_sum_row(
    typing_context: Any, width: Any, values: Any, row: Any, factors: Any, before: Any, share: Any, sums: Any, at: Any
) -> Any:
    """In a kernel: multiply a row of `values` by a row of `factors`, divide it by its sum, and add it times `share`.

    The row `at` of `sums` is what it is added to. All three are matrices of doubles without gaps, with `width` columns,
    a number that is known when the kernel is compiled; numba refuses others.
    """
    if not all(one.layout == "C" and one.dtype == types.float64 for one in (values, factors, sums)):
        return None
    n_columns = width.literal_value

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        own = _Row(context, builder, kinds[1], arguments[1], arguments[2], n_columns)
        by = _Row(context, builder, kinds[3], arguments[3], arguments[4], n_columns)
        to = _Row(context, builder, kinds[6], arguments[6], arguments[7], n_columns)
        moved = [builder.fmul(one, other) for one, other in zip(own.load(), by.load(), strict=True)]
        scaled = own.times(moved, builder.fdiv(ir.Constant(ir.DoubleType(), 1.0), own.total(moved)))
        own.store(scaled)
        more = own.times(scaled, arguments[5])
        to.store([builder.fadd(one, other) for one, other in zip(to.load(), more, strict=True)])
        return context.get_dummy_value()

    index = types.uintp
    return types.void(width, values, index, factors, index, types.float64, sums, index), build
