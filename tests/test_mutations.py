"""The planted faults themselves: a fault that no longer fits the code is planted nowhere, and finds nothing."""

import pytest

from tests.mutations import FAULTS, ROOT


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_stands_once_in_the_code(fault):
    text = (ROOT / "tabsym" / fault.file).read_text()
    assert text.count(fault.old) == 1
    assert fault.new != fault.old
    assert (ROOT / fault.tests.partition(":")[0]).exists()


def test_faults_have_names_of_their_own():
    names = [fault.name for fault in FAULTS]
    assert sorted(set(names)) == sorted(names)
