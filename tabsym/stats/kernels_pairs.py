"""Counting which codes of two columns occur in the same rows: two passes of a counting sort, then runs."""

from __future__ import annotations

from tabsym.jit import kernel


@kernel
def order_by_code(codes, places, order):
    """Row numbers by their code, ascending within one; `places` (n_codes,) starts, and is where each code's rows end.

    Rows with a code below 0 are left out.
    """
    for row in range(len(codes)):
        code = codes[row]
        if code >= 0:
            order[places[code]] = row
            places[code] += 1


@kernel
def count_row_pairs(order, ends, left, weight, starts, places, rights, weights, pointer):
    """Sums of weights by (left code, right code), as a CSR matrix with ascending columns.

    Parameters
    ----------
    order : (n,)
        Rows, those of the first right code first.
    ends : (n_right,)
        Where each right code's rows end in `order`.
    left : (n,)
        Codes; rows with one below 0 are left out.
    weight : (n,) or (1,)
        Of the rows; one number for all.
    starts, places : (n_left,)
        Where each left code's rows begin among all rows by left code, twice: `places` is changed.
    rights, weights : (n,)
        Columns and entries of the matrix afterwards; the first ``pointer[-1]`` count.
    pointer : (n_left + 1,)
    """
    many = len(weight) > 1
    at = 0
    for right in range(len(ends)):
        for place in range(at, ends[right]):
            row = order[place]
            code = left[row]
            if code >= 0:
                to = places[code]
                rights[to] = right
                weights[to] = weight[row] if many else weight[0]
                places[code] = to + 1
        at = ends[right]
    written = 0
    pointer[0] = 0
    for code in range(len(places)):
        begin = written
        for place in range(starts[code], places[code]):
            if written > begin and rights[written - 1] == rights[place]:
                weights[written - 1] += weights[place]
            else:
                rights[written] = rights[place]
                weights[written] = weights[place]
                written += 1
        pointer[code + 1] = written
