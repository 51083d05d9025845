"""Where the codes of a block come from: alphabets, flags, intervals, and crosses of such sources."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import Alphabet, Cross

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Symbols:
    """The alphabet of a column, or of several whose symbols are the same things (home and away)."""

    columns: tuple[str, ...]
    alphabet: Alphabet

    def __len__(self) -> int:
        return len(self.alphabet)


@dataclass(frozen=True)
class Flag:
    """One entry, there where a numeric column is missing."""

    column: str

    def __len__(self) -> int:
        return 1


@dataclass(frozen=True)
class Bins:
    """Right-closed intervals of a numeric column, the first for missing values where training had any.

    Attributes
    ----------
    bounds : (I - 1,)
        Upper bounds of all intervals of numbers but the last, ascending.
    labels : (I,) or (I + 1,)
        The intervals as text, "Missing" first where `missing`.
    """

    column: str
    bounds: Floats
    labels: tuple[str, ...]
    missing: bool

    def __len__(self) -> int:
        return len(self.labels)

    def codes(self, values: Floats) -> NDArray[np.int32]:
        """The interval of each value; a missing one that training had not is UNSEEN."""
        own = 1 if self.missing else 0
        place = np.searchsorted(self.bounds, values, side="left") + own
        return np.where(np.isnan(values), own - 1, place).astype(np.int32)


@dataclass(frozen=True)
class Crossing:
    """Observed combinations: of the source at `left` with the symbols at `right`."""

    left: int
    right: int
    cross: Cross

    def __len__(self) -> int:
        return len(self.cross)


Source = Symbols | Flag | Bins | Crossing
