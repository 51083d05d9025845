"""Coded rows that are kept in a folder, so that the next fit of the same files need not code them again.

The folder `_tabsym` in `cache_dir` belongs to one fit at a time, by a lock that ends with its process. It holds
`rows-*`, the arrays of each part and Arrow files of the categories and the sample, and `rows.json`, which names them.
That file is written last, under another name, and renamed: whenever a process is killed, there are all rows or none.
What is read is checked against sizes and checksums, and nothing of it is run. That the files and the options are those
by which the rows were coded, a fingerprint shows.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import Categories
from tabsym.categories.coding import plain_categories
from tabsym.frame.read import is_dataset
from tabsym.messages import warn_user
from tabsym.models.out_of_core.parts import PART_ROWS, InFiles, Part, ReadTable, Wanted

NAME, LOCK, LIST, ROWS, WORK = "_tabsym", "lock", "rows.json", "rows-", "work-"
_CHUNK = 1 << 24  # bytes
_FLOATS, _CODES = np.dtype(np.float64), np.dtype(np.int32)


class DamagedRows(ValueError):
    """What is wrong with kept rows."""


class RowCache:
    """The rows that a folder keeps, of which there may be none yet.

    Parameters
    ----------
    folder : Path
        Locked by this process.
    cache_dir : str
        The folder by the user's name.
    """

    def __init__(self, folder: Path, cache_dir: str) -> None:
        self.folder, self._name = folder, cache_dir
        self.rows = Path(tempfile.mkdtemp(prefix=ROWS, dir=folder))
        """Where rows are coded to before they are kept."""
        self.work = Path(tempfile.mkdtemp(prefix=WORK, dir=folder))
        """For the other files of a fit."""

    def find(self, fingerprint: Fingerprint, wanted: Wanted, store: InFiles) -> tuple[ReadTable, list[Part]] | None:
        """The rows that were coded from the same files in the same way; None, after a warning, of others."""
        path = self.folder / LIST
        if not path.exists():
            return None
        try:
            listed = _listed(path)
            changed = difference(listed["fingerprint"], fingerprint)
            if changed is None:
                return self._opened(listed, wanted, store)
            problem = f"differ from those of this fit in {changed}"
        except (DamagedRows, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"are damaged ({type(error).__name__ if isinstance(error, KeyError) else error})"
        warn_user(f"The coded rows in cache_dir={self._name!r} {problem}; the rows are coded again, and replace them.")
        path.unlink()
        remove_files(self.folder, (self.rows.name, self.work.name))
        return None

    def keep(
        self, fingerprint: Fingerprint, read: ReadTable, parts: list[Part], store: InFiles
    ) -> tuple[ReadTable, list[Part]]:
        """Keep coded rows, whose arrays are files in `rows`; the same rows, as any later fit has them."""
        try:
            self._list(fingerprint, read, parts)
        except (DamagedRows, OSError) as error:
            warn_user(f"The coded rows are not kept in cache_dir={self._name!r}: {error}.")
            return read, parts
        return self.find(fingerprint, read.wanted, store) or (read, parts)

    def _list(self, fingerprint: Fingerprint, read: ReadTable, parts: list[Part]) -> None:
        tables = {name: _table_of(categories, read.sample) for name, categories in read.vocabularies.items()}
        classes = _table_of(read.classes, read.sample) if read.wanted.is_classifier else None
        listed = {
            "fingerprint": fingerprint,
            "folder": self.rows.name,
            "parts": [_files_of(part) for part in parts],
            "sample": self._write("sample.arrow", read.sample),
            "categories": [
                [name, self._write(f"{number}.arrow", table)] for number, (name, table) in enumerate(tables.items())
            ],
            "classes": None if classes is None else self._write("classes.arrow", classes),
        }
        text = json.dumps(listed)
        draft = self.folder / f"{LIST}.draft"
        draft.write_text(f"{zlib.crc32(text.encode())}\n{text}", encoding="utf-8")
        draft.replace(self.folder / LIST)

    def _write(self, name: str, table: Any) -> list[Any]:
        import pyarrow as pa

        path, table = self.rows / name, table.unify_dictionaries()  # of which a file has one a column
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
        return [name, _sum_of(path)]

    def _opened(self, listed: dict[str, Any], wanted: Wanted, store: InFiles) -> tuple[ReadTable, list[Part]]:
        folder = self.folder / _plain(listed["folder"])
        sample = _table(folder, listed["sample"])
        vocabularies = {name: _categories(name, _table(folder, file)) for name, file in listed["categories"]}
        classes, class_type = Categories(wanted.target, np.empty(0, dtype=object)), None
        if wanted.is_classifier:
            classes = _categories(wanted.target, _table(folder, listed["classes"]))
            class_type = sample.schema.field(wanted.target).type
        parts = [_part(folder, files, vocabularies, len(classes), store) for files in listed["parts"]]
        return ReadTable(wanted, sample, vocabularies, classes, class_type), parts


# -- files ------------------------------------------------------------------------------------


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
    values = {
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
    }
    return dict(json.loads(json.dumps(values, default=str)))  # as they are once they were written and read


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


def _files_of(part: Part) -> dict[str, Any]:
    """The files of a part's arrays and their checksums."""
    return {
        "n_rows": len(part),
        "codes": [[name, _file_of(values)] for name, values in part.codes.items()],
        "numbers": [[name, _file_of(values)] for name, values in part.numbers.items()],
        **{
            name: None if (values := getattr(part, name)) is None else _file_of(values)
            for name in ("y", "weight", "offset")
        },
    }


