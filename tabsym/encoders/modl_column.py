"""A column of MODLEncoder: options, parts, the part of each row, their encodings (groups, weight of evidence, ...).

The options are `splits`, `special_codes` and `monotonic`: what they hold, and what a column makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories import UNSEEN, Categories, RawCodes, encode_columns
from tabsym.categories.contingency import Contingency
from tabsym.encoders.base import refuse_missing, refuse_unknown
from tabsym.encoders.lookups import MISSING, ColumnLookup, refuse_checks, stacked, with_missing
from tabsym.encoders.tiws import TIWSEncoder
from tabsym.frame import (
    NUMBERS,
    Column,
    Kind,
    Labels,
    Measure,
    StoredType,
    Table,
    exact_number,
    exact_parts,
    exact_values,
    frame_of,
    library_of_frame,
    restored,
    restored_column,
)
from tabsym.frame.storage import object_array
from tabsym.jit import in_threads, one_blas_thread
from tabsym.models.export_terms import Coding
from tabsym.modl import Given, Groups, Intervals, Settings, fit_column
from tabsym.modl.columns import plain

Floats = NDArray[np.float64]

_KINDS = {"numbers": "number", "dates": "date", "dates with a time zone": "date in UTC", "durations": "duration"}


@dataclass(frozen=True)
class MODLColumn:
    """State of one column: its parts, and what each part is encoded as.

    `vocabulary` and `part_of` (categories,) are of categorical columns; `values` (I, outputs) is None for groups as
    categories.
    """

    name: str
    fitted: Intervals | Groups
    names: list[str]
    values: Floats | None
    vocabulary: Categories | None = None
    part_of: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, name: str, fitted: Intervals | Groups, names: list[str], values: Floats | None) -> MODLColumn:
        """With the vocabulary of groups."""
        if isinstance(fitted, Intervals):
            return cls(name, fitted, names, values)
        return cls(name, fitted, names, values, Categories(name, fitted.categories), fitted.labels_of)

    def constant_names(self) -> list[str]:
        """Output columns in which all parts are the same."""
        if self.values is None:
            return self.names if self.fitted.partition.n_parts == 1 else []
        same = (self.values == self.values[:1]).all(axis=0)
        return [name for name, constant in zip(self.names, same, strict=True) if constant]


@one_blas_thread()
def partition_columns(
    tables: dict[str, Contingency], settings: dict[str, Settings], *, classes: bool, n_jobs: int | None
) -> dict[str, Intervals | Groups]:
    """The parts of every column, from its counts."""

    def learn(name: str) -> Intervals | Groups:
        return fit_column(tables[name], settings[name], classes=classes)

    return dict(zip(tables, in_threads(learn, list(tables), n_jobs), strict=True))


def outputs_of(name: str, fitted: Intervals | Groups, output: str) -> tuple[list[str], Floats | None]:
    """Names of the output columns, and what each part is in them (I, outputs)."""
    target, n = fitted.target, fitted.partition.n_parts
    if output == "group":
        return [name], None
    if output == "onehot":
        return [f"{name}_{part}" for part in range(1, n + 1)], np.eye(n)  # boosters refuse brackets in names
    if output == "mean":
        if target.means is None:
            raise ValueError(
                f"output='mean' needs regression or two classes, and the target has {len(target.names)} classes; "
                "use output='probability'."
            )
        return [name], target.means[:, None]
    if output == "logodds" and not target.is_classes:
        raise ValueError(
            "output='logodds' needs classification, and the target is continuous; use 'mean' or 'probability'."
        )
    alone = output == "logodds" and len(target.names) == 2
    words = target.names if target.is_classes else range(1, len(target.names) + 1)
    names = [name] if alone else [f"{name}_{word}" for word in words]
    return names, estimates(target.counts, output)


def estimates(counts: Floats, output: str) -> Floats:
    """The smoothed shares or log odds (I, outputs) of parts with these counts (I, T)."""
    has_rows = counts.any(axis=1)
    if not has_rows.all():  # parts that the user gave, without a row: as one part of all rows
        out = np.repeat(estimates(counts.sum(axis=0, keepdims=True), output), len(counts), axis=0)
        out[has_rows] = estimates(counts[has_rows], output)
        return out
    n, classes = counts.shape
    if output == "probability":
        return np.asarray((counts + 1) / (counts.sum(axis=1, keepdims=True) + classes))
    others = counts.sum(axis=1, keepdims=True) - counts
    odds = np.log((counts + 1) / (counts.sum(axis=0) + n)) - np.log((others + 1) / (others.sum(axis=0) + n))
    return np.asarray(odds[:, 1:] if classes == 2 else odds)


@dataclass(frozen=True)
class Output:
    """How rows are encoded: the encoder's option `output`, what becomes of unknown categories and missing values.

    `labelled`: groups are categories; in arrays, which have none, they are the numbers of the parts.
    """

    output: str
    handle_missing: str
    handle_unknown: str
    labelled: bool = False

    def columns(self, state: MODLColumn, parts: NDArray[Any]) -> list[Any]:
        """The output columns (n,) of a column, from the part of each row; NaN for those below 0."""
        if state.values is None and self.labelled:
            is_ordered = isinstance(state.fitted, Intervals) and not state.fitted.specials
            return [Labels(parts, state.fitted.labels, is_ordered)]
        if state.values is None:
            return [np.where(parts < 0, np.nan, parts) if self._can_be_nan else parts]
        values = look_up(state.values, parts)
        return list((values.astype(np.int8) if self.output == "onehot" and not self._can_be_nan else values).T)

    @property
    def _can_be_nan(self) -> bool:
        """Whether some row can be encoded as NaN; types of output go by this, so that no batch changes them."""
        return "return_nan" in (self.handle_missing, self.handle_unknown)


# -- the part of each row --------------------------------------------------------------------------


def parts_of_rows(table: Table, states: dict[str, MODLColumn], how: Output) -> dict[str, NDArray[Any]]:
    """The part of each row (n,), by column; UNSEEN and MISSING where they are to be NaN."""
    categorical = [table[name] for name, state in states.items() if state.vocabulary is not None]
    column_codes = dict(zip([column.name for column in categorical], encode_columns(categorical), strict=True))
    return {
        name: _group_of(state, column_codes[name], how)
        if name in column_codes
        else _interval_of(state, table[name], how.handle_missing)
        for name, state in states.items()
    }


def _interval_of(state: MODLColumn, column: Column, handle_missing: str) -> NDArray[np.int64]:
    assert isinstance(state.fitted, Intervals)
    column = column.as_numbers()
    missing = np.isnan(column.values)
    column.check_measure(state.fitted.measure)
    parts = state.fitted.parts(column.values if state.fitted.bound_rests is None else exact_values(column, always=True))
    if handle_missing == "error":
        refuse_missing(column.name, missing)
    return np.where(missing, MISSING, parts) if handle_missing == "return_nan" else parts


def _group_of(state: MODLColumn, raw: RawCodes, how: Output) -> NDArray[np.int64]:
    assert isinstance(state.fitted, Groups) and state.vocabulary is not None and state.part_of is not None
    missing = raw.codes < 0
    if how.handle_missing == "error":
        refuse_missing(state.name, missing)
    codes = state.vocabulary.transform(raw)
    unseen = (codes == UNSEEN) & ~missing
    if how.handle_unknown == "error":
        refuse_unknown(state.name, raw, unseen)
    parts = np.append(state.part_of, _part_of_unknown(state, how))[codes]  # UNSEEN, -1, reads the last
    if how.handle_unknown == "return_nan":
        parts = np.where(unseen, UNSEEN, parts)
    return np.where(missing, MISSING, parts) if how.handle_missing == "return_nan" else parts


def _part_of_unknown(state: MODLColumn, how: Output) -> int:
    """The part of a category that fit has not seen: that of missing values, or the default group."""
    assert state.vocabulary is not None and state.part_of is not None and isinstance(state.fitted, Groups)
    if how.handle_unknown == "missing" and state.vocabulary.has_missing:
        return int(state.part_of[state.vocabulary.missing_code])
    return state.fitted.default


# -- unknown categories, by the known ones in rows like theirs -------------------------------------


def fit_donors(encoder: Any, X: Any, y: Any, sample_weight: Any, categorical: list[str]) -> TIWSEncoder | None:
    """The neighbours of categories of these columns; None where there are none."""
    if not categorical:
        return None
    kind = "classes" if encoder._classes else "continuous"
    donors = TIWSEncoder(cols=categorical, numeric="quantile", target_type=kind, cv=None, n_jobs=encoder.n_jobs)
    return donors.fit(X, y, sample_weight)


def with_donors(
    donors: TIWSEncoder | None, table: Table, columns: dict[str, MODLColumn], parts: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The part of each row (n,), by column; unknown categories go to the group that has most of their donors' weight.

    Rows that are to be NaN, with a part below 0, stay so.
    """
    if donors is None:
        return parts
    out = dict(parts)
    for name in columns.keys() & donors.columns_.keys():
        unknown, state, fitted = donors.unseen_rows(table, name), columns[name], donors.columns_[name].fitted
        if not len(unknown.rows):
            continue
        assert state.vocabulary is not None and state.part_of is not None
        position = {category: code for code, category in enumerate(state.vocabulary.categories.tolist())}
        group_of = state.part_of[[position[fitted.categories[code]] for code in fitted.donors]]
        weight_of = np.zeros((len(unknown.unseen), state.fitted.partition.n_parts))  # of unknown categories, by group
        np.add.at(weight_of.T, group_of, fitted.weights(unknown.unseen).T)
        group = weight_of.argmax(axis=1)[unknown.which]
        changed = out[name].copy()
        changed[unknown.rows] = np.where(changed[unknown.rows] < 0, changed[unknown.rows], group)
        out[name] = changed
    return out


