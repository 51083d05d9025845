"""Files of this and of earlier versions are loaded, and answer as they did (`tests/kept_files.py`)."""

import json

import pandas as pd
import pytest

import tabsym
from tabsym.export import load
from tests.kept_files import FOLDER, answers, queries

FILES = sorted(FOLDER.glob("*/*.skops"))


def test_every_version_is_kept():
    assert tabsym.__version__ in {path.parent.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}: {path.stem}")
def test_it_answers_as_it_did(path):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    got = answers(load(path), queries())
    pd.testing.assert_frame_equal(pd.DataFrame(got), pd.DataFrame(expected), rtol=1e-9, atol=1e-12)
