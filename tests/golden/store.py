"""What cases give, as plain JSON; and the differences of two such things.

Numbers have 12 significant digits. Labels (of columns and rows, and the categories of text) are kept beside the values
and not among them, so that a rename shows as a change of labels alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

FOLDER = Path(__file__).parent
TOLERANCE = 1e-7
"""Of the largest magnitude in an array.

Not less, as another processor's BLAS and vector instructions sum in another order: that moves results of one pass by
some 1e-15 of their size, and those of solvers, which stop where a sweep gains little, by up to 5e-10 (see `cases`).
"""
SMALLEST = 1e-6
"""Arrays of smaller numbers are compared as if the largest were this: what should be 0 is noise of another size."""


KINDS = ("values", "form", "text", "labels")


@dataclass(frozen=True)
class Difference:
    """Where what was found is not what is stored; `size` is relative, and infinite for all but numbers.

    `kind`: "values", "labels", "text", or "form" where shapes, types or entries differ.
    """

    entry: str
    kind: str
    size: float
    words: str

    def __str__(self) -> str:
        size = f" by {self.size:.1e} of the largest" if np.isfinite(self.size) else ""
        return f"{self.entry}: {self.kind}{size}: {self.words}"


# -- to plain JSON ----------------------------------------------------------------------------


def plain(value: Any) -> dict[str, Any]:
    """An array, frame, series, number or text as plain JSON."""
    if isinstance(value, str):
        return {"text": value}
    if sparse.issparse(value):
        return {"form": f"sparse {value.format}"} | plain(value.toarray())
    if isinstance(value, pd.Series):
        value = value.to_frame()
    if isinstance(value, pd.DataFrame):
        labels = {"columns": [label(one) for one in value.columns]}
        if not isinstance(value.index, pd.RangeIndex):
            labels["rows"] = [label(one) for one in value.index]
        if any(name is not None for name in value.index.names):
            labels["names"] = [label(name) for name in value.index.names]
        return {"labels": labels, "data": [_column(value.iloc[:, place]) for place in range(value.shape[1])]}
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return {"shape": list(array.shape)} | _column(pd.Series(array.ravel().tolist(), dtype=object))
    return {"shape": list(array.shape)} | _numbers(array)


def label(value: Any) -> str:
    """A label as text that tells types apart: that of a category, of a tuple of them, of a missing one."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return f"({', '.join(map(label, value))})"
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return "<missing>"
    if isinstance(value, np.generic):
        return label(value.item())
    if isinstance(value, float):
        return f"<{value:.12g}>"
    return f"<{value}>"


def _column(column: pd.Series) -> dict[str, Any]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        kind = "ordered" if dtype.ordered else "categories"
        return {"type": kind, "codes": column.cat.codes.tolist(), "labels": [label(one) for one in dtype.categories]}
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return _numbers(column.to_numpy())
    codes, categories = pd.factorize(pd.Series([label(one) for one in column], dtype=object))
    return {"type": "text", "codes": codes.tolist(), "labels": categories.tolist()}


def _numbers(array: np.ndarray) -> dict[str, Any]:
    values = [_number(one) for one in array.ravel().astype(np.float64)]
    return {"type": str(array.dtype), "values": values}


def _number(value: float) -> float | int:
    rounded = float(f"{value:.12g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e12 else rounded


# -- files ------------------------------------------------------------------------------------


def read(table: str) -> dict[str, dict[str, Any]]:
    """case -> entry -> what is stored, of the cases of a table."""
    path = FOLDER / f"{table}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(table: str, cases: dict[str, dict[str, Any]]) -> None:
    """A line for each entry, so that a diff shows which changed."""
    blocks = []
    for name in sorted(cases):
        lines = [f"  {json.dumps(entry)}: {_compact(cases[name][entry])}" for entry in cases[name]]
        blocks.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    (FOLDER / f"{table}.json").write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


def _compact(entry: Any) -> str:
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=True)


# -- differences --------------------------------------------------------------------------------


def differences(stored: dict[str, Any], found: dict[str, Any], tolerance: float = TOLERANCE) -> list[Difference]:
    """All differences of a case beyond the tolerance: of values, the largest first, then of form, text and labels."""
    out = [Difference(name, "form", np.inf, "is stored, and was not computed") for name in stored if name not in found]
    out += [Difference(name, "form", np.inf, "was computed, and is not stored") for name in found if name not in stored]
    for name, old in stored.items():
        if name in found:
            out += _of_entry(name, old, found[name], tolerance)
    return sorted(out, key=lambda one: (KINDS.index(one.kind), -one.size))


