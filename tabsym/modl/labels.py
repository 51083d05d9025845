"""Parts of a column as text: intervals of numbers and of dates, groups of categories."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table import NUMBERS, Measure, exact_number, nanoseconds_of

Floats = NDArray[np.float64]
_SECONDS_PER_DAY = 86_400
_MOST_WHOLE = 1e13  # whole numbers in a label are written in full up to here
_MOST_NANOSECONDS = 2**63
_MOST_SHOWN = 60  # characters of a group's label


def interval_labels(
    bounds: Floats, *, missing: bool = False, measure: Measure = NUMBERS, rests: Floats | None = None
) -> list[str]:
    """Right-closed intervals as text, such as ``]21.5; 23.5]`` or ``]2020-01-31; 2020-04-30]``.

    Parameters
    ----------
    bounds : (I - 1,)
        Upper bounds of all intervals but the last; -inf parts missing from the rest.
    missing : bool
        Whether missing values lie in the first interval.
    measure : Measure
        What the bounds stand for. Dates, which are days since 1970 in UTC, are written in their own time zone,
        with the offset where two are the same without it (when clocks are set back).
    rests : (I - 1,) or None
        What the bounds leave over of numbers that float64 rounds: these are written in full.
    """
    if len(bounds) and np.isneginf(bounds[0]):
        return ["Missing", *interval_labels(bounds[1:], measure=measure, rests=None if rests is None else rests[1:])]
    if rests is not None and len(bounds):
        ends = [_exact(bound, rest, measure) for bound, rest in zip(bounds.tolist(), rests.tolist(), strict=True)]
    else:
        ends = _dates(bounds, measure.zone) if measure.name == "dates" else _numbers(bounds)
    lows, highs = ["]-inf", *(f"]{end}" for end in ends)], [*(f"{end}]" for end in ends), "+inf["]
    texts = [f"{low}; {high}" for low, high in zip(lows, highs, strict=True)]
    return [f"Missing or {texts[0]}", *texts[1:]] if missing else texts


def group_labels(groups: list[list[Any]]) -> list[str]:
    """Groups of categories as text, such as ``{a, b}``, long ones cut, and numbered where two are cut to the same."""
    texts = [_group_label(members) for members in groups]
    repeated = {text for text, times in Counter(texts).items() if times > 1}
    return [f"{text} #{i + 1}" if text in repeated else text for i, text in enumerate(texts)]


def _exact(bound: float, rest: float, measure: Measure) -> str:
    """A bound in full: whole numbers of any length, moments to the nanosecond, durations as such."""
    if measure.name == "numbers":
        return str(exact_number(bound, rest))
    moment = nanoseconds_of(bound, rest)
    stored = np.int64(moment if abs(moment) < _MOST_NANOSECONDS else moment // 1000)
    unit = "ns" if abs(moment) < _MOST_NANOSECONDS else "us"
    if measure.name == "durations":
        return str(pd.Timedelta(stored.view(f"m8[{unit}]")))
    utc = pd.Timestamp(stored.view(f"M8[{unit}]"))
    return str(utc if measure.zone is None else utc.tz_localize("UTC").tz_convert(measure.zone))


def _dates(days: Floats, zone: str | None) -> list[str]:
    """Days since 1970 as dates, or as dates and times; halves, as lie between whole days, as the day they end."""
    utc = pd.to_datetime(np.floor(np.round(days * _SECONDS_PER_DAY, 3)).astype("datetime64[s]"), utc=True)
    moments = utc.tz_convert(zone or "UTC")
    seconds = moments.tz_localize(None).to_numpy().astype("datetime64[s]")
    exact = np.round(days * _SECONDS_PER_DAY, 3)
    if (exact == np.floor(exact)).all() and (seconds.astype(np.int64) % (_SECONDS_PER_DAY // 2) == 0).all():
        return [str(day) for day in seconds.astype("datetime64[D]")]
    whole = (seconds == seconds.astype("datetime64[m]")).all()
    texts = [str(moment).replace("T", " ") for moment in seconds.astype("datetime64[m]" if whole else "datetime64[s]")]
    if zone is not None and len(set(texts)) < len(texts):
        texts = [str(moment) for moment in moments]
    return texts if len(set(texts)) == len(texts) else _numbers(days)


def _numbers(values: Floats) -> list[str]:
    """As few digits as tell all of them apart; halves of whole numbers, as lie between whole ones, in full."""
    exact = (values * 2 == np.floor(values * 2)) & (np.abs(values) < _MOST_WHOLE)
    for digits in (6, 9, 12):
        texts = [f"{value:.{15 if full else digits}g}" for value, full in zip(values, exact, strict=True)]
        if len(set(texts)) == len(texts):
            return texts
    return [repr(float(value)) for value in values]


def _group_label(members: list[Any]) -> str:
    names = ["Missing" if member is None else str(member) for member in members]
    text = names[0]
    for name in names[1:]:
        if len(text) + len(name) + 2 > _MOST_SHOWN:
            return f"{{{text}, ... ({len(names)})}}"
        text += f", {name}"
    return f"{{{text}}}"
