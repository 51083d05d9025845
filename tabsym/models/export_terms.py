"""What exports are made of: records of codings, lookup tables, numbers and their products, and `to_terms`.

That is the one place where the fitted state of a wide model becomes these records. Count effects are added to the
categories that they belong to; dropped terms, which contribute 0, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import UNSEEN
from tabsym.design.formula import ColumnRef, Node, columns_read
from tabsym.design.model_spec import Term
from tabsym.design.sources import Bins, CategoricalSource, CountEffect, Crossing, Flag
from tabsym.losses import loss as losses
from tabsym.messages import warn_user
from tabsym.models.data import OffsetColumn
from tabsym.models.inspection.coef_table import (
    bases_taken_up,
    deviations_of_differences,
    position_of,
    shifts_of_scalars,
)
from tabsym.models.inspection.explain import term_name
from tabsym.models.model import WideModel, source_of, split_frame

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coding:
    """How the values of a column become codes: by category, or by bin.

    Attributes
    ----------
    categories : (l,) object array or None
        The categories in code order, None for missing; a value that is none of them has no code.
    bounds : (I - 1,) or None
        Of bins ``(a, b]``: the upper bounds of all but the last, ascending.
    missing : bool
        Of bins: whether the code 0 is that of missing values, which have no code otherwise.
    """

    categories: NDArray[Any] | None = None
    bounds: Floats | None = None
    missing: bool = False

    def __len__(self) -> int:
        if self.bounds is None:
            assert self.categories is not None
            return len(self.categories)
        return len(self.bounds) + 1 + self.missing


@dataclass(frozen=True, eq=False)
class Lookup:
    """Coefficients by the codes of columns.

    Attributes
    ----------
    name : str
        Of the term in `coefs_`.
    codings : tuple of int
        The coding of each position, an index; empty for a single coefficient.
    codes : (m, positions)
        The observed combinations; in code order where there is one position.
    values : (m, rank, K)
        On the scale of the linear predictor; more than one component for latent vectors only.
    default : (rank, K)
        For values without a code, and combinations that are not among `codes`.
    rows : (m,)
        Training rows.
    sd : (m, rank, K) or None
        Posterior standard deviations, without those of count effects; NaN or infinite where they are not known.
    """

    name: str
    codings: tuple[int, ...]
    codes: NDArray[np.int32]
    values: Floats
    default: Floats
    rows: NDArray[np.int64]
    sd: Floats | None = None


@dataclass(frozen=True)
class LookupFactor:
    """A factor of a term: a component of the lookup table with the index `table`, at the codes of `columns`."""

    table: int
    columns: tuple[str, ...]
    component: int = 0


@dataclass(frozen=True)
class NumberFactor:
    """A factor of a term: an expression of numeric columns.

    `fill`: what replaces a missing value of the column that it is; None where a missing value is an error.
    """

    node: Node
    fill: float | None = None


@dataclass(frozen=True)
class TermRecord:
    """``constant * numbers * lookups``, which is added to the linear predictors; constants and numbers to each."""

    name: str
    constant: float
    numbers: tuple[NumberFactor, ...] = ()
    lookups: tuple[LookupFactor, ...] = ()


@dataclass(frozen=True)
class Derived:
    """A column that is made of another one before it is used.

    Attributes
    ----------
    source : str
    part : {"day", "month", "week", "weekday", "hour", "minute", "text"}
        Of a date, by its own clock, as `tabsym.DateParts` has them; or the value as text.
    style : str
        How dates are written: "moments" for a date type, "ISO8601", or a format of strptime. Of text what values are
        that become text: "numbers", "booleans", or "" for others.
    """

    source: str
    part: str
    style: str = ""


@dataclass(frozen=True, eq=False)
class ModelTerms:
    """All that a prediction needs.

    Attributes
    ----------
    n_outputs : int
        Linear predictors per row, K.
    link : {"identity", "log", "logit", "softmax"}
    classes : ndarray or None
        In classification; for two classes and one linear predictor, the second one's is positive.
    columns : dict of str -> str
        The columns that terms use: "category", "number", or "date", "date in UTC" (with a time zone) and "duration",
        which are numbers of days, dates since 1970-01-01.
    codings, tables, terms
    offset : OffsetColumn or None
    checked : tuple of (str, int)
        Columns, and their codings, in which a value without a code is an error.
    features : tuple of str
        All columns of fit, in order.
    derived : dict of str -> Derived
        Those of `columns` that are made of others.
    """

    n_outputs: int
    link: str
    classes: NDArray[Any] | None
    columns: dict[str, str]
    codings: tuple[Coding, ...]
    tables: tuple[Lookup, ...]
    terms: tuple[TermRecord, ...]
    offset: OffsetColumn | None = None
    checked: tuple[tuple[str, int], ...] = ()
    features: tuple[str, ...] = ()
    derived: Mapping[str, Derived] = field(default_factory=dict)

    def source(self, column: str) -> str:
        """The column of the table that a column is made of, or is."""
        return self.derived[column].source if column in self.derived else column


MOMENTS = {"dates": "date", "dates with a time zone": "date in UTC", "durations": "duration"}
"""What numeric columns are that hold no plain numbers, by their measure in words."""


def to_terms(model: Any, base: Any = None) -> ModelTerms:
    """The terms of a fitted wide model.

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
    base : mapping of term -> category, "largest" or None, default None
        As in `coef_table`.

    Raises
    ------
    TypeError
        It is another estimator.
    ValueError
        A term depends on more than codes and numbers.
    """
    if not isinstance(getattr(model, "model_", None), WideModel):
        check_is_fitted(model)
        raise TypeError(f"{type(model).__name__} is no wide model; its terms are not those of a sum.")
    if model.handle_unknown == "similar":
        name = next((block.name for block in model.model_.spec.blocks if len(block.columns) == 1), "of a column")
        raise ValueError(
            f"handle_unknown='similar' estimates an unknown category of the term {name!r} from its whole row, which is "
            "no lookup; set_params(handle_unknown='neutral') to export the model without it."
        )
    if getattr(model, "_had_offset", False):
        warn_user(
            f"{type(model).__name__} was fitted with offset=, which an export does not hold; add it to the linear "
            "predictor, or fit with offset_column."
        )
    fitted: WideModel = model.model_
    builder = _TermsOfModel(fitted)
    terms = builder.terms()
    tables = builder.tables if base is None else with_bases(model, base, builder.tables, builder.table_of, terms)
    checked = builder.checked() if model.handle_unknown == "error" else ()
    links = {losses.LOGISTIC: "logit", losses.MULTINOMIAL: "softmax"}
    return _used(
        ModelTerms(
            fitted.n_outputs,
            "log" if fitted.loss.log_link else links.get(fitted.loss.code, "identity"),
            getattr(model, "classes_", None),
            builder.kinds(getattr(model, "_moments", {})),
            tuple(builder.codings),
            tuple(tables),
            tuple(terms),
            getattr(model, "_offset_column", None),
            checked,
            _features(model),
        )
    )


def _features(model: Any) -> tuple[str, ...]:
    """The columns of fit by the names that terms know them by, which of columns without names are made."""
    made = getattr(model, "_names_made", [f"x{index}" for index in range(model.n_features_in_)])
    return tuple(map(str, getattr(model, "feature_names_in_", made)))


class _TermsOfModel:
    """Builds the records of a model's spec."""

    def __init__(self, model: WideModel) -> None:
        self.model, self.spec = model, model.spec
        self.codings: list[Coding] = []
        self.tables: list[Lookup] = []
        self._coding_of: dict[int, int] = {}  # source -> coding
        self.table_of: dict[int, int] = {}  # block -> table

    def terms(self) -> list[TermRecord]:
        """The terms, with count effects added to the lookup of the same combinations."""
        terms = [self._term(term) for term in self.spec.terms]
        counts = {
            table: block
            for block, table in self.table_of.items()
            if isinstance(source_of(self.spec, block), CountEffect)
        }
        retained = [term for term in terms if not any(factor.table in counts for factor in term.lookups)]
        for term in terms:
            for factor in term.lookups:
                if factor.table in counts:
                    self._add_count(retained, term, factor, counts[factor.table])
        return retained

    def kinds(self, moments: dict[str, str]) -> dict[str, str]:
        """What each column is; `moments`: the measures of numeric columns of dates or durations."""
        kinds = {name: MOMENTS.get(moments.get(name, ""), "number") for name in self.spec.number_columns}
        for source in self.spec.sources:
            if isinstance(source, CategoricalSource):
                kinds |= dict.fromkeys(source.columns, "category")
        return kinds

    def checked(self) -> tuple[tuple[str, int], ...]:
        """The categorical columns that are looked up by themselves, as the check of unknown categories goes."""
        columns = []
        for read in self.spec.reads:
            source = self.spec.blocks[read.block].source
            if source is not None and isinstance(self.spec.sources[source], CategoricalSource):
                columns.append((read.columns[0], self._coding(source)))
        return tuple(dict.fromkeys(columns))

    def _term(self, term: Term) -> TermRecord:
        lookups = tuple(
            LookupFactor(self._table(factor.block), factor.columns, factor.component) for factor in term.factors
        )
        return TermRecord(term_name(self.spec, term), term.constant, self._numbers(term), lookups)

    def _numbers(self, term: Term) -> tuple[NumberFactor, ...]:
        if term.numeric is None:
            return ()
        numeric = self.spec.numerics[term.numeric]
        if numeric.missing_ok and isinstance(numeric.nodes[0], ColumnRef):
            return (NumberFactor(numeric.nodes[0], self.model.numerics[term.numeric].mean),)
        return tuple(NumberFactor(node) for node in numeric.nodes)

    def _table(self, block: int) -> int:
        if block not in self.table_of:
            self.tables.append(self._lookup(block))
            self.table_of[block] = len(self.tables) - 1
        return self.table_of[block]

    def _lookup(self, index: int) -> Lookup:
        block, coefs = self.spec.blocks[index], self.spec.coefs(index)
        values = self.model.theta[coefs].reshape(-1, block.rank, self.model.n_outputs)
        rows, default = self.model.counts[coefs][:: block.rank], self.model.neutral(index)
        certain = self.model.uncertainty
        sd = None if certain is None else certain.sd[coefs].reshape(values.shape)
        if block.source is None:
            return Lookup(block.name, (), np.zeros((1, 0), dtype=np.int32), values, default, rows, sd)
        source = self.spec.sources[block.source]
        if isinstance(source, CountEffect):  # by category, of the count that each has
            codings, codes = self._positions(source.of)
            bins = source.codes(np.append(np.arange(len(codes), dtype=np.int32), np.int32(UNSEEN)))
            values = values[bins]
            rows = np.zeros(len(codes), dtype=np.int64)
            return Lookup(block.name, codings, codes, values[:-1], values[-1], rows)
        codings, codes = self._positions(block.source)
        if isinstance(source, Flag):  # two codes: missing, and any number
            values, rows = np.concatenate([values, np.zeros_like(values)]), np.append(rows, 0)
            sd = None if sd is None else np.concatenate([sd, np.full_like(sd, np.nan)])
        return Lookup(block.name, codings, codes, values, default, rows, sd)

    def _positions(self, index: int) -> tuple[tuple[int, ...], NDArray[np.int32]]:
        """The codings of a source's positions, and its combinations (m, positions)."""
        source = self.spec.sources[index]
        if isinstance(source, Crossing):
            left, right = source.interaction.pairs()
            codings, codes = self._positions(source.left)
            right_codings, last = self._positions(source.right)
            return codings + right_codings, np.column_stack([codes[left], last[right]]).astype(np.int32)
        coding = self._coding(index)
        return (coding,), np.arange(len(self.codings[coding]), dtype=np.int32)[:, None]

    def _coding(self, index: int) -> int:
        if index not in self._coding_of:
            source = self.spec.sources[index]
            if isinstance(source, CategoricalSource):
                made = Coding(categories=source.vocabulary.categories)
            elif isinstance(source, Bins):
                made = Coding(bounds=source.bounds, missing=source.missing)
            else:
                assert isinstance(source, Flag)
                made = Coding(bounds=np.empty(0), missing=True)
            self.codings.append(made)
            self._coding_of[index] = len(self.codings) - 1
        return self._coding_of[index]

    def _add_count(self, retained: list[TermRecord], term: TermRecord, factor: LookupFactor, block: int) -> None:
        count_effect = source_of(self.spec, block)
        assert isinstance(count_effect, CountEffect)
        count_table, block_of = self.tables[factor.table], {table: block for block, table in self.table_of.items()}
        for index, candidate in enumerate(retained):
            alone = (
                len(candidate.lookups) == 1 and not candidate.numbers and candidate.lookups[0].columns == factor.columns
            )
            if alone and self.spec.blocks[block_of[candidate.lookups[0].table]].source == count_effect.of:
                table = self.tables[candidate.lookups[0].table]
                self.tables[candidate.lookups[0].table] = replace(
                    table,
                    values=candidate.constant * table.values + term.constant * count_table.values,
                    default=candidate.constant * table.default + term.constant * count_table.default,
                )
                retained[index] = replace(candidate, constant=1.0)
                return
        retained.append(term)


