"""`tabsym_torch` beyond the optimizer's oracle: its other way of computing, rescaled gradients, bridges."""

import copy
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

import tabsym_torch  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from tabsym_torch import GSE, OneHotLinear, to_torch  # noqa: E402
from torch import nn  # noqa: E402

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor  # noqa: E402
from tests.integrations.test_torch import (  # noqa: E402
    ADAM,
    MAIN,
    ONE_EACH,
    OTHERS,
    SPECS,
    TWO,
    Run,
    draw_batches,
    follow,
    named,
    over,
)

# -- tensor operations, as on a GPU -------------------------------------------------------


@pytest.fixture
def operations(monkeypatch):
    """The way taken where the compiled kernels cannot go."""
    monkeypatch.setattr(tabsym_torch.gse, "is_plain", lambda table: False)


@pytest.mark.parametrize(("spec", "kind"), [(spec, MAIN[turn % 3]) for turn, spec in enumerate(SPECS)], ids=named)
def test_operations_in_double_precision(spec, kind, operations):
    follow(Run(kind, spec), draw_batches(kind, 8))


@over("kind", MAIN[:3])
@over("spec", ONE_EACH[:8])
def test_operations_in_single_precision(spec, kind, operations):
    follow(Run(kind, spec, dtype=torch.float32), draw_batches(kind, 8, seed=1))


@over("kind", OTHERS)
@over("spec", TWO)
def test_operations_of_other_kinds(spec, kind, operations):
    follow(Run(kind, spec, sparse=kind.sparse), draw_batches(kind, 8, seed=2))


@over("spec", SPECS)
def test_both_ways_give_the_same_where_all_symbols_are_present(spec, monkeypatch):
    """Small tables of which a batch has every symbol are changed in place; a large one is sorted, not counted out."""
    for sizes, padding in (((3, 2), None), ((400,), 7)):
        tables = []
        for plain in (True, False):
            with monkeypatch.context() as patch:
                if not plain:
                    patch.setattr(tabsym_torch.gse, "is_plain", lambda table: False)
                tables.append(_trained(spec, sizes, padding))
        torch.testing.assert_close(tables[0], tables[1], rtol=0, atol=1e-6)


def _trained(spec, sizes, padding):
    torch.manual_seed(0)
    name, options = spec
    model = OneHotLinear(sizes, 3) if padding is None else nn.Embedding(sizes[0], 3, padding_idx=padding)
    optimizer = GSE(getattr(torch.optim, name)(model.parameters(), **options), model)
    for _ in range(6):
        rows = torch.stack([torch.randint(0, size, (20,)) for size in sizes], dim=1)
        optimizer.zero_grad()
        (model(rows).sum(-1) - torch.linspace(-1, 1, 20)[:, None]).square().mean().backward()
        optimizer.step()
    return model.weight.detach()


# -- gradients rescaled before the step ---------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@over("spec", TWO)
def test_rescaled_gradients_are_the_estimator_and_are_not_rescaled_again(spec, sparse):
    """What clipping by value then sees: each symbol's mean; the step is as without where nothing was clipped."""
    one, two = Run(MAIN[0], spec, sparse=sparse), Run(MAIN[0], spec, sparse=sparse)
    for rows in draw_batches(MAIN[0], 5):
        for run, early in ((one, False), (two, True)):
            run.gse.zero_grad()
            run.loss(rows).backward()
            if early:
                run.gse.rescale()
                _check_means(run, rows)
        one.gse.step()
        two.gse.step()
        torch.testing.assert_close(one.net.symbols.weight, two.net.symbols.weight, rtol=0, atol=1e-12)


