"""What a file is refused for before anything is built or imported: its zip, its JSON and arrays, and its nodes.

A file is a zip of plain members. Nothing in it is compressed, so that it cannot grow when it is read. Each member is a
schema (JSON), an array (``.npy``) or bytes (``.bin``) and is named by a number; nothing is ever written to disk, and
names are looked up, never followed.

The schema is plain JSON, checked against explicit lists. Its nodes are those that skops writes, as
`tabsym.export.files` simplifies them. Each kind has exactly its keys, names only what is listed for it, and refers only
to nodes before it.

Files name tabsym's own types by registered names, which stay when modules move, and nothing else of tabsym is built; of
other libraries, those that its models hold. A class that becomes part of a fitted estimator gets a line here;
`tests/export/test_types.py` says which are missing, and collects what models and winners hold of other libraries.
Leaving one of those out costs a user a ``trusted=``; taking one in that does harm when it is built costs much more.
"""

from __future__ import annotations

import io
import json
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """An array (any shape) in numpy's format; objects are refused, and sizes are checked before memory is requested."""
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
    if not all(0 <= length < 2**48 for length in shape):
        raise BadFile("has an array of a length that cannot be")
    rest = data[stream.tell() :]
    if math.prod(shape) * dtype.itemsize != len(rest):
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
    is_list = isinstance(types, list) and len(types) == len(node["content"])
    if not is_list or not all(isinstance(t, str) and t in KEY_TYPES for t in types):
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


# -- types that files may name ---------------------------------------------------------------------

