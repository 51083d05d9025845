"""Models, encoders and comparisons for categorical columns.

The public names are loaded when first used, so that ``import tabsym`` is
quick and pulls in nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_LAZY_IMPORTS = {
    "AugmentedModel": "tabsym.jitter",
    "CrossFit": "tabsym.encoders",
    "DateParts": "tabsym.encoders",
    "JitterPredictor": "tabsym.jitter",
    "JitterTreeClassifier": "tabsym.jitter",
    "JitterTreeRegressor": "tabsym.jitter",
    "MODLEncoder": "tabsym.encoders",
    "OneHotEncoder": "tabsym.encoders",
    "SelectiveNaiveBayesClassifier": "tabsym.naive_bayes",
    "TIWSEncoder": "tabsym.encoders",
    "WideBoostClassifier": "tabsym.stacking",
    "WideBoostRegressor": "tabsym.stacking",
    "WideClassifier": "tabsym.models",
    "WideEncoder": "tabsym.encoders",
    "WideRegressor": "tabsym.models",
    "WideSGDClassifier": "tabsym.models",
    "WideSGDRegressor": "tabsym.models",
    "compare": "tabsym.compare",
    "datasets": "tabsym.datasets",
    "load": "tabsym.export",
    "plots": "tabsym.plots",
    "save": "tabsym.export",
    "trusted_types": "tabsym.export",
}

__all__ = [
    "AugmentedModel",
    "CrossFit",
    "DateParts",
    "JitterPredictor",
    "JitterTreeClassifier",
    "JitterTreeRegressor",
    "MODLEncoder",
    "OneHotEncoder",
    "SelectiveNaiveBayesClassifier",
    "TIWSEncoder",
    "WideBoostClassifier",
    "WideBoostRegressor",
    "WideClassifier",
    "WideEncoder",
    "WideRegressor",
    "WideSGDClassifier",
    "WideSGDRegressor",
    "compare",
    "datasets",
    "load",
    "plots",
    "save",
    "trusted_types",
]

if TYPE_CHECKING:
    from tabsym import datasets, plots
    from tabsym.compare import compare
    from tabsym.encoders import CrossFit, DateParts, MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder
    from tabsym.export import load, save, trusted_types
    from tabsym.jitter import AugmentedModel, JitterPredictor, JitterTreeClassifier, JitterTreeRegressor
    from tabsym.models import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
    from tabsym.naive_bayes import SelectiveNaiveBayesClassifier
    from tabsym.stacking import WideBoostClassifier, WideBoostRegressor


def __getattr__(name: str) -> Any:
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module 'tabsym' has no attribute {name!r}")
    module = import_module(_LAZY_IMPORTS[name])
    return module if name in ("datasets", "plots") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
