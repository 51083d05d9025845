"""What was learned of each column, in a line."""

from __future__ import annotations

import sys

from tabsym.tiws.column import FittedColumn


def print_columns(fitted: dict[str, FittedColumn]) -> None:
    """Symbols, how far documents tell their targets, and which likeness does."""
    for name, one in fitted.items():
        share = one.covariance.share
        told = (
            f"documents tell {share:.0%} of what differs ({one.covariance.kernel})"
            if share
            else "documents tell nothing"
        )
        print(f"{name}: {len(one.symbols)} symbols, {told}", file=sys.stderr)
