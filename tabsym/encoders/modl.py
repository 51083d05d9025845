"""MODL as a transformer: columns cut into intervals or grouped, by what tells the target apart."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tabsym.codes import UNSEEN, Alphabet, RawCodes, encode_column, encode_columns
from tabsym.codes.threads import in_threads
from tabsym.encoders.base import MISSING, ColumnEncoder, numeric_matrix
from tabsym.encoders.folds import check_each_row_once, split_rows
from tabsym.encoders.modl_options import check_modl_options, check_piece, check_target_piece, is_classification
from tabsym.encoders.modl_show import describe_columns, parts_table, plot_parts
from tabsym.modl import Groups, Intervals, Settings, fit_column
from tabsym.stats import Contingency, count_numbers, count_symbols, merge_tables
from tabsym.table import (
    Column,
    Kind,
    Labels,
    Table,
    assemble_frame,
    check_classes,
    check_regression_target,
    check_target,
    check_weights,
    match_features,
    read_table,
    remember_features,
    symbolic_columns,
)

Floats = NDArray[np.float64]

MOST_TARGETS = 65_536
"""Continuous targets with more distinct values are taken in so many cells of neighbours, each at its mean."""
_OF_TARGET = ("probability", "logodds", "mean")


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


@dataclass(frozen=True)
class MODLColumn:
    """State of one column: its parts, and what each part is encoded as.

    `alphabet` and `part_of` (symbols,) are of symbolic columns; `values` (I, outputs) is None for groups as categories.
    """

    name: str
    fitted: Intervals | Groups
    names: list[str]
    values: Floats | None
    alphabet: Alphabet | None = None
    part_of: NDArray[np.int64] | None = None


class MODLEncoder(ColumnEncoder):
    """Replace each column by its Bayes-optimal intervals (numbers) or groups (symbols).

    The partition is the one of least cost in nats, a trade between how simple it is and how well it
    tells the target's classes apart; a column that says nothing about the target becomes one part.

    Parameters
    ----------
    output : {"group", "onehot", "probability", "logodds", "mean"}, default "group"
        "group": categories with readable labels, ``]21.5; 23.5]`` and ``{a, b}``, ordered for intervals; for
        arrays, and with ``return_df=False``, the number of the part.
        "onehot": a 0/1 column for each part, numbered from 1 in the order of ``partitions_[column].labels``.
        "probability": a column for each class (for each interval of a regression's target, numbered), its
        Laplace-smoothed share in the part. "logodds": ln P(part | class) minus
        ln P(part | other classes), a column for each class, one (of the second class) for two classes.
        "mean": the mean target of the part, for regressions and two classes.
    numeric : {"discretize", "passthrough"}, default "discretize"
        Whether, without `cols`, numeric columns are encoded, booleans as symbols. Under "passthrough" only text, object
        and category columns are, and numeric columns named in `cols` are taken as symbols.
    criterion : {"khiops", "page"}, default "khiops"
        The criterion of Khiops 11, or the one printed in its documentation (Boulle 2006); see Notes.
    n_candidates : int, default None
        Columns among which each is a candidate, which enters the cost under "khiops"; None: those encoded
        together; 1: a Level that does not depend on the other columns.
    max_parts : int, default None
        At most so many parts in a column.
    min_part_count : int, default 1
        At least so many rows (or so much weight) in a part.
    monotonic : bool, default False
        Cut numeric columns so that the second class's share, or the mean target, only rises or only falls.
    unseen : {"default_group", "missing", "error"}, default "default_group"
        Where a symbol that fit has not seen goes: to the group of the rarest symbol (as in Khiops), or to
        that of the missing ones (to the default group where fit saw none missing).
    time_limit : float, default None
        Seconds for each column; then the best partition by then is kept. None: optimal up to 4,096 distinct
        values, close to it beyond. With a limit the search for a proof goes on beyond, too.
    target_type : {"auto", "classes", "continuous"}, default "auto"
        What `y` holds. "auto": numbers with a fraction, or with more than 100 distinct values, are continuous.
    cv : int, splitter or None, default 5
        For the outputs that estimate the target ("probability", "logodds", "mean"): `fit_transform` encodes each
        row by parts learned on the other folds; None: as ``fit(X, y).transform(X)``, which leaks.
    sparse_output : bool, default False
        For "onehot": a CSR matrix.
    cols : list of str (or positions, for arrays), default None
        Columns to encode; all others pass through untouched, in place.
    drop_invariant : bool, default False
        Drop output columns that are constant: columns of one part say nothing about the target.
    return_df : bool, default True
        Return a frame of the kind given (pandas for arrays); False: an array.
    handle_missing : {"value", "return_nan", "error"}, default "value"
        "value": missing is a symbol of its own, or lies below all numbers.
    handle_unknown : {"value", "return_nan", "error"}, default "value"
        For symbols that fit has not seen. "value": as `unseen` says.
    verbose : int, default 0
        1 writes a line per column to standard error.
    random_state : int, default 0
        Of the local search over groups of more than two classes, and of the folds.
    n_jobs : int or None, default None
        Threads; the result is the same for any number.

    Attributes
    ----------
    levels_ : dict of str -> float
        1 - cost / null cost of each column, greatest first: a ranking. 0: the column alone says nothing.
    costs_, null_costs_ : dict of str -> float
        In nats, of the partition and of one part.
    certificates_ : dict of str -> Certificate
        Lower bounds. Beyond 12 symbols they are known for two classes only, and do not cover
        Khiops' garbage groups; there is none for regressions.
    partitions_ : dict of str -> Intervals or Groups
        With `bounds` or `groups`, and `labels`, `target.counts`, `partition`.
    classes_ : ndarray
        For classes.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Notes
    -----
    Intervals are right-closed; bounds lie halfway between neighbouring values. Infinite numbers are errors. Integer
    weights are the same as repeated rows; fractional ones go through the gamma function. The criteria are
    those of Boulle, "MODL: a Bayes optimal discretization method for continuous attributes" (2006), and of Khiops 11.
    `inverse_transform` of "group" gives the middle row's value of an interval, the most frequent symbol of a group.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import MODLEncoder
    >>> X = pd.DataFrame({"age": range(200), "colour": ["red", "blue", "green", "grey"] * 50})
    >>> y = [int(age > 120) for age in X["age"]]
    >>> encoder = MODLEncoder().fit(X, y)
    >>> encoder.partitions_["age"].labels
    [']-inf; 120.5]', ']120.5; +inf[']
    >>> encoder.levels_["colour"]  # says nothing about y
    0.0
    """

    def __init__(
        self,
        *,
        output="group",
        numeric="discretize",
        criterion="khiops",
        n_candidates=None,
        max_parts=None,
        min_part_count=1,
        monotonic=False,
        unseen="default_group",
        time_limit=None,
        target_type="auto",
        cv=5,
        sparse_output=False,
        cols=None,
        drop_invariant=False,
        return_df=True,
        handle_missing="value",
        handle_unknown="value",
        verbose=0,
        random_state=0,
        n_jobs=None,
    ):
        self.output = output
        self.numeric = numeric
        self.criterion = criterion
        self.n_candidates = n_candidates
        self.max_parts = max_parts
        self.min_part_count = min_part_count
        self.monotonic = monotonic
        self.unseen = unseen
        self.time_limit = time_limit
        self.target_type = target_type
        self.cv = cv
        self.sparse_output = sparse_output
        self.cols = cols
        self.drop_invariant = drop_invariant
        self.return_df = return_df
        self.handle_missing = handle_missing
        self.handle_unknown = handle_unknown
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MODLEncoder:
        """Partition the columns.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
            Classes or numbers.
        sample_weight : array-like of shape (n_rows,), optional
            Rows of weight 0 count as absent.

        Returns
        -------
        self
        """
        table, tables, classes = self._count(X, y, sample_weight)
        self._learn(table, tables, classes)
        self.__dict__.pop("tables_", None)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MODLEncoder:
        """Add a piece of a table to the counts, and partition again.

        The counts add up, so the parts are those of `fit` on all pieces together. `fit` keeps no counts: after it,
        the first piece begins anew. A numeric column with
        more than 1,048,576 distinct values is counted in so many cells of neighbouring values, and
        ``partitions_[column].error`` says by how many rows a bound can then be misplaced.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
            Classes need not all occur in the first piece; two must by the end of it.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "tables_")
        table, tables, classes = self._count(X, y, sample_weight, first=first)
        if not first:
            tables = self._added(tables)
        self._learn(table, tables, classes, remember=first)
        self.tables_: dict[str, Contingency] = tables
        return self

    def merge(self, other: MODLEncoder) -> MODLEncoder:
        """Add the counts of another encoder, and partition again: as if both had seen all rows.

        Parameters
        ----------
        other : MODLEncoder
            Both must have been fitted by `partial_fit`, which keeps the counts, on the same columns.

        Returns
        -------
        self
        """
        if not isinstance(other, MODLEncoder):
            raise TypeError(f"merge takes another MODLEncoder, not {other!r}; fit one by partial_fit.")
        for one in (self, other):
            if not hasattr(one, "tables_"):
                raise ValueError("merge needs the counts, which fit does not keep; fit both encoders by partial_fit.")
        if set(self.tables_) != set(other.tables_) or self._classes != other._classes:
            raise ValueError(
                "merge needs encoders of the same columns and kind of target; these have "
                f"{sorted(self.tables_)} and {sorted(other.tables_)}."
            )
        if self._classes:
            check_target_piece(self.classes_, other.classes_)
        tables = self._added(other.tables_)
        self._learn(None, tables, self._classes)
        self.tables_ = tables
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and encode; the outputs that estimate the target by parts of the other folds (see `cv`).

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        dataframe, ndarray or csr_array of shape (n_rows, n_columns_out)
        """
        self.fit(X, y, sample_weight)
        if self.output not in _OF_TARGET or self.cv is None or not self.columns_:
            return self.transform(X)
        table = read_table(X, who=type(self).__name__)
        encoded = self._out_of_fold(table, y, check_weights(sample_weight, len(table)))
        parts: dict[str, Any] = {
            name: {new: encoded[new] for new in self._kept_names(state)} for name, state in self.columns_.items()
        }
        frame = assemble_frame(table, parts)
        return self._in_asked_container(frame) if self.return_df else nw.from_native(frame, eager_only=True).to_numpy()

    # -- using --------------------------------------------------------------------------------

    @available_if(lambda self: self.output == "group")
    def inverse_transform(self, X: Any) -> Any:
        """A value for each part: the middle row's of an interval, the most frequent symbol of a group.

        Parameters
        ----------
        X : dataframe of shape (n_rows, n_columns)
            As made by `transform` with output "group".

        Returns
        -------
        dataframe (array with ``return_df=False``)

        Raises
        ------
        ValueError
            Other columns, or a label that no part has. (Other outputs have no `inverse_transform`.)
        """
        check_is_fitted(self, "columns_")
        encoded = read_table(X, who=type(self).__name__, allow_empty=True)
        if self.invariant_cols_:
            raise ValueError(
                f"drop_invariant=True has dropped {', '.join(map(repr, self.invariant_cols_))}, which cannot come "
                "back; use drop_invariant=False."
            )
        if len(encoded.names) != len(self.get_feature_names_out()):
            raise ValueError(
                f"X has {len(encoded.names)} columns, but fit saw {self.n_features_in_}; pass what transform returned."
            )
        parts: dict[str, Any] = {
            column.name: {column.name: self._values_of(self.columns_[name], column)}
            for name, column in zip(self._names_in, encoded.columns, strict=True)
            if name in self.columns_
        }
        frame = assemble_frame(encoded, parts)
        return frame if self.return_df else nw.from_native(frame, eager_only=True).to_numpy()

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

    # -- pieces -------------------------------------------------------------------------------

    def _fitted_column(self, column: str) -> Intervals | Groups:
        if column not in self.partitions_:
            raise ValueError(
                f"There is no encoded column {column!r}; there are {', '.join(map(repr, self.partitions_))}."
            )
        return self.partitions_[column]

    def _count(
        self, X: Any, y: Any, sample_weight: Any, *, first: bool = True
    ) -> tuple[Table, dict[str, Contingency], bool]:
        """Check everything; the table, each column's counts, and whether the target holds classes."""
        self._check_words()
        check_modl_options(self)
        table = read_table(X, who=type(self).__name__)
        if not first:
            table = self._as_fitted(table)
        weight = check_weights(sample_weight, len(table))
        classes = self._classes if not first else is_classification(self, y, len(table))
        codes, targets = self._code_target(y, len(table), classes, first)
        if first:
            columns = self._columns_of(table)
        else:
            columns = [
                _as_numbers(table[name]) if state.alphabet is None else table[name]
                for name, state in self.columns_.items()
            ]
        rows = None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
        if rows is not None:
            codes, targets = _present(codes, targets, rows)
            if classes and first and len(targets) < 2:
                raise ValueError(
                    f"{type(self).__name__} needs at least 2 classes, but rows of weight above 0 have 1 class only "
                    f"({targets.tolist()[0]!r}); choose other weights or more rows."
                )
        return table, self._tables(columns, codes, targets, weight, rows), classes

    def _tables(
        self,
        columns: list[Column],
        codes: NDArray[Any],
        targets: NDArray[Any],
        weight: Floats | None,
        rows: NDArray[np.int64] | None,
    ) -> dict[str, Contingency]:
        """The counts of columns over some rows, all if None."""

        def count(column: Column) -> Contingency:
            return self._count_column(column, codes, targets, weight, rows)

        found = in_threads(count, columns, self.n_jobs if len(codes) >= 100_000 else 1)
        return {column.name: one for column, one in zip(columns, found, strict=True)}

    def _added(self, tables: dict[str, Contingency]) -> dict[str, Contingency]:
        """The counts so far and those of a further piece."""
        for name, one in tables.items():
            check_piece(name, self.tables_[name], one)
        return {name: merge_tables(self.tables_[name], one) for name, one in tables.items()}

    def _as_fitted(self, table: Table) -> Table:
        return match_features(self, table)

    def _code_target(self, y: Any, n_rows: int, classes: bool, first: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        """Codes (n,) into the distinct targets."""
        if not classes:
            values = check_regression_target(y, n_rows, who=type(self).__name__)
            targets, codes = np.unique(values, return_inverse=True)
            return (codes.ravel(), targets) if len(targets) <= MOST_TARGETS else _in_cells(values, codes.ravel())
        known = None
        if not first:  # a later piece may hold one class only, or new ones
            found = pd.unique(check_target(y, n_rows, type(self).__name__))
            before = getattr(self, "classes_", found[:0])
            check_target_piece(before, found)
            known = np.union1d(before, found)
        target = check_classes(y, n_rows, classes=known, who=type(self).__name__)
        return target.codes, target.classes

    def _columns_of(self, table: Table) -> list[Column]:
        if self.cols is not None:
            return symbolic_columns(table, self.cols, booleans=False)
        if self.numeric == "passthrough":
            return symbolic_columns(table, None, booleans=False)
        return list(table.columns)

    def _is_number(self, column: Column) -> bool:
        return column.kind is Kind.NUMERIC and self.numeric == "discretize"

    def _count_column(
        self,
        column: Column,
        target: NDArray[Any],
        targets: NDArray[Any],
        weight: Floats | None,
        rows: NDArray[np.int64] | None,
    ) -> Contingency:
        if rows is not None:
            target, weight = target[rows], None if weight is None else weight[rows]
        if self._is_number(column):
            values = column.values
            self._refuse_missing(column.name, RawCodes(np.where(np.isnan(values), -1, 0), np.empty(0, dtype=object)))
            return count_numbers(values if rows is None else values[rows], target, targets, weight)
        raw = encode_column(column)
        self._refuse_missing(column.name, raw)
        return count_symbols(raw.codes if rows is None else raw.codes[rows], raw.symbols, target, targets, weight)

    def _learn(
        self, table: Table | None, tables: dict[str, Contingency], classes: bool, *, remember: bool = True
    ) -> None:
        """Partition every column of the counts; nothing of self changes before all is done."""
        if self.monotonic and classes and any(len(one.targets) > 2 for one in tables.values()):
            raise ValueError("monotonic=True needs two classes or a continuous target; set it to False.")
        states = [self._state(name, one) for name, one in self._partition(tables, classes).items()]
        if self.verbose:
            for line in describe_columns({state.name: state.fitted for state in states}).splitlines():
                if line[:1].strip():
                    print(line, file=sys.stderr)
        if table is not None and remember:
            remember_features(self, table)
            self._names_in = table.names
        self.columns_ = {state.name: state for state in states}
        self._classes = classes
        if classes and states:
            self.classes_ = next(iter(tables.values())).targets
        self.invariant_cols_ = []
        if self.drop_invariant:
            self.invariant_cols_ = [name for state in states for name in _constant(state)]

    def _partition(self, tables: dict[str, Contingency], classes: bool) -> dict[str, Intervals | Groups]:
        settings = Settings(
            self.criterion,
            len(tables) if self.n_candidates is None else self.n_candidates,
            self.max_parts,
            self.min_part_count,
            bool(self.monotonic),
            self.time_limit,
            int(self.random_state) if isinstance(self.random_state, (int, np.integer)) else 0,
        )

        def learn(table: Contingency) -> Intervals | Groups:
            return fit_column(table, settings, classes=classes)

        return dict(zip(tables, in_threads(learn, list(tables.values()), self.n_jobs), strict=True))

    def _state(self, name: str, fitted: Intervals | Groups) -> MODLColumn:
        names, values = self._outputs(name, fitted)
        state = MODLColumn(name, fitted, names, values)
        return _with_alphabet(state)

    def _outputs(self, name: str, fitted: Intervals | Groups) -> tuple[list[str], Floats | None]:
        """Names of the output columns, and what each part is in them (I, outputs)."""
        target, n = fitted.target, fitted.partition.n_parts
        if self.output == "group":
            return [name], None
        if self.output == "onehot":
            return [f"{name}_{part}" for part in range(1, n + 1)], np.eye(n)  # boosters refuse brackets in names
        if self.output == "mean":
            if target.means is None:
                raise ValueError(
                    f"output='mean' needs numbers or two classes, and the target has {len(target.names)} classes; "
                    "use output='probability'."
                )
            return [name], target.means[:, None]
        if self.output == "logodds" and not target.is_classes:
            raise ValueError(
                "output='logodds' needs classes, and the target is continuous; use 'mean' or 'probability'."
            )
        alone = self.output == "logodds" and len(target.names) == 2
        words = target.names if target.is_classes else range(1, len(target.names) + 1)
        names = [name] if alone else [f"{name}_{word}" for word in words]
        return names, self._estimates(target.counts)

    def _estimates(self, counts: Floats) -> Floats:
        """The smoothed shares or log odds (I, outputs) of parts with these counts (I, T)."""
        n, classes = counts.shape
        if self.output == "probability":
            return np.asarray((counts + 1) / (counts.sum(axis=1, keepdims=True) + classes))
        others = counts.sum(axis=1, keepdims=True) - counts
        odds = np.log((counts + 1) / (counts.sum(axis=0) + n)) - np.log((others + 1) / (others.sum(axis=0) + n))
        return np.asarray(odds[:, 1:] if classes == 2 else odds)

    def _codes(self, table: Table, states: dict[str, MODLColumn] | None = None) -> dict[str, NDArray[Any]]:
        """The part of each row; UNSEEN and MISSING where they are to be NaN."""
        states = self.columns_ if states is None else states
        symbolic = [table[name] for name, state in states.items() if state.alphabet is not None]
        raws = dict(zip([column.name for column in symbolic], encode_columns(symbolic), strict=True))
        out: dict[str, NDArray[Any]] = {}
        for name, state in states.items():
            out[name] = (
                self._numeric_parts(table[name], state) if name not in raws else self._group_of(state, raws[name])
            )
        return out

    def _numeric_parts(self, column: Column, state: MODLColumn) -> NDArray[np.int64]:
        assert isinstance(state.fitted, Intervals)
        values = _as_numbers(column).values
        parts = state.fitted.parts(values)
        missing = np.isnan(values)
        if self.handle_missing == "error" and missing.any():
            self._refuse_missing(column.name, RawCodes(np.where(missing, -1, 0), np.empty(0, dtype=object)))
        return np.where(missing, MISSING, parts) if self.handle_missing == "return_nan" else parts

    def _group_of(self, state: MODLColumn, raw: RawCodes) -> NDArray[np.int64]:
        assert isinstance(state.fitted, Groups) and state.alphabet is not None and state.part_of is not None
        self._refuse_missing(state.name, raw)
        codes = state.alphabet.transform(raw)
        unseen, missing = (codes == UNSEEN) & (raw.codes >= 0), raw.codes < 0
        if unseen.any() and "error" in (self.handle_unknown, self.unseen):
            row = int(np.argmax(unseen))
            raise ValueError(
                f"Column {state.name!r} holds {raw.symbols[raw.codes[row]]!r} (row {row}), which was not seen in fit; "
                "fit on rows that have it, or set handle_unknown and unseen to something other than 'error'."
            )
        default = state.fitted.default
        if self.unseen == "missing" and state.alphabet.has_missing:
            default = int(state.part_of[state.alphabet.missing_code])
        parts = np.append(state.part_of, default)[codes]  # UNSEEN, -1, reads the last
        if self.handle_unknown == "return_nan":
            parts = np.where(unseen, UNSEEN, parts)
        return np.where(missing, MISSING, parts) if self.handle_missing == "return_nan" else parts

    def _column_names(self, state: MODLColumn) -> list[str]:
        return state.names

    def _encode_column(self, state: MODLColumn, codes: NDArray[Any]) -> list[Any]:
        if state.values is None:
            return [self._as_categories(codes, state)]
        values = _looked_up(state.values, codes)
        return list((values.astype(np.int8) if self.output == "onehot" and (codes >= 0).all() else values).T)

    def _as_categories(self, codes: NDArray[Any], state: MODLColumn) -> Any:
        """Labels in frames; in arrays, which have no categories, the numbers of the parts."""
        if self.return_df and hasattr(self, "feature_names_in_"):
            return Labels(codes, state.fitted.labels, isinstance(state.fitted, Intervals))
        return np.where(codes < 0, np.nan, codes) if (codes < 0).any() else codes

    def _encode_table(self, table: Table) -> Any:
        if not self.sparse_output:
            return super()._encode_table(table)
        untouched = [name for name in table.names if name not in self.columns_]
        blocks = numeric_matrix(table, untouched, type(self).__name__)
        for name, codes in self._codes(table).items():
            state, kept = self.columns_[name], set(self._kept_names(self.columns_[name]))
            present = np.flatnonzero(codes >= 0)
            if len(present) < len(codes):
                raise ValueError(
                    f"Column {name!r} holds a value that would be NaN (row {int(np.argmax(codes < 0))}), which "
                    "sparse_output has not; use handle_missing='value' and handle_unknown='value'."
                )
            ones = sparse.csr_array(
                (np.ones(len(codes)), (np.arange(len(codes)), codes)), shape=(len(codes), len(state.names))
            )
            blocks[name] = ones[:, [place for place, one in enumerate(state.names) if one in kept]]
        return sparse.hstack([blocks[name] for name in table.names], format="csr")

    def _out_of_fold(self, table: Table, y: Any, weight: Floats | None) -> dict[str, Floats]:
        """The encoded columns (n_rows,) by name, each row by parts that were learned without it."""
        classes = self._classes
        codes, targets = self._code_target(y, len(table), classes, True)
        rows = np.zeros((len(table), 1))
        splits = split_rows(
            self.cv, rows, codes if classes else targets[codes], classes=classes, random_state=self.random_state
        )
        columns = [table[name] for name in self.columns_]
        encoded = {name: np.zeros(len(table)) for state in self.columns_.values() for name in state.names}
        for train, test in check_each_row_once(splits, len(table)):
            known = train if weight is None else train[weight[train] > 0]
            tables = self._tables(columns, *_present(codes, targets, known), weight, known)
            states = {name: _plain_state(name, one) for name, one in self._partition(tables, classes).items()}
            for name, parts in self._codes(_rows_of(table, list(states), test), states).items():
                values = _looked_up(self._fold_values(name, states[name].fitted, tables[name]), parts)
                for new, column in zip(self.columns_[name].names, values.T, strict=True):
                    encoded[new][test] = column
        return encoded

    def _fold_values(self, name: str, fitted: Intervals | Groups, table: Contingency) -> Floats:
        """What a fold's parts (I,) are encoded as, in the output columns of all rows (I, outputs)."""
        if self.output == "mean":
            means = fitted.target.means
            if means is None or len(table.targets) == 1:  # a fold of one class
                means = np.full(fitted.partition.n_parts, float(table.targets[0] == self.classes_[-1]))
            return means[:, None]
        target = self.columns_[name].fitted.target
        if target.bounds is None:
            place = np.searchsorted(self.classes_, table.targets)
        else:
            place = np.searchsorted(target.bounds, table.targets, side="left")
        shape = fitted.partition.n_parts, len(target.names)
        return self._estimates(table.summed(fitted.partition.labels, place, shape))

    def _values_of(self, state: MODLColumn, column: Column) -> NDArray[Any]:
        named = column.kind is Kind.SYMBOLIC
        place: dict[Any, int] = {label if named else part: part for part, label in enumerate(state.fitted.labels)}
        labels = column.series.to_list()
        for row, label in enumerate(labels):
            if not pd.isna(label) and label not in place:
                raise ValueError(f"Column {column.name!r} holds {label!r} (row {row}), which is no part of it.")
        fitted = state.fitted
        if isinstance(fitted, Intervals):
            return np.array([fitted.middles[place[one]] if one in place else np.nan for one in labels])
        found = [fitted.groups[place[one]][0] if one in place else None for one in labels]
        if {type(one) for one in found} in ({bool}, {int}, {float}):
            return np.array(found)
        out = np.empty(len(labels), dtype=object)
        out[:] = found
        return out


def _in_cells(values: Floats, ranks: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Codes (n,) into cells of neighbouring values of nearly equal size, and their means."""
    sizes = np.bincount(ranks)
    cell = (np.cumsum(sizes) - sizes) * MOST_TARGETS // len(values)
    cell = np.cumsum(np.append(0, np.diff(cell) > 0))
    codes = cell[ranks]
    return codes, np.bincount(codes, values) / np.bincount(codes)


def _constant(state: MODLColumn) -> list[str]:
    """Output columns in which all parts are the same."""
    if state.values is None:
        return state.names if state.fitted.partition.n_parts == 1 else []
    same = (state.values == state.values[:1]).all(axis=0)
    return [name for name, constant in zip(state.names, same, strict=True) if constant]


def _plain_state(name: str, fitted: Intervals | Groups) -> MODLColumn:
    """A state that knows parts, without outputs."""
    return _with_alphabet(MODLColumn(name, fitted, [name], None))


def _with_alphabet(state: MODLColumn) -> MODLColumn:
    fitted = state.fitted
    if isinstance(fitted, Intervals):
        return state
    return replace(state, alphabet=Alphabet(state.name, fitted.symbols), part_of=fitted.labels_of)


def _looked_up(values: Floats, parts: NDArray[Any]) -> Floats:
    """The values (n, outputs) of parts (n,), NaN for those below 0."""
    out = values[np.maximum(parts, 0)]
    out[parts < 0] = np.nan
    return out


def _present(codes: NDArray[Any], targets: NDArray[Any], rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The targets of these rows, and codes (n,) into them (of the other rows: any)."""
    used = np.bincount(codes[rows], minlength=len(targets)) > 0
    return (np.cumsum(used) - 1)[codes], targets[used]


def _as_numbers(column: Column) -> Column:
    """A column that held numbers in fit: where all its values are missing now, its type may not say so."""
    if column.kind is Kind.SYMBOLIC and column.series.is_null().all():
        return replace(column, kind=Kind.NUMERIC)
    return column


def _rows_of(table: Table, names: list[str], rows: NDArray[np.int64]) -> Table:
    """Some rows of some columns, whose kinds stay."""
    columns = tuple(replace(table[name], series=table[name].series[rows]) for name in names)
    return Table(columns=columns, n_rows=len(rows), native=None, named=table.named)
