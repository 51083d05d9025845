"""Tables and figures of the study, from the CSVs of `run.py`.

    python benchmarks/paper_deep/report.py [--out results] [--readme]

Writes tables.md, cells.csv (a row per cell: both losses, their paired
difference and its test) and a figure per network and table. With --readme
also puts the tables of the README in their places.

Differences are paired by repetition (same first values, same order of rows):
a t-test, Holm-corrected over the cells of a table, network and setting.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd
from problems import TABLES
from scipy import stats

HERE = Path(__file__).parent
CELL = ["model", "dataset", "setting", "optimizer", "batch_size"]
FAMILY = CELL[:3]
OPTIMIZERS = {"sgd": "SGD", "adagrad": "Adagrad", "adam": "Adam"}
SETTINGS = {"paper": "the paper's setting: learning rate .001", "tuned": "each side at its best learning rate"}
MODELS = {"mlp": "MLP", "resnet": "ResNet"}
STYLES = {"gse": ("with GSE", "#d7301f", "o", "-"), "mean": ("without GSE", "#1b3a6b", "s", "--")}
BATCH_SIZES = [32, 64, 128, 256, 512, 1024]
LEVEL = 0.05
STUCK = 0.99
"""A network whose test loss is above this share of the best constant's has learned nothing of use."""


# -- the cells ------------------------------------------------------------


def compare(fits: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """A row per cell: mean and standard deviation of both, and the paired difference GSE - mean with its test."""
    fits = fits.merge(baselines[["dataset", "rows", "model", "constant_loss"]])
    fits["stuck"] = ~(fits["test_loss"] < STUCK * fits["constant_loss"])
    groups = [(key, cell) for key, cell in fits.groupby(CELL) if cell["estimator"].nunique() == len(STYLES)]
    rows = [dict(zip(CELL, key, strict=True)) | _paired(cell) for key, cell in groups]
    cells = pd.DataFrame(rows)
    cells["p_holm"] = cells.groupby(FAMILY)["p"].transform(lambda p: holm(p.to_numpy()))
    lower = np.where(cells["difference"] < 0, "gse", "mean")
    cells["lower"] = np.where(cells["p_holm"] < LEVEL, lower, "")
    for name, order in (("dataset", TABLES), ("model", MODELS), ("optimizer", OPTIMIZERS), ("setting", SETTINGS)):
        cells[name] = pd.Categorical(cells[name], list(order))
    return cells.sort_values(CELL).reset_index(drop=True)


def _paired(cell: pd.DataFrame) -> dict:
    loss = cell.pivot(index="repetition", columns="estimator", values="test_loss").reindex(columns=list(STYLES))
    score = cell.groupby("estimator")["test_score"].mean()
    rate, stuck = cell.groupby("estimator")["rate"].first(), cell.groupby("estimator")["stuck"].sum()
    values: dict = {"n": int(loss.notna().all(axis=1).sum())}
    for side in STYLES:
        values |= {f"rate_{side}": rate.get(side), f"loss_{side}": loss[side].mean(), f"sd_{side}": loss[side].std()}
        values |= {f"score_{side}": score.get(side), f"stuck_{side}": int(stuck.get(side))}
    difference = (loss["gse"] - loss["mean"]).dropna()
    values |= {"difference": difference.mean(), "sd_difference": difference.std(), "p": t_test(difference.to_numpy())}
    return values


def t_test(difference: np.ndarray) -> float:
    """Two-sided p of a mean difference of zero; nothing to test where all differences are alike."""
    if len(difference) < 2 or not np.isfinite(difference).all():
        return math.nan
    if np.ptp(difference) == 0:
        return 1.0 if difference[0] == 0 else math.nan
    return float(stats.ttest_1samp(difference, 0.0).pvalue)


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's correction; cells without a test stay out."""
    adjusted = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known])]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


# -- tables ---------------------------------------------------------------


