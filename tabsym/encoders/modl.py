"""`MODLEncoder`: supervised discretization of numeric columns and grouping of categories, as a transformer.

The search is in `tabsym.modl`; `modl_counts` counts rows for it, `modl_column` checks `monotonic`, `splits` and
`special_codes` and encodes rows by the parts, and `modl_report` describes and draws these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import encode_column
from tabsym.categories.contingency import Contingency
from tabsym.categories.lazy import lazy_rows, with_finite_numbers
from tabsym.encoders.base import named_columns, numeric_matrix
from tabsym.encoders.folds import OutOfFoldEncoder
from tabsym.encoders.lookups import ColumnLookup
from tabsym.encoders.modl_column import (
    MODLColumn,
    Output,
    check_constraints,
    check_counts,
    fit_donors,
    lookup_of,
    outputs_of,
    partition_columns,
    parts_of_rows,
    restored_frame,
    settings_of_columns,
    with_donors,
)
from tabsym.encoders.modl_counts import (
    LIGHT_FOR_MODL,
    Counted,
    Counting,
    Fold,
    OutOfFold,
    add_counts,
    check_mergeable,
    code_target,
)
from tabsym.encoders.modl_report import PartitionReport, print_heads
from tabsym.encoders.onehot import Ones, sparse_matrix
from tabsym.encoders.onehot_column import NANS
from tabsym.frame import (
    TARGET_TYPES,
    Measure,
    Table,
    as_array,
    as_lazy,
    check_same_rows,
    check_weights,
    match_features,
    read_table,
    split_columns,
    type_of,
)
from tabsym.frame.frames import take_rows
from tabsym.frame.target import warn_of_light_weights
from tabsym.messages import Number, check_declared_options, plural
from tabsym.modl import CRITERIA, Intervals, Settings

Floats = NDArray[np.float64]
_COUNT = Number(at_least=1, whole=True)


class MODLEncoder(PartitionReport, OutOfFoldEncoder):
    """Replace each column by its Bayes-optimal intervals (numbers) or groups (categories).

    The partition (its intervals or groups are called parts) minimises a description length in nats: the cost of
    stating the partition plus that of the target given it. A column that is uninformative becomes one part.

    Parameters
    ----------
    output : {"group", "onehot", "probability", "logodds", "mean"}, default "group"
        "group": categories with readable labels, ``]21.5; 23.5]`` and ``{a, b}``, ordered for intervals; for
        arrays, and with ``return_df=False``, the number of the part: an integer, a float where `handle_missing` or
        `handle_unknown` is "return_nan".
        "onehot": a 0/1 column for each part, numbered from 1 in the order of ``partitions_[column].labels``: int8;
        float64 in sparse matrices, and where `handle_missing` or `handle_unknown` is "return_nan".
        "probability": a column for each class (in regression for each interval of the target, numbered), its
        Laplace-smoothed proportion in the part. "logodds": ln P(part | class) minus
        ln P(part | other classes), a column for each class, one (of the second class) for two classes.
        "mean": the mean target of the part, for regression and two classes.
    numeric : {"discretize", "passthrough"}, default "discretize"
        "discretize": numeric columns are cut into intervals; without `cols` all columns are encoded, booleans as
        categories. "passthrough": numeric columns pass through as they are; without `cols` only text, object and
        category columns are encoded, and numeric columns named in `cols` are taken as categories.
    criterion : {"khiops", "page"}, default "khiops"
        The criterion of Khiops 11, or the one printed in its documentation (Boulle 2006); see Notes.
    n_candidates : int, default None
        Columns among which each is a candidate, which enters the cost under "khiops"; None: those encoded
        together; 1: a Level that does not depend on the other columns.
    max_parts : int, default None
        Maximal number of parts of a column that are searched for.
    min_part_count : int, default 1
        Minimal number of rows (or total weight) of a part that is searched for.
    monotonic : bool, or mapping of column -> {"auto", 1, -1, True, False}, default False
        Cut numeric columns so that the probability of the second class, or the mean target, is monotonic: rising (1),
        falling (-1), or whichever costs less ("auto", True). True: all that are not in `splits`.
    splits : mapping of column -> list, default None
        Your own parts, at their cost and Level: cut points of a numeric column (upper bounds, ascending; -inf first
        parts missing values from the rest), or a list of categories for each group, None for missing; categories that
        are in no list are one more group, and so are unknown ones.
    special_codes : mapping of column -> list, default None
        Values that mean something else than a number or a category, such as ``{"income": [-999]}``, None for missing
        values. Each is a part of its own, behind the others; those of a list within the list are one together. The
        other parts are those of the other rows, and `monotonic`, `max_parts` and `min_part_count` are for them.
    time_limit : float, default None
        Seconds for each column, after which the best partition so far is returned. None: optimal up to 4,096
        distinct values (fewer for more than eight classes), close to optimal beyond. With a limit, larger columns are
        searched for a proof, too, and for two classes the proof covers garbage groups (tenths of a second for dozens of
        categories, seconds for hundreds).
    prove : {"auto", True, False}, default "auto"
        Whether to search for proofs that a partition is optimal (`certificates_`). "auto": in classification, where
        they cost little; not in regression, where a fit takes three to ten times as long, mostly for the same parts
        and sometimes for a cost that is lower by some 1e-5. In classification the folds of `fit_transform` are searched
        without, unless True: now and then they have other parts than a fit on the same rows. Intervals under
        `max_parts` are searched as for a proof in any case.
    target_type : {"auto", "classes", "continuous"}, default "auto"
        What `y` holds. "auto": text and booleans are classes; numbers with a fraction, more than 20 whole numbers, and
        fewer that look like counts or ratings are continuous, as in `compare`; a warning says what fewer are taken for.
        With ``output="logodds"``, which is of classes, up to 20 whole numbers are classes.
    cv : int, splitter, list of splits or None, default 5
        For the outputs that estimate the target ("probability", "logodds", "mean"): `fit_transform` encodes each
        row by parts fitted on the other folds; None: as ``fit(X, y).transform(X)``, which leaks. Splitters get the
        `groups` of `fit_transform`. Rows that no fold holds out, as the first of TimeSeriesSplit, are encoded by the
        prior, the estimate over all rows.
    sparse_output : bool, default False
        For "onehot": a CSR matrix.
    cols : list of str (or positions, for arrays), one of them, "all" or None, default None
        Columns to encode; None: as `numeric` says; "all": every column (a column of that name alone is ``["all"]``).
        All others pass through untouched, in place.
    drop_invariant : bool, default False
        Drop output columns that are constant: columns of one part are uninformative.
    return_df : bool, default True
        Return a frame of the kind given (pandas for arrays); False: an array.
    handle_missing : {"value", "return_nan", "error"}, default "value"
        "value": missing is a category of its own, or lies below all numbers.
    handle_unknown : {"value", "missing", "similar", "return_nan", "error"}, default "value"
        How categories that are not in the training data are encoded. "value": as the default group, that of the
        least frequent category (of several the first in the order of text), as Khiops does; "missing": as the group of
        missing values (the default group where training had none); "similar": as the group of the known categories that
        occur in rows like theirs, all rows of the call considered (see `TIWSEncoder`; not with `partial_fit`).
    handle_infinite : {"error", "extreme"}, default "error"
        "extreme": infinite numbers lie above, or below, all others, as ranks have it; they count as the largest finite
        numbers (1.8e308). Not with ``handle_unknown="similar"``.
    verbose : int, default 0
        1 writes a line per column to standard error.
    random_state : int, RandomState or None, default 0
        Of the folds, and where it is a number of the local search over groups of more than two classes; 0: a second
        run makes the same features, None: other folds.
    n_jobs : int or None, default None
        Threads; the result is the same for any number.

    Attributes
    ----------
    levels_ : dict of str -> float
        Khiops' Level of each column, greatest first: its normalized gain, 1 - cost / null cost. It ranks columns by
        how informative each is alone; 0 is uninformative. Below 0, parts of `splits` or `special_codes` cost more than
        they say.
    costs_, null_costs_ : dict of str -> float
        Description length in nats, of the partition and of the one without the column (one part).
    prior_costs_, likelihood_costs_ : dict of str -> float
        The two parts of `costs_`: what the partition costs, and what the target costs given it.
    certificates_ : dict of str -> Certificate
        A lower bound of the cost of any partition and the optimality gap, as solvers report them. Beyond 12 categories
        bounds are computed for two classes only, and cover Khiops' garbage groups (one group of all infrequent
        categories) as far as that is cheap unless there is a `time_limit`. In regression they are computed for small
        tables only: up to six distinct values or five categories of the column, or nine distinct targets.
    partitions_ : dict of str -> Intervals or Groups
        With `bounds` or `groups`, and `labels`, `target.counts`, `partition`.
    iv_ : dict of str -> float
        For two classes the information value of each column, greatest first: see `parts`.
    classes_ : ndarray
        In classification.
    n_cells_ : dict of str -> int
        The numbers of a lazy frame that were counted in cells of neighbouring values: columns and number of cells.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Notes
    -----
    Intervals are right-closed; bounds lie halfway between neighbouring values. Whole numbers beyond 2**53 and
    nanoseconds are distinguished exactly (`bounds` has them rounded, and `bound_rests` the rounding errors), and their
    bounds are whole. Dates are cut as numbers and labelled in their own time zone; `bounds` has them in days since
    1970, UTC. A part of `splits` or `special_codes` without rows is encoded as all rows together, and costs nothing;
    special codes cost what the classes in them cost. Integer weights are the same as repeated rows; fractional ones go
    through the gamma function. The criteria are those of Boulle, "MODL: a Bayes optimal discretization method for
    continuous attributes" (2006), and of Khiops 11.
    `inverse_transform` of "group" gives the middle row's value of an interval, the most frequent category of a group.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import MODLEncoder
    >>> X = pd.DataFrame({"age": range(200), "colour": ["red", "blue", "green", "grey"] * 50})
    >>> y = [int(age > 120) for age in X["age"]]
    >>> encoder = MODLEncoder().fit(X, y)
    >>> encoder.partitions_["age"].labels
    [']-inf; 120.5]', ']120.5; +inf[']
    >>> encoder.levels_["colour"]  # uninformative
    0.0
    >>> own = MODLEncoder(splits={"age": [60, 120]}, special_codes={"colour": ["grey"]}).fit(X, y)
    >>> own.partitions_["age"].labels, own.partitions_["colour"].labels
    ([']-inf; 60]', ']60; 120]', ']120; +inf['], ['{blue, green, red}', '{grey}'])
    """

    _allowed_options = {
        **OutOfFoldEncoder._allowed_options,
        "handle_unknown": ("value", "missing", "similar", "return_nan", "error"),
        "handle_infinite": ("error", "extreme"),
        "output": ("group", "onehot", "probability", "logodds", "mean"),
        "numeric": ("discretize", "passthrough"),
        "criterion": CRITERIA,
        "target_type": TARGET_TYPES,
        "n_candidates": (_COUNT, None),
        "max_parts": (_COUNT, None),
        "min_part_count": (Number(above=0),),
        "time_limit": (Number(above=0), None),
        "sparse_output": (True, False),
        "prove": ("auto", True, False),
    }

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
        splits=None,
        special_codes=None,
        time_limit=None,
        prove="auto",
        target_type="auto",
        cv=5,
        sparse_output=False,
        cols=None,
        drop_invariant=False,
        return_df=True,
        handle_missing="value",
        handle_unknown="value",
        handle_infinite="error",
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
        self.splits = splits
        self.special_codes = special_codes
        self.time_limit = time_limit
        self.prove = prove
        self.target_type = target_type
        self.cv = cv
        self.sparse_output = sparse_output
        self.cols = cols
        self.drop_invariant = drop_invariant
        self.return_df = return_df
        self.handle_missing = handle_missing
        self.handle_unknown = handle_unknown
        self.handle_infinite = handle_infinite
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> MODLEncoder:
        """Partition the columns.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            Lazy frames (DuckDB, polars, ...) are counted by their engine if `y` names a column: their parts are those
            of the collected table, but that numbers of more than 10,000 distinct values are first cut by the engine's
            quantiles into as many cells, and continuous targets of more than 1,000 into 1,000 (`n_cells_`).
        y : array-like of shape (n_rows,), or the name of a column of X
            Classes or numbers.
        sample_weight : array-like of shape (n_rows,), or the name of a column of X, optional
            A row of weight 2 counts as two rows; weights that sum to 1 hence count as one row in all, which gives no
            intervals and groups (with a UserWarning). Rows of weight 0 count as absent.
        groups : array-like of shape (n_rows,), optional
            Used by `fit_transform` only (``set_fit_request(groups=True)``).

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With the name of the column; also where the indexes of X, y and sample_weight differ.
        """
        named = named_columns(y, sample_weight)
        frame = as_lazy(X) if self.handle_infinite == "extreme" else None
        clipped = X if frame is None else with_finite_numbers(frame).to_native()
        rows = lazy_rows(clipped, y, sample_weight, type(self).__name__, supervised=True)
        if rows is not None:
            self._check_options()
            self._fit_counts(self._counting().lazily(rows), rows.table)
            self.n_cells_ = rows.cells
        else:
            X, y, sample_weight = split_columns(X, y, sample_weight, type(self).__name__)
            check_same_rows(X, groups=groups)
            table, weight = self._read(X, y, sample_weight, first=True)
            self._fit_counts(self._counting().first_piece(table, y, weight), table)
            self.n_cells_ = {}
        self._donors = None
        if self.handle_unknown == "similar":
            self._donors = fit_donors(self, X, y, sample_weight, self._categorical)
        self._named_in = named
        self.__dict__.pop("tables_", None)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MODLEncoder:
        """Add a piece of a table to the counts, and partition again.

        The counts add up, so the parts are those of `fit` on all pieces together. `fit` keeps no counts: after it,
        the first piece starts from zero. A numeric column with
        more than 1,048,576 distinct values is counted in as many bins of neighbouring values, and
        ``partitions_[column].error`` is the number of rows by which a bound can then be misplaced.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
            Classes need not all occur in the first piece; two must by the end of it.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        self._check_counts_suffice()
        first = not hasattr(self, "tables_")
        X, y, sample_weight = split_columns(X, y, sample_weight, type(self).__name__)
        table, weight = self._read(X, y, sample_weight, first=first)
        counting = replace(self._counting(), whole=False)
        if first:
            counted = counting.first_piece(table, y, weight)
        else:
            before = Counted(self.tables_, self._classes)
            piece = counting.further_piece(table, y, weight, before, getattr(self, "classes_", None))
            counted = Counted(add_counts(self.tables_, piece.tables), self._classes)
        self._fit_counts(counted, table if first else None)
        self.tables_: dict[str, Contingency] = counted.tables
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

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import MODLEncoder
        >>> X = pd.DataFrame({"city": ["Bonn", "Rome", "Lyon"] * 100})
        >>> y = X["city"].eq("Rome").astype(int)
        >>> here = MODLEncoder().partial_fit(X[:150], y[:150])
        >>> there = MODLEncoder().partial_fit(X[150:], y[150:])
        >>> here.merge(there).parts("city")["rows"].tolist()
        [200.0, 100.0]
        """
        if not isinstance(other, MODLEncoder):
            raise TypeError(f"merge takes another MODLEncoder, not {other!r}; fit one by partial_fit.")
        self._check_counts_suffice()
        check_mergeable(self, other)
        tables = add_counts(self.tables_, other.tables_)
        self._fit_counts(Counted(tables, self._classes), None)
        self.tables_ = tables
        return self

    # -- using --------------------------------------------------------------------------------

    @available_if(lambda self: self.output == "group")
    def inverse_transform(self, X: Any) -> Any:
        """A value for each part: the middle row's of an interval, the most frequent category of a group.

        Parameters
        ----------
        X : dataframe of shape (n_rows, n_columns)
            As made by `transform` with output "group".

        Returns
        -------
        dataframe (array with ``return_df=False``)
            Of the kind of X (for arrays of the kind that fit was given), columns of the types they had in fit.

        Raises
        ------
        ValueError
            Other columns, or a label of no part. (Other outputs have no `inverse_transform`.)

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import MODLEncoder
        >>> X = pd.DataFrame({"city": ["Bonn", "Rome", "Lyon"] * 100, "price": range(300)})
        >>> y = X["city"].eq("Rome").astype(int)
        >>> encoder = MODLEncoder().fit(X, y)
        >>> encoder.inverse_transform(encoder.transform(X[:2]))["city"].tolist()
        ['Bonn', 'Rome']
        """
        check_is_fitted(self, "columns_")
        encoded = read_table(X, caller=type(self).__name__, allow_empty=True)
        if self.invariant_cols_:
            raise ValueError(
                f"drop_invariant=True has dropped {', '.join(map(repr, self.invariant_cols_))}, which cannot come "
                "back; use drop_invariant=False."
            )
        if len(encoded.names) != len(self.get_feature_names_out()):
            raise ValueError(
                f"X has {plural(len(encoded.names), 'column')}, but the training data had {self.n_features_in_}; pass "
                "what transform returned."
            )
        frame = restored_frame(encoded, self._types_in, self.columns_)
        return frame if self.return_df else as_array(frame)

    # -- input -------------------------------------------------------------------------------------

    def _check_counts_suffice(self) -> None:
        if self.handle_unknown == "similar":
            raise ValueError(
                "handle_unknown='similar' is not supported by partial_fit and merge; call fit, or choose another value "
                "of handle_unknown."
            )

    def _read(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> tuple[Table, Floats | None]:
        """The table and the weights; they and the options are checked, and of a further piece the columns."""
        self._check_options()
        check_same_rows(X, y=y, sample_weight=sample_weight)
        table = self._admit_infinite(read_table(X, caller=type(self).__name__))
        if not first:
            table = match_features(self, table)
        weight = check_weights(sample_weight, len(table))
        warn_of_light_weights(weight, *LIGHT_FOR_MODL)
        return table, weight

    def _read_as_fitted(self, X: Any, y: Any = None) -> Table:
        return self._admit_infinite(super()._read_as_fitted(X, y))

    def _admit_infinite(self, table: Table) -> Table:
        return table.with_infinite_as_largest() if self.handle_infinite == "extreme" else table

    def _check_options(self) -> None:
        """A `ValueError` that names the argument and what it can be."""
        check_declared_options(self)
        check_constraints(self)
        if self.sparse_output and self.output != "onehot":
            raise ValueError(f"sparse_output goes with output='onehot', not with {self.output!r}; set it to False.")
        if self.handle_infinite == "extreme" and self.handle_unknown == "similar":
            raise ValueError(
                "handle_infinite='extreme' is not supported with handle_unknown='similar', which compares rows by "
                "finite numbers; change one of them."
            )

    # -- counts, and the partitions that are fitted by them ----------------------------------------

    def _fit_counts(self, counted: Counted, table: Table | None) -> None:
        """Partition every column; nothing of self changes before all is done. `table`: to be remembered."""
        tables, classes = counted
        kinds = {name: counts.measure if counts.is_numeric else None for name, counts in tables.items()}
        n_classes = max((len(counts.targets) for counts in tables.values()), default=0) if classes else None
        settings = self._settings(kinds, n_classes)
        check_counts(tables, settings)
        fitted = partition_columns(tables, settings, classes=classes, n_jobs=self.n_jobs)
        states = {name: MODLColumn.of(name, one, *outputs_of(name, one, self.output)) for name, one in fitted.items()}
        if self.verbose:
            print_heads(fitted)
        self.columns_ = states
        if table is not None:
            self._remember(table)
            self._types_in = {column.name: type_of(column) for column in table.columns}
        self._classes = classes
        if classes and states:
            self.classes_ = next(iter(tables.values())).targets
        constant = [name for state in states.values() for name in state.constant_names()]
        self.invariant_cols_ = constant if self.drop_invariant else []

    # -- rows --------------------------------------------------------------------------------------

    def _encoded_columns(self, table: Table) -> dict[str, dict[str, NDArray[Any]]]:
        how, parts = self._output(), self._parts(table)
        columns = {name: how.columns(state, parts[name]) for name, state in self.columns_.items()}
        return {name: self._kept_columns(state, columns[name]) for name, state in self.columns_.items()}

    def _parts(self, table: Table) -> dict[str, NDArray[Any]]:
        """The part of each row (n,), by column."""
        parts = parts_of_rows(table, self.columns_, self._output())
        if self.handle_unknown != "similar":
            return parts
        return with_donors(getattr(self, "_donors", None), table, self.columns_, parts)

    def _encode_table(self, table: Table) -> Any:
        if not self.sparse_output:
            return super()._encode_table(table)
        parts_of, untouched = self._parts(table), [name for name in table.names if name not in self.columns_]
        blocks: dict[str, Any] = numeric_matrix(table, untouched, type(self).__name__)
        for name, parts in parts_of.items():
            names, indices = self.columns_[name].names, np.where(parts < 0, NANS, parts)
            blocks[name] = Ones(name, indices, len(names)).without(names, set(self.invariant_cols_))
        return sparse_matrix([blocks[name] for name in table.names], len(table), np.float64)

    def _lookup(self, name: str, state: MODLColumn) -> ColumnLookup:
        return lookup_of(name, state, self._kept_names(state), self._output())

    # -- out of fold -------------------------------------------------------------------------------

    def _shows_target(self) -> bool:
        return self.output in ("probability", "logodds", "mean")

    def _out_of_fold(self, table: Table, y: Any, weight: Floats | None, groups: Any) -> dict[str, Floats]:
        """The encoded columns (n_rows,) by name, each row by parts that were fitted without it."""
        target = code_target(y, len(table), classes=self._classes, caller=type(self).__name__)
        values = target.codes if self._classes else target.values[target.codes]
        is_similar, folds = self.handle_unknown == "similar", []
        codes = {name: encode_column(table[name]).codes for name in self._categorical} if is_similar else {}
        for train, held_out in self._folds(values, groups, classes=self._classes):
            known = train if weight is None else train[weight[train] > 0]
            donors = None
            if is_similar:  # of columns with other categories in the rows that are held out
                lacking = [name for name, one in codes.items() if not np.isin(one[held_out], one[known]).all()]
                each = None if weight is None else weight[known]
                donors = fit_donors(self, take_rows(table.native, known), values[known], each, lacking)
            folds.append(Fold(known, held_out, target.present_in(known), donors))
        fitted = {name: state.fitted for name, state in self.columns_.items()}
        kinds = {name: column.measure if isinstance(column, Intervals) else None for name, column in fitted.items()}
        classes = self.classes_ if self._classes else None
        settings = self._settings(kinds, None if classes is None else len(classes))
        how = OutOfFold(self._counting(), settings, self._output(), classes, self.prove is True)
        return how.columns(table, list(self.columns_.values()), weight, folds)

    @property
    def _categorical(self) -> list[str]:
        """The columns of categories."""
        return [name for name, state in self.columns_.items() if state.vocabulary is not None]

    # -- options as counting, searches and encoding take them ---------------------------------------

    def _counting(self) -> Counting:
        """How tables are counted."""
        return Counting(
            type(self).__name__,
            self.cols,
            self.numeric,
            self.target_type,
            self.handle_missing,
            self.n_jobs,
            few_are_classes=self.output == "logodds",
        )

    def _output(self) -> Output:
        """How rows are encoded; frames have categories where fit saw names."""
        labelled = bool(self.return_df) and hasattr(self, "feature_names_in_")
        return Output(self.output, self.handle_missing, self.handle_unknown, labelled)

    def _settings(self, kinds: dict[str, Measure | None], n_classes: int | None) -> dict[str, Settings]:
        """The settings of the search for each column; `n_classes`: None for numbers."""
        settings = Settings(
            self.criterion,
            len(kinds) if self.n_candidates is None else self.n_candidates,
            self.max_parts,
            self.min_part_count,
            time_limit=self.time_limit,
            random_state=int(self.random_state) if isinstance(self.random_state, (int, np.integer)) else 0,
            prove=n_classes is not None if self.prove == "auto" else bool(self.prove),
        )
        return settings_of_columns(self, settings, kinds, classes=n_classes)
