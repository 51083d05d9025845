"""Predictions of rows with unknown categories: averaged over donors, as they are or as scores before the link.

What a wrapped model shows of itself is here, too: its raw scores, its link, and how it takes unknown categories.
XGBoost 3.1 and 3.2 take an unknown category for a neighbour in sort order without a word, so no unknown level reaches
it: behind `NativeCategories` the category is missing there anyway, and elsewhere a missing value is asked about
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders import NativeCategories, TIWSEncoder
from tabsym.encoders.native import unused_word
from tabsym.frame import match_features, read_table, take_rows
from tabsym.integrations import available, load_adapter
from tabsym.jitter.replacing import Chunk, Donors, Longer, Mixture, longer, replaced, source_of, without_strange_levels
from tabsym.tiws.column import FittedColumn, Unseen
from tabsym.tiws.unknown import DonorRule

Floats = NDArray[np.float64]

CALLER = "JitterPredictor"
"""In messages."""
ROWS_FOR_LINK = 64
"""By which a link is found."""

Predict = Callable[[Any], Any]
Link = Callable[[Floats], Floats]
LINKS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda score: score,
    "logistic": lambda score: np.stack([expit(-score), expit(score)], axis=1) if score.ndim == 1 else expit(score),
    "softmax": lambda score: softmax(score, axis=1),
    "exponential": np.exp,
}
_NEAR = 1e-4  # of float32


def parts_of(model: Any) -> tuple[Predict | None, Any]:
    """What makes a table ready for a model's last estimator (None: nothing does), and that estimator."""
    if isinstance(model, Pipeline):
        return (model[:-1].transform if len(model.steps) > 1 else None), model.steps[-1][1]
    if isinstance(getattr(model, "categories_", None), NativeCategories):  # CatBoost's adapter
        return model.categories_.transform, model.booster_
    return None, model


def library(estimator: Any) -> str:
    """The package that an estimator is of."""
    names = [kind.__module__.partition(".")[0] for kind in type(estimator).__mro__]
    return next((name for name in names if name in ("lightgbm", "xgboost", "catboost")), names[0])


def raw_scores(model: Any) -> Predict | None:
    """What gives a model's raw scores of a table; None: nothing does."""
    if hasattr(model, "decision_function"):
        decision: Predict = model.decision_function
        return decision
    ready, booster = parts_of(model)
    name = library(booster)
    score: Any = None
    if isinstance(booster, HistGradientBoostingRegressor):
        score = _hist_scores
    elif name in available():
        score = getattr(load_adapter(name), "raw_scores", None)
    if score is None:
        return None
    return lambda X: score(booster, X if ready is None else ready(X))


def _hist_scores(booster: Any, frame: Any) -> Floats:
    """Scores before the link, which a `HistGradientBoostingRegressor` does not tell."""
    scores = booster._raw_predict(frame)
    return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)


UnknownAs = Literal["model", "missing"]
"""Unknown values go to the model as they are, or as missing ones."""


