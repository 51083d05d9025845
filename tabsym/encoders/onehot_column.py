"""The options of `OneHotEncoder`, in the words of two libraries, and by them the output columns of a column."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

from tabsym.categories import UNSEEN, Categories, RawCodes
from tabsym.categories.coding import plain_categories
from tabsym.categories.contingency import ROUNDING_OF_SHARES
from tabsym.encoders.base import codes_in
from tabsym.messages import Instance, Number, check_option, plural

Indices = NDArray[np.int64]


ZEROS, NANS = -1, -2
"""Indices of rows that have no one: all zeros, or all NaN."""


UNKNOWN_VALUES = {
    "value": "value",
    "ignore": "value",
    "return_nan": "return_nan",
    "error": "error",
    "indicator": "indicator",
    "infrequent_if_exist": "infrequent",
    "warn": "infrequent",
}
"""The values of `handle_unknown`, and the equivalent that the code uses."""
_SMALLEST = (Number(at_least=1, whole=True, of="rows"), Number(above=0, below=1, fraction=True, of="all"), None)

ALLOWED: dict[str, tuple[Any, ...]] = {
    "handle_missing": ("value", "return_nan", "error", "indicator", "ignore"),
    "handle_unknown": tuple(UNKNOWN_VALUES),
    "feature_name_combiner": ("concat", Instance(Callable, "a callable"), None),
    "min_frequency": _SMALLEST,
    "min_group_size": _SMALLEST,
    "max_categories": (Number(at_least=1, whole=True), None),
    "min_group_name": (Instance(str, "text"), None),
    "combine_min_nan_groups": (True, False, "force", None),
}
"""The values that options may have, but for those that go by column, and `dtype`."""


@dataclass(frozen=True)
class InfrequentRule:
    """What makes a category infrequent.

    `smallest`: fewer rows than this number, or than this share of all; `at_most`: the most output columns.
    `needs_two`: category_encoders' habit, by which a group has two categories or more and leaves one ungrouped.
    """

    smallest: float | None = None
    at_most: int | None = None
    needs_two: bool = False
    with_missing: bool | str = True
    name: str | None = None

    def name_of(self, categories: NDArray[Any]) -> str:
        """What the infrequent categories are called together."""
        if self.name is not None:
            return self.name
        if not self.needs_two:
            return "infrequent"
        texts = sorted(str(category) for category in categories if category is not None)
        return "_".join(texts if len(texts) == len(categories) else [*texts, "nan"])


@dataclass(frozen=True)
class OneHotOptions:
    """Options of fit; `categories` and `drop` by column."""

    handle_missing: str
    unknown: str
    by_category: bool
    combiner: Any
    categories: Mapping[str, list[Any]]
    drop: str | Mapping[str, Any] | None
    infrequent: InfrequentRule
    dtype: DTypeLike

    def combine(self, column: str, label: Any) -> str:
        """The name of an output column, from its column and the category (None: missing) or flag."""
        if not callable(self.combiner):
            return f"{column}_{'nan' if label is None else label}"
        name = self.combiner(column, label)
        if not isinstance(name, str):
            raise TypeError(
                f"feature_name_combiner gave {name!r} for column {column!r} and {label!r}; it must return text."
            )
        return name


def options_of(encoder: Any, encoded: list[str]) -> OneHotOptions:
    """The options for these columns, or an error that names the argument and what it can be."""
    combiner, categories = encoder.feature_name_combiner, encoder.categories
    given: Mapping[str, Any] = {}
    if not (categories is None or (isinstance(categories, str) and categories == "auto")):
        given = {name: list(entries) for name, entries in _by_column("categories", categories, encoded).items()}
    drop = encoder.drop
    if isinstance(drop, str):
        check_option("drop", drop, ["first", "if_binary", None], "a category for each column in a list or dict")
    elif drop is not None:
        drop = {n: None if pd.api.types.is_scalar(v) and pd.isna(v) else v
                for n, v in _by_column("drop", drop, encoded).items()}  # fmt: skip
    return OneHotOptions(
        encoder.handle_missing, UNKNOWN_VALUES[encoder.handle_unknown], encoder.use_cat_names or combiner is not None,
        combiner, given, drop, _infrequent_rule(encoder), _dtype(encoder),
    )  # fmt: skip


def _by_column(option: str, value: Any, encoded: list[str]) -> Mapping[str, Any]:
    """A dict as it is, a list with one entry for each encoded column as a dict."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise ValueError(f"{option}={value!r} is not possible; use a list with an entry for each column, or a dict.")
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in encoded]
        if unknown:
            raise ValueError(
                f"{option} names column {unknown[0]!r}, which is not encoded; encoded are "
                f"{', '.join(map(repr, encoded))}."
            )
        return value
    entries = list(value)
    if len(entries) != len(encoded):
        raise ValueError(
            f"{option} has {plural(len(entries), 'entry', 'entries')} for {plural(len(encoded), 'encoded column')}; "
            "give one for each, or a dict by column."
        )
    return dict(zip(encoded, entries, strict=True))


