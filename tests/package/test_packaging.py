"""Folders, packages of the wheel and entry points name the same adapters; so do wheel and editable install."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import trove_classifiers
import yaml

from tabsym import integrations

ROOT = Path(__file__).parents[2]
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


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the sdist and of the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_the_wheel_has_the_same_adapters(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
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


def test_the_package_is_ready_for_an_index(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        text = wheel.read(next(name for name in wheel.namelist() if name.endswith("METADATA"))).decode()
    metadata = message_from_string(text)
    assert metadata["Description-Content-Type"] == "text/markdown"
    links = re.findall(r"\]\(([^)]*)\)", metadata.get_payload())
    assert links
    assert all(link.startswith("https://") for link in links)
    assert {line.partition(",")[0] for line in metadata.get_all("Project-URL")} == set(CONFIG["project"]["urls"])
    assert set(metadata.get_all("Classifier")) <= set(trove_classifiers.classifiers)
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"hatch_build.py", "LICENSE", "CITATION.cff", "docs/conf.py", "tests/conftest.py"} <= names
    assert not [name for name in names if name.startswith(("docs/_build", "docs/auto_gallery"))]


@pytest.mark.slow
def test_the_wheel_works_from_an_empty_folder(built, tmp_path):
    """Unpacked, without the checkout on the path."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path)
    code = "import tabsym; tabsym.OneHotEncoder().fit(tabsym.datasets.make_retail(50)); print(tabsym.__file__)"
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True, env=env)
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {CONFIG['project']['version']}\n" in citation
    assert f"repository-code: {CONFIG['project']['urls']['Source']}\n" in citation


def test_no_address_of_a_machine_is_in_the_files():
    """Paths of home folders and hosts of mirrors of package indexes."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not names:
        pytest.skip("no checkout")
    files = [name for name in names if name.endswith((".md", ".toml", ".txt", ".yml", ".cff", ".cfg"))]
    found = [
        name for name in files if re.search(r"/home/\w|/root/|/Users/\w|index-url|@ file:", (ROOT / name).read_text())
    ]
    assert not found


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


def test_the_recipe_for_conda_asks_for_what_the_metadata_asks_for():
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    project = CONFIG["project"]
    run = [line.replace(" ", "") for line in recipe["requirements"]["run"] if not line.startswith("python ")]
    assert sorted(run) == sorted(project["dependencies"])
    host = [line.replace(" ", "") for line in recipe["requirements"]["host"]]
    assert [line for line in host if line.startswith("hatchling")] == CONFIG["build-system"]["requires"]
    assert recipe["context"]["version"] == project["version"]
    assert recipe["build"]["python"]["entry_points"] == [f"tabsym = {project['scripts']['tabsym']}"]
    assert recipe["source"]["url"].startswith(project["urls"]["Source"])
    assert (recipe["about"]["license"], recipe["about"]["homepage"]) == (project["license"], project["urls"]["Source"])
