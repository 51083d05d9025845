"""`monotonic_cst` of a stack's wide model, which its boosters keep too: a sum of monotone scores is monotone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.frame import Kind, Table, read_table
from tabsym.frame.frames import is_frame
from tabsym.messages import warn_user
from tabsym.models.checks import name_of

OPTIONS = {
    "lightgbm": "monotone_constraints",
    "xgboost": "monotone_constraints",
    "catboost": "monotone_constraints",
    "sklearn": "monotonic_cst",
}
"""Of boosters by library: the option that keeps predictions monotone in columns."""

ALIASES = ("monotone_constraints", "monotone_constraint", "monotonic_cst", "mc")

N_ROWS, N_STEPS = 20, 40
"""The rows, and the values of a column for each of them, at which a fitted booster's direction is looked at."""

Orders = dict[str, list[Any]]
"""The categories of a column in their order."""


@dataclass(frozen=True)
class Directions:
    """The columns of a stack in which its wide model is monotone: 1 not decreasing, -1 not increasing."""

    of_columns: dict[str, int]
    orders: Orders

    @classmethod
    def of(cls, wide: Any, table: Table) -> Directions | None:
        """Of a wide model that fits the table; None where it has none."""
        given = wide.get_params().get("monotonic_cst")
        if given is None:
            return None
        names = table.names
        pairs = given.items() if isinstance(given, Mapping) else zip(names, given, strict=True)
        named = {name_of(name, names): int(direction) for name, direction in pairs if direction}
        orders: Orders = {}
        for name in named if is_frame(table.native) else ():
            dtype = table[name].series.dtype
            if isinstance(dtype, nw.Enum):
                orders[name] = list(dtype.categories)
            elif table[name].kind is Kind.BOOLEAN:
                orders[name] = [False, True]
        return cls(named, orders) if named else None

    def of_frame(self, X: Any, frame: pd.DataFrame, names: Sequence[str], codes: Any) -> NDArray[np.int64]:
        """The direction of each column (n_columns,) of a booster's frame, 1 for margins.

        A `ValueError` where the booster sees a column of a direction as something else.

        Parameters
        ----------
        X : the table that the frame was coded from
        frame : dataframe of shape (n, n_columns)
        names : the user's names of its columns, without those of margins, which come last
        codes : the stack's option, for the error
        """
        table = read_table(X)
        positions = {name: position for position, name in enumerate(names)}
        directions = np.array([0] * len(names) + [1] * (frame.shape[1] - len(names)))
        for name, direction in self.of_columns.items():
            if name not in table.names:  # booster_cols leaves it out
                continue
            if name not in positions or not _has_order_of(table[name].values, frame.iloc[:, positions[name]]):
                raise ValueError(
                    f"monotonic_cst names {name!r}, which codes={codes!r} passes to the booster in another order; use "
                    "codes='ordinal', or leave the column out of booster_cols."
                )
            directions[positions[name]] = direction
        return directions


def numbered(X: Any, orders: Orders) -> Any:
    """The table with the categories of some columns as 0, 1, ... in their order; missing and unknown as NaN."""
    if not orders:
        return X
    frame = nw.from_native(X, eager_only=True)
    ranks = []
    for name in orders.keys() & set(frame.columns):
        positions = {category: float(position) for position, category in enumerate(orders[name])}
        values = [positions.get(value, np.nan) for value in frame[name].to_list()]
        ranks.append(nw.new_series(name, values, nw.Float64, backend=frame.implementation))
    return frame.with_columns(*ranks).to_native() if ranks else X


def _has_order_of(values: NDArray[np.float64], coded: pd.Series) -> bool:
    """Whether coded numbers (n,) rise with the values (n,) that they stand for."""
    if not pd.api.types.is_numeric_dtype(coded):
        return False
    numbers = coded.to_numpy(dtype=np.float64)
    some = ~np.isnan(values) & ~np.isnan(numbers)
    return bool((np.diff(numbers[some][np.argsort(values[some], kind="stable")]) >= 0).all())


def constrained(booster: Any, library: str, directions: NDArray[np.int64], columns: Sequence[str]) -> Any:
    """The booster with the directions (n_columns,) of its columns, in addition to its own."""
    option, params = OPTIONS[library], booster.get_params()
    given = next((params[name] for name in ALIASES if _has_direction(params.get(name))), None)
    merged = directions if given is None else _merged(given, directions, columns)
    given = tuple(merged.tolist()) if library == "xgboost" else merged.tolist()
    if set(params) & set(ALIASES) - {option}:
        booster = type(booster)(**{name: value for name, value in params.items() if name not in ALIASES})
    return booster.set_params(**{option: given})


