"""Save a fitted estimator to a file that holds no code, and load it.

What skops writes is made simpler. Types of tabsym go by registered names, parts that occur twice are written once,
sparse matrices are three arrays, and numbers of nodes and members count up instead of being places in memory: the same
model gives the same file.
"""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
import zipfile
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import load_npz

from tabsym.export.build import Builder
from tabsym.export.check import (
    CLASSES,
    FUNCTIONS,
    LISTS,
    PARTS,
    ROOTS,
    SCHEMA,
    BadFile,
    Checked,
    Node,
    name_of,
    plain,
    read_json,
    read_members,
)

FORMAT = 1
"""Of files; one with a higher number was written by a later tabsym."""
MAX_PATH = 200  # characters, so that a part that holds itself ends the search
_UNNUMBERED = ("JsonNode", "TypeNode", "FunctionNode")  # of which a second one is no longer than a reference
_UNREADABLE = ("Timestamp", "Timedelta", "Period", "Interval", "NaTType")


def save(estimator: Any, path: str | os.PathLike[str]) -> Path:
    """Write an estimator, fitted or not, to a file that holds no code; `load` reads it.

    Parameters
    ----------
    estimator : estimator
        Of tabsym, or a pipeline that holds one.
    path : path
        Best with the ending ``.skops``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError
        A part of the estimator cannot be written without code.
    OSError
        The file cannot be written.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> from pathlib import Path
    >>> from tabsym import WideRegressor, load, save
    >>> X, y = pd.DataFrame({"town": ["Ulm", "Bonn", "Ulm", "Bonn"]}), [1.0, 3.0, 1.0, 3.0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(WideRegressor().fit(X, y), Path(folder) / "model.skops")
    ...     model = load(path)
    >>> model.predict(X).round(1).tolist()
    [1.0, 3.0, 1.0, 3.0]
    """
    if isinstance(estimator, type) or not (hasattr(estimator, "get_params") or hasattr(estimator, "predict")):
        raise ValueError(f"{estimator!r} is no estimator; save takes one, such as WideClassifier() after fit.")
    if hasattr(estimator, "best_estimator_"):
        raise ValueError(
            f"{_kind(estimator)} holds the results of a search, which files without code do not; save its "
            "best_estimator_."
        )
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it, such as {path / 'model.skops'}.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.absolute().parent} to save {path.name} in; create it first.")
    try:
        members = members_of(estimator)
    except OSError:  # of the file, not of what is written
        raise
    except RecursionError:
        raise ValueError(f"{_kind(estimator)} cannot be written to a file without code: it holds itself.") from None
    except Exception as error:
        words = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"{_kind(estimator)} cannot be written to a file without code{_culprit(estimator)} "
            f"({type(error).__name__}: {words}); leave that part out, or fit it anew where it is used."
        ) from None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:  # the same bytes whenever it is written
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    path.write_bytes(buffer.getbuffer())
    return path


def _culprit(model: Any) -> str:
    """The innermost part of a model that cannot be written, in words; nothing where it is the model itself."""
    steps, part, is_inside, holder = "", model, True, None
    while is_inside and len(steps) < MAX_PATH:
        is_inside = False
        for step, inner in _parts_of(part):
            try:
                members_of(inner)
            except Exception:
                steps, part, is_inside = steps + step, inner, True
                holder = inner if type(inner).__module__.startswith("category_encoders.") else holder
                break
    if not steps:
        return ""
    named = f", as its {steps.lstrip('.')} is a {type(part).__module__.partition('.')[0]}.{type(part).__qualname__}"
    if holder is not None:
        name = type(holder).__name__
        named += (
            f", and files hold none of category_encoders' {name} by itself: use it as CrossFit({name}(...)), which "
            "they do where it learns from a target"
        )
    return named


def _parts_of(part: Any) -> list[tuple[str, Any]]:
    """The parts of a value, with the step that leads to each."""
    if isinstance(part, dict):
        return [(f"[{key!r}]", inner) for key, inner in part.items()]
    if isinstance(part, (list, tuple)):
        return [(f"[{position}]", inner) for position, inner in enumerate(part)]
    if hasattr(part, "get_params") or type(part).__module__.partition(".")[0] == "tabsym":
        return [(f".{name}", inner) for name, inner in getattr(part, "__dict__", {}).items()]
    return []


