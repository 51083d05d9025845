"""Contenders of the user's own: estimators, addresses, spaces, failures; splits, weights and tuning around them."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import ParameterSampler
from sklearn.pipeline import make_pipeline

from tabsym import WideEncoder, WideRegressor, compare
from tabsym.cli import main
from tabsym.compare import Metric
from tabsym.compare.contenders import all_contenders, choose
from tabsym.datasets import make_retail
from tabsym.encoders import NativeCategories
from tests.custom_contenders import Mean, Names, ready

pytestmark = pytest.mark.usefixtures("in_process")

SALES = make_retail(240)


def run(table, target, contenders, tmp_path, **options):
    return compare(table, target, contenders=contenders, out=tmp_path / "o", quiet=True, **({"folds": 3} | options))


def test_names_and_the_constant():
    def names(contenders, task="regression"):
        return [one.name for one in choose(contenders, task)]

    everything = names(None)
    assert everything[0] == "constant"
    assert names(["wide"]) == ["constant", "wide"]
    assert names({"mine": Mean(), "wide": None}) == ["constant", "mine", "wide"]
    assert names({"mine": Mean(), "all": None}) == ["constant", "mine", *everything[1:]]
    with pytest.raises(ValueError, match=r"no contender 'nosuch'; there are constant, .*'all' for all"):
        names(["nosuch"])
    with pytest.raises(TypeError, match=r"not the text 'wide'; pass contenders=\['wide'\]"):
        names("wide")
    with pytest.raises(TypeError, match=r"Contender 'mine' is .*LinearRegression'>, which is not an estimator"):
        names({"mine": LinearRegression})
    with pytest.raises(TypeError, match=r"Contender 'mine' has no predict_proba, .*CalibratedClassifierCV"):
        names({"mine": LinearRegression()}, "binary")
    with pytest.raises(TypeError, match=r"pass estimators in a dict with names: contenders=\{'mine': \.\.\.\}"):
        names([LinearRegression()])
    with pytest.raises(ValueError, match="'constant' is the name of a built-in contender; give yours another name"):
        names({"constant": LinearRegression()})
    with pytest.raises(ValueError, match=r"'nomodule', which is not an address; write package\.module:factory"):
        names({"mine": "nomodule"})


@pytest.mark.slow
def test_own_columns_arrive_as_they_are(tmp_path):
    own = [name for name in SALES.columns if name != "sales"]
    result = run(SALES, "sales", {"mine": Mean(columns=own), "wide": None}, tmp_path)
    assert not result.failures
    row = result.ranking.set_index("name").loc["mine"]
    assert row["score"] == pytest.approx(result.ranking.set_index("name").loc["constant", "score"])
    assert row["label"] == "mine"


def test_polars_tables_reach_them_as_pandas(tmp_path):
    result = run(pl.from_pandas(SALES[["store", "sales"]]), "sales", {"mine": ready}, tmp_path)
    assert not result.failures


def test_class_names_reach_them_and_their_order_is_theirs(tmp_path):
    says = np.array(["no", "yes", "maybe"])[np.arange(90) % 3]
    table = pd.DataFrame({"says": says, "y": says})
    result = run(table, "y", {"mine": Names()}, tmp_path)
    assert result.ranking.iloc[0][["name", "score"]].tolist() == ["mine", 0.0]


@pytest.mark.slow
def test_addresses_from_the_shell(tmp_path, capsys):
    path = tmp_path / "sales.csv"
    SALES[["store", "colour", "sales"]].dropna().to_csv(path, index=False)
    arguments = ["compare", str(path), "--target", "sales", "--contenders", "constant", "--folds", "2"]
    arguments += [
        "--contender",
        "mine=tests.custom_contenders:factory",
        "--contender",
        "other=tests.custom_contenders:ready",
    ]
    arguments += ["--contender", "broken=tests.custom_contenders:nosuch", "--tune", "3", "--out", str(tmp_path / "out")]
    assert main(arguments) == 1  # as one of those that were asked for could not be made
    body = json.loads((tmp_path / "out" / "results.json").read_text())["contenders"]
    tuned = [fold["params"] for fold in body["mine"]["folds"].values()]
    assert all(set(params) <= {"ridge__alpha"} for params in tuned)
    assert [fold["tried"] for fold in body["mine"]["folds"].values()] == [3, 3]
    assert [fold["tried"] for fold in body["other"]["folds"].values()] == [1, 1]  # no space: its defaults
    assert (
        "it could not be made: AttributeError: module 'tests.custom_contenders' has no attribute 'nosuch'"
        in (body["broken"]["error"])
    )
    assert main([*arguments[:4], "--contender", "mine"]) == 2
    assert "--contender 'mine' is not of the form NAME=package.module:factory" in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.slow
def test_failures_are_sentences_and_the_rest_goes_on(tmp_path):
    class Local(Mean):
        def __reduce__(self):
            raise TypeError("cannot pickle a lock")

    own = {"fails": Mean(fails=True), "killed": Mean(killed=True), "local": Local(), "wide": None}
    result = run(SALES, "sales", own, tmp_path)
    assert result.failures["fails"] == "fold 1: ValueError: no column 'x' here"
    assert result.failures["killed"].startswith("the process was killed by SIGKILL")
    assert "after 0 of 3 folds" in result.failures["killed"]
    assert "cannot be sent to another process (TypeError: cannot pickle a lock)" in result.failures["local"]
    assert set(result.ranking["name"]) == {"constant", "wide"}
    assert "fails failed: fold 1: ValueError: no column 'x' here." in result.summary
    page = (result.folder / "report.html").read_text()
    assert "killed by SIGKILL" in page


def test_a_metric_of_ones_own_ranks_and_tunes(tmp_path):
    bias = Metric("bias", larger_is_better=False, score=lambda y, p: abs(float(np.mean(p) - np.mean(y))))
    own = {"mine": (Mean(share=0.2), {"share": [0.2, 1.0]})}
    result = run(SALES, "sales", own, tmp_path, metric=bias, tune=10)
    ranking = result.ranking.set_index("name")
    assert ranking.loc["mine", "score"] == pytest.approx(ranking.loc["constant", "score"])  # 1.0 was chosen
    assert {"bias", "rmse", "mae"} <= set(ranking.loc["mine", "scores"])
    assert "bias" in (result.folder / "report.html").read_text()


def test_a_metric_that_fails_is_said(tmp_path):
    def fails(y, p):
        raise ZeroDivisionError("no rows above 100")

    with pytest.raises(ValueError, match=r"metric 'mine' fails when called with \(y, p\): ZeroDivisionError: no rows"):
        run(SALES, "sales", ["constant"], tmp_path, metric=Metric("mine", False, fails))

    def fails_later(y, p):
        return fails(y, p) if len(y) < len(SALES) else 0.0

    result = run(SALES, "sales", ["constant"], tmp_path, metric=Metric("mine", False, fails_later))
    assert result.failures == {"constant": "fold 1: ZeroDivisionError: no rows above 100"}
    why = "Baseline (constant) failed: fold 1: ZeroDivisionError: no rows above 100."
    assert result.summary == ["No contender completed all folds.", why]
    assert list(result.ranking.columns) == ["name", "label", "score"]


@pytest.mark.slow
def test_weights_count_in_training_and_scores(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("uv"), 120), "y": rng.normal(size=120), "w": rng.integers(1, 5, 120)})
    twice = table.loc[table.index.repeat(table["w"])].reset_index(drop=True)
    weighted = run(
        table.assign(f=np.arange(120) % 3), "y", {"mine": Mean()}, tmp_path / "a", weight="w", fold_column="f"
    )
    fold = (np.arange(120) % 3).repeat(table["w"])
    repeated = run(twice.drop(columns="w").assign(f=fold), "y", {"mine": Mean()}, tmp_path / "b", fold_column="f")
    for metric in ("rmse", "mae", "r2"):
        one, other = (
            {row["name"]: row["scores"][metric] for row in r.ranking.to_dict("records")} for r in (weighted, repeated)
        )
        assert one == pytest.approx(other)
    no_weights = run(table, "y", {"mine": LinearWithout()}, tmp_path / "c", weight="w")
    assert "Trained without the sample weights, as their fit takes none: mine." in no_weights.summary


class LinearWithout(Mean):
    """Takes no weights."""

    def fit(self, X, y):
        self.mean_ = np.mean(y)
        return self


def test_counts_with_exposure_are_rates(tmp_path):
    rng = np.random.default_rng(0)
    exposure = rng.uniform(0.1, 3, 300)
    table = pd.DataFrame({"a": rng.choice(list("uv"), 300), "n": rng.poisson(2 * exposure), "e": exposure})
    table["log_e"] = np.log(exposure)
    result = run(table.drop(columns="log_e"), "n", {"mine": Mean()}, tmp_path / "a", exposure="e", task="count")
    again = run(table.drop(columns="e"), "n", {"mine": Mean()}, tmp_path / "b", offset="log_e", task="count")
    assert result.ranking["score"].tolist() == pytest.approx(again.ranking["score"].tolist())
    prediction = np.load(result.folder / "predictions" / "mine" / "0.npy")
    assert len(np.unique(np.round(prediction, 6))) > 50  # a rate times each row's exposure
    best = result.best.predict(table.head(5))
    np.testing.assert_allclose(best / exposure[:5], table["n"].sum() / exposure.sum())


@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline], ids=["itself", "in steps"])
def test_an_exposure_of_the_estimators_own_is_refused_beside_that_of_the_comparison(tmp_path, wrap):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": list("uv") * 30, "e": rng.uniform(1, 2, 60), "n": rng.poisson(2.0, 60)})
    model = wrap(WideRegressor(loss="poisson", exposure_column="e"))
    said = r"Contender 't' has exposure_column='e', .*leave exposure_column out .*exposure='e' \(--exposure\)"
    with pytest.raises(ValueError, match=said):
        run(table, "n", {"t": model}, tmp_path, exposure="e", task="count")
    assert not (tmp_path / "o").exists()
    assert not run(table, "n", {"t": model}, tmp_path, task="count").failures  # where it is a feature
    table["f"] = table["e"] + 1
    found = run(table, "n", {"t": "tests.custom_contenders:rates"}, tmp_path / "b", exposure="e", task="count")
    assert re.match(r"fold 1: .*is no column of the table.*\(leave exposure_column out", found.failures["t"])


def test_offsets_of_amounts_are_added_back(tmp_path):
    rng = np.random.default_rng(0)
    known = rng.normal(size=90) * 100
    table = pd.DataFrame({"a": rng.choice(list("uv"), 90), "known": known, "y": known + rng.normal(size=90)})
    result = run(table, "y", {"mine": Mean()}, tmp_path, offset="known")
    assert result.ranking["score"].max() < 1.5
    assert abs(result.best.predict(table) - known).max() < 1


def test_time_trains_on_the_past_only(tmp_path):
    days = pd.date_range("2024-01-01", periods=120).strftime("%Y-%m-%d")
    table = pd.DataFrame({"day": days, "a": ["u", "v"] * 60, "y": np.arange(120.0)})
    result = run(table, "y", {"mine": Mean()}, tmp_path, time="day", folds=3)
    scores = [fold["scores"]["mae"] for fold in json.loads((result.folder / "results.json").read_text())
              ["contenders"]["mine"]["folds"].values()]  # fmt: skip
    want = [np.mean(np.abs(np.arange(30 * k, 30 * k + 30) - np.arange(30 * k).mean())) for k in (1, 2, 3)]
    assert scores == pytest.approx(want)


def test_groups_are_no_feature(tmp_path):
    table = SALES.assign(who=[f"c{j % 30}" for j in range(len(SALES))])
    own = [name for name in SALES.columns if name != "sales"]
    result = run(table, "sales", {"mine": Mean(columns=own)}, tmp_path, groups="who")
    assert not result.failures
    assert "groups of &#39;who&#39; kept together" in (result.folder / "report.html").read_text()


def test_every_space_is_published():
    """docs/compare.md names every setting that is tuned, and each contender; and contenders know them."""
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text()
    for contender in all_contenders().values():
        assert f"`{contender.name}`" in page
        for task in ("binary", "multiclass", "regression", "count"):
            space = contender.space(task)
            assert all(f"`{name.rpartition('__')[2]}`" in page for name in space)
            sample = next(iter(ParameterSampler(space, 1, random_state=0)), {}) if space else {}
            contender.estimator(task, 0, 1, "model").set_params(**sample)


def test_one_contender_alone_has_a_report(tmp_path):
    result = run(SALES, "sales", ["constant"], tmp_path)
    assert (result.folder / "report.html").read_text().count("data:image/svg+xml") >= 3
    assert len(result.summary) == 2


def test_columns_that_are_numbers(tmp_path):
    table = pd.DataFrame({0: ["u", "v"] * 60, 1: np.arange(120) % 7, 2: np.arange(120) % 2 * 3.5 + 0.1})
    result = run(table.assign(**{}), 2, ["wide-additive"], tmp_path, task="regression", categorical=[1])
    assert not result.failures


def test_rare_classes_are_noted(tmp_path):
    table = pd.DataFrame({"a": ["u", "v"] * 30, "y": ["x", "y"] * 29 + ["rare", "x"]})
    result = run(table, "y", ["constant"], tmp_path)
    notes = json.loads((result.folder / "results.json").read_text())["settings"]["notes"]
    assert "Class of fewer than 5 rows, so that some folds have none: rare (1)." in notes


@pytest.mark.slow
def test_one_of_another_address_is_run_anew_by_resume(tmp_path, capsys):
    options = {"folds": 2, "out": tmp_path / "o"}
    first = compare(SALES, "sales", contenders={"mine": "tests.custom_contenders:Mean"}, quiet=True, **options)
    again = compare(SALES, "sales", contenders={"mine": "tests.custom_contenders:factory"}, resume=True, **options)
    said = "mine is run again: it was tests.custom_contenders:Mean, and is tests.custom_contenders:factory now."
    assert said in capsys.readouterr().out
    scores = [one.ranking.set_index("name")["score"] for one in (first, again)]
    assert scores[1]["mine"] != scores[0]["mine"] == scores[0]["constant"]
    assert scores[1]["constant"] == scores[0]["constant"]


@pytest.mark.processes
@pytest.mark.slow
def test_changed_code_behind_an_address_is_run_anew_by_resume(tmp_path, monkeypatch, capsys):
    """The score of what stood there before was kept, and told as that of the new code."""
    module = tmp_path / "changing_contender.py"
    text = "from sklearn.dummy import DummyRegressor\n\n\ndef make():\n    return DummyRegressor({})\n"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    options = {"contenders": {"mine": "changing_contender:make"}, "folds": 2, "out": tmp_path / "o"}
    module.write_text(text.format(""))
    first = compare(SALES, "sales", quiet=True, **options)
    compare(SALES, "sales", resume=True, **options)
    assert "run again" not in capsys.readouterr().out
    module.write_text(text.format('strategy="constant", constant=0.0'))
    again = compare(SALES, "sales", resume=True, **options)
    assert "mine is run again: the code of changing_contender has changed." in capsys.readouterr().out
    scores = [one.ranking.set_index("name")["score"] for one in (first, again)]
    assert scores[1]["mine"] > scores[0]["mine"] == scores[0]["constant"]


@pytest.mark.slow
def test_an_estimator_of_other_parameters_is_run_anew_by_resume(tmp_path, capsys):
    options = {"folds": 2, "out": tmp_path / "o"}
    pipes = [clone(ready).set_params(ridge__alpha=alpha) for alpha in (1.0, 1.0, 50.0)]
    said = []
    for number, pipe in enumerate(pipes):
        compare(SALES, "sales", contenders={"mine": pipe}, resume=number > 0, **options)
        said.append("mine is run again: the estimator or its space has changed." in capsys.readouterr().out)
    assert said == [False, False, True]


def test_of_an_error_only_the_first_line_is_said(tmp_path):
    class Wordy(Mean):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("\nno fit\nStack trace:\n  [bt] (0) lib.so")

    result = run(SALES, "sales", {"mine": Wordy()}, tmp_path, folds=2)
    assert result.failures["mine"] == "fold 1: RuntimeError: no fit"


@pytest.mark.slow
@pytest.mark.parametrize("booster", ["LGBMRegressor", "HistGradientBoostingRegressor"])
def test_an_estimator_that_takes_no_text_is_told_of_the_remedy(booster, tmp_path):
    """LightGBM's own message is of dtypes; what the remedy names works."""
    lightgbm = pytest.importorskip("lightgbm")
    few = {"LGBMRegressor": {"n_estimators": 5, "verbose": -1}, "HistGradientBoostingRegressor": {"max_iter": 5}}
    kind = lightgbm.LGBMRegressor if booster == "LGBMRegressor" else HistGradientBoostingRegressor
    model = kind(**few[booster])
    own = {
        "mine": model,
        "encoded": make_pipeline(WideEncoder(), model),
        "native": make_pipeline(NativeCategories(), model),
    }
    result = run(SALES, "sales", own, tmp_path, folds=2)
    assert set(result.failures) == {"mine"}
    for part in (f"{booster} that gets column", "make_pipeline(tabsym.WideEncoder(), ...)", "NativeCategories()"):
        assert part in result.failures["mine"]


def test_a_name_too_long_for_a_folder_is_refused_before_anything_is_fitted(tmp_path):
    with pytest.raises(ValueError, match="too long for a folder"):
        compare(SALES, "sales", contenders={"ü" * 200: DummyRegressor()}, folds=2, out=tmp_path / "out", quiet=True)
