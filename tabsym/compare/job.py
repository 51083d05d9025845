"""What a comparison hands to the processes of its contenders, by files in a temporary folder of its own."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np
import pandas as pd

from tabsym.compare.contenders import Contender, all_contenders
from tabsym.compare.fitting import Data
from tabsym.compare.metrics import METRICS, Metric
from tabsym.compare.own import from_address
from tabsym.compare.splits import Plan, Split
from tabsym.compare.task import CLASSES

if TYPE_CHECKING:
    from tabsym.compare.prepare import Prepared

TABLE, RAW, ARRAYS = "table.parquet", "raw.pickle", "arrays.npz"
OWN, METRIC, TOKEN = "own.pickle", "metric.pickle", "token"


@dataclass(frozen=True)
class Job:
    """One contender's work: which folds, and with what."""

    contender: str
    address: str | None
    own: bool
    task: str
    n_classes: int
    todo: list[int]
    seed: int
    threads: int
    metric: str
    tune: str | None
    memory_limit: float | None
    plan: dict[str, Any]


def write_table(folder: Path, prepared: Prepared, splits: list[Split], plan: Plan) -> None:
    """What all contenders share."""
    prepared.X.to_parquet(folder / TABLE)
    _dump(folder / RAW, {"X": prepared.raw, "names": prepared.target.classes if prepared.task in CLASSES else None})
    arrays: dict[str, Any] = {"y": prepared.y}
    for name in ("weight", "exposure", "offset"):
        if getattr(prepared, name) is not None:
            arrays[name] = getattr(prepared, name)
    if plan.keys is not None:
        arrays["keys"] = plan.keys
    for j, (train, test) in enumerate(splits):
        arrays |= {f"train{j}": train, f"test{j}": test}
    np.savez(folder / ARRAYS, allow_pickle=False, **arrays)


def write_job(folder: Path, job: Job, contender: Contender, metric: Metric) -> None:
    """One contender's job; an estimator of the user's own travels as it is.

    Raises
    ------
    TypeError
        It cannot be handed to another process.
    """
    (folder / "job.json").write_text(json.dumps(asdict(job)))
    if job.own:
        model = contender.estimator(job.task, job.seed, job.threads, None, job.metric)
        _dump(folder / OWN, (model, contender.space(job.task)))
    if METRICS[job.task].get(metric.name) is not metric and job.tune is not None:
        _dump(folder / METRIC, metric)


def _dump(path: Path, what: Any) -> None:
    try:
        path.write_bytes(cloudpickle.dumps(what))
    except Exception as error:
        raise TypeError(
            f"it cannot be sent to another process ({type(error).__name__}: {error}); "
            "define it in a module and name it by address, 'package.module:factory'"
        ) from None


def _load(path: Path) -> Any:
    return cloudpickle.loads(path.read_bytes())  # of the comparison's own folder


@dataclass(frozen=True)
class Work:
    """A job as its process reads it."""

    job: Job
    model: Any
    space: dict[str, Any]
    data: Data
    splits: dict[int, Split]
    plan: Plan
    metric: Metric


def read_job(folder: Path) -> Job:
    """The job in a folder."""
    return Job(**json.loads((folder / "job.json").read_text()))


def read_work(folder: Path, job: Job) -> Work:
    """Read all that a job needs, and make its estimator."""
    arrays = np.load(folder / ARRAYS)
    model, space, raw = _estimator(folder, job)
    shared: dict[str, Any] = _load(folder / RAW) if raw else {"X": pd.read_parquet(folder / TABLE), "names": None}
    data = Data(
        shared["X"],
        arrays["y"],
        job.task,
        job.n_classes,
        arrays.get("weight"),
        arrays.get("exposure"),
        arrays.get("offset"),
        shared["names"],
    )
    splits = {fold: (arrays[f"train{fold}"], arrays[f"test{fold}"]) for fold in job.todo}
    plan = Plan(**job.plan, keys=arrays.get("keys"))
    metric = METRICS[job.task].get(job.metric)
    if metric is None:
        own = folder / METRIC
        metric = _load(own) if own.exists() else next(iter(METRICS[job.task].values()))
    return Work(job, model, space, data, splits, plan, metric)


def _estimator(folder: Path, job: Job) -> tuple[Any, dict[str, Any], bool]:
    """The estimator, its space, and whether it gets the user's own columns."""
    if job.own:
        model, space = _load(folder / OWN)
        return model, space, True
    if job.address is not None:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
        contender = from_address(job.contender, job.address)
    else:
        contender = all_contenders()[job.contender]
    unseen = Plan(**job.plan).unseen
    return (
        contender.estimator(job.task, job.seed, job.threads, unseen, job.metric),
        contender.space(job.task),
        contender.raw,
    )
