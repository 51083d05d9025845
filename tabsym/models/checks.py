"""Validation of what users give to the wide models: constructor arguments, offsets, numbers by class.

Each message names the argument and the remedy.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.design.plan import Within
from tabsym.frame import as_given
from tabsym.interactions.search import AutoInteractions
from tabsym.losses import WITH_NUMBER
from tabsym.losses.loss import LOSSES, Loss
from tabsym.messages import Number, check_option, plural
from tabsym.solvers.sgd.options import OPTIMIZERS, SGD, Optimizer

Named: TypeAlias = tuple[tuple[Any, ...], ...]
"""Named interactions, each as a tuple of columns, or of a `Within` and columns."""

Treatment: TypeAlias = str | tuple[float, ...]
"""What becomes of a numeric column: a word, or the cut points of its bins."""

Init: TypeAlias = "float | Mapping[str, float | pd.Series | pd.DataFrame] | None"
"""Initial coefficients: of all terms, or by term."""

WIDEST_LOGARITHMS = 600.0
"""Maximum range of a log-link offset: exp overflows near 710."""


def check_columns(value: Any) -> Any:
    """Normalize `categorical_features` to columns: None for "from_dtype", "all", names or positions."""
    if isinstance(value, str):
        check_option("categorical_features", value, ("from_dtype", "all"), "a list of columns")
        return None if value == "from_dtype" else value
    if value is None:
        return []
    if not isinstance(value, (list, tuple, np.ndarray, pd.Index)):
        raise ValueError(
            f"categorical_features={value!r} is not known; use 'from_dtype', 'all', a list of columns, or None."
        )
    return list(value)


def columns_of(chosen: Any, names: Sequence[str]) -> Any:
    """Names of columns that are given by a mask or by positions."""
    if not isinstance(chosen, list):
        return chosen
    if chosen and all(isinstance(item, (bool, np.bool_)) for item in chosen):
        if len(chosen) != len(names):
            raise ValueError(
                f"categorical_features is a mask of {plural(len(chosen), 'column')}, and the table has {len(names)}; "
                "give one value for each."
            )
        return [name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen]
    return [name_of(item, names) for item in chosen]


def name_of(column: Any, names: Sequence[str]) -> Any:
    """Name of a column that is given by its position; of one that pandas has a number for, by that."""
    if not isinstance(column, Integral) or isinstance(column, bool):
        return column
    if str(column) in names:
        return str(column)
    return names[int(column)] if 0 <= int(column) < len(names) else column


def nearest(name: Any, names: Sequence[str]) -> Sequence[str]:
    """The names that are most like one that is none of them, or the first ones."""
    return get_close_matches(str(name), names, n=3) or names[:5]


def check_numeric(value: Any, allowed: tuple[str, ...], default: str) -> tuple[str, dict[Any, Treatment]]:
    """The treatment of numeric columns: the default, and by column for a mapping."""
    if isinstance(value, Mapping):
        return default, {name: _check_treatment(f"numeric[{name!r}]", how, allowed) for name, how in value.items()}
    return check_option("numeric", value, allowed, "a mapping from column to one of these or to cut points"), {}


def _check_treatment(name: str, how: Any, allowed: tuple[str, ...]) -> Treatment:
    """The treatment of one column: a word, or cut points in ascending order."""
    if not isinstance(how, (list, tuple, range, np.ndarray, pd.Index, pd.Series)):
        return check_option(name, how, allowed, "a list of cut points")
    cuts = list(how)
    for cut in cuts:
        if not Number().allows(cut):
            raise ValueError(
                f"{name} holds {cut!r}, and cut points are finite numbers (of dates, days since 1970-01-01); the outer "
                "intervals are open by themselves."
            )
    for cut, after in pairwise(cuts):
        if after <= cut:
            what = "twice" if after == cut else f"before {after!r}"
            raise ValueError(f"{name} has {cut!r} {what}; give each cut point once, in ascending order.")
    if not cuts:
        raise ValueError(f"{name} is an empty list; give at least one cut point, or leave the column out.")
    return tuple(float(cut) for cut in cuts)


def check_monotonic(value: Any) -> dict[Any, int] | tuple[int, ...] | None:
    """Directions -1, 0 or 1 by column, or one for each column in their order; None for none."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        pairs = [(f"monotonic_cst[{name!r}]", direction) for name, direction in value.items()]
    elif isinstance(value, (list, tuple, np.ndarray)):
        pairs = [(f"monotonic_cst[{index}]", direction) for index, direction in enumerate(value)]
    else:
        raise ValueError(
            f"monotonic_cst={value!r} is not possible; use a mapping from column to 1 (not decreasing) or -1 (not "
            "increasing), an array of -1, 0 or 1 for each column, or None."
        )
    for name, direction in pairs:
        if isinstance(direction, (bool, np.bool_)) or not isinstance(direction, Real) or direction not in (-1, 0, 1):
            raise ValueError(f"{name}={direction!r} is not possible; use 1 (not decreasing), -1 (not increasing) or 0.")
    directions = [int(direction) for _, direction in pairs]
    if not any(directions):
        raise ValueError(f"monotonic_cst={value!r} constrains no column; leave it out.")
    return dict(zip(value, directions, strict=True)) if isinstance(value, Mapping) else tuple(directions)


