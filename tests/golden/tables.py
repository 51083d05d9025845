"""Small generated tables, the same on every machine.

They are drawn with numpy's `RandomState`, whose streams are frozen (those of `Generator` may change with numpy), and
rounded, so that the last digit of a machine's logarithm does not matter. Each comes with rows to predict, some of which
hold categories that training has not seen, or miss values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

N_OLD = 16
"""Of the rows to predict, those of training."""


@dataclass(frozen=True)
class Table:
    """A table: features, target, what else fits take, and rows to predict.

    Attributes
    ----------
    task : {"classes", "amounts", "counts"}
    X, y
        Features and target of training.
    new : DataFrame
        Rows to predict: `N_OLD` of training, then the same with unknown categories and missing values.
    weight, offset : array or None
        Of the rows of training, for the cases that take them.
    """

    task: str
    X: pd.DataFrame
    y: pd.Series
    new: pd.DataFrame
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None


def _draw(rng: Any, prefix: str, size: int, n: int, power: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Codes (n,), the first ones the most frequent, and their names."""
    share = 1.0 / np.arange(1, size + 1) ** power
    codes = rng.choice(size, n, p=share / share.sum())
    return codes, np.array([f"{prefix}{code:02d}" for code in codes], dtype=object)


def _classes(rng: Any, score: np.ndarray) -> np.ndarray:
    return rng.random_sample(len(score)) < np.round(1.0 / (1.0 + np.exp(-score)), 9)


def _text(values: Any) -> pd.Series:
    return pd.Series(values, dtype=object)


def _with_gaps(rng: Any, values: np.ndarray, share: float) -> np.ndarray:
    values = values.copy()
    values[rng.random_sample(len(values)) < share] = None if values.dtype == object else np.nan
    return values