CLASSES: dict[str, str] = {
    "Categories": "tabsym.categories.categories:Categories",
    "Cross": "tabsym.categories.categories:Cross",
    "Winner": "tabsym.compare.comparison:Winner",
    "HistClassifier": "tabsym.compare.estimators:HistClassifier",
    "CompareFeatures": "tabsym.compare.table.features:Features",
    "FilledEncoder": "tabsym.compare.estimators:FilledEncoder",
    "ComparePoints": "tabsym.compare.estimators:_Points",
    "Jittered": "tabsym.compare.estimators:Jittered",
    "NumberFormat": "tabsym.compare.table.number_format:NumberFormat",
    "CompareColumns": "tabsym.compare.table.prepare:RoleColumns",
    "PlainPolynomialWrapper": "tabsym.compare.target_encoded:PlainPolynomialWrapper",
    "PlainTargetEncoder": "tabsym.compare.target_encoded:PlainTargetEncoder",
    "Retyping": "tabsym.compare.table.retyping:Retyping",
    "CrossFit": "tabsym.encoders.crossfit:CrossFit",
    "StoredEncoder": "tabsym.encoders.crossfit:StoredEncoder",
    "DateParts": "tabsym.encoders.dates:DateParts",
    "MODLColumn": "tabsym.encoders.modl_column:MODLColumn",
    "MODLEncoder": "tabsym.encoders.modl:MODLEncoder",
    "NativeCategories": "tabsym.encoders.native:NativeCategories",
    "NativePipeline": "tabsym.encoders.native:NativePipeline",
    "OneHotColumn": "tabsym.encoders.onehot_column:OneHotColumn",
    "OneHotEncoder": "tabsym.encoders.onehot:OneHotEncoder",
    "OneHotOptions": "tabsym.encoders.onehot_column:OneHotOptions",
    "InfrequentRule": "tabsym.encoders.onehot_column:InfrequentRule",
    "TIWSEncoder": "tabsym.encoders.tiws:TIWSEncoder",
    "TIWSColumn": "tabsym.encoders.tiws_column:TIWSColumn",
    "WideColumn": "tabsym.encoders.wide:WideColumn",
    "WideEncoder": "tabsym.encoders.wide:WideEncoder",
    "OffsetColumn": "tabsym.models.data:OffsetColumn",
    "Similar": "tabsym.models.base:Similar",
    "WideClassifier": "tabsym.models.wide:WideClassifier",
    "WideRegressor": "tabsym.models.wide:WideRegressor",
    "WideSGDClassifier": "tabsym.models.wide_sgd:WideSGDClassifier",
    "WideSGDRegressor": "tabsym.models.wide_sgd:WideSGDRegressor",
    "Huber": "tabsym.losses:Huber",
    "Quantile": "tabsym.losses:Quantile",
    "Tweedie": "tabsym.losses:Tweedie",
    "AugmentedModel": "tabsym.jitter.augmented:AugmentedModel",
    "Calibration": "tabsym.jitter.predictor:Calibration",
    "JitterPredictor": "tabsym.jitter.predictor:JitterPredictor",
    "JitterTree": "tabsym.jitter.tree:Tree",
    "TreeColumns": "tabsym.jitter.tree:TreeColumns",
    "JitterTreeClassifier": "tabsym.jitter.tree_estimators:JitterTreeClassifier",
    "JitterTreeRegressor": "tabsym.jitter.tree_estimators:JitterTreeRegressor",
    "MODLGroups": "tabsym.modl.columns:Groups",
    "MODLIntervals": "tabsym.modl.columns:Intervals",
    "MODLTarget": "tabsym.modl.columns:PartTargets",
    "MODLPartition": "tabsym.modl.partition:Partition",
    "NaiveBayes": "tabsym.naive_bayes:NaiveBayes",
    "SelectiveNaiveBayesClassifier": "tabsym.naive_bayes:SelectiveNaiveBayesClassifier",
    "WideBoostClassifier": "tabsym.stacking.boost:WideBoostClassifier",
    "WideBoostRegressor": "tabsym.stacking.boost:WideBoostRegressor",
    "Layer": "tabsym.stacking.layer:Layer",
    "PairCounts": "tabsym.categories.contingency:PairCounts",
    "Measure": "tabsym.frame.storage:Measure",
    "StoredType": "tabsym.frame.dtypes:StoredType",
    "FittedColumn": "tabsym.tiws.column:FittedColumn",
    "TIWSMethod": "tabsym.tiws.column:Method",
    "TableCounts": "tabsym.tiws.counts:TableCounts",
    "DonorRule": "tabsym.tiws.unknown:DonorRule",
    "SimilarityKernel": "tabsym.tiws.similarity:SimilarityKernel",
    "Covariance": "tabsym.tiws.unknown:Covariance",
    "Components": "tabsym.tiws.unknown:Components",
    "Sums": "tabsym.tiws.unknown:Sums",
    "Observed": "tabsym.tiws.column:Observed",
    "TIWSBins": "tabsym.tiws.counts:NumberWords",
    "TIWSSymbols": "tabsym.tiws.counts:CategoryWords",
    "Certainty": "tabsym.solvers.newton.uncertainty:Uncertainty",
    "TermCovariance": "tabsym.solvers.newton.uncertainty:TermCovariance",
    "AutoInteractions": "tabsym.interactions.search:AutoInteractions",
    "WideChosen": "tabsym.interactions.search:Chosen",
    "WideWithin": "tabsym.design.plan:Within",
    "WideBlock": "tabsym.design.model_spec:Block",
    "WideFactor": "tabsym.design.model_spec:Factor",
    "ModelSpec": "tabsym.design.model_spec:ModelSpec",
    "WideNumeric": "tabsym.design.model_spec:Numeric",
    "WideTerm": "tabsym.design.model_spec:Term",
    "WideLoss": "tabsym.losses.loss:Loss",
    "WideModel": "tabsym.models.model:WideModel",
    "WideMoments": "tabsym.design.units:Moments",
    "Adagrad": "tabsym.solvers.sgd.options:Adagrad",
    "Adam": "tabsym.solvers.sgd.options:Adam",
    "RMSprop": "tabsym.solvers.sgd.options:RMSprop",
    "SGD": "tabsym.solvers.sgd.options:SGD",
    "StateColumns": "tabsym.solvers.sgd.options:StateColumns",
    "WideBins": "tabsym.design.sources:Bins",
    "Crossing": "tabsym.design.sources:Crossing",
    "WideFlag": "tabsym.design.sources:Flag",
    "CountEffect": "tabsym.design.sources:CountEffect",
    "WideSymbols": "tabsym.design.sources:CategoricalSource",
    "ColumnRef": "tabsym.design.formula:ColumnRef",
    "FormulaBinary": "tabsym.design.formula:Binary",
    "FormulaCall": "tabsym.design.formula:Call",
    "FormulaNumber": "tabsym.design.formula:NumberLiteral",
    "WideUnits": "tabsym.design.units:Units",
    "NativeCatBoostClassifier": "tabsym_catboost:NativeCatBoostClassifier",
    "NativeCatBoostRegressor": "tabsym_catboost:NativeCatBoostRegressor",
    "XGBLabelClassifier": "tabsym_xgboost:XGBLabelClassifier",
}
"""Registered name -> where the class is now, as ``module:attribute``."""

ROOTS = frozenset(
    """
    AugmentedModel CrossFit DateParts FilledEncoder HistClassifier JitterPredictor JitterTreeClassifier
    JitterTreeRegressor Jittered MODLEncoder NativeCatBoostClassifier NativeCatBoostRegressor NativeCategories
    NativePipeline OneHotEncoder PlainPolynomialWrapper PlainTargetEncoder SelectiveNaiveBayesClassifier TIWSEncoder
    WideBoostClassifier WideBoostRegressor WideClassifier WideEncoder WideRegressor WideSGDClassifier WideSGDRegressor
    Winner XGBLabelClassifier
    """.split()
)
"""Those that are models by themselves; the others are parts of one."""

