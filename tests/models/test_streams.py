"""Tables in pieces, interruption, and what a fitted model shows."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import roc_auc_score

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.models import stream as stream_module
from tabsym.solvers.sgd.loop import Trainer

RNG = np.random.default_rng(0)
N = 9000
TABLE = pd.DataFrame(
    {"a": RNG.integers(0, 60, N).astype(str), "b": RNG.choice(list("pqr"), N), "x": RNG.normal(size=N)}
)
EFFECT = RNG.normal(size=60)
SCORE = EFFECT[TABLE["a"].astype(int)] + TABLE["x"]
TABLE["y"] = np.where(SCORE + RNG.normal(size=N) > 0, "yes", "no")
TABLE["v"] = SCORE


@pytest.fixture
def folder(tmp_path):
    for part in range(3):
        rows = TABLE.iloc[part * 3000 : (part + 1) * 3000]
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / f"part{part}.parquet")
    return tmp_path


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(stream_module, "BATCH_ROWS", 1000)


def test_a_dataset_trains_as_its_pieces_do(folder, small_pieces):
    model = WideSGDRegressor("a0[a] + s[1] * x + c[1]", max_iter=2, random_state=0).fit(ds.dataset(folder), "v")
    by_hand = WideSGDRegressor("a0[a] + s[1] * x + c[1]", random_state=0)
    for _ in range(2):
        for first in range(0, N, 1000):
            rows = TABLE.iloc[first : first + 1000]
            by_hand.partial_fit(rows, rows["v"])
    np.testing.assert_allclose(model.predict(TABLE), by_hand.predict(TABLE))
    assert model.n_rows_seen_ == 2 * N
    assert len(model.loss_curve_) == model.n_iter_ == 2
    assert model.loss_curve_[1] < model.loss_curve_[0]


@pytest.mark.slow
def test_classes_of_a_dataset_are_found_wherever_they_are(folder, small_pieces):
    table = TABLE.sort_values("y").drop(columns="v")
    for part in range(3):
        rows = table.iloc[part * 3000 : (part + 1) * 3000]
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), folder / f"part{part}.parquet")
    model = WideSGDClassifier(random_state=0).fit(ds.dataset(folder), "y")
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_iter_ == 14  # auto: 125,000 rows shown
    assert roc_auc_score(TABLE["y"] == "yes", model.predict_proba(TABLE.drop(columns=["y", "v"]))[:, 1]) > 0.8


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "reader"])
def test_iterators_of_any_frame(kind):
    frames = [TABLE.iloc[first : first + 1500].drop(columns="y") for first in range(0, N, 1500)]
    arrow = [pa.Table.from_pandas(frame, preserve_index=False) for frame in frames]
    stream = {
        "pandas": lambda: iter(frames),
        "polars": lambda: (pl.from_pandas(frame) for frame in frames),
        "arrow": lambda: (batch for table in arrow for batch in table.to_batches()),
        "reader": lambda: pa.RecordBatchReader.from_batches(arrow[0].schema, [t.to_batches()[0] for t in arrow]),
    }[kind]()
    model = WideSGDRegressor("v ~ w[a] + u[b] + s[1] * x", random_state=0).fit(stream)
    assert model.n_rows_seen_ == N
    assert model.n_iter_ == 1
    assert np.corrcoef(model.predict(TABLE), TABLE["v"])[0, 1] > 0.95


DAYS = TABLE[["v"]].assign(day=pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D"))


@pytest.mark.parametrize(
    "table", [DAYS, TABLE[["a", "x", "v"]], TABLE.rename(columns={"a": 0, "x": 1})[[0, 1, "v"]]],
    ids=["dates", "numbers", "columns without names"],
)  # fmt: skip
def test_a_fit_to_a_stream_sets_what_partial_fit_does_and_keeps_nothing_of_another_fit(table):
    X = table.drop(columns="v")
    plain = WideSGDRegressor(random_state=0).partial_fit(X, table["v"])
    for other in (DAYS[["day"]], TABLE[["a", "x"]], TABLE[["x"]].to_numpy()):
        model = WideSGDRegressor(random_state=0, average=True).fit(other, TABLE["v"]).set_params(average=False)
        model.note = "of the user"
        model.fit(iter([table]), "v")
        assert vars(model).keys() == vars(plain).keys() | {"note"}
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_a_refit_to_a_stream_holds_what_its_own_columns_held():
    model = WideSGDRegressor(random_state=0).fit(DAYS[["day"]], DAYS["v"])
    numbers = DAYS.assign(day=np.arange(N, dtype=float))
    model.fit(iter([numbers]), "v").predict(numbers[["day"]])
    with pytest.raises(TypeError, match="'day' held numbers in fit and holds dates now"):
        model.predict(DAYS[["day"]])
    model.fit(ds.dataset(pa.Table.from_pandas(DAYS, preserve_index=False)), "v").predict(DAYS[["day"]])


def test_what_a_stream_cannot_have():
    frames = [TABLE.drop(columns="y")]
    with pytest.raises(ValueError, match="target is one of its columns"):
        WideSGDRegressor().fit(iter(frames))
    with pytest.raises(ValueError, match="no column 'z' in the stream; it has 'a', 'b', 'x', 'v'"):
        WideSGDRegressor().fit(iter(frames), "z")
    with pytest.raises(ValueError, match="max_iter=3 needs a stream that can be read again"):
        WideSGDRegressor(max_iter=3).fit(iter(frames), "v")
    with pytest.raises(ValueError, match="sample_weight cannot be given with a stream"):
        WideSGDRegressor().fit(iter(frames), "v", sample_weight=np.ones(N))
    with pytest.raises(ValueError, match="early_stopping needs all rows"):
        WideSGDRegressor(early_stopping=True).fit(iter(frames), "v")
    with pytest.raises(ValueError, match="The stream has no rows"):
        WideSGDRegressor().fit(iter([]), "v")


@pytest.mark.parametrize(("model", "y"), [(WideClassifier(), "y"), (WideRegressor(), "v")])
def test_solved_models_name_the_one_for_streams(model, y):
    online = type(model).__name__.replace("Wide", "WideSGD")
    with pytest.raises(ValueError, match=f"a stream comes in batches; use {online} for streams"):
        model.fit(iter([TABLE]), y)
    assert not hasattr(model, "partial_fit")


def test_a_failing_stream_leaves_the_model_as_it_was_and_an_interrupted_one_is_kept():
    frames = [TABLE.iloc[:3000].drop(columns="y"), TABLE.iloc[3000:].drop(columns="y")]
    model = WideSGDRegressor(random_state=0).fit(iter(frames), "v")
    before = model.predict(TABLE[["a", "b", "x"]])

    def broken(error):
        yield frames[0]
        raise error

    with pytest.raises(OSError, match="disk"):
        model.fit(broken(OSError("disk")), "v")
    np.testing.assert_array_equal(model.predict(TABLE[["a", "b", "x"]]), before)
    with pytest.raises(KeyboardInterrupt):
        model.fit(broken(KeyboardInterrupt()), "v")
    assert model.n_rows_seen_ == 3000
    once = WideSGDRegressor(random_state=0).partial_fit(frames[0].drop(columns="v"), frames[0]["v"])
    np.testing.assert_allclose(model.predict(TABLE[["a", "b", "x"]]), once.predict(TABLE[["a", "b", "x"]]))


def test_ctrl_c_in_memory_keeps_the_epochs_that_were_done(monkeypatch):
    one_epoch, calls = Trainer.one_epoch, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return one_epoch(*arguments)

    monkeypatch.setattr(Trainer, "one_epoch", interrupted)
    model = WideSGDRegressor(max_iter=10, learning_rate=0.3, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="Stopped after 3 epochs"):
        model.fit(TABLE[["a", "x"]], TABLE["v"])
    assert model.n_iter_ == 3
    monkeypatch.undo()
    three = WideSGDRegressor(max_iter=3, learning_rate=0.3, random_state=0).fit(TABLE[["a", "x"]], TABLE["v"])
    np.testing.assert_array_equal(model.predict(TABLE[["a", "x"]]), three.predict(TABLE[["a", "x"]]))


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setattr(stream_module.time, "monotonic", iter(np.arange(0.0, 100.0, 2.0)).__next__)
    frames = [TABLE.iloc[first : first + 3000].drop(columns="y") for first in range(0, N, 3000)]
    WideSGDRegressor(verbose=1, random_state=0).fit(iter(frames), "v")
    assert "6,000 rows" in capsys.readouterr().err


def test_summary_says_what_was_learned():
    text = WideSGDRegressor("v ~ w[a] + s[1] * x + c[1]", random_state=0).fit(TABLE).summary()
    assert re.search(r"WideSGDRegressor: loss squared_error, [\d,]+ rows in all, repeats counted", text)
    assert "linear predictor = w[a] + s[1] * x + c[1]" in text
    assert "units of the target" in text
    row = next(line for line in text.splitlines() if line.startswith("w "))
    assert row.split()[1:3] == ["60", "9,000"]
    product = WideSGDRegressor("g[a] * h[b] + c[1]", random_state=0).fit(TABLE, TABLE["v"])
    assert "factors of a product over their mean, times one scale" in product.summary()


def test_plots_of_parameters():
    import matplotlib as mpl

    mpl.use("agg")
    model = WideSGDRegressor(interactions="pairwise", random_state=0).fit(TABLE.assign(a=TABLE["a"] + "$"), TABLE["v"])
    axes = model.plot_term("a", top=10)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == 10
    assert all("(" in label and r"\$" in label for label in labels)
    cells = model.plot_term("a:b")
    assert [cells.get_ylabel(), cells.get_xlabel()] == ["a", "b"]
    assert [label.get_text() for label in cells.get_yticklabels()[:3]] == [r"0\$", r"1\$", r"2\$"]
    axes.figure.canvas.draw()  # a stray dollar sign would fail here
    with pytest.raises(ValueError, match="There is no term 'z'; there is 'a', 'b'"):
        model.plot_term("z")


def test_ctrl_c_leaves_a_classifier_whose_classes_are_its_own(monkeypatch):
    """Interrupted in its second pass, a model refitted on other classes predicts those."""
    one_epoch, calls = Trainer.one_epoch, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return one_epoch(*arguments)

    model = WideSGDClassifier(random_state=0).fit(TABLE[["a"]], np.where(TABLE["v"] > 0, "yes", "no"))
    monkeypatch.setattr(Trainer, "one_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt, match="Stopped after 1 epoch;"):
        model.fit(TABLE[["a"]], np.where(TABLE["v"] > 0, "red", "green"))
    assert set(model.predict(TABLE[["a"]])) <= {"red", "green"}
    fresh = WideSGDClassifier(random_state=0)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(TABLE[["a"]], np.where(TABLE["v"] > 0, "red", "green"))
    assert fresh.classes_.tolist() == ["green", "red"]
    assert fresh.predict(TABLE[["a"]]).shape == (len(TABLE),)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gradient", ["mean", "gse"])
def test_many_calls_of_partial_fit_with_a_ridge_end_where_fit_does(gradient, weighted):
    """Means of terms move to the intercept after each call, which must not lead away from the optimum."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": ["p"] * 200 + ["q"] * 20 + ["r"] * 4})
    y = np.repeat([0.0, 1.0, 6.0], [200, 20, 4]) + 0.1 * rng.normal(size=224)
    weight = rng.integers(1, 4, 224).astype(float) if weighted else None
    options = {"random_state": 0, "shuffle": False, "standardize": False, "optimizer": "sgd", "learning_rate": 0.2}
    options |= {"batch_size": "full", "alpha": 0.5, "gradient": gradient}
    whole = WideSGDRegressor(**options, max_iter=2000).fit(X, y, sample_weight=weight)
    parts = WideSGDRegressor(**options)
    for _ in range(400):
        parts.partial_fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-6)
    if gradient == "mean":
        assert np.average(parts.predict(X), weights=weight) == pytest.approx(np.average(y, weights=weight), abs=1e-6)


def test_rows_without_weights_after_weighted_ones_have_the_weight_1():
    """Also in the means and spreads of numbers and targets."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("abc"), 200), "x": rng.normal(10, 4, 200)})
    y, weight = 3 * X["x"] + rng.normal(size=200), rng.uniform(5, 20, 100)
    found = []
    for later in (None, np.ones(100)):
        model = WideSGDRegressor(learning_rate=0.1, random_state=0).partial_fit(X[:100], y[:100], sample_weight=weight)
        found.append(model.partial_fit(X[100:], y[100:], sample_weight=later).predict(X))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
