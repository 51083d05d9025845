"""The report of a fitted MODL encoder: parts, costs and bounds of its columns, stability, and pictures."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import UNSEEN
from tabsym.encoders.lookups import MISSING
from tabsym.encoders.modl_column import MODLColumn, estimates
from tabsym.frame import check_weights
from tabsym.messages import check_option, plural
from tabsym.modl import Groups, Intervals
from tabsym.plots.style import (
    BLUE,
    INK,
    ORANGE,
    PALE_BLUE,
    Raw,
    axes_of,
    bar,
    cut,
    details,
    dressed,
    fragment,
    legend,
    paragraph,
    plain,
    table,
    titled,
)
from tabsym.plots.terms import diverging

_MAX_LINES = 12  # lines of a column in the text
_MAX_CLASSES = 6
_MAX_COLUMNS = 60  # of the page in a notebook


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
        levels = {name: fitted.partition.level for name, fitted in self.partitions_.items()}
        return dict(sorted(levels.items(), key=lambda item: -item[1]))

    @property
    def costs_(self) -> dict[str, float]:
        """The cost (description length) of each column's partition, in nats."""
        return {name: fitted.partition.cost for name, fitted in self.partitions_.items()}

    @property
    def likelihood_costs_(self) -> dict[str, float]:
        """The part of each cost that is the target's negative log-likelihood given the partition, in nats."""
        return {name: likelihood_cost(fitted) for name, fitted in self.partitions_.items()}

    @property
    def prior_costs_(self) -> dict[str, float]:
        """The rest of each cost: the partition's own negative log-probability, its class shares included, in nats."""
        of_target = self.likelihood_costs_
        return {name: cost - of_target[name] for name, cost in self.costs_.items()}

    @property
    def null_costs_(self) -> dict[str, float]:
        """The cost without the column (one part), in nats."""
        return {name: fitted.partition.null_cost for name, fitted in self.partitions_.items()}

    @property
    def certificates_(self) -> dict[str, Certificate]:
        """A lower bound and the optimality gap of each column's partition."""
        partitions = {name: fitted.partition for name, fitted in self.partitions_.items()}
        return {
            name: Certificate(one.lower_bound, one.gap, one.is_optimal, one.is_best_without_garbage)
            for name, one in partitions.items()
        }

    @property
    def iv_(self) -> dict[str, float]:
        """The information value of each column, greatest first; for two classes only.

        The sum of the `iv` of its parts (see `parts`).
        """
        fitted = self.partitions_
        if not all(_has_two_classes(column) for column in fitted.values()):
            raise AttributeError("iv_ is there for two classes only; levels_ is for any target.")
        values = {name: float(evidence(column.target.counts)[1].sum()) for name, column in fitted.items()}
        return dict(sorted(values.items(), key=lambda item: -item[1]))

    def psi(
        self,
        X_expected: Any,
        X_actual: Any,
        by: str = "column",
        *,
        weight_expected: Any = None,
        weight_actual: Any = None,
    ) -> pd.DataFrame:
        """The population stability index (PSI) of the encoded columns between two samples.

        It is the sum of ``(actual - expected) * ln(actual / expected)`` over the parts of a column, where expected and
        actual are the shares of rows. A part without rows in one of the samples counts as half a row there.

        Parameters
        ----------
        X_expected, X_actual : dataframe or array-like
            Such as the training rows, and those of last month; with the columns of fit.
        by : {"column", "part"}, default "column"
            A row for each column, the greatest PSI first, or for each part.
        weight_expected, weight_actual : array-like of shape (n_rows,), optional
            Of the rows of each sample. Shares are those of weights then, and half a row is half of the mean weight
            above 0: only relative weights matter.

        Returns
        -------
        pandas.DataFrame
            `column` and `psi`; of parts also `part`, `expected`, `actual` (shares) and what it adds, `psi`. Rows that
            are encoded as NaN are the parts "(missing)" and "(unknown)".

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import MODLEncoder
        >>> X = pd.DataFrame({"age": range(200)})
        >>> encoder = MODLEncoder().fit(X, [int(age > 120) for age in X["age"]])
        >>> encoder.psi(X, X[X["age"] > 50]).round(3)
          column    psi
        0    age  0.074
        """
        before, after = (
            PartSample(self._parts(table), check_weights(weight, len(table), name))  # type: ignore[attr-defined]
            for table, weight, name in (
                (self._read_as_fitted(X_expected), weight_expected, "weight_expected"),  # type: ignore[attr-defined]
                (self._read_as_fitted(X_actual), weight_actual, "weight_actual"),  # type: ignore[attr-defined]
            )
        )
        return stability_table({name: fitted.labels for name, fitted in self.partitions_.items()}, before, after, by)

    def parts(self, column: str) -> pd.DataFrame:
        """A column's intervals or groups as a frame: rows, their share, and the target's distribution, mean and sd.

        For two classes also `woe`, the weight of evidence: the log of the part's share of the second class over its
        share of the first one, as ``output="logodds"`` has it; and `iv`, the difference of the two shares times that.
        Shares are smoothed by one row of each class in each part, so that both are finite.

        Parameters
        ----------
        column : str

        Returns
        -------
        pandas.DataFrame with a row for each part

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import MODLEncoder
        >>> X = pd.DataFrame({"city": ["Bonn", "Rome", "Lyon"] * 100, "price": range(300)})
        >>> y = X["city"].eq("Rome").astype(int)
        >>> encoder = MODLEncoder().fit(X, y)
        >>> encoder.parts("city")[["part", "rows", "P(1)"]]
                   part   rows  P(1)
        0  {Bonn, Lyon}  200.0   0.0
        1        {Rome}  100.0   1.0
        """
        return parts_table(self._fitted_column(column))

    def describe(self, column: str | None = None) -> str:
        """All columns by Level, or one, with their intervals or groups, as text.

        Parameters
        ----------
        column : str, optional

        Returns
        -------
        str

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import MODLEncoder
        >>> X = pd.DataFrame({"city": ["Bonn", "Rome", "Lyon"] * 100, "price": range(300)})
        >>> y = X["city"].eq("Rome").astype(int)
        >>> encoder = MODLEncoder().fit(X, y)
        >>> print(encoder.describe("city").splitlines()[0])
        city: Level 0.92539, 2 groups, cost 14.500 (prior 14.500, likelihood 0.000; null 194.335, khiops, optimal)
        """
        names = list(self.levels_) if column is None else [column]
        return describe_columns({name: self._fitted_column(name) for name in names})

    def plot_partition(self, column: str, *, ax: Any = None) -> Any:
        """Draw a column's parts: width by rows, height by the target, a line for all rows (needs matplotlib).

        Parameters
        ----------
        column : str
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import MODLEncoder
        >>> X = pd.DataFrame({"city": ["Bonn", "Rome", "Lyon"] * 100, "price": range(300)})
        >>> y = X["city"].eq("Rome").astype(int)
        >>> encoder = MODLEncoder().fit(X, y)
        >>> len(encoder.plot_partition("city").patches)
        2
        """
        return plot_parts(self._fitted_column(column), column, ax=ax)

    def plot_grid(self, column: str, *, ax: Any = None) -> Any:
        """Draw the grid of a column's parts and the target's intervals, in regression (needs matplotlib).

        Widths and heights are by rows, so that the area of a cell is the rows that it would have if the column said
        nothing on the target; the colour is the ratio of the rows that it has to these.

        Parameters
        ----------
        column : str
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import MODLEncoder
        >>> X = pd.DataFrame({"age": range(400)})
        >>> y = [float(min(age, 300)) for age in X["age"]]
        >>> encoder = MODLEncoder(target_type="continuous").fit(X, y)
        >>> encoder.plot_grid("age").get_ylabel()
        'target'
        """
        fitted = self._fitted_column(column)
        if fitted.target.is_classes:
            raise ValueError("The target is of classes, which have no intervals; use plot_partition.")
        return plot_cells(fitted, column, ax=ax)

    def _html_repr(self) -> str:
        """What a notebook shows: the columns by Level and their parts, or scikit-learn's diagram before fit."""
        return partitions_html(self) if hasattr(self, "columns_") else str(estimator_html_repr(self))

    def _fitted_column(self, column: str) -> Intervals | Groups:
        if column not in self.partitions_:
            is_known = column in getattr(self, "feature_names_in_", ())
            what = f"Column {column!r} was not encoded" if is_known else f"There is no column {column!r}"
            names = ", ".join(map(repr, self.partitions_)) or "none"
            raise ValueError(f"{what}; the encoded columns are {names} (see cols and numeric).")
        return self.partitions_[column]