def _check_means(run, rows):
    """Each symbol's gradient is that of the mean loss of the rows that have it."""
    found = run.net.symbols.weight.grad
    found = found.to_dense() if found.is_sparse else found
    for symbol in {code for row in rows for code in row["codes"]}:
        having = [row for row in rows if symbol in row["codes"]]
        errors = (run.net(run.batch(having)) - torch.tensor([row["y"] for row in having], dtype=torch.float64)) ** 2
        (own,) = torch.autograd.grad(errors.mean(), run.net.symbols.weight)
        own = own.to_dense() if own.is_sparse else own
        if symbol != run.net.symbols.padding_idx:
            torch.testing.assert_close(found[symbol], own[symbol], rtol=0, atol=1e-12)


def test_a_backward_pass_after_rescale_is_refused():
    run = Run(MAIN[0], ADAM)
    first, second = draw_batches(MAIN[0], 2)
    run.loss(first).backward()
    run.gse.rescale()
    run.loss(second).backward()
    with pytest.raises(RuntimeError, match="after rescale"):
        run.gse.step()


def test_a_table_read_past_its_module_is_refused():
    table = nn.Embedding(5, 2)
    optimizer = GSE(torch.optim.SGD(table.parameters(), lr=0.1), table)
    nn.functional.embedding(torch.tensor([1, 2]), table.weight).sum().backward()
    with pytest.raises(RuntimeError, match="call the module itself"):
        optimizer.step()


def test_the_state_of_a_plain_optimizer_is_every_symbols():
    """Training goes on under GSE: each symbol has the updates that the table had."""
    table = nn.Embedding(4, 2)
    plain = torch.optim.Adam(table.parameters(), lr=0.1)
    for _ in range(3):
        plain.zero_grad()
        table(torch.arange(4)).square().mean().backward()
        plain.step()
    optimizer = GSE(plain, table)
    assert optimizer.state[table.weight]["step"].tolist() == [3.0] * 4
    optimizer.zero_grad()
    table(torch.tensor([1])).sum().backward()
    optimizer.step()
    assert optimizer.state[table.weight]["step"].tolist() == [3.0, 4.0, 3.0, 3.0]


# -- uses that went wrong once ---------------------------------------------------------------


def _step(table, optimizer, codes):
    optimizer.zero_grad()
    table(torch.as_tensor(codes)).square().sum(-1).mean().backward()
    optimizer.step()


def _moved(table, before):
    return (table.weight.detach() != before).any(1).nonzero()[:, 0].tolist()


def _tables(optimizer=torch.optim.SGD, n=6, **options):
    torch.manual_seed(0)
    table = nn.Embedding(n, 2)
    return table, GSE(optimizer(table.parameters(), lr=0.1, **options), table), table.weight.detach().clone()


def test_modules_that_change_their_codes_are_refused():
    class Hashed(nn.Embedding):
        def forward(self, codes):
            return super().forward(codes % self.num_embeddings)

    table = Hashed(5, 2)
    with pytest.raises(ValueError, match="Hashed whose forward"):
        GSE(torch.optim.SGD(table.parameters(), lr=0.1), table)


def test_a_one_hot_layer_of_ones_own_says_what_it_selects():
    class Silent(OneHotLinear):
        def forward(self, codes):
            return nn.functional.embedding(self.rows_of(codes), self.weight).sum(1)

    layer = Silent([3], 2)
    GSE(torch.optim.SGD(layer.parameters(), lr=0.1), layer)
    with pytest.raises(RuntimeError, match=r"forward of Silent must set self\.selected"):
        layer(torch.tensor([[1]]))


def test_a_table_of_another_size_is_refused():
    table, optimizer, _ = _tables()
    table.weight.data = torch.ones(60, 2)
    with pytest.raises(RuntimeError, match="6 entries when GSE was made, and has 60"):
        _step(table, optimizer, [50, 3])


def test_a_buffer_filled_anew_does_not_change_what_was_counted():
    table, optimizer, before = _tables()
    buffer = torch.zeros(4, dtype=torch.long)
    for codes in ([1, 1, 1, 2], [3, 3, 4, 4]):
        buffer.copy_(torch.tensor(codes))
        (table(buffer).square().sum(1).mean() / 2).backward()
    buffer.fill_(5)
    optimizer.step()
    assert _moved(table, before) == [1, 2, 3, 4]
    torch.testing.assert_close(table.weight.detach()[1:5], 0.8 * before[1:5])


