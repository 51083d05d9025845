"""ONNX models run by onnxruntime on the rows of a table."""

import datetime as dt

import numpy as np
import onnx
import onnxruntime
import pandas as pd

NUMBERS = {"tensor(double)": np.float64, "tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": bool}


def run(proto, X, missing_text=""):
    """The outputs by name."""
    onnx.checker.check_model(proto, full_check=proto.producer_name == "tabsym")  # skl2onnx puts in wrong types
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {one.name: column(X[one.name], one.type, missing_text) for one in session.get_inputs()})
    return dict(zip([one.name for one in session.get_outputs()], found))


def column(values, kind, missing_text):
    """The tensor (n, 1) of a column."""
    if kind == "tensor(string)":
        return values.astype(object).where(values.notna(), missing_text).to_numpy(dtype=object)[:, None]
    if values.dtype == object and isinstance(values.dropna().iloc[0], dt.date):
        values = pd.to_datetime(values)
    if values.dtype.kind == "m":
        values = days(values)
    if values.dtype.kind == "M":
        values = days(values - pd.Timestamp(0))
    has_missing = values.isna().any()
    return values.to_numpy(NUMBERS[kind], **({"na_value": np.nan} if has_missing else {}))[:, None]


def days(since):
    """Durations as days, rounded as the documentation says."""
    day = pd.Timedelta(days=1)
    return since // day + since % day / day
