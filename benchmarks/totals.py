"""Do predictions add up? Predicted over observed totals on the training rows, at defaults, over ten seeds.

163,000 rows of six symbolic columns (Zipf and uniform, 5 to 3,000 symbols) and two numbers. A model with a canonical
link and an intercept that is at its optimum predicts the observed total exactly: squared_error, logistic, poisson and
multinomial (the worst class of each seed), and all but the last also with an offset: for poisson log(exposure)
around 0 of sd 1. `deviance` is the mean training loss over that of scikit-learn's model on one-hot columns (its
penalty so small that it only keeps it finite; logistic with an offset: scipy's), in %, of the first two seeds; for
poisson the deviance's.

Then the squared loss alone, 400,000 rows of three columns of 120 symbols in all, a signal of four times the noise,
with and without an offset of sd 5: the mean squared training error over that of least squares, in %.

    python benchmarks/totals.py [--rows 163000] [--seeds 10] [--losses squared_error logistic poisson multinomial]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from convergence.optimum import least_squares, loss_of_predictions, one_hot, optimum
from convergence.problems import Problem
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from tabsym import WideSGDClassifier, WideSGDRegressor

SIZES = (5, 12, 30, 100, 500, 3_000)
LEVELS = {"logistic": -2.5, "poisson": -2.9, "squared_error": 10.0}
N_CLASSES = 4
PEER_SEEDS = 2


def make_table(n_rows: int, sizes: tuple[int, ...], seed: int) -> tuple[pd.DataFrame, np.ndarray, np.random.Generator]:
    """The frame, a score of sd .6 for each of four outputs (n_rows, 4), and the generator for more."""
    rng = np.random.default_rng(seed)
    columns, score = {}, np.zeros((n_rows, N_CLASSES))
    for j, size in enumerate(sizes):
        share = 1.0 / np.arange(1, size + 1) if j % 2 else np.ones(size)
        codes = rng.choice(size, n_rows, p=share / share.sum())
        score += rng.normal(0.0, 1.0, (size, N_CLASSES))[codes]
        columns[f"s{j}"] = pd.Series(codes).map("symbol {}".format).astype("str")
    for j, values in enumerate((rng.normal(50.0, 10.0, n_rows), rng.gamma(2.0, 1.0, n_rows))):
        columns[f"x{j}"] = values
        score += 0.3 * ((values - values.mean()) / values.std())[:, None]
    return pd.DataFrame(columns), 0.6 * (score - score.mean(axis=0)) / score.std(axis=0), rng


def make_problem(loss: str, with_offset: bool, n_rows: int, seed: int) -> Problem:
    X, scores, rng = make_table(n_rows, SIZES, seed)
    if loss == "multinomial":
        scores = scores + np.array([0.0, -0.5, -1.0, -2.5])
        return Problem(loss, 0, X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1), loss, scores)
    offset = rng.normal(0.0, 1.0, n_rows) if with_offset else None
    score = scores[:, 0] + LEVELS[loss] + (0.0 if offset is None else offset)
    if loss == "squared_error":
        y = score + rng.normal(size=n_rows)
    else:
        y = rng.poisson(np.exp(score)) if loss == "poisson" else rng.random(n_rows) < 1.0 / (1.0 + np.exp(-score))
    return Problem(loss, 0, X, np.asarray(y).astype(int if loss == "logistic" else float), loss, score, offset=offset)


def wide(problem: Problem) -> tuple[np.ndarray, float, int]:
    """Predictions on the training rows, seconds of the fit, epochs."""
    is_class = problem.loss in ("logistic", "multinomial")
    model: Any = WideSGDClassifier(random_state=0) if is_class else WideSGDRegressor(loss=problem.loss, random_state=0)
    extra = {} if problem.offset is None else {"offset": problem.offset}
    start = time.perf_counter()
    model.fit(problem.X, problem.y, **extra)
    seconds = time.perf_counter() - start
    return (model.predict_proba if is_class else model.predict)(problem.X, **extra), seconds, model.n_iter_


def least_loss(problem: Problem) -> float:
    """The loss of the linear model on one-hot columns; scikit-learn's, where it has the loss and takes the offset."""
    X, y = one_hot(problem), problem.y
    if problem.loss == "squared_error":
        return loss(problem, least_squares(problem))
    if problem.loss == "poisson":
        exposure = np.ones(len(y)) if problem.offset is None else np.exp(problem.offset)
        model = PoissonRegressor(alpha=1e-7, max_iter=300)  # a rate, weighted by exposure: the same optimum
        return loss(problem, model.fit(X, y / exposure, sample_weight=exposure).predict(X) * exposure)
    if problem.offset is not None:
        return optimum(problem).loss
    return loss(problem, LogisticRegression(C=1e4, max_iter=300).fit(X, y).predict_proba(X))


