"""Fit to a stream of batches larger than memory: a pyarrow dataset, or an iterator of data frames."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
from sklearn.base import clone, is_classifier

from tabsym.design.formula import parse
from tabsym.frame import check_named
from tabsym.frame.read import Batches, is_dataset, is_larger_than_memory
from tabsym.frame.storage import library_of
from tabsym.models.config import auto_epochs
from tabsym.models.model import WideModel

BATCH_ROWS = 131_072


def count_rows(X: Any) -> int | None:
    """Number of rows of a stream, where it is known without iteration."""
    return int(X.count_rows()) if is_dataset(X) else None


def batches(X: Any) -> Iterator[Any]:
    """The batches of a stream as frames, without empty ones."""
    if is_dataset(X):
        stream: Iterable[Any] = X.to_batches(batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
    else:
        stream = X
    for batch in stream:
        frame = batch
        if library_of(batch) == "pyarrow" and type(batch).__name__ == "RecordBatch":
            import pyarrow as pa  # already imported by the batch

            frame = pa.Table.from_batches([batch])
        if not (hasattr(frame, "__len__") and len(frame) == 0):
            yield frame


def target_name(y: Any, formula: str | None) -> str:
    """The target column of a stream: named by `y`, or by the formula."""
    if isinstance(y, str):
        return y
    named = None if formula is None else parse(formula).target
    if y is not None or named is None:
        raise ValueError(
            "With a stream the target is one of its columns: pass its name, fit(stream, 'price'), or name it in the "
            "formula."
        )
    return named


def split_target(batch: Any, target: str) -> tuple[Any, Any]:
    """A batch without its target, and the target."""
    frame = nw.from_native(batch)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if target not in frame.columns:
        raise ValueError(f"There is no column {target!r} in the stream; it has {', '.join(map(repr, frame.columns))}.")
    return frame.drop(target).to_native(), frame[target]


def find_classes(X: Any, target: str) -> list[Any] | None:
    """All classes of a dataset's target, by reading that column; None for a stream that can be iterated once only."""
    if not is_dataset(X):
        return None
    classes: set[Any] = set()
    for batch in X.to_batches(columns=[target]):
        classes.update(batch.column(0).unique().to_pylist())
    return sorted(classes - {None})


class Progress:
    """Progress line on standard error, updated every second; none unless `verbose`."""

    def __init__(self, verbose: int, total: int | None) -> None:
        self.verbose = verbose
        self.total = total
        self.rows = 0
        self._start = self._last_update = time.monotonic()

    def add(self, rows: int, loss: float) -> None:
        """Add `rows` more training rows, with their mean loss."""
        self.rows += rows
        now = time.monotonic()
        if self.verbose and now - self._last_update >= 1.0:
            self._last_update = now
            share = f" of {self.total:,}" if self.total else ""
            speed = self.rows / (now - self._start)
            print(f"\r{self.rows:,}{share} rows, {speed:,.0f} a second, loss {loss:.6g}   ", end="", file=sys.stderr)

    def close(self) -> None:
        if self.verbose:
            print(file=sys.stderr)


def fit_stream(estimator: Any, stream: Any, y: Any, extras: dict[str, Any], first_call: dict[str, Any]) -> None:
    """Fit by epochs of `partial_fit` over the batches of a stream; Ctrl-C keeps the model of the batches so far.

    Any other failure leaves the estimator unchanged. `extras`: row-wise arguments, which are invalid for a stream;
    `first_call`: additional arguments for the first batch.
    """
    for name, value in extras.items():
        if value is not None:
            raise ValueError(f"{name} cannot be given with a stream; call partial_fit on each piece with its own.")
    estimator._config().refuse_pieces()
    if estimator.early_stopping:
        raise ValueError("early_stopping needs all rows at hand; set it to False for a stream, and choose max_iter.")
    target = target_name(y, estimator.formula)
    total = count_rows(stream)
    epochs = _epochs(estimator, stream, total)
    draft = clone(estimator).set_params(verbose=0)
    progress = Progress(estimator.verbose, None if total is None else total * epochs)
    curve: list[float] = []
    first: WideModel | None = None
    try:
        for _ in range(epochs):
            lost, seen = 0.0, 0
            for batch in batches(stream):
                X, values = split_target(batch, target)
                draft.partial_fit(X, values, **({} if hasattr(draft, "model_") else first_call))
                lost, seen = lost + draft.loss_curve_[-1] * len(values), seen + len(values)
                progress.add(len(values), lost / seen)
            if seen == 0:
                raise ValueError("The stream has no rows; pass one that has, or read it anew.")
            curve.append(lost / seen)
            draft.model_ = _counted_once(draft.model_, first)
            first = draft.model_
    except KeyboardInterrupt:
        if hasattr(draft, "model_"):
            draft.model_ = _counted_once(draft.model_, first)
            _adopt(estimator, draft, curve)
        raise
    finally:
        progress.close()
    _adopt(estimator, draft, curve)


