"""A table coded by sources, which take up its new symbols and combinations on the way if they are asked to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import UNSEEN, RawCodes, encode_columns
from tabsym.table import Table
from tabsym.wide.sources import Bins, Crossing, Flag, Rarity, Source, Symbols

Codes = NDArray[np.signedinteger[Any]]
Columns = tuple[str, ...]


class Coder:
    """Codes a table by sources, each (source, columns) once; `sources` has grown after `grow`.

    A crossing's `left` and `right`, and the `place` of a source here, are places in `sources`.

    Parameters
    ----------
    sources : sequence of Source
    raws : mapping of column -> RawCodes
        The columns of symbols, coded by themselves.
    numbers : mapping of column -> (n,)
        The columns of intervals, flags and slopes.
    """

    def __init__(
        self, sources: Sequence[Source], raws: Mapping[str, RawCodes], numbers: Mapping[str, NDArray[np.float64]]
    ) -> None:
        self.sources = list(sources)
        self._raws, self.numbers = raws, numbers
        self._codes: dict[tuple[int, Columns], Codes] = {}
        self._wide = any(isinstance(source, Crossing) for source in sources)  # crosses read int32

    @classmethod
    def of_table(
        cls,
        sources: Sequence[Source],
        table: Table,
        numbers: Mapping[str, NDArray[np.float64]],
        n_jobs: int | None,
        raws: dict[str, RawCodes] | None = None,
    ) -> Coder:
        """`raws`: columns of the table coded before, to which those coded now are added."""
        raws = {} if raws is None else raws
        names = dict.fromkeys(name for source in sources if isinstance(source, Symbols) for name in source.columns)
        new = [name for name in names if name not in raws]
        raws.update(zip(new, encode_columns([table[name] for name in new], n_jobs), strict=True))
        return cls(sources, raws, numbers)

    def code_symbols(self) -> None:
        """Code the columns of symbols now, and forget how they came."""
        for place, source in enumerate(self.sources):
            if isinstance(source, Symbols):
                for name in source.columns:
                    self.read(place, (name,))
        self._raws = {}

    def rows(self, part: slice) -> Coder:
        """Of some rows, after `code_symbols`: intervals, flags and crosses are still to be coded there."""
        tile = Coder(self.sources, {}, {name: column[part] for name, column in self.numbers.items()})
        tile._codes = {key: codes[part] for key, codes in self._codes.items()}
        return tile

    def take(self, rows: NDArray[np.int64], sources: Sequence[Source] | None = None) -> Coder:
        """Of some rows, as their columns came; by other sources of these columns where `sources` are given."""
        raws = {name: raw.take(rows) for name, raw in self._raws.items()}
        numbers = {name: column[rows] for name, column in self.numbers.items()}
        return Coder(self.sources if sources is None else sources, raws, numbers)

    def grow(self, reads: Iterable[tuple[int, Columns]]) -> None:
        """Let every source take up what the table has, crossings through the (source, columns) that are read."""
        crossed: dict[int, list[Columns]] = {}
        for place, columns in reads:
            self._note_crossings(place, columns, crossed)
        for place, source in enumerate(self.sources):
            if isinstance(source, Symbols):
                self._grow_symbols(place, source)
            elif isinstance(source, Crossing):
                self._grow_crossing(place, source, crossed.get(place, []))
            elif isinstance(source, Rarity):
                grown, codes = source.grow(self.read(source.of, source.columns))
                self.sources[place], self._codes[place, source.columns] = grown, codes

    def _note_crossings(self, place: int, columns: Columns, crossed: dict[int, list[Columns]]) -> None:
        source = self.sources[place]
        if isinstance(source, Rarity):
            self._note_crossings(source.of, columns, crossed)
        if not isinstance(source, Crossing):
            return
        if columns not in crossed.setdefault(place, []):
            crossed[place].append(columns)
        self._note_crossings(source.left, columns[:-1], crossed)

    def _grow_symbols(self, place: int, source: Symbols) -> None:
        alphabet = source.alphabet
        for name in source.columns:
            alphabet, codes = alphabet.grow(self._raws[name])
            self._codes[place, (name,)] = self._as_wide(codes)
        self.sources[place] = replace(source, alphabet=alphabet)

    def _grow_crossing(self, place: int, source: Crossing, reads: Sequence[Columns]) -> None:
        cross = source.cross
        for columns in reads:
            left, right = self.read(source.left, columns[:-1]), self.read(source.right, columns[-1:])
            cross, codes = cross.grow(left, right)
            self._codes[place, columns] = codes
        self.sources[place] = replace(source, cross=cross)

    def read(self, place: int, columns: Columns) -> Codes:
        """The codes (n,) of a source, read through these columns; UNSEEN where it has none."""
        if (place, columns) not in self._codes:
            self._codes[place, columns] = self._transform(self.sources[place], columns)
        return self._codes[place, columns]

    def _transform(self, source: Source, columns: Columns) -> Codes:
        if isinstance(source, Symbols):
            return self._as_wide(source.alphabet.transform(self._raws[columns[0]]))
        if isinstance(source, Bins):
            return source.codes(self.numbers[source.column])
        if isinstance(source, Flag):
            return np.where(np.isnan(self.numbers[source.column]), 0, UNSEEN).astype(np.int32)
        if isinstance(source, Rarity):
            return source.codes(self.read(source.of, columns))
        return source.cross.transform(self.read(source.left, columns[:-1]), self.read(source.right, columns[-1:]))

    def _as_wide(self, codes: Codes) -> Codes:
        return codes.astype(np.int32, copy=False) if self._wide else codes