_EMPTY_ROWS = 0.5  # rows that a part without rows counts as


@dataclass(frozen=True)
class PartSample:
    """The part of each row (n,) by column, negative where it is NaN; and the weights (n,) of the rows."""

    parts: Mapping[str, NDArray[Any]]
    weight: NDArray[np.float64] | None = None

    def rows(self, column: str, n: int) -> NDArray[np.float64]:
        """Rows of each part, then of missing values and unknown categories that are encoded as NaN; weights have a
        mean of 1 among those above 0."""
        parts = self.parts[column]
        positions = np.where(parts == MISSING, n, np.where(parts == UNSEEN, n + 1, parts)).astype(np.int64)
        weight = None if self.weight is None else self.weight / self.weight[self.weight > 0].mean()
        return np.bincount(positions, weight, minlength=n + 2).astype(np.float64)


def stability_table(labels: Mapping[str, list[str]], before: PartSample, after: PartSample, by: str) -> pd.DataFrame:
    """The index by column or by part."""
    check_option("by", by, ("column", "part"))
    for sample in (before, after):
        if any(not len(parts) for parts in sample.parts.values()):
            raise ValueError("psi needs rows in both samples, and one has none.")
    tables = [_stability_of(name, parts, before, after) for name, parts in labels.items()]
    head = pd.DataFrame({"column": pd.Series(dtype=str), "part": [], "expected": [], "actual": [], "psi": []})
    table = pd.concat(tables, ignore_index=True) if tables else head
    if by == "part":
        return table
    total = table.groupby("column", sort=False)["psi"].sum().sort_values(ascending=False, kind="stable")
    return total.reset_index()


