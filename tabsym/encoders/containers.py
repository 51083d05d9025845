"""A table as an encoder of any library reads it, and what that encoder makes as the user wants it.

scikit-learn's encoders give arrays, category_encoders know pandas only; a
polars frame goes through either and comes back as one.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from tabsym.encoders.pieces import column_names, is_frame
from tabsym.table import Table


def wants_pandas(encoder: Any) -> bool:
    """Whether the encoder, or one inside it, is of category_encoders, which reads no other frames."""
    steps = [encoder, *encoder.get_params().values()] if hasattr(encoder, "get_params") else [encoder]
    return any(base.__module__.startswith("category_encoders") for step in steps for base in type(step).__mro__)


def data_for(encoder: Any, X: Any, table: Table) -> Any:
    """The table X as the encoder reads it: pandas for category_encoders, frames as they are, else an array."""
    if isinstance(X, pd.DataFrame):
        return X
    if not table.named and (array := np.asarray(X)).ndim > 1:  # a series without a name is a frame all the same
        return array
    if isinstance(X, (list, tuple, np.ndarray)):  # text in one dimension is an array of one column
        return np.asarray(X, dtype=object)[:, None]
    return _to("pandas", table.native) if wants_pandas(encoder) else table.native


def in_users_container(out: Any, encoder: Any, table: Table, data: Any, asked: str) -> Any:
    """What a fitted encoder made of `data`, in the container of the user's table, or in the one asked for.

    Parameters
    ----------
    out : frame, array or sparse matrix
    encoder : transformer
        Fitted.
    table : Table
        Of the user, in whose kind of frame `out` comes back.
    data : frame or array
        As `data_for` gave it to the encoder: arrays stay arrays.
    asked : {"default", "pandas", "polars"}
        By set_output.
    """
    if sparse.issparse(out):
        return out
    kind = _kind_of(table.native)
    if isinstance(out, np.ndarray):
        if not is_frame(data) or not getattr(encoder, "return_df", True):
            return out
        out = _frame_of(out, column_names(out, encoder), kind, table)
    elif kind != "pandas" and wants_pandas(encoder):
        out = _to(kind, out)
    return out if asked == "default" else _to(asked, out)


def _kind_of(frame: Any) -> str:
    return str(nw.from_native(frame, eager_only=True).implementation.value)


def _to(kind: str, frame: Any) -> Any:
    """A frame as pandas, polars or pyarrow; itself where it is that already."""
    if _kind_of(frame) == kind:
        return frame
    source = nw.from_native(frame, eager_only=True)
    return {"pandas": source.to_pandas, "polars": source.to_polars, "pyarrow": source.to_arrow}[kind]()


def _frame_of(array: NDArray[Any], names: list[Any], kind: str, table: Table) -> Any:
    if kind == "pandas":
        frame = pd.DataFrame(array, columns=names, index=table.native.index)
        return frame.infer_objects() if array.dtype == object else frame
    columns = {str(name): array[:, place] for place, name in enumerate(names)}
    lists = {name: column.tolist() if column.dtype == object else column for name, column in columns.items()}
    backend = nw.from_native(table.native, eager_only=True).implementation
    return nw.from_dict(lists, backend=backend).to_native()
