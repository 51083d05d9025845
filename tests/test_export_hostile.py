"""Hostile and damaged files: each a sentence, and nothing is run, imported, written or removed meanwhile."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tabsym import load, save
from tabsym.export.build import _MAKERS
from tests.hostile_files import files, schemas, write
from tests.saved_models import fitted

ROOT = Path(__file__).parent.parent


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
            assert "\n" not in words and f"{name}.skops" in words and words.endswith("."), (name, words)
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
            with pytest.raises(ValueError, match=rf"^{name}\.skops [^\n]*\.$"):
                load(path)
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
