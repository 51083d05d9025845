"""Parts of a column as text: intervals of numbers and of dates, groups of symbols."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_MOST_WHOLE = 1e13  # whole numbers in a label are written in full up to here
_MOST_SHOWN = 60  # characters of a group's label


def interval_labels(bounds: Floats, *, missing: bool = False, moments: bool = False) -> list[str]:
    """Right-closed intervals as text, such as ``]21.5; 23.5]`` or ``]2020-01-31; 2020-04-30]``.

    Parameters
    ----------
    bounds : (I - 1,)
        Upper bounds of all intervals but the last; -inf parts missing from the rest.
    missing : bool
        Whether missing values lie in the first interval.
    moments : bool
        Whether the bounds are days since 1970, to be shown as dates.
    """
    if len(bounds) and np.isneginf(bounds[0]):
        return ["Missing", *interval_labels(bounds[1:], moments=moments)]
    ends = _dates(bounds) if moments else _numbers(bounds)
    lows, highs = ["]-inf", *(f"]{end}" for end in ends)], [*(f"{end}]" for end in ends), "+inf["]
    texts = [f"{low}; {high}" for low, high in zip(lows, highs, strict=True)]
    return [f"Missing or {texts[0]}", *texts[1:]] if missing else texts


def group_labels(groups: list[list[Any]]) -> list[str]:
    """Groups of symbols as text, such as ``{a, b}``, long ones cut, and numbered where two are cut to the same."""
    texts = [_group_label(members) for members in groups]
    repeated = {text for text, times in Counter(texts).items() if times > 1}
    return [f"{text} #{i + 1}" if text in repeated else text for i, text in enumerate(texts)]


def _dates(days: Floats) -> list[str]:
    """Days since 1970 as dates, or as dates and times; halves, as lie between whole days, as the day they end."""
    if (days * 2 == np.floor(days * 2)).all():
        return [str(day) for day in np.floor(days).astype("datetime64[D]")]
    seconds = np.floor(days * 86_400).astype("datetime64[s]")
    whole = (seconds == seconds.astype("datetime64[m]")).all()
    texts = [str(moment).replace("T", " ") for moment in seconds.astype("datetime64[m]" if whole else "datetime64[s]")]
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
