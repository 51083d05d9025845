"""`tabsym_torch.GSE` against an oracle that keeps an optimizer per symbol and goes backward row by row."""

import copy
import datetime
import io
import re
import runpy
import shutil
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from tabsym_torch import GSE, OneHotLinear  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tests.oracles.torch_gse import NaiveGSE, bag_row, embedding_row, linear_row, one_hot_linear_row  # noqa: E402

pytestmark = pytest.mark.slow

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
K = 11  # entries of every table: no other dimension has this size, so that the states' rows are known by it
WIDTH = 3
N_NUMBERS = 2
PADDING = 2
SIZES = (4, 6)  # the alphabets of the one-hot columns: with the row of "nothing", K rows
ONE_HOT = (0, 1, 2, 4, 7, 8, 10)  # the wide rows' one-hot columns: 0, 1, 2, 4 of one alphabet, 7, 8, 10 of another
NUMERIC = tuple(j for j in range(K) if j not in ONE_HOT)
POSITIONS = (1.0, 0.7, 0.4)  # what a code weighs by its place in a row, so that no two places are alike
CHANCES = np.array([6, 4, 3, 3, 2, 1, 1, 0.3, 0.1, 0, 0])  # of the symbols: some often, some hardly, some never


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The tables are tiny: more threads only fight each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@contextmanager
def default_dtype(dtype):
    """Torch keeps some scalar state (that of NAdam and ASGD) in the default type, not in that of the parameter."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


# Kinds of module: each builds it, draws the codes of a row, reads a batch, and says the same row by row to the oracle.


def symbol(rng, chances=CHANCES):
    return int(rng.choice(len(chances), p=np.asarray(chances) / np.sum(chances)))


def integers(values, device):
    return torch.tensor(values, dtype=torch.int64, device=device)


class Kind:
    """A module with one table of symbols, `symbols.weight`, that turns the codes of a row into a vector."""

    sparse = True

    def tables(self, net):
        return {"symbols.weight": dict(enumerate(net.symbols.weight))}

    def dense(self, net):
        tables = self.tables(net)
        return {name: tensor for name, tensor in net.named_parameters() if name not in tables}

    def expected(self, naive, name):
        """The parameter of this name as the oracle has it."""
        if name in naive.tables:
            rows = naive.tables[name]
            return torch.stack([rows[k].detach() for k in range(len(rows))])
        return naive.dense[name].detach()

    def rows_of(self, tensor):
        """The tensor of a parameter or its state with one row per symbol."""
        return tensor

    def one_hot_columns(self, net):
        return None

    def mend(self, net):
        """After random values were put into all parameters: what has to be zero."""

    def collate(self, codes, device):
        return {"codes": integers(codes, device)}

    def __repr__(self):
        return type(self).__name__


class Vector(Kind):
    """`nn.Embedding` with input [B]."""

    def module(self, sparse=False):
        return nn.Embedding(K, WIDTH, sparse=sparse)

    def draw(self, rng):
        return symbol(rng)

    def collate(self, codes, device):
        return {"codes": integers(codes, device).to(torch.int32)}

    def read(self, module, batch):
        return module(batch["codes"])

    def vector(self, naive, codes):
        vectors, selected = embedding_row(naive.tables["symbols.weight"], [codes])
        return vectors[0], {"symbols.weight": selected}


class Sentence(Kind):
    """`nn.Embedding` with input [B, L] and padding, a symbol often more than once in a row."""

    def module(self, sparse=False):
        return nn.Embedding(K, WIDTH, padding_idx=PADDING, sparse=sparse)

    def draw(self, rng):
        codes = [symbol(rng) for _ in POSITIONS]
        if rng.random() < 0.4:
            codes[1] = codes[0]
        return codes

    def read(self, module, batch):
        weights = torch.tensor(POSITIONS, device=batch["x"].device, dtype=batch["x"].dtype)
        return (module(batch["codes"]) * weights[:, None]).sum(1)

    def vector(self, naive, codes):
        vectors, selected = embedding_row(naive.tables["symbols.weight"], codes, PADDING)
        return sum(vector * weight for vector, weight in zip(vectors, POSITIONS)), {"symbols.weight": selected}


class HomeAway(Kind):
    """One table called twice in a forward pass; a row whose two codes are one selects that symbol once."""

    def module(self, sparse=False):
        return nn.Embedding(K, WIDTH, sparse=sparse)

    def draw(self, rng):
        home = symbol(rng)
        return [home, home if rng.random() < 0.2 else symbol(rng)]

    def read(self, module, batch):
        return module(batch["codes"][:, 0]) - 0.6 * module(batch["codes"][:, 1])

    def vector(self, naive, codes):
        (home, away), selected = embedding_row(naive.tables["symbols.weight"], codes)
        return home - 0.6 * away, {"symbols.weight": selected}


class Tied(HomeAway):
    """Two embeddings with one weight."""

    def module(self, sparse=False):
        home = nn.Embedding(K, WIDTH, sparse=sparse)
        away = nn.Embedding(K, WIDTH, sparse=sparse, _weight=home.weight)
        away.weight = home.weight
        return nn.ModuleDict({"home": home, "away": away})

    def tables(self, net):
        return {"symbols.home.weight": dict(enumerate(net.symbols["home"].weight))}

    def read(self, module, batch):
        return module["home"](batch["codes"][:, 0]) - 0.6 * module["away"](batch["codes"][:, 1])

    def vector(self, naive, codes):
        (home, away), selected = embedding_row(naive.tables["symbols.home.weight"], codes)
        return home - 0.6 * away, {"symbols.home.weight": selected}


class Bag(Kind):
    """`nn.EmbeddingBag` with 2D input."""

    mode = "sum"

    def module(self, sparse=False):
        return nn.EmbeddingBag(K, WIDTH, mode=self.mode, padding_idx=PADDING, sparse=sparse)

    def draw(self, rng):
        codes = [symbol(rng) for _ in range(3)]
        if rng.random() < 0.4:
            codes[2] = codes[0]
        return codes

    def read(self, module, batch):
        return module(batch["codes"])

    def vector(self, naive, codes):
        total, selected = bag_row(naive.tables["symbols.weight"], codes, self.mode, PADDING)
        return total, {"symbols.weight": selected}


class MeanBag(Bag):
    mode = "mean"


class OffsetBag(Bag):
    """`nn.EmbeddingBag` with 1D input and offsets: bags of any length, none included."""

    mode = "mean"

    def draw(self, rng):
        codes = [symbol(rng) for _ in range(rng.integers(0, 4))]
        return codes + codes[:1] if rng.random() < 0.3 else codes

    def collate(self, codes, device):
        starts = np.cumsum([0] + [len(bag) for bag in codes])[:-1]
        flat = [code for bag in codes for code in bag]
        return {"codes": integers(flat, device), "offsets": integers(starts.tolist(), device)}

    def read(self, module, batch):
        return module(batch["codes"], batch["offsets"])


class LastOffsetBag(OffsetBag):
    """The same with the end of the last bag among the offsets, which is no bag of its own, and called by keywords."""

    mode = "sum"

    def module(self, sparse=False):
        return nn.EmbeddingBag(K, WIDTH, mode="sum", padding_idx=PADDING, sparse=sparse, include_last_offset=True)

    def collate(self, codes, device):
        batch = super().collate(codes, device)
        return batch | {"offsets": torch.cat([batch["offsets"], integers([len(batch["codes"])], device)])}

    def read(self, module, batch):
        return module(input=batch["codes"], offsets=batch["offsets"])


class WeightedBag(Bag):
    """`nn.EmbeddingBag` with weights per sample."""

    def read(self, module, batch):
        weights = torch.tensor(POSITIONS, device=batch["x"].device, dtype=batch["x"].dtype)
        return module(batch["codes"], per_sample_weights=weights.expand(len(batch["codes"]), -1).contiguous())

    def vector(self, naive, codes):
        total, selected = bag_row(naive.tables["symbols.weight"], codes, "sum", PADDING, POSITIONS)
        return total, {"symbols.weight": selected}


class OneHot(Kind):
    """`OneHotLinear`, where a negative code selects nothing."""

    def module(self, sparse=False):
        return OneHotLinear(list(SIZES), WIDTH, sparse=sparse)

    def mend(self, net):
        net.symbols.weight[0] = 0

    def draw(self, rng):
        codes = [symbol(rng, CHANCES[[0, 3, 7, 9]]), symbol(rng, CHANCES[[0, 1, 3, 5, 8, 9]])]
        return [-int(rng.integers(1, 3)) if rng.random() < 0.2 else code for code in codes]

    def read(self, module, batch):
        return module(batch["codes"])

    def vector(self, naive, codes):
        total, selected = one_hot_linear_row(naive.tables["symbols.weight"], SIZES, codes, naive.dense["symbols.bias"])
        return total, {"symbols.weight": selected}


class Columns(Kind):
    """`nn.Linear` with one-hot and with numeric columns; an alphabet may have no one in a row."""

    sparse = False

    def module(self, sparse=False):
        return nn.Linear(K, WIDTH)

    def one_hot_columns(self, net):
        return {net.symbols: list(ONE_HOT)}

    def draw(self, rng):
        values = np.round(rng.normal(size=K), 6)
        values[list(ONE_HOT)] = 0
        values[symbol(rng, [4, 2, 1, 0, 0.3])] = rng.choice([1, 1, 1, 1, 0, 2.5])  # index 3 is numeric: no chance
        if rng.random() < 0.7:
            values[7 + symbol(rng, [5, 1])] = 1  # 10 never
        return values.tolist()

    def collate(self, codes, device):
        return {"codes": torch.tensor(codes, dtype=torch.get_default_dtype(), device=device)}

    def read(self, module, batch):
        return module(batch["codes"])

    def tables(self, net):
        return {"symbols.weight": {j: net.symbols.weight[:, j] for j in ONE_HOT}}

    def dense(self, net):
        return super().dense(net) | {f"symbols.weight[:, {j}]": net.symbols.weight[:, j] for j in NUMERIC}

    def expected(self, naive, name):
        if name == "symbols.weight":
            columns = naive.tables[name] | self._numeric(naive)
            return torch.stack([columns[j].detach() for j in range(K)], dim=1)
        return super().expected(naive, name)

    def _numeric(self, naive):
        return {j: naive.dense[f"symbols.weight[:, {j}]"] for j in NUMERIC}

    def rows_of(self, tensor):
        return tensor.movedim(-1, 0)

    def vector(self, naive, codes):
        columns = naive.tables["symbols.weight"]
        total, selected = linear_row(columns, self._numeric(naive), codes, naive.dense["symbols.bias"])
        return total, {"symbols.weight": selected}


class Mixed(Kind):
    """Three tables in one model, each of a kind of its own."""

    parts = {"one": Sentence(), "bag": OffsetBag(), "wide": OneHot()}

    def module(self, sparse=False):
        return nn.ModuleDict({name: part.module(sparse) for name, part in self.parts.items()})

    def mend(self, net):
        net.symbols["wide"].weight[0] = 0

    def tables(self, net):
        return {f"symbols.{name}.weight": dict(enumerate(net.symbols[name].weight)) for name in self.parts}

    def draw(self, rng):
        return {name: part.draw(rng) for name, part in self.parts.items()}

    def collate(self, codes, device):
        return {
            f"{name} {key}": tensor
            for name, part in self.parts.items()
            for key, tensor in part.collate([row[name] for row in codes], device).items()
        }

    def read(self, module, batch):
        return sum(part.read(module[name], self._own(batch, name)) for name, part in self.parts.items())

    def _own(self, batch, name):
        mine = {key.removeprefix(f"{name} "): value for key, value in batch.items() if key.startswith(f"{name} ")}
        return {"x": batch["x"]} | mine

    def vector(self, naive, codes):
        wide = one_hot_linear_row(
            naive.tables["symbols.wide.weight"], SIZES, codes["wide"], naive.dense["symbols.wide.bias"]
        )
        bag = bag_row(naive.tables["symbols.bag.weight"], codes["bag"], "mean", PADDING)
        vectors, selected = embedding_row(naive.tables["symbols.one.weight"], codes["one"], PADDING)
        total = sum(vector * weight for vector, weight in zip(vectors, POSITIONS)) + bag[0] + wide[0]
        return total, {"symbols.one.weight": selected, "symbols.bag.weight": bag[1], "symbols.wide.weight": wide[1]}


MAIN = [Sentence(), OffsetBag(), OneHot(), Columns()]
OTHERS = [Vector(), HomeAway(), Tied(), Bag(), MeanBag(), LastOffsetBag(), WeightedBag(), Mixed()]
KINDS = MAIN + OTHERS


class Net(nn.Module):
    """Symbols and numbers, one hidden layer: no row's gradient is a multiple of another's."""

    def __init__(self, kind, sparse=False):
        super().__init__()
        self.kind = kind
        self.symbols = kind.module(sparse)
        self.numbers = nn.Linear(N_NUMBERS, WIDTH)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, batch):
        hidden = torch.tanh(self.kind.read(self.symbols, batch) + self.numbers(batch["x"]))
        return self.head(hidden)[:, 0]


def make_net(kind, dtype=torch.float64, device="cpu", seed=0, sparse=False):
    """Random values everywhere, in the row of padding too: it must not move, whatever it holds."""
    net = Net(kind, sparse).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.6)
        kind.mend(net)
    return net.to(device)


def draw_rows(kind, rng, n):
    rounded = np.round(rng.normal(size=(n, N_NUMBERS + 1)), 6).tolist()
    return [{"codes": kind.draw(rng), "x": row[:-1], "y": row[-1]} for row in rounded]


def draw_batches(kind, n_batches=12, n_rows=6, seed=0):
    rng = np.random.default_rng(seed)
    return [draw_rows(kind, rng, n_rows) for _ in range(n_batches)]


def make_optimizer(spec, parameters):
    name, options = spec
    return getattr(torch.optim, name)(parameters, **options)


class Run:
    """A model under GSE and its oracle, from the same start.

    `parameters`, `modules` and `forward` say of the model what the optimizer takes, what GSE takes and what is called.
    """

    def __init__(
        self,
        kind,
        spec,
        *,
        dtype=torch.float64,
        device="cpu",
        sparse=False,
        reduction="mean",
        net=None,
        parameters=lambda net: net.parameters(),
        modules=lambda net: net,
        forward=lambda net: net,
        process_group=None,
    ):
        self.kind, self.dtype, self.device, self.reduction = kind, dtype, device, reduction
        self.net = make_net(kind, dtype, device, sparse=sparse) if net is None else net
        self.forward = forward(self.net)
        self.inner = make_optimizer(spec, parameters(self.net))
        self.gse = GSE(
            self.inner,
            self.forward if modules == "forward" else modules(self.net),
            one_hot_columns=kind.one_hot_columns(self.net),
            reduction=reduction,
            process_group=process_group,
        )
        self.naive = make_oracle(kind, spec, self.net, reduction)
        self.always = {}  # what every row selects, whatever its codes: a table so named is a dense parameter

    def batch(self, rows):
        with default_dtype(self.dtype):
            batch = self.kind.collate([row["codes"] for row in rows], self.device)
        return batch | {"x": self._floats([row["x"] for row in rows])}

    def _floats(self, values):
        return torch.tensor(values, dtype=self.dtype, device=self.device)

    def errors(self, rows):
        return (self.forward(self.batch(rows)) - self._floats([row["y"] for row in rows])) ** 2

    def loss(self, rows):
        errors = self.errors(rows)
        return errors.mean() if self.reduction == "mean" else errors.sum()

    def naive_step(self, rows, clip=None):
        losses, selections = naive_losses(self.kind, self.naive, rows)
        self.naive.step(losses, [selected | self.always for selected in selections], clip)

    def check(self, when="", tolerance=None):
        """All parameters are the oracle's."""
        tolerance = tolerance or (1e-12 if self.dtype == torch.float64 else 1e-6)
        for name, parameter in self.net.named_parameters():
            expected = self.kind.expected(self.naive, name)
            found = parameter.detach().cpu()
            assert torch.isfinite(expected).all()
            if torch.allclose(found, expected, rtol=tolerance, atol=tolerance):
                continue
            message = f"{name} after {when}"
            torch.testing.assert_close(
                found, expected, rtol=tolerance, atol=tolerance, msg=lambda text, at=message: f"{at}: {text}"
            )


