"""Which interactions a model gets: those that gain on held-out rows."""

from tabsym.interactions.search import AutoInteractions

__all__ = ["AutoInteractions"]
