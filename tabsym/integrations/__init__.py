"""The door to adapters: found by entry point, loaded when asked for.

``from tabsym.integrations import lightgbm`` gives the adapter package
`tabsym_lightgbm`. Anyone can add one: a package with an entry point in the
group ``tabsym.adapters`` that names an object with `name`, `label`,
`native(task, random_state=, n_jobs=)` and `booster(task, ...)`. A package
that brings no contender of its own (`tabsym_torch`) has its entry point in
the group ``tabsym.bridges``: the comparison does not load it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

GROUP = "tabsym.adapters"
BRIDGES = "tabsym.bridges"


class Adapter(Protocol):
    """What answers for one library."""

    name: str
    label: str

    def native(self, task: str, *, random_state: int | None = None, n_jobs: int | None = None) -> Any:
        """An estimator that takes any table, of no rows too, and treats categories the library's own way."""

    def booster(self, task: str, random_state: int | None = None, n_jobs: int | None = None) -> Any:
        """The library's plain estimator for a task, for numeric features."""


@cache
def _entry_points(group: str = GROUP) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def _packages() -> dict[str, EntryPoint]:
    """Everything behind the door, by name."""
    return {**_entry_points(BRIDGES), **_entry_points()}


def available() -> list[str]:
    """Names of the adapters that are installed (their libraries may not be).

    Returns
    -------
    list of str

    Examples
    --------
    >>> from tabsym.integrations import available
    >>> available()
    ['catboost', 'lightgbm', 'xgboost']
    """
    return sorted(_entry_points())


def load_adapter(name: str) -> Adapter:
    """Load an adapter by name.

    Parameters
    ----------
    name : str
        One of `available`.

    Returns
    -------
    Adapter

    Raises
    ------
    ValueError
        There is no such adapter.
    ModuleNotFoundError
        Its library is not installed; the message says what to install.

    Examples
    --------
    >>> from tabsym.integrations import load_adapter
    >>> load_adapter("lightgbm").label
    'LightGBM native'
    """
    if name not in _entry_points():
        raise ValueError(f"There is no adapter {name!r}; there are {', '.join(available())}.")
    try:
        adapter: Adapter = _entry_points()[name].load()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_remedy(name, error), name=error.name) from error
    return adapter


def _remedy(name: str, error: ModuleNotFoundError) -> str:
    return f'The adapter {name!r} needs {error.name!r}: pip install "tabsym[{name}]"'


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in _packages():
        raise AttributeError(f"module 'tabsym.integrations' has no adapter {name!r}; there are {sorted(_packages())}")
    try:
        return import_module(_packages()[name].module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_remedy(name, error), name=error.name) from error


def __dir__() -> Iterator[str]:
    return iter(sorted([*globals(), *_packages()]))
