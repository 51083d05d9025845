"""Rules of the tree: imports run one way, kernels see arrays, importing is light."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tabsym"
LAYERS = [
    ["messages"],
    ["plots"],
    ["jit"],
    ["frame"],
    ["categories"],
    ["modl"],
    ["tiws", "datasets"],
    ["losses"],
    ["design"],
    ["interactions"],
    ["solvers"],
    ["optimizers"],
    ["models"],
    ["encoders"],
    ["naive_bayes"],
    ["integrations"],
    ["stacking"],
    ["jitter"],
    ["export"],
    ["compare"],
    ["cli"],
    ["__main__"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def layer_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imports_of(path):
    return list(_imports_of(path))


def _imports_of(path):
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls_of(path):
    calls = (node.func for node in nodes_of(path) if isinstance(node, ast.Call))
    return (ast.unparse(function) for function in calls)


def modules():
    return [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


def test_imports_run_one_way():
    wrong = []
    for path in modules():
        here = layer_of(path)
        assert here in RANK, f"{here} has no place in the layers"
        for name in imports_of(path):
            if not name.startswith("tabsym."):
                continue
            there = name.split(".")[1]
            if there in RANK and (RANK[there] > RANK[here] or (RANK[there] == RANK[here] and there != here)):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


def test_no_circles_inside_folders_either():
    """Imports under TYPE_CHECKING and inside functions count, too."""
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in [*modules(), PACKAGE / "__init__.py"]
    }
    sorter = TopologicalSorter()
    for name, path in names.items():
        if name != "tabsym":  # which names the modules of its public classes
            sorter.add(name, *(set(imports_of(path)) & set(names) - {name, "tabsym", name.rpartition(".")[0]}))
    assert sorter.prepare() is None  # a CycleError names the circle


def test_kernels_import_nothing_but_numpy_and_the_compiler():
    compiled = [
        "tabsym.jit",
        "tabsym.solvers.sgd.rules",
        "tabsym.losses.loss",
        "tabsym.solvers.sgd.kernels",
        "tabsym.modl.kernels",
    ]
    compiled += ["tabsym.solvers.newton.kernels_"]
    found = [*PACKAGE.rglob("kernels*.py"), PACKAGE / "solvers" / "sgd" / "rules.py"]
    assert len(found) == 9
    for path in found:
        heads = {name.split(".")[0] for name in imports_of(path)} - {"__future__", "typing", "math"}
        assert "tabsym" in heads <= {"numpy", "tabsym"}, path
        for name in imports_of(path):
            assert not name.startswith("tabsym") or any(name.startswith(module) for module in compiled), name


def test_numba_is_used_in_one_place():
    users = [path for path in modules() if any(name.split(".")[0] == "numba" for name in imports_of(path))]
    assert users == [PACKAGE / "jit.py"]


@pytest.mark.slow
def test_warnings_name_the_line_of_the_user():
    """By `warn_user`, the one place that calls Python's own."""
    wrong = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path != PACKAGE / "messages.py" and {"warnings.warn"} & {*imports_of(path), *calls_of(path)}
    ]
    assert not wrong


def test_no_module_is_called_utils_and_none_evaluates_text():
    for path in modules():
        assert path.stem not in ("utils", "helpers", "misc")
        calls = [n.func.id for n in nodes_of(path) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        assert not {"eval", "exec"} & set(calls), path


def test_importing_tabsym_is_light():
    code = (
        "import sys, tabsym; "
        "heavy = {'torch', 'lightgbm', 'xgboost', 'catboost', 'matplotlib', 'numba', 'pandas', 'sklearn'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


@pytest.mark.slow
def test_public_names_load_without_boosters_or_compiling():
    code = (
        "import sys, tabsym; [getattr(tabsym, name) for name in tabsym.__all__]; "
        "from tabsym import losses, optimizers; "
        "[getattr(module, name) for module in (losses, optimizers) for name in module.__all__]; "
        "heavy = {'torch', 'lightgbm', 'xgboost', 'catboost', 'matplotlib'} & set(sys.modules); "
        "from tabsym.interactions import kernels as gains; "
        "from tabsym.solvers.sgd import kernels as wide; "
        "from tabsym.categories import kernels as codes; "
        "kernels = [k for m in (wide, gains, codes) for k in vars(m).values()]; "
        "compiled = [k for k in kernels if getattr(k, 'signatures', None)]; "
        "print(sorted(heavy), compiled)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[] []"


@pytest.mark.slow
def test_second_process_compiles_nothing():
    """With the folder of compiled kernels that all tests share: the first process compiles what is missing."""
    code = """
import numpy as np, pandas as pd
from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.interactions import kernels as gains
from tabsym.solvers.sgd import kernels as wide
from tabsym.solvers.newton import kernels_coefs, kernels_rows, kernels_walk
from tabsym.categories import kernels as codes
X = pd.DataFrame({"a": list("uvwx") * 10, "b": list("yz") * 20, "n": np.arange(40.0)})
for batch in (1, 4):
    WideSGDClassifier(interactions="pairwise", batch_size=batch).fit(X, [0, 1] * 20).predict(X)
    WideSGDClassifier(interactions="auto", batch_size=batch).fit(X, [0, 1, 2, 0] * 10).predict(X)
    WideSGDClassifier(interactions="auto", batch_size=batch).fit(X, [0, 1, 1, 0] * 10).predict(X)
    WideSGDRegressor(batch_size=batch).fit(X, np.arange(40.0), sample_weight=np.arange(40.0)).predict(X)
    product = WideSGDRegressor("w[a] * v[b] * n + c[1]", optimizer="adam", gradient="mean", batch_size=batch)
    product.fit(X, np.arange(40.0)).predict(X)
WideClassifier().fit(X, [0, 1] * 20).predict(X)
WideRegressor().fit(X, np.arange(40.0), sample_weight=np.arange(1.0, 41.0)).predict(X)
solver = (kernels_coefs, kernels_rows, kernels_walk)
stats = [k.stats for m in (wide, gains, codes, *solver) for k in vars(m).values() if hasattr(k, "stats")]
print(sum(sum(s.cache_hits.values()) for s in stats), sum(sum(s.cache_misses.values()) for s in stats))
"""
    counts = []
    for _ in range(2):
        out = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        counts.append([int(word) for word in out.split()])
    assert counts[1][0] > 0
    assert counts[1][1] == 0, "a kernel was compiled again in the second process"


def test_no_two_classes_have_one_name():
    """A name that is looked for leads to one class."""
    found: dict[str, list[str]] = {}
    for path in [*modules(), *(ROOT / "integrations").rglob("*.py")]:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.lstrip("_"), []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
