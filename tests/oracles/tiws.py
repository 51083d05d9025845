"""Values for unseen categories, slow and obvious: written from the method alone, apart from the package.

A table is a list of dicts, column -> symbol, all of them words already; None is missing, a category of its own. `y` is
(n,), or (n, K) one-hot for K classes; what is per category is then (l,) or (l, K). Rows of weight 0 are absent.

Where the text leaves something open (see the comments):
weights are counts, N is their sum, and without degrees of freedom (N <= l) s2 is 0; of several classes s2 and tau2 are
means over the classes, tau2's floor coming last, and C is chosen on the sum of the classes' criteria; a document
without a known word gets the mu of the variance components, not of the regression; a kernel without a scale is tried
with f = 0 only; sizes below 1e-12 count as 0 and values within 1e-9 of the smallest as ties; the median seen distance
is one of squared distances; leaving a category out keeps base, kernels, hyper-parameters, theta, tau2, s2 and mu.
"""

import math
from types import SimpleNamespace

import numpy as np

KERNELS = ("linear", 0.1, 0.3, 1.0, 3.0)
"""Linear, then the length scales of the RBF kernels."""
FRACTIONS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.995)
SCALES = (0.3, 1.0, 3.0)
DECAYS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
MIN_TO_TUNE = 4
SMALLEST_TAU2 = 1e-8
NOTHING = 1e-12
TIE = 1e-9


def first_smallest(values):
    """Where the first value stands that is the smallest but for rounding."""
    smallest = min(values)
    return next(i for i, value in enumerate(values) if value <= smallest + TIE * (1 + abs(smallest)))


# ---------------------------------------------------------------- sections 1 and 2: words and documents
def in_order(categories):
    """The distinct symbols sorted as strings, None last."""
    return sorted(set(categories), key=lambda category: (category is None, str(category)))


def _count(rows, weight, categories, words, column):
    """f(c, w): weight of the rows of category c that contain word w."""
    f = np.zeros((len(categories), len(words)))
    for row, one in zip(rows, weight):
        for i, (feature, category) in enumerate(words):
            if row[feature] == category:
                f[categories.index(row[column]), i] += one
    return f


def present(rows, weight):
    return [i for i in range(len(rows)) if weight[i] > 0]


def documents(rows, weight, column):
    """(categories, words, f) of the rows of fit: words are (feature, symbol), feature by feature."""
    kept = [rows[i] for i in present(rows, weight)]
    categories = in_order(row[column] for row in kept)
    words = [(j, s) for j in rows[0] if j != column for s in in_order(row[j] for row in kept)]
    return categories, words, _count(kept, [w for w in weight if w > 0], categories, words, column)


def document_of(new_rows, words, column):
    """(categories, f) of rows met later, each of weight 1: words unknown to fit have no column."""
    categories = in_order(row[column] for row in new_rows)
    return categories, _count(new_rows, np.ones(len(new_rows)), categories, words, column)


def unseen_documents(new_rows, categories, words, column):
    """(unseen, f): the documents of the categories that fit has not seen."""
    return document_of([row for row in new_rows if row[column] not in categories], words, column)


# ---------------------------------------------------------------- section 3: the target
def category_means(y, weight, values, categories):
    """(n, ybar): weight and weighted mean of the target, per category."""
    n, ybar = [], []
    for category in categories:
        w = np.array([one if value == category else 0.0 for value, one in zip(values, weight)])
        n.append(w.sum())
        ybar.append(w @ y / w.sum())
    return np.array(n), np.array(ybar)


def smoothed(y, weight, values, categories, a=1.0, prior=None):
    """theta_k = (sum y + a p) / (n_k + a); p is the training mean unless given."""
    y, weight = np.asarray(y, dtype=float), np.asarray(weight, dtype=float)
    if prior is None:
        prior = weight @ y / weight.sum()
    n, ybar = category_means(y, weight, values, categories)
    return np.array([(n[k] * ybar[k] + a * prior) / (n[k] + a) for k in range(len(n))])


