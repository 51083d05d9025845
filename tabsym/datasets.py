"""Example tables: generated retail sales of a known process, and public tables by name.

The package ships no public table. `TABSYM_DATA` names a folder that holds ``NAME.parquet`` files; without it, what
OpenML has is fetched from there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state

__all__ = ["PUBLIC", "load", "make_retail"]


_COLOURS = (
    "black white navy grey beige red blue green olive burgundy pink khaki cream brown yellow teal "
    "orange lilac mint rust coral petrol sand silver gold plum mustard turquoise"
).split()
_SIZES = ["XS", "S", "M", "L", "XL", "XXL", "3XL"]
_GROUPS = (
    "T-shirts Jeans Socks Shirts Dresses Coats Knitwear Shorts Skirts Shoes Swimwear Underwear "
    "Scarves Suits Pyjamas Sandals Gloves Hats"
).split()
_WEEKS = 52


@dataclass(frozen=True)
class Truth:
    """The factors that `make_retail` drew, by category; sales = base * their product * price effect * noise."""

    store: pd.Series
    colour: pd.Series
    size: pd.Series
    season: pd.DataFrame  # product group by week
    price_elasticity: float
    noise: float


def make_retail(
    n_rows: int = 10_000,
    *,
    n_stores: int = 400,
    noise: float = 0.35,
    random_state: int | np.random.RandomState | None = 0,
    return_truth: bool = False,
) -> pd.DataFrame | tuple[pd.DataFrame, Truth]:
    """Make a table of retail sales, one row a product in a store in a week.

    The columns are `store`, `city`, `group`, `colour`, `size`, `supplier` and
    `week` (categories, with long tails and some missing values), `price` and
    `promotion` (numbers), and `sales`, the target:

        sales = 20 * store * colour * size * season[group, week]
                * (price / usual price of the group)**-1.2 * 1.3**promotion * noise

    with log-normal noise. City and supplier have no effect of their own.

    Parameters
    ----------
    n_rows : int, default 10_000
    n_stores : int, default 400
        Drawn with Zipf's frequencies, so most stores have few rows.
    noise : float, default 0.35
        Standard deviation of the logarithm of the noise.
    random_state : int, RandomState or None, default 0
    return_truth : bool, default False
        Return the true factors, too.

    Returns
    -------
    pandas.DataFrame, or (DataFrame, Truth) with `return_truth`

    Examples
    --------
    >>> from tabsym.datasets import make_retail
    >>> make_retail(1000).shape
    (1000, 10)
    """
    rng = check_random_state(random_state)
    store = _long_tail(rng, n_stores, n_rows, power=0.9)
    group = _long_tail(rng, len(_GROUPS), n_rows, power=0.6)
    colour = _long_tail(rng, len(_COLOURS), n_rows, power=1.0)
    size = rng.choice(len(_SIZES), n_rows, p=[0.08, 0.18, 0.26, 0.24, 0.14, 0.07, 0.03])
    week = rng.randint(0, _WEEKS, n_rows)
    supplier = (group * 7 + _long_tail(rng, 7, n_rows, power=1.0)) % 90
    city_of_store = _long_tail(rng, max(2, n_stores // 8), n_stores, power=0.8)

    factor_store = np.exp(rng.normal(0, 0.5, n_stores))
    factor_colour = np.exp(rng.normal(0, 0.4, len(_COLOURS)))
    factor_size = np.array([0.6, 0.9, 1.2, 1.15, 0.9, 0.6, 0.4])
    season = _seasons(rng)
    usual_price = np.exp(rng.normal(3.2, 0.5, len(_GROUPS)))

    relative = np.exp(rng.normal(0, 0.15, n_rows))
    promotion = (rng.rand(n_rows) < 0.12).astype(int)
    mean = 20 * factor_store[store] * factor_colour[colour] * factor_size[size] * season[group, week]
    mean = mean * relative**-1.2 * 1.3**promotion
    sales = mean * np.exp(rng.normal(-(noise**2) / 2, noise, n_rows))

    stores = np.array([f"store {j + 1:03d}" for j in range(n_stores)])
    table = pd.DataFrame(
        {
            "store": stores[store],
            "city": np.array([f"city {j + 1}" for j in range(city_of_store.max() + 1)])[city_of_store[store]],
            "group": np.array(_GROUPS)[group],
            "colour": np.array(_COLOURS)[colour],
            "size": np.array(_SIZES)[size],
            "supplier": np.array([f"supplier {j + 1}" for j in range(90)])[supplier],
            "week": np.array([f"W{j + 1:02d}" for j in range(_WEEKS)])[week],
            "price": (usual_price[group] * relative).round(2),
            "promotion": promotion,
            "sales": sales.round(2),
        }
    )
    table.loc[rng.rand(n_rows) < 0.02, "colour"] = None
    table.loc[rng.rand(n_rows) < 0.01, "supplier"] = None
    if not return_truth:
        return table
    truth = Truth(
        store=pd.Series(factor_store, index=stores),
        colour=pd.Series(factor_colour, index=_COLOURS),
        size=pd.Series(factor_size, index=_SIZES),
        season=pd.DataFrame(season, index=_GROUPS, columns=[f"W{j + 1:02d}" for j in range(_WEEKS)]),
        price_elasticity=-1.2,
        noise=noise,
    )
    return table, truth


def _long_tail(rng: np.random.RandomState, n_categories: int, n: int, power: float) -> NDArray[np.int64]:
    share = np.arange(1, n_categories + 1, dtype=float) ** -power
    return np.asarray(rng.choice(n_categories, n, p=share / share.sum()))


def _seasons(rng: np.random.RandomState) -> NDArray[np.float64]:
    """A yearly wave per product group: coats in winter, swimwear in summer, socks all year."""
    phase = rng.uniform(0, 2 * np.pi, len(_GROUPS))
    height = rng.uniform(0.05, 0.9, len(_GROUPS))
    angle = 2 * np.pi * np.arange(_WEEKS) / _WEEKS
    return np.asarray(np.exp(height[:, None] * np.cos(angle[None, :] - phase[:, None])))


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
