"""Words that people write where a number or a date is missing."""

MISSING_WORDS = frozenset(
    "? ?? - -- --- \u2013 \u2014 . .. * n/a na n.a. n.a #n/a #na nan null none nil missing unknown undefined "
    "unspecified unavailable tbd tba tbc not-available no-data nd n.d. n.d #value! #ref! #div/0! #name? #num! "
    "#null! <na> -nan 1.#qnan k.a. s/o nr".split()
) | {
    "not available",
    "not applicable",
    "not known",
    "not specified",
    "no data",
    "varies with device",
    "n / a",
    "(blank)",
    "(missing)",
    "(null)",
    "k. a.",
}
"""In lower case; they mean missing only where the other cells of a column are numbers or dates."""


def means_missing(text: str) -> bool:
    """Whether a cell is blank or a word for missing."""
    word = text.strip().lower()
    return not word or word in MISSING_WORDS