# ---------------------------------------------------------------- section 4: method "poster"
def standardised(line):
    """(x - mean) / sd with ddof = 1; zeros where that is zero or undefined."""
    if len(line) < 2 or line.max() - line.min() <= NOTHING * np.abs(line).max():
        return np.zeros(len(line))
    return (line - line.mean()) / line.std(ddof=1)


def word_scores(D):
    """(T, I): every row standardised over the words, every word over the rows (steps 1 to 3)."""
    T = np.zeros(D.shape)
    idf = np.zeros(D.shape)
    for r in range(D.shape[0]):
        T[r] = standardised(D[r])
    for w in range(D.shape[1]):
        idf[:, w] = standardised(D[:, w])
    return T, idf


def similarity(a, b):
    """s = 1/2 + 1/2 cos(a, b) within [0, 1]; the cosine of a null vector is 0 (step 4)."""
    size = np.linalg.norm(a) * np.linalg.norm(b)
    cosine = a @ b / size if size > NOTHING else 0.0
    return min(max(0.5 + 0.5 * cosine, 0.0), 1.0)


def similarities(f, new, idf_rows="all"):
    """s(u, k), (m, l): unseen documents are stacked under the seen ones, all of them or each alone."""
    assert idf_rows in ("all", "known+self")
    s = np.zeros((len(new), len(f)))
    for u in range(len(new)):
        below, at = (new, u) if idf_rows == "all" else (new[u : u + 1], 0)
        T, idf = word_scores(np.vstack([f, below]))
        H = T * idf
        for k in range(len(f)):
            s[u, k] = similarity(H[len(f) + at], H[k])
    return s


def poster(rows, y, weight, column, new_rows, a=1.0, idf_rows="all"):
    """TIWS as printed: `unseen` categories of the call, their `estimate` and s(u, k); theta_k of the seen."""
    y, weight = np.asarray(y, dtype=float), np.asarray(weight, dtype=float)
    categories, words, f = documents(rows, weight, column)
    unseen, new = unseen_documents(new_rows, categories, words, column)
    theta = smoothed(y, weight, [row[column] for row in rows], categories, a)
    s = similarities(f, new, idf_rows)
    estimate = np.zeros((len(unseen), *theta.shape[1:]))
    for u in range(len(unseen)):
        if not words:  # section 9: no other feature gives the prior, here the training mean
            estimate[u] = weight @ y / weight.sum()
        elif not new[u].any() or s[u].sum() <= NOTHING:  # steps 6 and 5
            estimate[u] = theta.mean(axis=0)
        else:
            estimate[u] = s[u] @ theta / s[u].sum()
    return SimpleNamespace(categories=categories, unseen=unseen, theta=theta, estimate=estimate, s=s)


# ---------------------------------------------------------------- section 5: profiles
def base(f, words):
    """base(w): share of w in its block, over the seen rows, half a row added to every word."""
    raw = f.sum(axis=0) + 0.5
    return np.array([raw[i] / sum(raw[o] for o in block(words, j)) for i, (j, _) in enumerate(words)])


def block(words, feature):
    return [i for i, (j, _) in enumerate(words) if j == feature]


def profiles(f, words, start, kappa=1.0):
    """P(r, w): shares within each block, kappa rows of `start` (the seen documents' base) added."""
    P = np.zeros(f.shape)
    for r in range(f.shape[0]):
        for i, (j, _) in enumerate(words):
            size = sum(f[r, o] for o in block(words, j))
            P[r, i] = (f[r, i] + kappa * start[i]) / (size + kappa)
    return P


def coordinates(f, words, start, kappa=1.0):
    """h(r, w) = sqrt P - sqrt base; the empty document is the origin."""
    return np.sqrt(profiles(f, words, start, kappa)) - np.sqrt(start)


def squared_distances(h, other):
    return np.array([[((a - b) ** 2).sum() for b in other] for a in h]).reshape(len(h), len(other))


