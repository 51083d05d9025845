"""A comparison from end to end: settings checked, contenders run, results ranked and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from tabsym.compare.asked import (
    check_extra,
    check_lists,
    check_numbers,
    check_resume,
    file_for_best,
    reading_options,
    source_of,
)
from tabsym.compare.comparison import Comparison
from tabsym.compare.contenders import Contender
from tabsym.compare.levels import column_levels
from tabsym.compare.live import Live
from tabsym.compare.lock import owned
from tabsym.compare.mend import mend
from tabsym.compare.metrics import Metric, choose_metric, try_metric
from tabsym.compare.own import choose
from tabsym.compare.prepare import Columns, Prepared, prepare
from tabsym.compare.processes import Course, Runner
from tabsym.compare.ranking import complete, partial, rank
from tabsym.compare.results import Results
from tabsym.compare.rows import pairs_with, unit_errors
from tabsym.compare.scores import refuse_unscorable
from tabsym.compare.settings import begin, forget_changed, open_folder, settings_of
from tabsym.compare.single import column_gains, leak_sentences
from tabsym.compare.splits import make_plan
from tabsym.compare.tuning import read_budget
from tabsym.compare.words import in_one_line, listed, perhaps, summary
from tabsym.warn import warn_user


def compare(
    table: Any = None,
    target: str | None = None,
    *,
    task: str | None = None,
    contenders: Any = None,
    folds: int = 5,
    repeats: int = 1,
    metric: str | Metric | None = None,
    groups: str | None = None,
    time: str | None = None,
    fold_column: str | None = None,
    unseen: str | None = None,
    weight: str | None = None,
    exposure: str | None = None,
    offset: str | None = None,
    tune: int | str | None = None,
    drop: list[str] | None = None,
    numeric: list[str] | None = None,
    categorical: list[str] | None = None,
    na_values: Any = None,
    decimal: str | None = None,
    thousands: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    dayfirst: bool | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    threads: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    save_best: str | Path | None = None,
    quiet: bool = False,
) -> Comparison:
    """Compare treatments of categories on a table, under the same folds.

    Parameters
    ----------
    table : dataframe or path, optional
        Any dataframe, or a file: CSV, TSV, Parquet, Arrow, JSON (lines) or Excel, also packed as .gz; without one,
        the embedded table of retail sales.
    target : str
        The column to predict.
    task : {"binary", "multiclass", "regression", "count"}, optional
        Guessed from the target where it is not given; the guess is the first thing said.
    contenders : list of str, or dict of name -> estimator, optional
        Names of those that take part; default: all whose libraries are installed. In a dict a name stands for an
        estimator or pipeline of your own, ``(estimator, space)`` with where to tune it, an address
        ``"package.module:factory"``, or, with None, for the contender of that name; "all" for all. Your own get the
        columns as they are in the table. The constant always takes part.
    folds, repeats : int, default 5 and 1
    metric : str or Metric, optional
        What ranks: auc (default for two classes), log_loss (for more), average_precision, brier,
        accuracy; rmse (default for regression), mae, r2; poisson_deviance (default for counts); or your own.
    groups : str, optional
        Keep all rows with the same value of this column together; it is no feature then.
    time : str, optional
        Train on what was before in this column and test on what came next, `folds` times.
    fold_column : str, optional
        A column that says which fold a row is tested in.
    unseen : str, optional
        Hold out whole symbols of this column, so that every test row has an unseen one.
    weight : str, optional
        Column of sample weights, in training as far as a contender takes them, and in every score.
    exposure : str, optional
        Of counts: the column of what they are to be divided by.
    offset : str, optional
        Column that is added to the prediction as it is: of amounts; of counts to their logarithm.
    tune : int or str, optional
        Budget for choosing settings inside every fold, the same for every contender: so many settings, or seconds
        as in "60s". Default: everybody runs at its defaults.
    drop : list of str, optional
        Columns to leave out.
    numeric : list of str, optional
        Text columns to read as numbers, however they are written; what is no number is missing, and this is reported.
    categorical : list of str, optional
        Columns to take as categories although they hold numbers: codes and ids.
    na_values : list of str, or dict of column -> list of str, optional
        Cells that mean missing, besides empty ones; in a list ``"COLUMN=CELL"`` is for one column.
    decimal, thousands : str, optional
        How numbers in text columns are written; found by column where it is not given.
    sep, encoding : str, optional
        Of a text file; found where they are not given.
    dayfirst : bool, optional
        Whether 03/04 is the third of April; found by column where it is not given.
    time_limit : float, optional
        Seconds for one contender, all folds together; what was done by then is kept, but not ranked.
    seed : int, default 0
    jobs : int, default 1
        Contenders at a time; more than one makes times less comparable.
    threads : int, optional
        Of each contender; default: OMP_NUM_THREADS where it is set, else the processors divided by `jobs`.
    out : path, optional
        Folder for the results; default: a new folder ``tabsym-compare-NAME``.
    resume : bool, default False
        Go on with the results in `out`.
    save_best : path, optional
        Write the best contender, trained on all rows, to this file; a name without an ending gets ``.skops``.
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
    >>> result.best.predict(sales.head(3)).shape
    (3,)
    """
    check_extra()
    check_numbers(folds=folds, repeats=repeats, jobs=jobs, threads=threads, seed=seed, time_limit=time_limit)
    check_lists(drop=drop)
    reading = reading_options(
        numeric=numeric, categorical=categorical, na_values=na_values, decimal=decimal, thousands=thousands, sep=sep,
        encoding=encoding, dayfirst=dayfirst,
    )  # fmt: skip
    check_resume(out, resume)
    read_budget(tune)
    best_file = None if save_best is None else file_for_best(save_best)
    name, table, target = source_of(table, target)
    roles = Columns(weight, exposure, offset, groups, fold_column)
    prepared = prepare(table, target, task=task, drop=drop, reading=reading, roles=roles)
    chosen = choose(contenders, prepared.task, unseen=unseen is not None)
    ranked_by = choose_metric(prepared.task, metric)
    if isinstance(metric, Metric):
        try_metric(ranked_by, prepared.y, len(prepared.classes), prepared.weight)
    course = _course(prepared, ranked_by, {"folds": folds, "repeats": repeats, "groups": groups, "time": time,
                     "fold_column": fold_column, "unseen": unseen}, time_limit, tune, seed, jobs, threads)  # fmt: skip
    settings = settings_of(course, name)
    folder = open_folder(out, name, resume)
    with owned(folder), Live(settings, quiet=quiet) as live:
        results = begin(folder, settings, resume)
        if resume and not results.contenders:
            live.note(f"There are no results in {folder} to go on with; all contenders are run.")
        for damaged in mend(results, folder, course) if resume else []:
            live.note(damaged)
        for changed in forget_changed(results, chosen):
            live.note(changed)
        Runner(course, results, folder, live).run(_able(chosen, results, live))
        ranking = _judged(course, results, folder)
        finding = summary(ranking, partial(settings, results.contenders), settings, _failed(results))
        results.settings["finding"] = finding
        _write(results, ranking, finding, folder, course)
        live.note("the gain of each column alone, for the report and to find leaks: at most a minute or two")
        results.settings["levels"] = _levels(prepared, seed, live)
        results.settings["column_gains"] = _gains(course, ranking, folder, live)
        finding = [*finding, *leak_sentences(results.settings["column_gains"], ranking)]
        results.settings["finding"] = finding
        _write(results, ranking, finding, folder, course)
    failures = {n: e["error"] for n, e in results.contenders.items() if e["error"]}
    by_name = {one.name: one for one in chosen}
    larger = ranked_by.larger_is_better
    table_of = pd.DataFrame(ranking, columns=None if ranking else ["name", "label", "score"])
    comparison = Comparison(table_of, finding, failures, folder, larger, course, by_name)
    if not quiet:
        live.close_with(results, ranking, finding, folder)
    if best_file is not None and ranking:
        _save_best(comparison, best_file, quiet)
    return comparison


def _levels(prepared: Prepared, seed: int, live: Live) -> list[dict[str, Any]]:
    """What each column says; where that fails it is left out, and said in a note: results are not lost by it."""
    try:
        return column_levels(prepared, seed)
    except Exception as error:
        why = f"MODL's Level of the columns is left out: {in_one_line(error)}"
        prepared.notes.append(why)  # which the settings hold, too
        live.note(why)
        return []


def _gains(course: Course, ranking: list[dict[str, Any]], folder: Path, live: Live) -> list[dict[str, Any]]:
    """The fraction of the best's gain that each column reaches alone; where that fails, a note."""
    try:
        return column_gains(course.prepared, course.splits, course.metric, ranking, folder, course.seed)
    except Exception as error:
        why = f"Gains of single columns are left out: {in_one_line(error)}"
        course.prepared.notes.append(why)
        live.note(why)
        return []