def _stability_of(name: str, labels: list[str], before: PartSample, after: PartSample) -> pd.DataFrame:
    rows = [sample.rows(name, len(labels)) for sample in (before, after)]
    either = (rows[0] > 0) | (rows[1] > 0)
    expected, actual = (np.where(either & (one == 0), _EMPTY_ROWS, one) / one.sum() for one in rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        psi = np.where(either, (actual - expected) * np.log(actual / expected), 0.0)
    names = [*labels, "(missing)", "(unknown)"]
    table = pd.DataFrame({"column": name, "part": names, "expected": expected, "actual": actual, "psi": psi})
    return table[either | (np.arange(len(names)) < len(labels))]


def likelihood_cost(fitted: Intervals | Groups) -> float:
    """sum ln N_i! / prod N_ij! over the parts i (Boulle 2006), and ln N_j! of intervals j of a number: ranks in them.

    The other terms of the criterion are the prior: the number of parts, which they are, and the class shares in each.
    """
    counts = fitted.partition.counts
    cost = float(gammaln(counts.sum(axis=1) + 1).sum() - gammaln(counts + 1).sum())
    return cost if fitted.target.is_classes else cost + float(gammaln(counts.sum(axis=0) + 1).sum())


def partitions_html(encoder: PartitionReport) -> str:
    """The columns by Level, and the parts of each, which a click shows."""
    levels = encoder.levels_
    most = max(levels.values(), default=0.0) or 1.0
    rows, parts = [], []
    for name in list(levels)[:_MAX_COLUMNS]:
        fitted = encoder.partitions_[name]
        kind = "groups" if isinstance(fitted, Groups) else "intervals"
        one = fitted.partition
        rows.append([name, f"{levels[name]:.5f}", Raw(bar(levels[name] / most)), f"{one.n_parts:,}", kind,
                     f"{one.cost:,.1f}", f"{one.null_cost:,.1f}"])  # fmt: skip
        if one.n_parts > 1:
            shown = parts_table(fitted)
            cells = [[_cell_text(cell) for cell in row] for row in shown.head(_MAX_LINES).itertuples(index=False)]
            more = paragraph(f"{_MAX_LINES} of {len(shown)} parts.", muted=True) if len(shown) > _MAX_LINES else ""
            parts.append(details(f"{name}: {one.n_parts} {kind}", table(list(map(str, shown.columns)), cells) + more))
    left = len(levels) - len(rows)
    more = paragraph(f"{plural(left, 'further column')}; see levels_.", muted=True) if left > 0 else ""
    heading = f"{type(encoder).__name__}: {plural(len(levels), 'column')} by Level, the normalized gain of their parts"
    columns = ["column", "Level", "", "parts", "of", "cost", "null cost"]
    return fragment(paragraph(heading), table(columns, rows), more, *parts)


def _cell_text(value: Any) -> str:
    """A cell of `parts_table`."""
    if isinstance(value, str):
        return value
    return "-" if pd.isna(value) else f"{value:,.0f}" if float(value).is_integer() and value > 1 else f"{value:.4g}"


def parts_table(fitted: Intervals | Groups) -> pd.DataFrame:
    """The parts of a column: label, rows, share of the rows, and the target in each."""
    target, counts = fitted.target, fitted.partition.counts
    rows = counts.sum(axis=1)
    table = pd.DataFrame({"part": fitted.labels, "rows": rows, "share": rows / rows.sum()})
    for name, column in zip(target.names, target.counts.T, strict=True):
        table[f"P({name})"] = column / np.where(rows > 0, rows, np.nan)
    if _has_two_classes(fitted):
        table["woe"], table["iv"] = evidence(target.counts)
    if target.means is not None and not target.is_classes:
        table["mean"], table["sd"] = target.means, target.deviations
    return table


def evidence(counts: Any) -> tuple[Any, Any]:
    """The weight of evidence (I,) of parts with these counts (I, 2), and what each adds to the information value.

    A part without rows has none of either.
    """
    has_rows = counts.any(axis=1)
    woe = estimates(counts, "logodds")[:, 0]
    shares = (counts + 1) / (counts.sum(axis=0) + has_rows.sum())
    return woe, np.where(has_rows, (shares[:, 1] - shares[:, 0]) * woe, 0.0)


def _has_two_classes(fitted: Intervals | Groups) -> bool:
    return fitted.target.is_classes and len(fitted.target.names) == 2


def describe_columns(columns: dict[str, Intervals | Groups]) -> str:
    """Columns in the order given, each with its Level, costs and parts."""
    lines: list[str] = []
    for name, fitted in columns.items():
        one, of_target = fitted.partition, likelihood_cost(fitted)
        kind = "group" if isinstance(fitted, Groups) else "part" if fitted.specials else "interval"
        proof = "optimal" if one.is_optimal else "no bound" if np.isinf(one.gap) else f"gap {one.gap:.1e}"
        if one.is_best_without_garbage and not one.is_optimal:
            proof = "optimal but for garbage groups" + ("" if np.isinf(one.gap) else f", gap {one.gap:.1e}")
        lines.append(
            f"{name}: Level {one.level:.5f}, {one.n_parts} {kind}{'s' * (one.n_parts > 1)}, cost {one.cost:.3f} "
            f"(prior {one.cost - of_target:.3f}, likelihood {of_target:.3f}; null {one.null_cost:.3f}, "
            f"{one.criterion}, {proof})"
        )
        if isinstance(fitted, Intervals) and fitted.error:
            lines.append(
                f"    counted in cells of neighbouring values: bounds to within {plural(round(fitted.error), 'row')}"
            )
        if one.n_parts == 1:
            lines += ["    uninformative about the target on its own", ""]
            continue
        lines += [f"    {line}" for line in _part_lines(fitted)] + [""]
    return "\n".join(lines).rstrip()


def print_heads(columns: dict[str, Intervals | Groups]) -> None:
    """The line of each column, without its parts, to standard error."""
    for line in describe_columns(columns).splitlines():
        if line[:1].strip():
            print(line, file=sys.stderr)


def _part_lines(fitted: Intervals | Groups) -> list[str]:
    table = parts_table(fitted)
    columns = [c for c in table.columns if c.startswith("P(")]
    if "mean" in table:
        columns = ["mean", "sd"]
    elif len(columns) > _MAX_CLASSES:
        total = fitted.target.counts.sum(axis=0)
        columns = [columns[j] for j in sorted(np.argsort(-total, kind="stable")[:_MAX_CLASSES])]
    shown = table.head(_MAX_LINES)[["part", "rows", "share", *columns]].copy()
    shown["part"] = [cut(text, 44) for text in shown["part"]]
    text = shown.to_string(index=False, float_format=lambda value: f"{value:.4g}").splitlines()
    more = len(table) - len(shown)
    return [*text, f"... and {more} more"] if more > 0 else text


# -- pictures --------------------------------------------------------------------------------------

_MAX_COLOURS = 12  # classes with a colour and a line of their own
_LINES_BETWEEN = 60  # parts up to which white lines keep them apart


def plot_parts(fitted: Intervals | Groups, name: str, *, ax: Any = None) -> Any:
    """Bars as wide as the part has rows: the target's distribution in each, and a line for that of all rows."""
    target = fitted.target
    rows = fitted.partition.counts.sum(axis=1)
    widths = rows / rows.sum()
    lefts = np.cumsum(widths) - widths
    ax = axes_of(ax, 8, 4.5)
    style: dict[str, Any] = {"align": "edge"}
    if len(rows) <= _LINES_BETWEEN:
        style |= {"edgecolor": "#ffffff80", "linewidth": 0.8}
    if target.means is not None:
        _plot_means(ax, target, lefts, widths, style)
    else:
        _plot_shares(ax, target, lefts, widths, style)
    _label_parts(ax.xaxis, fitted.labels, lefts, widths)
    ax.set_xlim(0, 1)
    level = fitted.partition.level
    titled(ax, f"{name}: {plural(len(rows), 'part')}, Level {level:.4f} (width: rows)")
    return dressed(ax)


def _plot_means(ax: Any, target: Any, lefts: Any, widths: Any, style: dict[str, Any]) -> None:
    ax.bar(lefts, target.means, widths, color=PALE_BLUE, **style)
    if not target.is_classes:
        middle = lefts + widths / 2
        ax.errorbar(middle, target.means, target.deviations, fmt="none", ecolor=BLUE, elinewidth=0.8, capsize=2)
    ax.axhline(float(widths @ target.means), color=ORANGE, linewidth=1.2, linestyle="--", label="all rows")
    ax.set_ylabel(plain(f"P({target.names[1]})" if target.is_classes else "mean target (bars: sd)"))
    legend(ax, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _plot_shares(ax: Any, target: Any, lefts: Any, widths: Any, style: dict[str, Any]) -> None:
    from matplotlib import colormaps

    shares = target.counts / np.maximum(target.counts.sum(axis=1, keepdims=True), 1e-300)
    largest = sorted(np.argsort(-target.counts.sum(axis=0), kind="stable")[:_MAX_COLOURS].tolist())
    colours = dict(zip(largest, (colormaps["tab20"](k) for k in range(_MAX_COLOURS)), strict=False))
    bottom, others = np.zeros(len(widths)), False
    for j, name in enumerate(target.names):
        label = plain(str(name))
        if j not in colours:  # one label for all of them
            label, others = "_" if others else plural(len(target.names) - len(largest), "other"), True
        ax.bar(lefts, shares[:, j], widths, bottom=bottom, color=colours.get(j, "#c9c9c9"), label=label, **style)
        bottom += shares[:, j]
    few = len(target.names) <= _MAX_COLOURS
    for height in np.cumsum(widths @ shares)[:-1] if few else ():
        ax.axhline(float(height), color=INK, linewidth=0.5, linestyle="--")
    ax.set_ylabel("P(class | part)" + ("; dashed: all rows" if few else ""))
    legend(ax, loc="upper left", bbox_to_anchor=(1.01, 1.0), reverse=True)  # as they lie


def plot_cells(fitted: Intervals | Groups, name: str, *, ax: Any = None) -> Any:
    """The cells of a grid by rows, coloured by the ratio of their rows to those of independence."""
    from matplotlib.colors import TwoSlopeNorm

    counts = fitted.target.counts
    ax = axes_of(ax, 8, 5)
    total = counts.sum()
    across, down = counts.sum(axis=1) / total, counts.sum(axis=0) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log2(counts / (total * np.outer(across, down)))
    known = np.where(np.isfinite(ratio), ratio, np.nan)
    reach = max(1.0, float(np.nanmax(np.abs(known))))
    edges = [np.append(0.0, np.cumsum(sizes)) for sizes in (across, down)]
    style = {"cmap": diverging(), "norm": TwoSlopeNorm(0.0, -reach, reach)}
    cells = ax.pcolormesh(*edges, np.ma.masked_invalid(known.T), edgecolors="#ffffff40", linewidth=0.4, **style)
    _label_parts(ax.xaxis, fitted.labels, edges[0][:-1], across)
    _label_parts(ax.yaxis, list(map(str, fitted.target.names)), edges[1][:-1], down, rotation=0)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel(plain(cut(name, 60)))
    ax.set_ylabel("target")
    bar = ax.figure.colorbar(cells, ax=ax, fraction=0.05, pad=0.02)
    ticks = [tick for tick in bar.get_ticks() if abs(tick) <= reach]
    bar.set_ticks(ticks, labels=[f"{2.0**tick:.3g}" for tick in ticks])
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)
    bar.set_label("rows, over those of independence", fontsize=8, color=INK)
    parts, intervals = plural(counts.shape[0], "part"), plural(counts.shape[1], "interval")
    titled(ax, f"{name}: {parts} by {intervals} of the target (sizes: rows)")
    return dressed(ax)


def _label_parts(axis: Any, labels: list[str], lefts: Any, widths: Any, rotation: float = 35) -> None:
    """Labels of the parts, where there is room for one."""
    middles, shown = lefts + widths / 2, [0]
    for i in range(1, len(labels)):
        if middles[i] - middles[shown[-1]] >= 0.03:
            shown.append(i)
    ticks = [float(middles[i]) for i in shown]
    axis.set_ticks(ticks, [plain(cut(labels[i], 28)) for i in shown], rotation=rotation, ha="right", fontsize=8)
