"""A coded table as the kernels read it: code columns side by side, numeric factors in the units asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import gather
from tabsym.wide.layout import Codes, Layout, Numbers, Read
from tabsym.wide.program import Compiled, Rows
from tabsym.wide.units import Units

Floats = NDArray[np.float64]
Order = NDArray[np.signedinteger[Any]] | None

_EMPTY = np.empty(0)


def lay_rows(
    layout: Layout,
    compiled: Compiled,
    units: Units,
    codes: Mapping[Read, Codes] | None,
    numbers: Numbers,
    n_rows: int,
    order: Order = None,
    n_jobs: int | None = None,
) -> Rows:
    """Codes (none where they are None) and numbers of `n_rows` rows, laid down in `order`; the rest is left empty."""
    reads = [] if codes is None else [layout.reads[place] for place in compiled.reads]
    matrix = gather(
        [] if codes is None else [codes[read] for read in reads],
        starts=[layout.offsets[read.block] for read in reads],
        strides=[layout.blocks[read.block].rank for read in reads],
        n_rows=n_rows,
        order=order,
        n_jobs=n_jobs,
    )
    return Rows(matrix, lay_numbers(layout, compiled, units, numbers, n_rows, order), _EMPTY, _EMPTY, _EMPTY)


def lay_numbers(
    layout: Layout, compiled: Compiled, units: Units, numbers: Numbers, n_rows: int, order: Order = None
) -> Floats:
    """The numeric factors (n_rows, d) in the order of a program."""
    x = np.empty((n_rows, len(compiled.numerics)))
    for j, place in enumerate(compiled.numerics):
        values = layout.numerics[place].values(numbers)
        if layout.numerics[place].missing_ok:
            missing = np.isnan(values)
            if missing.any():
                values = np.where(missing, units.fills[place], values)
        if units.scales[place]:
            values = (values - units.means[place]) / units.spreads[place]
        x[:, j] = values if order is None or not values.ndim else values[order]
    return x


def fixed_score(layout: Layout, numbers: Numbers, n_rows: int) -> Floats:
    """The terms that learn nothing (n_rows,), in the user's units; empty where there are none."""
    total = _EMPTY
    for term in layout.fixed:
        value = np.full(n_rows, term.constant)
        if term.numeric is not None:
            value = value * layout.numerics[term.numeric].values(numbers)
        total = value if not len(total) else total + value
    return total
