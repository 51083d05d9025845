"""Parts that the user gives to MODLEncoder: cut points, groups, special codes and directions; costs by `naive_modl`."""

import datetime as dt
import itertools
import math

import numpy as np
import pandas as pd
import pytest

from tabsym import MODLEncoder, load, save
from tabsym.export import from_spec, to_spec, to_sql
from tests.exported import in_duckdb, in_sqlite
from tests.modl_data import AMOUNT, TARGETS, THREE, N, X, Y, same_parts
from tests.oracles import modl as naive

CRITERIA = ["khiops", "page"]


def small(seed, n=40, values=6, classes=2):
    """A column of few values, classes, and the counts of both."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, values, n).astype(float)
    x[:values] = np.arange(values)
    y = (rng.random(n) * classes * 0.6 + x / values * classes * 0.4).astype(int)
    y[:classes] = np.arange(classes)
    counts = np.zeros((values, classes), dtype=int)
    np.add.at(counts, (x.astype(int), y), 1)
    return x, y, counts


def fit(x, y, **options):
    return MODLEncoder(n_candidates=1, **options).fit(pd.DataFrame({"x": x}), y)


def frame_with_codes():
    """Numbers with a special code and missing values, categories with a special one."""
    frame = X.copy()
    frame.loc[::9, "x"], frame.loc[5::11, "x"] = -999.0, np.nan
    return frame


OWN = {
    "splits": {"g": [["a", "b"], ["d", "e", "never"]]},
    "special_codes": {"x": [-999, None], "g": ["c"]},
    "monotonic": {"x": 1},
}


# -- costs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("classes", [2, 3])
def test_own_cut_points_have_the_cost_of_the_criterion(criterion, classes):
    for seed in range(4):
        x, y, counts = small(seed, classes=classes)
        one = fit(x, y, criterion=criterion, splits={"x": [-3, 0.5, 3, 3.5, 77]}).partitions_["x"]
        assert one.labels == ["]-inf; -3]", "]-3; 0.5]", "]0.5; 3]", "]3; 3.5]", "]3.5; 77]", "]77; +inf["]
        expected = naive.interval_cost(counts, [1, 4, 6], criterion)
        null = naive.interval_cost(counts, [6], criterion)
        assert one.partition.cost == pytest.approx(expected, rel=1e-12)
        assert one.partition.level == pytest.approx(1 - expected / null, abs=1e-12)
        assert one.target.counts.tolist() == [
            [0] * classes,
            *(counts[a:b].sum(axis=0).tolist() for a, b in ((0, 1), (1, 4))),
            [0] * classes,
            counts[4:].sum(axis=0).tolist(),
            [0] * classes,
        ]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_own_groups_have_the_cost_of_the_criterion(criterion):
    for seed in range(4):
        x, y, counts = small(seed, values=8, n=60)
        names = np.array(list("abcdefgh"))[x.astype(int)]
        one = fit(names, y, criterion=criterion, splits={"x": [["c", "a"], ["h", "never"]]}).partitions_["x"]
        assert [set(members) for members in one.groups] == [set("ac"), {"h", "never"}, set("bdefg")]
        expected = naive.grouping_cost(counts, [0, 2, 0, 2, 2, 2, 2, 1], criterion)
        assert one.partition.cost == pytest.approx(expected, rel=1e-12)
        null = naive.grouping_cost(counts, [0] * 8, criterion)
        assert one.partition.null_cost == pytest.approx(null, rel=1e-12)


@pytest.mark.parametrize("categorical", [False, True])
def test_own_parts_beside_numbers_get_the_best_intervals_of_the_target(categorical):
    for seed in range(3):
        x, y, counts = small(seed, values=6, classes=6)
        parts = [0, 0, 1, 1, 1, 2]
        target = y + 0.5
        values = np.array(list("abcdef"))[x.astype(int)] if categorical else x
        own = [["a", "b"], ["c", "d", "e"], ["f"]] if categorical else [1.5, 4.5]
        one = fit(values, target, splits={"x": own}, target_type="continuous").partitions_["x"]
        given = parts if categorical else [2, 5, 6]
        costs = [naive.grid_cost(counts, given, ends, categorical) for ends in naive.all_ends(6)]
        assert one.partition.cost == pytest.approx(min(costs), rel=1e-12)
        means = [target[np.isin(x, np.flatnonzero(np.array(parts) == part))].mean() for part in range(3)]
        np.testing.assert_allclose(one.target.means, means)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_special_codes_cost_their_classes_and_the_rest_is_optimal(criterion):
    """By every partition of the rest."""
    for seed in range(4):
        x, y, counts = small(seed, values=8, n=70)
        encoder = fit(x, y, criterion=criterion, special_codes={"x": [3, [5, 0]]})
        one, rest = encoder.partitions_["x"], np.delete(counts, [0, 3, 5], axis=0)
        special = naive.parts_cost([counts[3], counts[0] + counts[5]])
        best, ends = naive.best_intervals(rest, criterion)
        assert one.partition.cost == pytest.approx(best + special, rel=1e-12)
        assert one.partition.null_cost == pytest.approx(naive.interval_cost(counts, [8], criterion), rel=1e-12)
        assert encoder.certificates_["x"].is_optimal
        assert one.partition.n_parts == len(ends) + 2 and one.labels[-2:] == ["{3}", "{5, 0}"]
        names = np.array(list("abcdefgh"))[x.astype(int)]
        one = fit(names, y, criterion=criterion, special_codes={"x": ["d", ["f", "a"]]}).partitions_["x"]
        best = naive.best_groups(rest, criterion)[0]
        assert one.partition.cost == pytest.approx(best + special, rel=1e-12)
        assert one.groups[-2:] == [["d"], sorted("af", key=lambda name: -(names == name).sum())]


def test_special_codes_beside_numbers():
    """The parts of the rest and the target's intervals, by every pair of them: near the best, mostly the best."""
    hits = 0
    for seed in range(6):
        x, y, counts = small(seed, n=60, values=6, classes=5)
        one = fit(x, y + 0.5, special_codes={"x": [2]}, target_type="continuous").partitions_["x"]
        rest, costs = np.delete(counts, 2, axis=0), []
        for ends, target in itertools.product(naive.all_ends(5), naive.all_ends(5)):
            grid = np.array(
                naive.merge_intervals(np.array([*naive.merge_intervals(rest, ends), counts[2]]).T, target)
            ).T
            if grid.shape[1] > 1:
                sizes = rest.sum(axis=1, keepdims=True)  # of one class: the prior alone
                prior = naive.interval_cost(sizes, ends, "khiops")
                ranks = math.fsum(naive.ln_fact(n) for n in grid.sum(axis=0))
                costs.append(prior + naive.rissanen(grid.shape[1] - 1, 59) + naive.parts_cost(grid) + ranks)
        assert min(costs) - 1e-9 <= one.partition.cost <= min(costs) * 1.02
        hits += one.partition.cost <= min(costs) + 1e-9
    assert hits >= 5


