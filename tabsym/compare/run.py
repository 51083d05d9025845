"""`compare`: a comparison from end to end, by the functions that follow it in their order.

The options are checked and the rows split (`_run_config`), the contenders run (`_run`), ranked and described
(`_concluded`), and the best one trained on all rows and written where `save_best` asks for it (`_train_best`).

`compare_tables`: a comparison of each of several tables, and how the contenders rank over all of them.

Ranks are averaged over tables (ties share theirs; one that failed on a table is last there). Whether contenders differ
at all is Friedman's test; two of them differ if their mean ranks are further apart than Nemenyi's critical difference
(Demšar 2006). With few tables that difference is large: then little is significant over tables, even if much is
significant in each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import quote as quote_for_url

import numpy as np
import pandas as pd
from scipy import stats

from tabsym.compare.column_gains import column_gains, column_levels, leak_sentences
from tabsym.compare.comparison import Comparison
from tabsym.compare.contenders import Contender, choose
from tabsym.compare.fitting import read_budget
from tabsym.compare.job import RunConfig
from tabsym.compare.live import Live
from tabsym.compare.machine import owned
from tabsym.compare.metrics import Metric, choose_metric, refuse_unscorable, try_metric
from tabsym.compare.ranking import ALPHA, complete, partial, rank
from tabsym.compare.results import Results, clustered_errors, mend, pairs_with
from tabsym.compare.settings import (
    begin,
    check_extra,
    check_lists,
    check_numbers,
    file_for_best,
    forget_changed,
    open_folder,
    reading_options,
    settings_of,
    source_of,
)
from tabsym.compare.splits import make_plan
from tabsym.compare.table.prepare import Prepared, RoleColumns, prepare
from tabsym.compare.text import in_one_line, listed, no_role_of_its_own, perhaps, summary
from tabsym.compare.workers import Runner
from tabsym.jit import compilation_notice
from tabsym.messages import plural, warn_user
from tabsym.plots.style import BLUE, PALE, SCHEME, dressed, new_figure, plain, svg

USUAL_FOLDS = 5
"""The default of `folds`, which `fold_column` replaces."""


def compare(
    table: Any = None,
    target: str | None = None,
    *,
    task: str | None = None,
    contenders: Any = None,
    folds: int = USUAL_FOLDS,
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
    sheet: str | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    max_rows: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    threads: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    save_best: str | Path | None = None,
    quiet: bool = False,
) -> Comparison:
    """Compare treatments of categories on a table, on the same folds.

    Parameters
    ----------
    table : dataframe or path, optional
        Any dataframe, lazy frame or Arrow dataset, a file: CSV, TSV, Parquet, Arrow, JSON (lines) or Excel, also packed
        as .gz, or a folder of Parquet; without one, the embedded table of retail sales.
    target : str
        The column to predict.
    task : {"binary", "multiclass", "regression", "count"}, optional
        Default: detected from the target; the first line of the output says which.
    contenders : list of str, or dict of name -> estimator, optional
        Names of built-in contenders; default: all whose libraries are installed. The values of a dict are estimators
        or pipelines of your own, ``(estimator, space)`` with a search space for `tune`, addresses
        ``"package.module:factory"``, or None for the built-in contender of that name (``"all": None`` for all).
        Your own estimators get the columns as they were read. The baseline always takes part.
    folds, repeats : int, default 5 and 1
        Folds of a cross-validation, and how often it is repeated with other folds. `fold_column` has its own number.
    metric : str or Metric, optional
        Ranking metric: auc (default for two classes), log_loss (default for more), average_precision, brier, accuracy;
        rmse (default for regression), mae, r2; poisson_deviance (default for counts); or your own.
    groups : str, optional
        Column of groups; all rows of a group are in the same fold. It is not used as a feature.
    time : str, optional
        Column of times: train on earlier rows and test on the next ones, `folds` times. It remains a feature unless
        `drop` names it, too, which keeps the order.
    fold_column : str, optional
        Column with the fold in which each row is tested.
    unseen : str, optional
        Column whose categories are held out whole, so that every test row has an unknown category.
    weight : str, optional
        Column of sample weights, for training (where `fit` takes weights) and for every score.
    exposure : str, optional
        Column of exposures, for counts: the predicted rate is per unit of exposure.
    offset : str, optional
        Column that is added to the prediction of a continuous target, or to the logarithm of a predicted count.
    tune : int or str, optional
        Budget for tuning inside every fold, the same for every contender: a number of settings, or seconds as in
        "60s". Default: no tuning.
    drop : list of str, optional
        Columns to leave out.
    numeric : list of str, optional
        Text columns to read as numbers; other cells become missing, and their number is reported.
    categorical : list of str, optional
        Columns of numbers to read as categories, such as codes and ids.
    na_values : list of str, or dict of column -> list of str, optional
        Values that mean missing, besides empty cells; in a list, ``"COLUMN=VALUE"`` is for one column.
    decimal, thousands : str, optional
        Separators of numbers in text columns; default: detected by column.
    sep, encoding : str, optional
        Field separator and encoding of a text file; default: detected.
    dayfirst : bool, optional
        Whether 03/04 is the third of April; default: detected by column.
    sheet : str, optional
        The sheet of a workbook; default: the first that has rows.
    time_limit : float, optional
        Seconds for one contender, all folds together; a contender that is stopped keeps its folds, but is not ranked.
    memory_limit : float, optional
        Gigabytes that the process of a contender may take (Linux); one that needs more fails, and the others go on.
    max_rows : int, optional
        Of a larger table a sample of this size, stratified by the target, is compared, and trains the winner unless
        that is the plain wide model, which is trained on all rows.
        Default: all; of Parquet, folders of it, Arrow datasets and lazy frames (polars, DuckDB) as many as fit into
        memory, where the first line of the output says so.
    seed : int, default 0
        Seed of the folds, of the contenders, and of the rows of a sample.
    jobs : int, default 1
        Contenders that run at a time; with more than one, times are less comparable.
    threads : int, optional
        Threads of each contender; default: OMP_NUM_THREADS if it is set, else the processors divided by `jobs`.
    out : path, optional
        Folder for the results; default: a new folder ``tabsym-compare-NAME``.
    resume : bool, default False
        Continue the comparison whose results are in `out`.
    save_best : path, optional
        Write the best contender, trained on all rows, to this file; a name without an ending gets ``.skops``.
    quiet : bool, default False
        Print nothing.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        An option or the table is not valid; the message names the column or option and the remedy.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from tabsym import compare, datasets
    >>> sales = datasets.make_retail(2000)
    >>> result = compare(sales, "sales", contenders=["constant", "wide"], folds=2, out=f"{mkdtemp()}/out", quiet=True)
    >>> result.ranking["name"].tolist()
    ['wide', 'constant']
    >>> result.best.predict(sales.head(3)).shape
    (3,)
    """
    check_extra()
    compilation_notice.is_due = False  # the live table shows that something goes on
    check_numbers(
        folds=folds, repeats=repeats, jobs=jobs, threads=threads, seed=seed, time_limit=time_limit, max_rows=max_rows,
        memory_limit=memory_limit,
    )  # fmt: skip
    check_lists(drop=drop)
    reading = reading_options(
        numeric=numeric, categorical=categorical, na_values=na_values, decimal=decimal, thousands=thousands, sep=sep,
        encoding=encoding, dayfirst=dayfirst, sheet=sheet,
    )  # fmt: skip
    if resume and out is None:  # of the folders that were made without a name, which is meant is not known
        raise ValueError("resume needs the folder of the results: add out='FOLDER' (--out FOLDER).")
    read_budget(tune)
    best_file = None if save_best is None else file_for_best(save_best)
    name, table, target = source_of(table, target)
    roles = RoleColumns(weight, exposure, offset, groups, fold_column)
    prepared = prepare(
        table, target, task=task, drop=drop, reading=reading, roles=roles, time=time, max_rows=max_rows, seed=seed
    )
    chosen = choose(contenders, prepared.task, unseen=unseen is not None)
    _check_roles(chosen, prepared, seed)
    split = {
        "folds": folds, "repeats": repeats, "groups": groups, "time": time, "fold_column": fold_column,
        "unseen": unseen,
    }  # fmt: skip
    config = _run_config(prepared, metric, split, time_limit, tune, seed, jobs, threads, memory_limit)
    settings = settings_of(config, name)
    folder = open_folder(out, name, resume)
    with owned(folder), Live(settings, quiet=quiet) as live:
        results = _run(config, chosen, folder, live, settings, resume=resume)
        ranking, sentences = _concluded(config, results, folder, live)
    failures = {name: entry["error"] for name, entry in results.contenders.items() if entry["error"]}
    ranked = pd.DataFrame(ranking, columns=None if ranking else ["name", "label", "score"])
    by_name = {contender.name: contender for contender in chosen}
    comparison = Comparison(ranked, sentences, failures, folder, config.metric.larger_is_better, config, by_name)
    if not quiet:
        live.close_with(results, ranking, sentences, folder)
    if best_file is not None and ranking:
        _train_best(comparison, best_file, results, ranking, quiet=quiet)
    return comparison


def _run_config(
    prepared: Prepared, metric: str | Metric | None, split: dict[str, Any], time_limit: float | None,
    tune: int | str | None, seed: int, jobs: int, threads: int | None, memory_limit: float | None,
) -> RunConfig:  # fmt: skip
    """The metric, the folds and what else is the same for all contenders."""
    ranked_by = choose_metric(prepared.task, metric)
    if isinstance(metric, Metric):
        try_metric(ranked_by, prepared.y, len(prepared.classes), prepared.weight)
    _check_split(prepared, split)
    frame = prepared.frame
    if split["unseen"] is not None and split["unseen"] in prepared.X.columns:
        frame = frame.assign(**{split["unseen"]: prepared.X[split["unseen"]].to_numpy()})
    plan = make_plan(frame, seed=seed, dayfirst=prepared.features.dayfirst, notes=prepared.notes, **split)
    if plan.how == "column" and split["folds"] not in (USUAL_FOLDS, plan.folds):
        raise ValueError(
            f"folds={split['folds']} has no effect with fold_column={plan.column!r}, which has {plan.folds} folds; "
            "leave one of them out."
        )
    splits = plan.splits(prepared.y, prepared.task, prepared.classes)
    refuse_unscorable(prepared, plan, splits, ranked_by)
    return RunConfig(
        prepared, plan, splits, ranked_by, time_limit, None if tune is None else str(tune), seed, jobs, threads,
        memory_limit,
    )  # fmt: skip


def _check_roles(chosen: list[Contender], prepared: Prepared, seed: int) -> None:
    """A `ValueError` where an estimator names an exposure or offset column that is no feature.

    Estimators at an address are made in their own process, and fail there.
    """
    for contender in chosen:
        if not contender.raw or contender.address is not None:
            continue
        try:
            params = contender.estimator(prepared.task, seed, 1, None).get_params()
        except Exception:  # of an estimator of the user's own, which then fails in its own process
            continue
        for name, value in params.items():
            option = name.rpartition("__")[2]
            if option not in ("exposure_column", "offset_column") or not isinstance(value, str):
                continue
            if value in prepared.frame.columns and value not in prepared.raw.columns:
                raise ValueError(
                    f"Contender {contender.name!r} has {option}={value!r}, which is no feature of the comparison; "
                    f"{no_role_of_its_own(option.removesuffix('_column'), repr(value))}."
                )


def _check_split(prepared: Prepared, split: dict[str, Any]) -> None:
    """A `ValueError` where the rows cannot be split by a column that was named for it."""
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
            f"Column {split['unseen']!r} is not a feature, as it is dropped or has another role, so that its "
            "categories cannot be held out; keep it as a feature, or name another unseen column."
        )
    if split["unseen"] in prepared.features.parts:
        name = split["unseen"]
        raise ValueError(
            f"Column {name!r} is read as dates; to hold its categories out, read it as categories: "
            f"categorical=[{name!r}] (--categorical {quote(name)})."
        )


def _run(
    config: RunConfig, chosen: list[Contender], folder: Path, live: Live, settings: dict[str, Any], *, resume: bool
) -> Results:
    """The results of all contenders; with `resume` added to those in the folder.

    Those whose libraries are not installed fail, with what to install.
    """
    results = begin(folder, settings, resume)
    if resume and not results.contenders:
        live.note(f"There are no results in {folder} to continue; all contenders are run.")
    for damaged in mend(results, folder, config) if resume else []:
        live.note(damaged)
    for changed in forget_changed(results, chosen):
        live.note(changed)
    able = []
    for contender in chosen:
        remedy = contender.missing()
        if remedy:
            results.fail(contender.name, contender.label, remedy)
            live.note(remedy)
        else:
            able.append(contender)
    Runner(config, results, folder, live).run(able)
    return results


def _concluded(config: RunConfig, results: Results, folder: Path, live: Live) -> tuple[list[dict[str, Any]], list[str]]:
    """The ranking and the summary, written before the gains of single columns are computed, and with them."""
    settings = results.settings
    ranking = _ranking(config, results, folder)
    failed = [(e["label"], e["error"]) for e in results.contenders.values() if e["error"] and not e["folds"]]
    sentences = summary(ranking, partial(settings, results.contenders), settings, failed)
    settings["summary"] = sentences
    drawn: dict[str, Any] = {}
    _write(results, ranking, sentences, folder, config, drawn)
    live.note("computing the gain of each column alone, for the report and to detect leaks (at most two minutes)")
    prepared = config.prepared
    settings["levels"] = _or_note(
        live, prepared, "the Levels of the columns", lambda: column_levels(prepared, config.seed)
    )
    settings["column_gains"] = _or_note(
        live, prepared, "the gains of single columns",
        lambda: column_gains(prepared, config.splits, config.metric, ranking, folder, config.seed),
    )  # fmt: skip
    sentences = [*sentences, *leak_sentences(settings["column_gains"], ranking)]
    settings["summary"] = sentences
    _write(results, ranking, sentences, folder, config, drawn)
    return ranking, sentences


def _ranking(config: RunConfig, results: Results, folder: Path) -> list[dict[str, Any]]:
    """The ranking with the significance of differences."""
    names = complete(results.settings, results.contenders)
    pairs, clusters = {}, config.plan.clusters
    if len(names) > 1:
        pairs = pairs_with(names[0], names[1:], config.prepared, config.splits, config.metric, folder, clusters)
    ranking = rank(results.settings, results.contenders, pairs)
    if clusters is not None:
        errors = clustered_errors(names, config.prepared, config.splits, config.metric, folder, clusters)
        for row in ranking:
            row["clustered_error"] = errors.get(row["name"])
    return ranking


def _or_note(
    live: Live, prepared: Prepared, what: str, compute: Callable[[], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """What is computed of the columns; where that fails, a note, so that results are not lost."""
    try:
        return compute()
    except Exception as error:
        why = f"The report leaves out {what}: {in_one_line(error)}"
        prepared.notes.append(why)  # which the settings hold, too
        live.note(why)
        return []


def _write(
    results: Results, ranking: list[dict[str, Any]], sentences: list[str], folder: Path, config: RunConfig,
    drawn: dict[str, Any],
) -> None:  # fmt: skip
    """The files, first without the columns' Levels and then with them."""
    from tabsym.compare.report import write_report

    results.save(folder, ranking)
    write_report(results, ranking, sentences, folder, config.prepared, config.splits, config.plan.clusters, drawn)


