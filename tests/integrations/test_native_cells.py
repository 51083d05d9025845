"""The study of benchmarks/native: cells that are run once, limits of time, and tables computed from them by hand."""

import argparse
import os
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabsym.compare.machine import cores

FOLDER = Path(__file__).parents[2] / "benchmarks" / "native"
sys.path.insert(0, str(FOLDER))

import cells as study  # noqa: E402
import figures as report  # noqa: E402


def arguments(out, **changes):
    options = {
        "tables": ["retail"], "contenders": ["constant", "wide-additive"], "folds": 2, "repeats": 1, "only_folds": [1],
        "seed": 0, "tune": None, "limit": 100.0, "max_rows": 300, "out": out,
    }  # fmt: skip
    return argparse.Namespace(**options | changes)


@pytest.mark.slow
def test_cells_are_run_once(tmp_path, monkeypatch):
    out = tmp_path / "cells.csv"
    study.run(arguments(out))
    cells = study.load(out)
    assert cells[["table", "contender", "fold"]].to_numpy().tolist() == [
        ["retail", "constant", 1],
        ["retail", "wide-additive", 1],
    ]
    ready = study.prepared("retail", 300)
    train, test = study.course_of("retail", arguments(out)).splits[1]
    want = np.sqrt(np.mean((ready.y[test] - ready.y[train].mean()) ** 2))
    assert cells["rmse"].iloc[0] == pytest.approx(want, rel=1e-6)
    assert (cells[["fit_seconds", "fit_cpu_seconds", "predict_row_seconds", "peak_bytes", "model_bytes"]] > 0).all(
        axis=None
    )
    assert (cells["error"] == "").all()
    assert cells["versions"].str.contains("tabsym ").all()
    monkeypatch.setattr(study, "cell", lambda *_: pytest.fail("it is there"))
    study.run(arguments(out))


@pytest.mark.slow
def test_a_limit_of_time_is_said_and_a_longer_one_tried(tmp_path):
    out = tmp_path / "cells.csv"
    one = {"contenders": ["constant"]}
    study.run(arguments(out, limit=0.05, **one))
    cells = study.load(out)
    assert cells["error"].iloc[0].startswith("stopped at the time limit of 0.05 s")
    assert report._why(cells, "retail", "constant") == "over 0.05 s"
    study.run(arguments(out, limit=100.0, **one))
    cells = study.load(out)
    assert len(cells) == 1
    assert cells["error"].iloc[0] == ""


def test_the_peers_have_addresses():
    made = runpy.run_path(str(FOLDER / "peers.py"))
    for address in study.PEERS.values():
        factory = made[address.removeprefix("peers:")]
        for task in ("binary", "regression"):
            model = factory(task, 0, 1)
            assert set(factory.space(task)) <= set(model.get_params())


def cells_by_hand():
    rows = []
    scores = {"wide": [0.9, 0.8, 0.7], "lightgbm": [0.8, 0.8, 0.6], "catboost": [0.95, np.nan, 0.8]}
    for name, values in scores.items():
        for fold, value in enumerate(values):
            error = "stopped at the time limit of 9 s after 0 of 3 folds" if np.isnan(value) else ""
            row = {"table": "t", "contender": name, "fold": fold, "rows": 10, "folds": 3, "seed": 0, "tune": ""}
            row |= {"metric": "auc", "auc": value, "error": error, "limit": 9, "fit_cpu_seconds": fold + 1.0}
            rows += [row, row | {"table": "u", "metric": "rmse", "auc": np.nan, "rmse": value}]
    return pd.DataFrame(rows, columns=study.COLUMNS)


@pytest.fixture
def cells(tmp_path):
    cells_by_hand().to_csv(tmp_path / "cells.csv", index=False)
    return report.cells_of(tmp_path / "cells.csv")


def test_differences_are_paired_by_fold(cells):
    scores = report.by_fold(cells, "t")
    gain, error, folds = report.difference(scores, "wide", "catboost", larger=True)
    assert (gain, folds) == (pytest.approx(-0.075), 2)
    tested_to_trained = 1 / 2  # of three folds
    assert error == pytest.approx(np.std([-0.05, -0.1], ddof=1) * np.sqrt(1 / 2 + tested_to_trained))
    assert report.difference(scores, "wide", "catboost", larger=False)[0] == pytest.approx(0.075)
    assert report.difference(scores, "wide", "xgboost", larger=True)[2] == 0


def test_means_are_of_the_folds_that_all_did(cells):
    """Folds 0 and 2: CatBoost did not finish the other."""
    (line,) = [line for line in report.claims(cells) if line.startswith("| t ")]
    assert line == "| t | auc | 2 | 0.8 | 0.7 |  | **0.875** | 2 | 2 |  | 2 | 1 |"


def test_ranks_over_tables(cells):
    ranks = report.ranks_of(cells)
    assert ranks.loc["CatBoost native"].tolist() == [1, 3, 2]
    assert ranks.loc["Wide model"].tolist() == [2, 2, 2]
    assert ranks.loc["LightGBM native"].tolist() == [3, 1, 2]


@pytest.mark.slow
def test_figures_are_drawn(cells, tmp_path):
    report.draw_ranks(cells, tmp_path / "ranks.png")
    report.draw_time(cells, tmp_path / "time.png")
    for name in ("ranks.png", "time.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_cores_are_those_that_the_process_may_use():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert cores() == len(before)
