"""Kernels of joint covariances: sums over rows by pairs of coefficients, and products with the sparse matrices of these.

Several terms come in one call, by the addresses `codes_at` and `x_at` (t,) of their codes and numeric factors (n,), 0
for a factor of 1; `starts` (t,) are the indices of their first coefficients. `codes_like` and `x_like` have the dtypes
at these addresses. Codes are -1 for rows without a coefficient.
"""

from __future__ import annotations

from tabsym.jit import kernel, matrix_at


@kernel
def sum_pairs(codes_at, x_at, starts, codes_like, x_like, values, places, factors, sums):
    """Add values (n,) of rows to sums (p, p), below and on the diagonal, by pairs of coefficients of several terms.

    `places` and `factors` (t,) are work space.
    """
    n = len(values)
    for i in range(n):
        seen = 0
        for t in range(len(codes_at)):
            code = matrix_at(codes_at[t], n, 1, codes_like)[i, 0]
            if code >= 0:
                places[seen] = starts[t] + code
                factors[seen] = matrix_at(x_at[t], n, 1, x_like)[i, 0] if x_at[t] != 0 else 1.0
                seen += 1
        for one in range(seen):
            value = values[i] * factors[one]
            for other in range(one + 1):
                sums[places[one], places[other]] += value * factors[other]


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
                code = matrix_at(codes_at[t], n, 1, codes_like)[i, 0]
                if code >= 0:
                    factor = matrix_at(x_at[t], n, 1, x_like)[i, 0] if x_at[t] != 0 else 1.0
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
def multiply(sums, by, matrix, product):
    """Add diag(by) sums matrix to a product (q, r); sums (q, p), zeros are skipped; matrix (p, r)."""
    for c in range(len(sums)):
        for one in range(sums.shape[1]):
            if sums[c, one] != 0.0:
                value = by[c] * sums[c, one]
                for other in range(matrix.shape[1]):
                    product[c, other] += value * matrix[one, other]
