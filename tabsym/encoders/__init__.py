"""Encoders with the interfaces of category_encoders and scikit-learn."""

from tabsym.encoders.crossfit import CrossFit
from tabsym.encoders.dates import DateParts
from tabsym.encoders.modl import MODLEncoder
from tabsym.encoders.native import NativeCategories, NativePipeline, answer_of, coder_of
from tabsym.encoders.onehot import OneHotEncoder
from tabsym.encoders.tiws import TIWSEncoder
from tabsym.encoders.wide import WideEncoder

__all__ = [
    "CrossFit",
    "DateParts",
    "MODLEncoder",
    "NativeCategories",
    "NativePipeline",
    "OneHotEncoder",
    "TIWSEncoder",
    "WideEncoder",
    "answer_of",
    "coder_of",
]
