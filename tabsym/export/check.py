"""What a file would build, looked at before anything is built or imported: plain JSON against explicit lists.

The nodes are those that skops writes, as `tabsym.export.archive` simplifies them. Each kind has exactly its keys, names
only what is listed for it, and refers only to what stands before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from tabsym.export.archive import BadFile, read_json
from tabsym.export.registry import CLASSES, FUNCTIONS, LISTS

Node = dict[str, Any]

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
        own = {"ObjectNode": CLASSES, "FunctionNode": FUNCTIONS}.get(kind, {})
        if not (module == "tabsym" and name in own):
            self.strange.add(full)

    def _check_content(self, kind: str, node: Node) -> None:
        """What the parts must be, beside nodes."""
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
            self._check_scalar(node)
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

    @staticmethod
    def _check_scalar(node: Node) -> None:
        if not isinstance(node["content"], str) or node.get("is_json", True) is not True:
            raise BadFile("has a value that is no JSON")
        if isinstance(read_json(node["content"], what="value"), (dict, list)):
            raise BadFile("has a value that is not a single one")


@dataclass(frozen=True)
class NodeRule:
    """Of a kind of node: keys beside the head and the number, those that must be there, and the nodes within."""

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
