"""The options of a run, checked and written down with what they depend on; and the folder with results of the same."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tabsym.compare.contenders import Contender, digest_of
from tabsym.compare.fitting import read_budget
from tabsym.compare.job import RunConfig
from tabsym.compare.machine import can_limit_memory, threads_of_each
from tabsym.compare.metrics import METRICS
from tabsym.compare.ranking import CONSTANT
from tabsym.compare.results import Results, check_paths, load_results
from tabsym.compare.splits import Split
from tabsym.compare.table.features import is_number
from tabsym.compare.table.files import ReadOptions, name_of_file
from tabsym.compare.table.prepare import Prepared
from tabsym.messages import Number, check_option, plural
from tabsym.plots.style import load_matplotlib

MAX_SEED = 2**32 - 1
"""NumPy's."""


_NUMBERS: dict[str, list[Number | None]] = {
    "folds": [Number(at_least=2, whole=True)],
    "repeats": [Number(at_least=1, whole=True)],
    "jobs": [Number(at_least=1, whole=True)],
    "threads": [Number(at_least=1, whole=True), None],
    "seed": [Number(at_least=0, at_most=MAX_SEED, whole=True)],
    "time_limit": [Number(above=0, of="seconds"), None],
    "max_rows": [Number(at_least=2, whole=True), None],
    "memory_limit": [Number(above=0, of="gigabytes"), None],
}


def check_numbers(**options: Any) -> None:
    """The options of `compare` that are numbers, and whether processes can be held to a limit of memory."""
    for name, value in options.items():
        check_option(name, value, _NUMBERS[name])
    if options["memory_limit"] is not None and not can_limit_memory():
        raise ValueError(
            f"memory_limit={options['memory_limit']} is not possible, as this system limits no process's memory; leave "
            "it out."
        )


def check_lists(**lists: Any) -> None:
    """Lists of columns, and not the text of one."""
    for argument, value in lists.items():
        if isinstance(value, str):
            raise TypeError(f"{argument} must be a list, not the text {value!r}; pass {argument}=[{value!r}].")


def reading_options(
    *, numeric: Any, categorical: Any, na_values: Any, decimal: Any, thousands: Any, **others: Any
) -> ReadOptions:
    """What the user decided of reading the table, checked.

    `na_values`: a list of cells for all columns, each also as ``COLUMN=CELL``; or column -> list of cells.
    """
    check_lists(numeric=numeric, categorical=categorical)
    check_option("decimal", decimal, [".", ",", None])
    if thousands is not None and (len(thousands) > 1 or thousands.isalnum() or thousands == decimal):
        raise ValueError(
            f"thousands={thousands!r} is not possible; use one character other than the decimal separator, or ''."
        )
    return ReadOptions(
        [str(name) for name in numeric or []], [str(name) for name in categorical or []], _na_values(na_values),
        decimal, thousands, **others,
    )  # fmt: skip


def _na_values(given: Any) -> dict[str, list[str]]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): [str(word) for word in ([words] if isinstance(words, (str, int, float)) else words)]
                for name, words in given.items()}  # fmt: skip
    out: dict[str, list[str]] = {}
    for word in [given] if isinstance(given, (str, int, float)) else given:
        name, separator, cell = str(word).partition("=")
        out.setdefault(name if separator else "", []).append(cell if separator else str(word))
    return out


def file_for_best(path: str | Path) -> Path:
    """The file for the best contender, by its ending if it has none."""
    if not Path(path).resolve().parent.is_dir():
        raise ValueError(f"The folder of save_best={str(path)!r} does not exist; create it first.")
    file = Path(path) if Path(path).suffix else Path(f"{path}.skops")
    if Path(path).is_dir() or file.is_dir():
        raise ValueError(f"save_best={str(path)!r} is a folder; name a file in it, such as best.skops.")
    return file


def source_of(table: Any, target: str | None) -> tuple[str, Any, str]:
    """The name of the table, the table or its file, and the target; of the embedded one where none is given."""
    if table is None:
        from tabsym.datasets import make_retail

        return "retail", make_retail(), target or "sales"
    name = name_of_file(table) if isinstance(table, (str, Path)) else "table"
    if target is None:
        raise ValueError("The column to predict is missing: add target='NAME' (--target NAME).")
    return name, table, str(target).strip()


