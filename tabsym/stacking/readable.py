"""What a stack's scores are made of: the terms of the wide model and the columns of its boosters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tabsym.frame import Table, match_features, read_table
from tabsym.frame.frames import take_rows
from tabsym.losses.loss import Loss
from tabsym.models.inspection.explain import columns_of_terms
from tabsym.stacking.layer import Layer
from tabsym.stacking.out_of_fold import margins_of
from tabsym.validation import check_option

Floats = NDArray[np.float64]
Layers = list[tuple[float, Layer | None]]
"""Weights of components, and what they lay over the wide model."""
CONSTANT, WIDE = "(intercept)", "(wide)"

MAX_ROWS = 500
"""`feature_importances_` are of this many training rows at most. Of ten samples the shares were .013 off those of all
rows of amazon at most, .029 of adult, where all rows would take as long as the fit."""


@dataclass(frozen=True)
class TrainingSample:
    """The training rows that `feature_importances_` are of: names of their columns, table, weights."""

    names: list[str]
    X: Any
    weight: Floats | None

    @classmethod
    def of(cls, names: list[str], X: Any, weight: Floats | None, seed: int) -> TrainingSample:
        """Of a table, all rows or as many as are enough."""
        positions = np.arange(X.shape[0])
        if len(positions) > MAX_ROWS:
            positions = np.sort(np.random.RandomState(seed).choice(len(positions), MAX_ROWS, replace=False))
        return cls(names, take_rows(X, positions), None if weight is None else weight[positions])


class ReadableStack:
    """The inspection methods of the stacks; not public."""

    wide_: Any
    boosters_: dict[str, Any]
    n_features_in_: int
    _layers: Layers
    _loss: Loss
    _importances: TrainingSample | Floats | str

    def explain(self, X: Any) -> pd.DataFrame:
        """Contributions of the wide model's terms and of the booster's columns to each prediction.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        pandas.DataFrame of shape (n_rows, n_contributions)
            The columns are (part, term), with several classes (part, term, class). Part "wide": the terms, as in
            `explain` of the wide model, times the weight of the components that start from it. Part "booster": the
            columns that the boosters see, by the libraries' TreeSHAP, times their weights, and as "(intercept)" their
            expected value; with ``mode="feature"`` its "(wide)" is the column of the wide model's scores. The sum of a
            row is `decision_function`, or the prediction before its link (to the digits of float32 for XGBoost).

        Raises
        ------
        ValueError
            The booster has no contributions of columns: it is not of LightGBM, XGBoost or CatBoost, or of a kind that
            they have none for.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideBoostRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50, "weight": range(200)})
        >>> y = [len(s) + 10.0 * (s == "L") + (w > 99) for s, w in zip(X["size"], X["weight"])]
        >>> model = WideBoostRegressor(random_state=0, n_jobs=1).fit(X, y)
        >>> bool(abs(model.explain(X).sum(axis=1) - model.predict(X)).max() < 1e-6)
        True
        """
        table = self._table(X)
        found = _contributions(self.wide_, self._layers, table.native, self._classes())
        index = X.index if isinstance(X, pd.DataFrame) else None
        values = np.concatenate(list(found.values()), axis=1)
        if values.shape[1] == len(found):
            columns = pd.MultiIndex.from_tuples(list(found), names=["part", "term"])
        else:
            labels = [str(label) for label in self._classes().tolist()]  # type: ignore[union-attr]
            positions = [(*position, label) for position in found for label in labels]
            columns = pd.MultiIndex.from_tuples(positions, names=["part", "term", "class"])
        return pd.DataFrame(values, index=index, columns=columns)

    def booster_frame(self, X: Any, mode: str | None = None) -> pd.DataFrame:
        """What a booster sees of a table: of the training rows the frame that it was trained on.

        For tools that take the booster itself, such as ``shap.TreeExplainer(model.boosters_["margin"])``. With
        ``mode="feature"`` the last columns are the scores of `wide_`; those of training were out of fold.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        mode : {"margin", "feature", "alone"} or None, default None
            A key of `boosters_`; None where there is one.

        Returns
        -------
        pandas.DataFrame of shape (n_rows, n_columns of the booster)

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideBoostRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50, "price": range(200)})
        >>> y = [1.0, 2.0, 3.0, 2.0] * 50
        >>> model = WideBoostRegressor(mode="margin", early_stopping=False, random_state=0, n_jobs=1).fit(X, y)
        >>> list(model.booster_frame(X).columns)
        ['size', 'price']
        """
        table = self._table(X)
        layers = {layer.mode: layer for _, layer in self._layers if layer is not None}
        if not layers:
            raise ValueError("No booster helped on held-out rows, so that boosters_ is empty; explain(X) says it all.")
        if mode is None and len(layers) > 1:
            raise ValueError(f"There are boosters {', '.join(map(repr, layers))}; name one by mode.")
        chosen: Any = next(iter(layers)) if mode is None else check_option("mode", mode, tuple(layers))
        return layers[chosen].frame(table.native, margins_of(self.wide_, table.native, self._classes()))

    @property
    def feature_importances_(self) -> Floats:
        """The share of each column in the scores (n_columns,).

        The mean absolute contribution to the scores of the training rows (of a sample of 500), as in `explain`: per
        row a column's terms and its contribution to the boosters are added up, interactions being divided equally among
        their columns. The shares add up to 1. An `AttributeError` where the booster has no contributions of columns.
        """
        check_is_fitted(self)
        found = self._found_importances()
        if isinstance(found, str):
            raise AttributeError(f"feature_importances_ is not there: {found}")
        return found

    def _found_importances(self) -> Floats | str:
        """The importances, found when they are first asked for, as they take a tenth of the time of a fit."""
        if isinstance(self._importances, TrainingSample):
            self._importances = importances_of(self.wide_, self._layers, self._importances, self._classes())
        return self._importances

    def _table(self, X: Any) -> Table:
        check_is_fitted(self)
        return match_features(self, read_table(X, caller=type(self).__name__, allow_empty=True))

    def _classes(self) -> NDArray[Any] | None:
        return getattr(self, "classes_", None)


def importances_of(wide: Any, layers: Layers, rows: TrainingSample, classes: NDArray[Any] | None) -> Floats | str:
    """The shares of columns (n_columns,) in the scores of some rows; a sentence where they cannot be told."""
    try:
        found = _contributions(wide, layers, rows.X, classes)
    except ValueError as error:
        return str(error)
    columns = columns_of_terms(wide.model_)
    own = {name: np.zeros_like(next(iter(found.values()))) for name in rows.names}
    of_wide: Floats | None = None
    for (part, term), values in found.items():
        if part == "wide":
            _divide(own, columns[term], values)
        elif term == WIDE:
            of_wide = values
        elif term in own:
            own[term] += values
        elif term != CONSTANT:
            return f"codes makes columns such as {term!r}, which the table has not; see explain(X)."
    sizes = _sizes(own, rows.weight)
    if of_wide is not None:
        alone = {name: np.zeros_like(of_wide) for name in rows.names}
        for term, values in _terms(wide, rows.X, classes).items():
            _divide(alone, columns[term], values)
        of_columns = _sizes(alone, rows.weight)
        sizes += _sizes({WIDE: of_wide}, rows.weight) * of_columns / (float(of_columns.sum()) or 1.0)
    return sizes / (float(sizes.sum()) or 1.0)


def _divide(own: dict[str, Floats], columns: tuple[str, ...], values: Floats) -> None:
    """Add a term's contributions to those of its columns, in equal parts."""
    for name in columns:
        own[name] += values / len(columns)


