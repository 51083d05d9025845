"""The winner of a comparison as terms, with what was done to the columns of the table before its model got them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tabsym.compare.number_format import is_plain
from tabsym.compare.retyping import Retyping
from tabsym.compare.task import CLASSES
from tabsym.encoders.dates import names_of_parts
from tabsym.export.terms import terms_of
from tabsym.models.data import OffsetColumn
from tabsym.models.records import Derived, ModelTerms


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
    _refuse_reading(winner.retyping, {terms.source(name) for name in terms.columns})
    if winner.task in CLASSES:
        terms = replace(terms, classes=winner.classes_[winner.seen])
    return replace(terms, offset=_offset(winner, terms))


def _before_features(terms: ModelTerms, features: Any) -> ModelTerms:
    """With categories as text, and dates in parts."""
    derived = dict(terms.derived)
    for name, kind in features.kinds.items():
        if name in features.parts:
            names = [name, *names_of_parts(name, features.parts[name], features.kinds)]
            for column, part in zip(names, ["day", *features.parts[name]], strict=True):
                if column in terms.columns:
                    derived[column] = Derived(name, part, kind)
        elif kind == "categories" and name in terms.columns:
            derived[name] = Derived(name, "text")
    return replace(terms, derived=derived, features=tuple(features.kinds))


def _refuse_reading(retyping: Retyping, used: set[str]) -> None:
    for name, one in retyping.formats.items():
        if name in used and not is_plain(one.example):
            raise ValueError(
                f"Column {name!r} was read from text such as {one.example!r}, which an export does not hold; make it "
                "a number in the table, and compare again."
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
