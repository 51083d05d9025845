"""Counts of two encoders, or of pieces, put together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders.tiws.rows import TIWSColumn
from tabsym.tiws.counts import TableCounts
from tabsym.tiws.unseen import Observed


def check_mergeable(one: Any, other: Any) -> None:
    """A `ValueError` where the counts of two fitted encoders cannot be added."""
    if one._names_in != other._names_in or list(one.columns_) != list(other.columns_):
        raise ValueError("merge needs encoders of the same columns, in the same order.")
    if _labels(one._classes) != _labels(other._classes):
        raise ValueError(
            f"merge needs encoders of the same target; these have {_told(one._classes)} and {_told(other._classes)}."
        )
    for a, b in zip(one.counts_.words, other.counts_.words, strict=True):
        if type(a) is not type(b) or not np.array_equal(getattr(a, "edges", ()), getattr(b, "edges", ())):
            raise ValueError(
                f"Column {a.name!r} was cut into other intervals in the two encoders; give both the same edges: "
                "numeric={'column': [...]}."
            )


def carried_over(
    observed: dict[str, Observed], before: TableCounts, now: TableCounts, columns: dict[str, TIWSColumn]
) -> dict[str, Observed]:
    """What was observed by the words of `before`, by those of `now`, without categories that are seen by now."""
    places = before.places_among(now.words)
    of_words = np.concatenate([now.offsets[j] + place for j, place in enumerate(places)])
    out = {}
    for name, one in observed.items():
        known = set(columns[name].fitted.symbols)
        keep = np.array([symbol not in known for symbol in one.symbols], dtype=bool)
        out[name] = one.placed(of_words, int(now.offsets[-1]), keep)
    return out


def _labels(classes: NDArray[Any] | None) -> list[Any] | None:
    return None if classes is None else classes.tolist()


def _told(classes: NDArray[Any] | None) -> str:
    return "numbers" if classes is None else f"the classes {classes.tolist()}"
