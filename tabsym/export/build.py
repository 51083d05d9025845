"""Builds what `tabsym.export.check` has passed: classes get their state, nothing else of them is called.

Only here modules are imported, and only those of listed names.

And what the state of a class must be where its own `__setstate__` or `__del__` believes it: boosters.
A booster's bytes go to its library's loader alone. A forged handle would be freed as memory, so nothing else is taken
in its place.

And what the arrays of a loaded model must be where compiled code indexes them without a check. A file can hold any
numbers. An index beyond an array would be read as memory, and a tree that leads back to itself would be followed for
ever. What Python or numpy follow raises an error by itself and is not checked here.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array

from tabsym.export.check import CLASSES, FUNCTIONS, BadFile, Node, read_array, read_json
from tabsym.frame.storage import object_array

_LIGHTGBM = {
    "_handle", "_network", "_train_data_name", "_profile", "best_iteration", "best_score", "name_valid_sets",
    "params", "pandas_categorical", "_Booster__need_reload_eval_info", "_Booster__inner_predict_buffer",
    "_Booster__is_predicted_cur_iter", "_Booster__name_inner_eval", "_Booster__higher_better_inner_eval",
    "_Booster__num_inner_eval", "_Booster__num_class", "_Booster__num_dataset", "_Booster__init_predictor",
    "_Booster__attr", "_Booster__set_objective_to_none", "train_set_version",
}  # fmt: skip
_XGBOOST = {"handle", "feature_names", "feature_types", "best_iteration", "best_score"}
_CATBOOST = {"catboost.core._CatBoostBase", "catboost.core.CatBoostClassifier", "catboost.core.CatBoostRegressor"}
_CATBOOST |= {"tabsym.NativeCatBoostClassifier", "tabsym.NativeCatBoostRegressor"}
_WORDS = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
_INSTALL = {
    "lightgbm": "tabsym[lightgbm]",
    "xgboost": "tabsym[xgboost]",
    "catboost": "tabsym[catboost]",
    "category_encoders": "tabsym[compare]",
}
FORMER_NAMES = {
    "alphabet": "vocabulary",
    "alphabets_": "vocabularies_",
    "certainty": "uncertainty",
    "own": "diagonal",
    "road": "unknown_as",
    "symbolic": "categorical",
    "symbols": "categories",
}
"""Attributes of fitted objects by their names in files of the first 0.1.0, and today's."""
_SEEDS = {"entropy", "spawn_key", "pool_size", "n_children_spawned"}


def check_state(name: str, class_names: set[str], state: Any, *, allow_boosters: bool) -> None:
    """Refuse a state that an object must not be given; `class_names`: full names of its class and its bases.

    Raises
    ------
    BadFile
        It has the wrong kind, or bytes of a booster that the caller does not allow.
    """
    if type(state) is dict:
        wrong = [key for key in state if not isinstance(key, str) or (key.startswith("__") and key != "__model")]
    else:
        wrong = [] if state is None else [f"a {type(state).__name__} in place of attributes"]
    if wrong:
        raise BadFile(f"gives a {name} {str(wrong[0])[:80]!r}, which is no attribute")
    if "lightgbm.basic.Booster" in class_names:
        _check_booster("lightgbm", _is_lightgbm(state), allow_boosters)
    elif "xgboost.core.Booster" in class_names:
        is_booster = isinstance(state, dict) and set(state) <= _XGBOOST and type(state.get("handle")) is bytearray
        _check_booster("xgboost", is_booster, allow_boosters)
    elif class_names & _CATBOOST:
        if state is None or {"_test_eval", "_test_evals"} & set(state):
            raise BadFile("has a model of CatBoost that is none")
        if "__model" in state:
            _check_booster("catboost", type(state["__model"]) is bytes, allow_boosters)


def _check_booster(library: str, is_booster: bool, allowed: bool) -> None:
    if not is_booster:
        raise BadFile(f"has a model of {_WORDS[library]} that is none")
    if not allowed:
        raise BadFile(
            f"holds a model of {_WORDS[library]} in the library's own bytes, which its own reader would take; if you "
            "trust where the file comes from, load it with allow_boosters=True"
        )