def test_a_code_that_is_no_entry_leaves_the_next_count_as_it_should_be():
    """A subclass could pass on such codes; what was counted up to there must not stay."""
    table, optimizer, before = _tables()
    table(torch.tensor([1, 1, 2])).sum(-1).mean().backward()
    codes = optimizer.tables[0].batches[0][0]
    codes[2] = 60
    with pytest.raises(RuntimeError, match="a code that is none of its 6 entries"):
        optimizer.step()
    optimizer.zero_grad()
    _step(table, optimizer, [1, 2, 2])
    torch.testing.assert_close(table.weight.detach()[1:3], 0.8 * before[1:3])


@pytest.mark.parametrize("first", ["GSE", "the user"])
def test_hooks_of_the_user_on_the_same_output_run_and_can_be_removed(first):
    torch.manual_seed(0)
    table, heard = nn.Embedding(6, 2), []

    def listen(module, args, output):
        for name in ("kept", "removed"):
            handle = output.register_hook(lambda gradient, name=name: heard.append(name))
        handle.remove()

    if first == "the user":
        table.register_forward_hook(listen)
    optimizer = GSE(torch.optim.SGD(table.parameters(), lr=0.1), table)
    if first == "GSE":
        table.register_forward_hook(listen)
    before = table.weight.detach().clone()
    _step(table, optimizer, [1, 1, 2])
    assert heard == ["kept"]
    torch.testing.assert_close(table.weight.detach()[1:3], 0.8 * before[1:3])


@pytest.mark.parametrize("codes", [torch.int32, torch.int64])
def test_codes_of_any_layout(codes):
    """A matrix by columns: its rows are the rows of the loss nevertheless."""
    table, optimizer, before = _tables()
    by_column = torch.tensor([[1, 2, 3], [1, 3, 4]], dtype=codes).t()
    _step(table, optimizer, by_column)
    other, plain, _ = _tables()
    _step(other, plain, by_column.contiguous())
    assert _moved(table, before) == [1, 2, 3, 4]
    assert torch.equal(table.weight, other.weight)


@pytest.mark.parametrize(
    "same",
    [
        lambda gradient: gradient.t().contiguous().t(),
        lambda gradient: torch._neg_view(-gradient),
        lambda gradient: gradient.repeat(2, 1)[: len(gradient)],
    ],
    ids=["by columns", "negated when read", "a part"],
)
def test_gradients_that_lie_otherwise(same):
    """Kernels are given addresses: they must not take such a gradient's memory for the gradient."""
    table, optimizer, before = _tables()
    table(torch.tensor([1, 1, 2])).square().sum(-1).mean().backward()
    table.weight.grad = same(table.weight.grad)
    optimizer.step()
    torch.testing.assert_close(table.weight.detach()[1:3], 0.8 * before[1:3])
    assert _moved(table, before) == [1, 2]


def test_a_parameter_of_another_kind_goes_through_operations():
    class Marked(nn.Parameter):
        pass

    table, _, before = _tables()
    table.weight = Marked(table.weight.detach().clone())
    optimizer = GSE(torch.optim.SGD(table.parameters(), lr=0.1), table)
    _step(table, optimizer, [1, 1, 2])
    torch.testing.assert_close(table.weight.detach()[1:3], 0.8 * before[1:3])


