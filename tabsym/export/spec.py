"""What a model or encoder adds up, the source of every export: its terms, and as JSON (`to_spec`, `to_stack`).

Terms are those of wide models, alone or behind `DateParts`, and of winners of comparisons. The JSON has exact numbers
and typed categories; its schema is ``spec.schema.json`` next to this file. `tabsym.export.from_spec` predicts from it.
A stack becomes the specs of its parts, and each booster a file of its own library. Of what `save` and pickles hold of a
stack see `WideBoost._keep` in `stacking.base`.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import UNSEEN
from tabsym.design.formula import Binary, Call, ColumnRef, Node, NumberLiteral
from tabsym.encoders.base import TableTransformer
from tabsym.encoders.dates import DateParts, names_of_parts
from tabsym.encoders.lookups import ColumnLookup, lookup_tables
from tabsym.encoders.native import NativeCategories
from tabsym.frame.storage import object_array
from tabsym.models.export_terms import MOMENTS, Coding, Derived, Lookup, ModelTerms, TermRecord, to_terms
from tabsym.stacking.layer import Layer, margin_names

VERSION = 1
"""Of specs; one with a higher number was written by a later tabsym."""
STACK, STACK_VERSION = "stack.json", 1
"""The file of a stack, and its version; the same holds of that."""
_KINDS = {"numbers": "number", **MOMENTS}
_ENDINGS = {"lightgbm": "txt", "xgboost": "json", "catboost": "cbm"}
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def terms_of(model: Any, base: Any = None) -> ModelTerms:
    """The terms of a fitted model; columns that steps before it make are `derived`; `base` as in `coef_table`.

    Raises
    ------
    TypeError
        It is, or holds, an estimator whose terms are not known, with a message that names it.
    """
    if hasattr(model, "export_terms"):  # a winner, of a layer above
        terms: ModelTerms = model.export_terms(base)
        return terms
    last, steps = with_steps(model)
    terms = _terms_of_last(last, base)
    for made, features in columns_of_steps(steps):
        terms = with_made_columns(terms, made, features)
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


def columns_of_steps(steps: list[tuple[str, Any]]) -> list[tuple[dict[str, Derived], Any]]:
    """The columns that the steps before a model make of columns of dates, and those they get; the last step first.

    Raises
    ------
    TypeError
        One is no `DateParts`, with a message that names it.
    """
    for name, step in steps:
        if not isinstance(step, DateParts):
            raise TypeError(
                f"Step {name!r} of the pipeline is a {type(step).__name__}, which no export holds; export the last "
                "step, and apply the others where the rows come from."
            )
    return [
        (columns_of_dates(step.formats_, step.parts_, set(step.feature_names_in_)), step.feature_names_in_)
        for _, step in reversed(steps)
    ]


def with_made_columns(terms: ModelTerms, made: Mapping[str, Derived], features: Iterable[Any]) -> ModelTerms:
    """The terms in columns of the table before some were made of others; `features`: those of the table."""
    used = {column: origin for column, origin in made.items() if column in terms.columns}
    return replace(terms, derived={**terms.derived, **used}, features=tuple(map(str, features)))


def columns_of_dates(
    formats: Mapping[str, str], parts: Mapping[str, list[str]], taken: Collection[str]
) -> dict[str, Derived]:
    """The columns that are made of columns of dates: by name the format of the text, and the parts."""
    derived: dict[str, Derived] = {}
    for name, style in formats.items():
        names = [name, *names_of_parts(name, parts[name], taken)]
        pairs = zip(names, ["day", *parts[name]], strict=True)
        derived |= {column: Derived(name, part, style) for column, part in pairs}
    return derived


def number_of_part(text: str) -> int:
    """A part of a date as a number; 1 is Monday."""
    return _WEEKDAYS.index(text) + 1 if text in _WEEKDAYS else int(text)


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
        A part of the model is no lookup and no number, with a message that names it.

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
        lookups, names = lookup_tables(model), [str(name) for name in model.get_feature_names_in()]
        looked_up = {lookup.column for lookup in lookups}
        passed = {name: {"names": [name], "columns": [name]} for name in names if name not in looked_up}
        return lookups_spec(model, lookups, names, passed, {lookup.column: lookup.kind for lookup in lookups}, names)
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
        "classes": None if terms.classes is None else [written(label) for label in terms.classes.tolist()],
        "n_outputs": terms.n_outputs,
        "features": list(terms.features),
        "columns": [_column(name, kind, terms.derived) for name, kind in terms.columns.items()],
        "checked": [{"column": name, "coding": coding} for name, coding in terms.checked],
        "codings": [_coding(coding) for coding in terms.codings],
        "tables": [_table(table) for table in terms.tables],
        "terms": [*map(_term, terms.terms), *_offset(terms)],
    }


def _column(name: str, kind: str, derived: Mapping[str, Derived]) -> dict[str, Any]:
    origin = derived.get(name)
    made = {} if origin is None else {"from": origin.source, "part": origin.part, "style": origin.style}
    return {"name": name, "type": kind} | made


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
        lookup.column: {"names": lookup.names, "columns": [lookup.column], "table": index, "component": 0}
        for index, lookup in enumerate(lookups)
    }
    return {
        "tabsym_spec": VERSION,
        "estimator": type(encoder).__name__,
        "features": list(features),
        "columns": [_column(name, kind, derived or {}) for name, kind in kinds.items()],
        "checked": [
            {"column": lookup.column, "coding": index} for index, lookup in enumerate(lookups) if lookup.checked
        ],
        "codings": [_coding(lookup.coding) for lookup in lookups],
        "tables": [_table_of_encoder(lookup, index) for index, lookup in enumerate(lookups)],
        "outputs": [outputs[name] for name in order],
    }


def _table_of_encoder(lookup: ColumnLookup, index: int) -> dict[str, Any]:
    table: dict[str, Any] = {"name": lookup.column, "codings": [index], "width": len(lookup.names)}
    if lookup.values.ndim == 1:
        return table | {"ones": lookup.values[:-1].tolist(), "default": int(lookup.values[-1])}
    rows = lookup.values.tolist()
    values = [[None if isinstance(value, float) and math.isnan(value) else value for value in row] for row in rows]
    table |= {"text": True} if lookup.values.dtype == object else {}
    return table | {"values": values[:-1], "default": values[-1]}


def _coding(coding: Coding) -> dict[str, Any]:
    if coding.bounds is not None:
        return {"bounds": coding.bounds.tolist(), "missing": coding.missing}
    assert coding.categories is not None
    return {"categories": [written(category) for category in coding.categories.tolist()]}


def _table(table: Lookup) -> dict[str, Any]:
    width = table.values.shape[2]
    record: dict[str, Any] = {"name": table.name, "codings": list(table.codings), "width": width}
    if len(table.codings) > 1:
        record["codes"] = table.codes.T.tolist()
    record["values"] = table.values.reshape(len(table.values), -1).tolist()
    return record | {"default": table.default.ravel().tolist(), "rows": table.rows.tolist()}


def _term(term: TermRecord) -> dict[str, Any]:
    return {
        "name": term.name,
        "constant": term.constant,
        "numbers": [
            _expression(factor.node) | ({} if factor.fill is None else {"fill": factor.fill}) for factor in term.numbers
        ],
        "lookups": [
            {"table": lookup.table, "columns": list(lookup.columns), "component": lookup.component}
            for lookup in term.lookups
        ],
    }


def _offset(terms: ModelTerms) -> list[dict[str, Any]]:
    if terms.offset is None:
        return []
    number: dict[str, Any] = {"column": terms.offset.name}
    number = {"function": "log", "of": number} if terms.offset.is_exposure else number
    return [{"name": f"({terms.offset.option})", "constant": 1.0, "numbers": [number], "lookups": []}]


def _expression(node: Node) -> dict[str, Any]:
    match node:
        case NumberLiteral():
            return {"value": node.value}
        case ColumnRef():
            return {"column": node.name}
        case Call():
            return {"function": node.function, "of": _expression(node.argument)}
        case Binary():
            left, right = _expression(node.left), _expression(node.right)
            return {"operator": node.operator, "left": left, "right": right}
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


# -- stacks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stack:
    """A fitted stack, and how the columns that it gets are made of those of a table.

    Attributes
    ----------
    model : WideBoostClassifier or WideBoostRegressor
    features : tuple of str
        The columns of the table.
    derived : dict of str -> Derived
        Those of the model that are made of others.
    classes : ndarray or None
    """

    model: Any
    features: tuple[str, ...]
    derived: Mapping[str, Derived] = field(default_factory=dict)
    classes: NDArray[Any] | None = None


def to_stack(model: Any, folder: str | os.PathLike[str]) -> Path:
    """Write a fitted stack as files: its boosters as their libraries write them, and how to join them.

    ``stack.json`` has the spec of the wide model (as `to_spec` makes it), and for each part of the stack its share, its
    mode, the file of its booster and the spec of the columns that the booster gets. Saving and serving, the guide, has
    the script that predicts from these files by numpy and the library alone.

    Parameters
    ----------
    model : WideBoostClassifier or WideBoostRegressor
        Also behind `DateParts` in a pipeline, or the winner of a comparison; boosters of LightGBM, XGBoost or CatBoost.
    folder : path
        It is made if it is not there.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError, TypeError
        A part of the stack cannot be written, with a message that names it.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from tabsym import WideBoostRegressor
    >>> from tabsym.export import to_stack
    >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50, "weight": range(200)})
    >>> y = [len(s) + 10.0 * (s == "L") + (w > 99) for s, w in zip(X["size"], X["weight"])]
    >>> model = WideBoostRegressor(mode="margin", early_stopping=False).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in to_stack(model, folder).iterdir())
    ['margin.txt', 'stack.json']
    """
    stack = stack_of(model)
    terms = to_terms(stack.model.wide_)
    n_outputs = 1 if stack.classes is None or len(stack.classes) == 2 else len(stack.classes)
    if terms.n_outputs != n_outputs:
        raise ValueError("The wide model of the stack has other classes than the stack; fit it anew to export it.")
    used = {name: origin for name, origin in stack.derived.items() if name in terms.columns}
    wide = model_spec(stack.model.wide_, replace(terms, derived=used, features=stack.features, classes=stack.classes))
    parts = [_part(stack, weight, layer, n_outputs) for weight, layer in stack.model._layers]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for (_, layer), part in zip(stack.model._layers, parts, strict=True):
        if layer is not None:
            _write_booster(layer, folder / part["file"])
    record = {"tabsym_stack": STACK_VERSION, "estimator": type(stack.model).__name__, "wide": wide, "parts": parts}
    (folder / STACK).write_text(json.dumps(record, allow_nan=False), encoding="utf-8")
    return folder


def stack_of(model: Any) -> Stack:
    """The stack of a model that is one, or of a pipeline or winner that ends in one.

    Raises
    ------
    TypeError
        There is none, with a message with the model's type.
    """
    if hasattr(model, "export_stack"):  # a winner, of a layer above
        stack: Stack = model.export_stack()
        return stack
    last, steps = with_steps(model)
    if not hasattr(last, "_layers"):
        raise TypeError(f"{type(last).__name__} is no stack; to_spec, to_sql and to_onnx are for wide models.")
    check_is_fitted(last)
    derived: dict[str, Derived] = {}
    names = getattr(last, "feature_names_in_", None)
    if names is None:
        raise ValueError("The stack was fitted on columns without names; give fit a table whose columns have names.")
    for made, features in columns_of_steps(steps):
        derived, names = derived | made, features
    return Stack(last, tuple(map(str, names)), derived, getattr(last, "classes_", None))


def _part(stack: Stack, weight: float, layer: Layer | None, n_outputs: int) -> dict[str, Any]:
    if layer is None:
        return {"share": weight, "mode": "wide"}
    library = layer._library
    if library not in _ENDINGS:
        raise TypeError(
            f"{type(layer.booster).__name__} has no file of its own that other programs read; stack with a booster of "
            "LightGBM, XGBoost or CatBoost, or write all by tabsym.save."
        )
    if layer.mode == "alone" and layer.offset is not None:
        raise ValueError(
            f"The booster on the wide model starts from {layer.offset}, which the files do not hold; stack with "
            "mode='margin', or write all by tabsym.save."
        )
    inputs, categorical = _inputs(stack, layer)
    names = [name for output in inputs["outputs"] for name in output["names"]]  # as the booster knows the columns
    names += margin_names(names, n_outputs) if layer.mode == "feature" else []
    return {
        "share": weight,
        "mode": layer.mode,
        "library": library,
        "file": f"{layer.mode}.{_ENDINGS[library]}",
        "n_outputs": n_outputs,
        "inputs": inputs,
        "names": names,
        "categorical": categorical,
    }


def _write_booster(layer: Layer, path: Path) -> None:
    booster: Any = layer.booster
    if layer._library == "lightgbm":
        booster.booster_.save_model(path)
    elif layer._library == "xgboost":
        booster.get_booster().save_model(path)
    else:
        booster.save_model(str(path))


def _inputs(stack: Stack, layer: Layer) -> tuple[dict[str, Any], list[str]]:
    """The spec of the encoder that makes the columns of a booster, and those that are categories to it."""
    groups, native = _coders(layer)
    new_names = {name: new for new, name in native.names_.items()}
    lookups = [_lookup(native, new_names[name], groups.get(name)) for name in native.vocabularies_]
    kinds = dict.fromkeys(native.vocabularies_, "category")
    kinds |= {name: _KINDS[str(measure)] for name, measure in native.measures_.items()}
    numbers = {name: {"names": [new_names[name]], "columns": [name], "number": True} for name in native.measures_}
    spec = lookups_spec(native, lookups, list(new_names), numbers, kinds, stack.features, stack.derived)
    return spec, list(native.categorical_)


def _coders(layer: Layer) -> tuple[dict[str, ColumnLookup], NativeCategories]:
    """The groups of columns, where there are some; and what the booster gets of columns or groups."""
    coder = layer.coder
    if isinstance(coder, NativeCategories):
        return {}, coder
    groups, native = (step for _, step in coder.steps)
    if layer._codes != "group":
        raise TypeError(
            f"The categories of the stack are coded by {type(groups).__name__}, which no export holds; use "
            "codes='ordinal', 'native' or 'group'."
        )
    return {lookup.column: lookup for lookup in lookup_tables(groups)}, native


def _lookup(native: NativeCategories, new: str, group: ColumnLookup | None) -> ColumnLookup:
    """What a booster gets of each value of a column, or of its group: a number, of CatBoost's categories a text."""
    name = native.names_[new]
    levels = native.vocabularies_[name][0].categories.tolist()
    codes, missing = np.array([*range(len(levels)), UNSEEN, UNSEEN]), np.arange(len(levels) + 2) == len(levels)
    if native.output == "category":
        values = native.of_codes(name, codes, missing).codes.astype(np.float64)
        values[values < 0] = np.nan
    elif native.output == "ordinal" or new in native.categorical_:
        values = native.of_codes(name, codes, missing)
    else:  # a column without any value
        values = np.full(len(codes), np.nan)
    coding = Coding(object_array([*levels, None]))
    if group is not None:
        coding, position = group.coding, {level: code for code, level in enumerate([*levels, None])}
        values = values[[position.get(label, len(levels) + 1) for label in group.values[:, 0].tolist()]]
    return ColumnLookup(name, "category", [new], coding, values[:, None], checked=False)
