"""Docstrings of public names: numpydoc's checks, and an example each, which pytest runs as a doctest."""

import ast
import builtins
import doctest
import inspect
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.validate import validate

MODULES = (
    "tabsym",
    "tabsym.losses",
    "tabsym.optimizers",
    "tabsym.interactions",
    "tabsym.compare",
    "tabsym.export",
    "tabsym.datasets",
    "tabsym.plots",
    "tabsym_torch",
)
MORE = ("tabsym.encoders.NativeCategories", "tabsym.integrations.available", "tabsym.integrations.load_adapter")

CHECKS = {
    "GL08": "there is a docstring",
    "GL03": "no double blank lines",
    "GL06": "no unknown section",
    "SS01": "a summary",
    "SS02": "it starts with a capital letter",
    "SS03": "it ends with a period",
    "SS06": "it fits in one line",
    "PR01": "all parameters are described",
    "PR02": "no unknown ones are",
    "PR03": "in their order",
    "PR10": "a space before the colon",
    "RT01": "what is returned is described",
    "YD01": "or yielded",
    "EX01": "an example",
}
"""Left out: ES01, SA01, RT03, PR07 (an extended summary, See Also, a text for X, y and `self` are no gain everywhere);
SS05 (it takes plural nouns for verbs in the third person); GL01, GL02, GL07, PR06, PR08, PR09 (matters of layout)."""

RESULTS = {
    *("tabsym.compare.Comparison", "tabsym.compare.Comparisons", "tabsym.compare.Winner"),
    *("tabsym_torch.WideInput", "tabsym_torch.WideModule"),
}
"""Classes whose objects the package makes, by `compare` and `to_torch`: these have the example and the parameters."""

OF_THE_CLASS = set(
    """
    fit partial_fit fit_transform transform predict predict_proba predict_log_proba decision_function score
    get_feature_names_in get_feature_names_out get_depth get_n_leaves of of_codes
    forward step zero_grad extra_repr state_dict load_state_dict add_param_group reset_parameters
    """.split()
)
"""Methods whose example is that of the class; most are of scikit-learn's and torch's estimators."""


def resolve(address):
    """The object of an address, and what holds it."""
    path = address.split(".")
    for length in range(len(path) - 1, 0, -1):
        try:
            holder = import_module(".".join(path[:length]))
        except ImportError:
            continue
        for name in path[length:-1]:
            holder = getattr(holder, name)
        return getattr(holder, path[-1]), holder
    raise ImportError(address)


def is_ours(member):
    return (getattr(inspect.unwrap(member), "__module__", None) or "").startswith("tabsym")


def members_of(kind):
    """The public methods and properties of a class that the package wrote, by name."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        function = member.fget if isinstance(member, property) else getattr(member, "func", None) or getattr(kind, name)
        if not name.startswith("_") and callable(function) and is_ours(function):
            yield name, function


def public_names():
    """Addresses of all that is public, each text once."""
    found = {}
    modules = {module: import_module(module) for module in MODULES}
    addresses = [f"{module}.{name}" for module, package in modules.items() for name in package.__all__]
    for address in [*(one for one in addresses if one not in sys.modules), *MORE]:  # `compare` is a module, too
        value, _ = resolve(address)
        if callable(value):
            found.setdefault((inspect.getdoc(value), value), address)
        for name, function in members_of(value) if inspect.isclass(value) else ():
            found.setdefault((inspect.getdoc(function), None), f"{address}.{name}")
    return list(found.values())


@pytest.mark.parametrize("address", public_names())
def test_docstring(address):
    findings = dict(validate(address)["errors"])
    holder, name = resolve(address)[1], address.rsplit(".", 1)[1]
    is_property = isinstance(inspect.getattr_static(holder, name, None), property | cached_property)
    is_result = any(address.startswith(result) for result in RESULTS)
    left_out = {"EX01"} if is_property or name in OF_THE_CLASS or is_result else set()
    left_out |= {"PR01"} if address in RESULTS else set()
    assert not {code: text for code, text in findings.items() if code in CHECKS and code not in left_out}


ROOT = Path(__file__).parents[2]
SOURCES = [path for folder in ("tabsym", "integrations") for path in sorted((ROOT / folder).rglob("*.py"))]


def names_of(source):
    """The names that a piece of code defines, and those that it reads."""
    nodes = list(ast.walk(ast.parse(source)))
    made = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    made |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            made |= {(one.asname or one.name).partition(".")[0] for one in node.names}
    return made, {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_examples_of_docstrings_define_what_they_use(path):
    """As who copies one has to; doctest knows the names of the module and the fixtures of pytest, and skips some."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            continue
        known = {*dir(builtins), getattr(node, "name", "")}
        for example in doctest.DocTestParser().get_examples(ast.get_docstring(node) or ""):
            made, used = names_of(example.source)
            known |= made
            assert used <= known, (getattr(node, "name", path.stem), used - known)
