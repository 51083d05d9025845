"""Any dataframe -> named columns, symbolic or numeric; the one place that checks user input."""

from tabsym.table.columns import Column, Kind, Table
from tabsym.table.exact import Numbers, exact_number, exact_values, halfway, nanoseconds_of, with_rests
from tabsym.table.features import match_features, remember_features, select_features, symbolic_columns
from tabsym.table.kinds import check_one_type
from tabsym.table.measure import NUMBERS, Measure
from tabsym.table.named_target import split_target
from tabsym.table.output import Labels, as_array, assemble_frame
from tabsym.table.read import read_table
from tabsym.table.restore import StoredType, frame_of, library_of_frame, restored, restored_column, type_of
from tabsym.table.same_rows import check_length, check_same_rows
from tabsym.table.target import (
    Target,
    check_classes,
    check_regression_target,
    check_target,
    check_weights,
    plain_labels,
    relative_weights,
)
from tabsym.table.target_type import TARGET_TYPES, holds_classes

__all__ = [
    "NUMBERS",
    "TARGET_TYPES",
    "Column",
    "Kind",
    "Labels",
    "Measure",
    "Numbers",
    "StoredType",
    "Table",
    "Target",
    "as_array",
    "assemble_frame",
    "check_classes",
    "check_regression_target",
    "check_length",
    "check_one_type",
    "check_same_rows",
    "check_target",
    "check_weights",
    "exact_number",
    "exact_values",
    "frame_of",
    "halfway",
    "library_of_frame",
    "holds_classes",
    "match_features",
    "nanoseconds_of",
    "plain_labels",
    "read_table",
    "relative_weights",
    "remember_features",
    "restored",
    "restored_column",
    "select_features",
    "split_target",
    "symbolic_columns",
    "type_of",
    "with_rests",
]
