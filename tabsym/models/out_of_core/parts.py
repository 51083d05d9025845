"""Coded rows of a table that is read in batches: the parts, what is counted in each, and the pass that makes them.

Sums of parts are requested by name (`Part.ask`), wherever they are: mapped here, or on the workers of a cluster.
The pass over the batches also finds the categories of each column and a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import UNSEEN, Categories, Cross
from tabsym.categories.coding import RawCodes, encode_column
from tabsym.design.model_spec import ModelSpec
from tabsym.design.sources import Coder, CountEffect, Crossing, Source, CategoricalSource
from tabsym.design.units import Moments, TargetUnits
from tabsym.frame import Column, Kind, Table, check_regression_target, check_weights, read_table, categorical_columns
from tabsym.frame.storage import object_array
from tabsym.frame.target import totals_of_classes
from tabsym.losses.loss import MULTINOMIAL
from tabsym.models.data import OffsetColumn, Training, lay_training, numeric_moments, training_loss
from tabsym.models.model import WideModel
from tabsym.models.solving import solver_terms
from tabsym.models.start import Coded
from tabsym.solvers.newton.partitioned import Shard
from tabsym.solvers.newton.terms import SolverTerm

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Columns = tuple[str, ...]
_NOTHING = np.empty(0)


class InMemory:
    """Arrays of a part as they are."""

    def put(self, values: NDArray[Any]) -> NDArray[Any]:
        return values

    def empty(self, shape: tuple[int, ...]) -> Floats | None:
        """An array for linear predictors; None: the solver's own."""
        return None


