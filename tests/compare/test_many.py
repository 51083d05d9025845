"""Several tables in one call: ranks, the critical difference, the summary page."""

import numpy as np
import pandas as pd
import pytest

from tabsym.cli import main
from tabsym.compare import compare_tables
from tabsym.compare import run as many
from tabsym.compare.run import critical_difference, friedman, summary_of_tables
from tabsym.datasets import make_retail

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.mark.parametrize(("contenders", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_by_demsars_table(contenders, q):
    want = q * np.sqrt(contenders * (contenders + 1) / (6 * 14))
    assert critical_difference(contenders, 14) == pytest.approx(want, rel=1e-3)


def ranks(values):
    frame = pd.DataFrame(
        values, index=[f"c{j}" for j in range(len(values))], columns=list("abcdefgh")[: len(values[0])]
    )
    return frame.assign(mean=frame.mean(axis=1)).sort_values("mean")


def test_sentences_over_tables():
    same = ranks([[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    assert friedman(same) == pytest.approx(1.0)
    text = " ".join(summary_of_tables(same, 1.0, friedman(same), {}))
    assert "Over 3 tables" in text
    assert "No significant difference between contenders over 3 tables (Friedman, p = 1.00)" in text
    clear = ranks([[1.0] * 8, [2.0] * 8, [3.0] * 8])
    text = " ".join(summary_of_tables(clear, critical_difference(3, 8), friedman(clear), {"bad": "no such file"}))
    assert "Significantly worse than c0: c2." in text
    assert "No significant difference to c0: c1." in text
    assert "Not compared: bad (no such file)." in text
    assert friedman(ranks([[1.0, 1.0], [2.0, 2.0]])) == 1.0


@pytest.mark.parametrize(
    ("values", "counts"), [([[1.0, 1.0], [2.0, 2.0]], "2 and 2"), ([[1.0], [2.0], [3.0]], "3 and 1")]
)
def test_no_p_of_a_test_that_was_not_done(values, counts):
    few = ranks(values)
    sentences = summary_of_tables(few, 1.0, friedman(few), {})
    assert sentences[1:] == [
        "Differences between contenders were not tested: Friedman's test needs 3 contenders and 2 tables; "
        f"there are {counts}."
    ]


@pytest.mark.slow
def test_tables_of_different_tasks_and_one_that_fails(tmp_path):
    sales = make_retail(200)
    tables = {
        "<b>amounts": (sales, "sales"),
        "classes": (sales.assign(sales=(sales["sales"] > 20).map({True: "much", False: "little"})), "sales"),
        "broken": (sales, "nosuch"),
    }
    found = compare_tables(tables, contenders=["wide", "onehot-linear"], folds=2, out=tmp_path / "all", quiet=True)
    assert list(found.failures) == ["broken"]
    assert found.ranks.loc["Baseline (constant)"].drop("mean").between(1, 3).all()
    assert found.ranks.drop(columns="mean").sum().tolist() == [6.0, 6.0]
    for table in ("<b>amounts", "classes"):
        best = found.tables[table].ranking["label"].iloc[0]
        assert found.ranks.loc[best, table] == 1.0
    page = (tmp_path / "all" / "summary.html").read_text()
    assert "<b>amounts" not in page
    assert "&lt;b&gt;amounts" in page
    assert pd.read_csv(tmp_path / "all" / "summary.csv")["mean"].tolist() == pytest.approx(found.ranks["mean"].tolist())


@pytest.mark.slow
def test_one_that_failed_on_a_table_is_last_there(tmp_path):
    from tests.custom_contenders import Mean

    sales = make_retail(120)
    tables = {"a": (sales, "sales"), "b": (sales.assign(sales=sales["sales"] + 1), "sales")}
    own = {"fails": Mean(fails=True), "half": Mean(share=0.5)}
    found = compare_tables(tables, contenders=own, folds=2, out=tmp_path / "all", quiet=True)
    assert found.ranks.loc["fails", "mean"] == 3.0
    assert "failed" in (tmp_path / "all" / "summary.html").read_text()
    assert found.summary[-1] == "Failed or stopped, and ranked last there: fails (a, b)."
    with pytest.raises(ValueError, match="'Wide model' is the name of a built-in contender; give yours another name"):
        compare_tables(tables, contenders={"Wide model": Mean()}, folds=2, out=tmp_path / "more", quiet=True)


@pytest.mark.slow
def test_from_the_shell(tmp_path, capsys):
    for name in "ab":
        make_retail(120).to_csv(tmp_path / f"{name}.csv", index=False)
    paths = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    rest = ["--contenders", "constant,onehot-linear", "--folds", "2", "--out", str(tmp_path / "out")]
    assert main(["compare", *paths, "--target", "sales", *rest]) == 0
    assert "Over 2 tables" in capsys.readouterr().out
    assert (tmp_path / "out" / "a" / "report.html").exists()
    assert main(["compare", *paths, *["--target", "sales"] * 3, *rest]) == 2
    assert "2 tables need one --target for all, or one for each in order, not 3." in capsys.readouterr().err
    assert main(["compare", paths[0], "sales"]) == 2
    assert "There is no file 'sales'; the column to predict is named by --target." in capsys.readouterr().err
    with pytest.raises(ValueError, match="needs two tables or more; use compare for one"):
        compare_tables({"a": (paths[0], "sales")})
    with pytest.raises(ValueError, match="Two tables are named 'a'"):
        compare_tables([(paths[0], "sales"), (paths[0], "sales")])


def test_an_interruption_says_how_all_tables_go_on(tmp_path, monkeypatch, capsys):
    """The hint of the one table names its own folder, in which the others would be compared anew."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(many, "compare", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare_tables(dict.fromkeys("ab", (make_retail(60), "sales")), out=tmp_path / "all")
    assert (
        f"To continue with all tables, repeat the command with --resume --out {tmp_path / 'all'}."
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("name", ["../other", "a/b", "..", "", "a\\b", "ü" * 200])
def test_results_of_a_table_stay_in_the_folder(name, tmp_path):
    sales = make_retail(60, random_state=0)
    with pytest.raises(ValueError, match="cannot be that of a folder"):
        compare_tables({name: (sales, "sales"), "b": (sales, "sales")}, out=tmp_path / "out", quiet=True)
    assert not list(tmp_path.iterdir())
