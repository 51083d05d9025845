"""Threads for work that leaves the GIL: Arrow's hash, kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from joblib import effective_n_jobs

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Sequence[Item], n_jobs: int | None) -> list[Result]:
    """The results of `work` on each item, in order, computed in up to `n_jobs` threads."""
    threads = min(effective_n_jobs(n_jobs), len(items))
    if threads < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))
