"""MODL, slow and obvious: written from the specification alone, before and apart from the package.

Where the text leaves something open, what reproduces the reference records was taken (see the comments):
the null model pays ln 2 only; V of a numeric column is 2**G even where the grid collapses; quantiles are real
numbers, and go to the nearest boundary, ties down in the lower half; rare modalities are those strictly below
ceil(N / 2**G), and count as one; [V > 7] looks at V; the garbage needs V >= 7 and two groups beside it (the ln 2 is
paid beyond 7 only). Khiops itself counts a catch-all of two members as two (4 records): its V has to be given to
reproduce those.
The universal code is summed exactly; Khiops (and the package) take an integral beyond 2,000 terms, up to 1.5e-6 more.
"""

import itertools
import math

import numpy as np
from scipy.special import gammaln

INF = math.inf
MIN_FOR_GARBAGE = 7  # modalities, catch-all counted as one; Khiops' regressions take any number


# ---------------------------------------------------------------- codes
def log2_star(k):
    """log2 k + log2 log2 k + ..., over the positive terms."""
    total = 0.0
    term = math.log2(k)
    while term > 0:
        total += term
        term = math.log2(term)
    return total


_NORM = {}


def _ln_norm(m):
    """ln of sum_{j=1..m} 2^-log2*(j)."""
    if m not in _NORM:
        _NORM[m] = math.log(math.fsum(2.0 ** -log2_star(j) for j in range(1, m + 1)))
    return _NORM[m]


def rissanen(k, m):
    """R(k; m): Rissanen's universal code of k, bounded by m (decision 1)."""
    if not 1 <= k <= m:
        return INF
    return math.log(2) * log2_star(k) + _ln_norm(m)


_STIRLING = {0: [1]}


def stirling_row(M):
    """Exact S(M, 0..M)."""
    last = max(m for m in _STIRLING if m <= M)
    row = _STIRLING[last]
    for m in range(last + 1, M + 1):
        new = [0] * (m + 1)
        for g in range(1, m + 1):
            new[g] = (g * row[g] if g < m else 0) + row[g - 1]
        row = new
    _STIRLING[M] = row
    return row


def ln_partitions(M, G):
    """ln B(M, G), B = number of partitions of M things in at most G groups, by exact integers."""
    return math.log(sum(stirling_row(M)[1 : min(G, M) + 1]))


def ln_fact(n):
    return float(gammaln(n + 1.0))


def ln_choose(n, k):
    return ln_fact(n) - ln_fact(k) - ln_fact(n - k)


def gmax(N):
    """ceil(log2 N), exact."""
    return (int(N) - 1).bit_length()


# ---------------------------------------------------------------- parts
def parts_cost(counts):
    """sum_i ln C(N_i+J-1, J-1) + ln(N_i! / prod_j N_ij!)."""
    total = 0.0
    for row in counts:
        part = [int(x) for x in row]
        n, J = sum(part), len(part)
        total += ln_choose(n + J - 1, J - 1) + ln_fact(n) - math.fsum(ln_fact(x) for x in part)
    return total


def merge_intervals(counts, ends):
    """Per-interval sums of the rows of counts."""
    counts = np.asarray(counts)
    assert list(ends) == sorted(set(ends)) and ends[0] > 0 and ends[-1] == len(counts), "bad ends"
    starts = [0, *ends[:-1]]
    return [counts[a:b].sum(axis=0) for a, b in zip(starts, ends)]


def merge_groups(counts, labels):
    """Per-group sums of the rows of counts, groups in sorted order of label."""
    counts, labels = np.asarray(counts), list(labels)
    assert len(labels) == len(counts)
    return [counts[[i for i, one in enumerate(labels) if one == g]].sum(axis=0) for g in sorted(set(labels))]


# ---------------------------------------------------------------- numeric
def quantile_grid(block_sizes, G, tie="lower_half"):
    """Sorted block indices (one past the last block before the cut; 1..B-1) that granularity G allows.

    Exact integers: s = N t / 2^G for t = 1 .. 2^G - 1; boundary positions c; compares |2^G c - N t|.
    tie: "lower_half" (down if 2t <= 2^G, else up), "lower_half_strict" (down if 2t < 2^G), "down", "up".
    """
    sizes = [int(x) for x in block_sizes]
    N, B, S = sum(sizes), len(sizes), 2**G
    c = [0]
    for x in sizes:
        c.append(c[-1] + x)
    allowed = set()
    b = 0
    for t in range(1, S):
        while c[b + 1] * S < N * t:  # c[b] * S <= N t <= c[b+1] * S after the loop
            b += 1
        low, high = N * t - c[b] * S, c[b + 1] * S - N * t
        if low < high:
            best = b
        elif high < low:
            best = b + 1
        else:
            down = {"lower_half": 2 * t <= S, "lower_half_strict": 2 * t < S, "down": True, "up": False}[tie]
            best = b if down else b + 1
        if 0 < best < B:
            allowed.add(best)
    return sorted(allowed)


