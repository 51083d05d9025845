"""ln k! inside kernels: from a table for whole counts, else by ln Gamma."""

from __future__ import annotations

import math

from tabsym.jit import inlined


@inlined
def ln_factorial(count, table):
    """`table` is ln k! for whole counts, empty where ln Gamma must be computed."""
    if len(table):
        return table[int(count)]
    return math.lgamma(count + 1.0)