def _train_best(
    comparison: Comparison, path: Path, results: Results, ranking: list[dict[str, Any]], *, quiet: bool
) -> None:
    """Train the best contender on all rows and write it; of a sample the summary then says on which rows it was.

    Where it cannot be trained or written, a warning: what was compared is not to be lost.
    """
    try:
        comparison.best.save(path)
    except (ValueError, ModuleNotFoundError) as error:
        warn_user(f"The best contender was not saved: {error}")
        return
    except OSError as error:
        warn_user(
            f"The best contender could not be written to {path} ({error}); call best.save(path) on the comparison to "
            "write it."
        )
        return
    vars(comparison)["best_file"] = path
    best, config, sentences = comparison.best, comparison._run_config, comparison.summary
    if not quiet:
        print(f"{best.label}, trained on {best.trained_on}: {path}")
    if config.prepared.whole is not None:
        sentences.append(f"The winner, {best.label}, was trained on {best.trained_on}.")
        results.settings["summary"] = sentences
        with owned(comparison.folder):
            _write(results, ranking, sentences, comparison.folder, config, {})


# -- several tables in one call --------------------------------------------------------------------

_TEMPLATE = Path(__file__).with_name("summary.html.jinja")
_MIN_CONTENDERS, _MIN_TABLES = 3, 2  # of Friedman's test


