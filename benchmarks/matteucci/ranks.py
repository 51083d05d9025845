"""Ranks of encoders, and what they come to together: the aggregations of the benchmark.

Each table, model and measure ranks the encoders by their mean over folds (best 1, ties share the least rank).
"mean rank", "median rank", "best" (how often first), "worst" (how often last); "mean" (of the quality), "near best"
(how often within 5 % of the best of the table), "rescaled" (quality over the worst of the table, in interquartile
ranges of it). Kemeny's consensus
needs a solver under a licence, Nemenyi's tests many more tables; both are left out.
"""

from __future__ import annotations

import pandas as pd

MEASURES = ("accuracy", "auc", "f1", "balanced accuracy", "auc-scores")
NEAR = 0.95
LESS_IS_BETTER = {"mean rank": True, "median rank": True, "best": False, "worst": True, "mean": False,
                  "near best": False, "rescaled": False}  # fmt: skip


def aggregate(scores: pd.DataFrame) -> pd.DataFrame:
    """A row per encoder: each aggregation, over all tables, models and measures; and mean ranks model by model."""
    long = scores.melt(["table", "encoder", "model", "fold"], MEASURES, var_name="measure", value_name="quality")
    # what was not run for every encoder, or not for every fold, would rank some of them among fewer
    long = long[long.groupby(["table", "encoder", "model", "measure"])["fold"].transform("nunique") == 5]
    mean = long.groupby(["table", "model", "measure", "encoder"])["quality"].mean()
    by = mean.unstack("encoder")
    by = by.dropna(axis=1, thresh=1)
    ranks = by.rank(axis=1, ascending=False, method="min")
    out = pd.DataFrame({"mean rank": ranks.mean(), "median rank": ranks.median()})
    out["best"] = ranks.eq(ranks.min(axis=1), axis=0).sum()
    out["worst"] = ranks.eq(ranks.max(axis=1), axis=0).sum()
    out["mean"] = by.mean()
    of_table = mean.groupby(["table", "measure"])
    best = of_table.transform("max").unstack("encoder")
    out["near best"] = by.ge(NEAR * best).sum()
    worst = of_table.transform("min").unstack("encoder")
    spread = of_table.transform(lambda one: one.quantile(0.75) - one.quantile(0.25)).unstack("encoder")
    out["rescaled"] = ((by - worst) / spread).mean()
    for model in scores["model"].unique():
        out[model] = ranks.xs(model, level="model").mean()
    return out.sort_values("mean rank")


def markdown(table: pd.DataFrame) -> str:
    """The table, with each aggregation's rank in brackets."""
    lines = ["| encoder | " + " | ".join(table) + " |", "| --- |" + " ---: |" * table.shape[1]]
    places = {name: table[name].rank(ascending=less, method="min").astype(int) for name, less in LESS_IS_BETTER.items()}
    for encoder, row in table.iterrows():
        cells = [f"{row[name]:.3g}" + (f" ({places[name][encoder]})" if name in places else "") for name in table]
        lines.append(f"| {encoder} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
