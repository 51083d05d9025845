"""Newton's method for several classes: linear predictors, gradients and deviations of coefficients."""

import numpy as np
import pandas as pd
import pytest
from numba.core.errors import TypingError
from scipy.special import softmax

from tabsym import WideClassifier, WideRegressor
from tabsym.losses.loss import LOSSES
from tabsym.solvers.newton import posteriors_classes, variances
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.kernels_rows import move_and_sum_classes
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.solvers.newton.variances import VarianceComponents
from tests.formulas import TAKES_UP, TERMS
from tests.options import ADDITIVE
from tests.oracles.variances import (
    matrices_of_classes,
    probabilities_of_classes,
    slopes_of_classes,
    walk_beside_missing,
)
from tests.solver import by_softmax, inner

N, K = 60, 4


def problem(seed, *, weighted, missing):
    """Pieces that few rows, all rows, and rows times a number have; scores to begin with; targets and weights."""
    rng = np.random.default_rng(seed)
    sizes, numbers = (1, 3, 7, 2), (False, False, False, True)
    terms = []
    for block, (size, has_number) in enumerate(zip(sizes, numbers, strict=True)):
        codes = rng.integers(-1 if missing and block else 0, size, N).astype(np.int32)
        x = rng.normal(size=N) if has_number else np.empty(0)
        terms.append(SolverTerm(block, codes, x, size, Prior.RIDGE if block else Prior.FLAT))
    y = rng.integers(0, K, N).astype(float)
    weight = rng.uniform(0.2, 3.0, N) if weighted else np.empty(0)
    return terms, y, weight, rng.normal(size=(N, K)), rng


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_rows_of_classes_stand_where_their_entries_put_them(seed, weighted, missing):
    """In any order of moving and collecting, several moves in a row and none among them."""
    terms, y, weight, start, rng = problem(seed, weighted=weighted, missing=missing)
    rows = BlockDescent(terms, y, weight, start, LOSSES["multinomial"]).rows
    theta = [np.zeros((term.size, K)) for term in terms]
    for _ in range(12):
        for _ in range(rng.integers(0, 3)):
            place = rng.integers(len(terms))
            steps = rng.normal(size=theta[place].shape)
            theta[place] += steps
            rows.move(terms[place], steps)
        p = probabilities_of_classes(terms, theta, start)
        term = terms[rng.integers(len(terms))]
        gradient, bound = rows.collect(term)
        want, want_bound, alone = slopes_of_classes(term, p, y, weight)
        np.testing.assert_allclose(gradient, want, atol=1e-12)
        np.testing.assert_allclose(bound, want_bound, atol=1e-8)
        if rng.random() < 0.5:
            np.testing.assert_allclose(rows.hessian_diagonal(term), alone, atol=1e-7)
            np.testing.assert_allclose(rows.probabilities, p, rtol=1e-12)


