"""One contender trained on some rows, at its defaults or tuned, with predictions of others.

A count with an exposure e is trained as the rate y / e with e times the weight, which is the same Poisson loss as
ln e as an offset, and the prediction is multiplied by e; so any contender that takes weights takes exposures.
In regression an offset is subtracted before training and added afterwards.

Tuning has the same budget for every contender, its defaults among the candidates. These are drawn at random from the
contender's published space and are the same in every fold. Each is trained on a part of the fold's training rows and
scored on the rest, which is split off in the manner of the folds themselves (`splits.SplitPlan.inside`). The best is
then trained on all of them.

Where a sample of a table was compared, a wide model goes over all rows out of core: they are prepared batch by batch,
as later rows are, and written to a temporary Parquet file.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from tabsym.compare.metrics import Metric
from tabsym.compare.splits import Indices, Split
from tabsym.compare.table.prepare import CLASSES, Prepared, numbers_of_target, weights_of
from tabsym.frame import relative_weights, take_rows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """What all contenders are trained and tested on.

    `X`: a frame. `y` (n,): codes of classes, or numbers. `names`: the values that the codes stand for, given to
    contenders of the user's own; None: these get the codes.
    """

    X: Any
    y: NDArray[Any]
    task: str
    n_classes: int = 0
    weight: Floats | None = None
    exposure: Floats | None = None
    offset: Floats | None = None
    names: NDArray[Any] | None = None

    def rows(self, positions: Indices) -> Data:
        """Some of the rows, with an index of their own: some encoders pair rows of X and y by label."""
        every = {name: getattr(self, name) for name in ("y", "weight", "exposure", "offset")}
        some: dict[str, Any] = {name: None if values is None else values[positions] for name, values in every.items()}
        X = take_rows(self.X, positions)
        return replace(self, X=X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else X, **some)


@dataclass(frozen=True)
class Trained:
    """A trained contender, and which classes it has seen; `unweighted`: there were weights and it takes none."""

    model: Any
    seen: Indices
    unweighted: bool = False

    def predict(self, data: Data) -> Floats:
        """Probabilities of all classes (n, n_classes), or numbers (n,), exposures and offsets in them."""
        if data.task in CLASSES:
            out = np.zeros((len(data.y), data.n_classes))
            if len(data.y):
                shape = (len(data.y), len(self.seen))
                out[:, self.seen] = _as_floats(self.model.predict_proba(data.X), shape, "predict_proba")
            return out
        values = np.empty(0)
        if len(data.y):
            values = _as_floats(self.model.predict(data.X), (len(data.y),), "predict")
        if data.exposure is not None:
            values = values * data.exposure
        return values if data.offset is None else values + data.offset


def _as_floats(values: Any, shape: tuple[int, ...], method: str) -> Floats:
    """What a method gave, as numbers of this shape; one column counts as none.

    Raises
    ------
    ValueError
        It has another shape, or complex numbers.
    """
    array = np.asarray(values)
    if array.shape == (*shape, 1):
        array = array[..., 0]
    if array.shape != shape:
        raise ValueError(f"its {method} gave an array of shape {array.shape}, not {shape}")
    if array.dtype.kind == "c":
        raise ValueError(f"its {method} gave complex numbers")
    return array.astype(np.float64)


def train(model: Any, data: Data) -> Trained:
    """A clone of the model, trained on all rows.

    Raises
    ------
    ValueError
        There are exposures, and the model takes no weights.
    """
    fresh = clone(model)
    y, weight, seen = data.y, data.weight, np.empty(0, dtype=np.int64)
    names = data.names
    if names is not None and names.dtype.kind == "f" and (names != np.round(names)).any():
        names = None  # scikit-learn takes fractions for numbers, so that codes stand for these classes
    if data.task in CLASSES:  # some rows can lack a class: code those they have
        seen, y = np.unique(y, return_inverse=True)
        if names is not None:
            y = names[seen][y]
    if data.exposure is not None:
        y = y / data.exposure
        weight = data.exposure if weight is None else weight * data.exposure
    if data.offset is not None:
        y = y - data.offset
    weight = relative_weights(weight)  # boosters and MODL count rows by them
    arguments = {} if weight is None else weights_for(fresh, weight)
    if weight is not None and not arguments and data.exposure is not None:
        raise ValueError("its fit takes no sample_weight, which exposures need")
    fresh.fit(data.X, y, **arguments)
    if data.task in CLASSES:
        codes = np.arange(len(seen))
        seen = seen[_positions_of(fresh, codes, codes)] if names is None else _positions_of(fresh, names, seen)
    return Trained(fresh, seen, unweighted=weight is not None and not arguments)


def weights_for(model: Any, weight: Floats) -> dict[str, Floats]:
    """The arguments that hand these weights to every step of a pipeline that takes them; none if the last does not."""
    return dict.fromkeys(_weight_names(model), weight)


def _weight_names(model: Any, *, last: bool = True) -> list[str]:
    """The names; a pipeline whose last step takes none gets none, unless it is itself a step on the way."""
    if isinstance(model, Pipeline):
        steps = [(step, one) for step, one in model.steps if not (one is None or isinstance(one, str))]
        names = [
            [f"{step}__{name}" for name in _weight_names(one, last=last and one is steps[-1][1])] for step, one in steps
        ]
        return [name for step in names for name in step] if names and (names[-1] or not last) else []
    if has_fit_parameter(model, "sample_weight"):
        return ["sample_weight"]
    inner = getattr(model, "estimator", getattr(model, "regressor", None))  # a search or the like, that hands them on
    hands_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature(model.fit).parameters.values())
    return _weight_names(inner, last=last) if inner is not None and hands_on else []


def _positions_of(model: Any, names: NDArray[Any], seen: Indices) -> Indices:
    """Where the model's `classes_` are among the names; those of a model without them are sorted."""
    classes = getattr(model, "classes_", None)
    classes = [] if classes is None else np.asarray(classes).tolist()
    position = {name: position for position, name in enumerate(names.tolist())}
    if len(classes) != len(seen) or not set(classes) <= position.keys():
        return np.asarray(seen[np.argsort(names[seen], kind="stable")])
    return np.array([position[name] for name in classes], dtype=np.int64)


