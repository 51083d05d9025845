"""What the adapters of boosters share: fit on top of margins, raw scores, rounds, and the objective that fits a loss.

A margin is a score per row (per class, for several) from which boosting starts. The libraries call it `init_score`,
`base_margin` and `baseline`, want other shapes, and one of them forgets it in `predict`; an adapter fills in the few
calls that differ. Frames are those of `NativeCategories`: other input ends the process in one library and changes
meaning in another, so it is refused here, for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from tabsym.frame import check_weights
from tabsym.losses.loss import Loss
from tabsym.messages import Number, check_option, plural

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BoosterRows:
    """Rows ready for a booster: frame, target (classes as 0, 1, ...), margins (n,) or (n, K), weights."""

    frame: Any
    y: NDArray[Any]
    margin: Floats | None = None
    weight: Floats | None = None


TASKS = ("binary", "multiclass", "regression", "count")


class MarginAdapter(ABC):
    """An adapter whose library boosts on top of margins.

    Attributes
    ----------
    name : str
        The library's top package, and the adapter's entry point.
    objectives : dict of str -> dict
        For each loss of the wide models the parameters that give the library's own; "{parameter}" stands for
        the loss's number.
    links : dict of str -> str
        The link of each of the library's objectives: "identity", "log", "logistic", "softmax".
    unset : tuple
        What an estimator holds as its objective where the user named none.
    objective_names : tuple of str
        What the library calls its objective; its own aliases after the first.
    kind_names : tuple of str
        What it calls the kind of model that it boosts.
    kinds_without_sums : dict of str -> str
        The kinds whose trees do not add up to a margin, and why.
    """

    name: str
    label: str
    objectives: dict[str, dict[str, Any]]
    links: dict[str, str]
    unset: tuple[Any, ...]
    objective_names: tuple[str, ...] = ("objective",)
    kind_names: tuple[str, ...] = ()
    kinds_without_sums: dict[str, str] = {}
    without_margins: tuple[str, ...] = ()  # options that margins leave nothing to do
    of_links: dict[str, tuple[Any, bool]] = {}  # options that change a link: the value that does not; of classifiers?
    filled_in: tuple[str, ...] = ()  # options of the library's `fit` that `fit_margin` gives itself

    # -- for the libraries to fill in -----------------------------------------------

    @abstractmethod
    def _fit(
        self, booster: Any, rows: BoosterRows, held_out: BoosterRows | None, patience: int | None, options: dict
    ) -> None:
        """Fit `booster` in place."""

    @abstractmethod
    def _sum_of_trees(self, booster: Any, frame: Any, on_margin: bool) -> Any:
        """Raw scores; `on_margin`: of the trees alone, without a constant of the library's own."""

    @abstractmethod
    def _steps(self, booster: Any, frame: Any, every: int, on_margin: bool) -> Iterator[Any]:
        """Raw scores after every few rounds, and after the last."""

    def _contributions(self, booster: Any, frame: Any, on_margin: bool) -> Any:
        """What each column adds to the raw scores, a constant last: (n, F + 1), for several classes (n, K, F + 1).

        None if the adapter cannot determine it.
        """
        return None

    @abstractmethod
    def objective_of(self, booster: Any) -> str | None:
        """The objective that an estimator names, without its numbers."""

    @abstractmethod
    def n_rounds(self, booster: Any) -> int:
        """The rounds that an unfitted estimator asks for."""

    @abstractmethod
    def with_rounds(self, booster: Any, n_rounds: int) -> Any:
        """A clone that asks for other rounds, without early stopping."""

    def fresh(self, booster: Any) -> Any:
        """An unfitted booster with the same options."""
        return clone(booster)

    # -- shared ---------------------------------------------------------------------

    def owns(self, booster: Any) -> bool:
        """Whether an estimator is of this library, or of a class derived from one."""
        return any(kind.__module__.partition(".")[0] == self.name for kind in type(booster).__mro__)

    def fit_margin(
        self,
        booster: Any,
        X: Any,
        y: Any,
        margin: Any = None,
        *,
        sample_weight: Any = None,
        eval_set: tuple[Any, Any, Any] | None = None,
        early_stopping_rounds: int | None = None,
        **options: Any,
    ) -> Any:
        """A clone of a booster, fitted on top of margins.

        Parameters
        ----------
        booster : estimator of the library
        X : DataFrame of `NativeCategories`, or array of numbers, of n rows
        y : array-like of shape (n_rows,)
            Numbers, or class labels of any kind.
        margin : array-like of shape (n_rows,), for several classes (n_rows, n_classes), optional
            In the order of the sorted labels.
        sample_weight : array-like of shape (n_rows,), optional
        eval_set : tuple of X, y and margin, optional
            Rows held out, for early stopping.
        early_stopping_rounds : int, optional
        options : dict
            More of the library's own `fit`.

        Returns
        -------
        estimator
            Which knows classes as 0, 1, ...
        """
        if margin is not None:
            self.refuse_without_sums(booster)
        self._refuse_options(options, early_stopping_rounds, eval_set)
        target, labels = _coded(booster, y)
        fitted = self.fresh(booster)
        if labels is not None:
            set_weights_of_codes(fitted, labels)
        weight = _weights(sample_weight)
        for name, size in (("y", len(target)), ("sample_weight", len(target) if weight is None else len(weight))):
            if size != len(X):
                raise ValueError(
                    f"X has {plural(len(X), 'row')} and {name} {plural(size, 'value')}; pass one for each row."
                )
        check_weights(weight, len(target))
        rows = BoosterRows(ready(X, self), target, _shaped(margin, target, labels), weight)
        held_out = None
        if eval_set is not None:
            if not isinstance(eval_set, tuple) or len(eval_set) != 3:
                raise ValueError("eval_set must be one triple of X, y and margin (None where fit has none).")
            other_X, other_y, other_margin = eval_set
            if (margin is None) is not (other_margin is None):
                raise ValueError("eval_set has a margin and the rows of fit have none, or the other way round.")
            other = codes_of(other_y, labels)
            held_out = BoosterRows(ready(other_X, self), other, _shaped(other_margin, other, labels))
        self._fit(fitted, rows, held_out, early_stopping_rounds, options)
        return fitted

    def _refuse_options(self, options: dict[str, Any], patience: int | None, eval_set: Any) -> None:
        """A `ValueError` for options of `fit` that would be replaced, or that have no effect without held-out rows."""
        for name in options:
            if name in self.filled_in:
                raise ValueError(
                    f"{name} is what fit_margin gives {self.name} itself; leave it out, and pass margin, sample_weight "
                    "or eval_set=(X, y, margin)."
                )
        if eval_set is not None:
            return
        of_held_out = [name for name in options if "eval" in name]
        for name in [*of_held_out, *([] if patience is None else ["early_stopping_rounds"])]:
            raise ValueError(f"{name} has no effect without eval_set=(X, y, margin); pass that, or leave it out.")

    def fit_rounds(
        self, booster: Any, n_rounds: int, X: Any, y: Any, margin: Any = None, *, sample_weight: Any = None
    ) -> Any:
        """As `fit_margin`, the first rounds only of those that the booster asks for."""
        return self.fit_margin(self.with_rounds(booster, n_rounds), X, y, margin, sample_weight=sample_weight)

    def raw_scores(self, booster: Any, frame: Any, margin: Any = None) -> Any:
        """Scores (n_rows, ...) before the link, of a fitted estimator and the frame that it takes.

        With a margin, of the trees on top of it; the booster was then fitted with one.
        """
        frame = ready(frame, self)
        if margin is None:
            return self._sum_of_trees(booster, frame, False)
        trees = np.asarray(self._sum_of_trees(booster, frame, True), dtype=np.float64)
        start = np.asarray(margin, dtype=np.float64)
        if start.size != trees.size or len(start) != len(trees):
            raise ValueError(f"margin has shape {start.shape}; pass {trees.shape}: a score for each row (and class).")
        if not np.isfinite(start).all():
            raise ValueError(f"margin is {start[~np.isfinite(start)][0]} in some row; margins must be finite.")
        return trees + start.reshape(trees.shape)

    def contributions(self, booster: Any, frame: Any, *, on_margin: bool = False) -> Floats:
        """What the columns of a frame, and a constant, add to the raw scores (n_rows, K, n_columns + 1): TreeSHAP.

        `on_margin`: the estimator was fitted on margins, which are left out. A `ValueError` where the library has none,
        or where they do not add up to the scores, as those of CatBoost's trees that are not symmetric.
        """
        frame = ready(frame, self)
        try:
            made = self._contributions(booster, frame, on_margin)
        except Exception as error:  # of the libraries' own kinds, for kinds of trees that they do not explain
            words = " ".join(str(error).split()).rstrip(".")
            raise ValueError(f"{type(booster).__name__} gives no contributions of its columns ({words}).") from error
        if made is None:
            raise ValueError(f"The adapter {self.name!r} has no contributions of columns; give it `_contributions`.")
        found = np.asarray(made, dtype=np.float64)
        found = found[:, None, :] if found.ndim == 2 else found
        scores = np.asarray(self._sum_of_trees(booster, frame, on_margin), dtype=np.float64).reshape(len(found), -1)
        difference = float(np.abs(found.sum(axis=2) - scores).max(initial=0.0))
        if difference > SINGLE_PRECISION * (1.0 + float(np.abs(found).max(initial=0.0))):
            raise ValueError(
                f"{type(booster).__name__} gives contributions of its columns that differ from its scores by up to "
                f"{difference:.2g}; leave options of its trees or of its predictions out, such as grow_policy."
            )
        return found

    def path(self, booster: Any, frame: Any, every: int, *, on_margin: bool = False) -> Iterator[tuple[int, Floats]]:
        """(rounds, raw scores) after every few rounds of a fitted estimator, and after its last.

        After the last only, of kinds whose first trees are no model of fewer rounds: DART shrinks them later, and
        forests are averaged.
        `on_margin`: it was fitted on margins; what the trees add to them.
        """
        check_option("every", every, [Number(at_least=1, whole=True, of="rounds")])
        total = self.n_rounds(booster)
        if not self._adds_trees(booster):
            yield total, np.asarray(self._sum_of_trees(booster, ready(frame, self), on_margin), dtype=np.float64)
            return
        for step, scores in enumerate(self._steps(booster, ready(frame, self), every, on_margin)):
            yield min((step + 1) * every, total), np.asarray(scores, dtype=np.float64)

    def _adds_trees(self, booster: Any) -> bool:
        kinds = {str(booster.get_params().get(name)) for name in self.kind_names}
        return not kinds & {"dart", *self.kinds_without_sums}

    def refuse_without_sums(self, booster: Any) -> None:
        """A `ValueError` for an estimator whose trees would not add up to a margin, or that asks for none."""
        caller, params = type(booster).__name__, booster.get_params()
        for name in self.kind_names:
            why = self.kinds_without_sums.get(str(params.get(name)))
            if why is not None:
                raise ValueError(
                    f"{caller}({name}={params[name]!r}) {why}, and can't start from margins; leave it out."
                )
        for name in self.without_margins:
            if params.get(name):
                raise ValueError(f"{caller}({name}={params[name]!r}) can't start from margins; leave {name} out.")
        self._refuse_other_links(booster)
        try:
            n_rounds = self.n_rounds(booster)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{caller} asks for rounds that are no number ({error}); use a whole one.") from error
        if n_rounds < 1:
            raise ValueError(f"{caller} asks for {n_rounds} rounds, which make no trees; use at least 1.")

    def _refuse_other_links(self, booster: Any) -> None:
        """A `ValueError` for an option by which scores are on another scale than those of a wide model."""
        params = booster.get_params()
        for name, (neutral, for_classes) in self.of_links.items():
            if is_classifier(booster) == for_classes and params.get(name) not in (None, neutral):
                raise ValueError(
                    f"{type(booster).__name__}({name}={params[name]!r}) has scores on another scale than those of "
                    f"a wide model; leave {name} out."
                )

    def _by_one_name(self, booster: Any) -> Any:
        """The booster, or a clone that calls its objective by the library's first name for it."""
        first, *aliases = self.objective_names
        params = booster.get_params()
        given = [params[name] for name in aliases if params.get(name) is not None]
        if not given:
            return booster
        return type(booster)(
            **{name: value for name, value in params.items() if name not in aliases} | {first: given[0]}
        )

    def matched(self, booster: Any, loss: Loss) -> Any:
        """A clone with the objective of a wide model's loss, or a `ValueError` where its own has another link.

        An objective that the user named stays, if margins mean the same to it.
        """
        link = link_of(loss)
        self._refuse_other_links(booster)
        booster = self.fresh(booster)
        renamed = self._by_one_name(booster)
        has_alias, booster = renamed is not booster, renamed  # which the user named, whatever the default is
        named = self.objective_of(booster)
        if named in self.unset and not has_alias:
            given = {key: _filled(value, loss) for key, value in self.objectives.get(loss.name, {}).items()}
            params = booster.get_params()
            for key, value in given.items():
                if key not in self.objective_names and params.get(key) not in (None, value):
                    raise ValueError(
                        f"{type(booster).__name__}({key}={params[key]!r}) is not the number of the wide model's loss "
                        f"{loss.public_name!r}, which the booster gets as {key}={value!r}; leave it out, or name the "
                        "booster's objective too."
                    )
            return booster.set_params(**given)
        if self.links.get(str(named)) == link:
            return booster
        raise ValueError(
            f"The booster's objective {named!r} does not read scores as the wide model's loss {loss.public_name!r} "
            f"makes them (link {link!r}); leave the objective out, or choose a loss with its link."
        )


