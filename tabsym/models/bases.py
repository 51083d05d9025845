"""Terms with differences from base categories, as in `coef_table(base=...)`; they predict the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tabsym.models.coefficients import bases_of, deviation_of_difference, position_of, shifts_of_scalars
from tabsym.models.identified import means_of
from tabsym.models.records import Lookup, TermRecord
from tabsym.models.tables import split_frame


def with_bases(
    model: Any, base: Any, tables: Sequence[Lookup], table_of: Mapping[int, int], terms: Sequence[TermRecord]
) -> list[Lookup]:
    """The lookup tables with 0 at each base category, and what that had in the intercept.

    Parameters
    ----------
    model : fitted wide model
    base : mapping of term -> category, or "largest"
        As in `coef_table`; "largest" leaves out the terms that no intercept belongs to.
    tables : sequence of Lookup
        Count effects are in their categories.
    table_of : mapping of block -> table
    terms : sequence of TermRecord

    Raises
    ------
    ValueError
        `base` names what is no term or category, or a factor of a product.
    """
    fitted, frames, found = model.model_, model.coefs_, list(tables)
    bases = bases_of(base, fitted, frames, fitted.n_outputs)
    shifts = shifts_of_scalars(fitted, frames, bases)
    homes = {mean.block: mean.home for mean in means_of(fitted.spec) if mean.home is not None}
    constants = _constants(terms, len(tables))
    for block, term in enumerate(fitted.spec.blocks):
        if term.name not in bases:
            continue
        index, home = table_of[block], homes.get(block)
        if home is None or not constants[index]:
            if isinstance(base, Mapping):
                raise ValueError(
                    f"base names {term.name!r}, whose coefficients are factors of a product or part of those of "
                    "another term, so that no intercept can take up that of a base category; leave it out."
                )
            continue
        frame, own, into = frames[term.name], found[index], table_of[home]
        at = position_of(frame, bases[term.name], term.name, split_frame(frame, fitted.n_outputs))
        shift = own.values[at]
        sd = own.sd
        if sd is not None:
            rows = [deviation_of_difference(fitted, term.name, row, at) for row in range(len(own.values))]
            sd = np.array(rows).reshape(own.values.shape)
        found[index] = replace(own, values=own.values - shift, default=own.default - shift, sd=sd)
        scalar = found[into]
        known = scalar.sd is not None
        found[into] = replace(
            scalar,
            values=scalar.values + constants[index] / constants[into] * shift,
            sd=np.reshape(shifts[fitted.spec.blocks[home].name].sd, scalar.values.shape) if known else None,
        )
    return found


def _constants(terms: Sequence[TermRecord], n_tables: int) -> list[float]:
    """What each table is multiplied by, over the terms that use it."""
    found = [0.0] * n_tables
    for term in terms:
        for factor in term.lookups:
            found[factor.table] += term.constant
    return found