# -- what is written -----------------------------------------------------------------------------------


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
            return self.node(part) if "__loader__" in part else {key: self._part(value) for key, value in part.items()}
        return [self._part(value) for value in part] if isinstance(part, list) else part

    def _write_ObjectNode(self, node: Node, new: Node) -> None:
        content = node.get("content", {"content": "null"})
        cls = getattr(sys.modules.get(node["__module__"]), node["__class__"], object)
        is_python = getattr(cls, "__dictoffset__", 0) != 0 and not node["__module__"].startswith("pandas")
        if content.get("content") == "null" and not is_python and new["__module__"] != "tabsym":
            raise ValueError(f"it holds a {node['__module__']}.{node['__class__']}, whose value skops leaves out")
        self._write_any(node, new)

    def _write_DictNode(self, node: Node, new: Node) -> None:
        new["content"] = {key: self.node(value) for key, value in node["content"].items()}
        types = [f"{value['__module__']}.{value['__class__']}" for value in node["key_types"]["content"]]
        if set(types) - {"builtins.str"}:
            new["key_types"] = types

    def _write_NdArrayNode(self, node: Node, new: Node) -> None:
        new["type"] = node["type"]
        if node["type"] == "json":
            if not isinstance(node["content"], list):
                raise ValueError("it holds an array of objects without an axis")
            new["content"] = [self.node(value) for value in node["content"]]
            new["shape"] = [json.loads(length["content"]) for length in node["shape"]["content"]]
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
            stream = io.BytesIO()
            np.save(stream, getattr(matrix, name), allow_pickle=False)
            new[name] = self._add(stream.getvalue(), "npy")
        new["shape"] = [int(length) for length in matrix.shape]

    def _copy(self, old: str, ending: str) -> str:
        if old not in self._copied:
            self._copied[old] = self._add(self._written[old], ending)
        return self._copied[old]

    def _add(self, data: bytes, ending: str) -> str:
        name = f"{len(self.members)}.{ending}"
        self.members[name] = data
        return name


# -- what is read --------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], *, trusted: Iterable[str | type] = (), allow_boosters: bool = True) -> Any:
    """Read an estimator that `save` wrote, or a winner of a comparison.

    The file is checked before anything of it is built or imported: only types on an explicit list (`trusted_types`)
    are made, and only from plain values. The bytes of a booster (LightGBM, XGBoost, CatBoost) are read by its own
    library, which was not made for files of strangers.

    Parameters
    ----------
    path : path
    trusted : iterable of str or type
        Full names of further classes and functions that may be made, of your own: these are imported.
    allow_boosters : bool, default True
        Whether a booster's bytes may be given to its library. False for files whose writer you do not know.

    Returns
    -------
    estimator

    Raises
    ------
    ValueError
        It is no such file, is damaged, or holds other types.
    OSError
        It cannot be read.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> from pathlib import Path
    >>> from tabsym import OneHotEncoder, load, save
    >>> X = pd.DataFrame({"town": ["Ulm", "Bonn"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     encoder = load(save(OneHotEncoder().fit(X), Path(folder) / "encoder.skops"))
    >>> encoder.get_feature_names_out().tolist()
    ['town_1', 'town_2']
    """
    return load_model(path, trusted=trusted, allow_boosters=allow_boosters)


def load_model(
    path: str | os.PathLike[str], *, trusted: Iterable[str | type], allow_boosters: bool, root: str | None = None
) -> Any:
    """As `load`; `root`: the registered name that the model must have."""
    path = Path(path)
    names = _names_of(trusted)
    try:
        return _read(path, names, allow_boosters, root)
    except BadFile as error:
        reason = plain(str(error))
    raise ValueError(f"{plain(path.name)} {reason}{_remedy(reason)}")


def trusted_types() -> list[str]:
    """Full names of all types that `load` makes, for ``skops.io.load`` and MLflow's ``skops_trusted_types``.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from tabsym import trusted_types
    >>> "tabsym.models.wide.WideClassifier" in trusted_types()
    True
    """
    registered = [address.replace(":", ".") for address in (*CLASSES.values(), *FUNCTIONS.values())]
    return sorted({*registered, *(name for names in LISTS.values() for name in names)})


