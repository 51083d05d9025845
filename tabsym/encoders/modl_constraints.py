"""The options `splits`, `special_codes` and `monotonic` of MODLEncoder: what they hold, and what columns make of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from tabsym.categories.contingency import Contingency
from tabsym.frame import NUMBERS, Measure, exact_parts
from tabsym.modl import Given, Settings
from tabsym.modl.given import plain

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
    """What the search for each column is asked for.

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
