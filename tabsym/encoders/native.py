"""Categories made safe for boosters that take them natively, and a pipeline of these with a booster.

The boosters disagree on what they accept and on what they do with categories
they have not seen; some input aborts the process (LightGBM on polars
Categorical, CatBoost on polars 2 Categorical) and some is scored wrongly
without a word (XGBoost 3.1 to 3.2 maps an unknown category to a neighbour).
This transformer takes any frame and makes one kind of frame that all of them
read rightly: pandas, numbers as float64, categories as categories whose levels
are those of training, unknown categories as missing.

What a column means is decided here once, in fit, by its values where its type
says "object" (`tabsym.frame.read`), and holds for every type that may carry
the values later.

LightGBM and HistGradientBoosting refuse a table of no rows, XGBoost gives it
two classes where there are three, CatBoost writes complaints. So `answer_of`
asks no booster: the answer for no rows is the one for a made-up row, without
that row, which has the shape and type of all its other answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from tabsym.categories import UNSEEN, Categories, RawCodes, encode_columns
from tabsym.encoders.base import TableTransformer
from tabsym.encoders.crossfit import CrossFit
from tabsym.encoders.modl import MODLEncoder
from tabsym.frame import (
    Column,
    Kind,
    Table,
    categorical_columns,
    check_one_type,
    match_features,
    plain_labels,
    read_table,
    remember_features,
)
from tabsym.messages import Number, check_declared_options, check_option

_REFUSED = re.compile(r'[\[\]{}<>:,"\s]')
"""Characters that LightGBM (those of JSON, blanks) or XGBoost (brackets, less-than) refuse in names."""

CODES = ("native", "group", "ordinal")
MISSING_TEXT, UNSEEN_TEXT, OTHER_TEXT = "(missing)", "(unknown)", "(other)"


class NativeCategories(TableTransformer):
    """A pandas frame that boosters read natively and safely.

    A column has the same meaning in fit and in transform, and in every library, whatever its dtype:

    - Text, bytes and columns of a category type hold categories, also where these are numbers.
    - Numbers and booleans are numbers, also in columns of type "object" (which are categories to the encoders);
      so are `Decimal` and fractions. Dates and durations are days.
    - What fit took for numbers is read as numbers from any type, what it took for categories is matched by value;
      text is never parsed. Text for numbers, or dates for numbers, is an error, as are mixtures of types.
    - None, NaN, NaT and NA are missing. A column without any value in fit has no type: all of it is missing in
      transform.

    Parameters
    ----------
    cols : list of str (or positions), one of them, "all" or None, default None
        Columns to pass as categories; None: those that hold categories; "all": every column.
    output : {"category", "text", "ordinal"}, default "category"
        "category": pandas categories by training level, missing and unknown as NaN
        (LightGBM, XGBoost, HistGradientBoosting). "text": strings, with "(missing)"
        and "(unknown)" for these (CatBoost, which refuses NaN). "ordinal": numbers, 0 for the most frequent level, so
        that a threshold separates frequent from infrequent levels; missing and unknown as NaN.
    max_levels : int, default None
        Keep the most frequent levels and one for all others: HistGradientBoosting takes
        at most 255.
    names : {"short", "kept"}, default "short"
        What output columns are called: f0, f1, ...; or as the user calls them, with an underscore for each
        character that a booster refuses.

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

    _allowed_options = {
        "output": ("category", "text", "ordinal"),
        "max_levels": (None, Number(at_least=1, whole=True)),
        "names": ("short", "kept"),
    }

    def __init__(
        self,
        *,
        cols: Any = None,
        output: Literal["category", "text", "ordinal"] = "category",
        max_levels: int | None = None,
        names: Literal["short", "kept"] = "short",
    ) -> None:
        self.cols = cols
        self.output = output
        self.max_levels = max_levels
        self.names = names

    def fit(self, X: Any, y: Any = None) -> NativeCategories:
        """Find the levels of each categorical column.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : ignored

        Returns
        -------
        self
        """
        check_declared_options(self)
        table = read_table(X, caller=type(self).__name__, by_value=True)
        columns, numeric = _split_columns(table, self.cols)
        vocabularies = {}
        for name, raw in _coded(columns).items():
            levels = self._levels(raw)
            vocabularies[name] = (Categories(name, levels), len(levels) < len(raw.categories))
        remember_features(self, table)
        self.vocabularies_ = vocabularies
        self.measures_ = {column.name: column.measure for column in numeric}
        self.names_ = _output_names(table.names, self.names)
        self.categorical_ = [new for new, name in self.names_.items() if self._is_category(name)]
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """The frame that the library takes, columns in order, with the names in `names_`.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        pandas.DataFrame of shape (n_rows, n_columns)
        """
        check_is_fitted(self, "vocabularies_")
        table = read_table(X, caller=type(self).__name__, allow_empty=True, by_value=True)
        table = match_features(self, table)
        column_codes = _coded([table[name] for name in self.vocabularies_])
        columns: dict[str, Any] = {}
        for new, name in self.names_.items():
            if name in column_codes and (self.output == "ordinal" or self._is_category(name)):
                raw = column_codes[name]
                columns[new] = self.of_codes(name, self.vocabularies_[name][0].transform(raw), raw.codes < 0)
            elif name in column_codes:
                columns[new] = np.full(len(table), np.nan)
            else:
                table[name].check_measure(self.measures_[name])
                columns[new] = table[name].values
        return pd.DataFrame(columns, index=getattr(table.native, "index", None))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The output names, as `names_` has them.

        Parameters
        ----------
        input_features : array-like of str, optional
            Must be the names of fit.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "vocabularies_")
        self._check_input_features(input_features)
        return np.asarray(list(self.names_), dtype=object)

    def _is_category(self, name: str) -> bool:
        """Whether a column is passed as categories; CatBoost stops at those without any, and takes NaN for them."""
        if name not in self.vocabularies_ or self.output == "ordinal":
            return False
        return self.output == "category" or len(self.vocabularies_[name][0]) > 0

    def _levels(self, raw: RawCodes) -> NDArray[Any]:
        """The levels, or the most frequent, as they appear row by row: categories have another order in every type.

        Under "ordinal" the frequent ones come first.
        """
        present = raw.codes[raw.codes >= 0]
        order = pd.unique(present)
        if self.output == "ordinal":
            order = order[np.argsort(-np.bincount(present)[order], kind="stable")]
        if self.max_levels is not None and len(order) > self.max_levels:
            counts = np.bincount(present)[order]
            order = order[np.sort(np.argsort(-counts, kind="stable")[: self.max_levels - 1])]
        return np.asarray(raw.categories[order])

    def of_codes(self, name: str, codes: NDArray[Any], missing: NDArray[np.bool_]) -> Any:
        """What the codes of a column's levels are passed as.

        Parameters
        ----------
        name : str
        codes : ndarray of int of shape (n,)
        missing : ndarray of bool of shape (n,)
            For which values there was none.

        Returns
        -------
        ndarray or pandas.Categorical of shape (n,)
        """
        vocabulary, has_other = self.vocabularies_[name]
        if has_other:  # an infrequent category and an unknown one are the same to the model
            codes = np.where((codes == UNSEEN) & ~missing, len(vocabulary), codes)
        if self.output == "text":
            texts = [str(category) for category in vocabulary.categories]
            special = [unused_word(set(texts), word) for word in (OTHER_TEXT, UNSEEN_TEXT, MISSING_TEXT)]
            words = np.array([*texts, *special], dtype=object)
            return words[np.where(missing, len(words) - 1, np.where(codes == UNSEEN, len(words) - 2, codes))]
        if self.output == "ordinal":
            return np.where(missing | (codes < 0), np.nan, codes)
        n_levels = max(1, len(vocabulary) + has_other)  # of a column without any value, too: XGBoost needs one
        levels = [f"c{code}" for code in range(n_levels)]
        return pd.Categorical.from_codes(np.where(missing, UNSEEN, codes).astype(np.int64), categories=pd.Index(levels))


