"""From the winner to use: the best contender trained on all rows, with all that was done to the table before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from tabsym.compare.contenders import Contender
from tabsym.compare.features import Features
from tabsym.compare.fitting import Data, Trained, train
from tabsym.compare.metrics import Metric
from tabsym.compare.prepare import Columns, Prepared
from tabsym.compare.retyping import Retyping
from tabsym.compare.splits import Plan
from tabsym.compare.task import CLASSES
from tabsym.compare.tuning import read_budget, tune

_PACKAGES = {"tabsym", "sklearn", "lightgbm", "xgboost", "catboost", "category_encoders", "numpy", "pandas"}
_PACKAGES |= {f"tabsym_{name}" for name in ("lightgbm", "xgboost", "catboost")}
_OTHERS = {"collections.OrderedDict", "collections.defaultdict", "functools.partial"}
_FUNCTIONS = {"sklearn.utils.validation.check_array", "numpy.asarray"}  # that trained pipelines hold


@dataclass(frozen=True)
class Winner:
    """A contender trained on all rows of a comparison; takes tables as the comparison took them.

    Attributes
    ----------
    name, label : str
        Which contender.
    task : {"binary", "multiclass", "regression", "count"}
    estimator : estimator
        The trained pipeline; it gets the columns as `features` makes them.
    classes_ : array of shape (n_classes,)
        The classes in the order of `predict_proba`.
    """

    name: str
    label: str
    task: str
    estimator: Any
    classes_: NDArray[Any]
    seen: NDArray[np.int64]
    features: Features | None
    drop: list[str]
    roles: Columns
    retyping: Retyping = field(default_factory=Retyping)

    def predict(self, table: Any) -> NDArray[Any]:
        """Predicted classes or numbers (n_rows,); an exposure or offset is read from the column named before.

        Parameters
        ----------
        table : dataframe or path
            With the feature columns; others are ignored.
        """
        values = self._values(table)
        return np.asarray(self.classes_[values.argmax(axis=1)]) if self.task in CLASSES else values

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Probabilities (n_rows, n_classes), in the order of `classes_`.

        Raises
        ------
        TypeError
            The target is no class.
        """
        if self.task not in CLASSES:
            raise TypeError(f"The target is a number ({self.task}), which has no probabilities; use predict.")
        return self._values(table)

    def save(self, path: str | Path) -> Path:
        """Write the winner to a file that holds no code (skops); `tabsym.compare.load` reads it.

        Raises
        ------
        ValueError
            A part of it cannot be written so.
        OSError
            The file cannot be written.
        """
        sio = need_skops()
        path = Path(path)
        try:
            sio.dump(dict(vars(self)), path)
        except OSError:  # of the file, not of what is written
            raise
        except Exception as error:
            path.unlink(missing_ok=True)
            raise ValueError(
                f"{self.label} cannot be written to a file without code ({type(error).__name__}: {error}); "
                "train it anew where it is used, by comparison.best."
            ) from None
        return path

    def _values(self, table: Any) -> NDArray[np.float64]:
        frame = self.retyping.read(table).reset_index(drop=True)
        X = frame.drop(columns=self.drop, errors="ignore") if self.features is None else self.features.apply(frame)
        exposure = offset = None
        if self.task == "count" and self.roles.exposure is not None:
            exposure = _column(frame, self.roles.exposure)
        if self.roles.offset is not None:
            offset = _column(frame, self.roles.offset)
            if self.task == "count":
                exposure, offset = np.exp(offset), None
        n = len(frame)
        data = Data(X, np.zeros(n), self.task, len(self.classes_), exposure=exposure, offset=offset)
        return Trained(self.estimator, self.seen).predict(data)


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Winner:
    """Read a winner that `Winner.save` or ``tabsym compare --save-best`` wrote.

    Nothing is run that the file could bring along: only classes of tabsym, scikit-learn, the boosters,
    category_encoders, NumPy and pandas are made from it.

    Parameters
    ----------
    path : path
    trusted : sequence of str
        Full names of further types that may be made, of a contender of your own.

    Raises
    ------
    ValueError
        The file holds other types.
    """
    sio = need_skops()
    unknown = sio.get_untrusted_types(file=path)
    strange = [name for name in unknown if name not in trusted and not _is_known(name)]
    if strange:
        raise ValueError(
            f"{Path(path).name} holds {', '.join(strange)}, which tabsym does not know; if you trust where it comes "
            f"from: load(path, trusted={strange})."
        )
    return Winner(**sio.load(path, trusted=unknown))


def _is_known(name: str) -> bool:
    """Whether a type is a class of a package that winners are made of, or a function that they hold."""
    if name in _OTHERS or name in _FUNCTIONS:
        return True
    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] not in _PACKAGES:
        return False
    try:
        return isinstance(getattr(import_module(module), attribute), type)
    except (ImportError, AttributeError):
        return False


def train_best(
    contender: Contender, prepared: Prepared, plan: Plan, metric: Metric, budget: str | None, seed: int, n_jobs: int
) -> Winner:
    """The contender at the settings it was compared with, on all rows; tuned anew on them where it was tuned."""
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
    trained = train(model, data)
    own = [prepared.target.name, *prepared.roles.named().values()]
    left_out = [name for name in prepared.frame.columns if name not in prepared.raw.columns]
    return Winner(
        contender.name, contender.label, prepared.task, trained.model, prepared.target.classes, trained.seen,
        None if contender.raw else prepared.features, list(dict.fromkeys(own + left_out)), prepared.roles,
        prepared.retyping,
    )  # fmt: skip


def _column(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    if name not in frame.columns:
        raise ValueError(f"There is no column {name!r}, which the predictions need.")
    return frame[name].to_numpy(dtype=np.float64)


def need_skops() -> Any:
    """skops.io, or what to install."""
    try:
        import skops.io
    except ModuleNotFoundError:
        raise ModuleNotFoundError('Saving a winner needs skops: pip install "tabsym[compare]"', name="skops") from None
    return skops.io