# -- what rows are encoded as ----------------------------------------------------------------------


def look_up(values: Floats, parts: NDArray[Any]) -> Floats:
    """The values (n, outputs) of parts (n,), NaN for those below 0."""
    out = values[np.maximum(parts, 0)]
    out[parts < 0] = np.nan
    return out


# -- back to the table -----------------------------------------------------------------------------


def restored_frame(encoded: Table, types: Mapping[str, StoredType], states: Mapping[str, MODLColumn]) -> Any:
    """A frame of the columns of fit, of the types they had, from what they were encoded as."""
    native = encoded.native if encoded.named else None
    library = next(iter(types.values())).library if native is None else library_of_frame(native)
    columns = {}
    for (name, kind), column in zip(types.items(), encoded.columns, strict=True):
        state = states.get(name)
        columns[name] = (
            restored_column(column, kind, library, named=encoded.named)
            if state is None
            else restored(_values_of_parts(state, column), kind, library)
        )
    return frame_of(columns, library, native.index if isinstance(native, pd.DataFrame) else None)


def _values_of_parts(state: MODLColumn, column: Column) -> NDArray[Any]:
    """A value for each label or number of a part (n,): an interval's middle row's, a group's most frequent category."""
    fitted = state.fitted
    named = column.kind is Kind.CATEGORICAL
    position: dict[Any, int] = {label if named else part: part for part, label in enumerate(fitted.labels)}
    labels = column.series.to_list()
    for row, label in enumerate(labels):
        if not pd.isna(label) and label not in position:
            raise ValueError(
                f"Column {column.name!r} holds {label!r} (row {row}), which is none of its intervals or groups; "
                "pass what transform returned."
            )
    if isinstance(fitted, Intervals):
        if fitted.middle_rests is None or fitted.measure.name != "numbers":
            return np.array([fitted.middles[position[label]] if label in position else np.nan for label in labels])
        pairs = zip(fitted.middles.tolist(), fitted.middle_rests.tolist(), strict=True)
        middles = [None if np.isnan(middle) else exact_number(middle, rest) for middle, rest in pairs]
        return object_array([middles[position[label]] if label in position else None for label in labels])
    return object_array([fitted.groups[position[label]][0] if label in position else None for label in labels])


