"""Several tables in one call: a comparison of each, and how the contenders rank over all of them.

Ranks are averaged over tables (ties share theirs; one that failed on a table is last there). Whether contenders differ
at all is Friedman's test; two of them differ if their mean ranks are further apart than Nemenyi's critical difference
(Demšar 2006). With few tables that difference is large: then little can be said over tables, whatever is said of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from scipy import stats

from tabsym.compare.comparison import Comparison
from tabsym.compare.ranking import ALPHA
from tabsym.compare.run import compare
from tabsym.plots.style import BLUE, PALE, SCHEME, dressed, new_figure, plain, svg

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
    >>> from tabsym import datasets
    >>> from tabsym.compare import compare_tables
    >>> sales = datasets.make_retail(900)
    >>> tables = {"first": (sales.head(300), "sales"), "second": (sales.tail(300), "sales")}
    >>> result = compare_tables(tables, contenders=["wide", "onehot-linear"], folds=2,
    ...                         out=getfixture("tmp_path") / "all", quiet=True)
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
    sentences = summary(ranks, critical, p, failures)
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
    """Nemenyi's: mean ranks of two of n contenders over so many tables differ by more, by chance, in 5 % of cases."""
    if n_contenders < 2:
        return 0.0
    q = float(stats.studentized_range.ppf(1 - ALPHA, n_contenders, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(n_contenders * (n_contenders + 1) / (6 * n_tables)))


def friedman(ranks: pd.DataFrame) -> float:
    """P of all contenders being equal; 1 where there are too few to tell, or all are equal in every table."""
    values = ranks.drop(columns="mean").to_numpy()
    if not _can_be_tested(ranks) or (values == values[:1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*values).pvalue)


def _can_be_tested(ranks: pd.DataFrame) -> bool:
    return len(ranks) >= _MIN_CONTENDERS and ranks.shape[1] - 1 >= _MIN_TABLES


def summary(ranks: pd.DataFrame, critical: float, p: float, failures: dict[str, str]) -> list[str]:
    """The conclusions over all tables."""
    n = ranks.shape[1] - 1
    best, mean = str(ranks.index[0]), float(ranks["mean"].iloc[0])
    out = [f"Over {n} tables {best} has the best mean rank ({mean:.2f} of {len(ranks)})."]
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
        links=[(name, quote(f"{name}/report.html")) for name in result.tables],
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
