"""Tables that arrive in pieces: a pyarrow dataset, or an iterator of frames, larger than memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
from sklearn.base import clone

from tabsym.estimators.automatic import auto_epochs
from tabsym.table.read import is_dataset
from tabsym.wide.formula import parse
from tabsym.wide.model import WideModel

BATCH_ROWS = 131_072

HIDDEN_STATE = ("_rng", "_similar", "_chosen", "_losses", "_offset_column", "_had_offset")
"""What a fit leaves behind beside attributes with an underscore at their end."""


def can_repeat(X: Any) -> bool:
    """Whether a stream can be read again from its start."""
    return is_dataset(X)


def count_rows(X: Any) -> int | None:
    """Rows of a stream, where they can be had without reading it."""
    return int(X.count_rows()) if is_dataset(X) else None


def pieces(X: Any) -> Iterator[Any]:
    """The frames of a stream, empty ones left out."""
    if is_dataset(X):
        stream: Iterable[Any] = X.to_batches(batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
    else:
        stream = X
    for piece in stream:
        frame = _as_table(piece)
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


def split_target(piece: Any, target: str) -> tuple[Any, Any]:
    """A piece without its target, and the target."""
    frame = nw.from_native(piece)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if target not in frame.columns:
        raise ValueError(f"There is no column {target!r} in the stream; it has {', '.join(map(repr, frame.columns))}.")
    return frame.drop(target).to_native(), frame[target]


def find_classes(X: Any, target: str) -> list[Any] | None:
    """All classes of a dataset's target, by reading that column; None where a stream can be read once only."""
    if not is_dataset(X):
        return None
    found: set[Any] = set()
    for batch in X.to_batches(columns=[target]):
        found.update(batch.column(0).unique().to_pylist())
    return sorted(found - {None})


class Progress:
    """One line on standard error, written again every second; nothing unless `verbose`."""

    def __init__(self, verbose: int, total: int | None) -> None:
        self.verbose = verbose
        self.total = total
        self.rows = 0
        self._start = self._shown = time.monotonic()

    def add(self, rows: int, loss: float) -> None:
        """So many more rows were trained on, at this mean loss."""
        self.rows += rows
        now = time.monotonic()
        if self.verbose and now - self._shown >= 1.0:
            self._shown = now
            share = f" of {self.total:,}" if self.total else ""
            speed = self.rows / (now - self._start)
            print(f"\r{self.rows:,}{share} rows, {speed:,.0f} a second, loss {loss:.6g}   ", end="", file=sys.stderr)

    def close(self) -> None:
        if self.verbose:
            print(file=sys.stderr)


def _as_table(piece: Any) -> Any:
    """A record batch as a table; other frames as they are."""
    if type(piece).__module__.split(".")[0] == "pyarrow" and type(piece).__name__ == "RecordBatch":
        import pyarrow as pa  # the piece is from there

        return pa.Table.from_batches([piece])
    return piece


def fit_stream(estimator: Any, stream: Any, y: Any, extras: dict[str, Any], first_call: dict[str, Any]) -> None:
    """Fit by epochs of `partial_fit` over the pieces of a stream; Ctrl-C keeps what was learned by then.

    Any other failure leaves the estimator as it was. `extras`: row-wise
    arguments, which a stream cannot have; `first_call`: more arguments for the
    first piece.
    """
    _refuse_what_streams_lack(estimator, extras)
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
            for piece in pieces(stream):
                X, values = split_target(piece, target)
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


def _refuse_what_streams_lack(estimator: Any, extras: dict[str, Any]) -> None:
    """A stream has no weights, offsets or held-out rows, and cannot be looked at before it is read."""
    for name, value in extras.items():
        if value is not None:
            raise ValueError(f"{name} cannot be given with a stream; call partial_fit on each piece with its own.")
    estimator._config().refuse_pieces()
    if estimator.early_stopping:
        raise ValueError("early_stopping needs all rows at hand; set it to False for a stream, and choose max_iter.")


def _epochs(estimator: Any, stream: Any, total: int | None) -> int:
    if isinstance(estimator.max_iter, str):
        return auto_epochs(total) if can_repeat(stream) and total else 1
    if estimator.max_iter > 1 and not can_repeat(stream):
        raise ValueError(
            f"max_iter={estimator.max_iter} needs a stream that can be read again, such as a pyarrow dataset; "
            "an iterator ends after one."
        )
    return int(estimator.max_iter)


def _counted_once(model: WideModel, first: WideModel | None) -> WideModel:
    """The model with the counts of the first reading, where there was one: the same rows were read again."""
    if first is None or len(model.counts) != len(first.counts):  # they were not
        return model
    return replace(model, counts=first.counts, weights=first.weights)


def _is_fitted_state(name: str) -> bool:
    return (name.endswith("_") and not name.startswith("__")) or name in HIDDEN_STATE


def _adopt(estimator: Any, draft: Any, curve: list[float]) -> None:
    """Take the fitted state of another estimator, and nothing of a fit before."""
    for name in [name for name in vars(estimator) if _is_fitted_state(name)]:
        delattr(estimator, name)
    for name, value in vars(draft).items():
        if _is_fitted_state(name):
            setattr(estimator, name, value)
    estimator.loss_curve_ = curve
    estimator.n_iter_ = len(curve)
