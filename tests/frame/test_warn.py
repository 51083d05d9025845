"""Warnings name the line that called us: each is shown once a line."""

import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

from tabsym import MODLEncoder, OneHotEncoder, WideClassifier, WideSGDClassifier, messages
from tabsym.models import fitting
from tests.options import ADDITIVE

HERE = str(Path(__file__))
TABLE = pd.DataFrame({"colour": ["red", "blue", "green", "red"] * 30, "size": ["s", "m", "l"] * 40})
Y = np.tile([0, 1, 1, 0, 1, 0], 20)
NEW = pd.DataFrame({"colour": ["black"], "size": ["s"]})


def one_hot():
    encoder = OneHotEncoder(handle_unknown="warn").fit(TABLE)
    return lambda: encoder.transform(NEW)


def one_hot_of_frames():
    encoder = OneHotEncoder(handle_unknown="warn").set_output(transform="pandas").fit(TABLE)
    return lambda: encoder.transform(NEW)


def pipeline():
    model = make_pipeline(OneHotEncoder(handle_unknown="warn"), LogisticRegression()).fit(TABLE, Y)
    return lambda: model.predict(NEW)


def solved():
    model = WideClassifier("w[colour] + 1")  # of a constant without a coefficient
    return lambda: model.fit(TABLE, Y)


def folds():
    model = WideClassifier("w[colour] + 1")  # of a constant without a coefficient
    return lambda: cross_val_predict(model, TABLE, Y, cv=3)


def trainer():
    model = WideSGDClassifier(learning_rate=1e-9)
    return lambda: model.fit(TABLE, Y)


def names():
    model = WideSGDClassifier().fit(TABLE, Y)
    return lambda: model.predict(NEW.to_numpy())


def modl():
    return lambda: MODLEncoder().fit(TABLE, Y, sample_weight=np.full(len(Y), 1e-3))


@pytest.mark.parametrize(
    "begin",
    [one_hot, one_hot_of_frames, pipeline, solved, folds, trainer, names, modl],
    ids=lambda begin: begin.__name__,
)
def test_the_line_of_the_user_is_named(begin):
    call = begin()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    assert {(warning.filename, warning.lineno) for warning in seen} == {(HERE, call.__code__.co_firstlineno)}


def test_the_line_that_imports_is_named(tmp_path, monkeypatch):
    """Python leaves the frames of imports out where it counts them; a module that imports another is of the package."""
    (tmp_path / "warns_inside.py").write_text("from tabsym.messages import warn_user\nwarn_user('at import')\n")
    (tmp_path / "warns_when_imported.py").write_text("import warns_inside\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(messages, "_OURS", str(tmp_path))
    with pytest.warns(UserWarning, match="at import") as seen:
        importer = lambda: __import__("warns_when_imported")  # noqa: E731
        importer()
    assert [(warning.filename, warning.lineno) for warning in seen] == [(HERE, importer.__code__.co_firstlineno)]


def test_progress_is_a_line_of_standard_error(capsys):
    messages.show_progress(0, "not shown")
    messages.show_progress(1, "one")
    messages.show_progress(2, "two")
    assert capsys.readouterr() == ("", "one\ntwo\n")


@pytest.mark.filterwarnings("error")
def test_coefficients_of_many_classes_are_no_reason_to_warn():
    """pandas found a frame that got its columns one by one fragmented."""
    model = WideClassifier(**ADDITIVE).fit(pd.DataFrame({"a": ["u", "v"] * 150}), np.arange(300) % 150)
    assert model.coefs_["a"].shape == (2, 301)


def test_fits_use_one_blas_thread_and_put_the_processes_own_number_back(monkeypatch):
    """Also where several run at once, and where one fails."""

    def number():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    seen, solve = [], fitting.solve
    monkeypatch.setattr(fitting, "solve", lambda *given: seen.append(number()) or solve(*given))
    model = WideClassifier(alpha=1e-3, **ADDITIVE)
    with threadpool_limits(2):
        before = number()
        model.fit(TABLE, Y)
        assert seen == [{1}]
        assert number() == before
        threads = [threading.Thread(target=lambda: clone(model).fit(TABLE, Y)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 5
        assert number() == before
        monkeypatch.setattr(fitting, "solve", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.fit(TABLE, Y)
        assert number() == before
