"""What both studies share: a CSV that grows by one row per fit, so that a run can be stopped and resumed."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parent / "results"


class FitLog:
    """A CSV of fits; `key` names the columns that tell one fit from another."""

    def __init__(self, path: Path, key: list[str], values: list[str]) -> None:
        self.path, self.key, self.fields = path, key, key + values
        path.parent.mkdir(exist_ok=True, parents=True)
        if not path.exists():
            self._write(self.fields)
        self.done = {self._key_of(row) for row in self.read().to_dict("records")}

    def __contains__(self, row: dict) -> bool:
        return self._key_of(row) in self.done

    def add(self, row: dict) -> None:
        """Append one fit and say so."""
        self._write([f"{row[name]:.6g}" if isinstance(row[name], float) else row[name] for name in self.fields])
        self.done.add(self._key_of(row))
        print(", ".join(f"{name} {row[name]:.5g}" if _is_float(row[name]) else str(row[name]) for name in self.fields))

    def read(self) -> pd.DataFrame:
        return pd.read_csv(self.path)

    def _key_of(self, row: dict) -> tuple[str, ...]:
        return tuple(f"{row[name]:.6g}" if not isinstance(row[name], str) else row[name] for name in self.key)

    def _write(self, values: list) -> None:
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(values)


def _is_float(value: object) -> bool:
    return isinstance(value, float)


def plain(value: float) -> str:
    """A number without a leading zero: .03, 1, 300."""
    return f"{value:g}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:g}"