# -- as lookups, for exports and lazy frames --------------------------------------------------------


def lookup_of(name: str, state: MODLColumn, kept: list[str], how: Output) -> ColumnLookup:
    """The lookup of a fitted column; `kept`: its output columns that are wanted."""
    if isinstance(state.fitted, Intervals):
        return _of_intervals(name, state, state.fitted, kept, how)
    if how.handle_unknown == "similar":
        raise ValueError(
            f"handle_unknown='similar' finds the group of an unknown category of column {name!r} from its whole row, "
            "which is no lookup; set_params(handle_unknown='value') to export the encoder, or to encode lazy frames."
        )
    assert state.vocabulary is not None and state.part_of is not None
    categories = state.vocabulary.categories.tolist()
    codes, coding = with_missing(categories, how.handle_missing)
    default = _part_of_unknown(state, how)
    parts = np.append(state.part_of[codes[codes >= 0]], np.full((codes < 0).sum(), default))
    if how.handle_missing == "return_nan":
        parts[[category is None for category in coding.categories]] = MISSING  # type: ignore[union-attr]
    parts = np.append(parts, UNSEEN if how.handle_unknown == "return_nan" else default)
    values = _lookup_values(state, parts, kept, how)
    return ColumnLookup(name, "category", kept, coding, values, how.handle_unknown == "error")


