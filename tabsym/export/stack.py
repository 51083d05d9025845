"""`to_stack`: a stack for other programs, as the specs of its parts, and each booster in a file of its own library.

Of what `save` and pickles hold of a stack see `WideBoost._keep` in `stacking.base`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import UNSEEN
from tabsym.encoders.lookups import ColumnLookup, lookup_tables
from tabsym.encoders.native import NativeCategories
from tabsym.export.spec import all_dates, columns_of_dates, lookups_spec, model_spec, with_steps
from tabsym.frame.storage import object_array
from tabsym.models.export_terms import MOMENTS, Coding, Derived, to_terms
from tabsym.stacking.layer import Layer, margin_names

VERSION = 1
"""Of ``stack.json``; one with a higher number was written by a later tabsym."""
STACK = "stack.json"
_KINDS = {"numbers": "number", **MOMENTS}
_ENDINGS = {"lightgbm": "txt", "xgboost": "json", "catboost": "cbm"}


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
        A part of the stack cannot be written, in a sentence that names it.

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
    used = {name: own for name, own in stack.derived.items() if name in terms.columns}
    wide = model_spec(stack.model.wide_, replace(terms, derived=used, features=stack.features, classes=stack.classes))
    parts = [_part(stack, share, layer, n_outputs) for share, layer in stack.model._layers]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for (_, layer), part in zip(stack.model._layers, parts, strict=True):
        if layer is not None:
            _write_booster(layer, folder / part["file"])
    found = {"tabsym_stack": VERSION, "estimator": type(stack.model).__name__, "wide": wide, "parts": parts}
    (folder / STACK).write_text(json.dumps(found, allow_nan=False), encoding="utf-8")
    return folder


def stack_of(model: Any) -> Stack:
    """The stack of a model that is one, or of a pipeline or winner that ends in one.

    Raises
    ------
    TypeError
        There is none, in a sentence that says what it is.
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
    for dates in all_dates(steps):
        names = dates.feature_names_in_
        derived |= columns_of_dates(dates.formats_, dates.parts_, set(names))
    return Stack(last, tuple(map(str, names)), derived, getattr(last, "classes_", None))


def _part(stack: Stack, share: float, layer: Layer | None, n_outputs: int) -> dict[str, Any]:
    if layer is None:
        return {"share": share, "mode": "wide"}
    library = layer._library
    if library not in _ENDINGS:
        raise TypeError(
            f"{type(layer.booster).__name__} has no file of its own that other programs read; stack with a booster of "
            "LightGBM, XGBoost or CatBoost, or write all by tabsym.save."
        )
    inputs, categorical = _inputs(stack, layer)
    return {
        "share": share,
        "mode": layer.mode,
        "library": library,
        "file": f"{layer.mode}.{_ENDINGS[library]}",
        "n_outputs": n_outputs,
        "inputs": inputs,
        "names": _names(layer, inputs, n_outputs),
        "categorical": categorical,
    }


def _names(layer: Layer, inputs: dict[str, Any], n_outputs: int) -> list[str]:
    """The columns as the booster knows them; those of margins are the last."""
    own = [name for output in inputs["outputs"] for name in output["names"]]
    return own + (margin_names(own, n_outputs) if layer.mode == "feature" else [])


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
    lookups = [_lookup(native, new_names[name], groups.get(name)) for name in native.alphabets_]
    kinds = dict.fromkeys(native.alphabets_, "category")
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
    return {one.column: one for one in lookup_tables(groups)}, native


def _lookup(native: NativeCategories, new: str, group: ColumnLookup | None) -> ColumnLookup:
    """What a booster gets of each value of a column, or of its group: a number, of CatBoost's categories a text."""
    name = native.names_[new]
    levels = native.alphabets_[name][0].symbols.tolist()
    codes, missing = np.array([*range(len(levels)), UNSEEN, UNSEEN]), np.arange(len(levels) + 2) == len(levels)
    if native.output == "category":
        own = native.of_codes(name, codes, missing).codes.astype(np.float64)
        own[own < 0] = np.nan
    elif native.output == "ordinal" or new in native.categorical_:
        own = native.of_codes(name, codes, missing)
    else:  # a column without any value
        own = np.full(len(codes), np.nan)
    coding = Coding(object_array([*levels, None]))
    if group is not None:
        coding, position = group.coding, {level: code for code, level in enumerate([*levels, None])}
        own = own[[position.get(label, len(levels) + 1) for label in group.values[:, 0].tolist()]]
    return ColumnLookup(name, "category", [new], coding, own[:, None], checked=False)
