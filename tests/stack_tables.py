"""Stacks over every type that may carry a table, in a process of its own: some libraries end it.

Run as ``python -m tests.stack_tables LIBRARY ...``; prints for each library what differs from plain pandas objects, a
line of JSON. What stands on standard error is where it was.
"""

import json
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from xgboost import XGBClassifier

from tabsym import WideBoostClassifier, WideClassifier
from tests.options import ADDITIVE

RNG = np.random.default_rng(0)
N = 120
LEVELS = ["red", "blue", "green", "grey"]
COLOURS = [None if RNG.random() < 0.1 else str(RNG.choice(LEVELS)) for _ in range(N)]
NUMBERS = [None if RNG.random() < 0.1 else round(float(RNG.normal()), 3) for _ in range(N)]
TARGET = np.array([f"class {(c == 'red') + ((n or 0) > 0.3)}" for c, n in zip(COLOURS, NUMBERS, strict=True)])
TRAIN = {"c": COLOURS, "n": NUMBERS}
QUERIES = {
    "rows of fit": TRAIN,
    "reversed": {"c": COLOURS[::-1], "n": NUMBERS[::-1]},
    "unseen": {"c": ["never", "red", None], "n": [0.5, None, 2.0]},
    "one level": {"c": ["grey", "grey"], "n": [1.0, -1.0]},
    "none at all": {"c": [None, None, "blue"], "n": [None, 0.0, 1.0]},
}


def pandas(text, number="float64"):
    return lambda columns: pd.DataFrame(
        {"c": pd.Series(columns["c"], dtype=text), "n": pd.Series(columns["n"], dtype=number)}
    )


def polars(text):
    def make(columns):
        own = pl.Enum([*LEVELS, "never"]) if text == "enum" else text
        return pl.DataFrame(columns, schema={"c": own, "n": pl.Float64})

    return make


def arrow(text):
    def make(columns):
        found = pa.array(columns["c"], type=pa.string())
        found = found.dictionary_encode() if text == "dictionary" else found.cast(text)
        return pa.table({"c": found, "n": pa.array(columns["n"], type=pa.float64())})

    return make


CARRIERS = {
    "pandas object": pandas(object),
    "pandas str": pandas("str"),
    "pandas string, nullable": pandas("string[python]", "Float64"),
    "pandas of arrow": pandas("string[pyarrow]", "double[pyarrow]"),
    "pandas category": pandas("category"),
    "pandas category with unused levels": pandas(pd.CategoricalDtype(["other", *LEVELS[::-1], "never", "another"])),
    "polars String": polars(pl.String),
    "polars Categorical": polars(pl.Categorical),
    "polars Enum": polars("enum"),
    "polars lazy": lambda columns: polars(pl.String)(columns).lazy(),
    "arrow string": arrow(pa.string()),
    "arrow large_string": arrow(pa.large_string()),
    "arrow dictionary": arrow("dictionary"),
}


FEW = ["pandas category with unused levels", "polars Categorical", "arrow dictionary"]
CODES = {  # of each library: ranks and groups are made and read by the same code for all, and reach it as numbers
    "lightgbm": ("native", "ordinal"),
    "xgboost": ("native", "group"),
    "catboost": ("native", "ordinal"),
    "hist": ("native", "group"),
}


def carriers_of(library, codes):
    """All of them for one library's categories: the stack reads tables by the same code for all libraries and codes.

    What each library makes of every type that a stack may hand to it is in `tests.native_tables`.
    """
    return list(CARRIERS) if (library, codes) == ("lightgbm", "native") else FEW


def booster(library):
    if library == "lightgbm":
        return LGBMClassifier(n_estimators=4, min_child_samples=3, min_data_per_group=3, verbosity=-1, n_jobs=1)
    if library == "xgboost":
        return XGBClassifier(n_estimators=4, n_jobs=1)
    if library == "catboost":
        return CatBoostClassifier(iterations=4, depth=3, thread_count=1, verbose=False, allow_writing_files=False)
    return HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=3, categorical_features="from_dtype")


def stack(library, codes):
    mode = "feature" if library == "hist" else "margin"
    wide = WideClassifier(**ADDITIVE | {"alpha": 0.1})  # few sweeps
    return WideBoostClassifier(
        wide, booster(library), mode=mode, codes=codes, cv=2, early_stopping=False, random_state=0
    )


def difference(model, make, wanted):
    for query, expected in wanted.items():
        got = model.predict_proba(make(QUERIES[query]))
        if got.shape != expected.shape or not np.allclose(got, expected, rtol=0, atol=1e-9):
            return f"{query}: up to {np.abs(got - expected).max():.3g} off"
    return None


def main(library):
    warnings.simplefilter("ignore")
    found = {}
    plain = CARRIERS["pandas object"]
    for codes in CODES[library]:
        reference = stack(library, codes).fit(plain(TRAIN), TARGET)
        wanted = {query: reference.predict_proba(plain(columns)) for query, columns in QUERIES.items()}
        moved = np.abs(wanted["rows of fit"] - reference.wide_.predict_proba(plain(TRAIN))).max()
        assert moved > 0.01, "the booster says nothing, so equality would say little"
        for carrier in carriers_of(library, codes):
            make = CARRIERS[carrier]
            print(library, codes, carrier, file=sys.stderr)
            try:
                fitted = stack(library, codes).fit(make(TRAIN), TARGET)
                odd = difference(fitted, make, wanted) or difference(fitted, plain, wanted)
                found[f"{codes}: {carrier}"] = odd or difference(reference, make, wanted) or "equal"
            except Exception as error:  # one more finding
                found[f"{codes}: {carrier}"] = f"{type(error).__name__}: {error}"
    print(json.dumps({library: found}), flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(name)
