"""Variances of rare blocks, by rows held out: the slope against differences, the looks, and what the halves know."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder

from tabsym import WideClassifier, WideRegressor
from tabsym.design.content import ShuffledRows
from tabsym.losses.loss import LOSSES
from tabsym.solvers.newton import fit as newton_fit
from tabsym.solvers.newton import formulas, variances
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.steps import Recentering
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.solvers.newton.variances import HeldOut, MulticlassHalves, VarianceComponents
from tests.options import ADDITIVE
from tests.solver import inner

N, PLAIN = 900, np.empty(0)
LOG, DISPERSION = ("poisson", "gamma"), 0.6
LOSS = {
    "squared_error": lambda score, target: (score - target) ** 2 / 2,
    "logistic": lambda score, target: np.logaddexp(0.0, score) - target * score,
    "poisson": lambda score, target: np.exp(score) - target * score,
    "gamma": lambda score, target: score + target * np.exp(-score),
}


def halves(loss, *, numbers, weighted=False, seed=0):
    """Two models of half the rows each, of an intercept, two blocks of symbols, intervals, and slopes by symbol."""
    rng = np.random.default_rng(seed)
    sizes = [(1, Prior.FLAT), (12, Prior.RIDGE), (9, Prior.WALK), (500 if loss in LOG else 60, Prior.RIDGE)]
    terms = [
        SolverTerm(block, rng.integers(0, size, N).astype(np.int32), PLAIN, size, prior)
        for block, (size, prior) in enumerate(sizes)
    ]
    if numbers:
        x = rng.normal(1.0, 1.0, N)
        terms.insert(2, SolverTerm(len(terms), rng.integers(0, 6, N).astype(np.int32), x, 6, Prior.RIDGE))
    score = rng.normal(size=12)[terms[1].codes] + 0.6 * rng.normal(size=sizes[-1][0])[terms[-1].codes]
    if loss in LOG:
        y = rng.gamma(2.0, np.exp(score) / 2.0) if loss == "gamma" else rng.poisson(np.exp(score)).astype(float)
    else:
        y = score + rng.normal(size=N) if loss == "squared_error" else (rng.random(N) < expit(score)).astype(float)
    weight = rng.uniform(0.5, 2.0, N) if weighted else PLAIN
    column = rng.integers(0, 2, N).astype(np.int8)
    solver = BlockDescent(terms, y, weight, np.zeros((N, 1)), LOSSES[loss], column, 2)
    solver.precision = np.array([0.0, *rng.uniform(0.5, 8.0, len(terms) - 1)])
    return solver


def settled_loss(solver, place, log):
    """The loss of each row by the model that has not seen it, at the optimum for a precision."""
    before = solver.precision[place]
    solver.precision[place] = float(np.exp(log))
    for _ in range(400):
        if solver.update_blocks() < 1e-15:
            break
    total, name = 0.0, solver.loss.name
    seen = [set(zip(term.codes, solver.rows.column, strict=True)) for term in solver.terms]
    for i, target in enumerate(solver.y):
        score, other = 0.0, 1 - solver.rows.column[i]
        for at, (term, theta) in enumerate(zip(solver.terms, solver.theta, strict=True)):
            times = term.x[i] if len(term.x) else 1.0
            score += theta[term.codes[i], other] * times
            if name in LOG and term.prior is Prior.RIDGE and (term.codes[i], other) not in seen[at]:
                score += times**2 * DISPERSION / solver.precision[at] / 2  # the mean of exp under the prior
        own = LOSS[name](score, target)
        total += own * (solver.weight[i] if len(solver.weight) else 1.0)
    solver.precision[place] = before
    return total


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("numbers", [False, True], ids=["plain", "numbers"])
@pytest.mark.parametrize("loss", ["squared_error", "logistic", "poisson", "gamma"])
def test_slopes_of_the_loss_held_out_are_its_differences(loss, numbers, weighted):
    """By precisions' logarithms, once the linear solve has gone on for long enough."""
    solver = halves(loss, numbers=numbers, weighted=weighted)
    free, want = [place for place in range(len(solver.terms)) if place], []
    for place in free:
        log = np.log(solver.precision[place])
        above, below = (settled_loss(solver, place, log + step) for step in (1e-3, -1e-3))
        want.append((above - below) / 2e-3)
    settled_loss(solver, free[0], np.log(solver.precision[free[0]]))  # back at the optimum of these precisions
    held_out = HeldOut(solver, DISPERSION)
    is_new = {
        place: held_out._is_new(place)
        for place in free
        if solver.loss.log_link and solver.terms[place].prior is Prior.RIDGE
    }
    rises = {place: held_out._rise(place) * one for place, one in is_new.items()}
    assert not rises or np.mean(rises[free[-1]] > 0) > 0.2
    scores = np.asarray(sum(rises.values(), held_out.scores()))
    for _ in range(300):
        found = held_out._slopes(free, scores, rises)
    np.testing.assert_allclose(found, want, rtol=0.01, atol=0.01 * np.abs(want).max())


