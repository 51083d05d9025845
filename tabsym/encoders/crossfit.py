"""`CrossFit`: any supervised encoder, made free of leaks: each training row is encoded by a model of the other folds.

The folds are those of `folds`. Files without code cannot hold pandas series: fitted encoders of category_encoders that
are on a list are written as values of pandas, numpy and Python. One that holds anything else stays as it is, and `save`
says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OrdinalEncoder, TargetEncoder
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from tabsym.categories import encode_columns
from tabsym.encoders.base import ColumnEncoder, TableTransformer, asked_container
from tabsym.encoders.dates import DateParts
from tabsym.encoders.folds import (
    CV,
    OutOfFoldEncoder,
    Split,
    never_held_out,
    refuse_lost_groups,
    split_by_target,
    warn_of_lost_categories,
    warn_of_prior,
    warn_of_small_folds,
)
from tabsym.encoders.onehot import OneHotEncoder
from tabsym.frame import (
    Table,
    categorical_columns,
    check_length,
    check_same_rows,
    check_target,
    check_weights,
    holds_classes,
    match_features,
    name_of_target,
    read_table,
    relative_weights,
    remember_features,
    split_columns,
)
from tabsym.frame.dtypes import read_categories, read_type, written_categories, written_type
from tabsym.frame.frames import (
    column_names,
    columns_of,
    data_for,
    gather,
    in_users_container,
    pick_columns,
    take_rows,
    wants_pandas,
    with_untouched,
)
from tabsym.messages import check_declared_options


class CrossFit(MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """Make a supervised encoder safe to train on: its own training rows are encoded out of fold.

    A supervised encoder writes each row's target into that row's features; a model trained on them
    overfits the encoding, above all that of a column of random keys. Here `fit_transform` (which a Pipeline
    calls in its fit) encodes each row by a clone fitted on the other folds,
    and `transform` encodes new rows by a clone fitted on all rows.

    Parameters
    ----------
    encoder : transformer
        Unfitted; tabsym's, scikit-learn's, category_encoders' or your own. Its own
        ``fit_transform`` is not used, so one that cross-fits itself does so once only; but scikit-learn's
        TargetEncoder (from 1.9 on) is given the folds of `cv`, which is the same and codes the categories once.
    cv : int, splitter, list of splits or None, default 5
        int: shuffled folds, stratified where the target holds classes (and not
        where the encoder has ``target_type="continuous"``). Splitters get `groups`.
        A row must be held out once at most. Rows that no fold holds out, as the first of TimeSeriesSplit, have the
        prior (see Notes). None: as ``fit(X, y).transform(X)``, which leaks.
    random_state : int, RandomState or None, default 0
        Of the shuffle, where `cv` is a number; 0: a second run makes the same features, None: others.

    Attributes
    ----------
    encoder_ : transformer
        Fitted on all rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)
        Where the columns had names.

    Notes
    -----
    A frame comes back as a frame of its kind, with its index, unless the encoder has
    ``return_df=False``; an array as what the encoder makes of arrays. Encoders of
    category_encoders, which know pandas only, get pandas and their output is converted back.

    Every fold must make the columns of `encoder_`, or there is a ValueError: columns are never
    filled in, because a name such as ``colour_2`` may mean another category in another fold.
    ``drop_invariant`` is no such case: folds drop nothing, and what `encoder_` dropped is left out.

    Encoders that do not use the target (`OneHotEncoder`, OrdinalEncoder, category_encoders' unsupervised ones), or do
    not show it (`MODLEncoder` with output "group" or "onehot"), number the categories or parts of the rows they are
    fitted on: `encoder_` encodes all rows. Next to encoders that leak the target, in a ColumnTransformer, say, those
    that number categories are refused.

    A category's training rows have a number for each fold, lower where the fold's targets are higher, which boosted
    trees learn: with 12 rows a category LightGBM's AUC was .011 below that by encodings that leak, with 50 rows .001
    below, with 2 rows .009 above (five tables each, of 400 or 2,000 shops; other numbers of folds make it less). A
    linear model's was the same, and with 2 rows .009 above. scikit-learn's own cross-fitting and category_encoders'
    `NestedCVWrapper` do the same.

    The prior is the encoding by a clone that was fitted on all rows with each column constant: for a target encoder
    the mean target. Columns that pass through the encoder unchanged keep their values.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import TargetEncoder
    >>> from tabsym import CrossFit
    >>> rng = np.random.default_rng(0)
    >>> keys, y = rng.integers(0, 9999, (9999, 1)).astype(str), rng.integers(0, 2, 9999)  # unrelated
    >>> leaky = TargetEncoder().fit(keys, y).transform(keys)
    >>> safe = CrossFit(TargetEncoder(), random_state=0).fit_transform(keys, y)
    >>> [bool(np.corrcoef(encoded[:, 0], y)[0, 1] > 0.5) for encoded in (leaky, safe)]
    [True, False]
    """

    _texts_in: Sequence[str] = ()  # columns of text in fit

    _allowed_options = {"cv": (*CV, None)}

    def __init__(self, encoder, cv=5, *, random_state=0):
        self.encoder = encoder
        self.cv = cv
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.encoder, "__sklearn_tags__"):
            inner = get_tags(self.encoder)
            tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
            tags.transformer_tags = inner.transformer_tags or tags.transformer_tags
            tags.non_deterministic = inner.non_deterministic
        tags.input_tags.sparse = False
        tags.target_tags.required = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")

    def __getstate__(self) -> dict[str, Any]:
        return {name: stored(value) for name, value in super().__getstate__().items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: restored(value) for name, value in state.items()})

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit a clone of the encoder on all rows.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
            For encoders whose fit takes it.
        groups : array-like of shape (n_rows,), optional
            Taken for `fit_transform`'s sake; all rows are used here.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, groups)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit, and encode each row by a clone fitted on the other folds.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
            For encoders whose fit takes it.
        groups : array-like of shape (n_rows,), optional
            For a splitter that keeps groups together.

        Returns
        -------
        dataframe, ndarray or sparse array of shape (n_rows, n_columns_out)

        Raises
        ------
        ValueError
            Where `cv` holds a row out twice, folds differ in their columns, or would number categories differently.

        Warns
        -----
        UserWarning
            Where rows are held out in no fold: they have the prior; and, with a splitter, where folds hold out
            categories that their training rows lack.
        """
        check_declared_options(self)
        refuse_lost_groups(self.cv, groups)
        by_all_rows = self.cv is None or _shows_no_target(self.encoder)
        if not by_all_rows and (part := _numbering_part(self.encoder)) is not None:
            raise ValueError(
                f"{type(part).__name__} inside the encoder numbers the categories of the rows it is fitted on, so that "
                "a number would mean another category in another fold; encode its columns outside CrossFit, which can "
                "be another part of a ColumnTransformer."
            )
        table, data, target, weight = self._fit(X, y, sample_weight, groups)
        if by_all_rows:
            return self._finish(self.encoder_.transform(data), table, data)
        kind = getattr(self.encoder_, "target_type", None)
        splits = split_by_target(self.cv, data, target, kind, random_state=self.random_state, groups=groups)
        is_ours, others = isinstance(self.encoder, OutOfFoldEncoder), never_held_out(splits, len(target))
        if not is_ours:  # tabsym's warn by themselves
            warn_of_small_folds(splits)
        if is_ours or (_takes_folds(self.encoder) and not len(others)):
            if not isinstance(self.cv, Integral):
                warn_of_lost_categories(self._categories(table), splits)
            if is_ours:
                return self._finish(self.encoder_._by_folds(data, target, weight, splits), table, data)
            return self._finish(self._typed().set_params(cv=splits).fit_transform(data, target), table, data)
        wanted = column_names(self.encoder_.transform(take_rows(data, np.arange(1))), self.encoder_)
        encoded = [self._encode_fold(data, target, weight, split) for split in splits]
        pieces = [self._matched(*piece, wanted, f"of fold {fold}") for fold, piece in enumerate(encoded)]
        if not isinstance(self.cv, Integral):
            warn_of_lost_categories(self._categories(table), splits)
        positions = [test for _, test in splits]
        if len(others):
            warn_of_prior(splits, len(target))
            positions.append(others)
            pieces.append(self._prior(data, target, weight, others, wanted))
        out = gather(pieces, np.argsort(np.concatenate(positions)))
        if isinstance(out, pd.DataFrame):
            out.index = data.index if isinstance(data, pd.DataFrame) else pd.RangeIndex(len(out))
        return self._finish(out, table, data)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Encode new rows by the encoder fitted on all rows.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            With the columns of fit.
        y : ignored
            Taken because category_encoders' supervised encoders take it. Rows are encoded by what all rows taught, also
            those of training: encodings out of fold come from `fit_transform` alone.

        Returns
        -------
        dataframe, ndarray or sparse array of shape (n_rows, n_columns_out)
        """
        check_is_fitted(self)
        given = read_table(X, caller=type(self).__name__, allow_empty=True)
        check_length(y, len(given))
        table = match_features(self, given)
        data = data_for(self.encoder, X, given)
        if table is not given:  # names on one side only, about which the warning was given: as in fit from here on
            named = hasattr(self, "feature_names_in_")
            data = data_for(self.encoder, table.native, table) if named else table.native.to_numpy()
        return self._finish(self._transformed(table, data), table, data)

    @available_if(lambda self: hasattr(self.encoder, "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the output columns, as the encoder gives them.

        Parameters
        ----------
        input_features : array-like of str, optional
            Not used; for scikit-learn's contract.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.asarray(self.encoder_.get_feature_names_out(input_features), dtype=object)

    # -- pieces ---------------------------------------------------------------------

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Table, Any, NDArray[Any], NDArray[np.float64] | None]:
        """Check everything, fit `encoder_`; the table, what the encoder gets of it, the target and the weights."""
        check_declared_options(self)
        encoder, caller = self.encoder, type(self).__name__
        if isinstance(encoder, type) or not (hasattr(encoder, "fit") and hasattr(encoder, "transform")):
            raise TypeError(
                f"encoder must be an object with fit and transform, not {encoder!r}; "
                "pass one such as CrossFit(TargetEncoder())."
            )
        if sample_weight is not None and not has_fit_parameter(encoder, "sample_weight"):
            raise ValueError(
                f"{type(encoder).__name__} takes no sample_weight in fit; leave it out, or use an encoder that "
                "takes it, such as tabsym's WideEncoder."
            )
        X, y, sample_weight = split_columns(X, y, sample_weight, caller)
        check_same_rows(X, y=y, sample_weight=sample_weight, groups=groups)
        table = read_table(X, caller=caller)
        target = check_target(y, len(table), caller)
        weight = check_weights(sample_weight, len(table))
        if wants_pandas(encoder) and target.dtype.kind in "OUS":
            # category_encoders number the classes that they see: a fold that lacks one would number others
            target = np.unique(target, return_inverse=True)[1]
        data = data_for(encoder, X, table)
        self._target_type = _target_type_of(encoder, target, name_of_target(y), weight)
        self.encoder_ = _fitted(self._typed(), data, target, weight)
        remember_features(self, table)
        self._texts_in = [column.name for column in table.columns if column.holds_text]
        return table, data, target, weight

    def _transformed(self, table: Table, data: Any) -> Any:
        """The encoding by `encoder_`; where that fails, of columns of text without a value, or a `TypeError`.

        scikit-learn's encoders fail on text that is numbers now, or only missing values of a type of numbers, in words
        of numpy's.
        """
        try:
            return self.encoder_.transform(data)
        except (TypeError, ValueError) as error:
            texts = [table[name] for name in self._texts_in if not table[name].holds_text]
            empty = [column.name for column in texts if column.is_empty]
            in_frame = isinstance(data, pd.DataFrame) and set(empty) <= set(data.columns)
            if empty and len(empty) == len(texts) and in_frame:
                return self.encoder_.transform(data.assign(**dict.fromkeys(empty, pd.Series(None, data.index, object))))
            changed = [column for column in texts if not column.is_empty]
            if not changed or type(self.encoder_).__module__.startswith("tabsym."):
                raise
            first = changed[0].series.drop_nulls().to_list()[0]
            raise TypeError(
                f"Column {changed[0].name!r} held text in fit and holds other values now (such as {first!r}), which "
                f"{type(self.encoder_).__name__} does not encode; convert it to the type it had."
            ) from error

    def _encode_fold(
        self, data: Any, target: NDArray[Any], weight: NDArray[np.float64] | None, split: Split
    ) -> tuple[Any, list[Any]]:
        """The held-out rows encoded by a clone fitted on the training rows, and the names of the columns."""
        train, test = split
        encoder = self._clone()
        _fitted(encoder, take_rows(data, train), target[train], None if weight is None else weight[train])
        out = encoder.transform(take_rows(data, test))
        return out, column_names(out, encoder)

    def _prior(
        self, data: Any, target: NDArray[Any], weight: NDArray[np.float64] | None, rows: NDArray[Any], wanted: list[Any]
    ) -> Any:
        """Rows encoded as if nothing distinguished them from others, but in columns that the encoder leaves alone."""
        missing = np.zeros(data.shape[0], dtype=np.int64)
        for column in columns_of(data):
            missing += np.asarray(pd.isna(column))
        fullest = int(np.argmin(missing))  # the first of the rows with the fewest missing values
        encoder, alike = self._clone(), take_rows(data, np.full(len(target), fullest))
        try:
            out = _fitted(encoder, alike, target, weight).transform(take_rows(alike, rows))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"cv holds row {rows[0]} out in no fold ({len(rows)} such rows), and {type(encoder).__name__} has no "
                f"prior for them, as it takes no constant columns ({error}); use a splitter that holds out all rows, "
                "such as KFold or GroupKFold."
            ) from error
        out = self._matched(out, column_names(out, encoder), wanted, "of constant columns")
        given = take_rows(data, rows)
        return with_untouched(out, given, self.encoder_.transform(given))

    def _categories(self, table: Table) -> dict[str, NDArray[np.integer]]:
        """Codes (n_rows,) of the categorical columns, of those that the encoder encodes where it says so."""
        cols = getattr(self.encoder, "cols", None)
        columns = categorical_columns(table, cols if isinstance(cols, (list, str)) else None, booleans=False)
        return {column.name: raw.codes for column, raw in zip(columns, encode_columns(columns), strict=True)}

    def _clone(self) -> Any:
        """The encoder, unfitted, for some rows: what is constant, and encoded, is decided on all rows, by encoder_."""
        encoder = _with_columns_of(self.encoder_, self._typed())
        return encoder.set_params(drop_invariant=False) if getattr(encoder, "drop_invariant", False) else encoder

    def _typed(self) -> Any:
        """The encoder, unfitted, with the kind of target that all rows decide: a fold could decide otherwise."""
        encoder = clone(self.encoder)
        return encoder if self._target_type is None else encoder.set_params(target_type=self._target_type)

    def _matched(self, out: Any, names: list[Any], wanted: list[Any], whose: str) -> Any:
        """The columns of `encoder_` from another's, or a `ValueError`."""
        dropped = getattr(self.encoder, "drop_invariant", False) and set(wanted) <= set(names)
        if names == wanted or dropped:
            return pick_columns(out, names, wanted)
        odd = sorted(map(str, set(names) ^ set(wanted)))
        what = f"such as {odd[0]!r}" if odd else "by their order"
        raise ValueError(
            f"The encoder {whose} makes other columns ({len(names)}) than that of all rows ({len(wanted)}), "
            f"{what}: a category or class is missing from its training rows; use fewer folds, merge the least frequent "
            "categories or classes, or, where columns only flag categories (one-hot), encode them outside CrossFit."
        )

    def _finish(self, out: Any, table: Table, data: Any) -> Any:
        """The encoder's output in the container that the user gave, or requested by set_output."""
        return in_users_container(out, self.encoder_, table, data, asked_container(self))


def _with_columns_of(fitted: Any, encoder: Any) -> Any:
    """An unfitted encoder that encodes the columns that a fitted one like it does, where that depends on the rows.

    Of ours, in compositions too: a boolean column is encoded if it has a missing value, and one without any value.
    """
    if isinstance(encoder, ColumnEncoder) and encoder.cols is None and hasattr(fitted, "columns_"):
        return encoder.set_params(cols=list(fitted.columns_))
    if not (parts := _parts_of(encoder)):
        return encoder
    others = fitted.named_transformers_ if isinstance(encoder, ColumnTransformer) else _parts_of(fitted)
    return encoder.set_params(
        **{name: _with_columns_of(others.get(name), part) for name, part in parts.items() if hasattr(part, "fit")}
    )


def _target_type_of(encoder: Any, target: NDArray[Any], name: str, weight: NDArray[np.float64] | None) -> str | None:
    """The kind of target for an encoder of ours that would guess it; None for others."""
    is_ours = type(encoder).__module__.partition(".")[0] == "tabsym"
    if not is_ours or getattr(encoder, "target_type", None) != "auto" or getattr(encoder, "model", None) is not None:
        return None
    of_classes = getattr(encoder, "output", None) == "logodds"
    rows = relative_weights(weight) if hasattr(encoder, "model") else weight  # WideEncoder's have any unit
    classes = holds_classes(target, "auto", type(encoder).__name__, name, few_are_classes=of_classes, rows=rows)
    return "classes" if classes else "continuous"


def _shows_no_target(encoder: Any) -> bool:
    """Whether an encoder is known not to show the target: clones of folds would number categories in other orders.

    MODLEncoder finds parts by the target, and of "group" and "onehot" its own `fit_transform` encodes all rows by them.
    """
    if isinstance(encoder, OutOfFoldEncoder):
        return not encoder._shows_target()
    if isinstance(encoder, (TableTransformer, OrdinalEncoder)):
        return True
    if parts := _parts_of(encoder):
        return all(part is None or isinstance(part, str) or _shows_no_target(part) for part in parts.values())
    names = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(encoder).__mro__]
    return ("category_encoders", "UnsupervisedTransformerMixin") in names