@dataclass(frozen=True)
class Comparisons:
    """The comparisons of several tables, and the ranks of the contenders over all of them.

    Attributes
    ----------
    tables : dict of str -> Comparison
    ranks : pandas.DataFrame
        Contenders (rows, best mean rank first) by tables, with the mean in the column ``mean``.
    critical_difference : float
        Mean ranks further apart than this differ significantly (Nemenyi, 5 %).
    p : float
        P-value of Friedman's test that all are equal; 1 with fewer than three contenders or two tables.
    summary : list of str
        The conclusions over all tables, in sentences.
    failures : dict of str -> str
        Tables that could not be compared, and why.
    folder : Path
        Where summary.html, summary.csv and a folder for each table are.
    """

    tables: dict[str, Comparison]
    ranks: pd.DataFrame
    critical_difference: float
    p: float
    summary: list[str]
    failures: dict[str, str]
    folder: Path


def compare_tables(
    tables: Mapping[str, tuple[Any, str]] | Sequence[tuple[Any, str]],
    *,
    out: str | Path = "tabsym-compare-tables",
    quiet: bool = False,
    **options: Any,
) -> Comparisons:
    """Compare treatments of categories on several tables, and rank the contenders over all of them.

    Parameters
    ----------
    tables : dict of name -> (table, target), or list of (path, target)
    out : path
        Folder for the results, each table's in a folder of its name.
    quiet : bool, default False
    **options
        Those of `compare`, the same for every table.

    Returns
    -------
    Comparisons

    Raises
    ------
    ValueError
        There are fewer than two tables, two have the same name, or none could be compared.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from tabsym import datasets
    >>> from tabsym.compare import compare_tables
    >>> sales = datasets.make_retail(900)
    >>> tables = {"first": (sales.head(300), "sales"), "second": (sales.tail(300), "sales")}
    >>> folder = f"{mkdtemp()}/all"
    >>> result = compare_tables(tables, contenders=["wide", "onehot-linear"], folds=2, out=folder, quiet=True)
    >>> result.ranks.shape
    (3, 3)
    """
    named = _named(tables)
    folder = Path(out)
    done: dict[str, Comparison] = {}
    failures: dict[str, str] = {}
    for name, (table, target) in named.items():
        try:
            done[name] = compare(table, target, out=folder / name, quiet=quiet, **options)
        except KeyboardInterrupt:
            if not quiet:
                print(f"To continue with all tables, repeat the command with --resume --out {folder}.")
            raise
        except (ValueError, TypeError, OSError) as error:  # the other tables go on
            failures[name] = str(error)
            if not quiet:
                print(f"{name}: {error}")
    if not done:
        raise ValueError("No table could be compared: " + "; ".join(f"{n}: {why}" for n, why in failures.items()))
    ranks = rank_tables(done)
    critical, p = critical_difference(len(ranks), len(done)), friedman(ranks)
    sentences = summary_of_tables(ranks, critical, p, failures)
    unfinished = []
    for label in ranks.index:
        missed = [table for table, comparison in done.items() if label not in set(comparison.ranking["label"])]
        unfinished += [f"{label} ({', '.join(missed)})"] if missed else []
    if unfinished:
        sentences.append(f"Failed or stopped, and ranked last there: {'; '.join(unfinished)}.")
    result = Comparisons(done, ranks, critical, p, sentences, failures, folder)
    write_summary(result)
    if not quiet:
        print(f"\n{ranks.round(2).to_string()}\n\n" + "\n".join(sentences) + f"\n\nSummary: {folder}/summary.html")
    return result


