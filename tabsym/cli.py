"""The command line: ``tabsym compare``."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.metadata import version
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    args = _parser().parse_args(arguments)
    try:
        from tabsym.compare import compare
    except ModuleNotFoundError as error:
        print(f'tabsym compare needs {error.name!r}: pip install "tabsym[compare]"', file=sys.stderr)
        return 2
    options = {name: value for name, value in vars(args).items() if name != "command"}
    try:
        comparison = compare(**options)
    except BrokenPipeError:  # the reader went away, as `head` does
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 (Python flushes it at exit)
        return 1
    except (ValueError, TypeError, OSError) as error:
        print(f"tabsym: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0 if len(comparison.ranking) else 1


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
    c.add_argument("table", nargs="?", help="CSV, TSV, Parquet, Arrow or JSON lines")
    c.add_argument("--target", help="the column to predict; needed with a table")
    c.add_argument("--task", choices=["binary", "multiclass", "regression"], help="found from the target, unless given")
    c.add_argument("--contenders", type=_names, help=f"names, separated by commas, of {_known()}")
    c.add_argument("--folds", type=int, default=5, help="parts of the rows, each tested once")
    c.add_argument("--repeats", type=int, default=1, help="times the rows are parted anew")
    c.add_argument("--metric", help="what ranks: auc, log_loss, average_precision, accuracy; rmse, mae, r2")
    c.add_argument("--unseen", metavar="COLUMN", help="hold out whole symbols of this column")
    c.add_argument("--drop", type=_names, help="columns to leave out, separated by commas")
    c.add_argument("--symbolic", type=_names, help="numeric columns to treat as symbols, separated by commas")
    c.add_argument("--time-limit", type=float, metavar="SECONDS", help="for one contender, all folds together")
    c.add_argument("--seed", type=int, default=0, help="of the folds and the contenders")
    c.add_argument("--jobs", type=int, default=1, help="contenders at a time; above 1, times compare less well")
    c.add_argument("--out", metavar="DIR", help="a new folder tabsym-compare-NAME, unless given")
    c.add_argument("--resume", action="store_true", help="go on with the results in the folder that --out names")
    c.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser


def _known() -> str:
    try:
        from tabsym.compare.contenders import all_contenders
    except ModuleNotFoundError:
        return 'those that pip install "tabsym[compare]" brings'
    return ", ".join(all_contenders())


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    sys.exit(main())
