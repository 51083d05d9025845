"""What float64 rounds: whole numbers beyond 2**53, and moments between microseconds.

A number is a complex one here, its float64 in the real part and in the imaginary part what rounding left over. Rounding
keeps the order, and numpy orders complex numbers by the real part first: so they sort, compare and are searched for as
the numbers that they stand for.
"""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.table.columns import Column
from tabsym.table.measure import Measure
from tabsym.table.numbers import PER_DAY, moments_of

Floats = NDArray[np.float64]
Numbers = NDArray[np.float64] | NDArray[np.complex128]

FIRST_ROUNDED = 2.0**53
_NANOSECONDS = PER_DAY["ns"]


def exact_values(column: Column, *, always: bool = False) -> Numbers:
    """The values (n,) of a column as float64, NaN for missing; complex, where that tells some less well apart.

    `always`: also moments that float64 tells apart, to be compared with some that it does not.
    """
    values = column.values
    if column.measure.name == "numbers":
        rests = _of_numbers(column, values)
    else:
        rests = _of_moments(column, values, always=always)
    return values if rests is None else with_rests(values, rests)


def with_rests(values: Floats, rests: Floats) -> NDArray[np.complex128]:
    """Numbers (n,) of what float64 makes of them and what that leaves over."""
    out = np.empty(len(values), dtype=np.complex128)
    out.real, out.imag = values, np.where(np.isfinite(values), rests, 0.0)
    return out


def exact_number(value: float, rest: float) -> int | float:
    """The number that both stand for: whole ones of any length."""
    return int(value) + int(rest) if value.is_integer() else value


def nanoseconds_of(day: float, rest: float) -> int:
    """Nanoseconds since 1970 of a moment in days and what these leave over."""
    whole = int(np.floor(day))
    return whole * _NANOSECONDS + round((day - whole) * _NANOSECONDS + rest)


def halfway(below: Numbers, above: Numbers, measure: Measure) -> tuple[Floats, Floats]:
    """Halfway between numbers (n,), and what float64 leaves over of that; of whole ones the whole part.

    `below`: -inf stays, to part missing from the rest.
    """
    found = [_halfway(one, other, measure) for one, other in zip(below.tolist(), above.tolist(), strict=True)]
    values, rests = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return values, rests


def _halfway(below: complex, above: complex, measure: Measure) -> tuple[float, float]:
    if np.isneginf(below.real):
        return below.real, 0.0
    if measure.name != "numbers":
        moment = (nanoseconds_of(below.real, below.imag) + nanoseconds_of(above.real, above.imag)) // 2
        whole, part = divmod(moment, _NANOSECONDS)
        day = whole + part / _NANOSECONDS
        return day, _left_over(day, whole, part)
    one, other = exact_number(below.real, below.imag), exact_number(above.real, above.imag)
    middle = (one + other) // 2 if isinstance(one, int) and isinstance(other, int) else one / 2 + other / 2
    return float(middle), _rest(middle)


def _of_numbers(column: Column, values: Floats) -> Floats | None:
    large = np.flatnonzero(np.abs(values) >= FIRST_ROUNDED)
    if not len(large) or column.series.dtype.is_float():
        return None
    rests = np.zeros(len(values))
    rests[large] = [_rest(number) for number in column.series[large].to_list()]
    return rests if rests.any() else None


def _rest(number: Any) -> float:
    if not isinstance(number, (Integral, Decimal)):  # such as a float among objects
        return 0.0
    whole = int(number)
    return float(whole - int(float(whole)))


def _of_moments(column: Column, values: Floats, *, always: bool) -> Floats | None:
    moments = moments_of(column.stored)
    if moments is None or np.isnan(values).all():
        return None
    unit, _ = np.datetime_data(moments.dtype)
    if unit not in PER_DAY:
        return np.zeros(len(values)) if always else None  # whole days and more, which float64 holds
    parts = moments.view(np.int64)
    if not always:
        step = 1 if unit == "ns" and (parts[~np.isnat(moments)] % 1000).any() else 1000
        if unit in ("s", "ms") or np.spacing(np.nanmax(np.abs(values))) * _NANOSECONDS < step:
            return None
    whole, rest = np.divmod(parts, PER_DAY[unit])  # of NaT, too: `with_rests` leaves it out
    return _left_over(values, whole, rest * (_NANOSECONDS // PER_DAY[unit]))


def _left_over(days: Any, whole: Any, part: Any) -> Any:
    """Nanoseconds that days as float64 leave over of whole days and nanoseconds of the next."""
    day = np.floor(days)
    return (whole - day) * _NANOSECONDS + part - (days - day) * _NANOSECONDS
