"""Every sentence of a comparison's summary, checked against the scores of its folds, on tables of six kinds."""

import codecs
import json
import re

import numpy as np
import pandas as pd
import pytest

from tabsym import compare
from tabsym.compare.results import prediction_path
from tests.compare.reading import read_typed
from tests.custom_contenders import Mean

pytestmark = pytest.mark.usefixtures("in_process")

RNG = np.random.default_rng(0)


def rare_class():
    a = RNG.integers(0, 12, 400)
    y = np.array(["u", "v", "w"], dtype=object)[a % 3]
    y[:2] = "rare"
    return pd.DataFrame({"a": [f"s{j}" for j in a], "b": RNG.choice(list("xyz"), 400), "y": y}), {}


def all_equal():
    a = RNG.choice(list("uv"), 300)
    return pd.DataFrame({"a": a, "y": np.where(a == "u", 1.5, 3.25) + 1e-12 * RNG.normal(size=300)}), {}


def noise():
    return pd.DataFrame({"a": RNG.choice(list("uvwxyz"), 300), "y": RNG.choice(["yes", "no"], 300)}), {}


def counts():
    exposure, a = RNG.uniform(0.2, 2, 600), RNG.integers(0, 4, 600)
    n = RNG.poisson(exposure * np.array([0.2, 0.6, 1.2, 2.4])[a])
    return pd.DataFrame({"a": [f"s{j}" for j in a], "years": exposure, "y": n}), {"exposure": "years"}


def ratings():
    a = RNG.integers(0, 5, 500)
    y = np.clip(np.round(3.6 + 0.5 * (a - 2) + RNG.normal(0, 0.9, 500)), 1, 5).astype(int)
    return pd.DataFrame({"a": [f"s{j}" for j in a], "b": RNG.choice(list("xyz"), 500), "y": y}), {}


def series():
    day = pd.date_range("2024-01-01", periods=400, freq="6h")
    store = RNG.integers(0, 4, 400)
    y = 3.0 * store + 0.01 * np.arange(400) + RNG.normal(size=400)
    return pd.DataFrame({"day": day.astype(str), "store": [f"s{j}" for j in store], "y": y}), {"time": "day"}


TASKS = {rare_class: "multiclass", all_equal: "binary", noise: "binary", counts: "count", ratings: "regression",
         series: "regression"}  # fmt: skip


@pytest.mark.parametrize("make", TASKS, ids=lambda make: make.__name__)
@pytest.mark.slow
def test_every_sentence_is_true(make, tmp_path):
    table, options = make()
    if make is all_equal:
        options = {"task": "regression"}
    contenders = {"wide-additive": None, "onehot-linear": None, "lightgbm": None}
    if make in (counts, ratings, series):
        contenders |= {"wild": Mean(share=3.0), "fails": Mean(fails=True)}
    result = compare(table, "y", contenders=contenders, out=tmp_path / "o", quiet=True, **options)
    body = json.loads((result.folder / "results.json").read_text())
    assert body["settings"]["task"] == ("regression" if make is all_equal else TASKS[make])
    assert body["settings"]["notes"][0].startswith("Target 'y':")
    facts = Facts(body)
    for sentence in result.summary:
        facts.check(sentence)
    page = (result.folder / "report.html").read_text()
    assert all(
        sentence.replace("'", "&#39;").replace("+", "&#43;") in page.replace("+", "&#43;")
        for sentence in result.summary
    )