def rank_tables(done: dict[str, Comparison]) -> pd.DataFrame:
    """Ranks of the contenders that took part in every table, best mean first."""
    took_part = [set(comparison.ranking["name"]) | set(comparison.failures) for comparison in done.values()]
    everywhere = sorted(set.intersection(*took_part))
    labels: dict[str, str] = {}
    columns = {}
    for table, comparison in done.items():
        position = {row["name"]: row["score"] for row in comparison.ranking.to_dict("records")}
        labels |= dict(zip(comparison.ranking["name"], comparison.ranking["label"], strict=True))
        sign = -1.0 if comparison.larger_is_better else 1.0
        columns[table] = stats.rankdata([sign * position[name] if name in position else np.inf for name in everywhere])
    ranks = pd.DataFrame(columns, index=pd.Index([labels.get(name, name) for name in everywhere], name="contender"))
    ranks["mean"] = ranks.mean(axis=1)
    return ranks.sort_values("mean", kind="stable")


def critical_difference(n_contenders: int, n_tables: int) -> float:
    """Nemenyi's: by chance, mean ranks of two of n contenders over `n_tables` differ by more in 5 % of cases."""
    if n_contenders < 2:
        return 0.0
    q = float(stats.studentized_range.ppf(1 - ALPHA, n_contenders, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(n_contenders * (n_contenders + 1) / (6 * n_tables)))


def friedman(ranks: pd.DataFrame) -> float:
    """P of all contenders being equal; 1 where there are too few to test, or all are equal in every table."""
    values = ranks.drop(columns="mean").to_numpy()
    if not _can_be_tested(ranks) or (values == values[:1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*values).pvalue)


def _can_be_tested(ranks: pd.DataFrame) -> bool:
    return len(ranks) >= _MIN_CONTENDERS and ranks.shape[1] - 1 >= _MIN_TABLES


def summary_of_tables(ranks: pd.DataFrame, critical: float, p: float, failures: dict[str, str]) -> list[str]:
    """The conclusions over all tables."""
    n = ranks.shape[1] - 1
    best, mean = str(ranks.index[0]), float(ranks["mean"].iloc[0])
    out = [f"Over {plural(n, 'table')} {best} has the best mean rank ({mean:.2f} of {len(ranks)})."]
    if not _can_be_tested(ranks):
        out.append(
            f"Differences between contenders were not tested: Friedman's test needs {_MIN_CONTENDERS} contenders "
            f"and {_MIN_TABLES} tables; there are {len(ranks)} and {n}."
        )
    elif p >= ALPHA:
        out.append(f"No significant difference between contenders over {n} tables (Friedman, p = {p:.2f}).")
    else:
        worse = [str(name) for name, rank in ranks["mean"].items() if rank - mean > critical]
        near = [str(name) for name in ranks.index[1:] if str(name) not in worse]
        out.append(f"Mean ranks that differ by more than {critical:.2f} differ significantly (Nemenyi, 5 %).")
        if worse:
            out.append(f"Significantly worse than {best}: {'; '.join(worse)}.")
        if near:
            out.append(f"No significant difference to {best}: {'; '.join(near)}.")
    if failures:
        out.append("Not compared: " + "; ".join(f"{name} ({why})" for name, why in failures.items()) + ".")
    return out


def _named(tables: Mapping[str, tuple[Any, str]] | Sequence[tuple[Any, str]]) -> dict[str, tuple[Any, str]]:
    if not isinstance(tables, Mapping):
        names = [Path(path).stem for path, _ in tables]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"Two tables are named {name!r}; pass a dict with another name for one of them.")
        tables = dict(zip(names, tables, strict=True))
    if len(tables) < 2:
        raise ValueError("compare_tables needs two tables or more; use compare for one.")
    for name in tables:
        if not isinstance(name, str):
            raise TypeError(f"The table's name {name!r} must be text, as its results are in a folder of that name.")
        if name in ("", ".", "..") or set(name) & set("/\\\0") or len(name.encode(errors="replace")) > 255:
            raise ValueError(
                f"The table's name {name[:40]!r} cannot be that of a folder in out; use a short one without / and \\."
            )
    return dict(tables)


