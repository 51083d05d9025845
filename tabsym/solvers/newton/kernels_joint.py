"""Kernels of joint covariances: sums over rows by pairs of coefficients, and products with their sparse matrices.

Several terms come in one call, by the addresses `codes_at` and `x_at` (t,) of their codes and numeric factors (n,), 0
for a factor of 1; `starts` (t,) are the indices of their first coefficients. `codes_like` and `x_like` have the dtypes
at these addresses. Codes are -1 for rows without a coefficient.
"""

from __future__ import annotations

from tabsym.intrinsics import vector_at
from tabsym.jit import kernel, unsigned


@kernel
def mirror(matrix):
    """Copy the lower triangle of a matrix (p, p) to the upper one."""
    for i in range(len(matrix)):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


@kernel
def sum_pairs(codes_at, x_at, starts, codes_like, x_like, values, products, sums):
    """Add values (n,) of rows to sums (p, p) by pairs of coefficients of several terms; the sums are symmetric.

    `products` (n,) is work space, empty where no term has a numeric factor. Then two blocks of the matrix are summed in
    one pass: the additions to them do not wait for each other.
    """
    n, row_values = len(values), products if len(products) else values
    for a in range(len(codes_at)):
        left, first, b = vector_at(codes_at[a], n, codes_like), starts[a], 0
        while b <= a:
            if len(products):
                x_a, x_b = vector_at(x_at[a], n, x_like), vector_at(x_at[b], n, x_like)
                for i in range(n):
                    products[i] = values[i] * (x_a[i] if x_at[a] != 0 else 1.0)
                    products[i] *= x_b[i] if x_at[b] != 0 else 1.0
            following = b + 1 if b < a and not len(products) else b
            right, more = vector_at(codes_at[b], n, codes_like), vector_at(codes_at[following], n, codes_like)
            second, third = starts[b], starts[following]
            for i in range(n):
                if left[i] >= 0:
                    at, value = unsigned(first + left[i]), row_values[i]
                    if right[i] >= 0:
                        sums[at, unsigned(second + right[i])] += value
                    if following != b and more[i] >= 0:
                        sums[at, unsigned(third + more[i])] += value
            b = following + 1
    mirror(sums)


@kernel
def sum_cross(codes, x, codes_at, x_at, starts, codes_like, x_like, values, diagonal, sums):
    """Add values (n,) of rows to sums (q, p) by the coefficients of one term and of several others.

    Adds those by the one term alone to its diagonal (q,). x (n,): its numeric factor, empty for 1.
    """
    n = len(values)
    for i in range(n):
        if codes[i] >= 0:
            value = values[i] * x[i] if len(x) else values[i]
            diagonal[codes[i]] += value * x[i] if len(x) else value
            for t in range(len(codes_at)):
                code = vector_at(codes_at[t], n, codes_like)[i]
                if code >= 0:
                    factor = vector_at(x_at[t], n, x_like)[i] if x_at[t] != 0 else 1.0
                    sums[codes[i], starts[t] + code] += value * factor


@kernel
def nests(codes, coarser, parent):
    """Whether each code (n,) has one of `coarser` (n,) in all its rows: then parent (q,) is that, -1 for none.

    Rows without a code must have none of the coarser ones.
    """
    unknown = -2
    for c in range(len(parent)):
        parent[c] = unknown
    for i in range(len(codes)):
        if codes[i] < 0:
            if coarser[i] >= 0:
                return False
        elif parent[codes[i]] == unknown:
            parent[codes[i]] = coarser[i]
        elif parent[codes[i]] != coarser[i]:
            return False
    return True


@kernel
def sum_children(parent, diagonal, sums, parent_diagonal, parent_sums):
    """Add the sums by `sum_cross` of coefficients (q,) to those of the ones that they are nested in, `parent` (q,)."""
    for c in range(len(parent)):
        if parent[c] >= 0:
            parent_diagonal[parent[c]] += diagonal[c]
            for j in range(parent_sums.shape[1]):
                parent_sums[parent[c], j] += sums[c, j]


@kernel
def subtract_shared(order, ends, x, codes_at, x_at, starts, codes_like, x_like, values, precision, alone, work, matrix):
    """As `sum_cross` and `subtract_square`, without sums for all coefficients (q,) of the one term at a time.

    `order`: the rows by the term's code, those of each up to `ends` (q,). `alone` (q,) is set to the inverse of the
    term's diagonal information, with its `precision`, 0 where there is none. `work` (3, p) is work space, zeros before.
    """
    n, first = len(values), 0
    sums, touched, last = work
    for c in range(len(ends)):
        information, n_touched = precision, 0
        for at in range(first, ends[c]):
            i = unsigned(order[at])
            value = values[i] * x[i] if len(x) else values[i]
            information += value * x[i] if len(x) else value
            for t in range(len(codes_at)):
                code = vector_at(codes_at[t], n, codes_like)[i]
                if code >= 0:
                    j = starts[t] + code
                    if last[j] == 0.0:
                        last[j] = 1.0
                        touched[n_touched] = j
                        n_touched += 1
                    sums[j] += value * (vector_at(x_at[t], n, x_like)[i] if x_at[t] != 0 else 1.0)
        alone[c] = 1.0 / information if information > 0.0 else 0.0
        for a in range(n_touched):
            j = int(touched[a])
            value = alone[c] * sums[j]
            for b in range(n_touched):
                if touched[b] <= j:
                    h = int(touched[b])
                    matrix[j, h] -= value * sums[h]
        for a in range(n_touched):
            sums[int(touched[a])] = last[int(touched[a])] = 0.0
        first = ends[c]


@kernel
def subtract_square(sums, by, matrix):
    """Subtract sums' diag(by) sums from the lower triangle of a matrix (p, p); sums (q, p), zeros are skipped."""
    for c in range(len(sums)):
        for j in range(sums.shape[1]):
            if sums[c, j] != 0.0:
                value = by[c] * sums[c, j]
                for h in range(j + 1):
                    matrix[j, h] -= value * sums[c, h]


@kernel
def multiply(sums, by, matrix, start, product):
    """Set a product (q, r) to diag(by) sums matrix plus a row `start` (r,); sums (q, p), zeros are skipped."""
    for c in range(len(sums)):
        for h in range(len(start)):
            product[c, h] = start[h]
        for j in range(sums.shape[1]):
            if sums[c, j] != 0.0:
                value = by[c] * sums[c, j]
                for h in range(matrix.shape[1]):
                    product[c, h] += value * matrix[j, h]