def _is_lightgbm(state: Any) -> bool:
    """Text of a model in place of the handle, no network, and nothing that is not a booster's."""
    return (
        isinstance(state, dict)
        and set(state) <= _LIGHTGBM
        and isinstance(state.get("_handle"), str)
        and state["_handle"].startswith("tree\n")
        and state.get("_network", False) is False
    )


class Builder:
    """Values of checked nodes; a node that is referred to again is the same object.

    Parameters
    ----------
    members : dict of str -> bytes
    allow_boosters : bool
        Whether a booster's own bytes are given to its library.
    """

    def __init__(self, members: dict[str, bytes], *, allow_boosters: bool) -> None:
        self.members, self.allow_boosters = members, allow_boosters
        self._known: dict[int, Any] = {}
        self._named: dict[tuple[str, str], Any] = {}

    def build(self, node: Node) -> Any:
        """The value of a node."""
        kind = node["__loader__"]
        if kind == "CachedNode":
            return self._known[node["__id__"]]
        value = _MAKERS[kind](self, node)
        if "__id__" in node:
            self._known[node["__id__"]] = value
        return value

    def of_type(self, node: Node, *types: type) -> Any:
        """The value of a node that must be one of some plain types."""
        value = self.build(node)
        if type(value) not in types:
            raise BadFile(f"has a {type(value).__name__} where a {types[0].__name__} is expected")
        return value

    def named(self, node: Node) -> Any:
        """The class or function that a node names."""
        module, name = node["__module__"], node["__class__"]
        if (module, name) not in self._named:
            address = (CLASSES | FUNCTIONS).get(name) if module == "tabsym" else None
            source, attribute = address.split(":") if address else (module, name)
            if (source, attribute) == ("builtins", "NoneType"):
                return type(None)
            self._named[module, name] = _import(source, attribute)
        return self._named[module, name]

    # -- one method for each kind of node -----------------------------------------------------

    def _array(self, node: Node) -> Any:
        if node["type"] == "json":
            return _objects([self.build(item) for item in node["content"]], node["shape"])
        array = read_array(self.members[node["file"]])
        if node["__class__"] == "ndarray":
            return array
        scalar = self.named(node)
        if array.shape or not (isinstance(scalar, type) and issubclass(scalar, np.generic)):
            raise BadFile("has a number of numpy that is none")
        value = array[()]
        if type(value) is not scalar:
            raise BadFile(f"has a {type(value).__name__} that it calls {scalar.__name__}")
        return value

    def _sparse(self, node: Node) -> Any:
        data, indices, indptr = (read_array(self.members[node[name]]) for name in ("data", "indices", "indptr"))
        if {indices.dtype.kind, indptr.dtype.kind} != {"i"} or data.dtype.kind not in "biuf":
            raise BadFile("has a sparse matrix of something else than numbers")
        make = self.named(node)
        matrix = make((data, indices, indptr), shape=tuple(node["shape"]))
        matrix.check_format(full_check=True)
        return matrix

    def _dict(self, node: Node) -> Any:
        values = {key: self.build(value) for key, value in node["content"].items()}
        types = node.get("key_types")
        if types is not None:
            values = {_key(key, kind): value for (key, value), kind in zip(values.items(), types, strict=True)}
        return OrderedDict(values) if node["__class__"] == "OrderedDict" else values

    def _default_dict(self, node: Node) -> Any:
        factory = self.of_type(node["content"]["default_factory"], type, type(None))
        return defaultdict(factory, self.of_type(node["content"]["main"], dict))

    def _object(self, node: Node) -> Any:
        state = self.build(node["content"]) if "content" in node else None
        name, allowed = node["__class__"], self.allow_boosters
        check_state(name, {f"{node['__module__']}.{name}"}, state, allow_boosters=allowed)  # before it is imported
        cls = self.named(node)
        if not isinstance(cls, type):
            raise BadFile(f"takes {name} for a class, which it is not")
        class_names = {f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__}
        check_state(name, class_names, state, allow_boosters=allowed)
        instance: Any = cls.__new__(cls)  # type: ignore[call-overload]
        if state is not None:
            if node["__module__"] == "tabsym":
                state = {FORMER_NAMES.get(attribute, attribute): value for attribute, value in state.items()}
            if hasattr(instance, "__setstate__"):
                instance.__setstate__(state)
            else:
                instance.__dict__.update(state)
        if node["__module__"] == "tabsym" and issubclass(cls, BaseEstimator):
            for option, value in signature(cls).parameters.items():  # of a later version, which the file has not
                if value.default is not value.empty:
                    instance.__dict__.setdefault(option, value.default)
        if node["__module__"] == "tabsym" and dataclasses.is_dataclass(cls):
            for field in dataclasses.fields(cls):
                is_needed = field.default is field.default_factory is dataclasses.MISSING
                if is_needed and not hasattr(instance, field.name):
                    raise BadFile(f"holds a {name} without {field.name}, of another version of tabsym")
        check_instance(instance, class_names)
        return instance

    def _from_arguments(self, node: Node) -> Any:
        arguments = self.of_type(node["content"], tuple)
        if not all(type(argument) in (int, str, bytes, type(None), bool) for argument in arguments):
            raise BadFile(f"makes a {node['__class__']} of something else than plain values")
        return self.named(node)(*arguments)

    def _loss(self, node: Node) -> Any:
        arguments = self.of_type(node["__reduce__"]["args"], tuple)
        state = self.build(node["content"])
        if state or not all(type(argument) in (int, float) for argument in arguments):
            raise BadFile("has a loss with more than numbers in it")
        return self.named(node)(*arguments)

    def _random_state(self, node: Node) -> Any:
        state = self.of_type(node["content"], dict)
        inner = state.get("state")
        if state.get("bit_generator") != "MT19937" or type(inner) is not dict or set(inner) != {"key", "pos"}:
            raise BadFile("has a random state of another kind than MT19937")
        key, pos = inner["key"], inner["pos"]
        if not (isinstance(key, np.ndarray) and key.shape == (624,) and key.dtype == np.uint32):
            raise BadFile("has a random state without its 624 numbers")
        if type(pos) is not int or not 0 <= pos <= 624:
            raise BadFile("has a random state at a place that it does not have")
        random = np.random.RandomState(0)
        random.set_state(state)
        return random

    def _generator(self, node: Node) -> Any:
        state = self.of_type(node["content"]["bit_generator"], dict)
        seeds = self.of_type(node["content"]["seed_seq"], dict)
        inner = state.get("state")
        numbers = list(inner.values()) if type(inner) is dict else [None]
        are_whole = all(type(number) is int and 0 <= number < 2**128 for number in numbers)
        if state.get("bit_generator") != "PCG64" or not are_whole:
            raise BadFile("has a generator of another kind than PCG64")
        counts = [seeds.get(name) for name in ("entropy", "n_children_spawned")]
        plain = all(type(number) in (int, np.uint64, np.int64) and 0 <= number < 2**128 for number in counts)
        if set(seeds) != _SEEDS or not plain or seeds["pool_size"] != 4 or seeds["spawn_key"] != ():
            raise BadFile("has a generator that was made in another way")
        bits = np.random.PCG64(np.random.SeedSequence(**seeds))
        bits.state = state
        return np.random.Generator(bits)


