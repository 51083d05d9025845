"""Whether a contender of the user's own has changed, told without running or importing any of it."""

import json
import os
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from tabsym import compare
from tabsym.cli import main
from tabsym.compare.contenders import digest_of, digest_of_address
from tabsym.compare.metrics import Metric
from tabsym.datasets import make_retail

pytestmark = pytest.mark.usefixtures("in_process")

SALES = make_retail(240)


class Holder(RegressorMixin, BaseEstimator):
    """Predicts the largest of what it holds."""

    def __init__(self, held=None):
        self.held = held

    def fit(self, X, y):
        self.largest_ = 0.0 if self.held is None else float(np.max(self.held))
        return self

    def predict(self, X):
        return np.full(len(X), self.largest_)


def shifted(by):
    return lambda x: x + by


def holding(place, value):
    held = np.zeros(5000)
    held[place] = value
    return held


PAIRS = {
    "arrays": (holding(2500, 1.0), holding(2500, 2.0)),
    "the last digits": (np.zeros(3), np.full(3, 1e-9)),
    "frames": (pd.DataFrame({"a": range(500)}), pd.DataFrame({"a": [*range(250), 0, *range(251, 500)]})),
    "functions": (lambda x: x + 1, lambda x: x + 2),
    "functions in functions": (lambda x: [y + 1 for y in x], lambda x: [y + 2 for y in x]),
    "what functions hold": (shifted(1), shifted(2)),
    "parts of functions": (partial(max, 1), partial(max, 2)),
    "random states": (np.random.RandomState(0), np.random.RandomState(1)),
    "generators": (np.random.default_rng(0), np.random.default_rng(1)),
    "distributions": (scipy.stats.loguniform(0.1, 1), scipy.stats.loguniform(0.1, 2)),
    "classes": (Ridge, DummyRegressor),
    "sets": ({"a", "b"}, {"a", "c"}),
    "nested": ([{"deep": (1, [2])}], [{"deep": (1, [3])}]),
    "estimators": (make_pipeline(OneHotEncoder(), Ridge(1.0)), make_pipeline(OneHotEncoder(), Ridge(2.0))),
}


@pytest.mark.parametrize("what", PAIRS)
def test_what_differs_has_another_digest_and_what_does_not_the_same(what):
    first, second = PAIRS[what]
    assert digest_of(Holder(first)) == digest_of(Holder(first)) is not None
    assert digest_of(Holder(first)) != digest_of(Holder(second))
    assert digest_of(Holder(), {"held": [first]}) != digest_of(Holder(), {"held": [second]})  # the space


@pytest.mark.slow
def test_digests_are_those_of_other_processes():
    """The order of sets, addresses in memory and the state of all random numbers are of this one alone."""
    code = (
        "import scipy.stats\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import FunctionTransformer\n"
        "from sklearn.linear_model import Ridge\n"
        "from tabsym.compare.contenders import digest_of\n"
        "words = {'alpha', 'beta', 'gamma', 'delta'}\n"
        "function = lambda x: x if 'a' in {'a', 'b', 'c'} else -x\n"
        "print(digest_of(make_pipeline(FunctionTransformer(function, kw_args={'w': words}), Ridge()),\n"
        "                {'ridge__alpha': scipy.stats.loguniform(0.1, 1.0)}))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1 and found != {"None\n"}


def test_nothing_of_the_users_is_imported_and_no_error_of_theirs_gets_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_package").mkdir()
    (tmp_path / "broken_package" / "__init__.py").write_text("raise SystemExit(3)")
    (tmp_path / "broken_package" / "inside.py").write_text("make = 1")
    (tmp_path / "nested_space" / "below").mkdir(parents=True)
    (tmp_path / "nested_space" / "below" / "one.py").write_text("make = 2")
    assert digest_of_address("broken_package.inside:make") is not None
    assert digest_of_address("nested_space.below.one:make") is not None
    assert "broken_package" not in sys.modules
    for address in ("sys:exit", "nowhere.at.all:make", "broken_package.inside.deeper:make", "..:x"):
        assert digest_of_address(address) is None


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no text")

    def __reduce__(self):
        raise RuntimeError("no copy")


class Nameless(RegressorMixin, BaseEstimator):
    """Whose parameters cannot be read."""

    def __init__(self, k=1):
        self._k = k

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_what_cannot_be_told_is_no_error(tmp_path):
    assert digest_of(Holder(Unspeakable())) is None
    result = compare(SALES, "sales", contenders={"mine": Nameless()}, folds=2, out=tmp_path / "o", quiet=True)
    assert result.ranking["name"].tolist() == ["constant"]
    assert "'Nameless' object has no attribute 'k'" in result.failures["mine"]


def test_what_cannot_be_told_is_run_anew(tmp_path, capsys):
    class Lazy:
        def __init__(self):
            self.value = lambda: 30.0

    class Waiting(Holder):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), self.held.value())

    assert digest_of(Waiting(Lazy())) is None
    options = {"contenders": {"mine": Waiting(Lazy())}, "folds": 2, "out": tmp_path / "o"}
    first = compare(SALES, "sales", quiet=True, **options)
    assert not first.failures
    compare(SALES, "sales", resume=True, **options)
    said = "mine is run again: whether the estimator or its space has changed is unknown."
    assert said in capsys.readouterr().out