_MAX_SETTINGS = 10_000  # within a budget of seconds


@dataclass(frozen=True)
class Budget:
    """A number of settings, including the defaults, or of seconds in each fold; the defaults are always tried."""

    settings: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.settings} settings" if self.seconds is None else f"{self.seconds:g} s"


@dataclass(frozen=True)
class Tuned:
    """The best settings (none: the defaults), how many were tried, how many of them failed, and seconds."""

    params: dict[str, Any]
    tried: int
    failed: int
    seconds: float


def read_budget(tune: int | float | str | None) -> Budget | None:
    """20 or "20": settings; "60s": seconds.

    Raises
    ------
    ValueError
        It is neither.
    """
    if tune is None:
        return None
    text = str(tune).strip()
    try:
        budget = Budget(seconds=float(text[:-1])) if text.endswith("s") else Budget(settings=int(text))
    except ValueError:
        budget = Budget(settings=0)
    if not (budget.seconds or budget.settings or 0) > 0:
        raise ValueError(
            f"tune={tune!r} is not a budget; use a number of settings, such as 20, or seconds, such as '60s'."
        )
    return budget


def tune(
    model: Any, space: dict[str, Any], data: Data, inside: Split, metric: Metric, budget: Budget, seed: int
) -> Tuned:
    """The settings with the best score on the rows split off.

    Raises
    ------
    ValueError
        A name in the search space is no parameter of the model.
    """
    begin = time.perf_counter()
    unknown = _unknown_names(model, space, seed)
    if unknown:
        raise ValueError(f"its search space names {unknown}, which its set_params() does not take; mend the names")
    fit_on, score_on = data.rows(inside[0]), data.rows(inside[1])
    best: dict[str, Any] = {}
    best_score, tried, failed = np.inf, 0, 0
    for params in _candidates(space, budget, seed):
        if tried and budget.seconds is not None and time.perf_counter() - begin >= budget.seconds:
            break
        tried += 1
        try:
            score = _score(clone(model).set_params(**params), fit_on, score_on, metric)
        except Exception:  # settings that do not go together: what fails at the defaults fails in the fold, too
            failed += 1
            continue
        if score < best_score:
            best, best_score = params, score
    return Tuned(best, tried, failed, time.perf_counter() - begin)


def _unknown_names(model: Any, space: dict[str, Any], seed: int) -> list[str]:
    """Those that the model does not take, unless of a part that the space replaces; boosters take unlisted ones."""
    unknown = []
    for name, value in next(iter(ParameterSampler(space, 1, random_state=seed)), {}).items() if space else ():
        if any(name.startswith(f"{part}__") for part in space):
            continue
        try:
            clone(model).set_params(**{name: value})
        except (ValueError, AttributeError):
            unknown.append(name)
    return unknown


