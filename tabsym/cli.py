"""The command line: ``tabsym compare``, ``tabsym export``, ``tabsym predict``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
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
        with _warnings_in_a_line():
            complete = _COMMANDS[args.command](vars(args))
    except BrokenPipeError:  # the reader went away, as `head` does
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 (Python flushes it at exit)
        return 1
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        print(f"tabsym: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        from tabsym.compare.workers import Terminated

        return 128 + (stop.number if isinstance(stop, Terminated) else signal.SIGINT)
    return 0 if complete else 1


@contextmanager
def _extra(command: str) -> Iterator[None]:
    """Where a library is absent, an error that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f'tabsym {command} needs {error.name!r}: pip install "tabsym[compare]"') from None


def _compare(args: dict[str, Any]) -> bool:
    """Run the comparison of one table or several; whether every requested contender did all folds."""
    with _extra("compare"):
        from tabsym.compare.settings import check_extra

        check_extra()
    from tabsym.compare import compare, compare_tables

    options = {name: value for name, value in args.items() if name not in ("command", "contender", "tables", "target")}
    options["contenders"] = _contenders(args["contenders"], args["contender"])
    tables, targets = args["tables"], args["target"] or []
    if len(tables) < 2:
        if len(targets) > 1:
            raise ValueError(f"one table has one --target, not {len(targets)}.")
        result = compare(*tables or [None], *targets, **options)
        return _all_ran(result, args["contenders"]) and (args["save_best"] is None or result.best_file is not None)
    if len(targets) == 1:
        targets = targets * len(tables)
    if len(targets) != len(tables):
        absent = next((one for one in tables if not Path(one).exists()), None)
        if absent is not None:
            raise ValueError(f"There is no file {absent!r}; the column to predict is named by --target.")
        raise ValueError(
            f"{len(tables)} tables need one --target for all, or one for each in order, not {len(targets)}."
        )
    if options.pop("save_best") is not None:
        raise ValueError("--save-best needs a single table; leave it out.")
    options["out"] = options["out"] or "tabsym-compare-tables"
    results = compare_tables(list(zip(tables, targets, strict=True)), **options)
    return not results.failures and all(_all_ran(one, args["contenders"]) for one in results.tables.values())


def _export(args: dict[str, Any]) -> bool:
    """Write the model in a file in another form."""
    from tabsym import export

    model, path, to = export.load(args["model"]), Path(args["model"]), args["to"]
    usual = path.with_name(path.stem + {"csv": "-rates", "stack": "-stack"}.get(to, f".{to}"))
    out = usual if args["out"] is None else Path(args["out"])
    if args["base"] is not None and to not in ("xlsx", "csv"):
        raise ValueError("--base is for --to xlsx and --to csv; leave it out.")
    for option in ("table", "dialect"):
        if args[option] is not None and to != "sql":
            raise ValueError(f"--{option} is for --to sql; leave it out.")
    if to == "sql":
        text = export.to_sql(model, args["table"] or "rows", args["dialect"] or "ansi")
        out.write_text(text, encoding="utf-8")
    elif to == "json":
        out.write_text(json.dumps(export.to_spec(model), allow_nan=False), encoding="utf-8")
    elif to == "xlsx":
        export.to_excel(model, out, base=args["base"])
    elif to == "csv":
        export.to_csv(model, out, base=args["base"])
    elif to == "stack":
        export.to_stack(model, out)
    else:
        export.to_onnx(model, out)
    print(out)
    return True