def _parts_of(encoder: Any) -> dict[str, Any]:
    """The transformers by name that scikit-learn's compositions are made of, or "passthrough", "drop" and None."""
    if isinstance(encoder, ColumnTransformer):
        return {name: part for name, part, _ in encoder.transformers} | {"remainder": encoder.remainder}
    if isinstance(encoder, FeatureUnion):
        return dict(encoder.transformer_list)
    return dict(encoder.steps) if isinstance(encoder, Pipeline) else {}


def _numbering_part(encoder: Any) -> Any:
    """The part of a composition by which its output depends on how a fold numbers what it has seen, or None."""
    for part in reversed(_parts_of(encoder).values()):
        if (inner := _numbering_part(part)) is not None:
            return inner
        names_meaning = isinstance(part, (OneHotEncoder, DateParts))
        if not names_meaning and not _parts_of(part) and _shows_no_target(part):
            return part
        is_estimator = hasattr(part, "__sklearn_tags__")
        if isinstance(encoder, Pipeline) and is_estimator and get_tags(part).target_tags.required:
            return None  # it reads numbers that were made in the same fold
    return None


def _takes_folds(encoder: Any) -> bool:
    """Whether it cross-fits itself by whatever folds it is given: scikit-learn's TargetEncoder, from 1.9 on.

    Not where metadata is routed: its `fit_transform` asks for groups then.
    """
    is_new = parse_version(sklearn.__version__) >= parse_version("1.9")
    return type(encoder) is TargetEncoder and is_new and not get_config()["enable_metadata_routing"]


