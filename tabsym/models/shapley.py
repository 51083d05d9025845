"""Contributions as `shap.Explanation`: of main effects in a sum they are the Shapley values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tabsym.frame import Kind, Table
from tabsym.models.explain import columns_of_terms
from tabsym.models.model import WideModel
from tabsym.plots.style import category_text


def shap_explanation(model: WideModel, made: pd.DataFrame, table: Table, outputs: list[str]) -> Any:
    """The explanation of the rows of a table; `made`: what `explain` returns for them."""
    try:
        import shap
    except ModuleNotFoundError:
        raise ModuleNotFoundError("to_shap needs shap: pip install shap", name="shap") from None
    columns = columns_of_terms(model)
    terms = list(dict.fromkeys(made.columns.get_level_values(0)))
    named = [name for name in terms if columns.get(name)]
    constants = [name for name in terms if name not in named]
    values = np.zeros((len(made), len(named), len(outputs)))
    for at, name in enumerate(named):
        values[:, at] = made[name].to_numpy(dtype=np.float64).reshape(len(made), -1)
    base = np.zeros((len(made), len(outputs)))
    for name in constants:
        base += made[name].to_numpy(dtype=np.float64).reshape(len(made), -1)
    data = np.empty((len(made), len(named)), dtype=object)
    for at, name in enumerate(named):
        data[:, at] = _values_of(table, columns[name])
    if len(outputs) == 1:
        return shap.Explanation(values[:, :, 0], base[:, 0], data, feature_names=named)
    return shap.Explanation(values, base, data, feature_names=named, output_names=outputs)


def _values_of(table: Table, columns: tuple[str, ...]) -> list[Any]:
    """What the rows have in the columns of a term: numbers as such, all else as text."""
    held = [table[name].series.to_list() for name in columns]
    if len(columns) > 1:
        return [category_text(cell) for cell in zip(*held, strict=True)]
    if table[columns[0]].kind is Kind.NUMERIC:
        return list(table[columns[0]].values)
    return [category_text(value) for value in held[0]]
