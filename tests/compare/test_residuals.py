"""Where a contender errs: sums and standard errors by a direct formula, flags at planted errors and hardly else."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tabsym.compare.table.prepare import RoleColumns, prepare
from tabsym.plots.predictions import STANDARD_ERRORS, HeldOutRows, cells_of, error_tables


def rows_of(prepared):
    return prepared.X, prepared.weight, prepared.task


def case(table, task, predicted, **roles):
    """Held-out rows of a table whose target is y, as the report makes them."""
    prepared = prepare(table, "y", task=task, roles=RoleColumns(**roles))
    weight = np.ones(len(table)) if prepared.weight is None else prepared.weight
    observed = prepared.y.astype(float)
    if prepared.exposure is not None:
        observed, weight = observed / prepared.exposure, weight * prepared.exposure
    return HeldOutRows(np.arange(len(table)), np.asarray(predicted, dtype=float), observed, weight), prepared


def by_category(tables, column):
    cells = next(one for one in tables["columns"] if one["column"] == column)["cells"]
    return {cell["category"]: cell for cell in cells}


def made(task, n=600, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.choice(["a", "b", "c", "d"], n)
    table = pd.DataFrame({"code": code, "w": rng.uniform(0.5, 2, n), "e": rng.uniform(0.2, 2, n)})
    mean = rng.uniform(0.05, 0.6, n)
    if task == "binary":
        table["y"] = (rng.random(n) < mean).astype(int)
    elif task == "count":
        table["y"] = rng.poisson(mean * table["e"])
    else:
        table["y"] = mean + rng.normal(size=n)
    table.loc[:20, "code"] = None
    return table, mean


@pytest.mark.parametrize("task", ["regression", "binary", "count"])
def test_sums_and_standard_errors_are_those_of_the_formula(task):
    table, mean = made(task)
    roles = {"weight": "w"} | ({"exposure": "e"} if task == "count" else {})
    held, prepared = case(table if task == "count" else table.drop(columns="e"), task, mean, **roles)
    found = by_category(error_tables(held, *rows_of(prepared), ["code"]), "code")
    assert set(found) == {"a", "b", "c", "d", "(missing)"}
    exposure = table["e"].to_numpy() if task == "count" else np.ones(len(table))
    for label, cell in found.items():
        mine = (table["code"].isna() if label == "(missing)" else table["code"] == label).to_numpy()
        w, e, p, y = (one[mine] for one in (table["w"].to_numpy(), exposure, mean, table["y"].to_numpy(dtype=float)))
        left = w * (y - p * e)  # events, or amounts, beyond the expected
        implied = {"regression": 0.0, "binary": w**2 @ (p * (1 - p)), "count": w**2 @ (p * e)}[task]
        error = np.sqrt(max((left**2).sum(), implied))
        mass = (w * e).sum()
        assert cell["rows"] == mine.sum()
        assert cell["observed"] == pytest.approx((w @ y) / mass)
        assert cell["predicted"] == pytest.approx((w * e) @ p / mass)
        assert cell["contribution"] == pytest.approx(left.sum())
        assert cell["difference"] == pytest.approx(left.sum() / mass)
        assert cell["error"] == pytest.approx(error / mass)
        assert cell["z"] == pytest.approx(left.sum() / error)


def test_rows_of_several_repeats_count_once_with_their_mean_prediction():
    table, mean = made("regression")
    held, prepared = case(table, "regression", mean)
    twice = HeldOutRows(
        np.concatenate([held.rows, held.rows[::-1]]), np.concatenate([mean + 0.2, (mean - 0.2)[::-1]]),
        np.concatenate([held.observed, held.observed[::-1]]), np.concatenate([held.weight, held.weight[::-1]]),
    )  # fmt: skip
    one, two = (error_tables(which, *rows_of(prepared), ["code"])["columns"][0]["cells"] for which in (held, twice))
    for a, b in zip(one, two, strict=True):
        assert a == pytest.approx(b)


def test_groups_that_err_together_are_less_sure():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 25)
    table = pd.DataFrame({
        "code": np.where(group < 20, "a", "b"), "y": rng.normal(size=40)[group] + 0.01 * rng.normal(size=1000),
    })  # fmt: skip
    held, prepared = case(table, "regression", np.zeros(1000))
    alone = by_category(error_tables(held, *rows_of(prepared), ["code"]), "code")
    together = by_category(error_tables(held, *rows_of(prepared), ["code"], group), "code")
    for label, groups in (("a", range(20)), ("b", range(20, 40))):
        sums = [held.observed[group == one].sum() for one in groups]
        assert together[label]["error"] == pytest.approx(np.sqrt(np.square(sums).sum()) / 500)
        assert together[label]["error"] > 4 * alone[label]["error"]


def planted(task, seed, times):
    """Thirty categories, in one of which the mean is off by 6 of its standard errors, times so many."""
    rng = np.random.default_rng(seed)
    n, size = 6000, 200
    code = np.repeat(np.arange(n // size), size)
    exposure = rng.uniform(0.5, 1.5, n)
    mean = rng.uniform(0.2, 0.4, n)
    off = {"regression": 1.0, "binary": np.sqrt(0.5 * 0.5), "count": np.sqrt(0.64)}[task] * 6 / np.sqrt(size)
    truth = mean + times * off * (code == 17)
    y = {
        "regression": lambda: truth + rng.normal(size=n), "binary": lambda: (rng.random(n) < truth).astype(int),
        "count": lambda: rng.poisson(truth * exposure),
    }[task]()  # fmt: skip
    table = pd.DataFrame({"code": [f"c{one}" for one in code], "x": rng.normal(size=n), "e": exposure, "y": y})
    roles = {"exposure": "e"} if task == "count" else {}
    held, prepared = case(table if roles else table.drop(columns="e"), task, mean, **roles)
    return error_tables(held, *rows_of(prepared), ["x", "code"])


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regression", "binary", "count"])
def test_a_planted_error_is_marked_and_noise_is_not(task):
    hits, wrong = 0, 0
    for seed in range(20):
        found = planted(task, seed, 0)
        wrong += found["flagged"] > 0
        if seed < 10:
            marked = [
                cell["category"] for one in planted(task, seed, 1)["columns"] for cell in one["cells"]
                if cell["flagged"]
            ]  # fmt: skip
            hits += "c17" in marked
    assert wrong <= 2
    assert hits >= 9


def test_the_limit_is_3_adjusted_for_the_number_of_cells():
    found = planted("regression", 0, 1)
    assert found["cells"] == 40
    assert stats.norm.sf(found["limit"]) * 40 == pytest.approx(stats.norm.sf(STANDARD_ERRORS))
    first = found["columns"][1]
    assert first["column"] == "code"
    assert first["of"] == 30
    assert len(first["cells"]) == 15
    assert first["cells"][0]["category"] == "c17"


def test_small_cells_are_never_marked_and_columns_without_marks_are_left_out_beyond_the_first_few():
    rng = np.random.default_rng(1)
    n = 500
    table = pd.DataFrame({f"x{k}": rng.choice(["a", "b"], n) for k in range(8)} | {"y": rng.normal(size=n)})
    table["rare"] = ["few"] * 20 + ["many"] * (n - 20)
    table["off"] = ["off"] * 100 + ["on"] * (n - 100)
    table.loc[:19, "y"] += 5
    table.loc[20:99, "y"] += 3
    table["y"] -= table["y"].mean()
    held, prepared = case(table, "regression", np.zeros(n))
    found = error_tables(held, *rows_of(prepared), [*(f"x{k}" for k in range(8)), "rare", "off"], most=3)
    shown = [one["column"] for one in found["columns"]]
    assert shown[:3] == ["x0", "x1", "x2"]
    assert "off" in shown
    assert "rare" not in shown
    every = error_tables(held, *rows_of(prepared), ["rare", "off"], most=2)["columns"][0]["cells"]
    assert max(cell["z"] for cell in every if cell["category"] == "few") > found["limit"]
    assert found["flagged"] == sum(one["flagged"] for one in found["columns"])


def test_bins_of_numbers_hold_all_rows_and_say_their_bounds():
    rng = np.random.default_rng(0)
    numbers = pd.Series(rng.normal(size=1000))
    numbers[:50] = np.nan
    codes, labels = cells_of(numbers, np.arange(1000))
    assert len(labels) == 11
    assert labels[-1] == "(missing)"
    counts = np.bincount(codes, minlength=11)
    assert counts[-1] == 50
    assert counts[:-1].min() >= 94
    for code, label in enumerate(labels[:-1]):
        mine = numbers[codes == code]
        bounds = [float(one) for one in label.replace("(", "").replace("]", "").replace("up to", "").
                  replace("over", "").split(",")]  # fmt: skip
        if label.startswith("up to"):
            assert mine.max() <= bounds[0] + 1e-5
        elif label.startswith("over"):
            assert mine.min() > bounds[0] - 1e-5
        else:
            assert bounds[0] - 1e-5 < mine.min() <= mine.max() <= bounds[1] + 1e-5


def test_few_numbers_and_booleans_are_categories():
    codes, labels = cells_of(pd.Series([2.0, 1, np.nan, 1]), np.arange(4))
    assert [labels[code] for code in codes] == ["2", "1", "(missing)", "1"]
    codes, labels = cells_of(pd.Series([True, False, True]), np.array([2, 1]))
    assert [labels[code] for code in codes] == ["True", "False"]


def test_rare_categories_beyond_the_most_are_one_cell():
    values = pd.Series([f"c{one}" for one in range(300) for _ in range(1 + (one < 10))])
    codes, labels = cells_of(values, np.arange(len(values)))
    assert len(labels) == 200
    assert labels[-1] == "(102 less frequent ones)"
    assert all(labels[code] in (value, labels[-1]) for code, value in zip(codes, values, strict=True))
    assert {f"c{one}" for one in range(10)} <= set(labels)