def loss(problem: Problem, predicted: np.ndarray) -> float:
    """Mean training loss; for poisson half the deviance."""
    least = loss_of_predictions(problem, problem.y) if problem.loss == "poisson" else 0.0
    return loss_of_predictions(problem, predicted) - least


def totals(problem: Problem, predicted: np.ndarray) -> float:
    """Predicted over observed total; of classes the one that is farthest from 1."""
    if problem.loss == "multinomial":
        ratios = predicted.sum(axis=0) / np.bincount(problem.y)
        return float(ratios[np.argmax(np.abs(ratios - 1))])
    predicted = predicted[:, 1] if predicted.ndim == 2 else predicted
    return float(predicted.sum() / problem.y.sum())


def add_up(name: str, with_offset: bool, n_rows: int, seeds: int) -> None:
    ratios, excess, seconds = [], [], []
    for seed in range(seeds):
        problem = make_problem(name, with_offset, n_rows, seed)
        predicted, taken, epochs = wide(problem)
        ratios.append(totals(problem, predicted))
        seconds.append(taken)
        if seed < PEER_SEEDS:
            excess.append(100 * (loss(problem, predicted) / least_loss(problem) - 1))
    off = 100 * np.abs(np.array(ratios) - 1)
    shown = " ".join(f"{ratio:.4f}" for ratio in ratios)
    what = name + (", offset" if with_offset else "")
    print(
        f"| {what} | {off.max():.2f} | {shown} | {np.mean(excess):+.2f} | {np.median(seconds):.2f} | {epochs} |",
        flush=True,
    )


def squares(n_rows: int, seeds: int) -> None:
    """The additive model of 120 symbols against least squares."""
    for with_offset in (False, True):
        excess = []
        for seed in range(seeds):
            X, scores, rng = make_table(n_rows, (20, 40, 60), seed)
            offset = rng.normal(0.0, 5.0, n_rows) if with_offset else None
            y = scores[:, 0] + rng.normal(0.0, 0.15, n_rows) + (0.0 if offset is None else offset)
            problem = Problem("squared_error", 0, X, y, "squared_error", scores[:, 0], offset=offset)
            predicted, _, epochs = wide(problem)
            excess.append(100 * (loss(problem, predicted) / loss(problem, least_squares(problem)) - 1))
        what = "an offset of sd 5" if with_offset else "no offset"
        print(f"{n_rows:,} rows, 120 symbols, {what}: mean squared error over least squares' "
              f"{np.mean(excess):.3f} % (worst {np.max(excess):.3f}), {epochs} epochs", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=163_000)
    parser.add_argument("--square-rows", type=int, default=400_000)
    parser.add_argument("--seeds", type=int, default=10)
    names = ["squared_error", "logistic", "poisson", "multinomial"]
    parser.add_argument("--losses", nargs="*", default=names, choices=names)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| loss | worst, % | predicted / observed, by seed | deviance, % above the linear model | fit s | epochs |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for name in args.losses:
        for with_offset in (False, True)[: 1 if name == "multinomial" else 2]:
            add_up(name, with_offset, args.rows, args.seeds)
    squares(args.square_rows, min(args.seeds, 3))


if __name__ == "__main__":
    main()
