"""What categories become before a booster sees them."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from tabsym.encoders.modl import MODLEncoder
from tabsym.encoders.native import NativeCategories

CODES = ("native", "group", "ordinal")


def coder_of(
    codes: Any, task: str, random_state: Any = None, *, text: bool = False, max_levels: int | None = None
) -> Any:
    """A transformer from any table to a frame that every booster reads rightly.

    Parameters
    ----------
    codes : {"native", "group", "ordinal"} or transformer
        "native": categories; "group": categories of MODL's groups; "ordinal": ranks by frequency; a transformer
        of the user's own, whose categories become categories.
    task : {"binary", "multiclass", "regression", "count"}
    random_state : int, optional
        Of MODL.
    text : bool
        Categories as text, for CatBoost.
    max_levels : int, optional
        So many levels of a category at most, for HistGradientBoosting.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym.encoders import coder_of
    >>> X = pd.DataFrame({"colour": ["red", "blue", "blue"]})
    >>> coder_of("ordinal", "binary").fit_transform(X)["colour"].tolist()
    [1.0, 0.0, 0.0]
    """
    if codes == "ordinal":
        return NativeCategories(output="ordinal", names="kept")
    native = NativeCategories(output="text" if text else "category", names="kept", max_levels=max_levels)
    if codes == "native":
        return native
    if codes == "group":
        kind = "continuous" if task in ("regression", "count") else "classes"
        groups = MODLEncoder(numeric="passthrough", target_type=kind, prove=False, random_state=random_state)
        return Pipeline([("groups", groups), ("categories", native)])
    if hasattr(codes, "fit") and hasattr(codes, "transform"):
        return Pipeline([("codes", clone(codes)), ("categories", native)])
    raise ValueError(f"codes={codes!r} is not known; use {', '.join(map(repr, CODES))} or a transformer.")
