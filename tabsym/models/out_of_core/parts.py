"""One part of a training table as codes and numbers: what is counted in it, and its rows for the solver.

Parts are asked for sums, by name (`Part.ask`), wherever they are: in memory maps here, or on the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import UNSEEN, Cross
from tabsym.design.model_spec import ModelSpec
from tabsym.design.sources import Coder, CountEffect, Crossing, Source, Symbols
from tabsym.design.units import Moments, TargetUnits
from tabsym.frame import Table
from tabsym.frame.weights import totals_of_classes
from tabsym.losses.kernels import MULTINOMIAL
from tabsym.models.data import Training, lay_training, numeric_moments, training_loss
from tabsym.models.model import WideModel
from tabsym.models.newton_terms import solver_terms
from tabsym.models.start import Coded
from tabsym.solvers.newton.partition import Shard
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
        kept = self._map(values.shape, values.dtype)
        kept[...] = values
        return kept

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
        self.codes = {name: store.put(own) for name, own in codes.items()}
        self.numbers = {name: store.put(own) for name, own in numbers.items()}
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
        """Number and weight of rows; weighted sums of targets, their squares, offsets, theirs, and both's products."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        offset = np.zeros(len(self.y)) if self.offset is None else self.offset
        products = (self.y, np.square(self.y), offset, np.square(offset), offset * self.y)
        return float(len(self.y)), float(weight.sum()), *(float(weight @ one) for one in products)

    def renumber_classes(self, numbers: Floats) -> tuple[()]:
        """The target's codes by the number of each class."""
        self.y = self._store.put(numbers[self.y.astype(np.int64)])  # others may read the file
        return ()

    def totals_of_classes(self, n_classes: int) -> tuple[Floats]:
        """The total weight (n_classes,) of the rows of each class."""
        return (totals_of_classes(self.y.astype(np.int64), n_classes, self.weight),)

    def weigh(self, of_class: Floats | None, unit: float, drop: bool) -> tuple[()]:
        """Multiply weights by those of classes, over a unit; `drop`: they are equal."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        if of_class is not None:
            weight = weight * of_class[self.y.astype(np.int64)]
        self.weight = None if drop else self._store.put(weight / unit)
        return ()

    def weight_range(self, of_class: Floats | None) -> tuple[float, float, float]:
        """The sum, the least and the greatest of the weights with those of classes."""
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
        if isinstance(source, Symbols):
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
        found = numeric_moments(spec, self.numbers, len(self.y), self.weight)
        return found, Moments.of(self.training(1).differences, self.weight) if of_target else Moments()

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
        kept = [replace(term, x=self._store.put(term.x)) for term in terms]
        values = self._store.empty((len(self.y), k) if loss.code == MULTINOMIAL else (len(self.y),))
        y = self.y if rows.y is self.y else self._store.put(rows.y)
        self.shard = Shard(kept, y, _NOTHING if self.weight is None else self.weight, start, loss, values, self.y)
        return [self._without_rows(term) for term in terms]

    def _without_rows(self, term: SolverTerm) -> TermOfPart:
        parents = {}
        if term.within:
            counts = np.bincount(term.codes, minlength=term.size)
            parents = {block: np.where(counts > 0, parent, np.int32(-1)) for block, parent in term.within.items()}
        return TermOfPart(replace(term, codes=np.empty(0, dtype=np.int32), x=term.x[:1], within={}), parents)


class _PartCoder(Coder):
    """Codes of a part, kept where its arrays are."""

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