@pytest.mark.slow
def test_another_space_is_run_anew(tmp_path, capsys):
    pipe = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    options = {"folds": 2, "out": tmp_path / "o", "tune": 2}
    for alphas in ([0.1, 1.0], [1e8, 1e9]):
        done = (tmp_path / "o").exists()
        compare(SALES, "sales", contenders={"mine": (pipe, {"ridge__alpha": alphas})}, resume=done, **options)
    assert "mine is run again: the estimator or its space has changed." in capsys.readouterr().out


@pytest.mark.slow
def test_results_of_before_there_were_digests_are_gone_on_with(tmp_path, capsys):
    pipe = make_pipeline(FunctionTransformer(lambda X: X[["units"]] if "units" in X else X.iloc[:, -1:]), Ridge())
    options = {"contenders": {"mine": pipe}, "folds": 2, "out": tmp_path / "o"}
    compare(SALES.assign(units=1.0), "sales", quiet=True, **options)
    path = tmp_path / "o" / "results.json"
    results = json.loads(path.read_text())
    for entry in results["contenders"].values():
        del entry["made_by"]
    path.write_text(json.dumps(results))
    compare(SALES.assign(units=1.0), "sales", resume=True, **options)
    assert "run again" not in capsys.readouterr().out


@pytest.mark.slow
def test_the_installed_command_finds_changed_code_in_the_working_folder(tmp_path, monkeypatch):
    """Its own folder, not the working one, is the first that it imports from."""
    module = tmp_path / "code_of_mine.py"
    text = "from sklearn.dummy import DummyRegressor\n\n\ndef make():\n    return DummyRegressor({})\n"
    run = "import sys; sys.path = [p for p in sys.path if p]; from tabsym.cli import main; sys.exit(main(sys.argv[1:]))"
    asked = ["compare", "--contenders", "constant", "--contender", "mine=code_of_mine:make", "--folds", "2"]
    asked += ["--out", str(tmp_path / "o")]
    module.write_text(text.format(""))
    monkeypatch.chdir(tmp_path)
    assert main([*asked, "--quiet"]) == 0
    results = json.loads((tmp_path / "o" / "results.json").read_text())
    assert results["contenders"]["mine"]["made_by"] is not None
    module.write_text(text.format('strategy="constant", constant=0.0'))
    done = subprocess.run([sys.executable, "-c", run, *asked, "--resume"], capture_output=True, text=True, check=True)
    assert "mine is run again: the code of code_of_mine has changed." in done.stdout


SCALE = 1.0


def scaled(X):
    return X[["week"]].astype(float) * SCALE


def prepared(X):
    return scaled(X)


class Learner(BaseEstimator):
    """A class of the user's own, with a method that calls a function."""

    def fit(self, X, y):
        return scaled(X)


@pytest.mark.parametrize("make", [lambda: FunctionTransformer(prepared), Learner], ids=["function", "class"])
def test_what_functions_and_classes_of_ones_own_call_is_told(make, monkeypatch):
    """In a notebook a helper is edited, and what calls it is the same as before."""
    before = digest_of(make())
    assert digest_of(make()) == before
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert digest_of(make()) != before
    monkeypatch.undo()
    assert digest_of(make()) == before
    monkeypatch.setitem(globals(), "scaled", lambda X: X[["price"]])
    assert digest_of(make()) != before
    monkeypatch.undo()
    monkeypatch.setattr(Learner, "fit", lambda self, X, y: self)
    assert (digest_of(make()) != before) == (make is Learner)


