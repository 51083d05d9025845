"""What makes a contender of the user's own, as a digest: whether it has changed since an earlier run.

No code of the user's is run, and none is imported, for that: it may fail, and the process that runs it tells of it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import joblib
from sklearn.base import BaseEstimator


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
        return str(joblib.hash([_told(one) for one in made_of], hash_name="sha1"))
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
        places = spec.submodule_search_locations
        where = None if places is None else list(getattr(places, "_path", places))
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _told(value: Any) -> Any:
    """What a parameter is, in lists, texts and digests that are the same in every process."""
    if isinstance(value, BaseEstimator):
        return [_name_of(type(value)), _told(value.get_params(deep=False))]
    if isinstance(value, Mapping):
        return ["mapping", sorted([repr(_told(name)), _told(own)] for name, own in value.items())]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(_told(one) for one in value)]
    if isinstance(value, (set, frozenset)):
        return ["set", *sorted(repr(_told(one)) for one in value)]
    if isinstance(value, type):
        return _name_of(value)
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return [_name_of(value), _told_code(value.__code__), _told([value.__defaults__, value.__kwdefaults__, held])]
    if isinstance(value, partial):
        return ["partial", _told([value.func, value.args, value.keywords])]
    if hasattr(value, "dist") and hasattr(value, "kwds"):  # frozen, of scipy, with the state of all random numbers
        return [str(value.dist.name), _told([value.args, value.kwds])]
    return joblib.hash(value, hash_name="sha1")


def _told_code(code: CodeType) -> list[Any]:
    constants = [_told_code(one) if isinstance(one, CodeType) else _told(one) for one in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


def _name_of(what: Any) -> str:
    return f"{what.__module__}.{what.__qualname__}"
