"""What values mean: words for missing values, whole numbers that are codes, and whole numbers of a target."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.frame.columns import Kind, Table
from tabsym.warn import warn_user

Floats = NDArray[np.float64]

CODE_NAMES = re.compile(
    r"(?:^|[^a-z])(?:id|ids|code|codes|zip|zipcode|postcode|postal|plz|sku|nr|key|isbn|ean)(?:$|[^a-z])"
)
MISSING_WORDS = frozenset(
    "? ?? - -- --- \u2013 \u2014 . .. * n/a na n.a. n.a #n/a #na nan null none nil missing unknown undefined "
    "unspecified unavailable tbd tba tbc not-available no-data nd n.d. n.d #value! #ref! #div/0! #name? #num! "
    "#null! <na> -nan 1.#qnan k.a. s/o nr".split()
) | {
    "not available",
    "not applicable",
    "not known",
    "not specified",
    "no data",
    "varies with device",
    "n / a",
    "(blank)",
    "(missing)",
    "(null)",
    "k. a.",
}
"""In lower case; they mean missing only where the other cells of a column are numbers or dates."""
_SHOWN = 5  # values that a sentence lists
CODES = "look like codes"
"""Of a warning, by which it is known."""
MIN_ROWS = 50
_MIN_CODES, _MIN_RANGE = 20, 1000
_MIN_EFFECT, _MAX_ORDER = 4.0, 2.0  # standard errors: of the values' effects together, and of their order
MAX_ROWS = 20_000
"""Rows, evenly spread."""


def code_columns(table: Table, y: Any) -> list[str]:
    """The columns of whole numbers that look like codes; `y` (n,): numbers, or labels."""
    step = -(-max(len(table), 1) // MAX_ROWS)
    numbers = [column for column in table.columns if column.kind is Kind.NUMERIC and column.measure.name == "numbers"]
    if not numbers:
        return []
    target = np.asarray(y)
    if target.ndim != 1 or not len(target) or np.ndim(target[0]) or pd.isna(target).any():
        return []  # refused where the target is checked
    target = target[::step]
    if not np.issubdtype(target.dtype, np.number):
        target = target == target[0]
    target = target.astype(np.float64)
    if not np.isfinite(target).all():
        return []
    values = {column.name: column.values[::step] for column in numbers}
    return [
        name
        for name, numbers_of_column in values.items()
        if is_code(name, numbers_of_column, target) and _repeats(numbers_of_column)
    ]


def _repeats(values: Floats) -> bool:
    """Whether values come again, and none is half of them: not an id's, and no amount that is mostly 0."""
    _, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return 1.05 * len(counts) < counts.sum() and 2 * counts.max(initial=0) < counts.sum()


def is_code(name: str, values: Floats, target: Floats) -> bool:
    """Whether whole numbers name things: by the column's name, or sparse numbers that repeat and have no order.

    Parameters
    ----------
    name : str
    values : (n,)
        Missing ones NaN.
    target : (n,)
        Of classes 0 and 1 for the first.
    """
    distinct = np.unique(whole_values(values))
    if len(distinct) < 3 or distinct[0] < 0:
        return False
    if CODE_NAMES.search(words_of(name)):
        return True
    present = np.count_nonzero(~np.isnan(values))
    if len(distinct) < _MIN_CODES or len(values) < MIN_ROWS or 2 * len(distinct) > present:
        return False
    sparse = distinct[-1] - distinct[0] > 20 * len(distinct) and distinct[-1] >= _MIN_RANGE
    return bool(sparse and _order_says_nothing(values, target))


def whole_values(values: Floats) -> Floats:
    """The values that are there, of a column of whole numbers; none where it holds others."""
    present = values[~np.isnan(values)]
    return (
        present if len(present) and np.isfinite(present).all() and (present == np.round(present)).all() else np.empty(0)
    )