def _predict(args: dict[str, Any]) -> bool:
    """Write the rows of a table with the predictions of the model in a file."""
    with _extra("predict"):
        from tabsym.compare.table.files import read
        from tabsym.compare.table.prepare import typed_for
        from tabsym.compare.table.retyping import Retyping
    from tabsym.export import load

    model = load(args["model"])
    if not hasattr(model, "predict"):
        raise ValueError(f"The model in {args['model']} is a {type(model).__name__}, which has no predictions.")
    options = getattr(model, "retyping", Retyping()).options_for(args["table"])
    options = replace(options, **{n: args[n] for n in ("sheet", "sep", "encoding") if args[n] is not None})
    source = read(args["table"], options)
    rows = source.frame.reset_index(drop=True)
    X: Any = rows
    if not hasattr(model, "retyping"):  # no winner of a comparison, which has decided of it
        X = typed_for(model, source, options)
        X = X[[name for name in getattr(model, "feature_names_in_", X.columns) if name in X.columns]]
    for note in source.notes:
        print(f"tabsym: {note}", file=sys.stderr)
    try:
        predicted = {"prediction": model.predict(X)}
        if hasattr(model, "predict_proba") and getattr(model, "task", "binary") in ("binary", "multiclass"):
            columns = model.predict_proba(X).T
            named = zip(model.classes_, columns, strict=True)
            predicted = {f"probability_{label}": column for label, column in named} | predicted
    except (ValueError, TypeError, OSError, ModuleNotFoundError):  # with words of its own
        raise
    except Exception as error:
        raise ValueError(
            f"The model in {args['model']} cannot predict the rows of {args['table']} ({type(error).__name__}: "
            f"{' '.join(str(error).split())}); save it anew by tabsym.save, or get its file anew."
        ) from None
    taken = [name for name in predicted if name in rows.columns]
    if taken:
        raise ValueError(f"The table has a column {taken[0]!r}, as the predictions would have; rename it.")
    text = rows.assign(**predicted).to_csv(args["out"], index=False)
    if text is not None:
        print(text, end="")
    return True


_COMMANDS = {"compare": _compare, "export": _export, "predict": _predict}


def _all_ran(result: Any, named: list[str] | None) -> bool:
    """Whether all did all folds; one whose library is absent counts where it was named."""
    absent = set(result.not_installed) - set(named or [])
    ranked = set(result.ranking["name"]) - ({"constant"} if set(named or ()) != {"constant"} else set())
    return bool(ranked) and not set(result.failures) - absent


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Help with the defaults of options that have one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default is None or action.default is False else super()._get_help_string(action)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tabsym", description="Models, encoders and comparisons for categorical columns."
    )
    parser.add_argument("--version", action="version", version=f"tabsym {version('tabsym')}")
    commands = parser.add_subparsers(dest="command", required=True)
    for add in (_add_compare, _add_export, _add_predict):
        add(commands)
    return parser


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare treatments of categories on a table",
        description="Compare treatments of categories on a table, on the same folds, and test the differences. "
        "Without a table: generated retail sales.",
        epilog="Example: tabsym compare sales.csv --target price --contenders wide,lightgbm --folds 10",
        formatter_class=_Help,
    )
    add, names = parser.add_argument, {"type": _names, "action": "extend"}
    add("tables", nargs="*", metavar="table", help="CSV, TSV, Parquet, Arrow, JSON or xlsx; one or several")
    add("--target", action="append", help="the column to predict; required with a table; repeat it if tables differ")
    tasks = ["binary", "multiclass", "regression", "count"]
    add("--task", choices=tasks, help="default: detected from the target")
    add("--contenders", **names, help=f"comma-separated names of {_known()}")
    add(
        "--contender",
        action="append",
        metavar="NAME=MODULE:FACTORY",
        help="your own contender: a factory of the estimator in an importable module; may be repeated",
    )
    add("--folds", type=int, default=5, help="number of folds")
    add("--repeats", type=int, default=1, help="number of repeats with other folds")
    metrics = "auc, log_loss, average_precision, brier, accuracy; rmse, mae, r2; poisson_deviance"
    add("--metric", help=f"ranking metric: {metrics}")
    add("--groups", metavar="COLUMN", help="keep the rows of a group in one fold; the column is not a feature then")
    add(
        "--time",
        metavar="COLUMN",
        help="train on earlier rows, test on the next ones; the column remains a feature unless --drop names it, too",
    )
    add("--fold-column", metavar="COLUMN", help="column with the fold in which each row is tested")
    add("--unseen", metavar="COLUMN", help="hold out whole categories of this column")
    add("--weight", metavar="COLUMN", help="sample weights, for training and for the scores")
    add("--exposure", metavar="COLUMN", help="exposures, for counts")
    add(
        "--offset",
        metavar="COLUMN",
        help="added to the prediction of a continuous target, or to the logarithm of a predicted count",
    )
    add("--tune", metavar="N|SECONDSs", help="tune inside every fold: a number of settings, or seconds as in 60s")
    add("--drop", **names, help="columns to leave out, comma-separated; lists may be repeated")
    add("--numeric", **names, help="text columns to read as numbers")
    add("--categorical", **names, help="columns of numbers to read as categories, such as codes and ids")
    add("--na-values", **names, metavar="VALUES", help="values that mean missing: ?,-200 or COLUMN=-200")
    add("--decimal", metavar="CHARACTER", help="decimal separator of numbers in text, . or , (detected by column)")
    add("--thousands", metavar="CHARACTER", help="thousands separator of numbers in text (detected by column)")
    add("--sep", help="field separator of a text file, such as ';' or tab (detected)")
    add("--sheet", help="sheet of an Excel workbook (the first that has rows)")
    add("--encoding", help="encoding of a text file, such as cp1252 (detected)")
    add("--dayfirst", action=argparse.BooleanOptionalAction, help="03/04 is the third of April (detected)")
    add("--time-limit", type=float, metavar="SECONDS", help="for one contender, all folds together")
    add("--memory-limit", type=float, metavar="GB", help="for the process of one contender (Linux)")
    add(
        "--max-rows",
        type=int,
        metavar="N",
        help="of a larger table a sample of N rows, stratified by the target (a plain wide model that "
        "wins is trained on all rows); default: all, of Parquet and folders of it as many as fit into memory",
    )
    add("--seed", type=int, default=0, help="seed of the folds and the contenders")
    add("--jobs", type=int, default=1, help="contenders that run at a time; above 1, times are less comparable")
    add("--threads", type=int, help="threads of each contender; default: OMP_NUM_THREADS, else processors / jobs")
    add("--out", metavar="DIR", help="folder of the results; default: a new folder tabsym-compare-NAME")
    add("--resume", action="store_true", help="continue the comparison in the folder of --out")
    add("--save-best", metavar="FILE", help="write the best contender, trained on all rows, to FILE.skops")
    add("--quiet", action="store_true", help="print nothing but errors")


