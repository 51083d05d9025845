"""Any dataframe -> named columns, symbolic or numeric; the one place that checks user input."""

from tabsym.frame.columns import (
    Column,
    Kind,
    Numbers,
    Table,
    exact_number,
    exact_values,
    halfway,
    nanoseconds_of,
    with_rests,
)
from tabsym.frame.dtypes import StoredType, frame_of, library_of_frame, restored, restored_column, type_of
from tabsym.frame.features import match_features, remember_features, select_features, symbolic_columns
from tabsym.frame.frames import Labels, as_array, assemble_frame, take_rows
from tabsym.frame.read import check_one_type, read_table
from tabsym.frame.storage import NUMBERS, Measure
from tabsym.frame.target import (
    TARGET_TYPES,
    Target,
    check_classes,
    check_length,
    check_regression_target,
    check_same_rows,
    check_target,
    check_weights,
    holds_classes,
    name_of_target,
    plain_labels,
    relative_weights,
    split_target,
)
from tabsym.frame.whole_target import MAX_CLASSES, kind_of_whole_numbers

__all__ = [
    "MAX_CLASSES",
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
    "kind_of_whole_numbers",
    "name_of_target",
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
    "take_rows",
    "type_of",
    "with_rests",
]
