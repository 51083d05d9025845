"""Predictions of a tabsym model, or the columns of an encoder, from its spec (JSON). Needs numpy alone; may be copied.

from_spec(json.load(open("model.json"))).predict({"store": ["a", "b"], "price": [1.5, None]})
"""

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import numpy as np

_FUNCTIONS = {name: getattr(np, name) for name in ("log", "log1p", "log2", "log10", "sqrt", "exp", "abs")}
_OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power}
_PARTS = {"month": "%m", "week": "%V", "weekday": "%a", "hour": "%H", "minute": "%M"}
_DAY, _MICROSECOND = 86_400 * 10**9, dt.timedelta(microseconds=1)  # the day in nanoseconds
_MIDNIGHT = r"^(\d{4}-\d\d-\d\d)[ T]00:00:00(\.0+)?$"
_READ: dict[str, Any] = {"float": float, "bytes": bytes.fromhex, "decimal": Decimal, "datetime": np.datetime64,
    "date": dt.date.fromisoformat, "time": dt.time.fromisoformat, "datetime in UTC": dt.datetime.fromisoformat,
    "timedelta": lambda number: np.timedelta64(number, "ns")}  # fmt: skip


def _read(written: Any) -> Any:
    """A category or class."""
    return _READ[written["type"]](written["value"]) if isinstance(written, dict) else written


