"""Tables that arrive in pieces: a pyarrow dataset, or an iterator of frames, larger than memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import narwhals.stable.v2 as nw

BATCH_ROWS = 131_072


def is_stream(X: Any) -> bool:
    """Whether `X` is a dataset of record batches, or an iterator of frames, instead of a table."""
    if isinstance(X, (list, tuple, str)) or nw.dependencies.is_into_dataframe(X):
        return False
    return _is_dataset(X) or isinstance(X, Iterator) or (hasattr(X, "read_next_batch") and not hasattr(X, "shape"))


def can_repeat(X: Any) -> bool:
    """Whether a stream can be read again from its start."""
    return _is_dataset(X)


def count_rows(X: Any) -> int | None:
    """Rows of a stream, where they can be had without reading it."""
    return int(X.count_rows()) if _is_dataset(X) else None


def pieces(X: Any) -> Iterator[Any]:
    """The frames of a stream, empty ones left out."""
    if _is_dataset(X):
        stream: Iterable[Any] = X.to_batches(batch_size=BATCH_ROWS)
    else:
        stream = X
    for piece in stream:
        frame = _as_table(piece)
        if not (hasattr(frame, "__len__") and len(frame) == 0):
            yield frame


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


def _is_dataset(X: Any) -> bool:
    return hasattr(X, "to_batches") and hasattr(X, "count_rows")


def _as_table(piece: Any) -> Any:
    """A record batch as a table; other frames as they are."""
    if type(piece).__module__.split(".")[0] == "pyarrow" and type(piece).__name__ == "RecordBatch":
        import pyarrow as pa  # the piece is from there

        return pa.Table.from_batches([piece])
    return piece