@pytest.mark.parametrize("most", [posteriors_classes.MAX_NUMBERS, 0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_matrices_of_classes_are_those_of_their_rows(monkeypatch, most, weighted, missing):
    """Kept between blocks or made for each, after every move."""
    monkeypatch.setattr(posteriors_classes, "MAX_NUMBERS", most)
    terms, y, weight, start, rng = problem(9, weighted=weighted, missing=missing)
    solver = BlockDescent(terms, y, weight, start, LOSSES["multinomial"])
    posteriors = posteriors_classes.MulticlassPosteriors(solver)
    for _ in range(2):
        solver.put([rng.normal(size=theta.shape) for theta in solver.theta])
        p = probabilities_of_classes(terms, solver.theta, start)
        for term in terms:
            for factor in (np.empty(0), rng.normal(size=N)):
                found = posteriors._triangles(term.codes, factor, term.size)
                want = matrices_of_classes(term, factor, p, weight)
                np.testing.assert_allclose(found, want[:, *np.tril_indices(K)], atol=1e-12)


def test_what_is_weighed_is_what_the_whole_posterior_says():
    """The shortcut of every look beside the posterior with its variances, for blocks, walks, slopes and gaps."""
    terms, y, weight, start, _ = problem(3, weighted=True, missing=True)
    walk = SolverTerm(4, np.arange(N, dtype=np.int32) % 6, np.empty(0), 6, Prior.WALK, n_unordered=1)
    solver = BlockDescent([*terms, walk], y, weight, start, LOSSES["multinomial"])
    solver.precision = np.array([0.0, 0.5, 2.0, 1.0, 3.0])
    solver.iterate(1e-8, 200)
    posteriors = posteriors_classes.MulticlassPosteriors(solver)
    for place in range(1, 5):
        edf, length = posteriors.evaluate([place])[0]
        assert edf == pytest.approx(posteriors.of(place).edf, rel=1e-12)
        assert length == pytest.approx(solver.terms[place].length(solver.theta[place]), rel=1e-12)


@pytest.mark.parametrize("most", [posteriors_classes.MAX_NUMBERS, 0])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_slopes_and_symbols_are_as_uncertain_as_dense_algebra_says(monkeypatch, most, n_classes):
    """A number that symbols nearly tell, by itself far more certain; with all entries at once, and one by one."""
    monkeypatch.setattr(posteriors_classes, "MAX_NUMBERS", most)
    rng = np.random.default_rng(n_classes)
    n, q, alpha = 400, 8, 0.02
    codes = rng.integers(0, q, n)
    u = rng.normal(size=q)[codes] + 0.3 * rng.normal(size=n)
    y = rng.integers(0, n_classes, n)
    model = by_softmax(inner(WideClassifier(**ADDITIVE, tol=3e-7, alpha=alpha), standardize=False))
    X = pd.DataFrame({"g": codes.astype(str), "u": u})
    p = model.fit(X, y).predict_proba(X)
    design = np.column_stack([codes == code for code in range(q)] + [u, np.ones(n)]).astype(float)
    size = design.shape[1]
    hessian = np.zeros((size * n_classes, size * n_classes))
    for row, chances in zip(design, p, strict=True):
        hessian += np.kron(np.outer(row, row), np.diag(chances) - np.outer(chances, chances))
    hessian += np.kron(np.diag([n * alpha] * q + [0.0, 0.0]), np.eye(n_classes))
    covariance = np.linalg.pinv(hessian, rcond=1e-10, hermitian=True)  # flat ones beside the mean of their classes
    beside = np.eye(size)
    beside[:q, :q] -= 1.0 / q  # about their mean
    beside = np.kron(beside, np.eye(n_classes) - 1.0 / n_classes)  # what is common to all classes is no row's
    want = np.sqrt(np.diag(beside @ covariance @ beside)).reshape(size, n_classes)
    for names, rows in (([str(code) for code in range(q)], range(q)), (["u"], [q]), (["(intercept)"], [q + 1])):
        block = "g" if len(names) > 1 else names[0]
        found = model.coefs_[block].loc[names, [f"sd {k}" for k in range(n_classes)]]
        np.testing.assert_allclose(found, want[list(rows)], rtol=1e-4)


@pytest.mark.parametrize("block", ["g[a]", "g[a] + h[b]", "g[a,b]", "g[a]*u"])
@pytest.mark.parametrize("alpha", [0.01, "auto"])
def test_formulas_without_an_intercept(block, alpha):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.choice(list("abcd"), 300), "b": rng.choice(list("xyz"), 300), "u": rng.normal(size=300)})
    y = rng.integers(0, 3, 300)
    model = WideClassifier(formula=f"y ~ {block}", alpha=alpha, count_effect=False).fit(X, y)
    frame = model.coefs_["g"]
    if alpha == "auto" and model.variances_.loc["g", "variance"] == 0.0:  # dropped: its deviations are not known
        assert frame.filter(like="sd").isna().all(axis=None)
        frame = frame.drop(columns=frame.filter(like="sd").columns)
    assert np.isfinite(frame.to_numpy(dtype=float)).all()


def dense_step(term, gradient, curvature, theta, precision, ridge):
    """One Newton step (q, K) with the curvature diag(s) - ss' / n of each entry, and the penalty, in one matrix."""
    q, k = theta.shape
    matrix, grad = np.zeros((q * k, q * k)), np.zeros((q, q))
    for e in range(q):
        n = curvature[e].sum()
        own = slice(e * k, (e + 1) * k)
        matrix[own, own] = np.diag(curvature[e]) - np.outer(curvature[e], curvature[e]) / n
    if term.prior is Prior.RIDGE:
        grad = precision * np.eye(q)
    else:
        level = np.diag(np.where(np.arange(q) < term.n_unordered, 0.0, ridge))
        grad = precision * walk_beside_missing(q, term.n_unordered) + level
    right = -gradient - grad @ theta
    step = np.linalg.lstsq(matrix + np.kron(grad, np.eye(k)), right.ravel(), rcond=1e-12)[0].reshape(q, k)
    return step, right


