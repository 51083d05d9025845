"""Contenders of the user's own: estimators and pipelines by name, or the address of something that makes one.

A digest says whether one has changed since an earlier run. No code of the user's is run, and none is imported, for
that: it may fail, and the process that runs it says so.
"""

from __future__ import annotations

import dis
import inspect
import sys
import sysconfig
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator

from tabsym.compare.contenders import Contender, all_contenders
from tabsym.compare.ranking import CONSTANT
from tabsym.compare.table.prepare import CLASSES
from tabsym.compare.text import MAX_FOLDER_NAME, folder_name, perhaps

ALL = "all"
_CONSTANTS = (bool, int, float, str, bytes, tuple, frozenset, type(None))
_CONTENTS = (*_CONSTANTS, list, dict, set, np.ndarray)
_INSTALLED = (
    *(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).parent.parent),
)
"""Folders of libraries, whose versions are not looked at, and of this package."""
_ORDER = 5  # after the constant, before all others


def choose(contenders: Any, task: str, *, unseen: bool = False) -> list[Contender]:
    """The contenders that take part, the baseline always among them; `unseen`: whether whole categories are held out.

    Raises
    ------
    ValueError, TypeError
        A name is not known, or what it stands for is no estimator.
    """
    known = all_contenders()
    if isinstance(contenders, str):
        raise TypeError(f"contenders must be a list, not the text {contenders!r}; pass contenders=[{contenders!r}].")
    requested: dict[str, Any] = {ALL: None} if contenders is None else {}
    if contenders is not None:
        requested = dict(contenders) if isinstance(contenders, Mapping) else dict.fromkeys(contenders)
    if not requested:
        raise ValueError(f"contenders is empty; name at least one, or leave it out for {ALL!r}.")
    chosen = {CONSTANT: known[CONSTANT]}
    for name, value in requested.items():
        if not isinstance(name, str):
            raise TypeError(
                f"contenders contains {name!r}; pass estimators in a dict with names: contenders={{'mine': ...}}."
            )
        if value is not None and (name in known or name == ALL or name in {c.label for c in known.values()}):
            raise ValueError(f"{name!r} is the name of a built-in contender; give yours another name.")
        if value is not None and len(folder_name(name).encode()) > MAX_FOLDER_NAME:
            raise ValueError(f"The contender's name {name[:40]!r}... is too long for a folder; give it a shorter one.")
        if value is not None:
            chosen[name] = _custom(str(name), value, task)
        elif name == ALL:
            of_all = {n: contender for n, contender in known.items() if not contender.by_name}
            fit = {n: contender for n, contender in of_all.items() if unseen or not contender.for_unseen}
            chosen |= {n: contender for n, contender in fit.items() if n not in requested}
        elif name in known and known[name].for_unseen and not unseen:
            raise ValueError(f"Contender {name!r} needs held-out categories; add unseen (--unseen).")
        elif name in known:
            chosen[name] = known[name]
        else:
            raise ValueError(
                f"There is no contender {name!r}{perhaps(name, list(known))}; there are {', '.join(known)}, "
                f"and {ALL!r} for all but those that take part only where they are named."
            )
    return sorted((c for c in chosen.values() if task in c.tasks), key=lambda c: (c.order, c.name))


def _custom(name: str, value: Any, task: str) -> Contender:
    """A contender from an estimator, (estimator, space), or an address."""
    if isinstance(value, str):
        if not all(value.partition(":")):
            raise ValueError(
                f"Contender {name!r} is {value!r}, which is not an address; write package.module:factory, where "
                "factory makes the estimator."
            )
        return from_address(name, value)
    model, space = value if isinstance(value, tuple) and len(value) == 2 else (value, {})
    _check_estimator(name, model, task)
    made_by = digest_of(model, space)
    return Contender(
        name, name, lambda task, seed, jobs: model, lambda task: space, order=_ORDER, raw=True, made_by=made_by
    )


def _check_estimator(name: str, model: Any, task: str) -> None:
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise TypeError(
            f"Contender {name!r} is {model!r}, which is not an estimator; pass an instance with fit and predict."
        )
    if task in CLASSES and not hasattr(model, "predict_proba"):
        raise TypeError(
            f"Contender {name!r} has no predict_proba, which classes are scored by; "
            "wrap it in sklearn.calibration.CalibratedClassifierCV."
        )


def from_address(name: str, address: str) -> Contender:
    """A contender whose estimator something in an importable module makes.

    That is a function or class, called with those of `task`, `random_state` and `n_jobs` that it names, or an
    estimator itself. Its attribute `space`, a dict or a function of the task, says where ``--tune`` looks.
    """

    def make(task: str, random_state: int, n_jobs: int) -> Any:
        model = _load(address)
        if callable(model) and not isinstance(model, BaseEstimator):
            names = inspect.signature(model).parameters
            options = {"task": task, "random_state": random_state, "n_jobs": n_jobs}
            model = model(**{option: value for option, value in options.items() if option in names})
        _check_estimator(name, model, task)
        return model

    def space(task: str) -> dict[str, Any]:
        values = getattr(_load(address), "space", {})
        return values(task) if callable(values) else dict(values)

    made_by = digest_of_address(address)
    return Contender(name, name, make, space, order=_ORDER, raw=True, address=address, made_by=made_by)