def words_of(name: str) -> str:
    """A name in lower case, words in it apart: "customerId" as "customer id"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def _order_says_nothing(values: Floats, target: Floats) -> bool:
    """Whether values differ in their mean target, but neighbours no less than others: names, and not amounts."""
    present = ~np.isnan(values)
    codes = np.unique(values[present], return_inverse=True)[1]
    y = target[present] - target[present].mean()
    counts = np.bincount(codes)
    effects = np.bincount(codes, y) / np.sqrt(counts) / max(y.std(), 1e-300)
    effects, n = effects[counts > 1], int((counts > 1).sum())
    if n < _MIN_CODES:
        return False
    together = ((effects**2).sum() - n) / np.sqrt(2 * n)
    order = (effects[1:] * effects[:-1]).sum() / (effects**2).sum() * np.sqrt(n)
    return bool(together > _MIN_EFFECT and order < _MAX_ORDER)


def means_missing(text: str) -> bool:
    """Whether a cell is blank or a word for missing."""
    word = text.strip().lower()
    return not word or word in MISSING_WORDS


def check_later_cells(name: str, cells: Sequence[Any], n_present: int, what: str) -> None:
    """Warn of cells of a later table that are no `what`, and count as missing.

    Parameters
    ----------
    name : str
        Of the column.
    cells : sequence
        The values, one for each row.
    n_present : int
        How many cells of the column are not missing.
    what : str
        What the column held in training, in the plural.

    Raises
    ------
    ValueError
        Half of the cells or more are such, so that it is not the column of training.
    """
    if not len(cells):
        return
    distinct = list(dict.fromkeys(repr(cell.item() if isinstance(cell, np.generic) else cell) for cell in cells))
    shown = ", ".join(distinct[:_SHOWN]) + (f" and {len(distinct) - _SHOWN:,} more" if len(distinct) > _SHOWN else "")
    times = f"{len(cells):,} of its {n_present:,} cells"
    found = f"Column {name!r} held {what} in training and now holds {shown} in {times}"
    if 2 * len(cells) >= n_present:
        raise ValueError(f"{found}; pass the column that the model was trained with, or correct these cells.")
    warn_user(f"{found}; {'it counts' if len(cells) == 1 else 'they count'} as missing.")


MAX_CLASSES = 20
"""More whole numbers than these are amounts."""

_CLASS_NAMES = re.compile(r"class|label|type|species|categor|cluster|segment|kind|group", re.IGNORECASE)


def kind_of_whole_numbers(numbers: NDArray[np.float64], name: str = "", rows: NDArray[np.float64] | None = None) -> str:
    """What whole numbers (n,) of a target are taken for: "classes", "counts", "ratings" or "amounts".

    Two values are classes, more than `MAX_CLASSES` amounts. Between these: counts where they start at 0 and become
    ever rarer, ratings where four or more in a row rise and fall in frequency once; else, or where the name of the
    target is one of classes ("type", "label"), classes. `rows` (n,): of each number, where they were counted.
    """
    values = np.unique(numbers)
    if len(values) <= 2:
        return "classes"
    if len(values) > MAX_CLASSES:
        return "amounts"
    low, high = int(values[0]), int(values[-1])
    if _CLASS_NAMES.search(name):
        return "classes"
    times = np.bincount((numbers - low).astype(np.int64), rows) if high - low < 10 * MAX_CLASSES else np.zeros(0)
    if _like_counts(low, times):
        return "counts"
    return "ratings" if _like_ratings(times) else "classes"


def _like_counts(low: int, times: NDArray[Any]) -> bool:
    """From 0 on, most often 0 or 1, and ever rarer; three values only where each is at most half as frequent."""
    if low != 0 or len(times) < 3:
        return False
    top = int(np.argmax(times))
    falls = _steps(times[top:])
    if top > 1 or (falls > 0).any() or times[-1] > times[top] / 2:
        return False
    return len(times) > 3 or bool((times[1:] <= times[:-1] / 2).all())


def _like_ratings(times: NDArray[Any]) -> bool:
    """Four or more values in a row whose frequencies rise and fall once at most: codes of classes go up and down."""
    if len(times) < 4 or not times.all():
        return False
    steps = _steps(times)
    steps = steps[steps != 0]
    return len(steps) > 0 and int((steps[1:] != steps[:-1]).sum()) <= 1


def _steps(times: NDArray[Any]) -> NDArray[np.float64]:
    """Whether each frequency is above (1) or below (-1) the one before, or within two standard errors of it (0)."""
    change = np.diff(times).astype(np.float64)
    return np.sign(change) * (np.abs(change) > 2 * np.sqrt(times[1:] + times[:-1]))
