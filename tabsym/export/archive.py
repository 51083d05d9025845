"""The file around a model: a zip of plain members, nothing in it compressed, so that it cannot grow when it is read.

Each member is a schema (JSON), an array (``.npy``) or bytes (``.bin``) and is named by a number; nothing is ever
written to disk, and names are looked up, never followed.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
"""Of files; one with a higher number was written by a later tabsym."""
SCHEMA = "schema.json"
MOST_MEMBERS = 1_000_000
_MEMBER = re.compile(r"[0-9]{1,9}\.(npy|bin)")
_ENCRYPTED = 1  # of a member's flags
_KINDS = "?bBiufcUSmMV"  # of array types; objects (O) are never read from bytes


class BadFile(ValueError):
    """What is wrong with a file, without its name."""


def read_members(path: Path) -> dict[str, bytes]:
    """The members of a file by name.

    Raises
    ------
    BadFile
        It is no zip of plain members, or damaged.
    OSError
        It cannot be read.
    """
    data = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _check(infos, len(data))
            return {info.filename: archive.read(info) for info in infos}
    except BadFile:
        raise
    except Exception as error:  # of any kind: zipfile believes what a damaged file says of itself
        raise BadFile(f"is damaged or no file of a model ({_words(error)})") from None


def _check(infos: list[zipfile.ZipInfo], size: int) -> None:
    names = [info.filename for info in infos]
    if SCHEMA not in names:
        raise BadFile("is a zip without a model in it")
    if len(names) > MOST_MEMBERS or len(set(names)) < len(names):
        raise BadFile("has members of the same name, or too many of them")
    strange = [name for name in names if name != SCHEMA and not _MEMBER.fullmatch(name)]
    if strange:
        raise BadFile(f"has a member {strange[0][:80]!r}, which models do not have")
    if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits & _ENCRYPTED for info in infos):
        raise BadFile("has compressed or encrypted members, which models do not have")
    if sum(info.file_size for info in infos) > size:
        raise BadFile("says that it holds more than it does")


def read_json(text: bytes | str, *, what: str = SCHEMA) -> Any:
    """JSON without a key that occurs twice.

    Raises
    ------
    BadFile
        It is none, or nested too deep to be a model.
    """
    try:
        return json.loads(text, object_pairs_hook=_once)
    except BadFile:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadFile(f"has a {what} that cannot be read ({_words(error)})") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadFile("has a key twice in one object")
    return found


def read_array(data: bytes) -> NDArray[Any]:
    """An array (any shape) in numpy's format; objects are refused, and sizes are checked before memory is asked for."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
        else:
            raise BadFile(f"has an array of version {version}")
    except BadFile:
        raise
    except (ValueError, TypeError, EOFError, SyntaxError, RecursionError, MemoryError) as error:
        raise BadFile(f"has an array that cannot be read ({_words(error)})") from None
    if dtype.hasobject or dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise BadFile(f"has an array of {dtype}, which holds more than numbers and text")
    count = 1
    for length in shape:
        if not 0 <= length < 2**48:
            raise BadFile("has an array of a length that cannot be")
        count *= length
    rest = data[stream.tell() :]
    if count * dtype.itemsize != len(rest):
        raise BadFile("has an array of another length than it says")
    try:
        array = np.frombuffer(rest, dtype=dtype).copy()
        return array.reshape(shape, order="F" if fortran else "C")
    except (ValueError, MemoryError) as error:
        raise BadFile(f"has an array that cannot be read ({_words(error)})") from None


def array_bytes(array: NDArray[Any]) -> bytes:
    """An array in numpy's format."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def write_members(path: Path, members: dict[str, bytes]) -> None:
    """A zip of them, the same bytes whenever it is written."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    path.write_bytes(buffer.getbuffer())


def _words(error: BaseException) -> str:
    """What an error says, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) < 160 else text[:157] + "..."