def _add_export(commands: Any) -> None:
    parser = commands.add_parser(
        "export",
        help="write a model as SQL, ONNX, JSON, an Excel file or CSV files",
        description="Write a wide model as SQL, ONNX, JSON, an Excel file or CSV files, or a stack as files of its "
        "parts: a winner that compare --save-best wrote, or a model that tabsym.save wrote.",
        epilog="Example: tabsym export best.skops --to sql --table sales --dialect snowflake",
        formatter_class=_Help,
    )
    add = parser.add_argument
    add("model", help="file of a model")
    add("--to", choices=["sql", "onnx", "json", "xlsx", "csv", "stack"], required=True)
    add(
        "--out",
        metavar="FILE",
        help="default: the name of the model's file, with another ending; of CSV and stacks a folder, NAME-rates and "
        "NAME-stack",
    )
    add("--table", metavar="NAME", help="of SQL: the table of the rows; default: rows")
    add("--dialect", help="of SQL: ansi (the default), duckdb, sqlite, postgres, snowflake, bigquery, tsql, spark")
    add(
        "--base", choices=["largest"], help="of Excel and CSV: relativities to the category of each term with most rows"
    )


def _add_predict(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="predict the rows of a table by a model in a file",
        description="Write the rows of a table with their predictions as CSV, whatever the form of the table: "
        "separated by commas, in UTF-8, predictions with decimal points; cells of a text file are as they were.",
        epilog="Example: tabsym predict best.skops new.csv --out predicted.csv",
        formatter_class=_Help,
    )
    add = parser.add_argument
    add("model", help="file of a model: of compare --save-best or tabsym.save")
    add("table", help="CSV, TSV, Parquet, Arrow, JSON or xlsx")
    add("--sep", help="field separator of a text file (that of the training, or detected)")
    add("--encoding", help="encoding of a text file (that of the training, or detected)")
    add("--sheet", help="sheet of an Excel workbook (that of the training, else the first that has rows)")
    add("--out", metavar="FILE", help="CSV file; default: standard output")


def _known() -> str:
    try:
        from tabsym.compare.contenders import all_contenders
    except ModuleNotFoundError:
        return 'those that pip install "tabsym[compare]" brings'
    return ", ".join(all_contenders())


def _contenders(names: list[str] | None, custom: list[str] | None) -> dict[str, str | None] | list[str] | None:
    """Those named, and the user's own by address."""
    if not custom:
        return names
    chosen: dict[str, str | None] = dict.fromkeys(names or ["all"])
    for text in custom:
        name, separator, address = text.partition("=")
        if not separator or not name or not address:
            raise ValueError(f"--contender {text!r} is not of the form NAME=package.module:factory.")
        chosen[name] = address
    return chosen


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