def _to_predict(X: pd.DataFrame, fill: dict[str, Any] | None = None) -> pd.DataFrame:
    """Rows of training; then again, each with one category unknown or one value missing, in turn."""
    old = X.iloc[:: max(1, len(X) // N_OLD)].head(N_OLD).reset_index(drop=True)
    changed = old.copy()
    texts = [name for name in X if X[name].dtype == object]
    gaps = [name for name in X if X[name].dtype == object or X[name].dtype == np.float64]
    for row in range(len(changed)):
        if row % 2 == 0 and texts:
            changed.loc[row, texts[row // 2 % len(texts)]] = f"new{row % 3}"
        elif gaps:
            name = gaps[row // 2 % len(gaps)]
            changed.loc[row, name] = None if name in texts else np.nan
    for name, value in (fill or {}).items():
        changed[name] = value
    return pd.concat([old, changed], ignore_index=True)


@cache
def shops() -> Table:
    """Two classes: shops, weeks, their cross, a number with gaps, a boolean; weights and offsets."""
    rng, n = np.random.RandomState(1), 400
    shop, shops = _draw(rng, "shop", 12, n, 0.7)
    week, weeks = _draw(rng, "w", 5, n, 0.3)
    colour, colours = _draw(rng, "colour", 30, n)
    price = np.round(rng.gamma(3.0, 10.0, n), 2)
    promo = rng.random_sample(n) < 0.3
    effects, cross = rng.normal(0, 0.7, 12), rng.normal(0, 2.5, (12, 5))
    score = effects[shop] + cross[shop, week] - 0.03 * (price - 30) + 0.8 * promo + 0.3 * rng.normal(0, 1, 30)[colour]
    X = pd.DataFrame({"shop": _text(shops), "week": _text(weeks), "colour": _text(_with_gaps(rng, colours, 0.05))})
    X["price"] = _with_gaps(rng, price, 0.06)
    X["promo"] = promo
    y = pd.Series(np.where(_classes(rng, score), "sold", "kept"), name="outcome")
    weight = rng.randint(0, 4, n).astype(float)
    offset = np.round(rng.normal(0, 0.5, n), 3)
    return Table("classes", X, y, _to_predict(X), weight, offset)


@cache
def flowers() -> Table:
    """Four classes: two text columns, one category column, two numbers."""
    rng, n = np.random.RandomState(2), 320
    place, places = _draw(rng, "place", 15, n)
    soil, soils = _draw(rng, "soil", 4, n, 0.2)
    length, width = np.round(rng.normal(5, 1, n), 1), np.round(rng.gamma(2.0, 1.0, n), 2)
    scores = rng.normal(0, 1.0, (15, 4))[place] + rng.normal(0, 0.8, (4, 4))[soil]
    scores += np.outer(length - 5, [0.0, 1.0, -1.0, 0.5]) + np.outer(np.abs(width - 2), [0.5, 0.0, 0.0, -0.5])
    label = (scores + rng.gumbel(0, 1, (n, 4))).argmax(axis=1)
    X = pd.DataFrame({"place": _text(places), "soil": _text(soils), "length": length})
    X["width"] = _with_gaps(rng, width, 0.04)
    y = pd.Series(np.array(["aster", "briar", "clover", "dahlia"], dtype=object)[label], name="flower")
    return Table("classes", X, y, _to_predict(X))


@cache
def prices() -> Table:
    """Amounts that are sums: makers, regions, their cross, a number that bends, one that is a slope; weights."""
    rng, n = np.random.RandomState(3), 400
    maker, makers = _draw(rng, "maker", 10, n, 0.5)
    region, regions = _draw(rng, "region", 6, n, 0.2)
    trim, trims = _draw(rng, "trim", 40, n)
    age, km = np.round(rng.gamma(2.0, 3.0, n), 1), np.round(rng.gamma(2.0, 40.0, n))
    amount = rng.normal(0, 4, 10)[maker] + rng.normal(0, 8, (10, 6))[maker, region] + rng.normal(0, 1, 40)[trim]
    amount += 40 * np.exp(-age / 4) - 0.05 * km + 100 + rng.normal(0, 1.5, n)
    X = pd.DataFrame({"maker": _text(makers), "region": _text(_with_gaps(rng, regions, 0.03)), "trim": _text(trims)})
    X["age"], X["km"] = _with_gaps(rng, age, 0.05), km
    weight = np.round(rng.gamma(2.0, 0.5, n), 2)
    return Table("amounts", X, pd.Series(np.round(amount, 2), name="price"), _to_predict(X), weight)


@cache
def sales() -> Table:
    """Positive amounts that are products, and a number that multiplies."""
    rng, n = np.random.RandomState(4), 400
    store, stores = _draw(rng, "store", 20, n, 0.8)
    group, groups = _draw(rng, "group", 6, n, 0.2)
    season, seasons = _draw(rng, "season", 4, n, 0.0)
    size = np.round(rng.uniform(1, 5, n), 2)
    mean = rng.lognormal(0, 0.5, 20)[store] * rng.lognormal(0, 0.4, 6)[group] * rng.lognormal(0, 0.3, 4)[season] * size
    amount = np.round(mean * rng.gamma(20.0, 1 / 20.0, n), 4) + 0.01
    X = pd.DataFrame({"store": _text(stores), "group": _text(groups), "season": _text(seasons), "size": size})
    return Table("amounts", X, pd.Series(amount, name="sales"), _to_predict(X, {"size": 2.5}))


@cache
def claims() -> Table:
    """Counts with an exposure, and the column of an offset."""
    rng, n = np.random.RandomState(5), 400
    car, cars = _draw(rng, "car", 25, n)
    area, areas = _draw(rng, "area", 5, n, 0.2)
    years = np.round(rng.uniform(0.2, 2.0, n), 2)
    age = rng.randint(18, 80, n).astype(float)
    rate = np.exp(rng.normal(0, 0.5, 25)[car] + rng.normal(0, 0.3, 5)[area] + 0.8 * (age < 27) - 0.2)
    X = pd.DataFrame({"car": _text(cars), "area": _text(areas), "age": _with_gaps(rng, age, 0.05), "years": years})
    X["before"] = np.round(rng.normal(0, 0.3, n), 3)
    y = pd.Series(rng.poisson(np.round(rate * years * np.exp(X["before"]), 9)), name="claims")
    return Table("counts", X, y, _to_predict(X, {"years": 1.5, "before": 0.25}))


@cache
def costs() -> Table:
    """Positive amounts with a long tail; categories of a category column, one of them never there."""
    rng, n = np.random.RandomState(6), 260
    ward, wards = _draw(rng, "ward", 8, n, 0.4)
    drug, drugs = _draw(rng, "drug", 18, n)
    stay = rng.randint(1, 15, n)
    mean = np.exp(rng.normal(0, 0.6, 8)[ward] + rng.normal(0, 0.5, 18)[drug] + 0.08 * stay + 4)
    X = pd.DataFrame({"ward": _text(wards), "drug": _text(drugs), "stay": stay})
    X["grade"] = pd.Categorical(rng.choice(["low", "mid"], n), categories=["low", "mid", "high"], ordered=True)
    y = pd.Series(np.round(mean * rng.gamma(2.0, 0.5, n), 2) + 0.01, name="cost")
    new = _to_predict(X.drop(columns="grade"))
    new["grade"] = pd.Categorical(["low", "high", "mid", None] * (len(new) // 4), categories=["low", "mid", "high"])
    return Table("amounts", X, y, new)


@cache
def visits() -> Table:
    """Two classes: dates, an id of each row, whole numbers that are codes, a constant, booleans."""
    rng, n = np.random.RandomState(7), 240
    page, pages = _draw(rng, "page", 9, n, 0.4)
    code = rng.randint(100, 112, n)
    day = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.randint(0, 500, n), unit="D")
    back = rng.random_sample(n) < 0.4
    score = rng.normal(0, 1, 9)[page] + rng.normal(0, 1, 12)[code - 100] + 0.004 * (day.dayofyear - 180) + back
    X = pd.DataFrame({"page": _text(pages), "code": code, "day": pd.Series(day), "back": back})
    X["id"] = _text([f"id{number}" for number in rng.permutation(n)])
    X["country"] = _text(["here"] * n)
    y = pd.Series(_classes(rng, np.asarray(score)), name="bought")
    new = _to_predict(X)
    new["day"] = new["day"].where(np.arange(len(new)) % 5 > 0)
    return Table("classes", X, y, new)


@cache
def gaps() -> Table:
    """Amounts: missing values in every column, a column of nothing else, categories of one row, both signs."""
    rng, n = np.random.RandomState(8), 200
    team, teams = _draw(rng, "team", 60, n, 0.9)
    kind, kinds = _draw(rng, "kind", 3, n, 0.1)
    load = np.round(rng.normal(0, 2, n), 1)
    amount = rng.normal(0, 1, 60)[team] + np.array([-2.0, 0.0, 2.0])[kind] + np.abs(load) + rng.normal(0, 0.5, n)
    X = pd.DataFrame({"team": _text(_with_gaps(rng, teams, 0.1)), "kind": _text(_with_gaps(rng, kinds, 0.2))})
    X["load"] = _with_gaps(rng, load, 0.3)
    X["none"] = np.full(n, np.nan)
    return Table("amounts", X, pd.Series(np.round(amount, 3), name="amount"), _to_predict(X))


@cache
def cars() -> Table:
    """Amounts: many models, whose other columns say what they are like; whole models are unknown in the new rows."""
    rng, n = np.random.RandomState(9), 400
    kind = rng.randint(0, 4, 45)
    model, models = _draw(rng, "model", 45, n, 0.5)
    body = np.where(rng.random_sample(n) < 0.9, kind[model], rng.randint(0, 4, n))
    engine = np.where(rng.random_sample(n) < 0.8, kind[model] // 2, rng.randint(0, 3, n))
    weight = np.round(900 + 200 * body + rng.normal(0, 80, n))
    price = np.array([5.0, 12.0, 20.0, 30.0])[kind][model] + rng.normal(0, 2, 45)[model] + rng.normal(0, 1, n)
    X = pd.DataFrame({"model": _text(models)})
    X["body"] = _text(np.array(["hatch", "saloon", "estate", "van"], dtype=object)[body])
    X["engine"] = _text(np.array(["petrol", "diesel", "electric"], dtype=object)[engine])
    X["weight"] = weight
    return Table(
        "amounts", X, pd.Series(np.round(price, 2), name="price"), _unknown_models(X), rng.randint(1, 3, n) * 1.0
    )


@cache
def lorries() -> Table:
    """As `cars`, for two classes."""
    table = cars()
    rng = np.random.RandomState(10)
    y = pd.Series(np.where(table.y + rng.normal(0, 4, len(table.y)) > 15, "dear", "cheap"), name="dear")
    return Table("classes", table.X, y, table.new)


@cache
def bikes() -> Table:
    """As `cars`, for three classes."""
    table = cars()
    level = np.searchsorted([9.0, 20.0], table.y + np.random.RandomState(11).normal(0, 3, len(table.y)))
    return Table("classes", table.X, pd.Series(np.array(["a", "b", "c"])[level], name="level"), table.new)


def _unknown_models(X: pd.DataFrame) -> pd.DataFrame:
    new = X.iloc[::12].head(30).reset_index(drop=True)
    new.loc[10:19, "model"] = [f"new{row % 3}" for row in range(10)]
    new.loc[20:23, "model"] = "alone"
    new.loc[24:25, "body"], new.loc[26, "model"], new.loc[27, "weight"] = "truck", None, np.nan
    return new


@cache
def matches() -> Table:
    """Two classes, and a strength that two columns read."""
    rng, n = np.random.RandomState(12), 300
    strength = rng.normal(0, 1, 10)
    home, away = rng.randint(0, 10, n), rng.randint(0, 10, n)
    X = pd.DataFrame({"home": _text([f"club{one}" for one in home]), "away": _text([f"club{one}" for one in away])})
    X["rain"] = np.round(rng.uniform(0, 1, n), 2)
    y = pd.Series(_classes(rng, strength[home] - strength[away] + 0.4).astype(int), name="won")
    return Table("classes", X, y, _to_predict(X, {"rain": 0.5}))


@cache
def fields() -> Table:
    """Two classes that two numbers tell together, and fields: what trees find and sums do not."""
    rng, n = np.random.RandomState(13), 400
    field, fields = _draw(rng, "field", 12, n, 0.5)
    rain, heat = np.round(rng.uniform(0, 10, n), 2), np.round(rng.uniform(5, 30, n), 1)
    score = 3.0 * np.where((rain > 5) == (heat > 18), 1, -1) + rng.normal(0, 1.2, 12)[field]
    X = pd.DataFrame({"field": _text(fields), "rain": rain, "heat": _with_gaps(rng, heat, 0.03)})
    y = pd.Series(_classes(rng, score), name="grew")
    return Table("classes", X, y, _to_predict(X), rng.randint(1, 4, n) * 1.0)


@cache
def loans() -> Table:
    """Two classes that single columns tell: kinds of jobs, a number that rises and falls, another with gaps."""
    rng, n = np.random.RandomState(14), 400
    job, jobs = _draw(rng, "job", 20, n, 0.3)
    town, towns = _draw(rng, "town", 6, n, 0.2)
    age, income = np.round(rng.uniform(18, 80, n)), np.round(rng.gamma(3.0, 12.0, n), 1)
    score = np.array([-2.5, 0.0, 2.5])[rng.randint(0, 3, 20)][job] + 2.0 * (np.abs(age - 50) < 12) - 1.0
    score += 2.0 * (income > 40) - 1.0 + rng.normal(0, 0.3, 6)[town]
    X = pd.DataFrame({"job": _text(_with_gaps(rng, jobs, 0.04)), "town": _text(towns), "age": age})
    X["income"], X["owner"] = _with_gaps(rng, income, 0.1), rng.random_sample(n) < 0.5
    return Table("classes", X, pd.Series(_classes(rng, score), name="paid"), _to_predict(X), rng.randint(0, 4, n) * 1.0)


TABLES = {
    make.__name__: make
    for make in (
        shops,
        flowers,
        prices,
        sales,
        claims,
        costs,
        visits,
        gaps,
        cars,
        lorries,
        bikes,
        matches,
        fields,
        loans,
    )
}
