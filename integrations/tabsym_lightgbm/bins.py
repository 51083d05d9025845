"""MODL's cuts as LightGBM's forced bins.

LightGBM bins a numeric column by its quantiles, and fills in between the cuts it is told of in a file. A cut that tells
the target apart, but lies among few rows, is so a place where trees can split. Categorical columns have no forced bins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor

from tabsym.encoders import MODLEncoder


@contextmanager
def forced_bins(bounds: Mapping[int, Sequence[float]]) -> Iterator[str]:
    """A file for ``forcedbins_filename``, there while training lasts.

    Parameters
    ----------
    bounds : mapping of column number -> cuts
        Of numeric columns.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tabsym_lightgbm import forced_bins
    >>> with forced_bins({0: [0.5, 2.0]}) as name:
    ...     print(Path(name).read_text())
    [{"feature": 0, "bin_upper_bound": [0.5, 2.0]}]
    """
    told = [{"feature": int(place), "bin_upper_bound": list(map(float, cuts))} for place, cuts in bounds.items()]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "bins.json"
        file.write_text(json.dumps(told))
        yield str(file)


def modl_bounds(frame: Any, y: Any, sample_weight: Any, target_type: str) -> dict[int, list[float]]:
    """MODL's cuts of the numeric columns of a frame, by column number; none where a column says nothing."""
    table = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame)
    table = table.set_axis([str(place) for place in range(table.shape[1])], axis=1)
    numeric = [str(name) for name in table if isinstance(table[name].dtype, np.dtype) and table[name].notna().any()]
    if not numeric:
        return {}
    encoder = MODLEncoder(target_type=target_type, prove=False).fit(
        table[numeric].astype(np.float64), y, sample_weight=sample_weight
    )
    parts: Any = encoder.partitions_
    found = {int(name): np.asarray(parts[name].bounds, dtype=np.float64) for name in numeric}
    finite = {place: cuts[np.isfinite(cuts)].tolist() for place, cuts in found.items()}
    return {place: cuts for place, cuts in finite.items() if cuts}


def _fit(booster: Any, fit: Any, X: Any, y: Any, options: dict[str, Any], target_type: str) -> Any:
    bounds = modl_bounds(X, y, options.get("sample_weight"), target_type)
    with forced_bins(bounds) as name:
        booster.set_params(forcedbins_filename=name)
        try:
            fit(X, y, **options)
        finally:  # the file does not outlive the fit, nor does its name in what is cloned
            booster._other_params.pop("forcedbins_filename", None)
            vars(booster).pop("forcedbins_filename", None)
    return booster


class MODLBinsClassifier(LGBMClassifier):
    """LGBMClassifier whose numeric columns can be split where MODL cuts them."""

    def fit(self, X: Any, y: Any, **options: Any) -> Any:  # type: ignore[override]
        """As LightGBM's."""
        return _fit(self, super().fit, X, y, options, "classes")


class MODLBinsRegressor(LGBMRegressor):
    """LGBMRegressor whose numeric columns can be split where MODL cuts them."""

    def fit(self, X: Any, y: Any, **options: Any) -> Any:  # type: ignore[override]
        """As LightGBM's."""
        return _fit(self, super().fit, X, y, options, "continuous")