def unknown_as_of(model: Any) -> UnknownAs:
    """The road for a model."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else getattr(model, "categories_", None)
    is_native = isinstance(first, NativeCategories)  # which makes unknown categories missing
    return "model" if is_native or not any(library(part) == "xgboost" for part in _parts(model)) else "missing"


def placeholder(categories: Sequence[Any], unknown_as: UnknownAs) -> Any:
    """A category that none of these is; None, a missing value, on the road of that name and where none can be made."""
    if unknown_as == "missing":
        return None
    present = [category for category in categories if category is not None]
    if all(isinstance(category, str) for category in present):
        return unused_word(set(present), "(never seen)")
    if all(isinstance(category, (int, float, np.number)) and not isinstance(category, bool) for category in present):
        return type(present[0])(max(present) + 1)
    return None


def _parts(model: Any) -> Iterator[Any]:
    yield model
    if hasattr(model, "get_params"):
        for value in model.get_params(deep=True).values():
            yield from value if isinstance(value, (list, tuple)) else (value,)


def link_of(scores: Any, predictions: Any) -> Callable[[Floats], Floats]:
    """The link under which a model's scores are its answers, or a `ValueError` where it is none of the usual ones."""
    scores, predictions = np.asarray(scores, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
    names = ["identity", "exponential"] if predictions.ndim == 1 else ["softmax", "logistic"]
    if predictions.ndim == 2 and scores.ndim == 1:
        names = ["logistic"]
    for name in names:
        with np.errstate(over="ignore"):
            made = LINKS[name](scores)
        if made.shape == predictions.shape and np.allclose(made, predictions, rtol=_NEAR, atol=_NEAR):
            return LINKS[name]
    raise ValueError(
        "average='raw' needs a model whose predictions follow from its scores by a "
        "logistic, softmax, exponential or no link, unlike this one; use average='probability'."
    )


def score_of(model: Any) -> Predict:
    """What gives a model's raw scores, or a `ValueError`."""
    score = raw_scores(model)
    if score is None:
        raise ValueError(
            f"average='raw' needs a model with raw scores, and {name_of(model)} has none; use average='probability'."
        )
    return score


def name_of(model: Any) -> str:
    """What a model is called; of a pipeline its last step."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if steps else model).__name__


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator can answer; CatBoost has its own way to say so."""
    of_catboost = getattr(estimator, "is_fitted", None)
    if callable(of_catboost):
        return bool(of_catboost())
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def with_tags_of(model: Any, tags: Any) -> Any:
    """The tags of an estimator that takes tables and predicts by a model."""
    inner = get_tags(model)
    tags.estimator_type = inner.estimator_type
    tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
    tags.target_tags.required = True
    tags.input_tags.allow_nan = inner.input_tags.allow_nan
    tags.input_tags.string = tags.input_tags.categorical = True
    return tags


# -- averages over donors --------------------------------------------------------------------------


@dataclass(frozen=True)
class MeanAndStd:
    """Weighted means (r, ...) and standard deviations (r, ...)."""

    mean: Floats
    std: Floats


def averaged(chunks: Iterable[Chunk], predict: Callable[[Any, Any], Any], n_rows: int) -> MeanAndStd:
    """Moments of what is answered, of rows in order; `predict` takes the rows of a chunk and their donors.

    Sums are of differences to a row's first answer, so that equal answers have no spread at all.
    """
    first: Floats | None = None
    known = 0
    for rows, categories, weights in chunks:
        values = np.asarray(predict(rows, categories), dtype=np.float64)
        if first is None:
            first, sums, squares = (np.zeros((n_rows, *values.shape[1:])) for _ in range(3))
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        fresh = starts[rows[starts] >= known]
        first[rows[fresh]] = values[fresh]
        known = int(rows[-1]) + 1
        away = values - first[rows]
        weighed = weights.reshape(-1, *[1] * (values.ndim - 1)) * away
        sums[rows[starts]] += np.add.reduceat(weighed, starts, axis=0)
        squares[rows[starts]] += np.add.reduceat(weighed * away, starts, axis=0)
    if first is None:
        return MeanAndStd(np.zeros(n_rows), np.zeros(n_rows))
    return MeanAndStd(first + sums, np.sqrt(np.maximum(squares - sums**2, 0.0)))


Indices = NDArray[np.integer]

MAX_WEIGHTS = 1 << 22
"""Of rows and donors, at a time."""


@dataclass(frozen=True)
class Treatment:
    """What becomes of a column's unknown values.

    `used`: "jitter", "missing" (they become missing values) or "model" (they go to the model as they are). `rule`: of
    the donors' weights, the encoder's where it is None.
    """

    used: str = "jitter"
    rule: DonorRule | None = None


@dataclass(frozen=True)
class UnknownValues:
    """One column's unknown values: `document` (r,) of each row, below 0 where it was seen.

    `weigh` gives the weights (m, donors) of documents by number: they are made for some rows at a time.
    """

    document: Indices
    weigh: Callable[[Indices], Floats]

    def donors(self) -> Donors:
        """With the weights of the documents that these rows go by, numbered anew."""
        hit = self.document >= 0
        numbers, which = np.unique(self.document[hit], return_inverse=True)
        document = np.full(len(self.document), -1, dtype=np.int64)
        document[hit] = which.ravel()
        return Donors(document, self.weigh(numbers))


@dataclass(frozen=True)
class Batch:
    """The rows of a table.

    Attributes
    ----------
    whole : the table as a whole, the very object that was given where it can go to the model
    source : what rows are taken from
    rows : (r,)
        Those with unknown values, of `n_rows`.
    columns : list of Longer
        Columns with unknown values, their donors below.
    unknown : list of UnknownValues
        Of the same columns, for `rows`.
    most : int
        Donors of a value, at most.
    """

    whole: Any
    source: Any
    n_rows: int
    rows: NDArray[np.int64]
    columns: list[Longer]
    unknown: list[UnknownValues]
    most: int

    @classmethod
    def of(cls, X: Any, encoder: TIWSEncoder, treatments: Mapping[str, Treatment]) -> Batch:
        """Find unknown values of the columns to treat, and their donors."""
        table = match_features(encoder, read_table(X, caller=CALLER, allow_empty=True))
        unseen = {name: encoder.unseen_rows(table, name) for name, treat in treatments.items() if treat.used != "model"}
        numbers = {name: encoder.columns_[name].fitted.number for name in unseen}
        known = {numbers[name]: set(encoder.columns_[name].fitted.categories) for name in unseen}
        given = source_of(X, table)
        source = without_strange_levels(given, known)
        hit = {name: one for name, one in unseen.items() if len(one.rows)}
        rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(one.rows for one in hit.values())]))
        columns, unknown, most = [], [], 1
        for name, one in hit.items():
            fitted, treat = encoder.columns_[name].fitted, treatments[name]
            document = np.full(len(rows), -1, dtype=np.int64)
            document[np.searchsorted(rows, one.rows)] = one.which
            categories = [None] if treat.used == "missing" else fitted.donor_categories
            columns.append(longer(given, numbers[name], table[name], categories, known[numbers[name]]))
            unknown.append(UnknownValues(document, _weigher(fitted, one.unseen, treat)))
            most = max(most, len(categories))
        return cls(X if source is given else source, source, len(table), rows, columns, unknown, most)

    # -- asking -------------------------------------------------------------------------------

    def of_known(self, predict: Predict) -> Any:
        """What is answered of the rows without unknown values, in one call; None where there are none."""
        if not len(self.rows):
            return predict(self.whole)
        if len(self.rows) == self.n_rows:
            return None
        return predict(take_rows(self.source, np.setdiff1d(np.arange(self.n_rows), self.rows)))

    def frame(self, rows: Any, categories: list[Any]) -> Any:
        """Rows, by their number among those with unknown values, with donors by number."""
        return replaced(self.source, self.rows[rows], self.columns, categories)

    def first_rows(self) -> Any:
        """A few of the rows with unknown values, each with a donor: a model's link is found by them."""
        rows = np.arange(min(len(self.rows), ROWS_FOR_LINK))
        return self.frame(rows, [np.where(column.document[rows] < 0, -1, 0) for column in self.unknown])

    def spread(self, chunks: Iterable[Chunk], predict: Predict, link: Link | None) -> MeanAndStd:
        """Moments of the answers over donors; with a link of the mean score, and of what the link makes of each."""
        if link is None:
            return averaged(chunks, lambda rows, categories: predict(self.frame(rows, categories)), len(self.rows))
        shape: tuple[int, ...] = ()

        def both(rows: Any, categories: list[Any]) -> Floats:
            nonlocal shape
            scores = np.asarray(predict(self.frame(rows, categories)), dtype=np.float64)
            shape, made = scores.shape[1:], link(scores)
            return np.concatenate([scores.reshape(len(scores), -1), made.reshape(len(scores), -1)], axis=1)

        spread = averaged(chunks, both, len(self.rows))
        width = int(np.prod(shape, dtype=int))
        mean = link(spread.mean[:, :width].reshape(-1, *shape))
        return MeanAndStd(mean, spread.std[:, width:].reshape(mean.shape))

    @cached_property
    def donors(self) -> list[Donors]:
        """Of each column."""
        return [column.donors() for column in self.unknown]

    def parts(self) -> Iterator[Batch]:
        """Some rows with unknown values at a time, so that their weights stay small."""
        step = max(1, MAX_WEIGHTS // self.most)
        for first in range(0, len(self.rows), step):
            yield self.some(np.arange(first, min(first + step, len(self.rows))))

    def some(self, rows: NDArray[np.int64]) -> Batch:
        """Some of the rows with unknown values."""
        unknown = [UnknownValues(column.document[rows], column.weigh) for column in self.unknown]
        return replace(self, rows=self.rows[rows], unknown=unknown)

    def joined(self, known: Any, mixed: Any) -> Any:
        """Answers in the order of the table: as they came where there are no unknown values."""
        if not len(self.rows):
            return known
        kind = mixed.dtype if known is None else _common(known.dtype, mixed.dtype)
        out = np.empty((self.n_rows, *mixed.shape[1:]), dtype=kind)
        out[self.rows] = mixed
        if known is not None:
            out[np.setdiff1d(np.arange(self.n_rows), self.rows)] = known
        return out


def _weigher(fitted: FittedColumn, unseen: Unseen, treatment: Treatment) -> Callable[[Indices], Floats]:
    if treatment.used == "missing":
        return lambda numbers: np.ones((len(numbers), 1))
    if treatment.rule is None and fitted.method.method == "poster":  # weights depend on all documents of a call
        weights = fitted.weights(unseen)
        return lambda numbers: weights[numbers]
    return lambda numbers: fitted.weights(unseen.take(numbers), rule=treatment.rule)


def _common(one: np.dtype[Any], another: np.dtype[Any]) -> np.dtype[Any]:
    """The type that holds answers of both kinds as they are."""
    alike = one.kind == another.kind or {one.kind, another.kind} <= set("biuf")
    return np.result_type(one, another) if alike else np.dtype(object)


DRAWS = 256
"""For the spread of rows whose donors are too many to be combined."""


@dataclass(frozen=True)
class AveragedPredictions:
    """What a fitted model predicts for a batch, rows with unknown categories by averages over donors.

    `n_draws`: donors drawn for each unknown value, None for the mean over all of them.
    """

    model: Any
    batch: Batch
    average: str
    max_donors: int | None
    return_std: bool
    n_draws: int | None
    random: np.random.Generator

    def values(self) -> Any:
        """Of `predict`."""
        if not is_classifier(self.model):
            return self._given(self.model.predict, linked=True)
        known = self._of_known(self.model.predict)
        if not len(self.batch.rows):
            return self._out(known, np.zeros(self.batch.n_rows))
        position, std = self._classes()
        labels = np.asarray(self.model.classes_)[position]
        return self._out(self.batch.joined(known, labels), self._joined_std(std))

    def probabilities(self) -> Any:
        """Of `predict_proba`."""
        return self._given(self.model.predict_proba, linked=True)

    def scores(self) -> Any:
        """Of `decision_function`."""
        return self._given(self.model.decision_function, linked=False)

    def _classes(self) -> tuple[Any, Any]:
        """Of rows with unknown values: the class, by its index, and the spread of what speaks for it."""
        if hasattr(self.model, "predict_proba"):
            mixed = self._mixed(self.model.predict_proba, linked=True)
        elif self.average == "raw":
            mixed = self._mixed(score_of(self.model), linked=False)
            if mixed.mean.ndim == 1:
                return (mixed.mean > 0).astype(np.int64), mixed.std
        else:
            raise ValueError(
                f"average='probability' needs predict_proba, which {name_of(self.model)} lacks; use average='raw'."
            )
        position = mixed.mean.argmax(axis=1)
        return position, mixed.std[np.arange(len(position)), position]

    # -- pieces -------------------------------------------------------------------------------

    def _given(self, predict: Predict, *, linked: bool) -> Any:
        known = self._of_known(predict)
        if not len(self.batch.rows):
            return self._out(known, np.zeros(np.shape(known)))
        mixed = self._mixed(predict, linked=linked)
        return self._out(self.batch.joined(known, mixed.mean), self._joined_std(mixed.std))

    def _of_known(self, predict: Predict) -> Any:
        """The model's answers for rows without unknown values; None where there are none."""
        try:
            predictions = self.batch.of_known(predict)
            return None if predictions is None else np.asarray(predictions)
        except ValueError:
            if self.batch.n_rows:
                raise
        # the model refuses a table of no rows
        if not is_classifier(self.model):
            return np.empty(0)
        classes = np.asarray(self.model.classes_)
        if predict == self.model.predict:
            return classes[:0]
        binary = predict != getattr(self.model, "predict_proba", None) and len(classes) == 2
        return np.empty(0 if binary else (0, len(classes)))

    def _mixed(self, predict: Predict, *, linked: bool) -> MeanAndStd:
        """Averages for rows with unknown values; `linked`: whether what is asked comes after a link."""
        link = None
        if linked and self.average == "raw":
            score, some = score_of(self.model), self.batch.first_rows()
            predict, link = score, link_of(score(some), predict(some))
        parts = [self._spread(part, predict, link) for part in self.batch.parts()]
        return MeanAndStd(np.concatenate([part.mean for part in parts]), np.concatenate([part.std for part in parts]))

    def _spread(self, batch: Batch, predict: Predict, link: Link | None) -> MeanAndStd:
        """Over all donors of a batch, or drawn ones; where donors are too many to be combined, their spread by draws.

        Draws are of all donors that `max_donors` allows, combinations of the heaviest.
        """
        if self.n_draws is not None:
            return batch.spread(self._draws(batch, self.n_draws), predict, link)
        mixture = Mixture.of(batch.donors, self.max_donors)
        out = batch.spread(mixture.chunks(), predict, link)
        cut = np.flatnonzero(mixture.cut)
        if self.return_std and len(cut):
            some = batch.some(cut)
            out.std[cut] = some.spread(self._draws(some, DRAWS), predict, link).std
        return out

    def _draws(self, batch: Batch, n: int) -> Iterator[Chunk]:
        return Mixture.of(batch.donors, self.max_donors, combined=False).draws(n, self.random)

    def _joined_std(self, std: Any) -> Any:
        return self.batch.joined(np.zeros((self.batch.n_rows - len(self.batch.rows), *std.shape[1:])), std)

    def _out(self, values: Any, std: Any) -> Any:
        return (values, std) if self.return_std else values
