"""Rows encoded by fitted columns: known categories by their estimates, unknown ones by what their rows say of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import UNSEEN, Categories, RawCodes, encode_column
from tabsym.encoders.base import refuse_missing
from tabsym.table import Table
from tabsym.tiws.column import FittedColumn
from tabsym.tiws.counting import codes_of
from tabsym.tiws.counts import TableCounts
from tabsym.tiws.unseen import Observed, UnseenRows, no_rows, unseen_rows
from tabsym.tiws.words import Symbols

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TIWSColumn:
    """State of one column: its output columns, what was fitted; `shown`: the target's components that come out."""

    names: list[str]
    fitted: FittedColumn
    shown: list[int]
    indicator: str | None

    def constant_names(self) -> list[str]:
        """Output columns that are the same for all known categories."""
        seen = self.fitted.estimates[self.fitted.sums.rows > 0][:, self.shown]
        same = [*(seen == seen[:1]).all(axis=0), True]
        return [name for name, constant in zip(self.names, same, strict=False) if constant]

    def outputs(self, values: Floats, unseen: NDArray[np.bool_]) -> list[NDArray[np.generic]]:
        """The output columns of estimates (n, q)."""
        columns: list[NDArray[np.generic]] = list(values[:, self.shown].T)
        return columns if self.indicator is None else [*columns, unseen.astype(np.int64)]


def state_of(name: str, fitted: FittedColumn, classes: NDArray[np.generic] | None, *, indicator: bool) -> TIWSColumn:
    """With a column for each class, where there are more than two."""
    if classes is not None and len(classes) > 2:
        names, shown = [f"{name}_{label}" for label in classes], list(range(len(classes)))
    else:
        names, shown = [name], [0 if classes is None else 1]
    flag = f"{name}_unknown" if indicator else None
    return TIWSColumn(names if flag is None else [*names, flag], fitted, shown, flag)


@dataclass(frozen=True)
class RowEncoding:
    """How rows are encoded: the encoder's columns, counts, what it has observed, and its options of these names."""

    columns: dict[str, TIWSColumn]
    counts: TableCounts
    observed: dict[str, Observed]
    context: str
    handle_missing: str
    handle_unknown: str

    def codes(self, table: Table, name: str) -> tuple[NDArray[np.int32], RawCodes]:
        """Codes of an encoded column, after the checks that 'error' asks for."""
        raw = encode_column(table[name])
        if self.handle_missing == "error":
            refuse_missing(name, raw.codes < 0)
        codes = alphabet_of(self.counts, self.columns[name].fitted.number).transform(raw)
        unseen = (codes == UNSEEN) & (raw.codes >= 0)
        if self.handle_unknown == "error" and unseen.any():
            row = int(np.argmax(unseen))
            raise ValueError(
                f"Column {name!r} holds {raw.symbols[raw.codes[row]]!r} (row {row}), which is not in the training "
                "data; fit on rows that have it, or set handle_unknown to something other than 'error'."
            )
        return codes, raw

    def unseen(
        self, table: Table, name: str, *, context: str | None = None, anew: bool = False,
        words: list[NDArray[np.int32]] | None = None,
    ) -> UnseenRows:  # fmt: skip
        """Rows with an unknown category of a column; `anew`: without what was observed; `words`: if known already."""
        codes, raw = self.codes(table, name)
        n_words = int(self.counts.offsets[-1])
        if not (codes == UNSEEN).any():
            return no_rows(n_words)
        before = Observed.none(n_words) if anew else self.observed[name]
        words = codes_of(table, self.counts.words) if words is None else words
        return unseen_rows(codes, raw, words, self.counts.offsets, context or self.context, before)

    def encoded(self, table: Table) -> dict[str, list[NDArray[np.generic]]]:
        """The output columns of each column."""
        words: list[NDArray[np.int32]] | None = None
        out = {}
        for name, state in self.columns.items():
            codes, raw = self.codes(table, name)
            values = np.append(state.fitted.estimates, np.zeros((1, state.fitted.estimates.shape[1])), axis=0)[codes]
            nan = self._to_be_nan(codes, raw)
            if ((codes == UNSEEN) & ~nan).any():
                words = codes_of(table, self.counts.words) if words is None else words
                found = self.unseen(table, name, words=words)
                values[found.rows] = state.fitted.unseen_estimates(found.unseen)[found.which]
            values[nan] = np.nan
            out[name] = state.outputs(values, codes == UNSEEN)
        return out

    def intervals(self, table: Table, level: float, *, shares: bool) -> dict[str, Floats]:
        """Bounds (n,) by name, NaN for known categories; `shares`: they lie between 0 and 1."""
        columns: dict[str, Floats] = {}
        for name, state in self.columns.items():
            found = self.unseen(table, name)
            low, high = state.fitted.intervals(found.unseen, level)
            if shares:
                low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
            for place, shown in enumerate(state.shown):
                for side, bound in (("lower", low), ("upper", high)):
                    column = np.full(len(table), np.nan)
                    column[found.rows] = bound[found.which, shown]
                    columns[f"{state.names[place]}_{side}"] = column
        return columns

    def _to_be_nan(self, codes: NDArray[np.int32], raw: RawCodes) -> NDArray[np.bool_]:
        nan = (raw.codes < 0) if self.handle_missing == "return_nan" else np.zeros(len(codes), dtype=bool)
        return nan | ((codes == UNSEEN) & (raw.codes >= 0)) if self.handle_unknown == "return_nan" else nan


def alphabet_of(counts: TableCounts, number: int) -> Categories:
    """The alphabet of an encoded column."""
    words = counts.words[number]
    assert isinstance(words, Symbols)
    return words.alphabet
