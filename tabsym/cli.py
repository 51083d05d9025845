"""The command line: ``tabsym compare``."""

from __future__ import annotations

import argparse
import sys


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
    except (ValueError, TypeError, FileNotFoundError) as error:
        print(f"tabsym: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0 if len(comparison.ranking) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tabsym", description="Symbolic (categorical) columns, treated properly.")
    commands = parser.add_subparsers(dest="command", required=True)
    c = commands.add_parser(
        "compare",
        help="compare treatments of categories on a table",
        description="Compare treatments of categories on a table, under the same folds, and say who wins. "
        "Without a table: an embedded one of retail sales.",
    )
    c.add_argument("table", nargs="?", help="CSV, TSV, Parquet, Arrow or JSON lines")
    c.add_argument("--target", help="the column to predict")
    c.add_argument("--task", choices=["binary", "multiclass", "regression"], help="default: found from the target")
    c.add_argument("--contenders", type=_names, help="names, separated by commas; default: all")
    c.add_argument("--folds", type=int, default=5)
    c.add_argument("--repeats", type=int, default=1)
    c.add_argument("--metric", help="what ranks: auc, log_loss, average_precision, accuracy; rmse, mae, r2")
    c.add_argument("--unseen", metavar="COLUMN", help="hold out whole symbols of this column")
    c.add_argument("--drop", type=_names, help="columns to leave out, separated by commas")
    c.add_argument("--symbolic", type=_names, help="numeric columns to treat as symbols, separated by commas")
    c.add_argument("--time-limit", type=float, metavar="SECONDS", help="for one contender, all folds together")
    c.add_argument("--seed", type=int, default=0)
    c.add_argument("--jobs", type=int, default=1, help="contenders at a time; above 1, times compare less well")
    c.add_argument("--out", metavar="DIR", help="default: a new folder tabsym-compare-NAME")
    c.add_argument("--resume", action="store_true", help="go on with the results in the folder")
    c.add_argument("--quiet", action="store_true")
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    sys.exit(main())