@pytest.mark.parametrize("prior", [Prior.RIDGE, Prior.WALK])
@pytest.mark.parametrize("apart", [0, 1, 2])
@pytest.mark.parametrize("precision", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_steps_of_classes_solve_their_matrix(prior, apart, precision, k):
    rng = np.random.default_rng(k)
    q = 9
    curvature = rng.gamma(0.3, 20.0, size=(q, k)) + 1e-3
    gradient = curvature - rng.multinomial(1, np.ones(k) / k, size=q) * curvature.sum(axis=1, keepdims=True)
    theta = rng.normal(size=(q, k))
    theta -= theta.mean(axis=1, keepdims=True)
    term = SolverTerm(0, np.zeros(1, np.int32), np.empty(0), q, prior, apart if prior is Prior.WALK else 0)
    want, right = dense_step(term, gradient, curvature, theta, precision, 1e-8)
    moved = theta.copy()
    found, decrease = term.step_of_classes(gradient, curvature, moved, precision, np.inf)
    np.testing.assert_allclose(moved, theta + found)
    found, want = found - found.mean(axis=1, keepdims=True), want - want.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())
    assert decrease == pytest.approx(0.5 * np.vdot(right, want), rel=1e-3)
    short, _ = term.step_of_classes(gradient, curvature, theta.copy(), precision, 0.1)
    assert np.abs(short).max() <= 0.1