FUNCTIONS: dict[str, str] = {"without_column": "tabsym.compare.contenders:_without"}
"""The same of functions that pipelines hold."""


@cache
def _names() -> dict[tuple[str, ...], str]:
    return {tuple(address.split(":")): name for name, address in (CLASSES | FUNCTIONS).items()}


def name_of(module: str, attribute: str) -> str | None:
    """The registered name of a class or function, None where it has none."""
    return _names().get((module, attribute))


def _of(module: str, names: str) -> set[str]:
    return {f"{module}.{name}" for name in names.split()}


_OBJECTS = (
    _of("sklearn.compose._column_transformer", "ColumnTransformer")
    | _of("sklearn.dummy", "DummyClassifier DummyRegressor")
    | _of(
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting",
        "HistGradientBoostingClassifier HistGradientBoostingRegressor",
    )
    | _of("sklearn.ensemble._hist_gradient_boosting.binning", "_BinMapper")
    | _of("sklearn.ensemble._hist_gradient_boosting.predictor", "TreePredictor")
    | _of("sklearn._loss.link", "IdentityLink Interval LogLink LogitLink MultinomialLogit")
    | _of("sklearn._loss.loss", "AbsoluteError HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss HalfPoissonLoss")
    | _of("sklearn._loss.loss", "HalfSquaredError PinballLoss")
    | _of("sklearn.impute._base", "SimpleImputer")
    | _of("sklearn.linear_model._glm.glm", "PoissonRegressor")
    | _of("sklearn.linear_model._logistic", "LogisticRegression")
    | _of("sklearn.linear_model._ridge", "Ridge")
    | _of("sklearn.pipeline", "Pipeline")
    | _of("sklearn.preprocessing._data", "MaxAbsScaler StandardScaler")
    | _of("sklearn.preprocessing._encoders", "OneHotEncoder OrdinalEncoder")
    | _of("sklearn.preprocessing._function_transformer", "FunctionTransformer")
    | _of("sklearn.preprocessing._label", "LabelEncoder")
    | _of("sklearn.preprocessing._target_encoder", "TargetEncoder")
    | _of("lightgbm.basic", "Booster")
    | _of("lightgbm.sklearn", "LGBMClassifier LGBMRegressor")
    | _of("xgboost.core", "Booster")
    | _of("xgboost.sklearn", "XGBClassifier XGBRegressor")
    | _of("catboost.core", "CatBoostClassifier CatBoostRegressor")
)
PARTS = frozenset(
    name for name in _OBJECTS if name.startswith("sklearn._loss") or name.endswith((".Booster", ".TreePredictor"))
)
"""Those that are no models by themselves."""
_LOSSES = _of(
    "sklearn._loss._loss",
    "CyAbsoluteError CyHalfBinomialLoss CyHalfGammaLoss CyHalfMultinomialLoss CyHalfPoissonLoss CyHalfSquaredError "
    "CyPinballLoss",
)
_NUMBERS = _of(
    "numpy", "bool float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 str_ datetime64 timedelta64"
)
_VALUES_OF_OBJECTS = _of("datetime", "date datetime time timedelta") | {"decimal.Decimal"}  # of columns of objects

LISTS: dict[str, frozenset[str]] = {
    "JsonNode": frozenset({"builtins.str"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "SetNode": frozenset({"builtins.set"}),
    "DictNode": frozenset({"builtins.dict", "collections.OrderedDict"}),
    "DefaultDictNode": frozenset({"collections.defaultdict"}),
    "BytesNode": frozenset({"builtins.bytes"}),
    "BytearrayNode": frozenset({"builtins.bytearray"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "NdArrayNode": frozenset({"numpy.ndarray"} | _NUMBERS),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "SparseMatrixNode": frozenset(_of("scipy.sparse._csr", "csr_array")),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "FunctionNode": frozenset({"sklearn.utils.validation.check_array"}),
    "TypeNode": frozenset(
        _of("builtins", "int float str bool object NoneType") | {"collections.OrderedDict", "numpy.asarray"} | _NUMBERS
    ),
    "PartialNode": frozenset({"functools.partial"}),
    "ConstructorFromReduceNode": frozenset(_VALUES_OF_OBJECTS),
    "LossNode": frozenset(_LOSSES),
    "ObjectNode": frozenset(_OBJECTS),
}
"""Kind of node -> full names."""
