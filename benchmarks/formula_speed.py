"""A multiplicative formula, `y ~ gamma[a] * mu[b] * x + c[1]`: rows per second against PyTorch, in one run.

PyTorch: two sparse embeddings and a scalar, torch.optim.SGD (SparseAdam has no
scalar to itself), one update per batch, one thread (more were slower for
batches this small). tabsym: the same model, batches, order, rate and rule, from
coded rows as PyTorch gets them. Both end at the same parameters, which is checked.

    python benchmarks/formula_speed.py [--rows 200000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tabsym.categories import Categories
from tabsym.design.model_spec import Block, Factor, ModelSpec, Rows, Term
from tabsym.design.sources import CategoricalSource
from tabsym.losses.loss import LOSSES
from tabsym.optimizers import SGD
from tabsym.solvers.sgd.loop import Task, train
from tabsym.solvers.sgd.options import Options

CATEGORIES = (10_000, 50)
RATE = 0.01


def problem(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, size, n) for size in CATEGORIES]).astype(np.int32)
    x = rng.normal(1.0, 0.3, (n, 1))
    effects = [rng.lognormal(0, 0.3, size) for size in CATEGORIES]
    return codes, x, effects[0][codes[:, 0]] * effects[1][codes[:, 1]] * x[:, 0] + 1.0


def with_tabsym(codes: np.ndarray, x: np.ndarray, y: np.ndarray, batch: int) -> tuple[float, np.ndarray]:
    n_entries = sum(CATEGORIES) + 1
    sources = tuple(
        CategoricalSource((name,), Categories(name, np.arange(size))) for name, size in zip("ab", CATEGORIES)
    )
    blocks = Block("u", 0, ("a",)), Block("v", 1, ("b",)), Block("c", None, ())
    terms = Term(1.0, 0, (Factor(0, ("a",)), Factor(1, ("b",)))), Term(1.0, None, (Factor(2, ()),))
    compiled = ModelSpec(sources, blocks, (), terms).compile([1.0, 1.0])
    options = Options(SGD(), RATE, gradient="mean", batch_size=batch, shuffle=False)
    empty = np.empty(0)
    rows = Rows(codes + np.array([0, CATEGORIES[0]], dtype=np.int32), x, y, empty, empty)
    start = options.columns.blank(np.append(np.ones(n_entries - 1), 0.0))
    task = Task(compiled.program, LOSSES["squared_error"], 1)
    train(Rows(*(part[:10] for part in rows)), empty, start, task, options, np.random.RandomState(0))  # compiles
    begin = time.perf_counter()
    state = train(rows, empty, start, task, options, np.random.RandomState(0)).state
    return time.perf_counter() - begin, state[:, 0]


def with_torch(codes: np.ndarray, x: np.ndarray, y: np.ndarray, batch: int) -> tuple[float, np.ndarray]:
    import torch

    torch.set_num_threads(1)
    blocks = [torch.nn.Embedding(size, 1, sparse=True, dtype=torch.float64) for size in CATEGORIES]
    for block in blocks:
        torch.nn.init.ones_(block.weight)
    c = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([*(block.weight for block in blocks), c], lr=RATE)
    a, b = (torch.tensor(codes[:, j].astype(np.int64)) for j in range(2))
    xs, ys = torch.tensor(x[:, 0]), torch.tensor(y)
    begin = time.perf_counter()
    for first in range(0, len(y), batch):
        i = slice(first, first + batch)
        optimizer.zero_grad()
        score = blocks[0](a[i])[:, 0] * blocks[1](b[i])[:, 0] * xs[i] + c
        (0.5 * (score - ys[i]) ** 2).mean().backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    return seconds, torch.cat([*(block.weight[:, 0] for block in blocks), c]).detach().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    args = parser.parse_args()
    print(f"{'batch':>8}{'rows':>10}{'tabsym rows/s':>16}{'torch rows/s':>15}{'ratio':>8}")
    for batch, n in ((1, args.rows // 10), (32, args.rows), (1024, args.rows * 5)):
        codes, x, y = problem(n)
        ours, parameters = with_tabsym(codes, x, y, batch)
        theirs, wanted = with_torch(codes, x, y, batch)
        np.testing.assert_allclose(parameters, wanted, rtol=1e-9, atol=1e-12)
        print(f"{batch:8,}{n:10,}{n / ours:16,.0f}{n / theirs:15,.0f}{theirs / ours:8.1f}", flush=True)


if __name__ == "__main__":
    main()
