"""A fitted column of `TIWSEncoder`: the options and the target that it is fitted by, checked, and how it encodes rows.

Known categories are encoded by their estimates, others from their rows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from tabsym.categories import UNSEEN, Categories, RawCodes, encode_column
from tabsym.categories.lazy import MAX_TARGET_CELLS, LazyRows, LazyTarget, sizes_of
from tabsym.encoders.base import refuse_missing, refuse_unknown
from tabsym.encoders.lookups import with_missing
from tabsym.frame import Table, check_classes, check_regression_target, check_target, holds_classes, name_of_target
from tabsym.jit import in_threads
from tabsym.messages import check_declared_options, plural
from tabsym.models.export_terms import Coding
from tabsym.tiws.column import FittedColumn, Method, Observed, Unseen, UnseenRows, unseen_rows
from tabsym.tiws.counts import CategoryWords, TableCounts, codes_of

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


def fit_columns(
    encoder: Any, counts: TableCounts, encoded: list[str], classes: NDArray[np.generic] | None, names_in: list[str]
) -> dict[str, TIWSColumn]:
    """What is fitted of each encoded column, by counts, with an output column for each of more than two classes."""
    method = Method(encoder.method, bool(encoder.names), encoder.smooth, encoder.idf_rows)

    def fit(name: str) -> TIWSColumn:
        number = names_in.index(name)
        categories = categories_of(counts, number).categories.tolist()
        fitted = FittedColumn.fit(number, method, categories, counts.pairs, counts.sums[number])
        names, shown = [name], [0 if classes is None else 1]
        if classes is not None and len(classes) > 2:
            names, shown = [f"{name}_{label}" for label in classes], list(range(len(classes)))
        flag = f"{name}_unknown" if encoder.indicator else None
        return TIWSColumn(names if flag is None else [*names, flag], fitted, shown, flag)

    return dict(zip(encoded, in_threads(fit, encoded, encoder.n_jobs), strict=True))


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
        codes = categories_of(self.counts, self.columns[name].fitted.number).transform(raw)
        if self.handle_unknown == "error":
            refuse_unknown(name, raw, (codes == UNSEEN) & (raw.codes >= 0))
        return codes, raw

    def unseen(
        self, table: Table, name: str, *, context: str | None = None, anew: bool = False,
        words: list[NDArray[np.int32]] | None = None,
    ) -> UnseenRows:  # fmt: skip
        """Rows with an unknown category of a column; `anew`: without what was observed; `words`: if known already."""
        codes, raw = self.codes(table, name)
        n_words = int(self.counts.offsets[-1])
        if not (codes == UNSEEN).any():
            none = np.empty(0, dtype=np.int64)
            return UnseenRows(none, none, Observed.none(n_words).all())
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
            nan = np.zeros(len(codes), dtype=bool)
            if self.handle_missing == "return_nan":
                nan |= raw.codes < 0
            if self.handle_unknown == "return_nan":
                nan |= (codes == UNSEEN) & (raw.codes >= 0)
            if ((codes == UNSEEN) & ~nan).any():
                words = codes_of(table, self.counts.words) if words is None else words
                unknown = self.unseen(table, name, words=words)
                values[unknown.rows] = state.fitted.unseen_estimates(unknown.unseen)[unknown.which]
            values[nan] = np.nan
            out[name] = state.outputs(values, codes == UNSEEN)
        return out

    def intervals(self, table: Table, level: float, *, shares: bool) -> dict[str, Floats]:
        """Bounds (n,) by name, NaN for known categories; `shares`: they lie between 0 and 1."""
        columns: dict[str, Floats] = {}
        for name, state in self.columns.items():
            unknown = self.unseen(table, name)
            low, high = state.fitted.intervals(unknown.unseen, level)
            if shares:
                low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
            for position, shown in enumerate(state.shown):
                for side, bound in (("lower", low), ("upper", high)):
                    column = np.full(len(table), np.nan)
                    column[unknown.rows] = bound[unknown.which, shown]
                    columns[f"{state.names[position]}_{side}"] = column
        return columns

    def prior(self, table: Table, name: str) -> Floats:
        """Estimates (n, q) of one column where nothing is known, NaN as `handle_missing` says."""
        values = np.tile(self.columns[name].fitted.prior, (len(table), 1))
        if self.handle_missing == "return_nan":
            values[encode_column(table[name]).codes < 0] = np.nan
        return values

    def known(self, name: str) -> tuple[Coding, list[NDArray[np.generic]]]:
        """The coding of known categories, and the output columns of their codes, NaN for all that is unknown."""
        state = self.columns[name]
        categories = categories_of(self.counts, state.fitted.number).categories.tolist()
        codes, coding = with_missing(categories, self.handle_missing)
        estimates = state.fitted.estimates
        values = np.full((len(codes) + 1, estimates.shape[1]), np.nan)
        values[: len(categories)] = estimates
        if None in categories and self.handle_missing == "return_nan":
            values[categories.index(None)] = np.nan
        return coding, state.outputs(values, np.append(codes < 0, True))

    def check_is_lookup(self, name: str) -> None:
        """A `ValueError` where the encoding of a column depends on more than its category."""
        has_missing = categories_of(self.counts, self.columns[name].fitted.number).has_missing
        by_row = [
            f"handle_{what}='return_nan'"
            for what, how in (("unknown", self.handle_unknown), ("missing", self.handle_missing))
            if how not in ("return_nan", "error") and not (what == "missing" and has_missing)
        ]
        if by_row:
            raise ValueError(
                f"TIWSEncoder estimates unknown categories of column {name!r} from their whole rows, which is no "
                f"lookup; set_params({', '.join(by_row)}) to export the encoder without that."
            )


def categories_of(counts: TableCounts, number: int) -> Categories:
    """The categories of an encoded column."""
    words = counts.words[number]
    assert isinstance(words, CategoryWords)
    return words.vocabulary


MAX_ALONE = 20
"""Of more categories, several are left out together: left out alone, the mean of the others reveals its own."""
CATEGORY_FOLDS = 10
MIN_CATEGORIES = 3
"""Columns with fewer categories are not informative about a category that is left out."""


@dataclass(frozen=True)
class FittedFold:
    """The rows of a table that a fold holds out, as a table of their own, and what its training rows taught."""

    table: Table
    encoding: RowEncoding

    def as_unseen(self, name: str, random_state: Any) -> Floats:
        """Estimates (m, q) of the rows: of categories that training has, by its other categories."""
        fitted = self.encoding.columns[name].fitted
        codes, raw = self.encoding.codes(self.table, name)
        groups = folds_of_categories(fitted.sums.rows, random_state)
        values = np.append(fitted.held_out(groups), np.zeros((1, fitted.estimates.shape[1])), axis=0)[codes]
        if (codes == UNSEEN).any():
            unknown = self.encoding.unseen(self.table, name)
            values[unknown.rows] = fitted.unseen_estimates(unknown.unseen)[unknown.which]
        if self.encoding.handle_missing == "return_nan":
            values[raw.codes < 0] = np.nan
        return values


def folds_of_categories(rows: Floats, random_state: Any) -> NDArray[np.int64]:
    """The group (l,) that each category is left out with: alone where there are few."""
    if len(rows) <= MAX_ALONE:
        return np.arange(len(rows))
    rng = np.random.RandomState(random_state) if not isinstance(random_state, np.random.RandomState) else random_state
    return rng.permutation(len(rows)) % CATEGORY_FOLDS


def print_columns(states: dict[str, TIWSColumn]) -> None:
    """Number of categories, and the fraction of their variance that contexts explain, by which kernel."""
    for name, fitted in ((name, state.fitted) for name, state in states.items()):
        share = fitted.covariance.share
        finding = (
            f"contexts explain {share:.0%} of the variance between categories (kernel {fitted.covariance.kernel})"
            if share
            else "contexts are uninformative"
        )
        print(f"{name}: {plural(len(fitted.categories), 'category', 'categories')}, {finding}", file=sys.stderr)


def donor_table(state: TIWSColumn, unknown: list[tuple[Unseen, Any]], n_donors: int) -> pd.DataFrame:
    """The heaviest donors of categories; `unknown`: such categories, with the codes of those that are known."""
    fitted = state.fitted
    estimates = fitted.estimates[:, state.shown]
    records: list[list[Any]] = []
    for unseen, codes in unknown:
        donors, by_category = fitted.shown_weights(unseen, codes)
        for category, weights in zip(unseen.categories, by_category, strict=True):
            for position in np.argsort(-weights, kind="stable")[:n_donors]:
                if weights[position] > 0:
                    donor = donors[position]
                    known = [*estimates[donor].tolist(), fitted.sums.rows[donor]]
                    records.append([category, fitted.categories[donor], weights[position], *known])
    several = [f"estimate_{name}" for name in state.names[: len(state.shown)]]
    labels = several if len(several) > 1 else ["estimate"]
    return pd.DataFrame(records, columns=["category", "donor", "weight", *labels, "rows"])


def carried_over(
    observed: dict[str, Observed], before: TableCounts, now: TableCounts, columns: dict[str, TIWSColumn]
) -> dict[str, Observed]:
    """What was observed by the words of `before`, by those of `now`, without categories that are seen by now."""
    positions = before.positions_among(now.words)
    of_words = np.concatenate([now.offsets[j] + position for j, position in enumerate(positions)])
    out = {}
    for name, old in observed.items():
        known = set(columns[name].fitted.categories)
        keep = np.array([category not in known for category in old.categories], dtype=bool)
        out[name] = old.placed(of_words, int(now.offsets[-1]), keep)
    return out


# -- what is given, checked ------------------------------------------------------------------------


def check_options(encoder: Any) -> None:
    """A `ValueError` that names the argument and what it can be."""
    check_declared_options(encoder)
    if encoder.names and encoder.method == "poster":
        raise ValueError("names=True needs method='documents'; set names=False with method='poster'.")
    numeric, allowed = encoder.numeric, ("modl", "quantile", "passthrough")
    if isinstance(numeric, str) and numeric in allowed:
        return
    words = ", ".join(map(repr, allowed))
    if not isinstance(numeric, Mapping):
        raise ValueError(
            f"numeric={numeric!r} is not known; use one of {words}, or a dict of column names and edges (or one of "
            "these words)."
        )
    for name, edges in numeric.items():
        if isinstance(edges, str):
            if edges not in allowed:
                raise ValueError(f"numeric has {edges!r} for column {name!r}; use one of {words}, or edges.")
            continue
        try:
            values = np.asarray(edges, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.ndim != 1 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
            raise ValueError(f"The edges of column {name!r} in numeric must be ascending finite numbers.")


@dataclass(frozen=True)
class TargetComponents:
    """`y` (n, q): the target, or the indicators of all `classes`; `codes` (n,) for classification."""

    y: Floats
    classes: NDArray[Any] | None
    codes: NDArray[Any]


def components(
    y: Any, n_rows: int, target_type: str, caller: str, classes: Any = None, weight: Floats | None = None
) -> TargetComponents:
    """The target of a table, checked; `classes`: all that there can be, if they are known.

    Otherwise classes whose rows all have `weight` (n,) 0 are absent, as these rows are.
    """
    if classes is not None:
        if target_type == "continuous":
            raise ValueError("target_type='continuous' has no classes; leave classes out.")
        distinct = np.unique(column_or_1d(classes))
        if len(distinct) < 2:
            raise ValueError(f"classes={list(classes)!r} is not possible; give all classes, at least 2.")
        return further(y, n_rows, distinct, caller)
    if holds_classes(check_target(y, n_rows, caller), target_type, caller, name_of_target(y), rows=weight):
        coded = check_classes(y, n_rows, caller=caller).weighed(weight)
        if len(coded.classes) < 2:
            raise ValueError(
                f"{caller} needs at least 2 classes, but the rows of positive weight have 1 class only "
                f"({coded.classes.tolist()[0]!r}); choose another target or other weights."
            )
        return TargetComponents(np.eye(len(coded.classes))[coded.codes], coded.classes, coded.codes)
    return further(y, n_rows, None, caller)


def lazy_target(rows: LazyRows, target_type: str, caller: str) -> LazyTarget | None:
    """The classes of a lazy frame's target, checked; None where it holds numbers."""
    name = rows.target
    assert name is not None
    if target_type != "classes" and rows.is_number(name) and rows.n_distinct(name) > MAX_TARGET_CELLS:
        ends = rows.total(low=nw.col(name).min(), high=nw.col(name).max())
        check_regression_target(list(ends.values()), 2, caller=caller)
        return None
    groups = rows.groups([nw.col(name)])
    column = rows.read(groups, "k0", name)
    series = column.series.to_native()
    values = check_target(series, len(groups), caller)
    if holds_classes(values, target_type, caller, name, rows=sizes_of(groups)):
        coded = check_classes(series, len(groups), caller=caller)
        return LazyTarget.of(nw.col(name), coded.classes, column, coded.codes)
    check_regression_target(series, len(groups), caller=caller)
    return None