def test_tables_of_two_groups_and_two_types_in_one_step():
    """One call of the kernel moves tables that have options and type in common, and no others."""
    torch.manual_seed(0)
    tables = [nn.Embedding(4, 2, dtype=dtype) for dtype in (torch.float32, torch.float64) * 2]
    groups = [{"params": [tables[0].weight, tables[1].weight]}, {"params": [tables[2].weight, tables[3].weight]}]
    groups[1]["momentum"] = 0.9
    optimizer = GSE(torch.optim.SGD(groups, lr=0.1), tables)
    before = [table.weight.detach().clone() for table in tables]
    codes = torch.tensor([1, 1, 2])
    for _ in range(2):
        optimizer.zero_grad()
        sum(table(codes).square().sum(-1).mean() for table in tables).backward()
        optimizer.step()
    for table, began, factor in zip(tables, before, [0.8**2] * 2 + [0.8 - 0.2 * (0.9 + 0.8)] * 2):
        torch.testing.assert_close(table.weight.detach()[1:3], factor * began[1:3])
        assert _moved(table, began) == [1, 2]


@pytest.mark.parametrize("way", ["kernels", "operations"])
@pytest.mark.parametrize(
    ("kind", "first", "then"),
    [
        (torch.optim.Adam, {"amsgrad": True, "betas": (0.5, 0.5)}, {"amsgrad": False}),
        (torch.optim.SGD, {"momentum": 0.9}, {"dampening": 0.5}),
        (torch.optim.SGD, {"momentum": 0.9}, {"momentum": 0.5}),
        (torch.optim.RMSprop, {"momentum": 0.9, "centered": True}, {"momentum": 0.0, "centered": False}),
    ],
)
def test_options_changed_on_the_way(kind, first, then, way, monkeypatch):
    """Of a state that stays, only what the options of now ask for is used; all symbols present, as in plain torch."""
    if way == "operations":
        monkeypatch.setattr(tabsym_torch.gse, "is_plain", lambda table: False)
    table = nn.Embedding(3, 2, dtype=torch.float64)
    twin = copy.deepcopy(table)
    plain = kind(table.parameters(), lr=0.1, **first)
    optimizer = GSE(kind(twin.parameters(), lr=0.1, **first), twin, reduction="sum")
    for step in range(6):
        if step == 3:
            plain.param_groups[0].update(then)
            optimizer.param_groups[0].update(then)
        for own, parameters in ((plain, table), (optimizer, twin)):
            own.zero_grad()
            (parameters(torch.arange(3)).square() / (1 + step)).sum().backward()
            own.step()
    torch.testing.assert_close(twin.weight, table.weight, rtol=0, atol=1e-12)


def test_autograd_grad_before_the_backward_pass_of_the_same_graph():
    table, optimizer, before = _tables()
    loss = table(torch.tensor([1, 1, 2, 3])).square().sum(1).mean()
    torch.autograd.grad(loss, table.weight, retain_graph=True)
    loss.backward()
    optimizer.step()
    torch.testing.assert_close(table.weight.detach()[1:4], 0.8 * before[1:4])


def test_a_table_that_was_frozen_at_first():
    table, other = nn.Embedding(5, 2), nn.Embedding(5, 2)
    table.weight.requires_grad_(False)
    both = nn.ModuleList([table, other])
    optimizer = GSE(torch.optim.Adam(both.parameters(), lr=0.1), both)
    table.weight.requires_grad_(True)
    for codes in ([1, 2], [4, 4]):
        before = table.weight.detach().clone()
        _step(table, optimizer, codes)
    assert _moved(table, before) == [4]


def test_what_is_done_to_the_wrapped_optimizer_is_noticed():
    """A state that it loads, a group that it is given."""
    table, other = nn.Embedding(5, 2), nn.Embedding(5, 2)
    inner = torch.optim.Adam(table.parameters(), lr=0.1)
    optimizer = GSE(inner, [table, other])
    inner.load_state_dict(inner.state_dict())
    inner.add_param_group({"params": other.parameters()})
    inner.param_groups[0]["lr"] = 0.0
    before = table.weight.detach().clone()
    _step(table, optimizer, [1, 2])
    assert _moved(table, before) == []
    for codes in ([1, 2], [3]):
        before = other.weight.detach().clone()
        _step(other, optimizer, codes)
    assert _moved(other, before) == [1, 2] or _moved(other, before) == [3]


