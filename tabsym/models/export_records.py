"""The records that exports are made of: codings of columns, lookup tables over codes, numbers, and products of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.design.formula import Node
from tabsym.models.data import OffsetColumn

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
