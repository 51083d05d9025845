"""Hostile contenders and damaged folders: each fault is its own contender's or fold's, and is said."""

import json
import os
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tabsym import OneHotEncoder
from tabsym.compare import compare
from tabsym.compare.lock import owned


class Noisy(LogisticRegression):
    def fit(self, X, y):
        os.write(1, b"entra\xeenement\n@tabsym {}\nprogress 10%")
        return super().fit(X, y)


class Twice(LogisticRegression):
    def predict_proba(self, X):
        return super().predict_proba(X) * [2, 0.5]


class Exits(LogisticRegression):
    def fit(self, X, y):
        sys.exit(0)


@pytest.fixture
def table():
    draw = np.random.default_rng(0)
    return pd.DataFrame({"a": draw.choice(list("uvw"), 200), "y": draw.choice(["n", "p"], 200)})


def run(table, out, **options):
    contenders = {c.__name__: make_pipeline(OneHotEncoder(), c()) for c in (Noisy, Twice, Exits)}
    return compare(table, "y", contenders=contenders, folds=2, out=out, quiet=True, **options)


def test_faults_are_of_one_contender_and_folders_are_mended(table, tmp_path):
    out = tmp_path / "out"
    first = run(table, out)
    assert set(first.ranking["name"]) == {"constant", "Noisy"}
    assert "probabilities" in first.failures["Twice"]
    assert "status 0" in first.failures["Exits"]
    body = json.loads((out / "results.json").read_text())
    body["contenders"]["Noisy"]["folds"]["7"] = {}
    body["contenders"]["ghost"] = 3
    (out / "results.json").write_text(json.dumps(body))
    (out / "predictions" / "Noisy" / "0.npy").write_bytes(b"")
    again = run(table, out, resume=True)
    pd.testing.assert_frame_equal(first.ranking[["name", "score"]], again.ranking[["name", "score"]])


def test_a_folder_has_one_owner(table, tmp_path):
    with owned(tmp_path), pytest.raises(ValueError, match="Another comparison is writing"):
        run(table, tmp_path)
