"""A model as members of a file: what skops writes, made simpler, so that the file does not depend on where things are.

Types of tabsym go by registered names, parts that occur twice are written once, sparse matrices are three arrays, and
numbers of nodes and members count up instead of being places in memory: the same model gives the same file.
"""

from __future__ import annotations

import io
import json
import sys
import zipfile
from typing import Any

from scipy.sparse import load_npz

from tabsym.export.archive import FORMAT, SCHEMA, array_bytes, read_json
from tabsym.export.registry import name_of

Node = dict[str, Any]
_UNNUMBERED = ("JsonNode", "TypeNode", "FunctionNode")  # of which a second one is no longer than a reference


def members_of(model: Any) -> dict[str, bytes]:
    """The members of a file of a model, the schema first.

    Raises
    ------
    ValueError
        It holds a function without a name, or keys that are the same text.
    Exception
        skops' own, of what it cannot write.
    """
    import skops.io

    stream = io.BytesIO()
    skops.io.dump(model, stream)
    with zipfile.ZipFile(stream) as archive:
        written = {name: archive.read(name) for name in archive.namelist()}
    root = read_json(written.pop(SCHEMA))
    writer = _Writer(written)
    schema = writer.node({name: root[name] for name in root if name not in ("protocol", "_skops_version")})
    schema["tabsym_format"] = FORMAT
    return {SCHEMA: json.dumps(schema, separators=(",", ":")).encode(), **writer.members}


class _Writer:
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
        self._name(new)
        getattr(self, f"_write_{kind}", self._write_any)(node, new)
        if kind not in _UNNUMBERED and node.get("content") != [] and old is not None:  # of () there is one in Python
            self._numbers[old] = new["__id__"] = len(self._numbers) + 1
        return new

    def _name(self, new: Node) -> None:
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
