"""docs/combinations.md is what the models do today, and docstrings say which options are refused."""

import inspect
import re

import pytest

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tests.combinations_table import PAGE, page


@pytest.mark.slow
def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.combinations_table"


def _options_of(kind):
    """The text of each parameter in a class docstring, by name."""
    body = kind.__doc__.partition("Parameters\n    ----------\n")[2].partition("\n\n    Attributes")[0]
    found = re.split(r"\n?^    (\w+) : ", body, flags=re.M)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


@pytest.mark.parametrize("kind", [WideRegressor, WideClassifier, WideSGDRegressor, WideSGDClassifier])
def test_docstrings_say_every_default_in_the_order_of_the_signature(kind):
    parameters = inspect.signature(kind).parameters
    texts = _options_of(kind)
    assert list(texts) == list(parameters)
    for name, text in texts.items():
        default = parameters[name].default
        shown = "1e-3" if default == 1e-3 else f'"{default}"' if isinstance(default, str) else repr(default)
        assert text.partition("\n")[0].endswith(f", default {shown}"), name


@pytest.mark.parametrize(("title", "kinds"), [("WideRegressor", (WideRegressor, WideClassifier)),
                                              ("WideSGDRegressor", (WideSGDRegressor, WideSGDClassifier))])  # fmt: skip
def test_docstrings_say_what_is_refused(title, kinds):
    """Of every option that the page lists: one of a pair that cannot meet says so."""
    texts = {name: text for kind in kinds for name, text in _options_of(kind).items()}
    section = PAGE.read_text().partition(f"## `{title}`")[2].partition("\n## ")[0]
    rows = [line.strip("| \n").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    assert len(rows) > 15
    for option, with_or_message, *_ in rows:
        names = [re.match(r"`(\w+)`", cell) for cell in (option, with_or_message)]
        own = [name.group(1) for name in names if name]
        assert any("efused" in texts.get(name, "") for name in own) or set(own) <= {
            "sample_weight",
            "offset",
            "stream",
        }, own
