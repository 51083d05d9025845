"""What decides how the rows of Parquet files are coded: by it, rows that were coded before are known to be the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from tabsym.frame.read import is_dataset
from tabsym.models.coded_batches import PART_ROWS, Wanted

Fingerprint = dict[str, Any]
"""Values as JSON has them, by words for a message."""


def check_has_fingerprint(source: Any) -> None:
    """A `ValueError` for a table whose changes are not seen from outside."""
    if not is_dataset(source) or getattr(getattr(source, "format", None), "default_extname", None) != "parquet":
        raise ValueError(
            "cache_dir is for Parquet files, whose sizes and times show whether they have changed, and this table is "
            f"a {type(source).__name__}; pass the path of a Parquet file, of a folder of them, or an Arrow dataset of "
            "them, or leave cache_dir out."
        )
    if getattr(source, "_scan_options", None):
        raise ValueError(
            "cache_dir is for whole Parquet files, and this dataset is filtered; give the rows to be left out the "
            "weight 0 by sample_weight='NAME', write those that are left to Parquet, or leave cache_dir out."
        )


def fingerprint_of(source: Any, wanted: Wanted, n_sampled: int, seed: int) -> Fingerprint:
    """The fingerprint of an Arrow dataset and the options by which its rows are coded."""
    infos = source.filesystem.get_file_info(source.files)
    return as_json({
        "the version of tabsym": version("tabsym"),
        "files": {info.path: [info.size, info.mtime_ns] for info in infos},
        "the row groups": [_groups_of(fragment) for fragment in source.get_fragments()],
        "the schema": str(source.schema.remove_metadata()),
        "the target": wanted.target,
        "sample_weight": wanted.weight,
        "the columns": wanted.columns,
        "the offset": None if wanted.offset is None else asdict(wanted.offset),
        "categorical_features": wanted.categorical,
        "the formula": sorted(wanted.coded),
        "the kind of estimator": wanted.is_classifier,
        "random_state": seed,
        "the size of parts": [n_sampled, PART_ROWS],
    })  # fmt: skip


def as_json(values: dict[str, Any]) -> Fingerprint:
    """The values as they are once they were written and read."""
    return dict(json.loads(json.dumps(values, default=str)))


def _groups_of(fragment: Any) -> list[Any]:
    """Which rows of a file, and the values that its path has."""
    groups = [[group.id, group.num_rows, group.total_byte_size] for group in fragment.row_groups]
    return [fragment.path, str(fragment.partition_expression), groups]


def difference(before: Fingerprint, now: Fingerprint) -> str | None:
    """In words, what is not the same; None where all is."""
    name = next((name for name in now if before.get(name) != now[name]), None)
    if name != "files":
        return name
    old, new = before[name], now[name]
    return f"the file {next(path for path in [*new, *old] if old.get(path) != new.get(path))!r}"
