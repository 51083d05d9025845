"""`lookup_tables`: what a fitted encoder makes of each value of a column, where nothing else of the row matters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tabsym.frame.storage import object_array
from tabsym.models.records import Coding

MISSING = -2
"""In the codes that an encoder's `_encode_column` gets: a missing value that is not in the alphabet."""


@dataclass(frozen=True, eq=False)
class ColumnLookup:
    """The output columns of one column, by code.

    Attributes
    ----------
    column : str
    kind : str
        "category", "number", "date", "date in UTC" or "duration", as in `tabsym.models.records.ModelTerms`.
    names : list of str
        Of the output columns.
    coding : Coding
        A missing value always has a code, unless it is an error.
    values : (codes + 1, outputs) or (codes + 1,)
        The last row is for values without a code. Numbers, NaN among them, or text and None; or of a one-hot encoding
        the output column in which the one is: -1 for none, -2 for a row of NaN.
    checked : bool
        Whether a value without a code is an error.
    """

    column: str
    kind: str
    names: list[str]
    coding: Coding
    values: NDArray[Any]
    checked: bool

    def extended(self, categories: list[Any], values: NDArray[Any]) -> ColumnLookup:
        """With values (m, outputs) of more categories; of missing in place of those it has."""
        assert self.coding.categories is not None
        known, rows = self.coding.categories.tolist(), self.values.copy()
        if None in categories:
            place = categories.index(None)
            rows[known.index(None)] = values[place]
            categories, values = [*categories[:place], *categories[place + 1 :]], np.delete(values, place, axis=0)
        coding = Coding(object_array([*known, *categories]))
        return replace(self, coding=coding, values=np.concatenate([rows[:-1], values, rows[-1:]]))


def lookup_tables(encoder: Any) -> list[ColumnLookup]:
    """The lookup tables of a fitted encoder's columns.

    Parameters
    ----------
    encoder : MODLEncoder, OneHotEncoder, TIWSEncoder or WideEncoder

    Raises
    ------
    TypeError
        It is another estimator.
    ValueError
        The encoding of a column is no lookup, in a sentence that names it and the remedy.
    """
    if not hasattr(encoder, "_lookup"):
        raise TypeError(f"{type(encoder).__name__} is no encoder whose columns are lookup tables.")
    check_is_fitted(encoder, "columns_")
    for name in encoder.columns_:
        if encoder.handle_missing == "error" and encoder.handle_unknown != "error":
            refuse_checks(name)
    return [encoder._lookup(name, state) for name, state in encoder.columns_.items()]


def refuse_checks(name: str) -> NoReturn:
    """A `ValueError`: missing values are no error to a lookup."""
    raise ValueError(
        f"handle_missing='error' raises an error for missing values of column {name!r}, which a lookup cannot; "
        "set_params(handle_missing='return_nan') to export the encoder."
    )


def with_missing(categories: list[Any], handle_missing: str) -> tuple[NDArray[np.int64], Coding]:
    """The codes of the categories, and of missing, if that is none and no error; the coding of all."""
    codes = np.arange(len(categories))
    if None in categories or handle_missing == "error":
        return codes, Coding(object_array(categories))
    return np.append(codes, MISSING), Coding(object_array([*categories, None]))


def stacked(columns: list[NDArray[Any]], n_codes: int) -> NDArray[Any]:
    """Output columns (n_codes,) side by side, (n_codes, 0) where there are none."""
    return np.column_stack([*columns, np.empty((n_codes, 0))])