# -- directions ----------------------------------------------------------------------------------


def goes(shares, direction):
    return (np.diff(shares) * direction >= 0).all()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("limits", [{}, {"max_parts": 2}, {"min_part_count": 9}])
def test_directions_are_the_best_of_all_that_go_that_way(criterion, direction, limits):
    several = 0
    for seed in range(4):
        x, y, counts = small(seed, values=8, n=70)
        y = y if seed % 2 else 1 - y
        counts = counts if seed % 2 else counts[:, ::-1]
        encoder = fit(x, y, criterion=criterion, monotonic={"x": direction}, **limits)
        costs = [naive.interval_cost(counts, [8], criterion)]
        for ends in naive.all_ends(8):
            parts = np.array(naive.merge_intervals(counts, ends))
            fits = len(ends) <= limits.get("max_parts", 8) and parts.sum(axis=1).min() >= limits.get(
                "min_part_count", 1
            )
            if fits and goes(parts[:, 1] / parts.sum(axis=1), direction):
                costs.append(naive.interval_cost(counts, ends, criterion))
        assert encoder.costs_["x"] == pytest.approx(min(costs), rel=1e-12)
        assert encoder.certificates_["x"].is_optimal
        assert goes(encoder.partitions_["x"].target.means, direction)
        several += encoder.partitions_["x"].partition.n_parts > 1
        either = fit(x, y, criterion=criterion, monotonic={"x": "auto"}, **limits)
        assert either.costs_["x"] <= encoder.costs_["x"] + 1e-9
        same_parts(either, fit(x, y, criterion=criterion, monotonic=True, **limits))
    assert several or criterion == "page" or limits


