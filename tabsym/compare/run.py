"""A comparison from end to end: settings checked, contenders run, results ranked and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tabsym.compare.contenders import Contender, all_contenders
from tabsym.compare.facts import facts_of
from tabsym.compare.levels import column_levels
from tabsym.compare.live import Live
from tabsym.compare.prepare import Prepared, prepare
from tabsym.compare.processes import Runner
from tabsym.compare.protocol import Metric, Split, choose_metric, make_splits
from tabsym.compare.results import Results, load_results, rank


@dataclass(frozen=True)
class Comparison:
    """What a comparison gave.

    Attributes
    ----------
    ranking : pandas.DataFrame
        Complete contenders, best first: score, spread over folds, difference to the best
        and its p-value, times, memory, model size.
    failures : dict of str -> str
        What went wrong, by contender.
    folder : Path
        Where results.json, results.csv and report.html are.
    """

    ranking: pd.DataFrame
    failures: dict[str, str]
    folder: Path


def compare(
    table: Any = None,
    target: str | None = None,
    *,
    task: str | None = None,
    contenders: list[str] | None = None,
    folds: int = 5,
    repeats: int = 1,
    metric: str | None = None,
    unseen: str | None = None,
    drop: list[str] | None = None,
    symbolic: list[str] | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    out: str | Path | None = None,
    resume: bool = False,
    quiet: bool = False,
) -> Comparison:
    """Compare treatments of categories on a table, under the same folds.

    Parameters
    ----------
    table : dataframe or path, optional
        Any dataframe, or a CSV, TSV, Parquet, Arrow or JSON-lines file; without one, the
        embedded table of retail sales.
    target : str
        The column to predict.
    task : {"binary", "multiclass", "regression"}, optional
        Found from the target where it is not given.
    contenders : list of str, optional
        Names of those that take part; default: all whose libraries are installed.
    folds, repeats : int, default 5 and 1
    metric : str, optional
        What ranks: auc (default for two classes), log_loss (for more), average_precision,
        accuracy; rmse (default for regression), mae, r2.
    unseen : str, optional
        Hold out whole symbols of this column, so that every test row has an unseen one.
    drop : list of str, optional
        Columns to leave out.
    symbolic : list of str, optional
        Numeric columns to treat as symbols.
    time_limit : float, optional
        Seconds for one contender, all folds together; what was done by then is kept.
    seed : int, default 0
    jobs : int, default 1
        Contenders at a time; more than one makes times less comparable.
    out : path, optional
        Folder for the results; default: a new folder ``tabsym-compare-NAME``.
    resume : bool, default False
        Go on with the results in `out`.
    quiet : bool, default False

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        In a sentence that names the column or option.

    Examples
    --------
    >>> from tabsym import compare, datasets
    >>> sales = datasets.make_retail(2000)
    >>> result = compare(sales, "sales", contenders=["constant", "wide"], folds=2,
    ...                  out=getfixture("tmp_path") / "out", quiet=True)
    >>> result.ranking["name"].tolist()
    ['wide', 'constant']
    """
    _check_numbers(folds=folds, repeats=repeats, jobs=jobs, time_limit=time_limit)
    for argument, value in (("contenders", contenders), ("drop", drop), ("symbolic", symbolic)):
        if isinstance(value, str):
            raise TypeError(f"{argument} must be a list, not the text {value!r}; pass {argument}=[{value!r}].")
    name, table, target = _source(table, target)
    prepared = prepare(table, target, task=task, drop=drop, symbolic=symbolic)
    chosen = _choose(contenders, prepared.task)
    chosen_metric = choose_metric(prepared.task, metric)
    splits = make_splits(prepared.X, prepared.y, prepared.task, folds=folds, repeats=repeats, seed=seed, unseen=unseen)
    settings = _settings(
        prepared, splits, chosen_metric, table=name, target=target, folds=folds, repeats=repeats, unseen=unseen,
        seed=seed, jobs=jobs, time_limit=time_limit,
    )  # fmt: skip
    folder = _folder(out, name, resume)
    results = _start(folder, settings, resume)
    with Live(settings, quiet=quiet) as live:
        able = _able(chosen, results, live)
        Runner(prepared, splits, results, folder, live, time_limit, seed, jobs).run(able)
        results.settings["levels"] = column_levels(prepared, seed)
    results.save(folder)
    from tabsym.compare.report import write_report

    write_report(results, folder)
    ranking = pd.DataFrame(rank(results))
    failures = {n: e["error"] for n, e in results.contenders.items() if e["error"]}
    if not quiet:
        live.close_with(results, folder)
    return Comparison(ranking, failures, folder)


def _check_numbers(*, folds: int, repeats: int, jobs: int, time_limit: float | None) -> None:
    for argument, value, least in (("folds", folds, 2), ("repeats", repeats, 1), ("jobs", jobs, 1)):
        if value < least:
            raise ValueError(f"{argument}={value} is not possible; use at least {least}.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit={time_limit} is not possible; use a number of seconds above 0.")


def _source(table: Any, target: str | None) -> tuple[str, Any, str]:
    if table is None:
        from tabsym.datasets import make_retail

        return "retail", make_retail(), target or "sales"
    name = Path(table).stem if isinstance(table, (str, Path)) else "table"
    if target is None:
        raise ValueError("Say which column to predict: target='NAME' (--target NAME).")
    return name, table, target


def _choose(names: list[str] | None, task: str) -> list[Contender]:
    known = all_contenders()
    for name in names or []:
        if name not in known:
            raise ValueError(f"There is no contender {name!r}; there are {', '.join(known)}.")
    return [c for c in known.values() if task in c.tasks and (names is None or c.name in names)]


def _settings(
    prepared: Prepared,
    splits: Sequence[Split],
    metric: Metric,
    *,
    table: str,
    target: str,
    folds: int,
    repeats: int,
    unseen: str | None,
    seed: int,
    jobs: int,
    time_limit: float | None,
) -> dict[str, Any]:
    """What was asked for and what it rests on, as it is written down."""
    options = {
        "table": table,
        "target": target,
        "metric": metric.name,
        "larger_is_better": metric.larger_is_better,
        "folds": folds,
        "repeats": repeats,
        "n_splits": len(splits),
        "test_share": float(np.mean([len(test) / (len(train) + len(test)) for train, test in splits])),
        "unseen": unseen,
        "seed": seed,
        "jobs": jobs,
        "time_limit": time_limit,
    }
    return options | facts_of(prepared)


def _able(chosen: list[Contender], results: Results, live: Live) -> list[Contender]:
    """The contenders whose libraries are installed; the others fail, with what to install."""
    able = []
    for contender in chosen:
        remedy = contender.missing()
        if remedy:
            results.fail(contender.name, contender.label, remedy)
            live.note(remedy)
        else:
            able.append(contender)
    return able


def _folder(out: str | Path | None, name: str, resume: bool) -> Path:
    if out is not None:
        folder = Path(out)
        if (folder / "results.json").exists() and not resume:
            raise ValueError(f"{folder} holds results already; use resume (--resume) to go on, or another folder.")
    else:
        folder = Path(f"tabsym-compare-{name}")
        number = 1
        while (folder / "results.json").exists() and not resume:
            number += 1
            folder = Path(f"tabsym-compare-{name}-{number}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _start(folder: Path, settings: dict[str, Any], resume: bool) -> Results:
    if not resume or not (folder / "results.json").exists():
        return Results(settings)
    old = load_results(folder)
    for key in ("target", "task", "folds", "repeats", "unseen", "seed", "data"):
        if old.settings[key] != settings[key]:
            what = f"{key}: {old.settings[key]!r}, now {settings[key]!r}"
            if key == "data":
                what = "the rows or columns differ"
            raise ValueError(
                f"The results in {folder} are of another comparison ({what}); use the same settings, or another folder."
            )
    for entry in old.contenders.values():
        entry["error"] = None  # tried again
    return Results(settings, old.contenders)