def _fitted(encoder: Any, data: Any, target: NDArray[Any], weight: NDArray[np.float64] | None) -> Any:
    weights = {} if weight is None else {"sample_weight": weight}
    fitted = encoder.fit(data, target, **weights)
    if fitted is None:  # PolynomialWrapper of category_encoders, whose columns also change their order with the rows
        raise TypeError(
            f"fit of {type(encoder).__name__} returns nothing where scikit-learn's return the encoder; for several "
            "classes use sklearn.preprocessing.TargetEncoder, TIWSEncoder or WideEncoder."
        )
    return fitted


# -- fitted encoders of category_encoders, as files without code hold them -------------------------


MODULES = {
    "CatBoostEncoder": "cat_boost",
    "CountTargetEncoder": "count_target",
    "GLMMEncoder": "glmm",
    "JamesSteinEncoder": "james_stein",
    "LeaveOneOutEncoder": "leave_one_out",
    "MEstimateEncoder": "m_estimate",
    "OrdinalEncoder": "ordinal",
    "QuantileEncoder": "quantile_encoder",
    "SummaryEncoder": "quantile_encoder",
    "TargetEncoder": "target_encoder",
    "WOEEncoder": "woe",
}
"""The encoders of category_encoders that learn from a target, and the one that they number categories by."""

