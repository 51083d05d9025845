"""The result of a comparison, and the winner: the best contender trained on all rows, with the table's preparation.

A winner exports as terms or as a stack, with what was done to the columns of the table before its model got them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from tabsym.compare.contenders import Contender
from tabsym.compare.fitting import Data, Trained, goes_out_of_core, read_budget, train, train_on_all_rows, tune
from tabsym.compare.metrics import Metric
from tabsym.compare.splits import SplitPlan
from tabsym.compare.table.features import Features, infinite_in, is_number, numbers_of, refuse_absent
from tabsym.compare.table.number_format import is_plain
from tabsym.compare.table.prepare import CLASSES, Prepared, RoleColumns
from tabsym.compare.table.retyping import Retyping
from tabsym.export import save
from tabsym.export.files import load_model
from tabsym.export.spec import Stack, columns_of_dates, stack_of, terms_of, with_made_columns
from tabsym.messages import warn_user
from tabsym.models.data import OffsetColumn
from tabsym.models.export_terms import Derived, ModelTerms

if TYPE_CHECKING:
    from tabsym.compare.job import RunConfig


@dataclass(frozen=True)
class Winner:
    """A contender trained on all rows of a comparison; it takes tables in the form that the comparison took.

    Attributes
    ----------
    name, label : str
        Name and label of the contender.
    task : {"binary", "multiclass", "regression", "count"}
    estimator : estimator
        The fitted estimator, with all that it has, such as `coef_table`; its input are the columns prepared by
        `features`.
    classes_ : array of shape (n_classes,)
        The classes in the order of `predict_proba`.
    trained_on : str
        Which rows it was trained on, in words: of a table of which a sample was compared, all or the sample.
    columns : list of str or None
        The columns that a contender of the user's own was trained on, in their order; None in files of earlier
        versions, which take all columns but those of `drop`.
    """

    name: str
    label: str
    task: str
    estimator: Any
    classes_: NDArray[Any]
    seen: NDArray[np.int64]
    features: Features | None
    drop: list[str]
    roles: RoleColumns
    retyping: Retyping = field(default_factory=Retyping)
    trained_on: str = "all rows"
    columns: list[str] | None = None

    def __getattr__(self, name: str) -> Any:
        """An `AttributeError` that says where the attribute is, if the model has it."""
        model = vars(self).get("estimator")  # absent while a file is read
        where = "" if name.startswith("_") or not hasattr(model, name) else f"; its model has it: .estimator.{name}"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{where}", name=name, obj=self)

    def predict(self, table: Any) -> NDArray[Any]:
        """Predicted classes or values (n_rows,); exposure and offset are read from the columns of the comparison.

        Parameters
        ----------
        table : dataframe or path
            With the feature columns; others are ignored.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        values = self._values(table)
        return np.asarray(self.classes_[values.argmax(axis=1)]) if self.task in CLASSES else values

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Probabilities (n_rows, n_classes), in the order of `classes_`.

        Parameters
        ----------
        table : dataframe or path
            With the feature columns; others are ignored.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)

        Raises
        ------
        TypeError
            The task is not classification.
        """
        if self.task not in CLASSES:
            raise TypeError(f"The task is {self.task}, which has no probabilities; use predict.")
        return self._values(table)

    def save(self, path: str | Path) -> Path:
        """Write the winner to a file without code; `tabsym.compare.load` and `tabsym.load` read it.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Path

        Raises
        ------
        ValueError
            A part of it cannot be written without code.
        OSError
            The file cannot be written.
        """
        return save(self, path)

    def export_terms(self, base: Any = None) -> ModelTerms:
        """The terms for `tabsym.export`, in columns of the table as the comparison took it; `base` as in `coef_table`.

        Parameters
        ----------
        base : optional
            As in `coef_table`.

        Returns
        -------
        ModelTerms

        Raises
        ------
        ValueError, TypeError
            The winner is no wide model, or reads its columns in a way that exports do not hold.
        """
        terms = terms_of(self.estimator, base)
        if self.features is not None:
            terms = with_made_columns(terms, _made_columns(self.features, self.retyping), self.features.kinds)
        _check_reading(self.retyping, {terms.source(name) for name in terms.columns})
        if self.task in CLASSES:
            terms = replace(terms, classes=self.classes_[self.seen])
        offset = self._offset(terms)
        if offset is not None and offset.name not in terms.features:
            terms = replace(terms, features=(*terms.features, offset.name))
        return replace(terms, offset=offset)

    def export_stack(self) -> Stack:
        """The stack for `tabsym.export.to_stack`, in columns of the table as the comparison took it.

        Returns
        -------
        Stack

        Raises
        ------
        ValueError, TypeError
            The winner is no stack, or reads its columns in a way that exports do not hold.
        """
        stack = stack_of(self.estimator)
        for role in ("exposure", "offset"):
            name = getattr(self.roles, role)
            if name is not None:
                raise ValueError(
                    f"The predictions of the winner take the {role} {name!r}, which files of a stack do not hold; "
                    f"compare without the {role}."
                )
        derived, features = dict(stack.derived), stack.features
        if self.features is not None:
            derived |= _made_columns(self.features, self.retyping)
            features = tuple(self.features.kinds)
        _check_reading(self.retyping, set(features))
        classes = self.classes_[self.seen] if self.task in CLASSES else None
        return replace(stack, derived=derived, features=features, classes=classes)

    def _offset(self, terms: ModelTerms) -> OffsetColumn | None:
        """The column that the predictions add; that of the model itself, where the comparison had none."""
        if self.task == "count" and self.roles.exposure is not None:
            return OffsetColumn(self.roles.exposure, True)
        if self.roles.offset is None:
            return terms.offset
        if self.task != "count" and terms.link != "identity":
            raise ValueError(
                f"The predictions of the winner are those of a log link plus the offset {self.roles.offset!r}, which "
                "an export does not hold; compare without the offset."
            )
        return OffsetColumn(self.roles.offset, False)

    def _values(self, table: Any) -> NDArray[np.float64]:
        frame = self.retyping.read(table).reset_index(drop=True)
        X = self._raw(frame) if self.features is None else self.features.apply(frame, later=True)
        exposure = offset = None
        if self.task == "count" and self.roles.exposure is not None:
            exposure = _column(frame, self.roles.exposure, is_exposure=True)
        if self.roles.offset is not None:
            offset = _column(frame, self.roles.offset)
            if self.task == "count":
                exposure, offset = np.exp(offset), None
        n = len(frame)
        data = Data(X, np.zeros(n), self.task, len(self.classes_), exposure=exposure, offset=offset)
        return Trained(self.estimator, self.seen).predict(data)

    def _raw(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns for a contender of the user's own, which has no features."""
        if self.columns is None:
            X = frame.drop(columns=self.drop, errors="ignore")
        else:
            refuse_absent(frame, self.columns)
            X = frame[self.columns]
        numbers = [name for name in X.columns if name in self.retyping.formats or name in self.retyping.numbers]
        changed = [name for name in numbers if X[name].dtype == object or infinite_in(X[name]).any()]
        mixed = {name: numbers_of(name, X[name]) for name in changed}
        return X.assign(**mixed) if mixed else X