def _of_intervals(name: str, state: MODLColumn, fitted: Intervals, kept: list[str], how: Output) -> ColumnLookup:
    if fitted.bound_rests is not None:
        raise ValueError(
            f"The intervals of column {name!r} have bounds that 64-bit floats round, which an export and the encoding "
            "of a lazy frame do not hold; make its values text, or subtract the smallest one, before fit."
        )
    if how.handle_missing == "error":
        refuse_checks(name)
    bounds = fitted.bounds[np.isfinite(fitted.bounds)]
    codes = np.array([code for codes in fitted.specials for code in codes if not np.isnan(code)])
    finite = np.unique(np.concatenate([bounds, codes, np.nextafter(codes, -np.inf)]))  # a bin holds one code alone
    missing = MISSING if how.handle_missing == "return_nan" else int(fitted.parts(np.array([np.nan]))[0])
    last = finite[-1:] + np.maximum(np.abs(finite[-1:]), 1.0) if len(finite) else np.zeros(1)
    parts = np.concatenate([[missing], fitted.parts(np.append(finite, last)), [missing]])
    values = _lookup_values(state, parts, kept, how)
    coding = Coding(bounds=finite, missing=True)
    return ColumnLookup(name, _KINDS[str(fitted.measure)], kept, coding, values, False)


def _lookup_values(state: MODLColumn, parts: NDArray[Any], kept: list[str], how: Output) -> NDArray[Any]:
    if state.values is None and how.labelled:
        labels = object_array([None if part < 0 else state.fitted.labels[part] for part in parts.tolist()])
        return labels[:, None] if kept else np.empty((len(parts), 0))
    columns = dict(zip(state.names, how.columns(state, parts), strict=True))
    return stacked([columns[new] for new in kept], len(parts)).astype(np.float64)


# -- the options `splits`, `special_codes` and `monotonic` -----------------------------------------

DIRECTIONS = "'auto', 1, -1, True or False"


def check_constraints(encoder: Any) -> None:
    """A `ValueError` where an option holds what no column can take, or two of them contradict each other."""
    splits, codes = _lists("splits", encoder.splits), _lists("special_codes", encoder.special_codes)
    for name, value in splits.items():
        nested = [_is_list(entry) for entry in value]
        if any(nested) and not all(nested):
            raise ValueError(
                f"splits[{name!r}] holds lists and single values; use numbers for cut points, or a list for each group."
            )
    for option, given in (("splits", splits), ("special_codes", codes)):
        for name, value in given.items():
            _check_once(option, name, [plain(one) for part in value for one in (part if _is_list(part) else [part])])
    for name, value in codes.items():
        missing = any(code is None for part in _parts(value) for code in part)
        if missing and encoder.handle_missing != "value":
            raise ValueError(
                f"special_codes[{name!r}] makes missing values a part, and handle_missing={encoder.handle_missing!r} "
                "does not; use handle_missing='value'."
            )
    if isinstance(encoder.monotonic, Mapping):
        for name, value in encoder.monotonic.items():
            _direction(f"monotonic[{name!r}]", value)
            if name in splits:
                raise ValueError(
                    f"Column {name!r} is in splits, whose parts stay as they are; leave it out of monotonic."
                )
    elif not isinstance(encoder.monotonic, (bool, np.bool_)):
        raise ValueError(
            f"monotonic={encoder.monotonic!r} is not possible; use True, False or {{column: {DIRECTIONS}}}."
        )


