"""Fitted encoders of category_encoders as plain values.

Files without code cannot hold pandas series: encoders on the list are written as values of pandas, numpy and Python.
An encoder that holds anything else stays as it is, and `save` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from tabsym.frame.dtypes import read_categories, read_type, written_categories, written_type

MODULES = {
    "CatBoostEncoder": "cat_boost",
    "CountTargetEncoder": "count_target",
    "GLMMEncoder": "glmm",
    "JamesSteinEncoder": "james_stein",
    "LeaveOneOutEncoder": "leave_one_out",
    "MEstimateEncoder": "m_estimate",
    "OrdinalEncoder": "ordinal",
    "QuantileEncoder": "quantile_encoder",
    "SummaryEncoder": "quantile_encoder",
    "TargetEncoder": "target_encoder",
    "WOEEncoder": "woe",
}
"""The encoders of category_encoders that learn from a target, and the one that they number categories by."""

_PLAIN = (bool, int, float, str, bytes, type(None), np.generic, np.ndarray, np.random.RandomState)


@dataclass(frozen=True)
class StoredEncoder:
    """The name of an encoder on the list, and its attributes as plain values."""

    name: str
    state: dict[str, Any]


class _Unknown(TypeError):
    """A value that is on no list."""


def stored(encoder: Any) -> Any:
    """An encoder on the list as plain values; any other as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> from category_encoders import TargetEncoder
    >>> from tabsym.encoders.stored import restored, stored
    >>> X = pd.DataFrame({"town": ["Ulm", "Bonn", "Ulm", "Bonn"]})
    >>> encoder = TargetEncoder(smoothing=1, min_samples_leaf=1).fit(X, [0, 1, 0, 1])
    >>> bool((restored(stored(encoder)).transform(X) == encoder.transform(X)).all(axis=None))
    True
    """
    try:
        return _written_encoder(encoder) if _is_listed(encoder) else encoder
    except _Unknown:
        return encoder


def restored(written: Any) -> Any:
    """The encoder again; what is no `StoredEncoder` as it is."""
    if not isinstance(written, StoredEncoder):
        return written
    if written.name not in MODULES:
        raise ValueError(f"{written.name!r} is no encoder that files may hold.")
    cls = getattr(import_module(f"category_encoders.{MODULES[written.name]}"), written.name)
    if any(not isinstance(name, str) or name.startswith("__") for name in written.state):
        raise ValueError(f"A {written.name} has names of attributes that are none.")
    encoder = cls.__new__(cls)
    encoder.__dict__.update({name: _read(value) for name, value in written.state.items()})
    return encoder


def _is_listed(encoder: Any) -> bool:
    cls = type(encoder)
    return cls.__module__ == f"category_encoders.{MODULES.get(cls.__name__)}"


def _written_encoder(encoder: Any) -> StoredEncoder:
    return StoredEncoder(type(encoder).__name__, {name: _written(value) for name, value in vars(encoder).items()})


def _written(value: Any) -> list[Any]:
    """A value as its kind and plain parts."""
    if isinstance(value, pd.Series):
        return ["series", _numbers(value), written_categories(value.index), _written(value.name)]
    if isinstance(value, pd.DataFrame):
        columns = [_numbers(value.iloc[:, position]) for position in range(value.shape[1])]
        return ["frame", columns, written_categories(value.index), written_categories(value.columns)]
    if isinstance(value, (np.dtype, pd.api.extensions.ExtensionDtype)):
        return ["type", written_type(value, "pandas")]
    if _is_listed(value):
        return ["encoder", _written_encoder(value)]
    if type(value) is dict:
        return ["dict", [_written(key) for key in value], [_written(one) for one in value.values()]]
    if type(value) in (list, tuple, set):
        return [type(value).__name__, [_written(one) for one in value]]
    if isinstance(value, _PLAIN):
        return ["value", value]
    raise _Unknown(type(value).__name__)


def _numbers(series: pd.Series) -> Any:
    """The values (n,) of a series of numpy's types."""
    if not isinstance(series.dtype, np.dtype):
        raise _Unknown(str(series.dtype))
    return series.to_numpy()


def _read(written: list[Any]) -> Any:
    kind, *parts = written
    if kind == "value":
        return parts[0]
    if kind == "series":
        return pd.Series(parts[0], index=read_categories(*parts[1]), name=_read(parts[2]))
    if kind == "frame":
        columns = dict(enumerate(parts[0]))
        frame = pd.DataFrame(columns, index=read_categories(*parts[1]))
        frame.columns = read_categories(*parts[2])
        return frame
    if kind == "type":
        return read_type(parts[0])
    if kind == "encoder":
        return restored(parts[0])
    if kind == "dict":
        return dict(zip(map(_read, parts[0]), map(_read, parts[1]), strict=True))
    if kind in ("list", "tuple", "set"):
        return {"list": list, "tuple": tuple, "set": set}[kind](map(_read, parts[0]))
    raise ValueError(f"{str(kind)[:80]!r} is no kind of value.")