class InFiles:
    """Arrays of a part in memory maps of files, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._n_files = folder, 0

    def put(self, values: NDArray[Any]) -> NDArray[Any]:
        if not values.size or isinstance(values.base, np.memmap):  # none, or in a file
            return values
        mapped = self._map(values.shape, values.dtype)
        mapped[...] = values
        return mapped

    def empty(self, shape: tuple[int, ...]) -> Floats | None:
        return self._map(shape, np.dtype(np.float64))

    def _map(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        self._n_files += 1
        mapped = np.memmap(self._folder / f"{self._n_files}", dtype, "w+", shape=shape)
        return mapped.view(np.ndarray)  # as arrays to kernels


@dataclass(frozen=True)
class TermOfPart:
    """A term of the solver without rows; `parents`: by block, -1 for coefficients that no row of the part has."""

    term: SolverTerm
    parents: Mapping[int, Codes]


class Part:
    """Rows of a training table, coded.

    Parameters
    ----------
    codes : dict of column -> (n,)
        Codes of categorical columns.
    numbers : dict of column -> (n,)
    y : (n,)
        Codes of classes, or a target.
    weight : (n,) or None
    offset : (n,) or None
    store : InMemory or InFiles
    """

    def __init__(
        self,
        codes: dict[str, Codes],
        numbers: dict[str, Floats],
        y: Floats,
        weight: Floats | None,
        offset: Floats | None,
        store: InMemory | InFiles,
    ) -> None:
        self._store = store
        self.codes = {name: store.put(values) for name, values in codes.items()}
        self.numbers = {name: store.put(values) for name, values in numbers.items()}
        self.y = store.put(y)
        self.weight = None if weight is None else store.put(weight)
        self.offset = None if offset is None else store.put(offset)
        self._coder = _PartCoder((), {}, store)
        self.shard: Shard

    def __len__(self) -> int:
        return len(self.y)

    def ask(self, what: str, *arguments: Any) -> Any:
        """What a method of this part, or of its shard, returns."""
        return getattr(self if hasattr(self, what) else self.shard, what)(*arguments)

    # -- before the terms are known --------------------------------------------------

    def target_sums(self) -> tuple[float, ...]:
        """Number and weight of rows; weighted sums of targets, their squares, offsets, theirs, and both's products.

        The last two are the sums of targets and of squared weights.
        """
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        offset = np.zeros(len(self.y)) if self.offset is None else self.offset
        products = (self.y, np.square(self.y), offset, np.square(offset), offset * self.y)
        sums = [float(weight @ product) for product in products] + [float(self.y.sum()), float(weight @ weight)]
        return float(len(self.y)), float(weight.sum()), *sums

    def renumber_classes(self, numbers: Floats) -> tuple[()]:
        """The target's codes by the number of each class."""
        self.y = self._store.put(numbers[self.y.astype(np.int64)])  # others may read the file
        return ()

    def totals_of_classes(self, n_classes: int) -> tuple[Floats]:
        """The total weight (n_classes,) of the rows of each class."""
        return (totals_of_classes(self.y.astype(np.int64), n_classes, self.weight),)

    def scale_weights(self, of_class: Floats | None, unit: float, drop: bool) -> tuple[()]:
        """Multiply weights by class weights, over a unit; `drop`: they are equal."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        if of_class is not None:
            weight = weight * of_class[self.y.astype(np.int64)]
        self.weight = None if drop else self._store.put(weight / unit)
        return ()

    def weight_range(self, of_class: Floats | None) -> tuple[float, float, float]:
        """The sum, the minimum and the maximum of the weights, multiplied by class weights."""
        weight = np.ones(len(self.y)) if self.weight is None else np.asarray(self.weight)
        if of_class is not None:
            weight = weight * of_class[self.y.astype(np.int64)]
        return float(weight.sum()), float(weight.min()), float(weight.max())

    # -- coding ---------------------------------------------------------------------------

    def begin(self, sources: Sequence[Source]) -> tuple[()]:
        self._coder = _PartCoder(sources, self.numbers, self._store)
        return ()

    def take_source(self, index: int, source: Source, columns: Columns, code: int) -> tuple[()]:
        """Set a source with its categories, and code the rows by it; `code`: of its category, of a closed source."""
        coder = self._coder
        coder.sources[index] = source
        if isinstance(source, CategoricalSource):
            for name in source.columns:
                missing = np.zeros(len(self.y), dtype=np.int32)  # a column without values
                codes = self.codes.get(name, missing)
                if source.closed:
                    codes = np.where(codes == code, 0, UNSEEN).astype(np.int32)
                coder.keep((index, (name,)), codes)
        elif isinstance(source, CountEffect):
            coder.keep((index, columns), source.codes_in_training(coder.read(source.of, source.columns)))
        return ()

    def keys_of_pairs(self, index: int, columns: Columns) -> NDArray[np.int64]:
        """The keys of the combinations that occur, in the order in which they do."""
        source = self._coder.sources[index]
        assert isinstance(source, Crossing)
        left, right = self._coder.read(source.left, columns[:-1]), self._coder.read(source.right, columns[-1:])
        return Cross.fit(left, right)[0].keys

    def count_codes(self, index: int, columns: Columns, size: int) -> tuple[NDArray[np.int64]]:
        """The number of rows of each code of a source."""
        codes = self._coder.read(index, columns)
        return (np.bincount(codes[codes >= 0], minlength=size),)

    # -- the rows for the solver ---------------------------------------------------------

    def training(self, n_outputs: int) -> Training:
        offset = None if self.offset is None else np.repeat(self.offset[:, None], n_outputs, axis=1)
        return Training(Table((), len(self.y), None, True), self.y, self.weight, offset, unit_weight=1.0)

    def moments(self, spec: ModelSpec, of_target: bool) -> tuple[tuple[Moments, ...], Moments]:
        """Of the numeric factors, and of the target less its offset."""
        of_numerics = numeric_moments(spec, self.numbers, len(self.y), self.weight)
        return of_numerics, Moments.of(self.training(1).differences, self.weight) if of_target else Moments()

    def count_terms(self, spec: ModelSpec) -> tuple[NDArray[np.int64], Floats]:
        """Number and weight of the rows of each coefficient."""
        return Coded(spec.code(self._coder), self.numbers, self.training(1)).count_rows(spec)

    def load(self, model: WideModel, units: TargetUnits) -> list[TermOfPart]:
        """Lay the rows out for the solver; its terms without rows."""
        training = self.training(model.n_outputs)
        coded = Coded(model.spec.code(self._coder), self.numbers, training)
        rows = units.rows(lay_training(model, None, self.numbers, training, None, 1))
        terms = solver_terms(model, coded, rows)
        k, loss = model.n_outputs, training_loss(model)
        start = np.broadcast_to(0.0, (len(self.y), k))
        if len(rows.offset):
            start = self._store.put(rows.offset.reshape(-1, k))
        laid = [replace(term, x=self._store.put(term.x)) for term in terms]
        values = self._store.empty((len(self.y), k) if loss.code == MULTINOMIAL else (len(self.y),))
        y = self.y if rows.y is self.y else self._store.put(rows.y)
        self.shard = Shard(laid, y, _NOTHING if self.weight is None else self.weight, start, loss, values, self.y)
        return [self._without_rows(term) for term in terms]

    def _without_rows(self, term: SolverTerm) -> TermOfPart:
        parents = {}
        if term.within:
            counts = np.bincount(term.codes, minlength=term.size)
            parents = {block: np.where(counts > 0, parent, np.int32(-1)) for block, parent in term.within.items()}
        return TermOfPart(replace(term, codes=np.empty(0, dtype=np.int32), x=term.x[:1], within={}), parents)


class _PartCoder(Coder):
    """Codes of a part, stored where its arrays are."""

    def __init__(
        self,
        sources: Sequence[Source],
        numbers: Mapping[str, Floats],
        store: InMemory | InFiles,
    ) -> None:
        super().__init__(sources, {}, numbers)
        self._store = store

    def keep(self, key: tuple[int, Columns], codes: NDArray[Any]) -> None:
        self._codes[key] = self._store.put(codes.astype(np.int32, copy=False))

    def read(self, index: int, columns: Columns) -> NDArray[Any]:
        if (index, columns) not in self._codes:
            self.keep((index, columns), self._transform(self.sources[index], columns))
        return self._codes[index, columns]


SAMPLE_ROWS = 200_000
"""Bins, interactions and the loss are chosen on a random sample of this many rows of larger tables."""

MAX_CLASSES_SAMPLED = 1_000
"""The largest number of classes with which the sample has a row of each."""


class RowSample:
    """A uniform random sample of rows, with the first row of each kind that a sample must not miss.

    Rows get random keys, and those of the smallest keys stay; of a table of no more rows than the sample all stay, in
    order.

    Parameters
    ----------
    n_rows : int
    rng : RandomState
    """

    def __init__(self, n_rows: int, rng: np.random.RandomState) -> None:
        self._max_rows, self._rng = n_rows, rng
        self._tables: list[Any] = []
        self._keys, self._n_seen, self._limit = np.empty(0), 0, np.inf

    def add(self, table: Any, wanted: Collection[int]) -> None:
        """The rows of a batch; those at `wanted` stay in any case."""
        keys = self._rng.random_sample(table.num_rows)
        keys[list(wanted)] = -1.0
        some = np.flatnonzero(keys <= self._limit)
        self._tables.append(table.take(some))
        self._keys = np.append(self._keys, keys[some])
        if len(self._keys) > 2 * self._max_rows:
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
        table, self._keys = _smallest(self._tables, self._keys, self._max_rows)
        if len(self._keys) == self._max_rows:
            self._limit = float(self._keys.max())
        self._tables = [table]


def rows_of_smallest(samples: list[tuple[Any, Floats]], max_rows: int) -> Any:
    """One sample from several of `RowSample.with_keys`."""
    return _smallest([table for table, _ in samples], np.concatenate([keys for _, keys in samples]), max_rows)[0]


def _smallest(tables: list[Any], keys: Floats, max_rows: int) -> tuple[Any, Floats]:
    """The rows of the smallest keys, in order, and these."""
    import pyarrow as pa

    table = pa.concat_tables(tables, promote_options="permissive")
    if len(keys) <= max_rows:
        return table, keys
    some = np.sort(np.argpartition(keys, max_rows)[:max_rows])
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
    vocabularies : dict of column -> Categories
        Of the coded columns.
    classes : Categories
        In the order in which they came; of regression none.
    class_type : pyarrow.DataType or None
    """

    wanted: Wanted
    sample: Any
    vocabularies: dict[str, Categories]
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