def median_distance(d2):
    """Median over the pairs of different seen documents; 0 without a pair."""
    pairs = [d2[a, b] for a in range(len(d2)) for b in range(a)]
    return float(np.median(pairs)) if pairs else 0.0


# ---------------------------------------------------------------- section 5: variance components
def within_variance(y, weight, values, categories):
    """s2: pooled variance within categories, N - l degrees of freedom; of classes their mean."""
    y, weight = np.asarray(y, dtype=float), np.asarray(weight, dtype=float)
    n, ybar = category_means(y, weight, values, categories)
    total = np.zeros(y.shape[1:])
    for i in range(len(y)):
        if weight[i] > 0:
            total = total + weight[i] * (y[i] - ybar[categories.index(values[i])]) ** 2
    free = n.sum() - len(n)
    return float(np.mean(total / free)) if free > NOTHING else 0.0


def variance_components(ybar, n, s2):
    """(tau2, mu): between categories by moments, and their weighted mean.

    Of several classes tau2 is the mean over the classes, as s2 is, and floored after that; mu is one per class.
    """
    ybar, n = np.asarray(ybar, dtype=float), np.asarray(n, dtype=float)
    N, n_seen = n.sum(), len(n)
    between = np.mean(n @ (ybar - n @ ybar / N) ** 2)  # SSB
    spread = N - (n**2).sum() / N
    tau2 = max((between - (n_seen - 1) * s2) / spread, SMALLEST_TAU2) if n_seen > 1 else SMALLEST_TAU2
    trust = 1 / (tau2 + s2 / n)
    return float(tau2), trust @ ybar / trust.sum()


# ---------------------------------------------------------------- section 5: document regression
def kernel_between(kernel, h, other, seen):
    """K between two sets of documents, in the seen documents' scale; None where that is 0."""
    scale = np.mean([a @ a for a in seen]) if kernel == "linear" else median_distance(squared_distances(seen, seen))
    if scale <= NOTHING:
        return None
    return h @ other.T / scale if kernel == "linear" else np.exp(-squared_distances(h, other) / (2 * kernel * scale))


def covariance(K, n, s2, tau2, f, t):
    """C of the categories' means; without a kernel f must be 0."""
    common = f * K if K is not None else 0.0
    return t * tau2 * (common + (1 - f) * np.eye(len(n))) + np.diag(s2 / n)


def general_mean(C, ybar):
    """mu = 1'C^-1 ybar / 1'C^-1 1."""
    trust = np.linalg.solve(C, np.ones(len(C)))
    return trust @ ybar / trust.sum()


def restricted_criterion(C, ybar):
    """1/2 r'C^-1 r + 1/2 log|C| + 1/2 log(1'C^-1 1), summed over the classes."""
    total = 0.0
    for one in np.reshape(ybar, (len(C), -1)).T:
        r = one - general_mean(C, one)
        total += 0.5 * r @ np.linalg.solve(C, r)
        total += 0.5 * np.linalg.slogdet(C)[1] + 0.5 * math.log(np.linalg.solve(C, np.ones(len(C))).sum())
    return total


def choose_covariance(h, ybar, n, s2, tau2):
    """(kernel, f, t, criterion) of the whole grid: kernels outermost, t innermost."""
    grid, values = [], []
    for kernel in KERNELS:
        K = kernel_between(kernel, h, h, h)
        for f in FRACTIONS if K is not None else (0.0,):
            for t in SCALES:
                grid.append((kernel, f, t))
                values.append(restricted_criterion(covariance(K, n, s2, tau2, f, t), ybar))
    at = first_smallest(values)
    return (*grid[at], values[at])


def within_range(values, theta):
    """Clipped to [min, max] of the shrunken means; classes: each to its own, then at 0, and divided by the sum."""
    values = np.minimum(np.maximum(values, theta.min(axis=0)), theta.max(axis=0))
    if theta.ndim == 1:
        return values
    values = np.maximum(values, 0.0)
    return values / values.sum(axis=1, keepdims=True)


