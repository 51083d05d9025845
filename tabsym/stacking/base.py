"""What the stacks of classifiers and regressors share: options, the fit of their parts, and their fitted state."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders.folds import CV, check_groups, cv_of_rows, split_by_target
from tabsym.frame import (
    Table,
    TableEstimator,
    categorical_columns,
    check_weights,
    match_features,
    read_table,
    relative_weights,
    remember_features,
    split_target,
)
from tabsym.frame.frames import take_rows
from tabsym.integrations.margins import link_of
from tabsym.losses.loss import Loss
from tabsym.messages import Number, check_option, warn_user
from tabsym.models.base import WideBase
from tabsym.models.checks import check_target_of_loss
from tabsym.models.data import offset_column_of
from tabsym.models.targets import WideClassifierBase, WideRegressorBase
from tabsym.stacking.directions import Directions, refuse_without_constraints, warn_of_booster_alone
from tabsym.stacking.layer import (
    HIST,
    Layer,
    Layers,
    Plan,
    StackRows,
    TrainingSample,
    adapter_of,
    can_be_constrained,
    contributions_of,
    default_booster,
    default_wide,
    fresh,
    importances_of,
    margins_of,
    matched,
    reads_categories,
    rounds_of,
)
from tabsym.stacking.selection import (
    Component,
    Criterion,
    Learner,
    NestedCV,
    OutOfFoldMargins,
    Selection,
    ValidationSplit,
    can_be_learned,
    folds_to_evaluate,
    select,
    splits_of_folds,
    taken,
)

Floats = NDArray[np.float64]
MODES = ("auto", "margin", "feature")

STOPPING_OPTIONS = ("early_stopping_round", "early_stopping_rounds", "od_wait", "use_best_model")
"""Options of boosters that need rows of their own to stop by."""


class WideBoost(MetaEstimatorMixin, TableEstimator):
    """Shared by `WideBoostClassifier` and `WideBoostRegressor`; not public."""

    wide_: Any
    boosters_: dict[str, Any]
    n_features_in_: int
    _layers: Layers
    _loss: Loss
    _importances: TrainingSample | Floats | str

    def __init__(
        self,
        wide=None,
        booster=None,
        *,
        mode="auto",
        cv=3,
        codes="ordinal",
        booster_cols=None,
        early_stopping="folds",
        random_state=0,
        n_jobs=None,
        verbose=0,
    ):
        self.wide = wide
        self.booster = booster
        self.mode = mode
        self.cv = cv
        self.codes = codes
        self.booster_cols = booster_cols
        self.early_stopping = early_stopping
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "wide_")

    # -- for classifier and regressor to fill in --------------------------------------

    def _settled(self, wide: Any, fitted: Any) -> Any:
        """The wide model to cross-fit, with what one fitted on all rows has selected."""
        return wide

    def _loss_of(self, fitted: Any, n_classes: int) -> Loss:
        """The loss that scores are on the scale of; `n_classes`: of all rows, 0 for numbers."""
        raise NotImplementedError

    def _criterion(self, wide: Any, loss: Loss) -> Criterion:
        """(scores, target) -> the loss of each row."""
        return loss.values

    # -- fitting ------------------------------------------------------------------------

    def _fit(
        self, table: Table, y: NDArray[Any], labels: NDArray[Any] | None, sample_weight: Any, groups: Any, eval_set: Any
    ) -> None:
        """Fit on a checked table; `y` as numbers or as 0, 1, ... for `labels`."""
        self._check_options(has_eval_set=eval_set is not None)
        weight = relative_weights(check_weights(sample_weight, len(table)))
        data, group, positive = table.native, check_groups(groups, len(table)), np.arange(len(table))
        if weight is not None and not weight.all():
            positive = np.flatnonzero(weight)
            data, y, weight = take_rows(data, positive), y[positive], weight[positive]
            group = None if group is None else group[positive]
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        wide, booster, alone = (_seeded(part, self.random_state, seed) for part in self._parts(table, seed))
        train, held_out = self._held_out(data, y, weight, group, eval_set, labels, seed)
        train_weight = None if weight is None else weight[train]
        rows = StackRows(take_rows(data, train), y[train], np.zeros((len(train), 1)), train_weight)  # no margins yet
        given = rows.y if labels is None else labels[rows.y]
        fitted = clone(wide).fit(rows.X, given, sample_weight=rows.weight)
        n_classes = 0 if labels is None else len(labels)
        loss = self._loss_of(fitted, n_classes)
        if held_out is not None and labels is None:
            check_target_of_loss(held_out[1], loss, "target of the held-out rows")
        splits = split_by_target(
            cv_of_rows(self.cv, positive[train], len(table)),
            rows.X,
            rows.y,
            "continuous" if labels is None else None,
            random_state=seed,
            groups=None if group is None else group[train],
        )
        to_cross_fit = self._settled(wide, fitted)
        out_of_fold = OutOfFoldMargins(Learner(to_cross_fit, rows.X, given, rows.weight, labels), splits)
        if len(out_of_fold.rows) < len(rows):
            warn_user(
                f"cv holds {len(rows) - len(out_of_fold.rows):,} of {len(rows):,} rows out in no fold: they have "
                "no margin out of fold, and a booster that starts from margins is trained without them."
            )
        rows_with_margins = rows if len(out_of_fold.rows) == len(rows) else taken(rows, out_of_fold.rows)
        # made where a booster starts from margins
        with_margins = cache(lambda: replace(rows_with_margins, margins=out_of_fold.margins()))
        plans = self._plans(wide, booster, alone, loss, table, labels, seed)
        if held_out is not None:
            held_out_X, held_out_y, held_out_weight = held_out
            evaluated = StackRows(held_out_X, held_out_y, margins_of(fitted, held_out_X, labels), held_out_weight)
            validation = [ValidationSplit(evaluated, rows, rows_with_margins.y, with_margins)]
            selection = select(plans, validation, loss, self._criterion(wide, loss), n_classes)
        elif self.early_stopping is False:
            self._refuse_absent_class(rows_with_margins.y, labels)
            selection = Selection([Component(plans[0], rounds_of(booster), 1.0)], None)
        else:
            nested = NestedCV(out_of_fold)
            folds = folds_to_evaluate(nested)
            with_margins = cache(lambda: replace(rows_with_margins, margins=nested.of_all(folds)))
            validation = splits_of_folds(rows, nested, folds)
            selection = select(plans, validation, loss, self._criterion(wide, loss), n_classes)
        layers = [(component.weight, _layer(component, loss, rows, with_margins)) for component in selection.components]
        if len(train) < len(y):
            all_targets = y if labels is None else labels[y]
            fitted = clone(to_cross_fit).fit(data, all_targets, sample_weight=weight)
        self._keep(table, fitted, loss, layers, selection, TrainingSample.of(table.names, data, weight, seed))
        if self.verbose:
            print("\n".join(_lines_of(self._evidence or [])), file=sys.stderr)

    def _parts(self, table: Table, seed: int) -> tuple[Any, Any, Any]:
        """The wide model, the booster that starts from it and the one without it, unfitted."""
        is_class = is_classifier(self)
        kind = "classifier" if is_class else "regressor"
        wide_seed = 0  # the default wide model's: alone it is then what the user would have had without a stack
        if self.random_state is not None:
            wide_seed = int(self.random_state) if isinstance(self.random_state, Integral) else seed
        wide = clone(self.wide) if self.wide is not None else default_wide(is_class, wide_seed, self.n_jobs)
        booster = default_booster(is_class, seed, self.n_jobs) if self.booster is None else fresh(self.booster)
        sized = self.booster is None and not isinstance(booster, HIST)
        alone = default_booster(is_class, seed, self.n_jobs, small=False) if sized else booster
        if not isinstance(wide, WideClassifierBase if is_class else WideRegressorBase):
            raise TypeError(f"wide must be a Wide{kind.title()} or WideSGD{kind.title()}, not {wide!r}.")
        if not (is_classifier if is_class else is_regressor)(booster):
            raise TypeError(f"booster must be a {kind}, not {booster!r}.")
        if (offset := offset_column_of(wide, table, None)) is not None:  # which may be a position in an array
            wide.set_params(**{offset.option: offset.name})
        return wide, booster, alone

    @property
    def evidence_(self) -> pd.DataFrame | None:
        """What was compared, a row each."""
        check_is_fitted(self)
        return None if self._evidence is None else pd.DataFrame(self._evidence)

    def summary(self) -> str:
        """The components with weights and rounds, the candidates' held-out losses, and the wide model, as text.

        Returns
        -------
        str

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideBoostRegressor, WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50, "price": range(200)})
        >>> y = [1.0, 2.0, 3.0, 2.0] * 50
        >>> model = WideBoostRegressor(WideRegressor(loss="squared_error"), random_state=0, n_jobs=1).fit(X, y)
        >>> print(model.summary().splitlines()[0])
        WideBoostRegressor: loss squared_error
        """
        check_is_fitted(self)
        lines = [f"{type(self).__name__}: loss {self._loss.name}"]
        lines += [
            f"  {mode}: weight {weight:g}" + (f", {_rounds_in_words(self.n_rounds_[mode])}" if mode != "wide" else "")
            for mode, weight in self.shares_.items()
        ]
        lines += ["Held-out losses:", *_lines_of(self._evidence)] if self._evidence else []
        return "\n".join([*lines, "", self.wide_.summary()])

    def _keep(
        self, table: Table, fitted: Any, loss: Loss, layers: Layers, selection: Selection, sample: TrainingSample
    ) -> None:
        """The fitted state of a stack, all that files and pickles hold of it (but see `__getstate__`)."""
        remember_features(self, table)
        self.wide_ = fitted
        self.shares_ = {component.mode: component.weight for component in selection.components}
        self.n_rounds_ = {component.mode: component.n_rounds for component in selection.components}
        self.boosters_ = {layer.mode: layer.booster for _, layer in layers if layer is not None}
        self._evidence = None if selection.table is None else selection.table.to_dict("records")
        self._layers = layers
        self._loss = loss
        self._importances = sample

    def __getstate__(self) -> dict[str, Any]:
        """With the importances instead of the training rows that they are of: files and pickles hold no rows."""
        if hasattr(self, "_importances"):
            self._computed_importances()
        state: Any = super().__getstate__()
        return dict(state)

    def _check_options(self, *, has_eval_set: bool) -> None:
        for name, part in (("wide", self.wide), ("booster", self.booster)):
            if part is not None and (isinstance(part, type) or not hasattr(part, "get_params")):
                raise TypeError(f"{name}={part!r} is not an estimator; pass an instance with fit and predict, or None.")
        check_option("mode", self.mode, MODES)
        check_option("verbose", self.verbose, (True, False, Number(at_least=0, whole=True)))
        stop = self.early_stopping
        fraction = Number(above=0, below=1, fraction=True, of="the rows to hold out")
        check_option("early_stopping", stop, ["folds", fraction, False])
        if stop is False and has_eval_set:
            raise ValueError(
                "early_stopping=False asks for all rounds of the booster, and eval_set is for choosing them; leave one "
                "of the two out."
            )
        if stop is False and self.mode == "auto":
            raise ValueError(
                "mode='auto' needs held-out rows, and early_stopping=False has none; name the mode, or use "
                "early_stopping='folds'."
            )
        if self.booster is not None:
            _refuse_early_stopping(self.booster)
            if self.mode != "feature" and (adapter := adapter_of(self.booster)) is not None:
                adapter.refuse_without_sums(self.booster)
        warn_of_booster_alone(self.wide, self.booster)
        if self.cv is None:
            raise ValueError("cv=None would train the booster on margins of rows that the wide model saw; use cv=3.")
        check_option("cv", self.cv, CV)

    def _refuse_absent_class(self, y: NDArray[Any], labels: NDArray[Any] | None) -> None:
        """A `ValueError` where rows with margins, which a booster is to learn from, lack a class."""
        if labels is not None and not can_be_learned(y, len(labels)):
            absent = next(label for code, label in enumerate(labels.tolist()) if code not in y)
            raise ValueError(
                f"cv={self.cv!r} holds out no row of class {absent!r}, so that the booster could not learn it; use "
                "another splitter."
            )

    def _plans(
        self, wide: Any, booster: Any, alone: Any, loss: Loss, table: Table, labels: Any, seed: int
    ) -> list[Plan]:
        """The candidates by `mode`: a booster on top of the wide model, and one without it."""
        task = "regression" if labels is None else "binary" if len(labels) == 2 else "multiclass"
        columns = None
        if self.booster_cols is not None:
            try:
                columns = [column.name for column in categorical_columns(table, self.booster_cols, booleans=False)]
            except (TypeError, ValueError) as error:
                raise type(error)(f"booster_cols={self.booster_cols!r}: {error}") from error
        can_start = adapter_of(booster) is not None or (labels is None and not loss.log_link)
        mode: Any = self.mode if self.mode != "auto" else "margin" if can_start else "feature"
        offset = offset_column_of(wide, table, None)
        if offset is not None:
            if columns is not None and offset.name in columns:
                raise ValueError(
                    f"booster_cols names {offset.name!r}, which is no feature: wide has {offset}, from which the "
                    "booster starts; leave it out."
                )
            if mode == "feature":
                reason = "mode='feature' makes scores a column, so that they are not added; use mode='margin'"
                if not can_start:
                    reason = (
                        f"{type(booster).__name__} cannot start from scores with the link {link_of(loss)!r}; use a "
                        "booster of LightGBM, XGBoost or CatBoost"
                    )
                raise ValueError(f"wide has {offset}, which is added to its scores: {reason}, or leave it out.")
            columns = [name for name in table.names if name != offset.name] if columns is None else columns
        directions = Directions.of(wide, table)
        first = Plan(booster, mode, self.codes, task, columns, seed, offset, classes=labels, directions=directions)
        if directions is not None and not can_be_constrained(booster):
            refuse_without_constraints(wide, booster)
        matched(booster, loss, mode)  # refuses what cannot be, before any booster is trained
        if self.mode != "auto":
            return [first]
        codes = "native" if reads_categories(alone) else self.codes
        return [first, replace(first, booster=alone, mode="alone", codes=codes)]

    def _held_out(
        self,
        data: Any,
        y: NDArray[Any],
        weight: Floats | None,
        groups: Any,
        eval_set: Any,
        labels: NDArray[Any] | None,
        seed: int,
    ) -> tuple[NDArray[Any], Any]:
        """The rows to train on; table, target and weights of those to evaluate the booster on (None: the folds)."""
        everything = np.arange(len(y))
        if eval_set is not None:
            if isinstance(eval_set, list) and len(eval_set) == 1:  # as the boosters have it
                eval_set = eval_set[0]
            if not isinstance(eval_set, tuple) or len(eval_set) != 2:
                raise ValueError(
                    "eval_set must be one pair of a table and its target, such as eval_set=(X_new, y_new)."
                )
            X, target = split_target(*eval_set, type(self).__name__)
            table = read_table(X, caller=type(self).__name__)
            return everything, (table.native, *self._check_eval_target(target, len(table), labels))
        if not isinstance(self.early_stopping, Real) or isinstance(self.early_stopping, bool):
            return everything, None
        kind: Any = ShuffleSplit if labels is None else StratifiedShuffleSplit
        kind = kind if groups is None else GroupShuffleSplit
        splitter = kind(n_splits=1, test_size=float(self.early_stopping), random_state=seed)
        try:
            train, test = next(splitter.split(np.zeros((len(y), 1)), y, groups))
        except ValueError as error:
            raise ValueError(
                f"early_stopping={self.early_stopping!r} cannot be held out with enough rows left to train on "
                f"({error}); use 'folds', another fraction, or eval_set."
            ) from error
        train, test = np.sort(train), np.sort(test)
        return train, (take_rows(data, test), y[test], None if weight is None else weight[test])

    def _check_eval_target(self, y: Any, n_rows: int, labels: NDArray[Any] | None) -> tuple[NDArray[Any], Any]:
        """The target (n_rows,) of the rows of `eval_set`, checked, and their weights."""
        raise NotImplementedError

    # -- using ----------------------------------------------------------------------------

    def _scores(self, X: Any) -> Floats:
        """Scores (n, K) before the link: the weighted sum of the components."""
        table = self._table(X)
        margins = margins_of(self.wide_, table.native, self._classes())
        parts = [
            (weight, margins if layer is None else layer.scores(table.native, margins))
            for weight, layer in self._layers
        ]
        return parts[0][1] if len(parts) == 1 else np.sum([weight * scores for weight, scores in parts], axis=0)

    # -- inspection -----------------------------------------------------------------------

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
        contributions = contributions_of(self.wide_, self._layers, table.native, self._classes())
        index = X.index if isinstance(X, pd.DataFrame) else None
        values = np.concatenate(list(contributions.values()), axis=1)
        if values.shape[1] == len(contributions):
            columns = pd.MultiIndex.from_tuples(list(contributions), names=["part", "term"])
        else:
            labels = [str(label) for label in self._classes().tolist()]  # type: ignore[union-attr]
            positions = [(*position, label) for position in contributions for label in labels]
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
        """The fraction of each column in the scores (n_columns,).

        The mean absolute contribution to the scores of the training rows (of a sample of 500), as in `explain`: per
        row a column's terms and its contribution to the boosters are added up, interactions being divided equally among
        their columns. The fractions add up to 1. An `AttributeError` where the booster has no contributions of columns.
        """
        check_is_fitted(self)
        importances = self._computed_importances()
        if isinstance(importances, str):
            raise AttributeError(f"feature_importances_ is not there: {importances}")
        return importances

    def _computed_importances(self) -> Floats | str:
        """The importances, computed on first use, as they take a tenth of the time of a fit."""
        if isinstance(self._importances, TrainingSample):
            self._importances = importances_of(self.wide_, self._layers, self._importances, self._classes())
        return self._importances

    def _table(self, X: Any) -> Table:
        check_is_fitted(self)
        return match_features(self, read_table(X, caller=type(self).__name__, allow_empty=True))

    def _classes(self) -> NDArray[Any] | None:
        return getattr(self, "classes_", None)


def _seeded(part: Any, random_state: Any, seed: int) -> Any:
    """A part that draws lots, with a seed where the stack has one and the part has none.

    A number is the wide model's, too: alone it is then what the user would have had without a stack.
    """
    if random_state is not None and part.get_params().get("random_state", 0) is None:
        is_wide = isinstance(part, WideBase) and isinstance(random_state, Integral)
        part.set_params(random_state=random_state if is_wide else seed)
    return part


def _rounds_in_words(n: int) -> str:
    return "1 round" if n == 1 else f"{n:,} rounds"


def _lines_of(evidence: list[dict[Any, Any]]) -> list[str]:
    """A line per candidate, after its best number of rounds."""
    best: dict[str, dict[Any, Any]] = {}
    for row in evidence:
        name = row["mode"] + (f" ({row['variant']})" if row.get("variant") else "")
        if name not in best or row["loss"] < best[name]["loss"]:
            best[name] = row
    return [
        f"  {mode}: {row['loss']:.6g}"
        + (f" after {_rounds_in_words(row['rounds'])}" if row["rounds"] > 0 else "")
        + (f", gain {row['gain']:.2g} (standard error {row['error']:.2g})" if mode != "wide" else "")
        for mode, row in best.items()
    ]


def _refuse_early_stopping(booster: Any) -> None:
    """The stack chooses the rounds: a booster that wants rows of its own to stop by would find none."""
    if isinstance(booster, HIST) and booster.early_stopping is True:  # other estimators' own stops are their affair
        raise ValueError(
            f"{type(booster).__name__}(early_stopping=True) holds out rows of its own, but the stack chooses the "
            "number of rounds; leave it out, and use early_stopping='folds' or a fraction of the rows."
        )
    for name in STOPPING_OPTIONS:
        value = booster.get_params().get(name)
        if value:
            raise ValueError(
                f"{type(booster).__name__}({name}={value!r}) needs an evaluation set, but the stack chooses the "
                "number of rounds; leave it out, and use early_stopping='folds' or a fraction of the rows."
            )


def _layer(component: Component, loss: Loss, rows: StackRows, with_margins: Callable[[], StackRows]) -> Layer | None:
    """The booster of a component, fitted on all rows, or on those with margins, where it reads them."""
    if component.plan is None:
        return None
    return Layer(component.plan, loss, rows if component.plan.mode == "alone" else with_margins(), component.n_rounds)
