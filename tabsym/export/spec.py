"""What a model or encoder adds up, the source of every export: its terms, and as JSON (`to_spec`).

Terms are those of wide models, alone or behind `DateParts`, and of winners of comparisons. The JSON has exact numbers
and typed categories; its schema is ``spec.schema.json`` beside this file. `tabsym.export.from_spec` predicts from it.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from tabsym.design.formula import Binary, Call, ColumnRef, Node, NumberLiteral
from tabsym.encoders.base import TableTransformer
from tabsym.encoders.dates import DateParts, names_of_parts
from tabsym.encoders.lookups import ColumnLookup, lookup_tables
from tabsym.models.export_terms import Coding, Derived, Lookup, ModelTerms, NumberFactor, TermRecord, to_terms


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
        made = columns_of_dates(step.formats_, step.parts_, set(step.feature_names_in_))
        terms = with_made_columns(terms, made, step.feature_names_in_)
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


def with_made_columns(terms: ModelTerms, made: Mapping[str, Derived], features: Iterable[Any]) -> ModelTerms:
    """The terms in columns of the table before some were made of others; `features`: those of the table."""
    used = {column: own for column, own in made.items() if column in terms.columns}
    return replace(terms, derived={**terms.derived, **used}, features=tuple(map(str, features)))


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


VERSION = 1
"""Of specs; one with a higher number was written by a later tabsym."""


def to_spec(model: Any) -> dict[str, Any]:
    """A fitted model or encoder as plain values for JSON.

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Also behind `DateParts` in a pipeline, or the winner of a comparison. Or MODLEncoder, OneHotEncoder, TIWSEncoder
        or WideEncoder, as far as each value of a column has one encoding.

    Returns
    -------
    dict
        As `spec_schema` describes it; `from_spec` predicts, or encodes, from it with numpy alone.

    Raises
    ------
    ValueError, TypeError
        A part of the model is no lookup and no number, in a sentence that names it.

    Examples
    --------
    >>> import json
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym.export import from_spec, to_spec
    >>> X, y = pd.DataFrame({"town": ["Ulm", "Bonn"] * 9}), [1.0, 3.0] * 9
    >>> text = json.dumps(to_spec(WideRegressor().fit(X, y)))
    >>> from_spec(json.loads(text)).predict({"town": ["Ulm", "Bonn", "Ulm"]}).round(1).tolist()
    [1.0, 3.0, 1.0]
    """
    if isinstance(model, TableTransformer):
        return _spec_of_encoder(model, lookup_tables(model))
    return model_spec(model, terms_of(model))


def spec_schema() -> dict[str, Any]:
    """The JSON Schema of specs.

    Returns
    -------
    dict

    Examples
    --------
    >>> from tabsym.export import spec_schema
    >>> spec_schema()["title"]
    'tabsym spec'
    """
    schema: dict[str, Any] = json.loads(files("tabsym.export").joinpath("spec.schema.json").read_text(encoding="utf-8"))
    return schema


def model_spec(model: Any, terms: ModelTerms) -> dict[str, Any]:
    """The spec of a model with these terms."""
    return {
        "tabsym_spec": VERSION,
        "estimator": type(model).__name__,
        "link": terms.link,
        "classes": None if terms.classes is None else [written(one) for one in terms.classes.tolist()],
        "n_outputs": terms.n_outputs,
        "features": list(terms.features),
        "columns": [_column(name, kind, terms.derived) for name, kind in terms.columns.items()],
        "checked": [{"column": name, "coding": coding} for name, coding in terms.checked],
        "codings": [_coding(one) for one in terms.codings],
        "tables": [_table(one) for one in terms.tables],
        "terms": [*map(_term, terms.terms), *_offset(terms)],
    }


def _column(name: str, kind: str, derived: Mapping[str, Derived]) -> dict[str, Any]:
    own = derived.get(name)
    made = {} if own is None else {"from": own.source, "part": own.part, "style": own.style}
    return {"name": name, "type": kind} | made


def _spec_of_encoder(encoder: Any, lookups: list[ColumnLookup]) -> dict[str, Any]:
    names_in = [str(name) for name in encoder.get_feature_names_in()]
    looked_up = {one.column for one in lookups}
    passed = {name: {"names": [name], "columns": [name]} for name in names_in if name not in looked_up}
    return lookups_spec(encoder, lookups, names_in, passed, {one.column: one.kind for one in lookups}, names_in)


def lookups_spec(
    encoder: Any,
    lookups: list[ColumnLookup],
    order: Sequence[str],
    passed: Mapping[str, dict[str, Any]],
    kinds: Mapping[str, str],
    features: Sequence[str],
    derived: Mapping[str, Derived] | None = None,
) -> dict[str, Any]:
    """The spec of an encoder.

    Parameters
    ----------
    encoder : estimator
    lookups : list of ColumnLookup
    order : list of str
        The columns that are encoded or passed on, in the order of the outputs.
    passed : dict of str -> dict
        The outputs that are no lookups, by column.
    kinds : dict of str -> str
        By column, what it is read as (see `ModelTerms`).
    features : list of str
        The columns of the table, and by `derived` those that are made of them.
    """
    outputs = {**passed} | {
        one.column: {"names": one.names, "columns": [one.column], "table": index, "component": 0}
        for index, one in enumerate(lookups)
    }
    return {
        "tabsym_spec": VERSION,
        "estimator": type(encoder).__name__,
        "features": list(features),
        "columns": [_column(name, kind, derived or {}) for name, kind in kinds.items()],
        "checked": [{"column": one.column, "coding": index} for index, one in enumerate(lookups) if one.checked],
        "codings": [_coding(one.coding) for one in lookups],
        "tables": [_table_of_encoder(one, index) for index, one in enumerate(lookups)],
        "outputs": [outputs[name] for name in order],
    }


def _table_of_encoder(lookup: ColumnLookup, index: int) -> dict[str, Any]:
    found: dict[str, Any] = {"name": lookup.column, "codings": [index], "width": len(lookup.names)}
    if lookup.values.ndim == 1:
        return found | {"ones": lookup.values[:-1].tolist(), "default": int(lookup.values[-1])}
    values = [[_or_null(one) for one in row] for row in lookup.values.tolist()]
    found |= {"text": True} if lookup.values.dtype == object else {}
    return found | {"values": values[:-1], "default": values[-1]}


def _or_null(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _coding(coding: Coding) -> dict[str, Any]:
    if coding.bounds is not None:
        return {"bounds": coding.bounds.tolist(), "missing": coding.missing}
    assert coding.categories is not None
    return {"categories": [written(one) for one in coding.categories.tolist()]}


def _table(table: Lookup) -> dict[str, Any]:
    width = table.values.shape[2]
    found: dict[str, Any] = {"name": table.name, "codings": list(table.codings), "width": width}
    if len(table.codings) > 1:
        found["codes"] = table.codes.T.tolist()
    found["values"] = table.values.reshape(len(table.values), -1).tolist()
    return found | {"default": table.default.ravel().tolist(), "rows": table.rows.tolist()}


def _term(term: TermRecord) -> dict[str, Any]:
    return {
        "name": term.name,
        "constant": term.constant,
        "numbers": [_number(one) for one in term.numbers],
        "lookups": [
            {"table": one.table, "columns": list(one.columns), "component": one.component} for one in term.lookups
        ],
    }


def _offset(terms: ModelTerms) -> list[dict[str, Any]]:
    if terms.offset is None:
        return []
    own: dict[str, Any] = {"column": terms.offset.name}
    own = {"function": "log", "of": own} if terms.offset.is_exposure else own
    return [{"name": f"({terms.offset.option})", "constant": 1.0, "numbers": [own], "lookups": []}]


def _number(number: NumberFactor) -> dict[str, Any]:
    found = _expression(number.node)
    return found if number.fill is None else found | {"fill": number.fill}


def _expression(node: Node) -> dict[str, Any]:
    match node:
        case NumberLiteral():
            return {"value": node.value}
        case ColumnRef():
            return {"column": node.name}
        case Call():
            return {"function": node.function, "of": _expression(node.argument)}
        case Binary():
            return {
                "operator": node.operator,
                "left": _expression(node.left),
                "right": _expression(node.right),
            }
    raise AssertionError(f"{node} is not numeric")


def written(value: Any) -> Any:
    """A category or class in JSON: text, booleans, numbers and null as they are, others with their type.

    Raises
    ------
    ValueError
        Its type has no way to be written.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": str(value)}
    if isinstance(value, dt.datetime):
        moment = pd.Timestamp(value)
        if moment.tz is not None and not moment.nanosecond:
            return {"type": "datetime in UTC", "value": moment.tz_convert("UTC").isoformat(timespec="microseconds")}
        if moment.tz is None:
            text = moment.isoformat(timespec="nanoseconds")
            return {"type": "datetime", "value": text if moment.nanosecond else text.removesuffix("000")}
    if isinstance(value, dt.timedelta):
        nanoseconds = value // dt.timedelta(microseconds=1) * 1000 + int(getattr(value, "nanoseconds", 0))
        return {"type": "timedelta", "value": nanoseconds}
    if isinstance(value, (dt.date, dt.time)):
        return {"type": "date" if isinstance(value, dt.date) else "time", "value": value.isoformat()}
    if isinstance(value, bytes):
        return {"type": "bytes", "value": value.hex()}
    if isinstance(value, Decimal):
        return {"type": "decimal", "value": str(value)}
    raise ValueError(
        f"The category {value!r} has the type {type(value).__name__}, which JSON does not hold; {as_text(value)}."
    )


def as_text(value: Any) -> str:
    """What to do with the column of a category that a file has no way to write, as the end of a sentence."""
    words = "make the column's values text before fit (astype(str))"
    if isinstance(value, pd.Interval):
        words += ", or fit the number itself with these cut points, numeric={column: [18, 25, 40]}"
    return words
