"""Public tables by name: from a folder of Parquet files, or from OpenML.

The package ships none of them. `TABSYM_DATA` names a folder that holds
``NAME.parquet`` files; without it, what OpenML has is fetched from there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class Public:
    """A public table: its target, task, and columns that must not be features."""

    target: str
    task: str
    drop: tuple[str, ...] = ()
    openml: tuple[str, int, str] | None = None  # name, version, target there


PUBLIC: dict[str, Public] = {
    "adult": Public("income", "binary", ("split", "fnlwgt"), ("adult", 2, "class")),
    "amazon": Public("ACTION", "binary", (), ("Amazon_employee_access", 1, "target")),
    "chicago_taxi": Public(
        "tips",
        "regression",
        ("trip_id", "trip_total", "trip_start_timestamp", "trip_end_timestamp"),
    ),
    "compas": Public(
        "two_year_recid",
        "binary",
        (
            "id",
            "is_recid",
            "event",
            "start",
            "end",
            "r_case_number",
            "r_charge_degree",
            "r_days_from_arrest",
            "r_offense_date",
            "r_charge_desc",
            "r_jail_in",
            "r_jail_out",
            "violent_recid",
            "is_violent_recid",
            "vr_case_number",
            "vr_charge_degree",
            "vr_offense_date",
            "vr_charge_desc",
            "c_case_number",
            "in_custody",
            "out_custody",
            "c_jail_in",
            "c_jail_out",
            "c_offense_date",
            "c_arrest_date",
            "compas_screening_date",
            "screening_date",
            "v_screening_date",
        ),
    ),
    "covtype_small": Public("Cover_Type", "multiclass", ("Id",)),
    "kdd99": Public("label", "multiclass", (), ("KDDCup99", 1, "label")),
    "kick": Public("IsBadBuy", "binary", ("RefId", "PurchDate"), ("kick", 1, "IsBadBuy")),
    "rossmann": Public("Sales", "regression", ("Customers", "Date")),
    "talkingdata_clicks": Public("is_attributed", "binary", ("attributed_time", "click_time")),
    "titanic": Public("Survived", "binary", ("PassengerId", "Name"), ("titanic", 1, "survived")),
    "usedcars": Public("price_usd", "regression", ()),
}


def load(name: str, folder: str | Path | None = None) -> tuple[pd.DataFrame, pd.Series]:
    """Load a public table.

    Parameters
    ----------
    name : str
        One of `PUBLIC`.
    folder : path, optional
        Where ``NAME.parquet`` lies; default: the environment variable
        `TABSYM_DATA`. Without either, the table is fetched from OpenML.

    Returns
    -------
    (X, y) : DataFrame and Series
        Features, without columns that contain the target, and the target.

    Raises
    ------
    ValueError
        The name is unknown, or OpenML does not have the table.
    FileNotFoundError
        The folder has no such file.

    Examples
    --------
    >>> from tabsym.datasets import load
    >>> X, y = load("adult")  # doctest: +SKIP
    """
    if name not in PUBLIC:
        raise ValueError(f"There is no public table {name!r}; there are {', '.join(sorted(PUBLIC))}.")
    entry = PUBLIC[name]
    folder = folder or os.environ.get("TABSYM_DATA")
    if folder:
        path = Path(folder) / f"{name}.parquet"
        if not path.exists():
            raise FileNotFoundError(f"There is no {path.name} in the folder {str(folder)!r}; add it there.")
        table = pd.read_parquet(path)
        target = entry.target
    else:
        table, target = _fetch(name, entry)
    drop = [column for column in entry.drop if column in table.columns]
    return table.drop(columns=[target, *drop]), table[target]


def _fetch(name: str, entry: Public) -> tuple[pd.DataFrame, str]:
    from sklearn.datasets import fetch_openml

    if entry.openml is None:
        raise ValueError(
            f"OpenML has no {name!r}; set TABSYM_DATA to a folder that holds {name}.parquet, or pass folder=."
        )
    openml_name, version, target = entry.openml
    bunch = fetch_openml(openml_name, version=version, as_frame=True, parser="auto")
    return bunch.frame, target
