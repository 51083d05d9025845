"""The group of an unknown category by its donors: the known categories that occur in rows like its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders.modl.column import MODLColumn
from tabsym.encoders.tiws import TIWSEncoder
from tabsym.table import Table


def fit_donors(encoder: Any, X: Any, y: Any, sample_weight: Any, columns: dict[str, MODLColumn]) -> TIWSEncoder | None:
    """What knows donors of the categorical columns; None where there are none."""
    symbolic = [name for name, state in columns.items() if state.alphabet is not None]
    if not symbolic:
        return None
    kind = "classes" if encoder._classes else "continuous"
    donors = TIWSEncoder(cols=symbolic, numeric="quantile", target_type=kind, cv=None, n_jobs=encoder.n_jobs)
    return donors.fit(X, y, sample_weight)


def with_donors(
    donors: TIWSEncoder | None, table: Table, columns: dict[str, MODLColumn], parts: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The part of each row (n,), by column; unknown categories go to the group that has most of their donors' weight.

    Rows that are to be NaN, with a part below 0, stay so.
    """
    out = dict(parts)
    for name in donors.columns_ if donors is not None else []:
        found = donors.unseen_rows(table, name)  # type: ignore[union-attr]
        if len(found.rows):
            group = _groups(donors, name, columns[name], found.unseen)[found.which]  # type: ignore[arg-type]
            changed = out[name].copy()
            changed[found.rows] = np.where(changed[found.rows] < 0, changed[found.rows], group)
            out[name] = changed
    return out


def _groups(donors: TIWSEncoder, name: str, state: MODLColumn, unseen: Any) -> NDArray[np.int64]:
    """The group (m,) of each unknown category."""
    assert state.alphabet is not None and state.part_of is not None
    fitted = donors.columns_[name].fitted
    place = {symbol: code for code, symbol in enumerate(state.alphabet.symbols.tolist())}
    group_of = state.part_of[[place[fitted.symbols[code]] for code in fitted.donors]]
    weights = fitted.weights(unseen)
    by_group = np.zeros((len(unseen), state.fitted.partition.n_parts))
    np.add.at(by_group.T, group_of, weights.T)
    return np.asarray(by_group.argmax(axis=1))