def _sizes(own: dict[str, Floats], weight: Floats | None) -> Floats:
    """The mean absolute contribution of each column, over rows, summed over classes."""
    return np.array([float(np.average(np.abs(values).sum(axis=1), weights=weight)) for values in own.values()])


def _contributions(wide: Any, layers: Layers, X: Any, classes: NDArray[Any] | None) -> dict[tuple[str, str], Floats]:
    """(part, term or column) -> contribution (n, K)."""
    found: dict[tuple[str, str], Floats] = {}
    share_of_wide = sum(share for share, layer in layers if layer is None or layer.mode == "margin")
    if share_of_wide:
        found = {("wide", name): share_of_wide * values for name, values in _terms(wide, X, classes).items()}
    if all(layer is None for _, layer in layers):
        return found
    margins = margins_of(wide, X, classes)
    for share, layer in layers:
        if layer is None:
            continue
        frame = layer.frame(X, margins)
        n_own = frame.shape[1] - (margins.shape[1] if layer.mode == "feature" else 0)
        users = getattr(layer.coder, "names_", {})
        own = [str(users.get(name, name)) for name in frame.columns[:n_own]]
        names = [*own, *[WIDE] * (frame.shape[1] - n_own), CONSTANT]
        empty = np.zeros((0, margins.shape[1], len(names)))  # the libraries take no table without rows
        made = share * layer.contributions(frame) if len(frame) else empty
        for position, name in enumerate(names):
            before = found.get(("booster", name))
            found["booster", name] = made[:, :, position] if before is None else before + made[:, :, position]
    return found


def _terms(wide: Any, X: Any, classes: NDArray[Any] | None) -> dict[str, Floats]:
    """The contributions (n, K) of the wide model's terms, on the scale of `margins_of`."""
    frame = wide.explain(X)
    n_outputs = wide.model_.n_outputs
    names = list(frame.columns.get_level_values(0))[::n_outputs]
    values = frame.to_numpy(dtype=np.float64).reshape(len(frame), len(names), n_outputs)
    if classes is not None and len(classes) == 2 and n_outputs == 2:
        values = values[:, :, 1:] - values[:, :, :1]
    return {str(name): values[:, position] for position, name in enumerate(names)}