@pytest.mark.parametrize("direction", [1, -1])
def test_directions_of_means(direction):
    for seed in range(3):
        x, y, counts = small(seed, n=60, values=6, classes=5)
        one = fit(x, y + 0.5, monotonic={"x": direction}, target_type="continuous").partitions_["x"]
        costs = [naive.grid_cost(counts, [6], [5], False)]
        for ends in naive.all_ends(6):
            means = [part @ np.arange(5) / part.sum() for part in naive.merge_intervals(counts, ends)]
            if goes(means, direction):
                costs += [naive.grid_cost(counts, ends, target, False) for target in naive.all_ends(5)]
        assert one.partition.cost == pytest.approx(min(costs), rel=1e-12)
        assert goes(one.target.means, direction)


def test_special_codes_are_outside_the_direction():
    frame = frame_with_codes()
    y = np.where(frame["x"] == -999, 1, Y)
    encoder = MODLEncoder(special_codes={"x": [-999, None]}, monotonic={"x": 1}, max_parts=3).fit(frame, y)
    means = encoder.partitions_["x"].target.means
    assert goes(means[:-2], 1) and means[-2] == 1 and len(means) <= 5
    without = MODLEncoder(monotonic={"x": -1, "g": False}).fit(frame, y)
    assert goes(without.partitions_["x"].target.means, -1)


# -- together ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_found_can_be_given(target):
    frame = frame_with_codes()
    found = MODLEncoder().fit(frame, TARGETS[target])
    parts = {"x": found.partitions_["x"].bounds, "g": found.partitions_["g"].groups}
    again = MODLEncoder(splits=parts).fit(frame, TARGETS[target])
    assert again.partitions_["x"].labels == found.partitions_["x"].labels
    assert again.partitions_["g"].groups == found.partitions_["g"].groups
    for name in parts:
        assert again.costs_[name] <= found.costs_[name] + 1e-9  # of the target's intervals others may be better
        assert target == "amounts" or again.costs_[name] == pytest.approx(found.costs_[name], rel=1e-12)
    pd.testing.assert_frame_equal(again.transform(frame), found.transform(frame))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.slow
def test_pieces_weights_and_files(target, tmp_path):
    n = N if target != "amounts" else N // 2  # whose grids take most of the time
    half, frame, y = n // 2, frame_with_codes()[:n], TARGETS[target][:n]
    options = OWN if target != "classes" else OWN | {"monotonic": False}
    whole = MODLEncoder(**options).fit(frame, y)
    pieces = MODLEncoder(**options).partial_fit(frame[:half], y[:half]).partial_fit(frame[half:], y[half:])
    same_parts(pieces, whole)
    other = MODLEncoder(**options).partial_fit(frame[half:], y[half:])
    same_parts(MODLEncoder(**options).partial_fit(frame[:half], y[:half]).merge(other), whole)
    weight = np.random.default_rng(0).integers(0, 3, n)
    again = MODLEncoder(**options).fit(frame.loc[frame.index.repeat(weight)], np.repeat(y, weight))
    same_parts(MODLEncoder(**options).fit(frame, y, sample_weight=weight.astype(float)), again)
    loaded = load(save(whole, tmp_path / "own.tabsym"))
    pd.testing.assert_frame_equal(loaded.transform(frame), whole.transform(frame))
    assert loaded.get_params()["special_codes"] == OWN["special_codes"]