def _read(path: Path, trusted: frozenset[str], allow_boosters: bool, root: str | None) -> Any:
    if path.is_dir():
        raise BadFile("is a folder")
    if not path.exists():
        similar = get_close_matches(path.name, [file.name for file in path.absolute().parent.glob("*")], n=1)
        hint = f"did you mean {similar[0]!r}?" if similar else "give the path that save returned."
        raise FileNotFoundError(f"There is no file {path.absolute()}; {hint}")
    members = read_members(path)
    schema = read_json(members.pop(SCHEMA))
    if not isinstance(schema, dict):
        raise BadFile("has no model in it")
    version = schema.pop("tabsym_format", None)
    if version is None:
        raise BadFile(_foreign(schema))
    if type(version) is not int or version != FORMAT:
        raise BadFile(f"has the format {str(version)[:20]}, and this tabsym reads {FORMAT}")
    _check_root(schema, trusted)
    if root is not None and (schema["__module__"], schema["__class__"]) != ("tabsym", root):
        raise BadFile(f"holds a {schema['__class__']}, which is no winner of a comparison; read it by tabsym.load")
    checked = Checked(members, trusted)
    try:
        checked.check(schema)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadFile(f"is not put together as models are ({type(error).__name__})") from None
    if checked.strange:
        raise BadFile(_strange(checked.strange))
    return _build(schema, members, allow_boosters)


def _check_root(schema: dict[str, Any], trusted: frozenset[str]) -> None:
    module, name = schema.get("__module__"), schema.get("__class__")
    full = f"{module}.{name}"
    if schema.get("__loader__") != "ObjectNode":
        raise BadFile(f"holds {full[:200]} where a model is expected")
    is_registered = module == "tabsym" and name in CLASSES
    part = (
        name not in ROOTS if is_registered else full in LISTS["ObjectNode"] and (str(name)[0] == "_" or full in PARTS)
    )
    if part:
        raise BadFile(f"holds a {name}, which is a part of a model and no model")
    if not is_registered and full not in LISTS["ObjectNode"] and full not in trusted:
        raise BadFile(_strange({full[:200]}))


def _build(schema: dict[str, Any], members: dict[str, bytes], allow_boosters: bool) -> Any:
    """What was checked; an error of a library over values that are not its own is one of the file.

    Warnings of libraries, as of a model of another version of scikit-learn, are given when the model is one.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = Builder(members, allow_boosters=allow_boosters).build(schema)
    except BadFile:
        raise
    except ImportError as error:
        words = " ".join(str(error).split())[:200]
        what = "pyarrow" if "pyarrow" in words else '"tabsym[compare]"'
        raise BadFile(f"needs a library that is not installed ({words}): pip install {what}") from None
    except Exception as error:
        words = " ".join(str(error).split())[:200]
        raise BadFile(f"holds values that its types do not take ({type(error).__name__}: {words})") from None
    if not (hasattr(model, "get_params") or hasattr(model, "predict")):
        raise BadFile(f"holds a {type(model).__name__}, which is a part of a model and no model")
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return model


def _foreign(schema: dict[str, Any]) -> str:
    """The reason to refuse a file that tabsym did not write: its unknown types, or where it is from."""
    listed = set(trusted_types()) | {"builtins.str", "builtins.dict", "builtins.list"}
    unknown: set[str] = set()
    stack: list[Any] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            name = f"{node.get('__module__')}.{node.get('__class__')}"
            if "__class__" in node and name not in listed:
                unknown.add(name[:200])
            stack += [part for part in node.values() if isinstance(part, (dict, list))]
        elif isinstance(node, list):
            stack += [part for part in node if isinstance(part, (dict, list))]
    return _strange(unknown) if unknown else "was not written by tabsym.save"


def _strange(names: set[str]) -> str:
    shown = [plain(name) for name in sorted(names)[:5]]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return (
        f"holds {', '.join(shown)}{more}, which tabsym does not know; if you trust where it comes from: "
        f"load(path, trusted={shown})"
    )


def _remedy(reason: str) -> str:
    if "load(path" in reason or "allow_boosters" in reason or "pip install" in reason or "tabsym.load" in reason:
        return "."
    return "; save the model anew by tabsym.save, or get the file anew."


def _names_of(trusted: Iterable[str | type]) -> frozenset[str]:
    if isinstance(trusted, (str, type)) or trusted is True:
        raise TypeError(f"trusted={trusted!r} is no list; pass full names, such as trusted=['my_package.MyClass'].")
    return frozenset(item if isinstance(item, str) else f"{item.__module__}.{item.__qualname__}" for item in trusted)


def _kind(estimator: Any) -> str:
    return str(getattr(estimator, "label", type(estimator).__name__))
