"""`SelectiveNaiveBayesClassifier`: Khiops' classifier, a naive Bayes over MODL's intervals and groups.

Each column has a weight: selective, or fractional, naive Bayes. The classes of a row have the scores ln P(class) +
sum_k w_k ln P(part of column k | class). The weights, between 0 and 1, are those of maximal posterior probability: they
minimise the conditional log loss of the training rows plus a prior that charges each column for its weight, in
proportion to what stating its partition costs (Boulle, "Compression-based averaging of selective naive Bayes
classifiers", JMLR 8, 2007; Hue and Boulle, "Fractional naive Bayes", 2024). With a prior linear in the weights the
problem is convex, so that any descent ends at the optimum; Khiops 11 takes them to the power of .95 and searches by
random steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders import MODLEncoder
from tabsym.frame import (
    Table,
    TableEstimator,
    check_classes,
    check_same_rows,
    check_weights,
    match_features,
    read_table,
    relative_weights,
    remember_features,
    split_target,
)
from tabsym.messages import Instance, Number, check_declared_options, warn_user
from tabsym.models.targets import LabelClassifier
from tabsym.modl.columns import Groups, Intervals
from tabsym.modl.criterion import null_prior, target_intervals_cost

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MAX_ITER = 100
_TOLERANCE = 1e-7  # nats by which the next step would lower the objective
_RIDGE = 1e-9  # of the Hessian's trace
_CELLS = 2**18  # numbers looked up at a time, so that they stay in the cache


@dataclass(frozen=True)
class NaiveBayes:
    """A weighted naive Bayes classifier over parts.

    Attributes
    ----------
    class_counts : (J,)
        Training rows of each class, or their weight.
    likelihoods : list of (I_k, J)
        ln P(part | class) of each column.
    weights : (K,)
        Of each column, between 0 and 1.
    n_iter : int
        Iterations of the descent.
    """

    class_counts: Floats
    likelihoods: list[Floats]
    weights: Floats
    n_iter: int

    def probabilities(self, parts: Sequence[Indices], n_rows: int) -> Floats:
        """The probability of each class (n_rows, J), Laplace-smoothed, from the part of each row in each column.

        A part of -1 is unknown: the column adds nothing.
        """
        total, n_classes = self.class_counts.sum(), len(self.class_counts)
        scores = np.repeat(np.log(self.class_counts / total)[None, :], n_rows, axis=0)
        for weight, table, column in zip(self.weights, self.likelihoods, parts, strict=True):
            if weight > 0:
                scores += _with_unknown(weight * table)[column]
        return np.asarray((total * softmax(scores, axis=1) + 0.5 / n_classes) / (total + 0.5))

    def contributions(self, counts: Sequence[Floats]) -> Floats:
        """What each column (K,) adds to the log odds of a class: the mean of absolute values about their mean.

        Over the training rows, of which `counts` (I_k, J) are in each part, and over the classes by their frequency.
        These are mean absolute Shapley values, as Khiops has them.
        """
        found = np.zeros(len(self.weights))
        for column, (weight, of_parts) in enumerate(zip(self.weights, counts, strict=True)):
            others = of_parts.sum(axis=1, keepdims=True) - of_parts
            odds = ln_likelihoods(of_parts) - ln_likelihoods(others, spread=of_parts.shape[1] - 1)
            rows = of_parts.sum(axis=1) / of_parts.sum()
            found[column] = weight * (rows @ np.abs(odds - rows @ odds)) @ (self.class_counts / self.class_counts.sum())
        return found


def ln_likelihoods(counts: Floats, *, spread: int = 1) -> Floats:
    """ln P(part | class) (I, J) from rows of each class in each part, with Khiops' Laplace smoothing by 1 / (N + 1).

    A part without rows is as all rows together: it adds nothing. `spread`: classes that a column of `counts` sums over.
    """
    total = counts.sum() / spread
    little = spread / (total + 1)
    found = np.log((counts + little) / (counts.sum(axis=0) + len(counts) * little))
    found[counts.sum(axis=1) == 0] = 0.0
    return np.asarray(found)


def cost_of_partition(fitted: Intervals | Groups) -> float:
    """Nats that it takes to choose a column and to state its partition and the class frequencies of its parts."""
    partition = fitted.partition
    n_modalities = len(fitted.categories) if isinstance(fitted, Groups) else None
    none = null_prior(partition.criterion, n_rows=float(partition.counts.sum()), n_modalities=n_modalities)
    return max(0.0, partition.cost - target_intervals_cost(partition.counts) - none)


def fit_naive_bayes(
    parts: Sequence[Indices],
    codes: NDArray[np.integer],
    counts: Sequence[Floats],
    costs: Floats,
    weight: Floats | None = None,
) -> NaiveBayes:
    """The weights of maximal posterior probability.

    Parameters
    ----------
    parts : list of (n,)
        The part of each row, by column; -1: unknown.
    codes : (n,)
        The class of each row.
    counts : list of (I_k, J)
        Rows of each class in each part.
    costs : (K,)
        What the prior charges for a weight of 1.
    weight : (n,), optional
        Of each row.

    Returns
    -------
    NaiveBayes

    Examples
    --------
    >>> import numpy as np
    >>> part, classes = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 1, 1])
    >>> counts = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> fit_naive_bayes([part], classes, [counts], np.array([0.1])).weights.round(2).tolist()
    [0.92]
    >>> fit_naive_bayes([part], classes, [counts], np.array([5.0])).weights.tolist()
    [0.0]
    """
    likelihoods = [ln_likelihoods(one) for one in counts]
    n_classes = counts[0].shape[1] if counts else int(codes.max()) + 1
    class_counts = np.bincount(codes, weight, minlength=n_classes).astype(np.float64)
    if not counts:
        return NaiveBayes(class_counts, [], np.zeros(0), 0)
    objective = _WeightObjective(parts, codes, likelihoods, class_counts, costs, weight)
    weights, n_iter = _minimum(objective, np.full(len(counts), 0.5))  # copies of a column remain at equal weights
    return NaiveBayes(class_counts, likelihoods, weights, n_iter)


def _minimum(objective: _WeightObjective, weights: Floats) -> tuple[Floats, int]:
    """The minimum over [0, 1], by Newton steps within the bounds, and how many were tried."""
    value, gradient, hessian = objective(weights)
    n_iter, length = 0, 1.0
    step, decrease = _newton_step(weights, gradient, hessian)
    while decrease > _TOLERANCE and n_iter < MAX_ITER:
        n_iter += 1
        there = np.clip(weights + length * step, 0.0, 1.0)
        found = objective(there)
        if found[0] > value + 1e-12 * abs(value):
            length /= 2
            continue
        weights, length = there, 1.0
        value, gradient, hessian = found
        step, decrease = _newton_step(weights, gradient, hessian)
    return weights, n_iter


def _newton_step(weights: Floats, gradient: Floats, hessian: Floats) -> tuple[Floats, float]:
    """The step to the minimum of the quadratic model within the bounds, and by how much that lowers the objective."""
    bent = hessian + _RIDGE * (1.0 + float(np.trace(hessian))) * np.eye(len(weights))  # copies of a column: a step each
    root = cholesky(bent)
    goal = -solve_triangular(root, gradient, trans="T")
    found = lsq_linear(root, goal, (-weights, 1.0 - weights), method="bvls", tol=1e-14, max_iter=10 * len(weights))
    there = np.clip(weights + found.x, 0.0, 1.0)
    there[found.active_mask < 0], there[found.active_mask > 0] = 0.0, 1.0
    step = there - weights
    return step, -float(gradient @ step + step @ bent @ step / 2)


class _WeightObjective:
    """The log loss of the rows plus the prior of the weights, in nats, with gradient and Hessian.

    Scores are those relative to the first class, so that two classes need one of them.
    """

    def __init__(
        self,
        parts: Sequence[Indices],
        codes: NDArray[np.integer],
        likelihoods: Sequence[Floats],
        class_counts: Floats,
        costs: Floats,
        weight: Floats | None,
    ) -> None:
        self.parts, self.codes, self.costs = parts, codes, costs
        self.weight = np.ones(len(codes)) if weight is None else weight
        self.prior = np.log(class_counts[1:] / class_counts[0])
        self.tables = [np.ascontiguousarray(_with_unknown((one - one[:, :1])[:, 1:]).T) for one in likelihoods]

    def __call__(self, weights: Floats) -> tuple[float, Floats, Floats]:
        n_columns, n_scores = len(weights), len(self.prior)
        value, gradient, hessian = float(self.costs @ weights), self.costs.copy(), np.zeros((n_columns, n_columns))
        step = max(1, _CELLS // (n_columns * n_scores))
        for first in range(0, len(self.codes), step):
            rows = slice(first, first + step)
            codes, row_weight = self.codes[rows], self.weight[rows]
            features = np.stack(
                [table.take(part[rows], axis=1) for table, part in zip(self.tables, self.parts, strict=True)]
            )
            flat = features.reshape(n_columns, -1)
            losses, probabilities = _losses(self.prior[:, None] + (weights @ flat).reshape(n_scores, -1), codes)
            value += float(losses @ row_weight)
            weighted, others = probabilities * row_weight, np.flatnonzero(codes > 0)
            residuals = weighted.copy()
            residuals[codes[others] - 1, others] -= row_weight[others]
            gradient += flat @ residuals.ravel()
            means = np.einsum("kjn,jn->kn", features, probabilities)
            features -= means[:, None, :]  # a sum of squares has no rounding errors below 0
            of_first = np.maximum(1.0 - probabilities.sum(axis=0), 0.0) * row_weight
            hessian += (flat * weighted.ravel()) @ flat.T + (means * of_first) @ means.T
        return value, gradient, hessian


def _losses(scores: Floats, codes: NDArray[np.integer]) -> tuple[Floats, Floats]:
    """The log loss (n,) of rows, and the probabilities (J - 1, n) of all classes but the first, of score 0."""
    top = np.maximum(scores.max(axis=0), 0.0)
    exponentials = np.exp(scores - top)
    total = np.exp(-top) + exponentials.sum(axis=0)
    losses, others = top + np.log(total), np.flatnonzero(codes > 0)
    losses[others] -= scores[codes[others] - 1, others]
    return losses, exponentials / total


def _with_unknown(table: Floats) -> Floats:
    """A table (I, J) with a last row of zeros, which -1 reads."""
    return np.append(table, np.zeros((1, table.shape[1])), axis=0)


class SelectiveNaiveBayesClassifier(LabelClassifier, TableEstimator):
    """Naive Bayes over the intervals and groups that `MODLEncoder` finds, with a weight for each column.

    As in Khiops, a class has the score ln P(class) + sum of weight * ln P(interval or group | class). The weights,
    between 0 and 1, minimise the log loss of the training rows plus `prior_weight` times the sum of weight * cost of
    the column's partition: a column that others make superfluous has weight 0, and copies of a column share a weight.
    There is nothing to tune; the model is a table for each column.

    Parameters
    ----------
    encoder : MODLEncoder or None, default None
        Finds the intervals and groups, and says what becomes of missing values and unknown categories: by default they
        lie below all numbers, and in the group of the least frequent category. With "return_nan" the column is left
        out for that row. A clone of it is fitted; its options that concern output are not used. None:
        ``MODLEncoder()``.
    prior_weight : float, default 0.1
        Weight of the costs of partitions, in nats: 0.1 is Khiops'. 0: no prior; more: fewer columns.

    Attributes
    ----------
    weights_ : dict of str -> float
        The weight of each column, greatest first; 0 for those not used.
    feature_importances_ : ndarray of shape (n_columns,)
        The mean absolute contribution of each column to the log odds of a class (its Shapley value), of sum 1.
    encoder_ : MODLEncoder
        Fitted: `partitions_`, `levels_`, `describe()`.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    n_iter_ : int
        Iterations in which the weights were found.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)
        Where the columns have names.

    Notes
    -----
    The costs are those of Khiops 11 under ``criterion="khiops"``. It raises the weights in the prior to the power of
    .95 and searches by random steps; here the prior is linear, which makes the problem convex. P(part | class) is
    smoothed by 1 / (N + 1) rows, probabilities of classes by 1 / (2 n_classes) rows, as there. Rows of weight 2 are the
    same as repeated rows; those of weight 0 count as absent. The method is of Boulle, "Compression-based averaging of
    selective naive Bayes classifiers" (JMLR 8, 2007), the weights of Hue and Boulle, "Fractional naive Bayes" (2024).

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import SelectiveNaiveBayesClassifier
    >>> X = pd.DataFrame({"age": [*range(100)] * 2, "colour": ["red", "blue"] * 100})
    >>> y = ["old" if age > 60 else "young" for age in X["age"]]
    >>> model = SelectiveNaiveBayesClassifier().fit(X, y)
    >>> {name: round(weight, 2) for name, weight in model.weights_.items()}
    {'age': 0.7, 'colour': 0.0}
    >>> model.predict(pd.DataFrame({"age": [30, 80], "colour": ["red", "grey"]})).tolist()
    ['young', 'old']
    """

    _allowed_options: Mapping[str, tuple[Any, ...]] = {
        "encoder": (Instance(MODLEncoder, "a MODLEncoder"), None),
        "prior_weight": (Number(at_least=0),),
    }

    model_: NaiveBayes

    def __init__(self, *, encoder=None, prior_weight=0.1):
        self.encoder = encoder
        self.prior_weight = prior_weight

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SelectiveNaiveBayesClassifier:
        """Find the intervals and groups of each column, and the weights of the columns.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
            Two classes or more.
        sample_weight : array-like of shape (n_rows,), optional
            Only relative weights matter: they are taken over the mean of those above 0, so that they add up to the
            number of rows, which decides how fine parts are; rows of weight 0 count as absent.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With the name of the column or option.
        """
        check_declared_options(self)
        X, y = split_target(X, y, type(self).__name__)
        check_same_rows(X, y=y, sample_weight=sample_weight)
        table = read_table(X, caller=type(self).__name__)
        target = check_classes(y, len(table), caller=type(self).__name__)
        weight = relative_weights(check_weights(sample_weight, len(table)))
        encoder = MODLEncoder() if self.encoder is None else clone(self.encoder)
        encoder.set_params(output="group", sparse_output=False, target_type="classes")
        encoder.fit(table.native, target.classes[target.codes], weight)
        columns = {name: one for name, one in encoder.partitions_.items() if one.partition.n_parts > 1}
        counts = [fitted.partition.counts for fitted in columns.values()]
        costs = self.prior_weight * np.array([cost_of_partition(fitted) for fitted in columns.values()])
        rows = np.arange(len(table)) if weight is None else np.flatnonzero(weight > 0)
        codes = np.unique(target.codes[rows], return_inverse=True)[1]
        parts = [part[rows] for part in _parts(encoder, table, list(columns))]
        model = fit_naive_bayes(parts, codes, counts, costs, None if weight is None else weight[rows])
        if model.n_iter >= MAX_ITER:
            warn_user(f"The weights have not converged in {MAX_ITER} iterations.", ConvergenceWarning)
        remember_features(self, table)
        self._columns = list(columns)
        self.model_ = model
        self.encoder_ = encoder
        self.classes_ = encoder.classes_
        self.n_iter_ = model.n_iter
        used = dict(zip(columns, model.weights.tolist(), strict=True))
        self.weights_ = dict(sorted(((n, used.get(n, 0.0)) for n in table.names), key=lambda one: -one[1]))
        shown = dict(zip(columns, model.contributions(counts).tolist(), strict=True))
        total = sum(shown.values()) or 1.0
        self.feature_importances_ = np.array([shown.get(name, 0.0) / total for name in table.names])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, in the order of `classes_`.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        table = self._read_as_fitted(X)
        return self.model_.probabilities(_parts(self.encoder_, table, self._columns), len(table))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the class probabilities.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def _read_as_fitted(self, X: Any) -> Table:
        check_is_fitted(self, "model_")
        check_same_rows(X)
        return match_features(self, read_table(X, caller=type(self).__name__, allow_empty=True))


def _parts(encoder: MODLEncoder, table: Table, names: list[str]) -> list[NDArray[np.int64]]:
    """The part of each row in these columns; -1 where the encoder has "return_nan"."""
    found = encoder._parts(table)
    return [np.maximum(found[name], -1) for name in names]
