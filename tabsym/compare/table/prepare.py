"""A user's table, made ready: read, target and task found, columns typed, rows weighted, all said in notes.

For a comparison, and for the predictions of a model in a file.

The task is what the values of the target suggest, unless the user names it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from tabsym.compare.table.features import Features, far_dates, hints, is_number, learn_features, without_infinity
from tabsym.compare.table.files import ReadOptions, Source, Whole, read_some
from tabsym.compare.table.retyping import Retyping, retype
from tabsym.compare.text import listed, perhaps
from tabsym.design.sources import CategoricalSource
from tabsym.frame import MAX_CLASSES, check_regression_target, kind_of_whole_numbers
from tabsym.frame.meaning import format_of, moments_of
from tabsym.messages import check_option, plural
from tabsym.models.model import WideModel

TASKS = ("binary", "multiclass", "regression", "count")
CLASSES = ("binary", "multiclass")

_AMOUNTS = "for a continuous target: --task regression"
_NAMES = "for classes: --task multiclass"
_EVENTS = "for counts of events: --task count"
_RARE = 5  # rows of a class
_SHOWN = 5  # values that a sentence lists

Floats = NDArray[np.float64]


# -- the target and its task -----------------------------------------------------------------------


@dataclass(frozen=True)
class ComparisonTarget:
    """The target of a comparison.

    `y`: for classes codes into `classes`, which hold the user's own values; else floats. `reading`: how the
    target was taken, and how to take it otherwise.
    """

    name: str
    task: str
    y: NDArray[Any]
    classes: NDArray[Any]
    reading: str


def read_target(values: pd.Series, name: str, task: str | None, text: pd.Series | None = None) -> ComparisonTarget:
    """The target, its task guessed where none is given; `text`: the cells that the numbers were read from, for classes.

    Raises
    ------
    ValueError
        The values do not fit the task.
    """
    name, values = str(name), values.infer_objects()
    if not len(values):
        raise ValueError(f"The target {name!r} is missing in every row; choose another target.")
    check_option("task", task, [*TASKS, None])
    if values.nunique() < 2:
        only = values.iloc[0]
        only = only.item() if isinstance(only, np.generic) else only
        raise ValueError(f"The target {name!r} has one value only ({only!r}); choose another target.")
    if is_number(values) and not np.isfinite(values.to_numpy(dtype=np.float64)).all():
        raise ValueError(f"The target {name!r} contains an infinite value; drop such rows.")
    guess, why = _guessed_task(values, name, text)
    reading = f"Target {name!r}: {why}." if task is None else f"Target {name!r}: task {task!r}, as requested."
    task = task or guess
    if task in CLASSES:
        _check_classes(values, name, task)
        if isinstance(values.dtype, pd.CategoricalDtype):  # whose order other kinds of files do not keep
            values = values.astype(values.cat.categories.dtype)
        codes, classes = pd.factorize(values, sort=True)
        labels = classes if text is None else text.to_numpy()[np.unique(codes, return_index=True)[1]]
        return ComparisonTarget(name, task, codes.astype(np.int64), np.asarray(labels), reading)
    return ComparisonTarget(name, task, numbers_of_target(values, name, task), np.empty(0), reading)


def _guessed_task(values: pd.Series, name: str, text: pd.Series | None) -> tuple[str, str]:
    """The task, and why with the way to another."""
    distinct = values.nunique()
    if distinct == 2:
        labels = (values if text is None else text)[~values.duplicated()]
        shown = " and ".join(str(value) for value in sorted(labels, key=str))
        return "binary", f"two values ({shown}), read as two classes" + (f"; {_AMOUNTS}" if is_number(values) else "")
    if not is_number(values):
        return "multiclass", f"{distinct} values that are not numbers, read as classes"
    numbers = values.to_numpy(dtype=np.float64)
    whole = bool(np.isfinite(numbers).all() and (numbers == np.round(numbers)).all())
    if not whole or distinct > MAX_CLASSES:
        further = f"; {_EVENTS}" if whole and numbers.min() >= 0 else ""
        further += f"; {_NAMES}" if distinct <= MAX_CLASSES else ""
        return "regression", f"{distinct:,} different numbers, read as a continuous target{further}"
    low, high = int(numbers.min()), int(numbers.max())
    few = f"{distinct} whole numbers from {low} to {high}"
    kind = kind_of_whole_numbers(numbers, name)
    if kind == "counts":
        return "count", f"{few}, most of them small, read as counts; {_AMOUNTS}, {_NAMES}"
    if kind == "ratings":
        return "regression", f"{few} in a row, read as ratings, that is as a continuous target; {_NAMES}, {_EVENTS}"
    return "multiclass", f"{few}, read as labels of {distinct} classes; {_AMOUNTS}, {_EVENTS}"


def _check_classes(values: pd.Series, name: str, task: str) -> None:
    distinct = values.nunique()
    if task == "binary" and distinct > 2:
        raise ValueError(f"The target {name!r} has {distinct} classes, so task='binary' does not fit.")
    if task == "multiclass" and distinct == 2:
        raise ValueError(f"The target {name!r} has two classes; use task='binary'.")
    if is_number(values) and distinct > max(MAX_CLASSES, len(values) // 2):
        raise ValueError(f"The target {name!r} has {distinct} numeric values; use task='regression'.")
    if not is_number(values) and distinct > max(MAX_CLASSES, len(values) // 10):
        _refuse_dates(values, name)
        raise ValueError(
            f"The target {name!r} is text with {distinct:,} different values in {len(values):,} rows "
            f"({_stranger(values)}), too many to be classes; if it is numeric, correct or clear such "
            "values, else choose another target."
        )


def numbers_of_target(values: pd.Series, name: str, task: str) -> NDArray[np.float64]:
    """The target of a regression (n,).

    Raises
    ------
    ValueError
        It is not numeric, or negative where it counts.
    """
    if not is_number(values) and not pd.api.types.is_bool_dtype(values):
        _refuse_dates(values, name)
        raise ValueError(
            f"The target {name!r} is not numeric ({_stranger(values)}), so task={task!r} does not fit; "
            "correct or clear such values."
        )
    numbers = check_regression_target(values.to_numpy(dtype=np.float64), len(values), caller="compare")
    if task == "count" and numbers.min() < 0:
        raise ValueError(
            f"The target {name!r} contains {numbers.min():g}, and counts are 0 or more; use task='regression'."
        )
    return numbers


def _refuse_dates(values: pd.Series, name: str) -> None:
    if format_of(values) is not None:
        raise ValueError(
            f"The target {name!r} contains dates, which are not predicted; make numbers of them, such as days from a "
            "date on, or choose another target."
        )


def _stranger(values: pd.Series) -> str:
    """A value that is no number, and its row."""
    strange = pd.to_numeric(values, errors="coerce").isna().to_numpy()
    position = int(np.argmax(strange))
    return f"such as {str(values.iloc[position])!r} in row {values.index[position]}"


# -- the table -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RoleColumns:
    """Columns of the table that are no features, by their role for the rows; None where there is none."""

    weight: str | None = None
    exposure: str | None = None
    offset: str | None = None
    groups: str | None = None
    fold_column: str | None = None

    def named(self) -> dict[str, str]:
        """Role -> column."""
        return {role: name for role, name in vars(self).items() if name is not None}


@dataclass(frozen=True)
class Prepared:
    """Features (text, float and boolean columns), target, rows' weights, and notes on what was done.

    `raw`: the features as the user has them, for contenders of the user's own. `frame`: all columns of the rows that
    are left. `exposure` (n,): what counts are to be divided by; `offset` (n,): what is subtracted from a continuous
    target. `whole`: all rows, where these are a sample.
    """

    X: pd.DataFrame
    target: ComparisonTarget
    features: Features
    raw: pd.DataFrame
    frame: pd.DataFrame
    notes: list[str]
    weight: Floats | None = None
    exposure: Floats | None = None
    offset: Floats | None = None
    roles: RoleColumns = field(default_factory=RoleColumns)
    retyping: Retyping = field(default_factory=Retyping)
    whole: Whole | None = None

    def weights(self, rows: NDArray[np.int64]) -> Floats:
        """The weights of some rows, 1 where there are none."""
        return np.ones(len(rows)) if self.weight is None else self.weight[rows]

    @property
    def y(self) -> NDArray[Any]:
        """Codes of classes, or numbers."""
        return self.target.y

    @property
    def task(self) -> str:
        return self.target.task

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return [str(value) for value in self.target.classes]


def prepare(
    table: Any,
    target: str,
    *,
    task: str | None = None,
    drop: list[str] | None = None,
    reading: ReadOptions | None = None,
    roles: RoleColumns | None = None,
    time: str | None = None,
    max_rows: int | None = None,
    seed: int = 0,
) -> Prepared:
    """Make a table ready for the comparison.

    Parameters
    ----------
    table : dataframe or path
    target : str
        Name of the target column.
    task : {"binary", "multiclass", "regression", "count"}, optional
        Guessed from the target where it is not given.
    drop : list of str, optional
        Columns to leave out.
    reading : ReadOptions, optional
        What the user decided of reading the table.
    roles : Columns, optional
        Columns that weigh or split the rows; they are no features.
    time : str, optional
        The column that orders the rows; it is a feature unless it is dropped.
    max_rows, seed : int
        See `read_some`.

    Raises
    ------
    ValueError
        The target or a named column is not there, or does not fit.
    """
    roles = roles or RoleColumns()
    reading = reading or ReadOptions()
    drop = [str(name) for name in drop or []]
    notes: list[str] = []
    source, whole, sampled = read_some(table, reading, target, max_rows, seed)
    notes.extend(source.notes)
    _check_names(list(source.frame.columns), target, drop, reading, roles)
    unsaid = set(drop) - {time}
    frame, retyping = retype(source.frame, reading, source.untyped, source.separator, notes, target, unsaid)
    if not len(frame):
        raise ValueError("The table has no rows; pass a table with rows.")
    present = frame[target].notna().to_numpy()
    if not present.all():
        words = "row without a target is left out.", "rows without a target are left out."
        notes.insert(0, plural(int((~present).sum()), *words))
    frame = frame[present]
    as_given = source.frame[target][present]
    was_text = not source.untyped and pd.api.types.infer_dtype(as_given.astype(object), skipna=True) == "string"
    is_read = target in retyping.formats or (target in retyping.booleans and was_text)
    text = as_given.astype("str") if is_read else None
    read_as = read_target(frame[target], target, task, text)
    notes.insert(0, read_as.reading)
    if sampled:
        notes.insert(0, sampled)
    frame = frame.reset_index(drop=True)
    _note_rare(read_as, notes)
    no_features = dict.fromkeys([target, *drop, *roles.named().values()])
    raw = frame.drop(columns=list(no_features))
    if roles.groups is not None:
        notes.append(
            f"Column {roles.groups!r} groups the rows and is not a feature, as the groups of test rows are not in the "
            "training rows."
        )
    if raw.shape[1] == 0:
        if len(no_features) == 1:
            raise ValueError(f"The table has no column but the target {target!r}; add columns to predict it from.")
        raise ValueError("No feature column is left; drop fewer columns.")
    raw = without_infinity(raw, reading.categorical, notes)
    features = learn_features(raw, reading.categorical, notes, dayfirst=reading.dayfirst, formats=retyping.dates)
    if not features.kinds:
        raise ValueError("No feature column is left, as all are empty; drop fewer columns.")
    decided = [*reading.numeric, *reading.categorical, *features.parts]
    notes += hints(raw[list(features.kinds)], frame[target], classes=read_as.task in CLASSES, taken=decided)
    if time in features.kinds:
        notes.append(
            f"Column {time!r} orders the rows and is a feature, too; leave it out of the features by drop=[{time!r}] "
            f"(--drop {quote(time)}), which keeps the order."
        )
    X = features.apply(raw)
    notes += far_dates(raw, X, list(features.parts))
    weight, exposure, offset = weights_of(frame, read_as.task, roles)
    if weight is not None and weight.sum() <= 0:
        raise ValueError(f"The weights in {roles.weight!r} must be 0 or more, and not all 0.")
    return Prepared(X, read_as, features, raw, frame, notes, weight, exposure, offset, roles, retyping, whole)


def _note_rare(target: ComparisonTarget, notes: list[str]) -> None:
    if target.task in CLASSES:
        times = np.bincount(target.y)
        rare = [f"{target.classes[position]} ({times[position]})" for position in np.flatnonzero(times < _RARE)]
        if rare:
            words = "Class of fewer" if len(rare) == 1 else "Classes of fewer"
            more = f" and {len(rare) - _SHOWN:,} more" if len(rare) > _SHOWN else ""
            notes.append(f"{words} than {_RARE} rows, so that some folds have none: {', '.join(rare[:_SHOWN])}{more}.")


def _check_names(have: list[str], target: str, drop: list[str], reading: ReadOptions, roles: RoleColumns) -> None:
    numeric, categorical = list(reading.numeric), list(reading.categorical)
    of_words = [name for name in reading.na_values if name]
    for name in [target, *drop, *numeric, *categorical, *of_words, *roles.named().values()]:
        if name not in have:
            raise ValueError(f"There is no column {name!r}{perhaps(name, have)}; the table has {listed(have)}.")
    if target in drop:
        raise ValueError(f"{target!r} is the target and cannot be dropped; remove it from drop.")
    if target in categorical:
        raise ValueError(f"{target!r} is the target and not a feature; remove it from categorical.")
    lists = {"drop": drop, "categorical": categorical, "numeric": numeric}
    for (first, names), (second, others) in combinations(lists.items(), 2):
        for name in names:
            if name in others:
                raise ValueError(f"Column {name!r} is in {first} and in {second}; remove it from one of the two.")
    for role, name in roles.named().items():
        if name == target:
            raise ValueError(f"{name!r} is the target and cannot be the {role}, too; name another column.")


def weights_of(
    frame: pd.DataFrame, task: str, roles: RoleColumns
) -> tuple[Floats | None, Floats | None, Floats | None]:
    """Weights, exposures and offsets of the rows, as far as they fit the task.

    Raises
    ------
    ValueError
        They do not.
    """
    weight, exposure, offset = (
        None if name is None else _numbers(frame[name], name, role)
        for role, name in (("weight", roles.weight), ("exposure", roles.exposure), ("offset", roles.offset))
    )
    if weight is not None and weight.min() < 0:
        raise ValueError(f"The weights in {roles.weight!r} must be 0 or more, and not all 0.")
    if exposure is not None:
        if task != "count":
            raise ValueError(_no_exposure(str(roles.exposure), task))
        if exposure.min() <= 0:
            raise ValueError(f"The exposures in {roles.exposure!r} must be above 0; drop the other rows.")
    if offset is None:
        return weight, exposure, offset
    if task in CLASSES:
        raise ValueError(
            f"offset={roles.offset!r} cannot be used in classification, as few contenders take one; use it as a "
            "feature."
        )
    if task == "regression":
        return weight, exposure, offset
    if exposure is not None:
        raise ValueError(
            "exposure and offset cannot be combined: the offset of a count is the logarithm of its exposure; leave "
            "one out."
        )
    return weight, np.exp(offset), None


def _no_exposure(name: str, task: str) -> str:
    """That only counts have exposures, and the alternative for continuous targets."""
    events = "if the target counts events, use task='count' (--task count)"
    amounts = (
        f"for amounts, predict a column of the target over {name!r} with weight={name!r} (--weight {quote(name)}) in "
        "place of exposure (--exposure), and drop the old target; "
    )
    rest = amounts if task == "regression" else "leave it out, or "
    return f"exposure={name!r} is for counts, and the task is {task!r}; {rest}{events}."


def _numbers(values: pd.Series, name: str, role: str) -> Floats:
    if not is_number(values):
        raise ValueError(f"The {role} {name!r} is not numeric; choose another column.")
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(numbers).all():
        raise ValueError(f"The {role} {name!r} contains missing or infinite values; fill them, or drop such rows.")
    return np.asarray(numbers)


# -- a table for a model that is no winner -------------------------------------------------------------


def typed_for(model: Any, source: Source, options: ReadOptions) -> pd.DataFrame:
    """The rows of a file for a model that is no winner, whose columns had types of the user's own in fit.

    A file with types has them. Of a text file, what a wide model (or that of a stack), or the encoder before a model,
    knows as text stays text, and as dates or durations becomes these; other columns, and those of other models, are
    read as in a comparison.
    """
    frame = source.frame.reset_index(drop=True)
    known = _types_in_fit(model)
    if known is not None and not source.untyped:
        return frame
    text = [name for name in frame.columns if known is not None and known.get(name, "number") != "number"]
    typed, _ = retype(frame.drop(columns=text), options, source.untyped, source.separator, [])
    for name in text:
        kind, typed[name] = (known or {})[name], frame[name]
        if kind == "duration":
            typed[name] = pd.to_timedelta(frame[name], errors="coerce")
        elif kind in ("date", "day"):
            moments = moments_of(name, frame[name], "moments")
            typed[name] = moments if kind == "date" else moments.dt.date
    return typed[list(frame.columns)]


def _types_in_fit(model: Any) -> dict[str, str] | None:
    """What columns held in fit: "text", "date", "day", "duration"; "number" also for booleans; None if none is known.

    As wide models know it, that of a stack too, and encoders, also as steps of a pipeline, the first of which counts.
    """
    types: dict[str, str] = {}
    for _, step in model.steps if isinstance(model, Pipeline) else [("", model)]:
        wide = getattr(step, "wide_", step)
        if isinstance(step, Pipeline):
            of_step = _types_in_fit(step) or {}
        elif isinstance(getattr(wide, "model_", None), WideModel):
            of_step = _types_of_wide(wide)
        else:
            of_step = _types_of_encoder(getattr(step, "encoder_", step))
        types = of_step | types
    return types or None


def _types_of_wide(wide: Any) -> dict[str, str]:
    moments = getattr(wide, "_moments", {})
    types = {
        name: next((kind for kind in ("date", "duration") if kind in moments.get(name, "")), "number")
        for name in wide.model_.spec.number_columns
    }
    for source in wide.model_.spec.sources:
        kind = _type_of(source.vocabulary.categories) if isinstance(source, CategoricalSource) else None
        if kind is not None:
            types |= dict.fromkeys(source.columns, kind)
    return types


def _types_of_encoder(encoder: Any) -> dict[str, str]:
    """Of the columns that an encoder encodes; none of an estimator that is no encoder."""
    states, types = getattr(encoder, "columns_", None), {}
    for name, state in states.items() if isinstance(states, Mapping) else ():
        vocabulary = getattr(state, "vocabulary", None)
        if vocabulary is not None:
            types[name] = _type_of(vocabulary.categories) or "number"
        else:
            measure = str(getattr(getattr(state, "fitted", None), "measure", "numbers"))
            types[name] = next((kind for kind in ("date", "duration") if kind in measure), "number")
    return types


def _type_of(categories: NDArray[Any]) -> str | None:
    """The type of the first category that is not missing; None where there is none."""
    kinds = {datetime.datetime: "date", datetime.date: "day", datetime.timedelta: "duration", str: "text"}
    first = next((category for category in categories if category is not None), None)
    if first is None:
        return None
    return next((kind for type_, kind in kinds.items() if isinstance(first, type_)), "number")