def _output_names(names: list[str], way: str) -> dict[str, str]:
    """Output name -> the user's name, no two alike."""
    if way == "short":
        return {f"f{j}": name for j, name in enumerate(names)}
    out: dict[str, str] = {}
    for name in names:
        new = _REFUSED.sub("_", name) or "_"
        while new in out or (new != name and new in names):
            new += "_"
        out[new] = name
    return out


def _split_columns(table: Table, cols: Any) -> tuple[list[Column], list[Column]]:
    """The columns to pass as categories, and those to pass as numbers.

    A column without any value is one of the former: whether its type says float64 or "object" is chance, and
    HistGradientBoosting fails on numbers that are all missing.
    """
    if cols is None:
        chosen = {column.name for column in table.columns if column.kind is Kind.CATEGORICAL}
    else:
        chosen = {column.name for column in categorical_columns(table, cols, booleans=False)}
    categorical: list[Column] = []
    others: list[Column] = []
    for column in table.columns:
        empty = column.kind is not Kind.CATEGORICAL and bool(np.isnan(column.values).all())
        (categorical if empty or column.name in chosen else others).append(column)
    return categorical, others


def _coded(columns: list[Column]) -> dict[str, RawCodes]:
    """Columns as codes, by name; a `TypeError` where one mixes types."""
    column_codes = dict(zip([column.name for column in columns], encode_columns(columns), strict=True))
    for name, raw in column_codes.items():
        check_one_type(name, raw.categories)
    return column_codes


def unused_word(categories: Set[Any], word: str) -> str:
    """The word, in more brackets where it is one of the categories already."""
    while word in categories:
        word = f"({word})"
    return word


