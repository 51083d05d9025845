"""A core install without the extra, and an install where neither the package's folder nor the home can be written."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tabsym.jit import own_temporary_folder

pytestmark = pytest.mark.slow

CORE_ONLY = """
import sys
import joblib  # needs cloudpickle of its own

ABSENT = ("psutil cloudpickle jinja2 rich matplotlib pyarrow lightgbm xgboost catboost category_encoders polars torch "
          "openpyxl").split()

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in [name for name in sys.modules if name.partition(".")[0] in ABSENT]:
    del sys.modules[name]
sys.meta_path.insert(0, Absent())

from tabsym import *
import pydoc
import tabsym
import tabsym.compare
from tabsym.compare import compare as same, load
from tabsym.cli import main

assert [getattr(tabsym, name) for name in dir(tabsym)]
assert all(name in globals() for name in tabsym.__all__)
assert pydoc.render_doc(tabsym.compare)
try:
    load("nosuch.skops")
except FileNotFoundError:
    pass
for function in (compare, same, tabsym.compare, tabsym.compare.compare):
    try:
        function()
    except ModuleNotFoundError as error:
        assert 'pip install "tabsym[compare]"' in str(error), error
    else:
        raise AssertionError("compare() should need the extra")
assert main(["compare"]) == 2
"""

FIT = """
import numba.core.caching as caching
impl = getattr(caching, "CacheImpl", None) or caching._CacheImpl
impl._locator_classes = [caching.UserProvidedCacheLocator]  # neither beside the source nor at home
import numpy as np
from tabsym import OneHotEncoder
from tabsym.categories.kernels import mark_used
OneHotEncoder().fit([["a"], ["b"]])
assert mark_used(np.array([0, 2]), 3).tolist() == [True, False, True]  # a kernel that is quick to compile
"""

AND_A_CHILD = FIT + "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"


def run(code, *arguments, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-W", "default::UserWarning", "-c", code, *arguments],
        env=kept | environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_every_public_name_is_there_without_the_extra():
    done = run(CORE_ONLY)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "tabsym compare needs" in done.stderr and 'pip install "tabsym[compare]"' in done.stderr


def test_kernels_are_kept_in_a_temporary_folder_that_processes_share(tmp_path):
    done = run(AND_A_CHILD, FIT, TMPDIR=str(tmp_path), HOME="/proc/nope")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Warning") == done.stderr.count("NUMBA_CACHE_DIR") == 1, done.stderr
    (folder,) = tmp_path.glob("tabsym-numba*")
    assert str(folder) in done.stderr
    kernels = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")}
    assert kernels
    again = run(FIT, TMPDIR=str(tmp_path), HOME="/proc/nope")
    assert again.stderr.count("Warning") == again.stderr.count("NUMBA_CACHE_DIR") == 1, again.stderr
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")} == kernels


def test_kernels_are_compiled_anew_where_no_folder_is_safe(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for name in ("tabsym-numba", f"tabsym-numba-{user()}"):
        (tmp_path / name).symlink_to(other)
    done = run(FIT, TMPDIR=str(tmp_path), HOME="/proc/nope")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Warning") == done.stderr.count("NUMBA_CACHE_DIR") == 1, done.stderr
    assert not list(other.iterdir())


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def user():
    return os.getuid() if hasattr(os, "getuid") else ""


def test_a_temporary_folder_is_made_once_for_this_user_alone(temporary):
    folder = Path(own_temporary_folder("ours"))
    assert own_temporary_folder("ours") == str(folder)
    assert folder.parent == temporary.resolve()
    assert os.name == "nt" or stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name == "nt", reason="Windows has a temporary folder for each user")
def test_a_temporary_folder_that_could_be_anothers_is_not_taken(temporary):
    path = temporary / f"ours-{user()}"
    path.write_text("a file")
    assert own_temporary_folder("ours") is None
    path.unlink()
    (temporary / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(temporary / "elsewhere")
    assert own_temporary_folder("ours") is None
    path.unlink()
    path.mkdir()
    path.chmod(0o777)
    assert own_temporary_folder("ours") is None
    path.chmod(0o700)
    assert own_temporary_folder("ours") == str(path.resolve())
    temporary.chmod(0o777)  # without the sticky bit others could put a folder in its place
    assert own_temporary_folder("ours") is None
    temporary.chmod(0o1777)
    assert own_temporary_folder("ours") == str(path.resolve())
    temporary.chmod(0o700)


@pytest.mark.skipif(user() != 0, reason="only root can hand a folder to another user")
def test_a_temporary_folder_of_another_user_is_not_taken(temporary):
    path = temporary / "ours-0"
    path.mkdir(mode=0o700)
    os.chown(path, 65534, 65534)
    assert own_temporary_folder("ours") is None


def test_without_any_temporary_folder_there_is_none(monkeypatch):
    def nowhere():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    assert own_temporary_folder("ours") is None
