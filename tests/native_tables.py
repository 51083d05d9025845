"""One table in every type that may carry its values, and what a native booster makes of each.

Run as ``python -m tests.native_tables LIBRARY ...`` in a process of its own, because LightGBM and
CatBoost end the process on some of these types where they get hold of them: prints a line of JSON
for each library, by each way of carrying the table: "equal" or how its predictions differ from
those of plain columns.
"""

import json
import sys
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from tabsym.compare.contenders import native_hist
from tabsym.integrations import load_adapter

N = 60
RNG = np.random.default_rng(0)
LEVELS = ["red", "blue", "green", "wine"]
TRAIN = {
    "c": [None if value == "none" else str(value) for value in RNG.choice([*LEVELS[:3], "none"], N)],
    "n": [None if RNG.random() < 0.1 else int(value) for value in RNG.integers(-5, 5, N)],
    "b": [None if RNG.random() < 0.1 else bool(value) for value in RNG.integers(0, 2, N)],
}
SCORE = np.array([len(str(c)) + 0.4 * (n or 0) + 2 * bool(b) for c, n, b in zip(*TRAIN.values(), strict=True)])
TARGETS = {
    "regression": SCORE,
    "binary": (np.median(SCORE) < SCORE).astype(int),
    "multiclass": np.digitize(SCORE, np.quantile(SCORE, [0.33, 0.67])),
}
QUERIES = {
    "rows of fit": TRAIN,
    "rows in another order": {name: values[::-1] for name, values in TRAIN.items()},
    "unseen levels": {"c": ["wine", "red", "wine"], "n": [1, None, 2], "b": [None, True, False]},
    "nothing but missing": {"c": [None, None], "n": [None, None], "b": [None, None]},
    "one row": {"c": ["blue"], "n": [-3], "b": [True]},
    "no rows": {"c": [], "n": [], "b": []},
}


def objects(values, missing=None):
    out = np.empty(len(values), dtype=object)
    out[:] = [missing if value is None else value for value in values]
    return out


def plain(columns):
    numbers = {name: np.array(columns[name], dtype=float) for name in "nb"}
    return pd.DataFrame({"c": pd.Series(objects(columns["c"]), dtype=object), **numbers})


def decimals(values):
    return [None if value is None else Decimal(value) for value in values]


def of_pandas(c, n="float64", b="object"):
    """A table of pandas, by the type of each column."""
    dtypes = {"c": c, "n": n, "b": b}
    return lambda columns: pd.DataFrame(
        {name: pd.Series(objects(columns[name]), dtype=object).astype(dtypes[name]) for name in dtypes}
    )


def missing_as(value, numbers=True):
    """A table of objects with one sort of missing value."""
    return lambda columns: pd.DataFrame(
        {name: pd.Series(objects(columns[name], value), dtype=object) for name in columns if numbers or name == "c"}
        | ({} if numbers else {name: plain(columns)[name] for name in "nb"})
    )


def of_polars(c, n=pl.Int64, b=pl.Boolean):
    def make(columns):
        values = columns | ({"n": decimals(columns["n"])} if n == pl.Decimal else {})
        dtypes = {"c": c, "n": n, "b": b}
        return pl.DataFrame({name: pl.Series(values[name], dtype=dtypes[name], strict=False) for name in dtypes})

    return make


INT64 = pa.int64()


def of_arrow(c, n=INT64):
    def make(columns):
        values = columns | ({"n": decimals(columns["n"])} if pa.types.is_decimal(n) else {})
        text = pa.array(values["c"], pa.string())
        if pa.types.is_dictionary(c):
            text = pa.DictionaryArray.from_arrays(
                pa.array([None if v is None else LEVELS.index(v) for v in values["c"]], c.index_type), pa.array(LEVELS)
            )
        return pa.table({"c": text.cast(c), "n": pa.array(values["n"], n), "b": pa.array(values["b"], pa.bool_())})

    return make


def category(levels, ordered=False):
    return pd.CategoricalDtype(levels, ordered=ordered)