def number(value: float, digits: int = 4) -> str:
    """`.5379`: without a leading zero."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def baselines_table(baselines: pd.DataFrame) -> str:
    """What an untrained network and a constant lose."""
    head = ["table", "network", "rows (train)", "columns", "categories", "ln(classes)", "untrained network"]
    rows = []
    for name in TABLES:
        for one in baselines[baselines["dataset"] == name].itertuples():
            classes = "-" if one.outputs == 1 else number(math.log(one.outputs), 3)
            losses = [number(one.untrained_loss, 3), number(one.constant_loss, 3)]
            rows.append([TABLES[name].title, MODELS[one.model], f"{one.rows} ({one.train_rows})", str(one.columns),
                         str(one.categories), classes, *losses])  # fmt: skip
    return table([*head, "best constant"], rows)


def losses_table(cells: pd.DataFrame, model: str, setting: str) -> str:
    """`GSE / without` for each table, optimizer and batch size; bold where lower beyond chance."""
    part = cells[(cells["model"] == model) & (cells["setting"] == setting)]
    if part.empty:
        return "Not run."
    sizes = sorted(part["batch_size"].unique())
    rows = []
    for (name, optimizer), group in part.groupby(["dataset", "optimizer"], observed=True):
        by_size = group.set_index("batch_size")
        shown = [_pair(by_size.loc[size]) if size in by_size.index else "" for size in sizes]
        rows.append([TABLES[name].title, OPTIMIZERS[optimizer], *shown])
    return table(["table", "optimizer", *[f"batch {size}" for size in sizes]], rows)


def _pair(cell: pd.Series) -> str:
    shown = [number(cell[f"loss_{side}"]) if np.isfinite(cell[f"loss_{side}"]) else "diverged" for side in STYLES]
    if cell["lower"]:
        ahead = list(STYLES).index(cell["lower"])
        shown[ahead] = f"**{shown[ahead]}**"
    return " / ".join(shown)


def counts_table(cells: pd.DataFrame) -> str:
    """Of the cells of each network, setting and optimizer: in how many each side is lower, and by how much."""
    head = ["network", "setting", "optimizer", "cells", "GSE lower", "not significant", "GSE higher"]
    rows = []
    for (model, setting, optimizer), part in cells.groupby(["model", "setting", "optimizer"], observed=True):
        share = part["difference"] / part["loss_mean"]
        wins, losses = (part["lower"] == "gse").sum(), (part["lower"] == "mean").sum()
        shown = [wins, len(part) - wins - losses, losses, f"{100 * share.median():+.2f} %"]
        spread = f"{100 * share.min():+.1f} % to {100 * share.max():+.1f} %"
        stuck = " / ".join(f"{100 * part[f'stuck_{side}'].sum() / part['n'].sum():.0f} %" for side in STYLES)
        rows.append([MODELS[model], setting, OPTIMIZERS[optimizer], str(len(part)), *map(str, shown), spread, stuck])
    return table([*head, "median difference", "from, to", "networks no better than a constant"], rows)


def by_table(cells: pd.DataFrame) -> str:
    """For each table and optimizer: cells in which each side is lower, and the mean relative difference."""
    rows = []
    for (model, name, optimizer), part in cells.groupby(["model", "dataset", "optimizer"], observed=True):
        shown = [_verdict(part[part["setting"] == setting]) for setting in SETTINGS]
        rows.append([MODELS[model], TABLES[name].title, OPTIMIZERS[optimizer], *shown])
    return table(["network", "table", "optimizer", "rate .001", "best rates"], rows)


def _verdict(part: pd.DataFrame) -> str:
    if part.empty:
        return "not run"
    wins, losses = (part["lower"] == "gse").sum(), (part["lower"] == "mean").sum()
    share = 100 * part["difference"] / part["loss_mean"]
    spread = f"{share.mean():+.1f} % ({share.min():+.1f} to {share.max():+.1f})"
    return f"{wins} / {len(part) - wins - losses} / {losses}; {spread}"


def rates_table(cells: pd.DataFrame) -> str:
    """The chosen rates, `GSE / without`, for each table, optimizer and batch size."""
    part = cells[cells["setting"] == "tuned"]
    if part.empty:
        return "Not run."
    sizes = sorted(part["batch_size"].unique())
    rows = []
    for (model, name, optimizer), group in part.groupby(["model", "dataset", "optimizer"], observed=True):
        by_size = group.set_index("batch_size")
        shown = [
            f"{by_size.loc[size, 'rate_gse']:g} / {by_size.loc[size, 'rate_mean']:g}" if size in by_size.index else ""
            for size in sizes
        ]
        rows.append([MODELS[model], TABLES[name].title, OPTIMIZERS[optimizer], *shown])
    return table(["network", "table", "optimizer", *[f"batch {size}" for size in sizes]], rows)


def all_tables(cells: pd.DataFrame, baselines: pd.DataFrame) -> dict[str, str]:
    """Every table by the name of its place in the README."""
    made = {"baselines": baselines_table(baselines), "counts": counts_table(cells), "by table": by_table(cells)}
    for model in MODELS:
        for setting in SETTINGS:
            made[f"{model} {setting}"] = losses_table(cells, model, setting)
    return made | {"rates": rates_table(cells)}


def put_in_readme(tables: dict[str, str]) -> None:
    """Replace what stands between the marks of each table."""
    path = HERE / "README.md"
    text = path.read_text(encoding="utf-8")
    for name, made in tables.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if begin in text:
            before, rest = text.split(begin)
            text = f"{before}{begin}{made}\n{end}{rest.split(end)[1]}"
    path.write_text(text, encoding="utf-8")


# -- figures --------------------------------------------------------------


def draw(cells: pd.DataFrame, baseline: pd.Series, path: Path) -> None:
    """Test loss by batch size: a column per optimizer, a row per setting."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.4), layout="constrained")
    for row, (setting, title) in zip(axes, SETTINGS.items(), strict=True):
        for ax, optimizer in zip(row, OPTIMIZERS, strict=True):
            part = cells[(cells["setting"] == setting) & (cells["optimizer"] == optimizer)]
            if part.empty:
                ax.text(0.5, 0.5, "not run", ha="center", va="center", transform=ax.transAxes)
                ax.set_axis_off()
                continue
            _panel(ax, part, baseline, untrained=setting == "paper")
            ax.set_title(f"{OPTIMIZERS[optimizer]}, {title}", fontsize=9)
        row[0].set_ylabel(_unit(baseline["dataset"]))
    for ax in axes[1]:
        ax.set_xlabel("batch size (rows)")
    n = int(cells["n"].min())
    figure.suptitle(f"{TABLES[baseline['dataset']].title}, {MODELS[baseline['model']]}: test loss after 10 epochs "
                    f"(mean and standard deviation of {n} repetitions)", fontsize=11)  # fmt: skip
    figure.legend(handles=_legend(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def _unit(name: str) -> str:
    return "squared error (price / its sd)" if TABLES[name].regression else "cross-entropy (nats)"


def _panel(ax, part: pd.DataFrame, baseline: pd.Series, untrained: bool) -> None:
    for shift, (side, (_, colour, marker, line)) in zip((0.97, 1.03), STYLES.items(), strict=True):
        x = part["batch_size"] * shift  # side by side, so that bars do not hide each other
        ax.errorbar(x, part[f"loss_{side}"], part[f"sd_{side}"], color=colour, marker=marker, linestyle=line,
                    markersize=4, linewidth=1.4, capsize=2, elinewidth=0.8)  # fmt: skip
    _constant(ax, baseline["constant_loss"])
    if untrained:
        ax.axhline(baseline["untrained_loss"], color="#7a9a4a", linestyle="-.", linewidth=1.2)
    ax.set_xscale("log", base=2)
    ax.set_xlim(BATCH_SIZES[0] / 1.3, BATCH_SIZES[-1] * 1.3)
    ax.set_xticks(BATCH_SIZES, [str(size) for size in BATCH_SIZES])
    ax.grid(color="#e6e6e6", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def _constant(ax, loss: float) -> None:
    """The best constant's loss as a line, or in words where the line would press the curves flat."""
    low, high = ax.get_ylim()
    if loss - high < high - low:
        ax.axhline(loss, color="grey", linestyle=":", linewidth=1.4)
    else:
        ax.text(0.02, 0.96, f"best constant: {number(loss, 2)}", color="grey", va="top", transform=ax.transAxes)


def _legend() -> list:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle=line, label=label)
        for label, colour, marker, line in STYLES.values()
    ]
    handles.append(Line2D([], [], color="grey", linestyle=":", label="best constant"))
    handles.append(Line2D([], [], color="#7a9a4a", linestyle="-.", label="untrained network (upper row)"))
    return handles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the CSVs")
    parser.add_argument("--readme", action="store_true", help="put the tables into the README")
    args = parser.parse_args()
    baselines = pd.read_csv(args.out / "baselines.csv")
    cells = compare(pd.read_csv(args.out / "fits.csv"), baselines)
    cells.to_csv(args.out / "cells.csv", index=False, float_format="%.5g", lineterminator="\n")
    tables = all_tables(cells, baselines)
    text = "\n\n".join(f"## {name}\n\n{made}" for name, made in tables.items())
    (args.out / "tables.md").write_text(text + "\n", encoding="utf-8")
    if args.readme:
        put_in_readme(tables)
    for _, baseline in baselines.iterrows():
        part = cells[(cells["model"] == baseline["model"]) & (cells["dataset"] == baseline["dataset"])]
        draw(part, baseline, args.out / f"{baseline['model']}_{baseline['dataset']}.png")


if __name__ == "__main__":
    main()
