"""Fitted models outside of Python: files without code (`save`, `load`), and specs that other tools read."""

from tabsym.export.excel import to_excel
from tabsym.export.files import load, save, trusted_types
from tabsym.export.from_spec import from_spec
from tabsym.export.onnx_model import register_onnx_converters, to_onnx
from tabsym.export.rate_tables import scorecard, to_csv
from tabsym.export.spec import spec_schema, to_spec, to_stack
from tabsym.export.sql import to_sql

__all__ = [
    "from_spec",
    "load",
    "register_onnx_converters",
    "save",
    "scorecard",
    "spec_schema",
    "to_csv",
    "to_excel",
    "to_onnx",
    "to_spec",
    "to_sql",
    "to_stack",
    "trusted_types",
]
