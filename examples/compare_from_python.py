"""Compare treatments of categories from Python, and use the ranking."""

import tempfile

from tabsym import compare
from tabsym.datasets import make_retail

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        result = compare(
            make_retail(2_000),
            "sales",
            contenders=["constant", "wide", "onehot-linear"],
            folds=3,
            out=f"{folder}/results",
        )
        print(result.ranking[["label", "score", "spread", "fit_seconds"]])
