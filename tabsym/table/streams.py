"""Tables that arrive in pieces, told apart from tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals.stable.v2 as nw


def is_stream(X: Any) -> bool:
    """Whether `X` is a dataset of record batches, or an iterator of frames, instead of a table."""
    if isinstance(X, (list, tuple, str)) or nw.dependencies.is_into_dataframe(X):
        return False
    return is_dataset(X) or isinstance(X, Iterator) or (hasattr(X, "read_next_batch") and not hasattr(X, "shape"))


def is_dataset(X: Any) -> bool:
    """Whether `X` is a pyarrow dataset, which can be read more than once."""
    return hasattr(X, "to_batches") and hasattr(X, "count_rows")
