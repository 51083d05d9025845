"""Categories made safe for boosters that take them natively.

The boosters disagree on what they accept and on what they do with symbols
they have not seen; some input aborts the process (LightGBM on polars
Categorical, CatBoost on polars 2 Categorical) and some is scored wrongly
without a word (XGBoost 3.1 to 3.2 maps an unseen category to a neighbour).
This transformer takes any frame and makes one kind of frame that all of them
read rightly: pandas, numbers as float64, symbols as categories whose levels
are those of training, unseen symbols as missing.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tabsym.codes import UNSEEN, Alphabet, RawCodes, encode_columns
from tabsym.encoders.transformer import TableTransformer
from tabsym.table import match_features, read_table, remember_features, symbolic_columns

MISSING_TEXT, UNSEEN_TEXT, OTHER_TEXT = "(missing)", "(unseen)", "(other)"


class NativeCategories(TableTransformer):
    """A pandas frame that boosters read natively and safely.

    Parameters
    ----------
    cols : list of str (or positions), one of them, "all" or None, default None
        Columns to pass as categories; None: text, object, category columns; "all": every column.
    output : {"category", "text"}, default "category"
        "category": pandas categories by training level, missing and unseen as NaN
        (LightGBM, XGBoost, HistGradientBoosting). "text": strings, with words for missing
        and unseen (CatBoost, which refuses NaN).
    max_levels : int, default None
        Keep the most frequent levels and one for all others: HistGradientBoosting takes
        at most 255.

    Attributes
    ----------
    categorical_ : list of str
        Names of the output columns that hold categories.
    names_ : dict of str -> str
        Output name -> the user's name; output names are safe in every library
        (LightGBM and XGBoost refuse some characters).

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym.encoders import NativeCategories
    >>> native = NativeCategories().fit(pd.DataFrame({"colour": ["red", "blue"]}))
    >>> native.transform(pd.DataFrame({"colour": ["blue", "never seen"]}))["f0"].tolist()
    ['c1', nan]
    """

    def __init__(
        self,
        *,
        cols: Any = None,
        output: Literal["category", "text"] = "category",
        max_levels: int | None = None,
    ) -> None:
        self.cols = cols
        self.output = output
        self.max_levels = max_levels

    def fit(self, X: Any, y: Any = None) -> NativeCategories:
        """Learn the levels of each symbolic column.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : ignored
        """
        if self.output not in ("category", "text"):
            raise ValueError(f"output={self.output!r} is not known; use 'category' or 'text'.")
        table = read_table(X, who=type(self).__name__)
        columns = symbolic_columns(table, self.cols, booleans=False)
        alphabets = {}
        for column, raw in zip(columns, encode_columns(columns), strict=True):
            levels = self._most_frequent(raw)
            alphabets[column.name] = (Alphabet(column.name, levels), len(levels) < len(raw.symbols))
        remember_features(self, table)
        self.alphabets_ = alphabets
        self.names_ = {f"f{j}": name for j, name in enumerate(table.names)}
        self.categorical_ = [new for new, name in self.names_.items() if name in alphabets]
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """The safe frame (n_rows, n_columns), columns named f0, f1, ... in order."""
        check_is_fitted(self, "alphabets_")
        table = read_table(X, who=type(self).__name__, allow_empty=True)
        table = match_features(self, table)
        raws = dict(zip(self.alphabets_, encode_columns([table[n] for n in self.alphabets_]), strict=True))
        columns: dict[str, Any] = {}
        for new, name in self.names_.items():
            if name in raws:
                columns[new] = self._symbols(name, raws[name])
            else:
                columns[new] = table[name].values
        return pd.DataFrame(columns, index=getattr(table.native, "index", None))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The output names, f0, f1, ..."""
        check_is_fitted(self, "alphabets_")
        self._check_input_features(input_features)
        return np.asarray(list(self.names_), dtype=object)

    def _most_frequent(self, raw: RawCodes) -> NDArray[Any]:
        if self.max_levels is None or len(raw.symbols) <= self.max_levels:
            return raw.symbols
        counts = np.bincount(raw.codes[raw.codes >= 0], minlength=len(raw.symbols))
        kept = np.sort(np.argsort(-counts, kind="stable")[: self.max_levels - 1])
        return np.asarray(raw.symbols[kept])

    def _symbols(self, name: str, raw: RawCodes) -> Any:
        alphabet, has_other = self.alphabets_[name]
        codes = alphabet.transform(raw)
        missing = raw.codes < 0
        if has_other:  # a rare symbol and an unseen one are the same to the model
            codes = np.where((codes == UNSEEN) & ~missing, len(alphabet), codes)
        if self.output == "text":
            words = np.array([*(str(s) for s in alphabet.symbols), OTHER_TEXT, UNSEEN_TEXT], dtype=object)
            return np.where(missing, MISSING_TEXT, words[codes])
        levels = [f"c{code}" for code in range(len(alphabet) + has_other)]
        return pd.Categorical.from_codes(np.where(missing, UNSEEN, codes).astype(np.int64), categories=pd.Index(levels))