def further(
    y: Any, n_rows: int, classes: NDArray[Any] | None, caller: str, weight: Floats | None = None
) -> TargetComponents:
    """The target of a further piece of a table, with the classes of the first; rows of `weight` 0 may have others."""
    if classes is None:
        values = check_regression_target(y, n_rows, caller=caller)
        return TargetComponents(values[:, None], None, values)
    if weight is not None:
        counted = check_classes(y, n_rows, caller=caller).weighed(weight)
        y = counted.classes[counted.codes]
    coded = check_classes(y, n_rows, classes=classes, caller=caller)
    return TargetComponents(np.eye(len(classes))[coded.codes], coded.classes, coded.codes)


def check_same_classes(given: Any, before: NDArray[Any] | None) -> None:
    """A `ValueError` where the classes given with a further piece are not those of the first."""
    if given is None:
        return
    if before is None:
        raise ValueError("classes were given, but the target held numbers before; leave classes out.")
    if not np.array_equal(np.unique(column_or_1d(given)), before):
        raise ValueError(
            f"classes={list(given)!r} is not the same as on last call to partial_fit, was: {before.tolist()!r}; leave "
            "classes out."
        )


def check_mergeable(one: Any, other: Any) -> None:
    """A `ValueError` where the counts of two fitted encoders cannot be added."""
    if one._names_in != other._names_in or list(one.columns_) != list(other.columns_):
        raise ValueError("merge needs encoders of the same columns, in the same order.")
    classes = [None if encoder._classes is None else encoder._classes.tolist() for encoder in (one, other)]
    if classes[0] != classes[1]:
        targets = ["numbers" if labels is None else f"the classes {labels}" for labels in classes]
        raise ValueError(f"merge needs encoders of the same target; these have {targets[0]} and {targets[1]}.")
    for a, b in zip(one.counts_.words, other.counts_.words, strict=True):
        if type(a) is not type(b) or not np.array_equal(getattr(a, "edges", ()), getattr(b, "edges", ())):
            raise ValueError(
                f"Column {a.name!r} was cut into other intervals in the two encoders; give both the same edges: "
                "numeric={'column': [...]}."
            )