def _load(address: str) -> Any:
    module, _, attribute = address.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    value: Any = import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part)
    return value


def digest_of_address(address: str) -> str | None:
    """Of the file of the module at an address; None where there is none, as far as can be told without importing.

    What the module imports is not looked at.
    """
    try:
        file = _file_of(address.partition(":")[0])
        return None if file is None else sha256(file.read_bytes()).hexdigest()
    except Exception:  # whatever hooks and folders of the user's do
        return None


def digest_of(*made_of: Any) -> str | None:
    """Of an estimator and what belongs to it, by their parameters; None where that cannot be told.

    Functions by their code, arrays and frames by their content.
    """
    try:
        return str(joblib.hash([_contents(part) for part in made_of], hash_name="sha1"))
    except Exception:  # the user's own code may raise anything
        return None


def _file_of(module: str) -> Path | None:
    """The file of a module, found as the process finds it that runs it: in the working folder first."""
    where: list[str] | None = [str(Path.cwd()), *sys.path]
    spec = None
    for part in module.split("."):  # each by itself: a dotted name of a namespace would look for its parent's module
        spec = None if where is None else PathFinder.find_spec(part, where)
        if spec is None:
            return None
        positions = spec.submodule_search_locations
        where = None if positions is None else list(getattr(positions, "_path", positions))
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _contents(value: Any, seen: list[Any] | None = None) -> Any:
    """What a parameter is, in lists, texts and digests that are the same in every process.

    `seen`: the functions and classes that are in it already, which may name each other; more are added.
    """
    seen = [] if seen is None else seen
    if isinstance(value, BaseEstimator):
        return [_contents(type(value), seen), _contents(value.get_params(deep=False), seen)]
    if isinstance(value, Mapping):
        return ["mapping", sorted([repr(_contents(name, seen)), _contents(item, seen)] for name, item in value.items())]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(_contents(item, seen) for item in value)]
    if isinstance(value, (set, frozenset)):
        return ["set", *sorted(repr(_contents(item, seen)) for item in value)]
    if isinstance(value, type):
        return [_name_of(value), _class_contents(value, seen)] if _is_user_defined(value, seen) else _name_of(value)
    if isinstance(value, FunctionType):
        return [_name_of(value), _function_contents(value, seen)]
    if isinstance(value, partial):
        return ["partial", _contents([value.func, value.args, value.keywords], seen)]
    if isinstance(value, MethodType):
        return _contents([value.__func__, value.__self__], seen)
    if hasattr(value, "dist") and hasattr(value, "kwds"):  # frozen, of scipy, with the state of all random numbers
        return [str(value.dist.name), _contents([value.args, value.kwds], seen)]
    made_by = [_contents(type(value), seen)] if _is_user_defined(type(value), seen) else []
    return [joblib.hash(value, hash_name="sha1"), *made_by]


def _function_contents(value: FunctionType, seen: list[Any]) -> list[Any]:
    """The code of a function, and what it reads that is the user's own: functions and classes it calls, constants."""
    if any(value is item for item in seen):
        return []
    seen.append(value)
    read = {name: value.__globals__.get(name) for name in sorted(_names_in(value.__code__))}
    used = {name: item for name, item in read.items() if isinstance(item, _CONTENTS) or _is_user_defined(item, seen)}
    closure = [cell.cell_contents for cell in value.__closure__ or ()]
    return [_code_contents(value.__code__), _contents([value.__defaults__, value.__kwdefaults__, closure, used], seen)]


def _class_contents(value: type, seen: list[Any]) -> Any:
    """The methods and constants of a class, and of the user's own that it comes from."""
    seen.append(value)
    bases = [base for base in value.__mro__[1:] if _is_user_defined(base, seen)]
    inner = {
        name: getattr(member, "__func__", getattr(member, "fget", member))  # of class methods and properties
        for name, member in vars(value).items()
        if not (name.startswith("__") and isinstance(member, _CONSTANTS))
    }
    kept = {name: member for name, member in inner.items() if isinstance(member, (FunctionType, *_CONSTANTS))}
    return _contents([kept, bases], seen)


def _is_user_defined(value: Any, seen: list[Any]) -> bool:
    """Whether a function, a class or what is made of one is of no library, and not in `seen`."""
    if isinstance(value, ModuleType) or any(value is item for item in seen):
        return False
    kind = value if isinstance(value, (FunctionType, type)) else type(value)
    if kind.__module__ == "builtins":
        return False
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is None or not any(Path(file).is_relative_to(position) for position in _INSTALLED)


def _names_in(code: CodeType) -> set[str]:
    """The global names that a function looks up, those of functions inside it too."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_names_in(item) for item in code.co_consts if isinstance(item, CodeType)))


def _code_contents(code: CodeType) -> list[Any]:
    constants = [_code_contents(item) if isinstance(item, CodeType) else _contents(item) for item in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


def _name_of(what: Any) -> str:
    return f"{what.__module__}.{what.__qualname__}"
