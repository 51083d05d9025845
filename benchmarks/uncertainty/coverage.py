"""How often intervals of coefficients, of differences of two and of predictions cover the truth: generated tables.

    python benchmarks/uncertainty/coverage.py [--tables 200] [--losses squared_error poisson ...] [--report]

An additive truth: a column of many categories (normal, standard deviation .7), one of few (.5), and a number with slope
.4; behind the link of each loss. "none": ``alpha=0``, as a GLM; "estimated": ``alpha="auto"``, each table with
other effects. Intervals are normal, value +- z sd, with the `sd` of `coefs_`, of `contrast` and of
``return_std=True`` (128 draws). Coefficients are about the mean of their term: of rows without a penalty, of categories
with one. Rows go to results.csv as they arrive; what stands there is not run again.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from scipy.stats import norm

from tabsym import WideClassifier, WideRegressor

RESULTS = Path(__file__).parent / "results.csv"
LOSSES = ("squared_error", "huber", "poisson", "rare counts", "gamma", "tweedie", "logistic", "multinomial")
RARE = np.log(0.1)  # about .15 a row
SIZES = {"400 rows, 20 and 8 categories": (400, 20, 8), "2,000 rows, 400 and 20": (2000, 400, 20)}
LEVELS = (0.8, 0.95)
SLOPE, SPREADS = 0.4, (0.7, 0.5)


class Table:
    """A truth, training rows and 300 more of the categories that these have."""

    def __init__(self, loss: str, n: int, many: int, few: int, seed: int) -> None:
        self.loss, self.rng = loss, np.random.default_rng(seed)
        k = 3 if loss == "multinomial" else 1
        self.effects = [
            spread * self.rng.normal(size=(size, k)) for size, spread in zip((many, few), SPREADS, strict=True)
        ]
        self.slopes = SLOPE * self.rng.normal(size=k) if k > 1 else np.array([SLOPE])
        if k > 1:  # what is common to all classes has no effect
            self.effects = [one - one.mean(axis=1, keepdims=True) for one in self.effects]
            self.slopes = self.slopes - self.slopes.mean()
        self.codes = [self.rng.integers(0, size, n) for size in (many, few)]
        self.x = self.rng.normal(size=n)
        self.X, self.score = self.frame(self.codes, self.x), self.scores(self.codes, self.x)
        self.y = self.targets(self.score)
        new = [self.rng.choice(np.unique(one), 300) for one in self.codes]
        numbers = self.rng.normal(size=300)
        self.new, self.new_score = self.frame(new, numbers), self.scores(new, numbers)

    def frame(self, codes: list[np.ndarray], x: np.ndarray) -> pd.DataFrame:
        named = {name: [f"{name}{code:04}" for code in own] for name, own in zip("ab", codes, strict=True)}
        return pd.DataFrame(named | {"x": x})

    def scores(self, codes: list[np.ndarray], x: np.ndarray) -> np.ndarray:
        start = RARE if self.loss == "rare counts" else 0.3
        return start + self.effects[0][codes[0]] + self.effects[1][codes[1]] + np.outer(x, self.slopes)

    def targets(self, score: np.ndarray) -> np.ndarray:
        rng, n = self.rng, len(score)
        if self.loss == "multinomial":
            return (rng.random((n, 1)) > softmax(score, axis=1).cumsum(axis=1)).sum(axis=1)
        score, mean = score[:, 0], np.exp(score[:, 0])
        if self.loss == "logistic":
            return (rng.random(n) < expit(score)).astype(int)
        if self.loss in ("poisson", "rare counts"):
            return rng.poisson(mean)
        if self.loss == "gamma":
            return rng.gamma(2.0, mean / 2.0)
        if self.loss == "tweedie":  # compound Poisson-gamma of power 1.5 and dispersion 1
            counts = rng.poisson(2.0 * mean**0.5)
            return np.where(counts > 0, rng.gamma(np.maximum(counts, 1), mean**0.5 / 2.0), 0.0)
        return score + (rng.standard_t(4, n) if self.loss == "huber" else rng.normal(size=n))


def covered(table: Table, penalty: str) -> dict[str, list[float]]:
    """By kind of number, how many standard deviations it lies from the truth."""
    kind = WideClassifier if table.loss in ("logistic", "multinomial") else WideRegressor
    named = {} if kind is WideClassifier else {"loss": table.loss.replace("rare counts", "poisson")}
    has_draws = table.loss != "multinomial"  # which there are none of for several classes
    model = kind(
        numeric="linear", interactions=None, count_effect=False, alpha=0.0 if penalty == "none" else "auto",
        n_posterior_samples=128 if has_draws else 0, **named,
    ).fit(table.X, table.y)  # fmt: skip
    found: dict[str, list[float]] = {"coefficient": [], "difference": [], "slope": [], "prediction": []}
    k = len(table.slopes)
    for name, effects, codes in zip("ab", table.effects, table.codes, strict=True):
        seen, counts = np.unique(codes, return_counts=True)
        shares = counts / counts.sum() if penalty == "none" else np.full(len(seen), 1 / len(seen))
        truth = effects[seen] - shares @ effects[seen]
        frame = model.coefs_[name].loc[[f"{name}{code:04}" for code in seen]].to_numpy()
        value, sd = frame[:, :k], frame[:, k : 2 * k]
        found["coefficient"] += list(np.abs((value - truth) / sd).ravel())
        for one, other in table.rng.choice(len(seen), (20, 2)):
            if one != other:
                labels = [f"{name}{seen[at]:04}" for at in (one, other)]
                difference = model.contrast(name, *labels)
                own = np.asarray(difference["value"]) - (truth[one] - truth[other])
                found["difference"] += list(np.abs(own / np.asarray(difference["sd"])).ravel())
    slope = model.coefs_["x"].to_numpy().ravel()
    found["slope"] += list(np.abs((slope[:k] - table.slopes) / slope[k : 2 * k]))
    if not has_draws:
        return found
    if kind is WideClassifier:
        value, sd = model.decision_function(table.new, return_std=True)
    else:
        value, sd = model.predict(table.new, return_std=True)
        if table.loss in ("poisson", "rare counts", "gamma", "tweedie"):
            value, sd = np.log(value), sd / value
    found["prediction"] += list(np.abs((value - table.new_score[:, 0]) / sd))
    return found


def run(losses: list[str], tables: int) -> None:
    done = set()
    if RESULTS.exists():
        done = set(pd.read_csv(RESULTS)[["loss", "size", "penalty"]].itertuples(index=False, name=None))
    for loss in losses:
        for size, (n, many, few) in SIZES.items():
            for penalty in ("none", "estimated"):
                if (loss, size, penalty) in done or (penalty == "none" and many > 100):
                    continue
                rows = []
                for seed in range(tables):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = covered(Table(loss, n, many, few, seed), penalty)
                    for kind, away in found.items():
                        known = np.asarray(away)[np.isfinite(away)]
                        unknown = 1.0 - len(known) / max(len(away), 1)
                        for level in LEVELS:
                            inside = float(np.mean(known <= norm.ppf(0.5 + level / 2))) if len(known) else np.nan
                            rows.append([loss, size, penalty, kind, seed, level, inside, unknown])
                columns = ["loss", "size", "penalty", "kind", "seed", "level", "covered", "unknown"]
                frame = pd.DataFrame(rows, columns=columns)
                frame = frame.groupby(["loss", "size", "penalty", "kind", "level"], sort=False).agg(
                    covered=("covered", "mean"),
                    error=("covered", "sem"),
                    unknown=("unknown", "mean"),
                    tables=("seed", "nunique"),
                )
                frame.round(4).reset_index().to_csv(RESULTS, mode="a", header=not RESULTS.exists(), index=False)
                print(frame.round(3).to_string(), flush=True)


def report() -> None:
    frame = pd.read_csv(RESULTS)
    frame["shown"] = [f"{100 * one:.0f}" for one in frame["covered"]]
    wide = frame.pivot_table(
        index=["size", "penalty", "loss"], columns=["kind", "level"], values="shown", aggfunc="first", sort=False
    )
    kinds = wide.columns.get_level_values("kind").unique()
    print("| | | |", " | ".join(kinds), "|")
    print("| --- | --- | --- |", " | ".join("---" for _ in kinds), "|")
    for names, row in wide.iterrows():
        cells = ["" if row[kind].eq("nan").any() else " / ".join(row[kind].fillna("")) for kind in kinds]
        print("|", " | ".join([*names, *cells]), "|")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--losses", nargs="+", default=list(LOSSES))
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    if given.report:
        report()
    else:
        run(given.losses, given.tables)
