"""The terms of what can be exported: wide models, alone or behind `DateParts`, and winners of comparisons."""

from __future__ import annotations

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
    if hasattr(model, "boosters_"):
        raise TypeError(
            f"{type(model).__name__} adds boosters to a wide model, which no export holds; export the wide model, "
            "`wide_`, and write each of `boosters_` to a file of its own by its library."
        )
    if not isinstance(model, Pipeline):
        return to_terms(model, base)
    check_is_fitted(model)
    *steps, (_, last) = [(name, step) for name, step in model.steps if step is not None and step != "passthrough"]
    terms = to_terms(last, base)
    for name, step in reversed(steps):
        if not isinstance(step, DateParts):
            raise TypeError(
                f"Step {name!r} of the pipeline is a {type(step).__name__}, which no export holds; export the last "
                "step, and apply the others where the rows come from."
            )
        terms = _with_dates(terms, step)
    return terms


def _with_dates(terms: ModelTerms, dates: DateParts) -> ModelTerms:
    """The terms in columns of the table before its dates were made parts."""
    derived = dict(terms.derived)
    taken = set(dates.feature_names_in_)
    for name, style in dates.formats_.items():
        names = [name, *names_of_parts(name, dates.parts_[name], taken)]
        for column, part in zip(names, ["day", *dates.parts_[name]], strict=True):
            if column in terms.columns:
                derived[column] = Derived(name, part, style)
    return replace(terms, derived=derived, features=tuple(map(str, dates.feature_names_in_)))