@pytest.mark.parametrize("output", ["group", "onehot", "probability", "logodds", "mean"])
def test_exports_and_unknown_values(output):
    frame = frame_with_codes()
    encoder = MODLEncoder(output=output, **OWN).fit(frame, Y)
    new = frame.head(60).copy()
    new.loc[:3, "g"], new.loc[4:8, "g"] = "zz", "never"
    new["x"] = [-999.0, np.nextafter(-999, 0), np.nextafter(-999, -2000), np.nan, *new["x"][4:]]
    expected = encoder.transform(new)
    if output == "group":
        labels = encoder.partitions_["x"].labels
        assert expected["x"].tolist()[:4] == ["{-999}", labels[0], labels[0], "Missing"]
        assert expected["g"].tolist()[:9] == ["{f, h, g}"] * 4 + ["{e, d, never}"] * 5
        assert not expected["x"].dtype.ordered
        back = encoder.inverse_transform(expected)["x"]
        assert back[0] == -999 and np.isnan(back[3])
    text = to_sql(encoder, keep=["row number"])
    for view in (in_duckdb(text, new, view="encoded"), in_sqlite(text, new, view="encoded")):
        for column in expected:
            if output == "group":
                assert view[column].tolist() == expected[column].tolist()
            else:
                np.testing.assert_allclose(view[column], expected[column], rtol=1e-12)
    rows = from_spec(to_spec(encoder)).transform(new)
    for column in expected:
        assert np.asarray(rows[column]).tolist() == pytest.approx(expected[column].tolist())


@pytest.mark.parametrize("output", ["probability", "logodds", "mean"])
def test_out_of_fold_by_the_same_parts(output):
    frame = frame_with_codes()
    folds = [(np.flatnonzero(np.arange(N) % 3 != k), np.flatnonzero(np.arange(N) % 3 == k)) for k in range(3)]
    out = MODLEncoder(output=output, cv=folds, **OWN).fit_transform(frame, Y)
    for train, test in folds:
        apart = MODLEncoder(output=output, cv=None, **OWN).fit(frame.iloc[train], Y[train])
        pd.testing.assert_frame_equal(out.iloc[test], apart.transform(frame.iloc[test]))


def test_parts_without_rows_are_encoded_as_all_rows():
    own = {"splits": {"x": [0, 50]}, "special_codes": {"x": [-77], "g": ["zz"]}}
    new = pd.DataFrame({"x": [60.0, -77.0], "g": ["zz", "a"]})
    shares = MODLEncoder(output="probability", cv=None, **own).fit(X, Y).transform(new)
    np.testing.assert_allclose(shares["x_1"], (Y.sum() + 1) / (N + 2))
    assert shares["g_1"][0] == shares["x_1"][0]
    assert MODLEncoder(output="logodds", cv=None, **own).fit(X, Y).transform(new)["x"].tolist() == [0, 0]
    means = MODLEncoder(output="mean", cv=None, **own).fit(X, AMOUNT)
    np.testing.assert_allclose(means.transform(new)["x"], AMOUNT.mean())
    assert means.partitions_["x"].target.counts.sum(axis=1).tolist()[2:] == [0, 0]
    codes = MODLEncoder(special_codes={"x": [-77]}).fit(pd.DataFrame({"x": [-77.0] * 20}), [0, 1] * 10)
    assert codes.transform(new[["x"]])["x"].tolist() == ["]-inf; +inf[", "{-77}"]


def test_dates_and_their_codes():
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(100) % 50, unit="D")
    at = np.where(np.arange(100) % 7 > 0, days.to_numpy("datetime64[us]"), np.datetime64("9999-12-31", "us"))
    frame = pd.DataFrame({"at": at})  # `where` of pandas 2 does not end
    own = {"splits": {"at": [dt.date(2024, 1, 20), "2024-02-01"]}, "special_codes": {"at": [dt.date(9999, 12, 31)]}}
    encoder = MODLEncoder(**own).fit(frame, np.arange(100) % 2)
    found = encoder.transform(frame)["at"]
    assert set(found[::7]) == {"{9999-12-31}"}
    assert (found == found.cat.categories[0]).sum() == ((days <= "2024-01-20") & (np.arange(100) % 7 > 0)).sum()


