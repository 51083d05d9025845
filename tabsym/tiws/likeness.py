"""Similarity of categories, as covariance: kernels over documents, and over names where those are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.tiws.names import Names
from tabsym.tiws.profiles import Profiles

Floats = NDArray[np.float64]

LENGTHS = (0.1, 0.3, 1.0, 3.0)
"""Of exponential kernels, in units of the median squared distance of seen documents."""
ROUNDING = 1e-12
"""Squared distances below are none."""


@dataclass(frozen=True)
class Likeness:
    """A kernel: "linear", or exponential with a `length`; divided by `unit`. `names`: the share of names' likeness."""

    length: float | None
    unit: float
    names: float = 0.0

    def __str__(self) -> str:
        kind = "linear" if self.length is None else f"exponential, length {self.length:g}"
        return kind if not self.names else f"{kind}, names {self.names:g}"


@dataclass(frozen=True)
class Described:
    """Categories by what is known of them: profiles, and names where they are asked for."""

    profiles: Profiles
    names: Names | None = None

    def __len__(self) -> int:
        return len(self.profiles)

    def take(self, rows: NDArray[np.integer] | slice) -> Described:
        """Some of them."""
        return Described(self.profiles.take(rows), None if self.names is None else self.names.take(rows))


@dataclass(frozen=True)
class Geometry:
    """Products and squared distances of documents (m, l), squares (m,) of the first ones, and likeness of names."""

    products: Floats
    distances: Floats
    squares: Floats
    names: Floats | None = None

    @classmethod
    def between(cls, some: Described, others: Described) -> Geometry:
        products = some.profiles.products(others.profiles)
        distances = some.profiles.distances(others.profiles, products)
        names = None if some.names is None or others.names is None else some.names.cosines(others.names)
        return cls(products, distances, some.profiles.squares, names)

    def covariance(self, kernel: Likeness) -> Floats:
        """The kernel (m, l)."""
        if kernel.length is None:
            documents = self.products / kernel.unit
        else:
            documents = np.exp(-self.distances / (2 * kernel.length * kernel.unit))
        if not kernel.names:
            return documents
        assert self.names is not None
        return np.asarray((1 - kernel.names) * documents + kernel.names * self.names)

    def variance(self, kernel: Likeness) -> Floats:
        """The kernel of each of the first with itself (m,)."""
        documents = self.squares / kernel.unit if kernel.length is None else np.ones(len(self.squares))
        return (1 - kernel.names) * documents + kernel.names

    def candidates(self) -> Iterator[Likeness]:
        """The kernels to choose from, of documents with each other; none where documents do not differ."""
        l = len(self.squares)  # noqa: E741 (the formulas' letter)
        spread, middle = float(self.squares.mean()), median_distance(self.distances)
        found = [Likeness(None, spread)] if spread > ROUNDING else []
        found += [Likeness(length, middle) for length in LENGTHS] if middle > 0 else []
        yield from found
        if self.names is not None and l > 1:
            yield from (Likeness(one.length, one.unit, names=0.5) for one in found)
            yield Likeness(1.0, middle if middle > 0 else 1.0, names=1.0)


def median_distance(distances: Floats) -> float:
    """The median of the squared distances (l, l) of different categories; 0 where it is rounding or there are none."""
    l = len(distances)  # noqa: E741
    middle = float(np.median(distances[np.triu_indices(l, 1)])) if l > 1 else 0.0
    return middle if middle > ROUNDING else 0.0
