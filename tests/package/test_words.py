"""Words that the package has given up: identifiers by folder, phrases in texts and pages (`docs/terms.md`)."""

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
        Known raws turn take_turn take_turns take_squared_turn goes_by_turns by_turns alphabet alphabets certainty
        Certainty Dealt dealt sweep sweeps n_sweeps Symbols symbolic
    """,
    ("jitter", "stacking", "tiws", "modl", "export"): "MOST LEAST Likeness Tally stranger turn turns",
    ("categories", "frame", "encoders"): "Alphabet RawTable raws",
    ("compare",): "Course course",
    ("categories", "compare", "encoders", "frame", "jitter", "modl", "tiws"): """
        symbol symbols symbolic n_symbols Symbols SYMBOLIC alphabet alphabets
    """,
    ("categories", "compare", "encoders", "export", "frame", "jitter", "modl", "plots", "stacking", "tiws"): """
        place places workplace
    """,
    ("compare", "encoders", "jitter", "modl", "plots", "stacking", "tiws"): """
        beside foretold found held own told Places
    """,
    ("categories", "design", "frame", "interactions", "losses", "solvers"): """
        apart beside far few found held here kept many most others rest spread there told
    """,
    ("categories", "design", "frame", "interactions", "losses"): "drawn own short shown",
    ("categories", "design", "frame", "losses", "solvers"): "one",
    ("frame", "losses"): "other",
    ("models",): "beside far few found held kept look many most near one others own shown spread told",
    ("stacking",): "apart drawn far few kept look many most near one other others rest shown short spread",
}
"""Retired as names of variables, functions, classes and attributes of these folders."""

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
    r"\b(dear|dearer|owed|weighed|judged|mended)\b",
    r"\bheld (back|together)\b",
    r"\btells? nothing\b",
    r"\bso many\b(?! values)",
    r"\bby evidence\b",
    r"\btold of\b",
    r"\bfalls? apart\b",
    r"\brefused (in a sentence|beside)\b",
]
"""Retired in docstrings, comments and messages of the package."""

PAGE_PHRASES = [
    *PHRASES,
    r"\b(beside|told|alphabets?|rarity|scouts?|settled?|nobody)\b",
    r"\bcrosses\b",
    r"\btells?\b",
    r"\b(is|are) level\b",
    r"\bbeyond (chance|noise)\b",
    r"\bin a sentence\b",
    r"\bwhat (holds|fails|came out)\b",
    r"\bof one's own\b",
]
"""Retired in README, CONTRIBUTING, the documentation and the pages of benchmarks, code apart."""

NOT_BY_HAND = {"terms.md", "combinations.md", "changelog.md", "benchmarks.md"}
"""The page about these words, one that is generated from messages, and copies of others."""

PATTERNS = "README.md CONTRIBUTING.md docs/*.md docs/guide/*.md docs/api/*.md benchmarks/*.md benchmarks/*/README.md"
PAGES = [page for pattern in PATTERNS.split() for page in sorted(ROOT.glob(pattern)) if page.name not in NOT_BY_HAND]


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
    assert not found


def test_retired_phrases_are_gone():
    found = [
        f"{path.relative_to(ROOT)}: {phrase}"
        for path in (ROOT / "tabsym").rglob("*.py")
        for text in [" ".join(texts_of(path).split())]
        for phrase in PHRASES
        if re.search(phrase, text)
    ]
    assert not found


def prose_of(page):
    """A page without code, targets of links and headings of errors, in which messages stand."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    if page.name == "errors.md":
        text = re.sub(r"^## .*$", "", text, flags=re.M)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "", text))
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_retired_phrases_are_gone_from_pages(page):
    text = prose_of(page)
    assert not [found.group() for phrase in PAGE_PHRASES for found in re.finditer(phrase, text, flags=re.IGNORECASE)]