def test_evidence_and_information_value_by_hand():
    frame = pd.DataFrame({"x": [1.0] * 50 + [2.0] * 50, "k": 1.0})
    y = np.repeat([1, 0, 1, 0], [40, 10, 5, 45])
    encoder = MODLEncoder(splits={"x": [1.5, 9]}).fit(frame, y)
    yes, no = np.array([41, 6]) / 47, np.array([11, 46]) / 57  # one row of each class more in both parts
    table = encoder.parts("x")
    np.testing.assert_allclose(table["woe"], [*np.log(yes / no), 0])
    np.testing.assert_allclose(table["iv"], [*((yes - no) * np.log(yes / no)), 0])
    assert encoder.iv_ == pytest.approx({"x": ((yes - no) * np.log(yes / no)).sum(), "k": 0.0})
    peer = pytest.importorskip("category_encoders").WOEEncoder(cols=["x"], regularization=1.0)
    both = MODLEncoder(splits={"x": [1.5]}).fit(frame, y).parts("x")["woe"]  # of two parts both add two rows to a class
    np.testing.assert_allclose(peer.fit_transform(frame[["x"]], pd.Series(y))["x"].to_numpy()[[0, 99]], both)
    odds = MODLEncoder(output="logodds", cv=None, splits={"x": [1.5, 9]}).fit(frame, y).transform(frame)["x"]
    np.testing.assert_allclose(odds[[0, 99]], table["woe"][:2])
    three = MODLEncoder().fit(X, THREE)
    assert not hasattr(three, "iv_") and "woe" not in three.parts("x")


def test_stability_by_hand():
    frame = pd.DataFrame({"x": [0.0] * 30 + [1.0] * 50 + [2.0] * 20, "g": ["a"] * 60 + ["b"] * 40})
    encoder = MODLEncoder(splits={"x": [0.5, 1.5, 7], "g": [["a"], ["b"]]}, handle_unknown="return_nan")
    encoder.fit(frame, [0, 1] * 50)
    new = pd.DataFrame({"x": [0.0] * 20 + [1.0] * 20, "g": ["a"] * 20 + ["new"] * 20})
    table = encoder.psi(frame, new, by="part")
    x = table[table["column"] == "x"]
    assert x["part"].tolist() == encoder.partitions_["x"].labels
    np.testing.assert_allclose(x["expected"], [0.3, 0.5, 0.2, 0])
    np.testing.assert_allclose(x["actual"], [0.5, 0.5, 0.5 / 40, 0])
    by_part = [0.2 * np.log(5 / 3), 0.0, (0.0125 - 0.2) * np.log(0.0125 / 0.2), 0.0]
    np.testing.assert_allclose(x["psi"], by_part)
    g = [-0.1 * np.log(5 / 6), (0.0125 - 0.4) * np.log(0.0125 / 0.4), (0.5 - 0.005) * np.log(0.5 / 0.005)]
    assert table["part"].tolist()[-1] == "(unknown)"
    total = encoder.psi(frame, new)
    assert total["column"].tolist() == ["g", "x"]
    np.testing.assert_allclose(total["psi"], [sum(g), sum(by_part)])
    assert encoder.psi(frame, frame)["psi"].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="by='row' is not known; use 'column' or 'part'"):
        encoder.psi(frame, new, by="row")
    with pytest.raises(ValueError, match="needs rows in both samples"):
        encoder.psi(frame, new[:0])


