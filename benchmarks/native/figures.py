"""The README's tables and the figures, from `results/*.csv`: one command each, seconds.

python benchmarks/native/figures.py                # all of it
python benchmarks/native/figures.py --only ranks   # or "time", or "tables": one figure, or the README's tables
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from cells import load  # noqa: E402

from tabsym.compare.contenders import all_contenders  # noqa: E402
from tabsym.compare.metrics import METRICS  # noqa: E402
from tabsym.compare.run import critical_difference, friedman, ranks_figure  # noqa: E402

DARK, LIGHT, GRID = "#12355b", "#8aa5c4", "#e5e5e5"

RESULTS = HERE / "results"
BEGIN, END = "<!-- tables: figures.py -->", "<!-- end of tables -->"
LARGER = {name: metric.larger_is_better for known in METRICS.values() for name, metric in known.items()}
MAIN = ["amazon", "kick", "usedcars", "chicago_taxi", "rossmann"]
PEERS = ["lightgbm", "xgboost", "catboost"]
SAMPLED = ["kdd99"]
MIN_FOLDS = 3  # for a standard error that anything is marked by
LABELS = {name: one.label for name, one in all_contenders().items()} | {
    "sklearn-target-lightgbm": "TargetEncoder (scikit-learn) + LightGBM",
    "wide-encoder-lightgbm": "WideEncoder + LightGBM",
    "ebm": "EBM",
    "ebm-additive": "EBM without interactions",
    "gpboost": "GPBoost",
}
SHORT = {
    "wide": "wide", "lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost",
    "hist-gradient-boosting": "Hist", "wide-lightgbm": "stack", "target-lightgbm": "target (ce)",
    "sklearn-target-lightgbm": "target (sk)", "wide-encoder-lightgbm": "WideEncoder", "modl-lightgbm": "MODL",
    "wide-crosses": "crosses", "tiws-lightgbm": "TIWS", "onehot-linear": "one-hot", "ebm": "EBM, pairs",
    "ebm-additive": "EBM", "gpboost": "GPBoost", "constant": "constant",
}  # fmt: skip


def cells_of(path: Path, tune: str = "") -> pd.DataFrame:
    """The cells of one budget, each table's at its largest number of rows; `score` is in the metric that ranks."""
    cells = load(path)
    cells = cells[cells["tune"] == tune]
    cells = cells[cells["rows"] == cells.groupby("table")["rows"].transform("max")].copy()
    cells["score"] = [row[row["metric"]] if row["error"] == "" else np.nan for _, row in cells.iterrows()]
    return cells


def by_fold(cells: pd.DataFrame, table: str, what: str = "score") -> pd.DataFrame:
    """Folds by contenders of one table; NaN where there is none. `attrs`: in how many parts its rows are split."""
    own = cells[cells["table"] == table]
    found = own.pivot(index="fold", columns="contender", values=what)
    found.attrs["parts"] = int(own["folds"].iloc[0])
    return found


def difference(scores: pd.DataFrame, one: str, other: str, larger: bool) -> tuple[float, float, int]:
    """By how much `one` is better than `other`, its standard error over folds, and the folds that both did.

    Training sets of folds share rows: the error is corrected for that (Nadeau and Bengio 2003, "Inference for the
    generalization error"), by the share of rows tested to rows trained on, one part to all others.
    """
    if one not in scores or other not in scores:
        return np.nan, np.nan, 0
    gain = (scores[one] - scores[other]).dropna() * (1 if larger else -1)
    error = gain.std(ddof=1) * np.sqrt(1.0 / len(gain) + 1.0 / (scores.attrs["parts"] - 1)) if len(gain) > 1 else np.nan
    return float(gain.mean()), float(error), len(gain)


def in_order(cells: pd.DataFrame) -> list[str]:
    """The tables that there are, those of many symbols first."""
    return [name for name in dict.fromkeys([*MAIN, *cells["table"]]) if name in set(cells["table"])]


