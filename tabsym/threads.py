"""Threads for work that leaves the GIL: Arrow's hash, kernels; and none for linear algebra of small matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

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
        return [work(number, own) for number, own in enumerate(parts)]
    running = [pool.submit(work, number, own) for number, own in enumerate(parts)]
    try:
        return [one.result() for one in running]
    except BaseException:  # such as Ctrl-C: none may write to arrays that are in use again
        wait(running)
        raise


def by_rows(work: Callable[[NDArray[Any]], NDArray[Any]], rows: NDArray[Any]) -> NDArray[Any]:
    """What `work` makes of rows (n,), a number for each, made by parts."""
    if len(parts_of(len(rows))) == 1:
        return work(rows)
    found = np.empty(len(rows), dtype=work(rows[:0]).dtype)

    def fill_part(number: int, own: slice) -> None:
        found[own] = work(rows[own])

    by_parts(fill_part, len(rows))
    return found


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