DICTIONARY = pa.dictionary(pa.int32(), pa.string())
CARRIERS = {
    "pandas objects": of_pandas(object, object, object),
    "pandas str": of_pandas("str"),
    "pandas string, nullable": of_pandas("string[python]", "Int64", "boolean"),
    "pandas of arrow": of_pandas("string[pyarrow]", "int64[pyarrow]", "bool[pyarrow]"),
    "pandas arrow dictionary": of_pandas(pd.ArrowDtype(DICTIONARY), "Float64", "boolean"),
    "pandas category": of_pandas("category"),
    "pandas category with unused levels": of_pandas(category(["other", *LEVELS, "another"])),
    "pandas category in another order": of_pandas(category(LEVELS[::-1])),
    "pandas ordered category": of_pandas(category(sorted(LEVELS), ordered=True), "Int8"),
    "pandas float32": of_pandas(object, "float32", "float32"),
    "pandas decimals": lambda columns: plain(columns).assign(n=objects(decimals(columns["n"]))),
    "missing as NaN": missing_as(float("nan")),
    "missing as NA": missing_as(pd.NA),
    "missing as NaT": missing_as(pd.NaT),
    "missing as NaT in text": missing_as(pd.NaT, numbers=False),
    "polars String": of_polars(pl.String),
    "polars Categorical": of_polars(pl.Categorical, pl.Float64),
    "polars Enum": of_polars(pl.Enum(LEVELS)),
    "polars Object": of_polars(pl.Object, pl.Object, pl.Object),
    "polars Decimal": of_polars(pl.String, pl.Decimal),
    "polars lazy": lambda columns: of_polars(pl.String)(columns).lazy(),
    "arrow string": of_arrow(pa.string(), pa.float64()),
    "arrow large_string": of_arrow(pa.large_string(), pa.int8()),
    "arrow dictionary": of_arrow(DICTIONARY),
    "arrow decimal": of_arrow(pa.string(), pa.decimal128(5, 2)),
    "rows of an array": lambda columns: np.column_stack([objects(values) for values in columns.values()]),
}
"""Ways to make a frame of lists, None for missing: text `c`, whole numbers `n`, booleans `b`."""
FOR_CLASSES = ["pandas objects", "pandas category in another order", "polars Categorical", "arrow dictionary"]
"""Some of them for classifiers, too: what they see is the same."""

FEW_TREES = {
    "lightgbm": {"n_estimators": 3, "min_child_samples": 2, "min_data_per_group": 2, "cat_smooth": 1},
    "xgboost": {"n_estimators": 3},
    "catboost": {"n_estimators": 3},
    "hist": {"max_iter": 3, "min_samples_leaf": 2},
}


def carriers_of(task, library):
    """All of them for the libraries that end the process on some; the other two take them in turn, by the same code."""
    if task != "regression":
        return FOR_CLASSES
    start, step = {"xgboost": (0, 2), "hist": (1, 2)}.get(library, (0, 1))
    return list(CARRIERS)[start::step]


def native(library, task):
    hist = library == "hist"
    model = native_hist(task, 0, 1) if hist else load_adapter(library).native(task, random_state=0, n_jobs=1)
    return model.set_params(**{f"booster__{option}": value for option, value in FEW_TREES[library].items()})


def answers(model, task, make):
    """What a model says of every query, in a type."""
    method = model.predict if task == "regression" else model.predict_proba
    return {query: method(make(columns)) for query, columns in QUERIES.items()}


def difference(got, wanted):
    for query, expected in wanted.items():
        if got[query].shape != expected.shape or got[query].dtype != expected.dtype:
            return f"{query}: {got[query].shape} {got[query].dtype}, not {expected.shape} {expected.dtype}"
        if not np.array_equal(got[query], expected):
            return f"{query}: up to {np.abs(got[query] - expected).max():.3g} off"
    return None


def compare(library, task, make, reference, wanted):
    """How predictions differ: of a model fitted on this type, in both types, and of the plain model in this type."""
    fitted = native(library, task).fit(make(TRAIN), TARGETS[task])
    return (
        difference(answers(fitted, task, make), wanted)
        or difference(answers(fitted, task, plain), wanted)
        or difference(answers(reference, task, make), wanted)
    )


def main(library):
    warnings.simplefilter("ignore")  # of names that an array has not
    found = {}
    for task, target in TARGETS.items():
        reference = native(library, task).fit(plain(TRAIN), target)
        wanted = answers(reference, task, plain)
        assert np.ptp(wanted["rows of fit"], axis=0).min() > 0.1, "learned nothing, so equality would say nothing"
        for carrier in carriers_of(task, library):
            try:
                found[f"{task}: {carrier}"] = compare(library, task, CARRIERS[carrier], reference, wanted) or "equal"
            except Exception as error:  # one more finding
                found[f"{task}: {carrier}"] = f"{type(error).__name__}: {error}"
    print(json.dumps({library: found}), flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(name)
