"""Hostile and damaged files: each a sentence, and nothing is run, imported, written or removed meanwhile."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from tabsym import JitterTreeClassifier, WideClassifier, load, save
from tabsym.export.build import _MAKERS
from tests.hostile_files import files, schemas, write
from tests.saved_models import fitted

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_none_does_anything(tmp_path):
    model, _ = fitted("online:text")
    good = save(model, tmp_path / "good.skops").read_bytes()
    folder = tmp_path / "files"
    folder.mkdir()
    paths = write(folder, good)
    assert len(paths) > 150
    before = sorted((path, path.stat().st_size) for path in tmp_path.rglob("*"))
    out = subprocess.run(
        [sys.executable, "-m", "tests.hostile_files", str(folder)], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    seen = [json.loads(line) for line in out.splitlines()]
    assert len(seen) == len(paths)
    for name, outcomes, events, modules in seen:
        for kind, words in outcomes:
            assert kind == "ValueError", (name, kind, words)
            assert words.isprintable() and f"{name}.skops" in words and words.endswith("."), (name, words)
            assert any(remedy in words for remedy in ("anew", "trusted=", "tabsym.load", "allow_boosters")), (
                name,
                words,
            )
        assert not events and not modules, (name, events, modules)
    assert sorted((path, path.stat().st_size) for path in tmp_path.rglob("*")) == before


def kinds_in(part):
    """The kinds of all nodes of a schema."""
    if isinstance(part, dict):
        if isinstance(part.get("__loader__"), str):
            yield part["__loader__"]
        part = list(part.values())
    for one in part if isinstance(part, list) else ():
        yield from kinds_in(one)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_of_each_kind_of_node_is_refused(tmp_path):
    """What `test_none_does_anything` watches, by `tabsym.load` alone; every kind that is read has such a file."""
    model, _ = fitted("onehot:text")
    good = save(model, tmp_path / "good.skops").read_bytes()
    hostile = schemas(tmp_path / "owned")
    assert set(_MAKERS) | {"CachedNode"} <= {kind for one in hostile.values() for kind in kinds_in(one)}
    for name, data in files(tmp_path / "owned", good).items():
        if name in hostile:
            path = tmp_path / f"{name}.skops"
            path.write_bytes(data)
            with pytest.raises(ValueError, match=rf"^{name}\.skops [^\n]*\.$") as error:
                load(path)
            assert str(error.value).isprintable()
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("case", "reader"),
    [
        ("augmented-lightgbm:text", "lightgbm.Booster.__setstate__"),
        ("boost-xgboost:text", "xgboost.core.Booster.__setstate__"),
        ("boost-catboost:text", "catboost.core._CatBoostBase._deserialize_model"),
    ],
)
def test_bytes_of_a_booster_are_read_only_where_that_is_allowed(case, reader, tmp_path, monkeypatch):
    model, X = fitted(case)
    path = save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
    monkeypatch.setattr(reader, lambda *_: pytest.fail("the library read the bytes"))
    library = {"l": "LightGBM", "x": "XGBoost", "c": "CatBoost"}[reader[0]]
    with pytest.raises(ValueError, match=f"holds a model of {library} in the library's own bytes.*allow_boosters=True"):
        load(path, allow_boosters=False)
    with pytest.raises(pytest.fail.Exception, match="the library read"):
        load(path)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["online:text", "boost-hist:text"])
def test_a_flipped_bit_is_noticed_or_does_not_matter(case, tmp_path):
    model, X = fitted(case)
    want = model.predict(X)
    path = save(model, tmp_path / "model.skops")
    good = path.read_bytes()
    rng, refused = np.random.default_rng(0), 0
    for place in [*rng.integers(0, len(good), 120).tolist(), *range(30), *range(len(good) - 30, len(good))]:
        path.write_bytes(good[:place] + bytes([good[place] ^ (1 << place % 8)]) + good[place + 1 :])
        try:
            np.testing.assert_array_equal(load(path).predict(X), want)
        except ValueError as error:
            refused += 1
            assert "\n" not in str(error) and "model.skops" in str(error)
    assert refused > 100


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="The system has no named pipes.")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model.skops")
    with pytest.raises(ValueError, match="no ordinary file"):
        load(tmp_path / "model.skops")


def test_no_character_of_a_files_name_reaches_the_terminal(tmp_path):
    path = tmp_path / "a\x1b[31m.skops"
    path.write_bytes(b"x")
    with pytest.raises(ValueError) as error:
        load(path)
    assert str(error.value).isprintable()


def histogram_trees(how):
    """Boosted trees whose arrays do not fit: of numbers alone, or with sets of categories."""
    X = pd.DataFrame({"a": pd.Categorical(list("abcab") * 20), "x": np.arange(100.0)})
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2, categorical_features="from_dtype")
    model.fit(X, X["a"].isin(["a", "c"]) ^ (X["x"] > 50))
    tree = model._predictors[0][0]
    nodes, mapper = tree.nodes, model._bin_mapper
    first = nodes["is_leaf"] == 0
    match how:
        case "column":
            nodes["feature_idx"][first] = 10**8
            model._n_features = model._bin_mapper.n_features_in_ = 2**31 - 2
        case "column-before":
            nodes["feature_idx"][first] = -(10**8)
        case "child":
            nodes["left"][first] = 2**32 - 1
        case "circle":
            nodes["left"][first] = 0
        case "shared":
            nodes["left"][first] = nodes["right"][first]
        case "empty":
            tree.nodes = nodes[:0]
        case "set":
            nodes["bitset_idx"][nodes["is_categorical"] != 0] = 2**31
        case "set-width":
            tree.raw_left_cat_bitsets = np.ascontiguousarray(tree.raw_left_cat_bitsets[:, :1])
        case "number-as-set":
            nodes["is_categorical"][first] = 1
        case "category":
            mapper.bin_thresholds_[0] = np.array([0.0, 1e9])
        case "few-columns":
            mapper.is_categorical_ = mapper.is_categorical_[:1]
        case "transformer":
            first, (name, check, chosen), *rest = model._preprocessor.transformers_
            model._preprocessor.transformers_ = [first, (name, check, chosen & False), *rest]
        case "binned":
            model._in_fit = True
    return model


def jitter_tree(how):
    X = pd.DataFrame({"a": list("abcab") * 20, "x": np.arange(100.0)})
    model = JitterTreeClassifier(max_depth=3).fit(X, X["a"].isin(["a", "c"]) ^ (X["x"] > 50))
    tree = model.tree_
    inner = np.flatnonzero(tree.feature >= 0)
    match how:
        case "column":
            tree.feature[inner] = 10**8
        case "child":
            tree.right[inner[-1]] = 10**8
        case "circle":
            tree.left[inner[-1]] = tree.right[inner[-1]] = 0
        case "categories":
            tree.pointer[1:] = 10**8
        case "value":
            object.__setattr__(tree, "value", tree.value[:1])
        case "fractions":
            object.__setattr__(tree, "left", tree.left.astype(float))
    return model


def wide_model(how):
    X = pd.DataFrame({"a": list("abcab") * 20, "x": np.arange(100.0)})
    model = WideClassifier(n_posterior_samples=3).fit(X, X["a"].isin(["a", "c"]) ^ (X["x"] > 50))
    inner = model.model_
    match how:
        case "coefficients":
            object.__setattr__(inner, "theta", inner.theta[:1])
        case "outputs":
            object.__setattr__(inner, "n_outputs", 10**6)
        case "component":
            factor = next(term for term in inner.spec.terms if term.factors).factors[0]
            object.__setattr__(factor, "component", 10**7)
        case "counts":
            object.__setattr__(inner, "counts", inner.counts[:1])
        case "samples":
            object.__setattr__(inner.uncertainty, "samples", inner.uncertainty.samples[:1])
    return model


@pytest.mark.parametrize(
    ("make", "how"),
    [
        *(
            (histogram_trees, how)
            for how in "column column-before child circle shared empty set set-width number-as-set category "
            "few-columns transformer binned".split()
        ),
        *((jitter_tree, how) for how in ("column", "child", "circle", "categories", "value", "fractions")),
        *((wide_model, how) for how in ("coefficients", "outputs", "component", "counts", "samples")),
    ],
)
def test_numbers_that_compiled_code_would_take_for_places_are_refused(make, how, tmp_path):
    load(save(make(""), tmp_path / "good.skops"))
    with pytest.raises(ValueError, match="whose parts do not fit each other"):
        load(save(make(how), tmp_path / "model.skops"))