def test_a_category_whose_rows_of_a_half_have_no_weight_is_new_to_it():
    solver = halves("poisson", numbers=True, weighted=True)
    solver.weight[np.random.default_rng(1).random(N) < 0.6] = 0.0
    for place in range(1, len(solver.terms)):
        term, column = solver.terms[place], solver.rows.column
        seen = {(code, half) for code, half, w in zip(term.codes, column, solver.weight, strict=True) if w > 0.0}
        wanted = [(code, 1 - half) not in seen for code, half in zip(term.codes, column, strict=True)]
        found = HeldOut(solver, DISPERSION)._is_new(place)
        np.testing.assert_array_equal(found, np.square(term.x) * wanted if len(term.x) else wanted)


def test_terms_with_a_small_given_penalty_take_the_degrees_of_freedom_that_they_have():
    """Of a block diagonal design: rows of each category over those and the penalty, .5, beside an intercept."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, N).astype(np.int32)
    others = rng.integers(0, 12, N).astype(np.int32)
    terms = [
        SolverTerm(0, np.zeros(N, dtype=np.int32), PLAIN, 1, Prior.FLAT),
        SolverTerm(1, codes, PLAIN, 40, Prior.RIDGE),
        SolverTerm(2, others, PLAIN, 12, Prior.RIDGE),
    ]
    y = rng.normal(size=40)[codes] + rng.normal(size=12)[others] + rng.normal(size=N)
    solver = BlockDescent(terms, y, PLAIN, np.zeros((N, 1)), LOSSES["squared_error"])
    components = VarianceComponents(solver)
    components.start()
    components.take({1: 0.5})
    components.find([2], 1e-8, 200)
    counts = np.bincount(codes, minlength=40)
    penalty = np.diag(np.append(np.full(40, 0.5), 0.0))
    information = np.block([[np.diag(counts), counts[:, None]], [counts[None], np.array([[N]])]])
    posterior = np.linalg.inv(information + penalty)[:40, :40]
    assert components.edf[1] == pytest.approx(40.0 - 0.5 * np.trace(posterior), rel=1e-6)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "huber"])
@pytest.mark.parametrize("seed", range(2))
def test_variances_of_common_terms_go_by_the_dispersion_beside_tuned_ones(loss, seed):
    """The dispersion counted what the tuned terms used before, so that the variances of the others were 4 % off here.

    A variance is the sum of squares over the effective degrees of freedom (Wood and Fasiolo 2017, equation 4).
    """
    rng, n = np.random.default_rng(seed), 500
    g, h = rng.integers(0, 12, n), rng.integers(0, 150, n)
    mean = np.exp(0.5 * rng.normal(size=12)[g] + 0.7 * rng.normal(size=150)[h])
    y = mean * rng.gamma(2.0, 0.5, n) if loss == "gamma" else rng.poisson(mean).astype(float)
    table = pd.DataFrame({"g": g.astype(str), "h": h.astype(str)})
    model = WideRegressor("w[g] + v[h] + c[1]", loss=loss, count_effect=False, tol=1e-8, max_iter=2000).fit(table, y)
    variance, edf = model.variances_.loc["w", ["variance", "edf"]]
    assert variance == pytest.approx(np.square(model.coefs_["w"]["value"]).sum() / edf, rel=1e-4)
    assert len(model.coefs_["v"]) >= variances.MANY_ENTRIES  # tuned


def test_there_are_at_most_so_many_evaluations(monkeypatch):
    """However much the last one gains."""
    calls = []
    monkeypatch.setattr(HeldOut, "_is_much_better", lambda *_: calls.append(1) or True)
    monkeypatch.setattr(variances, "MIN_EVALUATIONS", 1)
    monkeypatch.setattr(variances, "MAX_EVALUATIONS", 4)
    HeldOut(halves("squared_error", numbers=False), 1.0).tune([3])
    assert len(calls) == 4


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_of_a_parabola_both_halves_tell_the_optimum_of_all_rows(monkeypatch, weighted):
    """Of one block: what each half knows, put together, is where a model of all rows ends."""
    monkeypatch.setattr(
        Recentering, "recenter", lambda recentering, decrease: None
    )  # to an intercept, which is left out here
    solver = halves("squared_error", numbers=False, weighted=weighted)
    solver.dropped[:] = True
    solver.dropped[3] = False
    for _ in range(3):
        solver.update_blocks()
    (found,) = HeldOut(solver, 1.0).of_all_rows(3).T
    share = solver.weight if weighted else np.ones(N)
    for coef in range(60):
        rows = solver.terms[3].codes == coef
        want = np.sum((share * solver.y)[rows]) / (np.sum(share[rows]) + solver.precision[3])
        assert found[coef] == pytest.approx(want)


def test_models_of_classes_go_on_from_both_halves(monkeypatch):
    """Rare blocks of the model of all rows start where these ended; those of amounts, which are in it, stay."""
    starts, put = [], BlockDescent.put

    def spied(solver, theta):
        if solver.rows.width == 1:
            starts.append(max(np.abs(one).max() for one in theta))
        put(solver, theta)

    monkeypatch.setattr(BlockDescent, "put", spied)
    monkeypatch.setattr("tabsym.solvers.newton.fit.finish", lambda *_, **__: (0, True))
    X, y, _ = rare_and_common()
    WideClassifier(**ADDITIVE).fit(X, y)
    assert len(starts) == 2
    assert starts[1] > 0.5
    WideRegressor(loss="squared_error", **ADDITIVE).fit(X, y + np.random.default_rng(0).normal(size=len(y)))
    assert len(starts) == 3


@pytest.mark.parametrize(("loss", "n_best"), [("squared_error", 1), ("logistic", 2)])
def test_the_best_looks_are_kept_not_the_last(monkeypatch, loss, n_best):
    solver = halves(loss, numbers=False)
    free = [3]
    monkeypatch.setattr(HeldOut, "_slopes", lambda held_out, free, scores, rises: np.full(len(free), 1.0))  # ever down
    losses = iter([0.5, 0.1, 0.2, 0.9, 1.0, 1.1])
    monkeypatch.setattr(BlockDescent, "mean_of", lambda solver, own: next(losses))
    monkeypatch.setattr(HeldOut, "_is_much_better", lambda held_out, own, than: False)
    start = np.log(solver.precision[3])
    first = variances.FIRST_STEP_OF_CLASSES if loss == "logistic" else variances.FIRST_STEP
    steps = [0.0, first, first + min(first * variances.LONGER, variances.MAX_STEP)]
    want = start - np.mean(steps[1 : 1 + n_best])
    assert np.log(HeldOut(solver, 1.0).tune(free)[0]) == pytest.approx(want)


def rare_and_common(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    shop, kind = rng.integers(0, 600, n), rng.integers(0, 5, n)
    score = rng.normal(size=600)[shop] + rng.normal(size=5)[kind]
    X = pd.DataFrame({"shop": [f"s{one}" for one in shop], "kind": [f"k{one}" for one in kind]})
    return X, (rng.random(n) < expit(score)).astype(int), shop


def test_variances_of_common_blocks_are_found_while_rare_ones_are_out(monkeypatch):
    """Symbols that are seen once would explain their own rows; afterwards they are in."""
    X, y, _ = rare_and_common()
    sizes, dropped, find = [], [], VarianceComponents.find

    def spied(evidence, *arguments, **options):
        sizes.append([term.size for term in evidence.solver.terms])
        dropped.append(list(evidence.solver.dropped))
        return find(evidence, *arguments, **options)

    monkeypatch.setattr(VarianceComponents, "find", spied)
    model = WideClassifier(**ADDITIVE).fit(X, y)
    rare = sizes[0].index(max(sizes[0]))
    assert [one[rare] for one in dropped] == [True, False]
    assert not any(dropped[0][:rare] + dropped[0][rare + 1 :])
    assert model.variances_.loc["shop", "variance"] > 0.2


def test_a_sample_of_a_large_table_has_its_rows_own_weights_and_offsets(monkeypatch):
    X, y, shop = rare_and_common()
    weight, offset = 1.0 + shop % 3, 0.1 * (shop % 7)
    monkeypatch.setattr(newton_fit, "MAX_HELD_OUT", 1000)
    seen, held_out = [], newton_fit.HeldOut
    monkeypatch.setattr(newton_fit, "HeldOut", lambda solver, size: seen.append(solver) or held_out(solver, size))
    model = WideClassifier(**ADDITIVE).fit(X, y, sample_weight=weight, offset=offset)
    assert len(seen) == newton_fit.MORE_SPLITS
    solver = seen[-1]
    names = model.coefs_["shop"].index
    (term,) = (term for term in solver.terms if term.size == len(names))
    sampled = np.array([int(names[code][1:]) for code in term.codes])
    assert len(sampled) == 1000
    assert len(np.unique(sampled)) > 300
    np.testing.assert_allclose(solver.weight / solver.weight[0], (1.0 + sampled % 3) / (1.0 + sampled[0] % 3))
    np.testing.assert_allclose(solver.rows.start, 0.1 * (sampled % 7))
    monkeypatch.setattr(newton_fit, "FEW_ROWS", len(y) - 1)
    seen.clear()
    model.fit(X, y)
    assert len(seen) == 1  # of many rows one split is enough


@pytest.mark.parametrize(
    ("kind", "newton"),
    [
        ("amounts", {"tol": 1e-5, "max_iter": 3}),
        ("classes", {"tol": 1e-4, "max_iter": 8}),
        ("formula", {}),
    ],
    ids=["amounts", "classes", "formula"],
)
def test_variances_that_end_short_are_told_of(monkeypatch, kind, newton):
    """They were borne with, where the parameters for them settled."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 30, 600).astype(str), "b": rng.integers(0, 6, 600).astype(str)})
    score = rng.normal(1.0, 1.0, 30)[X["a"].astype(int)] * rng.normal(1.0, 0.5, 6)[X["b"].astype(int)]
    monkeypatch.setattr(formulas, "PASSES_PER_UPDATE", 200)  # one update
    with pytest.warns(match="ended short of the optimum after"):
        if kind == "classes":
            WideClassifier(**ADDITIVE, **newton).fit(X, np.digitize(score + rng.normal(size=600), [0.0, 1.5]))
        else:
            options = {"formula": "a[a]*m[b] + c[1]"} if kind == "formula" else ADDITIVE
            WideRegressor(loss="squared_error", **options, **newton).fit(X, score + rng.normal(size=600))


