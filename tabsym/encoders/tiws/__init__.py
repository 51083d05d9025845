"""TIWS: target encoding with an answer for categories that are not in the training data."""

from tabsym.encoders.tiws.encoder import TIWSEncoder

__all__ = ["TIWSEncoder"]