def _import(module: str, attribute: str) -> Any:
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0].removeprefix("tabsym_")
        remedy = f'pip install "{_INSTALL[top]}"' if top in _INSTALL else f"install what has {error.name}"
        raise BadFile(f"holds {module}.{attribute}, for which {error.name} is missing: {remedy}") from None
    except AttributeError:
        raise BadFile(f"holds {module}.{attribute}, which is not in the version of {module} installed here") from None


def _objects(items: list[Any], shape: list[int]) -> Any:
    """An array of objects from lists within lists."""
    for length in shape[1:]:
        if not all(type(item) is list and len(item) == length for item in items):
            raise BadFile("has an array of objects of another shape than it says")
        items = [part for item in items for part in item]
    if math.prod(shape) != len(items):
        raise BadFile("has an array of objects of another shape than it says")
    return object_array(items).reshape(shape)


def _key(text: str, kind: str) -> Any:
    if kind == "builtins.str":
        return text
    value = read_json(text, what="key") if kind != "numpy.str_" else text
    if kind == "builtins.NoneType" and value is None:
        return None
    wanted: dict[str, Any] = {"int": int, "float": (int, float), "bool": bool, "numpy": (int, float, bool, str)}
    module, _, name = kind.partition(".")
    if not isinstance(value, wanted.get(name if module == "builtins" else module, ())):
        raise BadFile(f"has a key {text[:80]!r} that it calls {kind}")
    return {"int": int, "float": float, "bool": bool}[name](value) if module == "builtins" else getattr(np, name)(value)


