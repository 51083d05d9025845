"""The options of OneHotEncoder, in the words of two libraries: checked, and as a column takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

from tabsym.validation import Instance, Number, check_option

UNKNOWN_VALUES = {
    "value": "value",
    "ignore": "value",
    "return_nan": "return_nan",
    "error": "error",
    "indicator": "indicator",
    "infrequent_if_exist": "infrequent",
    "warn": "infrequent",
}
"""The words of `handle_unknown`, and the one for each that the code knows."""
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

    `smallest`: fewer rows than so many, or than this share of all; `at_most`: so many output columns.
    `needs_two`: category_encoders' habit, by which a group has two categories or more and leaves one beside it.
    """

    smallest: float | None = None
    at_most: int | None = None
    needs_two: bool = False
    with_missing: bool | str = True
    name: str | None = None

    def name_of(self, symbols: NDArray[Any]) -> str:
        """What the infrequent categories are called together."""
        if self.name is not None:
            return self.name
        if not self.needs_two:
            return "infrequent"
        texts = sorted(str(symbol) for symbol in symbols if symbol is not None)
        return "_".join(texts if len(texts) == len(symbols) else [*texts, "nan"])


@dataclass(frozen=True)
class OneHotOptions:
    """What fit was asked for; `categories` and `drop` by column."""

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
        given = {name: list(one) for name, one in _by_column("categories", categories, encoded).items()}
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
            f"{option} has {len(entries)} entries for {len(encoded)} encoded columns; give one for each, or a dict "
            "by column."
        )
    return dict(zip(encoded, entries, strict=True))


def _infrequent_rule(encoder: Any) -> InfrequentRule:
    frequency, size, most = encoder.min_frequency, encoder.min_group_size, encoder.max_categories
    name, with_missing = encoder.min_group_name, encoder.combine_min_nan_groups
    if size is not None and (frequency is not None or most is not None):
        raise ValueError(
            "min_group_size is category_encoders' rule for infrequent categories, min_frequency and max_categories are "
            "scikit-learn's, and they differ; use one or the other."
        )
    if size is None and frequency is None and most is None and (name is not None or with_missing is not None):
        raise ValueError(
            "min_group_name and combine_min_nan_groups are about infrequent categories, and no option makes one so; "
            "give min_group_size, min_frequency or max_categories."
        )
    if with_missing == "force" and encoder.handle_missing != "value":
        raise ValueError(
            "combine_min_nan_groups='force' counts missing among the infrequent categories, and it is a category under "
            f"handle_missing='value' only, not {encoder.handle_missing!r}; change one of the two."
        )
    return InfrequentRule(
        frequency if size is None else size,
        most,
        size is not None,
        True if with_missing is None else with_missing,
        name,
    )


def _dtype(encoder: Any) -> DTypeLike:
    """The type of dense output; int8 where nothing else is asked for and no row can be NaN."""
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