class Own(torch.optim.Adam):
    """An optimizer without a rule."""


@pytest.mark.parametrize("kind", [torch.optim.Adadelta, torch.optim.SGD, Own])
def test_the_history_of_a_plain_optimizer_goes_on(kind):
    options = {"momentum": 0.9, "dampening": 0.5} if kind is torch.optim.SGD else {}
    table = nn.Embedding(3, 2)
    plain = kind(table.parameters(), lr=0.1, **options)
    for _ in range(3):
        _step(table, plain, [0, 1, 2])
    twin = nn.Embedding.from_pretrained(table.weight.detach().clone(), freeze=False)
    continued = kind(twin.parameters(), lr=0.1, **options)
    continued.load_state_dict(copy.deepcopy(plain.state_dict()))
    optimizer = GSE(continued, twin)
    optimizer.zero_grad()
    (twin(torch.tensor([0, 1, 2])).square().sum(-1).mean() / 3).backward()  # as GSE multiplies by three
    optimizer.step()
    _step(table, plain, [0, 1, 2])
    torch.testing.assert_close(twin.weight, table.weight)


def test_gradients_zeroed_in_place_before_a_step_without_the_table():
    table, optimizer, _ = _tables(torch.optim.Adam)
    _step(table, optimizer, [1, 2])
    table.zero_grad(set_to_none=False)
    before = table.weight.detach().clone()
    optimizer.step()
    assert _moved(table, before) == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_tables_of_half_precision_hold_many_rows(dtype):
    table = nn.Embedding(3, 2, dtype=dtype)
    nn.init.ones_(table.weight)
    optimizer = GSE(torch.optim.SGD(table.parameters(), lr=0.25), table, reduction="sum")
    codes = torch.zeros(70_000, dtype=torch.long)
    codes[0] = 1
    table(codes)[:, 0].sum().backward()
    table.weight.grad[0, 0] = 60_000.0  # what half precision can still say of the sum
    optimizer.step()
    torch.testing.assert_close(table.weight[:2, 0].float(), torch.tensor([1 - 0.25 * 6 / 7, 0.75]), rtol=0.02, atol=0)


def test_codes_beyond_an_alphabet_or_of_another_shape_are_refused():
    layer = OneHotLinear([3, 2], 4)
    with pytest.raises(ValueError, match="Column 1 of the codes has 2 categories, and a code of 2"):
        layer(torch.tensor([[0, 2]]))
    for codes in (torch.tensor([0, 1]), torch.tensor([[0], [1]])):
        with pytest.raises(ValueError, match="shape"):
            layer(codes)


def test_rescaled_twice_is_rescaled_once():
    table, optimizer, _ = _tables()
    table(torch.tensor([1, 1, 2])).sum(-1).mean().backward()
    optimizer.rescale()
    once = table.weight.grad.clone()
    optimizer.step()
    optimizer.rescale()
    assert torch.equal(table.weight.grad, once)


def test_one_weight_with_two_paddings_is_refused():
    one, two = nn.Embedding(4, 2, padding_idx=0), nn.Embedding(4, 2)
    two.weight = one.weight
    with pytest.raises(ValueError, match="same padding_idx"):
        GSE(torch.optim.SGD(one.parameters(), lr=0.1), [one, two])


def test_copies_of_the_optimizer_are_refused():
    _, optimizer, _ = _tables()
    with pytest.raises(TypeError, match="make GSE anew"):
        copy.deepcopy(optimizer)


