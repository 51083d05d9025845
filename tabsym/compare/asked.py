"""Validation of the options that do not need the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import Any

from tabsym.compare.machine import can_limit_memory
from tabsym.compare.plots import load_matplotlib
from tabsym.compare.reading import ReadOptions, name_of_file

MOST_SEED = 2**32 - 1
"""NumPy's."""


def check_numbers(
    *, folds: int, repeats: int, jobs: int, threads: int | None = None, seed: int, time_limit: float | None
) -> None:
    """Numbers that are possible."""
    for argument, value, least in (
        ("folds", folds, 2), ("repeats", repeats, 1), ("jobs", jobs, 1),
        ("threads", 1 if threads is None else threads, 1), ("seed", seed, 0),
    ):  # fmt: skip
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise ValueError(f"{argument}={value!r} is not possible; use a whole number.")
        if value < least:
            raise ValueError(f"{argument}={value} is not possible; use at least {least}.")
    if seed > MOST_SEED:
        raise ValueError(f"seed={seed} is not possible; use at most {MOST_SEED}.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit={time_limit} is not possible; use a number of seconds above 0.")


def check_memory_limit(memory_limit: float | None) -> None:
    """Whether processes can be held to so many gigabytes."""
    if memory_limit is None:
        return
    if not memory_limit > 0:
        raise ValueError(f"memory_limit={memory_limit} is not possible; use a number of gigabytes above 0.")
    if not can_limit_memory():
        raise ValueError(
            f"memory_limit={memory_limit} is not possible, as this system limits no process's memory; leave it out."
        )


def check_lists(**lists: Any) -> None:
    """Lists of columns, and not the text of one."""
    for argument, value in lists.items():
        if isinstance(value, str):
            raise TypeError(f"{argument} must be a list, not the text {value!r}; pass {argument}=[{value!r}].")


def reading_options(
    *,
    numeric: Sequence[str] | None,
    categorical: Sequence[str] | None,
    na_values: Any,
    decimal: str | None,
    thousands: str | None,
    sep: str | None,
    encoding: str | None,
    dayfirst: bool | None,
) -> ReadOptions:
    """What the user decided of reading the table, checked.

    `na_values`: a list of cells for all columns, each also as ``COLUMN=CELL``; or column -> list of cells.
    """
    check_lists(numeric=numeric, categorical=categorical)
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal={decimal!r} is not possible; use '.' or ','.")
    if thousands is not None and (len(thousands) > 1 or thousands.isalnum() or thousands == decimal):
        raise ValueError(
            f"thousands={thousands!r} is not possible; use one character other than the decimal separator, or ''."
        )
    return ReadOptions(
        [str(name) for name in numeric or []], [str(name) for name in categorical or []], _na_values(na_values),
        decimal, thousands, sep, encoding, dayfirst,
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


def check_resume(out: str | Path | None, resume: bool) -> None:
    """Results to go on with have a name: of the folders that were made without one, which is meant is not known."""
    if resume and out is None:
        raise ValueError("resume needs the folder of the results: add out='FOLDER' (--out FOLDER).")


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
    return name, table, str(target)


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
