"""What MODLEncoder tells of its columns: levels, costs, parts, text and plots."""

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.special import comb, factorial
from scipy.stats import multinomial

from tabsym import MODLEncoder
from tabsym.categories import contingency
from tabsym.modl import interval_cost
from tests.modl_data import AMOUNT, NUMBER, TARGETS, N, X, Y

mpl.use("Agg")


def test_levels_costs_and_certificates():
    rng = np.random.default_rng(1)
    encoder = MODLEncoder(n_candidates=1).fit(X.assign(noise=rng.normal(size=N)), Y)
    levels = encoder.levels_
    assert set(levels) == {"x", "g", "noise"}
    assert list(levels.values()) == sorted(levels.values(), reverse=True)
    assert levels["noise"] == 0
    for name, level in levels.items():
        np.testing.assert_allclose(level, 1 - encoder.costs_[name] / encoder.null_costs_[name])
        one = encoder.certificates_[name]
        assert one.is_optimal
        assert one.gap < 1e-9
        np.testing.assert_allclose(one.lower_bound, encoder.costs_[name])
    table = contingency.code_numbers(NUMBER).count(Y, np.arange(2))
    ends = np.searchsorted(table.values, encoder.partitions_["x"].bounds, side="right")
    np.testing.assert_allclose(encoder.costs_["x"], interval_cost(table.counts, [*ends, len(table.values)]))
    amounts = MODLEncoder().fit(X, AMOUNT)
    assert not any(one.is_optimal for one in amounts.certificates_.values())
    more = MODLEncoder(n_candidates=1000).fit(X, Y)
    assert more.levels_["x"] < levels["x"]


def test_prior_and_likelihood_are_those_of_the_printed_criterion():
    encoder = MODLEncoder(criterion="page").fit(X, Y)
    counts = encoder.partitions_["x"].partition.counts
    n_parts, n_classes = counts.shape
    sizes = counts.sum(axis=1)
    prior = np.log(N) + np.log(comb(N + n_parts - 1, n_parts - 1, exact=True))
    prior += sum(np.log(comb(int(size) + n_classes - 1, n_classes - 1, exact=True)) for size in sizes)
    np.testing.assert_allclose(encoder.prior_costs_["x"], prior, rtol=1e-10)
    orders = [multinomial(size, row / size).logpmf(row) - row @ np.log(row / size, where=row > 0, out=0 * row)
              for size, row in zip(sizes, counts, strict=True)]  # fmt: skip
    np.testing.assert_allclose(encoder.likelihood_costs_["x"], sum(orders), rtol=1e-10)
    assert f"prior {prior:.3f}" in encoder.describe("x")


def test_the_likelihood_of_amounts_counts_ranks_within_their_intervals():
    encoder = MODLEncoder().fit(X, AMOUNT)
    for name, one in encoder.partitions_.items():
        counts = one.partition.counts
        ways = [factorial(int(size), exact=True) for size in [*counts.sum(axis=1), *counts.sum(axis=0)]]
        cells = [factorial(int(cell), exact=True) for cell in counts.ravel()]
        expected = sum(map(math.log, ways)) - sum(map(math.log, cells))
        np.testing.assert_allclose(encoder.likelihood_costs_[name], expected, rtol=1e-10)
        assert 0 < encoder.prior_costs_[name] < encoder.costs_[name]


@pytest.mark.slow
def test_parts_and_text():
    encoder = MODLEncoder().fit(X.assign(noise=1.0), Y)
    table = encoder.parts("g")
    assert list(table) == ["part", "rows", "share", "P(0)", "P(1)", "woe", "iv"]
    assert table["rows"].sum() == N
    np.testing.assert_allclose(table["share"].sum(), 1)
    np.testing.assert_allclose(table["P(0)"] + table["P(1)"], 1)
    row = table[table["part"] == encoder.transform(X.assign(noise=1.0))["g"][0]].iloc[0]
    members = encoder.transform(X.assign(noise=1.0))["g"] == row["part"]
    assert row["rows"] == members.sum()
    np.testing.assert_allclose(row["P(1)"], Y[members].mean())
    text = encoder.describe()
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert [head.split(":")[0] for head in heads] == list(encoder.levels_)
    assert f"Level {encoder.levels_['x']:.5f}" in text
    assert "khiops, optimal" in text
    assert "uninformative about the target on its own" in text
    assert all(part in text for name in ("x", "g") for part in encoder.partitions_[name].labels)
    assert list(MODLEncoder().fit(X, AMOUNT).parts("x"))[-2:] == ["mean", "sd"]
    assert "mean" in MODLEncoder().fit(X, AMOUNT).describe()
    many = pd.DataFrame({"x": np.arange(4000.0)})
    assert "... and " in MODLEncoder().fit(many, np.arange(4000) // 100 % 2).describe()
    with pytest.raises(ValueError, match="There is no column 'q'; the encoded columns are 'x', 'g'"):
        MODLEncoder().fit(X, Y).parts("q")


def test_verbose_writes_a_line_for_each_column(capsys):
    MODLEncoder(verbose=1, output="mean").fit_transform(X, Y)
    written = capsys.readouterr()
    assert [line.split(":")[0] for line in written.err.splitlines()] == ["x", "g"]
    MODLEncoder().fit(X, Y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_plots(target):
    from matplotlib import pyplot as plt

    frame = X.rename(columns={"x": "$ _{x}^", "g": "<b>&\n"})
    encoder = MODLEncoder().fit(frame.assign(**{"<b>&\n": "$" + X["g"] + "$^_{"}), TARGETS[target])
    for name in frame:
        ax = encoder.plot_partition(name)
        ax.figure.canvas.draw()
        widths = [bar.get_width() for bar in ax.containers[0] if hasattr(bar, "get_width")]
        np.testing.assert_allclose(widths, encoder.parts(name)["share"])
        assert encoder.plot_partition(name, ax=ax) is ax
        plt.close(ax.figure)


def test_one_column_is_described_and_others_are_told_from_it():
    table = pd.DataFrame({"g": list("abcd") * 100, "h": list("ab") * 200, "x": np.arange(400.0)})
    encoder = MODLEncoder(numeric="passthrough").fit(table, np.arange(400) % 2)
    assert encoder.describe("h").startswith("h: Level ")
    assert "g: Level" not in encoder.describe("h")
    assert "h: Level" in encoder.describe() and "g: Level" in encoder.describe()
    for name, words in (("x", "Column 'x' was not encoded"), ("y", "There is no column 'y'")):
        for method in (encoder.describe, encoder.parts, encoder.plot_partition):
            with pytest.raises(ValueError, match=f"{words}; the encoded columns are 'g', 'h'"):
                method(name)
