"""Winners of all contenders are written and read; the explicit list is what they and the estimators hold."""

import dataclasses
import importlib
import inspect
import json
import re
import zipfile

import category_encoders
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from tabsym import CrossFit, DateParts, OneHotEncoder, WideClassifier, WideRegressor, WideSGDRegressor
from tabsym.compare import load
from tabsym.compare.comparison import train_best
from tabsym.compare.contenders import all_contenders
from tabsym.compare.metrics import choose_metric
from tabsym.compare.splits import SplitPlan
from tabsym.compare.table.prepare import TASKS, prepare
from tabsym.datasets import make_retail
from tabsym.export import load as load_any
from tabsym.export import save, trusted_types
from tabsym.export.check import CLASSES, FUNCTIONS, LISTS
from tests.saved_models import fitted

SALES = make_retail(80)[["store", "colour", "week", "price", "sales"]]
ROUNDS = re.compile(r"(.*__)?(n_estimators|iterations|max_iter)$")
pytestmark = pytest.mark.slow
OTHERS = [
    DateParts().fit(pd.DataFrame({"at": ["2024-02-29 10:30", "2024-03-01 11:00"]})),
    CrossFit(TargetEncoder()).fit(pd.DataFrame({"a": list("uvw") * 9}), list("xyz") * 9),
    CrossFit(TargetEncoder()).fit(pd.DataFrame({"a": list("uvw") * 9}), list("xyy") * 9),
    CrossFit(category_encoders.TargetEncoder()).fit(pd.DataFrame({"a": list("uvw") * 9}), [0, 1, 1] * 9),
    WideSGDRegressor(offset_column="o").fit(pd.DataFrame({"a": list("uv") * 9, "o": np.ones(18)}), np.arange(18.0)),
    *(
        make_pipeline(OneHotEncoder(), HistGradientBoostingRegressor(max_iter=2, **options)).fit(
            pd.DataFrame({"a": list("uv") * 20}), np.arange(1.0, 41.0)
        )
        for options in ({"loss": "gamma"}, {"loss": "absolute_error"}, {"loss": "quantile", "quantile": 0.3})
    ),
]
CASES = [
    *("Adam", "Adagrad", "RMSprop", "SGD", "online-quantile", "chosen", "solved-huber", "solved-tweedie"),
    *("onehot", "modl", "formula-functions", "crossfit-wide", "jitter-tree", "jitter-tree-r", "boost-xgboost-b"),
]  # hold what winners do not; test_export.py loads those of all cases, which refuses what is not on the list
HELD = set()  # (kind, registered or full name) of all files of this module
CATEGORIES = {"datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta", "decimal.Decimal"}
SPARE = {  # nodes that users' tables or options bring in, each tried in test_export_values.py
    ("SetNode", "builtins.set"),
    ("DictNode", "collections.OrderedDict"),
    ("TypeNode", "builtins.NoneType"),
}


def collect(path):
    def walk(node):
        if isinstance(node, dict):
            if "__class__" in node:
                module, name = node["__module__"], node["__class__"]
                HELD.add((node["__loader__"], name if module == "tabsym" else f"{module}.{name}"))
            for one in node.values():
                walk(one)
        elif isinstance(node, list):
            for one in node:
                walk(one)

    with zipfile.ZipFile(path) as archive:
        walk(json.loads(archive.read("schema.json")))


def table_of(task):
    if task == "regression":
        return SALES
    if task == "count":
        return SALES.assign(sales=SALES["sales"].round().clip(0).astype(int))
    n = 2 if task == "binary" else 3
    return SALES.assign(sales=pd.qcut(SALES["sales"], n, labels=list("abc")[:n]).astype(str))


def quick(contender):
    """With few rounds of boosting."""

    def make(*arguments):
        model = contender.make(*arguments)
        if isinstance(model, (WideClassifier, WideRegressor)):  # whose sweeps are none
            return model
        params = model.get_params()
        few = {name: 5 for name in params if ROUNDS.fullmatch(name) and "wide" not in name}
        few |= {f"{name}__iterations": 5 for name, one in params.items() if type(one).__name__.startswith("CatBoost")}
        return model.set_params(**few)  # CatBoost does not list what was not set

    return dataclasses.replace(contender, make=make)


