"""What a fitted OneHotEncoder tells of its columns, in the attributes of scikit-learn and of category_encoders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tabsym.codes import UNSEEN
from tabsym.encoders.base import MISSING
from tabsym.encoders.onehot.column import NANS, ZEROS, OneHotColumn
from tabsym.encoders.onehot.matrix import Ones, dense_columns
from tabsym.warn import warn_user


class OneHotReport:
    """Report of the fitted columns of `OneHotEncoder`; not public."""

    columns_: dict[str, OneHotColumn]

    @property
    def categories_(self) -> dict[str, NDArray[Any]]:
        """The categories of each encoded column."""
        check_is_fitted(self, "columns_")
        return {name: state.alphabet.symbols for name, state in self.columns_.items()}

    @property
    def infrequent_categories_(self) -> dict[str, NDArray[Any] | None]:
        """The infrequent categories of each encoded column, None where there are none."""
        check_is_fitted(self, "columns_")
        return {n: one.alphabet.symbols[one.rare] if len(one.rare) else None for n, one in self.columns_.items()}

    @property
    def drop_idx_(self) -> dict[str, int | None]:
        """The index in `categories_` of each column's dropped category."""
        check_is_fitted(self, "columns_")
        return {name: None if one.dropped == UNSEEN else one.dropped for name, one in self.columns_.items()}

    @property
    def mapping(self) -> list[dict[str, Any]]:
        """The encoding of each category: a dense frame for each column, made on access."""
        check_is_fitted(self, "columns_")
        return [{"col": name, "mapping": _mapping_of(state)} for name, state in self.columns_.items()]

    @property
    def category_mapping(self) -> list[dict[str, Any]]:
        """The same as `mapping`."""
        return self.mapping


def warn_of_unknown(states: dict[str, OneHotColumn], codes: dict[str, NDArray[np.int32]], *, always: bool) -> None:
    """A warning that names the columns with unknown categories: all if `always`, else those where zeros mislead."""
    names = [name for name, one in codes.items() if (one == UNSEEN).any()]
    how = "are encoded as the rare ones, as zeros where there are none"
    if not always:
        names = [n for n in names if states[n].unknown_place == ZEROS and states[n].dropped != UNSEEN]
        how = "are encoded as zeros, as the dropped category is"
    if names:
        warn_user(f"Found unknown categories in column {', '.join(map(repr, names))}, which {how}.")


def _mapping_of(state: OneHotColumn) -> pd.DataFrame:
    codes = np.append(np.arange(len(state.alphabet)), [UNSEEN, MISSING])
    places = state.places(codes)
    columns = dense_columns(Ones("", places, len(state.names)), np.float64 if (places == NANS).any() else np.int64)
    return pd.DataFrame(dict(zip(state.names, columns, strict=True)), index=np.where(codes < 0, codes, codes + 1))