def document_regression(h, new, ybar, n, s2, tau2, theta, prior, known=None):
    """Best linear unbiased prediction; an unseen document without a `known` word gets the `prior`, variance tau2.

    `estimate` and `variance` (v_u, mu taken as known) of the unseen; of the seen, not clipped:
    `loo` and `vlat` in closed form as printed, ybar_k - alpha_k / (C^-1)_kk and 1 / (C^-1)_kk - s2 / n_k,
    `loo_out` by leaving k out with the mu of all, `loo_out_mu` by leaving k out of mu too;
    `loo_mu` and `vlat_mu` are the closed forms of the latter, P_kk instead of (C^-1)_kk, nan for one category.
    """
    n_seen, m = len(n), len(new)
    known = np.ones(m, dtype=bool) if known is None else known
    kernel, f, t, criterion = choose_covariance(h, ybar, n, s2, tau2)
    K = kernel_between(kernel, h, h, h)
    C = covariance(K, n, s2, tau2, f, t)
    inverse = np.linalg.inv(C)
    mu = general_mean(C, ybar)
    alpha = inverse @ (ybar - mu)

    estimate, variance = np.zeros((m, *ybar.shape[1:])), np.zeros(m)
    for u in range(m):
        if not known[u]:  # section 9
            estimate[u], variance[u] = prior, tau2
            continue
        this = new[u : u + 1]
        own = kernel_between(kernel, this, this, h)[0, 0] if f > 0 else 0.0
        c = t * tau2 * f * kernel_between(kernel, this, h, h)[0] if f > 0 else np.zeros(n_seen)
        estimate[u] = mu + c @ alpha
        variance[u] = t * tau2 * (f * own + 1 - f) - c @ inverse @ c

    one = np.ones(n_seen)
    P = inverse - np.outer(inverse @ one, one @ inverse) / (one @ inverse @ one)
    out = SimpleNamespace(kernel=kernel, f=f, t=t, criterion=criterion, C=C, mu=mu, variance=variance)
    out.estimate = within_range(estimate, theta)
    out.loo = np.array([ybar[k] - alpha[k] / inverse[k, k] for k in range(n_seen)])
    out.vlat = np.array([max(1 / inverse[k, k] - s2 / n[k], 0.0) for k in range(n_seen)])
    out.loo_out = np.array([_left_out(C, ybar, k, mu) for k in range(n_seen)])
    out.loo_mu = np.array([ybar[k] - P[k] @ ybar / P[k, k] if n_seen > 1 else np.nan * ybar[k] for k in range(n_seen)])
    out.vlat_mu = np.array([max(1 / P[k, k] - s2 / n[k], 0.0) if n_seen > 1 else np.nan for k in range(n_seen)])
    out.loo_out_mu = np.array([_left_out(C, ybar, k, None) if n_seen > 1 else np.nan * ybar[k] for k in range(n_seen)])
    return out


def _left_out(C, ybar, k, mu):
    """The prediction of category k from the others, by their own mean unless `mu` is given."""
    rest = [o for o in range(len(C)) if o != k]
    small = C[np.ix_(rest, rest)]
    if mu is None:
        mu = general_mean(small, ybar[rest])
    return mu + C[k, rest] @ np.linalg.solve(small, ybar[rest] - mu) if rest else mu


# ---------------------------------------------------------------- section 5: donors and intervals
def weights_at(rho, distances, g):
    """rho exp(-g distance), divided by the sum."""
    power = [math.log(r) - g * d for r, d in zip(rho, distances)]
    raw = np.array([math.exp(p - max(power)) for p in power])
    return raw / raw.sum()


