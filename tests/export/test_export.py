"""Saved and loaded: every estimator and option that adds state, over every kind of column, answers bit for bit."""

import copy
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io

from tabsym import MODLEncoder, OneHotEncoder, load, save
from tests.saved_models import answers, cases, fitted


def same(first, second):
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        if one.dtype == object:
            assert one.tolist() == other.tolist() or [str(v) for v in one.ravel()] == [str(v) for v in other.ravel()]
        else:
            np.testing.assert_array_equal(one, other)


def members(path):
    """The parts of a file; not CatBoost's own bytes, since it writes a hash map in an order that varies."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    return {name: b"CBM1" if part.startswith(b"CBM1") else part for name, part in parts.items()}


@pytest.mark.parametrize("case", [case for case in cases() if case != "augmented:dates"])  # which is refused
def test_it_answers_as_before(case, tmp_path):
    model, X = fitted(case)
    want = list(answers(model, X))
    path = save(model, tmp_path / "model.skops")
    back = load(path)
    assert type(back) is type(model)
    same(answers(back, X), want)
    assert members(save(back, tmp_path / "again.skops")) == members(path)
    if case.endswith((":text", ":categorical")):
        same(answers(pickle.loads(pickle.dumps(model)), X), want)  # noqa: S301
        same(answers(copy.deepcopy(model), X), want)
        assert len(skops.io.dumps(model))  # what MLflow calls


def test_paths_that_are_not_there_are_sentences_with_the_remedy(tmp_path):
    model = OneHotEncoder().fit(pd.DataFrame({"a": ["u", "v"]}))
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nosuch to save m.skops in; create it first"):
        save(model, tmp_path / "nosuch" / "m.skops")
    with pytest.raises(IsADirectoryError, match=r"is a folder; name a file in it, such as .*model.skops"):
        save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nofile; give the path that save returned"):
        load(tmp_path / "nofile")
    path = save(model, tmp_path / "model.skops")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*model; did you mean 'model.skops'\?"):
        load(str(path).removesuffix(".skops"))


def test_options_of_later_versions_have_their_defaults(tmp_path):
    """A file of an earlier version lacks them."""
    X = pd.DataFrame({"a": list("abc") * 20, "x": range(60)})
    encoder = MODLEncoder().fit(X, X["a"] == "a")
    encoded = encoder.transform(X)
    del encoder.handle_infinite
    loaded = load(save(encoder, tmp_path / "old.skops"))
    assert loaded.get_params() == MODLEncoder().get_params()
    pd.testing.assert_frame_equal(loaded.transform(X), encoded)
