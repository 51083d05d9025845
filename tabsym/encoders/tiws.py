"""`TIWSEncoder`: target encoding that estimates unknown categories, too, from the other columns of their rows.

The counts and the estimates are in `tabsym.tiws`; `tiws_column` checks what is given, and encodes rows by them.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import encode_column
from tabsym.categories.lazy import LazyRows, is_missing, lazy_rows
from tabsym.encoders.base import named_columns, refuse_missing
from tabsym.encoders.folds import FittedRows, FoldFitter, OutOfFoldEncoder, refuse_lost_groups
from tabsym.encoders.lookups import ColumnLookup, stacked, unknown_in
from tabsym.encoders.tiws_column import (
    MIN_CATEGORIES,
    FittedFold,
    RowEncoding,
    TIWSColumn,
    carried_over,
    categories_of,
    check_mergeable,
    check_options,
    check_same_classes,
    components,
    donor_table,
    fit_columns,
    further,
    lazy_target,
    print_columns,
)
from tabsym.frame import (
    TARGET_TYPES,
    Table,
    categorical_columns,
    check_same_rows,
    check_target,
    check_weights,
    frame_of,
    library_of_frame,
    match_features,
    read_table,
    split_columns,
)
from tabsym.frame.frames import gather
from tabsym.frame.target import refuse_large_sums, warn_of_light_weights
from tabsym.messages import Number, check_option
from tabsym.tiws.column import CONTEXTS, Observed, UnseenRows
from tabsym.tiws.counts import CategoryWords, ContextCounting, TableCounts, count_lazily

Floats = NDArray[np.float64]

LIGHT_FOR_TIWS = "TIWSEncoder", "it shrinks encodings to the mean"  # see `warn_of_light_weights`


class TIWSEncoder(OutOfFoldEncoder):
    """Target encoding that estimates categories that are not in the training data from the other columns of their rows.

    A known category is encoded by its mean target, shrunk towards the mean of categories (BLUP). An unknown one is
    compared with the known ones by its context (its "document": how often it occurs with each value of the other
    columns) and estimated from those with similar contexts, as far as contexts explain the targets of known categories.
    Of more than 1,500 known categories it is compared with 1,500, the most frequent and a sample of all kinds of
    contexts, and how far contexts explain targets is found by 500.

    Parameters
    ----------
    method : {"documents", "poster"}, default "documents"
        "documents": regression on contexts; "poster": the similarity estimate as published (see Notes), for comparison.
    context : {"batch", "row", "observed"}, default "batch"
        The rows that describe an unknown category. "batch": all its rows in the call and those observed; "row": the row
        itself and those observed, so that no row depends on another; "observed": what `observe` was given, alone.
    names : bool, default False
        Whether similar names ("Ford Focus", "Ford Fiesta") count as similarity, too, as far as they explain the targets
        of known categories.
    indicator : bool, default False
        Add a column ``NAME_unknown``, 1 where the category is not in the training data (in `fit_transform`: not in the
        other folds).
    numeric : {"modl", "quantile", "passthrough"} or dict of str -> one of these or edges, default "modl"
        How numeric columns enter the contexts; in the output they are unchanged. "modl": as supervised intervals of
        MODL; "quantile": as up to ten intervals of equal frequency; "passthrough": not at all; a dict: by column one of
        these words, or a list of edges, and the numeric columns that it does not name not at all.
    smooth : "auto" or float, default "auto"
        Shrinkage of a known category's mean, as a number of rows at the mean of categories. "auto": the variance
        within categories over the variance between them; 1 for the poster.
    idf_rows : {"all", "known+self"}, default "all"
        For method "poster": whether the inverse document frequency is over all unknown categories of a call, or over
        each alone, along with the known ones, as always with ``context="row"``.
    target_type : {"auto", "classes", "continuous"}, default "auto"
        What `y` holds. "auto": text and booleans are classes; numbers with a fraction, more than 20 whole numbers, and
        fewer that look like counts or ratings are continuous, as in `compare`; a warning says what fewer are taken for.
    cv : int, splitter, list of splits or None, default 5
        `fit_transform` encodes each row by an encoder fitted on the other folds, intervals of numbers and all; None:
        as ``fit(X, y).transform(X)``, which leaks. Splitters get the `groups` of `fit_transform`. Rows that no fold
        holds out, as the first of TimeSeriesSplit, are encoded by the prior, the mean of categories.
    cols : list of str (or positions, for arrays), one of them, "all" or None, default None
        Columns to encode; None: text, object and category columns; "all": every column, numbers as categories.
        All others pass through untouched, in place, and are part of the contexts.
    drop_invariant : bool, default False
        Drop output columns that are constant over the training rows.
    return_df : bool, default True
        Return a frame of the kind given (pandas for arrays); False: an array.
    handle_missing : {"value", "return_nan", "error"}, default "value"
        "value": missing is a category of its own; if training had no missing values, it is estimated as an unknown one
        is, whatever `handle_unknown` says.
    handle_unknown : {"value", "return_nan", "error"}, default "value"
        How categories that are not in the training data are encoded. "value": by the estimate from similar known ones.
    verbose : int, default 0
        1 writes a line per column to standard error.
    random_state : int, RandomState or None, default 0
        Of the folds.
    n_jobs : int or None, default None
        Threads; the result is the same for any number.

    Attributes
    ----------
    classes_ : ndarray
        In classification. The output is the probability of the second of two classes, else a column for each class.
    n_cells_ : dict of str -> int
        The numbers of a lazy frame that were cut from cells of neighbouring values: columns and number of cells.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Notes
    -----
    The similarity estimate and its name (TF-IDF weighted similarity) are of Bang and Lin, "Jitter Trees". Method
    "documents" is a best linear unbiased predictor (BLUP) with the similarity of contexts as its relationship matrix
    and variance components by restricted likelihood (REML): where contexts are uninformative, the estimate is the mean
    of categories. Weights count as repeated rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import TIWSEncoder
    >>> X = pd.DataFrame({"model": list("abcdefgh") * 50, "kind": ["car", "van"] * 200})
    >>> y = [10.5, 20.5, 11.5, 21.5, 10.5, 20.5, 11.5, 21.5] * 50
    >>> encoder = TIWSEncoder(cols="model").fit(X, y)
    >>> new = pd.DataFrame({"model": ["a"] + ["new"] * 9 + ["other"] * 9, "kind": ["car"] * 10 + ["van"] * 9})
    >>> encoder.transform(new)["model"].round()[[0, 1, 10]].tolist()
    [10.0, 11.0, 21.0]
    """

    classes_: NDArray[Any]
    n_cells_: dict[str, int]

    _allowed_options = {
        **OutOfFoldEncoder._allowed_options,
        "method": ("documents", "poster"),
        "context": CONTEXTS,
        "idf_rows": ("all", "known+self"),
        "target_type": TARGET_TYPES,
        "names": (True, False),
        "indicator": (True, False),
        "smooth": ("auto", Number(at_least=0, of="rows")),
    }

    def __init__(
        self,
        *,
        method="documents",
        context="batch",
        names=False,
        indicator=False,
        numeric="modl",
        smooth="auto",
        idf_rows="all",
        target_type="auto",
        cv=5,
        cols=None,
        drop_invariant=False,
        return_df=True,
        handle_missing="value",
        handle_unknown="value",
        verbose=0,
        random_state=0,
        n_jobs=None,
    ):
        self.method = method
        self.context = context
        self.names = names
        self.indicator = indicator
        self.numeric = numeric
        self.smooth = smooth
        self.idf_rows = idf_rows
        self.target_type = target_type
        self.cv = cv
        self.cols = cols
        self.drop_invariant = drop_invariant
        self.return_df = return_df
        self.handle_missing = handle_missing
        self.handle_unknown = handle_unknown
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> TIWSEncoder:
        """Count contexts and targets, and estimate the variance components.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            Lazy frames (DuckDB, polars, ...) are counted by their engine if `y` names a column: the counts, of every
            pair of an encoded column and another, are those of the collected table. ``numeric="modl"`` first cuts
            numbers of more than 10,000 distinct values by the engine's quantiles into as many cells (`n_cells_`).
        y : array-like of shape (n_rows,), or the name of a column of X
            Classes or numbers.
        sample_weight : array-like of shape (n_rows,), or the name of a column of X, optional
            A row of weight 2 counts as two rows; weights that sum to 1 hence count as one row in all, which shrinks all
            encodings to the mean (with a UserWarning). Rows of weight 0 count as absent.
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
        rows = lazy_rows(X, y, sample_weight, type(self).__name__, supervised=True)
        if rows is not None:
            return self._fit_lazily(rows)
        self._named_in, self.n_cells_ = named_columns(y, sample_weight), {}
        X, y, sample_weight = split_columns(X, y, sample_weight, type(self).__name__)
        check_same_rows(X, groups=groups)
        return self._fit(X, y, sample_weight, None, whole=True)

    def _fit_lazily(self, rows: LazyRows) -> TIWSEncoder:
        check_options(self)
        target = lazy_target(rows, self.target_type, type(self).__name__)
        rows.warn_of_light_weights(*LIGHT_FOR_TIWS)
        encoded = [column.name for column in categorical_columns(rows.table, self.cols, booleans=False)]
        for name in encoded if self.handle_missing == "error" else []:
            rows.refuse_missing(name)
        counts = count_lazily(self._counting, rows, encoded, target)
        self._fit_counts(counts, encoded, None if target is None else target.values, rows.table)
        self._named_in, self.n_cells_ = named_columns(rows.target, rows.weight), rows.cells
        self._observed = {name: Observed.none(int(counts.offsets[-1])) for name in encoded}
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, whole: bool) -> TIWSEncoder:
        table, weight = self._read(X, y, sample_weight)
        target = components(y, len(table), self.target_type, type(self).__name__, classes, weight)
        if target.classes is None:
            refuse_large_sums(target.y[:, 0], weight, type(self).__name__)
        encoded = [column.name for column in categorical_columns(table, self.cols, booleans=False, whole=whole)]
        self._refuse_missing(table, encoded)
        counts = self._counting.first_piece(table, encoded, (target.y, target.classes is not None), weight, whole=whole)
        self._fit_counts(counts, encoded, target.classes, table)
        self._observed = {name: Observed.none(int(counts.offsets[-1])) for name in encoded}
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None) -> TIWSEncoder:
        """Add a chunk of a table to the counts, and fit again: as `fit` on all chunks.

        Intervals of numeric columns are those of the first chunk (or of `fit`); with ``numeric`` as a dict of edges the
        result is that of `fit` on all chunks.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
        classes : array-like, optional
            All classes; needed in the first call unless `y` has them all.

        Returns
        -------
        self
        """
        X, y, sample_weight = split_columns(X, y, sample_weight, type(self).__name__)
        if not hasattr(self, "counts_"):
            return self._fit(X, y, sample_weight, classes, whole=False)
        check_same_classes(classes, self._classes)
        table, weight = self._read(X, y, sample_weight)
        table = match_features(self, table)
        target = further(y, len(table), self._classes, type(self).__name__)
        self._refuse_missing(table, list(self.columns_))
        for column, known in zip(table.columns, self.counts_.words, strict=True) if self.cols is None else ():
            if isinstance(known, CategoryWords):
                known.vocabulary.refuse_late_numbers(column)
        words = self._counting.new_words(table, self.counts_.words, weight)
        origin = next(iter(self.counts_.sums.values())).origin if self.counts_.sums else None
        piece = self._counting.count(table, words, list(self.columns_), target.y, weight, origin)
        self._add(piece)
        return self

    def merge(self, other: TIWSEncoder) -> TIWSEncoder:
        """Add the counts of another encoder, and fit again: as `fit` on the rows of both.

        Parameters
        ----------
        other : TIWSEncoder
            Fitted on the same columns, with the same intervals of numeric columns and the same classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            The counts cannot be added; the encoder is then unchanged.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import TIWSEncoder
        >>> X = pd.DataFrame({"car": list("abcd") * 20, "body": ["van", "van", "city", "city"] * 20})
        >>> y = [9.5, 8.5, 1.5, 2.5] * 20
        >>> here = TIWSEncoder(cols=["car"], cv=None).fit(X[:40], y[:40])
        >>> there = TIWSEncoder(cols=["car"], cv=None).fit(X[40:], y[40:])
        >>> here.merge(there).transform(X[:2])["car"].round(1).tolist()
        [9.5, 8.5]
        """
        if not isinstance(other, TIWSEncoder):
            raise TypeError(f"merge takes another TIWSEncoder, not {other!r}.")
        check_is_fitted(self, "columns_")
        check_is_fitted(other, "columns_")
        check_mergeable(self, other)
        self._add(other.counts_)
        theirs = carried_over(other._observed, other.counts_, self.counts_, self.columns_)
        self._observed = {name: observed + theirs[name].all() for name, observed in self._observed.items()}
        return self

    def observe(self, X: Any) -> TIWSEncoder:
        """Add rows without targets to the contexts of unknown categories, for services that predict one row at a time.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            Rows; those without an unknown category have no effect.

        Returns
        -------
        self

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import TIWSEncoder
        >>> X = pd.DataFrame({"car": list("abcd") * 20, "body": ["van", "van", "city", "city"] * 20})
        >>> encoder = TIWSEncoder(cols=["car"], context="observed").fit(X, [9.5, 8.5, 1.5, 2.5] * 20)
        >>> encoder = encoder.observe(pd.DataFrame({"car": ["new"] * 3, "body": ["van"] * 3}))
        >>> new = pd.DataFrame({"car": ["new"], "body": ["city"]})
        >>> bool(encoder.transform(new)["car"].iloc[0] > 5.5)  # mostly seen as a van
        True
        """
        table, rows = self._read_as_fitted(X), self._rows
        self._observed = {
            name: observed + rows.unseen(table, name, context="batch", anew=True).unseen
            for name, observed in self._observed.items()
        }
        return self

    def augment(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> tuple[Any, NDArray[Any], Floats]:
        """Fit, and encode the training rows twice: as they are, and as if a category of each were unknown.

        A model trained on both learns how reliable the estimates of unknown categories are; with ``indicator=True`` it
        can distinguish the two. In a row's second copy one column, drawn at random among those with at least three
        categories, has the estimate of its category from the other categories, by the other folds; the rest is as in
        `fit_transform`.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
        groups : array-like of shape (n_rows,), optional
            As in `fit_transform`.

        Returns
        -------
        dataframe or ndarray of shape (2 * n_rows, n_columns_out)
            The rows as they are, then with an unknown category each.
        target : ndarray of shape (2 * n_rows,)
        weight : ndarray of shape (2 * n_rows,)
            Half of each row's weight for each of its copies.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import TIWSEncoder
        >>> X = pd.DataFrame({"car": list("abcd") * 20, "body": ["van", "van", "city", "city"] * 20})
        >>> rows, target, weight = TIWSEncoder(cols=["car"]).augment(X, [9.5, 8.5, 1.5, 2.5] * 20)
        >>> rows.shape, target.shape
        ((160, 2), (160,))
        """
        X, y, sample_weight = split_columns(X, y, sample_weight, type(self).__name__)
        refuse_lost_groups(self.cv, groups)
        self.fit(X, y, sample_weight, groups)
        table = read_table(X, caller=type(self).__name__)
        target = check_target(y, len(table), type(self).__name__)
        weight = check_weights(sample_weight, len(table))
        folds = None if self.cv is None or not self.columns_ else list(self._fitted_folds(table, y, weight, groups))
        encoded = self._encode_table(table) if folds is None else self._put_together(table, self._filled(table, folds))
        halves = np.full(len(table), 0.5) if weight is None else weight / 2
        as_unseen = self._one_unseen(table, encoded, folds)
        everything = np.arange(2 * len(table))
        return gather([encoded, as_unseen], everything), np.concatenate([target, target]), np.tile(halves, 2)

    # -- using --------------------------------------------------------------------------------

    def transform(self, X: Any, y: Any = None, *, return_interval: float | None = None) -> Any:
        """Encode a table: a frame of the kind it has, an array with ``return_df=False``.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            With the columns of fit; 0 rows are allowed. Of a lazy frame the rows that hold an unknown category are
            collected, unless `handle_unknown` is "return_nan", and with `return_interval` all.
        y : ignored
            For compatibility with category_encoders' supervised encoders.
        return_interval : float, optional
            Also return intervals of this level (.9, say) for the mean target of the rows that describe an unknown
            category (under context "row", of the row itself).

        Returns
        -------
        dataframe or ndarray of shape (n_rows, n_columns_out)
            A lazy frame of a lazy frame.
        intervals : dataframe of shape (n_rows, 2 * n_encoded)
            With `return_interval`: ``NAME_lower`` and ``NAME_upper``, NaN for known categories.

        Raises
        ------
        ValueError, TypeError
            With the name of the column.
        """
        if return_interval is None and (lazy := self._as_lazy(X)) is not None:
            return self._encode_lazily(lazy)
        table = self._read_as_fitted(X, y)
        if return_interval is None:
            return self._encode_table(table)
        if self.method != "documents":
            raise ValueError("return_interval needs method='documents'; leave return_interval out.")
        check_option("return_interval", return_interval, [Number(above=0, below=1)])
        columns = self._rows.intervals(table, return_interval, shares=self._classes is not None)
        if isinstance(table.native, pd.DataFrame):
            return self._encode_table(table), pd.DataFrame(columns, index=table.native.index)
        return self._encode_table(table), frame_of(columns, library_of_frame(table.native))

    def donors(self, X: Any, column: str, n_donors: int = 5) -> pd.DataFrame:
        """The known categories ("donors") that unknown ones resemble most: their nearest neighbours by context.

        Parameters
        ----------
        X : dataframe or array-like, or None
            Rows with unknown categories; None: every known category as if it were unknown, and those observed.
        column : str
        n_donors : int, default 5
            Maximal number for each category.

        Returns
        -------
        pandas.DataFrame
            Columns category, donor, weight (of all donors they sum to 1), estimate (the donor's, as encoded; of more
            than two classes one column for each), rows (the donor's); the heaviest donor first. By method "poster"
            `transform` gives the mean of the estimates by these weights. By "documents" it solves a regression instead,
            and the weights are the similarities by which `JitterPredictor` and jitter trees replace unknown categories.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import TIWSEncoder
        >>> X = pd.DataFrame({"car": list("abcd") * 20, "body": ["van", "van", "city", "city"] * 20})
        >>> y = [9.5, 8.5, 1.5, 2.5] * 20
        >>> encoder = TIWSEncoder(cols=["car"]).fit(X, y)
        >>> new = pd.DataFrame({"car": ["new"], "body": ["van"]})
        >>> sorted(encoder.donors(new, "car", n_donors=2)["donor"])
        ['a', 'b']
        """
        self._check_encoded(column)
        check_option("n_donors", n_donors, [Number(at_least=1, whole=True)])
        state = self.columns_[column]
        if X is not None:
            return donor_table(state, [(self.unseen_rows(X, column).unseen, None)], n_donors)
        codes = np.flatnonzero(state.fitted.sums.rows > 0)
        unknown = [(state.fitted.as_unseen(codes), codes), (self._observed[column].all(), None)]
        return donor_table(state, unknown, n_donors)

    def unseen_rows(self, X: Any, column: str, *, context: str | None = None) -> UnseenRows:
        """The rows of X with an unknown category of a column, and their contexts.

        Parameters
        ----------
        X : dataframe or array-like, or a table that was read already
        column : str
            One that is encoded.
        context : {"batch", "row", "observed"}, optional
            As the encoder's by default.

        Returns
        -------
        UnseenRows
            `rows` (r,), `unseen` (m documents) and `which` (r,) of these each row goes by: what
            ``columns_[column].fitted.weights(rows.unseen)`` (m, donors) takes.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import TIWSEncoder
        >>> X = pd.DataFrame({"car": list("abcd") * 20, "body": ["van", "van", "city", "city"] * 20})
        >>> y = [9.5, 8.5, 1.5, 2.5] * 20
        >>> encoder = TIWSEncoder(cols=["car"]).fit(X, y)
        >>> new = pd.DataFrame({"car": ["new"], "body": ["van"]})
        >>> encoder.unseen_rows(new, "car").rows.tolist()
        [0]
        """
        self._check_encoded(column)
        check_option("context", context, [*CONTEXTS, None])
        table = X if isinstance(X, Table) else self._read_as_fitted(X)
        return self._rows.unseen(table, column, context=context)

    # -- input -------------------------------------------------------------------------------------

    def _check_encoded(self, column: str) -> None:
        check_is_fitted(self, "columns_")
        if column not in self.columns_:
            have = ", ".join(map(repr, self.columns_))
            raise ValueError(f"Column {column!r} is not encoded; there are {have}.")

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, Floats | None]:
        check_options(self)
        check_same_rows(X, y=y, sample_weight=sample_weight)
        table = read_table(X, caller=type(self).__name__)
        weight = check_weights(sample_weight, len(table))
        warn_of_light_weights(weight, *LIGHT_FOR_TIWS)
        return table, weight

    def _refuse_missing(self, table: Table, encoded: list[str]) -> None:
        for name in encoded if self.handle_missing == "error" else []:
            refuse_missing(name, encode_column(table[name]).codes < 0)

    # -- counts, and the columns that are fitted by them -------------------------------------------

    @property
    def _counting(self) -> ContextCounting:
        return ContextCounting(self.numeric, self.n_jobs)

    def _fit_counts(
        self, counts: TableCounts, encoded: list[str], classes: NDArray[Any] | None, table: Table | None
    ) -> None:
        """Fit every column; nothing of self changes before all is done. `table`: to be remembered."""
        states = fit_columns(self, counts, encoded, classes, self._names_in if table is None else table.names)
        if self.verbose:
            print_columns(states)
        self.columns_ = states
        if table is not None:
            self._remember(table)
        self.counts_ = counts
        self._classes = classes
        if classes is not None:
            self.classes_ = classes
        self.invariant_cols_: list[str] = []
        if self.drop_invariant:
            self.invariant_cols_ = [name for state in states.values() for name in state.constant_names()]

    def _add(self, piece: TableCounts) -> None:
        before, observed = self.counts_, self._observed
        counts = before + piece
        self._fit_counts(counts, list(self.columns_), self._classes, None)
        self._observed = carried_over(observed, before, counts, self.columns_)

    # -- rows, and lookups for lazy frames and exports ---------------------------------------------

    @property
    def _rows(self) -> RowEncoding:
        return RowEncoding(
            self.columns_, self.counts_, self._observed, self.context, self.handle_missing, self.handle_unknown
        )

    def _encoded_columns(self, table: Table) -> dict[str, dict[str, NDArray[Any]]]:
        encoded = self._rows.encoded(table)
        return {name: self._kept_columns(state, encoded[name]) for name, state in self.columns_.items()}

    def _lookup(self, name: str, state: TIWSColumn) -> ColumnLookup:
        self._rows.check_is_lookup(name)
        return self._known_lookup(name, state)

    def _lazy_lookup(self, name: str, state: TIWSColumn, frame: nw.LazyFrame[Any]) -> ColumnLookup:
        """With the estimates of unknown categories, for which the rows that hold one are collected."""
        known = self._known_lookup(name, state)
        of_unknown = self.handle_unknown == "value"
        missing_is_unknown = not categories_of(self.counts_, state.fitted.number).has_missing
        of_missing = self.handle_missing == "value" and missing_is_unknown
        if not (of_unknown or of_missing):
            return known
        pieces = []
        together = self.method == "poster" and self.idf_rows == "all"  # those that become NaN are among its documents
        if of_unknown or together:
            pieces.append(unknown_in(frame, known))
        if of_missing or (together and missing_is_unknown):
            pieces.append(frame.filter(is_missing(frame, name)))
        collected = [piece.select(self._names_in).collect() for piece in pieces]
        collected = [piece for piece in collected if len(piece)]
        if not collected:
            return known
        if self.context == "row":
            raise ValueError(
                f"context='row' estimates the unknown categories of column {name!r} from single rows, which is not "
                "done lazily; collect the frame, or set_params(context='batch')."
            )
        table = read_table(nw.concat(collected).to_native(), caller=type(self).__name__)
        unseen = self._rows.unseen(table, name).unseen
        values = state.outputs(state.fitted.unseen_estimates(unseen), np.ones(len(unseen), dtype=bool))
        columns = self._kept_columns(state, values)
        wanted = [n for n, category in enumerate(unseen.categories) if (of_missing if category is None else of_unknown)]
        estimates = stacked(list(columns.values()), len(unseen))
        return known.extended([unseen.categories[n] for n in wanted], estimates[wanted])

    def _known_lookup(self, name: str, state: TIWSColumn) -> ColumnLookup:
        """The lookup in which all that is unknown is NaN."""
        coding, outputs = self._rows.known(name)
        columns = self._kept_columns(state, outputs)
        stack = stacked(list(columns.values()), len(outputs[0]))
        return ColumnLookup(name, "category", list(columns), coding, stack, self.handle_unknown == "error")

    # -- out of fold -------------------------------------------------------------------------------

    def _fold_fitter(self, table: Table, y: Any, weight: Floats | None) -> FoldFitter:
        """A fold fits words, components, covariances and donors' rules by its training rows."""
        target = further(y, len(table), self._classes, type(self).__name__, weight)
        is_classes, encoded = self._classes is not None, list(self.columns_)
        unknown = "value" if self.handle_unknown == "error" else self.handle_unknown  # fit saw it in this fold

        def fit(train: NDArray[Any], held_out: NDArray[Any]) -> FittedFold:
            each = None if weight is None else weight[train]
            if each is not None and not (each > 0).any():
                raise ValueError("A fold's training rows all have weight 0; use fewer folds or other weights.")
            known = target.y[train], is_classes
            counts = self._counting.first_piece(table.taken(train), encoded, known, each, whole=True)
            columns = fit_columns(self, counts, encoded, self._classes, table.names)
            observed = {name: Observed.none(int(counts.offsets[-1])) for name in encoded}
            encoding = RowEncoding(columns, counts, observed, self.context, self.handle_missing, unknown)
            return FittedFold(table.taken(held_out), encoding)

        return target.codes, is_classes, fit

    def _fold_columns(self, fold: FittedFold) -> dict[str, NDArray[Any]]:
        return self._named(fold.encoding.encoded(fold.table))

    def _priors(self, table: Table) -> dict[str, NDArray[Any]]:
        unseen, rows = np.ones(len(table), dtype=bool), self._rows  # all categories, to a fold that has seen nothing
        priors = {name: state.outputs(rows.prior(table, name), unseen) for name, state in self.columns_.items()}
        return self._named(priors)

    def _named(self, outputs: dict[str, list[NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Output columns by their own names, from those of each encoded column."""
        pairs = ((self.columns_[name].names, columns) for name, columns in outputs.items())
        return {new: column for names, columns in pairs for new, column in zip(names, columns, strict=True)}

    # -- rows of fit as if one category had not been seen, for `augment` ---------------------------

    def _one_unseen(self, table: Table, encoded: Any, folds: list[FittedRows] | None) -> Any:
        """The encoded rows of fit, one category of each as if it had not been seen."""
        names = list(self.get_feature_names_out())
        frame = nw.from_native(encoded, eager_only=True) if self.return_df else None

        def known(name: str) -> NDArray[Any]:  # only of columns of estimates: others may be of types numpy has not
            return encoded[:, names.index(name)] if frame is None else frame[name].to_numpy()

        several = [name for name, state in self.columns_.items() if len(state.fitted.categories) >= MIN_CATEGORIES]
        drawn = check_random_state(self.random_state).randint(max(len(several), 1), size=len(table))
        changed = {}
        for name, state in self.columns_.items():
            columns = self._held_out_column(table, state, folds)
            here = (drawn == several.index(name)) if name in several else np.zeros(len(table), dtype=bool)
            changed[name] = {
                new: np.where(here, column, known(new)) for new, column in self._kept_columns(state, columns).items()
            }
        return self._assembled(table, changed)

    def _held_out_column(self, table: Table, state: TIWSColumn, folds: list[FittedRows] | None) -> list[NDArray[Any]]:
        """The output columns of one column for rows of fit, every category as if it had not been seen.

        Each row from the other categories in its fold's training rows; without folds from those in all rows.
        """
        name = self._names_in[state.fitted.number]
        whole = [(np.arange(len(table)), FittedFold(table, self._rows))]
        values = self._rows.prior(table, name)
        for rows, fold in whole if folds is None else folds:
            values[rows] = fold.as_unseen(name, self.random_state)
        return state.outputs(values, np.ones(len(table), dtype=bool))
