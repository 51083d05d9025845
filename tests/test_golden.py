"""What the package computes is what it computed when the golden files were written, but for rounding.

A case that fails here has changed what users get. Where that is meant: ``python -m tests.golden.update CASE``, and the
commit says so.
"""

import pytest

from tests.golden.cases import CASES
from tests.golden.store import differences, read


@pytest.mark.parametrize("name", CASES)
def test_computes_what_it_did(name):
    case = CASES[name]
    if not case.can_run:
        pytest.skip(f"{case.needs} is not installed")
    stored = read(case.table).get(name)
    assert stored is not None, f"nothing is stored of {name}; run python -m tests.golden.update {name}"
    found = differences(stored, case.found(), case.tolerance)
    said = "\n".join(map(str, found[:10]))
    assert not found, f"{len(found)} differences from what is stored, the largest first:\n{said}"