def test_as_many_sweeps_as_asked_for_are_taken_for_variances_of_classes():
    """A look at variances of classes is two sweeps; they counted as one."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 30, 600).astype(str)})
    y = rng.integers(0, 3, 600)
    with pytest.warns(match="ended short of the optimum after 2[01] iterations"):
        WideClassifier(**ADDITIVE, tol=1e-150, max_iter=10).fit(X, y)


def test_amounts_of_rare_categories_are_as_good_as_by_evidence():
    """Medians of categories that a half lacks made held-out variances small: twice the loss above the truth's."""
    excess = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        effects, common = 1.5 * rng.normal(size=2500), 0.5 * rng.normal(size=5)

        def draw(shop, rng=rng, effects=effects, common=common):
            kind = rng.integers(0, 5, len(shop))
            log = 0.3 + effects[shop] + common[kind]
            X = pd.DataFrame({"shop": [f"s{one}" for one in shop], "kind": [f"k{one}" for one in kind]})
            return X, log, rng.gamma(2.0, np.exp(log) / 2.0)

        shop = rng.integers(0, 2500, 5000)
        (X, _, y), (new, log, target) = draw(shop), draw(rng.choice(shop, 4000))
        own = []
        for rare_rows in (100, 0):
            model = inner(WideRegressor(loss="gamma", **ADDITIVE, random_state=seed), rare_rows=rare_rows).fit(X, y)
            found = np.log(model.predict(new))
            own.append(np.mean(found + target * np.exp(-found)) - np.mean(log + target * np.exp(-log)))
        excess.append(own)
    held_out, evidence = np.mean(excess, axis=0)
    assert held_out < 1.1 * evidence


