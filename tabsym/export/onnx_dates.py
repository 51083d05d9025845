"""Parts of dates in an ONNX graph, from days since 1970-01-01 as doubles.

ONNX has no dates, so the calendar is computed: years begin in March, so that the leap day is their last one, and all
eras of 400 years have the same days (H. Hinnant, "chrono-compatible low-level date algorithms").
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from tabsym.export.onnx_graph import Graph

_DAY, _HOUR, _MINUTE = 86_400e6, 3_600e6, 60e6
"""In microseconds, to which times of day are rounded: a fraction of a day is no exact number."""
_TO_ERA, _ERA = 719_468.0, 146_097.0
"""Days from 0000-03-01 to 1970-01-01, and of 400 years."""


def whole_days(value: Any) -> int | None:
    """A date, or a moment at midnight without a time zone, as days since 1970; None for other values."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None or value.time() != dt.time() or getattr(value, "nanosecond", False):
            return None
        value = value.date()
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else None


def part_of_date(graph: Graph, days: str, part: str) -> str:
    """A part as a number (n, 1), NaN where the day is: month, ISO week, weekday (1 is Monday), hour or minute."""
    own = _Calendar(graph)
    micro = graph.add("Round", own.times(days, _DAY))
    day = own.floor(micro, _DAY)
    time = own.minus(micro, own.times(day, _DAY))
    hour = own.floor(time, _HOUR)
    if part == "hour":
        return hour
    if part == "minute":
        return own.floor(own.minus(time, own.times(hour, _HOUR)), _MINUTE)
    from_monday = own.modulo(own.plus(day, 3.0), 7.0)  # 1970 began on a Thursday
    if part == "weekday":
        return own.plus(from_monday, 1.0)
    if part == "month":
        return own.month(own.in_era(day)[1])
    return own.week(own.plus(own.minus(day, from_monday), 3.0))


class _Calendar:
    """Arithmetic of doubles, and dates by it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def plus(self, one: str, other: str | float) -> str:
        return self.graph.add("Add", one, self._tensor(other))

    def minus(self, one: str, other: str | float) -> str:
        return self.graph.add("Sub", one, self._tensor(other))

    def times(self, one: str, number: float) -> str:
        return self.graph.add("Mul", one, self._tensor(number))

    def floor(self, one: str, by: float) -> str:
        return self.graph.add("Floor", self.graph.add("Div", one, self._tensor(by)))

    def modulo(self, one: str, by: float) -> str:
        return self.minus(one, self.times(self.floor(one, by), by))

    def _tensor(self, value: str | float) -> str:
        return value if isinstance(value, str) else self.graph.constant(value)

    def in_era(self, day: str) -> tuple[str, str]:
        """The year of its era, from 0 on, and the day of the year; years begin in March."""
        of_era = self.modulo(self.plus(day, _TO_ERA), _ERA)
        whole = self.minus(of_era, self.floor(of_era, 1460.0))
        whole = self.minus(self.plus(whole, self.floor(of_era, 36_524.0)), self.floor(of_era, 146_096.0))
        year = self.floor(whole, 365.0)
        before = self.minus(self.plus(self.times(year, 365.0), self.floor(year, 4.0)), self.floor(year, 100.0))
        return year, self.minus(of_era, before)

    def month(self, of_year: str) -> str:
        from_march = self.floor(self.plus(self.times(of_year, 5.0), 2.0), 153.0)
        return self.plus(self.modulo(self.plus(from_march, 2.0), 12.0), 1.0)

    def week(self, thursday: str) -> str:
        """The week of the year, which is that of its Thursday."""
        year, of_year = self.in_era(thursday)
        is_leap = self.minus(
            self._divides(year, 4.0), self.minus(self._divides(year, 100.0), self._divides(year, 400.0))
        )
        late = self.graph.add("GreaterOrEqual", of_year, self._tensor(306.0))  # January and February
        from_january = self.plus(self.plus(of_year, 59.0), is_leap)
        own = self.graph.add("Where", late, self.minus(of_year, 306.0), from_january)
        return self.plus(self.floor(own, 7.0), 1.0)

    def _divides(self, year: str, by: float) -> str:
        """1 where the year is a multiple, else 0."""
        rest = self.modulo(year, by)
        return self.minus(self._tensor(1.0), self.graph.add("Min", rest, self._tensor(1.0)))
