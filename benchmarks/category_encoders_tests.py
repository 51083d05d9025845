"""category_encoders' own tests, run over our encoders: `python benchmarks/category_encoders_tests.py FOLDER`.

FOLDER is the `tests` of a clone of category_encoders, with `test_encoders.py`,
`test_one_hot.py` and `helpers.py`; this repository has no copy of them. Each
encoder in turn is all that the tests find in category_encoders. What we fail,
and why, is in docs/category_encoders.md.
"""

from __future__ import annotations

import argparse
import importlib
import io
import random
import sys
import types
import unittest
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import category_encoders
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from tabsym import CrossFit, MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder

MODULES = ("test_encoders", "test_one_hot")
PASSED, FAILED, NOT_ASKED = "passed", "FAILED", "-"


def cross_fitted_target(**options: Any) -> CrossFit:
    """CrossFit takes no options of encoders: they are those of the encoder inside."""
    return CrossFit(category_encoders.TargetEncoder(**options), random_state=0)


ENCODERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "OneHotEncoder": ("OneHotEncoder", OneHotEncoder),
    "WideEncoder": ("WideEncoder", WideEncoder),
    "WideEncoder, as theirs": ("WideEncoder", partial(WideEncoder, numeric="passthrough", cv=None)),
    "MODLEncoder": ("MODLEncoder", MODLEncoder),
    "MODLEncoder, as theirs": ("MODLEncoder", partial(MODLEncoder, output="logodds", numeric="passthrough", cv=None)),
    "TIWSEncoder": ("TIWSEncoder", TIWSEncoder),
    "TIWSEncoder, as theirs": ("TIWSEncoder", partial(TIWSEncoder, numeric="passthrough", cv=None)),
    "CrossFit": ("CrossFit", cross_fitted_target),
    "their OneHotEncoder": ("OneHotEncoder", category_encoders.OneHotEncoder),
    "their TargetEncoder": ("TargetEncoder", category_encoders.TargetEncoder),
}
"""The column's head, the name by which the tests ask for it, and what makes one."""


class StandIn(types.ModuleType):
    """category_encoders as the tests see it: one encoder, and every other name is a test that is not about it."""

    def __init__(self, name: str, make: Callable[..., Any]) -> None:
        super().__init__("category_encoders")
        self.__all__ = [name]
        self.encoder = name, make
        self.asked = False

    def __getattr__(self, name: str) -> Any:
        if name != self.encoder[0]:
            raise unittest.SkipTest(f"{name} is not {self.encoder[0]}")
        self.asked = True
        return self.encoder[1]


def import_tests(folder: Path) -> list[types.ModuleType]:
    """Their modules, which import one another as `tests`, whatever the folder's name."""
    package = types.ModuleType("tests")
    package.__path__ = [str(folder)]
    sys.modules["tests"] = package
    if not hasattr(np, "NaN"):
        vars(np)["NaN"] = np.nan  # some of theirs are of before numpy 2
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  # theirs draw from it
    return [importlib.import_module(f"tests.{name}") for name in MODULES if (folder / f"{name}.py").exists()]


def run(case: unittest.TestCase, stand_in: StandIn) -> tuple[str, list[str]]:
    """What came of one test: the word, and the last line of each thing that went wrong."""
    stand_in.asked = False
    result = unittest.TestResult()
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pytest, which their CI runs, does not turn warnings into errors
        case.run(result)
    wrong = [trace for _, trace in [*result.failures, *result.errors]]
    if wrong:
        return FAILED, wrong
    return (PASSED if stand_in.asked else NOT_ASKED), []


def main() -> None:
    parser = argparse.ArgumentParser(description="category_encoders' own tests, run over our encoders")
    parser.add_argument("folder", type=Path, help="the tests of a clone of category_encoders")
    parser.add_argument("--why", action="store_true", help="print the whole trace of each failure")
    parser.add_argument("--only", help="a part of the names of tests")
    options = parser.parse_args()
    BaseEstimator._get_tags = lambda self: {"supervised_encoder": get_tags(self).target_tags.required}  # of sklearn<1.6
    modules = import_tests(options.folder)
    table: dict[str, dict[str, str]] = {}
    traces = []
    for head, (name, make) in ENCODERS.items():
        stand_in = StandIn(name, make)
        for module in modules:
            vars(module)["encoders"] = stand_in
            for case in unittest.defaultTestLoader.loadTestsFromModule(module)._tests:  # type: ignore[union-attr]
                for one in case:
                    test = f"{module.__name__.removeprefix('tests.')}: {one.id().rpartition('.')[2]}"
                    if options.only and options.only not in test:
                        continue
                    word, wrong = run(one, stand_in)
                    table.setdefault(test, {})[head] = word
                    traces += [(head, test, trace) for trace in wrong]
    show(table)
    print()
    for head, test, trace in traces:
        print(f"{head} | {test} | {trace if options.why else trace.strip().splitlines()[-1][:160]}")


def show(table: dict[str, dict[str, str]]) -> None:
    """The words by test and encoder, and how many there are of each."""
    print("| test | " + " | ".join(ENCODERS) + " |")
    print("| --- |" + " --- |" * len(ENCODERS))
    for test, words in table.items():
        print(f"| {test} | " + " | ".join(words[head] for head in ENCODERS) + " |")
    for word in (PASSED, FAILED):
        counts = (sum(words[head] == word for words in table.values()) for head in ENCODERS)
        print(f"| {word} | " + " | ".join(map(str, counts)) + " |")


if __name__ == "__main__":
    main()
