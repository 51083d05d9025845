"""The convergence study's table in words: shares of combinations that miss the optimum, and whether they say so.

`python benchmarks/convergence/study.py --report` prints it for a CSV that is there.
"""

from __future__ import annotations

import pandas as pd

NEAR, FAR = 0.05, 0.5
MAX_LISTED = 40


def report(table: pd.DataFrame) -> str:
    """Markdown of everything that is read off a table of fits."""
    refused = table["ended"].str.startswith("refused")
    fits = table[~refused].copy()
    told = fits["ended"].str.startswith(("warning", "error"))
    fits["ended_in_error"] = fits["excess"].isna()
    fits["near"] = fits["excess"] <= NEAR
    fits["far"] = fits["excess"] > FAR
    fits["silent"] = ~fits["near"] & ~told
    fits["warned"] = fits["ended"].str.startswith("warning")
    fits["needless"] = fits["near"] & fits["warned"]
    lines = ["# Convergence at automatic rates", "", f"`python benchmarks/convergence/study.py`; {_scope(table)}.", ""]
    lines += _headline(fits, int(refused.sum()))
    for title, keys in (
        ("By kind and rows", ["kind", "rows"]),
        ("By problem", ["kind", "problem"]),
        ("By optimizer and schedule", ["optimizer", "schedule"]),
        ("By gradient and batch size", ["gradient", "batch"]),
    ):
        lines += ["", f"## {title}", "", *_shares(fits, keys)]
    lines += ["", "## Excess in %, median / worst, by optimizer and schedule", "", *_medians(fits)]
    return "\n".join([*lines, *_listed(fits)]) + "\n"


def _scope(table: pd.DataFrame) -> str:
    rows = " and ".join(f"{n:,}" for n in sorted(table["rows"].unique()))
    problems = len(table[["kind", "problem"]].drop_duplicates())
    return f"{len(table):,} combinations, {problems} problems of {table['kind'].nunique()} kinds, {rows} rows"


def _headline(fits: pd.DataFrame, n_refused: int) -> list[str]:
    n = max(1, len(fits))
    missed, errors = int((~fits["near"]).sum()), int(fits["ended_in_error"].sum())
    returned = fits[~fits["ended_in_error"]]
    above = int((returned["excess"] > NEAR).sum())
    seconds = fits["seconds"]
    return [
        f"- refused before training: {n_refused}; all that follows is of the other {len(fits):,}",
        f"- more than {NEAR:.0%} above the optimum, or an error: {missed:,} ({missed / n:.1%}); "
        f"returned models {above:,} ({above / n:.1%}), errors {errors:,} ({errors / n:.1%})",
        f"- returned models more than {FAR:.0%} above: {int(fits['far'].sum()):,} ({fits['far'].mean():.1%})",
        f"- **of those above {NEAR:.0%}, silent (neither warning nor error): {int(fits['silent'].sum()):,}**",
        f"- warned though within {NEAR:.0%}: {int(fits['needless'].sum()):,} ({fits['needless'].mean():.1%})",
        f"- excess of the returned: median {_percent(returned['excess'].median())}, "
        f"95th percentile {_percent(returned['excess'].quantile(0.95))}, worst {_percent(returned['excess'].max())}, "
        f"least {_percent(returned['excess'].min())} (below 0: a better optimum than the one found)",
        f"- seconds: {seconds.sum():,.0f} in all, median {seconds.median():.2f}, slowest {seconds.max():.1f}",
    ]


def _shares(fits: pd.DataFrame, keys: list[str]) -> list[str]:
    head = [*keys, "fits", f"> {NEAR:.0%} or error", "error", f"> {FAR:.0%}", "silent", "median excess", "seconds each"]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for group, part in fits.groupby(keys):
        cells = [*map(str, group), f"{len(part):,}", f"{1 - part['near'].mean():.1%}"]
        cells += [f"{part['ended_in_error'].mean():.1%}", f"{part['far'].mean():.1%}", str(int(part["silent"].sum()))]
        cells += [_percent(part["excess"].median()), f"{part['seconds'].mean():.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _medians(fits: pd.DataFrame) -> list[str]:
    kinds = list(dict.fromkeys(fits["kind"]))
    lines = [f"| optimizer | schedule | {' | '.join(kinds)} |", f"| --- | --- |{' --- |' * len(kinds)}"]
    for group, part in fits.groupby(["optimizer", "schedule"]):
        cells = []
        for kind in kinds:
            excess = part.loc[part["kind"] == kind, "excess"]
            errors = int(excess.isna().sum())
            shown = f"{_percent(excess.median())} / {_percent(excess.max())}" if excess.notna().any() else ""
            cells.append(f"{shown} {errors} errors".strip() if errors else shown)
        lines.append(f"| {' | '.join([*group, *cells])} |")
    return lines


def _listed(fits: pd.DataFrame) -> list[str]:
    """The worst that said nothing, and the sentences of those that did."""
    lines: list[str] = []
    silent = fits[fits["silent"]].sort_values("excess", ascending=False).head(MAX_LISTED)
    if len(silent):
        lines += ["", f"## Silent above {NEAR:.0%} (the worst {len(silent)})", ""]
        keys = ["kind", "problem", "rows", "optimizer", "schedule", "gradient", "batch"]
        for row in silent.itertuples():
            what = ", ".join(str(getattr(row, key)) for key in keys)
            crash = "" if row.ended == "fit" else f" ({row.ended})"
            lines.append(f"- {what}: {_percent(row.excess)} after {row.n_iter} epochs{crash}")
    said = fits.loc[fits["ended"] != "fit", "ended"].str.replace(r"[-+]?\d[\d.,e+-]*", "N", regex=True)
    if len(said):
        lines += ["", "## What was said (numbers as N)", ""]
        lines += [f"- {count} times: {text}" for text, count in said.value_counts().head(12).items()]
    return lines


def _percent(share: float) -> str:
    if pd.isna(share):
        return "-"
    value = 100 * share
    return f"{value:.1f}" if abs(value) < 100 else f"{value:.3g}"
