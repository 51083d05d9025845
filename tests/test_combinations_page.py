"""docs/combinations.md is what the models do today."""

import pytest

from tests.combinations_table import PAGE, page


@pytest.mark.slow
def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.combinations_table"