@pytest.mark.parametrize("scheduled", [False, True])
def test_hooks_run_once_each_with_their_own_optimizer(scheduled):
    table = nn.Embedding(4, 2)
    inner = torch.optim.SGD(table.parameters(), lr=0.1)
    optimizer = GSE(inner, table)
    called = []
    for each in (inner, optimizer):
        each.register_step_pre_hook(lambda own, *_: called.append(("before", type(own).__name__)))
        each.register_step_post_hook(lambda own, *_: called.append(("after", type(own).__name__)))
    if scheduled:
        torch.optim.lr_scheduler.StepLR(inner, 2)
    _step(table, optimizer, [1])
    assert called == [("before", "GSE"), ("before", "SGD"), ("after", "SGD"), ("after", "GSE")]


def test_the_state_of_another_table_is_refused_and_nothing_is_lost():
    table, optimizer, _ = _tables(torch.optim.Adam)
    _step(table, optimizer, [1, 2])
    other, second, _ = _tables(torch.optim.Adam, n=9)
    _step(other, second, [1, 2])
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(ValueError, match="the same numbers of categories"):
        optimizer.load_state_dict(second.state_dict())
    torch.testing.assert_close(optimizer.state_dict()["state"], before["state"])


def test_betas_in_tensors():
    options = {"betas": (torch.tensor(0.9), torch.tensor(0.999)), "foreach": False}
    table, optimizer, before = _tables(torch.optim.Adam, **options)
    _step(table, optimizer, [1, 2])
    assert _moved(table, before) == [1, 2]


def test_a_module_of_a_model_that_refuses_the_unseen_refuses_them_too():
    X, y = _table()
    module = to_torch(WideSGDRegressor(handle_unknown="error", max_iter=1).fit(X, y))
    with pytest.raises(ValueError, match="new"):
        module.inputs(pd.DataFrame({"a": ["new"], "b": ["k"], "x": [1.0]}))


# -- a wide model as a module -------------------------------------------------------------


def _table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"a": rng.choice(list("uvwxyz"), n), "b": rng.choice(list("klm"), n), "x": rng.normal(2, 3, n)}
    )
    table.loc[::17, "b"] = None
    y = table["a"].map(dict(zip("uvwxyz", range(6)))) * 2.0 + np.where(table["b"] == "k", 3, 0) + 0.4 * table["x"]
    return table, y + rng.normal(0, 0.2, n) + 20.0