def check_fixed(value: Any) -> dict[str, Any]:
    """Given coefficients by term: a number, or a mapping, Series or frame by category."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f"fixed={value!r} is not possible; use a mapping from term to values by category, such as "
            "{'region': {'north': 0.1}}, or None."
        )
    for name, given in value.items():
        is_number = Number().allows(given)
        if isinstance(given, (list, tuple, np.ndarray)):  # of a slope, for several classes
            is_number = len(given) > 0
        if not is_number and not (isinstance(given, (Mapping, pd.Series, pd.DataFrame)) and len(given)):
            raise ValueError(
                f"fixed[{name!r}]={given!r} is not possible; use {{category: number}}, a Series or frame of values by "
                "category, or a number for a slope."
            )
    return dict(value)


def check_alpha(value: Any) -> float | dict[str, float] | None:
    """The penalty, or penalties by term; None where all are estimated."""
    if isinstance(value, Mapping):
        return {
            str(name): check_number(f"alpha[{name!r}]", penalty, at_least=0) for name, penalty in value.items()
        } or None
    if not isinstance(value, Real):
        check_option("alpha", value, ("auto",), "a number of at least 0", "a mapping from term to number")
        return None
    return check_number("alpha", value, at_least=0)


def check_interactions(value: Any) -> int | AutoInteractions | Named:
    """The highest order of interactions, the options of their selection, or named interactions."""
    if value is None:
        return 1
    if isinstance(value, AutoInteractions):
        return value
    if isinstance(value, (list, tuple)):
        return _named_interactions(value)
    if isinstance(value, str) and value == "auto":
        return AutoInteractions()
    if isinstance(value, str) and value == "pairwise":
        return 2
    raise ValueError(
        f"interactions={value!r} is not known; use 'auto', None, 'pairwise', a list of pairs or triples of columns "
        "such as [('a', 'b')], or tabsym.interactions.AutoInteractions(...)."
    )


def _named_interactions(value: Sequence[Any]) -> Named:
    """Pairs and triples of columns, without duplicates; of ``{column: category}`` a `Within`."""
    named: dict[frozenset[Any], tuple[Any, ...]] = {}
    for interaction in value:
        is_pair_or_triple = isinstance(interaction, (list, tuple)) and 2 <= len(interaction) <= 3
        members = tuple(_member(member) for member in interaction) if is_pair_or_triple else ()
        names = [member.column if isinstance(member, Within) else member for member in members]
        good = all(isinstance(name, (str, Integral)) and not isinstance(name, bool) for name in names)
        n_within = sum(isinstance(member, Within) for member in members)
        if not is_pair_or_triple or not good or len(set(names)) < len(names) or n_within > 1:
            raise ValueError(
                f"interactions names {interaction!r}, which is no pair or triple of different columns; use a list "
                "such as [('a', 'b'), ('a', 'b', 'c'), ({'a': 'x'}, 'b', 'c')], the last for the rows where a is 'x' "
                "only."
            )
        if frozenset(members) in named:
            raise ValueError(f"interactions names {tuple(interaction)!r} twice; leave one of them out.")
        named[frozenset(members)] = members
    if not named:
        raise ValueError("interactions is an empty list; use interactions=None for none.")
    return tuple(named.values())


def _member(given: Any) -> Any:
    """A member of a named interaction: a column, or one category of a column."""
    if not isinstance(given, Mapping) or len(given) != 1:
        return given
    ((column, category),) = given.items()
    is_missing = pd.api.types.is_scalar(category) and pd.isna(category)
    return Within(column, None if is_missing else category) if pd.api.types.is_hashable(category) else given


def check_formula(value: Any) -> str:
    """The formula, or a `TypeError`."""
    if not isinstance(value, str):
        raise TypeError(
            f"formula must be text such as 'w[column] + b[1]', not {type(value).__name__}; pass the table to fit."
        )
    return value


def check_coef_init(value: Any) -> Init:
    """Initial coefficients: a number, a mapping from term to number or frame, or None."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        for name, given in value.items():
            if not isinstance(given, (pd.Series, pd.DataFrame)) and not Number().allows(given):
                raise ValueError(
                    f"coef_init[{name!r}]={given!r} is not possible; use a finite number, or a Series or DataFrame of "
                    "values by category, such as coefs_ has."
                )
        return {str(name): given for name, given in value.items()} or None
    if not Number().allows(value):
        raise ValueError(
            f"coef_init={value!r} is not possible; use a finite number, or a mapping from term to a number or to "
            "values by category, such as coefs_."
        )
    return float(value)


