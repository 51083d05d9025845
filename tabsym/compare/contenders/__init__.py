"""The contenders: a file for each kind.

A file in this folder that defines ``CONTENDERS``, a list of `Contender`,
takes part; nothing else registers it. What a contender needs is imported
when it is made: a process imports no more than its own contender.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from tabsym.compare.table.prepare import TASKS

Make = Callable[..., Any]
Space = Callable[[str], dict[str, Any]]


@dataclass(frozen=True)
class Contender:
    """A pipeline that takes part in a comparison.

    Attributes
    ----------
    name : str
        Its name in ``--contenders`` and in the results.
    label : str
        Its label in the report.
    make : callable (task, random_state, n_jobs) -> estimator
        The estimator, unfitted, at its defaults. It gets a pandas frame of text, number
        and boolean columns, classes coded 0, 1, ..., and must have `fit` and `predict`,
        for classes `predict_proba`.
    space : callable (task) -> dict of parameter -> list or scipy.stats distribution
        The search space of ``--tune``; parameters as `set_params` names them.
    requires : dict of module -> what to install
    order : int
        Cheap ones run first, so that a ranking appears early.
    raw : bool
        Whether it is the user's own, and gets their columns and class names instead of prepared ones.
    address : str or None
        Where a contender of the user's own comes from, as ``package.module:factory``.
    made_by : str or None
        Of a contender of the user's own: a digest of the file at its address, or of the estimator and its space.
    for_unseen : bool
        Whether it takes part only where whole categories of a column are held out; `make` then gets the name of that
        column as a fourth argument.
    for_metric : bool
        Whether `make` gets the name of the metric that ranks as a last argument.
    by_name : bool
        Whether it takes part only where it is named, as it is similar to another one.
    """

    name: str
    label: str
    make: Make
    space: Space = lambda task: {}
    requires: dict[str, str] = field(default_factory=dict)
    order: int = 50
    tasks: tuple[str, ...] = TASKS
    raw: bool = False
    address: str | None = None
    made_by: str | None = None
    for_unseen: bool = False
    for_metric: bool = False
    by_name: bool = False

    def estimator(self, task: str, random_state: int, n_jobs: int, unseen: str | None, metric: str = "") -> Any:
        """The estimator, unfitted; `unseen`: the column whose categories are held out, if there is one.

        `metric`: the name of the one that ranks, where that is known.
        """
        arguments: list[Any] = [task, random_state, n_jobs]
        if self.for_unseen:
            arguments.append(unseen)
        if self.for_metric:
            arguments.append(metric)
        return self.make(*arguments)

    def missing(self) -> str | None:
        """What to install, where a library that the contender needs is absent."""
        for module, remedy in self.requires.items():
            if find_spec(module) is None:
                return f"{self.label} was not run, as {module} is not installed: pip install {remedy!r}"
        return None


def all_contenders() -> dict[str, Contender]:
    """Every contender by name, cheap ones first."""
    found: list[Contender] = []
    for module in iter_modules(__path__):
        found += import_module(f"{__name__}.{module.name}").CONTENDERS
    return {contender.name: contender for contender in sorted(found, key=lambda c: (c.order, c.name))}
