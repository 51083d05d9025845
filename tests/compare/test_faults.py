"""Hostile contenders and damaged folders: each fault is its own contender's or fold's, and is said."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import psutil
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tabsym import OneHotEncoder
from tabsym.compare import compare, workers
from tabsym.compare.machine import owned
from tabsym.compare.results import Results, load_results, prediction_path
from tabsym.compare.workers import Runner
from tests.in_process import contenders_in_process, without_pictures

FORGED = {"fold": 0, "error": "forged"}
NAP = "60.0417"


class Unsaid(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def write_everywhere():
    for descriptor in range(3, 31):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"\x00garbage")


def close_all_that_prints():
    sys.stdout.close()
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def forget_where_it_is():
    os.chdir("/")
    os.environ.clear()


def take_too_much():
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + (1 << 28), resource.RLIM_INFINITY))
    np.ones(1 << 30)


def fail(error):
    raise error


def print_all_sorts():
    if sys.stdout.closed:  # at the second time
        return
    os.write(1, b"entra\xeenement\n@tabsym {}\nprogress 10%")
    for mark in ("", "@tabsym "):
        os.write(1, f"\n{mark}{json.dumps(FORGED)}\n".encode())
    for _ in range(10):
        os.write(1, b"x" * (1 << 20))
    close_all_that_prints()


def leave_behind():
    subprocess.Popen(["sleep", NAP])
    subprocess.Popen(["sleep", NAP], start_new_session=True)
    subprocess.run(["sh", "-c", f"sleep {NAP} & sleep {NAP} &"], start_new_session=True, check=True)
    threading.Thread(target=time.sleep, args=(60,)).start()
    forget_where_it_is()


def forge_with_the_token():
    """An event with the token of the job, as code in the same process can find it."""
    frame, found = sys._getframe(), {}
    while frame is not None:
        found |= {name: frame.f_locals[name] for name in ("pipe", "token") if name in frame.f_locals}
        frame = frame.f_back
    os.write(found["pipe"], (json.dumps(FORGED | {"token": found["token"]}) + "\n").encode())


# What each does in `fit`; and how it is named, None where it does no harm
DEEDS = {
    "prints": (print_all_sorts, None),
    "leaves": (leave_behind, None),
    "garbage": (write_everywhere, "ended with status"),
    "fork": (os.fork, ...),  # both return, so that it may be done twice, or be no result at all
    "exit": (lambda: sys.exit(0), "ended with status 0"),
    "hard exit": (lambda: os._exit(0), "ended with status 0"),
    "abort": (os.abort, "SIGABRT"),
    "kill": (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
    "orphan": (lambda: os.kill(os.getppid(), signal.SIGKILL) or time.sleep(5), "SIGKILL"),
    "stops": (lambda: os.kill(os.getppid(), signal.SIGSTOP), None),
    "forges": (forge_with_the_token, "fold 1: forged"),
    "interrupt": (lambda: fail(KeyboardInterrupt), "ended with|SIGINT"),
    "memory": (lambda: fail(MemoryError), "MemoryError"),
    "limit": (take_too_much, "MemoryError"),
    "unsaid": (lambda: fail(Unsaid()), "no words|Unsaid"),
    "words": (lambda: fail(ValueError("\n\nhalf \ud800 \x1b[31m " + "x" * 100_000 + "\nmore")), "ValueError: half"),
    "nan": (lambda: None, "NaN"),
    "twice": (lambda: None, "sum to 1|between 0 and 1"),
    "shape": (lambda: None, r"its predict_proba gave an array of shape \(99, 2\), not \(100, 2\)"),
    "flat": (lambda: None, r"its predict_proba gave an array of shape \(100,\), not \(100, 2\)"),
    "complex": (lambda: None, "its predict_proba gave complex numbers"),
}
CHANGED = {
    "nan": lambda p: p * np.nan,
    "twice": lambda p: p * [1, 0.5],
    "shape": lambda p: p[:-1],
    "flat": lambda p: p[:, 1],
    "complex": lambda p: p + 0j,
}


class Hostile(LogisticRegression):
    def __init__(self, deed="none"):
        super().__init__()
        self.deed = deed

    def fit(self, X, y):
        shutil.rmtree(sys.argv[1]) if self.deed == "removes" else DEEDS[self.deed][0]()
        return super().fit(X, y)

    def predict_proba(self, X):
        p = super().predict_proba(X)
        return CHANGED[self.deed](p) if self.deed in CHANGED and len(p) > 1 else p


@pytest.fixture(autouse=True)
def no_pictures():
    with without_pictures():
        yield


@pytest.fixture
def table():
    draw = np.random.default_rng(0)
    return pd.DataFrame({"a": draw.choice(list("uvw"), 200), "y": draw.choice(["n", "p"], 200)})


def run(table, out, deeds, **options):
    contenders = {deed: make_pipeline(OneHotEncoder(), Hostile(deed)) for deed in deeds}
    contenders["good"] = make_pipeline(OneHotEncoder(), LogisticRegression())
    return compare(table, "y", contenders=contenders, folds=2, out=out, quiet=True, time_limit=100, **options)


def same(first, other, name):
    """Whether a contender's scores and predictions are the same, bit for bit."""
    a, b = (load_results(done.folder).contenders[name]["folds"] for done in (first, other))
    assert [a[fold]["scores"] for fold in ("0", "1")] == [b[fold]["scores"] for fold in ("0", "1")]
    for fold in (0, 1):
        paths = [prediction_path(done.folder, name, fold) for done in (first, other)]
        assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.slow
