"""Models made to answer for symbols never seen in training: by what they say of the symbols that those resemble."""

from tabsym.jitter.predictor import JitterPredictor

__all__ = ["JitterPredictor"]