def _plain(make: Callable[[list[Any]], Any]) -> Callable[[Builder, Node], Any]:
    return lambda builder, node: make([builder.build(item) for item in node["content"]])


_MAKERS: dict[str, Callable[[Builder, Node], Any]] = {
    "JsonNode": lambda builder, node: read_json(node["content"], what="value"),
    "ListNode": _plain(list),
    "TupleNode": _plain(tuple),
    "SetNode": _plain(set),
    "DictNode": Builder._dict,
    "DefaultDictNode": Builder._default_dict,
    "NdArrayNode": Builder._array,
    "DTypeNode": lambda builder, node: builder.of_type(node["content"], np.ndarray).dtype,
    "BytesNode": lambda builder, node: builder.members[node["file"]],
    "BytearrayNode": lambda builder, node: bytearray(builder.members[node["file"]]),
    "SliceNode": lambda builder, node: slice(*(node["content"][name] for name in ("start", "stop", "step"))),
    "SparseMatrixNode": Builder._sparse,
    "FunctionNode": Builder.named,
    "TypeNode": Builder.named,
    "PartialNode": lambda builder, node: functools.partial(
        builder.named(node["content"]["func"]), **builder.of_type(node["content"]["kwds"], dict)
    ),
    "ConstructorFromReduceNode": Builder._from_arguments,
    "ObjectNode": Builder._object,
    "LossNode": Builder._loss,
    "RandomStateNode": Builder._random_state,
    "RandomGeneratorNode": Builder._generator,
}


# -- arrays that compiled code indexes ------------------------------------------------------------------

Ints = NDArray[np.signedinteger[Any]]

_HISTOGRAMS = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.BaseHistGradientBoosting"
_BITS = 256  # of a set of categories in a histogram tree


def check_instance(instance: Any, class_names: set[str]) -> None:
    """Refuse an object whose arrays do not fit each other; `class_names`: full names of its class and its bases.

    Raises
    ------
    BadFile
        They do not.
    """
    for class_name, check in _CHECKS.items():
        if class_name in class_names and not check(instance):
            raise BadFile(f"holds a {type(instance).__name__} whose parts do not fit each other")


def _is_tree(inner: NDArray[np.intp], left: Ints, right: Ints, n_nodes: int) -> bool:
    """Whether every node but the first is the child of one inner node before it."""
    children = np.concatenate([left, right]).astype(np.int64)
    after = (children > np.concatenate([inner, inner])).all()
    return n_nodes > 0 and bool(after) and np.array_equal(np.sort(children), np.arange(1, n_nodes))


# -- histogram trees of scikit-learn


def _fits_histogram(booster: Any) -> bool:
    state = vars(booster)
    if "_predictors" not in state:  # not fitted
        return True
    width = _width(state)
    mapper = vars(state["_bin_mapper"])
    by_set, bounds = mapper["is_categorical_"], mapper["bin_thresholds_"]
    return (
        "_in_fit" not in state
        and width is not None
        and isinstance(by_set, np.ndarray)
        and by_set.shape == (width,)
        and len(bounds) == width
        and all(_are_bits(bounds[position]) for position in np.flatnonzero(by_set))
        and all(len(stage) == state["n_trees_per_iteration_"] for stage in state["_predictors"])
        and all(_fits_tree(tree, by_set) for stage in state["_predictors"] for tree in stage)
    )


def _are_bits(values: Any) -> bool:
    return isinstance(values, np.ndarray) and bool(((values >= 0) & (values < _BITS)).all())


