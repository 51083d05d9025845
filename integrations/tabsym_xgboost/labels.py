"""XGBoost's classifier for class labels of any kind: its own wants 0, 1, ..."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xgboost import XGBClassifier


class XGBLabelClassifier(XGBClassifier):
    """XGBClassifier that codes its labels itself.

    Examples
    --------
    >>> import numpy as np
    >>> from tabsym_xgboost import XGBLabelClassifier
    >>> X = np.arange(20.0)[:, None]
    >>> model = XGBLabelClassifier(n_estimators=5).fit(X, ["low"] * 10 + ["high"] * 10)
    >>> model.predict(X[[0, -1]]).tolist()
    ['low', 'high']
    """

    _labels: NDArray[Any] | None = None

    def fit(self, X: Any, y: Any, *, eval_set: Any = None, **options: Any) -> Any:
        """As XGBoost's, with labels of any kind, in `eval_set` too."""
        labels, codes = np.unique(np.asarray(y), return_inverse=True)
        self._labels = None  # XGBoost asks for its own meanwhile
        if eval_set is not None:
            eval_set = [(one, _codes_of(target, labels)) for one, target in eval_set]
        super().fit(X, codes, eval_set=eval_set, **options)
        self._labels = labels
        return self

    def predict(self, X: Any, *, output_margin: bool = False, **options: Any) -> NDArray[Any]:
        """The labels (n_rows,), or margins."""
        found = super().predict(X, output_margin=output_margin, **options)
        return found if output_margin or self._labels is None else self._labels[np.asarray(found, dtype=np.int64)]

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        return super().classes_ if self._labels is None else self._labels


def _codes_of(y: Any, labels: NDArray[Any]) -> NDArray[np.int64]:
    values = np.asarray(y)
    codes = np.minimum(np.searchsorted(labels, values), len(labels) - 1)
    if (labels[codes] != values).any():
        unknown = values[labels[codes] != values].tolist()[0]
        raise ValueError(f"eval_set has class {unknown!r}, which is not in the training data; leave such rows out.")
    return codes