def load(path: str | Path, *, trusted: Iterable[str | type] = (), allow_boosters: bool = True) -> Winner:
    """Read a winner that `Winner.save` or ``tabsym compare --save-best`` wrote.

    No code in the file is run; see `tabsym.load`, which reads other estimators as well.

    Parameters
    ----------
    path : path
    trusted : iterable of str or type
        Full names of further types that may be created, for your own contenders.
    allow_boosters : bool, default True
        Whether a booster's bytes may be passed to its library. Use False for files from unknown sources.

    Returns
    -------
    Winner

    Raises
    ------
    ValueError
        The file is not such a file, is damaged, or contains other types.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from tabsym.compare import compare, load
    >>> from tabsym.datasets import make_retail
    >>> folder = mkdtemp()
    >>> result = compare(make_retail(200), "sales", contenders=["wide"], folds=2, out=f"{folder}/out", quiet=True)
    >>> path = result.best.save(f"{folder}/best.skops")
    >>> load(path).predict(make_retail(3)).shape
    (3,)
    """
    winner: Winner = load_model(path, trusted=trusted, allow_boosters=allow_boosters, root="Winner")
    return winner


def train_best(
    contender: Contender,
    prepared: Prepared,
    plan: SplitPlan,
    metric: Metric,
    budget: str | None,
    seed: int,
    n_jobs: int,
) -> Winner:
    """The contender at the settings it was compared with, on all rows; tuned again on them if it was tuned.

    Where they are a sample of a table, the plain wide model is trained on the whole table.
    """
    names = prepared.target.classes if contender.raw and prepared.task in CLASSES else None
    data = Data(
        prepared.raw if contender.raw else prepared.X, prepared.y, prepared.task, len(prepared.classes),
        prepared.weight, prepared.exposure, prepared.offset, names,
    )  # fmt: skip
    model = contender.estimator(prepared.task, seed, n_jobs, plan.unseen, metric.name)
    limit = read_budget(budget)
    if limit is not None:
        inside = plan.inside(np.arange(len(prepared.y)), prepared.y, prepared.task)
        tuned = tune(model, contender.space(prepared.task), data, inside, metric, limit, seed)
        model = clone(model).set_params(**tuned.params)
    trained, trained_on = _trained(model, data, prepared)
    with_roles = [prepared.target.name, *prepared.roles.named().values()]
    left_out = [name for name in prepared.frame.columns if name not in prepared.raw.columns]
    return Winner(
        contender.name, contender.label, prepared.task, trained.model, prepared.target.classes, trained.seen,
        None if contender.raw else prepared.features, list(dict.fromkeys(with_roles + left_out)), prepared.roles,
        prepared.retyping, trained_on, list(prepared.raw.columns),
    )  # fmt: skip


