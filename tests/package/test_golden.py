"""What the package computes is what it computed when the golden files were written, but for rounding.

A case that fails here has changed what users get. Where that is meant, ``python -m tests.golden.update CASE`` rewrites
what is stored and says by how much it changed; where only a name changed, the place to edit is `tests/golden/names.py`.
Cases with a booster or a model of scikit-learn rest on its version, too (`constraints.txt`).
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.golden.cases import CASES
from tests.golden.store import FOLDER, differences, distance, plain, read, told


@pytest.mark.parametrize("name", CASES)
def test_computes_what_it_did(name):
    case = CASES[name]
    if not case.can_run:
        pytest.skip(f"{case.needs} is not installed")
    stored = read(case.table).get(name)
    assert stored is not None, f"nothing is stored of {name}; run python -m tests.golden.update {name}"
    found = differences(stored, case.found(), case.tolerance)
    assert not found, f"{name}: {told(found)}"


def test_nothing_is_stored_that_is_no_case():
    stored = {(path.stem, name) for path in FOLDER.glob("*.json") for name in read(path.stem)}
    assert stored == {(case.table, case.name) for case in CASES.values()}
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 600_000


def kinds(old, new, **options):
    return [one.kind for one in differences({"entry": plain(old)}, {"entry": plain(new)}, **options)]


FRAME = pd.DataFrame({"value": [1.0, -2.0, np.nan], "sd": [0.1, np.inf, 3e-9]}, index=["a", "b", None])


def test_small_changes_of_values_are_seen_and_rounding_is_not():
    """Every column by its own largest number."""
    assert kinds(FRAME, FRAME) == []
    assert kinds(FRAME, FRAME * (1 + 1e-5)) == ["values", "values"]
    assert kinds(FRAME, FRAME * (1 + 1e-9)) == []
    assert kinds(FRAME, FRAME.fillna(0.0)) == kinds(FRAME, FRAME.replace(np.inf, 1e9)) == ["values"]
    assert distance(np.zeros(2), np.array([0.0, 1e-15]))[0] < 1e-8  # what should be 0 is noise
    assert kinds(np.arange(4), np.arange(4.0)) == kinds(np.ones((2, 3)), np.ones((3, 2))) == ["form"]
    assert kinds(sparse.csr_array(np.eye(2)), np.eye(2)) == ["form"]


def test_renames_are_changes_of_labels_alone():
    renamed = FRAME.rename(columns={"sd": "deviation"}, index={"b": "B"})
    assert kinds(FRAME, renamed) == ["labels", "labels"]
    text = pd.DataFrame({"part": ["]-inf; 1]", "]1; +inf[", "]-inf; 1]"]})
    assert kinds(text, text.replace({"]-inf; 1]": "(-inf, 1]"})) == ["labels"]
    assert kinds(text, text.iloc[[1, 0, 0]].reset_index(drop=True)) == ["values", "labels"]
    assert kinds("a\nb", "a\nc") == ["text"]


def test_what_is_said_names_the_entry_that_moved_most():
    one, two = {"a": plain([1.0]), "b": plain([1.0, 4.0])}, {"a": plain([1.0 + 1e-6]), "b": plain([1.0, 4.4])}
    said = told(differences(one, two)).splitlines()
    assert said[0] == "differences: 2 of values"
    assert said[1].strip() == "b: values by 1.0e-01 of the largest: number 1 is 4.4, was 4"
