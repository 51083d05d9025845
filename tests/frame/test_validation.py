"""Options of estimators: the values that they may have, and the sentence for any other."""

import re

import numpy as np
import pytest

from tabsym.messages import Instance, Number, check_declared_options, check_option

COUNT = Number(at_least=1, whole=True, of="rows")
FRACTION = Number(above=0, at_most=1)
SHARE = Number(above=0, at_most=1, fraction=True, of="the rows")


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ("a", ("a", "b")),
        (None, ("a", None)),
        (np.True_, (True, False)),
        (np.int64(1), (COUNT,)),
        (10**400, (COUNT,)),
        (1, ("auto", FRACTION)),
        (np.float32(0.5), (FRACTION,)),
        (3.5, (Instance((int, float), "a number"),)),
        (False, ("folds", False)),
        (np.False_, (False,)),
        (3, (COUNT, SHARE)),
        (1.0, (COUNT, SHARE)),
        (1, (Number(at_least=1, at_most=1),)),
    ],
)
def test_allowed_values_come_back(value, allowed):
    assert check_option("option", value, allowed) is value


@pytest.mark.parametrize(
    ("value", "allowed", "sentence"),
    [
        ("c", ("a", "b"), "option='c' is not known; use 'a' or 'b'."),
        (["a"], ("a", "b", None), "option=['a'] is not known; use 'a', 'b' or None."),
        ("yes", (True, False), "option='yes' is not possible; use True or False."),
        (1, (True, False), "option=1 is not possible; use True or False."),
        (True, (COUNT, None), "option=True is not possible; use a whole number of rows of at least 1 or None."),
        (1.0, (COUNT,), "option=1.0 is not possible; use a whole number of rows of at least 1."),
        (0, ("auto", FRACTION), "option=0 is not possible; use 'auto' or a number above 0 and at most 1."),
        ("all", ("auto", FRACTION), "option='all' is not known; use 'auto' or a number above 0 and at most 1."),
        (float("nan"), (Number(),), "option=nan is not possible; use a number."),
        (True, ("folds", False), "option=True is not possible; use 'folds' or False."),
        (np.True_, (False,), f"option={np.True_!r} is not possible; use False."),
        ("a", ("A",), "option='a' is not known; use 'A'."),
        (1, (SHARE,), "option=1 is not possible; use a fraction of the rows above 0 and at most 1."),
        (
            1.5,
            (COUNT, SHARE),
            "option=1.5 is not possible; use a whole number of rows of at least 1 or a fraction of the "
            "rows above 0 and at most 1.",
        ),
        (float("inf"), (Number(above=0), None), "option=inf is not possible; use a number above 0 or None."),
        (0.0, (Number(above=0), None), "option=0.0 is not possible; use a number above 0 or None."),
        ([], ("a", True), "option=[] is not possible; use 'a' or True."),
        (3.0, (Number(below=3),), "option=3.0 is not possible; use a number below 3."),
        ("x", (Instance(int, "an object"),), "option='x' is not possible; use an object."),
    ],
)
def test_other_values_are_refused_in_a_sentence(value, allowed, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        check_option("option", value, allowed)


def test_what_else_may_be_given_stands_in_the_sentence():
    with pytest.raises(ValueError, match="use 'a', 'b' or a transformer"):
        check_option("codes", 3, ("a", "b"), "a transformer")


def test_an_estimator_declares_its_options():
    class Estimator:
        _allowed_options = {"output": ("a", "b"), "n": (COUNT,)}
        output, n = "a", 0

    with pytest.raises(ValueError, match=r"^n=0 is not possible"):
        check_declared_options(Estimator())