@pytest.mark.parametrize("scale", [2.0, 5.0])
@pytest.mark.parametrize("alpha", [1e-3, 1e-4])
def test_two_classes_as_many_are_the_logistic_model(alpha, scale):
    """By default settings, in about as many sweeps: where rows are nearly certain these were ten times as many."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.integers(0, 15, 1000).astype(str) for name in "abc"})
    score = sum(scale * rng.normal(size=15)[X[name].astype(int)] for name in X)
    y = (score + rng.logistic(size=1000) > 0).astype(int)
    best = WideClassifier(**ADDITIVE, tol=3e-7, max_iter=2000, alpha=alpha / 2).fit(X, y)
    found = by_softmax(WideClassifier(**ADDITIVE, alpha=alpha)).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X), best.predict_proba(X), atol=0.012)
    assert found.n_iter_ < 120


def a_sum_of_classes(seed):
    """Some terms of sums, a table with classes that follow them, weights, offsets, and a penalty."""
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.choice(list(TERMS)[:-1], rng.integers(1, 5), replace=False)]
    names += ["b[1]"] * (rng.random() < 0.7)
    if not any(TERMS[name][1] for name in names):
        names.append("a[s]")
    n, k = int(rng.integers(200, 600)), int(rng.integers(3, 5))
    X = pd.DataFrame({"s": rng.choice(list("abcdef"), n), "t": rng.choice(list("pqrs"), n)})
    X["x"], X["z"] = rng.normal(rng.choice([0.0, 2.0]), 1.0, n), rng.uniform(0.5, 1.5, n)
    score = np.zeros((n, k))
    for _, categories, by in (TERMS[name] for name in names):
        codes = X.groupby(list(categories)).ngroup() if categories else 0
        score += rng.normal(0.0, 0.5, (24, k))[codes] * np.broadcast_to(by(X), n)[:, None]
    y = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    weight = rng.uniform(0.5, 2.0, n) if rng.random() < 0.5 else np.ones(n)
    offset = 0.3 * rng.normal(size=(n, k)) if rng.random() < 0.5 else np.zeros((n, k))
    return names, X, y, weight / weight.mean(), offset, "auto" if rng.random() < 0.6 else 0.05


@pytest.mark.parametrize("seed", range(20))
def test_any_sum_of_classes_is_at_its_optimum_and_as_uncertain_as_dense_algebra_says(seed, monkeypatch):
    """Gradients, deviations, effective numbers, and variances by evidence that their updates leave where they are.

    Without the common factor that held-out rows find afterwards (`test_newton_heldout`).
    """
    monkeypatch.setattr(variances.MulticlassHalves, "factor", lambda halves, free, tol: 1.0)
    names, X, y, weight, offset, alpha = a_sum_of_classes(seed)
    model = WideClassifier(" + ".join(names), tol=1e-7, max_iter=5000, alpha=alpha, count_effect=False)
    inner(model, standardize=False)
    p = model.fit(X, y, sample_weight=weight, offset=offset).predict_proba(X, offset=offset)
    k, design_effect = p.shape[1], np.square(weight).mean()  # Kish's: weights are no repeated rows
    hessians = weight[:, None, None] * (np.einsum("ij,jk->ijk", p, np.eye(k)) - p[:, :, None] * p[:, None, :])
    slopes = weight[:, None] * (p - np.eye(k)[y])
    values, deviations = [str(c) for c in range(k)], [f"sd {c}" for c in range(k)]

    def covariance(Z, held, F):
        both = np.column_stack([Z, F])
        whole = np.einsum("ia,ikl,ib->akbl", both, hessians, both).reshape(2 * (both.shape[1] * k,))
        whole[: Z.shape[1] * k, : Z.shape[1] * k] += held * np.eye(Z.shape[1] * k)
        return np.linalg.pinv(whole, hermitian=True, rcond=1e-11)  # all classes may move together

    flat = {TERMS[name][0]: np.broadcast_to(TERMS[name][2](X), len(X)) for name in names if TERMS[name][1] is None}
    F = np.column_stack([np.empty((len(X), 0)), *flat.values()])
    together = {}
    for block, categories, by in (TERMS[name] for name in names):
        variance = model.variances_.loc[block, "variance"] if alpha == "auto" and categories else 1 / (0.05 * len(X))
        if categories is None or variance == 0:
            continue
        frame, held = model.coefs_[block], (design_effect if alpha == "auto" else 1.0) / variance
        own = X[categories] if isinstance(categories, str) else pd.Series([*zip(*(X[one] for one in categories))])
        Z = np.column_stack([[value == key for value in own] for key in frame.index])
        Z = Z * np.broadcast_to(by(X), len(X))[:, None]
        theta, size = frame[values].to_numpy(), Z.shape[1] * k
        np.testing.assert_allclose(Z.T @ slopes + held * theta, 0.0, atol=1e-4)
        whole = covariance(Z, held, F)
        together[block] = Z, held
        if alpha == "auto":
            edf = size - held * np.trace(whole[:size, :size])
            assert model.variances_.loc[block, "edf"] == pytest.approx(edf, rel=5e-3, abs=5e-3)
            assert np.square(theta).sum() / edf == pytest.approx(variance, rel=0.02)
    columns = {**{block: Z for block, (Z, _) in together.items()}, **{block: F[:, [j]] for j, block in enumerate(flat)}}
    both = np.column_stack([*columns.values()])
    whole = np.einsum("ia,ikl,ib->akbl", both, hessians, both).reshape(2 * (both.shape[1] * k,))
    held = np.concatenate([np.full(Z.shape[1], own) for Z, own in together.values()] + [np.zeros(len(flat))])
    whole = np.linalg.pinv(whole + np.kron(np.diag(held), np.eye(k)), hermitian=True, rcond=1e-11)
    shown, starts = np.eye(both.shape[1]), np.cumsum([0, *(Z.shape[1] for Z in columns.values())])
    for start, (block, Z) in zip(starts, columns.items(), strict=False):
        if TAKES_UP.get(block) in flat:
            own = slice(start, start + Z.shape[1])
            shown[own, own] -= 1.0 / Z.shape[1]
    shown = np.kron(shown, np.eye(k) - 1.0 / k)
    want = np.sqrt(np.diag(shown @ whole @ shown.T)).reshape(-1, k)
    for start, (block, Z) in zip(starts, columns.items(), strict=False):
        frame = model.coefs_[block][deviations]
        np.testing.assert_allclose(frame, want[start : start + Z.shape[1]], rtol=5e-3)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_a_model_whose_only_term_is_out_says_so(n_classes):
    """A formula of one term, without an intercept, beside a target of noise."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": np.repeat(list("abcd"), 60)})
    noise = np.concatenate([rng.permutation(np.arange(60) % max(n_classes, 2)) for _ in range(4)])
    if n_classes == 1:
        model = WideRegressor("g[a]", loss="squared_error", count_effect=False).fit(X, noise - noise.mean())
    else:
        model = WideClassifier("g[a]", count_effect=False).fit(X, noise)
    assert model.variances_.loc["g", "variance"] < 1e-4
    values = model.coefs_["g"].drop(columns=["rows"]).filter(regex="^(?!sd)")
    assert (values.abs() < 1e-9).all(axis=None)


