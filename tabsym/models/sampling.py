"""A sample of a large table's rows, drawn once by their content, for the steps that hold out some rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import RawCodes
from tabsym.design.content import Dealt, bits_of, content_of
from tabsym.frame import Kind
from tabsym.models.data import Training

MOST_ROWS = 200_000
"""Interactions and variances of infrequent categories are judged on random samples of this size of larger tables."""


class Sampler:
    """The sample of a training table of more than `MOST_ROWS` rows.

    Rows are not sorted, and numbers count by their bits: sorting all rows would take longer than a step on the sample.

    Parameters
    ----------
    training : Training
        With weighted rows.
    column_codes : mapping of column -> RawCodes
        Its categorical columns, factorized by the time the sample is asked for.
    rng : RandomState
    """

    def __init__(self, training: Training, column_codes: Mapping[str, RawCodes], rng: np.random.RandomState) -> None:
        self._training, self._column_codes = training, column_codes
        self.is_needed = training.n_rows > MOST_ROWS
        self._seed = rng.randint(2**31) if self.is_needed else 0

    def for_most(self, most: int) -> Sampler | None:
        """The sampler, where at most so many rows are wanted of a larger table."""
        return self if self.is_needed and most <= MOST_ROWS else None

    @cached_property
    def rows(self) -> Dealt:
        """About `MOST_ROWS` of the rows."""
        training = self._training
        codes = ((name, raw.codes, raw.keys()) for name, raw in self._column_codes.items())
        given: list[tuple[str, NDArray[np.float64]]] = [
            (column.name, column.values)
            for column in training.table.columns
            if column.kind is Kind.NUMERIC and column.name not in self._column_codes
        ]
        offset = [] if training.offset is None else [(f"offset {k}", own) for k, own in enumerate(training.offset.T)]
        exact = [*((f"column {name}", own) for name, own in given), *offset, ("target", training.y)]
        weight = training.weight_of_one
        content = content_of(len(training.y), codes, [] if weight is None else [("weight", weight)])
        for name, values in exact:
            content += bits_of(name, values)
        return Dealt.sampled(content, training.copies, MOST_ROWS, np.random.RandomState(self._seed))