def _interval_prior(N, I, G, n_candidates):
    """The khiops prior of I > 1 intervals at granularity G, without the parts (decision 2, 4)."""
    V = min(2**G, N)
    if I > V:
        return INF
    return (
        math.log(2)
        + math.log(n_candidates)
        + rissanen(G, gmax(N))
        + rissanen(I - 1, V - 1)
        + (I - 1) * math.log(V - 1)
        - ln_fact(I - 1)
    )


def _best_interval_prior(sizes, ends, n_candidates, granularity):
    """(least prior, its G) over the granularities whose grid contains every cut."""
    N, I = int(sum(sizes)), len(ends)
    best = (INF, None)
    for G in range(1, gmax(N) + 1) if granularity is None else [granularity]:
        if G < 1 or gmax(N) < G or not set(ends[:-1]) <= set(quantile_grid(sizes, G)):
            continue
        best = min(best, (_interval_prior(N, I, G, n_candidates), G), key=lambda t: t[0])
    return best


def interval_cost(counts, ends, criterion, n_candidates=1, granularity=None):
    """Cost of a discretization. ends: one past the last block of each interval, the last equals B."""
    counts = np.asarray(counts)
    ends = [int(e) for e in ends]
    sizes = counts.sum(axis=1)
    N, I = int(sizes.sum()), len(ends)
    parts = parts_cost(merge_intervals(counts, ends))
    if criterion == "page":
        return math.log(N) + ln_choose(N + I - 1, I - 1) + parts
    assert criterion == "khiops"
    if I == 1:
        return math.log(2) + parts
    return _best_interval_prior(sizes, ends, n_candidates, granularity)[0] + parts


def interval_granularity(counts, ends, n_candidates=1):
    """The granularity that gives interval_cost under khiops."""
    return _best_interval_prior(np.asarray(counts).sum(axis=1), list(ends), n_candidates, None)[1]


