"""Threads for work that leaves the GIL: Arrow's hash, kernels; and none for linear algebra of small matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Sequence[Item], n_jobs: int | None) -> list[Result]:
    """The results of `work` on each item, in order, computed in up to `n_jobs` threads."""
    threads = min(effective_n_jobs(n_jobs), len(items))
    if threads < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


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