def test_stability_with_weights():
    frame = pd.DataFrame({"x": [0.0] * 3 + [1.0] * 5 + [2.0] * 2})
    new = pd.DataFrame({"x": [0.0, 0.0, 1.0, 2.0]})
    encoder = MODLEncoder(splits={"x": [0.5, 1.5]}).fit(frame, [0, 1] * 5)
    old, now = np.array([1, 2, 3, 1, 1, 1, 1, 2, 4, 4]), np.array([2, 1, 5, 2])
    whole = encoder.psi(frame.loc[frame.index.repeat(old)], new.loc[new.index.repeat(now)], by="part")
    weighted = encoder.psi(frame, new, by="part", weight_expected=old, weight_actual=now / 7)
    pd.testing.assert_frame_equal(weighted, whole)
    light = encoder.psi(frame, new, by="part", weight_actual=[0.2, 0.4, 0.6, 0])  # half a row weighs .2, of 1.2
    np.testing.assert_allclose(light["actual"], [0.5, 0.5, 0.2 / 1.2])
    assert light["psi"].iloc[2] == pytest.approx((1 / 6 - 0.2) * np.log(5 / 6))
    with pytest.raises(ValueError, match=r"weight_actual.shape == \(1,\), expected \(4,\)"):
        encoder.psi(frame, new, weight_actual=[1.0])


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"splits": [1, 2]}, r"splits=\[1, 2\] is not possible; use {column: \[...\]} or None"),
        ({"splits": {"x": 3}}, r"splits\['x'\] is 3; use a list"),
        ({"splits": {"q": [3]}}, "splits names 'q', which is no encoded column; the encoded ones are 'x', 'g'"),
        ({"splits": {"x": [3, 2]}}, r"splits\['x'\] is \[3, 2\]; give the cut points in ascending order"),
        ({"splits": {"x": [3, 3]}}, "names 3 twice"),
        ({"splits": {"x": [3, np.inf]}}, "use finite numbers"),
        ({"splits": {"x": [3, None]}}, r"splits\['x'\] needs finite cut points"),
        ({"splits": {"x": ["a"]}}, r"splits\['x'\] holds 'a', and the column holds numbers"),
        ({"splits": {"x": [["a"]]}}, r"splits\['x'\] holds groups, and the column holds numbers; use its cut points"),
        ({"splits": {"x": [["a"], 2]}}, "holds lists and single values"),
        ({"splits": {"g": ["a"]}}, r"splits\['g'\] holds 'a', and the column holds categories; use a list for each"),
        ({"splits": {"g": [["a"], []]}}, "holds an empty group"),
        ({"splits": {"g": [["a"], ["b", "a"]]}}, r"splits\['g'\] names 'a' twice"),
        ({"splits": {"g": [["a"]]}, "special_codes": {"g": ["a"]}}, "splits and special_codes.* names 'a' twice"),
        ({"special_codes": {"x": "NA"}}, r"special_codes\['x'\] is 'NA'; use a list"),
        ({"special_codes": {"x": [[]]}}, "holds an empty list"),
        ({"special_codes": {"x": [1, [1, 2]]}}, r"special_codes\['x'\] names 1 twice"),
        ({"special_codes": {"x": [True]}}, r"special_codes\['x'\] holds True, and the column holds numbers"),
        ({"special_codes": {"x": [None]}, "handle_missing": "return_nan"}, "makes missing values a part, and handle_m"),
        ({"monotonic": {"x": 2}}, r"monotonic\['x'\] is 2; use 'auto', 1, -1, True or False"),
        ({"monotonic": "up"}, "monotonic='up' is not possible; use True, False or {column:"),
        ({"monotonic": {"q": 1}}, "monotonic names 'q', which is no encoded column"),
        ({"monotonic": {"g": 1}}, "monotonic names 'g', whose categories have no order"),
        ({"monotonic": {"x": 1}, "splits": {"x": [1]}}, "Column 'x' is in splits, whose parts stay as they are"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        MODLEncoder(**options).fit(X, Y)


def test_what_the_table_refuses():
    with pytest.raises(ValueError, match="needs two classes or a continuous target; leave 'x' out"):
        MODLEncoder(monotonic={"x": 1}).fit(X, THREE)
    with pytest.raises(TypeError, match="Column 'g' holds str such as 'a', and splits or special_codes name 3"):
        MODLEncoder(splits={"g": [["a", 3]]}).fit(X, Y)
    mixed = MODLEncoder(monotonic=True, splits={"x": [0, 0.1, 0.2]}).fit(X.assign(z=X["x"] ** 2), Y)
    assert len(mixed.partitions_["x"].labels) == 4 and len(mixed.partitions_["z"].labels) > 0


def test_missing_values_are_a_special_code_once():
    """Beside cut points that part them from the rest, too."""
    encoder = MODLEncoder(splits={"x": [-np.inf, 0]}, special_codes={"x": [None]}).fit(frame_with_codes(), Y)
    assert encoder.partitions_["x"].labels == ["]-inf; 0]", "]0; +inf[", "Missing"]
