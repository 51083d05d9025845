"""Gains of single columns: equal to a naive model of each, near 1 for what gives the target away, near 0 for noise."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabsym import compare
from tabsym.compare.column_gains import LEAK, column_gains, has_gain, leak_sentences, source_column
from tabsym.compare.metrics import choose_metric
from tabsym.compare.results import prediction_path
from tabsym.compare.table.files import ReadOptions
from tabsym.compare.table.prepare import RoleColumns, prepare

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import leaks as study

pytestmark = pytest.mark.usefixtures("in_process")

RANKING = [
    {"name": "ideal", "label": "Ideal", "verdict": "best", "p_adjusted": None},
    {"name": "constant", "label": "Baseline", "verdict": "worse", "p_adjusted": 0.001},
]


def measured(folder, table, ideal, task, *, metric=None, categorical=(), **roles):
    """Gains by column where the best contender predicts `ideal`: a rate, a value, or probabilities of each row."""
    prepared = prepare(
        table, "y", task=task, roles=RoleColumns(**roles), reading=ReadOptions(categorical=list(categorical))
    )
    n = len(prepared.y)
    rows = np.random.default_rng(0).permutation(n)
    splits = [(np.sort(rows[n // 2 :]), np.sort(rows[: n // 2])), (np.sort(rows[: n // 2]), np.sort(rows[n // 2 :]))]
    scored = choose_metric(task, metric)
    weight = np.ones(n) if prepared.weight is None else prepared.weight
    exposure = np.ones(n) if prepared.exposure is None else prepared.exposure
    for fold, (train, test) in enumerate(splits):
        if prepared.classes:
            classes = [weight[train] @ (prepared.y[train] == k) for k in range(len(prepared.classes))]
            constant = np.tile(np.array(classes) / weight[train].sum(), (len(test), 1))
        else:
            rate = (weight[train] @ prepared.y[train]) / (weight[train] @ exposure[train])
            constant = rate * exposure[test]
        best = ideal[test] if prepared.classes else ideal[test] * exposure[test]
        for name, prediction in (("ideal", best), ("constant", constant)):
            path = prediction_path(folder, name, fold)
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, prediction)
    gains = column_gains(prepared, splits, scored, RANKING, folder, seed=0)
    return {one["column"]: one["fraction"] for one in gains}, prepared, splits


def naive_prediction(codes, target, weight, train, test):
    """Shrunk means, a category at a time: the least leave-one-out squared error of three shrinkages."""
    average, best = weight[train].mean(), None
    mean = sum(weight[i] * target[i] for i in train) / sum(weight[i] for i in train)
    groups = {code: [i for i in train if codes[i] == code] for code in set(codes[train])}
    for rows in (0.5, 5.0, 50.0):
        prior, error = rows * average, 0.0
        for mine in groups.values():
            total, mass = sum(weight[i] * target[i] for i in mine), sum(weight[i] for i in mine)
            for i in mine:
                out = (total - weight[i] * target[i] + prior * mean) / (mass - weight[i] + prior)
                error += weight[i] * (target[i] - out) ** 2
        if best is None or error < best[0]:
            best = error, prior
    prior, out = best[1], []
    for i in test:
        mine = groups.get(codes[i], [])
        total, mass = sum(weight[j] * target[j] for j in mine), sum(weight[j] for j in mine)
        out.append((total + prior * mean) / (mass + prior))
    return np.array(out)


@pytest.mark.parametrize("seed", range(4))
def test_a_column_of_categories_is_the_naive_model(tmp_path, seed):
    rng = np.random.default_rng(seed)
    n = 400
    code = rng.integers(0, 40, n)
    truth = rng.normal(0, 1 + seed, 40)[code]
    table = pd.DataFrame({
        "code": [f"c{one}" if one else None for one in code], "w": rng.integers(1, 4, n).astype(float),
        "y": truth + rng.normal(size=n) * 2,
    })  # fmt: skip
    found, prepared, splits = measured(tmp_path, table, truth, "regression", weight="w")
    gain = reached = 0.0
    for fold, (train, test) in enumerate(splits):
        guess = naive_prediction(code, prepared.y, prepared.weight, train, test)

        def rmse(p, test=test):
            return np.sqrt(np.average((prepared.y[test] - p) ** 2, weights=prepared.weight[test]))

        base = rmse(np.load(prediction_path(tmp_path, "constant", fold)))
        gain += base - rmse(np.load(prediction_path(tmp_path, "ideal", fold)))
        reached += base - rmse(guess)
    assert found["code"] == pytest.approx(max(reached / gain, 0.0), rel=1e-9)


def test_categories_of_counts_with_exposure_are_the_naive_model(tmp_path):
    rng = np.random.default_rng(5)
    n = 400
    code, exposure = rng.integers(0, 12, n), rng.uniform(0.1, 2, n)
    rate = np.exp(rng.normal(0, 0.8, 12))[code]
    table = pd.DataFrame({"code": [f"c{one}" for one in code], "e": exposure, "y": rng.poisson(rate * exposure)})
    found, prepared, splits = measured(tmp_path, table, rate, "count", exposure="e")
    metric, gain, reached = choose_metric("count", None), 0.0, 0.0
    for fold, (train, test) in enumerate(splits):
        guess = naive_prediction(code, prepared.y / exposure, exposure, train, test) * exposure[test]
        base = metric.of(prepared.y[test], np.load(prediction_path(tmp_path, "constant", fold)), None)
        gain += base - metric.of(prepared.y[test], np.load(prediction_path(tmp_path, "ideal", fold)), None)
        reached += base - metric.of(prepared.y[test], guess, None)
    assert found["code"] == pytest.approx(reached / gain, rel=1e-9)
    assert 0.5 < found["code"] < 1.05


def made(task, n=1500, seed=0):
    """A table with a column that gives the target away, as numbers and as words, noise, and a key; and the ideal."""
    rng = np.random.default_rng(seed)
    effect, exposure = rng.normal(size=n), rng.uniform(0.2, 1.5, n)
    if task == "binary":
        truth = 1 / (1 + np.exp(-2 * effect))
        y = (rng.random(n) < truth).astype(int)
        ideal, away = np.stack([1 - truth, truth], axis=1), y
        ideal = 0.5 * ideal + 0.5 * np.eye(2)[y]  # what finds the leak knows all but all
    elif task == "multiclass":
        y = rng.integers(0, 4, n)
        ideal, away = 0.97 * np.eye(4)[y] + 0.0075, y
    elif task == "count":
        y = rng.poisson(0.4 * exposure)
        away, ideal = np.minimum(y, 3), np.maximum(y, 0.02) / exposure
    else:
        away = np.round(10 * np.tanh(effect))
        y = away + rng.normal(size=n) * 0.1
        ideal = away.astype(float)
    table = pd.DataFrame({
        "number": away * 7.0 + 3, "words": [f"v{one}" for one in away], "noise": rng.normal(size=n),
        "colour": rng.choice(list("abcdef"), n), "key": [f"k{one}" for one in range(n)], "row": np.arange(n),
        "y": [f"class {one}" for one in y] if task in ("binary", "multiclass") else y,
        "w": rng.uniform(0.5, 2, n), "e": exposure,
    })  # fmt: skip
    return table, ideal


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["binary", "multiclass", "count", "regression"])
def test_what_gives_the_target_away_reaches_nearly_all_and_noise_nothing(tmp_path, task, weighted):
    table, ideal = made(task)
    roles = ({"weight": "w"} if weighted else {}) | ({"exposure": "e"} if task == "count" else {})
    table = table.drop(columns=[name for name in ("w", "e") if name not in roles.values()])
    found, _, _ = measured(tmp_path, table, ideal, task, **roles)
    assert set(found) == {"number", "words", "noise", "colour", "key", "row"}
    assert min(found["number"], found["words"]) >= LEAK
    assert (
        max(found["noise"], found["colour"], found["key"], found["row"]) < 0.1
    )  # an AUC of 750 rows has 0.02 of noise
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_an_amount_with_a_long_tail_is_found_in_another_unit(tmp_path):
    y = np.exp(np.random.default_rng(4).normal(0, 1.5, 1000))
    table = pd.DataFrame({"euros": 0.9 * y + 3, "logarithm": np.log(y), "noise": y[::-1], "y": y})
    found, _, _ = measured(tmp_path, table, y, "regression")
    assert found["euros"] > 0.99
    assert found["logarithm"] > 0.5
    assert found["noise"] < 0.05


def test_missing_values_alone_can_give_the_target_away(tmp_path):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 600)
    held = rng.normal(size=600)
    table = pd.DataFrame({
        "filled": np.where(y == 1, held, np.nan), "word": np.where(y == 1, "a", None), "other": held,
        "y": np.where(y == 1, "yes", "no"),
    })  # fmt: skip
    found, _, _ = measured(tmp_path, table, np.eye(2)[y], "binary")
    assert found["filled"] == pytest.approx(1, abs=0.01)
    assert found["word"] == pytest.approx(1, abs=0.01)
    assert found["other"] < 0.2


def test_offsets_of_amounts_are_taken_off_and_put_back(tmp_path):
    rng = np.random.default_rng(2)
    known, code = rng.normal(size=800) * 50, rng.integers(0, 5, 800)
    y = known + 10.0 * code
    table = pd.DataFrame({"code": [f"c{one}" for one in code], "noise": rng.normal(size=800), "known": known, "y": y})
    found, _, _ = measured(tmp_path, table, y, "regression", offset="known")
    assert found["code"] > 0.98


def test_true_effects_on_rare_events_are_small_and_not_nothing(tmp_path):
    """About 11 % of rows have a claim: the usual case of insurance, where no column explains much."""
    table = study.claims(20_000).drop(columns=["amount", "has_claim"]).rename(columns={"number": "y"})
    log_rate = -1.75 - 0.015 * (table["age"] - 45) + 0.003 * (table["power"] - 80) + 0.25 * (table["fuel"] == "diesel")
    rng = np.random.default_rng(0)  # the zones' effects, drawn after the columns
    for low, high in ((18, 90), (30, 200), (0, 60)):
        rng.integers(low, high, 20_000)
    rng.choice(["petrol", "diesel"], 20_000), rng.uniform(0.1, 1.0, 20_000)
    zone = table["zone"].str[1:].astype(int).to_numpy()
    rate = np.exp(log_rate + rng.normal(0, 0.25, 60)[zone]).to_numpy()
    assert 0.07 < (table["y"] > 0).mean() < 0.15
    found, _, _ = measured(tmp_path, table, rate, "count", exposure="exposure")
    assert all(0.01 < found[name] < 0.8 for name in ("age", "zone", "fuel"))
    assert sum(found.values()) < 1.2
    assert not leak_sentences([{"column": name, "fraction": one} for name, one in found.items()], RANKING)


def test_without_a_significant_gain_there_is_nothing_to_compare_with(tmp_path):
    assert has_gain(RANKING)
    assert not has_gain([])
    assert not has_gain(RANKING[:1])
    assert not has_gain([RANKING[0], RANKING[1] | {"p_adjusted": 0.06}])
    assert not has_gain([RANKING[1] | {"verdict": "best"}, RANKING[0]])
    table = pd.DataFrame({"a": [1.0, 2.5] * 40, "y": [1.0, 2.5] * 40})
    prepared = prepare(table, "y", task="regression")
    splits = [(np.arange(40), np.arange(40, 80))]
    assert column_gains(prepared, splits, choose_metric("regression", None), RANKING[:1], tmp_path, 0) == []
    assert column_gains(prepared, splits, choose_metric("regression", None), RANKING, tmp_path, 0) == []  # no files


def test_the_question_names_the_column_and_asks():
    gains = [{"column": "it's", "fraction": 0.97}, {"column": "b", "fraction": 0.9}, {"column": "c", "fraction": 0.89}]
    said = leak_sentences(gains, RANKING)
    assert said == [
        "Column \"it's\" alone reaches 97 % of Ideal's gain over the baseline: is it known before the target is?",
        "Column 'b' alone reaches 90 % of Ideal's gain over the baseline: is it known before the target is?",
    ]
    assert leak_sentences(gains[:1], RANKING) == []  # the table's only column has all the gain there is


@pytest.mark.parametrize("filled", [True, False])
def test_a_date_is_asked_about_where_some_rows_have_none(filled, tmp_path):
    """An hour may be all that matters; the date of what follows the target is missing where nothing followed."""
    rng = np.random.default_rng(0)
    at = pd.Series(pd.date_range("2024-01-01", periods=2000, freq="h"))
    late = at.dt.hour.to_numpy() >= 12 if filled else np.arange(2000) % 2 == 0
    table = pd.DataFrame({"at": at if filled else at.where(late), "c": rng.choice(["u", "v"], 2000), "y": late * 10.0})
    table["y"] += rng.normal(size=2000)
    _, prepared, splits = measured(tmp_path, table, late * 10.0, "regression")
    gains = column_gains(prepared, splits, choose_metric("regression", None), RANKING, tmp_path, seed=0)
    assert gains[0]["column"] == "at" and gains[0]["fraction"] >= LEAK
    assert bool(leak_sentences(gains, RANKING)) is not filled


def test_a_good_predictor_of_classes_is_no_leak_although_its_auc_is_high(tmp_path):
    """The column orders nearly all rows rightly; but of few rows it tells what they are."""
    rng = np.random.default_rng(0)
    n = 4000
    code = rng.integers(0, 30, n)
    p = np.where(code < 2, 0.2, 0.0001)
    y = (rng.random(n) < p).astype(int)
    table = pd.DataFrame(
        {"app": [f"a{one}" for one in code], "noise": rng.normal(size=n), "y": np.array(["n", "y"])[y]}
    )
    ideal = np.where(y == 1, 0.6, np.where(code < 2, 0.05, 0.001))
    found, prepared, splits = measured(tmp_path, table, np.stack([1 - ideal, ideal], axis=1), "binary")
    gains = column_gains(prepared, splits, choose_metric("binary", None), RANKING, tmp_path, seed=0)
    assert found["app"] >= LEAK
    assert 0.1 < gains[0]["known"] < 0.5
    assert not leak_sentences(gains, RANKING)


def test_parts_of_a_date_count_as_the_date():
    assert source_column("sold month", ["sold", "sold at"]) == "sold"
    assert source_column("sold at month", ["sold", "sold at"]) == "sold at"
    assert source_column("sold at", ["sold", "sold at"]) == "sold at"
    assert source_column("other", ["sold"]) == "other"


@pytest.fixture(scope="module")
def leaking():
    rng = np.random.default_rng(3)
    n = 600
    shop, size = rng.integers(0, 20, n), rng.normal(size=n)
    y = rng.normal(size=20)[shop] + size + rng.normal(size=n)
    return pd.DataFrame({
        "shop": [f"s{one}" for one in shop], "size": size, "paid": y * 1.2 + rng.normal(size=n) * 0.01, "y": y,
    })  # fmt: skip


@pytest.mark.slow
def test_a_comparison_asks_of_the_column_that_leaks_and_of_no_other(leaking, tmp_path):
    options = {"contenders": ["constant", "onehot-linear"], "folds": 2, "quiet": True}
    asked = compare(leaking, "y", out=tmp_path / "leak", **options)
    questions = [one for one in asked.summary if "is it known before" in one]
    assert len(questions) == 1
    assert questions[0].startswith("Column 'paid' alone reaches ")
    clean = compare(leaking.drop(columns="paid"), "y", out=tmp_path / "clean", **options)
    assert not [one for one in clean.summary if "is it known before" in one]
    page = (clean.folder / "report.html").read_text()
    assert "Each column alone" in page
    assert "shop" in page