def claims(cells: pd.DataFrame, one: str = "wide") -> list[str]:
    """The wide model, or a stack, beside the three boosters: score, and processor time of a fit."""
    own = SHORT[one]
    lines = [
        f"| table | metric | folds | {own} | LightGBM | XGBoost | CatBoost | fit s: {own} | LightGBM | XGBoost | "
        f"CatBoost | CatBoost's time / {own}'s |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for table in in_order(cells):
        scores, times = by_fold(cells, table), by_fold(cells, table, "fit_cpu_seconds")
        wanted = [one, *PEERS]
        have = [name for name in wanted if name in scores and scores[name].notna().any()]
        if one not in have:
            continue
        folds = scores[have].dropna().index
        metric = cells[cells["table"] == table]["metric"].iloc[0]
        means, seconds = scores.loc[folds].mean(), times.loc[folds].median()
        best = max(have, key=lambda name: means[name] * (1 if LARGER[metric] else -1))
        shown = [_bold(f"{means[n]:.5g}", n == best) if n in have else _why(cells, table, n) for n in wanted]
        taken = [f"{seconds[n]:.3g}" if n in have else "" for n in wanted]
        ratio = f"{seconds['catboost'] / seconds[one]:.3g}" if "catboost" in have else ""
        lines.append(f"| {table} | {metric} | {len(folds)} | {' | '.join(shown)} | {' | '.join(taken)} | {ratio} |")
    return lines


def gains(cells: pd.DataFrame, one: str = "wide", others: Sequence[str] = PEERS) -> list[str]:
    """By how much `one` is better than each of the others, with its standard error."""
    lines = [
        f"| table | metric | {' | '.join(f'than {SHORT[name]}' for name in others)} |",
        f"| --- | --- |{' ---: |' * len(others)}",
    ]
    for table in in_order(cells):
        scores = by_fold(cells, table)
        metric = cells[cells["table"] == table]["metric"].iloc[0]
        shown = [_gain(*difference(scores, one, other, LARGER[metric])) for other in others]
        lines.append(f"| {table} | {metric} | {' | '.join(shown)} |")
    return lines


def tuned(path: Path, budget: str) -> list[str]:
    """Those that were tuned: the scores, what tuning gave, what the search cost, and the wide model's lead."""
    cells, plain = cells_of(path, budget), cells_of(path)
    who = [name for name in ["wide", *PEERS] if name in set(cells["contender"])]
    names = [SHORT[name] for name in who]
    scores = [
        f"| table | metric | folds | {' | '.join(names)} | search and fit s: {' | '.join(names)} |",
        f"| --- | --- | ---: |{' ---: |' * 2 * len(who)}",
    ]
    given = [f"| table | metric | {' | '.join(names)} |", f"| --- | --- |{' ---: |' * len(who)}"]
    for table in in_order(cells):
        part = cells[cells["table"] == table]
        metric, larger = part["metric"].iloc[0], LARGER[part["metric"].iloc[0]]
        own, before = by_fold(cells, table), by_fold(plain, table)
        have = [name for name in who if name in own and own[name].notna().any()]
        both = own[have].dropna()
        means = both.mean()
        best = max(have, key=lambda name: means[name] * (1 if larger else -1))
        spent = part.assign(spent=part["tune_seconds"] + part["fit_seconds"]).groupby("contender")["spent"].median()
        shown = [_bold(f"{means[n]:.5g}", n == best) if n in have else _why(cells, table, n) for n in who]
        times = [f"{spent[n]:.3g}" if n in have else "" for n in who]
        scores.append(f"| {table} | {metric} | {len(both)} | {' | '.join(shown)} | {' | '.join(times)} |")
        gained = []
        for name in who:
            pair = pd.DataFrame({"tuned": own.get(name), "plain": before.get(name)}).astype(float)
            pair.attrs |= own.attrs
            gained.append(_gain(*difference(pair, "tuned", "plain", larger)))
        given.append(f"| {table} | {metric} | {' | '.join(gained)} |")
    return [*scores, "", "By how much the tuned wide model is better than the others, tuned:", "", *gains(cells), "",
            "What tuning gave (paired with the defaults on the same folds):", "", *given]  # fmt: skip


def budgets_of(path: Path) -> list[str]:
    """The budgets of tuning that there are cells of."""
    return [budget for budget in dict.fromkeys(load(path)["tune"]) if budget]


def _gain(gain: float, error: float, folds: int) -> str:
    if not folds:
        return ""
    if folds == 1:
        return f"{gain:+.3g} (1 fold)"
    text = f"{gain:+.3g} ± {error:.2g} ({folds})"
    if folds < MIN_FOLDS:
        return text
    return f"**{text}**" if gain > 2 * error else f"_{text}_" if gain < -2 * error else text


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _why(cells: pd.DataFrame, table: str, contender: str) -> str:
    """Why a contender has no score on a table; nothing where it was not run."""
    errors = cells[(cells["table"] == table) & (cells["contender"] == contender)]["error"]
    errors = errors[errors != ""]
    if not len(errors):
        return ""
    if errors.iloc[0].startswith("stopped at the time limit"):
        limit = cells.loc[errors.index[0], "limit"]
        return f"over {limit:g} s"
    return errors.iloc[0].split(": ", 1)[-1][:60]


def every(cells: pd.DataFrame, table: str) -> list[str]:
    """All contenders on one table, best first: by the difference to the wide model where some did fewer folds."""
    part = cells[cells["table"] == table]
    metric, larger = part["metric"].iloc[0], LARGER[part["metric"].iloc[0]]
    scores = by_fold(cells, table)
    lines = [
        f"### {table}",
        "",
        f"{part['rows'].iloc[0]:,} rows, {metric}.",
        "",
        f"| contender | folds | {metric} (sd) | better than wide by (± s.e.) | fit s, processor | fit s, wall "
        "| predict µs/row | one row ms | peak MB | model MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    level = placed(scores, larger) if "wide" in scores else scores.mean()  # some did fewer folds
    order = sorted(scores.columns, key=lambda n: (np.isnan(level[n]), level[n] * (-1 if larger else 1)))
    for name in order:
        own = part[(part["contender"] == name) & (part["error"] == "")]
        if own.empty:
            lines.append(f"| {LABELS.get(name, name)} | 0 | {_why(cells, table, name)} | | | | | | | |")
            continue
        lines.append(_line(name, own, scores, larger, _why(cells, table, name)))
    return [*lines, ""]


def _line(name: str, own: pd.DataFrame, scores: pd.DataFrame, larger: bool, why: str) -> str:
    middle = own[["fit_cpu_seconds", "fit_seconds", "predict_row_seconds", "one_row_seconds", "model_bytes"]].median()
    spread = f" ({own['score'].std(ddof=1):.2g})" if len(own) > 1 else ""
    to_wide = "" if name == "wide" else _gain(*difference(scores, name, "wide", larger))
    size = "" if np.isnan(middle["model_bytes"]) else f"{middle['model_bytes'] / 1e6:.3g}"
    return (
        f"| {LABELS.get(name, name)} | {len(own)}{f' ({why})' if why else ''} | {own['score'].mean():.5g}{spread} "
        f"| {to_wide} | {middle['fit_cpu_seconds']:.3g} | {middle['fit_seconds']:.3g} "
        f"| {1e6 * middle['predict_row_seconds']:.3g} | {1e3 * middle['one_row_seconds']:.3g} "
        f"| {own['peak_bytes'].max() / 1e6:.0f} | {size} |"
    )


def placed(scores: pd.DataFrame, larger: bool) -> pd.Series:
    """Scores that can be compared where some did fewer folds: the wide model's mean, and the mean difference to it.

    The difference is of the folds that both did; NaN: none.
    """
    sign = 1 if larger else -1
    gains = {name: difference(scores, name, "wide", larger)[0] for name in scores}
    return float(scores["wide"].mean()) + sign * pd.Series(gains)


def ranks_of(cells: pd.DataFrame) -> pd.DataFrame:
    """Ranks of the contenders that took part in every table, by `placed`; failures are last."""
    tables = in_order(cells)
    everywhere = set.intersection(*(set(by_fold(cells, table).columns) for table in tables)) - {"constant"}
    ranks = {}
    for table in tables:
        larger = LARGER[cells[cells["table"] == table]["metric"].iloc[0]]
        ranks[table] = placed(by_fold(cells, table)[sorted(everywhere)], larger).rank(
            ascending=not larger, na_option="bottom"
        )
    found = pd.DataFrame(ranks)
    found.index = [LABELS.get(name, name) for name in found.index]
    found["mean"] = found.mean(axis=1)
    return found.sort_values("mean", kind="stable")


def ranking(cells: pd.DataFrame, who: str) -> list[str]:
    """Mean ranks in words and as a table."""
    ranks = ranks_of(cells)
    n_tables = ranks.shape[1] - 1
    critical, p = critical_difference(len(ranks), n_tables), friedman(ranks)
    tables = list(ranks.columns[:-1])
    lines = [
        f"{who} on {n_tables} tables, by their differences to the wide model on the folds that both did (failures "
        f"last). Friedman's test that all are equal: p {p:.2g}; critical difference (Nemenyi, 5 %): {critical:.2f} "
        "ranks.",
        "",
        f"| contender | mean rank | {' | '.join(tables)} |",
        f"| --- | ---: | {' | '.join(['---:'] * n_tables)} |",
    ]
    lines += [
        f"| {name} | {row['mean']:.2f} | {' | '.join(f'{row[table]:g}' for table in tables)} |"
        for name, row in ranks.iterrows()
    ]
    return lines


def ranked(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that ranks are made of: of whole tables, at the usual limit."""
    return cells[~cells["table"].isin(SAMPLED)]


def draw_ranks(cells: pd.DataFrame, path: Path) -> None:
    ranks = ranks_of(ranked(cells))
    figure = ranks_figure(ranks["mean"], critical_difference(len(ranks), ranks.shape[1] - 1))
    figure.axes[0].set_xlabel("mean rank over tables (better to the left;\nthe band: the critical difference)")
    figure.savefig(path, dpi=110)


def draw_time(cells: pd.DataFrame, path: Path) -> None:
    """A panel for each table: the score (`placed`) over the processor time of a fit."""
    from matplotlib.figure import Figure

    tables = in_order(cells)
    columns = min(3, len(tables))
    rows = -(-len(tables) // columns)
    figure = Figure(figsize=(5.2 * columns, 4.0 * rows), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    points = [_panel(panel, cells, table) for panel, table in zip(panels, tables, strict=False)]
    for panel in panels[len(tables) :]:
        panel.set_visible(False)
    figure.set_dpi(110)
    figure.draw_without_rendering()  # where panels stand, which names are placed by
    figure.set_layout_engine("none")
    for panel, own in zip(panels, points, strict=False):
        _name(panel, own)
    figure.savefig(path, dpi=110)


def _panel(panel: Any, cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Draw all but names; the points whose names are to be written."""
    part = cells[(cells["table"] == table) & (cells["error"] == "") & (cells["contender"] != "constant")]
    metric = part["metric"].iloc[0]
    means = part.groupby("contender")[["fit_cpu_seconds"]].median()
    means["score"] = placed(by_fold(cells, table), LARGER[metric])
    means = means.dropna()
    shown = _near(means["score"], LARGER[metric])
    for name, row in means[shown].iterrows():
        own = str(name).startswith(("wide", "modl", "tiws"))
        panel.plot(row["fit_cpu_seconds"], row["score"], "o", color=DARK if own else LIGHT, markersize=6)
    left = [SHORT.get(str(name), str(name)) for name in means.index[~shown]]
    folds = part.groupby("contender")["fold"].nunique()
    said = (
        f"{folds.min()} to {folds.max()} folds"
        if folds.min() < folds.max()
        else f"{folds.max()} fold{'s' if folds.max() > 1 else ''}"
    )
    panel.set_title(f"{table}, {metric}, {said}" + (f"\nfar worse: {', '.join(left)}" if left else ""), fontsize=9)
    panel.set_xscale("log")
    panel.xaxis.set_minor_formatter("")  # less than a decade would be labelled all over
    panel.margins(x=0.2, y=0.12)
    if not LARGER[metric]:
        panel.invert_yaxis()  # better is up, whatever the metric
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8)
    panel.grid(color=GRID)
    panel.set_axisbelow(True)
    panel.set_xlabel("fit, seconds of processor time", fontsize=8)
    return means[shown].sort_values("score")


def _name(panel: Any, points: pd.DataFrame) -> None:
    """Write names beside points: each where it lies on no other name and no point, with a line where that is far."""
    to_pixels = panel.transData.transform
    places = to_pixels(points[["fit_cpu_seconds", "score"]].to_numpy())
    unit = panel.figure.dpi / 72
    taken = [(x - 4 * unit, y - 4 * unit, x + 4 * unit, y + 4 * unit) for x, y in places]
    frame = panel.get_window_extent()
    for name, (x, y) in zip(points.index, places, strict=True):
        text = SHORT.get(str(name), str(name))
        width, height = 4.6 * len(text) * unit, 9 * unit
        tried = []
        for far in (6, 14, 24, 36, 50):
            for turn in (0.0, 0.5, -0.5, 1.0, np.pi - 0.5, np.pi, np.pi + 0.5, -1.0, np.pi / 2, -np.pi / 2):
                dx, dy = far * unit * np.cos(turn), far * unit * np.sin(turn)
                left = x + dx if np.cos(turn) > 0.1 else x + dx - width if np.cos(turn) < -0.1 else x - width / 2
                box = (left, y + dy - height / 2, left + width, y + dy + height / 2)
                inside = frame.x0 <= box[0] and box[2] <= frame.x1 + 20 * unit and frame.y0 <= box[1] <= frame.y1
                tried.append((sum(_overlap(box, one) for one in taken) + (0 if inside else 1e4), len(tried), far, box))
        _, _, far, box = min(tried)
        taken.append(box)
        line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.6} if far > 14 else None
        at = ((box[0] - x) / unit, ((box[1] + box[3]) / 2 - y) / unit)
        panel.annotate(
            text, points.loc[name, ["fit_cpu_seconds", "score"]], at, textcoords="offset points", fontsize=8,
            va="center", arrowprops=line,
        )  # fmt: skip


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The area that two boxes share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)