def with_bases(
    model: Any, base: Any, tables: Sequence[Lookup], table_of: Mapping[int, int], terms: Sequence[TermRecord]
) -> list[Lookup]:
    """The lookup tables with 0 at each base category, and what that had in the intercept.

    Parameters
    ----------
    model : fitted wide model
    base : mapping of term -> category, or "largest"
        As in `coef_table`; "largest" leaves out the terms that no intercept belongs to, but for those that cancel, as
        strengths of teams.
    tables : sequence of Lookup
        Count effects are in their categories.
    table_of : mapping of block -> table
    terms : sequence of TermRecord

    Raises
    ------
    ValueError
        `base` names what is no term or category, or a factor of a product.
    """
    fitted, frames, shifted = model.model_, model.coefs_, list(tables)
    bases = bases_taken_up(base, fitted, frames, fitted.n_outputs)
    shifts = shifts_of_scalars(fitted, frames, bases)
    scalars = {mean.block: mean.moved_to for mean in fitted.spec.means}
    constants = [0.0] * len(tables)  # what each table is multiplied by, over the terms that use it
    for record in terms:
        for factor in record.lookups:
            constants[factor.table] += record.constant
    for block, term in enumerate(fitted.spec.blocks):
        if term.name not in bases:
            continue
        index, scalar_block = table_of[block], scalars[block]
        frame, table = frames[term.name], shifted[index]
        at = position_of(frame, bases[term.name], term.name, split_frame(frame, fitted.n_outputs))
        shift = table.values[at]
        sd = table.sd
        if sd is not None:
            rows = range(len(table.values))
            sd = deviations_of_differences(fitted, term.name, rows, [at] * len(rows)).reshape(table.values.shape)
        shifted[index] = replace(table, values=table.values - shift, default=table.default - shift, sd=sd)
        if scalar_block is None or not constants[index]:  # it cancels
            continue
        into = table_of[scalar_block]
        scalar = shifted[into]
        known = scalar.sd is not None
        shifted[into] = replace(
            scalar,
            values=scalar.values + constants[index] / constants[into] * shift,
            sd=np.reshape(shifts[fitted.spec.blocks[scalar_block].name].sd, scalar.values.shape) if known else None,
        )
    return shifted