def _write(results: Results, ranking: list[dict[str, Any]], finding: list[str], folder: Path, course: Course) -> None:
    """The files, first without the columns' Levels and then with them."""
    from tabsym.compare.report import write_report

    results.save(folder, ranking)
    write_report(results, ranking, finding, folder, course.prepared, course.splits, course.plan.clusters)


def _failed(results: Results) -> list[tuple[str, str]]:
    """Labels of those that did no fold, and why."""
    return [(e["label"], e["error"]) for e in results.contenders.values() if e["error"] and not e["folds"]]


def _save_best(comparison: Comparison, path: Path, quiet: bool) -> None:
    try:
        comparison.best.save(path)
    except (ValueError, ModuleNotFoundError) as error:  # what was compared is not to be lost
        warn_user(str(error))
        return
    except OSError as error:
        warn_user(f"The best contender could not be written to {path} ({error}); write it by comparison.best.save.")
        return
    if not quiet:
        print(f"{comparison.best.label}, trained on all rows: {path}")


def _course(
    prepared: Prepared, metric: Metric, split: dict[str, Any], time_limit: float | None, tune: int | str | None,
    seed: int, jobs: int, threads: int | None,
) -> Course:  # fmt: skip
    """The folds and what else is the same for all."""
    for column in ("time", "unseen"):
        if split[column] is not None and split[column] not in prepared.frame.columns:
            have = list(prepared.raw.columns)
            raise ValueError(
                f"There is no column {split[column]!r} to split by{perhaps(split[column], have)}; "
                f"there are {listed(have)}."
            )
        if split[column] == prepared.target.name:
            raise ValueError(
                f"{split[column]!r} is the target and cannot split the rows; name another {column} column."
            )
    if split["unseen"] is not None and split["unseen"] not in prepared.raw.columns:
        raise ValueError(
            f"Column {split['unseen']!r} is no feature, as it is dropped or has another part, so that its symbols "
            "cannot be held out; leave it in, or name another unseen column."
        )
    frame = prepared.frame
    if split["unseen"] is not None and split["unseen"] in prepared.X.columns:
        frame = frame.assign(**{split["unseen"]: prepared.X[split["unseen"]].to_numpy()})
    plan = make_plan(frame, seed=seed, **split)
    splits = plan.splits(prepared.y, prepared.task)
    refuse_unscorable(prepared, plan, splits, metric)
    return Course(
        prepared, plan, splits, metric, time_limit, None if tune is None else str(tune), seed, jobs, threads
    )  # fmt: skip


def _judged(course: Course, results: Results, folder: Path) -> list[dict[str, Any]]:
    """The ranking with verdicts."""
    names = complete(results.settings, results.contenders)
    pairs, clusters = {}, course.plan.clusters
    if len(names) > 1:
        pairs = pairs_with(names[0], names[1:], course.prepared, course.splits, course.metric, folder, clusters)
    ranking = rank(results.settings, results.contenders, pairs)
    if clusters is not None:
        errors = unit_errors(names, course.prepared, course.splits, course.metric, folder, clusters)
        for row in ranking:
            row["unit_error"] = errors.get(row["name"])
    return ranking


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
