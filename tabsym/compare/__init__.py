"""The comparison: every treatment of categories on one table, under the same folds.

The package and its function share a name, so ``tabsym.compare`` is this
module as soon as any part of it was imported. The module can be called, and
then is the function: ``from tabsym import compare; compare(table, "price")``
holds whatever was imported before. Names are loaded when first used: the
process of a contender imports only what that contender needs.
"""

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tabsym.compare.comparison import Comparison, Winner, load
    from tabsym.compare.metrics import Metric
    from tabsym.compare.run import Comparisons, compare, compare_tables

_LAZY_IMPORTS = {
    "Comparison": "comparison",
    "Comparisons": "run",
    "Metric": "metrics",
    "Winner": "comparison",
    "compare": "run",
    "compare_tables": "run",
    "load": "comparison",
}
_EXTRA = ("cloudpickle", "jinja2", "matplotlib", "psutil", "pyarrow", "rich")

__all__ = ["Comparison", "Comparisons", "Metric", "Winner", "compare", "compare_tables", "load"]


def __getattr__(name: str) -> Any:
    if name == "__signature__":  # of the module as a function, for editors
        return inspect.signature(__getattr__("compare"))
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_LAZY_IMPORTS[name]}"), name)
    except ModuleNotFoundError as error:
        absent = error.name or ""
        if absent.partition(".")[0] not in _EXTRA:
            raise

    def needs_extra(*_: object, **__: object) -> Any:
        """Say what to install."""
        raise ModuleNotFoundError(f'tabsym.compare needs {absent!r}: pip install "tabsym[compare]"', name=absent)

    return needs_extra


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _CallableModule(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return __getattr__("compare")(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
