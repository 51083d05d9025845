"""Any dataframe -> named columns, symbolic or numeric; the one place that checks user input."""

from tabsym.frame.columns import (
    Column,
    Kind,
    Numbers,
    Table,
    TableEstimator,
    exact_number,
    exact_parts,
    exact_values,
    halfway,
    match_features,
    nanoseconds_of,
    remember_features,
    select_features,
    categorical_columns,
    with_rests,
)
from tabsym.frame.dtypes import StoredType, frame_of, library_of_frame, restored, restored_column, type_of
from tabsym.frame.frames import Labels, as_array, assemble_frame, take_of, take_rows
from tabsym.frame.meaning import MAX_CLASSES, kind_of_whole_numbers
from tabsym.frame.read import as_lazy, check_one_type, read_table
from tabsym.frame.storage import NUMBERS, Measure, as_given, days_of
from tabsym.frame.target import (
    TARGET_TYPES,
    Target,
    check_classes,
    check_frequencies,
    check_length,
    check_named,
    check_regression_target,
    check_same_rows,
    check_target,
    check_weights,
    holds_classes,
    labels_to_score,
    name_of_target,
    plain_labels,
    relative_weights,
    split_columns,
    split_target,
)
