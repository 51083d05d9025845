"""`DateParts`: the day of a date as a number; month, week, weekday, hour and minute as categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders.base import TableTransformer, asked_container
from tabsym.frame import days_of, read_table
from tabsym.frame.meaning import format_of, moments_of

_CODES = {"month": "%m", "week": "%V", "weekday": "%a", "hour": "%H", "minute": "%M"}


class DateParts(TableTransformer):
    """Replace each column of dates by its day as a number and by its parts as categories.

    A date becomes the days since 1970-01-01 (a float, with the time of day as its fraction) under the column's own
    name, and text columns ``NAME month`` ("01" to "12"), ``NAME week`` (of the year, ISO 8601, "01" to "53") and
    ``NAME weekday`` ("Mon" to "Sun"); where the training rows hold more than one time of day also ``NAME hour`` and,
    if it varies, ``NAME minute``. A category for each part lets a model learn an effect of one hour or one weekday.
    Of moments with an offset from UTC the local clock time counts, as it is written.

    Parameters
    ----------
    cols : list of str, optional
        Columns of dates; default: columns of a date type, and text columns of which 95 % of the cells are dates.
    dayfirst : bool, optional
        Whether 03/04/2024 is the third of April. Default: as most cells can be read, in a tie the month first for
        slashes and the day first for points and hyphens.

    Attributes
    ----------
    formats_ : dict of str -> str
        Column -> the format of its text ("moments" for a column of a date type).
    parts_ : dict of str -> list of str
        Column -> its parts.
    feature_names_in_, n_features_in_

    Raises
    ------
    ValueError
        A column named in `cols` holds no dates, or a column of dates holds something else in `transform`.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import DateParts
    >>> X = pd.DataFrame({"at": ["2024-02-29 08:00", "2024-12-13 09:00"], "n": [1, 2]})
    >>> DateParts().fit_transform(X).to_dict("records")[0]
    {'at': 19782.3333..., 'at month': '02', 'at week': '09', 'at weekday': 'Thu', 'at hour': '08', 'n': 1}
    """

    def __init__(self, cols: list[str] | None = None, *, dayfirst: bool | None = None) -> None:
        self.cols = cols
        self.dayfirst = dayfirst

    def fit(self, X: Any, y: Any = None) -> DateParts:
        """Find the columns of dates, their formats and parts.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : optional
            Not used.

        Returns
        -------
        self
        """
        frame, _ = _as_pandas(X)
        for name in self.cols or []:
            if name not in frame.columns:
                raise ValueError(f"There is no column {name!r}; cols names columns of dates.")
        self.formats_: dict[str, str] = {}
        self.parts_: dict[str, list[str]] = {}
        for name in frame.columns if self.cols is None else self.cols:
            format_ = format_of(frame[name], self.dayfirst)
            if format_ is not None:
                self.formats_[name] = format_
                self.parts_[name] = parts_that_vary(moments_of(name, frame[name], format_))
            elif self.cols is not None:
                raise ValueError(f"Column {name!r} holds no dates; leave it out of cols.")
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """Replace the columns of dates (n_rows, n_columns), in place and in order; pandas in, pandas out.

        Parameters
        ----------
        X : dataframe of shape (n_rows, n_columns)

        Returns
        -------
        dataframe
            Of the library of X.
        """
        check_is_fitted(self)
        frame, native = _as_pandas(X)
        for name in self.feature_names_in_:
            if name not in frame.columns:
                raise ValueError(f"There is no column {name!r}, which the transformer was fitted with.")
        columns: dict[str, Any] = {}
        for name in self.feature_names_in_:
            if name in self.formats_:
                moments = moments_of(name, frame[name], self.formats_[name], later=True, dayfirst=self.dayfirst)
                columns |= date_columns(name, moments, self.parts_[name], set(self.feature_names_in_))
            else:
                columns[name] = frame[name].array
        if native is None or asked_container(self) == "pandas":
            return pd.DataFrame(columns, index=frame.index)
        untouched = set(self.feature_names_in_) - set(self.formats_)
        made = {str(name): column for name, column in columns.items() if name not in untouched}
        parts = nw.from_dict(  # NaN is a number to libraries other than pandas
            {name: [None if pd.isna(value) else value for value in column] for name, column in made.items()},
            {name: nw.Float64() if name in self.formats_ else nw.String() for name in made},
            backend=native.implementation,
        )
        return native.select(*(parts[str(n)] if str(n) in made else native[str(n)] for n in columns)).to_native()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the output columns, in order.

        Parameters
        ----------
        input_features : array-like of str, optional
            Not used; for scikit-learn's contract.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        self._check_input_features(input_features)
        names: list[str] = []
        for name in self.feature_names_in_:
            parts = self.parts_.get(name, [])
            names += [name, *names_of_parts(name, parts, set(self.feature_names_in_))]
        return np.array(names, dtype=object)


def _as_pandas(X: Any) -> tuple[pd.DataFrame, Any]:
    """The table as pandas, and as it came (None: that was pandas)."""
    table = read_table(X, caller="DateParts", allow_empty=True)
    if isinstance(table.native, pd.DataFrame):
        return table.native, None
    frame = nw.from_native(table.native, eager_only=True)
    return frame.to_pandas(), frame


def parts_that_vary(moments: pd.Series) -> list[str]:
    """Month, week and weekday; hour and minute where there is more than one time of day, as far as they vary."""
    moments = _local(moments).dropna()
    if moments.dt.normalize().eq(moments).all() or moments.dt.strftime("%H:%M:%S").nunique() < 2:
        return ["month", "week", "weekday"]
    return ["month", "week", "weekday", "hour", *(["minute"] if moments.dt.minute.nunique() > 1 else [])]


def names_of_parts(name: str, parts: Sequence[str], taken: Any) -> list[str]:
    """Names for the parts of a column that no other column has."""
    names = [f"{name} {part}" for part in parts]
    while any(part in taken for part in names):
        names = [f"{part}'" for part in names]
    return names


def date_columns(name: str, moments: pd.Series, parts: Sequence[str], taken: Any) -> dict[str, Any]:
    """The columns of a date: days since 1970 (n,) under its own name, and each part as text (n,)."""
    moments = _local(moments)
    columns: dict[str, Any] = {name: days_of(moments.to_numpy())}
    for part, column in zip(parts, names_of_parts(name, parts, taken), strict=True):
        text = moments.dt.strftime(_CODES[part]).astype("str")  # before pandas 3 a missing one is "nan"
        columns[column] = text.where(moments.notna()).array
    return columns


def _local(moments: pd.Series) -> pd.Series:
    return moments.dt.tz_localize(None) if moments.dt.tz is not None else moments
