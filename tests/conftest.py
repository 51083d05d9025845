"""Shared fixtures: the same test over every kind of frame, and the development tables."""

import gc
import os
import sys

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # several tests at a time: boosters' threads would spin for cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # likewise: a thread per core and test fights the next test's
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["SCIPY_ARRAY_API"] = "1"  # before scipy is imported: scikit-learn skips checks without it
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as containers set it: each process would compile the package anew

from pathlib import Path

import pandas as pd
import pytest

from tabsym.jit import compilation_notice

sys.dont_write_bytecode = False
compilation_notice.is_due = False  # tests that no warning is given pass on a machine without compiled kernels, too

FRAMES = ["pandas-str", "pandas-object", "pandas-category", "pandas-arrow", "polars", "polars-lazy", "pyarrow"]


def as_frame(columns: dict, kind: str):
    """A frame of the kind named, from plain columns."""
    if kind.startswith("pandas"):
        frame = pd.DataFrame({name: pd.Series(values, dtype=_dtype(values, kind)) for name, values in columns.items()})
        return frame
    if kind == "pyarrow":
        import pyarrow as pa

        return pa.table(columns)
    import polars as pl

    frame = pl.DataFrame(columns, strict=False)
    return frame.lazy() if kind == "polars-lazy" else frame


def _dtype(values, kind):
    text = any(isinstance(value, str) for value in values)
    if not text:
        return None
    return {
        "pandas-str": "str",
        "pandas-object": object,
        "pandas-category": "category",
        "pandas-arrow": "string[pyarrow]",
    }[kind]


_FIRST = ("tests/package/test_golden.py", "tests/integrations/test_torch.py")
"""The first two workers begin with the file that compiles most of the kernels, and with one that needs none of them."""

_SLOW_DOCTESTS = ("tabsym.compare.run.compare", "tabsym.compare.run.compare_tables", "tabsym.compare.comparison.load")


def pytest_configure(config):
    """Filters of warnings by class: in pyproject.toml they would import scikit-learn before the number of threads."""
    config.addinivalue_line("filterwarnings", "ignore::sklearn.exceptions.SkipTestWarning")
    config.addinivalue_line("filterwarnings", "error::numba.core.errors.NumbaPerformanceWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what the daily run (``-m "not slow"``) leaves out besides what is marked: grids but for their ends."""
    items.sort(key=lambda item: (*_FIRST, item.nodeid.partition("::")[0]).index(item.nodeid.partition("::")[0]))
    grids = {}
    for item in items:
        grids.setdefault(item.nodeid.partition("[")[0], []).append(item)
        if item.name in _SLOW_DOCTESTS:
            from tests.in_process import contenders_in_process

            item.add_marker("slow")
            item.runtest = contenders_in_process()(item.runtest)
    for cases in grids.values():
        for item in cases[1:-1]:
            item.add_marker("slow")


def pytest_collection_finish():
    """What libraries and tests hold is not looked through again at every collection of garbage."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session, exitstatus):
    """In CI a skip is a failure, unless it says that the development tables or an optional engine are not there."""
    if not os.environ.get("TABSYM_CI"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = [] if reporter is None else reporter.stats.get("skipped", [])
    allowed = ("TABSYM_DATA", "optional engine")
    wrong = [report for report in skipped if not any(word in str(report.longrepr) for word in allowed)]
    for report in wrong:
        reporter.write_line(f"skipped in CI: {report.nodeid}: {report.longrepr}")
    if wrong:
        session.exitstatus = 1


@pytest.fixture(params=FRAMES)
def make_frame(request):
    kind = request.param
    return lambda columns: as_frame(columns, kind)


@pytest.fixture
def in_process(request):
    """Contenders of `compare` run in the test's own process, unless the test is marked `processes`."""
    from tests.in_process import contenders_in_process, without_pictures

    with without_pictures() if request.node.get_closest_marker("processes") else contenders_in_process():
        yield


@pytest.fixture
def data_folder():
    folder = os.environ.get("TABSYM_DATA")
    if not folder or not Path(folder).is_dir():
        if os.environ.get("TABSYM_CI") and folder:
            pytest.fail(f"TABSYM_DATA={folder} is no folder")
        pytest.skip("set TABSYM_DATA to the folder of the development tables to run this test")
    return folder