def settings_of_columns(
    encoder: Any, settings: Settings, kinds: Mapping[str, Measure | None], *, classes: int | None
) -> dict[str, Settings]:
    """Options of the search for each column.

    `kinds`: the measure of numeric columns, None for categorical ones; `classes`: how many there are, None for numbers.
    """
    splits, codes = _lists("splits", encoder.splits), _lists("special_codes", encoder.special_codes)
    by_column: dict[Any, Any] = dict(encoder.monotonic) if isinstance(encoder.monotonic, Mapping) else {}
    for option, given in (("splits", splits), ("special_codes", codes), ("monotonic", by_column)):
        for name in given:
            if name not in kinds:
                listed = ", ".join(map(repr, kinds)) or "none"
                raise ValueError(f"{option} names {name!r}, which is no encoded column; the encoded ones are {listed}.")
    if encoder.monotonic is True or isinstance(encoder.monotonic, np.bool_):
        numeric = [name for name, measure in kinds.items() if measure is not None and name not in splits]
        by_column = dict.fromkeys(numeric, bool(encoder.monotonic))
    of_columns = {}
    for name, measure in kinds.items():
        is_given = name in splits or name in codes
        is_monotonic, direction = _direction(f"monotonic[{name!r}]", by_column.get(name, False))
        if is_monotonic and measure is None:
            raise ValueError(f"monotonic names {name!r}, whose categories have no order; leave it out.")
        if is_monotonic and classes is not None and classes > 2:
            remedy = f"leave {name!r} out" if isinstance(encoder.monotonic, Mapping) else "set it to False"
            raise ValueError(f"monotonic={encoder.monotonic!r} needs two classes or a continuous target; {remedy}.")
        of_columns[name] = replace(
            settings,
            monotonic=is_monotonic,
            direction=direction,
            given=_given(name, splits.get(name), codes.get(name, []), measure) if is_given else None,
        )
    return of_columns


def check_counts(tables: Mapping[str, Contingency], settings: Mapping[str, Settings]) -> None:
    """A `TypeError` or `ValueError` where the categories or codes given are none that the counts can hold."""
    for name, table in tables.items():
        given = settings[name].given
        if given is None:
            continue
        if table.is_numeric:
            assert table.lows is not None
            for code in (code for codes in given.specials for code in codes):
                inside = (table.lows.real <= code.real) & (code.real <= table.values.real)
                if (inside & (table.lows != table.values)).any():
                    raise ValueError(
                        f"Column {name!r} has so many values that the special code {code.real!r} is counted together "
                        "with its neighbours; make it missing, and use None as the special code."
                    )
            continue
        known = [value for value in map(plain, table.values.tolist()) if value is not None]
        named = [value for part in (*(given.splits or ()), *given.specials) for value in part if value is not None]
        other = [value for value in named if known and isinstance(value, str) != isinstance(known[0], str)]
        if other:
            raise TypeError(
                f"Column {name!r} holds {type(known[0]).__name__} such as {known[0]!r}, and splits or special_codes "
                f"name {other[0]!r}; name its categories as they are in the table."
            )


# -- what is given, as lists -----------------------------------------------------------------------


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset, np.ndarray, pd.Series, pd.Index))