def _merged(constraints: Any, directions: NDArray[np.int64], columns: Sequence[str]) -> NDArray[np.int64]:
    """A booster's own constraints and the directions, a `ValueError` where these contradict each other."""
    merged = directions.copy()
    for position, direction in _by_position(constraints, columns).items():
        if direction * merged[position] < 0:
            raise ValueError(
                f"The booster and monotonic_cst of the wide model have opposite directions of {columns[position]!r}; "
                "leave out the booster's."
            )
        merged[position] = merged[position] or direction
    return merged


def _by_position(constraints: Any, columns: Sequence[str]) -> dict[int, int]:
    """A booster's constraints as its library takes them: a list, a mapping by name or position, or text of these."""
    entries = constraints
    if isinstance(constraints, str):
        pairs = [part.strip().rpartition(":") for part in constraints.strip("()[] ").split(",") if part.strip()]
        entries = {k: v for k, _, v in pairs} if all(colon for _, colon, _ in pairs) else [v for _, _, v in pairs]
    if not isinstance(entries, Mapping):
        entries = dict(enumerate(np.ravel(entries).tolist()))
    names = {name: position for position, name in enumerate(columns)}
    try:
        placed = {names[key] if key in names else int(key): int(direction) for key, direction in entries.items()}
    except ValueError:
        placed = {}
    if not placed or min(placed) < 0 or max(placed) >= len(columns):
        raise ValueError(
            f"The booster's constraints {constraints!r} are not of the columns that it sees, "
            f"{', '.join(map(repr, columns))}; give -1, 0 or 1 for each, or leave them out."
        )
    return placed


def refuse_broken(scores: Any, frame: pd.DataFrame, directions: NDArray[np.int64], booster: Any) -> None:
    """A `ValueError` where the scores of a fitted booster go against a direction, as far as some rows tell.

    Trees whose leaves are medians or quantiles of residuals, and linear boosters, do not keep constraints.

    Parameters
    ----------
    scores : function of a frame -> ndarray of shape (n,)
    frame : dataframe of shape (n, n_columns)
        The training rows.
    directions : ndarray of shape (n_columns,)
    """
    rows = np.unique(np.linspace(0, len(frame) - 1, N_ROWS).astype(int))
    for position in np.flatnonzero(directions).tolist():
        column = str(frame.columns[position])
        known = np.sort(frame[column].dropna().to_numpy(dtype=np.float64))
        if not len(known):
            continue
        steps = np.unique(known[np.linspace(0, len(known) - 1, N_STEPS).astype(int)])
        grid = frame.iloc[np.repeat(rows, len(steps))].assign(**{column: np.tile(steps, len(rows))})
        predicted = np.asarray(scores(grid), dtype=np.float64)
        by_row = predicted.reshape(len(rows), len(steps)) * directions[position]
        if len(steps) > 1 and np.diff(by_row, axis=1).min() < -1e-5 * max(float(np.ptp(predicted)), 1e-12):
            raise ValueError(
                f"{type(booster).__name__} does not keep the direction of {column!r}, which monotonic_cst of the wide "
                "model asks for; give it another objective or kind of trees, another booster, or leave monotonic_cst "
                "out."
            )


def refuse_without_constraints(wide: Any, booster: Any) -> None:
    """A `ValueError` where the wide model is monotone in a column, and the booster cannot be asked to be.

    Of an estimator around a booster, constraints inside are believed, and looked at once it is fitted.
    """
    options = booster.get_params()
    if any(_has_direction(value) for name, value in options.items() if name.rpartition("__")[2] in ALIASES):
        return
    raise ValueError(
        f"monotonic_cst={wide.get_params()['monotonic_cst']!r} is kept by the wide model, and "
        f"{type(booster).__name__} may go the other way; use a booster of LightGBM, XGBoost or CatBoost, "
        "HistGradientBoosting, or one with its own constraints (monotone_constraints, or monotonic_cst), or leave "
        "monotonic_cst out."
    )


def warn_of_booster_alone(wide: Any, booster: Any) -> None:
    """A warning where the booster has constraints, and the wide model, of which it is a part, has none."""
    options = {} if booster is None else booster.get_params()
    asked = {name: value for name, value in options.items() if name.rpartition("__")[2] in ALIASES}
    name = next((name for name, value in asked.items() if _has_direction(value)), None)
    if name is not None and (wide is None or wide.get_params().get("monotonic_cst") is None):
        warn_user(
            f"{name} of the booster is kept by its trees, and the wide model under them may go the other way; give "
            "monotonic_cst to the wide model, which the booster then keeps too."
        )


def _has_direction(constraints: Any) -> bool:
    """Whether a booster's option, such as [1, 0], "(1,0)" or {"price": 1}, constrains any column."""
    if isinstance(constraints, str):
        return bool(set(constraints) - set("()[]0, "))
    numbers = list(constraints.values()) if isinstance(constraints, Mapping) else constraints
    return numbers is not None and bool(np.any(np.ravel(numbers) != 0))
