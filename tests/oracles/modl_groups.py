"""Exact groupings of classes beyond what enumeration can do: up to 20 symbols, by both criteria of MODL.

Everything of a criterion but the parts depends on counts of groups and modalities only, so it is enough to know the
cheapest parts of a set of units in k groups, for every set a garbage group can leave.
- Any number of classes: over all sets of units, 3**(V-1) steps: .02 s for 12 units, .1 s for 14, 1.4 s for 16,
  10 to 20 s for 18 (EXACT_UNITS; two more are nine times that), once for every set of units that a granularity leaves.
- Two classes: the cost of a group is concave in its two counts (its Hessian is psi'(n+2) 1 1' less the diagonal of
  psi'(n0+1), psi'(n1+1), negative as 1/psi' is superadditive), so the best groups of a given set are runs in the order
  of class shares; only the garbage group may be any set. 2**V sets by a dynamic program over runs: 3 s for 20 units.
"""

import math

import numba
import numpy as np

from tests.oracles import modl as naive_modl
from tests.oracles.modl import INF, MIN_FOR_GARBAGE, granularised, ln_partitions, merge_groups

EXACT_UNITS = 18
"""Units that more than two classes may have."""
EXACT_UNITS_OF_TWO = 20


def best_groups(counts, criterion, n_candidates=1, fewest=MIN_FOR_GARBAGE, by_runs=None):
    """(cost, labels) of the cheapest grouping of all; `by_runs`: whether to take runs only, None: for two classes."""
    counts = np.asarray(counts, dtype=np.int64)
    M, J = counts.shape
    runs = J == 2 if by_runs is None else by_runs
    if criterion == "page":
        found = _Cheapest(np.arange(M), counts, runs)
        prior = [INF, *(math.log(M) + ln_partitions(M, K) for K in range(1, M + 1))]
        return _pick(counts, [(prior[K] + found.parts(M, K), (found, M, K, False)) for K in range(1, M + 1)])
    assert criterion == "khiops"
    sizes = counts.sum(axis=1)
    N = int(sizes.sum())
    one = math.log(2) + naive_modl.parts_cost([counts.sum(axis=0)])
    offers = [(one, None)]
    known = {}
    for G in range(1, naive_modl.gmax(N) + 1):
        unit, V = _units(sizes, G)
        if unit.tobytes() not in known:
            known[unit.tobytes()] = _Cheapest(unit, counts, runs)
        found = known[unit.tobytes()]
        for K in range(2, V + 1):
            prior = naive_modl._grouping_prior(N, K, V, 0, G, n_candidates, fewest)
            offers.append((prior + found.parts(V, K), (found, V, K, False)))
            for g in range(1, V - K + 2) if fewest <= V and K > 2 else ():
                prior = naive_modl._grouping_prior(N, K, V, g, G, n_candidates, fewest)
                offers.append((prior + found.parts(V - g, K - 1, garbage=True), (found, V - g, K - 1, True)))
    return _pick(counts, offers)


def _pick(counts, offers):
    cost, chosen = min(offers, key=lambda one: one[0])
    return float(cost), [0] * len(counts) if chosen is None else chosen[0].labels(*chosen[1:])


def _units(sizes, G):
    """The unit of each symbol, and how many there are: rare ones are one."""
    rare = granularised(sizes, G)
    frequent = [m for m in range(len(sizes)) if m not in rare]
    unit = np.full(len(sizes), len(frequent), dtype=np.int64)
    unit[frequent] = np.arange(len(frequent))
    return unit, len(frequent) + bool(rare)


