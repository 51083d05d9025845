"""`DaskWideClassifier` and `DaskWideRegressor`: with the names and habits of `lightgbm.dask` and `xgboost.dask`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
from distributed import Client, get_client
from numpy.typing import NDArray
from sklearn.base import clone

from tabsym import WideClassifier, WideRegressor
from tabsym.categories import Categories
from tabsym.categories.coding import RawCodes
from tabsym.frame import check_same_rows
from tabsym.messages import plural
from tabsym.models.out_of_core.fit import fit_read, refuse_options, wanted_of
from tabsym.models.out_of_core.parts import SAMPLE_ROWS, ReadTable, rows_of_smallest
from tabsym_dask.engine import OnWorkers, answers, as_arrow, position, start

Own = TypeVar("Own", bound="_OverDask")
TARGET, WEIGHT = "tabsym_target", "tabsym_weight"


class _OverDask:
    """What classifier and regressor share; not public."""

    client: Client | None
    _local: type

    def __init__(self, client: Client | None = None, **options: Any) -> None:
        self.client = client
        super().__init__(**options)

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        client = Parameter("client", Parameter.POSITIONAL_OR_KEYWORD, default=None)
        own = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in signature(cls._local).parameters.values()]
        cls.__signature__ = Signature([client, *own])  # type: ignore[attr-defined]

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(cls.__signature__.parameters)  # type: ignore[attr-defined]

    def __sklearn_clone__(self: Own) -> Own:
        options = self.get_params(deep=False)  # type: ignore[attr-defined]
        client = options.pop("client")  # a connection is not copied
        return type(self)(client=client, **{name: clone(value, safe=False) for name, value in options.items()})

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "client": None}

    def fit(self: Own, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Own:
        """Fit from scratch.

        Parameters
        ----------
        X : dask.dataframe.DataFrame
        y : str or dask.dataframe.Series
            The target: the name of its column, or a series of the same partitions. May be left out where the formula
            names it.
        sample_weight : str or dask.dataframe.Series, optional
        **options
            Those of the local estimator's `fit`, which are refused where they are not None: its offset is
            `offset_column` or `exposure_column` here.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            As of the local estimator, and where partitions differ.
        RuntimeError
            Where a worker is lost.
        """
        _refuse_with_dask("fit", signature(self._local.fit), options)  # type: ignore[attr-defined]
        config = self._config()  # type: ignore[attr-defined]
        refuse_options(config, self)
        client = self.client or get_client()
        pieces, y, sample_weight = _pieces(X, y, sample_weight)
        held = position(client, pieces)
        futures = [future for own in held.values() for future in own]
        with _columns_of_one_type():
            first = client.submit(_first, *(client.submit(_head, future) for future in futures)).result()
            wanted = wanted_of(self, config, first.column_names, first, y, sample_weight)
            state = self.random_state  # type: ignore[attr-defined]
            seed = int(state) if isinstance(state, (int, np.integer)) else 0
            started = zip(*start(client, wanted, SAMPLE_ROWS, seed, held), strict=True)
            read = [(actor, one) for actor, one in started if one[4]]  # workers whose partitions have rows
            if not read:
                raise ValueError("The table has no rows of positive weight; pass one that has.")
            found = [one for _, one in read]
            engine = OnWorkers([actor for actor, _ in read], [one[4] for one in found])
            agreed = _agreed(engine, wanted, found)
        del futures, held, read, started
        interrupted = fit_read(self, config, agreed, engine)
        if interrupted is not None:
            raise interrupted
        return self

    def to_local(self) -> Any:
        """The fitted model as a plain estimator of the local class, which needs no Dask."""
        options = self.get_params(deep=False)  # type: ignore[attr-defined]
        del options["client"]
        local = self._local(**options)
        fitted = {name: value for name, value in vars(self).items() if name not in options and name != "client"}
        vars(local).update(fitted)
        return local

    def predict(self, X: Any, **options: Any) -> Any:
        """Predictions: of a Dask frame lazily, as a series of the same partitions; of other tables as an array."""
        if not _is_dask(X):
            return super().predict(X, **options)  # type: ignore[misc]
        _refuse_with_dask("predict", signature(self._local.predict), options)  # type: ignore[attr-defined]
        kind = np.float64 if self._local is WideRegressor else np.asarray(self.classes_).dtype  # type: ignore[attr-defined]
        meta = pd.Series([], name="prediction", dtype=kind)
        return X.map_partitions(_predict, dask.delayed(self.to_local()), meta=meta)

    def explain(self, X: Any) -> Any:
        """Contributions of the terms: of a Dask frame lazily, as a frame of the same partitions."""
        if not _is_dask(X):
            return super().explain(X)  # type: ignore[misc]
        local = self.to_local()
        return X.map_partitions(_explain, dask.delayed(local), meta=_explain(X._meta, local))

    def predict_to_parquet(self, X: Any, path: Any, **options: Any) -> int:
        """Predictions of a table larger than memory, see the local class; not of a Dask frame."""
        if _is_dask(X):
            raise ValueError(
                "predict_to_parquet takes no Dask frame, whose predictions are lazy: write what predict gives, as by "
                "predict(X).to_frame().to_parquet(path)."
            )
        return super().predict_to_parquet(X, path, **options)  # type: ignore[misc]

    def score(self, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> float:
        """The score of rows in memory, see the local class."""
        remedy = "or give a metric of scikit-learn the y and predict(X).compute(), one value a row"
        _refuse_unread("score", remedy, X, y, sample_weight)
        return super().score(X, y, sample_weight, **options)  # type: ignore[misc]

    def report(self, path: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
        """The report, see the local class; `X` and `y` are rows in memory."""
        _refuse_unread("report", "or leave X and y out", X, y)
        return super().report(path, X, y, **options)  # type: ignore[misc]

    def plot_explanation(self, X: Any, **options: Any) -> Any:
        """The plot of a row in memory, see the local class."""
        _refuse_unread("plot_explanation", "which has the row", X)
        return super().plot_explanation(X, **options)  # type: ignore[misc]

    def to_shap(self, X: Any) -> Any:
        """Contributions of rows in memory, see the local class."""
        _refuse_unread("to_shap", "or call explain, which is lazy", X)
        return super().to_shap(X)  # type: ignore[misc]


class DaskWideClassifier(_OverDask, WideClassifier):
    """`WideClassifier` on the workers of a Dask cluster.

    Bins, and where they are not given interactions, are chosen on the client by a random sample of 200,000 rows;
    counts, coefficients and the variances of their penalties are of all rows. The fitted model has the attributes of
    `WideClassifier`.

    Parameters
    ----------
    client : distributed.Client, optional
        Default: the current one.
    **options
        Those of `WideClassifier`.

    Examples
    --------
    >>> from dask.dataframe import read_parquet  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> from tabsym_dask import DaskWideClassifier
    >>> client, frame = Client(), read_parquet("rows")  # doctest: +SKIP
    >>> model = DaskWideClassifier(client).fit(frame, "y")  # doctest: +SKIP
    >>> model.predict_proba(frame).compute()  # doctest: +SKIP
    >>> local = model.to_local()  # doctest: +SKIP
    """

    _local = WideClassifier

    def predict_proba(self, X: Any, **options: Any) -> Any:
        """Class probabilities: of a Dask frame lazily, as a frame with a column a class; of other tables an array."""
        if not _is_dask(X):
            return super().predict_proba(X, **options)
        _refuse_with_dask("predict_proba", signature(self._local.predict_proba), options)
        meta = pd.DataFrame({label: np.empty(0) for label in self.classes_.tolist()})
        return X.map_partitions(_shares, dask.delayed(self.to_local()), meta=meta)

    def decision_function(self, X: Any, **options: Any) -> Any:
        """Linear predictors: of a Dask frame lazily, as a series, or for more than two classes a frame of them."""
        if not _is_dask(X):
            return super().decision_function(X, **options)
        _refuse_with_dask("decision_function", signature(self._local.decision_function), options)
        local = self.to_local()
        return X.map_partitions(_margins, dask.delayed(local), meta=_margins(X._meta, local))


class DaskWideRegressor(_OverDask, WideRegressor):
    """`WideRegressor` on the workers of a Dask cluster; see `DaskWideClassifier`.

    Parameters
    ----------
    client : distributed.Client, optional
        Default: the current one.
    **options
        Those of `WideRegressor`.
    """

    _local = WideRegressor


@contextmanager
def _columns_of_one_type() -> Iterator[None]:
    """A `TypeError` in our words where Arrow finds a column of several types."""
    try:
        yield
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise TypeError(
            f"A column mixes types, in a partition or from one to the next ({'; '.join(map(str, error.args))}); "
            "convert it to one type, e.g. with X.astype({name: str})."
        ) from error


def _refuse_with_dask(method: str, known: Signature, options: dict[str, Any]) -> None:
    """An error where a method of a Dask frame has an option: partitions are fitted and predicted without any."""
    for name, value in options.items():
        if name not in known.parameters:
            raise TypeError(f"{method} has no option {name!r}; leave it out.")
        if value is not None and value is not False:
            column = "with offset_column (or exposure_column)" if name == "offset" else ""
            if method == "fit":
                remedy = f"fit {column or 'without it'}, or the local class on rows in memory"
            else:
                remedy = f"{column and f'fit {column}, or '}ask to_local() about the partitions in memory"
            raise ValueError(f"{method} takes no {name} with a Dask frame; {remedy}.")


def _refuse_unread(method: str, remedy: str, *given: Any) -> None:
    """An error where a method that needs all rows at once is given a Dask frame, which may not fit into memory."""
    if any(map(_is_dask, given)):
        raise ValueError(
            f"{method} takes rows in memory, and a Dask frame may be larger; give it a part, such as "
            f"X.partitions[0].compute(), {remedy}."
        )


def _is_dask(X: Any) -> bool:
    return hasattr(X, "map_partitions") and hasattr(X, "to_delayed")


def _pieces(X: Any, y: Any, sample_weight: Any) -> tuple[list[Any], Any, Any]:
    """Delayed partitions of features, target and weights side by side, and the names of the latter two."""
    if not _is_dask(X) or not hasattr(X, "columns"):
        raise TypeError(f"X is a {type(X).__name__}, and a dask.dataframe.DataFrame is needed; use to_local's class.")
    columns = {}
    for name, own in ((TARGET, y), (WEIGHT, sample_weight)):
        if own is None or isinstance(own, str):
            continue
        if not _is_dask(own):
            raise TypeError(
                f"The {name.removeprefix('tabsym_')} is a {type(own).__name__}; give the name of a column, or a Dask "
                "series of the same partitions."
            )
        if own.npartitions != X.npartitions:
            raise ValueError(
                f"The table has {plural(X.npartitions, 'partition')}, and the {name.removeprefix('tabsym_')} "
                f"{own.npartitions}; repartition one of them."
            )
        columns[name] = own.to_delayed()
    pieces = list(X.to_delayed())
    if columns:
        beside = zip(*columns.values(), strict=True)
        pieces = [
            dask.delayed(_side_by_side)(piece, list(columns), *own) for piece, own in zip(pieces, beside, strict=True)
        ]
    return pieces, TARGET if TARGET in columns else y, WEIGHT if WEIGHT in columns else sample_weight


def _side_by_side(piece: pd.DataFrame, names: list[str], *own: Any) -> pd.DataFrame:
    for name, values in zip(names, own, strict=True):
        if len(values) != len(piece):
            raise ValueError(
                f"A partition has {plural(len(piece), 'row')}, and that of the {name.removeprefix('tabsym_')} "
                f"{len(values)}; take both from one frame."
            )
        if isinstance(values, pd.Series) and values.index.isin(piece.index).all():  # in another order, perhaps
            check_same_rows(piece, **{{TARGET: "y", WEIGHT: "sample_weight"}[name]: values})
    return piece.assign(**{name: np.asarray(values) for name, values in zip(names, own, strict=True)})


def _head(piece: pd.DataFrame) -> Any:
    return as_arrow(piece.head(1_000))


def _first(*heads: Any) -> Any:
    """Some rows of the first partition that has any."""
    return next((head for head in heads if len(head)), heads[0])


def _agreed(engine: OnWorkers, wanted: Any, found: list[Any]) -> ReadTable:
    """Categories and classes of all workers, by which they number from now on; and one sample."""
    names = list(dict.fromkeys(name for one in found for name in one[0]))
    vocabularies, of_worker = {}, [{} for _ in found]  # type: ignore[var-annotated]
    for name in names:
        merged, numbers = _merged(name, [one[0].get(name) for one in found])
        vocabularies[name] = merged
        for own, mapping in zip(of_worker, numbers, strict=True):
            if mapping is not None:
                own[name] = mapping
    classes, of_class = _merged(wanted.target, [one[1] for one in found])
    numbered = [None if numbers is None or not wanted.is_classifier else numbers.astype(float) for numbers in of_class]
    answers(engine.actors, "renumber", zip(of_worker, numbered, strict=True))
    sample = rows_of_smallest([one[3] for one in found if one[3] is not None], SAMPLE_ROWS)
    return ReadTable(wanted, sample, vocabularies, classes, next((one[2] for one in found if one[2] is not None), None))


def _merged(name: str, found: list[Categories | None]) -> tuple[Categories, list[NDArray[np.int32] | None]]:
    """The categories of all, and the new number of each one's."""
    merged, numbers = Categories(name, np.empty(0, dtype=object)), list[NDArray[np.int32] | None]()
    for own in found:
        if own is None:
            numbers.append(None)
            continue
        known = np.array([category is not None for category in own.categories], dtype=bool)
        codes = np.where(known, np.cumsum(known) - 1, -1)
        merged, mapping = merged.grow(RawCodes(codes.astype(np.int32), own.categories[known]))
        numbers.append(mapping)
    return merged, numbers


def _predict(rows: pd.DataFrame, model: Any) -> pd.Series:
    return pd.Series(model.predict(_features(rows, model)), index=rows.index, name="prediction")


def _shares(rows: pd.DataFrame, model: Any) -> pd.DataFrame:
    found = model.predict_proba(_features(rows, model))
    return pd.DataFrame(found, index=rows.index, columns=model.classes_.tolist())


def _margins(rows: pd.DataFrame, model: Any) -> pd.Series | pd.DataFrame:
    found = model.decision_function(_features(rows, model))
    if found.ndim == 1:
        return pd.Series(found, index=rows.index, name="decision")
    return pd.DataFrame(found, index=rows.index, columns=model.classes_.tolist())


def _explain(rows: pd.DataFrame, model: Any) -> pd.DataFrame:
    return model.explain(_features(rows, model))


def _features(rows: pd.DataFrame, model: Any) -> pd.DataFrame:
    """The columns that the model was fitted on."""
    return rows[[name for name in model.feature_names_in_.tolist() if name in rows.columns]]