def test_hostile_contenders_harm_only_themselves(table, tmp_path, capfd):
    done = run(table, tmp_path / "out", DEEDS, jobs=3)
    with contenders_in_process():
        alone = run(table, tmp_path / "alone", [])
    ranked = set(done.ranking["name"])
    assert {"constant", "good"} <= ranked
    same(done, alone, "good")
    same(done, alone, "constant")
    for deed, (_, why) in DEEDS.items():
        if why is None:
            assert deed in ranked, f"{deed}: {done.failures.get(deed)}"
            assert deed not in done.failures
        else:
            assert deed in ranked or deed in done.failures, deed
    for deed, why in done.failures.items():
        assert DEEDS[deed][1] is ... or re.search(DEEDS[deed][1], why), f"{deed}: {why}"
        assert why.isprintable()
        assert len(why) <= 600
    assert {deed for deed, (_, why) in DEEDS.items() if isinstance(why, str)} <= set(done.failures)
    assert not load_results(done.folder).contenders["forges"]["folds"]  # so that it is not complete when resumed
    assert not any(NAP in " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    assert "Traceback" not in capfd.readouterr().err


def abort():
    print("terminate called after throwing an instance of 'std::bad_alloc'", file=sys.stderr, flush=True)
    os.abort()


HUNGRY = {
    "takes": lambda: np.ones(375_000_000),
    "aborts": abort,
    "reserves": lambda: bytearray(3 * 10**9),
    "unsaid": lambda: fail(Unsaid()),  # which has nothing to do with memory
}


class Hungry(LogisticRegression):
    def __init__(self, deed="takes"):
        super().__init__()
        self.deed = deed

    def fit(self, X, y):
        HUNGRY[self.deed]()
        return super().fit(X, y)


@pytest.mark.slow
def test_more_memory_than_the_limit_is_refused_and_the_others_go_on(table, tmp_path):
    options = {"folds": 2, "out": tmp_path / "o", "quiet": True}
    contenders = {deed: make_pipeline(OneHotEncoder(), Hungry(deed)) for deed in HUNGRY} | {"onehot-linear": None}
    done = compare(table, "y", contenders=contenders, memory_limit=1, **options)
    assert set(done.ranking["name"]) == {"constant", "onehot-linear"}
    assert done.failures["takes"] == done.failures["reserves"] == "fold 1: took more than the memory limit of 1 GB"
    assert done.failures["aborts"] == "took more than the memory limit of 1 GB after 0 of 2 folds"
    assert done.failures["unsaid"] == "fold 1: Unsaid"
    body = json.loads((tmp_path / "o" / "results.json").read_text())
    assert body["settings"]["memory_limit"] == 1
    assert body["contenders"]["takes"]["error"] == done.failures["takes"]
    assert "took more than the memory limit of 1 GB" in (tmp_path / "o" / "report.html").read_text()
    contenders = {name: one for name, one in contenders.items() if name in ("onehot-linear", "reserves")}
    again = compare(table, "y", contenders=contenders, resume=True, memory_limit=8, **options)
    assert set(again.ranking["name"]) == {"constant", "onehot-linear", "reserves"}


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_memory_limits_that_are_not_possible(table, tmp_path, limit):
    with pytest.raises(ValueError, match=r"memory_limit=.* is not possible; use a number of gigabytes above 0"):
        compare(table, "y", memory_limit=limit, out=tmp_path / "o")


def test_a_memory_limit_is_refused_where_the_system_has_none(table, tmp_path, monkeypatch):
    monkeypatch.setattr("tabsym.compare.machine.sys.platform", "darwin")
    with pytest.raises(ValueError, match="this system limits no process's memory; leave it out"):
        compare(table, "y", memory_limit=2, out=tmp_path / "o")


@pytest.mark.slow
def test_one_that_removes_its_files_harms_only_itself(table, tmp_path):
    done = run(table, tmp_path / "out", ["removes"])
    assert set(done.failures) == {"removes"}
    assert set(done.ranking["name"]) == {"constant", "good"}


def test_what_went_wrong_is_one_line_that_can_be_written(tmp_path):
    results = Results({"metric": "auc", "n_splits": 2, "larger_is_better": True})
    results.fail("a", "A", "half \ud800\nof \x1b[31m it" + "x" * 10_000)
    results.fail("b", "B", "")
    results.save(tmp_path)
    words = load_results(tmp_path).contenders["a"]["error"]
    assert words.isprintable()
    assert len(words) == 500
    assert load_results(tmp_path).contenders["b"]["error"]


@pytest.mark.slow
def test_folders_are_mended(table, tmp_path):
    out = tmp_path / "out"
    first = run(table, out, ["prints"])
    assert set(first.ranking["name"]) == {"constant", "prints", "good"}
    body = json.loads((out / "results.json").read_text())
    body["contenders"]["prints"]["folds"]["7"] = {}
    body["contenders"]["ghost"] = 3
    (out / "results.json").write_text(json.dumps(body))
    (out / "predictions" / "prints" / "0.npy").write_bytes(b"")
    again = run(table, out, ["prints"], resume=True)
    pd.testing.assert_frame_equal(first.ranking[["name", "score"]], again.ranking[["name", "score"]])


def test_a_folder_has_one_owner(table, tmp_path):
    with owned(tmp_path), pytest.raises(ValueError, match="Another comparison is writing"):
        run(table, tmp_path, [])


@pytest.mark.slow
def test_ctrl_c_waits_for_whoever_still_writes(table, tmp_path, monkeypatch):
    """`Thread.join` takes a thread for ended when Ctrl-C interrupts it: results were written by two at a time."""
    ended = []

    def run_slowly(self, contender, todo, place, workers):
        time.sleep(0.3)  # by then it is waited for
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(3)
        ended.append(contender.name)

    monkeypatch.setattr(Runner, "_run_one", run_slowly)
    with pytest.raises(KeyboardInterrupt):
        compare(table, "y", contenders=["constant", "onehot-linear"], folds=2, out=tmp_path / "o", quiet=True)
    assert ended == ["constant"]  # and the second was not begun


class Naps(LogisticRegression):
    def fit(self, X, y):
        time.sleep(60)


@pytest.mark.parametrize("can_fork", [workers.CAN_FORK, False])
@pytest.mark.slow
def test_ctrl_c_before_a_process_is_listed_stops_it_too(table, tmp_path, monkeypatch, can_fork):
    begin, started = workers.Workers.start, []

    def interrupt_second(self, channel):
        started.append(channel)
        if len(started) == 2:  # the first is the constant's
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(0.3)  # meanwhile the processes that are known are killed
        return begin(self, channel)

    monkeypatch.setattr(workers, "CAN_FORK", can_fork)
    monkeypatch.setattr(workers.Workers, "start", interrupt_second)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        contenders = {"naps": make_pipeline(OneHotEncoder(), Naps())}
        compare(table, "y", contenders=contenders, folds=2, out=tmp_path / "o", quiet=True)
    assert time.monotonic() - began < 40
    assert load_results(tmp_path / "o").contenders["naps"]["error"] == "interrupted after 0 of 2 folds"
