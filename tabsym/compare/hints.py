"""What a reader of tables would ask about: ids, codes held as numbers, spellings that differ in case, far values.

Nothing is changed by a hint; each is a sentence with the option that would.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from tabsym.compare.words import listed

_MIN_ROWS = 50
_NEAR_UNIQUE = 0.95  # of the rows, so many different values: an id
_FAR_SHARE, _MAX_FAR_SHARE = 0.01, 0.5  # of the rows
_FAR_GAP, _FAR_GAP_OF_SENTINEL = 0.5, 0.1  # of the range of the other values
_CODE_NAMES = re.compile(
    r"(?:^|[^a-z])(?:id|ids|code|codes|zip|zipcode|postcode|postal|plz|sku|nr|key|isbn|ean)(?:$|[^a-z])"
)
_MIN_CODES, _MIN_RANGE = 20, 1000
_MIN_EFFECT, _MAX_ORDER = 4.0, 2.0  # standard errors: of the values' effects together, and of their order
_SENTINEL = re.compile(r"-?9{2,}|-1|-[1-9]0*")


def hints(X: pd.DataFrame, target: pd.Series, *, classes: bool, taken: Sequence[str]) -> list[str]:
    """Sentences on features and target.

    Parameters
    ----------
    X : pandas.DataFrame
        The features, as they are read.
    target : pandas.Series of shape (n,)
        Without missing values.
    classes : bool
        Whether the target is taken as classes.
    taken : sequence of str
        Columns that the user decided on; nothing is asked about these.
    """
    said = _case(target, f"Classes of {target.name!r}") if classes else []
    if not classes and pd.api.types.is_numeric_dtype(target) and not pd.api.types.is_bool_dtype(target):
        said += _far(str(target.name), target)
    y = np.asarray(pd.factorize(target)[0] == 0 if classes else target, dtype=np.float64)
    ids, codes = [], []
    for name in X.columns:
        column = X[name]
        if name in taken or isinstance(column.dtype, pd.CategoricalDtype) or column.dtype == bool:
            continue
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            said += _far(name, column)
            if _is_row_number(name, column):
                ids.append(name)
            elif _is_code(name, column, y):
                codes.append(name)
        elif pd.api.types.infer_dtype(column, skipna=True) == "string":
            if len(column) >= _MIN_ROWS and column.nunique() >= _NEAR_UNIQUE * len(column):
                ids.append(name)
            else:
                said += _case(column, f"Categories of column {name!r}")
    if ids:
        them = "it" if len(ids) == 1 else "them"
        said.append(
            f"{_columns(ids)} another value in nearly every row, as ids have; if nothing can be learned of {them}, "
            f"leave {them} out: --drop {','.join(ids[:5])}."
        )
    if codes:
        said.append(
            f"{_columns(codes)} whole numbers that look like codes, and {'is' if len(codes) == 1 else 'are'} read as "
            f"numbers; if they name things: --categorical {','.join(codes[:5])}."
        )
    return said


def _columns(names: Sequence[str]) -> str:
    return f"Column {names[0]!r} has" if len(names) == 1 else f"Columns {listed(names)} have"


def _whole(column: pd.Series) -> np.ndarray:
    """The values of a column of whole numbers; none where it holds others."""
    values = column.dropna().to_numpy(dtype=np.float64)
    return values if len(values) and np.isfinite(values).all() and (values == np.round(values)).all() else np.empty(0)


def _is_row_number(name: str, column: pd.Series) -> bool:
    """Whether whole numbers are nearly all different, and name rows: dense, in order, or by the column's name."""
    values = _whole(column)
    distinct = np.unique(values)
    if len(column) < _MIN_ROWS or len(distinct) < _NEAR_UNIQUE * len(column):
        return False
    dense = distinct[-1] - distinct[0] < 2 * len(distinct)
    steps = np.diff(values)
    in_order = bool((steps > 0).all() or (steps < 0).all())
    return dense or in_order or _CODE_NAMES.search(_words_of(name)) is not None


def _is_code(name: str, column: pd.Series, target: np.ndarray) -> bool:
    """Whether whole numbers name things: by the column's name, or sparse numbers that repeat and have no order."""
    values = _whole(column)
    distinct = np.unique(values)
    if len(distinct) < 3 or distinct[0] < 0:
        return False
    if _CODE_NAMES.search(_words_of(name)):
        return True
    if len(distinct) < _MIN_CODES or len(column) < _MIN_ROWS or 2 * len(distinct) > len(values):
        return False
    sparse = distinct[-1] - distinct[0] > 20 * len(distinct) and distinct[-1] >= _MIN_RANGE
    return bool(sparse and _order_says_nothing(column, target))


def _order_says_nothing(column: pd.Series, target: np.ndarray) -> bool:
    """Whether values differ in their mean target, but neighbours no less than others: names, and not amounts."""
    present = column.notna().to_numpy()
    codes = np.unique(column[present].to_numpy(dtype=np.float64), return_inverse=True)[1]
    y = target[present] - target[present].mean()
    counts = np.bincount(codes)
    effects = np.bincount(codes, y) / np.sqrt(counts) / max(y.std(), 1e-300)
    effects, n = effects[counts > 1], int((counts > 1).sum())
    if n < _MIN_CODES:
        return False
    together = ((effects**2).sum() - n) / np.sqrt(2 * n)
    order = (effects[1:] * effects[:-1]).sum() / (effects**2).sum() * np.sqrt(n)
    return bool(together > _MIN_EFFECT and order < _MAX_ORDER)


def _words_of(name: str) -> str:
    """A name in lower case, words in it apart: "customerId" as "customer id"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def _case(column: pd.Series, what: str) -> list[str]:
    """Values that differ in case or in blanks at their ends only."""
    values = [value for value in column.dropna().unique() if isinstance(value, str)]
    by_folded: dict[str, list[str]] = {}
    for value in values:
        by_folded.setdefault(" ".join(value.split()).casefold(), []).append(value)
    same = [sorted(group) for group in by_folded.values() if len(group) > 1]
    if not same:
        return []
    shown = "; ".join(" and ".join(map(repr, group[:3])) for group in same[:5])
    more = f"; and {len(same) - 5:,} more" if len(same) > 5 else ""
    return [f"{what} differ in case or blanks only: {shown}{more}; write them alike if they mean the same."]


def _far(name: str, column: pd.Series) -> list[str]:
    """A value that more than one row in a hundred has, far from all other values: often a code for missing."""
    values = column.dropna().to_numpy(dtype=np.float64)
    values = values[np.isfinite(values)]
    if len(values) < _MIN_ROWS:
        return []
    for value, end in ((values.min(), -1), (values.max(), 1)):
        others = values[values != value]
        share = 1 - len(others) / len(values)
        if value == 0 or not _FAR_SHARE <= share <= _MAX_FAR_SHARE or len(np.unique(others[:1000])) < 3:
            continue
        low, high = others.min(), others.max()
        gap = low - value if end < 0 else value - high
        sentinel = _SENTINEL.fullmatch(f"{value:g}") is not None and (value > 0 or low >= 0)
        if gap > (_FAR_GAP_OF_SENTINEL if sentinel else _FAR_GAP) * max(high - low, 1e-300) and gap > 0:
            return [
                f"Column {name!r} has the value {value:g} in {share:.0%} of its rows, far from its other values "
                f"({low:g} to {high:g}); if it means missing: --na-values {name}={value:g}."
            ]
    return []
