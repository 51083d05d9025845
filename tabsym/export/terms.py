"""The terms of what can be exported: wide models, alone or behind `DateParts`, and winners of comparisons."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders.dates import DateParts, names_of_parts
from tabsym.models.records import Derived, ModelTerms
from tabsym.models.terms import to_terms


def terms_of(model: Any, base: Any = None) -> ModelTerms:
    """The terms of a fitted model; columns that steps before it make are `derived`; `base` as in `coef_table`.

    Raises
    ------
    TypeError
        It is, or holds, an estimator whose terms are not known, in a sentence that names it.
    """
    if hasattr(model, "export_terms"):  # a winner, of a layer above
        terms: ModelTerms = model.export_terms(base)
        return terms
    last, steps = with_steps(model)
    terms = _terms_of_last(last, base)
    for step in all_dates(steps):
        terms = _with_dates(terms, step)
    return terms


def _terms_of_last(model: Any, base: Any) -> ModelTerms:
    if not hasattr(model, "boosters_"):
        return to_terms(model, base)
    if model.boosters_:
        raise TypeError(
            f"{type(model).__name__} adds boosters to a wide model, which is no sum of terms; tabsym.export.to_stack "
            "writes the wide model and each booster to files of their own, or export the wide model alone, `wide_`."
        )
    return to_terms(model.wide_, base)


def with_steps(model: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """The last step of a fitted pipeline, and those before it; or a model, and none."""
    if not isinstance(model, Pipeline):
        return model, []
    check_is_fitted(model)
    *steps, (_, last) = [(name, step) for name, step in model.steps if step is not None and step != "passthrough"]
    return last, steps


def all_dates(steps: list[tuple[str, Any]]) -> list[DateParts]:
    """The steps before a model, the last one first.

    Raises
    ------
    TypeError
        One is no `DateParts`, in a sentence that names it.
    """
    for name, step in steps:
        if not isinstance(step, DateParts):
            raise TypeError(
                f"Step {name!r} of the pipeline is a {type(step).__name__}, which no export holds; export the last "
                "step, and apply the others where the rows come from."
            )
    return [step for _, step in reversed(steps)]


def _with_dates(terms: ModelTerms, dates: DateParts) -> ModelTerms:
    """The terms in columns of the table before its dates were made parts."""
    made = columns_of_dates(dates.formats_, dates.parts_, set(dates.feature_names_in_))
    used = {column: own for column, own in made.items() if column in terms.columns}
    derived = {**terms.derived, **used}
    return replace(terms, derived=derived, features=tuple(map(str, dates.feature_names_in_)))


def columns_of_dates(
    formats: Mapping[str, str], parts: Mapping[str, list[str]], taken: Collection[str]
) -> dict[str, Derived]:
    """The columns that are made of columns of dates: by name the format of the text, and the parts."""
    found: dict[str, Derived] = {}
    for name, style in formats.items():
        names = [name, *names_of_parts(name, parts[name], taken)]
        found |= {column: Derived(name, part, style) for column, part in zip(names, ["day", *parts[name]], strict=True)}
    return found


_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def number_of_part(text: str) -> int:
    """A part of a date as a number; 1 is Monday."""
    return _WEEKDAYS.index(text) + 1 if text in _WEEKDAYS else int(text)
