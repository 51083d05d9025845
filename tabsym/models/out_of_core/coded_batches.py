"""One pass over batches: parts of codes and numbers, the categories of each column, and a sample of the rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import Categories
from tabsym.categories.coding import RawCodes, encode_column
from tabsym.frame import Column, Kind, Table, check_regression_target, check_weights, read_table, symbolic_columns
from tabsym.frame.storage import object_array
from tabsym.models.data import OffsetColumn
from tabsym.models.out_of_core.parts import InFiles, InMemory, Part

Floats = NDArray[np.float64]

SAMPLE_ROWS = 200_000
"""Bins, interactions and the loss are chosen on a random sample of this many rows of larger tables."""

MAX_CLASSES_KEPT = 1_000
"""The most classes of each of which a row is kept for the sample."""


class RowSample:
    """A uniform random sample of rows, with the first row of each kind that a sample must not miss.

    Rows get random keys, and those of the smallest keys stay; a table of no more rows than the sample is kept whole,
    in order.

    Parameters
    ----------
    n_rows : int
    rng : RandomState
    """

    def __init__(self, n_rows: int, rng: np.random.RandomState) -> None:
        self._most, self._rng = n_rows, rng
        self._tables: list[Any] = []
        self._keys, self._n_seen, self._limit = np.empty(0), 0, np.inf

    def add(self, table: Any, wanted: Collection[int]) -> None:
        """The rows of a batch; those at `wanted` stay in any case."""
        keys = self._rng.random_sample(table.num_rows)
        keys[list(wanted)] = -1.0
        some = np.flatnonzero(keys <= self._limit)
        self._tables.append(table.take(some))
        self._keys = np.append(self._keys, keys[some])
        if len(self._keys) > 2 * self._most:
            self._prune()

    def table(self) -> Any:
        """The rows of the sample as one Arrow table."""
        self._prune()
        return self._tables[0]

    def with_keys(self) -> tuple[Any, Floats]:
        """The rows, and their keys: those of the smallest keys of several such samples are a sample of all."""
        self._prune()
        return self._tables[0], self._keys

    def _prune(self) -> None:
        table, self._keys = _smallest(self._tables, self._keys, self._most)
        if len(self._keys) == self._most:
            self._limit = float(self._keys.max())
        self._tables = [table]


def rows_of_smallest(samples: list[tuple[Any, Floats]], most: int) -> Any:
    """One sample from several of `Sample.with_keys`."""
    return _smallest([table for table, _ in samples], np.concatenate([keys for _, keys in samples]), most)[0]


def _smallest(tables: list[Any], keys: Floats, most: int) -> tuple[Any, Floats]:
    """The rows of the smallest keys, in order, and these."""
    import pyarrow as pa

    table = pa.concat_tables(tables, promote_options="permissive")
    if len(keys) <= most:
        return table, keys
    some = np.sort(np.argpartition(keys, most)[:most])
    return table.take(some), keys[some]


@dataclass(frozen=True)
class Wanted:
    """What is read of a table.

    Attributes
    ----------
    target : str
    weight : str or None
    columns : list of str
        The features, and the offset's column.
    offset : OffsetColumn or None
    categorical : object
        The option `categorical_features`, as `Config.cols`.
    coded : collection of str
        Columns that are coded whatever their type: in brackets of a formula.
    is_classifier : bool
    caller : str
    check : callable
        Called with the target (n,) of each batch, to refuse what a loss does not take.
    """

    target: str
    weight: str | None
    columns: list[str]
    offset: OffsetColumn | None
    categorical: Any
    coded: Collection[str]
    is_classifier: bool
    caller: str
    check: Callable[[Floats], None]


@dataclass(frozen=True)
class ReadTable:
    """What a fit knows of a table besides its parts.

    Attributes
    ----------
    wanted : Wanted
    sample : pyarrow.Table
    alphabets : dict of column -> Categories
        Of the coded columns.
    classes : Categories
        In the order in which they came; of regression none.
    class_type : pyarrow.DataType or None
    """

    wanted: Wanted
    sample: Any
    alphabets: dict[str, Categories]
    classes: Categories
    class_type: Any


@dataclass(frozen=True)
class _BatchRows:
    """The rows of a batch; see `Part`."""

    codes: dict[str, NDArray[np.int32]]
    numbers: dict[str, Floats]
    y: Floats
    weight: Floats | None
    offset: Floats | None


def _joined(found: list[Floats | None]) -> Floats | None:
    return None if found[0] is None else np.concatenate([one for one in found if one is not None])


class _Growing:
    """Categories that are added to with every batch, by one dictionary: an index would be made anew each time."""

    def __init__(self) -> None:
        self._code_of: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._code_of)

    @property
    def has_missing(self) -> bool:
        return None in self._code_of

    def code(self, raw: RawCodes) -> NDArray[np.int32]:
        """The codes (n,) of a column of a batch."""
        code_of = self._code_of
        numbers = np.empty(len(raw.symbols) + 1, dtype=np.int32)
        numbers[:-1] = [code_of.setdefault(category, len(code_of)) for category in raw.symbols.tolist()]
        if (raw.codes < 0).any():  # -1 reads the last place
            numbers[-1] = code_of.setdefault(None, len(code_of))
        return np.asarray(numbers[raw.codes])

    def categories(self, name: str) -> Categories:
        return Categories(name, object_array(list(self._code_of)))


PART_ROWS = 1 << 20
"""Rows of a part: the sums of one part after the other are of all coefficients, and batches of text are smaller."""


class Reader:
    """Makes parts of batches; categories are numbered as they come.

    Parameters
    ----------
    wanted : Wanted
    sample : Sample
    store : InFiles or InMemory
    """

    def __init__(self, wanted: Wanted, sample: RowSample, store: InFiles | InMemory) -> None:
        self.wanted, self.sample, self._store = wanted, sample, store
        self._alphabets: dict[str, _Growing] = {}
        self._classes = _Growing()
        self.class_type: Any = None
        self._categorical: list[str] | None = None
        self._met: set[tuple[str, bool]] = set()
        self._least = np.inf
        self._waiting: list[_BatchRows] = []

    def read(self, batch: Any) -> Part | None:
        """Code a batch, an Arrow table; the part of this and earlier ones, once they are enough rows."""
        rows = self._coded_rows(batch)
        if rows is not None:
            self._waiting.append(rows)
        return self.rest() if sum(len(rows.y) for rows in self._waiting) >= PART_ROWS else None

    def result(self) -> ReadTable:
        """What was read, once all batches were."""
        return ReadTable(self.wanted, self.sample.table(), self.alphabets, self.classes, self.class_type)

    @property
    def alphabets(self) -> dict[str, Categories]:
        """The categories of each coded column so far."""
        return {name: own.categories(name) for name, own in self._alphabets.items()}

    @property
    def classes(self) -> Categories:
        return self._classes.categories(self.wanted.target)

    def rest(self) -> Part | None:
        """The part of the batches that wait; None without rows."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return None
        first = waiting[0]
        codes = {name: np.concatenate([rows.codes[name] for rows in waiting]) for name in first.codes}
        numbers = {name: np.concatenate([rows.numbers[name] for rows in waiting]) for name in first.numbers}
        y, weight = np.concatenate([rows.y for rows in waiting]), _joined([rows.weight for rows in waiting])
        return Part(codes, numbers, y, weight, _joined([rows.offset for rows in waiting]), self._store)

    def _coded_rows(self, batch: Any) -> _BatchRows | None:
        wanted = self.wanted
        weight = None
        if wanted.weight is not None:
            weight = self._weights(batch[wanted.weight])
            if not weight.all():
                batch, weight = batch.filter(weight > 0), weight[weight > 0]
            if not len(weight):
                return None
        table = read_table(batch.select(wanted.columns), caller=wanted.caller)
        offset = None
        if wanted.offset is not None:
            table, offset = wanted.offset.split(table)
        kept: set[int] = set()
        y = self._target(batch, kept)
        chosen = self._coded(table)
        codes, numbers = {}, {}
        for column in table.columns:
            if column.name in chosen:
                codes[column.name] = self._codes(column)
            if column.kind is not Kind.SYMBOLIC:
                numbers[column.name] = self._numbers(column, kept)
        self.sample.add(
            batch.select([*wanted.columns, wanted.target, *([wanted.weight] if wanted.weight else [])]), kept
        )
        return _BatchRows(codes, numbers, y, weight, offset)

    def _weights(self, values: Any) -> Floats:
        own = np.asarray(values.to_numpy())
        checked = check_weights(np.append(own.astype(np.float64), 1.0), len(own) + 1)
        assert checked is not None
        return checked[:-1]

    def _target(self, batch: Any, kept: set[int]) -> Floats:
        """Codes of classes in the order in which they come, or numbers."""
        name = self.wanted.target
        if not self.wanted.is_classifier:
            y = check_regression_target(batch[name], batch.num_rows, caller=self.wanted.caller)
            self.wanted.check(y)
            least = int(np.argmin(y))
            if y[least] < self._least:  # which losses there can be depends on it
                self._least = float(y[least])
                kept.add(least)
            return y
        column = read_table(batch.select([name]), caller=self.wanted.caller)[name]
        self.class_type = batch.schema.field(name).type
        before = len(self._classes)
        codes = self._classes.code(encode_column(column))
        if self._classes.has_missing:
            raise ValueError(
                "Input y contains NaN: the target is missing in some rows; drop these rows or fill them in."
            )
        for new in range(before, min(len(self._classes), MAX_CLASSES_KEPT)):
            kept.add(int(np.argmax(codes == new)))
        return codes.astype(np.float64)

    def _coded(self, table: Table) -> list[str]:
        """The columns that are coded, by the first batch."""
        if self._categorical is None:
            found = symbolic_columns(
                table, self.wanted.categorical, booleans=True, whole=False, option="categorical_features"
            )
            self._categorical = [column.name for column in found]
            self._categorical += [column.name for column in table.columns if column.kind is Kind.SYMBOLIC]
        return [*self._categorical, *self.wanted.coded]

    def _codes(self, column: Column) -> NDArray[np.int32]:
        return self._alphabets.setdefault(column.name, _Growing()).code(encode_column(column))

    def _numbers(self, column: Column, kept: set[int]) -> Floats:
        """The values; the first row with one, and the first without, are for the sample."""
        values = column.values
        missing = np.isnan(values)
        for is_missing in (False, True):
            if (column.name, is_missing) not in self._met and (missing == is_missing).any():
                self._met.add((column.name, is_missing))
                kept.add(int(np.argmax(missing == is_missing)))
        return values
