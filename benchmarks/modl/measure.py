"""Wall and CPU seconds of a call, child processes included (Khiops runs in its own)."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any


def cpu_seconds() -> float:
    """CPU time so far of this process and of the children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result of the call, its wall seconds and its CPU seconds."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    out = call()
    return out, time.perf_counter() - wall, cpu_seconds() - cpu
