"""The file around a model: a zip of plain members, and what skops writes, made simpler, as these members.

Nothing in the zip is compressed, so that it cannot grow when it is read. Each member is a schema
(JSON), an array (``.npy``) or bytes (``.bin``) and is named by a number; nothing is ever written to disk, and names are
looked up, never followed.

Types of tabsym go by registered names, parts that occur twice are written once, sparse matrices are three arrays, and
numbers of nodes and members count up instead of being places in memory: the same model gives the same file.
"""

from __future__ import annotations

import io
import json
import re
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import load_npz

from tabsym.export.registry import name_of

FORMAT = 1
"""Of files; one with a higher number was written by a later tabsym."""
SCHEMA = "schema.json"
MAX_MEMBERS = 1_000_000
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
    if not path.is_file():  # a pipe would be waited for, a device read for ever
        raise BadFile("is no ordinary file")
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
    if len(names) > MAX_MEMBERS or len(set(names)) < len(names):
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
        with warnings.catch_warnings():  # of headers as Python 2 wrote them
            warnings.simplefilter("error")
            version = np.lib.format.read_magic(stream)
            if version == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
            elif version == (2, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
            else:
                raise BadFile(f"has an array of version {version}")
    except BadFile:
        raise
    except (ValueError, TypeError, EOFError, SyntaxError, RecursionError, MemoryError, Warning) as error:
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
    text = plain(str(error)) or type(error).__name__
    return text if len(text) < 160 else text[:157] + "..."


def plain(text: str) -> str:
    """Text of a file in one line, without characters that a terminal would obey."""
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in " ".join(text.split()))


Node = dict[str, Any]
_UNNUMBERED = ("JsonNode", "TypeNode", "FunctionNode")  # of which a second one is no longer than a reference


def members_of(model: Any) -> dict[str, bytes]:
    """The members of a file of a model, the schema first.

    Raises
    ------
    ValueError
        It holds a function without a name, or keys that are the same text.
    TypeError
        It holds a moment of pandas, which skops writes and does not read.
    Exception
        skops' own, of what it cannot write.
    """
    import skops.io

    stream = io.BytesIO()
    skops.io.dump(model, stream)
    with zipfile.ZipFile(stream) as archive:
        written = {name: archive.read(name) for name in archive.namelist()}
    root = read_json(written.pop(SCHEMA))
    writer = _ArchiveWriter(written)
    schema = writer.node({name: root[name] for name in root if name not in ("protocol", "_skops_version")})
    schema["tabsym_format"] = FORMAT
    return {SCHEMA: json.dumps(schema, separators=(",", ":")).encode(), **writer.members}


_UNREADABLE = ("Timestamp", "Timedelta", "Period", "Interval", "NaTType")


class _ArchiveWriter:
    def __init__(self, written: dict[str, bytes]) -> None:
        self._written = written
        self.members: dict[str, bytes] = {}
        self._numbers: dict[int, int] = {}
        self._copied: dict[str, str] = {}

    def node(self, node: Node) -> Node:
        """A node of skops as one of ours."""
        kind, old = node["__loader__"], node.get("__id__")
        if old in self._numbers:
            return {"__loader__": "CachedNode", "__id__": self._numbers[old]}
        new = {name: node[name] for name in ("__loader__", "__module__", "__class__")}
        if new["__module__"].partition(".")[0] == "pandas" and new["__class__"] in _UNREADABLE:
            raise TypeError(f"files hold no {new['__class__']} of pandas; use text instead, for dates '2024-01-31'")
        self._name(new)
        getattr(self, f"_write_{kind}", self._write_any)(node, new)
        if kind not in _UNNUMBERED and node.get("content") != [] and old is not None:  # of () there is one in Python
            self._numbers[old] = new["__id__"] = len(self._numbers) + 1
        return new

    def _name(self, new: Node) -> None:
        if new["__module__"] == "_loss":  # which no import finds: so Cython calls it before scikit-learn 1.9
            new["__module__"] = "sklearn._loss._loss"
        module, name = new["__module__"], new["__class__"]
        if not name.isidentifier():
            raise ValueError(f"it holds {module}.{name}, which has no name by which it could be found again")
        registered = name_of(module, name)
        if registered is not None:
            new["__module__"], new["__class__"] = "tabsym", registered
        elif module.partition(".")[0].startswith("tabsym") and new["__loader__"] in ("ObjectNode", "FunctionNode"):
            raise ValueError(f"{module}.{name} has no registered name, which is a fault of tabsym; please report it")

    def _write_any(self, node: Node, new: Node) -> None:
        for name, part in node.items():
            if name not in ("__loader__", "__module__", "__class__", "__id__", "is_json"):
                new[name] = self._part(part)

    def _part(self, part: Any) -> Any:
        if isinstance(part, dict):
            return self.node(part) if "__loader__" in part else {key: self._part(one) for key, one in part.items()}
        return [self._part(one) for one in part] if isinstance(part, list) else part

    def _write_ObjectNode(self, node: Node, new: Node) -> None:
        content = node.get("content", {"content": "null"})
        cls = getattr(sys.modules.get(node["__module__"]), node["__class__"], object)
        is_python = getattr(cls, "__dictoffset__", 0) != 0 and not node["__module__"].startswith("pandas")
        if content.get("content") == "null" and not is_python and new["__module__"] != "tabsym":
            raise ValueError(f"it holds a {node['__module__']}.{node['__class__']}, whose value skops leaves out")
        self._write_any(node, new)

    def _write_DictNode(self, node: Node, new: Node) -> None:
        new["content"] = {key: self.node(one) for key, one in node["content"].items()}
        types = [f"{one['__module__']}.{one['__class__']}" for one in node["key_types"]["content"]]
        if set(types) - {"builtins.str"}:
            new["key_types"] = types

    def _write_NdArrayNode(self, node: Node, new: Node) -> None:
        new["type"] = node["type"]
        if node["type"] == "json":
            if not isinstance(node["content"], list):
                raise ValueError("it holds an array of objects without an axis")
            new["content"] = [self.node(one) for one in node["content"]]
            new["shape"] = [json.loads(one["content"]) for one in node["shape"]["content"]]
        else:
            new["file"] = self._copy(node["file"], "npy")

    def _write_BytesNode(self, node: Node, new: Node) -> None:
        new["file"] = self._copy(node["file"], "bin")

    _write_BytearrayNode = _write_BytesNode

    def _write_SparseMatrixNode(self, node: Node, new: Node) -> None:
        matrix = load_npz(io.BytesIO(self._written[node["file"]]))
        if matrix.format not in ("csr", "csc"):
            raise ValueError(f"it holds a sparse matrix of format {matrix.format}; csr and csc can be written")
        for name in ("data", "indices", "indptr"):
            new[name] = self._add(array_bytes(getattr(matrix, name)), "npy")
        new["shape"] = [int(length) for length in matrix.shape]

    def _copy(self, old: str, ending: str) -> str:
        if old not in self._copied:
            self._copied[old] = self._add(self._written[old], ending)
        return self._copied[old]

    def _add(self, data: bytes, ending: str) -> str:
        name = f"{len(self.members)}.{ending}"
        self.members[name] = data
        return name
