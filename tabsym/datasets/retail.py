"""Retail sales: a generated table with long-tailed categorical columns and a known process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state

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


def _long_tail(rng: np.random.RandomState, n_symbols: int, n: int, power: float) -> NDArray[np.int64]:
    share = np.arange(1, n_symbols + 1, dtype=float) ** -power
    return np.asarray(rng.choice(n_symbols, n, p=share / share.sum()))


def _seasons(rng: np.random.RandomState) -> NDArray[np.float64]:
    """A yearly wave per product group: coats in winter, swimwear in summer, socks all year."""
    phase = rng.uniform(0, 2 * np.pi, len(_GROUPS))
    height = rng.uniform(0.05, 0.9, len(_GROUPS))
    angle = 2 * np.pi * np.arange(_WEEKS) / _WEEKS
    return np.asarray(np.exp(height[:, None] * np.cos(angle[None, :] - phase[:, None])))
