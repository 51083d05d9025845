"""The two tables of the poster on jitter trees (Bang and Lin), rebuilt as far as they are described.

Table 1: 1,000 rows of A, B and the new C, which is drawn like A, with seven other columns of 18 categories together;
how often is A the most similar, and with what share of the similarity? How far apart A and B are and how many rows
each has is not given, so both vary. Table 2: the 77 passengers of Titanic who embarked at Q,
unseen: whom do they resemble, and how many of them does a model foretell with that?

    TABSYM_DATA=FOLDER python benchmarks/unseen/poster.py
"""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from tabsym import TIWSEncoder
from tabsym.tiws.similarity import similarities

REPEATS, N_ROWS = 100, 1000
LEVELS = (2, 2, 2, 3, 3, 3, 3)
"""Categories of the seven other columns: 18 together, as the poster has it; how they are shared out is not given."""
SHARES = {"equal": (1, 1, 1), "A rare": (1, 6, 3), "B rare": (6, 1, 3), "C rare": (4.5, 4.5, 1), "drawn": None}
"""Rows of A, B and the new C in proportion; "drawn": in each repetition from a flat Dirichlet distribution."""
APART = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


def draw(rng, apart, shares):
    """Rows of the seen A and B, and of C, which is drawn like A; `apart`: 0 all alike, 1 nothing in common."""
    rows = rng.dirichlet(np.ones(3)) if shares is None else np.array(shares) / sum(shares)
    sizes = np.maximum(np.round(rows * N_ROWS).astype(int), 10)
    base = [rng.dirichlet(np.ones(levels)) for levels in LEVELS]
    own = {
        name: [(1 - apart) * shared + apart * rng.dirichlet(np.ones(len(shared))) for shared in base] for name in "AB"
    }
    parts = []
    for name, n, kind in zip("ABC", sizes, "ABA", strict=True):
        columns = {f"x{j}": rng.choice(list("pqr"[: len(p)]), n, p=p) for j, p in enumerate(own[kind])}
        parts.append(pd.DataFrame({"category": name, **columns}))
    table = pd.concat(parts, ignore_index=True)
    return table[table["category"] != "C"], table[table["category"] == "C"]


def table_1():
    """Of 100 repetitions: how often A is the most similar, and A's share of the similarity."""
    print("| rows | apart | TIWS: A chosen | share of A | documents: A nearest |\n" + "| --- " * 5 + "|")
    for (named, shares), apart in product(SHARES.items(), APART):
        rng = np.random.default_rng(0)
        chosen, share, near = 0, 0.0, 0
        for _ in range(REPEATS):
            seen, new = draw(rng, apart, shares)
            y = rng.normal(size=len(seen))
            encoder = TIWSEncoder(cols=["category"], target_type="continuous").fit(seen, y)
            fitted, unseen = encoder.columns_["category"].fitted, encoder.unseen_rows(new, "category").unseen
            words = sum(fitted.pairs.sizes) - fitted.pairs.sizes[fitted.number]
            documents = fitted.pairs.documents(fitted.number, fitted.donors)
            s = similarities(documents, unseen.documents, words, batch=True)[0]
            chosen += fitted.categories[int(np.argmax(s))] == "A"
            share += s[fitted.categories.index("A")] / s.sum() / REPEATS
            near += fitted.categories[int(np.argmin(fitted.between(unseen).distances[0]))] == "A"
        print(f"| {named} | {apart} | {chosen}/{REPEATS} | {share:.3f} | {near}/{REPEATS} |", flush=True)


def table_2():
    """Passengers of Q, unseen: donors, and how many of the 77 are foretold with each."""
    titanic = pd.read_parquet(Path(os.environ["TABSYM_DATA"]) / "titanic.parquet").dropna(subset=["Embarked"])
    columns = ["Pclass", "Sex", "Age", "SibSp", "Parch", "Fare", "Embarked"]
    X, y = titanic[columns].copy(), titanic["Survived"].to_numpy()
    new = (X["Embarked"] == "Q").to_numpy()
    print(f"\nQ: {new.sum()} rows, {y[new].mean():.3f} survived; S {y[X['Embarked'] == 'S'].mean():.3f}, "
          f"C {y[X['Embarked'] == 'C'].mean():.3f}")  # fmt: skip
    for method in ("poster", "documents"):
        for numeric in ("modl", "quantile"):
            encoder = TIWSEncoder(method=method, numeric=numeric, cols=["Embarked"], target_type="classes", smooth=1.0)
            encoder.fit(X[~new], y[~new])
            value = encoder.transform(X[new])["Embarked"].iloc[0]
            fitted, unseen = encoder.columns_["Embarked"].fitted, encoder.unseen_rows(X[new], "Embarked").unseen
            words = sum(fitted.pairs.sizes) - fitted.pairs.sizes[fitted.number]
            s = similarities(fitted.pairs.documents(fitted.number, fitted.donors), unseen.documents, words, batch=True)[
                0
            ]
            d = fitted.between(unseen).distances[0]
            print(f"{method}, {numeric}: estimate {value:.3f}; TIWS similarity "
                  f"{dict(zip(fitted.categories, s.round(3).tolist(), strict=True))}; squared distance of profiles "
                  f"{dict(zip(fitted.categories, d.round(3).tolist(), strict=True))}")  # fmt: skip
    numbers = X.drop(columns="Embarked").assign(Sex=X["Sex"] == "male").astype(float)
    points = ((numbers - numbers.mean()) / numbers.std()).fillna(0.0).to_numpy()
    near = NearestNeighbors(n_neighbors=5).fit(points[~new]).kneighbors(points[new], return_distance=False)
    ports = X["Embarked"].to_numpy()[~new][near]
    print("kNN (5 rows): majority of neighbours embarked at", dict(pd.Series(ports.ravel()).value_counts()))
    hot = OneHotEncoder(categories=[["C", "Q", "S"]], sparse_output=False)

    def coded(port):
        ports = X[["Embarked"]] if port is None else X[["Embarked"]].assign(Embarked=port)
        return np.hstack([numbers.fillna(numbers.median()), hot.fit_transform(ports)])

    print("\n| model | replaced by S | by C |\n| --- | --- | --- |")
    for name, model in {
        "tree, depth 3": DecisionTreeClassifier(max_depth=3, random_state=0),
        "tree, depth 5": DecisionTreeClassifier(max_depth=5, random_state=0),
        "tree": DecisionTreeClassifier(random_state=0),
        "forest": RandomForestClassifier(500, random_state=0),
    }.items():
        model.fit(coded(None)[~new], y[~new])
        right = {port: int((model.predict(coded(port)[new]) == y[new]).sum()) for port in ("S", "C")}
        print(f"| {name} | {right['S']}/77 = {right['S'] / 77:.1%} | {right['C']}/77 = {right['C'] / 77:.1%} |")


if __name__ == "__main__":
    table_1()
    table_2()
