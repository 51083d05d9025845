"""Models made to answer for symbols never seen in training: by what they say of the symbols that those resemble."""

from tabsym.jitter.augmented import AugmentedModel

__all__ = ["AugmentedModel"]
