"""TIWS: target encoding with an answer for symbols never seen in training."""

from tabsym.encoders.tiws.encoder import TIWSEncoder

__all__ = ["TIWSEncoder"]