@pytest.mark.parametrize(
    "formula",
    [
        None,
        "w[a] * x + c[1]",
        "w[a] * v[b] + u[a, b] * x + 3 * x - 2",
        "dot(p[a], q[b], rank=2) + c[1]",
        "w[a]**2 + c[1]",
    ],
)
def test_a_wide_regression_scores_the_same_as_a_module(formula):
    """Seen and unseen symbols, missing ones, numbers in factors, fixed parts of the score."""
    X, y = _table()
    model = WideSGDRegressor(formula, max_iter=3).fit(X, y)
    new = pd.concat([X.head(40), pd.DataFrame({"a": ["new", "u"], "b": ["k", "other"], "x": [1.0, -4.0]})])
    module = to_torch(model, dtype=torch.float64)
    np.testing.assert_allclose(module(*module.inputs(new)).detach().numpy()[:, 0], model.predict(new), rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("interactions", [None, "pairwise"])
def test_a_wide_classifier_scores_the_same_as_a_module(classes, interactions):
    X, y = _table()
    labels = np.asarray(pd.qcut(y, classes, labels=False))
    model = WideSGDClassifier(interactions=interactions, max_iter=3).fit(X, labels)
    module = to_torch(model, dtype=torch.float64)
    score = module(*module.inputs(X)).detach().numpy()
    want = model.decision_function(X)
    np.testing.assert_allclose(score[:, 0] if classes == 2 else score, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("classes", [None, 2, 3])
def test_a_solved_model_scores_the_same_as_a_module(classes):
    """Smooth effects, effects of counts, and interactions that were chosen."""
    X, y = _table()
    new = pd.concat([X.head(40), pd.DataFrame({"a": ["new", "u"], "b": ["k", "other"], "x": [1.0, -400.0]})])
    if classes is None:
        model = WideRegressor(loss="squared_error").fit(X, y)
        want = model.predict(new)
    else:
        model = WideClassifier().fit(X, np.asarray(pd.qcut(y, classes, labels=False)))
        want = model.decision_function(new)
    module = to_torch(model, dtype=torch.float64)
    score = module(*module.inputs(new)).detach().numpy()
    np.testing.assert_allclose(score if classes == 3 else score[:, 0], want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("option", ["offset_column", "exposure_column"])
def test_a_module_adds_the_column_of_the_offset(option):
    X, y = _table()
    X = X.assign(own=np.random.default_rng(1).uniform(0.5, 4, len(X)))
    model = WideRegressor(loss="poisson", **{option: "own"}).fit(X, (y * X["own"]).round())
    module = to_torch(model, dtype=torch.float64)
    score = module(*module.inputs(X)).detach().numpy()[:, 0]
    np.testing.assert_allclose(score, np.log(model.predict(X)), rtol=1e-10)
    without = X[["a", "b", "x"]]
    with pytest.raises(ValueError, match=f"{option}='own' is not in the table, and fit had it"):
        module.inputs(without)
    model = WideRegressor(loss="poisson").fit(without, y.round(), offset=X["own"])
    with pytest.warns(UserWarning, match="was fitted with offset=, and predicts without one"):
        to_torch(model).inputs(without)


def test_a_wide_model_as_a_module_trains_under_gse():
    X, y = _table()
    module = to_torch(WideSGDRegressor(learning_rate=1e-3, max_iter=1).fit(X, y))
    rows = module.inputs(X)
    target = torch.tensor(y.to_numpy(), dtype=torch.float32)
    optimizer = GSE(torch.optim.Adam(module.parameters(), lr=0.05), module)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (module(*rows)[:, 0] - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_to_torch_takes_fitted_wide_models():
    for model in (WideRegressor(), WideSGDRegressor()):
        with pytest.raises(NotFittedError):
            to_torch(model)
    with pytest.raises(TypeError, match="to_torch takes a wide model, such as WideClassifier, and not object"):
        to_torch(object())


# -- pytorch-frame ------------------------------------------------------------------------


def _stats(frame, names):
    from torch_frame.data.stats import StatType

    counts = {name: frame[name].value_counts() for name in names}
    return [{StatType.COUNT: (list(each.index), list(each))} for each in counts.values()]


def test_an_encoder_of_pytorch_frame_starts_from_the_wide_model():
    from tabsym_torch.frame import WideStypeEncoder
    from torch_frame import stype

    X, y = _table()
    X["c"] = np.where(np.arange(len(X)) % 2, "odd", "even")
    model = WideSGDRegressor(categorical_features=["a", "b"], max_iter=3).fit(X[["a", "b"]], y)
    stats = _stats(X, ["a", "b", "c"])
    encoder = WideStypeEncoder(4, stats, stype.categorical, model=model, columns=["a", "b", "c"])
    categories = next(iter(stats[0].values()))[0]
    codes = torch.tensor([[i, -1, 0] for i in range(len(categories))])
    encoded = encoder(codes)
    assert encoded.shape == (len(categories), 3, 4)
    np.testing.assert_allclose(
        encoded[:, 0, 0].detach(), model.coefs_["a"].loc[categories, "value"].to_numpy(), rtol=1e-5, atol=1e-6
    )
    assert not encoded[:, 1].any()  # missing
    optimizer = GSE(torch.optim.Adam(encoder.parameters(), lr=0.1), encoder)
    encoder(codes[:2]).square().sum().backward()
    before = encoder.emb.weight.detach().clone()
    optimizer.step()
    moved = (encoder.emb.weight.detach() != before).any(1)
    assert moved[encoder.offset[0] : encoder.offset[0] + 2].all() and moved.sum() == 3


@pytest.mark.parametrize(("channels", "columns", "says"), [(4, ["a"], "names 1 column,"), (1, ["a", "b"], "3 scores")])
def test_an_encoder_that_does_not_fit_says_so(channels, columns, says):
    from tabsym_torch.frame import WideStypeEncoder
    from torch_frame import stype

    X, y = _table()
    model = WideSGDClassifier(categorical_features=["a", "b"], max_iter=1).fit(
        X[["a", "b"]], np.asarray(pd.qcut(y, 3, labels=False))
    )
    with pytest.raises(ValueError, match=says):
        WideStypeEncoder(channels, _stats(X, ["a", "b"]), stype.categorical, model=model, columns=columns)


def test_an_encoder_whose_columns_the_model_does_not_know_as_they_are_says_so():
    from tabsym_torch.frame import WideStypeEncoder
    from torch_frame import stype

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"s": rng.choice(list("abc"), 300), "k": rng.integers(0, 5, 300)})
    options = {"loss": "squared_error", "interactions": None}
    for rows, more, says in (
        (X, {}, "Column 'k' is a number in the model"),
        (X, {"numeric": "linear"}, "Column 'k' is a number in the model"),
        (X.astype({"k": str}), {}, r"Column 'k' has categories such as \d, and the model such as '\d': none is known"),
    ):
        model = WideRegressor(**options, **more).fit(rows, X["k"] + rng.normal(size=300))
        with pytest.raises(ValueError, match=says):
            WideStypeEncoder(4, _stats(X, ["s", "k"]), stype.categorical, model=model, columns=["s", "k"])


def test_an_encoder_without_a_term_or_in_another_order_says_so():
    from tabsym_torch.frame import WideStypeEncoder
    from torch_frame import stype

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"s": rng.choice(["yes", "no"], 300), "t": rng.choice(["yes", "no"], 300)})
    y = (X["s"] == "yes") + 0.1 * rng.normal(size=300)
    products = WideRegressor(loss="squared_error", formula="u[s] + v[t] + c[1]").fit(X, y)
    with pytest.raises(ValueError, match="None of the columns 's', 't' is the name of a term of the model"):
        WideStypeEncoder(4, _stats(X, ["s", "t"]), stype.categorical, model=products, columns=["s", "t"])
    model = WideRegressor(loss="squared_error", interactions=None).fit(X, y)
    encoder = WideStypeEncoder(4, _stats(X, ["s", "t"]), stype.categorical, model=model, columns=["s", "t"])
    codes = torch.zeros((2, 2), dtype=torch.long)
    assert encoder(codes, col_names=["s", "t"]).shape == (2, 2, 4)
    with pytest.raises(ValueError, match="in another order than the tensor frame's"):
        encoder(codes, col_names=["t", "s"])


def test_the_door_gives_the_package():
    from tabsym.integrations import torch as bridge

    assert bridge is tabsym_torch


def test_a_missing_library_says_what_to_install(monkeypatch):
    from tabsym import integrations

    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.split(".")[0] == "tabsym_torch"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "tabsym\[torch\]"'):
        _ = integrations.torch


def test_the_guide_runs():
    text = (Path(__file__).parents[2] / "docs" / "torch.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/torch.md", "exec"), {})


def test_updates_that_gradients_pass_through_are_refused_in_any_group():
    table, other = nn.Embedding(4, 1), nn.Linear(1, 1)
    groups = [{"params": list(table.parameters()), "differentiable": True}]
    with pytest.raises(ValueError, match=r"GSE does not wrap Adam\(differentiable=True\)"):
        GSE(torch.optim.Adam(groups), table)
    optimizer = GSE(torch.optim.Adam(table.parameters()), table)
    with pytest.raises(ValueError, match="differentiable=True"):
        optimizer.add_param_group({"params": other.parameters(), "differentiable": True})
    assert len(optimizer.param_groups) == 1
