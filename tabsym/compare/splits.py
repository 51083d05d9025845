"""The splits, the same for all: at random, by groups, by time, by a given column, or with whole categories held out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from tabsym.compare.table.prepare import CLASSES
from tabsym.frame.meaning import date_format
from tabsym.messages import plural

Indices = NDArray[np.int64]
Split = tuple[Indices, Indices]


@dataclass(frozen=True)
class SplitPlan:
    """How rows are split.

    `how` is one of "random" (stratified by class), "groups" (all rows of a group together), "time" (train on what
    was before), "column" (the folds are given) and "unseen" (as "groups", of the categories of a feature). `keys` (n,):
    codes of groups, folds or categories; for time, ranks of the moments, equal where those are.
    """

    how: str
    column: str | None
    folds: int
    repeats: int
    seed: int
    keys: Indices | None = None

    @property
    def unseen(self) -> str | None:
        """The column whose categories are held out, if there is one."""
        return self.column if self.how == "unseen" else None

    @property
    def clusters(self) -> Indices | None:
        """Groups or categories (n,) that are held out whole, if any are."""
        return self.keys if self.how in ("groups", "unseen") else None

    def splits(self, y: NDArray[np.generic], task: str, classes: Sequence[Any] | None = None) -> list[Split]:
        """(Train rows, test rows) of every fold of every repeat; `classes`: those that `y` has the codes of.

        Raises
        ------
        ValueError
            There are too few rows, groups or moments, or a fold has one class only.
        """
        if self.folds < 2:
            raise ValueError(f"folds={self.folds} is not possible; use at least 2.")
        if self.folds > len(y):
            raise ValueError(f"folds={self.folds} is more than the {plural(len(y), 'row')}; use fewer.")
        if self.repeats > 1 and self.how in ("time", "column"):
            raise ValueError(f"repeats={self.repeats} is not possible: splits by {self.how} are always the same.")
        splits = [split for repeat in range(self.repeats) for split in self._once(y, task, self.seed + repeat)]
        for train, test in splits if task in CLASSES else ():
            if len(np.unique(y[train])) < 2 or (len(np.unique(y)) == 2 and len(np.unique(y[test])) < 2):
                raise ValueError(f"A fold contains one class only{self._remedy(y, classes)}.")
        return splits

    def _remedy(self, y: NDArray[np.generic], classes: Sequence[Any] | None) -> str:
        """What helps where a fold has one class only, after the number of rows of a class with fewer than folds."""
        other = {"unseen": "another --unseen column", "groups": "another --groups column"}.get(self.how, "more rows")
        codes, sizes = np.unique(y, return_counts=True)
        rarest = int(np.argmin(sizes))
        if self.how != "random" or sizes[rarest] >= self.folds:
            return f"; use fewer folds or {other}"
        label = codes[rarest] if classes is None else classes[int(codes[rarest])]
        least = int(sizes[rarest])
        remedy = f"use at most {least} folds, or {other}" if least > 1 else "give more rows of it"
        return f", as class {str(label)!r} has {plural(least, 'row')} and there are {self.folds} folds; {remedy}"

    def inside(self, rows: Indices, y: NDArray[np.generic], task: str) -> Split:
        """A split of some rows in the same manner, to choose settings by: the last in time, else a quarter at random.

        As positions among `rows`.
        """
        keys = None if self.keys is None else np.unique(self.keys[rows], return_inverse=True)[1]
        n_keys = len(rows) if keys is None else int(keys.max()) + 1
        if len(rows) < 2:
            return np.arange(len(rows)), np.arange(len(rows))
        if self.how == "random" or n_keys < 2:
            plan = SplitPlan("random", None, min(4, len(rows)), 1, self.seed)
        elif self.how == "time":
            plan = SplitPlan("time", self.column, min(3, n_keys - 1), 1, self.seed, keys)
        else:
            plan = SplitPlan("groups", self.column, min(4, n_keys), 1, self.seed, keys)
        return list(plan._once(y[rows], task, self.seed))[-1]

    def _once(self, y: NDArray[np.generic], task: str, state: int) -> list[Split]:
        n = len(y)
        if self.keys is None:
            if task not in CLASSES or np.unique(y, return_counts=True)[1].max() < self.folds:
                return list(KFold(self.folds, shuffle=True, random_state=state).split(y))
            with warnings.catch_warnings():  # of a class with fewer rows than folds, which some folds then lack
                warnings.simplefilter("ignore", UserWarning)
                return list(StratifiedKFold(self.folds, shuffle=True, random_state=state).split(y, y))
        if self.how == "column":
            return [(np.flatnonzero(self.keys != k), np.flatnonzero(self.keys == k)) for k in range(self.folds)]
        if self.how == "time":
            return _expanding(self.keys, self.folds)
        if task in CLASSES and self.how == "groups" and np.unique(y, return_counts=True)[1].max() >= self.folds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                folds = StratifiedGroupKFold(self.folds, shuffle=True, random_state=state)
                return list(folds.split(np.zeros(n), y, self.keys))
        return list(GroupKFold(self.folds, shuffle=True, random_state=state).split(np.zeros(n), y, self.keys))


def make_plan(
    frame: pd.DataFrame,
    *,
    folds: int,
    repeats: int,
    seed: int,
    groups: str | None = None,
    time: str | None = None,
    fold_column: str | None = None,
    unseen: str | None = None,
    dayfirst: bool | None = None,
    notes: Sequence[str] = (),
) -> SplitPlan:
    """The plan that the options ask for.

    `frame` holds the columns they name, `notes` say how these were read, `dayfirst` is of dates in text.

    Raises
    ------
    ValueError
        More than one way is requested, or a column does not allow it.
    """
    ways = {"groups": groups, "time": time, "column": fold_column, "unseen": unseen}
    requested = [(how, name) for how, name in ways.items() if name is not None]
    if len(requested) > 1:
        options = " and ".join("fold_column" if how == "column" else how for how, _ in requested)
        raise ValueError(f"{options} cannot go together; choose one split.")
    if not requested:
        return SplitPlan("random", None, folds, repeats, seed)
    how, name = requested[0]
    column = frame[name]
    if how != "unseen" and column.isna().any():
        as_read, remedy = _words_read_as_missing(name, notes), ""
        if as_read and how != "time":
            remedy = f", or keep the text by categorical=[{name!r}] (--categorical {quote(name)})"
        raise ValueError(
            f"Column {name!r}, which splits the rows, has "
            f"{plural(int(column.isna().sum()), 'missing value')}{as_read}; fill them or drop the rows{remedy}."
        )
    if how == "time":
        keys = _ranks_of_moments(column, name, dayfirst)
        if keys.max() < folds:
            raise ValueError(
                f"Column {name!r} has {plural(int(keys.max()) + 1, 'distinct time')}, too few for {folds} folds in "
                "time; use fewer folds."
            )
        return SplitPlan(how, name, folds, repeats, seed, keys)
    if how == "unseen" and pd.api.types.is_float_dtype(column):
        raise ValueError(
            f"Column {name!r} is read as a number; to hold its categories out, read it as categories: "
            f"categorical=[{name!r}] (--categorical {quote(name)})."
        )
    codes, categories = pd.factorize(column, sort=how == "column", use_na_sentinel=False)
    if how == "column":
        if len(categories) < 2:
            raise ValueError(f"Column {name!r} has one value only, which cannot be split; choose another column.")
        return SplitPlan(how, name, len(categories), repeats, seed, np.asarray(codes, dtype=np.int64))
    if len(categories) < folds:
        words = ("category", "categories") if how == "unseen" else ("group",)
        raise ValueError(
            f"Column {name!r} has {plural(len(categories), *words)}, fewer than {folds} folds; use fewer folds."
        )
    return SplitPlan(how, name, folds, repeats, seed, np.asarray(codes, dtype=np.int64))


def _words_read_as_missing(name: str, notes: Sequence[str]) -> str:
    """What the notes on a column say of words that were read as missing, where it has any."""
    start, end = f"Column {name!r} ", f"; use --categorical {quote(name)} to keep the text."
    note = next((note for note in notes if note.startswith(start) and " as missing" in note), "")
    return f", as it {note.removeprefix(start).removesuffix(end).rstrip('.')}" if note else ""


def _ranks_of_moments(column: pd.Series, name: str, dayfirst: bool | None = None) -> Indices:
    """Ranks in the order of time: of dates and of numbers, both also written as text."""
    column = column.infer_objects()
    if not pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_datetime64_any_dtype(column):
        text = column.astype("str").str.strip()
        numbers = pd.to_numeric(text, errors="coerce")
        dates = pd.to_datetime(text, format=date_format(text, dayfirst) or "ISO8601", errors="coerce", utc=True)
        moments = dates if numbers.isna().any() else numbers
        if moments.isna().any():
            neither = numbers.isna() & dates.isna()
            strange = text[neither if neither.any() else dates.isna()].iloc[0]
            what = "neither a date nor a number" if neither.any() else "a number among dates"
            raise ValueError(f"Column {name!r} contains {strange!r}, which is {what}; fix or drop such rows.")
        column = moments
    return np.asarray(np.unique(column.to_numpy(), return_inverse=True)[1], dtype=np.int64)


def _expanding(moments: Indices, folds: int) -> list[Split]:
    """Blocks of about as many rows one after another, none within a moment; each but the first tested once."""
    before = np.cumsum(np.bincount(moments))  # rows up to each moment
    last, edges = len(before) - 1, [0]
    for block in range(1, folds + 1):  # of folds + 1 blocks, where all but the last end: a moment each at least
        wanted = int(np.searchsorted(before, before[-1] * block / (folds + 1))) + 1
        edges.append(min(max(wanted, edges[-1] + 1), last - (folds - block)))
    edges.append(last + 1)
    return [
        (np.flatnonzero(moments < edges[k]), np.flatnonzero((moments >= edges[k]) & (moments < edges[k + 1])))
        for k in range(1, folds + 1)
    ]