def _epochs(estimator: Any, stream: Any, total: int | None) -> int:
    if isinstance(estimator.max_iter, str):
        return auto_epochs(total) if is_dataset(stream) and total else 1
    if estimator.max_iter > 1 and not is_dataset(stream):
        raise ValueError(
            f"max_iter={estimator.max_iter} needs a stream that can be read again, such as a pyarrow dataset; "
            "an iterator ends after one."
        )
    return int(estimator.max_iter)


def _counted_once(model: WideModel, first: WideModel | None) -> WideModel:
    """The model with the counts of the first epoch, where there was one, as later epochs repeat the rows."""
    if first is None or len(model.counts) != len(first.counts):  # other rows
        return model
    return replace(model, counts=first.counts, weights=first.weights)


def _adopt(estimator: Any, draft: Any, curve: list[float]) -> None:
    """Replace the fitted state by that of a clone; attributes that users have set stay."""
    arguments = estimator.get_params(deep=False).keys()
    for name in vars(estimator).keys() - arguments:
        if name.startswith("_") or name.endswith("_"):
            delattr(estimator, name)
    for name in vars(draft).keys() - arguments:
        setattr(estimator, name, getattr(draft, name))
    estimator.loss_curve_ = curve
    estimator.n_iter_ = len(curve)


def predict_to_parquet(estimator: Any, X: Any, path: Any, keep: list[str]) -> int:
    """Write predictions of a table in batches; the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not is_larger_than_memory(X):
        raise TypeError(
            f"predict_to_parquet reads a path, a dataset, a lazy frame or a relation, not {type(X).__name__}; use "
            "predict for a table in memory."
        )
    path = Path(path).resolve()  # of a link the file that it leads to
    if path.is_dir():
        raise ValueError(f"path={str(path)!r} is a folder; name a file in it, such as 'predicted.parquet'.")
    part = path.with_name(f".{path.name}.part")  # which is the file in the end only: it may be that which is read
    writer, n_rows, batches = None, 0, Batches(X)
    read = iter(batches)
    first = next(read, None)
    try:
        for batch in chain([batches.without_rows() if first is None else first], read):  # of no rows a file of none
            for name in keep:
                check_named(name, batch.column_names, "to keep")
            try:
                predictions = _predictions(estimator, batch)
            except (TypeError, ValueError) as error:
                if not n_rows:
                    raise
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"In the rows from {n_rows:,} on: {error}") from error  # it counts from there
            taken = [name for name in keep if name in predictions]
            if taken:
                raise ValueError(
                    f"Column {taken[0]!r} is in keep, and the predictions are called so; rename it in the table."
                )
            table = pa.table({**{name: batch[name] for name in keep}, **predictions})
            writer = pq.ParquetWriter(part, table.schema) if writer is None else writer
            writer.write_table(table)
            n_rows += batch.num_rows
        if writer is not None:
            writer.close()
        part.replace(path)
    except BaseException:
        if writer is not None:
            writer.close()
        part.unlink(missing_ok=True)
        raise
    return n_rows


def _predictions(estimator: Any, batch: Any) -> dict[str, Any]:
    """Columns of predictions by name, of one batch."""
    names = getattr(estimator, "feature_names_in_", None)
    rows = batch if names is None else batch.select([name for name in names.tolist() if name in batch.column_names])
    if not is_classifier(estimator):
        return {"prediction": estimator.predict(rows)}
    if not hasattr(estimator, "predict_proba"):  # hinge
        return {"prediction": estimator.predict(rows)}
    shares = estimator.predict_proba(rows)
    predictions = {"prediction": estimator.classes_[shares.argmax(axis=1)]}
    return predictions | {f"probability_{label}": shares[:, at] for at, label in enumerate(estimator.classes_.tolist())}
