"""Folders, packages of the wheel and entry points name the same adapters; so do wheel and editable install."""

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tabsym import integrations

ROOT = Path(__file__).parent.parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())


def folders():
    return sorted(path.parent.name for path in (ROOT / "integrations").glob("*/__init__.py"))


def test_folders_packages_and_entry_points_agree():
    packages = CONFIG["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(p.removeprefix("integrations/") for p in packages if p != "tabsym") == folders()
    groups = CONFIG["project"]["entry-points"]
    assert all(target.endswith(":adapter") for target in groups["tabsym.adapters"].values())
    points = groups["tabsym.adapters"] | groups["tabsym.bridges"]
    assert sorted(target.split(":")[0] for target in points.values()) == folders()
    assert [f"tabsym_{name}" for name in sorted(points)] == folders()
    assert set(points) <= set(CONFIG["project"]["optional-dependencies"])


def test_the_installed_package_has_the_same_adapters():
    bridges = [point.name for point in entry_points(group=integrations.BRIDGES)]
    assert sorted(f"tabsym_{name}" for name in [*integrations.available(), *bridges]) == folders()


def test_the_wheel_has_the_same_adapters(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        points = wheel.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    tops = {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert tops == {"tabsym", *folders()}
    assert "tabsym/compare/report.html.jinja" in names
    assert "tabsym/compare/sort.js" in names
    assert "tabsym/export/spec.schema.json" in names
    groups = CONFIG["project"]["entry-points"]
    lines = points.splitlines()
    assert all(f"{name} = {target}" in lines for group in groups.values() for name, target in group.items())


def test_a_missing_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.delitem(sys.modules, "tabsym_lightgbm", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "tabsym\[lightgbm\]"'):
        integrations.load_adapter("lightgbm")
    with pytest.raises(ModuleNotFoundError, match=r'pip install "tabsym\[lightgbm\]"'):
        from tabsym.integrations import lightgbm  # noqa: F401


def test_an_unknown_adapter_lists_those_there_are():
    with pytest.raises(ValueError, match="catboost, lightgbm, xgboost"):
        integrations.load_adapter("nosuch")


def test_the_door_gives_the_package():
    from tabsym.integrations import xgboost

    assert xgboost.adapter is integrations.load_adapter("xgboost")
