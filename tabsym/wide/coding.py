"""A table coded by sources, which take up its new symbols and combinations on the way if they are asked to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import UNSEEN, RawCodes, encode_columns
from tabsym.table import Table
from tabsym.wide.sources import Bins, Crossing, Flag, Source, Symbols

Codes = NDArray[np.signedinteger[Any]]


class Coder:
    """Codes a table by sources, each (source, columns) once; `sources` has grown after `grow`.

    A crossing's `left` and `right`, and the `place` of a source here, are places in `sources`.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        table: Table,
        n_jobs: int | None,
        raws: dict[str, RawCodes] | None = None,
    ) -> None:
        self.sources = list(sources)
        self.table = table
        names = list(dict.fromkeys(n for s in sources if isinstance(s, Symbols) for n in s.columns))
        self._raws: dict[str, RawCodes] = {} if raws is None else raws
        names = [name for name in names if name not in self._raws]
        self._raws.update(zip(names, encode_columns([table[name] for name in names], n_jobs), strict=True))
        self._codes: dict[tuple[int, tuple[str, ...]], Codes] = {}
        self._wide = any(isinstance(source, Crossing) for source in sources)  # crosses read int32

    def grow(self, reads: Iterable[tuple[int | None, tuple[str, ...]]]) -> None:
        """Let every source take up what the table has, crossings through the (source, columns) that are read."""
        crossed: dict[int, list[tuple[str, ...]]] = {}
        for place, columns in reads:
            self._note_crossings(place, columns, crossed)
        for place, source in enumerate(self.sources):
            if isinstance(source, Symbols):
                self._grow_symbols(place, source)
            elif isinstance(source, Crossing):
                self._grow_crossing(place, source, crossed.get(place, []))

    def _note_crossings(
        self, place: int | None, columns: tuple[str, ...], crossed: dict[int, list[tuple[str, ...]]]
    ) -> None:
        source = None if place is None else self.sources[place]
        if place is None or not isinstance(source, Crossing):
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

    def _grow_crossing(self, place: int, source: Crossing, reads: Sequence[tuple[str, ...]]) -> None:
        cross = source.cross
        for columns in reads:
            left, right = self.read(source.left, columns[:-1]), self.read(source.right, columns[-1:])
            cross, codes = cross.grow(left, right)
            self._codes[place, columns] = codes
        self.sources[place] = replace(source, cross=cross)

    def read(self, place: int | None, columns: tuple[str, ...]) -> Codes:
        """The codes (n,) of a source, read through these columns."""
        assert place is not None, "a scalar has no codes"
        if (place, columns) not in self._codes:
            self._codes[place, columns] = self._transform(self.sources[place], columns)
        return self._codes[place, columns]

    def _transform(self, source: Source, columns: tuple[str, ...]) -> Codes:
        if isinstance(source, Symbols):
            return self._as_wide(source.alphabet.transform(self._raws[columns[0]]))
        if isinstance(source, Bins):
            return source.codes(self.table[source.column].values)
        if isinstance(source, Flag):
            return np.where(np.isnan(self.table[source.column].values), 0, UNSEEN).astype(np.int32)
        return source.cross.transform(self.read(source.left, columns[:-1]), self.read(source.right, columns[-1:]))

    def _as_wide(self, codes: Codes) -> Codes:
        return codes.astype(np.int32, copy=False) if self._wide else codes
