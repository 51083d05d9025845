"""What an estimator remembers of the columns it was fitted on, and the check that they came again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from tabsym.frame.columns import Column, Kind, Table
from tabsym.warn import warn_user


def remember_features(estimator: Any, table: Table) -> None:
    """Set `n_features_in_`, and `feature_names_in_` where the user named the columns."""
    estimator.n_features_in_ = len(table.names)
    if table.named:
        estimator.feature_names_in_ = np.asarray(table.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def match_features(estimator: Any, table: Table) -> Table:
    """The table with the columns of fit, in order, or a `ValueError` that names them.

    Where only one of the two had names (a frame then an array, or the other way
    round), columns are matched by position with scikit-learn's warning.
    """
    caller = type(estimator).__name__
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is not None and table.named and list(fitted) != table.names:
        raise ValueError(_difference(list(fitted), table.names))
    if len(table.names) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(table.names)} features, but {caller} is expecting {estimator.n_features_in_} features as "
            "input."
        )
    if (fitted is None) is not table.named:
        return table
    if fitted is None:
        warn_user(f"X has feature names, but {caller} was fitted without feature names")
        return _renamed(table, [f"x{index}" for index in range(len(table.names))])
    warn_user(f"X does not have valid feature names, but {caller} was fitted with feature names")
    return _renamed(table, list(fitted))


def select_features(estimator: Any, table: Table) -> Table:
    """The columns of fit, in the order of fit, and no others; of a table without names, all."""
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is None or not table.named or list(fitted) == table.names:
        return table
    known = set(table.names)
    return replace(table, columns=tuple(table[name] for name in fitted if name in known))


def _renamed(table: Table, names: list[str]) -> Table:
    columns = tuple(column.renamed(name) for column, name in zip(table.columns, names, strict=True))
    native = nw.from_native(table.native, eager_only=True)
    return replace(table, columns=columns, native=native.rename(dict(zip(table.names, names, strict=True))).to_native())


def _difference(fitted: list[str], given: list[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    known, now = set(fitted), set(given)
    unexpected = [name for name in given if name not in known]
    missing = [name for name in fitted if name not in now]
    if unexpected:
        lines += ["Feature names unseen at fit time:", *_listed(unexpected)]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:", *_listed(missing)]
    if not unexpected and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"


def _listed(names: list[str], limit: int = 5) -> list[str]:
    lines = [f"- {name}" for name in sorted(names)[:limit]]
    return [*lines, "- ..."] if len(names) > limit else lines


def symbolic_columns(
    table: Table, cols: Any, *, booleans: bool, whole: bool = True, option: str = "cols"
) -> list[Column]:
    """The columns to treat as symbols: those named in `cols`, or by kind where that is None.

    Without `cols` a boolean column with missing values is one, in every library: pandas makes objects of it. So is a
    column without any value, whose type says nothing of what comes later.

    Parameters
    ----------
    cols : name, position, sequence of them, "all" or None
        Positions count where the table has no names of its own (arrays). "all" is every column, also
        where one of them is called so: ``["all"]`` is that one.
    booleans : bool
        Whether, without `cols`, boolean columns are symbols that have no missing values.
    whole : bool
        False: the table is a piece of a longer one, in which a column may have values yet.
    option : str
        What the user calls `cols`, in messages.
    """
    if cols is None:
        return [column for column in table.columns if _is_symbolic(column, booleans, whole)]
    if isinstance(cols, str) and cols == "all":
        return list(table.columns)
    wanted = {_resolve(table, col, option) for col in ([cols] if np.isscalar(cols) else cols)}
    return [column for column in table.columns if column.name in wanted]


def _is_symbolic(column: Column, booleans: bool, whole: bool) -> bool:
    if column.kind is Kind.BOOLEAN:
        return booleans or bool(column.missing.any())
    return column.kind is Kind.SYMBOLIC or (whole and column.is_empty)


def _resolve(table: Table, col: Any, option: str) -> str:
    if isinstance(col, (int, np.integer)) and not isinstance(col, bool):
        if table.named and str(col) not in table.names:
            raise ValueError(f"{option} names column {col!r}, which is not in the table; it has {_shown(table.names)}.")
        if str(col) in table.names:
            return str(col)
        if not 0 <= col < len(table.names):
            raise ValueError(f"{option} asks for column {col}, but the table has {len(table.names)} columns.")
        return table.names[int(col)]
    if col not in table.names:
        raise ValueError(f"{option} names column {col!r}, which is not in the table; it has {_shown(table.names)}.")
    return str(col)


def _shown(names: list[str], limit: int = 10) -> str:
    shown = ", ".join(repr(name) for name in names[:limit])
    return f"{shown}, ..." if len(names) > limit else shown