def _trained(model: Any, data: Data, prepared: Prepared) -> tuple[Trained, str]:
    """A clone of the model, trained on as many rows as it can be; and on which, in words."""
    if prepared.whole is None:
        return train(model, data), "all rows"
    why = "this contender needs all rows in memory"
    if goes_out_of_core(model):
        try:
            trained, n_rows = train_on_all_rows(model, prepared)
            return trained, f"all {n_rows:,} rows"
        except (ValueError, TypeError, OSError) as error:  # what was compared is not to be lost
            why = f"not on all rows, as {error}"
    return train(model, data), f"the sample of {len(prepared.y):,} rows: {why}"


def _column(frame: pd.DataFrame, name: str, *, is_exposure: bool = False) -> NDArray[np.float64]:
    """The exposures or offsets (n,) of the rows to predict, which are what they had to be in training."""
    if name not in frame.columns:
        raise ValueError(f"There is no column {name!r}, which the predictions need; add it to the table.")
    column = frame[name]
    if not is_number(column):  # a word among them, say
        column = pd.to_numeric(column.astype(object), errors="coerce")
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = ~np.isfinite(numbers) | (is_exposure & (numbers <= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        cell = frame[name].tolist()[row]
        shown = "a missing value" if pd.isna(cell) else repr(cell)
        needed = "a number above 0" if is_exposure else "a number"
        raise ValueError(
            f"Column {name!r}, which the predictions need, holds {shown} in row {row}; give {needed} in each row."
        )
    return np.asarray(numbers)


# -- the winner for exports ------------------------------------------------------------------------


def _made_columns(features: Features, retyping: Retyping) -> dict[str, Derived]:
    """The columns that are made of those of the table."""
    dates = {name: kind for name, kind in features.kinds.items() if name in features.parts}
    read_as = dict.fromkeys(retyping.numbers, "numbers") | dict.fromkeys(retyping.booleans, "booleans")
    texts = {
        name: Derived(name, "text", read_as.get(name, ""))
        for name, kind in features.kinds.items()
        if kind == "categories" and name not in features.parts
    }
    return texts | columns_of_dates(dates, features.parts, features.kinds)


def _check_reading(retyping: Retyping, used: set[str]) -> None:
    for name, one in retyping.formats.items():
        if name in used and not is_plain(one.example):
            value = float(one.parse(pd.Series([one.example]))[0][0])
            warn_user(
                f"Column {name!r} was read from text such as {one.example!r}, and the export takes numbers; make that "
                f"{value!r} where its rows come from."
            )
    for name, words in retyping.na_values.items():
        if words and (not name or name in used):
            which = f" of column {name!r}" if name else ""
            raise ValueError(
                f"The values {', '.join(map(repr, words))}{which} were read as missing, which an export does not hold; "
                "make them missing in the table, and compare again."
            )


# -- all contenders --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes
    ----------
    ranking : pandas.DataFrame
        Contenders that completed all folds, best first: score, standard deviation over folds (`sd`), all metrics,
        difference to the best with its interval, p-values, significance in words (`verdict`), totals, times, memory,
        model size.
    summary : list of str
        The conclusions, in sentences.
    failures : dict of str -> str
        The reason of each contender that failed or was not run.
    folder : Path
        The folder of results.json, results.csv, report.html and the predictions.
    larger_is_better : bool
        Whether a larger value of the ranking metric is better.
    best : Winner
        The best contender, trained on all rows at the first access; where a sample of a table was compared, on the
        sample, and the plain wide model on the whole table.
    best_file : Path or None
        The file that ``save_best`` wrote; None where there is none.
    """

    ranking: pd.DataFrame
    summary: list[str]
    failures: dict[str, str]
    folder: Path
    larger_is_better: bool
    _run_config: RunConfig = field(repr=False)
    _contenders: dict[str, Contender] = field(repr=False)
    best_file: Path | None = None

    def _repr_html_(self) -> str:
        """The ranking, the conclusions and the plots, for a notebook."""
        from tabsym.compare.report import comparison_html  # needs the extra; reading a winner does not

        return comparison_html(self)

    @property
    def not_installed(self) -> list[str]:
        """Names of contenders that were left out because their libraries are not installed."""
        return [name for name in self.failures if name in self._contenders and self._contenders[name].missing()]

    @cached_property
    def best(self) -> Winner:
        """The best contender trained on all rows (of a sample: see `trained_on`): `predict`, `predict_proba`, `save`.

        Raises
        ------
        ValueError
            No contender completed all folds, or the best one is of an earlier run and not among the contenders now.
        """
        from tabsym.compare.machine import threads_of_each

        if not len(self.ranking):
            raise ValueError(
                "No contender completed all folds, so that there is no best one; see failures for the reasons."
            )
        name = self.ranking["name"].iloc[0]
        if name not in self._contenders:
            raise ValueError(
                f"The best contender, {name!r}, is of an earlier run and not among the contenders now; add it "
                "to contenders to train it."
            )
        config, threads = self._run_config, threads_of_each(1, self._run_config.threads)
        return train_best(
            self._contenders[name], config.prepared, config.plan, config.metric, config.tune, config.seed, threads
        )
