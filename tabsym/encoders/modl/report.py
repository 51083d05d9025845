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
    """How close a partition is known to be to the optimal one.

    Attributes
    ----------
    lower_bound : float
        In nats, of the cost of any partition (-inf: none was computed).
    gap : float
        The optimality gap: (cost - lower_bound) / cost.
    is_optimal : bool
        The gap is 0 up to rounding.
    is_best_without_garbage : bool
        The partition is optimal among those without a garbage group (Khiops' group of all infrequent categories).
    """

    lower_bound: float
    gap: float
    is_optimal: bool
    is_best_without_garbage: bool


class PartitionReport:
    """Report of the fitted columns of `MODLEncoder`; not public."""

    columns_: dict[str, MODLColumn]

    @property
    def partitions_(self) -> dict[str, Intervals | Groups]:
        """The parts of each column."""
        check_is_fitted(self, "columns_")
        return {name: state.fitted for name, state in self.columns_.items()}

    @property
    def levels_(self) -> dict[str, float]:
        """Khiops' Level of each column, greatest first: the normalized gain 1 - cost / null cost; 0: uninformative."""
        levels = {name: one.partition.level for name, one in self.partitions_.items()}
        return dict(sorted(levels.items(), key=lambda item: -item[1]))

    @property
    def costs_(self) -> dict[str, float]:
        """The cost (description length) of each column's partition, in nats."""
        return {name: one.partition.cost for name, one in self.partitions_.items()}

    @property
    def null_costs_(self) -> dict[str, float]:
        """The cost without the column (one part), in nats."""
        return {name: one.partition.null_cost for name, one in self.partitions_.items()}

    @property
    def certificates_(self) -> dict[str, Certificate]:
        """A lower bound and the optimality gap of each column's partition."""
        found = {name: one.partition for name, one in self.partitions_.items()}
        return {
            name: Certificate(one.lower_bound, one.gap, one.is_optimal, one.is_best_without_garbage)
            for name, one in found.items()
        }

    def parts(self, column: str) -> pd.DataFrame:
        """A column's intervals or groups as a frame: rows, their share, and the target's distribution, mean and sd."""
        return parts_table(self._fitted_column(column))

    def describe(self) -> str:
        """All columns by Level, with their intervals or groups, as text."""
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
