"""What a fitted column knows: its parts, and the output columns that stand for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import Categories, Contingency
from tabsym.codes.threads import in_threads, one_blas_thread
from tabsym.modl import Groups, Intervals, Settings, fit_column

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MODLColumn:
    """State of one column: its parts, and what each part is encoded as.

    `alphabet` and `part_of` (categories,) are of categorical columns; `values` (I, outputs) is None for groups as
    categories.
    """

    name: str
    fitted: Intervals | Groups
    names: list[str]
    values: Floats | None
    alphabet: Categories | None = None
    part_of: NDArray[np.int64] | None = None

    def constant_names(self) -> list[str]:
        """Output columns in which all parts are the same."""
        if self.values is None:
            return self.names if self.fitted.partition.n_parts == 1 else []
        same = (self.values == self.values[:1]).all(axis=0)
        return [name for name, constant in zip(self.names, same, strict=True) if constant]


def encoded_column(name: str, fitted: Intervals | Groups, output: str) -> MODLColumn:
    """The state of a column that is encoded as `output` says."""
    names, values = _outputs(name, fitted, output)
    return _with_alphabet(name, fitted, names, values)


@one_blas_thread()
def partition_columns(
    tables: dict[str, Contingency], settings: Settings, *, classes: bool, n_jobs: int | None
) -> dict[str, Intervals | Groups]:
    """The parts of every column, from its counts."""
    if settings.monotonic and classes and any(len(one.targets) > 2 for one in tables.values()):
        raise ValueError("monotonic=True needs two classes or a continuous target; set it to False.")

    def learn(table: Contingency) -> Intervals | Groups:
        return fit_column(table, settings, classes=classes)

    return dict(zip(tables, in_threads(learn, list(tables.values()), n_jobs), strict=True))


def plain_column(name: str, fitted: Intervals | Groups) -> MODLColumn:
    """A state that knows parts, without outputs."""
    return _with_alphabet(name, fitted, [name], None)


def _with_alphabet(name: str, fitted: Intervals | Groups, names: list[str], values: Floats | None) -> MODLColumn:
    if isinstance(fitted, Intervals):
        return MODLColumn(name, fitted, names, values)
    return MODLColumn(name, fitted, names, values, Categories(name, fitted.symbols), fitted.labels_of)


def _outputs(name: str, fitted: Intervals | Groups, output: str) -> tuple[list[str], Floats | None]:
    """Names of the output columns, and what each part is in them (I, outputs)."""
    target, n = fitted.target, fitted.partition.n_parts
    if output == "group":
        return [name], None
    if output == "onehot":
        return [f"{name}_{part}" for part in range(1, n + 1)], np.eye(n)  # boosters refuse brackets in names
    if output == "mean":
        if target.means is None:
            raise ValueError(
                f"output='mean' needs regression or two classes, and the target has {len(target.names)} classes; "
                "use output='probability'."
            )
        return [name], target.means[:, None]
    if output == "logodds" and not target.is_classes:
        raise ValueError(
            "output='logodds' needs classification, and the target is continuous; use 'mean' or 'probability'."
        )
    alone = output == "logodds" and len(target.names) == 2
    words = target.names if target.is_classes else range(1, len(target.names) + 1)
    names = [name] if alone else [f"{name}_{word}" for word in words]
    return names, estimates(target.counts, output)


def estimates(counts: Floats, output: str) -> Floats:
    """The smoothed shares or log odds (I, outputs) of parts with these counts (I, T)."""
    n, classes = counts.shape
    if output == "probability":
        return np.asarray((counts + 1) / (counts.sum(axis=1, keepdims=True) + classes))
    others = counts.sum(axis=1, keepdims=True) - counts
    odds = np.log((counts + 1) / (counts.sum(axis=0) + n)) - np.log((others + 1) / (others.sum(axis=0) + n))
    return np.asarray(odds[:, 1:] if classes == 2 else odds)
