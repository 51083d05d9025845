"""What transformers of tables share, and the base of the encoders: columns, checks, names, and the frame anew.

An encoder knows one column at a time: `_learn_column` makes its state from
codes, which has the `names` of its output columns, and `_encode_column` uses it. The loop over
columns, and everything a user can get wrong, is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import UNSEEN, Categories, RawCodes, encode_columns
from tabsym.categories.lazy import is_missing, lazy_rows
from tabsym.encoders.lookups import MISSING, ColumnLookup, encode_lazily, stacked, unknown_in, with_missing
from tabsym.frame import (
    Kind,
    Table,
    TableEstimator,
    as_array,
    as_lazy,
    assemble_frame,
    check_length,
    check_same_rows,
    check_weights,
    match_features,
    read_table,
    remember_features,
    split_columns,
    categorical_columns,
)
from tabsym.messages import check_declared_options


class TableTransformer(TransformerMixin, TableEstimator):
    """Base of all that read categories from tables; not public."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _check_input_features(self, input_features: Any) -> None:
        """A `ValueError` where names given to `get_feature_names_out` are not those of fit."""
        if input_features is None:
            return
        given = list(input_features)
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is not None and given != list(fitted):
            raise ValueError("input_features is not equal to feature_names_in_; leave it out.")
        if len(given) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features ({self.n_features_in_}), "
                f"got {len(given)}."
            )