def check_optimizer(value: Any) -> Optimizer:
    if isinstance(value, Optimizer):
        return value
    return OPTIMIZERS[check_option("optimizer", value, tuple(OPTIMIZERS), "an object of tabsym.optimizers")]


def check_schedule(schedule: str, optimizer: Optimizer, l2: float) -> None:
    """Check that the schedule fits the optimizer and the penalty."""
    if schedule == "optimal" and not isinstance(optimizer, SGD):
        raise ValueError(
            f"schedule='optimal' is for optimizer='sgd': {type(optimizer).__name__} divides by the size of its "
            "gradients already; use 'constant', 'invscaling' or 'adaptive'."
        )
    if schedule == "optimal" and l2 == 0:
        raise ValueError(
            "schedule='optimal' takes its rate from the penalty; give alpha above 0 and l1_ratio below 1, or another"
            " schedule."
        )


def check_rate(value: Any) -> float | None:
    """The learning rate; None for an automatic one."""
    if isinstance(value, str):
        check_option("learning_rate", value, ("auto",), "a number above 0")
        return None
    return check_number("learning_rate", value, above=0)


def check_whole_or(word: str, name: str, value: Any) -> int | None:
    """A whole number; None for the word that stands for all, or for an automatic one."""
    if isinstance(value, str):
        check_option(name, value, (word,), "a whole number")
        return None
    return check_whole(name, value)


def check_loss(value: Any, allowed: tuple[str, ...]) -> Loss | str:
    """A loss by its name or object; "auto" where that is allowed."""
    if type(value) in WITH_NUMBER.values() and value.name in allowed:
        loss = LOSSES[value.name]
        return replace(loss, parameter=float(getattr(value, loss.argument)))
    objects = [kind.__name__ for name, kind in WITH_NUMBER.items() if name in allowed]
    alternatives = [f"an object of tabsym.losses ({', '.join(objects)})"] if objects else []
    name = check_option("loss", value, allowed, *alternatives)
    return LOSSES.get(name, name)


def check_offset(offset: Any, n_rows: int, n_outputs: int) -> NDArray[np.float64]:
    """The offset of each row (n_rows, n_outputs), validated as finite numbers."""
    try:
        given = np.asarray(as_given(offset))
        if given.dtype.kind in "mMc":  # durations, moments and complex numbers would become numbers
            raise TypeError
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("offset must hold numbers, one per row; convert it first.") from None
    if n_outputs > 1 and values.shape != (n_rows, n_outputs):
        raise ValueError(
            f"offset has shape {values.shape}, but the scores of the {n_outputs} classes need ({n_rows}, {n_outputs}): "
            "a number added to all classes alike changes nothing; give one column per class."
        )
    if n_outputs == 1 and values.shape not in ((n_rows,), (n_rows, 1)):
        raise ValueError(
            f"offset has shape {values.shape}, but the table has {plural(n_rows, 'row')}; give one number per row."
        )
    values = values.reshape(n_rows, n_outputs)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values).all(axis=1)))
        raise ValueError(f"offset is not finite in row {row}; an exposure of 0 has no logarithm, drop such rows.")
    return values


def check_offset_of_loss(offset: NDArray[np.float64] | None, loss: Loss) -> None:
    """A `ValueError` where an offset with a log link cannot hold logarithms, because its range is too wide."""
    if offset is None or not loss.log_link or not len(offset):
        return
    low, high = float(offset.min()), float(offset.max())
    if high - low > WIDEST_LOGARITHMS:
        raise ValueError(
            f"offset goes from {low:g} to {high:g}, and loss={loss.public_name!r} multiplies predictions by its exp; "
            "give logarithms, such as offset=np.log(exposure)."
        )


def check_flag(name: str, value: Any) -> bool:
    """True or False, also as 1 or 0; strings are invalid, because all would be true."""
    if not isinstance(value, (bool, np.bool_, Integral)) or value not in (0, 1):
        raise ValueError(f"{name}={value!r} is not known; use True or False.")
    return bool(value)