def _lists(option: str, value: Any) -> dict[Any, list[Any]]:
    """A mapping of column -> list."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{option}={value!r} is not possible; use {{column: [...]}} or None.")
    for name, entries in value.items():
        if not _is_list(entries):
            raise ValueError(f"{option}[{name!r}] is {entries!r}; use a list.")
    return {name: list(entries) for name, entries in value.items()}


def _parts(codes: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """Parts of special codes: each code one, or each list of them."""
    return tuple(tuple(map(plain, code)) if _is_list(code) else (plain(code),) for code in codes)


def _check_once(option: str, name: Any, values: list[Any]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{option}[{name!r}] names {value!r} twice; name it once.")
        seen.add(value)


def _direction(what: str, value: Any) -> tuple[bool, int]:
    """Whether a column is monotonic, and which way."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value), 0
    if isinstance(value, str) and value == "auto":
        return True, 0
    if isinstance(value, (int, np.integer)) and value in (1, -1):
        return True, int(value)
    raise ValueError(f"{what} is {value!r}; use {DIRECTIONS}.")


# -- what is given, in the values of a column -------------------------------------------------------


def _given(name: str, splits: list[Any] | None, codes: list[Any], measure: Measure | None) -> Given:
    parts = _parts(codes)
    if any(not part for part in parts):
        raise ValueError(f"special_codes[{name!r}] holds an empty list; leave it out.")
    if measure is not None:
        numbers = tuple(tuple(_number("special_codes", name, value, measure) for value in part) for part in parts)
        bounds = None if splits is None else _bounds(name, splits, measure)
        if bounds and any(-math.inf in part for part in numbers):  # missing values are a part of their own already
            bounds = tuple(bound for bound in bounds if math.isfinite(bound.real))
        return Given(bounds, numbers)
    if splits is None:
        return Given(None, parts)
    if splits and not _is_list(splits[0]):
        raise ValueError(
            f"splits[{name!r}] holds {splits[0]!r}, and the column holds categories; use a list for each group."
        )
    named = tuple(tuple(map(plain, group)) for group in splits)
    if any(not group for group in named):
        raise ValueError(f"splits[{name!r}] holds an empty group; leave it out.")
    _check_once("splits and special_codes", name, [value for part in (*named, *parts) for value in part])
    return Given(named, parts)


def _bounds(name: str, splits: list[Any], measure: Measure) -> tuple[float | complex, ...]:
    """Ascending bounds; -inf only as the first."""
    if any(_is_list(bound) for bound in splits):
        raise ValueError(f"splits[{name!r}] holds groups, and the column holds {measure}; use its cut points.")
    bounds = tuple(_number("splits", name, bound, measure) for bound in splits)
    if any(bound is None for bound in map(plain, splits)) or any(math.isinf(bound.real) for bound in bounds[1:]):
        raise ValueError(f"splits[{name!r}] needs finite cut points (-inf first parts missing values from the rest).")
    if any((low.real, low.imag) >= (high.real, high.imag) for low, high in pairwise(bounds)):
        raise ValueError(f"splits[{name!r}] is {list(splits)!r}; give the cut points in ascending order.")
    return bounds


def _number(option: str, name: str, value: Any, measure: Measure) -> float | complex:
    """A value as the column has it: dates in days since 1970 in UTC, missing as -inf.

    Complex, with what float64 leaves over, where that rounds it.
    """
    if plain(value) is None:
        return -math.inf
    if measure.name != "numbers" and not isinstance(value, Real):
        try:
            number: Any = (pd.Timestamp if measure.name == "dates" else pd.Timedelta)(value)
        except (ValueError, TypeError):
            raise ValueError(f"{option}[{name!r}] holds {value!r}, and the column holds {measure}.") from None
        if number is pd.NaT:
            return -math.inf
    else:
        number = plain(value)
        if isinstance(number, bool) or not isinstance(number, Real) or number == math.inf:
            raise ValueError(f"{option}[{name!r}] holds {value!r}, and the column holds {NUMBERS}; use finite numbers.")
    try:
        exact, rest = exact_parts(number)
    except OverflowError:
        raise ValueError(f"{option}[{name!r}] holds a number beyond 1.8e308; use smaller ones.") from None
    return complex(exact, rest) if rest else exact