def _infrequent_rule(encoder: Any) -> InfrequentRule:
    frequency, size, max_outputs = encoder.min_frequency, encoder.min_group_size, encoder.max_categories
    name, with_missing = encoder.min_group_name, encoder.combine_min_nan_groups
    if size is not None and (frequency is not None or max_outputs is not None):
        raise ValueError(
            "min_group_size is category_encoders' rule for infrequent categories, min_frequency and max_categories are "
            "scikit-learn's, and they differ; use one or the other."
        )
    if size is None and frequency is None and max_outputs is None and (name is not None or with_missing is not None):
        raise ValueError(
            "min_group_name and combine_min_nan_groups are about infrequent categories, and no option makes one so; "
            "give min_group_size, min_frequency or max_categories."
        )
    if with_missing == "force" and encoder.handle_missing != "value":
        raise ValueError(
            "combine_min_nan_groups='force' counts missing among the infrequent categories, and it is a category under "
            f"handle_missing='value' only, not {encoder.handle_missing!r}; change one of the two."
        )
    with_missing = True if with_missing is None else with_missing
    return InfrequentRule(frequency if size is None else size, max_outputs, size is not None, with_missing, name)


def _dtype(encoder: Any) -> DTypeLike:
    """The type of dense output; int8 where nothing else is requested and no row can be NaN."""
    can_be_nan = "return_nan" in (encoder.handle_missing, encoder.handle_unknown)
    if encoder.dtype is None:
        return np.float64 if can_be_nan or encoder.sparse_output else np.int8
    try:
        dtype = np.dtype(encoder.dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "biuf":
        raise ValueError(f"dtype={encoder.dtype!r} is not possible; use a type of numbers such as 'float32', or None.")
    if can_be_nan and dtype.kind != "f":
        raise ValueError(
            f"dtype={encoder.dtype!r} holds no NaN, which 'return_nan' makes; use a type of floats, or another value "
            "of handle_missing and handle_unknown."
        )
    return dtype.type


@dataclass(frozen=True)
class OneHotColumn:
    """State of one column.

    Attributes
    ----------
    vocabulary : Categories
        All categories, those without an output column of their own too.
    names : list of str
        Output columns: of categories in code order, of the infrequent ones together, then the flags. Unique over all
        columns after `with_unique_names`.
    index_of : (M,)
        The output column of each category; ZEROS for what was dropped.
    missing_index, unknown_index : int
        The output column of a missing value that is no category, and of an unknown one; or ZEROS, or NANS.
    category_of : (outputs,)
        The code that each output column stands for on the way back; UNSEEN for flags.
    dropped : int
        The code that a row of zeros stands for, UNSEEN where nothing was dropped.
    infrequent : (R,)
        Codes of the categories that share an output column.
    """

    vocabulary: Categories
    names: list[str]
    index_of: NDArray[np.int32]
    missing_index: int
    unknown_index: int
    category_of: NDArray[np.int64]
    dropped: int
    infrequent: NDArray[np.int64]

    def indices(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """The output column of each row's one (n,), ZEROS or NANS."""
        table = np.append(self.index_of, [self.missing_index, self.unknown_index]).astype(np.int32)
        return np.asarray(table[codes])  # MISSING, -2, and UNSEEN, -1, read the last two

    def categories_at(self, indices: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """The categories (n,) for which indices stand; None where that is not known."""
        codes = np.append(self.category_of, [UNSEEN, self.dropped])[indices]  # NANS and ZEROS read the last two
        return self.vocabulary.inverse(codes)


def learn_column(name: str, raw: RawCodes, weight: NDArray[np.float64] | None, options: OneHotOptions) -> OneHotColumn:
    """The state of a column from its codes, and from the weights of its rows, all 1 if None."""
    vocabulary, codes = _vocabulary(name, raw, options)
    counts = np.bincount(codes[codes >= 0], None if weight is None else weight[codes >= 0], minlength=len(vocabulary))
    n_rows = len(codes) if weight is None else float(weight.sum())
    counts = _settled(counts, n_rows)
    infrequent = find_infrequent(counts, n_rows, vocabulary.missing_code, options.infrequent)
    group_of, labels, category_of = _group(vocabulary, counts, infrequent, options)
    drop = _dropped_group(name, vocabulary, group_of, options)
    kept = [group for group in range(len(labels)) if group != drop]
    index_of = np.append(np.full(len(labels), ZEROS), ZEROS)
    index_of[kept] = np.arange(len(kept))
    labels = [labels[group] for group in kept]
    unknown_index = missing_index = ZEROS
    if options.unknown == "return_nan":
        unknown_index = NANS
    elif options.unknown == "infrequent" and len(infrequent):
        unknown_index = int(index_of[group_of[infrequent[0]]])
    if options.handle_missing == "return_nan":
        missing_index = NANS
    flags = []
    if options.handle_missing == "indicator":
        missing_index = len(kept)
        flags.append("nan" if options.by_category else "-2")
    if options.unknown == "indicator":
        unknown_index = len(kept) + len(flags)
        flags.append("-1")
    names = [options.combine(name, label) for label in [*labels, *flags]]
    return OneHotColumn(
        vocabulary, names, index_of[group_of].astype(np.int32), missing_index, unknown_index,
        np.append(category_of[kept], np.full(len(flags), UNSEEN)).astype(np.int64),
        UNSEEN if drop is None else int(category_of[drop]), infrequent,
    )  # fmt: skip


def constant_names(state: OneHotColumn, raw: RawCodes) -> list[str]:
    """Output columns that are the same in all rows, found by counting."""
    indices = state.indices(codes_in(state.vocabulary, raw))
    if (indices == NANS).any():
        return []
    ones = np.bincount(indices[indices >= 0], minlength=len(state.names))
    return [state.names[position] for position in np.flatnonzero((ones == 0) | (ones == len(indices)))]


def _vocabulary(name: str, raw: RawCodes, options: OneHotOptions) -> tuple[Categories, NDArray[np.int32]]:
    """The categories asked for, or those that occur, and each row's code; missing is one under "value" only."""
    missing_is_category = options.handle_missing == "value"
    given = options.categories.get(name)
    if given is None:
        present = raw.codes if missing_is_category else raw.codes[raw.codes >= 0]
        vocabulary, _ = Categories.fit(name, RawCodes(present, raw.categories))
        return vocabulary, vocabulary.transform(raw)
    vocabulary = Categories(name, _given_categories(name, given, missing_is_category))
    try:
        codes = vocabulary.transform(raw)
    except TypeError:
        raise TypeError(
            f"categories of column {name!r} hold values such as {vocabulary.categories[0]!r} and the column such as "
            f"{raw.categories[0]!r}; give categories of the column's type."
        ) from None
    unknown = (codes == UNSEEN) & (raw.codes >= 0)
    if options.unknown == "error" and unknown.any():
        value = raw.categories[raw.codes[np.argmax(unknown)]]
        raise ValueError(
            f"Column {name!r} holds {value!r} (row {int(np.argmax(unknown))}), which is not among its categories; "
            "add it to them, or set handle_unknown to something other than 'error'."
        )
    return vocabulary, codes


def _given_categories(name: str, given: list[Any], missing_is_category: bool) -> NDArray[Any]:
    if not all(isinstance(value, Hashable) for value in given):
        raise TypeError(f"categories of column {name!r} hold nested values; give a list of categories for each column.")
    categories = plain_categories(
        [None if pd.api.types.is_scalar(value) and pd.isna(value) else value for value in given]
    )
    if len(set(categories.tolist())) < len(categories):
        raise ValueError(f"categories of column {name!r} hold a value twice; name each once.")
    if None in categories.tolist() and not missing_is_category:
        raise ValueError(
            f"categories of column {name!r} hold a missing value, which is a category under handle_missing='value' "
            "only; leave it out, or set handle_missing='value'."
        )
    return categories


def _group(
    vocabulary: Categories, counts: NDArray[Any], infrequent: NDArray[np.int64], options: OneHotOptions
) -> tuple[NDArray[np.int64], list[Any], NDArray[np.int64]]:
    """The group of each category, each group's label and the category it stands for; infrequent ones last, in one."""
    common = np.setdiff1d(np.arange(len(vocabulary)), infrequent)
    group_of = np.full(len(vocabulary), len(common))
    group_of[common] = np.arange(len(common))
    labels: list[Any] = vocabulary.categories[common].tolist()
    category_of = common
    if len(infrequent):
        labels.append(options.infrequent.name_of(vocabulary.categories[infrequent]))
        category_of = np.append(common, infrequent[np.argmax(counts[infrequent])])
    if not options.by_category:
        labels = [str(position + 1) for position in range(len(labels))]
    return group_of, labels, category_of


def _dropped_group(
    name: str, vocabulary: Categories, group_of: NDArray[np.int64], options: OneHotOptions
) -> int | None:
    n_groups = int(group_of.max()) + 1 if len(group_of) else 0
    if isinstance(options.drop, str):
        return 0 if n_groups and (options.drop == "first" or n_groups == 2) else None
    if options.drop is None or name not in options.drop:
        return None
    value = options.drop[name]
    code = next((code for code, category in enumerate(vocabulary.categories.tolist()) if category == value), None)
    if code is None:
        raise ValueError(f"drop names {value!r} of column {name!r}, which is none of its categories; drop one that is.")
    if (group_of == group_of[code]).sum() > 1:
        raise ValueError(
            f"drop names {value!r} of column {name!r}, which is among its infrequent categories; drop another one, or "
            "do not group it."
        )
    return int(group_of[code])


def with_unique_names(states: dict[str, OneHotColumn]) -> dict[str, OneHotColumn]:
    """The columns with category_encoders' way of naming outputs whose names clash: by trailing #."""
    taken: set[str] = set()
    out = {}
    for name, state in states.items():
        names = []
        for new in state.names:
            while new in taken:
                new += "#"  # noqa: PLW2901
            taken.add(new)
            names.append(new)
        out[name] = replace(state, names=names)
    return out


def _are_fractional(counts: NDArray[Any]) -> bool:
    return bool((counts != np.floor(counts)).any())


def _settled(counts: NDArray[Any], n_rows: float) -> NDArray[Any]:
    """Sums of fractional weights (M,) in units of their rounding errors, by which equal ones would differ."""
    if not _are_fractional(counts):
        return counts
    unit = ROUNDING_OF_SHARES * n_rows
    return np.asarray(np.rint(counts / unit) * unit)


def find_infrequent(counts: NDArray[Any], n_rows: float, missing: int, rule: InfrequentRule) -> NDArray[np.int64]:
    """Codes of the infrequent categories.

    Parameters
    ----------
    counts : (M,)
        Rows, or weights, of each category.
    n_rows : float
        Of the whole column.
    missing : int
        The code of the missing category, below 0 where there is none.
    rule : InfrequentRule
    """
    infrequent = np.zeros(len(counts), dtype=bool)
    if rule.smallest is not None:
        whole = isinstance(rule.smallest, Integral)
        rounding = ROUNDING_OF_SHARES * n_rows if _are_fractional(counts) else 0.0
        infrequent = counts < (rule.smallest if whole else rule.smallest * n_rows) - rounding
    if missing >= 0 and rule.with_missing is not True:
        infrequent[missing] = rule.with_missing == "force" and bool(infrequent.any())
    infrequent |= _beyond(counts, infrequent, missing, rule)
    named = np.arange(len(counts)) != missing
    if rule.needs_two and (infrequent.sum() < 2 or infrequent[named].all() or not counts[infrequent].sum() > 0):
        infrequent[:] = False
    return np.flatnonzero(infrequent)


def _beyond(
    counts: NDArray[Any], infrequent: NDArray[np.bool_], missing: int, rule: InfrequentRule
) -> NDArray[np.bool_]:
    """The smallest categories, so that no more than `at_most` output columns are left; of equal ones the first."""
    out = np.zeros(len(counts), dtype=bool)
    if rule.at_most is None or len(counts) - infrequent.sum() + infrequent.any() <= rule.at_most:
        return out
    kept_apart = missing if missing >= 0 and rule.with_missing is False else -1
    order = [code for code in np.argsort(counts, kind="stable").tolist() if code != kept_apart]
    common = rule.at_most - 1 - (kept_apart >= 0)
    out[order[: max(len(order) - common, 0)] if common > 0 else order] = True
    if missing >= 0 and rule.with_missing == "force":
        out[missing] = True
    return out
