"""What was learned of columns, for people: a line for each, and tables of donors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

from tabsym.encoders.tiws.rows import TIWSColumn
from tabsym.tiws.column import FittedColumn, Unseen


def print_columns(fitted: dict[str, FittedColumn]) -> None:
    """Number of categories, and the fraction of their variance that contexts explain, by which kernel."""
    for name, one in fitted.items():
        share = one.covariance.share
        told = (
            f"contexts explain {share:.0%} of the variance between categories (kernel {one.covariance.kernel})"
            if share
            else "contexts are uninformative"
        )
        print(f"{name}: {len(one.symbols)} categories, {told}", file=sys.stderr)


def donor_table(state: TIWSColumn, found: list[tuple[Unseen, Any]], n_donors: int) -> pd.DataFrame:
    """The heaviest donors of categories; `found`: unknown categories, with the codes of those that are known."""
    fitted = state.fitted
    estimates = fitted.estimates[:, state.shown]
    records: list[list[Any]] = []
    for unseen, own in found:
        donors, by_symbol = fitted.shown_weights(unseen, own)
        for symbol, weights in zip(unseen.symbols, by_symbol, strict=True):
            for place in np.argsort(-weights, kind="stable")[:n_donors]:
                if weights[place] > 0:
                    donor = donors[place]
                    known = [*estimates[donor].tolist(), fitted.sums.rows[donor]]
                    records.append([symbol, fitted.symbols[donor], weights[place], *known])
    several = [f"estimate_{name}" for name in state.names[: len(state.shown)]]
    labels = several if len(several) > 1 else ["estimate"]
    return pd.DataFrame(records, columns=["category", "donor", "weight", *labels, "rows"])