class Facts:
    """What the folds' scores say, computed anew; `check` asks whether a sentence agrees."""

    def __init__(self, body):
        self.settings = body["settings"]
        metric, n = self.settings["metric"], self.settings["n_splits"]
        self.sign = -1.0 if self.settings["larger_is_better"] else 1.0
        self.losses, self.names, self.errors = {}, {}, {e["label"]: e["error"] for e in body["contenders"].values()}
        for name, entry in body["contenders"].items():
            if len(entry["folds"]) == n:
                own = [entry["folds"][str(fold)]["scores"][metric] for fold in range(n)]
                self.losses[entry["label"]] = self.sign * np.array(own)
                self.names[entry["label"]] = name
        self.best = min(self.losses, key=lambda label: self.losses[label].mean())
        self.verdicts = {row["label"]: row for row in body["ranking"]}
        self.constant = self.losses["Baseline (constant)"]

    def check(self, sentence):
        for pattern, check in self.known().items():
            found = re.fullmatch(pattern, sentence)
            if found:
                check(*found.groups())
                return
        pytest.fail(f"no check knows the sentence: {sentence}")

    def known(self):
        return {
            r"(.+) has the best mean (\w+) \((\S+)\)\.": self.is_best,
            r"Its gain over the baseline is (\S+); differences are in percent of it\.": self.gain,
            r"Significantly worse: (\d+) of the (\d+) others\.": self.n_worse,
            r"(Every other contender|.+) is significantly worse\.": self.all_worse,
            r"Worse before adjustment for multiple comparisons of (\d+) contenders: (.+)\.": self.likely,
            r"Practically equivalent to the best \(.+ over the baseline\): (.+)\.": self.equivalent,
            r"Equal to the baseline: (.+)\.": self.equal,
            r"Unstable across folds, worse than the baseline in some: (.+)\.": self.unstable,
            r"No significant difference to the best, which .+ equal: (.+?)\.( More .+| With .+)?": self.inconclusive,
            r"Intervals are of the difference in loss, unadjusted; .+\.": self.two_tests,
            r"Intervals are unadjusted; .+\.": self.adjusted_only,
            r"No contender predicts the target significantly better than the baseline\.": self.nothing,
            r"No contender does better than the baseline\.": self.is_constant_best,
            r"(.+), practically equivalent to the best, fits (\S+) times as fast"
            r"(?: \((\S+) times in processor time\))?\.": self.faster,
            r"Worse than the baseline on average: (.+)\.": self.under,
            r"Worse than the baseline in some folds: (.+)\.": self.partly_under,
            r"Column '(\w+)' alone reaches (\d+) % of (.+)'s gain over the baseline: .+\?": self.leak,
            r"(\w+) failed: (.+)\.": self.failed,
            r"The machine was busy with other processes during (all fits|the fits of .+): .+\.": self.busy,
        }

    def busy(self, whose):
        rows = [row for row in self.verdicts.values() if row.get("busy")]
        assert rows and (whose == "all fits") == (len(rows) == len(self.verdicts))
        assert whose == "all fits" or whose == "the fits of " + "; ".join(row["label"] for row in rows)

    def leak(self, column, percent, label):
        fractions = {one["column"]: one["fraction"] for one in self.settings["column_gains"]}
        assert label == self.best
        assert int(percent) == round(100 * fractions[column]) >= 90

    def failed(self, label, why):
        assert self.errors[label].rstrip(".") == why

    def folds_under(self, label):
        return int((self.losses[label] > self.constant).sum())

    def is_best(self, label, metric, score):
        assert label == self.best
        assert float(score) == pytest.approx(self.sign * self.losses[label].mean(), rel=1e-4)

    def n_worse(self, worse, others):
        assert int(others) == len(self.losses) - 1
        assert int(worse) == sum(row["verdict"] == "worse" for row in self.verdicts.values())
        for label, row in self.verdicts.items():
            if row["verdict"] == "worse":
                assert self.losses[label].mean() > self.losses[self.best].mean()
                assert row["p_adjusted"] < 0.05

    def all_worse(self, _):
        assert all(row["verdict"] == "worse" for label, row in self.verdicts.items() if label != self.best)

    def likely(self, n, names):
        assert int(n) == len(self.losses)
        for name in names.split("; "):
            row = self.verdicts[re.sub(r" \([^()]*(worse|better)\)$", "", name)]
            assert row["p"] < 0.05 <= row["p_adjusted"]

    def gain(self, gain):
        assert float(gain) == pytest.approx(self.constant.mean() - self.losses[self.best].mean(), rel=1e-3)

    def equivalent(self, names):
        gain = self.constant.mean() - self.losses[self.best].mean()
        for name in names.split("; "):
            row = self.verdicts[name]
            assert max(abs(row["low"]), abs(row["high"])) <= 0.01 * gain * (1 + 1e-9)

    def equal(self, names):
        assert self.best == "Baseline (constant)"
        for name in names.split("; "):
            np.testing.assert_allclose(self.losses[name], self.constant)

    def unstable(self, names):
        for name, folds in re.findall(r"([^;(]+?) \(in (\d+) of \d+\)", names):
            assert self.folds_under(name.strip()) == int(folds) > 0

    def inconclusive(self, names, _):
        one = (
            r"([^;]+?) \((\S+)( %)? (worse|better), 95 % CI (\S+) to (\S+?)( %)?; "
            r"worse in (\d+) of (\d+) folds(?:; one fold, number \d+, differs widely from the others)?\)"
        )
        seen = re.findall(one, names)
        assert seen
        for label, amount, percent, word, low, high, _, folds, n in seen:
            difference = self.losses[label.strip()] - self.losses[self.best]
            gain = (self.constant.mean() - self.losses[self.best].mean()) / 100
            shown = difference.mean() / (gain if percent else 1)
            assert float(amount) == pytest.approx(abs(shown), rel=0.06)
            assert word == ("worse" if shown >= 0 else "better")
            assert int(folds) == int((difference > 0).sum())
            assert int(n) == len(difference)
            assert float(low) <= shown * 1.06 + 1e-9
            assert float(high) >= shown * 0.94 - 1e-9

    def beside(self):
        """By contender, whether its interval leaves 0 out, and its p alone."""
        rows = [row for row in self.verdicts.values() if row["verdict"] not in ("best", "practically equivalent")]
        return [(row["low"] > 0 or row["high"] < 0, row["p"] < 0.05, row["verdict"]) for row in rows]

    def two_tests(self):
        assert self.settings["split"] == "time"
        assert any(excludes != significant for excludes, significant, _ in self.beside())

    def adjusted_only(self):
        assert any(excludes and verdict == "unstable across folds" for excludes, _, verdict in self.beside())

    def nothing(self):
        assert self.best == "Baseline (constant)" or self.verdicts["Baseline (constant)"]["p_adjusted"] >= 0.05

    def is_constant_best(self):
        assert self.best == "Baseline (constant)"

    def faster(self, label, ratio, in_processor_time):
        for key, said in [("fit_seconds", ratio), ("fit_cpu_seconds", in_processor_time)]:
            if said is not None:
                seconds = {name: row[key] for name, row in self.verdicts.items()}
                assert seconds[self.best] / seconds[label] == pytest.approx(float(said), rel=0.1)
        assert self.verdicts[label]["verdict"] == "practically equivalent"

    def under(self, names):
        for name in names.split("; "):
            assert self.losses[name].mean() > self.constant.mean()

    def partly_under(self, names):
        for name, folds in re.findall(r"([^;(]+?) \(in (\d+) of \d+ folds\)", names):
            assert self.folds_under(name.strip()) == int(folds)
            assert self.losses[name.strip()].mean() <= self.constant.mean()


