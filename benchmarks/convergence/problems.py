"""The problems of the convergence study: six kinds, six of each, from a seed, for any number of rows.

Those of a kind differ in what a default must survive: alphabets of 10 to 1,000 symbols, uniform or Zipf, 2 to 8
columns, weak or strong signal, classes of 50 to 3 %, numeric columns or none (far from 0 and of spreads from .01 to
10,000), targets of 250,000 or of a thousandth, exposures that spread a little or over four powers of ten. Targets
are always noisy: an optimum of 0 has no excess in %. Rare symbols stay few enough that the optimum is a fit and
not a list of the rows: `python benchmarks/convergence/problems.py` prints, for each problem, the training loss
of the optimum beside that of the truth.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PRODUCT = "g[a]*m[b]*x + c[1]"
DOT = "dot(u[user], v[item], rank=4) + b[1]"
N_CLASSES = 4


@dataclass(frozen=True)
class Spec:
    """What makes a problem of its kind; numbers of numeric columns are (mean, spread)."""

    sizes: tuple[int, ...]
    zipf: bool = False
    numbers: tuple[tuple[float, float], ...] = ()
    signal: float = 1.0  # sd of the score, in units of the noise where there is one
    level: float = 0.0  # mean of the score (additive squared, product, dot: of y, in units of its sd)
    scale: float = 1.0  # sd of y
    exposure: float = 0.0  # sd of log(exposure)
    at: float = 0.0  # mean of log(exposure)


@dataclass(frozen=True)
class Problem:
    """A table, its target, and what the model is told."""

    kind: str
    place: int
    X: pd.DataFrame
    y: NDArray[Any]
    loss: str
    truth: Floats = field(repr=False)  # the score without noise: (n_rows,), or (n_rows, n_classes)
    formula: str | None = None
    offset: Floats | None = field(default=None, repr=False)

    @property
    def categories(self) -> list[str]:
        return [name for name in self.X if not pd.api.types.is_numeric_dtype(self.X[name])]


SPECS: Mapping[str, tuple[Spec, ...]] = {
    "logistic": (
        Spec((10, 30)),
        Spec((100, 30, 10), zipf=True, signal=2.0),
        Spec((10, 20, 30), numbers=((0.0, 1.0), (50.0, 10.0)), signal=1.0, level=-3.6),
        Spec((300, 100), signal=0.7, level=-1.0),
        Spec((10, 10, 20, 20, 30, 50, 100, 100), zipf=True, numbers=((1e4, 1e4),), signal=1.5),
        Spec((1000, 50, 10, 10), zipf=True, signal=1.0, level=-1.5),
    ),
    "squared": (
        Spec((10, 30), signal=1.0),
        Spec((300, 100, 50), zipf=True, signal=0.3, level=4.0, scale=250_000),
        Spec((100, 20), numbers=((50.0, 10.0), (0.0, 0.01)), signal=3.0, scale=1e-3),
        Spec((1000, 200), signal=5.0, level=2.0, scale=100),
        Spec((10, 10, 20, 20, 30, 50, 100, 100), zipf=True, numbers=((1e4, 1e3),), signal=1.0),
        Spec((1000, 300, 30, 10), zipf=True, signal=2.0, level=-3.0, scale=1e4),
    ),
    "product": (
        Spec((10, 30), numbers=((1.0, 0.5),), signal=1.0),
        Spec((300, 50), zipf=True, numbers=((1.0, 0.5),), signal=3.0, level=1.0, scale=250_000),
        Spec((1000, 20), zipf=True, numbers=((2.0, 1.0),), signal=2.0),
        Spec((100, 100), numbers=((50.0, 10.0),), signal=0.5, scale=1e-3),
        Spec((1000, 50), numbers=((1.0, 0.7),), signal=2.0, level=-1.0),
        Spec((50, 10), zipf=True, numbers=((1e4, 8e3),), signal=10.0, level=3.0, scale=100),
    ),
    "dot": (
        Spec((20, 10), signal=1.0),
        Spec((100, 50), zipf=True, signal=2.0, level=3.0),
        Spec((200, 200), signal=1.0, level=3.6),
        Spec((300, 30), signal=3.0, scale=250_000, level=2.0),
        Spec((200, 50), zipf=True, signal=0.5, scale=1e-3),
        Spec((50, 300), zipf=True, signal=5.0),
    ),
    "poisson": (
        Spec((10, 30), level=0.0, signal=0.5, exposure=0.2),
        Spec((100, 50, 10), zipf=True, level=-2.0, signal=0.4, exposure=0.7, at=-0.7),
        Spec((20, 10, 10), numbers=((50.0, 15.0), (0.0, 1.0)), level=-3.0, signal=0.5, exposure=0.7, at=-0.3),
        Spec((300, 30), level=1.0, signal=0.7, exposure=1.5, at=1.0),
        Spec((10, 10, 20, 20, 30, 50, 100, 100), zipf=True, level=-9.0, signal=0.5, exposure=0.5, at=9.0),
        Spec((1000, 30, 10), zipf=True, numbers=((1e4, 1e4),), level=-1.0, signal=0.6, exposure=1.0, at=1.0),
    ),
    "multinomial": (
        Spec((10, 30)),
        Spec((100, 30, 10), zipf=True, signal=2.0),
        Spec((10, 20, 30), numbers=((0.0, 1.0), (50.0, 10.0)), signal=1.0, level=1.5),
        Spec((200, 100), signal=0.7),
        Spec((10, 10, 20, 20, 30, 50, 50, 50), zipf=True, numbers=((1e4, 1e4),), signal=1.5),
        Spec((1000, 50, 10), zipf=True, signal=1.0, level=0.7),
    ),
}
KINDS = tuple(SPECS)
N_PROBLEMS = 6


def make(kind: str, place: int, n_rows: int, seed: int = 0) -> Problem:
    """Problem `place` (0 to 5) of a kind; the effects are the same for any number of rows."""
    spec = SPECS[kind][place]
    key = zlib.crc32(f"{kind} {place} {seed}".encode())
    effects, rows = np.random.default_rng([key, 0]), np.random.default_rng([key, 1, n_rows])
    codes = np.column_stack([_draw(rows, size, n_rows, spec.zipf) for size in spec.sizes])
    numbers = np.array([_numbers(rows, mean, spread, n_rows) for mean, spread in spec.numbers]).reshape(-1, n_rows).T
    names = {"product": ["a", "b"], "dot": ["user", "item"]}.get(kind, [f"c{j}" for j in range(len(spec.sizes))])
    X = pd.DataFrame({name: pd.Series(codes[:, j]).map("s{}".format).astype("str") for j, name in enumerate(names)})
    for j, column in enumerate(numbers.T):
        X["x" if kind == "product" else f"x{j}"] = column
    if kind in ("product", "dot"):
        score = _product(effects, codes, numbers, spec) if kind == "product" else _dot(effects, codes, spec)
        return _with_noise(kind, place, X, score, spec, rows)
    n_outputs = N_CLASSES if kind == "multinomial" else 1
    score = np.column_stack([_additive(effects, codes, numbers, spec) for _ in range(n_outputs)]) * spec.signal
    if kind == "squared":
        return _with_noise(kind, place, X, score[:, 0], spec, rows)
    if kind == "poisson":
        return _counts(place, X, score[:, 0], spec, rows)
    score += spec.level * np.arange(n_outputs) if n_outputs > 1 else spec.level
    full = score if n_outputs > 1 else np.column_stack([np.zeros(n_rows), score[:, 0]])
    y = np.argmax(full + rows.gumbel(size=full.shape), axis=1)
    return Problem(kind, place, X, y, kind, full if n_outputs > 1 else score[:, 0])


def _draw(rng: np.random.Generator, size: int, n_rows: int, zipf: bool) -> NDArray[np.int64]:
    share = 1.0 / np.arange(1, size + 1) if zipf else np.ones(size)
    return rng.choice(size, n_rows, p=share / share.sum())


def _numbers(rng: np.random.Generator, mean: float, spread: float, n_rows: int) -> Floats:
    """Normal; gamma (positive, a long tail) where the spread is above 2/5 of the mean."""
    if 0.4 * mean < spread < 2 * mean:
        shape = (mean / spread) ** 2
        return rng.gamma(shape, mean / shape, n_rows)
    return rng.normal(mean, spread, n_rows)


def _additive(rng: np.random.Generator, codes: NDArray[np.int64], numbers: Floats, spec: Spec) -> Floats:
    """A sum of normal effects and slopes, of mean about 0 and sd about 1."""
    parts = [rng.normal(size=size)[codes[:, j]] for j, size in enumerate(spec.sizes)]
    parts += [rng.normal() * (numbers[:, j] - mean) / spread for j, (mean, spread) in enumerate(spec.numbers)]
    score = np.sum(parts, axis=0)
    return (score - score.mean()) / score.std()


def _product(rng: np.random.Generator, codes: NDArray[np.int64], numbers: Floats, spec: Spec) -> Floats:
    g, m = (rng.lognormal(0.0, 0.4, size) for size in spec.sizes)
    return g[codes[:, 0]] * m[codes[:, 1]] * numbers[:, 0]


def _dot(rng: np.random.Generator, codes: NDArray[np.int64], spec: Spec) -> Floats:
    u, v = (rng.normal(size=(size, 4)) for size in spec.sizes)
    return (u[codes[:, 0]] * v[codes[:, 1]]).sum(axis=1)


def _with_noise(kind: str, place: int, X: pd.DataFrame, score: Floats, spec: Spec, rng: np.random.Generator) -> Problem:
    """y = scale * (level + signal : noise), of sd `scale`."""
    parts = np.array([spec.signal, 1.0]) / np.hypot(spec.signal, 1.0) * spec.scale
    truth = parts[0] * score / score.std() + spec.level * spec.scale
    formula = {"product": PRODUCT, "dot": DOT}.get(kind)
    return Problem(kind, place, X, truth + parts[1] * rng.normal(size=len(X)), "squared_error", truth, formula)


def _counts(place: int, X: pd.DataFrame, score: Floats, spec: Spec, rng: np.random.Generator) -> Problem:
    offset = rng.normal(spec.at, spec.exposure, len(X))
    truth = score + spec.level + offset
    return Problem("poisson", place, X, rng.poisson(np.exp(truth)).astype(float), "poisson", truth, offset=offset)


def main() -> None:
    from optimum import loss_of, optimum

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    args = parser.parse_args()
    print(f"{'':16}{'rows':>9}{'optimum':>12}{'truth':>12}{'constant':>12}{'seconds':>9}")
    for kind in args.kinds:
        for n_rows in args.rows:
            for place in range(N_PROBLEMS):
                problem = make(kind, place, n_rows)
                best = optimum(problem)
                losses = f"{best.loss:12.6g}{loss_of(problem, problem.truth):12.6g}{best.constant:12.6g}"
                print(f"{kind:12}{place:4}{n_rows:9,}{losses}{best.seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