def told(found: list[Difference], most: int = 12) -> str:
    """Differences in words: how many of each kind, then a line each, those of values that moved most first."""
    counts = [(kind, sum(one.kind == kind for one in found)) for kind in KINDS]
    heading = ", ".join(f"{count} of {kind}" for kind, count in counts if count)
    lines = [f"    {one}" for one in found[:most]]
    rest = [f"    and {len(found) - most} more"] if len(found) > most else []
    return "\n".join([f"differences: {heading}", *lines, *rest])


def _of_entry(name: str, stored: dict[str, Any], found: dict[str, Any], tolerance: float) -> Iterator[Difference]:
    if "text" in stored or "text" in found:
        if stored != found:
            yield Difference(name, "text", np.inf, _first_line(stored.get("text"), found.get("text")))
        return
    for key in ("form", "shape"):
        if stored.get(key) != found.get(key):
            yield Difference(name, "form", np.inf, f"{key} {stored.get(key)}, now {found.get(key)}")
            return
    if "data" in stored and "data" in found:
        yield from _of_labels(name, stored["labels"], found["labels"])
        if len(stored["data"]) != len(found["data"]):
            yield Difference(name, "form", np.inf, f"{len(stored['data'])} columns, now {len(found['data'])}")
            return
        for place, (old, new) in enumerate(zip(stored["data"], found["data"], strict=True)):
            yield from _of_column(f"{name}, column {stored['labels']['columns'][place]!r}", old, new, tolerance)
        return
    yield from _of_column(name, stored, found, tolerance)


def _of_labels(name: str, stored: dict[str, Any], found: dict[str, Any]) -> Iterator[Difference]:
    for key in sorted({*stored, *found}):
        old, new = stored.get(key, []), found.get(key, [])
        if old != new:
            changed = [(a, b) for a, b in zip(old, new) if a != b][:3]
            words = "; ".join(f"{a!r}, now {b!r}" for a, b in changed) or f"{len(old)}, now {len(new)}"
            yield Difference(name, "labels", np.inf, f"{key}: {words}")


def _of_column(name: str, stored: dict[str, Any], found: dict[str, Any], tolerance: float) -> Iterator[Difference]:
    if stored.get("type") != found.get("type"):
        yield Difference(name, "form", np.inf, f"type {stored.get('type')}, now {found.get('type')}")
    if "codes" in stored and "codes" in found:
        yield from _of_labels(name, {"categories": stored["labels"]}, {"categories": found["labels"]})
        wrong = [place for place, (a, b) in enumerate(zip(stored["codes"], found["codes"])) if a != b]
        if wrong or len(stored["codes"]) != len(found["codes"]):
            yield Difference(name, "values", np.inf, f"{len(wrong)} cells have another category, the first {wrong[:1]}")
        return
    if "values" not in stored or "values" not in found:
        yield Difference(name, "form", np.inf, "numbers on one side, text on the other")
        return
    old, new = np.array(stored["values"], dtype=np.float64), np.array(found["values"], dtype=np.float64)
    if len(old) != len(new):
        yield Difference(name, "form", np.inf, f"{len(old)} numbers, now {len(new)}")
        return
    size, place = distance(old, new)
    if size > tolerance:
        yield Difference(name, "values", size, f"number {place} is {new[place]:.12g}, was {old[place]:.12g}")


def distance(old: np.ndarray, new: np.ndarray) -> tuple[float, int]:
    """The largest difference over the largest magnitude, and its place; infinite where NaN or infinity moved."""
    if not len(old):
        return 0.0, 0
    finite = np.isfinite(old)
    moved = (finite != np.isfinite(new)) | (~finite & ~((old == new) | (np.isnan(old) & np.isnan(new))))
    if moved.any():
        return np.inf, int(np.argmax(moved))
    scale = max(float(np.abs(old[finite]).max(initial=0.0)), SMALLEST)
    apart = np.where(finite, np.abs(np.where(finite, new, 0.0) - np.where(finite, old, 0.0)), 0.0) / scale
    return float(apart.max()), int(np.argmax(apart))


def _first_line(old: str | None, new: str | None) -> str:
    if old is None or new is None:
        return "text on one side only"
    before, after = old.splitlines(), new.splitlines()
    for place, (a, b) in enumerate(zip(before, after)):
        if a != b:
            return f"line {place + 1} is {b!r}, was {a!r}"
    return f"{len(after)} lines, were {len(before)}"
