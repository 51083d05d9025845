"""Every public estimator over tables of three kinds, for classes, amounts and counts: what another process loads of it
answers bit for bit. Run as ``python -m tests.export.test_processes FOLDER`` it loads all files of a folder.
"""

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import tabsym
from tests.options import ADDITIVE

ROOT = Path(__file__).parents[2]
KINDS = ("pandas", "polars", "categorical")
TARGETS = ("classes", "amounts", "counts")
ENCODERS = ("OneHotEncoder", "MODLEncoder", "TIWSEncoder", "WideEncoder", "CrossFit", "DateParts")


def table(kind, n=72):
    """Text, whole numbers as categories where the kind has them, numbers with gaps, and days."""
    rng = np.random.default_rng(7)
    X = pd.DataFrame(
        {
            "city": rng.choice(np.array(["Ulm", "Bonn", "Hof", None], dtype=object), n),
            "size": rng.choice(["S", "M", "L"], n),
            "price": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
        }
    )
    if kind == "polars":
        return pl.DataFrame({name: [None if pd.isna(one) else one for one in X[name].tolist()] for name in X})
    if kind == "categorical":
        return X.assign(
            city=X["city"].astype("category"), size=pd.Categorical(np.unique(X["size"], return_inverse=True)[1])
        )
    return X


def target(kind):
    score = (table("pandas")["city"] == "Ulm") + table("pandas")["price"].fillna(0.0).to_numpy()
    if kind == "classes":
        return np.array(["low", "mid", "top"])[np.digitize(score, [-0.4, 0.6])]
    return np.exp(score) if kind == "amounts" else np.random.default_rng(8).poisson(np.exp(score))


def estimator(name, kind):
    """At quick options; None where there is none for the target."""
    classes = kind == "classes"
    if name in ENCODERS:
        return tabsym.CrossFit(tabsym.TIWSEncoder(), cv=3) if name == "CrossFit" else getattr(tabsym, name)()
    if name.endswith("Classifier" if not classes else "Regressor"):
        return None
    hist = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(max_iter=3)
    loss = {} if classes else {"loss": "squared_error" if kind == "amounts" else "poisson"}
    wide = (tabsym.WideClassifier if classes else tabsym.WideRegressor)(**ADDITIVE | loss)
    if name.startswith("WideBoost"):
        return getattr(tabsym, name)(wide, hist, mode="feature", early_stopping=False, cv=3)
    if name.startswith("WideSGD"):
        return getattr(tabsym, name)(max_iter=2, random_state=0, **loss)
    if name.startswith("JitterTree"):
        return getattr(tabsym, name)(random_state=0)
    if name == "JitterPredictor":
        return tabsym.JitterPredictor(wide, tabsym.TIWSEncoder())
    return tabsym.AugmentedModel(hist) if name == "AugmentedModel" else wide


NAMES = sorted(
    name
    for name in tabsym.__all__
    if isinstance(getattr(tabsym, name), type) and issubclass(getattr(tabsym, name), BaseEstimator)
)
CASES = []  # every estimator over every kind of table and every target that it takes, three cases each
for name in NAMES:
    taken = [y for y in TARGETS if estimator(name, y) is not None]
    CASES += [(name, kind, taken[(place + len(CASES) // 3) % len(taken)]) for place, kind in enumerate(KINDS)]


def rows(name, kind):
    """What an estimator gets; AugmentedModel takes no dates."""
    X = table(kind)
    return X[[column for column in X.columns if column != "day" or name != "AugmentedModel"]]


def answers(model, X):
    """A digest of the bits of all that a fitted estimator says of rows."""
    said = sha256()
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(model, method):
            found = getattr(model, method)(X)
            for column in found.columns if hasattr(found, "columns") else [None]:
                values = np.asarray(found if column is None else found[column])
                text = values.dtype.kind in "OUT"
                said.update(repr([str(one) for one in values.ravel().tolist()]).encode() if text else values.tobytes())
    return said.hexdigest()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* whole numbers of the target")
def test_another_process_answers_bit_for_bit(tmp_path):
    own = {}
    for name, kind, y in CASES:
        X, case = rows(name, kind), f"{name}-{kind}-{y}"
        model = estimator(name, y).fit(X, target(y))
        tabsym.save(model, tmp_path / f"{case}.skops")
        own[case] = answers(model, X)
    command = [sys.executable, "-m", "tests.export.test_processes", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert [case for case in own if loaded[case] != own[case]] == []
    assert {name for name, _, _ in CASES} == set(NAMES) and len(CASES) == 3 * len(NAMES) > 45
    models = [digest for case, digest in own.items() if case.startswith("Wide") and "-pandas-" in case]
    assert len(set(models)) == len(models)  # the digests tell models apart


if __name__ == "__main__":
    files = sorted(Path(sys.argv[1]).glob("*.skops"))
    parts = {path.stem: path.stem.split("-") for path in files}
    print(json.dumps({path.stem: answers(tabsym.load(path), rows(*parts[path.stem][:2])) for path in files}))