_PLAIN = (bool, int, float, str, bytes, type(None), np.generic, np.ndarray, np.random.RandomState)


@dataclass(frozen=True)
class StoredEncoder:
    """The name of an encoder on the list, and its attributes as plain values."""

    name: str
    state: dict[str, Any]


class _Unknown(TypeError):
    """A value that is on no list."""


def stored(encoder: Any) -> Any:
    """An encoder on the list as plain values; any other as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> from category_encoders import TargetEncoder
    >>> from tabsym.encoders.crossfit import restored, stored
    >>> X = pd.DataFrame({"town": ["Ulm", "Bonn", "Ulm", "Bonn"]})
    >>> encoder = TargetEncoder(smoothing=1, min_samples_leaf=1).fit(X, [0, 1, 0, 1])
    >>> bool((restored(stored(encoder)).transform(X) == encoder.transform(X)).all(axis=None))
    True
    """
    try:
        return _written_encoder(encoder) if _is_listed(encoder) else encoder
    except _Unknown:
        return encoder


def restored(written: Any) -> Any:
    """The encoder again; what is no `StoredEncoder` as it is."""
    if not isinstance(written, StoredEncoder):
        return written
    if written.name not in MODULES:
        raise ValueError(f"{written.name!r} is no encoder that files may hold.")
    cls = getattr(import_module(f"category_encoders.{MODULES[written.name]}"), written.name)
    if any(not isinstance(name, str) or name.startswith("__") for name in written.state):
        raise ValueError(f"A {written.name} has names of attributes that are none.")
    encoder = cls.__new__(cls)
    encoder.__dict__.update({name: _read(value) for name, value in written.state.items()})
    return encoder