# -- what is asked for and is not there ---------------------------------------------------


def test_near_names_are_offered_and_long_lists_are_cut(tmp_path):
    wide = pd.DataFrame({f"column{i}": range(20) for i in range(40)} | {"income": range(20)})
    with pytest.raises(ValueError, match=r"no column 'incme' \(did you mean 'income'\?\); .* and 36 more\.") as raised:
        compare(wide, "incme", out=tmp_path / "a", quiet=True)
    assert len(str(raised.value)) < 600
    with pytest.raises(ValueError, match=r"no column 'Income' \(did you mean 'income'\?\)"):
        compare(wide, "Income", out=tmp_path / "a", quiet=True)
    with pytest.raises(ValueError, match=r"no contender 'ligthgbm' \(did you mean 'lightgbm'\?\); there are"):
        compare(wide, "income", contenders=["ligthgbm"], out=tmp_path / "a", quiet=True)
    with pytest.raises(ValueError, match=r"no column 'colum7' to split by \(did you mean 'column7'\?\)"):
        compare(wide, "income", time="colum7", out=tmp_path / "a", quiet=True)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"seed": -1}, "seed=-1 is not possible; use a whole number of at least 0 and at most 4294967295."),
        ({"seed": 2**32}, "seed=4294967296 is not possible; use a whole number of at least 0 and at most 4294967295."),
        ({"seed": None}, "seed=None is not possible; use a whole number of at least 0 and at most 4294967295."),
        ({"folds": 2.5}, "folds=2.5 is not possible; use a whole number of at least 2."),
    ],
)
def test_numbers_that_are_not_possible_are_named(tmp_path, option, sentence):
    table = pd.DataFrame({"a": list("ab") * 20, "y": range(40)})
    with pytest.raises(ValueError, match=re.escape(sentence)):
        compare(table, "y", contenders=["constant"], out=tmp_path / "a", quiet=True, **option)


def test_a_target_alone_has_nothing_to_be_predicted_by(tmp_path):
    with pytest.raises(ValueError, match="has no column but the target 'y'"):
        compare(pd.DataFrame({"y": range(40)}), "y", out=tmp_path / "a", quiet=True)


def test_files_of_utf_16_are_read(tmp_path):
    text = "a\tb\ty\nstraße\t1\t0\nweg\t2\t1\n"
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        path = tmp_path / f"{encoding}.txt"
        mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, b"")
        path.write_bytes(mark + text.encode(encoding))
        frame, _ = read_typed(path)
        assert frame.to_dict("list") == {"a": ["straße", "weg"], "b": [1, 2], "y": [0, 1]}


def test_predictions_stay_in_their_folder(tmp_path):
    for name in (".", "..", "...", "a.b", "x/y"):
        path = prediction_path(tmp_path, name, 0).resolve()
        assert path.parent.parent == (tmp_path / "predictions").resolve()