def make_oracle(kind, spec, net, reduction="mean", overrides=None):
    name, options = spec
    optimizer = getattr(torch.optim, name)
    return NaiveGSE(optimizer, kind.tables(net), kind.dense(net), options, overrides, reduction)


def naive_losses(kind, naive, rows):
    """The loss of each row of the batch, and what the row selects."""
    losses, selections = [], []
    dense = naive.dense
    for row in rows:
        vector, selected = kind.vector(naive, row["codes"])
        numbers = dense["numbers.weight"] @ torch.tensor(row["x"], dtype=vector.dtype) + dense["numbers.bias"]
        predicted = (dense["head.weight"] @ torch.tanh(vector + numbers) + dense["head.bias"])[0]
        losses.append((predicted - row["y"]) ** 2)
        selections.append(selected)
    return losses, selections


def plain(run, rows):
    run.gse.zero_grad()
    run.loss(rows).backward()
    run.gse.step()


def follow(run, batches, way=plain, tolerance=None, clip=None):
    """Train by the batches in the way given: after each, all parameters are the oracle's."""
    with default_dtype(run.dtype):
        for number, rows in enumerate(batches):
            way(run, rows)
            run.naive_step(rows, clip)
            run.check(f"batch {number}", tolerance)


# The oracle itself, by formulas written out.


def by_formula(name, options, gradients):
    """A number that starts at 1 after the gradients, by the formula of its optimizer."""
    value, state = 1.0, {"first": 0.0, "second": 0.0}
    for step, raw in enumerate(gradients, 1):
        gradient = raw + options.get("weight_decay", 0) * value
        if name == "SGD":
            kept = 1 - options["dampening"] if step > 1 else 1  # the first gradient enters whole
            state["first"] = options["momentum"] * state["first"] + kept * gradient
            value -= options["lr"] * state["first"]
        elif name == "Adagrad":
            state["second"] += gradient**2
            rate = options["lr"] / (1 + (step - 1) * options["lr_decay"])
            value -= rate * gradient / (state["second"] ** 0.5 + 1e-10)
        else:
            one, two = options["betas"]
            state["first"] = one * state["first"] + (1 - one) * gradient
            state["second"] = two * state["second"] + (1 - two) * gradient**2
            first, second = state["first"] / (1 - one**step), state["second"] / (1 - two**step)
            value -= options["lr"] * first / (second**0.5 + 1e-8)
    return value


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.4, "weight_decay": 0.2}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.3, "weight_decay": 0.2}),
        ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.2}),
    ],
)
def test_oracle_is_the_formula_per_symbol(name, options):
    """Losses a_i * theta_k have the gradient a_i: symbol 0 has the mean of its rows, 1 comes late, 2 never."""
    one = torch.ones((), dtype=torch.float64)
    naive = NaiveGSE(getattr(torch.optim, name), {"t": dict.fromkeys(range(3), one)}, {"d": one}, options)
    batches = [[(0, 1.0), (0, 3.0)], [(0, -2.0), (1, 5.0), (1, 1.0), (1, 0.0)], [(1, 4.0)], [(0, 0.5), (1, 1.5)]]
    for batch in batches:
        losses = [a * naive.tables["t"][k] + a * naive.dense["d"] for k, a in batch]
        naive.step(losses, [{"t": {k}} for k, _ in batch])
    found = [float(naive.tables["t"][k].detach()) for k in range(3)] + [float(naive.dense["d"].detach())]
    means = [[2.0, -2.0, 0.5], [2.0, 4.0, 1.5], [], [2.0, 1.0, 4.0, 1.0]]
    assert found == pytest.approx([by_formula(name, options, gradients) for gradients in means], rel=1e-12)