class _Cheapest:
    """Of units: the cheapest parts of all, and of any so many with a garbage group of the others."""

    def __init__(self, unit, counts, runs):
        self.unit = unit
        self.units = np.array(merge_groups(counts, unit.tolist()), dtype=np.int64)
        V, J = self.units.shape
        assert (EXACT_UNITS_OF_TWO if runs else EXACT_UNITS) >= V, f"{V} units"
        facts = np.array([naive_modl.ln_fact(n) for n in range(int(counts.sum()) + J + 1)])
        order = np.arange(V)
        if runs:
            assert J == 2
            order = np.argsort(self.units[:, 0] / self.units.sum(axis=1), kind="stable")
        self.order = order
        self.cost = _costs(self.units[order], facts)
        self.whole = np.full(V + 1, INF)
        self.best = np.full((V + 1, V + 1), INF)  # with garbage: units beside it, groups beside it
        self.which = np.zeros((V + 1, V + 1), dtype=np.int64)
        if runs:
            _over_runs(self.cost, V, self.whole, self.best, self.which)
        else:
            self.groups = _over_sets(self.cost, V)
            self.whole[:] = self.groups[-1]
            _with_garbage(self.cost, self.groups, V, self.best, self.which)
        self.runs = runs

    def parts(self, n_units, n_groups, *, garbage=False):
        return self.best[n_units, n_groups] if garbage else self.whole[n_groups]

    def labels(self, n_units, n_groups, garbage):
        V = len(self.units)
        left = int(self.which[n_units, n_groups]) if garbage else 2**V - 1
        label = np.zeros(V, dtype=np.int64)  # the garbage group is 0
        for number in range(n_groups, 0, -1):
            group = self._last_group(left, number)
            label[[u for u in range(V) if group >> u & 1]] = number
            left ^= group
        assert left == 0
        of_unit = np.zeros(V, dtype=np.int64)
        of_unit[self.order] = label
        return np.unique(of_unit[self.unit], return_inverse=True)[1].tolist()

    def _last_group(self, left, number):
        """A group that a cheapest partition of `left` in `number` groups has, by trying them."""
        members = [u for u in range(len(self.units)) if left >> u & 1]
        if number == 1:
            return left
        if self.runs:
            ends = [sum(1 << u for u in members[:k]) for k in range(1, len(members))]
            tails = [left ^ head for head in ends]
            values = [self.cost[t] + _runs_of(self.cost, h, number - 1) for h, t in zip(ends, tails)]
            return tails[int(np.argmin(values))]
        low, rest = 1 << members[0], left ^ (1 << members[0])
        best, found, some = INF, 0, rest
        while True:
            value = self.cost[low | some] + self.groups[left ^ low ^ some, number - 1]
            if value < best:
                best, found = value, low | some
            if some == 0:
                return found
            some = (some - 1) & rest


@numba.njit
def _costs(units, facts):
    """The cost of every set of units as one part."""
    V, J = units.shape
    cost = np.zeros(2**V)
    total = np.zeros((2**V, J), dtype=np.int64)
    for s in range(1, 2**V):
        u = 0
        while not s >> u & 1:
            u += 1
        n = 0
        for j in range(J):
            total[s, j] = total[s & (s - 1), j] + units[u, j]
            n += total[s, j]
            cost[s] -= facts[total[s, j]]
        cost[s] += facts[n + J - 1] - facts[J - 1]
    return cost


@numba.njit
def _count(s):
    n = 0
    while s:
        s &= s - 1
        n += 1
    return n


@numba.njit
def _over_sets(cost, V):
    """(2**V, V+1): the cheapest partition of each set in k groups; the group of its lowest unit is tried in full."""
    best = np.full((2**V, V + 1), np.inf)
    best[0, 0] = 0.0
    for s in range(1, 2**V):
        low = s & -s
        rest = s ^ low
        some = rest
        while True:
            others = rest ^ some
            own = cost[low | some]
            for k in range(_count(others) + 1):
                value = own + best[others, k]
                best[s, k + 1] = min(best[s, k + 1], value)
            if some == 0:
                break
            some = (some - 1) & rest
    return best


@numba.njit
def _with_garbage(cost, groups, V, best, which):
    full = 2**V - 1
    for s in range(1, full):
        n = _count(s)
        for k in range(1, n + 1):
            value = groups[s, k] + cost[full ^ s]
            if value < best[n, k]:
                best[n, k], which[n, k] = value, s


@numba.njit
def _runs(cost, members, n, table):
    """table[k, e]: the cheapest k runs of the first e of n members."""
    table[:, :] = np.inf
    table[0, 0] = 0.0
    for e in range(1, n + 1):
        run = 0
        for start in range(e - 1, -1, -1):
            run |= 1 << members[start]
            own = cost[run]
            for k in range(1, start + 2):
                value = table[k - 1, start] + own
                table[k, e] = min(table[k, e], value)


@numba.njit
def _over_runs(cost, V, whole, best, which):
    full = 2**V - 1
    members = np.zeros(V, dtype=np.int64)
    table = np.empty((V + 1, V + 1))
    for s in range(1, full + 1):
        n = 0
        for u in range(V):
            if s >> u & 1:
                members[n] = u
                n += 1
        _runs(cost, members, n, table)
        if s == full:
            whole[:] = table[:, n]
            break
        for k in range(1, n + 1):
            value = table[k, n] + cost[full ^ s]
            if value < best[n, k]:
                best[n, k], which[n, k] = value, s


def _runs_of(cost, s, number):
    members = np.array([u for u in range(s.bit_length()) if s >> u & 1], dtype=np.int64)
    table = np.empty((len(members) + 1, len(members) + 1))
    _runs(cost, members, len(members), table)
    return table[number, len(members)] if number <= len(members) else INF
