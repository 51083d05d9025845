"""What a fitted MODL encoder tells of its columns: parts, costs and bounds; as tables, text and plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders.modl.column import MODLColumn
from tabsym.encoders.modl.show import describe_columns, parts_table, plot_parts
from tabsym.modl import Groups, Intervals


@dataclass(frozen=True)
class Certificate:
    """How good a partition is known to be.

    Attributes
    ----------
    lower_bound : float
        In nats; no partition costs less (-inf: nothing is known).
    gap : float
        (cost - lower_bound) / cost.
    is_optimal : bool
        The gap is 0 but for rounding.
    is_best_without_garbage : bool
        No partition without one of Khiops' garbage groups costs less.
    """

    lower_bound: float
    gap: float
    is_optimal: bool
    is_best_without_garbage: bool


class PartitionReport:
    """What `MODLEncoder` tells of its fitted columns; not public."""

    columns_: dict[str, MODLColumn]

    @property
    def partitions_(self) -> dict[str, Intervals | Groups]:
        """The parts of each column."""
        check_is_fitted(self, "columns_")
        return {name: state.fitted for name, state in self.columns_.items()}

    @property
    def levels_(self) -> dict[str, float]:
        """The Level of each column, greatest first."""
        levels = {name: one.partition.level for name, one in self.partitions_.items()}
        return dict(sorted(levels.items(), key=lambda item: -item[1]))

    @property
    def costs_(self) -> dict[str, float]:
        """The cost of each column's partition, in nats."""
        return {name: one.partition.cost for name, one in self.partitions_.items()}

    @property
    def null_costs_(self) -> dict[str, float]:
        """The cost of one part, in nats."""
        return {name: one.partition.null_cost for name, one in self.partitions_.items()}

    @property
    def certificates_(self) -> dict[str, Certificate]:
        """What is known of the optimum of each column."""
        found = {name: one.partition for name, one in self.partitions_.items()}
        return {
            name: Certificate(one.lower_bound, one.gap, one.is_optimal, one.is_best_without_garbage)
            for name, one in found.items()
        }

    def parts(self, column: str) -> pd.DataFrame:
        """A column's parts as a table: rows, share, and the target's distribution, mean and standard deviation."""
        return parts_table(self._fitted_column(column))

    def describe(self) -> str:
        """All columns by Level, with their parts, as text."""
        return describe_columns({name: self.partitions_[name] for name in self.levels_})

    def plot_partition(self, column: str, *, ax: Any = None) -> Any:
        """Draw a column's parts: width by rows, height by the target, a line for all rows (needs matplotlib).

        Parameters
        ----------
        column : str
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        return plot_parts(self._fitted_column(column), column, ax=ax)

    def _fitted_column(self, column: str) -> Intervals | Groups:
        if column not in self.partitions_:
            raise ValueError(
                f"There is no encoded column {column!r}; there are {', '.join(map(repr, self.partitions_))}."
            )
        return self.partitions_[column]
