"""Fitted models in files that hold no code: `save`, `load`, and the list of types that `load` makes."""

from tabsym.export.files import load, save, trusted_types

__all__ = ["load", "save", "trusted_types"]