def _joined(arrays: list[Floats | None]) -> Floats | None:
    return None if arrays[0] is None else np.concatenate([array for array in arrays if array is not None])


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
        numbers = np.empty(len(raw.categories) + 1, dtype=np.int32)
        numbers[:-1] = [code_of.setdefault(category, len(code_of)) for category in raw.categories.tolist()]
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
    sample : RowSample
    store : InFiles or InMemory
    """

    def __init__(self, wanted: Wanted, sample: RowSample, store: InFiles | InMemory) -> None:
        self.wanted, self.sample, self._store = wanted, sample, store
        self._vocabularies: dict[str, _Growing] = {}
        self._classes = _Growing()
        self.class_type: Any = None
        self._categorical: list[str] | None = None
        self._met: set[tuple[str, bool]] = set()
        self._smallest_target = np.inf
        self._waiting: list[_BatchRows] = []

    def read(self, batch: Any) -> Part | None:
        """Code a batch, an Arrow table; the part of this and earlier ones, once they are enough rows."""
        rows = self._coded_rows(batch)
        if rows is not None:
            self._waiting.append(rows)
        return self.rest() if sum(len(rows.y) for rows in self._waiting) >= PART_ROWS else None

    def result(self) -> ReadTable:
        """What was read, once all batches were."""
        return ReadTable(self.wanted, self.sample.table(), self.vocabularies, self.classes, self.class_type)

    @property
    def vocabularies(self) -> dict[str, Categories]:
        """The categories of each coded column so far."""
        return {name: categories.categories(name) for name, categories in self._vocabularies.items()}

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
        for_sample: set[int] = set()
        y = self._target(batch, for_sample)
        chosen = self._coded(table)
        codes, numbers = {}, {}
        for column in table.columns:
            if column.name in chosen:
                codes[column.name] = self._vocabularies.setdefault(column.name, _Growing()).code(encode_column(column))
            if column.kind is not Kind.CATEGORICAL:
                numbers[column.name] = self._numbers(column, for_sample)
        self.sample.add(
            batch.select([*wanted.columns, wanted.target, *([wanted.weight] if wanted.weight else [])]), for_sample
        )
        return _BatchRows(codes, numbers, y, weight, offset)

    def _weights(self, values: Any) -> Floats:
        weights = np.asarray(values.to_numpy())
        checked = check_weights(np.append(weights.astype(np.float64), 1.0), len(weights) + 1)
        assert checked is not None
        return checked[:-1]

    def _target(self, batch: Any, for_sample: set[int]) -> Floats:
        """Codes of classes in the order in which they come, or numbers."""
        name = self.wanted.target
        if not self.wanted.is_classifier:
            y = check_regression_target(batch[name], batch.num_rows, caller=self.wanted.caller)
            self.wanted.check(y)
            smallest = int(np.argmin(y))
            if y[smallest] < self._smallest_target:  # which losses there can be depends on it
                self._smallest_target = float(y[smallest])
                for_sample.add(smallest)
            return y
        column = read_table(batch.select([name]), caller=self.wanted.caller)[name]
        self.class_type = batch.schema.field(name).type
        before = len(self._classes)
        codes = self._classes.code(encode_column(column))
        if self._classes.has_missing:
            raise ValueError(
                "Input y contains NaN: the target is missing in some rows; drop these rows or fill them in."
            )
        for new in range(before, min(len(self._classes), MAX_CLASSES_SAMPLED)):
            for_sample.add(int(np.argmax(codes == new)))
        return codes.astype(np.float64)

    def _coded(self, table: Table) -> list[str]:
        """The columns that are coded, by the first batch."""
        if self._categorical is None:
            categorical = categorical_columns(
                table, self.wanted.categorical, booleans=True, whole=False, option="categorical_features"
            )
            self._categorical = [column.name for column in categorical]
            self._categorical += [column.name for column in table.columns if column.kind is Kind.CATEGORICAL]
        return [*self._categorical, *self.wanted.coded]

    def _numbers(self, column: Column, for_sample: set[int]) -> Floats:
        """The values; the first row with one, and the first without, are for the sample."""
        values = column.values
        missing = np.isnan(values)
        for is_missing in (False, True):
            if (column.name, is_missing) not in self._met and (missing == is_missing).any():
                self._met.add((column.name, is_missing))
                for_sample.add(int(np.argmax(missing == is_missing)))
        return values