def check_whole(name: str, value: Any, least: int = 1) -> int:
    return int(check_option(name, value, [Number(at_least=least, whole=True)]))


def check_number(name: str, value: Any, **bounds: Any) -> float:
    """A finite number within the bounds of a `Number`."""
    return float(check_option(name, value, [Number(**bounds)]))


def below_domain(target: NDArray[np.float64], loss: Loss) -> NDArray[np.bool_]:
    """The targets (n,) that a loss does not take, as they are too small."""
    return target <= loss.lowest if loss.lowest_open else target < loss.lowest


def check_target_of_loss(target: NDArray[np.float64], loss: Loss, what: str = "target") -> None:
    """A `ValueError` where targets (n,) are below the domain of a loss."""
    wrong = below_domain(target, loss)
    if wrong.any():
        row = int(np.argmax(wrong))
        least = "above" if loss.lowest_open else "of at least"
        raise ValueError(
            f"The {what} is {target[row]:g} in row {row}, but loss={loss.public_name!r} needs values {least} "
            f"{loss.lowest:g}; drop such rows or use another loss."
        )


def positions_of_classes(
    names: Iterable[Any], classes: Iterable[Any], what: str, *, allow_extra: bool = False
) -> list[int]:
    """The index of each of several classes among names of columns; a `ValueError` where one is missing.

    `allow_extra`: there may be other names. Names that count up from 0, as those of an array, name no classes.
    """
    names, classes = list(names), list(classes)
    numbers = list(range(len(classes)))
    if names in (numbers, [f"column_{number}" for number in numbers]):  # as pandas and polars call those of an array
        return numbers
    positions = [next((at for at, name in enumerate(names) if _is_same(name, label)), -1) for label in classes]
    if min(positions) < 0 or (len(names) > len(classes) and not allow_extra):
        raise ValueError(
            f"{what} has the columns {list(map(str, names))}, and needs {list(map(str, classes))}; name one for each, "
            "or give an array in their order."
        )
    return positions


def by_class(
    given: Any, classes: Iterable[Any] | None, what: str, *, allow_extra: bool = False, ranked: bool = False
) -> Any:
    """A frame with a column for each of several classes, in their order; what is no frame stays as it is.

    `allow_extra`: it may have other columns, which are left out then. `ranked`: it may be of latent vectors, with a
    column for each component and class, in the order of `coefs_`.
    """
    columns, classes = getattr(given, "columns", None), [] if classes is None else list(classes)
    if columns is None or len(classes) <= 2:
        return given
    names = list(getattr(given, "column_names", columns))
    if ranked and f"{classes[0]} 1" in names and f"{classes[0]}" not in names:
        return given
    positions = positions_of_classes(names, classes, what, allow_extra=allow_extra)
    if positions == list(range(len(names))):
        return given
    if isinstance(given, pd.DataFrame):
        return given.iloc[:, positions]
    return given.select([names[at] for at in positions])


def numbers_by_class(given: Any, classes: Iterable[Any] | None, what: str) -> Any:
    """The numbers of one category as an array in the order of several classes, where they are named by class."""
    classes = [] if classes is None else list(classes)
    if len(classes) <= 2 or not isinstance(given, (pd.Series, Mapping)):
        return given
    names = list(given.index if isinstance(given, pd.Series) else given)
    values = list(given.to_numpy() if isinstance(given, pd.Series) else given.values())
    return [values[at] for at in positions_of_classes(names, classes, what)]


def are_classes(names: Iterable[Any], classes: Iterable[Any]) -> bool:
    """Whether names are those of all classes, in any order."""
    names, classes = list(names), list(classes)
    return len(names) == len(classes) and all(any(_is_same(name, label) for name in names) for label in classes)


def _is_same(name: Any, label: Any) -> bool:
    """Whether a name is that of a class: equal to it, or to its text; dates and numbers by value."""
    if str(name) == str(label):
        return True
    if isinstance(name, (Real, np.bool_)) and isinstance(label, (Real, np.bool_)):
        return bool(name == label)
    if _is_moment(name) or _is_moment(label):
        name_date, label_date = _moment(name), _moment(label)
        return name_date is not None and name_date == label_date
    text, value = (name, label) if isinstance(name, str) else (label, name)
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and float(text) == value
    except (TypeError, ValueError):
        return False


def _is_moment(value: Any) -> bool:
    return isinstance(value, (datetime.date, np.datetime64))


def _moment(value: Any) -> pd.Timestamp | None:
    """A date or moment, also in text; in UTC where it has a zone."""
    if not _is_moment(value) and not isinstance(value, str):
        return None
    try:
        moment = pd.Timestamp(value)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo is None else moment.tz_convert("UTC")