def answer_of(ask: Callable[..., Any], frame: pd.DataFrame, **options: Any) -> Any:
    """Predictions by a method of a fitted booster for a frame of `NativeCategories`, which may have no rows.

    Parameters
    ----------
    ask : callable
        Such as ``booster.predict_proba``.
    frame : DataFrame of shape (n_rows, n_columns)
    options : dict
        The booster's own, such as ``raw_score=True`` for margins.

    Returns
    -------
    ndarray of shape (n_rows, ...)
    """
    if len(frame):
        return ask(frame, **options)
    blank = frame.reset_index(drop=True).reindex([0])  # missing everywhere, of the same types
    text = blank.select_dtypes(exclude=["number", "category"]).columns
    blank[text] = MISSING_TEXT
    return ask(blank, **options)[:0]


def _booster_has(method: str) -> Any:
    return available_if(lambda pipeline: hasattr(pipeline.steps[-1][1], method))


class NativePipeline(Pipeline):
    """A scikit-learn `Pipeline` of `NativeCategories` and a booster, whose tables may have no rows.

    Parameters
    ----------
    steps : list of (name, estimator)
        The last one is the booster.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from tabsym.encoders import NativeCategories, NativePipeline
    >>> X = pd.DataFrame({"colour": ["red", "blue", "green"] * 20})
    >>> booster = HistGradientBoostingClassifier(max_iter=5)
    >>> model = NativePipeline([("categories", NativeCategories()), ("booster", booster)])
    >>> model.fit(X, X["colour"]).predict_proba(X.head(0)).shape
    (0, 3)
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> NativePipeline:
        """Fit the steps; booleans of any library are numpy's to the booster, and come back as such."""
        super().fit(X, plain_labels(y), **params)
        return self

    @_booster_has("score")
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """The booster's own score: accuracy or R2."""
        return float(super().score(X, plain_labels(y), sample_weight, **params))

    @_booster_has("predict")
    def predict(self, X: Any, **options: Any) -> Any:
        """Predicted values or classes (n_rows,); options are the booster's, such as those that ask for margins."""
        return answer_of(self.steps[-1][1].predict, self[:-1].transform(X), **options)

    @_booster_has("predict_proba")
    def predict_proba(self, X: Any, **options: Any) -> Any:
        """Class probabilities (n_rows, n_classes)."""
        return answer_of(self.steps[-1][1].predict_proba, self[:-1].transform(X), **options)

    @_booster_has("decision_function")
    def decision_function(self, X: Any, **options: Any) -> Any:
        """Margins (n_rows,), of several classes (n_rows, n_classes)."""
        return answer_of(self.steps[-1][1].decision_function, self[:-1].transform(X), **options)


def coder_of(
    codes: Any, task: str, random_state: Any = None, *, text: bool = False, max_levels: int | None = None
) -> Any:
    """A transformer from any table to a frame that every booster reads rightly.

    Parameters
    ----------
    codes : {"native", "group", "ordinal"} or transformer
        "native": categories; "group": categories of MODL's groups; "ordinal": ranks by frequency; a transformer
        of the user's own, whose categories become categories.
    task : {"binary", "multiclass", "regression", "count"}
    random_state : int, optional
        Of MODL.
    text : bool
        Categories as text, for CatBoost.
    max_levels : int, optional
        Maximum number of levels of a column, for HistGradientBoosting.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym.encoders import coder_of
    >>> X = pd.DataFrame({"colour": ["red", "blue", "blue"]})
    >>> coder_of("ordinal", "binary").fit_transform(X)["colour"].tolist()
    [1.0, 0.0, 0.0]
    """
    if codes == "ordinal":
        return NativeCategories(output="ordinal", names="kept")
    native = NativeCategories(output="text" if text else "category", names="kept", max_levels=max_levels)
    if codes == "native":
        return native
    if codes == "group":
        kind = "continuous" if task in ("regression", "count") else "classes"
        groups = MODLEncoder(numeric="passthrough", target_type=kind, prove=False, random_state=random_state)
        return Pipeline([("groups", groups), ("categories", native)])
    if hasattr(codes, "fit") and hasattr(codes, "transform"):
        return Pipeline([("codes", clone(codes)), ("categories", native)])
    return check_option("codes", codes, CODES, "a transformer")


def fit_coder(coder: Any, X: Any, y: Any, sample_weight: Any = None) -> pd.DataFrame:
    """Fit what `coder_of` made; the frame of the training rows, which an encoder of targets makes out of fold.

    Parameters
    ----------
    coder : transformer of `coder_of`
    X : dataframe or array-like of n rows
    y : array-like of shape (n,)
    sample_weight : array-like of shape (n,), optional
        For an encoder of the user's own whose `fit` takes weights.
    """
    custom = coder.named_steps.get("codes") if isinstance(coder, Pipeline) else None
    if sample_weight is None or custom is None:
        return coder.fit_transform(X, y)
    # CrossFit refuses weights for encoders that take none
    parts = [custom, custom.encoder] if isinstance(custom, CrossFit) else [custom]
    weighs = all(has_fit_parameter(part, "sample_weight") for part in parts)
    return coder.fit_transform(X, y, **({"codes__sample_weight": sample_weight} if weighs else {}))
