"""How kernels are compiled, code that numba has not, and threads: the one place that uses numba, and has its flags.

`cache=True` keeps machine code on disk, so only the first process on a
machine compiles. It holds for plain functions over arrays and numbers, and for
closures over numbers; jitted functions passed as arguments or held in closures
and jitclass miss the cache in every process and are not used here (numba
#2956, #9659). The cache watches the file
of the kernel only: after editing an `inlined` function in another file, or a
kernel that one there calls, delete the ``*.nbi`` files next to the kernel
(``find . -name "*.nb?" -delete``). No fastmath: results must equal the
textbook's sequence of operations. Divisions are NumPy's: by zero gives inf or
nan, without a test before each.

Kernels are compiled without numba's reference counts: counting references to
the arrays that inlined functions hand to each other, atomically, took nine
tenths of the time. Such kernels cannot make arrays; they get the ones they
work in as arguments.

Intrinsics emit code for kernels: arrays and kernels at addresses, rows as
vectors. Whoever hands over an address makes sure that what lies there stays
for as long as it is used.

Threads are for work that leaves the GIL: Arrow's hash, kernels; and none for linear algebra of small matrices.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, reduce
from hashlib import sha256
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from joblib import effective_n_jobs
from llvmlite import ir  # what numba is made with, and installs
from numba import types
from numba.core.caching import IndexDataCacheFile
from numba.core.event import Listener, register
from numba.extending import intrinsic
from numba.np import arrayobj
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from tabsym.messages import warn_user

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
        above, folder = parent.stat(), path.lstat()
    except OSError:
        return None
    if user is not None:
        swappable = above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX
        if swappable or above.st_uid not in (0, user) or folder.st_uid != user or folder.st_mode & 0o077:
            return None
    return str(path) if stat.S_ISDIR(folder.st_mode) and os.access(path, os.W_OK) else None


# -- intrinsics ---------------------------------------------------------------------------------


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
        for vector in loaded:
            vector.align = 8
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
        for vector in vectors:
            length = _length(vector)
            by_length[length] = self.builder.fadd(by_length[length], vector) if length in by_length else vector
        numbers = [
            self.builder.extract_element(vector, _whole(at)) if length > 1 else vector
            for length, vector in by_length.items()
            for at in range(length)
        ]
        return reduce(self.builder.fadd, numbers)

    def _repeated(self, number: Any, kind: Any) -> Any:
        """A number in all places of a vector."""
        if not isinstance(kind, ir.VectorType):
            return number
        vector = self.builder.insert_element(ir.Constant(kind, ir.Undefined), number, _whole(0))
        return self.builder.shuffle_vector(
            vector, vector, ir.Constant(ir.VectorType(_INT, kind.count), [0] * kind.count)
        )


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
    if not all(array.layout == "C" and array.dtype == types.float64 for array in (values, factors, sums)):
        return None
    n_columns = width.literal_value

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        values_row = _Row(context, builder, kinds[1], arguments[1], arguments[2], n_columns)
        by = _Row(context, builder, kinds[3], arguments[3], arguments[4], n_columns)
        to = _Row(context, builder, kinds[6], arguments[6], arguments[7], n_columns)
        moved = [builder.fmul(value, factor) for value, factor in zip(values_row.load(), by.load(), strict=True)]
        scaled = values_row.times(moved, builder.fdiv(ir.Constant(ir.DoubleType(), 1.0), values_row.total(moved)))
        values_row.store(scaled)
        more = values_row.times(scaled, arguments[5])
        to.store([builder.fadd(value, addend) for value, addend in zip(to.load(), more, strict=True)])
        return context.get_dummy_value()

    index = types.uintp
    return types.void(width, values, index, factors, index, types.float64, sums, index), build


# -- threads for work that leaves the GIL ----------------------------------------------------------

Item = TypeVar("Item")
Result = TypeVar("Result")


def number_of_threads(n_jobs: int | None) -> int:
    """What `n_jobs` asks for, as joblib counts: -1 is all cores, -2 all but one."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} is not possible; use None, a number of threads, or -1 for all cores.")
    return int(effective_n_jobs(n_jobs))


def in_threads(work: Callable[[Item], Result], items: Sequence[Item], n_jobs: int | None) -> list[Result]:
    """The results of `work` on each item, in order, computed in up to `n_jobs` threads."""
    threads = min(number_of_threads(n_jobs), len(items))
    if threads < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


MANY_ROWS = 1_000_000
"""The number of rows from which sums over them are made by parts. With fewer, threads save less than they cost."""

PARTS = 8
"""The number of parts, whatever the number of threads: their sums have the same bits then."""

_THREADS: ContextVar[ThreadPoolExecutor | None] = ContextVar("threads for parts of rows", default=None)


@contextmanager
def threads_for_rows(n_jobs: int | None) -> Iterator[None]:
    """Up to `n_jobs` threads, in which `by_parts` works meanwhile."""
    threads = min(number_of_threads(n_jobs), PARTS)
    if threads < 2:
        yield
        return
    with ThreadPoolExecutor(threads) as pool:
        token = _THREADS.set(pool)
        try:
            yield
        finally:
            _THREADS.reset(token)


def parts_of(n_rows: int) -> list[slice]:
    """The parts that rows are divided into; of fewer than `MANY_ROWS` the whole."""
    if n_rows < MANY_ROWS:
        return [slice(0, n_rows)]
    ends = [n_rows * part // PARTS for part in range(PARTS + 1)]
    return [slice(start, end) for start, end in pairwise(ends)]


def by_parts(work: Callable[[int, slice], Result], n_rows: int) -> list[Result]:
    """The results of `work`, given the number and the rows of a part, for each of `parts_of`, in their order."""
    parts, pool = parts_of(n_rows), _THREADS.get()
    if pool is None or len(parts) == 1:
        return [work(number, rows) for number, rows in enumerate(parts)]
    running = [pool.submit(work, number, rows) for number, rows in enumerate(parts)]
    try:
        return [future.result() for future in running]
    except BaseException:  # such as Ctrl-C: none may write to arrays that are in use again
        wait(running)
        raise


def by_rows(work: Callable[[NDArray[Any]], NDArray[Any]], rows: NDArray[Any]) -> NDArray[Any]:
    """What `work` makes of rows (n,), a number for each, made by parts."""
    if len(parts_of(len(rows))) == 1:
        return work(rows)
    result = np.empty(len(rows), dtype=work(rows[:0]).dtype)

    def fill_part(number: int, part: slice) -> None:
        result[part] = work(rows[part])

    by_parts(fill_part, len(rows))
    return result


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Linear algebra in one thread, as matrices of some hundred rows are slower in several.

    Where the machine is busy these wait for each other: a fit of half a second took twelve.
    """
    with _blas().limit(limits=1):
        yield


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of the process, which are looked for once: that takes some milliseconds."""
    import scipy.linalg  # noqa: F401  as it brings one of its own

    return ThreadpoolController().select(user_api="blas")