def check_extra() -> None:
    """Look whether the libraries that a comparison needs are installed.

    Raises
    ------
    ModuleNotFoundError
        One is absent; says what to install.
    """
    for module in ("psutil", "cloudpickle", "jinja2", "matplotlib", "pyarrow"):
        try:
            load_matplotlib() if module == "matplotlib" else import_module(module)
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f'tabsym.compare needs {module!r}: pip install "tabsym[compare]"', name=module
            ) from None


_SAME = (
    "target", "task", "metric", "folds", "repeats", "split", "split_column", "weight", "exposure", "offset", "seed",
    "tune", "columns", "data", "splits", "metric_made_by",
)  # fmt: skip
_NOT_KNOWN = "something that cannot be compared"
_LONG = {
    "columns": "the names of the columns differ", "data": "the rows or columns differ",
    "splits": "the rows of the folds differ",
    "metric_made_by": "the metric of that name computes something else, as far as is known",
}  # fmt: skip


def settings_of(config: RunConfig, table: str) -> dict[str, Any]:
    """The options of a run and what they depend on, as they are written down."""
    prepared, plan, metric = config.prepared, config.plan, config.metric
    budget, made_by = read_budget(config.tune), None
    if METRICS[prepared.task].get(metric.name) is not metric:  # a digest of the user's own
        made_by = digest_of(metric.larger_is_better, metric.score, metric.by_row) or _NOT_KNOWN
    return {
        "table": table,
        "target": prepared.target.name,
        "metric": metric.name,
        "metrics": list(dict.fromkeys([*METRICS[prepared.task], metric.name])),
        "larger_is_better": metric.larger_is_better,
        "metric_made_by": made_by,
        "folds": plan.folds,
        "repeats": plan.repeats,
        "n_splits": len(config.splits),
        "test_over_train": float(np.mean([len(test) / len(train) for train, test in config.splits])),
        "split": plan.how,
        "split_column": plan.column,
        "splits": fingerprint_of_splits(config.splits),
        **{role: getattr(prepared.roles, role) for role in ("weight", "exposure", "offset")},
        "tune": None if budget is None else str(budget),
        "seed": config.seed,
        "jobs": config.jobs,
        "threads": threads_of_each(config.jobs, config.threads),
        "time_limit": config.time_limit,
        "memory_limit": config.memory_limit,
        "data": _fingerprint(prepared),
        "task": prepared.task,
        "rows": len(prepared.y),
        "columns": {column: _describe(prepared.X[column]) for column in prepared.X},
        "classes": prepared.classes,
        "notes": prepared.notes,
        "versions": _versions(),
        "machine": f"{platform.system()} {platform.machine()}, {plural(os.cpu_count() or 1, 'core')}, "
        f"Python {platform.python_version()}",
    }


def open_folder(out: str | Path | None, name: str, resume: bool) -> Path:
    """The folder for results, made if need be; a new one each time where none is requested.

    Raises
    ------
    ValueError
        It holds results already, and they are not to be resumed; or it cannot be made.
    """
    if out is not None:
        folder = Path(out)
        if (folder / "results.json").exists() and not resume and not _only_failures(folder):
            raise ValueError(
                f"{folder} contains results already; use resume (--resume) to continue them, or choose another folder."
            )
    else:
        folder = Path(f"tabsym-compare-{name}")
        number = 1
        while (folder / "results.json").exists() and not resume:
            number += 1
            folder = Path(f"tabsym-compare-{name}-{number}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"The folder {str(folder)!r} for results cannot be made ({error.strerror}); name another by out (--out)."
        ) from None
    return folder


def _only_failures(folder: Path) -> bool:
    """Whether a comparison ended in which nothing but the baseline did a fold, as the others failed."""
    try:
        entries = load_results(folder).contenders
    except ValueError:  # of another version, or damaged
        return False
    others = [entry for name, entry in entries.items() if name != CONSTANT]
    return bool(others) and all(
        isinstance(entry, dict) and entry.get("error") and not entry.get("folds", True) for entry in others
    )


