"""Example tables: generated ones, and public ones by name."""

from tabsym.datasets.public import PUBLIC, load
from tabsym.datasets.retail import make_retail

__all__ = ["PUBLIC", "load", "make_retail"]
