"""Does a wide model gain from the words of long text columns (names, descriptions)?

Five folds, seed 0, `WideClassifier()` or `WideRegressor()` on the table as it is, and with columns added that are made
of the text columns on the training rows of each fold: "first words", a column for each of the first four words;
"flags", a column for each of the 100 words in most rows; "skrub", ten components of skrub's `StringEncoder` (n-grams
of letters, weighted and projected), as numbers. The text columns stay. Results: words.md.

    TABSYM_DATA=FOLDER python benchmarks/words.py [--tables kick titanic ...] [--states 2]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold
from skrub import StringEncoder
from tables import measure, read

from tabsym import WideClassifier, WideRegressor

COLUMNS = {
    "kick": ["Model", "SubModel"],
    "titanic": ["Name", "Ticket"],
    "compas": ["c_charge_desc"],
    "usedcars": ["model_name"],
}
FIRST, FLAGS, COMPONENTS = 4, 100, 10

Added = tuple[pd.DataFrame, pd.DataFrame]


def words_of(column: pd.Series) -> list[list[str]]:
    return [[] if pd.isna(text) else text.lower().replace(",", " ").split() for text in column]


def first_words(train: pd.Series, test: pd.Series) -> Added:
    def made(column: pd.Series) -> pd.DataFrame:
        rows = [[*words, *["-"] * FIRST][:FIRST] for words in words_of(column)]
        return pd.DataFrame(rows, index=column.index, columns=[f"{column.name} {k}" for k in range(FIRST)])

    return made(train), made(test)


def flags(train: pd.Series, test: pd.Series) -> Added:
    counts = Counter(word for words in words_of(train) for word in set(words))
    chosen = [word for word, n in counts.most_common(FLAGS) if n > 1]

    def made(column: pd.Series) -> pd.DataFrame:
        rows = [set(words) for words in words_of(column)]
        return pd.DataFrame(
            {f"{column.name} {word}": ["yes" if word in row else "no" for row in rows] for word in chosen}, column.index
        )

    return made(train), made(test)


def components(train: pd.Series, test: pd.Series) -> Added:
    encoder = StringEncoder(n_components=COMPONENTS, random_state=0)
    return encoder.fit_transform(train.fillna("")), encoder.transform(test.fillna(""))


WAYS: dict[str, Callable[[pd.Series, pd.Series], Added] | None] = {
    "as it is": None,
    "first words": first_words,
    "flags": flags,
    "skrub": components,
}


def run(name: str, states: int) -> None:
    """Print a line for each way of one table: its scores, and what they differ by from the table as it is."""
    ready = read(name, None)
    columns = [column for column in COLUMNS[name] if column in ready.X]
    is_number = ready.task == "regression"
    kind, splitter = (WideRegressor, KFold) if is_number else (WideClassifier, StratifiedKFold)
    scores: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    seconds = dict.fromkeys(WAYS, 0.0)
    for train, test in splitter(5, shuffle=True, random_state=0).split(ready.X, ready.y):
        for way, make in WAYS.items():
            parts = [ready.X.iloc[train], ready.X.iloc[test]]
            start = time.process_time()
            for column in columns if make else []:
                added = make(parts[0][column], parts[1][column])
                parts = [pd.concat([part, more], axis=1) for part, more in zip(parts, added, strict=True)]
            for state in range(states):
                model = kind(random_state=state).fit(parts[0], ready.y[train])
                scores[way].append(measure(model, parts[1], ready.y[test], 0 if is_number else len(set(ready.y))))
            seconds[way] += time.process_time() - start
    for way, found in scores.items():
        cells = []
        for key in found[0]:
            values = np.array([one[key] for one in found]).reshape(5, states).mean(axis=1)
            change = values - np.array([one[key] for one in scores["as it is"]]).reshape(5, states).mean(axis=1)
            error = change.std(ddof=1) / np.sqrt(len(change))
            cells.append(f"{key} {values.mean():.5g}" + (f" ({change.mean():+.2g} ± {error:.1g})" if WAYS[way] else ""))
        print(f"| {name} {', '.join(columns)} | {way} | " + ", ".join(cells) + f" | {seconds[way]:.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=list(COLUMNS))
    parser.add_argument("--states", type=int, default=2, help="random states of the model in each fold")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table, columns | columns added | scores | processor s |\n| --- | --- | --- | ---: |")
    for table in given.tables:
        run(table, given.states)