def test_functions_that_call_each_other_are_told():
    def one(X, again=None):
        return again

    one.__defaults__ = (one,)
    assert digest_of(FunctionTransformer(one)) is not None


COSTS = {
    "cost": lambda y, p: float(np.mean(np.abs(p - y))),
    "other": lambda y, p: float(np.mean(np.where(p < y, 30, 10) * np.abs(p - y))),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "is_larger"), [("other", False), ("cost", True)])
def test_another_metric_of_the_same_name_is_not_gone_on_with(tmp_path, name, is_larger):
    """Its scores would be ranked beside those of the first."""
    options = {"contenders": ["onehot-linear"], "folds": 2, "out": tmp_path / "out", "quiet": True}
    first = compare(SALES, "sales", metric=Metric("cost", False, COSTS["cost"]), **options)
    again = compare(SALES, "sales", metric=Metric("cost", False, COSTS["cost"]), resume=True, **options)
    assert again.ranking["score"].tolist() == first.ranking["score"].tolist()
    with pytest.raises(ValueError, match="the metric of that name computes something else"):
        compare(SALES, "sales", metric=Metric("cost", is_larger, COSTS[name]), resume=True, **options)


class Cost:
    """A metric with state, as an object that is called."""

    def __call__(self, y, p):
        return float(np.abs(y - p).mean())


COST, BY_NAME, mean = Cost(), {"a": 1.0}, 0.1


def of_object(y, p):
    return COST(y, p)


def of_dict(y, p):
    return BY_NAME["a"]


def of_attribute(y, p):
    return float((y - p).mean())


@pytest.mark.parametrize("what", [COST, COST.__call__, of_object], ids=["object", "method", "function"])
def test_what_an_object_of_a_class_of_ones_own_does_is_told(what, monkeypatch):
    before = digest_of(what)
    assert digest_of(what) == before
    monkeypatch.setattr(Cost, "__call__", lambda self, y, p: 0.0)
    assert digest_of(COST.__call__ if what not in (COST, of_object) else what) != before


def test_what_is_read_is_told_and_attributes_are_not_globals(monkeypatch):
    by_dict, by_attribute = digest_of(of_dict), digest_of(of_attribute)
    monkeypatch.setitem(globals(), "BY_NAME", {"a": 2.0})
    monkeypatch.setitem(globals(), "mean", 0.2)
    assert digest_of(of_dict) != by_dict
    assert digest_of(of_attribute) == by_attribute


def written_by_other_versions(folder, *, dropped):
    """Results as if numpy 1.0 had been installed when they were made; without one fold where `dropped`."""
    path = folder / "results.json"
    results = json.loads(path.read_text())
    for entry in results["contenders"].values():
        entry["versions"] = re.sub("numpy [^,]*", "numpy 1.0", entry["versions"])
        if dropped:
            del entry["folds"]["1"]
    path.write_text(json.dumps(results))


@pytest.mark.slow
@pytest.mark.parametrize("dropped", [True, False])
def test_no_contender_has_folds_of_two_versions_of_a_library(dropped, tmp_path, capsys):
    own = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    options = {"contenders": {"mine": own}, "folds": 2}
    options |= {"out": tmp_path / "o"}
    compare(SALES, "sales", quiet=True, **options)
    written = json.loads((tmp_path / "o" / "results.json").read_text())["contenders"]
    assert "lightgbm" in written["mine"]["versions"]  # which one's own may use
    assert "lightgbm" not in written["constant"]["versions"]
    written_by_other_versions(tmp_path / "o", dropped=dropped)
    for _ in range(2):
        compare(SALES, "sales", resume=True, **options)
        said = capsys.readouterr().out
        results = json.loads((tmp_path / "o" / "results.json").read_text())
        if dropped:
            assert f"mine is run again: numpy 1.0 then, numpy {np.__version__} now." in said
            assert f"numpy {np.__version__}" in results["contenders"]["mine"]["versions"]
            break
        sentence = f"mine keeps its results of other versions: numpy 1.0 then, numpy {np.__version__} now."
        assert sentence in said
        assert sentence in results["settings"]["notes"]
        assert sentence in (tmp_path / "o" / "report.html").read_text()
