"""The comparison: every treatment of categories on one table, under the same folds.

The package and its function share a name, so ``tabsym.compare`` is this
module as soon as any part of it was imported. The module can be called, and
then is the function: ``from tabsym import compare; compare(table, "price")``
holds whatever was imported before.
"""

import sys
from types import ModuleType
from typing import Any

from tabsym.compare.best import Winner, load
from tabsym.compare.metrics import Metric

_EXTRA = ("cloudpickle", "jinja2", "matplotlib", "psutil", "pyarrow", "rich")

try:
    from tabsym.compare.comparison import Comparison
    from tabsym.compare.many import Comparisons, compare_tables
    from tabsym.compare.run import compare
except ModuleNotFoundError as error:  # cloudpickle, of a joblib that brings none
    if (error.name or "").partition(".")[0] not in _EXTRA:
        raise
    _absent = error.name

    def _needs_extra(*_: object, **__: object) -> Any:
        """Say what to install."""
        raise ModuleNotFoundError(f'tabsym.compare needs {_absent!r}: pip install "tabsym[compare]"', name=_absent)

    compare = compare_tables = _needs_extra
    Comparison = Comparisons = _needs_extra  # type: ignore[assignment, misc]

__all__ = ["Comparison", "Comparisons", "Metric", "Winner", "compare", "compare_tables", "load"]


class _CallableModule(ModuleType):
    __call__ = staticmethod(compare)  # with its signature, for editors


sys.modules[__name__].__class__ = _CallableModule