def _near(scores: pd.Series, larger: bool) -> pd.Series:
    """Which are not so far behind that all others would lie on top of one another."""
    best = scores.max() if larger else scores.min()
    behind = (scores - best).abs()
    return (behind <= max(4 * float(behind.median()), 1e-12)) | (scores.index == "wide")


def write_tables(cells: pd.DataFrame, source: Path, path: Path) -> None:
    """The part of the README between the two marks, written anew."""
    text = path.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    whole = ranked(cells)
    few = whole[whole["contender"].isin(["wide", "wide-lightgbm", *PEERS, "hist-gradient-boosting"])]
    parts = ["## The wide model and three boosters", "", *claims(cells), "",
             "By how much the wide model is better (negative: worse), paired by fold, ± standard error over (folds); "
             "**bold**: better by more than two of these, _italic_: worse (from three folds on).", "",
             *gains(cells), "",
             "## The stack and three boosters", "", "The contender `wide-lightgbm`, `WideBoost*()` at its "
             "defaults.", "", *claims(cells, "wide-lightgbm"), "", "By how much the stack is better, and than the wide "
             "model below it:", "", *gains(cells, "wide-lightgbm", [*PEERS, "wide"]), "",
             "## Ranks", "", "kdd99 is left out: a sample, and CatBoost was stopped earlier there than elsewhere.", "",
             *ranking(few, "The wide model, the stack and the boosters"), "",
             *ranking(whole, "Those that took part everywhere,")]  # fmt: skip
    for budget in budgets_of(source):
        parts += ["", f"## Tuned: {budget} for everybody", "", *tuned(source, budget)]
    parts += ["", "## Every contender, table by table", ""]
    for table in in_order(cells):
        parts += every(cells, table)
    path.write_text(f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["tables", "ranks", "time"])
    parser.add_argument("--cells", type=Path, default=RESULTS / "cells.csv")
    parser.add_argument("--tune", default="", help="the budget whose cells are shown, such as '10 settings'")
    args = parser.parse_args()
    cells = cells_of(args.cells, args.tune)
    if args.only in (None, "tables"):
        write_tables(cells, args.cells, HERE / "README.md")
    if args.only in (None, "ranks"):
        draw_ranks(cells, RESULTS / "ranks.png")
    if args.only in (None, "time"):
        draw_time(cells, RESULTS / "time.png")


if __name__ == "__main__":
    main()
