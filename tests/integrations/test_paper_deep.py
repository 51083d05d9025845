"""The benchmark of the paper's networks: a stack of networks is what its networks would be alone."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "paper_deep"))

from networks import NETWORKS  # noqa: E402
from problems import Part, Problem  # noqa: E402
from tabsym_torch import GSE  # noqa: E402
from training import OPTIMIZERS, Cell, Copy, fit, initial, scores  # noqa: E402

SIZES, N, EPOCHS, BATCH = [3, 7, 30], 150, 2, 32
COPIES = [Copy(0, 0.02), Copy(1, 0.02), Copy(2, 0.02)]
RATES = [Copy(0, 0.003), Copy(0, 0.03), Copy(1, 0.003), Copy(5, 1.5)]


def made_up(name: str) -> Problem:
    """Rows with missing symbols; classes, or with "usedcars" numbers."""
    generator = torch.Generator().manual_seed(3)
    codes = torch.stack([torch.randint(-1, size, (N,), generator=generator) for size in SIZES], 1)
    numbers = torch.randn(N, generator=generator)
    part = Part(codes, numbers) if name == "usedcars" else Part(codes, codes[:, 1].clamp(min=0) % 4)
    return Problem(name, part, part, part, SIZES, 1 if name == "usedcars" else 4, 1.0)


def alone(problem: Problem, cell: Cell, copy: Copy) -> torch.nn.Module:
    """One network trained by itself, in the plainest way."""
    torch.manual_seed(copy.seed)
    network = NETWORKS[cell.model](problem.sizes, problem.n_out)
    optimizer = OPTIMIZERS[cell.optimizer](network.parameters(), lr=copy.rate)
    optimizer = GSE(optimizer, network) if cell.estimator == "gse" else optimizer
    rows, generator = problem.train, torch.Generator().manual_seed(copy.seed)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(N, generator=generator).split(cell.batch_size):
            optimizer.zero_grad()
            loss_of(network(rows.codes[chosen]), rows.y[chosen]).backward()
            optimizer.step()
    return network.eval()


def loss_of(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if output.shape[1] == 1:
        return torch.nn.functional.mse_loss(output.squeeze(1), y)
    return torch.nn.functional.cross_entropy(output, y)


def check(problem: Problem, cell: Cell, copies: list[Copy]) -> None:
    network = initial(problem, cell.model, [copy.seed for copy in copies])
    fit(network, problem.train, cell, copies, EPOCHS)
    losses, _ = scores(network, problem, problem.test)
    codes = problem.test.codes
    outputs = network(codes.unsqueeze(1).expand(-1, len(copies), -1))
    for copy, output, loss in zip(copies, outputs, losses, strict=True):
        expected = alone(problem, cell, copy)(codes)
        torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
        assert loss == pytest.approx(float(loss_of(expected, problem.test.y).detach()), rel=1e-5)


# Float64: Adam divides by the root of a square, which makes much of the last digit of a small gradient.
@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("estimator", "copies"), [("gse", COPIES), ("mean", RATES)], ids=["gse", "mean"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", NETWORKS)
@pytest.mark.slow
def test_stack_equals_networks_alone(model, optimizer, estimator, copies):
    check(made_up("adult"), Cell(model, optimizer, estimator, BATCH), copies)


@pytest.mark.parametrize("estimator", ["gse", "mean"])
def test_regression_too(estimator):
    check(made_up("usedcars"), Cell("mlp", "adam", estimator, BATCH), COPIES)


def test_estimators_differ_and_row_of_no_symbol_stays_zero():
    problem, ends = made_up("adult"), {}
    for estimator in ("gse", "mean"):
        network = initial(problem, "mlp", [0, 1])
        fit(network, problem.train, Cell("mlp", "adam", estimator, BATCH), [Copy(0, 0.01), Copy(1, 0.1)], 1)
        ends[estimator] = network[0].weight.detach()
        assert not ends[estimator][0].any()
    assert not torch.allclose(ends["gse"], ends["mean"])
