"""The winner of a comparison as terms, with what was done to the columns of the table before its model got them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from tabsym.compare.number_format import is_plain
from tabsym.compare.retyping import Retyping
from tabsym.compare.task import CLASSES
from tabsym.export.spec import columns_of_dates, terms_of
from tabsym.export.stack import Stack, stack_of
from tabsym.models.data import OffsetColumn
from tabsym.models.records import Derived, ModelTerms
from tabsym.warn import warn_user


def terms_of_winner(winner: Any, base: Any = None) -> ModelTerms:
    """The terms of a winner's model, in columns of the table as the comparison took it.

    Raises
    ------
    TypeError
        Its model is no wide model.
    ValueError
        Columns were read from text in a way that exports do not hold, in a sentence that names one.
    """
    terms = terms_of(winner.estimator, base)
    if winner.features is not None:
        terms = _before_features(terms, winner.features)
    _check_reading(winner.retyping, {terms.source(name) for name in terms.columns})
    if winner.task in CLASSES:
        terms = replace(terms, classes=winner.classes_[winner.seen])
    return replace(terms, offset=_offset(winner, terms))


def stack_of_winner(winner: Any) -> Stack:
    """The stack of a winner, and how the columns that it gets are made of those of the table.

    Raises
    ------
    TypeError
        It is no stack.
    ValueError
        It has offsets, or columns were read from text in a way that exports do not hold.
    """
    stack = stack_of(winner.estimator)
    for role in ("exposure", "offset"):
        name = getattr(winner.roles, role)
        if name is not None:
            raise ValueError(
                f"The predictions of the winner take the {role} {name!r}, which files of a stack do not hold; compare "
                f"without the {role}."
            )
    derived, features = dict(stack.derived), stack.features
    if winner.features is not None:
        derived, features = derived | _made_columns(winner.features), tuple(winner.features.kinds)
    _check_reading(winner.retyping, set(features))
    classes = winner.classes_[winner.seen] if winner.task in CLASSES else None
    return replace(stack, derived=derived, features=features, classes=classes)


def _before_features(terms: ModelTerms, features: Any) -> ModelTerms:
    """With categories as text, and dates in parts."""
    used = {name: own for name, own in _made_columns(features).items() if name in terms.columns}
    return replace(terms, derived={**terms.derived, **used}, features=tuple(features.kinds))


def _made_columns(features: Any) -> dict[str, Derived]:
    """The columns that are made of those of the table."""
    dates = {name: kind for name, kind in features.kinds.items() if name in features.parts}
    texts = {
        name: Derived(name, "text")
        for name, kind in features.kinds.items()
        if kind == "categories" and name not in features.parts
    }
    return texts | columns_of_dates(dates, features.parts, features.kinds)


def _check_reading(retyping: Retyping, used: set[str]) -> None:
    for name, one in retyping.formats.items():
        if name in used and not is_plain(one.example):
            value = float(one.parse(pd.Series([one.example]))[0][0])
            warn_user(
                f"Column {name!r} was read from text such as {one.example!r}, and the export takes numbers; make that "
                f"{value!r} where its rows come from."
            )
    for name, words in retyping.na_values.items():
        if words and (not name or name in used):
            which = f" of column {name!r}" if name else ""
            raise ValueError(
                f"The values {', '.join(map(repr, words))}{which} were read as missing, which an export does not hold; "
                "make them missing in the table, and compare again."
            )


def _offset(winner: Any, terms: ModelTerms) -> OffsetColumn | None:
    roles = winner.roles
    if winner.task == "count" and roles.exposure is not None:
        return OffsetColumn(roles.exposure, True)
    if roles.offset is None:
        return terms.offset
    if winner.task != "count" and terms.link != "identity":
        raise ValueError(
            f"The predictions of the winner are those of a log link plus the offset {roles.offset!r}, which an export "
            "does not hold; compare without the offset."
        )
    return OffsetColumn(roles.offset, False)