def check_task(task: Any) -> None:
    """A `ValueError` for a task that there is not."""
    check_option("task", task, TASKS)


def link_of(loss: Loss) -> str:
    """The link of a wide model's loss, or a `ValueError` where it has none that a booster could share."""
    if loss.name == "hinge":
        raise ValueError("loss='hinge' has no probabilities for a booster to start from; use loss='log_loss'.")
    if loss.for_classes:
        return "softmax" if loss.name == "multinomial" else "logistic"
    return "log" if loss.log_link else "identity"


def ready(X: Any, adapter: Any) -> Any:
    """X itself where every booster reads it rightly, or a `TypeError`."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        return X
    if not isinstance(X, pd.DataFrame):
        raise TypeError(
            f"{adapter.label} reads {type(X).__name__} wrongly, or not at all; pass "
            "NativeCategories().fit_transform(X), or use adapter.native(task), which takes any table."
        )
    for name, kind in X.dtypes.items():
        plain = isinstance(kind, np.dtype) and kind.kind in "fiub"
        texts = adapter.name == "catboost" and isinstance(kind, (np.dtypes.ObjectDType, pd.StringDtype))
        codes = adapter.name != "catboost" and isinstance(kind, pd.CategoricalDtype)
        if not (plain or texts or codes):
            raise TypeError(
                f"Column {name!r} is of type {kind}, which {adapter.label} reads wrongly, or not at all; pass the "
                f"frame through NativeCategories(output={'text' if adapter.name == 'catboost' else 'category'!r})."
            )
    return X


def _filled(value: Any, loss: Loss) -> Any:
    if not isinstance(value, str) or "{parameter}" not in value:
        return value
    return loss.parameter if value == "{parameter}" else value.format(parameter=loss.parameter)


def _coded(booster: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """The target, of classifiers as 0, 1, ..., and their labels."""
    if not is_classifier(booster):
        return np.asarray(y, dtype=np.float64), None
    values = np.asarray(y)
    missing = pd.isna(values)
    if missing.any():
        raise ValueError(f"The target is missing in row {int(np.argmax(missing))}; drop such rows or fill them in.")
    labels, codes = np.unique(values, return_inverse=True)
    return codes, labels


def codes_of(y: Any, labels: NDArray[Any] | None) -> NDArray[Any]:
    """A target of rows held out, of classifiers as the index of each label."""
    if labels is None:
        return np.asarray(y, dtype=np.float64)
    values = np.asarray(y)
    codes = np.minimum(np.searchsorted(labels, values), len(labels) - 1)
    if (labels[codes] != values).any():
        unknown = values[labels[codes] != values].tolist()[0]
        raise ValueError(f"eval_set has class {unknown!r}, which is not in the training data; leave such rows out.")
    return codes


def _shaped(margin: Any, y: NDArray[Any], labels: NDArray[Any] | None) -> Floats | None:
    """Margins (n,), of several classes (n, K), checked."""
    if margin is None:
        return None
    values = np.asarray(margin, dtype=np.float64)
    wanted = (len(y),) if labels is None or len(labels) <= 2 else (len(y), len(labels))
    if values.size != np.prod(wanted) or len(values) != len(y):
        raise ValueError(f"margin has shape {values.shape}; pass {wanted}: a score for each row (and class).")
    if not np.isfinite(values).all():
        raise ValueError(f"margin is {values[~np.isfinite(values)][0]} in some row; margins must be finite.")
    return values.reshape(wanted)


SINGLE_PRECISION = 1e-3
"""By how much sums of 32-bit floats over all trees may differ, relative to the largest contribution."""

CLASS_WEIGHTS = ("class_weight", "class_weights")


def set_weights_of_codes(booster: Any, labels: NDArray[Any]) -> None:
    """Change weights by class of an unfitted booster to those of the codes 0, 1, ... of sorted labels, as it is given.

    Of a pipeline, or of another estimator with one inside, too.
    """
    code_of = {label: code for code, label in enumerate(labels.tolist())}
    params = booster.get_params() if hasattr(booster, "get_params") else {}
    for option, weights in params.items():
        if option.rpartition("__")[2] not in CLASS_WEIGHTS or not isinstance(weights, Mapping):
            continue
        for label in weights:
            if label not in code_of:
                raise ValueError(
                    f"{option} names the class {label!r}, and the target has {', '.join(map(repr, code_of))}; name "
                    "these."
                )
        booster.set_params(**{option: {code_of[label]: weight for label, weight in weights.items()}})


def _weights(sample_weight: Any) -> Floats | None:
    return None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