TWINS = {"regression": "count", "count": "regression", "binary": "multiclass", "multiclass": "binary"}
PAIRS = [  # amounts and counts hold the same but for the loss, and two classes what several do: one of both, in turn
    (name, task)
    for place, (name, one) in enumerate(all_contenders().items())
    for task in TASKS
    if task in one.tasks
    and (TWINS[task] not in one.tasks or task in (("regression", "multiclass") if place % 3 else ("count", "binary")))
] + [("onehot-linear", "count"), ("hist-gradient-boosting", "binary")]  # whose parts no other pair holds
SAVED = set()  # pairs whose files this process has written


def saved(name, task, folder):
    """The winner of a contender on a table of a task, and its file."""
    contender, table = all_contenders()[name], table_of(task)
    how = ("unseen", "store") if contender.for_unseen else ("random", None)
    plan = SplitPlan(*how, 5, 1, 0, pd.factorize(table["store"])[0] if contender.for_unseen else None)
    winner = train_best(
        quick(contender), prepare(table, "sales", task=task), plan, choose_metric(task, None), None, 0, 1
    )
    path = winner.save(folder / "best.skops")
    collect(path)
    SAVED.add((name, task))
    return winner, path, table


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_the_winner_of_every_contender_comes_back(name, task, tmp_path):
    winner, path, table = saved(name, task, tmp_path)
    back = load(path)
    new = table.drop(columns="sales").head(30)
    new.loc[new.index[:3], "store"] = "never seen"
    np.testing.assert_array_equal(back.predict(new), winner.predict(new))
    if task in ("binary", "multiclass"):
        np.testing.assert_array_equal(back.predict_proba(new), winner.predict_proba(new))


def within_one_category():
    """A model whose search found an interaction in the rows of one category only."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(0, size, 4000) for size in (8, 6, 6))
    X = pd.DataFrame({"a": a, "b": b, "c": c}).map("v{}".format)
    y = 2.0 * rng.normal(size=(6, 6))[b, c] * (a == 0) + rng.normal(size=4000)
    model = WideRegressor(loss="squared_error", random_state=0).fit(X, y)
    assert "a=v0:b:c" in model.coefs_
    return model


def test_the_list_is_what_they_hold(tmp_path):
    for name, task in PAIRS:
        if (name, task) not in SAVED:  # run alone
            saved(name, task, tmp_path)
    for case in [*(f"{name}:text" for name in CASES), "similar:gaps"]:
        collect(save(fitted(case)[0], tmp_path / "model.skops"))
    for estimator in OTHERS:
        path = save(estimator, tmp_path / "model.skops")
        collect(path)
        load_any(path)
    collect(save(within_one_category(), tmp_path / "model.skops"))
    messy = pd.DataFrame({"x": ["$1.5", "$2.5", "$4"] * 20, "sales": [1.0, 2.0, 4.0] * 20})
    winner = train_best(all_contenders()["wide"], prepare(messy, "sales", task="regression"),
                        SplitPlan("random", None, 5, 1, 0), choose_metric("regression", None), None, 0, 1)  # fmt: skip
    collect(winner.save(tmp_path / "best.skops"))
    own = {("ObjectNode", name) for name in CLASSES} | {("FunctionNode", name) for name in FUNCTIONS}
    listed = {(kind, name) for kind, names in LISTS.items() for name in names} | own
    numbers = {
        (kind, name) for kind, name in listed if name.startswith("numpy.") and kind in ("NdArrayNode", "TypeNode")
    }
    plain = {("TypeNode", f"builtins.{name}") for name in ("int", "float", "str", "bool", "object")}
    categories = {("ConstructorFromReduceNode", name) for name in CATEGORIES}
    assert HELD - {("CachedNode", "")} <= listed
    assert listed - HELD - numbers - plain - categories - SPARE == set()


def test_every_name_is_there_and_no_listed_class_runs_code_of_its_own_when_it_dies():
    allowed = {"lightgbm.basic.Booster", "xgboost.core.Booster"}  # whose states tabsym.export.build checks
    for name in trusted_types():
        module, _, attribute = name.rpartition(".")
        if name == "builtins.NoneType":
            continue
        found = getattr(importlib.import_module(module), attribute)
        if inspect.isclass(found) and not name.startswith(("builtins", "numpy", "datetime", "decimal", "functools")):
            assert not hasattr(found, "__del__") or name in allowed, name


def test_registered_names_do_not_depend_on_where_things_are():
    assert all(re.fullmatch("[A-Za-z0-9_]+", name) for name in (*CLASSES, *FUNCTIONS))
    addresses = [*CLASSES.values(), *FUNCTIONS.values()]
    assert len(set(addresses)) == len(addresses)
