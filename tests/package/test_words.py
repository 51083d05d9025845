"""Words that the package has given up: identifiers by folder, and phrases in texts (`docs/terms.md`)."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WIDE = ("solvers", "models", "design", "interactions", "losses")
IDENTIFIERS = {
    WIDE: """
        piece pieces place places turns silent silence loud bend bends pull pulls pulled fall draws effective entry
        entries n_entries symbol symbols n_symbols by_symbol cross crosses penalised Piece Turns Spreads SpreadsOfOne
        SpreadsOfClasses OneScore ManyClasses Sharing SmallPieces Draws hand_up pull_back sum_pulls pulls_at pull_of
        logistic_pulls kept_pulls softmax_pulls settle Tally Layout layout Rarity rarity Evidence Descent descent Course
        Known raws turn take_turn take_turns take_squared_turn goes_by_turns by_turns
    """,
    ("jitter", "stacking", "tiws", "modl", "export"): "MOST LEAST Likeness Tally stranger turn turns",
    ("categories", "frame", "encoders"): "Alphabet RawTable raws",
    ("compare",): "Course course",
    ("categories", "compare", "encoders", "export", "frame", "jitter", "modl", "plots", "stacking", "tiws"): """
        place places workplace
    """,
    ("compare", "encoders", "jitter", "modl", "plots", "stacking", "tiws"): """
        beside foretold found held own told Places
    """,
}
"""Retired as names of variables, functions, classes and attributes of these folders."""

EXCEPTIONS = {
    ("models/model.py", "symbols"),  # an attribute of `codes.Categories`
    ("models/base.py", "symbols"),
    ("models/out_of_core/parts.py", "symbols"),
    ("models/out_of_core/cache.py", "symbols"),
    ("models/out_of_core/fit.py", "symbols"),
    ("models/export_terms.py", "symbols"),
}

PHRASES = [
    r"what nothing holds back",
    r"rows say\b",
    r"stands? still",
    r"takes? its turn",
    r"so manieth",
    r"of amounts and of classes",
    r"hand(s|ed)? up\b",
    r"holds? (it |them )?back\b",
    r"\bsays? (nothing|little)\b",
]
"""Retired in docstrings, comments and messages of the package."""


def names_of(path):
    with tokenize.open(path) as file:
        return {token.string for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.NAME}


def texts_of(path):
    source = path.read_text(encoding="utf-8")
    kinds = (tokenize.STRING, tokenize.COMMENT)
    return "\n".join(t.string for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type in kinds)


@pytest.mark.parametrize("folders", IDENTIFIERS, ids="-".join)
def test_retired_identifiers_are_gone(folders):
    retired = set(IDENTIFIERS[folders].split())
    package = ROOT / "tabsym"
    found = {
        (path.relative_to(package).as_posix(), name)
        for folder in folders
        for path in (package / folder).rglob("*.py")
        for name in names_of(path) & retired
    }
    assert found == {(file, name) for file, name in EXCEPTIONS if file.split("/")[0] in folders}


def test_retired_phrases_are_gone():
    found = [
        f"{path.relative_to(ROOT)}: {phrase}"
        for path in (ROOT / "tabsym").rglob("*.py")
        for text in [" ".join(texts_of(path).split())]
        for phrase in PHRASES
        if re.search(phrase, text)
    ]
    assert not found