# ---------------------------------------------------------------- symbolic
def granularised(sizes, G):
    """The modalities that go into the catch-all of granularity G: rarer than ceil(N / 2^G)."""
    sizes = [int(x) for x in sizes]
    N = sum(sizes)
    threshold = -(-N // 2**G)
    return {m for m, x in enumerate(sizes) if x < threshold}


def _grouping_prior(N, K, V, g, G, n_candidates, fewest=MIN_FOR_GARBAGE):
    """khiops prior of K > 1 groups of V modalities at granularity G; g = modalities of the garbage group, or 0.

    The choice of a garbage group or none costs ln 2 where V > 7, and is free (an economy of Khiops') up to 7."""
    prior = math.log(2) + math.log(n_candidates) + rissanen(G, gmax(N)) + (math.log(2) if V > 7 else 0.0)
    if g == 0:
        V1, K1 = V, K
    else:
        V1, K1 = V - g, K - 1
        if fewest > V or K1 < 2:
            return INF
        prior += rissanen(V1 - 1, V - 2) + V1 * math.log(V) - ln_fact(V1)
    if K1 > V1:
        return INF
    return prior + rissanen(K1 - 1, V1 - 1) + ln_partitions(V1, K1)


def _best_grouping_prior(sizes, labels, n_candidates, granularity, garbage, fewest=MIN_FOR_GARBAGE):
    """(least prior, G, label of the garbage group or None) over what is left open."""
    N, labels = int(sum(sizes)), list(labels)
    groups = sorted(set(labels))
    K = len(groups)
    best = (INF, None, None)
    for G in range(1, gmax(N) + 1) if granularity is None else [granularity]:
        if G < 1 or gmax(N) < G:
            continue
        rare = granularised(sizes, G)
        if len({labels[m] for m in rare}) > 1:
            continue
        V = len(labels) - len(rare) + (1 if rare else 0)
        # modalities of each group after granularisation
        of_group = dict.fromkeys(groups, 0)
        for m, one in enumerate(labels):
            of_group[one] += m not in rare
        if rare:
            of_group[labels[min(rare)]] += 1
        choices = [None, *groups] if garbage is None else [None] if garbage is False else [garbage]
        for choice in choices:
            g = 0 if choice is None else of_group[choice]
            best = min(best, (_grouping_prior(N, K, V, g, G, n_candidates, fewest), G, choice), key=lambda t: t[0])
    return best


def grouping_cost(counts, labels, criterion, n_candidates=1, granularity=None, garbage=None):
    """Cost of a grouping. garbage: None = every choice or none, False = none, else the label of that group."""
    counts = np.asarray(counts)
    sizes = counts.sum(axis=1)
    M, K = len(counts), len(set(labels))
    parts = parts_cost(merge_groups(counts, labels))
    if criterion == "page":
        return math.log(M) + ln_partitions(M, K) + parts
    assert criterion == "khiops"
    if K == 1:
        return math.log(2) + parts
    return _best_grouping_prior(sizes, labels, n_candidates, granularity, garbage)[0] + parts


def grouping_choice(counts, labels, n_candidates=1):
    """(granularity, garbage label or None) that give grouping_cost under khiops."""
    return _best_grouping_prior(np.asarray(counts).sum(axis=1), labels, n_candidates, None, None)[1:]


# ---------------------------------------------------------------- regression (joint grid, khiops)
def grid_cost_of_counts(
    sizes, grid, parts, categorical, n_candidates=1, granularity=None, garbage=None, fewest=MIN_FOR_GARBAGE
):
    """grid_cost, from the rows of each source value and the counts (I, T) of the grid: for long columns."""
    grid = np.asarray(grid)
    N, (K, T) = int(grid.sum()), grid.shape
    assert len(set(parts)) == K, "a part of the source is empty"
    if K == 1 and T == 1:
        return math.log(2) + ln_fact(N)
    if K == 1 or T == 1:  # decision 9
        return INF
    if categorical:
        prior = _best_grouping_prior(sizes, parts, n_candidates, granularity, garbage, fewest)[0]
    else:
        prior = _best_interval_prior(sizes, list(parts), n_candidates, granularity)[0]
    return prior + rissanen(T - 1, N - 1) + parts_cost(grid) + math.fsum(ln_fact(int(x)) for x in grid.sum(axis=0))


def regression_interval_cost(table, ends, target_ends, n_candidates=1, granularity=None):
    """table: (B, Bt) rows by sorted distinct source value and sorted distinct target value."""
    return grid_cost(table, list(ends), target_ends, False, n_candidates, granularity)


def regression_grouping_cost(table, labels, target_ends, n_candidates=1, granularity=None, garbage=None):
    """table: (M, Bt) rows by modality and sorted distinct target value."""
    return grid_cost(table, list(labels), target_ends, True, n_candidates, granularity, garbage)


def grid_cost(
    table, parts, target_ends, categorical, n_candidates=1, granularity=None, garbage=None, fewest=MIN_FOR_GARBAGE
):
    """Cost of a grid over a source and a numeric target, under "khiops" (the page prints none for regressions).

    table: (B, Bt) rows by source value and sorted distinct target value; parts: the label of each source value where
    symbolic, else ends of intervals. As Khiops 11.0.1 reports it (its own
    program on 449 random columns, all but one explained):
    - the target may be cut between any of its distinct values: the granularity is the source's alone;
    - the number of its intervals costs R(T-1; N-1), the places of its cuts nothing but the ln N_j! of the ranks;
    - a source of one part goes with a target of one part: ln 2 + ln N!.
    What Khiops adds to that is not part of it: it does not search every granularity; the last one that it tries is
    charged as ceil(log2 N), whatever it is (46 of the 449: .3 to 10 nats more than the same grid at its own); after
    having lowered the granularity of a grid it takes the number of granules of the source for N in R(T-1; N-1) (16 of
    them: tenths of a nat less); and it allows a garbage group beside any two others, however few the modalities are
    (5 of them, V = 4 or 6): fewest=3."""
    table = np.asarray(table)
    rows = merge_groups(table, parts) if categorical else merge_intervals(table, list(parts))
    grid = np.array(merge_intervals(np.array(rows).T, list(target_ends))).T
    return grid_cost_of_counts(table.sum(axis=1), grid, parts, categorical, n_candidates, granularity, garbage, fewest)


# ---------------------------------------------------------------- exhaustive optima
def all_ends(B):
    """Every partition of B blocks into intervals."""
    for mask in range(2 ** (B - 1)):
        yield [b for b in range(1, B) if mask >> (b - 1) & 1] + [B]


def all_labels(M):
    """Every set partition of M things, as restricted growth strings."""

    def grow(prefix, top):
        if len(prefix) == M:
            yield list(prefix)
            return
        for one in range(top + 2):
            yield from grow([*prefix, one], max(top, one))

    yield from grow([0], 0)


def best_intervals(counts, criterion, n_candidates=1, granularity=None):
    """(cost, ends), exhaustive; under khiops over every granularity if None."""
    assert len(counts) <= 14
    return min(
        ((interval_cost(counts, e, criterion, n_candidates, granularity), e) for e in all_ends(len(counts))),
        key=lambda t: t[0],
    )


def best_groups(counts, criterion, n_candidates=1, granularity=None, garbage=None):
    """(cost, labels), exhaustive; under khiops over every granularity and garbage choice if None."""
    assert len(counts) <= 9
    return min(
        (
            (grouping_cost(counts, one, criterion, n_candidates, granularity, garbage), one)
            for one in all_labels(len(counts))
        ),
        key=lambda t: t[0],
    )


def best_regression_intervals(table, n_candidates=1, granularity=None):
    """(cost, ends, target_ends), exhaustive."""
    return best_grid(table, False, n_candidates, granularity)


def best_regression_groups(table, n_candidates=1, granularity=None, garbage=None):
    """(cost, labels, target_ends), exhaustive."""
    return best_grid(table, True, n_candidates, granularity, garbage)


def best_grid(table, categorical, n_candidates=1, granularity=None, garbage=None, fewest=MIN_FOR_GARBAGE):
    """(cost, labels or ends of the source, target_ends): every partition of the source by every one of the target.

    6 by 6 values take about .02 s, 8 symbols by 6 a second."""
    table = np.asarray(table)
    (B, Bt), N, sizes = table.shape, int(table.sum()), table.sum(axis=1)
    assert B <= 9 and Bt <= 9
    sources, targets = list(all_labels(B) if categorical else all_ends(B)), list(all_ends(Bt))
    cost = np.full((len(sources), len(targets)), INF)
    facts = np.array([ln_fact(n) for n in range(N + Bt + 1)])
    T = np.array([len(ends) for ends in targets])
    into = np.zeros((len(targets), Bt, Bt), dtype=np.int64)  # target value, its interval
    for t, ends in enumerate(targets):
        into[t, np.arange(Bt), np.searchsorted(ends, np.arange(Bt), side="right")] = 1
    of_target = np.array([rissanen(k - 1, N - 1) if k > 1 else INF for k in T])
    for s, source in enumerate(sources):
        if categorical:
            rows, K = merge_groups(table, source), max(source) + 1
        else:
            rows, K = merge_intervals(table, source), len(source)
        if K == 1:
            continue
        if categorical:
            prior = _best_grouping_prior(sizes, source, n_candidates, granularity, garbage, fewest)[0]
        else:
            prior = _best_interval_prior(sizes, source, n_candidates, granularity)[0]
        grids = np.array(rows) @ into  # (targets, K, Bt)
        cells = facts[grids.sum(axis=2) + T[:, None] - 1].sum(axis=1) - K * facts[T - 1] - facts[grids].sum(axis=(1, 2))
        cost[s] = prior + of_target + cells + facts[grids.sum(axis=1)].sum(axis=1)
    s, t = np.unravel_index(cost.argmin(), cost.shape)
    null = math.log(2) + ln_fact(N)
    if not cost[s, t] < null:
        return null, [0] * B if categorical else [B], [Bt]
    return float(cost[s, t]), sources[s], targets[t]


def gains_beside_garbage(counts, times, reward, most):
    """The most that 2 .. `most` runs of units gain, then any number: ln of the integral over the share q of
    prod max(1, exp(reward) (1-q)^n_0 q^n_1), each unit as often as it counts."""
    q = (np.arange(20_000) + 0.5) / 20_000
    of_unit = [
        times[u] * np.maximum(reward[u] + counts[u][0] * np.log(1 - q) + counts[u][1] * np.log(q), 0)
        for u in range(len(counts))
    ]

    def gain(start, end):
        total = sum(of_unit[start:end])
        return total.max() + np.log(np.exp(total - total.max()).mean())

    n = len(counts)

    def best(k):
        cuts = (c for j in range(k) for c in itertools.combinations(range(1, n), j))  # at most k runs
        return max(sum(gain(a, b) for a, b in itertools.pairwise((0, *one, n))) for one in cuts)

    return np.array([best(k) for k in range(2, most + 1)] + [best(n)])