def test_an_intercept_is_as_uncertain_as_the_block_that_leaves_it_the_least_certain():
    """Of two blocks beside it: the wider of what it is beside each alone."""
    terms, y, weight, start, _ = problem(4, weighted=True, missing=True)
    terms = [term for term in terms if not len(term.x)]
    solver = BlockDescent(terms, y, weight, start, LOSSES["multinomial"])
    solver.precision = np.array([0.0, 0.3, 2.0])
    solver.iterate(1e-8, 200)

    def trace(*dropped):
        solver.dropped[:] = [False, *(place in dropped for place in (1, 2))]
        solver.n_moves += 1
        return float(np.trace(posteriors_classes.MulticlassPosteriors(solver).of_flat()[0]))

    both, first, second, none = trace(), trace(2), trace(1), trace(1, 2)
    assert both == pytest.approx(max(first, second), rel=1e-9)
    assert min(first, second) > none
    assert first != pytest.approx(second, rel=1e-3)


@pytest.mark.parametrize("n_classes", [*range(2, 10), 33])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_turn_of_the_rows_is_a_softmax_of_moved_scores(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    scores, steps = rng.normal(size=(50, n_classes)), rng.normal(size=(1 + 6, n_classes))
    steps[0] = 0.0  # of rows without a coefficient
    before, after = rng.integers(-1, 6, (2, 50)).astype(np.int32)
    weight = rng.uniform(0.5, 2.0, 50) if weighted else np.empty(0)
    expected = softmax(scores + steps[before + 1], axis=1)
    shares = weight[:, None] if weighted else 1.0
    values, sums = softmax(scores, axis=1), np.full((1 + 4, n_classes), np.nan)
    after %= 4
    after[:5] = -1
    move_and_sum_classes(n_classes)(before, np.exp(steps), after, weight, values, sums)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    by_code = [(expected * shares)[after == code].sum(axis=0) for code in range(-1, 4)]
    np.testing.assert_allclose(sums, by_code, rtol=1e-12)


def test_rows_with_gaps_are_refused_by_the_kernel_of_vectors():
    codes, ones, sums = np.zeros(4, dtype=np.int32), np.ones((2, 3)), np.empty((2, 3))
    with pytest.raises(TypingError):
        move_and_sum_classes(3)(codes, ones, codes, np.empty(0), np.ones((4, 6))[:, ::2], sums)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_tolerance_grows_with_the_square_of_what_is_explained(weighted):
    """The constant model's loss over that expected of new rows: the model's, and degrees of freedom as in AIC."""
    terms, y, weight, start, _ = problem(5, weighted=weighted, missing=False)
    solver = BlockDescent(terms, y, weight, start, LOSSES["multinomial"])
    found, share = VarianceComponents(solver), weight if weighted else np.ones(N)

    def loss():
        own = probabilities_of_classes(terms, solver.theta, start)[np.arange(N), y.astype(int)]
        return -(share @ np.log(own)) / share.sum()

    found.start()
    constant = loss()
    for _ in range(20):
        solver.update_blocks()
    found.edf[:] = [3.0, 0.5, 0.0, 0.25]
    wanted = (constant / (loss() + 3.75 / share.sum())) ** 2
    assert wanted > 1.2
    assert found.tolerance_factor() == pytest.approx(wanted, rel=1e-9)
    found.edf[:] = N  # more than is explained
    assert found.tolerance_factor() == 1.0


def test_the_tolerance_of_two_classes_is_as_given():
    terms, y, weight, _, _ = problem(5, weighted=False, missing=False)
    solver = BlockDescent(terms, (y > 1).astype(float), weight, np.zeros((N, 1)), LOSSES["logistic"])
    found = VarianceComponents(solver)
    found.start()
    solver.update_blocks()
    assert found.tolerance_factor() == 1.0


def test_several_classes_are_found_in_fewer_iterations_where_they_are_separated(monkeypatch):
    X = pd.DataFrame({name: np.random.default_rng(at).normal(size=400) for at, name in enumerate("abcdef")})
    y = np.digitize(X["a"] + 0.02 * X["b"], [-0.5, 0.5])
    fewer = WideClassifier(random_state=0).fit(X, y).n_iter_
    monkeypatch.setattr(variances, "SEPARATED", 0.0)
    assert fewer < WideClassifier(random_state=0).fit(X, y).n_iter_