def donor_weights(d2, d2_new, ybar, theta, n, s2, tau2, mu):
    """`weights` (m, l) of the seen categories, `estimate` mu + lambda (sum w theta - mu), the chosen `g` and `lam`.

    Each decay is judged at its own best lambda; squared errors are summed over the classes.
    """
    n_seen = len(n)
    scale = median_distance(d2)
    near, near_new = (d2 / scale, d2_new / scale) if scale > NOTHING else (0.0 * d2, 0.0 * d2_new)
    rho = n / (n + s2 / tau2)
    g, lam = 0.0, 1.0
    if n_seen >= MIN_TO_TUNE:
        tried = [_left_out_error(decay, near, ybar, theta, rho, 1 / (tau2 + s2 / n), mu) for decay in DECAYS]
        at = first_smallest([error for error, _ in tried])
        g, lam = DECAYS[at], tried[at][1]
    weights = np.array([weights_at(rho, row, g) for row in near_new]).reshape(len(d2_new), n_seen)
    estimate = mu + lam * (weights @ theta - mu)
    if theta.ndim == 2:
        estimate = np.maximum(estimate, 0.0)
        estimate = estimate / estimate.sum(axis=1, keepdims=True)
    return SimpleNamespace(weights=weights, estimate=estimate, g=g, lam=lam)


def _left_out_error(g, near, ybar, theta, rho, trust, mu):
    """(error, lambda): each seen category from the others, lambda the least-squares one within [0, 1]."""
    moved = []
    for k in range(len(rho)):
        rest = [o for o in range(len(rho)) if o != k]
        moved.append(weights_at(rho[rest], near[k, rest], g) @ theta[rest] - mu)
    moved, wanted = np.reshape(moved, (len(rho), -1)), np.reshape(ybar - mu, (len(rho), -1))
    size = (trust @ moved**2).sum()
    lam = min(max((trust @ (moved * wanted)).sum() / size, 0.0), 1.0) if size > NOTHING else 0.0
    return (trust @ (wanted - lam * moved) ** 2).sum(), lam


def interval(estimate, variance, ybar, loo, vlat, n, s2, n_new, level=0.9):
    """(low, high) of the mean of `n_new` rows of each unseen category, conformal over categories.

    Classes have a quantile each; the ends are not clipped. n_new = inf is the category's own expectation.
    """
    wide = np.sqrt(vlat + s2 / n)
    rank = math.ceil(level * (len(n) + 1) - TIE)
    scores = np.sort(np.abs(ybar - loo) / wide.reshape(-1, *[1] * (ybar.ndim - 1)), axis=0)
    quantile = scores[min(max(rank, 1), len(n)) - 1]
    half = np.sqrt(variance + s2 / np.asarray(n_new, dtype=float))
    half = half.reshape(-1, *[1] * (ybar.ndim - 1)) * quantile
    return estimate - half, estimate + half


# ---------------------------------------------------------------- section 5, from end to end
def documents_method(rows, y, weight, column, new_rows, kappa=1.0):
    """Everything of method "documents": the seen categories' theta, the regression, the donors, and what they used."""
    y, weight = np.asarray(y, dtype=float), np.asarray(weight, dtype=float)
    values = [row[column] for row in rows]
    categories, words, f = documents(rows, weight, column)
    unseen, f_new = unseen_documents(new_rows, categories, words, column)
    n, ybar = category_means(y, weight, values, categories)
    s2 = within_variance(y, weight, values, categories)
    tau2, mu = variance_components(ybar, n, s2)
    theta = smoothed(y, weight, values, categories, s2 / tau2, mu)
    start = base(f, words)
    h, h_new = coordinates(f, words, start, kappa), coordinates(f_new, words, start, kappa)
    d2, d2_new = squared_distances(h, h), squared_distances(h_new, h)
    return SimpleNamespace(
        categories=categories, words=words, f=f, unseen=unseen, f_new=f_new, n=n, ybar=ybar, s2=s2, tau2=tau2, mu=mu,
        theta=theta, base=start, h=h, h_new=h_new, d2=d2, d2_new=d2_new,
        regression=document_regression(h, h_new, ybar, n, s2, tau2, theta, mu, f_new.any(axis=1)),
        donors=donor_weights(d2, d2_new, ybar, theta, n, s2, tau2, mu),
    )  # fmt: skip