def _file_of(values: NDArray[Any]) -> list[Any]:
    mapped = values.base
    assert isinstance(mapped, np.memmap)
    assert mapped.filename is not None
    mapped.flush()
    return [Path(mapped.filename).name, _sum_of(Path(mapped.filename))]


def _sum_of(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _listed(path: Path) -> dict[str, Any]:
    checksum, _, text = path.read_text(encoding="utf-8").partition("\n")
    if checksum != str(zlib.crc32(text.encode())):
        raise DamagedRows(f"{LIST} is not as it was written")
    return dict(json.loads(text))


def _plain(name: str) -> str:
    """The name of a file in a folder, and nowhere else."""
    if Path(name).name != name:
        raise DamagedRows(f"{name!r} is no file of the folder")
    return name


def _checked(folder: Path, file: list[Any]) -> Path:
    name, checksum = file
    path = folder / _plain(name)
    if not path.is_file():
        raise DamagedRows(f"there is no file {name!r}")
    if _sum_of(path) != checksum:
        raise DamagedRows(f"the file {name!r} is not as it was written")
    return path


def _array(folder: Path, file: list[Any], dtype: np.dtype[Any], n_rows: int) -> NDArray[Any]:
    path = _checked(folder, file)
    if path.stat().st_size != n_rows * dtype.itemsize:
        raise DamagedRows(f"the file {path.name!r} has another size")
    return np.memmap(path, dtype, "c", shape=(n_rows,)).view(np.ndarray)  # what is written stays out of the file


def _part(
    folder: Path, listed: dict[str, Any], vocabularies: dict[str, Categories], n_classes: int, store: InFiles
) -> Part:
    n_rows = listed["n_rows"]
    codes = {name: _array(folder, file, _CODES, n_rows) for name, file in listed["codes"]}
    for name, column_codes in codes.items():
        _check_range(column_codes, len(vocabularies[name]), name)
    numbers = {name: _array(folder, file, _FLOATS, n_rows) for name, file in listed["numbers"]}
    y, weight, offset = (
        None if listed[name] is None else _array(folder, listed[name], _FLOATS, n_rows)
        for name in ("y", "weight", "offset")
    )
    if y is None:
        raise DamagedRows("there is no target")
    if n_classes:
        _check_range(y, n_classes, "the target")
    return Part(codes, numbers, y, weight, offset, store)


def _check_range(codes: NDArray[Any], size: int, name: str) -> None:
    """A `DamagedRows` for codes out of range, as kernels index by them without a check."""
    if not (codes.min() >= 0 and codes.max() < size):
        raise DamagedRows(f"{name} has codes of no category")


def _table_of(categories: Categories, sample: Any) -> Any:
    """An Arrow table of one column that gives the same categories again.

    Raises
    ------
    DamagedRows
        Where it would not.
    """
    import pyarrow as pa

    kind = sample.schema.field(categories.name).type
    values = categories.categories.tolist()
    table = pa.table({"category": pa.array(values, type=getattr(kind, "value_type", kind))})
    again = _categories(categories.name, table).categories.tolist()
    if any(
        type(value) is not type(restored) or value != restored for value, restored in zip(values, again, strict=True)
    ):
        raise DamagedRows(f"the type {kind} of {categories.name!r} cannot be kept")
    return table


def _table(folder: Path, file: list[Any]) -> Any:
    import pyarrow as pa

    with pa.OSFile(str(_checked(folder, file))) as source:
        table = pa.ipc.open_file(source).read_all()
    table.validate(full=True)
    return table


def _categories(name: str, table: Any) -> Categories:
    return Categories(name, plain_categories(table.column("category").to_pylist()))


# -- the folder ----------------------------------------------------------------------------------


@contextmanager
def folder_of_fit(cache_dir: Any) -> Iterator[tuple[Path, RowCache | None]]:
    """A folder for the files of a fit, removed at the end; and the rows that `cache_dir` keeps, if it is given."""
    if cache_dir is not None:
        folder = _made(cache_dir)
        with (folder / LOCK).open("ab") as file:  # free again when this process ends in whatever way
            if _lock(file):
                remove_files(folder)
                try:
                    cache = RowCache(folder, str(cache_dir))
                    yield cache.work, cache
                finally:
                    remove_files(folder)
                return
        warn_user(
            f"Another fit holds cache_dir={str(cache_dir)!r} (or it cannot be locked), so that this one codes its rows "
            "into temporary files and keeps none; wait for the other, or give each a folder of its own."
        )
    with tempfile.TemporaryDirectory(prefix="tabsym-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary), None


def _made(cache_dir: Any) -> Path:
    folder = Path(cache_dir) / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        raise ValueError(
            f"cache_dir={str(cache_dir)!r} is no folder that can be written to ({error.strerror}); name another."
        ) from None
    return folder


def remove_files(folder: Path, but: Collection[str] = ()) -> None:
    """Remove the files of fits that were killed, and of this one: all but the rows that are kept."""
    try:
        cached = _plain(_listed(folder / LIST)["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        cached = ""
    for path in folder.iterdir():
        if path.is_dir() and path.name.startswith((ROWS, WORK)) and path.name not in (cached, *but):
            shutil.rmtree(path, ignore_errors=True)


def _lock(file: IO[bytes]) -> bool:
    """Whether this process holds the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
