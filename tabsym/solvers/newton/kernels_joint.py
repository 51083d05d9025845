"""Kernels of joint covariances: sums over rows by pairs of coefficients, and products with their sparse matrices.

Several terms come in one call, by the addresses `codes_at` and `x_at` (t,) of their codes and numeric factors (n,), 0
for a factor of 1; `starts` (t,) are the indices of their first coefficients. `codes_like` and `x_like` have the dtypes
at these addresses. Codes are -1 for rows without a coefficient.
"""

from __future__ import annotations

from tabsym.jit import kernel, unsigned, vector_at


@kernel
def mirror(matrix):
    """Copy the lower triangle of a matrix (p, p) to the upper one."""
    for one in range(len(matrix)):
        for other in range(one):
            matrix[other, one] = matrix[one, other]


@kernel
def sum_pairs(codes_at, x_at, starts, codes_like, x_like, values, products, sums):
    """Add values (n,) of rows to sums (p, p) by pairs of coefficients of several terms; the sums are symmetric.

    `products` (n,) is work space, empty where no term has a numeric factor. Then two blocks of the matrix are summed in
    one pass: the additions to them do not wait for each other.
    """
    n, shares = len(values), products if len(products) else values
    for one in range(len(codes_at)):
        left, first, other = vector_at(codes_at[one], n, codes_like), starts[one], 0
        while other <= one:
            if len(products):
                x, beside = vector_at(x_at[one], n, x_like), vector_at(x_at[other], n, x_like)
                for i in range(n):
                    products[i] = values[i] * (x[i] if x_at[one] != 0 else 1.0)
                    products[i] *= beside[i] if x_at[other] != 0 else 1.0
            following = other + 1 if other < one and not len(products) else other
            right, more = vector_at(codes_at[other], n, codes_like), vector_at(codes_at[following], n, codes_like)
            second, third = starts[other], starts[following]
            for i in range(n):
                if left[i] >= 0:
                    at, value = unsigned(first + left[i]), shares[i]
                    if right[i] >= 0:
                        sums[at, unsigned(second + right[i])] += value
                    if following != other and more[i] >= 0:
                        sums[at, unsigned(third + more[i])] += value
            other = following + 1
    mirror(sums)


@kernel
def sum_beside(codes, x, codes_at, x_at, starts, codes_like, x_like, values, own, sums):
    """Add values (n,) of rows to sums (q, p) by the coefficients of one term and of several; to own (q,) by its own.

    x (n,): the numeric factor of the one term, empty for 1.
    """
    n = len(values)
    for i in range(n):
        if codes[i] >= 0:
            value = values[i] * x[i] if len(x) else values[i]
            own[codes[i]] += value * x[i] if len(x) else value
            for t in range(len(codes_at)):
                code = vector_at(codes_at[t], n, codes_like)[i]
                if code >= 0:
                    factor = vector_at(x_at[t], n, x_like)[i] if x_at[t] != 0 else 1.0
                    sums[codes[i], starts[t] + code] += value * factor


@kernel
def subtract_square(sums, by, matrix):
    """Subtract sums' diag(by) sums from the lower triangle of a matrix (p, p); sums (q, p), zeros are skipped."""
    for c in range(len(sums)):
        for one in range(sums.shape[1]):
            if sums[c, one] != 0.0:
                value = by[c] * sums[c, one]
                for other in range(one + 1):
                    matrix[one, other] -= value * sums[c, other]


@kernel
def multiply(sums, by, matrix, start, product):
    """Set a product (q, r) to diag(by) sums matrix plus a row `start` (r,); sums (q, p), zeros are skipped."""
    for c in range(len(sums)):
        for other in range(len(start)):
            product[c, other] = start[other]
        for one in range(sums.shape[1]):
            if sums[c, one] != 0.0:
                value = by[c] * sums[c, one]
                for other in range(matrix.shape[1]):
                    product[c, other] += value * matrix[one, other]
