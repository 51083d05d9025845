"""Names of categories as bags of their parts: pieces of two to four characters, the rarer the weightier (tf-idf)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer


@dataclass(frozen=True)
class Names:
    """Vectors (m, pieces) of length 1, or 0 for a name of which no piece is known."""

    vectors: sparse.csr_array

    def take(self, rows: NDArray[np.integer] | slice) -> Names:
        """Some of them."""
        return Names(self.vectors[rows])

    def cosines(self, other: Names) -> NDArray[np.float64]:
        """Likeness (m, other), 0 to 1."""
        return np.clip((self.vectors @ other.vectors.T.tocsr()).toarray(), 0.0, 1.0)


@dataclass(frozen=True)
class NameReader:
    """Reads names by the pieces of those that fit has seen."""

    vectorizer: TfidfVectorizer

    @classmethod
    def fit(cls, symbols: Sequence[Any]) -> NameReader:
        reader = TfidfVectorizer(analyzer="char", ngram_range=(2, 4))
        texts = [_text(symbol) for symbol in symbols]
        if not any(text.strip() for text in texts):  # of blanks there are no pieces, which scikit-learn refuses
            texts = [_text("\0")]
        return cls(reader.fit(texts))

    def __call__(self, symbols: Sequence[Any]) -> Names:
        return Names(sparse.csr_array(self.vectorizer.transform([_text(symbol) for symbol in symbols])))


def _text(symbol: Any) -> str:
    """A category as text with its ends marked, so that no name is too short for a piece."""
    return f" {'' if symbol is None else symbol} "
