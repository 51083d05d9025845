"""One-hot encoding: dense, sparse, or as the code matrix that never holds a zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from tabsym.codes import UNSEEN, Alphabet, CodeMatrix, RawCodes
from tabsym.encoders.base import MISSING, ColumnEncoder, numeric_matrix
from tabsym.table import Table, match_features, read_table


@dataclass(frozen=True)
class OneHotColumn:
    """State of one column: its alphabet, and the name of each output column.

    Output columns are the symbols in code order, then the flags for a missing
    and for an unknown symbol where they were asked for (their places, or -1).
    """

    alphabet: Alphabet
    names: list[str]
    missing_place: int
    unknown_place: int


class OneHotEncoder(ColumnEncoder):
    """One 0/1 column for each symbol; options and behaviour of category_encoders' encoder.

    Parameters
    ----------
    verbose : int, default 0
        Accepted for compatibility; nothing is printed.
    cols : list of str (or positions, for arrays), default None
        Columns to encode; None: text, object and category columns. All others pass
        through untouched, in place.
    drop_invariant : bool, default False
        Drop output columns that are constant over the training rows.
    return_df : bool, default True
        Return a frame of the kind given (pandas for arrays); False: an array.
    handle_missing : {"value", "return_nan", "error", "indicator", "ignore"}, default "value"
        "value": missing gets a column of its own where it occurred in training, else all
        zeros. "indicator": a column ``c_-2`` that flags missing values, always there.
        "return_nan": NaN in every column of the row. "ignore": all zeros.
    handle_unknown : {"value", "return_nan", "error", "indicator"}, default "value"
        For symbols that fit has not seen. "value": all zeros. "indicator": a column ``c_-1``
        that flags them. "return_nan": NaN in every column of the row.
    use_cat_names : bool, default False
        Name columns after symbols (``colour_red``) rather than by number (``colour_1``).
    sparse_output : bool, default False
        Return a CSR matrix; untouched columns must then be numeric.

    Attributes
    ----------
    categories_ : dict of str -> ndarray
        The symbols of each encoded column, in the order of its output columns; None is missing.
    invariant_cols_ : list of str
        Output columns left out by `drop_invariant`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Notes
    -----
    Output is int8, or float64 where NaN can occur and in sparse matrices. Symbols are
    in order of first appearance, those of category columns in category order.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import OneHotEncoder
    >>> X = pd.DataFrame({"colour": ["red", "blue"], "price": [1.0, 2.0]})
    >>> OneHotEncoder(use_cat_names=True).fit_transform(X)
       colour_red  colour_blue  price
    0           1            0    1.0
    1           0            1    2.0
    """

    _missing_words = ("value", "return_nan", "error", "indicator", "ignore")
    _unknown_words = ("value", "return_nan", "error", "indicator")

    def __init__(
        self,
        *,
        verbose=0,
        cols=None,
        drop_invariant=False,
        return_df=True,
        handle_missing="value",
        handle_unknown="value",
        use_cat_names=False,
        sparse_output=False,
    ):
        self.verbose = verbose
        self.cols = cols
        self.drop_invariant = drop_invariant
        self.return_df = return_df
        self.handle_missing = handle_missing
        self.handle_unknown = handle_unknown
        self.use_cat_names = use_cat_names
        self.sparse_output = sparse_output

    @property
    def categories_(self) -> dict[str, NDArray[Any]]:
        """The symbols of each encoded column."""
        check_is_fitted(self, "columns_")
        return {name: state.alphabet.symbols for name, state in self.columns_.items()}

    def transform_codes(self, X: Any) -> CodeMatrix:
        """The encoded columns as a code matrix: the places of the ones, without the zeros.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        CodeMatrix
            ``codes`` (n_rows, encoded columns); -1 where a symbol is not in the alphabet.
        """
        check_is_fitted(self, "columns_")
        table = read_table(X, who=type(self).__name__, allow_empty=True)
        table = match_features(self, table)
        codes = self._codes(table)
        sizes = [len(self.columns_[name].alphabet) for name in codes]
        return CodeMatrix.assemble(list(codes.values()), sizes, len(table))

    def inverse_transform(self, X: Any) -> Any:
        """The table from its encoding.

        Parameters
        ----------
        X : dataframe, array or sparse matrix of shape (n_rows, n_columns_out)
            As made by `transform`.

        Returns
        -------
        dataframe (array with ``return_df=False``)
            Rows of zeros, or of NaN, are missing: which symbol they had is not in the encoding.

        Raises
        ------
        ValueError
            Another number of columns, or columns were dropped by `drop_invariant`.
        """
        check_is_fitted(self, "columns_")
        if self.invariant_cols_:
            raise ValueError(
                f"drop_invariant dropped {self.invariant_cols_[0]!r}, so the table cannot be restored; "
                "fit with drop_invariant=False."
            )
        encoded = read_table(X.toarray() if sparse.issparse(X) else X, who=type(self).__name__, allow_empty=True)
        names = self.get_feature_names_out()
        if len(encoded.names) != len(names):
            raise ValueError(f"X has {len(encoded.names)} columns, but transform makes {len(names)}.")
        place = 0
        columns: dict[str, Any] = {}
        for name in self._names_in:
            state = self.columns_.get(name)
            if state is None:
                columns[name] = encoded.columns[place].series.to_native()
                place += 1
                continue
            width = len(state.names)
            block = np.column_stack([column.values for column in encoded.columns[place : place + width]])
            columns[name] = _symbols_of(block, state)
            place += width
        return self._like_input(encoded, columns)

    def _learn_column(self, name: str, raw: RawCodes) -> OneHotColumn:
        own_missing = self.handle_missing == "value"
        codes = raw.codes if own_missing else raw.codes[raw.codes >= 0]
        alphabet, _ = Alphabet.fit(name, RawCodes(codes, raw.symbols))
        labels = [self._label(code, symbol) for code, symbol in enumerate(alphabet.symbols)]
        missing_place = unknown_place = -1
        if self.handle_missing == "indicator":
            missing_place = len(labels)
            labels.append("nan" if self.use_cat_names else "-2")
        if self.handle_unknown == "indicator":
            unknown_place = len(labels)
            labels.append("-1")
        names = _unique_names([f"{name}_{label}" for label in labels])
        return OneHotColumn(alphabet, names, missing_place, unknown_place)

    def _label(self, code: int, symbol: Any) -> str:
        if not self.use_cat_names:
            return str(code + 1)
        return "nan" if symbol is None else str(symbol)

    def _column_names(self, state: OneHotColumn) -> list[str]:
        return state.names

    def _encode_column(self, state: OneHotColumn, codes: NDArray[np.int32]) -> list[NDArray[Any]]:
        codes, empty = self._places(state, codes)
        block = np.zeros((len(state.names), len(codes)), dtype=np.int8)
        rows = np.flatnonzero(codes >= 0)
        block[codes[rows], rows] = 1
        if "return_nan" not in (self.handle_missing, self.handle_unknown):
            return list(block)
        return [np.where(empty, np.nan, column) for column in block]

    def _places(self, state: OneHotColumn, codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The output column of each row's one (negative: none), and rows that are all NaN."""
        missing, unknown = codes == MISSING, codes == UNSEEN
        empty = (missing & (self.handle_missing == "return_nan")) | (unknown & (self.handle_unknown == "return_nan"))
        places = np.where(missing, state.missing_place, np.where(unknown, state.unknown_place, codes))
        return places.astype(np.int32), empty

    def _encode_table(self, table: Table) -> Any:
        if not self.sparse_output:
            return super()._encode_table(table)
        untouched = [name for name in table.names if name not in self.columns_]
        numbers = numeric_matrix(table, untouched, type(self).__name__)
        codes = self._codes(table)
        blocks = [
            numbers[name] if name in numbers else self._sparse_block(self.columns_[name], codes[name])
            for name in table.names
        ]
        return sparse.hstack(blocks, format="csr")

    def _sparse_block(self, state: OneHotColumn, codes: NDArray[np.int32]) -> sparse.csr_array:
        places, empty = self._places(state, codes)
        block = CodeMatrix(places[:, None], np.array([0, len(state.names)])).to_csr()
        if empty.any():
            block = block + sparse.csr_array(np.where(empty, np.nan, 0.0)[:, None] * np.ones(len(state.names)))
        dropped = set(self.invariant_cols_)
        keep = [place for place, name in enumerate(state.names) if name not in dropped]
        return block if len(keep) == len(state.names) else block[:, keep]

    def _like_input(self, encoded: Table, columns: dict[str, Any]) -> Any:
        if encoded.named and not isinstance(encoded.native, pd.DataFrame):
            backend = nw.from_native(encoded.native, eager_only=True).implementation
            series = [
                nw.new_series(name, values.tolist(), backend=backend)
                if isinstance(values, np.ndarray)
                else nw.from_native(values, series_only=True).alias(name)
                for name, values in columns.items()
            ]
            return nw.to_native(series[0].to_frame().select(*series))
        frame = pd.DataFrame({name: np.asarray(values) for name, values in columns.items()})
        if isinstance(encoded.native, pd.DataFrame):
            frame.index = encoded.native.index
        return frame if self.return_df else frame.to_numpy()


def _symbols_of(block: NDArray[np.float64], state: OneHotColumn) -> NDArray[Any]:
    if not len(block):
        return np.empty(0, dtype=object)
    codes = np.where(np.nan_to_num(block).max(axis=1) > 0, np.nan_to_num(block).argmax(axis=1), UNSEEN)
    codes[codes >= len(state.alphabet)] = UNSEEN  # the flags stand for no symbol
    return state.alphabet.inverse(codes)


def _unique_names(names: list[str]) -> list[str]:
    """category_encoders' way with names that clash: a trailing # for each earlier one."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        times = seen.get(name, 0)
        seen[name] = times + 1
        out.append(name + "#" * times)
    return out
