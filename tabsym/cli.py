"""The command line: ``tabsym compare``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Warnings as sentences on standard error, without Python's lines around them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print(f"tabsym: {message}", file=sys.stderr)
        yield


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    with _warnings_in_a_line():  # the parser imports contenders, and with them kernels
        args = _parser().parse_args(arguments)
    try:
        from tabsym.compare.asked import check_extra

        check_extra()
    except ModuleNotFoundError as error:
        print(f'tabsym compare needs {error.name!r}: pip install "tabsym[compare]"', file=sys.stderr)
        return 2
    try:
        with _warnings_in_a_line():
            complete = _compare(vars(args))
    except BrokenPipeError:  # the reader went away, as `head` does
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 (Python flushes it at exit)
        return 1
    except (ValueError, TypeError, OSError) as error:
        print(f"tabsym: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        from tabsym.compare.processes import Terminated

        return 128 + (stop.number if isinstance(stop, Terminated) else signal.SIGINT)
    return 0 if complete else 1


def _compare(args: dict[str, Any]) -> bool:
    """Run the comparison of one table or several; whether every contender that was asked for did all folds."""
    from tabsym.compare import compare, compare_tables

    options = {name: value for name, value in args.items() if name not in ("command", "contender", "tables", "target")}
    options["contenders"] = _contenders(args["contenders"], args["contender"])
    tables, targets = args["tables"], args["target"] or []
    if len(tables) < 2:
        result = compare(*tables or [None], *_one(targets, "one table"), **options)
        return _all_ran(result, args["contenders"])
    if len(targets) == 1:
        targets = targets * len(tables)
    if len(targets) != len(tables):
        raise ValueError(f"{len(tables)} tables need one --target for all, or one each in order; not {len(targets)}.")
    if options.pop("save_best") is not None:
        raise ValueError("--save-best goes with one table.")
    options["out"] = options["out"] or "tabsym-compare-tables"
    results = compare_tables(list(zip(tables, targets, strict=True)), **options)
    return not results.failures and all(_all_ran(one, args["contenders"]) for one in results.tables.values())


def _all_ran(result: Any, named: list[str] | None) -> bool:
    """Whether all did all folds; one whose library is absent counts where it was named."""
    absent = set(result.not_installed) - set(named or [])
    ranked = set(result.ranking["name"]) - ({"constant"} if named != ["constant"] else set())
    return bool(ranked) and not set(result.failures) - absent


def _one(targets: list[str], what: str) -> list[str]:
    if len(targets) > 1:
        raise ValueError(f"{what} has one --target, not {len(targets)}.")
    return targets


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tabsym", description="Symbolic (categorical) columns, treated properly.")
    parser.add_argument("--version", action="version", version=f"tabsym {version('tabsym')}")
    commands = parser.add_subparsers(dest="command", required=True)
    c = commands.add_parser(
        "compare",
        help="compare treatments of categories on a table",
        description="Compare treatments of categories on a table, under the same folds, and say who wins. "
        "Without a table: an embedded one of retail sales.",
        epilog="Example: tabsym compare sales.csv --target price --contenders wide,lightgbm --folds 10",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    c.add_argument("tables", nargs="*", metavar="table", help="CSV, TSV, Parquet, Arrow, JSON or xlsx; one or several")
    c.add_argument(
        "--target", action="append", help="the column to predict; needed with a table; repeat it where tables differ"
    )
    tasks = ["binary", "multiclass", "regression", "count"]
    c.add_argument("--task", choices=tasks, help="guessed from the target, and said first, unless given")
    c.add_argument("--contenders", type=_names, help=f"names, separated by commas, of {_known()}")
    c.add_argument(
        "--contender",
        action="append",
        metavar="NAME=MODULE:FACTORY",
        help="one of your own: what makes the estimator, in a module that can be imported from here; may be repeated",
    )
    c.add_argument("--folds", type=int, default=5, help="parts of the rows, each tested once")
    c.add_argument("--repeats", type=int, default=1, help="times the rows are parted anew")
    metrics = "auc, log_loss, average_precision, brier, accuracy; rmse, mae, r2; poisson_deviance"
    c.add_argument("--metric", help=f"what ranks: {metrics}")
    c.add_argument("--groups", metavar="COLUMN", help="keep rows with the same value together; it is no feature then")
    c.add_argument("--time", metavar="COLUMN", help="train on what was before, test on what came next")
    c.add_argument("--fold-column", metavar="COLUMN", help="which fold each row is tested in")
    c.add_argument("--unseen", metavar="COLUMN", help="hold out whole symbols of this column")
    c.add_argument("--weight", metavar="COLUMN", help="sample weights, in training and in the scores")
    c.add_argument("--exposure", metavar="COLUMN", help="of counts: what they are to be divided by")
    c.add_argument("--offset", metavar="COLUMN", help="added to predicted amounts, or to the logarithm of counts")
    c.add_argument(
        "--tune", metavar="N|SECONDSs", help="choose settings inside every fold: so many, or so many seconds, as in 60s"
    )
    c.add_argument("--drop", type=_names, help="columns to leave out, separated by commas")
    c.add_argument("--numeric", type=_names, help="text columns to read as numbers, however they are written")
    c.add_argument("--categorical", type=_names, help="columns of numbers to take as categories: codes and ids")
    c.add_argument("--na-values", type=_names, metavar="CELLS", help="cells that mean missing: ?,-200 or COLUMN=-200")
    c.add_argument("--decimal", metavar="SIGN", help="of numbers in text: . or , (found by column)")
    c.add_argument("--thousands", metavar="SIGN", help="between groups of digits in text (found by column)")
    c.add_argument("--sep", help="between the fields of a text file, such as ';' or tab (found)")
    c.add_argument("--encoding", help="of a text file, such as cp1252 (found)")
    c.add_argument("--dayfirst", action=argparse.BooleanOptionalAction, help="03/04 is the third of April (found)")
    c.add_argument("--time-limit", type=float, metavar="SECONDS", help="for one contender, all folds together")
    c.add_argument("--seed", type=int, default=0, help="of the folds and the contenders")
    c.add_argument("--jobs", type=int, default=1, help="contenders at a time; above 1, times compare less well")
    c.add_argument("--threads", type=int, help="of each contender; OMP_NUM_THREADS if set, else processors / jobs")
    c.add_argument("--out", metavar="DIR", help="a new folder tabsym-compare-NAME, unless given")
    c.add_argument("--resume", action="store_true", help="go on with the results in the folder that --out names")
    c.add_argument("--save-best", metavar="FILE", help="write the best contender, trained on all rows, to FILE.skops")
    c.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser


def _known() -> str:
    try:
        from tabsym.compare.contenders import all_contenders
    except ModuleNotFoundError:
        return 'those that pip install "tabsym[compare]" brings'
    return ", ".join(all_contenders())


def _contenders(names: list[str] | None, own: list[str] | None) -> dict[str, str | None] | list[str] | None:
    """Those named, and the user's own by address."""
    if not own:
        return names
    chosen: dict[str, str | None] = dict.fromkeys(names or ["all"])
    for text in own:
        name, separator, address = text.partition("=")
        if not separator or not name or not address:
            raise ValueError(f"--contender {text!r} is not NAME=package.module:factory; write it so.")
        chosen[name] = address
    return chosen


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
