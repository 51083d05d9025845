"""The winner of a comparison of a sample, trained on all rows: a wide model goes over them out of core.

The rows are prepared batch by batch, as later rows are, and written to a temporary Parquet file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from tabsym.compare.fitting import Trained
from tabsym.compare.prepare import CLASSES, Prepared, numbers_of_target, weights_of
from tabsym.models import WideClassifier, WideRegressor


def goes_out_of_core(model: Any) -> bool:
    """Whether a contender's model can be trained on rows that do not fit into memory."""
    return type(model) in (WideClassifier, WideRegressor)


def train_on_all_rows(model: Any, prepared: Prepared) -> tuple[Trained, int]:
    """A clone of the model, trained on all rows that have a target; and how many these are.

    Raises
    ------
    ValueError
        Rows that are not in the sample cannot be read as those in it.
    """
    target, weight = _new_name("target", prepared), _new_name("weight", prepared)
    fresh = clone(model)
    with tempfile.TemporaryDirectory(prefix="tabsym-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "rows.parquet"
        n_rows, is_weighted = _write(prepared, path, target, weight)
        fresh.fit(path, target, sample_weight=weight if is_weighted else None)
    seen = np.asarray(fresh.classes_, dtype=np.int64) if prepared.task in CLASSES else np.empty(0, dtype=np.int64)
    return Trained(fresh, seen), n_rows


def _new_name(name: str, prepared: Prepared) -> str:
    while name in prepared.X.columns:
        name += "_"
    return name


def _write(prepared: Prepared, path: Path, target: str, weight: str) -> tuple[int, bool]:
    """Write all rows, as the model gets them; their number, and whether they have weights."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert prepared.whole is not None
    kind = pa.int64() if prepared.task in CLASSES else pa.float64()
    schema = pa.Schema.from_pandas(prepared.X, preserve_index=False).remove_metadata().append(pa.field(target, kind))
    is_weighted = prepared.weight is not None or prepared.exposure is not None
    if is_weighted:
        schema = schema.append(pa.field(weight, pa.float64()))
    n_rows, codes = 0, _codes(prepared)
    with pq.ParquetWriter(path, schema) as writer:
        for frame in prepared.whole.frames():
            rows = prepared.retyping.apply(frame)
            rows = rows[rows[prepared.target.name].notna()].reset_index(drop=True)
            if not len(rows):
                continue
            y, weights = _target(prepared, rows, codes)
            X = prepared.features.apply(rows, later=True).assign(**{target: y})
            if is_weighted:
                X[weight] = weights
            writer.write_table(pa.Table.from_pandas(X, schema=schema, preserve_index=False))
            n_rows += len(rows)
    return n_rows, is_weighted


def _codes(prepared: Prepared) -> dict[Any, int]:
    """The code of each class of the target, for classification."""
    if prepared.task not in CLASSES:
        return {}
    return dict(zip(prepared.frame[prepared.target.name].tolist(), prepared.y.tolist(), strict=True))


def _target(
    prepared: Prepared, rows: pd.DataFrame, codes: dict[Any, int]
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Target and weights of some rows, as `fitting.train` makes them."""
    name, values = prepared.target.name, rows[prepared.target.name].infer_objects()
    weight, exposure, offset = weights_of(rows, prepared.task, prepared.roles)
    if prepared.task in CLASSES:
        new = next((value for value in values.unique().tolist() if value not in codes), None)
        if new is not None:
            raise ValueError(f"the sample has no row of class {new!r} of {name!r}")
        return np.array([codes[value] for value in values.tolist()], dtype=np.int64), weight
    y = numbers_of_target(values, name, prepared.task)
    if exposure is not None:
        y, weight = y / exposure, exposure if weight is None else weight * exposure
    return y if offset is None else y - offset, weight
