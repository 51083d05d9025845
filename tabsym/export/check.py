"""What a file is refused for before anything is built or imported: its zip, its JSON and arrays, and its nodes.

A file is a zip of plain members. Nothing in it is compressed, so that it cannot grow when it is read. Each member is a
schema (JSON), an array (``.npy``) or bytes (``.bin``) and is named by a number; nothing is ever written to disk, and
names are looked up, never followed.

The schema is plain JSON, checked against explicit lists. Its nodes are those that skops writes, as
`tabsym.export.files` simplifies them. Each kind has exactly its keys, names only what is listed for it, and refers only
to nodes before it.
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.export.registry import CLASSES, FUNCTIONS, LISTS

Node = dict[str, Any]

SCHEMA = "schema.json"
MAX_MEMBERS = 1_000_000
_MEMBER = re.compile(r"[0-9]{1,9}\.(npy|bin)")
_ENCRYPTED = 1  # of a member's flags
_KINDS = "?bBiufcUSmMV"  # of array types; objects (O) are never read from bytes
MAX_DEPTH = 120
"""Nodes within nodes; models that tabsym makes have about 30."""
MAX_WRITTEN_OUT = 20_000_000
"""Nodes where every reference is replaced by what it refers to: hashing and comparing a value takes that many steps."""
_MAX_LENGTH = 200  # of a name
_HEAD = {"__class__", "__module__", "__loader__"}
KEY_TYPES = {
    "builtins.str", "builtins.int", "builtins.float", "builtins.bool", "builtins.NoneType", "numpy.str_",
    "numpy.int8", "numpy.int16", "numpy.int32", "numpy.int64", "numpy.float32", "numpy.float64", "numpy.bool",
}  # fmt: skip
"""Of the keys of dictionaries."""


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
    except Exception as error:  # of any kind: zipfile trusts the headers of a damaged file
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
    values = dict(pairs)
    if len(values) < len(pairs):
        raise BadFile("has a key twice in one object")
    return values


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


def _words(error: BaseException) -> str:
    """The message of an error, in one line."""
    text = plain(str(error)) or type(error).__name__
    return text if len(text) < 160 else text[:157] + "..."


def plain(text: str) -> str:
    """Text of a file in one line, without characters that a terminal would obey."""
    return "".join(
        character if character.isprintable() else f"\\x{ord(character):02x}" for character in " ".join(text.split())
    )


# -- nodes ---------------------------------------------------------------------------------------------


@dataclass
class Checked:
    """What was seen: types that are not listed, members, and by number of a node how many it is when written out."""

    members: Collection[str]
    trusted: frozenset[str]
    strange: set[str] = field(default_factory=set)
    done: dict[int, int] = field(default_factory=dict)

    def check(self, node: Any, depth: int = 0) -> int:
        """Look at a node and all within it; how many nodes it is when written out.

        Raises
        ------
        BadFile
            It is not one that a model has.
        """
        if depth > MAX_DEPTH:
            raise BadFile("is nested deeper than models are")
        if not isinstance(node, dict):
            raise BadFile("has something that is no node where one is expected")
        kind = node.get("__loader__")
        if not isinstance(kind, str) or kind not in KINDS:
            raise BadFile(f"has a node of the kind {str(kind)[:_MAX_LENGTH]!r}, which models do not have")
        number = node.get("__id__")
        if kind == "CachedNode":
            if set(node) != {"__loader__", "__id__"} or type(number) is not int or number not in self.done:
                raise BadFile("refers to a part of itself that does not stand before")
            return self.done[number]
        rule = KINDS[kind]
        if not set(node) >= _HEAD or set(node) - _HEAD - {"__id__"} - rule.keys or rule.needed - set(node):
            raise BadFile(f"has a {kind} without its parts, or with others")
        if "__id__" in node and (type(number) is not int or number in self.done):
            raise BadFile("numbers two of its parts the same")
        self._check_type(kind, node)
        size = 1 + sum(self.check(child, depth + 1) for child in rule.children(node))
        if size > MAX_WRITTEN_OUT:
            raise BadFile("refers to its own parts more often than models do")
        self._check_content(kind, node)
        if number is not None:
            self.done[number] = size
        return size

    def _check_type(self, kind: str, node: Node) -> None:
        module, name = node["__module__"], node["__class__"]
        if not (isinstance(module, str) and isinstance(name, str) and len(module) + len(name) < _MAX_LENGTH):
            raise BadFile("has a type whose name is no short text")
        full = f"{module}.{name}"
        if full in LISTS[kind] or (kind in _TRUSTING and full in self.trusted and _is_name(full)):
            return
        registered = {"ObjectNode": CLASSES, "FunctionNode": FUNCTIONS}.get(kind, {})
        if not (module == "tabsym" and name in registered):
            self.strange.add(full)

    def _check_content(self, kind: str, node: Node) -> None:
        """Check the parts that are no nodes themselves."""
        if kind in ("BytesNode", "BytearrayNode"):
            self._check_file(node["file"], ".bin")
        elif kind == "NdArrayNode" and node["type"] == "numpy":
            self._check_file(node.get("file"), ".npy")
        elif kind == "SparseMatrixNode":
            for name in ("data", "indices", "indptr"):
                self._check_file(node[name], ".npy")
            if not _is_shape(node["shape"], 2):
                raise BadFile("has a sparse matrix without a shape")
        elif kind == "JsonNode":
            if not isinstance(node["content"], str) or node.get("is_json", True) is not True:
                raise BadFile("has a value that is no JSON")
            if isinstance(read_json(node["content"], what="value"), (dict, list)):
                raise BadFile("has a value that is not a single one")
        elif kind == "SliceNode":
            parts = node["content"]
            if set(parts) != {"start", "stop", "step"} or not all(v is None or type(v) is int for v in parts.values()):
                raise BadFile("has a slice of something else than numbers")
        elif kind == "DictNode":
            _check_keys(node)
        elif kind == "PartialNode":
            _check_partial(node["content"])

    def _check_file(self, name: Any, ending: str) -> None:
        if not isinstance(name, str) or not name.endswith(ending) or name not in self.members:
            raise BadFile(f"lacks its member {str(name)[:_MAX_LENGTH]!r}")


@dataclass(frozen=True)
class NodeRule:
    """A kind of node: its keys without those of the head and the number, the required ones, and the nodes within."""

    keys: frozenset[str]
    needed: frozenset[str]
    children: Callable[[Node], Iterator[Any]]


def _in_list(node: Node) -> Iterator[Any]:
    if not isinstance(node["content"], list):
        raise BadFile(f"has a {node['__loader__']} whose content is no list")
    yield from node["content"]


def _in_dict(node: Node) -> Iterator[Any]:
    if not isinstance(node["content"], dict):
        raise BadFile(f"has a {node['__loader__']} whose content is no object")
    yield from node["content"].values()


def _named(*names: str) -> Callable[[Node], Iterator[Any]]:
    def children(node: Node) -> Iterator[Any]:
        content = node["content"]
        if not isinstance(content, dict) or set(content) != set(names):
            raise BadFile(f"has a {node['__loader__']} without its parts, or with others")
        yield from (content[name] for name in names)

    return children


def _in_object(node: Node) -> Iterator[Any]:
    if "content" in node:
        yield node["content"]


def _in_array(node: Node) -> Iterator[Any]:
    if node["type"] == "json":
        if set(node) & {"content", "shape"} != {"content", "shape"} or not _is_shape(node["shape"], None):
            raise BadFile("has an array of objects without its shape")
        yield from _in_list(node)
    elif node["type"] != "numpy":
        raise BadFile(f"has an array of the kind {str(node['type'])[:_MAX_LENGTH]!r}")


def _in_loss(node: Node) -> Iterator[Any]:
    if not isinstance(node["__reduce__"], dict) or set(node["__reduce__"]) != {"args"}:
        raise BadFile("has a LossNode without its parts, or with others")
    yield node["__reduce__"]["args"]
    yield node["content"]


def _none(node: Node) -> Iterator[Any]:
    if not isinstance(node.get("content", {}), (dict, str)):
        raise BadFile(f"has a {node['__loader__']} whose content is of a wrong kind")
    yield from ()


def _rule(needed: str, children: Callable[[Node], Iterator[Any]], optional: str = "") -> NodeRule:
    return NodeRule(frozenset(f"{needed} {optional}".split()), frozenset(needed.split()), children)


KINDS = {
    "CachedNode": _rule("", _none),
    "JsonNode": _rule("content", _none, "is_json"),
    "ListNode": _rule("content", _in_list),
    "TupleNode": _rule("content", _in_list),
    "SetNode": _rule("content", _in_list),
    "DictNode": _rule("content", _in_dict, "key_types"),
    "DefaultDictNode": _rule("content", _named("main", "default_factory")),
    "NdArrayNode": _rule("type", _in_array, "file content shape"),
    "DTypeNode": _rule("content", _in_object),
    "BytesNode": _rule("file", _none),
    "BytearrayNode": _rule("file", _none),
    "SliceNode": _rule("content", _none),
    "SparseMatrixNode": _rule("data indices indptr shape", _none),
    "FunctionNode": _rule("", _none),
    "TypeNode": _rule("", _none),
    "PartialNode": _rule("content", _named("func", "args", "kwds", "namespace")),
    "ConstructorFromReduceNode": _rule("content", _in_object),
    "ObjectNode": _rule("", _in_object, "content"),
    "LossNode": _rule("__reduce__ content", _in_loss),
    "RandomStateNode": _rule("content", _in_object),
    "RandomGeneratorNode": _rule("content", _named("bit_generator", "seed_seq")),
}
"""The kinds that models have; skops' others (methods, operators, scikit-learn's trees) are not read."""
_TRUSTING = ("ObjectNode", "FunctionNode", "TypeNode")


def _check_keys(node: Node) -> None:
    types = node.get("key_types")
    if types is None:
        return
    if (
        not isinstance(types, list)
        or len(types) != len(node["content"])
        or not all(isinstance(t, str) and t in KEY_TYPES for t in types)
    ):
        raise BadFile("has a dictionary with keys of another kind than text, numbers and None")


_KEYWORDS = ("JsonNode", "TypeNode", "DTypeNode", "ListNode", "CachedNode")


def _check_partial(content: Node) -> None:
    """A listed function with plain keywords, so that nothing is called with what a file brings along."""
    func, args, kwds, namespace = (content[name] for name in ("func", "args", "kwds", "namespace"))
    plain = (
        func["__loader__"] == "FunctionNode"
        and args["__loader__"] == "TupleNode"
        and args.get("content") == []
        and kwds["__loader__"] == "DictNode"
        and all(value["__loader__"] in _KEYWORDS for value in kwds["content"].values())
        and (namespace["__loader__"] == "JsonNode" or namespace.get("content") == {})
    )
    if not plain:
        raise BadFile("has a partial call of more than a listed function with plain keywords")


def _is_shape(shape: Any, n: int | None) -> bool:
    is_list = isinstance(shape, list) and (len(shape) > 0 if n is None else len(shape) == n)
    return is_list and all(type(length) is int and 0 <= length < 2**48 for length in shape)


def _is_name(full: str) -> bool:
    """Whether it is ``module.attribute`` in plain words."""
    return "." in full and all(part.isidentifier() for part in full.split("."))