def write_summary(result: Comparisons) -> Path:
    """Write the ranks and a page of them into the folder; names from data are escaped."""
    from jinja2 import Environment

    result.folder.mkdir(parents=True, exist_ok=True)
    result.ranks.to_csv(result.folder / "summary.csv")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        n_tables=len(result.tables),
        scheme=SCHEME,
        summary=result.summary,
        plot=svg(ranks_figure(result.ranks["mean"], result.critical_difference)),
        tables=list(result.tables),
        rows=[_row(result, label) for label in result.ranks.index],
        links=[(name, quote_for_url(f"{name}/report.html")) for name in result.tables],
    )
    path = result.folder / "summary.html"
    path.write_text(page, encoding="utf-8")
    return path


def ranks_figure(means: pd.Series, critical: float) -> Any:
    """Mean ranks, best first, with the critical difference from the best on, as a figure of matplotlib."""
    figure = new_figure(8.4, 0.35 * len(means) + 1.2)
    axes = dressed(figure.subplots())
    positions = range(len(means))
    best = float(means.iloc[0])
    axes.axvspan(best, best + critical, color=PALE, zorder=1)
    axes.plot(means.to_numpy(), positions, "o", color=BLUE, zorder=3)
    axes.set_yticks(positions, [plain(str(name)) for name in means.index])
    axes.invert_yaxis()
    axes.set_xlim(0.5, len(means) + 0.5)
    axes.set_xlabel("mean rank over tables (better to the left; the band: the critical difference)")
    return figure


def _row(result: Comparisons, label: str) -> list[Any]:
    ranks: dict[str, float] = result.ranks.loc[label].to_dict()  # type: ignore[assignment]
    cells: list[Any] = [label, f"{ranks['mean']:.2f}"]
    for name, comparison in result.tables.items():
        row = comparison.ranking[comparison.ranking["label"] == label]
        score = f"{row['score'].iloc[0]:.5g}" if len(row) else "failed"
        cells.append(f"{ranks[name]:g} ({score})")
    return cells