def _is_listed(encoder: Any) -> bool:
    cls = type(encoder)
    return cls.__module__ == f"category_encoders.{MODULES.get(cls.__name__)}"


def _written_encoder(encoder: Any) -> StoredEncoder:
    return StoredEncoder(type(encoder).__name__, {name: _written(value) for name, value in vars(encoder).items()})


def _written(value: Any) -> list[Any]:
    """A value as its kind and plain parts."""
    if isinstance(value, pd.Series):
        return ["series", _numbers(value), written_categories(value.index), _written(value.name)]
    if isinstance(value, pd.DataFrame):
        columns = [_numbers(value.iloc[:, position]) for position in range(value.shape[1])]
        return ["frame", columns, written_categories(value.index), written_categories(value.columns)]
    if isinstance(value, (np.dtype, pd.api.extensions.ExtensionDtype)):
        return ["type", written_type(value, "pandas")]
    if _is_listed(value):
        return ["encoder", _written_encoder(value)]
    if type(value) is dict:
        return ["dict", [_written(key) for key in value], [_written(item) for item in value.values()]]
    if type(value) in (list, tuple, set):
        return [type(value).__name__, [_written(item) for item in value]]
    if isinstance(value, _PLAIN):
        return ["value", value]
    raise _Unknown(type(value).__name__)


def _numbers(series: pd.Series) -> Any:
    """The values (n,) of a series of numpy's types."""
    if not isinstance(series.dtype, np.dtype):
        raise _Unknown(str(series.dtype))
    return series.to_numpy()


def _read(written: list[Any]) -> Any:
    kind, *parts = written
    if kind == "value":
        return parts[0]
    if kind == "series":
        return pd.Series(parts[0], index=read_categories(*parts[1]), name=_read(parts[2]))
    if kind == "frame":
        columns = dict(enumerate(parts[0]))
        frame = pd.DataFrame(columns, index=read_categories(*parts[1]))
        frame.columns = read_categories(*parts[2])
        return frame
    if kind == "type":
        return read_type(parts[0])
    if kind == "encoder":
        return restored(parts[0])
    if kind == "dict":
        return dict(zip(map(_read, parts[0]), map(_read, parts[1]), strict=True))
    if kind in ("list", "tuple", "set"):
        return {"list": list, "tuple": tuple, "set": set}[kind](map(_read, parts[0]))
    raise ValueError(f"{str(kind)[:80]!r} is no kind of value.")