def _width(state: dict[str, Any]) -> int | None:
    """Columns of the rows that reach the trees: all, or those that the column transformer in front gives."""
    first, n_features = state.get("_preprocessor"), state.get("n_features_in_")
    if type(n_features) is not int or first is None:
        return n_features if type(n_features) is int else None
    parts, width = vars(first), 0
    for name, transformer, chosen in parts["transformers_"]:
        if isinstance(transformer, str):
            if transformer != "drop":
                return None
            continue
        plain = isinstance(chosen, np.ndarray) and chosen.dtype == np.bool_ and chosen.shape == (n_features,)
        if not plain or not _keeps_width(transformer):
            return None
        if not np.array_equal(parts["_transformer_to_input_indices"][name], np.flatnonzero(chosen)):
            return None
        width += int(np.count_nonzero(chosen))
    return width


def _keeps_width(transformer: Any) -> bool:
    kind = type(transformer).__name__
    check = getattr(getattr(transformer, "func", None), "func", None)  # of a partial
    return kind == "OrdinalEncoder" or (kind == "FunctionTransformer" and check is check_array)


def _fits_tree(tree: Any, by_set: NDArray[Any]) -> bool:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes, sets = vars(tree)["nodes"], vars(tree)["raw_left_cat_bitsets"]
    if not (isinstance(nodes, np.ndarray) and nodes.dtype == PREDICTOR_RECORD_DTYPE and nodes.ndim == 1):
        return False
    position = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[position]
    columns = inner["feature_idx"]
    if not _is_tree(position, inner["left"], inner["right"], len(nodes)):
        return False
    if ((columns < 0) | (columns >= len(by_set))).any():
        return False
    splits = inner["is_categorical"] != 0
    return (
        isinstance(sets, np.ndarray)
        and sets.ndim == 2
        and sets.shape[1] == _BITS // 32
        and bool((inner["bitset_idx"][splits] < len(sets)).all())
        and bool((by_set[columns[splits]] != 0).all())
    )


# -- models and trees of tabsym


def _fits_model(model: Any) -> bool:
    spec, n_outputs = model.spec, model.n_outputs
    n, n_blocks = spec.n_coefs, len(spec.blocks)
    factors = [factor for term in spec.terms for factor in term.factors]
    uncertainty = model.uncertainty
    return (
        type(n_outputs) is int
        and all(type(block.rank) is int and block.rank > 0 for block in spec.blocks)
        and all(type(f.block) is int and 0 <= f.block < n_blocks for f in factors)
        and all(type(f.component) is int and 0 <= f.component < spec.blocks[f.block].rank for f in factors)
        and model.theta.shape == (n, n_outputs)
        and model.counts.shape == model.weights.shape == (n,)
        and model.state.shape == (n * n_outputs, len(model.columns.fresh))
        and (uncertainty is None or uncertainty.samples is None or uncertainty.samples.shape[0] == n)
        and (uncertainty is None or uncertainty.unknown is None or uncertainty.unknown.shape[1] == n)
    )


def _fits_jitter_tree(tree: Any) -> bool:
    n = len(tree.feature)
    by_node = (
        tree.feature, tree.threshold, tree.left, tree.right, tree.other_left, tree.n_rows, tree.weight, tree.impurity,
        tree.gain,
    )  # fmt: skip
    inner = np.flatnonzero(tree.feature >= 0)
    positions = tree.pointer
    return (
        all(array.shape == (n,) for array in by_node)
        and all(array.dtype.kind == "i" for array in (tree.feature, tree.left, tree.right, positions, tree.categories))
        and tree.value.ndim == 2
        and len(tree.value) == n
        and positions.shape == (n + 1,)
        and positions[0] == 0
        and bool((np.diff(positions) >= 0).all())
        and tree.categories.shape == tree.to_left.shape == (positions[-1],)
        and _is_tree(inner, tree.left[inner], tree.right[inner], n)
    )


def _fits_jitter_estimator(estimator: Any) -> bool:
    state = vars(estimator)
    return "tree_" not in state or bool((state["tree_"].feature < len(state["_columns"].kinds)).all())


_CHECKS = {
    _HISTOGRAMS: _fits_histogram,
    "tabsym.models.model.WideModel": _fits_model,
    "tabsym.jitter.tree.Tree": _fits_jitter_tree,
    "tabsym.jitter.tree_estimators.JitterTree": _fits_jitter_estimator,
}
"""Full name of a class -> whether the arrays of an object of it fit."""