class ColumnEncoder(TableTransformer):
    """Base of the encoders; not public."""

    _allowed_options: Mapping[str, tuple[Any, ...]] = {
        "handle_missing": ("value", "return_nan", "error"),
        "handle_unknown": ("value", "return_nan", "error"),
    }

    _named_in: Sequence[str] = ()  # columns of fit's table that were target and weights
    _texts_in: Sequence[str] = ()  # columns of text that are not encoded
    _counts_only = False
    """Whether fit needs nothing but how often each category occurs, so that an engine can count."""

    # -- for the encoders to fill in -------------------------------------------

    def _prepare(self, table: Table, encoded: list[str], y: Any, weight: NDArray[np.float64] | None) -> None:
        """What is fitted on all columns together, before `_learn_column`."""

    def _learn_column(self, name: str, raw: RawCodes, weight: NDArray[np.float64] | None) -> Any:
        """The state of one column, from its rows of weight above 0 and their weights (None: all 1)."""
        raise NotImplementedError

    def _settle(self, states: dict[str, Any]) -> dict[str, Any]:
        """The states of all columns, after what follows from all of them together only."""
        return states

    def _encode_column(self, state: Any, codes: NDArray[np.int32]) -> list[NDArray[Any]]:
        """The output columns of one column, from its codes in the column's vocabulary."""
        raise NotImplementedError

    # -- scikit-learn's methods ---------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn the categories of each column.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            Lazy frames (DuckDB, polars, ...) are counted by their engine, if the encoder needs counts only.
        y : array-like of shape (n_rows,), or the name of a column of X
            Only for encoders that use the target; others ignore it, and a column that is named is no feature.
        sample_weight : array-like of shape (n_rows,), or the name of a column of X, optional
            Rows of weight 0 count as absent.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With the name of the column; also where the indexes of X, y and sample_weight differ.
        """
        check_declared_options(self)
        caller, named = type(self).__name__, named_columns(y, sample_weight)
        rows = lazy_rows(X, y, sample_weight, caller, supervised=False) if self._counts_only else None
        if rows is not None:
            table, columns = rows.table, categorical_columns(rows.table, self.cols, booleans=False)
            self._prepare(table, [column.name for column in columns], None, None)
            counted: list[tuple[RawCodes, NDArray[np.float64] | None]] = [rows.counted(c.name) for c in columns]
        else:
            X, y, sample_weight = split_columns(X, y, sample_weight, caller)
            check_same_rows(X, y=y, sample_weight=sample_weight)
            table = read_table(X, caller=caller)
            weight = check_weights(sample_weight, len(table))
            columns = categorical_columns(table, self.cols, booleans=False)
            self._prepare(table, [column.name for column in columns], y, weight)
            counted = [(raw, weight) for raw in encode_columns(columns)]
        if self.handle_missing == "error":
            for column, (raw, _) in zip(columns, counted, strict=True):
                if rows is not None:
                    rows.refuse_missing(column.name)
                else:
                    refuse_missing(column.name, raw.codes < 0)
        if rows is None and weight is not None and not weight.all():
            # rows of weight 0 have no say in which category comes first
            some = Table(tuple(columns), len(weight), native=None, named=True).taken(np.flatnonzero(weight))
            counted = [(raw, weight[weight > 0]) for raw in encode_columns(some.columns)]
        states = {}
        for column, (raw, each) in zip(columns, counted, strict=True):
            kept = raw if each is None else _of_rows(raw, each > 0)
            states[column.name] = self._learn_column(column.name, kept, None if each is None else each[each > 0])
        self._named_in = named
        self.columns_ = self._settle(states)
        self._remember(table)
        self.invariant_cols_: list[str] = []
        if self.drop_invariant:
            self.invariant_cols_ = self._find_invariant([raw for raw, _ in counted])
        return self

    def transform(self, X: Any) -> Any:
        """Encode a table: a frame of the kind it has, an array with ``return_df=False``.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            With the columns of fit; 0 rows are allowed. A lazy frame may have the columns, too, that fit took by name
            for target and weights.

        Returns
        -------
        dataframe, ndarray or csr_array of shape (n_rows, n_columns_out)
            A lazy frame of a lazy frame, unless an array or a sparse matrix is requested: these are of the collected
            one.

        Raises
        ------
        ValueError, TypeError
            With the name of the column.
        """
        lazy = self._as_lazy(X)
        return self._encode_table(self._read_as_fitted(X)) if lazy is None else self._encode_lazily(lazy)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the output columns, in order.

        Parameters
        ----------
        input_features : array-like of str, optional
            Must be the names of fit.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "columns_")
        self._check_input_features(input_features)
        names: list[str] = []
        for name in self._names_in:
            state = self.columns_.get(name)
            names += [name] if state is None else self._kept_names(state)
        return np.asarray(names, dtype=object)

    def get_feature_names_in(self) -> NDArray[Any]:
        """Names of the columns of fit, in order: category_encoders' method; ``x0, x1, ...`` where they had none.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "columns_")
        return np.asarray(self._names_in, dtype=object)

    @property
    def feature_names_out_(self) -> NDArray[Any]:
        """What `get_feature_names_out` gives, by category_encoders' name."""
        return self.get_feature_names_out()

    # -- steps ---------------------------------------------------------------------

    def _remember(self, table: Table) -> None:
        """The columns of fit, once it is known which are encoded, and those of text among the others."""
        remember_features(self, table)
        self._names_in = table.names
        self._texts_in = [c.name for c in table.columns if c.name not in self.columns_ and c.holds_text]

    def _read_as_fitted(self, X: Any, y: Any = None) -> Table:
        """The table X with the columns of fit, whose rows go with y if there is one."""
        check_is_fitted(self, "columns_")
        table = read_table(X, caller=type(self).__name__, allow_empty=True)
        check_length(y, len(table))
        return match_features(self, table)

    def _as_lazy(self, X: Any, *, refit: bool = False) -> nw.LazyFrame[Any] | None:
        """The lazy frame X, if its encoding is to be one, too; not if fit saw columns without names."""
        if not self.return_df or getattr(self, "sparse_output", False) or asked_container(self) != "default":
            return None
        return as_lazy(X) if refit or hasattr(self, "feature_names_in_") else None

    def _encode_lazily(self, frame: nw.LazyFrame[Any]) -> Any:
        """The encoding of a lazy frame, which its engine is to compute; only for errors and warnings are rows asked."""
        check_is_fitted(self, "columns_")
        kept = [name for name in frame.columns if name in self._named_in]
        features = [name for name in frame.columns if name not in self._named_in]
        empty = frame.select(features).head(0).collect().to_native()
        encoded = nw.from_native(self._encode_table(self._read_as_fitted(empty)), eager_only=True)
        if frame.implementation.is_duckdb() and (alike := names_alike(encoded.columns)):
            raise ValueError(
                f"The encoding has columns {alike[0]!r} and {alike[1]!r}, which DuckDB does not tell apart; give the "
                "rows as an eager frame, such as relation.pl()."
            )
        out = encode_lazily(frame, self._lazy_lookups(frame), [*self._names_in, *kept], encoded.schema)
        return out.to_native()

    def _lazy_lookups(self, frame: nw.LazyFrame[Any]) -> dict[str, ColumnLookup]:
        """What the values of each encoded column are encoded as, after the checks that 'error' asks for."""
        if self.handle_missing == "error":
            for name in self.columns_:
                if len(frame.filter(is_missing(frame, name)).head(1).collect()):
                    raise ValueError(
                        f"Column {name!r} holds missing values; fill them in, or set handle_missing to something other "
                        "than 'error'."
                    )
            made = copy(self)
            made.handle_missing = "value"  # of which there are none
            return made._lazy_lookups(frame)
        lookups = {name: self._lazy_lookup(name, state, frame) for name, state in self.columns_.items()}
        for name, lookup in lookups.items():
            if lookup.checked and len(unknown := unknown_in(frame, lookup).select(name).head(1).collect()):
                raise ValueError(
                    f"Column {name!r} holds {unknown[name].to_list()[0]!r}, which is not in the training data; fit on "
                    "rows that have it, or set handle_unknown to something other than 'error'."
                )
        return lookups

    def _lazy_lookup(self, name: str, state: Any, frame: nw.LazyFrame[Any]) -> ColumnLookup:
        return self._lookup(name, state)

    def _fit_transform_lazily(self, frame: nw.LazyFrame[Any], y: Any, sample_weight: Any) -> Any:
        self.fit(frame.to_native(), y, sample_weight)
        return self.transform(frame.drop(self._named_in).to_native())

    def _encode_table(self, table: Table) -> Any:
        return self._assembled(table, self._encoded_columns(table))

    def _assembled(self, table: Table, encoded: dict[str, dict[str, NDArray[Any]]]) -> Any:
        """The table with output columns in place of what they encode, in the container asked for."""
        frame = assemble_frame(table, encoded)
        if not self.return_df:
            array = as_array(frame)
            return array if array.shape[1] else array.reshape(len(table), 0)  # a frame of polars has no rows then
        if asked_container(self) != "pandas" or isinstance(frame, pd.DataFrame):
            return frame
        return nw.from_native(frame, eager_only=True).to_pandas()  # scikit-learn would go by an array without types

    def _encoded_columns(self, table: Table) -> dict[str, dict[str, NDArray[Any]]]:
        """The output columns by name, by the column that they encode."""
        return {
            name: self._kept_columns(self.columns_[name], self._encode_column(self.columns_[name], codes))
            for name, codes in self._codes(table).items()
        }

    def _kept_columns(self, state: Any, columns: list[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The output columns of one column by name, without those that `drop_invariant` drops."""
        named = dict(zip(state.names, columns, strict=True))
        return {name: named[name] for name in self._kept_names(state)}

    def _codes(self, table: Table) -> dict[str, NDArray[np.int32]]:
        """Codes of the encoded columns, after the checks that 'error' asks for."""
        columns = [table[name] for name in self.columns_]
        out = {}
        for column, raw in zip(columns, encode_columns(columns), strict=True):
            if self.handle_missing == "error":
                refuse_missing(column.name, raw.codes < 0)
            codes = codes_in(self.columns_[column.name].vocabulary, raw)
            if self.handle_unknown == "error":
                refuse_unknown(column.name, raw, codes == UNSEEN)
            out[column.name] = codes.astype(np.int32)
        return out

    def _lookup(self, name: str, state: Any) -> ColumnLookup:
        """What each category of a column is encoded as, or a `ValueError` where that depends on the rest of the row."""
        codes, coding = with_missing(state.vocabulary.categories.tolist(), self.handle_missing)
        codes = np.append(codes, UNSEEN)
        columns = self._kept_columns(state, self._encode_column(state, codes.astype(np.int32)))
        values = stacked(list(columns.values()), len(codes))
        return ColumnLookup(name, "category", list(columns), coding, values, self.handle_unknown == "error")

    def _kept_names(self, state: Any) -> list[str]:
        dropped = set(self.invariant_cols_)
        return [name for name in state.names if name not in dropped]

    def _find_invariant(self, column_codes: list[RawCodes]) -> list[str]:
        """Output columns that are constant over the training rows."""
        invariant = []
        for state, raw in zip(self.columns_.values(), column_codes, strict=True):
            values = self._encode_column(state, codes_in(state.vocabulary, raw))
            for name, column in zip(state.names, values, strict=True):
                if (column == column[0]).all():
                    invariant.append(name)
        return invariant


def asked_container(transformer: Any) -> str:
    """By set_output, of this transformer or of all: "default", "pandas" or "polars"."""
    return str(getattr(transformer, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"])


def codes_in(vocabulary: Categories, raw: RawCodes) -> NDArray[Any]:
    """Codes in the vocabulary; UNSEEN, or MISSING where it does not have the missing one."""
    codes = vocabulary.transform(raw)
    return np.where((codes == UNSEEN) & (raw.codes < 0), MISSING, codes)


def named_columns(y: Any, sample_weight: Any) -> list[str]:
    """Those of the two that are names of columns."""
    return [argument for argument in (y, sample_weight) if isinstance(argument, str)]


def refuse_missing(name: str, missing: NDArray[np.bool_]) -> None:
    """A `ValueError` that names the first missing value of a column, if there is one."""
    if missing.any():
        raise ValueError(
            f"Column {name!r} holds a missing value (row {int(np.argmax(missing))}); fill it in, or set "
            "handle_missing to something other than 'error'."
        )


def refuse_unknown(name: str, raw: RawCodes, unknown: NDArray[np.bool_]) -> None:
    """A `ValueError` that names the first value of a column that is not in the training data, if there is one."""
    if unknown.any():
        row = int(np.argmax(unknown))
        what = "a missing value" if raw.codes[row] < 0 else repr(raw.categories[raw.codes[row]])
        raise ValueError(
            f"Column {name!r} holds {what} (row {row}), which is not in the training data; fit on rows that have it, "
            "or set handle_unknown to something other than 'error'."
        )


def numeric_matrix(table: Table, names: list[str], caller: str) -> dict[str, sparse.csr_array]:
    """Untouched columns as one-column sparse matrices, for sparse output."""
    out = {}
    for name in names:
        if table[name].kind is Kind.CATEGORICAL and not table[name].is_empty:
            raise ValueError(
                f"Column {name!r} holds categories and is not encoded, which a sparse matrix cannot hold; "
                f"add it to cols of {caller}, drop it, or use sparse_output=False."
            )
        out[name] = sparse.csr_array(table[name].values[:, None])
    return out


def _of_rows(raw: RawCodes, keep: NDArray[np.bool_]) -> RawCodes:
    """The codes of some rows, without categories that do not occur in them."""
    codes = raw.codes[keep]
    used = np.zeros(len(raw.categories), dtype=bool)
    used[codes[codes >= 0]] = True
    renumber = np.append(np.cumsum(used) - 1, -1).astype(np.int32)
    return RawCodes(renumber[codes], raw.categories[used])


def names_alike(names: Sequence[str]) -> tuple[str, str] | None:
    """Two names that differ in case only, if there are; DuckDB takes the first of such columns for both."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other != name:
            return other, name
    return None