def _plain(value: Any) -> Any:
    """Missing as None, times as (kind, nanoseconds, zone): 1 and 1.0 are equal then, and 1, "1" and True differ."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:  # noqa: PLR0124 (NaN)
        return None
    if isinstance(value, (np.datetime64, np.timedelta64)):
        in_ns = np.datetime_data(value.dtype)[0] == "ns"
        whole = int(value.astype(f"{value.dtype.kind}8[{'ns' if in_ns else 'us'}]").astype(np.int64))
        return "datetime" if value.dtype.kind == "M" else "timedelta", whole * (1 if in_ns else 1000), False
    if isinstance(value, dt.datetime):
        since = value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo and dt.UTC)
        return "datetime", since // _MICROSECOND * 1000 + getattr(value, "nanosecond", 0), value.tzinfo is not None
    if isinstance(value, dt.timedelta):
        return "timedelta", value // _MICROSECOND * 1000 + getattr(value, "nanoseconds", 0), False
    value = value.item() if isinstance(value, np.generic) else value
    return ("bool", value) if isinstance(value, bool) else value


def _number(value: Any, kind: str) -> float:
    """A plain value as a number; a date (also in text, ISO 8601), since 1970, or a duration in days."""
    value = _plain(dt.datetime.fromisoformat(value)) if isinstance(value, str) and kind[:4] == "date" else value
    value = ("date", (value - dt.date(1970, 1, 1)).days * _DAY) if isinstance(value, dt.date) else value
    if isinstance(value, str):
        raise TypeError(f"The value {value!r} is text where a number is needed.")
    if isinstance(value, tuple) and value[0] != "bool":
        return value[1] // _DAY + value[1] % _DAY / _DAY
    return np.nan if value is None else float(value[-1] if isinstance(value, tuple) else value)


def _part(value: Any, part: str, style: str) -> Any:
    """A value as text; the day of a date as a number, another part as text, by its own clock."""
    if _plain(value) is None:
        return None
    if part == "text":
        is_float = isinstance(value, (float, np.floating, Decimal))
        text = f"{Decimal(str(value)):f}" if is_float else re.sub(_MIDNIGHT, r"\1", str(value))
        return re.sub(r"\.?0*$", "", text) if is_float and "." in text else text
    if isinstance(value, (str, np.datetime64)):
        text, is_iso = str(value).strip(), style in ("ISO8601", "moments")
        value = dt.datetime.fromisoformat(text[:26]) if is_iso else dt.datetime.strptime(text, style)
    day = value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
    return _number(_plain(day), "date") if part == "day" else value.strftime(_PARTS[part])


def from_spec(spec: dict[str, Any]) -> "Scorer":
    """Make the scorer of a model or encoder from its spec.

    Parameters
    ----------
    spec : dict
        What `to_spec` made, as read from JSON.

    Returns
    -------
    Scorer
        With `predict`, `decision_function` and `predict_proba` of a model, or `transform` of an encoder.

    Examples
    --------
    >>> import json
    >>> import pandas as pd
    >>> from tabsym import WideClassifier
    >>> from tabsym.export import from_spec, to_spec
    >>> X = pd.DataFrame({"colour": ["red", "blue"] * 20})
    >>> text = json.dumps(to_spec(WideClassifier().fit(X, ["sold", "kept"] * 20)))
    >>> from_spec(json.loads(text)).predict([{"colour": "blue"}, {"colour": "red"}]).tolist()
    ['kept', 'sold']
    """
    if (version := spec.get("tabsym_spec") if isinstance(spec, dict) else None) != 1:
        raise ValueError(f"The spec has the version {version!r}, and this file reads 1; pass what to_spec made.")
    return Scorer(spec)


class Scorer:
    """Made by `from_spec`. Rows are a frame, a mapping of column -> values, a list of mappings, an array or one row."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec, self._columns = spec, {one["name"]: one for one in spec["columns"]}
        self._codes = [{_plain(_read(x)): n for n, x in enumerate(c.get("categories", ()))} for c in spec["codings"]]
        self._known = [{key: row for row, key in enumerate(zip(*one.get("codes", ())))} for one in spec["tables"]]
        rows = [([*one.get("ones", one.get("values")), one["default"]], one.get("text")) for one in spec["tables"]]
        self._values = [np.array(values, dtype=object if is_text else float) for values, is_text in rows]
        self.classes_ = np.array([_read(one) for one in spec["classes"]]) if spec.get("classes") else None

    def decision_function(self, rows: Any, offset: Any = None) -> Any:
        """Linear predictors (n,); for more than two classes (n, classes)."""
        return m[:, 0] if (m := _SpecTable(self, rows).margins(offset)).shape[1] == 1 else m

    def predict(self, rows: Any, offset: Any = None) -> Any:
        """Predicted values, or classes, (n,)."""
        margins = _SpecTable(self, rows).margins(offset)
        if self.classes_ is None:
            return np.exp(margins[:, 0]) if self.spec["link"] == "log" else margins[:, 0]
        return self.classes_[margins.argmax(axis=1) if margins.shape[1] > 1 else (margins[:, 0] > 0).astype(int)]

    def predict_proba(self, rows: Any, offset: Any = None) -> Any:
        """Probabilities (n, classes), in the order of `classes_`."""
        if self.spec["link"] not in ("logit", "softmax"):
            raise AttributeError("The model has no probabilities; use decision_function.")
        margins = np.hstack([np.zeros_like(m), m]) if (m := _SpecTable(self, rows).margins(offset)).shape[1] == 1 else m
        odds = np.exp(margins - margins.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def transform(self, rows: Any) -> dict[str, Any]:
        """The columns (n,) of an encoder by name."""
        table, outputs = _SpecTable(self, rows), self.spec["outputs"]
        return {name: column for one in outputs for name, column in zip(one["names"], table.encoded(one), strict=True)}


class _SpecTable:
    """A table, and the codes and numbers of its columns, which are made once."""

    def __init__(self, scorer: Scorer, rows: Any) -> None:
        self.scorer, self.spec, self.made, names = scorer, scorer.spec, dict[Any, Any](), scorer.spec["features"]
        is_row = isinstance(rows, dict) and not any(map(np.ndim, rows.values()))  # of column -> value
        rows = [rows] if is_row or hasattr(type(rows), "to_frame") else rows  # or a Series
        if isinstance(rows, (list, tuple)):
            rows = {key: [row[key] for row in rows] for key in (rows[0].keys() if rows else names) if str(key) in names}
        self.rows = rows = dict(zip(names, rows.T, strict=True)) if isinstance(rows, np.ndarray) else rows
        keys = rows if hasattr(rows, "keys") else getattr(rows, "column_names", None) or rows.columns
        self.labels = {str(key): key for key in keys}  # a spec has the names of columns as text
        self.n = len(next(iter(rows.values()), ())) if isinstance(rows, dict) else len(rows)
        for one in self.spec["checked"]:
            if (self.codes(one["coding"], one["column"]) < 0).any():
                raise ValueError(f"Column {one['column']!r} holds a category that was not seen in training.")

    def values(self, name: str, raw: bool = False) -> list[Any]:
        """A column as plain values, or as it is in the table."""
        made = self.scorer._columns.get(name, {})
        column = self.rows[self.labels[made.get("from", name)]]
        # Arrow has to_pylist, and iterates over scalars of its own, which equal no category
        column = list((getattr(column, "to_list", None) or getattr(column, "to_pylist", column.__iter__))())
        if len(column) != self.n:
            raise ValueError(f"Column {name!r} is of length {len(column)}, and the first one of {self.n}.")
        column = [_part(one, made["part"], made["style"]) for one in column] if "part" in made else column
        return column if raw else [_plain(one) for one in column]

    def numbers(self, name: str) -> Any:
        """A column as numbers (n,), missing ones as NaN."""
        if name not in self.made:
            kind = self.scorer._columns.get(name, {}).get("type", "number")
            self.made[name] = np.array([_number(one, kind) for one in self.values(name)], dtype=float)
            if np.isinf(self.made[name]).any():
                raise ValueError(f"Column {name!r} contains infinity; replace it by missing or by a finite number.")
        return self.made[name]

    def codes(self, index: int, name: str) -> Any:
        """The code (n,) of each value of a column: of its category, below 0 if that is not known, or of its bin."""
        if (index, name) not in self.made:
            coding, known = self.spec["codings"][index], self.scorer._codes[index]
            if "categories" in coding:
                self.made[index, name] = np.array([known.get(one, -1) for one in self.values(name)], dtype=int)
            else:
                x, first = self.numbers(name), int(coding["missing"])
                self.made[index, name] = np.where(np.isnan(x), first - 1, np.searchsorted(coding["bounds"], x) + first)
        return self.made[index, name]

    def look_up(self, lookup: Any) -> Any:
        """The coefficients (n, width) of a component of a table; the last row is of what is not in it."""
        at, scorer = lookup["table"], self.scorer
        table, values, known = self.spec["tables"][at], scorer._values[at], scorer._known[at]
        component = slice(lookup["component"] * table["width"], (lookup["component"] + 1) * table["width"])
        codes = [self.codes(*one) for one in zip(table["codings"], lookup["columns"], strict=True)]
        row = codes[0] if codes else np.zeros(self.n, dtype=int)
        if len(codes) > 1:
            row = np.array([known.get(key, -1) for key in zip(*(one.tolist() for one in codes))], dtype=int)
        if "ones" in table:  # where the one is in a row of zeros; -2 for a row of NaN
            return np.where(values[row, None] == -2, np.nan, values[row, None] == np.arange(table["width"]))
        return values[row, component]

    def encoded(self, one: Any) -> Any:
        """The columns (n,) of an output of an encoder."""
        if "table" in one:
            return self.look_up(one).T
        column = self.numbers(one["columns"][0]) if "number" in one else self.values(one["columns"][0], raw=True)
        return [np.array(column, dtype=object if str in map(type, column) else None)]  # where missing is no text

    def number(self, written: Any) -> Any:
        """The numbers (n,) of a factor: a column, a function, an operation or a constant."""
        if "column" in written:
            return np.nan_to_num(self.numbers(written["column"]), nan=written.get("fill", np.nan))
        if "function" in written:
            return _FUNCTIONS[written["function"]](self.number(written["of"]))
        if "operator" in written:
            return _OPERATORS[written["operator"]](self.number(written["left"]), self.number(written["right"]))
        return np.full(self.n, float(written["value"]))

    @np.errstate(all="ignore")
    def margins(self, offset: Any) -> Any:
        """The linear predictors (n, outputs): the sum of the terms, each a product, and the offset."""
        out = np.zeros((self.n, self.spec["n_outputs"]))
        for term in self.spec["terms"]:
            value = np.full((self.n, 1), term["constant"])
            for factor in (*(self.number(x)[:, None] for x in term["numbers"]), *map(self.look_up, term["lookups"])):
                value = value * factor
            out += value
        if not np.isfinite(out).all():
            raise ValueError(f"Row {np.argmin(np.isfinite(out).all(axis=1))} has no finite score; fill in its numbers.")
        return out if offset is None else out + np.reshape(offset, (self.n, -1))
