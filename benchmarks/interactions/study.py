"""False discoveries and power of ``interactions="auto"``, by rule: additive truths, and one true pair.

    python benchmarks/interactions/study.py --tables 60
    python benchmarks/interactions/study.py --tables 20 --few    # few rows for each coefficient, each target's own rule

12 columns of skewed categories with an additive truth (66 pairs, none of them true), as wide as 3 to 200 categories,
all of 2 and all of 5, and 50 columns of 8 (1,225 pairs); and 6 columns with one true pair of 8 x 5 cells (standard
deviation .7 on the scale of scores).
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.special import expit

from tabsym import WideClassifier, WideRegressor
from tabsym.interactions import AutoInteractions
from tabsym.interactions.search import FOR_BINARY, FOR_CLASSES, FOR_MANY_ROWS, FOR_REGRESSION, MANY_ROWS

warnings.simplefilter("ignore")
SHRUNK = {"triple_share": 0.3, "folds": 4, "penalty": 15.0, "within_categories": True}
RULES = {
    "default": AutoInteractions(),
    "1.5 errors": AutoInteractions(significance=1.5, **SHRUNK),
    "false discoveries .05": AutoInteractions(significance=1.5, false_discoveries=0.05, **SHRUNK),
    "false discoveries .02": AutoInteractions(significance=1.5, false_discoveries=0.02, **SHRUNK),
    "regression": FOR_REGRESSION,
    "several classes": FOR_CLASSES,
}
if FOR_BINARY not in RULES.values():
    raise RuntimeError("the rule for two classes is none of those that are studied")
MANY = {"false discoveries .2": FOR_MANY_ROWS}
"""The rule from 10,000 rows on."""
WIDTHS = {
    "3 to 200": [3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 60, 200],
    "12 of 2": [2] * 12,
    "12 of 5": [5] * 12,
    "50 of 8": [8] * 50,
}
FEW = {"100 of 8": [8] * 100, "30 of 40": [40] * 30, "12 of 100": [100] * 12}
OWN = {"two classes": FOR_BINARY, "regression": FOR_REGRESSION, "three classes": FOR_CLASSES}
ONE_PAIR = [8, 5, 3, 4, 6, 10]


def table(rng, n, sizes):
    codes = [np.minimum((rng.random(n) ** 1.5 * size).astype(int), size - 1) for size in sizes]
    return pd.DataFrame({f"c{i}": [f"v{code}" for code in own] for i, own in enumerate(codes)}), codes


def target(rng, task, score):
    if task == "two classes":
        return (rng.random(len(score)) < expit(score)).astype(int)
    if task == "regression":
        return score + rng.normal(size=len(score))
    return np.argmax(np.stack([0 * score, score, -score], 1) + rng.gumbel(size=(len(score), 3)), 1)


def chosen(task, X, y, rule):
    model = WideRegressor(loss="squared_error") if task == "regression" else WideClassifier()
    return model.set_params(interactions=rule).fit(X, y).interactions_["interaction"].tolist()


def drawn(seed, task, sizes, n, pair):
    rng = np.random.default_rng(seed)
    X, codes = table(rng, n, sizes)
    score = sum(rng.normal(size=size)[own] * 0.4 for size, own in zip(sizes, codes, strict=True))
    if pair:
        score = score + (rng.normal(size=(8, 5)) * 0.7)[codes[0], codes[1]]
    return X, target(rng, task, score)


def few(tables):
    print("| target | columns | rows | false a table |\n| --- | --- | --- | --- |")
    for task, rule in OWN.items():
        for name, sizes in FEW.items():
            for n in (500, 1000):
                false = [len(chosen(task, *drawn(seed, task, sizes, n, False), rule)) for seed in range(tables)]
                print(f"| {task} | {name}, additive | {n:,} | {np.mean(false):.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--tasks", nargs="+", default=["two classes", "regression", "three classes"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 4000], help="of the additive truths")
    parser.add_argument("--few", action="store_true", help="of 500 and 1,000 rows with 800 coefficients and more")
    args = parser.parse_args()
    if args.few:
        few(args.tables)
        return
    rules = RULES | (MANY if min(args.rows) >= MANY_ROWS else {})
    print("| target | columns | rows | " + " | ".join(rules) + " |\n" + "| --- " * (3 + len(rules)) + "|")
    for task in args.tasks:
        for name, sizes in WIDTHS.items():
            for n in args.rows:
                cells = []
                for rule in rules.values():
                    false = [
                        len(chosen(task, *drawn(seed, task, sizes, n, False), rule)) for seed in range(args.tables)
                    ]
                    cells.append(f"{np.mean(false):.2f}")
                print(f"| {task} | {name}, additive | {n:,} | " + " | ".join(cells) + " |", flush=True)
        for n in (500, 1000, 3000) if min(args.rows) < MANY_ROWS else ():
            cells = []
            for rule in rules.values():
                found = [chosen(task, *drawn(seed, task, ONE_PAIR, n, True), rule) for seed in range(args.tables)]
                hit = np.array(["c0:c1" in one for one in found])
                false = np.mean([len(one) for one in found]) - hit.mean()
                cells.append(f"{hit.mean():.2f} ({false:.2f})")
            print(f"| {task} | one true pair: found (false) | {n:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
