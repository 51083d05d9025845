"""One-hot encoding: dense, sparse, or as the code matrix that never holds a zero."""

from tabsym.encoders.onehot.encoder import OneHotEncoder

__all__ = ["OneHotEncoder"]