def begin(folder: Path, settings: dict[str, Any], resume: bool) -> Results:
    """New results, or those in the folder to go on with.

    Raises
    ------
    ValueError
        Those in the folder are of another comparison, or the folder cannot hold results.
    """
    check_paths(folder)
    if not resume or not (folder / "results.json").exists():
        return Results(settings)
    old = load_results(folder)
    for key in _SAME:
        before, now = old.settings.get(key), settings[key]
        if key == "columns" and isinstance(before, dict):
            before, now = list(before), list(now)  # their order, too, by which `data` has the values
        if before != now or now == _NOT_KNOWN:
            shown = f"{before!r:.100}" if before is None or isinstance(before, str | int | float) else "something else"
            what = _LONG.get(key, f"{key}: {shown}, now {now!r}")
            raise ValueError(
                f"The results in {folder} are of a comparison with other settings ({what}); use the same settings, or "
                "choose another folder."
            )
    for entry in old.contenders.values():
        if isinstance(entry, dict):
            entry["error"] = None  # tried again
    return Results(settings, old.contenders)


def forget_changed(results: Results, chosen: Sequence[Contender]) -> list[str]:
    """Drop the folds of contenders that are made by something else now; a sentence for each.

    That is other code of the user's own, or other versions of libraries where some folds are missing: no contender has
    folds of two. One that has all keeps them, and the notes of the results say so.
    """
    said = []
    for contender in chosen:
        entry = results.entry(contender.name, contender.label)
        entry["label"] = contender.label
        needed = set(_PEERS) if contender.raw else {name.replace("_", "-") for name in contender.requires}
        known = {name: number for name, number in _versions().items() if name not in _PEERS or name in needed}
        versions = ", ".join(f"{name} {number}" for name, number in known.items())  # of libraries that it is made with
        other = _other_versions(entry, versions) if entry["folds"] else None
        why = _changed(entry, contender) if entry["folds"] else None
        if why is None and len(entry["folds"]) < results.settings["n_splits"]:
            why = other
        if why is not None:
            entry["folds"] = {}
            said.append(f"{contender.name} is run again: {why}.")
        elif other is not None:
            said.append(f"{contender.name} keeps its results of other versions: {other}.")
            results.settings["notes"] = [*results.settings["notes"], said[-1]]
        entry["address"], entry["made_by"] = contender.address, contender.made_by
        entry["versions"] = entry["versions"] if entry["folds"] and other else versions
    return said


def _other_versions(entry: dict[str, Any], now: str) -> str | None:
    """Which libraries had other versions when the folds that are there were made; earlier versions wrote none."""
    before, after = (set(text.split(", ")) for text in (entry.get("versions") or now, now))
    if before == after:
        return None
    return f"{', '.join(sorted(before - after))} then, {', '.join(sorted(after - before))} now"


def _changed(entry: dict[str, Any], contender: Contender) -> str | None:
    """What has changed since the folds that are there, if anything; what earlier versions wrote does not say."""
    before, now = entry.get("address"), contender.address
    if before != now:
        return f"it was {before or 'an estimator'}, and is {now or 'an estimator'} now"
    what = "the estimator or its space" if now is None else f"the code of {now.partition(':')[0]}"
    if not contender.raw or "made_by" not in entry:
        return None
    if contender.made_by is None:
        return f"whether {what} has changed is unknown"
    return f"{what} has changed" if entry["made_by"] != contender.made_by else None


_PEERS = "lightgbm", "xgboost", "catboost", "category-encoders"
_LIBRARIES = "tabsym", "numpy", "scipy", "scikit-learn", "pandas", "numba", *_PEERS


def _fingerprint(prepared: Prepared) -> str:
    digest = hashlib.sha256(pd.util.hash_pandas_object(prepared.X, index=False).to_numpy().tobytes())
    for role in ("y", "weight", "exposure", "offset"):
        numbers = getattr(prepared, role)
        if numbers is not None:
            digest.update(role.encode())  # the same numbers as weights and as exposures are not the same data
            digest.update(np.ascontiguousarray(numbers).tobytes())
    return digest.hexdigest()[:16]


def fingerprint_of_splits(splits: Sequence[Split]) -> str:
    """Which rows are trained on and tested in each fold, in short."""
    digest = hashlib.sha256()
    for rows in (rows for split in splits for rows in split):
        digest.update(f"{len(rows)} rows".encode())
        digest.update(np.ascontiguousarray(rows, dtype=np.int64).tobytes())
    return digest.hexdigest()[:16]


def _describe(column: pd.Series) -> str:
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    return "number" if is_number(column) else plural(column.nunique(dropna=False), "category", "categories")


def _versions() -> dict[str, str]:
    versions = {}
    for library in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    return versions