def test_small_tables_have_variances_of_several_splits():
    """Those of one split depend on which rows fall where: by the random state."""
    X, y, _ = rare_and_common(2000)
    found = [
        WideClassifier(**ADDITIVE, random_state=state).fit(X, y).variances_["variance"]["shop"] for state in range(8)
    ]
    assert 0 < np.std(np.log(found)) < 0.25


K = 4


def optimum_of_classes(designs, precisions, y, weight, offset):
    """Coefficients (p, K) of the columns of all designs, by L-BFGS."""
    Z = np.column_stack(designs)
    held = np.concatenate([np.full(one.shape[1], own) for one, own in zip(designs, precisions, strict=True)])
    target = np.eye(K)[y.astype(int)]

    def objective(flat):
        theta = flat.reshape(-1, K)
        logs = log_softmax(offset + Z @ theta, axis=1)
        value = -(weight[:, None] * target * logs).sum() + 0.5 * (held[:, None] * theta**2).sum()
        return value, (Z.T @ (weight[:, None] * (np.exp(logs) - target)) + held[:, None] * theta).ravel()

    found = minimize(objective, np.zeros(Z.shape[1] * K), jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    return found.x.reshape(-1, K)


@pytest.mark.parametrize("weighting", [None, "weights", "copies"])
@pytest.mark.parametrize("spread", [0.3, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_factor_of_classes_is_that_of_optima_by_l_bfgs(seed, spread, weighting):
    """Doubled while the mean loss of rows that the other half was fitted to falls by two standard errors."""
    rng, n = np.random.default_rng(seed), 500
    x, copies = rng.normal(size=n), rng.integers(1, 4, n) if weighting == "copies" else None
    codes = [np.zeros(n, dtype=np.int32), *(rng.integers(0, q, n).astype(np.int32) for q in (10, 6, 5))]
    priors = [Prior.FLAT, Prior.RIDGE, Prior.RIDGE, Prior.RIDGE]
    terms = [
        SolverTerm(block, own, x if block == 3 else PLAIN, 1 + int(own.max()), prior)
        for block, (own, prior) in enumerate(zip(codes, priors, strict=True))
    ]
    designs = [np.eye(term.size)[term.codes] * (term.x[:, None] if len(term.x) else 1.0) for term in terms]
    offset = 0.3 * rng.normal(size=(n, K))
    score = offset + sum(design @ rng.normal(0.0, spread, (design.shape[1], K)) for design in designs)
    y = np.argmax(score + rng.gumbel(size=score.shape), axis=1).astype(float)
    y[:3] = K - 1.0  # a class that is rare, so that a half may lack it
    weight = rng.uniform(0.5, 2.0, n) if weighting == "weights" else PLAIN if copies is None else copies.astype(float)
    solver = BlockDescent(terms, y, weight, offset, LOSSES["multinomial"], copies=copies)
    solver.precision, free = np.array([0.0, 20.0, 20.0, 20.0]), [1, 3]  # the second is given
    shuffled = ShuffledRows(np.arange(n), np.arange(n, dtype=np.uint64), copies)
    column = rng.integers(0, 2, n).astype(np.int8)
    rows = terms, y, weight, offset, copies
    factor = MulticlassHalves(solver, rows, shuffled, column).factor(free, 1e-9)

    share, number = weight if len(weight) else np.ones(n), np.ones(n) if copies is None else copies
    losses, wanted = [], 1.0
    for doublings in range(variances.MAX_DOUBLINGS + 1):
        precisions = [0.0, 20.0 / 2.0**doublings, 20.0, 20.0 / 2.0**doublings]
        lost = np.zeros(n)
        for own in range(2):
            a, b = column == own, column != own
            theta = optimum_of_classes([one[a] for one in designs], precisions, y[a], share[a], offset[a])
            logs = log_softmax(offset[b] + np.column_stack(designs)[b] @ theta, axis=1)
            seen = np.isin(y[b], y[a])
            lost[b] = -share[b] * seen * logs[np.arange(b.sum()), y[b].astype(int)]
        losses.append(lost)
        if doublings:
            gain = losses[-2] - lost
            mean = gain.sum() / number.sum()
            error = np.sqrt((number * (gain / number - mean) ** 2).sum())
            if gain.sum() <= 2.0 * error:
                break
            wanted = 2.0**doublings
    assert factor == wanted
    assert (factor > 2.0) == (spread > 1.0)


@pytest.mark.parametrize("copies", [None, np.tile([1, 3, 2], 3)])
def test_a_gain_is_certain_beyond_its_standard_errors(copies):
    """Of nine gains about a mean, or of as many rows as there are copies, of which each has its part of the gain."""
    spread = np.resize([0.3, -0.1, -0.2], 9)
    number = np.ones(9, dtype=int) if copies is None else copies
    for mean in (0.02, 0.1, 0.2, 1.0, -1.0):
        gains = number * (mean + spread)
        rows = np.repeat(mean + spread, number)
        error = np.sqrt(len(rows)) * rows.std()
        for errors in (0.5, 2.0, 4.0):
            assert variances._is_certain(gains, copies, errors) == (rows.sum() > errors * error)
    assert not variances._is_certain(np.zeros(9), copies, 2.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_rows_of_a_class_that_a_half_has_not_seen_count_nothing(weighted):
    """Nor where its rows there have no weight; the others as by an optimum of the other half's rows."""
    rng, n = np.random.default_rng(1), 240
    codes = rng.integers(0, 5, n).astype(np.int32)
    terms = [
        SolverTerm(0, np.zeros(n, dtype=np.int32), PLAIN, 1, Prior.FLAT),
        SolverTerm(1, codes, PLAIN, 5, Prior.RIDGE),
    ]
    y, column = rng.integers(0, K - 1, n).astype(float), rng.integers(0, 2, n).astype(np.int8)
    y[np.flatnonzero(column == 0)[:4]] = K - 1.0  # in the first half only
    weight = rng.uniform(0.5, 2.0, n) * np.where(y == 0.0, 0.4, 1.0) if weighted else PLAIN
    if weighted:  # or of weight 0 in the second; classes of small weights are seen
        place = np.flatnonzero(column == 1)[0]
        y[place], weight[place] = K - 1.0, 0.0
    solver = BlockDescent(terms, y, weight, np.zeros((n, K)), LOSSES["multinomial"])
    solver.precision = np.array([0.0, 4.0])
    shuffled = ShuffledRows(np.arange(n), np.arange(n, dtype=np.uint64), None)
    losses = MulticlassHalves(solver, (terms, y, weight, np.zeros((n, K)), None), shuffled, column)._losses(1e-12)
    share, designs = weight if weighted else np.ones(n), [np.ones((n, 1)), np.eye(5)[codes]]
    for own in range(2):
        a, b = column == own, column != own
        theta = optimum_of_classes([one[a] for one in designs], [0.0, 4.0], y[a], share[a], np.zeros((a.sum(), K)))
        logs = log_softmax(np.column_stack(designs)[b] @ theta, axis=1)
        seen = np.isin(y[b], y[a & (share > 0.0)])
        wanted = -share[b] * seen * logs[np.arange(b.sum()), y[b].astype(int)]
        np.testing.assert_allclose(losses[b], wanted, rtol=2e-3, atol=1e-6)
        assert seen.all() == bool(own == 0)


@pytest.mark.parametrize("seed", range(3))
def test_classes_that_categories_determine_are_as_probable_as_by_cross_validation(seed):
    """By variances of REML alone the loss is 1.1 to 1.4 times that of a cross-validated ridge penalty, on new rows."""
    rng, n, k = np.random.default_rng(seed), 3000, 8
    a = rng.integers(0, 60, n)
    X = pd.DataFrame({"a": a.astype(str), "b": (a // 5).astype(str), "c": rng.integers(0, 6, n).astype(str)})
    y = np.argmax(rng.normal(size=(60, k))[a], axis=1)
    train, test = X.index < 1500, X.index >= 1500
    wide = WideClassifier(**ADDITIVE).fit(X[train], y[train])
    coder, penalties = OneHotEncoder(handle_unknown="ignore").fit(X[train]), {"C": np.logspace(-3, 3, 7)}
    peer = GridSearchCV(LogisticRegression(max_iter=3000), penalties, scoring="neg_log_loss", cv=3)
    peer.fit(coder.transform(X[train]), y[train])
    ours = log_loss(y[test], wide.predict_proba(X[test]), labels=wide.classes_)
    assert ours < log_loss(y[test], peer.predict_proba(coder.transform(X[test])), labels=wide.classes_)


@pytest.mark.parametrize("seed", range(3))
def test_weak_effects_of_classes_keep_the_variances_by_reml(seed, monkeypatch):
    rng, n = np.random.default_rng(seed), 2000
    X = pd.DataFrame({"a": rng.integers(0, 30, n).astype(str), "b": rng.integers(0, 6, n).astype(str)})
    score = 0.4 * rng.normal(size=(30, 3))[X["a"].astype(int)]
    y = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    found = WideClassifier(**ADDITIVE).fit(X, y).variances_["variance"]
    monkeypatch.setattr(MulticlassHalves, "factor", lambda halves, free, tol: 1.0)
    pd.testing.assert_series_equal(found, WideClassifier(**ADDITIVE).fit(X, y).variances_["variance"])


def test_a_given_penalty_of_classes_is_kept():
    """Beside one that held-out rows move."""
    rng, n = np.random.default_rng(0), 1500
    X = pd.DataFrame({"a": rng.integers(0, 30, n).astype(str), "b": rng.integers(0, 6, n).astype(str)})
    y = rng.permutation(30)[X["a"].astype(int)] % 7
    given = WideClassifier(**ADDITIVE, alpha={"b": 0.1}).fit(X, y).variances_["variance"]
    assert given["b"] == pytest.approx(1.0 / (0.1 * n))
    assert given["a"] > 20.0