def _candidates(space: dict[str, Any], budget: Budget, seed: int) -> Iterator[dict[str, Any]]:
    """The defaults, then settings at random."""
    yield {}
    number = (budget.settings or _MAX_SETTINGS) - 1
    if space and number > 0:
        finite = all(isinstance(values, list) for values in space.values())
        if finite:  # the sampler would warn where the grid has fewer
            number = min(number, int(np.prod([len(values) for values in space.values()])))
        for params in ParameterSampler(space, number, random_state=seed):
            yield {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}


def _score(model: Any, fit_on: Data, score_on: Data, metric: Metric) -> float:
    """Smaller is better."""
    prediction = train(model, fit_on).predict(score_on)
    score = metric.of(score_on.y, prediction, score_on.weight)
    if not np.isfinite(score):
        raise ValueError("the score is not finite")
    return -score if metric.larger_is_better else score


# -- all rows of a table of which a sample was compared ----------------------------------------------


def goes_out_of_core(model: Any) -> bool:
    """Whether a contender's model can be trained on rows that do not fit into memory."""
    from tabsym.models import WideClassifier, WideRegressor  # not in the processes of other contenders

    return type(model) in (WideClassifier, WideRegressor)


def train_on_all_rows(model: Any, prepared: Prepared) -> tuple[Trained, int]:
    """A clone of the model, trained on all rows that have a target; and how many these are.

    Raises
    ------
    ValueError
        Rows that are not in the sample cannot be read as those in it.
    """
    target, weight = _free_name("target", prepared), _free_name("weight", prepared)
    fresh = clone(model)
    with tempfile.TemporaryDirectory(prefix="tabsym-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "rows.parquet"
        n_rows, is_weighted = _write_rows(prepared, path, target, weight)
        fresh.fit(path, target, sample_weight=weight if is_weighted else None)
    seen = np.asarray(fresh.classes_, dtype=np.int64) if prepared.task in CLASSES else np.empty(0, dtype=np.int64)
    return Trained(fresh, seen), n_rows


def _free_name(name: str, prepared: Prepared) -> str:
    while name in prepared.X.columns:
        name += "_"
    return name


def _write_rows(prepared: Prepared, path: Path, target: str, weight: str) -> tuple[int, bool]:
    """Write all rows, as the model gets them; their number, and whether they have weights."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert prepared.whole is not None
    kind = pa.int64() if prepared.task in CLASSES else pa.float64()
    schema = pa.Schema.from_pandas(prepared.X, preserve_index=False).remove_metadata().append(pa.field(target, kind))
    is_weighted = prepared.weight is not None or prepared.exposure is not None
    if is_weighted:
        schema = schema.append(pa.field(weight, pa.float64()))
    n_rows, codes = 0, dict[Any, int]()
    if prepared.task in CLASSES:
        codes = dict(zip(prepared.frame[prepared.target.name].tolist(), prepared.y.tolist(), strict=True))
    with pq.ParquetWriter(path, schema) as writer:
        for frame in prepared.whole.frames():
            rows = prepared.retyping.apply(frame)
            rows = rows[rows[prepared.target.name].notna()].reset_index(drop=True)
            if not len(rows):
                continue
            y, weights = _target_and_weights(prepared, rows, codes)
            X = prepared.features.apply(rows, later=True).assign(**{target: y})
            if is_weighted:
                X[weight] = weights
            writer.write_table(pa.Table.from_pandas(X, schema=schema, preserve_index=False))
            n_rows += len(rows)
    return n_rows, is_weighted


def _target_and_weights(
    prepared: Prepared, rows: pd.DataFrame, codes: dict[Any, int]
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Target and weights of some rows, as `train` makes them."""
    name, values = prepared.target.name, rows[prepared.target.name].infer_objects()
    weight, exposure, offset = weights_of(rows, prepared.task, prepared.roles)
    if prepared.task in CLASSES:
        new = next((value for value in values.unique().tolist() if value not in codes), None)
        if new is not None:
            raise ValueError(f"the sample has no row of class {new!r} of {name!r}")
        return np.array([codes[value] for value in values.tolist()], dtype=np.int64), weight
    y = numbers_of_target(values, name, prepared.task)
    if exposure is not None:
        y, weight = y / exposure, exposure if weight is None else weight * exposure
    return y if offset is None else y - offset, weight
