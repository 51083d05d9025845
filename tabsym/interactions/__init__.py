"""Choice of interactions: those with a gain on held-out rows."""

from tabsym.interactions.search import AutoInteractions

__all__ = ["AutoInteractions"]