def test_oracle_rows_are_the_modules_forward():
    """The oracle's own forward passes are those of the modules."""
    for kind in KINDS:
        run = Run(kind, ("SGD", {"lr": 0.1}))
        rows = draw_batches(kind, 1, 40)[0]
        with default_dtype(torch.float64):
            losses, _ = naive_losses(kind, run.naive, rows)
            found = run.errors(rows)
        torch.testing.assert_close(found, torch.stack(losses), rtol=1e-12, atol=1e-12)


# Every optimizer, every kind.

SPECS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "dampening": 0.5}),
    ("SGD", {"lr": 0.02, "momentum": 0.7, "dampening": 0.3, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.5, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.02}),
    ("RMSprop", {"lr": 0.02, "centered": True, "momentum": 0.8, "alpha": 0.8}),
    ("RMSprop", {"lr": 0.02, "weight_decay": 0.1, "momentum": 0.5, "eps": 1e-3}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1, "betas": (0.7, 0.8)}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.2}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True, "eps": 1e-3}),
    ("NAdam", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9)}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.8, 0.7)}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.5, 0.8)}),
    ("Adadelta", {"lr": 1.0}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1, "eps": 1e-3}),
    ("Rprop", {"lr": 0.05}),
    ("Rprop", {"lr": 0.05, "etas": (0.4, 1.3), "step_sizes": (1e-3, 0.08)}),
    ("ASGD", {"lr": 0.05}),
    ("ASGD", {"lr": 0.05, "lambd": 0.1, "alpha": 0.6, "t0": 2, "weight_decay": 0.1}),
]
ONE_EACH = [  # with as much to remember and to decay as the optimizer has
    ("SGD", {"lr": 0.1, "momentum": 0.8, "dampening": 0.5, "weight_decay": 0.05}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.02, "centered": True, "momentum": 0.8, "alpha": 0.8, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1}),
    ("Adadelta", {"lr": 1.0, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.05}),
    ("ASGD", {"lr": 0.05, "lambd": 0.1, "t0": 2, "weight_decay": 0.1}),
]
SGD_MOMENTUM = ("SGD", {"lr": 0.1, "momentum": 0.8, "dampening": 0.5, "weight_decay": 0.05})
ADAM = ("Adam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 1e-3})
TWO = [SGD_MOMENTUM, ADAM]


def spec_name(spec):
    return spec[0] + "".join(f"-{key}={value}" for key, value in spec[1].items() if key != "lr")


def over(name, values):
    return pytest.mark.parametrize(name, values, ids=spec_name if name == "spec" else case_name)


def case_name(value):
    """The same in every process, so that tests can be shared out among some."""
    return value if isinstance(value, str) else getattr(value, "__name__", repr(value))


def named(value):
    return spec_name(value) if isinstance(value, tuple) else case_name(value)


def kinds_in_turn():
    """Every rule on two of the kinds: it sees gradients and counts, not where they are from."""
    return [(spec, kind) for turn, spec in enumerate(SPECS) for kind in MAIN[turn % 2 :: 2]]


@over("device", DEVICES)
@pytest.mark.parametrize(("spec", "kind"), kinds_in_turn(), ids=named)
def test_double_precision(spec, kind, device):
    follow(Run(kind, spec, device=device), draw_batches(kind, 12, 4))


@over("device", DEVICES)
@over("kind", MAIN)
@over("spec", ONE_EACH)
def test_single_precision(spec, kind, device):
    follow(Run(kind, spec, dtype=torch.float32, device=device), draw_batches(kind, 12, 4, seed=1))


@over("spec", ONE_EACH)
def test_double_precision_in_a_program_of_single_precision(spec):
    """Torch's own scalars are float32 then, so no more than their precision is asked for."""
    run = Run(OneHot(), spec)
    for number, rows in enumerate(draw_batches(run.kind, 6, seed=44)):
        plain(run, rows)
        run.naive_step(rows)
        run.check(f"batch {number}", tolerance=1e-6)


@over("device", DEVICES)
@over("kind", OTHERS)
@over("spec", TWO)
def test_other_kinds(spec, kind, device):
    follow(Run(kind, spec, device=device), draw_batches(kind, seed=2))


@over("device", DEVICES)
@over("kind", [Sentence(), OneHot()])
@over("spec", ONE_EACH)
def test_sparse(spec, kind, device):
    follow(Run(kind, spec, device=device, sparse=True), draw_batches(kind, 8, 4, seed=3))


@over("kind", [kind for kind in KINDS if kind.sparse and not isinstance(kind, WeightedBag)])
@over("spec", TWO)
def test_sparse_kinds(spec, kind):
    follow(Run(kind, spec, sparse=True), draw_batches(kind, 8, 4, seed=4))


@over("set_to_none", [True, False])
@over("name", ["SGD", "Adagrad", "Adam"])
def test_sparse_gradients_that_moved_a_table_can_grow(name, set_to_none):
    """torch adds the next gradient up in the storage of the last one, and empties it in place where it is asked to."""
    bag = nn.EmbeddingBag(9, 2, sparse=True)
    gse = GSE(getattr(torch.optim, name)(bag.parameters(), lr=0.1), bag)
    batches = [[1], [2, 3, 4], [], [5], [6, 7, 8, 1, 2, 3]]
    for codes in batches * 2:
        bag(integers(codes, "cpu"), integers([0], "cpu")).sum().backward()
        gse.step()
        gradient = bag.weight.grad
        for part in (gradient._indices(), gradient._values()):
            assert part.untyped_storage().resizable()
        if len(codes) != 3:
            gse.zero_grad(set_to_none=set_to_none)


CLEARED = {
    "zero_grad": lambda table, gse: gse.zero_grad(set_to_none=False),
    "module": lambda table, gse: table.zero_grad(set_to_none=False),
    "in place": lambda table, gse: table.weight.grad.zero_(),
    "another": lambda table, gse: setattr(table.weight, "grad", torch.zeros_like(table.weight)),
    "none": lambda table, gse: setattr(table.weight, "grad", None),
}


@over("sparse", [False, True])
@over("rescales", [False, True])
@over("clear", list(CLEARED))
def test_a_gradient_cleared_in_any_way_begins_anew(clear, rescales, sparse):
    """Two micro-batches a step: the counts are of those since the gradient was cleared."""
    table = nn.Embedding(K, WIDTH, sparse=sparse, dtype=torch.float64)
    start = table.weight.detach().clone()
    gse = GSE(torch.optim.SGD(table.parameters(), lr=1.0), table)
    steps = np.zeros(K)
    for batches in ([[0, 0, 0, 1], [1, 2]], [[1, 2, 2, 2], [3]], [[0], [0, 4]]):
        if table.weight.grad is not None:
            CLEARED[clear](table, gse)
        for codes in batches:
            table(integers(codes, "cpu")).mean().backward()
        if rescales:
            gse.rescale()
        gse.step()
        everything, n_rows = np.concatenate(batches), sum(map(len, batches))
        gradient = sum(np.bincount(codes, minlength=K) / len(codes) / WIDTH for codes in batches)
        counts = np.bincount(everything.astype(int), minlength=K)
        steps -= np.where(counts > 0, gradient * n_rows / np.maximum(counts, 1), 0.0)
    want = start.numpy() + steps[:, None]
    np.testing.assert_allclose(table.weight.detach().numpy(), want, rtol=0, atol=1e-12)


@over("kind", [Sentence(), Columns()])
@over("spec", ONE_EACH)
def test_maximize(spec, kind):
    name, options = spec
    slow = {"lr": options["lr"] * 0.2, "maximize": True}
    follow(Run(kind, (name, options | slow)), draw_batches(kind, 6, 4, seed=5))


@over("kind", MAIN)
@over("spec", TWO)
def test_sum(spec, kind):
    follow(Run(kind, spec, reduction="sum"), draw_batches(kind, seed=6))


@over("kind", [OneHot(), Columns()])
@pytest.mark.parametrize("how", ["foreach", "fused"])
@over("spec", [("SGD", {"lr": 0.1, "momentum": 0.8}), ("Adam", {"lr": 0.05, "weight_decay": 0.1})])
def test_fast_kernels_for_dense_parameters(spec, how, kind):
    """What the inner optimizer uses for speed changes no result."""
    run = Run(kind, (spec[0], spec[1] | {how: True}))
    run.naive = make_oracle(kind, spec, run.net)
    follow(run, draw_batches(kind, seed=7))


@over("kind", [OneHot(), Columns()])
@over("spec", [spec for spec in ONE_EACH if spec[0] in ("SGD", "Adam", "NAdam", "ASGD", "Rprop")])
def test_state_is_the_oracles(spec, kind):
    """Where the state has a tensor of torch's name and of the weight's shape, its rows are the symbols' own."""
    run = Run(kind, spec)
    follow(run, draw_batches(kind, 8, 4, seed=8))
    weight = run.net.symbols.weight
    state = run.gse.state[weight]
    names = [key for key, value in state.items() if torch.is_tensor(value) and value.shape == weight.shape]
    table = run.naive.tables["symbols.weight"]
    for k in table:
        expected = run.naive.state("symbols.weight", k)
        for name in set(names) & set(expected) if expected else ():
            found = run.kind.rows_of(state[name])[k]
            torch.testing.assert_close(found, expected[name], rtol=1e-11, atol=1e-12, msg=f"{name} of symbol {k}")


def test_batches_of_many_sizes_and_of_nothing():
    """Batches whose rows select nothing move the dense parameters only, and count in nothing later."""
    for kind, nothing in ((OneHot(), [-1, -1]), (Sentence(), [PADDING] * 3), (OffsetBag(), []), (Bag(), [PADDING] * 3)):
        rng = np.random.default_rng(9)
        batches = [draw_rows(kind, rng, n) for n in (1, 5, 3, 2, 7, 1, 4)]
        for place in (1, 4):
            for row in batches[place]:
                row["codes"] = nothing
        for row in batches[2][:2]:
            row["codes"] = nothing
        for spec in TWO:
            follow(Run(kind, spec), batches)


# Several groups, rates that change, modules given in other ways.


@over("kind", MAIN)
@over("spec", TWO)
def test_groups(spec, kind):
    """A group for the symbols and two for the rest, each with options of its own."""
    symbols = {"lr": 0.2, "weight_decay": 0.01}
    head = {"lr": 0.01, "weight_decay": 0.3}

    def groups(net):
        return [
            {"params": list(net.numbers.parameters())},
            {"params": list(net.symbols.parameters()), **symbols},
            {"params": list(net.head.parameters()), **head},
        ]

    run = Run(kind, spec, parameters=groups)
    names = [*kind.tables(run.net), *kind.dense(run.net)]
    overrides = {key: symbols for key in names if key.startswith("symbols")}
    overrides |= {key: head for key in names if key.startswith("head")}
    run.naive = make_oracle(kind, spec, run.net, overrides=overrides)
    follow(run, draw_batches(kind, seed=10))
    assert [group["lr"] for group in run.gse.param_groups] == [spec[1]["lr"], 0.2, 0.01]


SCHEDULES = {
    "StepLR": (lambda gse: torch.optim.lr_scheduler.StepLR(gse, 3, 0.5), lambda n: 0.5 ** (n // 3)),
    "LambdaLR": (lambda gse: torch.optim.lr_scheduler.LambdaLR(gse, lambda n: 1 / (1 + n)), lambda n: 1 / (1 + n)),
}


@over("kind", [OneHot(), Columns()])
@over("spec", [*TWO, ("ASGD", {"lr": 0.05, "t0": 2}), ("Rprop", {"lr": 0.05})])
@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_schedulers(spec, kind, schedule):
    """A schedule of rates is for all symbols alike; a symbol that comes late starts at the rate of then."""
    run = Run(kind, spec)
    make, factor = SCHEDULES[schedule]
    scheduler = make(run.gse)
    names = [*kind.tables(run.net), *kind.dense(run.net)]
    with default_dtype(torch.float64):
        for number, rows in enumerate(draw_batches(kind, 10, 4, seed=11)):
            run.naive.set_lr(dict.fromkeys(names, spec[1]["lr"] * factor(number)))
            plain(run, rows)
            scheduler.step()
            run.naive_step(rows)
            run.check(f"batch {number}")


def test_scheduler_of_the_inner_optimizer():
    """A schedule of the optimizer that GSE wraps has its effect."""
    kind = OneHot()
    run = Run(kind, ADAM)
    names = [*kind.tables(run.net), *kind.dense(run.net)]
    with warnings.catch_warnings(), default_dtype(torch.float64):
        warnings.simplefilter("ignore")  # that the inner optimizer's step was not called
        scheduler = torch.optim.lr_scheduler.StepLR(run.inner, 2, 0.3)
        for number, rows in enumerate(draw_batches(kind, 8, seed=12)):
            run.naive.set_lr(dict.fromkeys(names, ADAM[1]["lr"] * 0.3 ** (number // 2)))
            plain(run, rows)
            scheduler.step()
            run.naive_step(rows)
            run.check(f"batch {number}")


@over("spec", [SGD_MOMENTUM, ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.6, "t0": 2})])
def test_rate_set_by_hand(spec):
    """ASGD keeps a rate a symbol: symbols of as many updates may differ in it."""
    kind = Sentence()
    run = Run(kind, spec)
    names = [*kind.tables(run.net), *kind.dense(run.net)]
    for number, rows in enumerate(draw_batches(kind, 6, seed=13)):
        rate = 0.1 if number < 3 else 0.01
        run.gse.param_groups[0]["lr"] = rate
        run.naive.set_lr(dict.fromkeys(names, rate))
        follow(run, [rows])


def test_is_an_optimizer():
    run = Run(Sentence(), ADAM)
    assert isinstance(run.gse, torch.optim.Optimizer)
    held = [p for group in run.gse.param_groups for p in group["params"]]
    assert {id(p) for p in held} == {id(p) for p in run.net.parameters()}


@over("spec", TWO)
def test_modules_in_a_list(spec):
    """Only the modules listed are symbolic: the bag that is left out is a dense parameter like others."""
    kind = Mixed()
    run = Run(kind, spec, modules=lambda net: [net.symbols["one"], net.symbols["wide"]])
    run.always = {"symbols.bag.weight": set(range(K))}
    follow(run, draw_batches(kind, seed=14))


def test_list_with_a_container():
    """A module of a list is searched as a model is."""
    kind = Mixed()
    run = Run(kind, ADAM, modules=lambda net: [net.symbols])
    follow(run, draw_batches(kind, 6, seed=14))


def test_linear_and_embedding_together():
    """One-hot columns of a Linear beside an embedding that is found; the Linear is called by name only."""

    class Both(Sentence):
        def module(self, sparse=False):
            return nn.ModuleDict({"one": super().module(sparse), "wide": nn.Linear(K, WIDTH)})

        def tables(self, net):
            return {
                "symbols.one.weight": dict(enumerate(net.symbols["one"].weight)),
                "symbols.wide.weight": {j: net.symbols["wide"].weight[:, j] for j in ONE_HOT},
            }

        def dense(self, net):
            wide = net.symbols["wide"].weight
            return super().dense(net) | {f"symbols.weight[:, {j}]": wide[:, j] for j in NUMERIC}

        def expected(self, naive, name):
            if name != "symbols.wide.weight":
                return super().expected(naive, name)
            columns = naive.tables[name] | Columns()._numeric(naive)
            return torch.stack([columns[j].detach() for j in range(K)], dim=1)

        def one_hot_columns(self, net):
            return {net.symbols["wide"]: ONE_HOT}

        def draw(self, rng):
            return {"one": super().draw(rng), "wide": Columns().draw(rng)}

        def collate(self, codes, device):
            wide = Columns().collate([row["wide"] for row in codes], device)["codes"]
            return super().collate([row["one"] for row in codes], device) | {"wide": wide}

        def read(self, module, batch):
            return super().read(module["one"], batch) + module["wide"](batch["wide"])

        def vector(self, naive, codes):
            vectors, one = embedding_row(naive.tables["symbols.one.weight"], codes["one"], PADDING)
            columns, bias = naive.tables["symbols.wide.weight"], naive.dense["symbols.wide.bias"]
            wide, columns = linear_row(columns, Columns()._numeric(naive), codes["wide"], bias)
            total = sum(vector * weight for vector, weight in zip(vectors, POSITIONS)) + wide
            return total, {"symbols.one.weight": one, "symbols.wide.weight": columns}

    for spec in TWO:
        follow(Run(Both(), spec), draw_batches(Both(), seed=15))


@over("spec", TWO)
def test_group_added_later(spec):
    """Dense parameters and a table that join at a group of their own, as when layers are thawed."""
    kind = Mixed()
    names = ["symbols.one.weight", "head.weight", "head.bias"]
    run = Run(kind, spec, parameters=lambda net: [p for name, p in net.named_parameters() if name not in names])
    run.naive.frozen = set(names)
    batches = draw_batches(kind, 8, seed=16)
    follow(run, batches[:3])
    run.gse.zero_grad()
    run.net.zero_grad()  # the late ones are in no group yet, so the first does not know them
    late = [p for name, p in run.net.named_parameters() if name in names]
    run.gse.add_param_group({"params": late, "lr": 0.02})
    run.naive.frozen = set()
    rates = dict.fromkeys([*kind.tables(run.net), *kind.dense(run.net)], spec[1]["lr"])
    run.naive.set_lr(rates | dict.fromkeys(names, 0.02))
    follow(run, batches[3:])


@over("spec", TWO)
def test_frozen_table_and_table_never_called(spec):
    """A table that takes no gradient or that the forward pass leaves out stays, and the rest goes on."""
    kind = Mixed()
    net, spare = make_net(kind), nn.Embedding(K, WIDTH)
    before = spare.weight.detach().clone()
    net.symbols["one"].weight.requires_grad_(False)
    model = nn.ModuleList([net, spare])
    run = Run(kind, spec, net=net, parameters=lambda net: model.parameters(), modules=lambda net: model)
    run.naive.frozen = {"symbols.one.weight"}
    follow(run, draw_batches(kind, 6, seed=17))
    assert torch.equal(spare.weight, before)


@over("spec", TWO)
def test_table_outside_the_groups_is_ignored(spec):
    """A table that the optimizer was not given stays as it is, and the others move as ever."""
    kind = Mixed()
    name = "symbols.bag.weight"
    run = Run(kind, spec, parameters=lambda net: [p for other, p in net.named_parameters() if other != name])
    run.naive.frozen = {name}
    follow(run, draw_batches(kind, 6, seed=18))


# Absent symbols.


def row_tensors(found, prefix="state"):
    """Every tensor with a row (or column) per symbol in a nest of dicts and lists: (where, tensor with rows first)."""
    if torch.is_tensor(found):
        places = [place for place, size in enumerate(found.shape) if size == K]
        return [(prefix, found.detach().movedim(places[0], 0).clone())] if places else []
    if isinstance(found, dict):
        return [pair for key, value in found.items() for pair in row_tensors(value, f"{prefix}.{key}")]
    if isinstance(found, (list, tuple)):
        return [pair for place, value in enumerate(found) for pair in row_tensors(value, f"{prefix}[{place}]")]
    return []


def selected_rows(kind, naive, rows):
    """The symbols that any row of the batch selects, of the one table."""
    return set().union(*(kind.vector(naive, row["codes"])[1]["symbols.weight"] for row in rows))


@over("kind", [Sentence(), Columns()])
@over("spec", ONE_EACH)
def test_absent_symbols_keep_all_bit_for_bit(spec, kind):
    stay_bit_for_bit(Run(kind, spec, dtype=torch.float32))


@over("kind", [Sentence(), OneHot(), OffsetBag()])
@over("spec", TWO)
def test_absent_symbols_of_sparse_tables_keep_all_bit_for_bit(spec, kind):
    stay_bit_for_bit(Run(kind, spec, dtype=torch.float32, sparse=True))


def stay_bit_for_bit(run):
    """Over 100 batches, the symbols that a batch lacks keep their values and their rows of every state tensor."""
    kind = run.kind
    numeric = set(NUMERIC) if isinstance(kind, Columns) else set()
    with default_dtype(torch.float32):
        before = row_tensors(run.gse.state_dict())
        for number, rows in enumerate(draw_batches(kind, 100, 2, seed=19)):
            weight = run.kind.rows_of(run.net.symbols.weight.detach()).clone()
            plain(run, rows)
            after = row_tensors(run.gse.state_dict())
            absent = sorted(set(range(K)) - selected_rows(kind, run.naive, rows) - numeric)
            assert torch.equal(run.kind.rows_of(run.net.symbols.weight)[absent], weight[absent])
            if number > 0:
                assert [name for name, _ in after] == [name for name, _ in before]
                for (name, old), (_, new) in zip(before, after):
                    assert torch.equal(old[absent], new[absent]), f"{name} in batch {number}"
            before = after
    assert before, "no state has a row per symbol"


def test_row_of_nothing_stays_zero():
    for sparse in (False, True):
        run = Run(OneHot(), ADAM, sparse=sparse)
        follow(run, draw_batches(run.kind, 8, seed=20))
        assert not run.net.symbols.weight[0].any()


@over("kind", MAIN)
@over("spec", TWO)
def test_step_without_a_batch(spec, kind):
    """Without gradients nothing moves; gradients of zero move what is dense, not the symbols."""
    run = Run(kind, spec)
    follow(run, draw_batches(kind, 4, seed=21))
    before = {name: tensor.clone() for name, tensor in run.net.state_dict().items()}
    run.gse.zero_grad(set_to_none=True)
    run.gse.step()
    assert all(torch.equal(tensor, before[name]) for name, tensor in run.net.state_dict().items())
    plain(run, draw_batches(kind, 1, seed=22)[0])
    before = {name: tensor.clone() for name, tensor in run.net.state_dict().items()}
    run.gse.zero_grad(set_to_none=False)
    run.gse.step()
    symbols = list(ONE_HOT) if isinstance(kind, Columns) else list(range(K))
    now, old = kind.rows_of(run.net.symbols.weight), kind.rows_of(before["symbols.weight"])
    assert torch.equal(now[symbols], old[symbols])
    assert not torch.equal(run.net.head.weight, before["head.weight"])
    if isinstance(kind, Columns):
        assert not torch.equal(now[list(NUMERIC)], old[list(NUMERIC)])


# Saved and loaded.


def saved(run):
    buffer = io.BytesIO()
    torch.save({"model": run.net.state_dict(), "optimizer": run.gse.state_dict()}, buffer)
    return buffer


def loaded(buffer, kind, spec, sparse=False):
    """A fresh model and optimizer, of another start and another rate, with what was saved."""
    buffer.seek(0)
    stored = torch.load(buffer, weights_only=True)
    other = {**spec[1], "lr": 123.0}
    run = Run(kind, (spec[0], other), net=make_net(kind, torch.float32, seed=77, sparse=sparse), dtype=torch.float32)
    run.net.load_state_dict(stored["model"])
    run.gse.load_state_dict(stored["optimizer"])
    assert run.gse.param_groups[0]["lr"] == spec[1]["lr"]
    return run


@over("kind", [Sentence(), Columns()])
@over("spec", ONE_EACH)
def test_saved_and_loaded(spec, kind):
    """What goes on after a save is an uninterrupted run bit for bit, symbols that come only later included."""
    batches = draw_batches(kind, 14, 3, seed=23)
    whole = Run(kind, spec, dtype=torch.float32)
    part = Run(kind, spec, dtype=torch.float32)
    seen = [selected_rows(kind, whole.naive, [row for rows in some for row in rows]) for some in (batches[:1], batches)]
    assert seen[0] < seen[1]
    with default_dtype(torch.float32):
        for number, rows in enumerate(batches):
            plain(whole, rows)
            if number in (0, 1, 9):
                part = loaded(saved(part), kind, spec)
            plain(part, rows)
            for name, tensor in whole.net.state_dict().items():
                assert torch.equal(part.net.state_dict()[name], tensor), f"{name} in batch {number}"


def test_saved_and_loaded_sparse_and_mixed():
    for kind, sparse in ((Mixed(), False), (Mixed(), True), (Tied(), True), (OneHot(), False)):
        batches = draw_batches(kind, 8, 3, seed=24)
        whole = Run(kind, ADAM, dtype=torch.float32, sparse=sparse)
        part = Run(kind, ADAM, dtype=torch.float32, sparse=sparse)
        for rows in batches[:4]:
            plain(whole, rows)
            plain(part, rows)
        part = loaded(saved(part), kind, ADAM, sparse)
        for rows in batches[4:]:
            plain(whole, rows)
            plain(part, rows)
        for name, tensor in whole.net.state_dict().items():
            assert torch.equal(part.net.state_dict()[name], tensor), name


def test_loading_between_a_backward_pass_and_zero_grad():
    """A batch that went backward before a load, and was zeroed after it, is no part of the next step."""
    run = Run(Sentence(), ADAM, dtype=torch.float32)
    first, extra, *rest = draw_batches(run.kind, 6, seed=25)
    follow(run, [first])
    buffer = saved(run)
    run.loss(extra).backward()
    buffer.seek(0)
    run.gse.load_state_dict(torch.load(buffer, weights_only=True)["optimizer"])
    run.gse.zero_grad()
    follow(run, rest)


def test_state_dict_of_the_model_is_as_without():
    assert list(Run(Mixed(), ADAM).net.state_dict()) == list(make_net(Mixed()).state_dict())


# What follows from the definition.


@over("kind", MAIN)
def test_one_row_at_a_time_is_plain_sgd(kind):
    run = Run(kind, ("SGD", {"lr": 0.1}))
    net = make_net(kind)
    plain_sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows in draw_batches(kind, 30, 1, seed=26):
        plain(run, rows)
        plain_sgd.zero_grad()
        ((net(run.batch(rows)) - rows[0]["y"]) ** 2).mean().backward()
        plain_sgd.step()
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(run.net.state_dict()[name], tensor, rtol=1e-12, atol=1e-12)


def test_equally_frequent_symbols_are_sgd_at_the_alphabets_rate():
    """B / c is the size of the alphabet where all its symbols come equally often."""
    sizes, n = (2, 3, 4), 12

    def tables():
        generator = torch.Generator().manual_seed(0)
        made = nn.ModuleList(nn.Embedding(size, WIDTH, dtype=torch.float64) for size in sizes)
        for table in made:
            nn.init.normal_(table.weight, generator=generator)
        return made

    ours, theirs = tables(), tables()
    gse = GSE(torch.optim.SGD(ours.parameters(), lr=0.1), ours)
    sgd = torch.optim.SGD([{"params": table.parameters(), "lr": 0.1 * len(table.weight)} for table in theirs], lr=0.1)
    rng = np.random.default_rng(27)
    for _ in range(10):
        codes = [torch.from_numpy(rng.permutation(np.arange(n) % size)) for size in sizes]
        y = torch.from_numpy(rng.normal(size=(n, WIDTH)))
        for made, optimizer in ((ours, gse), (theirs, sgd)):
            optimizer.zero_grad()
            ((sum(table(code) for table, code in zip(made, codes)) - y) ** 2).sum(1).mean().backward()
            optimizer.step()
    for mine, other in zip(ours, theirs):
        torch.testing.assert_close(mine.weight, other.weight, rtol=1e-12, atol=1e-12)


@over("kind", KINDS)
def test_order_of_the_rows_does_not_matter(kind):
    run = Run(kind, ADAM)
    rng = np.random.default_rng(28)

    def shuffled(run, rows):
        plain(run, [rows[place] for place in rng.permutation(len(rows))])

    follow(run, draw_batches(kind, 6, seed=28), shuffled)


def test_a_symbol_twice_in_a_row_counts_once():
    """By hand: two rows, one with the symbol twice; the loss is the sum of the vectors, so the gradient is 2 and 1."""
    for make in (lambda: nn.Embedding(K, 1), lambda: nn.EmbeddingBag(K, 1, mode="sum")):
        module = make()
        nn.init.zeros_(module.weight)
        gse = GSE(torch.optim.SGD(module.parameters(), lr=1.0), module)
        module(torch.tensor([[3, 3], [3, 5], [6, 7], [6, 6]])).reshape(4, -1).sum(1).mean().backward()
        gse.step()
        assert module.weight.detach()[[3, 5, 6, 7, 0], 0].tolist() == [-1.5, -1.0, -1.5, -1.0, 0.0]


def test_home_and_away_by_hand():
    """The row that is both counts once, with a gradient of zero: symbol 3 has +1 and 0, symbol 5 has -1."""
    module = nn.Embedding(K, 1)
    nn.init.zeros_(module.weight)
    gse = GSE(torch.optim.SGD(module.parameters(), lr=1.0), module)
    home, away = torch.tensor([3, 3, 6]), torch.tensor([5, 3, 6])
    (module(home) - module(away)).mean().backward()
    gse.step()
    assert module.weight.detach()[[3, 5, 6, 0], 0].tolist() == [-0.5, 1.0, 0.0, 0.0]


def test_a_row_without_gradient_counts():
    """A row whose weight in the loss is zero selects its symbol all the same."""
    module = nn.Embedding(K, 1)
    nn.init.zeros_(module.weight)
    gse = GSE(torch.optim.SGD(module.parameters(), lr=1.0), module)
    (module(torch.tensor([3, 3, 3, 5]))[:, 0] * torch.tensor([1.0, 0.0, 0.0, 0.0])).mean().backward()
    gse.step()
    assert module.weight.detach()[[3, 5], 0].tolist() == pytest.approx([-1 / 3, 0.0])


def test_one_hot_linear_is_a_linear_on_one_hot_input():
    layer = OneHotLinear([3, 2, 5], 4)
    assert layer.weight.shape == (11, 4)
    assert list(layer.offsets) == [1, 4, 6]
    assert not layer.weight[0].any()
    codes = torch.tensor([[0, 1, 4], [2, 0, 0], [-1, 1, 3], [-1, -1, -1], [1, -7, 2]])
    wide = torch.zeros(5, 11)
    for i, row in enumerate(codes.tolist()):
        for j, code in enumerate(row):
            if code >= 0:
                wide[i, int(layer.offsets[j]) + code] = 1
    torch.testing.assert_close(layer(codes), wide @ layer.weight + layer.bias)
    bare = OneHotLinear([3], 2, bias=False)
    assert bare.bias is None
    torch.testing.assert_close(bare(torch.tensor([[2], [-1]])), torch.stack([bare.weight[3], torch.zeros(2)]))


# Other ways to make the same step.


def closure(run, rows):
    """The closure of `step`, whose loss comes back."""
    losses = []

    def evaluate():
        run.gse.zero_grad()
        losses.append(run.loss(rows))
        losses[-1].backward()
        return losses[-1]

    with torch.no_grad():  # the closure has its gradients all the same, as with torch's own optimizers
        assert run.gse.step(evaluate) is losses[0]
    assert len(losses) == 1


def zeroed_after(run, rows):
    run.loss(rows).backward()
    run.gse.step()
    run.gse.zero_grad()


def in_two(run, rows):
    in_micro_batches(run, rows, 2)


def in_three(run, rows):
    in_micro_batches(run, rows, 3)


def in_micro_batches(run, rows, n):
    """Gradients add up: the step is that of the joined batch."""
    run.gse.zero_grad()
    size = len(rows) // n
    for start in range(0, len(rows), size):
        loss = run.loss(rows[start : start + size])
        (loss / n if run.reduction == "mean" else loss).backward()
    run.gse.step()


def forward_first(run, rows):
    """Two micro-batches whose forward passes both come before the first backward pass."""
    run.gse.zero_grad()
    half = len(rows) // 2
    losses = [run.loss(rows[:half]), run.loss(rows[half:])]
    for loss in losses:
        (loss / 2 if run.reduction == "mean" else loss).backward()
    run.gse.step()


def evaluations(run, rows):
    """Forward passes that no backward pass follows, in all the ways there are; what they return is kept alive."""
    others = rows[::-1] + rows[:2]
    kept = [run.loss(others)]
    with torch.no_grad():
        kept.append(run.loss(others))
    with torch.inference_mode():
        kept.append(run.loss(others))
    run.net.eval()
    kept.append(run.loss(others))
    run.net.train()
    return kept


def evaluated(run, rows):
    """Evaluations before the forward pass, before the backward pass, before the step and after it."""
    kept = evaluations(run, rows)
    run.gse.zero_grad()
    loss = run.loss(rows)
    kept += evaluations(run, rows[:2])
    loss.backward()
    kept += evaluations(run, rows[2:])
    run.gse.step()
    kept += evaluations(run, rows)


def differentiated(run, rows):
    """`autograd.grad` leaves no gradient on the parameters, so its rows are no part of the step."""
    torch.autograd.grad(run.loss(rows[:3]), list(run.net.parameters()))
    run.gse.zero_grad()
    loss = run.loss(rows)
    torch.autograd.grad(run.loss(rows[1:4]), list(run.net.symbols.parameters()))
    loss.backward()
    torch.autograd.grad(run.loss(rows[1:4]), list(run.net.symbols.parameters()))
    run.gse.step()


def backward_to_others(run, rows):
    """A backward pass to other parameters only leaves nothing on the tables, so its rows are none of theirs."""
    run.gse.zero_grad()
    (run.loss(rows[:4]) * 0).backward(inputs=list(run.net.head.parameters()))
    run.loss(rows).backward()
    (run.loss(rows[1:]) * 0).backward(inputs=list(run.net.head.parameters()))
    run.gse.step()


def discarded(zero):
    """A batch is gone backward, then its gradients are zeroed in the way given: it never was."""

    def way(run, rows):
        run.gse.zero_grad()
        run.loss(rows[::-1] + rows[:3]).backward()
        zero(run)
        run.loss(rows).backward()
        run.gse.step()
        zero(run)

    return way


def discarded_twice(run, rows):
    run.net.zero_grad()
    for some in (rows[:2], rows[1:4], rows):
        run.net.zero_grad(set_to_none=False)
        run.loss(some).backward()
    run.gse.step()


def two_losses(run, rows):
    """Two backward passes over one graph are one batch."""
    run.gse.zero_grad()
    loss = run.loss(rows)
    (loss * 0.25).backward(retain_graph=True)
    (loss * 0.75).backward()
    run.gse.step()


def two_roots(run, rows):
    run.gse.zero_grad()
    loss = run.loss(rows)
    torch.autograd.backward([loss * 0.25, loss * 0.75])
    run.gse.step()


def checkpointed(use_reentrant):
    """Activations thrown away and computed again within the backward pass."""

    def way(run, rows):
        def forward(batch, start):
            return run.net(batch) + 0 * start

        run.gse.zero_grad()
        start = torch.zeros((), dtype=run.dtype, requires_grad=True)
        predicted = checkpoint(forward, run.batch(rows), start, use_reentrant=use_reentrant)
        y = torch.tensor([row["y"] for row in rows], dtype=run.dtype)
        errors = (predicted - y) ** 2
        (errors.mean() if run.reduction == "mean" else errors.sum()).backward()
        run.gse.step()

    return way


def copied(run, rows):
    """Copies made at any moment, and trained: what they do is theirs."""
    other = copy.deepcopy(run.net)
    others = rows[:1] * 3 + rows[1:3]

    def train_the_copy():
        other.zero_grad()
        other(run.batch(others)).mean().backward()

    run.gse.zero_grad()
    loss = run.loss(rows)
    train_the_copy()
    loss.backward()
    train_the_copy()
    run.gse.step()
    assert all(p.grad is not None for p in other.parameters())


WAYS = {
    "closure": closure,
    "zeroed after": zeroed_after,
    "two micro-batches": in_two,
    "three micro-batches": in_three,
    "forward first": forward_first,
    "evaluated": evaluated,
    "differentiated": differentiated,
    "backward to others": backward_to_others,
    "zeroed by optimizer": discarded(lambda run: run.gse.zero_grad()),
    "zeroed by optimizer in place": discarded(lambda run: run.gse.zero_grad(set_to_none=False)),
    "zeroed by model": discarded(lambda run: run.net.zero_grad()),
    "zeroed by hand": discarded(lambda run: [setattr(p, "grad", None) for p in run.net.parameters()]),
    "zeroed by model in place": discarded(lambda run: run.net.zero_grad(set_to_none=False)),
    "discarded twice": discarded_twice,
    "two losses": two_losses,
    "two roots": two_roots,
    "checkpointed": checkpointed(False),
    "checkpointed reentrant": checkpointed(True),
    "copied": copied,
}


@over("kind", MAIN)
@pytest.mark.parametrize("way", list(WAYS))
def test_ways(way, kind):
    spec = ADAM if kind in MAIN[::2] else SGD_MOMENTUM
    follow(Run(kind, spec), draw_batches(kind, 5, seed=29), WAYS[way])


@over("kind", [HomeAway(), Tied(), Mixed()])
@pytest.mark.parametrize("way", list(WAYS))
def test_ways_of_other_kinds(way, kind):
    follow(Run(kind, ADAM), draw_batches(kind, 4, seed=30), WAYS[way])


@over("kind", [Sentence(), OneHot(), Bag()])
@pytest.mark.parametrize("way", [way for way in WAYS if not way.startswith("checkpointed")])
def test_ways_sparse(way, kind):
    follow(Run(kind, ADAM, sparse=True), draw_batches(kind, 4, seed=31), WAYS[way])


@over("kind", MAIN)
@pytest.mark.parametrize("way", ["two micro-batches", "evaluated", "zeroed by model in place", "two losses"])
def test_ways_sum(way, kind):
    follow(Run(kind, ADAM, reduction="sum"), draw_batches(kind, 4, seed=32), WAYS[way])


@over("kind", MAIN)
def test_micro_batch_without_gradient_counts(kind):
    """Rows whose weight in the loss is zero are rows of the joined batch, though their gradient is that of none."""
    run = Run(kind, SGD_MOMENTUM)
    with default_dtype(torch.float64):
        for number, rows in enumerate(draw_batches(kind, 5, seed=33)):
            run.gse.zero_grad()
            weighted = [(rows[:3], 0.0), (rows[3:], 1.0)]
            for some, weight in weighted if number % 2 else weighted[::-1]:
                (run.loss(some) * weight / 2).backward()
            run.gse.step()
            losses, selections = naive_losses(kind, run.naive, rows)
            run.naive.step([loss * (i >= 3) for i, loss in enumerate(losses)], selections)
            run.check(f"batch {number}")


@over("kind", MAIN)
@over("spec", TWO)
def test_gradient_clipping(spec, kind):
    """`clip_grad_norm_` sees and scales the gradient of the batch's loss; the counts come in after it."""
    norms = []

    def clipped(run, rows):
        run.gse.zero_grad()
        run.loss(rows).backward()
        norms.append(float(nn.utils.clip_grad_norm_(run.net.parameters(), 0.5)))
        run.gse.step()

    follow(Run(kind, spec), draw_batches(kind, seed=34), clipped, clip=0.5)
    assert max(norms) > 0.5


def test_gradients_are_left_as_they_were():
    """Who reads the gradients after the step finds what the backward pass left."""
    for kind in MAIN:
        run = Run(kind, ADAM)
        run.loss(draw_batches(kind, 1, seed=35)[0]).backward()
        before = [p.grad.clone() for p in run.net.parameters()]
        run.gse.step()
        for p, old in zip(run.net.parameters(), before):
            assert p.grad is not None
            torch.testing.assert_close(p.grad, old, rtol=0, atol=0)


@over("kind", MAIN)
@over("spec", TWO)
def test_grad_scaler(spec, kind):
    """The loss is scaled; a batch that overflows is skipped, with its counts."""
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    n_overflows = []

    def scaled(run, rows):
        if len(n_overflows) < 3:
            n_overflows.append(1)
            run.gse.zero_grad(set_to_none=len(n_overflows) > 1)
            (scaler.scale(run.loss(rows[:4])) * float("inf")).backward()
            scaler.step(run.gse)
            scaler.update()
        run.gse.zero_grad()
        scaler.scale(run.loss(rows)).backward()
        scaler.step(run.gse)
        scaler.update()

    follow(Run(kind, spec, dtype=torch.float32), draw_batches(kind, 6, seed=36), scaled, tolerance=1e-5)


def test_grad_scaler_with_clipping():
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def scaled(run, rows):
        run.gse.zero_grad()
        scaler.scale(run.loss(rows)).backward()
        scaler.unscale_(run.gse)
        nn.utils.clip_grad_norm_(run.net.parameters(), 0.5)
        scaler.step(run.gse)
        scaler.update()

    kind = OneHot()
    run = Run(kind, ADAM, dtype=torch.float32)
    follow(run, draw_batches(kind, 6, seed=37), scaled, tolerance=1e-5, clip=0.5)


@over("kind", MAIN)
def test_autocast(kind):
    """In bfloat16, with and without a scaler, it is near the run in float32."""
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    spec = ("SGD", {"lr": 0.05, "momentum": 0.5})
    runs = {name: Run(kind, spec, dtype=torch.float32) for name in ("scaled", "cast", "float32")}
    for rows in draw_batches(kind, 6, seed=38):
        for name, run in runs.items():
            run.gse.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=name != "float32"):
                loss = run.loss(rows)
            if name == "scaled":
                scaler.scale(loss).backward()
                scaler.step(run.gse)
                scaler.update()
            else:
                loss.backward()
                run.gse.step()
    states = {name: run.net.state_dict() for name, run in runs.items()}
    for name, tensor in states["float32"].items():
        torch.testing.assert_close(states["scaled"][name], states["cast"][name], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(states["cast"][name], tensor, rtol=0.05, atol=0.03)


# Compiled, copied, stored and wrapped again.


def compiled_run(kind, backend, order="gse first"):
    torch._dynamo.reset()
    if order == "compiled first":
        compiled = {"forward": lambda net: torch.compile(net, backend=backend), "modules": "forward"}
        return Run(kind, ADAM, dtype=torch.float32, **compiled)
    run = Run(kind, ADAM, dtype=torch.float32)
    run.forward = torch.compile(run.net, backend=backend)
    return run


@pytest.mark.parametrize(
    ("kind", "order"),
    [(kind, "gse first") for kind in (Bag(), OneHot(), Columns())] + [(OneHot(), "compiled first")],
    ids=case_name,
)
def test_compiled_graphs(kind, order):
    """What the compiler makes of the model counts as the model does; code is not generated here."""
    run = compiled_run(kind, "aot_eager", order)
    batches = draw_batches(kind, 5, seed=39)
    follow(run, batches[:3])
    with torch.no_grad():
        run.loss(batches[0])
    follow(run, batches[3:])


@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler")
def test_compiled_code():
    run = compiled_run(OneHot(), "inductor")
    follow(run, draw_batches(run.kind, 5, seed=40))


def stored(net):
    buffer = io.BytesIO()
    torch.save(net, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


@over("duplicate", [copy.deepcopy, stored])
@over("kind", MAIN)
def test_copies(kind, duplicate):
    """A copy of a model under GSE is a model: it does not count for the first, and takes a GSE of its own."""
    batches = draw_batches(kind, 8, seed=41)
    run = Run(kind, ADAM)
    follow(run, batches[:2])
    run.gse.zero_grad()
    net = duplicate(run.net)
    net(run.batch(batches[3])).mean().backward()
    run.loss(batches[2]).backward()
    net(run.batch(batches[3])).mean().backward()
    net.zero_grad()
    run.gse.step()
    run.naive_step(batches[2])
    run.check("a copy")
    mine = Run(kind, SGD_MOMENTUM, net=net)
    follow(mine, batches[3:5])
    follow(run, batches[5:])
    follow(mine, batches[5:])


def test_a_second_gse_on_one_model():
    """Training starts again with another optimizer: the first one is out of it."""
    kind = Mixed()
    run = Run(kind, ADAM)
    batches = draw_batches(kind, 6, seed=42)
    follow(run, batches[:3])
    again = Run(kind, SGD_MOMENTUM, net=run.net)
    follow(again, batches[3:])


# Two processes.

PARALLEL = {  # kind, specification, sparse, how
    "one-hot Adam": ("OneHot", ADAM, False, "plain"),
    "bag momentum, sparse": ("Bag", SGD_MOMENTUM, True, "plain"),
    "sentence momentum": ("Sentence", SGD_MOMENTUM, False, "plain"),
    "sentence Adam, sparse": ("Sentence", ADAM, True, "plain"),
    "offset bag Adam": ("OffsetBag", ADAM, False, "plain"),
    "columns Adam": ("Columns", ADAM, False, "plain"),
    "mixed momentum": ("Mixed", SGD_MOMENTUM, False, "plain"),
    "home away Adam, micro-batches": ("HomeAway", ADAM, False, "micro"),
    "one-hot Adam, group given": ("OneHot", ADAM, False, "group"),
    "one-hot Adam, one evaluates": ("OneHot", ADAM, False, "evaluate"),
    "one-hot Adam, skipped": ("OneHot", ADAM, False, "skip"),
}
N_PARALLEL = 10


def parallel_batches(kind):
    """Batches of 8 whose halves go to the processes: the second half is another draw, in part of nothing."""
    batches = draw_batches(kind, N_PARALLEL, 8, seed=43)
    if isinstance(kind, OneHot):
        for number, rows in enumerate(batches):
            for place, row in enumerate(rows):
                first, second = row["codes"]
                row["codes"] = [first % 2 + 2 * (place >= 4), second] if number % 2 else [first, -1]
        for row in batches[4][4:]:
            row["codes"] = [-1, -1]
    return batches


def parallel_worker(rank, folder):
    """One of two processes: each its half of every batch; the parameters after every step go to a file."""
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=60),
    )
    found = {name: parallel_run(rank, *case) for name, case in PARALLEL.items()}
    torch.save(found, Path(folder) / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def parallel_run(rank, kind, spec, sparse, how):
    import torch.distributed as dist

    kind = next(made for made in KINDS if repr(made) == kind)
    run = Run(
        kind,
        spec,
        sparse=sparse,
        forward=nn.parallel.DistributedDataParallel,
        modules="forward",
        process_group=dist.group.WORLD if how == "group" else None,
    )
    found = []
    for rows in parallel_batches(kind):
        parallel_step(run, rows[4 * rank : 4 * rank + 4], how, rank)
        found.append({name: tensor.clone() for name, tensor in run.net.state_dict().items()})
    return found


def parallel_step(run, rows, how, rank):
    if how == "micro":
        run.gse.zero_grad()
        with run.forward.no_sync():
            (run.loss(rows[:2]) / 2).backward()
        (run.loss(rows[2:]) / 2).backward()
        run.gse.step()
        return
    if how == "skip":
        run.loss(rows[:2]).backward()
        run.net.zero_grad()
    plain_but(run, rows, between=how == "evaluate" and rank == 0)


def plain_but(run, rows, between):
    run.gse.zero_grad()
    loss = run.loss(rows)
    if between:
        run.net(run.batch(rows))
    loss.backward()
    if between:
        with torch.no_grad():
            run.net(run.batch(rows))
    run.gse.step()


@pytest.fixture(scope="module")
def parallel_results(tmp_path_factory):
    """What the two processes found, for all cases: they are started once, as that is what takes the time."""
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("torch without gloo")
    import torch.multiprocessing as mp

    folder = tmp_path_factory.mktemp("parallel")
    with pytest.MonkeyPatch.context() as patch:
        for place in (Path(__file__).parents[2], Path(__file__).parent):  # a process of its own finds the modules too
            patch.syspath_prepend(str(place))
        context = mp.get_context("spawn")
        workers = []
        for rank in range(2):
            given = {"RANK": rank, "FOLDER": str(folder)}
            arguments = (__file__, given, "gse_worker")  # a function of the library: it is found however pytest imports
            workers.append(context.Process(target=runpy.run_path, args=arguments, daemon=True))
            workers[-1].start()
        for worker in workers:
            worker.join(150)
            if worker.is_alive():
                worker.kill()
        assert [worker.exitcode for worker in workers] == [0, 0]
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("case", list(PARALLEL))
def test_two_processes_are_one(parallel_results, case):
    name, spec, _, _ = PARALLEL[case]
    kind = next(made for made in KINDS if repr(made) == name)
    net = make_net(kind)
    naive = make_oracle(kind, spec, net)
    with default_dtype(torch.float64):
        for number, rows in enumerate(parallel_batches(kind)):
            naive.step(*naive_losses(kind, naive, rows))
            for parameter, _ in net.named_parameters():
                for rank in range(2):
                    found = parallel_results[rank][case][number][parameter]
                    at = f"{parameter} of process {rank} after batch {number}"
                    torch.testing.assert_close(found, kind.expected(naive, parameter), rtol=1e-12, atol=1e-12, msg=at)


# Errors.


def refused(says, make):
    """The error is one sentence that names the thing."""
    with pytest.raises((TypeError, ValueError), match=says) as error:
        make()
    text = str(error.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert not re.search(r"[.!?] [A-Z]", text), text
    assert len(text.split()) >= 6, text


@pytest.mark.parametrize("name", ["LBFGS", "SparseAdam", "Adafactor", "Muon"])
def test_optimizers_that_are_not_elementwise_are_refused(name):
    if not hasattr(torch.optim, name):
        pytest.skip(f"torch without {name}")
    model = nn.Embedding(K, WIDTH)
    refused(name, lambda: GSE(getattr(torch.optim, name)(model.parameters()), model))


def test_model_without_symbols_is_refused():
    model = nn.Linear(3, 2)
    refused("Embedding", lambda: GSE(torch.optim.SGD(model.parameters(), lr=0.1), model))
    refused("Embedding", lambda: GSE(torch.optim.SGD(model.parameters(), lr=0.1), [model]))
    refused("Embedding", lambda: GSE(torch.optim.SGD(model.parameters(), lr=0.1), []))


@pytest.mark.parametrize("make", [nn.Embedding, nn.EmbeddingBag])
def test_scale_grad_by_freq_is_refused(make):
    model = nn.Sequential(make(K, WIDTH, scale_grad_by_freq=True))
    refused("scale_grad_by_freq", lambda: GSE(torch.optim.SGD(model.parameters(), lr=0.1), model))


def test_weight_tied_with_a_linear_is_refused():
    """The Linear's use of the weight gives every symbol a gradient in every row."""
    model = nn.ModuleDict({"words": nn.Embedding(K, WIDTH), "out": nn.Linear(WIDTH, K)})
    model["out"].weight = model["words"].weight
    refused("words|out|Linear", lambda: GSE(torch.optim.SGD(model.parameters(), lr=0.1), model))


def test_no_symbol_in_the_groups_is_refused():
    model = nn.ModuleDict({"words": nn.Embedding(K, WIDTH), "out": nn.Linear(WIDTH, 1)})
    refused("optimizer|group", lambda: GSE(torch.optim.SGD(model["out"].parameters(), lr=0.1), model))


@pytest.mark.parametrize("reduction", ["none", "average", None])
def test_other_reductions_are_refused(reduction):
    model = nn.Embedding(K, WIDTH)
    refused("reduction", lambda: GSE(torch.optim.SGD(model.parameters(), lr=0.1), model, reduction=reduction))


@pytest.mark.parametrize("columns", [[99], [0, 3], [1, -99]])
def test_columns_out_of_range_are_refused(columns):
    model = nn.Linear(3, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    refused("99|3", lambda: GSE(sgd, model, one_hot_columns={model: columns}))


@pytest.mark.parametrize("make", [lambda: nn.Embedding(K, WIDTH), lambda: nn.Conv1d(3, 2, 1)])
def test_columns_of_what_is_no_linear_are_refused(make):
    model = make()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    refused("Linear", lambda: GSE(sgd, model, one_hot_columns={model: [0]}))


def test_refused_models_are_left_as_they_were():
    """A GSE that was refused leaves no hook behind."""
    model = nn.Sequential(nn.Embedding(K, WIDTH), nn.Embedding(K, WIDTH, scale_grad_by_freq=True))
    refused("scale_grad_by_freq", lambda: GSE(torch.optim.SGD(model.parameters(), lr=0.1), model))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


# Random combinations.

RATES = st.floats(0.001, 0.1)
SHARES = st.floats(0.1, 0.95)
DECAYS = st.sampled_from([0.0, 0.05, 0.3])
SWITCH = st.booleans()
BETAS = {"betas": st.tuples(SHARES, SHARES), "weight_decay": DECAYS, "maximize": SWITCH, "eps": st.just(1e-4)}
CHOICES = {
    "SGD": {"momentum": SHARES, "dampening": SHARES, "weight_decay": DECAYS, "maximize": SWITCH},
    "Adagrad": {"lr_decay": SHARES, "initial_accumulator_value": SHARES, "weight_decay": DECAYS, "maximize": SWITCH},
    "RMSprop": {
        "alpha": SHARES,
        "centered": SWITCH,
        "momentum": SHARES,
        "weight_decay": DECAYS,
        "eps": st.just(1e-3),
        "maximize": SWITCH,
    },
    "Adam": BETAS | {"amsgrad": SWITCH},
    "AdamW": BETAS | {"amsgrad": SWITCH},
    "NAdam": BETAS | {"momentum_decay": SHARES, "decoupled_weight_decay": SWITCH},
    "RAdam": BETAS | {"decoupled_weight_decay": SWITCH},
    "Adamax": BETAS,
    "Adadelta": {"rho": SHARES, "weight_decay": DECAYS, "eps": st.just(1e-3), "maximize": SWITCH},
    "ASGD": {"lambd": SHARES, "alpha": SHARES, "t0": st.integers(0, 4), "weight_decay": DECAYS, "maximize": SWITCH},
}


@st.composite
def specifications(draw):
    """An optimizer with some of its options."""
    name = draw(st.sampled_from(sorted(CHOICES)))
    options = {key: draw(values) for key, values in CHOICES[name].items() if draw(SWITCH)}
    return name, {"lr": draw(RATES)} | options


PLANS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=5)  # micro-batches, their size


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    spec=specifications(),
    kind=st.sampled_from(KINDS),
    plan=PLANS,
    seed=st.integers(0, 2**16),
    sparse=SWITCH,
    reduction=st.sampled_from(["mean", "sum"]),
)
def test_random_combinations(spec, kind, plan, seed, sparse, reduction):
    """Any batches, in micro-batches and in any order of their rows, with evaluations and discarded ones between."""
    sparse = sparse and kind.sparse and not isinstance(kind, WeightedBag)
    run = Run(kind, spec, sparse=sparse, reduction=reduction)
    rng = np.random.default_rng(seed)
    with default_dtype(torch.float64):
        for number, (n, size) in enumerate(plan):
            rows = draw_rows(kind, rng, n * size)
            if rng.random() < 0.3:
                run.loss(draw_rows(kind, rng, 3)).backward()
            (run.net if rng.random() < 0.5 else run.gse).zero_grad(set_to_none=bool(rng.random() < 0.5))
            shuffled = [rows[place] for place in rng.permutation(len(rows))]
            for start in range(0, n * size, size):
                loss = run.loss(shuffled[start : start + size])
                (loss / n if reduction == "mean" else loss).backward()
                if rng.random() < 0.3:
                    run.loss(rows)
            run.gse.step()
            run.naive_step(rows)
            run.check(f"batch {number}", tolerance=1e-9)


if __name__ == "gse_worker":
    parallel_worker(RANK, FOLDER)  # noqa: F821 - given by who starts the process
