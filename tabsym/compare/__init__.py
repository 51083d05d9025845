"""The comparison: every treatment of categories on one table, under the same folds.

The package and its function share a name, so ``tabsym.compare`` is this
module as soon as any part of it was imported. The module can be called, and
then is the function: ``from tabsym import compare; compare(table, "price")``
holds whatever was imported before.
"""

import sys
from types import ModuleType

from tabsym.compare.best import Winner, load
from tabsym.compare.comparison import Comparison
from tabsym.compare.many import Comparisons, compare_tables
from tabsym.compare.metrics import Metric
from tabsym.compare.run import compare

__all__ = ["Comparison", "Comparisons", "Metric", "Winner", "compare", "compare_tables", "load"]


class _CallableModule(ModuleType):
    __call__ = staticmethod(compare)  # with its signature, for editors


sys.modules[__name__].__class__ = _CallableModule