def _used(model_terms: ModelTerms) -> ModelTerms:
    """Without terms that are 0 in every row, and the tables, codings and columns that only these use."""

    def is_zero(factor: LookupFactor) -> bool:
        lookup = model_terms.tables[factor.table]
        return not lookup.values[:, factor.component].any() and not lookup.default[factor.component].any()

    terms = [term for term in model_terms.terms if not any(map(is_zero, term.lookups))]
    tables = sorted({factor.table for term in terms for factor in term.lookups})
    codings = sorted(
        {coding for table in tables for coding in model_terms.tables[table].codings}
        | {coding for _, coding in model_terms.checked}
    )
    new_table, new_coding = _numbered(tables), _numbered(codings)
    names = {name for term in terms for factor in term.lookups for name in factor.columns} | {
        name for name, _ in model_terms.checked
    }
    names |= {
        name for term in terms for number in term.numbers for name in (ref.name for ref in columns_read(number.node))
    }
    return replace(
        model_terms,
        columns={name: kind for name, kind in model_terms.columns.items() if name in names},
        codings=tuple(model_terms.codings[coding] for coding in codings),
        tables=tuple(
            replace(
                model_terms.tables[table],
                codings=tuple(new_coding[coding] for coding in model_terms.tables[table].codings),
            )
            for table in tables
        ),
        terms=tuple(
            replace(term, lookups=tuple(replace(factor, table=new_table[factor.table]) for factor in term.lookups))
            for term in terms
        ),
        checked=tuple((name, new_coding[coding]) for name, coding in model_terms.checked),
    )


def _numbered(indices: Sequence[int]) -> dict[int, int]:
    return {index: number for number, index in enumerate(indices)}
